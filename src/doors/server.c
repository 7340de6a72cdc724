/* The HTTP handler: authentication, finding the route, responding, the access log. */
#include "base/clock.h"
#include "doors/authenticate.h"
#include "doors/call.h"
#include "doors/rest/exec_socket.h"
#include "doors/rest/relay.h"
#include "format/text/json_read.h"
#include "net/tls.h"

#define BODY_MAX ((size_t)16 << 20)
#define PORT_CONNECTIONS_MAX 1024 /* of all workspaces */
#define QUERY_MAX 128		  /* parameters */
#define LEFT_MAX 4096		  /* operations without a client */

/* ---- reading what was asked ---- */

static int read_query(struct call *c, struct error *err)
{
	static const struct record none = { "", NULL, NULL, 0 };
	const struct record *fields = c->operation->query ? c->operation->query : &none;
	struct record_parameter parameters[QUERY_MAX];
	size_t count = 0;
	c->query = arena_alloc(&c->r->arena, c->operation->query_size + 1);
	if (!c->r->query.len)
		return record_read_query(fields, NULL, 0, &c->r->arena, c->query, err);
	while (http_query_at(c->r, count, &parameters[count].name, &parameters[count].value)) {
		struct record_parameter *p = &parameters[count];
		if (!p->name.data || !p->value.data)
			return fail(err, ERR_INVALID, "the query is not percent-encoded properly");
		if (str_utf8_prefix(p->name.data, p->name.len) != p->name.len ||
			str_utf8_prefix(p->value.data, p->value.len) != p->value.len)
			return fail(err, ERR_INVALID, "the query is not UTF-8");
		p->name.data = arena_bytes(&c->r->arena, p->name.data, p->name.len);
		p->value.data = arena_bytes(&c->r->arena, p->value.data, p->value.len);
		if (++count == QUERY_MAX)
			return fail(err, ERR_INVALID, "the query has more than %d parameters",
				QUERY_MAX - 1);
	}
	return record_read_query(fields, parameters, count, &c->r->arena, c->query, err);
}

static int read_body(struct call *c, struct error *err)
{
	static struct json_value nothing = { .kind = JSON_OBJECT };
	struct json_value *value = &nothing;
	struct str type = http_header(c->r, "content-type");
	c->body = arena_alloc(&c->r->arena, c->operation->takes_size + 1);
	if (!c->r->body.len && !(c->operation->flags & ROUTE_OPTIONAL))
		return fail(err, ERR_INVALID, "the body is empty; it must be a JSON object");
	if (c->r->body.len && !(type.data && media_type_is(type, "application/json"))) {
		c->problem = 415;
		return fail_hint(err, ERR_INVALID, "send it with `Content-Type: application/json`",
			"the body's type is not application/json");
	}
	if (c->r->body.len && json_read(c->r->body, &c->r->arena, &value, err)) {
		c->problem = err->code == ERR_LIMIT ? 413 : 400;
		return error_context(err, "body");
	}
	return record_read(c->operation->takes, value, &c->r->arena, c->body, err);
}

/* Also where it doesn't count: a key that can't be one is the client's error. */
static int check_key(struct call *c, struct error *err)
{
	struct str key = http_header(c->r, "idempotency-key");
	for (size_t i = 0; i < key.len; i++)
		if (key.data[i] <= ' ' || key.data[i] > '~')
			return fail(err, ERR_INVALID,
				"Idempotency-Key may contain only printable characters");
	if (key.data && (key.len < 1 || key.len > IDEMPOTENCY_KEY_MAX))
		return fail(err, ERR_INVALID, "Idempotency-Key must have 1 to %d characters",
			IDEMPOTENCY_KEY_MAX);
	return 0;
}

/* A change that is to be made on a condition, or to a part, is not made without it. */
static int check_conditions(struct call *c, struct error *err)
{
	static const char *const names[] = { "content-range", "if-match", "if-unmodified-since",
		"if-none-match" };
	if (!strcmp(c->operation->method, "GET"))
		return 0;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct str value = http_header(c->r, names[i]);
		if (!value.data || ((c->operation->flags & ROUTE_NEW) && str_is(value, "*") &&
					   !strcmp(names[i], "if-none-match")))
			continue;
		return fail_hint(err, ERR_INVALID,
			"leave it out; If-None-Match: * writes a file only if it doesn't exist",
			"'%s' is not supported for this request", names[i]);
	}
	return 0;
}

static int run(struct call *c, struct error *err)
{
	bool is_bare = c->operation->flags & ROUTE_BARE, frees = str_is(c->r->method, "DELETE");
	/* A principal that has left no operation behind is served, however many others have. */
	frees |= !shares_has(&c->api->left, c->r->holder);
	if ((!is_bare && core_check_serving(c->api->core, err)) ||
		(!is_bare && !frees && shares_check(&c->api->left, c->r->holder, 1, err)))
		return -1;
	return call_run(c, err);
}

/* ---- what the server calls ---- */

static void on_refused(void *ctx, struct http_request *r, const struct error *err)
{
	const char *headers = err->code == ERR_UNAUTHENTICATED
				      ? "WWW-Authenticate: Bearer realm=\"carrel\"\r\n"
			      : err->code == ERR_LIMIT ? "Retry-After: 1\r\n"
						       : NULL;
	struct call *c = call_new(ctx, r);
	c->door->refuse(c, problem_status(err->code), headers, err);
}

static void serve(void *ctx)
{
	struct call *c = ctx;
	struct error err;
	bool has_body = !(c->operation->flags & ROUTE_STREAMED) && c->operation->takes;
	call_let_go(c);
	if ((has_body && read_body(c, &err)) || run(c, &err))
		call_problem(c, &err);
}

static void leave_turns(struct call *c)
{
	turns_leave(&c->api->turns, &c->turn);
}

static void take_turn(struct call *c)
{
	c->turn = (struct turn){ .serve = serve, .ctx = c, .holder = c->r->holder };
	if (c->operation->flags & ROUTE_BARE) {
		serve(c);
		return;
	}
	c->priv = c;
	c->gone = leave_turns;
	turns_take(&c->api->turns, &c->turn);
}

static void on_begin(void *ctx, struct http_request *r)
{
	struct call *c = call_new(ctx, r);
	const char *allow = NULL;
	struct error err;
	int status;
	c->request = access_request(r->principal,
		c->door->name_of_cli && call_is_cli(c) ? c->door->name_of_cli : c->door->name,
		r->id, &r->arena);
	status = route_find(c, &allow, &err);
	if (status)
		c->door->refuse(c, status,
			allow ? arena_printf(&r->arena, "Allow: %s\r\n", allow) : NULL, &err);
	else if (((c->operation->flags & ROUTE_KEYED) && check_key(c, &err)) ||
		 (!(c->operation->flags & ROUTE_RAW) &&
			 (check_conditions(c, &err) || read_query(c, &err))))
		call_problem(c, &err);
	else if (c->operation->flags & ROUTE_STREAMED)
		take_turn(c);
	else
		http_take_body(r, c->operation->takes || c->door->takes_any_body ? BODY_MAX : 0);
}

static void on_complete(void *ctx, struct http_request *r)
{
	take_turn(r->ctx);
}

static void on_body(void *ctx, struct http_request *r, struct str data)
{
	struct call *c = r->ctx;
	if (c->piece)
		c->piece(c, data);
}

static void on_writable(void *ctx, struct http_request *r)
{
	struct call *c = r->ctx;
	if (c->writable)
		c->writable(c);
}

static void write_log(struct call *c, bool aborted)
{
	const struct log *log = c->api->options.log;
	enum log_level level = c->status >= 500 ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG;
	char status[8], took[32], method[16], path[512];
	if (level < log->least)
		return;
	str_format(status, sizeof status, "%d", c->status);
	str_format(
		took, sizeof took, "%.3f", (double)(clock_monotonic_ns() - c->r->began_ns) / 1e6);
	str_printable(method, sizeof method, c->r->method);
	str_printable(path, sizeof path, front_has_token_in_url(c->r) ? c->r->path : c->r->target);
	log_record(log, level, "request", "request_id", c->r->id, "method", method, "target", path,
		"status", status, "ms", took, "aborted", aborted ? "yes" : "no", NULL);
}

static void on_done(void *ctx, struct http_request *r, bool aborted)
{
	struct call *c = r->ctx;
	c->is_aborted = aborted;
	call_let_go(c);
	buf_done(&c->out);
	write_log(c, aborted);
}

int api_open(const struct api_options *options, struct api **out, struct error *err)
{
	struct api *api = xzalloc(sizeof *api);
	*api = (struct api){ .core = options->core, .loop = options->loop, .options = *options };
	idempotency_init(&api->idempotency, options->core);
	turns_init(&api->turns, options->loop);
	api->websockets = websocket_group_new(options->loop, &websocket_times_default);
	buf_init(&api->openapi, BUF_MAX_DEFAULT);
	visits_init(&api->visits, &api->front, http_drop);
	shares_init(&api->port_connections, "open connections to ports of workspaces",
		"close some of them", PORT_CONNECTIONS_MAX, PORT_CONNECTIONS_MAX / 4);
	shares_init(&api->left, "operations under way whose client has disconnected",
		"wait until some have ended", LEFT_MAX, LEFT_MAX / 4);
	shares_init(&api->exec_shares, "open WebSockets", "close some of them", EXEC_SOCKETS_MAX,
		EXEC_SOCKETS_MAX / 2);
	if (front_init(&api->front, options->settings, err)) {
		api_free(api);
		return -1;
	}
	openapi_print(&api->openapi);
	buf_text(&api->openapi, "\n");
	const struct http_handler handler = { on_begin, on_refused, on_complete, on_body,
		on_writable, on_done, api };
	if (http_server_new(options->loop, &http_limits_default, &handler, &api->server, err)) {
		api_free(api);
		return -1;
	}
	*out = api;
	return 0;
}

static void *arrive(void *ctx, const struct http_peer *peer, struct http_connection *connection)
{
	struct api *api = ctx;
	return visits_come(&api->visits, peer, connection);
}

static void leave(void *ctx, void *visit)
{
	struct api *api = ctx;
	visits_leave(&api->visits, visit);
}

int api_listen_peers(struct api *api, int listener, struct error *err)
{
	const struct http_listener peers = { .fd = listener,
		.authenticate = authenticate_unix,
		.ctx = api,
		.arrived = arrive,
		.left = leave };
	return http_server_listen(api->server, &peers, err);
}

int api_listen_tcp(struct api *api, int listener, struct tls *tls, struct error *err)
{
	const struct http_listener clients = { .fd = listener,
		.authenticate = authenticate_tcp,
		.open = tls ? tls_open : NULL,
		.ctx = api,
		.stream_ctx = tls,
		.arrived = arrive,
		.left = leave,
		.is_remote = true };
	return http_server_listen(api->server, &clients, err);
}

void api_drain(struct api *api, void (*done)(void *ctx), void *ctx)
{
	streams_stop(api);
	relays_stop(api);
	exec_sockets_stop(api);
	http_server_drain(api->server, done, ctx);
}

void api_free(struct api *api)
{
	if (!api)
		return;
	/* Requests that are open end first: each lets go of what it waits for. */
	if (api->server)
		http_server_free(api->server);
	relays_stop(api);
	websocket_group_free(api->websockets);
	idempotency_done(&api->idempotency);
	turns_done(&api->turns);
	buf_done(&api->openapi);
	visits_done(&api->visits);
	shares_done(&api->port_connections);
	shares_done(&api->exec_shares);
	shares_done(&api->left);
	front_done(&api->front);
	free(api);
}
