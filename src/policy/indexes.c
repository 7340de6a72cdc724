/* The package indexes that policies leave to builds and to sandboxes. */
#include "policy/sources_internal.h"
#include "policy/stack.h"

/* Of two lists, the addresses that both allow: the deeper one where one is below the other. */
static text_list intersect(
	struct arena *arena, const text_list *urls, const struct sources_manager *manager)
{
	text_list both = { 0 };
	for (size_t i = 0; i < urls->count; i++)
		for (size_t k = 0; k < manager->registries.count; k++) {
			const char *one = urls->items[i], *other = manager->registries.items[k].url;
			if (sources_url_is_beneath(one, other))
				vec_push(arena, &both, one);
			else if (sources_url_is_beneath(other, one))
				vec_push(arena, &both, other);
		}
	return both;
}

int policy_stack_indexes(const struct policy_stack *stack, const char *program, struct arena *arena,
	text_list *urls, bool *is_bound, struct error *err)
{
	*urls = (text_list){ 0 };
	*is_bound = false;
	if (stack->failure)
		return fail(err, ERR_POLICY, "%s", stack->failure);
	for (size_t i = 0; i < stack->count; i++) {
		const struct sources *sources = &stack->sources[i];
		const struct sources_manager *manager = sources_find_manager(sources, program);
		if (sources_check_manager(sources, program, err) < 0) {
			err->code = ERR_POLICY;
			return error_context(err, "sources of %s", stack->owners[i]);
		}
		if (!manager || !manager->has_registries)
			continue;
		if (*is_bound)
			*urls = intersect(arena, urls, manager);
		for (size_t k = 0; !*is_bound && k < manager->registries.count; k++)
			vec_push(arena, urls, manager->registries.items[k].url);
		*is_bound = true;
	}
	if (*is_bound && !urls->count)
		return fail(
			err, ERR_POLICY, "package_managers.%s.registries leaves no index", program);
	return 0;
}

/* ---- what sandboxes reach ---- */

static bool is_allowed(const struct policy_stack *stack, const char *program, const char *url)
{
	struct error ignored;
	for (size_t i = 0; i < stack->count; i++)
		if (sources_check_registry(&stack->sources[i], program, url, &ignored) < 0)
			return false;
	return !stack->failure;
}

/* "host:port" of an address, as envs/registries.h writes it. */
static const char *host_of(struct arena *arena, const char *text)
{
	struct url url;
	if (!url_parse(arena, text, &url))
		return "";
	unsigned port = url.port ? url.port : strcmp(url.scheme, "http") == 0 ? 80 : 443;
	return arena_printf(arena, "%s:%u", url.host, port);
}

static bool has_text(const text_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i], text) == 0)
			return true;
	return false;
}

/* The manager that a variable names an index to; NULL: it names none. */
static const char *manager_of(const char *variable)
{
	static const struct {
		const char *name, *program;
	} names[] = { { "PIP_INDEX_URL=", "pip" }, { "PIP_EXTRA_INDEX_URL=", "pip" },
		{ "UV_DEFAULT_INDEX=", "uv" }, { "UV_INDEX=", "uv" },
		{ "npm_config_registry=", "npm" }, { "BUN_CONFIG_REGISTRY=", "bun" } };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(variable, names[i].name, strlen(names[i].name)) == 0)
			return names[i].program;
	return NULL;
}

struct policy_registries policy_stack_registries(const struct policy_stack *stack,
	const struct policy_registries *found, struct arena *arena)
{
	struct policy_registries left = { 0 };
	bool has_python = false;
	for (size_t i = 0; i < found->variables.count; i++) {
		const char *variable = found->variables.items[i], *program = manager_of(variable);
		struct str rest = str_from(variable + strcspn(variable, "=") + 1), one;
		const char *value = "";
		if (!program) {
			vec_push(arena, &left.variables, variable);
			continue;
		}
		while (str_next(&rest, ' ', &one)) {
			const char *url = arena_bytes(arena, one.data, one.len);
			const char *host = host_of(arena, url);
			if (!is_allowed(stack, program, url))
				continue;
			value = arena_printf(arena, "%s%s%s", value, value[0] ? " " : "", url);
			has_python |= manager_is_python(program);
			if (has_text(&found->indexes, host) && !has_text(&left.indexes, host))
				vec_push(arena, &left.indexes, host);
		}
		if (value[0])
			vec_push(arena, &left.variables,
				(const char *)arena_printf(arena, "%.*s=%s",
					(int)strcspn(variable, "="), variable, value));
	}
	/* Only indexes of Python keep their files elsewhere. */
	if (has_python)
		left.hosts = found->hosts;
	return left;
}
