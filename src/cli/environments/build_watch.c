#include "cli/environments/build_watch.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "cli/daemon/daemon.h"

#define CLEAR_LINE "\r\033[K"

static void show(struct progress *progress, const struct json_value *event, const char *whose)
{
	static const char *const keys[] = { "request_id", "name", "workspace" };
	const char *type = json_member_text(event, "type");
	const char *stage = json_member_text(event, "stage");
	uint64_t done = 0, total = 0, bytes = 0;
	char phase[sizeof progress->phase];
	bool is_ours = false;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *text = json_member_text(event, keys[i]);
		is_ours |= text && !strcmp(text, whose);
	}
	if (!is_ours || !stage || !type || strcmp(type, "environment.progress"))
		return;
	json_member_u64(event, "packages_done", &done);
	json_member_u64(event, "packages", &total);
	json_member_u64(event, "bytes", &bytes);
	str_printable(phase, sizeof phase, str_from(stage));
	progress_show(progress, phase, done, total, bytes);
}

/* In the child, until the connection is shut down. */
static void follow(struct client *client, struct client_response *response,
	struct progress *progress, const char *whose)
{
	struct error ignored;
	struct sse sse;
	sse_init(&sse);
	while (client_next_event(client, response, &sse, &ignored) == 1) {
		auto_arena struct arena arena = { 0 };
		struct json_value *event;
		struct str data = { sse.data.data, sse.data.len };
		if (!json_read(data, &arena, &event, &ignored))
			show(progress, event, whose);
	}
	sse_done(&sse);
}

static int listen_to(struct build_watch *watch, const struct remote *remote,
	struct client_response *response, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	request.method = "GET";
	request.path = "/v1/events";
	request.accept = "text/event-stream";
	if (daemon_connect(&watch->client, remote->host, false, err))
		return -1;
	if (!client_begin(&watch->client, &request, remote->arena, response, err) &&
		response->status == 200)
		return 0;
	client_done(&watch->client);
	return -1;
}

void build_watch_begin(struct build_watch *watch, struct remote *remote, enum progress_kind kind,
	const char *first, const char *whose)
{
	struct client_response response = { 0 };
	struct progress progress;
	struct error ignored;
	*watch = (struct build_watch){ .kind = kind, .child = CHILD_NONE };
	if (kind == PROGRESS_NONE)
		return;
	progress_init(&progress, kind, STDERR_FILENO);
	if (first)
		progress_show(&progress, first, 0, 0, 0);
	if (listen_to(watch, remote, &response, &ignored))
		return;
	if (child_fork(&watch->child, 0, SIGKILL, &ignored)) {
		watch->child = CHILD_NONE;
		client_done(&watch->client);
		return;
	}
	if (watch->child.pid)
		return;
	child_reset_signals();
	/* Its own copies: the request ends when the connection of the caller is closed. */
	fd_close(&remote->client.socket);
	follow(&watch->client, &response, &progress, whose);
	_exit(0);
}

void build_watch_end(struct build_watch *watch)
{
	if (watch->child.pid > 0) {
		/* What came before is still read; then the stream is at its end. */
		shutdown(watch->client.socket, SHUT_RD);
		child_wait(&watch->child);
		client_done(&watch->client);
	}
	if (watch->kind == PROGRESS_BAR)
		(void)!fd_write_full(STDERR_FILENO, CLEAR_LINE, sizeof CLEAR_LINE - 1);
	*watch = (struct build_watch){ .child = CHILD_NONE };
}
