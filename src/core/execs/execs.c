#include "core/execs/execs.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/access/audit_records.h"
#include "core/access/policies.h"
#include "core/execs/internal.h"
#include "linux/pty.h"

#define FDS_AN_EXEC 6 /* at most */
#define PING_MS 10000
#define KILLED_MS 5000 /* for a killed command to end */
#define TRIES_MAX 3

int execs_open(struct core *core, uint64_t captured_max, int run, struct error *err)
{
	struct rlimit limit;
	cpu_set_t cpus;
	struct execs *execs = core->execs = xzalloc(sizeof *execs);
	execs->core = core;
	execs->captured_max = captured_max ? captured_max : CORE_CAPTURED_MAX_DEFAULT;
	execs->spool = execs->inotify = -1;
	execs->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 2; i++)
		execs->outputs[i][0] = execs->outputs[i][1] = -1;
	execs->kept_last = &execs->kept;
	execs->ping_ms = PING_MS;
	map_init(&execs->by_id, NULL);
	map_init(&execs->watches, NULL);
	execs->cpus = sched_getaffinity(0, sizeof cpus, &cpus) ? 64 : (unsigned)CPU_COUNT(&cpus);
	/* The rest is for clients, files, and whatever else wants a descriptor. */
	size_t fds_most = getrlimit(RLIMIT_NOFILE, &limit) ? 512 : limit.rlim_cur / 4 * 3;
	shares_init(&execs->fds, "descriptors of running commands",
		"wait until some have ended, or raise the limit of open files (ulimit -n)",
		fds_most, fds_most / 2);
	return path_make_directories(run, "execs", 0700, &execs->spool, err);
}

uint64_t execs_captured_bytes(const struct core *core)
{
	return core->execs->captured_bytes;
}

int execs_null(const struct core *core)
{
	return core->execs->null;
}

/* ---- captured output ---- */

static void captured_init(struct exec_captured *captured, struct core *core)
{
	*captured = (struct exec_captured){ .core = core };
	for (int i = 0; i < 2; i++)
		buf_init(&captured->streams[i], SIZE_MAX);
}

void exec_captured_done(struct exec_captured *captured)
{
	for (int i = 0; i < 2; i++) {
		captured->core->execs->captured_bytes -= captured->streams[i].len;
		buf_done(&captured->streams[i]);
	}
}

bool exec_captured_is_short(const struct core *core)
{
	return core->execs->captured_bytes > core->execs->captured_max / 2;
}

struct exec_captured exec_take_captured(struct core_exec *e)
{
	struct exec_captured taken = e->captured;
	captured_init(&e->captured, taken.core);
	return taken;
}

/* ---- what is shown of one ---- */

const struct exec_record *exec_record_of(const struct core_exec *e)
{
	return &e->record;
}

const char *exec_limiter(const struct core_exec *e)
{
	return view_limiter(&e->workspace->sandbox.view);
}

int exec_terminal(const struct core_exec *e)
{
	return e->mode == EXEC_HANDED_PTY ? e->terminal : -1;
}

const struct exec_captured *exec_captured_of(const struct core_exec *e)
{
	return &e->captured;
}

/* ---- made and freed ---- */

/* init knows an exec by the first 60 bits of its id: twelve letters of five. */
static uint64_t number_of(const char *id)
{
	uint64_t number = 0;
	for (int i = 0; i < 12; i++) {
		unsigned char c = (unsigned char)id[i];
		number = number << 5 | (uint64_t)(c >= 'a' ? c - 'a' + 10 : c - '0');
	}
	return number;
}

/* One piece of memory with its texts behind it: thousands of them may be kept. */
struct core_exec *exec_new(
	struct core_workspace *w, const struct exec_record *record, enum exec_mode mode)
{
	size_t pointers = (record->argv.count + 1) * sizeof(char *), size = strlen(record->cwd) + 1;
	for (size_t i = 0; i < record->argv.count; i++)
		size += strlen(record->argv.items[i]) + 1;
	struct core_exec *e = xzalloc(sizeof *e + pointers + size);
	const char **argv = (const char **)(e + 1);
	char *at = (char *)argv + pointers;
	*e = (struct core_exec){ .record = *record,
		.core = w->core,
		.workspace = w,
		.mode = mode,
		.stage = STAGE_WAITING,
		.terminal = -1,
		.number = number_of(record->id),
		.texts_bytes = pointers + size,
		.stdin_fd = -1,
		.spool = -1,
		.fds = { -1, -1, -1 },
		.watches = { -1, -1 },
		.rotators = { -1, -1 } };
	for (size_t i = 0; i < record->argv.count; i++) {
		argv[i] = at;
		at = stpcpy(at, record->argv.items[i]) + 1;
	}
	e->record.argv = (text_list){ argv, record->argv.count, 0 };
	e->record.cwd = memcpy(at, record->cwd, strlen(record->cwd) + 1);
	arena_init(&e->arena);
	e->record.error = arena_text(&e->arena, record->error);
	captured_init(&e->captured, w->core);
	for (int i = 0; i < 2; i++)
		e->streams[i] = (struct exec_stream){ .fd = -1, .inside = -1 };
	map_add(&w->core->execs->by_id, str_from(e->record.id), e);
	return e;
}

void exec_disarm_timeout(struct core_exec *e)
{
	loop_cancel(e->core->loop, e->timeout);
	e->timeout = NULL;
}

void exec_free(struct core_exec *e)
{
	struct core *core = e->core;
	exec_unask(e);
	exec_unlink(e);
	streams_close(e);
	spool_unwatch(e);
	exec_disarm_timeout(e);
	loop_cancel(core->loop, e->later);
	loop_cancel(core->loop, e->look);
	map_remove(&core->execs->by_id, str_from(e->record.id));
	exec_captured_done(&e->captured);
	share_release(&e->share);
	arena_done(&e->arena);
	e->is_freed = true;
	if (!e->awaited)
		free(e);
}

bool exec_came_back(struct core_exec *e)
{
	bool is_freed = e->is_freed;
	if (!--e->awaited && is_freed)
		free(e);
	return !is_freed;
}

void exec_link(struct core_exec *e)
{
	struct core_sandbox *sandbox = &e->workspace->sandbox;
	e->next = sandbox->execs;
	sandbox->execs = e;
	sandbox->exec_count++;
	e->is_linked = true;
}

void exec_unlink(struct core_exec *e)
{
	if (!e->is_linked)
		return;
	struct core_sandbox *sandbox = &e->workspace->sandbox;
	struct core_exec **at = &sandbox->execs;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	e->next = NULL;
	sandbox->exec_count--;
	e->is_linked = false;
}

/* ---- the start ---- */

static int fail_count(struct error *err)
{
	return fail_hint(err, ERR_LIMIT, "wait until one of them has ended, or kill one",
		"%d commands run in this workspace already", INIT_EXECS_MAX);
}

/* name: of the principal; NULL: its share doesn't count. */
static int check_room(struct core_workspace *w, const char *name, struct error *err)
{
	const struct core_sandbox *sandbox = &w->sandbox;
	const struct execs *execs = w->core->execs;
	unsigned unacknowledged = sandbox->connection ? sandbox->connection->unacknowledged : 0;
	if (sandbox->exec_count + unacknowledged >= INIT_EXECS_MAX)
		return fail_count(err);
	return shares_check(&execs->fds, name, FDS_AN_EXEC, err);
}

static int check_env(const pair_list *env, struct error *err)
{
	for (size_t i = 0; i < env->count; i++)
		if (!*env->items[i].key || strchr(env->items[i].key, '='))
			return fail(err, ERR_INVALID,
				"invalid name of an environment variable '%s'", env->items[i].key);
	return 0;
}

/* Checks an id that the caller chose. init identifies an exec by the first digits of its id, so
 * they must be unique in the sandbox. */
static int check_id(struct core_workspace *w, const char *id, struct error *err)
{
	bool is_taken = map_get(&w->core->execs->by_id, str_from(id)) != NULL;
	if (!id_is_valid(id) || !number_of(id))
		return fail(err, ERR_INVALID, "invalid id of an exec '%s'", id);
	for (struct core_exec *e = w->sandbox.execs; e && !is_taken; e = e->next)
		is_taken = e->number == number_of(id);
	return is_taken ? fail(err, ERR_CONFLICT, "exec '%s' already exists", id) : 0;
}

/* Output that doesn't pass through here isn't counted here: in a workspace that limits it, its
 * reader does, and shows by naming the limit that it knows. */
static int check_counted(struct core_workspace *w, const struct exec_spec *spec,
	enum exec_mode mode, struct error *err)
{
	if (!exec_is_handed(mode) || spec->output_bytes || !w->model.limits.output_bytes)
		return 0;
	return fail_hint(err, ERR_CONFLICT,
		"set limits.output in the request, and enforce it in the client",
		"workspace '%s' has an output limit, which core can't enforce on passed streams",
		w->model.name);
}

static int check_start(struct core_workspace *w, const char *name, const struct exec_spec *spec,
	enum exec_mode mode, const int fds[3], struct error *err)
{
	if (w->core->is_stopping)
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	if (w->is_gone || w->model.state == WORKSPACE_DELETING)
		return fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
	if (!spec->argv.count || !*spec->argv.items[0])
		return fail(err, ERR_INVALID, "no command was given");
	if (spec->background != (mode == EXEC_SPOOLED))
		return fail(err, ERR_INVALID,
			"a background command can't stream or capture its output");
	if (spec->id && check_id(w, spec->id, err))
		return -1;
	if (check_env(&spec->env, err) || check_room(w, name, err) ||
		check_counted(w, spec, mode, err))
		return -1;
	return mode == EXEC_HANDED ? streams_check_handed(fds, err) : 0;
}

static uint64_t first_of(uint64_t a, uint64_t b, uint64_t c)
{
	return a ? a : b ? b : c;
}

static void fill_record(struct core_workspace *w, const struct exec_spec *spec, enum exec_mode mode,
	struct exec_record *record)
{
	const struct limits *limits = &w->model.limits;
	bool is_kept = mode == EXEC_CAPTURED || mode == EXEC_SPOOLED;
	bool has_terminal = spec->tty || mode == EXEC_HANDED_PTY;
	*record = (struct exec_record){ .argv = spec->argv,
		.cwd = spec->cwd ? spec->cwd : plan_view_path(w->model.view),
		.background = spec->background,
		.tty = has_terminal,
		.started_ms = clock_now_ms(),
		.timeout_ms = first_of(spec->timeout_ms, limits->timeout_ms,
			spec->background || has_terminal ? 0 : EXEC_TIMEOUT_DEFAULT_MS),
		.cpu_time_ms = first_of(spec->cpu_time_ms, limits->cpu_time_ms, 0),
		.output_cap_bytes = first_of(spec->output_bytes, limits->output_bytes,
			is_kept ? LIMIT_OUTPUT_CAPTURED_DEFAULT : 0) };
	record->timeout_ms = policies_limit_time(w, record->timeout_ms);
	memcpy(record->workspace, w->model.id, sizeof record->workspace);
	/* 0 is init's own: no exec may have it for its number. */
	if (spec->id)
		memcpy(record->id, spec->id, sizeof record->id);
	else
		do
			id_make(record->id);
		while (!number_of(record->id));
}

void exec_make_background(struct core_exec *e)
{
	struct core_workspace *w = e->workspace;
	struct exec_record record;
	e->mode = EXEC_SPOOLED;
	e->spec->background = true;
	fill_record(w, e->spec, EXEC_SPOOLED, &record);
	e->record.background = true;
	e->record.tty = record.tty;
	e->record.timeout_ms = record.timeout_ms;
	e->record.output_cap_bytes = record.output_cap_bytes;
}

static void on_timeout(struct loop *loop, void *ctx)
{
	struct core_exec *e = ctx;
	e->timeout = NULL;
	exec_kill(e, REASON_TIMEOUT);
}

void exec_arm_timeout(struct core_exec *e, uint64_t delay_ms)
{
	e->timeout = loop_after(e->core->loop, delay_ms, on_timeout, e);
}

static int spawn(
	struct core_exec *e, const struct exec_spec *spec, const int handed[3], struct error *err)
{
	struct core_workspace *w = e->workspace;
	if (check_room(w, share_name(&e->share), err) ||
		(!e->has_streams && streams_open(e, spec, handed, err)))
		return -1;
	e->has_streams = true;
	watch_spawning(w, e);
	exec_link(e);
	if (connection_spawn(e, spec, err)) {
		exec_unlink(e);
		streams_close(e);
		e->has_streams = false;
		return -1;
	}
	return 0;
}

static bool can_enter(const struct core_workspace *w)
{
	return w->sandbox.state == SANDBOX_UP && !w->sandbox.is_damaged &&
	       !w->sandbox.connection->is_broken;
}

static void go(struct core_exec *e);

static void on_awake(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct core_exec *e = ctx;
	if (exec_came_back(e) && e->stage == STAGE_WAITING) {
		if (err)
			exec_failed(e, err);
		else
			go(e);
	}
	if (!err)
		core_release(w); /* e has its own */
}

/* Continues an exec that waited. */
static void go(struct core_exec *e)
{
	struct error err;
	if (!can_enter(e->workspace)) {
		e->awaited++;
		core_wake(e->workspace, e->request_id, on_awake, e);
		return;
	}
	if (policies_check_env(e->workspace, &e->spec->env, &err)) {
		exec_lost(e, REASON_DENIED, arena_text(&e->arena, err.text));
		return;
	}
	if (spawn(e, e->spec, NULL, &err))
		exec_failed(e, &err);
}

void exec_again(struct core_exec *e)
{
	connection_withdraw(e->workspace, e);
	watch_forget(e->workspace, e);
	exec_unlink(e);
	if (++e->tries < TRIES_MAX)
		go(e);
	else
		exec_lost(e, REASON_CANCELED,
			"its sandbox ended repeatedly before the command could start");
}

static void on_row(void *ctx, const struct error *err)
{
	struct core_exec *e = ctx;
	if (!exec_came_back(e) || e->stage != STAGE_WAITING)
		return;
	if (err) {
		exec_failed(e, err);
		return;
	}
	fault_point("core_exec_row");
	go(e);
}

void exec_keep_spec(struct core_exec *e, const struct exec_spec *spec)
{
	if (e->spec)
		return;
	struct exec_spec *kept = e->spec = arena_alloc(&e->arena, sizeof *kept);
	*kept = *spec;
	kept->id = NULL;
	kept->argv = e->record.argv;
	kept->command = spec->command ? kept->argv.items[kept->argv.count - 1] : NULL;
	kept->cwd = e->record.cwd;
	kept->env = pair_list_copy(&e->arena, &spec->env);
	policies_keep_env(e->workspace, &e->arena, &kept->env);
	if (spec->stdin_text.len)
		kept->stdin_text.data =
			arena_bytes(&e->arena, spec->stdin_text.data, spec->stdin_text.len);
}

static void store_first(struct core_exec *e)
{
	e->awaited++;
	store_put(e->core->store, &store_execs, &e->record, on_row, e);
}

void exec_begin(struct core_exec *e)
{
	e->began_ns = clock_monotonic_ns();
	e->record.started_ms = clock_now_ms();
	if (e->record.timeout_ms)
		exec_arm_timeout(e, e->record.timeout_ms);
	if (e->mode == EXEC_SPOOLED)
		store_first(e);
	else
		go(e);
}

/* Sends it off, or has it wait. */
static int begin(
	struct core_exec *e, const struct exec_spec *spec, const int fds[3], struct error *err)
{
	if (e->mode != EXEC_SPOOLED && can_enter(e->workspace))
		return spawn(e, spec, fds, err);
	if (e->mode == EXEC_HANDED && streams_keep(e, fds, err))
		return -1;
	exec_keep_spec(e, spec);
	if (e->mode == EXEC_SPOOLED)
		store_first(e);
	else
		go(e);
	return 0;
}

/* What the policy says, and whether the caller may have it learn. */
static int judge(const struct request *request, struct core_workspace *w,
	const struct exec_spec *spec, struct policy_inputs *inputs, struct policy_verdict *verdict,
	struct error *err)
{
	if (spec->policy != EXEC_POLICY_LEARN)
		return policies_judge_exec(request, w, spec, inputs, verdict, err);
	*verdict = (struct policy_verdict){ .decision = POLICY_ALLOW };
	return access_check(w->core, request, VERB_EXEC_LEARN, w, err) ||
			       policies_learn_exec(request, w, spec, err)
		       ? -1
		       : 0;
}

int exec_start(const struct request *request, struct core_workspace *w,
	const struct exec_spec *asked, enum exec_mode mode, const int fds[3],
	const struct exec_listener *listener, struct core_exec **exec, struct error *err)
{
	struct exec_record record;
	struct exec_spec own = *asked, *spec = &own;
	uint64_t now_ns = clock_monotonic_ns();
	auto_arena struct arena arena = { 0 };
	struct policy_inputs inputs = { .arena = &arena };
	struct policy_verdict verdict;
	char caller[PRINCIPAL_NAME_SIZE];
	/* What carrel does itself is nobody's share. */
	const char *name =
		request == &request_system ? NULL : access_holder(access_caller(request, caller));
	/* As it is judged: ".." behind a link would lead elsewhere. */
	if (spec->cwd)
		own.cwd = path_normalize(&arena, plan_view_path(w->model.view), spec->cwd);
	if (access_check(w->core, request, VERB_EXEC_START, w, err) ||
		check_start(w, name, spec, mode, fds, err) ||
		judge(request, w, spec, &inputs, &verdict, err))
		return -1;
	bool is_asked = verdict.decision == POLICY_ASK;
	bool is_looked = is_asked && policy_inputs_next(&inputs);
	if (is_asked && !is_looked && spec->approval == EXEC_APPROVAL_RETURN) {
		own.background = true;
		mode = EXEC_SPOOLED;
	}
	fill_record(w, spec, mode, &record);
	struct core_exec *e = exec_new(w, &record, mode);
	e->listener = *listener;
	share_join(&w->core->execs->fds, name, &e->share);
	e->is_internal = request == &request_system;
	e->is_cli = access_is_cli(request);
	e->began_ns = now_ns;
	str_copy(e->request_id, sizeof e->request_id, request->id);
	if (!e->is_internal)
		audit_exec_start(request, w, &e->record, spec, &e->actor);
	if (is_looked	   ? exec_look(request, e, spec, fds, err)
		: is_asked ? exec_ask(request, e, spec, fds, &verdict, err)
			   : begin(e, spec, fds, err)) {
		w->core->metrics.exec_failures++;
		exec_audit_end(e, err);
		exec_free(e);
		return -1;
	}
	core_hold(w);
	core_touch(w);
	if (record.timeout_ms && !is_asked)
		exec_arm_timeout(e, record.timeout_ms);
	*exec = e;
	return 0;
}

void exec_started(struct core_exec *e)
{
	struct core_workspace *w = e->workspace;
	fault_point("core_exec_started");
	exec_move(e, STAGE_RUNNING);
	streams_started(e);
	if (e->record.background) {
		spool_tell_followers(e);
		journal_emit(&w->core->journal, "exec.started", w->model.id, w->model.name, "exec",
			e->record.id, NULL);
		log_record(&w->core->log, LOG_LEVEL_INFO, "background exec started", "exec",
			e->record.id, "workspace", w->model.id, "request_id", e->request_id, NULL);
	}
	if (e->listener.ended && e->listener.started)
		e->listener.started(e->listener.ctx, e);
}

/* ---- while it runs ---- */

/* Another process of the sandbox can hold the end of one that was killed: by tracing it. init ends
 * tracers as well, but one that comes right after its look is missed. */
static void on_not_ended(struct loop *loop, void *ctx)
{
	struct core_exec *e = ctx;
	struct core_workspace *w = e->workspace;
	e->timeout = NULL;
	if (!e->limit)
		e->limit = REASON_SIGNALED;
	log_record(&w->core->log, LOG_LEVEL_WARN,
		"a killed exec did not end, so its sandbox is ended", "exec", e->record.id,
		"workspace", w->model.id, NULL);
	core_end_sandbox(w, REASON_CANCELED);
}

static void send_kill(struct core_exec *e)
{
	struct loop *loop = e->core->loop;
	connection_send(e->workspace, INIT_SIGNAL, e->number, SIGKILL);
	loop_cancel(loop, e->timeout);
	e->timeout = loop_after(loop, KILLED_MS, on_not_ended, e);
}

void exec_kill(struct core_exec *e, enum reason reason)
{
	struct core_workspace *w = e->workspace;
	if (!e->limit)
		e->limit = reason;
	if (e->stage == STAGE_ASKED)
		exec_unask(e);
	if (e->stage == STAGE_WAITING)
		connection_withdraw(e->workspace, e);
	if (e->stage <= STAGE_WAITING) {
		exec_lost(e, reason, NULL);
		return;
	}
	if (exec_has_exited(e))
		return;
	send_kill(e);
	/* Also kill processes that left the process group, if no other exec can have started them.
	 */
	if (w->sandbox.exec_count == 1)
		connection_send(w, INIT_SIGNAL, 0, SIGKILL);
}

void exec_detach(struct core_exec *e)
{
	if (!e->listener.ended)
		return;
	e->listener.ended = NULL;
	if (e->record.background || e->stage == STAGE_ENDED)
		return;
	e->is_paused = false;
	if (!exec_has_exited(e))
		exec_kill(e, REASON_CANCELED);
	else if (!e->is_draining)
		exec_go_on_ending(e);
}

int exec_find(const struct request *request, struct core *core, const char *id,
	struct core_exec **exec, struct error *err)
{
	struct core_exec *e = id_is_valid(id) ? map_get(&core->execs->by_id, str_from(id)) : NULL;
	if (!e || !access_reaches(request, e->workspace))
		return fail_hint(
			err, ERR_NOT_FOUND, "carrel ps -a lists them", "there is no exec '%s'", id);
	if (access_check(core, request, VERB_EXEC_GET, e->workspace, err))
		return -1;
	if (e->record.background && e->record.state == EXEC_RUNNING)
		spool_measure(e);
	*exec = e;
	return 0;
}

static int fail_ended(struct core_exec *e, struct error *err)
{
	return fail(err, ERR_CONFLICT, "exec '%s' has ended", e->record.id);
}

static int check_verb(
	const struct request *request, enum verb verb, struct core_exec *e, struct error *err)
{
	return access_check(e->core, request, verb, e->workspace, err);
}

static int check_runs(struct core_exec *e, struct error *err)
{
	if (exec_has_exited(e))
		return fail_ended(e, err);
	if (e->stage == STAGE_ASKED && e->approval[0])
		return fail_hint(err, ERR_UNAVAILABLE, "carrel kill ends it",
			"exec '%s' waits for approval '%s'", e->record.id, e->approval);
	if (e->stage <= STAGE_WAITING)
		return fail_hint(err, ERR_UNAVAILABLE, "try again in a moment",
			"exec '%s' has not started yet", e->record.id);
	return 0;
}

int exec_end_for(const struct request *request, struct core_exec *e, int signo, enum reason reason,
	struct error *err)
{
	if (check_verb(request, VERB_EXEC_SIGNAL, e, err))
		return -1;
	if (signo != SIGKILL)
		return fail(err, ERR_INVALID, "'reason' can only be given with KILL");
	if (!exec_is_handed(e->mode))
		return fail(err, ERR_INVALID,
			"the streams of exec '%s' were not passed by its client", e->record.id);
	if (check_runs(e, err))
		return -1;
	e->record.result.truncated = reason == REASON_OUTPUT_LIMIT;
	exec_kill(e, reason);
	return 0;
}

int exec_signal(const struct request *request, struct core_exec *e, int signo, struct error *err)
{
	if (check_verb(request, VERB_EXEC_SIGNAL, e, err))
		return -1;
	if (signo < 1 || signo > SIGRTMAX)
		return fail(err, ERR_INVALID, "invalid signal %d", signo);
	if (e->stage == STAGE_ASKED && (signo == SIGKILL || signo == SIGTERM)) {
		exec_kill(e, REASON_CANCELED);
		return 0;
	}
	if (check_runs(e, err))
		return -1;
	e->signal_sent = signo;
	if (signo == SIGKILL)
		send_kill(e);
	else
		connection_send(e->workspace, INIT_SIGNAL, e->number, signo);
	return 0;
}

int exec_cancel(const struct request *request, struct core_exec *e, struct error *err)
{
	if (check_verb(request, VERB_EXEC_SIGNAL, e, err))
		return -1;
	if (!exec_has_exited(e))
		exec_kill(e, REASON_CANCELED);
	return 0;
}

int exec_resize(const struct request *request, struct core_exec *e, uint16_t rows, uint16_t columns,
	struct error *err)
{
	if (check_verb(request, VERB_EXEC_RESIZE, e, err))
		return -1;
	if (exec_has_exited(e))
		return fail_ended(e, err);
	if (!e->record.tty)
		return fail(err, ERR_CONFLICT, "exec '%s' has no terminal", e->record.id);
	if (e->terminal < 0)
		return fail(
			err, ERR_CONFLICT, "the terminal of exec '%s' isn't there", e->record.id);
	return pty_set_size(e->terminal, (struct pty_size){ rows, columns }, err);
}

/* ---- all of them ---- */

static int compare_newest(const void *a, const void *b)
{
	const struct core_exec *first = *(struct core_exec *const *)a,
			       *second = *(struct core_exec *const *)b;
	if (first->record.started_ms != second->record.started_ms)
		return first->record.started_ms < second->record.started_ms ? 1 : -1;
	return strcmp(first->record.id, second->record.id);
}

int exec_list(const struct request *request, struct core *core, struct core_workspace *w,
	void (*fn)(void *ctx, struct core_exec *e), void *ctx, struct error *err)
{
	size_t at = 0, count = 0;
	struct core_exec *e;
	if (access_check(core, request, VERB_EXEC_LIST, w ? w : access_bound(core, request), err))
		return -1;
	auto_free struct core_exec **found = xzalloc((core->execs->by_id.live + 1) * sizeof *found);
	while ((e = map_next(&core->execs->by_id, &at)))
		if ((!w || e->workspace == w) && access_reaches(request, e->workspace))
			found[count++] = e;
	qsort(found, count, sizeof *found, compare_newest);
	for (size_t i = 0; i < count; i++) {
		if (found[i]->record.background && found[i]->record.state == EXEC_RUNNING)
			spool_measure(found[i]);
		fn(ctx, found[i]);
	}
	return 0;
}
