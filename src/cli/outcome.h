/* outcome.h -- how a command ended, said to people. */
#pragma once
#include "base/buf.h"
#include "model/limits.h"
#include "model/result.h"

/* One line on stderr says which limit it was, if it was one: an exit code alone is easily taken for
 * the command's. `limits`: what was in force; 0 where it isn't known. */
void outcome_explain(const struct result *result, const struct limits *limits);
/* The result as JSON, with what was captured. limiter: by what the limits were kept, or NULL. */
void outcome_print(const struct result *result, const struct buf *out, const struct buf *errors,
	const char *limiter, struct buf *text);
