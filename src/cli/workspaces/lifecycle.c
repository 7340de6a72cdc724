/* carrel suspend, carrel resume: a workspace without processes, and back. */
#include "cli/cli.h"
#include "cli/remote.h"

/* The same POST for each operand. */
static int post_to_all(struct command *command, const char *what, const struct buf *body,
	const char *done, struct error *err)
{
	cli_ones all = { 0 };
	if (remote_open(&command->remote, err))
		return -1;
	for (size_t i = 0; i < command->operands.count; i++) {
		struct cli_one one = { .name = command->operands.items[i] };
		one.has_failed = remote_call(&command->remote, "POST",
			remote_workspace_path(&command->remote, one.name, what), body, NULL,
			&one.err);
		vec_push(&command->arena, &all, one);
	}
	return cli_print_ones(command, &all, done, 0, err);
}

static int run_suspend(struct command *command, struct error *err)
{
	auto_buf struct buf body = buf_empty(64);
	buf_printf(&body, "{\"force\":%s}", command->options.force ? "true" : "false");
	return post_to_all(command, "/suspend", &body, "suspended", err);
}

static int run_resume(struct command *command, struct error *err)
{
	return post_to_all(command, "/resume", NULL, "resumed", err);
}

static const struct arg_option suspend_table[] = {
	{ 0, "force", ARG_FLAG, AT(force), NULL, "end the commands that run in it" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_suspend = {
	.command = "suspend",
	.summary = "end the processes of workspaces, keep their files",
	.group = GROUP_WORKSPACES,
	.usage = "NAME... [options]",
	.about = "Suspends workspaces: their processes end and their memory is released; their "
		 "files stay.\n"
		 "The next command, or carrel resume, resumes a workspace.",
	ARG_TABLE(suspend_table),
	.examples = "  carrel suspend demo\n"
		    "  carrel suspend demo --force\n",
	.run = run_suspend,
};

const struct arg_spec cli_resume = {
	.command = "resume",
	.summary = "make suspended workspaces ready for commands",
	.group = GROUP_WORKSPACES,
	.usage = "NAME... [options]",
	.about = "Resumes workspaces: checks that their files and environment exist, and starts "
		 "their\n"
		 "sandboxes. The next command would do the same.",
	REMOTE_OPTIONS,
	.examples = "  carrel resume demo\n",
	.run = run_resume,
};
