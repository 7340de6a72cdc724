/* carrel context: names of daemons. */
#include <unistd.h>
#include "base/path.h"
#include "cli/columns.h"
#include "cli/daemon/context_file.h"
#include "format/http/uri.h"

#define NAME_LEN_MAX 64

/* ---- add ---- */

static int check_name(const char *name, struct error *err)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(name);
	if (len > NAME_LEN_MAX || strspn(name, letters) != len || strchr(".-", name[0]))
		return fail_hint(err, ERR_INVALID,
			"letters, digits and ._- (not . or - at the beginning), at most 64 "
			"characters",
			"invalid name of a context '%s'", name);
	return strcmp(name, CONTEXT_LOCAL) != 0
		       ? 0
		       : fail(err, ERR_CONFLICT,
				 "the context '" CONTEXT_LOCAL "' is the daemon of this home");
}

static int make_absolute(struct arena *arena, const char *path, const char **out, struct error *err)
{
	char here[PATH_MAX];
	if (!getcwd(here, sizeof here))
		return fail_errno(err, "find the current directory");
	*out = path_normalize(arena, here, path);
	return 0;
}

static int fill(struct command *command, struct context *context, struct error *err)
{
	const struct options *options = &command->options;
	struct arena *arena = &command->arena;
	context->name = command->operands.items[0];
	if (check_name(context->name, err))
		return -1;
	if (!options->host)
		return fail_hint(err, ERR_INVALID, args_usage(command->spec).text,
			"context '%s' needs --host", context->name);
	if (client_check_host(options->host, err))
		return error_context(err, "--host");
	context->host = options->host;
	if (!client_is_url(options->host)) {
		const char *path = options->host;
		path += strncmp(path, "unix:", 5) ? 0 : 5;
		if (make_absolute(arena, path, &path, err))
			return -1;
		context->host = arena_printf(arena, "unix:%s", path);
	}
	if (options->token_file &&
		remote_read_token(options->token_file, arena, &context->token, err))
		return -1;
	if (!options->ca)
		return 0;
	if (make_absolute(arena, options->ca, &context->ca, err))
		return -1;
	return access(context->ca, R_OK) ? fail_errno(err, "--ca '%s'", options->ca) : 0;
}

static bool is_loopback(const char *url)
{
	struct uri_base base;
	return uri_parse_base(url, &base) &&
	       (str_is(base.name, "localhost") || str_is(base.name, "::1") ||
		       str_starts_with(base.name, "127."));
}

struct adding {
	struct command *command;
	struct context context;
};

static int add(void *ctx, struct contexts *contexts, struct error *err)
{
	struct adding *adding = ctx;
	const char *name = adding->context.name;
	if (contexts_find(contexts, name)) {
		fail(err, ERR_CONFLICT, "context '%s' exists already", name);
		return error_hint(err, "carrel context rm %s removes it", name);
	}
	vec_push(&adding->command->arena, &contexts->list, adding->context);
	return 0;
}

static void print_one(struct json *j, const struct context *context, bool is_current)
{
	json_object(j, NULL);
	json_text(j, "name", context->name);
	json_text(j, "host", context->host);
	json_bool(j, "token", context->token != NULL);
	json_text(j, "ca", context->ca);
	json_bool(j, "current", is_current);
	json_end(j);
}

static int run_add(struct command *command, struct error *err)
{
	struct adding adding = { .command = command };
	const struct context *context = &adding.context;
	if (fill(command, &adding.context, err) ||
		contexts_change(&command->arena, add, &adding, err))
		return -1;
	if (context->token && !strncmp(context->host, "http://", 7) && !is_loopback(context->host))
		cli_say("warning: http:// sends the token without encryption: use https://");
	if (command->json)
		print_one(&command->value, context, false);
	else
		buf_printf(&command->out, "added %s\n", context->name);
	return 0;
}

static const struct arg_option add_table[] = {
	{ 0, "host", ARG_TEXT, AT(host), "URL|PATH",
		"https://HOST:PORT, http://HOST:PORT, or unix:PATH", NULL, 1 },
	{ 0, "token-file", ARG_TEXT, AT(token_file), "FILE",
		"the access token for it, which is copied", NULL, 1 },
	{ 0, "ca", ARG_TEXT, AT(ca), "FILE",
		"trust the authorities in FILE (PEM) instead of the system's", NULL, 1 },
	{ ARG_FROM(format_rows) },
};
static const struct arg_spec add_spec = {
	.command = "context add",
	.summary = "give a daemon a name",
	.usage = "NAME --host HOST [options]",
	.about = "Gives a daemon, its access token and its authority a name. They are kept in "
		 "~/.config/carrel/contexts.json, which only you can read. `carrel context use` "
		 "makes it the one that commands use.",
	ARG_TABLE(add_table),
	.examples = "  carrel context add lab --host https://lab.example:7443 --token-file "
		    "lab.token --ca lab-ca.pem\n"
		    "  carrel context use lab\n",
	.run = run_add,
};

/* ---- use, rm ---- */

static int use(void *ctx, struct contexts *contexts, struct error *err)
{
	struct command *command = ctx;
	const char *name = command->operands.items[0];
	bool is_local = !strcmp(name, CONTEXT_LOCAL);
	if (!is_local && !contexts_find(contexts, name))
		return contexts_missing(name, err);
	contexts->current = is_local ? NULL : name;
	return 0;
}

static int run_use(struct command *command, struct error *err)
{
	const char *name = command->operands.items[0], *set = getenv("CARREL_HOST");
	if (contexts_change(&command->arena, use, command, err))
		return -1;
	if (set && set[0])
		cli_say("warning: CARREL_HOST is set, and is used instead");
	if (command->json) {
		json_object(&command->value, NULL);
		json_text(&command->value, "current", name);
		json_end(&command->value);
	} else
		buf_printf(&command->out, "using %s\n", name);
	return 0;
}

static const struct arg_option name_table[] = { { ARG_FROM(format_rows) } };
static const struct arg_spec use_spec = {
	.command = "context use",
	.summary = "choose the daemon that commands use",
	.usage = "NAME [-o json]",
	.about = "Chooses the daemon that commands use without --host and CARREL_HOST. The name "
		 "'local' is the daemon of this home, which is used at first.",
	ARG_TABLE(name_table),
	.run = run_use,
};

struct removal {
	struct command *command;
	cli_ones all;
};

static int remove_all(void *ctx, struct contexts *contexts, struct error *err)
{
	struct removal *removal = ctx;
	const text_list *names = &removal->command->operands;
	for (size_t i = 0; i < names->count; i++) {
		struct cli_one one = { .name = names->items[i] };
		struct context *found = contexts_find(contexts, one.name);
		one.has_failed = !found;
		if (!found)
			contexts_missing(one.name, &one.err);
		if (contexts->current && !strcmp(contexts->current, one.name))
			contexts->current = NULL;
		if (found) {
			struct context *last = &contexts->list.items[--contexts->list.count];
			memmove(found, found + 1, (size_t)(last - found) * sizeof *found);
		}
		vec_push(&removal->command->arena, &removal->all, one);
	}
	return 0;
}

static int run_rm(struct command *command, struct error *err)
{
	struct removal removal = { .command = command };
	return contexts_change(&command->arena, remove_all, &removal, err)
		       ? -1
		       : cli_print_ones(command, &removal.all, "removed", 0, err);
}

static const struct arg_spec rm_spec = {
	.command = "context rm",
	.summary = "forget contexts and their tokens",
	.usage = "NAME... [-o json]",
	.about = "Forgets contexts and their tokens. The tokens stay valid: `carrel token rm` "
		 "revokes them.",
	ARG_TABLE(name_table),
	.run = run_rm,
};

/* ---- ls ---- */

static void add_row(struct columns *columns, const struct context *context, bool is_current)
{
	const char *name =
		is_current ? arena_printf(columns->arena, "%s *", context->name) : context->name;
	columns_add(columns, (const char *[]){ name, context->host, context->token ? "yes" : "no",
				     context->ca });
}

static int run_ls(struct command *command, struct error *err)
{
	static const struct context local = { .name = CONTEXT_LOCAL };
	static const char *const heads[] = { "NAME", "HOST", "TOKEN", "CA" };
	struct columns columns = { .count = 4, .arena = &command->arena };
	struct contexts contexts;
	if (contexts_read(&command->arena, &contexts, err))
		return -1;
	columns_add(&columns, heads);
	add_row(&columns, &local, !contexts.current);
	if (command->json) {
		json_array(&command->value, NULL);
		print_one(&command->value, &local, !contexts.current);
	}
	for (size_t i = 0; i < contexts.list.count; i++) {
		const struct context *one = &contexts.list.items[i];
		bool is_current = contexts.current && !strcmp(contexts.current, one->name);
		add_row(&columns, one, is_current);
		if (command->json)
			print_one(&command->value, one, is_current);
	}
	if (command->json)
		json_end(&command->value);
	else
		columns_print(&columns, &command->out);
	return 0;
}

static const struct arg_spec ls_spec = {
	.command = "context ls",
	.summary = "list contexts",
	.usage = "[-o json]",
	.about = "Lists the contexts; a star marks the one that commands use. Tokens are not "
		 "printed.",
	ARG_TABLE(name_table),
	.run = run_ls,
};

static const struct arg_spec *const commands[] = { &add_spec, &use_spec, &ls_spec, &rm_spec, NULL };
const struct arg_spec cli_context = {
	.command = "context",
	.summary = "give daemons of other machines names, and choose one",
	.group = GROUP_DAEMON,
	.about = "Names of daemons, with their access tokens and authorities.",
	.commands = commands,
};
