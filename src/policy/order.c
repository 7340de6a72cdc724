/* What the commands of a script do to the files of the one that is judged: a file was read before
 * any of them ran. */
#include "base/path.h"
#include "policy/internal.h"

static bool is_repeating(enum shell_command_kind kind)
{
	switch (kind) {
	case SHELL_WHILE:
	case SHELL_UNTIL:
	case SHELL_FOR:
	case SHELL_SELECT:
	case SHELL_ARITHMETIC_FOR:
	case SHELL_FUNCTION:
		return true;
	default:
		return false;
	}
}

static int find_repeating(void *ctx, const struct shell_command *command)
{
	return is_repeating(command->kind);
}

static bool has(struct str script, const char *text)
{
	return memmem(script.data, script.len, text, strlen(text)) != NULL;
}

/* A `&` that ends a command. Quoted text is left out where it surely is quoted text: one that may
 * hold commands, and a script with comments, here-documents or $'…', is looked at as a whole. */
static bool has_background(struct str script)
{
	const char *plain =
		has(script, "<<") || has(script, "#") || has(script, "$'") || has(script, "`")
			? ""
			: "'\"";
	char quote = '\0';
	for (size_t i = 0; i < script.len; i++) {
		char c = script.data[i];
		char before = i ? script.data[i - 1] : '\0';
		char after = i + 1 < script.len ? script.data[i + 1] : '\0';
		if (quote && c == '$' && after == '(')
			plain = "", quote = '\0';
		else if (*plain && c == '\\' && quote != '\'')
			i++;
		else if (quote)
			quote = c == quote ? '\0' : quote;
		else if (*plain && strchr(plain, c))
			quote = c;
		else if (c == '&' && !(before && strchr("&<>", before)) &&
			 !(after && strchr("&>", after)))
			return true;
	}
	return false;
}

static bool writes(const struct shell_redirect *redirect)
{
	const char *target = redirect->target.literal;
	switch (redirect->kind) {
	case SHELL_READ:
	case SHELL_COPY_IN:
	case SHELL_COPY_OUT:
	case SHELL_HEREDOC:
	case SHELL_HERESTRING:
		return false;
	default:
		return !target || strncmp(target, "/dev/", 5) != 0;
	}
}

/* What a command may change. */
enum effect {
	EFFECT_NONE,
	EFFECT_FILES,	 /* files, but not what git is configured by */
	EFFECT_CHECKOUT, /* of git: files of its working tree */
	EFFECT_ANYTHING,
};

/* The subcommand of git, behind options that are known; NULL: another one came first. */
static const char *git_verb(const shell_words *words, size_t *at)
{
	static const char options[] = "--no-pager -P --no-optional-locks";
	for (*at = 1; *at < words->count; ++*at) {
		const char *text = words->items[*at].literal;
		if (text && strcmp(text, "-C") == 0)
			++*at;
		else if (!words_have(options, text))
			return text && text[0] != '-' ? text : NULL;
	}
	return NULL;
}

/* `git remote` may name a repository of this machine, whose hooks a push runs. */
static bool names_far_remote(const shell_words *words)
{
	const char *last = words->items[words->count - 1].literal;
	return last && (strncmp(last, "https://", 8) == 0 || strncmp(last, "ssh://", 6) == 0 ||
			       strncmp(last, "git@", 4) == 0 || strcmp(last, "-v") == 0 ||
			       strcmp(last, "remote") == 0);
}

static enum effect effect_of_git(const shell_words *words)
{
	/* They leave the files of the working tree as they are. */
	static const char plain[] =
		"status diff log show blame annotate rev-parse rev-list describe ls-files ls-tree "
		"ls-remote cat-file grep shortlog for-each-ref show-ref merge-base symbolic-ref "
		"reflog version add stage commit push fetch tag branch";
	size_t at;
	const char *verb = git_verb(words, &at);
	if (verb && strcmp(verb, "remote") == 0)
		return names_far_remote(words) ? EFFECT_FILES : EFFECT_ANYTHING;
	return words_have(plain, verb) ? EFFECT_FILES : EFFECT_CHECKOUT;
}

/* sort -o FILE, sed -i */
static bool has_option(const shell_words *words, char letter)
{
	for (size_t i = 1; i < words->count; i++) {
		const char *text = words->items[i].literal;
		if (!text || (text[0] == '-' && (text[1] == '-' || strchr(text, letter))))
			return true;
	}
	return false;
}

static enum effect effect_of(const struct shell_command *command)
{
	static const char harmless[] =
		": true false [ test cd set export declare local readonly unset echo printf pwd "
		"ls cat head tail wc which type date whoami id uname hostname sleep exit return "
		"grep egrep fgrep cut tr jq nl rev basename dirname stat du cmp";
	static const char files[] = "mkdir rmdir touch rm";
	const shell_words *words = &command->words;
	const char *name = words->count ? words->items[0].literal : "true";
	if (command->kind != SHELL_SIMPLE)
		return EFFECT_NONE; /* what is in it is looked at by itself */
	for (size_t i = 0; i < command->redirects.count; i++)
		if (writes(&command->redirects.items[i]))
			return EFFECT_ANYTHING;
	name = name ? path_basename(name) : NULL;
	if (words_have(harmless, name))
		return EFFECT_NONE;
	if (name && (strcmp(name, "sort") == 0 || strcmp(name, "sed") == 0))
		return has_option(words, name[1] == 'o' ? 'o' : 'i') ? EFFECT_ANYTHING
								     : EFFECT_NONE;
	if (name && strcmp(name, "git") == 0)
		return effect_of_git(words);
	return words_have(files, name) ? EFFECT_FILES : EFFECT_ANYTHING;
}

static bool may_bring_repository(const struct shell_command *command)
{
	if (command->kind != SHELL_SIMPLE)
		for (size_t i = 0; i < command->redirects.count; i++)
			if (writes(&command->redirects.items[i]))
				return true;
	return effect_of(command) >= EFFECT_CHECKOUT;
}

static int find_writing(void *ctx, const struct shell_command *command)
{
	return command != ctx && may_bring_repository(command);
}

bool order_writes_within(const struct shell_command *command)
{
	struct shell_command *self = (struct shell_command *)(uintptr_t)command;
	struct shell_list list = { 0 };
	list.commands.items = &self;
	list.commands.count = 1;
	return shell_visit(&list, find_writing, self) != 0;
}

/* A pipe, behind which a command that may change something runs beside the one before it. */
static bool has_writing_pipe(const struct shell_list *list)
{
	for (size_t i = 0; i + 1 < list->commands.count; i++)
		if (list->commands.items[i]->is_piped &&
			(order_writes_within(list->commands.items[i + 1]) ||
				may_bring_repository(list->commands.items[i + 1])))
			return true;
	return false;
}

/* Lists within the word: $(…), also in ${x:-$(…)}. */
static bool word_has_writing_pipe(const struct shell_word *word)
{
	for (size_t i = 0; i < word->parts.count; i++) {
		const struct shell_part *part = &word->parts.items[i];
		if (part->commands && has_writing_pipe(part->commands))
			return true;
		for (size_t k = 0; k < part->words.count; k++)
			if (word_has_writing_pipe(&part->words.items[k]))
				return true;
	}
	return false;
}

static int find_writing_pipe(void *ctx, const struct shell_command *command)
{
	bool is_found = false;
	for (size_t i = 0; i < command->bodies.count; i++)
		is_found |= has_writing_pipe(command->bodies.items[i]);
	for (size_t i = 0; i < command->words.count; i++)
		is_found |= word_has_writing_pipe(&command->words.items[i]);
	for (size_t i = 0; i < command->redirects.count; i++)
		is_found |= word_has_writing_pipe(&command->redirects.items[i].target);
	for (size_t i = 0; i < command->assignments.count; i++) {
		const struct shell_assignment *assignment = &command->assignments.items[i];
		is_found |= word_has_writing_pipe(&assignment->value) ||
			    word_has_writing_pipe(&assignment->index);
		for (size_t k = 0; k < assignment->items.count; k++)
			is_found |= word_has_writing_pipe(&assignment->items.items[k]);
	}
	return is_found;
}

void order_note_script(struct judge *j, struct str script, const struct shell_list *list)
{
	if (has_writing_pipe(list) || shell_visit(list, find_writing_pipe, NULL))
		j->others_piped++;
	if (!has_background(script) && !shell_visit(list, find_repeating, NULL))
		return;
	j->others++;
	j->others_than_git++;
}

void order_note_command(struct judge *j, const struct shell_command *command)
{
	enum effect effect = effect_of(command);
	j->others += effect != EFFECT_NONE;
	j->others_than_git += effect == EFFECT_ANYTHING;
	j->checkouts += effect == EFFECT_CHECKOUT;
}
