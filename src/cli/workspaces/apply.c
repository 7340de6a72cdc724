/* carrel apply: chosen changes of a workspace into another one, or into a directory of this host.
 * The former is done by the daemon. For the latter the daemon sends the changes as an archive
 * (trees/stacks/bundle.h), and this process applies them with its own rights. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "cli/area.h"
#include "cli/plain.h"
#include "linux/home.h"
#include "trees/stacks/bundle.h"

/* ---- what was done ---- */

static size_t count_results(const struct json_value *changes, const char *result)
{
	size_t count = 0;
	for (const struct json_value *at = changes ? changes->first : NULL; at; at = at->next) {
		const char *text = json_member_text(at, "result");
		count += text && !strcmp(text, result);
	}
	return count;
}

static void print_lines(struct buf *out, const struct json_value *changes)
{
	char path[4096 * 4];
	for (const struct json_value *at = changes ? changes->first : NULL; at; at = at->next) {
		const struct json_value *name = json_member(at, "path");
		const char *change = json_member_text(at, "change"),
			   *type = json_member_text(at, "type"),
			   *result = json_member_text(at, "result"),
			   *reason = json_member_text(at, "reason");
		if (!name || name->kind != JSON_STRING || !result || !strcmp(result, "same"))
			continue;
		str_printable(path, sizeof path, name->string);
		buf_printf(out, "%s %s%s", change ? change : "?", path,
			type && !strcmp(type, "directory") ? "/" : "");
		if (reason)
			buf_printf(out, " (%s: %s)",
				!strcmp(result, "refused") ? "not applied" : result, reason);
		buf_char(out, '\n');
	}
}

/* The exit code. */
static int show(struct command *command, const struct json_value *changes)
{
	const struct options *options = &command->options;
	struct json *j = &command->value;
	size_t applied = count_results(changes, "applied"),
	       pending = count_results(changes, "pending"),
	       conflicts = count_results(changes, "conflict"),
	       same = count_results(changes, "same"), total = changes ? changes->count : 0;
	struct error err = { 0 }, unprinted;
	if (conflicts)
		fail_hint(&err, ERR_CONFLICT,
			"name the paths to take, or make the target as the workspace was before",
			"%zu %s in '%s': nothing was applied", conflicts,
			conflicts == 1 ? "change is a conflict" : "changes are conflicts",
			options->to);
	if (command->json) {
		json_object(j, NULL);
		if (conflicts)
			cli_print_error(j, "error", &err, NULL);
		json_bool(j, "dry_run", options->dry_run);
		json_u64(j, "applied", applied);
		json_u64(j, "conflicts", conflicts);
		if (changes)
			json_copy(j, "changes", changes);
		json_end(j);
		return conflicts ? error_exit_code(err.code) : 0;
	}
	print_lines(&command->out, changes);
	if (cli_print(&command->out, &unprinted))
		return cli_fail(&unprinted, false, NULL);
	buf_clear(&command->out);
	if (conflicts)
		return cli_fail(&err, false, NULL);
	char already[64] = "";
	if (same)
		snprintf(already, sizeof already, "; it has %zu already", same);
	if (!total)
		cli_say("there are no changes%s to apply",
			command->operands.count > 1 ? " at these paths" : "");
	else if (options->dry_run)
		cli_say("%zu of %zu changes would be applied to '%s'%s", pending, total,
			options->to, already);
	else
		cli_say("%zu of %zu changes were applied to '%s'%s", applied, total, options->to,
			already);
	return 0;
}

/* ---- to a workspace ---- */

static int print_request(struct command *command, struct buf *body, struct error *err)
{
	const struct options *options = &command->options;
	struct json j = json_to(body, false);
	for (size_t i = 1; i < command->operands.count; i++) {
		const char *path = command->operands.items[i];
		if (str_utf8_prefix(path, strlen(path)) != strlen(path))
			return fail_hint(err, ERR_INVALID, "name the directory that holds it",
				"'%s' is not valid UTF-8", path);
	}
	json_object(&j, NULL);
	plain_print(command, &j);
	if (options->snapshot)
		json_text(&j, "snapshot", options->snapshot);
	json_end(&j);
	return 0;
}

static int apply_to_workspace(struct command *command, struct error *err)
{
	struct remote *remote = &command->remote;
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct client_response response = { 0 };
	struct json_value *answer = NULL;
	struct stat st;
	if (command->options.writable_config)
		return fail(err, ERR_INVALID, "--writable-config needs a directory as the target");
	if (print_request(command, &body, err))
		return -1;
	remote->cancels = "the application";
	remote->interrupted_hint = arena_printf(
		&command->arena, "carrel diff %s shows what it has", command->options.to);
	int failed = remote_send(remote, "POST", plain_path(command, command->operands.items[0]),
		&body, &response, err);
	if (failed && err->code == ERR_NOT_FOUND && !stat(command->options.to, &st))
		error_hint(err, "for a directory, write ./%s", command->options.to);
	if (failed && err->code != ERR_CONFLICT)
		return -1;
	if (json_read(response.body, &command->arena, &answer, failed ? NULL : err))
		return -1;
	const struct json_value *changes = json_member(answer, "changes");
	return failed && !changes ? -1 : show(command, changes);
}

/* ---- to a directory ---- */

struct host_target {
	int dir;
	char path[PATH_MAX]; /* absolute and real */
	struct stat st;
	struct area area;
	int file; /* the archive */
	struct bundle bundle;
};

static int open_target(struct command *command, struct host_target *target, struct error *err)
{
	const char *to = command->options.to, *path;
	char home[PATH_MAX];
	if (!realpath(to, target->path))
		return fail_errno(err, "open '%s'", to);
	target->dir = open(target->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (target->dir < 0 || fstat(target->dir, &target->st))
		return fail_errno(err, "open '%s'", to);
	if (area_find_place(&target->area, command, err) ||
		home_find_path(&command->arena, &path, err))
		return -1;
	/* Files there decide what a daemon does. */
	if (realpath(path, home) &&
		(path_is_beneath(target->path, home) || path_is_beneath(home, target->path)))
		return fail(err, ERR_INVALID,
			"changes can't be applied to '%s': carrel's home is %s", to,
			path_is_beneath(home, target->path) ? "in it" : "around it");
	return 0;
}

static const char *changes_path(struct command *command)
{
	struct remote *remote = &command->remote;
	auto_buf struct buf query = buf_empty(1 << 20);
	buf_text(&query, "/changes?");
	for (size_t i = 1; i < command->operands.count; i++)
		buf_printf(&query, "path=%s&", remote_escape(remote, command->operands.items[i]));
	if (command->options.snapshot)
		buf_printf(&query, "snapshot=%s", remote_escape(remote, command->options.snapshot));
	return remote_workspace_path(remote, command->operands.items[0], query.data);
}

static int receive(struct command *command, struct host_target *target, struct error *err)
{
	const char *what = arena_printf(&command->arena, "the changes to '%s'", target->area.place);
	target->file = openat(target->area.fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (target->file < 0)
		return fail_errno(err, "make a file in '%s'", target->area.place);
	if (remote_receive_file(&command->remote, changes_path(command), target->file, what, err))
		return -1;
	fault_point("apply_received");
	return 0;
}

static void protect(struct bundle *bundle)
{
	for (size_t i = 0; i < bundle->changes.count; i++) {
		struct bundle_change *change = &bundle->changes.items[i];
		bool is_meta = S_ISDIR(change->before) && S_ISDIR(change->after);
		change->reason =
			area_protection(change->path, change->change, change->after, is_meta);
		if (change->reason)
			change->result = BUNDLE_REFUSED;
	}
}

/* As the daemon answers. */
static void print_changes(const struct bundle *bundle, bool is_applied, struct json *j)
{
	json_array(j, NULL);
	for (size_t i = 0; i < bundle->changes.count; i++) {
		const struct bundle_change *change = &bundle->changes.items[i];
		const char letter[] = { change->change, 0 };
		size_t len = strlen(change->path);
		json_object(j, NULL);
		json_text(j, "path", change->path);
		if (str_utf8_prefix(change->path, len) != len)
			json_base64(j, "path_base64", change->path, len);
		json_text(j, "change", letter);
		json_text(j, "type", path_type(change->after ? change->after : change->before));
		json_text(j, "result",
			change->result != BUNDLE_TAKE ? bundle_result_names[change->result]
			: is_applied		      ? "applied"
						      : "pending");
		json_text(j, "reason", change->reason);
		json_end(j);
	}
	json_end(j);
}

static int carry_out(struct command *command, struct host_target *target, struct error *err)
{
	struct bundle *bundle = &target->bundle;
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	struct json_value *changes = NULL;
	bool is_root = geteuid() == 0;
	const struct apply where = { .target = target->dir,
		.is_host = true,
		.journal = target->area.fd,
		.name = target->path,
		.uid = is_root ? target->st.st_uid : (uid_t)-1,
		.gid = is_root ? target->st.st_gid : (gid_t)-1 };
	bundle->is_host = true;
	if (bundle_read(bundle, target->file, target->area.fd, UINT64_MAX, "the disk", err))
		return -1;
	if (!command->options.writable_config)
		protect(bundle);
	if (bundle_judge(bundle, target->dir, err))
		return -1;
	bool is_applied = !command->options.dry_run && !bundle->results[BUNDLE_CONFLICT];
	if (is_applied && bundle_apply(bundle, &where, err))
		return -1;
	print_changes(bundle, is_applied, &j);
	if (json_read((struct str){ text.data, text.len }, &command->arena, &changes, err))
		return -1;
	return show(command, changes);
}

static int apply_to_directory(struct command *command, struct error *err)
{
	struct host_target target = { .dir = -1, .file = -1, .area = AREA_NONE };
	bundle_init(&target.bundle);
	int code = open_target(command, &target, err) ||
				   area_make(&target.area, target.path, err) ||
				   remote_open(&command->remote, err)
			   ? -1
			   : 0;
	/* An interrupt ends the transfer; what is being applied is applied. */
	if (!code)
		remote_catch_interrupts(&command->remote);
	if (!code && receive(command, &target, err))
		code = remote_is_interrupted() ? fail(err, ERR_CANCELED, "it was interrupted") : -1;
	if (!code)
		code = carry_out(command, &target, err);
	bundle_done(&target.bundle);
	area_done(&target.area);
	fd_close(&target.file);
	fd_close(&target.dir);
	return code;
}

/* As with cp: a slash says that it is a path. */
static bool is_directory(const char *to)
{
	return strchr(to, '/') || !strcmp(to, ".") || !strcmp(to, "..");
}

static int run_apply(struct command *command, struct error *err)
{
	const char *to = command->options.to;
	if (!to)
		return fail_hint(
			err, ERR_INVALID, "--to ./DIRECTORY or --to WORKSPACE", "--to is missing");
	return is_directory(to) ? apply_to_directory(command, err)
				: apply_to_workspace(command, err);
}

static const struct arg_option apply_table[] = {
	{ 0, "to", ARG_TEXT, AT(to), "DIR|WORKSPACE",
		"where the changes go: a directory of this host (with a slash in it, or . or ..), "
		"or a workspace",
		.least = 1 },
	{ 0, "since", ARG_TEXT, AT(snapshot), "SNAPSHOT",
		"take what changed since this snapshot of the workspace: id, tag or version; the "
		"last one by default",
		.least = 1 },
	{ 0, "dry-run", ARG_FLAG, AT(dry_run), NULL, "only show what would be done" },
	{ 0, "writable-config", ARG_FLAG, AT(writable_config), NULL,
		"to a directory: take .git/hooks, .git/config, .claude … too" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_apply = {
	.command = "apply",
	.summary = "take changes of a workspace into another one, or a directory",
	.group = GROUP_WORKSPACES,
	.usage = "NAME [PATH...] --to DIR|WORKSPACE [options]",
	.about = "Takes what changed in a workspace, or only PATHs and what is below them, into a "
		 "directory of this host or into another workspace: all of it, or nothing. The "
		 "changes are those that carrel diff lists. A change is a conflict when the target "
		 "has neither what the workspace had before nor what it has now; conflicts are "
		 "listed, and nothing is applied then.",
	ARG_TABLE(apply_table),
	.examples = "  carrel apply demo --to . --dry-run\n"
		    "  carrel apply demo src README.md --to .\n"
		    "  carrel apply try-3 --to demo\n",
	.run = run_apply,
	.sends = "paths",
};
