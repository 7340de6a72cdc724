/* egress.h -- the only way out of a sandbox that has just `lo`: a role that serves listening
 * sockets of such sandboxes from outside, and forwards to the hosts of the listener's policy.
 * 1. One process serves many policies. A policy is a channel to it: its holder sets its rules, adds
 * listeners, and reads counters and records of decisions. When the channel ends, the listeners and
 * connections of the policy are closed. No policy sees another.
 * 2. Every front end asks the same function (model/network/network.h) whether a host may be
 * reached, before the host's name is resolved. What is resolved is judged once more by its address,
 * and that address is connected to.
 * 3. What is spoken behind a name must be said to that name: the server's name of a TLS hello, the
 * Host header of every HTTP request. Other protocols pass only on a port that the rule names.
 * 4. New rules replace the old ones whole, and hold for new connections and requests.
 * 5. The role is confined: no files but those below /etc, which name resolution reads, no
 * privilege, few descriptors, bounded memory and connections. It ends with its parent, and when all
 * other ends of its service socket are closed. */
#pragma once
#include "base/vec.h"
#include "egress/forward.h"
#include "model/network/network.h"
#include "proc/role.h"

/* ---- the role ---- */
#define EGRESS_ARGV0 "carrel-egress" /* carrel-build runs the role when argv[0] is this */
#define EGRESS_SERVICE 3 /* descriptor at which the role receives channels of policies */

/* Sets the arguments, root and network of the role in *start. The caller sets the program, the ids,
 * the log and the service socket. */
void egress_describe(struct role_start *start);
/* Makes the socket pair for EGRESS_SERVICE, yours to close: ends[0] is for clients, ends[1] for the
 * role, which may be started later, when a first policy has arrived. */
int egress_pair(int ends[2], struct error *err);
/* The main function of the role. */
int egress_main(void);

/* The role as a child of the caller. */
struct egress_role {
	pid_t pid;   /* -1: none */
	int service; /* for egress_open; or -1 */
};
#define EGRESS_ROLE_NONE ((struct egress_role){ -1, -1 })
/* Starts the role; egress_stop follows. `program`: path of carrel-build. For root as the caller,
 * the role runs as uid and gid, which must not be 0. */
int egress_start(
	const char *program, uid_t uid, gid_t gid, struct egress_role *role, struct error *err);
/* Kills the role, which closes all its connections, and reaps it. */
void egress_stop(struct egress_role *role);

/* ---- its clients ---- */
struct egress_limits {	  /* of one policy; 0: the default given here */
	uint64_t head_ms; /* 10 s: for the whole head of a request, or hello */
	uint64_t
		wait_ms; /* 30 s: how long a request for an unlisted host waits for egress_settle */
	uint64_t resolve_ms;  /* 10 s */
	uint64_t connect_ms;  /* 10 s: for each address */
	uint64_t idle_ms;     /* 120 s without a byte either way */
	uint64_t connections; /* 256; more wait in the queues of the listeners */
	uint64_t bandwidth;   /* bytes a second of all connections, both ways; 0: any */
};
struct egress_policy {
	struct egress_limits limits;
	struct forward_proxies proxies; /* all zero: none */
	uint8_t is_settled;		/* 0: requests for other hosts wait for egress_settle */
	uint8_t has_records;		/* the holder reads records (egress_read) */
	/* Of HTTP only GET and HEAD, without an upgrade, and no other protocol but TLS, whose
	 * requests can't be seen. */
	uint8_t only_reads;
};
/* What may be reached; all zero: nothing. */
struct egress_rules {
	enum network_mode mode;
	text_list allow, deny; /* entries of model/network/network.h */
	/* Of the operator: */
	const uint16_t *ports; /* of entries that name none; port_count 0: 80 and 443 */
	size_t port_count;
	pair_list hosts;  /* name -> address, asked before DNS; the address may be any */
	text_list ranges; /* of addresses that names may have though they are not public */
	text_list trust; /* entries that are allowed at whatever address: the operator named them */
	network_bounds bounds; /* of policies: each must let through what the lists allow */
	/* A connection to one of these hosts that has brought more bytes than this is ended; 0: no
	 * such limit. Entries of bounds: without a port they hold for all. */
	struct network_meter meter;
};
struct egress_status {
	uint64_t bytes_in; /* from the network into the sandbox */
	uint64_t bytes_out;
	uint64_t connections;	/* forwarded so far */
	uint64_t requests;	/* HTTP requests among them that could be read */
	uint64_t open;		/* connections now */
	uint64_t refused;	/* malformed, host not listed, or address not allowed */
	uint64_t failed;	/* allowed, but not resolved or not connected */
	uint64_t lost;		/* records that the holder has not read in time */
	char last_refused[320]; /* the last host:port, or name of a query, refused, or "" */
	char last_failure[FORWARD_FAILURE_SIZE]; /* "host:port: Connection refused"; "" after a
						  * later success of that host */
};
enum egress_listener {
	EGRESS_PROXY = 1, /* HTTP CONNECT, absolute form and SOCKS5 */
	EGRESS_NAMES,	  /* connections to addresses that the policy's resolver has given out */
	EGRESS_RESOLVER,  /* DNS; a UDP socket, or a TCP socket that listens */
};
enum egress_front {
	EGRESS_FRONT_CONNECT = 1,
	EGRESS_FRONT_HTTP,
	EGRESS_FRONT_SOCKS,
	EGRESS_FRONT_NAMES,
	EGRESS_FRONT_RESOLVER,
};
enum egress_event {
	EGRESS_OPENED = 1, /* allowed and connected; CLOSED follows with the same id */
	EGRESS_CLOSED,
	EGRESS_REFUSED,
	EGRESS_FAILED,	/* allowed, but not reached */
	EGRESS_LIMITED, /* ended by egress_rules.meter; CLOSED follows */
};
/* "opened", "connect" and the like; "unknown" for other values. */
const char *egress_event_name(unsigned event);
const char *egress_front_name(unsigned front);
struct egress_record { /* of one decision, or of the end of a connection */
	uint64_t id;   /* of the connection and host, in this policy */
	uint64_t lost; /* number of records so far that could not be sent */
	uint64_t bytes_in, bytes_out, requests, duration_ms; /* set for EGRESS_CLOSED */
	uint8_t event, front;
	uint16_t port;
	uint32_t zero;
	char host[NETWORK_HOST_SIZE]; /* "": the request could not be read */
	char address[48];	      /* connected to, or refused; "": not resolved */
	char rule[NETWORK_HOST_SIZE]; /* the entry that decided, or "" */
	char reason[128];	      /* EGRESS_REFUSED, EGRESS_FAILED */
};

struct egress {
	int channel, lock; /* -1: closed */
};
#define EGRESS_NONE ((struct egress){ -1, -1 })

/* Begins a policy without rules and listeners. egress_close follows, also after a failure.
 * ERR_UNAVAILABLE: the role has ended, or a layer of its confinement (Landlock …) is missing. */
int egress_open(
	int service, const struct egress_policy *policy, struct egress *egress, struct error *err);
/* Each of the calls below has taken effect when it returns, and may be made by processes forked
 * after egress_open. ERR_UNAVAILABLE: the role has ended. Records that come meanwhile are dropped:
 * for policies without has_records. */
/* Replaces all rules. ERR_INVALID names the entry that is wrong; the old rules hold then. */
int egress_set(struct egress *egress, const struct egress_rules *rules, struct error *err);
/* Adds a listener (64 at most); the caller keeps its descriptor. */
int egress_listen(
	struct egress *egress, enum egress_listener kind, int listener, struct error *err);
/* egress_listen of an EGRESS_PROXY. */
int egress_serve(struct egress *egress, int listener, struct error *err);
/* Adds a host to the rules (1,024 at most); egress_set doesn't remove it. */
int egress_allow(struct egress *egress, const struct forward_host *host, struct error *err);
/* Declares the list of hosts complete: waiting requests for other hosts are refused. */
int egress_settle(struct egress *egress, struct error *err);
/* Reads the counters of the policy. */
int egress_look(struct egress *egress, struct egress_status *status, struct error *err);
/* Ends the policy; its listeners and connections are closed when this returns. */
void egress_close(struct egress *egress);

/* ---- for holders with a loop: nothing waits ---- */
/* Each of these sends an order and returns. The answer comes by egress_read, in the order of the
 * orders. At most 32 may be under way. ERR_UNAVAILABLE: the role has ended, or doesn't read. */
int egress_begin(
	int service, const struct egress_policy *policy, struct egress *egress, struct error *err);
int egress_post_rules(struct egress *egress, const struct egress_rules *rules, struct error *err);
int egress_post_listener(
	struct egress *egress, enum egress_listener kind, int listener, struct error *err);
int egress_post_look(struct egress *egress, struct error *err);
struct egress_news {
	bool is_record;
	struct egress_record record;
	/* An answer: to egress_begin first. */
	struct error failure; /* code ERR_NONE: done */
	struct egress_status status;
};
/* The next packet of egress->channel, which is to be watched for EPOLLIN. 1: *news is set. 0: none
 * is there. -1: the role has ended, and with it the policy: egress_drop. */
int egress_read(struct egress *egress, struct egress_news *news, struct error *err);
/* Ends the policy without waiting: its listeners are closed soon after. */
void egress_drop(struct egress *egress);
