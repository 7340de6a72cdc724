/* loop.h -- one epoll loop a process: descriptors, timers, signals.
 * 1. A callback may add or remove any watch or timer, its own too; a removed one is never called
 * again.
 * 2. Timers run on the monotonic clock, never early, in the order of their times. */
#pragma once
#include <signal.h>
#include "base/error.h"

struct loop;
struct loop_timer;
struct signalfd_siginfo;
typedef void loop_fd_fn(struct loop *loop, int fd, uint32_t events, void *ctx);
typedef void loop_timer_fn(struct loop *loop, void *ctx);
typedef void loop_signal_fn(struct loop *loop, const struct signalfd_siginfo *info, void *ctx);

int loop_new(struct loop **loop, struct error *err);
/* Not from a callback. Watched descriptors and the signal mask stay as they are. */
void loop_free(struct loop *loop);
/* Watches fd for `events` (EPOLLIN …); an fd is watched at most once. The loop doesn't own fd:
 * unwatch before closing. Regular files can't be watched (EPERM): they are always ready. */
int loop_watch(
	struct loop *loop, int fd, uint32_t events, loop_fd_fn *fn, void *ctx, struct error *err);
int loop_change(struct loop *loop, int fd, uint32_t events, struct error *err);
void loop_unwatch(struct loop *loop, int fd); /* no-op when fd isn't watched */
/* Calls fn once after delay_ms; returns a handle valid until it fires or is cancelled. */
struct loop_timer *loop_after(struct loop *loop, uint64_t delay_ms, loop_timer_fn *fn, void *ctx);
void loop_cancel(struct loop *loop, struct loop_timer *timer); /* NULL: nothing */
/* Delivers the signals of `set` (which it blocks) to fn. Once a loop. */
int loop_signals(
	struct loop *loop, const sigset_t *set, loop_signal_fn *fn, void *ctx, struct error *err);
/* Runs until loop_stop; may be run again. */
int loop_run(struct loop *loop, struct error *err);
void loop_stop(struct loop *loop);
