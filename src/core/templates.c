#include "core/templates.h"

#include <string.h>
#include "core/internal.h"
#include "core/template_builds.h"
#include "core/template_store.h"

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

int core_template_add(const struct request *request, struct core *core, struct str yaml,
	bool is_check, struct arena *arena, struct template_shown *out, bool *was_there,
	struct error *err)
{
	struct template_shown shown;
	struct blob_info info;
	struct error why;
	if (access_check(
		    core, request, is_check ? VERB_TEMPLATE_GET : VERB_TEMPLATE_ADD, NULL, err) ||
		template_look(core->home.dir, yaml, arena, &shown, err))
		return -1;
	*was_there = false;
	if (!is_check) {
		const char *key = template_key(arena, shown.model.name);
		auto_blob struct blob_store store = { 0 };
		if (template_blobs(core->home.dir, &store, err))
			return -1;
		*was_there = !blob_head(&store, key, &info, &why);
		if ((!*was_there && count_users(&store, arena, err)) ||
			blob_put_text(&store, key, yaml, false, err))
			return error_context(err, "keep template '%s'", shown.model.name);
		journal_emit(&core->journal, "template.added", "", shown.model.name, NULL);
	}
	*out = shown;
	return 0;
}

int core_template_remove(
	const struct request *request, struct core *core, const char *name, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct blob_info info;
	struct error why;
	auto_blob struct blob_store store = { 0 };
	if (access_check(core, request, VERB_TEMPLATE_REMOVE, NULL, err) ||
		template_check_name(name, err) || template_blobs(core->home.dir, &store, err))
		return -1;
	const char *key = template_key(&arena, name);
	if (blob_head(&store, key, &info, &why)) {
		if (why.code != ERR_NOT_FOUND) {
			*err = why;
			return error_context(err, "remove template '%s'", name);
		}
		if (template_shipped(name))
			return fail_hint(err, ERR_CONFLICT,
				"a template of that name that you add is used instead of it",
				"template '%s' is shipped with carrel and can't be removed", name);
		fail(err, ERR_NOT_FOUND, "there is no template '%s'", name);
		template_hint(core->home.dir, name, &arena, err);
		return -1;
	}
	if (blob_delete(&store, key, err))
		return error_context(err, "remove template '%s'", name);
	template_build_forget(core, name);
	journal_emit(&core->journal, "template.removed", "", name, NULL);
	return 0;
}
