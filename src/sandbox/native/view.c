#include "sandbox/native/view.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "format/text/procfs.h"
#include "linux/unix_address.h"

#define SOCKETS_MAX ((size_t)1 << 20) /* bytes of the table */
#define SOCKETS_PIECE 16384

void view_init(struct sandbox_view *view)
{
	*view = (struct sandbox_view){ .init = -1 };
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		view->fds[i] = -1;
}

void view_take(struct sandbox_view *view, enum plan_limiter limiter, const int fds[LAUNCH_FD_MAX])
{
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		view->fds[i] = fds[i];
	view->limiter = limiter;
	view->is_there = true;
}

size_t view_take_mounts(struct sandbox_view *view, int fds[VIEW_MOUNTS])
{
	static const enum launch_fd mounts[VIEW_MOUNTS] = { LAUNCH_FD_ENVIRONMENT,
		LAUNCH_FD_SCRATCH, LAUNCH_FD_WORKSPACE, LAUNCH_FD_TERMINALS, LAUNCH_FD_PROC };
	size_t count = 0;
	for (size_t i = 0; i < VIEW_MOUNTS; i++)
		if (view->fds[mounts[i]] >= 0)
			fds[count++] = take_fd(&view->fds[mounts[i]]);
	return count;
}

const char *view_limiter(const struct sandbox_view *view)
{
	return view->is_there ? plan_limiter_name(view->limiter) : NULL;
}

void view_done(struct sandbox_view *view)
{
	fd_close(&view->init);
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		fd_close(&view->fds[i]);
	view_init(view);
}

int view_connect(struct sandbox_view *view, int sockets, const char *id, struct error *err)
{
	struct sockaddr_un address;
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || unix_address_in(sockets, id, &address) ||
		connect(fd, (struct sockaddr *)&address, sizeof address))
		return fail_errno(err, "connect to carrel-init");
	view->init = take_fd(&fd);
	return 0;
}

int view_open_terminal(const struct sandbox_view *view, struct pty_size size, int *master,
	int *terminal, struct error *err)
{
	auto_close int made = -1, other = -1;
	if (view->fds[LAUNCH_FD_TERMINALS] < 0)
		return fail(err, ERR_UNAVAILABLE, "the sandbox has no terminals");
	if (pty_open(view->fds[LAUNCH_FD_TERMINALS], &made, &other, err) ||
		pty_set_size(made, size, err))
		return -1;
	*master = take_fd(&made);
	*terminal = take_fd(&other);
	return 0;
}

void view_each_process(
	const struct sandbox_view *view, void (*fn)(void *ctx, int proc, int pid), void *ctx)
{
	usage_each_process(view->fds[LAUNCH_FD_PROC], fn, ctx);
}

char view_process_state(const struct sandbox_view *view, int pid)
{
	char path[32], text[512];
	str_format(path, sizeof path, "%d/stat", pid);
	if (fd_read_file(view->fds[LAUNCH_FD_PROC], path, text, sizeof text) < 0)
		return 0;
	/* The name before the state is in brackets, and may hold others. */
	const char *state = strrchr(text, ')');
	return state && state[1] == ' ' ? state[2] : 0;
}

int view_read_sockets(
	const struct sandbox_view *view, bool is_ipv6, struct buf *text, struct error *err)
{
	const char *path = is_ipv6 ? "1/net/tcp6" : "1/net/tcp";
	auto_close int fd = openat(view->fds[LAUNCH_FD_PROC], path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && is_ipv6)
		return 0; /* a host without IPv6 */
	if (fd < 0)
		return fail_errno(err, "open '/proc/%s' of the sandbox", path);
	for (;;) {
		char *room = text->len < SOCKETS_MAX ? buf_reserve(text, SOCKETS_PIECE) : NULL;
		ssize_t got = room ? read(fd, room, SOCKETS_PIECE) : 0;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read '/proc/%s' of the sandbox", path);
		if (!got)
			return 0;
		buf_grew(text, (size_t)got);
	}
}

int view_open_usage(const struct sandbox_view *view, struct usage *usage, struct error *err)
{
	const int tmpfs[USAGE_TMPFS] = { view->fds[LAUNCH_FD_SCRATCH], -1, -1 };
	if (view->fds[LAUNCH_FD_PROC] < 0)
		return fail(err, ERR_UNAVAILABLE, "the sandbox has no /proc that can be read");
	return usage_init(usage, view->fds[LAUNCH_FD_PROC], tmpfs, err);
}

/* The number behind `key`, or (NULL) the only one. */
static bool read_number(int fd, const char *key, uint64_t *value)
{
	char text[1024];
	ssize_t len = fd < 0 ? -1 : pread(fd, text, sizeof text, 0);
	struct str all = { text, len > 0 ? (size_t)len : 0 };
	if (len <= 0)
		return false;
	return procfs_find_number(all, key, value);
}

bool view_cpu_ms(const struct sandbox_view *view, uint64_t *ms)
{
	uint64_t value;
	if (read_number(view->fds[LAUNCH_FD_CPU], "usage_usec", &value)) /* v2, in µs */
		*ms = value / 1000;
	else if (read_number(view->fds[LAUNCH_FD_CPU], NULL, &value)) /* v1, in ns */
		*ms = value / 1000000;
	else
		return false;
	return true;
}

bool view_counts_sockets(const struct sandbox_view *view)
{
	return view->fds[LAUNCH_FD_SOCKETS] >= 0;
}

bool view_socket_bytes(const struct sandbox_view *view, uint64_t *bytes)
{
	return read_number(view->fds[LAUNCH_FD_SOCKETS], NULL, bytes);
}

int view_memory_events(const struct sandbox_view *view, uint32_t *events)
{
	*events = view->limiter == LIMITER_CGROUP_V2 ? EPOLLPRI : EPOLLIN;
	return view->fds[LAUNCH_FD_OOM];
}

/* v1's eventfd is emptied, v2's file armed again. */
void view_rearm_memory(const struct sandbox_view *view)
{
	char text[1024];
	(void)!read(view->fds[LAUNCH_FD_OOM], text, sizeof(uint64_t));
	(void)!pread(view->fds[LAUNCH_FD_OOM], text, sizeof text, 0);
}

bool view_is_out_of_memory(const struct sandbox_view *view)
{
	uint64_t kills;
	return read_number(view->fds[LAUNCH_FD_OOM_COUNT], "oom_kill", &kills) && kills;
}

bool view_is_workspace_full(const struct sandbox_view *view)
{
	return usage_tmpfs_is_full(view->fds[LAUNCH_FD_WORKSPACE]);
}
