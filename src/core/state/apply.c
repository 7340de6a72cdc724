#include "core/state/apply.h"

#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/access/policies.h"
#include "core/files/files_ask.h"
#include "core/state/diff.h"

struct application {
	struct cancelable cancelable;	  /* of the target */
	struct cancelable reading;	  /* of the source */
	struct core_workspace *from, *to; /* held */
	bool is_dry;
	char stage[FILES_STAGE_SIZE]; /* "": none yet */
	core_apply_fn *done;
	void *ctx;
	struct error err;
};

static void finish(
	struct application *a, const struct core_applied *applied, const struct error *err)
{
	struct core_workspace *from = a->from, *to = a->to;
	a->done(a->ctx, err ? NULL : applied, err);
	cancelable_done(&a->cancelable);
	cancelable_done(&a->reading);
	free(a);
	core_release(from);
	core_release(to);
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct application *a = ctx;
	finish(a, NULL, &a->err);
}

/* ---- the answer, which comes from an untrusted process ---- */

/* As enum bundle_result of trees/stacks/bundle.h. */
static const char *const results[] = { "applied", "same", "conflict", "refused" };

static bool is_path(struct arena *arena, struct str name)
{
	return name.len && name.len < FILE_PATH_MAX && !memchr(name.data, 0, name.len) &&
	       path_is_normal(arena_printf(arena, "/%.*s", (int)name.len, name.data));
}

static bool take_change(struct str *rest, struct arena *arena, struct core_applied *applied)
{
	struct file_entry info;
	struct str name, reason;
	if (!file_take_entry(rest, &info, &name, &reason))
		return false;
	unsigned letter = info.reserved & 0xff, result = info.reserved >> 8;
	if (!is_path(arena, name) || !letter || !strchr("AMDT", (int)letter) ||
		result >= sizeof results / sizeof *results || memchr(reason.data, 0, reason.len))
		return false;
	bool is_taken = result == 0;
	applied->applied += is_taken && applied->is_applied;
	applied->conflicts += result == 2;
	vec_push(arena, &applied->changes,
		(struct core_applied_change){ .path = arena_bytes(arena, name.data, name.len),
			.type = path_type(info.mode),
			.change = { (char)letter },
			.result = is_taken && !applied->is_applied ? "pending" : results[result],
			.reason =
				reason.len ? arena_bytes(arena, reason.data, reason.len) : NULL });
	return true;
}

static bool take_answer(
	const struct file_answer *answer, struct arena *arena, struct core_applied *applied)
{
	struct str rest = answer->infos;
	applied->is_applied = answer->reply.flags & FILE_APPLIED;
	while (rest.len)
		if (!take_change(&rest, arena, applied))
			return false;
	return applied->changes.count == answer->reply.count;
}

static void tell(const struct application *a, const struct core_applied *applied)
{
	char count[24];
	str_format(count, sizeof count, "%zu", applied->applied);
	if (applied->is_applied)
		journal_emit(&a->to->core->journal, "workspace.applied", a->to->model.id,
			a->to->model.name, "from", a->from->model.id, "#changes", count, NULL);
}

static void on_answer(void *ctx, const struct file_answer *answer, const struct error *failed)
{
	struct application *a = ctx;
	struct core_workspace *to = a->to;
	auto_arena struct arena arena = { 0 };
	struct core_applied applied = { 0 };
	struct error err = failed ? *failed : (struct error){ 0 };
	if (a->stage[0])
		files_forget_stage(to, a->stage, "", failed != NULL);
	if (failed && err.sys_errno == EDQUOT)
		files_over_limit(to, &err);
	if (!failed && !take_answer(answer, &arena, &applied))
		fail(&err, ERR_UNAVAILABLE,
			"the file agent of workspace '%s' sent an invalid answer", to->model.name);
	if (err.code) {
		finish(a, NULL, &err);
		return;
	}
	if (applied.is_applied) {
		uint64_t most = files_room(to), bytes = answer->reply.bytes;
		files_charge(to, bytes < most ? bytes : most);
		tell(a, &applied);
	}
	fault_point("core_apply_answer");
	finish(a, &applied, NULL);
}

/* ---- the request ---- */

static void on_bundle(void *ctx, int fd, uint64_t size, const struct error *err)
{
	struct application *a = ctx;
	auto_close int bundle = fd;
	char stage[FILES_STAGE_SIZE];
	if (err) {
		finish(a, NULL, err);
		return;
	}
	files_make_stage(stage);
	if (lseek(bundle, 0, SEEK_SET) < 0)
		fail_errno(&a->err, "read the changes");
	else if (!cancelable_check(&a->cancelable, &a->err) &&
		 !files_note_stage(a->to, stage, "", &a->err)) {
		memcpy(a->stage, stage, sizeof stage);
		const struct file_ask ask = { .verb = FILE_APPLY,
			.path = "",
			.text = stage,
			.flags = a->is_dry ? FILE_DRY : 0,
			.fd = take_fd(&bundle) };
		file_ask(a->to, &ask, on_answer, a);
		return;
	}
	finish(a, NULL, &a->err);
}

struct cancelable *core_apply(const struct request *request, struct core_workspace *from,
	struct core_workspace *to, const struct core_apply *wanted, core_apply_fn *done, void *ctx)
{
	struct application *a = xzalloc(sizeof *a);
	const struct core_diff diff = {
		.is_bundle = true,
		.paths = wanted->paths,
		.snapshot = wanted->snapshot,
		.owner = &a->cancelable,
	};
	*a = (struct application){ .cancelable.core = from->core,
		.from = from,
		.to = to,
		.is_dry = wanted->is_dry,
		.done = done,
		.ctx = ctx };
	core_hold(from);
	core_hold(to);
	cancelable_use(&a->cancelable, to, "changes of another workspace are being applied to it");
	cancelable_use(&a->reading, from, "its changes are being applied to another workspace");
	if (from == to)
		fail_hint(&a->err, ERR_INVALID, "name another workspace",
			"workspace '%s' can't be the source and the target", from->model.name);
	else if (!files_enter(request, VERB_WORKSPACE_APPLY, to, &a->err) &&
		 !policies_judge_file(request, to, POLICY_WRITE, "", true, &a->err) &&
		 !policies_judge_file(request, to, POLICY_DELETE, "", true, &a->err)) {
		core_diff(request, from, &diff, on_bundle, a);
		return &a->cancelable;
	}
	core_later(from->core, on_refused, a, NULL, &a->err);
	return &a->cancelable;
}
