/* carrel archive: archived workspaces are listed, removed and pruned. carrel restore makes a
 * workspace of one, of the blob store or a file. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "cli/environments/template.h"
#include "cli/plain.h"
#include "cli/removal.h"
#include "model/nouns/archive.h"
#include "model/nouns/environment.h"

#define SUM_MAX 4096

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
	text_list names; /* to be removed, */
	cli_ones found;	 /* and the same, as they are listed */
	uint64_t kept_bytes;
	int64_t now_ms;
};

/* Newest first: what comes before it is kept. */
static void look(void *ctx, const struct json_value *item)
{
	struct pruning *pruning = ctx;
	const struct options *options = &pruning->command->options;
	struct cli_one one = { .name = json_member_text(item, "name") };
	const char *created_at = json_member_text(item, "created_at");
	uint64_t size = 0;
	int64_t created_ms = pruning->now_ms;
	json_member_u64(item, "size_bytes", &size);
	if (created_at)
		env_time_parse(created_at, &created_ms);
	bool is_old = options->older_than_ms &&
		      pruning->now_ms - created_ms > (int64_t)options->older_than_ms;
	bool is_over = options->max_bytes && pruning->kept_bytes + size > options->max_bytes;
	if (!one.name || !(is_old || is_over)) {
		pruning->kept_bytes += size;
		return;
	}
	vec_push(&pruning->command->arena, &pruning->names, one.name);
	vec_push(&pruning->command->arena, &pruning->found, one);
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
	return options->dry_run
		       ? cli_print_ones(command, &pruning.found, "found", 0, err)
		       : removal_run(command, "/v1/archives", &pruning.names, NULL, NULL, err);
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

/* ---- restore: a file ---- */

/* "demo" of "demo-20261116T095152.123Z.tar.zst" and of "demo.tar.gz". */
static int name_of_file(
	struct command *command, const char *file, const char **name, struct error *err)
{
	static const char *const suffixes[] = { ".tar.zst", ".tar.gz", ".tgz", ".tar" };
	const char *base = path_basename(file);
	struct archive_row row;
	struct error ignored;
	size_t len = strlen(base);
	*name = command->options.name;
	if (*name)
		return 0;
	if (!archive_name_read(base, &command->arena, &row, &ignored)) {
		*name = row.workspace;
		return 0;
	}
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t suffix = strlen(suffixes[i]);
		if (len > suffix && !strcmp(base + len - suffix, suffixes[i])) {
			len -= suffix;
			break;
		}
	}
	*name = arena_bytes(&command->arena, base, len);
	return workspace_check_name(*name, &ignored)
		       ? fail_hint(err, ERR_INVALID, "--name NAME names the workspace",
				 "the name of '%s' is not that of a workspace", file)
		       : 0;
}

/* FILE.sha256, as sha256sum writes it and the blob store has it beside an archive. */
static int check_sum(
	struct command *command, const char *path, const char *sha256, struct error *err)
{
	const char *beside = arena_printf(&command->arena, "%s" ARCHIVE_SUM, path);
	struct str text;
	if (file_read_at(AT_FDCWD, beside, SUM_MAX, &command->arena, &text))
		return errno == ENOENT ? 0 : fail_errno(err, "read '%s'", beside);
	return text.len < 2 * SHA256_LEN || memcmp(text.data, sha256, 2 * SHA256_LEN) != 0
		       ? fail(err, ERR_CORRUPT,
				 "'%s' is damaged: it has SHA-256 %s, which is not the one in '%s'",
				 path, sha256, beside)
		       : 0;
}

/* Sends the file to the blob store, under a name of its own: *archive. */
static int send_file(struct command *command, const char *path, const char *name,
	const char **archive, struct error *err)
{
	unsigned char digest[SHA256_LEN];
	char sha256[2 * SHA256_LEN + 1];
	struct stat st;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st))
		return fail_errno(err, "open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return fail(err, ERR_INVALID, "'%s' is not a regular file", path);
	if (file_hash(fd, digest, NULL) || lseek(fd, 0, SEEK_SET))
		return fail_errno(err, "read '%s'", path);
	sha256_hex(digest, sha256);
	if (check_sum(command, path, sha256, err))
		return -1;
	*archive = archive_name_make(name, clock_now_ms(), BLOB_PACK_ZSTD, &command->arena);
	return remote_send_file(&command->remote,
		arena_printf(&command->arena, "/v1/archives/%s?sha256=%s", *archive, sha256), fd,
		(uint64_t)st.st_size, err);
}

/* ---- the command ---- */

static int restore(struct command *command, const char *archive, const char *wanted,
	struct remote_answer *answer, struct error *err)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	json_object(&j, NULL);
	if (wanted)
		json_text(&j, "name", wanted);
	json_end(&j);
	const char *path = arena_printf(&command->arena, "/v1/archives/%s/restore",
		remote_escape(&command->remote, archive));
	return remote_call(&command->remote, "POST", path, &body, answer, err);
}

static int restore_file(
	struct command *command, const char *path, struct remote_answer *answer, struct error *err)
{
	const char *name, *archive = NULL;
	struct error ignored;
	if (name_of_file(command, path, &name, err) || workspace_check_name(name, err) ||
		remote_open(&command->remote, err))
		return -1;
	remote_catch_interrupts(&command->remote);
	int failed = send_file(command, path, name, &archive, err);
	if (!failed && restore(command, archive, name, answer, err))
		failed = error_context(err, "restore '%s'", path);
	bool is_interrupted = remote_is_interrupted();
	if (is_interrupted)
		remote_close(&command->remote);
	/* The file is the archive: the blob store needs no copy of it. */
	if (archive)
		remote_call(&command->remote, "DELETE",
			arena_printf(&command->arena, "/v1/archives/%s", archive), NULL, NULL,
			&ignored);
	if (failed && is_interrupted)
		return remote_say_interrupted(&command->remote, err);
	return failed;
}

static bool is_file(const char *operand)
{
	struct stat st;
	return strchr(operand, '/') || !stat(operand, &st);
}

static int run_restore(struct command *command, struct error *err)
{
	const char *wanted = command->options.name, *operand = command->operands.items[0];
	struct remote_answer answer;
	command->remote.cancels = "the restore";
	command->remote.interrupted_hint = "carrel ls lists what there is";
	if (wanted && workspace_check_name(wanted, err))
		return -1;
	if (is_file(operand) ? restore_file(command, operand, &answer, err)
			     : remote_open(&command->remote, err) ||
				       restore(command, operand, wanted, &answer, err))
		return -1;
	template_print_made(command, &answer);
	return 0;
}

static const struct arg_option restore_table[] = {
	{ 0, "name", ARG_TEXT, AT(name), "NAME", "name of the workspace; the one that it had" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_restore = {
	.command = "restore",
	.summary = "make a workspace of an archive",
	.group = GROUP_WORKSPACES,
	.usage = "ARCHIVE|FILE [--name NAME] [options]",
	.about = "Makes a workspace of an archive in the blob store, or of a file, with the files, "
		 "limits, labels, variables and environments that it had. Prints its name. An "
		 "archive with a SHA-256 beside it, ARCHIVE.sha256, must have that one. "
		 "Directories of the host and attached trees are not restored.",
	ARG_TABLE(restore_table),
	.examples = "  carrel archive ls\n"
		    "  carrel restore demo-20261116T095152.123Z.tar.zst --name again\n"
		    "  carrel restore ./demo.tar.zst\n",
	.run = run_restore,
};
