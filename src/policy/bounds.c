/* What policies let be reached at most, as bounds of lists of hosts. */
#include "policy/sources_internal.h"
#include "policy/stack.h"

static bool has_star(const text_list *domains)
{
	for (size_t i = 0; i < domains->count; i++)
		if (!strcmp(domains->items[i], "*"))
			return true;
	return false;
}

static void bound_web(const struct sources *sources, const char *owner, struct arena *arena,
	network_bounds *bounds)
{
	struct network_bound bound = { .has_allow = true };
	if (!sources->has_web)
		return;
	bound.by = arena_printf(arena, "sources of %s: web_access", owner);
	if (sources->web_is_enabled) {
		bound.has_allow = !has_star(&sources->allowed_domains);
		if (bound.has_allow)
			bound.allow = sources->allowed_domains;
		bound.deny = sources->blocked_domains;
	}
	vec_push(arena, bounds, bound);
}

/* An IPv6 address has brackets where a port follows. */
static const char *entry_of(struct arena *arena, const char *host, unsigned port)
{
	if (!port)
		return host;
	return arena_printf(arena, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

static void add_allowed(
	const struct policy_rule *rule, struct arena *arena, struct network_bound *bound)
{
	if (rule->port || rule->is_any_port) {
		vec_push(arena, &bound->allow, entry_of(arena, rule->host, rule->port));
		return;
	}
	vec_push(arena, &bound->allow, entry_of(arena, rule->host, 80));
	vec_push(arena, &bound->allow, entry_of(arena, rule->host, 443));
}

static void bound_rules(
	const struct policy *policy, const char *owner, struct arena *arena, network_bounds *bounds)
{
	struct network_bound bound = { .has_allow = policy->denies_asks ||
						    policy->otherwise.network == POLICY_DENY };
	for (size_t i = 0; i < policy->rules.count; i++) {
		const struct policy_rule *rule = &policy->rules.items[i];
		if (rule->kind != POLICY_NETWORK)
			continue;
		if (rule->decision != POLICY_ALLOW)
			vec_push(arena, &bound.deny, entry_of(arena, rule->host, rule->port));
		else if (bound.has_allow)
			add_allowed(rule, arena, &bound);
	}
	if (!bound.has_allow && !bound.deny.count)
		return;
	bound.by = arena_printf(arena, "settings of %s: network rules", owner);
	vec_push(arena, bounds, bound);
}

void policy_stack_bounds(
	const struct policy_stack *stack, struct arena *arena, network_bounds *bounds)
{
	*bounds = (network_bounds){ 0 };
	if (stack->failure) {
		const struct network_bound closed = { .by = stack->failure, .has_allow = true };
		vec_push(arena, bounds, closed);
		return;
	}
	for (size_t i = 0; i < stack->count; i++) {
		bound_web(&stack->sources[i], stack->owners[i], arena, bounds);
		bound_rules(&stack->policies[i], stack->owners[i], arena, bounds);
	}
}

static void meter_remotes(
	const struct sources *sources, struct arena *arena, struct network_meter *meter)
{
	bool is_any = !sources->has_remotes;
	for (size_t i = 0; i < sources->allowed_remotes.count; i++) {
		const char *remote = sources->allowed_remotes.items[i];
		struct url url;
		if (url_parse(arena, remote, &url))
			vec_push(arena, &meter->of, url.host);
		else
			is_any = true;
	}
	if (is_any)
		vec_push(arena, &meter->of, "*");
}

void policy_stack_meter(const struct policy_stack *stack,
	const struct policy_registries *registries, struct arena *arena,
	struct network_meter *meter)
{
	*meter = (struct network_meter){ 0 };
	for (size_t i = 0; i < stack->count; i++) {
		const struct sources *sources = &stack->sources[i];
		if (!sources->has_git || !sources->max_clone_bytes)
			continue;
		if (!meter->bytes || sources->max_clone_bytes < meter->bytes)
			meter->bytes = sources->max_clone_bytes;
		meter_remotes(sources, arena, meter);
	}
	for (size_t i = 0; i < registries->indexes.count; i++)
		vec_push(arena, &meter->but, registries->indexes.items[i]);
	for (size_t i = 0; i < registries->hosts.count; i++)
		vec_push(arena, &meter->but, registries->hosts.items[i]);
}

void policy_stack_domains(const struct policy_stack *stack, struct arena *arena, text_list *domains)
{
	*domains = (text_list){ 0 };
	for (size_t i = 0; i < stack->count && !stack->failure; i++)
		if (stack->sources[i].web_is_enabled)
			for (size_t k = 0; k < stack->sources[i].allowed_domains.count; k++)
				vec_push(
					arena, domains, stack->sources[i].allowed_domains.items[k]);
}
