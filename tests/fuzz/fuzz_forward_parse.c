/* Requests to the forwarder: a request that passes has a plain host, and what is sent for it parses
 * again as one request to the same host whose body ends where the first one's did. */
#include <string.h>
#include "egress/forward.h"
#include "fuzz.h"

static void check_host(const char *host)
{
	check(strlen(host) > 0 && strlen(host) < 254);
	for (; *host; host++)
		check((*host >= 'a' && *host <= 'z') || (*host >= '0' && *host <= '9') ||
			strchr("-_.:", *host));
}

static void check_rewritten(const struct forward_request *request)
{
	auto_buf struct buf out, again;
	struct forward_request parsed;
	struct error err;
	const char *line, *end;

	buf_init(&out, 2 * FORWARD_HEAD_MAX);
	buf_init(&again, 4 * FORWARD_HEAD_MAX);
	forward_rewrite(request, &out);
	check(!out.overflow && out.len > 4 && !memcmp(out.data + out.len - 4, "\r\n\r\n", 4));
	check(!memchr(out.data, '\0', out.len));
	/* Back in absolute form, it says the same. */
	line = strchr(out.data, ' ') + 1;
	end = strstr(out.data, "\r\nHost: ") + 8; /* a path may say "Host:", too */
	buf_append(&again, out.data, (size_t)(line - out.data));
	buf_text(&again, "http://");
	buf_append(&again, end, strcspn(end, "\r"));
	buf_text(&again, line);
	/* Our own headers may have made one too many. */
	if (forward_parse((struct str){ again.data, again.len }, &parsed, &err) != 1) {
		check(err.code == ERR_LIMIT);
		return;
	}
	check(parsed.head_len == again.len && !parsed.is_connect);
	check(!strcmp(parsed.host, request->host) && parsed.port == request->port);
	check(parsed.is_chunked == request->is_chunked && parsed.body_bytes == request->body_bytes);
	check(str_equal(parsed.method, request->method) && str_equal(parsed.path, request->path));
}

/* Whole or byte by byte, a body is the same. */
static void check_body(struct str bytes, const struct forward_request *request)
{
	struct forward_body whole, single;
	size_t taken = 0, total = 0;
	int status, one = 0;

	forward_body_start(&whole, request);
	forward_body_start(&single, request);
	status = forward_body_take(&whole, bytes, &taken, NULL);
	check(status < 0 || taken == bytes.len || whole.is_done);
	while (!one && total < bytes.len && !single.is_done) {
		size_t part = 0;
		one = forward_body_take(
			&single, (struct str){ bytes.data + total, 1 }, &part, NULL);
		check(one || part == 1);
		total += part;
	}
	check(one == status);
	check(status < 0 || (total == taken && single.is_done == whole.is_done));
}

/* A request in a tunnel that passes is for the tunnel's host; an answer is rewritten to one that
 * ends in the same place. */
static void check_tunnel(struct str bytes)
{
	struct forward_request request;
	struct forward_answer answer, again;
	auto_buf struct buf out = buf_empty(2 * FORWARD_ANSWER_MAX);

	if (forward_parse_origin(bytes, "a.example", 8080, &request, NULL) == 1) {
		check(!strcmp(request.host, "a.example") && request.port == 8080);
		check(!request.is_connect && request.head_len <= bytes.len);
	}
	if (forward_parse_answer(bytes, &answer, NULL) != 1)
		return;
	check(answer.status >= 100 && answer.status < 1000 && answer.head_len <= bytes.len);
	forward_rewrite_answer(&answer, false, &out);
	/* Our own header may have made one too many. */
	if (forward_parse_answer((struct str){ out.data, out.len }, &again, NULL) != 1)
		return;
	check(again.status == answer.status && again.head_len == out.len && !again.keeps);
	check(again.is_chunked == answer.is_chunked && again.length == answer.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	struct forward_request request;
	int status = forward_parse(bytes, &request, NULL);

	check_tunnel(bytes);
	check(status >= -1 && status <= 1);
	check(status != 0 || size < FORWARD_HEAD_MAX);
	if (status != 1)
		return 0;
	check(request.head_len <= size && request.head_len <= FORWARD_HEAD_MAX && request.port);
	check_host(request.host);
	if (request.is_connect)
		return 0;
	check(request.path.len && request.path.data[0] == '/');
	check_rewritten(&request);
	check_body(
		(struct str){ bytes.data + request.head_len, size - request.head_len }, &request);
	return 0;
}
