#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "proc/loop.h"

#define EVENTS_A_TURN 32
#define NS_PER_MS 1000000ull

struct watch {
	loop_fd_fn *fn; /* NULL: not watched */
	void *ctx;
	uint32_t generation; /* tells an event of this watch from one of its fd's last */
};

struct loop_timer {
	uint64_t due_ns, sequence;
	size_t index; /* in the heap */
	loop_timer_fn *fn;
	void *ctx;
};

struct loop {
	int epoll, signals;
	bool stopped;
	loop_signal_fn *signal_fn;
	void *signal_ctx;
	struct watch *watches; /* by fd */
	size_t watch_count;
	uint32_t generation;
	struct loop_timer **timers; /* a heap: the next due is first */
	size_t timer_count, timer_capacity;
	uint64_t sequence;
};

static void *grow(void *items, size_t old_count, size_t count, size_t size)
{
	char *grown = reallocarray(items, count, size);
	if (!grown)
		abort();
	memset(grown + old_count * size, 0, (count - old_count) * size);
	return grown;
}

int loop_new(struct loop **loop, struct error *err)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		return fail_errno(err, "make an epoll descriptor");
	*loop = grow(NULL, 0, 1, sizeof **loop);
	(*loop)->epoll = epoll;
	(*loop)->signals = -1;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	for (size_t i = 0; i < loop->timer_count; i++)
		free(loop->timers[i]);
	fd_close(&loop->signals);
	fd_close(&loop->epoll);
	free(loop->timers);
	free(loop->watches);
	free(loop);
}

static int control(struct loop *loop, int operation, int fd, uint32_t events, struct error *err)
{
	struct epoll_event event = { .events = events };
	event.data.u64 = (uint64_t)loop->watches[fd].generation << 32 | (uint32_t)fd;
	if (epoll_ctl(loop->epoll, operation, fd, &event) < 0)
		return fail_errno(err, "watch descriptor %d", fd);
	return 0;
}

static bool is_watched(const struct loop *loop, int fd)
{
	return fd >= 0 && (size_t)fd < loop->watch_count && loop->watches[fd].fn;
}

int loop_watch(
	struct loop *loop, int fd, uint32_t events, loop_fd_fn *fn, void *ctx, struct error *err)
{
	if (fd < 0 || is_watched(loop, fd))
		return fail(err, ERR_INVALID, "descriptor %d can't be watched twice", fd);
	if ((size_t)fd >= loop->watch_count) {
		size_t count = ((size_t)fd + 1) * 2;
		loop->watches = grow(loop->watches, loop->watch_count, count, sizeof(struct watch));
		loop->watch_count = count;
	}
	loop->watches[fd] = (struct watch){ .generation = ++loop->generation };
	if (control(loop, EPOLL_CTL_ADD, fd, events, err) < 0)
		return -1;
	loop->watches[fd].fn = fn;
	loop->watches[fd].ctx = ctx;
	return 0;
}

int loop_change(struct loop *loop, int fd, uint32_t events, struct error *err)
{
	if (!is_watched(loop, fd))
		return fail(err, ERR_INVALID, "descriptor %d isn't watched", fd);
	return control(loop, EPOLL_CTL_MOD, fd, events, err);
}

void loop_unwatch(struct loop *loop, int fd)
{
	if (!is_watched(loop, fd))
		return;
	(void)epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL);
	loop->watches[fd].fn = NULL;
}

static bool is_before(const struct loop_timer *a, const struct loop_timer *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static void put_timer(struct loop *loop, size_t index, struct loop_timer *timer)
{
	loop->timers[index] = timer;
	timer->index = index;
}

/* Moves `timer` from the hole at `index` up or down to where it belongs. */
static void sift_timer(struct loop *loop, size_t index, struct loop_timer *timer)
{
	while (index && is_before(timer, loop->timers[(index - 1) / 2])) {
		put_timer(loop, index, loop->timers[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	for (;;) {
		size_t child = 2 * index + 1;
		if (child + 1 < loop->timer_count &&
			is_before(loop->timers[child + 1], loop->timers[child]))
			child++;
		if (child >= loop->timer_count || !is_before(loop->timers[child], timer))
			break;
		put_timer(loop, index, loop->timers[child]);
		index = child;
	}
	put_timer(loop, index, timer);
}

struct loop_timer *loop_after(struct loop *loop, uint64_t delay_ms, loop_timer_fn *fn, void *ctx)
{
	struct loop_timer *timer = grow(NULL, 0, 1, sizeof *timer);
	uint64_t now_ns = clock_monotonic_ns(), delay_ns;
	if (__builtin_mul_overflow(delay_ms, NS_PER_MS, &delay_ns) ||
		__builtin_add_overflow(now_ns, delay_ns, &timer->due_ns))
		timer->due_ns = UINT64_MAX;
	timer->sequence = loop->sequence++;
	timer->fn = fn;
	timer->ctx = ctx;
	if (loop->timer_count == loop->timer_capacity) {
		size_t capacity = loop->timer_capacity ? 2 * loop->timer_capacity : 8;
		loop->timers = grow(loop->timers, loop->timer_capacity, capacity, sizeof(void *));
		loop->timer_capacity = capacity;
	}
	loop->timer_count++;
	sift_timer(loop, loop->timer_count - 1, timer);
	return timer;
}

void loop_cancel(struct loop *loop, struct loop_timer *timer)
{
	if (!timer)
		return;
	struct loop_timer *last = loop->timers[--loop->timer_count];
	if (last != timer)
		sift_timer(loop, timer->index, last);
	free(timer);
}

static void run_timers(struct loop *loop)
{
	/* Those that a callback adds wait for the next turn, or a timer that renews itself without
	 * a delay would keep the descriptors from theirs. */
	uint64_t now_ns = loop->timer_count ? clock_monotonic_ns() : 0, next = loop->sequence;
	while (!loop->stopped && loop->timer_count) {
		struct loop_timer *timer = loop->timers[0];
		if (timer->due_ns > now_ns || timer->sequence >= next)
			return;
		loop_timer_fn *fn = timer->fn;
		void *ctx = timer->ctx;
		loop_cancel(loop, timer);
		fn(loop, ctx);
	}
}

static int timeout_ms(const struct loop *loop)
{
	if (!loop->timer_count)
		return -1;
	uint64_t now_ns = clock_monotonic_ns(), due_ns = loop->timers[0]->due_ns;
	if (due_ns <= now_ns)
		return 0;
	uint64_t ms = (due_ns - now_ns - 1) / NS_PER_MS + 1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static void read_signals(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct signalfd_siginfo info;
	while (!loop->stopped && read(fd, &info, sizeof info) == (ssize_t)sizeof info)
		loop->signal_fn(loop, &info, loop->signal_ctx);
}

int loop_signals(
	struct loop *loop, const sigset_t *set, loop_signal_fn *fn, void *ctx, struct error *err)
{
	if (loop->signals >= 0)
		return fail(err, ERR_INVALID, "signals are already watched");
	if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
		return fail_errno(err, "block signals");
	auto_close int fd = signalfd(-1, set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return fail_errno(err, "make a signal descriptor");
	if (loop_watch(loop, fd, EPOLLIN, read_signals, NULL, err) < 0)
		return -1;
	loop->signals = take_fd(&fd);
	loop->signal_fn = fn;
	loop->signal_ctx = ctx;
	return 0;
}

int loop_run(struct loop *loop, struct error *err)
{
	struct epoll_event events[EVENTS_A_TURN];
	while (!loop->stopped) {
		int count = epoll_wait(loop->epoll, events, EVENTS_A_TURN, timeout_ms(loop));
		if (count < 0 && errno != EINTR)
			return fail_errno(err, "wait for events");
		for (int i = 0; i < count && !loop->stopped; i++) {
			int fd = (int)(uint32_t)events[i].data.u64;
			uint32_t generation = (uint32_t)(events[i].data.u64 >> 32);
			if (is_watched(loop, fd) && loop->watches[fd].generation == generation)
				loop->watches[fd].fn(
					loop, fd, events[i].events, loop->watches[fd].ctx);
		}
		run_timers(loop);
	}
	loop->stopped = false;
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
