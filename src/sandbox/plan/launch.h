/* launch.h -- what core and the launcher say to each other, over proc/channel. Pure: encode,
 * decode, check.
 * 1. core names things, never paths: the launcher knows where they lie. A core that was taken over
 * can start sandboxes over its own home's workspaces and environments, and nothing else. The one
 * exception is what an environment shows of the host (its interpreter, its editable projects): core
 * reads these paths from meta.json, which is its own file, so that the launcher parses no JSON; the
 * launcher checks them as it would have checked the file's.
 * 2. A message that isn't whole, known and in range is ERR_CORRUPT: the receiver ends the role that
 * sent it.
 * 3. One packet a message: struct launch_message, then body_len bytes of NUL-terminated strings.
 * Same machine, native byte order. Fields that a message doesn't have are 0.
 * 4. A sandbox has the id of its workspace: one at most each. Its carrel-init listens at
 * <home>/run/sb/<id>; core connects there, now and after a restart. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "model/nouns/limits.h"
#include "sandbox/plan/denials.h"

#define LAUNCH_MAGIC 0x43524c41u
#define LAUNCH_BODY_MAX 49152
#define LAUNCH_STRINGS_MAX 1024
#define BUILD_WHEELS "--wheels-of=" /* of a BUILD: --wheels of this directory of a workspace */
#define BUILD_WHEELS_DIR "prebuilt"

enum launch_type {
	/* core to launcher; each is answered with the same tag */
	LAUNCH_START = 1, /* id, limits, flags, other (LAUNCH_NETWORK: ports of names besides 80 and
			   * 443, 16 bits each), value = number of trees, strings as in struct
			   * launch_tree, then paths inside that are denied, as denial_print writes
			   * them; for each environment, in that order, its meta.json, locked
			   * shared: held while the sandbox lives -> STARTED or FAILED (canceled: it
			   * was killed while it started) */
	LAUNCH_END,	  /* id -> ENDED, when nothing of it is left; FAILED (not_found) */
	LAUNCH_LIST,	  /* -> one RUNNING a sandbox, then DONE */
	LAUNCH_BUILD,  /* strings: package_id, python (a version, no path) or "", options of `carrel
			* env build` that workspace_build_option_is_valid allows, packages as
			* --pip=…, BUILD_WHEELS and the id of a workspace; fds: requirements
			* (/dev/null: none), stdout, stderr of `carrel  env build -o json` -> BUILT,
			* FAILED */
	LAUNCH_VERIFY, /* strings: the name of an environment; value = 1: damage is repaired; fds:
			* /dev/null, stdout, stderr of `carrel env verify -o json` -> BUILT,
			* FAILED */
	LAUNCH_REGISTRIES, /* fds: /dev/null, stdout, stderr of `carrel env registries -o json` ->
			    * BUILT, FAILED */
	LAUNCH_CANCEL,	   /* `other` = tag of a BUILD, VERIFY or TREE -> nothing; the BUILT or DONE
			      comes */
	LAUNCH_QUOTA,  /* id, limits.disk_bytes: make the directory workspaces/<id>, and keep it to
			* them -> DONE, value = enum quota_mechanism; FAILED */
	LAUNCH_STATS,  /* -> STATS_ARE */
	LAUNCH_HELD,   /* id -> HELD_ARE: disk space that its processes hold outside its tree;
			* FAILED (not_found; conflict: it is being counted) */
	LAUNCH_WRITER, /* start the process that writes the database; one that runs is killed
			* first -> WRITER_STARTED, FAILED */
	LAUNCH_TREE,   /* strings: a verb of launch/trees/tree_job.h, then names of workspaces and
			* layers,
			* "" between lists of them; fds: input, answer (JSON), output -> DONE,
			* value = exit code; FAILED (limit: too many at once). CANCEL ends it */
	LAUNCH_BLOB,   /* strings: words of format/http/blob_words.h; fds: data, answer (JSON) ->
			* DONE,   value = exit code; FAILED (limit: too many at once). CANCEL ends it
			*/
	LAUNCH_GRANT,  /* id, strings: shared trees, as NAME, target and "ro" or "rw"; present = 1
			* and a descriptor: a voucher of sandbox/plan/grants.h. Sandboxes of this
			* workspace  show them from now on -> DONE; FAILED (denied, invalid,
			* not_found) */
	LAUNCH_EGRESS, /* start the egress role, unless it runs -> EGRESS_STARTED, FAILED */
	LAUNCH_REVOKE, /* id: they show nothing of that any more -> DONE */
	LAUNCH_AUDIT,  /* start the process that writes the audit log; one that runs is killed
			* first -> AUDIT_STARTED, FAILED */
	/* strings: the id of an approval, for the log; fds: the body, answer (JSON: {"status"}):
	 * calls the URL of the configuration -> DONE, value = exit code; FAILED (limit: too many at
	 * once; unavailable: none is configured) */
	LAUNCH_WEBHOOK,
	/* launcher to core */
	LAUNCH_STARTED = 64,   /* id, value = enum plan_limiter, present + fds */
	LAUNCH_RUNNING,	       /* the same, for LIST */
	LAUNCH_ENDED,	       /* id, value = wait status of carrel-init; tag 0: it died unasked */
	LAUNCH_BUILT,	       /* value = exit code */
	LAUNCH_DONE,	       /* value */
	LAUNCH_FAILED,	       /* error_code, strings: text, hint */
	LAUNCH_STATS_ARE,      /* stats */
	LAUNCH_HELD_ARE,       /* id, held */
	LAUNCH_WRITER_STARTED, /* present = 1, the socket to it */
	LAUNCH_AUDIT_STARTED,  /* the same */
	LAUNCH_EGRESS_STARTED, /* present = 1, its service socket (egress/egress.h). When the role
				* ends, so do the channels of all policies: core asks again */
	LAUNCH_CERTIFICATES,   /* tag 0; strings: certificate, key and CA of clients ("": none), as
				* PEM, for TLS: when core starts, and whenever they change */
};
/* Descriptors of STARTED and RUNNING, in this order; bit i of `present`: it is there. */
enum launch_fd {
	/* O_PATH. A Landlock domain has no rule for what lies below them, and can't get one: a role
	 * that opens there must not handle READ_FILE, READ_DIR and WRITE_FILE. */
	LAUNCH_FD_PROC,	       /* the sandbox's /proc */
	LAUNCH_FD_TERMINALS,   /* its /dev/pts */
	LAUNCH_FD_WORKSPACE,   /* /workspace as mounted inside */
	LAUNCH_FD_ENVIRONMENT, /* its /env, if it has one */
	LAUNCH_FD_SCRATCH,     /* a directory of the tmpfs that holds its /tmp, if it has one */
	LAUNCH_FD_OOM,	       /* readable (v1: EPOLLIN) or EPOLLPRI (v2) when memory ran out */
	LAUNCH_FD_OOM_COUNT,   /* file with a line `oom_kill N` */
	LAUNCH_FD_CPU,	       /* cpuacct.usage (ns), or cpu.stat (usage_usec N) */
	LAUNCH_FD_SOCKETS, /* v1: bytes of the buffers of its sockets, beside all other memory */
	LAUNCH_FD_MAX
};
enum launch_flags {
	LAUNCH_PTRACE = 1,    /* plan_options.ptrace */
	LAUNCH_ROOT_VIEW = 2, /* plan_options.view, as plan_view_is_root */
	LAUNCH_NETWORK = 4,   /* it has listeners that lead out; core decides where to */
	LAUNCH_JUDGED = 8,    /* plan_options.judged */
	LAUNCH_FLAGS_ALL = 15
};
struct launch_stats {
	uint32_t sandboxes, netns_ready, cgroups_ready, starting;
	uint64_t started, failed, netns_missed, cgroups_missed; /* since the launcher's start */
};
struct launch_held { /* as struct held of sandbox/native/held.h */
	uint64_t bytes, hidden, written;
	uint64_t has_written; /* 0 or 1 */
};
struct launch_message {
	uint32_t magic, type;
	uint64_t tag; /* chosen by core; 0: unsolicited */
	uint64_t other;
	char id[ID_LEN + 1];
	char request_id[ID_LEN +
			1]; /* of the API request behind it, [A-Za-z0-9._-]*: for the log */
	uint16_t flags;	    /* of START: enum launch_flags */
	int32_t value;
	uint32_t error_code, present;
	uint32_t string_count, body_len;
	struct limits limits;
	struct launch_stats stats;
	struct launch_held held;
};
_Static_assert(sizeof(struct launch_message) == 240, "no padding");
/* A tree of a START that has layers: an environment, or the workspace. Its strings are name
 * ("": the workspace), kind ("python", "node": where it is mounted, and where its changes are
 * kept), python (the interpreter on the host; "": there is none, or it is a tool), prefix ("": it
 * lies in /usr), the editable projects, "", the layers, topmost first, "", its tools, as name and
 * layer, "". The workspace has only layers, which are frozen ones; a workspace that isn't named has
 * none. The frozen layers of an environment come before the layers of its packages, of which there
 * is at least one. Each kind is there once: two of one kind would share their changes. */
struct launch_tree {
	const char *name, *kind, *python, *prefix;
	const char *const *editables, *const *layers, *const *tools;
	size_t editable_count, layer_count, tool_count; /* tool_count: strings, two a tool */
};
#define LAUNCH_TREES_MAX 8
/* A frozen layer: LAUNCH_FROZEN and an id. What it holds of a tree lies in a directory of its own.
 */
#define LAUNCH_FROZEN "snap-"
#define LAUNCH_FROZEN_LEN (sizeof LAUNCH_FROZEN - 1 + ID_LEN)
bool launch_layer_is_frozen(const char *name);
/* One message taken apart; strings point into the packet that was decoded. */
struct launch_packet {
	struct launch_message head;
	const char *strings[LAUNCH_STRINGS_MAX];
	/* Of a START, checked: names and layer ids are valid, paths are absolute and plain, each
	 * name is there once. */
	struct launch_tree trees[LAUNCH_TREES_MAX];
	size_t tree_count;
	struct plan_denial denials[PLAN_DENIALS_MAX];
	size_t denial_count;
};
/* Of a TREE: a file name that needs no escaping, is no hidden file and no path. */
#define LAUNCH_TREE_NAME_MAX 80
bool launch_tree_name_is_valid(const char *name);
/* The ports of a START as it has them, and back: `ports` has room for PLAN_PORTS_MAX. */
uint64_t launch_pack_ports(const uint16_t *ports, size_t count);
size_t launch_unpack_ports(uint64_t packed, uint16_t *ports);
/* Appends the packet. ERR_LIMIT: too many or too long strings. */
int launch_encode(const struct launch_message *head, const char *const *strings, size_t count,
	struct buf *out, struct error *err);
/* `data` must stay while *packet is used. to_launcher: which direction is expected; fd_count: what
 * came along. Checked: magic, type and direction, sizes, string count for the type, id valid where
 * one belongs and "" elsewhere, limits in range for START (plan_build checks again), fds as the
 * type has them. */
int launch_decode(const char *data, size_t len, bool to_launcher, int fd_count,
	struct launch_packet *packet, struct error *err);
