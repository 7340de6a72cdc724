/* carrel cp: files and trees in and out of a workspace. */
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/workspaces/tree.h"
#include "envs/builder/progress.h"
#include "format/http/uri.h"

#define CHUNK 65536
#define QUIET_MS 300 /* what is done by then needs no bar */

/* One side of it. */
struct place {
	const char *workspace; /* NULL: this host */
	const char *path;
	bool is_stream;	      /* "-" */
	bool is_contents;     /* it ends in "." or "..": what is in it is meant */
	bool wants_directory; /* it ends in a slash */
};
enum kind { ABSENT, A_FILE, A_DIRECTORY, SOMETHING };
struct found {
	enum kind kind;
	uint64_t size;
	unsigned mode;
	bool is_link; /* and all of this is about where it leads, as far as that is known */
};

struct copy {
	struct remote *remote;
	struct place from, to;
	struct progress progress;
	uint64_t began_ms, bytes, total;
	struct tree_note left_out, outward;
};

/* The last component of `path` without trailing slashes; "" if `path` has only slashes. */
static const char *name_of(struct arena *arena, const char *path)
{
	char *copy = arena_text(arena, path);
	size_t len = strlen(copy);
	while (len && copy[len - 1] == '/')
		copy[--len] = 0;
	return path_basename(copy);
}

/* takes_context: also NAME/CONTEXT:PATH. */
static void parse_place(
	struct arena *arena, const char *text, bool takes_context, struct place *place)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
	*place = (struct place){ .path = text, .is_stream = !strcmp(text, "-") };
	/* As with scp and docker: a colon behind a slash belongs to the path. */
	bool is_context = takes_context && text[0] != '/' && text[0] != '.';
	if (colon && colon != text && (!slash || slash > colon || is_context)) {
		place->workspace = arena_bytes(arena, text, (size_t)(colon - text));
		place->path = colon + 1;
	}
	size_t len = strlen(place->path);
	const char *base = name_of(arena, place->path);
	place->wants_directory = len && place->path[len - 1] == '/';
	place->is_contents =
		!strcmp(base, ".") || !strcmp(base, "..") || (place->workspace && !len);
}

static int parse_places(
	struct copy *copy, const char *source, const char *target, bool json, struct error *err)
{
	struct arena *arena = copy->remote->arena;
	/* Names with a slash, of contexts, count where no other name is a workspace's: a path of
	 * this host that has a colon stays one. */
	for (int i = 0; i < 2 && !copy->from.workspace && !copy->to.workspace; i++) {
		parse_place(arena, source, i == 1, &copy->from);
		parse_place(arena, target, i == 1, &copy->to);
	}
	if (!copy->from.workspace && !copy->to.workspace)
		return fail_hint(err, ERR_INVALID,
			"carrel cp FILE NAME:PATH, or carrel cp NAME:PATH FILE",
			"neither '%s' nor '%s' names a workspace", source, target);
	if (copy->from.workspace && copy->to.workspace)
		return fail_hint(err, ERR_INVALID,
			"carrel cp A:FILE - | carrel cp - B:FILE; a path of this host that has a "
			"colon begins with ./",
			"'%s' and '%s' are both in workspaces", source, target);
	if (copy->to.is_stream && json)
		return fail(err, ERR_INVALID,
			"- and -o json can't be combined: both write to standard output");
	return 0;
}

static const char *join(struct arena *arena, const char *directory, const char *name)
{
	size_t len = strlen(directory);
	bool has_slash = !len || directory[len - 1] == '/';
	return arena_printf(arena, "%s%s%s", directory, has_slash ? "" : "/", name);
}

static const char *file_path(
	struct copy *copy, const struct place *place, const char *path, const char *query)
{
	const char *escaped = uri_encode(copy->remote->arena, str_from(path), true);
	return remote_workspace_path(copy->remote, place->workspace,
		arena_printf(copy->remote->arena, "/files/%s%s", escaped, query));
}

static int look_inside(
	struct copy *copy, const struct place *place, struct found *found, struct error *err)
{
	struct remote_answer answer;
	struct error ignored;
	*found = (struct found){ ABSENT, 0, 0 };
	if (remote_call(copy->remote, "GET", file_path(copy, place, place->path, "?stat"), NULL,
		    &answer, err)) {
		struct remote_answer workspace;
		/* Distinguishes a missing file from a missing workspace. */
		return err->code == ERR_NOT_FOUND && !remote_call(copy->remote, "GET",
							     remote_workspace_path(copy->remote,
								     place->workspace, ""),
							     NULL, &workspace, err)
			       ? 0
			       : -1;
	}
	const char *type = json_member_text(answer.value, "type"),
		   *mode = json_member_text(answer.value, "mode");
	json_member_u64(answer.value, "size", &found->size);
	for (; mode && *mode >= '0' && *mode <= '7'; mode++)
		found->mode = (found->mode << 3 | (unsigned)(*mode - '0')) & 0777;
	found->kind = !type			   ? SOMETHING
		      : !strcmp(type, "file")	   ? A_FILE
		      : !strcmp(type, "directory") ? A_DIRECTORY
						   : SOMETHING;
	if (!type || strcmp(type, "link"))
		return 0;
	/* Where it leads decides, as long as that is inside. */
	bool is_directory = !remote_call(copy->remote, "GET",
		file_path(copy, place, place->path, "?list&limit=1"), NULL, &answer, &ignored);
	*found = (struct found){ is_directory ? A_DIRECTORY : A_FILE, 0, 0644, true };
	return 0;
}

static int look_here(const char *path, struct found *found, struct error *err)
{
	struct stat st;
	*found = (struct found){ ABSENT, 0, 0 };
	if (stat(path, &st))
		return errno == ENOENT ? 0 : fail_errno(err, "look at '%s'", path);
	found->kind = S_ISREG(st.st_mode) ? A_FILE : S_ISDIR(st.st_mode) ? A_DIRECTORY : SOMETHING;
	found->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	found->mode = st.st_mode & 0777;
	return 0;
}

static void on_progress(void *ctx, uint64_t bytes)
{
	struct copy *copy = ctx;
	copy->bytes = bytes;
	if (clock_monotonic_ms() - copy->began_ms >= QUIET_MS)
		progress_show_bytes(&copy->progress, "copying", bytes, copy->total);
}

static int upload(struct copy *copy, const char *path, const char *type, int fd,
	const uint64_t *size, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	request.method = "PUT";
	request.path = path;
	request.content_type = type;
	request.body_fd = fd;
	request.body_len_known = size != NULL;
	request.body_len = size ? *size : 0;
	request.progress = on_progress;
	request.ctx = copy;
	copy->total = size ? *size : 0;
	return client_call(&copy->remote->client, &request, copy->remote->arena, &response, err);
}

/* Where a source of this name goes. */
static int find_target(struct copy *copy, const char *name, bool is_tree, const struct found *there,
	const char **path, struct error *err)
{
	const struct place *to = &copy->to;
	if (there->kind == A_DIRECTORY) {
		if (!name[0] && !is_tree)
			return fail(err, ERR_CONFLICT,
				"'%s' is a directory: give the file a name in it", to->path);
		*path = name[0] ? join(copy->remote->arena, to->path, name) : to->path;
		return 0;
	}
	if (is_tree && there->kind != ABSENT)
		return fail(err, ERR_CONFLICT,
			"'%s' is not a directory, so a directory can't be copied there", to->path);
	if (!is_tree && to->wants_directory)
		return there->kind == ABSENT
			       ? fail_hint(err, ERR_NOT_FOUND,
					 "leave the trailing slash out, or create the directory "
					 "first",
					 "there is no directory '%s'", to->path)
			       : fail(err, ERR_CONFLICT, "'%s' is not a directory", to->path);
	*path = to->path;
	return 0;
}

static int copy_in_tree(struct copy *copy, const struct found *there, struct error *err)
{
	struct arena *arena = copy->remote->arena;
	const char *path, *name = copy->from.is_contents ? "" : name_of(arena, copy->from.path);
	auto_close int dir = open(copy->from.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct error reason;
	struct pack pack;
	if (dir < 0)
		return fail_errno(err, "open '%s'", copy->from.path);
	if (find_target(copy, name, true, there, &path, err))
		return -1;
	const char *request = remote_workspace_path(copy->remote, copy->to.workspace,
		arena_printf(arena, "/archive?path=%s", remote_escape(copy->remote, path)));
	int failed = pack_begin(&pack, dir, err) ||
		     upload(copy, request, "application/x-tar", pack.archive, NULL, err);
	/* The daemon refuses an incomplete archive; the reason is known here only. */
	int packed = pack_finish(&pack, &copy->left_out, &reason);
	if (packed && (!failed || reason.sys_errno != EPIPE)) {
		*err = reason;
		return error_context(err, "copy '%s'", copy->from.path);
	}
	return failed;
}

static int copy_in_file(
	struct copy *copy, const struct found *source, const struct found *there, struct error *err)
{
	struct arena *arena = copy->remote->arena;
	const char *path, *name = copy->from.is_stream ? "" : name_of(arena, copy->from.path);
	auto_close int opened = -1;
	char mode[16] = "";
	if (find_target(copy, name, false, there, &path, err))
		return -1;
	if (!copy->from.is_stream) {
		opened = open(copy->from.path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0)
			return fail_errno(err, "open '%s'", copy->from.path);
		str_format(mode, sizeof mode, "?mode=%04o", source->mode);
	}
	/* Files of /proc have more in them than they say. */
	bool has_size = source->kind == A_FILE && source->size;
	return upload(copy, file_path(copy, &copy->to, path, mode), "application/octet-stream",
		copy->from.is_stream ? STDIN_FILENO : opened, has_size ? &source->size : NULL, err);
}

static int copy_in(struct copy *copy, struct error *err)
{
	struct found source = { SOMETHING, 0, 0 }, there;
	if (!copy->from.is_stream && look_here(copy->from.path, &source, err))
		return -1;
	if (source.kind == ABSENT)
		return fail(err, ERR_NOT_FOUND, "there is no '%s'", copy->from.path);
	if (look_inside(copy, &copy->to, &there, err))
		return -1;
	return source.kind == A_DIRECTORY ? copy_in_tree(copy, &there, err)
					  : copy_in_file(copy, &source, &there, err);
}

/* Takes all of the answer. */
static int receive(
	struct copy *copy, const char *path, int fd, struct tree_unpack *unpack, struct error *err)
{
	struct client_response response = { 0 };
	char data[CHUNK];
	ssize_t got;
	if (remote_begin_get(copy->remote, path, "*/*", NULL, &response, err))
		return -1;
	if (response.length != UINT64_MAX)
		copy->total = response.length;
	while ((got = client_read(&copy->remote->client, &response, data, sizeof data, err)) > 0) {
		if (unpack && tree_unpack_add(unpack, (struct str){ data, (size_t)got }, err))
			return -1;
		if (!unpack && fd_write_full(fd, data, (size_t)got) != got)
			return fail_errno(err, "write '%s'", copy->to.path);
		on_progress(copy, copy->bytes + (uint64_t)got);
	}
	return got < 0 ? -1 : 0;
}

/* The directory that the copy goes to: the one that is there, or the one above what isn't. A link
 * to one may have come out of a workspace before: it is followed only where a slash says so. */
static int open_place(struct copy *copy, const struct found *there, int *place, struct error *err)
{
	const char *path = copy->to.path;
	bool is_above = there->kind != A_DIRECTORY;
	if (is_above)
		path = dirname(arena_text(copy->remote->arena, path));
	*place = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | (is_above ? 0 : O_NOFOLLOW));
	if (*place >= 0)
		return 0;
	if (errno == ENOTDIR && !is_above)
		return fail_hint(err, ERR_CONFLICT, "a trailing slash follows the link",
			"'%s' is a symbolic link, and carrel cp does not write through links",
			path);
	return fail_errno(
		err, "open %s '%s'", is_above ? "the directory of" : "directory", copy->to.path);
}

static int copy_out_tree(
	struct copy *copy, const struct found *source, const struct found *there, struct error *err)
{
	struct arena *arena = copy->remote->arena;
	const char *name = copy->from.is_contents ? NULL : name_of(arena, copy->from.path);
	struct unpack unpack;
	if (copy->to.is_stream)
		return fail(err, ERR_INVALID,
			"'%s' is a directory and can't be copied to standard output",
			copy->from.path);
	if (there->kind != A_DIRECTORY && there->kind != ABSENT)
		return fail(err, ERR_CONFLICT,
			"'%s' is not a directory, so a directory can't be copied there",
			copy->to.path);
	auto_close int place = -1;
	if (open_place(copy, there, &place, err))
		return -1;
	if (there->kind == ABSENT)
		name = name_of(arena, copy->to.path);
	const char *request = remote_workspace_path(copy->remote, copy->from.workspace,
		arena_printf(
			arena, "/archive?path=%s", remote_escape(copy->remote, copy->from.path)));
	int failed = unpack_begin(&unpack, place, err);
	const char *whole = path_normalize(arena, "/workspace", copy->from.path);
	if (!strcmp(whole, "/workspace") || !strcmp(whole, "/")) /* by its view */
		unpack_workspace(&unpack);
	failed = failed || receive(copy, request, -1, &unpack.tree, err) ||
		 unpack_finish(&unpack, name, source->is_link ? 0755 : source->mode, err);
	copy->left_out = unpack.tree.left_out;
	copy->outward = unpack.tree.outward;
	unpack_done(&unpack);
	return failed ? error_context(err, "copy to '%s'", copy->to.path) : 0;
}

/* A file gets its name when it is whole. A device or a pipe that is there is written into, as cp
 * does. A link is not: it may be one that came out of a workspace before. */
static int copy_out_file(
	struct copy *copy, const struct found *source, const struct found *there, struct error *err)
{
	struct arena *arena = copy->remote->arena;
	const char *request = file_path(copy, &copy->from, copy->from.path, "");
	const struct place *named = there->kind == A_DIRECTORY ? &copy->from : &copy->to;
	const char *base = name_of(arena, named->path);
	const char *path = named == &copy->to ? named->path : join(arena, copy->to.path, base);
	char id[ID_LEN + 1];
	struct stat st;
	auto_close int place = -1;
	if (open_place(copy, there, &place, err))
		return -1;
	bool is_plain = fstatat(place, base, &st, AT_SYMLINK_NOFOLLOW) || S_ISREG(st.st_mode);
	id_make(id);
	const char *name = is_plain ? arena_printf(arena, ".carrel-cp-%s", id) : base;
	auto_close int fd = openat(place, name,
		O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW |
			(is_plain ? O_CREAT | O_EXCL : O_TRUNC),
		source->mode);
	if (fd < 0 && errno == ELOOP)
		return fail_hint(err, ERR_CONFLICT,
			"name the target of the link, or remove the link; - writes to standard "
			"output",
			"'%s' is a symbolic link, and carrel cp does not write through links",
			path);
	if (fd < 0)
		return fail_errno(err, "open '%s'", path);
	int failed = receive(copy, request, fd, NULL, err);
	if (!failed && is_plain && renameat(place, name, place, base))
		failed = fail_errno(err, "rename a file to '%s'", path);
	if (failed && is_plain)
		unlinkat(place, name, 0);
	return failed;
}

static int copy_out(struct copy *copy, struct error *err)
{
	struct found source, there = { ABSENT, 0, 0 };
	if (look_inside(copy, &copy->from, &source, err) ||
		(!copy->to.is_stream && look_here(copy->to.path, &there, err)))
		return -1;
	if (source.kind == ABSENT)
		return fail(err, ERR_NOT_FOUND, "there is no '%s' in workspace '%s'",
			copy->from.path, copy->from.workspace);
	remote_catch_interrupts(copy->remote);
	if (source.kind == A_DIRECTORY)
		return copy_out_tree(copy, &source, &there, err);
	if (copy->to.is_stream)
		return receive(copy, file_path(copy, &copy->from, copy->from.path, ""),
			STDOUT_FILENO, NULL, err);
	if (there.kind != A_DIRECTORY && copy->to.wants_directory)
		return fail(err, ERR_NOT_FOUND, "there is no directory '%s'", copy->to.path);
	return copy_out_file(copy, &source, &there, err);
}

/* what: how one is called, and how several. */
static void warn_of(const struct tree_note *note, const char *const what[2])
{
	char shown[512];
	str_printable(shown, sizeof shown, str_from(note->first));
	if (note->count)
		cli_say("warning: %llu %s%s %s", (unsigned long long)note->count,
			what[note->count != 1], note->count == 1 ? ":" : "; the first:", shown);
}

static void warn(const struct copy *copy)
{
	static const char *const left_out[2] = { "entry can't be copied and was left out",
		"entries can't be copied and were left out" };
	static const char *const outward[2] = { "link points outside of the copy",
		"links point outside of the copy" };
	warn_of(&copy->left_out, left_out);
	warn_of(&copy->outward, outward);
}

/* Several sources go into a directory that is there. */
static int check_several(struct copy *copies, size_t count, struct error *err)
{
	struct copy *first = &copies[0];
	struct found there;
	for (size_t i = 0; i < count; i++) {
		const struct place *from = &copies[i].from;
		const char *name = name_of(first->remote->arena, from->path);
		if (from->is_stream)
			return fail(err, ERR_INVALID, "- can't be one of several sources");
		for (size_t before = 0; before < i && !from->is_contents; before++)
			if (!copies[before].from.is_contents &&
				!strcmp(name,
					name_of(first->remote->arena, copies[before].from.path)))
				return fail(err, ERR_INVALID, "two sources are called '%s'", name);
	}
	if (first->to.workspace ? look_inside(first, &first->to, &there, err)
				: look_here(first->to.path, &there, err))
		return -1;
	return there.kind == A_DIRECTORY
		       ? 0
		       : fail(err, ERR_CONFLICT,
				 "'%s' is not a directory: several sources can only be copied into "
				 "one",
				 first->to.path);
}

static int copy_one(struct copy *copy, struct error *err)
{
	bool is_bar = progress_kind_for(STDERR_FILENO) == PROGRESS_BAR;
	copy->began_ms = clock_monotonic_ms();
	progress_init(&copy->progress, is_bar ? PROGRESS_BAR : PROGRESS_NONE, STDERR_FILENO);
	int failed = copy->to.workspace ? copy_in(copy, err) : copy_out(copy, err);
	progress_finish(&copy->progress);
	return failed;
}

static void print_result(const struct copy *copies, size_t count, struct json *j)
{
	uint64_t bytes = 0, left_out = 0, outward = 0;
	for (size_t i = 0; i < count; i++) {
		bytes += copies[i].bytes;
		left_out += copies[i].left_out.count;
		outward += copies[i].outward.count;
	}
	json_object(j, NULL);
	json_u64(j, "bytes", bytes);
	json_u64(j, "left_out", left_out);
	json_u64(j, "outward_links", outward);
	json_end(j);
}

static int run(struct command *command, struct error *err)
{
	const text_list *operands = &command->operands;
	size_t count = operands->count - 1;
	struct copy *copies = arena_array(&command->arena, count, sizeof *copies);
	for (size_t i = 0; i < count; i++) {
		copies[i].remote = &command->remote;
		if (parse_places(&copies[i], operands->items[i], operands->items[count],
			    command->json, err))
			return -1;
	}
	if (remote_open(&command->remote, err) || (count > 1 && check_several(copies, count, err)))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (copy_one(&copies[i], err))
			return remote_is_interrupted()
				       ? fail(err, ERR_CANCELED, "the copy was interrupted")
				       : -1;
		if (!command->json)
			warn(&copies[i]);
	}
	if (command->json)
		print_result(copies, count, &command->value);
	return 0;
}

const struct arg_spec cli_cp = {
	.command = "cp",
	.summary = "copy files and directories in and out of a workspace",
	.group = GROUP_EVERYDAY,
	.usage = "SOURCE... TARGET [options]",
	.about = "Copies files and directory trees into a workspace or out of it. One side is "
		 "NAME:PATH or AGENT/CONTEXT:PATH, where PATH is a path inside the sandbox, "
		 "absolute or relative to /workspace; the other is a path of this host, or - for "
		 "standard input or output. If TARGET is an existing directory, SOURCE is copied "
		 "into it, as several are; SOURCE/. copies the content of SOURCE.",
	REMOTE_OPTIONS,
	.examples = "  carrel cp main.py demo:\n"
		    "  carrel cp *.py tests demo:\n"
		    "  carrel cp demo:/workspace/output ./results\n"
		    "  tar c . | carrel cp - demo:/workspace/in.tar\n"
		    "  carrel cp demo:report.txt - | less\n"
		    "  carrel cp trip.csv tools/trip:data\n",
	.run = run,
};
