/* plan.h -- everything one sandbox is, as plain data.
 * 1. plan_build is pure: options and facts in, a plan out. The code that carries it out (sandbox/
 * today, OCI runtimes later) decides nothing that isn't written here.
 * 2. A plan that plan_build returned has been checked: paths inside are absolute and normal,
 * parents come before children, nothing is mounted over /proc or /dev, every limit is in range. A
 * bind from below carrel's home has `beneath`: its owner may have replaced any name there by a
 * link.
 * 3. All memory belongs to the arena it was built in, or to the options and facts. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"
#include "model/network/network.h"
#include "model/nouns/limits.h"
#include "model/nouns/part.h"
#include "sandbox/plan/denials.h"

#define PLAN_UID 1000 /* inside, always */
#define PLAN_GID 1000
#define PLAN_WORKSPACE "/workspace"
#define PLAN_ROOT "/"
#define PLAN_ENV "/env"
#define PLAN_CACHE "/.cache"
#define PLAN_SYS "/sys"
#define PLAN_CGROUP PLAN_SYS "/fs/cgroup"
#define PLAN_ISOLATION_LANDLOCK "landlock" /* see sandbox/plan/weak.h */
#define PLAN_NO_SOCKETS "no-sockets"	   /* its filter of system calls */
#define PLAN_FORWARD_PORT 3128
#define PLAN_RESOLVER_PORT 53
/* A source below it is an object that the process that starts the sandbox has open. */
#define PLAN_DESCRIPTORS "/proc/self/fd/"

enum plan_limiter { LIMITER_CGROUP_V1, LIMITER_CGROUP_V2, LIMITER_WATCHDOG };
enum plan_path_kind { PATH_ABSENT, PATH_DIRECTORY, PATH_FILE, PATH_LINK };

struct plan_host_path { /* a system path that was found on the host */
	const char *path;
	enum plan_path_kind kind;
	const char *link;   /* PATH_LINK: where it leads */
	unsigned links;	    /* hard links; only for names in a --dir */
	const char *source; /* what is shown there, a path without links; NULL: `path` itself */
};
typedef VEC(struct plan_host_path) plan_host_paths;
/* STREAM_TERMINAL is one terminal for all streams that have it: a second one is STREAM_OTHER. */
enum plan_stream_kind { STREAM_PIPE, STREAM_TERMINAL, STREAM_NULL, STREAM_OTHER };
struct plan_facts {
	bool privileged; /* carried out by root: own outside uid, idmapped mounts */
	uint32_t outside_uid, outside_gid;
	int landlock_abi;
	bool landlock_writes; /* the operator's choice: Landlock judges no reading */
	enum plan_limiter limiter;
	plan_host_paths host_paths; /* of sandbox/plan/system.h, and of system.show */
	plan_host_paths protect;    /* of plan_protected_names, those found in --dir */
	enum plan_stream_kind streams[3];
	bool same_output; /* stdout and stderr lead to one place */
	unsigned umask;
	const char *term;      /* $TERM, or NULL */
	uint64_t memory_bytes; /* of the host; 0: unknown */
	unsigned cpus;	       /* that the host can have; */
	unsigned usable_cpus;  /* of them, those that the sandbox may run on */
	bool has_unified;      /* the cgroup2 hierarchy is in use: a process has a place in it */
};

struct plan_bind {
	const char *source;  /* absolute on the host */
	const char *beneath; /* NULL, or a name below source: opened following no link */
	const char *target;  /* absolute inside */
	bool read_only;
	bool is_environment;	       /* an environment needs it, no user named it */
	bool is_tool;		       /* its bin/ holds programs of the environment's own */
	enum plan_path_kind kind;      /* of the source: directory or file */
	uint32_t owner_uid, owner_gid; /* of the source */
};
/* The workspace, or an environment: layers below, and on top what the command changes. */
struct plan_tree {
	const char *target; /* where it is mounted */
	const char *again; /* and where else, below the workspace, unless that is a directory of the
			    * user's; NULL: nowhere */
	const char *const *variables; /* "K=V" that it sets, NULL-terminated; NULL: none */
	const char *base;	      /* directory of the host, below which layers and upper are
				       * opened following no link */
	const char *layers;	      /* the name there that holds the lowers */
	text_list lowers;	      /* names in it, topmost first; none: a plain directory */
	const char *upper; /* the name there of a directory with `upper` and `work`; without lowers:
			    * of the directory itself. NULL: a tmpfs, gone afterwards */
	uint32_t owner_uid, owner_gid; /* of all of them */
	size_t frozen;		       /* lowers on top that hold what commands wrote */
	const char *programs;	       /* the directory in it with programs; NULL: none */
	bool has_interpreter;	       /* python* there lead to its interpreter */
};
#define PLAN_LAYERS_THEMSELVES "." /* as the only lower: `layers` is the tree below */
typedef VEC(const struct plan_tree *) plan_trees;
struct plan_options {
	bool warm;	   /* it stays, and commands come later: no argv, no streams */
	char *const *argv; /* NULL-terminated, at least one unless warm */
	text_list env;	   /* "K=V" */
	const char *cwd;   /* -w, or NULL */
	VEC(struct plan_bind) binds;
	const struct plan_bind *dir;	   /* --dir, target unused; NULL: a tmpfs */
	const struct plan_tree *workspace; /* with layers, in place of dir; target unused */
	plan_trees environments;
	const struct plan_bind *cache;	    /* at /.cache; NULL: scratch */
	const struct plan_bind *stage;	    /* at /env, writable, in place of an environment;
					     * limits.disk_bytes is about it then */
	const struct plan_network *network; /* mode, forward, lists and ports; its listeners follow
					     * from them. NULL: none */
	const text_list *registries;	    /* as plan_network_env takes them, or NULL */
	plan_denials denials;
	bool writable_config;
	enum workspace_view view;
	bool judged;  /* by a policy: see sandbox/plan/programs.h */
	bool ptrace;  /* debuggers work inside */
	bool observe; /* the paths that its processes name are reported */
	/* Carrel's home: a bind of a directory above it doesn't show it, and a bind of something
	 * below it follows no link. NULL: unknown, only where nothing of the host is bound, or for
	 * a plain user. */
	const char *home;
	struct limits limits; /* 0: not given */
	bool captured;	      /* -o json */
	bool no_input;	      /* stdin is empty */
	bool tty, interactive;
};

enum plan_node_kind { NODE_DIRECTORY, NODE_LINK, NODE_FILE };
struct plan_node { /* made in the sandbox's own root */
	enum plan_node_kind kind;
	const char *path;
	const char *text; /* link target, or content */
	unsigned mode;
};
/* A generated file that shows the sandbox's limits where programs look for them: below PLAN_SYS, or
 * over an entry of /proc. Its text doesn't change while the sandbox runs. */
struct plan_view {
	const char *path, *text;
};
enum plan_mount_kind {
	MOUNT_BIND,    /* `source` of the host */
	MOUNT_SCRATCH, /* the directory `target` of the root tmpfs, made writable */
	MOUNT_TMPFS,   /* one of its own: size_bytes, inodes */
	MOUNT_PROC,
	MOUNT_DEVPTS,
	MOUNT_OVERLAY,	/* of `tree`, whose layers are at PLAN_LAYERS, its upper at `upper` */
	MOUNT_AGAIN,	/* what is mounted at `source`, a path inside, in another place */
	MOUNT_PACKAGES, /* of `tree` the layers that no command wrote, read-only; the lowest first
			 */
	MOUNT_VIEWS,	/* the views below `target`, over an empty cgroup2 where the host has one */
};
#define PLAN_LOWERS_MAX 500    /* the kernel takes no more */
#define PLAN_PROGRAMS_MAX 4096 /* names in PLAN_PROGRAMS */
/* Where an overlay's parts are mounted (MOUNT_STAGING) until it is made of them. The parts of the
 * next overlay take their place; in the end the workspace covers the names. */
#define PLAN_LAYERS PLAN_WORKSPACE "/.layers"
#define PLAN_UPPER PLAN_WORKSPACE "/.upper"
enum plan_mount_flags {
	MOUNT_RO = 1,
	MOUNT_NODEV = 2,
	MOUNT_NOEXEC = 4,
	MOUNT_USER = 8,	   /* source named by the user, or of the home: not the system's */
	MOUNT_STAGING = 16 /* unmounted once the overlays are mounted */
};
struct plan_mount {
	enum plan_mount_kind kind;
	const char *source, *target;
	const char *beneath; /* NULL, or the name below source to bind: opened following no link */
	unsigned flags;	     /* nosuid always */
	bool in_root;	     /* the target lies in the root tmpfs itself */
	bool make_target; /* the target lies in a tree that carrel owns: create it when missing */
	enum plan_path_kind source_kind;
	bool idmap; /* owner_uid:owner_gid on disk is the sandbox's user inside */
	uint32_t owner_uid, owner_gid;
	uint64_t size_bytes, inodes;
	unsigned mode;
	const struct plan_tree *tree; /* MOUNT_OVERLAY: what it shows. MOUNT_TMPFS: the tree whose
				       * upper it is alone, or NULL */
	const char *upper; /* MOUNT_OVERLAY: the path inside of a directory with `upper` and `work`
			    */
};
enum plan_access {
	ACCESS_READ = 1,
	ACCESS_EXECUTE = 2,
	ACCESS_WRITE = 4,
	ACCESS_DEVICE = 8,
	ACCESS_TRUNCATE = 32
}; /* as linux/landlock.h */
struct plan_rule {
	const char *path; /* inside */
	unsigned access;
};
struct plan_rlimit {
	int resource;
	const char *name;
	uint64_t value;
};
/* No terminal and no file of the host is ever STREAM_HANDED. STREAM_TTY is a terminal of the
 * sandbox's own. */
enum plan_stream { STREAM_HANDED, STREAM_RELAYED, STREAM_CAPTURED, STREAM_TTY, STREAM_EMPTY };

enum plan_namespace {
	NAMESPACE_USER = 1,
	NAMESPACE_MOUNT = 2,
	NAMESPACE_PID = 4,
	NAMESPACE_NET = 8,
	NAMESPACE_IPC = 16,
	NAMESPACE_UTS = 32,
	NAMESPACE_CGROUP = 64,
	NAMESPACE_ALL = 127
};
enum plan_filter {
	FILTER_LANDLOCK = 1, /* of paths, by `rules` */
	FILTER_SECCOMP = 2,  /* of system calls, by the program `seccomp` */
	FILTER_OBSERVE = 4   /* calls that name a path wait until the supervisor has noted it */
};
/* A sandbox has `lo` and nothing else; a network is what listens there and leads out. The process
 * that serves the listeners from outside decides what is reached. */
enum plan_listener_kind {
	LISTENER_PROXY,	       /* TCP, 127.0.0.1 */
	LISTENER_RESOLVER,     /* UDP, 127.0.0.1 */
	LISTENER_RESOLVER_TCP, /* TCP, 127.0.0.1 */
	LISTENER_NAMES	       /* TCP, every address of the namespace */
};
struct plan_listener {
	enum plan_listener_kind kind;
	uint16_t port;
};
#define PLAN_PORTS_MAX 4     /* besides 80 and 443 */
#define PLAN_LISTENERS_MAX 9 /* proxy, resolver by UDP and TCP, 80, 443, and those */
struct plan_network {
	enum network_mode mode; /* list, open: a proxy, a resolver, and the ports of the names that
				 * it answers with */
	bool forward;		/* of builds: a proxy only, and mode "none" */
	text_list allow, deny;	/* as given; a warm sandbox's are not known here */
	VEC(uint16_t) ports;	/* of names, besides 80 and 443; PLAN_PORTS_MAX at most */
	/* Opened by the child inside before it is locked in, in this order. A cold sandbox's are
	 * handed to sandbox_io.listening, a warm one's stay with carrel-init (INIT_LISTENERS). */
	VEC(struct plan_listener) listeners;
};

struct plan {
	bool privileged;
	uint32_t inside_uid, inside_gid, outside_uid, outside_gid;
	const char *hostname;
	const char *isolation; /* name of the backend that carries the plan out */
	unsigned namespaces;   /* enum plan_namespace: those of its own */
	unsigned filters;      /* enum plan_filter */
	const char *seccomp;   /* name of the program */
	const char *scratch;   /* without namespaces: a directory of the host that is made for it,
				* and removed; else NULL */
	const char *capabilities; /* that processes have: "none" */
	bool no_new_privs;
	struct plan_network network;
	const struct plan_tree *workspace; /* at PLAN_WORKSPACE, or PLAN_ROOT; always there */
	/* With the workspace at PLAN_ROOT: names there that are the sandbox's own and cover the
	 * workspace's. Its mounts come before the workspace's, which is followed by mounts in its
	 * tree. */
	text_list covers;
	plan_trees environments;
	const char *home; /* carrel's own, or NULL */
	uint64_t root_bytes,
		root_inodes; /* of the root tmpfs, which holds /tmp, /.cache and /dev/shm too */
	VEC(struct plan_node) nodes;
	VEC(struct plan_mount) mounts;
	VEC(struct plan_view) views;
	bool has_unified;     /* of facts */
	text_list masks;      /* of /proc: replaced by something empty when they exist */
	text_list read_only;  /* of /proc */
	plan_denials denials; /* shorter paths first */
	text_list tools;      /* judged: directories of an environment's own programs */
	int landlock_abi;
	bool landlock_writes; /* what can be seen can be read: the mounts alone decide that */
	VEC(struct plan_rule) rules;
	VEC(struct plan_rlimit) rlimits;
	struct limits limits;
	enum plan_limiter limiter;
	bool judged; /* it has PLAN_PROGRAMS */
	bool ptrace; /* processes of the sandbox may trace each other, but not PID 1 */
	bool setgid; /* setgid bits can be set: no directory of the host is writable */
	bool memfd;  /* memfd_create works */
	enum plan_stream streams[3];
	bool merged; /* stderr is relayed with stdout, in order: both lead to one place */
	unsigned umask;
	bool tty;     /* one of the streams is STREAM_TTY: a pseudo terminal is made inside */
	bool mirrors; /* it stands for the caller's terminal and was not asked for with -t: the
		       * caller's terminal edits lines, echoes and sends signals */
	const char *measured; /* target of the mount that limits.disk_bytes is about */
	bool counted_disk;    /* it is kept by measuring a directory of the host */
	bool warm;
	text_list env;	   /* items[count] is NULL */
	char *const *argv; /* warm: none */
	const char *cwd;
};

/* Takes "SRC:DST", "SRC:DST:ro" or "SRC:DST:rw" apart, from the right: DST must be absolute and
 * plain, SRC is whatever comes before it. ERR_INVALID. */
int plan_parse_bind(
	const char *text, struct arena *arena, struct plan_bind *bind, struct error *err);

/* Whether something may be mounted there: an absolute, plain path, not "/" and not below /proc,
 * /dev or /sys. ERR_INVALID. */
int plan_check_target(const char *target, struct error *err);

/* The names in a --dir that are read-only unless --writable-config. */
extern const char *const plan_protected_names[];

/* ERR_INVALID, ERR_UNAVAILABLE or ERR_LIMIT with the object named. */
int plan_build(const struct plan_options *options, const struct plan_facts *facts,
	struct arena *arena, struct plan *plan, struct error *err);
/* Invariant 2, for plans from anywhere. */
int plan_check(const struct plan *plan, struct error *err);
/* As one JSON object, pretty. */
void plan_print(const struct plan *plan, struct buf *out);
/* What the environment of every command begins with ("PATH=…"), NULL at its end. */
const char *const *plan_own_env(enum workspace_view view);
/* The path inside of the workspace's tree. */
static inline const char *plan_view_path(enum workspace_view view)
{
	return workspace_parts[PART_WORKSPACE].target[view];
}
/* The workspace's tree is the root of the sandbox. */
static inline bool plan_view_is_root(enum workspace_view view)
{
	return !strcmp(plan_view_path(view), PLAN_ROOT);
}
bool plan_has_root_view(const struct plan *plan);
/* It has a pid namespace: carrel-init is PID 1, and its end is the end of all. */
static inline bool plan_has_pids(const struct plan *plan)
{
	return plan->namespaces & NAMESPACE_PID;
}
/* Fills plan->views by its limits. */
void plan_add_views(const struct plan_facts *facts, struct arena *arena, struct plan *plan);
/* Appends what tells programs of these limits that don't find them out by themselves: the Go
 * runtime's memory limit, and with a limit of cpus the number of threads of common libraries;
 * without ptrace, that AddressSanitizer looks for no leaks. A variable that the user sets replaces
 * one of these. */
void plan_limit_env(const struct limits *limits, bool ptrace, struct arena *arena, text_list *env);
/* Whether names are resolved inside: it has a list, or is open. */
bool plan_network_has_names(const struct plan_network *network);
/* Fills network->listeners by its mode and ports. */
void plan_add_listeners(struct arena *arena, struct plan_network *network);
/* Adds the ports that entries of a list ("host:port") name, but for 80 and 443, as far as
 * PLAN_PORTS_MAX reaches: programs that know no proxy reach names on these. */
void plan_network_ports(const text_list *allow, struct arena *arena, struct plan_network *network);
/* Appends what tells programs of the network: the proxy, and `registries` ("NAME=value", or NULL),
 * which name the indexes of package managers; without a network, that they try once. A variable
 * that the user sets replaces one of these. */
void plan_network_env(const struct plan_network *network, const text_list *registries,
	struct arena *arena, text_list *env);
/* `entry` ("NAME=value") in place of the one of that name, or at the end. */
void plan_set_env(struct arena *arena, text_list *env, const char *entry);
const char *plan_limiter_name(enum plan_limiter limiter); /* "cgroup-v1", "cgroup-v2", "watchdog" */
