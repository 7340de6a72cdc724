/* preload.c -- lets a load generator that speaks TCP only (wrk) reach a unix socket: loaded into
 * it, every connection goes to the path in BENCH_SOCKET. Both servers that are compared are reached
 * this way. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

__attribute__((visibility("default"))) int socket(int domain, int type, int protocol)
{
	int (*real)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	bool is_tcp = domain == AF_INET && (type & 0xf) == SOCK_STREAM;
	return is_tcp ? real(AF_UNIX, type, 0) : real(domain, type, protocol);
}

__attribute__((visibility("default"))) int connect(
	int fd, const struct sockaddr *address, socklen_t len)
{
	int (*real)(int, const struct sockaddr *, socklen_t) =
		(int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
	struct sockaddr_un own = { .sun_family = AF_UNIX };
	const char *path = getenv("BENCH_SOCKET");
	if (!path || address->sa_family != AF_INET || strlen(path) >= sizeof own.sun_path)
		return real(fd, address, len);
	memcpy(own.sun_path, path, strlen(path));
	return real(fd, (struct sockaddr *)&own, sizeof own);
}
