/* snapshot_content.c -- what is found out of snapshots after they were made: sizes and content ids,
 * one after the other in the background; and whether their layers are as they were. */
#include "core/state/internal.h"
#include "core/state/snapshots.h"
#include "core/tree_jobs.h"

static void save(struct core_snapshot *s)
{
	store_put(s->core->store, &store_snapshots, &s->model, NULL, NULL);
}

/* The only layer that the answer is about. */
static const struct json_value *first_layer(const struct json_value *answer)
{
	const struct json_value *layers = json_member(answer, "layers");
	return layers && layers->kind == JSON_ARRAY ? layers->first : NULL;
}

static void set_content_id(struct core_snapshot *s, const char *id)
{
	s->model.content_id = arena_text(&s->arena, id);
	save(s);
}

/* ---- in the background ---- */

struct inquiry {
	struct core *core;
	char id[ID_LEN + 1];
};

static void end(struct inquiry *inquiry, struct core_snapshot *s, const struct error *err)
{
	struct core *core = inquiry->core;
	core->state->inquiry = NULL;
	free(inquiry);
	if (s && err) { /* not again before the next start */
		s->is_unexamined = true;
		log_record(&core->log, LOG_LEVEL_WARN, "a snapshot can't be examined", "snapshot",
			s->model.id, "error", err->text, NULL);
	}
	snapshots_examine(core);
}

static void on_measured(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct inquiry *inquiry = ctx;
	struct core_snapshot *s = map_get(&inquiry->core->state->snapshots, str_from(inquiry->id));
	uint64_t bytes;
	if (!err && s && json_member_u64(first_layer(answer), "bytes", &bytes)) {
		s->model.size_bytes = bytes;
		s->model.has_size = true;
		save(s);
	}
	end(inquiry, s, err);
}

static void on_hashed(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct inquiry *inquiry = ctx;
	struct core_snapshot *s = map_get(&inquiry->core->state->snapshots, str_from(inquiry->id));
	const char *id = err ? NULL : json_member_text(first_layer(answer), "content_id");
	if (s && id)
		set_content_id(s, id);
	end(inquiry, s, err);
}

static void examine(struct core_snapshot *s)
{
	struct inquiry *inquiry = xzalloc(sizeof *inquiry);
	const struct tree_job_order order = { .verb = s->model.has_size ? "hash" : "measure",
		.names = s->model.layers.items,
		.name_count = 1,
		.input = -1,
		.output = -1 };
	inquiry->core = s->core;
	memcpy(inquiry->id, s->model.id, sizeof inquiry->id);
	s->core->state->inquiry = inquiry;
	tree_job_start(s->core, &order, s->model.has_size ? on_hashed : on_measured, inquiry);
}

void snapshots_examine(struct core *core)
{
	for (struct core_snapshot *s = core->state->newest_snapshot;
		s && !core->state->inquiry && !core->is_stopping; s = s->older)
		if (s->model.layers.count && !s->is_unexamined &&
			(!s->model.has_size || !s->model.content_id))
			examine(s);
}

void inquiries_done(struct core *core)
{
	free(core->state->inquiry);
}

/* ---- verify ---- */

struct verification {
	struct core *core;
	struct arena arena;
	char id[ID_LEN + 1];
	core_snapshot_verdict_fn *done;
	void *ctx;
};

static void look_at(struct verification *v, struct core_snapshot *s, const struct json_value *found,
	struct core_snapshot_verdict *verdict)
{
	const char *name = json_member_text(found, "name"),
		   *id = json_member_text(found, "content_id");
	struct core_layer_verdict layer = { .name = name ? name : "",
		.problem = json_member_text(found, "problem") };
	bool is_top = s && !strcmp(layer.name, s->model.layers.items[0]);
	if (!layer.problem && is_top && s->model.content_id && id &&
		strcmp(id, s->model.content_id) != 0)
		layer.problem = "changed";
	if (!layer.problem)
		layer.content_id = id;
	if (!layer.problem && is_top && !s->model.content_id && id)
		set_content_id(s, id);
	verdict->ok &= !layer.problem;
	vec_push(&v->arena, &verdict->layers, layer);
}

static void on_verified(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct verification *v = ctx;
	struct core_snapshot *s = map_get(&v->core->state->snapshots, str_from(v->id));
	struct core_snapshot_verdict verdict = { .snapshot = v->id, .ok = true };
	for (const struct json_value *at = err ? NULL : first_layer(answer); at; at = at->next)
		look_at(v, s, at, &verdict);
	v->done(v->ctx, err ? NULL : &verdict, err);
	arena_done(&v->arena);
	free(v);
}

int core_snapshot_verify(const struct request *request, struct core_snapshot *s,
	core_snapshot_verdict_fn *done, void *ctx, struct error *err)
{
	struct core *core = s->core;
	if (access_check(core, request, VERB_SNAPSHOT_VERIFY,
		    map_get(&core->ids, str_from(s->model.workspace)), err))
		return -1;
	struct verification *v = xzalloc(sizeof *v);
	*v = (struct verification){ .core = core, .done = done, .ctx = ctx };
	arena_init(&v->arena);
	memcpy(v->id, s->model.id, sizeof v->id);
	const struct tree_job_order order = { .verb = "verify",
		.names = s->model.layers.items,
		.name_count = s->model.layers.count,
		.input = -1,
		.output = -1,
		.request_id = request->id };
	tree_job_start(core, &order, on_verified, v);
	return 0;
}
