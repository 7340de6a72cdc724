/* Wheels to layers: one run of uv for all that are missing, bytecode, a draft for each, published.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "envs/python/base.h"
#include "envs/python/internal.h"
#include "envs/python/explain.h"
#include "envs/python/jobs.h"
#include "envs/python/progress.h"
#include "envs/python/scripts.h"
#include "envs/python/sources.h"
#include "envs/python/split.h"
#include "envs/python/uv_run.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define NO_SPACE 28 /* what compile.py exits with */

static const char script_compile[] = {
#include "envs/python/compile.inc"
	0
};

typedef VEC(const struct lock_package *) package_list;

/* -- the stage -- */

/* Entered. */
static int lay_root(struct making *making, struct error *err)
{
	const struct env_wanted *wanted = making->wanted;
	if (mkdirat(making->stage.fd, STAGE_ROOT, 0755) < 0)
		return fail_errno(err, "make the root of a stage");
	auto_close int root = fd_open_directory(making->stage.fd, STAGE_ROOT);
	if (root < 0)
		return fail_errno(err, "open the root of a stage");
	return interpreter_base_tree(
		root, &wanted->python, wanted->request->system_site_packages, err);
}

int making_stage(struct making *making, struct error *err)
{
	auto_leave const struct home *home = home_entered(making->store->home);
	if (layer_stage_make(&making->store->layers, making->arena, &making->stage, err) < 0)
		return -1;
	return lay_root(making, err);
}

/* A new root with the old one's cache, so that uv finds there what it has fetched. */
static int change_root(struct making *making, int number, struct error *err)
{
	auto_leave const struct home *home = home_entered(making->store->home);
	char old[32], cache[64];
	str_format(old, sizeof old, "old-%d", number);
	str_format(cache, sizeof cache, "old-%d/" STAGE_CACHE, number);
	if (renameat(making->stage.fd, STAGE_ROOT, making->stage.fd, old) < 0)
		return fail_errno(err, "change the root of a stage");
	if (lay_root(making, err) < 0)
		return -1;
	if (renameat(making->stage.fd, cache, making->stage.fd, STAGE_ROOT "/" STAGE_CACHE) < 0)
		return fail_errno(err, "change the root of a stage");
	return 0;
}

/* -- uv, and bytecode -- */

/* By address: uv fetches the wheels from where they are, and checks their hashes. false: some have
 * none. */
static bool print_addresses(
	const struct making *making, const package_list *packages, struct buf *text)
{
	pylock_list list = { 0 };
	for (size_t i = 0; i < packages->count; i++) {
		const struct pylock_package *found =
			pylock_find(&making->addresses, packages->items[i]->name);
		if (!found)
			return false;
		vec_push(making->arena, &list, *found);
	}
	pylock_print(&list, text);
	return true;
}

/* The name of the file that uv installs from. again: some of the packages of the last call, to be
 * found in uv's cache, so by the same kind of file. */
static int put_lock(struct making *making, const package_list *packages, bool again,
	const char **name, struct error *err)
{
	lock_list list = { 0 };
	auto_buf struct buf text = buf_empty(OUTPUT_MAX);
	if (!again || making->is_by_address)
		making->is_by_address = print_addresses(making, packages, &text);
	*name = "pylock.toml";
	if (making->is_by_address)
		return making_put(making, *name, buf_str(&text), err);
	buf_clear(&text);
	*name = "lock.txt";
	for (size_t i = 0; i < packages->count; i++) {
		const struct lock_package *package = packages->items[i];
		const char *url = wheel_url_of_package(
			&making->wanted->requirements, package->name, making->arena);
		const struct built_wheel *built = sources_find(making, package);
		if (built) {
			buf_printf(&text, "%s @ file://" WHEELS_INSIDE "/%s --hash=sha256:%s\n",
				package->name, built->file, built->sha256);
			continue;
		}
		if (!url) {
			vec_push(making->arena, &list, *package);
			continue;
		}
		buf_printf(&text, "%s @ %s", package->name, url);
		for (size_t h = 0; h < package->hashes.count; h++)
			buf_printf(&text, " --hash=%s", package->hashes.items[h]);
		buf_char(&text, '\n');
	}
	lock_print(&list, &text);
	return making_put(making, *name, buf_str(&text), err);
}

static int run_uv(struct making *making, const char *lock, bool is_offline, struct error *err)
{
	static const char *const arguments[] = { "pip", "install", "--no-deps", "--require-hashes",
		"--no-build", "--link-mode", "hardlink", "--python", ENV_PYTHON, "--requirements",
		NULL };
	const char *needs_build;
	struct uv_job uv;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	making_uv(making, &uv, arguments);
	uv_add(making, &uv, arena_printf(making->arena, ENV_INPUT("%s"), lock), NULL);
	sources_show(making, &uv, false);
	if (is_offline) {
		uv_add(making, &uv, "--offline", NULL);
		uv.job.forward = false;
	}
	return making_run_uv(making, &uv, &out, &needs_build, err);
}

/* By the interpreter itself and not by bin/python, without site: nothing that was installed runs.
 */
static int compile(struct making *making, const char *site, struct error *err)
{
	const struct interpreter *python = &making->wanted->python;
	struct arena *arena = making->arena;
	const char *const argv[] = { python->path, "-sS", "-c", script_compile,
		arena_printf(arena, ENV_INSIDE "/%s", site), arena_printf(arena, "%d", LAYER_MTIME),
		NULL };
	struct job job = { .argv = argv };
	struct job_result result = { 0 };
	interpreter_bind(python, arena, &job);
	/* The order of sets is in the bytecode. */
	job_set_env(&job, arena, "PYTHONHASHSEED", "0");
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	auto_buf struct buf errors = buf_empty(OUTPUT_MAX);
	if (making_run(making, &job, &out, &errors, &result, err) < 0)
		return -1;
	if (result.reason == REASON_TIMEOUT)
		return making_timeout(making, err);
	if (result.reason == REASON_DISK_LIMIT)
		return making_too_large(making, err);
	if (result.reason == REASON_EXITED && result.exit_code == NO_SPACE)
		return fail(err, ERR_DISK_FULL, "no space left for bytecode");
	/* A source that crashes the compiler costs bytecode, no more: the log has it. */
	return 0;
}

/* -- taking it apart -- */

/* The package that an error of split.h begins with, or NULL. */
static const char *package_in(const struct split *split, const struct error *err)
{
	for (size_t i = 0; i < split->packages.count; i++) {
		const struct split_package *package = &split->packages.items[i];
		char beginning[256];
		str_format(
			beginning, sizeof beginning, "%s==%s: ", package->name, package->version);
		if (strstr(err->text, beginning))
			return package->name;
	}
	/* A file that no RECORD lists can be attributed only if there is a single package. */
	return split->packages.count == 1 ? split->packages.items[0].name : NULL;
}

static int refuse(struct making *making, const struct split *split, struct error *err)
{
	build_failed_as(making->problem, err);
	making->problem->package = package_in(split, err);
	if (!err->hint[0] && making->problem->failure != BUILD_DISK_FULL)
		error_hint(err, "the wheel is damaged; try another version");
	return -1;
}

static int split_root(struct making *making, struct split *split, const package_list *packages,
	const char *site, const char *drafts, struct error *err)
{
	auto_leave const struct home *home = home_entered(making->store->home);
	const char *minor = making->wanted->python.minor;
	struct arena *arena = making->arena;
	const char *const names[] = { "pyvenv.cfg", "lib64", "bin/activate", "bin/python",
		"bin/python3", arena_printf(arena, "bin/python%s", minor), NULL };
	const char **own = arena_array(arena, sizeof names / sizeof *names, sizeof *own);
	memcpy(own, names, sizeof names);
	*split = (struct split){ .arena = arena,
		.stage = making->stage.fd,
		.root = STAGE_ROOT,
		.site = site,
		.own = own };
	for (size_t i = 0; i < packages->count; i++)
		vec_push(arena, &split->packages,
			(struct split_package){ .name = packages->items[i]->name,
				.version = packages->items[i]->version,
				.draft = arena_printf(arena, "%s-%zu", drafts, i) });
	return split_tree(split, err) < 0 ? refuse(making, split, err) : 0;
}

static int install_set(struct making *making, const package_list *packages, const char *drafts,
	bool is_offline, struct split *split, struct error *err)
{
	const char *site = arena_printf(
		making->arena, "lib/python%s/site-packages", making->wanted->python.minor);
	const char *lock;
	if (put_lock(making, packages, is_offline, &lock, err) < 0 ||
		run_uv(making, lock, is_offline, err) < 0)
		return -1;
	/* From here on nothing is reached. */
	making->builder->network->close(making->builder->network->ctx);
	making->is_reaching = false;
	events_status(&making->store->events, "building_layers", making->wanted->name);
	making_show_packages(making, "building_layers", 0);
	home_enter(making->store->home);
	int failed = split_drop_bytecode(making->stage.fd, STAGE_ROOT, err);
	home_leave(making->store->home);
	if (failed || (!making->is_pip_plain && compile(making, site, err) < 0))
		return -1;
	return split_root(making, split, packages, site, drafts, err);
}

static int remove_in_stage(struct making *making, const char *name, struct error *err)
{
	auto_leave const struct home *home = home_entered(making->store->home);
	return path_remove_tree(making->stage.fd, name, err);
}

/* Those that list the same file, one by one. */
static int install_rivals(
	struct making *making, const package_list *packages, struct split *all, struct error *err)
{
	for (size_t i = 0; i < all->packages.count; i++) {
		struct split_package *rival = &all->packages.items[i];
		package_list one = { 0 };
		struct split split;
		if (!rival->rival)
			continue;
		vec_push(making->arena, &one, packages->items[i]);
		buf_printf(&making->run->log,
			"'%s' and '%s' list the same file: installed singly\n", rival->name,
			rival->rival);
		if (change_root(making, (int)i, err) < 0 ||
			install_set(making, &one, arena_printf(making->arena, "single-%zu", i),
				true, &split, err) < 0)
			return -1;
		/* What it had shares files with uv's cache, and with nothing that is kept. */
		if (remove_in_stage(making, rival->draft, err) < 0)
			return -1;
		*rival = split.packages.items[0];
	}
	return 0;
}

/* The order of rivals goes into the lock, so that every environment of this lock has it, with or
 * without uv running again. An order that is there already stays. */
static int keep_order(struct making *making, const struct split *split, struct error *err)
{
	lock_list ordered = { 0 }, *all = &making->packages;
	bool is_by_name = true;
	for (size_t i = 0; i < all->count; i++) {
		if (all->items[i].is_first)
			return 0;
	}
	for (size_t i = 0; i < split->order.count; i++) {
		const struct lock_package *package =
			lock_find(all, split->packages.items[split->order.items[i]].name);
		/* Editable projects lie on top in any case, the pip that we add at the bottom. */
		if (!package)
			continue;
		size_t last = ordered.count;
		vec_push(making->arena, &ordered, *package);
		is_by_name &= last == 0 || strcmp(ordered.items[last - 1].name, package->name) < 0;
	}
	if (is_by_name)
		return 0;
	for (size_t i = 0; i < ordered.count; i++) {
		lock_find(all, ordered.items[i].name)->is_first = true;
		ordered.items[i].is_first = true;
	}
	for (size_t i = 0; i < all->count; i++) {
		if (!all->items[i].is_first)
			vec_push(making->arena, &ordered, all->items[i]);
	}
	making->packages = ordered;
	making_print_lock(making);
	return lock_keep(making->store, making->wanted->lock_key, making->run->lock, err);
}

/* uv's cache shares its files with what was installed; no layer may have a file with two names. */
static int drop_cache(struct making *making, struct error *err)
{
	auto_leave const struct home *home = home_entered(making->store->home);
	if (renameat(making->stage.fd, STAGE_ROOT "/" STAGE_CACHE, making->stage.fd, "cache") < 0)
		return fail_errno(err, "move uv's cache");
	return path_remove_tree(making->stage.fd, "cache", err);
}

/* -- publishing -- */

struct publishing {
	struct making *making;
	struct split *split;
	pid_t pid;    /* who shows how far it is */
	size_t shown; /* the last draft that was seen */
};

static int seen(void *ctx, size_t draft, const char *path, const unsigned char sha256[SHA256_LEN],
	uint64_t size, struct error *err)
{
	struct publishing *publishing = ctx;
	struct split *split = publishing->split;
	/* Files are hashed in the order of the drafts, more or less. */
	if (draft > publishing->shown && getpid() == publishing->pid) {
		publishing->shown = draft;
		making_show_packages(publishing->making, "building_layers", draft);
	}
	/* The last drafts may be the base and what leads to projects: ours. */
	if (draft >= split->packages.count)
		return 0;
	return split_seen(split, draft, path, sha256, size, err);
}

static int draft_base(struct making *making, struct layer_draft *draft, struct error *err)
{
	const struct interpreter *python = &making->wanted->python;
	bool with_system = making->wanted->request->system_site_packages;
	auto_leave const struct home *home = home_entered(making->store->home);
	auto_close int tree = -1;
	*draft = (struct layer_draft){ .path = "base",
		.kind = LAYER_KIND_BASE,
		.name = "python",
		.version = python->version,
		.key = interpreter_base_key(making->arena, python, with_system) };
	if (path_make_directories(making->stage.fd, "base/tree", 0755, &tree, err) < 0)
		return -1;
	return interpreter_base_tree(tree, python, with_system, err);
}

static int draft_editables(struct making *making, struct layer_draft *draft, struct error *err)
{
	const char *site = arena_printf(making->arena, "editable/tree/lib/python%s/site-packages",
		making->wanted->python.minor);
	/* Before entering: the projects are the caller's. */
	const char *text = editable_text(making->wanted, making->arena);
	const char *key = editable_key(making->wanted, making->arena);
	auto_leave const struct home *home = home_entered(making->store->home);
	auto_close int dir = -1;
	*draft = (struct layer_draft){ .path = "editable",
		.kind = "python-editable",
		.name = "editable",
		.version = "",
		.key = key };
	if (path_make_directories(making->stage.fd, site, 0755, &dir, err) < 0)
		return -1;
	return file_create(dir, "__editable__.pth", 0644, str_from(text)) < 0
		       ? fail_errno(err, "write '__editable__.pth'")
		       : 0;
}

static int check_size(
	struct making *making, const struct layer_draft *drafts, size_t count, struct error *err)
{
	uint64_t limit = making->store->config.max_install_bytes, bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes += drafts[i].bytes;
	return bytes <= limit ? 0 : making_too_large(making, err);
}

static int publish(
	struct making *making, const package_list *packages, struct split *split, struct error *err)
{
	size_t count = packages->count;
	struct layer_draft *drafts = arena_array(making->arena, count + 2, sizeof *drafts);
	if (making_lock_layers(making, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		drafts[i] = (struct layer_draft){ .path = split->packages.items[i].draft,
			.name = packages->items[i]->name,
			.version = packages->items[i]->version };
		sources_name_layer(making, packages->items[i], &drafts[i]);
	}
	if (making->composition.is_base_missing && draft_base(making, &drafts[count++], err) < 0)
		return -1;
	if (making->composition.is_editable_missing &&
		draft_editables(making, &drafts[count++], err) < 0)
		return -1;
	struct publishing publishing = { making, split, getpid(), 0 };
	if (layers_publish(&making->store->layers, making->stage.fd, drafts, count, seen,
		    &publishing, err) < 0)
		return refuse(making, split, err);
	return check_size(making, drafts, count, err);
}

static bool is_pip_missing(const struct making *making)
{
	const struct build_problem *problem = making->problem;
	bool is_absent = problem->failure == BUILD_NOT_FOUND ||
			 problem->failure == BUILD_VERSION_NOT_FOUND ||
			 problem->failure == BUILD_HASH_MISMATCH;
	return is_absent && problem->package &&
	       (strcmp(problem->package, "pip") == 0 || strncmp(problem->package, "pip==", 5) == 0);
}

/* The pip that we add is a convenience: an index that doesn't have it gives environments without.
 */
static bool leave_out_pip(struct making *making, package_list *packages)
{
	size_t last = packages->count - 1;
	if (!is_pip_missing(making) || packages->items[last] != making->composition.pip ||
		making_is_begun(making))
		return false;
	buf_printf(&making->run->log, "the index has no pip %s: the environment has none\n",
		packages->items[last]->version);
	packages->count--;
	making->is_without_pip = true;
	return true;
}

int making_install(struct making *making, struct error *err)
{
	package_list packages = { 0 };
	struct split split = { 0 };
	if (sources_build_missing(making, err) < 0)
		return -1;
	for (size_t i = 0; i < making->composition.missing_projects.count; i++)
		vec_push(making->arena, &packages,
			sources_project(making, making->composition.missing_projects.items[i]));
	for (size_t i = 0; i < making->composition.missing.count; i++)
		vec_push(making->arena, &packages, making->composition.missing.items[i]);
	/* All but the pip that we add, unless it is the only one. */
	making->to_install = packages.count - (making->composition.pip && packages.count > 1);
	if (packages.count > 0 && making_reach(making, err) < 0)
		return -1;
	events_status(&making->store->events, "installing_deps", making->wanted->name);
	making_show_packages(making, "installing_deps", 0);
	while (packages.count > 0 &&
		install_set(making, &packages, "drafts", false, &split, err) < 0) {
		if (!leave_out_pip(making, &packages) && sources_build_locked(making, err) < 0)
			return -1;
	}
	if (packages.count > 0 &&
		(install_rivals(making, &packages, &split, err) < 0 || drop_cache(making, err) < 0))
		return -1;
	return publish(making, &packages, &split, err) < 0 ? -1 : keep_order(making, &split, err);
}
