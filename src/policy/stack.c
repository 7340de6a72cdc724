#include "policy/stack.h"

static int add_policy(struct policy_stack *stack, const struct policy_layer *layer,
	const text_list *rules, enum policy_decision otherwise, const struct policy_places *places,
	struct arena *arena, struct error *err)
{
	struct sources *sources = &stack->sources[stack->count];
	struct policy *policy = &stack->policies[stack->count];
	stack->owners[stack->count++] = layer->owner;
	policy_init(policy, arena);
	policy_set_default(
		policy, layer->settings || layer->holds_empty ? otherwise : POLICY_ALLOW);
	if (layer->sources &&
		sources_parse(NULL, str_from(layer->sources), arena, sources, err) < 0)
		return error_context(err, "sources: %s", layer->name);
	if (layer->settings &&
		policy_add_settings(policy, str_from(layer->settings), places, err) < 0)
		return error_context(err, "%s", layer->name);
	for (size_t i = 0; i < rules->count; i++)
		if (policy_add_rule(policy, POLICY_ALLOW, rules->items[i], places, err) < 0)
			return error_context(err, "rule '%s'", rules->items[i]);
	return 0;
}

int policy_stack_build(struct policy_stack *stack, const struct policy_layer *layers, size_t count,
	const text_list *rules, enum policy_decision otherwise, const struct policy_places *places,
	struct arena *arena, struct error *err)
{
	struct error why;
	*stack = (struct policy_stack){ 0 };
	for (size_t i = 0; i < count; i++) {
		if (!layers[i].settings && !layers[i].sources && !layers[i].holds_empty)
			continue;
		if (add_policy(stack, &layers[i], rules, otherwise, places, arena, &why) < 0) {
			stack->failure = arena_text(arena, why.text);
			if (err)
				*err = why;
			return -1;
		}
	}
	return 0;
}

/* A subject is shown to people: of a long one its beginning is enough. */
#define SUBJECT_MAX 1024

static const char *keep(struct arena *arena, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	if (len <= SUBJECT_MAX)
		return arena_text(arena, text);
	len = str_utf8_prefix(text, SUBJECT_MAX);
	return arena_printf(arena, "%.*s…", (int)len, text);
}

/* A judgement's own memory goes with it: the trail is what stays. */
static void keep_verdict(
	struct arena *arena, const struct policy_verdict *from, struct policy_verdict *to)
{
	*to = (struct policy_verdict){ .decision = from->decision };
	for (size_t i = 0; i < from->trail.count; i++) {
		struct policy_step step = from->trail.items[i];
		step.subject = keep(arena, step.subject);
		step.reason = keep(arena, step.reason);
		step.within = keep(arena, step.within);
		step.suggestion = arena_text(arena, step.suggestion);
		vec_push(arena, &to->trail, step);
	}
}

static void deny(struct policy_verdict *verdict, struct arena *arena, const char *subject,
	const char *reason)
{
	*verdict = (struct policy_verdict){ .decision = POLICY_DENY };
	vec_push(arena, &verdict->trail,
		(struct policy_step){
			.subject = subject, .reason = reason, .decision = POLICY_DENY });
}

static bool is_too_long(const text_list *argv)
{
	size_t bytes = 0;
	for (size_t i = 0; i < argv->count && bytes <= POLICY_ARGV_BYTES_MAX; i++)
		bytes += strlen(argv->items[i]) + 1;
	return argv->count > POLICY_ARGV_MAX || bytes > POLICY_ARGV_BYTES_MAX;
}

static void put(const struct policy *policy, const struct policy_question *question,
	const struct policy_request *request, struct policy_verdict *verdict)
{
	struct policy_verdict more = { .decision = POLICY_ALLOW };
	*verdict = more;
	if (question->path)
		(question->is_tree ? policy_judge_tree : policy_judge_file)(
			policy, request, question->operation, question->path, verdict);
	else if (question->script)
		policy_judge_script(policy, request, str_from(question->script), verdict);
	else if (question->argv)
		policy_judge_argv(policy, request, question->argv, verdict);
	if (question->env)
		policy_judge_variables(policy, request, question->env, &more);
	for (size_t i = 0; i < more.trail.count; i++)
		vec_push(request->arena, &verdict->trail, more.trail.items[i]);
	if (more.decision > verdict->decision)
		verdict->decision = more.decision;
}

void policy_stack_judge(const struct policy_stack *stack, const struct policy_question *question,
	struct arena *arena, struct policy_verdict *verdict)
{
	struct policy_work work = { POLICY_WORK_MAX };
	/* A script is what /bin/sh gets. */
	struct policy_request request = { .dialect = SHELL_SH,
		.cwd = question->cwd,
		.home = question->home,
		.has_terminal = question->has_terminal,
		.inputs = question->inputs,
		.work = question->work ? question->work : &work };
	*verdict = (struct policy_verdict){ .decision = POLICY_ALLOW };
	if (stack->failure) {
		deny(verdict, arena, "", stack->failure);
		return;
	}
	if (stack->count && question->argv && is_too_long(question->argv)) {
		deny(verdict, arena, "",
			arena_printf(arena, "more than %d KiB or %d words can't be judged",
				POLICY_ARGV_BYTES_MAX >> 10, POLICY_ARGV_MAX));
		return;
	}
	for (size_t i = 0; i < stack->count; i++) {
		const struct policy *policy = &stack->policies[i];
		auto_arena struct arena used = { 0 };
		struct policy_verdict one;
		if (question->path && !policy->has_file_rules)
			continue;
		request.arena = &used;
		request.sources = &stack->sources[i];
		put(policy, question, &request, &one);
		/* Of policies that decide alike, the trail of the first one is told. */
		if (!verdict->trail.count || one.decision > verdict->decision)
			keep_verdict(arena, &one, verdict);
	}
}

static int check_packages(const struct sources *sources, const char *program,
	const text_list *names, uint64_t size_bytes, struct error *err)
{
	if (sources_check_manager(sources, program, err) < 0)
		return -1;
	for (size_t i = 0; i < names->count; i++)
		if (sources_check_package(sources, program, names->items[i], err) < 0)
			return -1;
	const struct sources_manager *manager = sources_find_manager(sources, program);
	if (manager && manager->max_install_bytes && size_bytes > manager->max_install_bytes)
		return fail(err, ERR_POLICY,
			"the packages have %llu MB; package_managers.%s.max_install_size_mb is "
			"%llu",
			(unsigned long long)(size_bytes >> 20), manager->name,
			(unsigned long long)(manager->max_install_bytes >> 20));
	return 0;
}

int policy_stack_check_packages(const struct policy_stack *stack, const char *program,
	const text_list *names, uint64_t size_bytes, struct error *err)
{
	if (stack->failure)
		return fail(err, ERR_POLICY, "%s", stack->failure);
	for (size_t i = 0; i < stack->count; i++)
		if (check_packages(&stack->sources[i], program, names, size_bytes, err) < 0) {
			if (err)
				err->code = ERR_POLICY;
			return -1;
		}
	return 0;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

uint64_t policy_stack_limit_memory(const struct policy_stack *stack, uint64_t value)
{
	for (size_t i = 0; i < stack->count; i++)
		value = least_of(value, stack->sources[i].max_memory_bytes);
	return value;
}

uint64_t policy_stack_limit_time(const struct policy_stack *stack, uint64_t value_ms)
{
	for (size_t i = 0; i < stack->count; i++)
		value_ms = least_of(value_ms, stack->sources[i].max_execution_ms);
	return value_ms;
}

const struct policy_step *policy_deciding_step(const struct policy_verdict *verdict)
{
	for (size_t i = 0; i < verdict->trail.count; i++)
		if (verdict->trail.items[i].decision == verdict->decision)
			return &verdict->trail.items[i];
	return NULL;
}

const char *policy_explain(const struct policy_verdict *verdict, struct arena *arena)
{
	const struct policy_step *step = policy_deciding_step(verdict);
	if (!step)
		return "no rule allows it";
	const char *why = step->rule	 ? arena_printf(arena, "rule '%.200s'", step->rule)
			  : step->reason ? step->reason
					 : "no rule allows it";
	return step->subject[0] ? arena_printf(arena, "%.200s: %s", step->subject, why) : why;
}
