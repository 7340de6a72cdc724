/* freeze.c -- layers/snap-<id>: uppers of workspaces, frozen by renaming them.
 *	<name of a part>/	what its upper held (model/nouns/part.h); one that was empty is
 *absent .from			link to the id of the workspace, until the row names the layer A
 *crash before that leaves a layer without a row: the uppers go back to where they were. Where a
 * rename can't reach layers, the layer is a copy, and the uppers are upper.old until the row names
 * it.
 *	workspaces/<id>/.dress	a rollback changes the roots of empty uppers: until its row is
 *				written, they may be those of another state */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "core/state/internal.h"
#include "core/state/template_builds.h"
#include "core/tree_jobs.h"
#include "model/nouns/part.h"
#include "trees/layers/damage.h"

#define FROM ".from"
#define DRESS ".dress"
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define ATTRIBUTES_MAX 65536
#define MARK_PREFIX "user.overlay."
#define ESCAPED_PREFIX "user.overlay.overlay." /* set by a command: an attribute like others */

static int layers_dir(const struct core *core)
{
	return core->envs.layers.dir;
}

/* Files move to or from layers, which counters of the file system don't show. */
static void forget_size(const struct core *core, const char *id)
{
	struct core_workspace *w = map_get(&core->ids, str_from(id));
	if (w) {
		w->measured.counters = (struct pace_counters){ 0 };
		w->measured.moves++;
	}
}

static int open_workspace(const struct core *core, const char *id, struct error *err)
{
	forget_size(core, id);
	int fd = openat(core->workspaces, id, DIRECTORY);
	if (fd < 0)
		fail_errno(err, "open the tree of workspace '%s'", id);
	return fd;
}

void layer_discard(struct core *core, const char *name)
{
	char gone[8 + ID_LEN], nobody[ID_LEN + 1];
	id_make(nobody);
	str_format(gone, sizeof gone, ".del-%s", nobody);
	if (renameat(layers_dir(core), name, core->workspaces, gone))
		return;
	if (damage_is_any(layers_dir(core)))
		damage_clear(layers_dir(core), name);
	trees_clean_later(core);
}

const char *layer_problem(const struct core *core, const char *name)
{
	struct stat st;
	if (fstatat(layers_dir(core), name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode))
		return "missing";
	return damage_is_any(layers_dir(core)) && damage_is_marked(layers_dir(core), name)
		       ? "damaged"
		       : NULL;
}

const struct core_workspace *layer_user(const struct core_workspace *w, const char *layer)
{
	for (const struct core_workspace *other = w->core->newest; other; other = other->older)
		for (size_t i = 0; i < other->model.layers.count; i++)
			if (other != w && other->sandbox.state != SANDBOX_NONE &&
				!strcmp(other->model.layers.items[i], layer))
				return other;
	return NULL;
}

int layer_replace(
	const struct core_workspace *w, const char *stage, const char *layer, struct error *err)
{
	struct core *core = w->core;
	int layers = layers_dir(core);
	const struct core_workspace *user = layer_user(w, layer);
	if (user)
		return fail(err, ERR_CONFLICT, "the sandbox of workspace '%s' runs on it",
			user->model.name);
	fault_point("core_layer_replace");
	if (renameat(layers, stage, layers, layer)) {
		if ((errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) ||
			renameat2(layers, stage, layers, layer, RENAME_EXCHANGE))
			return fail_errno(err, "publish layer '%s'", layer);
		layer_discard(core, stage);
	}
	if (damage_is_any(layers))
		damage_clear(layers, layer);
	return fsync(layers) ? fail_errno(err, "publish layer '%s'", layer) : 0;
}

int layers_check_whole(const struct core_workspace *w, struct error *err)
{
	const text_list *layers = &w->model.layers;
	for (size_t i = 0; i < layers->count; i++) {
		const char *problem = layer_problem(w->core, layers->items[i]);
		if (problem) {
			fail(err, ERR_CORRUPT, "layer '%s' of workspace '%s' is %s",
				layers->items[i], w->model.name, problem);
			return error_hint(err, REPAIR_HINT, w->model.name);
		}
	}
	return 0;
}

/* ---- the root directory of an upper ---- */

/* A command may have removed permissions: the owner restores them for the moment. */
static int open_root(int dir, const char *name, struct stat *st)
{
	if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW))
		return -1;
	if ((st->st_mode & 0700) != 0700 && S_ISDIR(st->st_mode) &&
		fchmodat(dir, name, (st->st_mode & 07777) | 0700, 0))
		return -1;
	return path_open_nolinks(dir, name, O_RDONLY | O_DIRECTORY, 0);
}

static int copy_attributes(int from, int to, struct error *err)
{
	static char names[ATTRIBUTES_MAX], value[ATTRIBUTES_MAX];
	ssize_t len = flistxattr(from, names, sizeof names);
	if (len < 0)
		return errno == ENOTSUP ? 0 : fail_errno(err, "list attributes");
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
		const char *name = names + at;
		bool is_mark = !strncmp(name, MARK_PREFIX, strlen(MARK_PREFIX)) &&
			       strncmp(name, ESCAPED_PREFIX, strlen(ESCAPED_PREFIX)) != 0;
		if (strncmp(name, "user.", 5) || is_mark)
			continue;
		ssize_t size = fgetxattr(from, name, value, sizeof value);
		if (size < 0 || fsetxattr(to, name, value, (size_t)size, 0))
			return fail_errno(err, "copy attribute '%s'", name);
	}
	return 0;
}

/* Makes `fresh`, a directory like `from`, which is open, but empty; without setgid, which a role
 * may not set. */
static int make_alike(
	int dir, const char *fresh, int from, const struct stat *st, struct error *err)
{
	const struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, st->st_mtim };
	unlinkat(dir, fresh, AT_REMOVEDIR);
	if (mkdirat(dir, fresh, 0700))
		return fail_errno(err, "make '%s'", fresh);
	auto_close int to = openat(dir, fresh, DIRECTORY);
	if (to < 0 || copy_attributes(from, to, err))
		return to < 0 ? fail_errno(err, "open '%s'", fresh) : -1;
	if (fchmod(to, st->st_mode & 01777) || futimens(to, times))
		return fail_errno(err, "change '%s'", fresh);
	return 0;
}

/* ---- frozen ---- */

static bool is_empty(int fd)
{
	auto_walk DIR *walk = walk_open(fd, ".");
	return walk && !walk_next(walk);
}

/* Renames `name` of a workspace for the child that removes trees; a quota by subvolume keeps it in
 * the workspace. errno as of renameat. */
static int put_away(struct core *core, int workspace, const char *name)
{
	char gone[8 + ID_LEN], nobody[ID_LEN + 1];
	id_make(nobody);
	str_format(gone, sizeof gone, ".del-%s", nobody);
	if (renameat(workspace, name, core->workspaces, gone)) {
		if (errno != EXDEV || renameat(workspace, name, workspace, gone))
			return -1;
		core->has_rubbish_inside = true;
	}
	trees_clean_later(core);
	return 0;
}

/* The overlay before may not be unmounted yet: its work directory isn't used again. */
static int renew_work(struct core *core, int workspace, const char *work, struct error *err)
{
	if (put_away(core, workspace, work) && errno != ENOENT)
		return fail_errno(err, "put '%s' away", work);
	fault_point("core_freeze_work");
	return mkdirat(workspace, work, 0755) ? fail_errno(err, "make '%s'", work) : 0;
}

/* 1: it is empty, or there is none. */
static int freeze_part(struct core *core, int workspace, int to, const char *name,
	const struct workspace_part *part, struct error *err)
{
	struct stat st;
	auto_close int old = open_root(workspace, part->upper, &st);
	if (old < 0)
		return errno == ENOENT ? 1 : fail_errno(err, "open '%s'", part->upper);
	int failed = 0;
	bool is_unchanged = is_empty(old);
	if (!is_unchanged) {
		failed = make_alike(workspace, part->fresh, old, &st, err);
		if (!failed && renameat(workspace, part->upper, to, name))
			failed = fail_errno(err, "freeze '%s'", part->upper);
		fault_point("core_freeze_part");
		if (!failed && renameat(workspace, part->fresh, workspace, part->upper))
			failed = fail_errno(err, "put a new '%s' in its place", part->upper);
		if (!failed)
			failed = renew_work(core, workspace, part->work, err);
	}
	if ((st.st_mode & 0700) != 0700)
		(void)!fchmod(old, st.st_mode & 07777);
	return failed ? -1 : is_unchanged;
}

/* Puts an upper back. What took its place is as empty as it was made: no sandbox has used it. */
static int thaw_part(int workspace, int layer, const struct workspace_part *part, struct error *err)
{
	unlinkat(workspace, part->fresh, AT_REMOVEDIR);
	bool is_copy = !faccessat(workspace, part->old, F_OK, AT_SYMLINK_NOFOLLOW);
	if (!is_copy && faccessat(layer, part->name, F_OK, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (unlinkat(workspace, part->upper, AT_REMOVEDIR) && errno != ENOENT)
		return errno == ENOTEMPTY || errno == EEXIST /* the copy of one in use */
			       ? 0
			       : fail_errno(err, "make room for '%s'", part->upper);
	/* Before the upper: one without `work` would be taken for a plain directory. */
	if (mkdirat(workspace, part->work, 0755) && errno != EEXIST)
		return fail_errno(err, "make '%s'", part->work);
	if (renameat(is_copy ? workspace : layer, is_copy ? part->old : part->name, workspace,
		    part->upper))
		return fail_errno(err, "put '%s' back", part->upper);
	fault_point("core_thaw");
	return 0;
}

static int thaw(struct core *core, const char *id, const char *name, struct error *err)
{
	auto_close int workspace = open_workspace(core, id, err);
	auto_close int layer = openat(layers_dir(core), name, DIRECTORY);
	if (workspace < 0)
		return -1;
	if (layer < 0)
		return errno == ENOENT ? 0 : fail_errno(err, "open layer '%s'", name);
	for (size_t i = 0; i < WORKSPACE_PARTS; i++)
		if (thaw_part(workspace, layer, &workspace_parts[i], err))
			return -1;
	layer_discard(core, name);
	return 0;
}

int freeze_undo(struct core_workspace *w, const char *layer, struct error *err)
{
	return thaw(w->core, w->model.id, layer, err);
}

bool freeze_is_due(const struct core_workspace *w)
{
	struct error err;
	auto_close int workspace = open_workspace(w->core, w->model.id, &err);
	bool is_due = false;
	for (size_t i = 0; workspace >= 0 && i < WORKSPACE_PARTS && !is_due; i++) {
		struct stat st;
		auto_close int upper = open_root(workspace, workspace_parts[i].upper, &st);
		is_due = upper >= 0 && !is_empty(upper);
		if (upper >= 0 && (st.st_mode & 0700) != 0700)
			(void)!fchmod(upper, st.st_mode & 07777);
	}
	return is_due;
}

int freeze_uppers(struct core_workspace *w, const char *name, struct error *err)
{
	struct core *core = w->core;
	struct error ignored;
	auto_close int workspace = open_workspace(core, w->model.id, err);
	if (workspace < 0)
		return -1;
	if (mkdirat(layers_dir(core), name, 0755)) {
		fail_errno(err, "make layer '%s'", name);
		return error_context(err, "freeze workspace '%s'", w->model.name);
	}
	auto_close int layer = openat(layers_dir(core), name, DIRECTORY);
	int failed = layer < 0 || symlinkat(w->model.id, layer, FROM)
			     ? fail_errno(err, "make layer '%s'", name)
			     : 0;
	fault_point("core_freeze");
	for (size_t i = 0; !failed && i < WORKSPACE_PARTS; i++) {
		const struct workspace_part *part = &workspace_parts[i];
		failed = freeze_part(core, workspace, layer, part->name, part, err) < 0 ? -1 : 0;
	}
	if (failed) {
		int sys_errno = err->sys_errno;
		freeze_undo(w, name, &ignored);
		err->sys_errno = sys_errno;
		return error_context(err, "freeze workspace '%s'", w->model.name);
	}
	w->is_frozen = true;
	fault_point("core_frozen");
	return 0;
}

int freeze_copied(struct core_workspace *w, const char *name, struct error *err)
{
	struct core *core = w->core;
	struct error ignored;
	auto_close int workspace = open_workspace(core, w->model.id, err);
	auto_close int layer = openat(layers_dir(core), name, DIRECTORY);
	if (workspace < 0)
		return -1;
	int failed = layer < 0 || symlinkat(w->model.id, layer, FROM)
			     ? fail_errno(err, "open layer '%s'", name)
			     : 0;
	for (size_t i = 0; !failed && i < WORKSPACE_PARTS; i++) {
		const struct workspace_part *part = &workspace_parts[i];
		failed = freeze_part(core, workspace, workspace, part->old, part, err) < 0 ? -1 : 0;
	}
	if (failed)
		freeze_undo(w, name, &ignored);
	fault_point("core_frozen");
	return failed;
}

static void discard_old(struct core *core, const char *id)
{
	struct error ignored;
	auto_close int workspace = open_workspace(core, id, &ignored);
	for (size_t i = 0; workspace >= 0 && i < WORKSPACE_PARTS; i++)
		put_away(core, workspace, workspace_parts[i].old);
}

/* The id of the workspace that it was frozen of, or "". */
static void read_from(const struct core *core, const char *layer, char id[ID_LEN + 2])
{
	char path[LAUNCH_FROZEN_LEN + 8];
	str_format(path, sizeof path, "%s/" FROM, layer);
	ssize_t len = readlinkat(layers_dir(core), path, id, ID_LEN + 2);
	id[len == ID_LEN ? len : 0] = 0;
}

void freeze_settle(struct core *core, const char *layer)
{
	char path[LAUNCH_FROZEN_LEN + 8], id[ID_LEN + 2];
	read_from(core, layer, id);
	if (!id[0])
		return;
	discard_old(core, id);
	fault_point("core_freeze_settle");
	str_format(path, sizeof path, "%s/" FROM, layer);
	unlinkat(layers_dir(core), path, 0);
}

/* ---- the roots of new uppers ---- */

/* Gives the upper's root the mode, time and attributes of the topmost layer that has this part. */
static int dress_part(const struct core *core, int workspace, const struct workspace_part *part,
	const text_list *layers, struct error *err)
{
	for (size_t i = 0; i < layers->count; i++) {
		char path[LAUNCH_FROZEN_LEN + 16];
		struct stat st;
		str_format(path, sizeof path, "%s/%s", layers->items[i], part->name);
		auto_close int from = open_root(layers_dir(core), path, &st);
		if (from < 0 && errno == ENOENT)
			continue;
		if (from < 0)
			return fail_errno(err, "open layer '%s'", path);
		int failed = make_alike(workspace, part->fresh, from, &st, err);
		fault_point("core_dress");
		if (!failed && renameat(workspace, part->fresh, workspace, part->upper))
			failed = fail_errno(err, "put a new '%s' in its place", part->upper);
		if ((st.st_mode & 0700) != 0700)
			(void)!fchmod(from, st.st_mode & 07777);
		return failed;
	}
	return 0;
}

int freeze_dress(struct core_workspace *w, struct error *err)
{
	auto_close int workspace = open_workspace(w->core, w->model.id, err);
	if (workspace < 0)
		return -1;
	for (size_t i = 0; i < WORKSPACE_PARTS; i++) {
		struct stat st;
		if (!fstatat(workspace, workspace_parts[i].upper, &st, AT_SYMLINK_NOFOLLOW) &&
			dress_part(w->core, workspace, &workspace_parts[i], &w->model.layers, err))
			return -1;
	}
	return 0;
}

int freeze_dress_begin(struct core_workspace *w, struct error *err)
{
	auto_close int workspace = open_workspace(w->core, w->model.id, err);
	if (workspace < 0)
		return -1;
	if (symlinkat(w->model.id, workspace, DRESS) && errno != EEXIST)
		return fail_errno(err, "note that workspace '%s' is rolled back", w->model.name);
	return freeze_dress(w, err);
}

void freeze_dress_end(struct core_workspace *w, bool is_named)
{
	struct error err;
	struct stat st;
	auto_close int workspace = open_workspace(w->core, w->model.id, &err);
	if (workspace < 0 || fstatat(workspace, DRESS, &st, AT_SYMLINK_NOFOLLOW))
		return;
	for (size_t i = 0; !is_named && i < WORKSPACE_PARTS; i++) {
		auto_close int upper = open_root(workspace, workspace_parts[i].upper, &st);
		if (upper >= 0 && is_empty(upper) &&
			dress_part(w->core, workspace, &workspace_parts[i], &w->model.layers, &err))
			log_record(&w->core->log, LOG_LEVEL_WARN,
				"the mode of a directory is that of another state", "workspace",
				w->model.id, "error", err.text, NULL);
	}
	unlinkat(workspace, DRESS, 0);
}

/* ---- those without a row ---- */

struct held_layer {
	size_t holds;
	char name[LAUNCH_FROZEN_LEN + 1];
};

void layer_hold(struct core *core, const char *name)
{
	struct held_layer *held = map_get(&core->state->held_layers, str_from(name));
	if (!held) {
		held = xzalloc(sizeof *held);
		str_copy(held->name, sizeof held->name, name);
		map_add(&core->state->held_layers, str_from(held->name), held);
	}
	held->holds++;
}

void layer_release(struct core *core, const char *name)
{
	struct held_layer *held = map_get(&core->state->held_layers, str_from(name));
	if (!held || --held->holds)
		return;
	map_remove(&core->state->held_layers, str_from(name));
	free(held);
}

void layers_hold_all(struct core *core, const text_list *names)
{
	for (size_t i = 0; i < names->count; i++)
		layer_hold(core, names->items[i]);
}

void layers_release_all(struct core *core, const text_list *names)
{
	for (size_t i = 0; i < names->count; i++)
		layer_release(core, names->items[i]);
}

void layers_done(struct core *core)
{
	struct held_layer *held;
	if (core->state->layer_sweep)
		loop_cancel(core->loop, core->state->layer_sweep);
	for (size_t at = 0; (held = map_next(&core->state->held_layers, &at));)
		free(held);
	map_done(&core->state->held_layers);
}

static void add_name(void *ctx, const char *name)
{
	map_set(ctx, str_from(name), ctx);
}

static void add_names(struct map *named, const text_list *layers)
{
	for (size_t i = 0; i < layers->count; i++)
		add_name(named, layers->items[i]);
}

void layers_named(const struct core *core, struct map *named)
{
	const struct template_build *build;
	const struct held_layer *held;
	for (const struct core_workspace *w = core->newest; w; w = w->older)
		add_names(named, &w->model.layers);
	for (const struct core_snapshot *s = core->state->newest_snapshot; s; s = s->older)
		add_names(named, &s->model.layers);
	for (size_t at = 0; (build = map_next(&core->state->template_builds, &at));)
		add_name(named, build->layer);
	for (size_t at = 0; (held = map_next(&core->state->held_layers, &at));)
		add_name(named, held->name);
	tree_jobs_each_name(core, add_name, named);
}

/* After a start: a freeze that was cut off is undone. */
static void recover(struct core *core, const char *name)
{
	char id[ID_LEN + 2];
	struct error err;
	read_from(core, name, id);
	if (!map_get(&core->ids, str_from(id))) {
		layer_discard(core, name);
		return;
	}
	int failed = thaw(core, id, name, &err);
	log_record(&core->log, failed ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN,
		failed ? "a freeze that was cut off can't be undone"
		       : "a freeze that was cut off was undone",
		"workspace", id, "layer", name, failed ? "error" : NULL, err.text, NULL);
}

static void keep_lost(struct core *core, const char *name)
{
	char lost[8 + LAUNCH_FROZEN_LEN];
	str_format(lost, sizeof lost, ".lost-%s", name);
	renameat(layers_dir(core), name, layers_dir(core), lost);
}

/* The layer that is being made there, when `name` is that of a directory for unfinished ones. */
static const char *staged_layer(const char *name)
{
	static const char *const prefixes[] = { TEMPLATE_STAGE_PREFIX, TREE_JOB_STAGE_PREFIX };
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return name + strlen(prefixes[i]);
	return NULL;
}

static void look_at_layer(
	struct core *core, const char *name, const struct map *named, bool is_start)
{
	bool is_lost = core->store_opened.was_corrupt || core->store_opened.is_new;
	const char *staged = staged_layer(name);
	bool is_named = map_get(named, str_from(staged ? staged : name));
	if (staged && (!is_named || is_start)) /* at a start nobody goes on with it */
		layer_discard(core, name);
	else if (is_named && is_start)
		freeze_settle(core, name);
	else if (!is_named && is_start)
		(is_lost ? keep_lost : recover)(core, name);
	else if (!is_named)
		layer_discard(core, name);
}

static void look_at_layers(struct core *core, bool is_start)
{
	auto_arena struct arena arena = { 0 };
	struct map named;
	auto_walk DIR *walk = walk_open(layers_dir(core), ".");
	struct dirent *entry;
	text_list found = { 0 };
	while ((entry = walk_next(walk)))
		if (launch_layer_is_frozen(entry->d_name) || staged_layer(entry->d_name))
			vec_push(&arena, &found, (const char *)arena_text(&arena, entry->d_name));
	map_init(&named, &arena);
	layers_named(core, &named);
	for (size_t i = 0; i < found.count; i++)
		look_at_layer(core, found.items[i], &named, is_start);
}

void layers_recover(struct core *core)
{
	look_at_layers(core, true);
}

static void on_sweep(struct loop *loop, void *ctx)
{
	struct core *core = ctx;
	core->state->layer_sweep = NULL;
	look_at_layers(core, false);
}

void layers_sweep(struct core *core)
{
	if (!core->state->layer_sweep)
		core->state->layer_sweep = loop_after(core->loop, 0, on_sweep, core);
}
