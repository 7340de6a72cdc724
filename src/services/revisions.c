/* revisions.c -- the revisions of deployments: made, compared, ended. */
#include "services/deployment_internal.h"

struct revision_state *revision_new(struct deployment_state *d, const struct revision *model)
{
	struct revision_state *r = xzalloc(sizeof *r);
	r->deployment = d;
	arena_init(&r->arena);
	r->model = *model;
	record_copy_texts(&revision_record, &r->arena, &r->model);
	for (int i = 0; i < SURFACE_COUNT; i++) {
		r->surfaces[i].revision = r;
		r->surfaces[i].kind = (enum surface_kind)i;
	}
	return r;
}

const struct request *revision_request(const struct revision_state *r, struct arena *arena)
{
	return access_agent_of(arena_printf(arena, "of deployment %s", r->deployment->name),
		r->model.caller ? r->model.caller : "system", SCOPE_READ | SCOPE_USE, arena);
}

void revision_drop_workspace(const struct revision_state *r, const char *id)
{
	auto_arena struct arena arena = { 0 };
	desk_drop(revision_request(r, &arena), r->deployment->all->service.core, id);
}

/* Whether a revision but `r` has that layer. */
static bool is_shared(const struct deployments *all, const struct revision_state *r)
{
	for (const struct deployment_state *d = all->newest; d; d = d->older) {
		const struct revision_state *each[] = { d->live, d->next, d->previous };
		for (int i = 0; i < 3; i++)
			if (each[i] && each[i] != r && each[i]->model.layer &&
				!strcmp(each[i]->model.layer, r->model.layer))
				return true;
	}
	return false;
}

void revision_free_unused(struct revision_state *r)
{
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (r->surfaces[i].uses)
			return;
	arena_done(&r->arena);
	free(r);
}

void revision_free(struct revision_state *r)
{
	for (int i = 0; i < SURFACE_COUNT; i++)
		surface_stop(&r->surfaces[i]);
	if (r->drain)
		fiber_cancel(r->drain);
	if (r->rollout)
		fiber_cancel(r->rollout->fiber);
	r->is_ended = true;
	revision_free_unused(r);
}

void revision_end(struct revision_state *r)
{
	struct deployment_state *d = r->deployment;
	struct revision_state **const slots[] = { &d->live, &d->next, &d->previous };
	r->is_canceled = true;
	if (r->rollout) { /* which comes back here at its end */
		fiber_cancel(r->rollout->fiber);
		return;
	}
	for (int i = 0; i < SURFACE_COUNT; i++) {
		surface_stop(&r->surfaces[i]);
		if (r->model.surfaces[i].workspace)
			revision_drop_workspace(r, r->model.surfaces[i].workspace);
	}
	if (r->model.layer && !is_shared(d->all, r))
		revision_drop_workspace(r, r->model.layer);
	for (int i = 0; i < 3; i++)
		if (*slots[i] == r)
			*slots[i] = NULL;
	revision_free(r);
	if (d->is_removed && !d->live && !d->next && !d->previous)
		deployment_free(d);
}

bool revision_is_healthy(const struct revision_state *r)
{
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (r->agent.surfaces[i].is_there && r->surfaces[i].status != SURFACE_HEALTHY)
			return false;
	return true;
}

const struct revision *revision_of_package(const struct deployments *all, const char *sha256)
{
	for (const struct deployment_state *d = all->newest; d; d = d->older) {
		const struct revision_state *each[] = { d->live, d->previous, d->next };
		for (int i = 0; i < 3; i++)
			if (each[i] && each[i]->model.snapshot && !each[i]->is_canceled &&
				each[i]->model.sha256 && !strcmp(each[i]->model.sha256, sha256))
				return &each[i]->model;
	}
	return NULL;
}
