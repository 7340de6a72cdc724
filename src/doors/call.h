/* call.h -- handling of one request: finding its route, parsing its parameters, responding. Private
 * to this room. 1. A call lives as long as its HTTP request. An operation that waits for core has
 * its own memory (struct operation); its `call` is NULL once the client has disconnected. */
#pragma once
#include "doors/api.h"
#include "doors/door.h"
#include "doors/front.h"
#include "doors/visits.h"
#include "base/buf.h"
#include "base/share.h"
#include "core/catalog.h"
#include "core/idempotency.h"
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
	struct buf openapi;
	struct stream *streams; /* open ones, that a drain must end */
	struct relay *relays;	/* of relay.c */
	char *relay_chunk;
	struct shares port_connections, exec_shares;
	struct websocket_group *websockets;
	struct exec_socket *exec_sockets; /* of exec_socket.c */
};

struct call;
typedef void call_fn(struct call *c);
/* Serves a request. -1: *err is to be answered as a problem. */
typedef int route_fn(struct call *c, struct error *err);

struct route_answer {
	int status;
	const char *type;	     /* content type, or NULL: no body */
	const struct record *schema; /* of JSON; NULL: bytes or text */
	const char *about;
};
enum {
	ROUTE_STREAMED = 1,  /* the body is taken piece by piece, by run */
	ROUTE_KEYED = 2,     /* takes Idempotency-Key */
	ROUTE_LOCATION = 4,  /* 201 has a Location */
	ROUTE_BARE = 8,	     /* not about state: answered at any time */
	ROUTE_OPTIONAL = 16, /* the body may be left out */
	ROUTE_EVENTS = 32,   /* takes Last-Event-ID */
	ROUTE_RANGE = 64,    /* takes Range */
	ROUTE_NEW = 128,     /* takes If-None-Match: * */
	ROUTE_RAW = 256,     /* any query and headers: they are another server's */
	ROUTE_OPEN = 512,    /* answered without a principal, too: for probes */
};
struct route {
	const char *method; /* "*": any */
	const char *path;   /* {id} and {port} are one segment, {path} all that follow */
	const char *name;   /* operationId */
	const char *summary;
	route_fn *run; /* with the body, unless ROUTE_STREAMED */
	unsigned flags;
	const struct record *query; /* or NULL: none */
	size_t query_size;	    /* of the struct */
	const struct record *body;  /* of JSON, or NULL */
	size_t body_size;
	const char *body_type;		    /* of ROUTE_STREAMED */
	const struct route_answer *answers; /* ended by status 0 */
	unsigned short errors[8];	    /* besides those that every route has */
};

struct call {
	struct api *api;
	struct http_request *r;
	const struct door *door;
	const struct request *request; /* for the verbs of core */
	const struct route *route;
	const char *id, *path, *port; /* of the path, decoded */
	struct str rest;	      /* {path}, as it was sent */
	void *query, *body;	      /* the route's structs */
	struct buf out;		      /* of call_print */
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
	void *priv; /* state of the route's function */
};

/* ---- find_route.c ---- */
/* Sets c->route, id and path, among the routes of c->door. A status to be answered (404, 405, 400
 * with *err; *allow for 405), or 0. */
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
struct json *call_print_list(struct call *c);
void call_send_list(struct call *c, const char *next);
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

/* ---- operation.c: what waits for core ---- */
struct operation {
	struct api *api;
	struct call *call;		 /* NULL: the client has disconnected */
	struct idempotency_entry *entry; /* or NULL */
	bool frees_key;			 /* when it fails */
	struct cancelable *cancelable;	 /* when the client disconnects; or NULL */
	char id[ID_LEN + 1];		 /* that the new object gets, or "" */
};
/* `size` bytes that begin with struct operation, zeroed. The call is this operation's until one of
 * the two that follow. */
void *operation_new(struct call *c, size_t size);
/* For a client that said so (Carrel-Cancel: disconnect): cancels it when it disconnects. */
void operation_cancels(struct operation *op, struct cancelable *cancelable);
/* Answers (when the client is still there) and frees. */
void operation_answer(
	struct operation *op, int status, const char *location, const struct buf *body);
void operation_fail(struct operation *op, const struct error *err);
/* Answers with an object, or with *err, which isn't NULL then. location: of what was made, or
 * NULL. */
void operation_answer_record(struct operation *op, const struct error *err, int status,
	const char *location, const struct record *record, const void *object);
/* Answers with a file, which it closes; or with *err, which isn't NULL then. */
void operation_answer_file(
	struct operation *op, const char *type, int fd, uint64_t size, const struct error *err);
/* workspaces.c: answers with the workspace that core is done with; 201 has a Location. */
void operation_answer_workspace(
	struct operation *op, struct core_workspace *w, const struct error *err, int status);
/* Frees the operation and returns its call, to be answered; NULL when the client has disconnected.
 */
struct call *operation_end(struct operation *op);

/* Once for an Idempotency-Key, or just so without one: `make` is called with an operation of
 * `size` bytes to go on, or `find` prints the object that was made before. Without `find` nothing
 * is made a second time: what the first has come to and can't be told any more is a conflict. -1 as
 * route_fn. */
struct once {
	const char *scope;
	size_t size;
	void (*make)(struct call *c, struct operation *op);
	/* false: there is no object of that id. Or NULL. */
	bool (*find)(struct call *c, const char *id, struct buf *body, const char **location);
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
void result_answer(struct operation *op, struct core_exec *e);

/* ---- the handlers, one file a noun ---- */
route_fn api_healthz, api_readyz, api_openapi, api_docs, api_metrics, api_environments;
route_fn api_workspace_create, api_workspace_list, api_workspace_get, api_workspace_patch,
	api_workspace_delete, api_workspace_metrics, api_metrics_list, api_workspace_suspend,
	api_workspace_resume, api_workspace_health, api_workspace_repair, api_workspace_verify;
route_fn api_packages_list, api_packages_install, api_packages_uninstall;
route_fn api_snapshot_create, api_snapshot_list, api_snapshot_list_all, api_snapshot_get,
	api_snapshot_delete, api_snapshot_verify, api_snapshot_push, api_snapshot_pull,
	api_rollback, api_fork;
route_fn api_exec_start, api_exec_list, api_exec_list_all, api_exec_get, api_exec_output,
	api_exec_signal, api_exec_stdin, api_exec_resize, api_exec_socket, api_exec_attach;
route_fn api_file_get, api_file_put, api_file_delete;
route_fn api_archive_get, api_archive_put;
route_fn api_template_list, api_template_get, api_template_add, api_template_delete;
route_fn api_workspace_diff, api_workspace_changes, api_workspace_apply;
route_fn api_tree_list, api_tree_create, api_tree_delete;
route_fn api_archive_list, api_archive_delete, api_archive_restore, api_archive_upload;
route_fn api_export_list, api_export_get, api_export_put, api_export_delete;
route_fn api_package_list, api_package_get, api_package_put, api_package_delete;
route_fn api_deployment_create, api_deployment_list, api_deployment_get, api_deployment_delete,
	api_deployment_restart, api_deployment_rollback, api_deployment_logs, api_deployment_rest,
	api_deployment_a2a, api_deployment_ui;
route_fn api_port_list, api_port_forward;
route_fn api_token_list, api_token_create, api_token_delete;
route_fn api_code_run;
route_fn api_case_create, api_case_list, api_case_get, api_case_delete, api_cell_start,
	api_cell_list, api_cell_get;
route_fn api_tool_forge, api_tool_list, api_tool_get, api_tool_versions, api_tool_call,
	api_tool_rollback, api_tool_delete, api_tool_generate;
route_fn api_approval_list, api_approval_get, api_approval_answer;
route_fn api_agent_list, api_agent_add, api_agent_get, api_agent_delete;
route_fn api_events, api_workspace_events, api_audit;
