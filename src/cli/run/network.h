/* network.h -- the options --net, --allow-domain and --deny-domain; and the network of `carrel
 * run`, which has an egress role of its own. The role is started when the command first connects
 * to one of the sockets that listen inside: most commands with a list never do, and a role takes a
 * third of the time of a whole run. What connects meanwhile waits in the queues of the sockets. */
#pragma once
#include "cli/cli.h"
#include "egress/egress.h"
#include "model/settings/network_settings.h"
#include "policy/stack.h"
#include "sandbox/native/sandbox.h"
#include "sandbox/plan/plan.h"

/* --net, --allow-domain and --deny-domain as the member "network" of an open object; nothing where
 * none is given. */
int network_print_options(const struct options *options, struct json *j, struct error *err);

struct run_network {
	struct workspace_network asked;
	struct plan_network plan;
	network_bounds bounds;		      /* of the policies */
	struct network_meter meter;	      /* of the policies */
	text_list registries, indexes, hosts; /* of WORKSPACE_REGISTRIES; variables first */
	/* What the role is started with: */
	const struct network_settings *settings;
	struct egress_policy policy;
	char program[PATH_MAX];
	struct run_listener {
		enum egress_listener kind;
		int fd;
	} listeners[PLAN_LISTENERS_MAX]; /* until then */
	size_t listener_count;
	struct egress_role role;
	struct egress egress;
	struct egress_status status;
	unsigned due; /* answers of the role that are to come */
	struct error failure;
	bool has_failed;
};
#define RUN_NETWORK_NONE                                                                           \
	{                                                                                          \
		.role = { -1, -1 }, .egress = { -1, -1 }                                           \
	}
/* Fills in network->plan of the options, within what the policies let be reached, and names it in
 * *options. */
int run_network_prepare(struct command *command, const struct policy_stack *policies,
	struct run_network *network, struct plan_options *options, struct error *err);
/* Finds what the role needs. settings: the operator's, used until run_network_done. */
int run_network_begin(
	struct run_network *network, const struct network_settings *settings, struct error *err);
/* As sandbox_io.listening: the first connection starts the role. */
void run_network_listening(
	void *ctx, struct loop *loop, const struct plan_listener *listener, int fd);
/* The command has ended: reads the counters. An error: the role had failed, and the command had no
 * network. */
int run_network_end(struct run_network *network, struct error *err);
void run_network_done(struct run_network *network);
/* The counters, as the member "network" of an open object. */
void run_network_print(const struct run_network *network, struct json *j);
/* Says on stderr what a command that failed may have lacked. */
void run_network_explain(const struct run_network *network, char *const *argv);
/* Whether a command is a known client that needs a network for this: `pip install`, `curl`. */
bool network_is_wanted(char *const *argv);
