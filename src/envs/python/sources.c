#include "envs/python/sources.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "envs/python/jobs.h"
#include "envs/python/known.h"
#include "envs/python/progress.h"
#include "envs/python/scripts.h"
#include "envs/python/sdist.h"
#include "envs/python/uv_run.h"
#include "envs/python/wheelhouse.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define PACKAGES_MAX 20 /* built for one environment */
#define SPECIFIER "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.*+!=<>~,"

/* A wheel in the stage: of a project, of a local path, or (both NULL) of the package `name`. */
static const struct built_wheel *find_wheel(const struct making *making,
	const struct env_project *project, const struct env_local *local, const char *name)
{
	for (size_t i = 0; i < making->built.count; i++) {
		const struct built_wheel *built = &making->built.items[i];
		bool is_of_project = project && built->project
					     ? strcmp(built->project->path, project->path) == 0
					     : built->project == project;
		if (is_of_project && built->local == local && !built->is_given &&
			(!name || strcmp(built->package->name, name) == 0))
			return built;
	}
	return NULL;
}

static const struct built_wheel *find_built(const struct making *making, const char *name)
{
	return find_wheel(making, NULL, NULL, name);
}

static void add_built(struct making *making, struct built_wheel wheel)
{
	/* A wheel that no index has is a package of the lock, too, by the hash of its bytes. */
	if (!wheel.package) {
		struct lock_package *package = arena_alloc(making->arena, sizeof *package);
		*package = (struct lock_package){ .name = wheel.name, .version = wheel.version };
		vec_push(making->arena, &package->hashes,
			arena_printf(making->arena, "sha256:%s", wheel.sha256));
		wheel.package = package;
	}
	vec_push(making->arena, &making->built, wheel);
}

static int build_wheel(struct making *making, const struct sdist *sdist, struct built_wheel *wheel,
	struct error *err)
{
	events_status(&making->store->events, "building_wheels", making->wanted->name);
	making_show(making, "building_wheels", making->built.count, 0);
	return sdist_build(making, sdist, &making->stage, wheel, err);
}

static int build_package(
	struct making *making, const struct lock_package *package, struct error *err)
{
	struct built_wheel wheel;
	if (build_wheel(making, &(struct sdist){ .package = package }, &wheel, err) < 0)
		return -1;
	wheel.package = package;
	add_built(making, wheel);
	return 0;
}

static int build_project(
	struct making *making, const struct env_project *project, struct error *err)
{
	struct built_wheel wheel;
	if (find_wheel(making, project, NULL, NULL))
		return 0;
	if (build_wheel(making, &(struct sdist){ .project = project->path }, &wheel, err) < 0)
		return -1;
	wheel.project = project;
	add_built(making, wheel);
	return 0;
}

/* -- wheels and projects that the command line names -- */

int sources_copy_wheel(
	struct making *making, int from, struct built_wheel *wheel, struct error *err)
{
	auto_close int dir = -1, to = -1;
	int failed = -1;
	ssize_t sent;
	home_enter(making->store->home);
	if (path_make_directories(making->stage.fd, "wheels", 0755, &dir, err) == 0) {
		to = openat(
			dir, wheel->file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		failed = to < 0 ? fail_errno(err, "make '%s'", wheel->file) : 0;
	}
	home_leave(making->store->home);
	if (failed)
		return -1;
	while ((sent = sendfile(to, from, NULL, (size_t)1 << 30)) > 0)
		;
	if (sent < 0)
		return fail_errno(err, "copy '%s'", wheel->file);
	wheel->path = arena_printf(making->arena, "%s/wheels/%s", making->stage.path, wheel->file);
	if (lseek(to, 0, SEEK_SET) != 0 || known_hash_file(to, wheel->sha256) < 0)
		return fail_errno(err, "read '%s'", wheel->file);
	return 0;
}

static int copy_wheel(struct making *making, const struct env_local *local,
	struct built_wheel *wheel, struct error *err)
{
	/* Opened as the caller: the owner of the store may not be able to read it. */
	auto_close int from = open(local->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (from < 0)
		return fail_errno(err, "open '%s'", local->path);
	*wheel = (struct built_wheel){
		.file = local->file, .name = local->name, .version = local->version
	};
	if (sources_copy_wheel(making, from, wheel, err) < 0)
		return -1;
	return strcmp(wheel->sha256, local->digest) == 0
		       ? 0
		       : fail(err, ERR_CONFLICT, "'%s' changes while it is read", local->path);
}

static int take_local(struct making *making, const struct env_local *local, struct error *err)
{
	struct sdist sdist = { .project = local->path, .is_whole = true };
	struct built_wheel wheel;
	if (find_wheel(making, NULL, local, NULL))
		return 0;
	if (local->is_directory) {
		if (build_wheel(making, &sdist, &wheel, err) < 0)
			return -1;
	} else if (copy_wheel(making, local, &wheel, err) < 0) {
		return build_failed_as(making->problem, err);
	}
	if (policy_judge_name(
		    &making->store->config, wheel.name, local->path, making->problem, err) < 0)
		return -1;
	wheel.local = local;
	add_built(making, wheel);
	return 0;
}

int sources_take_locals(struct making *making, struct error *err)
{
	for (size_t i = 0; i < making->wanted->locals.count; i++)
		if (take_local(making, &making->wanted->locals.items[i], err) < 0)
			return -1;
	return 0;
}

void sources_lock_locals(struct making *making)
{
	for (size_t i = 0; i < making->built.count; i++) {
		const struct built_wheel *built = &making->built.items[i];
		if (built->local && !lock_find(&making->packages, built->name)) {
			vec_push(making->arena, &making->packages, *built->package);
			lock_sort(&making->packages);
		}
	}
}

/* The wheel of a path, or of --wheels, whose hash the lock has; or NULL. */
static const struct built_wheel *find_local_wheel(
	const struct making *making, const struct lock_package *package)
{
	for (size_t i = 0; i < making->built.count; i++) {
		const struct built_wheel *built = &making->built.items[i];
		if ((built->local || built->is_given) && strcmp(built->name, package->name) == 0 &&
			package->hashes.count == 1 &&
			strcmp(package->hashes.items[0], built->package->hashes.items[0]) == 0)
			return built;
	}
	return NULL;
}

/* A kept lock has the hashes of the local wheels at that time. */
static int check_locals(struct making *making, struct error *err)
{
	for (size_t i = 0; i < making->built.count; i++) {
		const struct built_wheel *built = &making->built.items[i];
		bool is_locked = !built->local;
		for (size_t k = 0; !is_locked && k < making->packages.count; k++)
			is_locked = find_local_wheel(making, &making->packages.items[k]) == built;
		if (is_locked)
			continue;
		fail_hint(err, ERR_CONFLICT, "--no-cache takes the new one",
			"'%s' is a different wheel than before", built->local->path);
		return build_failed(making->problem, BUILD_FAILED, built->name);
	}
	return 0;
}

/* -- resolving -- */

int sources_build_projects(struct making *making, struct error *err)
{
	const struct env_wanted *wanted = making->wanted;
	for (size_t i = 0; i < wanted->projects.count; i++) {
		const struct env_project *project = &wanted->projects.items[i];
		if (project->digest && build_project(making, project, err) < 0)
			return -1;
	}
	return 0;
}

void sources_require_projects(const struct making *making, struct buf *requirements)
{
	for (size_t i = 0; i < making->built.count; i++) {
		const struct built_wheel *built = &making->built.items[i];
		if (built->project || built->local)
			buf_printf(requirements, "%s%s @ file://" WHEELS_INSIDE "/%s\n",
				built->name, built->local ? built->local->extras : "", built->file);
	}
}

void sources_show(struct making *making, struct uv_job *uv, bool find)
{
	struct arena *arena = making->arena;
	if (making->built.count == 0)
		return;
	job_bind(&uv->job, arena, arena_printf(arena, "%s/wheels", making->stage.path),
		WHEELS_INSIDE);
	if (find)
		uv_add(making, uv, "--find-links", WHEELS_INSIDE);
}

/* Only uv's message says which versions other packages need: "... depends on NAME>=1,<2 and ...".
 */
static void add_wanted_by_others(
	const struct making *making, const char *name, struct buf *requirements)
{
	static const char *const phrases[] = { " depend on ", " depends on " };
	size_t len = strlen(name);
	for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
		for (const char *at = making->said; (at = strstr(at, phrases[i]));) {
			at += strlen(phrases[i]);
			if (strncmp(at, name, len) != 0 || !strchr("<>=!~", at[len]))
				continue;
			size_t end = strspn(at + len, SPECIFIER);
			while (end > 0 && strchr(".,", at[len + end - 1]))
				end--;
			buf_printf(requirements, "%s%.*s\n", name, (int)end, at + len);
		}
	}
}

static int put_requirements(struct making *making, const char *name, struct error *err)
{
	const requirement_list *list = &making->wanted->requirements;
	auto_buf struct buf text = buf_empty(2 * REQUIREMENTS_MAX);
	buf_printf(&text, "%s\n", name);
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].kind == REQUIREMENT_PACKAGE &&
			strcmp(list->items[i].name, name) == 0)
			buf_printf(&text, "%s\n", list->items[i].text);
	}
	add_wanted_by_others(making, name, &text);
	return making_put(making, "source.txt", buf_str(&text), err);
}

/* The version that fits, with its hashes; NULL: an error. Offline, from the index page in uv's
 * cache: the sources are not there, so uv can't run any of their code. */
static struct lock_package *find_version(struct making *making, const char *name, struct error *err)
{
	static const char *const arguments[] = { "pip", "compile", "--no-deps", "--offline",
		"--generate-hashes", "--no-header", "--no-annotate", "--python", ENV_PYTHON,
		ENV_INPUT("source.txt"), NULL };
	const char *needs_build;
	lock_list list = { 0 };
	struct uv_job uv;
	if (put_requirements(making, name, err) < 0)
		return NULL;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	making_uv(making, &uv, arguments);
	uv.job.forward = false;
	if (making_run_uv(making, &uv, &out, &needs_build, err) < 0)
		return NULL;
	if (lock_parse(buf_str(&out), making->arena, &list, err) < 0) {
		error_context(err, "the sources of '%s'", name);
		build_failed(making->problem, BUILD_FAILED, name);
		return NULL;
	}
	if (list.count != 1 || strcmp(list.items[0].name, name) != 0) {
		fail(err, ERR_FAILED, "no version of '%s' fits", name);
		build_failed(making->problem, BUILD_VERSION_NOT_FOUND, name);
		return NULL;
	}
	if (policy_keep_hashes(&making->wanted->requirements, making->wanted->is_strict, &list,
		    making->arena, making->problem, err) < 0)
		return NULL;
	return list.items;
}

int sources_build_package(struct making *making, const char *name, struct error *err)
{
	const struct built_wheel *built = find_built(making, name);
	struct lock_package *package;
	if (!making->wanted->allow_build)
		return -1;
	if (built) {
		fail_hint(err, ERR_INVALID, "pin a version of it that all packages accept",
			"package '%s' has no wheel, and version %s, built from its sources, "
			"conflicts with other packages",
			name, built->package->version);
		return build_failed(making->problem, BUILD_CONFLICT, name);
	}
	if (making->built.count >= PACKAGES_MAX) {
		fail(err, ERR_LIMIT, "package '%s': more than %d packages to build from sources",
			name, PACKAGES_MAX);
		return build_failed(making->problem, BUILD_DENIED, name);
	}
	if (policy_judge_name(
		    &making->store->config, name, "of what was resolved", making->problem, err) < 0)
		return -1;
	package = find_version(making, name, err);
	return package ? build_package(making, package, err) : -1;
}

void sources_without_projects(const struct making *making, struct str text, struct buf *out)
{
	struct str line;
	bool is_left_out = false, goes_on = false;
	while (str_next(&text, '\n', &line)) {
		if (!goes_on) {
			struct str name, rest;
			is_left_out = str_cut(line, ' ', &name, &rest) &&
				      str_starts_with(rest, "@ file://" WHEELS_INSIDE "/");
		}
		goes_on = line.len > 0 && line.data[line.len - 1] == '\\';
		if (is_left_out)
			continue;
		buf_append(out, line.data, line.len);
		buf_char(out, '\n');
	}
}

static bool has_hash(const struct lock_package *package, const char *sha256)
{
	for (size_t i = 0; i < package->hashes.count; i++) {
		if (strcmp(package->hashes.items[i] + strlen("sha256:"), sha256) == 0)
			return true;
	}
	return false;
}

void sources_mark(struct making *making)
{
	for (size_t i = 0; i < making->packages.count; i++) {
		struct lock_package *package = &making->packages.items[i];
		const struct built_wheel *built = find_built(making, package->name);
		/* uv may have chosen a wheel of another version instead. */
		if (!built || !has_hash(package, built->sha256))
			continue;
		package->hashes.items = built->package->hashes.items;
		package->hashes.count = built->package->hashes.count;
		package->hashes.capacity = built->package->hashes.capacity;
		package->is_built = true;
	}
}

/* -- installing -- */

int sources_build_missing(struct making *making, struct error *err)
{
	const struct composition *composition = &making->composition;
	if (composition->missing.count > 0 &&
		(sources_take_locals(making, err) < 0 || check_locals(making, err) < 0 ||
			wheelhouse_take(making, err) < 0))
		return -1;
	for (size_t i = 0; i < composition->missing.count; i++) {
		const struct lock_package *package = composition->missing.items[i];
		if (package->is_built && !find_built(making, package->name) &&
			build_package(making, package, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < composition->missing_projects.count; i++)
		if (build_project(making, composition->missing_projects.items[i], err) < 0)
			return -1;
	return 0;
}

int sources_build_locked(struct making *making, struct error *err)
{
	struct lock_package *package =
		making->needs_build ? lock_find(&making->packages, making->needs_build) : NULL;
	if (!package || package->is_built || !making->wanted->allow_build ||
		making_is_begun(making))
		return -1;
	if (build_package(making, package, err) < 0)
		return -1;
	package->is_built = true;
	making_print_lock(making);
	if (lock_keep(making->store, making->wanted->lock_key, making->run->lock, err) < 0)
		return build_failed_as(making->problem, err);
	return making_reach(making, err);
}

const struct built_wheel *sources_find(
	const struct making *making, const struct lock_package *package)
{
	const struct built_wheel *local = find_local_wheel(making, package);
	for (size_t i = 0; i < making->built.count; i++) {
		const struct built_wheel *built = &making->built.items[i];
		if (built->project && built->package == package)
			return built;
	}
	if (local)
		return local;
	return package->is_built ? find_built(making, package->name) : NULL;
}

const struct lock_package *sources_project(
	const struct making *making, const struct env_project *project)
{
	const struct built_wheel *built = find_wheel(making, project, NULL, NULL);
	return built ? built->package : NULL;
}

void sources_name_layer(
	const struct making *making, const struct lock_package *package, struct layer_draft *draft)
{
	const struct built_wheel *built = sources_find(making, package);
	const char *tag = making->wanted->python.tag;
	if (built && built->project) {
		draft->kind = "python-editable";
		draft->key = project_key(making->wanted, built->project, making->arena);
	} else {
		draft->kind = "python-wheel";
		draft->key = making->is_pip_plain
				     ? plain_key(making->arena, package, tag)
				     : wheel_key(making->arena, package, tag,
					       package->is_built ? &making->wanted->indexes : NULL);
	}
}
