/* words.h -- whether a word is in a list. */
#pragma once
#include <stdbool.h>
#include <string.h>

/* In a text with blanks between its words; the first `len` bytes of `word`. */
bool words_have(const char *words, const char *word);
bool words_have_part(const char *words, const char *word, size_t len);
/* In a list that NULL ends. name may be NULL: false. */
bool is_among(const char *const *names, const char *name);
