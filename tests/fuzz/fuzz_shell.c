/* Shell scripts: what is understood for any sh is understood for bash, as the same commands. */
#include "fuzz.h"
#include "policy/shell/shell.h"

static int count_one(void *ctx, const struct shell_command *command)
{
	size_t *count = ctx;

	check(command->kind != SHELL_SIMPLE || command->words.count || command->assignments.count ||
		command->redirects.count);
	++*count;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str script = { (const char *)data, size };
	const struct shell_list *sh, *bash;
	size_t sh_count = 0, bash_count = 0;
	auto_arena struct arena arena;
	struct error err;

	arena_init(&arena);
	if (size > 65536)
		return 0;
	int is_unknown = shell_parse(script, SHELL_BASH, &arena, &bash, &err);
	if (!is_unknown)
		shell_visit(bash, count_one, &bash_count);
	if (shell_parse(script, SHELL_SH, &arena, &sh, &err) == 0) {
		shell_visit(sh, count_one, &sh_count);
		check(!is_unknown && sh_count == bash_count);
	}
	return 0;
}
