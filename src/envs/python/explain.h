/* explain.h -- why a build failed. All but the predicate set the error and making->problem; -1,
 * unless they say otherwise. */
#pragma once
#include "envs/python/internal.h"
#include "format/packages/uv_error.h"

/* The deadline has passed: names the host that could not be reached, if there was one. */
int making_timeout(struct making *making, struct error *err);
/* The stage holds more than max_install_bytes allows. */
int making_too_large(struct making *making, struct error *err);
/* 1 when the forwarder knows of a host that it could not reach. 0: it doesn't; nothing is set. */
int making_unreachable(struct making *making, struct error *err);
/* That host's name could not be resolved: another attempt takes long and rarely helps. */
bool making_is_unresolved(const struct making *making);
/* uv exited with an error: `said` is the parsed form of making->said. */
int making_explain_uv(struct making *making, const struct uv_error *said, struct error *err);
/* 0, and nothing is set: the job exited. -1: a limit, an interrupt or a signal ended it. */
int making_explain_end(struct making *making, const struct job_result *result, struct error *err);
