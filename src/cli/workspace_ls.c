/* carrel ls, info. */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/columns.h"
#include "cli/env.h"
#include "cli/remote.h"
#include "model/workspace.h"

struct ls_options {
	struct remote_options remote;
	text_list labels;
	const char *state;
	bool quiet;
};
#define FIELD(name) offsetof(struct ls_options, name)
static const struct arg_option ls_table[] = {
	{ 'l', "label", ARG_LIST, FIELD(labels), "KEY[=VALUE]",
		"only workspaces with this label; repeatable", NULL, 0, 0 },
	{ 0, "state", ARG_CHOICE, FIELD(state), "STATE",
		"only workspaces in this state: creating, ready, running, suspended, failed or "
		"deleting",
		"creating|ready|running|suspended|failed|deleting", 0, 0 },
	{ 'q', "quiet", ARG_FLAG, FIELD(quiet), NULL, "names only", NULL, 0, 0 },
	REMOTE_ROWS(FIELD),
};
#undef FIELD
static const struct arg_spec ls_spec = {
	.command = "ls",
	.usage = "carrel ls [options]",
	.about = "Lists workspaces, newest first: state, whether a sandbox is ready (WARM), age, "
		 "last\nuse, bytes on disk, environment and labels.",
	.options = ls_table,
	.option_count = sizeof ls_table / sizeof *ls_table,
	.examples = "  carrel ls --label team=search\n"
		    "  carrel ls -q --state failed\n",
};

struct listing {
	const struct ls_options *options;
	struct columns columns;
	struct buf *out;
};

static void add_line(void *ctx, const struct json_value *item)
{
	struct listing *listing = ctx;
	const char *name = json_member_text(item, "name");
	if (listing->options->quiet)
		buf_printf(listing->out, "%s\n", name ? name : "-");
	else
		columns_add_object(&listing->columns, &workspace_record, item);
}

static const char *list_path(struct remote *remote, const struct ls_options *options)
{
	const char *path = "/v1/workspaces";
	char separator = '?';
	for (size_t i = 0; i < options->labels.count; i++, separator = '&')
		path = arena_printf(&remote->arena, "%s%clabel=%s", path, separator,
			remote_escape(remote, options->labels.items[i]));
	if (options->state)
		path = arena_printf(
			&remote->arena, "%s%cstate=%s", path, separator, options->state);
	return path;
}

int cli_ls(int argc, char **argv)
{
	struct ls_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	auto_buf struct buf out;
	text_list operands = { 0 };
	struct error err;
	int code;
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!remote_parse(&remote, &ls_spec, argc, argv, &options, &options.remote, 0, 0, &operands,
		    &code))
		return code;
	if (remote_open(&remote, &options.remote, &err))
		return cli_fail(&err, remote.json);
	const char *path = list_path(&remote, &options);
	if (remote.json) {
		code = remote_print_list(&remote, path, &err);
		return code < 0 ? cli_fail(&err, true) : code;
	}
	struct listing listing = { .options = &options,
		.columns = { .width = columns_width(), .arena = &remote.arena },
		.out = &out };
	columns_begin(&listing.columns, &workspace_record);
	if (remote_each(&remote, path, add_line, &listing, &err))
		return cli_fail(&err, false);
	if (!options.quiet)
		columns_print(&listing.columns, &out);
	return remote_print(&out);
}

struct info_options {
	struct remote_options remote;
};
#define FIELD(name) offsetof(struct info_options, name)
static const struct arg_option info_table[] = { REMOTE_ROWS(FIELD) };
#undef FIELD
static const struct arg_spec info_spec = {
	.command = "info",
	.usage = "carrel info NAME [options]",
	.about = "Shows one workspace, given by name, id or context_id: its limits, the mechanism "
		 "that\n"
		 "enforces them, and the isolation of its sandbox.",
	.options = info_table,
	.option_count = sizeof info_table / sizeof *info_table,
};

static void print_line(struct buf *out, const char *name, const char *value)
{
	char shown[1024];
	str_printable(shown, sizeof shown, str_from(value && value[0] ? value : "-"));
	buf_printf(out, "%-12s  %s\n", name, shown);
}

static const char *age_text(struct arena *arena, const char *time)
{
	char age[32];
	env_format_age(age, time, clock_now_ms());
	return arena_text(arena, age);
}

/* The mechanism, and how strong it is. */
static const char *disk_text(struct arena *arena, const char *mechanism)
{
	return arena_printf(arena, "%s (%s)", mechanism,
		!strcmp(mechanism, "counted") ? "approximate" : "exact");
}

/* By what the limits are kept. */
static const char *keeper_text(struct arena *arena, const struct json_value *w)
{
	const char *mechanism = json_member_text(json_member(w, "limits"), "mechanism");
	const char *disk = json_member_text(w, "disk_limit_mechanism");
	return arena_printf(arena, "%s%s%s", mechanism ? mechanism : "",
		mechanism && disk ? "; disk: "
		: disk		  ? "disk: "
				  : "",
		disk ? disk_text(arena, disk) : "");
}

/* A field of the record under its label; `error` only when there is one. */
static const struct {
	const char *label, *field;
} lines[] = { { "name", "name" }, { "id", "id" }, { "state", "state" }, { "warm", "warm" },
	{ "created", "created_at" }, { "last used", "last_used_at" }, { "expires", "expires_at" },
	{ "idle timeout", "idle_timeout" }, { "environment", "environment" },
	{ "labels", "labels" }, { "variables", "env" }, { "disk", "disk_usage" },
	{ "limits", "limits" } };

static const struct field *find_field(const char *name)
{
	const struct record *record = &workspace_record;
	for (size_t i = 0; i < record->count; i++)
		if (!strcmp(record->rows[i].name, name) &&
			field_is(record, &record->rows[i], FIELD_OUT))
			return &record->rows[i];
	abort();
}

static void print_info(struct buf *out, struct arena *arena, const struct json_value *w)
{
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		const struct field *row = find_field(lines[i].field);
		const char *text = columns_text(arena, row, w),
			   *time = json_member_text(w, row->name);
		if (row->kind == FIELD_TIME && time)
			text = strcmp(row->name, "expires_at")
				       ? arena_printf(arena, "%s (%s)", time, age_text(arena, time))
				       : time;
		print_line(out, lines[i].label, text);
	}
	print_line(out, "kept by", keeper_text(arena, w));
	print_line(out, "network", json_member_text(json_member(w, "network"), "mode"));
	const char *isolation = json_member_text(w, "isolation");
	print_line(out, "isolation",
		arena_printf(arena, "%s: %s", isolation ? isolation : "-",
			columns_list(arena, json_member(w, "layers_active"))));
	const struct json_value *ptrace = json_member(w, "ptrace");
	print_line(out, "ptrace", ptrace && ptrace->boolean ? "allowed" : "refused");
	const char *error = json_member_text(w, "error");
	if (error)
		print_line(out, "error", error);
}

int cli_info(int argc, char **argv)
{
	struct info_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	auto_buf struct buf out;
	text_list operands = { 0 };
	struct remote_answer answer;
	struct error err;
	int code;
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!remote_parse(&remote, &info_spec, argc, argv, &options, &options.remote, 1, 1,
		    &operands, &code))
		return code;
	if (remote_open(&remote, &options.remote, &err) ||
		remote_call(&remote, "GET",
			remote_workspace_path(&remote, operands.items[0], "?measure"), NULL,
			&answer, &err))
		return cli_fail(&err, remote.json);
	if (remote.json)
		return remote_print_answer(&answer);
	print_info(&out, &remote.arena, answer.value);
	return remote_print(&out);
}
