/* reconcile.c -- after a start: disk, database and running sandboxes are brought together by one
 *rule.
 *
 *	What runs is adopted, what is half-made is removed, what was acknowledged is there.
 *
 *	row	tree	sandbox
 *	yes	yes	yes	adopted: running
 *	yes	yes	no	ready (or suspended, as it was)
 *	yes	.del-	any	its removal was begun: finished
 *	yes	no	any	never used: made again (a power cut took what wasn't synced);
 *				else failed: its files are gone, and somebody has to know
 *	no	yes	any	half-made: sandbox ended, tree removed
 *	no	no	yes	ended
 *
 * A row is written after its tree and removed after it is out of sight, so the last four are what
 *crashes leave. When the database itself was lost (moved aside, or not there), a tree without a row
 *isn't half-made: it is kept as .lost-<id>, and said so. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/walk.h"
#include "core/access/approvals.h"
#include "core/access/audit_records.h"
#include "core/access/tokens.h"
#include "core/execs/execs.h"
#include "core/files/files.h"
#include "core/internal.h"

/* ---- rows ---- */

static void take_workspace(struct core *core, const struct workspace *row)
{
	struct workspace model = *row;
	if (model.state == WORKSPACE_RUNNING)
		model.state = WORKSPACE_READY;
	if (core->newest && model.created_ms <= core->newest->model.created_ms)
		model.created_ms = core->newest->model.created_ms + 1;
	/* Rows of earlier versions, and of a use that was not saved, say another time. */
	if (workspace_ttl_is_idle(&model) && model.ttl_ms)
		model.expires_ms = model.last_used_ms + (int64_t)model.ttl_ms;
	workspace_new(core, &model);
}

static int take_row(void *ctx, const struct store_table *table, const void *object)
{
	struct core *core = ctx;
	const struct exec_record *exec = object;
	if (table == &store_workspaces)
		take_workspace(core, object);
	else if (table == &store_snapshots)
		snapshot_restore(core, object);
	else if (table == &store_tokens)
		token_restore(core, object);
	else if (table == &store_approvals)
		approval_restore(core, object);
	else if (table == &store_execs && map_get(&core->ids, str_from(exec->workspace)))
		execs_restore(map_get(&core->ids, str_from(exec->workspace)), exec);
	else if (core->row && table != &store_execs)
		return core->row(core->row_ctx, table, object);
	return 0;
}

static void on_loaded(void *ctx, const struct store_opened *opened, const struct error *err)
{
	struct core *core = ctx;
	char rescued[16];
	core->store_opened = *opened;
	if (err) {
		core->load_failure = arena_alloc(&core->arena, sizeof *err);
		*core->load_failure = *err;
		return;
	}
	str_format(rescued, sizeof rescued, "%d", opened->rescued);
	if (opened->was_corrupt)
		log_record(&core->log, LOG_LEVEL_ERROR,
			"the database is damaged and was moved aside", "aside", opened->aside,
			"why", opened->why, "rescued", rescued, NULL);
}

void reconcile_ask(struct core *core)
{
	store_load(core->store, take_row, on_loaded, core);
}

/* ---- trees ---- */

static void keep_lost(struct core *core, const char *id)
{
	char lost[8 + ID_LEN];
	str_format(lost, sizeof lost, ".lost-%s", id);
	if (!renameat(core->workspaces, id, core->workspaces, lost))
		log_record(&core->log, LOG_LEVEL_ERROR,
			"found files of an unknown workspace; they are kept", "tree", lost, NULL);
}

static void look_at_tree(struct core *core, const char *name)
{
	struct error err;
	if (!strncmp(name, ".del-", 5)) {
		struct core_workspace *w = map_get(&core->ids, str_from(name + 5));
		if (w)
			w->model.state = WORKSPACE_DELETING;
		trees_clean_later(core);
		return;
	}
	if (!id_is_valid(name) || map_get(&core->ids, str_from(name)))
		return;
	if (core->store_opened.was_corrupt || core->store_opened.is_new)
		keep_lost(core, name);
	else if (tree_discard(core, name, &err))
		log_record(&core->log, LOG_LEVEL_ERROR,
			"remains of an incomplete creation can't be removed", "tree", name, "error",
			err.text, NULL);
}

static int look_at_trees(struct core *core, struct error *err)
{
	auto_walk DIR *dir = walk_open(core->workspaces, ".");
	struct dirent *entry;
	if (!dir)
		return fail_errno(err, "read '%s/workspaces'", core->home.path);
	while ((entry = walk_next(dir)))
		look_at_tree(core, entry->d_name);
	/* From now on a tree without a row is one that this core creates. */
	store_settle(core->store);
	store_flush(core->store);
	return 0;
}

static void look_at_workspace(struct core_workspace *w)
{
	struct core *core = w->core;
	struct error err;
	struct stat st;
	if (w->model.state == WORKSPACE_DELETING || w->model.state == WORKSPACE_CREATING) {
		core_remove(&request_system, w, "removed", NULL, NULL);
		return;
	}
	bool is_there = !fstatat(core->workspaces, w->model.id, &st, AT_SYMLINK_NOFOLLOW) &&
			S_ISDIR(st.st_mode);
	if (!is_there && w->model.last_used_ms <= w->model.created_ms &&
		!tree_make(w, false, &err)) {
		is_there = true;
		workspace_save(w, NULL, NULL);
	}
	if (!is_there && w->model.state != WORKSPACE_FAILED) {
		w->model.error = "its files are missing on disk";
		log_record(&core->log, LOG_LEVEL_ERROR, "the files of a workspace are missing",
			"workspace", w->model.id, "name", w->model.name, NULL);
		workspace_set_state(w, WORKSPACE_FAILED);
		workspace_save(w, NULL, NULL);
	}
	if (is_there) {
		freeze_dress_end(w, false);
		if (!workspace_counts_disk(&w->model) && !core->has_rubbish_inside) {
			core->has_rubbish_inside = true; /* perhaps */
			trees_clean_later(core);
		}
		files_sweep(w);
		environments_keep(w);
	}
	lifetime_arm(w);
}

/* ---- sandboxes ---- */

static void end_unknown(struct core *core, const char *id)
{
	struct launch_message head = { .type = LAUNCH_END };
	memcpy(head.id, id, sizeof head.id);
	launcher_ask(&core->launcher, &head, NULL, 0, NULL, 0, NULL, NULL);
}

static void take_sandbox(struct core *core, const struct launch_packet *packet, const int *fds)
{
	struct core_workspace *w = map_get(&core->ids, str_from(packet->head.id));
	if (w && (w->model.state == WORKSPACE_READY || w->model.state == WORKSPACE_SUSPENDED)) {
		core_touch(w);
		sandbox_adopt(w, packet->head.value, fds);
		return;
	}
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	end_unknown(core, packet->head.id);
}

static void finish(struct core *core)
{
	struct core_workspace *older;
	execs_settle(core);
	approvals_settle(core);
	snapshots_forget(core, NULL);
	for (struct core_workspace *w = core->newest; w; w = older) {
		older = w->older;
		look_at_workspace(w);
	}
	core->is_ready = true;
	merges_check(core);
	snapshots_examine(core);
	audit_daemon(core, "daemon.start", core->config_digest);
	log_record(&core->log, LOG_LEVEL_INFO, "ready", NULL);
	if (core->ready)
		loop_after(core->loop, 0, core->ready, core->ready_ctx);
}

static void on_list(void *ctx, const struct launch_packet *packet, const int *fds)
{
	if (packet && packet->head.type == LAUNCH_RUNNING)
		take_sandbox(ctx, packet, fds);
	else
		finish(ctx);
}

int reconcile_begin(struct core *core, struct error *err)
{
	struct launch_message head = { .type = LAUNCH_LIST };
	/* There is nothing else to do yet. */
	store_flush(core->store);
	if (core->load_failure) {
		*err = *core->load_failure;
		return -1;
	}
	layers_recover(core);
	if (look_at_trees(core, err))
		return -1;
	launcher_ask(&core->launcher, &head, NULL, 0, NULL, 0, on_list, core);
	return 0;
}
