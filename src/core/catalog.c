#include <string.h>
#include "base/clock.h"
#include "core/catalog.h"
#include "core/internal.h"
#include "envs/store.h"
#include "plan/launch.h"

#define LEVELS_FRESH_MS 1000
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

/* As `carrel env ls -o json` has it, without what is the host's business. */
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
	json_text(j, "python_version", meta->python_version);
	json_object(j, "installed_packages");
	for (size_t i = 0; i < meta->packages.count; i++)
		json_text(j, meta->packages.items[i].name, meta->packages.items[i].version);
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

int core_print_environment_metrics(
	const struct request *request, struct core *core, struct buf *out, struct error *err)
{
	/* The seed's name of this gauge ends as a histogram's count does; checkers take that only
	 * from a metric without a type. */
	static const char typed[] = "# TYPE par_venv_count gauge\n",
			  untyped[] = "# TYPE par_venv_count untyped\n";
	auto_buf struct buf text;

	buf_init(&text, BUF_MAX_DEFAULT);
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

void catalog_init(struct catalog *catalog, struct core *core)
{
	*catalog = (struct catalog){ .core = core };
}

void catalog_forget(struct catalog *catalog, struct catalog_waiter *waiter)
{
	for (struct catalog_waiter **at = &catalog->waiters; *at; at = &(*at)->next)
		if (*at == waiter) {
			*at = waiter->next;
			break;
		}
	loop_cancel(catalog->core->loop, waiter->timer);
	waiter->timer = NULL;
}

static void tell(struct catalog *catalog, struct catalog_waiter *waiter)
{
	catalog_forget(catalog, waiter);
	waiter->fn(waiter->ctx, catalog->known_ms ? &catalog->levels : NULL);
}

static void on_late(struct loop *loop, void *ctx)
{
	struct catalog_waiter *waiter = ctx;

	waiter->timer = NULL;
	tell(waiter->catalog, waiter);
}

static void on_stats(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct catalog *catalog = ctx;

	catalog->is_asked = false;
	if (packet && packet->head.type == LAUNCH_STATS_ARE) {
		const struct launch_stats *s = &packet->head.stats;

		catalog->levels = (struct core_levels){ s->sandboxes, s->netns_ready,
			s->cgroups_ready, s->starting, s->started, s->failed, s->netns_missed,
			s->cgroups_missed };
		catalog->known_ms = clock_monotonic_ms();
	}
	while (catalog->waiters)
		tell(catalog, catalog->waiters);
}

int catalog_ask(const struct request *request, struct catalog *catalog,
	struct catalog_waiter *waiter, struct error *err)
{
	struct launch_message head = { .type = LAUNCH_STATS };
	bool is_fresh =
		catalog->known_ms && clock_monotonic_ms() - catalog->known_ms < LEVELS_FRESH_MS;

	if (access_check(catalog->core, request, VERB_DAEMON_MEASURE, NULL, err))
		return -1;
	waiter->catalog = catalog;
	waiter->next = catalog->waiters;
	catalog->waiters = waiter;
	waiter->timer =
		loop_after(catalog->core->loop, is_fresh ? 0 : LEVELS_WAIT_MS, on_late, waiter);
	if (is_fresh || catalog->is_asked)
		return 0;
	catalog->is_asked = true;
	launcher_ask(&catalog->core->launcher, &head, NULL, 0, NULL, 0, on_stats, catalog);
	return 0;
}
