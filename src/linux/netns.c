#include "linux/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"

/* Brings `lo` up in the caller's network namespace; *fd: that namespace. */
static int raise_loopback(int *fd, struct error *err)
{
	/* Any socket will do to name an interface; a datagram socket of AF_UNIX is the cheapest to
	 * make. */
	auto_close int any = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (any < 0)
		return fail_errno(err, "make a socket to bring 'lo' up");
	if (ioctl(any, SIOCSIFFLAGS, &request) < 0)
		return fail_errno(err, "bring 'lo' up");
	int made = ioctl(any, SIOCGSKNS);
	if (made < 0)
		return fail_errno(err, "open a network namespace");
	*fd = made;
	return 0;
}

int netns_leave_for_new(int *fd, struct error *err)
{
	if (unshare(CLONE_NEWNET))
		return fail_errno(err, "make a network namespace");
	return raise_loopback(fd, err);
}

int netns_enter(int fd, struct error *err)
{
	if (setns(fd, CLONE_NEWNET))
		return fail_errno(err, "enter a network namespace");
	return 0;
}

int netns_open_ports(int proc, struct error *err)
{
	if (fd_write_file(proc, "sys/net/ipv4/ip_unprivileged_port_start", "0") < 0)
		return fail_errno(err, "write '/proc/sys/net/ipv4/ip_unprivileged_port_start'");
	return 0;
}

int netns_open_own(int *fd, struct error *err)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (own < 0)
		return fail_errno(err, "open '/proc/self/ns/net'");
	*fd = own;
	return 0;
}

int netns_make(int own, int *fd, struct error *err)
{
	auto_close int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int made = -1;

	if (proc < 0)
		return fail_errno(err, "open '/proc'");
	if (unshare(CLONE_NEWNET) < 0)
		return fail_errno(err, "make a network namespace");
	int failed = raise_loopback(&made, err) || netns_open_ports(proc, err);
	if (setns(own, CLONE_NEWNET) < 0 && !failed)
		failed = fail_errno(err, "leave a network namespace");
	if (failed)
		return -1;
	*fd = take_fd(&made);
	return 0;
}

int netns_listen(uint16_t port, int *fd, struct error *err)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	auto_close int made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;

	/* Connections of a listener that has gone don't keep its port, one that listens does. */
	if (made < 0 || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
		return fail_errno(err, "make a socket for 127.0.0.1:%u", port);
	if (bind(made, (struct sockaddr *)&address, sizeof address) < 0)
		return fail_errno_code(err,
			errno == EADDRINUSE ? ERR_CONFLICT : error_code_from_errno(errno),
			"bind 127.0.0.1:%u", port);
	if (listen(made, 128) < 0)
		return fail_errno(err, "listen on 127.0.0.1:%u", port);
	*fd = take_fd(&made);
	return 0;
}
