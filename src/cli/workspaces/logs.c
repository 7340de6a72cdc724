/* carrel logs: what a background exec has said, and says. */
#include <poll.h>
#include <unistd.h>
#include "base/str.h"
#include "cli/cli.h"
#include "cli/workspaces/tail.h"
#include "model/nouns/exec.h"

static const struct arg_option table[] = {
	{ 'f', "follow", ARG_FLAG, AT(follow), NULL,
		"follow the output until the command has ended" },
	{ 0, "stream", ARG_CHOICE, AT(stream), "stdout|stderr",
		"print only this stream, on stdout (default: both, to stdout and stderr)",
		"stdout|stderr" },
	{ 0, "offset", ARG_COUNT, AT(offset), "N", "with --stream: begin at this byte" },
	{ ARG_FROM(remote_rows) },
};

/* Whichever has something. */
static int pump_all(struct tail tails[2], struct error *err)
{
	while (tails[0].is_open || tails[1].is_open) {
		struct pollfd ready[2];
		bool has_input = false;
		for (int i = 0; i < 2; i++) {
			ready[i] = (struct pollfd){
				tails[i].is_open ? tails[i].remote.client.socket : -1, POLLIN, 0
			};
			has_input |= tail_has_input(&tails[i]);
		}
		if (poll(ready, 2, has_input ? 0 : -1) < 0 && errno != EINTR)
			return fail_errno(err, "wait for output");
		for (int i = 0; i < 2; i++)
			if (tails[i].is_open && (ready[i].revents || tail_has_input(&tails[i])) &&
				tail_pump(&tails[i], err))
				return -1;
	}
	return 0;
}

static void print_json(const struct buf *out, const struct buf *errors, struct json *j)
{
	struct exec_output output = exec_output_whole((struct str){ out->data, out->len },
		(struct str){ errors->data, errors->len }, false);
	json_object(j, NULL);
	exec_print_output(j, &output);
	json_end(j);
}

static int check_options(const struct options *options, bool json, struct error *err)
{
	if (options->follow && json)
		return fail(err, ERR_INVALID,
			"-f and -o json can't be combined: a JSON value can't be printed before "
			"the output ends");
	if (options->offset && !options->stream)
		return fail(err, ERR_INVALID, "--offset needs --stream stdout or --stream stderr");
	return 0;
}

static int begin_tails(struct tail tails[2], const char *stream, struct error *err)
{
	for (int i = 0; i < 2; i++) {
		if (stream && strcmp(stream, tails[i].name))
			continue;
		if (stream)
			tails[i].to = STDOUT_FILENO;
		if (tail_begin(&tails[i], err))
			return err->code == ERR_NOT_FOUND
				       ? error_hint(err, "only background commands (exec -d) have "
							 "logs, until their workspace is removed; "
							 "carrel ps -a lists them")
				       : -1;
	}
	return 0;
}

/* Output that was cut by the end of the daemon looks like that of a command that ended itself. */
static void say_lost(struct command *command)
{
	struct error ignored;
	struct remote_answer answer;
	const char *path = remote_exec_path(&command->remote, command->operands.items[0], "");
	const char *reason;
	if (remote_call(&command->remote, "GET", path, NULL, &answer, &ignored))
		return;
	reason = json_member_text(answer.value, "reason");
	if (reason && !strcmp(reason, reason_names[REASON_DAEMON_LOST]))
		cli_explain(&(struct result){ .reason = REASON_DAEMON_LOST }, NULL);
}

static int run(struct command *command, struct error *err)
{
	const struct options *options = &command->options;
	static const char *const names[2] = { "stdout", "stderr" };
	struct buf captured[2];
	struct tail tails[2];
	if (check_options(options, command->json, err))
		return -1;
	for (int i = 0; i < 2; i++) {
		buf_init(&captured[i], BUF_MAX_DEFAULT);
		tails[i] = (struct tail){ .name = names[i],
			.to = i + 1,
			.capture = command->json ? &captured[i] : NULL,
			.remote = command->remote,
			.exec = command->operands.items[0],
			.offset = options->offset,
			.follows = options->follow };
	}
	int failed = begin_tails(tails, options->stream, err) || pump_all(tails, err);
	if (!failed && command->json)
		print_json(&captured[0], &captured[1], &command->value);
	else if (!failed)
		say_lost(command);
	for (int i = 0; i < 2; i++) {
		remote_close(&tails[i].remote);
		buf_done(&captured[i]);
	}
	return failed ? -1 : 0;
}

const struct arg_spec cli_logs = {
	.command = "logs",
	.summary = "print the output of a background command",
	.group = GROUP_EXECS,
	.usage = "EXEC [options]",
	.about = "Prints the output of a background command, running or ended. `carrel ps -a` "
		 "shows how\n"
		 "it ended.",
	ARG_TABLE(table),
	.examples = "  carrel logs -f $(carrel exec demo -d -- make test)\n",
	.run = run,
};
