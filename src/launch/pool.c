#include "launch/pool.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/child.h"
#include "linux/home.h"
#include "linux/namespace.h"
#include "linux/netns.h"
#include "proc/channel.h"

#define END_PATIENCE_MS 2000
#define REFILL_AFTER_MS 3
#define REMOVE_AGAIN_MS 2 /* a control group that something is just leaving */

/* ---- the child that makes kits: one packet in, one out ---- */

struct order {
	uint32_t uid, owner_uid, owner_gid;
};
struct made {
	uint32_t uid;
	bool is_made; /* its descriptors come along */
	struct error err;
};
#define KIT_FDS 2

static int make_kit(const struct order *order, int own_netns, int fds[KIT_FDS], struct error *err)
{
	if (namespace_make_idmap(
		    order->owner_uid, order->owner_gid, order->uid, order->uid, &fds[0], err))
		return -1;
	if (!netns_make(own_netns, &fds[1], err))
		return 0;
	fd_close(&fds[0]);
	return -1;
}

static _Noreturn void make_for_ever(int socket)
{
	int own = -1;
	struct order order;
	struct error err;
	if (netns_open_own(&own, &err))
		_exit(1);
	for (;;) {
		ssize_t got = read(socket, &order, sizeof order);
		if (got < 0 && errno == EINTR)
			continue;
		if (got != sizeof order)
			_exit(0);
		struct made made = { .uid = order.uid };
		int fds[KIT_FDS] = { -1, -1 };
		made.is_made = !make_kit(&order, own, fds, &made.err);
		if (channel_send(socket, &made, sizeof made, fds, made.is_made ? KIT_FDS : 0, &err))
			_exit(1);
		fd_close(&fds[0]);
		fd_close(&fds[1]);
	}
}

/* The child keeps the socket alone: another descriptor would keep its object alive. */
static _Noreturn void become_maker(int socket)
{
	sigset_t none;
	sigemptyset(&none);
	prctl(PR_SET_NAME, "carrel-maker");
	if (dup2(socket, STDERR_FILENO + 1) < 0 || close_range(STDERR_FILENO + 2, ~0u, 0))
		_exit(1);
	close_range(0, STDERR_FILENO, 0);
	sigprocmask(SIG_SETMASK, &none, NULL);
	make_for_ever(STDERR_FILENO + 1);
}

static int start_maker(struct pool *pool, struct error *err)
{
	int ends[2];
	struct child child;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a socket pair");
	auto_close int ours = ends[0], theirs = ends[1];
	if (child_fork(&child, 0, SIGKILL, err))
		return error_context(err, "start the maker of kits");
	if (child.pid == 0)
		become_maker(theirs);
	pool->maker_pid = child.pid;
	pool->maker = take_fd(&ours);
	return 0;
}

void pool_kit_done(struct pool_kit *kit)
{
	fd_close(&kit->idmap);
	fd_close(&kit->netns);
}

static void give_up_kits(struct pool *pool, const struct error *err)
{
	loop_unwatch(pool->loop, pool->maker);
	fd_close(&pool->maker); /* the child ends with it */
	while (pool->kits_asked)
		slots_give(pool->slots, pool->asked[--pool->kits_asked]);
	pool->kits_wanted = 0;
	if (err)
		pool->failed(pool->ctx, "namespaces are not prepared in advance", err);
}

static void ask_for_kits(struct pool *pool)
{
	struct order order = { .owner_uid = pool->owner_uid, .owner_gid = pool->owner_gid };
	struct error err;
	while (pool->kits_ready + pool->kits_asked < pool->kits_wanted) {
		if (slots_take(pool->slots, &order.uid, &err))
			return; /* all uids are in use: a start that needs one fails and says so */
		pool->asked[pool->kits_asked++] = order.uid;
		if (channel_send(pool->maker, &order, sizeof order, NULL, 0, &err)) {
			give_up_kits(pool, &err);
			return;
		}
	}
}

static bool was_asked(struct pool *pool, uint32_t uid)
{
	for (unsigned i = 0; i < pool->kits_asked; i++)
		if (pool->asked[i] == uid) {
			pool->asked[i] = pool->asked[--pool->kits_asked];
			return true;
		}
	return false;
}

static void on_maker(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct pool *pool = ctx;
	struct made made = { 0 };
	struct error err;
	size_t len = 0;
	int fds[KIT_FDS], count = 0;
	int got = channel_receive(fd, &made, sizeof made, &len, fds, KIT_FDS, &count, &err);
	if (got == CHANNEL_NOTHING)
		return;
	bool is_whole = got == CHANNEL_MESSAGE && len == sizeof made && count == KIT_FDS &&
			was_asked(pool, made.uid);
	if (is_whole) {
		pool->kits[pool->kits_ready++] = (struct pool_kit){ made.uid, fds[0], fds[1] };
		return;
	}
	for (int i = 0; got == CHANNEL_MESSAGE && i < count; i++)
		close(fds[i]);
	if (got != CHANNEL_MESSAGE || len != sizeof made || made.is_made)
		fail(&made.err, ERR_FAILED, "the process that makes namespaces ended");
	give_up_kits(pool, &made.err);
}

void pool_maker_died(struct pool *pool)
{
	struct error err;
	pool->maker_pid = 0;
	if (pool->maker < 0)
		return;
	fail(&err, ERR_FAILED, "the process that makes namespaces ended");
	give_up_kits(pool, &err);
}

/* ---- both ---- */

static int make_group(struct pool *pool, struct cgroup *group, unsigned *number,
	struct cgroup_want want, struct error *err)
{
	want.number = *number = ++pool->next_number;
	/* With another group the kernel would store an owner for each file of the control group. */
	home_leave_group();
	return cgroup_create(pool->cgroups, &want, group, err);
}

static void refill_later(struct pool *pool);

/* One in a turn of the loop: a request that arrives meanwhile waits for one at most. */
static void on_refill(struct loop *loop, void *ctx)
{
	struct pool *pool = ctx;
	struct error err;
	unsigned at = pool->groups_ready;
	pool->refill = NULL;
	if (pool->maker >= 0)
		ask_for_kits(pool);
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

/* While there is plenty, the start that has just begun goes first. */
static void refill_later(struct pool *pool)
{
	bool has_plenty = pool->groups_ready >= pool->groups_wanted / 2 &&
			  pool->kits_ready >= pool->kits_wanted / 2;
	if (!pool->refill)
		pool->refill =
			loop_after(pool->loop, has_plenty ? REFILL_AFTER_MS : 0, on_refill, pool);
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
		pool->kits_wanted = wanted;
	}
	refill_later(pool);
	return 0;
}

/* ---- control groups that were used ---- */

/* Removes what can be removed; what is still busy stays. */
static void remove_leaving(struct pool *pool)
{
	struct error err;
	size_t kept = 0;
	for (size_t i = 0; i < pool->leaving_count; i++) {
		if (!cgroup_try_remove(pool->cgroups, pool->leaving[i], &err))
			continue;
		if (err.code == ERR_CONFLICT)
			pool->leaving[kept++] = pool->leaving[i];
		else /* nothing that waiting would mend */
			pool->failed(pool->ctx, "a control group can't be removed", &err);
	}
	pool->leaving_count = kept;
}

static void on_removal(struct loop *loop, void *ctx)
{
	struct pool *pool = ctx;
	pool->removal = NULL;
	remove_leaving(pool);
	if (pool->leaving_count)
		pool->removal = loop_after(loop, REMOVE_AGAIN_MS, on_removal, pool);
}

void pool_drop_cgroup(struct pool *pool, unsigned number)
{
	if (pool->leaving_count == pool->leaving_room) {
		pool->leaving_room = pool->leaving_room ? 2 * pool->leaving_room : 16;
		pool->leaving = realloc(pool->leaving, pool->leaving_room * sizeof number);
		if (!pool->leaving)
			abort();
	}
	pool->leaving[pool->leaving_count++] = number;
	if (!pool->removal)
		pool->removal = loop_after(pool->loop, 0, on_removal, pool);
}

static void remove_last_ones(struct pool *pool)
{
	const struct timespec pause = { .tv_nsec = REMOVE_AGAIN_MS * 1000000 };
	loop_cancel(pool->loop, pool->removal);
	pool->removal = NULL;
	remove_leaving(pool);
	for (int i = 0; i < END_PATIENCE_MS / REMOVE_AGAIN_MS && pool->leaving_count; i++) {
		nanosleep(&pause, NULL);
		remove_leaving(pool);
	}
	free(pool->leaving);
	pool->leaving = NULL;
}

/* It may be in the kernel's hands for long, where many network namespaces are just being removed:
 * it ends then, without us. */
static void end_maker(struct pool *pool)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	if (pool->maker_pid <= 0)
		return;
	kill(pool->maker_pid, SIGKILL);
	for (int i = 0; i < END_PATIENCE_MS && !waitpid(pool->maker_pid, NULL, WNOHANG); i++)
		nanosleep(&pause, NULL);
	pool->maker_pid = 0;
}

void pool_stop(struct pool *pool)
{
	struct error ignored; /* the next start sweeps */
	loop_cancel(pool->loop, pool->refill);
	pool->refill = NULL;
	if (pool->maker >= 0)
		give_up_kits(pool, NULL);
	while (pool->kits_ready) {
		struct pool_kit *kit = &pool->kits[--pool->kits_ready];
		pool_kit_done(kit);
		slots_give(pool->slots, kit->uid);
	}
	while (pool->groups_ready) {
		unsigned at = --pool->groups_ready;
		cgroup_done(&pool->groups[at]);
		cgroup_try_remove(pool->cgroups, pool->numbers[at], &ignored);
	}
	remove_last_ones(pool);
	end_maker(pool);
	free(pool->groups);
	pool->groups = NULL;
}

bool pool_take_kit(struct pool *pool, struct pool_kit *kit)
{
	if (pool->maker < 0 && !pool->kits_ready)
		return false;
	refill_later(pool);
	if (!pool->kits_ready) {
		pool->kits_missed++;
		return false;
	}
	*kit = pool->kits[--pool->kits_ready];
	return true;
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
