/* The process that writes the audit log, for core: one at most. It outlives its core by as long as
 * it takes to write what core has sent: what a client was told is in the log, whoever is killed. */
#include <sys/socket.h>
#include "base/fd.h"
#include "launch/internal.h"

#define BUFFER_BYTES (4 << 20)
#define DRAIN_MS 10000

int audit_start(struct launcher *launcher, int *core_end, struct error *err)
{
	int ends[2], size = BUFFER_BYTES;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a pair of sockets");
	auto_close int ours = ends[0], theirs = ends[1];
	/* Records of a burst, while the disk is slow; less where the host allows less. */
	if (setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size))
		setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	if (launcher_start_role(launcher, ROLE_AUDIT, &theirs, 1, err))
		return -1;
	*core_end = take_fd(&ours);
	return 0;
}

static void start_and_answer(struct launcher *launcher)
{
	struct launch_message head = {
		.type = LAUNCH_AUDIT_STARTED, .tag = launcher->audit.tag, .present = 1
	};
	auto_close int core_end = -1;
	struct error err;
	launcher->audit.tag = 0;
	if (audit_start(launcher, &core_end, &err))
		link_send_failed(launcher, head.tag, &err);
	else
		link_send(launcher, &head, NULL, 0, &core_end, 1);
}

void audit_replace(struct launcher *launcher, uint64_t tag)
{
	if (launcher->audit.tag ||
		(launcher->options->config && !launcher->options->config->audit_enabled)) {
		link_refuse(launcher, tag, ERR_CONFLICT,
			"the process that writes the audit log is being replaced, or is off");
		return;
	}
	launcher->audit.tag = tag;
	if (launcher->roles[ROLE_AUDIT])
		role_kill(launcher, ROLE_AUDIT); /* goes on in audit_died */
	else
		start_and_answer(launcher);
}

static void on_patience(struct loop *loop, void *ctx)
{
	struct launcher *launcher = ctx;
	launcher->audit.patience = NULL;
	launcher_log(launcher, LOG_LEVEL_ERROR,
		"killing the process that writes the audit log: it takes too long", NULL, NULL,
		NULL);
	role_kill(launcher, ROLE_AUDIT);
}

void audit_core_died(struct launcher *launcher)
{
	launcher->audit.tag = 0;
	if (launcher->roles[ROLE_AUDIT] && !launcher->audit.patience)
		launcher->audit.patience =
			loop_after(launcher->loop, DRAIN_MS, on_patience, launcher);
}

void audit_died(struct launcher *launcher, int status)
{
	struct error err;
	role_explain_end(status, &err);
	loop_cancel(launcher->loop, launcher->audit.patience);
	launcher->audit.patience = NULL;
	if (status && launcher->roles[ROLE_CORE])
		launcher_log(launcher, LOG_LEVEL_WARN,
			"the process that writes the audit log has ended", NULL, NULL, &err);
	if (launcher->audit.tag)
		start_and_answer(launcher);
	launcher_check_end(launcher);
}
