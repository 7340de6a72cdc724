/* code.h -- code that is run once: a workspace is made, the file and its tests are run there, and
 * the workspace is removed before the answer. */
#pragma once
#include "model/agents/code.h"
#include "services/services.h"

extern const struct service code_service;

struct code_part { /* one command; valid until the callback returns */
	const char *exec_id;
	struct result result;
	struct exec_output output;
	const char *limiter; /* or NULL */
};
struct code_answer {
	struct code_part code;
	enum code_verdict verdict; /* when has_tests */
	bool has_tests;
	bool has_run_tests; /* `tests` is set */
	struct code_part tests;
};
typedef void code_fn(void *ctx, const struct code_answer *answer, const struct error *err);
struct code_job;
/* Errors: of core_create, of the build of the packages, or that a command can't be started. *job is
 * valid until done is called. NULL: refused, *err says why, and done isn't called. */
core_verb struct code_job *code_run(const struct request *request, struct core *core,
	const struct code_wanted *wanted, code_fn *done, void *ctx, struct error *err);
/* The client is gone: what runs is killed, the workspace removed; done isn't called. */
void code_cancel(struct code_job *job);
void code_print_answer(struct json *j, const struct code_answer *answer);
