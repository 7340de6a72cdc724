/* Quantities: whatever is typed, a value in range or an error that is safe to show. */
#include <string.h>
#include "base/arena.h"
#include "base/str.h"
#include "format/text/quantity.h"
#include "fuzz.h"

#define UNTOUCHED 0xdeadbeefcafe

/* An answer is 0 and a value up to `most`, or -1, the value untouched and one line of text. */
static void check_answer(int answer, uint64_t value, uint64_t most, const struct error *err)
{
	if (answer == 0) {
		check(value <= most);
		return;
	}
	check(answer == -1 && value == UNTOUCHED && err->code == ERR_INVALID);
	size_t len = strlen(err->text);
	check(len > 0 && str_utf8_prefix(err->text, len) == len);
	for (size_t i = 0; i < len; i++)
		check((unsigned char)err->text[i] >= 0x20 && err->text[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena;
	struct error err = { 0 };
	uint64_t value, least = 0, most = UINT64_MAX;
	char shown[16];

	arena_init(&arena);
	char *text = arena_bytes(&arena, (const char *)data, size);
	value = UNTOUCHED;
	int answer = quantity_parse_size(text, &value, &err);
	check_answer(answer, value, INT64_MAX, &err);
	value = UNTOUCHED;
	answer = quantity_parse_duration(text, &value, &err);
	check_answer(answer, value, 3155760000000, &err);
	value = UNTOUCHED;
	answer = quantity_parse_cpus(text, &value, &err);
	check_answer(answer, value, 4096000, &err);
	if (size >= 16) {
		memcpy(&least, data, 8);
		memcpy(&most, data + 8, 8);
		text += 16;
	}
	value = UNTOUCHED;
	answer = quantity_parse_count(text, least, most, &value, &err);
	check_answer(answer, value, most, &err);
	check(answer < 0 || value >= least);

	/* What is shown to people is read back within its rounding. */
	quantity_format_size(shown, least);
	check(strlen(shown) <= 6);
	if (quantity_parse_size(shown, &value, NULL) == 0)
		check((value > least ? value - least : least - value) <= least / 16);
	return 0;
}
