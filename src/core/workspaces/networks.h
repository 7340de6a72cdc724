/* networks.h -- the networks of sandboxes: core holds a policy of the egress role for each sandbox
 * that has one, and tells what was decided.
 * 1. The sockets that lead out of a sandbox are kept by its carrel-init. Core asks for them, hands
 * them to the role, and keeps none: after its own restart, or the role's, it asks again.
 * 2. Until a policy is open nobody serves the sockets: the network is closed, and what connects
 * meanwhile waits.
 * 3. The rules of a policy are those of the workspace's record, within what its policies let be
 * reached (policies_bounds). A change replaces them whole, holds
 * for new connections, and has taken effect when networks_changed calls back.
 * 4. What egress says is believed for counters and records only. */
#pragma once
#include "core/core.h"
#include "egress/egress.h"
#include "model/settings/network_settings.h"
#include "sandbox/native/init_client.h"
#include "sandbox/plan/launch.h"

/* What all sandboxes share. */
struct networks {
	struct core *core;
	struct network_settings settings;
	struct forward_proxies proxies;
	int service;	/* of the egress role, or -1 */
	unsigned role;	/* counts the roles: a policy of an earlier one says nothing of this */
	bool is_asking; /* the launcher for it */
	uint64_t pause_ms;
	struct loop_timer *retry;
	struct registries { /* what WORKSPACE_REGISTRIES stands for */
		struct arena arena;
		text_list indexes, hosts, variables;
		bool is_known, is_asking;
		uint64_t at_ms; /* monotonic: when they were found */
		struct core_waiter *waiters;
	} registries;
};
int networks_init(struct core *core, const struct core_options *options, struct error *err);
void networks_done(struct core *core);

/* Calls done(ctx, w, NULL) when what a start of w's sandbox needs is known; may do so before it
 * returns. */
void networks_prepare(struct core_workspace *w, core_workspace_fn *done, void *ctx);
/* Its sandbox is up: opens its network, if it has one. */
void networks_attach(struct core_workspace *w);
/* What its init has answered; the descriptors are taken. */
void networks_receive(struct core_workspace *w, struct init_fds *fds);
/* Its sandbox has ended. */
void networks_detach(struct core_workspace *w);
/* Whether a change of its network needs a sandbox that is started anew. */
bool networks_needs_restart(struct core_workspace *w, const struct workspace_network *changed);
/* w->model.network, or a policy, has changed. done(ctx, w, NULL) when new connections are judged by
 * it. */
void networks_changed(struct core_workspace *w, core_workspace_fn *done, void *ctx);
/* Appends the variables that tell its commands of the network. */
void networks_add_env(struct core_workspace *w, struct arena *arena, text_list *env);
/* What a START says of it. */
void networks_describe(struct core_workspace *w, struct launch_message *head);
