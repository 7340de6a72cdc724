/* rollout_env.c -- the environment of a revision: built for a workspace of its own, before there
 * are surfaces. When the package has to be fetched and the revision before has requirements, these
 * are built meanwhile; the package then says whether they are the right ones. */
#include <string.h>
#include "base/buf.h"
#include "base/fd.h"
#include "core/catalog.h"
#include "core/files/files.h"
#include "core/packages/environments.h"
#include "model/nouns/environment.h"
#include "services/deployment_internal.h"

#define TEXT_MAX ((size_t)512 << 10)

static struct core *core_of(const struct revision_state *r)
{
	return r->deployment->all->service.core;
}

const char *env_requirements(struct revision_state *r, const char *text)
{
	const struct revision *m = &r->model;
	auto_buf struct buf all = buf_empty(TEXT_MAX);
	if (m->pip_index_url)
		buf_printf(&all, "--index-url %s\n", m->pip_index_url);
	if (m->pip_extra_index_url)
		buf_printf(&all, "--extra-index-url %s\n", m->pip_extra_index_url);
	if (m->pip_trusted_host)
		buf_printf(&all, "--trusted-host %s\n", m->pip_trusted_host);
	if (!all.len)
		return text ? text : "";
	buf_text(&all, text ? text : "");
	return arena_text(&r->arena, all.data);
}

/* ---- its end ---- */

static void unlisten(struct revision_state *r)
{
	if (r->env.is_listening)
		journal_unlisten(core_journal(core_of(r)), &r->env.progress);
	r->env.is_listening = false;
}

static void drop_workspace(struct revision_state *r)
{
	if (r->env.workspace[0] && !r->env.is_making)
		revision_drop_workspace(r, r->env.workspace);
	r->env.workspace[0] = 0;
	r->env.has_wheels = false;
}

static void end_build(struct revision_state *r)
{
	unlisten(r);
	environment_release(r->env.job);
	r->env.job = NULL;
	r->env.is_begun = r->env.has_ended = r->env.is_installing = false;
	r->env.failure.code = 0;
}

void env_stop(struct revision_state *r)
{
	end_build(r);
	drop_workspace(r);
	if (r->env.is_awaited) /* nobody calls back */
		r->env.is_awaited = r->is_waiting = false;
}

/* ---- the build ---- */

/* The build knows lines of requirements, not the fields of the request that they come from. */
static void explain(const struct revision *m, struct error *err)
{
	const char *field = m->pip_index_url	     ? "pipIndexUrl"
			    : m->pip_extra_index_url ? "pipExtraIndexUrl"
			    : m->pip_trusted_host    ? "pipTrustedHost"
						     : NULL;
	if (field && err->code == ERR_DENIED && !m->is_prebuilt)
		error_context(err, "%s needs allow_options in config.yaml", field);
	error_context(err, m->is_prebuilt ? APKG_VENV : "build the environment");
}

/* Downloads have begun: what comes is the installation. */
static void on_progress(void *ctx, const struct event *event)
{
	struct revision_state *r = ctx;
	if (strcmp(event->type, "environment.progress") ||
		strcmp(event->workspace, r->env.workspace))
		return;
	unlisten(r);
	r->env.is_installing = true;
	if (r->env.is_awaited)
		deployment_set_status(r->deployment, DEPLOYMENT_INSTALLING_DEPS, NULL);
}

/* Its end, for a rollout that waits for it. */
static void go_on(struct revision_state *r)
{
	struct error why = r->env.failure;
	r->env.is_awaited = false;
	if (rollout_resume(r, why.code ? &why : NULL))
		rollout_next(r);
}

static void on_made(void *ctx, const struct environment_made *made, const struct error *err)
{
	struct revision_state *r = ctx;
	unlisten(r);
	r->env.has_ended = true;
	if (err) {
		r->env.failure = *err;
		explain(&r->model, &r->env.failure);
	} else {
		r->model.environment = arena_text(&r->arena, made->name);
		r->model.is_cached =
			made->was_cached && !r->model.rebuild_venv && !r->model.skip_venv_cache;
	}
	drop_workspace(r);
	if (r->env.is_awaited)
		go_on(r);
}

static void build(struct revision_state *r, struct core_workspace *w)
{
	struct workspace recipe = { .owner = rollout_owner(r, "environment"),
		.python = r->env.python,
		.requirements = r->env.requirements };
	/* What was altered on disk is found then: the layers are compared with their hashes. */
	if (r->model.rebuild_venv || r->model.force_refresh)
		vec_push(&r->arena, &recipe.build_options, "--rebuild");
	if (r->model.skip_venv_cache)
		vec_push(&r->arena, &recipe.build_options, "--no-cache");
	r->env.progress = (struct journal_listener){ .fn = on_progress, .ctx = r };
	r->env.is_listening = true;
	journal_listen(core_journal(core_of(r)), &r->env.progress, 0);
	r->env.job = environment_make(revision_request(r, &r->arena), w, &recipe,
		r->env.has_wheels ? r->env.workspace : NULL, on_made, r);
}

/* Before it was begun. */
static void fail_begin(struct revision_state *r, const struct error *err)
{
	drop_workspace(r);
	r->env.failure = *err;
	explain(&r->model, &r->env.failure);
	r->env.has_ended = true;
	if (r->env.is_awaited)
		go_on(r);
}

/* ---- a pre-built one ---- */

static void on_unpacked(void *ctx, const struct error *err)
{
	struct revision_state *r = ctx;
	struct core_workspace *w;
	struct error why;
	rollout_unpacked(r);
	if (!err && core_find(core_system(), core_of(r), r->env.workspace, &w, &why))
		err = &why;
	if (err) {
		fail_begin(r, err);
		return;
	}
	r->env.has_wheels = true;
	build(r, w);
}

static void end_late(struct revision_state *r)
{
	if (r->is_canceled && !r->is_waiting)
		revision_end(r);
}

static void on_archive(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct revision_state *r = ctx;
	auto_close int fd = err ? -1 : answer->fd;
	struct error why;
	r->env.is_making = false;
	if (!r->env.workspace[0]) { /* it was ended meanwhile */
		end_late(r);
		return;
	}
	if (!err) {
		r->package = take_fd(&fd);
		if (!rollout_unpack(r, r->env.workspace, ENVIRONMENT_WHEELS, on_unpacked, &why))
			return;
		rollout_unpacked(r);
		err = &why;
	}
	fail_begin(r, err);
}

static void open_archive(struct revision_state *r)
{
	const struct files_request what = { .verb = FILES_OPEN, .path = APKG_VENV };
	struct core_workspace *w;
	struct error err;
	if (core_find(core_system(), core_of(r), r->model.layer, &w, &err)) {
		fail_begin(r, &err);
		return;
	}
	r->env.is_making = true;
	files_do(core_system(), w, &what, on_archive, r);
}

/* ---- its workspace ---- */

static void on_workspace(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct revision_state *r = ctx;
	r->env.is_making = false;
	if (!r->env.workspace[0]) { /* it was ended meanwhile */
		if (w)
			revision_drop_workspace(r, core_model(w)->id);
		end_late(r);
	} else if (err) {
		r->env.workspace[0] = 0;
		fail_begin(r, err);
	} else if (r->model.is_prebuilt) {
		open_archive(r);
	} else {
		build(r, w);
	}
}

static void begin(struct revision_state *r, const char *python, const char *requirements)
{
	struct workspace wanted = { .owner = rollout_owner(r, "environment"),
		.policy.settings = r->model.settings };
	struct core_workspace *w;
	struct error ignored;
	r->env.is_begun = true;
	r->env.python = arena_text(&r->arena, python);
	r->env.requirements = requirements;
	if (r->env.is_making)
		return; /* whatever is to be built when it is there */
	if (r->env.workspace[0] &&
		!core_find(core_system(), core_of(r), r->env.workspace, &w, &ignored)) {
		if (r->model.is_prebuilt)
			open_archive(r);
		else
			build(r, w);
		return;
	}
	id_make(r->env.workspace);
	memcpy(wanted.id, r->env.workspace, sizeof wanted.id);
	r->env.is_making = true;
	core_create(revision_request(r, &r->arena), core_of(r), &wanted, on_workspace, r);
}

void env_begin_early(struct revision_state *r)
{
	const struct revision_state *before = r->deployment->live;
	if (!before || !before->model.requirements || before->model.is_prebuilt || r->env.is_begun)
		return;
	begin(r, before->agent.runtime.python_version,
		env_requirements(r, arena_text(&r->arena, before->model.requirements)));
}

/* ---- the step ---- */

static bool is_the_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* One that the revision has already: of a restart or a rollback. */
static bool is_there(struct revision_state *r)
{
	auto_arena struct arena arena = { 0 };
	struct env_meta meta;
	struct error ignored;
	return r->model.environment && !r->env.is_begun &&
	       !core_environment(
		       core_system(), core_of(r), r->model.environment, &arena, &meta, &ignored);
}

void env_step(struct revision_state *r)
{
	const char *python = r->agent.runtime.python_version;
	const char *requirements = r->model.is_prebuilt
					   ? (r->model.requirements ? r->model.requirements : "")
					   : env_requirements(r, r->model.requirements);
	if (is_there(r)) {
		rollout_next(r);
		return;
	}
	if (r->env.is_begun && (r->model.is_prebuilt || !is_the_same(r->env.python, python) ||
				       strcmp(r->env.requirements, requirements) != 0))
		end_build(r);
	deployment_set_status(r->deployment, DEPLOYMENT_BUILDING_ENV, NULL);
	if (r->env.is_installing)
		deployment_set_status(r->deployment, DEPLOYMENT_INSTALLING_DEPS, NULL);
	r->env.is_awaited = r->is_waiting = true;
	if (r->env.has_ended) {
		go_on(r);
	} else if (!r->env.is_begun) {
		r->model.environment = NULL;
		begin(r, python, requirements);
	}
}
