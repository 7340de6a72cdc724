/* Answers of upstream servers: where they end, and what of their heads goes to the client. */
#include "egress/internal.h"

int forward_parse_answer(struct str bytes, struct forward_answer *out, struct error *err)
{
	struct http1_head head;
	struct http1_header header;
	int status = http1_read_head(bytes, FORWARD_ANSWER_MAX, &head, err);
	uint64_t code;
	if (status <= 0)
		return status;
	bool is_old = str_starts_with(head.line, "HTTP/1.0 ");
	if ((!is_old && !str_starts_with(head.line, "HTTP/1.1 ")) || head.line.len < 12 ||
		(head.line.len > 12 && head.line.data[12] != ' ') ||
		!str_to_u64((struct str){ head.line.data + 9, 3 }, &code) || code < 100)
		return fail(err, ERR_INVALID, "not a status line");
	struct forward_answer answer = { .status = (unsigned)code,
		.head_len = head.len,
		.line = head.line,
		.headers = head.headers,
		.is_old = is_old,
		.keeps = !is_old,
		.is_chunked = head.is_chunked,
		.has_length = head.has_length,
		.length = head.length };
	for (struct str rest = head.headers; http1_next_header(&rest, &header);)
		if (http1_is(header.name, "connection")) {
			if (http1_lists(header.value, STR("close")))
				answer.keeps = false;
			else if (is_old && http1_lists(header.value, STR("keep-alive")))
				answer.keeps = true;
		}
	*out = answer;
	return 1;
}

static bool is_left_out(struct str name, unsigned status)
{
	static const char *const names[] = { "Connection", "Keep-Alive", "Proxy-Connection",
		"Upgrade", NULL };
	return status != 101 && http1_is_one_of(name, names);
}

void forward_rewrite_answer(const struct forward_answer *answer, bool keeps, struct buf *out)
{
	struct http1_header header;
	buf_append(out, answer->line.data, answer->line.len);
	buf_text(out, "\r\n");
	/* A client takes the end of an answer of HTTP/1.0 for the end of the connection, unless it
	 * is told otherwise. */
	if (!keeps)
		buf_text(out, "Connection: close\r\n");
	else if (answer->is_old)
		buf_text(out, "Connection: keep-alive\r\n");
	for (struct str rest = answer->headers; http1_next_header(&rest, &header);)
		if (!is_left_out(header.name, answer->status))
			http1_print_header(&header, out);
	buf_text(out, "\r\n");
}

void forward_answer_body(
	struct forward_body *body, const struct forward_answer *answer, bool is_empty)
{
	*body = (struct forward_body){ .is_chunked = answer->is_chunked && !is_empty };
	if (!is_empty && answer->has_length)
		body->left = answer->length;
	body->is_done = !body->is_chunked && !body->left;
}
