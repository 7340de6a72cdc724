/* diagnose.h -- from what was found on a host to what it means: the pure half of `carrel doctor`.
 * 1. No system call: texts of files, results of probes and versions in, lines out. The same facts
 * give the same lines.
 * 2. A cause is only named when a fact shows it; a remedy is text to type, or a setting to make,
 * that ends that cause. */
#pragma once
#include "base/arena.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "linux/cgroup.h"
#include "linux/disk_quota.h"
#include "linux/probe.h"
#include "sandbox/plan/plan.h"

#define FACTS_NAMESPACES 6 /* those besides user: mount pid net ipc uts cgroup */
#define FACTS_PROGRAMS 9
extern const char *const facts_namespace_names[FACTS_NAMESPACES];
extern const char *const facts_program_names[FACTS_PROGRAMS];

struct facts_program {
	bool is_there;
	bool is_own;	     /* of uv: not on PATH, but fetched into carrel's home */
	const char *version; /* "3.11.2"; NULL: it didn't say within its time */
};

struct facts {
	unsigned uid;
	const char *exe;     /* path of this carrel */
	const char *release; /* uname -r */
	const char *home;    /* $CARREL_HOME or its default */

	/* Files as they were read; NULL: not there, or not readable. */
	const char *status;			  /* /proc/self/status */
	const char *mountinfo, *cgroup, *uid_map; /* of /proc/self */
	const char *label; /* /proc/self/attr/current: AppArmor's or SELinux's name for us */
	const char *apparmor_restrict; /* kernel.apparmor_restrict_unprivileged_userns */
	const char *userns_clone;      /* kernel.unprivileged_userns_clone */
	const char *max_namespaces[1 + FACTS_NAMESPACES]; /* user.max_user_namespaces, then the six
							     others */
	const char *memfd_noexec;			  /* vm.memfd_noexec */
	const char *lsm;				  /* /sys/kernel/security/lsm */
	bool has_dockerenv, has_podmanenv, has_kubernetes_env, has_systemd, has_systemd_user;

	struct probe user_namespace, namespaces[FACTS_NAMESPACES], fresh_proc, mount_api,
		tmpfs_xattr;
	bool landlock_writes; /* system.landlock of config.yaml */
	struct probe overlay, home_overlay, home_idmap, clone3, memfd_exec, seccomp, landlock;
	int overlay_lowers; /* number of layers that lowerdir+ accepted; 0: lowerdir+ isn't
			       supported */
	int landlock_abi;
	struct probe home_dir; /* a trial directory on the home's file system */
	enum quota_mechanism quota;
	const char *quota_why;
	struct cgroup_host cgroup_host;
	struct facts_program programs[FACTS_PROGRAMS];

	/* `carrel run -- /bin/true` */
	int run_exit; /* -1: it couldn't be started, or took too long */
	uint64_t run_ms;
	const char *run_error, *run_hint; /* the lines it wrote, or NULL */
};

enum check_status { CHECK_OK, CHECK_WARN, CHECK_FAIL, CHECK_STATUS_COUNT };
struct check {
	const char *group, *name;
	enum check_status status;
	const char *detail;	    /* one line */
	const char *cause, *remedy; /* NULL: none; a remedy may be several lines */
};
typedef VEC(struct check) check_list;

const char *check_status_name(enum check_status status); /* "ok" */
/* Appends the lines, in the order to print them; texts live in the arena or are constants. The last
 * one is the decisive one, "carrel run". */
void diagnose(const struct facts *facts, struct arena *arena, check_list *checks);

/* Finds the facts out: reads files, tries things in children, runs programs. Changes nothing on the
 * host; a trial directory beside the home is removed again. */
void facts_collect(struct facts *facts, struct arena *arena);
/* The version in the first line of what a program says about itself ("git version 2.39.5" →
 * "2.39.5"); NULL: none. Pure. */
const char *facts_version(const char *text, struct arena *arena);

/* -- `carrel doctor -- PROGRAM`: which paths of the host a program looks for in vain in a sandbox
 * --
 */

/* What has to be shown so that `path` (absolute, plain; there on the host) is there in a sandbox of
 * `plan`, too: itself, or the first directory above it that isn't shown, but no more than a name in
 * /etc, /opt, /srv or a directory of /var. NULL: it is shown. Pure. */
const char *missed_entry(const struct plan *plan, const char *path, struct arena *arena);

/* Runs command->argv in a sandbox as `carrel run` does, its output on stderr, and prints what it
 * missed. 0, whatever the program's own exit code is. */
int missed_find(struct command *command, struct error *err);
