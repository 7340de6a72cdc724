#include "linux/netns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
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

/* ---- addresses ---- */

struct netlink_request {
	struct nlmsghdr head;
	char body[80]; /* a struct rtmsg or ifaddrmsg, and attributes */
};

static void append(struct netlink_request *request, const void *data, size_t len)
{
	memcpy((char *)request + NLMSG_ALIGN(request->head.nlmsg_len), data, len);
	request->head.nlmsg_len = (unsigned)(NLMSG_ALIGN(request->head.nlmsg_len) + len);
}

static void netns_begin(
	struct netlink_request *request, unsigned short type, const void *data, size_t len)
{
	*request = (struct netlink_request){
		.head = { .nlmsg_len = sizeof request->head,
			.nlmsg_type = type,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE }
	};
	append(request, data, len);
}

static void append_attribute(
	struct netlink_request *request, unsigned short type, const void *data, size_t len)
{
	struct rtattr head = { .rta_len = (unsigned short)RTA_LENGTH(len), .rta_type = type };
	append(request, &head, sizeof head);
	append(request, data, len);
}

static int ask_kernel(int netlink, const struct netlink_request *request, struct error *err)
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
	return errno ? fail_errno(err, "add addresses to 'lo'") : 0;
}

struct range {
	int family;
	unsigned char first[16], len, prefix;
};

static int add_range(int netlink, const struct range *range, struct error *err)
{
	struct rtmsg route = { .rtm_family = (unsigned char)range->family,
		.rtm_dst_len = range->prefix,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_scope = range->family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_LOCAL };
	/* Of the first address alone; the others are local by the route. Without it, resolvers that
	 * return only what the machine has addresses for (AI_ADDRCONFIG) would return nothing:
	 * loopback doesn't count there. */
	struct ifaddrmsg own = { .ifa_family = (unsigned char)range->family,
		.ifa_prefixlen = (unsigned char)(range->len * 8),
		.ifa_flags = IFA_F_NODAD | IFA_F_PERMANENT,
		.ifa_scope = RT_SCOPE_UNIVERSE,
		.ifa_index = LOOPBACK_INDEX };
	/* Deprecated, so that programs which try one address only take the IPv4 one first. */
	struct ifa_cacheinfo times = { .ifa_valid = UINT32_MAX };
	int device = LOOPBACK_INDEX;
	struct netlink_request request;
	netns_begin(&request, RTM_NEWADDR, &own, sizeof own);
	append_attribute(&request, IFA_LOCAL, range->first, range->len);
	append_attribute(&request, IFA_ADDRESS, range->first, range->len);
	if (range->family == AF_INET6)
		append_attribute(&request, IFA_CACHEINFO, &times, sizeof times);
	if (ask_kernel(netlink, &request, err) < 0)
		return -1;
	netns_begin(&request, RTM_NEWROUTE, &route, sizeof route);
	append_attribute(&request, RTA_DST, range->first, range->len);
	append_attribute(&request, RTA_OIF, &device, sizeof device);
	return ask_kernel(netlink, &request, err);
}

int netns_add_ranges(struct error *err)
{
	static const struct range ipv4 = { AF_INET, { 198, 18, 0, 0 }, 4, 15 },
				  ipv6 = { AF_INET6, { 0xfd, 0, 0, 0xca }, 16, 64 };
	auto_close int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (netlink < 0)
		return fail_errno(err, "make a socket for routes");
	if (add_range(netlink, &ipv4, err) < 0)
		return -1;
	/* A kernel without IPv6 has no such addresses. */
	return add_range(netlink, &ipv6, err) < 0 && err->sys_errno != EAFNOSUPPORT &&
			       err->sys_errno != EOPNOTSUPP && err->sys_errno != EACCES &&
			       err->sys_errno != ENODEV
		       ? -1
		       : 0;
}
