/* The table of routes: paths lead where they say, and /openapi.json says what is there. */
#include <string.h>
#include "doors/call.h"
#include "model/nouns/exec.h"
#include "model/operations/takes.h"
#include "unit.h"

/* ---- routes ---- */

static int find(const char *method, const char *path, struct call *c, const char **allow)
{
	static struct http_request r;
	struct error err;

	arena_done(&r.arena);
	r = (struct http_request){ .method = str_from(method), .path = str_from(path) };
	arena_init(&r.arena);
	*c = (struct call){ .r = &r, .door = door_of(&r) };
	return route_find(c, allow, &err);
}

static void paths_lead_to_their_routes(void **state)
{
	static const struct {
		const char *method, *path, *name, *id, *rest;
	} cases[] = {
		{ "GET", "/healthz", "healthz", NULL, NULL },
		{ "HEAD", "/healthz", "healthz", NULL, NULL },
		{ "POST", "/v1/workspaces", "createWorkspace", NULL, NULL },
		{ "GET", "/v1/workspaces/a", "getWorkspace", "a", NULL },
		{ "GET", "/v1/workspaces/a%2Fb%20c", "getWorkspace", "a/b c", NULL },
		{ "GET", "/v1/workspaces/execs", "getWorkspace", "execs", NULL },
		{ "POST", "/v1/workspaces/exec/exec", "exec", "exec", NULL },
		{ "GET", "/v1/workspaces/a/files", "readFile", "a", "" },
		{ "GET", "/v1/workspaces/a/files/", "readFile", "a", "" },
		{ "PUT", "/v1/workspaces/a/files/b/c%20d", "writeFile", "a", "b/c d" },
		{ "GET", "/v1/workspaces/a/files//workspace/x", "readFile", "a", "/workspace/x" },
		{ "GET", "/v1/execs/x/output", "getOutput", "x", NULL },
	};
	struct call c;
	const char *allow;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(find(cases[i].method, cases[i].path, &c, &allow), 0);
		assert_string_equal(c.operation->name, cases[i].name);
		assert_true(!c.id == !cases[i].id && !c.path == !cases[i].rest);
		if (c.id)
			assert_string_equal(c.id, cases[i].id);
		if (c.path)
			assert_string_equal(c.path, cases[i].rest);
	}
}

static void every_request_has_one_door(void **state)
{
	static const struct {
		const char *path, *door, *name;
	} cases[] = {
		{ "/a2a/helper", "a2a", "a2aRpc" },
		{ "/a2a/helper/", "a2a", "a2aRpc" },
		{ "/a2a/helper/message:send", "a2a", "a2a" },
		{ "/a2a/helper/message:send/", "a2a", "a2a" },
		{ "/v1/code", "rest", "runCode" },
		{ "/v1/workspaces/a2a/exec", "rest", "exec" },
	};
	struct call c;
	const char *allow;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(find("POST", cases[i].path, &c, &allow), 0);
		assert_string_equal(c.door->name, cases[i].door);
		assert_string_equal(c.operation->name, cases[i].name);
	}
	assert_int_equal(find("POST", "/a2a/", &c, &allow), 404);
	assert_int_equal(find("POST", "/a2a", &c, &allow), 404);
	assert_int_equal(find("GET", "/.well-known/agent-card.json/", &c, &allow), 0);
	assert_int_equal(find("POST", "/v1/code/", &c, &allow), 404);
}

static void other_paths_and_methods_are_refused(void **state)
{
	static const char *const paths[] = { "/", "", "/v1", "/v1/", "/healthz/", "//healthz",
		"/v1/workspaces/", "/v1/workspaces//exec", "/v1/workspaces/a/", "/v1/execs/x/",
		"/v1/workspaces/a/snapshotsx", "/v1/workspaces/a/filesx", "/v1/../healthz" };
	struct call c;
	const char *allow = NULL;

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_int_equal(find("GET", paths[i], &c, &allow), 404);
	assert_int_equal(find("GET", "/v1/workspaces/%zz", &c, &allow), 400);
	assert_int_equal(find("GET", "/v1/workspaces/%00", &c, &allow), 400);
	assert_int_equal(find("PUT", "/v1/workspaces", &c, &allow), 405);
	assert_string_equal(allow, "POST, GET, HEAD");
	assert_int_equal(find("HEAD", "/v1/workspaces/a/fork", &c, &allow), 405);
	assert_string_equal(allow, "POST");
}

/* ---- the document ---- */

static const struct json_value *document(struct arena *arena)
{
	auto_buf struct buf out;
	struct json_value *v = NULL;
	struct error err;

	buf_init(&out, BUF_MAX_DEFAULT);
	openapi_print(&out);
	assert_int_equal(json_read((struct str){ out.data, out.len }, arena, &v, &err), 0);
	return v;
}

static void check_references(const struct json_value *v, const struct json_value *top)
{
	const char *reference = json_member_text(v, "$ref");

	if (reference) {
		struct str rest = str_from(reference + 2), name;
		const struct json_value *at = top;

		assert_true(str_starts_with(str_from(reference), "#/"));
		while (at && str_next(&rest, '/', &name)) {
			char key[64];

			assert_true(str_format(key, sizeof key, "%.*s", (int)name.len, name.data));
			at = json_member(at, key);
		}
		if (!at)
			fail_msg("%s leads nowhere", reference);
	}
	for (const struct json_value *one = v->first; one; one = one->next)
		check_references(one, top);
}

static void the_document_has_every_route(void **state)
{
	auto_arena struct arena arena = { 0 };
	const struct json_value *top = document(&arena), *paths = json_member(top, "paths");

	for (const struct route *at = rest_door.routes(); at->operation; at++) {
		const struct operation *row = at->operation;
		bool is_any = !strcmp(row->method, "*");
		const char *word = is_any ? "POST" : row->method;
		char method[8] = "", name[64];

		for (size_t n = 0; word[n]; n++)
			method[n] = (char)(word[n] | 0x20);
		const struct json_value *operation =
			json_member(json_member(paths, row->path), method);

		str_format(name, sizeof name, "%s%s", row->name, is_any ? "Post" : "");
		assert_string_equal(json_member_text(operation, "operationId"), name);
		const struct json_value *responses = json_member(operation, "responses");
		for (const struct operation_answer *a = row->answers; a->status; a++) {
			char status[8];

			str_format(status, sizeof status, "%d", a->status);
			assert_non_null(json_member(responses, status));
		}
		assert_non_null(json_member(responses, "500"));
		assert_int_equal(json_member(operation, "requestBody") != NULL,
			row->takes || row->takes_type);
	}
}

static void the_document_refers_to_nothing_that_is_missing(void **state)
{
	auto_arena struct arena arena = { 0 };
	const struct json_value *top = document(&arena);

	check_references(top, top);
	assert_string_equal(json_member_text(top, "openapi"), "3.1.0");
}

static void names_of_operations_are_unique(void **state)
{
	const struct route *routes = rest_door.routes();

	for (size_t i = 0; routes[i].operation; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(
				routes[i].operation->name, routes[k].operation->name);
}

/* What reads needs no scope to change anything, and what changes needs one. */
static void operations_name_the_verb_that_they_call(void **state)
{
	for (const struct route *at = rest_door.routes(); at->operation; at++) {
		const struct operation *row = at->operation;
		bool is_bare = row->flags & ROUTE_BARE;

		assert_true(row->verb <= VERB_NONE && (is_bare || row->verb != VERB_NONE));
		if (row->verb == VERB_NONE)
			continue;
		unsigned scope = verb_table[row->verb].scope;
		if (strcmp(row->method, "GET"))
			assert_true(scope != SCOPE_READ || !strcmp(row->name, "verifySnapshot"));
	}
}

static void every_status_has_a_title(void **state)
{
	for (int code = 0; code < ERR_CODE_COUNT; code++)
		assert_string_not_equal(http_status_title(problem_status(code)), "Error");
	for (const struct route *at = rest_door.routes(); at->operation; at++)
		for (size_t k = 0; k < 8 && at->operation->errors[k]; k++)
			assert_string_not_equal(
				http_status_title(at->operation->errors[k]), "Error");
}

/* Everything that a schema is printed for: an object with `example`, or a text of a stream. */
static void check_content(const struct json_value *content, const char *name)
{
	for (const struct json_value *one = content ? content->first : NULL; one; one = one->next)
		if (json_member_text(json_member(one, "schema"), "$ref") &&
			!json_member(one, "example"))
			fail_msg("%s: %s has no example", name, one->key.data);
}

static void every_operation_has_texts_and_examples(void **state)
{
	auto_arena struct arena arena = { 0 };
	const struct json_value *top = document(&arena), *paths = json_member(top, "paths");

	for (const struct json_value *path = paths->first; path; path = path->next)
		for (const struct json_value *op = path->first; op; op = op->next) {
			const char *name = json_member_text(op, "operationId");

			assert_non_null(json_member_text(op, "description"));
			assert_int_equal(json_member(op, "tags")->count, 1);
			check_content(json_member(json_member(op, "requestBody"), "content"), name);
			const struct json_value *answer = json_member(op, "responses")->first;
			for (; answer; answer = answer->next)
				check_content(json_member(answer, "content"), name);
		}
}

static void every_code_of_an_error_is_in_the_schema(void **state)
{
	for (int code = ERR_INVALID; code < ERR_CODE_COUNT; code++) {
		const struct field_choice *choice = problem_codes;

		while (choice->name && strcmp(choice->name, error_code_name(code)) != 0)
			choice++;
		assert_non_null(choice->name);
	}
}

/* ---- bodies, by the rows that the routes have ---- */

static int read_body(const struct record *fields, const char *json, struct arena *arena, void *out,
	struct error *err)
{
	struct json_value *v = NULL;

	assert_int_equal(json_read(str_from(json), arena, &v, err), 0);
	return record_read(fields, v, arena, out, err);
}

static void bodies_are_refused_with_the_exact_reason(void **state)
{
	const struct {
		const struct record *fields;
		const char *json, *text;
	} cases[] = {
		{ &workspace_record, "{\"limits\":{\"memory\":\"12X\"}}",
			"limits.memory: '12X' is not a size; try 512M or 1G" },
		{ &workspace_record, "{\"limits\":{\"memory\":\"1M\"}}",
			"limits.memory: 1048576 bytes are not from 4.0M to 2.0E" },
		{ &workspace_record, "{\"template\":\"X\"}",
			"template: 'X' is not the name of a template" },
		{ &workspace_record, "{\"network\":{\"mode\":\"wide\"}}",
			"network.mode: unknown network mode 'wide': none, list or open" },
		{ &workspace_change_record, "{\"network\":{\"allow\":null}}",
			"network.allow: must be a list of texts, not null" },
		{ &workspace_record, "{\"labels\":{\"-x\":\"\"}}",
			"labels: '-x' is not the key of a label" },
		{ &workspace_record, "{\"env\":{\"A=B\":\"\"}}",
			"env: 'A=B' is not the name of a variable" },
		{ &exec_spec_record, "{}", "'argv' or 'command' is missing" },
		{ &exec_spec_record, "{\"argv\":[\"a\"],\"command\":\"b\"}",
			"'argv' and 'command' are both given" },
		{ &exec_spec_record, "{\"argv\":[\"\"]}", "argv[0]: may not be empty" },
		{ &exec_spec_record, "{\"argv\":[]}", "argv: may not be empty" },
		{ &exec_spec_record, "{\"argv\":[\"a\"],\"cwd\":\"\"}", "cwd: may not be empty" },
		{ &exec_spec_record, "{\"argv\":[\"a\"],\"timeout\":0}",
			"timeout: 0 seconds are not from 0.001 to 3.15576e+09" },
		{ &exec_spec_record, "{\"argv\":[\"a\"],\"user\":\"root\"}",
			"user: 'root' is not the sandbox's user, 'agent' (1000)" },
		{ &exec_spec_record, "{\"argv\":[\"a\"],\"stdin\":\"\",\"open_stdin\":true}",
			"'stdin' and 'open_stdin' are both given" },
		{ operation_find("signalExec")->takes, "{}", "'signal' is missing" },
	};
	auto_arena struct arena arena = { 0 };
	char out[1024];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err = { 0 };

		memset(out, 0, sizeof out);
		if (!read_body(cases[i].fields, cases[i].json, &arena, out, &err))
			fail_msg("%s was taken", cases[i].json);
		assert_string_equal(err.text, cases[i].text);
	}
}

static void signals_go_by_name_and_number(void **state)
{
	auto_arena struct arena arena = { 0 };
	const struct record *fields = operation_find("signalExec")->takes;
	struct signal_body body = { 0 };
	struct error err;

	assert_int_equal(read_body(fields, "{\"signal\":\"TERM\"}", &arena, &body, &err), 0);
	assert_int_equal(body.signal, 15);
	assert_int_equal(read_body(fields, "{\"signal\":\"SIGKILL\"}", &arena, &body, &err), 0);
	assert_int_equal(body.signal, 9);
	assert_int_equal(read_body(fields, "{\"signal\":2}", &arena, &body, &err), 0);
	assert_int_equal(body.signal, 2);
	assert_int_equal(read_body(fields, "{\"signal\":0}", &arena, &body, &err), -1);
	assert_int_equal(read_body(fields, "{\"signal\":-9}", &arena, &body, &err), -1);
}

/* ---- output as events ---- */

static void characters_are_not_split_between_events(void **state)
{
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
	auto_buf struct buf out;

	/* Wherever it is cut in two. */
	for (size_t cut = 0; cut < sizeof text; cut++) {
		struct sse_tail tail = { 0 };

		buf_init(&out, BUF_MAX_DEFAULT);
		sse_print_output(&out, "stdout", &tail, (struct str){ text, cut }, false);
		sse_print_output(&out, "stdout", &tail,
			(struct str){ text + cut, sizeof text - 1 - cut }, false);
		sse_print_output(&out, "stdout", &tail, STR(""), true);
		assert_null(strstr(out.data, "base64"));
		assert_null(strstr(out.data, "\xef\xbf\xbd"));
		if (cut < sizeof text - 1)
			buf_done(&out);
	}
}

static void bytes_that_are_no_text_come_as_base64(void **state)
{
	struct sse_tail tail = { 0 };
	auto_buf struct buf out;

	buf_init(&out, BUF_MAX_DEFAULT);
	sse_print_output(&out, "stderr", &tail, STR("\xff\xfe"), false);
	assert_string_equal(out.data,
		"event: stderr\ndata: "
		"{\"type\":\"stderr\",\"data\":\"//4=\",\"encoding\":\"base64\"}\n\n");
	buf_clear(&out);
	/* The beginning of a character that never ends. */
	sse_print_output(&out, "stdout", &tail, STR("\xe2\x82"), false);
	assert_int_equal(out.len, 0);
	sse_print_output(&out, "stdout", &tail, STR(""), true);
	assert_string_equal(out.data,
		"event: stdout\ndata: "
		"{\"type\":\"stdout\",\"data\":\"4oI=\",\"encoding\":\"base64\"}\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_lead_to_their_routes),
		cmocka_unit_test(every_request_has_one_door),
		cmocka_unit_test(other_paths_and_methods_are_refused),
		cmocka_unit_test(the_document_has_every_route),
		cmocka_unit_test(the_document_refers_to_nothing_that_is_missing),
		cmocka_unit_test(names_of_operations_are_unique),
		cmocka_unit_test(operations_name_the_verb_that_they_call),
		cmocka_unit_test(every_operation_has_texts_and_examples),
		cmocka_unit_test(every_code_of_an_error_is_in_the_schema),
		cmocka_unit_test(every_status_has_a_title),
		cmocka_unit_test(bodies_are_refused_with_the_exact_reason),
		cmocka_unit_test(signals_go_by_name_and_number),
		cmocka_unit_test(characters_are_not_split_between_events),
		cmocka_unit_test(bytes_that_are_no_text_come_as_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
