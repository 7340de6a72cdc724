#include "cli/daemon/diagnose.h"

#include "envs/python/uv.h"
#include "format/text/procfs.h"
#include "sandbox/native/slot.h"

/* -- why a thing can't be done on this host, and what to type -- */

enum subject { /* what was tried */
	SUBJECT_USERNS = 1 << 0,
	SUBJECT_NAMESPACE = 1 << 1,
	SUBJECT_PROC = 1 << 2,
	SUBJECT_MOUNT_API = 1 << 3,
	SUBJECT_CLONE3 = 1 << 4,
	SUBJECT_SECCOMP = 1 << 5,
	SUBJECT_LANDLOCK = 1 << 6,
	SUBJECT_MEMFD = 1 << 7,
	SUBJECT_OVERLAY = 1 << 8,
	SUBJECT_HOME = 1 << 9,
	SUBJECT_HOME_OVERLAY = 1 << 10,
	SUBJECT_IDMAP = 1 << 11,
	SUBJECT_TMPFS_XATTR = 1 << 12,
	SUBJECT_CGROUP = 1 << 13,
};

/* What the facts' texts say about where we are. */
struct situation {
	const struct facts *facts;
	unsigned traits;
	const char *place;   /* "a Docker container", "unit a.service", NULL: nothing of the kind */
	const char *unit;    /* the systemd service we run in, or "" */
	const char *label;   /* AppArmor's or SELinux's, or "" */
	const char *covered; /* what is mounted over parts of /proc, separated by blanks, or "" */
	const char *lsm;
	const char *namespace_name; /* as in user.max_<name>_namespaces, for SUBJECT_NAMESPACE */
	bool namespace_is_zero;	    /* … and that sysctl is 0 */
};

enum trait {
	IS_ROOT = 1 << 0,
	IS_PLAIN = 1 << 1,
	SECCOMP_ON = 1 << 2, /* a filter is on us already */
	IN_DOCKER = 1 << 3,
	IN_PODMAN = 1 << 4,
	IN_KUBERNETES = 1 << 5,
	IN_UNIT = 1 << 6,
	IN_CHROOT = 1 << 7,
	APPARMOR_RESTRICTS =
		1 << 8, /* Ubuntu 24.04: unprivileged user namespaces get no capabilities */
	USERNS_CLONE_OFF = 1 << 9,
	USERNS_MAX_ZERO = 1 << 10,
	NAMESPACE_MAX_ZERO = 1 << 11,
	LABELLED = 1 << 12, /* confined by AppArmor or SELinux */
	PROC_COVERED = 1 << 13,
	PROC_READ_ONLY = 1 << 14,
	PROC_ABSENT = 1 << 15,
	MEMFD_NOEXEC = 1 << 16,
	HOME_ON_OVERLAY = 1 << 17,
	CGROUP_READ_ONLY = 1 << 18,
	SYSTEMD_USER = 1 << 19,
	SYSTEMD = 1 << 20,	   /* is the host's init */
	LANDLOCK_LISTED = 1 << 21, /* in /sys/kernel/security/lsm */
	LSM_KNOWN = 1 << 22,
	AT_CLONE = 1 << 23, /* of the probe: it failed at clone already … */
	AT_LATER = 1 << 24, /* … or in what followed */
};

struct rule {
	unsigned subjects;
	int error;		    /* 0: any */
	unsigned needs;		    /* all of these traits */
	const char *cause, *remedy; /* {sudo} {exe} … are filled in; NULL remedy: none is known */
};

#define NAMESPACES (SUBJECT_USERNS | SUBJECT_NAMESPACE)
#define CLONES (NAMESPACES | SUBJECT_CLONE3)
/* What a seccomp filter around us may refuse. */
#define FILTERED (CLONES | SUBJECT_MOUNT_API | SUBJECT_OVERLAY | SUBJECT_SECCOMP | SUBJECT_MEMFD)

#define DOCKER_REMEDY                                                                              \
	"docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined "         \
	"--security-opt systempaths=unconfined …"
#define PODMAN_REMEDY                                                                              \
	"podman run --security-opt seccomp=unconfined --security-opt unmask=ALL --security-opt "   \
	"label=disable …"
#define KUBERNETES_REMEDY                                                                          \
	"in the pod: hostUsers: false\n"                                                           \
	"in the container's securityContext: seccompProfile: {type: Unconfined}, "                 \
	"appArmorProfile: {type: Unconfined}, "                                                    \
	"procMount: Unmasked"
#define UNIT_EDIT "{sudo}systemctl edit {unit}\n"
#define UNIT_RESTART "\n{sudo}systemctl restart {unit}"

static const struct rule rules[] = {
	/* The count of namespaces */
	{ SUBJECT_USERNS, ENOSPC, USERNS_MAX_ZERO, "user.max_user_namespaces is 0",
		"{sudo}sysctl -w user.max_user_namespaces=15000" },
	{ SUBJECT_NAMESPACE, ENOSPC, NAMESPACE_MAX_ZERO, "user.max_{namespace}_namespaces is 0",
		"{sudo}sysctl -w user.max_{namespace}_namespaces=15000" },
	{ NAMESPACES, ENOSPC, 0,
		"a limit of namespaces is reached, in this user namespace or in one above it, or "
		"they are nested 32 deep",
		"sysctl -a --pattern '^user.max_.*_namespaces'" },

	/* Who may make them */
	{ SUBJECT_USERNS, EPERM, AT_CLONE | USERNS_CLONE_OFF | IS_PLAIN,
		"kernel.unprivileged_userns_clone is 0",
		"{sudo}sysctl -w kernel.unprivileged_userns_clone=1" },
	{ CLONES, EPERM, IN_CHROOT, "the kernel gives no user namespace to a process in a chroot",
		"run carrel outside of the chroot, or enter that tree with pivot_root "
		"(systemd-nspawn, bwrap)" },
	{ SUBJECT_LANDLOCK, 0, LANDLOCK_LISTED | SECCOMP_ON | IN_DOCKER,
		"Docker's seccomp filter refuses Landlock", DOCKER_REMEDY },
	{ SUBJECT_LANDLOCK, 0, LANDLOCK_LISTED | SECCOMP_ON,
		"a seccomp filter around this process refuses Landlock",
		"allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in "
		"it" },
	{ SUBJECT_LANDLOCK, EOPNOTSUPP, LSM_KNOWN,
		"Landlock isn't among the kernel's active security modules ({lsm})",
		"in /etc/default/grub add lsm=landlock,{lsm} to "
		"GRUB_CMDLINE_LINUX\n{sudo}update-grub && {sudo}reboot" },
	{ SUBJECT_LANDLOCK, EOPNOTSUPP, 0,
		"Landlock isn't built into this kernel, or isn't enabled",
		"add landlock to the lsm= parameter of the kernel's command line; it needs "
		"CONFIG_SECURITY_LANDLOCK=y" },

	{ SUBJECT_MEMFD, 0, MEMFD_NOEXEC, "vm.memfd_noexec is 2",
		"{sudo}sysctl -w vm.memfd_noexec=1" },

	/* Filters and labels of what we run in */
	{ FILTERED, 0, SECCOMP_ON | IN_KUBERNETES, "the pod's seccomp profile refuses it",
		KUBERNETES_REMEDY },
	{ FILTERED, 0, SECCOMP_ON | IN_DOCKER, "Docker's seccomp filter refuses it",
		DOCKER_REMEDY },
	{ FILTERED, 0, SECCOMP_ON | IN_PODMAN, "Podman's seccomp filter refuses it",
		PODMAN_REMEDY },
	{ FILTERED, 0, SECCOMP_ON | IN_UNIT,
		"unit {unit} is hardened (RestrictNamespaces= or SystemCallFilter=)",
		UNIT_EDIT "[Service]\nRestrictNamespaces=no\nSystemCallFilter=" UNIT_RESTART },
	{ FILTERED, 0, SECCOMP_ON, "a seccomp filter around this process refuses it",
		"start carrel without that filter, or allow clone, clone3, unshare and the mount "
		"calls in it" },
	{ NAMESPACES, 0, AT_LATER | LABELLED | IN_KUBERNETES,
		"the pod's security label refuses mounts ({label})", KUBERNETES_REMEDY },
	{ NAMESPACES, 0, AT_LATER | LABELLED | IN_DOCKER,
		"Docker's security label refuses mounts ({label})", DOCKER_REMEDY },
	{ NAMESPACES, 0, AT_LATER | LABELLED | IN_PODMAN,
		"Podman's security label refuses mounts ({label})", PODMAN_REMEDY },
	/* AppArmor lets the clone pass and takes the capabilities away: what follows it fails. */
	{ NAMESPACES, 0, AT_LATER | APPARMOR_RESTRICTS | IS_PLAIN,
		"AppArmor restricts unprivileged user namespaces "
		"(kernel.apparmor_restrict_unprivileged_userns is 1)",
		"printf 'abi <abi/4.0>,\\nprofile carrel \"{exe}\" flags=(unconfined) {\\n  "
		"userns,\\n}\\n' | "
		"{sudo}tee /etc/apparmor.d/carrel && {sudo}apparmor_parser -r "
		"/etc/apparmor.d/carrel\n"
		"or, for every program: {sudo}sysctl -w "
		"kernel.apparmor_restrict_unprivileged_userns=0" },
	{ NAMESPACES, 0, AT_LATER | LABELLED,
		"the security label of this process refuses mounts ({label})",
		"run carrel unconfined, or allow userns and mount in that profile" },
	{ NAMESPACES, EPERM, AT_LATER | IS_ROOT,
		"root lacks CAP_SETUID, CAP_SETGID or CAP_SYS_ADMIN here",
		"give this process all capabilities of root, or run carrel as a plain user" },
	{ NAMESPACES, EPERM, AT_CLONE,
		"the kernel refuses it: this process is in a chroot, or a security module denies "
		"it",
		NULL },
	{ NAMESPACES, EINVAL, 0, "this kernel is built without that namespace",
		"use a kernel with CONFIG_USER_NS and CONFIG_*_NS" },

	/* A fresh proc is refused while anything covers a part of the one we see. */
	{ SUBJECT_PROC, EPERM, PROC_COVERED | IN_KUBERNETES,
		"Kubernetes masks parts of /proc: {covered}", KUBERNETES_REMEDY },
	{ SUBJECT_PROC, EPERM, PROC_COVERED | IN_DOCKER, "Docker masks parts of /proc: {covered}",
		DOCKER_REMEDY },
	{ SUBJECT_PROC, EPERM, PROC_COVERED | IN_PODMAN, "Podman masks parts of /proc: {covered}",
		PODMAN_REMEDY },
	{ SUBJECT_PROC, EPERM, PROC_COVERED | IN_UNIT,
		"unit {unit} masks parts of /proc: {covered}",
		UNIT_EDIT "[Service]\nProtectKernelTunables=no\nProtectKernelLogs="
			  "no\nProtectControlGroups=no" UNIT_RESTART },
	{ SUBJECT_PROC, EPERM, PROC_COVERED,
		"parts of /proc are covered by other mounts: {covered}", "{sudo}umount {covered}" },
	{ SUBJECT_PROC, EPERM, PROC_READ_ONLY, "/proc is mounted read-only",
		"{sudo}mount -o remount,rw /proc" },
	{ SUBJECT_PROC, EPERM, PROC_ABSENT, "this mount namespace has no complete /proc",
		"{sudo}mount -t proc proc /proc" },

	/* Kernels */
	{ SUBJECT_MOUNT_API | SUBJECT_CLONE3, ENOSYS, 0,
		"this kernel is older than 5.12, or a seccomp filter around carrel hides the call",
		"update the kernel to 6.1 or later" },
	{ SUBJECT_SECCOMP, EINVAL, 0, "this kernel is built without seccomp filters",
		"use a kernel with CONFIG_SECCOMP_FILTER" },

	/* Storage */
	{ SUBJECT_OVERLAY | SUBJECT_HOME_OVERLAY, ENODEV, 0, "the overlay module isn't loaded",
		"{sudo}modprobe overlay" },
	{ SUBJECT_HOME_OVERLAY, 0, HOME_ON_OVERLAY | IN_DOCKER,
		"{home} is on the container's own overlay", "docker run -v carrel:{home} …" },
	{ SUBJECT_HOME_OVERLAY, 0, HOME_ON_OVERLAY,
		"{home} is on an overlay file system, which can't hold upper layers",
		"export CARREL_HOME=DIRECTORY (on ext4, xfs or btrfs)" },
	{ SUBJECT_HOME_OVERLAY, 0, 0,
		"the file system of {home} lacks user.* attributes, d_type or whiteouts",
		"export CARREL_HOME=DIRECTORY (on ext4, xfs or btrfs)" },
	{ SUBJECT_IDMAP, EINVAL, 0, "the file system of {home} can't be mounted idmapped",
		"export CARREL_HOME=DIRECTORY (on ext4, xfs or btrfs)" },
	{ SUBJECT_IDMAP, EPERM, 0, "root lacks CAP_SYS_ADMIN where that file system was mounted",
		"run carrel as root of the host, or as a plain user" },
	{ SUBJECT_TMPFS_XATTR, EOPNOTSUPP, 0,
		"this kernel is older than 6.6, or built without CONFIG_TMPFS_XATTR",
		"update the kernel; until then temporary layers are on disk" },
	{ SUBJECT_HOME, 0, 0, "neither {home} nor the directory above it is writable",
		"export CARREL_HOME=DIRECTORY (that you can write to)" },

	/* Control groups */
	{ SUBJECT_CGROUP, 0, SYSTEMD_USER | IS_PLAIN,
		"this session's control group isn't delegated to you",
		"systemd-run --user --scope -p Delegate=yes carrel run …" },
	{ SUBJECT_CGROUP, 0, CGROUP_READ_ONLY | IN_KUBERNETES,
		"the control groups are mounted read-only",
		"in the container's securityContext: privileged: true, if memory limits must be "
		"exact" },
	{ SUBJECT_CGROUP, 0, CGROUP_READ_ONLY | IN_DOCKER,
		"the control groups are mounted read-only",
		"docker run --cgroupns=private -v /sys/fs/cgroup:/sys/fs/cgroup:rw …, if memory "
		"limits must be exact" },
	{ SUBJECT_CGROUP, 0, CGROUP_READ_ONLY | IS_ROOT, "the control groups are mounted read-only",
		"{sudo}mount -o remount,rw /sys/fs/cgroup" },
	{ SUBJECT_CGROUP, 0, IS_PLAIN | SYSTEMD, "no control group is delegated to you",
		"{sudo}loginctl enable-linger $USER, log in again, then: "
		"systemd-run --user --scope -p Delegate=yes carrel run …" },
	{ SUBJECT_CGROUP, 0, IS_PLAIN, "no control group is delegated to you",
		"run carrel as root, if memory limits must be exact" },
	{ SUBJECT_CGROUP, 0, IS_ROOT, "no memory controller is mounted",
		"{sudo}mount -t cgroup2 cgroup2 /sys/fs/cgroup" },
};

/* Blanks at the ends gone, or "" for a file that wasn't there. */
static const char *trimmed(struct arena *arena, const char *text)
{
	struct str s = str_trim(str_from(text ? text : ""));
	return arena_bytes(arena, s.data, s.len);
}

static bool is_number(const char *text, const char *number)
{
	return text != NULL && str_is(str_trim(str_from(text)), number);
}

/* The value of `key` in /proc/self/status ("Seccomp:\t2"). */
static bool status_is(const char *status, const char *key, const char *value)
{
	struct str rest = str_from(status ? status : ""), line, head, tail;
	while (str_next(&rest, '\n', &line))
		if (str_cut(line, ':', &head, &tail) && str_is(head, key))
			return str_is(str_trim(tail), value);
	return false;
}

/* The service that we run in: the last component of our group, when it is one. */
static const char *find_unit(struct arena *arena, const char *cgroup)
{
	struct str rest = str_from(cgroup ? cgroup : "");
	struct procfs_cgroup line;
	while (procfs_next_cgroup(&rest, &line)) {
		struct str path = line.path, name = { "", 0 };
		if (line.controllers.len > 0 && !str_is(line.controllers, "name=systemd"))
			continue;
		while (str_next(&path, '/', &name))
			;
		if (name.len > 8 && memcmp(name.data + name.len - 8, ".service", 8) == 0)
			return arena_bytes(arena, name.data, name.len);
	}
	return "";
}

static bool is_beneath(struct str path, const char *dir)
{
	size_t len = strlen(dir);
	return path.len > len && path.data[len] == '/' && memcmp(path.data, dir, len) == 0;
}

static void read_mounts(struct arena *arena, struct situation *out)
{
	/* Mount points the kernel itself keeps empty: it doesn't mind when they are covered. */
	static const char *const harmless[] = { "/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd" };
	const struct facts *facts = out->facts;
	struct str rest = str_from(facts->mountinfo ? facts->mountinfo : ""),
		   home = str_from(facts->home);
	struct procfs_mount mount;
	size_t home_len = 0;
	bool has_root = false, has_proc = false;
	auto_buf struct buf covered = buf_empty(4096);
	while (procfs_next_mount(&rest, &mount)) {
		bool is_harmless = false, is_read_only = procfs_has_word(mount.options, "ro");
		has_root |= str_is(mount.target, "/");
		if (str_is(mount.type, "proc") && str_is(mount.root, "/")) {
			has_proc = true;
			if (str_is(mount.target, "/proc") && is_read_only)
				out->traits |= PROC_READ_ONLY;
		}
		for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
			is_harmless |= str_is(mount.target, harmless[i]);
		if (is_beneath(mount.target, "/proc") && !is_harmless) {
			buf_printf(&covered, "%s%.*s", covered.len > 0 ? " " : "",
				(int)mount.target.len, mount.target.data);
			out->traits |= PROC_COVERED;
		}
		if (str_starts_with(mount.type, "cgroup") && is_read_only)
			out->traits |= CGROUP_READ_ONLY;
		/* The last of the longest targets above the home is the file system it is on. */
		size_t len = str_is(mount.target, "/") ? 0 : mount.target.len;
		if (len >= home_len && home.len >= len &&
			memcmp(home.data, mount.target.data, len) == 0 &&
			(home.len == len || home.data[len] == '/')) {
			home_len = len;
			out->traits &= ~(unsigned)HOME_ON_OVERLAY;
			if (str_is(mount.type, "overlay"))
				out->traits |= HOME_ON_OVERLAY;
		}
	}
	if (facts->mountinfo && !has_root)
		out->traits |= IN_CHROOT;
	if (!has_proc)
		out->traits |= PROC_ABSENT;
	out->covered = arena_text(arena, covered.data);
}

static void read_place(struct arena *arena, struct situation *out)
{
	const struct facts *facts = out->facts;
	out->unit = find_unit(arena, facts->cgroup);
	const struct {
		bool is_so;
		unsigned trait;
		const char *place;
	} places[] = {
		{ facts->has_kubernetes_env, IN_KUBERNETES,
			"a Kubernetes pod, by $KUBERNETES_SERVICE_HOST" },
		{ facts->has_dockerenv, IN_DOCKER, "a Docker container, by /.dockerenv" },
		{ facts->has_podmanenv, IN_PODMAN, "a Podman container, by /run/.containerenv" },
		{ out->unit[0] != 0, IN_UNIT, arena_printf(arena, "systemd unit %s", out->unit) },
	};
	for (size_t i = 0; i < sizeof places / sizeof *places && !out->place; i++)
		if (places[i].is_so) {
			out->traits |= places[i].trait;
			out->place = places[i].place;
		}
}

static void situation_read(const struct facts *facts, struct arena *arena, struct situation *out)
{
	const char *label = trimmed(arena, facts->label);
	*out = (struct situation){ .facts = facts,
		.traits = facts->uid == 0 ? IS_ROOT : IS_PLAIN,
		.label = label,
		.lsm = trimmed(arena, facts->lsm) };
	read_place(arena, out);
	read_mounts(arena, out);
	const struct {
		bool is_so;
		unsigned trait;
	} claims[] = {
		{ status_is(facts->status, "Seccomp", "2"), SECCOMP_ON },
		{ is_number(facts->apparmor_restrict, "1"), APPARMOR_RESTRICTS },
		{ is_number(facts->userns_clone, "0"), USERNS_CLONE_OFF },
		{ is_number(facts->max_namespaces[0], "0"), USERNS_MAX_ZERO },
		{ is_number(facts->memfd_noexec, "2"), MEMFD_NOEXEC },
		/* AppArmor says "unconfined" or "name (unconfined)", SELinux "…:unconfined_t:…" or
		   "kernel". */
		{ label[0] != '\0' && strstr(label, "unconfined") == NULL &&
				strcmp(label, "kernel") != 0,
			LABELLED },
		{ facts->has_systemd, SYSTEMD },
		{ facts->has_systemd_user, SYSTEMD_USER },
		{ out->lsm[0] != '\0', LSM_KNOWN },
		{ procfs_has_word(str_from(out->lsm), "landlock"), LANDLOCK_LISTED },
	};
	for (size_t i = 0; i < sizeof claims / sizeof *claims; i++)
		if (claims[i].is_so)
			out->traits |= claims[i].trait;
}

/* Fills in {name}; any other brace stays. NULL for NULL. */
static const char *expand(const struct situation *s, const char *text, struct arena *arena)
{
	const struct {
		const char *name, *value;
	} words[] = {
		{ "{sudo}", s->traits & IS_ROOT ? "" : "sudo " },
		{ "{exe}", s->facts->exe },
		{ "{home}", s->facts->home },
		{ "{unit}", s->unit },
		{ "{label}", s->label },
		{ "{covered}", s->covered },
		{ "{lsm}", s->lsm },
		{ "{namespace}", s->namespace_name },
	};
	auto_buf struct buf out = buf_empty(16384);
	if (!text)
		return NULL;
	while (*text != '\0') {
		size_t i = 0;
		while (i < sizeof words / sizeof *words &&
			strncmp(text, words[i].name, strlen(words[i].name)) != 0)
			i++;
		if (i < sizeof words / sizeof *words) {
			buf_text(&out, words[i].value ? words[i].value : "");
			text += strlen(words[i].name);
		} else {
			buf_char(&out, *text++);
		}
	}
	return arena_text(arena, out.data);
}

/* Sets *cause and *remedy (to text in the arena) where a rule fits: the first that does counts. */
static void find_cause(const struct situation *situation, enum subject subject,
	const struct probe *probe, struct arena *arena, const char **cause, const char **remedy)
{
	unsigned traits = situation->traits;
	traits |= strcmp(probe->step, "clone") == 0 ? AT_CLONE : AT_LATER;
	if (situation->namespace_is_zero)
		traits |= NAMESPACE_MAX_ZERO;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		const struct rule *rule = &rules[i];
		if (!(rule->subjects & subject) ||
			(rule->error != 0 && rule->error != probe->error) ||
			(rule->needs & traits) != rule->needs)
			continue;
		*cause = expand(situation, rule->cause, arena);
		*remedy = expand(situation, rule->remedy, arena);
		return;
	}
}

/* -- the lines -- */

const char *const facts_namespace_names[FACTS_NAMESPACES] = { "mount", "pid", "net", "ipc", "uts",
	"cgroup" };
const char *const facts_program_names[FACTS_PROGRAMS] = { "python3", "uv", "node", "npm", "bun",
	"git", "crun", "runc", "runsc" };

/* Why one would install a program that is missing. Nothing of `carrel run` itself needs any. */
static const char *const program_uses[FACTS_PROGRAMS] = {
	"so that sandboxes have a Python",
	("so that the first environment need not fetch it (only " UV_VERSION " is used)"),
	"so that sandboxes have a Node",
	"so that builds of Node environments know the npm registry without configuration",
	"for use outside of carrel: builds of Node environments fetch their own",
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

static void add_ok(struct doctor *d, const char *name, const char *detail)
{
	add(d, name, CHECK_OK, detail, NULL, NULL);
}

/* The line of a probe. What it costs when it fails is `worst`; a probe that wasn't tried costs
 * nothing of its own. */
static void add_probe(struct doctor *d, const char *name, enum subject subject,
	const struct probe *probe, enum check_status worst, const char *good)
{
	const char *cause = NULL, *remedy = NULL;
	if (probe->error == 0) {
		add_ok(d, name, good);
		return;
	}
	if (probe->error == PROBE_SKIPPED) {
		add(d, name, CHECK_WARN, "not tried", arena_text(d->arena, probe->step), NULL);
		return;
	}
	find_cause(&d->situation, subject, probe, d->arena, &cause, &remedy);
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
		add_ok(d, "kernel", d->facts->release);
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
		add_ok(d, "namespaces", "mount pid net ipc uts cgroup");
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
	auto_buf struct buf lost = buf_empty(4096);
	for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
		if (abi < rights[i].since)
			buf_printf(&lost, "%s%s", lost.len > 0 ? "; " : "", rights[i].lost);
	const char *detail = arena_printf(d->arena, "ABI %d%s", abi,
		d->facts->landlock_writes ? "; restricts writes only (system.landlock)" : "");
	if (lost.len > 0)
		add(d, "landlock", CHECK_WARN, detail, arena_text(d->arena, lost.data),
			"update the kernel: ABI 6 came with 6.12");
	else
		add_ok(d, "landlock", detail);
}

/* What is left where user namespaces can't be had. It is not a layer: it never counts as a failure.
 */
static void check_weak(struct doctor *d)
{
	const struct facts *facts = d->facts;
	bool has_uid =
		facts->uid != 0 || slot_range_from(facts->uid_map ? facts->uid_map : "").count;
	bool can = facts->landlock_abi > 0 && !facts->landlock.error && !facts->seccomp.error &&
		   !facts->memfd_exec.error && has_uid;
	const char *remark = !can ? "Landlock, seccomp, memfd exec or a uid besides root is missing"
			     : facts->landlock_abi < 6
				     ? "before ABI 6 the command can signal your other processes"
				     : NULL;
	add(d, "weaker mode", can && !remark ? CHECK_OK : CHECK_WARN,
		can ? "--isolation landlock can be had; it is weaker and must be asked for"
		    : "--isolation landlock can't be had",
		remark, NULL);
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
	check_weak(d);
	if (d->situation.label[0] != '\0')
		add_ok(d, "security label", d->situation.label);
}

static void check_ids(struct doctor *d)
{
	const struct facts *facts = d->facts;
	struct slot_range range = slot_range_from(facts->uid_map ? facts->uid_map : "");
	if (facts->uid != 0)
		add_ok(d, "ids",
			arena_printf(d->arena, "sandboxes run under your own uid, %u", facts->uid));
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
	find_cause(&d->situation, SUBJECT_CGROUP, &(struct probe){ 0 }, d->arena, &cause, &remedy);
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
			add_ok(d, name,
				arena_printf(d->arena, "%s%s",
					program->version ? program->version
							 : "found, but does not print its version",
					program->is_own ? ", fetched into carrel's home" : ""));
	}
}

static void check_run(struct doctor *d)
{
	const struct facts *facts = d->facts;
	static const char *const mechanisms[] = { "a watchdog", "cgroup-v1", "cgroup-v2" };
	d->group = "verdict";
	if (facts->run_exit == 0)
		add_ok(d, "carrel run",
			arena_printf(d->arena,
				"works with all layers (/bin/true in %llu ms); limits by %s",
				(unsigned long long)facts->run_ms,
				mechanisms[facts->cgroup_host.version]));
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
		add_ok(&d, "runs in", d.situation.place);
	check_isolation(&d);
	check_limits(&d);
	check_storage(&d);
	check_programs(&d);
	check_run(&d);
}
