/* What goes when there is too much, the launcher, and what is counted. */
#include "envs_fixture.h"

#include "envs/python/internal.h"

/* ---- limits ---- */

static void make_three(void)
{
	/* oldest: used last; most: used most; seldom: the newest. */
	static const struct {
		const char *name, *created_at, *last_used_at;
		uint64_t uses;
	} rows[] = {
		{ "oldest_1", "2026-01-01T00:00:00.000Z", "2026-03-03T00:00:00.000Z", 5 },
		{ "most_2", "2026-01-02T00:00:00.000Z", "2026-03-01T00:00:00.000Z", 9 },
		{ "seldom_3", "2026-01-03T00:00:00.000Z", "2026-03-02T00:00:00.000Z", 1 },
	};
	for (size_t i = 0; i < 3; i++) {
		struct env_meta meta = example(rows[i].name);
		vec_push(&arena, &meta.layers,
			publish_one(arena_printf(&arena, "l%zu", i), rows[i].name, NULL));
		meta.created_at = rows[i].created_at;
		meta.last_used_at = rows[i].last_used_at;
		meta.use_count = rows[i].uses;
		write_meta(&meta);
	}
}

static void assert_evicts(enum eviction_policy policy, const char *name)
{
	uint64_t count;
	char sink[4096] = "", expected[128];
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	make_three();
	envs.events.sink = ends[1];
	envs.config.eviction = policy;
	envs.config.max_envs = 2;
	assert_ok(env_evict(&envs, NULL, 0, &count, &err));
	envs.events.sink = -1;
	assert_int_equal(count, 1);
	assert_false(is_there(name));
	assert_int_equal(count_layers(), 2);
	assert_true(read(ends[0], sink, sizeof sink - 1) > 0);
	str_format(expected, sizeof expected,
		"{\"event\":\"Evicting venv\",\"venv\":\"%s\",\"reason\":\"%s_eviction\","
		"\"last_used\":\"2026-03-0",
		name, eviction_policy_names[policy]);
	assert_true(str_starts_with(str_from(sink), expected));
	close(ends[0]);
	close(ends[1]);
}

static void lru_evicts_what_is_longest_unused(void **state)
{
	assert_evicts(EVICT_LRU, "most_2");
}

static void lfu_evicts_what_is_used_least(void **state)
{
	assert_evicts(EVICT_LFU, "seldom_3");
}

static void fifo_evicts_the_oldest(void **state)
{
	assert_evicts(EVICT_FIFO, "oldest_1");
}

static void what_is_kept_or_in_use_is_not_evicted(void **state)
{
	uint64_t count;
	make_three();
	envs.config.max_envs = 1;
	int pin = use("most_2");
	assert_ok(env_evict(&envs, "seldom_3", 0, &count, &err));
	assert_int_equal(count, 1);
	assert_true(is_there("most_2") && is_there("seldom_3"));
	close(pin);
}

static void bytes_and_age_are_limits_too(void **state)
{
	uint64_t count;
	make_three();
	assert_ok(env_evict(&envs, NULL, 0, &count, &err));
	assert_int_equal(count, 0);
	uint64_t one, total = 0;
	text_list ids = { 0 };
	assert_ok(layers_list(&store, &arena, &ids, &err));
	for (size_t i = 0; i < ids.count; i++) {
		assert_ok(layer_measure(&store, ids.items[i], &one, &err));
		total += one;
	}
	envs.config.max_bytes = total - 1;
	assert_ok(env_evict(&envs, NULL, 0, &count, &err));
	assert_int_equal(count, 1);
	assert_int_equal(count_layers(), 2);
	envs.config.max_bytes = UINT64_MAX;
	envs.config.ttl_ms = 1;
	usleep(2000);
	assert_ok(env_evict(&envs, NULL, 0, &count, &err));
	assert_int_equal(count, 2);
	assert_int_equal(count_layers(), 0);
}

static void a_full_disk_takes_as_many_as_are_needed(void **state)
{
	uint64_t count;
	make_three();
	assert_ok(env_evict(&envs, NULL, 1, &count, &err));
	assert_int_equal(count, 1);
	/* What all of them couldn't free is no reason to remove any. */
	assert_ok(env_evict(&envs, NULL, (uint64_t)1 << 40, &count, &err));
	assert_int_equal(count, 0);
}

static void pruning_gives_an_account(void **state)
{
	struct env_pruned pruned, would;
	make_three();
	int pin = use("most_2");
	assert_ok(env_prune(&envs, false, false, &arena, &pruned, &err));
	assert_int_equal(pruned.removed.count + pruned.layers, 0);
	assert_ok(env_prune(&envs, true, true, &arena, &would, &err));
	assert_int_equal(would.removed.count, 2);
	assert_ok(env_prune(&envs, true, false, &arena, &pruned, &err));
	assert_int_equal(would.layers, pruned.layers);
	assert_int_equal(would.bytes, pruned.bytes);
	assert_int_equal(pruned.removed.count, 2);
	assert_string_equal(pruned.removed.items[0].name, "oldest_1");
	assert_string_equal(pruned.removed.items[0].reason, "pruned");
	assert_int_equal(pruned.layers, 2);
	assert_true(pruned.bytes > 0);
	close(pin);
}

/* ---- the launcher ---- */

static const char *run_launcher(const char *directory, const char *path)
{
	static char out[4096];
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		if (dup2(ends[1], 1) < 0 || chdir(directory) ||
			setenv("PATH", arena_printf(&arena, "%s/bin:/usr/bin:/bin", root), 1))
			_exit(9);
		execl(path, path, "-c", "a 'b' $HOME", "", NULL);
		_exit(8);
	}
	close(ends[1]);
	ssize_t len = fd_read_full(ends[0], out, sizeof out - 1);
	close(ends[0]);
	assert_true(len >= 0);
	out[len] = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return out;
}

/* With a carrel that says what it was given. */
static void the_launcher_runs_python_in_the_environment(void **state)
{
	char path[256];
	struct home odd;
	struct env_store there;
	struct env_meta meta = example("e@1_a");
	struct env_files none = { 0 };
	str_format(path, sizeof path, "%s/bin", root);
	assert_int_equal(mkdir(path, 0755), 0);
	str_format(path, sizeof path, "%s/bin/carrel", root);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	static const char script[] = "#!/bin/sh\nprintf '%s|' \"$CARREL_HOME\" \"$@\"\n";
	assert_int_equal(fd_write_full(fd, script, sizeof script - 1), sizeof script - 1);
	fd_close(&fd);
	str_format(path, sizeof path, "%s/it's $HOME", root);
	assert_ok(home_open(path, &arena, &odd, &err));
	assert_ok(env_store_open(&odd, &arena, &there, &err));
	assert_ok(env_write(&there, &meta, &none, &err));
	str_format(path, sizeof path, "%s/it's $HOME/envs/e@1_a/bin/python3", root);
	assert_string_equal(run_launcher(root, path),
		arena_printf(&arena,
			"%s/it's $HOME|run|--env|e@1_a|--dir|.|-v|%s:%s:ro|--|python|-c|a 'b' "
			"$HOME||",
			root, root, root));
	/* Behind links of other names, relative and absolute. */
	const char *link = arena_printf(&arena, "%s/some-python", root);
	assert_int_equal(symlink("it's $HOME/envs/e@1_a/bin/python", link), 0);
	const char *second = arena_printf(&arena, "%s/bin/second", root);
	assert_int_equal(symlink(link, second), 0);
	assert_string_equal(run_launcher("/", second),
		arena_printf(
			&arena, "%s/it's $HOME|run|--env|e@1_a|--|python|-c|a 'b' $HOME||", root));
	/* Where a mount can't be, or its words would be taken apart wrongly. */
	assert_string_equal(run_launcher("/usr/bin", path),
		arena_printf(&arena,
			"%s/it's $HOME|run|--env|e@1_a|--dir|.|--|python|-c|a 'b' $HOME||", root));
	assert_string_equal(run_launcher("/", path),
		arena_printf(
			&arena, "%s/it's $HOME|run|--env|e@1_a|--|python|-c|a 'b' $HOME||", root));
	env_store_done(&there);
	home_done(&odd);
}

/* ---- metrics ---- */

static void metrics_are_what_prometheus_reads(void **state)
{
	static const double builds[] = { 0.4, 1, 1.5, 45.25, 300, 301 };
	auto_buf struct buf out;
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
		assert_ok(env_metrics_add(&envs, builds[i], &err));
	assert_ok(env_metrics_print(&envs, &out, &err));
	assert_string_equal(out.data,
		"# HELP par_venv_cache_size_bytes Total size of venv cache in bytes\n"
		"# TYPE par_venv_cache_size_bytes gauge\n"
		"par_venv_cache_size_bytes 0\n"
		"# HELP par_venv_count Number of cached venvs\n"
		"# TYPE par_venv_count gauge\n"
		"par_venv_count 0\n"
		"# HELP par_venv_build_duration_seconds Time to build venv\n"
		"# TYPE par_venv_build_duration_seconds histogram\n"
		"par_venv_build_duration_seconds_bucket{le=\"1\"} 2\n"
		"par_venv_build_duration_seconds_bucket{le=\"5\"} 3\n"
		"par_venv_build_duration_seconds_bucket{le=\"10\"} 3\n"
		"par_venv_build_duration_seconds_bucket{le=\"30\"} 3\n"
		"par_venv_build_duration_seconds_bucket{le=\"60\"} 4\n"
		"par_venv_build_duration_seconds_bucket{le=\"120\"} 4\n"
		"par_venv_build_duration_seconds_bucket{le=\"300\"} 5\n"
		"par_venv_build_duration_seconds_bucket{le=\"+Inf\"} 6\n"
		"par_venv_build_duration_seconds_sum 649.150\n"
		"par_venv_build_duration_seconds_count 6\n");
	make("e_1", "x");
	put_text(".metrics", "torn");
	buf_clear(&out);
	assert_ok(env_metrics_print(&envs, &out, &err));
	assert_non_null(strstr(out.data, "par_venv_count 1\n"));
	assert_null(strstr(out.data, "par_venv_cache_size_bytes 0\n"));
	assert_non_null(strstr(out.data, "_seconds_count 0\n"));
}

static void builds_are_counted_also_of_many_at_once(void **state)
{
	auto_buf struct buf out;
	buf_init(&out, 1 << 20);
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			for (int k = 0; k < 50; k++)
				assert_ok(env_metrics_add(&envs, 2, &err));
			_exit(0);
		}
	for (int i = 0, status; i < 4; i++)
		assert_true(wait(&status) > 0);
	assert_ok(env_metrics_print(&envs, &out, &err));
	assert_non_null(strstr(out.data, "_seconds_sum 400.000\n"));
	assert_non_null(strstr(out.data, "_seconds_count 200\n"));
}

static void a_wrong_configuration_is_named(void **state)
{
	struct env_store other;
	home_enter(&home);
	auto_close int fd = openat(home.dir, "config.yaml", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	home_leave(&home);
	assert_true(write(fd, "environments:\n  max_envs: many\n", 31) == 31);
	assert_fails(env_store_open(&home, &arena, &other, &err), ERR_INVALID, "max_envs");
	assert_non_null(strstr(err.text, "config.yaml"));
}

/* The topmost layer is small and has a directory where the next one, which is large, has a file:
 * merged below that one, the file would hide it. */
static void a_directory_over_a_file_is_not_merged_below_it(void **state)
{
	enum { COUNT = ENV_LAYERS_MAX + 1 };
	struct layer_draft drafts[COUNT];
	text_list layers = { 0 }, parts = { 0 };
	char *large = arena_alloc(&arena, 1001);
	memset(large, 'x', 1000);
	for (size_t i = 0; i < COUNT; i++) {
		const char *path = arena_printf(&arena, "d%zu", i);
		put_directory(path);
		put_directory(arena_printf(&arena, "%s/tree", path));
		if (i == 0) {
			put_directory("d0/tree/x");
			put_file("d0/tree/x/f", "", 0644);
		}
		put_file(i == 1 ? "d1/tree/x" : arena_printf(&arena, "%s/tree/f%zu", path, i),
			i == 1 ? large : "some text", 0644);
		drafts[i] = draft_of(path, NULL);
	}
	assert_ok(layers_publish(&store, stage.fd, drafts, COUNT, NULL, NULL, &err));
	for (size_t i = 0; i < COUNT; i++)
		vec_push(&arena, &layers, drafts[i].id);
	assert_int_equal(merge_find(&envs, &layers, &parts, &arena, &err), 0);
	assert_int_equal(parts.count, COUNT - ENV_LAYERS_MERGED + 1);
	for (size_t i = 0; i < parts.count; i++)
		assert_string_not_equal(parts.items[i], drafts[0].id);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lru_evicts_what_is_longest_unused),
		TEST(lfu_evicts_what_is_used_least),
		TEST(fifo_evicts_the_oldest),
		TEST(what_is_kept_or_in_use_is_not_evicted),
		TEST(bytes_and_age_are_limits_too),
		TEST(a_full_disk_takes_as_many_as_are_needed),
		TEST(pruning_gives_an_account),
		TEST(the_launcher_runs_python_in_the_environment),
		TEST(metrics_are_what_prometheus_reads),
		TEST(builds_are_counted_also_of_many_at_once),
		TEST(a_wrong_configuration_is_named),
		TEST(a_directory_over_a_file_is_not_merged_below_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
