#include "core/state/template_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/str.h"
#include "format/text/yaml_json.h"

#define KEY_SUFFIX ".yaml"

/* ---- what is kept ---- */

int template_blobs(int home, struct blob_store *store, struct error *err)
{
	static const struct blob_settings settings = { .url = { .scheme = BLOB_DIR } };
	auto_close int copies =
		openat(home, "templates", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat found;
	bool has_copies =
		copies >= 0 && !fstatat(copies, BLOB_DIRECTORY, &found, AT_SYMLINK_NOFOLLOW);
	return blob_open(&settings, has_copies ? copies : home, NULL, store, err);
}

const char *template_key(struct arena *arena, const char *name)
{
	return arena_printf(arena, TEMPLATE_PREFIX "%s" KEY_SUFFIX, name);
}

const char *template_key_name(struct arena *arena, const char *key)
{
	size_t prefix = strlen(TEMPLATE_PREFIX), suffix = strlen(KEY_SUFFIX), len = strlen(key);
	struct error ignored;
	if (strncmp(key, TEMPLATE_PREFIX, prefix) != 0 || len <= prefix + suffix ||
		strcmp(key + len - suffix, KEY_SUFFIX) != 0)
		return NULL;
	const char *name = arena_bytes(arena, key + prefix, len - prefix - suffix);
	return template_check_name(name, &ignored) ? NULL : name;
}

const struct shipped_template *template_shipped(const char *name)
{
	for (const struct shipped_template *s = shipped_templates; s->name; s++)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

/* The text that has that name now; *is_user: not the shipped one. */
static int find_text(int home, const char *name, struct arena *arena, struct str *text,
	bool *is_user, struct error *err)
{
	const struct shipped_template *shipped = template_shipped(name);
	struct error why;
	auto_blob struct blob_store store = { 0 };
	fail(&why, ERR_NOT_FOUND, "no home"); /* of which there are no templates */
	if (home >= 0 && template_blobs(home, &store, err))
		return -1;
	*is_user = true;
	if (home >= 0 &&
		!blob_get_text(&store, template_key(arena, name), YAML_JSON_MAX, arena, text, &why))
		return 0;
	if (why.code != ERR_NOT_FOUND) {
		*err = why;
		if (err->code == ERR_LIMIT) /* whoever put it there can mend it */
			err->code = ERR_INVALID;
		return error_context(err, "read template '%s'", name);
	}
	*is_user = false;
	if (!shipped)
		return fail(err, ERR_NOT_FOUND, "there is no template '%s'", name);
	*text = (struct str){ shipped->text, shipped->len };
	return 0;
}

static int parse(struct str text, struct arena *arena, struct template *t, struct error *err)
{
	struct json_value *value;
	if (!yaml_json_read(text, arena, &value, err) && !template_read(value, arena, t, err))
		return 0;
	err->code = ERR_INVALID; /* a text that is too large is the client's error too */
	return -1;
}

/* Names of all there are, sorted; one may be both shipped and a user's. */
int template_names(int home, struct arena *arena, text_list *names, struct error *err)
{
	auto_blob struct blob_store store = { 0 };
	blob_rows rows = { 0 };
	if (home >= 0 && (template_blobs(home, &store, err) ||
				 blob_list(&store, TEMPLATE_PREFIX, arena, &rows, err)))
		return -1;
	for (const struct shipped_template *s = shipped_templates; s->name; s++)
		vec_push(arena, names, s->name);
	for (size_t i = 0; i < rows.count; i++) {
		const char *name = template_key_name(arena, rows.items[i].key);
		if (name && !template_shipped(name))
			vec_push(arena, names, name);
	}
	text_list_sort(names);
	return 0;
}

void template_hint(int home, const char *name, struct arena *arena, struct error *err)
{
	text_list names = { 0 };
	struct error ignored;
	const char *nearest = NULL;
	size_t least = SIZE_MAX;
	if (err->code != ERR_NOT_FOUND || err->hint[0] ||
		template_names(home, arena, &names, &ignored))
		return;
	for (size_t i = 0; i < names.count; i++)
		if (strlen(name) <= TEMPLATE_NAME_MAX &&
			str_is_nearer(name, names.items[i], &least))
			nearest = names.items[i];
	if (nearest)
		error_hint(err, "did you mean '%s'?", nearest);
	else
		error_hint(err, "carrel template ls lists them");
}

/* ---- what it extends ---- */

/* Merges into *t what it extends. `added`: in place of the one of its name; or NULL. */
static int resolve(int home, const struct template *added, struct arena *arena, struct template *t,
	struct error *err)
{
	const char *seen[TEMPLATE_EXTENDS_MAX + 1];
	size_t count = 0;
	const char *next = t->extends;
	seen[count++] = t->name;
	while (next) {
		struct template base;
		struct str text;
		bool is_user;
		for (size_t i = 0; i < count; i++)
			if (!strcmp(seen[i], next))
				return fail(err, ERR_INVALID,
					"extends: template '%s' extends itself, through '%s'", next,
					seen[count - 1]);
		if (count > TEMPLATE_EXTENDS_MAX)
			return fail(err, ERR_INVALID,
				"extends: more than %d templates extend each other",
				TEMPLATE_EXTENDS_MAX);
		if (added && !strcmp(added->name, next))
			base = *added;
		else if (find_text(home, next, arena, &text, &is_user, err)) {
			template_hint(home, next, arena, err);
			if (err->code == ERR_NOT_FOUND)
				err->code = ERR_INVALID;
			return error_context(err, "extends");
		} else if (parse(text, arena, &base, err))
			return error_context(err, "template '%s'", next);
		seen[count++] = next;
		next = base.extends;
		template_extend(t, &base, arena);
	}
	return 0;
}

static int finish(int home, const struct template *added, struct arena *arena,
	struct template_shown *shown, struct error *err)
{
	char hash[2 * SHA256_LEN + 1];
	if (resolve(home, added, arena, &shown->model, err) ||
		template_check(&shown->model, arena, &shown->warnings, err))
		return -1;
	template_hash(&shown->model, hash);
	shown->sha256 = arena_text(arena, hash);
	return 0;
}

int template_find(int home, const char *name, struct arena *arena, struct template_shown *out,
	struct error *err)
{
	struct template_shown shown = { 0 };
	struct str text;
	bool is_user;
	if (template_check_name(name, err))
		return -1;
	if (find_text(home, name, arena, &text, &is_user, err)) {
		template_hint(home, name, arena, err);
		return -1;
	}
	shown.origin = is_user ? "user" : "shipped";
	shown.yaml = arena_bytes(arena, text.data, text.len);
	if (parse(text, arena, &shown.model, err))
		return error_context(err, "template '%s'", name);
	shown.model.name = arena_text(arena, name); /* a file that was put there by hand */
	if (finish(home, NULL, arena, &shown, err))
		return error_context(err, "template '%s'", name);
	*out = shown;
	return 0;
}

int template_look(int home, struct str yaml, struct arena *arena, struct template_shown *out,
	struct error *err)
{
	struct template_shown shown = { .origin = "user",
		.yaml = arena_bytes(arena, yaml.data, yaml.len) };
	if (parse(yaml, arena, &shown.model, err))
		return -1;
	struct template added = shown.model;
	if (finish(home, &added, arena, &shown, err))
		return -1;
	*out = shown;
	return 0;
}
