/* repair.c -- what is done about the findings of a check: directories are made again, a damaged
 * environment is built again, the files of a package are those of its layer again. What a command
 * has changed elsewhere stays. */
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "core/packages/checkup.h"
#include "core/packages/packages.h"
#include "core/state/template_builds.h"
#include "core/waits.h"
#include "envs/kind.h"
#include "format/text/json_read.h"
#include "model/nouns/pushed.h"

struct repairing {
	struct fiber *fiber;
	struct core_workspace *w; /* held */
	struct arena arena;
	core_repair_fn *done;
	void *ctx;
	struct repair result;
	struct checkup look, again; /* before, and after it */
	bool is_deep;
	char request_id[ID_LEN + 1];
	const struct finding *restored; /* in a child */
	struct error failure;		/* of that child */
	uint64_t answer;		/* and what it said; UINT64_MAX: nothing */
};

static void say(struct repairing *r, text_list *list, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void say(struct repairing *r, text_list *list, const char *fmt, ...)
{
	char text[1024], shown[1024];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	str_printable(shown, sizeof shown, str_from(text));
	vec_push(&r->arena, list, arena_text(&r->arena, shown));
}

/* ---- inside ---- */

static void on_marked(void *ctx, struct core_exec *e, const struct error *err)
{
	struct repairing *r = ctx;
	const struct result *result = &exec_record_of(e)->result;
	r->answer = !err && result->reason == REASON_EXITED && !result->exit_status;
	fiber_continue(r->fiber, NULL);
}

static void make_marks(struct repairing *r)
{
	static const char script[] =
		"[ -e .workspace_configured ] || : > .workspace_configured\n"
		"[ -n \"$1\" ] && [ ! -d .venv/bin ] || exit 0\n"
		/* What somebody has put in its place is kept beside it. */
		"if [ -L .venv ]; then rm .venv; elif [ -e .venv ]; then\n"
		"	rmdir .venv 2>/dev/null || mv -nT .venv .venv.replaced; fi\n"
		"[ -e .venv ] || ln -s /env .venv\n";
	bool has_mark = !findings_have(&r->look.found, FINDING_MARK),
	     has_venv = !findings_have(&r->look.found, FINDING_VENV);
	const char *words[] = { "/bin/sh", "-c", script, "sh", has_venv ? "" : "venv" };
	const struct exec_spec spec = { .argv = { words, 5, 5 } };
	const struct exec_listener listener = { .ended = on_marked, .ctx = r };
	struct core_exec *e;
	struct error err;
	if ((has_mark && has_venv) ||
		exec_start(&request_system, r->w, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err))
		return;
	fiber_wait(r->fiber, &err);
	if (r->answer && !has_mark)
		say(r, &r->result.done, "made '.workspace_configured' again");
	if (r->answer && !has_venv)
		say(r, &r->result.done, "made the link '.venv' to /env again");
}

/* ---- packages that are declared and no layer has ---- */

static void on_installed(void *ctx, const struct packages_result *result, const struct error *err)
{
	fiber_continue(ctx, err);
}

/* Requirements come from files of the workspace. One that names an address of its own is left to
 * the user. */
static void install_missing(struct repairing *r)
{
	for (size_t i = 0; i < r->look.found.count; i++) {
		const char *name = r->look.found.items[i].wanted;
		struct packages_wanted wanted = { .kind = &env_kind_rows[ENV_KIND_PYTHON] };
		struct error err;
		if (!name || strpbrk(name, "@/"))
			continue;
		vec_push(&r->arena, &wanted.packages, name);
		fault_point("core_repair_install");
		packages_change(&request_system, r->w, &wanted, on_installed, r->fiber);
		if (fiber_wait(r->fiber, &err))
			say(r, &r->result.failed, "'%s' could not be installed: %s", name,
				err.text);
		else
			say(r, &r->result.done, "installed '%s'", name);
	}
}

/* ---- packages whose layers are there ---- */

/* Findings that say what is missing of an environment. */
static const struct env_kind *const restored[] = {
	[FINDING_PYTHON] = &env_python, [FINDING_PACKAGE] = &env_python, [FINDING_NODE] = &env_node
};

/* In a child. 1: restored, 0: no layer has it, UINT64_MAX: r->failure. */
static uint64_t restore(void *ctx)
{
	struct repairing *r = ctx;
	return (uint64_t)(int64_t)repair_restore(
		r->w, restored[r->restored->kind], r->restored->object, &r->failure);
}

static void on_restored(void *ctx, bool ok, uint64_t value)
{
	struct repairing *r = ctx;
	if (!ok)
		fail(&r->failure, ERR_FAILED, "the process that restores it ended");
	r->answer = ok ? value : UINT64_MAX;
	fiber_continue(r->fiber, NULL);
}

/* One that no layer has stays wanted, and is installed. */
static void restore_package(struct repairing *r, struct finding *finding)
{
	const struct core *core = r->w->core;
	const char *what = finding->kind == FINDING_PYTHON ? "Python" : finding->object;
	struct error none;
	struct measure child = { .loop = core->loop,
		.find = restore,
		.found = on_restored,
		.ctx = r,
		.keep = { core->workspaces, core->envs.layers.dir, core->envs.dir, core->home.dir },
		.keep_count = 4,
		.detail = &r->failure,
		.detail_len = sizeof r->failure };
	fault_point("core_repair_restore");
	r->restored = finding;
	measure_start(&child);
	fiber_wait(r->fiber, &none);
	if (r->answer == UINT64_MAX)
		say(r, &r->result.failed, "'%s' could not be restored: %s", what, r->failure.text);
	else if (r->answer)
		say(r, &r->result.done, "restored '%s' from its layer", what);
	if (r->answer)
		finding->wanted = NULL;
}

/* Names are normalised (PEP 503), as those of layers are. */
static const char *normalize(struct arena *arena, const char *name)
{
	char *text = arena_text(arena, name), *to = text;
	for (const char *at = text; *at; at++) {
		bool is_dash = strchr("-_.", *at);
		if (!is_dash || to == text || to[-1] != '-')
			*to++ = (char)(is_dash ? '-' : *at >= 'A' && *at <= 'Z' ? *at + 32 : *at);
	}
	*to = 0;
	return text;
}

static void restore_packages(struct repairing *r)
{
	for (size_t i = 0; i < r->look.found.count; i++) {
		struct finding *finding = &r->look.found.items[i];
		if (finding->kind == FINDING_PYTHON)
			finding->object = LAYER_KIND_BASE;
		else if (finding->kind == FINDING_PACKAGE)
			finding->object = normalize(&r->arena, finding->object);
		else if (finding->kind != FINDING_NODE || !finding->object)
			continue;
		restore_package(r, finding);
	}
}

/* ---- its environments ---- */

static bool is_damaged(const struct repairing *r, const char *environment)
{
	for (size_t i = 0; environment && i < r->look.found.count; i++)
		if (r->look.found.items[i].kind == FINDING_ENVIRONMENT &&
			!strcmp(r->look.found.items[i].object, environment))
			return true;
	return false;
}

/* By its own requirements. */
static void rebuild(struct repairing *r, const char *name, const char *resolved)
{
	const struct json_value *verdict = NULL;
	const char *why = NULL;
	struct error err;
	if (wait_verify(r->fiber, r->w->core, resolved, true, &r->arena, &verdict, &err))
		why = err.text;
	else if (!verdict)
		why = "`carrel env verify` printed no result";
	else
		why = json_member_text(json_member(verdict, "error"), "message");
	const struct json_value *repaired = json_member(verdict, "repaired");
	if (repaired && repaired->boolean)
		say(r, &r->result.done, "built environment '%s' again", name);
	if (why)
		say(r, &r->result.failed, "environment '%s' could not be repaired: %s", name, why);
}

/* One that exists is verified and repaired; one that is gone is built by the requirements of the
 * workspace, and the others with it. */
static void repair_environments(struct repairing *r)
{
	struct core_workspace *w = r->w;
	for (size_t slot = 0; slot < ENV_KINDS; slot++) {
		const char *known = arena_text(&r->arena, w->model.environments.of[slot]), *name;
		struct error err;
		if (!is_damaged(r, known))
			continue;
		fault_point("core_repair_environment");
		if (!env_resolve(&w->core->envs, known, &r->arena, &name, &err)) {
			rebuild(r, known, name);
			continue;
		}
		if (environment_prepare(r->fiber, w, r->request_id, &err))
			say(r, &r->result.failed, "the environment could not be built: %s",
				err.text);
		else
			say(r, &r->result.done, "built environment '%s' again",
				w->model.environments.of[slot]);
		return;
	}
}

/* ---- its frozen layers ---- */

static bool has_damage(const struct repairing *r, const text_list *layers)
{
	for (size_t i = 0; i < layers->count; i++)
		for (size_t k = 0; k < r->look.found.count; k++)
			if (r->look.found.items[k].kind == FINDING_LAYER &&
				!strcmp(r->look.found.items[k].object, layers->items[i]))
				return true;
	return false;
}

/* A snapshot whose layers are whole, for the user to go back to. */
static bool is_whole(const void *ctx, const struct snapshot *s)
{
	const struct repairing *r = ctx;
	return !strcmp(s->workspace, r->w->model.id) && !has_damage(r, &s->layers);
}

static void not_made(struct repairing *r, const char *layer, const struct error *err)
{
	const struct snapshot *whole = snapshots_find(r->w->core, is_whole, r);
	if (whole)
		say(r, &r->result.failed,
			"layer '%s' can't be made again: %s; `carrel snapshot rollback %s "
			"%llu` goes back to a snapshot without it",
			layer, err->text, r->w->model.name, (unsigned long long)whole->version);
	else
		say(r, &r->result.failed, "layer '%s' can't be made again: %s", layer, err->text);
}

/* A snapshot that has it on top knows what was in it, and may have been pushed. */
static bool is_pushed(const void *layer, const struct snapshot *s)
{
	return s->content_id && s->layers.count && !strcmp(s->layers.items[0], layer);
}

static int fetch(struct repairing *r, const char *layer, const char *content_id, struct error *err)
{
	struct core *core = r->w->core;
	char id[ID_LEN + 1], fetched[LAUNCH_FROZEN_LEN + 1];
	id_make(id);
	str_format(fetched, sizeof fetched, LAUNCH_FROZEN "%s", id);
	const char *names[] = { fetched, "layer",
		arena_printf(&r->arena, "%llu", (unsigned long long)transfer_room(core)),
		arena_text(&r->arena, content_id) };
	const struct tree_job_order tree = { .verb = "unpack",
		.names = names,
		.name_count = 4,
		.output = -1,
		.request_id = r->request_id };
	struct blob_order blob = { .verb = BLOB_GET,
		.key = pushed_layer_key(content_id, &r->arena),
		.words = blob_words_none(),
		.request_id = r->request_id };
	blob.words.is_plain = true;
	layer_hold(core, fetched);
	int failed = wait_transfer(r->fiber, core, &tree, &blob, NULL, NULL, err);
	fault_point("core_repair_fetched");
	if (!failed)
		failed = layer_replace(r->w, fetched, layer, err);
	layer_release(core, fetched);
	layers_sweep(core);
	return failed;
}

/* Made again of its template, or fetched; its name stays, so that no row changes. */
static void repair_layer(struct repairing *r, const char *layer)
{
	struct error err;
	fault_point("core_repair_layer");
	if (!template_build_restore(r->w, layer, &err)) {
		say(r, &r->result.done, "made layer '%s' of its template again", layer);
		return;
	}
	const struct snapshot *s =
		err.code == ERR_NOT_FOUND ? snapshots_find(r->w->core, is_pushed, layer) : NULL;
	if (s && !fetch(r, layer, s->content_id, &err))
		say(r, &r->result.done, "fetched layer '%s' from the blob store", layer);
	else
		not_made(r, layer, &err);
}

/* ---- its directories ---- */

static void make_directories(struct repairing *r)
{
	for (size_t i = 0; i < r->look.found.count; i++) {
		const struct finding *finding = &r->look.found.items[i];
		char path[ID_LEN + 16], env[ID_LEN + 8];
		if (finding->kind != FINDING_TREE || !strcmp(finding->object, "upper"))
			continue; /* files that are lost stay so, and are named by the next check */
		str_format(env, sizeof env, "%s/env", r->w->model.id);
		str_format(path, sizeof path, "%s/%s", r->w->model.id, finding->object);
		if ((mkdirat(r->w->core->workspaces, env, 0755) && errno != EEXIST) ||
			mkdirat(r->w->core->workspaces, path, 0755))
			say(r, &r->result.failed, "directory '%s' could not be made: %s",
				finding->object, strerror(errno));
		else
			say(r, &r->result.done, "made directory '%s' again", finding->object);
	}
}

static void repair_outside(struct repairing *r)
{
	make_directories(r);
	for (size_t i = 0; i < r->look.found.count; i++)
		if (r->look.found.items[i].kind == FINDING_LAYER)
			repair_layer(r, r->look.found.items[i].object);
	repair_environments(r);
}

/* ---- on demand ---- */

static bool needs_end(const struct repairing *r)
{
	static const enum finding_kind outside[] = { FINDING_TREE, FINDING_ENVIRONMENT,
		FINDING_LAYER, FINDING_PYTHON, FINDING_PACKAGE, FINDING_NODE };
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
		if (findings_have(&r->look.found, outside[i]))
			return true;
	return false;
}

/* No process may use what is changed below it: the workspace is suspended, and no sandbox starts
 * until tree_release. */
static int take(struct repairing *r, struct error *err)
{
	struct core_workspace *w = r->w;
	core_suspend(&request_system, w, false, fiber_continue_workspace, r->fiber);
	if (fiber_wait(r->fiber, err))
		return -1;
	if (w->removal || w->is_gone)
		return fail(err, ERR_NOT_FOUND, "workspace '%s' is being removed", w->model.name);
	if (!tree_take_now(w))
		return fail_hint(err, ERR_CONFLICT, "try again",
			"workspace '%s' was used again before it was repaired", w->model.name);
	return 0;
}

/* A workspace that was not suspended is not left so, if it can be started. */
static int repair_found(struct repairing *r, struct error *err)
{
	struct core_workspace *w = r->w;
	struct error none;
	bool is_taken = needs_end(r);
	if (is_taken && take(r, err))
		return -1;
	repair_outside(r);
	restore_packages(r);
	if (is_taken)
		tree_release(w);
	install_missing(r);
	make_marks(r);
	fault_point("core_repair_done");
	checkup_run(r->fiber, &r->again, w, r->is_deep);
	r->result.health = r->again.health;
	for (size_t i = 0; i < r->again.health.issues.count; i++)
		vec_push(&r->arena, &r->result.failed, r->again.health.issues.items[i]);
	if (r->look.health.state != WORKSPACE_SUSPENDED && w->model.state == WORKSPACE_SUSPENDED) {
		core_resume(&request_system, w, fiber_continue_workspace, r->fiber);
		fiber_wait(r->fiber, &none);
	}
	return 0;
}

static void free_repairing(struct repairing *r)
{
	checkup_done(&r->look);
	checkup_done(&r->again);
	arena_done(&r->arena);
	core_release(r->w);
	free(r);
}

static void repair(struct fiber *fiber, void *ctx)
{
	struct repairing *r = ctx;
	const findings *found = &r->look.found;
	struct core *core = r->w->core;
	struct error err;
	int failed = 0;
	r->fiber = fiber;
	checkup_run(fiber, &r->look, r->w, r->is_deep);
	if (!r->look.health.is_healthy && r->w->model.state != WORKSPACE_FAILED) {
		failed = repair_found(r, &err);
	} else {
		r->result.health = r->look.health;
		for (size_t i = 0; i < found->count; i++)
			vec_push(&r->arena, &r->result.failed, found->items[i].text);
	}
	wait_turn(fiber, core);
	r->done(r->ctx, failed ? NULL : &r->result, failed ? &err : NULL);
	free_repairing(r);
}

static struct repairing *repairing_new(struct core_workspace *w, const char *request_id, void *ctx)
{
	struct repairing *r = xzalloc(sizeof *r);
	*r = (struct repairing){ .w = w, .ctx = ctx };
	arena_init(&r->arena);
	arena_init(&r->look.arena);
	arena_init(&r->again.arena);
	str_copy(r->request_id, sizeof r->request_id, request_id ? request_id : "");
	core_hold(w);
	return r;
}

int core_repair(const struct request *request, struct core_workspace *w, bool is_deep,
	core_repair_fn *done, void *ctx, struct error *err)
{
	if (access_check(w->core, request, VERB_WORKSPACE_REPAIR, w, err))
		return -1;
	struct repairing *r = repairing_new(w, request->id, ctx);
	r->done = done;
	r->is_deep = is_deep;
	fiber_start(repair, r);
	return 0;
}

/* ---- before a start ---- */

static void tell_repaired(const struct repairing *r)
{
	struct core_workspace *w = r->w;
	const text_list *done = &r->result.done;
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	for (size_t i = 0; i < done->count; i++)
		buf_printf(&text, "%s%s", i ? "; " : "", done->items[i]);
	if (!done->count)
		return;
	journal_emit(&w->core->journal, "workspace.repaired", w->model.id, w->model.name, "done",
		text.data, NULL);
	log_record(&w->core->log, LOG_LEVEL_INFO, "a workspace was repaired", "workspace",
		w->model.id, "done", text.data, NULL);
}

/* Those that wait for the sandbox get what could not be repaired as the reason. */
int repair_for_start(
	struct fiber *fiber, struct core_workspace *w, const char *request_id, struct error *err)
{
	struct repairing *r = repairing_new(w, request_id, NULL);
	const struct repair *result = &r->result;
	int failed = 0;
	r->fiber = fiber;
	r->look.w = w;
	checkup_look_outside(&r->look);
	repair_outside(r);
	tell_repaired(r);
	if (result->failed.count) {
		fail(err, ERR_CORRUPT, "workspace '%s' can't be repaired: %s", w->model.name,
			result->failed.items[0]);
		failed = error_hint(err, REPAIR_HINT, w->model.name);
	} else if (!result->done.count) {
		failed = fail(err, ERR_NOT_FOUND, "nothing was found to repair");
	}
	free_repairing(r);
	return failed;
}
