#include "envs/python/wheelhouse.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/walk.h"
#include "envs/python/sdist.h"
#include "envs/python/sources.h"

/* ---- the wheels ---- */

static int parse_lock(const struct env_wanted *wanted, struct arena *arena, lock_list *packages,
	struct error *err)
{
	if (lock_parse(wanted->wheels_lock, arena, packages, err) < 0) {
		err->code = ERR_INVALID;
		return error_context(err, WHEELHOUSE_LOCK);
	}
	for (size_t i = 0; i < packages->count; i++)
		if (packages->items[i].hashes.count != 1)
			return fail_hint(err, ERR_INVALID, WHEELHOUSE_HINT,
				WHEELHOUSE_LOCK ": '%s' has %zu hashes, not the one of its wheel",
				packages->items[i].name, packages->items[i].hashes.count);
	return 0;
}

static struct lock_package *find_by_hash(const lock_list *packages, const char *sha256)
{
	for (size_t i = 0; i < packages->count; i++)
		if (strcmp(packages->items[i].hashes.items[0] + strlen("sha256:"), sha256) == 0)
			return &packages->items[i];
	return NULL;
}

static bool is_taken(const struct making *making, const char *name)
{
	for (size_t i = 0; i < making->built.count; i++)
		if (making->built.items[i].is_given &&
			(!name || strcmp(making->built.items[i].package->name, name) == 0))
			return true;
	return false;
}

static int take_wheel(struct making *making, int wheels, const char *file,
	const lock_list *packages, uint64_t *bytes, struct error *err)
{
	struct built_wheel wheel = { .file = arena_text(making->arena, file), .is_given = true };
	auto_close int from = -1;
	struct stat st;
	if (!wheel_name_parse(file, making->arena, &wheel.name, &wheel.version))
		return fail(err, ERR_INVALID, "'%.200s' is not the name of a wheel", file);
	if (wheelhouse_open_file(wheels, file, &from, err) < 0)
		return -1;
	if (fstat(from, &st) < 0)
		return fail_errno(err, "look at '%s'", file);
	*bytes += (uint64_t)st.st_size;
	if (*bytes > making->store->config.max_install_bytes)
		return fail(err, ERR_LIMIT, "the wheels take more than max_install_size_mb");
	if (sources_copy_wheel(making, from, &wheel, err) < 0)
		return -1;
	wheel.package = find_by_hash(packages, wheel.sha256);
	if (!wheel.package || strcmp(wheel.package->name, wheel.name) != 0)
		return fail_hint(err, ERR_DENIED, WHEELHOUSE_HINT,
			"wheel '%s' has the hash sha256:%s, which " WHEELHOUSE_LOCK
			" doesn't have for '%s'",
			file, wheel.sha256, wheel.name);
	if (is_taken(making, wheel.name))
		return fail(err, ERR_INVALID, "there are two wheels of '%s'", wheel.name);
	vec_push(making->arena, &making->built, wheel);
	return 0;
}

static int take_all(struct making *making, const lock_list *packages, struct error *err)
{
	auto_close int dir = -1;
	uint64_t bytes = 0;
	if (wheelhouse_open(making->wanted->request->wheels, &dir, err) < 0)
		return -1;
	auto_close int wheels = fd_open_directory(dir, WHEELHOUSE_WHEELS);
	auto_walk DIR *walk = wheels < 0 ? NULL : walk_open(wheels, ".");
	if (!walk)
		return fail_errno(err, "open '" WHEELHOUSE_WHEELS "'");
	for (struct dirent *entry; (entry = walk_next(walk));)
		if (take_wheel(making, wheels, entry->d_name, packages, &bytes, err) < 0)
			return -1;
	for (size_t i = 0; i < packages->count; i++)
		if (!is_taken(making, packages->items[i].name))
			return fail_hint(err, ERR_INVALID, WHEELHOUSE_HINT,
				"there is no wheel of '%s==%s' of " WHEELHOUSE_LOCK,
				packages->items[i].name, packages->items[i].version);
	return 0;
}

static int refuse(struct making *making, struct error *err)
{
	error_context(err, "--wheels");
	return build_failed(making->problem,
		err->code == ERR_DENIED	     ? BUILD_HASH_MISMATCH
		: err->code == ERR_DISK_FULL ? BUILD_DISK_FULL
					     : BUILD_INVALID,
		NULL);
}

int wheelhouse_take(struct making *making, struct error *err)
{
	lock_list *packages = arena_alloc(making->arena, sizeof *packages);
	if (!making->wanted->request->wheels || is_taken(making, NULL))
		return 0;
	*packages = (lock_list){ 0 };
	if (parse_lock(making->wanted, making->arena, packages, err) < 0 ||
		take_all(making, packages, err) < 0)
		return refuse(making, err);
	return 0;
}

/* ---- what they are for ---- */

int wheelhouse_compare(struct making *making, struct error *err)
{
	const lock_list *resolved = &making->packages;
	lock_list given = { 0 };
	const char *found;
	if (!making->wanted->request->wheels)
		return 0;
	if (parse_lock(making->wanted, making->arena, &given, err) < 0)
		return refuse(making, err);
	for (size_t i = 0; i < given.count; i++) {
		const struct lock_package *package = &given.items[i];
		const struct lock_package *same = lock_find(resolved, package->name);
		found = !same ? "the requirements don't need it"
			: strcmp(same->version, package->version) != 0
				? "they resolve to another version"
			: same->hashes.count != 1 ||
					strcmp(same->hashes.items[0], package->hashes.items[0]) != 0
				? "they resolve to another wheel"
				: NULL;
		if (!found)
			continue;
		fail_hint(err, ERR_INVALID, WHEELHOUSE_HINT,
			WHEELHOUSE_LOCK " has '%s==%s', but %s with Python %s", package->name,
			package->version, found, making->wanted->python.version);
		return refuse(making, err);
	}
	/* All of what was resolved is among the wheels, and these are all in the lock. */
	return 0;
}
