/* launch.h -- the launcher: the only privileged process. Starts the roles (roles.c has the list),
 * starts and ends sandboxes for core, runs `carrel env build` for core; parses nothing but
 * sandbox/plan/launch.h.
 * 1. It keeps no descriptor for a sandbox, only its pid (a child's pid is not reused before it is
 * reaped), the number of its control group and its uid.
 * 2. A malformed message from core ends core. Core is started again, with pauses that grow from 0.1
 * s to 2 s; sandboxes go on meanwhile.
 * 3. When it dies, the kernel ends every role and every sandbox (PDEATHSIG); the next start sweeps
 * what is left (cgroups, run/sb).
 * 4. SIGTERM, SIGINT, and SIGHUP of a terminal: core gets SIGTERM, drains and exits 0; then
 * sandboxes and builds that still run are ended; exit 0. SIGHUP of a process: a reload. The program
 * at `self` is checked; core drains and exits, and leaves what runs; then the launcher executes
 * that program (launch/handover.h). When the check fails nothing has changed.
 * 5. Core, the writer and the audit role are carreld, started (proc/role.h) with the role's name as
 * argv[0] ("carreld" is core) and its part of model/settings/role_settings.h on stdin; its log is
 * stderr, its root holds the home. A core that ends before it has ever served ends the launcher;
 * later ones are started again. Egress is described in egress/egress.h.
 * 6. The writer lives at most as long as core, which asks for another one when it has ended; a core
 * is started when no writer of the one before is left. */
#pragma once
#include "base/error.h"
#include "base/log.h"
#include "linux/home.h"
#include "model/settings/config.h"

enum launch_role_fd {		  /* of core; the writer has its socket at 3 */
	LAUNCH_ROLE_LISTENER = 3, /* of the API */
	LAUNCH_ROLE_CHANNEL,	  /* sandbox/plan/launch.h */
	LAUNCH_ROLE_READY,	  /* a pipe: one byte when it serves, then to be closed */
	LAUNCH_ROLE_WRITER,	  /* a socket to the process that writes the database */
	LAUNCH_ROLE_AUDIT,	  /* and to the one that writes the audit log, if it is on */
	/* The listeners besides the first follow; the settings have the numbers of all of them. */
};

#define LAUNCH_LISTENERS_MAX 16
struct launch_listener { /* of the API: listening socket */
	int fd;
	const char *path; /* and what a process that this one becomes by an execve needs */
	int dir;	  /* -1: none */
	bool is_own;
};

struct launch_tls { /* absolute paths of PEM files; certificate NULL: no TLS */
	const char *certificate, *key;
	const char *client_ca; /* or NULL: clients need no certificate */
};
/* Whether they can be read. Core judges what is in them. */
int launch_tls_check(const struct launch_tls *tls, struct error *err);

struct launch_options {
	const struct home *home;
	struct launch_listener listener;    /* the first: always a unix socket */
	const struct launch_listener *also; /* the others */
	size_t also_count;
	struct launch_tls tls;		 /* of the TCP listeners */
	const struct handover *handover; /* of launch/handover.h, or NULL: a new launcher */
	int lock;			 /* of the home: held as long as we live */
	const char *carreld;		 /* path of the program */
	const char *self;		 /* of carrel, for `env build` */
	int ready;			 /* written one byte when core serves, then closed; or -1 */
	int notify; /* connected socket of a service manager: "READY=1" is sent there when core
		     * serves, "STOPPING=1" at the first signal to end; or -1 */
	uint64_t release_after_ms;
	uint64_t captured_bytes;     /* of all execs together that core keeps; 0: core's default */
	const struct config *config; /* its section `system`, or NULL */
	struct log log;
};
/* Serves until it is told to stop. Returns the exit code. */
int launch_serve(const struct launch_options *options);
