#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/files_parts.h"
#include "plan/plan.h"

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

int files_clean_path(const char *path, char out[AGENT_PATH_MAX], struct error *err)
{
	struct str rest = str_from(path), part;
	size_t len = 0;

	if (path_is_absolute(path))
		out[len++] = '/';
	while (str_next(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (str_is(part, ".."))
			return fail_hint(err, ERR_INVALID, "give the path relative to /workspace",
				"the path '%s' contains '..'", path);
		if (part.len > NAME_MAX || len + part.len + 2 > AGENT_PATH_MAX) {
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

bool files_is_root(const char *clean)
{
	return !clean[0] || strcmp(clean, "/") == 0 || strcmp(clean, PLAN_WORKSPACE) == 0;
}

static const char *name_of(const char *clean)
{
	if (!clean[0])
		return path_basename(PLAN_WORKSPACE);
	return strcmp(clean, "/") == 0 ? clean : path_basename(clean);
}

/* -- answers: from a process that is not believed -- */

static bool is_text(struct str text)
{
	return text.len < AGENT_PATH_MAX && !memchr(text.data, 0, text.len);
}

/* The next info; false: there is no whole one. name may be empty. */
static bool take_info(struct str *rest, struct arena *arena, struct file_info *info, unsigned *mode)
{
	struct agent_info raw;

	if (rest->len < sizeof raw)
		return false;
	memcpy(&raw, rest->data, sizeof raw);
	size_t left = rest->len - sizeof raw;
	if (raw.name_len > left || raw.link_len > left - raw.name_len)
		return false;
	struct str name = { rest->data + sizeof raw, raw.name_len };
	struct str link = { name.data + name.len, raw.link_len };
	*rest = (struct str){ link.data + link.len, left - name.len - link.len };
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

static const char *print_cursor(struct arena *arena, const char *name)
{
	char *out = arena_alloc(arena, strlen(name) * 3 + 1), *to = out;

	for (size_t left = strlen(name), len; left > 0; name += len, left -= len) {
		len = str_utf8_char(name, left);
		if (len == 0 || *name == '%' || (unsigned char)*name < ' ') {
			len = 1;
			str_format(to, 4, "%%%02X", (unsigned char)*name);
			to += 3;
		} else {
			memcpy(to, name, len);
			to += len;
		}
	}
	return out;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static int parse_cursor(struct arena *arena, const char *text, const char **name, struct error *err)
{
	char *out = arena_alloc(arena, strlen(text) + 1), *to = out;

	for (const char *at = text; *at; at++) {
		int high = *at == '%' ? hex_digit(at[1]) : 0;
		int low = *at == '%' && high >= 0 ? hex_digit(at[2]) : 0;

		if (high < 0 || low < 0)
			return fail(err, ERR_INVALID, "invalid cursor '%s'", text);
		*to++ = *at == '%' ? (char)(high << 4 | low) : *at;
		at += *at == '%' ? 2 : 0;
	}
	*name = out;
	return 0;
}

/* Names in order, after the cursor's; with AGENT_MORE the last one is the next cursor. */
static bool take_list(const struct agent_answer *from, const char *after, size_t limit,
	struct arena *arena, struct files_answer *answer)
{
	bool has_more = from->reply.flags & AGENT_MORE;
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
			answer->next = print_cursor(arena, info.name);
		else
			vec_push(arena, &answer->infos, info);
	}
	return rest.len == 0;
}

/* -- requests -- */

struct asking {
	struct core_workspace *w; /* held until a refusal is told */
	enum agent_verb verb;
	struct arena arena;
	const char *clean, *after;
	size_t limit;
	struct error err;
	files_fn *done;
	void *ctx;
};

static struct asking *new_asking(struct core_workspace *w, files_fn *done, void *ctx)
{
	struct asking *asking = calloc(1, sizeof *asking);

	if (!asking)
		abort();
	arena_init(&asking->arena);
	asking->w = w;
	asking->done = done;
	asking->ctx = ctx;
	return asking;
}

static void end_asking(
	struct asking *asking, const struct files_answer *answer, const struct error *err)
{
	asking->done(asking->ctx, answer, err);
	arena_done(&asking->arena);
	free(asking);
}

static void on_refused(struct loop *loop, void *ctx)
{
	struct asking *asking = ctx;
	struct core_workspace *w = asking->w;

	end_asking(asking, NULL, &asking->err);
	core_release(w);
}

void files_refuse(struct core_workspace *w, const struct error *err, files_fn *done, void *ctx)
{
	struct asking *asking = new_asking(w, done, ctx);

	asking->err = *err;
	core_hold(w);
	loop_after(w->core->loop, 0, on_refused, asking);
}

/* As the descriptor itself says. */
static int fill_opened(
	struct asking *asking, int fd, struct files_answer *answer, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail_errno(err, "open '%s'", asking->clean);
	answer->fd = fd;
	answer->info = (struct file_info){ .name = name_of(asking->clean),
		.type = "file",
		.size = (uint64_t)st.st_size,
		.mode = st.st_mode & 07777,
		.modified_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 };
	return 0;
}

static bool take_one(
	struct asking *asking, const struct agent_answer *from, struct files_answer *answer)
{
	struct str rest = from->infos;
	unsigned mode;

	if (from->reply.count != 1 || !take_info(&rest, &asking->arena, &answer->info, &mode) ||
		rest.len)
		return false;
	answer->info.name = name_of(asking->clean);
	answer->created = from->reply.flags & AGENT_CREATED;
	return true;
}

static void on_answer(void *ctx, const struct agent_answer *from, const struct error *failed)
{
	struct asking *asking = ctx;
	struct files_answer answer = { .fd = -1 };
	struct error err = { 0 };
	bool is_good = true;

	if (failed) {
		err = *failed;
		if (err.sys_errno == EDQUOT) /* a quota of the file system: the workspace's limit */
			files_over_limit(asking->w, &err);
	} else if (asking->verb == AGENT_LIST) {
		is_good = take_list(from, asking->after, asking->limit, &asking->arena, &answer);
	} else if (asking->verb == AGENT_OPEN || asking->verb == AGENT_CREATE) {
		is_good = fill_opened(asking, from->fd, &answer, &err) == 0;
	} else if (asking->verb != AGENT_REMOVE) {
		is_good = take_one(asking, from, &answer);
	}
	if (!is_good)
		fail(&err, ERR_UNAVAILABLE,
			"the file agent of workspace '%s' sent an invalid answer",
			asking->w->model.name);
	end_asking(asking, failed || !is_good ? NULL : &answer, failed || !is_good ? &err : NULL);
}

void files_ask(struct core_workspace *w, const struct agent_ask *ask, const char *clean,
	files_fn *done, void *ctx)
{
	struct asking *asking = new_asking(w, done, ctx);

	asking->verb = ask->verb;
	asking->clean = arena_text(&asking->arena, clean);
	asking->after =
		ask->verb == AGENT_LIST && ask->text ? arena_text(&asking->arena, ask->text) : NULL;
	asking->limit = ask->limit;
	agent_ask(w, ask, on_answer, asking);
}

int files_enter(
	const struct request *request, enum verb verb, struct core_workspace *w, struct error *err)
{
	if (access_check(w->core, request, verb, w, err))
		return -1;
	core_touch(w);
	return 0;
}

/* One that is about its path alone. */
static void ask_path(const struct request *request, enum verb right, struct core_workspace *w,
	enum agent_verb verb, const char *path, files_fn *done, void *ctx)
{
	char clean[AGENT_PATH_MAX];
	struct error err;
	struct agent_ask ask = { .verb = verb, .path = clean, .fd = -1 };

	if (files_enter(request, right, w, &err) < 0 || files_clean_path(path, clean, &err) < 0)
		files_refuse(w, &err, done, ctx);
	else
		files_ask(w, &ask, clean, done, ctx);
}

void files_stat(const struct request *request, struct core_workspace *w, const char *path,
	files_fn *done, void *ctx)
{
	ask_path(request, VERB_FILE_READ, w, AGENT_STAT, path, done, ctx);
}

void files_open(const struct request *request, struct core_workspace *w, const char *path,
	files_fn *done, void *ctx)
{
	ask_path(request, VERB_FILE_READ, w, AGENT_OPEN, path, done, ctx);
}

void files_mkdir(const struct request *request, struct core_workspace *w, const char *path,
	files_fn *done, void *ctx)
{
	ask_path(request, VERB_FILE_WRITE, w, AGENT_MKDIR, path, done, ctx);
}

void files_list(const struct request *request, struct core_workspace *w, const char *path,
	const char *cursor, size_t limit, files_fn *done, void *ctx)
{
	char clean[AGENT_PATH_MAX];
	auto_arena struct arena arena;
	const char *after = NULL;
	struct error err;

	arena_init(&arena);
	if (files_enter(request, VERB_FILE_READ, w, &err) < 0 ||
		files_clean_path(path, clean, &err) < 0 ||
		(cursor && parse_cursor(&arena, cursor, &after, &err) < 0)) {
		files_refuse(w, &err, done, ctx);
		return;
	}
	struct agent_ask ask = {
		.verb = AGENT_LIST, .path = clean, .text = after, .limit = limit, .fd = -1
	};
	files_ask(w, &ask, clean, done, ctx);
}

void files_move(const struct request *request, struct core_workspace *w, const char *from,
	const char *to, files_fn *done, void *ctx)
{
	char clean[AGENT_PATH_MAX], target[AGENT_PATH_MAX];
	struct error err;
	struct agent_ask ask = { .verb = AGENT_MOVE, .path = clean, .text = target, .fd = -1 };

	if (files_enter(request, VERB_FILE_WRITE, w, &err) < 0 ||
		files_clean_path(from, clean, &err) < 0 || files_clean_path(to, target, &err) < 0)
		files_refuse(w, &err, done, ctx);
	else if (files_is_root(clean) || files_is_root(target)) {
		fail(&err, ERR_INVALID, "the root of a workspace can't be moved or replaced");
		files_refuse(w, &err, done, ctx);
	} else
		files_ask(w, &ask, target, done, ctx);
}

void files_remove(const struct request *request, struct core_workspace *w, const char *path,
	bool recursive, files_fn *done, void *ctx)
{
	char clean[AGENT_PATH_MAX];
	struct error err;
	struct agent_ask ask = { .verb = AGENT_REMOVE,
		.path = clean,
		.flags = recursive ? AGENT_RECURSIVE : 0,
		.fd = -1 };

	if (files_enter(request, VERB_FILE_REMOVE, w, &err) < 0 ||
		files_clean_path(path, clean, &err) < 0)
		files_refuse(w, &err, done, ctx);
	else if (files_is_root(clean)) {
		fail(&err, ERR_INVALID, "the root of a workspace can't be removed");
		files_refuse(w, &err, done, ctx);
	} else {
		w->is_overgrown = false; /* how much that makes room for is known later */
		files_ask(w, &ask, clean, done, ctx);
	}
}
