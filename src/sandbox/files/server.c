/* server.c -- requests in, replies out. */
#include <sys/socket.h>
#include "base/fd.h"
#include "linux/fd_message.h"
#include "sandbox/files/server.h"

static serve_fn *const verbs[FILE_VERB_COUNT] = {
	[FILE_STAT] = serve_stat,
	[FILE_LIST] = serve_list,
	[FILE_OPEN] = serve_open,
	[FILE_CREATE] = serve_create,
	[FILE_COMMIT] = serve_commit,
	[FILE_MKDIR] = serve_mkdir,
	[FILE_MOVE] = serve_move,
	[FILE_REMOVE] = serve_remove,
	[FILE_PACK] = serve_pack,
	[FILE_UNPACK] = serve_unpack,
	[FILE_APPLY] = serve_apply,
	[FILE_TIDY] = serve_tidy,
	[FILE_VERIFY] = serve_verify,
};

static int send_packet(int socket, void *data, size_t len, int fd)
{
	struct iovec part = { data, len };
	return fd_message_send(socket, &part, 1, &fd, fd >= 0, 0) < 0 ? -1 : 0;
}

int serve_send_part(struct serve_job *job, struct error *err)
{
	struct file_reply *reply = &job->reply;
	reply->magic = FILE_MAGIC;
	reply->kind = FILE_PART;
	memcpy(job->packet, reply, sizeof *reply);
	if (send_packet(job->socket, job->packet, sizeof *reply + job->len, -1) < 0)
		return fail_errno(err, "answer");
	reply->count = 0;
	job->len = 0;
	return 0;
}

int serve_add_entry(struct serve_job *job, const char *name, const struct file_entry *info,
	const char *link, struct error *err)
{
	struct file_entry whole = *info;
	whole.name_len = (uint32_t)strlen(name);
	whole.link_len = link ? (uint32_t)strlen(link) : 0;
	size_t need = sizeof whole + whole.name_len + whole.link_len;
	if (sizeof job->reply + job->len + need > FILE_PACKET_MAX && serve_send_part(job, err) < 0)
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

bool serve_is_canceled(struct serve_job *job)
{
	char byte;
	return recv(job->socket, &byte, sizeof byte, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* The packet at job->packet, `len` bytes, is a request. */
static bool take_request(struct serve_job *job, size_t len)
{
	struct file_request *r = &job->request;
	if (len < sizeof *r)
		return false;
	memcpy(r, job->packet, sizeof *r);
	if (r->magic != FILE_MAGIC || r->verb == 0 || r->verb >= FILE_VERB_COUNT ||
		!verbs[r->verb] || r->path_len == 0 || r->path_len > FILE_PATH_MAX ||
		r->text_len > FILE_PATH_MAX || len != sizeof *r + r->path_len + r->text_len)
		return false;
	const char *path = job->packet + sizeof *r, *text = path + r->path_len;
	if (path[r->path_len - 1] || (r->text_len && text[r->text_len - 1]))
		return false;
	job->path = arena_text(&job->arena, path[0] ? path : ".");
	job->text = r->text_len ? arena_text(&job->arena, text) : NULL;
	return true;
}

/* False when core has closed the connection or sent an invalid request. */
static bool receive(struct serve_job *job)
{
	struct fd_message message;
	ssize_t len = fd_message_receive(job->socket, job->packet, FILE_PACKET_MAX, 0, &message);
	fd_message_close(&message, 1);
	fd_close(&job->fd);
	job->fd = message.fd_count ? message.fds[0] : -1;
	if (len <= 0)
		return false;
	/* A cancel that came after the end of its job. */
	const struct file_request *request = (const void *)job->packet;
	if ((size_t)len == sizeof *request && request->verb == FILE_CANCEL)
		return receive(job);
	return take_request(job, (size_t)len);
}

static int answer(struct serve_job *job, const struct error *err)
{
	job->reply.magic = FILE_MAGIC;
	job->reply.kind = err ? FILE_FAILED : FILE_DONE;
	if (err) {
		job->reply.count = job->reply.flags = 0;
		job->len = sizeof *err;
		memcpy(job->packet + sizeof job->reply, err, sizeof *err);
	}
	memcpy(job->packet, &job->reply, sizeof job->reply);
	return send_packet(
		job->socket, job->packet, sizeof job->reply + job->len, err ? -1 : job->answer_fd);
}

void file_server_run(int socket)
{
	static char packet[FILE_PACKET_MAX] __attribute__((aligned(16)));
	bool is_served = true;
	while (is_served) {
		struct serve_job job = {
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
