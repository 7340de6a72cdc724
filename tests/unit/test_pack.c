/* trees/stacks/pack.c and trees/stacks/unpack.c: a layer comes back as it was; hostile archives
 * don't. */
/* security: files */
#include "trees/stacks/pack.h"

#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/file.h"
#include "format/archives/tar.h"
#include "path_fixture.h"
#include "trees/stacks/snapshots.h"
#include "unit.h"

static struct error err;

/* A file in `out`, opened for reading from its beginning. */
static int scratch(const char *name)
{
	int fd = openat(in, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void fill_layer(int layer)
{
	put_dir(layer, "d");
	put_file(layer, "d/a", "hello");
	put_file(layer, "d/with space \xff", "not UTF-8");
	assert_int_equal(linkat(layer, "d/a", layer, "d/b", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", layer, "link"), 0);
	assert_int_equal(mknodat(layer, "d/gone", S_IFCHR, makedev(0, 0)), 0);
	assert_int_equal(mkfifoat(layer, "fifo", 0600), 0);
	put_dir(layer, "opaque");
	int fd = openat(layer, "opaque", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0), 0);
	close(fd);
	fd = openat(layer, "d/a", O_RDWR | O_CLOEXEC);
	assert_int_equal(fsetxattr(fd, "user.color", "\0red", 4, 0), 0);
	close(fd);
	fd = openat(layer, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0640);
	assert_int_equal(pwrite(fd, "x", 1, 50 << 20), 1);
	assert_int_equal(ftruncate(fd, 100 << 20), 0);
	close(fd);
	put_dir(layer, "shut");
	put_file(layer, "shut/f", "x");
	assert_int_equal(fchmodat(layer, "d", 01777, 0), 0);
	assert_int_equal(fchmodat(layer, "shut", 0500, 0), 0);
}

static void pack_layer(int layer, int to)
{
	struct packer packer;

	packer_init(&packer, to, true);
	assert_int_equal(packer_add_layer(&packer, "workspace", layer, &err), 0);
	assert_int_equal(packer_end(&packer, &err), 0);
	packer_done(&packer);
	assert_int_equal(lseek(to, 0, SEEK_SET), 0);
}

static void a_layer_comes_back_with_its_content_id(void **state)
{
	struct snapshot_content before, after;
	struct unpacked done;
	struct stat st;

	put_dir(in, "layer");
	put_dir(in, "stage");
	auto_close int layer = open_dir(in, "layer"), stage = open_dir(in, "stage");
	auto_close int archive = scratch("archive");
	fill_layer(layer);
	pack_layer(layer, archive);
	assert_int_equal(fstat(archive, &st), 0);
	assert_true(st.st_size < 1 << 20); /* holes are holes */
	assert_int_equal(pack_unpack(archive, stage, true, UINT64_MAX, NULL, NULL, &done, &err), 0);
	auto_close int part = open_dir(stage, "workspace");
	assert_int_equal(snapshot_content_id(layer, &before, &err), 0);
	assert_int_equal(snapshot_content_id(part, &after, &err), 0);
	assert_string_equal(before.id, after.id);
	assert_int_equal(fstatat(part, "sparse", &st, 0), 0);
	assert_true(st.st_blocks < 1000);
	assert_int_equal(fstatat(part, "d/b", &st, 0), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(faccessat(stage, PACK_MARKS, F_OK, 0), -1);
}

static void merged_trees_are_ordinary_files(void **state)
{
	struct unpacked done;
	struct packer packer;
	char text[16];

	put_dir(in, "upper");
	put_dir(in, "lower");
	put_dir(in, "stage");
	auto_close int upper = open_dir(in, "upper"), lower = open_dir(in, "lower");
	auto_close int stage = open_dir(in, "stage"), archive = scratch("archive");
	put_file(lower, "kept", "lower");
	put_file(lower, "gone", "lower");
	put_file(lower, "changed", "lower");
	put_file(upper, "changed", "upper");
	assert_int_equal(mknodat(upper, "gone", S_IFCHR, makedev(0, 0)), 0);
	packer_init(&packer, archive, false);
	const int both[] = { upper, lower };
	assert_int_equal(packer_add_merged(&packer, "workspace", both, 2, &err), 0);
	assert_int_equal(packer_add_text(&packer, "carrel.json", STR("{}"), &err), 0);
	assert_int_equal(packer_end(&packer, &err), 0);
	packer_done(&packer);
	assert_int_equal(lseek(archive, 0, SEEK_SET), 0);
	assert_int_equal(
		pack_unpack(archive, stage, false, UINT64_MAX, NULL, NULL, &done, &err), 0);
	assert_int_equal(fd_read_file(stage, "workspace/kept", text, sizeof text), 5);
	assert_int_equal(fd_read_file(stage, "workspace/changed", text, sizeof text), 5);
	assert_string_equal(text, "upper");
	assert_int_equal(faccessat(stage, "workspace/gone", F_OK, 0), -1);
	assert_int_equal(fd_read_file(stage, "carrel.json", text, sizeof text), 2);
}

static void a_cut_archive_and_a_full_disk_are_errors(void **state)
{
	struct unpacked done;
	struct stat st;

	put_dir(in, "layer");
	put_dir(in, "stage");
	put_dir(in, "stage2");
	auto_close int layer = open_dir(in, "layer"), stage = open_dir(in, "stage");
	auto_close int stage2 = open_dir(in, "stage2"), archive = scratch("archive");
	fill_layer(layer);
	pack_layer(layer, archive);
	assert_int_equal(pack_unpack(archive, stage, true, 8192, NULL, NULL, &done, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_true(done.is_over);
	assert_int_equal(fstat(archive, &st), 0);
	assert_int_equal(ftruncate(archive, st.st_size - 1024), 0);
	assert_int_equal(lseek(archive, 0, SEEK_SET), 0);
	assert_int_equal(
		pack_unpack(archive, stage2, true, UINT64_MAX, NULL, NULL, &done, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
}

/* A file "workspace/f", a link "workspace/l" out of the tree, and these marks. */
static int unpack_with(const char *marks, bool is_layer, const char *stage_name)
{
	auto_buf struct buf tar = buf_empty(1 << 20);
	auto_close int archive = scratch("archive");
	struct unpacked done;
	const struct tar_entry entries[] = {
		{ .kind = TAR_DIRECTORY, .name = "workspace", .mode = 0755 },
		{ .kind = TAR_FILE, .name = "workspace/f", .mode = 0644 },
		{ .kind = TAR_SYMLINK, .name = "workspace/l", .link = "../../out", .mode = 0777 },
		{ .kind = TAR_FILE, .name = PACK_MARKS, .mode = 0644, .size = strlen(marks) },
	};

	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
		assert_int_equal(tar_write_entry(&tar, &entries[i], &err), 0);
	buf_text(&tar, marks);
	tar_write_padding(&tar, strlen(marks));
	tar_write_end(&tar);
	assert_int_equal(write(archive, tar.data, tar.len), (ssize_t)tar.len);
	assert_int_equal(lseek(archive, 0, SEEK_SET), 0);
	put_dir(in, stage_name);
	auto_close int stage = open_dir(in, stage_name);
	return pack_unpack(archive, stage, is_layer, UINT64_MAX, NULL, NULL, &done, &err);
}

static void marks_stay_in_the_archive(void **state)
{
	static const char *const bad[] = { "{\"whiteouts\":[\"../x\"]}",
		"{\"whiteouts\":[\"workspace/l/x\"]}", "{\"whiteouts\":[\"/etc/x\"]}",
		"{\"whiteouts\":[\"workspace/..\"]}", "{\"whiteouts\":[\"workspace/f\"]}",
		"{\"whiteouts\":[1]}", "{\"fifos\":[\"workspace/l/x\"]}",
		"{\"opaque\":[\"workspace/l\"]}", "{\"attributes\":[[\"workspace/f\"]]}",
		"{\"attributes\":[[\"workspace/f\",\"user.overlay.redirect\",\"eA==\"]]}",
		"{\"attributes\":[[\"workspace/f\",\"security.capability\",\"eA==\"]]}",
		"{\"attributes\":[[\"workspace/l/secret\",\"user.x\",\"eA==\"]]}",
		"{\"modes\":[[\"workspace/f\",99999]]}", "not json", "{\"whiteouts\":[\"%00\"]}" };
	char name[16];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		str_format(name, sizeof name, "stage%zu", i);
		assert_int_equal(unpack_with(bad[i], true, name), -1);
	}
	assert_int_equal(unpack_with("{\"modes\":[[\"workspace/f\",2541]]}", false, "x"), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(unpack_with("{\"modes\":[[\"workspace/f\",2541]]}", true, "y"), -1);
	assert_int_equal(unpack_with("{\"modes\":[[\"workspace/f\",1005]]}", true, "s"), 0);
	assert_int_equal(unpack_with("{\"whiteouts\":[\"workspace/g\"]}", false, "z"), 0);
}

int main(void)
{
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		IN_PLACE(a_layer_comes_back_with_its_content_id),
		IN_PLACE(merged_trees_are_ordinary_files),
		IN_PLACE(a_cut_archive_and_a_full_disk_are_errors),
		IN_PLACE(marks_stay_in_the_archive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
