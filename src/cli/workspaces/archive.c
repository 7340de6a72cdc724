/* `carrel archive`: archived workspaces are listed, removed and pruned. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/plain.h"
#include "cli/columns.h"
#include "model/nouns/archive.h"
#include "model/nouns/environment.h"

static const struct arg_spec ls_spec = {
	.command = "archive ls",
	.summary = "list archived workspaces",
	.about = "Lists the archives of workspaces, newest first.",
	REMOTE_OPTIONS,
	.run = plain_list,
	.record = &archive_record,
	.key = "name",
};

/* ---- rm, prune ---- */

static const struct arg_spec rm_spec = {
	.command = "archive rm",
	.summary = "remove archives",
	.usage = "ARCHIVE... [options]",
	.about = "Removes archives of workspaces.",
	REMOTE_OPTIONS,
	.examples = "  carrel archive rm demo-20261116T095152.123Z.tar.zst\n",
	.run = plain_remove,
};

struct pruning {
	struct command *command;
	text_list names; /* to be removed */
	uint64_t kept_bytes;
	int64_t now_ms;
};

/* Newest first: what comes before it is kept. */
static void look(void *ctx, const struct json_value *item)
{
	struct pruning *pruning = ctx;
	const struct options *options = &pruning->command->options;
	const char *name = json_member_text(item, "name");
	const char *created_at = json_member_text(item, "created_at");
	uint64_t size = 0;
	int64_t created_ms = pruning->now_ms;
	json_member_u64(item, "size_bytes", &size);
	if (created_at)
		env_time_parse(created_at, &created_ms);
	bool is_old = options->older_than_ms &&
		      pruning->now_ms - created_ms > (int64_t)options->older_than_ms;
	bool is_over = options->max_bytes && pruning->kept_bytes + size > options->max_bytes;
	if (name && (is_old || is_over))
		vec_push(&pruning->command->arena, &pruning->names,
			arena_text(&pruning->command->arena, name));
	else
		pruning->kept_bytes += size;
}

static int run_prune(struct command *command, struct error *err)
{
	struct pruning pruning = { .command = command, .now_ms = clock_now_ms() };
	const struct options *options = &command->options;
	if (!options->older_than_ms && !options->max_bytes)
		return fail(
			err, ERR_INVALID, "carrel archive prune needs --older-than or --max-bytes");
	if (remote_each(&command->remote, "/v1/archives", look, &pruning, err))
		return -1;
	const struct cli_removal how = { .is_dry = options->dry_run };
	return cli_remove(command, "/v1/archives", &pruning.names, &how, err);
}

static const struct arg_option prune_table[] = {
	{ 0, "older-than", ARG_DURATION, AT(older_than_ms), "DURATION",
		"remove archives older than this", .least = 1 },
	{ 0, "max-bytes", ARG_SIZE, AT(max_bytes), "SIZE",
		"remove the oldest ones until the others take no more than this", .least = 1 },
	{ 0, "dry-run", ARG_FLAG, AT(dry_run), NULL,
		"remove nothing, print what would be removed" },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec prune_spec = {
	.command = "archive prune",
	.summary = "remove archives by age or size",
	.usage = "[--older-than DURATION] [--max-bytes SIZE] [options]",
	.about = "Removes old archives of workspaces.",
	ARG_TABLE(prune_table),
	.examples = "  carrel archive prune --older-than 30d --max-bytes 10G\n",
	.run = run_prune,
};

const struct arg_spec cli_archive = {
	.command = "archive",
	.summary = "list, remove and prune archived workspaces",
	.group = GROUP_WORKSPACES,
	.about = "Archives of removed workspaces, in the blob store.",
	.examples = "  carrel rm demo --archive\n"
		    "  carrel archive ls\n",
	.commands = (const struct arg_spec *const[]){ &ls_spec, &rm_spec, &prune_spec, NULL },
};
