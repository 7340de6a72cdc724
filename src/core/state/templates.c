#include "core/state/templates.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "core/blobs.h"
#include "core/internal.h"
#include "core/state/template_builds.h"
#include "core/state/template_fetch.h"
#include "core/state/template_store.h"

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
		!core->templates_outside)
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
	const char *name;
	bool was_there;
	template_changed_fn *done;
	void *ctx;
};

static struct change *change_new(struct core *core, template_changed_fn *done, void *ctx)
{
	struct change *change = xzalloc(sizeof *change);
	*change = (struct change){ .core = core, .done = done, .ctx = ctx };
	return change;
}

static void change_end(struct change *change, const struct error *err)
{
	change->done(change->ctx, err ? NULL : &change->shown, change->was_there, err);
	arena_done(&change->arena);
	free(change);
}

static void on_settled(void *ctx, struct core_workspace *w, const struct error *err)
{
	change_end(ctx, err);
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

static void on_put(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct change *change = ctx;
	struct error why;
	if (err) {
		why = *err;
		error_context(&why, "keep template '%s'", change->name);
		change_end(change, &why);
		return;
	}
	fault_point("core_template_put");
	template_copy_put(change->core, change->name, change->yaml);
	journal_emit(&change->core->journal, "template.added", "", change->name, NULL);
	change_end(change, NULL);
}

static int put_outside(struct change *change, const char *request_id, struct error *err)
{
	struct str yaml = change->yaml;
	auto_close int memory = memfd_create("template", MFD_CLOEXEC);
	if (memory < 0 || fd_write_full(memory, yaml.data, yaml.len) != (ssize_t)yaml.len ||
		lseek(memory, 0, SEEK_SET) < 0)
		return fail_errno(err, "keep template '%s' in memory", change->name);
	struct blob_order order = { .verb = BLOB_PUT,
		.key = template_key(&change->arena, change->name),
		.words = blob_words_none(),
		.data = memory,
		.request_id = request_id };
	order.words.size = yaml.len;
	blob_job_start(change->core, &order, on_put, change);
	return 0;
}

/* Keeps it in the home; outside, on_put goes on. */
static int put(struct change *change, const char *request_id, struct error *err)
{
	struct core *core = change->core;
	const char *key = template_key(&change->arena, change->name);
	struct blob_info info;
	struct error why;
	auto_blob struct blob_store store = { 0 };
	if (template_blobs(core->home.dir, &store, err))
		return -1;
	change->was_there = !blob_head(&store, key, &info, &why);
	if (!change->was_there && count_users(&store, &change->arena, err))
		return -1;
	if (core->templates_outside)
		return put_outside(change, request_id, err);
	if (blob_put_text(&store, key, change->yaml, false, err))
		return -1;
	journal_emit(&core->journal, "template.added", "", change->name, NULL);
	return 0;
}

void core_template_add(const struct request *request, struct core *core, struct str yaml,
	bool is_check, template_changed_fn *done, void *ctx)
{
	struct change *change = change_new(core, done, ctx);
	struct error err;
	change->yaml = (struct str){ arena_bytes(&change->arena, yaml.data, yaml.len), yaml.len };
	int failed =
		access_check(core, request, is_check ? VERB_TEMPLATE_GET : VERB_TEMPLATE_ADD, NULL,
			&err) ||
		template_look(core->home.dir, change->yaml, &change->arena, &change->shown, &err);
	change->name = change->shown.model.name;
	if (!failed && !is_check && put(change, request->id, &err))
		failed = error_context(&err, "keep template '%s'", change->name);
	if (failed || is_check || !core->templates_outside)
		core_later(core, on_settled, change, NULL, failed ? &err : NULL);
}

static void on_deleted(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct change *change = ctx;
	struct error why;
	if (err) {
		why = *err;
		error_context(&why, "remove template '%s'", change->name);
		change_end(change, &why);
		return;
	}
	fault_point("core_template_deleted");
	template_copy_remove(change->core, change->name);
	journal_emit(&change->core->journal, "template.removed", "", change->name, NULL);
	change_end(change, NULL);
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

/* Removes it from the home; outside, on_deleted goes on. */
static int remove_kept(struct change *change, const char *request_id, struct error *err)
{
	struct core *core = change->core;
	auto_blob struct blob_store store = { 0 };
	struct blob_order order = { .verb = BLOB_DELETE,
		.key = template_key(&change->arena, change->name),
		.words = blob_words_none(),
		.data = -1,
		.request_id = request_id };
	if (template_blobs(core->home.dir, &store, err) || check_removal(change, &store, err))
		return -1;
	if (core->templates_outside) {
		blob_job_start(core, &order, on_deleted, change);
		return 0;
	}
	if (blob_delete(&store, order.key, err))
		return error_context(err, "remove template '%s'", change->name);
	template_build_forget(core, change->name);
	journal_emit(&core->journal, "template.removed", "", change->name, NULL);
	return 0;
}

void core_template_remove(const struct request *request, struct core *core, const char *name,
	template_changed_fn *done, void *ctx)
{
	struct change *change = change_new(core, done, ctx);
	struct error err;
	change->name = arena_text(&change->arena, name);
	int failed = access_check(core, request, VERB_TEMPLATE_REMOVE, NULL, &err) ||
		     template_check_name(name, &err) || remove_kept(change, request->id, &err);
	if (failed || !core->templates_outside)
		core_later(core, on_settled, change, NULL, failed ? &err : NULL);
}
