/* rollout.c -- brings a revision from its request to healthy surfaces, step by step. A step calls
 * one verb of core and waits for its callback; rollout_next is the one place that goes on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/hash.h"
#include "core/files/files.h"
#include "core/files/tree_archive.h"
#include "core/state/exports.h"
#include "core/state/snapshots.h"
#include "format/text/yaml_json.h"
#include "services/deployment_internal.h"

#define MANIFEST_MAX ((size_t)64 << 10)
#define REQUIREMENTS_MAX ((size_t)256 << 10)
#define DRAIN_MS 30000
#define DRAIN_EVERY_MS 50

static struct core *core_of(const struct revision_state *r)
{
	return r->deployment->all->service.core;
}

/* ---- its end ---- */

/* Bytes of the package on their way to the unpacking. */
struct package_pump {
	struct loop *loop;
	int from, to;
};

static void pump_stop(struct revision_state *r)
{
	if (!r->pump)
		return;
	loop_unwatch(r->pump->loop, r->pump->to);
	fd_close(&r->pump->to);
	free(r->pump);
	r->pump = NULL;
}

void rollout_stop(struct revision_state *r)
{
	env_stop(r);
	if (r->unpacking) {
		archive_cancel(r->unpacking);
		r->unpacking = NULL;
		r->is_waiting = false;
	}
	pump_stop(r);
	fetch_end(r);
	loop_cancel(core_loop(core_of(r)), r->drain);
	r->drain = NULL;
	fd_close(&r->package);
}

static void keep_log(struct revision_state *r)
{
	deployment_forget_logs(r->deployment);
	for (int k = 0; k < SURFACE_COUNT; k++) {
		auto_buf struct buf log = buf_empty(4 * LOG_BYTES);
		surface_read_log(&r->surfaces[k], &log);
		if (!log.len)
			continue;
		char *kept = r->deployment->logs[k] = xzalloc(log.len + 1);
		for (size_t i = 0; i < log.len; i++) /* a text of the store has no NUL */
			kept[i] = log.data[i] ? log.data[i] : ' ';
	}
}

static void on_failed(struct loop *loop, void *ctx)
{
	struct revision_state *r = ctx;
	struct deployment_state *d = r->deployment;
	struct error why = r->failure;
	r->drain = NULL;
	if (r->is_canceled) {
		revision_end(r);
		return;
	}
	d->all->rollout_failures++;
	keep_log(r);
	d->next = NULL;
	deployment_set_status(d, DEPLOYMENT_FAILED, &why);
	fault_point("deployment_failed");
	revision_end(r);
}

/* Told in a turn of its own: whoever found the failure may be in the middle of the revision. */
void rollout_fail(struct revision_state *r, const struct error *err)
{
	if (r->failure.code)
		return;
	r->failure = *err;
	for (int i = 0; i < SURFACE_COUNT; i++)
		surface_stop(&r->surfaces[i]);
	loop_cancel(core_loop(core_of(r)), r->drain);
	r->drain = loop_after(core_loop(core_of(r)), 0, on_failed, r);
}

bool rollout_resume(struct revision_state *r, const struct error *err)
{
	struct error gone;
	r->is_waiting = false;
	if (r->is_canceled) {
		fail(&gone, ERR_CANCELED, "the deployment was removed");
		rollout_fail(r, &gone);
		return false;
	}
	if (!err)
		return !r->failure.code;
	rollout_fail(r, err);
	return false;
}

/* ---- the package ---- */

static const char *package_name(struct revision_state *r)
{
	const char *url = r->model.package_url;
	if (!strncmp(url, "blob:", 5))
		return url + 5;
	return arena_printf(&r->arena, "%s@%s", r->model.agent_app_id, r->model.version);
}

/* Files of this package that are there already, by its hash. */
static bool share_layer(struct revision_state *r)
{
	const struct revision *other =
		r->model.force_refresh || !r->model.sha256
			? NULL
			: revision_of_package(r->deployment->all, r->model.sha256);
	if (!other)
		return false;
	r->model.layer = arena_text(&r->arena, other->layer);
	r->model.snapshot = arena_text(&r->arena, other->snapshot);
	r->model.manifest = arena_text(&r->arena, other->manifest);
	r->model.requirements = arena_text(&r->arena, other->requirements);
	r->model.is_prebuilt = other->is_prebuilt;
	/* The same package has the same wheels. */
	if (other->is_prebuilt && other->environment && !r->model.rebuild_venv &&
		!r->model.skip_venv_cache) {
		r->model.environment = arena_text(&r->arena, other->environment);
		r->model.is_cached = true;
	}
	return true;
}

static void on_package(
	void *ctx, int fd, uint64_t size, const char *sha256, const struct error *err)
{
	struct revision_state *r = ctx;
	auto_close int file = fd;
	bool is_url = strncmp(r->model.package_url, "blob:", 5) != 0;
	fetch_end(r);
	if (err && err->code == ERR_NOT_FOUND && is_url && r->step == STEP_PACKAGE) {
		if (rollout_resume(r, NULL)) {
			r->step = STEP_FETCH_MAKE;
			rollout_next(r);
		}
		return;
	}
	if (!rollout_resume(r, err))
		return;
	const char *wanted = r->model.wanted_sha256;
	if (wanted && strcmp(wanted, sha256) != 0) {
		struct error wrong;
		/* What is cached under the name of this version is another package. */
		if (is_url && r->step == STEP_PACKAGE) {
			r->step = STEP_FETCH_MAKE;
			rollout_next(r);
			return;
		}
		fail(&wrong, ERR_INVALID, "the package has the SHA-256 %s, not %s", sha256, wanted);
		rollout_fail(r, &wrong);
		return;
	}
	r->model.sha256 = arena_text(&r->arena, sha256);
	r->package = take_fd(&file);
	r->step = share_layer(r) ? STEP_ENV : STEP_LAYER_MAKE;
	rollout_next(r);
}

static void find_package(struct revision_state *r)
{
	bool is_url = strncmp(r->model.package_url, "blob:", 5) != 0;
	/* A package that is known by its hash need not be read again. */
	if (!r->model.sha256 && r->model.wanted_sha256)
		r->model.sha256 = r->model.wanted_sha256;
	if (r->model.snapshot || share_layer(r)) {
		r->step = STEP_ENV;
		rollout_next(r);
		return;
	}
	r->model.sha256 = NULL;
	if (is_url && r->model.force_refresh) {
		r->step = STEP_FETCH_MAKE;
		rollout_next(r);
		return;
	}
	r->is_waiting = true;
	core_get_stored(
		core_system(), core_of(r), &stored_packages, package_name(r), on_package, r);
}

static void fetch_keep(struct revision_state *r)
{
	r->is_waiting = true;
	core_keep_stored(core_system(), core_of(r), &stored_packages, package_name(r), r->package,
		r->model.wanted_sha256, on_package, r);
	fd_close(&r->package);
}

/* ---- its files ---- */

struct workspace_owner rollout_owner(struct revision_state *r, const char *role)
{
	return (struct workspace_owner){ .service = SERVICE_NAME,
		.deployment = r->deployment->id,
		.role = role,
		.package_id =
			arena_printf(&r->arena, "%s@%s", r->model.agent_app_id, r->model.version) };
}

static void on_layer(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct revision_state *r = ctx;
	if (w)
		r->model.layer = arena_text(&r->arena, core_model(w)->id);
	if (!rollout_resume(r, err))
		return;
	deployment_save(r->deployment, NULL, NULL);
	rollout_next(r);
}

static void make_layer(struct revision_state *r)
{
	struct workspace wanted = { .owner = rollout_owner(r, "package") };
	r->is_waiting = true;
	core_create(revision_request(r, &r->arena), core_of(r), &wanted, on_layer, r);
}

/* -1: *err says what is missing. */
static int find_layer(struct revision_state *r, struct core_workspace **w, struct error *err)
{
	return core_find(core_system(), core_of(r), r->model.layer, w, err);
}

static void on_room(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct revision_state *r = ctx;
	static char piece[65536];
	off_t at = lseek(r->pump->from, 0, SEEK_CUR);
	ssize_t got = pread(r->pump->from, piece, sizeof piece, at);
	ssize_t sent = got > 0 ? write(fd, piece, (size_t)got) : 0;
	if (sent > 0)
		lseek(r->pump->from, at + sent, SEEK_SET);
	/* At its end, or refused: the job says why. */
	if (got <= 0 || (sent < 0 && errno != EAGAIN && errno != EINTR))
		pump_stop(r);
}

static void on_unpack_begun(void *ctx, int fd)
{
	struct revision_state *r = ctx;
	struct error err;
	r->pump = xzalloc(sizeof *r->pump);
	*r->pump = (struct package_pump){ core_loop(core_of(r)), r->package, fd };
	lseek(r->package, 0, SEEK_SET);
	if (loop_watch(r->pump->loop, fd, EPOLLOUT, on_room, r, &err))
		rollout_fail(r, &err);
}

void rollout_unpacked(struct revision_state *r)
{
	r->unpacking = NULL;
	pump_stop(r);
	fd_close(&r->package);
}

static void on_unpacked(void *ctx, const struct error *err)
{
	struct revision_state *r = ctx;
	struct error why;
	rollout_unpacked(r);
	if (err) {
		why = *err;
		error_context(&why, "unpack the package");
	}
	if (rollout_resume(r, err ? &why : NULL))
		rollout_next(r);
}

int rollout_unpack(struct revision_state *r, const char *workspace, const char *path,
	void (*done)(void *ctx, const struct error *err), struct error *err)
{
	const struct archive_listener listener = { on_unpack_begun, done, r };
	struct core_workspace *w;
	if (core_find(core_system(), core_of(r), workspace, &w, err))
		return -1;
	r->is_waiting = true;
	r->unpacking = archive_in(core_system(), w, path, &listener);
	return 0;
}

static void unpack(struct revision_state *r)
{
	struct error err;
	if (rollout_unpack(r, r->model.layer, "", on_unpacked, &err))
		rollout_fail(r, &err);
}

/* All of a file of the package as a text in the arena. */
static int read_text(struct revision_state *r, const struct files_answer *answer, const char *name,
	size_t most, struct str *text, struct error *err)
{
	auto_close int fd = answer->fd;
	auto_buf struct buf data = buf_empty(most + 2);
	char *room = buf_reserve(&data, most + 1);
	ssize_t got = fd_read_full(fd, room, most + 1);
	if (got < 0)
		return fail_errno(err, "read '%s' of the package", name);
	if ((size_t)got > most)
		return fail(
			err, ERR_LIMIT, "'%s' of the package has more than %zu bytes", name, most);
	if (memchr(room, 0, (size_t)got) || str_utf8_prefix(room, (size_t)got) != (size_t)got)
		return fail(err, ERR_INVALID, "'%s' of the package is not valid UTF-8", name);
	*text = (struct str){ arena_bytes(&r->arena, room, (size_t)got), (size_t)got };
	return 0;
}

int apkg_parse(struct str yaml, struct arena *arena, struct apkg *agent, struct error *err)
{
	struct json_value *value;
	if (yaml_json_read(yaml, arena, &value, err) || apkg_read(value, arena, agent, err))
		return error_context(err, "%s", APKG_FILE);
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (!agent->surfaces[i].start_timeout_ms)
			agent->surfaces[i].start_timeout_ms = APKG_START_TIMEOUT_MS;
	return 0;
}

static int use_manifest(struct revision_state *r, struct error *err)
{
	if (apkg_parse(str_from(r->model.manifest), &r->arena, &r->agent, err))
		return -1;
	if (strcmp(r->agent.version, r->model.version) != 0)
		return fail(err, ERR_INVALID, "%s is of version '%s', not '%s'", APKG_FILE,
			r->agent.version, r->model.version);
	return 0;
}

static void on_manifest(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct revision_state *r = ctx;
	struct error why;
	struct str text = { 0 };
	if (err && err->code == ERR_NOT_FOUND) {
		fail(&why, ERR_INVALID, "the package has no %s", APKG_FILE);
		err = &why;
	}
	if (!err && read_text(r, answer, APKG_FILE, MANIFEST_MAX, &text, &why))
		err = &why;
	r->model.manifest = text.data;
	if (!err && use_manifest(r, &why))
		err = &why;
	if (rollout_resume(r, err))
		rollout_next(r);
}

static void on_requirements(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct revision_state *r = ctx;
	struct error why;
	struct str text = { 0 };
	bool is_absent = err && err->code == ERR_NOT_FOUND;
	if (is_absent)
		err = NULL;
	if (!err && !is_absent &&
		read_text(r, answer, APKG_REQUIREMENTS, REQUIREMENTS_MAX, &text, &why))
		err = &why;
	r->model.requirements = text.data;
	if (rollout_resume(r, err))
		rollout_next(r);
}

static void on_prebuilt(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct revision_state *r = ctx;
	auto_close int fd = err ? -1 : answer->fd;
	r->model.is_prebuilt = !err;
	if (rollout_resume(r, err && err->code != ERR_NOT_FOUND ? err : NULL))
		rollout_next(r);
}

static void open_file(struct revision_state *r, const char *name, files_fn *done)
{
	const struct files_request what = { .verb = FILES_OPEN, .path = name };
	struct core_workspace *w;
	struct error err;
	if (find_layer(r, &w, &err)) {
		rollout_fail(r, &err);
		return;
	}
	r->is_waiting = true;
	files_do(core_system(), w, &what, done, r);
}

static void on_frozen(void *ctx, const struct snapshot *snapshot, const struct error *err)
{
	struct revision_state *r = ctx;
	if (snapshot)
		r->model.snapshot = arena_text(&r->arena, snapshot->id);
	if (rollout_resume(r, err))
		rollout_next(r);
}

static void freeze(struct revision_state *r)
{
	const struct snapshot_wanted wanted = { .tag = "package" };
	struct core_workspace *w;
	struct error err;
	if (find_layer(r, &w, &err)) {
		rollout_fail(r, &err);
		return;
	}
	r->is_waiting = true;
	core_snapshot_create(revision_request(r, &r->arena), w, &wanted, on_frozen, r);
}

/* ---- workspaces of the surfaces ---- */

static void on_surface(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct revision_state *r = ctx;
	struct error why;
	if (err) {
		why = *err;
		r->model.surfaces[r->at].workspace = NULL;
		error_context(&why, "make surface '%s'", surface_names[r->at]);
	}
	if (!rollout_resume(r, err ? &why : NULL))
		return;
	fault_point("deployment_surface_made");
	r->at++;
	r->step = STEP_SURFACE;
	rollout_next(r);
}

/* Its workspace has an id before it is there, so that a crash leaves no workspace without one. */
static void make_surface(struct revision_state *r)
{
	const struct apkg_surface *spec;
	char id[ID_LEN + 1];
	while (r->at < SURFACE_COUNT && !r->agent.surfaces[r->at].is_there)
		r->at++;
	if (r->at == SURFACE_COUNT) {
		r->step = STEP_START;
		rollout_next(r);
		return;
	}
	spec = &r->agent.surfaces[r->at];
	struct workspace wanted = { .owner = rollout_owner(r, surface_names[r->at]),
		.from = r->model.snapshot,
		.env = surface_variables(r, (enum surface_kind)r->at, &r->arena),
		.limits = spec->limits.limits,
		.network = r->model.network,
		.environment = r->model.environment,
		/* A pre-built one is not to be made again from an index. */
		.python = r->model.is_prebuilt ? NULL : r->agent.runtime.python_version,
		.requirements =
			r->model.is_prebuilt ? NULL : env_requirements(r, r->model.requirements),
		.policy.settings = r->model.settings };
	id_make(id);
	memcpy(wanted.id, id, sizeof id);
	r->model.surfaces[r->at].workspace = arena_text(&r->arena, id);
	r->is_waiting = true;
	core_create(revision_request(r, &r->arena), core_of(r), &wanted, on_surface, r);
}

/* ---- surfaces ---- */

static void start_all(struct revision_state *r)
{
	env_stop(r); /* the surfaces keep the environment from here on */
	deployment_set_status(r->deployment, DEPLOYMENT_STARTING, NULL);
	r->step = STEP_WAIT;
	for (int i = 0; i < SURFACE_COUNT; i++) {
		struct surface *s = &r->surfaces[i];
		if (!r->agent.surfaces[i].is_there)
			continue;
		s->status = SURFACE_STARTING;
		surface_start(s);
	}
}

static void on_drain_due(struct loop *loop, void *ctx)
{
	struct revision_state *r = ctx;
	unsigned uses = 0;
	r->drain = NULL;
	for (int i = 0; i < SURFACE_COUNT; i++)
		uses += r->surfaces[i].uses;
	if (uses && clock_monotonic_ms() < r->drain_until_ms) {
		r->drain = loop_after(loop, DRAIN_EVERY_MS, on_drain_due, r);
		return;
	}
	for (int i = 0; i < SURFACE_COUNT; i++) {
		struct surface_row *row = &r->model.surfaces[i];
		surface_stop(&r->surfaces[i]);
		r->surfaces[i].status = SURFACE_ABSENT;
		if (row->workspace)
			revision_drop_workspace(r, row->workspace);
		*row = (struct surface_row){ 0 };
	}
	fault_point("deployment_drained");
	deployment_save(r->deployment, NULL, NULL);
}

/* The revision that was live gets no new requests; those under way end there. */
static void drain(struct revision_state *r)
{
	for (int i = 0; i < SURFACE_COUNT; i++)
		surface_stop(&r->surfaces[i]);
	r->drain_until_ms = clock_monotonic_ms() + DRAIN_MS;
	r->drain = loop_after(core_loop(core_of(r)), DRAIN_EVERY_MS, on_drain_due, r);
}

static void go_live(struct revision_state *r)
{
	struct deployment_state *d = r->deployment;
	struct revision_state *before = d->live, *dropped = d->previous;
	r->is_rolling = false;
	r->step = STEP_DONE;
	d->live = r;
	d->next = NULL;
	if (before) {
		d->previous = before;
		drain(before);
		if (dropped)
			revision_end(dropped);
	}
	fault_point("deployment_live");
	d->all->rollouts++;
	deployment_forget_logs(d);
	deployment_set_status(d, DEPLOYMENT_HEALTHY, NULL);
}

void rollout_surface_changed(struct surface *s)
{
	struct revision_state *r = s->revision;
	if (r->step == STEP_WAIT && !r->failure.code && revision_is_healthy(r))
		go_live(r);
}

/* ---- the steps ---- */

void rollout_next(struct revision_state *r)
{
	static void (*const steps[])(struct revision_state *) = {
		[STEP_PACKAGE] = find_package,
		[STEP_FETCH_MAKE] = fetch_make,
		[STEP_FETCH_RUN] = fetch_run,
		[STEP_FETCH_OPEN] = fetch_open,
		[STEP_FETCH_KEEP] = fetch_keep,
		[STEP_LAYER_MAKE] = make_layer,
		[STEP_UNPACK] = unpack,
		[STEP_FREEZE] = freeze,
		[STEP_ENV] = env_step,
		[STEP_SURFACE] = make_surface,
		[STEP_START] = start_all,
	};
	struct error err;
	enum rollout_step step = r->step;
	if (r->failure.code)
		return;
	if (step == STEP_ENV && !r->agent.name && use_manifest(r, &err)) {
		rollout_fail(r, &err);
		return;
	}
	fault_point("deployment_step");
	/* Steps that branch set the next one themselves. */
	r->step = step + 1;
	if (step == STEP_MANIFEST)
		open_file(r, APKG_FILE, on_manifest);
	else if (step == STEP_REQUIREMENTS)
		open_file(r, APKG_REQUIREMENTS, on_requirements);
	else if (step == STEP_PREBUILT)
		open_file(r, APKG_VENV, on_prebuilt);
	else {
		if (step == STEP_PACKAGE || step == STEP_FETCH_KEEP)
			r->step = step;
		steps[step](r);
	}
}

void rollout_begin(struct revision_state *r)
{
	r->is_rolling = true;
	r->step = STEP_PACKAGE;
	r->package = -1;
	deployment_set_status(r->deployment, DEPLOYMENT_DOWNLOADING, NULL);
	rollout_next(r);
}
