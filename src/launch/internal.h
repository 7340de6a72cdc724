/* internal.h -- what the files of the launcher share. Private to this room. */
#pragma once
#include <sys/resource.h>
#include "base/map.h"
#include "launch/launch.h"
#include "launch/pool.h"
#include "trees/layers/store.h"
#include "linux/disk_quota.h"
#include "sandbox/plan/grants.h"
#include "sandbox/plan/launch.h"
#include "proc/channel.h"
#include "proc/loop.h"
#include "proc/role.h"
#include "sandbox/native/base.h"
#include "sandbox/native/host.h"
#include "sandbox/native/isolation.h"
#include "sandbox/native/slot.h"

struct launcher;
/* Carries out one message of core, which was checked; fds stay the caller's. A row of `serves` in
 * launch.c. */
typedef void launch_fn(
	struct launcher *launcher, const struct launch_packet *packet, const int *fds);

/* ---- our own programs (roles.c) ---- */
enum role { ROLE_CORE, ROLE_WRITER, ROLE_AUDIT, ROLE_EGRESS, ROLE_COUNT };
/* Starts the role with these descriptors at 3, 4, …; then launcher->roles has its pid. */
int launcher_start_role(struct launcher *launcher, enum role which, const int *fds, int fd_count,
	struct error *err);
void role_kill(struct launcher *launcher, enum role which);	  /* if it runs */
bool role_died(struct launcher *launcher, pid_t pid, int status); /* false: it is none of them */
/* Sets *err to how it ended. */
void role_explain_end(int status, struct error *err);

/* ---- the processes that write for core (writers.c): ROLE_WRITER, ROLE_AUDIT ---- */
struct writer {
	uint64_t tag; /* of the request for a new writer, which waits for the end of the old one; 0:
			 none */
	struct loop_timer *patience; /* time for the writer to end after core has */
};
/* *core_end, core's end of a pair of stream sockets, is yours to close. */
int writer_start(struct launcher *launcher, enum role which, int *core_end, struct error *err);
/* Kills a writer that still runs, starts a new one, and answers with WRITER_STARTED or
 * AUDIT_STARTED. */
launch_fn writer_replace;
void writer_died(struct launcher *launcher, enum role which, int status);
/* Core has ended: the writer of the database is killed, that of the audit log writes what was sent.
 */
void writers_forget_core(struct launcher *launcher);

/* ---- core, and the channel to it (link.c) ---- */
struct link {
	int channel, ready;
	bool is_restart; /* not the first core of this launcher */
	bool has_served; /* any core of this launcher has served */
	bool is_up;	 /* the present core serves */
	int also_fd;	 /* number of the second listener in core */
	uint64_t started_ms, pause_ms;
	struct loop_timer *restart, *patience;
	struct channel_queue queue;
	bool is_full; /* the channel is full: watched for writing, not for reading */
};
/* Starts core. */
int link_start(struct launcher *launcher, struct error *err);
/* Core has ended: starts it again after a pause, or ends the launcher. */
void link_core_died(struct launcher *launcher, enum role which, int status);
/* Asks core to end; a second call kills it. */
void link_stop(struct launcher *launcher);
void link_done(struct launcher *launcher);
/* Asks core to end and to leave sandboxes running; link_core_died doesn't start another core. */
void link_reload(struct launcher *launcher);
/* head.tag is that of the request; fds stay the caller's. */
void link_send(struct launcher *launcher, const struct launch_message *head,
	const char *const *strings, size_t count, const int *fds, int fd_count);
void link_send_failed(struct launcher *launcher, uint64_t tag, const struct error *err);
void link_refuse(struct launcher *launcher, uint64_t tag, enum error_code code, const char *text);
/* Whether a message would be sent at once. */
bool link_has_room(const struct launcher *launcher);

/* ---- one start (start.c): a message of core's becomes a plan, the plan a child ---- */
/* An environment that sandboxes use: one descriptor, however many use it. */
struct pin {
	int fd; /* its meta.json, as core has locked it; never read here */
	uint64_t device, inode;
	unsigned users;
	struct pin *next;
};
/* What a sandbox holds besides its process. No descriptor, once it is up. */
struct start_parts {
	const struct isolation *isolation; /* the backend; NULL: the start hasn't begun */
	enum plan_limiter limiter;
	struct pin *environments[LAUNCH_TREES_MAX]; /* or NULL */
	uint32_t uid;				    /* uid outside, from the slots; 0: none */
	bool has_socket;
	bool has_cgroup, has_cpu;    /* it has a control group; with a CPU quota */
	unsigned cgroup;	     /* its number */
	int counters[LAUNCH_FD_MAX]; /* counters of its control group, for core; -1: none */
};

/* Begins a start: *pid is the child, *setup is read by parts->isolation. `parts` is valid on
 * failure, too: start_release follows in any case. */
int start_begin(struct launcher *launcher, const struct launch_packet *packet, const int *fds,
	struct start_parts *parts, pid_t *pid, int *setup, struct error *err);
/* A pin of the launcher before this execve; without users yet. */
struct pin *pin_take_over(struct launcher *launcher, int fd);
/* Its last process is gone. */
void start_release(struct launcher *launcher, const char *id, struct start_parts *parts);
/* Adds the counters of its control group to the descriptors for core, which are the caller's: those
 * that were opened while it started, or new ones. */
int start_open_counters(struct launcher *launcher, struct start_parts *parts,
	int fds[LAUNCH_FD_MAX], struct error *err);

/* ---- what workspaces show of the host (grants.c) ---- */
struct granted { /* descriptors behind the sources of one start */
	int fds[GRANTS_MAX];
	size_t count;
	struct plan_bind dir;
};
/* Removes those of workspaces that are gone. ERR_DENIED: others could have written them. */
int grants_open(struct launcher *launcher, struct error *err);
launch_fn grant_answer, grant_revoke;
/* Adds what was granted to the workspace to the options of a start. ERR_CONFLICT: an object is
 * gone, or is another one. grants_done follows in any case, after the start. */
int grants_apply(struct launcher *launcher, const char *id, struct arena *arena,
	struct plan_options *options, struct plan_facts *facts, struct granted *granted,
	struct error *err);
void grants_done(struct granted *granted);
/* Whether the workspace's /workspace is a directory of the host. */
int grants_have_dir(
	const struct launcher *launcher, const char *id, bool *has_dir, struct error *err);

/* ---- sandboxes (sandboxes.c) ---- */
struct sandbox;
struct sandboxes {
	struct map ids, pids;
	struct sandbox *oldest, *newest;
	struct sandbox *list_next; /* the next one to report for the LIST in progress */
	uint64_t list_tag;	   /* of that LIST; 0: none in progress */
	struct sandbox *killed;	   /* list of those that were killed and aren't reaped yet */
	unsigned up, starting;
	uint64_t started, failed;
};
void sandboxes_init(struct launcher *launcher);
void sandboxes_done(struct launcher *launcher);
launch_fn sandbox_start, sandbox_end, sandboxes_list;
/* Answers with what its processes hold of the disk; a child counts it. */
launch_fn sandbox_count_held;
/* Continues the answer to LIST when the channel has room. */
void sandboxes_go_on(struct launcher *launcher);
/* false: not a sandbox's pid. */
bool sandbox_died(struct launcher *launcher, pid_t pid, int status);
/* Reaps killed sandboxes that have ended. */
void sandboxes_reap_killed(struct launcher *launcher);
/* Core has ended: ends the sandboxes whose start it was waiting for. */
void sandboxes_forget_core(struct launcher *launcher);
/* Kills all of them; sandboxes_are_gone afterwards. */
void sandboxes_end_all(struct launcher *launcher);
bool sandboxes_are_gone(const struct launcher *launcher);
/* No sandbox is starting or ending. */
bool sandboxes_are_settled(const struct launcher *launcher);
struct handover;
void sandboxes_hand_over(struct launcher *launcher, struct arena *arena, struct handover *h);
/* Adopts the sandboxes of the launcher before this execve; their pins are there. */
int sandboxes_take_over(struct launcher *launcher, const struct handover *h, struct error *err);

/* ---- processes that do one piece of work for core and end (jobs.c) ---- */
enum job_kind { JOB_BUILD, JOB_TREE, JOB_BLOB, JOB_WEBHOOK, JOB_KIND_COUNT };
struct job;
bool jobs_are_there(const struct launcher *launcher, enum job_kind kind);
/* Its end is the answer to the message. */
launch_fn job_start, job_cancel;
void jobs_cancel_all(struct launcher *launcher); /* core has ended: no answers */
/* It has ended and isn't reaped yet, so that its process group is still its own: what a build left
 * there is killed. */
void job_ends(struct launcher *launcher, pid_t pid);
bool job_died(struct launcher *launcher, pid_t pid, int status); /* false: it is none of them */

/* ---- how a job of each kind begins ---- */
typedef int job_begin_fn(struct launcher *launcher, const struct launch_packet *packet,
	const int *fds, pid_t *pid, struct error *err);
job_begin_fn build_begin;   /* builds.c */
job_begin_fn tree_begin;    /* tree_start.c: work on whole trees */
job_begin_fn blob_begin;    /* blobs.c: an operation on the blob store */
job_begin_fn webhook_begin; /* the same program calls the webhook */
/* Each of these may be read or written: one that only names a file (O_PATH) is of no use. */
int job_check_fds(const int *fds, int count, const char *what, struct error *err);
/* What all their roles have: the home's owner, the descriptors, the log. */
struct role_start job_role(
	const struct launcher *launcher, const char *program, const int *fds, int fd_count);

/* ---- the egress role, which builds share with core (builds.c) ---- */
/* It is started when a first policy arrives, and ended with the last build unless core uses it,
 * too: the next one reads the host's configuration of name servers anew. */
struct egress_link {
	bool is_cores; /* core has the service socket */
	int service;   /* clients' end of its service socket, or -1 */
	int pending;   /* the other end, until the role is started; or -1 */
};
void egress_died(struct launcher *launcher, enum role which, int status);
/* Answers with EGRESS_STARTED. */
launch_fn egress_answer;
void egress_forget_core(struct launcher *launcher);   /* it has ended */
void egress_forget_builds(struct launcher *launcher); /* the last build has */
void egress_end(struct launcher *launcher);

/* ---- disk limits (quota.c) ---- */
launch_fn quota_answer;

/* ---- the program anew (reload.c) ---- */
enum reload_state {
	RELOAD_NONE,
	RELOAD_CHECKING, /* the new program is tried */
	RELOAD_ENDING,	 /* core ends; the execve follows */
};
struct reload {
	enum reload_state state;
	unsigned count; /* number of reloads by this process */
	pid_t check;
	int said; /* pipe: what the check prints */
	struct loop_timer *patience;
	bool is_told; /* the reload was logged and reported */
};
void reload_begin(struct launcher *launcher);
/* The check of the new program has ended; false: not its pid. */
bool reload_checked(struct launcher *launcher, pid_t pid, int status);
/* Called when a child has ended: executes the new program once no child is left that the execve
 * would lose. */
void reload_go_on(struct launcher *launcher);
/* Core serves: tells that we have been reloaded. */
void reload_served(struct launcher *launcher);

/* ---- the launcher itself (launch.c) ---- */
/* ---- certificates.c ---- */
struct file_identity {
	dev_t device;
	ino_t inode;
	off_t size;
	time_t seconds;
	long nanoseconds;
};
struct certificates {
	struct file_identity identities[3]; /* of the files whose bytes core has */
	struct loop_timer *timer;
	char said[ERROR_TEXT_SIZE]; /* the last failure, so that it is logged once */
};
struct launcher;
/* Hands them to core, which has just started, and again whenever they change. */
void certificates_send(struct launcher *launcher);
void certificates_done(struct launcher *launcher);

struct launcher {
	const struct launch_options *options;
	const struct home *home;
	struct loop *loop;
	struct log log;
	struct link link;
	struct certificates certificates;
	pid_t roles[ROLE_COUNT]; /* pid, or 0: not running */
	struct writer writers[ROLE_COUNT];
	struct host host;
	struct arena host_arena;
	uint64_t host_looked_ms;
	struct warm_host warm;
	struct base bases[2]; /* that warm starts from: without a network, and with one */
	uint64_t base_looked_ms;
	struct slots slots;
	int sockets; /* <home>/run/sb */
	int grants;  /* <home>.grants, or -1: there are none */
	struct layer_store layers;
	struct pin *pins;
	struct pool pool;
	struct sandboxes sandboxes;
	struct egress_link egress;
	struct job *jobs;
	enum quota_mechanism quota;
	bool has_quota; /* `quota` is known */
	struct reload reload;
	struct loop_timer *reap_all;
	uint64_t sweep_pause_ms;
	struct rlimit own_fds; /* the limit of descriptors before the launcher raised it */
	bool is_stopping;
	int exit_code;
};
/* The execve of a reload has failed: continues with a new core. */
void launcher_start_again(struct launcher *launcher);
launch_fn launcher_serve;
/* Examines the host again if the last time is long ago. */
int launcher_look(struct launcher *launcher, struct error *err);
/* The base to start this plan from, made on first use; may be none. */
const struct base *launcher_base(struct launcher *launcher, const struct plan *plan);
/* Reaps the child `pid` if it has ended (0: any that has), and tells whose it was. false: none. */
bool launcher_reap(struct launcher *launcher, pid_t pid);
/* Core has an audit log. */
bool launcher_is_audited(const struct launcher *launcher);
/* Called when a child has ended: ends the launcher if it is stopping and no child is left. */
void launcher_check_end(struct launcher *launcher);
/* Says `state` ("READY=1") to a service manager, if there is one. */
void launcher_notify(const struct launcher *launcher, const char *state);
/* A line about a request of core's; err NULL: none. */
void launcher_log(const struct launcher *launcher, enum log_level level, const char *message,
	const char *id, const char *request_id, const struct error *err);
