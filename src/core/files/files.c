#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/access/audit_records.h"
#include "core/access/policies.h"
#include "core/files/files_ask.h"
#include "format/http/uri.h"
#include "sandbox/plan/plan.h"

#define TIME_MS_MAX_ABS 253402300800000ll /* the year 10000 */

/* -- what a thing is -- */

void file_print(struct json *j, const char *key, const struct file_info *info)
{
	size_t len = strlen(info->name);
	char time[32], mode[8];

	clock_format(time, info->modified_ms);
	str_format(mode, sizeof mode, "%04o", info->mode & 07777);
	json_object(j, key);
	json_text(j, "name", info->name);
	if (str_utf8_prefix(info->name, len) != len)
		json_base64(j, "name_base64", info->name, len);
	json_text(j, "type", info->type);
	json_u64(j, "size", info->size);
	json_text(j, "mode", mode);
	json_text(j, "modified_at", time);
	json_text(j, "link", info->link);
	json_end(j);
}

/* -- paths -- */

int files_clean_path(const char *path, char out[FILE_PATH_MAX], struct error *err)
{
	struct str rest = str_from(path), part;
	size_t len = 0;

	if (path_is_absolute(path))
		out[len++] = '/';
	while (str_next(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (str_is(part, ".."))
			return fail_hint(err, ERR_INVALID,
				"give the path from the workspace's directory on",
				"the path '%s' contains '..'", path);
		if (part.len > NAME_MAX || len + part.len + 2 > FILE_PATH_MAX) {
			errno = ENAMETOOLONG;
			return fail_errno(err, "'%s'", path);
		}
		if (len > 0 && out[len - 1] != '/')
			out[len++] = '/';
		memcpy(out + len, part.data, part.len);
		len += part.len;
	}
	out[len] = '\0';
	return 0;
}

static bool is_root(const struct core_workspace *w, const char *clean)
{
	return !clean[0] || strcmp(clean, "/") == 0 ||
	       strcmp(clean, plan_view_path(w->model.view)) == 0;
}

static const char *name_of(const struct core_workspace *w, const char *clean)
{
	const char *path = clean[0] ? clean : plan_view_path(w->model.view);
	return strcmp(path, "/") == 0 ? path : path_basename(path);
}

/* -- replies, which come from an untrusted process -- */

static bool is_text(struct str text)
{
	return text.len < FILE_PATH_MAX && !memchr(text.data, 0, text.len);
}

/* The next info; false: there is no whole one. name may be empty. */
static bool take_info(struct str *rest, struct arena *arena, struct file_info *info, unsigned *mode)
{
	struct file_entry raw;
	struct str name, link;

	if (!file_take_entry(rest, &raw, &name, &link))
		return false;
	bool is_link = S_ISLNK(raw.mode);
	if (!is_text(name) || !is_text(link) || (link.len && !is_link) || raw.size > INT64_MAX ||
		raw.modified_ms > TIME_MS_MAX_ABS || raw.modified_ms < -TIME_MS_MAX_ABS)
		return false;
	*mode = raw.mode;
	*info = (struct file_info){ .name = arena_bytes(arena, name.data, name.len),
		.type = path_type(raw.mode),
		.size = raw.size,
		.mode = raw.mode & 07777,
		.modified_ms = raw.modified_ms,
		.link = is_link ? arena_bytes(arena, link.data, link.len) : NULL };
	return true;
}

/* Names in order, after the cursor's; with FILE_MORE the last one is the next cursor. */
static bool take_list(const struct file_answer *from, const char *after, size_t limit,
	struct arena *arena, struct files_answer *answer)
{
	bool has_more = from->reply.flags & FILE_MORE;
	struct str rest = from->infos;
	const char *last = after ? after : "";
	uint32_t count = from->reply.count;

	if (count > limit + has_more || (has_more && count == 0))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		bool is_cursor = has_more && i == count - 1;
		struct file_info info;
		unsigned mode;

		if (!take_info(&rest, arena, &info, &mode) || (mode == 0) != is_cursor ||
			!info.name[0] || strlen(info.name) > NAME_MAX || strchr(info.name, '/') ||
			strcmp(info.name, last) < (is_cursor && i ? 0 : 1))
			return false;
		last = info.name;
		if (is_cursor)
			answer->next = uri_encode(arena, str_from(info.name), false);
		else
			vec_push(arena, &answer->infos, info);
	}
	return rest.len == 0;
}

/* -- requests -- */

struct asking {
	struct core_workspace *w;
	files_fn *done;
	void *ctx;
	/* For the audit log; type NULL: it is not recorded. */
	struct audit_file record;
	struct audit_actor actor;
	char *path, *to; /* to: NULL, or where it is moved */
};

/* As the descriptor itself says. */
static bool take_opened(const struct file_answer *from, struct files_answer *answer)
{
	struct stat st;

	if (fstat(from->fd, &st) < 0)
		return false;
	answer->fd = from->fd;
	answer->info = (struct file_info){ .type = "file",
		.size = (uint64_t)st.st_size,
		.mode = st.st_mode & 07777,
		.modified_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 };
	return true;
}

static bool take_one(
	const struct file_answer *from, struct arena *arena, struct files_answer *answer)
{
	struct str rest = from->infos;
	unsigned mode;

	if (from->reply.count != 1 || !take_info(&rest, arena, &answer->info, &mode) || rest.len)
		return false;
	answer->created = from->reply.flags & FILE_CREATED;
	return true;
}

static bool take_answer(
	const struct file_answer *from, struct arena *arena, struct files_answer *answer)
{
	const struct file_ask *ask = from->ask;

	switch (ask->verb) {
	case FILE_REMOVE:
		return true;
	case FILE_LIST:
		return take_list(from, ask->text, ask->limit, arena, answer);
	case FILE_OPEN:
	case FILE_CREATE:
		return take_opened(from, answer);
	default:
		return take_one(from, arena, answer);
	}
}

/* Told, recorded and freed. */
static void end_asking(
	struct asking *asking, const struct files_answer *answer, const struct error *err)
{
	struct audit_file *file = &asking->record;

	if (file->type) {
		file->path = asking->path;
		file->to = asking->to;
		file->err = err;
		file->has_bytes = answer && answer->fd >= 0;
		file->bytes = file->has_bytes ? answer->info.size : 0;
		audit_file(asking->w, &asking->actor, file);
	}
	asking->done(asking->ctx, answer, err);
	free(asking->path);
	free(asking->to);
	free(asking);
}

static void on_answer(void *ctx, const struct file_answer *from, const struct error *failed)
{
	struct asking *asking = ctx;
	struct files_answer answer = { .fd = -1 };
	auto_arena struct arena arena = { 0 };
	struct error err;

	if (failed) {
		err = *failed;
		if (err.sys_errno == EDQUOT) /* a quota of the file system: the workspace's limit */
			files_over_limit(asking->w, &err);
	} else if (take_answer(from, &arena, &answer)) {
		answer.info.name = name_of(asking->w,
			from->ask->verb == FILE_MOVE ? from->ask->text : from->ask->path);
		end_asking(asking, &answer, NULL);
		return;
	} else {
		fail(&err, ERR_UNAVAILABLE,
			"the file agent of workspace '%s' sent an invalid answer",
			asking->w->model.name);
	}
	end_asking(asking, NULL, &err);
}

static char *copy(const char *text)
{
	char *made = strdup(text);

	if (!made)
		abort();
	return made;
}

static struct asking *new_asking(struct core_workspace *w, files_fn *done, void *ctx)
{
	struct asking *asking = xzalloc(sizeof *asking);

	*asking = (struct asking){ .w = w, .done = done, .ctx = ctx };
	return asking;
}

void files_refuse(struct core_workspace *w, const struct error *err, files_fn *done, void *ctx)
{
	file_refuse(w, err, on_answer, new_asking(w, done, ctx));
}

void files_ask(struct core_workspace *w, const struct file_ask *ask, files_fn *done, void *ctx)
{
	file_ask(w, ask, on_answer, new_asking(w, done, ctx));
}

int files_enter(
	const struct request *request, enum verb verb, struct core_workspace *w, struct error *err)
{
	if (access_check(w->core, request, verb, w, err))
		return -1;
	core_touch(w);
	return 0;
}

static const struct {
	enum file_verb server;
	enum verb right;
	const char *not_root;	   /* what can't be done to the root; or NULL */
	unsigned operations;	   /* that the policy judges, of enum policy_operation */
	bool is_tree;		   /* it is also done to what lies below */
	const char *record, *what; /* its type in the audit log, or NULL; and what it is there */
} verbs[] = {
	[FILES_STAT] = { FILE_STAT, VERB_FILE_READ, NULL, POLICY_READ, false, NULL, NULL },
	[FILES_LIST] = { FILE_LIST, VERB_FILE_READ, NULL, POLICY_READ, false, NULL, NULL },
	[FILES_OPEN] = { FILE_OPEN, VERB_FILE_READ, NULL, POLICY_READ, false, "file.read", NULL },
	[FILES_MKDIR] = { FILE_MKDIR, VERB_FILE_WRITE, NULL, POLICY_WRITE, false, "file.write",
		"mkdir" },
	/* Under its new name it could be read. */
	[FILES_MOVE] = { FILE_MOVE, VERB_FILE_WRITE, "moved or replaced",
		POLICY_READ | POLICY_DELETE, true, "file.write", "move" },
	[FILES_REMOVE] = { FILE_REMOVE, VERB_FILE_REMOVE, "removed", POLICY_DELETE, true,
		"file.remove", NULL },
};

static int judge_paths(const struct request *request, struct core_workspace *w,
	const struct files_request *what, const char *path, const char *target, struct error *err)
{
	static const enum policy_operation operations[] = { POLICY_READ, POLICY_WRITE,
		POLICY_DELETE };
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
		if ((verbs[what->verb].operations & operations[i]) &&
			policies_judge_file(
				request, w, operations[i], path, verbs[what->verb].is_tree, err))
			return -1;
	return what->to ? policies_judge_file(request, w, POLICY_WRITE, target, true, err) : 0;
}

void files_do(const struct request *request, struct core_workspace *w,
	const struct files_request *what, files_fn *done, void *ctx)
{
	const char *not_root = verbs[what->verb].not_root;
	char path[FILE_PATH_MAX], target[FILE_PATH_MAX];
	struct file_ask ask = { .verb = verbs[what->verb].server,
		.path = path,
		.flags = what->recursive ? FILE_RECURSIVE : 0,
		.limit = what->limit,
		.fd = -1 };
	auto_arena struct arena arena = { 0 };
	struct str after = { 0 };
	struct error err;

	int failed = files_enter(request, verbs[what->verb].right, w, &err) < 0 ||
		     files_clean_path(what->path, path, &err) < 0 ||
		     (what->to && files_clean_path(what->to, target, &err) < 0);
	if (!failed && not_root && (is_root(w, path) || (what->to && is_root(w, target))))
		failed = fail(&err, ERR_INVALID, "the root of a workspace can't be %s", not_root);
	if (!failed && what->cursor && !uri_decode(&arena, str_from(what->cursor), false, &after))
		failed = fail(&err, ERR_INVALID, "invalid cursor '%s'", what->cursor);
	if (!failed)
		failed = judge_paths(request, w, what, path, target, &err);
	if (failed) {
		files_refuse(w, &err, done, ctx);
		return;
	}
	if (what->verb == FILES_REMOVE)
		w->is_overgrown = false; /* how much that makes room for is known later */
	ask.text = what->to ? target : after.data;
	struct asking *asking = new_asking(w, done, ctx);
	if (w->core->audit && verbs[what->verb].record) {
		asking->record = (struct audit_file){ .type = verbs[what->verb].record,
			.what = verbs[what->verb].what };
		asking->actor = audit_actor(request);
		asking->path = copy(path);
		asking->to = what->to ? copy(target) : NULL;
	}
	file_ask(w, &ask, on_answer, asking);
}
