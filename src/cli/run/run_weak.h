/* run_weak.h -- `carrel run --isolation landlock`: for hosts where no user namespace can be made.
 */
#pragma once
#include "cli/cli.h"
#include "sandbox/native/host.h"
#include "sandbox/plan/plan.h"

bool run_weak_is_asked(const struct options *run);
/* Refuses, by its name, an option that needs namespaces or mounts; before anything is done for it.
 */
int run_weak_check(const struct options *run, struct error *err);
/* Makes the plan of plan_build one without namespaces. */
int run_weak_plan(const struct options *run, const struct plan_options *options,
	const struct host *host, struct arena *arena, struct plan *plan, struct error *err);
/* Says on stderr that the command has less isolation, unless the result is JSON. */
void run_weak_say(const struct plan *plan);
/* An error of a run with namespaces: where they can't be made, the hint names the weaker way. */
void run_weak_hint(struct error *err);
