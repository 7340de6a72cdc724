/* create.c -- creates a workspace: reserves its name, gets its environment, sets limits, makes its
 * tree, writes its row; then it is ready, and the caller is told. A step that fails undoes those
 * before it. */
#include <fcntl.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "core/access/audit_records.h"
#include "core/access/policies.h"
#include "core/state/template_builds.h"
#include "core/state/template_store.h"
#include "core/waits.h"
#include "core/workspaces/internal.h"
#include "core/workspaces/networks.h"
#include "linux/disk_quota.h"

struct creation {
	struct core_workspace *w;
	struct fiber *fiber;
	core_workspace_fn *done;
	void *ctx;
	uint64_t began_ns;
	char request_id[ID_LEN + 1];
	int voucher;				  /* of sandbox/plan/grants.h, or -1 */
	char template_sha256[2 * SHA256_LEN + 1]; /* of a template to be built; or "" */
	struct create_group *group;		  /* or NULL */
	struct creation *next;			  /* of the group, whose row is due */
	struct share share;			  /* of the workspaces being created */
};

static void leave_group(struct creation *creation, const struct error *err);

static bool is_unwanted(const struct creation *creation, struct error *err)
{
	if (!creation->w->is_canceled)
		return false;
	fail(err, ERR_CANCELED, "the client disconnected before workspace '%s' was created",
		creation->w->model.name);
	return true;
}

/* is_made: it has a row, and is ready, or (err) to be removed again. */
static void finish(struct creation *creation, bool is_made, const struct error *err)
{
	struct core_workspace *w = creation->w;
	struct core *core = w->core;
	leave_group(creation, err);
	if (is_made) {
		journal_emit(&core->journal, "workspace.created", w->model.id, w->model.name, NULL);
		workspace_set_state(w, WORKSPACE_READY);
		for (size_t i = 0; i < w->model.warnings.count; i++)
			journal_emit(&core->journal, "workspace.warning", w->model.id,
				w->model.name, "warning", w->model.warnings.items[i], NULL);
		if (w->sandbox.state == SANDBOX_UP)
			journal_emit(
				&core->journal, "workspace.warm", w->model.id, w->model.name, NULL);
	}
	if (!err) {
		core->metrics.creates++;
		histogram_add(&core->metrics.create_seconds,
			(double)(clock_monotonic_ns() - creation->began_ns) / 1e9);
		lifetime_arm(w);
	} else
		core->metrics.create_failures++;
	w->files = (pair_list){ 0 };
	workspace_tidy(w);
	fault_point("core_create_answer");
	share_release(&creation->share);
	creation->done(creation->ctx, err ? NULL : w, err);
	waiters_call(&w->life->refusals, NULL, NULL);
	if (err && is_made)
		core_remove(&request_system, w, "canceled", NULL, NULL);
	else if (err && w->sandbox.state != SANDBOX_NONE)
		spare_return(w);
	else if (err)
		workspace_drop(w);
	core_release(w);
	fd_close(&creation->voucher);
	free(creation);
}

static void undo(struct creation *creation, const struct error *err)
{
	struct error ignored; /* what stays has no row, and goes at the next start */
	struct error why = *err;
	grants_revoke(creation->w);
	if (creation->w->sandbox.state == SANDBOX_NONE)
		tree_discard(creation->w->core, creation->w->model.id, &ignored);
	/* A read-only home isn't the client's fault. */
	if (why.code == ERR_DENIED && !grants_are_asked(&creation->w->model))
		why.code = ERR_UNAVAILABLE;
	finish(creation, false, &why);
}

/* In the store it is ready: there is nothing half-made that has a row. */
static int write_row(struct creation *creation, struct error *err)
{
	struct workspace row = creation->w->model;
	row.state = WORKSPACE_READY;
	fault_point("core_create_row");
	return wait_put(creation->fiber, creation->w->core, &store_workspaces, &row, err);
}

/* ---- several together ---- */

struct create_group *create_group_new(size_t count)
{
	struct create_group *group = xzalloc(sizeof *group);
	group->awaited = count;
	return group;
}

/* All of them are here: their rows are committed together, or none is. */
static void count_down(struct create_group *group)
{
	struct creation *next;
	if (--group->awaited)
		return;
	for (struct creation *at = group->due; at; at = next) {
		next = at->next;
		at->group = NULL;
		fiber_continue(at->fiber, group->err.code ? &group->err : NULL);
	}
	free(group);
}

/* It has failed before its row was due. */
static void leave_group(struct creation *creation, const struct error *err)
{
	struct create_group *group = creation->group;
	creation->group = NULL;
	if (!group)
		return;
	if (!group->err.code)
		group->err = *err;
	count_down(group);
}

/* Its row is due: waits for those of the others. */
static int await_group(struct creation *creation, struct error *err)
{
	struct create_group *group = creation->group;
	if (!group)
		return 0;
	struct creation **last = &group->due;
	while (*last)
		last = &(*last)->next;
	*last = creation;
	count_down(group);
	return fiber_wait(creation->fiber, err);
}

/* ---- its tree ---- */

static void make_tree(struct core_waiter *waiter, bool is_there)
{
	struct error err;
	waiter_call(waiter, NULL, tree_make(waiter->w, is_there, &err) ? &err : NULL);
}

static void on_quota(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct core_waiter *waiter = ctx;
	struct error err;
	if (!packet || packet->head.type != LAUNCH_DONE || packet->head.value < 0 ||
		packet->head.value >= QUOTA_MECHANISM_COUNT) {
		launcher_failure(packet, &err);
		waiter_call(waiter, NULL, &err);
		return;
	}
	waiter->w->core->upkeep->counts_disk = packet->head.value == QUOTA_COUNTED;
	waiter->w->model.disk_mechanism = quota_names[packet->head.value];
	make_tree(waiter, true);
}

void workspace_make_tree(
	struct core_workspace *w, const char *request_id, core_workspace_fn *done, void *ctx)
{
	struct launch_message head = { .type = LAUNCH_QUOTA };
	struct core_waiter *waiter = waiter_new(done, ctx, w, NULL);
	if (w->core->upkeep->counts_disk) {
		make_tree(waiter, false);
		return;
	}
	memcpy(head.id, w->model.id, sizeof head.id);
	str_copy(head.request_id, sizeof head.request_id, request_id);
	head.limits.disk_bytes = w->model.limits.disk_bytes;
	launcher_ask(&w->core->launcher, &head, NULL, 0, NULL, 0, on_quota, waiter);
}

/* ---- the job ---- */

static int prepare(struct creation *creation, struct error *err)
{
	struct core_workspace *w = creation->w;
	int failed = environment_prepare(creation->fiber, w, creation->request_id, err);
	if (is_unwanted(creation, err) || failed)
		return -1;
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (policies_check_environment(w, environment_pinned(w, i), err))
			return -1;
	return creation->template_sha256[0] ? template_build_make(w, creation->template_sha256, err)
					    : 0;
}

static int make(struct creation *creation, struct error *err)
{
	struct core_workspace *w = creation->w;
	struct fiber *fiber = creation->fiber;
	workspace_make_tree(w, creation->request_id, fiber_continue_workspace, fiber);
	if (fiber_wait(fiber, err))
		return -1;
	if (!grants_are_asked(&w->model))
		return 0;
	grants_ask(w, creation->request_id, creation->voucher, fiber_continue_workspace, fiber);
	return fiber_wait(fiber, err);
}

static void run_creation(struct fiber *fiber, void *ctx)
{
	struct creation *creation = ctx;
	struct error err;
	creation->fiber = fiber;
	wait_turn(fiber, creation->w->core);
	bool was_spare = creation->w->sandbox.state != SANDBOX_NONE;
	if (!was_spare && prepare(creation, &err))
		finish(creation, false, &err);
	else if ((!was_spare && make(creation, &err)) || await_group(creation, &err) ||
		 write_row(creation, &err))
		undo(creation, &err);
	else
		finish(creation, true, is_unwanted(creation, &err) ? &err : NULL);
}

/* ---- what is asked for ---- */

/* Whether `context` may name a new one. */
static int check_context(struct core *core, const char *context, struct error *err)
{
	if (!context)
		return 0;
	if (!context[0])
		return fail_hint(
			err, ERR_INVALID, "leave the label out", "the label context_id is empty");
	const struct core_workspace *other = map_get(&core->contexts, str_from(context));
	if (!other)
		other = map_get(&core->names, str_from(context));
	if (!other)
		other = map_get(&core->ids, str_from(context));
	if (!other)
		return 0;
	return fail_hint(err, ERR_CONFLICT, "choose another value, or use that workspace",
		"'%s' is already the name, id or context_id of a workspace", context);
}

int create_check_name(struct core *core, const char *name, struct error *err)
{
	if (map_get(&core->names, str_from(name)) || map_get(&core->contexts, str_from(name)))
		return fail_hint(err, ERR_CONFLICT, "choose another name, or use that workspace",
			"workspace '%s' already exists", name);
	return 0;
}

static int check_taken(struct core *core, const struct workspace *wanted, struct error *err)
{
	if (wanted->id[0] && map_get(&core->ids, str_from(wanted->id)))
		return fail(err, ERR_CONFLICT, "workspace '%s' already exists", wanted->id);
	if (wanted->name && create_check_name(core, wanted->name, err))
		return -1;
	auto_arena struct arena arena = { 0 };
	return check_context(core, workspace_context_key(wanted, &arena), err);
}

/* One that isn't is what the workspace's sources let it reach. */
static bool is_network_asked(const struct workspace_network *network)
{
	return network->mode || network->allow.count || network->deny.count;
}

static int check(struct core *core, struct workspace *wanted, bool has_state, struct error *err)
{
	if (core->is_stopping)
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	if (wanted->name && workspace_check_name(wanted->name, err))
		return -1;
	if (wanted->labels.count > WORKSPACE_LABELS_MAX)
		return fail(err, ERR_INVALID, "more than %d labels", WORKSPACE_LABELS_MAX);
	for (size_t i = 0; i < wanted->labels.count; i++)
		if (workspace_check_label(
			    wanted->labels.items[i].key, wanted->labels.items[i].value, err))
			return -1;
	if (!has_state && wanted->environments.of[ENV_KIND_PYTHON] &&
		(wanted->python || wanted->requirements || wanted->packages.count))
		return fail(err, ERR_INVALID,
			"'environment' can't be combined with 'python': give the name of an "
			"existing environment, or packages");
	return limits_fill(&wanted->limits, err) ||
			       (is_network_asked(&wanted->network) &&
				       workspace_network_settle(&wanted->network, err)) ||
			       policies_check(core, wanted, err) || check_taken(core, wanted, err)
		       ? -1
		       : 0;
}

static struct core_workspace *find_being_made(struct core *core, const struct workspace *wanted)
{
	auto_arena struct arena arena = { 0 };
	const char *keys[] = { wanted->id, wanted->name, workspace_context_key(wanted, &arena) };
	struct map *tables[] = { &core->ids, &core->names, &core->contexts };
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		for (size_t k = 0; keys[i] && k < sizeof tables / sizeof *tables; k++) {
			struct core_workspace *w = map_get(tables[k], str_from(keys[i]));
			if (w && w->model.state == WORKSPACE_CREATING && !w->is_spare)
				return w;
		}
	return NULL;
}

/* A conflict is reported after the row of the other workspace is on disk, so that the client can
 * find it; at once if that workspace waits for a build, which takes minutes. */
static void refuse(struct core *core, const struct workspace *wanted, core_workspace_fn *done,
	void *ctx, const struct error *err)
{
	struct core_workspace *w = err->code == ERR_CONFLICT ? find_being_made(core, wanted) : NULL;
	core->metrics.create_failures++;
	if (!w || environment_is_asked(&w->model)) {
		core_later(core, done, ctx, NULL, err);
		return;
	}
	waiter_append(&w->life->refusals, waiter_new(done, ctx, NULL, err));
}

void core_cancel_create(struct core_workspace *w)
{
	w->is_canceled = true;
	environment_cancel(w);
}

/* What a template says of a new workspace. */
struct begin {
	pair_list files;		    /* that it begins with */
	const char *sha256;		    /* of the template, when it is to be built; or NULL */
	const struct template_build *build; /* whose environments it gets; or NULL */
};

/* Fills in what its template says. */
static int use_template(struct core *core, struct workspace *wanted, struct arena *arena,
	struct begin *begin, struct error *err)
{
	struct template_shown shown;
	const struct template_build *build;
	if (!wanted->template)
		return 0;
	if (template_find(core->home.dir, wanted->template, arena, &shown, err))
		return -1;
	bool is_plain = !environment_is_asked(wanted);
	template_apply(&shown.model, arena, wanted);
	wanted->warnings = shown.warnings;
	build = core->use_snapshots ? template_build_find(core, wanted->template, shown.sha256)
				    : NULL;
	if (!build || !is_plain) {
		template_files(&shown.model, arena, &begin->files);
		begin->sha256 = core->use_snapshots && is_plain ? shown.sha256 : NULL;
		return 0;
	}
	vec_push(arena, &wanted->layers, arena_text(arena, build->layer));
	begin->build = build;
	return 0;
}

/* In a directory of the host nothing is made. */
static int check_files(const struct workspace *wanted, const pair_list *files, struct error *err)
{
	return wanted->dir && (files->count || wanted->layers.count)
		       ? fail(err, ERR_INVALID,
				 "'dir' can't be combined with template '%s', which has files",
				 wanted->template)
		       : 0;
}

struct core_workspace *core_create(const struct request *request, struct core *core,
	const struct workspace *asked, core_workspace_fn *done, void *ctx)
{
	return core_create_with(request, core, asked, -1, done, ctx);
}

struct core_workspace *core_create_with(const struct request *request, struct core *core,
	const struct workspace *asked, int voucher, core_workspace_fn *done, void *ctx)
{
	struct error err;
	if (!asked->from)
		return workspace_create(request, core, asked, false, voucher, NULL, done, ctx);
	if (access_check(core, request, VERB_WORKSPACE_CREATE, NULL, &err))
		core_later(core, done, ctx, NULL, &err);
	else
		create_from(request, core, asked, done, ctx);
	return NULL;
}

struct core_workspace *workspace_create(const struct request *request, struct core *core,
	const struct workspace *asked, bool has_state, int voucher, struct create_group *group,
	core_workspace_fn *done, void *ctx)
{
	struct workspace wanted = *asked;
	char name[WORKSPACE_NAME_MAX + 1], caller[PRINCIPAL_NAME_SIZE];
	struct error err;
	auto_arena struct arena arena = { 0 };
	struct begin begin = { 0 };
	if (access_check(core, request, VERB_WORKSPACE_CREATE, NULL, &err) ||
		(!has_state && use_template(core, &wanted, &arena, &begin, &err)) ||
		workspace_take_labels(&wanted, &arena, &err) ||
		check(core, &wanted, has_state, &err) ||
		shares_check(&core->creations, access_caller(request, caller), 1, &err) ||
		grants_check(core, &wanted, voucher >= 0, &err) ||
		check_files(&wanted, &begin.files, &err)) {
		if (group && !group->err.code)
			group->err = err;
		if (group)
			count_down(group);
		refuse(core, &wanted, done, ctx, &err);
		return NULL;
	}
	/* Beside what they are made of, so that they can be built again. */
	if (begin.build)
		wanted.environments = begin.build->environments;
	while (!wanted.name || map_get(&core->names, str_from(wanted.name))) {
		workspace_make_name(name);
		wanted.name = name;
	}
	wanted.state = WORKSPACE_CREATING;
	wanted.created_ms = clock_now_ms();
	if (core->newest && wanted.created_ms <= core->newest->model.created_ms)
		wanted.created_ms = core->newest->model.created_ms + 1;
	wanted.last_used_ms = wanted.created_ms;
	wanted.expires_ms = wanted.ttl_ms ? wanted.created_ms + (int64_t)wanted.ttl_ms : 0;
	wanted.disk_mechanism = "counted";
	wanted.from = NULL;
	wanted.base = wanted.layers.count ? wanted.layers.items[0] : WORKSPACE_BASE_NONE;
	struct core_workspace *w = has_state ? NULL : spare_take(core, &wanted);
	if (!wanted.id[0])
		id_make(wanted.id);
	struct creation *creation = xzalloc(sizeof *creation);
	*creation = (struct creation){ .w = w ? w : workspace_new(core, &wanted),
		.done = done,
		.ctx = ctx,
		.group = group,
		.began_ns = clock_monotonic_ns(),
		.voucher = voucher < 0 ? -1 : fcntl(voucher, F_DUPFD_CLOEXEC, 3) };
	str_copy(creation->request_id, sizeof creation->request_id, request->id);
	creation->w->files = pair_list_copy(&creation->w->arena, &begin.files);
	if (begin.sha256)
		str_copy(creation->template_sha256, sizeof creation->template_sha256, begin.sha256);
	creation->w->has_state = has_state;
	share_join(&core->creations, access_caller(request, caller), &creation->share);
	share_add(&creation->share, 1);
	audit_create(request, creation->w);
	core_hold(creation->w);
	fiber_start(run_creation, creation);
	return creation->w;
}

/* ---- changes ---- */

static void on_updated(void *ctx, const struct error *err)
{
	waiter_call(ctx, NULL, err);
}

/* The pairs as they will be: those of `old` that `change` doesn't name, and those it sets. */
static int merge_pairs(struct core_workspace *w, const pair_list *old, const pair_list *change,
	size_t most, const char *noun, pair_list *pairs, struct error *err)
{
	*pairs = (pair_list){ 0 };
	for (size_t i = 0; i < old->count; i++) {
		bool is_named = false;
		for (size_t k = 0; k < change->count; k++)
			is_named |= !strcmp(change->items[k].key, old->items[i].key);
		if (!is_named)
			vec_push(&w->arena, pairs, old->items[i]);
	}
	for (size_t i = 0; i < change->count; i++) {
		const struct text_pair *pair = &change->items[i];
		if (pair->value)
			vec_push(&w->arena, pairs,
				(struct text_pair){ arena_text(&w->arena, pair->key),
					arena_text(&w->arena, pair->value) });
	}
	return pairs->count > most
		       ? fail(err, ERR_INVALID, "workspace '%s' would have more than %zu %s",
				 w->model.name, most, noun)
		       : 0;
}

static int change_labels(
	struct core_workspace *w, const pair_list *change, pair_list *labels, struct error *err)
{
	pair_list changed;
	return workspace_change_labels(&w->model, change, &w->arena, &changed, err) ||
			       merge_pairs(w, &w->model.labels, &changed, WORKSPACE_LABELS_MAX,
				       "labels", labels, err)
		       ? -1
		       : 0;
}

static int check_disk(
	const struct core_workspace *w, const struct limits *limits, struct error *err)
{
	if (limits->disk_bytes == w->model.limits.disk_bytes || workspace_counts_disk(&w->model))
		return 0;
	return fail_hint(err, ERR_CONFLICT, "create another workspace, and copy the files",
		"the disk limit of workspace '%s' is enforced by a %s, which can't be changed "
		"after creation",
		w->model.name, w->model.disk_mechanism);
}

/* Tightened at once; what needs other sockets inside needs a new sandbox, as limits do. */
static int change_network(struct core_workspace *w, const struct workspace_network_change *change,
	struct workspace_network *network, struct error *err)
{
	struct workspace_network next = w->model.network, copy;
	struct error ignored;
	if (change->has_mode)
		next.mode = change->mode;
	if (change->has_mode && workspace_network_mode(&next) == NETWORK_NONE)
		next.allow.count = next.deny.count = 0;
	if (change->has_allow)
		next.allow = change->allow;
	if (change->has_deny)
		next.deny = change->deny;
	/* Who allows a host of a workspace without a network wants a list. */
	if (!change->has_mode && change->has_allow && next.allow.count &&
		workspace_network_mode(&next) == NETWORK_NONE)
		next.mode = NULL;
	if (workspace_network_settle(&next, err) ||
		(networks_needs_restart(w, &next) && lifetime_release(w, err)))
		return -1;
	/* One that nobody uses has no need of its sockets any more. */
	if (workspace_network_mode(&next) == NETWORK_NONE)
		lifetime_release(w, &ignored);
	workspace_copy_network(&w->arena, &next, &copy);
	*network = copy;
	return 0;
}

/* The answer comes when the change is stored and new connections are judged by it. */
static void on_network_changed(void *ctx, struct core_workspace *w, const struct error *err)
{
	workspace_save(w, on_updated, ctx);
}

/* A principal that is bound to the workspace can't change what judges it. */
static int check_bound(const struct request *request, struct core_workspace *w,
	const struct workspace_change *change, struct error *err)
{
	char name[PRINCIPAL_NAME_SIZE];
	if (!access_is_bound(request))
		return 0;
	const char *what = change->has_settings || change->has_sources ? "policy"
			   : change->has_network		       ? "network"
			   : change->has_limits			       ? "limits"
								       : NULL;
	if (what)
		return fail(err, ERR_DENIED,
			"%s is bound to its workspace, and can't change its %s",
			access_name(request->principal, name), what);
	return change->has_env ? policies_judge_env(request, w, &change->env, err) : 0;
}

/* The policy as it will be. The mounts that file rules become are a sandbox's from its start on. */
static int change_policy(struct core_workspace *w, const struct workspace_change *change,
	struct workspace_policy *policy, struct error *err)
{
	struct workspace next = w->model;
	if (!change->has_settings && !change->has_sources)
		return 0;
	if (change->has_settings)
		next.policy.settings = change->settings;
	if (change->has_sources)
		next.policy.sources = change->sources;
	if (policies_check(w->core, &next, err) || lifetime_release(w, err))
		return -1;
	*policy = workspace_copy_policy(&w->arena, &next.policy);
	return 0;
}

void core_update(const struct request *request, struct core_workspace *w,
	const struct workspace_change *change, core_workspace_fn *done, void *ctx)
{
	struct core *core = w->core;
	struct error err;
	int failed = access_check(core, request, VERB_WORKSPACE_UPDATE, w, &err);
	if (!failed && w->model.state == WORKSPACE_DELETING)
		failed = fail(&err, ERR_CONFLICT, "workspace '%s' is being removed", w->model.name);
	struct limits limits = w->model.limits;
	struct workspace_network network = w->model.network;
	struct workspace_policy policy = w->model.policy;
	pair_list env = w->model.env, labels = w->model.labels;
	if (!failed)
		failed = check_bound(request, w, change, &err);
	if (!failed && change->has_env)
		failed = merge_pairs(
			w, &w->model.env, &change->env, WORKSPACE_ENV_MAX, "variables", &env, &err);
	if (!failed && change->has_limits)
		failed = limits_change(&limits, &change->limits, &err) ||
			 check_disk(w, &limits, &err) || lifetime_release(w, &err);
	if (!failed && change->has_network)
		failed = change_network(w, &change->network, &network, &err);
	if (!failed && change->has_labels)
		failed = change_labels(w, &change->labels, &labels, &err);
	if (!failed)
		failed = change_policy(w, change, &policy, &err);
	if (failed) {
		workspace_tidy(w);
		core_later(core, done, ctx, NULL, &err);
		return;
	}
	w->model.limits = limits;
	w->model.env = env;
	w->model.labels = labels;
	w->model.network = network;
	w->model.policy = policy;
	if (change->has_network || change->has_settings || change->has_sources)
		policies_forget(w);
	if (change->has_env || change->has_network || change->has_sources)
		execs_change_env(w);
	if (change->has_ttl) {
		w->model.ttl_ms = change->ttl_ms;
		w->model.expires_ms = change->ttl_ms ? clock_now_ms() + (int64_t)change->ttl_ms : 0;
		if (workspace_ttl_is_idle(&w->model))
			core_touch(w); /* from now on, also after a restart */
	}
	if (change->has_idle_timeout)
		w->model.idle_timeout_ms = change->idle_timeout_ms;
	lifetime_arm(w);
	journal_emit(&core->journal, "workspace.updated", w->model.id, w->model.name, NULL);
	struct core_waiter *waiter = waiter_new(done, ctx, w, NULL);
	if (change->has_network || change->has_settings || change->has_sources)
		networks_changed(w, on_network_changed, waiter);
	else
		workspace_save(w, on_updated, waiter);
}
