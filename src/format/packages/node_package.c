#include "format/packages/node_package.h"

#include <ctype.h>
#include "base/buf.h"
#include "base/map.h"
#include "format/http/uri.h"
#include "format/text/json_read.h"

#define RANGE_MAX 256
#define ADDRESS_MAX 2048 /* of an address, and of a path in a lock that is looked at */
#define SHA512_BASE64_LEN 88

/* ---- names and ranges ---- */

/* Letters of both cases: some packages of the registry's first years have capitals. */
static bool is_word(const char *text, size_t len)
{
	if (len == 0 || text[0] == '.' || text[0] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-~", text[i]))
			return false;
	return true;
}

bool node_name_is_valid(const char *text)
{
	size_t len = strlen(text), scope = 0;
	if (len > NODE_NAME_MAX)
		return false;
	if (text[0] == '@') {
		const char *slash = strchr(text, '/');
		if (!slash || !is_word(text + 1, (size_t)(slash - text) - 1))
			return false;
		scope = (size_t)(slash - text) + 1;
	}
	return is_word(text + scope, len - scope);
}

/* What npm takes for a version, a range of versions or a tag; what leads elsewhere has a ':' or a
 * '/' in it, or is a name of a file. */
static bool is_range(const char *text)
{
	size_t len = strlen(text);
	if (len > RANGE_MAX || text[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-+^~<>=|*, ", text[i]))
			return false;
	return true;
}

static int refuse_name(const char *name, struct error *err)
{
	char shown[256];
	str_printable(shown, sizeof shown, str_from(name));
	return fail_hint(err, ERR_INVALID, "a name such as axios or @types/node",
		"invalid name of a Node package '%s'", shown);
}

static int refuse_range(const char *name, const char *range, struct error *err)
{
	char shown[256];
	str_printable(shown, sizeof shown, str_from(range));
	return fail_hint(err, ERR_DENIED, "give a version or a range, such as 5 or ^1.2",
		"package '%s': '%s' is not a version of the registry; git, URLs, files and aliases "
		"are refused",
		name, shown);
}

int node_spec_parse(
	const char *text, struct arena *arena, struct node_spec *spec, struct error *err)
{
	const char *at = text[0] ? strchr(text + 1, '@') : NULL;
	const char *name = at ? arena_bytes(arena, text, (size_t)(at - text)) : text;
	const char *range = at ? at + 1 : "latest";
	/* "user/repository", "./directory": npm takes them for git and files. */
	if (text[0] && !node_name_is_valid(name) &&
		(strchr(text, ':') || strchr("./~", text[0]) ||
			(text[0] != '@' && strchr(text, '/'))))
		return refuse_range(text, text, err);
	if (!node_name_is_valid(name))
		return refuse_name(name, err);
	if (!range[0] || !is_range(range))
		return refuse_range(name, range, err);
	*spec = (struct node_spec){ arena_text(arena, name), arena_text(arena, range) };
	return 0;
}

static int compare_specs(const void *a, const void *b)
{
	const struct node_spec *one = a, *other = b;
	return strcmp(one->name, other->name);
}

void package_json_print(const node_specs *specs, struct arena *arena, struct str *text)
{
	auto_buf struct buf out = buf_empty(NODE_PACKAGE_JSON_MAX);
	struct json j = json_to(&out, true);
	node_specs sorted = { 0 };
	for (size_t i = 0; i < specs->count; i++)
		vec_push(arena, &sorted, specs->items[i]);
	if (sorted.count > 1)
		qsort(sorted.items, sorted.count, sizeof *sorted.items, compare_specs);
	json_object(&j, NULL);
	json_object(&j, "dependencies");
	for (size_t i = 0; i < sorted.count; i++)
		json_text(&j, sorted.items[i].name, sorted.items[i].range);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
	buf_char(&out, '\n');
	*text = (struct str){ arena_bytes(arena, out.data, out.len), out.len };
}

/* ---- package.json ---- */

/* Of which the first two are what `node -e require(…)` is expected to find. */
static const char *const sections[] = { "dependencies", "devDependencies", "optionalDependencies",
	"peerDependencies" };
/* What would have files of the project beside package.json, or other packages than it names. */
static const char *const refused[] = { "workspaces", "patchedDependencies", "catalog", "catalogs" };

static const char *node_package_text_of(const struct json_value *value)
{
	bool is_text =
		value->kind == JSON_STRING && strlen(value->string.data) == value->string.len;
	return is_text ? value->string.data : NULL;
}

static int read_section(const struct json_value *section, struct arena *arena, node_specs *specs,
	struct json *out, const char **package, struct error *err)
{
	if (section->kind != JSON_OBJECT)
		return fail(
			err, ERR_INVALID, "package.json: '%s' is not an object", section->key.data);
	json_object(out, section->key.data);
	for (const struct json_value *m = section->first; m; m = m->next) {
		const char *range = node_package_text_of(m);
		*package = m->key.data;
		if (!node_name_is_valid(m->key.data))
			return refuse_name(m->key.data, err);
		if (!range)
			return fail(err, ERR_INVALID,
				"package.json: the version of '%s' is not a text", m->key.data);
		if (!is_range(range))
			return refuse_range(m->key.data, range, err);
		json_text(out, m->key.data, range);
		if (specs)
			vec_push(arena, specs,
				(struct node_spec){ m->key.data, range[0] ? range : "*" });
	}
	json_end(out);
	return 0;
}

/* Of npm: names (with a range after '@'), whose values are ranges or the same again; "." and
 * "$name" are npm's for the package itself and for a direct dependency. */
static int read_overrides(const struct json_value *object, int depth, struct json *out,
	const char **package, struct error *err)
{
	json_object(out, object->key.data);
	for (const struct json_value *m = object->first; m; m = m->next) {
		const char *range = node_package_text_of(m);
		*package = m->key.data;
		if (m->kind == JSON_OBJECT && depth < 8) {
			if (read_overrides(m, depth + 1, out, package, err) < 0)
				return -1;
			continue;
		}
		if (!range || !is_range(range[0] == '$' ? range + 1 : range))
			return refuse_range(m->key.data, range ? range : "", err);
		json_text(out, m->key.data, range);
	}
	json_end(out);
	return 0;
}

static int read_members(const struct json_value *root, struct arena *arena, node_specs *specs,
	struct json *out, const char **package, struct error *err)
{
	const struct json_value *overrides = json_member(root, "overrides");
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (json_member(root, refused[i]))
			return fail_hint(err, ERR_DENIED, "list the packages in 'dependencies'",
				"package.json: '%s' is not supported", refused[i]);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		const struct json_value *section = json_member(root, sections[i]);
		if (section &&
			read_section(section, arena, i < 2 ? specs : NULL, out, package, err) < 0)
			return -1;
	}
	*package = NULL;
	if (!overrides)
		return 0;
	if (overrides->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "package.json: 'overrides' is not an object");
	if (read_overrides(overrides, 0, out, package, err) < 0)
		return -1;
	*package = NULL;
	return 0;
}

int package_json_read(struct str text, struct arena *arena, node_specs *specs, struct str *kept,
	const char **package, struct error *err)
{
	auto_buf struct buf out = buf_empty(2 * NODE_PACKAGE_JSON_MAX);
	struct json j = json_to(&out, true);
	struct json_value *root;
	*package = NULL;
	if (text.len > NODE_PACKAGE_JSON_MAX)
		return fail(err, ERR_LIMIT, "package.json has more than 1M");
	if (json_read(text, arena, &root, err) < 0)
		return error_context(err, "package.json");
	if (root->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "package.json is not an object");
	json_object(&j, NULL);
	if (read_members(root, arena, specs, &j, package, err) < 0)
		return -1;
	json_end(&j);
	json_finish(&j);
	buf_char(&out, '\n');
	*kept = (struct str){ arena_bytes(arena, out.data, out.len), out.len };
	return 0;
}

/* ---- locks ---- */

struct str node_lock_without_commas(struct str text, struct arena *arena)
{
	char *out = arena_alloc(arena, text.len + 1);
	size_t len = 0;
	bool is_quoted = false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		size_t next = i + 1;
		while (c == ',' && !is_quoted && next < text.len &&
			strchr(" \t\r\n", text.data[next]) && text.data[next])
			next++;
		if (c == ',' && !is_quoted && next < text.len &&
			(text.data[next] == '}' || text.data[next] == ']'))
			continue;
		out[len++] = c;
		if (c == '\\' && is_quoted && i + 1 < text.len)
			out[len++] = text.data[++i];
		else if (c == '"')
			is_quoted = !is_quoted;
	}
	return (struct str){ out, len };
}

static bool is_version(const char *text)
{
	return isdigit((unsigned char)text[0]) && strlen(text) <= RANGE_MAX &&
	       strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-+") ==
		       strlen(text);
}

/* One SHA-512 in base64; a list of several hashes isn't what bun or npm write. */
static bool is_integrity(const char *text)
{
	static const char prefix[] = "sha512-";
	size_t len = sizeof prefix - 1;
	return strncmp(text, prefix, len) == 0 && strlen(text + len) == SHA512_BASE64_LEN &&
	       strspn(text + len,
		       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") ==
		       SHA512_BASE64_LEN - 2 &&
	       strcmp(text + len + SHA512_BASE64_LEN - 2, "==") == 0;
}

static int node_package_take(struct node_locked one, bool is_bundled, struct arena *arena,
	node_lock *lock, const char **package, struct error *err)
{
	*package = one.name;
	if (!node_name_is_valid(one.name))
		return refuse_name(one.name, err);
	if (!one.version || !is_version(one.version)) {
		char shown[128];
		str_printable(shown, sizeof shown, str_from(one.version ? one.version : ""));
		return fail_hint(err, ERR_DENIED, "use a version of the registry",
			"the lock has package '%s' from '%s', not from the registry", one.name,
			shown);
	}
	if (!is_bundled && (!one.integrity || !is_integrity(one.integrity)))
		return fail_hint(err, ERR_DENIED, "resolve again without the lock",
			"the lock has no SHA-512 of package '%s' %s", one.name, one.version);
	if (is_bundled)
		one.integrity = one.address = NULL;
	vec_push(arena, lock, one);
	return 0;
}

/* "key": ["name@version", "", { … }, "sha512-…"] */
static int read_bun(const struct json_value *packages, struct arena *arena, node_lock *lock,
	const char **package, struct error *err)
{
	for (const struct json_value *m = packages->first; m; m = m->next) {
		const char *ident =
			m->kind == JSON_ARRAY && m->first ? node_package_text_of(m->first) : NULL;
		const char *at = ident && ident[0] ? strchr(ident + 1, '@') : NULL;
		struct node_locked one = { .name = m->key.data };
		*package = m->key.data;
		if (at) {
			one.name = arena_bytes(arena, ident, (size_t)(at - ident));
			one.version = at + 1;
		}
		if (m->kind == JSON_ARRAY && m->count == 4 && m->first->next->next->next)
			one.integrity = node_package_text_of(m->first->next->next->next);
		if (m->kind == JSON_ARRAY && m->count > 1)
			one.address = node_package_text_of(m->first->next);
		if (node_package_take(one, false, arena, lock, package, err) < 0)
			return -1;
	}
	return 0;
}

static bool is_true(const struct json_value *value)
{
	return value && value->kind == JSON_BOOL && value->boolean;
}

/* Of the packages whose files have other packages in them: the text that paths of those begin with.
 */
static void find_bundlers(
	const struct json_value *packages, struct arena *arena, struct map *bundlers)
{
	for (const struct json_value *m = packages->first; m; m = m->next) {
		const struct json_value *list = json_member(m, "bundleDependencies");
		if (m->key.len > 0 && list &&
			(is_true(list) || (list->kind == JSON_ARRAY && list->count > 0)))
			map_set(bundlers, m->key, arena);
	}
}

/* npm takes what is said to be bundled from the registry, without a hash, when no package above it
 * brings it. */
static bool is_below_bundler(const struct map *bundlers, struct str path)
{
	if (path.len > ADDRESS_MAX)
		return false;
	for (size_t len = path.len; len > 0; len--)
		if (path.data[len - 1] == '/' &&
			map_get(bundlers, (struct str){ path.data, len - 1 }))
			return true;
	return false;
}

/* "node_modules/a/node_modules/@b/c": {"version", "resolved", "integrity"}; "" is the project. */
static int read_npm(const struct json_value *packages, struct arena *arena, node_lock *lock,
	const char **package, struct error *err)
{
	static const char top[] = "node_modules/";
	struct map bundlers;
	map_init(&bundlers, arena);
	find_bundlers(packages, arena, &bundlers);
	for (const struct json_value *m = packages->first; m; m = m->next) {
		const char *name = m->key.data, *next;
		struct node_locked one;
		if (m->key.len == 0)
			continue;
		*package = name;
		if (strncmp(name, top, sizeof top - 1) != 0 || is_true(json_member(m, "link")))
			return fail(err, ERR_DENIED,
				"the lock has '%s', which is a directory of the project", name);
		while ((next = strstr(name, top)))
			name = next + sizeof top - 1;
		one = (struct node_locked){ name, json_member_text(m, "version"),
			json_member_text(m, "integrity"), json_member_text(m, "resolved") };
		if (json_member_text(m, "name"))
			one.name = json_member_text(m, "name");
		if (node_package_take(one,
			    is_true(json_member(m, "inBundle")) &&
				    is_below_bundler(&bundlers, m->key),
			    arena, lock, package, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- addresses ---- */

/* The path of an address with "%2f" and "%40" read; false: it has what leads elsewhere. */
static bool read_address_path(const char *address, char *path, size_t size)
{
	struct uri parts;
	size_t len = 0;
	if (!uri_split(address, &parts) || strlen(address) >= size || strpbrk(address, "?#\\") ||
		strstr(address, ".."))
		return false;
	for (const char *c = parts.host.data + parts.host.len; *c; c++) {
		bool is_slash = strncasecmp(c, "%2f", 3) == 0;
		if (*c == '%' && !is_slash && strncmp(c, "%40", 3) != 0)
			return false;
		path[len++] = *c != '%' ? *c : is_slash ? '/' : '@';
		c += *c == '%' ? 2 : 0;
	}
	path[len] = '\0';
	return true;
}

/* "/a/-/" in "/@scope/a/-/": another package. */
static bool is_of_scope(const char *path, const char *at)
{
	const char *before = memrchr(path, '/', (size_t)(at - path));
	return before && before[1] == '@';
}

/* Registries keep files at NAME/-/FILE, some at NAME/VERSION/FILE. */
static bool is_address_of(const char *address, const struct node_locked *one)
{
	char path[ADDRESS_MAX], wanted[NODE_NAME_MAX + RANGE_MAX + 4];
	const char *const forms[] = { "-", one->version };
	if (!read_address_path(address, path, sizeof path))
		return false;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		bool fits = str_format(wanted, sizeof wanted, "/%s/%s/", one->name, forms[i]);
		const char *at = fits ? strstr(path, wanted) : NULL;
		if (at && !is_of_scope(path, at))
			return true;
	}
	return false;
}

int node_lock_check_addresses(const node_lock *lock, const char **package, struct error *err)
{
	for (size_t i = 0; i < lock->count; i++) {
		const struct node_locked *one = &lock->items[i];
		char shown[256];
		if (!one->address || !one->address[0] || is_address_of(one->address, one))
			continue;
		*package = one->name;
		str_printable(shown, sizeof shown, str_from(one->address));
		return fail_hint(err, ERR_DENIED, "resolve again without the lock",
			"the lock has package '%s' at '%s', which is not its address", one->name,
			shown);
	}
	return 0;
}

static int compare_locked(const void *a, const void *b)
{
	const struct node_locked *one = a, *other = b;
	int order = strcmp(one->name, other->name);
	if (order == 0)
		order = strcmp(one->version, other->version);
	return order ? order
		     : strcmp(one->address ? one->address : "",
			       other->address ? other->address : "");
}

static void sort(node_lock *lock)
{
	size_t count = 0;
	if (lock->count > 1)
		qsort(lock->items, lock->count, sizeof *lock->items, compare_locked);
	for (size_t i = 0; i < lock->count; i++)
		if (i == 0 || compare_locked(&lock->items[count - 1], &lock->items[i]) != 0)
			lock->items[count++] = lock->items[i];
	lock->count = count;
}

static int check_workspaces(const struct json_value *root, struct error *err)
{
	const struct json_value *workspaces = json_member(root, "workspaces");
	for (const struct json_value *m = workspaces ? workspaces->first : NULL; m; m = m->next)
		if (m->key.len > 0)
			return fail(
				err, ERR_DENIED, "the lock has the workspace '%s'", m->key.data);
	if (json_member(root, "patchedDependencies"))
		return fail(err, ERR_DENIED, "the lock has 'patchedDependencies'");
	return 0;
}

int node_lock_read(struct str text, struct arena *arena, node_lock *lock, bool *is_npm,
	const char **package, struct error *err)
{
	node_lock found = { 0 };
	struct json_value *root;
	*package = NULL;
	if (text.len > NODE_LOCK_MAX)
		return fail(err, ERR_LIMIT, "the lock has more than 32M");
	if (json_read(node_lock_without_commas(text, arena), arena, &root, err) < 0) {
		error_hint(err, "a lock is a bun.lock or a package-lock.json");
		return error_context(err, "the lock");
	}
	const struct json_value *packages = json_member(root, "packages");
	if (!json_member(root, "lockfileVersion") || (packages && packages->kind != JSON_OBJECT))
		return fail_hint(err, ERR_INVALID, "a lock is a bun.lock or a package-lock.json",
			"the lock has no 'lockfileVersion', or no object 'packages'");
	bool is_bun = json_member(root, "workspaces") != NULL;
	if (!is_bun && !packages)
		return fail_hint(err, ERR_INVALID,
			"npm install --package-lock-only writes a new one",
			"the lock is of a version before npm 7");
	if (check_workspaces(root, err) < 0)
		return -1;
	if (packages && (is_bun ? read_bun : read_npm)(packages, arena, &found, package, err) < 0)
		return -1;
	*package = NULL;
	sort(&found);
	*lock = found;
	*is_npm = !is_bun;
	return 0;
}
