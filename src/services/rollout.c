/* rollout.c -- brings a revision from its request to healthy surfaces. */
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "core/state/exports.h"
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

/* ---- workspaces ---- */

struct workspace_owner rollout_owner(struct revision_state *r, const char *role)
{
	return (struct workspace_owner){ .service = SERVICE_NAME,
		.deployment = r->deployment->id,
		.role = role,
		.package_id =
			arena_printf(&r->arena, "%s@%s", r->model.agent_app_id, r->model.version) };
}

int rollout_create(struct rollout *rollout, struct fiber *fiber, struct desk *desk,
	const struct workspace *wanted, struct error *err)
{
	struct revision_state *r = rollout->revision;
	desk_init(desk, core_of(r), revision_request(r, &r->arena));
	int failed = desk_create(fiber, desk, SERVICE_NAME, wanted, err);
	desk->request = core_system();
	return failed;
}

void rollout_drop_desk(struct rollout *rollout, struct desk *desk)
{
	struct deployments *all = rollout->revision->deployment->all;
	if (desk->id[0] && !all->is_freed) /* else it is swept at the next start */
		revision_drop_workspace(rollout->revision, desk->id);
	if (desk->core)
		desk_done(desk);
	*desk = (struct desk){ 0 };
}

/* ---- the package ---- */

const char *rollout_package_name(struct revision_state *r)
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

void rollout_take_package(
	void *ctx, int fd, uint64_t size, const char *sha256, const struct error *err)
{
	struct rollout *rollout = ctx;
	struct revision_state *r = rollout->revision;
	fd_close(&rollout->package);
	rollout->package = fd;
	if (!err)
		r->model.sha256 = arena_text(&r->arena, sha256);
	fiber_continue(rollout->fiber, err);
}

static bool is_wanted(const struct revision *m)
{
	return !m->wanted_sha256 || !strcmp(m->wanted_sha256, m->sha256);
}

static int get_package(struct rollout *rollout, struct error *err)
{
	struct revision_state *r = rollout->revision;
	bool is_url = strncmp(r->model.package_url, "blob:", 5) != 0;
	if (!is_url || !r->model.force_refresh) {
		core_get_stored(core_system(), core_of(r), &stored_packages,
			rollout_package_name(r), rollout_take_package, rollout);
		int failed = fiber_wait(rollout->fiber, err);
		if (failed && (!is_url || err->code != ERR_NOT_FOUND))
			return -1;
		if (!failed && is_wanted(&r->model))
			return 0;
	}
	/* What is cached under the name of this version is another package. */
	if (is_url && fetch_package(rollout, err))
		return -1;
	return is_wanted(&r->model)
		       ? 0
		       : fail(err, ERR_INVALID, "the package has the SHA-256 %s, not %s",
				 r->model.sha256, r->model.wanted_sha256);
}

/* ---- its files ---- */

/* Reads a file of the package as a text into the arena of the revision. */
static int read_text(
	struct rollout *rollout, const char *name, size_t most, struct str *text, struct error *err)
{
	auto_buf struct buf data = buf_empty(most + 2);
	auto_close int fd = -1;
	fault_point("deployment_step");
	if (desk_open(rollout->fiber, &rollout->files, name, &fd, err))
		return -1;
	char *room = buf_reserve(&data, most + 1);
	ssize_t got = fd_read_full(fd, room, most + 1);
	if (got < 0)
		return fail_errno(err, "read '%s' of the package", name);
	if ((size_t)got > most)
		return fail(
			err, ERR_LIMIT, "'%s' of the package has more than %zu bytes", name, most);
	if (memchr(room, 0, (size_t)got) || str_utf8_prefix(room, (size_t)got) != (size_t)got)
		return fail(err, ERR_INVALID, "'%s' of the package is not valid UTF-8", name);
	*text = (struct str){ arena_bytes(&rollout->revision->arena, room, (size_t)got),
		(size_t)got };
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

static int read_manifest(struct rollout *rollout, struct error *err)
{
	struct revision_state *r = rollout->revision;
	struct str text = { 0 };
	if (read_text(rollout, APKG_FILE, MANIFEST_MAX, &text, err))
		return err->code == ERR_NOT_FOUND
			       ? fail(err, ERR_INVALID, "the package has no %s", APKG_FILE)
			       : -1;
	r->model.manifest = text.data;
	return use_manifest(r, err);
}

static int read_requirements(struct rollout *rollout, struct error *err)
{
	struct str text = { 0 };
	if (read_text(rollout, APKG_REQUIREMENTS, REQUIREMENTS_MAX, &text, err) &&
		err->code != ERR_NOT_FOUND)
		return -1;
	rollout->revision->model.requirements = text.data;
	return 0;
}

/* Whether it has an environment. */
static int look_for_prebuilt(struct rollout *rollout, struct error *err)
{
	auto_close int fd = -1;
	fault_point("deployment_step");
	int failed = desk_open(rollout->fiber, &rollout->files, APKG_VENV, &fd, err);
	rollout->revision->model.is_prebuilt = !failed;
	return failed && err->code != ERR_NOT_FOUND ? -1 : 0;
}

static int unpack(struct rollout *rollout, struct error *err)
{
	struct revision_state *r = rollout->revision;
	const struct workspace wanted = { .owner = rollout_owner(r, "package") };
	fault_point("deployment_step");
	int failed = rollout_create(rollout, rollout->fiber, &rollout->files, &wanted, err);
	if (rollout->files.id[0])
		r->model.layer = arena_text(&r->arena, rollout->files.id);
	if (failed)
		return -1;
	deployment_save(r->deployment, NULL, NULL);
	fault_point("deployment_step");
	if (desk_unpack(rollout->fiber, &rollout->files, "", rollout->package, err))
		return error_context(err, "unpack the package");
	fd_close(&rollout->package);
	return 0;
}

static int freeze(struct rollout *rollout, struct error *err)
{
	struct revision_state *r = rollout->revision;
	const struct snapshot_wanted wanted = { .tag = "package" };
	char id[ID_LEN + 1];
	fault_point("deployment_step");
	rollout->files.request = revision_request(r, &r->arena);
	if (desk_freeze(rollout->fiber, &rollout->files, &wanted, id, err))
		return -1;
	rollout->files.request = core_system();
	r->model.snapshot = arena_text(&r->arena, id);
	return 0;
}

/* A frozen workspace with the files of the package: that of another revision, or a new one. */
static int provide_files(struct rollout *rollout, struct error *err)
{
	struct revision_state *r = rollout->revision;
	fault_point("deployment_step");
	/* A package that is known by its hash need not be read again. */
	if (!r->model.sha256 && r->model.wanted_sha256)
		r->model.sha256 = r->model.wanted_sha256;
	if (!r->model.snapshot && !share_layer(r)) {
		r->model.sha256 = NULL;
		if (get_package(rollout, err) ||
			(!share_layer(r) &&
				(unpack(rollout, err) || read_manifest(rollout, err) ||
					read_requirements(rollout, err) ||
					look_for_prebuilt(rollout, err) || freeze(rollout, err))))
			return -1;
	}
	return r->agent.name ? 0 : use_manifest(r, err);
}

/* ---- its surfaces ---- */

/* Its workspace has an id before it is there, so that a crash leaves no workspace without one. */
static int make_surface(struct rollout *rollout, enum surface_kind kind, struct error *err)
{
	struct revision_state *r = rollout->revision;
	struct desk desk;
	char id[ID_LEN + 1];
	struct workspace wanted = { .owner = rollout_owner(r, surface_names[kind]),
		.from = r->model.snapshot,
		.env = surface_variables(r, kind, &r->arena),
		.limits = r->agent.surfaces[kind].limits.limits,
		.network = r->model.network,
		.environments.of[ENV_KIND_PYTHON] = r->model.environment,
		/* A pre-built one is not to be made again from an index. */
		.python = r->model.is_prebuilt ? NULL : r->agent.runtime.python_version,
		.requirements =
			r->model.is_prebuilt ? NULL : env_requirements(r, r->model.requirements),
		.policy.settings = r->model.settings };
	fault_point("deployment_step");
	id_make(id);
	memcpy(wanted.id, id, sizeof id);
	r->model.surfaces[kind].workspace = arena_text(&r->arena, id);
	int failed = rollout_create(rollout, rollout->fiber, &desk, &wanted, err);
	if (!desk.id[0])
		r->model.surfaces[kind].workspace = NULL;
	desk_done(&desk);
	if (failed)
		return error_context(err, "make surface '%s'", surface_names[kind]);
	fault_point("deployment_surface_made");
	return 0;
}

static int make_surfaces(struct rollout *rollout, struct error *err)
{
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (rollout->revision->agent.surfaces[i].is_there &&
			make_surface(rollout, (enum surface_kind)i, err))
			return -1;
	fault_point("deployment_step");
	return 0;
}

void rollout_surface_changed(struct revision_state *r)
{
	bell_ring_later(&r->rollout->bell);
}

void rollout_surface_failed(struct revision_state *r, const struct error *why)
{
	if (!r->rollout || r->rollout->failure.code)
		return;
	r->rollout->failure = *why;
	bell_ring_later(&r->rollout->bell);
}

static int start_surfaces(struct rollout *rollout, struct error *err)
{
	struct revision_state *r = rollout->revision;
	fault_point("deployment_step");
	env_stop(rollout); /* the surfaces keep the environment from here on */
	deployment_set_status(r->deployment, DEPLOYMENT_STARTING, NULL);
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (r->agent.surfaces[i].is_there)
			surface_start(&r->surfaces[i]);
	while (!revision_is_healthy(r) && !rollout->failure.code)
		if (bell_wait(&rollout->bell, BELL_NO_TIME, err))
			return -1;
	if (!rollout->failure.code)
		return 0;
	*err = rollout->failure;
	return -1;
}

/* ---- its end ---- */

static void drain(struct fiber *fiber, void *ctx)
{
	struct revision_state *r = ctx;
	uint64_t until_ms = clock_monotonic_ms() + DRAIN_MS;
	unsigned uses;
	struct error canceled;
	r->drain = fiber;
	do {
		if (pause_wait(fiber, core_loop(core_of(r)), DRAIN_EVERY_MS, &canceled)) {
			r->drain = NULL;
			return;
		}
		uses = 0;
		for (int i = 0; i < SURFACE_COUNT; i++)
			uses += r->surfaces[i].uses;
	} while (uses && clock_monotonic_ms() < until_ms);
	r->drain = NULL;
	for (int i = 0; i < SURFACE_COUNT; i++) {
		struct surface_row *row = &r->model.surfaces[i];
		r->surfaces[i].status = SURFACE_ABSENT;
		if (row->workspace)
			revision_drop_workspace(r, row->workspace);
		*row = (struct surface_row){ 0 };
	}
	fault_point("deployment_drained");
	deployment_save(r->deployment, NULL, NULL);
}

static void go_live(struct revision_state *r)
{
	struct deployment_state *d = r->deployment;
	struct revision_state *before = d->live, *dropped = d->previous;
	d->live = r;
	d->next = NULL;
	if (before) {
		d->previous = before;
		/* The old revision gets no new requests; those under way end there. */
		for (int i = 0; i < SURFACE_COUNT; i++)
			surface_stop(&before->surfaces[i]);
		fiber_start(drain, before);
		if (dropped)
			revision_end(dropped);
	}
	fault_point("deployment_live");
	d->all->rollouts++;
	deployment_forget_logs(d);
	deployment_set_status(d, DEPLOYMENT_HEALTHY, NULL);
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

static void end_failed(struct revision_state *r, const struct error *why)
{
	struct deployment_state *d = r->deployment;
	for (int i = 0; i < SURFACE_COUNT; i++)
		surface_stop(&r->surfaces[i]);
	d->all->rollout_failures++;
	keep_log(r);
	d->next = NULL;
	deployment_set_status(d, DEPLOYMENT_FAILED, why);
	fault_point("deployment_failed");
	revision_end(r);
}

static void roll_out(struct fiber *fiber, void *ctx)
{
	struct revision_state *r = ctx;
	struct rollout rollout = { .revision = r,
		.fiber = fiber,
		.bell = { .fiber = fiber, .loop = core_loop(core_of(r)) },
		.package = -1,
		.env.rollout = &rollout };
	struct error err;
	r->rollout = &rollout;
	desk_init(&rollout.files, core_of(r), core_system());
	deployment_set_status(r->deployment, DEPLOYMENT_DOWNLOADING, NULL);
	int failed = provide_files(&rollout, &err) || env_provide(&rollout, &err) ||
		     make_surfaces(&rollout, &err) || start_surfaces(&rollout, &err);
	fiber_end_cancellation(fiber);
	env_stop(&rollout);
	fd_close(&rollout.package);
	desk_done(&rollout.files);
	bell_done(&rollout.bell);
	r->rollout = NULL;
	if (r->deployment->all->is_freed)
		return;
	if (r->is_canceled)
		revision_end(r);
	else if (failed)
		end_failed(r, &err);
	else
		go_live(r);
}

void rollout_begin(struct revision_state *r)
{
	fiber_start(roll_out, r);
}
