/* spawn.h -- one command started by carrel-init. */
#pragma once
#include <stdint.h>

struct spawn {
	const char **argv, **env; /* NULL-terminated */
	const char *cwd;
	int fds[3];	   /* all above 2 */
	int program;	   /* with INIT_PROGRAM_IN_FD: above 2 */
	uint32_t flags;	   /* enum init_flags */
	uint64_t fds_most; /* its RLIMIT_NOFILE, which it can't raise */
	char *path;	   /* SPAWN_PATH_SIZE bytes to work in */
	void *stack_top;   /* of the child until it execs; aligned to 16 */
	int is_inside; /* the kernel's: 0 when the child has left our memory, by exec or its end */
	/* out */
	int pid, pidfd;		   /* pidfd: -1 with INIT_NO_PIDFD */
	volatile int stage, error; /* written by the child: it shares this memory */
};
#define SPAWN_PATH_SIZE 4096
#define SPAWN_STACK_SIZE 4096

/* Returns when the command runs (0) or could not be started (-1: stage and error say why, the child
 * is reaped). The caller has all signals blocked and every disposition at its default. Another
 * process of the sandbox can stop the child before it execs: then it is continued, and killed when
 * that doesn't help. */
int spawn_start(struct spawn *spawn);
/* In a child that shares our memory: becomes the command, or says why not and exits. */
_Noreturn void spawn_become(struct spawn *spawn);
