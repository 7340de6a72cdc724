/* uv's jobs, and the first of them: requirements to a lock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "envs/build_parts.h"
#include "envs/scripts.h"
#include "envs/sources.h"
#include "format/quantity.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define UNPACKED_MAX 100000
#define RETRIES 4 /* after 0.5, 1, 2 and 4 s */
#define RETRY_FIRST_MS 500
#define MEASURE_MS 1000
#define CACHE_BYTES                                                                                \
	((uint64_t)64 << 20) /* what the index's own pages may take beside the packages */

/* -- jobs -- */

int making_timeout(struct making *making, struct error *err)
{
	uint64_t limit_ms = making->store->config.install_timeout_ms;

	/* It went by with asking in vain. */
	if (making_unreachable(making, err))
		return -1;
	fail_hint(err, ERR_LIMIT,
		"--timeout, or install_timeout in config.yaml, gives it more time",
		"environment '%s' was not built within %llu s", making->wanted->name,
		(unsigned long long)(limit_ms / 1000));
	return build_failed(making->problem, BUILD_TIMEOUT, NULL);
}

bool making_is_interrupted(const struct making *making)
{
	const volatile int *interrupted = making->builder->runner->interrupted;

	return interrupted && *interrupted != 0;
}

int making_canceled(struct making *making, struct error *err)
{
	fail_hint(err, ERR_CANCELED, "the same command begins it again",
		"the build of environment '%s' was interrupted", making->wanted->name);
	return build_failed(making->problem, BUILD_CANCELED, NULL);
}

static uint64_t count_all(const struct making *making)
{
	return making->packages.count > 0 ? making->packages.count : 1;
}

static uint64_t count_done(const struct making *making, uint64_t done)
{
	uint64_t all = count_all(making);
	uint64_t missing = making->to_install < all ? making->to_install : all;

	return all - missing + (done < missing ? done : missing);
}

static size_t count_entries(int dir, const char *name)
{
	size_t count = 0;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *walk = fd < 0 ? NULL : fdopendir(fd);

	if (!walk)
		fd_close(&fd);
	for (struct dirent *entry; walk && count < UNPACKED_MAX && (entry = readdir(walk));)
		count += entry->d_name[0] != '.';
	if (walk)
		closedir(walk);
	return count;
}

/* Wheels that uv has unpacked so far: its cache has a directory for each. */
static uint64_t count_unpacked(int root)
{
	size_t count = 0;
	int fd = openat(root, STAGE_CACHE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *walk = fd < 0 ? NULL : fdopendir(fd);

	if (!walk)
		fd_close(&fd);
	for (struct dirent *entry; walk && (entry = readdir(walk));)
		if (strncmp(entry->d_name, "archive-v", 9) == 0)
			count += count_entries(dirfd(walk), entry->d_name);
	if (walk)
		closedir(walk);
	return count;
}

static uint64_t count_installed(void *ctx)
{
	struct making *making = ctx;
	uint64_t count = 0;

	home_enter(making->store->home);
	auto_close int root = openat(
		making->stage.fd, STAGE_ROOT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root >= 0)
		count = count_unpacked(root);
	home_leave(making->store->home);
	return count_done(making, count);
}

/* A walk over all files: not more than a tenth of the time is spent on it. */
static uint64_t measure_unpacked(void *ctx, uint64_t *limit)
{
	struct making *making = ctx;
	uint64_t now = clock_monotonic_ms(), bytes, inodes;

	*limit = making->store->config.max_install_bytes;
	if (making->measured_ms && now - making->measured_ms < MEASURE_MS + 10 * making->measure_ms)
		return making->unpacked_bytes;
	home_enter(making->store->home);
	auto_close int root = openat(
		making->stage.fd, STAGE_ROOT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root >= 0 && path_measure_tree(root, &bytes, &inodes, NULL) == 0)
		making->unpacked_bytes = bytes;
	home_leave(making->store->home);
	making->measured_ms = clock_monotonic_ms();
	making->measure_ms = making->measured_ms - now;
	return making->unpacked_bytes;
}

void making_show(struct making *making, const char *phase, uint64_t done, uint64_t total)
{
	struct env_progress *progress = making->builder->progress;
	const struct build_network *network = making->builder->network;

	if (!progress || !progress->show)
		return;
	bool is_installing = strcmp(phase, "installing_deps") == 0;
	progress->count = is_installing ? count_installed : NULL;
	progress->unpacked = is_installing ? measure_unpacked : NULL;
	progress->count_ctx = making;
	progress->show(progress->ctx, phase, done, total, network->bytes(network->ctx));
}

void making_show_packages(struct making *making, const char *phase, uint64_t done)
{
	making_show(making, phase, count_done(making, done), count_all(making));
}

/* Replaces what must not be shown: uv repeats addresses, and those may hold credentials. */
static void hide_secrets(const struct making *making, struct buf *text)
{
	const inputs_texts *secrets = &making->wanted->secrets;

	for (size_t i = 0; i < secrets->count; i++) {
		size_t len = strlen(secrets->items[i]);
		char *at = text->data;

		while (at && (at = memmem(at, text->len - (size_t)(at - text->data),
				      secrets->items[i], len)))
			memset(at, '*', len);
	}
}

static void note(struct making *making, struct str text)
{
	/* What was said goes to the log, and from there to terminals. */
	for (size_t i = 0; i < text.len; i++) {
		const unsigned char *c = (const unsigned char *)text.data + i;
		bool is_c1 = *c == 0xc2 && i + 1 < text.len && c[1] >= 0x80 && c[1] < 0xa0;

		i += is_c1;
		if (!is_c1 && ((*c >= 0x20 && *c != 0x7f) || *c == '\n' || *c == '\t'))
			buf_char(&making->log, (char)*c);
	}
	if (text.len > 0 && text.data[text.len - 1] != '\n')
		buf_char(&making->log, '\n');
}

int making_run(struct making *making, struct job *job, struct buf *out, struct buf *errors,
	struct job_result *result, struct error *err)
{
	const struct runner *runner = making->builder->runner;
	uint64_t now = clock_monotonic_ms();

	if (making_is_interrupted(making))
		return making_canceled(making, err);
	if (now >= making->deadline_ms)
		return making_timeout(making, err);
	job->timeout_ms = making->deadline_ms - now;
	job->stage = arena_printf(making->arena, "%s/" STAGE_ROOT, making->stage.path);
	job->disk_bytes = making->store->config.max_install_bytes + CACHE_BYTES;
	buf_text(&making->log, "$");
	for (char *const *arg = job->argv; *arg; arg++) {
		/* A script is no line for people. */
		buf_printf(&making->log, " %s", strchr(*arg, '\n') ? "..." : *arg);
	}
	buf_char(&making->log, '\n');
	if (runner->run(runner->ctx, job, out, errors, result, err) < 0)
		return build_failed_as(making->problem, err);
	hide_secrets(making, errors);
	note(making, (struct str){ errors->data, errors->len });
	buf_printf(&making->log, "(%llu ms, %llu in all)\n",
		(unsigned long long)result->duration_ms,
		(unsigned long long)(clock_monotonic_ms() - making->started_ms));
	return making_is_interrupted(making) ? making_canceled(making, err) : 0;
}

static void set_joined(struct making *making, struct job *job, const char *key,
	const char *const *items, size_t count)
{
	auto_buf struct buf text = { 0 };

	if (count == 0)
		return;
	buf_init(&text, 65536);
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, "%s%s", i > 0 ? " " : "", items[i]);
	job_set_env(job, making->arena, key, arena_bytes(making->arena, text.data, text.len));
}

void making_uv(struct making *making, struct uv_job *uv, const char *const *arguments)
{
	const struct index_set *indexes = &making->wanted->indexes;
	struct arena *arena = making->arena;
	struct job *job = &uv->job;
	inputs_texts extra = { 0 };

	*uv = (struct uv_job){ 0 };
	vec_push(arena, &uv->argv, arena_text(arena, UV_INSIDE));
	bool is_pip = strcmp(arguments[0], "pip") == 0;
	for (size_t i = 0; arguments[i]; i++) {
		vec_push(arena, &uv->argv, arena_text(arena, arguments[i]));
		if (is_pip && i == 1)
			choices_links(making, uv);
	}
	job_bind(job, arena, making->uv.path, UV_INSIDE);
	interpreter_bind(&making->wanted->python, arena, job);
	job_reach_indexes(job, arena, indexes);
	/* In the environment, not among the arguments: addresses may hold credentials, and
	 * arguments are in the log. */
	job_set_env(job, arena, "UV_DEFAULT_INDEX", index_full(indexes, indexes->index));
	for (size_t i = 0; i < indexes->extra.count; i++)
		vec_push(arena, &extra, index_full(indexes, indexes->extra.items[i]));
	set_joined(making, job, "UV_INDEX", extra.items, extra.count);
	set_joined(making, job, "UV_INSECURE_HOST", indexes->trusted_hosts.items,
		indexes->trusted_hosts.count);
	job_set_env(job, arena, "UV_CACHE_DIR", ENV_INSIDE "/" STAGE_CACHE);
	choices_torch(making, job);
	job_set_env(job, arena, "UV_NO_CONFIG", "1");
	job_set_env(job, arena, "UV_NO_PROGRESS", "1");
	job_set_env(job, arena, "UV_PREVIEW_FEATURES", "pylock");
	job_set_env(job, arena, "UV_PYTHON_DOWNLOADS", "never");
	/* Repeated by us, with the time in view. */
	job_set_env(job, arena, "UV_HTTP_RETRIES", "1");
	job_set_env(job, arena, "UV_HTTP_TIMEOUT", "20");
	job_set_env(job, arena, "NO_COLOR", "1");
	/* So that it says what it leaves out of a wheel: see refuse_unsafe. */
	job_set_env(job, arena, "RUST_LOG", "uv_extract=warn");
}

void making_cut_off(struct making *making, struct uv_job *uv)
{
	const char *cut_off = making->store->config.exclude_newer;

	if (cut_off)
		job_set_env(&uv->job, making->arena, "UV_EXCLUDE_NEWER", cut_off);
}

/* -- what uv says -- */

static enum error_code code_of(enum build_failure failure)
{
	static const enum error_code codes[BUILD_FAILURE_COUNT] = {
		[BUILD_NOT_FOUND] = ERR_NOT_FOUND,
		[BUILD_VERSION_NOT_FOUND] = ERR_NOT_FOUND,
		[BUILD_CONFLICT] = ERR_INVALID,
		[BUILD_HASH_MISMATCH] = ERR_DENIED,
		[BUILD_NETWORK] = ERR_UNAVAILABLE,
		[BUILD_TIMEOUT] = ERR_LIMIT,
		[BUILD_DISK_FULL] = ERR_DISK_FULL,
		[BUILD_INVALID] = ERR_INVALID,
		[BUILD_DENIED] = ERR_DENIED,
		[BUILD_FAILED] = ERR_FAILED,
		[BUILD_CANCELED] = ERR_CANCELED,
	};
	return codes[failure];
}

/* The one package of the lock that is named in what uv said, or NULL. */
static const struct lock_package *find_mentioned(struct making *making, struct str text)
{
	const char *said = arena_bytes(making->arena, text.data, text.len);
	const struct lock_package *found = NULL;

	for (size_t i = 0; i < making->packages.count; i++) {
		const struct lock_package *package = &making->packages.items[i];

		if (!strstr(said,
			    arena_printf(making->arena, "%s==%s", package->name, package->version)))
			continue;
		if (found)
			return NULL;
		found = package;
	}
	return found;
}

/* The forwarder let something not pass: trying again doesn't help. */
static bool is_refused(const struct making *making)
{
	char refused[320] = "";

	making_refused(making, refused);
	return refused[0] != '\0';
}

static int explain_uv(struct making *making, const struct uv_error *said,
	const struct lock_package *mentioned, struct error *err)
{
	char refused[320] = "";

	if (said->needs_build) {
		fail_hint(err, ERR_DENIED,
			making->wanted->allow_build
				? "--no-cache looks for versions anew"
				: "--allow-build builds it, in a sandbox without network; or "
				  "choose a version that has a wheel",
			"package '%s' has no wheel for Python %s, only sources", said->needs_build,
			making->wanted->python.version);
		return build_failed(making->problem, BUILD_DENIED, said->needs_build);
	}
	making_refused(making, refused);
	if (refused[0] != '\0' &&
		(said->failure == BUILD_NETWORK || said->failure == BUILD_DENIED ||
			said->failure == BUILD_FAILED)) {
		fail_hint(err, ERR_DENIED,
			"when its files lie there, name it in file_hosts of config.yaml",
			"the index sends downloads to '%s', which is not one of its hosts",
			refused);
		return build_failed(making->problem, BUILD_NETWORK, said->package);
	}
	if (said->failure == BUILD_NETWORK && making_unreachable(making, err))
		return -1;
	const char *package = said->package;

	if (!package && mentioned)
		package = mentioned->name;
	fail_hint(err, code_of(said->failure), said->suggestion, "%s", said->message);
	/* Every error names what it is about: the package, or the index that can't be reached. */
	if (package && !strstr(said->message, package))
		error_context(err, "%s", package);
	if (said->failure == BUILD_NETWORK)
		error_context(err, "index %s",
			index_redact(making->arena, making->wanted->indexes.index));
	return build_failed(making->problem, said->failure, package);
}

int making_too_large(struct making *making, struct error *err)
{
	char limit[16];

	quantity_format_size(limit, making->store->config.max_install_bytes);
	fail_hint(err, ERR_LIMIT, "a higher max_install_bytes in config.yaml allows it",
		"the packages of environment '%s' take more than %s", making->wanted->name, limit);
	return build_failed(making->problem, BUILD_DENIED, NULL);
}

/* "host:port" of what could not be reached; *reason: why. false: nothing of the kind is known. */
static bool find_failure(
	const struct making *making, char why[BUILD_NETWORK_FAILURE_SIZE], const char **reason)
{
	const struct build_network *network = making->builder->network;
	char *colon;

	why[0] = '\0';
	if (network->failed)
		network->failed(network->ctx, why);
	colon = strstr(why, ": ");
	if (!colon)
		return false;
	*colon = '\0';
	*reason = colon + 2;
	return true;
}

bool making_is_unresolved(const struct making *making)
{
	char why[BUILD_NETWORK_FAILURE_SIZE];
	const char *reason;

	return find_failure(making, why, &reason) &&
	       strncmp(reason, "can't be resolved", strlen("can't be resolved")) == 0;
}

/* The address of the index at "host:port" as it was configured, without credentials; else NULL. */
static const char *find_index_at(const struct making *making, const char *where)
{
	const struct index_set *indexes = &making->wanted->indexes;

	for (size_t i = 0; i <= indexes->extra.count; i++) {
		const char *url = i ? indexes->extra.items[i - 1] : indexes->index;
		const char *host = url ? wheel_url_host(url, making->arena) : NULL;

		if (host && strcasecmp(host, where) == 0)
			return index_redact(making->arena, url);
	}
	return NULL;
}

int making_unreachable(struct making *making, struct error *err)
{
	char why[BUILD_NETWORK_FAILURE_SIZE];
	const char *reason;

	if (!find_failure(making, why, &reason))
		return 0;
	if (making_is_unresolved(making)) {
		const char *index = find_index_at(making, why);

		if (index)
			fail(err, ERR_UNAVAILABLE, "the host name of index %s %s", index, reason);
		else
			fail(err, ERR_UNAVAILABLE, "the file host %s %s", why, reason);
		error_hint(err, "check the address and the name server, and try again");
		build_failed(making->problem, BUILD_NETWORK, NULL);
		return 1;
	}
	fail_hint(err, ERR_UNAVAILABLE, "check the connection and the index address, and try again",
		"the index at %s can't be reached: %s", why, reason);
	build_failed(making->problem, BUILD_NETWORK, NULL);
	return 1;
}

static void show_retry(struct making *making, int attempt, int attempts)
{
	const struct env_progress *progress = making->builder->progress;

	events_retrying(&making->store->events, making->wanted->name, attempt, attempts);
	if (progress && progress->retrying)
		progress->retrying(progress->ctx, attempt, attempts);
}

/* How a job ended that was not uv's own doing. 0: uv exited. */
static int explain_end(struct making *making, const struct job_result *result, struct error *err)
{
	switch (result->end) {
	case JOB_EXITED:
		return 0;
	case JOB_TIMEOUT:
		return making_timeout(making, err);
	case JOB_DISK_OVER:
		return making_too_large(making, err);
	case JOB_MEMORY_OVER:
		fail(err, ERR_LIMIT, "uv needed more memory than a build may have");
		return build_failed(making->problem, BUILD_FAILED, NULL);
	case JOB_CANCELED:
		return making_canceled(making, err);
	default:
		fail(err, ERR_FAILED, "uv was killed");
		return build_failed(making->problem, BUILD_FAILED, NULL);
	}
}

static void wait_ms(const struct making *making, uint64_t ms)
{
	struct timespec time = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	while (nanosleep(&time, &time) < 0 && errno == EINTR && !making_is_interrupted(making))
		;
}

/* uv leaves out what leads out of a wheel, and says so as an aside. Who makes such a wheel means
 * harm: all of it is refused. */
static int refuse_unsafe(struct making *making, struct str errors, struct error *err)
{
	static const char phrase[] = "Skipping unsafe file name: ";
	const char *text = arena_bytes(making->arena, errors.data, errors.len);
	const char *found = strstr(text, phrase);
	const requirement_list *list = &making->wanted->requirements;
	const char *package = NULL;

	if (!found)
		return 0;
	found += sizeof phrase - 1;
	if (making->composition.missing.count == 1)
		package = making->composition.missing.items[0]->name;
	else if (list->count == 1)
		package = list->items[0].name;
	fail(err, ERR_DENIED, "%s%sa wheel holds '%.*s', which leads out of it",
		package ? package : "", package ? ": " : "", (int)strcspn(found, "\r\n"), found);
	error_hint(err, "don't use this package; carrel env show --log %s has all of it",
		making->wanted->name);
	return build_failed(making->problem, BUILD_DENIED, package);
}

/* Each once, though several runs of uv may give it. */
static void show_warnings(struct making *making, struct str errors)
{
	const struct env_progress *progress = making->builder->progress;
	struct str line;

	while (progress && progress->say && str_next(&errors, '\n', &line)) {
		char shown[512];
		bool is_known = false;

		if (!str_starts_with(line, "warning: "))
			continue;
		str_printable(shown, sizeof shown, line);
		for (size_t i = 0; i < making->warnings.count && !is_known; i++)
			is_known = strcmp(making->warnings.items[i], shown) == 0;
		if (is_known)
			continue;
		vec_push(making->arena, &making->warnings, arena_text(making->arena, shown));
		progress->say(progress->ctx, shown);
	}
}

static int run_once(struct making *making, struct uv_job *uv, struct buf *out,
	struct uv_error *said, const struct lock_package **mentioned, bool *is_done,
	struct error *err)
{
	auto_buf struct buf errors = { 0 };
	struct job_result result = { 0 };

	buf_init(&errors, OUTPUT_MAX);
	buf_clear(out);
	if (making_run(making, &uv->job, out, &errors, &result, err) < 0 ||
		explain_end(making, &result, err) < 0)
		return -1;
	if (refuse_unsafe(making, (struct str){ errors.data, errors.len }, err) < 0)
		return -1;
	show_warnings(making, (struct str){ errors.data, errors.len });
	*is_done = result.exit_code == 0;
	if (!*is_done) {
		struct str text = { errors.data, errors.len };

		making->said = arena_bytes(making->arena, text.data, text.len);
		uv_error_classify(text, making->arena, said);
		*mentioned = find_mentioned(making, text);
	}
	return 0;
}

/* For the jobs of others (interpreter, hosts, uv itself). */
static int run_bounded(void *ctx, const struct job *job, struct buf *out, struct buf *errors,
	struct job_result *result, struct error *err)
{
	struct making *making = ctx;
	const struct runner *runner = making->builder->runner;
	uint64_t now = clock_monotonic_ms();
	uint64_t left = now < making->deadline_ms ? making->deadline_ms - now : 1;
	struct job bounded = *job;

	if (making_is_interrupted(making))
		return making_canceled(making, err);
	if (bounded.timeout_ms == 0 || bounded.timeout_ms > left)
		bounded.timeout_ms = left;
	return runner->run(runner->ctx, &bounded, out, errors, result, err);
}

void making_bound(struct making *making)
{
	making->runner = *making->builder->runner;
	making->runner.ctx = making;
	making->runner.run = run_bounded;
}

bool making_is_begun(const struct making *making)
{
	const char *site = arena_printf(making->arena, STAGE_ROOT "/lib/python%s/site-packages",
		making->wanted->python.minor);
	size_t count = 0;

	home_enter(making->store->home);
	int fd = path_open_nolinks(making->stage.fd, site, O_RDONLY | O_DIRECTORY, 0);
	DIR *walk = fd < 0 ? NULL : fdopendir(fd);
	if (!walk)
		fd_close(&fd);
	for (struct dirent *entry; walk && (entry = readdir(walk));)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	bool is_empty = walk && count == 0;
	if (walk)
		closedir(walk);
	home_leave(making->store->home);
	return !is_empty;
}

int making_run_uv(struct making *making, struct uv_job *uv, struct buf *out,
	const char **needs_build, struct error *err)
{
	uint64_t wait = RETRY_FIRST_MS;
	/* What a helper doesn't get done is done afterwards, with all tries. */
	int retries = making->is_part ? 0 : RETRIES;
	const struct lock_package *mentioned = NULL;
	struct uv_error said = { 0 };
	bool is_done = false;

	vec_push(making->arena, &uv->argv, NULL);
	uv->job.argv = uv->argv.items;
	*needs_build = making->needs_build = NULL;
	for (int attempt = 0;; attempt++) {
		if (run_once(making, uv, out, &said, &mentioned, &is_done, err) < 0) {
			/* Why it took so long is known, when the attempt before it failed. */
			if (attempt > 0 && making->problem->failure == BUILD_TIMEOUT)
				break;
			return -1;
		}
		if (is_done)
			return 0;
		if (said.failure != BUILD_NETWORK || is_refused(making) ||
			making_is_unresolved(making) || attempt == retries ||
			clock_monotonic_ms() + wait >= making->deadline_ms)
			break;
		/* Everything is fetched before anything is installed: this is no network's failure,
		 * whatever words the names of files put into uv's mouth. */
		if (making_is_begun(making)) {
			said.failure = BUILD_FAILED;
			break;
		}
		buf_printf(&making->log, "the network failed; again after %llu ms\n",
			(unsigned long long)wait);
		show_retry(making, attempt + 2, retries + 1);
		wait_ms(making, wait);
		wait *= 2;
	}
	*needs_build = making->needs_build = said.needs_build;
	return explain_uv(making, &said, mentioned, err);
}

/* -- the stage -- */

int making_put(struct making *making, const char *name, struct str text, struct error *err)
{
	auto_close int dir = -1, fd = -1;
	int failed;

	home_enter(making->store->home);
	failed = path_make_directories(
		making->stage.fd, STAGE_ROOT "/" STAGE_INPUT, 0755, &dir, err);
	if (!failed) {
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd < 0 || fd_write_full(fd, text.data, text.len) < 0)
			failed = fail_errno(err, "write '%s' of a build", name);
	}
	home_leave(making->store->home);
	return failed ? build_failed_as(making->problem, err) : 0;
}

/* -- resolving -- */

/* The packages alone, without hashes: uv ignores them here, and we don't (policy_keep_hashes). */
static int put_requirements(struct making *making, struct error *err)
{
	const requirement_list *list = &making->wanted->requirements;
	auto_buf struct buf text = { 0 };

	buf_init(&text, 2 * REQUIREMENTS_MAX);
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].kind == REQUIREMENT_PACKAGE ||
			list->items[i].kind == REQUIREMENT_URL)
			buf_printf(&text, "%s\n", list->items[i].text);
	}
	sources_require_projects(making, &text);
	return making_put(making, "requirements.txt", (struct str){ text.data, text.len }, err);
}

/* Wheels of a directory have no address. Those of a page have a hash only beside their address. */
static bool has_link_directory(const struct env_request *request)
{
	for (size_t i = 0; i < request->find_links.count; i++)
		if (path_is_absolute(request->find_links.items[i]))
			return true;
	return false;
}

/* With the addresses of the wheels, where they are all of an index and nobody said which files they
 * must be: installing doesn't ask the index again then, which is a fifth of a first build. */
static bool has_addresses(const struct making *making)
{
	const struct env_wanted *wanted = making->wanted;
	const requirement_list *list = &wanted->requirements;

	if (wanted->is_strict || wanted->allow_build || wanted->projects.count > 0 ||
		wanted->locals.count > 0 || has_link_directory(wanted->request))
		return false;
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].kind != REQUIREMENT_PACKAGE || list->items[i].hashes.count > 0)
			return false;
	}
	return true;
}

static int parse_resolved(struct making *making, struct str text, struct error *err)
{
	auto_buf struct buf plain = { 0 }, own = { 0 };

	if (has_addresses(making)) {
		if (pylock_parse(text, making->arena, &making->addresses, err) < 0)
			return -1;
		pylock_to_lock(&making->addresses, making->arena, &making->packages);
		return 0;
	}
	buf_init(&own, OUTPUT_MAX);
	sources_without_projects(making, text, &own);
	buf_init(&plain, OUTPUT_MAX);
	wheel_urls_to_versions(&making->wanted->requirements, (struct str){ own.data, own.len },
		making->arena, &plain);
	text = (struct str){ arena_bytes(making->arena, plain.data, plain.len), plain.len };
	if (lock_parse(text, making->arena, &making->packages, err) < 0)
		return -1;
	sources_mark(making);
	return 0;
}

void making_print_lock(struct making *making)
{
	auto_buf struct buf printed = { 0 };

	sources_lock_locals(making);
	buf_init(&printed, OUTPUT_MAX);
	lock_print(&making->packages, &printed);
	making->lock_text =
		(struct str){ arena_bytes(making->arena, printed.data, printed.len), printed.len };
}

static int take_lock(struct making *making, struct str text, struct error *err)
{
	struct env_wanted *wanted = making->wanted;

	if (parse_resolved(making, text, err) < 0) {
		error_context(err, "what uv resolved");
		return build_failed(making->problem, BUILD_FAILED, NULL);
	}
	if (policy_judge_lock(&making->store->config, &making->packages, making->problem, err) < 0)
		return -1;
	if (policy_keep_hashes(&wanted->requirements, wanted->is_strict, &making->packages,
		    making->arena, making->problem, err) < 0)
		return -1;
	making_print_lock(making);
	if (lock_keep(making->store, wanted->lock_key, making->lock_text, err) < 0)
		return build_failed_as(making->problem, err);
	return 0;
}

int making_resolve(struct making *making, struct error *err)
{
	static const char *const by_hash[] = { "pip", "compile", "--generate-hashes", "--no-header",
		"--no-annotate", "--no-build", "--python", ENV_PYTHON,
		ENV_INPUT("requirements.txt"), NULL };
	static const char *const by_address[] = { "pip", "compile", "--format", "pylock.toml",
		"--no-header", "--no-annotate", "--no-build", "--python", ENV_PYTHON,
		ENV_INPUT("requirements.txt"), NULL };
	auto_buf struct buf out = { 0 };
	const char *needs_build;
	struct uv_job uv;

	events_status(&making->store->events, "resolving", making->wanted->name);
	making_show(making, "resolving", 0, 0);
	if (choices_read_uv_lock(making, err) < 0 || sources_build_projects(making, err) < 0 ||
		sources_take_locals(making, err) < 0 || put_requirements(making, err) < 0)
		return -1;
	buf_init(&out, OUTPUT_MAX);
	for (;;) {
		if (making_reach(making, err) < 0)
			return -1;
		making_uv(making, &uv, has_addresses(making) ? by_address : by_hash);
		making_cut_off(making, &uv);
		sources_show(making, &uv, true);
		if (choices_add(making, &uv, err) < 0)
			return -1;
		if (making_run_uv(making, &uv, &out, &needs_build, err) == 0)
			break;
		if (!needs_build || sources_build_package(making, needs_build, err) < 0)
			return -1;
	}
	return take_lock(making, (struct str){ out.data, out.len }, err);
}
