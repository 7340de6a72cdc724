/* An Authorization header: what passes for a token has its form, and prints as the same. */
#include "format/http/token.h"

#include <string.h>
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = token_of_header((struct str){ (const char *)data, size });
	unsigned char random[TOKEN_RANDOM_BYTES] = { 0 };
	char made[TOKEN_LEN + 1];
	check(!text.data || (text.len && text.len < size));
	if (text.data && token_is_whole(text))
		check(text.len == TOKEN_LEN && !memchr(text.data, '\n', text.len));
	memcpy(random, data, size < sizeof random ? size : sizeof random);
	token_print(random, made);
	check(strlen(made) == TOKEN_LEN && token_is_whole(str_from(made)));
	return 0;
}
