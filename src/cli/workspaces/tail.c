#include "cli/workspaces/tail.h"

#include "base/fd.h"

#define CHUNK 65536

int tail_skip(struct tail *tail, struct error *err)
{
	struct remote *remote = &tail->remote;
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	request.method = "HEAD";
	request.accept = "application/octet-stream";
	request.path = remote_exec_path(
		remote, tail->exec, arena_printf(remote->arena, "/output?stream=%s", tail->name));
	if (remote_begin(remote, &request, &response, err))
		return -1;
	tail->offset = response.next_offset;
	return 0;
}

int tail_begin(void *ctx, struct error *err)
{
	struct tail *tail = ctx;
	struct remote *remote = &tail->remote;
	const char *query = arena_printf(remote->arena, "/output?stream=%s&offset=%llu%s",
		tail->name, (unsigned long long)tail->offset, tail->follows ? "&follow=true" : "");
	if (remote_begin_get(remote, remote_exec_path(remote, tail->exec, query),
		    "application/octet-stream", NULL, &tail->response, err))
		return -1;
	tail->is_open = true;
	return 0;
}

/* The daemon went away in the middle: a background command goes on without it, and its output is
 * kept. */
static int reopen(struct tail *tail, struct error *err)
{
	if (!remote_reopen(&tail->remote, tail_begin, tail, err))
		return 0;
	if (err->code == ERR_UNAVAILABLE)
		error_hint(err, "carrel logs -f %s --stream %s --offset %llu continues there",
			tail->exec, tail->name, (unsigned long long)tail->offset);
	return error_context(err, "follow exec '%s'", tail->exec);
}

int tail_pump(struct tail *tail, struct error *err)
{
	char data[CHUNK];
	ssize_t got = client_read(&tail->remote.client, &tail->response, data, sizeof data, err);
	if (got < 0)
		return tail->follows ? reopen(tail, err) : -1;
	tail->offset += (uint64_t)got;
	if (got == 0)
		tail->is_open = false;
	else if (tail->capture)
		buf_append(tail->capture, data, (size_t)got);
	else if (fd_write_full(tail->to, data, (size_t)got) != got)
		return fail_errno(err, "write standard %s", tail->to == 1 ? "output" : "error");
	return 0;
}

bool tail_has_input(const struct tail *tail)
{
	return tail->is_open && (tail->response.at_end || client_has_input(&tail->remote.client));
}
