/* Environments on disk: there or not there, never half; in use or free to go. */
#include "envs_fixture.h"
#include "envs/internal.h"
#include "envs/store_internal.h"

/* ---- made and found ---- */

static void what_was_written_is_read_back(void **state)
{
	struct env_meta meta;
	const char *id = make("agent@1.0_a3f5b8c", "x");
	assert_ok(env_read(&envs, "agent@1.0_a3f5b8c", &arena, &meta, &err));
	assert_string_equal(meta.package_id, "agent@1.0");
	assert_int_equal(meta.layers.count, 1);
	assert_string_equal(meta.layers.items[0], id);
	assert_string_equal(text_of("agent@1.0_a3f5b8c/requirements.txt"), "a==1\n");
	assert_string_equal(text_of("agent@1.0_a3f5b8c/lock.txt"), "a==1 --hash=sha256:00\n");
	assert_string_equal(text_of("agent@1.0_a3f5b8c/build.log"), "log\n");
	const char *seed = text_of("agent@1.0_a3f5b8c/.pixell_venv_metadata.json");
	assert_non_null(strstr(seed, "\"requirements_sha256\": \"a3f5b8c9"));
	assert_int_equal(count_names(".new-"), 0);
	assert_ok(env_check(&envs, &meta, &err));
}

static void an_environment_without_requirements_costs_little(void **state)
{
	struct env_meta meta = example("empty_no-deps");
	struct env_files none = { 0 };
	uint64_t bytes, inodes;
	assert_ok(env_write(&envs, &meta, &none, &err));
	assert_false(is_there("empty_no-deps/requirements.txt"));
	assert_false(is_there("empty_no-deps/lock.txt"));
	assert_false(is_there("empty_no-deps/build.log"));
	home_enter(&home);
	auto_close int dir = openat(envs.dir, "empty_no-deps", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int failed = path_measure_tree(dir, &bytes, &inodes, &err);
	home_leave(&home);
	assert_int_equal(failed, 0);
	assert_true(bytes <= 16384);
}

static void environments_of_one_lock_share_its_file(void **state)
{
	struct env_meta one = example("one_a"), two = example("two_a"), three = example("three_a");
	struct env_files files = { STR("a==1\n"), STR("lock\n"), { 0 }, "key" };
	struct stat st;
	int locks;
	assert_ok(home_open_directory(&home, "locks", &locks, &err));
	close(locks);
	put_text("../locks/key", "lock\n");
	assert_ok(env_write(&envs, &one, &files, &err));
	assert_ok(env_write(&envs, &two, &files, &err));
	assert_string_equal(text_of("two_a/lock.txt"), "lock\n");
	assert_int_equal(fstatat(envs.dir, "one_a/lock.txt", &st, 0), 0);
	assert_int_equal(st.st_nlink, 3);
	files.lock_kept = "gone";
	assert_ok(env_write(&envs, &three, &files, &err));
	assert_string_equal(text_of("three_a/lock.txt"), "lock\n");
	assert_int_equal(fstatat(envs.dir, "three_a/lock.txt", &st, 0), 0);
	assert_int_equal(st.st_nlink, 1);
}

/* Launcher and requirements are the same files in both; they go with the last that has them. */
static void environments_share_equal_texts(void **state)
{
	uint64_t count, bytes;
	struct stat one, two;
	make("one_a", "x");
	make("two_a", "x");
	static const char *const names[] = { "bin/python", "requirements.txt" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_int_equal(
			fstatat(envs.dir, arena_printf(&arena, "one_a/%s", names[i]), &one, 0), 0);
		assert_int_equal(
			fstatat(envs.dir, arena_printf(&arena, "two_a/%s", names[i]), &two, 0), 0);
		assert_int_equal(one.st_ino, two.st_ino);
		assert_int_equal(one.st_nlink, 3);
	}
	assert_ok(env_remove(&envs, "one_a", true, &err));
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	assert_int_equal(fstatat(envs.dir, "two_a/bin/python", &two, 0), 0);
	assert_int_equal(two.st_nlink, 2);
	assert_ok(env_remove(&envs, "two_a", true, &err));
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	auto_close int shared = openat(envs.dir, ".shared", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(shared >= 0);
	DIR *walk = fdopendir(dup(shared));
	for (struct dirent *entry; (entry = readdir(walk));)
		assert_int_equal(entry->d_name[0], '.');
	closedir(walk);
}

static void everything_belongs_to_the_owner_alone(void **state)
{
	static const struct {
		const char *path;
		mode_t mode;
	} files[] = { { "e_1", 0700 }, { "e_1/meta.json", 0600 }, { "e_1/requirements.txt", 0600 },
		{ "e_1/bin", 0700 }, { "e_1/bin/python", 0700 }, { ".current", 0700 } };
	make("e_1", "x");
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct stat st;
		assert_int_equal(fstatat(envs.dir, files[i].path, &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(st.st_mode & 07777, files[i].mode);
		assert_int_equal(st.st_uid, home.uid);
		assert_int_equal(st.st_gid, home.gid);
	}
}

static void names_that_are_none_are_refused(void **state)
{
	static const char *const names[] = { "", ".", "..", "a/b", "/etc", ".current", "-r", "a b",
		"\xff\xfe", "a\n" };
	struct env_meta meta;
	const char *name;
	int fd;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_fails(env_read(&envs, names[i], &arena, &meta, &err), ERR_INVALID, "name");
		assert_fails(env_use(&envs, names[i], &arena, &meta, &fd, &err), ERR_INVALID, "");
		assert_fails(env_remove(&envs, names[i], false, &err), ERR_INVALID, "name");
		assert_fails(env_resolve(&envs, names[i], &arena, &name, &err), ERR_INVALID, "");
		assert_fails(env_lock(&envs, names[i], 0, &fd, &err), ERR_INVALID, "name");
	}
}

static void a_package_id_means_the_one_last_built(void **state)
{
	const char *name;
	assert_fails(env_resolve(&envs, "agent@1.0", &arena, &name, &err), ERR_NOT_FOUND, "agent");
	assert_non_null(strstr(err.hint, "carrel env build"));
	make("agent@1.0_1111111", "one");
	make("agent@1.0_2222222", "two");
	assert_ok(env_resolve(&envs, "agent@1.0", &arena, &name, &err));
	assert_string_equal(name, "agent@1.0_2222222");
	assert_ok(env_resolve(&envs, "agent@1.0_1111111", &arena, &name, &err));
	assert_string_equal(name, "agent@1.0_1111111");
	struct env_meta meta = example("agent@1.0_1111111");
	assert_ok(env_select(&envs, &meta, &err));
	assert_ok(env_resolve(&envs, "agent@1.0", &arena, &name, &err));
	assert_string_equal(name, "agent@1.0_1111111");
	/* What was selected is gone: the newest of the others. */
	assert_ok(env_remove(&envs, "agent@1.0_1111111", false, &err));
	assert_false(is_there(".current/agent@1.0"));
	assert_ok(env_resolve(&envs, "agent@1.0", &arena, &name, &err));
	assert_string_equal(name, "agent@1.0_2222222");
	assert_fails(env_resolve(&envs, "other", &arena, &name, &err), ERR_NOT_FOUND, "other");
	assert_non_null(strstr(err.hint, "agent@1.0_2222222"));
}

static void what_is_damaged_is_said_to_be(void **state)
{
	struct env_meta meta;
	env_rows rows = { 0 };
	int pin;
	make("a_1", "a");
	make("b_2", "b");
	make("c_3", "c");
	put_text("a_1/meta.json", "{\"name\": ");
	assert_fails(env_read(&envs, "a_1", &arena, &meta, &err), ERR_CORRUPT, "a_1");
	assert_fails(env_use(&envs, "a_1", &arena, &meta, &pin, &err), ERR_CORRUPT, "a_1");
	put_text("c_3/meta.json", text_of("b_2/meta.json"));
	assert_fails(env_read(&envs, "c_3", &arena, &meta, &err), ERR_CORRUPT, "'b_2'");
	home_enter(&home);
	unlinkat(envs.dir, "b_2/meta.json", 0);
	home_leave(&home);
	assert_fails(env_read(&envs, "b_2", &arena, &meta, &err), ERR_CORRUPT, "no meta.json");
	assert_ok(env_list(&envs, &arena, &rows, &err));
	assert_int_equal(rows.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_non_null(rows.items[i].problem);
	assert_string_equal(rows.items[2].meta.name, "c_3");
	/* It is replaced, or removed, like any other. */
	make("a_1", "a");
	assert_ok(env_read(&envs, "a_1", &arena, &meta, &err));
	assert_ok(env_remove(&envs, "b_2", false, &err));
	assert_ok(env_remove(&envs, "c_3", false, &err));
	assert_int_equal(count_layers(), 1);
}

static void a_missing_layer_or_interpreter_is_found_at_use(void **state)
{
	struct env_meta meta = example("gone_1");
	auto_close int lock = -1;
	int pin = -1;
	const char *id = make("whole_1", "x");
	assert_ok(layer_store_lock(&store, true, &lock, &err));
	assert_ok(layer_quarantine(&store, id, &err));
	fd_close(&lock);
	assert_fails(env_use(&envs, "whole_1", &arena, &meta, &pin, &err), ERR_CORRUPT, "whole_1");
	meta = example("gone_1");
	meta.python = "/usr/bin/python3.99";
	write_meta(&meta);
	assert_fails(env_use(&envs, "gone_1", &arena, &meta, &pin, &err), ERR_NOT_FOUND,
		"/usr/bin/python3.99");
	assert_int_equal(pin, -1);
}

/* ---- in use ---- */

static void uses_are_counted_also_of_many_at_once(void **state)
{
	struct env_meta meta;
	make("e_1", "x");
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			for (int k = 0; k < 25; k++)
				close(use("e_1"));
			_exit(0);
		}
	for (int i = 0, status; i < 4; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_ok(env_read(&envs, "e_1", &arena, &meta, &err));
	assert_int_equal(meta.use_count, 100);
	assert_true(strcmp(meta.last_used_at, "2026-01-01T00:00:00.000Z") > 0);
	assert_int_equal(meta.layers.count, 1);
}

static bool is_listed_in_use(const char *name)
{
	env_rows rows = { 0 };
	assert_ok(env_list(&envs, &arena, &rows, &err));
	for (size_t i = 0; i < rows.count; i++)
		if (!strcmp(rows.items[i].meta.name, name))
			return rows.items[i].is_in_use;
	return false;
}

static void what_is_in_use_is_not_removed(void **state)
{
	const char *id = make("e_1", "x");
	int pin = use("e_1");
	assert_true(is_listed_in_use("e_1"));
	assert_fails(env_remove(&envs, "e_1", false, &err), ERR_CONFLICT, "in use");
	/* An inherited descriptor holds it as well. */
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		char c;
		close(ready[1]);
		_exit(read(ready[0], &c, 1) != 0);
	}
	close(pin);
	assert_fails(env_remove(&envs, "e_1", false, &err), ERR_CONFLICT, "in use");
	close(ready[1]);
	close(ready[0]);
	waitpid(child, NULL, 0);
	assert_false(is_listed_in_use("e_1"));
	assert_ok(layer_check(&store, id, &err));
	assert_ok(env_remove(&envs, "e_1", false, &err));
	assert_fails(layer_check(&store, id, &err), ERR_NOT_FOUND, "");
	assert_fails(env_remove(&envs, "e_1", false, &err), ERR_NOT_FOUND, "e_1");
}

static void a_replaced_one_lives_while_it_is_used(void **state)
{
	uint64_t count, bytes;
	const char *first = make("e_1", "one");
	int pin = use("e_1");
	const char *second = make("e_1", "two");
	assert_int_equal(count_names(".old-"), 1);
	assert_false(is_listed_in_use("e_1"));
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	assert_int_equal(count, 0);
	assert_ok(layer_check(&store, first, &err));
	close(pin);
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	assert_int_equal(count, 1);
	assert_true(bytes > 0);
	assert_int_equal(count_names(".old-"), 0);
	assert_fails(layer_check(&store, first, &err), ERR_NOT_FOUND, "");
	assert_ok(layer_check(&store, second, &err));
	/* One that nobody uses goes at once. */
	make("e_1", "three");
	assert_int_equal(count_names(".old-"), 0);
}

static void layers_go_with_their_last_environment(void **state)
{
	const char *shared = publish_one("shared", "shared", NULL);
	for (int i = 0; i < 2; i++) {
		struct env_meta meta = example(i ? "two_2" : "one_1");
		vec_push(&arena, &meta.layers, shared);
		write_meta(&meta);
	}
	assert_ok(env_remove(&envs, "one_1", false, &err));
	assert_ok(layer_check(&store, shared, &err));
	assert_ok(env_remove(&envs, "two_2", true, &err));
	assert_ok(layer_check(&store, shared, &err));
	uint64_t count, bytes;
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	assert_int_equal(count, 1);
}

static void nothing_is_collected_beside_one_that_cant_be_read_and_runs(void **state)
{
	uint64_t count, bytes;
	const char *id = make("e_1", "x");
	int pin = use("e_1");
	put_text("e_1/meta.json", "nonsense");
	assert_fails(env_collect(&envs, &count, &bytes, &err), ERR_CONFLICT, "e_1");
	assert_ok(layer_check(&store, id, &err));
	close(pin);
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	assert_int_equal(count, 1);
}

static void a_removal_does_not_wait_for_a_build(void **state)
{
	auto_close int lock = -1;
	const char *id = make("e_1", "x");
	assert_ok(layer_store_lock(&store, false, &lock, &err));
	assert_ok(env_remove(&envs, "e_1", false, &err));
	assert_false(is_there("e_1"));
	assert_ok(layer_check(&store, id, &err));
}

/* ---- builders ---- */

static void one_builder_of_a_name_at_a_time(void **state)
{
	int first = -1, second = -1, other = -1;
	uint64_t count, bytes;
	assert_ok(env_lock(&envs, "e_1", 0, &first, &err));
	assert_ok(env_lock(&envs, "e_2", 0, &other, &err));
	assert_fails(env_lock(&envs, "e_1", 30, &second, &err), ERR_CONFLICT, "e_1");
	close(other);
	/* A collection leaves what is held, and removes the lock files of older versions. */
	assert_int_equal(mkdirat(envs.dir, ".locks", 0700), 0);
	put_text(".locks/e_1", "");
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	assert_false(is_there(".locks"));
	assert_fails(env_lock(&envs, "e_1", 0, &second, &err), ERR_CONFLICT, "e_1");
	close(first);
	assert_ok(env_lock(&envs, "e_1", 0, &second, &err));
	close(second);
}

static void many_who_replace_at_once_end_with_one(void **state)
{
	struct env_meta meta = example("e_1"), read;
	const char *id = publish_one("d", "x", NULL);
	vec_push(&arena, &meta.layers, id);
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			for (int k = 0; k < 10; k++) {
				int lock = -1;
				assert_ok(env_lock(&envs, "e_1", 20000, &lock, &err));
				write_meta(&meta);
				close(lock);
				close(use("e_1"));
			}
			_exit(0);
		}
	for (int i = 0, status; i < 4; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	uint64_t count, bytes;
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	assert_ok(env_read(&envs, "e_1", &arena, &read, &err));
	assert_int_equal(count_names(".old-") + count_names(".new-"), 0);
	assert_ok(layer_check(&store, id, &err));
}

static void what_nobody_makes_any_more_is_swept(void **state)
{
	home_enter(&home);
	assert_ok(mkdirat(envs.dir, ".new-dead", 0700));
	assert_ok(mkdirat(envs.dir, ".new-dead/bin", 0700));
	assert_ok(mkdirat(envs.dir, ".new-alive", 0700));
	auto_close int alive = openat(envs.dir, ".new-alive", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	home_leave(&home);
	assert_ok(flock(alive, LOCK_EX));
	/* Exchanged with the one that replaced it, and still in use. */
	make("e_1", "one");
	auto_close int pin = use("e_1");
	home_enter(&home);
	assert_ok(renameat(envs.dir, "e_1", envs.dir, ".new-used"));
	home_leave(&home);
	env_sweep(&envs);
	assert_false(is_there(".new-dead"));
	assert_true(is_there(".new-alive") && is_there(".new-used"));
	fd_close(&alive);
	fd_close(&pin);
	env_sweep(&envs);
	assert_int_equal(count_names(".new-"), 0);
}

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

/* locks/<name>, so old. */
static void put_lock(const char *name, int days)
{
	char path[128];
	time_t then = time(NULL) - days * 86400;
	str_format(path, sizeof path, "../locks/%s", name);
	put_text(path, "x");
	home_enter(&home);
	assert_ok(utimensat(envs.dir, path, (struct timespec[]){ { then, 0 }, { then, 0 } }, 0));
	home_leave(&home);
}

static void locks_that_no_environment_has_go_when_they_are_old(void **state)
{
	uint64_t count, bytes;
	home_enter(&home);
	assert_ok(mkdirat(envs.dir, "../locks", 0700));
	home_leave(&home);
	put_lock(KEY "1", 31);
	put_lock(KEY "1-0123456789abcdef", 31);
	put_lock(KEY "2", 29);
	put_lock(KEY "2-0123456789abcdef", 31);
	put_lock(KEY "3", 31);
	put_lock(".new-draft", 1);
	make("e_1", "one");
	home_enter(&home);
	assert_ok(linkat(envs.dir, "../locks/" KEY "3", envs.dir, "e_1/linked.txt", 0));
	home_leave(&home);
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	assert_false(
		is_there("../locks/" KEY "1") || is_there("../locks/" KEY "1-0123456789abcdef"));
	assert_true(
		is_there("../locks/" KEY "2") && is_there("../locks/" KEY "2-0123456789abcdef"));
	assert_true(is_there("../locks/" KEY "3"));
	assert_false(is_there("../locks/.new-draft"));
}

static void the_newest_thousand_locks_stay(void **state)
{
	char name[80];
	uint64_t count, bytes;
	home_enter(&home);
	assert_ok(mkdirat(envs.dir, "../locks", 0700));
	home_leave(&home);
	for (int i = 0; i < 1002; i++) {
		str_format(name, sizeof name, "%060d%04d", 0, i);
		put_lock(name, i < 2 ? 2 : 1);
	}
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	for (int i = 0; i < 4; i++) {
		str_format(name, sizeof name, "../locks/%060d%04d", 0, i);
		assert_int_equal(is_there(name), i >= 2);
	}
}

static void a_link_in_the_place_of_an_environment_is_not_followed(void **state)
{
	struct env_meta read;
	make("e_1", "one");
	home_enter(&home);
	assert_ok(renameat(envs.dir, "e_1", envs.dir, "../elsewhere"));
	assert_ok(symlinkat("../elsewhere", envs.dir, "e_1"));
	home_leave(&home);
	assert_fails(env_read(&envs, "e_1", &arena, &read, &err), ERR_CORRUPT, "e_1");
	make("e_1", "two");
	assert_ok(env_read(&envs, "e_1", &arena, &read, &err));
	assert_true(is_there("../elsewhere/meta.json"));
	assert_int_equal(count_names(".old-") + count_names(".new-"), 0);
}

static void a_failed_build_leaves_its_log(void **state)
{
	auto_buf struct buf log;
	buf_init(&log, 1000);
	assert_fails(env_read_file(&envs, "e_1", "build.log", &log, &err), ERR_NOT_FOUND, "e_1");
	assert_ok(env_keep_log(&envs, "e_1", STR("it failed\n"), &err));
	assert_ok(env_read_file(&envs, "e_1", "build.log", &log, &err));
	assert_string_equal(log.data, "it failed\n");
	make("e_1", "x");
	buf_clear(&log);
	assert_ok(env_read_file(&envs, "e_1", "build.log", &log, &err));
	assert_string_equal(log.data, "log\n");
	buf_clear(&log);
	assert_ok(env_read_file(&envs, "e_1", "requirements.txt", &log, &err));
	assert_string_equal(log.data, "a==1\n");
	assert_fails(env_read_file(&envs, "e_1", "x", &log, &err), ERR_NOT_FOUND, "has no x");
}

static void a_store_that_cant_be_written_says_so_and_still_serves(void **state)
{
	struct env_meta meta = example("new_1"), read;
	struct env_files none = { 0 };
	int fd = -1;
	make("e_1", "x");
	home_enter(&home);
	int failed = fchmodat(envs.dir, "e_1/meta.json", 0400, 0) || fchmod(envs.dir, 0500);
	home_leave(&home);
	assert_int_equal(failed, 0);
	assert_fails(env_write(&envs, &meta, &none, &err), ERR_DENIED, "envs");
	assert_fails(env_lock(&envs, "new_1", 0, &fd, &err), ERR_DENIED, "");
	assert_ok(env_use(&envs, "e_1", &arena, &read, &fd, &err));
	assert_int_equal(read.use_count, 0);
	close(fd);
	home_enter(&home);
	failed = fchmod(envs.dir, 0700);
	home_leave(&home);
	assert_int_equal(failed, 0);
	assert_int_equal(count_names(".new-"), 0);
}

/* ---- faults ---- */

static void an_ext4_without_a_journal_is_known_as_such(void **state)
{
	assert_true(envs_journal_is_there("182\n"));
	assert_false(envs_journal_is_there("<none>\n"));
	assert_false(envs_journal_is_there(""));
}

#ifdef CARREL_FAULTS
/* Replaces e_1 in a child with that fault set; how it ended. */
static int replace_with(const char *fault, const struct env_meta *meta)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		struct env_files files = { STR("new\n"), STR("new\n"), STR("new\n") };
		setenv("CARREL_FAULT", fault, 1);
		if (!env_write(&envs, meta, &files, &err))
			_exit(0);
		_exit(err.code);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* e_1 is one or the other, whole; nothing else is there after a collection. */
static void assert_whole_environment(const char *first, const char *second, bool may_be_absent)
{
	struct env_meta meta;
	uint64_t count, bytes;
	if (may_be_absent && !is_there("e_1"))
		return;
	assert_ok(env_read(&envs, "e_1", &arena, &meta, &err));
	assert_ok(env_check(&envs, &meta, &err));
	bool is_new = !strcmp(meta.layers.items[0], second);
	assert_true(is_new || !strcmp(meta.layers.items[0], first));
	assert_string_equal(text_of("e_1/requirements.txt"), is_new ? "new\n" : "a==1\n");
	assert_true(is_there("e_1/bin/python3") && is_there("e_1/.pixell_venv_metadata.json"));
	assert_ok(env_collect(&envs, &count, &bytes, &err));
	assert_int_equal(count_names(".old-") + count_names(".new-"), 0);
	assert_ok(env_check(&envs, &meta, &err));
}

/* Every place where a replacement can be cut short; most are passed several times, some only on a
 * file system without a journal, some only by a replacement. */
static const char *const places[] = { "envs.make", "envs.write", "envs.meta", "envs.sync",
	"envs.rename", "envs.exchanged", "envs.current", "envs.directory", "envs.old",
	"envs.remove" };
#define PLACES (sizeof places / sizeof *places)

/* Kills a writer of e_1 when it passes `place` for the time `nth`; whether it came there. */
static bool kill_at(const char *place, unsigned nth, bool is_replacing)
{
	const char *first = is_replacing ? make("e_1", "one") : "none";
	struct env_meta meta = example("e_1");
	const char *second =
		publish_one(arena_printf(&arena, "%s%u%d", place, nth, is_replacing), "two", NULL);
	vec_push(&arena, &meta.layers, second);
	int end = replace_with(arena_printf(&arena, "%s:%u", place, nth), &meta);
	assert_true(end == -SIGKILL || end == 0);
	assert_whole_environment(first, second, !is_replacing);
	if (is_there("e_1"))
		assert_ok(env_remove(&envs, "e_1", false, &err));
	return end == -SIGKILL;
}

static void a_kill_at_any_step_leaves_the_old_or_the_new(void **state)
{
	for (size_t i = 0; i < PLACES; i++) {
		unsigned killed = 0;
		for (int is_replacing = 0; is_replacing < 2; is_replacing++)
			for (unsigned nth = 1; kill_at(places[i], nth, is_replacing); nth++)
				killed++;
		assert_true(killed > 0);
	}
}

static void a_full_disk_at_any_step_leaves_the_old(void **state)
{
	static const char *const steps[] = { "envs.make", "envs.write", "envs.sync",
		"envs.rename" };
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const char *first = make("e_1", "one");
		struct env_meta meta = example("e_1");
		const char *second = publish_one(steps[i], "two", NULL);
		unsigned failed = 0;
		int end;
		vec_push(&arena, &meta.layers, second);
		while ((end = replace_with(
				arena_printf(&arena, "%s:%u:ENOSPC", steps[i], failed + 1),
				&meta)) == ERR_DISK_FULL) {
			failed++;
			assert_int_equal(count_names(".new-") + count_names(".old-"), 0);
			assert_string_equal(text_of("e_1/requirements.txt"), "a==1\n");
		}
		/* The step after the last one wasn't reached: it was replaced. */
		assert_int_equal(end, 0);
		assert_true(failed > 0);
		assert_whole_environment(first, second, false);
		assert_ok(env_remove(&envs, "e_1", false, &err));
	}
}

static void a_kill_while_it_is_removed_leaves_it_or_nothing(void **state)
{
	static const char *const steps[] = { "envs.evict:1", "envs.remove:1", "envs.collect:1",
		"envs.pin:1", "envs.use:1" };
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		const char *id = make("e_1", "one");
		int status;
		pid_t child = fork();
		if (child == 0) {
			setenv("CARREL_FAULT", steps[i], 1);
			close(use("e_1"));
			_exit(env_remove(&envs, "e_1", false, &err) ? 1 : 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_whole_environment(id, "none", true);
		uint64_t count, bytes;
		assert_ok(env_collect(&envs, &count, &bytes, &err));
		assert_int_equal(count_layers(), is_there("e_1"));
		assert_int_equal(count_names(".old-"), 0);
	}
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)
/* A terminal of 8 bits obeys 0x9b, and one of UTF-8 the same character in two bytes. */
static void the_log_of_a_job_has_no_control_characters(void **state)
{
	struct build_run run = { .log = buf_empty(4096) };
	const struct job_result result = { 0 };
	const text_list secrets = { 0 };
	auto_buf struct buf text = buf_empty(4096);
	buf_text(&text, "a\x9b"
			"2Jb\xc2\x9b"
			"2Jc\033[2Jd\x7f\xc3\xa9\xe2\x80\x93\t\n\xe2\x80");
	run_note_end(&run, &secrets, &text, &result);
	struct str log = { run.log.data, run.log.len };
	assert_true(str_starts_with(log, "a2Jb2Jc[2Jd\xc3\xa9\xe2\x80\x93\t\n\n("));
	buf_done(&run.log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_read_back),
		TEST(an_environment_without_requirements_costs_little),
		TEST(environments_of_one_lock_share_its_file),
		TEST(everything_belongs_to_the_owner_alone),
		TEST(environments_share_equal_texts),
		TEST(names_that_are_none_are_refused),
		TEST(a_package_id_means_the_one_last_built),
		TEST(what_is_damaged_is_said_to_be),
		TEST(a_missing_layer_or_interpreter_is_found_at_use),
		TEST(uses_are_counted_also_of_many_at_once),
		TEST(what_is_in_use_is_not_removed),
		TEST(a_replaced_one_lives_while_it_is_used),
		TEST(layers_go_with_their_last_environment),
		TEST(nothing_is_collected_beside_one_that_cant_be_read_and_runs),
		TEST(a_removal_does_not_wait_for_a_build),
		TEST(one_builder_of_a_name_at_a_time),
		TEST(many_who_replace_at_once_end_with_one),
		TEST(what_nobody_makes_any_more_is_swept),
		TEST(locks_that_no_environment_has_go_when_they_are_old),
		TEST(the_newest_thousand_locks_stay),
		TEST(a_link_in_the_place_of_an_environment_is_not_followed),
		TEST(a_failed_build_leaves_its_log),
		TEST(a_store_that_cant_be_written_says_so_and_still_serves),
		TEST(an_ext4_without_a_journal_is_known_as_such),
#ifdef CARREL_FAULTS
		TEST(a_kill_at_any_step_leaves_the_old_or_the_new),
		TEST(a_full_disk_at_any_step_leaves_the_old),
		TEST(a_kill_while_it_is_removed_leaves_it_or_nothing),
#endif
		TEST(the_log_of_a_job_has_no_control_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
