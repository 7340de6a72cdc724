#include "linux/seccomp.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "linux/seccomp_programs.h"

#define PROGRAM(code)                                                                              \
	{                                                                                          \
		sizeof(code) / sizeof((code)[0]), (struct sock_filter *)(code)                     \
	}

static const struct sock_fprog sandbox_filters[] = { SANDBOX_FILTERS(PROGRAM) };
static const struct sock_fprog role_filters[] = { PROGRAM(filter_role_no_fork),
	PROGRAM(filter_role) };

const struct sock_fprog *seccomp_program(unsigned options)
{
	return &sandbox_filters[options];
}

const struct sock_fprog *seccomp_role_program(bool may_fork)
{
	return &role_filters[may_fork];
}

const struct sock_fprog *seccomp_trees_program(void)
{
	static const struct sock_fprog program = PROGRAM(filter_trees);
	return &program;
}

static int load(const struct sock_fprog *program, struct error *err)
{
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) != 0)
		return fail_errno_code(err, ERR_UNAVAILABLE, "load the seccomp filter");
	return 0;
}

int seccomp_load(unsigned options, struct error *err)
{
	return load(seccomp_program(options), err);
}

int seccomp_load_role(bool may_fork, struct error *err)
{
	return load(seccomp_role_program(may_fork), err);
}

int seccomp_load_trees(struct error *err)
{
	return load(seccomp_trees_program(), err);
}
