/* process.h -- builds as processes of their own: carrel-build for a command, which waits for it,
 * and `carrel env build` for the launcher, which serves others meanwhile. */
#pragma once
#include <sys/resource.h>
#include "base/buf.h"
#include "base/error.h"

#define BUILD_PROGRAM "carrel-build"

/* Finds it beside this executable, else on PATH. */
int build_find_program(char out[PATH_MAX], struct error *err);
/* Executes carrel-build in place of this process. Returns only
 * with an error. */
int build_execute(char *const argv[], struct error *err);
/* Runs it to its end; `said` (NULL: our own stdout) gets what it prints. SIGINT, SIGTERM and SIGHUP
 * are passed on to it: it ends, and reports that. */
int build_run(char *const argv[], struct buf *said, int *exit_code, struct error *err);

enum build_kind {
	BUILD_NEW,    /* `carrel env build` */
	BUILD_VERIFY, /* `carrel env verify`: package_id is the name of an environment, and there
		       * are no options */
	BUILD_REPAIR, /* the same with --repair */
	BUILD_REGISTRIES, /* `carrel env registries`: package_id is "" */
};
struct build_order { /* from a client of the daemon */
	enum build_kind kind;
	const char *carrel, *home; /* the program, $CARREL_HOME */
	const char *package_id;
	const char *python; /* a version, or "" */
	const char *const *options;
	size_t option_count;
	struct rlimit fds; /* that it may have open */
	int streams[3];	   /* stdin: requirements, or /dev/null */
	int egress;	   /* service socket of the egress role */
};
/* Starts it, in a process group of its own, which is ended (SIGTERM) with this process. ERR_DENIED,
 * ERR_INVALID: what was ordered is not allowed. */
int build_start_ordered(const struct build_order *order, pid_t *pid, struct error *err);
/* In carrel-build: the service socket that it was started with, or -1. Once. */
int build_take_egress(void);
