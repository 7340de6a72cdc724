/* carrel snapshot, carrel fork: states of workspaces that are kept, and copies of them. */
#include "cli/plain.h"
#include "format/text/quantity.h"
#include "model/nouns/snapshot.h"

#define DAMAGED 1 /* exit code: a layer is missing or changed */

/* ---- create ---- */

static int run_create(struct command *command, struct error *err)
{
	if (command->options.tag && snapshot_check_tag(command->options.tag, err))
		return error_context(err, "--tag");
	return plain_run(command, err);
}

#define TIMEOUT_ROW                                                                                \
	{                                                                                          \
		0, "timeout", ARG_DURATION, AT(timeout_ms), "TIME",                                \
			"with --when-busy wait: how long (default 5m)", NULL, 1                    \
	}
static const struct arg_option create_table[] = {
	{ 0, "tag", ARG_TEXT, AT(tag), "TAG", "a name for it, to be used in place of its id" },
	{ 0, "note", ARG_TEXT, AT(note), "TEXT", "a description" },
	{ 0, "when-busy", ARG_CHOICE, AT(when_busy), "pause|wait|fail",
		"while commands run: pause them for a copy (default), wait for their end, or fail",
		"pause|wait|fail" },
	TIMEOUT_ROW,
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec create_spec = {
	.command = "snapshot create",
	.summary = "keep the present state of a workspace",
	.usage = "NAME [options]",
	.about = "Keeps the files, installed packages and environment of a workspace as they are "
		 "now, and prints the id of the snapshot. Nothing is copied unless commands run.",
	ARG_TABLE(create_table),
	.examples = "  carrel snapshot create demo --tag before-upgrade\n",
	.run = run_create,
	.prints = "id",
	.cancels = "the snapshot",
	.afterwards = "carrel snapshot ls lists what there is",
};

/* ---- ls, show, rm ---- */

static int run_ls(struct command *command, struct error *err)
{
	struct listing listing = { .command = command,
		.record = &snapshot_record,
		.key = "id",
		.is_of_workspaces = true };
	return listing_print_named(&listing,
		command->operands.count ? remote_workspace_path(&command->remote,
						  command->operands.items[0], "/snapshots")
					: "/v1/snapshots",
		err);
}

static const struct arg_option ls_table[] = {
	{ 'q', "quiet", ARG_FLAG, AT(quiet), NULL, "ids only" },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec ls_spec = {
	.command = "snapshot ls",
	.summary = "list snapshots",
	.usage = "[NAME] [options]",
	.about = "Lists the snapshots of a workspace, or of all, newest first.",
	ARG_TABLE(ls_table),
	.run = run_ls,
};

/* Snapshots as operands name them: ids, NAME@TAG, or NAME TAG (two operands), which is NAME@TAG
 * from here on. */
static int take_snapshots(struct command *command, struct error *err)
{
	const text_list given = command->operands;
	command->operands = (text_list){ 0 };
	for (size_t i = 0; i < given.count; i++) {
		const char *name = given.items[i];
		if (!id_is_valid(name) && !strchr(name, '@')) {
			if (++i == given.count)
				return fail_hint(err, ERR_INVALID, args_usage(command->spec).text,
					"'%s' is not the id of a snapshot; behind the name of a "
					"workspace a tag or version is needed",
					name);
			name = arena_printf(&command->arena, "%s@%s", name, given.items[i]);
		}
		vec_push(&command->arena, &command->operands, name);
	}
	return 0;
}

static int run_show(struct command *command, struct error *err)
{
	struct remote_answer answer;
	if (take_snapshots(command, err))
		return -1;
	if (command->operands.count != 1)
		return fail_hint(err, ERR_INVALID, args_usage(command->spec).text,
			"more than one snapshot is named");
	if (plain_ask(command, &answer, err))
		return -1;
	if (command->json)
		return plain_show(command, &answer);
	for (size_t i = 0; i < snapshot_record.count; i++) {
		const struct field *row = &snapshot_record.rows[i];
		const char *text;
		if (!(row->flags & FIELD_OUT))
			continue;
		text = row->kind == FIELD_TIME ? json_member_text(answer.value, row->name)
					       : columns_text(&command->arena, row, answer.value);
		if (text)
			buf_printf(&command->out, "%-16s %s\n", row->name, text);
	}
	return 0;
}

static const struct arg_spec show_spec = {
	.command = "snapshot show",
	.summary = "show a snapshot",
	.usage = "SNAPSHOT|NAME@TAG|NAME TAG [options]",
	.about = "Shows a snapshot: by its id, or by its workspace and its tag or version.",
	REMOTE_OPTIONS,
	.least = 1,
	.most = 2,
	.run = run_show,
};

static int run_rm(struct command *command, struct error *err)
{
	return take_snapshots(command, err) ? -1 : plain_remove(command, err);
}

static const struct arg_spec rm_spec = {
	.command = "snapshot rm",
	.summary = "remove snapshots",
	.usage = "SNAPSHOT|NAME@TAG|NAME TAG... [options]",
	.about = "Removes snapshots: by their ids, or by their workspaces and tags. Files that a "
		 "workspace or another snapshot needs stay.",
	REMOTE_OPTIONS,
	.least = 1,
	.most = SIZE_MAX,
	.run = run_rm,
};

/* ---- verify ---- */

static void print_verdict(struct command *command, const char *id, const struct json_value *verdict)
{
	const struct json_value *at = json_member_first(verdict, "layers");
	if (json_member_true(verdict, "ok"))
		buf_printf(&command->out, "%s ok\n", id);
	for (; at; at = at->next) {
		char shown[600];
		const char *name = json_member_text(at, "name"),
			   *problem = json_member_text(at, "problem");
		if (!problem)
			continue;
		str_printable(shown, sizeof shown, str_from(problem));
		buf_printf(&command->out, "%s layer %s: %s\n", id, name ? name : "-", shown);
	}
}

static int run_verify(struct command *command, struct error *err)
{
	bool is_whole = true;
	const text_list *names = &command->operands;
	if (take_snapshots(command, err))
		return -1;
	if (command->json)
		json_array(&command->value, NULL);
	for (size_t i = 0; i < names->count; i++) {
		const char *id = names->items[i];
		struct remote_answer answer;
		if (remote_call(
			    &command->remote, "POST", plain_path(command, id), NULL, &answer, err))
			return -1;
		if (command->json)
			json_copy(&command->value, NULL, answer.value);
		else
			print_verdict(command, id, answer.value);
		is_whole &= json_member_true(answer.value, "ok");
	}
	if (command->json)
		json_end(&command->value);
	return is_whole ? 0 : DAMAGED;
}

static const struct arg_spec verify_spec = {
	.command = "snapshot verify",
	.summary = "compare snapshots with what they were when they were made",
	.usage = "SNAPSHOT|NAME@TAG|NAME TAG... [options]",
	.about = "Reads all files of snapshots and compares them with the content ids that were "
		 "computed when they were made. Names layers that are missing or changed; exits 1 "
		 "then.",
	REMOTE_OPTIONS,
	.least = 1,
	.most = SIZE_MAX,
	.run = run_verify,
};

/* ---- rollback ---- */

static int run_rollback(struct command *command, struct error *err)
{
	command->remote.interrupted_hint = arena_printf(&command->arena,
		"carrel info %s shows on which snapshot it is based", command->operands.items[0]);
	return plain_run(command, err);
}

static const struct arg_option rollback_table[] = {
	{ 0, "when-busy", ARG_CHOICE, AT(when_busy), "wait|fail",
		"while commands run: wait for their end, or fail (default)", "wait|fail" },
	TIMEOUT_ROW,
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec rollback_spec = {
	.command = "snapshot rollback",
	.summary = "put a workspace back into the state of a snapshot",
	.usage = "NAME SNAPSHOT|TAG|VERSION [options]",
	.about = "Puts the files, installed packages and environment of a workspace back into the "
		 "state of one of its snapshots. The state that it leaves is kept as a snapshot "
		 "too (automatic).",
	ARG_TABLE(rollback_table),
	.examples = "  carrel snapshot rollback demo before-upgrade\n"
		    "  carrel snapshot rollback demo 3\n",
	.run = run_rollback,
	.sends = "snapshot",
	.cancels = "the rollback",
};

/* ---- push, pull ---- */

static uint64_t number_of(const struct json_value *answer, const char *member)
{
	uint64_t value = 0;
	json_member_u64(answer, member, &value);
	return value;
}

static int show_pushed(struct command *command, const struct json_value *answer)
{
	char size[16];
	const char *id = json_member_text(answer, "snapshot");
	uint64_t bytes = number_of(answer, "sent_bytes");
	quantity_format_size(size, bytes);
	buf_printf(&command->out, "%s: %llu of %llu layers sent, %s%s\n", id ? id : "",
		(unsigned long long)number_of(answer, "sent_layers"),
		(unsigned long long)number_of(answer, "layers"), size,
		bytes < 1024 ? " bytes" : "");
	return 0;
}

static const struct arg_option push_table[] = {
	{ 0, "force", ARG_FLAG, AT(force), NULL,
		"send also the layers that the blob store has, as when one is damaged there" },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec push_spec = {
	.command = "snapshot push",
	.summary = "send a snapshot to the blob store",
	.usage = "NAME SNAPSHOT|TAG|VERSION [options]",
	.about = "Sends a snapshot of a workspace to the blob store (blob.url of config.yaml), "
		 "where another home can pull it. Only layers that the store lacks are sent.",
	ARG_TABLE(push_table),
	.examples = "  carrel snapshot push demo good\n",
	.run = plain_run,
	.show = show_pushed,
	.sends = "snapshot",
	.cancels = "the push",
	.afterwards = "carrel snapshot push sends what is missing",
};

static const struct arg_spec pull_spec = {
	.command = "snapshot pull",
	.summary = "fetch a snapshot from the blob store",
	.usage = "NAME SNAPSHOT|TAG|VERSION [options]",
	.about = "Fetches a snapshot that was pushed from a workspace NAME, of this home or of "
		 "another one, and prints its id. Only layers that this home lacks are fetched; "
		 "each is checked against its content id. Workspaces are made of it with carrel "
		 "create --from; it stays until it is removed.",
	REMOTE_OPTIONS,
	.examples = "  carrel create again --from $(carrel snapshot pull demo good)\n",
	.run = plain_run,
	.check = workspace_check_name,
	.sends = "workspace snapshot",
	.prints = "id",
	.cancels = "the pull",
	.afterwards = "carrel snapshot ls lists what is here",
};

const struct arg_spec cli_snapshot = {
	.command = "snapshot",
	.summary = "keep states of workspaces, and return to them",
	.group = GROUP_EVERYDAY,
	.about = "Snapshots: states of workspaces that are kept.",
	.examples = "  carrel snapshot create demo --tag good\n"
		    "  carrel snapshot rollback demo good\n",
	.commands = (const struct arg_spec *const[]){ &create_spec, &ls_spec, &show_spec, &rm_spec,
		&verify_spec, &rollback_spec, &push_spec, &pull_spec, NULL },
};

/* ---- fork ---- */

static int run_fork(struct command *command, struct error *err)
{
	struct remote_answer answer;
	if (plain_ask(command, &answer, err))
		return -1;
	const struct json_value *items = json_member(answer.value, "items");
	if (command->json && items)
		json_copy(&command->value, NULL, items);
	for (const struct json_value *one = items ? items->first : NULL; one && !command->json;
		one = one->next) {
		const char *name = json_member_text(one, "name");
		buf_printf(&command->out, "%s\n", name ? name : "");
	}
	return 0;
}

static const struct arg_option fork_table[] = {
	{ 0, "count", ARG_COUNT, AT(count), "N", "make NEW-1 to NEW-N", NULL, 1, FORK_COUNT_MAX },
	{ 0, "snapshot", ARG_TEXT, AT(snapshot), "SNAPSHOT",
		"fork the state of this snapshot: id, tag or version" },
	{ 0, "when-busy", ARG_CHOICE, AT(when_busy), "pause|wait|fail",
		"while commands run: pause them for a copy (default), wait for their end, or fail",
		"pause|wait|fail" },
	TIMEOUT_ROW,
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_fork = {
	.command = "fork",
	.summary = "make workspaces with the state of another one",
	.group = GROUP_EVERYDAY,
	.usage = "NAME [NEW] [options]",
	.about = "Makes a new workspace, or several, with the files, environment, limits, labels "
		 "and variables that NAME has now. They share what nobody changes. Prints their "
		 "names.",
	ARG_TABLE(fork_table),
	.examples = "  carrel fork demo experiment\n"
		    "  carrel fork demo try --count 10\n",
	.run = run_fork,
	.sends = "name",
	.cancels = "the fork",
	.afterwards = "carrel ls lists what there is",
};
