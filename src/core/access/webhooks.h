/* webhooks.h -- tells the operator's webhook (approvals.webhook) what becomes of approvals.
 * 1. Core has no network: each call is made by carrel-blob, which the launcher starts with the URL
 * and the secret of the configuration. Core knows neither.
 * 2. A call that fails is repeated with growing pauses, WEBHOOK_ATTEMPTS times. A server that hangs
 * or fails delays nothing but later calls. At most WEBHOOKS_MAX calls wait: more are left out, and
 * the log says so. None outlives core. */
#pragma once
#include "core/core.h"
#include "model/nouns/approval.h"

#define WEBHOOK_ATTEMPTS 7
#define WEBHOOKS_MAX 256

void webhooks_open(struct core *core);
void webhooks_close(struct core *core);
/* type: of the event. Does nothing when no webhook is configured. */
void webhook_send(struct core *core, const char *type, const struct approval *approval);
