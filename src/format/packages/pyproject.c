#include "format/packages/pyproject.h"

#include "format/packages/pep508.h"
#include "format/text/toml_lite.h"

#define NESTED_MAX 32 /* groups or extras that include each other */
#define LINES_MAX 20000

struct reader {
	struct arena *arena;
	toml_list entries;
	const char *name; /* of the project, normalised, or NULL */
	struct pyproject found;
	struct error *err;
};
struct chain { /* the extras or groups that are being read, innermost first */
	const struct chain *outer;
	const char *name;
	int depth;
};

static const char *full_path(const struct reader *r, const struct toml_entry *entry)
{
	return entry->table[0] ? arena_printf(r->arena, "%s.%s", entry->table, entry->key)
			       : entry->key;
}

/* "project.dependencies", however the file writes it. */
static bool is_at(const struct reader *r, const struct toml_entry *entry, const char *path)
{
	return strcmp(full_path(r, entry), path) == 0;
}

/* The entry is in a table below `path`. */
static bool is_nested(const struct toml_entry *entry, const char *path)
{
	size_t len = strlen(path);
	return strncmp(entry->table, path, len) == 0 && entry->table[len] == '.';
}

/* Of "project.optional-dependencies" and "dev", or of a table of that name: *name is "dev". */
static bool is_member(
	const struct reader *r, const struct toml_entry *entry, const char *path, const char **name)
{
	const char *full = full_path(r, entry);
	size_t len = strlen(path);
	if (strncmp(full, path, len) != 0 || full[len] != '.')
		return false;
	if (is_nested(entry, path))
		full = entry->table;
	*name = requirement_normalize_name(r->arena, str_from(full + len + 1));
	return true;
}

static int add_line(struct reader *r, requirement_lines *lines, const struct toml_entry *entry)
{
	struct pep508 parsed;
	const char *reason;
	/* Only what is a requirement by its grammar: no option, no second line. */
	if (!entry->is_string || !pep508_parse(str_from(entry->text), &parsed, &reason))
		return fail(r->err, ERR_INVALID, "line %d: '%.100s' is not a requirement",
			entry->line, entry->text);
	if (lines->count == LINES_MAX)
		return fail(r->err, ERR_LIMIT, "more than %d dependencies", LINES_MAX);
	vec_push(r->arena, lines, (struct requirement_line){ entry->text, entry->line });
	return 0;
}

struct named_lists { /* of dependencies */
	const char *what, *path, *hint;
};
static const struct named_lists extra = { "extra", "project.optional-dependencies",
	"see [project.optional-dependencies] in the file" };
static const struct named_lists group = { "dependency group", "dependency-groups",
	"see [dependency-groups] in the file" };

static int add_named(struct reader *r, const struct named_lists *kind, struct str name,
	const struct chain *outer);

/* "project[a,b]" in an extra of the project itself: the extras a and b. *is_own: it was one. */
static int add_own_extras(
	struct reader *r, const struct toml_entry *entry, const struct chain *chain, bool *is_own)
{
	struct pep508 parsed;
	const char *reason;
	struct str piece;
	*is_own = r->name && entry->is_string &&
		  pep508_parse(str_from(entry->text), &parsed, &reason) && parsed.extras.len > 0 &&
		  strcmp(requirement_normalize_name(r->arena, parsed.name), r->name) == 0;
	while (*is_own && str_next(&parsed.extras, ',', &piece))
		if (add_named(r, &extra, str_trim(piece), chain) < 0)
			return -1;
	return 0;
}

static int add_member(struct reader *r, const struct named_lists *kind,
	const struct toml_entry *entry, const struct chain *chain)
{
	bool is_own = false;
	if (!entry->is_string && strcmp(entry->text, "[]") == 0)
		return 0;
	/* { include-group = "x" }; no other table is known. */
	if (is_nested(entry, kind->path) &&
		(kind != &group || strcmp(entry->key, "include-group") != 0))
		return fail(r->err, ERR_INVALID, "line %d: unknown table in %s '%s'", entry->line,
			kind->what, chain->name);
	if (is_nested(entry, kind->path))
		return add_named(r, kind, str_from(entry->text), chain);
	if (kind == &extra && add_own_extras(r, entry, chain, &is_own) < 0)
		return -1;
	return is_own ? 0 : add_line(r, &r->found.dependencies, entry);
}

static int add_named(struct reader *r, const struct named_lists *kind, struct str text,
	const struct chain *outer)
{
	const char *name = requirement_normalize_name(r->arena, text), *found;
	struct chain chain = { outer, name, outer ? outer->depth + 1 : 0 };
	bool is_there = false;
	if (chain.depth > NESTED_MAX)
		return fail(r->err, ERR_LIMIT, "%s '%s': nested too deeply", kind->what, name);
	for (; outer; outer = outer->outer)
		if (strcmp(outer->name, name) == 0)
			return fail(
				r->err, ERR_INVALID, "%s '%s' includes itself", kind->what, name);
	for (size_t i = 0; i < r->entries.count; i++) {
		const struct toml_entry *entry = &r->entries.items[i];
		if (!is_member(r, entry, kind->path, &found) || strcmp(found, name) != 0)
			continue;
		is_there = true;
		if (add_member(r, kind, entry, &chain) < 0)
			return -1;
	}
	if (!is_there)
		return fail_hint(
			r->err, ERR_INVALID, kind->hint, "unknown %s '%s'", kind->what, name);
	return 0;
}

static int refuse_dynamic(struct reader *r, const struct toml_entry *entry, bool has_extras)
{
	bool is_dynamic = strcmp(entry->text, "dependencies") == 0 ||
			  (has_extras && strcmp(entry->text, "optional-dependencies") == 0);
	if (!is_dynamic)
		return 0;
	return fail_hint(r->err, ERR_INVALID,
		"--pip DIRECTORY builds the project to find its dependencies",
		"line %d: the %s are dynamic: they are known only after a build of the project",
		entry->line, entry->text);
}

/* Everything but extras and groups. */
static int pyproject_take(struct reader *r, const struct toml_entry *entry, bool has_extras)
{
	const char *name;
	if (is_at(r, entry, "project.dynamic"))
		return refuse_dynamic(r, entry, has_extras);
	if (is_member(r, entry, "tool.uv.sources", &name))
		return fail_hint(r->err, ERR_INVALID,
			"name the package by --pip, its index by --extra-index, or use uv.lock",
			"line %d: [tool.uv.sources] sets the source of '%s', which is not "
			"supported in files",
			entry->line, name);
	if (!entry->is_string && strcmp(entry->text, "[]") == 0)
		return 0;
	if (is_at(r, entry, "tool.uv.override-dependencies"))
		return fail_hint(r->err, ERR_INVALID, "run uv lock, and use -r uv.lock",
			"line %d: override-dependencies are not supported", entry->line);
	if (is_at(r, entry, "tool.uv.constraint-dependencies"))
		return add_line(r, &r->found.constraints, entry);
	if (is_at(r, entry, "project.dependencies"))
		return add_line(r, &r->found.dependencies, entry);
	return 0;
}

static int check_project(struct reader *r, bool has_groups)
{
	bool has_project = false, is_poetry = false;
	for (size_t i = 0; i < r->entries.count; i++) {
		const struct toml_entry *entry = &r->entries.items[i];
		has_project |= strcmp(entry->table, "project") == 0 ||
			       strncmp(entry->table, "project.", 8) == 0;
		is_poetry |= strncmp(entry->table, "tool.poetry", 11) == 0;
		if (is_at(r, entry, "project.name") && entry->is_string)
			r->name = requirement_normalize_name(r->arena, str_from(entry->text));
	}
	if (has_project || (has_groups && !is_poetry))
		return 0;
	if (is_poetry)
		return fail_hint(r->err, ERR_INVALID,
			"poetry export -f requirements.txt -o requirements.txt",
			"the dependencies are in [tool.poetry], which only Poetry reads");
	return fail(r->err, ERR_INVALID, "the file has no [project] table");
}

int pyproject_read(struct str text, const text_list *extras, const text_list *groups,
	struct arena *arena, struct pyproject *found, struct error *err)
{
	struct reader r = { .arena = arena, .err = err };
	if (toml_parse(text, arena, &r.entries, err) < 0 ||
		check_project(&r, groups->count > 0) < 0)
		return -1;
	for (size_t i = 0; i < r.entries.count; i++)
		if (pyproject_take(&r, &r.entries.items[i], extras->count > 0) < 0)
			return -1;
	for (size_t i = 0; i < extras->count; i++)
		if (add_named(&r, &extra, str_from(extras->items[i]), NULL) < 0)
			return -1;
	for (size_t i = 0; i < groups->count; i++)
		if (add_named(&r, &group, str_from(groups->items[i]), NULL) < 0)
			return -1;
	*found = r.found;
	return 0;
}
