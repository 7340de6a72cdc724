/* init.c -- carrel-init: PID 1 of every sandbox. Takes messages from its master, starts commands,
 * reaps everything, reports. See protocol.h for what it says, docs/design for why it has no libc.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <linux/auxvec.h>
#include <linux/futex.h>
#include "sandbox/init/connect.h"
#include "sandbox/init/protocol.h"
#include "sandbox/init/reply.h"
#include "sandbox/init/spawn.h"
#include "sandbox/init/sys.h"
#include "sandbox/init/tracers.h"
#include "sandbox/init/wire.h"

struct exec {
	uint64_t id; /* 0: free */
	int pid;     /* 0: ended */
	int status;
	uint32_t flags; /* of its request */
	bool told;	/* its exit was sent to the present master */
	uint64_t utime_us, stime_us, max_rss_kb;
};

/* Pages can be as large as this; types are aligned to it so that their sizes are too. */
#ifdef __aarch64__
#define PAGE_MAX 65536
#else
#define PAGE_MAX 4096
#endif
#define STACK_SIZE 2048

/* The process of the next command, made before it is asked for: see "one ahead" below. */
struct ahead {
	int tid; /* the kernel's: 0 when it has left our memory, by exec or by its end */
	bool has_taken;
	uint64_t id; /* of the command that it took */
	int refused; /* errno, or 0 */
	struct spawn spawn;
};
#define AHEAD_PATIENCE_MS 10000

struct scratch { /* what only a spawn needs */
	struct init_request request;
	char body[INIT_INLINE_MAX] __attribute__((aligned(8)));
	const char *pointers[INIT_INLINE_STRINGS + 2];
	char path[SPAWN_PATH_SIZE];
	char stack[SPAWN_STACK_SIZE] __attribute__((aligned(16)));
} __attribute__((aligned(PAGE_MAX)));

/* An idle init is this struct's first page and its own text: the stack, all that lives as long as
 * init, and the front of the table, which is filled from there. The rest is released (trim). The
 * stack is first so that running over its end is a fault: only text is below. */
static struct state {
	char stack[STACK_SIZE];
	int master;  /* the connection, or -1 */
	int signals; /* signalfd */
	bool cold, scratch_used;
	unsigned listeners;
	bool is_alone;	    /* not a process in the sandbox but us */
	bool is_alone_told; /* by the last exit that this master was told */
	bool is_ahead_due;  /* since one was made, a command ended that it could be */
	/* Commands get the soft limit, init itself and programs of the master the hard one: the
	 * kernel refuses to send descriptors while the sender's user has more of them in flight
	 * than this limit, and other sandboxes can be of the same user. */
	struct rlimit fds;
	struct ahead ahead;
	/* The same socket's packets, as the child and as we wait for them beside each other. */
	struct {
		int theirs, ours; /* epoll descriptors */
		bool are_heard;	  /* both: else no child is made ahead */
	} packets;
	unsigned used; /* execs[used] and above are free */
	unsigned long page_size;
	struct exec execs[INIT_EXECS_MAX];
	struct scratch scratch;
} state __attribute__((used)) = { 0 };

/* Of a child that shares our memory. */
#define STACK_TOP (state.scratch.stack + sizeof state.scratch.stack)

extern char _end[]; /* of all that is ours; by the linker */

static void close_fd(int fd)
{
	SYS(close, fd, 0, 0);
}

static void forget_exec(struct exec *e)
{
	*e = (struct exec){ 0 };
	while (state.used && !state.execs[state.used - 1].id)
		state.used--;
}

/* Kills the execs attached to a master that disconnected. Processes that left their process group
 * are killed too, unless another exec might have started them. */
static void end_attached(void)
{
	bool any = false;
	for (unsigned i = 0; i < state.used; i++) {
		struct exec *e = &state.execs[i];
		if (!(e->flags & INIT_ATTACHED))
			continue;
		any |= !(e->flags & INIT_PROGRAM_IN_FD);
		if (e->pid)
			SYS(kill, -e->pid, SIGKILL, 0);
		forget_exec(e);
	}
	if (any && !state.used && SYS(getpid, 0, 0, 0) == 1)
		SYS(kill, -1, SIGKILL, 0);
}

/* The master is gone. A cold sandbox ends with it: PID 1's exit kills the rest. */
static void drop_master(void)
{
	if (state.cold)
		sys_exit(1);
	close_fd(state.master);
	state.master = -1;
	state.packets.are_heard = false;
	end_attached();
}

/* false: there is no master, or its socket is full. */
static bool try_send(struct init_reply *reply, const int *fds, unsigned fd_count)
{
	if (state.master < 0)
		return false;
	long result = reply_send(state.master, reply, fds, fd_count);
	if (result < 0 && result != -EAGAIN)
		drop_master();
	return result >= 0;
}

/* A master that doesn't take it is dropped. */
static void send_reply(struct init_reply reply, int fd)
{
	if (!try_send(&reply, &fd, fd >= 0) && state.master >= 0)
		drop_master();
}

static void reply_with(uint32_t type, uint64_t id, int value, int stage, int fd)
{
	send_reply(
		(struct init_reply){ .type = type, .id = id, .value = value, .stage = stage }, fd);
}

static void refuse(uint64_t id, int error)
{
	reply_with(INIT_REFUSED, id, error, 0, -1);
}

static struct exec *find_exec(uint64_t id)
{
	for (unsigned i = 0; i < state.used; i++)
		if (state.execs[i].id == id)
			return &state.execs[i];
	return NULL;
}

/* Sends the exits that this master hasn't seen, as far as its socket has room. */
static void tell_exits(void)
{
	for (unsigned i = 0; i < state.used; i++) {
		struct exec *e = &state.execs[i];
		if (!e->id || e->pid || e->told)
			continue;
		struct init_reply reply = { .type = INIT_EXITED,
			.id = e->id,
			.value = e->status,
			.stage = state.is_alone,
			.utime_us = e->utime_us,
			.stime_us = e->stime_us,
			.max_rss_kb = e->max_rss_kb };
		bool told = try_send(&reply, NULL, 0);
		if (state.cold && (!told || !e->status || !(e->flags & INIT_STAY)))
			sys_exit(told ? 0 : 1);
		if (!told)
			return;
		e->told = true;
		state.is_alone_told = state.is_alone;
		if (e->flags & INIT_ATTACHED)
			forget_exec(e);
	}
}

static bool has_untold(void)
{
	for (unsigned i = 0; i < state.used; i++)
		if (state.execs[i].id && !state.execs[i].pid && !state.execs[i].told)
			return true;
	return false;
}

static uint64_t microseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* Whether there is no child, not even a zombie. */
static bool has_no_child(void)
{
	const long flags = WEXITED | WNOHANG | WNOWAIT | __WALL;
	return SYS6(waitid, P_ALL, 0, 0, flags, 0, 0) == -ECHILD;
}

static void reap(void)
{
	struct rusage usage = { 0 };
	int status = 0;
	long pid;
	while ((pid = SYS6(wait4, -1, &status, WNOHANG | __WALL, &usage, 0, 0)) > 0) {
		for (unsigned i = 0; i < state.used; i++) {
			struct exec *e = &state.execs[i];
			if (e->pid != pid)
				continue;
			e->pid = 0;
			e->status = status;
			e->utime_us = microseconds(&usage.ru_utime);
			e->stime_us = microseconds(&usage.ru_stime);
			e->max_rss_kb = (uint64_t)usage.ru_maxrss;
			state.is_ahead_due = e->flags & INIT_NO_STARTED;
			state.is_alone = has_no_child();
			tell_exits();
			break;
		}
	}
	state.is_alone = pid == -ECHILD;
}

static void add_exec(struct exec *e, uint64_t id, const struct spawn *s)
{
	*e = (struct exec){ .id = id, .pid = s->pid, .flags = s->flags };
	if (e == &state.execs[state.used])
		state.used++;
	state.is_alone = false;
}

static void fail_spawn(uint64_t id, const struct spawn *s)
{
	reply_with(INIT_FAILED, id, s->error, s->stage, -1);
}

/* Runs a command whose body was cut; the request's flags are in it. */
static void start(struct exec *e, uint64_t id, struct spawn *s)
{
	if (spawn_start(s) < 0) {
		fail_spawn(id, s);
		if (state.cold)
			sys_exit(0);
		return;
	}
	add_exec(e, id, s);
	if (!(s->flags & INIT_NO_STARTED))
		reply_with(INIT_STARTED, id, s->pid, 0, s->pidfd);
	if (s->pidfd >= 0)
		close_fd(s->pidfd);
}

static void *map(size_t len, int protection, int flags, int fd)
{
	long address = SYS6(mmap, 0, len, protection, flags, fd, 0);
	return address < 0 && address > -4096 ? NULL : (void *)address;
}

/* A large body: mapped from its memfd, which must be sealed so that it can't shrink
 * or change under us; its pointers in memory made for them. */
static int start_from_fd(struct exec *e, const struct init_request *r, struct spawn *s, int fd)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_WRITE;
	size_t pointers_len = (r->argc + r->envc + 2) * sizeof(char *);
	if ((SYS(fcntl, fd, F_GET_SEALS, 0) & seals) != seals ||
		SYS(lseek, fd, 0, SEEK_END) != (long)r->body_len)
		return EBADF;
	char *body = map(r->body_len, PROT_READ, MAP_PRIVATE, fd);
	const char **pointers =
		map(pointers_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	int error = ENOMEM;
	if (body && pointers) {
		error = wire_cut_body(r, body, pointers, &s->cwd);
		s->argv = pointers;
		s->env = pointers + r->argc + 1;
		if (!error)
			start(e, r->id, s);
	}
	if (body)
		SYS(munmap, body, r->body_len, 0);
	if (pointers)
		SYS(munmap, pointers, pointers_len, 0);
	return error;
}

static struct exec *find_free(void)
{
	struct exec *e = find_exec(0);
	if (e)
		return e;
	return state.used < INIT_EXECS_MAX ? &state.execs[state.used] : NULL;
}

/* 0, or the errno to refuse with. */
static int check_spawn(const struct init_request *r, const int *fds, struct spawn *s)
{
	if (state.cold && state.used)
		return EBUSY;
	if (find_exec(r->id))
		return EEXIST;
	if (!find_free())
		return EAGAIN;
	*s = (struct spawn){
		.flags = r->flags, .path = state.scratch.path, .stack_top = STACK_TOP
	};
	s->fds_most = r->flags & INIT_PROGRAM_IN_FD ? state.fds.rlim_max : state.fds.rlim_cur;
	for (int i = 0; i < 3; i++) {
		/* The child puts them at 0 to 2 one by one: none may be there already. */
		if (fds[i] <= 2)
			return EBADF;
		s->fds[i] = fds[i];
	}
	s->program = fds[3];
	return (r->flags & INIT_PROGRAM_IN_FD) && s->program <= 2 ? EBADF : 0;
}

static int cut_inline(const struct init_request *r, struct spawn *s)
{
	s->argv = state.scratch.pointers;
	s->env = state.scratch.pointers + r->argc + 1;
	return wire_cut_body(r, state.scratch.body, state.scratch.pointers, &s->cwd);
}

/* 0, or the errno to refuse with. The descriptors stay the caller's. */
static int take_spawn(const struct init_request *r, const int *fds)
{
	struct spawn s;
	int error = check_spawn(r, fds, &s);
	if (error)
		return error;
	if (r->flags & INIT_BODY_IN_FD)
		return start_from_fd(find_free(), r, &s, fds[3]);
	error = cut_inline(r, &s);
	if (!error)
		start(find_free(), r->id, &s);
	return error;
}

/* A request to end. What is stopped, perhaps by another process of the sandbox, takes it only when
 * it is continued. */
static bool asks_to_end(int signo)
{
	return signo == SIGHUP || signo == SIGINT || signo == SIGQUIT || signo == SIGTERM;
}

static int signal_exec(uint64_t id, int signo)
{
	struct exec *e = find_exec(id);
	if (!e || !e->pid)
		return ESRCH;
	int error = (int)-SYS(kill, -e->pid, signo, 0);
	if (!error && asks_to_end(signo))
		SYS(kill, -e->pid, SIGCONT, 0);
	/* A tracer keeps the end of what it traces from its parent: it goes, too. A request to
	 * signal has no body. */
	if (!error && signo == SIGKILL)
		tracers_kill(e->pid, state.scratch.body, sizeof state.scratch.body);
	return error;
}

/* kill(-1) spares the caller and PID 1 only: an init that isn't PID 1 would hit the host. */
static int take_signal(uint64_t id, int signo)
{
	if (id)
		return signal_exec(id, signo);
	return SYS(getpid, 0, 0, 0) == 1 ? (int)-SYS(kill, -1, signo, 0) : EPERM;
}

static int take_ack(uint64_t id)
{
	struct exec *e = find_exec(id);
	if (!e || e->pid)
		return ESRCH;
	forget_exec(e);
	return 0;
}

static void send_stats(void)
{
	struct shm_info info = { 0 };
	struct init_reply reply = { .type = INIT_STATS_ARE };
	SYS(shmctl, 0, SHM_INFO, &info);
	reply.shm_bytes = (info.shm_rss + info.shm_swp) * state.page_size;
	for (unsigned i = 0; i < state.used; i++)
		reply.value += state.execs[i].pid != 0;
	send_reply(reply, -1);
}

/* Nothing is waited for: the master learns from the socket when it is connected. */
static int take_connect(const struct init_request *r)
{
	long fd = connect_inside((unsigned)r->value, r->flags & INIT_TO_IPV6);
	if (fd < 0)
		return (int)-fd;
	reply_with(INIT_CONNECTED, r->id, 0, 0, (int)fd);
	close_fd((int)fd);
	return 0;
}

/* The numbers of the descriptors follow each other. */
static void send_listeners(void)
{
	struct init_reply reply = { .type = INIT_LISTENERS_ARE, .value = (int)state.listeners };
	int fds[INIT_LISTENERS_MAX];
	for (unsigned i = 0; i < INIT_LISTENERS_MAX; i++)
		fds[i] = INIT_LISTENER_FD + (int)i;
	if (!try_send(&reply, fds, state.listeners) && state.master >= 0)
		drop_master();
}

#define FDS_MAX 4
struct packet {
	long len; /* as recvmsg says */
	int fds[FDS_MAX];
	unsigned fd_count, flags;
};

/* Into the scratch. */
static void take_packet(int flags, struct packet *packet)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct scratch *in = &state.scratch;
	struct iovec iov = { &in->request, sizeof in->request + sizeof in->body };
	struct msghdr message = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	packet->len = SYS(recvmsg, state.master, &message, MSG_CMSG_CLOEXEC | flags);
	packet->flags = (unsigned)message.msg_flags;
	packet->fd_count = 0;
	if (packet->len >= 0 && message.msg_controllen >= CMSG_LEN(0) &&
		control.header.cmsg_type == SCM_RIGHTS)
		packet->fd_count =
			(unsigned)((control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (unsigned i = 0; i < FDS_MAX; i++)
		packet->fds[i] =
			i < packet->fd_count ? ((const int *)CMSG_DATA(&control.header))[i] : -1;
}

/* 0, or the errno to refuse with. */
static int check_packet(const struct packet *packet)
{
	if (packet->flags & MSG_TRUNC)
		return EMSGSIZE;
	if (packet->flags & MSG_CTRUNC)
		return EMFILE;
	return wire_check_request(&state.scratch.request, (size_t)packet->len, packet->fd_count);
}

static void take_request(const struct packet *packet)
{
	const struct init_request *r = &state.scratch.request;
	int error = check_packet(packet);
	if (error) {
		bool has_header = packet->len >= (long)sizeof *r && r->magic == INIT_MAGIC;
		refuse(has_header ? r->id : 0, error);
		return;
	}
	switch (r->type) {
	case INIT_SPAWN:
		error = take_spawn(r, packet->fds);
		break;
	case INIT_SIGNAL:
		error = take_signal(r->id, r->value);
		break;
	case INIT_ACK:
		error = take_ack(r->id);
		break;
	case INIT_CONNECT:
		error = take_connect(r);
		break;
	case INIT_LISTENERS:
		send_listeners();
		break;
	default:
		send_stats();
		break;
	}
	if (error)
		refuse(r->id, error);
}

static void receive(int flags)
{
	struct packet packet;
	take_packet(flags, &packet);
	if (packet.len == -EAGAIN || packet.len == -EINTR)
		return;
	state.scratch_used = true;
	if (packet.len > 0)
		take_request(&packet);
	for (unsigned i = 0; i < packet.fd_count; i++)
		close_fd(packet.fds[i]);
	if (packet.len <= 0)
		drop_master();
}

/* ---- one ahead ----
 * To make a process takes longer than all else that a spawn is. So a warm init makes one when it
 * has nothing to do, and sleeps until that has left its memory: as vfork does, but before the
 * command is known. The child receives from the master in our place, and becomes the command that
 * it is sent.
 * 1. There is one only while no other process is in the sandbox: nobody can touch it, and nobody
 *    waits to be reaped. And only when the master was told so: whatever else it finds in the
 *    sandbox is somebody's, whatever it calls itself.
 * 2. It takes nothing but a spawn that it can become at once. For anything else it ends and leaves
 *    the packet to us; so does one that nothing comes for. The next is made after the next command:
 *    who only asks how we are isn't answered by a new process each time. None is made after a
 *    command whose start was told: the next is expected to be like the last.
 * 3. A sleep that can be interrupted, unlike vfork's, isn't counted as load of the machine.
 * 4. A command that begins isn't interrupted by our waking up, on its CPU as a rule: we sleep on
 *    until it exits, or a packet comes that the child doesn't wait for. Both wait for packets by
 *    EPOLLEXCLUSIVE, the child first, so that the kernel wakes one of us. */

/* Of a packet's first bytes. One whose start is told needs a pidfd, which only we can make. */
static bool is_for_ahead(const struct init_request *r, long len)
{
	return len == sizeof *r && r->magic == INIT_MAGIC && r->type == INIT_SPAWN &&
	       (r->flags & INIT_NO_STARTED) && !(r->flags & INIT_BODY_IN_FD);
}

static int take_ahead(const struct packet *packet, struct spawn *s)
{
	const struct init_request *r = &state.scratch.request;
	int error = check_packet(packet);
	if (!error)
		error = check_spawn(r, packet->fds, s);
	return error ? error : cut_inline(r, s);
}

static void wait_ahead(void *arg)
{
	struct ahead *ahead = arg;
	struct epoll_event event = { 0 };
	struct init_request first = { 0 };
	struct packet packet;
	SYS(setsid, 0, 0, 0);
	SYS(prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
	if (SYS6(epoll_pwait, state.packets.theirs, &event, 1, AHEAD_PATIENCE_MS, 0, 0) != 1 ||
		event.events != EPOLLIN || event.data.fd != state.master ||
		!is_for_ahead(&first, SYS6(recvfrom, state.master, &first, sizeof first,
					      MSG_PEEK | MSG_DONTWAIT, 0, 0)))
		sys_exit(0);
	take_packet(MSG_DONTWAIT, &packet);
	ahead->has_taken = packet.len > 0;
	ahead->id = first.id;
	ahead->refused = take_ahead(&packet, &ahead->spawn);
	SYS(prctl, PR_SET_PDEATHSIG, 0, 0);
	if (!ahead->refused)
		spawn_become(&ahead->spawn);
	sys_exit(127);
}

/* Until it has left our memory, and there is something to do. */
static void sleep_beside(const struct ahead *ahead)
{
	struct pollfd polls[3] = { { .fd = state.signals, .events = POLLIN },
		{ .fd = state.packets.ours, .events = POLLIN },
		{ .fd = INIT_SOCKET_FD, .events = POLLIN } };
	int tid;
	SYS6(ppoll, polls, 3, 0, 0, 0, 0);
	while ((tid = __atomic_load_n(&ahead->tid, __ATOMIC_ACQUIRE)))
		SYS6(futex, &ahead->tid, FUTEX_WAIT, tid, 0, 0, 0);
}

static void go_ahead(void)
{
	const unsigned long flags = CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
	struct ahead *ahead = &state.ahead;
	struct spawn *s = &ahead->spawn;
	*ahead = (struct ahead){ 0 };
	state.is_ahead_due = false;
	long pid = sys_clone(flags, STACK_TOP, &ahead->tid, &ahead->tid, wait_ahead, ahead);
	if (pid < 0)
		return; /* then it is made when it is asked for */
	sleep_beside(ahead);
	state.scratch_used = true;
	s->pid = (int)pid;
	if (ahead->has_taken && !ahead->refused && !s->error) {
		add_exec(find_free(), ahead->id, s);
		return;
	}
	SYS6(wait4, pid, 0, __WALL, 0, 0, 0);
	if (!ahead->has_taken)
		return;
	state.is_ahead_due = true;
	if (ahead->refused)
		refuse(ahead->id, ahead->refused);
	else
		fail_spawn(ahead->id, s);
}

static long watch(int epoll, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };
	return SYS6(epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &event, 0, 0);
}

/* The order is that in which the kernel looks for one to wake. Closing the socket ends it. */
static void hear_master(void)
{
	const uint32_t events = EPOLLIN | EPOLLEXCLUSIVE;
	state.packets.are_heard = watch(state.packets.theirs, state.master, events) == 0 &&
				  watch(state.packets.ours, state.master, events) == 0;
}

static void accept_master(void)
{
	long fd = SYS6(accept4, INIT_SOCKET_FD, 0, 0, SOCK_CLOEXEC, 0, 0);
	if (fd < 0)
		return;
	if (state.master >= 0)
		drop_master();
	state.master = (int)fd;
	hear_master();
	state.is_alone_told = false;
	for (unsigned i = 0; i < state.used; i++)
		state.execs[i].told = false;
	tell_exits();
}

/* Everything the last spawn touched goes back, and the table behind its first page when it is
 * empty. */
static void trim(void)
{
	size_t kept = offsetof(struct state, execs) + state.used * sizeof *state.execs;
	size_t from = kept <= state.page_size ? state.page_size : offsetof(struct state, scratch);
	SYS(madvise, (char *)&state + from, sizeof state - from, MADV_DONTNEED);
	state.scratch_used = false;
}

static void serve_once(void)
{
	struct pollfd polls[3] = {
		{ .fd = state.signals, .events = POLLIN },
		{ .fd = state.master, .events = POLLIN },
		{ .fd = state.cold ? -1 : INIT_SOCKET_FD, .events = POLLIN },
	};
	bool is_full = has_untold();
	bool goes_ahead = state.is_alone && state.is_alone_told && state.is_ahead_due &&
			  state.packets.are_heard && !is_full;
	if (is_full)
		polls[1].events |= POLLOUT;
	/* What waits for us comes before the next process, and before giving memory back. */
	const struct timespec now = { 0 };
	bool has_more = goes_ahead || state.scratch_used;
	long count = SYS6(ppoll, polls, 3, has_more ? &now : NULL, 0, 0, 0);
	if (count == 0 && goes_ahead)
		go_ahead();
	else if (count == 0)
		trim();
	if (count <= 0)
		return;
	if (polls[0].revents) {
		struct signalfd_siginfo info;
		SYS(read, state.signals, &info, sizeof info);
		reap();
	}
	if (polls[1].revents & POLLOUT)
		tell_exits();
	/* The exit may have cost us the master. */
	if ((polls[1].revents & ~POLLOUT) && state.master >= 0)
		receive(MSG_DONTWAIT);
	if (polls[2].revents)
		accept_master();
}

static void open_packets(void)
{
	state.packets.theirs = (int)SYS(epoll_create1, EPOLL_CLOEXEC, 0, 0);
	state.packets.ours = (int)SYS(epoll_create1, EPOLL_CLOEXEC, 0, 0);
	if (state.packets.theirs < 0 || state.packets.ours < 0 ||
		watch(state.packets.theirs, INIT_SOCKET_FD, EPOLLIN) < 0)
		sys_exit(2);
}

/* Only "ignored" outlives exec; commands start with every disposition at its default, and with
 * SIGCHLD ignored there would be nothing to wait for. */
static void reset_signals(uint64_t block)
{
	static const unsigned long default_action[4];
	SYS6(rt_sigprocmask, SIG_SETMASK, &block, 0, sizeof block, 0, 0);
	for (int signo = 1; signo <= 64; signo++)
		if (signo != SIGKILL && signo != SIGSTOP)
			SYS6(rt_sigaction, signo, default_action, 0, sizeof block, 0, 0);
}

/* `stack` is what the kernel left there: argc, argv, NULL, env, NULL, the auxiliary vector. */
static void read_auxiliary(const long *stack)
{
	const char *last = NULL;
	const long *at = stack + 1 + stack[0] + 1;
	while (*at++)
		;
	for (; at[0] != AT_NULL; at += 2) {
		if (at[0] == AT_PAGESZ)
			state.page_size = (unsigned long)at[1];
		if (at[0] == AT_EXECFN)
			last = (const char *)at[1];
	}
	/* A warm init lives long, has a stack of its own and needs no vdso: all that the kernel has
	 * mapped above it goes, and with it three pages of page tables. The program's name is in
	 * the stack's last page. */
	unsigned long begin = ((unsigned long)_end | (state.page_size - 1)) + 1;
	unsigned long end = ((unsigned long)last | (state.page_size - 1)) + 1;
	if (last)
		SYS(munmap, begin, end - begin, 0);
}

__attribute__((used)) _Noreturn void init_main(const long *stack);
_Noreturn void init_main(const long *stack)
{
	int listening = 0;
	unsigned len = sizeof listening;
	uint64_t child_ended = 1ull << (SIGCHLD - 1);
	SYS(prctl, PR_SET_DUMPABLE, 0, 0);
	SYS(prctl, PR_SET_NAME, "carrel-init", 0);
	state.listeners = reply_find_listeners();
	if (SYS6(getsockopt, INIT_SOCKET_FD, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len, 0) < 0)
		sys_exit(2);
	if (SYS6(prlimit64, 0, RLIMIT_NOFILE, 0, &state.fds, 0, 0) < 0)
		sys_exit(2);
	const struct rlimit most = { state.fds.rlim_max, state.fds.rlim_max };
	SYS6(prlimit64, 0, RLIMIT_NOFILE, &most, 0, 0, 0);
	reset_signals(~0ull);
	state.cold = !listening;
	state.master = listening ? -1 : INIT_SOCKET_FD;
	read_auxiliary(stack);
	/* The command is on its way before anything that only its end needs. */
	if (state.cold)
		receive(0);
	long fd = SYS6(signalfd4, -1, &child_ended, sizeof child_ended, SFD_CLOEXEC, 0, 0);
	if (fd < 0)
		sys_exit(2);
	state.signals = (int)fd;
	if (!state.cold)
		open_packets();
	for (;;)
		serve_once();
}

/* On the stack at the front of `state`. */
#if defined(__x86_64__)
__asm__(".globl _start\n"
	"_start:\n\t"
	"xor %ebp, %ebp\n\t"
	"mov %rsp, %rdi\n\t"
	"mov $state + 2048, %esp\n\t"
	"call init_main\n\t"
	"ud2");
#else
__asm__(".globl _start\n"
	"_start:\n\t"
	"mov x29, #0\n\t"
	"mov x30, #0\n\t"
	"mov x0, sp\n\t"
	"adrp x1, state\n\t"
	"add x1, x1, :lo12:state\n\t"
	"add sp, x1, #2048\n\t"
	"bl init_main\n\t"
	"brk #1");
#endif
_Static_assert(STACK_SIZE == 2048, "as in _start");
