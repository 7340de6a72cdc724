/* server.h -- the file server: see protocol.h. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "sandbox/files/protocol.h"

struct serve_job {
	struct file_request request;
	const char *path, *text; /* path "." for the directory it runs in; text or NULL */
	int fd;			 /* that came with the request, or -1 */
	int socket;
	struct arena arena;
	/* the answer */
	struct file_reply reply;
	int answer_fd; /* or -1: closed when it was sent */
	char *packet;  /* FILE_PACKET_MAX bytes; entries are at packet + sizeof reply */
	size_t len;    /* of the entries */
};

/* Serves `socket` until its end. */
void file_server_run(int socket);

/* ---- server.c ---- */
/* Appends an entry; sends a part when the packet is full. */
int serve_add_entry(struct serve_job *job, const char *name, const struct file_entry *info,
	const char *link, struct error *err);
/* Sends what there is as a part. */
int serve_send_part(struct serve_job *job, struct error *err);
/* Core has sent FILE_CANCEL, or is gone. */
bool serve_is_canceled(struct serve_job *job);

/* ---- verbs.c, archive.c, apply.c ---- */
typedef int serve_fn(struct serve_job *job, struct error *err);
serve_fn serve_stat, serve_list, serve_open, serve_create, serve_commit, serve_mkdir, serve_move,
	serve_remove, serve_pack, serve_unpack, serve_apply, serve_tidy, serve_verify;
/* Undoes what an APPLY has begun whose directory `name` is left in `above`; nothing for another
 * directory. */
int serve_undo_apply(int above, const char *name, struct error *err);
/* Makes the directory `name`, which an earlier server may have left. */
int serve_make_stage(int above, const char *name, struct error *err);

/* ---- verbs.c ---- */
/* Opens the path: a regular file or, when it may be, a directory. */
int serve_open_to_read(
	const struct serve_job *job, bool takes_directory, int *fd, struct error *err);
/* mkdir -p of `path`; `len` bytes of it. */
int serve_make_directories(const char *path, size_t len, struct error *err);
