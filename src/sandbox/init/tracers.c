#include "sandbox/init/tracers.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include "sandbox/init/sys.h"

static long open_proc(int pid, const char *name, int flags)
{
	char path[40] = "/proc/", digits[12];
	unsigned count = 0, len = sizeof "/proc/" - 1;
	for (; pid; pid /= 10)
		digits[count++] = (char)('0' + pid % 10);
	while (count)
		path[len++] = digits[--count];
	path[len++] = '/';
	while ((path[len++] = *name++))
		;
	return SYS6(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | flags, 0, 0, 0);
}

/* The tracer of thread `tid` in this sandbox, or 0. The line of its status is found with the
 * newline before it, which the name of a process can't hold. */
static int find_tracer(int tid)
{
	static const char key[] = "\nTracerPid:\t";
	char text[1024];
	unsigned matched = 0;
	int tracer = 0;
	long fd = open_proc(tid, "status", 0);
	long len = fd < 0 ? fd : SYS(read, fd, text, sizeof text);
	if (fd >= 0)
		SYS(close, fd, 0, 0);
	for (long i = 0; i < len; i++) {
		if (matched == sizeof key - 1) {
			if (text[i] < '0' || text[i] > '9')
				break;
			tracer = tracer * 10 + (text[i] - '0');
		} else {
			matched = text[i] == key[matched] ? matched + 1 : text[i] == '\n';
		}
	}
	return tracer;
}

struct entry { /* of getdents64 */
	uint64_t inode;
	int64_t next;
	uint16_t len;
	uint8_t type;
	char name[];
};

void tracers_kill(int pid, char *list, size_t size)
{
	long len, fd = open_proc(pid, "task", O_DIRECTORY);
	if (fd < 0)
		return;
	while ((len = SYS(getdents64, fd, list, size)) > 0)
		for (long at = 0; at < len;) {
			const struct entry *entry = (const struct entry *)(list + at);
			int tid = 0;
			for (const char *c = entry->name; *c >= '0' && *c <= '9'; c++)
				tid = tid * 10 + (*c - '0');
			int tracer = tid ? find_tracer(tid) : 0;
			if (tracer > 1)
				SYS(kill, tracer, SIGKILL, 0);
			at += entry->len;
		}
	SYS(close, fd, 0, 0);
}
