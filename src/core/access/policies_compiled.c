#include "core/access/policies_compiled.h"

#include "core/access/policies.h"
#include "sandbox/plan/plan.h"

/* ---- compiling ---- */

/* The value of ${CONTEXT_ID}; none if the id contains a pattern or "..". */
static const char *context_of(const struct workspace *model)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	const char *given = model->owner.context_id;
	const char *context = given ? given : model->name ? model->name : "context";
	return strspn(context, allowed) == strlen(context) && !strstr(context, "..") &&
			       strcmp(context, ".") != 0
		       ? context
		       : NULL;
}

int policies_compile(const struct core *core, const struct workspace *model,
	struct policy_stack *stack, struct arena *arena, struct error *err)
{
	const char *top = plan_view_path(model->view);
	const struct policy_places places = { top, context_of(model), top };
	const struct policy_layer layers[POLICY_STACK_MAX] = {
		{ "the operator's policy", core->access->policy.settings,
			core->access->policy.sources, core->access->policy.has_default,
			"the operator" },
		{ "settings of the template", model->policy.template_settings,
			model->policy.template_sources, false, "the template" },
		{ "settings", model->policy.settings, model->policy.sources, false,
			"the workspace" },
	};
	return policy_stack_build(stack, layers, POLICY_STACK_MAX, &model->policy.rules,
		core->access->policy.otherwise, &places, arena, err);
}

/* Of texts of its own: others may have the policies longer than this workspace. */
static void compile(struct core_policies *policies, const struct core *core, struct workspace model)
{
	model.policy = workspace_copy_policy(&policies->arena, &model.policy);
	model.name = arena_text(&policies->arena, model.name);
	model.owner.context_id = arena_text(&policies->arena, model.owner.context_id);
	policies_compile(core, &model, &policies->stack, &policies->arena, NULL);
}

/* Of a workspace that asked for no network: what its sources let it reach. */
static void bound_network(const struct workspace *model, const struct policy_stack *stack,
	struct arena *arena, struct workspace_network *network)
{
	auto_arena struct arena own = { 0 };
	network_bounds bounds;
	policy_stack_bounds(stack, &own, &bounds);
	workspace_copy_network(arena, &model->network, network);
	if (!network->mode) {
		text_list domains;
		policy_stack_domains(stack, &own, &domains);
		network->allow = text_list_copy(arena, &domains);
		network->mode =
			network_mode_name(network->allow.count ? NETWORK_LIST : NETWORK_NONE);
	}
	if (workspace_network_mode(network) == NETWORK_NONE)
		return;
	for (size_t i = 0; i < bounds.count; i++)
		vec_push(arena, &network->bounded_by,
			(const char *)arena_text(arena, bounds.items[i].by));
	if (network_bounds_close(&bounds)) {
		network->mode = network_mode_name(NETWORK_NONE);
		network->allow = network->deny = (text_list){ 0 };
	}
}

static void find_facts(struct core_policies *policies, const struct workspace *model)
{
	const struct policy_stack *stack = &policies->stack;
	policies->facts = (struct policies_facts){ .hold = stack->failure || stack->count,
		.memory_bytes = policy_stack_limit_memory(stack, 0),
		.time_ms = policy_stack_limit_time(stack, 0) };
	bound_network(model, stack, &policies->facts_arena, &policies->facts.network);
}

/* ---- what they are made of ---- */

static void add_text(struct sha256 *s, const char *text)
{
	uint64_t len = text ? strlen(text) : UINT64_MAX;
	sha256_add(s, &len, sizeof len);
	if (text)
		sha256_add(s, text, len);
}

static void add_texts(struct sha256 *s, const text_list *texts)
{
	uint64_t count = texts->count;
	sha256_add(s, &count, sizeof count);
	for (size_t i = 0; i < texts->count; i++)
		add_text(s, texts->items[i]);
}

/* Also in letters that JSON can write as \uXXXX. */
static bool may_name_context(const char *text)
{
	return text && (strstr(text, "CONTEXT_ID") || strstr(text, "\\u"));
}

static bool depends_on_context(const struct core *core, const struct workspace_policy *policy)
{
	bool found = may_name_context(core->access->policy.settings) ||
		     may_name_context(policy->template_settings) ||
		     may_name_context(policy->settings);
	for (size_t i = 0; !found && i < policy->rules.count; i++)
		found = may_name_context(policy->rules.items[i]);
	return found;
}

static void make_key(
	const struct core *core, const struct workspace *model, unsigned char key[SHA256_LEN])
{
	const struct workspace_policy *policy = &model->policy;
	const unsigned char view = model->view;
	struct sha256 s;
	sha256_init(&s);
	sha256_add(&s, &view, sizeof view);
	add_text(&s, depends_on_context(core, policy) ? context_of(model) : "");
	add_text(&s, policy->settings);
	add_text(&s, policy->sources);
	add_text(&s, policy->template_settings);
	add_text(&s, policy->template_sources);
	add_texts(&s, &policy->rules);
	add_text(&s, model->network.mode);
	add_texts(&s, &model->network.allow);
	add_texts(&s, &model->network.deny);
	sha256_end(&s, key);
}

/* ---- kept ---- */

static void drop_stack(struct core_policies *policies)
{
	last_use_remove(&policies->use);
	arena_done(&policies->arena);
	policies->stack = (struct policy_stack){ 0 };
}

static void on_surplus(struct loop *loop, void *ctx)
{
	struct compiled_policies *compiled = ctx;
	struct last_use *use;
	compiled->surplus = NULL;
	while ((use = last_use_surplus(&compiled->used)))
		drop_stack((struct core_policies *)use);
}

static void used(struct core *core, struct core_policies *policies)
{
	struct compiled_policies *compiled = &core->access->compiled;
	compiled->used.most = POLICIES_BYTES_MOST;
	last_use_put(&compiled->used, &policies->use, policies->arena.size);
	if (!compiled->surplus && last_use_surplus(&compiled->used))
		compiled->surplus = loop_after(core->loop, 0, on_surplus, compiled);
}

static struct core_policies *policies_of(struct core_workspace *w)
{
	struct map *by_key = &w->core->access->compiled.by_key;
	unsigned char key[SHA256_LEN];
	if (w->policies)
		return w->policies;
	make_key(w->core, &w->model, key);
	struct core_policies *policies = map_get(by_key, (struct str){ (char *)key, sizeof key });
	if (!policies) {
		policies = xzalloc(sizeof *policies);
		memcpy(policies->key, key, sizeof key);
		map_add(by_key, (struct str){ (char *)policies->key, sizeof key }, policies);
		compile(policies, w->core, w->model);
		find_facts(policies, &w->model);
		used(w->core, policies);
	}
	policies->users++;
	return w->policies = policies;
}

const struct policies_facts *policies_facts(struct core_workspace *w)
{
	return &policies_of(w)->facts;
}

const struct policy_stack *policies_stack(struct core_workspace *w)
{
	struct core_policies *policies = policies_of(w);
	if (!policies->use.list)
		compile(policies, w->core, w->model);
	used(w->core, policies);
	return &policies->stack;
}

void policies_forget(struct core_workspace *w)
{
	struct core_policies *policies = w->policies;
	w->policies = NULL;
	if (!policies || --policies->users)
		return;
	map_remove(&w->core->access->compiled.by_key,
		(struct str){ (char *)policies->key, sizeof policies->key });
	drop_stack(policies);
	arena_done(&policies->facts_arena);
	free(policies);
}

void policies_close(struct core *core)
{
	loop_cancel(core->loop, core->access->compiled.surplus);
	map_done(&core->access->compiled.by_key);
}
