/* agent.h -- the file agent: see protocol.h. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "agent/protocol.h"
#include "base/arena.h"
#include "base/error.h"

struct agent_job {
	struct agent_request request;
	const char *path, *text; /* path "." for the directory it runs in; text or NULL */
	int fd;			 /* that came with the request, or -1 */
	int socket;
	struct arena arena;
	/* the answer */
	struct agent_reply reply;
	int answer_fd; /* or -1: closed when it was sent */
	char *packet;  /* AGENT_PACKET_MAX bytes; infos are at packet + sizeof reply */
	size_t len;    /* of the infos */
};

/* Serves `socket` until its end. */
void agent_serve(int socket);

/* ---- agent.c ---- */
/* Appends an info; sends a part when the packet is full. */
int agent_add_info(struct agent_job *job, const char *name, const struct agent_info *info,
	const char *link, struct error *err);
/* Sends what there is as a part. */
int agent_send_part(struct agent_job *job, struct error *err);
/* Core has sent AGENT_CANCEL, or is gone. */
bool agent_is_canceled(struct agent_job *job);

/* ---- verbs.c, archive.c, apply.c ---- */
typedef int agent_fn(struct agent_job *job, struct error *err);
agent_fn agent_stat, agent_list, agent_open, agent_create, agent_commit, agent_mkdir, agent_move,
	agent_remove, agent_pack, agent_unpack, agent_apply, agent_tidy, agent_verify;
/* Undoes what an APPLY has begun whose directory `name` is left in `above`; nothing for another
 * directory. */
int agent_undo_apply(int above, const char *name, struct error *err);
/* Makes the directory `name`, which an earlier agent may have left. */
int agent_make_stage(int above, const char *name, struct error *err);

/* ---- verbs.c ---- */
/* Opens the path: a regular file or, when it may be, a directory. */
int agent_open_to_read(
	const struct agent_job *job, bool takes_directory, int *fd, struct error *err);
/* mkdir -p of `path`; `len` bytes of it. */
int agent_make_directories(const char *path, size_t len, struct error *err);
