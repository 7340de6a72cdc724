/* carrel wait: the ends of commands. */
#include "cli/cli.h"

struct awaited {
	struct remote *remote;
	const char *id;
	struct remote_answer answer;
};

static int ask(void *ctx, struct error *err)
{
	struct awaited *awaited = ctx;
	return remote_call(awaited->remote, "GET",
		remote_exec_path(awaited->remote, awaited->id, "?wait=true"), NULL,
		&awaited->answer, err);
}

/* A daemon that restarts still knows its background commands. */
static int wait_for(struct awaited *awaited, uint64_t *code, struct error *err)
{
	if (ask(awaited, err) &&
		(err->code != ERR_UNAVAILABLE || remote_reopen(awaited->remote, ask, awaited, err)))
		return error_context(err, "wait for exec '%s'", awaited->id);
	if (!json_member_u64(awaited->answer.value, "exit_code", code) || *code > 255)
		return fail(err, ERR_CORRUPT, "the daemon's response has no exit code");
	return 0;
}

static int run_wait(struct command *command, struct error *err)
{
	int first = 0;
	if (command->json)
		buf_char(&command->out, '[');
	if (remote_open(&command->remote, err))
		return -1;
	for (size_t i = 0; i < command->operands.count; i++) {
		struct awaited awaited = { .remote = &command->remote,
			.id = command->operands.items[i] };
		uint64_t code;
		if (wait_for(&awaited, &code, err))
			return -1;
		if (!first)
			first = (int)code;
		if (!command->json) {
			buf_printf(&command->out, "%" PRIu64 "\n", code);
			continue;
		}
		if (i)
			buf_char(&command->out, ',');
		remote_print_answer(&awaited.answer, &command->out);
	}
	if (command->json)
		buf_char(&command->out, ']');
	return first;
}

const struct arg_spec cli_wait = {
	.command = "wait",
	.summary = "wait until commands have ended",
	.group = GROUP_EXECS,
	.usage = "EXEC... [options]",
	.about = "Waits until all these commands have ended and prints their exit codes, one a "
		 "line, in\nthe order of the arguments. The exit code is the first one that isn't "
		 "0.",
	REMOTE_OPTIONS,
	.examples = "  carrel wait $(carrel exec demo -d -- make test)\n",
	.run = run_wait,
};
