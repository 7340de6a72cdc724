#include "services/deployments.h"

#include "base/clock.h"
#include "base/fault.h"
#include "services/deployment_internal.h"

/* ---- those that are known ---- */

void deployment_forget_logs(struct deployment_state *d)
{
	for (int i = 0; i < SURFACE_COUNT; i++) {
		free(d->logs[i]);
		d->logs[i] = NULL;
	}
}

void deployment_free(struct deployment_state *d)
{
	struct deployments *all = d->all;
	*(d->newer ? &d->newer->older : &all->newest) = d->older;
	if (d->older)
		d->older->newer = d->newer;
	deployment_forget_logs(d);
	arena_done(&d->arena);
	free(d);
}

/* ---- rows and events ---- */

static struct deployment as_row(const struct deployment_state *d)
{
	struct deployment row = { .name = d->name,
		.created_ms = d->created_ms,
		.updated_ms = d->updated_ms,
		.revisions = d->revisions,
		.rollout = d->rollout };
	for (int i = 0; i < SURFACE_COUNT; i++)
		row.logs[i] = d->logs[i];
	memcpy(row.id, d->id, sizeof row.id);
	row.rollout.error = d->error[0] ? d->error : NULL;
	if (d->live)
		row.live = d->live->model;
	if (d->next)
		row.next = d->next->model;
	if (d->previous)
		row.previous = d->previous->model;
	return row;
}

void deployment_save(struct deployment_state *d, store_done_fn *done, void *ctx)
{
	struct deployment row = as_row(d);
	if (!d->is_removed)
		core_put(d->all->service.core, &store_deployments, &row, done, ctx);
}

static enum deployment_status status_of(const struct deployment_state *d)
{
	if (d->next || !d->live)
		return (enum deployment_status)d->rollout.status;
	return revision_is_healthy(d->live) ? DEPLOYMENT_HEALTHY : DEPLOYMENT_UNHEALTHY;
}

static void tell(const struct deployment_state *d, enum deployment_status status,
	const char *version, uint64_t revision, const char *error)
{
	char number[24];
	str_format(number, sizeof number, "%" PRIu64, revision);
	journal_emit(core_journal(d->all->service.core), "deployment.status", "", d->name,
		"deployment", d->id, "status", deployment_status_names[status], "version", version,
		"#revision", number, "error", error ? error : "", NULL);
}

void deployment_set_status(
	struct deployment_state *d, enum deployment_status status, const struct error *err)
{
	if (d->is_removed)
		return;
	d->rollout.status = (int)status;
	d->updated_ms = clock_now_ms();
	str_copy(d->error, sizeof d->error, err ? err->text : "");
	deployment_save(d, NULL, NULL);
	tell(d, status, d->rollout.version, d->rollout.revision, err ? err->text : NULL);
}

void deployment_surface_changed(struct deployment_state *d)
{
	if (!d->live || d->is_removed || d->all->is_stopping)
		return;
	const char *why = NULL;
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (d->live->surfaces[i].why[0])
			why = d->live->surfaces[i].why;
	tell(d, revision_is_healthy(d->live) ? DEPLOYMENT_HEALTHY : DEPLOYMENT_UNHEALTHY,
		d->live->model.version, d->live->model.number, why);
}

/* ---- what is shown ---- */

static struct deployment as_shown(const struct deployment_state *d, struct arena *arena)
{
	struct deployment shown = as_row(d);
	shown.status = (int)status_of(d);
	deployment_describe(d, arena, &shown);
	return shown;
}

static struct deployment_state *find(const struct deployments *all, const char *id)
{
	for (struct deployment_state *d = all->newest; d; d = d->older)
		if (!d->is_removed && (!strcmp(d->id, id) || !strcmp(d->name, id)))
			return d;
	return NULL;
}

static int look_up(const struct request *request, struct deployments *all, enum verb verb,
	const char *id, struct deployment_state **d, struct error *err)
{
	if (core_check(request, all->service.core, verb, NULL, err))
		return -1;
	*d = find(all, id);
	return *d ? 0
		  : fail_hint(err, ERR_NOT_FOUND, "carrel deployment ls lists them",
			    "there is no deployment '%s'", id);
}

int deployment_get(const struct request *request, struct deployments *all, const char *id,
	struct arena *arena, struct deployment *shown, struct error *err)
{
	struct deployment_state *d;
	if (look_up(request, all, VERB_DEPLOYMENT_GET, id, &d, err))
		return -1;
	*shown = as_shown(d, arena);
	return 0;
}

int deployment_list(const struct request *request, struct deployments *all, const char *cursor,
	size_t limit, struct arena *arena, void (*fn)(void *ctx, const struct deployment *shown),
	void *ctx, char next[CORE_CURSOR_SIZE], struct error *err)
{
	struct core_page page;
	if (core_check(request, all->service.core, VERB_DEPLOYMENT_LIST, NULL, err) ||
		core_page_begin(&page, cursor, limit, next, err))
		return -1;
	for (const struct deployment_state *d = all->newest; d && !core_page_is_full(&page);
		d = d->older)
		if (!d->is_removed && core_page_takes(&page, d->created_ms)) {
			struct deployment shown = as_shown(d, arena);
			fn(ctx, &shown);
		}
	return 0;
}

int deployment_logs(const struct request *request, struct deployments *all, const char *id,
	const char *surface, struct buf *out, struct error *err)
{
	struct deployment_state *d;
	if (look_up(request, all, VERB_DEPLOYMENT_GET, id, &d, err))
		return -1;
	return deployment_print_logs(d, surface, out) || !surface || (!d->live && !d->next)
		       ? 0
		       : fail(err, ERR_NOT_FOUND, "deployment '%s' has no surface '%s'", d->name,
				 surface);
}

/* ---- verbs that wait for the store ---- */

/* What a verb asks for, when it has been checked; its fiber has a copy. */
struct deployment_operation {
	struct deployments *all;
	char id[ID_LEN + 1];
	bool is_new;
	deployment_fn *done;
	void *ctx;
	struct error refused; /* code ERR_NONE: it may be done */
};

static int store_next(struct fiber *fiber, const struct deployment_operation *op,
	struct deployment_state **stored, struct error *err)
{
	deployment_save(find(op->all, op->id), fiber_continue, fiber);
	int failed = fiber_wait(fiber, err);
	struct deployment_state *d = *stored = find(op->all, op->id);
	if (!failed && !d)
		failed = fail(err, ERR_CONFLICT, "the deployment was removed meanwhile");
	if (failed && d && d->next && !d->next->rollout)
		revision_end(d->next);
	if (failed && d && op->is_new && !d->live && !d->next)
		deployment_free(d);
	return failed;
}

static void run_deployment(struct fiber *fiber, void *ctx)
{
	const struct deployment_operation op = *(const struct deployment_operation *)ctx;
	auto_arena struct arena arena = { 0 };
	struct deployment_state *d;
	struct deployment shown;
	struct error err = op.refused;
	int failed = err.code ? fail_later(fiber, op.all->service.core)
			      : store_next(fiber, &op, &d, &err);
	if (!failed) {
		fault_point("deployment_stored");
		rollout_begin(d->next);
		shown = as_shown(d, &arena);
	}
	op.done(op.ctx, failed ? NULL : &shown, !failed && op.is_new, failed ? &err : NULL);
}

static void run_deployment_removal(struct fiber *fiber, void *ctx)
{
	const struct deployment_operation op = *(const struct deployment_operation *)ctx;
	struct core *core = op.all->service.core;
	struct error err = op.refused;
	int failed = err.code ? fail_later(fiber, core)
			      : wait_remove(fiber, core, &store_deployments, op.id, &err);
	op.done(op.ctx, NULL, false, failed ? &err : NULL);
}

/* `model` is the next revision. */
static void add_next(const struct request *request, struct deployment_operation *op,
	struct deployment_state *d, const struct revision *model)
{
	char name[PRINCIPAL_NAME_SIZE];
	const char *caller = access_caller(request, name);
	d->next = revision_new(d, model);
	d->next->model.number = ++d->revisions;
	d->next->model.caller = arena_text(&d->next->arena, caller);
	memset(d->next->model.surfaces, 0, sizeof d->next->model.surfaces);
	d->rollout = (struct deployment_rollout){ .revision = d->revisions,
		.version = arena_text(&d->arena, model->version),
		.status = DEPLOYMENT_DOWNLOADING };
	d->error[0] = 0;
	deployment_forget_logs(d);
	memcpy(op->id, d->id, sizeof op->id);
}

static int check_idle(const struct deployment_state *d, struct error *err)
{
	if (d->all->is_stopping)
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	return d->next ? fail_hint(err, ERR_CONFLICT, "wait until it has ended, or remove it",
				 "revision %" PRIu64 " of deployment '%s' is being rolled out",
				 d->next->model.number, d->name)
		       : 0;
}

static struct deployment_state *add(struct deployments *all, const char *id, const char *name)
{
	struct deployment_state *d = xzalloc(sizeof *d);
	d->all = all;
	arena_init(&d->arena);
	memcpy(d->id, id, sizeof d->id);
	d->name = arena_text(&d->arena, name);
	d->older = all->newest;
	if (d->older)
		d->older->newer = d;
	all->newest = d;
	return d;
}

static int check_room(const struct deployments *all, struct error *err)
{
	size_t count = 0;
	for (const struct deployment_state *d = all->newest; d; d = d->older)
		count++;
	return count >= DEPLOYMENTS_MAX
		       ? fail_hint(err, ERR_LIMIT, "carrel deployment rm removes one",
				 "there are %zu deployments already", count)
		       : 0;
}

static int find_or_add(struct deployment_operation *op, const char *name,
	struct deployment_state **out, struct error *err)
{
	struct deployments *all = op->all;
	char id[ID_LEN + 1];
	*out = find(all, name);
	if (*out)
		return check_idle(*out, err);
	if (all->is_stopping)
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	if (check_room(all, err))
		return -1;
	if (id_is_valid(name))
		return fail(err, ERR_INVALID, "the name '%s' has the form of an id", name);
	id_make(id);
	*out = add(all, id, name);
	(*out)->created_ms = (*out)->updated_ms = clock_now_ms();
	if ((*out)->older && (*out)->created_ms <= (*out)->older->created_ms)
		(*out)->created_ms = (*out)->older->created_ms + 1;
	op->is_new = true;
	return 0;
}

void deployment_create(const struct request *request, struct deployments *all,
	const struct deployment_wanted *wanted, deployment_fn *done, void *ctx)
{
	struct deployment_operation op = { .all = all, .done = done, .ctx = ctx };
	auto_arena struct arena arena = { 0 };
	struct deployment_state *d;
	struct workspace_network network = wanted->network;
	bool has_network = network.mode || network.allow.count || network.deny.count;
	if (core_check(request, all->service.core, VERB_DEPLOYMENT_CREATE, NULL, &op.refused) ||
		(has_network && workspace_network_settle(&network, &op.refused)) ||
		find_or_add(
			&op, wanted->name ? wanted->name : wanted->agent_app_id, &d, &op.refused)) {
		fiber_start(run_deployment, &op);
		return;
	}
	const struct revision model = { .agent_app_id = wanted->agent_app_id,
		.version = wanted->version,
		.package_url = wanted->package_url ? wanted->package_url
						   : arena_printf(&arena, "blob:%s@%s",
							     wanted->agent_app_id, wanted->version),
		.wanted_sha256 = wanted->sha256,
		.rebuild_venv = wanted->rebuild_venv,
		.skip_venv_cache = wanted->skip_venv_cache,
		.force_refresh = wanted->force_refresh,
		.pip_index_url = wanted->pip_index_url,
		.pip_extra_index_url = wanted->pip_extra_index_url,
		.pip_trusted_host = wanted->pip_trusted_host,
		.env = wanted->env,
		.network = network,
		.settings = wanted->settings };
	add_next(request, &op, d, &model);
	fiber_start(run_deployment, &op);
}

/* The revision that is rolled out once more. */
static int find_earlier(const struct request *request, struct deployments *all, enum verb verb,
	const char *id, struct deployment_state **d, const struct revision_state **from,
	struct error *err)
{
	bool is_rollback = verb == VERB_DEPLOYMENT_ROLLBACK;
	if (look_up(request, all, verb, id, d, err) || check_idle(*d, err))
		return -1;
	*from = is_rollback ? (*d)->previous : (*d)->live;
	return *from ? 0
		     : fail(err, ERR_CONFLICT, "deployment '%s' has no %s", (*d)->name,
			       is_rollback ? "earlier revision" : "live revision");
}

static void roll_again(const struct request *request, struct deployments *all, enum verb verb,
	const char *id, deployment_fn *done, void *ctx)
{
	struct deployment_operation op = { .all = all, .done = done, .ctx = ctx };
	struct deployment_state *d;
	const struct revision_state *from;
	if (!find_earlier(request, all, verb, id, &d, &from, &op.refused)) {
		struct revision model = from->model;
		model.rebuild_venv = model.skip_venv_cache = model.force_refresh = false;
		model.is_cached = true;
		add_next(request, &op, d, &model);
	}
	fiber_start(run_deployment, &op);
}

void deployment_restart(const struct request *request, struct deployments *all, const char *id,
	deployment_fn *done, void *ctx)
{
	roll_again(request, all, VERB_DEPLOYMENT_RESTART, id, done, ctx);
}

void deployment_rollback(const struct request *request, struct deployments *all, const char *id,
	deployment_fn *done, void *ctx)
{
	roll_again(request, all, VERB_DEPLOYMENT_ROLLBACK, id, done, ctx);
}

void deployment_remove(const struct request *request, struct deployments *all, const char *id,
	deployment_fn *done, void *ctx)
{
	struct deployment_operation op = { .all = all, .done = done, .ctx = ctx };
	struct deployment_state *d;
	if (look_up(request, all, VERB_DEPLOYMENT_REMOVE, id, &d, &op.refused)) {
		fiber_start(run_deployment_removal, &op);
		return;
	}
	struct revision_state *each[] = { d->next, d->live, d->previous };
	char name[PRINCIPAL_NAME_SIZE];
	for (int i = 0; i < 3; i++)
		if (each[i])
			each[i]->model.caller =
				arena_text(&each[i]->arena, access_caller(request, name));
	tell(d, DEPLOYMENT_STOPPED, d->rollout.version, d->rollout.revision, NULL);
	memcpy(op.id, d->id, sizeof op.id);
	fiber_start(run_deployment_removal, &op);
	fault_point("deployment_dropped");
	d->is_removed = true;
	if (!each[0] && !each[1] && !each[2])
		deployment_free(d);
	for (int i = 0; i < 3; i++)
		if (each[i])
			revision_end(each[i]);
}

/* ---- requests for surfaces ---- */

int deployment_enter(const struct request *request, struct deployments *all, const char *id,
	enum surface_kind kind, struct core_workspace **w, uint16_t *port, struct surface **use,
	struct error *err)
{
	struct deployment_state *d;
	if (look_up(request, all, VERB_DEPLOYMENT_CONNECT, id, &d, err))
		return -1;
	if (!d->live) {
		fail(err, ERR_UNAVAILABLE, "deployment '%s' has no live revision; its status is %s",
			d->name, deployment_status_names[d->rollout.status]);
		return error_hint(err, "carrel deployment show %s says why", d->name);
	}
	if (!d->live->agent.surfaces[kind].is_there)
		return fail(err, ERR_NOT_FOUND, "deployment '%s' has no surface '%s'", d->name,
			surface_names[kind]);
	*w = surface_workspace(&d->live->surfaces[kind]);
	if (!*w)
		return fail(err, ERR_UNAVAILABLE, "surface '%s' of deployment '%s' does not run",
			surface_names[kind], d->name);
	if (!d->live->surfaces[kind].is_following) { /* its process has ended, or isn't begun yet */
		surface_fail_away(&d->live->surfaces[kind], err);
		return -1;
	}
	*port = apkg_port(&d->live->agent, kind);
	*use = &d->live->surfaces[kind];
	(*use)->uses++;
	return 0;
}

void deployment_explain(const struct surface *use, struct error *err)
{
	if (err->code == ERR_CONFLICT)
		surface_fail_away(use, err);
}

void deployment_leave(struct surface *use)
{
	use->uses--;
	if (use->revision->is_ended)
		revision_free_unused(use->revision);
}

/* ---- the service ---- */

static void take(void *state, const struct store_table *table, const void *row)
{
	struct deployments *all = state;
	const struct deployment *kept = row;
	struct deployment_state *d = add(all, kept->id, kept->name);
	d->created_ms = kept->created_ms;
	d->updated_ms = kept->updated_ms;
	d->revisions = kept->revisions;
	d->rollout = kept->rollout;
	d->rollout.version = arena_text(&d->arena, kept->rollout.version);
	str_copy(d->error, sizeof d->error, kept->rollout.error ? kept->rollout.error : "");
	d->rollout.error = NULL;
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (kept->logs[i]) {
			size_t len = strlen(kept->logs[i]);
			d->logs[i] = xzalloc(len + 1);
			memcpy(d->logs[i], kept->logs[i], len);
		}
	if (kept->live.number)
		d->live = revision_new(d, &kept->live);
	if (kept->next.number)
		d->next = revision_new(d, &kept->next);
	if (kept->previous.number)
		d->previous = revision_new(d, &kept->previous);
}

/* Others are what a rollout or a drain has left behind, when core was killed. */
static bool is_named(void *ctx, const struct workspace *w)
{
	const struct deployments *all = ctx;
	for (const struct deployment_state *d = all->newest; d; d = d->older) {
		const struct revision_state *each[] = { d->live, d->next, d->previous };
		for (int i = 0; i < 3; i++) {
			const struct revision *m = each[i] ? &each[i]->model : NULL;
			if (m && m->snapshot && m->layer && !strcmp(m->layer, w->id))
				return true;
			for (int k = 0; each[i] == d->live && m && k < SURFACE_COUNT; k++)
				if (m->surfaces[k].workspace &&
					!strcmp(m->surfaces[k].workspace, w->id))
					return true;
		}
	}
	return false;
}

static void resume(struct deployment_state *d)
{
	struct revision_state *r = d->live;
	struct error err;
	if (d->previous)
		memset(d->previous->model.surfaces, 0, sizeof d->previous->model.surfaces);
	if (r && apkg_parse(str_from(r->model.manifest), &r->arena, &r->agent, &err)) {
		deployment_set_status(d, DEPLOYMENT_FAILED, &err);
		revision_end(r);
		r = NULL;
	}
	for (int i = 0; r && i < SURFACE_COUNT; i++)
		if (r->agent.surfaces[i].is_there)
			surface_adopt(&r->surfaces[i]);
	/* A rollout that was cut begins again: what it made is gone, but for files that are whole.
	 */
	if (!d->next)
		return;
	memset(d->next->model.surfaces, 0, sizeof d->next->model.surfaces);
	if (!d->next->model.snapshot)
		d->next->model.layer = NULL;
	rollout_begin(d->next);
}

static void start(void *state)
{
	struct deployments *all = state;
	desk_sweep(all->service.core, SERVICE_NAME, "removed", is_named, all);
	for (struct deployment_state *d = all->newest, *older; d; d = older) {
		older = d->older;
		resume(d);
	}
}

static void stop(void *state)
{
	struct deployments *all = state;
	all->is_stopping = true;
	for (struct deployment_state *d = all->newest; d; d = d->older)
		for (int i = 0; d->live && i < SURFACE_COUNT; i++)
			surface_stop(&d->live->surfaces[i]);
}

static void free_all(void *state)
{
	struct deployments *all = state;
	all->is_freed = true;
	while (all->newest) {
		struct deployment_state *d = all->newest;
		struct revision_state *each[] = { d->live, d->next, d->previous };
		for (int i = 0; i < 3; i++)
			if (each[i])
				revision_free(each[i]);
		deployment_free(d);
	}
}

static void print_metrics(void *state, struct buf *out)
{
	const struct deployments *all = state;
	uint64_t counts[DEPLOYMENT_STATUS_COUNT] = { 0 };
	for (const struct deployment_state *d = all->newest; d; d = d->older)
		if (!d->is_removed)
			counts[status_of(d)]++;
	buf_text(out, "# HELP carrel_deployments Deployments by status.\n"
		      "# TYPE carrel_deployments gauge\n");
	for (int i = 0; i < DEPLOYMENT_STATUS_COUNT; i++)
		buf_printf(out, "carrel_deployments{status=\"%s\"} %" PRIu64 "\n",
			deployment_status_names[i], counts[i]);
	buf_printf(out,
		"# HELP carrel_deployment_rollouts_total Rollouts that ended.\n"
		"# TYPE carrel_deployment_rollouts_total counter\n"
		"carrel_deployment_rollouts_total{result=\"healthy\"} %" PRIu64 "\n"
		"carrel_deployment_rollouts_total{result=\"failed\"} %" PRIu64 "\n"
		"# HELP carrel_deployment_restarts_total Restarts of surfaces.\n"
		"# TYPE carrel_deployment_restarts_total counter\n"
		"carrel_deployment_restarts_total %" PRIu64 "\n",
		all->rollouts, all->rollout_failures, all->restarts);
}

static const struct store_table *const tables[] = { &store_deployments, NULL };
const struct service deployments_service = {
	.name = SERVICE_NAME,
	.tables = tables,
	.size = sizeof(struct deployments),
	.take = take,
	.start = start,
	.stop = stop,
	.free = free_all,
	.print_metrics = print_metrics,
};
