/* Policies: their channels, rules, listeners, counters, records and budgets. */
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "egress/internal.h"
#include "linux/fd_message.h"

#define MALFORMED "a malformed message to the egress process"
/* Records are dropped while more bytes than this are queued for the holder: the rest of the queue
 * is for replies. */
#define RECORDS_MAX (64 * 1024)
#define BUDGET_MS 20		    /* between two turns of a policy that has used its budget */
#define BUDGET_MIN ((int64_t)16384) /* at once */

/* ---- decisions ---- */

struct network_verdict policy_decide(const struct policy *policy, const char *host, uint16_t port)
{
	struct network_verdict verdict = { .reason = NETWORK_REASON_NONE };
	if (policy->rules) {
		const struct rules *rules = policy->rules;
		const struct network_opened opened = { rules->ranges, rules->range_count,
			&rules->hosts };
		verdict = network_judge(&rules->list, host, port, &opened);
	}
	if (verdict.is_allowed || verdict.reason == NETWORK_REASON_DENIED || !policy->added)
		return verdict;
	struct network_verdict added = network_decide(policy->added, host, port);
	return added.is_allowed || verdict.reason == NETWORK_REASON_NONE ? added : verdict;
}

bool policy_names(const struct policy *policy, const char *host)
{
	return (policy->rules && network_is_named(&policy->rules->list, host)) ||
	       (policy->added && network_is_named(policy->added, host));
}

void policy_record(struct policy *policy, struct egress_record *record)
{
	int waiting = 0;
	if (!policy->has_records)
		return;
	record->lost = policy->status.lost;
	if (ioctl(policy->channel, SIOCOUTQ, &waiting) < 0 || waiting > RECORDS_MAX ||
		send(policy->channel, record, sizeof *record, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		policy->status.lost++;
}

void policy_refused(struct policy *policy, enum egress_front front, const char *host, uint16_t port,
	const char *rule, const char *reason)
{
	struct egress_record record = { .id = policy->next_id++,
		.event = EGRESS_REFUSED,
		.front = (uint8_t)front,
		.port = port };
	policy->status.refused++;
	if (host[0] && port)
		str_format(policy->status.last_refused, sizeof policy->status.last_refused, "%s:%u",
			host, port);
	else if (host[0])
		str_copy(policy->status.last_refused, sizeof policy->status.last_refused, host);
	str_copy(record.host, sizeof record.host, host);
	str_copy(record.rule, sizeof record.rule, rule ? rule : "");
	str_copy(record.reason, sizeof record.reason, reason);
	policy_record(policy, &record);
}

/* ---- bandwidth ---- */

static void on_budget(struct loop *loop, void *ctx)
{
	struct policy *policy = ctx;
	struct connection *next;
	policy->budget_timer = NULL;
	/* A connection that closes leaves the list; the ones behind it stay. */
	for (struct connection *c = policy->connections; c; c = next) {
		next = c->next;
		if (c->state == RELAYING || c->state == EXCHANGING || c->state == HELLO)
			connection_pump(c);
	}
}

static void fill_budget(struct policy *policy)
{
	uint64_t now = clock_monotonic_ns(), rate = policy->limits.bandwidth;
	int64_t most = rate / 4 > (uint64_t)BUDGET_MIN ? (int64_t)(rate / 4) : BUDGET_MIN;
	double earned = (double)(now - policy->budget_ns) * (double)rate / 1e9;
	if (earned < 1)
		return;
	policy->budget_ns = now;
	policy->budget = earned > (double)most ? most : policy->budget + (int64_t)earned;
	if (policy->budget > most)
		policy->budget = most;
}

size_t policy_budget(struct policy *policy, size_t wanted)
{
	if (!policy->limits.bandwidth)
		return wanted;
	fill_budget(policy);
	if (policy->budget > 0)
		return (uint64_t)policy->budget < wanted ? (size_t)policy->budget : wanted;
	if (!policy->budget_timer)
		policy->budget_timer =
			loop_after(policy->server->loop, BUDGET_MS, on_budget, policy);
	return 0;
}

void policy_spend(struct policy *policy, size_t bytes)
{
	if (policy->limits.bandwidth)
		policy->budget -= (int64_t)bytes;
}

/* ---- listeners ---- */

bool policy_is_socket(int fd, int type, bool is_listening)
{
	int found = 0, accepts = 0;
	socklen_t len = sizeof found;
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &found, &len) == 0 && found == type &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &len) == 0 &&
	       (accepts != 0) == is_listening;
}

static bool is_inet(int fd)
{
	int domain = 0;
	socklen_t len = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	       (domain == AF_INET || domain == AF_INET6);
}

static void on_resolver(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	names_serve(ctx);
}

static int watch_listener(struct listener *listener, struct error *err)
{
	return loop_watch(listener->policy->server->loop, listener->fd, EPOLLIN,
		listener->kind == EGRESS_RESOLVER ? on_resolver : serve_on_listener, listener, err);
}

void policy_watch_listeners(struct policy *policy, bool is_wanted)
{
	if (policy->is_paused != is_wanted)
		return;
	policy->is_paused = !is_wanted;
	policy->server->paused += is_wanted ? -1u : 1u;
	/* A resolver's queries are no connections. */
	for (struct listener *l = policy->listeners; l; l = l->next)
		if (l->kind != EGRESS_RESOLVER && is_wanted)
			watch_listener(l, NULL);
		else if (l->kind != EGRESS_RESOLVER)
			loop_unwatch(policy->server->loop, l->fd);
}

static int add_listener(struct policy *policy, unsigned kind, int *fd, struct error *err)
{
	bool is_datagram = kind == EGRESS_RESOLVER && policy_is_socket(*fd, SOCK_DGRAM, false);
	if (kind < EGRESS_PROXY || kind > EGRESS_RESOLVER)
		return fail(err, ERR_INVALID, "an unknown kind of listener");
	if (!is_inet(*fd) || (!is_datagram && !policy_is_socket(*fd, SOCK_STREAM, true)))
		return fail(err, ERR_INVALID, "not a listening socket");
	if (policy->listener_count == LISTENERS_MAX)
		return fail(err, ERR_LIMIT, "more than %d listeners", LISTENERS_MAX);
	if (fd_set_nonblocking(*fd) < 0)
		return fail_errno(err, "prepare a listening socket");
	struct listener *listener = xzalloc(sizeof *listener);
	*listener = (struct listener){
		.policy = policy, .fd = *fd, .kind = (enum egress_listener)kind
	};
	if ((!policy->is_paused || kind == EGRESS_RESOLVER) && watch_listener(listener, err) < 0) {
		free(listener);
		return -1;
	}
	*fd = -1;
	listener->next = policy->listeners;
	policy->listeners = listener;
	policy->listener_count++;
	return 0;
}

static void close_listeners(struct policy *policy)
{
	while (policy->listeners) {
		struct listener *listener = policy->listeners;
		policy->listeners = listener->next;
		loop_unwatch(policy->server->loop, listener->fd);
		foreign_close(&listener->fd);
		free(listener);
	}
	policy->listener_count = 0;
}

/* ---- rules ---- */

static int set_rules(struct policy *policy, int fd, struct error *err)
{
	struct stat st;
	struct rules *rules;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return fail(err, ERR_INVALID, MALFORMED);
	if (st.st_size < 0 || (size_t)st.st_size > RULES_MAX)
		return fail(err, ERR_LIMIT, "the rules of a policy have more than %zu bytes",
			RULES_MAX);
	auto_free char *text = xzalloc((size_t)st.st_size + 1);
	ssize_t got = pread(fd, text, (size_t)st.st_size, 0);
	if (got != st.st_size)
		return fail(err, ERR_INVALID, "the rules of a policy can't be read");
	if (rules_get(&policy->server->rules, (struct str){ text, (size_t)got }, &rules, err) < 0)
		return -1;
	rules_release(&policy->server->rules, policy->rules);
	policy->rules = rules;
	return 0;
}

static int add_host(struct policy *policy, const struct forward_host *host, struct error *err)
{
	char entry[HOST_SIZE + 16];
	bool is_v6 = host->host[0] && strchr(host->host, ':');
	if (host_check(host, err) < 0)
		return -1;
	if (!policy->added) {
		policy->added = arena_alloc(&policy->arena, sizeof *policy->added);
		if (network_list_init(policy->added, &policy->arena, NETWORK_LIST, NULL, err) < 0)
			return -1;
	}
	struct network_verdict known = network_decide(policy->added, host->host, host->port);
	if (known.is_allowed && (known.is_trusted || !host->is_named))
		return 0;
	if (policy->added->count == ADDED_MAX)
		return fail(err, ERR_LIMIT, "more than %d hosts", ADDED_MAX);
	str_format(entry, sizeof entry, is_v6 ? "[%s]:%u" : "%s:%u", host->host, host->port);
	return network_list_add(
		policy->added, host->is_named ? NETWORK_TRUST : NETWORK_ALLOW, entry, err);
}

/* ---- the channel ---- */

static void close_policy(struct policy *policy)
{
	struct server *server = policy->server;
	policy_watch_listeners(policy, true); /* it waits for no place any more */
	close_listeners(policy);
	while (policy->connections)
		connection_break(policy->connections);
	loop_cancel(server->loop, policy->budget_timer);
	policy->budget_timer = NULL;
	names_done(policy);
	resolver_done(&policy->resolver);
	rules_release(&server->rules, policy->rules);
	policy->rules = NULL;
	policy->added = NULL;
	arena_done(&policy->arena);
}

void policy_give_up(struct policy *policy)
{
	policy_refused(policy, EGRESS_FRONT_HTTP, "", 0, NULL,
		"a listening socket was made to block: the network is closed");
	close_policy(policy);
}

static void release_proxies(struct server *server, struct proxies *proxies)
{
	struct proxies **at = &server->proxies;
	if (!proxies || --proxies->users)
		return;
	while (*at != proxies)
		at = &(*at)->next;
	*at = proxies->next;
	free(proxies);
}

/* Its connections are freed in the next turn; none of them looks at its policy then. */
static void free_policy(struct policy *policy)
{
	struct server *server = policy->server;
	close_policy(policy);
	*policy->link = policy->next;
	if (policy->next)
		policy->next->link = policy->link;
	release_proxies(server, policy->proxies);
	loop_unwatch(server->loop, policy->channel);
	fd_close(&policy->channel);
	free(policy);
}

static void judge_waiting(struct policy *policy)
{
	struct connection *next;
	for (struct connection *c = policy->connections; c; c = next) {
		next = c->next;
		if (c->state == WAITING)
			front_judge(c);
	}
}

static int obey(
	struct policy *policy, const struct egress_message *message, int *fd, struct error *err)
{
	const struct forward_host host = {
		.host = message->host, .port = message->port, .is_named = message->is_named
	};
	bool has_fd = message->type == EGRESS_SERVE || message->type == EGRESS_SET;
	if (!memchr(message->host, '\0', sizeof message->host) || message->is_named > 1 ||
		(*fd >= 0) != has_fd)
		return fail(err, ERR_INVALID, MALFORMED);
	switch (message->type) {
	case EGRESS_SERVE:
		return add_listener(policy, message->kind, fd, err);
	case EGRESS_SET:
		return set_rules(policy, *fd, err);
	case EGRESS_ALLOW:
		return add_host(policy, &host, err);
	case EGRESS_SETTLE:
		policy->is_settled = true;
		return 0;
	case EGRESS_LOOK:
		return 0;
	case EGRESS_END:
		close_policy(policy);
		return 0;
	default:
		return fail(err, ERR_INVALID, "message %u to the egress process", message->type);
	}
}

void egress_reply(int channel, const struct error *err, const struct egress_status *status)
{
	struct egress_reply reply = { .code = err ? (int32_t)err->code : ERR_NONE };
	str_copy(reply.text, sizeof reply.text, err ? err->text : "");
	if (status)
		reply.status = *status;
	/* A client that reads no replies has ended, or reads the next one. */
	(void)!send(channel, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int policy_receive(int channel, void *data, size_t size, int *fd, bool *is_over, struct error *err)
{
	struct fd_message came;
	ssize_t got = fd_message_receive(channel, data, size, 0, &came);
	*is_over = got == 0 || (got < 0 && errno != EAGAIN);
	if (got <= 0)
		return *is_over ? -1 : 0;
	if (got != (ssize_t)size || came.is_cut || came.has_lost_fds || came.fd_count > 1) {
		fd_message_close(&came, 0);
		return fail(err, ERR_INVALID, MALFORMED);
	}
	*fd = came.fd_count ? came.fds[0] : -1;
	return 1;
}

static void on_egress_policy_channel(struct loop *loop, int channel, uint32_t events, void *ctx)
{
	struct policy *policy = ctx;
	struct egress_message message = { 0 };
	struct error err;
	auto_foreign int fd = -1;
	bool is_over;
	int got = policy_receive(channel, &message, sizeof message, &fd, &is_over, &err);
	if (got == 0)
		return;
	if (is_over) {
		free_policy(policy);
		return;
	}
	int status = got < 0 ? -1 : obey(policy, &message, &fd, &err);
	policy->status.open = policy->count;
	egress_reply(channel, status < 0 ? &err : NULL, &policy->status);
	judge_waiting(policy);
}

static void set_limits(struct egress_limits *limits)
{
	static const struct egress_limits defaults = { .head_ms = 10000,
		.wait_ms = 30000,
		.resolve_ms = 10000,
		.connect_ms = 10000,
		.idle_ms = 120000,
		.connections = 256 };
	const uint64_t *otherwise = (const uint64_t *)&defaults;
	uint64_t *values = (uint64_t *)limits;
	for (size_t i = 0; i < sizeof defaults / sizeof *values; i++)
		if (!values[i])
			values[i] = otherwise[i];
}

/* One line of text, which can't be mistaken for two headers. */
static bool is_line(const char *text, size_t size)
{
	const char *end = memchr(text, '\0', size);
	for (; end && text < end; text++)
		if ((unsigned char)*text < ' ' && *text != '\t')
			return false;
	return end != NULL;
}

static int check_proxy(const struct forward_proxy *proxy, struct error *err)
{
	const struct forward_host host = { .host = proxy->host, .port = proxy->port };
	if (!is_line(proxy->host, sizeof proxy->host) ||
		!is_line(proxy->authorization, sizeof proxy->authorization))
		return fail(err, ERR_INVALID, "a malformed proxy of a policy");
	return proxy->host[0] ? host_check(&host, err) : 0;
}

static struct proxies *share_proxies(struct server *server, const struct forward_proxies *given)
{
	struct proxies *proxies = server->proxies;
	if (!given->https.host[0] && !given->http.host[0])
		return NULL;
	while (proxies && memcmp(&proxies->given, given, sizeof *given) != 0)
		proxies = proxies->next;
	if (!proxies) {
		proxies = xzalloc(sizeof *proxies);
		proxies->given = *given;
		proxies->next = server->proxies;
		server->proxies = proxies;
	}
	proxies->users++;
	return proxies;
}

int policy_open(
	struct server *server, const struct egress_policy *given, int *channel, struct error *err)
{
	if (given->is_settled > 1 || given->has_records > 1 || given->only_reads > 1 ||
		!is_line(given->proxies.except, sizeof given->proxies.except))
		return fail(err, ERR_INVALID, "a malformed policy");
	if (check_proxy(&given->proxies.https, err) < 0 ||
		check_proxy(&given->proxies.http, err) < 0)
		return -1;
	struct policy *policy = xzalloc(sizeof *policy);
	policy->server = server;
	policy->limits = given->limits;
	set_limits(&policy->limits);
	policy->is_settled = given->is_settled;
	policy->has_records = given->has_records;
	policy->only_reads = given->only_reads;
	policy->next_id = 1;
	policy->budget_ns = clock_monotonic_ns();
	policy->budget = BUDGET_MIN;
	policy->resolver = (struct resolver){ .loop = server->loop,
		.queue = &server->lookups,
		.done = upstream_on_lookup,
		.ctx = policy,
		.timeout_ms = policy->limits.resolve_ms };
	if (loop_watch(server->loop, *channel, EPOLLIN, on_egress_policy_channel, policy, err) <
		0) {
		free(policy);
		return -1;
	}
	policy->proxies = share_proxies(server, &given->proxies);
	policy->channel = take_fd(channel);
	policy->next = server->policies;
	policy->link = &server->policies;
	if (policy->next)
		policy->next->link = &policy->next;
	server->policies = policy;
	return 0;
}
