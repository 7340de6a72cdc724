#include "linux/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"

#define BACKLOG 128
#define LOOPBACK_INDEX 1 /* of `lo`, in every network namespace */

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

union any_address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

/* Connections of a listener that has gone don't keep its port, one that listens does. Datagrams
 * have no such state: there two sockets with SO_REUSEADDR would share the port. */
static int open_socket(const union any_address *address, socklen_t len, int type, uint16_t port,
	int *fd, struct error *err)
{
	auto_close int made =
		socket(address->any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, off = 0;

	if (made < 0)
		return fail_errno(err, "make a socket for port %u", port);
	if ((type == SOCK_STREAM &&
		    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) ||
		(address->any.sa_family == AF_INET6 &&
			setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0))
		return fail_errno(err, "prepare a socket for port %u", port);
	if (bind(made, &address->any, len) < 0)
		return fail_errno_code(err,
			errno == EADDRINUSE ? ERR_CONFLICT : error_code_from_errno(errno),
			"bind port %u", port);
	if (type == SOCK_STREAM && listen(made, BACKLOG) < 0)
		return fail_errno(err, "listen on port %u", port);
	*fd = take_fd(&made);
	return 0;
}

static int open_loopback(uint16_t port, int type, int *fd, struct error *err)
{
	union any_address address = { .ipv4 = { .sin_family = AF_INET,
					      .sin_port = htons(port),
					      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };

	if (open_socket(&address, sizeof address.ipv4, type, port, fd, err) < 0)
		return error_context(err, "127.0.0.1");
	return 0;
}

int netns_listen(uint16_t port, int *fd, struct error *err)
{
	return open_loopback(port, SOCK_STREAM, fd, err);
}

int netns_bind(uint16_t port, int *fd, struct error *err)
{
	return open_loopback(port, SOCK_DGRAM, fd, err);
}

int netns_listen_all(uint16_t port, int *fd, struct error *err)
{
	union any_address both = { .ipv6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };
	union any_address old = { .ipv4 = { .sin_family = AF_INET, .sin_port = htons(port) } };

	if (open_socket(&both, sizeof both.ipv6, SOCK_STREAM, port, fd, err) == 0)
		return 0;
	/* A kernel without IPv6, or with it disabled. */
	if (err->sys_errno != EAFNOSUPPORT && err->sys_errno != EADDRNOTAVAIL)
		return -1;
	return open_socket(&old, sizeof old.ipv4, SOCK_STREAM, port, fd, err);
}

/* ---- routes ---- */

struct route_request {
	struct nlmsghdr head;
	struct rtmsg route;
	struct {
		struct rtattr head;
		unsigned char address[16];
	} to;
	struct {
		struct rtattr head;
		int index;
	} device;
};

static void describe_route(struct route_request *request, int family, const void *address,
	size_t len, unsigned char prefix)
{
	*request = (struct route_request){ .head = { .nlmsg_len = sizeof *request,
						   .nlmsg_type = RTM_NEWROUTE,
						   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
								  NLM_F_CREATE | NLM_F_REPLACE },
		.route = { .rtm_family = (unsigned char)family,
			.rtm_dst_len = prefix,
			.rtm_table = RT_TABLE_LOCAL,
			.rtm_protocol = RTPROT_BOOT,
			.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
			.rtm_type = RTN_LOCAL },
		.to.head = { .rta_len = (unsigned short)RTA_LENGTH(len), .rta_type = RTA_DST },
		.device = { { RTA_LENGTH(sizeof(int)), RTA_OIF }, LOOPBACK_INDEX } };
	memcpy(request->to.address, address, len);
	/* The attributes follow each other without a gap. */
	if (len < sizeof request->to.address) {
		memmove(request->to.address + len, &request->device, sizeof request->device);
		request->head.nlmsg_len -= (unsigned)(sizeof request->to.address - len);
	}
}

static int add_route(int netlink, const struct route_request *request, struct error *err)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[256];
	} reply;

	if (send(netlink, request, request->head.nlmsg_len, 0) < 0)
		return fail_errno(err, "send to the kernel's routes");
	ssize_t got = recv(netlink, &reply, sizeof reply, 0);
	if (got < 0)
		return fail_errno(err, "receive from the kernel's routes");
	if ((size_t)got < sizeof reply.head + sizeof reply.error ||
		reply.head.nlmsg_type != NLMSG_ERROR)
		return fail(err, ERR_FAILED, "the kernel sent an unexpected reply");
	errno = -reply.error.error;
	return errno ? fail_errno(err, "add a route to 'lo'") : 0;
}

int netns_add_ranges(struct error *err)
{
	static const unsigned char ipv4[] = { 198, 18, 0, 0 };
	static const unsigned char ipv6[16] = { 0xfd, 0, 0, 0xca };
	struct route_request request;
	auto_close int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (netlink < 0)
		return fail_errno(err, "make a socket for routes");
	describe_route(&request, AF_INET, ipv4, sizeof ipv4, 15);
	if (add_route(netlink, &request, err) < 0)
		return -1;
	describe_route(&request, AF_INET6, ipv6, sizeof ipv6, 64);
	/* A kernel without IPv6 has no such routes. */
	return add_route(netlink, &request, err) < 0 && err->sys_errno != EAFNOSUPPORT &&
			       err->sys_errno != EOPNOTSUPP && err->sys_errno != EACCES &&
			       err->sys_errno != ENODEV
		       ? -1
		       : 0;
}
