/* Requirements to a lock, by uv. */
#include <string.h>

#include "base/path.h"
#include "envs/jobs.h"
#include "envs/progress.h"
#include "envs/sources.h"
#include "envs/uv_run.h"

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
	buf_init(&own, UV_OUTPUT_MAX);
	sources_without_projects(making, text, &own);
	buf_init(&plain, UV_OUTPUT_MAX);
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
	buf_init(&printed, UV_OUTPUT_MAX);
	lock_print(&making->packages, &printed);
	making->lock_text =
		(struct str){ arena_bytes(making->arena, printed.data, printed.len), printed.len };
}

static int take_lock(struct making *making, struct str text, struct error *err)
{
	struct env_wanted *wanted = making->wanted;

	if (parse_resolved(making, text, err) < 0) {
		error_context(err, "the output of uv's resolver");
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
	buf_init(&out, UV_OUTPUT_MAX);
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
