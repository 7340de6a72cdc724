#include "cli/remote.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/id.h"
#include "cli/cli.h"
#include "cli/daemon/context_file.h"
#include "cli/daemon/daemon.h"
#include "format/http/uri.h"

#define PAGE "500"
#define TOKEN_FILE_MAX 4096
/* A daemon that was restarted serves again within seconds. */
#define REOPEN_MS 10000
#define REPEAT_MS 5000
#define REPEAT_PAUSE_MS 50

int remote_read_token(const char *path, struct arena *arena, const char **token, struct error *err)
{
	struct str text;
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || file_read(fd, TOKEN_FILE_MAX, arena, &text))
		return fail_errno(err, "--token-file: read '%s'", path);
	text = str_trim(text);
	if (client_use_token(text, err))
		return error_context(err, "--token-file '%s'", path);
	*token = arena_bytes(arena, text.data, text.len);
	return 0;
}

/* --token-file, CARREL_TOKEN, or that of the context whose host it is. */
static int use_token(struct remote *remote, const struct host_choice *choice, struct error *err)
{
	const char *set = getenv("CARREL_TOKEN"), *token;
	if (remote->token_file)
		return remote_read_token(remote->token_file, remote->arena, &token, err);
	if (set && set[0])
		return client_use_token(str_from(set), err) ? error_context(err, "CARREL_TOKEN")
							    : 0;
	if (choice->token && client_use_token(str_from(choice->token), err))
		return error_context(err, "the token of %s", choice->by);
	return 0;
}

int remote_choose(struct remote *remote, struct error *err)
{
	struct host_choice choice;
	if (remote->is_chosen)
		return 0;
	if (host_choose(remote->host, remote->arena, &choice, err) ||
		use_token(remote, &choice, err))
		return -1;
	remote->host = choice.host;
	remote->by = choice.by;
	remote->is_far = client_is_url(choice.host);
	remote->is_chosen = true;
	return 0;
}

int remote_refuse_far(struct remote *remote, const char *what, const char *hint, struct error *err)
{
	if (remote_choose(remote, err))
		return -1;
	return remote->is_far ? fail_hint(err, ERR_INVALID, hint,
					"%s is about this machine, and %s names a daemon of "
					"another: %s",
					what, remote->by, remote->host)
			      : 0;
}

int remote_open(struct remote *remote, struct error *err)
{
	if (remote->client.socket >= 0)
		return 0;
	struct client client;
	if (remote_choose(remote, err) || daemon_connect(&client, remote->host, true, err))
		return -1;
	remote->client = client;
	return 0;
}

void remote_close(struct remote *remote)
{
	if (remote->client.socket >= 0)
		client_done(&remote->client);
	remote->client.socket = -1;
}

/* A read, or a request that the daemon carries out once for its key. */
static bool may_repeat(const struct client_request *request)
{
	return request->body_fd < 0 && !request->fd_count &&
	       (!strcmp(request->method, "GET") ||
		       (request->headers && strstr(request->headers, "Idempotency-Key: ")));
}

/* What a signal handler can reach. */
static volatile sig_atomic_t is_interrupted;
static struct client *interruptible;
static const int interrupts[] = { SIGINT, SIGTERM, SIGHUP };
#define INTERRUPTS (sizeof interrupts / sizeof *interrupts)

static void on_interrupt(int signo)
{
	int kept = errno;
	is_interrupted = 1;
	shutdown(interruptible->socket, SHUT_RDWR);
	errno = kept;
}

void remote_catch_interrupts(struct remote *remote)
{
	struct sigaction action = { .sa_handler = on_interrupt }, old;
	interruptible = &remote->client;
	for (size_t i = 0; i < INTERRUPTS; i++)
		if (!sigaction(interrupts[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(interrupts[i], &action, NULL);
}

bool remote_is_interrupted(void)
{
	return is_interrupted;
}

/* Another connection, as soon as the daemon serves again. may_start: or to another daemon. */
static bool connect_again(struct remote *remote, uint64_t end_ms, bool may_start)
{
	struct error ignored;
	while (clock_monotonic_ms() < end_ms && !is_interrupted) {
		remote->was_lost = true;
		remote_close(remote);
		poll(NULL, 0, REPEAT_PAUSE_MS);
		if (!daemon_connect(&remote->client, remote->host, may_start, &ignored))
			return true;
		remote->client.socket = -1;
	}
	return false;
}

/* After a failure of the request: whether it may be sent again, on a new connection. *end_ms: 0
 * before the first, then the end of the time for it. */
static bool reconnect(struct remote *remote, const struct client_request *request, uint64_t *end_ms)
{
	if (!remote->client.is_lost || !may_repeat(request))
		return false;
	if (!*end_ms)
		*end_ms = clock_monotonic_ms() + REPEAT_MS;
	/* The first request of a command may have met a daemon that was about to die: a moment
	 * later the command would have started another one. */
	return connect_again(remote, *end_ms, !remote->is_answered);
}

static int read_answer(struct remote *remote, const struct client_request *request,
	const struct client_response *response, struct remote_answer *answer, struct error *err)
{
	struct json_value *value = NULL;
	if (response->body.len && json_read(response->body, remote->arena, &value, err))
		return error_context(
			err, "the daemon's response to %s %s", request->method, request->path);
	*answer = (struct remote_answer){ response->status, response->body, value };
	return 0;
}

static int transmit(struct remote *remote, const struct client_request *request,
	struct client_response *response, struct error *err)
{
	uint64_t end_ms = 0;
	*response = (struct client_response){ 0 };
	if (remote_open(remote, err))
		return -1;
	while (client_call(&remote->client, request, remote->arena, response, err))
		if (!reconnect(remote, request, &end_ms))
			return -1;
	remote->is_answered = true;
	return 0;
}

static struct client_request request_of(
	const char *method, const char *path, const struct buf *body)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	request.method = method;
	request.path = path;
	if (body)
		request.body = (struct str){ body->data, body->len };
	return request;
}

int remote_say_interrupted(const struct remote *remote, struct error *err)
{
	const char *hint = remote->interrupted_hint;
	if (!remote->cancels)
		return fail_hint(err, ERR_CANCELED, hint ? hint : "carrel events shows how it ends",
			"interrupted: the daemon goes on with what it was asked for");
	return fail_hint(err, ERR_CANCELED, hint,
		"interrupted: %s is canceled, unless its last step had begun", remote->cancels);
}

/* A request that changes something outlives a command that is killed, or is canceled: it says so.
 */
static int send_interruptibly(struct remote *remote, const struct client_request *request,
	struct client_response *response, struct error *err)
{
	struct sigaction old[INTERRUPTS];
	if (is_interrupted)
		return fail(err, ERR_CANCELED, "interrupted");
	if (remote_open(remote, err)) /* which may start a daemon */
		return -1;
	for (size_t i = 0; i < INTERRUPTS; i++)
		sigaction(interrupts[i], NULL, &old[i]);
	remote_catch_interrupts(remote);
	int failed = transmit(remote, request, response, err);
	for (size_t i = 0; i < INTERRUPTS; i++)
		sigaction(interrupts[i], &old[i], NULL);
	interruptible = NULL;
	return failed && is_interrupted ? remote_say_interrupted(remote, err) : failed;
}

int remote_send(struct remote *remote, const char *method, const char *path, const struct buf *body,
	struct client_response *response, struct error *err)
{
	struct client_request request = request_of(method, path, body);
	if (remote->cancels)
		request.headers = "Carrel-Cancel: disconnect\r\n";
	return !strcmp(method, "GET") || interruptible
		       ? transmit(remote, &request, response, err)
		       : send_interruptibly(remote, &request, response, err);
}

int remote_call(struct remote *remote, const char *method, const char *path, const struct buf *body,
	struct remote_answer *answer, struct error *err)
{
	const struct client_request request = request_of(method, path, body);
	struct client_response response;
	if (remote_send(remote, method, path, body, &response, err))
		return -1;
	return answer ? read_answer(remote, &request, &response, answer, err) : 0;
}

int remote_call_once(struct remote *remote, const char *path, const struct buf *body,
	const char *headers, struct remote_answer *answer, struct error *err)
{
	struct client_request request = request_of("POST", path, body);
	char key[ID_LEN + 1];
	id_make(key);
	request.headers = arena_printf(remote->arena, "Idempotency-Key: %s\r\n%s", key, headers);
	if (remote->fd > 0) {
		request.fds = &remote->fd;
		request.fd_count = 1;
	}
	struct client_response response;
	if (transmit(remote, &request, &response, err))
		return -1;
	return answer ? read_answer(remote, &request, &response, answer, err) : 0;
}

int remote_begin(struct remote *remote, const struct client_request *request,
	struct client_response *response, struct error *err)
{
	uint64_t end_ms = 0;
	if (remote_open(remote, err))
		return -1;
	while (client_begin(&remote->client, request, remote->arena, response, err))
		if (!reconnect(remote, request, &end_ms))
			return -1;
	remote->is_answered = true;
	if (response->status < 300)
		return 0;
	return client_read_all(&remote->client, response, remote->arena, err)
		       ? -1
		       : client_problem(response->status, response->body, remote->arena, err);
}

int remote_begin_get(struct remote *remote, const char *path, const char *accept,
	const char *headers, struct client_response *response, struct error *err)
{
	struct client_request request = request_of("GET", path, NULL);
	request.accept = accept;
	request.headers = headers;
	return remote_begin(remote, &request, response, err);
}

int remote_send_file(
	struct remote *remote, const char *path, int fd, uint64_t size, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	request.method = "PUT";
	request.path = path;
	request.content_type = "application/octet-stream";
	request.body_fd = fd;
	request.body_len_known = true;
	request.body_len = size;
	return remote_begin(remote, &request, &response, err) ||
			       client_read_all(&remote->client, &response, remote->arena, err)
		       ? -1
		       : 0;
}

int remote_receive_file(
	struct remote *remote, const char *path, int fd, const char *what, struct error *err)
{
	struct client_response response = { 0 };
	char data[65536];
	ssize_t got;
	if (remote_begin_get(remote, path, "*/*", NULL, &response, err))
		return -1;
	while ((got = client_read(&remote->client, &response, data, sizeof data, err)) > 0)
		if (fd_write_full(fd, data, (size_t)got) != got)
			return fail_errno(err, "write %s", what);
	if (got < 0 || is_interrupted)
		return -1;
	return lseek(fd, 0, SEEK_SET) ? fail_errno(err, "read %s", what) : 0;
}

int remote_reopen(struct remote *remote, remote_begin_fn *begin, void *ctx, struct error *err)
{
	uint64_t end_ms = clock_monotonic_ms() + REOPEN_MS;
	while (connect_again(remote, end_ms, false)) {
		if (!begin(ctx, err))
			return 0;
		if (err->code != ERR_UNAVAILABLE && err->code != ERR_CORRUPT)
			return -1;
	}
	return fail(err, ERR_UNAVAILABLE, "the daemon ended and did not start again");
}

void remote_events_init(struct remote_events *events, const struct remote *of, const char *path)
{
	*events = (struct remote_events){ .remote = *of, .path = path };
	events->remote.client = (struct client){ .socket = -1 };
	sse_init(&events->sse);
}

int remote_events_begin(void *ctx, struct error *err)
{
	struct remote_events *events = ctx;
	const char *headers = events->last[0] ? arena_printf(events->remote.arena,
							"Last-Event-ID: %s\r\n", events->last)
					      : NULL;
	sse_done(&events->sse);
	sse_init(&events->sse);
	return remote_begin_get(&events->remote, events->path, "text/event-stream", headers,
		&events->response, err);
}

int remote_events_next(struct remote_events *events, struct error *err)
{
	int got = client_next_event(&events->remote.client, &events->response, &events->sse, err);
	/* Also one without an event: the daemon says where it begins. */
	if (events->sse.id[0])
		str_copy(events->last, sizeof events->last, events->sse.id);
	return got;
}

void remote_events_done(struct remote_events *events)
{
	sse_done(&events->sse);
	remote_close(&events->remote);
}

const char *remote_escape(struct remote *remote, const char *text)
{
	return uri_encode(remote->arena, str_from(text), false);
}

const char *remote_workspace_path(struct remote *remote, const char *name, const char *more)
{
	return arena_printf(
		remote->arena, "/v1/workspaces/%s%s", remote_escape(remote, name), more);
}

const char *remote_exec_path(struct remote *remote, const char *id, const char *more)
{
	return arena_printf(remote->arena, "/v1/execs/%s%s", remote_escape(remote, id), more);
}

int remote_each(struct remote *remote, const char *path,
	void (*fn)(void *ctx, const struct json_value *item), void *ctx, struct error *err)
{
	const char *cursor = NULL, *before = NULL;
	do {
		struct remote_answer answer;
		const char *page = arena_printf(remote->arena, "%s%climit=" PAGE "%s%s", path,
			strchr(path, '?') ? '&' : '?', cursor ? "&cursor=" : "",
			cursor ? remote_escape(remote, cursor) : "");
		if (remote_call(remote, "GET", page, NULL, &answer, err))
			return -1;
		const struct json_value *items = json_member(answer.value, "items");
		if (!items || items->kind != JSON_ARRAY)
			return fail(err, ERR_CORRUPT,
				"the daemon's response to GET %s is not a list of items", path);
		for (const struct json_value *item = items->first; item; item = item->next)
			fn(ctx, item);
		before = cursor;
		cursor = json_member_text(answer.value, "next_cursor");
		if (cursor && before && !strcmp(cursor, before))
			return fail(err, ERR_CORRUPT, "the daemon's list of %s doesn't end", path);
	} while (cursor);
	return 0;
}

void remote_print_answer(const struct remote_answer *answer, struct buf *out)
{
	struct str text = str_trim(answer->text);
	buf_append(out, text.data, text.len);
}

static bool find_reason(const char *name, enum reason *reason)
{
	for (int i = 0; name && i < REASON_COUNT; i++)
		if (!strcmp(name, reason_names[i])) {
			*reason = (enum reason)i;
			return true;
		}
	return false;
}

int remote_read_result(const struct json_value *value, struct result *result, struct error *err)
{
	uint64_t code = 0, number = 0;
	struct result read = { 0 };
	if (!find_reason(json_member_text(value, "reason"), &read.reason) ||
		!json_member_u64(value, "exit_code", &code) || code > 255)
		return fail(err, ERR_CORRUPT, "the daemon's response has no exit code");
	json_member_u64(value, "signal", &number);
	read.exit_status = read.reason == REASON_EXITED ? (int)code : 0;
	read.signal = number < 128 ? (int)number : 0;
	json_member_u64(value, "duration_ms", &read.duration_ms);
	json_member_u64(value, "cpu_ms", &read.cpu_ms);
	json_member_u64(value, "max_rss_bytes", &read.max_rss_bytes);
	*result = read;
	return 0;
}

/* Prints the pairs of a list as members; of duplicate keys only the last, since JSON allows one. */
static void print_pairs(struct json *j, const text_list *pairs, struct arena *arena)
{
	for (size_t i = 0; i < pairs->count; i++) {
		struct str name, value, other, rest;
		bool is_last = true;
		str_cut(str_from(pairs->items[i]), '=', &name, &value);
		for (size_t n = i + 1; n < pairs->count; n++) {
			str_cut(str_from(pairs->items[n]), '=', &other, &rest);
			is_last &= !str_equal(name, other);
		}
		if (is_last)
			json_str(j, arena_bytes(arena, name.data, name.len), value);
	}
}

/* Whether `key` is among "KEY=VALUE" or "KEY" of the list before `end`. */
static bool has_key(const text_list *pairs, size_t end, const char *key, size_t len)
{
	for (size_t i = 0; i < end; i++)
		if (strcspn(pairs->items[i], "=") == len && !strncmp(pairs->items[i], key, len))
			return true;
	return false;
}

/* Each name once. */
static void print_removed(struct json *j, const text_list *names)
{
	for (size_t i = 0; i < names->count; i++)
		if (!has_key(names, i, names->items[i], strlen(names->items[i])))
			json_null(j, names->items[i]);
}

int remote_print_env(struct json *j, const text_list *env, const text_list *removed,
	struct arena *arena, struct error *err)
{
	static const text_list none;
	text_list pairs = { 0 };
	removed = removed ? removed : &none;
	if (cli_read_variables(env, arena, &pairs, err))
		return -1;
	for (size_t i = 0; i < pairs.count; i++) {
		size_t len = strcspn(pairs.items[i], "=");
		if (str_utf8_prefix(pairs.items[i], strlen(pairs.items[i])) !=
			strlen(pairs.items[i]))
			return fail(err, ERR_INVALID, "-e %s: not valid UTF-8", pairs.items[i]);
		if (has_key(removed, removed->count, pairs.items[i], len))
			return fail(err, ERR_INVALID, "the variable '%.*s' is set and removed",
				(int)len, pairs.items[i]);
	}
	if (!pairs.count && !removed->count)
		return 0;
	json_object(j, "env");
	print_pairs(j, &pairs, arena);
	print_removed(j, removed);
	json_end(j);
	return 0;
}

int remote_print_labels(struct json *j, const text_list *labels, const text_list *removed,
	struct arena *arena, struct error *err)
{
	for (size_t i = 0; i < labels->count; i++) {
		const char *label = labels->items[i];
		if (!strchr(label, '=') || label[0] == '=')
			return fail_hint(err, ERR_INVALID, "--label team=search",
				"--label '%s' is not KEY=VALUE", label);
		if (str_utf8_prefix(label, strlen(label)) != strlen(label))
			return fail(err, ERR_INVALID, "--label '%s': not valid UTF-8", label);
		size_t len = strcspn(label, "=");
		if (has_key(labels, i, label, len) || has_key(removed, removed->count, label, len))
			return fail(err, ERR_INVALID, "the label '%.*s' is given twice", (int)len,
				label);
	}
	if (!labels->count && !removed->count)
		return 0;
	json_object(j, "labels");
	print_pairs(j, labels, arena);
	print_removed(j, removed);
	json_end(j);
	return 0;
}
