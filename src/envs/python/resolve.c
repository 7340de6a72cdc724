/* Resolves requirements to a lock, by uv. Besides the requirements, uv.lock, constraints,
 * pre-releases and PyTorch's backend decide about the result. */

#include "base/path.h"
#include "envs/python/hosts.h"
#include "envs/python/jobs.h"
#include "envs/python/progress.h"
#include "envs/python/scripts.h"
#include "envs/python/sources.h"
#include "envs/python/uv_run.h"
#include "envs/python/wheelhouse.h"

#define TORCH_HOSTS_MAX 3 /* the index, and where its files are */

/* What uv reads from uv.lock, as requirements with hashes; judged like those of any file. */
static int read_uv_lock(struct making *making, struct error *err)
{
	static const char *const arguments[] = { "export", "--frozen", "--offline", "--no-header",
		"--no-annotate", "--no-emit-project", "--no-default-groups", "--format",
		"requirements-txt", "--python", ENV_PYTHON, "--project",
		(ENV_INSIDE "/" STAGE_INPUT), NULL };
	const struct env_request *request = making->wanted->request;
	struct env_wanted *wanted = making->wanted;
	struct arena *arena = making->arena;
	requirement_list list = { 0 };
	const char *needs_build;
	struct uv_job uv;
	if (wanted->uv_lock.len == 0)
		return 0;
	if (making_put(making, "uv.lock", wanted->uv_lock, err) < 0 ||
		making_put(making, "pyproject.toml", wanted->uv_project, err) < 0)
		return -1;
	auto_buf struct buf out = buf_empty(UV_OUTPUT_MAX);
	making_uv(making, &uv, arguments);
	uv.job.forward = false;
	for (size_t i = 0; i < request->extras.count; i++)
		uv_add(making, &uv, "--extra", request->extras.items[i]);
	for (size_t i = 0; i < request->groups.count; i++)
		uv_add(making, &uv, "--group", request->groups.items[i]);
	if (making_run_uv(making, &uv, &out, &needs_build, err) < 0)
		return error_context(err, "uv.lock");
	if (requirements_parse(buf_str(&out), arena, &list, err) < 0) {
		error_context(err, "uv.lock, as uv reads it");
		return build_failed(making->problem, BUILD_INVALID, NULL);
	}
	for (size_t i = 0; i < list.count; i++) {
		list.items[i].file = "uv.lock (as uv prints it)";
		vec_push(arena, &wanted->requirements, list.items[i]);
	}
	wanted->uv_lock.len = 0; /* once a build */
	return wanted_judge(making->store, wanted, arena, making->problem, err);
}

/* Adds constraints and --prerelease. */
static int add_choices(struct making *making, struct uv_job *uv, struct error *err)
{
	const requirement_list *list = &making->wanted->constraints;
	if (making->wanted->is_pre)
		uv_add(making, uv, "--prerelease", "allow");
	if (list->count == 0)
		return 0;
	auto_buf struct buf text = buf_empty(REQUIREMENTS_MAX);
	for (size_t i = 0; i < list->count; i++)
		buf_printf(&text, "%s\n", list->items[i].text);
	uv_add(making, uv, "--constraints", ENV_INPUT("constraints.txt"));
	return making_put(making, "constraints.txt", buf_str(&text), err);
}

/* The packages alone, without hashes: uv ignores them here, and we don't (policy_keep_hashes). */
static int put_requirements(struct making *making, struct error *err)
{
	const requirement_list *list = &making->wanted->requirements;
	auto_buf struct buf text = buf_empty(2 * REQUIREMENTS_MAX);
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].kind == REQUIREMENT_PACKAGE ||
			list->items[i].kind == REQUIREMENT_URL)
			buf_printf(&text, "%s\n", list->items[i].text);
	}
	sources_require_projects(making, &text);
	return making_put(making, "requirements.txt", buf_str(&text), err);
}

/* Wheels of a directory have no address. Those of a page have a hash only beside their address. */
static bool has_link_directory(const struct env_request *request)
{
	for (size_t i = 0; i < request->find_links.count; i++)
		if (path_is_absolute(request->find_links.items[i]))
			return true;
	return false;
}

/* Whether uv resolves to addresses of wheels: all packages come from an index, and no hashes are
 * given. Installing then doesn't ask the index again, which saves a fifth of a first build. */
static bool has_addresses(const struct making *making)
{
	const struct env_wanted *wanted = making->wanted;
	const requirement_list *list = &wanted->requirements;
	if (wanted->is_strict || wanted->allow_build || wanted->request->wheels ||
		wanted->projects.count > 0 || wanted->locals.count > 0 ||
		has_link_directory(wanted->request))
		return false;
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].kind != REQUIREMENT_PACKAGE || list->items[i].hashes.count > 0)
			return false;
	}
	return true;
}

static int parse_resolved(struct making *making, struct str text, struct error *err)
{
	if (has_addresses(making)) {
		if (pylock_parse(text, making->arena, &making->addresses, err) < 0)
			return -1;
		pylock_to_lock(&making->addresses, making->arena, &making->packages);
		return 0;
	}
	auto_buf struct buf own = buf_empty(UV_OUTPUT_MAX);
	sources_without_projects(making, text, &own);
	auto_buf struct buf plain = buf_empty(UV_OUTPUT_MAX);
	wheel_urls_to_versions(&making->wanted->requirements, buf_str(&own), making->arena, &plain);
	text = buf_copy(making->arena, &plain);
	if (lock_parse(text, making->arena, &making->packages, err) < 0)
		return -1;
	sources_mark(making);
	return 0;
}

void making_print_lock(struct making *making)
{
	sources_lock_locals(making);
	auto_buf struct buf printed = buf_empty(UV_OUTPUT_MAX);
	lock_print(&making->packages, &printed);
	making->run->lock = buf_copy(making->arena, &printed);
}

static int take_lock(struct making *making, struct str text, struct error *err)
{
	struct env_wanted *wanted = making->wanted;
	if (parse_resolved(making, text, err) < 0) {
		error_context(err, "the output of uv's resolver");
		return build_failed(making->problem, BUILD_FAILED, NULL);
	}
	if (policy_judge_lock(&making->store->config, &making->packages, making->problem, err) <
			0 ||
		wheelhouse_compare(making, err) < 0)
		return -1;
	if (policy_keep_hashes(&wanted->requirements, wanted->is_strict, &making->packages,
		    making->arena, making->problem, err) < 0)
		return -1;
	making_print_lock(making);
	if (lock_keep(making->store, wanted->lock_key, making->run->lock, err) < 0)
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
	const char *needs_build;
	struct uv_job uv;
	events_status(&making->store->events, "resolving", making->wanted->name);
	making_show(making, "resolving", 0, 0);
	if (read_uv_lock(making, err) < 0 || sources_build_projects(making, err) < 0 ||
		sources_take_locals(making, err) < 0 || wheelhouse_take(making, err) < 0 ||
		put_requirements(making, err) < 0)
		return -1;
	auto_buf struct buf out = buf_empty(UV_OUTPUT_MAX);
	for (;;) {
		if (making_reach(making, err) < 0)
			return -1;
		making_uv(making, &uv, has_addresses(making) ? by_address : by_hash);
		making_cut_off(making, &uv);
		sources_show(making, &uv, true);
		if (add_choices(making, &uv, err) < 0)
			return -1;
		if (making_run_uv(making, &uv, &out, &needs_build, err) == 0)
			break;
		if (!needs_build || sources_build_package(making, needs_build, err) < 0)
			return -1;
	}
	return take_lock(making, buf_str(&out), err);
}

/* --torch-backend: only uv knows the addresses of PyTorch's packages. It is run to install torch
 * alone; the forwarder refuses the hosts that uv asks for, and these are then allowed. uv is the
 * pinned version, and it runs before any input from the index. */

/* The output is ignored: either uv succeeds, or a host was refused. */
static int ask_for_torch(struct making *making, struct error *err)
{
	static const char *const arguments[] = { "pip", "install", "--dry-run", "--no-deps",
		"--no-build", "--target", "/tmp/target", NULL };
	struct arena *arena = making->arena;
	struct job_result result = { 0 };
	struct uv_job uv;
	auto_buf struct buf out = buf_empty(UV_OUTPUT_MAX);
	auto_buf struct buf errors = buf_empty(UV_OUTPUT_MAX);
	making_uv(making, &uv, arguments);
	uv_add(making, &uv, "--python", making->wanted->python.path);
	uv_add(making, &uv, "torch", NULL);
	vec_push(arena, &uv.argv, NULL);
	uv.job.argv = uv.argv.items;
	job_set_env(&uv.job, arena, "UV_CACHE_DIR", "/tmp/cache");
	return making->runner.run(making->runner.ctx, &uv.job, &out, &errors, &result, err);
}

int making_reach_torch(struct making *making, struct error *err)
{
	const struct build_network *network = making->builder->network;
	if (!making->wanted->request->torch_backend)
		return 0;
	for (int i = 0; i < TORCH_HOSTS_MAX; i++) {
		char refused[320] = "";
		struct file_host host;
		if (ask_for_torch(making, err) < 0)
			return build_failed_as(making->problem, err);
		making_refused(making, refused);
		if (refused[0] == '\0')
			return 0;
		buf_printf(
			&making->run->log, "packages of --torch-backend come from %s\n", refused);
		making->torch_host = arena_text(making->arena, refused);
		if (file_host_parse(refused, making->arena, &host, err) < 0 ||
			network->allow(network->ctx, host.host, host.port, false, err) < 0)
			return build_failed_as(making->problem, err);
	}
	return 0;
}
