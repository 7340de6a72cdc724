#include "cli/daemon/context_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "client/relay.h"

#define FILE_NAME "contexts.json"
#define FILE_MAX_BYTES (1 << 20)

/* ---- the file ---- */

static int find_directory(struct arena *arena, const char **path, struct error *err)
{
	const char *set = getenv("XDG_CONFIG_HOME"), *user = getenv("HOME");
	if (set && path_is_absolute(set))
		*path = path_normalize(arena, set, "carrel");
	else if (user && path_is_absolute(user))
		*path = path_normalize(arena, user, ".config/carrel");
	else
		return fail_hint(
			err, ERR_INVALID, "set HOME", "neither XDG_CONFIG_HOME nor HOME is set");
	return 0;
}

static int read_one(const struct json_value *item, struct context *context)
{
	*context = (struct context){ .name = json_member_text(item, "name"),
		.host = json_member_text(item, "host"),
		.token = json_member_text(item, "token"),
		.ca = json_member_text(item, "ca") };
	return context->name && context->host ? 0 : -1;
}

static int parse(struct str text, struct arena *arena, struct contexts *contexts, struct error *err)
{
	struct json_value *value;
	if (json_read(text, arena, &value, err))
		return error_context(err, "read '%s'", contexts->path);
	const struct json_value *items = json_member(value, "contexts");
	const struct json_value *item = items && items->kind == JSON_ARRAY ? items->first : NULL;
	for (; item; item = item->next) {
		struct context context;
		if (contexts->list.count == CONTEXTS_MAX || read_one(item, &context))
			return fail_hint(err, ERR_CORRUPT,
				"remove the file, and add the contexts again",
				"'%s' is not a list of contexts", contexts->path);
		vec_push(arena, &contexts->list, context);
	}
	const char *current = json_member_text(value, "current");
	if (current && contexts_find(contexts, current))
		contexts->current = current;
	return 0;
}

int contexts_read(struct arena *arena, struct contexts *contexts, struct error *err)
{
	const char *directory;
	struct str text;
	*contexts = (struct contexts){ 0 };
	if (find_directory(arena, &directory, err))
		return -1;
	contexts->path = arena_printf(arena, "%s/" FILE_NAME, directory);
	auto_close int fd = open(contexts->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0 || file_read(fd, FILE_MAX_BYTES, arena, &text))
		return fail_errno(err, "read '%s'", contexts->path);
	return parse(text, arena, contexts, err);
}

static void print(const struct contexts *contexts, struct buf *out)
{
	struct json j = json_to(out, true);
	json_object(&j, NULL);
	json_text(&j, "current", contexts->current);
	json_array(&j, "contexts");
	for (size_t i = 0; i < contexts->list.count; i++) {
		const struct context *one = &contexts->list.items[i];
		json_object(&j, NULL);
		json_text(&j, "name", one->name);
		json_text(&j, "host", one->host);
		if (one->token)
			json_text(&j, "token", one->token);
		if (one->ca)
			json_text(&j, "ca", one->ca);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	buf_char(out, '\n');
}

/* The lock is that of the directory: the file is replaced. */
static int open_locked(struct arena *arena, int *out, struct error *err)
{
	const char *path;
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), made = -1;
	if (find_directory(arena, &path, err) ||
		path_make_directories(root, path + 1, 0700, &made, err))
		return -1;
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || flock(dir, LOCK_EX))
		return fail_errno(err, "lock '%s'", path);
	*out = take_fd(&dir);
	return 0;
}

int contexts_change(struct arena *arena,
	int (*change)(void *ctx, struct contexts *contexts, struct error *err), void *ctx,
	struct error *err)
{
	struct contexts contexts;
	auto_close int dir = -1;
	auto_buf struct buf text = buf_empty(FILE_MAX_BYTES);
	if (open_locked(arena, &dir, err) || contexts_read(arena, &contexts, err) ||
		change(ctx, &contexts, err))
		return -1;
	print(&contexts, &text);
	if (text.overflow || contexts.list.count > CONTEXTS_MAX)
		return fail(err, ERR_LIMIT, "there are too many contexts");
	return file_replace(dir, FILE_NAME, 0600, (struct str){ text.data, text.len }, true)
		       ? fail_errno(err, "write '%s'", contexts.path)
		       : 0;
}

struct context *contexts_find(const struct contexts *contexts, const char *name)
{
	for (size_t i = 0; i < contexts->list.count; i++)
		if (!strcmp(contexts->list.items[i].name, name))
			return &contexts->list.items[i];
	return NULL;
}

int contexts_missing(const char *name, struct error *err)
{
	return fail_hint(err, ERR_NOT_FOUND, "carrel context ls lists them",
		"there is no context '%s'", name);
}

/* ---- the choice ---- */

static int choose_context(
	struct arena *arena, struct host_choice *choice, const char **ca, struct error *err)
{
	struct contexts contexts;
	/* A user without a home has no contexts. */
	if (!getenv("HOME") && !getenv("XDG_CONFIG_HOME"))
		return 0;
	if (contexts_read(arena, &contexts, err))
		return -1;
	const struct context *context =
		contexts.current ? contexts_find(&contexts, contexts.current) : NULL;
	if (!context)
		return 0;
	choice->host = context->host;
	choice->token = context->token;
	choice->by = arena_printf(arena, "context '%s'", context->name);
	if (context->ca)
		*ca = context->ca;
	return 0;
}

int host_choose(
	const char *given, struct arena *arena, struct host_choice *choice, struct error *err)
{
	const char *set = getenv("CARREL_HOST"), *ca = getenv("CARREL_CA");
	char self[PATH_MAX], carreld[PATH_MAX];
	*choice = (struct host_choice){ 0 };
	if (given || (set && set[0])) {
		choice->host = given ? given : set;
		choice->by = given ? "--host" : "CARREL_HOST";
	} else if (choose_context(arena, choice, &ca, err))
		return -1;
	if (choice->host && !strcmp(choice->host, CONTEXT_LOCAL))
		choice->host = NULL;
	if (choice->host && client_check_host(choice->host, err))
		return error_context(err, "%s", choice->by);
	if (!client_is_url(choice->host))
		return 0;
	if (cli_find_programs(self, carreld, err))
		return -1;
	relay_use(carreld, ca && ca[0] ? ca : NULL);
	return 0;
}
