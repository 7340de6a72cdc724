/* internal.h -- what the files of this room share: the messages of a policy, and the connections of
 * the role.
 *
 * A connection of a proxy listener begins in HEAD (front.c), one of a names listener with the name
 * that names_find knows. Then, for every host that it asks for:
 *
 *	front_judge -> (WAITING) -> RESOLVING -> CONNECTING -> (TUNNELING, through a proxy)
 *		upstream.c, which ends in front_connected
 *	a tunnel: HELLO (hello.c) -> RELAYING (relay.c), or EXCHANGING when HTTP is spoken in it
 *	an HTTP request: EXCHANGING (exchange.c) -> HEAD for the next request
 *
 * and from any of them DRAINING, CLOSED.
 * 1. A closed connection is freed in the next turn of the loop: its state may be read until then.
 * 2. What one side has sent and the other has not taken is at most a chunk or a pipe; no more is
 * read until then.
 * 3. Nothing goes upstream that was not judged. */
#pragma once
#include <netinet/in.h>
#include "base/buf.h"
#include "base/hash.h"
#include "egress/egress.h"
#include "model/network/address.h"
#include "proc/loop.h"
#include "proc/measure.h"

#define HOST_SIZE NETWORK_HOST_SIZE
#define LISTENERS_MAX 64 /* of one policy */
#define ADDED_MAX 1024	 /* hosts of one policy by egress_allow */
#define ADDRESSES_MAX 16 /* of one host that are tried */
#define CHUNK 65536
#define CLIENT_BYTES_MAX (FORWARD_HEAD_MAX + 1) /* of a client that were not passed on yet */
#define RULES_MAX ((size_t)4 << 20)		/* bytes of the rules of a policy */

/* ---- host.c, proxy.c ---- */
/* Checks that an entry of the list is in its normal form: no request would match another form. */
int host_check(const struct forward_host *host, struct error *err);
/* A host that is written as an address that is not public: a proxy would connect to it. */
bool proxy_must_not_reach(const char *host);

/* ---- messages ---- */
enum egress_type {
	EGRESS_SERVE = 1, /* comes with a listener; `kind` */
	EGRESS_SET,	  /* comes with a file of rules_write */
	EGRESS_ALLOW,	  /* host, port, is_named */
	EGRESS_SETTLE,
	EGRESS_LOOK,
	EGRESS_END
};
struct egress_message { /* of a policy's channel */
	uint32_t type;
	uint16_t port;
	uint8_t is_named, kind;
	char host[HOST_SIZE];
};
/* One for each message, and one for the policy itself. Its size differs from a record's. */
struct egress_reply {
	int32_t code; /* enum error_code; ERR_NONE: done */
	char text[508];
	struct egress_status status;
};
_Static_assert(sizeof(struct egress_reply) != sizeof(struct egress_record), "told by their sizes");
/* err NULL: done. status may be NULL. */
void egress_reply(int channel, const struct error *err, const struct egress_status *status);
/* Serves until all other ends of the service socket are closed. */
int egress_run(int service, struct error *err);
/* Answers the next policy with `why`: the role can't serve. */
void egress_refuse(int service, const struct error *why);

union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};
struct addresses {
	size_t count;
	union address items[ADDRESSES_MAX];
};
/* "192.0.2.1"; "" of one that is not set. */
void address_print(const union address *address, char out[48]);
/* false: not an address. */
bool address_read(const char *text, union address *out);

/* ---- rules (rules.c) ---- */
struct rules { /* shared by all policies whose rules are the same bytes */
	struct rules *next;
	unsigned users;
	unsigned char key[SHA256_LEN];
	struct arena arena;
	struct network_list list;
	struct network_list metered; /* hosts; of its own arena NULL: none */
	uint64_t meter;		     /* bytes of one connection to them */
	struct map hosts;	     /* name -> union address */
	struct address_range *ranges;
	size_t range_count;
};
/* The rules as lines of text. */
void rules_write(const struct egress_rules *rules, struct buf *out);
/* Reads them, or finds those that are the same. rules_release follows. */
int rules_get(struct rules **all, struct str text, struct rules **out, struct error *err);
void rules_release(struct rules **all, struct rules *rules); /* NULL: nothing */

/* ---- names to addresses (resolve.c) ---- */
enum lookup_state { LOOKUP_QUEUED, LOOKUP_RUNNING, LOOKUP_FOUND, LOOKUP_FAILED };
struct lookup {
	char host[HOST_SIZE];
	enum lookup_state state;
	struct addresses found; /* LOOKUP_FOUND: at least one; port 0 */
	const char *reason;	/* LOOKUP_FAILED */
	bool is_timeout;
	/* private */
	struct resolver *resolver;
	struct lookup *next;	    /* of the resolver */
	struct lookup *next_queued; /* of all resolvers */
	uint64_t old_ms;	    /* when what was found is not used any more */
	struct loop_timer *timer;
	struct measure measure;
};
struct lookup_queue { /* of the whole role: each lookup that runs is a process */
	unsigned running;
	struct lookup *first, **last;
};
struct resolver {
	struct loop *loop;
	struct lookup_queue *queue;
	void (*done)(struct lookup *lookup, void *ctx); /* found or failed, from the loop */
	void *ctx;
	uint64_t timeout_ms;
	struct lookup *lookups;
	size_t count;
	unsigned running;
};
/* The lookup of `host`: begun when there is none, the last failed, or what it found is old. Valid
 * until `done` was called for it, or until the next turn of the loop when its state is final.
 * NULL: too many names at once. */
struct lookup *resolver_ask(struct resolver *resolver, const char *host);
void resolver_done(struct resolver *resolver); /* ends those that run */

/* ---- the role (serve.c), policies (policy.c) ---- */
struct pipe {
	struct pipe *next;
	int fds[2];
};
struct proxies { /* shared by all policies that have the same */
	struct proxies *next;
	unsigned users;
	struct forward_proxies given;
};
struct server {
	struct loop *loop;
	struct policy *policies;
	struct rules *rules;
	struct proxies *proxies;
	struct lookup_queue lookups;
	struct connection *closed; /* to be freed */
	unsigned count;		   /* of connections that are not closed */
	unsigned count_max;	   /* by the descriptors that the role may have */
	unsigned paused;	   /* policies whose listeners are not watched */
	struct loop_timer *reaper, *resumer;
	struct pipe *pipes; /* empty ones */
	unsigned pipe_count;
	char chunk[CHUNK];
};
struct listener {
	struct listener *next;
	struct policy *policy;
	int fd;
	enum egress_listener kind;
};
struct policy {
	struct server *server;
	struct policy *next, **link;
	int channel;
	struct egress_limits limits; /* every limit set */
	bool is_settled, has_records, only_reads;
	bool is_paused; /* its listeners are not watched */
	struct proxies *proxies;
	struct egress_status status;
	struct rules *rules;	    /* NULL: nothing may be reached */
	struct network_list *added; /* by egress_allow; or NULL */
	struct arena arena;	    /* of `added` */
	struct names *names;	    /* of names.c; or NULL */
	struct resolver resolver;
	struct listener *listeners;
	size_t listener_count;
	struct connection *connections; /* that are not closed */
	unsigned count;
	uint64_t next_id;
	int64_t budget; /* bytes that may be moved now; limits.bandwidth */
	uint64_t budget_ns;
	struct loop_timer *budget_timer;
};
/* Whether a host may be reached: the one decision of all front ends. */
struct network_verdict policy_decide(const struct policy *policy, const char *host, uint16_t port);
/* Whether some port of a host may be reached. */
bool policy_names(const struct policy *policy, const char *host);
/* Sends a record to the holder, or counts it as lost. Sets `lost`. */
void policy_record(struct policy *policy, struct egress_record *record);
/* A refusal of a front end that has no connection; counts and records. port 0: of any. */
void policy_refused(struct policy *policy, enum egress_front front, const char *host, uint16_t port,
	const char *rule, const char *reason);
/* How many of `wanted` bytes may be moved now; 0: connection_pump is called when more may. */
size_t policy_budget(struct policy *policy, size_t wanted);
void policy_spend(struct policy *policy, size_t bytes);
int policy_open(
	struct server *server, const struct egress_policy *given, int *channel, struct error *err);
/* One packet of exactly `size` bytes with at most one descriptor, *fd, which is the caller's. 1:
 * received. 0: no packet yet. -1: an invalid packet (*err), or, with *is_over, the end. */
int policy_receive(int channel, void *data, size_t size, int *fd, bool *is_over, struct error *err);
bool policy_is_socket(int fd, int type, bool is_listening);
/* A listener was made to block: the sandbox is hostile. Its listeners and connections are closed,
 * and the policy, without any, stays until its channel ends. */
void policy_give_up(struct policy *policy);
/* Begins or ends watching the policy's listeners. */
void policy_watch_listeners(struct policy *policy, bool is_wanted);

/* ---- accepting (serve.c) ---- */
loop_fd_fn serve_on_listener; /* ctx: struct listener */
/* A place is free. */
void serve_on_closed(struct server *server);

/* ---- names (names.c) ---- */
/* Which name an address stands for, at which a client was accepted. false: none. */
bool names_find(struct policy *policy, const union address *address, char host[HOST_SIZE]);
/* Something has come to a resolver's socket. */
void names_serve(struct listener *listener);
void names_done(struct policy *policy);

/* ---- connections (connection.c) ---- */
enum { CLIENT, UPSTREAM };
enum state {
	HEAD,
	WAITING,
	RESOLVING,
	CONNECTING,
	TUNNELING,
	HELLO,
	RELAYING,
	EXCHANGING,
	DRAINING,
	CLOSED
};
#define UNWATCHED UINT32_MAX /* 0 is watched, for errors */

struct flow {	    /* from one side to the other; flows[CLIENT] is what the client sends */
	char *data; /* what the other side has not taken yet; NULL: nothing */
	size_t start, len;
	struct pipe *pipe; /* with `piped` bytes; or NULL */
	size_t piped;
	bool is_bulk;  /* by a pipe */
	bool is_ended; /* nothing more is read */
	bool is_shut;  /* and the other side has been told */
};
struct attempt { /* to connect */
	struct addresses addresses;
	size_t next;
	int reason;   /* errno of the last address */
	bool is_open; /* any address is allowed */
};
struct connection {
	struct policy *policy;
	struct connection *next, **link;
	enum state state;
	enum egress_front front;
	int fds[2];
	uint32_t events[2];
	struct flow flows[2];
	struct buf in;	  /* what the client has sent and was not passed on */
	bool is_greeted;  /* SOCKS: the method is agreed on */
	bool is_tunnel;	  /* to `host` for good: CONNECT, SOCKS5, names */
	bool is_answered; /* and the client was told that it is connected */
	bool is_client_ended;
	bool is_pending;   /* c->in holds the next request */
	bool is_begun;	   /* a part of a head is in c->in */
	bool is_throttled; /* by the policy's bandwidth */
	bool is_ready[2];  /* which side the event is of */
	/* The host that it asks for, and is connected to when `is_open`. */
	char host[HOST_SIZE];
	uint16_t port;
	bool is_open;
	struct rules *rules; /* that `verdict` is from; or NULL */
	struct network_verdict verdict;
	bool has_set_address;		   /* the operator has set the address of `host` */
	const struct forward_proxy *proxy; /* through which it is reached, or NULL */
	struct buf tunnel;		   /* what the proxy has answered */
	struct lookup *lookup;
	struct attempt *attempt;
	struct exchange *exchange; /* HTTP */
	struct loop_timer *timer;
	uint64_t active_ms;
	/* Of the record: */
	uint64_t id, opened_ms, bytes_in, bytes_out, requests;
	uint64_t meter; /* bytes_in that end it; 0: none do */
	union address address;
};
struct connection *connection_new(struct policy *policy, int fd);
void connection_watch(struct connection *c, int side, uint32_t events);
void connection_set_timer(struct connection *c, uint64_t delay_ms);
void connection_stop_timer(struct connection *c);
void connection_close_side(struct connection *c, int side);
void connection_close(struct connection *c);
/* Both sides see a reset: an end in good order would make half an answer look whole. */
void connection_break(struct connection *c);
/* Records the end of what was open, and closes the upstream side. */
void connection_leave(struct connection *c);
/* Sends `data` as the last bytes, and closes when the client has had time to read them. */
void connection_finish(struct connection *c, const char *data, size_t len);
/* The client's bytes that were not passed on, with what can be read now. false: the connection is
 * closed. *has_more: something was read. */
bool connection_read_client(struct connection *c, bool *has_more);
loop_fd_fn connection_on_event;
/* Sends what is kept and what can be read now. */
void connection_pump(struct connection *c);

/* ---- front ends (front.c) ---- */
/* The first bytes of a client, or more of them. */
void front_read(struct connection *c);
/* Judges c->host and c->port, and goes on to connect. */
void front_judge(struct connection *c);
/* Refuses the host: tells the client in the words of its front end, counts, records. */
void front_refuse(struct connection *c, const char *why);
/* Not reached. code: of HTTP; title: all that clients show of the answer to a CONNECT. */
void front_fail(struct connection *c, int code, const char *title, const char *why);
/* A request that could not be read. */
void front_reject(struct connection *c, int code, const char *title, const char *why);
/* Whether it has brought more than it may: it was ended then. */
bool front_is_over(struct connection *c);
/* The upstream side is connected. */
void front_connected(struct connection *c);

/* ---- upstream.c ---- */
void upstream_begin(struct connection *c);
void upstream_on_lookup(struct lookup *lookup, void *ctx);
void upstream_on_event(struct connection *c);
void upstream_on_timer(struct connection *c);

/* ---- hello.c ---- */
/* The client's first bytes in a tunnel. */
void hello_judge(struct connection *c);

/* ---- exchange.c ---- */
/* The host of the request is connected. */
void exchange_connected(struct connection *c);
void exchange_pump(struct connection *c);
void exchange_free(struct exchange *exchange);

/* ---- relay.c ---- */
/* Passes c->in on, and everything that comes. */
void relay_begin(struct connection *c);
void relay_pump(struct connection *c);
/* Bytes that have come from that side: counts them, also for the policy's bandwidth and as
 * activity. */
void relay_count(struct connection *c, int side, size_t bytes);
/* One side alone. */
void relay_pump_flow(struct connection *c, int side);
/* Sends what the other side takes, and keeps the rest. Only when nothing is kept. false: closed. */
bool relay_send(struct connection *c, int side, const char *data, size_t len);
/* Sends what is kept. false: the other side must take it first, or the connection is closed. */
bool relay_flush(struct connection *c, int side);
void relay_drop(struct server *server, struct flow *flow);
