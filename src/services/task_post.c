/* task_post.c -- how notifications reach their URL: a workspace is made, a program in it posts what
 * waits, pauses and attempts, the workspace is removed. */
#include "base/clock.h"
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

static void take_place(struct push *push)
{
	struct pushes *pushes = &push->agents->pushes;
	push->has_place = true;
	push->next_of = pushes->active;
	pushes->active = push;
	pushes->active_count++;
}

/* -1: the config was removed meanwhile. */
static int await_place(struct push *push)
{
	struct push **at = &push->agents->pushes.waiting;
	struct error never;
	if (has_room(push)) {
		take_place(push);
		return 0;
	}
	while (*at)
		at = &(*at)->next_of;
	*at = push;
	push->next_of = NULL;
	while (push->task && !push->has_place)
		bell_wait(&push->bell, BELL_NO_TIME, &never);
	if (push->has_place)
		return 0;
	leave(&push->agents->pushes.waiting, push);
	return -1;
}

/* Its workspace is gone: gives the place to the first push that may have it. */
static void release_place(struct push *push)
{
	struct pushes *pushes = &push->agents->pushes;
	leave(&pushes->active, push);
	pushes->active_count--;
	push->has_place = false;
	for (struct push *next = pushes->waiting; next; next = next->next_of)
		if (has_room(next)) {
			leave(&pushes->waiting, next);
			take_place(next);
			bell_ring_later(&next->bell);
			return;
		}
}

/* ---- the workspace ---- */

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
	check_host(push, &is_port_named, &ignored); /* serve asks again */
	if (!is_port_named ||
		network_target_parse(str_from(push->model.url), host, &port, &ignored))
		return push_config_host(&push->model, arena);
	return arena_printf(arena, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

static int make(struct push *push, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct workspace wanted = { .network = { .mode = "list" },
		.limits = { .memory_bytes = 256 << 20, .disk_bytes = 16 << 20, .pids = 16 } };
	vec_push(&arena, &wanted.network.allow, entry_of(push, &arena));
	return desk_create(push->bell.fiber, &push->desk, PUSH_SERVICE, &wanted, err);
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

/* ---- what came of it ---- */

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

static void pause_for(struct push *push, uint64_t ms)
{
	push->paused_until_ms = clock_monotonic_ms() + ms;
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
	pause_for(push, FAILING_PAUSE_MS);
}

/* is_final: another attempt would come to the same. false: it was given up. */
static bool take_failure(struct push *push, bool is_final, const char *why)
{
	push->attempts++;
	if (core_is_stopping(core_of(push)))
		return true; /* the next start tells of the end of the task */
	if (is_final || push->is_failing || push->attempts >= ATTEMPTS) {
		give_up(push, why);
		return false;
	}
	pause_for(push, 250ull << (2 * (push->attempts - 1))); /* 250 ms, 1 s, 4 s */
	return true;
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

/* Runs the program once. false: its workspace isn't used again. */
static bool post(struct push *push)
{
	static const char *argv[] = { "python3", "-I", "-S", "-c", script, NULL };
	struct exec_spec spec = { .argv = { argv, 5, 5 }, .has_stdin_text = true };
	auto_arena struct arena arena = { 0 };
	struct answer why = { 0 };
	struct error err;
	if (!may_be_told(push)) {
		core_drop(core_of(push), &store_push_configs, push->model.id, NULL, NULL);
		push_forget(push);
		return false;
	}
	print_orders(push);
	spec.stdin_text = (struct str){ push->orders.data, push->orders.len };
	spec.timeout_ms = push->sent * POST_SECONDS * 1000 + RUN_EXTRA_MS;
	push->is_posting = true;
	bool failed = desk_run(push->bell.fiber, &push->desk, &spec, &err);
	push->is_posting = false;
	bool is_done = !failed && take_answers(push, &why, &arena);
	push->sent = 0;
	buf_clear(&push->orders);
	if (!push->task || is_done)
		return true;
	bool is_missing = failed && err.code == ERR_COMMAND_NOT_FOUND;
	const char *text = is_missing  ? "python3, which posts, was not found on the host"
			   : failed    ? err.text
			   : why.error ? why.error
				       : "";
	/* The next attempt after an error has another workspace. */
	return take_failure(push, is_missing || (!failed && is_final_status(why.status)),
		       !why.status ? text
				   : arena_printf(&arena, "answered with status %u%s%s", why.status,
					     text[0] ? ": " : "", text)) &&
	       !failed;
}

/* ---- the job ---- */

/* Waits for an entry. false: none came for IDLE_MS, or none will come. */
static bool rest(struct push *push)
{
	uint64_t until_ms = clock_monotonic_ms() + IDLE_MS;
	struct error never;
	push_settle(push);
	if (push->model.is_done)
		return false;
	bell_wait(&push->bell, IDLE_MS, &never);
	return push->count || clock_monotonic_ms() < until_ms;
}

static bool is_paused(const struct push *push)
{
	return clock_monotonic_ms() < push->paused_until_ms;
}

static void await_pause(struct push *push)
{
	uint64_t now_ms = clock_monotonic_ms();
	struct error never;
	bell_wait(&push->bell, push->paused_until_ms - now_ms, &never);
}

/* One thing to do in its workspace. false: there is nothing more to do there. */
static bool serve(struct push *push)
{
	bool ignored;
	struct error err;
	if (!push->task)
		return false;
	if (is_paused(push)) {
		await_pause(push);
		return true;
	}
	if (!push->count && !core_is_stopping(core_of(push)))
		return rest(push);
	if (core_is_stopping(core_of(push)) || !is_ready(push, push->first)) {
		bell_wait(&push->bell, BELL_NO_TIME, &err);
		return true;
	}
	if (!check_host(push, &ignored, &err))
		return post(push);
	refuse(push, err.text);
	return false;
}

static void deliver_some(struct push *push)
{
	struct error err;
	desk_init(&push->desk, core_of(push), core_system());
	if (push->task && make(push, &err)) {
		if (push->task)
			take_failure(push, false, err.text);
	} else {
		while (serve(push))
			;
		if (!core_is_stopping(core_of(push))) /* else the next start removes it */
			desk_remove(push->bell.fiber, &push->desk, &err);
	}
	desk_done(&push->desk);
	release_place(push);
}

static void deliver(struct fiber *fiber, void *ctx)
{
	struct push *push = ctx;
	bool ignored;
	struct error err;
	push->bell = (struct bell){ .fiber = fiber, .loop = push->agents->base.loop };
	while (push->task && push->count && !core_is_stopping(core_of(push))) {
		if (is_paused(push))
			await_pause(push);
		else if (check_host(push, &ignored, &err))
			refuse(push, err.text);
		else if (!await_place(push))
			deliver_some(push);
	}
	bell_done(&push->bell);
	push->bell.fiber = NULL;
	if (!push->task)
		push_free(push);
}

void push_next(struct push *push)
{
	if (push->bell.fiber)
		bell_ring(&push->bell);
	else if (push->count && !core_is_stopping(core_of(push)))
		fiber_start(deliver, push);
}

void push_end(struct push *push)
{
	if (push->is_posting)
		fiber_cancel(push->bell.fiber);
	else if (push->bell.fiber)
		bell_ring(&push->bell);
	else
		push_free(push);
}
