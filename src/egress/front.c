/* The proxy's front ends: the first bytes of a client say which protocol it speaks. What each of
 * them asks for is judged here, and answered in its own words. */
#include <sys/epoll.h>
#include <unistd.h>
#include "base/clock.h"
#include "egress/exchange.h"
#include "egress/internal.h"
#include "format/network/socks.h"

/* A fatal alert of TLS, access_denied. */
static const char tls_alert[] = { 0x15, 3, 1, 0, 2, 2, 49 };

/* ---- answers ---- */

static void answer_http(struct connection *c, int code, const char *title, const char *text)
{
	char response[1024];
	str_format(response, sizeof response,
		"HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n%s\n",
		code, title, strlen(text) + 1, text);
	connection_finish(c, response, strlen(response));
}

static void answer_socks(struct connection *c, enum socks_reply reply)
{
	unsigned char bytes[SOCKS_REPLY_LEN];
	socks_write_reply(reply, bytes);
	connection_finish(c, (const char *)bytes, sizeof bytes);
}

static enum socks_reply socks_reply_of(int code)
{
	return code == 403 || code == 400 ? SOCKS_NOT_ALLOWED
	       : code == 504		  ? SOCKS_HOST_UNREACHABLE
	       : code == 502		  ? SOCKS_REFUSED
					  : SOCKS_FAILED;
}

static void front_answer(struct connection *c, int code, const char *title, const char *text)
{
	bool is_http = !c->is_tunnel || c->exchange ||
		       (c->front == EGRESS_FRONT_CONNECT && !c->is_answered);
	if (c->front == EGRESS_FRONT_SOCKS && !c->is_answered)
		answer_socks(c, socks_reply_of(code));
	else if (is_http)
		answer_http(c, code, title, text);
	else if (c->in.len && c->in.data[0] == 0x16)
		connection_finish(c, tls_alert, sizeof tls_alert);
	else
		connection_break(c);
}

static void record(struct connection *c, enum egress_event event, const char *reason)
{
	struct egress_record made = { .id = c->is_open ? c->id : c->policy->next_id++,
		.event = (uint8_t)event,
		.front = (uint8_t)c->front,
		.port = c->port };
	if (event == EGRESS_OPENED)
		c->id = made.id;
	str_copy(made.host, sizeof made.host, c->host);
	str_copy(made.rule, sizeof made.rule, c->verdict.rule ? c->verdict.rule : "");
	str_copy(made.reason, sizeof made.reason, reason);
	address_print(&c->address, made.address);
	policy_record(c->policy, &made);
}

static void answer_host(struct connection *c, int code, const char *title, const char *why)
{
	char text[640];
	str_format(text, sizeof text, "carrel: %s:%u %s", c->host, c->port, why);
	front_answer(c, code, title, text);
}

void front_refuse(struct connection *c, const char *why)
{
	struct egress_status *status = &c->policy->status;
	status->refused++;
	str_format(status->last_refused, sizeof status->last_refused, "%s:%u", c->host, c->port);
	record(c, EGRESS_REFUSED, why);
	answer_host(c, 403, "Forbidden", why);
}

void front_reject(struct connection *c, int code, const char *title, const char *why)
{
	char text[640];
	c->policy->status.refused++;
	record(c, EGRESS_REFUSED, why);
	str_format(text, sizeof text, "carrel: %s", why);
	front_answer(c, code, title, text);
}

void front_fail(struct connection *c, int code, const char *title, const char *why)
{
	struct egress_status *status = &c->policy->status;
	status->failed++;
	str_format(status->last_failure, sizeof status->last_failure, "%s:%u: %s", c->host, c->port,
		why);
	record(c, EGRESS_FAILED, why);
	answer_host(c, code, title, why);
}

/* ---- the decision ---- */

void front_judge(struct connection *c)
{
	struct policy *policy = c->policy;
	struct server *server = policy->server;
	bool is_waiting = c->state == WAITING;
	/* The rules may have changed since the last request of the connection. */
	rules_release(&server->rules, c->rules);
	c->rules = policy->rules;
	if (c->rules)
		c->rules->users++;
	c->verdict = policy_decide(policy, c->host, c->port);
	if (c->verdict.is_allowed) {
		if (c->is_open)
			exchange_connected(c);
		else
			upstream_begin(c);
	} else if (policy->is_settled || c->verdict.reason == NETWORK_REASON_DENIED ||
		   c->verdict.reason == NETWORK_REASON_ADDRESS) {
		front_refuse(c, network_reason_text(c->verdict.reason));
	} else {
		c->state = WAITING;
		if (!is_waiting)
			connection_set_timer(c, policy->limits.wait_ms);
	}
}

/* Only a failure of the same host: others may still be the reason why a build fails. */
static void forget_failure(struct connection *c)
{
	char *failure = c->policy->status.last_failure, host[320];
	if (!failure[0])
		return;
	str_format(host, sizeof host, "%s:%u: ", c->host, c->port);
	if (str_starts_with(str_from(failure), host))
		failure[0] = '\0';
}

static void answer_tunnel(struct connection *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	unsigned char reply[SOCKS_REPLY_LEN];
	bool is_there = true;
	socks_write_reply(SOCKS_SUCCEEDED, reply);
	c->is_answered = true;
	if (c->front == EGRESS_FRONT_CONNECT)
		is_there = relay_send(c, UPSTREAM, established, sizeof established - 1);
	else if (c->front == EGRESS_FRONT_SOCKS)
		is_there = relay_send(c, UPSTREAM, (const char *)reply, sizeof reply);
	if (!is_there)
		return;
	c->state = HELLO;
	connection_set_timer(c, c->policy->limits.head_ms);
	hello_judge(c);
}

void front_connected(struct connection *c)
{
	c->opened_ms = c->active_ms = clock_monotonic_ms();
	c->policy->status.connections++;
	forget_failure(c);
	record(c, EGRESS_OPENED, "");
	c->is_open = true;
	c->meter = c->rules && c->rules->meter &&
				   network_decide(&c->rules->metered, c->host, c->port).is_allowed
			   ? c->rules->meter
			   : 0;
	/* One that was answered is connected again, for its next HTTP request. */
	if (c->is_tunnel && !c->is_answered)
		answer_tunnel(c);
	else
		exchange_connected(c);
}

bool front_is_over(struct connection *c)
{
	struct egress_status *status = &c->policy->status;
	char why[128];
	if (!c->meter || c->bytes_in <= c->meter)
		return false;
	str_format(why, sizeof why, "ended after %llu MB, git.max_clone_size_mb of its sources",
		(unsigned long long)(c->meter >> 20));
	status->failed++;
	str_format(status->last_failure, sizeof status->last_failure, "%s:%u: %s", c->host, c->port,
		why);
	record(c, EGRESS_LIMITED, why);
	connection_break(c);
	return true;
}

/* ---- SOCKS5 ---- */

/* 1: go on reading, 0: wait, -1: answered or closed. */
static int greet(struct connection *c)
{
	static const char accepted[] = { SOCKS_VERSION, 0 };
	static const char rejected[] = { SOCKS_VERSION, (char)0xff };
	size_t len;
	bool is_open;
	int status = socks_parse_greeting((struct str){ c->in.data, c->in.len }, &len, &is_open);
	if (status == 0)
		return 0;
	if (status < 0 || !is_open) {
		c->policy->status.refused++;
		connection_finish(c, rejected, sizeof rejected);
		return -1;
	}
	c->is_greeted = true;
	buf_drop_front(&c->in, len);
	return relay_send(c, UPSTREAM, accepted, sizeof accepted) ? 1 : -1;
}

static void read_socks(struct connection *c)
{
	struct socks_request request;
	enum socks_reply reply = SOCKS_FAILED;
	struct error err;
	int status = c->is_greeted ? 1 : greet(c);
	c->front = EGRESS_FRONT_SOCKS;
	if (status <= 0)
		return;
	status = socks_parse_request((struct str){ c->in.data, c->in.len }, &request, &reply, &err);
	if (status == 0)
		return;
	c->is_tunnel = true;
	if (status > 0 && network_normalize(str_from(request.host), c->host, &err) < 0) {
		status = -1;
		reply = SOCKS_NOT_ALLOWED;
	}
	if (status < 0) {
		c->policy->status.refused++;
		record(c, EGRESS_REFUSED, err.text);
		answer_socks(c, reply);
		return;
	}
	c->port = request.port;
	buf_drop_front(&c->in, request.len);
	connection_watch(c, CLIENT, 0);
	front_judge(c);
}

/* ---- HTTP ---- */

/* Whether the policy's sandbox may send it: see egress_policy.only_reads. */
static bool is_permitted(const struct policy *policy, const struct forward_request *request)
{
	bool is_read = str_is(request->method, "GET") || str_is(request->method, "HEAD");
	return !policy->only_reads || request->is_connect || (is_read && !request->is_upgrade);
}

static void take_request(struct connection *c, const struct forward_request *request)
{
	bool is_same = c->is_open && !request->is_connect && c->port == request->port &&
		       !strcmp(c->host, request->host);
	if (!is_same) {
		connection_leave(c);
		str_copy(c->host, sizeof c->host, request->host);
		c->port = request->port;
	}
	if (!is_permitted(c->policy, request)) {
		front_refuse(c, "is only read from here: GET and HEAD");
		return;
	}
	if (request->is_connect) {
		c->front = EGRESS_FRONT_CONNECT;
		c->is_tunnel = true;
		buf_drop_front(&c->in, request->head_len);
		exchange_free(c->exchange);
		c->exchange = NULL;
		connection_watch(c, CLIENT, 0);
	} else if (!is_same) {
		connection_watch(c, CLIENT, 0);
	}
	front_judge(c);
}

static void read_http(struct connection *c)
{
	struct forward_request *request = exchange_request(c);
	struct str bytes = { c->in.data, c->in.len };
	struct error err;
	int status = c->is_tunnel ? forward_parse_origin(bytes, c->host, c->port, request, &err)
				  : forward_parse(bytes, request, &err);
	if (status < 0) {
		front_reject(c, 400, "Bad Request", err.text);
		return;
	}
	if (status > 0) {
		take_request(c, request);
		return;
	}
	if (c->is_client_ended) {
		connection_close(c);
		return;
	}
	/* A head that has begun has its time; one that hasn't is idle. */
	if (c->in.len && !c->is_begun && exchange_has_served(c))
		connection_set_timer(c, c->policy->limits.head_ms);
	c->is_begun = c->in.len > 0;
	connection_watch(c, CLIENT, EPOLLIN);
	connection_watch(c, UPSTREAM, EPOLLIN);
}

void front_read(struct connection *c)
{
	size_t old = c->in.len;
	bool has_more, was_pending = c->is_pending;
	c->state = HEAD;
	c->is_pending = false;
	if (!connection_read_client(c, &has_more))
		return;
	if (c->is_client_ended && !c->in.len) {
		connection_close(c);
		return;
	}
	if (!c->in.len || (!has_more && !was_pending && !c->is_client_ended))
		return;
	if (!c->is_tunnel && (c->is_greeted || c->in.data[0] == SOCKS_VERSION)) {
		read_socks(c);
		return;
	}
	/* Only a line's end can make a difference: a client that sends single bytes doesn't have
	 * the whole head read again for each. */
	if (old && !was_pending && has_more && c->in.len < FORWARD_HEAD_MAX &&
		!memchr(c->in.data + old, '\n', c->in.len - old))
		return;
	read_http(c);
}
