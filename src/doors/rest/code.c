/* POST /v1/code */
#include "doors/rest/handlers.h"
#include "services/code.h"

#define ANSWER_BYTES_MAX ((size_t)64 << 20)

struct pending_code {
	struct pending op;
	struct code_job *job;
};

static void on_done(void *ctx, const struct code_answer *answer, const struct error *err)
{
	auto_buf struct buf body = buf_empty(ANSWER_BYTES_MAX);
	struct json j = json_to(&body, false);
	if (err) {
		pending_fail(ctx, err);
		return;
	}
	code_print_answer(&j, answer);
	pending_answer(ctx, 200, NULL, &body);
}

static void on_gone(struct call *c)
{
	struct pending_code *op = c->priv;
	code_cancel(op->job);
	free(op);
}

static int api_code_run(struct call *c, struct error *err)
{
	struct pending_code *op = pending_new(c, sizeof *op);
	op->job = code_run(c->request, c->api->core, c->body, on_done, op, err);
	if (op->job)
		c->gone = on_gone;
	return pending_check(&op->op, !op->job);
}

const struct handler code_handlers[] = { { "runCode", api_code_run }, { 0 } };
