/* problem.h -- errors as RFC 9457 problem JSON; one table says which status a code has. */
#pragma once
#include "base/buf.h"
#include "base/error.h"

/* The status that stands for a code. */
int problem_status(enum error_code code);
const char *problem_title(int status); /* "Not Found" */
/* {"type","title","status","code","detail","hint","request_id"}, and "exit_code" for a command that
 * can't be started. */
void problem_print(struct buf *out, int status, const struct error *err, const char *request_id);
