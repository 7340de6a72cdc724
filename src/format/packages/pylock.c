#include "format/packages/pylock.h"
#include "format/text/toml_lite.h"

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

struct reading {
	struct arena *arena;
	pylock_list list;
	bool is_foreign; /* written by any tool: versions and hashes are taken, not addresses */
	enum error_code code; /* of errors in the file */
	int package, wheel;   /* instances of the tables that are being read */
	struct error *err;
};

static int take_package(struct reading *r, const struct toml_entry *entry)
{
	if (r->list.count == 0 || r->package != entry->instance)
		vec_push(r->arena, &r->list, (struct pylock_package){ .line = entry->line });
	r->package = entry->instance;
	struct pylock_package *package = &r->list.items[r->list.count - 1];
	if (!strcmp(entry->key, "name")) {
		struct str name = str_from(entry->text);
		if (!requirement_name_is_valid(name))
			return fail(
				r->err, r->code, "line %d: not the name of a package", entry->line);
		package->name = requirement_normalize_name(r->arena, name);
	} else if (!strcmp(entry->key, "version")) {
		if (!is_version(entry->text))
			return fail(r->err, r->code, "line %d: not a version", entry->line);
		package->version = entry->text;
	} else if (!strcmp(entry->key, "marker") && entry->is_string)
		package->marker = entry->text;
	return 0;
}

/* An entry of a wheel, or of the hashes of a wheel or sdist. */
static int take_file(struct reading *r, const struct toml_entry *entry, bool is_hash)
{
	if (r->list.count == 0)
		return fail(r->err, r->code, "line %d: a file outside of a package", entry->line);
	struct pylock_package *package = &r->list.items[r->list.count - 1];
	if (r->is_foreign ? is_hash : !is_hash && r->wheel != entry->instance)
		vec_push(r->arena, &package->files, (struct pylock_file){ 0 });
	if (!is_hash)
		r->wheel = entry->instance;
	if (r->is_foreign && !is_hash)
		return 0;
	if (package->files.count == 0)
		return fail(r->err, r->code, "line %d: a hash outside of a wheel", entry->line);
	struct pylock_file *file = &package->files.items[package->files.count - 1];
	if (is_hash) {
		if (!is_sha256(entry->text))
			return fail(r->err, r->code, "line %d: not a sha256", entry->line);
		file->sha256 = entry->text;
	} else if (!strcmp(entry->key, "url")) {
		if (!is_url(entry->text))
			return fail(r->err, r->code, "line %d: not the address of a wheel",
				entry->line);
		file->url = entry->text;
	} else if (!strcmp(entry->key, "path"))
		return fail(
			r->err, r->code, "line %d: a wheel by a path of this host", entry->line);
	return 0;
}

/* Whether the table belongs to a package that is not from an index. uv's own files have only known
 * tables; files of other tools may have more. */
static bool is_elsewhere(const struct reading *r, const char *table)
{
	static const char *const known[] = { "", "packages.wheels", "packages.wheels.hashes",
		"packages.sdist", "packages.sdist.hashes", "packages.dependencies" };
	static const char *const others[] = { "packages.vcs", "packages.directory",
		"packages.archive" };
	if (r->is_foreign) {
		for (size_t i = 0; i < sizeof others / sizeof *others; i++)
			if (str_starts_with(str_from(table), others[i]))
				return true;
		return false;
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(table, known[i]))
			return false;
	return true;
}

static int pylock_take(struct reading *r, const struct toml_entry *entry)
{
	bool is_sha256 = !strcmp(entry->key, "sha256");
	if (!strcmp(entry->table, "packages"))
		return take_package(r, entry);
	if (is_elsewhere(r, entry->table))
		return fail(r->err, r->code, "line %d: a package that is not from an index",
			entry->line);
	if (!strcmp(entry->table, "packages.wheels"))
		return take_file(r, entry, false);
	if (is_sha256 && (!strcmp(entry->table, "packages.wheels.hashes") ||
				 (r->is_foreign && !strcmp(entry->table, "packages.sdist.hashes"))))
		return take_file(r, entry, true);
	return 0;
}

static int pylock_check(const struct reading *r)
{
	for (size_t i = 0; i < r->list.count; i++) {
		const struct pylock_package *package = &r->list.items[i];
		if (!package->name || !package->version)
			return fail(r->err, r->code, "line %d: a package without name or version",
				package->line);
		if (package->files.count == 0)
			return fail(r->err, r->code, "%s==%s has no %s", package->name,
				package->version, r->is_foreign ? "sha256" : "wheel");
		for (size_t j = 0; j < package->files.count; j++)
			if ((!package->files.items[j].url && !r->is_foreign) ||
				!package->files.items[j].sha256)
				return fail(r->err, r->code,
					"a wheel of %s==%s has no address or no sha256",
					package->name, package->version);
	}
	return 0;
}

static int read_packages(struct reading *r, struct str text)
{
	toml_list entries = { 0 };
	r->package = r->wheel = -1;
	if (toml_parse(text, r->arena, &entries, r->err)) {
		r->err->code = r->err->code == ERR_LIMIT ? ERR_LIMIT : r->code;
		return -1;
	}
	for (size_t i = 0; i < entries.count; i++)
		if (pylock_take(r, &entries.items[i]))
			return -1;
	return pylock_check(r);
}

static int pylock_compare(const void *a, const void *b)
{
	const struct pylock_package *left = a, *right = b;
	return strcmp(left->name, right->name);
}

int pylock_parse(struct str text, struct arena *arena, pylock_list *list, struct error *err)
{
	struct reading r = { .arena = arena, .code = ERR_CORRUPT, .err = err };
	if (read_packages(&r, text))
		return -1;
	if (r.list.count)
		qsort(r.list.items, r.list.count, sizeof *r.list.items, pylock_compare);
	for (size_t i = 1; i < r.list.count; i++)
		if (!strcmp(r.list.items[i].name, r.list.items[i - 1].name))
			return fail(err, ERR_CORRUPT, "package '%s' is listed twice",
				r.list.items[i].name);
	*list = r.list;
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

int pylock_requirements(
	struct str text, struct arena *arena, requirement_lines *lines, struct error *err)
{
	struct reading r = { .arena = arena, .is_foreign = true, .code = ERR_INVALID, .err = err };
	if (read_packages(&r, text))
		return -1;
	for (size_t i = 0; i < r.list.count; i++) {
		const struct pylock_package *package = &r.list.items[i];
		auto_buf struct buf line = buf_empty(TOML_MAX * 2);
		buf_printf(&line, "%s==%s%s%s", package->name, package->version,
			package->marker ? " ; " : "", package->marker ? package->marker : "");
		for (size_t j = 0; j < package->files.count; j++)
			buf_printf(&line, " --hash=sha256:%s", package->files.items[j].sha256);
		vec_push(arena, lines,
			(struct requirement_line){
				arena_bytes(arena, line.data, line.len), package->line });
	}
	return 0;
}
