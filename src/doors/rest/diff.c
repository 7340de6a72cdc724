/* /v1/workspaces/{id}/diff, changes, apply */
#include "core/state/apply.h"
#include "core/state/diff.h"
#include "doors/rest/handlers.h"

struct diffing {
	struct pending op;
	const char *type; /* of the answer */
};

static void on_diff(void *ctx, int fd, uint64_t size, const struct error *err)
{
	struct diffing *diffing = ctx;
	pending_answer_file(&diffing->op, diffing->type, fd, size, err);
}

static int api_workspace_diff(struct call *c, struct error *err)
{
	const struct diff_query *query = c->query;
	const struct core_diff wanted = { .is_patch = query->patch,
		.has_all = query->all,
		.paths = query->paths,
		.snapshot = query->snapshot };
	struct diffing *diffing = pending_new(c, sizeof *diffing);
	diffing->type = query->patch ? "text/x-patch" : "application/json";
	core_diff(c->request, c->workspace, &wanted, on_diff, diffing);
	return 0;
}

static int api_workspace_changes(struct call *c, struct error *err)
{
	const struct diff_query *query = c->query;
	const struct core_diff wanted = {
		.is_bundle = true, .paths = query->paths, .snapshot = query->snapshot
	};
	struct diffing *diffing = pending_new(c, sizeof *diffing);
	diffing->type = "application/x-tar";
	core_diff(c->request, c->workspace, &wanted, on_diff, diffing);
	return 0;
}

/* ---- apply ---- */

struct applying {
	struct pending op;
	bool is_dry;
	char to[WORKSPACE_NAME_MAX + 1];
};

static void print_changes(struct json *j, const void *ctx)
{
	const struct core_applied *applied = ctx;
	json_array(j, "changes");
	for (size_t i = 0; i < applied->changes.count; i++) {
		const struct core_applied_change *change = &applied->changes.items[i];
		size_t len = strlen(change->path);
		json_object(j, NULL);
		json_text(j, "path", change->path);
		if (str_utf8_prefix(change->path, len) != len)
			json_base64(j, "path_base64", change->path, len);
		json_text(j, "change", change->change);
		json_text(j, "type", change->type);
		json_text(j, "result", change->result);
		json_text(j, "reason", change->reason);
		json_end(j);
	}
	json_end(j);
}

static void on_applied(void *ctx, const struct core_applied *applied, const struct error *err)
{
	struct applying *applying = ctx;
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	struct error conflict;
	if (err) {
		if (err->code == ERR_LIMIT && applying->op.call)
			applying->op.call->problem = 507;
		pending_fail(&applying->op, err);
		return;
	}
	if (applied->conflicts && !applying->is_dry) {
		fail_hint(&conflict, ERR_CONFLICT,
			"each path is named in 'changes'; take other paths, or change the target",
			"%zu changes are conflicts in workspace '%s': nothing was applied",
			applied->conflicts, applying->to);
		struct call *c = pending_end(&applying->op);
		if (c)
			call_problem_more(c, &conflict, print_changes, applied);
		return;
	}
	json_object(&j, NULL);
	json_u64(&j, "applied", applied->applied);
	json_u64(&j, "conflicts", applied->conflicts);
	print_changes(&j, applied);
	json_end(&j);
	pending_answer(&applying->op, 200, NULL, &body);
}

static int api_workspace_apply(struct call *c, struct error *err)
{
	const struct apply_body *body = c->body;
	const struct core_apply wanted = {
		.paths = body->paths, .snapshot = body->snapshot, .is_dry = body->dry_run
	};
	struct core_workspace *from, *to;
	if (call_workspace(c, &from, err) ||
		core_find(c->request, c->api->core, body->to, &to, err))
		return -1;
	if (call_measure_first(c, to))
		return 0;
	struct applying *applying = pending_new(c, sizeof *applying);
	applying->is_dry = body->dry_run;
	str_copy(applying->to, sizeof applying->to, core_model(to)->name);
	pending_cancels(
		&applying->op, core_apply(c->request, from, to, &wanted, on_applied, applying));
	return 0;
}

const struct handler diff_handlers[] = { { "diffWorkspace", api_workspace_diff },
	{ "packChanges", api_workspace_changes }, { "applyChanges", api_workspace_apply }, { 0 } };
