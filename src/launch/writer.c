/* The process that writes the database, for core: one at most, and never an old one beside a new
 * one. */
#include <sys/socket.h>
#include "base/fd.h"
#include "launch/internal.h"

int writer_start(struct launcher *launcher, int *core_end, struct error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a pair of sockets");
	auto_close int ours = ends[0], theirs = ends[1];
	if (launcher_start_role(launcher, ROLE_WRITER, &theirs, 1, err))
		return -1;
	*core_end = take_fd(&ours);
	return 0;
}

static void start_and_answer(struct launcher *launcher)
{
	struct launch_message head = {
		.type = LAUNCH_WRITER_STARTED, .tag = launcher->writer_tag, .present = 1
	};
	auto_close int core_end = -1;
	struct error err;
	launcher->writer_tag = 0;
	if (writer_start(launcher, &core_end, &err))
		link_send_failed(launcher, head.tag, &err);
	else
		link_send(launcher, &head, NULL, 0, &core_end, 1);
}

void writer_replace(struct launcher *launcher, uint64_t tag)
{
	if (launcher->writer_tag) {
		link_refuse(launcher, tag, ERR_CONFLICT, "the writer is being replaced already");
		return;
	}
	launcher->writer_tag = tag;
	if (launcher->roles[ROLE_WRITER])
		role_kill(launcher, ROLE_WRITER); /* goes on in writer_died */
	else
		start_and_answer(launcher);
}

void writer_died(struct launcher *launcher, int status)
{
	struct error err;
	role_explain_end(status, &err);
	if (status && launcher->roles[ROLE_CORE])
		launcher_log(launcher, LOG_LEVEL_WARN,
			"the process that writes the database has ended", NULL, NULL, &err);
	if (launcher->writer_tag)
		start_and_answer(launcher);
	launcher_check_end(launcher);
}
