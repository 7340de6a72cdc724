#include "format/pylock.h"
#include <stdlib.h>
#include "format/requirements.h"
#include "format/toml_lite.h"

static bool is_version(const char *text)
{
	size_t len =
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!+_-");
	return len > 0 && len < 256 && !text[len];
}

static bool is_url(const char *text)
{
	struct str url = str_from(text);
	if (!str_starts_with(url, "https://") && !str_starts_with(url, "http://"))
		return false;
	for (size_t i = 0; i < url.len; i++)
		if (url.data[i] <= 0x20 || url.data[i] >= 0x7f || strchr("\"'\\", url.data[i]))
			return false;
	return url.len < 4096;
}

static bool is_sha256(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* What a table of a package may be, and what is taken of it. */
enum place { PLACE_PACKAGE, PLACE_WHEEL, PLACE_HASHES, PLACE_PASSED, PLACE_REFUSED };
static enum place place_of(const char *table)
{
	static const struct {
		const char *table;
		enum place place;
	} places[] = {
		{ "", PLACE_PASSED },
		{ "packages", PLACE_PACKAGE },
		{ "packages.wheels", PLACE_WHEEL },
		{ "packages.wheels.hashes", PLACE_HASHES },
		{ "packages.sdist", PLACE_PASSED },
		{ "packages.sdist.hashes", PLACE_PASSED },
		{ "packages.dependencies", PLACE_PASSED },
	};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (!strcmp(table, places[i].table))
			return places[i].place;
	return PLACE_REFUSED;
}

struct reading {
	struct arena *arena;
	pylock_list *list;
	int package, wheel; /* instances of the tables that are being read */
};

static int take_package(struct reading *r, const struct toml_entry *entry, struct error *err)
{
	if (r->list->count == 0 || r->package != entry->instance)
		vec_push(r->arena, r->list, (struct pylock_package){ 0 });
	r->package = entry->instance;
	struct pylock_package *package = &r->list->items[r->list->count - 1];
	if (!strcmp(entry->key, "name")) {
		struct str name = str_from(entry->text);
		if (!requirement_name_is_valid(name))
			return fail(err, ERR_CORRUPT, "line %d: not the name of a package",
				entry->line);
		package->name = requirement_normalize_name(r->arena, name);
	} else if (!strcmp(entry->key, "version")) {
		if (!is_version(entry->text))
			return fail(err, ERR_CORRUPT, "line %d: not a version", entry->line);
		package->version = entry->text;
	}
	return 0;
}

static int take_file(
	struct reading *r, const struct toml_entry *entry, enum place place, struct error *err)
{
	if (r->list->count == 0)
		return fail(err, ERR_CORRUPT, "line %d: a wheel outside of a package", entry->line);
	struct pylock_package *package = &r->list->items[r->list->count - 1];
	bool is_new = place == PLACE_WHEEL && r->wheel != entry->instance;
	if (is_new) {
		vec_push(r->arena, &package->files, (struct pylock_file){ 0 });
		r->wheel = entry->instance;
	}
	if (package->files.count == 0)
		return fail(err, ERR_CORRUPT, "line %d: a hash outside of a wheel", entry->line);
	struct pylock_file *file = &package->files.items[package->files.count - 1];
	if (place == PLACE_WHEEL && !strcmp(entry->key, "url")) {
		if (!is_url(entry->text))
			return fail(err, ERR_CORRUPT, "line %d: not the address of a wheel",
				entry->line);
		file->url = entry->text;
	} else if (place == PLACE_WHEEL && !strcmp(entry->key, "path"))
		return fail(
			err, ERR_CORRUPT, "line %d: a wheel by a path of this host", entry->line);
	else if (place == PLACE_HASHES && !strcmp(entry->key, "sha256")) {
		if (!is_sha256(entry->text))
			return fail(err, ERR_CORRUPT, "line %d: not a sha256", entry->line);
		file->sha256 = entry->text;
	}
	return 0;
}

static int take(struct reading *r, const struct toml_entry *entry, struct error *err)
{
	enum place place = place_of(entry->table);
	switch (place) {
	case PLACE_PACKAGE:
		return take_package(r, entry, err);
	case PLACE_WHEEL:
	case PLACE_HASHES:
		return take_file(r, entry, place, err);
	case PLACE_PASSED:
		return 0;
	case PLACE_REFUSED:
		break;
	}
	return fail(err, ERR_CORRUPT, "line %d: a package that is not from an index", entry->line);
}

static int check(const pylock_list *list, struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct pylock_package *package = &list->items[i];
		if (!package->name || !package->version)
			return fail(err, ERR_CORRUPT, "a package without name or version");
		if (i > 0 && !strcmp(package->name, list->items[i - 1].name))
			return fail(
				err, ERR_CORRUPT, "package '%s' is listed twice", package->name);
		if (package->files.count == 0)
			return fail(err, ERR_CORRUPT, "%s==%s has no wheel", package->name,
				package->version);
		for (size_t j = 0; j < package->files.count; j++)
			if (!package->files.items[j].url || !package->files.items[j].sha256)
				return fail(err, ERR_CORRUPT,
					"a wheel of %s==%s has no address or no sha256",
					package->name, package->version);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct pylock_package *left = a, *right = b;
	return strcmp(left->name ? left->name : "", right->name ? right->name : "");
}

int pylock_parse(struct str text, struct arena *arena, pylock_list *list, struct error *err)
{
	toml_list entries = { 0 };
	pylock_list found = { 0 };
	struct reading r = { arena, &found, -1, -1 };
	if (toml_parse(text, arena, &entries, err)) {
		err->code = err->code == ERR_LIMIT ? ERR_LIMIT : ERR_CORRUPT;
		return -1;
	}
	for (size_t i = 0; i < entries.count; i++)
		if (take(&r, &entries.items[i], err))
			return -1;
	if (found.count)
		qsort(found.items, found.count, sizeof *found.items, compare);
	if (check(&found, err))
		return -1;
	*list = found;
	return 0;
}

void pylock_print(const pylock_list *list, struct buf *out)
{
	buf_text(out, "lock-version = \"1.0\"\ncreated-by = \"carrel\"\n");
	for (size_t i = 0; i < list->count; i++) {
		const struct pylock_package *package = &list->items[i];
		buf_printf(out, "\n[[packages]]\nname = \"%s\"\nversion = \"%s\"\nwheels = [",
			package->name, package->version);
		for (size_t j = 0; j < package->files.count; j++)
			buf_printf(out, "%s{ url = \"%s\", hashes = { sha256 = \"%s\" } }",
				j ? ", " : "", package->files.items[j].url,
				package->files.items[j].sha256);
		buf_text(out, "]\n");
	}
}

void pylock_to_lock(const pylock_list *list, struct arena *arena, lock_list *packages)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct pylock_package *package = &list->items[i];
		struct lock_package locked = { .name = package->name, .version = package->version };
		for (size_t j = 0; j < package->files.count; j++)
			vec_push(arena, &locked.hashes,
				arena_printf(arena, "sha256:%s", package->files.items[j].sha256));
		lock_sort_hashes(&locked);
		vec_push(arena, packages, locked);
	}
}

const struct pylock_package *pylock_find(const pylock_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i].name, name))
			return &list->items[i];
	return NULL;
}

struct foreign { /* a package of somebody else's lock */
	const char *name, *version, *marker;
	struct buf hashes;
	int line;
};

static int end_foreign(
	struct foreign *package, struct arena *arena, requirement_lines *lines, struct error *err)
{
	if (!package->line)
		return 0;
	if (!package->name || !package->version)
		return fail(err, ERR_INVALID, "line %d: a package without name or version",
			package->line);
	if (package->hashes.len == 0)
		return fail(err, ERR_INVALID, "line %d: package '%s' has no sha256", package->line,
			package->name);
	vec_push(arena, lines,
		(struct requirement_line){
			arena_printf(arena, "%s==%s%s%s%s", package->name, package->version,
				package->marker ? " ; " : "",
				package->marker ? package->marker : "", package->hashes.data),
			package->line });
	buf_clear(&package->hashes);
	*package = (struct foreign){ .hashes = package->hashes };
	return 0;
}

static int take_foreign(struct foreign *package, const struct toml_entry *entry,
	struct arena *arena, struct error *err)
{
	static const char *const others[] = { "packages.vcs", "packages.directory",
		"packages.archive" };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (str_starts_with(str_from(entry->table), others[i]))
			return fail(err, ERR_INVALID, "line %d: package '%s' is not from an index",
				entry->line, package->name ? package->name : "");
	if ((!strcmp(entry->table, "packages.wheels.hashes") ||
		    !strcmp(entry->table, "packages.sdist.hashes")) &&
		!strcmp(entry->key, "sha256")) {
		if (!is_sha256(entry->text))
			return fail(err, ERR_INVALID, "line %d: not a sha256", entry->line);
		buf_printf(&package->hashes, " --hash=sha256:%s", entry->text);
	}
	if (strcmp(entry->table, "packages") || !entry->is_string)
		return 0;
	if (!strcmp(entry->key, "name") && requirement_name_is_valid(str_from(entry->text)))
		package->name = requirement_normalize_name(arena, str_from(entry->text));
	else if (!strcmp(entry->key, "version") && is_version(entry->text))
		package->version = entry->text;
	else if (!strcmp(entry->key, "marker"))
		package->marker = entry->text;
	return 0;
}

int pylock_requirements(
	struct str text, struct arena *arena, requirement_lines *lines, struct error *err)
{
	requirement_lines found = { 0 };
	auto_buf struct buf hashes;
	struct foreign package = { 0 };
	toml_list entries = { 0 };
	int failed = 0, instance = -1;

	buf_init(&hashes, TOML_MAX * 2);
	package.hashes = hashes;
	if (toml_parse(text, arena, &entries, err))
		return -1;
	for (size_t i = 0; !failed && i < entries.count; i++) {
		const struct toml_entry *entry = &entries.items[i];
		bool is_new = !strcmp(entry->table, "packages") && entry->instance != instance;

		if (is_new) {
			failed = end_foreign(&package, arena, &found, err);
			instance = entry->instance;
			package.line = entry->line;
		}
		failed = failed || take_foreign(&package, entry, arena, err);
	}
	failed = failed || end_foreign(&package, arena, &found, err);
	hashes = package.hashes;
	if (failed)
		return -1;
	*lines = found;
	return 0;
}
