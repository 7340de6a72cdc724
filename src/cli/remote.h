/* remote.h -- what the commands that talk to the daemon share: one call and its
 * answer, and parts of what is sent. */
#pragma once
#include "base/buf.h"
#include "base/vec.h"
#include "client/client.h"
#include "format/text/json.h"
#include "format/text/json_read.h"
#include "model/nouns/result.h"

struct remote {
	struct arena *arena; /* for paths and answers */
	struct client client;
	const char *host;	/* --host, or NULL; after remote_choose, the daemon's, or NULL */
	const char *token_file; /* --token-file, or NULL: CARREL_TOKEN, else the context's */
	bool is_chosen;		/* by remote_choose */
	bool is_far;		/* and a URL: descriptors can't be sent there, and files of this
				   machine mean nothing */
	const char *by;	  /* what chose the host, for messages: "--host", "CARREL_HOST", … */
	bool was_lost;	  /* and connected again */
	bool is_answered; /* a request was */
	int fd;		  /* > 0: sent with the next remote_call_once */
	/* What the daemon cancels when the connection ends, such as by an interrupt: "the pull".
	 * NULL: it goes on with a request that isn't a GET. */
	const char *cancels;
	const char *interrupted_hint; /* how to see what became of it; or NULL */
};
/* Connects to the daemon unless connected; starts the daemon of this home if it isn't running. The
 * calls below do this themselves. */
int remote_open(struct remote *remote, struct error *err);
void remote_close(struct remote *remote);
/* Chooses the daemon, and the token as whose bearer requests are sent from now on, if there is one.
 * remote_open does it. */
int remote_choose(struct remote *remote, struct error *err);
/* The token in a file, in the arena. */
int remote_read_token(const char *path, struct arena *arena, const char **token, struct error *err);
/* ERR_INVALID when the daemon is on another machine: `what`, such as "--dir", is about this one. */
int remote_refuse_far(struct remote *remote, const char *what, const char *hint, struct error *err);

struct remote_answer {
	int status;
	struct str text;		/* as it came; empty: none */
	const struct json_value *value; /* the same, parsed; NULL: none */
};
/* One request; body NULL: none. What isn't 2xx is *err. answer may be NULL. A GET whose connection
 * is lost, as by a core that is killed, is sent again for five seconds. ERR_CANCELED: a signal that
 * ends programs came before the answer to another method, unless remote_catch_interrupts was called
 * before: then the caller looks. */
int remote_call(struct remote *remote, const char *method, const char *path, const struct buf *body,
	struct remote_answer *answer, struct error *err);
/* The same; a response that is an error is in *response too. */
int remote_send(struct remote *remote, const char *method, const char *path, const struct buf *body,
	struct client_response *response, struct error *err);
/* A POST that creates something, with an Idempotency-Key: sent again as a GET is, and carried out
 * once. headers: further ones, or "". */
int remote_call_once(struct remote *remote, const char *path, const struct buf *body,
	const char *headers, struct remote_answer *answer, struct error *err);
/* From here on SIGINT, SIGTERM and SIGHUP, unless they are ignored, shut the connection down: a
 * call under way fails, unless its answer has come already, and what was begun is tidied up as
 * after any failure. */
void remote_catch_interrupts(struct remote *remote);
bool remote_is_interrupted(void);
/* ERR_CANCELED: what becomes of the request. */
int remote_say_interrupted(const struct remote *remote, struct error *err);
/* The same, for an answer that is read piece by piece: client_read follows. */
int remote_begin(struct remote *remote, const struct client_request *request,
	struct client_response *response, struct error *err);
/* The same for a GET. headers: as those of client_request, or NULL. */
int remote_begin_get(struct remote *remote, const char *path, const char *accept,
	const char *headers, struct client_response *response, struct error *err);
/* PUTs `size` bytes of a file, from where it stands. */
int remote_send_file(
	struct remote *remote, const char *path, int fd, uint64_t size, struct error *err);
/* GETs what is written to a file, which is then set to its beginning; `what`: of messages, "the
 * changes to 'x'". */
int remote_receive_file(
	struct remote *remote, const char *path, int fd, const char *what, struct error *err);
/* An answer was cut off: asks again, by `begin`, for ten seconds, in which a daemon that restarts
 * serves again. One that was stopped is not started for this. ERR_UNAVAILABLE: it doesn't come
 * back; other errors are begin's. */
typedef int remote_begin_fn(void *ctx, struct error *err);
int remote_reopen(struct remote *remote, remote_begin_fn *begin, void *ctx, struct error *err);

/* The events of the daemon, by a connection of its own beside that of other calls. */
struct remote_events {
	struct remote remote;
	struct client_response response;
	struct sse sse; /* the event that came */
	char last[32];	/* the id of the last event, behind which it begins; or "" */
	const char *path;
};
/* of: the daemon. remote_events_done follows. */
void remote_events_init(struct remote_events *events, const struct remote *of, const char *path);
/* Asks for the events behind the last one: a remote_begin_fn, whose ctx are the events. */
int remote_events_begin(void *ctx, struct error *err);
/* As client_next_event. */
int remote_events_next(struct remote_events *events, struct error *err);
void remote_events_done(struct remote_events *events);

/* "/v1/workspaces/NAME" and more of it. */
const char *remote_workspace_path(struct remote *remote, const char *name, const char *more);
const char *remote_exec_path(struct remote *remote, const char *id, const char *more);
/* One query value, escaped. */
const char *remote_escape(struct remote *remote, const char *text);

/* Calls fn for each item of a list that comes in pages; `path` has no limit nor cursor in its
 * query.
 */
int remote_each(struct remote *remote, const char *path,
	void (*fn)(void *ctx, const struct json_value *item), void *ctx, struct error *err);
/* Prints the answer as it came (json). */
void remote_print_answer(const struct remote_answer *answer, struct buf *out);

/* What a result object, or an exec that has ended, says of its end, but `truncated`. ERR_CORRUPT:
 * no exit code, or an unknown reason. */
int remote_read_result(const struct json_value *value, struct result *result, struct error *err);

/* -e: "K=V", or "K" that is set here, as members of the JSON object `env`; null for the names that
 * are removed (NULL: none). Nothing when there are none. ERR_NOT_FOUND, ERR_INVALID. */
int remote_print_env(struct json *j, const text_list *env, const text_list *removed,
	struct arena *arena, struct error *err);
/* --label K=V …, the same under `labels`; null for those that are to be removed. */
int remote_print_labels(struct json *j, const text_list *labels, const text_list *removed,
	struct arena *arena, struct error *err);
