/* Trees packed and unpacked on this host: what goes in comes out, and an archive from a sandbox
 * does nothing outside its place. */
/* security: files */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "cli/workspaces/tree.h"
#include "tree_fixture.h"
#include "unit.h"

static char root_path[] = "/tmp/carrel-test-tree-XXXXXX";
static int root = -1;

static int set_up(void **state)
{
	snprintf(root_path, sizeof root_path, "/tmp/carrel-test-tree-XXXXXX");
	assert_non_null(mkdtemp(root_path));
	root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	assert_int_equal(mkdirat(root, "place", 0755), 0);
	assert_int_equal(mkdirat(root, "place/outside", 0755), 0);
	assert_int_equal(mkdirat(root, "place/in", 0755), 0);
	return 0;
}

static int tear_down(void **state)
{
	struct error err;
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd_close(&root);
	return path_remove_tree(tmp, path_basename(root_path), &err);
}

/* Entries with the bytes of `text` for files, unpacked into place/in as `name`. */
struct given {
	struct tar_entry entry;
	const char *text;
};
static int unpack_given(const struct given *given, size_t count, const char *name,
	uint64_t *outward, struct error *err)
{
	auto_buf struct buf out;
	struct unpack unpack;
	auto_close int place = openat(root, "place/in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	buf_init(&out, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < count; i++) {
		struct tar_entry entry = given[i].entry;
		entry.size = given[i].text ? strlen(given[i].text) : 0;
		assert_int_equal(tar_write_entry(&out, &entry, err), 0);
		if (given[i].text)
			buf_text(&out, given[i].text);
		tar_write_padding(&out, entry.size);
	}
	tar_write_end(&out);
	int failed = unpack_begin(&unpack, place, err);
	for (size_t at = 0; !failed && at < out.len; at += 100)
		failed = tree_unpack_add(&unpack.tree,
			(struct str){ out.data + at, out.len - at < 100 ? out.len - at : 100 },
			err);
	if (!failed)
		failed = unpack_finish(&unpack, name, 0755, err);
	if (outward)
		*outward = unpack.tree.outward.count;
	unpack_done(&unpack);
	return failed;
}

static size_t count_names(const char *path)
{
	auto_close int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t bytes, inodes;
	struct error err;
	assert_int_equal(path_measure_tree(fd, &bytes, &inodes, &err), 0);
	return inodes - 1;
}

static void a_tree_comes_out_as_it_went_in(void **state)
{
	struct error err;
	struct pack pack;
	struct unpack unpack;
	struct tree_note left_out;
	char data[1000];
	ssize_t got;
	static char long_name[201];
	memset(long_name, 'n', 200);
	assert_int_equal(mkdirat(root, "from", 0755), 0);
	assert_int_equal(mkdirat(root, "from/d", 0755), 0);
	auto_close int from = openat(root, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	write_file(from, "a", "hello", 0640);
	write_file(from, "d/run", "#!", 0755);
	write_file(from, long_name, "long", 0600);
	write_file(from, "d/\xff\xfe", "bytes", 04644);
	assert_int_equal(symlinkat("d/run", from, "l"), 0);
	assert_int_equal(mkfifoat(from, "fifo", 0600), 0);
	assert_int_equal(fchmodat(from, "d", 0555, 0), 0);
	auto_close int place = openat(root, "place/in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(pack_begin(&pack, from, &err), 0);
	assert_int_equal(unpack_begin(&unpack, place, &err), 0);
	while ((got = read(pack.archive, data, sizeof data)) > 0)
		assert_int_equal(
			tree_unpack_add(&unpack.tree, (struct str){ data, (size_t)got }, &err), 0);
	assert_int_equal(pack_finish(&pack, &left_out, &err), 0);
	assert_int_equal(left_out.count, 1);
	assert_int_equal(unpack_finish(&unpack, "t", 0755, &err), 0);
	assert_int_equal(unpack.tree.left_out.count, 0);
	unpack_done(&unpack);
	struct stat st;
	assert_file(root, "place/in/t/a", "hello", 0640);
	assert_file(root, "place/in/t/d/run", "#!", 0755);
	assert_file(root, "place/in/t/d/\xff\xfe", "bytes", 0644);
	assert_int_equal(fstatat(root, "place/in/t/d", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
	assert_int_equal(readlinkat(root, "place/in/t/l", data, sizeof data), 5);
	assert_false(is_there(root, "place/in/t/fifo"));
	assert_int_equal(count_names("place/in"), 7);
	/* Another time it goes into what is there, read-only directories and all. */
	auto_close int again = openat(root, "place/in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	write_file(from, "a", "again", 0600);
	assert_int_equal(fchmodat(root, "place/in/t/d", 0755, 0), 0);
	assert_int_equal(pack_begin(&pack, from, &err), 0);
	assert_int_equal(unpack_begin(&unpack, again, &err), 0);
	while ((got = read(pack.archive, data, sizeof data)) > 0)
		assert_int_equal(
			tree_unpack_add(&unpack.tree, (struct str){ data, (size_t)got }, &err), 0);
	assert_int_equal(pack_finish(&pack, &left_out, &err), 0);
	assert_int_equal(unpack_finish(&unpack, "t", 0755, &err), 0);
	unpack_done(&unpack);
	assert_file(root, "place/in/t/a", "again", 0600);
	assert_int_equal(count_names("place/in"), 7);
}

static void a_tree_that_cannot_be_read_makes_no_whole_archive(void **state)
{
	struct error err;
	struct pack pack;
	struct tar_reader reader;
	struct tree_note left_out;
	char data[1000];
	ssize_t got;
	int step = TAR_MORE;
	static char name[255];
	memset(name, 'n', sizeof name - 1);
	/* A path longer than an archive holds. */
	assert_int_equal(mkdirat(root, "from", 0755), 0);
	auto_close int from = openat(root, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int dir = dup(from);
	for (int i = 0; i < 17; i++) {
		assert_int_equal(mkdirat(dir, name, 0755), 0);
		int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(dir);
		dir = next;
	}
	close(dir);
	tar_reader_init(&reader);
	assert_int_equal(pack_begin(&pack, from, &err), 0);
	while (step != -1 && (got = read(pack.archive, data, sizeof data)) > 0) {
		struct str input = { data, (size_t)got }, bytes;
		do
			step = tar_read(&reader, &input, &bytes, &err);
		while (step == TAR_ENTRY || step == TAR_DATA);
	}
	assert_int_equal(step, -1);
	assert_int_equal(pack_finish(&pack, &left_out, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	tar_reader_done(&reader);
}

static void names_that_lead_out_are_refused_and_nothing_is_left(void **state)
{
	static const char *const names[] = { "../outside/x", "/tmp/carrel-test-x", "a/../../x",
		".." };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct error err;
		const struct given given[] = {
			{ { TAR_FILE, "first", NULL, 0, 0644, 1 }, "1" },
			{ { TAR_FILE, names[i], NULL, 0, 0644, 1 }, "2" },
		};
		assert_int_equal(unpack_given(given, 2, "t", NULL, &err), -1);
		assert_int_equal(err.code, ERR_DENIED);
		assert_int_equal(count_names("place/in"), 0);
		assert_int_equal(count_names("place/outside"), 0);
	}
}

static void links_come_as_they_are_and_nothing_goes_through_one(void **state)
{
	struct error err;
	uint64_t outward_count;
	char text[64];
	const struct given outward[] = {
		{ { TAR_SYMLINK, "abs", "/etc/passwd", 0, 0777, 1 }, NULL },
		{ { TAR_SYMLINK, "up", "../outside", 0, 0777, 1 }, NULL },
		{ { TAR_SYMLINK, "d/in", "../x", 0, 0777, 1 }, NULL },
		{ { TAR_FILE, "x", NULL, 0, 0644, 1 }, "1" },
	};
	assert_int_equal(unpack_given(outward, 4, "t", &outward_count, &err), 0);
	assert_int_equal(outward_count, 2);
	assert_int_equal(readlinkat(root, "place/in/t/abs", text, sizeof text), 11);
	assert_memory_equal(text, "/etc/passwd", 11);
	assert_file(root, "place/in/t/x", "1", 0644);
	/* One that is there already is neither followed nor a directory. */
	const struct given again[] = {
		{ { TAR_DIRECTORY, "up", NULL, 0, 0755, 1 }, NULL },
		{ { TAR_FILE, "up/x", NULL, 0, 0644, 1 }, "1" },
	};
	assert_int_equal(unpack_given(again, 2, "t", NULL, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(count_names("place/outside"), 0);
	const struct given beneath[] = {
		{ { TAR_SYMLINK, "up", "../outside", 0, 0777, 1 }, NULL },
		{ { TAR_FILE, "up/x", NULL, 0, 0644, 1 }, "1" },
	};
	assert_int_equal(unpack_given(beneath, 2, "v", NULL, &err), -1);
	assert_int_equal(count_names("place/outside"), 0);
	/* A link that stays, and then something "in" it. */
	const struct given through[] = {
		{ { TAR_DIRECTORY, "d", NULL, 0, 0755, 1 }, NULL },
		{ { TAR_SYMLINK, "l", "d", 0, 0777, 1 }, NULL },
		{ { TAR_FILE, "l/x", NULL, 0, 0644, 1 }, "1" },
	};
	assert_int_equal(unpack_given(through, 3, "u", NULL, &err), -1);
	assert_false(is_there(root, "place/in/u"));
	const struct given hard[] = {
		{ { TAR_SYMLINK, "l", "d", 0, 0777, 1 }, NULL },
		{ { TAR_HARDLINK, "h", "l", 0, 0644, 1 }, NULL },
	};
	assert_int_equal(unpack_given(hard, 2, "u", NULL, &err), -1);
	const struct given out[] = {
		{ { TAR_HARDLINK, "h", "../outside/x", 0, 0644, 1 }, NULL },
	};
	write_file(root, "place/outside/x", "theirs", 0600);
	assert_int_equal(unpack_given(out, 1, "u", NULL, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_false(is_there(root, "place/in/u"));
}

static void no_setuid_bit_comes_out_and_hard_links_stay_links(void **state)
{
	struct error err;
	struct stat a, b;
	const struct given given[] = {
		{ { TAR_FILE, "s", NULL, 0, 06755, 1 }, "1" },
		{ { TAR_HARDLINK, "d/h", "s", 0, 06755, 1 }, NULL },
		{ { TAR_DIRECTORY, "g", NULL, 0, 03777, 1 }, NULL },
	};
	assert_int_equal(unpack_given(given, 3, "t", NULL, &err), 0);
	assert_file(root, "place/in/t/s", "1", 0755);
	assert_int_equal(fstatat(root, "place/in/t/s", &a, 0), 0);
	assert_int_equal(fstatat(root, "place/in/t/d/h", &b, 0), 0);
	assert_true(a.st_ino == b.st_ino);
	assert_int_equal(fstatat(root, "place/in/t/g", &a, 0), 0);
	assert_int_equal(a.st_mode & 07777, 0777);
}

/* Somebody who can write to the stage replaces a directory by a link, again and again. */
static pid_t start_swapping(int stage)
{
	pid_t parent = getpid(), pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		renameat2(stage, "swapped", stage, "d", RENAME_EXCHANGE);
	_exit(0);
}

static void a_hard_link_never_leads_out_of_the_stage(void **state)
{
	struct error err;
	struct unpack unpack;
	struct stat st;
	char name[16];
	size_t linked = 0;
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	auto_close int place = openat(root, "place/in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	write_file(root, "place/outside/f", "theirs", 0600);
	struct tar_entry entry = { TAR_FILE, "d/f", NULL, 0, 0644, 1 };
	assert_int_equal(tar_write_entry(&out, &entry, &err), 0);
	assert_int_equal(unpack_begin(&unpack, place, &err), 0);
	assert_int_equal(tree_unpack_add(&unpack.tree, (struct str){ out.data, out.len }, &err), 0);
	assert_int_equal(symlinkat("../../outside", unpack.stage, "swapped"), 0);
	pid_t swapping = start_swapping(unpack.stage);
	for (int i = 0; i < 4000; i++) {
		snprintf(name, sizeof name, "h%d", i);
		entry = (struct tar_entry){ TAR_HARDLINK, name, "d/f", 0, 0644, 1 };
		buf_clear(&out);
		assert_int_equal(tar_write_entry(&out, &entry, &err), 0);
		/* Refused when the link is there at that moment. */
		linked += !tree_unpack_add(&unpack.tree, (struct str){ out.data, out.len }, &err);
	}
	kill(swapping, SIGKILL);
	waitpid(swapping, NULL, 0);
	assert_true(linked > 0);
	assert_int_equal(fstatat(root, "place/outside/f", &st, 0), 0);
	assert_int_equal(st.st_nlink, 1);
	unpack_done(&unpack);
}

static void merging_never_goes_through_a_link_of_the_target(void **state)
{
	struct error err;
	const struct given given[] = {
		{ { TAR_FILE, "first", NULL, 0, 0644, 1 }, "1" },
		{ { TAR_FILE, "d/x", NULL, 0, 0644, 1 }, "2" },
	};
	assert_int_equal(mkdirat(root, "place/in/t", 0755), 0);
	assert_int_equal(symlinkat("../../outside", root, "place/in/t/d"), 0);
	assert_int_equal(unpack_given(given, 2, "t", NULL, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	/* Found before anything moved. */
	assert_false(is_there(root, "place/in/t/first"));
	assert_int_equal(count_names("place/outside"), 0);
	assert_int_equal(count_names("place/in"), 2);
	/* A file where a directory is, and the other way round. */
	assert_int_equal(unlinkat(root, "place/in/t/d", 0), 0);
	write_file(root, "place/in/t/d", "file", 0600);
	assert_int_equal(unpack_given(given, 2, "t", NULL, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(unlinkat(root, "place/in/t/d", 0), 0);
	assert_int_equal(mkdirat(root, "place/in/t/first", 0755), 0);
	assert_int_equal(unpack_given(given, 2, "t", NULL, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	/* A link where a file comes is replaced, not written through. */
	assert_int_equal(unlinkat(root, "place/in/t/first", AT_REMOVEDIR), 0);
	write_file(root, "place/outside/x", "theirs", 0600);
	assert_int_equal(symlinkat("../../outside/x", root, "place/in/t/first"), 0);
	assert_int_equal(unpack_given(given, 2, "t", NULL, &err), 0);
	assert_file(root, "place/outside/x", "theirs", 0600);
	assert_file(root, "place/in/t/first", "1", 0644);
}

static void an_archive_that_is_cut_changes_nothing(void **state)
{
	struct error err;
	struct unpack unpack;
	auto_buf struct buf out;
	auto_close int place = openat(root, "place/in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct tar_entry entry = { TAR_FILE, "a", NULL, 600, 0644, 1 };
	buf_init(&out, BUF_MAX_DEFAULT);
	assert_int_equal(tar_write_entry(&out, &entry, &err), 0);
	buf_text(&out, "only so far");
	assert_int_equal(unpack_begin(&unpack, place, &err), 0);
	assert_int_equal(tree_unpack_add(&unpack.tree, (struct str){ out.data, out.len }, &err), 0);
	assert_int_equal(unpack_finish(&unpack, "t", 0755, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
	unpack_done(&unpack);
	assert_int_equal(count_names("place/in"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tree_comes_out_as_it_went_in),
		TEST(a_tree_that_cannot_be_read_makes_no_whole_archive),
		TEST(names_that_lead_out_are_refused_and_nothing_is_left),
		TEST(links_come_as_they_are_and_nothing_goes_through_one),
		TEST(no_setuid_bit_comes_out_and_hard_links_stay_links),
		TEST(a_hard_link_never_leads_out_of_the_stage),
		TEST(merging_never_goes_through_a_link_of_the_target),
		TEST(an_archive_that_is_cut_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
