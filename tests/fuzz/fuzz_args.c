/* Command lines: whatever is typed, parsing ends, operands are in range, and a refusal has a text.
 * Input: words separated by NUL. */
#include <string.h>
#include "base/arena.h"
#include "base/str.h"
#include "cli/args.h"
#include "fuzz.h"

struct options {
	bool flag;
	const char *text, *choice;
	text_list list;
	uint64_t size, duration, count, cpus;
};
static const struct arg_option table[] = {
	{ 'f', "flag", ARG_FLAG, offsetof(struct options, flag), NULL, "", NULL, 0, 0 },
	{ 't', "text", ARG_TEXT, offsetof(struct options, text), "TEXT", "", NULL, 0, 0 },
	{ 'l', "list", ARG_LIST, offsetof(struct options, list), "ITEM", "", NULL, 0, 0 },
	{ 'c', "choice", ARG_CHOICE, offsetof(struct options, choice), "WHICH", "", "one|two", 0,
		0 },
	{ 's', "size", ARG_SIZE, offsetof(struct options, size), "SIZE", "", NULL, 4096, 0 },
	{ 'd', "duration", ARG_DURATION, offsetof(struct options, duration), "TIME", "", NULL, 1,
		0 },
	{ 'n', "count", ARG_COUNT, offsetof(struct options, count), "N", "", NULL, 1, 10 },
	{ 'p', "cpus", ARG_CPUS, offsetof(struct options, cpus), "N", "", NULL, 10, 0 },
};
static const struct arg_spec spec = { "fuzz", "", "", table, sizeof table / sizeof *table, NULL };

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct str rest = { (const char *)data, size }, word;
	char *argv[WORDS_MAX + 2];
	int argc = 0, operands = -1;
	struct options options = { 0 };
	struct error err = { 0 };
	bool help;

	arena_init(&arena);
	argv[argc++] = arena_text(&arena, "fuzz");
	while (argc <= WORDS_MAX && str_next(&rest, '\0', &word))
		argv[argc++] = arena_bytes(&arena, word.data, word.len);
	argv[argc] = NULL;
	if (args_parse(&spec, argc, argv, &options, &arena, &operands, &help, &err)) {
		check(err.code == ERR_INVALID && err.text[0] && !strchr(err.text, '\n'));
		return 0;
	}
	check(operands >= 1 && operands <= argc);
	check(!options.size || options.size >= 4096);
	check(options.count <= 10);
	check(!options.choice || !strcmp(options.choice, "one") || !strcmp(options.choice, "two"));
	return 0;
}
