/* Copies, merges and diffs of layers against what the kernel's overlay shows of the same layers.
 * The layers are made by random changes inside mounted overlays. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/map.h"
#include "base/path.h"
#include "base/walk.h"
#include "linux/namespace.h"
#include "linux/overlay.h"
#include "trees/stacks/snapshots.h"
#include "unit.h"

#define LAYERS 6
#define ROUNDS 60

static char place[64];
static unsigned long seed = 20261116;

static unsigned pick(unsigned most)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 33) % most;
}

/* ---- in a mount namespace of its own, on a tmpfs ---- */

static int set_up(void **state)
{
	struct error err;
	snprintf(place, sizeof place, "/tmp/carrel-test-snapshots-XXXXXX");
	assert_non_null(mkdtemp(place));
	if (!overlay_takes_tmpfs() || namespace_enter_own(&err) || unshare(CLONE_NEWNS) ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("tmpfs", place, "tmpfs", 0, "size=256m")) {
		rmdir(place);
		place[0] = 0;
		return 0;
	}
	assert_int_equal(chdir(place), 0);
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(chdir("/"), 0);
	if (place[0]) {
		umount2(place, MNT_DETACH);
		rmdir(place);
	}
	return 0;
}

#define need_mounts()                                                                              \
	do {                                                                                       \
		if (!place[0])                                                                     \
			skip();                                                                    \
	} while (0)

static void clear(void)
{
	struct error err;
	auto_close int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_walk DIR *walk = walk_open(here, ".");
	struct dirent *entry;
	while ((entry = walk_next(walk)))
		assert_int_equal(path_remove_tree(here, entry->d_name, &err), 0);
	assert_int_equal(mkdir("0", 0755), 0); /* the lowest layer is empty */
	assert_int_equal(mkdir("mnt", 0755), 0);
	assert_int_equal(mkdir("other", 0755), 0);
}

/* names: of layers, topmost first. */
static void mount_layers(
	const char *target, const char *const *names, size_t count, const char *upper)
{
	char options[1024] = "userxattr";
	size_t len = strlen(options);
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(options + len, sizeof options - len, "%s%s",
			i ? ":" : ",lowerdir=", names[i]);
	if (count < 2 && !upper) /* an overlay without an upper has two layers at least */
		len += (size_t)snprintf(options + len, sizeof options - len, ":0/../mnt");
	if (upper) {
		char work[64];
		snprintf(work, sizeof work, "work%s", upper);
		assert_int_equal(mkdir(upper, 0755), 0);
		assert_int_equal(mkdir(work, 0755), 0);
		snprintf(options + len, sizeof options - len, ",upperdir=%s,workdir=%s", upper,
			work);
	}
	if (mount("overlay", target, "overlay", 0, options))
		fail_msg("mount %s: %s", options, strerror(errno));
}

/* ---- random changes ---- */

static void random_path(char out[64])
{
	int depth = 1 + (int)pick(3), len = 0;
	for (int i = 0; i < depth; i++)
		len += snprintf(out + len, 64 - (size_t)len, "%s%c", i ? "/" : "", 'a' + pick(4));
}

static void write_file(int dir, const char *path, const char *text)
{
	auto_close int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0644);
	if (fd >= 0)
		(void)!write(fd, text, strlen(text));
}

static void change(int root)
{
	static const char *const texts[] = { "one\n", "two\n", "longer text\n", "" };
	char path[64], other[64];
	struct error err;
	random_path(path);
	random_path(other);
	switch (pick(13)) {
	case 0:
	case 1:
	case 2:
		write_file(root, path, texts[pick(4)]);
		break;
	case 3:
	case 4:
	case 5:
		mkdirat(root, path, 0755);
		break;
	case 6: {
		char *slash = strrchr(path, '/');
		if (slash)
			*slash = 0;
		auto_close int dir =
			slash ? openat(root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) : dup(root);
		if (dir >= 0)
			path_remove_tree(dir, slash ? slash + 1 : path, &err);
		break;
	}
	case 7:
		symlinkat(other, root, path);
		break;
	case 8:
		fchmodat(root, path, pick(2) ? 0700 : 0755, 0);
		break;
	case 9:
		renameat(root, path, root, other);
		break;
	case 10:
		linkat(root, path, root, other, 0);
		break;
	case 11: {
		auto_close int fd = openat(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0)
			fsetxattr(fd, "user.note", "x", pick(2), 0);
		break;
	}
	case 12:
		if (pick(3) == 0)
			mkfifoat(root, path, 0600);
		else
			unlinkat(root, path, 0);
		break;
	}
}

static const char *const all_names[] = { "0", "1", "2", "3", "4", "5", "6" };

/* Layers 1 … LAYERS, each changed over all that are below it. */
static void make_layers(void)
{
	clear();
	for (int i = 1; i <= LAYERS; i++) {
		const char *lowers[LAYERS + 1];
		for (int j = 0; j < i; j++)
			lowers[j] = all_names[i - 1 - j];
		mount_layers("mnt", lowers, (size_t)i, all_names[i]);
		auto_close int root = open("mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		for (unsigned k = 0, changes = 1 + pick(60); k < changes; k++)
			change(root);
		fd_close(&root);
		assert_int_equal(umount("mnt"), 0);
	}
}

/* ---- a full walk of what is mounted ---- */

static void describe(int dir, const char *prefix, struct arena *arena, struct map *found)
{
	text_list names = { 0 };
	assert_int_equal(file_names(dir, ".", arena, &names), 0);
	for (size_t i = 0; i < names.count; i++) {
		const char *path = arena_printf(arena, "%s%s", prefix, names.items[i]);
		struct stat st;
		char text[128] = "", note[8] = "-";
		assert_int_equal(fstatat(dir, names.items[i], &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_false(S_ISCHR(st.st_mode)); /* no whiteout is seen */
		auto_close int fd = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)
					    ? openat(dir, names.items[i], O_RDONLY)
					    : -1;
		if (S_ISREG(st.st_mode))
			assert_true(read(fd, text, sizeof text - 1) >= 0);
		if (S_ISLNK(st.st_mode))
			assert_true(readlinkat(dir, names.items[i], text, sizeof text - 1) > 0);
		if (fd >= 0) {
			ssize_t len = fgetxattr(fd, "user.note", note, sizeof note - 1);
			snprintf(note, sizeof note, "%zd", len);
		}
		map_add(found, str_from(path),
			arena_printf(arena, "%o %s %s", st.st_mode, note, text));
		if (S_ISDIR(st.st_mode))
			describe(fd, arena_printf(arena, "%s/", path), arena, found);
	}
}

static void describe_layers(
	const char *const *names, size_t count, struct arena *arena, struct map *found)
{
	map_init(found, arena);
	mount_layers("mnt", names, count, NULL);
	auto_close int root = open("mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	describe(root, "", arena, found);
	fd_close(&root);
	assert_int_equal(umount("mnt"), 0);
}

static void assert_same(const struct map *a, const struct map *b)
{
	for (size_t i = 0; i < a->count; i++) {
		const char *other = map_get(b, a->entries[i].key);
		if (!other || strcmp(other, a->entries[i].value) != 0)
			fail_msg("%s: '%s', not '%s'", a->entries[i].key.data,
				other ? other : "absent", (char *)a->entries[i].value);
	}
	assert_int_equal(a->live, b->live);
}

/* ---- diff ---- */

struct collected {
	struct arena *arena;
	struct map found;
};

static int collect(void *ctx, const struct snapshot_difference *difference, struct error *err)
{
	struct collected *collected = ctx;
	map_add(&collected->found, str_from(difference->path),
		arena_printf(collected->arena, "%c", difference->change));
	return 0;
}

static char expected_change(const char *before, const char *after)
{
	if (!before || !after)
		return before ? 'D' : 'A';
	unsigned long a = strtoul(before, NULL, 8), b = strtoul(after, NULL, 8);
	return (a & S_IFMT) != (b & S_IFMT) ? 'T' : 'M';
}

static void check_diff(const char *const *before, size_t before_count, const char *const *after,
	size_t after_count, size_t shared)
{
	auto_arena struct arena arena = { 0 };
	struct map old, new;
	struct collected got = { .arena = &arena };
	int fds[2][LAYERS + 1];
	struct error err;
	size_t expected = 0;
	describe_layers(before, before_count, &arena, &old);
	describe_layers(after, after_count, &arena, &new);
	for (size_t i = 0; i < before_count; i++)
		fds[0][i] = open(before[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < after_count; i++)
		fds[1][i] = open(after[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct snapshot_diff diff = { .before = fds[0],
		.after = fds[1],
		.before_count = before_count,
		.after_count = after_count,
		.shared = shared };
	map_init(&got.found, &arena);
	if (snapshot_diff(&diff, collect, &got, &err))
		fail_msg("%s", err.text);
	for (int side = 0; side < 2; side++) {
		const struct map *map = side ? &new : &old;
		for (size_t i = 0; i < map->count; i++) {
			struct str key = map->entries[i].key;
			const char *a = map_get(&old, key), *b = map_get(&new, key);
			if ((side && a) || (a && b && !strcmp(a, b)))
				continue; /* seen before, or the same */
			const char *change = map_get(&got.found, key);
			expected++;
			if (!change || change[0] != expected_change(a, b))
				fail_msg("%s: %s -> %s was told as '%s'", key.data,
					a ? a : "absent", b ? b : "absent",
					change ? change : "nothing");
		}
	}
	assert_int_equal(got.found.live, expected);
	for (size_t i = 0; i < before_count; i++)
		fd_close(&fds[0][i]);
	for (size_t i = 0; i < after_count; i++)
		fd_close(&fds[1][i]);
}

static void names_from(int top, const char *out[LAYERS + 1])
{
	for (int i = 0; i <= top; i++)
		out[i] = all_names[top - i];
}

static void test_diff_is_that_of_full_walks(void **state)
{
	need_mounts();
	for (int round = 0; round < ROUNDS; round++) {
		const char *before[LAYERS + 1], *after[LAYERS + 1];
		int a = (int)pick(LAYERS), b = a + 1 + (int)pick((unsigned)(LAYERS - a));
		make_layers();
		names_from(a, before);
		names_from(b, after);
		check_diff(before, (size_t)a + 1, after, (size_t)b + 1, (size_t)a + 1);
		/* Back, and with fewer layers known to be shared. */
		check_diff(after, (size_t)b + 1, before, (size_t)a + 1, (size_t)a + 1);
		check_diff(before, (size_t)a + 1, after, (size_t)b + 1, pick((unsigned)a + 1));
	}
}

/* ---- merge ---- */

static void merge(int top, int bottom)
{
	int range[LAYERS + 1], below[LAYERS + 1];
	size_t count = 0, below_count = 0;
	struct error err;
	for (int i = top; i >= 0; i--) {
		int fd = open(all_names[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (i >= bottom)
			range[count++] = fd;
		else
			below[below_count++] = fd;
	}
	assert_int_equal(mkdir("merged", 0700), 0);
	auto_close int to = open("merged", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (snapshot_merge(range, count, below, below_count, to, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < count; i++)
		fd_close(&range[i]);
	for (size_t i = 0; i < below_count; i++)
		fd_close(&below[i]);
}

static void test_merged_layer_shows_what_its_layers_showed(void **state)
{
	need_mounts();
	for (int round = 0; round < ROUNDS; round++) {
		auto_arena struct arena arena = { 0 };
		const char *names[LAYERS + 2], *merged[LAYERS + 2];
		int bottom = 1 + (int)pick(LAYERS - 1);
		int top = bottom + 1 + (int)pick((unsigned)(LAYERS - bottom));
		size_t count = 0;
		struct map old, new;
		make_layers();
		names_from(LAYERS, names);
		describe_layers(names, LAYERS + 1, &arena, &old);
		merge(top, bottom);
		for (int i = LAYERS; i >= 0; i--)
			if (i > top || i < bottom)
				merged[count++] = all_names[i];
			else if (i == top)
				merged[count++] = "merged";
		describe_layers(merged, count, &arena, &new);
		assert_same(&old, &new);
	}
}

/* ---- copy and content id ---- */

static struct snapshot_content content_of(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct snapshot_content content;
	struct error err;
	if (snapshot_content_id(fd, &content, &err))
		fail_msg("%s", err.text);
	return content;
}

static struct snapshot_copy copy(const char *from, const char *to)
{
	struct snapshot_copy done;
	struct error err;
	assert_int_equal(mkdir(to, 0700), 0);
	auto_close int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int out = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (snapshot_copy(in, out, &done, &err))
		fail_msg("%s", err.text);
	return done;
}

static void test_copied_layer_shows_the_same_and_has_the_same_id(void **state)
{
	need_mounts();
	for (int round = 0; round < ROUNDS; round++) {
		auto_arena struct arena arena = { 0 };
		const char *names[LAYERS + 1];
		int which = 1 + (int)pick(LAYERS);
		struct map old, new;
		make_layers();
		names_from(LAYERS, names);
		describe_layers(names, LAYERS + 1, &arena, &old);
		copy(all_names[which], "copy");
		assert_string_equal(content_of(all_names[which]).id, content_of("copy").id);
		names[LAYERS - which] = "copy";
		describe_layers(names, LAYERS + 1, &arena, &new);
		assert_same(&old, &new);
	}
}

static void test_copy_keeps_holes_hard_links_times_and_locked_directories(void **state)
{
	struct stat st, other;
	need_mounts();
	clear();
	assert_int_equal(mkdir("from", 0755), 0);
	assert_int_equal(mkdir("from/locked", 0755), 0);
	auto_close int fd = open("from/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
	assert_int_equal(pwrite(fd, "end", 3, (off_t)1 << 40), 3);
	assert_int_equal(futimens(fd, (struct timespec[]){ { 1, 2 }, { 3, 4 } }), 0);
	write_file(AT_FDCWD, "from/one", "text");
	assert_int_equal(link("from/one", "from/locked/two"), 0);
	assert_int_equal(mknod("from/socket", S_IFSOCK | 0600, 0), 0);
	assert_int_equal(mknod("from/gone", S_IFCHR, makedev(0, 0)), 0);
	assert_int_equal(chmod("from/locked", 0), 0);
	struct snapshot_copy done = copy("from", "to");
	assert_int_equal(done.left_out, 1);
	assert_int_equal(done.files, 2);
	assert_true(done.bytes < 1 << 20);
	assert_int_equal(stat("to/sparse", &st), 0);
	assert_int_equal(st.st_size, ((off_t)1 << 40) + 3);
	assert_int_equal(st.st_mtim.tv_sec, 3);
	assert_int_equal(st.st_mtim.tv_nsec, 4);
	assert_int_equal(st.st_mode & 0777, 0444);
	assert_true(st.st_blocks * 512 < 1 << 20);
	assert_int_equal(stat("to/one", &st), 0);
	assert_int_equal(stat("to/locked/two", &other), 0);
	assert_true(st.st_ino == other.st_ino);
	assert_int_equal(stat("to/locked", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0);
	assert_int_equal(stat("to/gone", &st), 0);
	assert_true(stack_is_whiteout(&st));
	assert_int_equal(access("to/socket", F_OK), -1);
	assert_string_equal(content_of("from").id, content_of("to").id);
}

static void test_content_id_changes_with_each_part_of_an_entry(void **state)
{
	char last[65] = "";
	need_mounts();
	clear();
	assert_int_equal(mkdir("tree", 0755), 0);
	for (int step = 0; step < 8; step++) {
		switch (step) {
		case 1:
			write_file(AT_FDCWD, "tree/file", "text");
			break;
		case 2:
			write_file(AT_FDCWD, "tree/file", "texT");
			break;
		case 3:
			assert_int_equal(chmod("tree/file", 0600), 0);
			break;
		case 4:
			assert_int_equal(setxattr("tree/file", "user.a", "b", 1, 0), 0);
			break;
		case 5:
			assert_int_equal(rename("tree/file", "tree/fil"), 0);
			break;
		case 6:
			assert_int_equal(symlink("x", "tree/link"), 0);
			break;
		case 7:
			assert_int_equal(mknod("tree/gone", S_IFCHR, makedev(0, 0)), 0);
			break;
		}
		struct snapshot_content content = content_of("tree");
		assert_string_not_equal(content.id, last);
		memcpy(last, content.id, sizeof last);
	}
	/* Times and marks of where a file was copied from aren't content. */
	assert_int_equal(utimensat(AT_FDCWD, "tree/fil", NULL, 0), 0);
	assert_int_equal(setxattr("tree/fil", "user.overlay.origin", "b", 1, 0), 0);
	assert_string_equal(content_of("tree").id, last);
	/* Zeros are the same as a hole. */
	assert_int_equal(truncate("tree/fil", 300000), 0);
	memcpy(last, content_of("tree").id, sizeof last);
	auto_close int fd = open("tree/fil", O_WRONLY | O_CLOEXEC);
	char zeros[4096] = { 0 };
	assert_int_equal(pwrite(fd, zeros, sizeof zeros, 200000), sizeof zeros);
	assert_string_equal(content_of("tree").id, last);
}

/* ---- diff of one directory over another: what is told ---- */

static void test_a_mode_alone_is_told_as_such_and_an_equal_copy_not_at_all(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct collected got = { .arena = &arena };
	struct error err;
	need_mounts();
	clear();
	map_init(&got.found, &arena);
	const char *const dirs[] = { "low", "up" };
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mkdir(dirs[i], 0755), 0);
		auto_close int fd = open(dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		write_file(fd, "same", "text");
		write_file(fd, "mode", "text");
		write_file(fd, "text", i ? "new" : "old");
	}
	assert_int_equal(chmod("up/mode", 0755), 0);
	auto_close int low = open("low", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int up = open("up", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int before[] = { low }, after[] = { up, low };
	struct snapshot_diff diff = {
		.before = before, .after = after, .before_count = 1, .after_count = 2, .shared = 1
	};
	assert_int_equal(snapshot_diff(&diff, collect, &got, &err), 0);
	assert_int_equal(got.found.live, 2);
	assert_string_equal(map_get(&got.found, STR("mode")), "M");
	assert_string_equal(map_get(&got.found, STR("text")), "M");
	text_list paths = { 0 };
	vec_push(&arena, &paths, "text");
	diff.paths = &paths;
	map_init(&got.found, &arena);
	assert_int_equal(snapshot_diff(&diff, collect, &got, &err), 0);
	assert_int_equal(got.found.live, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_diff_is_that_of_full_walks),
		cmocka_unit_test(test_merged_layer_shows_what_its_layers_showed),
		cmocka_unit_test(test_copied_layer_shows_the_same_and_has_the_same_id),
		cmocka_unit_test(test_copy_keeps_holes_hard_links_times_and_locked_directories),
		cmocka_unit_test(test_content_id_changes_with_each_part_of_an_entry),
		cmocka_unit_test(test_a_mode_alone_is_told_as_such_and_an_equal_copy_not_at_all),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
