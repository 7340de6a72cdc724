/* parts.h -- what the files of this room share. */
#pragma once
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "egress/forward.h"
#include "linux/child.h"
#include "proc/loop.h"

#define HOST_SIZE 256
#define HOSTS_MAX 64	 /* of one forwarder's list */
#define ADDRESSES_MAX 16 /* of one host that are tried */

/* "host", "host:port" or "[v6]:port": the host in its normal form. default_port 0: the port must be
 * written. */
int host_parse_authority(struct str text, uint16_t default_port, char host[HOST_SIZE],
	uint16_t *port, struct error *err);
/* An entry of the list is in its normal form, or nothing would ever match it. */
int host_check(const struct forward_host *host, struct error *err);

/* A host that is written as an address that isn't public: a proxy would connect to it. */
bool proxy_must_not_reach(const char *host);

union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};
enum lookup_state { LOOKUP_RUNNING, LOOKUP_FOUND, LOOKUP_FAILED };
struct lookup {
	char host[HOST_SIZE];
	enum lookup_state state;
	union address addresses[ADDRESSES_MAX]; /* LOOKUP_FOUND: at least one; port 0 */
	size_t count;
	const char *reason; /* LOOKUP_FAILED */
	bool is_timeout;
	/* its own */
	struct resolver *resolver;
	struct lookup *next;
	struct loop_timer *timer;
	struct child child;
};
struct resolver {
	struct loop *loop;
	void (*done)(struct lookup *lookup, void *ctx); /* found or failed, from the loop */
	void *ctx;
	uint64_t timeout_ms;
	struct lookup *lookups;
};
/* The lookup of `host`: begun when there is none, or the last failed. What was found stays for the
 * life of the process: the address that was judged is the one that is used. NULL: it can't begin.
 */
struct lookup *resolver_ask(struct resolver *resolver, const char *host);
void resolver_done(struct resolver *resolver); /* ends those that run */

enum control_type { CONTROL_SERVE = 1, CONTROL_ALLOW, CONTROL_SETTLE, CONTROL_END };
struct control_message { /* SERVE comes with one descriptor, the others with none */
	uint32_t type, policy;
	uint16_t port;
	uint8_t is_named, zero;
	char host[HOST_SIZE];
};
struct control_reply { /* one for each message, and one before the first: it is confined */
	int32_t code;  /* enum error_code; ERR_NONE: done */
	char text[508];
};
struct shared { /* with the parent; the process may write anything here */
	struct forward_counts counts;
	uint32_t sequence; /* odd while one of these is written */
	char last_refused[320];
	char last_failure[FORWARD_FAILURE_SIZE];
};
/* Serves until the control socket ends. */
int serve_run(const struct forward_options *options, int control, struct shared *shared,
	struct error *err);
void serve_reply(int control, const struct error *err); /* NULL: done */

/* Takes everything from the calling process that it doesn't need: descriptors (the control socket
 * becomes *control), ids, capabilities, files, system calls. It ends with `parent`. */
int confine_self(
	const struct forward_options *options, pid_t parent, int *control, struct error *err);
