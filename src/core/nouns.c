#include "core/nouns.h"

#include "core/internal.h"

int core_check(const struct request *request, struct core *core, enum verb verb,
	const struct core_workspace *w, struct error *err)
{
	return access_check(core, request, verb, w, err);
}

const struct request *core_system(void)
{
	return &request_system;
}

void core_put(struct core *core, const struct store_table *table, const void *object,
	store_done_fn *done, void *ctx)
{
	store_put(core->store, table, object, done, ctx);
}

void core_drop(struct core *core, const struct store_table *table, const char *id,
	store_done_fn *done, void *ctx)
{
	store_remove(core->store, table, id, NULL, done, ctx);
}

struct journal *core_journal(struct core *core)
{
	return &core->journal;
}

struct loop *core_loop(const struct core *core)
{
	return core->loop;
}

const struct log *core_log(const struct core *core)
{
	return &core->log;
}

bool core_is_stopping(const struct core *core)
{
	return core->is_stopping;
}
