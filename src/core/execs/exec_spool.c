/* exec_spool.c -- output of background execs: files that the commands write themselves, so that no
 * byte is lost when core is restarted (docs/design/0012).
 *
 * Their sizes have to be watched: inotify tells of writes, and is read now and then. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/walk.h"
#include "core/execs/internal.h"

#define KEPT_COUNT 256		    /* ended ones of a workspace, */
#define KEPT_BYTES (256ull << 20)   /* and their bytes; the oldest go */
#define KEPT_TEXTS_BYTES (8u << 20) /* of their arguments */
#define SLACK_BYTES (16ull << 20)
#define BLOCK_BYTES 4096
#define NAME_SIZE (ID_LEN + 5)
#define PATH_SIZE (32 + NAME_SIZE)

static const char *const endings[] = { "out", "err" };

static void name_of(const char *id, int stream, char name[NAME_SIZE])
{
	str_format(name, NAME_SIZE, "%s.%s", id, endings[stream]);
}

static void path_of(const struct core_exec *e, int stream, char path[PATH_SIZE])
{
	str_format(path, PATH_SIZE, "/proc/self/fd/%d/%s.%s", e->core->execs->spool, e->record.id,
		endings[stream]);
}

static int make_spool(struct core_exec *e, int stream, int *fd, struct error *err)
{
	char name[NAME_SIZE];
	name_of(e->record.id, stream, name);
	/* An existing file belongs to an exec with the same id that could not be started. */
	*fd = openat(e->core->execs->spool, name,
		O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		0600);
	if (*fd < 0)
		return fail_errno(err, "make '%s' for the output of exec '%s'", name, e->record.id);
	return 0;
}

int spool_make(struct core_exec *e, struct error *err)
{
	for (int i = 0; i < (e->record.tty ? 1 : 2); i++) {
		auto_close int fd = -1;
		if (make_spool(e, i, &fd, err))
			return -1;
	}
	return 0;
}

int spool_open(struct core_exec *e, struct error *err)
{
	if (e->record.tty)
		return make_spool(e, 0, &e->spool, err);
	for (int i = 0; i < 2; i++) {
		if (make_spool(e, i, &e->fds[1 + i], err))
			return -1;
		e->is_ours[1 + i] = true;
		/* The command's own descriptor is an ordinary one. */
		fcntl(e->fds[1 + i], F_SETFL, O_APPEND);
	}
	return 0;
}

void spool_remove(struct core_exec *e)
{
	char name[NAME_SIZE];
	spool_unwatch(e);
	for (int i = 0; i < 2; i++) {
		name_of(e->record.id, i, name);
		unlinkat(e->core->execs->spool, name, 0);
	}
}

struct spool_size {
	uint64_t bytes, on_disk;
};

/* ---- rotation ---- */

uint64_t exec_output_first(int fd)
{
	off_t first = lseek(fd, 0, SEEK_DATA);
	struct stat st;
	if (first >= 0)
		return (uint64_t)first;
	return errno == ENXIO && !fstat(fd, &st) ? (uint64_t)st.st_size : 0;
}

/* Open for writing until its files aren't watched any more: closing it would look like the end of
 * a writer. */
static int rotator_of(struct core_exec *e, int stream)
{
	char name[NAME_SIZE];
	const int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int *fd = &e->rotators[stream];
	if (*fd >= 0)
		return *fd;
	name_of(e->record.id, stream, name);
	*fd = openat(e->core->execs->spool, name, flags);
	/* A command of our own uid can change the mode of what it writes to. */
	if (*fd < 0 && errno == EACCES && !fchmodat(e->core->execs->spool, name, 0600, 0))
		*fd = openat(e->core->execs->spool, name, flags);
	return *fd;
}

/* Punches the oldest output out of its files: offsets keep their meaning, and what was dropped is
 * known from the file alone. In whole blocks, so that this is exact. false: this file system can't
 * do that. */
static bool drop_oldest(struct core_exec *e)
{
	uint64_t first[2] = { 0 }, kept[2] = { 0 }, drop[2];
	const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct stat st;
	for (int i = 0; i < (e->record.tty ? 1 : 2); i++) {
		if (rotator_of(e, i) < 0 || fstat(e->rotators[i], &st))
			return false;
		first[i] = exec_output_first(e->rotators[i]);
		kept[i] = (uint64_t)st.st_size - first[i];
	}
	exec_rotate(kept, e->record.output_cap_bytes, drop);
	e->record.output_dropped = 0;
	for (int i = 0; i < 2; i++) {
		uint64_t to = (first[i] + drop[i]) / BLOCK_BYTES * BLOCK_BYTES;
		if (drop[i] && to > first[i]) {
			if (fallocate(e->rotators[i], mode, 0, (off_t)to))
				return false;
			first[i] = to;
		}
		e->record.output_dropped += first[i];
	}
	e->record.result.truncated |= e->record.output_dropped > 0;
	return true;
}

bool spool_rotate(struct core_exec *e)
{
	uint64_t cap = e->record.output_cap_bytes;
	return !cap || e->record.output_bytes - e->record.output_dropped <= cap || drop_oldest(e);
}

void spool_append(struct core_exec *e, int stream, struct str text)
{
	char name[NAME_SIZE];
	name_of(e->record.id, stream, name);
	auto_close int fd = openat(e->core->execs->spool, name,
		O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		fd_write_full(fd, text.data, text.len);
}

/* ---- sizes ---- */

static struct spool_size size_of(const struct core_exec *e)
{
	struct spool_size size = { 0, 0 };
	for (int i = 0; i < 2; i++) {
		char name[NAME_SIZE];
		struct stat st;
		name_of(e->record.id, i, name);
		if (fstatat(e->core->execs->spool, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		size.bytes += (uint64_t)st.st_size;
		size.on_disk += (uint64_t)st.st_blocks * 512;
	}
	return size;
}

/* A command may also lay out room behind the end of what it writes; file systems do a little of
 * that by themselves. */
static bool is_over(const struct core_exec *e, struct spool_size size)
{
	uint64_t cap = e->record.output_cap_bytes, dropped = e->record.output_dropped;
	return cap && (size.bytes > cap + dropped || size.on_disk > 2 * cap + SLACK_BYTES);
}

/* Drops the oldest output if there is too much. false: that is not possible, or what the command
 * has laid out is still too much. */
static bool keep_within(struct core_exec *e)
{
	if (!is_over(e, size_of(e)))
		return true;
	if (!drop_oldest(e))
		return false;
	/* What was written since then is dropped by the next look. */
	struct spool_size size = size_of(e);
	uint64_t dropped = e->record.output_dropped;
	uint64_t kept = size.bytes > dropped ? size.bytes - dropped : 0;
	return size.on_disk <= kept + e->record.output_cap_bytes + SLACK_BYTES;
}

void spool_measure(struct core_exec *e)
{
	if (!e->record.tty)
		e->record.output_bytes = size_of(e).bytes;
}

int exec_open_output(
	const struct request *request, struct core_exec *e, int stream, int *fd, struct error *err)
{
	char name[NAME_SIZE];
	int spool = e->core->execs->spool;
	if (access_check(e->core, request, VERB_EXEC_OUTPUT, e->workspace, err))
		return -1;
	if (!e->record.background || stream < 1 || stream > (e->record.tty ? 1 : 2))
		return fail(err, ERR_NOT_FOUND, "no %s is kept of exec '%s'",
			stream == 2 ? "stderr" : "stdout", e->record.id);
	name_of(e->record.id, stream - 1, name);
	/* O_NONBLOCK: a writer may hold a lease on the file, and open would block on it. */
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int got = openat(spool, name, flags);
	/* A command of our own uid can change the mode of what it writes to. */
	if (got < 0 && errno == EACCES && !fchmodat(spool, name, 0600, 0))
		got = openat(spool, name, flags);
	if (got < 0)
		return fail_errno(err, "open the output of exec '%s'", e->record.id);
	*fd = got;
	return 0;
}

/* ---- followers ---- */

void spool_tell_followers(struct core_exec *e)
{
	bool has_ended = e->record.state == EXEC_ENDED;
	for (e->cursor = e->followers; e->cursor;) {
		struct exec_follower *follower = e->cursor;
		e->cursor = follower->next;
		follower->more(follower->ctx, has_ended);
	}
}

static void on_look(struct loop *loop, void *ctx);

static void look_after(struct core_exec *e, uint64_t delay_ms)
{
	if (!e->look)
		e->look = loop_after(e->core->loop, delay_ms, on_look, e);
}

void exec_follow(struct core_exec *e, struct exec_follower *follower)
{
	follower->next = e->followers;
	e->followers = follower;
	if (!e->record.background)
		return; /* nothing is kept of its output */
	/* The new follower hasn't seen the existing output. */
	e->is_news = true;
	look_after(e, 0);
}

void exec_unfollow(struct core_exec *e, struct exec_follower *follower)
{
	struct exec_follower **at = &e->followers;
	while (*at && *at != follower)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = follower->next;
	if (e->cursor == follower)
		e->cursor = follower->next;
}

/* ---- sizes ---- */

static bool add_watch(struct core_exec *e, int stream)
{
	struct execs *execs = e->core->execs;
	char path[PATH_SIZE];
	int *wd = &e->watches[stream];
	path_of(e, stream, path);
	*wd = inotify_add_watch(execs->inotify, path, IN_MODIFY | IN_CLOSE_WRITE | IN_DONT_FOLLOW);
	if (*wd >= 0)
		map_add(&execs->watches, (struct str){ (char *)wd, sizeof *wd }, e);
	return *wd >= 0;
}

static void drop_watch(struct core_exec *e, int stream)
{
	struct execs *execs = e->core->execs;
	int *wd = &e->watches[stream];
	if (*wd < 0)
		return;
	inotify_rm_watch(execs->inotify, *wd);
	map_remove(&execs->watches, (struct str){ (char *)wd, sizeof *wd });
	*wd = -1;
}

static void on_event(struct execs *execs, const struct inotify_event *event)
{
	struct core_exec *e =
		map_get(&execs->watches, (struct str){ (char *)&event->wd, sizeof event->wd });
	if (!e)
		return;
	int stream = e->watches[0] == event->wd ? 0 : 1;
	if (event->mask & IN_CLOSE_WRITE) {
		drop_watch(e, stream);
		e->is_closed[stream] = true;
	}
	look_after(e, 0);
}

/* Events were lost: all of them are looked at. */
static void on_overflow(struct execs *execs)
{
	struct core_exec *e;
	size_t at = 0;
	while ((e = map_next(&execs->watches, &at)))
		look_after(e, 0);
}

static void on_rested(struct loop *loop, void *ctx)
{
	struct execs *execs = ctx;
	struct error err;
	execs->inotify_rest = NULL;
	loop_change(loop, execs->inotify, EPOLLIN, &err);
}

static void on_inotify(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct execs *execs = ctx;
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool was_written = false;
	struct error err;
	ssize_t len;
	while ((len = read(fd, buffer, sizeof buffer)) > 0)
		for (ssize_t at = 0; at < len;) {
			struct inotify_event event;
			memcpy(&event, buffer + at, sizeof event);
			at += (ssize_t)(sizeof event + event.len);
			was_written |= event.mask & IN_MODIFY;
			if (event.mask & IN_Q_OVERFLOW)
				on_overflow(execs);
			else
				on_event(execs, &event);
		}
	/* Thousands of small writes are few events then: the kernel merges equal ones. */
	if (was_written && !loop_change(loop, fd, 0, &err))
		execs->inotify_rest = loop_after(loop, EXEC_SPOOL_REST_MS, on_rested, execs);
}

static bool open_inotify(struct execs *execs)
{
	struct error err;
	if (execs->inotify >= 0)
		return true;
	auto_close int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0 || loop_watch(execs->core->loop, fd, EPOLLIN, on_inotify, execs, &err))
		return false;
	execs->inotify = take_fd(&fd);
	return true;
}

/* false: no watch could be added. */
static bool add_watches(struct core_exec *e)
{
	if (!open_inotify(e->core->execs))
		return false;
	for (int i = 0; i < 2; i++)
		if (!add_watch(e, i))
			return false;
	return true;
}

/* Truncates by path: closing a descriptor of this process would look like the exit of a writer. */
static void cut(struct core_exec *e)
{
	uint64_t left = e->record.output_cap_bytes;
	for (int i = 0; i < 2; i++) {
		char name[NAME_SIZE], path[PATH_SIZE];
		struct stat st;
		name_of(e->record.id, i, name);
		path_of(e, i, path);
		if (fstatat(e->core->execs->spool, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		uint64_t size = (uint64_t)st.st_size;
		if (size > left) {
			e->record.output_dropped += size - left;
			e->record.result.truncated = true;
			size = left;
		}
		/* Also what was laid out behind the end; whatever the command made of its mode. */
		if (truncate(path, (off_t)size) && errno == EACCES &&
			!fchmodat(e->core->execs->spool, name, 0600, 0))
			(void)!truncate(path, (off_t)size);
		left -= size;
	}
}

/* What a command left behind may go on writing when it has ended itself: then what it left goes,
 * and all else too if there are others whose it could be. */
static void stop_writing(struct core_exec *e)
{
	struct core_workspace *w = e->workspace;
	if (exec_is_sent(e)) {
		e->record.result.truncated = true;
		exec_kill(e, REASON_OUTPUT_LIMIT);
		return;
	}
	cut(e);
	if (w->sandbox.exec_count)
		core_end_sandbox(w, REASON_OUTPUT_LIMIT);
	else
		connection_send(w, INIT_SIGNAL, 0, SIGKILL);
}

static void look_at_size(struct core_exec *e)
{
	struct spool_size size = size_of(e);
	e->is_news |= size.bytes != e->spool_bytes;
	e->spool_bytes = size.bytes;
	if (exec_is_sent(e))
		spool_measure(e);
	if (!keep_within(e))
		stop_writing(e);
}

/* Notify followers last: a follower may end the exec there. */
static void on_look(struct loop *loop, void *ctx)
{
	struct core_exec *e = ctx;
	e->look = NULL;
	if (e->is_spool_watched)
		look_at_size(e);
	if (e->is_closed[0] && e->is_closed[1])
		spool_settle(e);
	if (e->is_spool_watched && e->is_polled)
		look_after(e, EXEC_SPOOL_REST_MS);
	bool was_news = e->is_news;
	e->is_news = false;
	if (was_news)
		spool_tell_followers(e);
}

void spool_watch(struct core_exec *e)
{
	if (e->record.tty) /* core writes it itself, and counts */
		return;
	e->is_spool_watched = true;
	e->is_polled = !add_watches(e);
	look_after(e, 0); /* output written before the watch was added */
}

void spool_unwatch(struct core_exec *e)
{
	e->is_spool_watched = false;
	for (int i = 0; i < 2; i++) {
		drop_watch(e, i);
		fd_close(&e->rotators[i]);
	}
}

/* ---- the end ---- */

void spool_settle(struct core_exec *e)
{
	if (e->stage == STAGE_ENDED && !keep_within(e))
		cut(e);
	spool_unwatch(e);
}

void spool_end(struct core_exec *e)
{
	if (!e->record.tty) {
		/* There may be more since the last look. */
		if (!keep_within(e)) {
			cut(e);
			if (!e->limit)
				e->record.result.reason = REASON_OUTPUT_LIMIT;
		}
		spool_measure(e);
	}
	if (e->record.tty)
		fd_close(&e->rotators[0]);
	/* What it left running may still write: watched until the last of that has closed it. */
	spool_tell_followers(e);
}

static int compare_oldest(const void *a, const void *b)
{
	const struct core_exec *first = *(struct core_exec *const *)a,
			       *second = *(struct core_exec *const *)b;
	return (first->record.ended_ms > second->record.ended_ms) -
	       (first->record.ended_ms < second->record.ended_ms);
}

void spool_trim(struct core_workspace *w)
{
	struct core *core = w->core;
	size_t at = 0, count = 0, first = 0, texts = 0;
	uint64_t bytes = 0;
	struct core_exec *e;
	auto_free struct core_exec **ended = xzalloc((core->execs->by_id.live + 1) * sizeof *ended);
	while ((e = map_next(&core->execs->by_id, &at)))
		if (e->workspace == w && e->record.background && e->record.state == EXEC_ENDED &&
			!e->followers && !e->is_spool_watched) {
			ended[count++] = e;
			bytes += e->record.output_bytes - e->record.output_dropped;
			texts += e->texts_bytes;
		}
	qsort(ended, count, sizeof *ended, compare_oldest);
	/* Always keep the newest: a client may be waiting for it. */
	for (; first + 1 < count &&
		(count - first > KEPT_COUNT || bytes > KEPT_BYTES || texts > KEPT_TEXTS_BYTES);
		first++) {
		bytes -= ended[first]->record.output_bytes - ended[first]->record.output_dropped;
		texts -= ended[first]->texts_bytes;
		store_remove(core->store, &store_execs, ended[first]->record.id, NULL, NULL, NULL);
		spool_remove(ended[first]);
		exec_free(ended[first]);
	}
}

void execs_sweep_spools(struct core *core)
{
	auto_walk DIR *dir = walk_open(core->execs->spool, ".");
	struct dirent *entry;
	while ((entry = walk_next(dir))) {
		struct str id, ending;
		if (entry->d_name[0] == '.')
			continue;
		str_cut(str_from(entry->d_name), '.', &id, &ending);
		if (!map_get(&core->execs->by_id, id))
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
}
