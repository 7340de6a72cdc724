#include "policy/words.h"

bool words_have_part(const char *words, const char *word, size_t len)
{
	for (const char *at = words; *at; at += *at == ' ') {
		size_t one = strcspn(at, " ");
		if (one == len && *at == *word && memcmp(at, word, len) == 0)
			return true;
		at += one;
	}
	return false;
}

bool words_have(const char *words, const char *word)
{
	return word && words_have_part(words, word, strlen(word));
}
