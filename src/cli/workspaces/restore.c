/* `carrel restore`: makes a workspace of an archive, of the blob store or a file. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/environments/template.h"
#include "model/nouns/archive.h"

#define SUM_MAX 4096

/* ---- a file ---- */

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
		 "limits,\nlabels, variables and environments that it had. Prints its name. An "
		 "archive with a SHA-256\nbeside it, ARCHIVE.sha256, must have that one. "
		 "Directories of the host and attached trees are\nnot restored.",
	ARG_TABLE(restore_table),
	.examples = "  carrel archive ls\n"
		    "  carrel restore demo-20261116T095152.123Z.tar.zst --name again\n"
		    "  carrel restore ./demo.tar.zst\n",
	.run = run_restore,
};
