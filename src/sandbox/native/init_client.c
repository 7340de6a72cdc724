#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/foreign.h"
#include "linux/fd_message.h"
#include "linux/pidfd.h"
#include "sandbox/native/init_client.h"

#define PID_LAST 4194304 /* PID_MAX_LIMIT */
#define ERRNO_LAST 4095
#define USAGE_LIMIT (1ull << 62)

static int send_packet(int socket, struct iovec *iov, size_t iov_count, const int *fds,
	int fd_count, struct error *err)
{
	if (fd_message_send(socket, iov, iov_count, fds, fd_count, MSG_DONTWAIT) < 0)
		return fail_errno(err, "send to the sandbox's init");
	return 0;
}

static int send_request(int socket, enum init_type type, uint64_t id, int value, struct error *err)
{
	struct init_request request = {
		.magic = INIT_MAGIC, .type = type, .id = id, .value = value
	};
	struct iovec iov = { &request, sizeof request };
	return send_packet(socket, &iov, 1, NULL, 0, err);
}

static int fail_too_long(const struct init_spawn *spawn, struct error *err)
{
	errno = E2BIG;
	return fail_errno_code(err, ERR_NOT_EXECUTABLE, "run '%s'", spawn->argv[0]);
}

/* Counts strings and bytes up to the protocol's limits; false when they are over. */
static bool count_strings(const char *const *strings, uint32_t *count, size_t *bytes)
{
	for (; *strings; strings++) {
		if (++*count > INIT_STRINGS_MAX)
			return false;
		*bytes += strlen(*strings) + 1;
		if (*bytes > INIT_BODY_MAX)
			return false;
	}
	return true;
}

static char *append_strings(char *at, const char *const *strings)
{
	for (; *strings; strings++) {
		size_t len = strlen(*strings) + 1;
		memcpy(at, *strings, len);
		at += len;
	}
	return at;
}

static int make_body_fd(const char *body, size_t len, int *fd, struct error *err)
{
	auto_close int made = memfd_create("carrel-spawn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (made < 0 || fd_write_full(made, body, len) < 0 ||
		fcntl(made, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) <
			0)
		return fail_errno(err, "make a memfd for the command's arguments");
	*fd = take_fd(&made);
	return 0;
}

int init_client_spawn(int socket, uint64_t id, const struct init_spawn *spawn, const int fds[3],
	struct error *err)
{
	struct init_request request = { .magic = INIT_MAGIC,
		.type = INIT_SPAWN,
		.id = id,
		.flags = spawn->flags & ~(unsigned)INIT_BODY_IN_FD };
	size_t len = strlen(spawn->cwd) + 1;
	if (!count_strings(spawn->argv, &request.argc, &len) ||
		!count_strings(spawn->env, &request.envc, &len) ||
		request.argc + request.envc > INIT_STRINGS_MAX || len > INIT_BODY_MAX)
		return fail_too_long(spawn, err);
	auto_arena struct arena arena = { 0 };
	char *body = arena_alloc(&arena, len);
	char *at = append_strings(append_strings(body, spawn->argv), spawn->env);
	memcpy(at, spawn->cwd, strlen(spawn->cwd) + 1);
	request.body_len = (uint32_t)len;
	struct iovec iov[2] = { { &request, sizeof request }, { body, len } };
	auto_close int body_fd = -1;
	int sent[4] = { fds[0], fds[1], fds[2], -1 };
	bool has_program = spawn->flags & INIT_PROGRAM_IN_FD;
	if (has_program)
		sent[3] = spawn->program;
	if (len <= INIT_INLINE_MAX && request.argc + request.envc <= INIT_INLINE_STRINGS)
		return send_packet(socket, iov, 2, sent, has_program ? 4 : 3, err);
	if (has_program)
		return fail_too_long(spawn, err);
	if (make_body_fd(body, len, &body_fd, err) < 0)
		return -1;
	request.flags |= INIT_BODY_IN_FD;
	sent[3] = body_fd;
	return send_packet(socket, iov, 1, sent, 4, err);
}

int init_client_signal(int socket, uint64_t id, int signo, struct error *err)
{
	return send_request(socket, INIT_SIGNAL, id, signo, err);
}

int init_client_ack(int socket, uint64_t id, struct error *err)
{
	return send_request(socket, INIT_ACK, id, 0, err);
}

int init_client_stats(int socket, struct error *err)
{
	return send_request(socket, INIT_STATS, 0, 0, err);
}

int init_client_connect(int socket, uint64_t id, uint16_t port, bool to_ipv6, struct error *err)
{
	struct init_request request = { .magic = INIT_MAGIC,
		.type = INIT_CONNECT,
		.id = id,
		.flags = to_ipv6 ? INIT_TO_IPV6 : 0,
		.value = port };
	struct iovec iov = { &request, sizeof request };
	return send_packet(socket, &iov, 1, NULL, 0, err);
}

int init_client_listeners(int socket, struct error *err)
{
	return send_request(socket, INIT_LISTENERS, 0, 0, err);
}

static bool wait_status_is_final(int32_t status)
{
	if (status < 0 || status > 0xffff)
		return false;
	if (WIFEXITED(status))
		return true;
	/* Beside the signal only "dumped core" may be set. */
	return WIFSIGNALED(status) && WTERMSIG(status) <= SIGRTMAX && status <= 0xff;
}

/* What `reply` says is possible, and says nothing that its type doesn't say. */
static bool reply_is_possible(const struct init_reply *r)
{
	bool has_usage = r->utime_us || r->stime_us || r->max_rss_kb;
	if (r->utime_us >= USAGE_LIMIT || r->stime_us >= USAGE_LIMIT ||
		r->max_rss_kb >= USAGE_LIMIT || r->shm_bytes >= USAGE_LIMIT)
		return false;
	if ((has_usage && r->type != INIT_EXITED) || (r->shm_bytes && r->type != INIT_STATS_ARE) ||
		(r->stage && r->type != INIT_FAILED && r->type != INIT_EXITED))
		return false;
	bool is_errno = r->value > 0 && r->value <= ERRNO_LAST;
	switch (r->type) {
	case INIT_STARTED:
		return r->id && r->value > 0 && r->value <= PID_LAST;
	case INIT_FAILED:
		return r->id && is_errno && r->stage > 0 && r->stage < INIT_STAGE_COUNT;
	case INIT_EXITED:
		return r->id && wait_status_is_final(r->value) && (unsigned)r->stage <= 1;
	case INIT_STATS_ARE:
		return !r->id && r->value >= 0 && r->value <= INIT_EXECS_MAX;
	case INIT_CONNECTED:
		return r->id && !r->value;
	case INIT_LISTENERS_ARE:
		return !r->id && r->value >= 0 && r->value <= INIT_LISTENERS_MAX;
	case INIT_REFUSED:
		return is_errno;
	default:
		return false;
	}
}

static bool has_option(int fd, int option, int expected)
{
	int value = -1;
	socklen_t len = sizeof value;
	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == expected;
}

static bool is_connection(int fd)
{
	return (has_option(fd, SO_DOMAIN, AF_INET) || has_option(fd, SO_DOMAIN, AF_INET6)) &&
	       has_option(fd, SO_TYPE, SOCK_STREAM) && has_option(fd, SO_PROTOCOL, IPPROTO_TCP) &&
	       has_option(fd, SO_ACCEPTCONN, 0);
}

/* A descriptor comes with INIT_CONNECTED always, with INIT_STARTED perhaps, else never. */
static bool fits(uint32_t type, int fd)
{
	if (type == INIT_CONNECTED)
		return fd >= 0 && is_connection(fd);
	return fd < 0 || (type == INIT_STARTED && pidfd_is_valid(fd));
}

/* A sandbox that forges one gets no more by it than by a connection of its own. */
static bool is_listener(int fd)
{
	bool is_inet = has_option(fd, SO_DOMAIN, AF_INET) || has_option(fd, SO_DOMAIN, AF_INET6);
	return is_inet &&
	       (has_option(fd, SO_TYPE, SOCK_DGRAM) || (has_option(fd, SO_PROTOCOL, IPPROTO_TCP) &&
							       has_option(fd, SO_ACCEPTCONN, 1)));
}

static bool are_listeners(const struct fd_message *message, const struct init_reply *reply)
{
	bool are_all = message->fd_count == reply->value;
	for (int i = 0; are_all && i < message->fd_count; i++)
		are_all = is_listener(message->fds[i]);
	return are_all;
}

static bool fds_are_possible(const struct fd_message *message, const struct init_reply *reply)
{
	if (message->has_lost_fds)
		return false;
	if (reply->type == INIT_LISTENERS_ARE)
		return are_listeners(message, reply);
	return message->fd_count <= 1 &&
	       fits(reply->type, message->fd_count ? message->fds[0] : -1);
}

static int check(const struct fd_message *message, const struct init_reply *got, ssize_t len,
	struct error *err)
{
	if (len != sizeof *got || message->is_cut || got->magic != INIT_MAGIC)
		return fail(err, ERR_CORRUPT, "the sandbox's init sent an invalid reply");
	if (!reply_is_possible(got))
		return fail(err, ERR_CORRUPT,
			"the sandbox's init sent an impossible reply (type %u)", got->type);
	if (!fds_are_possible(message, got))
		return fail(err, ERR_CORRUPT, "the sandbox's init sent an unexpected descriptor");
	return 0;
}

int init_client_receive_fds(
	int socket, struct init_reply *reply, int *came, struct init_fds *fds, struct error *err)
{
	struct init_reply got;
	struct fd_message message;
	ssize_t len = fd_message_receive(socket, &got, sizeof got, MSG_DONTWAIT, &message);
	if (len < 0 && errno == EAGAIN)
		return INIT_CLIENT_NOTHING;
	if (len < 0 && errno != ECONNRESET)
		return fail_errno(err, "receive from the sandbox's init");
	if (len <= 0) {
		fd_message_close(&message, 0);
		return INIT_CLIENT_EOF;
	}
	if (check(&message, &got, len, err)) {
		fd_message_close(&message, 0);
		return -1;
	}
	bool are_listed = got.type == INIT_LISTENERS_ARE;
	fds->count = are_listed ? message.fd_count : 0;
	for (int i = 0; i < fds->count; i++)
		fds->items[i] = message.fds[i];
	*reply = got;
	*came = message.fd_count && !are_listed ? message.fds[0] : -1;
	return INIT_CLIENT_REPLY;
}

int init_client_receive(int socket, struct init_reply *reply, int *came, struct error *err)
{
	struct init_reply got;
	struct init_fds fds = { .count = 0 };
	int result = init_client_receive_fds(socket, &got, came, &fds, err);
	if (result != INIT_CLIENT_REPLY)
		return result;
	if (got.type == INIT_LISTENERS_ARE) {
		while (fds.count)
			foreign_close(&fds.items[--fds.count]);
		return fail(err, ERR_CORRUPT, "the sandbox's init sent an unexpected reply");
	}
	*reply = got;
	return INIT_CLIENT_REPLY;
}

static int fail_exec(int sys_errno, const char *command, struct error *err)
{
	errno = sys_errno;
	switch (sys_errno) {
	case ENOENT:
	case ENOTDIR:
		return fail_errno_code(err, ERR_COMMAND_NOT_FOUND, "run '%s'", command);
	case EAGAIN:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EIO:
		return fail_errno(err, "run '%s'", command);
	default:
		return fail_errno_code(err, ERR_NOT_EXECUTABLE, "run '%s'", command);
	}
}

int init_client_failure(
	const struct init_reply *reply, const struct init_spawn *spawn, struct error *err)
{
	const char *command = spawn->argv[0];
	if (reply->type == INIT_FAILED && reply->stage == INIT_STAGE_EXEC)
		return fail_exec(reply->value, command, err);
	errno = reply->value;
	if (reply->type != INIT_FAILED)
		return fail_errno_code(
			err, ERR_FAILED, "the sandbox's init refused to run '%s'", command);
	/* Not ERR_NOT_FOUND, which clients would take for a missing workspace. */
	if (reply->stage == INIT_STAGE_CWD)
		return fail_errno_code(err, ERR_INVALID, "working directory '%s'", spawn->cwd);
	if (reply->stage == INIT_STAGE_TTY)
		return fail_errno(err, "set the controlling terminal of '%s'", command);
	fail_errno(err, "start '%s'", command);
	return reply->value == EAGAIN ? error_hint(err, "the limit of tasks is reached") : -1;
}
