/* Tools that aren't there: fetched from the registry in a sandbox, and published as layers. */
#include <fcntl.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "envs/node/internal.h"
#include "envs/python/interpreter.h"
#include "envs/python/scripts.h"
#include "envs/python/uv.h"

#define FETCH_TIMEOUT_MS 300000
#define FETCH_BYTES ((uint64_t)3 << 30)
#define FETCH_TRIES 4

static const char script_tool[] = {
#include "envs/node/tool.inc"
	0
};

/* Where a tool's package goes in its layer, what is taken of it, and which names lead into it. */
static const struct layout {
	const char *name, *directory;
	const char *members[3];
	struct {
		const char *name, *target;
	} links[2];
} layouts[] = {
	{ "bun", "/env/tree", { "bin" }, { { "bunx", "bun" } } },
	{ "node", "/env/tree", { "bin", "LICENSE" }, { { NULL, NULL } } },
	{ "npm", "/env/tree/lib/npm", { NULL },
		{ { "npm", "../lib/npm/bin/npm-cli.js" },
			{ "npx", "../lib/npm/bin/npx-cli.js" } } },
};

static const struct layout *layout_of(const struct node_tool *tool)
{
	size_t i = 0;
	while (strcmp(layouts[i].name, tool->name) != 0)
		i++;
	return &layouts[i];
}

/* Any Python of the host serves: the script needs nothing but its standard library. */
static int find_python(struct build_run *run, struct interpreter *python, struct error *err)
{
	const struct home *home = run->store->home;
	struct runner runner = run_runner(run);
	bool is_default;
	if (interpreter_choose(home, NULL, run->store->config.python, run->arena, python,
		    &is_default, err) == 0)
		return 0;
	if (err->code == ERR_UNAVAILABLE)
		return interpreter_look(home, &runner, python, run->arena, err);
	return error_context(err, "a Python of this host fetches the tools of Node");
}

static int run_script(struct build_run *run, const struct node_tool *tool, struct answer *answer,
	struct error *err)
{
	const struct layout *layout = layout_of(tool);
	const struct npm_registry *registry = &run->wanted->node->registry;
	struct arena *arena = run->arena;
	const char *args[8] = { tool->package, tool->asked, layout->directory };
	struct interpreter python;
	struct job job;
	struct runner runner = run_runner(run);
	for (size_t i = 0; i < sizeof layout->members / sizeof *layout->members; i++)
		args[3 + i] = layout->members[i];
	if (find_python(run, &python, err) < 0)
		return -1;
	script_job(&job, arena, &python, script_tool, false, args);
	job_set_env(&job, arena, "CARREL_REGISTRY", registry->url);
	job_set_env(&job, arena, "CARREL_REGISTRY_AUTH", registry->header ? registry->header : "");
	if (registry->certificates) {
		job_bind(&job, arena, registry->certificates, CERTIFICATES_INSIDE);
		job_set_env(&job, arena, "SSL_CERT_FILE", CERTIFICATES_INSIDE);
	}
	job.forward = true;
	job.stage = arena_printf(arena, "%s/" NODE_STAGE_ROOT, run->stage.path);
	job.timeout_ms = FETCH_TIMEOUT_MS;
	job.disk_bytes = FETCH_BYTES;
	return script_run(&runner, &job, arena, answer, err);
}

static int add_links(struct build_run *run, const struct layout *layout, struct error *err)
{
	auto_leave const struct home *home = home_entered(run->store->home);
	auto_close int bin = -1;
	if (path_make_directories(run->stage.fd, NODE_STAGE_ROOT "/tree/bin", 0755, &bin, err) < 0)
		return -1;
	for (size_t i = 0; i < 2 && layout->links[i].name; i++)
		if (symlinkat(layout->links[i].target, bin, layout->links[i].name) < 0 &&
			errno != EEXIST)
			return fail_errno(err, "link '%s'", layout->links[i].name);
	return 0;
}

static int publish(struct build_run *run, struct node_tool *tool, struct error *err)
{
	struct arena *arena = run->arena;
	struct layer_draft draft = { .path = NODE_STAGE_ROOT,
		.kind = "node-tool",
		.name = tool->name,
		.version = tool->version,
		.key = node_tool_key(tool, arena) };
	if (add_links(run, layout_of(tool), err) < 0)
		return -1;
	fault_point("node.tool");
	if (run->layers < 0 && layer_store_lock(&run->store->layers, false, &run->layers, err) < 0)
		return -1;
	if (layers_publish(&run->store->layers, run->stage.fd, &draft, 1, NULL, NULL, err) < 0)
		return error_context(err, "%s %s", tool->name, tool->version);
	tool->id = arena_text(arena, draft.id);
	node_remember_tool(run->store, run->wanted->node, tool, arena);
	return 0;
}

static int fetch(struct build_run *run, struct node_tool *tool, struct error *err)
{
	struct answer answer = { 0 };
	node_show(run, "fetching_tools");
	fd_close(&run->layers); /* who removes layers would wait as long */
	if (node_reach(run, err) < 0 || node_stage(run, err) < 0)
		return -1;
	if (run_script(run, tool, &answer, err) < 0) {
		bool is_plain = err->code == ERR_FAILED;
		const char *said = arena_text(run->arena, err->text);
		if (is_plain)
			node_explain(run, tool->name, str_from(said), err);
		return error_context(err, "fetch %s %s", tool->name, tool->asked);
	}
	tool->version = answer_get(&answer, "version");
	tool->integrity = answer_get(&answer, "integrity");
	if (!tool->version || !tool->integrity)
		return fail(err, ERR_CORRUPT, "the script that fetches %s said nothing of it",
			tool->name);
	buf_printf(&run->log, "fetched %s %s (%s@%s, %s)\n", tool->name, tool->version,
		tool->package, tool->version, tool->integrity);
	return publish(run, tool, err);
}

int node_fetch_tools(struct build_run *run, struct error *err)
{
	struct node_wanted *node = run->wanted->node;
	for (int tries = 0; tries < FETCH_TRIES; tries++) {
		/* Layers that are found stay while the lock is held. */
		if (run->layers < 0 &&
			layer_store_lock(&run->store->layers, false, &run->layers, err) < 0)
			return -1;
		if (node_recall_tools(run->store, node, run->arena))
			return 0;
		for (size_t i = 0; i < node->tool_count; i++)
			if (!node->tools[i].id && fetch(run, &node->tools[i], err) < 0)
				return -1;
	}
	return fail(err, ERR_CONFLICT, "tools of environment '%s' are removed while it is built",
		run->wanted->name);
}
