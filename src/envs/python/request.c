#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "envs/python/download.h"
#include "envs/python/internal.h"
#include "envs/python/known.h"

/* -- policy -- */

int policy_judge_lock(const struct config *config, const lock_list *packages,
	struct build_problem *problem, struct error *err)
{
	for (size_t i = 0; i < packages->count; i++) {
		const char *name = packages->items[i].name;
		if (policy_judge_name(config, name, "of what was resolved", problem, err) < 0)
			return -1;
	}
	return 0;
}

static const struct requirement *find_requirement(
	const requirement_list *requirements, const char *name, size_t *next)
{
	for (; *next < requirements->count; (*next)++) {
		const struct requirement *r = &requirements->items[*next];
		if (r->name && strcmp(r->name, name) == 0) {
			++*next;
			return r;
		}
	}
	return NULL;
}

/* Keeps the hashes that the requirements give. false: they give none for this package. */
static bool keep_given(
	const requirement_list *requirements, struct lock_package *package, struct arena *arena)
{
	struct lock_package kept = { .name = package->name };
	const struct requirement *r;
	bool is_given = false;
	for (size_t i = 0; i < package->hashes.count; i++) {
		bool is_listed = false;
		/* The same package may be there several times, with markers. */
		for (size_t at = 0; (r = find_requirement(requirements, package->name, &at));) {
			is_given |= r->hashes.count > 0;
			for (size_t h = 0; h < r->hashes.count; h++)
				is_listed |=
					strcmp(r->hashes.items[h], package->hashes.items[i]) == 0;
		}
		if (is_listed)
			vec_push(arena, &kept.hashes, package->hashes.items[i]);
	}
	if (is_given) {
		package->hashes.items = kept.hashes.items;
		package->hashes.count = kept.hashes.count;
		package->hashes.capacity = kept.hashes.capacity;
	}
	return is_given;
}

static bool any_hash(const requirement_list *requirements)
{
	for (size_t i = 0; i < requirements->count; i++) {
		if (requirements->items[i].hashes.count > 0)
			return true;
	}
	return false;
}

int policy_keep_hashes(const requirement_list *requirements, bool is_strict, lock_list *packages,
	struct arena *arena, struct build_problem *problem, struct error *err)
{
	is_strict |= any_hash(requirements);
	if (!is_strict)
		return 0;
	for (size_t i = 0; i < packages->count; i++) {
		struct lock_package *package = &packages->items[i];
		if (!keep_given(requirements, package, arena)) {
			fail_hint(err, ERR_INVALID,
				"add it with its hash, or leave out all hashes and "
				"--require-hashes",
				"package '%s==%s' is needed too, but the requirements have no hash "
				"for it",
				package->name, package->version);
			return build_failed(problem, BUILD_INVALID, package->name);
		}
		if (package->hashes.count == 0) {
			fail_hint(err, ERR_DENIED,
				"check the hash; the package may have been tampered with",
				"package '%s==%s': the index has no file with a hash that the "
				"requirements allow",
				package->name, package->version);
			return build_failed(problem, BUILD_HASH_MISMATCH, package->name);
		}
	}
	return 0;
}

/* -- what was asked for -- */

/* "requirements.txt, line 3", or "--pip". */
static const char *place(const struct requirement *r, struct arena *arena)
{
	return r->file ? arena_printf(arena, "%s, line %d", r->file, r->line) : "--pip";
}

/* Options that name no other place. */
static bool is_harmless_option(const char *option)
{
	return strcmp(option, "--require-hashes") == 0 || strcmp(option, "--pre") == 0;
}

/* With allow_options: what names indexes. */
static bool is_index_option(const char *option)
{
	return strcmp(option, "--index-url") == 0 || strcmp(option, "--extra-index-url") == 0 ||
	       strcmp(option, "--trusted-host") == 0;
}

/* What names another file. */
static bool is_file_option(const char *option)
{
	return strcmp(option, "--requirement") == 0 || strcmp(option, "--constraint") == 0;
}

static void take_index_options(struct env_wanted *wanted, struct arena *arena)
{
	const requirement_list *list = &wanted->requirements;
	for (size_t i = 0; i < list->count; i++) {
		const struct requirement *r = &list->items[i];
		if (r->kind != REQUIREMENT_OPTION || !is_index_option(r->option))
			continue;
		if (strcmp(r->option, "--trusted-host") == 0)
			vec_push(arena, &wanted->indexes.trusted_hosts, r->value);
		else if (strcmp(r->option, "--extra-index-url") == 0)
			vec_push(arena, &wanted->indexes.extra, r->value);
		else
			wanted->indexes.index = r->value;
	}
}

static int judge_requirement(const struct env_store *store, const struct requirement *r,
	bool is_strict, struct arena *arena, struct build_problem *problem, struct error *err)
{
	const struct config *config = &store->config;
	const char *where = place(r, arena);
	switch (r->kind) {
	case REQUIREMENT_PACKAGE:
		break;
	case REQUIREMENT_URL:
		if (config->allow_urls && wheel_url(r, arena) &&
			wheel_url_version(wheel_url(r, arena), arena))
			break;
		fail_hint(err, ERR_DENIED,
			"allow_urls in config.yaml allows wheels by http and https (name @ "
			"https://.../name-1.0-....whl)",
			"%s: '%s': a URL is not installed from requirements", where, r->shown);
		return build_failed(problem, BUILD_DENIED, r->name);
	case REQUIREMENT_PATH:
	case REQUIREMENT_EDITABLE:
		fail_hint(err, ERR_DENIED,
			"name a package of the index; for a project on this host use --editable "
			"PATH",
			"%s: '%s': a path is not installed from requirements", where, r->shown);
		return build_failed(problem, BUILD_DENIED, r->name);
	case REQUIREMENT_OPTION:
		if (is_harmless_option(r->option) ||
			(config->allow_options && is_index_option(r->option)))
			return 0;
		fail_hint(err, ERR_DENIED,
			is_file_option(r->option)
				? "the requirements of a workspace include no files: put their "
				  "lines into one text"
				: "indexes are named by --index, --extra-index or config.yaml; "
				  "allow_options there allows lines for them",
			"%s: option '%s' is not taken from requirements", where, r->option);
		return build_failed(problem, BUILD_DENIED, NULL);
	}
	if (policy_judge_name(config, r->name, where, problem, err) < 0)
		return -1;
	if (is_strict && (r->hashes.count == 0 || (!r->is_pinned && r->kind != REQUIREMENT_URL))) {
		fail_hint(err, ERR_INVALID,
			r->hashes.count == 0 ? "add --hash=sha256:…, to this line or to none"
					     : "pin it with ==",
			"%s: '%s' has no %s, and hashes are required", where, r->name,
			r->hashes.count == 0 ? "hash" : "exact version");
		return build_failed(problem, BUILD_INVALID, r->name);
	}
	return 0;
}

int wanted_judge(const struct env_store *store, struct env_wanted *wanted, struct arena *arena,
	struct build_problem *problem, struct error *err)
{
	const requirement_list *list = &wanted->requirements;
	wanted->is_strict =
		wanted->request->require_hashes || store->config.require_hashes || any_hash(list);
	for (size_t i = 0; i < list->count; i++) {
		const struct requirement *r = &list->items[i];
		wanted->is_strict |=
			r->kind == REQUIREMENT_OPTION && strcmp(r->option, "--require-hashes") == 0;
	}
	for (size_t i = 0; i < list->count; i++) {
		if (judge_requirement(
			    store, &list->items[i], wanted->is_strict, arena, problem, err) < 0)
			return -1;
	}
	return 0;
}

/* -- projects -- */

/* Projects may have pyproject.toml for linters alone. */
static bool names_backend(struct str text)
{
	struct str line;
	bool found = false;
	while (str_next(&text, '\n', &line)) {
		line = str_trim(line);
		found |= str_starts_with(line, "[build-system]") ||
			 str_starts_with(line, "[project]");
	}
	return found;
}

static int look_at_project(
	const char *path, struct arena *arena, struct env_project *project, struct error *err)
{
	static const char *const files[] = { "pyproject.toml", "setup.py", "setup.cfg" };
	bool has_backend = false;
	struct sha256 hash;
	*project = (struct env_project){ .path = path };
	sha256_init(&hash);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		const char *file = arena_printf(arena, "%s/%s", path, files[i]);
		char sha256[2 * SHA256_LEN + 1] = "";
		auto_close int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		struct str text;
		if (fd < 0 && errno != ENOENT)
			return fail_errno(err, "open '%s'", file);
		if (fd >= 0 && file_read(fd, REQUIREMENTS_MAX, arena, &text) < 0)
			return fail_errno(err, "read '%s'", file);
		if (fd >= 0 && i == 0 && str_utf8_prefix(text.data, text.len) != text.len)
			return fail(err, ERR_INVALID, "'%s' is not UTF-8", file);
		if (fd >= 0) {
			sha256_of(text.data, text.len, sha256);
			has_backend |= i == 0 ? names_backend(text) : i == 1;
		}
		sha256_add_text(&hash, sha256);
	}
	if (has_backend)
		project->digest = sha256_end_text(&hash, arena);
	return 0;
}

int wanted_look_at_projects(struct env_wanted *wanted, struct arena *arena, struct error *err)
{
	const struct env_request *request = wanted->request;
	wanted->projects.count = 0;
	for (size_t i = 0; i < request->editables.count; i++) {
		struct env_project project;
		if (look_at_project(request->editables.items[i], arena, &project, err) < 0)
			return error_context(err, "--editable");
		vec_push(arena, &wanted->projects, project);
	}
	return 0;
}

const char *project_key(
	const struct env_wanted *wanted, const struct env_project *project, struct arena *arena)
{
	auto_buf struct buf key = buf_empty(REQUIREMENTS_MAX);
	buf_printf(&key, "project 1 %s %s %s", wanted->python.tag, project->digest, project->path);
	/* Where the tools of its build come from, as in wheel_key. */
	if (wanted->indexes.index)
		buf_printf(&key, " %s", index_redact(arena, wanted->indexes.index));
	for (size_t i = 0; i < wanted->indexes.extra.count; i++)
		buf_printf(&key, " %s", index_redact(arena, wanted->indexes.extra.items[i]));
	return arena_bytes(arena, key.data, key.len);
}

const char *editable_key(const struct env_wanted *wanted, struct arena *arena)
{
	const char *text = editable_text(wanted, arena);
	return *text ? arena_printf(arena, "editable 1 %s %s", wanted->python.minor, text) : NULL;
}

const char *editable_text(const struct env_wanted *wanted, struct arena *arena)
{
	struct stat st;
	auto_buf struct buf text = buf_empty(REQUIREMENTS_MAX);
	for (size_t i = 0; i < wanted->projects.count; i++) {
		const char *path = wanted->projects.items[i].path;
		const char *source = arena_printf(arena, "%s/src", path);
		bool has_source = stat(source, &st) == 0 && S_ISDIR(st.st_mode);
		if (!wanted->projects.items[i].digest)
			buf_printf(&text, "%s\n", has_source ? source : path);
	}
	return arena_bytes(arena, text.data, text.len);
}

static int judge_editables(const struct env_request *request, struct error *err)
{
	for (size_t i = 0; i < request->editables.count; i++) {
		const char *path = request->editables.items[i];
		struct stat st;
		if (strpbrk(path, "\n\r") || !path_is_normal(path))
			return fail(err, ERR_INVALID,
				"--editable '%s' is not a plain absolute path", path);
		if (stat(path, &st) < 0)
			return fail_errno(err, "--editable '%s'", path);
		if (!S_ISDIR(st.st_mode))
			return fail(err, ERR_INVALID, "--editable '%s' is not a directory", path);
	}
	return 0;
}

/* -- all of it -- */

static void add_indexes(struct sha256 *hash, const struct index_set *set, struct arena *arena)
{
	/* Without credentials: they may change, the packages don't. */
	sha256_add_text(hash, set->index ? index_redact(arena, set->index) : "");
	for (size_t i = 0; i < set->extra.count; i++)
		sha256_add_text(hash, index_redact(arena, set->extra.items[i]));
	sha256_add_text(hash, "");
}

/* Projects say what they need when they are built. */
static void add_projects(struct sha256 *hash, const struct env_wanted *wanted)
{
	for (size_t i = 0; i < wanted->projects.count; i++) {
		const struct env_project *project = &wanted->projects.items[i];
		sha256_add_text(hash, project->path);
		sha256_add_text(hash, project->digest ? project->digest : "");
	}
}

static bool has_backends(const struct env_wanted *wanted)
{
	for (size_t i = 0; i < wanted->projects.count; i++) {
		if (wanted->projects.items[i].digest)
			return true;
	}
	return false;
}

/* Else a requirements file with the comment "# constraint: six<1.16" would have the lock and the
 * environment of a request with that constraint, which it doesn't apply. */
static void add_notes_mark(struct sha256 *hash, const struct env_wanted *wanted)
{
	if (wanted->has_notes)
		sha256_add_text(hash, "notes");
}

/* The text has the names of variables, since their values may be credentials. Without those the
 * address says what is installed: another host is another environment. */
static void add_filled(struct sha256 *hash, const requirement_list *list, struct arena *arena)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct requirement *r = &list->items[i];
		const char *url = r->has_variables ? strstr(r->text, "://") : NULL;
		while (url && url > r->text && isalpha((unsigned char)url[-1]))
			url--;
		if (url)
			sha256_add_text(hash, index_redact(arena, url));
	}
}

/* What is installed besides the text, and whether packages may be built for it: a lock with built
 * packages is used only where building is allowed. */
static void add_inputs(struct sha256 *hash, const struct env_wanted *wanted, struct arena *arena)
{
	add_projects(hash, wanted);
	sha256_add_text(hash, wanted->allow_build ? "build" : "");
	add_notes_mark(hash, wanted);
	add_filled(hash, &wanted->requirements, arena);
	add_filled(hash, &wanted->constraints, arena);
}

void wanted_complete(const struct env_store *store, struct env_wanted *wanted, struct arena *arena)
{
	const struct env_request *request = wanted->request;
	const char *cut_off = store->config.exclude_newer ? store->config.exclude_newer : "";
	struct sha256 hash;
	wanted->allow_build = request->allow_build || store->config.allow_build;
	wanted->needs_lock = wanted->requirements.count > 0 || has_backends(wanted) ||
			     wanted->uv_lock.len > 0 || wanted->locals.count > 0 ||
			     wanted->is_locked;
	sha256_init(&hash);
	sha256_add_text(&hash, "carrel-lock 1");
	sha256_add_text(&hash, wanted->python.tag);
	sha256_add_text(&hash, wanted->python.version);
	sha256_add_text(&hash, cut_off);
	add_indexes(&hash, &wanted->indexes, arena);
	sha256_add(&hash, wanted->text.data, wanted->text.len);
	add_inputs(&hash, wanted, arena);
	wanted->lock_key = sha256_end_text(&hash, arena);
	sha256_init(&hash);
	sha256_add_text(&hash, "carrel-environment 1");
	sha256_add_text(&hash, wanted->python.tag);
	sha256_add_text(&hash, wanted->python.version);
	sha256_add_text(&hash, wanted->python.path);
	sha256_add_text(&hash, cut_off);
	sha256_add_text(&hash, request->system_site_packages ? "system" : "");
	add_indexes(&hash, &wanted->indexes, arena);
	add_inputs(&hash, wanted, arena);
	wanted->fingerprint = sha256_end_text(&hash, arena);
}

/* The operator has named a source for Pythons: see download.h. */
static bool may_download(const struct env_store *store, const struct env_request *request)
{
	return request->python && request->python[0] != '/' &&
	       (interpreter_mirror(&store->config) || store->config.file_hosts.count > 0);
}

int python_prepare(const struct env_store *store, const struct env_request *request,
	struct arena *arena, struct env_wanted *wanted, struct build_problem *problem,
	struct error *err)
{
	bool has_requirements;
	*wanted = (struct env_wanted){ .request = request };
	if (!env_package_id_is_valid(request->package_id)) {
		fail(err, ERR_INVALID,
			"invalid name of an environment '%s': 1 to 100 of A-Z a-z 0-9 @ . _ -",
			request->package_id);
		return build_failed(problem, BUILD_INVALID, NULL);
	}
	if (inputs_read(request, arena, wanted, err) < 0) {
		if (err->hint[0] == '\0')
			error_hint(err, "%s",
				err->code == ERR_NOT_FOUND
					? "-r and -c name a file, --pip a package or a path"
					: "one requirement a line, as in requests>=2.31");
		return build_failed(
			problem, err->code == ERR_DENIED ? BUILD_DENIED : BUILD_INVALID, NULL);
	}
	if (judge_editables(request, err) < 0 || wanted_look_at_projects(wanted, arena, err) < 0)
		return build_failed(problem, BUILD_INVALID, NULL);
	if (wanted_judge(store, wanted, arena, problem, err) < 0)
		return -1;
	if (index_find(&request->index, &store->config, arena, &wanted->indexes, err) < 0)
		return build_failed_as(problem, err);
	take_index_options(wanted, arena);
	wanted->python_is_known =
		interpreter_choose(store->home, request->python, store->config.python, arena,
			&wanted->python, &wanted->python_is_default, err) == 0;
	if (!wanted->python_is_known && err->code == ERR_NOT_FOUND &&
		may_download(store, request)) {
		/* Only its version is known. */
		wanted->python_is_missing = true;
		wanted->python.minor = strncmp(request->python, "python", 6) == 0
					       ? request->python + 6
					       : request->python;
	} else if (!wanted->python_is_known && err->code != ERR_UNAVAILABLE) {
		return build_failed_as(problem, err);
	}
	has_requirements = strcmp(wanted->requirements_sha256, "no-deps") != 0;
	wanted->name = env_name_make(arena, request->package_id,
		has_requirements ? wanted->requirements_sha256 : NULL,
		wanted->python_is_default ? NULL : wanted->python.minor);
	if (wanted->python_is_known)
		wanted_complete(store, wanted, arena);
	return 0;
}
