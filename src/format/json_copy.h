/* json_copy.h -- a value that was read, written again. Pure. */
#pragma once
#include "format/json.h"
#include "format/json_read.h"

/* Numbers that aren't integers are written with three decimals, as json_real does. */
void json_copy(struct json *j, const char *key, const struct json_value *value);
