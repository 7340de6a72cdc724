/* carrel ls, info. */
#include <inttypes.h>
#include <string.h>
#include "base/clock.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/columns.h"
#include "cli/env.h"
#include "cli/remote.h"
#include "format/quantity.h"

/* ---- ls ---- */

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

static bool is_warm(const struct json_value *workspace)
{
	const struct json_value *warm = json_member(workspace, "warm");
	return warm && warm->kind == JSON_BOOL && warm->boolean;
}

static void add_line(void *ctx, const struct json_value *item)
{
	struct listing *listing = ctx;
	struct arena *arena = listing->columns.arena;
	char age[32], used[32], size[16];
	uint64_t bytes = 0;
	const char *name = json_member_text(item, "name");
	if (listing->options->quiet) {
		buf_printf(listing->out, "%s\n", name ? name : "-");
		return;
	}
	remote_format_age(age, json_member_text(item, "created_at"));
	remote_format_age(used, json_member_text(item, "last_used_at"));
	json_member_u64(item, "disk_usage_bytes", &bytes);
	quantity_format_size(size, bytes);
	columns_add(
		&listing->columns, (const char *[]){ name, json_member_text(item, "state"),
					   is_warm(item) ? "yes" : "no", age, used, size,
					   json_member_text(item, "environment"),
					   remote_join_pairs(arena, json_member(item, "labels")) });
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
	static const char *const heads[] = { "NAME", "STATE", "WARM", "AGE", "USED", "DISK",
		"ENVIRONMENT", "LABELS" };
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
		.columns = { .count = 8,
			.numbers = 1 << 5,
			.width = columns_width(),
			.arena = &remote.arena },
		.out = &out };
	columns_add(&listing.columns, heads);
	if (remote_each(&remote, path, add_line, &listing, &err))
		return cli_fail(&err, false);
	if (!options.quiet)
		columns_print(&listing.columns, &out);
	return remote_print(&out);
}

/* ---- info ---- */

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

static void print_time(struct buf *out, const char *name, const char *time)
{
	char age[32], line[128];
	env_format_age(age, time, clock_now_ms());
	str_format(line, sizeof line, "%s (%s)", time ? time : "", age);
	print_line(out, name, time ? line : NULL);
}

/* "2.0G", "300s", "256": as it would be typed. */
static const char *limit_text(struct arena *arena, const char *name, const struct json_value *value)
{
	char size[16];
	if (value->kind == JSON_NUMBER && !value->is_integer)
		return arena_printf(arena, "%g", value->number);
	if (value->kind != JSON_NUMBER || value->integer < 0)
		return "none";
	uint64_t number = (uint64_t)value->integer;
	size_t len = strlen(name);
	if (len > 6 && !strcmp(name + len - 6, "_bytes")) {
		quantity_format_size(size, number);
		return arena_text(arena, size);
	}
	if (len > 3 && !strcmp(name + len - 3, "_ms"))
		return number % 1000 ? arena_printf(arena, "%" PRIu64 "ms", number)
				     : arena_printf(arena, "%" PRIu64 "s", number / 1000);
	return arena_printf(arena, "%" PRIu64, number);
}

/* The mechanism, and how strong it is. */
static const char *disk_text(struct arena *arena, const char *mechanism)
{
	return arena_printf(arena, "%s (%s)", mechanism,
		!strcmp(mechanism, "counted") ? "approximate" : "exact");
}

static void print_limits(
	struct buf *out, struct arena *arena, const struct json_value *limits, const char *disk)
{
	/* As the options are called. */
	static const char *const rows[][2] = { { "memory_bytes", "memory" },
		{ "disk_bytes", "disk" }, { "tmp_bytes", "tmp" }, { "pids", "pids" },
		{ "fds", "fds" }, { "cpus", "cpus" }, { "cpu_time_ms", "cpu-time" },
		{ "timeout_ms", "timeout" }, { "output_bytes", "output" } };
	const char *line = "";
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct json_value *value = json_member(limits, rows[i][0]);
		if (value && value->kind != JSON_NULL)
			line = arena_printf(arena, "%s%s%s %s", line, line[0] ? ", " : "",
				rows[i][1], limit_text(arena, rows[i][0], value));
	}
	print_line(out, "limits", line);
	const char *mechanism = json_member_text(limits, "mechanism");
	print_line(out, "kept by",
		arena_printf(arena, "%s%s%s", mechanism ? mechanism : "",
			mechanism && disk ? "; disk: "
			: disk		  ? "disk: "
					  : "",
			disk ? disk_text(arena, disk) : ""));
}

static const char *join_texts(struct arena *arena, const struct json_value *array)
{
	const char *joined = "";
	for (const struct json_value *item = array ? array->first : NULL; item; item = item->next)
		if (item->kind == JSON_STRING)
			joined = arena_printf(
				arena, "%s%s%s", joined, joined[0] ? ", " : "", item->string.data);
	return joined;
}

static void print_info(struct buf *out, struct arena *arena, const struct json_value *w)
{
	char size[16];
	uint64_t bytes = 0;
	const char *mode = json_member_text(json_member(w, "network"), "mode");
	json_member_u64(w, "disk_usage_bytes", &bytes);
	quantity_format_size(size, bytes);
	print_line(out, "name", json_member_text(w, "name"));
	print_line(out, "id", json_member_text(w, "id"));
	print_line(out, "state", json_member_text(w, "state"));
	print_line(out, "warm", is_warm(w) ? "yes" : "no");
	print_time(out, "created", json_member_text(w, "created_at"));
	print_time(out, "last used", json_member_text(w, "last_used_at"));
	print_line(out, "expires", json_member_text(w, "expires_at"));
	print_line(out, "environment", json_member_text(w, "environment"));
	print_line(out, "labels", remote_join_pairs(arena, json_member(w, "labels")));
	print_line(out, "disk", size);
	print_limits(
		out, arena, json_member(w, "limits"), json_member_text(w, "disk_limit_mechanism"));
	print_line(out, "network", mode);
	print_line(out, "isolation",
		arena_printf(arena, "%s: %s",
			json_member_text(w, "isolation") ? json_member_text(w, "isolation") : "-",
			join_texts(arena, json_member(w, "layers_active"))));
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
