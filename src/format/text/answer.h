/* answer.h -- what our small scripts print, and what we keep of it: "key value" lines. Pure.
 * Keys are [a-z0-9_], one space, then the value: UTF-8 without control characters, may be empty.
 * Every line ends with a newline. A key may come several times. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

#define ANSWER_MAX ((size_t)1 << 20)
#define ANSWER_KEY_MAX 32
#define ANSWER_VALUE_MAX 4096

struct answer_line {
	const char *key, *value;
};
struct answer {
	VEC(struct answer_line) lines;
};
/* ERR_CORRUPT names the line. */
int answer_parse(struct str text, struct arena *arena, struct answer *out, struct error *err);
/* The first value of `key`, or NULL. */
const char *answer_get(const struct answer *answer, const char *key);
