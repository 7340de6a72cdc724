#include "format/http/http_response.h"

static int http_response_corrupt(struct error *err, const char *what)
{
	return fail(err, ERR_CORRUPT, "the response isn't HTTP: %s", what);
}

/* "HTTP/1.1 200 OK": the reason is for people and may be anything printable. */
static int parse_status(struct str line, struct http_response *response, struct error *err)
{
	if (!str_starts_with(line, "HTTP/1.") || line.len < 12 || line.data[8] != ' ' ||
		(line.len > 12 && line.data[12] != ' '))
		return http_response_corrupt(err, "bad status line");
	if (line.data[7] != '0' && line.data[7] != '1')
		return http_response_corrupt(err, "bad version");
	uint64_t status;
	if (!str_to_u64((struct str){ line.data + 9, 3 }, &status) || status < 100 || status > 599)
		return http_response_corrupt(err, "bad status");
	response->status = (int)status;
	response->will_close = line.data[7] == '0';
	return 0;
}

int http_response_parse(struct str text, bool is_head, size_t *used, struct http_response *response,
	struct error *err)
{
	struct http_response parsed = { .length = HTTP_LENGTH_UNKNOWN };
	struct http1_header header;
	struct http1_head head;
	int status = http1_read_head(text, HTTP_RESPONSE_HEAD_MAX, &head, err);
	if (status < 0 && err && err->code == ERR_INVALID)
		err->code = ERR_CORRUPT;
	if (status < 0)
		return error_context(err, "the response isn't HTTP");
	if (status == 0)
		return 0;
	if (parse_status(head.line, &parsed, err) < 0)
		return -1;
	parsed.text = head.headers;
	for (struct str rest = head.headers; http1_next_header(&rest, &header);)
		if (http1_is(header.name, "connection") && http1_is(header.value, "close"))
			parsed.will_close = true;
	if (is_head || parsed.status < 200 || parsed.status == 204 || parsed.status == 304) {
		parsed.length = 0;
	} else {
		parsed.is_chunked = head.is_chunked;
		if (head.has_length)
			parsed.length = head.length;
		else if (!head.is_chunked)
			parsed.will_close = true;
	}
	*used = head.len;
	*response = parsed;
	return 1;
}

struct str http_response_header(const struct http_response *response, const char *name)
{
	struct str rest = response->text;
	struct http1_header header;
	while (http1_next_header(&rest, &header))
		if (http1_is(header.name, name))
			return header.value;
	return (struct str){ 0 };
}
