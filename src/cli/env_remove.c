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

/* ---- rm ---- */

struct rm_options {
	const char *format;
};
static const struct arg_option rm_table[] = {
	ENV_FORMAT_ROW(offsetof(struct rm_options, format)),
};
static const struct arg_spec rm_spec = {
	.command = "env rm",
	.usage = "carrel env rm NAME... [-o json]",
	.about = "Removes environments, by their whole names, as `carrel env ls` prints them, and "
		 "the\npackages that no other one has. What is in use stays.",
	.options = rm_table,
	.option_count = 1,
};

/* Layers are collected once, with the last one; also when it isn't reached. */
static int remove_all(
	const struct env_store *store, const arg_list *names, size_t *removed, struct error *err)
{
	uint64_t layers, bytes;
	struct error second;
	int failed = 0;
	for (*removed = 0; !failed && *removed < names->count; ++*removed)
		failed = env_remove(store, names->items[*removed], true, err);
	if (failed)
		--*removed;
	if (*removed && env_collect(store, &layers, &bytes, failed ? &second : err))
		failed = -1;
	return failed;
}

int env_cli_rm(int argc, char **argv)
{
	struct rm_options options = { 0 };
	auto_env_session struct env_session session = ENV_SESSION_NONE;
	auto_arena struct arena arena;
	auto_buf struct buf out;
	arg_list names = { 0 };
	struct error err;
	struct json j;
	size_t removed;
	int code;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!env_cli_parse(&rm_spec, argc, argv, &options, &arena, 1, SIZE_MAX, &names, &code))
		return code;
	bool json = env_cli_is_json(options.format);
	if (env_session_open(&session, &err) || remove_all(&session.store, &names, &removed, &err))
		return env_fail(&err, NULL, json);
	if (!json)
		return 0;
	json_init(&j, &out, false);
	json_object(&j, NULL);
	json_array(&j, "removed");
	for (size_t i = 0; i < names.count; i++)
		json_text(&j, NULL, names.items[i]);
	json_end(&j);
	json_end(&j);
	buf_char(&out, '\n');
	return env_print_all(&out);
}

/* ---- prune ---- */

struct prune_options {
	const char *format;
	bool all;
};
static const struct arg_option prune_table[] = {
	{ 'a', "all", ARG_FLAG, offsetof(struct prune_options, all), NULL,
		"remove every environment that isn't in use", NULL, 0, 0 },
	ENV_FORMAT_ROW(offsetof(struct prune_options, format)),
};
static const struct arg_spec prune_spec = {
	.command = "env prune",
	.usage = "carrel env prune [--all] [-o json]",
	.about = "Removes environments that are over the limits of config.yaml (number, bytes, "
		 "time\nunused), what crashes left, and the packages that no environment has.",
	.options = prune_table,
	.option_count = sizeof prune_table / sizeof *prune_table,
};

static void print_json(const struct env_pruned *pruned, struct buf *out)
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
	json_end(&j);
	buf_char(out, '\n');
}

static void print_text(const struct env_pruned *pruned, struct buf *out)
{
	auto_buf struct buf summary;
	char size[16];
	size_t count = pruned->removed.count;
	buf_init(&summary, 256);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s (%s)\n", pruned->removed.items[i].name,
			pruned->removed.items[i].reason);
	quantity_format_size(size, pruned->bytes);
	buf_printf(&summary, "carrel: removed %zu environment%s, %" PRIu64 " layer%s, %s\n", count,
		count == 1 ? "" : "s", pruned->layers, pruned->layers == 1 ? "" : "s", size);
	(void)!fd_write_full(STDERR_FILENO, summary.data, summary.len);
}

int env_cli_prune(int argc, char **argv)
{
	struct prune_options options = { 0 };
	auto_env_session struct env_session session = ENV_SESSION_NONE;
	auto_arena struct arena arena;
	auto_buf struct buf out;
	arg_list operands = { 0 };
	struct env_pruned pruned;
	struct error err;
	int code;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!env_cli_parse(&prune_spec, argc, argv, &options, &arena, 0, 0, &operands, &code))
		return code;
	bool json = env_cli_is_json(options.format);
	if (env_session_open(&session, &err) ||
		env_prune(&session.store, options.all, &arena, &pruned, &err))
		return env_fail(&err, NULL, json);
	if (json)
		print_json(&pruned, &out);
	else
		print_text(&pruned, &out);
	return env_print_all(&out);
}
