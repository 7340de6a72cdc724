/* carrel env ls, show, metrics. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/env.h"
#include "format/quantity.h"

#define LOG_MAX ((size_t)64 << 20)

struct format_options {
	const char *format;
};
static const struct arg_option format_table[] = {
	ARG_FORMAT_ROW(offsetof(struct format_options, format)),
};
static const struct arg_spec ls_spec = {
	.command = "env ls",
	.usage = "carrel env ls [-o json]",
	.about = "Lists environments: size of their packages (shared packages count for each), "
		 "age,\nlast use and number of uses.",
	.options = format_table,
	.option_count = 1,
};

#define COLUMNS 7
struct line {
	const char *cells[COLUMNS];
};

static struct line line_of(const struct env_row *row, int64_t now_ms, struct arena *arena)
{
	const struct env_meta *meta = &row->meta;
	char size[16], created[32], used[32];
	bool is_read = meta->package_id != NULL;
	quantity_format_size(size, meta->size_bytes);
	env_format_age(created, meta->created_at, now_ms);
	env_format_age(used, meta->use_count ? meta->last_used_at : NULL, now_ms);
	return (struct line){ {
		meta->name,
		is_read ? meta->python_version : "-",
		is_read ? arena_printf(arena, "%zu", meta->packages.count) : "-",
		is_read ? arena_text(arena, size) : "-",
		arena_text(arena, created),
		row->is_in_use ? "in use" : arena_text(arena, used),
		is_read ? arena_printf(arena, "%" PRIu64, meta->use_count) : "-",
	} };
}

/* Numbers stand at the right of their columns. */
static void print_lines(const struct line *lines, size_t count, struct buf *out)
{
	static const bool is_number[COLUMNS] = { [2] = true, [3] = true, [6] = true };
	size_t widths[COLUMNS] = { 0 };
	for (size_t i = 0; i < count; i++)
		for (int c = 0; c < COLUMNS; c++)
			if (strlen(lines[i].cells[c]) > widths[c])
				widths[c] = strlen(lines[i].cells[c]);
	for (size_t i = 0; i < count; i++)
		for (int c = 0; c < COLUMNS; c++) {
			int width = (int)widths[c];
			if (!is_number[c])
				width = c + 1 < COLUMNS ? -width : 0;
			buf_printf(out, "%*s%s", width, lines[i].cells[c],
				c + 1 < COLUMNS ? "  " : "\n");
		}
}

static void print_table(const env_rows *rows, struct arena *arena, struct buf *out)
{
	struct line *lines = arena_array(arena, rows->count + 1, sizeof *lines);
	int64_t now_ms = clock_now_ms();
	lines[0] = (struct line){ { "NAME", "PYTHON", "PACKAGES", "SIZE", "CREATED", "LAST-USED",
		"USES" } };
	for (size_t i = 0; i < rows->count; i++)
		lines[i + 1] = line_of(&rows->items[i], now_ms, arena);
	print_lines(lines, rows->count + 1, out);
}

static void warn_of_problems(const env_rows *rows)
{
	auto_buf struct buf out;
	buf_init(&out, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].problem)
			buf_printf(&out, "carrel: warning: %s\n", rows->items[i].problem);
	(void)!fd_write_full(STDERR_FILENO, out.data, out.len);
}

int env_cli_ls(int argc, char **argv)
{
	struct format_options options = { 0 };
	auto_env_session struct env_session session = ENV_SESSION_NONE;
	auto_arena struct arena arena;
	auto_buf struct buf out;
	text_list operands = { 0 };
	env_rows rows = { 0 };
	struct error err;
	struct json j;
	int code;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!env_cli_parse(&ls_spec, argc, argv, &options, &arena, 0, 0, &operands, &code))
		return code;
	bool json = env_cli_is_json(options.format);
	if (env_session_open(&session, &err) || env_list(&session.store, &arena, &rows, &err))
		return env_fail(&err, NULL, json);
	if (!json) {
		print_table(&rows, &arena, &out);
		warn_of_problems(&rows);
		return env_print_all(&out);
	}
	json_init(&j, &out, false);
	json_array(&j, NULL);
	for (size_t i = 0; i < rows.count; i++)
		env_print_json(&j, &session.store, &rows.items[i].meta, rows.items[i].is_in_use,
			rows.items[i].problem, NULL);
	json_end(&j);
	buf_char(&out, '\n');
	return env_print_all(&out);
}

struct show_options {
	const char *format;
	bool log;
};
static const struct arg_option show_table[] = {
	{ 0, "log", ARG_FLAG, offsetof(struct show_options, log), NULL,
		"print the log of its last build instead, also if that failed", NULL, 0, 0 },
	ARG_FORMAT_ROW(offsetof(struct show_options, format)),
};
static const struct arg_spec show_spec = {
	.command = "env show",
	.usage = "carrel env show NAME [--log] [-o json]",
	.about = "Shows one environment. NAME is its full name, as `carrel env ls` prints it, or "
		 "the\nname given to `carrel env build`: then the latest build is shown.",
	.options = show_table,
	.option_count = sizeof show_table / sizeof *show_table,
};

typedef VEC(struct env_package) projects;

static void print_field(struct buf *out, const char *name, const char *value)
{
	if (value)
		buf_printf(out, "%-13s %s\n", name, value);
}

static void print_times(const struct env_meta *meta, struct buf *out)
{
	char age[32];
	int64_t now_ms = clock_now_ms();
	env_format_age(age, meta->created_at, now_ms);
	buf_printf(out, "%-13s %s (%s)\n", "created", meta->created_at, age);
	if (!meta->use_count) {
		print_field(out, "last used", "never");
		return;
	}
	env_format_age(age, meta->last_used_at, now_ms);
	buf_printf(out, "%-13s %s (%s), %" PRIu64 " use%s\n", "last used", meta->last_used_at, age,
		meta->use_count, meta->use_count == 1 ? "" : "s");
}

/* What its editable projects are called: their layers lie on top of all others, and say so. One for
 * directories that are only on the path has no version. A layer that can't be read is a problem of
 * the environment, told elsewhere. */
static void find_projects(const struct env_store *store, const struct env_meta *meta,
	struct arena *arena, projects *found)
{
	size_t most = meta->editables.count ? meta->editables.count + 1 : 0;
	for (size_t i = 0; i < meta->layers.count && i < most; i++) {
		struct manifest manifest = { 0 };
		struct error unimportant;
		if (!layer_read(&store->layers, meta->layers.items[i], arena, &manifest,
			    &unimportant) &&
			!strcmp(manifest.kind, "python-editable") && manifest.version[0])
			vec_push(arena, found,
				(struct env_package){ manifest.name, manifest.version });
	}
}

static void print_packages(const struct env_meta *meta, const projects *own, struct buf *out)
{
	size_t count = meta->packages.count;
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%-13s %s==%s\n", i ? "" : "packages", meta->packages.items[i].name,
			meta->packages.items[i].version);
	for (size_t i = 0; i < own->count; i++)
		buf_printf(out, "%-13s %s==%s (editable)\n", count + i ? "" : "packages",
			own->items[i].name, own->items[i].version);
}

static void print_text(const struct env_store *store, const struct env_row *row,
	const projects *own, struct buf *out)
{
	const struct env_meta *meta = &row->meta;
	char size[16];
	quantity_format_size(size, meta->size_bytes);
	print_field(out, "name", meta->name);
	print_field(out, "package id", meta->package_id);
	buf_printf(out, "%-13s %s/envs/%s\n", "path", store->home->path, meta->name);
	buf_printf(out, "%-13s %s%s\n", "state", row->problem ? "corrupt" : "ready",
		row->is_in_use ? ", in use" : "");
	print_field(out, "problem", row->problem);
	print_field(out, "requirements", meta->requirements_sha256);
	buf_printf(out, "%-13s %s, %s\n", "python", meta->python_version, meta->python);
	print_times(meta, out);
	buf_printf(out, "%-13s %s in %zu layers, built in %.1fs\n", "size", size,
		meta->layers.count, meta->build_seconds);
	for (size_t i = 0; i < meta->indexes.count; i++)
		print_field(out, "index", meta->indexes.items[i]);
	for (size_t i = 0; i < meta->editables.count; i++)
		print_field(out, "editable", meta->editables.items[i].path);
	print_packages(meta, own, out);
}

static void print_shown(struct json *j, const struct env_store *store, const struct env_row *row,
	const projects *own)
{
	json_object(j, NULL);
	env_print_members(j, store, &row->meta, row->is_in_use, row->problem);
	if (row->meta.editables.count) {
		json_object(j, "editable_packages");
		for (size_t i = 0; i < own->count; i++)
			json_text(j, own->items[i].name, own->items[i].version);
		json_end(j);
	}
	json_end(j);
}

/* The environment as a row; what is wrong with its parts is a problem of it. */
static int find_row(const struct env_store *store, const char *text, struct arena *arena,
	struct env_row *row, struct error *err)
{
	const char *name;
	env_rows rows = { 0 };
	if (env_resolve(store, text, arena, &name, err) || env_list(store, arena, &rows, err))
		return -1;
	for (size_t i = 0; i < rows.count; i++)
		if (!strcmp(rows.items[i].meta.name, name)) {
			*row = rows.items[i];
			return 0;
		}
	return fail(err, ERR_NOT_FOUND, "there is no environment '%s'", name);
}

/* A build that failed has left a log and no environment: its name is all there is. Who typed only a
 * package_id wants to see the last build of it, however it ended. */
static int read_log(const struct env_store *store, const char *text, struct arena *arena,
	const char **name, struct buf *log, struct error *err)
{
	const char *failed;
	int64_t failed_ms, built_ms;
	struct env_meta meta;
	*name = text;
	if (!env_read_file(store, text, "build.log", log, err))
		return 0;
	if (err->code != ERR_NOT_FOUND)
		return -1;
	bool is_there = !env_resolve(store, text, arena, name, err);
	bool has_failed = !env_find_failed(store, text, arena, &failed, &failed_ms);
	if (!is_there && !has_failed)
		return -1;
	if (has_failed &&
		(!is_there || env_read(store, *name, arena, &meta, err) ||
			!env_time_parse(meta.created_at, &built_ms) || failed_ms > built_ms))
		*name = failed;
	return env_read_file(store, *name, "build.log", log, err);
}

static int show(const struct env_store *store, const struct show_options *options, const char *text,
	struct arena *arena, struct buf *out, struct error *err)
{
	bool json = env_cli_is_json(options->format);
	auto_buf struct buf log;
	struct env_row row;
	projects own = { 0 };
	const char *name;
	struct json j;
	buf_init(&log, LOG_MAX + 1);
	json_init(&j, out, false);
	if (options->log ? read_log(store, text, arena, &name, &log, err)
			 : find_row(store, text, arena, &row, err))
		return -1;
	if (options->log && json) {
		json_object(&j, NULL);
		json_text(&j, "name", name);
		json_str(&j, "log", (struct str){ log.data, log.len });
		json_end(&j);
		buf_char(out, '\n');
	} else if (options->log)
		buf_append(out, log.data, log.len);
	else if (json) {
		find_projects(store, &row.meta, arena, &own);
		print_shown(&j, store, &row, &own);
		buf_char(out, '\n');
	} else if (row.meta.package_id) {
		find_projects(store, &row.meta, arena, &own);
		print_text(store, &row, &own, out);
	} else
		return fail(err, ERR_CORRUPT, "%s", row.problem);
	return 0;
}

int env_cli_show(int argc, char **argv)
{
	struct show_options options = { 0 };
	auto_env_session struct env_session session = ENV_SESSION_NONE;
	auto_arena struct arena arena;
	auto_buf struct buf out;
	text_list operands = { 0 };
	struct error err;
	int code;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!env_cli_parse(&show_spec, argc, argv, &options, &arena, 1, 1, &operands, &code))
		return code;
	if (env_session_open(&session, &err) ||
		show(&session.store, &options, operands.items[0], &arena, &out, &err))
		return env_fail(&err, NULL, env_cli_is_json(options.format));
	return env_print_all(&out);
}

static const struct arg_spec metrics_spec = {
	.command = "env metrics",
	.usage = "carrel env metrics",
	.about = "Prints the size of the store, the number of environments and the duration of "
		 "builds,\nin Prometheus' text format.",
};

int env_cli_metrics(int argc, char **argv)
{
	auto_env_session struct env_session session = ENV_SESSION_NONE;
	auto_arena struct arena arena;
	auto_buf struct buf out;
	text_list operands = { 0 };
	struct error err;
	int code;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!env_cli_parse(&metrics_spec, argc, argv, NULL, &arena, 0, 0, &operands, &code))
		return code;
	if (env_session_open(&session, &err) || env_metrics_print(&session.store, &out, &err))
		return env_fail(&err, NULL, false);
	return env_print_all(&out);
}
