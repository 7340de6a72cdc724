/* carrel suspend, carrel resume: a workspace without processes, and back. */
#include "cli/cli.h"
#include "cli/plain.h"
#include "cli/remote.h"

static int run_suspend(struct command *command, struct error *err)
{
	return plain_each(command, NULL, NULL, "suspended", 0, err);
}

static int run_resume(struct command *command, struct error *err)
{
	return plain_each(command, NULL, NULL, "resumed", 0, err);
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
