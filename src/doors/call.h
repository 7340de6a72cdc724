/* call.h -- handling of one request: finding its route, parsing its parameters, responding. Private
 * to this room. 1. A call lives as long as its HTTP request. An operation that waits for core has
 * its own memory (struct pending); its `call` is NULL once the client has disconnected. */
#pragma once
#include "doors/api.h"
#include "doors/door.h"
#include "doors/front.h"
#include "doors/visits.h"
#include "net/turns.h"
#include "base/buf.h"
#include "base/share.h"
#include "core/catalog.h"
#include "core/idempotency.h"
#include "model/operations/operation.h"
#include "model/records/record.h"
#include "format/text/json.h"

struct api {
	struct core *core;
	struct loop *loop;
	struct http_server *server;
	struct api_options options;
	struct idempotency idempotency;
	struct front front;
	struct visits visits;
	struct turns turns;
	struct buf openapi;
	struct stream *streams; /* open ones, that a drain must end */
	struct relay *relays;	/* of relay.c */
	char *relay_chunk;
	struct shares port_connections, exec_shares;
	struct shares left; /* operations that go on without a client */
	struct websocket_group *websockets;
	struct exec_socket *exec_sockets; /* of exec_socket.c */
};

struct call;
typedef void call_fn(struct call *c);
/* Serves a request. -1: *err is to be answered as a problem. */
typedef int route_fn(struct call *c, struct error *err);

/* An operation, and what serves it. */
struct route {
	const struct operation *operation; /* NULL ends a list */
	route_fn *run;			   /* with the body, unless ROUTE_STREAMED */
	int which;			   /* of several that it serves */
};

struct call {
	struct api *api;
	struct http_request *r;
	const struct door *door;
	const struct request *request; /* for the verbs of core */
	const struct operation *operation;
	route_fn *run;
	int which;			  /* as in struct route */
	struct core_workspace *workspace; /* of ROUTE_WORKSPACE, until run returns; else NULL */
	const char *id, *path, *port;	  /* of the path, decoded */
	struct str rest;		  /* {path}, as it was sent */
	void *query, *body;		  /* the structs of its operation */
	struct buf out;			  /* of call_print */
	struct json json;
	int status;		     /* that was answered, or 0 */
	int problem;		     /* the status of *err, when it isn't that of its code */
	const char *problem_headers; /* with *err, or NULL */
	bool is_measured;	     /* call_measure_first has run */
	bool is_aborted;	     /* in `gone`: the answer didn't reach the client */
	/* Set by run, as far as it needs them. */
	void (*piece)(struct call *c, struct str data); /* empty: the end */
	call_fn *writable;
	/* Called at the end of the request, answered or not, unless priv is NULL. */
	void (*gone)(struct call *c);
	struct turn turn; /* while its operation waits for one */
	void *priv;	  /* state of the route's function */
};

/* ---- find_route.c ---- */
/* Sets c->operation, run, id and path, among the routes of c->door. A status to be answered (404,
 * 405, 400 with *err; *allow for 405), or 0. */
int route_find(struct call *c, const char **allow, struct error *err);

/* Whether r is for a route that needs no principal. */
bool route_is_open(const struct http_request *r);

/* ---- openapi.c ---- */
void openapi_print(struct buf *out);

/* ---- call.c ---- */
/* Of a request that the server has begun; in its arena, and its ctx. Its door is found. */
struct call *call_new(struct api *api, struct http_request *r);
void call_respond(
	struct call *c, int status, const char *type, const char *headers, struct str body);
/* What is printed there is answered by call_send, which ends it with a newline; a list: is its
 * items, and answered by call_send_list, with the cursor of the next page or NULL. */
struct json *call_print(struct call *c);
void call_send(struct call *c, int status, const char *headers);
/* 200, with an object. Returns what a handler does: 0. */
int call_answer(struct call *c, const struct record *record, const void *object);
struct json *call_print_list(struct call *c);
void call_send_list(struct call *c, const char *next);
/* A page of a list, whose query begins with struct page_query: what its verb is called with. */
struct page {
	struct call *call;
	struct json *j; /* its items are printed there */
	const char *cursor;
	size_t limit;
	char next[CORE_CURSOR_SIZE]; /* for the verb; "": there are no more */
};
struct page call_page(struct call *c);
/* Answers with those of an array that come behind the cursor, which is the member `name` of the
 * last one that was shown: sorted by it, or in any order. */
void call_send_array(struct call *c, const struct record *record, const void *items, size_t count,
	size_t size, bool is_sorted);
/* Answers, unless the verb has failed; returns what a handler does. */
int call_send_page(struct page *page, int failed);
void call_empty(struct call *c, int status);
/* Nothing is called for it any more, but `gone` now. */
void call_let_go(struct call *c);
/* The same, and its answer, which was begun, is at its end. */
void call_end(struct call *c);
void call_begin(struct call *c, int status, const char *type, const char *headers);
/* An error as problem JSON (RFC 9457): {"type","title","status","code","detail","hint",
 * "request_id"}, and "exit_code" for a command that can't be started. _with: with a status that
 * fits better than that of its code, and headers or NULL. */
int problem_status(enum error_code code);
/* Its members but `type`, into an open object. */
void problem_print(struct json *j, int status, const struct error *err, const char *request_id,
	const struct request *request, bool is_cli);
/* A hint of an error for its reader: at the command line it names commands, over REST routes. NULL:
 * it is empty. Lives as long as both. */
const char *hint_of(const char *hint, bool is_cli, struct arena *arena);
/* Whether the client is carrel itself (User-Agent: carrel/...), which shows hints to a person. */
bool call_is_cli(struct call *c);
void call_problem(struct call *c, const struct error *err);
void call_problem_with(struct call *c, int status, const char *headers, const struct error *err);
/* One that has further members, which `print` adds. */
void call_problem_more(struct call *c, const struct error *err,
	void (*print)(struct json *j, const void *ctx), const void *ctx);
/* Looks up the workspace of ROUTE_WORKSPACE, and serves the request. */
int call_run(struct call *c, struct error *err);
/* The workspace that c->id names. */
int call_workspace(struct call *c, struct core_workspace **w, struct error *err);
/* A body may not fit into what the workspace has left by the last measurement, and commands have
 * run since: measures it, then calls the route's function once more. true: so it was done. */
bool call_measure_first(struct call *c, struct core_workspace *w);
/* Whether Accept allows it; `type` in lower case. *is_named: by its own name. */
bool call_accepts(struct call *c, const char *type, bool *is_named);
bool call_wants_events(struct call *c);
/* Whether a media type, parameters aside, is that one. */
bool media_type_is(struct str text, const char *type);
const char *call_header(struct call *c, const char *name); /* in the arena, or NULL */

/* ---- pending.c: what waits for core ---- */
struct pending {
	struct api *api;
	struct call *call;		 /* NULL: the client has disconnected */
	struct idempotency_entry *entry; /* or NULL */
	bool frees_key;			 /* when it fails */
	struct cancelable *cancelable;	 /* when the client disconnects; or NULL */
	char id[ID_LEN + 1];		 /* that the new object gets, or "" */
	struct share left;		 /* when the client has disconnected */
	struct buf body;		 /* of pending_print */
	struct json json;
};
/* `size` bytes that begin with struct pending, zeroed. The call is this operation's until one of
 * the two that follow. */
void *pending_new(struct call *c, size_t size);
struct pending *pending_begin(struct call *c); /* one without more members */
/* What a handler returns whose verb may fail at once. */
int pending_check(struct pending *op, int failed);
/* For a client that said so (Carrel-Cancel: disconnect): cancels it when it disconnects. */
void pending_cancels(struct pending *op, struct cancelable *cancelable);
/* Answers (when the client is still there) and frees. */
void pending_answer(struct pending *op, int status, const char *location, const struct buf *body);
void pending_fail(struct pending *op, const struct error *err);
/* The answer is printed there, and pending_send follows. NULL: *err was answered. */
struct json *pending_print(struct pending *op, const struct error *err);
void pending_send(struct pending *op, int status, const char *location);
/* Answers with an object, or with *err, which isn't NULL then. location: of what was made, or
 * NULL. */
void pending_answer_record(struct pending *op, const struct error *err, int status,
	const char *location, const struct record *record, const void *object);
/* The same with 201 and a Location: `location`, such as "/v1/tokens/", and the id. _put: so when it
 * is new, with 200 else. */
void pending_answer_made(struct pending *op, const struct error *err, const char *location,
	const char *id, const struct record *record, const void *object);
void pending_answer_put(struct pending *op, const struct error *err, bool is_new,
	const char *location, const char *id, const struct record *record, const void *object);
/* 204, or *err, which isn't NULL then. */
void pending_answer_done(struct pending *op, const struct error *err);
/* Answers with a file, which it closes; or with *err, which isn't NULL then. */
void pending_answer_file(
	struct pending *op, const char *type, int fd, uint64_t size, const struct error *err);
/* Frees the operation and returns its call, to be answered; NULL when the client has disconnected.
 */
struct call *pending_end(struct pending *op);

/* Once for an Idempotency-Key, or just so without one: `make` is called with an operation of
 * `size` bytes to go on, or `find` prints the object that was made before. Without `find` nothing
 * is made a second time: what the first has come to and can't be told any more is a conflict. -1 as
 * route_fn. */
struct once {
	const char *scope;
	size_t size;
	void (*make)(struct call *c, struct pending *op);
	/* false: there is no object of that id. Or NULL. */
	bool (*find)(struct call *c, const char *id, struct json *j);
	const char *location; /* of what it prints, without the id */
};
int call_once(struct call *c, const struct once *once, struct error *err);

/* ---- stream.c: answers that go on until the client or the daemon ends them ---- */
struct stream {
	struct call *call;
	struct stream *next, **at; /* private */
};
/* When the daemon ends, the call is ended. */
void stream_add(struct call *c, struct stream *stream);
void stream_remove(struct stream *stream); /* twice is nothing */
void streams_stop(struct api *api);

/* Server-sent events: id may be 0. data has no newline. The data of every event is an object with
 * `type`, the name of the event (event_schemas.c). */
void sse_print(struct buf *out, uint64_t id, const char *event, struct str data);
/* One whose data is printed between these two. */
void sse_begin(struct buf *out, const char *event, struct json *j);
void sse_end(struct buf *out);
/* Output as events: an incomplete character at the end of a piece waits for the next one. */
struct sse_tail {
	char bytes[4];
	size_t len;
};
void sse_print_output(
	struct buf *out, const char *event, struct sse_tail *tail, struct str data, bool is_last);

/* ---- result.c: how a captured exec ended, in slices as the client takes them ---- */
struct core_exec;
struct exec_output;
/* The result object; of an event: with its type. output NULL: what was captured; places as in
 * exec_print_result. */
void result_print(struct json *j, const char *type, const struct core_exec *e,
	const struct exec_output *output, size_t places[2]);
/* Of one that waits for an approval without its client (exec_start.c): the members of the answer
 * but `type`, into an open object. */
void exec_print_required(struct json *j, const struct core_exec *e, const struct request *request);
/* Answers with it and ends the operation. From exec_listener.ended. */
void result_answer(struct pending *op, struct core_exec *e);
