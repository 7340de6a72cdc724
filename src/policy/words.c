#include "policy/words.h"

bool words_have_part(const char *words, const char *word, size_t len)
{
	if (!len || memchr(word, ' ', len))
		return false;
	while (*words) {
		size_t same = 0;
		while (same < len && words[same] == word[same])
			same++;
		if (same == len && (!words[len] || words[len] == ' '))
			return true;
		words += same;
		while (*words && *words != ' ')
			words++;
		words += *words == ' ';
	}
	return false;
}

bool words_have(const char *words, const char *word)
{
	return word && words_have_part(words, word, strlen(word));
}
