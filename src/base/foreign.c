#include "base/foreign.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "base/fd.h"

#define MOST_US 20000

static void on_alarm(int number)
{
}

static void set_alarm(void (*handler)(int), long every_us)
{
	struct sigaction action = { .sa_handler = handler }; /* no SA_RESTART */
	/* Again and again: the first may come before the call that is to be interrupted. */
	struct itimerval timer = { { 0, every_us }, { 0, every_us } };
	if (every_us)
		sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	/* One that has come was delivered when that call returned. */
	if (!every_us)
		sigaction(SIGALRM, &action, NULL);
}

static void begin(sigset_t *before)
{
	sigset_t alarm;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	set_alarm(on_alarm, MOST_US);
	sigprocmask(SIG_UNBLOCK, &alarm, before);
}

static void end(const sigset_t *before)
{
	set_alarm(SIG_DFL, 0);
	sigprocmask(SIG_SETMASK, before, NULL);
}

int foreign_accept(int listener)
{
	const struct linger none = { 0 };
	sigset_t before;
	begin(&before);
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), saved = errno;
	end(&before);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	errno = saved;
	return fd;
}

void foreign_close(int *fd)
{
	const struct linger none = { 0 };
	struct linger found = { 0 };
	socklen_t len = sizeof found;
	int saved = errno;
	sigset_t before;
	if (*fd < 0)
		return;
	/* Of 0 seconds: a reset is meant. */
	if (!getsockopt(*fd, SOL_SOCKET, SO_LINGER, &found, &len) && found.l_onoff &&
		found.l_linger)
		setsockopt(*fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	begin(&before);
	fd_close(fd);
	end(&before);
	errno = saved;
}
