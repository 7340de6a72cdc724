#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "format/http/uri.h"
#include "format/text/base64.h"
#include "format/text/json_read.h"
#include "trees/pack/tree.h"
#include "trees/stacks/internal.h"
#include "trees/stacks/pack.h"

#define CHUNK ((size_t)256 << 10)

struct marking {
	int stage;
	bool is_layer;
	struct arena *arena;
	struct error *err;
};

/* The directory of a mark's path, reached by no link, and the name there. */
static int open_parent(
	const struct marking *marking, const char *encoded, const char **name, int *parent)
{
	struct str path;
	char *slash;
	if (!encoded || !uri_decode(marking->arena, str_from(encoded), false, &path) || !path.len ||
		memchr(path.data, 0, path.len))
		return fail(marking->err, ERR_INVALID, "the marks of the archive are damaged");
	char *text = arena_bytes(marking->arena, path.data, path.len);
	slash = strrchr(text, '/');
	*name = slash ? slash + 1 : text;
	if (slash)
		*slash = 0;
	if (!(*name)[0] || !strcmp(*name, ".") || !strcmp(*name, ".."))
		return fail(
			marking->err, ERR_DENIED, "a mark of the archive has the name '%s'", *name);
	*parent = path_open_nolinks(marking->stage, slash ? text : ".", O_RDONLY | O_DIRECTORY, 0);
	if (*parent < 0)
		return fail_errno_code(marking->err, ERR_DENIED,
			"a mark of the archive lies in '%s', which is not a directory of it", text);
	return 0;
}

/* What is made in a directory changes its time. */
static int make_node(const struct marking *marking, const char *encoded, mode_t mode)
{
	auto_close int parent = -1;
	const char *name;
	struct stat st;
	if (open_parent(marking, encoded, &name, &parent))
		return -1;
	if (fstat(parent, &st) || mknodat(parent, name, mode, makedev(0, 0)) ||
		futimens(parent, (struct timespec[]){ st.st_atim, st.st_mtim }))
		return fail_errno(marking->err, "make '%s' of the archive's marks", name);
	return 0;
}

static int mark_whiteout(const struct marking *marking, const struct json_value *value)
{
	return make_node(marking, value->string.data, S_IFCHR);
}

static int mark_fifo(const struct marking *marking, const struct json_value *value)
{
	return make_node(marking, value->string.data, S_IFIFO | 0600);
}

/* A regular file or directory of the stage, or a fifo. */
static int open_marked(const struct marking *marking, const char *encoded, int *fd)
{
	auto_close int parent = -1;
	const char *name;
	struct stat st;
	if (open_parent(marking, encoded, &name, &parent))
		return -1;
	auto_close int opened =
		openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (opened < 0 || fstat(opened, &st))
		return fail_errno(marking->err, "open '%s' of the archive's marks", name);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISFIFO(st.st_mode))
		return fail(marking->err, ERR_DENIED, "a mark of the archive names '%s', a %s",
			name, path_type(st.st_mode));
	*fd = take_fd(&opened);
	return 0;
}

static int mark_opaque(const struct marking *marking, const struct json_value *value)
{
	auto_close int fd = -1;
	if (open_marked(marking, value->string.data, &fd))
		return -1;
	return fsetxattr(fd, STACK_OPAQUE, "y", 1, 0)
		       ? fail_errno(marking->err, "mark a directory as opaque")
		       : 0;
}

/* No command in a sandbox can make a file with these bits: only a forged archive has one. */
static int check_mode(const struct marking *marking, const char *path, int fd, mode_t mode)
{
	struct stat st;
	if (fstat(fd, &st))
		return fail_errno(marking->err, "look at '%s'", path);
	mode_t refused = !marking->is_layer ? 07000 : S_ISDIR(st.st_mode) ? 0 : S_ISUID | S_ISGID;
	bool is_bad = mode & refused;
	return is_bad ? fail(marking->err, ERR_DENIED,
				"'%s' in the archive has a setuid or setgid bit", path)
		      : 0;
}

static int mark_mode(const struct marking *marking, const struct json_value *value)
{
	auto_close int fd = -1;
	const struct json_value *path = value->first, *mode = path ? path->next : NULL;
	if (!mode || path->kind != JSON_STRING || !mode->is_integer || mode->integer < 0 ||
		mode->integer > 07777)
		return fail(marking->err, ERR_INVALID, "the marks of the archive are damaged");
	if (open_marked(marking, path->string.data, &fd) ||
		check_mode(marking, path->string.data, fd, (mode_t)mode->integer))
		return -1;
	return fchmod(fd, (mode_t)mode->integer) ? fail_errno(marking->err, "set a mode") : 0;
}

static int mark_attribute(const struct marking *marking, const struct json_value *value)
{
	auto_close int fd = -1;
	const struct json_value *path = value->first, *name = path ? path->next : NULL;
	const struct json_value *data = name ? name->next : NULL;
	struct str decoded, bytes;
	if (!data || path->kind != JSON_STRING || name->kind != JSON_STRING ||
		data->kind != JSON_STRING ||
		!uri_decode(marking->arena, name->string, false, &decoded) ||
		!base64_decode(data->string, marking->arena, &bytes))
		return fail(marking->err, ERR_INVALID, "the marks of the archive are damaged");
	if (!str_starts_with(decoded, "user.") || str_starts_with(decoded, "user.overlay."))
		return fail(marking->err, ERR_DENIED,
			"the archive has an attribute that only a kernel may set");
	if (open_marked(marking, path->string.data, &fd))
		return -1;
	return fsetxattr(fd, decoded.data, bytes.data, bytes.len, 0)
		       ? fail_errno(marking->err, "set attribute '%s'", decoded.data)
		       : 0;
}

static int apply(const struct marking *marking, const struct json_value *marks)
{
	static const struct {
		const char *name;
		enum json_kind kind;
		int (*fn)(const struct marking *marking, const struct json_value *value);
	} rows[] = { { "whiteouts", JSON_STRING, mark_whiteout },
		{ "fifos", JSON_STRING, mark_fifo }, { "attributes", JSON_ARRAY, mark_attribute },
		{ "opaque", JSON_STRING, mark_opaque }, { "modes", JSON_ARRAY, mark_mode } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct json_value *list = json_member(marks, rows[i].name);
		for (const struct json_value *at = list ? list->first : NULL; at; at = at->next)
			if (at->kind != rows[i].kind)
				return fail(marking->err, ERR_INVALID,
					"the marks of the archive are damaged");
			else if (rows[i].fn(marking, at))
				return -1;
	}
	return 0;
}

static int apply_marks(int stage, bool is_layer, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *marks;
	struct str text;
	struct marking marking = { stage, is_layer, &arena, err };
	if (file_read_at(stage, PACK_MARKS, PACK_MARKS_MAX, &arena, &text))
		return errno == ENOENT ? 0 : fail_errno(err, "read the marks of the archive");
	if (json_read(text, &arena, &marks, err))
		return error_context(err, "the marks of the archive");
	if (unlinkat(stage, PACK_MARKS, 0))
		return fail_errno(err, "remove the marks of the archive");
	return apply(&marking, marks);
}

struct beginning {
	pack_first_fn *first; /* NULL: none, or already called */
	void *ctx;
	int stage;
};

/* The first member is whole when the second one begins, or nothing follows. */
static int look_at_first(
	struct beginning *beginning, struct tree_unpack *unpack, bool is_end, struct error *err)
{
	pack_first_fn *first = beginning->first;
	if (!first || (unpack->entries < 2 && !is_end))
		return 0;
	beginning->first = NULL;
	return first(beginning->ctx, beginning->stage, &unpack->limit, err);
}

static int add_all(
	struct tree_unpack *unpack, struct beginning *beginning, int from, struct error *err)
{
	auto_free char *chunk = xzalloc(CHUNK);
	for (;;) {
		ssize_t got = read(from, chunk, CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read the archive");
		if (!got)
			return tree_unpack_end(unpack, err) ||
					       look_at_first(beginning, unpack, true, err)
				       ? -1
				       : 0;
		fault_point("unpack_piece");
		if (tree_unpack_add(unpack, (struct str){ chunk, (size_t)got }, err) ||
			look_at_first(beginning, unpack, false, err))
			return -1;
	}
}

int pack_unpack(int from, int stage, bool is_layer, uint64_t limit, pack_first_fn *first, void *ctx,
	struct unpacked *done, struct error *err)
{
	struct tree_unpack unpack;
	struct beginning beginning = { first, ctx, stage };
	tree_unpack_init(&unpack, stage);
	unpack.limit = limit;
	unpack.is_strict = true; /* marks say what a file can't */
	unpack.room = "what it may take on this disk";
	int failed = add_all(&unpack, &beginning, from, err) || apply_marks(stage, is_layer, err) ||
		     tree_unpack_place(&unpack, stage, err);
	*done = (struct unpacked){ unpack.entries, unpack.bytes,
		failed && unpack.is_over && unpack.limit == limit };
	tree_unpack_done(&unpack);
	return failed ? -1 : 0;
}
