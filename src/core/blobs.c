#include "core/blobs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/internal.h"

enum { FD_DATA, FD_ANSWER, FD_COUNT };
const struct job_kind blob_job_kind = { .type = LAUNCH_BLOB,
	.most = 8,
	.fd_count = FD_COUNT,
	.answer = FD_ANSWER,
	.handed_over = FD_DATA,
	.named = 1,
	.noun = "the operation on object" };

/* Only what the launcher accepts: it ends a core that says anything else. */
static int prepare(struct core_job *job, const struct blob_order *order, struct error *err)
{
	enum blob_verb verb;
	const char *key;
	struct blob_words words;
	blob_words_write(order->verb, arena_text(&job->arena, order->key), &order->words,
		&job->arena, &job->strings);
	if (blob_words_read(job->strings.items, job->strings.count, &verb, &key, &words, err))
		return -1;
	job->fds[FD_DATA] = order->data >= 0 ? fcntl(order->data, F_DUPFD_CLOEXEC, 3)
					     : open("/dev/null", O_RDWR | O_CLOEXEC);
	job->fds[FD_ANSWER] = memfd_create("answer", MFD_CLOEXEC);
	if (job->fds[FD_DATA] < 0 || job->fds[FD_ANSWER] < 0)
		return fail_errno(err, "open the files of an operation on the blob store");
	return 0;
}

struct blob_order blob_order_make(enum blob_verb verb, const char *key, const char *request_id,
	const struct cancelable *owner)
{
	return (struct blob_order){ .verb = verb,
		.key = key,
		.words = blob_words_none(),
		.data = -1,
		.request_id = request_id,
		.owner = owner };
}

struct core_job *blob_job_start(
	struct core *core, const struct blob_order *order, job_fn *done, void *ctx)
{
	struct core_job *job = job_new(&core->blobs, order->request_id);
	job->owner = order->owner;
	prepare(job, order, &job->failure);
	job_start(job, done, ctx);
	return job;
}
