/* trace_spawns.c -- attacks the moment in which carrel-init starts a command: the new process
 * shares init's memory until it has executed the command. Seizes every process that appears, for as
 * long as standard input is open, and prints how many it met, and how many of those it held while
 * they were still carrel-init. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIDS 512 /* those of a young sandbox are below */

static int is_init(int pid)
{
	char path[64], name[32] = "";
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, name, sizeof(name) - 1);
	close(fd);
	return len > 0 && !strncmp(name, "carrel-init", 11);
}

int main(void)
{
	unsigned refused = 0, held = 0, breaches = 0;
	struct pollfd input = { .fd = 0, .events = POLLIN };
	int self = getpid(), known[PIDS] = { 0 };
	puts("ready");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0)
		for (int pid = 2; pid < PIDS; pid++) {
			if (pid == self || known[pid])
				continue;
			if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0) {
				int was_init = is_init(pid);
				held++;
				/* One that has ended meanwhile is init's to reap only after this.
				 */
				if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0)
					waitpid(pid, NULL, __WALL);
				breaches += was_init && is_init(pid);
				ptrace(PTRACE_DETACH, pid, NULL, NULL);
				known[pid] = 1;
			} else if (errno == EPERM)
				refused += is_init(pid);
		}
	printf("refused %u held %u breaches %u\n", refused, held, breaches);
	return 0;
}
