/* launcher.h -- core's side of sandbox/plan/launch.h: requests out, answers to their callbacks. */
#pragma once
#include "proc/channel.h"
#include "proc/loop.h"
#include "sandbox/plan/launch.h"

struct launcher_request;
/* packet NULL: the launcher is gone. fds (LAUNCH_FD_MAX of them, -1 where none) are the callee's to
 * close. */
typedef void launcher_fn(void *ctx, const struct launch_packet *packet, const int *fds);
struct launcher {
	struct loop *loop;
	int socket;
	uint64_t next_tag;
	struct launcher_request *pending;
	struct channel_queue queue;
	/* An unsolicited ENDED, and the end of the channel (packet NULL). */
	void (*unasked)(void *ctx, const struct launch_packet *packet);
	void *ctx;
};
int launcher_open(struct launcher *launcher, struct loop *loop, int socket, struct error *err);
void launcher_done(struct launcher *launcher);
/* Sends head (its tag is set here) and calls fn with every answer of that tag: several for LIST,
 * one for the others. fds stay the caller's. Returns the tag. */
uint64_t launcher_ask(struct launcher *launcher, struct launch_message *head,
	const char *const *strings, size_t count, const int *fds, int fd_count, launcher_fn *fn,
	void *ctx);
/* The callback of that request isn't called any more. No-op for 0, or after the answer. */
void launcher_forget(struct launcher *launcher, uint64_t tag);
/* The error of a FAILED packet, or that the launcher is gone (packet NULL); returns -1. */
int launcher_failure(const struct launch_packet *packet, struct error *err);
