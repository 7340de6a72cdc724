/* file_servers.h -- file servers: processes in a workspace's sandbox that do the work on its files
 * (sandbox/files/protocol.h). Private to files*.c, tree_archive.c and the socket to init.
 * 1. They are started by init when there is something to do, a few a sandbox, serve one request
 * each at a time, and are ended when they have been idle for a while. They don't count as something
 * that runs in the workspace.
 * 2. Nothing they say is believed: packets are whole and bounded, a descriptor is a regular file on
 * a kind of file system that is expected.
 * 3. One that ends, is stopped, or says nothing for too long is ended. Its request goes to another
 * one, once, where that can do no harm, else it is ERR_UNAVAILABLE. No request waits for ever. */
#pragma once
#include "core/core.h"
#include "sandbox/files/protocol.h"
#include "sandbox/init/protocol.h"

struct file_call;
struct file_answer {
	const struct file_ask *ask;
	struct file_reply reply; /* the last one; its count is that of all infos */
	struct str infos;	 /* valid until the callback returns */
	int fd;			 /* of OPEN and CREATE, yours; else -1 */
};
/* Takes the next info of answer->infos off *rest, with its two texts. false: there is no whole
 * one. What it says is the workspace's, and not checked. */
bool file_take_entry(struct str *rest, struct file_entry *info, struct str *name, struct str *link);
typedef void file_answer_fn(void *ctx, const struct file_answer *answer, const struct error *err);
struct file_ask {
	enum file_verb verb;
	const char *path, *text; /* copied; text NULL: none */
	unsigned flags, mode;
	uint64_t limit; /* of UNPACK and APPLY: set when it is sent */
	int fd; /* -1: none. Of PACK, UNPACK and APPLY taken; else the caller's, open until the end
		 */
	void (*begun)(void *ctx); /* PACK, UNPACK: the server has begun */
};
/* Wakes the sandbox where it has to. done is called once, from the loop. Holds w until then. */
struct file_call *file_ask(
	struct core_workspace *w, const struct file_ask *ask, file_answer_fn *done, void *ctx);
/* One that can't be made: done gets the error at the next turn of the loop. Holds w until then. */
struct file_call *file_refuse(
	struct core_workspace *w, const struct error *err, file_answer_fn *done, void *ctx);
/* Cancels a call: it is not sent if it wasn't yet; a running UNPACK moves nothing into place. done
 * is called as usual. */
void file_cancel(struct file_call *call);

/* ---- for init_connection.c, execs.c, lifetimes.c ---- */
/* The bit that marks an id of init's messages as that of a file server. */
#define FILE_SERVER_ID (1ull << 63)
void file_servers_receive(struct core_workspace *w, const struct init_reply *reply);
/* Sends a spawn that had to wait for room. */
struct file_server;
int file_server_send_spawn(struct file_server *server, struct error *err);
void file_server_spawn_failed(struct file_server *server, const struct error *err);
/* The sandbox is gone, and they with it. */
void file_servers_gone(struct core_workspace *w);
/* Number of file servers with this pid inside the sandbox; 0: init hasn't reported the pid yet. */
unsigned file_servers_count(const struct core_workspace *w, uint64_t pid);
/* A request waits or is worked on. */
bool file_servers_are_busy(const struct core_workspace *w);
/* Requests that wait for the sandbox to come up: 0 or 1. */
unsigned file_servers_waking(const struct core_workspace *w);
void file_servers_attach(struct core_workspace *w); /* to a new one, with nothing in it */
void file_servers_free(struct core_workspace *w);   /* without calling any callback */
int file_servers_open(struct core *core, struct error *err);
void file_servers_done(struct core *core);

/* private to file_servers.c: whether that descriptor, which came from inside, is one that was asked
 * for: of a regular file with the right mode, on a file system that no process can stand behind. */
int file_check_fd(const struct file_ask *ask, int fd, struct error *err);
