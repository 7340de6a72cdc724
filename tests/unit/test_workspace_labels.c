/* Labels decide nothing: what a client writes becomes no authority, but for three of them when it
 * makes a workspace. */
/* security: authority */
#include <string.h>
#include "base/arena.h"
#include "model/nouns/workspace.h"
#include "unit.h"

static struct workspace with(struct arena *arena, const char *key, const char *value)
{
	struct workspace w = { .name = "desk" };
	vec_push(arena, &w.labels, ((struct text_pair){ key, value }));
	return w;
}

static const char *const given[] = { "context_id", "agent", "namespace" };
static const char *const reserved[] = { "carrel.service", "carrel.task", "carrel.deployment",
	"carrel.role", "carrel.case", "carrel.tool", "carrel.tool-version", "carrel.new" };
static const struct workspace_owner owners[] = {
	{ .service = "agents", .agent = "a", .context_id = "c", .namespace = "n" },
	{ .service = "agents", .agent = "a", .task = "t" },
	{ .service = "deployments", .deployment = "d", .role = "rest", .package_id = "p@1" },
	{ .service = "cases", .case_id = "k" },
	{ .service = "tools", .tool = "f", .tool_version = "2" },
};
#define EACH(i, array)                                                                             \
	size_t i = 0;                                                                              \
	i < sizeof(array) / sizeof *(array);                                                       \
	i++

static void names_of_services_are_refused_and_named(void **state)
{
	struct error err;
	for (EACH(i, reserved)) {
		assert_int_equal(workspace_check_label(reserved[i], "x", &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_non_null(strstr(err.text, reserved[i]));
	}
	assert_int_equal(workspace_check_label("carrels", "x", &err), 0);
	assert_int_equal(workspace_check_label("context_id", "x", &err), 0);
	assert_int_equal(workspace_check_template_label("context_id", "x", &err), -1);
	assert_non_null(strstr(err.text, "context_id"));
	assert_int_equal(workspace_check_template_label("agent", "x", &err), 0);
}

static void a_client_that_makes_a_workspace_gives_three_of_them(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct error err;
	for (EACH(i, given)) {
		struct workspace w = with(&arena, given[i], "x");
		vec_push(&arena, &w.labels, ((struct text_pair){ "package_id", "p" }));
		assert_int_equal(workspace_take_labels(&w, &arena, &err), 0);
		assert_int_equal(w.labels.count, 1); /* a label like others */
		assert_null(w.owner.package_id);
		assert_null(w.owner.service);
		assert_string_equal(workspace_label(&w, given[i]), "x");
		assert_string_equal(workspace_label(&w, "package_id"), "p");
	}
	struct workspace w = with(&arena, "context_id", "c");
	assert_int_equal(workspace_take_labels(&w, &arena, &err), 0);
	assert_string_equal(w.owner.context_id, "c");
	assert_string_equal(workspace_context_key(&w, &arena), "c");
	w = with(&arena, "context_id", "\xff");
	assert_int_equal(workspace_take_labels(&w, &arena, &err), -1);
}

static void labels_change_nothing_of_one_that_a_service_makes(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct error err;
	for (EACH(i, owners))
		for (EACH(k, given)) {
			struct workspace w = with(&arena, given[k], "x");
			w.owner = owners[i];
			assert_int_equal(workspace_take_labels(&w, &arena, &err), 0);
			assert_memory_equal(&w.owner, &owners[i], sizeof owners[i]);
			assert_int_equal(w.labels.count, 0);
		}
}

static void a_change_reaches_no_label_of_its_owner(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct error err;
	pair_list changed;
	for (EACH(i, owners)) {
		struct workspace w = { .owner = owners[i] };
		pair_list shown = workspace_labels(&w, &arena);
		assert_true(shown.count > 1);
		for (size_t k = 0; k < shown.count; k++) {
			struct text_pair pair = { shown.items[k].key, "x" };
			const pair_list one = { &pair, 1, 1 };
			assert_int_equal(
				workspace_change_labels(&w, &one, &arena, &changed, &err), -1);
			assert_non_null(strstr(err.text, pair.key));
			pair.value = NULL;
			assert_int_equal(
				workspace_change_labels(&w, &one, &arena, &changed, &err), -1);
		}
	}
	/* What is shown may be sent back; a plain label of that name may go. */
	struct workspace w = { .owner = { .context_id = "c" } };
	struct text_pair pair = { "context_id", "c" };
	const pair_list one = { &pair, 1, 1 };
	assert_int_equal(workspace_change_labels(&w, &one, &arena, &changed, &err), 0);
	assert_int_equal(changed.count, 0);
	w = with(&arena, "context_id", "of an earlier version");
	assert_int_equal(workspace_change_labels(&w, &one, &arena, &changed, &err), -1);
	pair.value = NULL;
	assert_int_equal(workspace_change_labels(&w, &one, &arena, &changed, &err), 0);
	assert_int_equal(changed.count, 1);
}

static void labels_of_a_row_are_shown_and_decide_nothing(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct workspace w = with(&arena, "carrel.service", "agents");
	vec_push(&arena, &w.labels, ((struct text_pair){ "agent", "victim" }));
	vec_push(&arena, &w.labels, ((struct text_pair){ "context_id", "c" }));
	assert_null(workspace_label(&w, "carrel.service"));
	assert_string_equal(workspace_label(&w, "agent"), "victim");
	assert_null(workspace_context_key(&w, &arena));
	assert_false(workspace_ttl_is_idle(&w));
	assert_int_equal(workspace_labels(&w, &arena).count, 2);
	w.owner = (struct workspace_owner){ .service = "agents", .agent = "a", .context_id = "1" };
	assert_string_equal(workspace_label(&w, "agent"), "a");
	assert_string_equal(workspace_context_key(&w, &arena), "a/1");
	assert_true(workspace_ttl_is_idle(&w));
	assert_int_equal(workspace_labels(&w, &arena).count, 3);
}

static void copies_and_archives_are_nobodys(void **state)
{
	auto_arena struct arena arena = { 0 };
	for (EACH(i, owners)) {
		struct workspace w = { .owner = owners[i] };
		struct workspace_owner copy;
		struct workspace bare;
		text_list dropped = { 0 };
		workspace_copy_owner(&arena, &w, &copy);
		assert_memory_equal(&copy, &(struct workspace_owner){ 0 }, sizeof copy);
		bare = workspace_unowned(&w, &arena);
		assert_memory_equal(&bare.owner, &copy, sizeof copy);
		for (size_t k = 0; k < bare.labels.count; k++)
			assert_null(strstr(bare.labels.items[k].key, "carrel."));
		bare.labels = workspace_labels(&w, &arena);
		workspace_drop_labels(&bare, &arena, &dropped);
		assert_int_equal(bare.labels.count, owners[i].package_id ? 1 : 0);
		assert_int_equal(
			dropped.count + bare.labels.count, workspace_labels(&w, &arena).count);
	}
	struct workspace many = { 0 };
	text_list dropped = { 0 };
	for (int i = 0; i < 1000; i++)
		vec_push(&arena, &many.labels,
			((struct text_pair){ i % 2 ? "agent" : "carrel.later", "x" }));
	workspace_drop_labels(&many, &arena, &dropped);
	assert_int_equal(many.labels.count, 0);
	assert_int_equal(dropped.count, 2);
	struct workspace w = { .owner = { .agent = "a", .namespace = "n", .context_id = "c" } };
	struct workspace_owner copy;
	workspace_copy_owner(&arena, &w, &copy);
	assert_string_equal(copy.agent, "a");
	assert_string_equal(copy.namespace, "n");
	assert_null(copy.context_id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_services_are_refused_and_named),
		cmocka_unit_test(a_client_that_makes_a_workspace_gives_three_of_them),
		cmocka_unit_test(labels_change_nothing_of_one_that_a_service_makes),
		cmocka_unit_test(a_change_reaches_no_label_of_its_owner),
		cmocka_unit_test(labels_of_a_row_are_shown_and_decide_nothing),
		cmocka_unit_test(copies_and_archives_are_nobodys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
