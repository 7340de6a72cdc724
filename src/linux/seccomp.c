#include "linux/seccomp.h"
#include <linux/filter.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "linux/seccomp_programs.h"

/* <linux/seccomp.h> is hidden by our header of the same name. */
#define SET_MODE_FILTER 1

#define PROGRAM(code)                                                                              \
	{                                                                                          \
		sizeof(code) / sizeof((code)[0]), (struct sock_filter *)(code)                     \
	}

void seccomp_programs(struct sock_fprog *numbers, struct sock_fprog *arguments)
{
	*numbers = (struct sock_fprog)PROGRAM(filter_numbers);
	*arguments = (struct sock_fprog)PROGRAM(filter_arguments);
}

void seccomp_role_programs(bool may_fork, struct sock_fprog *numbers, struct sock_fprog *arguments)
{
	*numbers = may_fork ? (struct sock_fprog)PROGRAM(filter_role)
			    : (struct sock_fprog)PROGRAM(filter_role_no_fork);
	*arguments = (struct sock_fprog)PROGRAM(filter_role_arguments);
}

static int load(
	const struct sock_fprog *numbers, const struct sock_fprog *arguments, struct error *err)
{
	/* In this order: the kernel then evaluates the second for its cache only where the first
	 * allows. */
	if (syscall(SYS_seccomp, SET_MODE_FILTER, 0, numbers) != 0)
		return fail_errno_code(
			err, ERR_UNAVAILABLE, "load the seccomp filter of call numbers");
	if (syscall(SYS_seccomp, SET_MODE_FILTER, 0, arguments) != 0)
		return fail_errno_code(
			err, ERR_UNAVAILABLE, "load the seccomp filter of arguments");
	return 0;
}

int seccomp_load(bool memfd, struct error *err)
{
	struct sock_fprog numbers, arguments;
	seccomp_programs(&numbers, &arguments);
	if (!memfd)
		numbers = (struct sock_fprog)PROGRAM(filter_numbers_no_memfd);
	return load(&numbers, &arguments, err);
}

int seccomp_load_role(bool may_fork, struct error *err)
{
	struct sock_fprog numbers, arguments;
	seccomp_role_programs(may_fork, &numbers, &arguments);
	return load(&numbers, &arguments, err);
}
