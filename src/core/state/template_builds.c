#include "core/state/template_builds.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "core/state/internal.h"
#include "core/state/template_store.h"
#include "model/nouns/template.h"

#define RECORD_MAX 65536
#define SUFFIX ".json"

/* ---- records ---- */

struct record_fields {
	const char *sha256, *layer;
	struct environment_names environments;
};
#define AT(member) offsetof(struct record_fields, member)
static const struct field rows[] = {
	{ "sha256", FIELD_TEXT, AT(sha256) },
	{ "layer", FIELD_TEXT, AT(layer), .is_valid = launch_layer_is_frozen },
	{ "environment", FIELD_TEXT, AT(environments.of[ENV_KIND_PYTHON]) },
	{ "node_environment", FIELD_TEXT, AT(environments.of[ENV_KIND_NODE]) },
};
static const struct record build_record = { "TemplateBuild", NULL, RECORD_ROWS(rows), FIELD_KEPT };

static void free_build(struct core *core, struct template_build *build)
{
	map_remove(&core->state->template_builds, str_from(build->name));
	arena_done(&build->arena);
	free(build);
}

/* Replaces the build of this name. */
static struct template_build *add_build(
	struct core *core, const char *name, const struct record_fields *fields)
{
	struct template_build *old = map_get(&core->state->template_builds, str_from(name));
	struct template_build *build = xzalloc(sizeof *build + strlen(name) + 1);
	memcpy(build->name, name, strlen(name) + 1);
	str_copy(build->sha256, sizeof build->sha256, fields->sha256);
	build->layer = arena_text(&build->arena, fields->layer);
	environment_names_copy(&build->arena, &fields->environments, &build->environments);
	if (old)
		free_build(core, old);
	map_add(&core->state->template_builds, str_from(build->name), build);
	return build;
}

static void load(struct core *core, const char *file)
{
	auto_arena struct arena arena = { 0 };
	struct record_fields fields = { 0 };
	struct error ignored;
	struct str text;
	size_t len = strlen(file), suffix = strlen(SUFFIX);
	if (len <= suffix || strcmp(file + len - suffix, SUFFIX))
		return;
	const char *name = arena_bytes(&arena, file, len - suffix);
	if (template_check_name(name, &ignored) ||
		file_read_at(core->state->template_dir, file, RECORD_MAX, &arena, &text) ||
		record_read_kept(&build_record, text, &arena, &fields, &ignored) ||
		!fields.sha256 || !fields.layer) {
		unlinkat(core->state->template_dir, file, 0);
		return;
	}
	add_build(core, name, &fields);
}

int template_builds_open(struct core *core, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	text_list names = { 0 };
	if (home_open_directory(&core->home, "templates", &core->state->template_dir, err))
		return -1;
	if (file_names(core->state->template_dir, ".", &arena, &names))
		return fail_errno(err, "read '%s/templates'", core->home.path);
	for (size_t i = 0; i < names.count; i++)
		load(core, names.items[i]);
	return 0;
}

void template_builds_close(struct core *core)
{
	struct template_build *build;
	for (size_t at = 0; (build = map_next(&core->state->template_builds, &at));) {
		arena_done(&build->arena);
		free(build);
	}
	map_done(&core->state->template_builds);
	fd_close(&core->state->template_dir);
}

/* Also one whose layer was lost. */
static const struct template_build *find_record(
	const struct core *core, const char *name, const char *sha256)
{
	const struct template_build *build = map_get(&core->state->template_builds, str_from(name));
	return build && !strcmp(build->sha256, sha256) ? build : NULL;
}

const struct template_build *template_build_find(
	const struct core *core, const char *name, const char *sha256)
{
	const struct template_build *build = find_record(core, name, sha256);
	return build && !layer_problem(core, build->layer) ? build : NULL;
}

void template_build_forget(struct core *core, const char *name)
{
	struct template_build *build = map_get(&core->state->template_builds, str_from(name));
	char file[TEMPLATE_NAME_MAX + 16];
	if (!build)
		return;
	str_format(file, sizeof file, "%s" SUFFIX, name);
	unlinkat(core->state->template_dir, file, 0);
	free_build(core, build);
	layers_sweep(core);
}

/* ---- building ---- */

static int fill_stage(struct core_workspace *w, const char *stage, struct error *err)
{
	int layers = w->core->envs.layers.dir;
	if (mkdirat(layers, stage, 0700))
		return fail_errno(err, "make a layer");
	auto_close int dir = openat(layers, stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || mkdirat(dir, "workspace", 0755))
		return fail_errno(err, "make a layer");
	auto_close int tree =
		openat(dir, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree < 0)
		return fail_errno(err, "make a layer");
	if (tree_write_project(w, tree, true, err) || tree_write_files(tree, &w->files, true, err))
		return -1;
	fault_point("core_template_layer");
	return fault_fails("core.template_sync") || fsync(tree) || fsync(dir)
		       ? fail_errno(err, "write a layer to disk")
		       : 0;
}

/* Written beside its place, synced and renamed. */
static int write_layer(struct core_workspace *w, const char *layer, struct error *err)
{
	struct core *core = w->core;
	char stage[64];
	str_format(stage, sizeof stage, TEMPLATE_STAGE_PREFIX "%s", layer);
	if (!fill_stage(w, stage, err) && !layer_replace(w, stage, layer, err))
		return 0;
	layer_discard(core, stage);
	return -1;
}

static int write_record(
	struct core *core, const char *name, const struct record_fields *fields, struct error *err)
{
	auto_buf struct buf text = buf_empty(RECORD_MAX);
	char file[TEMPLATE_NAME_MAX + 16];
	str_format(file, sizeof file, "%s" SUFFIX, name);
	record_print_kept(&build_record, fields, &text);
	fault_point("core_template_record");
	return file_replace(core->state->template_dir, file, 0600,
		       (struct str){ text.data, text.len }, true) ||
			       fsync(core->state->template_dir)
		       ? fail_errno(err, "record the build of template '%s'", name)
		       : 0;
}

int template_build_make(struct core_workspace *w, const char *sha256, struct error *err)
{
	struct core *core = w->core;
	const char *name = w->model.template;
	const struct template_build *build = find_record(core, name, sha256);
	char layer[LAUNCH_FROZEN_LEN + 1], id[ID_LEN + 1];
	bool is_lost = build && layer_problem(core, build->layer);
	if (is_lost && layer_user(w, build->layer))
		build = NULL;
	/* In the place of a layer that was lost: workspaces that have it get it back. */
	if (build && is_lost) {
		if (write_layer(w, build->layer, err))
			return error_context(err, "build template '%s'", name);
	} else if (!build) {
		id_make(id);
		str_format(layer, sizeof layer, LAUNCH_FROZEN "%s", id);
		const struct record_fields fields = { sha256, layer, w->model.environments };
		int failed = write_layer(w, layer, err) || write_record(core, name, &fields, err);
		if (!failed)
			build = add_build(core, name, &fields);
		if (failed) {
			layers_sweep(core);
			return error_context(err, "build template '%s'", name);
		}
		journal_emit(&core->journal, "template.built", "", name, NULL);
	}
	w->model.layers = (text_list){ 0 };
	vec_push(&w->arena, &w->model.layers, arena_text(&w->arena, build->layer));
	w->model.base = w->model.layers.items[0];
	w->files = (pair_list){ 0 };
	return 0;
}

/* ---- made again ---- */

static const struct template_build *find_layer(const struct core *core, const char *layer)
{
	const struct template_build *build;
	for (size_t at = 0; (build = map_next(&core->state->template_builds, &at));)
		if (!strcmp(build->layer, layer))
			return build;
	return NULL;
}

/* The files of a project are those of the environment of Node that the template was built with. */
static bool has_environment_of(struct core_workspace *w, const struct template_build *build)
{
	const char *name = build->environments.of[ENV_KIND_NODE];
	const struct env_meta *meta;
	if (!name)
		return true;
	environments_keep(w);
	meta = environment_pinned(w, ENV_KIND_NODE);
	return meta && !strcmp(meta->name, name);
}

int template_build_restore(struct core_workspace *w, const char *layer, struct error *err)
{
	struct core *core = w->core;
	const struct template_build *build = find_layer(core, layer);
	auto_arena struct arena arena = { 0 };
	struct template_shown shown;
	if (!build)
		return fail(err, ERR_NOT_FOUND, "no template was built into it");
	if (template_find(core->home.dir, build->name, &arena, &shown, err))
		return -1;
	if (strcmp(shown.sha256, build->sha256))
		return fail(err, ERR_NOT_FOUND,
			"template '%s', which it was built of, has been changed since",
			build->name);
	if (!has_environment_of(w, build))
		return fail(err, ERR_NOT_FOUND, "it was built with Node environment '%s'",
			build->environments.of[ENV_KIND_NODE]);
	pair_list own = w->files;
	template_files(&shown.model, &arena, &w->files);
	int failed = write_layer(w, layer, err);
	w->files = own;
	return failed ? error_context(err, "build template '%s'", build->name) : 0;
}
