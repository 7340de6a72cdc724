/* tasks.c -- what is known of tasks: their states, history, artifacts, listeners and rows. */
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

bool task_is_reply(const struct agent_task *task)
{
	return task->is_reply && task->model.state == TASK_COMPLETED;
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
void task_touch(struct agent_task *task)
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

struct agent_task *task_new(struct agents *agents, const char *id, const char *agent)
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
	task_touch(task);
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
