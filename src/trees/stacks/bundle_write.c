#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "format/http/uri.h"
#include "trees/stacks/bundle.h"
#include "trees/stacks/snapshots.h"

void bundle_out_init(struct bundle_out *out, int fd)
{
	*out = (struct bundle_out){ 0 };
	tree_out_init(&out->out, fd);
	buf_init(&out->list, BUNDLE_LIST_MAX);
}

void bundle_out_done(struct bundle_out *out)
{
	tree_out_done(&out->out);
	buf_done(&out->list);
}

static int fail_changing(const char *path, struct error *err)
{
	return fail_hint(err, ERR_CONFLICT, "try again, or snapshot the workspace first",
		"'%s' was changed by a process while it was read", path);
}

static int read_link(const struct stack_entry *entry, const char *path, char target[PATH_MAX],
	size_t *len, struct error *err)
{
	ssize_t got = readlinkat(entry->dir, path_basename(path), target, PATH_MAX - 1);
	if (got < 0)
		return errno == ENOENT || errno == EINVAL ? fail_changing(path, err)
							  : fail_errno(err, "read link '%s'", path);
	target[got] = 0;
	*len = (size_t)got;
	return 0;
}

/* ---- the list ---- */

static void add_state(struct buf *list, const struct stack_entry *entry)
{
	mode_t mode = entry->st.st_mode;
	char type = S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 's';
	if (entry->is_there)
		buf_printf(list, " %c%04o", type, (unsigned)mode & 07777);
	else
		buf_text(list, " -");
}

/* Of what was there before. */
static int add_hash(
	struct buf *list, const struct stack_entry *before, const char *path, struct error *err)
{
	unsigned char digest[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1] = "-", target[PATH_MAX];
	uint64_t ignored = 0;
	auto_close int fd = -1;
	struct stat st;
	size_t len;
	if (before->is_there && S_ISREG(before->st.st_mode)) {
		if (stack_open_file(before->dir, path_basename(path), &fd, &st, err))
			return err->code == ERR_NOT_FOUND ? fail_changing(path, err) : -1;
		if (snapshot_hash_file(fd, st.st_size, digest, &ignored))
			return fail_errno(err, "read '%s'", path);
		sha256_hex(digest, hex);
	} else if (before->is_there && S_ISLNK(before->st.st_mode)) {
		if (read_link(before, path, target, &len, err))
			return -1;
		sha256_of(target, len, hex);
	}
	buf_printf(list, " %s", hex);
	return 0;
}

/* ---- the tree ---- */

static int add_file(struct bundle_out *out, const struct stack_entry *after, const char *path,
	struct tar_entry *entry, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_close int fd = -1;
	struct stat st;
	if (stack_open_file(after->dir, path_basename(path), &fd, &st, err))
		return err->code == ERR_NOT_FOUND ? fail_changing(path, err) : -1;
	entry->kind = TAR_FILE;
	entry->size = (uint64_t)st.st_size;
	entry->modified_s = st.st_mtim.tv_sec;
	return tree_find_regions(fd, &st, &arena, entry, err) ||
			       tree_out_entry(&out->out, entry, err) ||
			       tree_out_content(&out->out, fd, entry, NULL, err)
		       ? -1
		       : 0;
}

static int add_member(struct bundle_out *out, const struct stack_entry *after, const char *path,
	struct error *err)
{
	auto_buf struct buf name = buf_empty(1 << 20);
	char target[PATH_MAX];
	size_t len;
	buf_printf(&name, BUNDLE_TREE "/%s", path);
	struct tar_entry entry = { .name = name.data, .mode = 0600 };
	switch (after->st.st_mode & S_IFMT) {
	case S_IFREG:
		return add_file(out, after, path, &entry, err);
	case S_IFDIR:
		entry.kind = TAR_DIRECTORY;
		entry.mode = 0700;
		return tree_out_entry(&out->out, &entry, err);
	case S_IFLNK:
		if (read_link(after, path, target, &len, err))
			return -1;
		entry.kind = TAR_SYMLINK;
		entry.link = target;
		return tree_out_entry(&out->out, &entry, err);
	default:
		return 0; /* it is in the list */
	}
}

int bundle_out_add(
	struct bundle_out *out, const struct snapshot_difference *difference, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct buf *list = &out->list;
	if (++out->count > BUNDLE_CHANGES_MAX)
		return fail_hint(err, ERR_LIMIT, "take fewer paths at a time",
			"more than %d files changed", BUNDLE_CHANGES_MAX);
	if (difference->after.is_there &&
		add_member(out, &difference->after, difference->path, err))
		return -1;
	buf_char(list, (char)difference->change);
	add_state(list, &difference->before);
	if (add_hash(list, &difference->before, difference->path, err))
		return -1;
	add_state(list, &difference->after);
	buf_printf(list, " %s\n", uri_encode(&arena, str_from(difference->path), true));
	return list->overflow ? fail_hint(err, ERR_LIMIT, "take fewer paths at a time",
					"the names of changed files are too long")
			      : 0;
}

int bundle_out_end(struct bundle_out *out, struct error *err)
{
	const struct tar_entry entry = {
		.kind = TAR_FILE, .name = BUNDLE_LIST, .size = out->list.len, .mode = 0600
	};
	if (tree_out_entry(&out->out, &entry, err) || tree_out_flush(&out->out, err))
		return -1;
	if (out->list.len &&
		fd_write_full(out->out.fd, out->list.data, out->list.len) != (ssize_t)out->list.len)
		return fail_errno(err, "write the changes");
	tar_write_padding(&out->out.rest, out->list.len);
	tar_write_end(&out->out.rest);
	return tree_out_flush(&out->out, err);
}
