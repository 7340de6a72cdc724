/* Answers of scripts: keys and values of the stated characters, or an error with a line in it. */
#include <string.h>
#include "format/text/answer.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct error err = { 0 };
	struct answer answer = { 0 };
	size_t total = 0;

	arena_init(&arena);
	if (answer_parse((struct str){ (const char *)data, size }, &arena, &answer, &err) < 0) {
		check(err.code == ERR_CORRUPT && err.text[0] && answer.lines.count == 0);
		return 0;
	}
	for (size_t i = 0; i < answer.lines.count; i++) {
		const char *key = answer.lines.items[i].key, *value = answer.lines.items[i].value;
		check(strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(key));
		for (const char *c = value; *c; c++)
			check((unsigned char)*c >= 0x20 && *c != 0x7f);
		check(answer_get(&answer, key) != NULL);
		total += strlen(key) + strlen(value) + 2;
	}
	check(total == size);
	return 0;
}
