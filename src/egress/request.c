/* Requests to a proxy, and in a tunnel. Strict: bytes that two parsers may read in two ways are
 * refused, because the upstream server has another parser. */
#include "egress/internal.h"

/* `tunnel`: the host and port of the tunnel that the request came in, or NULL. */
static int parse_target(struct str target, const struct forward_host *tunnel,
	struct forward_request *request, struct error *err)
{
	for (size_t i = 0; i < target.len; i++)
		if ((unsigned char)target.data[i] <= ' ' || (unsigned char)target.data[i] > '~' ||
			target.data[i] == '#')
			return fail(err, ERR_INVALID, "byte 0x%02x in the request line",
				(unsigned char)target.data[i]);
	if (request->is_connect)
		return network_authority_parse(target, 0, request->host, &request->port, err);
	bool is_origin = str_starts_with(target, "/") || str_is(target, "*");
	if (tunnel && is_origin) {
		str_copy(request->host, sizeof request->host, tunnel->host);
		request->port = tunnel->port;
		request->path = target;
		return 0;
	}
	if (target.len < 7 || strncasecmp(target.data, "http://", 7) != 0)
		return fail(
			err, ERR_INVALID, "this is a proxy: use CONNECT host:port or http://host/");
	struct str authority = { target.data + 7, target.len - 7 };
	const char *slash = authority.len ? memchr(authority.data, '/', authority.len) : NULL;
	request->path = STR("/");
	if (slash) {
		request->path = (struct str){ slash, (size_t)(target.data + target.len - slash) };
		authority.len -= request->path.len;
	}
	return network_authority_parse(authority, 80, request->host, &request->port, err);
}

static int parse_request_line(struct str line, const struct forward_host *tunnel,
	struct forward_request *request, struct error *err)
{
	struct str rest, target, version;
	if (!str_cut(line, ' ', &request->method, &rest) || !http1_is_token(request->method) ||
		!str_cut(rest, ' ', &target, &version))
		return fail(err, ERR_INVALID, "not a request line");
	request->is_old = str_is(version, "HTTP/1.0");
	if (!request->is_old && !str_is(version, "HTTP/1.1"))
		return fail(err, ERR_INVALID, "neither HTTP/1.1 nor HTTP/1.0");
	request->is_connect = str_is(request->method, "CONNECT");
	if (tunnel && request->is_connect)
		return fail(err, ERR_INVALID, "CONNECT in a tunnel");
	if (parse_target(target, tunnel, request, err) < 0)
		return -1;
	if (tunnel && (strcmp(request->host, tunnel->host) != 0 || request->port != tunnel->port))
		return fail(err, ERR_INVALID, "the request is for another host than the tunnel");
	return 0;
}

static int read_host(const struct http1_head *head, const struct forward_host *tunnel,
	const struct forward_request *request, struct error *err)
{
	struct str rest = head->headers;
	struct http1_header header;
	char host[HOST_SIZE];
	uint16_t port, usual = tunnel ? tunnel->port : request->is_connect ? 443 : 80;
	bool has_host = false;
	while (http1_next_header(&rest, &header)) {
		if (!http1_is(header.name, "host"))
			continue;
		if (has_host)
			return fail(err, ERR_INVALID, "several Host headers");
		has_host = true;
		if (network_authority_parse(header.value, usual, host, &port, err) < 0)
			return error_context(err, "the Host header");
		if (strcmp(host, request->host) != 0 || port != request->port)
			return fail(err, ERR_INVALID, "the Host header differs from the %s",
				tunnel ? "host of the tunnel" : "request line");
	}
	/* The line of an old request in absolute form says its host. */
	return has_host || (request->is_old && !tunnel) ? 0
							: fail(err, ERR_INVALID, "no Host header");
}

/* Whether a Connection header names other headers. */
static bool has_nominated(struct str headers)
{
	struct http1_header header;
	while (http1_next_header(&headers, &header)) {
		struct str rest = header.value, one;
		if (!http1_is(header.name, "connection"))
			continue;
		while (str_next(&rest, ',', &one))
			if (!http1_is(str_trim(one), "keep-alive") &&
				!http1_is(str_trim(one), "close"))
				return true;
	}
	return false;
}

static int egress_request_parse(struct str bytes, const struct forward_host *tunnel,
	struct forward_request *out, struct error *err)
{
	struct http1_head head;
	int status = http1_read_head(bytes, FORWARD_HEAD_MAX, &head, err);
	if (status <= 0)
		return status;
	struct forward_request request = { .head_len = head.len,
		.headers = head.headers,
		.has_length = head.has_length,
		.is_chunked = head.is_chunked,
		.body_bytes = head.length };
	if (parse_request_line(head.line, tunnel, &request, err) < 0 ||
		read_host(&head, tunnel, &request, err) < 0)
		return -1;
	if (request.is_chunked && request.is_old)
		return fail(err, ERR_INVALID, "HTTP/1.0 has no chunks");
	if (request.is_connect && (request.body_bytes || request.is_chunked))
		return fail(err, ERR_INVALID, "CONNECT with a body");
	request.keeps = !request.is_old &&
			!http1_headers_list(head.headers, "connection", STR("close")) &&
			!http1_headers_list(head.headers, "proxy-connection", STR("close"));
	request.is_upgrade = !request.is_old && !request.is_connect && !request.body_bytes &&
			     !request.is_chunked &&
			     http1_headers_list(head.headers, "connection", STR("upgrade")) &&
			     http1_headers_list(head.headers, "upgrade", STR("websocket"));
	request.has_nominated = has_nominated(head.headers);
	*out = request;
	return 1;
}

int forward_parse(struct str bytes, struct forward_request *out, struct error *err)
{
	return egress_request_parse(bytes, NULL, out, err);
}

int forward_parse_origin(struct str bytes, const char *host, uint16_t port,
	struct forward_request *out, struct error *err)
{
	const struct forward_host tunnel = { .host = host, .port = port };
	return egress_request_parse(bytes, &tunnel, out, err);
}

static bool is_left_out(const struct forward_request *request, struct str name)
{
	static const char *const names[] = { "Host", "Content-Length", "Transfer-Encoding",
		"Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", NULL };
	return http1_is_one_of(name, names) ||
	       (name.len >= 6 && !strncasecmp(name.data, "Proxy-", 6)) ||
	       (request->has_nominated && http1_headers_list(request->headers, "connection", name));
}

void forward_rewrite(const struct forward_request *request, struct buf *out)
{
	struct http1_header header;
	bool is_ipv6 = strchr(request->host, ':') != NULL;
	buf_append(out, request->method.data, request->method.len);
	buf_char(out, ' ');
	buf_append(out, request->path.data, request->path.len);
	buf_printf(out, " HTTP/1.%d\r\nHost: %s%s%s", request->is_old ? 0 : 1, is_ipv6 ? "[" : "",
		request->host, is_ipv6 ? "]" : "");
	if (request->port != 80)
		buf_printf(out, ":%u", request->port);
	buf_text(out, request->is_upgrade ? "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
		      : request->keeps	  ? "\r\n"
					  : "\r\nConnection: close\r\n");
	if (request->is_chunked)
		buf_text(out, "Transfer-Encoding: chunked\r\n");
	else if (request->has_length)
		buf_printf(
			out, "Content-Length: %llu\r\n", (unsigned long long)request->body_bytes);
	for (struct str rest = request->headers; http1_next_header(&rest, &header);)
		if (!is_left_out(request, header.name))
			http1_print_header(&header, out);
	buf_text(out, "\r\n");
}

void forward_body_start(struct forward_body *body, const struct forward_request *request)
{
	*body = (struct forward_body){ .is_chunked = request->is_chunked,
		.chunks = { .is_bare = true } };
	if (!body->is_chunked)
		body->left = request->body_bytes;
	body->is_done = !body->is_chunked && !body->left;
}

int forward_body_take(struct forward_body *body, struct str bytes, size_t *taken, struct error *err)
{
	size_t at = 0;
	if (!body->is_chunked) {
		at = bytes.len < body->left ? bytes.len : (size_t)body->left;
		body->left -= at;
		body->is_done = !body->left;
	}
	while (body->is_chunked && at < bytes.len && !body->is_done) {
		struct str data, rest = { bytes.data + at, bytes.len - at };
		size_t used;
		int status = http1_chunks_take(&body->chunks, rest, &used, &data, err);
		if (status < 0)
			return -1;
		at += used;
		body->is_done = status == 1;
	}
	*taken = at;
	return 0;
}
