/* Prints the commands of each script on standard input (NUL after each) as one line: commands are
 * separated by \x1e, words by \x1f, a word without a literal is \x1a. "unknown: …" for a script
 * that isn't understood. The argument is the dialect. */
#include <stdio.h>
#include <stdlib.h>
#include "policy/shell/shell.h"

static void show_word(const char *text)
{
	for (; text && *text; text++)
		printf((unsigned char)*text < ' ' ? "\\x%02x" : "%c", (unsigned char)*text);
	if (!text)
		putchar('\x1a');
}

static int show(void *ctx, const struct shell_command *command)
{
	static const char *const names[] = { "", "Block", "Subshell", "IfClause", "WhileClause",
		"WhileClause", "ForClause", "ForClause", "CaseClause", "FuncDecl", "TestClause",
		"ForClause", "ArithmCmd" };

	printf(*(bool *)ctx ? "\x1e" : "");
	*(bool *)ctx = true;
	if (command->kind != SHELL_SIMPLE) {
		fputs(names[command->kind], stdout);
		return 0;
	}
	for (size_t i = 0; i < command->assignments.count; i++)
		printf("%s= ", command->assignments.items[i].name);
	for (size_t i = 0; i < command->words.count; i++) {
		fputs(i ? "\x1f" : "", stdout);
		show_word(command->words.items[i].literal);
	}
	return 0;
}

int main(int argc, char **argv)
{
	enum shell_dialect dialect =
		argc > 1 && strcmp(argv[1], "bash") == 0 ? SHELL_BASH : SHELL_SH;
	char *script = NULL;
	size_t capacity = 0;
	ssize_t len;

	while ((len = getdelim(&script, &capacity, '\0', stdin)) > 0) {
		auto_arena struct arena arena;
		const struct shell_list *list;
		bool is_first_shown = false;
		struct error err;

		arena_init(&arena);
		if (shell_parse((struct str){ script, (size_t)len - 1 }, dialect, &arena, &list,
			    &err) < 0)
			printf("unknown: %s", err.text);
		else
			shell_visit(list, show, &is_first_shown);
		putchar('\n');
	}
	free(script);
	return 0;
}
