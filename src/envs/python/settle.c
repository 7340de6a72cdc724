/* Packages of Python that frozen layers hide. */
#include <fnmatch.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "envs/settle.h"
#include "format/packages/requirements.h"
#include "format/packages/wheel_record.h"

#define CACHE "__pycache__"

static int show_entry(
	const struct settling *s, int tree, const struct manifest_entry *entry, struct error *err)
{
	struct stack_entry seen;
	auto_stack struct stack_dir parent = { 0 };
	if (settle_look(&s->stack, entry->path, &seen, &parent, err))
		return -1;
	bool is_shown = seen.is_there &&
			(seen.layer > s->frozen ||
				(entry->kind == MANIFEST_DIRECTORY && S_ISDIR(seen.st.st_mode)));
	if (is_shown || (seen.dir >= 0 && seen.layer == 0)) /* or a command's own */
		return 0;
	if (entry->kind != MANIFEST_DIRECTORY)
		return settle_copy_in(s, tree, entry->path, err);
	auto_close int made = -1;
	return settle_make_directory(s, str_from(entry->path), &made, err) < 0 ? -1 : 0;
}

static int show_layers(const struct settling *s, struct error *err)
{
	for (size_t i = 0; i < s->change->after.count; i++) {
		const char *id = s->change->after.items[i];
		auto_arena struct arena arena = { 0 };
		struct manifest manifest = { 0 };
		if (layer_read(s->layers, id, &arena, &manifest, err))
			return -1;
		const char *name = requirement_normalize_name(&arena, str_from(manifest.name));
		if (text_list_has(&s->change->before, id) && !map_get(&s->forced, str_from(name)))
			continue;
		for (size_t k = 0; k < manifest.entries.count; k++)
			if (show_entry(
				    s, s->fds[1 + s->frozen + i], &manifest.entries.items[k], err))
				return -1;
	}
	return 0;
}

static int hide_bytecode(struct settling *s, const char *path, struct error *err)
{
	struct arena *arena = s->arena;
	const char *base = path_basename(path);
	size_t len = strlen(base);
	text_list names = { 0 };
	if (len < 4 || strcmp(base + len - 3, ".py"))
		return 0;
	const char *cache = arena_printf(arena, "%.*s" CACHE, (int)(base - path), path);
	auto_stack struct stack_dir dir = { 0 };
	if (settle_enter(&s->stack, str_from(cache), &dir, err) ||
		stack_names(&dir, 0, dir.count, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *found = arena_printf(arena, "%s/%s", cache, names.items[i]);
		int shown = strncmp(names.items[i], base, len - 2)
				    ? 0
				    : settle_is_outdated(s, found, err);
		if (shown < 0 || (shown && settle_hide(s, found, err)))
			return -1;
	}
	return 0;
}

/* What the RECORD of a frozen package lists, and itself. */
static int hide_dist(struct settling *s, const struct stack_dir *site, const char *at,
	const char *dist, struct error *err)
{
	struct arena *arena = s->arena;
	auto_stack struct stack_dir dir = { 0 };
	wheel_record_list records = { 0 };
	struct stack_entry record;
	struct str text = { 0 };
	struct stat st;
	struct error ignored;
	auto_close int fd = -1;
	if (stack_enter(site, dist, &dir, err) || stack_look(&dir, "RECORD", &record, err))
		return -1;
	if (record.is_there && S_ISREG(record.st.st_mode) &&
		!stack_open_file(record.dir, "RECORD", &fd, &st, &ignored) &&
		!file_read(fd, WHEEL_RECORD_MAX, arena, &text) &&
		wheel_record_parse(text, arena, &records, &ignored))
		records.count = 0;
	for (size_t i = 0; i < records.count; i++) {
		const char *path = path_normalize(arena, arena_printf(arena, "/%s", at),
					   records.items[i].path) +
				   1;
		if (!*path || strlen(path) > MANIFEST_PATH_MAX)
			continue;
		int shown = settle_is_outdated(s, path, err);
		if (shown < 0 ||
			(shown && (settle_hide(s, path, err) || hide_bytecode(s, path, err))))
			return -1;
	}
	const char *own = arena_printf(arena, "%s/%s", at, dist);
	int shown = settle_is_outdated(s, own, err);
	return shown < 0 || (shown && settle_hide(s, own, err)) ? -1 : 0;
}

/* Packages of the frozen layers that give way: in another version, or none at all. */
static int hide_dists(struct settling *s, const char *at, struct error *err)
{
	struct arena *arena = s->arena;
	auto_stack struct stack_dir site = { 0 };
	text_list names = { 0 };
	if (settle_enter(&s->stack, str_from(at), &site, err) ||
		stack_names(&site, 0, site.count, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct str name = str_from(names.items[i]), rest;
		if (fnmatch("*.dist-info", names.items[i], 0) ||
			!str_cut(name, '-', &name, &rest) || !requirement_name_is_valid(name) ||
			!map_get(&s->forced, str_from(requirement_normalize_name(arena, name))) ||
			settle_is_in_after(s, arena_printf(arena, "%s/%s", at, names.items[i])))
			continue;
		if (hide_dist(s, &site, at, names.items[i], err))
			return -1;
	}
	return 0;
}

/* Python takes an empty directory for a package: one that shows nothing any more goes, and those
 * above it. */
static int hide_emptied(struct settling *s, struct error *err)
{
	struct arena *arena = s->arena;
	for (size_t i = 0; i < s->emptied.count; i++) { /* settle_hide() adds those above */
		const struct str path = s->emptied.entries[i].key;
		auto_stack struct stack_dir dir = { 0 };
		text_list names = { 0 };
		bool is_empty = true;
		if (!path.len || settle_enter(&s->stack, path, &dir, err) ||
			stack_names(&dir, 0, dir.count, arena, &names, err)) {
			if (path.len)
				return -1;
			continue;
		}
		for (size_t k = 0; k < names.count && is_empty; k++) {
			struct stack_entry entry;
			if (stack_look(&dir, names.items[k], &entry, err))
				return -1;
			is_empty = !entry.is_there;
		}
		const char *text = arena_bytes(arena, path.data, path.len);
		if (is_empty && dir.count && settle_is_frozen(s, text) && settle_hide(s, text, err))
			return -1;
	}
	return 0;
}

int env_python_unshadow(struct settling *s, struct error *err)
{
	struct arena *arena = s->arena;
	auto_stack struct stack_dir lib = { 0 };
	text_list names = { 0 };
	if (settle_enter(&s->stack, STR("lib"), &lib, err) ||
		stack_names(&lib, 0, lib.count, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (!fnmatch("python3*", names.items[i], 0) &&
			hide_dists(s, arena_printf(arena, "lib/%s/site-packages", names.items[i]),
				err))
			return -1;
	return hide_emptied(s, err) || show_layers(s, err) ? -1 : 0;
}
