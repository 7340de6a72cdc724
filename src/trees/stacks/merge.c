/* A whiteout or an opaque mark is kept only where layers below the merged ones have that name: an
 * overlay shows whiteouts as devices in a directory that it merges with no other. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "trees/stacks/internal.h"

struct merging {
	struct buf path;
	unsigned depth;
};

static int merge_directory(struct merging *merging, const struct stack_dir *range,
	const struct stack_dir *below, int to, struct error *err);

static int fail_at(const struct merging *merging, const char *what, struct error *err)
{
	return fail_errno(err, "%s '%s'", what, merging->path.data);
}

static int merge_child(struct merging *merging, const struct stack_dir *range,
	const struct stack_dir *below, const char *name, int to, struct error *err)
{
	auto_stack struct stack_dir in = { 0 };
	auto_stack struct stack_dir under = { 0 };
	if (stack_enter(range, name, &in, err))
		return -1;
	if (!in.count)
		return fail(
			err, ERR_CONFLICT, "'%s' changed while it was merged", merging->path.data);
	/* What the range itself hides is not merged with the layers below. */
	if (stack_enter(below, name, &under, err))
		return -1;
	bool is_opaque = in.is_cut && under.count > 0;
	if (in.is_cut)
		stack_done(&under);
	if (mkdirat(to, name, 0700))
		return fail_at(merging, "create", err);
	auto_close int out = fd_open_directory(to, name);
	if (out < 0)
		return fail_at(merging, "open", err);
	if (is_opaque && fsetxattr(out, STACK_OPAQUE, "y", 1, 0))
		return fail_at(merging, "mark", err);
	return merge_directory(merging, &in, &under, out, err);
}

static int merge_file(struct merging *merging, const struct stack_entry *entry, const char *name,
	int to, struct error *err)
{
	struct snapshot_copy copied;
	if (!linkat(entry->dir, name, to, name, 0))
		return 0;
	/* EMLINK: ext4 allows 65,000 names of a file. */
	if (errno != EXDEV && errno != EMLINK && errno != EPERM)
		return fail_at(merging, "link", err);
	return snapshot_copy_entry(entry->dir, name, to, name, &copied, err);
}

static int merge_entry(struct merging *merging, const struct stack_dir *range,
	const struct stack_dir *below, const char *name, int to, struct error *err)
{
	struct stack_entry entry, under;
	if (stack_look(range, name, &entry, err))
		return -1;
	if (!entry.is_there) {
		if (!entry.is_cut || stack_look(below, name, &under, err))
			return entry.is_cut ? -1 : 0;
		if (!under.is_there || !linkat(entry.dir, name, to, name, 0))
			return 0;
		return stack_make_whiteout(to, name) ? fail_at(merging, "create", err) : 0;
	}
	if (S_ISDIR(entry.st.st_mode))
		return merge_child(merging, range, below, name, to, err);
	return merge_file(merging, &entry, name, to, err);
}

static int merge_directory(struct merging *merging, const struct stack_dir *range,
	const struct stack_dir *below, int to, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	text_list names;
	if (merging->depth >= STACK_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' has more than %d directories below each other",
			merging->path.data, STACK_DEPTH_MAX);
	merging->depth++;
	if (stack_names(range, 0, range->count, &arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		size_t len = path_push(&merging->path, names.items[i]);
		if (merge_entry(merging, range, below, names.items[i], to, err))
			return -1;
		path_pop(&merging->path, len);
	}
	fault_point("snapshots_merged_directory");
	merging->depth--;
	return directory_dress(range->parts[0].fd, to, false, err);
}

int snapshot_merge(const int *range, size_t count, const int *below, size_t below_count, int to,
	struct error *err)
{
	auto_stack struct stack_dir upper = { 0 };
	auto_stack struct stack_dir lower = { 0 };
	struct merging merging = { .path = buf_empty(1 << 20) };
	if (stack_open(&upper, range, count, err) || stack_open(&lower, below, below_count, err))
		return -1;
	int failed = upper.count ? merge_directory(&merging, &upper, &lower, to, err) : 0;
	buf_done(&merging.path);
	return failed;
}
