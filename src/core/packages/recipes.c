#include "core/packages/recipes.h"

#include "base/buf.h"
#include "format/text/json.h"

static bool is_never(const struct workspace *model)
{
	(void)model;
	return false;
}

/* ---- Python ---- */

static bool is_python_given(const struct workspace *model)
{
	return model->python || model->requirements || model->packages.count ||
	       model->build_options.count || model->is_context;
}

static bool has_python_packages(const struct workspace *model)
{
	return model->requirements || model->packages.count;
}

static bool has_requirements(const struct workspace *model)
{
	return model->requirements;
}

/* The launcher passes on a file or packages: what was given as both is one file. Requirements alone
 * stay as they are, byte for byte: the hash of them is in the environment's name. */
static void print_requirements(const struct workspace *model, struct buf *text)
{
	buf_text(text, model->requirements);
	if (model->packages.count && text->len && text->data[text->len - 1] != '\n')
		buf_char(text, '\n');
	for (size_t i = 0; i < model->packages.count; i++)
		buf_printf(text, "%s\n", model->packages.items[i]);
}

static const char *python_of(const struct workspace *model)
{
	return model->python;
}

static void list_python(const struct workspace *model, struct arena *arena, text_list *words)
{
	*words = text_list_copy(arena, &model->build_options);
	for (size_t i = 0; !model->requirements && i < model->packages.count; i++)
		vec_push(arena, words, arena_printf(arena, "--pip=%s", model->packages.items[i]));
}

static const struct environment_recipe recipe_python = { is_python_given, has_python_packages,
	is_never, has_requirements, print_requirements, python_of, list_python,
	"use 'requirements' instead" };

/* ---- Node ---- */

static bool is_node_given(const struct workspace *model)
{
	const struct workspace_node *node = &model->node;
	return node->version || node->package_json || node->lock || node->packages.count ||
	       node->options.count;
}

static bool has_node_files(const struct workspace *model)
{
	return model->node.package_json || model->node.lock;
}

static bool has_node_packages(const struct workspace *model)
{
	return has_node_files(model) || model->node.packages.count;
}

static bool runs_node_scripts(const struct workspace *model)
{
	const text_list *options = &model->node.options;
	for (size_t i = 0; i < options->count; i++)
		if (!strcmp(options->items[i], WORKSPACE_ALLOW_SCRIPTS))
			return true;
	return false;
}

static void print_node_files(const struct workspace *model, struct buf *text)
{
	const struct workspace_node *node = &model->node;
	struct json j = json_to(text, false);
	json_object(&j, NULL);
	if (node->package_json)
		json_text(&j, "package_json", node->package_json);
	if (node->lock)
		json_text(&j, "lock", node->lock);
	json_end(&j);
}

static const char *no_python(const struct workspace *model)
{
	(void)model;
	return NULL;
}

static void list_node(const struct workspace *model, struct arena *arena, text_list *words)
{
	const struct workspace_node *node = &model->node;
	*words = text_list_copy(arena, &node->options);
	if (node->version)
		vec_push(arena, words, arena_printf(arena, "--node=%s", node->version));
	if (has_node_files(model))
		vec_push(arena, words, WORKSPACE_NODE_INPUT);
	for (size_t i = 0; i < node->packages.count; i++)
		vec_push(arena, words, arena_printf(arena, "--npm=%s", node->packages.items[i]));
}

static const struct environment_recipe recipe_node = { is_node_given, has_node_packages,
	runs_node_scripts, has_node_files, print_node_files, no_python, list_node,
	"use 'package_json' instead" };

#define RECIPE(id, name) [ENV_KIND_##id] = &recipe_##name,
const struct environment_recipe *const environment_recipes[ENV_KINDS] = { ENV_KIND_LIST(RECIPE) };
