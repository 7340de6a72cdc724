/* audit_records.h -- the audit log for the other files of this room: its life, and one function
 * for each kind of record that has members. All do nothing when the log is off. */
#pragma once
#include <netinet/in.h>
#include "base/id.h"
#include "core/access/audit.h"

/* socket: to a process that does audit_serve; the log's then. drops: on_full. audit_close follows
 * in any case. */
int audit_open(struct core *core, int socket, bool drops, struct error *err);
void audit_close(struct core *core); /* hands over what is queued, for five seconds at most */
/* A record that is left out for want of space. It is counted. */
void audit_leave_out(const struct core *core);

/* The caller of a verb whose end is recorded later. */
struct audit_actor {
	char principal[PRINCIPAL_NAME_SIZE], request_id[ID_LEN + 1];
	char address[INET6_ADDRSTRLEN]; /* "": not by TCP */
	const char *door;		/* its name, a literal */
};
struct audit_actor audit_actor(const struct request *request);
void audit_write_as(const struct core *core, const struct audit_actor *actor, const char *type,
	const struct core_workspace *w, void (*print)(struct json *j, const void *ctx),
	const void *ctx);

/* An event of the journal, about a workspace that may be gone ("": none). */
void audit_write_event(const struct core *core, const char *type, const char *workspace,
	const char *name, void (*print)(struct json *j, const void *ctx), const void *ctx);

/* ---- audit_records.c ---- */
void audit_access(const struct core *core, const struct request *request, enum verb verb,
	const struct core_workspace *w, const struct error *refusal);
/* A policy has refused it, or asks for an approval: with the trail of the request. */
void audit_refusal(
	const struct request *request, const struct core_workspace *w, const struct error *err);
struct exec_record;
struct exec_spec;
struct audit_actor;
/* With the trail of the request, when a policy has judged it. *actor is who asked, for
 * audit_exec_end. */
void audit_exec_start(const struct request *request, const struct core_workspace *w,
	const struct exec_record *record, const struct exec_spec *spec, struct audit_actor *actor);
/* err: it did not start. An actor with an empty principal is unknown: an earlier core started it.
 */
void audit_exec_end(const struct core_workspace *w, const struct exec_record *record,
	const struct audit_actor *actor, const struct error *err);
struct audit_file {
	const char *type, *path, *to; /* to: where it was moved, or NULL */
	const char *what;	      /* "mkdir", "archive" …, or NULL */
	bool has_bytes;
	uint64_t bytes;
	const struct error *err; /* or NULL */
};
void audit_file(const struct core_workspace *w, const struct audit_actor *actor,
	const struct audit_file *file);
struct packages_wanted;
void audit_packages(const struct request *request, const struct core_workspace *w,
	const struct packages_wanted *wanted);
void audit_create(const struct request *request, const struct core_workspace *w);
/* A token was used for the first time, or (why) refused; uid: of the peer. */
void audit_login(const struct core *core, const struct access_from *from, const char *token,
	const char *why);
/* Core is ready; it has ended. */
void audit_daemon(const struct core *core, const char *type, const char *config_digest);
/* The life of workspaces, snapshots and templates, from the journal. */
void audit_event(
	void *ctx, const char *type, const char *workspace, const char *name, struct str json);
