/* forward.h -- lets a sandbox that has only `lo` reach a few named hosts, and nothing else: the seed
 * of the later proxy. It serves a listening socket that was opened inside the sandbox's network
 * namespace, in a process of its own on the outside.
 * 1. CONNECT host:port and http://host:port/… (absolute form) only, to exactly a listed host:port, on
 * names compared as bytes after lower-casing and one trailing dot removed. Decided before resolving.
 * 2. A host is resolved once, and the connection goes to that address. Loopback, private, link-local,
 * CGNAT, multicast, metadata and mapped addresses are refused unless the entry says `is_named` (the
 * operator wrote this host:port himself).
 * 3. The process has nothing: no file, no privilege (it drops to uid:gid, no_new_privs, all
 * capabilities empty), few descriptors, bounded memory and connections. It ends with its parent. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

#define FORWARD_PORT 3128 /* of 127.0.0.1 inside */

struct forward_host {
	const char *host; /* lower case; a name, or an IPv4/IPv6 literal without brackets */
	uint16_t port;
	bool is_named; /* written by the operator: any address will do */
};
typedef VEC(struct forward_host) forward_hosts;

/* ---- pure: what a request is, and whether it may pass ---- */
struct forward_request {
	bool is_connect;
	char host[256];
	uint16_t port;
	size_t head_len;    /* bytes of the head, up to and with the empty line */
	struct str method, path; /* absolute form: of the rewritten request line */
};
/* 1: whole and valid. 0: more bytes are needed (at most FORWARD_HEAD_MAX). -1: *err says why it is
 * refused (400). */
#define FORWARD_HEAD_MAX 16384
int forward_parse(struct str bytes, struct forward_request *out, struct error *err);
/* The entry that allows it, or NULL. */
const struct forward_host *forward_decide(
	const forward_hosts *hosts, const struct forward_request *request);
/* Whether an address (struct sockaddr) is one that only a named host may have. */
struct sockaddr;
bool forward_address_is_closed(const struct sockaddr *address);
/* "https://user:pw@host:8080/simple/" -> host, port (443, 80 or as written). ERR_INVALID. */
int forward_host_from_url(
	const char *url, struct arena *arena, struct forward_host *host, struct error *err);

/* ---- the process ---- */
struct forward {
	pid_t pid;
	int pidfd, control;		/* -1: not running */
	const volatile struct forward_counts *counts; /* shared with it */
};
struct forward_counts {
	uint64_t bytes_in;  /* from the network into the sandbox */
	uint64_t bytes_out;
	uint64_t connections, refused;
};
struct forward_options {
	forward_hosts hosts;
	bool is_settled;  /* false: requests for other hosts wait for forward_settle (30 s at most) */
	uid_t uid;
	gid_t gid;	  /* to drop to, when root */
};
/* Starts it. The sandbox's listening socket is handed over later by forward_serve, which may be called
 * for several sandboxes. forward_stop follows always. */
int forward_start(const struct forward_options *options, struct forward *forward, struct error *err);
int forward_serve(struct forward *forward, int listener, struct error *err);
/* One more host; and: no more will come, judge what waits. */
int forward_allow(struct forward *forward, const struct forward_host *host, struct error *err);
int forward_settle(struct forward *forward, struct error *err);
/* Closes every listener and connection and ends the process; returns when it is gone. */
void forward_stop(struct forward *forward);
/* The last refusal, for messages: "host:port" or "" (from shared memory). */
void forward_last_refused(const struct forward *forward, char out[320]);
