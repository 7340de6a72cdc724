/* A workspace as data: names, labels, limits, how it is shown, and the store's document. */
#include <string.h>
#include "format/text/json_read.h"
#include "model/nouns/workspace.h"
#include "unit.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define CREATED 1771063200000 /* 2026-02-14T10:00:00Z */

static void a_name_is_letters_digits_and_dashes_and_no_id(void **state)
{
	static const char *const good[] = { "a", "0", "brave-lamp-4821", "a-", "a--b",
		"0123456789abcdefghij-", "0123456789abcdefghiz" };
	static const char *const bad[] = { "", "A", "a_b", "a.b", "..", "a/b", "a b", "a\n",
		"\xc3\xa9", "\xff", "0123456789abcdefghij", "-", "-a", "--help" };
	char text[WORKSPACE_NAME_MAX + 2];
	struct error err;

	for (size_t i = 0; i < COUNT(good); i++)
		assert_int_equal(workspace_check_name(good[i], &err), 0);
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(workspace_check_name(bad[i], &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	memset(text, 'a', sizeof text);
	text[WORKSPACE_NAME_MAX] = '\0';
	assert_int_equal(workspace_check_name(text, &err), 0);
	text[WORKSPACE_NAME_MAX] = 'a';
	text[WORKSPACE_NAME_MAX + 1] = '\0';
	assert_int_equal(workspace_check_name(text, &err), -1);
}

static void a_made_up_name_is_a_name_and_seldom_the_same(void **state)
{
	char names[64][WORKSPACE_NAME_MAX + 1];
	int same = 0;
	struct error err;

	for (size_t i = 0; i < COUNT(names); i++) {
		workspace_make_name(names[i]);
		assert_int_equal(workspace_check_name(names[i], &err), 0);
		size_t len = strlen(names[i]);
		assert_int_equal(strspn(names[i] + len - 4, "0123456789"), 4);
		assert_int_equal(names[i][len - 5], '-');
		for (size_t k = 0; k < i; k++)
			same += !strcmp(names[i], names[k]);
	}
	assert_in_range(same, 0, 1);
}

static void a_label_has_a_plain_key_and_any_text(void **state)
{
	static const char *const good[] = { "a", "app.kubernetes.io/name", "Z-9_", "0" };
	static const char *const bad[] = { "", ".a", "-a", "/a", "_a", "a b", "a=b", "\xc3\xa9",
		"a\n" };
	char value[WORKSPACE_LABEL_VALUE_MAX + 2], key[WORKSPACE_LABEL_KEY_MAX + 2];
	struct error err;

	for (size_t i = 0; i < COUNT(good); i++)
		assert_int_equal(workspace_check_label(good[i], "", &err), 0);
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(workspace_check_label(bad[i], "x", &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	assert_int_equal(workspace_check_label("k", "../\x01 \xe2\x82\xac", &err), 0);
	assert_int_equal(workspace_check_label("k", "\xff", &err), -1);
	memset(value, 'v', sizeof value);
	memset(key, 'k', sizeof key);
	value[WORKSPACE_LABEL_VALUE_MAX] = key[WORKSPACE_LABEL_KEY_MAX] = '\0';
	assert_int_equal(workspace_check_label(key, value, &err), 0);
	value[WORKSPACE_LABEL_VALUE_MAX] = 'v';
	value[WORKSPACE_LABEL_VALUE_MAX + 1] = '\0';
	assert_int_equal(workspace_check_label("k", value, &err), -1);
	key[WORKSPACE_LABEL_KEY_MAX] = 'k';
	key[WORKSPACE_LABEL_KEY_MAX + 1] = '\0';
	assert_int_equal(workspace_check_label(key, "", &err), -1);
}

static void the_labels_of_the_seeds_are_keys(void **state)
{
	struct error err;

	assert_int_equal(workspace_check_label(WORKSPACE_CONTEXT_LABEL, "ctx-abc 123/..", &err), 0);
	assert_int_equal(workspace_check_label("agent", "weather-service", &err), 0);
	assert_int_equal(workspace_check_label("namespace", "team1", &err), 0);
}

static void limits_that_were_not_given_get_their_defaults(void **state)
{
	struct limits limits = { .memory_bytes = 512 << 20, .timeout_ms = 5 };
	struct error err;

	assert_int_equal(limits_fill(&limits, &err), 0);
	assert_int_equal(limits.memory_bytes, 512 << 20);
	assert_int_equal(limits.disk_bytes, LIMIT_DISK_DEFAULT);
	assert_int_equal(limits.tmp_bytes, 256 << 20); /* counted as memory: half of it */
	assert_int_equal(limits.pids, LIMIT_PIDS_DEFAULT);
	assert_int_equal(limits.fds, LIMIT_FDS_DEFAULT);
	assert_int_equal(limits.timeout_ms, 5);
	assert_int_equal(limits.millicpus + limits.cpu_time_ms + limits.output_bytes, 0);
	limits = (struct limits){ 0 };
	assert_int_equal(limits_fill(&limits, &err), 0);
	assert_int_equal(limits.tmp_bytes, LIMIT_MEMORY_DEFAULT / 2);
}

static void limits_that_were_not_given_stay_as_they_are(void **state)
{
	struct limits limits = { .memory_bytes = 512 << 20, .timeout_ms = 5 };
	struct limits change = { .memory_bytes = 64 << 20, .pids = 7 };
	struct error err;

	assert_int_equal(limits_fill(&limits, &err), 0);
	assert_int_equal(limits_change(&limits, &change, &err), 0);
	assert_int_equal(limits.memory_bytes, 64 << 20);
	assert_int_equal(limits.tmp_bytes, 32 << 20);
	assert_int_equal(limits.pids, 7);
	assert_int_equal(limits.timeout_ms, 5);
	assert_int_equal(limits.disk_bytes, LIMIT_DISK_DEFAULT);
	change = (struct limits){ .pids = 8, .fds = 1 };
	assert_int_equal(limits_change(&limits, &change, &err), -1);
	assert_int_equal(limits.pids, 7);
}

static void a_limit_out_of_range_is_named_and_changes_nothing(void **state)
{
	struct limits bad[] = { { .memory_bytes = LIMIT_MEMORY_LEAST - 1 }, { .pids = 4194305 },
		{ .fds = 15 }, { .disk_bytes = 65535 }, { .tmp_bytes = UINT64_MAX },
		{ .millicpus = 9 }, { .timeout_ms = UINT64_MAX }, { .output_bytes = UINT64_MAX } };
	static const char *const names[] = { "memory_bytes", "pids", "fds", "disk_bytes",
		"tmp_bytes", "millicpus", "timeout_ms", "output_bytes" };

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct limits before = bad[i];
		struct error err;
		assert_int_equal(limits_fill(&bad[i], &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_non_null(strstr(err.text, names[i]));
		assert_memory_equal(&before, &bad[i], sizeof before);
	}
}

static struct workspace sample(struct arena *arena)
{
	struct workspace w = { .id = "0123456789abcdefghij",
		.name = "desk",
		.state = WORKSPACE_READY,
		.created_ms = CREATED,
		.last_used_ms = CREATED + 300123,
		.expires_ms = CREATED + 7 * 86400000ll,
		.ttl_ms = 7 * 86400000ull,
		.idle_timeout_ms = 1800000,
		.environments.of[ENV_KIND_PYTHON] = "x_no-deps",
		.python = "3.12",
		.requirements = "requests\n# \"quoted\"\n",
		.is_context = true,
		.disk_usage_bytes = 52428800,
		.disk_mechanism = "counted",
		.error = NULL };
	w.owner = (struct workspace_owner){
		.context_id = "ctx-abc123", .agent = "weather-service", .namespace = "team1"
	};
	vec_push(arena, &w.labels, (struct text_pair){ "team", "red-team" });
	vec_push(arena, &w.env, (struct text_pair){ "A", "" });
	vec_push(arena, &w.env, (struct text_pair){ "A", "again \x01\xe2\x82\xac" });
	vec_push(arena, &w.packages, "requests==2.32.3");
	w.limits.millicpus = 1500;
	assert_int_equal(limits_fill(&w.limits, NULL), 0);
	return w;
}

static void it_is_shown_exactly_as_the_contract_says(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct workspace w = sample(&arena);
	struct json j;

	buf_init(&out, BUF_MAX_DEFAULT);
	j = json_to(&out, false);
	const struct workspace_now now = { WORKSPACE_RUNNING, true, "cgroup-v2" };
	workspace_print(&j, NULL, &w, &now);
	json_finish(&j);
	assert_string_equal(out.data,
		"{\"id\":\"0123456789abcdefghij\",\"name\":\"desk\",\"state\":\"running\","
		"\"template\":null,\"created_at\":\"2026-02-14T10:00:00.000Z\","
		"\"last_used_at\":\"2026-02-14T10:05:00.123Z\","
		"\"expires_at\":\"2026-02-21T10:00:00.000Z\",\"idle_timeout_ms\":1800000,"
		"\"labels\":{\"context_id\":\"ctx-abc123\",\"agent\":\"weather-service\","
		"\"namespace\":\"team1\",\"team\":\"red-team\"},\"environment\":\"x_no-deps\","
		"\"env\":{\"A\":\"again \\u0001\xe2\x82\xac\"},"
		"\"limits\":{\"memory_bytes\":2147483648,\"disk_bytes\":1073741824,"
		"\"tmp_bytes\":1073741824,\"pids\":1024,\"fds\":1024,\"cpus\":1.5,"
		"\"cpu_time_ms\":null,\"timeout_ms\":null,\"output_bytes\":null,"
		"\"mechanism\":\"cgroup-v2\"},\"network\":{\"mode\":\"none\",\"allow\":[],"
		"\"deny\":[]},"
		"\"disk_usage_bytes\":52428800,\"disk_limit_mechanism\":\"counted\","
		"\"isolation\":\"native\",\"layers_active\":[\"namespaces\",\"own_root\","
		"\"capabilities\",\"no_new_privs\",\"landlock\",\"seccomp\",\"limits\"],"
		"\"warm\":true,\"ptrace\":false,\"view\":\"workspace\",\"snapshot\":null,\"error\":"
		"null}");
	buf_clear(&out);
	j = json_to(&out, false);
	w = (struct workspace){ .id = "0123456789abcdefghij", .name = "n", .error = "no space" };
	workspace_print(&j, NULL, &w, &(struct workspace_now){ 0 });
	assert_non_null(strstr(out.data, "\"state\":\"creating\""));
	assert_non_null(strstr(out.data,
		"\"expires_at\":null,\"idle_timeout_ms\":null,\"labels\":{},\"environment\":null"));
	assert_non_null(strstr(out.data, "\"cpus\":null"));
	assert_non_null(strstr(out.data, "\"warm\":false"));
	assert_non_null(strstr(out.data, "\"mechanism\":null}"));
	assert_non_null(strstr(out.data, "\"error\":\"no space\"}"));
}

static void variables_that_look_like_secrets_are_hidden(void **state)
{
	assert_true(workspace_variable_is_secret("GITHUB_TOKEN", ""));
	assert_true(workspace_variable_is_secret("db_password", "x"));
	assert_true(workspace_variable_is_secret("INDEX", "https://me:pw@host/simple"));
	assert_true(workspace_variable_is_secret("INDEX", "https://token@host"));
	assert_false(workspace_variable_is_secret("INDEX", "https://host/a@b"));
	assert_false(workspace_variable_is_secret("LANG", "C.UTF-8"));
}

static void the_context_file_is_the_seeds(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct workspace w = sample(&arena);

	buf_init(&out, BUF_MAX_DEFAULT);
	workspace_print_context(&w, &out);
	assert_string_equal(out.data, "{\n"
				      "  \"context_id\": \"ctx-abc123\",\n"
				      "  \"agent\": \"weather-service\",\n"
				      "  \"namespace\": \"team1\",\n"
				      "  \"created_at\": \"2026-02-14T10:00:00Z\",\n"
				      "  \"last_accessed_at\": \"2026-02-14T10:05:00Z\",\n"
				      "  \"ttl_days\": 7,\n"
				      "  \"disk_usage_bytes\": 52428800\n"
				      "}\n");
	buf_clear(&out);
	w.owner = (struct workspace_owner){ 0 };
	vec_push(&arena, &w.labels, (struct text_pair){ "agent", "of a label" });
	w.ttl_ms = 12 * 3600000;
	workspace_print_context(&w, &out);
	assert_non_null(strstr(out.data, "\"context_id\": \"desk\",\n  \"agent\": null,\n  "
					 "\"namespace\": null,\n"));
	assert_non_null(strstr(out.data, "\"ttl_days\": 0.5,"));
	buf_clear(&out);
	w.ttl_ms = 0;
	workspace_print_context(&w, &out);
	assert_non_null(strstr(out.data, "\"ttl_days\": null,"));
}

static void its_document_comes_back_as_it_was(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out, again;
	struct workspace w = sample(&arena), back = { .name = "kept", .created_ms = 5 };
	struct error err;

	buf_init(&out, BUF_MAX_DEFAULT);
	buf_init(&again, BUF_MAX_DEFAULT);
	w.limits.disk_bytes = UINT64_MAX; /* more than can be read: cut */
	record_print_kept(&workspace_record, &w, &out);
	assert_int_equal(record_read_kept(&workspace_record, (struct str){ out.data, out.len },
				 &arena, &back, &err),
		0);
	assert_string_equal(back.name, "kept"); /* not of the document */
	assert_int_equal(back.created_ms, 5);
	assert_int_equal(back.limits.disk_bytes, INT64_MAX);
	assert_int_equal(back.limits.millicpus, 1500);
	assert_int_equal(back.labels.count, 1);
	assert_string_equal(workspace_label(&back, "agent"), "weather-service");
	assert_null(workspace_label(&back, "nobody"));
	assert_int_equal(back.env.count, 2);
	assert_string_equal(back.env.items[1].key, "A");
	assert_string_equal(back.env.items[1].value, "again \x01\xe2\x82\xac");
	assert_int_equal(back.packages.count, 1);
	assert_string_equal(back.packages.items[0], "requests==2.32.3");
	assert_null(back.packages.items[1]);
	assert_string_equal(back.requirements, w.requirements);
	assert_string_equal(back.python, "3.12");
	assert_string_equal(back.environments.of[ENV_KIND_PYTHON], "x_no-deps");
	assert_string_equal(back.disk_mechanism, "counted");
	assert_null(back.error);
	assert_true(back.is_context);
	assert_int_equal(back.ttl_ms, w.ttl_ms);
	assert_int_equal(back.idle_timeout_ms, w.idle_timeout_ms);
	assert_int_equal(back.disk_usage_bytes, 52428800);
	record_print_kept(&workspace_record, &back, &again);
	assert_string_equal(out.data, again.data);
}

/* As carrel 0.1 before there were records wrote it. */
static void a_document_of_an_earlier_version_is_read(void **state)
{
	static const char text[] =
		"{\"ttl_ms\":86400000,\"idle_timeout_ms\":3600000,\"labels\":[[\"a\",\"b\"]],"
		"\"env\":[[\"A\",\"1\"]],\"limits\":{\"memory_bytes\":1073741824,"
		"\"disk_bytes\":1073741824,\"tmp_bytes\":536870912,\"pids\":1024,\"fds\":1024,"
		"\"millicpus\":500,\"cpu_time_ms\":0,\"timeout_ms\":0,\"output_bytes\":0},"
		"\"environment\":null,\"python\":null,\"requirements\":null,\"packages\":[],"
		"\"is_context\":false,\"disk_usage_bytes\":0,\"disk_mechanism\":\"counted\","
		"\"error\":null}";
	auto_arena struct arena arena = { 0 };
	struct workspace w = { 0 };
	struct error err;

	assert_int_equal(record_read_kept(&workspace_record, str_from(text), &arena, &w, &err), 0);
	assert_int_equal(w.limits.millicpus, 500);
	assert_int_equal(w.idle_timeout_ms, 3600000);
	assert_string_equal(w.disk_mechanism, "counted");
}

/* The document with `was` replaced by `is` is refused, and the error has `name` in it. */
static void check_damage(const char *text, const char *was, const char *is, const char *name)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf damaged;
	struct workspace w = { 0 };
	struct error err;
	const char *at = strstr(text, was);

	assert_non_null(at);
	buf_init(&damaged, BUF_MAX_DEFAULT);
	buf_append(&damaged, text, (size_t)(at - text));
	buf_text(&damaged, is);
	buf_text(&damaged, at + strlen(was));
	assert_int_equal(record_read_kept(&workspace_record,
				 (struct str){ damaged.data, damaged.len }, &arena, &w, &err),
		-1);
	assert_int_equal(err.code, ERR_CORRUPT);
	if (!strstr(err.text, name))
		fail_msg("'%s' not in: %s", name, err.text);
}

static void a_document_that_is_not_exactly_one_is_refused(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct workspace w = sample(&arena);

	buf_init(&out, BUF_MAX_DEFAULT);
	record_print_kept(&workspace_record, &w, &out);
	check_damage(out.data, "{\"ttl_ms\"", "{\"ttl\"", "ttl_ms");
	check_damage(out.data, "{\"ttl_ms\"", "{\"new\":1,\"ttl_ms\"", "unknown fields");
	check_damage(out.data, "604800000", "-1", "ttl_ms");
	check_damage(out.data, "604800000", "1.5", "ttl_ms");
	check_damage(out.data, "604800000", "99999999999999999999", "ttl_ms");
	check_damage(out.data, "604800000", "\"1\"", "ttl_ms");
	check_damage(out.data, "[\"team\",", "[", "labels");
	check_damage(out.data, "[\"team\",", "[\"team\",\"x\",", "labels");
	check_damage(out.data, "\"team\"", "7", "labels");
	check_damage(out.data, "red-team", "a\\u0000b", "labels");
	check_damage(out.data, "\"memory_bytes\"", "\"memory\"", "limits");
	check_damage(out.data, "\"fds\"", "\"x\":1,\"fds\"", "limits");
	check_damage(out.data, "\"x_no-deps\"", "false", "environment");
	check_damage(out.data, "true", "1", "is_context");
	check_damage(out.data, "[\"requests", "[null,\"requests", "packages");
	check_damage(out.data, "{", "[", "line 1");
	check_damage(out.data, "weather", "\xff", "line 1");
	check_damage("[]", "[]", "[]", "object");
	check_damage("x", "x", "", "line 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_letters_digits_and_dashes_and_no_id),
		cmocka_unit_test(a_made_up_name_is_a_name_and_seldom_the_same),
		cmocka_unit_test(a_label_has_a_plain_key_and_any_text),
		cmocka_unit_test(the_labels_of_the_seeds_are_keys),
		cmocka_unit_test(limits_that_were_not_given_get_their_defaults),
		cmocka_unit_test(limits_that_were_not_given_stay_as_they_are),
		cmocka_unit_test(a_limit_out_of_range_is_named_and_changes_nothing),
		cmocka_unit_test(it_is_shown_exactly_as_the_contract_says),
		cmocka_unit_test(variables_that_look_like_secrets_are_hidden),
		cmocka_unit_test(the_context_file_is_the_seeds),
		cmocka_unit_test(its_document_comes_back_as_it_was),
		cmocka_unit_test(a_document_of_an_earlier_version_is_read),
		cmocka_unit_test(a_document_that_is_not_exactly_one_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
