#include "core/access/approvals.h"
#include "core/access/internal.h"
#include "core/access/policies.h"
#include "core/access/tokens.h"
#include "core/access/webhooks.h"

void access_open(struct core *core, const struct core_options *options)
{
	struct access *access = xzalloc(sizeof *access);
	core->access = access;
	memcpy(access->uids, options->uids, sizeof access->uids);
	access->uid_count = options->uid_count;
	access->approval_ttl_ms =
		options->approval_ttl_ms ? options->approval_ttl_ms : APPROVAL_TTL_DEFAULT_MS;
	access->approvals_self = options->approvals_self;
	access->boot = arena_text(&core->arena, options->boot ? options->boot : "");
	map_init(&access->tokens, NULL);
	map_init(&access->approvals, NULL);
	map_init(&access->compiled.by_key, NULL);
	if (options->has_webhook)
		webhooks_open(core);
}

void access_close(struct core *core)
{
	webhooks_close(core);
	approvals_done(core);
	tokens_done(core);
	map_done(&core->access->tokens);
	map_done(&core->access->approvals);
	policies_close(core);
	free(core->access);
	core->access = NULL;
}
