/* probe_socket.c -- sockets and the network. See probe.h. */
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "probe.h"

static outcome other_socket_families_are_closed(void)
{
	for (unsigned long family = 0; family < 64; family++)
		for (int type = 1; type <= 6; type++) {
			if (family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
				family == AF_NETLINK)
				continue;
			for (int high = 0; high < 2; high++)
				if (!answers(syscall(SYS_socket, family | (high ? HIGH : 0), type,
						     0),
					    EAFNOSUPPORT))
					return not_so("family %lu type %d: %s", family, type,
						strerror(errno));
		}
	return NULL;
}

static outcome other_netlink_protocols_are_closed(void)
{
	for (unsigned long protocol = 1; protocol < 32; protocol++)
		for (int high = 0; high < 2; high++)
			if (!answers(syscall(SYS_socket, AF_NETLINK | (high ? HIGH : 0), SOCK_RAW,
					     protocol | (high ? HIGH : 0)),
				    EPROTONOSUPPORT))
				return not_so("protocol %lu: %s", protocol, strerror(errno));
	return NULL;
}

static outcome other_internet_protocols_are_closed(void)
{
	static const struct {
		int type, protocol;
	} tries[] = { { SOCK_STREAM, 132 }, { SOCK_SEQPACKET, 132 }, { SOCK_STREAM, 262 },
		{ 6, 33 }, { 6, 0 }, { SOCK_DGRAM, 136 }, { SOCK_DGRAM, 115 }, { SOCK_RAW, 0 },
		{ SOCK_RAW, 1 }, { SOCK_RAW, 255 }, { SOCK_RAW, 6 }, { SOCK_PACKET, 0 },
		{ SOCK_STREAM, 256 } };
	for (size_t i = 0; i < LENGTH(tries); i++)
		for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET)
			for (int high = 0; high < 2; high++)
				if (syscall(SYS_socket, family, tries[i].type | (high ? HIGH : 0),
					    tries[i].protocol | (high ? HIGH : 0)) >= 0)
					return not_so("family %d type %d protocol %d", family,
						tries[i].type, tries[i].protocol);
	return NULL;
}

static outcome datagrams_are_not_unwrapped(void)
{
	/* UDP_ENCAP is an option of whichever level a kernel takes for UDP's. */
	for (int level = -1; level < 300; level++)
		for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET)
			for (int kind = 1; kind <= 6; kind++) {
				int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
				if (fd < 0)
					return not_so("no socket: %s", strerror(errno));
				if (setsockopt(fd, level, 100, &kind, sizeof(kind)) == 0)
					return not_so(
						"family %d level %d kind %d", family, level, kind);
				close(fd);
			}
	return NULL;
}

static outcome sockets_take_no_program(void)
{
	struct sock_filter code = { BPF_RET | BPF_K, 0, 0, 0xffff };
	struct sock_fprog program = { 1, &code };
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
	for (size_t i = 0; i < LENGTH(families); i++) {
		int fd = socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return not_so("no socket: %s", strerror(errno));
		if (!answers(
			    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)),
			    EPERM) ||
			!answers(setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
					 sizeof(program)),
				EPERM))
			return not_so("family %d: %s", families[i], strerror(errno));
		close(fd);
	}
	return NULL;
}

static outcome no_out_of_band_data(void)
{
	int pair[2];
	char byte = 'x';
	struct iovec part = { &byte, 1 };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return not_so("socketpair: %s", strerror(errno));
	if (!answers(send(pair[0], &byte, 1, MSG_OOB), EOPNOTSUPP) ||
		!answers(sendmsg(pair[0], &message.msg_hdr, MSG_OOB), EOPNOTSUPP) ||
		!answers(sendmmsg(pair[0], &message, 1, MSG_OOB), EOPNOTSUPP))
		return not_so("sent: %s", strerror(errno));
	/* The flags in a message are for the answer; the kernel must not take them for a wish. */
	message.msg_hdr.msg_flags = MSG_OOB;
	if (sendmsg(pair[0], &message.msg_hdr, 0) != 1 || sendmmsg(pair[0], &message, 1, 0) != 1)
		return not_so("not sent: %s", strerror(errno));
	for (int i = 0; i < 2; i++)
		if (recv(pair[1], &byte, 1, MSG_DONTWAIT) != 1)
			return not_so("didn't arrive in band: %s", strerror(errno));
	return NULL;
}

static outcome only_loopback_is_there(void)
{
	char data[4096];
	struct sockaddr_in away = {
		.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = { htonl(0x01010101) }
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&away, sizeof(away)) == 0 ||
		errno != ENETUNREACH)
		return not_so("1.1.1.1: %s", strerror(errno));
	if (read_file("/proc/net/dev", data, sizeof(data)) <= 0)
		return not_so("no /proc/net/dev");
	int lines = 0;
	for (const char *at = data; (at = strchr(at, '\n')); at++)
		lines++;
	return lines <= 3 ? NULL : not_so("more than lo: %s", data);
}

/* clang-format off */
static const struct probe probes[] = {
	DOES(other_socket_families_are_closed),
	DOES(other_netlink_protocols_are_closed),
	DOES(other_internet_protocols_are_closed),
	DOES(datagrams_are_not_unwrapped),
	DOES(sockets_take_no_program),
	DOES(no_out_of_band_data),
	DOES(only_loopback_is_there),
};
/* clang-format on */
const struct probe_list socket_probes = LIST(probes);
