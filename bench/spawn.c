/* spawn.c -- the stop-watch of bench/run: a resident process that starts commands and times them.
 * Request, one line on stdin: the words of a command, separated by tabs; the first is an absolute
 * path. Answer, one line on stdout: "<monotonic ns before> <monotonic ns after> <wait status>".
 * 1. Between the two readings of the clock there is one vfork, one exec and one wait4, and nothing
 * else: no shell, no look-up in PATH, no descriptor to set up (0, 1 and 2 of this process are
 * /dev/null, all others close on exec unless the caller left one open on purpose).
 * 2. The environment, the directory, the ids and the namespaces are those this process was started
 * with, so they are the same for all its commands. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_LINE = 64 * 1024,
	MAX_WORDS = 512,
};

extern char **environ;

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Cuts `line` into words in place; 0 when there is no word or there are too many. */
static int split(char *line, char *words[MAX_WORDS + 1])
{
	int count = 0;
	char *rest = line;

	for (char *word; (word = strsep(&rest, "\t\n")) != NULL;) {
		if (*word == '\0')
			continue;
		if (count == MAX_WORDS)
			return 0;
		words[count++] = word;
	}
	words[count] = NULL;
	return count;
}

/* Runs the command once. -1: it could not be started or waited for. */
static int time_command(char *words[], int64_t *before, int64_t *after, int *status)
{
	struct rusage usage;

	*before = now_ns();
	pid_t pid = vfork();
	if (pid == 0) {
		execve(words[0], words, environ);
		_exit(127);
	}
	if (pid < 0)
		return -1;
	while (wait4(pid, status, 0, &usage) < 0)
		if (errno != EINTR)
			return -1;
	*after = now_ns();
	return 0;
}

/* Takes descriptor `fd` away from the commands, which get /dev/null there, and returns it as a
 * stream. */
static FILE *keep_stream(int fd, const char *mode)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	if (null < 0 || kept < 0 || dup2(null, fd) < 0)
		return NULL;
	close(null);
	return fdopen(kept, mode);
}

int main(void)
{
	static char line[MAX_LINE];
	static char *words[MAX_WORDS + 1];
	FILE *requests = keep_stream(0, "r");
	FILE *answers = keep_stream(1, "w");
	FILE *complaints = keep_stream(2, "w");

	if (!requests || !answers || !complaints)
		return 1;
	while (fgets(line, sizeof(line), requests)) {
		int64_t before, after;
		int status;

		if (!strchr(line, '\n') || !split(line, words)) {
			fprintf(complaints, "spawn: a request is empty or too long\n");
			return 1;
		}
		if (time_command(words, &before, &after, &status) < 0) {
			fprintf(complaints, "spawn: %s: %s\n", words[0], strerror(errno));
			return 1;
		}
		fprintf(answers, "%lld %lld %d\n", (long long)before, (long long)after, status);
		if (fflush(answers) != 0)
			return 1;
	}
	return 0;
}
