/* Answers of S3 servers: what is reported lies in the document's bounds, and what is escaped comes
 * back. */
#include <string.h>
#include "format/http/s3_xml.h"
#include "fuzz.h"

static int note(void *ctx, const char *path, struct str text, struct error *err)
{
	size_t *count = ctx;
	check(path[0] && strlen(path) < S3_XML_PATH_MAX);
	check(text.len <= S3_XML_TEXT_MAX && !memchr(text.data, 0, text.len));
	++*count;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	auto_arena struct arena arena;
	struct error err;
	size_t count = 0;

	arena_init(&arena);
	if (s3_xml_walk(text, note, &count, &err) == 0)
		check(count > 0 && count <= size);
	else
		check(err.code == ERR_CORRUPT || err.code == ERR_LIMIT);
	if (size <= 512 && !memchr(data, 0, size)) {
		const char *plain = arena_bytes(&arena, text.data, text.len);
		const char *document =
			arena_printf(&arena, "<a>%s</a>", s3_xml_escape(plain, &arena));
		const char *back = s3_xml_find(str_from(document), "a", &arena);
		check(back && !strcmp(back, plain));
	}
	return 0;
}
