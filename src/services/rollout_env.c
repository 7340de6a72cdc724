/* rollout_env.c -- the environment of a revision: built for a workspace of its own, before there
 * are surfaces. When the package has to be fetched and the revision before has requirements, these
 * are built meanwhile; the package then says whether they are the right ones. */
#include "base/fault.h"
#include "base/buf.h"
#include "base/fd.h"
#include "core/catalog.h"
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

static void unlisten(struct rollout_env *env)
{
	if (env->progress.fn)
		journal_unlisten(core_journal(core_of(env->rollout->revision)), &env->progress);
	env->progress.fn = NULL;
}

/* Downloads have begun: what comes is the installation. */
static void on_progress(void *ctx, const struct event *event)
{
	struct rollout_env *env = ctx;
	bool is_ending = env->early && env->is_superseded;
	if (is_ending || strcmp(event->type, "environment.progress") ||
		strcmp(event->workspace, env->desk.id))
		return;
	unlisten(env);
	env->is_installing = true;
	if (env->is_awaited)
		deployment_set_status(
			env->rollout->revision->deployment, DEPLOYMENT_INSTALLING_DEPS, NULL);
}

static void release(struct rollout_env *env)
{
	environment_release(core_of(env->rollout->revision), take_ptr(env->pin));
}

static int install(struct rollout_env *env, struct error *err)
{
	struct revision_state *r = env->rollout->revision;
	struct workspace recipe = { .owner = rollout_owner(r, "environment"),
		.python = env->python,
		.requirements = env->requirements };
	struct environment_made made;
	struct core_workspace *w;
	if (core_find(core_system(), core_of(r), env->desk.id, &w, err))
		return -1;
	/* What was altered on disk is found then: the layers are compared with their hashes. */
	if (r->model.rebuild_venv || r->model.force_refresh)
		vec_push(&r->arena, &recipe.build_options, "--rebuild");
	if (r->model.skip_venv_cache)
		vec_push(&r->arena, &recipe.build_options, "--no-cache");
	env->progress = (struct journal_listener){ .fn = on_progress, .ctx = env };
	journal_listen(core_journal(core_of(r)), &env->progress, 0);
	int failed = environment_make(revision_request(r, &r->arena), env->fiber, w, &recipe,
		env->is_prebuilt ? env->desk.id : NULL, &made, err);
	unlisten(env);
	if (failed)
		return -1;
	env->pin = made.pin;
	r->model.environment = arena_text(&r->arena, made.name);
	r->model.is_cached = made.was_cached && !r->model.rebuild_venv && !r->model.skip_venv_cache;
	return 0;
}

/* The wheels of the package, which it is made of. */
static int unpack_wheels(struct rollout_env *env, struct error *err)
{
	auto_close int fd = -1;
	if (desk_open(env->fiber, &env->rollout->files, APKG_VENV, &fd, err))
		return -1;
	return desk_unpack(env->fiber, &env->desk, ENVIRONMENT_WHEELS, fd, err);
}

static int make_desk(struct rollout_env *env, struct error *err)
{
	struct revision_state *r = env->rollout->revision;
	struct workspace wanted = { .owner = rollout_owner(r, "environment"),
		.policy.settings = r->model.settings };
	if (env->desk.id[0]) /* of a build that was canceled */
		return 0;
	id_make(wanted.id);
	return rollout_create(env->rollout, env->fiber, &env->desk, &wanted, err);
}

static int build(struct rollout_env *env, struct fiber *fiber, const char *python,
	const char *requirements, struct error *err)
{
	struct revision_state *r = env->rollout->revision;
	env->fiber = fiber;
	env->python = arena_text(&r->arena, python);
	env->requirements = requirements;
	if (make_desk(env, err) || (env->is_prebuilt && unpack_wheels(env, err)) ||
		install(env, err)) {
		explain(&r->model, err);
		return -1;
	}
	return 0;
}

/* ---- while the package is fetched ---- */

static void build_early(struct fiber *fiber, void *ctx)
{
	struct rollout_env *env = ctx;
	struct revision_state *r = env->rollout->revision;
	const struct revision_state *before = r->deployment->live;
	env->early = fiber;
	env->has_failed = build(env, fiber, before->agent.runtime.python_version,
		env_requirements(r, arena_text(&r->arena, before->model.requirements)),
		&env->failure);
	env->early = NULL;
	if (!env->is_superseded)
		rollout_drop_desk(env->rollout, &env->desk);
	bell_ring_later(&env->rollout->bell);
}

void env_begin_early(struct rollout *rollout)
{
	const struct revision_state *before = rollout->revision->deployment->live;
	if (!before || !before->model.requirements || before->model.is_prebuilt)
		return;
	rollout->env.is_begun = true;
	fiber_start(build_early, &rollout->env);
}

/* ---- what the package needs ---- */

static bool is_the_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* One that the revision has already: of a restart or a rollback. */
static bool is_there(struct rollout *rollout)
{
	struct revision_state *r = rollout->revision;
	auto_arena struct arena arena = { 0 };
	struct env_meta meta;
	struct error ignored;
	return r->model.environment && !rollout->env.is_begun &&
	       !core_environment(
		       core_system(), core_of(r), r->model.environment, &arena, &meta, &ignored);
}

int env_provide(struct rollout *rollout, struct error *err)
{
	struct rollout_env *env = &rollout->env;
	struct revision_state *r = rollout->revision;
	const char *python = r->agent.runtime.python_version;
	const char *requirements = r->model.is_prebuilt
					   ? (r->model.requirements ? r->model.requirements : "")
					   : env_requirements(r, r->model.requirements);
	fault_point("deployment_step");
	if (is_there(rollout))
		return 0;
	bool is_right = env->is_begun && !r->model.is_prebuilt &&
			is_the_same(env->python, python) &&
			!strcmp(env->requirements, requirements);
	env->is_superseded = !is_right;
	if (env->early && !is_right)
		fiber_cancel(env->early);
	deployment_set_status(r->deployment, DEPLOYMENT_BUILDING_ENV, NULL);
	if (is_right && env->is_installing)
		deployment_set_status(r->deployment, DEPLOYMENT_INSTALLING_DEPS, NULL);
	env->is_awaited = true;
	while (env->early)
		if (bell_wait(&rollout->bell, BELL_NO_TIME, err))
			return -1;
	if (is_right) {
		*err = env->failure;
		return env->has_failed ? -1 : 0;
	}
	release(env);
	env->is_prebuilt = r->model.is_prebuilt;
	r->model.environment = NULL;
	int failed = build(env, rollout->fiber, python, requirements, err);
	rollout_drop_desk(rollout, &env->desk);
	return failed;
}

void env_stop(struct rollout *rollout)
{
	struct rollout_env *env = &rollout->env;
	struct error ignored;
	if (env->early)
		fiber_cancel(env->early);
	while (env->early)
		bell_wait(&rollout->bell, BELL_NO_TIME, &ignored);
	release(env);
	rollout_drop_desk(rollout, &env->desk);
}
