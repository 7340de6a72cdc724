#include "core/access/policies.h"

#include "base/file.h"
#include "base/path.h"
#include "core/access/audit_records.h"
#include "core/access/policies_compiled.h"
#include "core/access/internal.h"
#include "core/workspaces/networks.h"
#include "model/agents/deployment.h"
#include "model/nouns/environment.h"
#include "sandbox/plan/plan.h"

/* ---- compiled ---- */

int policies_check(const struct core *core, const struct workspace *model, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct policy_stack stack;
	return policies_compile(core, model, &stack, &arena, err);
}

const struct workspace_network *policies_network(struct core_workspace *w)
{
	return &policies_facts(w)->network;
}

network_bounds policies_bounds(struct core_workspace *w, struct arena *arena)
{
	network_bounds bounds;
	policy_stack_bounds(policies_stack(w), arena, &bounds);
	return bounds;
}

bool policies_hold(struct core_workspace *w)
{
	return policies_facts(w)->hold;
}

/* ---- refusals ---- */

static void note_trail(const struct request *request, const struct policy_verdict *verdict)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	if (!request->note)
		return;
	policy_print_trail(&j, NULL, verdict);
	request->note->trail = arena_bytes(request->note->arena, text.data, text.len);
}

int policies_explain(
	const struct core_workspace *w, const struct policy_verdict *verdict, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	bool is_denied = verdict->decision == POLICY_DENY;
	fail(err, is_denied ? ERR_POLICY : ERR_APPROVAL_REQUIRED, "%s in workspace '%s': %s",
		is_denied ? "denied" : "approval is required", w->model.name,
		policy_explain(verdict, &arena));
	return error_hint(err,
		"carrel info %s -o json shows its settings; carrel policy explain -s FILE -- CMD "
		"shows which rule decides each part",
		w->model.name);
}

int policies_refuse(const struct request *request, const struct core_workspace *w,
	const struct policy_verdict *verdict, struct error *err)
{
	note_trail(request, verdict);
	policies_explain(w, verdict, err);
	audit_refusal(request, w, err);
	return -1;
}

/* ---- what is judged ---- */

static bool is_judged(const struct request *request, struct core_workspace *w)
{
	return request != &request_system && policies_hold(w);
}

static void judge_by(const struct policy_stack *stack, const struct core_workspace *w,
	struct policy_question *question, struct arena *arena, struct policy_verdict *verdict)
{
	question->home = plan_view_path(w->model.view);
	question->cwd = question->cwd ? path_normalize(arena, question->home, question->cwd)
				      : question->home;
	policy_stack_judge(stack, question, arena, verdict);
}

static void judge(struct core_workspace *w, struct policy_question *question, struct arena *arena,
	struct policy_verdict *verdict)
{
	judge_by(policies_stack(w), w, question, arena, verdict);
}

static bool is_set(const pair_list *env, const char *name)
{
	for (size_t i = 0; i < env->count; i++)
		if (!strcmp(env->items[i].key, name))
			return true;
	return false;
}

/* A variable of the workspace that a command with `env` gets besides. Those that Carrel sets itself
 * need no judgement. */
static bool is_to_be_judged(
	const struct core_workspace *w, const struct text_pair *variable, const pair_list *env)
{
	return !is_set(env, variable->key) && !deployment_sets_variable(&w->model, variable);
}

/* With all variables that the command gets, whatever has set them. */
static struct policy_question question_of(
	struct core_workspace *w, const struct exec_spec *spec, struct arena *arena)
{
	const pair_list *shared = &w->model.env;
	pair_list *env = arena_alloc(arena, sizeof *env);
	*env = pair_list_copy(arena, &spec->env);
	for (size_t i = 0; i < shared->count; i++)
		if (is_to_be_judged(w, &shared->items[i], &spec->env))
			vec_push(arena, env, shared->items[i]);
	return (struct policy_question){ .argv = &spec->argv,
		.script = spec->command,
		.has_terminal = spec->tty,
		.env = env,
		.cwd = spec->cwd };
}

void policies_keep_env(struct core_workspace *w, struct arena *arena, pair_list *env)
{
	/* A fork of an older version may have two of one name: the last one counts, as when it
	 * runs. */
	const pair_list shared = pair_list_copy(arena, &w->model.env), own = *env;
	for (size_t i = 0; i < shared.count; i++)
		if (is_to_be_judged(w, &shared.items[i], &own))
			vec_push(arena, env, shared.items[i]);
}

int policies_check_env(struct core_workspace *w, const pair_list *env, struct error *err)
{
	const pair_list *shared = &w->model.env;
	if (!policies_hold(w))
		return 0;
	for (size_t i = 0; i < shared->count; i++)
		if (is_to_be_judged(w, &shared->items[i], env))
			return fail(err, ERR_POLICY,
				"workspace '%s' has got the variable '%s' since the command was "
				"judged",
				w->model.name, shared->items[i].key);
	return 0;
}

int policies_judge_exec(const struct request *request, struct core_workspace *w,
	const struct exec_spec *spec, struct policy_inputs *inputs, struct policy_verdict *verdict,
	struct error *err)
{
	*verdict = (struct policy_verdict){ .decision = POLICY_ALLOW };
	if (!is_judged(request, w))
		return 0;
	policies_judge_inputs(w, spec, inputs, inputs->arena, verdict);
	note_trail(request, verdict); /* of a command that may run, too: it is recorded with it */
	return verdict->decision == POLICY_DENY ? policies_refuse(request, w, verdict, err) : 0;
}

void policies_judge_inputs(struct core_workspace *w, const struct exec_spec *spec,
	struct policy_inputs *inputs, struct arena *arena, struct policy_verdict *verdict)
{
	struct policy_question question = question_of(w, spec, arena);
	question.inputs = inputs;
	judge(w, &question, arena, verdict);
}

static void judge_with(struct core_workspace *w, struct policy_question *question,
	const text_list *rules, struct arena *arena, struct policy_verdict *verdict)
{
	struct workspace next = w->model;
	struct policy_stack *stack = arena_alloc(arena, sizeof *stack);
	next.policy.rules = text_list_copy(arena, &w->model.policy.rules);
	for (size_t i = 0; i < rules->count; i++)
		vec_push(arena, &next.policy.rules, rules->items[i]);
	policies_compile(w->core, &next, stack, arena, NULL); /* a failure denies */
	judge_by(stack, w, question, arena, verdict);
}

void policies_judge_with(struct core_workspace *w, const struct exec_spec *spec,
	const text_list *rules, struct arena *arena, struct policy_verdict *verdict)
{
	struct policy_question question = question_of(w, spec, arena);
	if (rules->count)
		judge_with(w, &question, rules, arena, verdict);
	else
		judge(w, &question, arena, verdict);
}

/* ---- learning ---- */

/* Each policy of the stack may have its own suggestions: those of the strictest one come first. */
static void learn_rules(struct core_workspace *w, struct policy_question *question,
	text_list *rules, struct arena *arena, struct policy_verdict *left)
{
	size_t known, rounds = 0;
	do {
		known = rules->count;
		policy_suggest(left, arena, rules);
		if (rules->count > known)
			judge_with(w, question, rules, arena, left);
	} while (rules->count > known && rules->count < WORKSPACE_RULES_MAX &&
		 left->decision != POLICY_ALLOW && ++rounds <= POLICY_STACK_MAX);
}

static void note_learned(const struct request *request, const struct policy_verdict *verdict,
	const struct policy_verdict *left, const text_list *rules)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	if (!request->note)
		return;
	json_object(&j, NULL);
	json_text(&j, "type", "learned");
	json_text(&j, "decision", policy_decision_name(verdict->decision));
	json_text(&j, "decision_with_rules", policy_decision_name(left->decision));
	json_texts(&j, "rules", rules);
	policy_print_trail(&j, "trail", verdict);
	json_end(&j);
	request->note->learned = arena_bytes(request->note->arena, text.data, text.len);
}

int policies_learn_exec(const struct request *request, struct core_workspace *w,
	const struct exec_spec *spec, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct policy_work work = { POLICY_WORK_MAX };
	struct policy_question question = question_of(w, spec, &arena);
	struct policy_verdict verdict, left;
	text_list rules = { 0 };
	question.work = &work;
	judge(w, &question, &arena, &verdict);
	left = verdict;
	learn_rules(w, &question, &rules, &arena, &left);
	/* A deny that rules could lift is a default's, and is gone now. */
	if (left.decision == POLICY_DENY)
		return policies_refuse(request, w, &left, err);
	note_trail(request, &verdict);
	note_learned(request, &verdict, &left, &rules);
	return 0;
}

/* ---- files, variables ---- */

static int judge_now(const struct request *request, struct core_workspace *w,
	struct policy_question *question, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct policy_verdict verdict;
	if (!is_judged(request, w))
		return 0;
	judge(w, question, &arena, &verdict);
	return verdict.decision == POLICY_ALLOW ? 0 : policies_refuse(request, w, &verdict, err);
}

int policies_judge_file(const struct request *request, struct core_workspace *w,
	enum policy_operation operation, const char *path, bool is_tree, struct error *err)
{
	struct policy_question question = {
		.operation = operation, .path = path, .is_tree = is_tree
	};
	return judge_now(request, w, &question, err);
}

int policies_judge_env(const struct request *request, struct core_workspace *w,
	const pair_list *env, struct error *err)
{
	struct policy_question question = { .env = env };
	return judge_now(request, w, &question, err);
}

/* ---- packages, and what runs ---- */

static int check_packages(const struct request *request, struct core_workspace *w,
	const struct env_kind_row *kind, const text_list *names, uint64_t size_bytes,
	struct error *err)
{
	if (!policy_stack_check_packages(policies_stack(w), kind->manager, names, size_bytes, err))
		return 0;
	error_context(err, "denied in workspace '%s'", w->model.name);
	audit_refusal(request, w, err);
	return error_hint(err, "carrel info %s -o json shows its sources", w->model.name);
}

int policies_judge_packages(const struct request *request, struct core_workspace *w,
	const struct env_kind_row *kind, const text_list *names, struct error *err)
{
	return is_judged(request, w) ? check_packages(request, w, kind, names, 0, err) : 0;
}

int policies_check_environment(
	struct core_workspace *w, const struct env_meta *meta, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	text_list names = { 0 };
	if (!meta || !meta->packages.count || !policies_hold(w))
		return 0;
	for (size_t i = 0; i < meta->packages.count; i++)
		vec_push(&arena, &names, meta->packages.items[i].key);
	return check_packages(
		&request_system, w, env_kind_row_of(meta), &names, meta->size_bytes, err);
}

int policies_indexes(struct core_workspace *w, const struct env_kind_row *kind, struct arena *arena,
	text_list *urls, struct error *err)
{
	bool is_bound;
	if (!policy_stack_indexes(policies_stack(w), kind->manager, arena, urls, &is_bound, err))
		return 0;
	error_context(err, "denied in workspace '%s'", w->model.name);
	audit_refusal(&request_system, w, err);
	return error_hint(err,
		"carrel info %s -o json, or GET /v1/workspaces/%s, shows its sources",
		w->model.name, w->model.name);
}

struct policy_registries policies_registries(struct core_workspace *w, struct arena *arena)
{
	const struct registries *known = &w->core->networks->registries;
	const struct policy_registries found = { known->variables, known->indexes, known->hosts };
	return policy_stack_registries(policies_stack(w), &found, arena);
}

void policies_meter(struct core_workspace *w, const struct policy_registries *registries,
	struct arena *arena, struct network_meter *meter)
{
	policy_stack_meter(policies_stack(w), registries, arena, meter);
}

/* 0: no limit */
static uint64_t least_of(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

uint64_t policies_limit_memory(struct core_workspace *w, uint64_t value)
{
	return least_of(value, policies_facts(w)->memory_bytes);
}

uint64_t policies_limit_time(struct core_workspace *w, uint64_t value_ms)
{
	return least_of(value_ms, policies_facts(w)->time_ms);
}

/* ---- as mounts ---- */

size_t policies_describe(
	struct core_workspace *w, struct arena *arena, const char **strings, size_t room)
{
	plan_denials denials = { 0 };
	denials_of(policies_stack(w), arena, &denials, NULL);
	size_t count = 0;
	while (count < denials.count && count < room) {
		strings[count] = denial_print(&denials.items[count], arena);
		count++;
	}
	return count;
}

/* ---- the operator's ---- */

int policies_open(struct core *core, struct error *err)
{
	static const char path[] = "run/" POLICIES_FILE;
	struct json_value *value;
	struct str text;
	core->access->policy.otherwise = POLICY_ASK;
	if (file_read_at(core->home.dir, path, JSON_READ_MAX, &core->arena, &text))
		return errno == ENOENT ? 0 : fail_errno(err, "read '%s'", path);
	if (json_read(text, &core->arena, &value, err))
		return error_context(err, "read '%s'", path);
	const char *otherwise = json_member_text(value, "default");
	core->access->policy.settings = json_member_text(value, "settings");
	core->access->policy.sources = json_member_text(value, "sources");
	core->access->policy.has_default =
		otherwise && policy_decision_from_name(otherwise, &core->access->policy.otherwise);
	return 0;
}

bool policies_have_sources(const struct core *core)
{
	return core->access->policy.sources;
}
