/* --torch-backend: the hosts of PyTorch's packages. uv has their addresses in itself; what it asks
 * for when it is to install torch alone, and is refused, are they. uv is the pinned one, and it is
 * asked before anything of the index takes part. */
#include <string.h>

#include "envs/build_parts.h"
#include "envs/hosts.h"
#include "envs/scripts.h"
#include "envs/uv_run.h"

#define HOSTS_MAX 3 /* the index, and where its files are */
#define OUTPUT_MAX ((size_t)1 << 20)

void making_refused(const struct making *making, char out[320])
{
	const struct build_network *network = making->builder->network;

	network->refused(network->ctx, out);
	if (making->torch_host && strcmp(out, making->torch_host) == 0)
		out[0] = '\0';
}

/* What it says doesn't matter: either it works, or a host was refused. */
static int ask(struct making *making, struct error *err)
{
	static const char *const arguments[] = { "pip", "install", "--dry-run", "--no-deps",
		"--no-build", "--target", "/tmp/target", NULL };
	auto_buf struct buf out = { 0 }, errors = { 0 };
	struct arena *arena = making->arena;
	struct job_result result = { 0 };
	struct uv_job uv;

	buf_init(&out, OUTPUT_MAX);
	buf_init(&errors, OUTPUT_MAX);
	making_uv(making, &uv, arguments);
	vec_push(arena, &uv.argv, arena_text(arena, "--python"));
	vec_push(arena, &uv.argv, arena_text(arena, making->wanted->python.path));
	vec_push(arena, &uv.argv, arena_text(arena, "torch"));
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
	for (int i = 0; i < HOSTS_MAX; i++) {
		char refused[320] = "";
		struct file_host host;

		if (ask(making, err) < 0)
			return build_failed_as(making->problem, err);
		making_refused(making, refused);
		if (refused[0] == '\0')
			return 0;
		buf_printf(&making->log, "packages of --torch-backend come from %s\n", refused);
		making->torch_host = arena_text(making->arena, refused);
		if (file_host_parse(refused, making->arena, &host, err) < 0 ||
			network->allow(network->ctx, host.host, host.port, false, err) < 0)
			return build_failed_as(making->problem, err);
	}
	return 0;
}
