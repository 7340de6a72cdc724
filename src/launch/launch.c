#include "launch/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/walk.h"
#include "envs/kind.h"
#include "launch/handover.h"
#include "launch/internal.h"
#include "linux/netns.h"
#include "linux/pidfd.h"
#include "proc/role.h"

#define LOOK_AGAIN_MS 30000
#define BASE_AGAIN_MS 1000
#define POOL_SIZE 16
#define REAP_ALL_MS 100
#define SWEEP_AGAIN_MS 100  /* then after twice as long each time, */
#define SWEEP_MOST_MS 60000 /* until it is clear that this is nothing that dies */

void launcher_log(const struct launcher *launcher, enum log_level level, const char *message,
	const char *id, const char *request_id, const struct error *err)
{
	const char *fields[6] = { NULL };
	size_t count = 0;
	if (id && id[0]) {
		fields[count++] = "workspace";
		fields[count++] = id;
	}
	if (request_id && request_id[0]) {
		fields[count++] = "request_id";
		fields[count++] = request_id;
	}
	if (err) {
		fields[count++] = "error";
		fields[count++] = err->text;
	}
	/* A NULL key ends the record. */
	log_record(&launcher->log, level, message, fields[0], fields[1], fields[2], fields[3],
		fields[4], fields[5], (const char *)NULL);
}

void launcher_notify(const struct launcher *launcher, const char *state)
{
	if (launcher->options->notify >= 0)
		send(launcher->options->notify, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- what is asked of it ---- */

static void answer_stats(
	struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	const struct sandboxes *all = &launcher->sandboxes;
	const struct pool *pool = &launcher->pool;
	struct launch_message head = { .type = LAUNCH_STATS_ARE,
		.tag = packet->head.tag,
		.stats = { .sandboxes = all->up,
			.starting = all->starting,
			.netns_ready = pool->kits_ready,
			.cgroups_ready = pool->groups_ready,
			.started = all->started,
			.failed = all->failed,
			.netns_missed = pool->kits_missed,
			.cgroups_missed = pool->groups_missed } };
	link_send(launcher, &head, NULL, 0, NULL, 0);
}

static launch_fn *const serves[] = {
	[LAUNCH_START] = sandbox_start,
	[LAUNCH_END] = sandbox_end,
	[LAUNCH_LIST] = sandboxes_list,
	[LAUNCH_BUILD] = job_start,
	[LAUNCH_VERIFY] = job_start,
	[LAUNCH_REGISTRIES] = job_start,
	[LAUNCH_CANCEL] = job_cancel,
	[LAUNCH_QUOTA] = quota_answer,
	[LAUNCH_STATS] = answer_stats,
	[LAUNCH_HELD] = sandbox_count_held,
	[LAUNCH_WRITER] = writer_replace,
	[LAUNCH_TREE] = job_start,
	[LAUNCH_BLOB] = job_start,
	[LAUNCH_GRANT] = grant_answer,
	[LAUNCH_EGRESS] = egress_answer,
	[LAUNCH_REVOKE] = grant_revoke,
	[LAUNCH_AUDIT] = writer_replace,
	[LAUNCH_WEBHOOK] = job_start,
};

/* launch_decode lets no type through that has no row. */
void launcher_serve(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	size_t type = packet->head.type;
	if (type < sizeof serves / sizeof *serves && serves[type])
		serves[type](launcher, packet, fds);
}

/* ---- ends ---- */

bool launcher_is_audited(const struct launcher *launcher)
{
	return !launcher->options->config || launcher->options->config->audit_enabled;
}

void launcher_check_end(struct launcher *launcher)
{
	if (!launcher->is_stopping)
		reload_go_on(launcher);
	if (!launcher->is_stopping || launcher->roles[ROLE_CORE] || launcher->roles[ROLE_WRITER] ||
		launcher->roles[ROLE_AUDIT])
		return;
	if (!sandboxes_are_gone(launcher))
		sandboxes_end_all(launcher);
	jobs_cancel_all(launcher);
	if (sandboxes_are_gone(launcher) && !launcher->jobs)
		loop_stop(launcher->loop);
}

bool launcher_reap(struct launcher *launcher, pid_t pid)
{
	siginfo_t info = { 0 };
	int status;
	if (waitid(pid ? P_PID : P_ALL, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
		!info.si_pid)
		return false;
	job_ends(launcher, info.si_pid);
	if (waitpid(info.si_pid, &status, 0) != info.si_pid)
		return false;
	if (info.si_pid == launcher->pool.maker_pid)
		pool_maker_died(&launcher->pool);
	else if (reload_checked(launcher, info.si_pid, status))
		return true;
	else if (!role_died(launcher, info.si_pid, status) &&
		 !sandbox_died(launcher, info.si_pid, status))
		job_died(launcher, info.si_pid, status);
	return true;
}

static void on_reap_all(struct loop *loop, void *ctx)
{
	struct launcher *launcher = ctx;
	launcher->reap_all = NULL;
	while (launcher_reap(launcher, 0))
		;
}

/* One signal may stand for many ends. Asking for any makes the kernel look at all our children, of
 * which there may be thousands: that is done now and then, after those who are known to be ending.
 */
static void reap(struct launcher *launcher, pid_t pid)
{
	launcher_reap(launcher, pid);
	sandboxes_reap_killed(launcher);
	if (!launcher->reap_all)
		launcher->reap_all = loop_after(launcher->loop, REAP_ALL_MS, on_reap_all, launcher);
}

static void on_launcher_signal(struct loop *loop, const struct signalfd_siginfo *info, void *ctx)
{
	struct launcher *launcher = ctx;
	if (info->ssi_signo == SIGCHLD) {
		reap(launcher, (pid_t)info->ssi_pid);
		return;
	}
	/* A terminal that goes away ends what was started there. */
	if (info->ssi_signo == SIGHUP && info->ssi_code != SI_KERNEL) {
		reload_begin(launcher);
		return;
	}
	launcher_log(launcher, LOG_LEVEL_INFO, "stopping", NULL, NULL, NULL);
	if (!launcher->is_stopping)
		launcher_notify(launcher, "STOPPING=1");
	launcher->is_stopping = true;
	link_stop(launcher);
	launcher_check_end(launcher);
}

/* ---- the beginning ---- */

/* What the host shows to sandboxes, as mounts to start from; without them each makes its own. The
 * plan has an environment so that there is a place for one. Only the files of /etc that names need
 * tell the two bases apart. */
static void make_base(struct launcher *launcher, bool has_names)
{
	struct base *base = &launcher->bases[has_names];
	const struct plan_network network = { .mode = has_names ? NETWORK_LIST : NETWORK_NONE };
	auto_arena struct arena arena = { 0 };
	struct plan_tree any = { .target = env_kinds[0]->target,
		.programs = env_kinds[0]->programs,
		.base = "/",
		.layers = "any",
		.upper = "any" };
	struct plan_options options = { .warm = true, .network = &network, .judged = true };
	struct plan_facts facts = launcher->host.facts;
	struct plan plan;
	struct error err;
	base_done(base);
	vec_push(&arena, &any.lowers, "any");
	vec_push(&arena, &options.environments, &any);
	if (!facts.privileged)
		return;
	if (plan_build(&options, &facts, &arena, &plan, &err) || base_make(&plan, base, &err))
		launcher_log(launcher, LOG_LEVEL_WARN, "sandboxes start without a base", NULL, NULL,
			&err);
}

const struct base *launcher_base(struct launcher *launcher, const struct plan *plan)
{
	bool has_names = plan_network_has_names(&plan->network);
	if (has_names && launcher->bases[1].mounts < 0)
		make_base(launcher, true);
	return &launcher->bases[has_names];
}

static int look_at_host(struct launcher *launcher, struct error *err)
{
	struct arena arena = { 0 };
	struct host host;
	host_init(&host);
	const struct config *config = launcher->options->config;
	if (host_look(&host, NULL, NULL, &arena, err) ||
		(config && host_show(&host, &config->show, launcher->home->path, &arena, err))) {
		arena_done(&arena);
		return -1;
	}
	/* Where control groups lie is asked once: those that were made must be found again. */
	if (launcher->host_looked_ms || launcher->options->handover) {
		host.cgroups = launcher->host.cgroups;
		host.facts.limiter = launcher->host.facts.limiter;
	}
	host.facts.landlock_writes = config && config->landlock_writes;
	host.facts.umask = 022; /* of commands, not ours */
	host_done(&launcher->host);
	arena_done(&launcher->host_arena);
	launcher->host = host;
	launcher->host_arena = arena;
	return 0;
}

/* Packages come and go while we run. */
int launcher_look(struct launcher *launcher, struct error *err)
{
	uint64_t now = clock_monotonic_ms();
	bool is_old = !launcher->host_looked_ms || now - launcher->host_looked_ms >= LOOK_AGAIN_MS;
	if (!is_old && now - launcher->base_looked_ms < BASE_AGAIN_MS)
		return 0;
	launcher->base_looked_ms = now;
	if (!is_old && base_is_current(&launcher->bases[0]))
		return 0;
	if (look_at_host(launcher, err))
		return -1;
	launcher->host_looked_ms = now;
	make_base(launcher, false);
	base_done(&launcher->bases[1]); /* made again when it is needed */
	return 0;
}

/* Sockets of sandboxes that died with an earlier launcher. */
static int open_sockets(struct launcher *launcher, struct error *err)
{
	if (home_open_directory(launcher->home, "run/sb", &launcher->sockets, err))
		return -1;
	auto_walk DIR *dir = walk_from(fcntl(launcher->sockets, F_DUPFD_CLOEXEC, 3));
	if (!dir)
		return fail_errno(err, "read '%s/run/sb'", launcher->home->path);
	home_enter(launcher->home);
	struct dirent *entry;
	while ((entry = walk_next(dir)))
		if (entry->d_name[0] != '.' &&
			!map_get(&launcher->sandboxes.ids, str_from(entry->d_name)))
			unlinkat(launcher->sockets, entry->d_name, 0);
	home_leave(launcher->home);
	return 0;
}

static int open_slots(struct launcher *launcher, struct error *err)
{
	char map[4096];
	if (!launcher->host.facts.privileged)
		return 0;
	if (fd_read_file(AT_FDCWD, "/proc/self/uid_map", map, sizeof map) < 0)
		return fail_errno(err, "read '/proc/self/uid_map'");
	if (slots_open(launcher->home->path, slot_range_from(map), &launcher->slots, err))
		return -1;
	if (launcher->options->handover)
		slots_take_over(&launcher->slots, launcher->options->handover->slots);
	return 0;
}

static void on_pool_failed(void *ctx, const char *what, const struct error *err)
{
	const struct launcher *launcher = ctx;
	/* Ctrl-C reaches the pool's own children, too. */
	if (!launcher->is_stopping)
		launcher_log(launcher, LOG_LEVEL_WARN, what, NULL, NULL, err);
}

static int start_pool(struct launcher *launcher, struct error *err)
{
	/* As a sandbox without limits of its own has them. */
	const struct cgroup_want each = { .memory_bytes = LIMIT_MEMORY_DEFAULT,
		.pids = LIMIT_PIDS_DEFAULT + 1,
		.count_cpu = true };
	launcher->pool = (struct pool){ .loop = launcher->loop,
		.cgroups = &launcher->host.cgroups,
		.slots = &launcher->slots,
		.owner_uid = launcher->home->uid,
		.owner_gid = launcher->home->gid,
		.next_number = launcher->pool.next_number,
		.failed = on_pool_failed,
		.ctx = launcher };
	return pool_start(&launcher->pool, &each, POOL_SIZE, launcher->host.facts.privileged, err);
}

/* What a launcher that was killed has left may be dying still. */
static void on_launcher_sweep(struct loop *loop, void *ctx)
{
	struct launcher *launcher = ctx;
	if (!cgroup_sweep(&launcher->host.cgroups) || launcher->sweep_pause_ms > SWEEP_MOST_MS)
		return;
	loop_after(loop, launcher->sweep_pause_ms, on_launcher_sweep, launcher);
	launcher->sweep_pause_ms *= 2;
}

/* What an execve would have lost. */
static void begin_anew(struct launcher *launcher, const struct handover *h)
{
	launcher->host.cgroups = h->cgroups;
	launcher->host.facts.limiter = h->limiter;
	launcher->own_fds.rlim_cur = h->fds.rlim_cur;
	launcher->pool.next_number = h->next_group;
	launcher->reload.count = h->reloads;
	launcher->link.has_served = launcher->link.is_restart = true;
}

static int take_over(struct launcher *launcher, struct error *err)
{
	if (!launcher->options->handover)
		return 0;
	/* A child that ended meanwhile has sent its signal to the program before. */
	launcher->reap_all = loop_after(launcher->loop, 0, on_reap_all, launcher);
	return sandboxes_take_over(launcher, launcher->options->handover, err);
}

void launcher_start_again(struct launcher *launcher)
{
	struct error err;
	if (!start_pool(launcher, &err) && !link_start(launcher, &err))
		return;
	launcher_log(launcher, LOG_LEVEL_ERROR, "the launcher can't continue", NULL, NULL, &err);
	launcher->exit_code = error_exit_code(err.code);
	launcher->is_stopping = true;
	launcher_check_end(launcher);
}

static int launcher_start(struct launcher *launcher, struct error *err)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	getrlimit(RLIMIT_NOFILE, &launcher->own_fds);
	role_raise_fds();
	if (launcher->options->handover)
		begin_anew(launcher, launcher->options->handover);
	launcher->warm.cgroups = &launcher->host.cgroups;
	if (loop_new(&launcher->loop, err) ||
		loop_signals(launcher->loop, &signals, on_launcher_signal, launcher, err) ||
		launcher_look(launcher, err) || open_slots(launcher, err) ||
		take_over(launcher, err) || open_sockets(launcher, err) ||
		layer_store_open(launcher->home, &launcher->layers, err) ||
		layer_store_make_empty(&launcher->layers, err) ||
		start_open_image(&launcher->warm.init_image, err) ||
		pidfd_open_process(getpid(), &launcher->warm.self, err) ||
		netns_open_own(&launcher->warm.own_netns, err) ||
		base_open_own(&launcher->warm.own_mounts, err) || grants_open(launcher, err))
		return -1;
	launcher->sweep_pause_ms = SWEEP_AGAIN_MS;
	on_launcher_sweep(launcher->loop, launcher);
	return start_pool(launcher, err) || link_start(launcher, err) ? -1 : 0;
}

static void launcher_end(struct launcher *launcher)
{
	if (launcher->loop) {
		link_done(launcher);
		egress_end(launcher);
		sandboxes_done(launcher);
		if (launcher->pool.loop)
			pool_stop(&launcher->pool);
		loop_free(launcher->loop);
	}
	fd_close(&launcher->warm.init_image);
	fd_close(&launcher->warm.self);
	fd_close(&launcher->warm.own_netns);
	fd_close(&launcher->warm.own_mounts);
	for (int i = 0; i < 2; i++)
		base_done(&launcher->bases[i]);
	fd_close(&launcher->sockets);
	fd_close(&launcher->grants);
	slots_done(&launcher->slots);
	layer_store_done(&launcher->layers);
	host_done(&launcher->host);
	arena_done(&launcher->host_arena);
}

int launch_serve(const struct launch_options *options)
{
	struct launcher launcher = { .options = options,
		.home = options->home,
		.log = options->log,
		.link = { .channel = -1, .ready = -1 },
		.egress = { .service = -1, .pending = -1 },
		.warm = { .init_image = -1,
			.self = -1,
			.own_netns = -1,
			.own_mounts = -1,
			.mounts = -1 },
		.bases = { BASE_NONE, BASE_NONE },
		.slots = SLOTS_NONE,
		.reload = { .said = -1 },
		.sockets = -1,
		.grants = -1,
		.layers = { .dir = -1 } };
	struct error err;
	host_init(&launcher.host);
	arena_init(&launcher.host_arena);
	sandboxes_init(&launcher);
	if (launcher_start(&launcher, &err) || loop_run(launcher.loop, &err)) {
		launcher_log(&launcher, LOG_LEVEL_ERROR, "the launcher can't continue", NULL, NULL,
			&err);
		launcher.exit_code = error_exit_code(err.code);
	}
	launcher_end(&launcher);
	return launcher.exit_code;
}
