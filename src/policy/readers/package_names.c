#include "policy/readers/package_names.h"

#include "format/packages/requirements.h"
#include "format/text/ini.h"
#include "format/text/json_read.h"
#include "format/text/toml_lite.h"
#include "policy/readers/package_names_internal.h"

#define FROM_DIRECTORY "a package of a file or directory isn't known by its name"
#define FROM_REPOSITORY "a package of a repository isn't known by its name"

/* ---- what is found ---- */

void names_add(struct reading *r, text_list *list, const char *text, size_t len)
{
	if (!len)
		return;
	if (++r->count > PACKAGE_NAMES_MAX)
		return;
	vec_push(r->arena, list, (const char *)arena_bytes(r->arena, text, len));
}

void names_add_package(struct reading *r, const char *text)
{
	/* @scope/name@version, name[extra]>=1; marker */
	size_t skipped = text[0] == '@' ? 1 : 0;
	names_add(r, &r->names->names, text, skipped + strcspn(text + skipped, "<>=!~;[@( \t,"));
}

void names_add_unknown(struct reading *r, const char *why)
{
	if (!r->names->unknown)
		r->names->unknown = why;
}

/* Where the scheme of the URL at `colon` begins. */
static const char *scheme_of(const char *text, const char *colon)
{
	while (colon > text && (colon[-1] == '+' || colon[-1] == '-' || colon[-1] == '.' ||
				       (colon[-1] >= '0' && colon[-1] <= '9') ||
				       ((colon[-1] | 0x20) >= 'a' && (colon[-1] | 0x20) <= 'z')))
		colon--;
	return colon;
}

bool names_add_url(struct reading *r, const char *text)
{
	const char *colon = strstr(text, "://");
	if (!colon)
		return false;
	const char *begin = scheme_of(text, colon);
	size_t len = strcspn(begin, " \t,;#\"'");
	bool is_git = strncasecmp(begin, "git+", 4) == 0 || strncasecmp(begin, "git:", 4) == 0 ||
		      strncasecmp(begin, "ssh:", 4) == 0 || strncasecmp(begin, "git@", 4) == 0;
	if (strncasecmp(begin, "file:", 5) == 0) {
		names_add_unknown(r, FROM_DIRECTORY);
		return true;
	}
	if (strncasecmp(begin, "git+", 4) == 0) {
		begin += 4;
		len -= 4;
	}
	names_add(r, is_git ? &r->names->remotes : &r->names->urls, begin, len);
	return true;
}

void names_add_spec(struct reading *r, const char *spec)
{
	static const char *const local[] = {
		"file:", "link:", "portal:", "workspace:", "patch:", "exec:", "./", "../", "/", "~/"
	};
	static const char *const hosts[] = { "github:", "gitlab:", "bitbucket:", "gist:", "git@" };
	const char *alias = strstr(spec, "npm:");
	if (alias) {
		names_add_package(r, alias + 4);
		/* yarn: "npm:^1.0" has no name, and a patch hides one. */
		if (strncmp(spec, "npm:", 4) == 0)
			return;
	}
	if (names_add_url(r, spec))
		return;
	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		if (strncmp(spec, local[i], strlen(local[i])) == 0) {
			names_add_unknown(r, FROM_DIRECTORY);
			return;
		}
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
		if (strncmp(spec, hosts[i], strlen(hosts[i])) == 0) {
			names_add_unknown(r, FROM_REPOSITORY);
			return;
		}
	if (strchr(spec, '/'))
		names_add_unknown(r, FROM_REPOSITORY);
}

/* ---- Python ---- */

/* "name[extra]>=1 ; marker" or "name @ URL" */
static void add_requirement(struct reading *r, const char *text)
{
	names_add_package(r, text);
	names_add_url(r, text);
}

static void take_option(struct reading *r, const struct requirement *one)
{
	static const char *const indexes[] = { "--index-url", "--extra-index-url", "--find-links" };
	const char *value = one->value ? one->value : "";
	if (strcmp(one->option, "--requirement") == 0 || strcmp(one->option, "--constraint") == 0) {
		if (names_add_url(r, value))
			names_add_unknown(r, "requirements at an address aren't known");
		else
			names_add(r, &r->names->files, value, strlen(value));
		return;
	}
	for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++)
		if (strcmp(one->option, indexes[i]) == 0 && !names_add_url(r, value))
			names_add_unknown(r, FROM_DIRECTORY);
}

static int read_requirements(struct reading *r, struct str text, struct error *err)
{
	requirement_list list = { 0 };
	if (requirements_parse(text, r->arena, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		const struct requirement *one = &list.items[i];
		if (one->name)
			names_add(r, &r->names->names, one->name, strlen(one->name));
		if (one->kind == REQUIREMENT_URL)
			names_add_url(r, one->text);
		else if (one->kind == REQUIREMENT_OPTION)
			take_option(r, one);
		else if (one->kind == REQUIREMENT_PATH)
			names_add_unknown(r, FROM_DIRECTORY);
		else if (one->kind == REQUIREMENT_EDITABLE &&
			 !names_add_url(r, one->value ? one->value : one->text))
			names_add_unknown(r, FROM_DIRECTORY);
	}
	return 0;
}

static bool is_table(const struct toml_entry *entry, const char *prefix)
{
	size_t len = strlen(prefix);
	return strncmp(entry->table, prefix, len) == 0 &&
	       (!entry->table[len] || entry->table[len] == '.');
}

/* Where a package comes from, if not from an index. */
static void take_source(struct reading *r, const struct toml_entry *entry)
{
	if (strcmp(entry->key, "git") == 0)
		names_add(r, &r->names->remotes, entry->text, strlen(entry->text));
	else if (strcmp(entry->key, "path") == 0 || strcmp(entry->key, "file") == 0 ||
		 strcmp(entry->key, "workspace") == 0 || strcmp(entry->key, "directory") == 0)
		names_add_unknown(r, FROM_DIRECTORY);
	else
		names_add_url(r, entry->text);
}

/* Lists of requirements, and tables of which every list is one. */
static bool is_requirement_list(const struct toml_entry *entry)
{
	static const struct {
		const char *table, *key;
	} lists[] = { { "project", "dependencies" }, { "project.optional-dependencies", NULL },
		{ "dependency-groups", NULL }, { "build-system", "requires" },
		{ "tool.uv", "dev-dependencies" }, { "tool.uv", "constraint-dependencies" },
		{ "tool.uv", "override-dependencies" },
		{ "tool.uv", "build-constraint-dependencies" },
		{ "tool.uv.extra-build-dependencies", NULL }, { "tool.pdm.dev-dependencies", NULL },
		{ "tool.pdm.resolution", NULL } };
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (strcmp(entry->table, lists[i].table) == 0 &&
			(!lists[i].key || strcmp(entry->key, lists[i].key) == 0))
			return true;
	return false;
}

/* [tool.poetry.dependencies], [tool.poetry.group.x.dependencies]: name = "^1", or a table. */
static bool take_poetry(struct reading *r, const struct toml_entry *entry)
{
	static const char ending[] = "dependencies";
	const char *at =
		strncmp(entry->table, "tool.poetry", 11) == 0 ? strstr(entry->table, ending) : NULL;
	if (!at)
		return false;
	at += sizeof ending - 1;
	if (!*at) {
		names_add_package(r, entry->key);
	} else if (*at == '.') {
		names_add_package(r, at + 1);
		take_source(r, entry);
	}
	return true;
}

/* project.dependencies = […] is dependencies = […] of [project]. A key of a table of packages may
 * have a dot in its name. */
static struct toml_entry split_key(struct arena *arena, struct toml_entry entry)
{
	static const char *const tables[] = { "", "project", "tool", "tool.uv", "tool.poetry",
		"tool.pdm" };
	const char *dot = strrchr(entry.key, '.');
	for (size_t i = 0; dot && i < sizeof tables / sizeof *tables; i++)
		if (strcmp(entry.table, tables[i]) == 0) {
			entry.table = arena_printf(arena, "%s%s%.*s", entry.table,
				entry.table[0] ? "." : "", (int)(dot - entry.key), entry.key);
			entry.key = dot + 1;
			break;
		}
	return entry;
}

static int read_pyproject(struct reading *r, struct str text, struct error *err)
{
	toml_list list = { 0 };
	if (toml_parse(text, r->arena, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		const struct toml_entry one = split_key(r->arena, list.items[i]), *entry = &one;
		if (is_requirement_list(entry) && entry->is_string)
			add_requirement(r, entry->text);
		else if (take_poetry(r, entry))
			continue;
		else if (strcmp(entry->table, "project") == 0 && strcmp(entry->key, "name") == 0)
			names_add_package(r, entry->text);
		else if (strcmp(entry->table, "project") == 0 &&
			 strcmp(entry->key, "dynamic") == 0 && strstr(entry->text, "dependencies"))
			names_add_unknown(r, "the project computes its dependencies");
		else if (strcmp(entry->key, "backend-path") == 0)
			names_add_unknown(r, "the project is built by a program of its own");
		else if (is_table(entry, "tool.uv.workspace"))
			names_add_unknown(r, "projects of the workspace aren't known");
		else if (is_table(entry, "tool.uv.sources"))
			take_source(r, entry);
		else if (is_table(entry, "tool.uv") || is_table(entry, "tool.poetry.source") ||
			 is_table(entry, "tool.pdm"))
			names_add_url(r, entry->text);
	}
	return 0;
}

/* The project itself is among the packages of a lock. */
static void take_locked_source(struct reading *r, const struct toml_entry *entry)
{
	bool is_itself = strcmp(entry->text, ".") == 0;
	if (strcmp(entry->key, "editable") == 0 || strcmp(entry->key, "virtual") == 0 ||
		strcmp(entry->key, "directory") == 0 || strcmp(entry->key, "path") == 0) {
		if (!is_itself)
			names_add_unknown(r, FROM_DIRECTORY);
	} else if (strcmp(entry->key, "git") == 0) {
		names_add(r, &r->names->remotes, entry->text, strcspn(entry->text, "?#"));
	} else if (strcmp(entry->key, "registry") == 0 && !strstr(entry->text, "://")) {
		names_add_unknown(r, FROM_DIRECTORY);
	} else if (strcmp(entry->key, "registry") == 0 || strcmp(entry->key, "url") == 0) {
		names_add_url(r, entry->text);
	}
}

static int read_python_lock(struct reading *r, struct str text, struct error *err)
{
	toml_list list = { 0 };
	const char *type = ""; /* of Poetry's [package.source], before its url */
	if (toml_parse(text, r->arena, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		const struct toml_entry *entry = &list.items[i];
		bool is_package = strcmp(entry->table, "package") == 0 ||
				  strcmp(entry->table, "packages") == 0;
		if (is_package && strcmp(entry->key, "name") == 0) {
			names_add_package(r, entry->text);
			type = "";
		} else if (is_package &&
			   (strcmp(entry->key, "index") == 0 || strcmp(entry->key, "url") == 0))
			names_add_url(r, entry->text);
		else if (is_package &&
			 (strcmp(entry->key, "git") == 0 || strcmp(entry->key, "path") == 0))
			take_source(r, entry);
		else if (strcmp(entry->table, "package.source") == 0 &&
			 strcmp(entry->key, "type") == 0)
			type = entry->text;
		else if (strcmp(entry->table, "package.source") == 0 && strcmp(type, "git") == 0 &&
			 strcmp(entry->key, "url") == 0)
			names_add(r, &r->names->remotes, entry->text, strlen(entry->text));
		else if (strcmp(entry->table, "package.source") == 0 &&
			 (strcmp(type, "directory") == 0 || strcmp(type, "file") == 0))
			names_add_unknown(r, FROM_DIRECTORY);
		else if (strcmp(entry->table, "package.source") == 0 ||
			 is_table(entry, "packages.archive"))
			take_locked_source(r, entry);
		else if (is_table(entry, "packages.vcs") || is_table(entry, "packages.directory"))
			names_add_unknown(r, FROM_REPOSITORY);
		else if (is_table(entry, "package.dependencies") && strcmp(entry->key, "name") == 0)
			names_add_package(r, entry->text);
	}
	return 0;
}

/* [packages] and [dev-packages]: name = "*", or a table; [[source]]: url. */
static int read_pipfile(struct reading *r, struct str text, struct error *err)
{
	toml_list list = { 0 };
	if (toml_parse(text, r->arena, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		const struct toml_entry *entry = &list.items[i];
		const char *dot = strchr(entry->table, '.');
		if (strcmp(entry->table, "source") == 0) {
			names_add_url(r, entry->text);
		} else if (dot) {
			names_add_package(r, dot + 1);
			take_source(r, entry);
		} else if (strcmp(entry->table, "requires") != 0 &&
			   strcmp(entry->table, "scripts") != 0 &&
			   strcmp(entry->table, "pipenv") != 0) {
			names_add_package(r, entry->key);
		}
	}
	return 0;
}

static int read_pipfile_lock(struct reading *r, struct str text, struct error *err)
{
	struct json_value *root;
	if (json_read(text, r->arena, &root, err) < 0)
		return -1;
	for (const struct json_value *group = root->first; group; group = group->next) {
		bool is_meta = str_is(group->key, "_meta");
		if (group->kind != JSON_OBJECT)
			return fail(err, ERR_INVALID, "a group of packages is not an object");
		for (const struct json_value *m = group->first; m; m = m->next) {
			if (!is_meta)
				names_add_package(r, m->key.data);
			for (const struct json_value *v = m->first; v; v = v->next) {
				if (v->kind == JSON_STRING && str_is(v->key, "git"))
					names_add(r, &r->names->remotes, v->string.data,
						v->string.len);
				else if (v->kind == JSON_STRING &&
					 (str_is(v->key, "path") || str_is(v->key, "file")))
					names_add_unknown(r, FROM_DIRECTORY);
				const char *url = json_member_text(v, "url");
				if (is_meta && url)
					names_add_url(r, url);
			}
		}
	}
	return 0;
}

/* ---- settings ---- */

/* registry = URL, @scope:registry=URL, npmRegistryServer: "URL" */
static int read_settings(struct reading *r, struct str text, struct error *err)
{
	struct str line;
	if (text.len && memchr(text.data, '\0', text.len))
		return fail(err, ERR_INVALID, "it has a NUL");
	while (str_next(&text, '\n', &line)) {
		const char *one = arena_bytes(r->arena, line.data, line.len);
		if (!strcasestr(one, "registry"))
			continue;
		if (!names_add_url(r, one) && strstr(one, "${"))
			names_add_unknown(r, "a registry that a variable names isn't known");
	}
	return 0;
}

static int read_toml(struct reading *r, struct str text, struct error *err)
{
	toml_list list = { 0 };
	if (toml_parse(text, r->arena, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		names_add_url(r, list.items[i].text);
	return 0;
}

static int read_pip_conf(struct reading *r, struct str text, struct error *err)
{
	static const char *const keys[] = { "index-url", "extra-index-url", "find-links",
		"requirement", "constraint" };
	ini_list list = { 0 };
	if (ini_parse(text, r->arena, &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
			struct str rest = str_from(list.items[i].value), word;
			if (strcmp(list.items[i].key, keys[k]) != 0)
				continue;
			while (str_next(&rest, ' ', &word)) {
				struct str more = word, part;
				while (str_next(&more, '\n', &part)) {
					const char *one =
						arena_bytes(r->arena, part.data, part.len);
					if (part.len && !names_add_url(r, one))
						names_add_unknown(r, FROM_DIRECTORY);
				}
			}
		}
	return 0;
}

/* The packages of such a script aren't read: they are rarely written, and TOML in comments. */
static int read_script(struct reading *r, struct str text, struct error *err)
{
	if (text.len && memmem(text.data, text.len, "# /// script", 12))
		names_add_unknown(r, "the script lists packages itself");
	return 0;
}

int package_names_read(enum package_file kind, struct str text, struct arena *arena,
	struct package_names *names, struct error *err)
{
	static int (*const readers[PACKAGE_FILE_COUNT])(
		struct reading * r, struct str text, struct error * err) = {
		[PACKAGE_FILE_REQUIREMENTS] = read_requirements,
		[PACKAGE_FILE_PYPROJECT] = read_pyproject,
		[PACKAGE_FILE_PYTHON_LOCK] = read_python_lock,
		[PACKAGE_FILE_PIPFILE] = read_pipfile,
		[PACKAGE_FILE_PIPFILE_LOCK] = read_pipfile_lock,
		[PACKAGE_FILE_PACKAGE_JSON] = names_read_package_json,
		[PACKAGE_FILE_NPM_LOCK] = names_read_npm_lock,
		[PACKAGE_FILE_BUN_LOCK] = names_read_bun_lock,
		[PACKAGE_FILE_YARN_LOCK] = names_read_yarn_lock,
		[PACKAGE_FILE_PNPM_LOCK] = names_read_pnpm_lock,
		[PACKAGE_FILE_SETTINGS] = read_settings,
		[PACKAGE_FILE_TOML] = read_toml,
		[PACKAGE_FILE_PIP_CONF] = read_pip_conf,
		[PACKAGE_FILE_SCRIPT] = read_script,
	};
	struct package_names found = { 0 };
	struct reading r = { .arena = arena, .names = &found };
	if (readers[kind](&r, text, err) < 0)
		return -1;
	if (r.count > PACKAGE_NAMES_MAX)
		return fail(err, ERR_LIMIT, "more than %d packages", PACKAGE_NAMES_MAX);
	*names = found;
	return 0;
}
