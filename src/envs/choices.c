/* What else than requirements decides what uv takes: uv.lock, constraints, pre-releases, links, and
 * PyTorch's backend. */
#include <string.h>

#include "base/path.h"
#include "envs/build_parts.h"
#include "envs/jobs.h"
#include "envs/scripts.h"
#include "envs/uv_run.h"

#define LINKS_INSIDE "/links"
#define OUTPUT_MAX ((size_t)16 << 20)

/* Directories are shown to uv; URLs, which may hold credentials, are in the environment. */
void choices_links(struct making *making, struct uv_job *uv)
{
	const struct env_request *request = making->wanted->request;
	struct arena *arena = making->arena;
	auto_buf struct buf urls = { 0 };

	buf_init(&urls, 65536);
	for (size_t i = 0; i < request->find_links.count; i++) {
		const char *link = request->find_links.items[i];
		const char *inside = arena_printf(arena, LINKS_INSIDE "/%zu", i);

		if (!path_is_absolute(link)) {
			buf_printf(&urls, "%s%s", urls.len > 0 ? "," : "", link);
			continue;
		}
		job_bind(&uv->job, arena, link, inside);
		vec_push(arena, &uv->argv, arena_text(arena, "--find-links"));
		vec_push(arena, &uv->argv, arena_text(arena, inside));
	}
	if (urls.len > 0)
		job_set_env(
			&uv->job, arena, "UV_FIND_LINKS", arena_bytes(arena, urls.data, urls.len));
}

void choices_torch(struct making *making, struct job *job)
{
	const struct env_request *request = making->wanted->request;
	const char *driver = inputs_cuda_driver(request, making->arena);

	if (!request->torch_backend)
		return;
	job_set_env(job, making->arena, "UV_TORCH_BACKEND", request->torch_backend);
	if (*driver)
		job_set_env(job, making->arena, "UV_CUDA_DRIVER_VERSION", driver);
}

/* What uv reads from uv.lock, as requirements with hashes; judged like those of any file. */
int choices_read_uv_lock(struct making *making, struct error *err)
{
	static const char *const arguments[] = { "export", "--frozen", "--offline", "--no-header",
		"--no-annotate", "--no-emit-project", "--no-default-groups", "--format",
		"requirements-txt", "--python", ENV_PYTHON, "--project",
		(ENV_INSIDE "/" STAGE_INPUT), NULL };
	const struct env_request *request = making->wanted->request;
	struct env_wanted *wanted = making->wanted;
	struct arena *arena = making->arena;
	auto_buf struct buf out = { 0 };
	requirement_list list = { 0 };
	const char *needs_build;
	struct uv_job uv;

	if (wanted->uv_lock.len == 0)
		return 0;
	if (making_put(making, "uv.lock", wanted->uv_lock, err) < 0 ||
		making_put(making, "pyproject.toml", wanted->uv_project, err) < 0)
		return -1;
	buf_init(&out, OUTPUT_MAX);
	making_uv(making, &uv, arguments);
	uv.job.forward = false;
	for (size_t i = 0; i < request->extras.count; i++)
		vec_push(arena, &uv.argv,
			arena_printf(arena, "--extra=%s", request->extras.items[i]));
	for (size_t i = 0; i < request->groups.count; i++)
		vec_push(arena, &uv.argv,
			arena_printf(arena, "--group=%s", request->groups.items[i]));
	if (making_run_uv(making, &uv, &out, &needs_build, err) < 0)
		return error_context(err, "uv.lock");
	if (requirements_parse((struct str){ out.data, out.len }, arena, &list, err) < 0) {
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

/* The constraints, and what else chooses between versions. */
int choices_add(struct making *making, struct uv_job *uv, struct error *err)
{
	const requirement_list *list = &making->wanted->constraints;
	struct arena *arena = making->arena;
	auto_buf struct buf text = { 0 };

	if (making->wanted->is_pre) {
		vec_push(arena, &uv->argv, arena_text(arena, "--prerelease"));
		vec_push(arena, &uv->argv, arena_text(arena, "allow"));
	}
	if (list->count == 0)
		return 0;
	buf_init(&text, REQUIREMENTS_MAX);
	for (size_t i = 0; i < list->count; i++)
		buf_printf(&text, "%s\n", list->items[i].text);
	vec_push(arena, &uv->argv, arena_text(arena, "--constraints"));
	vec_push(arena, &uv->argv, arena_text(arena, ENV_INPUT("constraints.txt")));
	return making_put(making, "constraints.txt", (struct str){ text.data, text.len }, err);
}
