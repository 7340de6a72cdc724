#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "cli/daemon/diagnose.h"
#include "unit.h"

#define complain(...) (print_error(__VA_ARGS__), assert_true(false))

#define STATUS_FREE "Name:\tcarrel\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n"
#define STATUS_FILTERED "Name:\tcarrel\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"
#define ROOT_MOUNT "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
#define PROC_MOUNT "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
#define BINFMT_MOUNT "50 22 0:40 / /proc/sys/fs/binfmt_misc rw - binfmt_misc binfmt_misc rw\n"
/* As Docker and containerd leave it. */
#define DOCKER_MOUNTS                                                                              \
	"600 500 0:50 / / rw,relatime - overlay overlay rw,lowerdir=l,upperdir=u,workdir=w\n"      \
	"601 600 0:51 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw\n"                    \
	"602 600 0:53 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw\n"      \
	"603 601 0:51 /sys /proc/sys ro,nosuid,nodev,noexec,relatime - proc proc rw\n"             \
	"604 601 0:55 / /proc/acpi ro,relatime - tmpfs tmpfs ro\n"                                 \
	"605 601 0:52 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw,size=65536k\n"
#define SESSION "0::/user.slice/user-1000.slice/session-2.scope\n"

/* A plain user on a host where everything works, cgroups aside. */
static struct facts good(void)
{
	struct facts facts = {
		.uid = 1000,
		.exe = "/opt/carrel",
		.release = "6.8.0-45-generic",
		.home = "/home/ada/.local/share/carrel",
		.status = STATUS_FREE,
		.mountinfo = ROOT_MOUNT PROC_MOUNT BINFMT_MOUNT,
		.cgroup = SESSION,
		.uid_map = "         0          0 4294967295\n",
		.lsm = "lockdown,capability,landlock,yama,apparmor",
		.overlay_lowers = 500,
		.landlock_abi = 6,
		.quota_why = "ext4: project quota is off",
		.cgroup_host = { .version = CGROUP_V1,
			.memory = "/m",
			.cpu = "/c",
			.cpuacct = "/a" },
	};
	for (int i = 0; i <= FACTS_NAMESPACES; i++)
		facts.max_namespaces[i] = "96349\n";
	for (int i = 0; i < FACTS_PROGRAMS; i++)
		facts.programs[i] = (struct facts_program){ true, false, "1.2.3" };
	return facts;
}

/* What a kernel that refuses user namespaces leaves of the rest. */
static void refuse_userns(struct facts *facts, int error, const char *step)
{
	facts->user_namespace.error = error;
	str_copy(facts->user_namespace.step, sizeof facts->user_namespace.step, step);
	for (int i = 0; i < FACTS_NAMESPACES; i++)
		facts->namespaces[i] =
			(struct probe){ PROBE_SKIPPED, "not tried: user namespaces don't work" };
	facts->fresh_proc = facts->mount_api = facts->namespaces[0];
	facts->run_exit = 125;
	facts->run_error = "no sandbox";
}

static void ubuntu_24_04(struct facts *facts)
{
	facts->apparmor_restrict = "1\n";
	facts->label = "unconfined\n";
	refuse_userns(facts, EPERM, "mount tmpfs");
}

static void docker(struct facts *facts)
{
	facts->uid = 0;
	facts->has_dockerenv = true;
	facts->status = STATUS_FILTERED;
	facts->label = "docker-default (enforce)\n";
	facts->mountinfo = DOCKER_MOUNTS;
	facts->cgroup = "0::/\n";
	facts->home = "/var/lib/carrel";
	facts->cgroup_host = (struct cgroup_host){ .version = CGROUP_NONE };
}

static void docker_default(struct facts *facts)
{
	docker(facts);
	refuse_userns(facts, EPERM, "clone");
}

static void docker_without_filter(struct facts *facts)
{
	docker(facts);
	facts->status = STATUS_FREE;
	refuse_userns(facts, EACCES, "mount tmpfs");
}

static void docker_masked(struct facts *facts)
{
	docker(facts);
	facts->status = STATUS_FREE;
	facts->label = NULL;
	facts->fresh_proc = (struct probe){ EPERM, "mount proc" };
	facts->home_overlay = (struct probe){ EINVAL, "fsconfig create" };
}

static void kubernetes(struct facts *facts)
{
	docker(facts);
	facts->has_dockerenv = false;
	facts->has_kubernetes_env = true;
	facts->label = NULL;
}

static void kubernetes_default(struct facts *facts)
{
	kubernetes(facts);
	refuse_userns(facts, EPERM, "clone");
}

static void kubernetes_masked(struct facts *facts)
{
	kubernetes(facts);
	facts->fresh_proc = (struct probe){ EPERM, "mount proc" };
}

static void podman_masked(struct facts *facts)
{
	docker(facts);
	facts->has_dockerenv = false;
	facts->has_podmanenv = true;
	facts->fresh_proc = (struct probe){ EPERM, "mount proc" };
}

static void hardened_unit(struct facts *facts)
{
	facts->cgroup = "0::/system.slice/agent-runner.service\n";
	facts->status = STATUS_FILTERED;
	refuse_userns(facts, EPERM, "clone");
}

static void hardened_unit_on_v1(struct facts *facts)
{
	hardened_unit(facts);
	facts->cgroup = "4:memory:/system.slice/x.service\n1:name=systemd:/system.slice/"
			"agent-runner.service\n0::/\n";
}

static void unit_with_masked_proc(struct facts *facts)
{
	hardened_unit(facts);
	*facts = (struct facts){
		.cgroup = facts->cgroup, .uid = 1000, .home = "/h", .exe = "/c", .release = "6.8"
	};
	facts->mountinfo = ROOT_MOUNT PROC_MOUNT "60 22 0:21 /sys /proc/sys ro - proc proc rw\n";
	facts->fresh_proc = (struct probe){ EPERM, "mount proc" };
}

static void bare_filter(struct facts *facts)
{
	facts->status = STATUS_FILTERED;
	refuse_userns(facts, EPERM, "clone");
}

static void debian_sysctl(struct facts *facts)
{
	facts->userns_clone = "0\n";
	refuse_userns(facts, EPERM, "clone");
}

static void no_user_namespaces(struct facts *facts)
{
	facts->max_namespaces[0] = "0\n";
	refuse_userns(facts, ENOSPC, "clone");
}

static void no_net_namespaces(struct facts *facts)
{
	facts->uid = 0;
	facts->max_namespaces[3] = "0\n";
	facts->namespaces[2] = (struct probe){ ENOSPC, "clone" };
}

static void nested_too_deep(struct facts *facts)
{
	refuse_userns(facts, ENOSPC, "clone");
}

static void in_chroot(struct facts *facts)
{
	facts->mountinfo = "22 27 0:21 / /proc rw,relatime - proc proc rw\n";
	refuse_userns(facts, EPERM, "clone");
}

static void covered_proc(struct facts *facts)
{
	facts->mountinfo = ROOT_MOUNT PROC_MOUNT BINFMT_MOUNT
		"51 22 0:6 /null /proc/kcore rw - devtmpfs devtmpfs rw\n";
	facts->fresh_proc = (struct probe){ EPERM, "mount proc" };
}

static void read_only_proc(struct facts *facts)
{
	facts->mountinfo = ROOT_MOUNT "22 27 0:21 / /proc ro,relatime - proc proc rw\n";
	facts->fresh_proc = (struct probe){ EPERM, "mount proc" };
}

static void no_landlock(struct facts *facts)
{
	facts->landlock_abi = 0;
	facts->lsm = "capability,yama,apparmor\n";
}

static void filtered_landlock(struct facts *facts)
{
	facts->landlock_abi = 0;
	facts->status = STATUS_FILTERED;
}

static void old_landlock(struct facts *facts)
{
	facts->landlock_abi = 4;
}

static void sealed_memfds(struct facts *facts)
{
	facts->memfd_noexec = "2\n";
	facts->memfd_exec = (struct probe){ EACCES, "memfd_create" };
}

static void old_kernel(struct facts *facts)
{
	facts->release = "5.15.0-91-generic";
	facts->mount_api = (struct probe){ ENOSYS, "mount_setattr" };
	facts->tmpfs_xattr = (struct probe){ EOPNOTSUPP, "setxattr" };
	facts->overlay_lowers = 0;
}

static void session_with_systemd(struct facts *facts)
{
	facts->cgroup_host = (struct cgroup_host){ .version = CGROUP_NONE,
		.why = "the control group '/x' isn't yours" };
	facts->has_systemd_user = true;
}

static void session_without_systemd(struct facts *facts)
{
	facts->cgroup_host = (struct cgroup_host){ .version = CGROUP_NONE };
}

static void session_without_manager(struct facts *facts)
{
	session_without_systemd(facts);
	facts->has_systemd = true;
}

static void delegated_v2(struct facts *facts)
{
	facts->cgroup = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n";
	facts->cgroup_host = (struct cgroup_host){
		.version = CGROUP_V2, .memory = "/u", .cpu = "/u", .cpuacct = "/u", .pids = true
	};
}

static void hybrid(struct facts *facts)
{
	facts->uid = 0;
	facts->cgroup = "5:cpu:/\n4:memory:/\n0::/\n";
	facts->cgroup_host = (struct cgroup_host){
		.version = CGROUP_V1, .memory = "/sys/fs/cgroup/memory", .cpu = "/c"
	};
}

static void few_ids(struct facts *facts)
{
	facts->uid = 0;
	facts->uid_map = "0 1000 1\n";
}

static void no_home(struct facts *facts)
{
	facts->home_dir = (struct probe){ EROFS, "mkdir" };
}

static void no_home_as_root(struct facts *facts)
{
	no_home(facts);
	facts->uid = 0;
}

static void home_on_nfs(struct facts *facts)
{
	facts->home_overlay = (struct probe){ EINVAL, "fsconfig create" };
}

static void no_uv(struct facts *facts)
{
	facts->programs[1] = (struct facts_program){ 0 };
}

static void run_fails(struct facts *facts)
{
	facts->run_exit = 125;
	facts->run_error = "mount proc: Operation not permitted";
	facts->run_hint = "see carrel doctor";
}

static void nothing(struct facts *facts)
{
}

struct expectation {
	const char *situation;
	void (*change)(struct facts *facts);
	const char *name; /* of the line */
	enum check_status status;
	const char *detail, *cause,
		*remedy; /* parts of them; NULL cause or remedy: there is none; "" any */
};

static const struct expectation table[] = {
	{ "Ubuntu 24.04", ubuntu_24_04, "user namespaces", CHECK_FAIL,
		"mount tmpfs: Operation not permitted",
		"kernel.apparmor_restrict_unprivileged_userns is 1",
		"profile carrel \"/opt/carrel\" flags=(unconfined)" },
	{ "Ubuntu 24.04", ubuntu_24_04, "user namespaces", CHECK_FAIL, "", "",
		"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
	{ "Ubuntu 24.04: the rest waits", ubuntu_24_04, "fresh /proc", CHECK_WARN, "not tried",
		"not tried: user namespaces don't work", NULL },
	{ "Docker", docker_default, "user namespaces", CHECK_FAIL, "clone: Operation not permitted",
		"Docker's seccomp filter", "docker run --security-opt seccomp=unconfined" },
	{ "Docker", docker_default, "runs in", CHECK_OK, "a Docker container", NULL, NULL },
	{ "Docker without its filter", docker_without_filter, "user namespaces", CHECK_FAIL,
		"Permission denied",
		"Docker's security label refuses mounts (docker-default (enforce))",
		"apparmor=unconfined" },
	{ "Docker", docker_masked, "fresh /proc", CHECK_FAIL, "mount proc: Operation not permitted",
		"/proc/sys /proc/acpi /proc/kcore", "systempaths=unconfined" },
	{ "Docker", docker_masked, "cgroups", CHECK_WARN, "watchdog", "read-only",
		"/sys/fs/cgroup:rw" },
	{ "Docker", docker_masked, "overlay on home", CHECK_WARN, "", "the container's own overlay",
		"docker run -v carrel:/var/lib/carrel" },
	{ "Kubernetes", kubernetes_default, "user namespaces", CHECK_FAIL, "",
		"the pod's seccomp profile", "seccompProfile: {type: Unconfined}" },
	{ "Kubernetes", kubernetes_masked, "fresh /proc", CHECK_FAIL, "", "Kubernetes masks",
		"procMount: Unmasked" },
	{ "Kubernetes", kubernetes_masked, "fresh /proc", CHECK_FAIL, "", "", "hostUsers: false" },
	{ "Podman", podman_masked, "fresh /proc", CHECK_FAIL, "", "Podman masks", "unmask=ALL" },
	{ "hardened unit", hardened_unit, "user namespaces", CHECK_FAIL, "",
		"unit agent-runner.service is hardened", "RestrictNamespaces=no" },
	{ "hardened unit", hardened_unit, "user namespaces", CHECK_FAIL, "", "",
		"sudo systemctl edit agent-runner.service" },
	{ "hardened unit, v1", hardened_unit_on_v1, "user namespaces", CHECK_FAIL, "",
		"unit agent-runner.service", "" },
	{ "unit, masked /proc", unit_with_masked_proc, "fresh /proc", CHECK_FAIL, "",
		"agent-runner.service masks", "ProtectKernelTunables=no" },
	{ "seccomp filter", bare_filter, "user namespaces", CHECK_FAIL, "",
		"a seccomp filter around this process", "without that filter" },
	{ "Debian's sysctl", debian_sysctl, "user namespaces", CHECK_FAIL, "",
		"unprivileged_userns_clone is 0",
		"sudo sysctl -w kernel.unprivileged_userns_clone=1" },
	{ "no user namespaces", no_user_namespaces, "user namespaces", CHECK_FAIL, "No space left",
		"user.max_user_namespaces is 0", "sudo sysctl -w user.max_user_namespaces=15000" },
	{ "no net namespaces", no_net_namespaces, "net namespace", CHECK_FAIL, "clone",
		"user.max_net_namespaces is 0", "sysctl -w user.max_net_namespaces=15000" },
	{ "nested too deep", nested_too_deep, "user namespaces", CHECK_FAIL, "", "32 deep", "" },
	{ "chroot", in_chroot, "user namespaces", CHECK_FAIL, "", "in a chroot",
		"outside of the chroot" },
	{ "covered /proc", covered_proc, "fresh /proc", CHECK_FAIL, "",
		"parts of /proc are covered by other mounts: /proc/kcore",
		"sudo umount /proc/kcore" },
	{ "read-only /proc", read_only_proc, "fresh /proc", CHECK_FAIL, "", "read-only",
		"remount,rw" },
	{ "no Landlock", no_landlock, "landlock", CHECK_FAIL, "Landlock",
		"(capability,yama,apparmor)", "lsm=landlock,capability,yama,apparmor" },
	{ "filtered Landlock", filtered_landlock, "landlock", CHECK_FAIL, "", "a seccomp filter",
		"landlock_restrict_self" },
	{ "old Landlock", old_landlock, "landlock", CHECK_WARN, "ABI 4",
		"abstract sockets and signals", "6.12" },
	{ "memfd_noexec", sealed_memfds, "memfd exec", CHECK_FAIL, "", "vm.memfd_noexec is 2",
		"vm.memfd_noexec=1" },
	{ "old kernel", old_kernel, "kernel", CHECK_WARN, "5.15.0-91-generic", "older than 6.1",
		"" },
	{ "old kernel", old_kernel, "mount API", CHECK_FAIL,
		"mount_setattr: Function not implemented", "", "6.1 or later" },
	{ "old kernel", old_kernel, "overlay", CHECK_OK, "without lowerdir+", NULL, NULL },
	{ "old kernel", old_kernel, "tmpfs xattrs", CHECK_WARN, "", "older than 6.6", "" },
	{ "session with systemd", session_with_systemd, "cgroups", CHECK_WARN, "watchdog",
		"the control group '/x' isn't yours",
		"systemd-run --user --scope -p Delegate=yes carrel run" },
	{ "session without", session_without_systemd, "cgroups", CHECK_WARN, "watchdog",
		"delegated", "as root" },
	{ "session without its manager", session_without_manager, "cgroups", CHECK_WARN, "watchdog",
		"delegated", "enable-linger" },
	{ "delegated v2", delegated_v2, "cgroups", CHECK_OK,
		"v2, writable: memory cpu cpuacct pids", NULL, NULL },
	{ "delegated v2", delegated_v2, "carrel run", CHECK_OK, "limits by cgroup-v2", NULL, NULL },
	{ "hybrid", hybrid, "cgroups", CHECK_OK, "v1, writable: memory cpu", "", NULL },
	{ "root", hybrid, "ids", CHECK_OK, "65536 sandboxes, from 1879048192", NULL, NULL },
	{ "few ids", few_ids, "ids", CHECK_WARN, "the uid of root", "no free ids", "/etc/subuid" },
	{ "root without a home", no_home_as_root, "home", CHECK_FAIL, "mkdir", "", "" },
	{ "no home", no_home, "home", CHECK_WARN, "mkdir: Read-only", "/home/ada", "CARREL_HOME=" },
	{ "home on nfs", home_on_nfs, "overlay on home", CHECK_WARN, "", "user.* attributes",
		"CARREL_HOME=" },
	{ "no uv", no_uv, "uv", CHECK_WARN, "not found", NULL,
		"install uv so that the first environment need not fetch it" },
	{ "run fails", run_fails, "carrel run", CHECK_FAIL, "mount proc: Operation", NULL,
		"see carrel doctor" },
	{ "all well", nothing, "carrel run", CHECK_OK, "all layers", NULL, NULL },
	{ "all well", nothing, "disk quota", CHECK_OK,
		"counted by reading directories (ext4: project quota is off)", NULL, NULL },
	{ "all well", nothing, "ids", CHECK_OK, "your own uid, 1000", NULL, NULL },
};

static bool holds(const char *text, const char *part)
{
	return part == NULL ? text == NULL
			    : part[0] == '\0' || (text != NULL && strstr(text, part) != NULL);
}

static void each_situation_has_its_cause_and_remedy(void **state)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct expectation *expected = &table[i];
		struct facts facts = good();
		auto_arena struct arena arena;
		check_list checks = { 0 };
		bool found = false;

		arena_init(&arena);
		expected->change(&facts);
		diagnose(&facts, &arena, &checks);
		for (size_t k = 0; k < checks.count; k++) {
			const struct check *check = &checks.items[k];
			if (strcmp(check->name, expected->name) != 0)
				continue;
			found = true;
			if (check->status != expected->status ||
				!holds(check->detail, expected->detail) ||
				!holds(check->cause, expected->cause) ||
				!holds(check->remedy, expected->remedy))
				complain("%s: %s %s: %s\ncause: %s\nremedy: %s",
					expected->situation, check->name,
					check_status_name(check->status), check->detail,
					check->cause, check->remedy);
		}
		if (!found)
			complain("%s: no line '%s'", expected->situation, expected->name);
	}
}

static void a_good_host_has_no_warning(void **state)
{
	struct facts facts = good();
	auto_arena struct arena arena;
	check_list checks = { 0 };

	arena_init(&arena);
	diagnose(&facts, &arena, &checks);
	for (size_t i = 0; i < checks.count; i++)
		if (checks.items[i].status != CHECK_OK || checks.items[i].cause ||
			checks.items[i].remedy)
			complain("%s: %s", checks.items[i].name, checks.items[i].detail);
	assert_string_equal(checks.items[checks.count - 1].name, "carrel run");
}

static void facts_that_are_all_missing_do_no_harm(void **state)
{
	struct facts facts = { .exe = "", .release = "", .home = "/" };
	auto_arena struct arena arena;
	check_list checks = { 0 };

	arena_init(&arena);
	diagnose(&facts, &arena, &checks);
	assert_true(checks.count > 10);
}

static void versions_are_found(void **state)
{
	static const struct {
		const char *text, *version;
	} versions[] = {
		{ "Python 3.11.2\n", "3.11.2" },
		{ "v18.20.4\n", "18.20.4" },
		{ "git version 2.39.5 (Apple Git-1)\n", "2.39.5" },
		{ "runc version 1.1.5+ds1\ncommit: x\n", "1.1.5+ds1" },
		{ "runsc version release-20240101.0\nspec: 1.1.0\n", "release-20240101.0" },
		{ "10.8.2", "10.8.2" },
		{ "", NULL },
		{ "\n\n", NULL },
	};
	auto_arena struct arena arena;

	arena_init(&arena);
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		const char *version = facts_version(versions[i].text, &arena);
		if (versions[i].version == NULL)
			assert_null(version);
		else
			assert_string_equal(version, versions[i].version);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_situation_has_its_cause_and_remedy),
		cmocka_unit_test(a_good_host_has_no_warning),
		cmocka_unit_test(facts_that_are_all_missing_do_no_harm),
		cmocka_unit_test(versions_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
