/* grants.c -- what a workspace shows besides its own tree: directories of the host, which its user
 * has vouched for, and shared trees. The launcher keeps and checks them (launch/grants.c). */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "base/path.h"
#include "core/internal.h"
#include "plan/grants.h"
#include "plan/plan.h"

bool grants_are_asked(const struct workspace *model)
{
	return model->dir || model->mounts.count || model->attach.count;
}

static int check_attached(const struct core *core, const struct workspace *wanted,
	struct arena *arena, struct error *err)
{
	for (size_t i = 0; i < wanted->attach.count; i++) {
		struct grant grant;
		struct stat st;
		if (grant_parse_tree(wanted->attach.items[i], arena, &grant, err))
			return -1;
		if (fstatat(core->home.dir, arena_printf(arena, "trees/%s", grant.source), &st,
			    AT_SYMLINK_NOFOLLOW) ||
			!S_ISDIR(st.st_mode))
			return fail_hint(err, ERR_NOT_FOUND,
				"carrel tree ls, or GET /v1/trees, lists them",
				"there is no shared tree '%s'", grant.source);
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
	for (size_t i = 0; i < wanted->mounts.count; i++) {
		struct plan_bind bind;
		if (plan_parse_bind(wanted->mounts.items[i], &arena, &bind, err))
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
		strings[count++] = grant.target;
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
