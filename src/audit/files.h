/* files.h -- the files of the audit log as its one writer has them. In <home>/audit:
 *	00000000000000000001.jsonl …	lines (line.h); the name is the seq of the first one
 *	head, key			(head.h)
 *	lock				held (flock) by the writer
 * 1. Lines are appended, never changed. A file that has reached its size is followed by another;
 * the oldest ones are removed when all together are too large, and the head says up to where.
 * 2. A line that a crash has cut is left as it is: the next line follows on a line of its own, and
 * is a record `audit.recovered` that says how long the cut one is.
 * 3. What is missing when the log is opened stays missing visibly: numbers go on after the signed
 * head, never after an older line.
 * 4. Space for AUDIT_RESERVE_BYTES more is allocated ahead, so that a full disk leaves room for
 * records of removals. */
#pragma once
#include "audit/head.h"
#include "base/vec.h"

#define AUDIT_RESERVE_BYTES (256u << 10)

struct audit_options {
	uint64_t max_file_bytes, max_bytes;
};
/* What was found when the log was opened. */
struct audit_found {
	uint64_t torn_bytes;		   /* of a last line that a crash has cut; 0: it is whole */
	uint64_t unsigned_lines;	   /* behind the signed head */
	uint64_t missing_from, missing_to; /* seqs of lines that are gone; 0: none */
	char damage[160];		   /* what else isn't as it was left, or "" */
};
struct audit_files {
	int dir, file, head, lock; /* file -1: the next line begins one */
	struct audit_options options;
	struct audit_key key;
	struct audit_link last; /* line, written */
	struct audit_link pruned;
	char name[AUDIT_NAME_LEN + 1];
	uint64_t size, allocated; /* of file */
	bool is_torn;		  /* it ends within a line */
	bool has_unsynced_head;
	struct audit_found found;
};
/* Opens the log in `dir`, which stays the caller's, for writing. ERR_CONFLICT: another process has
 * it. audit_files_close follows in any case. */
int audit_files_open(
	struct audit_files *files, int dir, const struct audit_options *options, struct error *err);
void audit_files_close(struct audit_files *files);
/* Appends lines that were printed after files->last; *last is the last of them. Changes nothing
 * when it fails. */
int audit_files_append(struct audit_files *files, struct str lines, const struct audit_link *last,
	struct error *err);
/* Whether the reserve is there; -1 with errno's meaning in *err: only what is left of it can be
 * written. */
int audit_files_reserve(struct audit_files *files, size_t more, struct error *err);
/* Lines are on disk, then the head says so. */
int audit_files_sync(struct audit_files *files, struct error *err);
void audit_files_sync_head(struct audit_files *files);
/* The names of the log's files in dir, oldest first. */
struct arena;
int audit_files_list(int dir, struct arena *arena, text_list *names, struct error *err);
