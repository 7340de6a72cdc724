/* host.h -- finds out what plan_build must know of this host, and of what the user named. */
#pragma once
#include "linux/cgroup.h"
#include "model/settings/config.h"
#include "sandbox/plan/plan.h"

struct host {
	struct plan_facts facts;
	struct cgroup_host cgroups;
	bool is_weak; /* set before host_look: root needs another uid, and no CAP_SYS_ADMIN */
	int slot;     /* holds the outside uid, or -1 */
};
void host_init(struct host *host);
void host_done(struct host *host);
/* Fills host->facts. `home`: for the uid slot, when root; NULL: none is taken (the first one is
 * shown). `dir`: a --dir whose protected names are looked for, or NULL. */
int host_look(struct host *host, const char *home, const char *dir, struct arena *arena,
	struct error *err);
/* Adds what the operator shows (system.show) to the facts of host_look: it must exist, be a file or
 * a directory, and have nothing to do with `home`, carrel's own. ERR_NOT_FOUND, ERR_INVALID. */
int host_show(struct host *host, const text_list *show, const char *home, struct arena *arena,
	struct error *err);
/* Tasks of the user that sandboxes run as: what RLIMIT_NPROC counts. */
uint64_t host_count_tasks(const struct host *host);
/* The protected names that are in directory `path` now and weren't when host_look looked: what
 * doesn't exist can't be protected, but it can be said. */
int host_find_new(const struct host *host, const char *path, struct arena *arena, text_list *names,
	struct error *err);
/* Those of plan_protected_names that are in the directory `path`. */
int host_look_at_protected(
	const char *path, struct arena *arena, plan_host_paths *found, struct error *err);
/* Makes bind->source absolute and real, and fills its kind and owner. ERR_NOT_FOUND, ERR_DENIED,
 * ERR_INVALID. */
int host_look_at_source(
	struct plan_bind *bind, const char *option, struct arena *arena, struct error *err);
