/* health_layers.c -- what lies below the trees of a workspace: its directories, the layers of its
 * environments, and frozen ones. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/packages/checkup.h"
#include "core/waits.h"
#include "core/tree_jobs.h"
#include "envs/kind.h"
#include "format/text/json_read.h"

#define VERDICT_MAX ((size_t)4 << 20)

/* ---- by a look ---- */

static void look_at_directory(struct checkup *c, const char *name)
{
	const struct core_workspace *w = c->w;
	char path[ID_LEN + 32];
	struct stat st;
	str_format(path, sizeof path, "%s/%s", w->model.id, name);
	if (fstatat(w->core->workspaces, path, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode))
		checkup_find(c, FINDING_TREE, name,
			"directory '%s' of the workspace is missing on disk", name);
}

static void look_at_part(struct checkup *c, const struct workspace_part *part)
{
	look_at_directory(c, part->upper);
	look_at_directory(c, part->work);
}

static void look_at_environment(struct checkup *c, size_t slot)
{
	const struct core *core = c->w->core;
	const char *known = c->w->model.environments.of[slot], *name;
	struct env_meta meta;
	struct error err;
	if (!known)
		return;
	if (env_resolve(&core->envs, known, &c->arena, &name, &err) ||
		env_read(&core->envs, name, &c->arena, &meta, &err) ||
		env_check(&core->envs, &meta, &err)) {
		checkup_find(c, FINDING_ENVIRONMENT, known, "%s", err.text);
		return;
	}
	look_at_part(c, env_kind_of(&meta)->part);
	c->health.layers += meta.layers.count;
}

void checkup_look_outside(struct checkup *c)
{
	const text_list *layers = &c->w->model.layers;
	look_at_part(c, &workspace_parts[PART_WORKSPACE]);
	for (size_t slot = 0; slot < ENV_KINDS; slot++)
		look_at_environment(c, slot);
	c->health.frozen_layers = layers->count;
	for (size_t i = 0; i < layers->count; i++) {
		const char *problem = layer_problem(c->w->core, layers->items[i]);
		/* A deep check compares a layer again, also if it is marked as damaged. */
		if (problem && !(c->is_deep && strcmp(problem, "missing")))
			checkup_find(c, FINDING_LAYER, layers->items[i], "layer '%s' is %s",
				layers->items[i], problem);
	}
}

/* ---- by the hashes of all files ---- */

static const struct json_value *read_verdict(int answer, struct arena *arena)
{
	char *text = arena_alloc(arena, VERDICT_MAX);
	struct json_value *value;
	struct error err;
	ssize_t len = pread(answer, text, VERDICT_MAX, 0);
	if (len <= 0 || json_read((struct str){ text, (size_t)len }, arena, &value, &err))
		return NULL;
	return value->kind == JSON_ARRAY ? value->first : value;
}

struct verification {
	struct fiber *fiber;
	int answer;
	struct arena *arena;
	const struct json_value *verdict;
};

static void on_verified(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct verification *v = ctx;
	struct error err;
	bool has_ended = packet && packet->head.type == LAUNCH_BUILT;
	if (has_ended)
		v->verdict = read_verdict(v->answer, v->arena);
	else
		launcher_failure(packet, &err);
	fiber_continue(v->fiber, has_ended ? NULL : &err);
}

int wait_verify(struct fiber *fiber, struct core *core, const char *name, bool repairs,
	struct arena *arena, const struct json_value **verdict, struct error *err)
{
	auto_close int answer = memfd_create("verdict", MFD_CLOEXEC);
	struct verification v = { .fiber = fiber, .answer = answer, .arena = arena };
	if (answer < 0)
		return fail(err, ERR_FAILED, "out of memory");
	if (!environment_verify(core, name, repairs, answer, on_verified, &v, err) ||
		fiber_wait(fiber, err))
		return -1;
	*verdict = v.verdict;
	return 0;
}

static bool is_found(const struct checkup *c, enum finding_kind kind, const char *object)
{
	for (size_t i = 0; i < c->found.count; i++)
		if (c->found.items[i].kind == kind && !strcmp(c->found.items[i].object, object))
			return true;
	return false;
}

static void not_checked(struct checkup *c, const char *why)
{
	checkup_find(c, FINDING_OTHER, NULL, "the layers could not be checked: %s", why);
}

static void verify_frozen(struct checkup *c)
{
	const text_list *layers = &c->w->model.layers;
	const struct json_value *answer = NULL;
	text_list names = { 0 };
	struct error err;
	c->health.is_deep = true;
	for (size_t i = 0; i < layers->count; i++)
		if (!is_found(c, FINDING_LAYER, layers->items[i]))
			vec_push(&c->arena, &names, layers->items[i]);
	if (!names.count)
		return;
	const struct tree_job_order order = { .verb = "verify",
		.names = names.items,
		.name_count = names.count,
		.input = -1,
		.output = -1 };
	if (wait_tree_job(c->fiber, c->w->core, &order, &answer, &err))
		not_checked(c, err.text);
	const struct json_value *list = json_member(answer, "layers");
	for (const struct json_value *at = list ? list->first : NULL; at; at = at->next) {
		const char *name = json_member_text(at, "name"),
			   *problem = json_member_text(at, "problem");
		if (name && problem && !is_found(c, FINDING_LAYER, name))
			checkup_find(
				c, FINDING_LAYER, name, "layer '%s' is damaged: %s", name, problem);
	}
}

static void read_findings(
	struct checkup *c, const char *environment, const struct json_value *verdict)
{
	if (!verdict) {
		not_checked(c, "`carrel env verify` printed no result");
		return;
	}
	const char *failure = json_member_text(json_member(verdict, "error"), "message");
	const struct json_value *list = json_member(verdict, "findings");
	if (failure)
		checkup_find(c, FINDING_ENVIRONMENT, environment, "environment '%s': %s",
			environment, failure);
	for (const struct json_value *at = list ? list->first : NULL; at; at = at->next) {
		const char *package = json_member_text(at, "package"),
			   *path = json_member_text(at, "path"),
			   *what = json_member_text(at, "what");
		checkup_find(c, FINDING_ENVIRONMENT, environment, "environment '%s': %s%s%s: %s",
			environment, package ? package : "layer", path && path[0] ? ": " : "",
			path ? path : "", what ? what : "damaged");
	}
}

void checkup_verify_layers(struct checkup *c)
{
	for (size_t slot = 0; slot < ENV_KINDS; slot++) {
		const char *name = arena_text(&c->arena, c->w->model.environments.of[slot]);
		const struct json_value *verdict;
		struct error err;
		if (!name || is_found(c, FINDING_ENVIRONMENT, name))
			continue;
		if (wait_verify(c->fiber, c->w->core, name, false, &c->arena, &verdict, &err))
			not_checked(c, err.text);
		else
			read_findings(c, name, verdict);
	}
	verify_frozen(c);
}
