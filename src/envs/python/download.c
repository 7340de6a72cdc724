#include "envs/python/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/walk.h"
#include "envs/python/hosts.h"
#include "envs/python/scripts.h"
#include "trees/layers/stage.h"

#define ROOM "pythons"
#define MIRROR "UV_PYTHON_INSTALL_MIRROR"
#define LIST "UV_PYTHON_DOWNLOADS_JSON_URL"
#define FILE_MAX ((size_t)256 << 20) /* of an interpreter */
#define OUTPUT_MAX ((size_t)16 << 20)

struct source {
	const char *mirror, *list; /* NULL: not configured */
};

static const char *configured(const char *value, const char *variable)
{
	const char *set = getenv(variable);
	return value ? value : set && *set ? set : NULL;
}

const char *interpreter_mirror(const struct config *config)
{
	return configured(config->python_mirror, MIRROR);
}

/* The path of a file:// URL, or NULL. */
static const char *local_path(const char *url)
{
	return url && !strncmp(url, "file:///", 8) ? url + 7 : NULL;
}

/* Opens the network to the mirror, the list and the operator's hosts, and to nothing else. */
static int open_network(const struct builder *builder, const struct index_set *indexes,
	const struct source *source, struct arena *arena, struct error *err)
{
	const struct build_network *network = builder->network;
	const text_list *hosts = &builder->store->config.file_hosts;
	const char *urls[] = { source->mirror, source->list };
	struct index_set only = { 0 };
	for (size_t i = 0; i < 2; i++) {
		if (!urls[i] || local_path(urls[i]))
			continue;
		if (only.index)
			vec_push(arena, &only.extra, urls[i]);
		else
			only.index = urls[i];
	}
	if (!only.index && !source->mirror)
		only.index = indexes->index;
	network->close(network->ctx);
	if (!only.index && !hosts->count)
		return 0; /* all of it is on this host */
	if (network->open(network->ctx, &only, err) < 0)
		return -1;
	for (size_t i = 0; i < hosts->count; i++) {
		struct file_host host;
		if (file_host_parse(hosts->items[i], arena, &host, err) < 0 ||
			network->allow(network->ctx, host.host, host.port, true, err) < 0)
			return -1;
	}
	return network->settle(network->ctx, err);
}

/* What a URL names of this host is shown to the job at its own path. */
static int show_local(struct job *job, struct arena *arena, const char *variable, const char *url,
	struct error *err)
{
	const char *path = local_path(url);
	if (path && (!path_is_normal(path) || access(path, R_OK) < 0))
		return fail(err, ERR_NOT_FOUND, "'%s' can't be read", url);
	if (path)
		job_bind(job, arena, path, path);
	if (url)
		job_set_env(job, arena, variable, url);
	return 0;
}

static int run_uv(const struct builder *builder, const struct uv *uv,
	const struct index_set *indexes, const char *version, const char *stage,
	const struct source *source, struct arena *arena, struct error *err)
{
	/* uv writes the path of the installation into the installed files: show the stage at the
	 * final path. */
	char *pythons = arena_printf(arena, "%s/" ROOM, builder->store->home->path);
	const char *const argv[] = { UV_INSIDE, "python", "install", "--no-bin", "--install-dir",
		pythons, arena_printf(arena, "cpython-%s", version), NULL };
	struct job job = { .argv = argv,
		.timeout_ms = builder->store->config.install_timeout_ms,
		.disk_bytes = builder->store->config.max_install_bytes };
	job_bind(&job, arena, uv->path, UV_INSIDE);
	vec_push(arena, &job.binds, (struct job_bind){ stage, pythons, true });
	job_reach_indexes(&job, arena, indexes);
	job.forward = !local_path(source->mirror) || (source->list && !local_path(source->list));
	job_set_env(&job, arena, "UV_NO_CONFIG", "1");
	job_set_env(&job, arena, "UV_CACHE_DIR", "/tmp/uv");
	job_set_env(&job, arena, "UV_PYTHON_DOWNLOADS", "automatic");
	job_set_env(&job, arena, "NO_COLOR", "1");
	if (show_local(&job, arena, MIRROR, source->mirror, err) < 0 ||
		show_local(&job, arena, LIST, source->list, err) < 0)
		return -1;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	return job_run(builder->runner, &job, &out, err);
}

/* A layer has no file with two names: each of them gets a copy. */
static int split_links(int dir, unsigned depth, struct error *err)
{
	auto_walk DIR *walk = walk_open(dir, ".");
	struct stat st;
	if (!walk || depth > PATH_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "a directory of the Python can't be read");
	for (struct dirent *entry; (entry = walk_next(walk));) {
		if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return fail_errno(err, "look at '%s'", entry->d_name);
		if (S_ISDIR(st.st_mode)) {
			auto_close int below = path_open_entry(dir, entry->d_name);
			if (below < 0 || split_links(below, depth + 1, err) < 0)
				return below < 0 ? fail_errno(err, "open '%s'", entry->d_name) : -1;
		}
		if (!S_ISREG(st.st_mode) || st.st_nlink == 1)
			continue;
		auto_arena struct arena arena = { 0 };
		struct str text;
		if (file_read_at(dir, entry->d_name, FILE_MAX, &arena, &text) < 0 ||
			file_replace(dir, entry->d_name, st.st_mode & 0777, text, false) < 0)
			return fail_errno(err, "copy '%s'", entry->d_name);
	}
	return 0;
}

/* pythons/<name> leads to the layer: the name tells its version. */
static int link_layer(int pythons, const char *name, const char *id, struct error *err)
{
	char target[LAYER_ID_LEN + 24], draft[NAME_MAX + 1];
	str_format(target, sizeof target, "../layers/%s/tree", id);
	str_format(draft, sizeof draft, ".%.200s", name);
	if (unlinkat(pythons, draft, 0) < 0 && errno != ENOENT)
		return fail_errno(err, "remove '%s'", draft);
	if (symlinkat(target, pythons, draft) < 0 || renameat(pythons, draft, pythons, name) < 0 ||
		fsync(pythons) < 0)
		return fail_errno(err, "link '%s' to its layer", name);
	return 0;
}

/* Makes a layer of the Python `name` of the stage. */
static int publish(const struct env_store *store, int stage, int pythons, const char *name,
	struct arena *arena, struct error *err)
{
	struct layer_draft draft = { .path = "draft",
		.kind = LAYER_KIND_INTERPRETER,
		.name = "cpython",
		.version = interpreter_version_in(arena, name) };
	auto_close int lock = -1;
	int failed = 0;
	if (!draft.version)
		return fail(err, ERR_FAILED, "uv installed '%s', which has no version", name);
	home_enter(store->home);
	auto_close int tree = path_open_entry(stage, name);
	if (tree < 0 || split_links(tree, 0, err) < 0)
		failed = tree < 0 ? fail_errno(err, "open '%s'", name) : -1;
	if (!failed && (mkdirat(stage, draft.path, 0700) < 0 ||
			       renameat(stage, name, stage, "draft/tree") < 0))
		failed = fail_errno(err, "move '%s'", name);
	home_leave(store->home);
	if (failed || layer_store_lock(&store->layers, false, &lock, err) < 0 ||
		layers_publish(&store->layers, stage, &draft, 1, NULL, NULL, err) < 0)
		return -1;
	fault_point("interpreter_published");
	auto_leave const struct home *home = home_entered(store->home);
	return link_layer(pythons, name, draft.id, err);
}

/* The Python that uv has put into the stage. */
static const char *find_installed(int stage, struct arena *arena)
{
	auto_walk DIR *dir = walk_open(stage, ".");
	struct stat stat;
	for (struct dirent *entry; (entry = walk_next(dir));)
		if (strncmp(entry->d_name, "cpython-", 8) == 0 &&
			fstatat(stage, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISDIR(stat.st_mode))
			return arena_text(arena, entry->d_name);
	return NULL;
}

static int download(const struct builder *builder, const struct uv *uv,
	const struct index_set *indexes, const char *version, const struct source *source,
	struct arena *arena, struct error *err)
{
	const struct env_store *store = builder->store;
	struct layer_stage stage = LAYER_STAGE_NONE;
	auto_close int pythons = -1;
	int result = -1;
	if (home_open_directory(store->home, ROOM, &pythons, err) < 0 ||
		layer_stage_make(&store->layers, arena, &stage, err) < 0)
		return -1;
	if (open_network(builder, indexes, source, arena, err) == 0)
		result = run_uv(builder, uv, indexes, version, stage.path, source, arena, err);
	builder->network->close(builder->network->ctx);
	if (result == 0) {
		home_enter(store->home);
		const char *name = find_installed(stage.fd, arena);
		home_leave(store->home);
		result = name ? publish(store, stage.fd, pythons, name, arena, err)
			      : fail(err, ERR_FAILED, "uv installed nothing");
	}
	layer_stage_done(&store->layers, &stage, NULL);
	return result;
}

int interpreter_install(const struct builder *builder, const struct uv *uv,
	const struct index_set *indexes, const char *version, struct arena *arena,
	struct error *err)
{
	const struct config *config = &builder->store->config;
	struct source source = { interpreter_mirror(config),
		configured(config->python_downloads, LIST) };
	const char *number = strncmp(version, "python", 6) == 0 ? version + 6 : version;
	struct error why = { 0 };
	if (!source.mirror && config->file_hosts.count == 0)
		fail(&why, ERR_DENIED,
			"neither python_mirror of config.yaml nor " MIRROR " says from where");
	else if (download(builder, uv, indexes, number, &source, arena, &why) == 0)
		return 0;
	interpreter_absent(builder->store->home, number, arena, err);
	if (err)
		str_format(err->text, sizeof err->text,
			"no Python %.32s on this host, and it can't be downloaded: %.300s", number,
			strncmp(why.text, "cause: ", 7) == 0 ? why.text + 7 : why.text);
	return -1;
}
