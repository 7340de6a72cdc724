/* Makes a directory of wheelhouse.h of an environment: pip fetches the wheels of its lock from the
 * indexes, in a sandbox, and runs no code of theirs. */
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/walk.h"
#include "envs/kind.h"
#include "envs/python/jobs.h"
#include "envs/python/known.h"
#include "envs/python/progress.h"
#include "envs/python/explain.h"
#include "envs/python/sdist.h"
#include "envs/python/scripts.h"
#include "envs/python/wheelhouse.h"

#define LOG_MAX ((size_t)16 << 20)
#define PIP_INSIDE "/pip"
#define OUT_INSIDE (ENV_INSIDE "/.out")
#define OUT_STAGE (STAGE_ROOT "/.out")

/* pip lies in a layer of its own, without a site: neither it nor anything of the environment is
 * imported by accident. */
static const char script[] =
	"import sys\n"
	"sys.path.insert(0, '" PIP_INSIDE "')\n"
	"from pip._internal.cli.main import main\n"
	"sys.exit(main(['download', '--no-deps', '--require-hashes', '--only-binary', ':all:',\n"
	"    '--no-cache-dir', '--disable-pip-version-check', '--progress-bar', 'off', '-q', "
	"'-q',\n"
	"    '-d', sys.argv[1], '-r', sys.argv[2]]))\n";

static int bind_pip(struct making *making, struct job *job, struct error *err)
{
	const struct env_wanted *wanted = making->wanted;
	const struct lock_package *pip = pip_for(wanted->python.minor, making->arena);
	const struct layer_store *layers = &making->store->layers;
	char id[LAYER_ID_LEN + 1];
	if (layer_find(layers, wheel_key(making->arena, pip, wanted->python.tag, NULL), id, err) <
			0 &&
		layer_find(layers, plain_key(making->arena, pip, wanted->python.tag), id, err) < 0)
		return fail_hint(err, ERR_NOT_FOUND, "use an index that has pip",
			"the index has no pip %s, which fetches wheels", pip->version);
	job_bind(job, making->arena,
		arena_printf(making->arena, "%s/layers/%s/tree/lib/python%s/site-packages",
			making->store->home->path, id, wanted->python.minor),
		PIP_INSIDE);
	return 0;
}

static void set_indexes(struct making *making, struct job *job)
{
	const struct index_set *indexes = &making->wanted->indexes;
	struct arena *arena = making->arena;
	auto_buf struct buf extra = buf_empty(65536), trusted = buf_empty(65536);
	job_reach_indexes(job, arena, indexes);
	for (size_t i = 0; i < indexes->extra.count; i++)
		buf_printf(&extra, "%s ", index_full(indexes, indexes->extra.items[i]));
	for (size_t i = 0; i < indexes->trusted_hosts.count; i++)
		buf_printf(&trusted, "%s ", indexes->trusted_hosts.items[i]);
	job_set_env(job, arena, "PIP_CONFIG_FILE", "/dev/null");
	job_set_env(job, arena, "PIP_INDEX_URL", index_full(indexes, indexes->index));
	if (extra.len)
		job_set_env(job, arena, "PIP_EXTRA_INDEX_URL",
			arena_bytes(arena, extra.data, extra.len));
	if (trusted.len)
		job_set_env(job, arena, "PIP_TRUSTED_HOST",
			arena_bytes(arena, trusted.data, trusted.len));
	if (indexes->certificates)
		job_set_env(job, arena, "PIP_CERT", CERTIFICATES_INSIDE);
}

static int run_pip(struct making *making, struct str lock, struct error *err)
{
	const char *args[] = { OUT_INSIDE, ENV_INPUT("lock.txt"), NULL };
	struct job_result result = { 0 };
	struct job job;
	script_job(&job, making->arena, &making->wanted->python, script, false, args);
	if (bind_pip(making, &job, err) < 0 || making_stage(making, err) < 0 ||
		making_put(making, "lock.txt", lock, err) < 0 || making_reach(making, err) < 0)
		return -1;
	set_indexes(making, &job);
	making_show(making, "fetching_wheels", 0, making->packages.count);
	auto_buf struct buf out = buf_empty(LOG_MAX);
	auto_buf struct buf errors = buf_empty(LOG_MAX);
	if (making_run(making, &job, &out, &errors, &result, err) < 0)
		return -1;
	making->builder->network->close(making->builder->network->ctx);
	if (result.reason == REASON_TIMEOUT)
		return making_timeout(making, err);
	if (result.reason == REASON_EXITED && result.exit_code == 0)
		return 0;
	job_explain(&job, &result, buf_str(&errors), err);
	return error_hint(err, "every package needs a wheel for this Python in the index");
}

/* ---- what was fetched ---- */

static struct lock_package *find_by_hash(lock_list *packages, const char *hash)
{
	for (size_t i = 0; i < packages->count; i++)
		for (size_t k = 0; k < packages->items[i].hashes.count; k++)
			if (strcmp(packages->items[i].hashes.items[k], hash) == 0)
				return &packages->items[i];
	return NULL;
}

/* Its package then has the hash of this wheel alone. */
static int copy_wheel(struct making *making, int from, int to, const char *file, struct error *err)
{
	char sha256[2 * SHA256_LEN + 1];
	const char *name, *version, *hash;
	ssize_t sent = -1;
	home_enter(making->store->home);
	auto_close int in = openat(from, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int failed = in < 0 || known_hash_file(in, sha256) < 0 || lseek(in, 0, SEEK_SET) != 0;
	home_leave(making->store->home);
	if (failed)
		return fail_errno(err, "read '%.200s'", file);
	hash = arena_printf(making->arena, "sha256:%s", sha256);
	struct lock_package *package = find_by_hash(&making->packages, hash);
	if (!package || !wheel_name_parse(file, making->arena, &name, &version))
		return fail(err, ERR_DENIED, "the index sent '%.200s', which the lock doesn't have",
			file);
	package->hashes.items[0] = hash;
	package->hashes.count = 1;
	auto_close int out =
		openat(to, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	while (out >= 0 && (sent = sendfile(out, in, NULL, (size_t)1 << 30)) > 0)
		;
	return out < 0 || sent < 0 ? fail_errno(err, "write '%s'", file) : 0;
}

static int copy_all(struct making *making, const char *directory, struct error *err)
{
	size_t count = 0;
	if (mkdir(directory, 0755) < 0 && errno != EEXIST)
		return fail_errno(err, "make '%s'", directory);
	auto_close int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || mkdirat(dir, WHEELHOUSE_WHEELS, 0755) < 0)
		return fail_errno(err, "make '%s/" WHEELHOUSE_WHEELS "'", directory);
	auto_close int to = openat(dir, WHEELHOUSE_WHEELS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	home_enter(making->store->home);
	auto_close int from =
		path_open_nolinks(making->stage.fd, OUT_STAGE, O_RDONLY | O_DIRECTORY, 0);
	auto_walk DIR *walk = from < 0 ? NULL : walk_open(from, ".");
	home_leave(making->store->home);
	for (struct dirent *entry; (entry = walk_next(walk)); count++)
		if (copy_wheel(making, from, to, entry->d_name, err) < 0)
			return -1;
	if (count != making->packages.count)
		return fail(err, ERR_FAILED, "pip fetched %zu wheels of %zu", count,
			making->packages.count);
	auto_buf struct buf text = buf_empty(LOG_MAX);
	lock_print(&making->packages, &text);
	return file_replace(dir, WHEELHOUSE_LOCK, 0644, buf_str(&text), false)
		       ? fail_errno(err, "write '%s/" WHEELHOUSE_LOCK "'", directory)
		       : 0;
}

/* ---- all of it ---- */

static int check_kind(const struct env_meta *meta, const lock_list *packages, struct error *err)
{
	if (env_kind_of(meta) != &env_python || packages->count == 0)
		return fail(
			err, ERR_INVALID, "environment '%s' has no Python packages", meta->name);
	if (meta->editables.count)
		return fail(err, ERR_INVALID, "environment '%s' has editable project '%s'",
			meta->name, meta->editables.items[0]);
	for (size_t i = 0; i < packages->count; i++)
		if (packages->items[i].is_built)
			return fail_hint(err, ERR_INVALID, "pin a version that has a wheel",
				"'%s' of environment '%s' was built from sources: the index has no "
				"wheel of it",
				packages->items[i].name, meta->name);
	return 0;
}

int env_fetch_wheels(const struct builder *builder, const char *name, const char *directory,
	struct arena *arena, struct build_problem *problem, size_t *count, struct error *err)
{
	struct env_request *request = arena_alloc(arena, sizeof *request);
	struct env_wanted *wanted = arena_alloc(arena, sizeof *wanted);
	struct build_run run = { .builder = builder,
		.store = builder->store,
		.wanted = wanted,
		.arena = arena,
		.problem = problem,
		.started_ms = clock_monotonic_ms(),
		.layers = -1 };
	struct making making = making_of(&run);
	struct env_meta meta;
	struct str lock;
	*problem = BUILD_NO_PROBLEM;
	run.deadline_ms = run.started_ms + builder->store->config.install_timeout_ms;
	if (env_read(builder->store, name, arena, &meta, err) < 0 ||
		env_read_text(builder->store, name, "lock.txt", arena, &lock, err) < 0 ||
		lock_parse(lock, arena, &making.packages, err) < 0 ||
		check_kind(&meta, &making.packages, err) < 0 ||
		env_python_maker.ask_again(builder, &meta, arena, request, wanted, err) < 0)
		return build_failed_as(problem, err);
	buf_init(&run.log, LOG_MAX);
	int failed = run_pip(&making, lock, err) < 0 || copy_all(&making, directory, err) < 0;
	prepare_wait(&making);
	making_clean(&making);
	buf_done(&run.log);
	*count = making.packages.count;
	return failed ? build_failed_as(problem, err) : 0;
}
