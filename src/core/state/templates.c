#include "core/state/templates.h"

#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/state/internal.h"
#include "core/state/template_builds.h"
#include "core/state/template_fetch.h"
#include "core/state/template_store.h"
#include "core/waits.h"

int core_template_get(const struct request *request, struct core *core, const char *name,
	struct arena *arena, struct template_shown *out, struct error *err)
{
	return access_check(core, request, VERB_TEMPLATE_GET, NULL, err) ||
			       template_find(core->home.dir, name, arena, out, err)
		       ? -1
		       : 0;
}

int core_template_list(const struct request *request, struct core *core, struct arena *arena,
	template_list *out, struct error *err)
{
	text_list names = { 0 };
	if (access_check(core, request, VERB_TEMPLATE_LIST, NULL, err) ||
		template_names(core->home.dir, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct template_shown shown = { 0 };
		struct error why;
		if (template_find(core->home.dir, names.items[i], arena, &shown, &why)) {
			shown = (struct template_shown){
				.model = { .name = names.items[i] }, .origin = "user", .sha256 = ""
			};
			vec_push(arena, &shown.warnings, arena_text(arena, why.text));
		}
		shown.yaml = NULL;
		vec_push(arena, out, shown);
	}
	return 0;
}

/* ---- where they lie ---- */

bool core_template_fetch(
	const struct request *request, struct core *core, core_workspace_fn *done, void *ctx)
{
	struct error ignored; /* the verb that follows says it */
	if (access_check(core, request, VERB_TEMPLATE_FETCH, NULL, &ignored) ||
		!core->state->templates_outside)
		return false;
	template_fetch(core, request->id, done, ctx);
	return true;
}

/* ---- add and remove ---- */

struct change {
	struct core *core;
	struct arena arena;
	struct template_shown shown;
	struct str yaml;
	const char *name, *request_id;
	bool is_check; /* nothing is kept */
	bool was_there;
	struct error refused; /* code ERR_NONE: it may be made */
	template_changed_fn *done;
	void *ctx;
};

static struct change *change_new(
	const struct request *request, struct core *core, template_changed_fn *done, void *ctx)
{
	struct change *change = xzalloc(sizeof *change);
	*change = (struct change){ .core = core, .done = done, .ctx = ctx };
	change->request_id = arena_text(&change->arena, request->id);
	return change;
}

static void change_end(struct fiber *fiber, struct change *change, const struct error *err)
{
	wait_turn(fiber, change->core);
	change->done(change->ctx, err ? NULL : &change->shown, change->was_there, err);
	arena_done(&change->arena);
	free(change);
}

static int count_users(struct blob_store *store, struct arena *arena, struct error *err)
{
	blob_rows rows = { 0 };
	if (blob_list(store, TEMPLATE_PREFIX, arena, &rows, err))
		return -1;
	return rows.count >= TEMPLATES_MAX
		       ? fail_hint(err, ERR_LIMIT, "carrel template rm removes one",
				 "there are %d templates already", TEMPLATES_MAX)
		       : 0;
}

static int put_outside(
	struct fiber *fiber, struct change *change, const char *key, struct error *err)
{
	auto_close int memory = file_in_memory("template", change->yaml);
	struct blob_order order = blob_order_make(BLOB_PUT, key, change->request_id, NULL);
	if (memory < 0)
		return fail_errno(err, "keep template '%s' in memory", change->name);
	order.data = memory;
	order.words.size = change->yaml.len;
	if (wait_blob_job(fiber, change->core, &order, NULL, err))
		return -1;
	fault_point("core_template_put");
	template_copy_put(change->core, change->name, change->yaml);
	return 0;
}

static int put(struct fiber *fiber, struct change *change, struct error *err)
{
	struct core *core = change->core;
	const char *key = template_key(&change->arena, change->name);
	struct blob_info info;
	struct error why;
	auto_blob struct blob_store store = { 0 };
	if (template_blobs(core->home.dir, &store, err))
		return -1;
	change->was_there = !blob_head(&store, key, &info, &why);
	if ((!change->was_there && count_users(&store, &change->arena, err)) ||
		(core->state->templates_outside
				? put_outside(fiber, change, key, err)
				: blob_put_text(&store, key, change->yaml, false, err)))
		return -1;
	journal_emit(&core->journal, "template.added", "", change->name, NULL);
	return 0;
}

static void run_add(struct fiber *fiber, void *ctx)
{
	struct change *change = ctx;
	struct error err = change->refused;
	int failed = err.code != 0;
	if (!failed && !change->is_check && put(fiber, change, &err))
		failed = error_context(&err, "keep template '%s'", change->name);
	change_end(fiber, change, failed ? &err : NULL);
}

void core_template_add(const struct request *request, struct core *core, struct str yaml,
	bool is_check, template_changed_fn *done, void *ctx)
{
	struct change *change = change_new(request, core, done, ctx);
	enum verb verb = is_check ? VERB_TEMPLATE_GET : VERB_TEMPLATE_ADD;
	change->is_check = is_check;
	change->yaml = (struct str){ arena_bytes(&change->arena, yaml.data, yaml.len), yaml.len };
	if (!access_check(core, request, verb, NULL, &change->refused))
		template_look(core->home.dir, change->yaml, &change->arena, &change->shown,
			&change->refused);
	change->name = change->shown.model.name;
	fiber_start(run_add, change);
}

/* Whether there is one of a user. */
static int check_removal(struct change *change, const struct blob_store *store, struct error *err)
{
	struct blob_info info;
	struct error why;
	if (!blob_head(store, template_key(&change->arena, change->name), &info, &why))
		return 0;
	if (why.code != ERR_NOT_FOUND) {
		*err = why;
		return error_context(err, "remove template '%s'", change->name);
	}
	if (template_shipped(change->name))
		return fail_hint(err, ERR_CONFLICT,
			"a template of that name that you add is used instead of it",
			"template '%s' is shipped with carrel and can't be removed", change->name);
	fail(err, ERR_NOT_FOUND, "there is no template '%s'", change->name);
	template_hint(change->core->home.dir, change->name, &change->arena, err);
	return -1;
}

static int remove_outside(
	struct fiber *fiber, struct change *change, const char *key, struct error *err)
{
	const struct blob_order order = blob_order_make(BLOB_DELETE, key, change->request_id, NULL);
	if (wait_blob_job(fiber, change->core, &order, NULL, err))
		return -1;
	fault_point("core_template_deleted");
	template_copy_remove(change->core, change->name);
	return 0;
}

static int remove_kept(struct fiber *fiber, struct change *change, struct error *err)
{
	struct core *core = change->core;
	const char *key = template_key(&change->arena, change->name);
	auto_blob struct blob_store store = { 0 };
	if (template_blobs(core->home.dir, &store, err) || check_removal(change, &store, err))
		return -1;
	if (core->state->templates_outside ? remove_outside(fiber, change, key, err)
					   : blob_delete(&store, key, err))
		return error_context(err, "remove template '%s'", change->name);
	template_build_forget(core, change->name);
	journal_emit(&core->journal, "template.removed", "", change->name, NULL);
	return 0;
}

static void run_removal(struct fiber *fiber, void *ctx)
{
	struct change *change = ctx;
	struct error err = change->refused;
	int failed = err.code || remove_kept(fiber, change, &err);
	change_end(fiber, change, failed ? &err : NULL);
}

void core_template_remove(const struct request *request, struct core *core, const char *name,
	template_changed_fn *done, void *ctx)
{
	struct change *change = change_new(request, core, done, ctx);
	change->name = arena_text(&change->arena, name);
	if (!access_check(core, request, VERB_TEMPLATE_REMOVE, NULL, &change->refused))
		template_check_name(name, &change->refused);
	fiber_start(run_removal, change);
}
