/* apply.c -- changes of another workspace into this one: trees/stacks/bundle.h does it, here is
 * where. */
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "sandbox/files/server.h"
#include "trees/stacks/bundle.h"

#define ANSWER_MAX ((size_t)6 << 20) /* bytes: core takes no more than 8 MB */
#define UNDO_TRIES 600
#define UNDO_PAUSE_NS 100000000

/* Before anything is applied: an answer that core doesn't take would hide what was done. */
static int check_answer(const struct bundle *bundle, struct error *err)
{
	size_t size = 0;
	for (size_t i = 0; i < bundle->changes.count; i++) {
		const struct bundle_change *change = &bundle->changes.items[i];
		size += sizeof(struct file_entry) + strlen(change->path) +
			(change->reason ? strlen(change->reason) : 0);
	}
	return size > ANSWER_MAX ? fail_hint(err, ERR_LIMIT, "take fewer paths at a time",
					   "the names of changed files are too long")
				 : 0;
}

static int answer(struct serve_job *job, const struct bundle *bundle, struct error *err)
{
	for (size_t i = 0; i < bundle->changes.count; i++) {
		const struct bundle_change *change = &bundle->changes.items[i];
		const struct file_entry info = { .mode = change->after ? change->after
								       : change->before,
			.reserved = FILE_CHANGE(change->change, change->result) };
		if (serve_add_entry(job, change->path, &info, change->reason, err) < 0)
			return -1;
	}
	return 0;
}

static int work(
	struct serve_job *job, struct bundle *bundle, int target, int area, struct error *err)
{
	const struct apply where = { .target = target,
		.journal = area,
		.name = "/workspace",
		.uid = (uid_t)-1,
		.gid = (gid_t)-1 };
	if (bundle_read(bundle, job->fd, area, job->request.limit, NULL, err) < 0 ||
		bundle_judge(bundle, target, err) < 0 || check_answer(bundle, err) < 0)
		return -1;
	if (job->request.flags & FILE_DRY || bundle->results[BUNDLE_CONFLICT])
		return answer(job, bundle, err);
	/* Without core nobody would know of it. */
	if (serve_is_canceled(job))
		return fail(err, ERR_CANCELED, "the request was canceled");
	if (bundle_apply(bundle, &where, err) < 0)
		return -1;
	fault_point("agent_applied");
	job->reply.flags |= FILE_APPLIED;
	return answer(job, bundle, err);
}

int serve_apply(struct serve_job *job, struct error *err)
{
	auto_close int target = open(job->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int area = -1;
	struct bundle bundle;
	struct error ignored;
	if (!job->text || strchr(job->text, '/') || job->fd < 0)
		return fail(err, ERR_INVALID, "no name for a directory to unpack in");
	if (target < 0)
		return fail_errno(err, "open '%s'", job->path);
	if (serve_make_stage(target, job->text, err) < 0)
		return -1;
	area = fd_open_directory(target, job->text);
	if (area < 0 || flock(area, LOCK_EX | LOCK_NB) < 0)
		return fail_errno(err, "open the directory to unpack in");
	bundle_init(&bundle);
	int failed = work(job, &bundle, target, area, err);
	job->reply.bytes = failed ? 0 : bundle.bytes;
	bundle_done(&bundle);
	path_remove_tree(target, job->text, &ignored);
	return failed;
}

int serve_undo_apply(int above, const char *name, struct error *err)
{
	const struct timespec pause = { .tv_nsec = UNDO_PAUSE_NS };
	auto_close int area = fd_open_directory(above, name);
	int tries = 0;
	if (area < 0)
		return 0; /* a file of a COMMIT */
	/* The server that works there may not have noticed yet that core is gone. It ends by
	 * itself, and takes the journal with it. */
	while (flock(area, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || ++tries > UNDO_TRIES)
			return fail_errno(err, "lock '%s'", name);
		nanosleep(&pause, NULL);
	}
	return apply_recover(above, area, "/workspace", err);
}
