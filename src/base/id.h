/* id.h -- random names. 20 characters of [0-9a-v] (100 bits from getrandom), sorted by nothing. */
#pragma once
#include <stdbool.h>
#define ID_LEN 20
void id_make(char out[ID_LEN + 1]);
bool id_is_valid(const char *text);
