#include "cli/diagnose.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/causes.h"
#include "envs/uv.h"
#include "sandbox/slot.h"

const char *const facts_namespace_names[FACTS_NAMESPACES] = { "mount", "pid", "net", "ipc", "uts",
	"cgroup" };
const char *const facts_program_names[FACTS_PROGRAMS] = { "python3", "uv", "node", "npm", "bun",
	"git", "crun", "runc", "runsc" };

/* Why one would install a program that is missing. Nothing of `carrel run` itself needs any. */
static const char *const program_uses[FACTS_PROGRAMS] = {
	"so that sandboxes have a Python",
	("so that the first environment need not fetch it (only " UV_VERSION " is used)"),
	"so that sandboxes have a Node",
	"to build Node environments where there is no bun (later versions)",
	"to build Node environments (later versions)",
	"so that sandboxes have git",
	"for --isolation oci (later versions)",
	"for --isolation oci where there is no crun (later versions)",
	"for --isolation gvisor (later versions)",
};

const char *check_status_name(enum check_status status)
{
	static const char *const names[CHECK_STATUS_COUNT] = { "ok", "warn", "fail" };
	return names[status];
}

struct doctor {
	const struct facts *facts;
	struct arena *arena;
	check_list *checks;
	struct situation situation;
	const char *group;
};

static void add(struct doctor *d, const char *name, enum check_status status, const char *detail,
	const char *cause, const char *remedy)
{
	vec_push(d->arena, d->checks,
		(struct check){ d->group, name, status, detail, cause, remedy });
}

/* The line of a probe. What it costs when it fails is `worst`; a probe that wasn't tried costs
 * nothing of its own. */
static void add_probe(struct doctor *d, const char *name, enum subject subject,
	const struct probe *probe, enum check_status worst, const char *good)
{
	const char *cause = NULL, *remedy = NULL;

	if (probe->error == 0) {
		add(d, name, CHECK_OK, good, NULL, NULL);
		return;
	}
	if (probe->error == PROBE_SKIPPED) {
		add(d, name, CHECK_WARN, "not tried", arena_text(d->arena, probe->step), NULL);
		return;
	}
	causes_find(&d->situation, subject, probe, d->arena, &cause, &remedy);
	add(d, name, worst, arena_printf(d->arena, "%s: %s", probe->step, strerror(probe->error)),
		cause, remedy);
}

static void check_kernel(struct doctor *d)
{
	struct str major, minor, rest;
	uint64_t numbers[2] = { 0, 0 };

	str_cut(str_from(d->facts->release), '.', &major, &rest);
	minor = rest;
	while (minor.len > 0 && !str_to_u64(minor, &numbers[1]))
		minor.len--;
	str_to_u64(major, &numbers[0]);
	if (numbers[0] > 6 || (numbers[0] == 6 && numbers[1] >= 1))
		add(d, "kernel", CHECK_OK, d->facts->release, NULL, NULL);
	else
		add(d, "kernel", CHECK_WARN, d->facts->release,
			"older than 6.1, the oldest supported version; the lines below show what "
			"is missing",
			"update the kernel");
}

static void check_namespaces(struct doctor *d)
{
	const struct facts *facts = d->facts;

	add_probe(d, "user namespaces", SUBJECT_USERNS, &facts->user_namespace, CHECK_FAIL,
		"created, mapped, mounts work");
	for (int i = 0; i < FACTS_NAMESPACES; i++) {
		const struct probe *probe = &facts->namespaces[i];
		const char *limit = facts->max_namespaces[1 + i];

		if (probe->error == 0)
			continue;
		d->situation.namespace_name = i == 0 ? "mnt" : facts_namespace_names[i];
		d->situation.namespace_is_zero = limit != NULL && limit[0] == '0';
		add_probe(d, arena_printf(d->arena, "%s namespace", facts_namespace_names[i]),
			SUBJECT_NAMESPACE, probe, CHECK_FAIL, NULL);
		if (probe->error == PROBE_SKIPPED)
			return; /* the first says it for all */
	}
	if (facts->user_namespace.error == 0)
		add(d, "namespaces", CHECK_OK, "mount pid net ipc uts cgroup", NULL, NULL);
}

static void check_landlock(struct doctor *d)
{
	/* What an older ABI leaves out; the namespaces and filters still hold all of it but the
	 * last two. */
	static const struct {
		int since;
		const char *lost;
	} rights[] = {
		{ 6, "only the namespaces scope abstract sockets and signals" },
		{ 5, "only the seccomp filter restricts ioctl on devices" },
		{ 3, "only read-only mounts and file modes restrict truncation" },
		{ 2, "moving files between directories is refused" },
	};
	int abi = d->facts->landlock_abi;

	if (abi == 0 || d->facts->landlock.error != 0) {
		const struct probe none = { EOPNOTSUPP, "Landlock" };
		add_probe(d, "landlock", SUBJECT_LANDLOCK, abi == 0 ? &none : &d->facts->landlock,
			CHECK_FAIL, NULL);
		return;
	}
	struct buf lost;
	buf_init(&lost, 4096);
	for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
		if (abi < rights[i].since)
			buf_printf(&lost, "%s%s", lost.len > 0 ? "; " : "", rights[i].lost);
	const char *detail = arena_printf(d->arena, "ABI %d%s", abi,
		d->facts->landlock_writes ? "; restricts writes only (system.landlock)" : "");
	if (lost.len > 0)
		add(d, "landlock", CHECK_WARN, detail, arena_text(d->arena, lost.data),
			"update the kernel: ABI 6 came with 6.12");
	else
		add(d, "landlock", CHECK_OK, detail, NULL, NULL);
	buf_done(&lost);
}

static void check_isolation(struct doctor *d)
{
	const struct facts *facts = d->facts;

	d->group = "isolation";
	check_namespaces(d);
	add_probe(d, "fresh /proc", SUBJECT_PROC, &facts->fresh_proc, CHECK_FAIL, "can be mounted");
	add_probe(d, "mount API", SUBJECT_MOUNT_API, &facts->mount_api, CHECK_FAIL,
		"fsopen, open_tree, mount_setattr");
	add_probe(d, "clone3, pidfd", SUBJECT_CLONE3, &facts->clone3, CHECK_FAIL, "there");
	add_probe(d, "seccomp", SUBJECT_SECCOMP, &facts->seccomp, CHECK_FAIL,
		"both filters load and refuse calls");
	check_landlock(d);
	add_probe(d, "memfd exec", SUBJECT_MEMFD, &facts->memfd_exec, CHECK_FAIL,
		"a sealed memfd can be executed");
	if (d->situation.label[0] != '\0')
		add(d, "security label", CHECK_OK, d->situation.label, NULL, NULL);
}

static void check_ids(struct doctor *d)
{
	const struct facts *facts = d->facts;
	struct slot_range range = slot_range_from(facts->uid_map ? facts->uid_map : "");

	if (facts->uid != 0)
		add(d, "ids", CHECK_OK,
			arena_printf(d->arena, "sandboxes run under your own uid, %u%s%s",
				facts->uid, facts->subuid ? "; not needed: subuid " : "",
				facts->subuid ? facts->subuid : ""),
			NULL, NULL);
	else if (range.count > 0)
		add(d, "ids", range.count >= 1024 ? CHECK_OK : CHECK_WARN,
			arena_printf(d->arena, "a uid of its own for each of %u sandboxes, from %u",
				range.count, range.first),
			range.count >= 1024 ? NULL : "this user namespace has few ids", NULL);
	else
		add(d, "ids", CHECK_WARN, "sandboxes run with the uid of root",
			"this user namespace has no free ids",
			"give it more (/etc/subuid, --uidmap, --userns=auto:size=65537)");
}

static void check_cgroups(struct doctor *d)
{
	const struct cgroup_host *host = &d->facts->cgroup_host;
	const char *cause = NULL, *remedy = NULL;

	if (host->version != CGROUP_NONE) {
		add(d, "cgroups", CHECK_OK,
			arena_printf(d->arena, "v%d, writable: memory%s%s%s",
				host->version == CGROUP_V2 ? 2 : 1, host->cpu[0] ? " cpu" : "",
				host->cpuacct[0] ? " cpuacct" : "", host->pids ? " pids" : ""),
			host->cpu[0] && host->cpuacct[0] ? NULL
							 : "a controller is missing: the watchdog "
							   "enforces --cpus or --cpu-time",
			NULL);
		return;
	}
	/* What the facts show comes first: it is more precise than what the attempt itself could
	 * see. */
	causes_find(&d->situation, SUBJECT_CGROUP, &(struct probe){ 0 }, d->arena, &cause, &remedy);
	if (host->why[0] != '\0')
		cause = arena_text(d->arena, host->why);
	if (host->hint[0] != '\0' && !remedy)
		remedy = arena_text(d->arena, host->hint);
	add(d, "cgroups", CHECK_WARN, "none is writable: rlimits and a watchdog enforce limits",
		cause, remedy);
}

static void check_limits(struct doctor *d)
{
	d->group = "limits";
	check_cgroups(d);
	check_ids(d);
	if (d->facts->home_dir.error == 0) {
		static const char *const names[] = { "counted: approximate",
			"project quota: exact, enforced by the kernel",
			"btrfs qgroups: exact, enforced by the kernel" };
		const char *why = d->facts->quota_why ? d->facts->quota_why : "";
		add(d, "disk quota", CHECK_OK,
			d->facts->quota == QUOTA_COUNTED && why[0] != '\0'
				? arena_printf(d->arena,
					  "counted by reading directories (%s): approximate%s", why,
					  d->facts->uid ? "" : "; carrel home init makes it exact")
				: names[d->facts->quota],
			NULL, NULL);
	}
}

/* Environments and workspaces stand on these; `carrel run` alone doesn't, but for root's home. */
static void check_storage(struct doctor *d)
{
	const struct facts *facts = d->facts;
	const char *lowers =
		facts->overlay_lowers > 0
			? arena_printf(d->arena, "in a user namespace; lowerdir+ takes %d layers",
				  facts->overlay_lowers)
			: "in a user namespace; without lowerdir+ (before 6.8), so fewer layers";

	d->group = "storage";
	add_probe(d, "overlay", SUBJECT_OVERLAY, &facts->overlay, CHECK_WARN, lowers);
	add_probe(d, "tmpfs xattrs", SUBJECT_TMPFS_XATTR, &facts->tmpfs_xattr, CHECK_WARN,
		"user.* can be set");
	/* Root's sandboxes take their uids there; a plain user's need no home yet. */
	add_probe(d, "home", SUBJECT_HOME, &facts->home_dir,
		facts->uid == 0 ? CHECK_FAIL : CHECK_WARN, facts->home);
	if (facts->home_dir.error != 0)
		return;
	add_probe(d, "overlay on home", SUBJECT_HOME_OVERLAY, &facts->home_overlay, CHECK_WARN,
		"can hold upper layers");
	if (facts->uid == 0)
		add_probe(d, "idmapped home", SUBJECT_IDMAP, &facts->home_idmap, CHECK_WARN,
			"owners are translated");
}

static void check_programs(struct doctor *d)
{
	d->group = "programs";
	for (int i = 0; i < FACTS_PROGRAMS; i++) {
		const struct facts_program *program = &d->facts->programs[i];
		const char *name = facts_program_names[i];

		if (!program->is_there)
			add(d, name, CHECK_WARN, "not found", NULL,
				arena_printf(d->arena, "install %s %s", name, program_uses[i]));
		else
			add(d, name, CHECK_OK,
				arena_printf(d->arena, "%s%s",
					program->version ? program->version
							 : "found, but does not print its version",
					program->is_own ? ", fetched into carrel's home" : ""),
				NULL, NULL);
	}
}

static void check_run(struct doctor *d)
{
	const struct facts *facts = d->facts;
	static const char *const mechanisms[] = { "a watchdog", "cgroup-v1", "cgroup-v2" };

	d->group = "verdict";
	if (facts->run_exit == 0)
		add(d, "carrel run", CHECK_OK,
			arena_printf(d->arena,
				"works with all layers (/bin/true in %llu ms); limits by %s",
				(unsigned long long)facts->run_ms,
				mechanisms[facts->cgroup_host.version]),
			NULL, NULL);
	else
		add(d, "carrel run", CHECK_FAIL,
			facts->run_error ? facts->run_error
			: facts->run_exit < 0
				? "could not be run"
				: arena_printf(d->arena, "ended with %d", facts->run_exit),
			NULL, facts->run_hint);
}

void diagnose(const struct facts *facts, struct arena *arena, check_list *checks)
{
	struct doctor d = { facts, arena, checks, .group = "host" };

	situation_read(facts, arena, &d.situation);
	check_kernel(&d);
	if (d.situation.place)
		add(&d, "runs in", CHECK_OK, d.situation.place, NULL, NULL);
	check_isolation(&d);
	check_limits(&d);
	check_storage(&d);
	check_programs(&d);
	check_run(&d);
}
