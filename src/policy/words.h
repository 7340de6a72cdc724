/* words.h -- whether a word is in a text with blanks between its words. */
#pragma once

/* word may be NULL: false. */
bool words_have(const char *words, const char *word);
/* The first `len` bytes of `word`, which needs no NUL. */
bool words_have_part(const char *words, const char *word, size_t len);
