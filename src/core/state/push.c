#include "core/state/push.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "core/internal.h"
#include "core/transfers.h"

struct push {
	struct cancelable cancelable;
	struct core *core;
	struct arena arena;
	struct snapshot model; /* its layers are held */
	bool force;
	char request_id[ID_LEN + 1];
	pushed_layers layers;
	size_t at; /* the layer that is looked at */
	struct push_result result;
	struct error err;
	core_push_fn *done;
	void *ctx;
};

static void finish(struct push *push, const struct error *err)
{
	cancelable_done(&push->cancelable);
	layers_release_all(push->core, &push->model.layers);
	layers_sweep(push->core);
	push->done(push->ctx, err ? NULL : &push->result, err);
	arena_done(&push->arena);
	free(push);
}

static void fail_with(struct push *push, const struct error *err)
{
	struct error why = *err;
	error_context(&why, "push snapshot '%s'", push->model.id);
	finish(push, &why);
}

static void on_refused(void *ctx, struct core_workspace *w, const struct error *err)
{
	finish(ctx, err);
}

/* ---- the manifest ---- */

static void on_manifest(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct push *push = ctx;
	char bytes[24];
	if (err) {
		fail_with(push, err);
		return;
	}
	str_format(bytes, sizeof bytes, "%llu", (unsigned long long)push->result.sent_bytes);
	journal_emit(&push->core->journal, "snapshot.pushed", push->model.workspace,
		push->model.workspace_name, "snapshot", push->model.id, "#sent_bytes", bytes, NULL);
	fault_point("core_push_answer");
	finish(push, NULL);
}

static void send_manifest(struct push *push)
{
	auto_buf struct buf text = buf_empty(PUSHED_MANIFEST_MAX);
	auto_close int memory = memfd_create("manifest", MFD_CLOEXEC);
	struct error err;
	pushed_print(&push->model, &push->layers, &text);
	if (text.overflow) {
		fail(&err, ERR_LIMIT, "the manifest is too long");
		fail_with(push, &err);
		return;
	}
	if (memory < 0 || fd_write_full(memory, text.data, text.len) != (ssize_t)text.len ||
		lseek(memory, 0, SEEK_SET) < 0) {
		fail_errno(&err, "keep the manifest in memory");
		fail_with(push, &err);
		return;
	}
	struct blob_order order = { .verb = BLOB_PUT,
		.key = push->result.key,
		.words = blob_words_none(),
		.data = memory,
		.request_id = push->request_id,
		.owner = &push->cancelable };
	order.words.size = text.len;
	fault_point("core_push_manifest");
	blob_job_start(push->core, &order, on_manifest, push);
}

/* ---- one layer after the other, the lowest first ---- */

static void look_at_next(struct push *push);

static void on_sent(void *ctx, const struct json_value *tree, const struct json_value *blob,
	const struct error *err)
{
	struct push *push = ctx;
	struct pushed_layer *layer = &push->layers.items[push->at];
	struct error why;
	if (!err && !json_member_u64(blob, "size", &layer->size_bytes)) {
		fail(&why, ERR_FAILED, "the answer of the blob store is incomplete");
		err = &why;
	}
	if (err) {
		fail_with(push, err);
		return;
	}
	push->result.sent_layers++;
	push->result.sent_bytes += layer->size_bytes;
	fault_point("core_push_layer");
	look_at_next(push);
}

static void on_verified(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct push *push = ctx;
	const char *name = push->model.layers.items[push->at];
	const char *id = push->layers.items[push->at].content_id;
	const struct json_value *layers = json_member(answer, "layers"),
				*first = layers ? layers->first : NULL;
	const char *problem = json_member_text(first, "problem"),
		   *found = json_member_text(first, "content_id");
	struct error why;
	if (!err && (problem || !found || strcmp(found, id) != 0)) {
		fail_hint(&why, ERR_CORRUPT, "carrel snapshot verify names what is wrong",
			"layer '%s' is damaged: %s", name, problem ? problem : "changed");
		err = &why;
	}
	if (err) {
		fail_with(push, err);
		return;
	}
	const struct tree_job_order tree = { .verb = "pack",
		.names = &name,
		.name_count = 1,
		.input = -1,
		.request_id = push->request_id,
		.owner = &push->cancelable };
	struct blob_order blob = { .verb = BLOB_PUT,
		.key = pushed_layer_key(id, &push->arena),
		.words = blob_words_none(),
		.request_id = push->request_id,
		.owner = &push->cancelable };
	blob.words.is_zstd = true;
	transfer_start(push->core, &tree, &blob, on_sent, push);
}

static void on_looked(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct push *push = ctx;
	struct pushed_layer *layer = &push->layers.items[push->at];
	if (!err && json_member_u64(answer, "size", &layer->size_bytes)) {
		look_at_next(push);
		return;
	}
	if (err && err->code != ERR_NOT_FOUND) {
		fail_with(push, err);
		return;
	}
	const struct tree_job_order order = { .verb = "verify",
		.names = &push->model.layers.items[push->at],
		.name_count = 1,
		.input = -1,
		.output = -1,
		.request_id = push->request_id,
		.owner = &push->cancelable };
	tree_job_start(push->core, &order, on_verified, push);
}

static void look_at_next(struct push *push)
{
	if (push->at == 0) {
		send_manifest(push);
		return;
	}
	push->at--;
	if (push->force) {
		static const struct error missing = { .code = ERR_NOT_FOUND };
		on_looked(push, NULL, &missing);
		return;
	}
	struct blob_order order = { .verb = BLOB_HEAD,
		.key = pushed_layer_key(push->layers.items[push->at].content_id, &push->arena),
		.words = blob_words_none(),
		.data = -1,
		.request_id = push->request_id,
		.owner = &push->cancelable };
	blob_job_start(push->core, &order, on_looked, push);
}

static void on_hashed(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct push *push = ctx;
	const struct json_value *layers = json_member(answer, "layers");
	struct error why;
	for (const struct json_value *at = layers ? layers->first : NULL; at; at = at->next) {
		const char *id = json_member_text(at, "content_id");
		struct pushed_layer layer = { arena_text(&push->arena, id ? id : ""), 0 };
		vec_push(&push->arena, &push->layers, layer);
	}
	if (!err && push->layers.count != push->model.layers.count) {
		fail(&why, ERR_FAILED, "the answer about its layers is incomplete");
		err = &why;
	}
	if (err) {
		fail_with(push, err);
		return;
	}
	push->at = push->result.layers = push->layers.count;
	fault_point("core_push_begin");
	look_at_next(push);
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
	if (access_check(core, request, VERB_SNAPSHOT_PUSH, w, &push->err) ||
		snapshot_of(request, w, wanted->snapshot, &s, &push->err)) {
		core_later(core, on_refused, push, NULL, &push->err);
		return &push->cancelable;
	}
	snapshot_copy_model(&push->arena, &s->model, &push->model);
	layers_hold_all(core, &push->model.layers);
	cancelable_use(&push->cancelable, w, "a snapshot of it is being sent to the blob store");
	push->result = (struct push_result){ .snapshot = push->model.id,
		.workspace = push->model.workspace_name,
		.key = pushed_key(&push->model, &push->arena) };
	if (!push->model.layers.count) {
		send_manifest(push);
		return &push->cancelable;
	}
	const struct tree_job_order order = { .verb = "hash",
		.names = push->model.layers.items,
		.name_count = push->model.layers.count,
		.input = -1,
		.output = -1,
		.request_id = push->request_id,
		.owner = &push->cancelable };
	tree_job_start(core, &order, on_hashed, push);
	return &push->cancelable;
}
