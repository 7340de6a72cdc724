/* Work on whole trees for core: processes of carrel-build, each a role of its own
 * (launch/trees/tree_job.h). */
#include <fcntl.h>
#include "base/arena.h"
#include "base/fd.h"
#include "envs/builder/process.h"
#include "launch/internal.h"
#include "launch/trees/tree_job.h"

/* The process reads and writes through them with core's rights. */
static int check_fds(const int *fds, struct error *err)
{
	if (job_check_fds(fds, 3, "work on trees", err))
		return -1;
	for (int i = 0; i < 3; i++)
		if ((fcntl(fds[i], F_GETFL) & O_ACCMODE) == (i == 0 ? O_WRONLY : O_RDONLY))
			return fail(err, ERR_DENIED, "invalid descriptors for work on trees");
	return 0;
}

int tree_begin(struct launcher *launcher, const struct launch_packet *packet, const int *fds,
	pid_t *pid, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_close int pidfd = -1;
	char program[PATH_MAX];
	if (check_fds(fds, err) || build_find_program(program, err))
		return -1;
	struct role_start start = job_role(launcher, program, fds, 3);
	tree_describe(&arena, launcher->home, packet->strings, packet->head.string_count, &start);
	return role_start(&start, pid, &pidfd, err);
}
