/* stand_in.h -- a runner for tests of src/envs: the command is run as it is, without a sandbox.
 * What it would see at /env or at a bind's target it gets by its own path: written over in
 * arguments and environment. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "envs/runner.h"

struct stand_in {
	struct arena *arena;
	int runs;	    /* how many jobs were run */
	bool had_network;   /* the last one had forward set */
	const char *refuse; /* a job with this text in an argument isn't run: it exits with 1 */
	bool is_canceled;   /* none is run: somebody wants an end */
};

static inline const char *stand_in_replace(
	struct arena *arena, const char *text, const char *from, const char *to)
{
	for (const char *at = text; from && to && (at = strstr(at, from));) {
		char after = at[strlen(from)];
		bool begins = at == text || strchr("=:\n ", at[-1]);
		if (begins && (after == '\0' || strchr("/:\n ", after))) {
			const char *head = arena_bytes(arena, text, (size_t)(at - text));
			const char *joined =
				arena_printf(arena, "%s%s%s", head, to, at + strlen(from));
			at = joined + strlen(head) + strlen(to);
			text = joined;
		} else {
			at += strlen(from);
		}
	}
	return text;
}

static inline char *stand_in_word(struct arena *arena, const struct job *job, const char *text)
{
	const char *word = text;

	/* Scripts are ours and name no such path. */
	if (strchr(text, '\n') && strstr(text, "import "))
		return arena_text(arena, text);
	for (size_t i = 0; i < job->binds.count; i++)
		word = stand_in_replace(
			arena, word, job->binds.items[i].target, job->binds.items[i].source);
	return arena_text(arena, stand_in_replace(arena, word, "/env", job->stage));
}

static inline void stand_in_child(const struct job *job, struct arena *arena, int out, int errors)
{
	VEC(char *) argv = { 0 };

	for (size_t i = 0; job->argv[i]; i++)
		vec_push(arena, &argv, stand_in_word(arena, job, job->argv[i]));
	vec_push(arena, &argv, NULL);
	for (size_t i = 0; i < job->env.count; i++)
		putenv(stand_in_word(arena, job, job->env.items[i]));
	dup2(out, 1);
	dup2(errors, 2);
	if (chdir(job->cwd ? stand_in_word(arena, job, job->cwd) : "/") == 0)
		execv(argv.items[0], argv.items);
	_exit(127);
}

static inline int stand_in_run(void *ctx, const struct job *job, struct buf *out,
	struct buf *errors, struct job_result *result, struct error *err)
{
	struct stand_in *self = ctx;
	struct buf *bufs[2] = { out, errors };
	int pipes[2][2], status, open_count = 2;

	self->runs++;
	self->had_network = job->forward;
	*result =
		(struct job_result){ .reason = self->is_canceled ? REASON_CANCELED : REASON_EXITED,
			.exit_code = 1 };
	if (self->is_canceled)
		return 0;
	for (size_t i = 0; self->refuse && job->argv[i]; i++)
		if (strstr(job->argv[i], self->refuse)) {
			buf_text(errors, "refused by the test\n");
			return 0;
		}
	if (pipe2(pipes[0], O_CLOEXEC) < 0 || pipe2(pipes[1], O_CLOEXEC) < 0)
		return fail_errno(err, "pipe");
	pid_t pid = fork();
	if (pid == 0)
		stand_in_child(job, self->arena, pipes[0][1], pipes[1][1]);
	close(pipes[0][1]);
	close(pipes[1][1]);
	struct pollfd fds[2] = { { pipes[0][0], POLLIN, 0 }, { pipes[1][0], POLLIN, 0 } };
	while (open_count > 0 && poll(fds, 2, -1) >= 0)
		for (int i = 0; i < 2; i++) {
			char data[4096];
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			ssize_t len = read(fds[i].fd, data, sizeof data);
			if (len > 0)
				buf_append(bufs[i], data, (size_t)len);
			else
				open_count--, fds[i].fd = -1;
		}
	close(pipes[0][0]);
	close(pipes[1][0]);
	waitpid(pid, &status, 0);
	result->reason = WIFEXITED(status) ? REASON_EXITED : REASON_SIGNALED;
	result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	return 0;
}
