/* Rows that read JSON and queries: what is taken, and errors that name the member. */
#include "format/text/base64.h"
#include "model/records/record.h"
#include "record_example.h"
#include "unit.h"

static int read_json(const char *text, struct arena *arena, struct example *out, struct error *err)
{
	struct json_value *v = NULL;

	*out = (struct example){ 0 };
	assert_int_equal(json_read(str_from(text), arena, &v, err), 0);
	return record_read(&example, v, arena, out, err);
}

static void every_kind_is_read(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct example e;
	struct error err;

	assert_int_equal(
		read_json("{\"name\":\"ab-c\",\"input\":\"a\\u0000b\",\"count\":10,\"flag\":true,"
			  "\"memory\":\"512M\",\"wait\":\"1.5s\",\"cpus\":0.5,\"colour\":\"green\","
			  "\"sign\":9,\"words\":[\"x\",\"\"],\"labels\":{\"a\":\"1\",\"b\":null},"
			  "\"python\":{\"version\":\"3.12\",\"packages\":[\"requests\"]}}",
			&arena, &e, &err),
		0);
	assert_string_equal(e.name, "ab-c");
	assert_int_equal(e.input.len, 3);
	assert_int_equal(e.count, 10);
	assert_true(e.flag);
	assert_int_equal(e.memory, 512 << 20);
	assert_int_equal(e.wait_ms, 1500);
	assert_true(e.has_wait);
	assert_int_equal(e.cpus, 500);
	assert_int_equal(e.colour, 2);
	assert_int_equal(e.sign, 9);
	assert_int_equal(e.words.count, 2);
	assert_string_equal(e.words.items[1], "");
	assert_int_equal(e.labels.count, 2);
	assert_null(e.labels.items[1].value);
	assert_string_equal(e.python.version, "3.12");
	assert_string_equal(e.python.packages.items[0], "requests");
}

static void short_and_other_forms_are_read(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct example e;
	struct error err;

	assert_int_equal(
		read_json(
			"{\"name\":\"a\",\"input\":{\"base64\":\"/wA=\"},\"count\":5.0,"
			"\"memory\":8388608,\"wait_ms\":20,\"cpus\":\"1.25\",\"sign\":\"SIGTERM\","
			"\"python\":\"3.11\",\"colour\":null,\"words\":null,\"template\":null}",
			&arena, &e, &err),
		0);
	assert_int_equal(e.input.len, 2);
	assert_memory_equal(e.input.data, "\xff", 2);
	assert_int_equal(e.count, 5);
	assert_int_equal(e.memory, 8 << 20);
	assert_int_equal(e.wait_ms, 20);
	assert_int_equal(e.cpus, 1250);
	assert_int_equal(e.sign, 15);
	assert_string_equal(e.python.version, "3.11");
	assert_int_equal(read_json("{\"name\":\"a\",\"memory_bytes\":8388608,\"sign\":64,"
				   "\"note\":\"x\"}",
				 &arena, &e, &err),
		0);
	assert_int_equal(e.memory, 8 << 20);
	assert_int_equal(e.sign, 64);
	assert_int_equal(read_json("{\"name\":\"a\",\"wait\":null}", &arena, &e, &err), 0);
	assert_true(e.has_wait);
	assert_int_equal(e.wait_ms, 0);
}

static void errors_name_the_member(void **state)
{
	static const struct {
		const char *json, *text, *hint;
	} cases[] = {
		{ "[]", "must be an object, not a list", "" },
		{ "{}", "'name' is missing", "" },
		{ "{\"name\":null}", "name: must be text, not null", "" },
		{ "{\"name\":\"\"}", "name: may not be empty", "" },
		{ "{\"name\":\"abcdefghi\"}", "name: has 9 characters, 8 is the maximum", "" },
		{ "{\"name\":\"A\"}", "name: 'A' is not a name", "" },
		{ "{\"name\":\"a\\u0000\"}", "name: may not hold a NUL character", "" },
		{ "{\"nam\":\"a\"}", "unknown member 'nam'", "did you mean 'name'?" },
		{ "{\"name\":\"a\",\"input\":5}", "input: must be text, or {\"base64\": text}",
			"" },
		{ "{\"name\":\"a\",\"input\":{\"base64\":\"a\"}}", "input.base64: is not base64",
			"" },
		{ "{\"name\":\"a\",\"count\":0}", "count: 0 is not from 1 to 10", "" },
		{ "{\"name\":\"a\",\"count\":-1}", "count: -1 is negative", "" },
		{ "{\"name\":\"a\",\"count\":1.5}", "count: must be a whole number, not a number",
			"" },
		{ "{\"name\":\"a\",\"count\":\"1\"}", "count: must be a whole number, not text",
			"" },
		{ "{\"name\":\"a\",\"flag\":1}", "flag: must be true or false, not a number", "" },
		{ "{\"name\":\"a\",\"memory\":\"12X\"}",
			"memory: '12X' is not a size; try 512M or 1G", "" },
		{ "{\"name\":\"a\",\"memory\":5}", "memory: 5 bytes are not from 4.0M to 8.0E",
			"" },
		{ "{\"name\":\"a\",\"wait\":61}", "wait: 61 seconds are not from 0.001 to 60", "" },
		{ "{\"name\":\"a\",\"wait\":0.0001}",
			"wait: 0.0001 seconds are not from 0.001 to 60", "" },
		{ "{\"name\":\"a\",\"wait\":true}",
			"wait: must be a duration: seconds as a number, or text such as \"30s\", "
			"not a boolean",
			"" },
		{ "{\"name\":\"a\",\"wait\":\"2m\"}", "wait: 120000 ms is not from 1 to 60000",
			"" },
		{ "{\"name\":\"a\",\"wait\":\"2s\",\"wait_ms\":2}",
			"'wait' and 'wait_ms' are both given", "" },
		{ "{\"name\":\"a\",\"cpus\":0}",
			"cpus: 0 is not a number of CPUs from 0.01 to 4096", "" },
		{ "{\"name\":\"a\",\"colour\":\"blue\"}", "colour: 'blue' is not one of red, green",
			"" },
		{ "{\"name\":\"a\",\"colour\":2}",
			"colour: must be one of red, green, not a number", "" },
		{ "{\"name\":\"a\",\"sign\":65}", "sign: 65 is not a whole number from 1 to 64",
			"" },
		{ "{\"name\":\"a\",\"memory\":\"8M\",\"memory_bytes\":8388608}",
			"'memory' and 'memory_bytes' are both given", "" },
		{ "{\"name\":\"a\",\"memory_bytes\":\"8M\"}",
			"memory_bytes: must be bytes as a whole number, not text", "" },
		{ "{\"name\":\"a\",\"note\":3}", "note: must be text, not a number", "" },
		{ "{\"name\":\"a\",\"words\":[]}", "words: may not be empty", "" },
		{ "{\"name\":\"a\",\"words\":[\"x\",2]}", "words[1]: must be text, not a number",
			"" },
		{ "{\"name\":\"a\",\"words\":[\"\",\"\",\"\",\"\"]}",
			"words: has 4 items, 3 is the maximum", "" },
		{ "{\"name\":\"a\",\"labels\":{\"k\":5}}", "labels.k: must be text, not a number",
			"" },
		{ "{\"name\":\"a\",\"labels\":{\"\":\"\"}}", "labels: a label may not be empty",
			"" },
		{ "{\"name\":\"a\",\"python\":3.12}",
			"python: must be text or an object, not a number", "" },
		{ "{\"name\":\"a\",\"python\":\"\"}", "python: may not be empty", "" },
		{ "{\"name\":\"a\",\"python\":{\"zzz\":1}}", "python: unknown member 'zzz'",
			"known: version, packages" },
		{ "{\"name\":\"a\",\"python\":{\"packages\":[1]}}",
			"python.packages[0]: must be text, not a number", "" },
		{ "{\"name\":\"a\",\"template\":\"t\"}", "template: not available in this version",
			"leave the field out" },
	};
	auto_arena struct arena arena = { 0 };
	struct example e;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err = { 0 };

		if (!read_json(cases[i].json, &arena, &e, &err))
			fail_msg("%s was taken", cases[i].json);
		assert_string_equal(err.text, cases[i].text);
		assert_string_equal(err.hint, cases[i].hint);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static int read_query(const char *text, struct arena *arena, struct example *out, struct error *err)
{
	struct str rest = str_from(text), piece;
	struct record_parameter parameters[8];
	size_t count = 0;

	*out = (struct example){ 0 };
	while (str_next(&rest, '&', &piece)) {
		struct str name, value;

		str_cut(piece, '=', &name, &value);
		parameters[count].name =
			(struct str){ arena_bytes(arena, name.data, name.len), name.len };
		parameters[count++].value =
			(struct str){ value.len ? arena_bytes(arena, value.data, value.len) : "",
				value.len };
	}
	return record_read_query(&example, parameters, count, arena, out, err);
}

static void queries_are_read_by_the_same_rows(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct example e;
	struct error err;

	assert_int_equal(
		read_query("name=ab&flag&count=7&words=x&words=y&memory=1G&wait=5s&colour=red",
			&arena, &e, &err),
		0);
	assert_true(e.flag);
	assert_int_equal(e.count, 7);
	assert_int_equal(e.words.count, 2);
	assert_string_equal(e.words.items[1], "y");
	assert_int_equal(e.memory, 1 << 30);
	assert_int_equal(e.wait_ms, 5000);
	assert_int_equal(e.colour, 1);
	assert_int_equal(read_query("name=ab&flag=false", &arena, &e, &err), 0);
	assert_false(e.flag);
	assert_int_equal(read_query("name=a&name=b", &arena, &e, &err), -1);
	assert_string_equal(err.text, "query parameter 'name' is given twice");
	assert_int_equal(read_query("name=a&flag=yes", &arena, &e, &err), -1);
	assert_string_equal(err.text, "flag: must be true or false, not text");
	assert_int_equal(read_query("name=a&count=-1", &arena, &e, &err), -1);
	assert_int_equal(read_query("name=a&cuont=1", &arena, &e, &err), -1);
	assert_string_equal(err.text, "unknown query parameter 'cuont'");
	assert_string_equal(err.hint, "did you mean 'count'?");
}

static void the_schema_says_what_is_read(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct json_value *v = NULL;
	struct error err;
	struct json j;

	buf_init(&out, BUF_MAX_DEFAULT);
	j = json_to(&out, false);
	record_print_schema(&j, NULL, &example, FIELD_IN);
	json_finish(&j);
	assert_int_equal(json_read((struct str){ out.data, out.len }, &arena, &v, &err), 0);
	assert_non_null(
		strstr(out.data, "\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8,"
				 "\"pattern\":\"^[a-z-]+$\",\"description\":\"its name\"}"));
	assert_non_null(strstr(out.data,
		"\"count\":{\"type\":[\"integer\",\"null\"],\"minimum\":1,\"maximum\":10}"));
	assert_non_null(strstr(out.data, "\"wait_ms\":{\"type\":[\"integer\",\"null\"]"));
	assert_non_null(strstr(out.data,
		"\"sign\":{\"anyOf\":[{\"type\":[\"string\",\"null\"],\"enum\":[\"TERM\","
		"\"SIGTERM\","
		"\"KILL\",null]},{\"type\":\"integer\",\"minimum\":1,\"maximum\":64}]}"));
	assert_non_null(strstr(out.data, "\"required\":[\"name\"]"));
	assert_non_null(strstr(out.data, "\"not\":{\"required\":[\"wait\",\"wait_ms\"]}"));
	assert_non_null(strstr(out.data, "\"$ref\":\"#/components/schemas/Inner\""));
	assert_non_null(strstr(out.data, "\"additionalProperties\":false}"));
	for (size_t i = 0; i < example.count; i++)
		assert_non_null(json_member(json_member(v, "properties"), example.rows[i].name));
}

static void base64_is_taken_only_as_it_is_written(void **state)
{
	static const char *const refused[] = { "A", "AA", "AAA", "AB==", "AAB=", "=AAA",
		"A===", "AA=A", "AA\n=", "AA==AA==", "A-_A", "====" };
	auto_arena struct arena arena = { 0 };
	struct str bytes;

	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		assert_false(base64_decode(str_from(refused[i]), &arena, &bytes));
	assert_true(base64_decode(str_from(""), &arena, &bytes));
	assert_int_equal(bytes.len, 0);
	assert_true(base64_decode(str_from("Zm9vYmE="), &arena, &bytes));
	assert_string_equal(bytes.data, "fooba");
	assert_true(base64_decode(str_from("Zm9vYg=="), &arena, &bytes));
	assert_string_equal(bytes.data, "foob");
	assert_true(base64_decode(str_from("Zm9vYmFy"), &arena, &bytes));
	assert_string_equal(bytes.data, "foobar");
}

/* ---- one table, three uses ---- */

struct noun {
	const char *name;
	uint64_t size, cpus, later, wait_ms;
	int64_t born_ms;
	bool has_wait;
	text_list words;
	pair_list labels;
};
#define NOUN(member) offsetof(struct noun, member)
static const struct field noun_rows[] = {
	{ "name", FIELD_TEXT, NOUN(name), NULL, FIELD_USES, .kept = "called" },
	{ "size", FIELD_SIZE, NOUN(size), NULL, FIELD_USES | FIELD_NULLABLE },
	{ "cpus", FIELD_CPUS, NOUN(cpus), NULL, FIELD_USES },
	{ "wait", FIELD_DURATION, NOUN(wait_ms), NULL, FIELD_OUT | FIELD_NULLABLE,
		.has = FIELD_HAS(struct noun, has_wait) },
	{ "born_at", FIELD_TIME, NOUN(born_ms), NULL, FIELD_OUT },
	{ "labels", FIELD_PAIRS, NOUN(labels), NULL, FIELD_USES },
	{ "words", FIELD_TEXTS, NOUN(words), NULL, FIELD_KEPT | FIELD_LATER },
	{ "pre", FIELD_BOOLEAN, NOUN(words), NULL, FIELD_IN, .word = "--pre" },
	{ "line", FIELD_TEXTS, NOUN(words), NULL, FIELD_IN, .word = "--line=" },
	{ "later", FIELD_INTEGER, NOUN(later), NULL, FIELD_KEPT | FIELD_LATER, .fallback = 7 },
};
static const struct record noun = { "Noun", NULL, RECORD_ROWS(noun_rows) };

static void each_use_has_its_own_names(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct noun n = { .name = "n", .size = 1024, .cpus = 1500, .later = 7 };
	struct json j;

	buf_init(&out, BUF_MAX_DEFAULT);
	vec_push(&arena, &n.labels, (struct text_pair){ "a", "b" });
	j = json_to(&out, false);
	record_print(&j, NULL, &noun, &n);
	assert_string_equal(out.data, "{\"name\":\"n\",\"size_bytes\":1024,\"cpus\":1.5,"
				      "\"wait_ms\":null,\"born_at\":null,"
				      "\"labels\":{\"a\":\"b\"}}");
	buf_clear(&out);
	record_print_kept(&noun, &n, &out);
	assert_string_equal(out.data, "{\"called\":\"n\",\"size_bytes\":1024,"
				      "\"millicpus\":1500,\"labels\":[[\"a\",\"b\"]],"
				      "\"later\":7}");
	buf_clear(&out);
	j = json_to(&out, false);
	n.cpus = 0;
	record_print_given(&j, NULL, &noun, &n);
	assert_string_equal(
		out.data, "{\"name\":\"n\",\"size_bytes\":1024,\"labels\":{\"a\":\"b\"}}");
}

static void what_is_kept_can_outlive_its_source(void **state)
{
	auto_arena struct arena arena = { 0 };
	char text[] = "text";
	const char *words[] = { text };
	struct text_pair pair = { "key", text };
	struct noun n = { .name = text, .words = { words, 1, 1 }, .labels = { &pair, 1, 1 } };

	record_copy_texts(&noun, &arena, &n);
	text[0] = '?';
	assert_string_equal(n.name, "text");
	assert_string_equal(n.words.items[0], "text");
	assert_string_equal(n.labels.items[0].value, "text");
	n = (struct noun){ 0 };
	record_copy_texts(&noun, &arena, &n);
	assert_null(n.name);
	assert_int_equal(n.labels.count, 0);
}

static void a_field_that_came_later_gets_its_fallback(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct noun n = { 0 };
	struct error err;

	assert_int_equal(record_read_kept(&noun,
				 STR("{\"called\":null,\"size_bytes\":0,\"millicpus\":0,"
				     "\"labels\":[]}"),
				 &arena, &n, &err),
		0);
	assert_int_equal(n.later, 7);
	assert_int_equal(record_read_kept(&noun, STR("{\"called\":null}"), &arena, &n, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
}

static void a_client_may_send_only_what_is_its_to_send(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *v = NULL;
	struct noun n = { 0 };
	struct error err;

	assert_int_equal(
		json_read(STR("{\"pre\":true,\"line\":[\"x\",\"y\"]}"), &arena, &v, &err), 0);
	assert_int_equal(record_read(&noun, v, &arena, &n, &err), 0);
	assert_int_equal(n.words.count, 3);
	assert_string_equal(n.words.items[0], "--pre");
	assert_string_equal(n.words.items[2], "--line=y");
	assert_int_equal(json_read(STR("{\"wait\":\"1s\"}"), &arena, &v, &err), 0);
	assert_int_equal(record_read(&noun, v, &arena, &n, &err), -1);
	assert_string_equal(err.text, "unknown member 'wait'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_read),
		cmocka_unit_test(each_use_has_its_own_names),
		cmocka_unit_test(what_is_kept_can_outlive_its_source),
		cmocka_unit_test(a_field_that_came_later_gets_its_fallback),
		cmocka_unit_test(a_client_may_send_only_what_is_its_to_send),
		cmocka_unit_test(short_and_other_forms_are_read),
		cmocka_unit_test(errors_name_the_member),
		cmocka_unit_test(queries_are_read_by_the_same_rows),
		cmocka_unit_test(the_schema_says_what_is_read),
		cmocka_unit_test(base64_is_taken_only_as_it_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
