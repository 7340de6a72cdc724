/* forward.h -- lets a sandbox that has only `lo` reach a few named hosts, and nothing else: the
 * seed of the later proxy. It serves a listening socket that was opened inside the sandbox's
 * network namespace, in a process of its own on the outside.
 * 1. CONNECT host:port and http://host:port/… (absolute form) only, to exactly a listed host:port,
 * on names compared as bytes after lower-casing and one trailing dot removed. Decided before
 * resolving.
 * 2. A host is resolved once, and the connection goes to that address. Loopback, private,
 * link-local, CGNAT, multicast, metadata and mapped addresses are refused unless the entry says
 * `is_named` (the operator wrote this host:port himself).
 * Through a proxy of the operator's it is the proxy that resolves: then only addresses that are
 * written as such are refused.
 * 3. The process has nothing: no file, no privilege (it drops to uid:gid, no_new_privs, all
 * capabilities empty), few descriptors, bounded memory and connections. It ends with its parent. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/http1.h"
#include "linux/child.h"

#define FORWARD_PORT 3128 /* of 127.0.0.1 inside */

struct forward_host {
	const char *host; /* lower case; a name, or an IPv4/IPv6 literal without brackets */
	uint16_t port;
	bool is_named; /* written by the operator: any address will do */
};
typedef VEC(struct forward_host) forward_hosts;

struct forward_request {
	bool is_connect;
	char host[256]; /* as in struct forward_host */
	uint16_t port;
	size_t head_len; /* bytes of the head, up to and with the empty line */
	/* Absolute form only: */
	struct str method, path; /* of the rewritten request line; views of the bytes, or static */
	bool is_old;		 /* HTTP/1.0 */
	bool is_chunked, has_length;
	uint64_t body_bytes; /* when not chunked */
};
/* 1: whole and valid. 0: more bytes are needed (at most FORWARD_HEAD_MAX). -1: *err says why it is
 * refused (400). A Host header must be there (but for HTTP/1.0, whose clients may not know it),
 * once, and say what the request line says. */
#define FORWARD_HEAD_MAX 16384
int forward_parse(struct str bytes, struct forward_request *out, struct error *err);
/* Absolute form: appends the head for the upstream server to `out`. Origin form; Host and framing
 * are written anew, `Connection: close` always, hop-by-hop and Proxy-* headers are left out. */
void forward_rewrite(struct str bytes, const struct forward_request *request, struct buf *out);

/* Where the body of a request ends: nothing after it may go upstream, where it would be a request
 * that nobody judged. Chunked bodies with extensions or trailers are refused: nobody sends them,
 * and parsers differ. */
struct forward_body {
	bool is_chunked, is_done;
	uint64_t left; /* when not chunked */
	struct http1_chunks chunks;
};
void forward_body_start(struct forward_body *body, const struct forward_request *request);
/* *taken: how many of the bytes are the body's (all of them unless it is_done after). -1:
 * malformed. */
int forward_body_take(
	struct forward_body *body, struct str bytes, size_t *taken, struct error *err);

/* The entry that allows it (one that is_named first), or NULL. */
const struct forward_host *forward_decide(
	const forward_hosts *hosts, const struct forward_request *request);
/* Whether an address (struct sockaddr) is one that only a named host may have. */
struct sockaddr;
bool forward_address_is_closed(const struct sockaddr *address);
/* "https://user:pw@host:8080/simple/" -> host, port (443, 80 or as written). ERR_INVALID, in words
 * that show nothing of the URL. */
int forward_host_from_url(
	const char *url, struct arena *arena, struct forward_host *host, struct error *err);

struct forward_proxy {
	char host[256]; /* as in struct forward_host; "": none */
	uint16_t port;
	char authorization[1024]; /* of Proxy-Authorization, or "" */
};
struct forward_proxies {
	struct forward_proxy https, http; /* for CONNECT, and for http:// requests */
	const char *except;		  /* as NO_PROXY: hosts that are reached directly */
};
/* "http://user:password@host:port" or "host:port". ERR_INVALID, in words that show nothing of it.
 */
int forward_proxy_parse(const char *url, struct forward_proxy *proxy, struct error *err);
/* Names, domains (".example.com"), addresses, each with or without a port, and "*". */
bool forward_proxy_is_excepted(const char *except, const char *host, uint16_t port);
/* From HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, or the same in lower case, which count
 * first. */
int forward_proxies_find(struct forward_proxies *proxies, struct error *err);

struct forward {
	struct child child;
	int control, lock;			      /* -1: not running */
	const volatile struct forward_counts *counts; /* shared with it; NULL after forward_stop */
};
#define FORWARD_NONE                                                                               \
	{                                                                                          \
		.child = CHILD_NONE, .control = -1, .lock = -1                                     \
	}
struct forward_counts {
	uint64_t bytes_in; /* from the network into the sandbox */
	uint64_t bytes_out;
	uint64_t connections; /* that were passed on */
	uint64_t refused;     /* malformed, not listed, or at a closed address */
};
struct forward_limits {	      /* 0: as said here */
	uint64_t head_ms;     /* 10 s: for a request to be whole */
	uint64_t wait_ms;     /* 30 s: of a request for an unlisted host until it is settled */
	uint64_t resolve_ms;  /* 10 s */
	uint64_t connect_ms;  /* 10 s: for each address */
	uint64_t idle_ms;     /* 120 s without a byte either way */
	unsigned connections; /* 256; more wait in the listeners' queues */
};
struct forward_options {
	forward_hosts hosts;
	bool is_settled; /* false: requests for other hosts wait for forward_settle */
	uid_t uid;
	gid_t gid; /* to drop to, when root */
	struct forward_limits limits;
	struct forward_proxies proxies; /* all zero: none */
};
/* Starts it; returns when it is confined. The sandbox's listening socket is handed over later by
 * forward_serve, which may be called for several sandboxes (64). forward_stop follows always, also
 * after a failure. ERR_UNAVAILABLE: a layer of its confinement (Landlock …) isn't there. */
int forward_start(
	const struct forward_options *options, struct forward *forward, struct error *err);
/* Each of these holds when it returns, and may be called by processes that were forked since. They
 * are about one policy: the hosts that the clients of its listeners may reach, and no others. A
 * policy is a number of the caller's; it begins with its first message (64 at most). The listener
 * stays the caller's. */
#define FORWARD_POLICY 0 /* whose hosts are those of forward_options */
int forward_serve(struct forward *forward, uint32_t policy, int listener, struct error *err);
/* One more host (64 at most); and: no more will come, judge what waits. */
int forward_allow(struct forward *forward, uint32_t policy, const struct forward_host *host,
	struct error *err);
int forward_settle(struct forward *forward, uint32_t policy, struct error *err);
/* Its listeners and all of their connections are closed, and its hosts forgotten. */
int forward_end(struct forward *forward, uint32_t policy, struct error *err);
/* Closes every listener and connection and ends the process; returns when it is gone. Of one that
 * isn't running: nothing. */
void forward_stop(struct forward *forward);
/* The last host that was refused, for messages: "host:port" or "" (from shared memory; before
 * forward_stop). */
void forward_last_refused(const struct forward *forward, char out[320]);
/* The last host that could not be reached, and why: "host:port: Connection refused", or "" when a
 * connection was made since. From shared memory, too. */
#define FORWARD_FAILURE_SIZE 480
void forward_last_failure(const struct forward *forward, char out[FORWARD_FAILURE_SIZE]);
