/* probe_works.c -- a few things that must work. See probe.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probe.h"

static outcome works_memfd_exec(void)
{
	char data[65536];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
	    to = memfd_create("x", MFD_CLOEXEC);
	for (ssize_t len; (len = read(from, data, sizeof(data))) > 0;)
		if (write(to, data, (size_t)len) != len)
			return not_so("memfd: %s", strerror(errno));
	pid_t child = fork();
	if (child == 0) {
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
		syscall(SYS_execveat, to, "", (char *[]){ (char *)"probe", (char *)"--list", NULL },
			NULL, AT_EMPTY_PATH);
		_exit(1);
	}
	int status = -1;
	waitpid(child, &status, 0);
	return status == 0 ? NULL : not_so("wait status %#x", status);
}

static void *thread_main(void *arg)
{
	*(int *)arg = 1;
	return arg;
}

static outcome works_threads(void)
{
	int ran = 0;
	pthread_t thread;
	int error = pthread_create(&thread, NULL, thread_main, &ran);
	if (error != 0 || pthread_join(thread, NULL) != 0 || !ran)
		return not_so("pthread_create: %s", strerror(error));
	return NULL;
}

static outcome works_loopback(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(here);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    client = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(server, (struct sockaddr *)&here, len) != 0 || listen(server, 1) != 0 ||
		getsockname(server, (struct sockaddr *)&here, &len) != 0 ||
		connect(client, (struct sockaddr *)&here, len) != 0)
		return not_so("%s", strerror(errno));
	return NULL;
}

static outcome works_sockets(void)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0 ||
		socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) < 0 ||
		socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP) < 0 ||
		socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) < 0)
		return not_so("%s", strerror(errno));
	return NULL;
}

static outcome works_modes(void)
{
	if (mkfifo("fifo", 0600) != 0 || mkdir("d", 01777) != 0 || chmod("d", 0700) != 0)
		return not_so("%s", strerror(errno));
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, 0755) != 0 || ioctl(fd, FIONREAD, &(int){ 0 }) != 0)
		return not_so("O_TMPFILE: %s", strerror(errno));
	/* Without O_CREAT the mode means nothing. */
	if (syscall(SYS_openat, AT_FDCWD, "fifo", O_RDONLY | O_NONBLOCK, 06755) < 0)
		return not_so("openat: %s", strerror(errno));
	return rmdir("d") || unlink("fifo") ? not_so("%s", strerror(errno)) : NULL;
}

static outcome works_personality(void)
{
	static const long personas[] = { 0xffffffff, 0x0040000 /* ADDR_NO_RANDOMIZE */, 0 };
	for (size_t i = 0; i < LENGTH(personas); i++)
		if (syscall(SYS_personality, personas[i]) < 0)
			return not_so("%#lx: %s", personas[i], strerror(errno));
	return NULL;
}

/* clang-format off */
static const struct probe probes[] = {
	DOES(works_memfd_exec),
	DOES(works_threads),
	DOES(works_loopback),
	DOES(works_sockets),
	DOES(works_modes),
	DOES(works_personality),
};
/* clang-format on */
const struct probe_list works_probes = LIST(probes);
