#include "policy/shell/shell.h"

struct visitor {
	shell_visit_fn *visit;
	void *ctx;
};

static int visit_list(const struct visitor *v, const struct shell_list *list);

static int visit_word(const struct visitor *v, const struct shell_word *word)
{
	int result = 0;
	for (size_t i = 0; i < word->parts.count && !result; i++) {
		const struct shell_part *part = &word->parts.items[i];
		if (part->commands)
			result = visit_list(v, part->commands);
		for (size_t j = 0; j < part->words.count && !result; j++)
			result = visit_word(v, &part->words.items[j]);
	}
	return result;
}

static int visit_words(const struct visitor *v, const shell_words *words)
{
	int result = 0;
	for (size_t i = 0; i < words->count && !result; i++)
		result = visit_word(v, &words->items[i]);
	return result;
}

static int visit_command(const struct visitor *v, const struct shell_command *command)
{
	int result = v->visit(v->ctx, command);
	for (size_t i = 0; i < command->assignments.count && !result; i++) {
		const struct shell_assignment *assignment = &command->assignments.items[i];
		result = visit_word(v, &assignment->index);
		if (!result)
			result = visit_word(v, &assignment->value);
		if (!result)
			result = visit_words(v, &assignment->items);
	}
	if (!result)
		result = visit_words(v, &command->words);
	for (size_t i = 0; i < command->redirects.count && !result; i++)
		result = visit_word(v, &command->redirects.items[i].target);
	for (size_t i = 0; i < command->bodies.count && !result; i++)
		result = visit_list(v, command->bodies.items[i]);
	return result;
}

static int visit_list(const struct visitor *v, const struct shell_list *list)
{
	int result = 0;
	for (size_t i = 0; i < list->commands.count && !result; i++)
		result = visit_command(v, list->commands.items[i]);
	return result;
}

int shell_visit(const struct shell_list *list, shell_visit_fn *visit, void *ctx)
{
	const struct visitor v = { visit, ctx };
	return visit_list(&v, list);
}
