/* agents.h -- file agents: processes in a workspace's sandbox that do the work on its files
 * (agent/protocol.h). Private to files*.c, archive.c and the socket to init.
 * 1. They are started by init when there is something to do, a few a sandbox, serve one request
 * each at a time, and are ended when they have been idle for a while. They don't count as something
 * that runs in the workspace.
 * 2. Nothing they say is believed: packets are whole and bounded, a descriptor is a regular file on
 * a kind of file system that is expected.
 * 3. One that ends, is stopped, or says nothing for too long is ended. Its request goes to another
 * one, once, where that can do no harm, else it is ERR_UNAVAILABLE. No request waits for ever. */
#pragma once
#include "agent/protocol.h"
#include "core/core.h"
#include "init/protocol.h"

struct agent_call;
struct agent_answer {
	const struct agent_ask *ask;
	struct agent_reply reply; /* the last one; its count is that of all infos */
	struct str infos;	  /* valid until the callback returns */
	int fd;			  /* of OPEN and CREATE, yours; else -1 */
};
/* Takes the next info of answer->infos off *rest, with its two texts. false: there is no whole
 * one. What it says is the workspace's, and not checked. */
bool agent_take_info(struct str *rest, struct agent_info *info, struct str *name, struct str *link);
typedef void agent_answer_fn(void *ctx, const struct agent_answer *answer, const struct error *err);
struct agent_ask {
	enum agent_verb verb;
	const char *path, *text; /* copied; text NULL: none */
	unsigned flags, mode;
	uint64_t limit; /* of UNPACK and APPLY: set when it is sent */
	int fd; /* -1: none. Of PACK, UNPACK and APPLY taken; else the caller's, open until the end
		 */
	void (*begun)(void *ctx); /* PACK, UNPACK: the agent has begun */
};
/* Wakes the sandbox where it has to. done is called once, from the loop. Holds w until then. */
struct agent_call *agent_ask(
	struct core_workspace *w, const struct agent_ask *ask, agent_answer_fn *done, void *ctx);
/* One that can't be made: done gets the error at the next turn of the loop. Holds w until then. */
struct agent_call *agent_refuse(
	struct core_workspace *w, const struct error *err, agent_answer_fn *done, void *ctx);
/* Cancels a call: it is not sent if it wasn't yet; a running UNPACK moves nothing into place. done
 * is called as usual. */
void agent_cancel(struct agent_call *call);

/* ---- for init_connection.c, execs.c, lifetimes.c ---- */
/* An id that init gives back is one of these. */
#define AGENT_ID (1ull << 63)
void agents_receive(struct core_workspace *w, const struct init_reply *reply);
/* Sends a spawn that had to wait for room. */
struct agent;
int agent_send_spawn(struct agent *agent, struct error *err);
void agent_spawn_failed(struct agent *agent, const struct error *err);
/* The sandbox is gone, and they with it. */
void agents_gone(struct core_workspace *w);
/* How many of them have this pid inside; 0: one that init hasn't told yet. */
unsigned agents_count(const struct core_workspace *w, uint64_t pid);
/* A request waits or is worked on. */
bool agents_are_busy(const struct core_workspace *w);
/* Requests that wait for the sandbox to come up: 0 or 1. */
unsigned agents_waking(const struct core_workspace *w);
void agents_free(struct core_workspace *w); /* without calling any callback */
int agents_open(struct core *core, struct error *err);
void agents_done(struct core *core);

/* private to agents.c: whether that descriptor, which came from inside, is one that was asked for:
 * of a regular file with the right mode, on a file system that no process can stand behind. */
int agent_check_fd(const struct agent_ask *ask, int fd, struct error *err);
