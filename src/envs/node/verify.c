/* An environment of Node looked into, and asked for again. */
#include <sys/stat.h>
#include "base/buf.h"
#include "envs/node/internal.h"
#include "envs/python/scripts.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define CHECK_MS 60000

static const char script_verify[] =
	"const fs = require('fs');\n"
	"console.log('version ' + process.versions.node);\n"
	"for (const name of process.argv.slice(1))\n"
	"  if (!fs.existsSync('" NODE_TARGET "/' + name + '/package.json'))\n"
	"    console.log('missing ' + name);\n";

const char *node_name_layer(const struct env_store *store, const struct env_meta *meta,
	size_t index, struct arena *arena)
{
	size_t own = meta->layers.count;
	return index < own ? "node_modules" : meta->tools.items[index - own].key;
}

static int read_specs(const struct env_store *store, const struct env_meta *meta,
	struct arena *arena, node_specs *specs, struct error *err)
{
	struct str text, kept;
	const char *package;
	if (env_read_text(store, meta->name, "requirements.txt", arena, &text, err) < 0)
		return -1;
	return text.len ? package_json_read(text, arena, specs, &kept, &package, err) : 0;
}

/* By the environment's own Node: it runs, and the packages that were asked for are there. */
static int verify_node(const struct builder *builder, const struct env_meta *meta,
	struct arena *arena, env_findings *findings, struct error *err)
{
	struct job job = { .environment = meta, .timeout_ms = CHECK_MS };
	struct answer answer = { 0 };
	text_list argv = { 0 };
	node_specs specs = { 0 };
	if (read_specs(builder->store, meta, arena, &specs, err) < 0) {
		finding_add(arena, findings, NULL, NULL, "requirements.txt", err->text);
		return 0;
	}
	/* By its path: a package may have a program of that name. */
	vec_push(arena, &argv, meta->node ? meta->node : NODE_TOOLS_TARGET "/node/bin/node");
	vec_push(arena, &argv, "-e");
	vec_push(arena, &argv, script_verify);
	vec_push(arena, &argv, "--");
	for (size_t i = 0; i < specs.count; i++)
		vec_push(arena, &argv, specs.items[i].name);
	vec_push(arena, &argv, NULL);
	job.argv = argv.items;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	if (job_run(builder->runner, &job, &out, err) < 0) {
		/* The sandbox itself failed, or Node did in it: only that is a finding. */
		if (err->code != ERR_FAILED)
			return -1;
		finding_add(arena, findings, NULL, NULL, "node", err->text);
		return 0;
	}
	if (answer_parse(buf_str(&out), arena, &answer, err) < 0)
		return -1;
	for (size_t i = 0; i < answer.lines.count; i++)
		if (strcmp(answer.lines.items[i].key, "missing") == 0)
			finding_add(arena, findings, NULL,
				arena_text(arena, answer.lines.items[i].value), "",
				"it is not in node_modules");
	return 0;
}

int node_verify(const struct builder *builder, const struct env_meta *meta, struct arena *arena,
	env_findings *findings, struct error *err)
{
	struct stat st;
	if (meta->node && (stat(meta->node, &st) < 0 || !S_ISREG(st.st_mode)))
		finding_add(arena, findings, NULL, NULL, meta->node, "the interpreter is missing");
	/* Don't run a damaged environment: it could do anything, and the damage is already found.
	 */
	if (findings->count > 0)
		return 0;
	if (builder->progress && builder->progress->show)
		builder->progress->show(builder->progress->ctx, "running_node", 0, 0, 0);
	return verify_node(builder, meta, arena, findings, err);
}

int node_ask_again(const struct builder *builder, const struct env_meta *old, struct arena *arena,
	struct env_request *request, struct env_wanted *wanted, struct error *err)
{
	const struct env_store *store = builder->store;
	struct build_problem problem;
	struct str json, lock;
	const char *name = old->name;
	if (env_read_text(store, name, "requirements.txt", arena, &json, err) < 0 ||
		env_read_text(store, name, "lock.txt", arena, &lock, err) < 0)
		return -1;
	*request = (struct env_request){ .package_id = old->package_id,
		.rebuild = true,
		.node = { .json_text = json,
			.lock_text = lock,
			.runtime = old->runtime,
			/* One that was a layer is so again; that of the host may be newer now. */
			.version = old->node ? NULL : old->node_version,
			.registry = old->indexes.count ? old->indexes.items[0] : NULL,
			.allow_scripts = old->allow_scripts } };
	if (node_prepare(store, request, arena, wanted, &problem, err) < 0)
		return -1;
	wanted->name = name;
	wanted->requirements_sha256 = old->requirements_sha256;
	return 0;
}
