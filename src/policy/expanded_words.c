/* What a word may be once the shell has expanded it. */
#include "policy/internal.h"

/* $?, $#, $$ and $!, which is there as soon as something runs in the background. */
static bool is_number(const struct shell_part *part)
{
	return part->kind == SHELL_PARAMETER && !part->words.count && part->text && part->text[0] &&
	       strchr("?#$!", part->text[0]) && !part->text[1];
}

bool word_splits(const struct shell_word *word)
{
	if (word->literal)
		return false;
	for (size_t i = 0; i < word->parts.count; i++) {
		const struct shell_part *part = &word->parts.items[i];
		if (part->kind == SHELL_BRACES)
			return true;
		if (part->is_quoted && part->kind == SHELL_PARAMETER &&
			memchr(word->source.data, '@', word->source.len)) /* "$@", "${a[@]}" */
			return true;
		if (!part->is_quoted && !is_number(part) &&
			(part->kind == SHELL_PARAMETER || part->kind == SHELL_COMMAND))
			return true;
	}
	return !word->parts.count;
}

bool word_may_begin_option(const struct shell_word *word)
{
	if (word->literal)
		return word->literal[0] == '-';
	if (!word->parts.count)
		return true;
	const struct shell_part *first = &word->parts.items[0];
	if (is_number(first))
		return false;
	if (first->kind == SHELL_TEXT && first->text[0])
		return first->text[0] == '-';
	return first->kind != SHELL_TILDE;
}

bool word_may_be_option(const struct shell_word *word)
{
	return word_may_begin_option(word) || word_splits(word);
}

bool word_may_end_command(const struct shell_word *word)
{
	if (word->literal || word_splits(word))
		return !word->literal;
	for (size_t i = 0; i < word->parts.count; i++) {
		const struct shell_part *part = &word->parts.items[i];
		if (part->kind == SHELL_TEXT && part->text[0] && strcmp(part->text, ";") != 0)
			return false;
	}
	return true;
}
