/* What happens to environments, line by line: the seed's names and fields. */
#include "envs/events.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "unit.h"

struct fixture {
	char base[64], path[80];
	struct arena arena;
	struct home home;
	struct events events;
	int from; /* what the sink got */
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct error err;
	int ends[2];
	str_copy(f->base, sizeof f->base, "/tmp/carrel-test-events-XXXXXX");
	if (!mkdtemp(f->base) || pipe(ends))
		return -1;
	chmod(f->base, 0755);
	str_format(f->path, sizeof f->path, "%s/home", f->base);
	arena_init(&f->arena);
	if (home_open(f->path, &f->arena, &f->home, &err))
		return -1;
	f->events = (struct events){ &f->home, ends[1] };
	f->from = ends[0];
	*state = f;
	return 0;
}

static int remove_base(const char *base)
{
	struct error err;
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return path_remove_tree(tmp, path_basename(base), &err);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	home_done(&f->home);
	arena_done(&f->arena);
	close(f->from);
	close(f->events.sink);
	int failed = remove_base(f->base);
	free(f);
	return failed;
}

/* The lines so far without their times, which must be there. */
static void assert_lines(struct fixture *f, const char *expected)
{
	char text[65536];
	auto_buf struct buf lines;
	ssize_t len = read(f->from, text, sizeof text);
	struct str rest = { text, (size_t)len }, line;
	buf_init(&lines, 65536);
	assert_true(len > 0);
	while (str_next(&rest, '\n', &line)) {
		static const char shape[] = ",\"time\":\"2026-11-15T04:50:52.123Z\"}";
		assert_true(line.len > sizeof shape);
		const char *end = line.data + line.len - sizeof shape + 1;
		assert_int_equal(strncmp(end, ",\"time\":\"", 9), 0);
		buf_append(&lines, line.data, (size_t)(end - line.data));
		buf_text(&lines, "}\n");
	}
	assert_string_equal(lines.data, expected);
}

static struct env_meta example(struct fixture *f)
{
	struct env_meta meta = { .name = "vivid-commenter@1.0.0_a3f5b8c",
		.package_id = "vivid-commenter@1.0.0",
		.requirements_sha256 = "a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9",
		.last_used_at = "2025-09-30T12:00:00.000Z" };
	vec_push(&f->arena, &meta.packages, (struct text_pair){ "grpcio", "1.73.1" });
	vec_push(&f->arena, &meta.packages, (struct text_pair){ "fastapi", "0.109.0" });
	vec_push(&f->arena, &meta.indexes, "https://***@index.example/simple");
	return meta;
}

static void every_event_has_the_fields_of_the_seed(void **state)
{
	struct fixture *f = *state;
	struct env_meta meta = example(f);
	events_creating(&f->events, &meta);
	events_installing(&f->events, meta.name, "/x/requirements.txt");
	events_installed(&f->events, &meta, 45.2);
	events_reused(&f->events, &meta, 2.5);
	events_evicted(&f->events, &meta, "lru_eviction");
	events_status(&f->events, "Removing venv", meta.name);
	assert_lines(f, "{\"event\":\"Creating virtual environment\","
			"\"venv\":\"vivid-commenter@1.0.0_a3f5b8c\","
			"\"package_id\":\"vivid-commenter@1.0.0\","
			"\"requirements_sha256\":\"a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9\","
			"\"level\":\"info\"}\n"
			"{\"event\":\"Installing dependencies\","
			"\"venv\":\"vivid-commenter@1.0.0_a3f5b8c\","
			"\"requirements_file\":\"/x/requirements.txt\",\"level\":\"info\"}\n"
			"{\"event\":\"Dependencies installed successfully\","
			"\"venv\":\"vivid-commenter@1.0.0_a3f5b8c\",\"duration_seconds\":45.2,"
			"\"installed_packages\":[\"grpcio==1.73.1\",\"fastapi==0.109.0\"],"
			"\"indexes\":[\"https://***@index.example/simple\"],\"level\":\"info\"}\n"
			"{\"event\":\"Reusing existing venv\","
			"\"venv\":\"vivid-commenter@1.0.0_a3f5b8c\",\"age_hours\":2.5,"
			"\"level\":\"info\"}\n"
			"{\"event\":\"Evicting venv\","
			"\"venv\":\"vivid-commenter@1.0.0_a3f5b8c\","
			"\"reason\":\"lru_eviction\",\"last_used\":\"2025-09-30T12:00:00.000Z\","
			"\"level\":\"info\"}\n"
			"{\"event\":\"Removing venv\",\"venv\":\"vivid-commenter@1.0.0_a3f5b8c\","
			"\"level\":\"info\"}\n");
}

static void statuses_and_failures_are_events_too(void **state)
{
	struct fixture *f = *state;
	struct error why;
	fail_hint(&why, ERR_NOT_FOUND, "look \"there\"", "no package 'x'");
	events_status(&f->events, "resolving", "a_1234567");
	events_progress(&f->events, "installing_deps", "a_1234567", 3, 14, 1048576, 524288.5);
	events_failed(&f->events, "a_1234567", "not_found", "x", &why);
	assert_lines(f, "{\"event\":\"resolving\",\"venv\":\"a_1234567\",\"level\":\"info\"}\n"
			"{\"event\":\"installing_deps\",\"venv\":\"a_1234567\","
			"\"packages_done\":3,\"packages\":14,\"bytes\":1048576,"
			"\"bytes_per_second\":524288.5,\"level\":\"info\"}\n"
			"{\"event\":\"failed\",\"venv\":\"a_1234567\",\"code\":\"not_found\","
			"\"package\":\"x\",\"message\":\"no package 'x'\","
			"\"hint\":\"look \\\"there\\\"\",\"level\":\"error\"}\n");
}

static off_t size_of(struct fixture *f, const char *name)
{
	struct stat st;
	return fstatat(f->home.dir, name, &st, 0) ? -1 : st.st_size;
}

static void the_log_keeps_all_but_progress(void **state)
{
	struct fixture *f = *state;
	int sink = f->events.sink;
	f->events.sink = -1;
	events_progress(&f->events, "installing_deps", "a", 1, 2, 3, 4);
	assert_int_equal(size_of(f, "audit/envs.jsonl"), -1);
	events_status(&f->events, "ready", "a");
	off_t once = size_of(f, "audit/envs.jsonl");
	assert_true(once > 50);
	events_status(&f->events, "ready", "a");
	assert_int_equal(size_of(f, "audit/envs.jsonl"), 2 * once);
	struct stat st;
	assert_int_equal(fstatat(f->home.dir, "audit/envs.jsonl", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_uid, f->home.uid);
	f->events.sink = sink;
}

static void a_long_log_is_set_aside(void **state)
{
	struct fixture *f = *state;
	int sink = f->events.sink;
	f->events.sink = -1;
	events_status(&f->events, "ready", "a");
	char path[128];
	str_format(path, sizeof path, "%s/audit/envs.jsonl", f->path);
	assert_int_equal(truncate(path, 16 << 20), 0);
	events_status(&f->events, "ready", "a");
	assert_int_equal(size_of(f, "audit/envs.jsonl.1"), 16 << 20);
	assert_true(size_of(f, "audit/envs.jsonl") < 200);
	f->events.sink = sink;
}

/* The home may be read-only, or full, or a link somebody put there. */
static void a_log_that_cant_be_written_is_no_failure(void **state)
{
	struct fixture *f = *state;
	home_enter(&f->home);
	assert_int_equal(symlinkat("/etc", f->home.dir, "audit"), 0);
	home_leave(&f->home);
	events_status(&f->events, "ready", "a");
	assert_lines(f, "{\"event\":\"ready\",\"venv\":\"a\",\"level\":\"info\"}\n");
	assert_int_equal(access("/etc/envs.jsonl", F_OK), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_event_has_the_fields_of_the_seed),
		TEST(statuses_and_failures_are_events_too),
		TEST(the_log_keeps_all_but_progress),
		TEST(a_long_log_is_set_aside),
		TEST(a_log_that_cant_be_written_is_no_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
