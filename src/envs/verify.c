/* `env verify`: what is damaged, and built again. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "envs/build_parts.h"
#include "envs/scripts.h"
#include "plan/plan.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define FILE_MAX ((size_t)64 << 20)
#define CHECK_MS 60000

static const char script_verify[] = {
#include "envs/verify.inc"
	0
};

/* -- what is wrong -- */

static void find(struct arena *arena, env_findings *findings, const char *layer,
	const char *package, const char *path, const char *what)
{
	vec_push(arena, findings,
		(struct env_finding){
			layer, package, arena_text(arena, path), arena_text(arena, what) });
}

static int read_kept(const struct env_store *store, const char *name, const char *file,
	struct arena *arena, struct str *text, struct error *err)
{
	auto_buf struct buf all = buf_empty(FILE_MAX);
	*text = STR("");
	if (env_read_file(store, name, file, &all, err) < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	*text = (struct str){ arena_bytes(arena, all.data, all.len), all.len };
	return 0;
}

/* Layers are listed in the order of the lock (see compose_layers), unless some were merged. */
static const char *package_of_layer(const struct env_store *store, const struct env_meta *meta,
	size_t index, struct arena *arena)
{
	struct manifest manifest = { 0 };
	lock_list packages = { 0 };
	struct error ignored;
	struct str lock;

	if (layer_read(&store->layers, meta->layers.items[index], arena, &manifest, &ignored) == 0)
		return manifest.name;
	if (meta->layers.count < meta->packages.count ||
		read_kept(store, meta->name, "lock.txt", arena, &lock, &ignored) < 0 ||
		lock_parse(lock, arena, &packages, &ignored) < 0)
		return NULL;
	return index < packages.count ? packages.items[index].name : NULL;
}

static void show(const struct builder *builder, const char *phase, size_t done, size_t total)
{
	const struct env_progress *progress = builder->progress;

	if (progress && progress->show)
		progress->show(progress->ctx, phase, done, total, 0);
}

static int verify_layers(const struct builder *builder, const struct env_meta *meta,
	struct arena *arena, env_findings *findings, struct error *err)
{
	const struct env_store *store = builder->store;

	for (size_t i = 0; i < meta->layers.count; i++) {
		const char *id = meta->layers.items[i];
		layer_damages damages = { 0 };

		show(builder, "verifying", i, meta->layers.count);
		/* A signal that came before; later ones end the process while it only reads. */
		if (builder->runner->interrupted && *builder->runner->interrupted)
			return fail(err, ERR_CANCELED, "env verify was interrupted");

		if (layer_verify(&store->layers, id, arena, &damages, err) < 0) {
			if (err->code != ERR_NOT_FOUND && err->code != ERR_CORRUPT)
				return -1;
			find(arena, findings, id, package_of_layer(store, meta, i, arena), "",
				err->code == ERR_NOT_FOUND ? "missing" : err->text);
			continue;
		}
		for (size_t d = 0; d < damages.count; d++)
			find(arena, findings, id, package_of_layer(store, meta, i, arena),
				damages.items[d].path, damages.items[d].what);
	}
	return 0;
}

/* By the environment's own Python: it is one, and its packages are found. */
static int verify_python(const struct builder *builder, const struct env_meta *meta,
	struct arena *arena, env_findings *findings, struct error *err)
{
	struct job job = { .environment = meta, .timeout_ms = CHECK_MS };
	struct answer answer = { 0 };
	VEC(char *) argv = { 0 };
	const char *prefix;

	vec_push(arena, &argv, arena_text(arena, ENV_PYTHON));
	vec_push(arena, &argv, arena_text(arena, "-IS"));
	vec_push(arena, &argv, arena_text(arena, "-c"));
	vec_push(arena, &argv, arena_text(arena, script_verify));
	for (size_t i = 0; i < meta->packages.count; i++)
		vec_push(arena, &argv,
			arena_printf(arena, "%s==%s", meta->packages.items[i].name,
				meta->packages.items[i].version));
	vec_push(arena, &argv, NULL);
	job.argv = argv.items;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	if (job_run(builder->runner, &job, &out, err) < 0) {
		/* The sandbox itself failed, or Python did in it: only that is a finding. */
		if (err->code != ERR_FAILED)
			return -1;
		find(arena, findings, NULL, NULL, meta->python, err->text);
		return 0;
	}
	if (answer_parse((struct str){ out.data, out.len }, arena, &answer, err) < 0)
		return -1;
	prefix = answer_get(&answer, "prefix");
	if (!prefix || strcmp(prefix, ENV_INSIDE) != 0)
		find(arena, findings, NULL, NULL, "bin/python3",
			arena_printf(arena, "sys.prefix is '%s'", prefix ? prefix : ""));
	for (size_t i = 0; i < answer.lines.count; i++) {
		if (strcmp(answer.lines.items[i].key, "missing") == 0)
			find(arena, findings, NULL, arena_text(arena, answer.lines.items[i].value),
				"", "Python doesn't find its metadata");
	}
	return 0;
}

int env_verify(const struct builder *builder, const char *name, struct arena *arena,
	env_findings *findings, struct error *err)
{
	const struct env_store *store = builder->store;
	struct env_meta meta;
	struct stat st;

	if (env_read(store, name, arena, &meta, err) < 0) {
		if (err->code != ERR_CORRUPT)
			return -1;
		find(arena, findings, NULL, NULL, "", err->text);
		return 0;
	}
	if (verify_layers(builder, &meta, arena, findings, err) < 0)
		return -1;
	if (meta.layers.count > PLAN_LOWERS_MAX)
		find(arena, findings, NULL, NULL, "",
			arena_printf(arena, "%zu layers, of which %d can be mounted",
				meta.layers.count, PLAN_LOWERS_MAX));
	if (stat(meta.python, &st) < 0 || !S_ISREG(st.st_mode))
		find(arena, findings, NULL, NULL, meta.python, "the interpreter is missing");
	/* What is damaged may do anything when it runs; what is said of it is clear already. */
	if (findings->count > 0)
		return 0;
	show(builder, "running_python", 0, 0);
	return verify_python(builder, &meta, arena, findings, err);
}

/* -- and made anew -- */

int findings_set_aside(
	const struct env_store *store, const env_findings *findings, struct error *err)
{
	auto_close int alone = -1;

	if (layer_store_lock(&store->layers, true, &alone, err) < 0)
		return -1;
	for (size_t i = 0; i < findings->count; i++) {
		const char *id = findings->items[i].layer;

		if (id && (i == 0 || findings->items[i - 1].layer != id) &&
			layer_quarantine(&store->layers, id, err) < 0 && err->code != ERR_NOT_FOUND)
			return -1;
	}
	return 0;
}

/* Where it came from; an address that had credentials is looked up in the configuration again. */
static int find_indexes(const struct env_store *store, const struct env_meta *meta,
	struct arena *arena, struct index_set *set, struct error *err)
{
	struct index_asked asked = { 0 };

	for (size_t i = 0; i < meta->indexes.count; i++) {
		if (strstr(meta->indexes.items[i], "***"))
			return index_find(&asked, &store->config, arena, set, err);
	}
	if (meta->indexes.count > 0)
		asked.index = meta->indexes.items[0];
	for (size_t i = 1; i < meta->indexes.count; i++)
		vec_push(arena, &asked.extra, meta->indexes.items[i]);
	return index_find(&asked, &store->config, arena, set, err);
}

/* The same Python, or one of the same version when that one is gone. */
static int find_python(const struct builder *builder, const struct env_meta *meta,
	struct arena *arena, struct env_wanted *wanted, struct error *err)
{
	const struct home *home = builder->store->home;
	const char *configured = builder->store->config.python;
	const char *names[] = { meta->python, meta->python_version };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int failed = interpreter_choose(home, names[i], configured, arena, &wanted->python,
			&wanted->python_is_default, err);

		if (failed && err->code == ERR_UNAVAILABLE)
			failed = interpreter_look(
				home, builder->runner, &wanted->python, arena, err);
		if (!failed)
			return 0;
	}
	return -1;
}

static int want_again(const struct builder *builder, const struct env_meta *old,
	struct arena *arena, struct env_request *request, struct env_wanted *wanted,
	struct error *err)
{
	const struct env_store *store = builder->store;
	struct str lock;
	lock_list packages;

	*request = (struct env_request){ .package_id = old->package_id,
		.system_site_packages = old->system_site_packages,
		.rebuild = true };
	for (size_t i = 0; i < old->editables.count; i++) {
		const char *path = old->editables.items[i].path;

		if (!home_is_vouched(store->home, path))
			return fail(err, ERR_DENIED, "root has not approved '%s' with --editable",
				path);
		vec_push(arena, &request->editables, path);
	}
	*wanted = (struct env_wanted){ .request = request,
		.name = old->name,
		.requirements_sha256 = old->requirements_sha256,
		.has_notes = old->has_notes };
	if (read_kept(store, old->name, "requirements.txt", arena, &wanted->text, err) < 0 ||
		read_kept(store, old->name, "lock.txt", arena, &lock, err) < 0 ||
		requirements_parse(wanted->text, arena, &wanted->requirements, err) < 0 ||
		find_indexes(store, old, arena, &wanted->indexes, err) < 0 ||
		find_python(builder, old, arena, wanted, err) < 0)
		return -1;
	wanted->python_is_known = true;
	/* What it has of sources it was allowed to. */
	if (wanted_look_at_projects(wanted, arena, err) < 0 ||
		lock_parse(lock, arena, &packages, err) < 0)
		return -1;
	wanted->is_locked = packages.count > 0;
	for (size_t i = 0; i < packages.count; i++)
		request->allow_build |= packages.items[i].is_built;
	wanted_complete(store, wanted, arena);
	if (strcmp(wanted->python.path, old->python) == 0)
		wanted->fingerprint = old->fingerprint;
	/* Its own lock: the same versions, whatever the index has today. */
	return lock.len > 0 ? lock_keep(store, wanted->lock_key, lock, err) : 0;
}

int env_repair(const struct builder *builder, const char *name, const env_findings *findings,
	struct arena *arena, struct env_meta *meta, struct build_problem *problem,
	struct error *err)
{
	struct env_request *request = arena_alloc(arena, sizeof *request);
	struct env_wanted *wanted = arena_alloc(arena, sizeof *wanted);
	struct env_meta old;
	bool was_there;

	if (env_read(builder->store, name, arena, &old, err) < 0) {
		if (err->code == ERR_CORRUPT)
			error_hint(err,
				"its requirements are lost: carrel env rm %s, and build it again",
				name);
		/* No build has failed: what the error says of itself is all. */
		*problem = (struct build_problem){ .failure = BUILD_FAILURE_COUNT };
		return -1;
	}
	if (findings_set_aside(builder->store, findings, err) < 0 ||
		want_again(builder, &old, arena, request, wanted, err) < 0)
		return build_failed_as(problem, err);
	return env_build(builder, wanted, arena, meta, &was_there, problem, err);
}
