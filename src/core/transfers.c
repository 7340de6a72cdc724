#include "core/transfers.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/internal.h"

#define PIPE_BYTES (1 << 20)
#define ANSWER_MAX ((size_t)16 << 20)
#define ROOM_KEPT ((uint64_t)256 << 20) /* on the disk, for others */

enum side { TREE, BLOB, SIDES };
struct transfer {
	struct core *core;
	struct arena arena;
	bool is_put;
	unsigned running;
	struct json_value *answers[SIDES];
	struct error errs[SIDES]; /* code ERR_NONE: none */
	transfer_fn *done;
	void *ctx;
};

/* Of two failures the one that caused the other: a process that ends cuts the data, or breaks the
 * pipe, for the other one. */
static const struct error *reason_of(const struct transfer *transfer)
{
	const struct error *writer = &transfer->errs[transfer->is_put ? TREE : BLOB];
	const struct error *reader = &transfer->errs[transfer->is_put ? BLOB : TREE];
	if (!reader->code)
		return writer->code ? writer : NULL;
	bool is_cut = reader->code == ERR_CORRUPT && writer->code &&
		      !strstr(writer->text, strerror(EPIPE));
	return is_cut ? writer : reader;
}

static void finish(struct transfer *transfer)
{
	const struct error *err = reason_of(transfer);
	transfer->done(transfer->ctx, err ? NULL : transfer->answers[TREE],
		err ? NULL : transfer->answers[BLOB], err);
	arena_done(&transfer->arena);
	free(transfer);
}

/* An answer is the job's, and goes with it. */
static void on_ended(struct transfer *transfer, enum side side, const struct json_value *answer,
	const struct error *err)
{
	auto_buf struct buf text = buf_empty(ANSWER_MAX);
	struct json j = json_to(&text, false);
	if (err)
		transfer->errs[side] = *err;
	else {
		json_copy(&j, NULL, answer);
		json_finish(&j);
		json_read((struct str){ text.data, text.len }, &transfer->arena,
			&transfer->answers[side], &transfer->errs[side]);
	}
	if (--transfer->running == 0)
		finish(transfer);
}

static void on_tree(void *ctx, const struct json_value *answer, const struct error *err)
{
	on_ended(ctx, TREE, answer, err);
}

static void on_blob(void *ctx, const struct json_value *answer, const struct error *err)
{
	on_ended(ctx, BLOB, answer, err);
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct transfer *transfer = ctx;
	transfer->errs[TREE] = *err;
	finish(transfer);
}

void transfer_start(struct core *core, const struct tree_job_order *tree,
	const struct blob_order *blob, transfer_fn *done, void *ctx)
{
	struct transfer *transfer = xzalloc(sizeof *transfer);
	struct tree_job_order tree_order = *tree;
	struct blob_order blob_order = *blob;
	struct error err;
	int ends[2];
	*transfer = (struct transfer){ .core = core,
		.is_put = blob->verb == BLOB_PUT,
		.running = SIDES,
		.done = done,
		.ctx = ctx };
	if (pipe2(ends, O_CLOEXEC)) {
		fail_errno(&err, "make a pipe");
		core_later(core, on_refused, transfer, NULL, &err);
		return;
	}
	auto_close int from = ends[0], to = ends[1];
	fcntl(to, F_SETPIPE_SZ, PIPE_BYTES);
	*(transfer->is_put ? &tree_order.output : &tree_order.input) = transfer->is_put ? to : from;
	blob_order.data = transfer->is_put ? from : to;
	tree_job_start(core, &tree_order, on_tree, transfer);
	blob_job_start(core, &blob_order, on_blob, transfer);
}

uint64_t transfer_room(const struct core *core)
{
	struct statvfs fs;
	if (fstatvfs(core->envs.layers.dir, &fs))
		return 0;
	uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
	return room > 2 * ROOM_KEPT ? room - ROOM_KEPT : room / 2;
}
