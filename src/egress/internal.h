/* internal.h -- what the files of this room share: the messages of a policy, and the connections of
 * the role. A connection goes head -> (waiting) -> resolving -> connecting -> (tunneling, through a
 * proxy) -> relaying -> draining, and is closed from any of them.
 * 1. A closed connection is freed in the next turn of the loop: its state may be read until then.
 * 2. What one side has sent and the other has not taken is at most a chunk; no more is read until
 * then. */
#pragma once
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "egress/egress.h"
#include "proc/loop.h"
#include "proc/measure.h"

#define HOST_SIZE 256
#define HOSTS_MAX 64	 /* of one policy */
#define LISTENERS_MAX 64 /* of one policy */
#define POLICIES_MAX 128
#define ADDRESSES_MAX 16 /* of one host that are tried */
#define CHUNK 65536
#define CLOSING "Connection: close\r\n" /* what is put into an answer */

/* ---- host.c, proxy.c ---- */
/* "host", "host:port" or "[v6]:port": the host in its normal form. default_port 0: the port must be
 * written. */
int host_parse_authority(struct str text, uint16_t default_port, char host[HOST_SIZE],
	uint16_t *port, struct error *err);
/* Checks that an entry of the list is in its normal form: no request would match another form. */
int host_check(const struct forward_host *host, struct error *err);
/* A host that is written as an address that is not public: a proxy would connect to it. */
bool proxy_must_not_reach(const char *host);

/* ---- messages ---- */
enum egress_type { EGRESS_SERVE = 1, EGRESS_ALLOW, EGRESS_SETTLE, EGRESS_LOOK, EGRESS_END };
struct egress_message { /* of a policy's channel; SERVE comes with one descriptor */
	uint32_t type;
	uint16_t port;
	uint8_t is_named, zero;
	char host[HOST_SIZE];
};
/* One for each message, and one for the policy itself. */
struct egress_reply {
	int32_t code; /* enum error_code; ERR_NONE: done */
	char text[508];
	struct egress_status status;
};
/* err NULL: done. status may be NULL. */
void egress_reply(int channel, const struct error *err, const struct egress_status *status);
/* Serves until all other ends of the service socket are closed. */
int egress_run(int service, struct error *err);
/* Answers the next policy with `why`: the role can't serve. */
void egress_refuse(int service, const struct error *why);

/* ---- names to addresses (resolve.c) ---- */
union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};
enum lookup_state { LOOKUP_RUNNING, LOOKUP_FOUND, LOOKUP_FAILED };
struct addresses {
	size_t count;
	union address items[ADDRESSES_MAX];
};
struct lookup {
	char host[HOST_SIZE];
	enum lookup_state state;
	struct addresses found; /* LOOKUP_FOUND: at least one; port 0 */
	const char *reason;	/* LOOKUP_FAILED */
	bool is_timeout;
	/* private */
	struct resolver *resolver;
	struct lookup *next;
	struct loop_timer *timer;
	struct measure measure;
};
struct resolver {
	struct loop *loop;
	void (*done)(struct lookup *lookup, void *ctx); /* found or failed, from the loop */
	void *ctx;
	uint64_t timeout_ms;
	struct lookup *lookups;
};
/* The lookup of `host`: begun when there is none, or the last failed. What was found stays for the
 * life of the policy: the address that was judged is the one that is used. */
struct lookup *resolver_ask(struct resolver *resolver, const char *host);
void resolver_done(struct resolver *resolver); /* ends those that run */

/* ---- the role (serve.c) ---- */
struct server {
	struct loop *loop;
	struct policy *policies;
	unsigned policy_count;
	struct connection *connections;
	unsigned count; /* of connections that are not closed */
	struct loop_timer *reaper;
	char chunk[CHUNK + sizeof CLOSING];
};
struct policy {
	struct server *server;
	struct policy *next;
	int channel;
	struct egress_policy given; /* with every limit set */
	struct egress_status status;
	struct forward_host hosts[HOSTS_MAX];
	char names[HOSTS_MAX][HOST_SIZE];
	size_t host_count;
	struct resolver resolver;
	int listeners[LISTENERS_MAX];
	size_t listener_count;
	unsigned count; /* of connections that are not closed */
	bool is_paused; /* its listeners are not watched */
};

/* ---- connections (connection.c) ---- */
enum { CLIENT, UPSTREAM };
enum state { HEAD, WAITING, RESOLVING, CONNECTING, TUNNELING, RELAYING, DRAINING, CLOSED };
#define UNWATCHED UINT32_MAX /* 0 is watched, for errors */

struct flow {	    /* from one side to the other; flows[CLIENT] is what the client sends */
	char *data; /* what the other side has not taken yet; NULL: nothing */
	size_t start, len;
	bool is_ended; /* nothing more is read */
	bool is_shut;  /* and the other side has been told */
};
struct connection {
	struct policy *policy;
	struct connection *next;
	enum state state;
	int fds[2];
	uint32_t events[2];
	struct flow flows[2];
	struct buf head;
	struct forward_request request;
	struct forward_body body;
	bool is_answer_begun, is_status_passed; /* the first line of the answer */
	bool is_named;
	const struct forward_proxy *proxy; /* through which it is reached, or NULL */
	struct buf tunnel;		   /* what the proxy has answered */
	struct lookup *lookup;
	size_t next_address;
	int reason; /* errno of the last address */
	struct loop_timer *timer;
	uint64_t active_ms;
};
/* Every event of either side, and the timer; serve.c has them. */
loop_fd_fn serve_on_event;
loop_timer_fn serve_on_timer;
/* A place is free. */
void serve_on_closed(struct server *server);

void connection_watch(struct connection *c, int side, uint32_t events);
void connection_set_timer(struct connection *c, uint64_t delay_ms);
void connection_close_side(struct connection *c, int side);
void connection_close(struct connection *c);
/* Both sides see a reset: an end in good order would make half an answer look whole. */
void connection_break(struct connection *c);
/* Sends `text` as the whole answer, and closes when the client has had time to read it. */
void connection_answer(struct connection *c, int code, const char *title, const char *text);
/* Connected: passes the request on, and whatever follows. */
void connection_relay(struct connection *c);
/* RELAYING, DRAINING: moves what can be moved. */
void connection_pump(struct connection *c);
