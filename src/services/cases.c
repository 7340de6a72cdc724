/* cases.c -- the cases and cells that there are: verbs, rows, what a restart finds, lifetimes. */
#include "services/cases.h"

#include "base/clock.h"
#include "base/fault.h"
#include "format/text/yaml_json.h"
#include "services/cases_internal.h"

#define SWEEP_MS 60000

/* ---- entries ---- */

static struct case_entry *case_add(struct cases *cases, const struct eval_case *model)
{
	struct case_entry *c = xzalloc(sizeof *c);
	c->cases = cases;
	arena_init(&c->arena);
	c->model = *model;
	record_copy_texts(&case_record, &c->arena, &c->model);
	if (!c->model.ttl_ms) /* a row of before there was one */
		c->model.ttl_ms = CASE_TTL_MS;
	/* Times of creation are unique: they serve as cursors. */
	if (cases->newest && c->model.created_ms <= cases->newest->model.created_ms)
		c->model.created_ms = cases->newest->model.created_ms + 1;
	c->older = cases->newest;
	if (c->older)
		c->older->newer = c;
	cases->newest = c;
	map_set(&cases->ids, str_from(c->model.id), c);
	return c;
}

struct cell_entry *cell_add(struct case_entry *c, const struct cell *model)
{
	struct cell_entry *cell = xzalloc(sizeof *cell);
	cell->c = c;
	arena_init(&cell->arena);
	cell->model = *model;
	record_copy_texts(&cell_record, &cell->arena, &cell->model);
	if (c->cells && cell->model.created_ms <= c->cells->model.created_ms)
		cell->model.created_ms = c->cells->model.created_ms + 1;
	cell->next = c->cells;
	c->cells = cell;
	map_set(&c->cases->cell_ids, str_from(cell->model.id), cell);
	return cell;
}

void cell_drop(struct cell_entry *cell)
{
	struct cell_entry **at = &cell->c->cells;
	while (*at != cell)
		at = &(*at)->next;
	*at = cell->next;
	map_remove(&cell->c->cases->cell_ids, str_from(cell->model.id));
	share_release(&cell->share);
	arena_done(&cell->arena);
	free(cell);
}

void case_drop(struct case_entry *c)
{
	while (c->cells)
		cell_drop(c->cells);
	map_remove(&c->cases->ids, str_from(c->model.id));
	*(c->newer ? &c->newer->older : &c->cases->newest) = c->older;
	if (c->older)
		c->older->newer = c->newer;
	arena_done(&c->arena);
	free(c);
}

void case_emit(const struct case_entry *c, const char *type)
{
	journal_emit(core_journal(c->cases->base.core), type,
		c->model.workspace ? c->model.workspace : "", c->model.name, "case", c->model.id,
		c->model.error ? "error" : NULL, c->model.error, NULL);
}

void case_set_state(
	struct case_entry *c, enum case_state state, const char *reason, const char *error)
{
	static const char *const types[CASE_STATE_COUNT] = { "case.created", "case.preparing",
		"case.ready", "case.failed" };
	c->model.state = state;
	c->model.reason = arena_text(&c->arena, reason);
	c->model.error = arena_text(&c->arena, error);
	c->model.last_used_ms = clock_now_ms();
	core_put(c->cases->base.core, &store_cases, &c->model, NULL, NULL);
	case_emit(c, types[state]);
}

void cell_set_state(
	struct cell_entry *cell, enum cell_state state, const char *reason, const char *error)
{
	static const char *const types[CELL_STATE_COUNT] = { "cell.waiting", "cell.harness",
		"cell.grading", "cell.passed", "cell.failed", "cell.canceled" };
	struct cases *cases = cell->c->cases;
	char repeat[24];
	cell->model.state = state;
	cell->model.reason = arena_text(&cell->arena, reason);
	cell->model.error = arena_text(&cell->arena, error);
	if (cell_has_ended(state)) {
		cell->model.ended_ms = clock_now_ms();
		cell->c->model.last_used_ms = cell->model.ended_ms;
		cases->ended[state]++;
		cases->open_cells--;
		share_release(&cell->share);
		fault_point("cell_ended");
		core_put(cases->base.core, &store_cells, &cell->model, NULL, NULL);
	}
	str_format(repeat, sizeof repeat, "%llu", (unsigned long long)cell->model.repeat);
	journal_emit(core_journal(cases->base.core), types[state],
		cell->model.workspace ? cell->model.workspace : "", cell->model.case_name, "cell",
		cell->model.id, "case", cell->model.case_id, "#repeat", repeat,
		cell->model.reason ? "reason" : NULL, cell->model.reason, NULL);
}

/* ---- lookup, and what is shown ---- */

int case_find(struct cases *cases, const char *id, struct case_entry **c, struct error *err)
{
	*c = map_get(&cases->ids, str_from(id));
	if (*c && !(*c)->is_removed)
		return 0;
	return fail_hint(
		err, ERR_NOT_FOUND, "carrel case ls lists them", "there is no case '%.64s'", id);
}

/* Values that look like secrets are NULL. */
static pair_list shown_variables(const pair_list *variables, struct arena *arena)
{
	pair_list shown = pair_list_copy(arena, variables);
	for (size_t i = 0; i < shown.count; i++)
		if (workspace_variable_is_secret(shown.items[i].key, shown.items[i].value))
			shown.items[i].value = NULL;
	return shown;
}

static struct eval_case as_shown(const struct case_entry *c, struct arena *arena)
{
	struct eval_case shown = c->model;
	for (const struct cell_entry *cell = c->cells; cell; cell = cell->next)
		shown.cells++;
	shown.variables = shown_variables(&c->model.variables, arena);
	return shown;
}

int case_get(const struct request *request, struct cases *cases, const char *id,
	struct arena *arena, struct eval_case *shown, struct error *err)
{
	struct case_entry *c;
	if (core_check(request, cases->base.core, VERB_CASE_GET, NULL, err) ||
		case_find(cases, id, &c, err))
		return -1;
	*shown = as_shown(c, arena);
	return 0;
}

static int begin_page(struct core_page *page, const char *cursor, size_t limit,
	char next[CORE_CURSOR_SIZE], struct error *err)
{
	return core_page_begin(page, cursor, limit, next, err)
		       ? fail(err, ERR_INVALID, "invalid cursor '%.64s'", cursor)
		       : 0;
}

int case_list(const struct request *request, struct cases *cases, const char *cursor, size_t limit,
	void (*fn)(void *ctx, const struct eval_case *shown), void *ctx,
	char next[CORE_CURSOR_SIZE], struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct core_page page;
	if (core_check(request, cases->base.core, VERB_CASE_LIST, NULL, err) ||
		begin_page(&page, cursor, limit, next, err))
		return -1;
	for (struct case_entry *c = cases->newest; c && !core_page_is_full(&page); c = c->older)
		if (!c->is_removed && core_page_takes(&page, c->model.created_ms)) {
			struct eval_case shown = as_shown(c, &arena);
			fn(ctx, &shown);
		}
	return 0;
}

int cell_get(const struct request *request, struct cases *cases, const char *id,
	struct arena *arena, struct cell *shown, struct error *err)
{
	if (core_check(request, cases->base.core, VERB_CELL_GET, NULL, err))
		return -1;
	const struct cell_entry *cell = map_get(&cases->cell_ids, str_from(id));
	if (!cell)
		return fail_hint(err, ERR_NOT_FOUND, "carrel case ls lists the cases",
			"there is no cell '%.64s'", id);
	*shown = cell->model;
	shown->variables = shown_variables(&cell->model.variables, arena);
	return 0;
}

int cell_list(const struct request *request, struct cases *cases, const char *case_id,
	const char *cursor, size_t limit, void (*fn)(void *ctx, const struct cell *shown),
	void *ctx, char next[CORE_CURSOR_SIZE], struct error *err)
{
	struct case_entry *c;
	struct core_page page;
	if (core_check(request, cases->base.core, VERB_CELL_GET, NULL, err) ||
		case_find(cases, case_id, &c, err) || begin_page(&page, cursor, limit, next, err))
		return -1;
	for (struct cell_entry *cell = c->cells; cell && !core_page_is_full(&page);
		cell = cell->next)
		if (core_page_takes(&page, cell->model.created_ms)) {
			struct cell shown = cell->model;
			shown.steps = "[]";
			shown.diff = NULL;
			shown.variables = (pair_list){ 0 };
			fn(ctx, &shown);
		}
	return 0;
}

/* ---- a new case ---- */

/* Its fiber has a copy. */
struct creation {
	struct cases *cases;
	struct arena arena;
	const struct request *request; /* until the first wait */
	struct eval_case model;
	struct case_spec spec;
	bool is_check;
	case_fn *done;
	void *ctx;
	struct error err; /* code ERR_NONE: none */
};

static int read_spec(const char *yaml, const char *harness, const char *file, struct arena *arena,
	struct case_spec *spec, struct error *err)
{
	struct json_value *value;
	if (!yaml_json_read(str_from(yaml), arena, &value, err) &&
		!case_read(value, harness, arena, spec, err))
		return 0;
	return file ? error_context(err, "%s", file) : -1;
}

static int check_room(const struct cases *cases, struct error *err)
{
	if (cases->is_stopping || core_is_stopping(cases->base.core))
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	return cases->ids.live >= CASES_MAX
		       ? fail_hint(err, ERR_LIMIT, "carrel case rm removes one",
				 "there are %d cases already", CASES_MAX)
		       : 0;
}

struct workspace_owner case_owner(const struct eval_case *model)
{
	return (struct workspace_owner){ .service = CASES_SERVICE, .case_id = model->id };
}

static int make_workspace(struct creation *creation, struct fiber *fiber, struct error *err)
{
	struct case_spec *spec = &creation->spec;
	struct arena *arena = &creation->arena;
	struct workspace wanted = { .name = arena_printf(arena, "case-%s", creation->model.id),
		.limits = spec->limits,
		.network = spec->network,
		.owner = case_owner(&creation->model) };
	struct desk desk;
	/* A cell is thrown away: what Python compiles there is of no use to the next one, and would
	 * be taken for something that the harness has changed. */
	vec_push(arena, &wanted.env, (struct text_pair){ "PYTHONDONTWRITEBYTECODE", "1" });
	for (size_t i = 0; i < spec->env.count; i++)
		vec_push(arena, &wanted.env, spec->env.items[i]);
	desk_init(&desk, creation->cases->base.core, creation->request);
	int failed = desk_create(fiber, &desk, CASES_SERVICE, &wanted, err);
	creation->model.workspace = arena_text(arena, desk.id);
	desk_done(&desk);
	return failed;
}

static int store(struct creation *creation, struct fiber *fiber, struct error *err)
{
	struct cases *cases = creation->cases;
	struct case_entry *c = case_add(cases, &creation->model);
	struct error ignored; /* it was read before */
	read_spec(c->model.yaml, c->model.harness, NULL, &c->arena, &c->spec, &ignored);
	int failed = wait_put(fiber, cases->base.core, &store_cases, &c->model, err);
	c = map_get(&cases->ids, str_from(creation->model.id));
	if (failed && c && !c->is_removed) { /* else its removal ends it */
		desk_drop(core_system(), cases->base.core, c->model.workspace);
		case_drop(c);
	} else if (!failed && c) {
		fault_point("case_created");
		case_emit(c, "case.created");
		cases_arm_sweep(cases);
	}
	return failed;
}

static void create(struct fiber *fiber, void *ctx)
{
	struct creation creation = *(const struct creation *)ctx;
	struct error *err = &creation.err;
	bool failed = err->code != ERR_NONE;
	if (failed || creation.is_check)
		wait_turn(fiber, creation.cases->base.core);
	else
		failed = make_workspace(&creation, fiber, err) || store(&creation, fiber, err);
	creation.done(creation.ctx, failed ? NULL : &creation.model, failed ? err : NULL);
	arena_done(&creation.arena);
}

void case_create(const struct request *request, struct cases *cases,
	const struct case_wanted *wanted, case_fn *done, void *ctx)
{
	struct creation creation = { .cases = cases,
		.request = request,
		.is_check = wanted->check,
		.done = done,
		.ctx = ctx };
	struct eval_case *model = &creation.model;
	if (!core_check(request, cases->base.core, VERB_CASE_CREATE, NULL, &creation.err) &&
		!check_room(cases, &creation.err))
		read_spec(wanted->yaml, wanted->harness, wanted->file, &creation.arena,
			&creation.spec, &creation.err);
	*model = (struct eval_case){ .name = creation.spec.id,
		.description = creation.spec.description,
		.source = creation.spec.source,
		.yaml = arena_text(&creation.arena, wanted->yaml),
		.file = arena_text(&creation.arena, wanted->file),
		.harness = arena_text(&creation.arena, wanted->harness),
		.keep = wanted->keep,
		.ttl_ms = wanted->ttl_ms ? wanted->ttl_ms : CASE_TTL_MS,
		.steps = "[]",
		.created_ms = clock_now_ms() };
	model->last_used_ms = model->created_ms;
	if (wanted->id[0] && !wanted->check)
		memcpy(model->id, wanted->id, sizeof model->id);
	else if (!wanted->check)
		id_make(model->id);
	fiber_start(create, &creation);
}

/* ---- a new cell ---- */

/* Its fiber has a copy. */
struct cell_creation {
	struct cases *cases;
	char id[ID_LEN + 1];
	cell_fn *done;
	void *ctx;
	struct error err;
};

static void begin_cell(struct cell_entry *cell)
{
	fault_point("cell_created");
	cell->is_stored = true;
	cell_set_state(cell, CELL_WAITING, NULL, NULL);
	if (cell->c->is_removed)
		cell_cancel(cell, "removed");
	else if (cell->c->model.state == CASE_CREATED)
		case_prepare(cell->c, cell->request);
	else if (cell->c->model.state != CASE_PREPARING)
		cell_go_on(cell);
}

/* Its row could not be written. One that was canceled meanwhile is neither open nor held. */
static void drop_unstored(struct cell_entry *cell)
{
	struct case_entry *c = cell->c;
	bool is_open = !cell_has_ended(cell->model.state);
	c->cases->open_cells -= is_open;
	cell_drop(cell);
	if (is_open)
		case_unhold(c);
}

static void create_cell(struct fiber *fiber, void *ctx)
{
	struct cell_creation creation = *(const struct cell_creation *)ctx;
	struct cases *cases = creation.cases;
	struct cell_entry *cell = map_get(&cases->cell_ids, str_from(creation.id));
	struct error *err = &creation.err;
	if (cell)
		wait_put(fiber, cases->base.core, &store_cells, &cell->model, err);
	else
		wait_turn(fiber, cases->base.core);
	cell = map_get(&cases->cell_ids, str_from(creation.id));
	if (!cell && !err->code)
		fail(err, ERR_CONFLICT, "the case was removed");
	bool failed = err->code != ERR_NONE;
	creation.done(creation.ctx, failed ? NULL : &cell->model, failed ? err : NULL);
	if (failed && cell)
		drop_unstored(cell);
	else if (!failed && !cell_has_ended(cell->model.state))
		begin_cell(cell);
}

static int check_cell(const struct request *request, struct cases *cases, const char *id,
	struct case_entry **c, struct error *err)
{
	char caller[PRINCIPAL_NAME_SIZE];
	if (check_room(cases, err) && err->code != ERR_LIMIT)
		return -1;
	if (case_find(cases, id, c, err))
		return -1;
	if (shares_check(&cases->cell_shares, access_caller(request, caller), 1, err))
		return -1;
	return cases->cell_ids.live >= CELLS_MAX
		       ? fail_hint(err, ERR_LIMIT, "carrel case rm removes a case with its cells",
				 "there are %d cells already", CELLS_MAX)
		       : 0;
}

void cell_start(const struct request *request, struct cases *cases, const char *case_id,
	const struct cell_wanted *wanted, cell_fn *done, void *ctx)
{
	struct cell_creation creation = { .cases = cases, .done = done, .ctx = ctx };
	struct case_entry *c;
	char caller[PRINCIPAL_NAME_SIZE];
	if (core_check(request, cases->base.core, VERB_CELL_START, NULL, &creation.err) ||
		check_cell(request, cases, case_id, &c, &creation.err)) {
		fiber_start(create_cell, &creation);
		return;
	}
	struct cell model = { .case_name = c->model.name,
		.state = CELL_WAITING,
		.repeat = wanted->repeat ? wanted->repeat : 1,
		.steps = "[]",
		.created_ms = clock_now_ms() };
	if (wanted->id[0])
		memcpy(model.id, wanted->id, sizeof model.id);
	else
		id_make(model.id);
	memcpy(model.case_id, c->model.id, sizeof model.case_id);
	memcpy(creation.id, model.id, sizeof creation.id);
	struct cell_entry *cell = cell_add(c, &model);
	cell->request = access_keep(request, &cell->arena);
	share_join(&cases->cell_shares, access_caller(request, caller), &cell->share);
	share_add(&cell->share, 1);
	cases->open_cells++;
	c->jobs++; /* until the cell has ended, and its workspace is gone */
	fiber_start(create_cell, &creation);
}

/* ---- the service ---- */

static void take_row(void *state, const struct store_table *table, const void *row)
{
	struct cases *cases = state;
	struct error ignored;
	if (!cases->ids.seed) {
		map_init(&cases->ids, NULL);
		map_init(&cases->cell_ids, NULL);
	}
	if (table == &store_cases) {
		struct case_entry *c = case_add(cases, row);
		read_spec(c->model.yaml, c->model.harness, NULL, &c->arena, &c->spec, &ignored);
		return;
	}
	const struct cell *model = row;
	struct case_entry *c = map_get(&cases->ids, str_from(model->case_id));
	if (c)
		cell_add(c, model);
}

/* ---- those that nobody uses ---- */

static bool is_idle(const struct case_entry *c)
{
	return !c->jobs && !c->is_removed && !c->model.keep;
}

static void on_sweep(struct loop *loop, void *ctx)
{
	struct cases *cases = ctx;
	int64_t now_ms = clock_now_ms();
	struct case_entry *older;
	cases->sweep = NULL;
	for (struct case_entry *c = cases->newest; c; c = older) {
		older = c->older;
		if (is_idle(c) && case_expires_ms(&c->model) <= now_ms)
			case_expire(c);
	}
	cases_arm_sweep(cases);
}

/* At least every minute: to retry a failed removal, and since clocks are set. */
void cases_arm_sweep(struct cases *cases)
{
	int64_t now_ms = clock_now_ms(), due_ms = now_ms + SWEEP_MS;
	for (const struct case_entry *c = cases->newest; c; c = c->older)
		if (is_idle(c) && case_expires_ms(&c->model) > now_ms &&
			case_expires_ms(&c->model) < due_ms)
			due_ms = case_expires_ms(&c->model);
	loop_cancel(cases->base.loop, cases->sweep);
	cases->sweep = loop_after(cases->base.loop, (uint64_t)(due_ms - now_ms), on_sweep, cases);
}

/* Others are of cells that a crash has ended, or of a case whose row was not written. */
static bool is_used(void *ctx, const struct workspace *w)
{
	struct cases *cases = ctx;
	const char *id = w->owner.case_id;
	const struct case_entry *c = id ? map_get(&cases->ids, str_from(id)) : NULL;
	if (c && c->model.workspace && !strcmp(c->model.workspace, w->id))
		return true;
	for (const struct cell_entry *cell = c ? c->cells : NULL; cell; cell = cell->next)
		if (cell->model.workspace && !strcmp(cell->model.workspace, w->id))
			return true;
	return false;
}

static void start(void *state)
{
	struct cases *cases = state;
	static const char text[] = "the daemon was restarted";
	if (!cases->ids.seed) {
		map_init(&cases->ids, NULL);
		map_init(&cases->cell_ids, NULL);
	}
	shares_init(&cases->cell_shares, "cells that have not ended", "wait until one has ended",
		CELLS_OPEN_MAX, CELLS_OPEN_MAX / 4);
	for (struct case_entry *c = cases->newest; c; c = c->older) {
		if (c->model.state == CASE_PREPARING)
			case_set_state(c, CASE_FAILED, CASE_REASON_RESTARTED, text);
		for (struct cell_entry *cell = c->cells; cell; cell = cell->next)
			if (!cell_has_ended(cell->model.state)) {
				cases->open_cells++;
				cell->model.workspace = NULL;
				cell_set_state(cell, CELL_CANCELED, CASE_REASON_RESTARTED, text);
			}
	}
	desk_sweep(cases->base.core, CASES_SERVICE, "removed", is_used, cases);
	on_sweep(cases->base.loop, cases);
}

static void stop(void *state)
{
	struct cases *cases = state;
	cases->is_stopping = true;
}

static void free_all(void *state)
{
	struct cases *cases = state;
	loop_cancel(cases->base.loop, cases->sweep);
	while (cases->newest)
		case_drop(cases->newest);
	map_done(&cases->ids);
	map_done(&cases->cell_ids);
	shares_done(&cases->cell_shares);
}

static void print_metrics(void *state, struct buf *out)
{
	const struct cases *cases = state;
	buf_text(out, "# HELP carrel_cases Eval cases.\n# TYPE carrel_cases gauge\n");
	buf_printf(out, "carrel_cases %zu\n", cases->ids.live);
	buf_text(out, "# HELP carrel_cells_open Cells of eval cases that haven't ended.\n"
		      "# TYPE carrel_cells_open gauge\n");
	buf_printf(out, "carrel_cells_open %zu\n", cases->open_cells);
	buf_text(out, "# HELP carrel_cells_ended_total Cells of eval cases that have ended.\n"
		      "# TYPE carrel_cells_ended_total counter\n");
	for (int i = CELL_PASSED; i < CELL_STATE_COUNT; i++)
		buf_printf(out, "carrel_cells_ended_total{state=\"%s\"} %llu\n",
			cell_state_names[i], (unsigned long long)cases->ended[i]);
}

static const struct store_table *const tables[] = { &store_cases, &store_cells, NULL };
const struct service cases_service = { .name = CASES_SERVICE,
	.tables = tables,
	.size = sizeof(struct cases),
	.take = take_row,
	.start = start,
	.stop = stop,
	.free = free_all,
	.print_metrics = print_metrics };
