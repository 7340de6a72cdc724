/* The names in package.json, and in the locks of npm, bun, yarn and pnpm. */
#include "format/packages/node_package.h"
#include "format/text/json_read.h"
#include "policy/readers/package_names_internal.h"

#define MODULES "node_modules/"

static bool is_text(const struct json_value *value)
{
	return value->kind == JSON_STRING && !memchr(value->string.data, '\0', value->string.len);
}

static int read_object(
	struct reading *r, struct str text, struct json_value **root, struct error *err)
{
	if (json_read(text, r->arena, root, err) < 0)
		return -1;
	return (*root)->kind == JSON_OBJECT ? 0 : fail(err, ERR_INVALID, "not an object");
}

/* name: range. A list has names alone. */
static void take_section(struct reading *r, const struct json_value *section)
{
	for (const struct json_value *m = section ? section->first : NULL; m; m = m->next) {
		if (section->kind == JSON_OBJECT)
			names_add_package(r, m->key.data);
		if (!is_text(m))
			continue;
		if (section->kind == JSON_ARRAY)
			names_add_package(r, m->string.data);
		else
			names_add_spec(r, m->string.data);
	}
}

/* overrides, resolutions: at any depth. "a/b": b of a. */
static void take_overrides(struct reading *r, const struct json_value *value, int depth)
{
	for (const struct json_value *m = value->first; m && depth < 32; m = m->next) {
		const char *slash = strrchr(m->key.data ? m->key.data : "", '/');
		if (is_text(m))
			names_add_spec(r, m->string.data);
		if (m->key.data)
			names_add_package(r, m->key.data);
		if (slash && m->key.data[0] != '@')
			names_add_package(r, slash + 1);
		take_overrides(r, m, depth + 1);
	}
}

static void take_sections(struct reading *r, const struct json_value *object)
{
	static const char *const sections[] = { "dependencies", "devDependencies",
		"optionalDependencies", "peerDependencies" };
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
		take_section(r, json_member(object, sections[i]));
}

int names_read_package_json(struct reading *r, struct str text, struct error *err)
{
	static const char *const overrides[] = { "overrides", "resolutions", "pnpm", "catalog",
		"catalogs" };
	struct json_value *root;
	if (read_object(r, text, &root, err) < 0)
		return -1;
	take_sections(r, root);
	for (size_t i = 0; i < sizeof overrides / sizeof *overrides; i++) {
		const struct json_value *value = json_member(root, overrides[i]);
		if (value)
			take_overrides(r, value, 0);
	}
	if (json_member(root, "workspaces"))
		names_add_unknown(r, "packages of its workspaces aren't known");
	return 0;
}

/* "node_modules/a/node_modules/@b/c": @b/c. Others are directories of the project. */
static void take_place(struct reading *r, const struct json_value *m)
{
	const char *key = m->key.data, *last = NULL;
	const struct json_value *link = json_member(m, "link");
	for (const char *at = key; (at = strstr(at, MODULES)); at += sizeof MODULES - 1)
		last = at + sizeof MODULES - 1;
	if (last)
		names_add_package(r, last);
	if ((!last && key[0]) || (link && link->kind == JSON_BOOL && link->boolean))
		names_add_unknown(r, "a package of a directory isn't known by its name");
}

/* One package of a lock: its own name may differ from that of its place. */
static void take_locked(struct reading *r, const struct json_value *m)
{
	const char *name = json_member_text(m, "name"), *from = json_member_text(m, "resolved");
	const char *version = json_member_text(m, "version");
	if (name)
		names_add_package(r, name);
	if (from)
		names_add_spec(r, from);
	if (version) /* "npm:other@1", or an address */
		names_add_spec(r, version);
	take_sections(r, m);
}

/* Of the first format: packages in packages. */
static void take_nested(struct reading *r, const struct json_value *packages, int depth)
{
	for (const struct json_value *m = packages->first; m && depth < 32; m = m->next) {
		const struct json_value *inner = json_member(m, "dependencies");
		if (m->kind != JSON_OBJECT)
			continue;
		names_add_package(r, m->key.data);
		take_locked(r, m);
		take_section(r, json_member(m, "requires"));
		if (inner && inner->kind == JSON_OBJECT)
			take_nested(r, inner, depth + 1);
	}
}

int names_read_npm_lock(struct reading *r, struct str text, struct error *err)
{
	struct json_value *root;
	if (read_object(r, text, &root, err) < 0)
		return -1;
	const struct json_value *packages = json_member(root, "packages");
	const struct json_value *nested = json_member(root, "dependencies");
	if (!packages && !nested && !json_member(root, "lockfileVersion"))
		return fail(err, ERR_INVALID, "not a lock of npm");
	for (const struct json_value *m = packages ? packages->first : NULL; m; m = m->next) {
		if (m->kind != JSON_OBJECT || packages->kind != JSON_OBJECT)
			return fail(err, ERR_INVALID, "a package is not an object");
		take_place(r, m);
		take_locked(r, m);
	}
	if (nested)
		take_nested(r, nested, 0);
	return 0;
}

/* {"workspaces": {"": {dependencies…}}, "packages": {"a/b": ["b@1.0.0", "", {…}, "sha512-…"]}} */
int names_read_bun_lock(struct reading *r, struct str text, struct error *err)
{
	static const char *const others[] = { "overrides", "catalog", "catalogs" };
	struct json_value *root;
	if (read_object(r, node_lock_without_commas(text, r->arena), &root, err) < 0)
		return -1;
	const struct json_value *projects = json_member(root, "workspaces");
	const struct json_value *packages = json_member(root, "packages");
	if (!json_member(root, "lockfileVersion") || (packages && packages->kind != JSON_OBJECT))
		return fail(err, ERR_INVALID, "not a lock of bun");
	for (const struct json_value *m = projects ? projects->first : NULL; m; m = m->next)
		take_sections(r, m);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (json_member(root, others[i]))
			take_overrides(r, json_member(root, others[i]), 0);
	for (const struct json_value *m = packages ? packages->first : NULL; m; m = m->next) {
		if (m->kind != JSON_ARRAY || !m->first || !is_text(m->first))
			return fail(err, ERR_INVALID, "a package is not a list");
		const char *ident = m->first->string.data;
		const char *at = strchr(ident + (ident[0] == '@'), '@');
		names_add_package(r, ident);
		if (at)
			names_add_spec(r, at + 1);
		const struct json_value *from = m->first->next;
		if (from && is_text(from))
			names_add_url(r, from->string.data);
	}
	return 0;
}

/* ---- locks as lines ---- */

static struct str unquoted(struct str text)
{
	text = str_trim(text);
	if (text.len > 1 && (text.data[0] == '"' || text.data[0] == '\'') &&
		text.data[text.len - 1] == text.data[0])
		return (struct str){ text.data + 1, text.len - 2 };
	return text;
}

static void take_ident(struct reading *r, struct str ident)
{
	const char *text = arena_bytes(r->arena, ident.data, ident.len);
	const char *at = text[0] ? strchr(text + 1, '@') : NULL;
	names_add_package(r, text);
	if (at)
		names_add_spec(r, at + 1);
}

/* "a@^1, b@npm:c@^2":  with the properties of it below, indented. */
int names_read_yarn_lock(struct reading *r, struct str text, struct error *err)
{
	struct str line;
	if (text.len && memchr(text.data, '\0', text.len))
		return fail(err, ERR_INVALID, "it has a NUL");
	while (str_next(&text, '\n', &line)) {
		struct str all = str_trim(line), one;
		if (!all.len || all.data[0] == '#')
			continue;
		if (line.data[0] == ' ') {
			if (str_starts_with(all, "resolved ") ||
				str_starts_with(all, "resolution:"))
				names_add_url(r, arena_bytes(r->arena, all.data, all.len));
			struct str key, value;
			if (str_starts_with(all, "resolution:") && str_cut(all, ':', &key, &value))
				take_ident(r, unquoted(value));
			continue;
		}
		if (all.data[all.len - 1] != ':' || line.data[0] == '\t')
			return fail(err, ERR_INVALID, "not a lock of yarn");
		all = unquoted((struct str){ all.data, all.len - 1 });
		if (str_is(all, "__metadata"))
			continue;
		while (str_next(&all, ',', &one))
			take_ident(r, unquoted(one));
	}
	return 0;
}

/* "/@a/b@1.0.0", "@a/b@1.0.0(c@2)", and of old locks "/@a/b/1.0.0". */
static void take_pnpm_key(struct reading *r, struct str key)
{
	key = unquoted(key);
	if (key.len && key.data[0] == '/')
		key = (struct str){ key.data + 1, key.len - 1 };
	const char *text = arena_bytes(r->arena, key.data, key.len);
	const char *slash = strchr(text, '/');
	const char *at = text[0] ? strchr(text + 1, '@') : NULL;
	if (slash && text[0] == '@')
		slash = strchr(slash + 1, '/');
	if (slash && (!at || slash < at)) {
		names_add(r, &r->names->names, text, (size_t)(slash - text));
		return;
	}
	take_ident(r, key);
}

/* Whether the keys of a section are packages. ERR_INVALID: it isn't written in lines, which would
 * hide them. */
static int read_section(struct str line, bool *is_packages, struct error *err)
{
	struct str key, value;
	if (!str_cut(line, ':', &key, &value))
		return fail(err, ERR_INVALID, "not a lock of pnpm");
	key = unquoted(key);
	value = str_trim(value);
	*is_packages = str_is(key, "packages") || str_is(key, "snapshots");
	if (*is_packages && value.len && !str_is(value, "{}"))
		return fail(err, ERR_INVALID, "not a lock of pnpm");
	return 0;
}

static void take_pnpm_property(struct reading *r, struct str line)
{
	if (memmem(line.data, line.len, "tarball:", 8) || memmem(line.data, line.len, "repo:", 5))
		names_add_url(r, arena_bytes(r->arena, line.data, line.len));
	if (memmem(line.data, line.len, "directory:", 10))
		names_add_unknown(r, "a package of a directory isn't known by its name");
}

int names_read_pnpm_lock(struct reading *r, struct str text, struct error *err)
{
	struct str line;
	bool is_packages = false, has_key = false;
	if (text.len && (memchr(text.data, '\0', text.len) || memchr(text.data, '\t', text.len)))
		return fail(err, ERR_INVALID, "not a lock of pnpm");
	while (str_next(&text, '\n', &line)) {
		struct str all = str_trim(line);
		size_t indent = 0;
		while (indent < line.len && line.data[indent] == ' ')
			indent++;
		if (!all.len || all.data[0] == '#')
			continue;
		if (!indent) {
			if (read_section(all, &is_packages, err) < 0)
				return -1;
			has_key = false;
			continue;
		}
		take_pnpm_property(r, all);
		if (!is_packages || (indent > 2 && has_key))
			continue;
		if (all.len > 4 && memcmp(all.data + all.len - 4, ": {}", 4) == 0)
			all.len -= 3;
		if (indent != 2 || all.data[all.len - 1] != ':')
			return fail(err, ERR_INVALID, "not a lock of pnpm");
		take_pnpm_key(r, (struct str){ all.data, all.len - 1 });
		has_key = true;
	}
	return 0;
}
