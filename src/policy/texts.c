/* texts.c -- policies that records hold as texts are read once, to see that they can be. */
#include "model/nouns/workspace.h"
#include "policy/policy.h"
#include "policy/sources.h"

int workspace_check_settings(const char *json, struct error *err)
{
	/* Values of the variables that any workspace has. */
	static const struct policy_places places = { "/workspace", "context", "/workspace" };
	auto_arena struct arena arena = { 0 };
	struct policy policy;
	policy_init(&policy, &arena);
	return policy_add_settings(&policy, str_from(json), &places, err);
}

int workspace_check_sources(const char *json, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct sources sources;
	return sources_parse(NULL, str_from(json), &arena, &sources, err);
}
