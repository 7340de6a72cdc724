/* execs_fixture.h -- core/execs/execs.c over a real carrel-init without a sandbox around it. What
 * the other files of core do is played here: sandboxes come up, end, and rows are written. */
#pragma once
#include <dirent.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "base/path.h"
#include "core/access/approvals.h"
#include "core/access/policies.h"
#include "core/execs/internal.h"
#include "core/execs/execs.h"
#include "core/access/internal.h"
#include "init_fixture.h"

#define SHELL(text) "sh", "-c", text

struct put { /* one write of the store */
	char id[ID_LEN + 1];
	enum exec_state state;
	struct result result;
	char error[128];
	bool is_removal;
	store_done_fn *done;
	void *ctx;
};

/* Starts execs: request_system is for carrel's own commands, which are not kept. */
static struct request client;

struct world {
	struct access access;
	char dir[64];
	struct loop *loop;
	struct core core;
	struct core_workspace w;
	struct init init;
	unsigned long namespaces;
	bool refuses_wake; /* no sandbox can be had */
	bool init_dies;	   /* each as soon as it is there */
	bool holds_store;  /* writes aren't committed until flush */
	struct put puts[2048];
	size_t put_count, put_done;
	int ends; /* sandboxes that were ended */
	enum reason end_reason;
	struct loop_timer *gone, *flush, *patience;
	bool *until;
};
static struct world *world;

/* ---- what execs.c calls ---- */

void core_hold(struct core_workspace *w)
{
	w->users++;
}

void core_release(struct core_workspace *w)
{
	assert_true(w->users > 0);
	w->users--;
}

void disk_usage_changed(struct core_workspace *w)
{
}

void core_touch(struct core_workspace *w)
{
}

bool sandbox_has_processes(const struct core_workspace *w)
{
	return false;
}

static inline void end_world_init(void)
{
	if (world->init.pid > 0) {
		kill(world->init.pid, SIGKILL);
		waitpid(world->init.pid, NULL, 0);
	}
	world->init.pid = 0;
}

static inline void on_gone(struct loop *loop, void *ctx)
{
	struct core_sandbox *sandbox = &world->w.sandbox;
	world->gone = NULL;
	end_world_init();
	execs_sandbox_gone(&world->w);
	assert_null(sandbox->connection);
	assert_null(sandbox->execs);
	assert_int_equal(sandbox->exec_count, 0);
	fd_close(&sandbox->view.init);
	sandbox_move(sandbox, SANDBOX_NONE);
	sandbox->limit = REASON_EXITED;
	fd_close(&world->init.listener);
}

void core_end_sandbox(struct core_workspace *w, enum reason reason)
{
	struct core_sandbox *sandbox = &w->sandbox;
	if (!sandbox->limit) {
		sandbox->limit = reason;
		world->end_reason = reason;
	}
	if (sandbox->state != SANDBOX_UP)
		return;
	sandbox_move(sandbox, SANDBOX_ENDING);
	world->ends++;
	world->gone = loop_after(world->loop, 0, on_gone, NULL);
}

static inline int bring_up(struct error *err)
{
	struct core_sandbox *sandbox = &world->w.sandbox;
	if (world->init.pid <= 0)
		world->init = start_warm_with(world->namespaces);
	else
		world->init.socket = connect_to(&world->init);
	if (world->init.pid <= 0)
		return fail_errno(err, "start init");
	sandbox->view.init = take_fd(&world->init.socket);
	if (execs_attach(&world->w, err))
		return -1;
	sandbox_move(sandbox, SANDBOX_UP);
	if (world->init_dies) {
		siginfo_t info;
		fd_close(&world->init.listener);
		kill(world->init.pid, SIGKILL);
		assert_int_equal(waitid(P_PID, (id_t)world->init.pid, &info, WEXITED | WNOWAIT), 0);
	}
	return 0;
}

/* One that is played: it gets what is sent to init, and answers as it likes. */
static inline int play_init(void)
{
	int ends[2];
	struct error err;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	world->w.sandbox.view.init = ends[0];
	assert_int_equal(execs_attach(&world->w, &err), 0);
	sandbox_move(&world->w.sandbox, SANDBOX_UP);
	return ends[1];
}

struct waiter {
	core_workspace_fn *fn;
	void *ctx;
};

static inline void on_wake(struct loop *loop, void *ctx)
{
	struct waiter *waiter = ctx;
	struct error err;
	if (world->w.sandbox.state == SANDBOX_ENDING) {
		loop_after(loop, 1, on_wake, waiter);
		return;
	}
	if (world->refuses_wake || (world->w.sandbox.state != SANDBOX_UP && bring_up(&err))) {
		fail(&err, ERR_UNAVAILABLE, "no sandbox today");
		waiter->fn(waiter->ctx, &world->w, &err);
	} else {
		core_hold(&world->w);
		waiter->fn(waiter->ctx, &world->w, NULL);
	}
	free(waiter);
}

void core_wake(struct core_workspace *w, const char *request_id, core_workspace_fn *done, void *ctx)
{
	struct waiter *waiter = calloc(1, sizeof *waiter);
	*waiter = (struct waiter){ done, ctx };
	loop_after(world->loop, 0, on_wake, waiter);
}

static inline void commit(void)
{
	while (world->put_done < world->put_count) {
		struct put *put = &world->puts[world->put_done++];
		if (put->done)
			put->done(put->ctx, NULL);
	}
}

static inline void on_flush(struct loop *loop, void *ctx)
{
	world->flush = NULL;
	commit();
}

static inline void queue_put(struct put put)
{
	assert_true(world->put_count < sizeof world->puts / sizeof *world->puts);
	world->puts[world->put_count++] = put;
	if (!world->holds_store && !world->flush)
		world->flush = loop_after(world->loop, 0, on_flush, NULL);
}

const struct store_table store_execs = { "execs", &exec_fields, sizeof(struct exec_record) };

void store_put(struct store *store, const struct store_table *table, const void *object,
	store_done_fn *done, void *ctx)
{
	const struct exec_record *e = object;
	struct put put = { .state = e->state, .result = e->result, .done = done, .ctx = ctx };
	memcpy(put.id, e->id, sizeof put.id);
	str_copy(put.error, sizeof put.error, e->error ? e->error : "");
	queue_put(put);
}

void store_remove(struct store *store, const struct store_table *table, const char *id,
	const struct store_gone *gone, store_done_fn *done, void *ctx)
{
	struct put put = { .is_removal = true, .done = done, .ctx = ctx };
	memcpy(put.id, id, sizeof put.id);
	queue_put(put);
}

/* Nothing is asked here: core/access/approvals.c has its own tests. */
int approval_ask(const char *requested_by, struct core_workspace *w,
	const struct approval_question *question, approval_fn *done, void *ctx, char id[ID_LEN + 1],
	struct error *err)
{
	return fail(err, ERR_UNAVAILABLE, "nobody is asked");
}

void approval_withdraw(struct core *core, const char *id)
{
}

const struct approval *approval_await(
	struct core *core, const char *exec, approval_fn *done, void *ctx)
{
	return NULL;
}

void approval_begun(struct core *core, const char *id)
{
}

const struct approval *approval_of(const struct core *core, const char *id)
{
	return NULL;
}

void approval_overrule(struct core *core, const char *id, const char *note)
{
}

/* ---- the world ---- */

static inline void open_core(void)
{
	struct core *core = &world->core;
	struct error err;
	struct core_workspace *w = &world->w;
	assert_int_equal(loop_new(&world->loop, &err), 0);
	client = request_system;
	*core = (struct core){ .loop = world->loop, .is_ready = true };
	core->log = (struct log){ .fd = -1, .least = LOG_LEVEL_ERROR };
	map_init(&core->ids, NULL);
	core->access = &world->access;
	map_init(&core->access->compiled.by_key, NULL);
	journal_init(&core->journal, 1);
	auto_close int dir = open(world->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(execs_open(core, 0, dir, &err), 0);
	core->workspaces = openat(dir, "workspaces", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(core->workspaces >= 0);
	core->newest = core->oldest = w;
	w->core = core;
	w->users = 0;
	w->sandbox = (struct core_sandbox){ 0 };
	view_init(&w->sandbox.view);
	w->sandbox.view.fds[LAUNCH_FD_TERMINALS] =
		openat(dir, "root/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	map_add(&core->ids, str_from(w->model.id), w);
}

/* As a core that dies: nothing is said to anybody. */
static inline void drop_core(void)
{
	struct core *core = &world->core;
	struct error err;
	execs_done(core);
	policies_forget(&world->w);
	policies_close(core);
	fail(&err, ERR_CANCELED, "nobody is there any more");
	while (world->put_done < world->put_count) {
		struct put *put = &world->puts[world->put_done++];
		if (put->done)
			put->done(put->ctx, &err);
	}
	world->gone = world->flush = world->patience = NULL;
	fd_close(&world->w.sandbox.view.init);
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		fd_close(&world->w.sandbox.view.fds[i]);
	loop_free(world->loop);
	map_done(&core->ids);
	journal_done(&core->journal);
	execs_close(core);
	fd_close(&core->workspaces);
}

static inline int open_world(void **state)
{
	char path[96];
	world = calloc(1, sizeof *world);
	world->init.socket = world->init.listener = -1;
	signal(SIGPIPE, SIG_IGN);
	str_copy(world->dir, sizeof world->dir, "/tmp/unit-execs-XXXXXX");
	assert_non_null(mkdtemp(world->dir));
	static const char *const directories[] = { "execs", "workspaces", "root", "root/dev",
		"root/dev/pts" };
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
		str_format(path, sizeof path, "%s/%s", world->dir, directories[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	str_format(path, sizeof path, "%s/root/dev/pts/ptmx", world->dir);
	assert_int_equal(symlink("/dev/ptmx", path), 0);
	id_make(world->w.model.id);
	packages_attach(&world->w);
	file_servers_attach(&world->w);
	world->w.model.name = "desk";
	world->w.model.state = WORKSPACE_READY;
	str_format(path, sizeof path, "%s/workspaces/%s", world->dir, world->w.model.id);
	assert_int_equal(mkdir(path, 0700), 0);
	str_format(path, sizeof path, "%s/workspaces/%s/upper", world->dir, world->w.model.id);
	assert_int_equal(mkdir(path, 0700), 0);
	open_core();
	return 0;
}

static inline int close_world(void **state)
{
	struct error err;
	assert_int_equal(world->w.users, 0);
	assert_int_equal(world->core.execs->fds.held, 0);
	drop_core();
	end_world_init();
	fd_close(&world->init.listener);
	auto_close int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(path_remove_tree(tmp, world->dir + 5, &err), 0);
	file_servers_free(&world->w);
	packages_detach(&world->w);
	free(world);
	world = NULL;
	return 0;
}
#define EXEC_TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

static inline void on_patience(struct loop *loop, void *ctx)
{
	world->patience = NULL;
	fail_msg("nothing came");
}

static inline void on_turn(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

/* Turns the loop until *flag. */
static inline void run_until(const bool *flag)
{
	struct error err;
	world->patience = loop_after(world->loop, PATIENCE_MS, on_patience, NULL);
	while (!*(const volatile bool *)flag) {
		struct loop_timer *turn = loop_after(world->loop, 2, on_turn, NULL);
		(void)turn;
		assert_int_equal(loop_run(world->loop, &err), 0);
	}
	loop_cancel(world->loop, world->patience);
	world->patience = NULL;
}

static inline void run_for(uint64_t ms)
{
	struct error err;
	loop_after(world->loop, ms, on_turn, NULL);
	assert_int_equal(loop_run(world->loop, &err), 0);
}

/* Turns the loop until it is so. */
#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		uint64_t end_ms_ = clock_monotonic_ms() + PATIENCE_MS;                             \
		while (!(condition)) {                                                             \
			assert_true(clock_monotonic_ms() < end_ms_);                               \
			run_for(1);                                                                \
		}                                                                                  \
	} while (0)

/* ---- one exec ---- */

struct seen {
	bool started, ended, has_failed;
	int outputs;
	struct error err;
	struct exec_record record;
	struct buf out, errors; /* captured, or streamed */
	char error[256];
	bool pauses; /* after each output */
};

static inline void on_seen_started(void *ctx, struct core_exec *e)
{
	struct seen *seen = ctx;
	assert_false(seen->started || seen->ended);
	seen->started = true;
}

static inline void on_seen_output(void *ctx, struct core_exec *e, int stream, struct str data)
{
	struct seen *seen = ctx;
	assert_false(seen->ended);
	seen->outputs++;
	buf_append(stream == 1 ? &seen->out : &seen->errors, data.data, data.len);
	if (seen->pauses)
		exec_pause(e, true);
}

static inline void on_seen_ended(void *ctx, struct core_exec *e, const struct error *err)
{
	struct seen *seen = ctx;
	assert_false(seen->ended);
	seen->ended = true;
	seen->has_failed = err != NULL;
	if (err)
		seen->err = *err;
	seen->record = e->record;
	str_copy(seen->error, sizeof seen->error, e->record.error ? e->record.error : "");
	if (e->mode == EXEC_CAPTURED) {
		const struct buf *streams = e->captured.streams;
		buf_append(&seen->out, streams[0].data, streams[0].len);
		buf_append(&seen->errors, streams[1].data, streams[1].len);
	}
}

static inline struct exec_listener listen_with(struct seen *seen)
{
	*seen = (struct seen){ 0 };
	buf_init(&seen->out, SIZE_MAX);
	buf_init(&seen->errors, SIZE_MAX);
	return (struct exec_listener){
		.output = on_seen_output, .ended = on_seen_ended, .ctx = seen
	};
}

static inline void done_with(struct seen *seen)
{
	buf_done(&seen->out);
	buf_done(&seen->errors);
}
#define auto_seen __attribute__((cleanup(done_with)))

static inline text_list texts(const char *const *argv)
{
	text_list made = { (const char **)(uintptr_t)argv, 0, 0 };
	while (argv[made.count])
		made.count++;
	return made;
}

#define SPEC(...) ((struct exec_spec){ .argv = texts(ARGV(__VA_ARGS__)), .cwd = "/" })

static inline struct core_exec *start_exec(struct seen *seen, const struct exec_spec *spec,
	enum exec_mode mode, const int fds[3], bool wants_started)
{
	struct exec_listener listener = listen_with(seen);
	struct core_exec *e = NULL;
	struct error err;
	if (wants_started)
		listener.started = on_seen_started;
	if (exec_start(&client, &world->w, spec, mode, fds, &listener, &e, &err))
		fail_msg("%s", err.text);
	assert_false(seen->started || seen->ended || seen->outputs);
	return e;
}

static inline void run_captured(struct seen *seen, const struct exec_spec *spec)
{
	start_exec(seen, spec, EXEC_CAPTURED, NULL, false);
	run_until(&seen->ended);
}

static inline void assert_exited(const struct seen *seen, int code)
{
	if (seen->has_failed)
		print_error("%s\n", seen->err.text);
	assert_false(seen->has_failed);
	assert_string_equal(reason_names[seen->record.result.reason], "exited");
	assert_int_equal(seen->record.result.exit_status, code);
	assert_int_equal(seen->record.state, EXEC_ENDED);
}

static inline void assert_reason(const struct seen *seen, enum reason reason)
{
	assert_false(seen->has_failed);
	assert_string_equal(reason_names[seen->record.result.reason], reason_names[reason]);
}

static inline size_t count_fds(void)
{
	size_t count = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}
