/* approvals.c -- approvals in memory and in the store: asked, listed, ended, pruned. */
#include "base/clock.h"
#include "base/fault.h"
#include "core/access/approvals_internal.h"
#include "core/access/webhooks.h"
#include "policy/approval.h"

#define TIMER_MAX_MS (24 * 3600 * 1000ull)
#define RETRY_MS 10000 /* an expiry that could not be written */
#define NOTE_EXPIRED "no reviewer answered in time"
#define NOTE_LEFT "the exec was canceled"
#define NOTE_GONE "the daemon ended, and the client that waited is gone"
#define NOTE_REMOVED "the workspace was removed"

static void arm(struct core_approval *a, uint64_t left_ms);

/* ---- those that are known ---- */

static size_t bytes_of(const struct approval *model)
{
	const char *texts[] = { model->command, model->cwd, model->trail, model->spec,
		model->input };
	size_t bytes = sizeof(struct core_approval);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		bytes += texts[i] ? strlen(texts[i]) : 0;
	for (size_t i = 0; i < model->argv.count; i++)
		bytes += strlen(model->argv.items[i]) + sizeof(char *);
	for (size_t i = 0; i < model->env.count; i++) {
		const struct text_pair *pair = &model->env.items[i];
		bytes += sizeof *pair + strlen(pair->key) + (pair->value ? strlen(pair->value) : 0);
	}
	return bytes;
}

static struct core_approval *add(struct core *core, const struct approval *model)
{
	struct core_approval *a = xzalloc(sizeof *a);
	a->core = core;
	arena_init(&a->arena);
	a->model = *model;
	record_copy_texts(&approval_record, &a->arena, &a->model);
	/* Times of creation are unique: they serve as cursors. */
	if (core->access->newest_approval &&
		a->model.created_ms <= core->access->newest_approval->model.created_ms)
		a->model.created_ms = core->access->newest_approval->model.created_ms + 1;
	a->bytes = bytes_of(model);
	core->access->approval_bytes += a->bytes;
	a->older = core->access->newest_approval;
	*(a->older ? &a->older->newer : &core->access->oldest_approval) = a;
	core->access->newest_approval = a;
	map_add(&core->access->approvals, str_from(a->model.id), a);
	return a;
}

static void forget_waiters(struct core_approval *a)
{
	while (a->waiters) {
		struct approval_waiter *next = a->waiters->next;
		free(a->waiters);
		a->waiters = next;
	}
}

static void drop(struct core_approval *a)
{
	struct core *core = a->core;
	map_remove(&core->access->approvals, str_from(a->model.id));
	*(a->newer ? &a->newer->older : &core->access->newest_approval) = a->older;
	*(a->older ? &a->older->newer : &core->access->oldest_approval) = a->newer;
	core->access->approval_bytes -= a->bytes;
	loop_cancel(core->loop, a->timer);
	forget_waiters(a);
	arena_done(&a->arena);
	arena_done(&a->answers);
	free(a);
}

struct core_approval *approval_lookup(const struct core *core, const char *id)
{
	return map_get(&core->access->approvals, str_from(id));
}

static bool is_pending(const struct core_approval *a)
{
	return a->model.state == APPROVAL_PENDING;
}

/* The oldest of those that have ended go first. */
static void prune(struct core *core)
{
	int64_t before_ms = clock_now_ms() - APPROVALS_KEPT_MS;
	size_t ended = 0;
	for (struct core_approval *a = core->access->oldest_approval; a; a = a->newer)
		ended += !is_pending(a);
	for (struct core_approval *a = core->access->oldest_approval, *newer; a; a = newer) {
		newer = a->newer;
		bool is_due = a->model.created_ms < before_ms || ended > APPROVALS_ENDED_MAX ||
			      core->access->approval_bytes > APPROVALS_BYTES_MAX / 2;
		if (is_pending(a) || a->is_ending || a->done || !is_due)
			continue;
		store_remove(core->store, &store_approvals, a->model.id, NULL, NULL, NULL);
		drop(a);
		ended--;
	}
}

void approvals_quiet(struct core *core)
{
	for (struct core_approval *a = core->access->newest_approval; a; a = a->older) {
		a->done = NULL;
		forget_waiters(a);
	}
}

void approvals_done(struct core *core)
{
	while (core->access->newest_approval)
		drop(core->access->newest_approval);
}

/* ---- telling ---- */

static void tell_journal(struct core_approval *a, const char *type)
{
	journal_emit(&a->core->journal, type, a->model.workspace, a->model.workspace_name,
		"approval", a->model.id, "exec", a->model.exec, "by", a->model.answered_by, "note",
		a->model.note, NULL);
	webhook_send(a->core, type, &a->model);
}

static void call_waiters(struct core_approval *a, const struct error *err)
{
	struct approval_waiter *waiter = a->waiters;
	a->waiters = NULL;
	while (waiter) {
		struct approval_waiter *next = waiter->next;
		waiter->fn(waiter->ctx, err ? NULL : &a->model, err);
		free(waiter);
		waiter = next;
	}
}

/* ---- ending ---- */

void approval_prepare(
	struct core_approval *a, enum approval_state state, const char *by, const char *note)
{
	a->is_ending = true;
	a->next = a->model;
	a->next.state = state;
	arena_done(&a->answers); /* of an answer that could not be written */
	a->next.answered_by = arena_text(&a->answers, by);
	a->next.note = arena_text(&a->answers, note);
	a->next.answered_ms = clock_now_ms();
	/* What runs it is needed until it runs: approval_begun. */
	if (state != APPROVAL_APPROVED)
		a->next.spec = NULL;
}

void approval_fail(struct core_approval *a, const struct error *err)
{
	uint64_t now_ms = clock_monotonic_ms();
	call_waiters(a, err);
	if (is_pending(a))
		arm(a, a->until_ms > now_ms + RETRY_MS ? a->until_ms - now_ms : RETRY_MS);
}

static void on_ended(void *ctx, const struct error *err)
{
	static const char *const types[APPROVAL_STATE_COUNT] = { "approval.requested",
		"approval.approved", "approval.denied", "approval.expired" };
	struct core_approval *a = ctx;
	a->is_ending = false;
	if (err) {
		approval_fail(a, err);
		return;
	}
	fault_point("core_approval_ended");
	a->model = a->next;
	loop_cancel(a->core->loop, a->timer);
	a->timer = NULL;
	tell_journal(a, types[a->model.state]);
	call_waiters(a, NULL);
	approval_fn *done = a->done;
	a->done = NULL;
	if (done)
		done(a->ctx, a->model.state, &a->model);
	prune(a->core);
}

void approval_end(struct core_approval *a)
{
	store_put(a->core->store, &store_approvals, &a->next, on_ended, a);
}

static void expire(struct core_approval *a, const char *note)
{
	approval_prepare(a, APPROVAL_EXPIRED, NULL, note);
	approval_end(a);
}

/* On the monotonic clock: a wall clock that is set moves nothing while core runs. */
static void on_timer(struct loop *loop, void *ctx)
{
	struct core_approval *a = ctx;
	uint64_t now_ms = clock_monotonic_ms();
	a->timer = NULL;
	if (!is_pending(a) || a->is_ending)
		return;
	if (a->until_ms > now_ms)
		arm(a, a->until_ms - now_ms);
	else
		expire(a, NOTE_EXPIRED);
}

static void arm(struct core_approval *a, uint64_t left_ms)
{
	loop_cancel(a->core->loop, a->timer);
	a->timer = loop_after(
		a->core->loop, left_ms < TIMER_MAX_MS ? left_ms : TIMER_MAX_MS, on_timer, a);
}

/* ---- asking ---- */

static int check_room(
	const struct core_workspace *w, const char *requested_by, size_t bytes, struct error *err)
{
	const struct core *core = w->core;
	const char *holder = access_holder(requested_by);
	size_t all = 0, here = 0, share = 0;
	for (const struct core_approval *a = core->access->newest_approval; a; a = a->older)
		if (is_pending(a)) {
			all++;
			here += !strcmp(a->model.workspace, w->model.id);
			share += !strcmp(access_holder(a->model.requested_by), holder);
		}
	if (share >= APPROVALS_SHARE_MAX)
		return fail_hint(err, ERR_LIMIT,
			"carrel approval ls --state pending lists what waits for an answer",
			"%zu commands of %s wait for an approval, and %d are the limit of one "
			"principal",
			share, holder, APPROVALS_SHARE_MAX);
	if (here >= APPROVALS_WAITING_MAX || all >= APPROVALS_PENDING_MAX ||
		core->access->approval_bytes + bytes > APPROVALS_BYTES_MAX)
		return fail_hint(err, ERR_LIMIT,
			"carrel approval ls --state pending lists what waits for an answer",
			"%zu commands of workspace '%s' and %zu in all wait for an approval", here,
			w->model.name, all);
	return 0;
}

static void on_asked(void *ctx, const struct error *err)
{
	struct core_approval *a = ctx;
	if (!err) {
		fault_point("core_approval_asked");
		if (!is_pending(a))
			return;
		tell_journal(a, "approval.requested");
		if (a->done)
			a->done(a->ctx, APPROVAL_PENDING, &a->model);
		return;
	}
	/* Nobody was told of it, and nobody can answer it after a restart. */
	approval_fn *done = a->done;
	a->done = NULL;
	a->model.state = APPROVAL_EXPIRED;
	a->model.note = arena_printf(&a->arena, "the question could not be stored: %s", err->text);
	loop_cancel(a->core->loop, a->timer);
	a->timer = NULL;
	if (done)
		done(a->ctx, APPROVAL_EXPIRED, &a->model);
}

int approval_ask(const char *requested_by, struct core_workspace *w,
	const struct approval_question *question, approval_fn *done, void *ctx, char id[ID_LEN + 1],
	struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct core *core = w->core;
	struct approval model = { .workspace_name = w->model.name,
		.exec = question->exec,
		.requested_by = requested_by,
		.created_ms = clock_now_ms(),
		.began_ms = clock_monotonic_ms(),
		.ttl_ms = core->access->approval_ttl_ms,
		.boot = core->access->boot };
	if (approval_describe(&model, question->spec, question->is_kept, &arena, err))
		return -1;
	policy_fill_approval(&model, question->verdict, &arena);
	if (check_room(w, requested_by, bytes_of(&model), err))
		return -1;
	id_make(model.id);
	memcpy(model.workspace, w->model.id, sizeof model.workspace);
	model.expires_ms = model.created_ms + (int64_t)model.ttl_ms;
	struct core_approval *a = add(core, &model);
	a->done = done;
	a->ctx = ctx;
	a->until_ms = model.began_ms + model.ttl_ms;
	arm(a, model.ttl_ms);
	store_put(core->store, &store_approvals, &a->model, on_asked, a);
	memcpy(id, a->model.id, ID_LEN + 1);
	return 0;
}

void approval_withdraw(struct core *core, const char *id)
{
	struct core_approval *a = approval_lookup(core, id);
	if (!a)
		return;
	a->done = NULL;
	if (is_pending(a) && !a->is_ending)
		expire(a, NOTE_LEFT);
}

void approval_begun(struct core *core, const char *id)
{
	struct core_approval *a = approval_lookup(core, id);
	if (!a || !a->model.spec || a->is_ending)
		return;
	a->model.spec = NULL;
	store_put(core->store, &store_approvals, &a->model, NULL, NULL);
}

const struct approval *approval_of(const struct core *core, const char *id)
{
	const struct core_approval *a = approval_lookup(core, id);
	return a ? &a->model : NULL;
}

void approval_overrule(struct core *core, const char *id, const char *note)
{
	struct core_approval *a = approval_lookup(core, id);
	if (!a || a->is_ending)
		return;
	a->model.spec = NULL;
	a->model.note = arena_text(&a->arena, note);
	store_put(core->store, &store_approvals, &a->model, NULL, NULL);
}

void approvals_forget(struct core *core, const struct core_workspace *w)
{
	for (struct core_approval *a = core->access->newest_approval; a; a = a->older) {
		if (strcmp(a->model.workspace, w->model.id) != 0)
			continue;
		a->done = NULL;
		if (is_pending(a) && !a->is_ending)
			expire(a, NOTE_REMOVED);
	}
}

/* ---- after a start ---- */

void approval_restore(struct core *core, const struct approval *row)
{
	add(core, row);
}

static void on_known(struct loop *loop, void *ctx)
{
	struct core_approval *a = ctx;
	approval_fn *done = a->done;
	a->timer = NULL;
	a->done = NULL;
	if (done)
		done(a->ctx, a->model.state, &a->model);
}

const struct approval *approval_await(
	struct core *core, const char *exec, approval_fn *done, void *ctx)
{
	for (struct core_approval *a = core->access->newest_approval; a; a = a->older) {
		if (strcmp(a->model.exec, exec) != 0)
			continue;
		a->done = done;
		a->ctx = ctx;
		if (!is_pending(a))
			a->timer = loop_after(core->loop, 0, on_known, a);
		return &a->model;
	}
	return NULL;
}

/* From now on it is reckoned from this boot. */
static void go_on(struct core_approval *a)
{
	struct core *core = a->core;
	uint64_t now_ms = clock_monotonic_ms();
	uint64_t left_ms = approval_left_ms(&a->model, core->access->boot, clock_now_ms(), now_ms);
	a->until_ms = now_ms + left_ms;
	arm(a, left_ms);
	if (!left_ms || !core->access->boot ||
		(a->model.boot && !strcmp(a->model.boot, core->access->boot)))
		return;
	a->model.boot = core->access->boot;
	a->model.began_ms = now_ms;
	a->model.ttl_ms = left_ms;
	a->model.expires_ms = clock_now_ms() + (int64_t)left_ms;
	store_put(core->store, &store_approvals, &a->model, NULL, NULL);
}

void approvals_settle(struct core *core)
{
	for (struct core_approval *a = core->access->newest_approval; a; a = a->older) {
		if (!is_pending(a)) {
			if (!a->done)
				approval_begun(core, a->model.id);
		} else if (!approval_workspace(a)) {
			expire(a, NOTE_REMOVED);
		} else if (!a->done) {
			expire(a, NOTE_GONE);
		} else {
			go_on(a);
		}
	}
	prune(core);
}

/* ---- verbs ---- */

int core_approval_find(const struct request *request, struct core *core, const char *id,
	const struct approval **approval, struct error *err)
{
	const struct core_approval *a = approval_lookup(core, id);
	if (!a || !access_reaches(request, approval_workspace(a)))
		return fail_hint(err, ERR_NOT_FOUND, "carrel approval ls lists their ids",
			"there is no approval '%s'", id);
	if (access_check(core, request, VERB_APPROVAL_GET, approval_workspace(a), err))
		return -1;
	*approval = &a->model;
	return 0;
}

int core_approval_list(const struct request *request, struct core *core,
	const struct approval_filter *filter,
	void (*fn)(void *ctx, const struct approval *approval), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err)
{
	const struct core_workspace *w = filter->w;
	struct core_page page;
	if (access_check(
		    core, request, VERB_APPROVAL_LIST, w ? w : access_bound(core, request), err) ||
		core_page_begin(&page, filter->cursor, filter->limit, next, err))
		return -1;
	for (const struct core_approval *a = core->access->newest_approval;
		a && !core_page_is_full(&page); a = a->older)
		if ((!w || !strcmp(a->model.workspace, w->model.id)) &&
			(filter->state < 0 || (int)a->model.state == filter->state) &&
			access_reaches(request, approval_workspace(a)) &&
			core_page_takes(&page, a->model.created_ms))
			fn(ctx, &a->model);
	return 0;
}
