#include "envs/builder/job_runner.h"

#include <sys/resource.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "proc/capture.h"
#include "envs/builder/environment.h"
#include "envs/builder/process.h"
#include "sandbox/native/host.h"
#include "sandbox/native/isolation.h"

#define JOB_MEMORY ((uint64_t)4 << 30)
#define JOB_OUTPUT ((uint64_t)16 << 20)
#define JOB_PIDS 1024
#define JOB_FDS 8192 /* uv opens many at once */

/* What a program that honours proxies looks at, in both spellings. */
static const char *const proxy_names[] = { "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy",
	"https_proxy", "all_proxy" };

struct running { /* a job while it runs */
	struct jobs *jobs;
	struct error failure;
	bool has_failed;
};

static void on_listening(void *ctx, struct loop *loop, const struct plan_listener *inside, int fd)
{
	struct running *running = ctx;
	auto_close int listener = fd;
	/* The job would see a failure here as a missing network: keep the error to report the
	 * reason. */
	if (egress_serve(&running->jobs->egress, listener, &running->failure))
		running->has_failed = true;
}

static void on_tick(void *ctx)
{
	struct running *running = ctx;
	const struct runner *runner = &running->jobs->runner;
	/* A process forked off for a part of a build shows nothing. */
	if (getpid() == running->jobs->pid)
		runner->tick(runner->tick_ctx);
}

static int add_binds(const struct job *job, const struct home *home, struct arena *arena,
	struct plan_options *options, struct error *err)
{
	for (size_t i = 0; i < job->binds.count; i++) {
		const struct job_bind *given = &job->binds.items[i];
		struct plan_bind bind = { .source = given->source,
			.target = given->target,
			.read_only = !given->is_writable };
		if (environment_look_at_source(home, &bind, "a build's", arena, err))
			return -1;
		vec_push(arena, &options->binds, bind);
	}
	return 0;
}

static void add_env(const struct job *job, struct arena *arena, struct plan_options *options)
{
	for (size_t i = 0; i < job->env.count; i++)
		vec_push(arena, &options->env, job->env.items[i]);
	for (size_t i = 0; job->forward && i < sizeof proxy_names / sizeof *proxy_names; i++)
		vec_push(arena, &options->env,
			arena_printf(arena, "%s=http://127.0.0.1:%d", proxy_names[i],
				PLAN_FORWARD_PORT));
}

static uint64_t fds_allowed(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max > JOB_FDS || geteuid() == 0)
		return JOB_FDS;
	return limit.rlim_max;
}

/* A job that failed because the role has ended says nothing that helps. */
static int check_network(struct jobs *jobs, struct error *err)
{
	struct egress_status status;
	if (!egress_look(&jobs->egress, &status, err))
		return 0;
	error_hint(err, "run the build again");
	return error_context(err, "the build has lost its network");
}

static int carry_out(struct jobs *jobs, const struct job *job, struct plan_options *options,
	struct host *host, struct arena *arena, struct sandbox_io *io, struct job_result *result,
	struct error *err)
{
	struct plan plan;
	struct result outcome;
	struct running *running = io->ctx;
	if (host_look(host, jobs->layers->home->path, NULL, arena, err) ||
		plan_build(options, &host->facts, arena, &plan, err))
		return -1;
	if (isolation_run(&plan, &host->cgroups, io, &outcome, err)) {
		/* It begins with what the job before it has left. */
		if (err->code != ERR_LIMIT || !plan.counted_disk)
			return -1;
		*result = (struct job_result){ .reason = REASON_DISK_LIMIT };
		return 0;
	}
	if (running->has_failed) {
		*err = running->failure;
		return -1;
	}
	if (job->forward && result_exit_code(&outcome) && check_network(jobs, err))
		return -1;
	/* What the sandbox took as its own was meant for all of the build. */
	if (outcome.reason == REASON_CANCELED && jobs->runner.interrupted)
		++*jobs->runner.interrupted;
	*result = (struct job_result){ outcome.reason, result_exit_code(&outcome),
		outcome.duration_ms };
	return 0;
}

static int run_job(void *ctx, const struct job *job, struct buf *out, struct buf *errors,
	struct job_result *result, struct error *err)
{
	struct jobs *jobs = ctx;
	auto_arena struct arena arena = { 0 };
	struct host host;
	struct environment_mount mount = { 0 };
	struct running running = { .jobs = jobs };
	const struct plan_network forward = { .forward = true };
	struct plan_bind stage = { .source = job->stage,
		.kind = PATH_DIRECTORY,
		.owner_uid = jobs->layers->home->uid,
		.owner_gid = jobs->layers->home->gid };
	struct plan_options options = { .argv = (char *const *)(uintptr_t)job->argv,
		.cwd = job->cwd,
		.stage = job->stage ? &stage : NULL,
		.home = jobs->layers->home->path,
		.network = job->forward ? &forward : NULL,
		.captured = true,
		.no_input = true,
		.limits = { .memory_bytes = job->memory_bytes ? job->memory_bytes : JOB_MEMORY,
			.disk_bytes = job->disk_bytes,
			.timeout_ms = job->timeout_ms,
			.output_bytes = 2 * JOB_OUTPUT,
			.pids = JOB_PIDS,
			.fds = fds_allowed() } };
	struct sandbox_io io = { out, errors, on_listening, jobs->runner.tick ? on_tick : NULL,
		&running, .ends_on_signal = true };
	if (job->forward && !jobs->is_open)
		return fail(err, ERR_FAILED,
			"a build step needs the network, but the network is closed");
	host_init(&host);
	add_env(job, &arena, &options);
	int failed = add_binds(job, jobs->layers->home, &arena, &options, err) ||
		     (job->environment && environment_mount(jobs->layers, job->environment, NULL,
						  &arena, &options, &mount, err)) ||
		     carry_out(jobs, job, &options, &host, &arena, &io, result, err);
	environment_unmount(&mount);
	host_done(&host);
	return failed ? -1 : 0;
}

/* The daemon's, or one of our own, for as long as this build takes. */
static int find_role(struct jobs *jobs, struct error *err)
{
	char program[PATH_MAX];
	ssize_t len;
	if (jobs->role.service >= 0)
		return 0;
	len = readlink("/proc/self/exe", program, sizeof program - 1);
	if (len < 0)
		return fail_errno(err, "read '/proc/self/exe'");
	program[len] = 0;
	jobs->starter = getpid();
	return egress_start(
		program, jobs->layers->home->uid, jobs->layers->home->gid, &jobs->role, err);
}

static int allow_indexes(struct jobs *jobs, const struct index_set *indexes, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct forward_host host;
	for (size_t i = 0; i < indexes->extra.count + 1; i++) {
		const char *url = i ? indexes->extra.items[i - 1] : indexes->index;
		if (!url)
			continue;
		if (forward_host_from_url(url, &arena, &host, err))
			return -1;
		host.is_named = true;
		if (egress_allow(&jobs->egress, &host, err))
			return -1;
	}
	return 0;
}

static int open_network(void *ctx, const struct index_set *indexes, struct error *err)
{
	struct jobs *jobs = ctx;
	/* Registries are read from: nothing that a build runs has a reason to write to one. */
	struct egress_policy policy = { .only_reads = 1 };
	if (jobs->is_open)
		return 0;
	if (forward_proxies_find(&policy.proxies, err))
		return -1;
	if (find_role(jobs, err) || egress_open(jobs->role.service, &policy, &jobs->egress, err) ||
		allow_indexes(jobs, indexes, err)) {
		egress_close(&jobs->egress);
		return error_context(err, "open the network to the indexes");
	}
	jobs->is_open = true;
	jobs->opener = getpid();
	return 0;
}

static int allow_host(void *ctx, const char *name, uint16_t port, bool is_named, struct error *err)
{
	struct jobs *jobs = ctx;
	const struct forward_host host = { name, port, is_named };
	return egress_allow(&jobs->egress, &host, err);
}

static int settle_network(void *ctx, struct error *err)
{
	struct jobs *jobs = ctx;
	return egress_settle(&jobs->egress, err);
}

static void close_network(void *ctx)
{
	struct jobs *jobs = ctx;
	if (jobs->is_open && jobs->opener == getpid())
		egress_close(&jobs->egress);
	jobs->is_open = false;
}

/* All zero when the network is closed or the role has ended. */
static struct egress_status look(struct jobs *jobs)
{
	struct egress_status status = { 0 };
	struct error ignored;
	if (jobs->is_open)
		egress_look(&jobs->egress, &status, &ignored);
	return status;
}

static uint64_t network_bytes(void *ctx)
{
	return look(ctx).bytes_in;
}

static void network_refused(void *ctx, char out[320])
{
	struct egress_status status = look(ctx);
	str_copy(out, sizeof status.last_refused, status.last_refused);
}

_Static_assert(FORWARD_FAILURE_SIZE == BUILD_NETWORK_FAILURE_SIZE, "one text");
static void network_failed(void *ctx, char out[FORWARD_FAILURE_SIZE])
{
	struct egress_status status = look(ctx);
	str_copy(out, sizeof status.last_failure, status.last_failure);
}

#define KEYRING_MS 20000

/* `keyring get SERVICE USER`, as pip and uv ask it: on the host, as the caller. */
static const char *ask_keyring(
	void *ctx, const char *service, const char *user, struct arena *arena)
{
	struct capture *capture = arena_alloc(arena, sizeof *capture);
	const char *path = capture_find("keyring", arena);
	char *const argv[] = { arena_text(arena, "keyring"), arena_text(arena, "get"),
		arena_text(arena, service), arena_text(arena, user), NULL };
	if (!path)
		return NULL;
	capture_start(capture, path, argv, STDOUT_FILENO);
	capture_finish(capture, clock_monotonic_ms() + KEYRING_MS);
	struct str line = str_trim(str_from(capture->text));
	if (capture->exit_code != 0 || line.len == 0 || memchr(line.data, '\n', line.len))
		return NULL;
	return arena_bytes(arena, line.data, line.len);
}

void jobs_init(struct jobs *jobs, const struct layer_store *layers)
{
	*jobs = (struct jobs){ .layers = layers,
		.pid = getpid(),
		.role = { .pid = -1, .service = build_take_egress() },
		.egress = EGRESS_NONE,
		.runner = { .ctx = jobs, .run = run_job },
		.network = { .ctx = jobs,
			.open = open_network,
			.allow = allow_host,
			.settle = settle_network,
			.close = close_network,
			.bytes = network_bytes,
			.refused = network_refused,
			.failed = network_failed,
			.password = ask_keyring } };
}

void jobs_done(struct jobs *jobs)
{
	close_network(jobs);
	if (jobs->starter == getpid())
		egress_stop(&jobs->role);
}
