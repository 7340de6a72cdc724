#include "envs/kind.h"
#include "core/catalog.h"
#include "core/internal.h"
#include "envs/store.h"
#include "sandbox/plan/launch.h"

#define LEVELS_WAIT_MS 250

int core_check_serving(struct core *core, struct error *err)
{
	if (core->is_stopping)
		return fail(err, ERR_UNAVAILABLE, "the daemon is stopping");
	return 0;
}

int core_check_ready(struct core *core, struct error *err)
{
	struct error why = { 0 };

	if (core_check_serving(core, err))
		return -1;
	if (store_is_failing(core->store, &why))
		return fail_hint(
			err, ERR_UNAVAILABLE, why.hint, "the state can't be written: %s", why.text);
	return 0;
}

/* ---- environments ---- */

/* As `carrel env ls -o json`, without fields that concern only the host. */
static void print_environment(struct json *j, const struct env_row *row)
{
	const struct env_meta *meta = &row->meta;

	json_object(j, NULL);
	json_text(j, "name", meta->name);
	json_text(j, "package_id", meta->package_id);
	json_text(j, "state", row->problem ? "corrupt" : "ready");
	json_text(j, "created_at", meta->created_at);
	json_text(j, "last_used_at", meta->last_used_at);
	json_u64(j, "use_count", meta->use_count);
	json_u64(j, "size_bytes", meta->size_bytes);
	json_text(j, "kind", env_kind_row_of(meta)->name);
	json_text(j, "python_version", meta->python_version);
	json_text(j, "node_version", meta->node_version);
	json_object(j, "installed_packages");
	for (size_t i = 0; i < meta->packages.count; i++)
		json_text(j, meta->packages.items[i].key, meta->packages.items[i].value);
	json_end(j);
	json_bool(j, "in_use", row->is_in_use);
	json_text(j, "problem", row->problem);
	json_end(j);
}

int core_print_environments(const struct request *request, struct core *core, const char *cursor,
	size_t limit, struct arena *arena, struct json *j, const char **next, struct error *err)
{
	env_rows rows = { 0 };
	size_t at = 0, count = 0;

	if (access_check(core, request, VERB_ENVIRONMENT_LIST, NULL, err) ||
		env_list(&core->envs, arena, &rows, err))
		return -1;
	while (cursor && at < rows.count && strcmp(rows.items[at].meta.name, cursor) <= 0)
		at++;
	for (; at < rows.count && count < limit; at++, count++)
		print_environment(j, &rows.items[at]);
	*next = at < rows.count && count > 0 ? rows.items[at - 1].meta.name : NULL;
	return 0;
}

int core_environment(const struct request *request, struct core *core, const char *name,
	struct arena *arena, struct env_meta *meta, struct error *err)
{
	return access_check(core, request, VERB_ENVIRONMENT_LIST, NULL, err) ||
			       env_read(&core->envs, name, arena, meta, err)
		       ? -1
		       : 0;
}

int core_print_environment_metrics(
	const struct request *request, struct core *core, struct buf *out, struct error *err)
{
	/* The seed's name of this gauge ends as a histogram's count does; checkers take that only
	 * from a metric without a type. */
	static const char typed[] = "# TYPE par_venv_count gauge\n",
			  untyped[] = "# TYPE par_venv_count untyped\n";

	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	if (access_check(core, request, VERB_DAEMON_MEASURE, NULL, err) ||
		env_metrics_print(&core->envs, &text, err))
		return -1;
	const char *at = strstr(text.data, typed);
	size_t before = at ? (size_t)(at - text.data) : text.len;
	buf_append(out, text.data, before);
	if (at) {
		buf_text(out, untyped);
		buf_text(out, at + strlen(typed));
	}
	return 0;
}

/* ---- the launcher's levels ---- */

struct core_question {
	struct core *core;
	struct loop_timer *timer;
	uint64_t tag;
	core_levels_fn *fn;
	void *ctx;
};

void core_forget_levels(struct core_question *question)
{
	loop_cancel(question->core->loop, question->timer);
	launcher_forget(&question->core->launcher, question->tag);
	free(question);
}

static void tell(struct core_question *question, const struct core_levels *levels)
{
	core_levels_fn *fn = question->fn;
	void *ctx = question->ctx;

	core_forget_levels(question);
	fn(ctx, levels);
}

static void on_late(struct loop *loop, void *ctx)
{
	struct core_question *question = ctx;

	question->timer = NULL;
	tell(question, NULL);
}

static void on_stats(void *ctx, const struct launch_packet *packet, const int *fds)
{
	const struct launch_stats *s = packet ? &packet->head.stats : NULL;

	if (packet && packet->head.type == LAUNCH_STATS_ARE)
		tell(ctx, &(struct core_levels){ s->sandboxes, s->netns_ready, s->cgroups_ready,
				  s->starting, s->netns_missed, s->cgroups_missed });
	else
		tell(ctx, NULL);
}

int core_ask_levels(const struct request *request, struct core *core, core_levels_fn *fn, void *ctx,
	struct core_question **question, struct error *err)
{
	struct launch_message head = { .type = LAUNCH_STATS };

	if (access_check(core, request, VERB_DAEMON_MEASURE, NULL, err))
		return -1;
	struct core_question *made = xzalloc(sizeof *made);
	*made = (struct core_question){ .core = core, .fn = fn, .ctx = ctx };
	made->timer = loop_after(core->loop, LEVELS_WAIT_MS, on_late, made);
	made->tag = launcher_ask(&core->launcher, &head, NULL, 0, NULL, 0, on_stats, made);
	*question = made;
	return 0;
}
