/* Changes as an archive: what they are to a target, and how they come into it. */
/* security: files */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/id.h"
#include "base/path.h"
#include "trees/stacks/bundle.h"
#include "trees/stacks/snapshots.h"
#include "unit.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

static char place[64];
static int root; /* the directory `place` */

static int set_up(void **state)
{
	static const char *const names[] = { "before", "after", "target", "area" };
	str_copy(place, sizeof place, "/tmp/carrel-test-bundle-XXXXXX");
	assert_non_null(mkdtemp(place));
	root = open(place, DIRECTORY);
	assert_true(root >= 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(mkdirat(root, names[i], 0755), 0);
	return 0;
}

static int tear_down(void **state)
{
	struct error err;
	auto_close int tmp = open("/tmp", DIRECTORY);
	fd_close(&root);
	assert_int_equal(path_remove_tree(tmp, path_basename(place), &err), 0);
	return 0;
}

/* NULL: nothing; "d": a directory; "l…": a link; "p": a fifo; "f…", "x…": a file with that content,
 * "x" one that can be executed. */
static void make(const char *tree, const char *path, const char *what)
{
	char whole[256];
	if (!what)
		return;
	str_format(whole, sizeof whole, "%s/%s", tree, path);
	switch (what[0]) {
	case 'd':
		assert_int_equal(mkdirat(root, whole, 0755), 0);
		return;
	case 'l':
		assert_int_equal(symlinkat(what + 1, root, whole), 0);
		return;
	case 'p':
		assert_int_equal(mkfifoat(root, whole, 0644), 0);
		return;
	default:
		assert_int_equal(file_create(root, whole, 0600, str_from(what + 1)), 0);
		assert_int_equal(fchmodat(root, whole, what[0] == 'x' ? 0755 : 0644, 0), 0);
	}
}

static void assert_is(const char *tree, const char *path, const char *what)
{
	auto_arena struct arena arena = { 0 };
	char whole[256], target[64] = "";
	struct stat st;
	struct str text;
	str_format(whole, sizeof whole, "%s/%s", tree, path);
	if (!what) {
		assert_int_equal(fstatat(root, whole, &st, AT_SYMLINK_NOFOLLOW), -1);
		return;
	}
	assert_int_equal(fstatat(root, whole, &st, AT_SYMLINK_NOFOLLOW), 0);
	if (what[0] == 'd') {
		assert_true(S_ISDIR(st.st_mode));
	} else if (what[0] == 'l') {
		assert_true(readlinkat(root, whole, target, sizeof target - 1) >= 0);
		assert_string_equal(target, what + 1);
	} else {
		assert_int_equal(file_read_at(root, whole, 4096, &arena, &text), 0);
		assert_string_equal(text.data, what + 1);
		assert_int_equal(st.st_mode & 0777, what[0] == 'x' ? 0755 : 0644);
	}
}

static int on_difference(void *ctx, const struct snapshot_difference *difference, struct error *err)
{
	return bundle_out_add(ctx, difference, err);
}

/* From "before" to "after". */
static int write_bundle(void)
{
	struct error err = { 0 };
	struct bundle_out out;
	int fd = openat(root, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	auto_close int before = openat(root, "before", DIRECTORY);
	auto_close int after = openat(root, "after", DIRECTORY);
	const struct snapshot_diff diff = {
		.before = &before, .after = &after, .before_count = 1, .after_count = 1
	};
	bundle_out_init(&out, fd);
	assert_int_equal(snapshot_diff(&diff, on_difference, &out, &err), 0);
	assert_int_equal(bundle_out_end(&out, &err), 0);
	bundle_out_done(&out);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

struct row {
	const char *path, *before, *after, *target;
	enum bundle_result result;
	const char *then; /* in the target */
};
static const struct row rows[] = {
	{ "added", NULL, "fnew", NULL, BUNDLE_TAKE, "fnew" },
	{ "added-same", NULL, "fnew", "fnew", BUNDLE_SAME, "fnew" },
	{ "added-mode", NULL, "xnew", "fnew", BUNDLE_TAKE, "xnew" },
	{ "changed", "fold", "fnew", "fold", BUNDLE_TAKE, "fnew" },
	{ "changed-same", "fold", "fnew", "fnew", BUNDLE_SAME, "fnew" },
	{ "changed-own-mode", "fold", "fnew", "xold", BUNDLE_TAKE, "fnew" },
	{ "mode", "fold", "xold", "fold", BUNDLE_TAKE, "xold" },
	{ "deleted", "fold", NULL, "fold", BUNDLE_TAKE, NULL },
	{ "deleted-same", "fold", NULL, NULL, BUNDLE_SAME, NULL },
	{ "link", "lold", "lnew", "lold", BUNDLE_TAKE, "lnew" },
	{ "dir", NULL, "d", NULL, BUNDLE_TAKE, "d" },
	{ "dir/in", NULL, "fnew", NULL, BUNDLE_TAKE, "fnew" },
	{ "there", NULL, "d", "d", BUNDLE_SAME, "d" },
	{ "there/in", NULL, "fnew", NULL, BUNDLE_TAKE, "fnew" },
	{ "gone", "d", NULL, "d", BUNDLE_TAKE, NULL },
	{ "gone/in", "fold", NULL, "fold", BUNDLE_TAKE, NULL },
	{ "to-dir", "fold", "d", "fold", BUNDLE_TAKE, "d" },
	{ "to-dir/in", NULL, "fnew", NULL, BUNDLE_TAKE, "fnew" },
	{ "to-file", "d", "fnew", "d", BUNDLE_TAKE, "fnew" },
	{ "to-file/in", "fold", NULL, "fold", BUNDLE_TAKE, NULL },
	{ "to-link", "fold", "l/etc/passwd", "fold", BUNDLE_TAKE, "l/etc/passwd" },
	{ "pipe", NULL, "p", NULL, BUNDLE_REFUSED, NULL },
	{ ".carrel-apply-x", NULL, "fnew", NULL, BUNDLE_REFUSED, NULL },
};
static const struct row conflicts[] = {
	{ "both", "fold", "fnew", "fother", BUNDLE_CONFLICT, "fother" },
	{ "both-new", NULL, "fnew", "fother", BUNDLE_CONFLICT, "fother" },
	{ "removed", "fold", "fnew", NULL, BUNDLE_CONFLICT, NULL },
	{ "deleted", "fold", NULL, "fother", BUNDLE_CONFLICT, "fother" },
	{ "link", "lold", "lnew", "lother", BUNDLE_CONFLICT, "lother" },
	{ "type", "fold", "fnew", "lold", BUNDLE_CONFLICT, "lold" },
	{ "file-dir", NULL, "fnew", "d", BUNDLE_CONFLICT, "d" },
	{ "no-place", "d", "d", NULL, BUNDLE_SAME, NULL }, /* not in the list */
	{ "no-place/in", NULL, "fnew", NULL, BUNDLE_CONFLICT, NULL },
	{ "led", "d", "d", "l/tmp", BUNDLE_SAME, "l/tmp" }, /* nor this one */
	{ "led/in", NULL, "fnew", NULL, BUNDLE_CONFLICT, NULL },
	{ "kept", "d", NULL, "d", BUNDLE_CONFLICT, "d" },
	{ "kept/in", "fold", NULL, "fold", BUNDLE_TAKE, "fold" },
	{ "kept/other", NULL, NULL, "fother", BUNDLE_SAME, "fother" }, /* nor this one */
	{ "fine", NULL, "fnew", NULL, BUNDLE_TAKE, NULL },
};

static void make_all(const struct row *row, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		make("before", row[i].path, row[i].before);
		make("after", row[i].path, row[i].after);
		if (strcmp(row[i].path, "led/in") != 0)
			make("target", row[i].path, row[i].target);
	}
}

static void judge(struct bundle *bundle, int *area, int *target)
{
	struct error err = { 0 };
	auto_close int fd = write_bundle();
	*area = openat(root, "area", DIRECTORY);
	*target = openat(root, "target", DIRECTORY);
	bundle_init(bundle);
	assert_int_equal(bundle_read(bundle, fd, *area, UINT64_MAX, NULL, &err), 0);
	assert_int_equal(bundle_judge(bundle, *target, &err), 0);
}

static void check_results(const struct bundle *bundle, const struct row *row, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct bundle_change *change = map_get(&bundle->paths, str_from(row[i].path));
		if (change && change->result != row[i].result)
			fail_msg("%s: %s, not %s", row[i].path, bundle_result_names[change->result],
				bundle_result_names[row[i].result]);
		assert_true(change || row[i].result == BUNDLE_SAME);
	}
}

static void test_changes_come_into_a_target_that_has_what_they_were_made_on(void **state)
{
	const size_t count = sizeof rows / sizeof *rows;
	auto_close int area = -1, target = -1;
	struct error err = { 0 };
	struct bundle bundle;
	make_all(rows, count);
	judge(&bundle, &area, &target);
	check_results(&bundle, rows, count);
	const struct apply where = { .target = target,
		.journal = area,
		.name = "target",
		.uid = (uid_t)-1,
		.gid = (gid_t)-1 };
	assert_int_equal(bundle_apply(&bundle, &where, &err), 0);
	for (size_t i = 0; i < count; i++)
		assert_is("target", rows[i].path, rows[i].then);
	bundle_done(&bundle);
}

static void test_conflicts_are_all_named_and_change_nothing(void **state)
{
	const size_t count = sizeof conflicts / sizeof *conflicts;
	auto_close int area = -1, target = -1;
	struct error err = { 0 };
	struct bundle bundle;
	make_all(conflicts, count);
	judge(&bundle, &area, &target);
	check_results(&bundle, conflicts, count);
	const struct apply where = { .target = target, .journal = area, .name = "target" };
	assert_int_equal(bundle_apply(&bundle, &where, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	for (size_t i = 0; i < count; i++)
		if (strcmp(conflicts[i].path, "led/in") != 0)
			assert_is("target", conflicts[i].path, conflicts[i].then);
	bundle_done(&bundle);
}

static void test_what_changes_after_it_was_judged_is_a_conflict(void **state)
{
	auto_close int area = -1, target = -1;
	struct error err = { 0 };
	struct bundle bundle;
	make("before", "file", "fold");
	make("after", "file", "fnew");
	make("target", "file", "fold");
	judge(&bundle, &area, &target);
	assert_int_equal(unlinkat(target, "file", 0), 0);
	make("target", "file", "flate");
	const struct apply where = { .target = target, .journal = area, .name = "target" };
	assert_int_equal(bundle_apply(&bundle, &where, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_is("target", "file", "flate");
	bundle_done(&bundle);
}

static void test_a_hostile_list_is_refused(void **state)
{
	static const char *const lists[] = { "A - - f0644 ../x\n", "A - - f0644 /x\n",
		"A - - f0644 a/../x\n", "A - - f0644 \n", "A - - f0644 a%00b\n", "A - - f9644 x\n",
		"A - - q0644 x\n", "A f0644 - f0644 x\n", "M - - f0644 x\n", "D f0644 - - x\n",
		"D f0644 abcd - x\n", "A - - f0644 x\nA - - f0644 x\n", "X - - f0644 x\n", "A\n",
		"A - - - x\n", "A - - f0644 x/\n", NULL };
	for (size_t i = 0; lists[i]; i++) {
		struct error err = { 0 };
		struct bundle bundle;
		auto_close int fd = openat(root, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		auto_close int area = openat(root, "area", DIRECTORY);
		struct bundle_out out;
		bundle_out_init(&out, fd);
		buf_text(&out.list, lists[i]);
		assert_int_equal(bundle_out_end(&out, &err), 0);
		bundle_out_done(&out);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		bundle_init(&bundle);
		assert_int_equal(bundle_read(&bundle, fd, area, UINT64_MAX, NULL, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		bundle_done(&bundle);
		assert_int_equal(path_remove_tree(area, BUNDLE_PLACE, &err), 0);
	}
}

/* The area also holds the journal, which says what is undone where. */
static void test_an_archive_replaces_nothing_of_the_area(void **state)
{
	const struct tar_entry forged = { .kind = TAR_FILE, .name = "journal", .mode = 0600 };
	struct error err = { 0 };
	struct bundle bundle;
	struct bundle_out out;
	auto_close int fd = openat(root, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	auto_close int area = openat(root, "area", DIRECTORY);
	make("area", "journal", "fours");
	bundle_out_init(&out, fd);
	assert_int_equal(tree_out_entry(&out.out, &forged, &err), 0);
	assert_int_equal(bundle_out_end(&out, &err), 0);
	bundle_out_done(&out);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	bundle_init(&bundle);
	bundle_read(&bundle, fd, area, UINT64_MAX, NULL, &err);
	bundle_done(&bundle);
	assert_is("area", "journal", "fours");
}

static void test_a_list_without_its_files_applies_nothing(void **state)
{
	struct error err = { 0 };
	struct bundle bundle;
	struct bundle_out out;
	auto_close int fd = openat(root, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	auto_close int area = openat(root, "area", DIRECTORY);
	auto_close int target = openat(root, "target", DIRECTORY);
	bundle_out_init(&out, fd);
	buf_text(&out.list, "A - - f0644 x\n");
	assert_int_equal(bundle_out_end(&out, &err), 0);
	bundle_out_done(&out);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	bundle_init(&bundle);
	assert_int_equal(bundle_read(&bundle, fd, area, UINT64_MAX, NULL, &err), 0);
	assert_int_equal(bundle_judge(&bundle, target, &err), 0);
	assert_int_equal(bundle.results[BUNDLE_REFUSED], 1);
	bundle_done(&bundle);
}

static void test_what_a_process_left_that_was_killed_is_undone(void **state)
{
	static const struct {
		const char *path, *before;
	} all[] = { { "a", "fold" }, { "b", "d" }, { "b/in", "fold" }, { "c", NULL } };
	auto_close int area = openat(root, "area", DIRECTORY);
	auto_close int target = openat(root, "target", DIRECTORY);
	struct error err = { 0 };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		make("target", all[i].path, all[i].before);
	/* As if it had been killed before its last step. */
	static const char steps[] = "Db/in\0Db\0Ma\0Ac";
	char id[ID_LEN + 1], name[sizeof APPLY_STAGE + ID_LEN];
	auto_buf struct buf text = buf_empty(4096);
	id_make(id);
	str_format(name, sizeof name, APPLY_STAGE "%s", id);
	buf_append(&text, name, strlen(name) + 1);
	buf_append(&text, steps, sizeof steps);
	assert_int_equal(
		file_create(area, "journal", 0600, (struct str){ text.data, text.len }), 0);
	assert_int_equal(mkdirat(target, name, 0700), 0);
	auto_close int stage = openat(target, name, DIRECTORY);
	assert_int_equal(mkdirat(stage, "old", 0700) | mkdirat(stage, "new", 0700), 0);
	assert_int_equal(renameat(target, "b/in", stage, "old/0"), 0);
	assert_int_equal(renameat(target, "b", stage, "old/1"), 0);
	assert_int_equal(renameat(target, "a", stage, "old/2"), 0);
	make("target", "a", "fnew");
	assert_int_equal(file_create(stage, "new/3", 0644, STR("new")), 0);
	assert_int_equal(apply_recover(target, area, "target", &err), 0);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		assert_is("target", all[i].path, all[i].before);
	assert_int_equal(faccessat(target, name, F_OK, 0), -1);
	assert_int_equal(apply_recover(target, area, "target", &err), 0); /* nothing is left */
}

static void test_a_stage_that_was_replaced_is_left_alone(void **state)
{
	char id[ID_LEN + 1], name[sizeof APPLY_STAGE + ID_LEN];
	auto_close int area = openat(root, "area", DIRECTORY);
	auto_close int target = openat(root, "target", DIRECTORY);
	auto_buf struct buf text = buf_empty(4096);
	struct error err = { 0 };
	id_make(id);
	str_format(name, sizeof name, APPLY_STAGE "%s", id);
	buf_append(&text, name, strlen(name) + 1);
	buf_append(&text, "Aa", 3);
	make("target", "a", "fold");
	/* Others may write to it: it is not as Carrel made it. */
	assert_int_equal(mkdirat(target, name, 0755), 0);
	auto_close int stage = openat(target, name, DIRECTORY);
	assert_int_equal(fchmod(stage, 0777), 0);
	assert_int_equal(mkdirat(stage, "old", 0700) | mkdirat(stage, "new", 0700), 0);
	assert_int_equal(
		file_create(area, "journal", 0600, (struct str){ text.data, text.len }), 0);
	assert_int_equal(apply_recover(target, area, "target", &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_is("target", "a", "fold");
	assert_int_equal(faccessat(stage, "old", F_OK, 0), 0);
	assert_int_equal(apply_recover(target, area, "target", &err), 0); /* it is said once */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_changes_come_into_a_target_that_has_what_they_were_made_on, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_conflicts_are_all_named_and_change_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_changes_after_it_was_judged_is_a_conflict, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_hostile_list_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_archive_replaces_nothing_of_the_area, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_list_without_its_files_applies_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_a_process_left_that_was_killed_is_undone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_stage_that_was_replaced_is_left_alone, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
