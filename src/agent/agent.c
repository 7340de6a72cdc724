/* agent.c -- requests in, replies out. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "agent/agent.h"
#include "base/fd.h"
#include "linux/fd_message.h"

static agent_fn *const verbs[AGENT_VERB_COUNT] = {
	[AGENT_STAT] = agent_stat,
	[AGENT_LIST] = agent_list,
	[AGENT_OPEN] = agent_open,
	[AGENT_CREATE] = agent_create,
	[AGENT_COMMIT] = agent_commit,
	[AGENT_MKDIR] = agent_mkdir,
	[AGENT_MOVE] = agent_move,
	[AGENT_REMOVE] = agent_remove,
	[AGENT_PACK] = agent_pack,
	[AGENT_UNPACK] = agent_unpack,
	[AGENT_APPLY] = agent_apply,
	[AGENT_TIDY] = agent_tidy,
	[AGENT_VERIFY] = agent_verify,
};

static int send_packet(int socket, void *data, size_t len, int fd)
{
	struct iovec part = { data, len };

	return fd_message_send(socket, &part, 1, &fd, fd >= 0, 0) < 0 ? -1 : 0;
}

int agent_send_part(struct agent_job *job, struct error *err)
{
	struct agent_reply *reply = &job->reply;

	reply->magic = AGENT_MAGIC;
	reply->kind = AGENT_PART;
	memcpy(job->packet, reply, sizeof *reply);
	if (send_packet(job->socket, job->packet, sizeof *reply + job->len, -1) < 0)
		return fail_errno(err, "answer");
	reply->count = 0;
	job->len = 0;
	return 0;
}

int agent_add_info(struct agent_job *job, const char *name, const struct agent_info *info,
	const char *link, struct error *err)
{
	struct agent_info whole = *info;

	whole.name_len = (uint32_t)strlen(name);
	whole.link_len = link ? (uint32_t)strlen(link) : 0;
	size_t need = sizeof whole + whole.name_len + whole.link_len;
	if (sizeof job->reply + job->len + need > AGENT_PACKET_MAX && agent_send_part(job, err) < 0)
		return -1;
	char *at = job->packet + sizeof job->reply + job->len;
	memcpy(at, &whole, sizeof whole);
	memcpy(at + sizeof whole, name, whole.name_len);
	if (link)
		memcpy(at + sizeof whole + whole.name_len, link, whole.link_len);
	job->len += need;
	job->reply.count++;
	return 0;
}

bool agent_is_canceled(struct agent_job *job)
{
	char byte;

	return recv(job->socket, &byte, sizeof byte, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* The packet at job->packet, `len` bytes, is a request. */
static bool take_request(struct agent_job *job, size_t len)
{
	struct agent_request *r = &job->request;

	if (len < sizeof *r)
		return false;
	memcpy(r, job->packet, sizeof *r);
	if (r->magic != AGENT_MAGIC || r->verb == 0 || r->verb >= AGENT_VERB_COUNT ||
		!verbs[r->verb] || r->path_len == 0 || r->path_len > AGENT_PATH_MAX ||
		r->text_len > AGENT_PATH_MAX || len != sizeof *r + r->path_len + r->text_len)
		return false;
	const char *path = job->packet + sizeof *r, *text = path + r->path_len;
	if (path[r->path_len - 1] || (r->text_len && text[r->text_len - 1]))
		return false;
	job->path = arena_text(&job->arena, path[0] ? path : ".");
	job->text = r->text_len ? arena_text(&job->arena, text) : NULL;
	return true;
}

/* False when core has closed the connection or sent an invalid request. */
static bool receive(struct agent_job *job)
{
	struct fd_message message;
	ssize_t len = fd_message_receive(job->socket, job->packet, AGENT_PACKET_MAX, 0, &message);

	fd_message_close(&message, 1);
	fd_close(&job->fd);
	job->fd = message.fd_count ? message.fds[0] : -1;
	if (len <= 0)
		return false;
	/* A cancel that came after the end of its job. */
	const struct agent_request *request = (const void *)job->packet;
	if ((size_t)len == sizeof *request && request->verb == AGENT_CANCEL)
		return receive(job);
	return take_request(job, (size_t)len);
}

static int answer(struct agent_job *job, const struct error *err)
{
	job->reply.magic = AGENT_MAGIC;
	job->reply.kind = err ? AGENT_FAILED : AGENT_DONE;
	if (err) {
		job->reply.count = job->reply.flags = 0;
		job->len = sizeof *err;
		memcpy(job->packet + sizeof job->reply, err, sizeof *err);
	}
	memcpy(job->packet, &job->reply, sizeof job->reply);
	return send_packet(
		job->socket, job->packet, sizeof job->reply + job->len, err ? -1 : job->answer_fd);
}

void agent_serve(int socket)
{
	static char packet[AGENT_PACKET_MAX] __attribute__((aligned(16)));
	bool is_served = true;

	while (is_served) {
		struct agent_job job = {
			.socket = socket, .packet = packet, .fd = -1, .answer_fd = -1
		};
		struct error err = { 0 };

		arena_init(&job.arena);
		is_served = receive(&job);
		if (is_served) {
			int failed = verbs[job.request.verb](&job, &err);
			fd_close(&job.fd);
			is_served = answer(&job, failed ? &err : NULL) == 0;
		}
		fd_close(&job.fd);
		fd_close(&job.answer_fd);
		arena_done(&job.arena);
	}
}
