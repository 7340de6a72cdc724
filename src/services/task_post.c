/* task_post.c -- how notifications reach their URL: a workspace is made, a program in it posts what
 * waits, pauses and attempts, the workspace is removed. */
#include <string.h>
#include "services/task_push.h"

#define ATTEMPTS 4
#define POST_SECONDS 10
#define BATCH_ENTRIES 16
#define BATCH_BYTES ((size_t)1 << 20)
#define RUN_EXTRA_MS 60000     /* of a run beyond the time of its posts: a start on a busy host */
#define FAILING_PAUSE_MS 10000 /* after one was given up */
#define IDLE_MS 10000
#define ERROR_MAX 300

static const char script[] = {
#include "services/script_post.inc"
	0
};

static struct core *core_of(const struct push *push)
{
	return push->agents->base.core;
}

/* ---- places ---- */

static bool has_room(const struct push *push)
{
	const struct pushes *pushes = &push->agents->pushes;
	size_t of_owner = 0;
	for (const struct push *other = pushes->active; other; other = other->next_of)
		of_owner += !strcmp(other->model.owner, push->model.owner);
	return pushes->active_count < PUSH_ACTIVE_MAX && of_owner < PUSH_ACTIVE_OWNER_MAX;
}

static void leave(struct push **at, const struct push *push)
{
	while (*at != push)
		at = &(*at)->next_of;
	*at = push->next_of;
}

static void wait(struct push *push)
{
	struct push **at = &push->agents->pushes.waiting;
	while (*at)
		at = &(*at)->next_of;
	*at = push;
	push->next_of = NULL;
	push->step = PUSH_WAITING;
}

static void make(struct push *push);

/* Its workspace is gone: another one may have one. */
static void release(struct push *push)
{
	struct pushes *pushes = &push->agents->pushes;
	desk_done(&push->desk);
	leave(&pushes->active, push);
	pushes->active_count--;
	push->step = PUSH_IDLE;
	for (struct push *next = pushes->waiting; next; next = next->next_of)
		if (has_room(next)) {
			leave(&pushes->waiting, next);
			make(next);
			return;
		}
}

/* ---- the workspace ---- */

static void on_removed(void *ctx, const struct error *err)
{
	struct push *push = ctx;
	release(push);
	push_next(push);
}

static void remove_workspace(struct push *push)
{
	push->step = PUSH_REMOVING;
	desk_remove(&push->desk, on_removed, push);
}

static void failed(struct push *push, bool is_final, const char *why);

static void on_made(void *ctx, const struct error *err)
{
	struct push *push = ctx;
	if (err)
		release(push);
	else
		push->step = PUSH_READY;
	if (err && push->task)
		failed(push, false, err->text);
	else
		push_next(push);
}

/* By the agent as it is now. */
static int check_host(const struct push *push, bool *is_port_named, struct error *err)
{
	const struct a2a_agent *agent =
		push->task ? agents_look(push->agents, str_from(push->task->model.agent)) : NULL;
	return agent ? pushes_check(agent, &push->model, is_port_named, err) : 0;
}

/* Of the list of its workspace. An agent that names the port opens it. */
static const char *entry_of(const struct push *push, struct arena *arena)
{
	char host[NETWORK_HOST_SIZE];
	uint16_t port;
	bool is_port_named = false;
	struct error ignored;
	check_host(push, &is_port_named, &ignored); /* push_next asks again */
	if (!is_port_named ||
		network_target_parse(str_from(push->model.url), host, &port, &ignored))
		return push_config_host(&push->model, arena);
	return arena_printf(arena, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

static void make(struct push *push)
{
	struct pushes *pushes = &push->agents->pushes;
	auto_arena struct arena arena = { 0 };
	struct workspace wanted = { .network = { .mode = "list" },
		.limits = { .memory_bytes = 256 << 20, .disk_bytes = 16 << 20, .pids = 16 } };
	vec_push(&arena, &wanted.network.allow, entry_of(push, &arena));
	push->next_of = pushes->active;
	pushes->active = push;
	pushes->active_count++;
	push->step = PUSH_MAKING;
	desk_init(&push->desk, core_of(push), core_system());
	desk_create(&push->desk, PUSH_SERVICE, &wanted, on_made, push);
}

/* ---- one run of the program ---- */

static void print_head(struct push *push)
{
	const struct push_config *model = &push->model;
	struct json j = json_to(&push->orders, false);
	auto_arena struct arena arena = { 0 };
	json_object(&j, NULL);
	json_text(&j, "url", model->url);
	json_u64(&j, "seconds", POST_SECONDS);
	json_object(&j, "headers");
	json_text(&j, "Content-Type", model->is_old ? "application/json" : "application/a2a+json");
	json_text(&j, "User-Agent", "carrel");
	if (model->token)
		json_text(&j, "X-A2A-Notification-Token", model->token);
	if (model->scheme && model->credentials)
		json_text(&j, "Authorization",
			arena_printf(&arena, "%s %s", model->scheme, model->credentials));
	json_end(&j);
	json_end(&j);
	buf_char(&push->orders, '\n');
}

static void print_task(struct push *push)
{
	struct json j = json_to(&push->orders, false);
	const struct task *task = task_model(push->task);
	if (push->model.is_old) {
		a2a_print_task(&j, NULL, task, true, A2A_ALL, true);
		return;
	}
	json_object(&j, NULL);
	a2a_print_task(&j, "task", task, false, A2A_ALL, true);
	json_end(&j);
}

/* An end is in the store before it is told: the task comes then. */
static bool is_ready(const struct push *push, const struct push_entry *entry)
{
	return entry->body.len || !push->task->is_ending;
}

static void print_orders(struct push *push)
{
	buf_clear(&push->orders);
	print_head(push);
	push->sent = 0;
	for (const struct push_entry *entry = push->first;
		entry && push->sent < BATCH_ENTRIES && push->orders.len < BATCH_BYTES &&
		is_ready(push, entry);
		entry = entry->next) {
		push->sent++;
		if (entry->body.len) {
			buf_append(&push->orders, entry->body.data, entry->body.len);
		} else { /* what came behind it has happened to it already */
			print_task(push);
			push_keep_only(push, push->sent);
		}
		buf_char(&push->orders, '\n');
	}
}

/* As for a stream of events: whoever may not see the task any more isn't told of it. */
static bool may_be_told(const struct push *push)
{
	const struct a2a_agent *agent =
		agents_look(push->agents, str_from(push->task->model.agent));
	const char *owner = push->model.owner;
	return agent && (!access_name_is_client(owner) || agent->auth == AGENT_NO_AUTH) &&
	       access_name_holds(core_of(push), owner);
}

static void on_posted(void *ctx, const struct error *err);

static void post(struct push *push)
{
	static const char *argv[] = { "python3", "-I", "-S", "-c", script, NULL };
	struct exec_spec spec = { .argv = { argv, 5, 5 }, .has_stdin_text = true };
	if (!may_be_told(push)) {
		core_drop(core_of(push), &store_push_configs, push->model.id, NULL, NULL);
		push_forget(push);
		return;
	}
	print_orders(push);
	spec.stdin_text = (struct str){ push->orders.data, push->orders.len };
	spec.timeout_ms = push->sent * POST_SECONDS * 1000 + RUN_EXTRA_MS;
	push->step = PUSH_POSTING;
	desk_run(&push->desk, &spec, on_posted, push);
}

/* ---- what came of it ---- */

static void on_timer(struct loop *loop, void *ctx)
{
	struct push *push = ctx;
	push->timer = NULL;
	if (push->is_paused) {
		push->is_paused = false;
		push_next(push);
	} else if (push->step == PUSH_READY && !push->count) {
		remove_workspace(push);
	}
}

static void set_timer(struct push *push, uint64_t ms, bool is_pause)
{
	loop_cancel(push->agents->base.loop, push->timer);
	push->timer = loop_after(push->agents->base.loop, ms, on_timer, push);
	push->is_paused = is_pause;
}

/* Said once, until one is taken again: a dead receiver must not fill the logs. */
static void tell_failure(struct push *push, const char *why)
{
	auto_arena struct arena arena = { 0 };
	const struct task *task = &push->task->model;
	const char *host = push_config_host(&push->model, &arena);
	log_record(core_log(core_of(push)), LOG_LEVEL_WARN, "a push notification was given up",
		"task", task->id, "config", push->model.config, "host", host, "error", why, NULL);
	journal_emit(core_journal(core_of(push)), "task.push_failed",
		task->workspace ? task->workspace : "", task->agent, "task", task->id, "context",
		task->context, "config", push->model.config, "host", host, "error", why, NULL);
}

/* What waits behind it becomes the task as it is then: the receiver misses no state for good. */
static void give_up(struct push *push, const char *why)
{
	push->agents->pushes.failed++;
	if (!push->is_failing)
		tell_failure(push, why);
	push->is_failing = true;
	push->attempts = 0;
	push_drop_first(push);
	if (push->count)
		push_merge(push);
	else
		push_settle(push);
	set_timer(push, FAILING_PAUSE_MS, true);
	if (push->step == PUSH_READY)
		remove_workspace(push);
}

/* is_final: another attempt would come to the same. */
static void failed(struct push *push, bool is_final, const char *why)
{
	push->attempts++;
	if (core_is_stopping(core_of(push)))
		return; /* the next start tells of the end of the task */
	if (is_final || push->is_failing || push->attempts >= ATTEMPTS)
		give_up(push, why);
	else /* 250 ms, 1 s, 4 s */
		set_timer(push, 250ull << (2 * (push->attempts - 1)), true);
}

/* The agent does not push there any more: nothing is tried. */
static void refuse(struct push *push, const char *why)
{
	push->agents->pushes.failed++;
	if (!push->is_failing)
		tell_failure(push, why);
	push->is_failing = true;
	while (push->count)
		push_drop_first(push);
	push_settle(push);
	if (push->step == PUSH_READY)
		remove_workspace(push);
}

struct answer {
	unsigned status; /* of HTTP; 0: there was none */
	const char *error;
};

/* What the program says is checked: it has read answers of a server. */
static struct answer read_answer(struct str line, struct arena *arena)
{
	struct json_value *value;
	struct error err;
	uint64_t status = 0;
	if (json_read(line, arena, &value, &err))
		return (struct answer){ 0, "the program that posts wrote an invalid line" };
	const char *said = json_member_text(value, "error");
	json_member_u64(value, "status", &status);
	char *error = NULL;
	if (said) {
		error = arena_alloc(arena, ERROR_MAX);
		str_printable(error, ERROR_MAX, str_from(said));
	}
	return (struct answer){ status < 1000 ? (unsigned)status : 0, error };
}

/* Takes what was delivered; false: one was not, and *why says why. */
static bool take_answers(struct push *push, struct answer *why, struct arena *arena)
{
	const struct buf *out = &push->desk.captured.streams[0];
	struct str rest = { out->data, out->len }, line;
	for (; push->sent; push->sent--) {
		if (!rest.len || !str_next(&rest, '\n', &line)) {
			*why = (struct answer){ 0, "the program that posts was ended" };
			return false;
		}
		*why = read_answer(line, arena);
		if (why->status < 200 || why->status >= 300)
			return false;
		push_drop_first(push);
		push->agents->pushes.delivered++;
		push->attempts = 0;
		push->is_failing = false;
	}
	return true;
}

static bool is_final_status(unsigned status)
{
	return status >= 300 && status < 500 && status != 408 && status != 425 && status != 429;
}

static void on_posted(void *ctx, const struct error *err)
{
	struct push *push = ctx;
	auto_arena struct arena arena = { 0 };
	struct answer why = { 0 };
	push->step = PUSH_READY;
	bool is_done = !err && take_answers(push, &why, &arena);
	push->sent = 0;
	buf_clear(&push->orders);
	if (!push->task || is_done) {
		push_next(push);
		return;
	}
	bool is_missing = err && err->code == ERR_COMMAND_NOT_FOUND;
	const char *text = is_missing  ? "python3, which posts, was not found on the host"
			   : err       ? err->text
			   : why.error ? why.error
				       : "";
	failed(push, is_missing || (!err && is_final_status(why.status)),
		!why.status ? text
			    : arena_printf(&arena, "answered with status %u%s%s", why.status,
				      text[0] ? ": " : "", text));
	if (err && push->step == PUSH_READY) /* the next attempt has another one */
		remove_workspace(push);
}

/* ---- what to do ---- */

static void rest(struct push *push)
{
	push_settle(push);
	if (push->model.is_done)
		remove_workspace(push);
	else
		set_timer(push, IDLE_MS, false);
}

void push_next(struct push *push)
{
	bool is_stopping = core_is_stopping(core_of(push)), ignored;
	struct error err;
	if (push->step == PUSH_IDLE && !push->task) {
		loop_cancel(push->agents->base.loop, push->timer);
		push_free(push);
	} else if (push->step == PUSH_READY && !push->task) {
		remove_workspace(push);
	} else if (push->is_paused || is_stopping) {
		return;
	} else if ((push->step == PUSH_IDLE || push->step == PUSH_READY) && push->count &&
		   check_host(push, &ignored, &err)) {
		refuse(push, err.text);
	} else if (push->step == PUSH_IDLE && push->count) {
		if (has_room(push))
			make(push);
		else
			wait(push);
	} else if (push->step == PUSH_READY && push->count) {
		if (is_ready(push, push->first))
			post(push);
	} else if (push->step == PUSH_READY) {
		rest(push);
	}
}

void push_end(struct push *push)
{
	loop_cancel(push->agents->base.loop, push->timer);
	push->timer = NULL;
	push->is_paused = false;
	if (push->step == PUSH_WAITING)
		leave(&push->agents->pushes.waiting, push);
	if (push->step == PUSH_POSTING)
		desk_cancel(&push->desk);
	bool is_under_way = push->step == PUSH_MAKING || push->step == PUSH_REMOVING;
	if (push->step == PUSH_WAITING || push->step == PUSH_IDLE) {
		push_free(push);
	} else if (core_is_stopping(core_of(push)) && !is_under_way) {
		/* The next start removes its workspace. */
		leave(&push->agents->pushes.active, push);
		push_free(push);
	} else if (push->step == PUSH_READY) {
		remove_workspace(push);
	}
}
