/* egress.h -- the only way out of a sandbox that has just `lo`: a role that serves listening
 * sockets of such sandboxes from outside, and forwards to the hosts of the listener's policy.
 * 1. One process serves many policies. A policy is a channel to it: its holder adds hosts and
 * listeners, and reads counters. When the channel ends, the listeners and connections of the
 * policy are closed and its hosts, proxies and addresses forgotten. No policy sees another.
 * 2. What may be reached is decided by the rules of egress/forward.h.
 * 3. The role is confined: no files but those that name resolution reads, no privilege, few
 * descriptors, bounded memory and connections. It ends with its parent, and when all other ends of
 * its service socket are closed. */
#pragma once
#include <stdint.h>
#include "egress/forward.h"
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
	uint64_t head_ms; /* 10 s: for the whole head of a request */
	uint64_t
		wait_ms; /* 30 s: how long a request for an unlisted host waits for egress_settle */
	uint64_t resolve_ms;  /* 10 s */
	uint64_t connect_ms;  /* 10 s: for each address */
	uint64_t idle_ms;     /* 120 s without a byte either way */
	uint64_t connections; /* 256; more wait in the queues of the listeners */
};
struct egress_policy {
	struct egress_limits limits;
	struct forward_proxies proxies; /* all zero: none */
	uint8_t is_settled;		/* 0: requests for other hosts wait for egress_settle */
};
struct egress_status {
	uint64_t bytes_in; /* from the network into the sandbox */
	uint64_t bytes_out;
	uint64_t connections;	/* forwarded so far */
	uint64_t refused;	/* malformed, host not listed, or address not allowed */
	char last_refused[320]; /* the last host:port refused, or "" */
	char last_failure[FORWARD_FAILURE_SIZE]; /* "host:port: Connection refused"; "" after a
						  * later success of that host */
};
struct egress {
	int channel, lock; /* -1: closed */
};
#define EGRESS_NONE ((struct egress){ -1, -1 })

/* Begins a policy without hosts and listeners. egress_close follows, also after a failure.
 * ERR_UNAVAILABLE: the role has ended, or a layer of its confinement (Landlock …) is missing. */
int egress_open(
	int service, const struct egress_policy *policy, struct egress *egress, struct error *err);
/* Each of the calls below has taken effect when it returns, and may be made by processes forked
 * after egress_open. ERR_UNAVAILABLE: the role has ended. */
/* Adds a listener (64 at most); the caller keeps its descriptor. */
int egress_serve(struct egress *egress, int listener, struct error *err);
/* Adds a host (64 at most). */
int egress_allow(struct egress *egress, const struct forward_host *host, struct error *err);
/* Declares the list of hosts complete: waiting requests for other hosts are refused. */
int egress_settle(struct egress *egress, struct error *err);
/* Reads the counters of the policy. */
int egress_look(struct egress *egress, struct egress_status *status, struct error *err);
/* Ends the policy; its listeners and connections are closed when this returns. */
void egress_close(struct egress *egress);
