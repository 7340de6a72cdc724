#include "core/uploads.h"

#include <fcntl.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/blobs.h"
#include "core/internal.h"

#define PIPE_BYTES (1 << 20)

struct upload {
	/* Open until the process has ended, unless all was written: its end would be taken for the
	 * end of the object. */
	int to;
	bool is_canceled;
	struct share share;
	struct core_job *storing;
	job_fn *done;
	void *ctx;
};

static void on_stored(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct upload *upload = ctx;
	struct error why;
	if (err && err->code == ERR_CORRUPT) { /* the client said another hash */
		why = *err;
		why.code = ERR_INVALID;
		err = &why;
	}
	if (!upload->is_canceled)
		upload->done(upload->ctx, answer, err);
	fd_close(&upload->to);
	share_release(&upload->share);
	free(upload);
}

int upload_start(struct core *core, const char *key, bool is_new, const char *sha256,
	const struct request *request, job_fn *done, void *ctx, struct upload **out,
	struct error *err)
{
	char caller[PRINCIPAL_NAME_SIZE];
	int ends[2];
	if (shares_check(&core->uploads, access_caller(request, caller), 1, err))
		return -1;
	if (pipe2(ends, O_CLOEXEC))
		return fail_errno(err, "make a pipe");
	auto_close int from = ends[0], to = ends[1];
	if (fd_set_nonblocking(to))
		return fail_errno(err, "make a pipe");
	fcntl(to, F_SETPIPE_SZ, PIPE_BYTES);
	struct upload *upload = xzalloc(sizeof *upload);
	*upload = (struct upload){ .to = take_fd(&to), .done = done, .ctx = ctx };
	struct blob_order order = { .verb = BLOB_PUT,
		.key = key,
		.words = blob_words_none(),
		.data = from,
		.request_id = request->id };
	order.words.only_new = is_new;
	order.words.sha256 = sha256;
	share_join(&core->uploads, access_caller(request, caller), &upload->share);
	share_add(&upload->share, 1);
	upload->storing = blob_job_start(core, &order, on_stored, upload);
	*out = upload;
	return 0;
}

int upload_fd(const struct upload *upload)
{
	return upload->to;
}

void upload_end(struct upload *upload)
{
	fd_close(&upload->to);
}

void upload_cancel(struct upload *upload)
{
	upload->is_canceled = true;
	job_cancel(upload->storing);
}
