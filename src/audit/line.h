/* line.h -- one line of the audit log: a JSON object that is linked to the line before it. Pure.
 *	{"seq":7,"time":"…","type":"…",…,"prev":"<hash of line 6>","hash":"<hash>"}
 * 1. `hash` is the SHA-256, in hex, of the bytes of the line before `,"hash":`. It covers `prev`,
 * so that no line can be changed, removed, added or moved without a change to all that follow.
 * 2. `seq` counts from 1 without a gap. `prev` of line 1 is 64 zeros.
 * 3. The members before `data` are printed in the order of audit_body_begin. */
#pragma once
#include "base/buf.h"
#include "base/hash.h"
#include "base/str.h"
#include "format/text/json.h"

#define AUDIT_HASH_LEN (2 * SHA256_LEN)
#define AUDIT_BODY_MAX ((size_t)256 << 10)
/* With its newline. Redaction makes a body longer by less than three times. */
#define AUDIT_LINE_MAX (4 * AUDIT_BODY_MAX)

struct audit_link { /* the last line so far; seq 0: none */
	uint64_t seq;
	char hash[AUDIT_HASH_LEN + 1];
};
void audit_link_init(struct audit_link *link); /* before line 1 */

/* What is known of a record before it is a line. NULL: null. */
struct audit_body {
	int64_t time_ms;
	const char *type, *principal, *workspace, *workspace_name, *request_id, *door;
	const char *address; /* of TCP, from which it was asked; NULL: the member is left out */
};
/* Begins an object whose member `data` is open; audit_body_end closes both. */
void audit_body_begin(struct json *j, const struct audit_body *body);
void audit_body_end(struct json *j);

/* Appends the line of a body (an object, not empty), with its newline, and moves *last to it. */
void audit_line_print(struct audit_link *last, struct str body, struct buf *out);

struct audit_line {
	struct audit_link link; /* as the line has them */
	struct str prev;
	bool is_hash_right;
};
/* A line without its newline. false: not of this shape. */
bool audit_line_read(struct str text, struct audit_line *line);
/* Its time, as text, and its type; empty when they are missing. */
struct str audit_line_time(struct str text);
struct str audit_line_type(struct str text);
