#include "cli/workspaces/workspace_names.h"

#include "model/nouns/workspace.h"

const char *workspace_names_of(struct arena *arena, const struct json_value *workspace)
{
	const struct json_value *labels = json_member(workspace, "labels");
	const char *name =
		workspace_context_name(arena, json_member_text(labels, WORKSPACE_SERVICE_LABEL),
			json_member_text(labels, WORKSPACE_AGENT_LABEL),
			json_member_text(labels, WORKSPACE_CONTEXT_LABEL));
	return name ? name : json_member_text(workspace, "name");
}

static void note(void *ctx, const struct json_value *workspace)
{
	struct workspace_names *names = ctx;
	const char *id = json_member_text(workspace, "id");
	const char *name = workspace_names_of(names->arena, workspace);
	if (id && name)
		map_set(&names->by_id, str_from(arena_text(names->arena, id)),
			arena_text(names->arena, name));
}

int workspace_names_read(
	struct workspace_names *names, struct remote *remote, bool is_contexts, struct error *err)
{
	static const char contexts[] =
		"/v1/workspaces?label=" WORKSPACE_SERVICE_LABEL "=" WORKSPACE_AGENTS;
	struct error ignored;
	*names = (struct workspace_names){ .arena = remote->arena };
	map_init(&names->by_id, names->arena);
	if (remote_open(remote, err))
		return -1;
	/* A list without these names is better than none. */
	remote_each(remote, is_contexts ? contexts : "/v1/workspaces", note, names, &ignored);
	return 0;
}

const char *workspace_names_find(const struct workspace_names *names, const struct json_value *item,
	const char *key, const char *other)
{
	const char *id = json_member_text(item, key);
	const char *name = id && names->arena ? map_get(&names->by_id, str_from(id)) : NULL;
	return name ? name : other;
}
