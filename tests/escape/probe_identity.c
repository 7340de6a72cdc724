/* probe_identity.c -- who a process in the sandbox is, and what it is under. See probe.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "probe.h"

/* The value of a line "key:\tvalue" in /proc/self/status. */
static const char *status_value(const char *key)
{
	static char data[8192];
	char start[64];
	snprintf(start, sizeof(start), "\n%s:\t", key);
	if (read_file("/proc/self/status", data, sizeof(data)) <= 0)
		return "?";
	char *line = strstr(data, start);
	if (!line)
		return "?";
	line += strlen(start);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static outcome uid_is_not_root(void)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;
	getresuid(&r, &e, &s);
	getresgid(&rg, &eg, &sg);
	if (!r || !e || !s || !rg || !eg || !sg)
		return not_so("uids %u %u %u, gids %u %u %u", r, e, s, rg, eg, sg);
	return NULL;
}

static outcome uid_cannot_be_changed(void)
{
	if (setuid(0) == 0 || setresuid(0, 0, 0) == 0 || setgid(0) == 0 || setresgid(0, 0, 0) == 0)
		return not_so("became root");
	if (setuid(12345) == 0 || setgid(12345) == 0)
		return not_so("became 12345");
	return NULL;
}

static outcome setgroups_is_denied(void)
{
	char data[64];
	gid_t groups[] = { 0, 4 };
	if (syscall(SYS_setgroups, 0, NULL) == 0 || syscall(SYS_setgroups, 2, groups) == 0)
		return not_so("setgroups worked");
	if (read_file("/proc/self/setgroups", data, sizeof(data)) > 0 &&
		strcmp(data, "deny\n") != 0)
		return not_so("/proc/self/setgroups is %s", data);
	return NULL;
}

static outcome id_maps_are_closed(void)
{
	static const char *const files[] = { "uid_map", "gid_map", "setgroups", "projid_map" };
	for (size_t i = 0; i < LENGTH(files); i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/self/%s", files[i]);
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, i == 2 ? "allow" : "0 0 1\n", 5 + (i != 2)) > 0)
			return not_so("%s could be written", path);
	}
	return NULL;
}

static outcome capability_sets_are_empty(void)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	for (size_t i = 0; i < LENGTH(sets); i++)
		if (strcmp(status_value(sets[i]), "0000000000000000") != 0)
			return not_so("%s is %s", sets[i], status_value(sets[i]));
	return NULL;
}

static outcome no_new_privs_is_set(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? NULL : not_so("not set");
}

static outcome a_filter_is_loaded(void)
{
	const char *count = status_value("Seccomp_filters");
	if (strtol(count, NULL, 10) < 1)
		return not_so("Seccomp_filters: %s", count);
	return NULL;
}

static outcome landlock_is_on(void)
{
	/* A process can be under 16 rulesets; whoever can add that many is under none yet. */
	uint64_t handled = 1 << 9; /* MAKE_SOCK */
	int added = 0;
	for (; added < 16; added++) {
		int ruleset = (int)syscall(444, &handled, sizeof(handled), 0);
		if (ruleset < 0)
			return not_so("landlock_create_ruleset: %s", strerror(errno));
		long result = syscall(446, ruleset, 0);
		close(ruleset);
		if (result != 0)
			break;
	}
	return added < 16 && errno == E2BIG ? NULL : not_so("%d rulesets added", added);
}

/* clang-format off */
static const struct probe probes[] = {
	DOES(uid_is_not_root),
	DOES(uid_cannot_be_changed),
	DOES(setgroups_is_denied),
	DOES(id_maps_are_closed),
	DOES(capability_sets_are_empty),
	DOES(no_new_privs_is_set),
	DOES(a_filter_is_loaded),
	DOES(landlock_is_on),
};
/* clang-format on */
const struct probe_list identity_probes = LIST(probes);
