#include "client/relay.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"

static char program[PATH_MAX], authorities[PATH_MAX];

void relay_use(const char *path, const char *ca)
{
	str_copy(program, sizeof program, path);
	str_copy(authorities, sizeof authorities, ca ? ca : "");
}

/* Its own session: Ctrl-C is for the command, which may still have something to say to the daemon.
 */
static _Noreturn void become_relay(int fd, const char *url)
{
	char name[] = "carreld", mode[] = "client", to[512];
	char *argv[] = { name, mode, to, authorities[0] ? authorities : NULL, NULL };
	child_reset_signals();
	str_copy(to, sizeof to, url);
	setsid();
	if (child_leave_streams(-1) || dup2(fd, RELAY_FD) < 0 ||
		close_range(RELAY_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC))
		_exit(125);
	if (fd == RELAY_FD) /* then dup2 has left it to be closed */
		fcntl(fd, F_SETFD, 0);
	unsetenv("CARREL_TOKEN"); /* requests have it */
	execv(program, argv);
	_exit(125);
}

static int read_verdict(int fd, const char *url, struct error *err)
{
	struct error sent = { 0 };
	char verdict = RELAY_FAILED;
	if (fd_read_full(fd, &verdict, 1) == 1 && verdict == RELAY_READY)
		return 0;
	if (fd_read_full(fd, &sent, sizeof sent) != sizeof sent)
		return fail(err, ERR_FAILED, "connect to '%s': %s ended without a reason", url,
			program);
	error_adopt(&sent);
	if (err)
		*err = sent;
	return -1;
}

int relay_open(const char *url, int *fd, struct child *relay, struct error *err)
{
	int ends[2];
	struct child child;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a socket pair");
	auto_close int ours = ends[0], its = ends[1];
	if (child_fork(&child, 0, SIGKILL, err))
		return -1;
	if (child.pid == 0)
		become_relay(its, url);
	fd_close(&its);
	if (read_verdict(ours, url, err)) {
		child_kill(&child);
		return -1;
	}
	*fd = take_fd(&ours);
	*relay = child;
	return 0;
}
