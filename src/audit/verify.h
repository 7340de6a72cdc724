/* verify.h -- whether the audit log is as it was written. Reads the files of a home, with or
 * without a daemon that writes there meanwhile.
 * 1. A finding is something that no crash does: a line that was changed, is missing, was moved or
 * added, a tail that was cut, a file that was removed, a head that isn't signed.
 * 2. A note is what is explained: a line torn by a crash, lines that were not signed yet, lines
 * that were pruned, records that the daemon itself has made of damage. */
#pragma once
#include "audit/head.h"
#include "base/vec.h"

enum audit_finding_kind {
	FINDING_CHANGED,   /* the hash in a line does not match its content */
	FINDING_UNLINKED,  /* `prev` is not the hash of the line before */
	FINDING_GAP,	   /* lines are missing */
	FINDING_FILE,	   /* a file is missing, with its lines */
	FINDING_CUT,	   /* the lines end before the signed head */
	FINDING_REORDERED, /* a line is not where it was written, or there twice */
	FINDING_MALFORMED, /* not a line of the log */
	FINDING_HEAD,	   /* the head is missing, not signed, or names another line */
	FINDING_AGAINST,   /* the line that the caller has kept the hash of is another */
	NOTE_TORN,
	NOTE_UNSIGNED,
	NOTE_PRUNED,
	NOTE_RECORDED, /* damage that the daemon has found and recorded */
	FINDING_KIND_COUNT
};
extern const char *const audit_finding_names[FINDING_KIND_COUNT];
static inline bool audit_finding_is_note(enum audit_finding_kind kind)
{
	return kind >= NOTE_TORN;
}

struct audit_finding {
	enum audit_finding_kind kind;
	char file[AUDIT_NAME_LEN + 1]; /* or "" */
	uint64_t line;		       /* line number in the file, from 1; 0: none */
	uint64_t seq, last_seq;	       /* lines it is about; 0: unknown */
	const char *text;
};
struct audit_verified {
	VEC(struct audit_finding) findings;
	size_t problem_count; /* findings that are not notes */
	uint64_t lines, files, first_seq, last_seq;
	struct audit_head head;
	enum audit_head_state head_state;
};
/* dir: <home>/audit. against: a line that was kept elsewhere, or NULL. Findings live in the arena;
 * at most 1,000. -1: the files can't be read. */
int audit_verify(int dir, const struct audit_link *against, struct arena *arena,
	struct audit_verified *verified, struct error *err);
