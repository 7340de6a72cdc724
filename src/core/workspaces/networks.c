/* networks.c -- policies of the egress role, one for each sandbox that has a network. */
#include "core/workspaces/networks.h"

#include <sys/epoll.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "core/access/audit.h"
#include "core/access/policies.h"
#include "core/execs/execs.h"
#include "core/execs/init_connection.h"
#include "core/internal.h"
#include "core/workspaces/registries.h"
#include "sandbox/plan/plan.h"

#define PAUSE_LEAST_MS 50
#define PAUSE_MOST_MS 1000 /* back within a second, however often the role dies */
#define READS_A_TURN 256   /* then others get their turn */
/* Records of one sandbox: so many at once, then so many a second. The audit log is everybody's, and
 * its oldest records make room for new ones: a sandbox must not fill it by asking. */
#define RECORDS_BURST 2000
#define RECORDS_A_SECOND 10

/* The policy of one sandbox. */
struct network {
	struct core_workspace *w;
	struct egress egress;
	unsigned role;		      /* as in struct networks */
	unsigned due;		      /* answers that are to come */
	struct core_waiter *waiters;  /* told when none is */
	uint64_t records, records_ms; /* that may be written; when they were counted */
	uint64_t lost;		      /* as the last record says */
	uint64_t left_out;	      /* records dropped since the last written one */
};

static void ask_service(struct networks *networks);

static bool has_network(struct core_workspace *w)
{
	return workspace_network_mode(policies_network(w)) != NETWORK_NONE;
}

/* ---- one policy ---- */

/* A sandbox did it, on behalf of whoever runs in it. */
static void write_record(struct core_workspace *w, const char *name,
	void (*print)(struct json *j, const void *ctx), const void *ctx)
{
	const struct principal sandbox = { .kind = PRINCIPAL_SANDBOX, .workspace = w->model.id };
	const struct request request = { .principal = &sandbox, .id = "" };
	char type[32];
	str_format(type, sizeof type, "egress.%s", name);
	audit_write(w->core, &request, type, w, print, ctx);
}

static void print_left_out(struct json *j, const void *ctx)
{
	const struct network *network = ctx;
	if (network->left_out)
		json_u64(j, "left_out", network->left_out);
}

static void close_policy(struct core_workspace *w)
{
	struct network *network = w->sandbox.network;
	if (!network)
		return;
	if (network->left_out)
		write_record(w, "left_out", print_left_out, network);
	w->sandbox.network = NULL;
	loop_unwatch(w->core->loop, network->egress.channel);
	egress_drop(&network->egress);
	waiters_call(&network->waiters, w, NULL);
	free(network);
}

static int post_rules(struct network *network, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const struct networks *networks = network->w->core->networks;
	const struct workspace_network *model = policies_network(network->w);
	const struct network_settings *settings = &networks->settings;
	uint16_t ports[NETWORK_SETTINGS_PORTS_MAX];
	struct egress_rules rules = { .mode = workspace_network_mode(model),
		.deny = model->deny,
		.ports = ports,
		.port_count = network_settings_ports(settings, ports),
		.hosts = settings->hosts,
		.ranges = settings->ranges,
		.bounds = policies_bounds(network->w, &arena) };
	for (size_t i = 0; i < model->allow.count; i++)
		if (strcmp(model->allow.items[i], WORKSPACE_REGISTRIES) != 0)
			vec_push(&arena, &rules.allow, model->allow.items[i]);
	struct policy_registries registries = { 0 };
	if (workspace_network_has_registries(model))
		registries = policies_registries(network->w, &arena);
	for (size_t i = 0; i < registries.hosts.count; i++)
		vec_push(&arena, &rules.allow, registries.hosts.items[i]);
	rules.trust = registries.indexes;
	policies_meter(network->w, &registries, &arena, &rules.meter);
	if (egress_post_rules(&network->egress, &rules, err))
		return -1;
	network->due++;
	return 0;
}

/* The listeners of every plan are opened in one order; the role checks what each is. The last
 * first: the role answers a query that waits as soon as it has the resolver's socket, and with an
 * IPv6 address only if it has the sockets of names by then. */
static int post_listeners(struct network *network, const struct init_fds *fds, struct error *err)
{
	static const enum egress_listener kinds[] = { [LISTENER_PROXY] = EGRESS_PROXY,
		[LISTENER_RESOLVER] = EGRESS_RESOLVER,
		[LISTENER_RESOLVER_TCP] = EGRESS_RESOLVER,
		[LISTENER_NAMES] = EGRESS_NAMES };
	for (int i = fds->count; i-- > 0;) {
		enum plan_listener_kind kind =
			i < LISTENER_NAMES ? (enum plan_listener_kind)i : LISTENER_NAMES;
		fault_point("network_listener");
		if (egress_post_listener(&network->egress, kinds[kind], fds->items[i], err))
			return -1;
		network->due++;
	}
	return 0;
}

static void on_channel(struct loop *loop, int fd, uint32_t events, void *ctx);

static int open_policy(struct core_workspace *w, const struct init_fds *fds, struct error *err)
{
	struct networks *networks = w->core->networks;
	struct egress_policy policy = { .proxies = networks->proxies,
		.limits = { .connections = networks->settings.connections,
			.idle_ms = networks->settings.idle_ms,
			.bandwidth = networks->settings.bandwidth },
		.is_settled = 1,
		.has_records = 1 };
	struct network *network = xzalloc(sizeof *network);
	*network = (struct network){ .w = w,
		.egress = EGRESS_NONE,
		.role = networks->role,
		.records = RECORDS_BURST,
		.records_ms = clock_monotonic_ms() };
	if ((fault_fails("network_begin")
			    ? fail_errno(err, "open a policy of egress")
			    : egress_begin(networks->service, &policy, &network->egress, err)) ||
		loop_watch(w->core->loop, network->egress.channel, EPOLLIN, on_channel, w, err)) {
		egress_drop(&network->egress);
		free(network);
		return -1;
	}
	network->due = 1;
	w->sandbox.network = network;
	fault_point("network_begun");
	if (!post_rules(network, err) && !post_listeners(network, fds, err)) {
		fault_point("network_opened");
		return 0;
	}
	close_policy(w);
	return -1;
}

/* ---- what the role says ---- */

static void forget_role(struct networks *networks)
{
	fd_close(&networks->service);
	networks->role++;
}

static void count(struct core_workspace *w, const struct egress_record *record)
{
	struct metrics *metrics = &w->core->metrics;
	struct workspace_traffic *counts = &w->traffic;
	switch ((enum egress_event)record->event) {
	case EGRESS_OPENED:
		metrics->egress_opened++;
		counts->connections++;
		break;
	case EGRESS_CLOSED:
		metrics->egress_bytes_in += record->bytes_in;
		metrics->egress_bytes_out += record->bytes_out;
		counts->bytes_in += record->bytes_in;
		counts->bytes_out += record->bytes_out;
		break;
	case EGRESS_REFUSED:
		metrics->egress_refused++;
		counts->refused++;
		break;
	case EGRESS_FAILED:
	case EGRESS_LIMITED:
		metrics->egress_failed++;
		counts->failed++;
		break;
	}
}

/* What a client says of a connection that is ended helps nobody: its exec says why. */
static void tell_execs(struct core_workspace *w, const struct egress_record *record)
{
	char why[512];
	str_format(why, sizeof why, "the connection to %s:%u was %s", record->host, record->port,
		record->reason);
	execs_explain(w, why);
}

struct noted {
	const struct network *network;
	const struct egress_record *record;
};

static void print_record(struct json *j, const void *ctx)
{
	const struct noted *noted = ctx;
	const struct egress_record *record = noted->record;
	const struct {
		const char *name, *value;
	} texts[] = { { "address", record->address }, { "rule", record->rule },
		{ "reason", record->reason } };
	json_text(j, "host", record->host);
	json_u64(j, "port", record->port);
	json_text(j, "by", egress_front_name(record->front));
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].value[0])
			json_text(j, texts[i].name, texts[i].value);
	json_u64(j, "connection", record->id);
	print_left_out(j, noted->network);
	if (record->event != EGRESS_CLOSED)
		return;
	json_u64(j, "received_bytes", record->bytes_in);
	json_u64(j, "sent_bytes", record->bytes_out);
	json_u64(j, "requests", record->requests);
	json_u64(j, "duration_ms", record->duration_ms);
}

static bool may_write(struct network *network)
{
	uint64_t now_ms = clock_monotonic_ms();
	uint64_t earned = (now_ms - network->records_ms) * RECORDS_A_SECOND / 1000;
	if (earned) {
		network->records_ms = now_ms;
		network->records = network->records + earned < RECORDS_BURST
					   ? network->records + earned
					   : RECORDS_BURST;
	}
	return network->records && network->records--;
}

static void note(struct core_workspace *w, const struct egress_record *record)
{
	struct network *network = w->sandbox.network;
	const struct noted noted = { network, record };
	count(w, record);
	if (record->event == EGRESS_LIMITED)
		tell_execs(w, record);
	if (record->lost > network->lost) {
		network->left_out += record->lost - network->lost;
		network->lost = record->lost;
	}
	if (!may_write(network)) {
		network->left_out++;
		return;
	}
	write_record(w, egress_event_name(record->event), print_record, &noted);
	network->left_out = 0;
}

static void answered(struct core_workspace *w, const struct error *failure)
{
	struct network *network = w->sandbox.network;
	if (failure->code)
		log_record(&w->core->log, LOG_LEVEL_ERROR, "egress refuses a network", "workspace",
			w->model.id, "error", failure->text, NULL);
	if (network->due && --network->due == 0)
		waiters_call(&network->waiters, w, NULL);
}

/* The role has ended, and all its policies, each of which is told; another may run already. */
static void lose(struct core_workspace *w)
{
	struct networks *networks = w->core->networks;
	bool is_present = w->sandbox.network->role == networks->role;
	close_policy(w);
	if (is_present)
		forget_role(networks);
	if (!w->core->is_stopping)
		networks_attach(w);
}

static void on_channel(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct core_workspace *w = ctx;
	struct network *network = w->sandbox.network;
	struct egress_news news;
	struct error err;
	core_hold(w);
	for (int left = READS_A_TURN; left && w->sandbox.network == network; left--) {
		int got = egress_read(&network->egress, &news, &err);
		if (got == 0)
			break;
		if (got < 0)
			lose(w);
		else if (news.is_record)
			note(w, &news.record);
		else
			answered(w, &news.failure);
	}
	core_release(w);
}

/* ---- the role ---- */

static void on_retry(struct loop *loop, void *ctx)
{
	struct networks *networks = ctx;
	networks->retry = NULL;
	ask_service(networks);
}

static void try_later(struct networks *networks)
{
	if (networks->retry || networks->core->is_stopping)
		return;
	networks->pause_ms = networks->pause_ms * 2 < PAUSE_LEAST_MS  ? PAUSE_LEAST_MS
			     : networks->pause_ms * 2 > PAUSE_MOST_MS ? PAUSE_MOST_MS
								      : networks->pause_ms * 2;
	networks->retry = loop_after(networks->core->loop, networks->pause_ms, on_retry, networks);
}

static void on_service(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct networks *networks = ctx;
	struct error err;
	networks->is_asking = false;
	if (!packet || packet->head.type != LAUNCH_EGRESS_STARTED || fds[0] < 0) {
		launcher_failure(packet, &err);
		if (packet)
			log_record(&networks->core->log, LOG_LEVEL_ERROR, "egress can't be started",
				"error", err.text, NULL);
		if (packet)
			try_later(networks);
		return;
	}
	fd_close(&networks->service);
	networks->service = fds[0];
	fault_point("network_service");
	for (struct core_workspace *w = networks->core->newest; w; w = w->older)
		networks_attach(w);
}

static void ask_service(struct networks *networks)
{
	struct launch_message head = { .type = LAUNCH_EGRESS };
	if (networks->is_asking || networks->retry)
		return;
	networks->is_asking = true;
	launcher_ask(&networks->core->launcher, &head, NULL, 0, NULL, 0, on_service, networks);
}

/* Of a sandbox that another core started, or that is to have them only now. */
static void on_learned(void *ctx, struct core_workspace *w, const struct error *err)
{
	if (w->sandbox.state != SANDBOX_UP)
		return;
	execs_change_env(w);
	networks_attach(w);
}

static bool lacks_registries(struct core_workspace *w)
{
	return workspace_network_has_registries(policies_network(w)) &&
	       !w->core->networks->registries.is_known;
}

void networks_attach(struct core_workspace *w)
{
	struct networks *networks = w->core->networks;
	if (!has_network(w) || w->sandbox.state != SANDBOX_UP || w->sandbox.network)
		return;
	if (lacks_registries(w))
		registries_learn(w, on_learned, NULL);
	else if (networks->service < 0)
		ask_service(networks);
	else
		connection_send(w, INIT_LISTENERS, 0, 0);
}

void networks_receive(struct core_workspace *w, struct init_fds *fds)
{
	struct networks *networks = w->core->networks;
	struct error err;
	if (networks->service >= 0 && !w->sandbox.network && has_network(w) && fds->count) {
		if (open_policy(w, fds, &err)) {
			log_record(&w->core->log, LOG_LEVEL_WARN, "a network can't be opened",
				"workspace", w->model.id, "error", err.text, NULL);
			forget_role(networks);
			try_later(networks);
		} else
			networks->pause_ms = 0;
	}
	while (fds->count)
		foreign_close(&fds->items[--fds->count]);
}

void networks_detach(struct core_workspace *w)
{
	close_policy(w);
}

/* ---- changes ---- */

bool networks_needs_restart(struct core_workspace *w, const struct workspace_network *changed)
{
	return !has_network(w) && workspace_network_mode(changed) != NETWORK_NONE;
}

/* ctx: a waiter, for whoever made the change. */
static void on_changed(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct core_waiter *waiter = ctx;
	if (w->sandbox.state == SANDBOX_UP)
		execs_change_env(w);
	networks_changed(w, waiter->fn, waiter->ctx);
	waiter->fn = NULL;
	waiter_call(waiter, w, NULL);
}

void networks_changed(struct core_workspace *w, core_workspace_fn *done, void *ctx)
{
	struct network *network = w->sandbox.network;
	struct error err;
	if (lacks_registries(w)) {
		registries_learn(w, on_changed, waiter_new(done, ctx, w, NULL));
		return;
	}
	if (network && post_rules(network, &err)) {
		/* It has too much to do, or is gone: a new policy begins with the new rules. */
		close_policy(w);
		networks_attach(w);
		network = NULL;
	}
	if (network)
		waiter_append(&network->waiters, waiter_new(done, ctx, w, NULL));
	else
		core_later(w->core, done, ctx, w, NULL);
}

/* ---- what sandboxes and commands are told ---- */

void networks_add_env(struct core_workspace *w, struct arena *arena, text_list *env)
{
	const struct workspace_network *model = policies_network(w);
	const struct plan_network network = { .mode = workspace_network_mode(model) };
	struct policy_registries registries = { 0 };
	if (workspace_network_has_registries(model))
		registries = policies_registries(w, arena);
	plan_network_env(&network, &registries.variables, arena, env);
}

void networks_describe(struct core_workspace *w, struct launch_message *head)
{
	const struct workspace_network *model = policies_network(w);
	auto_arena struct arena arena = { 0 };
	struct plan_network network = { 0 };
	if (!has_network(w))
		return;
	plan_network_ports(&model->allow, &arena, &network);
	if (workspace_network_has_registries(model)) {
		struct policy_registries registries = policies_registries(w, &arena);
		plan_network_ports(&registries.indexes, &arena, &network);
		plan_network_ports(&registries.hosts, &arena, &network);
	}
	head->flags |= LAUNCH_NETWORK;
	head->other = launch_pack_ports(network.ports.items, network.ports.count);
}

/* ---- the beginning and the end ---- */

int networks_init(struct core *core, const struct core_options *options, struct error *err)
{
	struct networks *networks = core->networks = xzalloc(sizeof *networks);
	networks->core = core;
	networks->service = -1;
	arena_init(&networks->registries.arena);
	if (forward_proxies_find(&networks->proxies, err))
		return -1;
	if (options->egress)
		networks->settings = *options->egress;
	return 0;
}

void networks_prepare(struct core_workspace *w, core_workspace_fn *done, void *ctx)
{
	if (workspace_network_has_registries(policies_network(w)))
		registries_learn(w, done, ctx);
	else
		done(ctx, w, NULL);
}

void networks_done(struct core *core)
{
	struct networks *networks = core->networks;
	if (!networks)
		return;
	for (struct core_workspace *w = core->newest; w; w = w->older)
		close_policy(w);
	loop_cancel(core->loop, networks->retry);
	fd_close(&networks->service);
	waiters_forget(networks->registries.waiters);
	arena_done(&networks->registries.arena);
	free(networks);
	core->networks = NULL;
}
