/* carrel env rm, prune. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/env.h"
#include "format/quantity.h"

struct rm_options {
	const char *format;
};
static const struct arg_option rm_table[] = {
	ARG_FORMAT_ROW(offsetof(struct rm_options, format)),
};
static const struct arg_spec rm_spec = {
	.command = "env rm",
	.usage = "carrel env rm NAME... [-o json]",
	.about = "Removes environments, named as for `carrel env show`, and packages that no "
		 "other\nenvironment has. An environment in use is not removed.",
	.options = rm_table,
	.option_count = 1,
};

struct removal {
	const char *name; /* as it was typed when there is none */
	bool has_failed;
	struct error err;
};
typedef VEC(struct removal) removals;

static bool is_named(const removals *all, const char *name)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->items[i].name, name))
			return true;
	return false;
}

/* What `env show` shows by these names goes: found before anything is removed, or a package_id
 * would stand for another one then. One that can't go keeps none of the others; layers are
 * collected once, at the end. */
static int remove_all(const struct env_store *store, const text_list *names, struct arena *arena,
	removals *all, struct error *err)
{
	uint64_t layers, bytes;
	bool is_any_gone = false;
	for (size_t i = 0; i < names->count; i++) {
		struct removal one = { .name = names->items[i] };
		one.has_failed = env_resolve(store, names->items[i], arena, &one.name, &one.err);
		if (!is_named(all, one.name))
			vec_push(arena, all, one);
	}
	for (size_t i = 0; i < all->count; i++) {
		struct removal *one = &all->items[i];
		if (!one->has_failed)
			one->has_failed = env_remove(store, one->name, true, &one->err);
		is_any_gone |= !one->has_failed;
	}
	return is_any_gone ? env_collect(store, &layers, &bytes, err) : 0;
}

static void print_removals_json(const removals *all, bool has_failed, struct buf *out)
{
	struct json j;
	json_init(&j, out, false);
	json_object(&j, NULL);
	json_array(&j, "removed");
	for (size_t i = 0; i < all->count; i++)
		if (!all->items[i].has_failed)
			json_text(&j, NULL, all->items[i].name);
	json_end(&j);
	if (has_failed)
		json_array(&j, "failed");
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].has_failed) {
			json_object(&j, NULL);
			json_text(&j, "name", all->items[i].name);
			env_print_error(&j, "error", &all->items[i].err, NULL);
			json_end(&j);
		}
	if (has_failed)
		json_end(&j);
	json_end(&j);
	buf_char(out, '\n');
}

static int print_removals(const removals *all, bool json)
{
	auto_buf struct buf out;
	bool has_failed = false;
	buf_init(&out, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < all->count; i++) {
		has_failed |= all->items[i].has_failed;
		if (!json && !all->items[i].has_failed)
			buf_printf(&out, "removed %s\n", all->items[i].name);
	}
	if (has_failed && all->count == 1)
		return env_fail(&all->items[0].err, NULL, json);
	if (json)
		print_removals_json(all, has_failed, &out);
	int code = env_print_all(&out);
	for (size_t i = 0; !json && i < all->count; i++)
		if (all->items[i].has_failed)
			cli_fail(&all->items[i].err, false);
	return code || has_failed ? 125 : 0;
}

int env_cli_rm(int argc, char **argv)
{
	struct rm_options options = { 0 };
	auto_env_session struct env_session session = ENV_SESSION_NONE;
	auto_arena struct arena arena;
	text_list names = { 0 };
	removals all = { 0 };
	struct error err;
	int code;
	arena_init(&arena);
	if (!env_cli_parse(&rm_spec, argc, argv, &options, &arena, 1, SIZE_MAX, &names, &code))
		return code;
	bool json = env_cli_is_json(options.format);
	if (env_session_open(&session, &err))
		return env_fail(&err, NULL, json);
	int failed = remove_all(&session.store, &names, &arena, &all, &err);
	code = print_removals(&all, json);
	/* What went is gone all the same; JSON is one value, so that this is said beside it. */
	return failed ? cli_fail(&err, false) : code;
}

struct prune_options {
	const char *format;
	bool all, dry_run;
};
static const struct arg_option prune_table[] = {
	{ 'a', "all", ARG_FLAG, offsetof(struct prune_options, all), NULL,
		"remove every environment that isn't in use", NULL, 0, 0 },
	{ 0, "dry-run", ARG_FLAG, offsetof(struct prune_options, dry_run), NULL,
		"remove nothing, print what would be removed", NULL, 0, 0 },
	ARG_FORMAT_ROW(offsetof(struct prune_options, format)),
};
static const struct arg_spec prune_spec = {
	.command = "env prune",
	.usage = "carrel env prune [--all] [--dry-run] [-o json]",
	.about = "Removes environments over the limits of config.yaml (number, bytes, time "
		 "unused),\nremains of crashes, and packages that no environment has.",
	.options = prune_table,
	.option_count = sizeof prune_table / sizeof *prune_table,
};

static void print_json(const struct env_pruned *pruned, bool is_dry, struct buf *out)
{
	struct json j;
	json_init(&j, out, false);
	json_object(&j, NULL);
	json_array(&j, "removed");
	for (size_t i = 0; i < pruned->removed.count; i++) {
		json_object(&j, NULL);
		json_text(&j, "name", pruned->removed.items[i].name);
		json_text(&j, "reason", pruned->removed.items[i].reason);
		json_end(&j);
	}
	json_end(&j);
	json_u64(&j, "layers_removed", pruned->layers);
	json_u64(&j, "bytes_freed", pruned->bytes);
	if (is_dry)
		json_bool(&j, "dry_run", true);
	json_end(&j);
	buf_char(out, '\n');
}

static void print_text(const struct env_pruned *pruned, bool is_dry, struct buf *out)
{
	auto_buf struct buf summary;
	char size[16];
	size_t count = pruned->removed.count;
	buf_init(&summary, 256);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s (%s)\n", pruned->removed.items[i].name,
			pruned->removed.items[i].reason);
	quantity_format_size(size, pruned->bytes);
	buf_printf(&summary, "carrel: %s %zu environment%s, %" PRIu64 " layer%s, %s\n",
		is_dry ? "would remove" : "removed", count, count == 1 ? "" : "s", pruned->layers,
		pruned->layers == 1 ? "" : "s", size);
	(void)!fd_write_full(STDERR_FILENO, summary.data, summary.len);
}

int env_cli_prune(int argc, char **argv)
{
	struct prune_options options = { 0 };
	auto_env_session struct env_session session = ENV_SESSION_NONE;
	auto_arena struct arena arena;
	auto_buf struct buf out;
	text_list operands = { 0 };
	struct env_pruned pruned;
	struct error err;
	int code;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!env_cli_parse(&prune_spec, argc, argv, &options, &arena, 0, 0, &operands, &code))
		return code;
	bool json = env_cli_is_json(options.format);
	if (env_session_open(&session, &err) ||
		env_prune(&session.store, options.all, options.dry_run, &arena, &pruned, &err))
		return env_fail(&err, NULL, json);
	if (json)
		print_json(&pruned, options.dry_run, &out);
	else
		print_text(&pruned, options.dry_run, &out);
	return env_print_all(&out);
}
