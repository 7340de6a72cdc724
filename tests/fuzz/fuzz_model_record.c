/* Rows over JSON: an error that says what is wrong, or values as the rows allow them. */
#include <string.h>
#include "format/text/base64.h"
#include "../unit/record_example.h"
#include "fuzz.h"

static void check_text(const char *text)
{
	if (text)
		check(str_utf8_prefix(text, strlen(text)) == strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct str text = { (const char *)data, size }, bytes;
	struct json_value *v = NULL;
	struct example e = { 0 };
	struct error err = { 0 };

	base64_decode(text, &arena, &bytes);
	struct record_parameter parameter = { STR("name"),
		{ arena_bytes(&arena, text.data ? text.data : "", size), size } };
	record_read_query(&example, &parameter, 1, &arena, &e, &err);
	if (json_read(text, &arena, &v, &err))
		return 0;
	e = (struct example){ 0 };
	if (record_read(&example, v, &arena, &e, &err)) {
		check(err.code == ERR_INVALID && err.text[0]);
		return 0;
	}
	check(e.name && strlen(e.name) >= 1 && strlen(e.name) <= 8);
	check(e.count <= 10 && e.wait_ms <= 60000 && e.cpus <= 4096000);
	check(e.memory == 0 || e.memory >= 4 << 20);
	check(e.words.count <= 3 && e.labels.count <= 2 && e.python.packages.count <= 3);
	for (size_t i = 0; i < e.words.count; i++)
		check_text(e.words.items[i]);
	check_text(e.python.version);
	return 0;
}
