/* Hosts of builds, and of URLs. */
#include "egress/internal.h"

int host_check(const struct forward_host *host, struct error *err)
{
	struct str text = str_from(host->host ? host->host : "");
	char parsed[HOST_SIZE];
	bool has_brackets = text.len && text.data[0] == '[';
	int status = has_brackets ? fail(err, ERR_INVALID, "not in its normal form")
				  : network_normalize(text, parsed, err);
	char shown[128];
	if (!status && strcmp(parsed, text.data) != 0)
		status = fail(err, ERR_INVALID, "not in its normal form");
	if (!status && !host->port)
		status = fail(err, ERR_INVALID, "a host without its port");
	if (!status)
		return 0;
	str_printable(shown, sizeof shown, text);
	return error_context(err, "allow '%s'", shown);
}

int forward_host_from_url(
	const char *url, struct arena *arena, struct forward_host *host, struct error *err)
{
	/* Neither the URL nor what may be a password is shown in an error. */
	struct str text = str_from(url), authority;
	uint16_t port = 0;
	char name[HOST_SIZE];
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.data[i] <= ' ' || text.data[i] == 0x7f)
			return fail(err, ERR_INVALID, "a blank or control byte in a URL");
	if (!strncasecmp(url, "https://", 8))
		authority = str_from(url + 8), port = 443;
	else if (!strncasecmp(url, "http://", 7))
		authority = str_from(url + 7), port = 80;
	else
		return fail(
			err, ERR_INVALID, "a URL that begins with neither https:// nor http://");
	authority.len = strcspn(authority.data, "/?#");
	/* Some readers end the authority at a backslash, and some take the first of several '@':
	 * the program that connects may find another host there. */
	if (memchr(authority.data, '\\', authority.len))
		return fail(err, ERR_INVALID, "a backslash in a URL's host");
	const char *at = memchr(authority.data, '@', authority.len);
	if (at) {
		authority.len -= (size_t)(at + 1 - authority.data);
		authority.data = at + 1;
	}
	if (network_authority_parse(authority, port, name, &port, err) < 0)
		return error_context(err, "a URL's host");
	*host = (struct forward_host){ .host = arena_text(arena, name), .port = port };
	return 0;
}
