/* deployment_show.c -- what clients see of a deployment: its surfaces, its environment, its output.
 */
#include "base/hash.h"
#include "core/catalog.h"
#include "model/nouns/environment.h"
#include "services/deployment_internal.h"

static void print_surface(const struct surface *s, struct arena *arena, struct json *j)
{
	static const char *const names[] = { "stopped", "starting", "healthy", "unhealthy" };
	const struct revision_state *r = s->revision;
	const struct surface_row *row = &r->model.surfaces[s->kind];
	const struct surface_info info = { .name = surface_names[s->kind],
		.status = names[s->status],
		.url = arena_printf(
			arena, "/v1/deployments/%s/%s/", r->deployment->id, surface_names[s->kind]),
		.port = apkg_port(&r->agent, s->kind),
		.workspace = row->workspace,
		.exec = row->exec,
		.restarts = s->restarts,
		.error = s->why[0] ? s->why : NULL };
	record_print(j, NULL, &surface_info_record, &info);
}

static void show_venv(
	const struct deployment_state *d, struct arena *arena, struct deployment_venv *venv)
{
	const struct revision *m = &d->live->model;
	struct env_meta meta;
	struct error ignored;
	*venv = (struct deployment_venv){ .path = "/env",
		.name = m->environment,
		.source = m->is_prebuilt ? "package" : "index",
		.requirements_sha256 = "",
		.created_at = "",
		.python_version = "",
		.cached = m->is_cached };
	if (core_environment(
		    core_system(), d->all->service.core, m->environment, arena, &meta, &ignored))
		return;
	venv->requirements_sha256 = meta.requirements_sha256;
	if (m->is_prebuilt) { /* that of the environment is of its lock, too */
		char *hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
		sha256_of(m->requirements, strlen(m->requirements), hex);
		venv->requirements_sha256 = hex;
	}
	venv->created_at = meta.created_at;
	venv->python_version = meta.python_version ? meta.python_version : "";
	venv->packages = meta.packages;
}

void deployment_describe(
	const struct deployment_state *d, struct arena *arena, struct deployment *shown)
{
	const struct revision_state *r = d->live ? d->live : d->next;
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	json_array(&j, NULL);
	for (int i = 0; r && i < SURFACE_COUNT; i++)
		if (r->agent.surfaces[i].is_there)
			print_surface(&r->surfaces[i], arena, &j);
	json_end(&j);
	shown->surfaces = arena_text(arena, text.data);
	shown->revision = d->live ? d->live->model.number : 0;
	shown->agent_app_id = r ? r->model.agent_app_id : d->name;
	shown->version = r ? r->model.version : d->rollout.version;
	shown->package_url = r ? r->model.package_url : "";
	shown->sha256 = r ? r->model.sha256 : NULL;
	shown->error = d->error[0] ? arena_text(arena, d->error) : NULL;
	for (int i = 0; !shown->error && r && i < SURFACE_COUNT; i++)
		if (r->surfaces[i].why[0])
			shown->error = arena_text(arena, r->surfaces[i].why);
	shown->has_venv = d->live && d->live->model.environment;
	if (shown->has_venv)
		show_venv(d, arena, &shown->venv);
}

/* ---- output ---- */

static bool is_asked(const char *surface, int kind)
{
	return !surface || !strcmp(surface, surface_names[kind]);
}

/* Whose output follows, on a line of its own. */
static void head(
	struct buf *out, int kind, const char *version, uint64_t revision, const char *more)
{
	buf_end_line(out);
	buf_printf(out, "==> %s of version %s (revision %" PRIu64 "%s) <==\n", surface_names[kind],
		version, revision, more);
}

bool deployment_print_logs(const struct deployment_state *d, const char *surface, struct buf *out)
{
	bool is_found = false;
	const struct revision_state *each[] = { d->live, d->next };
	for (int k = 0; k < 2; k++)
		for (int i = 0; each[k] && i < SURFACE_COUNT; i++)
			if (each[k]->agent.surfaces[i].is_there && is_asked(surface, i)) {
				is_found = true;
				head(out, i, each[k]->model.version, each[k]->model.number, "");
				surface_read_log(&each[k]->surfaces[i], out);
			}
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (d->logs[i] && is_asked(surface, i)) {
			is_found = true;
			head(out, i, d->rollout.version, d->rollout.revision, ", failed");
			buf_text(out, d->logs[i]);
		}
	return is_found;
}
