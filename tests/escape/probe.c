/* probe.c -- run INSIDE a sandbox: tries what must not work, and a few things that must.
 *
 *   probe all | NAME...   one line each: `ok NAME` or `FAIL NAME detail`; exit 1 when one failed
 *   probe --list          the names
 *
 * Each probe runs in a child of its own. What is told by one call is in probe_calls.c; the rest is
 * in a file for each part of the sandbox. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probe.h"

static const struct probe_list *const lists[] = { &identity_probes, &process_probes, &files_probes,
	&proc_probes, &kernel_probes, &ptrace_probes, &socket_probes, &works_probes,
	&calls_probes };

outcome not_so(const char *fmt, ...)
{
	static char text[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return text;
}

ssize_t read_file(const char *path, char *data, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	size_t len = 0;
	ssize_t got = 0;
	while (len < size - 1 && (got = read(fd, data + len, size - 1 - len)) > 0)
		len += (size_t)got;
	close(fd);
	data[len] = '\0';
	return got < 0 ? -1 : (ssize_t)len;
}

bool answers(long result, int error)
{
	return result == -1 && errno == error;
}

/* /var/tmp may lead to /tmp; programs and layers are mounted in /run when a policy holds. */
static bool is_of_every_root(const char *path, const struct dirent *entry)
{
	return (entry->d_type == DT_LNK && !strcmp(entry->d_name, "tmp")) ||
	       (!strcmp(path, "/run") &&
		       (!strcmp(entry->d_name, "programs") || !strcmp(entry->d_name, "layers")));
}

outcome directory_is_empty_or_absent(const char *path)
{
	DIR *dir = opendir(path);
	if (!dir)
		return NULL;
	for (struct dirent *entry; (entry = readdir(dir));)
		if (entry->d_name[0] != '.' && !is_of_every_root(path, entry))
			return not_so("%s/%s", path, entry->d_name);
	closedir(dir);
	return NULL;
}

/* Twice: the second time the upper half of the 32-bit arguments is filled. */
static outcome call(const struct probe *probe)
{
	long a[6];
	for (int high = 0; high < 2; high++) {
		for (int i = 0; i < 6; i++)
			a[i] = probe->args[i] ^ (long)(high && probe->narrow >> i & 1 ? HIGH : 0);
		long result = syscall(probe->number, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (result != -1)
			return not_so(
				"was let through%s: %ld", high ? " with high bits" : "", result);
		if (errno != probe->error)
			return not_so(
				"answered%s: %s", high ? " with high bits" : "", strerror(errno));
	}
	return NULL;
}

/* In a child, whose answer comes through a pipe. Returns whether all was as it should be. */
static bool run(const struct probe *probe)
{
	char answer[512] = "";
	int ends[2], status;
	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	pid_t child = fork();
	if (child == 0) {
		/* The descriptor 3 for the answer, and no other. */
		int to = dup2(ends[1], ends[1] == 3 ? 3 : 4);
		if (to == 4) {
			dup2(4, 3);
			close(4);
		}
		alarm(20);
		outcome out = probe->function ? probe->function() : call(probe);
		if (out && write(3, out, strlen(out)) < 0)
			_exit(3);
		_exit(out ? 1 : 0);
	}
	close(ends[1]);
	ssize_t len = read(ends[0], answer, sizeof(answer) - 1);
	close(ends[0]);
	waitpid(child, &status, 0);
	if (status != 0 && len <= 0)
		snprintf(answer, sizeof(answer), "ended with wait status %#x", status);
	for (char *at = answer; *at; at++)
		if (*at < ' ')
			*at = ' ';
	printf(status == 0 ? "ok %s\n" : "FAIL %s %s\n", probe->name, answer);
	return status == 0;
}

int main(int argc, char **argv)
{
	bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
	bool all = argc == 2 && strcmp(argv[1], "all") == 0, fine = true;
	int found = 0;
	for (size_t l = 0; l < LENGTH(lists); l++)
		for (size_t i = 0; i < lists[l]->count; i++) {
			const struct probe *probe = &lists[l]->items[i];
			bool chosen = all;
			for (int n = 1; n < argc; n++)
				chosen |= strcmp(argv[n], probe->name) == 0;
			if (list)
				puts(probe->name);
			if (!chosen)
				continue;
			found++;
			fine &= run(probe);
		}
	if (!all && !list && (argc < 2 || found != argc - 1)) {
		fprintf(stderr, "usage: probe all | NAME... | --list\n");
		return 2;
	}
	return fine ? 0 : 1;
}
