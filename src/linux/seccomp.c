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

void seccomp_sizes(unsigned *numbers, unsigned *arguments)
{
	struct sock_fprog first, second;
	seccomp_programs(&first, &second);
	*numbers = first.len;
	*arguments = second.len;
}

int seccomp_load(bool memfd, struct error *err)
{
	struct sock_fprog numbers, arguments;
	seccomp_programs(&numbers, &arguments);
	if (!memfd)
		numbers = (struct sock_fprog)PROGRAM(filter_numbers_no_memfd);
	/* In this order: the kernel then evaluates the second for its cache only where the first
	 * allows. */
	if (syscall(SYS_seccomp, SET_MODE_FILTER, 0, &numbers) != 0)
		return fail_errno_code(
			err, ERR_UNAVAILABLE, "load the seccomp filter of call numbers");
	if (syscall(SYS_seccomp, SET_MODE_FILTER, 0, &arguments) != 0)
		return fail_errno_code(
			err, ERR_UNAVAILABLE, "load the seccomp filter of arguments");
	return 0;
}
