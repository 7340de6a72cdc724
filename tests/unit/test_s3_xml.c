/* format/http/s3_xml.c: answers of S3 servers. */
#include "format/http/s3_xml.h"

#include <string.h>
#include "base/buf.h"
#include "unit.h"

static struct arena arena;
static struct error err;

static int note(void *ctx, const char *path, struct str text, struct error *unused)
{
	buf_printf(ctx, "%s=%.*s\n", path, (int)text.len, text.data);
	return 0;
}

static void elements_come_with_their_path_and_text(void **state)
{
	auto_buf struct buf out = buf_empty(4096);
	struct str document =
		STR("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- c -->"
		    "<s:List "
		    "xmlns:s=\"http://s3/\"><Contents><Key>a&amp;b&#x41;&#228;</Key><Size>5</Size>"
		    "</Contents>\n <Empty/><Raw><![CDATA[<x>&]]></Raw></s:List>\n");
	assert_int_equal(s3_xml_walk(document, note, &out, &err), 0);
	assert_string_equal(out.data, "List/Contents/Key=a&bA\xc3\xa4\nList/Contents/Size=5\n"
				      "List/Contents=\nList/Empty=\nList/Raw=<x>&\nList=\n");
	assert_string_equal(s3_xml_find(document, "List/Contents/Size", &arena), "5");
	assert_null(s3_xml_find(document, "List/None", &arena));
}

static void damaged_documents_are_refused(void **state)
{
	static const char *const bad[] = { "", "text", "<a>", "<a></b>", "</a>", "<a/><b/>",
		"<a>&x;</a>", "<a>&amp</a>", "<a>&#0;</a>", "<a>&#xd800;</a>", "<a", "<>",
		"<a></a>x", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "<a><!-- </a>",
		"<a><![CDATA[</a>", "<a?></a>", "<a><b></a></b>" };
	auto_buf struct buf out = buf_empty(4096);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(s3_xml_walk(str_from(bad[i]), note, &out, &err), -1);
	buf_clear(&out);
	for (int i = 0; i < 20; i++)
		buf_text(&out, "<a>");
	auto_buf struct buf unused = buf_empty(4096);
	assert_int_equal(s3_xml_walk((struct str){ out.data, out.len }, note, &unused, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
}

static void escaped_text_comes_back(void **state)
{
	const char *text = "a<b>&\"'c";
	const char *document = arena_printf(&arena, "<a>%s</a>", s3_xml_escape(text, &arena));
	assert_string_equal(s3_xml_find(str_from(document), "a", &arena), text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_come_with_their_path_and_text),
		cmocka_unit_test(damaged_documents_are_refused),
		cmocka_unit_test(escaped_text_comes_back),
	};
	arena_init(&arena);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_done(&arena);
	return failed;
}
