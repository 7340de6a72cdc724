/* exec_spool.c -- output of background execs: files that the commands write themselves, so that no
 * byte is lost when core is restarted (docs/design/0012).
 *
 * Their sizes have to be watched. inotify tells of the first write after a silence; from then on
 * they are looked at every tick, until they are silent again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/exec_internal.h"

#define STILL_TICKS 4
#define KEPT_COUNT 256		    /* ended ones of a workspace, */
#define KEPT_BYTES (256ull << 20)   /* and their bytes; the oldest go */
#define KEPT_TEXTS_BYTES (8u << 20) /* of their arguments */
#define SLACK_BYTES (16ull << 20)
#define NAME_SIZE (ID_LEN + 5)
#define PATH_SIZE (32 + NAME_SIZE)

static const char *const endings[] = { "out", "err" };

static void name_of(const char *id, int stream, char name[NAME_SIZE])
{
	str_format(name, NAME_SIZE, "%s.%s", id, endings[stream]);
}

static void path_of(const struct core_exec *e, int stream, char path[PATH_SIZE])
{
	str_format(path, PATH_SIZE, "/proc/self/fd/%d/%s.%s", e->workspace->core->spool,
		e->record.id, endings[stream]);
}

static int make_spool(struct core_exec *e, int stream, int *fd, struct error *err)
{
	char name[NAME_SIZE];
	name_of(e->record.id, stream, name);
	/* One that is there is of an exec with the same id that could not be started. */
	*fd = openat(e->workspace->core->spool, name,
		O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		0600);
	if (*fd < 0)
		return fail_errno(err, "make '%s' for the output of exec '%s'", name, e->record.id);
	return 0;
}

int spool_open(struct core_exec *e, struct error *err)
{
	struct exec_private *own = e->own;
	if (e->record.tty)
		return make_spool(e, 0, &own->spool, err);
	for (int i = 0; i < 2; i++) {
		if (make_spool(e, i, &own->fds[1 + i], err))
			return -1;
		own->is_ours[1 + i] = true;
		/* The command's own descriptor is an ordinary one. */
		fcntl(own->fds[1 + i], F_SETFL, O_APPEND);
	}
	return 0;
}

void spool_remove(struct core_exec *e)
{
	char name[NAME_SIZE];
	spool_unwatch(e);
	for (int i = 0; i < 2; i++) {
		name_of(e->record.id, i, name);
		unlinkat(e->workspace->core->spool, name, 0);
	}
}

struct spool_size {
	uint64_t bytes, on_disk;
};

static struct spool_size size_of(const struct core_exec *e)
{
	struct spool_size size = { 0, 0 };
	for (int i = 0; i < 2; i++) {
		char name[NAME_SIZE];
		struct stat st;
		name_of(e->record.id, i, name);
		if (fstatat(e->workspace->core->spool, name, &st, AT_SYMLINK_NOFOLLOW))
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
	uint64_t cap = e->record.output_cap_bytes;
	return cap && (size.bytes > cap || size.on_disk > 2 * cap + SLACK_BYTES);
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
	int spool = e->workspace->core->spool;
	if (access_check(e->workspace->core, request, VERB_EXEC_OUTPUT, e->workspace, err))
		return -1;
	if (!e->record.background || stream < 1 || stream > (e->record.tty ? 1 : 2))
		return fail(err, ERR_NOT_FOUND, "no %s is kept of exec '%s'",
			stream == 2 ? "stderr" : "stdout", e->record.id);
	name_of(e->record.id, stream - 1, name);
	/* O_NONBLOCK: whoever writes it may hold a lease on it, and open would wait for that. */
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

/* One may go while it is told, itself or another. */
static void tell_followers(struct core_exec *e)
{
	struct exec_private *own = e->own;
	bool has_ended = e->record.state == EXEC_ENDED;
	for (own->cursor = own->followers; own->cursor;) {
		struct exec_follower *follower = own->cursor;
		own->cursor = follower->next;
		follower->more(follower->ctx, has_ended);
	}
}

static void on_tick(struct loop *loop, void *ctx);

static void add_growing(struct core_exec *e)
{
	struct exec_private *own = e->own;
	struct exec_shelf *shelf = exec_shelf(e->workspace->core);
	own->still_ticks = 0;
	if (own->growing_at)
		return;
	own->growing_at = &shelf->growing;
	own->growing_next = shelf->growing;
	if (shelf->growing)
		shelf->growing->own->growing_at = &own->growing_next;
	shelf->growing = e;
	if (!shelf->tick)
		shelf->tick = loop_after(shelf->core->loop, EXEC_SPOOL_TICK_MS, on_tick, shelf);
}

static void remove_growing(struct core_exec *e)
{
	struct exec_private *own = e->own;
	struct exec_shelf *shelf = exec_shelf(e->workspace->core);
	if (!own->growing_at)
		return;
	if (shelf->cursor == e)
		shelf->cursor = own->growing_next;
	*own->growing_at = own->growing_next;
	if (own->growing_next)
		own->growing_next->own->growing_at = own->growing_at;
	own->growing_at = NULL;
}

void exec_follow(struct core_exec *e, struct exec_follower *follower)
{
	follower->next = e->own->followers;
	e->own->followers = follower;
	/* What is there already is news to this one; it is told at the next tick. */
	e->own->is_news = true;
	add_growing(e);
}

void exec_unfollow(struct core_exec *e, struct exec_follower *follower)
{
	struct exec_follower **at = &e->own->followers;
	while (*at && *at != follower)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = follower->next;
	if (e->own->cursor == follower)
		e->own->cursor = follower->next;
}

void spool_grew(struct core_exec *e)
{
	add_growing(e);
	tell_followers(e);
}

/* ---- sizes ---- */

/* What inotify shall tell of one spool: the end of its last writer in any case. */
static bool set_mask(struct core_exec *e, int stream, uint32_t mask)
{
	struct exec_shelf *shelf = exec_shelf(e->workspace->core);
	char path[PATH_SIZE];
	int *wd = &e->own->watches[stream];
	path_of(e, stream, path);
	int got = inotify_add_watch(shelf->inotify, path, IN_CLOSE_WRITE | IN_DONT_FOLLOW | mask);
	if (got >= 0 && *wd < 0) {
		*wd = got;
		map_add(&shelf->watches, (struct str){ (char *)wd, sizeof *wd }, e);
	}
	return got >= 0;
}

static void drop_watch(struct core_exec *e, int stream)
{
	struct exec_shelf *shelf = exec_shelf(e->workspace->core);
	int *wd = &e->own->watches[stream];
	if (*wd < 0)
		return;
	inotify_rm_watch(shelf->inotify, *wd);
	map_remove(&shelf->watches, (struct str){ (char *)wd, sizeof *wd });
	*wd = -1;
}

static void on_event(struct exec_shelf *shelf, int wd, uint32_t mask)
{
	struct core_exec *e = map_get(&shelf->watches, (struct str){ (char *)&wd, sizeof wd });
	if (!e)
		return;
	int stream = e->own->watches[0] == wd ? 0 : 1;
	if (mask & IN_CLOSE_WRITE) {
		drop_watch(e, stream);
		e->own->is_closed[stream] = true;
	} else if (mask & IN_MODIFY)
		set_mask(e, stream, 0); /* the ticks see the rest */
	spool_grew(e);
	if (e->own->is_closed[0] && e->own->is_closed[1])
		spool_settle(e);
}

/* Events were lost: all of them are looked at. */
static void on_overflow(struct exec_shelf *shelf)
{
	struct core_exec *e;
	size_t at = 0;
	while ((e = map_next(&shelf->watches, &at)))
		add_growing(e);
}

static void on_inotify(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t len;
	while ((len = read(fd, buffer, sizeof buffer)) > 0)
		for (ssize_t at = 0; at < len;) {
			struct inotify_event event;
			memcpy(&event, buffer + at, sizeof event);
			at += (ssize_t)(sizeof event + event.len);
			if (event.mask & IN_Q_OVERFLOW)
				on_overflow(ctx);
			else
				on_event(ctx, event.wd, event.mask);
		}
}

static bool open_inotify(struct exec_shelf *shelf)
{
	struct error err;
	if (shelf->inotify >= 0)
		return true;
	auto_close int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0 || loop_watch(shelf->core->loop, fd, EPOLLIN, on_inotify, shelf, &err))
		return false;
	shelf->inotify = take_fd(&fd);
	return true;
}

/* false: there is no watch to be had; it is looked at every tick. */
static bool arm(struct core_exec *e)
{
	if (!open_inotify(exec_shelf(e->workspace->core)))
		return false;
	for (int i = 0; i < 2; i++)
		if (!e->own->is_closed[i] && !set_mask(e, i, IN_MODIFY))
			return false;
	return true;
}

/* By name: a descriptor of ours that is closed would look like the end of a writer. */
static void cut(struct core_exec *e)
{
	uint64_t left = e->record.output_cap_bytes;
	for (int i = 0; i < 2; i++) {
		char name[NAME_SIZE], path[PATH_SIZE];
		struct stat st;
		name_of(e->record.id, i, name);
		path_of(e, i, path);
		if (fstatat(e->workspace->core->spool, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		uint64_t size = (uint64_t)st.st_size;
		if (size > left) {
			e->record.output_dropped += size - left;
			e->record.result.truncated = true;
			size = left;
		}
		/* Also what was laid out behind the end; whatever the command made of its mode. */
		if (truncate(path, (off_t)size) && errno == EACCES &&
			!fchmodat(e->workspace->core->spool, name, 0600, 0))
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
		line_send(w, INIT_SIGNAL, 0, SIGKILL);
}

static void look_at_size(struct core_exec *e)
{
	struct exec_private *own = e->own;
	struct spool_size size = size_of(e);
	own->is_news |= size.bytes != own->spool_bytes;
	own->spool_bytes = size.bytes;
	if (exec_is_sent(e))
		spool_measure(e);
	if (is_over(e, size))
		stop_writing(e);
}

/* Nothing may come after telling the followers: whoever ends may do so there. */
static void look(struct core_exec *e)
{
	struct exec_private *own = e->own;
	if (own->is_spool_watched)
		look_at_size(e);
	bool was_news = own->is_news;
	own->is_news = false;
	own->still_ticks = was_news ? 0 : own->still_ticks + 1;
	/* Whatever was written before the watch was there shows in one more look. */
	if (!own->is_spool_watched)
		remove_growing(e);
	else if (own->still_ticks >= STILL_TICKS && arm(e) && size_of(e).bytes == own->spool_bytes)
		remove_growing(e);
	if (was_news)
		tell_followers(e);
}

static void on_tick(struct loop *loop, void *ctx)
{
	struct exec_shelf *shelf = ctx;
	shelf->tick = NULL;
	for (shelf->cursor = shelf->growing; shelf->cursor;) {
		struct core_exec *e = shelf->cursor;
		shelf->cursor = e->own->growing_next;
		look(e);
	}
	if (shelf->growing && !shelf->tick)
		shelf->tick = loop_after(loop, EXEC_SPOOL_TICK_MS, on_tick, shelf);
}

void spool_watch(struct core_exec *e)
{
	if (e->record.tty) /* core writes it itself, and counts */
		return;
	e->own->is_spool_watched = true;
	if (!arm(e))
		add_growing(e);
}

void spool_unwatch(struct core_exec *e)
{
	e->own->is_spool_watched = false;
	remove_growing(e);
	for (int i = 0; i < 2; i++)
		drop_watch(e, i);
}

/* ---- the end ---- */

void spool_settle(struct core_exec *e)
{
	spool_unwatch(e);
	if (e->own->stage == STAGE_ENDED && is_over(e, size_of(e)))
		cut(e);
}

void spool_end(struct core_exec *e)
{
	if (!e->record.tty) {
		/* Nobody has looked since it went over. */
		if (is_over(e, size_of(e))) {
			cut(e);
			if (!e->own->limit)
				e->record.result.reason = REASON_OUTPUT_LIMIT;
		}
		spool_measure(e);
	}
	/* What it left running may still write: watched until the last of that has closed it. */
	tell_followers(e);
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
	auto_free struct core_exec **ended = calloc(core->execs.live + 1, sizeof *ended);
	if (!ended)
		abort();
	while ((e = map_next(&core->execs, &at)))
		if (e->workspace == w && e->record.background && e->record.state == EXEC_ENDED &&
			!e->own->followers && !e->own->is_spool_watched) {
			ended[count++] = e;
			bytes += e->record.output_bytes;
			texts += e->own->texts_bytes;
		}
	qsort(ended, count, sizeof *ended, compare_oldest);
	/* The newest stays in any case: somebody waits for it. */
	for (; first + 1 < count &&
		(count - first > KEPT_COUNT || bytes > KEPT_BYTES || texts > KEPT_TEXTS_BYTES);
		first++) {
		bytes -= ended[first]->record.output_bytes;
		texts -= ended[first]->own->texts_bytes;
		store_remove(core->store, &store_execs, ended[first]->record.id, NULL, NULL, NULL);
		spool_remove(ended[first]);
		exec_free(ended[first]);
	}
}

void execs_sweep_spools(struct core *core)
{
	int fd = openat(core->spool, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	if (!dir) {
		fd_close(&fd);
		return;
	}
	while ((entry = readdir(dir))) {
		struct str id, ending;
		if (entry->d_name[0] == '.')
			continue;
		str_cut(str_from(entry->d_name), '.', &id, &ending);
		if (!map_get(&core->execs, id))
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
}
