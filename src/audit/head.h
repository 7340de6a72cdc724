/* head.h -- what is signed of the audit log: its last line, and up to where lines were pruned. The
 * signature is HMAC-SHA256 with the key of the log (`audit/key`, mode 0600).
 * It proves, to a reader who has the key, that a process with the key has written the lines up to
 * `last`. It proves nothing against someone who can read the key: the owner of the home, and root.
 * For them, keep `seq:hash` of a head somewhere else, and compare (audit_verify, `against`). */
#pragma once
#include "audit/line.h"
#include "base/error.h"

#define AUDIT_NAME_LEN 26   /* 20 digits and ".jsonl" */
#define AUDIT_HEAD_SIZE 512 /* of the file: one sector, replaced by one write */
#define AUDIT_KEY_LEN 32

struct audit_key {
	unsigned char bytes[AUDIT_KEY_LEN];
	bool is_there;
};
/* Reads `key` in dir. is_made: makes one when there is none; *is_new: that was done. Without it a
 * missing key is no error, but is_there is false. */
int audit_key_open(int dir, bool is_made, struct audit_key *key, bool *is_new, struct error *err);

struct audit_head {
	struct audit_link last;
	char file[AUDIT_NAME_LEN + 1]; /* that has it; "": no line yet */
	uint64_t offset;	       /* where the line ends in it */
	struct audit_link pruned;      /* the last line of the files that were removed */
	int64_t time_ms;
};
enum audit_head_state {
	HEAD_MISSING,
	HEAD_INVALID,	/* not a head, or not signed by this key */
	HEAD_UNCHECKED, /* without a key to check it with */
	HEAD_SIGNED,
};
/* AUDIT_HEAD_SIZE bytes: a JSON object, blanks, a newline. */
void audit_head_print(const struct audit_head *head, const struct audit_key *key, struct buf *out);
enum audit_head_state audit_head_read(
	struct str text, const struct audit_key *key, struct audit_head *head);
/* Of the file `head` in dir. *text: as it lies there, in `out` of AUDIT_HEAD_SIZE + 1 bytes. */
enum audit_head_state audit_head_load(int dir, const struct audit_key *key, struct audit_head *head,
	char out[AUDIT_HEAD_SIZE + 1]);

/* "00000000000000000001.jsonl": the file whose first line has that seq. */
void audit_file_name(uint64_t first, char out[AUDIT_NAME_LEN + 1]);
bool audit_file_first(const char *name, uint64_t *first); /* false: not such a name */
