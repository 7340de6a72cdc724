/* grants.c -- what a workspace shows besides its own tree: directories of the host, which its user
 * has vouched for, and shared trees. The launcher keeps and checks them (launch/grants.c). */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "core/internal.h"
#include "sandbox/plan/grants.h"
#include "sandbox/plan/plan.h"
#include "sandbox/plan/programs.h"

bool grants_are_asked(const struct workspace *model)
{
	return model->dir || model->mounts.count || model->attach.count;
}

/* In a directory of the host no link is made. */
static const char *link_of(const struct workspace *model, const struct grant *grant)
{
	return model->dir ? NULL : grant_link(grant, plan_view_path(model->view));
}

/* A tree that links lead to is mounted once. */
static int check_once(const struct workspace *wanted, size_t index, const struct grant *grant,
	struct arena *arena, struct error *err)
{
	for (size_t i = 0; link_of(wanted, grant) && i < index; i++) {
		struct grant other;
		if (grant_parse_tree(wanted->attach.items[i], arena, &other, err))
			return -1;
		if (!strcmp(other.source, grant->source) && link_of(wanted, &other))
			return fail(err, ERR_INVALID,
				"the shared tree '%s' can't be both '%s' and '%s'", grant->source,
				other.target, grant->target);
	}
	return 0;
}

static int check_attached(const struct core *core, const struct workspace *wanted,
	struct arena *arena, struct error *err)
{
	for (size_t i = 0; i < wanted->attach.count; i++) {
		struct grant grant;
		struct stat st;
		if (grant_parse_tree(wanted->attach.items[i], arena, &grant, err) ||
			plan_check_attached(grant.target, err))
			return -1;
		if (fstatat(core->home.dir, arena_printf(arena, "trees/%s", grant.source), &st,
			    AT_SYMLINK_NOFOLLOW) ||
			!S_ISDIR(st.st_mode))
			return fail_hint(err, ERR_NOT_FOUND, "carrel tree ls lists them",
				"there is no shared tree '%s'", grant.source);
		if (check_once(wanted, i, &grant, arena, err))
			return -1;
	}
	return 0;
}

int grants_check(
	const struct core *core, const struct workspace *wanted, bool is_vouched, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	bool needs_voucher = wanted->dir || wanted->mounts.count;
	if ((wanted->dir != NULL) + wanted->mounts.count + wanted->attach.count >
		WORKSPACE_MOUNTS_MAX)
		return fail(err, ERR_LIMIT, "a workspace can have at most %d mounts",
			WORKSPACE_MOUNTS_MAX);
	if (needs_voucher != is_vouched)
		return fail_hint(err, ERR_INVALID, "carrel create --dir PATH, -v SOURCE:TARGET",
			"'dir' and 'mounts' need descriptors of the directories, which only a "
			"client on this host can pass");
	if (wanted->dir && (!path_is_normal(wanted->dir) || wanted->is_context))
		return fail(err, ERR_INVALID,
			wanted->is_context ? "'dir' and 'context' can't be combined"
					   : "dir: '%s' is not an absolute, plain path",
			wanted->dir);
	if (wanted->dir && plan_view_is_root(wanted->view))
		return fail(err, ERR_INVALID,
			"'dir' and view 'root' can't be combined: no mount points are created in "
			"directories of the host");
	for (size_t i = 0; i < wanted->mounts.count; i++) {
		struct plan_bind bind;
		if (plan_parse_bind(wanted->mounts.items[i], &arena, &bind, err) ||
			plan_check_attached(bind.target, err))
			return -1;
	}
	return check_attached(core, wanted, &arena, err);
}

static void on_granted(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct error err;
	bool is_done = packet && packet->head.type == LAUNCH_DONE;
	if (!is_done)
		launcher_failure(packet, &err);
	waiter_call(ctx, NULL, is_done ? NULL : &err);
}

int grants_make_links(const struct core_workspace *w, int upper, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	for (size_t i = 0; i < w->model.attach.count; i++) {
		struct grant grant;
		auto_close int dir = -1;
		if (grant_parse_tree(w->model.attach.items[i], &arena, &grant, err))
			return -1;
		const char *path = link_of(&w->model, &grant);
		if (!path)
			continue;
		const char *name = path_basename(path);
		const char *above = arena_bytes(&arena, path, (size_t)(name - path));
		const char *tree = arena_printf(&arena, GRANT_TREES "/%s", grant.source);
		if (path_make_directories(upper, above, 0755, &dir, err))
			return -1;
		if (symlinkat(tree, dir, name) && errno != EEXIST)
			return fail_errno(err, "make the link '%s'", path);
	}
	return 0;
}

void grants_ask(struct core_workspace *w, const char *request_id, int voucher,
	core_workspace_fn *done, void *ctx)
{
	struct launch_message head = { .type = LAUNCH_GRANT, .present = voucher >= 0 };
	const char *strings[3 * GRANTS_MAX];
	auto_arena struct arena arena = { 0 };
	size_t count = 0;
	memcpy(head.id, w->model.id, sizeof head.id);
	str_copy(head.request_id, sizeof head.request_id, request_id);
	for (size_t i = 0; i < w->model.attach.count; i++) {
		struct grant grant;
		struct error checked; /* by grants_check */
		if (grant_parse_tree(w->model.attach.items[i], &arena, &grant, &checked))
			continue;
		strings[count++] = grant.source;
		strings[count++] = link_of(&w->model, &grant)
					   ? arena_printf(&arena, GRANT_TREES "/%s", grant.source)
					   : grant.target;
		strings[count++] = grant.read_only ? "ro" : "rw";
	}
	launcher_ask(&w->core->launcher, &head, strings, count, &voucher, voucher >= 0, on_granted,
		waiter_new(done, ctx, w, NULL));
}

/* One that stays behind is removed when the launcher starts again. */
static void on_revoked(void *ctx, const struct launch_packet *packet, const int *fds)
{
}

void grants_revoke(struct core_workspace *w)
{
	struct launch_message head = { .type = LAUNCH_REVOKE };
	if (!grants_are_asked(&w->model))
		return;
	memcpy(head.id, w->model.id, sizeof head.id);
	launcher_ask(&w->core->launcher, &head, NULL, 0, NULL, 0, on_revoked, NULL);
}

int workspace_check_own_tree(const struct core_workspace *w, const char *verb, struct error *err)
{
	return w->model.dir ? fail_hint(err, ERR_CONFLICT,
				      "create a workspace without --dir, and copy the files",
				      "workspace '%s' can't be %s: its files lie in '%s', a "
				      "directory of the host",
				      w->model.name, verb, w->model.dir)
			    : 0;
}
