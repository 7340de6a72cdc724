/* What the commands of a script do to the files of the one that is judged: a file was read before
 * any of them ran. */
#include "base/path.h"
#include "model/policy/internal.h"

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

/* A `&` that ends a command; one in quotes counts, too. */
static bool has_background(struct str script)
{
	for (size_t i = 0; i < script.len; i++) {
		char before = i ? script.data[i - 1] : '\0';
		char after = i + 1 < script.len ? script.data[i + 1] : '\0';

		if (script.data[i] == '&' && !(before && strchr("&<>", before)) &&
			!(after && strchr("&>", after)))
			return true;
	}
	return false;
}

void order_note_script(struct judge *j, struct str script, const struct shell_list *list)
{
	if (!has_background(script) && !shell_visit(list, find_repeating, NULL))
		return;
	j->others++;
	j->others_than_git++;
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

void order_note_command(struct judge *j, const struct shell_command *command)
{
	static const char *const harmless[] = { ":", "true", "false", "[", "test", "cd", "set",
		"export", "declare", "local", "readonly", "unset", "echo", "printf", "pwd", "ls",
		"cat", "head", "tail", "wc", "which", "type", "date", "whoami", "id", "uname",
		"hostname", "sleep", "exit", "return" };
	const char *name = command->words.count ? command->words.items[0].literal : "true";
	bool is_harmless = false, is_git;

	for (size_t i = 0; i < command->redirects.count; i++)
		if (writes(&command->redirects.items[i]))
			name = NULL;
	for (size_t i = 0; name && i < sizeof harmless / sizeof *harmless; i++)
		is_harmless |= strcmp(path_basename(name), harmless[i]) == 0;
	is_git = name && strcmp(path_basename(name), "git") == 0;
	j->others += !is_harmless;
	j->others_than_git += !is_harmless && !is_git;
}
