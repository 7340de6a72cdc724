/* connection.h -- one client of the forwarder and the host it asked for; only of use inside this
 * room. A connection goes head -> (waiting) -> resolving -> connecting -> (tunneling, through a
 * proxy)
 * -> relaying -> draining, and is closed from any of them.
 * 1. A closed one is freed in the next turn of the loop: whoever still holds it may look at its
 * state.
 * 2. What one side has sent and the other hasn't taken is at most a chunk; no more is read until
 * then. */
#pragma once
#include "egress/parts.h"

#define LISTENERS_MAX 64
#define POLICIES_MAX 64
#define CHUNK 65536
#define UNWATCHED UINT32_MAX /* 0 is watched, for errors */

enum { CLIENT, UPSTREAM };
enum state { HEAD, WAITING, RESOLVING, CONNECTING, TUNNELING, RELAYING, DRAINING, CLOSED };

struct flow {	    /* from the side that it has the index of, to the other */
	char *data; /* what the other side hasn't taken yet; NULL: nothing */
	size_t start, len;
	bool is_ended; /* nothing more is read */
	bool is_shut;  /* and the other side has been told */
};

/* Who may be reached through the listeners that are its own. */
struct policy {
	uint32_t id;
	struct forward_host hosts[HOSTS_MAX];
	char names[HOSTS_MAX][HOST_SIZE];
	size_t host_count;
	bool is_settled;
	struct policy *next;
};

struct listening {
	struct server *server;
	const struct policy *policy;
	int fd;
};

struct connection {
	struct server *server;
	const struct policy *policy;
	struct connection *next;
	enum state state;
	int fds[2];
	uint32_t events[2];
	struct flow flows[2];
	struct buf head;
	struct forward_request request;
	struct forward_body body;
	bool is_named;
	const struct forward_proxy *proxy; /* through which it is reached, or NULL */
	struct buf tunnel;		   /* what the proxy has answered */
	struct lookup *lookup;
	size_t next_address;
	int reason; /* errno of the last address */
	struct loop_timer *timer;
	uint64_t active_ms;
};

struct server {
	struct loop *loop;
	struct forward_limits limits;
	struct shared *shared;
	struct resolver resolver;
	struct forward_proxies proxies;
	int control;
	struct policy *policies;
	size_t policy_count;
	struct listening *listeners[LISTENERS_MAX];
	size_t listener_count;
	bool is_paused;
	struct connection *connections;
	unsigned count; /* that aren't closed */
	struct loop_timer *reaper;
	char chunk[CHUNK];
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
