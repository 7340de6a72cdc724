/* read.h -- lines of the audit log, read while it is written. Nothing is checked here: verify.h. */
#pragma once
#include "audit/line.h"
#include "base/error.h"

struct audit_filter {
	int64_t since_ms, until_ms; /* Unix time; 0: none */
	const char *workspace;	    /* id or name; NULL: any */
	const char *type;	    /* "exec.start", or "exec" for all of them; NULL: any */
	uint64_t after;		    /* seq: only later ones */
};
struct audit_reader;
/* "2026-11-15", "2026-11-15T04:50:52Z" (or with milliseconds), or a duration before now_ms: "1h".
 */
int audit_time_parse(const char *text, int64_t now_ms, int64_t *unix_ms, struct error *err);
/* dir: <home>/audit, which is opened again. The texts of the filter are copied. */
int audit_reader_open(int dir, const struct audit_filter *filter, struct audit_reader **reader,
	struct error *err);
void audit_reader_close(struct audit_reader *reader); /* NULL: nothing */
/* Appends lines, with their newlines, and looks at a bounded number of bytes for that. 1: there
 * may be more; 0: that is the end for now. The seq of a line is in its text. */
int audit_reader_next(struct audit_reader *reader, struct buf *out, struct error *err);
