#include "client/client.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "client/relay.h"
#include "format/http/token.h"
#include "format/text/json_read.h"
#include "format/http/uri.h"
#include "format/http/websocket.h"
#include "linux/fd_message.h"
#include "linux/home.h"
#include "linux/unix_address.h"

#define PIECE 65536
#define BODY_MAX ((size_t)64 << 20) /* of client_call */
#define CONTINUE_MS 2000	    /* then the body is sent unasked */

/* By way of its directory: a path may be too long for an address. */
static int connect_path(int fd, const char *path)
{
	struct sockaddr_un address;
	const char *name = path_basename(path);
	char directory[PATH_MAX];
	if (!str_format(directory, sizeof directory, "%.*s", (int)(name - path), path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	auto_close int dir = open(directory[0] ? directory : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || unix_address_in(dir, name, &address))
		return -1;
	return connect(fd, (struct sockaddr *)&address, sizeof address);
}

/* A process of another user that listens at a path that others can write to would receive our
 * streams. The credentials are those of the process that called listen: a daemon, or its service
 * manager. */
static int check_peer(int fd, const char *path, struct error *err)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &(socklen_t){ sizeof peer }) < 0)
		return fail_errno(err, "get the user who listens at '%s'", path);
	if (geteuid() == 0 || peer.uid == 0 || peer.uid == geteuid())
		return 0;
	return fail(err, ERR_DENIED,
		"uid %u listens at '%s': only a daemon of your own or of root is trusted",
		(unsigned)peer.uid, path);
}

static int open_socket(const char *path, int *out, struct error *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail_errno(err, "make a socket");
	if (connect_path(fd, path) < 0) {
		bool is_nobody = errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR,
		     is_others = errno == EACCES || errno == EPERM;
		if (is_nobody)
			return fail_errno_code(
				err, ERR_UNAVAILABLE, "no daemon listens at '%s'", path);
		fail_errno(err, "connect to the daemon at '%s'", path);
		return is_others ? error_hint(err, "the socket belongs to another user; unset "
						   "CARREL_HOME, or set it to a directory of your "
						   "own, and carrel starts a daemon for you")
				 : -1;
	}
	if (check_peer(fd, path, err) < 0)
		return -1;
	*out = take_fd(&fd);
	return 0;
}

bool client_is_url(const char *host)
{
	return host && (str_starts_with(str_from(host), "http://") ||
			       str_starts_with(str_from(host), "https://"));
}

/* HOST:PORT, which a path of a socket hardly is: ./HOST:PORT would be one. */
static bool lacks_scheme(const char *host)
{
	const char *colon = strrchr(host, ':');
	return colon && colon != host && colon[1] && !strchr(host, '/') &&
	       !str_starts_with(str_from(host), "unix:") &&
	       strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

int client_check_host(const char *host, struct error *err)
{
	struct uri_base base;
	if (lacks_scheme(host)) {
		fail(err, ERR_INVALID, "invalid host '%s': https:// or http:// is missing", host);
		return error_hint(
			err, "https://%s, or http://%s of a daemon without TLS", host, host);
	}
	const char *path = str_starts_with(str_from(host), "unix:") ? host + 5 : host;
	if (client_is_url(host) && uri_parse_base(host, &base))
		return 0;
	if (path[0] && !strstr(path, "://"))
		return 0;
	return fail_hint(err, ERR_INVALID,
		"--host takes https://HOST:PORT, http://HOST:PORT, unix:PATH or a path",
		"invalid host '%s'", host);
}

static int find_path(const char *host, struct arena *arena, const char **out, struct error *err)
{
	const char *path = host;
	if (host && client_check_host(host, err))
		return -1;
	if (!host) {
		if (home_find_path(arena, &path, err) < 0)
			return -1;
		path = arena_printf(arena, "%s/run/carrel.sock", path);
	} else if (str_starts_with(str_from(host), "unix:")) {
		path = host + strlen("unix:");
	}
	*out = path;
	return 0;
}

static int open_connection(const char *host, int *fd, struct child *relay, struct error *err)
{
	return client_is_url(host) ? relay_open(host, fd, relay, err) : open_socket(host, fd, err);
}

int client_connect(struct client *client, const char *host, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct child relay = CHILD_NONE;
	const char *path = NULL;
	int fd;
	if (find_path(host, &arena, &path, err) < 0 || open_connection(path, &fd, &relay, err) < 0)
		return -1;
	*client = (struct client){ .socket = fd, .host = strdup(path), .relay = relay };
	if (!client->host)
		abort();
	buf_init(&client->in, HTTP_RESPONSE_HEAD_MAX + PIECE);
	return 0;
}

static void close_fds(struct client *client)
{
	for (int i = 0; i < client->fd_count; i++)
		fd_close(&client->fds[i]);
	client->fd_count = 0;
}

void client_done(struct client *client)
{
	close_fds(client);
	fd_close(&client->socket);
	child_kill(&client->relay);
	buf_done(&client->in);
	free((char *)client->host);
	client->host = NULL;
}

/* A connection that is good for a request: another one when the last is used up. */
static int renew(struct client *client, struct error *err)
{
	struct child relay = CHILD_NONE;
	int fd;
	close_fds(client);
	if (!client->is_used)
		return 0;
	if (open_connection(client->host, &fd, &relay, err) < 0)
		return -1;
	fd_close(&client->socket);
	child_kill(&client->relay);
	client->socket = fd;
	client->relay = relay;
	buf_clear(&client->in);
	client->in_at = 0;
	client->is_used = false;
	return 0;
}

/* Waits for more bytes, at most `size`. 0 at the end. */
static ssize_t receive(struct client *client, char *data, size_t size, struct error *err)
{
	struct fd_message message;
	ssize_t got = fd_message_receive(client->socket, data, size, 0, &message);
	if (got < 0) {
		/* A daemon that was killed leaves what we had sent unread. */
		if (errno == ECONNRESET)
			return 0;
		return fail_errno(err, "read from the daemon at '%s'", client->host);
	}
	for (int i = 0; i < message.fd_count; i++) {
		if (client->fd_count < CLIENT_FDS_MAX)
			client->fds[client->fd_count++] = message.fds[i];
		else
			close(message.fds[i]);
	}
	return got;
}

/* Waits for bytes and puts them behind those in client->in; how many, 0 at the end, -1. */
static ssize_t fill(struct client *client, struct error *err)
{
	buf_drop_front(&client->in, client->in_at);
	client->in_at = 0;
	char *room = buf_reserve(&client->in, PIECE);
	if (!room)
		return fail(err, ERR_LIMIT, "the headers of the daemon's response are too long");
	ssize_t got = receive(client, room, PIECE, err);
	if (got > 0)
		buf_grew(&client->in, (size_t)got);
	return got;
}

bool client_has_input(const struct client *client)
{
	return client->in.len > client->in_at;
}

static struct str unread(const struct client *client)
{
	return (struct str){ client->in.data + client->in_at, client->in.len - client->in_at };
}

/* The kernel counts descriptors in flight per user (against RLIMIT_NOFILE), and a plain user's
 * sandboxes run as that user: they may have more in flight than this process's limit allows. false:
 * the limit can't be raised further. */
static bool raise_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* Sends all of the parts, the descriptors with the first byte. 1: it is sent, 0: the daemon wants
 * no more (it may have said why), -1. So do those that send bodies. */
static int transmit(struct client *client, struct iovec *parts, size_t count, const int *fds,
	int fd_count, struct error *err)
{
	while (count > 0) {
		ssize_t sent = fd_message_send(client->socket, parts, count, fds, fd_count, 0);
		if (sent < 0 && errno == ETOOMANYREFS && raise_limit())
			continue;
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 0;
		if (sent < 0)
			return fail_errno(err, "write to the daemon at '%s'", client->host);
		fd_count = 0;
		for (; count > 0 && (size_t)sent >= parts->iov_len; parts++, count--)
			sent -= (ssize_t)parts->iov_len;
		if (count > 0) {
			parts->iov_base = (char *)parts->iov_base + sent;
			parts->iov_len -= (size_t)sent;
		}
	}
	return 1;
}

/* Whether the daemon is asked first, so that a refusal costs no body. */
static bool is_asking(const struct client_request *request)
{
	return request->body_fd >= 0 && (!request->body_len_known || request->body_len > 0);
}

/* A process has one identity, however many connections it makes. */
static char token[TOKEN_LEN + 1];

int client_use_token(struct str text, struct error *err)
{
	if (!token_is_whole(text))
		return fail_hint(err, ERR_INVALID, "carrel token create prints one",
			"not an access token, or one that is cut or mistyped");
	memcpy(token, text.data, TOKEN_LEN);
	return 0;
}

static struct str authority_of(const char *host)
{
	struct uri_base base;
	return client_is_url(host) && uri_parse_base(host, &base) ? base.authority
								  : STR("localhost");
}

static void make_head(struct buf *head, const char *host, const struct client_request *request)
{
	struct str authority = authority_of(host);
	bool is_chunked = request->body_fd >= 0 && !request->body_len_known;
	bool has_body = request->body_fd >= 0 || request->body.data;
	uint64_t len = request->body_fd >= 0 ? request->body_len : request->body.len;
	buf_printf(head,
		"%s %s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: carrel/" CARREL_VERSION
		"\r\nAccept: %s\r\n",
		request->method, request->path, (int)authority.len, authority.data,
		request->accept ? request->accept : "application/json");
	if (has_body)
		buf_printf(head, "Content-Type: %s\r\n",
			request->content_type ? request->content_type : "application/json");
	if (token[0])
		buf_printf(head, "Authorization: Bearer %s\r\n", token);
	if (request->headers)
		buf_text(head, request->headers);
	if (is_chunked)
		buf_text(head, "Transfer-Encoding: chunked\r\n");
	else if (has_body)
		buf_printf(head, "Content-Length: %llu\r\n", (unsigned long long)len);
	if (is_asking(request))
		buf_text(head, "Expect: 100-continue\r\n");
	buf_text(head, "\r\n");
}

static bool is_readable(const struct client *client, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = client->socket, .events = POLLIN };
	int ready;
	do
		ready = poll(&poll_fd, 1, timeout_ms);
	while (ready < 0 && errno == EINTR);
	return ready > 0;
}

/* Whether the daemon has answered before all is sent; that is left for client_receive. Waits
 * timeout_ms at most for it, or for being asked to go on. */
static bool has_answered(struct client *client, int timeout_ms)
{
	struct http_response head;
	size_t used;
	while (client_has_input(client) || is_readable(client, timeout_ms)) {
		if (!client_has_input(client) && fill(client, NULL) <= 0)
			return true;
		int status = http_response_parse(unread(client), false, &used, &head, NULL);
		if (status == 0 && fill(client, NULL) > 0)
			continue;
		if (status <= 0 || head.status >= 200)
			return true;
		client->in_at += used;
		timeout_ms = 0;
	}
	return false;
}

/* Chunked when its length isn't known. */
static int send_body(struct client *client, const struct client_request *request, struct error *err)
{
	auto_free char *room = malloc(HTTP1_CHUNK_FRAME + PIECE + 2);
	bool is_chunked = !request->body_len_known, is_done;
	uint64_t total = 0;
	if (!room)
		abort();
	do {
		uint64_t left = is_chunked ? PIECE : request->body_len - total;
		char *data = room + HTTP1_CHUNK_FRAME;
		ssize_t got;
		do
			got = read(request->body_fd, data, left < PIECE ? (size_t)left : PIECE);
		while (got < 0 && errno == EINTR);
		if (got < 0)
			return fail_errno(err, "read the body of the request");
		if (got == 0 && !is_chunked)
			return fail(err, ERR_FAILED,
				"the body of the request became shorter while it was read");
		struct iovec part = { data, (size_t)got };
		if (is_chunked) {
			part.iov_base = http1_chunk_frame(data, (size_t)got);
			part.iov_len = (size_t)(data + got + 2 - (char *)part.iov_base);
		}
		int status = transmit(client, &part, 1, NULL, 0, err);
		if (status <= 0)
			return status;
		total += (uint64_t)got;
		if (request->progress)
			request->progress(request->ctx, total);
		is_done = is_chunked ? got == 0 : total == request->body_len;
		if (!is_done && has_answered(client, 0))
			return 0;
	} while (!is_done);
	return 1;
}

int client_send(struct client *client, const struct client_request *request, struct error *err)
{
	int status;
	auto_buf struct buf head = buf_empty(BUF_MAX_DEFAULT);
	if (request->fd_count > CLIENT_FDS_MAX)
		return fail(err, ERR_INVALID, "a request can't carry %d descriptors",
			request->fd_count);
	if (request->fd_count && client_is_url(client->host))
		return fail(err, ERR_INVALID, "descriptors can't be sent to '%s'", client->host);
	client->is_lost = false;
	if (renew(client, err) < 0) {
		client->is_lost = err && err->code == ERR_UNAVAILABLE;
		return -1;
	}
	make_head(&head, client->host, request);
	/* Until an answer is read to its end. */
	client->is_used = true;
	client->is_head = !strcmp(request->method, "HEAD");
	struct iovec parts[] = { { head.data, head.len },
		{ (void *)request->body.data, request->body.len } };
	bool is_inline = request->body_fd < 0 && request->body.len > 0;
	status = transmit(client, parts, is_inline ? 2 : 1, request->fds, request->fd_count, err);
	if (status > 0 && is_asking(request))
		status = has_answered(client, CONTINUE_MS) ? 0 : send_body(client, request, err);
	client->is_cut = status != 1;
	return status < 0 ? -1 : 0;
}

static const char *copy_header(
	struct arena *arena, const struct http_response *head, const char *name)
{
	struct str value = http_response_header(head, name);
	return value.data ? arena_bytes(arena, value.data, value.len) : NULL;
}

static void begin_body(struct client *client, const struct http_response *head, struct arena *arena,
	struct client_response *response)
{
	*response = (struct client_response){ .status = head->status,
		.length = head->length,
		.left = head->length,
		.is_chunked = head->is_chunked,
		.will_close = head->will_close,
		.content_type = copy_header(arena, head, "content-type"),
		.location = copy_header(arena, head, "location") };
	if (!str_to_u64(http_response_header(head, "carrel-next-offset"), &response->next_offset))
		response->next_offset = 0;
	if (head->status == 101) {
		response->upgrade = copy_header(arena, head, "upgrade");
		response->accept = copy_header(arena, head, "sec-websocket-accept");
		response->protocol = copy_header(arena, head, "sec-websocket-protocol");
	}
	response->at_end = head->length == 0;
	client->is_used = !response->at_end || response->will_close || client->is_cut;
}

/* A connection to http:// ended without an answer: whether TLS is spoken there. A certificate that
 * isn't accepted says so, too. */
static bool speaks_tls(const char *host, struct arena *arena, const char **url)
{
	struct child relay = CHILD_NONE;
	struct uri_base base;
	struct error err;
	int fd = -1;
	if (!str_starts_with(str_from(host), "http://") || !uri_parse_base(host, &base))
		return false;
	bool has_port =
		base.authority.len > base.name.len + (base.authority.data[0] == '[' ? 2 : 0);
	*url = arena_printf(arena, "https://%.*s%s", (int)base.authority.len, base.authority.data,
		has_port ? "" : ":80");
	if (relay_open(*url, &fd, &relay, &err))
		return err.code == ERR_DENIED;
	fd_close(&fd);
	child_kill(&relay);
	return true;
}

int client_receive_next(struct client *client, struct arena *arena,
	struct client_response *response, struct error *err)
{
	struct http_response head;
	size_t used;
	client->is_used = true;
	for (;;) {
		int status =
			http_response_parse(unread(client), client->is_head, &used, &head, err);
		if (status < 0)
			return error_context(err, "daemon at '%s'", client->host);
		if (status == 1)
			break;
		ssize_t got = fill(client, err);
		if (got < 0)
			return -1;
		const char *url;
		if (got == 0 && !unread(client).len && speaks_tls(client->host, arena, &url))
			return fail_hint(err, ERR_UNAVAILABLE, url, "the daemon at '%s' speaks TLS",
				client->host);
		if (got == 0) {
			client->is_lost = true;
			return fail_hint(err, ERR_UNAVAILABLE, "try again",
				"the daemon at '%s' closed the connection without a response",
				client->host);
		}
	}
	begin_body(client, &head, arena, response);
	client->in_at += used;
	client->is_used |= client_is_interim(response);
	return 0;
}

int client_receive(struct client *client, struct arena *arena, struct client_response *response,
	struct error *err)
{
	do
		if (client_receive_next(client, arena, response, err) < 0)
			return -1;
	while (client_is_interim(response));
	return 0;
}

int client_begin(struct client *client, const struct client_request *request, struct arena *arena,
	struct client_response *response, struct error *err)
{
	if (client_send(client, request, err) < 0)
		return -1;
	return client_receive(client, arena, response, err);
}

static int end_body(struct client *client, struct client_response *response)
{
	response->at_end = true;
	client->is_used = response->will_close || client->is_cut;
	return 0;
}

static int cut(struct client *client, struct error *err)
{
	client->is_lost = true;
	return fail_hint(err, ERR_CORRUPT, "try again",
		"the daemon at '%s' closed the connection in the middle of a response",
		client->host);
}

/* A body that isn't chunked: `left` bytes, or all that come. */
static ssize_t read_plain(struct client *client, struct client_response *response, char *data,
	size_t size, struct error *err)
{
	struct str ready = unread(client);
	ssize_t got;
	if (response->left < size)
		size = (size_t)response->left;
	if (ready.len > 0) {
		got = (ssize_t)(ready.len < size ? ready.len : size);
		memcpy(data, ready.data, (size_t)got);
		client->in_at += (size_t)got;
	} else {
		got = receive(client, data, size, err);
	}
	if (got < 0)
		return -1;
	if (got == 0)
		return response->length == HTTP_LENGTH_UNKNOWN ? end_body(client, response)
							       : cut(client, err);
	if (response->length != HTTP_LENGTH_UNKNOWN)
		response->left -= (uint64_t)got;
	if (response->left == 0)
		end_body(client, response);
	return got;
}

static ssize_t read_chunked(struct client *client, struct client_response *response, char *data,
	size_t size, struct error *err)
{
	for (;;) {
		struct str ready = unread(client), piece;
		size_t used;
		/* The frame lies around the data: no more is looked at than fits. */
		if (ready.len > size)
			ready.len = size;
		int status = http1_chunks_take(&response->chunks, ready, &used, &piece, err);
		if (status < 0)
			return -1;
		if (piece.len > 0)
			memcpy(data, piece.data, piece.len);
		client->in_at += used;
		if (status == 1)
			end_body(client, response);
		if (status == 1 || piece.len > 0)
			return (ssize_t)piece.len;
		if (client_has_input(client))
			continue;
		ssize_t got = fill(client, err);
		if (got <= 0)
			return got < 0 ? -1 : cut(client, err);
	}
}

ssize_t client_read(struct client *client, struct client_response *response, void *data,
	size_t size, struct error *err)
{
	if (response->at_end || size == 0)
		return 0;
	return response->is_chunked ? read_chunked(client, response, data, size, err)
				    : read_plain(client, response, data, size, err);
}

int client_read_all(struct client *client, struct client_response *response, struct arena *arena,
	struct error *err)
{
	ssize_t got;
	auto_buf struct buf body = buf_empty(BODY_MAX);
	do {
		char *room = buf_reserve(&body, PIECE);
		if (!room)
			return fail(err, ERR_LIMIT,
				"the daemon's response is longer than %zu bytes", BODY_MAX);
		got = client_read(client, response, room, PIECE, err);
		if (got < 0)
			return -1;
		buf_grew(&body, (size_t)got);
	} while (got > 0);
	response->body = (struct str){ arena_bytes(arena, body.data, body.len), body.len };
	return 0;
}

int client_call(struct client *client, const struct client_request *request, struct arena *arena,
	struct client_response *response, struct error *err)
{
	if (client_begin(client, request, arena, response, err) < 0 ||
		client_read_all(client, response, arena, err) < 0)
		return -1;
	if (response->status >= 400)
		return client_problem(response->status, response->body, arena, err);
	return 0;
}

/* Sends the request of an upgrade and reads the head of its answer, a 101. */
static int upgrade(struct client *client, const char *path, const char *protocol,
	const char *headers, struct arena *arena, struct client_response *response,
	struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	request.method = "GET";
	request.path = path;
	request.headers =
		arena_printf(arena, "Connection: Upgrade\r\nUpgrade: %s\r\n%s", protocol, headers);
	if (client_call(client, &request, arena, response, err) < 0)
		return -1;
	client->is_used = true;
	return response->status == 101
		       ? 0
		       : fail(err, ERR_CORRUPT, "the daemon at '%s' does not speak %s",
				 client->host, protocol);
}

int client_upgrade(struct client *client, const char *path, const char *protocol,
	struct arena *arena, struct str *early, struct error *err)
{
	struct client_response response;
	if (upgrade(client, path, protocol, "", arena, &response, err) < 0)
		return -1;
	*early = unread(client);
	return 0;
}

int client_upgrade_websocket(struct client *client, const char *path, const char *protocol,
	struct arena *arena, struct str *early, struct error *err)
{
	unsigned char nonce[WEBSOCKET_NONCE_LEN];
	char key[WEBSOCKET_KEY_LEN + 1], accept[WEBSOCKET_ACCEPT_LEN + 1];
	struct client_response response;
	if (getrandom(nonce, sizeof nonce, 0) != sizeof nonce)
		return fail_errno(err, "get random bytes");
	websocket_key(nonce, key);
	websocket_accept(str_from(key), accept);
	const char *headers = arena_printf(arena,
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
		"Sec-WebSocket-Protocol: %s\r\n",
		key, protocol);
	if (upgrade(client, path, "websocket", headers, arena, &response, err) < 0)
		return -1;
	/* A proxy that answers for itself, or another protocol than the one asked for. */
	if (!response.upgrade || strcasecmp(response.upgrade, "websocket") != 0 ||
		!response.accept || strcmp(response.accept, accept) != 0 || !response.protocol ||
		strcmp(response.protocol, protocol) != 0)
		return fail(err, ERR_CORRUPT, "the daemon at '%s' does not speak %s", client->host,
			protocol);
	*early = unread(client);
	return 0;
}

int client_problem(int status, struct str body, struct arena *arena, struct error *err)
{
	struct json_value *problem = NULL;
	/* Of a daemon that knows more codes. */
	enum error_code code = status == 503  ? ERR_UNAVAILABLE
			       : status < 500 ? ERR_INVALID
					      : ERR_FAILED;
	if (json_read(body, arena, &problem, NULL) < 0)
		problem = NULL;
	const char *name = json_member_text(problem, "code");
	const char *detail = json_member_text(problem, "detail");
	const char *hint = json_member_text(problem, "hint");
	code = error_code_from_name(name, code);
	/* Both have the name `denied`; what a policy denies has a trail. */
	if (code == ERR_DENIED && json_member(problem, "trail"))
		code = ERR_POLICY;
	if (!detail)
		return fail(err, code, "the daemon answered with status %d", status);
	fail(err, code, "%s", detail);
	return hint && hint[0] ? error_hint(err, "%s", hint) : -1;
}

int client_next_event(
	struct client *client, struct client_response *response, struct sse *sse, struct error *err)
{
	char piece[16384];
	for (;;) {
		int status = sse_next(sse, err);
		if (status != 0)
			return status;
		ssize_t got = client_read(client, response, piece, sizeof piece, err);
		if (got <= 0)
			return (int)got;
		sse_add(sse, (struct str){ piece, (size_t)got });
	}
}
