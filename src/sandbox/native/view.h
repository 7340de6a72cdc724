/* view.h -- a sandbox that is up, as it is seen from outside: connected to, measured, given a
 * terminal. What starts it (an isolation backend) provides the descriptors; only the functions
 * below access its /proc, devpts and control group.
 * 1. A descriptor that a backend or a host doesn't have is -1: what it would tell is then unknown,
 * and the functions below say so.
 * 2. Nothing of it is believed: files of /proc and of control groups are the kernel's, a terminal
 * is opened through its master, and messages of carrel-init are read by
 * sandbox/native/init_client.h. */
#pragma once
#include "base/error.h"
#include "linux/pty.h"
#include "sandbox/native/usage.h"
#include "sandbox/plan/launch.h"
#include "sandbox/plan/plan.h"

struct sandbox_view {
	int init;		/* socket to carrel-init, non-blocking, or -1 */
	int fds[LAUNCH_FD_MAX]; /* private to view.c; or -1 */
	bool is_there;
	enum plan_limiter limiter; /* LIMITER_WATCHDOG: the user of this view enforces the limits */
};
void view_init(struct sandbox_view *view); /* of none */
/* Takes over the descriptors of a STARTED or RUNNING. */
void view_take(struct sandbox_view *view, enum plan_limiter limiter, const int fds[LAUNCH_FD_MAX]);
/* The descriptors that keep its file systems mounted, which are the caller's then; their number.
 * The last one to close such a descriptor waits for the file system, an overlay perhaps, to be
 * unmounted. */
#define VIEW_MOUNTS 5
size_t view_take_mounts(struct sandbox_view *view, int fds[VIEW_MOUNTS]);
/* Closes all of it; of none then. */
void view_done(struct sandbox_view *view);
/* The mechanism of its limits: "cgroup-v1" …; NULL: no sandbox. */
const char *view_limiter(const struct sandbox_view *view);

/* To the carrel-init that listens at `id` in `sockets`. */
int view_connect(struct sandbox_view *view, int sockets, const char *id, struct error *err);
/* In the sandbox's own devpts, so that its programs can name it. Both are yours. */
int view_open_terminal(const struct sandbox_view *view, struct pty_size size, int *master,
	int *terminal, struct error *err);

/* Calls fn for each of its processes, PID 1 among them. */
void view_each_process(
	const struct sandbox_view *view, void (*fn)(void *ctx, int proc, int pid), void *ctx);
/* The state letter of its process `pid` in /proc ('R', 'T' …); 0: no such process. */
char view_process_state(const struct sandbox_view *view, int pid);
/* Appends the table of its TCP sockets, as /proc/net/tcp or tcp6 has it; the table of a sandbox
 * with very many is cut. */
struct buf;
int view_read_sockets(
	const struct sandbox_view *view, bool is_ipv6, struct buf *text, struct error *err);
/* For usage.h. ERR_UNAVAILABLE: there is no /proc to look into. */
int view_open_usage(const struct sandbox_view *view, struct usage *usage, struct error *err);
/* CPU time that its control group counted. false: it has no control group. */
bool view_cpu_ms(const struct sandbox_view *view, uint64_t *ms);
/* Buffers of its sockets, where the kernel counts them apart from other memory (cgroup v1). */
bool view_counts_sockets(const struct sandbox_view *view);
bool view_socket_bytes(const struct sandbox_view *view, uint64_t *bytes);
/* The descriptor (it stays the view's) and events to watch for memory events; -1: not available.
 * Call view_rearm_memory after each event. An event may come before anything was killed. */
int view_memory_events(const struct sandbox_view *view, uint32_t *events);
void view_rearm_memory(const struct sandbox_view *view);
/* Something there was killed for want of memory. */
bool view_is_out_of_memory(const struct sandbox_view *view);
bool view_is_workspace_full(const struct sandbox_view *view);
