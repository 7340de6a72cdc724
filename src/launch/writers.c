/* The processes that write for core, its database and the audit log: one of each at most, and never
 * an old one beside a new one. The audit log's outlives its core by as long as it takes to write
 * what core has sent: what a client was told is in the log, whoever is killed. */
#include <sys/socket.h>
#include "base/fd.h"
#include "launch/internal.h"

#define DRAIN_MS 10000

static const struct {
	enum launch_type started; /* the answer to core */
	int buffer_bytes;	  /* for records of a burst, while the disk is slow */
	const char *refused, *ended;
} rows[ROLE_COUNT] = {
	[ROLE_WRITER] = { LAUNCH_WRITER_STARTED, 0, "the writer is being replaced already",
		"the process that writes the database has ended" },
	[ROLE_AUDIT] = { LAUNCH_AUDIT_STARTED, 4 << 20,
		"the process that writes the audit log is being replaced, or is off",
		"the process that writes the audit log has ended" },
};

int writer_start(struct launcher *launcher, enum role which, int *core_end, struct error *err)
{
	int ends[2], size = rows[which].buffer_bytes;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a pair of sockets");
	auto_close int ours = ends[0], theirs = ends[1];
	/* Less where the host allows less. */
	if (size && setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size))
		setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	if (launcher_start_role(launcher, which, &theirs, 1, err))
		return -1;
	*core_end = take_fd(&ours);
	return 0;
}

static void start_and_answer(struct launcher *launcher, enum role which)
{
	struct launch_message head = {
		.type = rows[which].started, .tag = launcher->writers[which].tag, .present = 1
	};
	auto_close int core_end = -1;
	struct error err;
	launcher->writers[which].tag = 0;
	if (writer_start(launcher, which, &core_end, &err))
		link_send_failed(launcher, head.tag, &err);
	else
		link_send(launcher, &head, NULL, 0, &core_end, 1);
}

void writer_replace(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	enum role which = packet->head.type == LAUNCH_AUDIT ? ROLE_AUDIT : ROLE_WRITER;
	uint64_t tag = packet->head.tag;
	if (launcher->writers[which].tag ||
		(which == ROLE_AUDIT && !launcher_is_audited(launcher))) {
		link_refuse(launcher, tag, ERR_CONFLICT, rows[which].refused);
		return;
	}
	launcher->writers[which].tag = tag;
	if (launcher->roles[which])
		role_kill(launcher, which); /* goes on in writer_died */
	else
		start_and_answer(launcher, which);
}

static void on_patience(struct loop *loop, void *ctx)
{
	struct launcher *launcher = ctx;
	launcher->writers[ROLE_AUDIT].patience = NULL;
	launcher_log(launcher, LOG_LEVEL_ERROR,
		"killing the process that writes the audit log: it takes too long", NULL, NULL,
		NULL);
	role_kill(launcher, ROLE_AUDIT);
}

void writers_forget_core(struct launcher *launcher)
{
	struct writer *audit = &launcher->writers[ROLE_AUDIT];
	launcher->writers[ROLE_WRITER].tag = audit->tag = 0;
	role_kill(launcher, ROLE_WRITER);
	if (launcher->roles[ROLE_AUDIT] && !audit->patience)
		audit->patience = loop_after(launcher->loop, DRAIN_MS, on_patience, launcher);
}

void writer_died(struct launcher *launcher, enum role which, int status)
{
	struct writer *writer = &launcher->writers[which];
	struct error err;
	role_explain_end(status, &err);
	loop_cancel(launcher->loop, writer->patience);
	writer->patience = NULL;
	if (status && launcher->roles[ROLE_CORE])
		launcher_log(launcher, LOG_LEVEL_WARN, rows[which].ended, NULL, NULL, &err);
	if (writer->tag)
		start_and_answer(launcher, which);
	launcher_check_end(launcher);
}
