#include "cli/causes.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/diagnose.h"
#include "format/procfs.h"

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

static void read_mounts(const struct facts *facts, struct arena *arena, struct situation *out)
{
	/* Mount points the kernel itself keeps empty: it doesn't mind when they are covered. */
	static const char *const harmless[] = { "/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd" };
	struct str rest = str_from(facts->mountinfo ? facts->mountinfo : ""),
		   home = str_from(facts->home);
	struct procfs_mount mount;
	struct buf covered;
	size_t home_len = 0;
	bool has_root = false, has_proc = false;

	buf_init(&covered, 4096);
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
	buf_done(&covered);
}

static void read_place(const struct facts *facts, struct arena *arena, struct situation *out)
{
	out->unit = find_unit(arena, facts->cgroup);
	if (facts->has_kubernetes_env) {
		out->traits |= IN_KUBERNETES;
		out->place = "a Kubernetes pod, by $KUBERNETES_SERVICE_HOST";
	} else if (facts->has_dockerenv) {
		out->traits |= IN_DOCKER;
		out->place = "a Docker container, by /.dockerenv";
	} else if (facts->has_podmanenv) {
		out->traits |= IN_PODMAN;
		out->place = "a Podman container, by /run/.containerenv";
	} else if (out->unit[0] != '\0') {
		out->traits |= IN_UNIT;
		out->place = arena_printf(arena, "systemd unit %s", out->unit);
	}
}

void situation_read(const struct facts *facts, struct arena *arena, struct situation *out)
{
	const char *label = trimmed(arena, facts->label);

	memset(out, 0, sizeof *out);
	out->traits = facts->uid == 0 ? IS_ROOT : IS_PLAIN;
	out->exe = facts->exe;
	out->home = facts->home;
	out->label = label;
	out->lsm = trimmed(arena, facts->lsm);
	read_place(facts, arena, out);
	read_mounts(facts, arena, out);
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
		{ "{exe}", s->exe },
		{ "{home}", s->home },
		{ "{unit}", s->unit },
		{ "{label}", s->label },
		{ "{covered}", s->covered },
		{ "{lsm}", s->lsm },
		{ "{namespace}", s->namespace_name },
	};
	struct buf out;

	if (!text)
		return NULL;
	buf_init(&out, 16384);
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
	const char *expanded = arena_text(arena, out.data);
	buf_done(&out);
	return expanded;
}

void causes_find(const struct situation *situation, enum subject subject, const struct probe *probe,
	struct arena *arena, const char **cause, const char **remedy)
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
