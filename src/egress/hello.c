/* The first bytes of a tunnel: a TLS hello or an HTTP request must be meant for the tunnel's host;
 * other protocols need a rule that names their port. */
#include <sys/epoll.h>
#include "egress/exchange.h"
#include "format/network/tls_hello.h"

#define TLS_HANDSHAKE 0x16
#define METHOD_MAX 20 /* letters of an HTTP method */

enum speech { SPEECH_UNKNOWN, SPEECH_HTTP, SPEECH_OTHER };

/* A method of capital letters, a blank, and a path, a URL, or a host behind CONNECT. */
static enum speech tell_speech(struct str bytes)
{
	size_t len = 0;
	while (len < bytes.len && len < METHOD_MAX && bytes.data[len] >= 'A' &&
		bytes.data[len] <= 'Z')
		len++;
	if (len == bytes.len)
		return SPEECH_UNKNOWN;
	if (!len || bytes.data[len] != ' ')
		return SPEECH_OTHER;
	if (len + 1 == bytes.len)
		return SPEECH_UNKNOWN;
	bool is_connect = str_starts_with(bytes, "CONNECT ");
	return is_connect || strchr("/*hH", bytes.data[len + 1]) ? SPEECH_HTTP : SPEECH_OTHER;
}

static void judge_tls(struct connection *c)
{
	struct tls_hello hello;
	struct error err;
	int status = tls_hello_parse((struct str){ c->in.data, c->in.len }, &hello, &err);
	bool is_address = network_host_is_address(c->host);
	if (status == 0 && c->is_client_ended)
		connection_close(c);
	if (status == 0)
		return;
	if (status < 0)
		front_refuse(c, "the TLS hello can't be read");
	else if (hello.has_ech)
		front_refuse(c, "the name in the TLS hello is encrypted (ECH)");
	else if (!hello.sni[0] && !is_address)
		front_refuse(c, "the TLS hello has no server name (SNI)");
	else if (hello.sni[0] && strcmp(hello.sni, c->host) != 0)
		front_refuse(c, "the TLS hello is for another server name (SNI)");
	else
		relay_begin(c);
}

static void judge_bytes(struct connection *c, bool may_be_other)
{
	enum speech speech = tell_speech((struct str){ c->in.data, c->in.len });
	if ((unsigned char)c->in.data[0] == TLS_HANDSHAKE) {
		judge_tls(c);
	} else if (c->port == 443) {
		front_refuse(c, "TLS is expected on this port");
	} else if (speech == SPEECH_HTTP) {
		exchange_request(c);
		c->is_pending = true;
		front_read(c);
	} else if (speech == SPEECH_UNKNOWN && !c->is_client_ended) {
		return;
	} else if (may_be_other) {
		relay_begin(c);
	} else {
		front_refuse(c, "neither TLS nor HTTP is spoken to it");
	}
}

void hello_judge(struct connection *c)
{
	/* Servers of other protocols may speak first, on a port that a rule names. */
	bool may_be_other = c->verdict.has_named_port && c->port != 80 && c->port != 443 &&
			    !c->policy->only_reads;
	bool has_more = false;
	c->is_throttled = false;
	if (!c->is_client_ended && !connection_read_client(c, &has_more))
		return;
	if (c->in.len)
		judge_bytes(c, may_be_other);
	else if (c->is_client_ended && !may_be_other)
		connection_close(c);
	else if (c->is_client_ended)
		relay_begin(c);
	if (c->state != HELLO)
		return;
	if (may_be_other) {
		if (!c->in.len) /* it may be silent as long as any connection */
			connection_set_timer(c, c->policy->limits.idle_ms);
		relay_pump_flow(c, UPSTREAM);
	} else {
		relay_flush(c, UPSTREAM);
	}
	if (c->state != HELLO)
		return;
	const struct flow *flow = &c->flows[UPSTREAM];
	bool is_kept = flow->len || flow->piped;
	uint32_t upstream = may_be_other && !is_kept && !flow->is_ended && !c->is_throttled
				    ? EPOLLIN
				    : UNWATCHED;
	connection_watch(c, CLIENT, EPOLLIN | (is_kept ? EPOLLOUT : 0u));
	connection_watch(c, UPSTREAM, upstream);
}
