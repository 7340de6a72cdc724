#include "sandbox/init/connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "sandbox/init/sys.h"

long connect_inside(unsigned port, bool to_ipv6)
{
	/* One for both: family and port of the two lie in the same place. */
	union {
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} address = { 0 };
	int family = to_ipv6 ? AF_INET6 : AF_INET;
	address.ipv4.sin_family = (sa_family_t)family;
	address.ipv4.sin_port = (in_port_t)(port << 8 | port >> 8); /* network order */
	if (to_ipv6)
		address.ipv6.sin6_addr.s6_addr[15] = 1;
	else
		address.ipv4.sin_addr.s_addr = 0x0100007f;
	long fd = SYS(socket, family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return fd;
	long result =
		SYS(connect, fd, &address, to_ipv6 ? sizeof address.ipv6 : sizeof address.ipv4);
	if (result < 0 && result != -EINPROGRESS) {
		SYS(close, fd, 0, 0);
		return result;
	}
	return fd;
}
