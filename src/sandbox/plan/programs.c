#include "sandbox/plan/programs.h"

#include "base/path.h"
#include "sandbox/plan/grants.h"
#include "sandbox/plan/plan.h"

static bool is_family(const char *name, const char *first)
{
	size_t len = strlen(first);
	return !strncmp(name, first, len) && !name[len + strspn(name + len, "0123456789.")];
}

enum program_name program_name_of(const char *name)
{
	static const char *const reserved[] = { "ash", "bash", "bun", "bunx", "busybox", "corepack",
		"csh", "dash", "env", "fish", "ksh", "mksh", "node", "nodejs", "npm", "npx",
		"rbash", "sh", "tcsh", "toybox", "zsh" };
	static const char *const families[] = { "lua", "perl", "php", "pypy", "ruby" };
	if (is_family(name, "python"))
		return PROGRAM_PYTHON;
	if (is_family(name, "pip"))
		return PROGRAM_PIP;
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (!strcmp(name, reserved[i]))
			return PROGRAM_RESERVED;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (is_family(name, families[i]))
			return PROGRAM_RESERVED;
	return PROGRAM_ANY;
}

int plan_check_attached(const char *target, struct error *err)
{
	/* Of /etc, what names of /usr/bin lead to, and what every program reads for its libraries.
	 */
	static const char *const programs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
		"/libx32", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.preload", PLAN_ENV,
		"/opt/carrel", PLAN_PROGRAMS, PLAN_PACKAGES };
	if (plan_check_target(target, err))
		return -1;
	if (path_is_beneath(target, GRANT_TREES) && strcmp(target, GRANT_TREES) != 0)
		return 0;
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		if (path_is_beneath(target, programs[i]) || path_is_beneath(programs[i], target))
			return fail_hint(err, ERR_INVALID,
				"choose another path, such as one below /workspace, and call "
				"programs "
				"there by their path",
				"nothing can be mounted at '%s': %s holds programs of the sandbox",
				target, programs[i]);
	return 0;
}
