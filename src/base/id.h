/* id.h -- random names. 20 characters of [0-9a-v] (100 bits from getrandom), sorted by nothing. */
#pragma once
#define ID_LEN 20
void id_make(char out[ID_LEN + 1]);
bool id_is_valid(const char *text);
/* Random bytes of the kernel, for names and secrets; without them the process ends. */
void id_random(void *out, size_t len);
