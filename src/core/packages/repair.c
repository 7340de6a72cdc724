/* repair.c -- what is done about the findings of a check: directories are made again, a damaged
 * environment is built again, the files of a package are those of its layer again. What a command
 * has changed elsewhere stays. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "core/packages/checkup.h"
#include "core/packages/packages.h"
#include "core/state/template_builds.h"
#include "core/transfers.h"
#include "envs/kind.h"
#include "format/text/json_read.h"
#include "model/nouns/pushed.h"

struct repairing {
	struct core_workspace *w; /* held */
	struct arena arena;
	core_repair_fn *done;
	void *ctx;
	struct repair result;
	struct checkup *checkup; /* while one is under way */
	findings found;
	enum workspace_state before;
	bool is_deep;
	bool is_start; /* repair_for_start: */
	core_workspace_fn *started;
	char request_id[ID_LEN + 1];
	int answer; /* memfd of `env verify` */
	struct measure restore;
	struct error failure;		     /* of the child that restores */
	char fetched[LAUNCH_FROZEN_LEN + 1]; /* a layer, until it is in its place */
	size_t at;			     /* the finding, or the environment, that is in work */
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

/* ---- the end ---- */

static void tell(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct repairing *r = ctx;
	r->done(r->ctx, err ? NULL : &r->result, err);
	fd_close(&r->answer);
	arena_done(&r->arena);
	core_release(r->w);
	free(r);
}

static void give_up(struct repairing *r, const struct error *err)
{
	core_later(r->w->core, tell, r, r->w, err);
}

/* Those that wait for the sandbox get what could not be repaired as the reason. */
static void finish_start(struct repairing *r)
{
	struct core_workspace *w = r->w;
	const struct repair *result = &r->result;
	auto_buf struct buf done = buf_empty(BUF_MAX_DEFAULT);
	struct error err;
	for (size_t i = 0; i < result->done.count; i++)
		buf_printf(&done, "%s%s", i ? "; " : "", result->done.items[i]);
	if (result->done.count) {
		journal_emit(&w->core->journal, "workspace.repaired", w->model.id, w->model.name,
			"done", done.data, NULL);
		log_record(&w->core->log, LOG_LEVEL_INFO, "a workspace was repaired", "workspace",
			w->model.id, "done", done.data, NULL);
	}
	if (result->failed.count) {
		fail(&err, ERR_CORRUPT, "workspace '%s' can't be repaired: %s", w->model.name,
			result->failed.items[0]);
		error_hint(&err, REPAIR_HINT, w->model.name);
	} else if (!result->done.count)
		fail(&err, ERR_NOT_FOUND, "nothing was found to repair");
	bool failed = result->failed.count || !result->done.count;
	r->started(r->ctx, w, failed ? &err : NULL);
	fd_close(&r->answer);
	arena_done(&r->arena);
	core_release(w);
	free(r);
}

/* A workspace that was not suspended is not left so, if it can be started. */
static void on_awake(void *ctx, struct core_workspace *w, const struct error *unused)
{
	tell(ctx, w, NULL);
}

/* The health lives in the checkup's arena, which goes. */
static void keep_health(struct repairing *r, const struct health *health)
{
	r->result.health = *health;
	r->result.health.workspace = arena_text(&r->arena, health->workspace);
	r->result.health.name = arena_text(&r->arena, health->name);
	r->result.health.disk_mechanism = arena_text(&r->arena, health->disk_mechanism);
	r->result.health.environment = arena_text(&r->arena, health->environment);
	r->result.health.node_environment = arena_text(&r->arena, health->node_environment);
	r->result.health.issues = text_list_copy(&r->arena, &health->issues);
	r->result.health.layers_active = text_list_copy(&r->arena, &health->layers_active);
}

static void on_checked_again(void *ctx, const struct health *health, const struct error *err)
{
	struct repairing *r = ctx;
	keep_health(r, health);
	for (size_t i = 0; i < r->result.health.issues.count; i++)
		vec_push(&r->arena, &r->result.failed, r->result.health.issues.items[i]);
	if (r->before != WORKSPACE_SUSPENDED && r->w->model.state == WORKSPACE_SUSPENDED)
		core_resume(&request_system, r->w, on_awake, r);
	else
		tell(r, r->w, NULL);
}

static void check_again(struct repairing *r)
{
	fault_point("core_repair_done");
	checkup_begin(r->w, r->is_deep, on_checked_again, r);
}

/* ---- inside ---- */

static void on_marked(void *ctx, struct core_exec *e, const struct error *err)
{
	struct repairing *r = ctx;
	const struct result *result = &exec_record_of(e)->result;
	if (!err && result->reason == REASON_EXITED && !result->exit_status) {
		if (findings_have(&r->found, FINDING_MARK))
			say(r, &r->result.done, "made '.workspace_configured' again");
		if (findings_have(&r->found, FINDING_VENV))
			say(r, &r->result.done, "made the link '.venv' to /env again");
	}
	check_again(r);
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
	const char *words[] = { "/bin/sh", "-c", script, "sh",
		findings_have(&r->found, FINDING_VENV) ? "venv" : "" };
	const struct exec_spec spec = { .argv = { words, 5, 5 } };
	const struct exec_listener listener = { .ended = on_marked, .ctx = r };
	struct core_exec *e;
	struct error err;
	if ((!findings_have(&r->found, FINDING_MARK) && !findings_have(&r->found, FINDING_VENV)) ||
		exec_start(&request_system, r->w, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err))
		check_again(r);
}

/* ---- packages that are declared and no layer has ---- */

static void install_next(struct repairing *r, size_t from);

static void on_installed(void *ctx, const struct packages_result *result, const struct error *err)
{
	struct repairing *r = ctx;
	const char *wanted = r->found.items[r->at].wanted;
	if (err)
		say(r, &r->result.failed, "'%s' could not be installed: %s", wanted, err->text);
	else
		say(r, &r->result.done, "installed '%s'", wanted);
	install_next(r, r->at + 1);
}

/* Requirements come from files of the workspace. One that names an address of its own is left to
 * the user. */
static void install_next(struct repairing *r, size_t from)
{
	for (r->at = from; r->at < r->found.count; r->at++) {
		const struct finding *finding = &r->found.items[r->at];
		if (!finding->wanted || strpbrk(finding->wanted, "@/"))
			continue;
		struct packages_wanted wanted = { .kind = &env_kind_rows[ENV_KIND_PYTHON] };
		vec_push(&r->arena, &wanted.packages, finding->wanted);
		fault_point("core_repair_install");
		packages_change(&request_system, r->w, &wanted, on_installed, r);
		return;
	}
	make_marks(r);
}

/* ---- packages whose layers are there ---- */

static void restore_next(struct repairing *r, size_t from);

/* Findings that say what is missing of an environment. */
static const struct env_kind *const restored[] = {
	[FINDING_PYTHON] = &env_python, [FINDING_PACKAGE] = &env_python, [FINDING_NODE] = &env_node
};

/* In a child. 1: restored, 0: no layer has it, UINT64_MAX: r->failure. */
static uint64_t restore(void *ctx)
{
	struct repairing *r = ctx;
	const struct finding *finding = &r->found.items[r->at];
	return (uint64_t)(int64_t)repair_restore(
		r->w, restored[finding->kind], finding->object, &r->failure);
}

static void on_restored(void *ctx, bool ok, uint64_t value)
{
	struct repairing *r = ctx;
	struct finding *finding = &r->found.items[r->at];
	const char *what = finding->kind == FINDING_PYTHON ? "Python" : finding->object;
	if (!ok || value == UINT64_MAX)
		say(r, &r->result.failed, "'%s' could not be restored: %s", what,
			ok ? r->failure.text : "the process that restores it ended");
	else if (value)
		say(r, &r->result.done, "restored '%s' from its layer", what);
	if (!ok || value)
		finding->wanted = NULL; /* one that no layer has is installed */
	restore_next(r, r->at + 1);
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

static bool is_package(const struct finding *finding)
{
	return finding->object &&
	       (finding->kind == FINDING_PACKAGE || finding->kind == FINDING_NODE);
}

static void restore_next(struct repairing *r, size_t from)
{
	const struct core *core = r->w->core;
	for (r->at = from; r->at < r->found.count; r->at++) {
		struct finding *finding = &r->found.items[r->at];
		if (finding->kind == FINDING_PYTHON)
			finding->object = LAYER_KIND_BASE;
		else if (finding->kind == FINDING_PACKAGE)
			finding->object = normalize(&r->arena, finding->object);
		else if (!is_package(finding))
			continue;
		fault_point("core_repair_restore");
		r->restore = (struct measure){ .loop = core->loop,
			.find = restore,
			.found = on_restored,
			.ctx = r,
			.keep = { core->workspaces, core->envs.layers.dir, core->envs.dir,
				core->home.dir },
			.keep_count = 4,
			.detail = &r->failure,
			.detail_len = sizeof r->failure };
		measure_start(&r->restore);
		return;
	}
	install_next(r, 0);
}

/* ---- its environments ---- */

static void repair_environments(struct repairing *r, size_t from);

/* From outside everything is done that can be. */
static void repaired_outside(struct repairing *r)
{
	if (r->is_start)
		finish_start(r);
	else
		restore_next(r, 0);
}

static void on_prepared(void *ctx, const struct error *err)
{
	struct repairing *r = ctx;
	if (err)
		say(r, &r->result.failed, "the environment could not be built: %s", err->text);
	else
		say(r, &r->result.done, "built environment '%s' again",
			environment_name(r->w, r->at));
	repaired_outside(r); /* all of them were prepared */
}

static void on_verified(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct repairing *r = ctx;
	const char *name = environment_name(r->w, r->at), *why = NULL;
	struct error err;
	if (packet && packet->head.type == LAUNCH_BUILT) {
		const struct json_value *verdict = verdict_read(r->answer, &r->arena);
		const struct json_value *repaired = json_member(verdict, "repaired");
		why = verdict ? json_member_text(json_member(verdict, "error"), "message")
			      : "`carrel env verify` printed no result";
		if (repaired && repaired->boolean)
			say(r, &r->result.done, "built environment '%s' again", name);
	} else {
		launcher_failure(packet, &err);
		why = err.text;
	}
	if (why)
		say(r, &r->result.failed, "environment '%s' could not be repaired: %s", name, why);
	fd_close(&r->answer);
	repair_environments(r, r->at + 1);
}

static bool is_damaged(const struct repairing *r, const char *environment)
{
	for (size_t i = 0; environment && i < r->found.count; i++)
		if (r->found.items[i].kind == FINDING_ENVIRONMENT &&
			!strcmp(r->found.items[i].object, environment))
			return true;
	return false;
}

/* One that exists is verified and repaired by its own requirements; one that is gone is built by
 * those of the workspace. */
static void repair_environments(struct repairing *r, size_t from)
{
	struct core_workspace *w = r->w;
	const char *name;
	struct error err;
	for (r->at = from; r->at < WORKSPACE_ENVIRONMENTS; r->at++) {
		const char *known = environment_name(w, r->at);
		if (!is_damaged(r, known))
			continue;
		fault_point("core_repair_environment");
		if (env_resolve(&w->core->envs, known, &r->arena, &name, &err)) {
			environment_prepare(w, r->request_id, on_prepared, r);
			return;
		}
		r->answer = memfd_create("verdict", MFD_CLOEXEC);
		if (r->answer < 0)
			fail(&err, ERR_FAILED, "out of memory");
		else if (environment_verify(w->core, name, true, r->answer, on_verified, r, &err))
			return;
		say(r, &r->result.failed, "environment '%s' could not be repaired: %s", known,
			err.text);
	}
	repaired_outside(r);
}

/* ---- its frozen layers ---- */

static bool has_damage(const struct repairing *r, const text_list *layers)
{
	for (size_t i = 0; i < layers->count; i++)
		for (size_t k = 0; k < r->found.count; k++)
			if (r->found.items[k].kind == FINDING_LAYER &&
				!strcmp(r->found.items[k].object, layers->items[i]))
				return true;
	return false;
}

/* The newest snapshot whose layers are whole, for the user to go back to. */
static const struct core_snapshot *find_whole(const struct repairing *r)
{
	for (const struct core_snapshot *s = r->w->core->newest_snapshot; s; s = s->older)
		if (!strcmp(s->model.workspace, r->w->model.id) && !has_damage(r, &s->model.layers))
			return s;
	return NULL;
}

static void repair_layers(struct repairing *r, size_t from);

static void not_made(struct repairing *r, const struct error *err)
{
	const struct core_snapshot *whole = find_whole(r);
	const char *layer = r->found.items[r->at].object;
	if (whole)
		say(r, &r->result.failed,
			"layer '%s' can't be made again: %s; `carrel snapshot rollback %s "
			"%llu` goes back to a snapshot without it",
			layer, err->text, r->w->model.name,
			(unsigned long long)whole->model.version);
	else
		say(r, &r->result.failed, "layer '%s' can't be made again: %s", layer, err->text);
}

static void on_fetched(void *ctx, const struct json_value *tree, const struct json_value *blob,
	const struct error *err)
{
	struct repairing *r = ctx;
	struct core *core = r->w->core;
	const char *layer = r->found.items[r->at].object;
	struct error failure;
	fault_point("core_repair_fetched");
	if (!err && layer_replace(r->w, r->fetched, layer, &failure))
		err = &failure;
	if (err)
		not_made(r, err);
	else
		say(r, &r->result.done, "fetched layer '%s' from the blob store", layer);
	layer_release(core, r->fetched);
	layers_sweep(core);
	repair_layers(r, r->at + 1);
}

/* A snapshot that has it on top knows what was in it, and may have been pushed. */
static bool fetch(struct repairing *r, const char *layer)
{
	struct core *core = r->w->core;
	const struct core_snapshot *s = core->newest_snapshot;
	char id[ID_LEN + 1];
	while (s && !(s->model.content_id && s->model.layers.count &&
			    !strcmp(s->model.layers.items[0], layer)))
		s = s->older;
	if (!s)
		return false;
	id_make(id);
	str_format(r->fetched, sizeof r->fetched, LAUNCH_FROZEN "%s", id);
	const char *names[] = { r->fetched, "layer",
		arena_printf(&r->arena, "%llu", (unsigned long long)transfer_room(core)),
		s->model.content_id };
	const struct tree_job_order tree = { .verb = "unpack",
		.names = names,
		.name_count = 4,
		.output = -1,
		.request_id = r->request_id };
	struct blob_order blob = { .verb = BLOB_GET,
		.key = pushed_layer_key(s->model.content_id, &r->arena),
		.words = blob_words_none(),
		.request_id = r->request_id };
	blob.words.is_plain = true;
	layer_hold(core, r->fetched);
	transfer_start(core, &tree, &blob, on_fetched, r);
	return true;
}

/* Made again of its template, or fetched; its name stays, so that no row changes. */
static void repair_layers(struct repairing *r, size_t from)
{
	for (r->at = from; r->at < r->found.count; r->at++) {
		const struct finding *finding = &r->found.items[r->at];
		struct error err;
		if (finding->kind != FINDING_LAYER)
			continue;
		fault_point("core_repair_layer");
		if (!template_build_restore(r->w, finding->object, &err))
			say(r, &r->result.done, "made layer '%s' of its template again",
				finding->object);
		else if (err.code == ERR_NOT_FOUND && fetch(r, finding->object))
			return;
		else
			not_made(r, &err);
	}
	repair_environments(r, 0);
}

/* ---- its directories ---- */

static void make_directories(struct repairing *r)
{
	for (size_t i = 0; i < r->found.count; i++) {
		const struct finding *finding = &r->found.items[i];
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
	repair_layers(r, 0);
}

static void on_ended(void *ctx, struct core_workspace *w, const struct error *err)
{
	if (err)
		give_up(ctx, err);
	else
		repair_outside(ctx);
}

static void keep_finding(struct repairing *r, const struct finding *found)
{
	struct finding finding = { .kind = found->kind };
	finding.object = arena_text(&r->arena, found->object);
	finding.wanted = arena_text(&r->arena, found->wanted);
	finding.text = arena_text(&r->arena, found->text);
	vec_push(&r->arena, &r->found, finding);
}

static void on_checked(void *ctx, const struct health *health, const struct error *err)
{
	static const enum finding_kind outside[] = { FINDING_TREE, FINDING_ENVIRONMENT,
		FINDING_LAYER, FINDING_PYTHON, FINDING_PACKAGE, FINDING_NODE };
	struct repairing *r = ctx;
	bool needs_end = false;
	for (size_t i = 0; i < r->checkup->found.count; i++)
		keep_finding(r, &r->checkup->found.items[i]);
	r->before = health->state;
	r->checkup = NULL;
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
		needs_end |= findings_have(&r->found, outside[i]);
	if (health->is_healthy || r->w->model.state == WORKSPACE_FAILED) {
		keep_health(r, health);
		for (size_t i = 0; i < r->found.count; i++)
			vec_push(&r->arena, &r->result.failed, r->found.items[i].text);
		core_later(r->w->core, tell, r, r->w, NULL);
	} else if (needs_end) /* no process may use what is changed below it */
		core_suspend(&request_system, r->w, false, on_ended, r);
	else
		repair_outside(r);
}

int core_repair(const struct request *request, struct core_workspace *w, bool is_deep,
	core_repair_fn *done, void *ctx, struct error *err)
{
	if (access_check(w->core, request, VERB_WORKSPACE_REPAIR, w, err))
		return -1;
	struct repairing *r = xzalloc(sizeof *r);
	*r = (struct repairing){
		.w = w, .done = done, .ctx = ctx, .is_deep = is_deep, .answer = -1
	};
	arena_init(&r->arena);
	str_copy(r->request_id, sizeof r->request_id, request->id);
	core_hold(w);
	r->checkup = checkup_begin(w, is_deep, on_checked, r);
	return 0;
}

void repair_for_start(
	struct core_workspace *w, const char *request_id, core_workspace_fn *done, void *ctx)
{
	struct repairing *r = xzalloc(sizeof *r);
	struct checkup look = { .w = w };
	*r = (struct repairing){
		.w = w, .is_start = true, .started = done, .ctx = ctx, .answer = -1
	};
	arena_init(&r->arena);
	arena_init(&look.arena);
	str_copy(r->request_id, sizeof r->request_id, request_id ? request_id : "");
	core_hold(w);
	checkup_look_outside(&look);
	for (size_t i = 0; i < look.found.count; i++)
		keep_finding(r, &look.found.items[i]);
	arena_done(&look.arena);
	repair_outside(r);
}
