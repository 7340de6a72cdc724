#include "core/state/diff.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "core/access/policies.h"
#include "core/state/internal.h"
#include "core/state/snapshots.h"
#include "core/tree_jobs.h"
#include "format/http/uri.h"
#include "model/nouns/part.h"

struct comparison {
	struct core_workspace *w;
	int output;
	core_diff_fn *done;
	void *ctx;
	text_list base; /* the layers that w was made with */
	struct error err;
};

static void finish(struct comparison *c, const struct error *err)
{
	struct core_workspace *w = c->w;
	struct stat st = { 0 };
	if (!err && fstat(c->output, &st)) {
		fail_errno(&c->err, "look at the differences");
		err = &c->err;
	}
	c->done(c->ctx, err ? -1 : take_fd(&c->output), (uint64_t)st.st_size, err);
	fd_close(&c->output);
	free(c);
	core_release(w);
}

static void on_compared(void *ctx, const struct json_value *answer, const struct error *err)
{
	finish(ctx, err);
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct comparison *c = ctx;
	finish(c, &c->err);
}

/* In a part that lies outside the directory of the workspace. */
static bool is_outside(const char *path, enum workspace_view view)
{
	for (size_t i = 0; i < WORKSPACE_PARTS; i++)
		if (workspace_parts[i].prefix[0] == '/' &&
			path_is_beneath(path, workspace_parts[i].target[view]))
			return true;
	return false;
}

/* As the job names it: from the workspace's directory on, or with the prefix of another part. */
static int normalize(const struct workspace *model, struct arena *arena, bool has_others,
	const char *given, const char **path, struct error *err)
{
	const char *root = plan_view_path(model->view);
	const char *whole = path_normalize(arena, root, given);
	if (has_others && is_outside(whole, model->view)) {
		*path = whole;
		return 0;
	}
	if (!path_is_beneath(whole, root))
		return fail(err, ERR_INVALID, "'%s' is not below /workspace%s", given,
			has_others ? " or /env" : "");
	whole += strlen(root);
	*path = whole + (whole[0] == '/');
	return 0;
}

static int print_options(const struct workspace *model, const struct core_diff *wanted,
	struct arena *arena, struct buf *out, struct error *err)
{
	struct json j = json_to(out, false);
	json_object(&j, NULL);
	json_bool(&j, "patch", wanted->is_patch);
	json_bool(&j, "bundle", wanted->is_bundle);
	json_bool(&j, "all", wanted->has_all);
	json_array(&j, "paths");
	for (size_t i = 0; i < wanted->paths.count; i++) {
		const char *path = NULL;
		if (normalize(model, arena, !wanted->is_bundle, wanted->paths.items[i], &path, err))
			return -1;
		/* A name may hold any bytes. */
		json_text(&j, NULL, uri_encode(arena, str_from(path), true));
	}
	json_end(&j);
	json_end(&j);
	return 0;
}

/* Their uppers lie on the same packages: else files of those would seem to be changed. */
static bool has_same_environments(const struct core_workspace *w, const struct core_snapshot *s)
{
	return environment_names_are_same(&s->model.environments, &w->model.environments);
}

/* The snapshot that the state of w is based on. A fork of w freezes what was changed since then,
 * which is still a change. NULL: it has none, or that of the workspace that it was made of. */
static struct core_snapshot *find_last(const struct core_workspace *w)
{
	struct core_snapshot *s =
		w->model.snapshot ? map_get(&w->core->state->snapshots, str_from(w->model.snapshot))
				  : NULL;
	return s && !strcmp(s->model.workspace, w->model.id) ? s : NULL;
}

/* false: not known, since it was made by an earlier version. */
static bool find_base(const struct workspace *model, text_list *base)
{
	const text_list *layers = &model->layers;
	size_t at = 0;
	if (!model->base)
		return false;
	while (at < layers->count && strcmp(layers->items[at], model->base) != 0)
		at++;
	if (at == layers->count && strcmp(model->base, WORKSPACE_BASE_NONE) != 0)
		return false;
	*base = (text_list){ layers->items + at, layers->count - at, layers->count - at };
	return true;
}

/* The layers of the older state. */
static int find_before(const struct request *request, struct comparison *c,
	const struct core_diff *wanted, const text_list **layers, struct error *err)
{
	struct core_workspace *w = c->w;
	struct core_snapshot *s;
	*layers = &w->model.layers;
	if (!wanted->snapshot) {
		s = find_last(w);
		if (s && (!wanted->has_all || has_same_environments(w, s)))
			*layers = &s->model.layers;
		/* Which environments it was made with isn't kept. */
		else if (!s && !wanted->has_all && find_base(&w->model, &c->base))
			*layers = &c->base;
		return 0;
	}
	if (snapshot_of(request, w, wanted->snapshot, &s, err))
		return -1;
	if (wanted->has_all && !has_same_environments(w, s))
		return fail_hint(err, ERR_CONFLICT,
			"compare the workspace's files only: leave out 'all'",
			"snapshot '%s' has another environment than workspace '%s'",
			wanted->snapshot, w->model.name);
	*layers = &s->model.layers;
	return 0;
}

static int begin(struct comparison *c, const struct request *request,
	const struct core_diff *wanted, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf options = buf_empty(1 << 20);
	text_list names = { 0 };
	const text_list *before;
	if (print_options(&c->w->model, wanted, &arena, &options, err) ||
		find_before(request, c, wanted, &before, err))
		return -1;
	/* A bundle may be as large as the workspace: core keeps it in a file, not in memory. */
	c->output = wanted->is_bundle ? openat(c->w->core->workspaces, ".",
						O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600)
				      : memfd_create("differences", MFD_CLOEXEC);
	if (c->output < 0)
		return fail_errno(err, "create a file for the differences");
	vec_push(&arena, &names, c->w->model.id);
	vec_push(&arena, &names, "");
	parts_add_list(&arena, &names, &c->w->model.layers);
	parts_add_list(&arena, &names, before);
	if (wanted->has_all)
		parts_add_packages(c->w, &arena, &names);
	const struct tree_job_order order = { .verb = "diff",
		.names = names.items,
		.name_count = names.count,
		.options = { options.data, options.len },
		.input = -1,
		.output = c->output,
		.request_id = request->id,
		.owner = wanted->owner };
	tree_job_start(c->w->core, &order, on_compared, c);
	return 0;
}

void core_diff(const struct request *request, struct core_workspace *w,
	const struct core_diff *wanted, core_diff_fn *done, void *ctx)
{
	struct comparison *c = xzalloc(sizeof *c);
	*c = (struct comparison){ .w = w, .output = -1, .done = done, .ctx = ctx };
	core_hold(w);
	if (access_check(w->core, request, VERB_WORKSPACE_DIFF, w, &c->err) ||
		workspace_check_own_tree(w, "compared", &c->err) ||
		policies_judge_file(request, w, POLICY_READ, "", true, &c->err) ||
		begin(c, request, wanted, &c->err))
		core_later(w->core, on_refused, c, w, &c->err);
}
