#include "launch/trees/tree_job.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "linux/child.h"
#include "model/settings/role_settings.h"
#include "sandbox/plan/launch.h"

#define OPTIONS_MAX ((size_t)4 << 20)
#define ANSWER_MAX ((size_t)16 << 20)
#define DATA_MAX ((uint64_t)2 << 30)
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *const shown[] = { "layers", "workspaces", "blobs" };
#define SHOWN (sizeof shown / sizeof *shown)

const struct tree_verb tree_verbs[] = {
	{ "copy", tree_copy, false },
	{ "merge", tree_merge, false },
	{ "diff", tree_diff, true },
	{ "hash", tree_hash, false },
	{ "verify", tree_verify, false },
	{ "measure", tree_measure_layers, false },
	{ "sweep", tree_sweep, false },
	{ "pack", tree_pack_layer, false },
	{ "unpack", tree_unpack_layer, false },
	{ "archive", tree_archive, true },
	{ "settle", tree_settle, true },
	{ "usage", tree_usage, true },
	{ NULL, NULL, false },
};

/* ---- for verbs ---- */

int tree_take_name(struct tree_job *job, const char **name, struct error *err)
{
	if (job->at >= job->count || !job->names[job->at][0])
		return fail(err, ERR_INVALID, "a name is missing");
	*name = job->names[job->at++];
	return 0;
}

text_list tree_take_list(struct tree_job *job)
{
	text_list list = { 0 };
	while (job->at < job->count && job->names[job->at][0])
		vec_push(job->arena, &list, job->names[job->at++]);
	if (job->at < job->count)
		job->at++;
	return list;
}

void tree_take_packages(struct tree_job *job, text_list packages[WORKSPACE_PARTS])
{
	for (size_t i = 0; i < WORKSPACE_PARTS; i++)
		if (workspace_parts[i].has_packages)
			packages[i] = tree_take_list(job);
}

int tree_open_part(
	const struct tree_job *job, const char *name, const char *part, int *fd, struct error *err)
{
	auto_close int layer = fd_open_directory(job->layers, name);
	if (layer < 0)
		return fail_errno(err, "open layer '%s'", name);
	int opened = fd_open_directory(layer, part);
	if (opened < 0 && errno != ENOENT)
		return fail_errno(err, "open '%s' of layer '%s'", part, name);
	*fd = opened;
	return 0;
}

int tree_open_upper(int workspace, size_t part, int *fd, struct error *err)
{
	const char *upper = workspace_parts[part].upper;
	*fd = path_open_nolinks(workspace, upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return *fd < 0 && errno != ENOENT ? fail_errno(err, "open '%s' of the workspace", upper)
					  : 0;
}

void tree_fds_done(tree_fds *fds)
{
	while (fds->count)
		fd_close(&fds->items[--fds->count]);
}

int tree_add_parts(const struct tree_job *job, const text_list *layers, const char *part,
	tree_fds *fds, struct error *err)
{
	for (size_t i = 0; i < layers->count; i++) {
		vec_push(job->arena, fds, -1);
		if (tree_open_part(job, layers->items[i], part, &fds->items[fds->count - 1], err))
			return -1;
	}
	return 0;
}

static void stage_name(const char *name, char out[LAUNCH_TREE_NAME_MAX + 16])
{
	str_format(out, LAUNCH_TREE_NAME_MAX + 16, TREE_STAGE_PREFIX "%s", name);
}

int tree_stage_open(const struct tree_job *job, const char *name, int *fd, struct error *err)
{
	char stage[LAUNCH_TREE_NAME_MAX + 16];
	stage_name(name, stage);
	if (path_remove_tree(job->layers, stage, err))
		return -1;
	if (mkdirat(job->layers, stage, 0700))
		return fail_errno(err, "make layer '%s'", name);
	*fd = fd_open_directory(job->layers, stage);
	return *fd < 0 ? fail_errno(err, "open layer '%s'", name) : 0;
}

int tree_stage_publish(const struct tree_job *job, const char *name, struct error *err)
{
	char stage[LAUNCH_TREE_NAME_MAX + 16];
	stage_name(name, stage);
	fault_point("tree_before_sync");
	if (fault_fails("tree_sync") || syncfs(job->layers))
		return fail_errno(err, "write layer '%s' to disk", name);
	fault_point("tree_before_rename");
	if (syscall(SYS_renameat2, job->layers, stage, job->layers, name, 1 /* NOREPLACE */))
		return fail_errno(err, "name layer '%s'", name);
	fault_point("tree_after_rename");
	return fsync(job->layers) ? fail_errno(err, "write layer '%s' to disk", name) : 0;
}

void tree_stage_remove(const struct tree_job *job, const char *name)
{
	char stage[LAUNCH_TREE_NAME_MAX + 16];
	struct error ignored;
	stage_name(name, stage);
	path_remove_tree(job->layers, stage, &ignored);
}

/* ---- the process ---- */

void tree_describe(struct arena *arena, const struct home *home, const char *const *strings,
	size_t count, struct role_start *start)
{
	struct role_path *root = arena_array(arena, SHOWN, sizeof *root);
	char **argv = arena_array(arena, count + 2, sizeof *argv);
	const char *fault = getenv("CARREL_FAULT");
	const struct role_settings settings = { .home = home->path };
	char **env = arena_array(arena, 2, sizeof *env);
	for (size_t i = 0; i < SHOWN; i++)
		root[i] = (struct role_path){ arena_printf(arena, "%s/%s", home->path, shown[i]),
			ROLE_READ | ROLE_WRITE };
	argv[0] = arena_text(arena, TREE_ARGV0);
	for (size_t i = 0; i < count; i++)
		argv[i + 1] = arena_text(arena, strings[i]);
	env[0] = fault ? arena_printf(arena, "CARREL_FAULT=%s", fault) : NULL;
	start->settings = role_settings_print(&settings, arena);
	start->root = root;
	start->root_count = SHOWN;
	start->argv = argv;
	start->env = env;
}

static int open_home(const char *home, int dirs[SHOWN], struct error *err)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < SHOWN; i++) {
		str_format(path, sizeof path, "%s/%s", home, shown[i]);
		dirs[i] = open(path, DIRECTORY);
		if (dirs[i] < 0 && (errno != ENOENT || i == 0))
			return fail_errno(err, "open '%s'", path);
	}
	return 0;
}

static int confine(const char *home, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct role_path paths[SHOWN];
	for (size_t i = 0; i < SHOWN; i++)
		paths[i] = (struct role_path){ arena_printf(&arena, "%s/%s", home, shown[i]),
			ROLE_WRITE };
	const struct role_lock lock = { .paths = paths, .path_count = SHOWN, .owns_trees = true };
	role_raise_fds();
	umask(077);
	if (child_limit_data(DATA_MAX, err))
		return -1;
	return role_lock(&lock, err);
}

static int read_options(struct tree_job *job, struct json_value **options, struct error *err)
{
	struct str text;
	if (file_read(job->input, OPTIONS_MAX, job->arena, &text)) {
		if (errno == EINVAL) /* /dev/null: none */
			return 0;
		return fail_errno(err, "read the options");
	}
	if (!text.len)
		return 0;
	return json_read(text, job->arena, options, err);
}

static int tree_job_run(struct tree_job *job, const char *name, struct error *err)
{
	const struct tree_verb *verb = tree_verbs;
	struct json_value *options = NULL;
	while (verb->name && strcmp(verb->name, name))
		verb++;
	if (!verb->name)
		return fail(err, ERR_INVALID, "unknown verb '%s'", name);
	if (verb->has_options && read_options(job, &options, err))
		return -1;
	job->options = options;
	for (size_t i = 0; i < job->count; i++)
		if (job->names[i][0] && !launch_tree_name_is_valid(job->names[i]))
			return fail(err, ERR_INVALID, "invalid name '%s'", job->names[i]);
	return verb->fn(job, err);
}

static void print_error(struct buf *out, const struct error *err)
{
	struct json j = json_to(out, false);
	buf_clear(out);
	json_object(&j, NULL);
	json_object(&j, "error");
	json_text(&j, "code", error_code_name(err->code));
	json_text(&j, "message", err->text);
	json_text(&j, "hint", err->hint[0] ? err->hint : NULL);
	json_end(&j);
	json_end(&j);
}

int tree_main(int argc, char **argv)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out = buf_empty(ANSWER_MAX);
	struct json answer = json_to(&out, false);
	struct error err;
	struct role_settings settings;
	int dirs[SHOWN];
	struct tree_job job = { .input = TREE_FD_INPUT,
		.output = TREE_FD_OUTPUT,
		.names = (const char *const *)argv + 2,
		.count = argc > 2 ? (size_t)argc - 2 : 0,
		.arena = &arena,
		.answer = &answer };
	if (argc < 2)
		return 125;
	json_object(&answer, NULL);
	int failed = role_settings_read(STDIN_FILENO, &arena, &settings, &err) ||
		     open_home(settings.home, dirs, &err) || confine(settings.home, &err);
	if (!failed) {
		job.layers = dirs[0];
		job.workspaces = dirs[1];
		job.blobs = dirs[2];
		failed = tree_job_run(&job, argv[1], &err);
	}
	if (!failed) {
		json_end(&answer);
		if (out.overflow)
			failed = fail(&err, ERR_LIMIT, "the answer is too long");
	}
	if (failed)
		print_error(&out, &err);
	if (fd_write_full(TREE_FD_ANSWER, out.data, out.len) != (ssize_t)out.len)
		return 125;
	return failed ? 1 : 0;
}
