#include <fcntl.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/access/audit_records.h"
#include "core/access/policies.h"
#include "core/files/tree_archive_internal.h"

/* Out:	server → pipe → (zstd →) caller.	In: caller → pipe → zstd → pipe → server.
 * The first pipe is the one at the server, the second the one at the caller. */
struct archive_job {
	struct core_workspace *w; /* held */
	struct archive_listener listener;
	bool is_in, is_canceled;
	enum archive_format format;
	char path[FILE_PATH_MAX];
	char stage[FILES_STAGE_SIZE]; /* in: name of the directory for unpacking; "": none */
	struct file_call *call;	      /* NULL: the server has replied */
	struct zstd zstd;
	/* Core's end of the first pipe, or -1. Out: the reading end, until it is handed on. In: the
	 * writing end, kept open until zstd has succeeded, so that the server sees no end of file
	 * before. */
	int server_pipe;
	bool has_failed;
	struct error err;
};

static struct archive_job *new_job(
	struct core_workspace *w, const struct archive_listener *listener, bool is_in)
{
	struct archive_job *job = xzalloc(sizeof *job);

	*job = (struct archive_job){
		.w = w, .listener = *listener, .is_in = is_in, .server_pipe = -1
	};
	core_hold(w);
	return job;
}

static void note_failure(struct archive_job *job, const struct error *err)
{
	if (!job->has_failed && err)
		job->err = *err;
	job->has_failed |= err != NULL;
}

/* Reports the end and frees the job, once both the server and zstd are done. */
static void end_job(struct archive_job *job)
{
	struct core_workspace *w = job->w;

	if (job->call || job->zstd.child.is_running)
		return;
	fd_close(&job->server_pipe);
	if (!job->is_canceled)
		job->listener.done(job->listener.ctx, job->has_failed ? &job->err : NULL);
	free(job);
	core_release(w);
}

void archive_cancel(struct archive_job *job)
{
	if (!job)
		return;
	job->is_canceled = true;
	if (job->call)
		file_cancel(job->call);
	zstd_stop(&job->zstd);
	fd_close(&job->server_pipe);
	if (!job->call)
		end_job(job);
}

/* A pipe whose end `core_end` (0 reads, 1 writes; -1: none) doesn't block. */
static int open_pipe(int ends[2], int core_end, struct error *err)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_errno(err, "make a pipe");
	if (core_end >= 0 && fd_set_nonblocking(ends[core_end]) < 0) {
		fail_errno(err, "make a pipe");
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	/* A larger pipe needs fewer context switches; failure is harmless. */
	fcntl(ends[0], F_SETPIPE_SZ, (int)ARCHIVE_BUFFER * 2);
	return 0;
}

static void on_child(void *ctx, const struct error *err)
{
	struct archive_job *job = ctx;

	/* Cancel before closing the pipe: else the server might take the archive for complete. */
	if (err && job->is_in && job->call)
		file_cancel(job->call);
	/* EPIPE: the server has refused the archive and stopped reading; its reply has the reason.
	 */
	if (!err || err->sys_errno != EPIPE || !job->call)
		note_failure(job, err);
	fd_close(&job->server_pipe);
	end_job(job);
}

/* Starts zstd between the first pipe and a second one; *fd is the caller's end. */
static int start_child(struct archive_job *job, int *fd, struct error *err)
{
	int ends[2];

	if (open_pipe(ends, job->is_in ? 1 : 0, err) < 0)
		return -1;
	auto_close int callers = ends[job->is_in ? 1 : 0];
	auto_close int childs = ends[job->is_in ? 0 : 1];
	job->zstd = (struct zstd){ .compresses = !job->is_in,
		.from = job->is_in ? childs : job->server_pipe,
		.to = job->is_in ? job->server_pipe : childs,
		.done = on_child,
		.ctx = job };
	if (zstd_start(&job->zstd, job->w->core->loop, err) < 0)
		return -1;
	*fd = take_fd(&callers);
	if (!job->is_in)
		fd_close(&job->server_pipe);
	return 0;
}

static void on_begun(void *ctx)
{
	struct archive_job *job = ctx;
	struct error err;
	int fd = -1;

	if (job->is_canceled)
		return;
	if (!job->is_in && job->format == ARCHIVE_TAR) {
		fd = take_fd(&job->server_pipe);
	} else if (start_child(job, &fd, &err) < 0) {
		note_failure(job, &err);
		if (job->is_in)
			file_cancel(job->call);
		fd_close(&job->server_pipe); /* ends the server's work */
		return;
	}
	job->listener.begun(job->listener.ctx, fd);
}

static void on_answer(void *ctx, const struct file_answer *answer, const struct error *failed)
{
	struct archive_job *job = ctx;
	struct error err;

	job->call = NULL;
	if (failed) {
		err = *failed;
		if (err.sys_errno == EDQUOT)
			files_over_limit(job->w, &err);
		note_failure(job, &err);
	} else if (job->is_in) {
		uint64_t most = files_room(job->w); /* upper bound: the reply isn't trusted */
		files_charge(job->w, answer->reply.bytes < most ? answer->reply.bytes : most);
	}
	if (job->stage[0])
		files_forget_stage(
			job->w, job->stage, job->path, failed && failed->code == ERR_UNAVAILABLE);
	/* The server has refused the archive and reads no more of it. */
	if (job->is_in && failed)
		zstd_stop(&job->zstd);
	end_job(job);
}

static struct archive_job *refuse(struct archive_job *job, const struct error *err)
{
	job->call = file_refuse(job->w, err, on_answer, job);
	return job;
}

struct archive_job *archive_out(const struct request *request, struct core_workspace *w,
	const char *path, enum archive_format format, const struct archive_listener *listener)
{
	struct archive_job *job = new_job(w, listener, false);
	struct error err;
	int ends[2];

	job->format = format;
	if (files_enter(request, VERB_FILE_READ, w, &err) < 0 ||
		files_clean_path(path, job->path, &err) < 0 ||
		policies_judge_file(request, w, POLICY_READ, job->path, true, &err) ||
		open_pipe(ends, format == ARCHIVE_TAR ? 0 : -1, &err) < 0)
		return refuse(job, &err);
	const struct audit_actor actor = audit_actor(request);
	audit_file(w, &actor,
		&(struct audit_file){ .type = "file.read", .path = job->path, .what = "archive" });
	job->server_pipe = ends[0];
	struct file_ask ask = {
		.verb = FILE_PACK, .path = job->path, .fd = ends[1], .begun = on_begun
	};
	job->call = file_ask(w, &ask, on_answer, job);
	return job;
}

struct archive_job *archive_in(const struct request *request, struct core_workspace *w,
	const char *path, const struct archive_listener *listener)
{
	struct archive_job *job = new_job(w, listener, true);
	char stage[FILES_STAGE_SIZE];
	struct error err;
	int ends[2];

	files_make_stage(stage);
	if (files_enter(request, VERB_FILE_WRITE, w, &err) < 0 ||
		files_clean_path(path, job->path, &err) < 0 ||
		policies_judge_file(request, w, POLICY_WRITE, job->path, true, &err) ||
		files_note_stage(w, stage, job->path, &err) < 0)
		return refuse(job, &err);
	memcpy(job->stage, stage, sizeof stage);
	if (open_pipe(ends, -1, &err) < 0)
		return refuse(job, &err);
	const struct audit_actor actor = audit_actor(request);
	audit_file(w, &actor,
		&(struct audit_file){ .type = "file.write", .path = job->path, .what = "archive" });
	job->server_pipe = ends[1];
	struct file_ask ask = { .verb = FILE_UNPACK,
		.path = job->path,
		.text = job->stage,
		.fd = ends[0],
		.begun = on_begun };
	job->call = file_ask(w, &ask, on_answer, job);
	return job;
}
