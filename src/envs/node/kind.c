/* Environments of Node that are there. */
#include <sys/stat.h>
#include "envs/node/internal.h"

static const char *const tool_names[] = { "bun", "node", "npm" };

static int check(const struct env_meta *meta, struct error *err)
{
	struct stat st;
	if (!meta->node || (stat(meta->node, &st) == 0 && S_ISREG(st.st_mode)))
		return 0;
	return fail_hint(err, ERR_NOT_FOUND, "install it again, or build with --node VERSION",
		"environment '%s' needs Node %s at '%s', which is missing", meta->name,
		meta->node_version, meta->node);
}

static int list_paths(const struct home *home, const struct env_meta *meta, struct arena *arena,
	env_paths *paths, struct error *err)
{
	for (size_t i = 0; i < meta->tools.count; i++) {
		const struct text_pair *tool = &meta->tools.items[i];
		size_t at = 0;
		while (at < sizeof tool_names / sizeof *tool_names &&
			strcmp(tool->key, tool_names[at]) != 0)
			at++;
		if (at == sizeof tool_names / sizeof *tool_names || !layer_id_is_valid(tool->value))
			return fail(err, ERR_CORRUPT, "environment '%s' has an unknown tool",
				meta->name);
		vec_push(arena, paths,
			(struct env_path){
				arena_printf(arena, "%s/layers/%s/tree", home->path, tool->value),
				"the tool",
				arena_printf(arena, NODE_TOOLS_TARGET "/%s", tool_names[at]) });
	}
	return 0;
}

/* Caches of clients belong to the sandbox's cache, not into the workspace. */
static const char *const variables[] = { "PATH=/env/bin:" NODE_AGAIN "/.bin:" NODE_TARGET
					 "/.bin:" NODE_TOOLS_TARGET "/node/bin:" NODE_TOOLS_TARGET
					 "/bun/bin:" NODE_TOOLS_TARGET
					 "/npm/bin:/usr/local/bin:/usr/bin:/bin",
	"npm_config_cache=/.cache/npm", "npm_config_update_notifier=false",
	"BUN_INSTALL_CACHE_DIR=/.cache/bun", NULL };
const struct env_kind env_node = { .row = &env_kind_rows[ENV_KIND_NODE],
	.target = NODE_TARGET,
	.again = NODE_AGAIN,
	.part = &workspace_parts[PART_NODE],
	.root_layer = LAYER_ROOT_NODE,
	.programs = ".bin",
	.variables = variables,
	.command = "node",
	.check = check,
	.list_paths = list_paths,
	.settle = node_upper_settle,
	.restore = node_upper_restore };
