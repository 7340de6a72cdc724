/* Work on trees, asked of a launcher: the process is this program again, by the name of the role.
 */
/* security: daemon */
#include <dirent.h>
#include <sys/mman.h>
#include "base/file.h"
#include "base/walk.h"
#include "format/text/json_read.h"
#include "launch/trees/tree_job.h"
#include "launch_fixture.h"

static char programs[64]; /* a directory that holds this program as carrel-build */

static int setup_trees(void **state)
{
	char own[4096], path[128];
	ssize_t len = readlink("/proc/self/exe", own, sizeof own - 1);
	own[len > 0 ? len : 0] = 0;
	str_copy(programs, sizeof programs, "/var/tmp/carrel-test-program-XXXXXX");
	if (!mkdtemp(programs) || chmod(programs, 0755))
		return -1;
	str_format(path, sizeof path, "%s/carrel-build", programs);
	if (symlink(own, path))
		return -1;
	setenv("PATH", programs, 1);
	if (setup(state))
		return -1;
	make_directory(*state, "layers");
	make_directory(*state, "run/secret");
	return 0;
}

static int teardown_trees(void **state)
{
	auto_close int tmp = open("/var/tmp", O_PATH | O_DIRECTORY);
	struct error err;
	setenv("PATH", "/usr/bin:/bin", 1);
	return path_remove_tree(tmp, path_basename(programs), &err) || teardown(state);
}

static void put(struct fixture *f, const char *path, const char *text, mode_t mode)
{
	home_enter(&f->home);
	int failed = file_create(f->home.dir, path, mode, str_from(text));
	home_leave(&f->home);
	assert_int_equal(failed, 0);
}

struct asked {
	uint64_t tag;
	int answer;
};

static struct asked ask_tree(struct fixture *f, const char *const *strings, size_t count,
	const char *options, int output)
{
	struct launch_message head = { .type = LAUNCH_TREE };
	struct asked asked = { .answer = memfd_create("answer", MFD_CLOEXEC) };
	auto_close int input = memfd_create("input", MFD_CLOEXEC);
	auto_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_true(fd_write_full(input, options, strlen(options)) >= 0);
	assert_int_equal(lseek(input, 0, SEEK_SET), 0);
	const int fds[] = { input, asked.answer, output >= 0 ? output : null };
	asked.tag = say_full(f, &head, strings, count, fds, 3);
	return asked;
}

static const char *finish(struct fixture *f, struct asked asked, int exit_code)
{
	char *text = arena_alloc(&f->arena, 65536);
	int got = hear_answer(f, asked.tag, LAUNCH_DONE)->value;
	assert_true(pread(asked.answer, text, 65535, 0) >= 0);
	close(asked.answer);
	if (got != exit_code)
		fail_msg("ended with %d: %s", got, text);
	return text;
}
#define DO(f, exit_code, options, ...)                                                             \
	finish(f,                                                                                  \
		ask_tree(f, (const char *const[]){ __VA_ARGS__ },                                  \
			sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), options,    \
			-1),                                                                       \
		exit_code)

static bool is_there(struct fixture *f, const char *path)
{
	struct stat st;
	home_enter(&f->home);
	bool found = !fstatat(f->home.dir, path, &st, AT_SYMLINK_NOFOLLOW);
	home_leave(&f->home);
	return found;
}

static void a_workspace_is_copied_merged_and_compared_by_names(void **state)
{
	struct fixture *f = *state;
	struct arena *a = &f->arena;
	const char *id = make_workspace(f);
	char text[4096];
	auto_close int output = memfd_create("output", MFD_CLOEXEC);
	put(f, arena_printf(a, "workspaces/%s/upper/one", id), "1", 0644);
	make_directory(f, arena_printf(a, "workspaces/%s/upper/locked", id));
	put(f, arena_printf(a, "workspaces/%s/upper/locked/in", id), "2", 0);
	home_enter(&f->home);
	assert_int_equal(
		fchmodat(f->home.dir, arena_printf(a, "workspaces/%s/upper/locked", id), 0, 0), 0);
	home_leave(&f->home);
	assert_non_null(strstr(DO(f, 0, "", "copy", id, "snap-1"), "\"files\":2"));
	assert_true(is_there(f, "layers/snap-1/workspace/one"));
	assert_false(is_there(f, "layers/snap-1/env")); /* it has no changes */
	assert_false(is_there(f, "layers/.tree-snap-1"));
	/* A name that is taken is not replaced. */
	assert_non_null(strstr(DO(f, 1, "", "copy", id, "snap-1"), "\"conflict\""));
	put(f, arena_printf(a, "workspaces/%s/upper/two", id), "22", 0644);
	assert_non_null(strstr(DO(f, 0, "", "copy", id, "snap-2"), "\"files\":3"));
	DO(f, 0, "", "merge", "snap-3", "snap-2", "snap-1");
	assert_true(is_there(f, "layers/snap-3/workspace/two"));
	finish(f,
		ask_tree(f, (const char *const[]){ "diff", id, "", "snap-1", "", "snap-1" }, 6, "",
			output),
		0);
	ssize_t len = pread(output, text, sizeof text - 1, 0);
	assert_true(len > 0);
	text[len] = 0;
	assert_string_equal(text,
		"{\"items\":[{\"path\":\"two\",\"change\":\"A\",\"type\":\"file\","
		"\"size_before\":null,\"size_after\":2}],\"next_cursor\":null}");
	/* The parts of both are the same, and a byte that changes is found. */
	const char *said = DO(f, 0, "", "hash", "snap-2", "snap-3");
	const char *first = strstr(said, "content_id"), *second = strstr(first + 1, "content_id");
	assert_memory_equal(first, second, 70);
	assert_null(strstr(DO(f, 0, "", "verify", "snap-2", "snap-1"), "changed"));
	home_enter(&f->home);
	auto_close int file = openat(f->home.dir, "layers/snap-2/workspace/two", O_WRONLY);
	home_leave(&f->home);
	assert_int_equal(pwrite(file, "X", 1, 0), 1);
	said = DO(f, 0, "", "verify", "snap-1", "snap-2", "snap-9");
	assert_non_null(strstr(said, "\"changed\""));
	assert_non_null(strstr(said, "\"missing\""));
}

static void a_link_in_the_home_leads_nowhere(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	home_enter(&f->home);
	assert_int_equal(symlinkat("/etc", f->home.dir, "layers/snap-1"), 0);
	assert_int_equal(symlinkat("../run/secret", f->home.dir, "layers/snap-2"), 0);
	assert_int_equal(unlinkat(f->home.dir, arena_printf(&f->arena, "workspaces/%s/upper", id),
				 AT_REMOVEDIR),
		0);
	assert_int_equal(
		symlinkat("/etc", f->home.dir, arena_printf(&f->arena, "workspaces/%s/upper", id)),
		0);
	home_leave(&f->home);
	DO(f, 1, "", "hash", "snap-1");
	DO(f, 1, "", "measure", "snap-2");
	DO(f, 1, "", "copy", id, "snap-3");
	DO(f, 1, "", "sweep", "run");
	assert_non_null(strstr(DO(f, 1, "", "pour"), "unknown verb"));
	assert_true(is_there(f, "run/secret"));
	/* A descriptor that core couldn't read or write through. */
	struct launch_message head = { .type = LAUNCH_TREE };
	auto_close int shadow = open("/etc/shadow", O_PATH | O_CLOEXEC);
	auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const int sets[][3] = { { shadow, null, null }, { null, null, null } };
	for (int i = 0; i < 2; i++) {
		uint64_t tag = say_full(f, &head, (const char *const[]){ "sweep" }, 1, sets[i], 3);
		hear_answer(f, tag, LAUNCH_FAILED);
		assert_int_equal(f->packet.head.error_code, ERR_DENIED);
	}
}

/* A child of the launcher by that name. */
static pid_t find_process(struct fixture *f)
{
	char path[64], text[4096], name[32];
	str_format(path, sizeof path, "/proc/%d/task/%d/children", f->launcher, f->launcher);
	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof text) >= 0);
	struct str rest = str_from(text), piece;
	while (str_next(&rest, ' ', &piece)) {
		pid_t pid = (pid_t)strtol(piece.data, NULL, 10);
		str_format(path, sizeof path, "/proc/%d/comm", pid);
		if (fd_read_file(AT_FDCWD, path, name, sizeof name) > 0 &&
			!strcmp(name, TREE_ARGV0 "\n"))
			return pid;
	}
	return 0;
}

static void the_process_has_its_owners_files_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	struct launch_message cancel = { .type = LAUNCH_CANCEL };
	char path[256], text[8192], line[256];
	const char *id = make_workspace(f);
	int ends[2];
	auto_buf struct buf big = buf_empty(1 << 22);
	while (big.len < 1 << 21)
		buf_text(&big, "a line\n");
	put(f, arena_printf(&f->arena, "workspaces/%s/upper/big", id), big.data, 0644);
	/* It waits for a reader: nobody reads on. */
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	struct asked asked =
		ask_tree(f, (const char *const[]){ "diff", id }, 2, "{\"patch\": true}", ends[1]);
	close(ends[1]);
	assert_true(read(ends[0], text, 100) > 0);
	pid_t pid = find_process(f);
	assert_true(pid > 0);
	str_format(path, sizeof path, "/proc/%d/status", pid);
	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	assert_non_null(strstr(text, "NoNewPrivs:\t1\n"));
	assert_non_null(strstr(text, "Seccomp:\t2\n"));
	assert_non_null(strstr(text, "CapEff:\t000000000000000e\n"));
	assert_non_null(strstr(text, "CapInh:\t0000000000000000\n"));
	str_format(
		line, sizeof line, "Uid:\t%u\t%u\t", (unsigned)f->home.uid, (unsigned)f->home.uid);
	assert_non_null(strstr(text, line));
	if (geteuid() == 0) { /* what it sees of the home */
		auto_arena struct arena arena = { 0 };
		text_list names = { 0 };
		str_format(path, sizeof path, "/proc/%d/root%s", pid, f->home.path);
		assert_int_equal(file_names(AT_FDCWD, path, &arena, &names), 0);
		assert_int_equal(names.count, 2);
		assert_string_equal(names.items[0], "layers");
		assert_string_equal(names.items[1], "workspaces");
	}
	cancel.other = asked.tag;
	say_full(f, &cancel, NULL, 0, NULL, 0);
	assert_int_equal(hear_answer(f, asked.tag, LAUNCH_DONE)->value, 137);
	close(asked.answer);
	close(ends[0]);
}

int main(int argc, char **argv)
{
	STAND_IN_MAIN(argc, argv);
	if (!strcmp(argv[0], TREE_ARGV0))
		return tree_main(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_trees, teardown_trees)
	const struct CMUnitTest tests[] = {
		TEST(a_workspace_is_copied_merged_and_compared_by_names),
		TEST(a_link_in_the_home_leads_nowhere),
		TEST(the_process_has_its_owners_files_and_nothing_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
