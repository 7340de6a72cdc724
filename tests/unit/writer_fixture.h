/* writer_fixture.h -- a process that writes the database, as the launcher starts one for core, but
 * without a lock: the test program itself, executed again. A fork alone would have the database
 * open that we have open, which SQLite forbids. */
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "store/store.h"
#include "unit.h"

#define STORE_FILE "carrel.db"
#define STORE_URL "sqlite:" STORE_FILE
#define WRITER_SOCKET 3

__attribute__((constructor)) static void be_writer(void)
{
	const char *home = getenv("UNIT_WRITER_HOME"), *path = getenv("UNIT_WRITER_PATH");
	struct error err;

	if (!home)
		return;
	int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_exit(store_serve(WRITER_SOCKET, dir, path ? path : home, STORE_URL, &err) != 0);
}

/* Returns our end of its socket. */
static inline int start_writer(const char *home, pid_t *pid)
{
	char *const argv[] = { (char[]){ "writer" }, NULL };
	pid_t parent = getpid();
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	*pid = fork();
	assert_true(*pid >= 0);
	if (*pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("UNIT_WRITER_HOME", home, 1);
		if (getppid() == parent && dup2(ends[1], WRITER_SOCKET) == WRITER_SOCKET &&
			!fcntl(WRITER_SOCKET, F_SETFD, 0) &&
			!close_range(WRITER_SOCKET + 1, ~0u, 0))
			execv("/proc/self/exe", argv);
		_exit(1);
	}
	close(ends[1]);
	return ends[0];
}
