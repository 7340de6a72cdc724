/* /v1/workspaces/{id}/diff */
#include <unistd.h>
#include "api/call.h"
#include "api/schema.h"
#include "core/diff.h"

struct diffing {
	struct operation op;
	bool is_patch;
};

static void on_diff(void *ctx, int fd, uint64_t size, const struct error *err)
{
	struct diffing *diffing = ctx;
	const char *type = diffing->is_patch ? "text/x-patch" : "application/json";
	struct call *c = operation_end(&diffing->op);

	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (err) {
		call_problem(c, err);
		return;
	}
	c->status = 200;
	http_respond_file(
		c->r, c->status, type, "X-Content-Type-Options: nosniff\r\n", fd, 0, size);
}

int api_workspace_diff(struct call *c, struct error *err)
{
	const struct diff_query *query = c->query;
	const struct core_diff wanted = { .is_patch = query->patch,
		.has_all = query->all,
		.paths = query->paths,
		.snapshot = query->snapshot };
	struct core_workspace *w;

	if (call_workspace(c, &w, err))
		return -1;
	struct diffing *diffing = operation_new(c, sizeof *diffing);
	diffing->is_patch = query->patch;
	core_diff(c->request, w, &wanted, on_diff, diffing);
	return 0;
}
