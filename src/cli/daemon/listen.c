#include "cli/daemon/listen.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/daemon/daemon.h"
#include "linux/unix_address.h"

#define BACKLOG 4096
#define DYING_MS 5000
#define FIRST_FD 3 /* of those that a service manager hands over */
static const struct timespec look_again = { .tv_nsec = 10 * 1000000L };

int listen_parse(const char *text, const char *base, struct arena *arena,
	struct listen_address *address, struct error *err)
{
	*address = (struct listen_address){ 0 };
	if (inet_address_parse(str_from(text), &address->tcp))
		return 0;
	if (strncmp(text, "unix:", 5) != 0 || !text[5])
		return fail_hint(err, ERR_INVALID,
			"--listen unix:/run/carrel/api.sock, --listen 127.0.0.1:7070",
			"--listen '%s' is neither unix:PATH nor ADDRESS:PORT", text);
	address->path = path_normalize(arena, base, text + 5);
	if (!path_basename(address->path)[0] || text[strlen(text) - 1] == '/')
		return fail(err, ERR_INVALID, "--listen '%s' names a directory", text);
	return 0;
}

static bool is_option(int fd, int option, int value)
{
	int found = -1;
	socklen_t len = sizeof found;
	return !getsockopt(fd, SOL_SOCKET, option, &found, &len) && found == value;
}

static void name_socket(int fd, char path[4096])
{
	struct sockaddr_un name = { 0 };
	socklen_t len = sizeof name;
	str_copy(path, 4096, "the socket has no name");
	if (getsockname(fd, (struct sockaddr *)&name, &len) || len <= sizeof name.sun_family)
		return;
	size_t size = len - sizeof name.sun_family;
	if (!name.sun_path[0])
		str_format(path, 4096, "@%.*s", (int)(size - 1), name.sun_path + 1);
	else
		str_format(path, 4096, "%.*s", (int)strnlen(name.sun_path, size), name.sun_path);
}

/* Of a socket that was handed over, or opened: where it listens, as text. */
static int describe(struct listener *listener, struct error *err)
{
	union inet_address address = { 0 };
	socklen_t len = sizeof address;
	char text[INET_ADDRESS_TEXT_SIZE];
	listener->is_tcp = !is_option(listener->fd, SO_DOMAIN, AF_UNIX);
	if (!listener->is_tcp) {
		name_socket(listener->fd, listener->path);
		return 0;
	}
	if (getsockname(listener->fd, &address.any, &len))
		return fail_errno(err, "find the address of a socket");
	inet_address_print(&address, text);
	str_copy(listener->path, sizeof listener->path, text);
	listener->is_exposed = !inet_address_is_loopback(&address);
	return 0;
}

static int take_one(int fd, struct listener *listener, struct error *err)
{
	bool is_known = is_option(fd, SO_DOMAIN, AF_UNIX) || is_option(fd, SO_DOMAIN, AF_INET) ||
			is_option(fd, SO_DOMAIN, AF_INET6);
	*listener = (struct listener)LISTENER_NONE;
	if (!is_known || !is_option(fd, SO_TYPE, SOCK_STREAM) || !is_option(fd, SO_ACCEPTCONN, 1))
		return fail(err, ERR_INVALID,
			"passed descriptor %d (LISTEN_FDS) is not a listening unix or TCP socket",
			fd);
	/* Above the places of a role's descriptors. */
	listener->fd = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD + LISTENERS_MAX);
	if (listener->fd < 0)
		return fail_errno(err, "take over the passed sockets (LISTEN_FDS)");
	close(fd);
	return describe(listener, err);
}

int listen_take(struct listeners *all, struct error *err)
{
	const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
	uint64_t fds = 0, who = 0;
	bool ours = count && pid && str_to_u64(str_from(count), &fds) &&
		    str_to_u64(str_from(pid), &who) && who == (uint64_t)getpid() && fds > 0;
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDNAMES");
	if (!ours)
		return 0;
	if (fds > LISTENERS_MAX - all->count)
		return fail(err, ERR_INVALID,
			"%llu sockets were passed (LISTEN_FDS), but at most %d can be served",
			(unsigned long long)fds, LISTENERS_MAX);
	for (uint64_t i = 0; i < fds; i++)
		if (take_one(FIRST_FD + (int)i, &all->items[all->count++], err))
			return -1;
	return 1;
}

int listen_take_over(
	const struct launch_listener *from, struct listener *listener, struct error *err)
{
	*listener = (struct listener){ .fd = from->fd, .dir = from->dir, .is_own = from->is_own };
	if (describe(listener, err))
		return -1;
	/* Its name may be relative to a directory that was left since. */
	str_copy(listener->path, sizeof listener->path, from->path);
	listener->name = path_basename(listener->path);
	return 0;
}

int listen_open_tcp(const union inet_address *address, struct listener *listener, struct error *err)
{
	const int on = 1;
	char text[INET_ADDRESS_TEXT_SIZE];
	bool is_ipv6 = address->any.sa_family == AF_INET6;
	auto_close int fd =
		socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	inet_address_print(address, text);
	/* The same port of the other family may be another listener's. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
		(is_ipv6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on)) ||
		bind(fd, &address->any, inet_address_len(address)) || listen(fd, BACKLOG))
		return fail_errno(err, "listen at %s", text);
	listener->fd = take_fd(&fd);
	return describe(listener, err);
}

/* 1: a process listens there, 0: none does, -1. */
static int is_live(int dir, const char *name, const char *path, struct error *err)
{
	struct sockaddr_un address;
	auto_close int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0 || unix_address_in(dir, name, &address))
		return fail_errno(err, "try '%s'", path);
	if (!connect(probe, (struct sockaddr *)&address, sizeof address) || errno == EAGAIN)
		return 1;
	return errno == ECONNREFUSED || errno == ENOENT ? 0 : fail_errno(err, "try '%s'", path);
}

/* Only a socket that refuses is stale. When a daemon was killed its lock is free at once, and its
 * core dies a moment later; until then it has the socket, and more that the next core will need. */
static int remove_stale(int dir, const char *name, const char *path, struct error *err)
{
	uint64_t end_ms = clock_monotonic_ms() + DYING_MS;
	struct stat st;
	int live;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : fail_errno(err, "look at '%s'", path);
	if (!S_ISSOCK(st.st_mode))
		return fail(err, ERR_CONFLICT, "'%s' exists and is not a socket", path);
	while ((live = is_live(dir, name, path, err)) > 0 && clock_monotonic_ms() < end_ms)
		nanosleep(&look_again, NULL);
	if (live < 0)
		return -1;
	if (live)
		return fail(err, ERR_CONFLICT, "another program listens at '%s'", path);
	if (unlinkat(dir, name, 0) && errno != ENOENT)
		return fail_errno(err, "remove the unused socket '%s'", path);
	return 0;
}

static int bind_at(
	int dir, const char *name, const char *path, bool is_shared, int *fd, struct error *err)
{
	struct sockaddr_un address;
	if (unix_address_in(dir, name, &address))
		return fail(err, ERR_LIMIT, "the name '%s' is too long for a socket", name);
	if (remove_stale(dir, name, path, err))
		return -1;
	auto_close int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (made < 0)
		return fail_errno(err, "make a socket");
	mode_t before = umask(is_shared ? 0111 : 0177);
	int failed = bind(made, (struct sockaddr *)&address, sizeof address);
	umask(before);
	if (failed || listen(made, BACKLOG))
		return fail_errno(err, "listen at '%s'", path);
	*fd = take_fd(&made);
	return 0;
}

static int open_parent(const char *path, int *dir, struct error *err)
{
	char parent[4096];
	str_format(parent, sizeof parent, "%.*s", (int)(path_basename(path) - path), path);
	*dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *dir < 0 ? fail_errno(err, "open '%s'", parent) : 0;
}

int listen_open(
	const struct home *home, const char *path, struct listener *listener, struct error *err)
{
	bool is_own = listener->is_own = !path;
	auto_close int dir = -1;
	if (!str_format(listener->path, sizeof listener->path, "%s%s", is_own ? home->path : path,
		    is_own ? "/" DAEMON_SOCKET : ""))
		return fail(err, ERR_LIMIT, "the path of the socket is too long");
	if (is_own ? home_open_directory(home, "run", &dir, err)
		   : open_parent(listener->path, &dir, err))
		return -1;
	listener->name = path_basename(listener->path);
	/* In the home root makes what belongs to its owner, with the owner's rights. */
	if (is_own)
		home_enter(home);
	int failed = bind_at(dir, listener->name, listener->path, listener->is_shared && !is_own,
		&listener->fd, err);
	if (is_own)
		home_leave(home);
	if (failed)
		return -1;
	listener->dir = take_fd(&dir);
	return 0;
}

int listen_check(const struct listeners *all, bool has_tls, bool is_insecure, struct error *err)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].is_exposed && !has_tls && !is_insecure)
			return fail_hint(err, ERR_INVALID,
				"--tls-cert and --tls-key (carrel tls init makes them); --insecure "
				"sends tokens in the clear",
				"other hosts reach %s, and it has no TLS", all->items[i].path);
	return 0;
}

void listen_done(const struct home *home, struct listener *listener)
{
	if (listener->dir >= 0) {
		if (listener->is_own)
			home_enter(home);
		unlinkat(listener->dir, listener->name, 0);
		if (listener->is_own)
			home_leave(home);
	}
	fd_close(&listener->dir);
	fd_close(&listener->fd);
}

int listen_notifier(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char text[sizeof address.sun_path];
	const char *path = getenv("NOTIFY_SOCKET");
	bool fits = path && str_copy(text, sizeof text, path);
	unsetenv("NOTIFY_SOCKET");
	if (!fits || (text[0] != '/' && text[0] != '@'))
		return -1;
	size_t len = strlen(text);
	memcpy(address.sun_path, text, len);
	if (text[0] == '@')
		address.sun_path[0] = 0;
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)))
		return -1;
	return take_fd(&fd);
}
