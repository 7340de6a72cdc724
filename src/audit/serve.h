/* serve.h -- the process that writes the audit log, and what passes between it and core over a
 * stream socket: records to it, reports back. Both ends are one program: no versions, no byte
 * order.
 * 1. It writes what has come, reports it, syncs it and signs the head; meanwhile more comes: that
 * is the next group. Groups begin at least AUDIT_GROUP_MS apart.
 * 2. A record that was sent is written although the sender is gone: the process ends when it has
 * read to the end of the stream and written all.
 * 3. Records that can't be written are kept and tried again (`drops` false; nothing more is read
 * meanwhile), or counted (`drops`). */
#pragma once
#include "audit/files.h"

#define AUDIT_GROUP_MS 5

/* Before each record, a JSON object as audit_body_begin prints it. */
struct audit_message {
	uint32_t len;
	uint32_t reserved; /* 0 */
	uint64_t number;   /* counts up; the seq of its line, unless records were dropped before */
};
struct audit_report {
	uint64_t taken;	  /* number of the last record that was written or dropped; 0: none yet */
	uint64_t next;	  /* seq of the next line */
	uint64_t dropped; /* records, by this process */
	uint64_t pruned;  /* seq of the last line that was removed with its file */
	uint64_t free_bytes;
	int32_t sys_errno; /* why nothing more can be written than is reserved; 0: it can */
	uint32_t is_first; /* `found` is set: the log was opened */
	struct audit_found found;
	char error[200]; /* with sys_errno: what failed */
};
/* Serves core until it closes its end. dir: <home>/audit. */
int audit_serve(
	int socket, int dir, const struct audit_options *options, bool drops, struct error *err);
