#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "trees/stacks/internal.h"

#define BINARY_LOOK 8000 /* as git does: a file with a NUL in its first bytes is binary */

struct side {
	unsigned mode; /* as git has it; 0: nothing that a patch could show */
	struct str text;
	bool is_binary;
};

/* As git quotes a name that has control characters, quotes or bytes that aren't ASCII. */
static void print_name(struct buf *out, const char *prefix, const char *path)
{
	bool is_plain = true;
	for (const unsigned char *at = (const unsigned char *)path; *at; at++)
		is_plain &= *at >= ' ' && *at < 127 && *at != '"' && *at != '\\';
	if (is_plain) {
		buf_printf(out, "%s%s", prefix, path);
		return;
	}
	buf_printf(out, "\"%s", prefix);
	for (const unsigned char *at = (const unsigned char *)path; *at; at++) {
		if (*at == '"' || *at == '\\')
			buf_printf(out, "\\%c", *at);
		else if (*at >= ' ' && *at < 127)
			buf_char(out, (char)*at);
		else
			buf_printf(out, "\\%03o", *at);
	}
	buf_char(out, '"');
}

static int read_side(const struct stack_entry *entry, const char *name, struct arena *arena,
	struct side *side, struct error *err)
{
	*side = (struct side){ .text = STR("") };
	if (!entry->is_there)
		return 0;
	if (S_ISLNK(entry->st.st_mode)) {
		char target[PATH_MAX];
		ssize_t len = readlinkat(entry->dir, name, target, sizeof target);
		if (len < 0)
			return errno == ENOENT || errno == EINVAL
				       ? 0
				       : fail_errno(err, "read link '%s'", name);
		side->mode = 0120000;
		side->text = (struct str){ arena_bytes(arena, target, (size_t)len), (size_t)len };
		return 0;
	}
	if (!S_ISREG(entry->st.st_mode))
		return 0;
	auto_close int fd = -1;
	struct stat st;
	if (stack_open_file(entry->dir, name, &fd, &st, err))
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	side->mode = st.st_mode & 0111 ? 0100755 : 0100644;
	if (st.st_size > (off_t)SNAPSHOT_TEXT_MAX) {
		side->is_binary = true;
		return 0;
	}
	if (file_read(fd, SNAPSHOT_TEXT_MAX, arena, &side->text)) {
		if (errno != EFBIG)
			return fail_errno(err, "read '%s'", name);
		side->is_binary = true; /* it has grown */
		return 0;
	}
	size_t look = side->text.len < BINARY_LOOK ? side->text.len : BINARY_LOOK;
	side->is_binary = memchr(side->text.data, 0, look) != NULL;
	return 0;
}

static void print_names(struct buf *out, const char *path, const struct side *a,
	const struct side *b, const char *before_a, const char *between, const char *end)
{
	buf_text(out, before_a);
	if (a->mode)
		print_name(out, "a/", path);
	else
		buf_text(out, "/dev/null");
	buf_text(out, between);
	if (b->mode)
		print_name(out, "b/", path);
	else
		buf_text(out, "/dev/null");
	buf_text(out, end);
}

static void print_one(struct buf *out, const char *path, const struct side *a, const struct side *b)
{
	buf_text(out, "diff --git ");
	print_name(out, "a/", path);
	buf_char(out, ' ');
	print_name(out, "b/", path);
	buf_char(out, '\n');
	if (!a->mode)
		buf_printf(out, "new file mode %06o\n", b->mode);
	else if (!b->mode)
		buf_printf(out, "deleted file mode %06o\n", a->mode);
	else if (a->mode != b->mode)
		buf_printf(out, "old mode %06o\nnew mode %06o\n", a->mode, b->mode);
	if (str_equal(a->text, b->text) && !a->is_binary && !b->is_binary)
		return;
	if (a->is_binary || b->is_binary) {
		print_names(out, path, a, b, "Binary files ", " and ", " differ\n");
		return;
	}
	print_names(out, path, a, b, "--- ", "\n+++ ", "\n");
	snapshot_text_diff(a->text, b->text, out);
}

int snapshot_patch(const struct snapshot_difference *difference, struct buf *out, struct error *err)
{
	static const struct side nothing = { .text = STR("") };
	auto_arena struct arena arena = { 0 };
	const char *name = path_basename(difference->path);
	struct side a, b;
	if (read_side(&difference->before, name, &arena, &a, err) ||
		read_side(&difference->after, name, &arena, &b, err))
		return error_context(err, "'%s'", difference->path);
	if (a.mode && b.mode && (a.mode & S_IFMT) != (b.mode & S_IFMT)) {
		/* git has no other way to say that a file became a link. */
		print_one(out, difference->path, &a, &nothing);
		print_one(out, difference->path, &nothing, &b);
	} else if ((a.mode || b.mode) &&
		   !(difference->is_meta && a.mode == b.mode)) /* a patch has no attributes */
		print_one(out, difference->path, &a, &b);
	return out->overflow ? fail(err, ERR_LIMIT, "the patch is longer than %zu bytes", out->max)
			     : 0;
}
