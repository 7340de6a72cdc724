/* Core with a launcher that is played here: workspaces come, go, expire, and survive a crash as
 * core/reconcile.c says. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/core.h"
#include "core/idempotency.h"
#include "core/internal.h"
#include "proc/channel.h"
#include "unit.h"
#include "writer_fixture.h"

struct fixture {
	char home[64];
	struct loop *loop;
	struct core *core;
	int launcher; /* our end */
	int starts, ends;
	int listeners[16], listener_count;
	pid_t writer;
	uint64_t release_after_ms;
	char running[ID_LEN + 1]; /* what LIST tells of */
	bool refuses_start, keeps_spare;
	int dies_early;	  /* so many starts: up, and gone at once */
	int killed_early; /* so many starts: gone before they are up */
	/* of the last callback */
	int calls;
	char id[ID_LEN + 1];
	bool has_failed;
	struct error err;
};

static void answer(struct fixture *f, const struct launch_packet *to, enum launch_type type,
	const char *const *strings, size_t count, const int *fds, int fd_count)
{
	struct launch_message head = { .type = type, .tag = to->head.tag };
	struct error err;
	auto_buf struct buf packet;
	buf_init(&packet, CHANNEL_SIZE_MAX);
	if (type == LAUNCH_STARTED || type == LAUNCH_RUNNING || type == LAUNCH_ENDED)
		memcpy(head.id, to->head.id, sizeof head.id);
	if (type == LAUNCH_RUNNING)
		memcpy(head.id, f->running, sizeof head.id);
	if (type == LAUNCH_FAILED)
		head.error_code = f->killed_early ? ERR_CANCELED : ERR_UNAVAILABLE;
	for (int i = 0; i < fd_count; i++)
		head.present |= 1u << i;
	assert_int_equal(launch_encode(&head, strings, count, &packet, &err), 0);
	assert_int_equal(
		channel_send(f->launcher, packet.data, packet.len, fds, fd_count, &err), 0);
}

/* An "init" that only listens. */
static void listen_at(struct fixture *f, const char *id)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof address.sun_path, "%s/run/sb/%s", f->home, id);
	unlink(address.sun_path);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_true(f->listener_count < 16);
	f->listeners[f->listener_count++] = listener;
}

static void start(struct fixture *f, const struct launch_packet *packet)
{
	static const char *const why[] = { "no", "" };
	f->starts++;
	if (f->refuses_start || f->killed_early) {
		answer(f, packet, LAUNCH_FAILED, why, 2, NULL, 0);
		f->killed_early -= f->killed_early > 0;
		return;
	}
	if (f->dies_early)
		f->dies_early--;
	else
		listen_at(f, packet->head.id);
	int fds[3] = { open("/proc", O_PATH | O_CLOEXEC), open("/", O_PATH | O_CLOEXEC),
		open("/", O_PATH | O_CLOEXEC) };
	answer(f, packet, LAUNCH_STARTED, NULL, 0, fds, 3);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static void list(struct fixture *f, const struct launch_packet *packet)
{
	if (f->running[0]) {
		int fds[3] = { open("/proc", O_PATH | O_CLOEXEC), open("/", O_PATH | O_CLOEXEC),
			open("/", O_PATH | O_CLOEXEC) };
		answer(f, packet, LAUNCH_RUNNING, NULL, 0, fds, 3);
		for (int i = 0; i < 3; i++)
			close(fds[i]);
	}
	answer(f, packet, LAUNCH_DONE, NULL, 0, NULL, 0);
}

static void make_directory(struct fixture *f, const char *id)
{
	char path[128];
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, id);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void start_other_writer(struct fixture *f, const struct launch_packet *packet)
{
	waitpid(f->writer, NULL, 0);
	int writer = start_writer(f->home, &f->writer);
	answer(f, packet, LAUNCH_WRITER_STARTED, NULL, 0, &writer, 1);
	close(writer);
}

static void on_request(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct fixture *f = ctx;
	static char data[CHANNEL_SIZE_MAX];
	struct launch_packet packet;
	struct error err;
	int fds[CHANNEL_FDS_MAX], count;
	size_t len;
	while (channel_receive(fd, data, sizeof data, &len, fds, CHANNEL_FDS_MAX, &count, &err) ==
		CHANNEL_MESSAGE) {
		assert_int_equal(launch_decode(data, len, true, count, &packet, &err), 0);
		for (int i = 0; i < count; i++)
			close(fds[i]);
		if (packet.head.type == LAUNCH_START)
			start(f, &packet);
		else if (packet.head.type == LAUNCH_END) {
			f->ends++;
			answer(f, &packet, LAUNCH_ENDED, NULL, 0, NULL, 0);
		} else if (packet.head.type == LAUNCH_LIST)
			list(f, &packet);
		else if (packet.head.type == LAUNCH_WRITER)
			start_other_writer(f, &packet);
		else {
			if (packet.head.type == LAUNCH_QUOTA)
				make_directory(f, packet.head.id);
			answer(f, &packet, LAUNCH_DONE, NULL, 0, NULL, 0);
		}
	}
}

static void on_tick(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

/* Runs the loop until `condition` holds, at most a minute. */
#define UNTIL(f, condition)                                                                        \
	do {                                                                                       \
		uint64_t end_ms_ = clock_monotonic_ms() + 60000;                                   \
		struct error err_;                                                                 \
		while (!(condition)) {                                                             \
			assert_true(clock_monotonic_ms() < end_ms_);                               \
			loop_after((f)->loop, 2, on_tick, NULL);                                   \
			assert_int_equal(loop_run((f)->loop, &err_), 0);                           \
		}                                                                                  \
	} while (0)

static void open_core(struct fixture *f)
{
	int ends[2];
	struct core_options options = { .home = f->home,
		.release_after_ms = f->release_after_ms ? f->release_after_ms : 60000,
		.keeps_spare = f->keeps_spare,
		.log = { .fd = STDERR_FILENO, .least = LOG_LEVEL_ERROR + 1 } };
	struct error err;
	assert_int_equal(loop_new(&f->loop, &err), 0);
	assert_int_equal(channel_pair(ends, &err), 0);
	f->launcher = ends[0];
	options.launcher = ends[1];
	options.writer = start_writer(f->home, &f->writer);
	options.store_url = STORE_URL;
	assert_int_equal(loop_watch(f->loop, f->launcher, EPOLLIN, on_request, f, &err), 0);
	if (core_open(&options, f->loop, &f->core, &err))
		fail_msg("%s", err.text);
	UNTIL(f, f->core->is_ready);
}

/* As a crash would: nothing is told to anybody. */
static void close_core(struct fixture *f)
{
	int theirs = f->core->launcher.socket;
	core_free(f->core);
	waitpid(f->writer, NULL, 0);
	close(theirs);
	loop_free(f->loop);
	close(f->launcher);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	snprintf(f->home, sizeof f->home, "/var/tmp/unit-core.XXXXXX");
	assert_non_null(mkdtemp(f->home));
	/* Root's home belongs to somebody else: core is that somebody. */
	if (geteuid() == 0 && (chown(f->home, 64199, 64199) || setegid(64199) || seteuid(64199)))
		return -1;
	open_core(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	struct error err;
	auto_close int tmp = open("/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	close_core(f);
	while (f->listener_count)
		fd_close(&f->listeners[--f->listener_count]);
	if (seteuid(getuid()) || setegid(getgid()))
		return -1;
	assert_int_equal(path_remove_tree(tmp, path_basename(f->home), &err), 0);
	free(f);
	return 0;
}

static void on_done(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct fixture *f = ctx;
	f->calls++;
	f->has_failed = err != NULL;
	if (err)
		f->err = *err;
	if (w)
		memcpy(f->id, w->model.id, sizeof f->id);
}

static void create(struct fixture *f, const char *name, struct workspace wanted)
{
	wanted.name = name;
	f->calls = 0;
	core_create(&request_system, f->core, &wanted, on_done, f);
	assert_int_equal(f->calls, 0); /* never from inside the call */
	UNTIL(f, f->calls);
}

static struct core_workspace *find(struct fixture *f, const char *name)
{
	struct core_workspace *w = NULL;
	struct error err;
	return core_find(&request_system, f->core, name, &w, &err) ? NULL : w;
}

static bool exists(struct fixture *f, const char *path)
{
	char full[256];
	struct stat st;
	snprintf(full, sizeof full, "%s/%s", f->home, path);
	return !lstat(full, &st);
}

static bool tree_exists(struct fixture *f, const char *id, const char *path)
{
	char full[160];
	snprintf(full, sizeof full, "workspaces/%s%s", id, path);
	return exists(f, full);
}

static void what_was_created_is_there_after_a_crash(void **state)
{
	struct fixture *f = *state;
	char id[ID_LEN + 1];
	create(f, "first", (struct workspace){ 0 });
	assert_false(f->has_failed);
	memcpy(id, f->id, sizeof id);
	assert_true(tree_exists(f, id, "/upper/.workspace_configured"));
	assert_int_equal(find(f, "first")->model.state, WORKSPACE_READY);
	close_core(f);
	open_core(f);
	assert_non_null(find(f, "first"));
	assert_string_equal(find(f, "first")->model.id, id);
	assert_int_equal(find(f, id)->model.limits.pids, LIMIT_PIDS_DEFAULT);
}

static void a_name_is_taken_once(void **state)
{
	struct fixture *f = *state;
	struct workspace twice = { .name = "twin" };
	core_create(&request_system, f->core, &twice, on_done, f);
	core_create(&request_system, f->core, &twice, on_done, f);
	UNTIL(f, f->calls == 2);
	assert_int_equal(f->core->metrics.creates, 1);
	create(f, "twin", (struct workspace){ 0 });
	assert_true(f->has_failed);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	create(f, "Not A Name", (struct workspace){ 0 });
	assert_int_equal(f->err.code, ERR_INVALID);
}

static void a_context_id_finds_like_a_name(void **state)
{
	struct fixture *f = *state;
	struct text_pair pairs[] = { { "context_id", "ctx/Ä ..\n%" } };
	struct workspace wanted = { .labels = { pairs, 1, 1 } };
	create(f, NULL, wanted);
	assert_false(f->has_failed);
	assert_ptr_equal(find(f, "ctx/Ä ..\n%"), find(f, f->id));
	create(f, NULL, wanted);
	assert_int_equal(f->err.code, ERR_CONFLICT);
}

static void what_was_removed_is_gone_and_says_so(void **state)
{
	struct fixture *f = *state;
	struct core_workspace *w;
	struct error err;
	create(f, "short", (struct workspace){ 0 });
	f->calls = 0;
	core_remove(&request_system, find(f, "short"), "removed", on_done, f);
	core_remove(&request_system, find(f, "short"), "removed", on_done, f);
	UNTIL(f, f->calls == 2);
	assert_false(f->has_failed);
	assert_false(tree_exists(f, f->id, ""));
	assert_int_equal(core_find(&request_system, f->core, "short", &w, &err), -1);
	assert_non_null(strstr(err.text, "was removed at"));
	char del[64];
	snprintf(del, sizeof del, ".del-%s", f->id);
	UNTIL(f, !tree_exists(f, del, ""));
	close_core(f);
	open_core(f);
	assert_null(find(f, "short"));
}

static void what_is_half_made_is_removed_at_the_start(void **state)
{
	struct fixture *f = *state;
	char path[160], id[ID_LEN + 1];
	create(f, "kept", (struct workspace){ 0 });
	create(f, "broken", (struct workspace){ 0 });
	create(f, "going", (struct workspace){ 0 });
	char going[ID_LEN + 1], broken[ID_LEN + 1], to[160];
	memcpy(going, find(f, "going")->model.id, sizeof going);
	memcpy(broken, find(f, "broken")->model.id, sizeof broken);
	create(f, "unused", (struct workspace){ 0 });
	char unused[ID_LEN + 1];
	memcpy(unused, f->id, sizeof unused);
	find(f, "broken")->model.last_used_ms++;
	store_put(f->core->store, &store_workspaces, &find(f, "broken")->model, NULL, NULL);
	store_flush(f->core->store);
	close_core(f);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, unused); /* never used, and gone */
	snprintf(to, sizeof to, "%s/elsewhere-too", f->home);
	assert_int_equal(rename(path, to), 0);
	id_make(id); /* a tree without a row */
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, id);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, going); /* a removal begun */
	snprintf(to, sizeof to, "%s/workspaces/.del-%s", f->home, going);
	assert_int_equal(rename(path, to), 0);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, broken); /* a row without a tree */
	snprintf(to, sizeof to, "%s/elsewhere", f->home);
	assert_int_equal(rename(path, to), 0);
	open_core(f);
	UNTIL(f, !find(f, "going"));
	assert_false(tree_exists(f, id, ""));
	assert_int_equal(find(f, "kept")->model.state, WORKSPACE_READY);
	assert_int_equal(find(f, "unused")->model.state, WORKSPACE_READY);
	assert_true(tree_exists(f, unused, "/upper/.workspace_configured"));
	assert_int_equal(find(f, "broken")->model.state, WORKSPACE_FAILED);
	assert_non_null(find(f, "broken")->model.error);
}

/* A create that a crash cut short is made again under the same id, when its key is used again. */
static void what_is_made_again_is_not_taken_for_a_removal(void **state)
{
	struct fixture *f = *state;
	char path[160], del[64];
	struct workspace wanted = { 0 };
	create(f, "other", (struct workspace){ 0 });
	id_make(wanted.id);
	close_core(f);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, wanted.id);
	assert_int_equal(mkdir(path, 0700), 0);
	open_core(f); /* half-made, and put away; its child hasn't come by yet */
	assert_false(tree_exists(f, wanted.id, ""));
	create(f, "again", wanted);
	assert_false(f->has_failed);
	assert_string_equal(f->id, wanted.id);
	close_core(f);
	open_core(f);
	assert_int_equal(find(f, "again")->model.state, WORKSPACE_READY);
	/* And one that was removed, whose bytes may still be there. */
	snprintf(del, sizeof del, ".del-%s", wanted.id);
	f->calls = 0;
	core_remove(&request_system, find(f, "again"), "removed", on_done, f);
	UNTIL(f, f->calls == 1);
	create(f, "again", wanted);
	assert_false(f->has_failed);
	assert_false(tree_exists(f, del, ""));
	close_core(f);
	open_core(f);
	assert_int_equal(find(f, "again")->model.state, WORKSPACE_READY);
}

static void a_removal_that_has_a_row_is_finished_after_a_crash(void **state)
{
	struct fixture *f = *state;
	char del[64], path[160];
	create(f, "going", (struct workspace){ 0 });
	snprintf(del, sizeof del, ".del-%s", f->id);
	snprintf(path, sizeof path, "%s/carrel.db", f->home);
	/* Nothing can be written: its tree is out of sight, its row stays. */
	sqlite3 *locker;
	assert_int_equal(sqlite3_open(path, &locker), SQLITE_OK);
	sqlite3_busy_timeout(locker, 60000);
	assert_int_equal(sqlite3_exec(locker, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	f->calls = 0;
	core_remove(&request_system, find(f, "going"), "removed", on_done, f);
	UNTIL(f, f->calls == 1);
	assert_true(f->has_failed);
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
	/* Its bytes go, which may be what the row has to wait for; the mark stays. */
	UNTIL(f, !tree_exists(f, del, "/upper"));
	assert_true(tree_exists(f, del, ""));
	assert_int_equal(sqlite3_close(locker), SQLITE_OK);
	close_core(f);
	open_core(f);
	UNTIL(f, !find(f, "going") && !tree_exists(f, del, ""));
}

static void a_tree_without_a_row_is_half_made_also_in_a_new_home(void **state)
{
	struct fixture *f = *state;
	char path[160], id[ID_LEN + 1], lost[64];
	close_core(f);
	id_make(id);
	snprintf(path, sizeof path, "%s/workspaces/%s", f->home, id);
	snprintf(lost, sizeof lost, ".lost-%s", id);
	assert_int_equal(mkdir(path, 0700), 0);
	open_core(f);
	assert_false(tree_exists(f, id, ""));
	assert_false(tree_exists(f, lost, ""));
}

static void trees_of_a_lost_database_are_kept(void **state)
{
	struct fixture *f = *state;
	char path[160], lost[64];
	create(f, "dear", (struct workspace){ 0 });
	close_core(f);
	snprintf(path, sizeof path, "%s/carrel.db", f->home);
	auto_close int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "this is no database at all, sorry", 33), 33);
	snprintf(path, sizeof path, "%s/carrel.db-wal", f->home);
	unlink(path);
	open_core(f);
	assert_true(f->core->store_opened.was_corrupt);
	assert_null(find(f, "dear"));
	snprintf(lost, sizeof lost, ".lost-%s", f->id);
	assert_true(tree_exists(f, lost, "/upper/.workspace_configured"));
	close_core(f);
	open_core(f);
	assert_true(tree_exists(f, lost, ""));
}

static void what_expires_goes_by_itself(void **state)
{
	struct fixture *f = *state;
	struct core_workspace *w;
	struct error err;
	create(f, "mayfly", (struct workspace){ .ttl_ms = 30 });
	UNTIL(f, !find(f, "mayfly"));
	assert_int_equal(core_find(&request_system, f->core, "mayfly", &w, &err), -1);
	assert_non_null(strstr(err.text, "expired"));
}

/* As it looks to core when the wall clock has gone forward by a day: the time that a workspace
 * expires at is long over, the time that was reckoned from it isn't. */
static void a_wall_clock_that_jumps_expires_nothing(void **state)
{
	struct fixture *f = *state;
	struct workspace_change change = { .has_idle_timeout = true, .idle_timeout_ms = 3600000 };
	create(f, "calm", (struct workspace){ .ttl_ms = 3600000 });
	struct core_workspace *w = find(f, "calm");
	w->model.expires_ms -= 24 * 3600000;
	w->model.last_used_ms -= 24 * 3600000;
	w->expires_from_ms = w->model.expires_ms;
	f->calls = 0;
	core_update(&request_system, w, &change, on_done, f); /* its timers are set anew */
	UNTIL(f, f->calls == 1);
	uint64_t later_ms = clock_monotonic_ms() + 50;
	UNTIL(f, clock_monotonic_ms() > later_ms);
	assert_int_equal(find(f, "calm")->model.state, WORKSPACE_READY);
}

static void an_idle_one_is_suspended_and_wakes(void **state)
{
	struct fixture *f = *state;
	create(f, "sleeper", (struct workspace){ .idle_timeout_ms = 30, .is_context = false });
	struct core_workspace *w = find(f, "sleeper");
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	assert_false(f->has_failed);
	assert_true(w->model.state == WORKSPACE_READY && core_now(w).is_warm);
	assert_int_equal(f->starts, 1);
	core_release(w);
	UNTIL(f, w->model.state == WORKSPACE_SUSPENDED);
	assert_int_equal(f->ends, 1);
	close_core(f);
	open_core(f);
	w = find(f, "sleeper");
	assert_int_equal(w->model.state, WORKSPACE_SUSPENDED);
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	assert_true(w->model.state == WORKSPACE_READY && core_now(w).is_warm);
	core_release(w);
}

static void a_name_of_an_earlier_version_is_kept(void **state)
{
	struct fixture *f = *state;
	create(f, "old", (struct workspace){ 0 });
	find(f, "old")->model.name = "-old";
	workspace_save(find(f, "old"), NULL, NULL);
	close_core(f);
	open_core(f);
	assert_int_equal(find(f, "-old")->model.state, WORKSPACE_READY);
}

static void many_who_wait_share_one_start(void **state)
{
	struct fixture *f = *state;
	create(f, "busy", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "busy");
	f->calls = 0;
	for (int i = 0; i < 5; i++)
		core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls == 5);
	assert_int_equal(f->starts, 1);
	assert_int_equal(w->users, 5);
	for (int i = 0; i < 5; i++)
		core_release(w);
}

static void a_start_that_fails_is_told_and_tried_again(void **state)
{
	struct fixture *f = *state;
	create(f, "unlucky", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "unlucky");
	f->refuses_start = true;
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	assert_true(f->has_failed);
	assert_int_equal(w->model.state, WORKSPACE_READY);
	assert_int_equal(w->users, 0);
	f->refuses_start = false;
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	assert_false(f->has_failed);
	core_release(w);
}

static void wake_with_early_deaths(struct fixture *f, struct core_workspace *w, int deaths)
{
	f->dies_early = deaths;
	f->starts = f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
}

static void who_waits_for_one_that_dies_early_gets_another(void **state)
{
	struct fixture *f = *state;
	create(f, "early", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "early");
	wake_with_early_deaths(f, w, 2);
	assert_false(f->has_failed);
	assert_int_equal(f->starts, 3);
	core_release(w);
	core_end_sandbox(w, REASON_CANCELED);
	UNTIL(f, w->sandbox.state != SANDBOX_ENDING && w->sandbox.state != SANDBOX_UP);
	/* But not for ever. */
	char path[96];
	snprintf(path, sizeof path, "%s/run/sb/%s", f->home, w->model.id);
	unlink(path);
	wake_with_early_deaths(f, w, 9);
	assert_true(f->has_failed);
	assert_int_equal(f->starts, 3);
	UNTIL(f, w->sandbox.state != SANDBOX_ENDING);
}

/* ---- the workspace that is made ahead ---- */

static void open_with_spare(struct fixture *f, uint64_t release_after_ms)
{
	close_core(f);
	f->keeps_spare = true;
	f->release_after_ms = release_after_ms;
	open_core(f);
	create(f, "first", (struct workspace){ 0 });
	UNTIL(f, f->core->spare && f->core->spare->sandbox.state == SANDBOX_UP);
	assert_int_equal(f->starts, 1);
}

static void count_listed_one(void *ctx, struct core_workspace *w)
{
	++*(int *)ctx;
}

static int count_listed(struct fixture *f)
{
	const struct core_filter filter = { .state = -1, .limit = 100 };
	char next[CORE_CURSOR_SIZE];
	struct error err;
	int count = 0;
	assert_int_equal(
		core_list(&request_system, f->core, &filter, count_listed_one, &count, next, &err),
		0);
	return count;
}

static void a_creation_takes_the_spare_workspace(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	struct core_workspace *spare = f->core->spare;
	char id[ID_LEN + 1];
	memcpy(id, spare->model.id, sizeof id);
	assert_null(find(f, id));
	assert_null(find(f, spare->model.name));
	assert_int_equal(count_listed(f), 1);
	create(f, "second", (struct workspace){ 0 });
	assert_false(f->has_failed);
	assert_string_equal(f->id, id);
	assert_ptr_equal(find(f, "second"), spare);
	assert_int_equal(spare->sandbox.state, SANDBOX_UP);
	assert_int_equal(spare->model.state, WORKSPACE_READY);
	assert_true(spare->model.created_ms > find(f, "first")->model.created_ms);
	assert_int_equal(count_listed(f), 2);
	assert_int_equal(spare->users, 0);
	/* And the next one is made. */
	UNTIL(f, f->core->spare);
	assert_ptr_not_equal(f->core->spare, spare);
}

/* It has no creation that would end: who asks for its id isn't kept waiting for one. */
static void a_creation_does_not_wait_for_the_spare_workspace(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	struct text_pair label = { WORKSPACE_CONTEXT_LABEL, f->core->spare->model.id };
	create(f, "second", (struct workspace){ .labels = { &label, 1, 1 } });
	assert_true(f->has_failed);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	assert_int_equal(count_listed(f), 1);
}

static void only_a_plain_creation_takes_it(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	struct core_workspace *spare = f->core->spare;
	struct workspace wanted[] = { { .limits = { .memory_bytes = 64 << 20 } },
		{ .ptrace = true }, { .id = "01234567890123456789" } };
	char name[] = "w0";
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++, name[1]++) {
		create(f, name, wanted[i]);
		assert_false(f->has_failed);
		assert_int_equal(find(f, name)->sandbox.state, SANDBOX_NONE);
		assert_ptr_equal(f->core->spare, spare);
	}
}

static void a_spare_workspace_that_is_not_wanted_goes(void **state)
{
	struct fixture *f = *state;
	char id[ID_LEN + 1];
	open_with_spare(f, 50);
	memcpy(id, f->core->spare->model.id, sizeof id);
	assert_true(tree_exists(f, id, "/upper"));
	UNTIL(f, !f->core->spare);
	assert_false(tree_exists(f, id, ""));
	assert_int_equal(f->ends, 1);
	create(f, "second", (struct workspace){ 0 });
	assert_false(f->has_failed);
}

static void the_last_workspace_takes_the_spare_one_with_it(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	core_remove(&request_system, find(f, "first"), "removed", NULL, NULL);
	UNTIL(f, !f->core->newest);
	assert_null(f->core->spare);
}

static void a_crash_leaves_nothing_of_the_spare_workspace(void **state)
{
	struct fixture *f = *state;
	open_with_spare(f, 60000);
	memcpy(f->running, f->core->spare->model.id, sizeof f->running);
	close_core(f);
	f->ends = 0;
	open_core(f);
	UNTIL(f, f->ends == 1);
	assert_false(tree_exists(f, f->running, ""));
	assert_int_equal(count_listed(f), 1);
}

static void a_spare_workspace_that_does_not_start_is_forgotten(void **state)
{
	struct fixture *f = *state;
	close_core(f);
	f->keeps_spare = f->refuses_start = true;
	open_core(f);
	create(f, "first", (struct workspace){ 0 });
	UNTIL(f, f->starts == 1 && !f->core->spare);
	assert_int_equal(count_listed(f), 1);
	f->refuses_start = false;
	f->dies_early = 9;
	create(f, "second", (struct workspace){ 0 });
	UNTIL(f, f->ends == 3 && !f->core->spare);
	assert_int_equal(count_listed(f), 2);
}

static void what_runs_is_adopted(void **state)
{
	struct fixture *f = *state;
	create(f, "alive", (struct workspace){ 0 });
	memcpy(f->running, f->id, sizeof f->running);
	listen_at(f, f->id);
	close_core(f);
	open_core(f);
	assert_true(core_now(find(f, "alive")).is_warm);
	assert_int_equal(f->starts, 0);
	id_make(f->running); /* one that nobody knows is ended */
	close_core(f);
	open_core(f);
	UNTIL(f, f->ends == 1);
	f->running[0] = 0;
}

static void on_woken_late(void *ctx, struct core_workspace *w, const struct error *err)
{
	assert_int_equal(w->model.state, WORKSPACE_DELETING);
	on_done(ctx, w, err);
}

static void removing_ends_what_runs(void **state)
{
	struct fixture *f = *state;
	create(f, "doomed", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "doomed");
	f->calls = 0;
	core_wake(w, NULL, on_woken_late, f);
	core_remove(&request_system, w, "removed", on_done, f); /* while it starts */
	UNTIL(f, f->calls == 2);
	assert_null(find(f, "doomed"));
	assert_int_equal(f->ends, 1);
}

/* Its tree is out of sight when the launcher looks for it. */
static void a_start_that_a_removal_overtakes_has_not_failed(void **state)
{
	struct fixture *f = *state;
	create(f, "doomed", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "doomed");
	f->refuses_start = true;
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	core_remove(&request_system, w, "removed", NULL, NULL);
	UNTIL(f, f->calls);
	assert_true(f->has_failed);
	assert_int_equal(f->err.code, ERR_NOT_FOUND);
	assert_non_null(strstr(f->err.text, "is being removed"));
	UNTIL(f, !find(f, "doomed"));
}

static void count_one(void *ctx, struct core_workspace *w)
{
	(*(int *)ctx)++;
}

static void lists_go_on_where_they_ended(void **state)
{
	struct fixture *f = *state;
	char next[CORE_CURSOR_SIZE], cursor[CORE_CURSOR_SIZE];
	struct error err;
	int seen = 0, pages = 0;
	struct workspace wanted = { 0 };
	f->calls = 0;
	for (int i = 0; i < 25; i++)
		core_create(&request_system, f->core, &wanted, on_done, f);
	UNTIL(f, f->calls == 25);
	struct core_filter filter = { .state = -1, .limit = 10 };
	do {
		assert_int_equal(
			core_list(&request_system, f->core, &filter, count_one, &seen, next, &err),
			0);
		memcpy(cursor, next, sizeof cursor);
		filter.cursor = cursor;
		pages++;
	} while (next[0]);
	assert_int_equal(seen, 25);
	assert_int_equal(pages, 3);
	filter.cursor = "x";
	assert_int_equal(
		core_list(&request_system, f->core, &filter, count_one, &seen, next, &err), -1);
}

static void on_stopped(void *ctx)
{
	*(bool *)ctx = true;
}

static void stopping_ends_all_sandboxes(void **state)
{
	struct fixture *f = *state;
	create(f, "last", (struct workspace){ 0 });
	struct core_workspace *w = find(f, "last");
	f->calls = 0;
	core_wake(w, NULL, on_done, f);
	UNTIL(f, f->calls);
	core_release(w);
	bool stopped = false;
	core_stop(f->core, on_stopped, &stopped);
	UNTIL(f, stopped);
	assert_int_equal(f->ends, 1);
	create(f, "late", (struct workspace){ 0 });
	assert_int_equal(f->err.code, ERR_UNAVAILABLE);
}

static off_t size_of(struct fixture *f, const char *path)
{
	char full[160];
	struct stat st;
	snprintf(full, sizeof full, "%s/%s", f->home, path);
	return stat(full, &st) ? -1 : st.st_size;
}

static void a_log_in_the_home_that_is_too_long_is_put_aside(void **state)
{
	struct fixture *f = *state;
	char path[160], line[64] = "";
	struct log was = f->core->log;
	snprintf(path, sizeof path, "%s/run/carrel.log", f->home);
	auto_close int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	auto_close int shared = dup(log); /* the launcher's */
	assert_int_equal(ftruncate(log, LOG_FILE_BYTES_MAX), 0);
	f->core->log = (struct log){ .fd = log };
	log_bound(f->core);
	assert_false(f->core->rotation.is_running);
	log_record(&f->core->log, LOG_LEVEL_INFO, "the last", NULL);
	off_t size = size_of(f, "run/carrel.log");
	log_bound(f->core);
	assert_true(f->core->rotation.is_running);
	log_bound(f->core); /* once */
	UNTIL(f, !f->core->rotation.is_running);
	assert_int_equal(size_of(f, "run/carrel.log"), 0);
	assert_int_equal(size_of(f, "run/carrel.log.1"), size);
	auto_close int aside = openat(f->core->home.dir, "run/carrel.log.1", O_RDONLY | O_CLOEXEC);
	assert_true(pread(aside, line, sizeof line - 1, size - 10) > 0);
	assert_string_equal(line, " the last\n");
	/* Both go on where it begins anew. */
	assert_int_equal(write(shared, "a\n", 2) + write(log, "b\n", 2), 4);
	assert_int_equal(size_of(f, "run/carrel.log"), 4);
	/* Another file isn't ours. */
	assert_int_equal(ftruncate(log, LOG_FILE_BYTES_MAX + 1) | unlink(path), 0);
	log_bound(f->core);
	assert_false(f->core->rotation.is_running);
	f->core->log = was;
}

static void keys_are_a_principals_own(void **state)
{
	struct fixture *f = *state;
	const struct principal who[] = { { PRINCIPAL_UID, .uid = 1000, .scopes = SCOPE_ALL },
		{ PRINCIPAL_UID, .uid = 1001, .scopes = SCOPE_ALL } };
	const struct request first = { &who[0], "", DOOR_REST, 0 },
			     second = { &who[1], "", DOOR_REST, 0 };
	struct idempotency_answer known, made = { 201, STR("{}"), NULL };
	struct idempotency_waiter waiter = { 0 };
	struct idempotency_entry *entry, *other;
	auto_arena struct arena arena;
	struct idempotency all;
	char id[ID_LEN + 1];
	struct error err;
	arena_init(&arena);
	idempotency_init(&all, f->core);
#define BEGIN(request, body, entry)                                                                \
	idempotency_begin(&all, request, "POST /v1/workspaces", "key", STR(body), &arena, &waiter, \
		entry, id, &known, &err)
	assert_int_equal(BEGIN(&first, "{}", &entry), IDEMPOTENCY_NEW);
	assert_int_equal(BEGIN(&first, "{}", &other), IDEMPOTENCY_WAIT);
	idempotency_forget(&all, &waiter);
	assert_int_equal(BEGIN(&second, "other", &other), IDEMPOTENCY_NEW);
	idempotency_end(entry, &made);
	UNTIL(f, !map_get(&all.running, STR("uid 1000: POST /v1/workspaces\nkey")));
	assert_int_equal(BEGIN(&first, "{}", &entry), IDEMPOTENCY_KNOWN);
	assert_int_equal(known.status, 201);
	assert_int_equal(BEGIN(&first, "other", &entry), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	idempotency_end(other, NULL);
	idempotency_done(&all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_created_is_there_after_a_crash),
		TEST(a_name_is_taken_once),
		TEST(a_context_id_finds_like_a_name),
		TEST(what_was_removed_is_gone_and_says_so),
		TEST(what_is_half_made_is_removed_at_the_start),
		TEST(what_is_made_again_is_not_taken_for_a_removal),
		TEST(a_removal_that_has_a_row_is_finished_after_a_crash),
		TEST(a_tree_without_a_row_is_half_made_also_in_a_new_home),
		TEST(trees_of_a_lost_database_are_kept),
		TEST(what_expires_goes_by_itself),
		TEST(a_wall_clock_that_jumps_expires_nothing),
		TEST(an_idle_one_is_suspended_and_wakes),
		TEST(a_name_of_an_earlier_version_is_kept),
		TEST(many_who_wait_share_one_start),
		TEST(a_start_that_fails_is_told_and_tried_again),
		TEST(who_waits_for_one_that_dies_early_gets_another),
		TEST(a_creation_takes_the_spare_workspace),
		TEST(a_creation_does_not_wait_for_the_spare_workspace),
		TEST(only_a_plain_creation_takes_it),
		TEST(a_spare_workspace_that_is_not_wanted_goes),
		TEST(the_last_workspace_takes_the_spare_one_with_it),
		TEST(a_crash_leaves_nothing_of_the_spare_workspace),
		TEST(a_spare_workspace_that_does_not_start_is_forgotten),
		TEST(what_runs_is_adopted),
		TEST(removing_ends_what_runs),
		TEST(a_start_that_a_removal_overtakes_has_not_failed),
		TEST(lists_go_on_where_they_ended),
		TEST(stopping_ends_all_sandboxes),
		TEST(a_log_in_the_home_that_is_too_long_is_put_aside),
		TEST(keys_are_a_principals_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
