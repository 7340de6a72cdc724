/* base64.h -- RFC 4648 base64 back to bytes, strictly. Pure. */
#pragma once
#include "base/arena.h"
#include "base/str.h"

/* Padded, no line breaks, no bits set that padding drops: what json_base64 writes, and nothing
 * else. false: it isn't. *bytes is NUL-terminated too. */
bool base64_decode(struct str text, struct arena *arena, struct str *bytes);
/* 0 to 63; `last` are the digits 62 and 63: "+/", or "-_" in URLs. -1: not a digit. */
int base64_digit(char c, const char last[2]);
