#include "core/packages/build_progress.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/internal.h"
#include "format/text/json_read.h"

#define LINE_MAX_BYTES 4096 /* of progress; an event that lists packages may be longer */
#define EVENT_MS 1000
#define STAGES_MAX 64
#define LAST_READS 32 /* more than a pipe holds */

struct build_progress {
	struct core_workspace *w;
	int fd;
	char request_id[ID_LEN + 1];
	char line[LINE_MAX_BYTES];
	size_t len;
	bool is_too_long; /* the line that is being read: it is passed over */
	char stage[BUILD_STAGE_SIZE];
	unsigned stages;
	uint64_t told_ms;
};

bool build_stage_read(struct str line, struct build_stage *stage)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *value;
	struct error ignored;
	if (json_read(line, &arena, &value, &ignored))
		return false;
	const char *name = json_member_text(value, "event");
	*stage = (struct build_stage){ 0 };
	if (!name || !name[0] || strlen(name) >= sizeof stage->name ||
		strspn(name, "abcdefghijklmnopqrstuvwxyz_") != strlen(name) ||
		!json_member_u64(value, "packages_done", &stage->done) ||
		!json_member_u64(value, "packages", &stage->total))
		return false;
	json_member_u64(value, "bytes", &stage->bytes);
	str_copy(stage->name, sizeof stage->name, name);
	return true;
}

static bool is_due(struct build_progress *progress, const struct build_stage *stage)
{
	uint64_t now_ms = clock_monotonic_ms();
	bool is_new = strcmp(progress->stage, stage->name) != 0;
	if (is_new ? progress->stages == STAGES_MAX : now_ms - progress->told_ms < EVENT_MS)
		return false;
	progress->stages += is_new;
	progress->told_ms = now_ms;
	str_copy(progress->stage, sizeof progress->stage, stage->name);
	return true;
}

static void take_line(struct build_progress *progress, struct str line)
{
	const struct workspace *model = &progress->w->model;
	struct journal *journal = &progress->w->core->journal;
	struct build_stage stage;
	char done[24], total[24], bytes[24];
	if (!journal->listeners || !build_stage_read(line, &stage) || !is_due(progress, &stage))
		return;
	str_format(done, sizeof done, "%" PRIu64, stage.done);
	str_format(total, sizeof total, "%" PRIu64, stage.total);
	str_format(bytes, sizeof bytes, "%" PRIu64, stage.bytes);
	journal_emit(journal, "environment.progress", model->id, model->name, "stage", stage.name,
		"#packages_done", done, "#packages", total, "#bytes", bytes, "request_id",
		progress->request_id, NULL);
}

static void take(struct build_progress *progress, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] != '\n') {
			progress->is_too_long |= progress->len == sizeof progress->line;
			if (!progress->is_too_long)
				progress->line[progress->len++] = data[i];
			continue;
		}
		if (!progress->is_too_long)
			take_line(progress, (struct str){ progress->line, progress->len });
		progress->len = 0;
		progress->is_too_long = false;
	}
}

/* False: there is nothing more, now or for good. */
static bool read_some(struct build_progress *progress, bool *has_ended)
{
	char data[4096];
	ssize_t len = read(progress->fd, data, sizeof data);
	*has_ended = len == 0;
	if (len > 0)
		take(progress, data, (size_t)len);
	return len > 0;
}

static void on_readable(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	bool has_ended;
	read_some(ctx, &has_ended);
	if (has_ended)
		loop_unwatch(loop, fd);
}

int build_progress_open(struct core_workspace *w, const char *request_id,
	struct build_progress **out, int *writer, struct error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return fail_errno(err, "make a pipe");
	auto_close int reading = ends[0], writing = ends[1];
	if (fd_set_nonblocking(reading))
		return fail_errno(err, "prepare a pipe");
	struct build_progress *progress = xzalloc(sizeof *progress);
	*progress = (struct build_progress){ .w = w, .fd = reading };
	str_copy(progress->request_id, sizeof progress->request_id, request_id);
	if (loop_watch(w->core->loop, reading, EPOLLIN, on_readable, progress, err)) {
		free(progress);
		return -1;
	}
	*out = progress;
	*writer = take_fd(&writing);
	take_fd(&reading);
	return 0;
}

void build_progress_close(struct build_progress *progress)
{
	bool has_ended;
	if (!progress)
		return;
	for (int i = 0; i < LAST_READS && read_some(progress, &has_ended); i++)
		;
	loop_unwatch(progress->w->core->loop, progress->fd);
	fd_close(&progress->fd);
	free(progress);
}
