/* tasks.c -- what is known of tasks: their states, history, artifacts, listeners and rows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/fault.h"
#include "services/agents_internal.h"

#define SAVE_FIRST_MS 50 /* a task that ends sooner is written once, at its end */
#define SAVE_MS 1000

const struct task *task_model(struct agent_task *task)
{
	struct task *model = &task->model;
	/* While it runs the lists grow: they are put together when somebody looks. */
	if (task->made) {
		buf_clear(&task->artifacts);
		buf_char(&task->artifacts, '[');
		for (const struct artifact *a = task->made; a; a = a->next) {
			buf_printf(
				&task->artifacts, "%s{\"artifactId\":", a == task->made ? "" : ",");
			buf_quoted(&task->artifacts, str_from(a->id));
			buf_printf(&task->artifacts, ",%s\"parts\":[", a->head);
			if (a->bytes.len) {
				struct json j = json_to(&task->artifacts, false);
				json_object(&j, NULL);
				if (a->is_binary) {
					json_base64(&j, "raw", a->bytes.data, a->bytes.len);
					json_text(&j, "mediaType", "application/octet-stream");
				} else {
					json_str(&j, "text",
						(struct str){ a->bytes.data, a->bytes.len });
				}
				json_end(&j);
			}
			if (a->bytes.len && a->parts.len)
				buf_char(&task->artifacts, ',');
			buf_append(&task->artifacts, a->parts.data, a->parts.len);
			buf_printf(&task->artifacts, "]%s}",
				a->is_cut ? ",\"metadata\":{\"truncated\":true}" : "");
		}
		buf_char(&task->artifacts, ']');
	}
	model->history = task->history.data;
	model->artifacts = task->artifacts.data;
	model->message = task->message.len ? task->message.data : NULL;
	return model;
}

/* ---- in order of their last change ---- */

static void unlink_task(struct agent_task *task)
{
	struct agents *agents = task->agents;
	*(task->newer ? &task->newer->older : &agents->newest) = task->older;
	*(task->older ? &task->older->newer : &agents->oldest) = task->newer;
	task->newer = task->older = NULL;
}

static void link_newest(struct agent_task *task)
{
	struct agents *agents = task->agents;
	task->older = agents->newest;
	*(agents->newest ? &agents->newest->newer : &agents->oldest) = task;
	agents->newest = task;
}

/* Times of changes are unique: they serve as cursors. */
static void touch(struct agent_task *task)
{
	const struct agent_task *newest = task->agents->newest;
	int64_t now_ms = clock_now_ms();
	if (newest && newest != task && now_ms <= newest->model.updated_ms)
		now_ms = newest->model.updated_ms + 1;
	if (now_ms > task->model.updated_ms)
		task->model.updated_ms = now_ms;
	unlink_task(task);
	link_newest(task);
}

static struct task_share *task_share_join(struct agents *agents, const char *agent)
{
	struct task_share *share = agents->shares;
	while (share && strcmp(share->agent, agent) != 0)
		share = share->next;
	if (!share) {
		share = xzalloc(sizeof *share);
		str_copy(share->agent, sizeof share->agent, agent);
		share->next = agents->shares;
		agents->shares = share;
	}
	share->count++;
	return share;
}

static void task_share_leave(struct agent_task *task)
{
	struct task_share *share = task->share, **at = &task->agents->shares;
	task->agents->kept_bytes -= task->bytes;
	share->bytes -= task->bytes;
	if (--share->count)
		return;
	while (*at != share)
		at = &(*at)->next;
	*at = share->next;
	free(share);
}

static void count_bytes(struct agent_task *task)
{
	task->agents->kept_bytes -= task->bytes;
	task->share->bytes -= task->bytes;
	task->bytes = sizeof *task + task->history.len + task->artifacts.len + task->message.len +
		      pushes_bytes(task);
	task->agents->kept_bytes += task->bytes;
	task->share->bytes += task->bytes;
}

static struct agent_task *task_new(struct agents *agents, const char *id, const char *agent)
{
	struct agent_task *task = xzalloc(sizeof *task);
	task->agents = agents;
	task->share = task_share_join(agents, agent);
	arena_init(&task->arena);
	buf_init(&task->history, BUF_MAX_DEFAULT);
	buf_init(&task->artifacts, BUF_MAX_DEFAULT);
	buf_init(&task->message, BUF_MAX_DEFAULT);
	memcpy(task->model.id, id, sizeof task->model.id);
	map_add(&agents->tasks, (struct str){ task->model.id, ID_LEN }, task);
	link_newest(task);
	return task;
}

static void free_artifacts(struct agent_task *task)
{
	for (struct artifact *a = task->made, *next; a; a = next) {
		next = a->next;
		buf_done(&a->parts);
		buf_done(&a->bytes);
		free(a);
	}
	task->made = NULL;
}

void task_free(struct agent_task *task)
{
	if (task->run)
		run_end(task->run);
	loop_cancel(task->agents->base.loop, task->saving);
	pushes_drop(task);
	free_artifacts(task);
	unlink_task(task);
	map_remove(&task->agents->tasks, (struct str){ task->model.id, ID_LEN });
	task_share_leave(task);
	buf_done(&task->history);
	buf_done(&task->artifacts);
	buf_done(&task->message);
	arena_done(&task->arena);
	free(task);
}

void task_forget(struct agent_task *task)
{
	core_drop(task->agents->base.core, &store_tasks, task->model.id, NULL, NULL);
	task_free(task);
}

void task_restore(struct agents *agents, const struct task *row)
{
	struct agent_task *task = task_new(agents, row->id, row->agent);
	task->model = *row;
	task->model.agent = arena_text(&task->arena, row->agent);
	task->model.context = arena_text(&task->arena, row->context);
	task->model.requested_by = arena_text(&task->arena, row->requested_by);
	task->model.workspace = arena_text(&task->arena, row->workspace);
	buf_text(&task->history, row->history);
	buf_text(&task->artifacts, row->artifacts);
	buf_text(&task->message, row->message ? row->message : "");
	task->is_kept = true;
	count_bytes(task);
}

/* ---- listeners ---- */

void task_listen(struct agent_task *task, struct task_listener *listener)
{
	struct task_listener **at = &task->listeners;
	while (*at)
		at = &(*at)->next;
	listener->next = NULL;
	*at = listener;
}

void task_unlisten(struct agent_task *task, struct task_listener *listener)
{
	for (struct task_listener **at = &task->listeners; *at; at = &(*at)->next)
		if (*at == listener) {
			*at = listener->next;
			listener->next = NULL;
			return;
		}
}

/* A listener may leave while it is told. */
static void tell(struct agent_task *task, const struct task_event *event)
{
	for (struct task_listener *listener = task->listeners, *next; listener; listener = next) {
		next = listener->next;
		listener->told(listener->ctx, task, event);
	}
}

static void tell_status(struct agent_task *task)
{
	const struct task *model = task_model(task);
	tell(task, &(struct task_event){ .kind = TASK_EVENT_STATUS });
	journal_emit(core_journal(task->agents->base.core), "task.state",
		model->workspace ? model->workspace : "", model->agent, "task", model->id,
		"context", model->context, "state", task_state_names[model->state], NULL);
}

struct remembered {
	struct agents *agents;
	char id[ID_LEN + 1];
};

void *task_remember(const struct agent_task *task)
{
	struct remembered *made = xzalloc(sizeof *made);
	made->agents = task->agents;
	memcpy(made->id, task->model.id, sizeof made->id);
	return made;
}

struct agent_task *task_recall(void *ctx)
{
	struct remembered *remembered = ctx;
	struct agent_task *task = map_get(&remembered->agents->tasks, str_from(remembered->id));
	free(remembered);
	return task;
}

void task_tell_kept(struct agent_task *task)
{
	tell(task, &(struct task_event){ .kind = TASK_EVENT_KEPT });
}

/* ---- rows ---- */

void task_save(struct agent_task *task)
{
	loop_cancel(task->agents->base.loop, task->saving);
	task->saving = NULL;
	task->is_kept = true;
	if (!task->is_ending)
		core_put(task->agents->base.core, &store_tasks, task_model(task), NULL, NULL);
}

static void on_save(struct loop *loop, void *ctx)
{
	struct agent_task *task = ctx;
	task->saving = NULL;
	task_save(task);
}

/* The longer it is, the less often it is written. */
void task_save_soon(struct agent_task *task)
{
	uint64_t delay_ms = task->is_kept ? SAVE_MS + task->history.len / 100 : SAVE_FIRST_MS;
	if (!task->saving && !task->is_ending && !task_state_is_final(task->model.state))
		task->saving = loop_after(task->agents->base.loop, delay_ms, on_save, task);
}

/* ---- states ---- */

static struct agent_task *find_oldest(struct agents *agents, const struct task_share *share)
{
	struct agent_task *task = agents->oldest;
	while (task && (task->run || task->is_ending || (share && task->share != share)))
		task = task->newer;
	return task;
}

/* Of the agent that has the most: the tasks of the others are not lost by its flood. */
static struct agent_task *find_surplus(struct agents *agents)
{
	bool is_count = agents->tasks.live > TASKS_MAX;
	const struct task_share *most = agents->shares;
	for (const struct task_share *share = most; share; share = share->next)
		if (is_count ? share->count > most->count : share->bytes > most->bytes)
			most = share;
	struct agent_task *task = find_oldest(agents, most);
	return task ? task : find_oldest(agents, NULL);
}

static void drop_oldest(struct agents *agents)
{
	struct agent_task *task;
	while ((agents->tasks.live > TASKS_MAX || agents->kept_bytes > TASKS_BYTES_MAX) &&
		(task = find_surplus(agents)))
		task_forget(task);
}

/* A task that could not be written has ended all the same: what it did can't be undone. */
static void on_ended(void *ctx, const struct error *err)
{
	struct agent_task *task = task_recall(ctx);
	if (!task)
		return;
	struct agents *agents = task->agents;
	task->is_ending = false;
	if (err)
		log_record(core_log(agents->base.core), LOG_LEVEL_ERROR,
			"the end of a task could not be stored", "task", task->model.id, "error",
			err->text, NULL);
	fault_point("services_task_ended");
	tell_status(task);
	task->listeners = NULL;
	if (!agents_look(agents, str_from(task->model.agent)))
		task_forget(task);
	drop_oldest(agents);
}

/* What needs an answer is in the store before a client is told: it must be found later. */
static void on_question(void *ctx, const struct error *err)
{
	struct agent_task *task = task_recall(ctx);
	if (task && task->model.state == TASK_INPUT_REQUIRED)
		tell_status(task);
}

void task_set_state(struct agent_task *task, enum task_state state, const char *message)
{
	struct agents *agents = task->agents;
	if (task_state_is_final(task->model.state) || task->is_ending)
		return;
	task->model.state = state;
	buf_clear(&task->message);
	buf_text(&task->message, message ? message : "");
	touch(task);
	if (state == TASK_INPUT_REQUIRED) {
		task->is_kept = true;
		core_put(agents->base.core, &store_tasks, task_model(task), on_question,
			task_remember(task));
		return;
	}
	if (!task_state_is_final(state)) {
		task_save_soon(task);
		tell_status(task);
		return;
	}
	agents->ended[state]++;
	loop_cancel(agents->base.loop, task->saving);
	task->saving = NULL;
	task->is_ending = true;
	const struct task *model = task_model(task);
	free_artifacts(task);
	if (task->run)
		run_end(task->run);
	count_bytes(task);
	core_put(agents->base.core, &store_tasks, model, on_ended, task_remember(task));
}

void task_set_text(struct agent_task *task, enum task_state state, const char *text)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf json = buf_empty(BUF_MAX_DEFAULT);
	struct task_message message;
	if (!text) {
		task_set_state(task, state, NULL);
		return;
	}
	task_make_message(text, &arena, &message);
	task_print_message(&json, &message, "ROLE_AGENT", task->model.id, task->model.context);
	task_set_state(task, state, json.data);
}

void task_add_history(struct agent_task *task, const char *message)
{
	if (!task->history.len)
		buf_printf(&task->history, "[%s]", message);
	else {
		task->history.len--; /* the bracket */
		buf_printf(&task->history, ",%s]", message);
	}
	count_bytes(task);
	if (task->run)
		task_save_soon(task);
}

/* ---- artifacts ---- */

bool task_has_room(const struct agent_task *task, size_t bytes)
{
	size_t sum = task->history.len + bytes;
	for (const struct artifact *a = task->made; a; a = a->next)
		sum += a->parts.len + a->parts.len / 8 +
		       buf_escaped_len((struct str){ a->bytes.data, a->bytes.len });
	return sum <= TASK_BYTES_MAX;
}

struct artifact *task_artifact(struct agent_task *task, const char *id, const char *head)
{
	struct artifact **at = &task->made;
	for (; *at; at = &(*at)->next)
		if (!strcmp((*at)->id, id))
			return *at;
	struct artifact *made = *at = xzalloc(sizeof *made);
	made->id = arena_text(&task->arena, id);
	made->head = arena_text(&task->arena, head);
	buf_init(&made->parts, BUF_MAX_DEFAULT);
	buf_init(&made->bytes, BUF_MAX_DEFAULT);
	return made;
}

static void tell_artifact(struct agent_task *task, const struct artifact *artifact,
	const char *parts, bool append, bool is_last)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	if (!task->listeners)
		return;
	buf_text(&text, "{\"artifactId\":");
	buf_quoted(&text, str_from(artifact->id));
	buf_printf(&text, ",%s\"parts\":[%s]}", artifact->head, parts);
	tell(task, &(struct task_event){ .kind = TASK_EVENT_ARTIFACT,
			   .artifact = text.data,
			   .append = append,
			   .is_last = is_last });
}

void task_add_parts(struct agent_task *task, struct artifact *artifact, const char *parts,
	bool append, bool is_last)
{
	if (!append)
		buf_clear(&artifact->parts);
	if (artifact->parts.len && parts[0])
		buf_char(&artifact->parts, ',');
	buf_text(&artifact->parts, parts);
	tell_artifact(task, artifact, parts, append, is_last);
}

void task_add_output(struct agent_task *task, struct artifact *artifact, struct str data)
{
	bool is_binary =
		str_utf8_prefix(data.data, data.len) != data.len || memchr(data.data, 0, data.len);
	bool append = artifact->bytes.len > 0;
	if (artifact->is_cut || !data.len)
		return;
	artifact->is_binary |= is_binary;
	size_t bytes =
		artifact->is_binary ? 2 * (artifact->bytes.len + data.len) : buf_escaped_len(data);
	if (!task_has_room(task, bytes)) {
		artifact->is_cut = true;
		return;
	}
	buf_append(&artifact->bytes, data.data, data.len);
	auto_buf struct buf part = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&part, false);
	json_object(&j, NULL);
	if (is_binary) {
		json_base64(&j, "raw", data.data, data.len);
		json_text(&j, "mediaType", "application/octet-stream");
	} else {
		json_str(&j, "text", data);
	}
	json_end(&j);
	tell_artifact(task, artifact, part.data, append, false);
}

/* ---- verbs ---- */

/* An agent without authentication lets its own clients do what its verbs do, and nothing else. */
static const struct request *as_caller(const struct request *request, const struct a2a_agent *agent,
	unsigned scopes, struct arena *arena)
{
	return agent->auth == AGENT_NO_AUTH && access_is_client(request, agent->name)
		       ? access_agent(request, agent->name, scopes, arena)
		       : request;
}

static int check(const struct request *request, struct agents *agents, const char *name,
	enum verb verb, const char *workspace, const struct a2a_agent **agent, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct core_workspace *w = NULL;
	struct error ignored;
	*agent = agents_look(agents, str_from(name));
	if (!*agent)
		return agents_missing(name, err);
	const struct request *caller = as_caller(request, *agent, SCOPE_READ | SCOPE_USE, &arena);
	/* Of a principal that is bound to a workspace: only what is about that one. */
	if (workspace && core_find(core_system(), agents->base.core, workspace, &w, &ignored))
		w = NULL;
	return core_check(caller, agents->base.core, verb, w, err);
}

static int find_task(struct agents *agents, const char *agent, const char *id,
	struct agent_task **task, struct error *err)
{
	*task = id_is_valid(id) ? map_get(&agents->tasks, str_from(id)) : NULL;
	if (*task && !strcmp((*task)->model.agent, agent))
		return 0;
	char shown[64];
	str_printable(shown, sizeof shown, str_from(id));
	return fail(err, ERR_NOT_FOUND, "there is no task '%s'", shown);
}

int task_find(const struct request *request, struct agents *agents, const char *name,
	const char *id, enum verb verb, struct agent_task **task, struct error *err)
{
	const struct a2a_agent *agent;
	struct error gone;
	int missing = find_task(agents, name, id, task, &gone);
	if (check(request, agents, name, verb, missing ? NULL : (*task)->model.workspace, &agent,
		    err))
		return -1;
	if (missing)
		*err = gone;
	return missing;
}

/* Somebody else than its client knows of it from now on. */
static void keep_seen(struct agent_task *task)
{
	if (!task->is_kept)
		task_save(task);
}

int task_get(const struct request *request, struct agents *agents, const char *agent,
	const char *id, struct agent_task **task, struct error *err)
{
	if (task_find(request, agents, agent, id, VERB_TASK_GET, task, err))
		return -1;
	keep_seen(*task);
	return 0;
}

int task_cancel(const struct request *request, struct agents *agents, const char *agent,
	const char *id, struct agent_task **task, struct error *err)
{
	if (task_find(request, agents, agent, id, VERB_TASK_CANCEL, task, err))
		return -1;
	if (task_state_is_final((*task)->model.state))
		return fail(err, ERR_CONFLICT, "task '%s' has ended: it is %s", id,
			task_state_names[(*task)->model.state]);
	task_set_text(*task, TASK_CANCELED, NULL);
	return 0;
}

static int check_context(const char *context, struct error *err)
{
	size_t len = strlen(context);
	if (!len || len > TASK_CONTEXT_MAX)
		return fail(
			err, ERR_INVALID, "'contextId' must have 1 to %d bytes", TASK_CONTEXT_MAX);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)context[i] < ' ' || context[i] == 127)
			return fail(err, ERR_INVALID, "'contextId' has a control character");
	return 0;
}

static int continue_task(const struct request *request, struct agents *agents, const char *agent,
	const struct task_send *send, struct agent_task **out, struct error *err)
{
	auto_buf struct buf json = buf_empty(BUF_MAX_DEFAULT);
	struct agent_task *task;
	if (task_find(request, agents, agent, send->task, VERB_TASK_SEND, &task, err))
		return -1;
	if (send->context && strcmp(send->context, task->model.context) != 0)
		return fail(err, ERR_INVALID, "task '%s' belongs to another context", send->task);
	if (task_state_is_final(task->model.state))
		return fail(err, ERR_CONFLICT, "task '%s' has ended: it is %s", send->task,
			task_state_names[task->model.state]);
	task_print_message(&json, &send->message, "ROLE_USER", task->model.id, task->model.context);
	if (!task_has_room(task, json.len))
		return fail(err, ERR_LIMIT, "the history of task '%s' is full", send->task);
	if (run_answer(request, task->run, &send->message, json.data, err))
		return -1;
	*out = task;
	return 0;
}

/* The workspace of a context that exists, for the check; NULL: there is none. */
static const char *workspace_of(
	struct agents *agents, const char *agent, const char *context, struct arena *arena)
{
	struct core_workspace *w;
	struct error ignored;
	if (!context || core_find(core_system(), agents->base.core,
				arena_printf(arena, "%s/%s", agent, context), &w, &ignored))
		return NULL;
	return arena_text(arena, core_model(w)->id);
}

static int check_room(
	struct agents *agents, const struct a2a_agent *agent, const char *caller, struct error *err)
{
	size_t running = 0;
	for (const struct task_run *run = agents->runs; run; run = run->next)
		running += !strcmp(run->task->model.agent, agent->name);
	if (running >= agent->max_tasks)
		return fail(err, ERR_LIMIT, "%zu tasks of agent '%s' run or wait for input already",
			running, agent->name);
	return shares_check(&agents->run_shares, caller, 1, err);
}

int task_send(const struct request *request, struct agents *agents, const char *name,
	const struct task_send *send, struct agent_task **out, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf json = buf_empty(BUF_MAX_DEFAULT);
	const struct a2a_agent *agent;
	char id[ID_LEN + 1], context[ID_LEN + 1], caller[PRINCIPAL_NAME_SIZE];
	if (send->context && check_context(send->context, err))
		return -1;
	if (send->task)
		return continue_task(request, agents, name, send, out, err);
	if (check(request, agents, name, VERB_TASK_SEND,
		    workspace_of(agents, name, send->context, &arena), &agent, err))
		return -1;
	if (core_is_stopping(agents->base.core))
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	if (check_room(agents, agent, access_caller(request, caller), err) ||
		(send->push && pushes_check(agent, send->push, NULL, err)) ||
		((send->context || agent->workspace_without_context) &&
			context_check(agents, agent, send->context, err)))
		return -1;
	id_make(id);
	id_make(context);
	task_print_message(
		&json, &send->message, "ROLE_USER", id, send->context ? send->context : context);
	if (json.len > TASK_BYTES_MAX / 2)
		return fail(err, ERR_INVALID, "the message has more than %zu bytes",
			TASK_BYTES_MAX / 2);
	struct agent_task *task = task_new(agents, id, name);
	task->model.agent = arena_text(&task->arena, name);
	task->model.context = arena_text(&task->arena, send->context ? send->context : context);
	task->model.requested_by = arena_text(&task->arena, access_caller(request, caller));
	buf_text(&task->artifacts, "[]");
	touch(task);
	task->model.created_ms = task->model.updated_ms;
	if (send->push)
		pushes_add(task, request, send->push);
	task_add_history(task, json.data);
	run_begin(task, as_caller(request, agent, SCOPE_READ | SCOPE_USE, &arena), send, json.data);
	*out = task;
	return 0;
}

int task_list(const struct request *request, struct agents *agents, const char *name,
	const struct task_filter *filter, void (*fn)(void *ctx, struct agent_task *task), void *ctx,
	char next[CORE_CURSOR_SIZE], size_t *total, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const struct a2a_agent *agent = agents_look(agents, str_from(name));
	uint64_t before = UINT64_MAX;
	size_t shown = 0;
	if (!agent)
		return agents_missing(name, err);
	const struct request *caller = as_caller(request, agent, SCOPE_READ, &arena);
	const char *only = access_only(caller);
	struct core_workspace *w = NULL;
	if (only && core_find(caller, agents->base.core, only, &w, err))
		return -1;
	if (core_check(caller, agents->base.core, VERB_TASK_LIST, w, err))
		return -1;
	if (filter->cursor && !str_to_u64(str_from(filter->cursor), &before))
		return fail(err, ERR_INVALID, "'pageToken' is not one of this agent");
	next[0] = 0;
	*total = 0;
	uint64_t last = 0;
	for (struct agent_task *task = agents->newest; task; task = task->older) {
		const struct task *model = &task->model;
		if (strcmp(model->agent, name) != 0 ||
			(filter->context && strcmp(model->context, filter->context) != 0) ||
			(filter->state >= 0 && (int)model->state != filter->state) ||
			model->updated_ms <= filter->after_ms ||
			(only && (!model->workspace || strcmp(model->workspace, only) != 0)))
			continue;
		++*total;
		if ((uint64_t)model->updated_ms >= before)
			continue;
		if (shown < filter->limit) {
			keep_seen(task);
			fn(ctx, task);
			last = (uint64_t)model->updated_ms;
		} else if (shown == filter->limit && last) {
			str_format(next, CORE_CURSOR_SIZE, "%" PRIu64, last);
		}
		shown++;
	}
	return 0;
}

/* ---- time ---- */

static int compare(const void *a, const void *b)
{
	int64_t one = (*(struct agent_task *const *)a)->model.updated_ms;
	int64_t other = (*(struct agent_task *const *)b)->model.updated_ms;
	return (one > other) - (one < other);
}

/* The store has them in another order. */
static void sort(struct agents *agents)
{
	auto_arena struct arena arena = { 0 };
	size_t count = agents->tasks.live, i = 0;
	struct agent_task **all = arena_array(&arena, count + 1, sizeof(struct agent_task *));
	for (struct agent_task *task = agents->newest; task; task = task->older)
		all[i++] = task;
	qsort(all, count, sizeof *all, compare);
	agents->newest = agents->oldest = NULL;
	for (i = 0; i < count; i++) {
		all[i]->newer = all[i]->older = NULL;
		link_newest(all[i]);
	}
}

/* A command that ran halfway is not run again: its client decides. One that waits for its approval
 * waits on. */
void tasks_begin(struct agents *agents)
{
	sort(agents);
	for (struct agent_task *task = agents->newest, *older; task; task = older) {
		const char *why;
		older = task->older;
		if (!task_state_is_final(task->model.state) && !run_resume(task, &why))
			task_set_text(task, TASK_FAILED, why);
	}
}

void tasks_sweep(struct agents *agents)
{
	int64_t now_ms = clock_now_ms();
	for (struct agent_task *task = agents->oldest, *newer; task; task = newer) {
		newer = task->newer;
		const struct a2a_agent *agent = agents_look(agents, str_from(task->model.agent));
		int64_t kept_ms = (int64_t)(agent ? agent->ttl_ms : AGENT_TTL_DEFAULT_MS);
		if (!task->run && !task->is_ending && task->model.updated_ms + kept_ms < now_ms)
			task_forget(task);
	}
}
