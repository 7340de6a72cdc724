#include "launch/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/netns.h"
#include "proc/channel.h"

/* ---- the child that makes network namespaces: one packet in, one out ---- */

struct made {
	bool is_made; /* its descriptor comes along */
	struct error err;
};

static _Noreturn void make_netns_for_ever(int socket)
{
	auto_close int own = -1;
	struct error err;
	char asked;
	if (netns_open_own(&own, &err))
		_exit(1);
	for (;;) {
		ssize_t got = read(socket, &asked, sizeof asked);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			_exit(0);
		struct made made = { 0 };
		auto_close int fd = -1;
		made.is_made = !netns_make(own, &fd, &made.err);
		if (channel_send(socket, &made, sizeof made, &fd, made.is_made, &err))
			_exit(1);
	}
}

/* Nothing of ours may stay open there but the socket: it would outlive what it belongs to. */
static _Noreturn void become_maker(int socket, pid_t parent)
{
	sigset_t none;
	sigemptyset(&none);
	prctl(PR_SET_NAME, "carrel-netns");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	if (dup2(socket, STDERR_FILENO + 1) < 0 || close_range(STDERR_FILENO + 2, ~0u, 0))
		_exit(1);
	close_range(0, STDERR_FILENO, 0);
	sigprocmask(SIG_SETMASK, &none, NULL);
	make_netns_for_ever(STDERR_FILENO + 1);
}

static int start_maker(struct pool *pool, struct error *err)
{
	int ends[2];
	pid_t self = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a socket pair");
	auto_close int ours = ends[0], theirs = ends[1];
	pid_t pid = fork();
	if (pid < 0)
		return fail_errno(err, "start the maker of network namespaces");
	if (pid == 0)
		become_maker(theirs, self);
	pool->maker_pid = pid;
	pool->maker = take_fd(&ours);
	return 0;
}

static void give_up_netns(struct pool *pool, const struct error *err)
{
	loop_unwatch(pool->loop, pool->maker);
	fd_close(&pool->maker); /* the child ends with it */
	pool->netns_wanted = pool->netns_asked = 0;
	if (err)
		pool->failed(pool->ctx, "network namespaces", err);
}

static void ask_for_netns(struct pool *pool)
{
	struct error err;
	while (pool->netns_ready + pool->netns_asked < pool->netns_wanted) {
		if (channel_send(pool->maker, "n", 1, NULL, 0, &err)) {
			give_up_netns(pool, &err);
			return;
		}
		pool->netns_asked++;
	}
}

static void on_maker(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct pool *pool = ctx;
	struct made made = { 0 };
	struct error err;
	size_t len = 0;
	int netns = -1, count = 0;
	int got = channel_receive(fd, &made, sizeof made, &len, &netns, 1, &count, &err);
	if (got == CHANNEL_NOTHING)
		return;
	if (got != CHANNEL_MESSAGE || len != sizeof made || count != made.is_made) {
		fail(&err, ERR_FAILED, "the maker of network namespaces has ended");
		give_up_netns(pool, &err);
		return;
	}
	if (!made.is_made) {
		give_up_netns(pool, &made.err);
		return;
	}
	pool->netns_asked--;
	pool->netns[pool->netns_ready++] = netns;
}

void pool_maker_died(struct pool *pool)
{
	struct error err;
	pool->maker_pid = 0;
	if (pool->maker < 0)
		return;
	fail(&err, ERR_FAILED, "the maker of network namespaces has ended");
	give_up_netns(pool, &err);
}

/* ---- both ---- */

static int make_group(struct pool *pool, struct cgroup *group, unsigned *number,
	struct cgroup_want want, struct error *err)
{
	want.number = *number = ++pool->next_number;
	return cgroup_create(pool->cgroups, &want, group, err);
}

static void refill_later(struct pool *pool);

/* One a turn of the loop: whoever asks for something meanwhile waits for one at most. */
static void on_refill(struct loop *loop, void *ctx)
{
	struct pool *pool = ctx;
	struct error err;
	unsigned at = pool->groups_ready;
	pool->refill = NULL;
	if (pool->maker >= 0)
		ask_for_netns(pool);
	if (at >= pool->groups_wanted)
		return;
	if (make_group(pool, &pool->groups[at], &pool->numbers[at], pool->each, &err)) {
		pool->groups_wanted = 0;
		pool->failed(pool->ctx, "control groups", &err);
		return;
	}
	pool->groups_ready++;
	refill_later(pool);
}

static void refill_later(struct pool *pool)
{
	if (!pool->refill)
		pool->refill = loop_after(pool->loop, 0, on_refill, pool);
}

int pool_start(struct pool *pool, const struct cgroup_want *each, unsigned wanted,
	bool has_privilege, struct error *err)
{
	pool->maker = -1;
	pool->each = *each;
	pool->groups = calloc(POOL_MAX, sizeof *pool->groups);
	if (!pool->groups)
		abort();
	if (wanted > POOL_MAX)
		wanted = POOL_MAX;
	if (pool->cgroups->version != CGROUP_NONE)
		pool->groups_wanted = wanted;
	if (has_privilege && wanted) {
		if (start_maker(pool, err) ||
			loop_watch(pool->loop, pool->maker, EPOLLIN, on_maker, pool, err))
			return -1;
		pool->netns_wanted = wanted;
	}
	refill_later(pool);
	return 0;
}

void pool_stop(struct pool *pool)
{
	struct error ignored; /* the next start sweeps */
	loop_cancel(pool->loop, pool->refill);
	pool->refill = NULL;
	if (pool->maker >= 0)
		give_up_netns(pool, NULL);
	while (pool->netns_ready)
		fd_close(&pool->netns[--pool->netns_ready]);
	while (pool->groups_ready) {
		unsigned at = --pool->groups_ready;
		cgroup_done(&pool->groups[at]);
		cgroup_try_remove(pool->cgroups, pool->numbers[at], &ignored);
	}
	if (pool->maker_pid > 0)
		while (waitpid(pool->maker_pid, NULL, 0) < 0 && errno == EINTR)
			;
	pool->maker_pid = 0;
	free(pool->groups);
	pool->groups = NULL;
}

int pool_take_netns(struct pool *pool)
{
	if (pool->maker < 0 && !pool->netns_ready)
		return -1;
	refill_later(pool);
	if (!pool->netns_ready) {
		pool->netns_missed++;
		return -1;
	}
	return take_fd(&pool->netns[--pool->netns_ready]);
}

/* Lowering a limit is a write; what else there may be (a cpu quota) is added. */
static bool can_become(const struct cgroup_want *have, const struct cgroup_want *want)
{
	return want->memory_bytes && want->memory_bytes <= have->memory_bytes &&
	       want->count_cpu == have->count_cpu;
}

static bool is_equal(const struct cgroup_want *have, const struct cgroup_want *want)
{
	return want->memory_bytes == have->memory_bytes && want->millicpus == have->millicpus &&
	       want->pids == have->pids;
}

int pool_take_cgroup(
	struct pool *pool, struct cgroup_want *want, struct cgroup *group, struct error *err)
{
	struct error ignored;
	if (!pool->groups_ready || !can_become(&pool->each, want)) {
		pool->groups_missed++;
		refill_later(pool);
		return make_group(pool, group, &want->number, *want, err);
	}
	unsigned at = --pool->groups_ready;
	*group = pool->groups[at];
	want->number = pool->numbers[at];
	refill_later(pool);
	if (is_equal(&pool->each, want) || !cgroup_change(pool->cgroups, want, group, err))
		return 0;
	cgroup_done(group);
	cgroup_try_remove(pool->cgroups, want->number, &ignored);
	return -1;
}
