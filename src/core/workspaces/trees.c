/* trees.c -- workspaces/<id>: made, and taken away.
 *	upper/, work/		on top of the layers of /workspace; work/ is overlay's own
 *	cache/			what it sees as /.cache: in the disk limit, not part of its state
 *	<part>/{upper,work}	on top of an environment (model/nouns/part.h): env/, node/
 *	.in/			notes of archives on their way in (core/files/files_write.c)
 *	.del-<id>		removed, but not yet gone, where it can't be renamed out of here
 * and workspaces/.del-<id>: removed, but not yet gone (with an unused id when the tree was
 *incomplete); workspaces/.lost-<id>: no row in the database. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "core/tree_jobs.h"
#include "core/workspaces/internal.h"
#include "model/nouns/part.h"
#include "model/nouns/template.h"

#define CLEAN_AFTER_MS 250 /* several that go together are one child's work */
#define CLEAN_AGAIN_MS 60000
#define LOW_BYTES                                                                                  \
	(64 << 20) /* below this much free space, a removal is answered after the space is free */
#define LOW_FILES 4096

static int write_file(int dir, const char *name, struct str text, bool is_synced, struct error *err)
{
	auto_close int fd = openat(dir, name,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_full(fd, text.data, text.len) != (ssize_t)text.len ||
		(is_synced && fsync(fd)))
		return fail_errno(err, "write '%s'", name);
	return 0;
}

/* Written beside its place and renamed: whatever the sandbox put there is replaced, never followed.
 */
int tree_write_context(struct core_workspace *w, struct error *err)
{
	char path[64];
	auto_buf struct buf text = buf_empty(65536);
	workspace_print_context(&w->model, &text);
	str_format(path, sizeof path, "%s", w->model.id);
	auto_close int dir =
		path_open_nolinks(w->core->workspaces, path, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return fail_errno(err, "open the tree of workspace '%s'", w->model.name);
	if (write_file(dir, ".context.json", (struct str){ text.data, text.len }, false, err))
		return -1;
	if (!renameat(dir, ".context.json", dir, "upper/.context.json"))
		return 0;
	fail_errno(err, "put '.context.json' into workspace '%s'", w->model.name);
	unlinkat(dir, ".context.json", 0);
	return -1;
}

int tree_write_files(int upper, const pair_list *files, bool is_synced, struct error *err)
{
	for (size_t i = 0; i < files->count; i++) {
		const char *path = files->items[i].key, *name = path_basename(path);
		char parent[1024];
		auto_close int dir = -1;
		str_format(parent, sizeof parent, "%.*s", (int)(name - path), path);
		if (name > path) {
			parent[name - path - 1] = '\0';
			if (path_make_directories(upper, parent, 0755, &dir, err))
				return -1;
		}
		if (write_file(dir >= 0 ? dir : upper, name, str_from(files->items[i].value),
			    is_synced, err))
			return -1;
	}
	return 0;
}

static bool has_python(const struct core_workspace *w)
{
	return part_is_used(w, &workspace_parts[PART_PYTHON]);
}

static int make_layout(int dir, const struct core_workspace *w, struct error *err)
{
	static const char *const context[] = { "scripts", "data", "repos", "output" };
	auto_close int upper = openat(dir, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (upper < 0)
		return fail_errno(err, "open 'upper'");
	for (size_t i = 0; w->model.is_context && i < sizeof context / sizeof *context; i++)
		if (mkdirat(upper, context[i], 0755))
			return fail_errno(err, "make '%s'", context[i]);
	if (has_python(w) && symlinkat("/env", upper, ".venv"))
		return fail_errno(err, "make '.venv'");
	if ((!w->model.layers.count && tree_write_project(w, upper, false, err)) ||
		tree_write_files(upper, &w->files, false, err) || grants_make_links(w, upper, err))
		return -1;
	if (w->model.layers.count) /* have it */
		return 0;
	auto_close int mark = openat(upper, TEMPLATE_MARKER, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (mark < 0)
		return fail_errno(err, "make '" TEMPLATE_MARKER "'");
	return 0;
}

/* What is changed in its environments; one that a workspace got later has no directory yet. */
static int make_uppers(const struct core_workspace *w, int dir, struct error *err)
{
	for (size_t i = 0; i < WORKSPACE_PARTS; i++) {
		const struct workspace_part *part = &workspace_parts[i];
		const char *const names[] = { part->directory, part->upper, part->work };
		bool is_due = part->has_packages && part_is_used(w, part);
		for (size_t k = 0; is_due && k < sizeof names / sizeof *names; k++)
			if (mkdirat(dir, names[k], 0755) && errno != EEXIST)
				return fail_errno(err, "make '%s' of workspace '%s'", names[k],
					w->model.name);
	}
	return 0;
}

static int make_directories(int dir, const struct core_workspace *w, struct error *err)
{
	const struct workspace_part *part = &workspace_parts[PART_WORKSPACE];
	if (mkdirat(dir, part->upper, 0755))
		return fail_errno(err, "make '%s'", part->upper);
	if (mkdirat(dir, part->work, 0755))
		return fail_errno(err, "make '%s'", part->work);
	if (make_uppers(w, dir, err))
		return -1;
	return w->has_state ? 0 : make_layout(dir, w, err);
}

int tree_make(struct core_workspace *w, bool is_there, struct error *err)
{
	int workspaces = w->core->workspaces;
	char gone[8 + ID_LEN];
	/* A key that is used again makes a workspace of the same id. */
	str_format(gone, sizeof gone, ".del-%s", w->model.id);
	if (tree_discard(w->core, gone, err))
		return -1;
	if (!is_there && mkdirat(workspaces, w->model.id, 0700))
		return fail_errno(err, "make the tree of workspace '%s'", w->model.name);
	if (!is_there)
		w->model.disk_mechanism = "counted";
	fault_point("core_tree");
	auto_close int dir =
		openat(workspaces, w->model.id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open the tree of workspace '%s'", w->model.name);
	if (make_directories(dir, w, err) || (w->has_state && freeze_dress(w, err)) ||
		(w->model.is_context && tree_write_context(w, err)))
		return error_context(err, "workspace '%s'", w->model.name);
	/* Not synced: an empty tree that a power cut takes is made again (core/reconcile.c). */
	fault_point("core_tree_made");
	return 0;
}

int tree_make_cache(struct core_workspace *w, struct error *err)
{
	char path[ID_LEN + 16];
	str_format(path, sizeof path, "%s/cache", w->model.id);
	if (mkdirat(w->core->workspaces, path, 0700) && errno != EEXIST)
		return fail_errno(err, "make the cache of workspace '%s'", w->model.name);
	if (!environments_are_pinned(w))
		return 0;
	/* It may have got an environment since its tree was made. */
	auto_close int dir = openat(
		w->core->workspaces, w->model.id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open the tree of workspace '%s'", w->model.name);
	/* Frozen layers below may have a .venv of their own. */
	bool is_first =
		has_python(w) && !w->model.layers.count &&
		faccessat(dir, workspace_parts[PART_PYTHON].directory, F_OK, AT_SYMLINK_NOFOLLOW);
	if (is_first && symlinkat("/env", dir, "upper/.venv") && errno != EEXIST)
		return fail_errno(err, "make '.venv' in workspace '%s'", w->model.name);
	return make_uppers(w, dir, err);
}

/* Whether /workspace shows `name`, by the topmost tree that has it. What can't be looked at counts
 * as shown. */
static bool is_shown(const struct core_workspace *w, int upper, const char *name)
{
	const text_list *layers = &w->model.layers;
	struct stat st;
	int failed = fstatat(upper, name, &st, AT_SYMLINK_NOFOLLOW);
	for (size_t i = 0; failed && errno == ENOENT && i < layers->count; i++) {
		char path[LAUNCH_FROZEN_LEN + 64];
		str_format(path, sizeof path, "%s/workspace/%s", layers->items[i], name);
		failed = fstatat(w->core->envs.layers.dir, path, &st, AT_SYMLINK_NOFOLLOW);
	}
	if (failed)
		return errno != ENOENT;
	return !(S_ISCHR(st.st_mode) && st.st_rdev == 0); /* of an overlay: it was removed */
}

static int make_mark(int upper)
{
	auto_close int mark = openat(
		upper, TEMPLATE_MARKER, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	return mark < 0 ? -1 : 0;
}

unsigned tree_restore_marks(const struct core_workspace *w)
{
	char path[ID_LEN + 16];
	unsigned done = 0;
	if (w->model.dir)
		return 0;
	str_format(path, sizeof path, "%s/upper", w->model.id);
	auto_close int upper =
		openat(w->core->workspaces, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (upper < 0)
		return 0;
	if (!is_shown(w, upper, TEMPLATE_MARKER)) {
		unlinkat(upper, TEMPLATE_MARKER, 0);
		done |= make_mark(upper) ? 0 : TREE_MADE_MARK;
	}
	if (has_python(w) && !is_shown(w, upper, ".venv")) {
		unlinkat(upper, ".venv", 0);
		done |= symlinkat("/env", upper, ".venv") ? 0 : TREE_MADE_VENV;
	}
	return done;
}

bool tree_is_overlay(const struct core_workspace *w)
{
	char path[ID_LEN + 16];
	struct stat st;
	str_format(path, sizeof path, "%s/work", w->model.id);
	return !fstatat(w->core->workspaces, path, &st, AT_SYMLINK_NOFOLLOW);
}

static int put_away(struct core *core, const char *id, const char *as, struct error *err)
{
	char gone[8 + ID_LEN];
	str_format(gone, sizeof gone, ".del-%s", as);
	if (renameat(core->workspaces, id, core->workspaces, gone)) {
		if (errno == ENOENT)
			return 0;
		return fail_errno(err, "remove the tree of '%s'", id);
	}
	trees_clean_later(core);
	return 0;
}

int tree_remove(struct core *core, const char *id, struct error *err)
{
	return put_away(core, id, id, err);
}

int tree_discard(struct core *core, const char *id, struct error *err)
{
	char nobody[ID_LEN + 1];
	id_make(nobody);
	return put_away(core, id, nobody, err);
}

/* Of one whose row is still there, the directory stays: after a crash it says that the removal was
 * begun. */
static int empty(int workspaces, const char *name, struct error *err)
{
	auto_walk DIR *dir = walk_open(workspaces, name);
	struct dirent *entry;
	int failed = 0;
	while ((entry = walk_next(dir)))
		if (path_remove_tree(dirfd(dir), entry->d_name, err))
			failed = -1;
	return failed;
}

static bool is_rubbish(const char *name)
{
	return !strncmp(name, ".del-", 5);
}

/* Of one workspace that stays. */
static uint64_t clean_inside(int workspaces, const char *id)
{
	auto_walk DIR *dir = walk_open(workspaces, id);
	struct dirent *entry;
	struct error err;
	uint64_t failed = 0;
	while ((entry = walk_next(dir)))
		if (is_rubbish(entry->d_name))
			failed += path_remove_tree(dirfd(dir), entry->d_name, &err) != 0;
	return failed;
}

/* In a child, for as long as it takes. Returns how many could not be removed. */
static uint64_t clean(void *ctx)
{
	struct core *core = ctx;
	uint64_t failed = 0;
	auto_walk DIR *dir = walk_open(core->workspaces, ".");
	struct dirent *entry;
	struct error err;
	while ((entry = walk_next(dir))) {
		if (!is_rubbish(entry->d_name)) {
			if (core->has_rubbish_inside && id_is_valid(entry->d_name))
				failed += clean_inside(core->workspaces, entry->d_name);
			continue;
		}
		bool has_row = map_get(&core->ids, str_from(entry->d_name + 5));
		if (has_row ? empty(core->workspaces, entry->d_name, &err)
			    : path_remove_tree(core->workspaces, entry->d_name, &err))
			failed++;
	}
	return failed;
}

static void clean_after(struct core *core, uint64_t delay_ms);

static void on_cleaned(void *ctx, bool ok, uint64_t failed)
{
	struct core *core = ctx;
	if (!ok || failed)
		log_record(&core->log, LOG_LEVEL_WARN,
			"files of removed workspaces could not be deleted; trying again later",
			NULL);
	if (core->upkeep->has_rubbish) {
		clean_after(core, core->upkeep->clean_waiters ? 0 : CLEAN_AFTER_MS);
		return;
	}
	if (!ok || failed)
		clean_after(core, CLEAN_AGAIN_MS);
	waiters_call(&core->upkeep->clean_waiters, NULL, NULL);
}

void core_start_child(struct core *core, struct measure *child, uint64_t (*find)(void *ctx),
	void (*found)(void *ctx, bool ok, uint64_t value), int dir, int fd)
{
	*child = (struct measure){ .loop = core->loop,
		.find = find,
		.found = found,
		.ctx = core,
		.keep = { dir, fd },
		.keep_count = 2 };
	measure_start(child);
}

static void on_clean(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	core->upkeep->cleaning = NULL;
	if (core->upkeep->cleaner.is_running)
		return; /* on_cleaned comes back to it */
	core->upkeep->has_rubbish = false;
	core_start_child(core, &core->upkeep->cleaner, clean, on_cleaned, core->workspaces, -1);
}

static void clean_after(struct core *core, uint64_t delay_ms)
{
	loop_cancel(core->loop, core->upkeep->cleaning);
	core->upkeep->cleaning = loop_after(core->loop, delay_ms, on_clean, core);
}

void trees_clean_later(struct core *core)
{
	bool is_due = core->upkeep->has_rubbish && core->upkeep->cleaning;
	core->upkeep->has_rubbish = true;
	if (!is_due && !core->upkeep->cleaner.is_running)
		clean_after(core, CLEAN_AFTER_MS);
}

bool trees_room_is_low(const struct core *core)
{
	struct statvfs fs;
	return !fstatvfs(core->workspaces, &fs) &&
	       (fs.f_bavail * fs.f_frsize < LOW_BYTES || (fs.f_files && fs.f_favail < LOW_FILES));
}

void trees_when_clean(struct core_workspace *w, core_workspace_fn *fn)
{
	struct core *core = w->core;
	if (!trees_room_is_low(core)) {
		trees_clean_later(core);
		fn(NULL, w, NULL);
		return;
	}
	waiter_append(&core->upkeep->clean_waiters, waiter_new(fn, NULL, w, NULL));
	core->upkeep->has_rubbish = true;
	if (!core->upkeep->cleaner.is_running)
		clean_after(core, 0);
}

/* A quota of the file system charges what it charges; where the limit is counted, every inode
 * counts at least a block. */
static int measure_part(const struct core_workspace *w, int dir, uint64_t *bytes, struct error *err)
{
	uint64_t inodes;
	return workspace_counts_disk(&w->model) ? path_charge_tree(dir, bytes, err)
						: path_measure_tree(dir, bytes, &inodes, err);
}

/* The uppers of its parts, then what else is in its disk limit; NULL: that is all. */
static const char *measured_path(size_t i)
{
	static const char *const others[] = { ".in", "cache", NULL };
	return i < WORKSPACE_PARTS ? workspace_parts[i].upper : others[i - WORKSPACE_PARTS];
}

static int measure_parts(const struct core_workspace *w, uint64_t *bytes, struct error *err)
{
	uint64_t sum = 0, part;
	const char *name;
	for (size_t i = 0; (name = measured_path(i)); i++) {
		char path[ID_LEN + 32];
		str_format(path, sizeof path, "%s/%s", w->model.id, name);
		auto_close int dir =
			path_open_nolinks(w->core->workspaces, path, O_RDONLY | O_DIRECTORY, 0);
		if (dir < 0 && errno == ENOENT && i != PART_WORKSPACE)
			continue;
		if (dir < 0)
			return fail_errno(err, "open '%s'", path);
		if (measure_part(w, dir, &part, err))
			return -1;
		sum += part;
	}
	*bytes = sum;
	return 0;
}

uint64_t tree_measure(const struct core_workspace *w)
{
	struct error err;
	uint64_t bytes;
	if (!measure_parts(w, &bytes, &err))
		return bytes;
	return err.sys_errno == EACCES ? TREE_CLOSED : TREE_ENDLESS;
}

struct closed_measure {
	struct core_workspace *w;
	tree_measured_fn *fn; /* NULL: forgotten */
	void *ctx;
};

static void on_closed_measured(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct closed_measure *measure = ctx;
	struct core_workspace *w = measure->w;
	uint64_t bytes = TREE_ENDLESS;
	/* Without an answer nothing is known; an error is about the tree. */
	bool ok = !err || (err->code != ERR_CANCELED && err->code != ERR_UNAVAILABLE);
	if (!err && !json_member_u64(answer, "bytes", &bytes))
		ok = false;
	if (measure->fn)
		measure->fn(measure->ctx, ok, bytes);
	free(measure);
	core_release(w);
}

struct closed_measure *tree_measure_closed(
	struct core_workspace *w, tree_measured_fn *fn, void *ctx)
{
	struct closed_measure *measure = xzalloc(sizeof *measure);
	auto_buf struct buf options = buf_empty(1024);
	struct json j = json_to(&options, false);
	const char *const names[] = { w->model.id };
	*measure = (struct closed_measure){ w, fn, ctx };
	json_object(&j, NULL);
	json_bool(&j, "charged", workspace_counts_disk(&w->model));
	json_array(&j, "parts");
	for (size_t i = 0; measured_path(i); i++)
		json_text(&j, NULL, measured_path(i));
	json_end(&j);
	json_end(&j);
	const struct tree_job_order order = { .verb = "usage",
		.names = names,
		.name_count = 1,
		.options = { options.data, options.len },
		.input = -1,
		.output = -1 };
	core_hold(w);
	tree_job_start(w->core, &order, on_closed_measured, measure);
	return measure;
}

void tree_measure_forget(struct closed_measure *measure)
{
	if (measure)
		measure->fn = NULL;
}
