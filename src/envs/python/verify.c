/* An environment of Python looked into, and asked for again. */
#include <sys/stat.h>

#include "base/buf.h"
#include "envs/python/internal.h"
#include "envs/python/download.h"
#include "envs/python/scripts.h"
#include "envs/python/uv.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define CHECK_MS 60000

static const char script_verify[] = {
#include "envs/python/verify.inc"
	0
};

/* Layers are listed in the order of the lock (see compose_layers), unless some were merged. */
static const char *name_layer(const struct env_store *store, const struct env_meta *meta,
	size_t index, struct arena *arena)
{
	struct manifest manifest = { 0 };
	lock_list packages = { 0 };
	struct error ignored;
	struct str lock;
	if (index >= meta->layers.count)
		return meta->tools.items[index - meta->layers.count].key;
	if (layer_read(&store->layers, meta->layers.items[index], arena, &manifest, &ignored) == 0)
		return manifest.name;
	if (meta->layers.count < meta->packages.count ||
		env_read_text(store, meta->name, "lock.txt", arena, &lock, &ignored) < 0 ||
		lock_parse(lock, arena, &packages, &ignored) < 0)
		return NULL;
	return index < packages.count ? packages.items[index].name : NULL;
}

/* By the environment's own Python: it is one, and its packages are found. */
static int verify_python(const struct builder *builder, const struct env_meta *meta,
	struct arena *arena, env_findings *findings, struct error *err)
{
	struct job job = { .environment = meta, .timeout_ms = CHECK_MS };
	struct answer answer = { 0 };
	text_list argv = { 0 };
	const char *prefix;
	vec_push(arena, &argv, ENV_PYTHON);
	vec_push(arena, &argv, "-IS");
	vec_push(arena, &argv, "-c");
	vec_push(arena, &argv, script_verify);
	for (size_t i = 0; i < meta->packages.count; i++)
		vec_push(arena, &argv,
			arena_printf(arena, "%s==%s", meta->packages.items[i].key,
				meta->packages.items[i].value));
	vec_push(arena, &argv, NULL);
	job.argv = argv.items;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	if (job_run(builder->runner, &job, &out, err) < 0) {
		/* The sandbox itself failed, or Python did in it: only that is a finding. */
		if (err->code != ERR_FAILED)
			return -1;
		finding_add(arena, findings, NULL, NULL, meta->python, err->text);
		return 0;
	}
	if (answer_parse(buf_str(&out), arena, &answer, err) < 0)
		return -1;
	prefix = answer_get(&answer, "prefix");
	if (!prefix || strcmp(prefix, ENV_INSIDE) != 0)
		finding_add(arena, findings, NULL, NULL, "bin/python3",
			arena_printf(arena, "sys.prefix is '%s'", prefix ? prefix : ""));
	for (size_t i = 0; i < answer.lines.count; i++) {
		if (strcmp(answer.lines.items[i].key, "missing") == 0)
			finding_add(arena, findings, NULL,
				arena_text(arena, answer.lines.items[i].value), "",
				"Python doesn't find its metadata");
	}
	return 0;
}

static int verify(const struct builder *builder, const struct env_meta *meta, struct arena *arena,
	env_findings *findings, struct error *err)
{
	struct stat st;
	if (stat(meta->python, &st) < 0 || !S_ISREG(st.st_mode))
		finding_add(
			arena, findings, NULL, NULL, meta->python, "the interpreter is missing");
	/* Don't run a damaged environment: it could do anything, and the damage is already found.
	 */
	if (findings->count > 0)
		return 0;
	if (builder->progress && builder->progress->show)
		builder->progress->show(builder->progress->ctx, "running_python", 0, 0, 0);
	return verify_python(builder, meta, arena, findings, err);
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
static int look_for_python(const struct builder *builder, const struct env_meta *meta,
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

/* One that was downloaded is downloaded again. */
static int find_python(const struct builder *builder, const struct env_meta *meta,
	struct arena *arena, struct env_wanted *wanted, struct error *err)
{
	struct uv uv;
	if (look_for_python(builder, meta, arena, wanted, err) == 0)
		return 0;
	if (err->code != ERR_NOT_FOUND || meta->tools.count == 0)
		return -1;
	if (uv_find_here(builder->store->home, builder->runner, arena, &uv, err) < 0 ||
		interpreter_install(
			builder, &uv, &wanted->indexes, meta->python_version, arena, err) < 0)
		return -1;
	return look_for_python(builder, meta, arena, wanted, err);
}

static int ask_again(const struct builder *builder, const struct env_meta *old, struct arena *arena,
	struct env_request *request, struct env_wanted *wanted, struct error *err)
{
	const struct env_store *store = builder->store;
	struct str lock;
	lock_list packages;
	*request = (struct env_request){ .package_id = old->package_id,
		.system_site_packages = old->system_site_packages,
		.rebuild = true };
	for (size_t i = 0; i < old->editables.count; i++) {
		const char *path = old->editables.items[i];
		if (!home_is_vouched(store->home, path))
			return fail(err, ERR_DENIED, "root has not approved '%s' with --editable",
				path);
		vec_push(arena, &request->editables, path);
	}
	*wanted = (struct env_wanted){ .request = request,
		.name = old->name,
		.requirements_sha256 = old->requirements_sha256,
		.has_notes = old->has_notes };
	if (env_read_text(store, old->name, "requirements.txt", arena, &wanted->text, err) < 0 ||
		env_read_text(store, old->name, "lock.txt", arena, &lock, err) < 0 ||
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

const struct env_maker env_python_maker = { python_complete, python_make, name_layer, verify,
	ask_again };
