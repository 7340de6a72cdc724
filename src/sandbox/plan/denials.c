#include "sandbox/plan/denials.h"

#include "base/path.h"
#include "policy/stack.h"
#include "sandbox/plan/plan.h"

const char *const plan_denied_names[DENIED_COUNT] = {
	[DENIED_READ] = "read",
	[DENIED_WRITE] = "write",
	[DENIED_DELETE] = "delete",
};

const char *denial_print(const struct plan_denial *denial, struct arena *arena)
{
	return arena_printf(arena, "%s:%s", plan_denied_names[denial->what], denial->path);
}

int denial_check(const struct plan_denial *denial, struct error *err)
{
	return plan_check_target(denial->path, err);
}

int denial_parse(const char *text, struct plan_denial *denial, struct error *err)
{
	size_t len = strcspn(text, ":");
	for (int i = 0; i < DENIED_COUNT; i++) {
		if (strlen(plan_denied_names[i]) != len || !text[len] ||
			strncmp(text, plan_denied_names[i], len) != 0)
			continue;
		struct plan_denial found = { text + len + 1, (enum plan_denied)i };
		if (denial_check(&found, err))
			return -1;
		*denial = found;
		return 0;
	}
	return fail(err, ERR_INVALID, "'%s' is not read:PATH, write:PATH or delete:PATH", text);
}

bool denial_is_pattern(const struct plan_denial *denial)
{
	return strpbrk(denial->path, "*?") != NULL;
}

/* The part of a pattern that is below the workspace; NULL: none. *is_part: the pattern also reaches
 * elsewhere. */
static const char *inner_pattern(
	const struct policy_rule *rule, const char *workspace, struct arena *arena, bool *is_part)
{
	const char *glob = rule->glob;
	*is_part = false;
	if (!workspace || !workspace[1])
		return NULL;
	if (path_is_beneath(rule->fixed, workspace))
		return glob;
	*is_part = true;
	return strncmp(glob, "/**/", 4) ? NULL : arena_printf(arena, "%s%s", workspace, glob);
}

/* The path that a rule names whole; NULL: a pattern. */
static const char *fixed_path(const struct policy_rule *rule, struct arena *arena, bool *is_tree)
{
	size_t len = strlen(rule->glob), fixed = strcspn(rule->glob, "*?");
	*is_tree = len > 3 && fixed == len - 2 && !strcmp(rule->glob + len - 3, "/**");
	if (*is_tree)
		return arena_bytes(arena, rule->glob, len - 3);
	*is_tree = rule->is_with_below;
	return fixed == len ? rule->glob : NULL;
}

static bool push(const struct plan_denial *denial, struct arena *arena, plan_denials *denials)
{
	struct error ignored;
	if (denial_check(denial, &ignored))
		return false;
	for (size_t i = 0; i < denials->count; i++)
		if (!strcmp(denials->items[i].path, denial->path) &&
			denials->items[i].what <= denial->what)
			return true;
	if (denials->count == PLAN_DENIALS_MAX)
		return false;
	vec_push(arena, denials, *denial);
	return true;
}

static bool add_denial(const struct policy_rule *rule, const char *workspace, struct arena *arena,
	plan_denials *denials)
{
	bool is_tree, is_part = false;
	struct plan_denial denial = { .path = fixed_path(rule, arena, &is_tree),
		.what = rule->operations & POLICY_READ	  ? DENIED_READ
			: rule->operations & POLICY_WRITE ? DENIED_WRITE
							  : DENIED_DELETE };
	bool is_pattern = !denial.path;
	if (is_pattern)
		denial.path = inner_pattern(rule, workspace, arena, &is_part);
	if (!denial.path || (denial.what == DENIED_DELETE && is_tree) ||
		!push(&denial, arena, denials))
		return false;
	if (is_pattern && rule->is_with_below) {
		denial.path = arena_printf(arena, "%s/**", denial.path);
		return push(&denial, arena, denials) && !is_part;
	}
	return !is_part;
}

void denials_of(const struct policy_stack *stack, struct arena *arena, plan_denials *denials,
	text_list *judged)
{
	for (size_t i = 0; i < stack->count; i++)
		for (size_t k = 0; k < stack->policies[i].rules.count; k++) {
			const struct policy_rule *rule = &stack->policies[i].rules.items[k];
			if (rule->kind == POLICY_FILE && rule->decision == POLICY_DENY &&
				!add_denial(rule, stack->policies[i].workspace, arena, denials) &&
				judged)
				vec_push(arena, judged, rule->text);
		}
}
