/* Jobs that run uv: how it is called, and called again when the network failed. */
#include <fcntl.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "envs/python/explain.h"
#include "envs/python/jobs.h"
#include "envs/python/scripts.h"
#include "envs/python/uv_run.h"
#include "format/packages/uv_error.h"

#define LINKS_INSIDE "/links"
#define RETRIES 4 /* after 0.5, 1, 2 and 4 s */
#define RETRY_FIRST_MS 500

/* -- the call -- */

static void set_joined(struct making *making, struct job *job, const char *key,
	const char *const *items, size_t count)
{
	if (count == 0)
		return;
	auto_buf struct buf text = buf_empty(65536);
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, "%s%s", i > 0 ? " " : "", items[i]);
	job_set_env(job, making->arena, key, arena_bytes(making->arena, text.data, text.len));
}

void uv_add(struct making *making, struct uv_job *uv, const char *option, const char *value)
{
	vec_push(making->arena, &uv->argv, option);
	if (value)
		vec_push(making->arena, &uv->argv, value);
}

/* Directories are shown to uv; URLs, which may hold credentials, are in the environment. */
static void add_links(struct making *making, struct uv_job *uv)
{
	const struct env_request *request = making->wanted->request;
	struct arena *arena = making->arena;
	auto_buf struct buf urls = buf_empty(65536);
	if (request->wheels)
		uv_add(making, uv, "--no-index", NULL);
	for (size_t i = 0; i < request->find_links.count; i++) {
		const char *link = request->find_links.items[i];
		const char *inside = arena_printf(arena, LINKS_INSIDE "/%zu", i);
		if (!path_is_absolute(link)) {
			buf_printf(&urls, "%s%s", urls.len > 0 ? "," : "", link);
			continue;
		}
		job_bind(&uv->job, arena, link, inside);
		uv_add(making, uv, "--find-links", inside);
	}
	if (urls.len > 0)
		job_set_env(
			&uv->job, arena, "UV_FIND_LINKS", arena_bytes(arena, urls.data, urls.len));
}

static void set_torch(struct making *making, struct job *job)
{
	const struct env_request *request = making->wanted->request;
	const char *driver = inputs_cuda_driver(request, making->arena);
	if (!request->torch_backend)
		return;
	job_set_env(job, making->arena, "UV_TORCH_BACKEND", request->torch_backend);
	if (*driver)
		job_set_env(job, making->arena, "UV_CUDA_DRIVER_VERSION", driver);
}

static void set_indexes(struct making *making, struct job *job)
{
	const struct index_set *indexes = &making->wanted->indexes;
	struct arena *arena = making->arena;
	text_list extra = { 0 };
	job_reach_indexes(job, arena, indexes);
	/* In the environment, not among the arguments: addresses may hold credentials, and
	 * arguments are in the log. */
	job_set_env(job, arena, "UV_DEFAULT_INDEX", index_full(indexes, indexes->index));
	for (size_t i = 0; i < indexes->extra.count; i++)
		vec_push(arena, &extra, index_full(indexes, indexes->extra.items[i]));
	set_joined(making, job, "UV_INDEX", extra.items, extra.count);
	set_joined(making, job, "UV_INSECURE_HOST", indexes->trusted_hosts.items,
		indexes->trusted_hosts.count);
}

void making_uv(struct making *making, struct uv_job *uv, const char *const *arguments)
{
	struct arena *arena = making->arena;
	struct job *job = &uv->job;
	*uv = (struct uv_job){ 0 };
	uv_add(making, uv, UV_INSIDE, NULL);
	bool is_pip = strcmp(arguments[0], "pip") == 0;
	for (size_t i = 0; arguments[i]; i++) {
		uv_add(making, uv, arguments[i], NULL);
		if (is_pip && i == 1)
			add_links(making, uv);
	}
	bool is_alone = making->wanted->request->wheels != NULL; /* no index is asked */
	job_bind(job, arena, making->uv.path, UV_INSIDE);
	interpreter_bind(&making->wanted->python, arena, job);
	if (is_alone)
		job_set_env(job, arena, "UV_OFFLINE", "1");
	else
		set_indexes(making, job);
	job_set_env(job, arena, "UV_CACHE_DIR", ENV_INSIDE "/" STAGE_CACHE);
	set_torch(making, job);
	job_set_env(job, arena, "UV_NO_CONFIG", "1");
	job_set_env(job, arena, "UV_NO_PROGRESS", "1");
	job_set_env(job, arena, "UV_PREVIEW_FEATURES", "pylock");
	job_set_env(job, arena, "UV_PYTHON_DOWNLOADS", "never");
	/* making_run_uv repeats failed requests, within the time limit. */
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

/* -- the run -- */

static void show_retry(struct making *making, int attempt, int attempts)
{
	const struct env_progress *progress = making->builder->progress;
	events_retrying(&making->store->events, making->wanted->name, attempt, attempts);
	if (progress && progress->retrying)
		progress->retrying(progress->ctx, attempt, attempts);
}

static void wait_ms(const struct making *making, uint64_t ms)
{
	struct timespec time = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
	while (nanosleep(&time, &time) < 0 && errno == EINTR &&
		!builder_is_interrupted(making->builder))
		;
}

/* uv skips files whose path leads out of the wheel, with a warning. Such a wheel is hostile: refuse
 * all of it. */
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
	fail(err, ERR_DENIED, "%s%sa wheel contains '%.*s', which points outside of it",
		package ? package : "", package ? ": " : "", (int)strcspn(found, "\r\n"), found);
	error_hint(err, "don't use this package; carrel env show --log %s prints the whole log",
		making->wanted->name);
	return build_failed(making->problem, BUILD_DENIED, package);
}

/* Shows each warning once, also when several runs of uv print it. */
static void show_warnings(struct making *making, struct str errors)
{
	const struct env_progress *progress = making->builder->progress;
	struct str line;
	while (progress && progress->say && str_next(&errors, '\n', &line)) {
		char shown[512];
		if (!str_starts_with(line, "warning: "))
			continue;
		str_printable(shown, sizeof shown, line);
		if (text_list_has(&making->warnings, shown))
			continue;
		vec_push(making->arena, &making->warnings, arena_text(making->arena, shown));
		progress->say(progress->ctx, shown);
	}
}

static int run_once(struct making *making, struct uv_job *uv, struct buf *out,
	struct uv_error *said, bool *is_done, struct error *err)
{
	struct job_result result = { 0 };
	auto_buf struct buf errors = buf_empty(UV_OUTPUT_MAX);
	buf_clear(out);
	if (making_run(making, &uv->job, out, &errors, &result, err) < 0 ||
		making_explain_end(making, &result, err) < 0)
		return -1;
	if (refuse_unsafe(making, buf_str(&errors), err) < 0)
		return -1;
	show_warnings(making, buf_str(&errors));
	*is_done = result.exit_code == 0;
	if (!*is_done) {
		struct str text = { errors.data, errors.len };
		making->said = arena_bytes(making->arena, text.data, text.len);
		uv_error_classify(text, making->arena, said);
	}
	return 0;
}

/* The forwarder refused a host: another attempt doesn't help. */
static bool is_refused(const struct making *making)
{
	char refused[320] = "";
	making_refused(making, refused);
	return refused[0] != '\0';
}

bool making_is_begun(const struct making *making)
{
	const char *site = arena_printf(making->arena, STAGE_ROOT "/lib/python%s/site-packages",
		making->wanted->python.minor);
	home_enter(making->store->home);
	auto_walk DIR *walk =
		walk_from(path_open_nolinks(making->stage.fd, site, O_RDONLY | O_DIRECTORY, 0));
	bool is_empty = walk && !walk_next(walk);
	home_leave(making->store->home);
	return !is_empty;
}

int making_run_uv(struct making *making, struct uv_job *uv, struct buf *out,
	const char **needs_build, struct error *err)
{
	uint64_t wait = RETRY_FIRST_MS;
	/* A helper process doesn't retry: the build does its work again if it fails. */
	int retries = making->is_part ? 0 : RETRIES;
	struct uv_error said = { 0 };
	bool is_done = false;
	vec_push(making->arena, &uv->argv, NULL);
	uv->job.argv = uv->argv.items;
	*needs_build = making->needs_build = NULL;
	for (int attempt = 0;; attempt++) {
		if (run_once(making, uv, out, &said, &is_done, err) < 0) {
			/* The failure of the attempt before explains the delay. */
			if (attempt > 0 && making->problem->failure == BUILD_TIMEOUT)
				break;
			return -1;
		}
		if (is_done)
			return 0;
		if (said.failure != BUILD_NETWORK || is_refused(making) ||
			making_is_unresolved(making) || attempt == retries ||
			clock_monotonic_ms() + wait >= making->run->deadline_ms)
			break;
		/* Everything is fetched before anything is installed: this is no network's failure,
		 * whatever words the names of files put into uv's mouth. */
		if (making_is_begun(making)) {
			said.failure = BUILD_FAILED;
			break;
		}
		buf_printf(&making->run->log, "the network failed; trying again after %llu ms\n",
			(unsigned long long)wait);
		show_retry(making, attempt + 2, retries + 1);
		wait_ms(making, wait);
		wait *= 2;
	}
	*needs_build = making->needs_build = said.needs_build;
	return making_explain_uv(making, &said, err);
}
