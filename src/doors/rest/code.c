/* POST /v1/code */
#include <stdlib.h>
#include "doors/call.h"
#include "doors/rest/schema.h"
#include "services/code.h"

#define ANSWER_BYTES_MAX ((size_t)64 << 20)

struct code_operation {
	struct operation op;
	struct code_job *job;
};

static void on_done(void *ctx, const struct code_answer *answer, const struct error *err)
{
	auto_buf struct buf body = buf_empty(ANSWER_BYTES_MAX);
	struct json j = json_to(&body, false);
	if (err) {
		operation_fail(ctx, err);
		return;
	}
	code_print_answer(&j, answer);
	operation_answer(ctx, 200, NULL, &body);
}

static void on_gone(struct call *c)
{
	struct code_operation *op = c->priv;
	code_cancel(op->job);
	free(op);
}

int api_code_run(struct call *c, struct error *err)
{
	struct code_operation *op = operation_new(c, sizeof *op);
	struct error why;
	op->job = code_run(c->request, c->api->core, c->body, on_done, op, &why);
	if (op->job)
		c->gone = on_gone;
	else
		operation_fail(&op->op, &why);
	return 0;
}
