/* carrel tool: tools that are tested before they are loaded. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "cli/agents/tool.h"
#include "cli/plain.h"
#include "cli/run/network.h"
#include "model/agents/tool.h"

#define ARGUMENTS_MAX ((size_t)1 << 20)
#define LINK_PREFIX "venv_"

static const char *tool_path(struct command *command, const char *name, const char *more)
{
	return arena_printf(
		&command->arena, "/v1/tools/%s%s", remote_escape(&command->remote, name), more);
}

/* NAME [VERSION]: sets options.version, as --version does. */
static int read_version(struct command *command, struct error *err)
{
	const char *text = command->operands.count > 1 ? command->operands.items[1] : NULL;
	uint64_t version;
	if (!text)
		return 0;
	if (!str_to_u64(str_from(text), &version) || !version)
		return fail_hint(
			err, ERR_INVALID, "a number from 1 on", "invalid version '%s'", text);
	if (command->options.version)
		return fail(err, ERR_INVALID, "version %s and --version can't be combined", text);
	command->options.version = version;
	return 0;
}

/* ---- the directory of links ---- */

struct view {
	struct command *command;
	const char *home;
	pair_list links; /* name and target */
};

static void add_link(void *ctx, const struct json_value *item)
{
	struct view *view = ctx;
	struct arena *arena = &view->command->arena;
	const char *name = json_member_text(item, "name");
	const char *state = json_member_text(item, "state");
	const char *environment = json_member_text(item, "environment");
	if (!name || !state || strcmp(state, "active") != 0 || !environment)
		return;
	bool is_package = str_starts_with(str_from(name), TOOL_PACKAGE_PREFIX);
	vec_push(arena, &view->links,
		(struct text_pair){
			arena_printf(arena, "%s%s", is_package ? "" : LINK_PREFIX, name),
			arena_printf(arena, "%s/envs/%s", view->home, environment) });
}

/* Where a link of that name leads; NULL: it isn't a link. */
static const char *read_link(int dir, const char *name, char out[PATH_MAX])
{
	ssize_t len = readlinkat(dir, name, out, PATH_MAX - 1);
	if (len < 0)
		return NULL;
	out[len] = '\0';
	return out;
}

static bool is_wanted(const struct view *view, const char *name)
{
	for (size_t i = 0; i < view->links.count; i++)
		if (!strcmp(view->links.items[i].key, name))
			return true;
	return false;
}

static void remove_stale(const struct view *view, int dir)
{
	const char *inside = arena_printf(&view->command->arena, "%s/envs/", view->home);
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	DIR *all = copy >= 0 ? fdopendir(copy) : NULL;
	char target[PATH_MAX];
	struct dirent *entry;
	if (!all) {
		fd_close(&copy);
		return;
	}
	while ((entry = readdir(all))) {
		struct str name = str_from(entry->d_name);
		if ((str_starts_with(name, LINK_PREFIX) ||
			    str_starts_with(name, TOOL_PACKAGE_PREFIX)) &&
			!is_wanted(view, entry->d_name) && read_link(dir, entry->d_name, target) &&
			str_starts_with(str_from(target), inside))
			unlinkat(dir, entry->d_name, 0);
	}
	closedir(all);
}

/* Replaced by a rename: a reader finds the old one or the new one. */
static int make_link(int dir, const struct text_pair *link, struct error *err)
{
	char target[PATH_MAX], temporary[TOOL_NAME_MAX + 32];
	const char *there = read_link(dir, link->key, target);
	if (there && !strcmp(there, link->value))
		return 0;
	if (!there && !faccessat(dir, link->key, F_OK, AT_SYMLINK_NOFOLLOW))
		return fail(err, ERR_CONFLICT, "VENV_BASE: '%s' is not a link", link->key);
	str_format(temporary, sizeof temporary, ".%s.%d", link->key, (int)getpid());
	if (symlinkat(link->value, dir, temporary))
		return fail_errno(err, "VENV_BASE: make the link '%s'", link->key);
	if (renameat(dir, temporary, dir, link->key)) {
		fail_errno(err, "VENV_BASE: make the link '%s'", link->key);
		unlinkat(dir, temporary, 0);
		return -1;
	}
	return 0;
}

/* VENV_BASE, a directory of this machine: links venv_NAME and pypi_PACKAGE in it lead to the
 * environments of the active tools of this home's daemon; links to environments of this home that
 * no active tool has are removed. Nothing else there is touched. Without VENV_BASE: nothing.
 * With a daemon of another machine: it says so. */
static int update_view(struct command *command, struct error *err)
{
	const char *base = getenv("VENV_BASE");
	struct view view = { .command = command };
	if (!base || !base[0])
		return 0;
	if (command->remote.is_far || command->remote.host) {
		cli_say("VENV_BASE: the environments are on the daemon's machine: no links are "
			"kept");
		return 0;
	}
	if (cli_open_home(command, err))
		return -1;
	view.home = command->home.path;
	if (remote_each(&command->remote, "/v1/tools", add_link, &view, err))
		return -1;
	if (mkdir(base, 0755) && errno != EEXIST)
		return fail_errno(err, "VENV_BASE: make '%s'", base);
	auto_close int dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "VENV_BASE: open '%s'", base);
	remove_stale(&view, dir);
	for (size_t i = 0; i < view.links.count; i++)
		if (make_link(dir, &view.links.items[i], err))
			return -1;
	return 0;
}

/* ---- forge, install ---- */

static int print_options(const void *ctx, struct json *j, struct error *err)
{
	const struct options *options = ctx;
	struct limits limits = options->limits;
	limits.timeout_ms = 0; /* it is of the tests */
	record_print_given(j, "limits", &limits_record, &limits);
	if (options->limits.timeout_ms)
		json_u64(j, "timeout_ms", options->limits.timeout_ms);
	return network_print_options(options, j, err);
}

/* What an option names is sent in its place. */
static int read_text(struct command *command, const char **text, struct error *err)
{
	const char *path = *text;
	struct str content;
	if (cli_read_file(path, TOOL_BYTES_MAX, &command->arena, &content, err))
		return -1;
	if (str_utf8_prefix(content.data, content.len) != content.len ||
		memchr(content.data, '\0', content.len))
		return fail(err, ERR_INVALID, "%s: not a text in UTF-8", path);
	*text = content.data;
	return 0;
}

/* 0: it is active; 1: it is dormant, and the reason and the output of its tests are shown. */
static int show_forged(
	struct command *command, const struct remote_answer *answer, struct error *err)
{
	const char *state = json_member_text(answer->value, "state");
	const char *name = json_member_text(answer->value, "name");
	const char *error = json_member_text(answer->value, "error");
	const struct json_value *output = json_member(answer->value, "output");
	uint64_t version = 0;
	bool is_active = state && !strcmp(state, "active");
	json_member_u64(answer->value, "version", &version);
	if (update_view(command, err))
		return -1;
	if (command->json) {
		plain_show(command, answer);
		return is_active ? 0 : 1;
	}
	if (is_active) {
		buf_printf(&command->out, "%s version %llu is active\n", name ? name : "",
			(unsigned long long)version);
		return 0;
	}
	if (output && output->kind == JSON_STRING)
		(void)!fd_write_full(STDERR_FILENO, output->string.data, output->string.len);
	cli_say("%s version %llu is dormant: %s", name ? name : "", (unsigned long long)version,
		error ? error : "");
	return 1;
}

static int run_install(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	if (plain_ask_with(command, print_options, &command->options, &answer, err))
		return -1;
	return show_forged(command, &answer, err);
}

static int run_forge(struct command *command, struct error *err)
{
	struct options *options = &command->options;
	if (tool_check_name(command->operands.items[0], err))
		return -1;
	if (!options->code || !options->tests)
		return fail_hint(err, ERR_INVALID, args_usage(command->spec).text,
			"tool forge needs %s",
			options->code	 ? "--tests FILE"
			: options->tests ? "--code FILE"
					 : "--code FILE and --tests FILE");
	return read_text(command, &options->code, err) || read_text(command, &options->tests, err)
		       ? -1
		       : run_install(command, err);
}

#define FORGE_ROWS                                                                                 \
	{ 0, "requires", ARG_LIST, AT(requires), "PKG",                                            \
		"with this Python package, e.g. 'requests>=2.31'; repeatable", NULL, 1 },          \
		{ 0, "python", ARG_TEXT, AT(env.python), "VERSION", "use this Python (3.12)",      \
			NULL, 1 },                                                                 \
		{ 0, "description", ARG_TEXT, AT(note), "TEXT", "for lists", NULL, 1 },            \
		{ 0, "ttl", ARG_DURATION, AT(ttl_ms), "TIME",                                      \
			"keep this version for so long when it isn't active (default 24h)", NULL,  \
			1 },                                                                       \
		{ .kind = ARG_RECORD, .offset = AT(limits), .record = &limits_record },            \
		{ ARG_FROM(network_rows) },                                                        \
	{                                                                                          \
		ARG_FROM(remote_rows)                                                              \
	}
static const struct arg_option forge_table[] = {
	{ 0, "code", ARG_TEXT, AT(code), "FILE", "the tool: a Python module with a function run",
		NULL, 1 },
	{ 0, "tests", ARG_TEXT, AT(tests), "FILE", "its tests, for pytest; they import tool", NULL,
		1 },
	FORGE_ROWS,
};
static const struct arg_spec forge_spec = {
	.command = "tool forge",
	.summary = "test code, and load it as a tool",
	.usage = "NAME --code FILE --tests FILE [options]",
	.about = "Runs the tests of a tool twice, in order and in reverse order, in a workspace of "
		 "its own. If they pass, the tool is active, in place of the version before it; "
		 "else it is dormant, the reason and the output of the tests are shown, and the "
		 "exit code is 1.",
	ARG_TABLE(forge_table),
	.examples = "  carrel tool forge slug --code slug.py --tests test_slug.py\n"
		    "  carrel tool forge fetch --code fetch.py --tests test_fetch.py --requires "
		    "httpx\n",
	.run = run_forge,
	.sends = "name",
	.cancels = "the forging",
	.afterwards = "carrel tool ls lists what there is",
};

static const struct arg_option install_table[] = { FORGE_ROWS };
static const struct arg_spec install_spec = {
	.command = "tool install",
	.summary = "make a tool of a Python package",
	.usage = "PACKAGE [options]",
	.about = "Makes the tool pypi_PACKAGE, with an environment of its own, an adapter that "
		 "calls the public functions of the package, and a test that it can be imported.",
	ARG_TABLE(install_table),
	.examples = "  carrel tool install python-slugify\n  carrel tool call pypi_python-slugify "
		    "'{\"function\": \"slugify.slugify\", \"args\": [\"A b\"]}'\n",
	.run = run_install,
	.sends = "package",
	.cancels = "the forging",
	.afterwards = "carrel tool ls lists what there is",
	.asks = "forgeTool",
};

/* ---- call ---- */

static int read_arguments(struct command *command, struct str *text, struct error *err)
{
	struct json_value *value;
	*text = STR("{}");
	if (command->operands.count > 1)
		*text = str_from(command->operands.items[1]);
	if (str_is(*text, "-") && cli_read_file("-", ARGUMENTS_MAX, &command->arena, text, err))
		return -1;
	if (json_read(*text, &command->arena, &value, err))
		return error_context(err, "the arguments are not valid JSON");
	return value->kind == JSON_OBJECT
		       ? 0
		       : fail(err, ERR_INVALID, "the arguments must be a JSON object");
}

static int print_arguments(const void *ctx, struct json *j, struct error *err)
{
	json_raw(j, "arguments", ctx);
	return 0;
}

static void say_stream(const struct json_value *answer, const char *key)
{
	const struct json_value *text = json_member(answer, key);
	if (text && text->kind == JSON_STRING)
		(void)!fd_write_full(STDERR_FILENO, text->string.data, text->string.len);
}

static int run_call(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	struct str text;
	if (read_arguments(command, &text, err) || remote_open(&command->remote, err))
		return -1;
	remote_catch_interrupts(&command->remote);
	int failed = plain_ask_with(command, print_arguments,
		arena_bytes(&command->arena, text.data, text.len), &answer, err);
	if (remote_is_interrupted())
		return fail(err, ERR_CANCELED, "interrupted: the call was ended");
	if (failed)
		return -1;
	const struct json_value *result = json_member(answer.value, "result");
	const struct json_value *error = json_member(answer.value, "error");
	bool is_good = json_member_true(answer.value, "ok") && result;
	if (command->json) {
		remote_print_answer(&answer, &command->out);
		return is_good ? 0 : 1;
	}
	say_stream(answer.value, "stdout");
	say_stream(answer.value, "stderr");
	if (is_good) {
		buf_append(&command->out, result->source.data, result->source.len);
		buf_text(&command->out, "\n");
		return 0;
	}
	const char *type = json_member_text(error, "type");
	const char *message = json_member_text(error, "message");
	say_stream(error, "traceback");
	cli_say("tool '%s' has failed: %s%s%s", command->operands.items[0], type ? type : "",
		type ? ": " : "", message ? message : "");
	return 1;
}

static const struct arg_option version_row[] = {
	{ 0, "version", ARG_COUNT, AT(version), "N", "this version, not the active one", NULL, 1 },
};
static const struct arg_option call_table[] = {
	{ 0, "timeout", ARG_DURATION, AT(timeout_ms), "TIME",
		"end the call after this time (default 300s)", NULL, 1 },
	{ ARG_FROM(version_row) },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec call_spec = {
	.command = "tool call",
	.summary = "call a tool",
	.usage = "NAME [JSON] [options]",
	.about = "Calls run(**arguments) of a tool, in its own workspace, with the members of the "
		 "JSON object as arguments, and prints what it returns as JSON. JSON is read from "
		 "standard input for -. What the tool prints goes to standard error. The exit code "
		 "is 1 when the tool fails.",
	ARG_TABLE(call_table),
	.examples = "  carrel tool call slug '{\"text\": \"A title\"}'\n",
	.run = run_call,
};

/* ---- ls, show, logs ---- */

static int run_ls(struct command *command, struct error *err)
{
	return plain_list(command, err) || update_view(command, err) ? -1 : 0;
}

static const struct arg_spec ls_spec = {
	.command = "tool ls",
	.summary = "list tools",
	.about = "Lists tools: of each the active version, else the newest one.",
	ARG_TABLE(plain_names_table),
	.examples = "  carrel tool ls -o json\n",
	.run = run_ls,
	.record = &tool_record,
	.key = "name",
};

static int print_fields(struct command *command, const struct json_value *tool, struct error *err)
{
	static const char *const names[] = { "name", "version", "state", "error", "description",
		"package", "requires", "environment", "workspace", "created_at", "expires_at",
		"sha256" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t at = 0; at < tool_record.count; at++) {
			const struct field *row = &tool_record.rows[at];
			if (strcmp(row->name, names[i]) != 0 || !(row->flags & FIELD_OUT))
				continue;
			const char *text = row->kind == FIELD_TIME
						   ? json_member_text(tool, row->name)
						   : columns_text(&command->arena, row, tool);
			if (text && text[0])
				buf_printf(&command->out, "%-12s  %s\n", names[i], text);
		}
	buf_text(&command->out, "\n");
	return listing_print_records(command, &tool_record, "version",
		tool_path(command, command->operands.items[0], "/versions"), err);
}

static int run_show(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	if (read_version(command, err) || plain_ask(command, &answer, err))
		return -1;
	if (command->json)
		return plain_show(command, &answer);
	const char *code = json_member_text(answer.value, "code");
	if (command->options.is_stream) {
		buf_text(&command->out, code ? code : "");
		return 0;
	}
	return print_fields(command, answer.value, err);
}

static const struct arg_option show_table[] = {
	{ 0, "code", ARG_FLAG, AT(is_stream), NULL, "print its code alone" },
	{ ARG_FROM(version_row) },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec show_spec = {
	.command = "tool show",
	.summary = "show a tool and its versions",
	.usage = "NAME [VERSION] [options]",
	.about = "Shows a tool and its versions. With -o json also its code, its tests and what "
		 "they have printed.",
	ARG_TABLE(show_table),
	.examples = "  carrel tool show slug\n  carrel tool show slug 2 --code\n",
	.run = run_show,
};

static int show_logs(struct command *command, const struct json_value *tool)
{
	const struct json_value *output = json_member(tool, "output");
	const char *error = json_member_text(tool, "error");
	if (output && output->kind == JSON_STRING)
		buf_append(&command->out, output->string.data, output->string.len);
	if (error)
		buf_printf(&command->out, "error: %s\n", error);
	return 0;
}

static int run_logs(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	if (read_version(command, err))
		return -1;
	/* Not the active version: the last one that was forged. */
	if (!command->options.version) {
		if (remote_call(&command->remote, "GET",
			    tool_path(command, command->operands.items[0], "/versions?limit=1"),
			    NULL, &answer, err))
			return -1;
		json_member_u64(json_member_first(answer.value, "items"), "version",
			&command->options.version);
	}
	return plain_run(command, err);
}

static const struct arg_option logs_table[] = {
	{ ARG_FROM(version_row) },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec logs_spec = {
	.command = "tool logs",
	.summary = "show what the tests of a tool have printed",
	.usage = "NAME [VERSION] [options]",
	.about = "Prints what the tests of the version that was forged last, or of VERSION, have "
		 "printed, the end of it, and why it is dormant.",
	ARG_TABLE(logs_table),
	.examples = "  carrel tool logs slug\n  carrel tool logs slug 2\n",
	.run = run_logs,
	.show = show_logs,
	.asks = "getTool",
};

/* ---- rollback, rm ---- */

static int print_version(const void *ctx, struct json *j, struct error *err)
{
	const struct options *options = ctx;
	if (options->version)
		json_u64(j, "version", options->version);
	return 0;
}

static int run_rollback(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	if (read_version(command, err) ||
		plain_ask_with(command, print_version, &command->options, &answer, err))
		return -1;
	return show_forged(command, &answer, err);
}

static const struct arg_spec rollback_spec = {
	.command = "tool rollback",
	.summary = "load another version of a tool",
	.usage = "NAME [VERSION] [options]",
	.about = "Loads the newest version below the active one that has passed its tests, or "
		 "VERSION. Versions that aren't active are kept for 24 hours, unless forged with "
		 "--ttl.",
	REMOTE_OPTIONS,
	.examples = "  carrel tool rollback slug\n  carrel tool rollback slug 2\n",
	.run = run_rollback,
};

static int run_rm(struct command *command, struct error *err)
{
	int code = plain_remove(command, err);
	return code < 0 || update_view(command, err) ? -1 : code;
}

static const struct arg_spec rm_spec = {
	.command = "tool rm",
	.summary = "remove tools",
	.usage = "NAME... [options]",
	.about = "Removes tools with all their versions and workspaces.",
	REMOTE_OPTIONS,
	.examples = "  carrel tool rm slug pypi_python-slugify\n",
	.run = run_rm,
};

static const struct arg_spec *const commands[] = { &forge_spec, &install_spec, &call_spec, &ls_spec,
	&show_spec, &logs_spec, &rollback_spec, &rm_spec, &tool_discover_spec, &tool_generate_spec,
	NULL };
const struct arg_spec cli_tool = {
	.command = "tool",
	.summary = "forge, list, call and remove tools",
	.group = GROUP_AGENTS,
	.about = "Tools: Python code that is tested before it is loaded, each in workspaces of\n"
		 "its own.",
	.commands = commands,
};
