#include "format/packages/lock.h"
#include "format/packages/requirements.h"

#define BUILT "# built "
#define FIRST "# first "

static int lock_compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_packages(const void *a, const void *b)
{
	const struct lock_package *left = a, *right = b;
	return strcmp(left->name, right->name);
}

void lock_sort(lock_list *packages)
{
	if (packages->count > 0)
		qsort(packages->items, packages->count, sizeof *packages->items, compare_packages);
}

static struct lock_package *find_named(const lock_list *packages, struct str name)
{
	for (size_t i = 0; i < packages->count; i++)
		if (str_is(name, packages->items[i].name))
			return &packages->items[i];
	return NULL;
}

struct lock_package *lock_find(const lock_list *packages, const char *name)
{
	return find_named(packages, str_from(name));
}

void lock_sort_hashes(struct lock_package *package)
{
	const char **items = package->hashes.items;
	size_t count = 0;
	qsort(items, package->hashes.count, sizeof *items, lock_compare_texts);
	for (size_t i = 0; i < package->hashes.count; i++) {
		if (i == 0 || strcmp(items[i], items[count - 1]) != 0)
			items[count++] = items[i];
	}
	package->hashes.count = count;
}

/* A line of uv's is name==version, the name normalised already, no extras. */
static bool is_plain_pin(const struct requirement *r)
{
	size_t len;
	if (r->kind != REQUIREMENT_PACKAGE || !r->is_pinned)
		return false;
	len = strlen(r->name);
	return strncmp(r->text, r->name, len) == 0 && strncmp(r->text + len, "==", 2) == 0 &&
	       strncmp(r->specifier, "===", 3) != 0 && !strpbrk(r->specifier, " \t,");
}

static int take_package(const struct requirement *r, struct arena *arena,
	struct lock_package *package, struct error *err)
{
	struct lock_package taken = { .name = r->name, .marker = r->marker };
	if (!is_plain_pin(r))
		return fail(err, ERR_CORRUPT, "line %d: '%.96s' is not name==version with hashes",
			r->line, r->text);
	taken.version = r->specifier + 2;
	for (size_t i = 0; i < r->hashes.count; i++) {
		if (str_starts_with(str_from(r->hashes.items[i]), "sha256:"))
			vec_push(arena, &taken.hashes, r->hashes.items[i]);
	}
	if (taken.hashes.count == 0)
		return fail(err, ERR_CORRUPT, "line %d: %s==%.64s has no sha256 hash", r->line,
			taken.name, taken.version);
	lock_sort_hashes(&taken);
	*package = taken;
	return 0;
}

/* The package that a line like "# built NAME" names, or NULL. */
static struct lock_package *find_marked(struct str line, struct str mark, lock_list *packages)
{
	if (line.len < mark.len || memcmp(line.data, mark.data, mark.len) != 0)
		return NULL;
	return find_named(packages, (struct str){ line.data + mark.len, line.len - mark.len });
}

/* Comments, because uv's format has no field for these properties. */
static void take_marks(struct str text, lock_list *packages)
{
	struct lock_package *package;
	struct str line;
	size_t first = 0;
	while (str_next(&text, '\n', &line)) {
		package = find_marked(line, STR(BUILT), packages);
		if (package)
			package->is_built = true;
		package = find_marked(line, STR(FIRST), packages);
		if (!package || package->is_first)
			continue;
		struct lock_package taken = *package;
		size_t before = (size_t)(package - packages->items);
		memmove(packages->items + first + 1, packages->items + first,
			(before - first) * sizeof taken);
		taken.is_first = true;
		packages->items[first++] = taken;
	}
}

int lock_parse(struct str text, struct arena *arena, lock_list *packages, struct error *err)
{
	struct error reason = { 0 };
	requirement_list lines;
	lock_list taken = { 0 };
	if (requirements_parse(text, arena, &lines, &reason) < 0)
		return fail(err, reason.code == ERR_INVALID ? ERR_CORRUPT : reason.code, "%s",
			reason.text);
	for (size_t i = 0; i < lines.count; i++) {
		struct lock_package package;
		if (take_package(&lines.items[i], arena, &package, err) < 0)
			return -1;
		vec_push(arena, &taken, package);
	}
	lock_sort(&taken);
	for (size_t i = 1; i < taken.count; i++) {
		if (strcmp(taken.items[i].name, taken.items[i - 1].name) == 0)
			return fail(err, ERR_CORRUPT, "package '%s' is listed twice",
				taken.items[i].name);
	}
	take_marks(text, &taken);
	*packages = taken;
	return 0;
}

void lock_print(const lock_list *packages, struct buf *out)
{
	for (size_t i = 0; i < packages->count; i++) {
		if (packages->items[i].is_built)
			buf_printf(out, BUILT "%s\n", packages->items[i].name);
	}
	for (size_t i = 0; i < packages->count; i++) {
		if (packages->items[i].is_first)
			buf_printf(out, FIRST "%s\n", packages->items[i].name);
	}
	for (size_t i = 0; i < packages->count; i++) {
		const struct lock_package *package = &packages->items[i];
		buf_printf(out, "%s==%s", package->name, package->version);
		if (package->marker)
			buf_printf(out, " ; %s", package->marker);
		for (size_t j = 0; j < package->hashes.count; j++)
			buf_printf(out, " \\\n    --hash=%s", package->hashes.items[j]);
		buf_char(out, '\n');
	}
}
