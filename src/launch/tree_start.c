/* Work on whole trees for core: processes of carrel-build, each a role of its own
 * (launch/trees/tree_job.h). */
#include <fcntl.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fault.h"
#include "base/fd.h"
#include "envs/builder/process.h"
#include "launch/internal.h"
#include "launch/trees/tree_job.h"
#include "proc/role.h"

#define TREE_JOBS_MAX 16

/* The process reads and writes through them with core's rights: a descriptor that only names a file
 * (O_PATH) is of no use to it. */
static int check_fds(const int fds[3], struct error *err)
{
	for (int i = 0; i < 3; i++) {
		int flags = fcntl(fds[i], F_GETFL);
		if (flags < 0 || flags & O_PATH ||
			(flags & O_ACCMODE) == (i == 0 ? O_WRONLY : O_RDONLY))
			return fail(err, ERR_DENIED, "invalid descriptors for work on trees");
	}
	return 0;
}

static int begin(struct launcher *launcher, const struct launch_packet *packet, const int fds[3],
	pid_t *pid, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_close int pidfd = -1;
	char program[PATH_MAX];
	if (jobs_count(launcher, JOB_TREE) >= TREE_JOBS_MAX)
		return fail(err, ERR_LIMIT, "%d jobs on trees run already", TREE_JOBS_MAX);
	if (check_fds(fds, err) || build_find_program(program, err))
		return -1;
	struct role_start start = { .program = program,
		.uid = geteuid() == 0 ? launcher->home->uid : (uid_t)-1,
		.gid = launcher->home->gid,
		.fds = { fds[0], fds[1], fds[2] },
		.fd_count = 3,
		.log = launcher->log.fd };
	tree_describe(&arena, launcher->home, packet->strings, packet->head.string_count, &start);
	return role_start(&start, pid, &pidfd, err);
}

void tree_start(struct launcher *launcher, const struct launch_packet *packet, const int fds[3])
{
	const struct launch_message *head = &packet->head;
	struct error err;
	pid_t pid = 0;
	if (begin(launcher, packet, fds, &pid, &err)) {
		launcher_log(launcher, LOG_LEVEL_WARN, "work on trees failed to start", NULL,
			head->request_id, &err);
		link_send_failed(launcher, head->tag, &err);
		return;
	}
	job_add(launcher, JOB_TREE, pid, head->tag);
	fault_point("launch_tree_started");
}
