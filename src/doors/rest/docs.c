/* GET /docs: the reference for people, as one page without external resources. docs.html, which
 * this program carries, draws it from the document that is put into it. Its policy (CSP) allows its
 * own style and script by their hashes, and nothing else. */
#include "base/hash.h"
#include "doors/rest/handlers.h"

static const char page[] = {
#include "doors/rest/docs.inc"
	0
};
#define PLACE "@OPENAPI@"

/* What is between the two, which the page has; `last`: the last pair of them. */
static struct str between(const char *begin, const char *end, bool last)
{
	const char *at = strstr(page, begin);
	for (const char *next = at; last && next; next = strstr(next + 1, begin))
		at = next;
	at += strlen(begin);
	return (struct str){ at, (size_t)(strstr(at, end) - at) };
}

static void print_hash(struct buf *out, struct str text)
{
	auto_buf struct buf quoted = buf_empty(256);
	unsigned char digest[SHA256_LEN];
	struct json j = json_to(&quoted, false);
	struct sha256 hash;
	sha256_init(&hash);
	sha256_add(&hash, text.data, text.len);
	sha256_end(&hash, digest);
	json_base64(&j, NULL, digest, sizeof digest);
	buf_printf(out, "'sha256-%.*s'", (int)quoted.len - 2, quoted.data + 1);
}

static int api_docs(struct call *c, struct error *err)
{
	const struct buf *document = &c->api->openapi;
	const char *place = strstr(page, PLACE);
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT), headers = buf_empty(4096);
	buf_append(&out, page, (size_t)(place - page));
	/* No text of the document may end its element. */
	for (size_t at = 0, end; at < document->len; at = end) {
		for (end = at; end < document->len && document->data[end] != '<';)
			end++;
		buf_append(&out, document->data + at, end - at);
		if (end < document->len && ++end)
			buf_text(&out, "\\u003c");
	}
	buf_text(&out, place + strlen(PLACE));
	buf_text(&headers, "Content-Security-Policy: default-src 'none'; style-src ");
	print_hash(&headers, between("<style>", "</style>", false));
	buf_text(&headers, "; script-src ");
	print_hash(&headers, between("<script>", "</script>", true));
	buf_text(&headers, "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
			   "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
			   "Cache-Control: no-cache\r\n");
	call_respond(c, 200, "text/html; charset=utf-8",
		arena_bytes(&c->r->arena, headers.data, headers.len),
		(struct str){ out.data, out.len });
	return 0;
}

const struct handler docs_handlers[] = { { "docs", api_docs }, { 0 } };
