#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "trees/stacks/internal.h"

#define CHUNK ((size_t)64 << 10)

struct comparing {
	const struct snapshot_diff *asked;
	snapshot_difference_fn *fn;
	void *ctx;
	struct buf path;
	unsigned depth;
	unsigned first_before, first_after; /* of the shared layers */
};

/* ---- two entries ---- */

/* Reads only where one of both has data: a sparse file can be huge. */
static int compare_content(int a, int b, off_t size, bool *is_same)
{
	char one[CHUNK], other[CHUNK];
	off_t at = 0;
	*is_same = true;
	while (at < size) {
		off_t next_a = lseek(a, at, SEEK_DATA), next_b = lseek(b, at, SEEK_DATA);
		if (next_a < 0 && next_b < 0)
			return errno == ENXIO ? 0 : -1;
		off_t next = next_a < 0 || (next_b >= 0 && next_b < next_a) ? next_b : next_a;
		if (next > at)
			at = next;
		ssize_t len = pread(a, one, CHUNK, at), len_b = pread(b, other, CHUNK, at);
		if (len < 0 || len_b < 0)
			return -1;
		if (len != len_b || memcmp(one, other, (size_t)len) != 0) {
			*is_same = false;
			return 0;
		}
		if (!len)
			return 0;
		at += len;
	}
	return 0;
}

static int compare_attributes(int a, int b, bool *is_same, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	attribute_list one, other;
	if (attributes_read(a, false, &arena, &one, err) ||
		attributes_read(b, false, &arena, &other, err))
		return -1;
	*is_same = attributes_equal(&one, &other);
	return 0;
}

static int compare_files(const struct stack_entry *a, const struct stack_entry *b, const char *name,
	bool *is_same, bool *is_meta, struct error *err)
{
	auto_close int one = -1;
	auto_close int other = -1;
	struct stat st_a, st_b;
	bool has_same_content, has_same_attributes;
	if (a->st.st_size != b->st.st_size)
		return 0;
	if (stack_open_file(a->dir, name, &one, &st_a, err) ||
		stack_open_file(b->dir, name, &other, &st_b, err))
		return err->code == ERR_NOT_FOUND ? 0 : -1; /* gone meanwhile: it differs */
	if (compare_content(one, other, a->st.st_size, &has_same_content))
		return fail_errno(err, "compare '%s'", name);
	if (!has_same_content)
		return 0;
	if (compare_attributes(one, other, &has_same_attributes, err))
		return -1;
	*is_same = has_same_attributes && a->st.st_mode == b->st.st_mode;
	*is_meta = !*is_same;
	return 0;
}

static int compare_directories(const struct stack_entry *a, const struct stack_entry *b,
	const char *name, bool *is_same, struct error *err)
{
	auto_close int one = fd_open_directory(a->dir, name);
	auto_close int other = fd_open_directory(b->dir, name);
	*is_same = false;
	if (one < 0 || other < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : fail_errno(err, "open directory '%s'", name);
	if (compare_attributes(one, other, is_same, err))
		return -1;
	*is_same &= a->st.st_mode == b->st.st_mode;
	return 0;
}

static int compare_links(
	const struct stack_entry *a, const struct stack_entry *b, const char *name, bool *is_same)
{
	char one[PATH_MAX], other[PATH_MAX];
	ssize_t len = readlinkat(a->dir, name, one, sizeof one);
	*is_same = len >= 0 && readlinkat(b->dir, name, other, sizeof other) == len &&
		   !memcmp(one, other, (size_t)len);
	return 0;
}

int snapshot_is_same(const struct stack_entry *a, const struct stack_entry *b, const char *name,
	bool *is_same, bool *is_meta, struct error *err)
{
	*is_meta = false;
	*is_same = a->is_there == b->is_there;
	if (!a->is_there || !b->is_there)
		return 0;
	*is_same = a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
	if (*is_same || (a->st.st_mode & S_IFMT) != (b->st.st_mode & S_IFMT))
		return 0;
	switch (a->st.st_mode & S_IFMT) {
	case S_IFREG:
		return compare_files(a, b, name, is_same, is_meta, err);
	case S_IFDIR:
		*is_meta = true;
		return compare_directories(a, b, name, is_same, err);
	case S_IFLNK:
		return compare_links(a, b, name, is_same);
	default:
		*is_same = a->st.st_mode == b->st.st_mode && a->st.st_rdev == b->st.st_rdev;
		*is_meta = a->st.st_rdev == b->st.st_rdev;
		return 0;
	}
}

/* ---- two trees ---- */

static int compare_children(struct comparing *comparing, const struct stack_dir *before,
	const struct stack_dir *after, struct error *err);

/* At a path that was asked for, below one, or on the way to one. *is_shown: not only on the way. */
static bool is_asked(const struct comparing *comparing, bool *is_shown)
{
	const text_list *paths = comparing->asked->paths;
	const struct str path = { comparing->path.data, comparing->path.len };
	*is_shown = !paths || !paths->count;
	bool is_on_way = *is_shown;
	for (size_t i = 0; paths && i < paths->count && !*is_shown; i++) {
		const struct str asked = str_from(paths->items[i]);
		*is_shown = !asked.len ||
			    (path.len >= asked.len && !memcmp(path.data, asked.data, asked.len) &&
				    (path.len == asked.len || path.data[asked.len] == '/'));
		is_on_way |= *is_shown || (asked.len > path.len && asked.data[path.len] == '/' &&
						  !memcmp(asked.data, path.data, path.len));
	}
	return is_on_way;
}

static bool is_excepted(const struct comparing *comparing, const char *name)
{
	const char *const *at = comparing->depth == 1 ? comparing->asked->except : NULL;
	while (at && *at && strcmp(*at, name))
		at++;
	return at && *at;
}

static int tell(struct comparing *comparing, const struct stack_entry *before,
	const struct stack_entry *after, const char *name, struct error *err)
{
	bool is_same, is_meta;
	if (snapshot_is_same(before, after, name, &is_same, &is_meta, err))
		return error_context(err, "'%s'", comparing->path.data);
	if (is_same)
		return 0;
	bool is_other_type = before->is_there && after->is_there &&
			     (before->st.st_mode & S_IFMT) != (after->st.st_mode & S_IFMT);
	const struct snapshot_difference difference = { .path = comparing->path.data,
		.change = !before->is_there  ? SNAPSHOT_ADDED
			  : !after->is_there ? SNAPSHOT_DELETED
			  : is_other_type    ? SNAPSHOT_TYPE
					     : SNAPSHOT_MODIFIED,
		.before = *before,
		.after = *after,
		.is_meta = is_meta };
	return comparing->fn(comparing->ctx, &difference, err);
}

static int compare_entry(struct comparing *comparing, const struct stack_dir *before,
	const struct stack_dir *after, const char *name, struct error *err)
{
	struct stack_entry old, new;
	auto_stack struct stack_dir old_dir = { 0 };
	auto_stack struct stack_dir new_dir = { 0 };
	bool is_shown;
	if (is_excepted(comparing, name) || !is_asked(comparing, &is_shown))
		return 0;
	if (stack_look(before, name, &old, err) || stack_look(after, name, &new, err))
		return -1;
	is_shown |= comparing->asked->with_parents && new.is_there &&S_ISDIR(new.st.st_mode) &&
		    !(old.is_there && S_ISDIR(old.st.st_mode));
	if (is_shown && tell(comparing, &old, &new, name, err))
		return -1;
	if (old.is_there && S_ISDIR(old.st.st_mode) && stack_enter(before, name, &old_dir, err))
		return -1;
	if (new.is_there && S_ISDIR(new.st.st_mode) && stack_enter(after, name, &new_dir, err))
		return -1;
	return old_dir.count || new_dir.count ? compare_children(comparing, &old_dir, &new_dir, err)
					      : 0;
}

/* How many parts of `dir` come from layers that aren't shared. */
static size_t count_own(const struct stack_dir *dir, unsigned first_shared)
{
	size_t count = 0;
	while (count < dir->count && dir->parts[count].layer < first_shared)
		count++;
	return count;
}

static int compare_children(struct comparing *comparing, const struct stack_dir *before,
	const struct stack_dir *after, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	text_list old, new;
	size_t own_before = count_own(before, comparing->first_before);
	size_t own_after = count_own(after, comparing->first_after);
	/* The shared layers show the same in both, unless a mark hides them in one. */
	bool is_shared = (own_before == before->count) == (own_after == after->count);
	size_t last_before = is_shared ? own_before : before->count;
	size_t last_after = is_shared ? own_after : after->count;
	if (comparing->depth >= STACK_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' has more than %d directories below each other",
			comparing->path.data, STACK_DEPTH_MAX);
	comparing->depth++;
	if (stack_names(before, 0, last_before, &arena, &old, err) ||
		stack_names(after, 0, last_after, &arena, &new, err))
		return -1;
	for (size_t i = 0, j = 0; i < old.count || j < new.count;) {
		int order = i == old.count   ? 1
			    : j == new.count ? -1
					     : strcmp(old.items[i], new.items[j]);
		const char *name = order <= 0 ? old.items[i] : new.items[j];
		i += order <= 0;
		j += order >= 0;
		size_t len = path_push(&comparing->path, name);
		if (compare_entry(comparing, before, after, name, err))
			return -1;
		path_pop(&comparing->path, len);
	}
	comparing->depth--;
	return 0;
}

int snapshot_diff(
	const struct snapshot_diff *diff, snapshot_difference_fn *fn, void *ctx, struct error *err)
{
	auto_stack struct stack_dir before = { 0 };
	auto_stack struct stack_dir after = { 0 };
	struct comparing comparing = { .asked = diff,
		.fn = fn,
		.ctx = ctx,
		.path = buf_empty(1 << 20),
		.first_before = (unsigned)(diff->before_count - diff->shared),
		.first_after = (unsigned)(diff->after_count - diff->shared) };
	if (stack_open(&before, diff->before, diff->before_count, err) ||
		stack_open(&after, diff->after, diff->after_count, err))
		return -1;
	int failed = compare_children(&comparing, &before, &after, err);
	buf_done(&comparing.path);
	return failed;
}
