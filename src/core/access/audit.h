/* audit.h -- the audit log: who did what, and what was refused. A process of its own
 * (audit/serve.h) writes it; core hands records over and never waits for the disk.
 * 1. A record is handed over before the effect of its verb is acknowledged to the client. It is
 * kept here until that process has written it, and sent again when the process had to be started
 * anew: no record is lost or written twice when core or that process is killed.
 * 2. While nothing can be written (a full disk) audited verbs are refused (audit_check), but those
 * that free space or end something (VERB_FREES); or, as configured, records are dropped and
 * counted.
 * 3. Secrets in the members are replaced by that process (audit/redact.h). */
#pragma once
#include "audit/read.h"
#include "base/error.h"
#include "core/access/access.h"
#include "format/text/json.h"

/* Records what happened: `type` is "noun.verb"; w may be NULL; print (or NULL) adds the members of
 * its `data`, without secrets of its own making. Does nothing when the log is off. */
void audit_write(const struct core *core, const struct request *request, const char *type,
	const struct core_workspace *w, void (*print)(struct json *j, const void *ctx),
	const void *ctx) __attribute__((nonnull(1, 2, 3)));
/* ERR_UNAVAILABLE: nothing may be done that is recorded. */
int audit_check(const struct core *core, struct error *err);

/* ---- reading ---- */
/* Opens a reader of the lines that `filter` lets through, up to the last one that was handed over
 * before: `ready` is called when that one can be read. audit_reader_close, and audit_read_end
 * before it. */
struct audit_reading {
	void (*ready)(void *ctx); /* also when more has come, after audit_read_follow */
	void *ctx;
	struct audit_reader *reader;
	/* private */
	const struct core *core;
	uint64_t awaited;
	bool is_ready, follows;
	struct audit_reading *next;
};
core_verb int audit_read_begin(const struct request *request, struct core *core,
	const struct audit_filter *filter, struct audit_reading *reading, struct error *err);
bool audit_read_is_ready(struct audit_reading *reading); /* now: `ready` is not called first */
void audit_read_follow(struct audit_reading *reading);
void audit_read_end(struct audit_reading *reading);
struct audit_numbers {
	uint64_t records, dropped;
	bool is_failing;
};
struct audit_numbers audit_count(const struct core *core);
