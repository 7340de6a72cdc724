/* A proxy of the operator (HTTPS_PROXY and the like), through which egress reaches hosts. */
#include <arpa/inet.h>
#include "egress/internal.h"
#include "format/http/uri.h"

#define CREDENTIALS_MAX 512

static int set_authorization(struct forward_proxy *proxy, struct str user, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct str plain;
	auto_buf struct buf out = buf_empty(sizeof proxy->authorization);
	/* A '%' that begins no escape is a part of the password. */
	if (!uri_decode(&arena, user, false, &plain))
		plain = user;
	if (plain.len > CREDENTIALS_MAX)
		return fail(err, ERR_INVALID, "credentials of more than %d bytes", CREDENTIALS_MAX);
	buf_text(&out, "Basic ");
	buf_base64(&out, plain.data, plain.len);
	str_copy(proxy->authorization, sizeof proxy->authorization, out.data);
	return 0;
}

int forward_proxy_parse(const char *url, struct forward_proxy *proxy, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct forward_proxy made = { 0 };
	struct uri parts;
	if (!strstr(url, "://"))
		url = arena_printf(&arena, "http://%s", url);
	if (!uri_split(url, &parts) || strncasecmp(url, "http://", 7) != 0)
		return fail_hint(err, ERR_INVALID, "http://HOST:PORT; NO_PROXY=* uses none",
			"only a proxy by http:// is supported");
	if (parts.user.len && set_authorization(&made, parts.user, err) < 0)
		return -1;
	if (network_authority_parse(parts.host, 80, made.host, &made.port, err) < 0)
		return -1;
	*proxy = made;
	return 0;
}

/* "example.com" and ".example.com" stand for the domain and all below it. */
static bool is_below(const char *host, struct str domain)
{
	size_t len = strlen(host);
	while (domain.len > 0 && domain.data[0] == '.')
		domain = (struct str){ domain.data + 1, domain.len - 1 };
	if (domain.len == 0 || domain.len > len ||
		strncasecmp(host + len - domain.len, domain.data, domain.len) != 0)
		return false;
	return domain.len == len || host[len - domain.len - 1] == '.';
}

bool forward_proxy_is_excepted(const char *except, const char *host, uint16_t port)
{
	while (*(except += strspn(except, ", \t"))) {
		struct str one = { except, strcspn(except, ", \t") }, name, number;
		bool is_v6 = one.data[0] == '[' ||
			     (memchr(one.data, ':', one.len) != memrchr(one.data, ':', one.len));
		uint64_t wanted;
		except += one.len;
		if (str_is(one, "*"))
			return true;
		if (is_v6) {
			if (one.len > 2 && one.data[0] == '[' && one.data[one.len - 1] == ']')
				one = (struct str){ one.data + 1, one.len - 2 };
			if (str_is(one, host))
				return true;
			continue;
		}
		if (str_cut(one, ':', &name, &number) &&
			(!str_to_u64(number, &wanted) || wanted != port))
			continue;
		if (is_below(host, name))
			return true;
	}
	return false;
}

bool proxy_must_not_reach(const char *host)
{
	union address address = { 0 };
	/* Resolvers take 127.1, 0x7f000001 and 2130706433 for addresses, too. */
	if (inet_aton(host, &address.ipv4.sin_addr))
		address.any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, host, &address.ipv6.sin6_addr) == 1)
		address.any.sa_family = AF_INET6;
	else
		return is_below(host, STR("localhost"));
	return address_is_closed(&address.any);
}

static const char *first_set(const char *const *names, const char **found)
{
	for (; *names; names++) {
		const char *value = getenv(*names);
		if (value && *value) {
			*found = *names;
			return value;
		}
	}
	return NULL;
}

static int find_proxy(const char *const *names, struct forward_proxy *proxy, struct error *err)
{
	const char *name = NULL, *value = first_set(names, &name);
	if (value && forward_proxy_parse(value, proxy, err) < 0)
		return error_context(err, "the variable %s", name);
	return 0;
}

int forward_proxies_find(struct forward_proxies *proxies, struct error *err)
{
	static const char *const https[] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
		NULL };
	static const char *const http[] = { "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY",
		NULL };
	static const char *const none[] = { "no_proxy", "NO_PROXY", NULL };
	struct forward_proxies found = { 0 };
	const char *name, *except = first_set(none, &name);
	if (except && !str_copy(found.except, sizeof found.except, except))
		return fail(err, ERR_LIMIT, "the variable %s has more than %zu bytes", name,
			sizeof found.except - 1);
	if (strcmp(found.except, "*") != 0 && (find_proxy(https, &found.https, err) < 0 ||
						      find_proxy(http, &found.http, err) < 0))
		return -1;
	*proxies = found;
	return 0;
}
