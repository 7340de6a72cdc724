/* What holders of a policy send to the role. */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/fd.h"
#include "egress/internal.h"
#include "linux/fd_message.h"

#define REPLY_SECONDS 10
#define ENDED "the egress process has ended"

const char *egress_event_name(unsigned event)
{
	static const char *const names[] = { "unknown", "opened", "closed", "refused", "failed",
		"limited" };
	return names[event < sizeof names / sizeof *names ? event : 0];
}

const char *egress_front_name(unsigned front)
{
	static const char *const names[] = { "unknown", "connect", "http", "socks", "names",
		"resolver" };
	return names[front < sizeof names / sizeof *names ? front : 0];
}

int egress_pair(int ends[2], struct error *err)
{
	struct timeval patience = { .tv_sec = REPLY_SECONDS };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fail_errno(err, "make a pair of sockets");
	if (setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
		setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0)
		return 0;
	fail_errno(err, "prepare a pair of sockets");
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	return -1;
}

/* ---- what the role sends ---- */

/* The role may write anything: its texts are made printable lines. */
static void clean(char *text, size_t size)
{
	char copy[512];
	text[size - 1] = '\0';
	str_copy(copy, sizeof copy, text);
	str_printable(text, size, str_from(copy));
}

static int take_reply(struct egress_reply *reply, struct error *err)
{
	clean(reply->text, sizeof reply->text);
	clean(reply->status.last_refused, sizeof reply->status.last_refused);
	clean(reply->status.last_failure, sizeof reply->status.last_failure);
	if (reply->code == ERR_NONE)
		return 0;
	bool is_known = reply->code > ERR_NONE && reply->code < ERR_CODE_COUNT;
	return fail(err, is_known ? (enum error_code)reply->code : ERR_FAILED, "%s", reply->text);
}

static void take_record(struct egress_record *record)
{
	clean(record->host, sizeof record->host);
	clean(record->address, sizeof record->address);
	clean(record->rule, sizeof record->rule);
	clean(record->reason, sizeof record->reason);
}

union packet {
	struct egress_reply reply;
	struct egress_record record;
};

static ssize_t egress_client_receive(int channel, union packet *packet, int flags)
{
	ssize_t got;
	do
		got = recv(channel, packet, sizeof *packet, flags | MSG_TRUNC);
	while (got < 0 && errno == EINTR);
	return got;
}

static int read_reply(int *channel, struct egress_reply *reply, struct error *err)
{
	union packet packet;
	ssize_t got;
	do
		got = egress_client_receive(*channel, &packet, 0);
	while (got == (ssize_t)sizeof packet.record);
	if (got != (ssize_t)sizeof packet.reply) {
		bool is_late = got < 0 && errno == EAGAIN;
		/* A late reply would be taken for that of the next message. */
		fd_close(channel);
		return fail(err, ERR_UNAVAILABLE,
			is_late ? "the egress process does not answer" : ENDED);
	}
	*reply = packet.reply;
	return take_reply(reply, err);
}

int egress_read(struct egress *egress, struct egress_news *news, struct error *err)
{
	union packet packet;
	ssize_t got = egress->channel < 0
			      ? 0
			      : egress_client_receive(egress->channel, &packet, MSG_DONTWAIT);
	if (got < 0 && errno == EAGAIN)
		return 0;
	*news = (struct egress_news){ .is_record = got == (ssize_t)sizeof packet.record };
	if (news->is_record) {
		news->record = packet.record;
		take_record(&news->record);
		return 1;
	}
	if (got != (ssize_t)sizeof packet.reply)
		return fail(err, ERR_UNAVAILABLE, ENDED);
	if (take_reply(&packet.reply, &news->failure) == 0)
		news->failure.code = ERR_NONE;
	news->status = packet.reply.status;
	return 1;
}

/* ---- what it is sent ---- */

static int send_with(
	int channel, const void *data, size_t len, int fd, int flags, struct error *err)
{
	struct iovec part = { (void *)(uintptr_t)data, len };
	if (channel < 0)
		return fail(err, ERR_UNAVAILABLE, ENDED);
	if (fd_message_send(channel, &part, 1, &fd, fd >= 0, flags) >= 0)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET)
		return fail(err, ERR_UNAVAILABLE, ENDED);
	if (errno == EAGAIN)
		return fail(err, ERR_UNAVAILABLE, "the egress process reads no messages");
	return fail_errno(err, "send a message to the egress process");
}

static int egress_client_begin(int service, const struct egress_policy *policy,
	struct egress *egress, int flags, struct error *err)
{
	int ends[2];
	*egress = EGRESS_NONE;
	if (egress_pair(ends, err) < 0)
		return -1;
	egress->channel = ends[0];
	auto_close int theirs = ends[1]; /* closed, or the end of the role would not be seen */
	return send_with(service, policy, sizeof *policy, theirs, flags, err);
}

/* *fd: the rules as a file in memory. */
static int write_rules(const struct egress_rules *rules, int *fd, struct error *err)
{
	auto_buf struct buf text = buf_empty(RULES_MAX);
	rules_write(rules, &text);
	if (text.overflow)
		return fail(err, ERR_LIMIT, "the rules of a policy have more than %zu bytes",
			RULES_MAX);
	auto_close int made = memfd_create("rules", MFD_CLOEXEC);
	if (made < 0 || fd_write_full(made, text.data, text.len) != (ssize_t)text.len)
		return fail_errno(err, "write the rules of an egress policy");
	*fd = take_fd(&made);
	return 0;
}

/* One process at a time, until it has its reply: a lock of the process (lockf), not of the
 * descriptor, which processes that were forked since share. */
static int exchange(struct egress *egress, const struct egress_message *message, int fd,
	struct egress_reply *reply, struct error *err)
{
	struct egress_reply ignored;
	if (egress->channel < 0)
		return fail(err, ERR_UNAVAILABLE, ENDED);
	while (lockf(egress->lock, F_LOCK, 1) < 0)
		if (errno != EINTR)
			return fail_errno(err, "lock the channel of the egress process");
	int failed = send_with(egress->channel, message, sizeof *message, fd, 0, err) ||
		     read_reply(&egress->channel, reply ? reply : &ignored, err);
	(void)!lockf(egress->lock, F_ULOCK, 1);
	return failed ? -1 : 0;
}

int egress_open(
	int service, const struct egress_policy *policy, struct egress *egress, struct error *err)
{
	struct egress_reply reply;
	if (egress_client_begin(service, policy, egress, 0, err) < 0)
		return -1;
	egress->lock = memfd_create("egress", MFD_CLOEXEC);
	if (egress->lock < 0)
		return fail_errno(err, "make the lock of an egress channel");
	return read_reply(&egress->channel, &reply, err);
}

int egress_set(struct egress *egress, const struct egress_rules *rules, struct error *err)
{
	auto_close int fd = -1;
	if (write_rules(rules, &fd, err) < 0)
		return -1;
	return exchange(egress, &(struct egress_message){ .type = EGRESS_SET }, fd, NULL, err);
}

int egress_listen(struct egress *egress, enum egress_listener kind, int listener, struct error *err)
{
	struct egress_message message = { .type = EGRESS_SERVE, .kind = (uint8_t)kind };
	if (listener < 0)
		return fail(err, ERR_INVALID, "no listening socket");
	return exchange(egress, &message, listener, NULL, err);
}

int egress_serve(struct egress *egress, int listener, struct error *err)
{
	return egress_listen(egress, EGRESS_PROXY, listener, err);
}

int egress_allow(struct egress *egress, const struct forward_host *host, struct error *err)
{
	struct egress_message message = {
		.type = EGRESS_ALLOW, .port = host->port, .is_named = host->is_named
	};
	if (host_check(host, err) < 0)
		return -1;
	str_copy(message.host, sizeof message.host, host->host);
	return exchange(egress, &message, -1, NULL, err);
}

int egress_settle(struct egress *egress, struct error *err)
{
	return exchange(egress, &(struct egress_message){ .type = EGRESS_SETTLE }, -1, NULL, err);
}

int egress_look(struct egress *egress, struct egress_status *status, struct error *err)
{
	struct egress_reply reply;
	if (exchange(egress, &(struct egress_message){ .type = EGRESS_LOOK }, -1, &reply, err) < 0)
		return -1;
	*status = reply.status;
	return 0;
}

void egress_close(struct egress *egress)
{
	struct error ignored; /* a role that has ended holds nothing */
	if (egress->channel >= 0 && egress->lock >= 0)
		exchange(
			egress, &(struct egress_message){ .type = EGRESS_END }, -1, NULL, &ignored);
	egress_drop(egress);
}

/* ---- without waiting ---- */

int egress_begin(
	int service, const struct egress_policy *policy, struct egress *egress, struct error *err)
{
	return egress_client_begin(service, policy, egress, MSG_DONTWAIT, err);
}

int egress_post_rules(struct egress *egress, const struct egress_rules *rules, struct error *err)
{
	const struct egress_message message = { .type = EGRESS_SET };
	auto_close int fd = -1;
	if (write_rules(rules, &fd, err) < 0)
		return -1;
	return send_with(egress->channel, &message, sizeof message, fd, MSG_DONTWAIT, err);
}

int egress_post_listener(
	struct egress *egress, enum egress_listener kind, int listener, struct error *err)
{
	const struct egress_message message = { .type = EGRESS_SERVE, .kind = (uint8_t)kind };
	if (listener < 0)
		return fail(err, ERR_INVALID, "no listening socket");
	return send_with(egress->channel, &message, sizeof message, listener, MSG_DONTWAIT, err);
}

int egress_post_look(struct egress *egress, struct error *err)
{
	const struct egress_message message = { .type = EGRESS_LOOK };
	return send_with(egress->channel, &message, sizeof message, -1, MSG_DONTWAIT, err);
}

void egress_drop(struct egress *egress)
{
	fd_close(&egress->channel);
	fd_close(&egress->lock);
}
