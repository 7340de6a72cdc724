#include "core/state/push.h"

#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "core/state/internal.h"
#include "core/waits.h"

struct push {
	struct cancelable cancelable;
	struct core *core;
	struct arena arena;
	struct snapshot model; /* its layers are held */
	bool force;
	char request_id[ID_LEN + 1];
	pushed_layers layers;
	struct push_result result;
	struct error refused; /* code ERR_NONE: it may be made */
	core_push_fn *done;
	void *ctx;
};

static struct tree_job_order job_over(
	const struct push *push, const char *verb, const char *const *names, size_t count)
{
	return (struct tree_job_order){ .verb = verb,
		.names = names,
		.name_count = count,
		.input = -1,
		.output = -1,
		.request_id = push->request_id,
		.owner = &push->cancelable };
}

static struct blob_order operation_on(const struct push *push, enum blob_verb verb, const char *key)
{
	return blob_order_make(verb, key, push->request_id, &push->cancelable);
}

static int hash_layers(struct fiber *fiber, struct push *push, struct error *err)
{
	const text_list *names = &push->model.layers;
	const struct tree_job_order order = job_over(push, "hash", names->items, names->count);
	const struct json_value *answer;
	if (wait_tree_job(fiber, push->core, &order, &answer, err))
		return -1;
	const struct json_value *layers = json_member(answer, "layers");
	for (const struct json_value *at = layers ? layers->first : NULL; at; at = at->next) {
		const char *id = json_member_text(at, "content_id");
		struct pushed_layer layer = { arena_text(&push->arena, id ? id : ""), 0 };
		vec_push(&push->arena, &push->layers, layer);
	}
	push->result.layers = push->layers.count;
	return push->layers.count == names->count
		       ? 0
		       : fail(err, ERR_FAILED, "the answer about its layers is incomplete");
}

/* 1: the store has it. */
static int find_layer(
	struct fiber *fiber, struct push *push, struct pushed_layer *layer, struct error *err)
{
	const char *key = pushed_layer_key(layer->content_id, &push->arena);
	const struct blob_order order = operation_on(push, BLOB_HEAD, key);
	const struct json_value *answer;
	if (push->force)
		return 0;
	if (wait_blob_job(fiber, push->core, &order, &answer, err))
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	return json_member_u64(answer, "size", &layer->size_bytes);
}

static int verify_layer(struct fiber *fiber, struct push *push, const char *name,
	const char *content_id, struct error *err)
{
	const struct tree_job_order order = job_over(push, "verify", &name, 1);
	const struct json_value *answer;
	if (wait_tree_job(fiber, push->core, &order, &answer, err))
		return -1;
	const struct json_value *layers = json_member(answer, "layers"),
				*first = layers ? layers->first : NULL;
	const char *problem = json_member_text(first, "problem"),
		   *found = json_member_text(first, "content_id");
	return problem || !found || strcmp(found, content_id) != 0
		       ? fail_hint(err, ERR_CORRUPT, "carrel snapshot verify names what is wrong",
				 "layer '%s' is damaged: %s", name, problem ? problem : "changed")
		       : 0;
}

static int send_layer(struct fiber *fiber, struct push *push, const char *name,
	struct pushed_layer *layer, struct error *err)
{
	const struct tree_job_order tree = job_over(push, "pack", &name, 1);
	struct blob_order blob =
		operation_on(push, BLOB_PUT, pushed_layer_key(layer->content_id, &push->arena));
	const struct json_value *answer;
	blob.words.is_zstd = true;
	if (verify_layer(fiber, push, name, layer->content_id, err) ||
		wait_transfer(fiber, push->core, &tree, &blob, NULL, &answer, err))
		return -1;
	if (!json_member_u64(answer, "size", &layer->size_bytes))
		return fail(err, ERR_FAILED, "the answer of the blob store is incomplete");
	push->result.sent_layers++;
	push->result.sent_bytes += layer->size_bytes;
	fault_point("core_push_layer");
	return 0;
}

static int send_manifest(struct fiber *fiber, struct push *push, struct error *err)
{
	auto_buf struct buf text = buf_empty(PUSHED_MANIFEST_MAX);
	const struct json_value *answer;
	pushed_print(&push->model, &push->layers, &text);
	if (text.overflow)
		return fail(err, ERR_LIMIT, "the manifest is too long");
	auto_close int memory = file_in_memory("manifest", (struct str){ text.data, text.len });
	if (memory < 0)
		return fail_errno(err, "keep the manifest in memory");
	struct blob_order order = operation_on(push, BLOB_PUT, push->result.key);
	order.data = memory;
	order.words.size = text.len;
	fault_point("core_push_manifest");
	return wait_blob_job(fiber, push->core, &order, &answer, err);
}

static int push_snapshot(struct fiber *fiber, struct push *push, struct error *err)
{
	const text_list *names = &push->model.layers;
	char bytes[24];
	if (names->count && hash_layers(fiber, push, err))
		return -1;
	fault_point("core_push_begin");
	for (size_t i = names->count; i-- > 0;) { /* the lowest first */
		struct pushed_layer *layer = &push->layers.items[i];
		int found = find_layer(fiber, push, layer, err);
		if (found < 0 || (!found && send_layer(fiber, push, names->items[i], layer, err)))
			return -1;
	}
	if (send_manifest(fiber, push, err))
		return -1;
	str_format(bytes, sizeof bytes, "%llu", (unsigned long long)push->result.sent_bytes);
	journal_emit(&push->core->journal, "snapshot.pushed", push->model.workspace,
		push->model.workspace_name, "snapshot", push->model.id, "#sent_bytes", bytes, NULL);
	fault_point("core_push_answer");
	return 0;
}

static void run_push(struct fiber *fiber, void *ctx)
{
	struct push *push = ctx;
	struct error err = push->refused;
	int failed = push->refused.code != 0;
	/* Also where it would fail before its first job: its caller keeps a handle. */
	wait_turn(fiber, push->core);
	if (!failed && push_snapshot(fiber, push, &err))
		failed = error_context(&err, "push snapshot '%s'", push->model.id);
	cancelable_done(&push->cancelable);
	layers_release_all(push->core, &push->model.layers);
	layers_sweep(push->core);
	push->done(push->ctx, failed ? NULL : &push->result, failed ? &err : NULL);
	arena_done(&push->arena);
	free(push);
}

struct cancelable *core_snapshot_push(const struct request *request, struct core_workspace *w,
	const struct push_wanted *wanted, core_push_fn *done, void *ctx)
{
	struct core *core = w->core;
	struct push *push = xzalloc(sizeof *push);
	struct core_snapshot *s;
	*push = (struct push){ .cancelable.core = core,
		.core = core,
		.force = wanted->force,
		.done = done,
		.ctx = ctx };
	str_copy(push->request_id, sizeof push->request_id, request->id);
	if (!access_check(core, request, VERB_SNAPSHOT_PUSH, w, &push->refused) &&
		!snapshot_of(request, w, wanted->snapshot, &s, &push->refused)) {
		snapshot_copy_model(&push->arena, &s->model, &push->model);
		layers_hold_all(core, &push->model.layers);
		cancelable_use(
			&push->cancelable, w, "a snapshot of it is being sent to the blob store");
		push->result = (struct push_result){ .snapshot = push->model.id,
			.workspace = push->model.workspace_name,
			.key = pushed_key(&push->model, &push->arena) };
	}
	fiber_start(run_push, push);
	return &push->cancelable;
}
