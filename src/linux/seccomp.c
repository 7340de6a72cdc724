#include "linux/seccomp.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
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

/* A datagram pair is left out: it can send to any socket that has a name. */
#define REFUSED(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOWED BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF_CALL(name, length) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, length)
#define REFUSE_CALL(name, error) IF_CALL(name, 1), REFUSED(error)
/* Its argument must be 0: "the caller". */
#define OWN_ONLY(name, argument)                                                                   \
	IF_CALL(name, 4), LOAD(args[argument]), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),      \
		ALLOWED, REFUSED(EPERM)

int seccomp_load_alone(struct error *err)
{
	/* A foreign architecture is the other filter's to refuse. */
	const struct sock_filter code[] = {
		LOAD(nr),
		REFUSE_CALL(socket, EAFNOSUPPORT),
		REFUSE_CALL(shmget, EPERM),
		REFUSE_CALL(shmat, EPERM),
		REFUSE_CALL(shmctl, EPERM),
		REFUSE_CALL(semget, EPERM),
		REFUSE_CALL(semctl, EPERM),
		REFUSE_CALL(msgget, EPERM),
		REFUSE_CALL(msgctl, EPERM),
		REFUSE_CALL(mq_open, EPERM),
		REFUSE_CALL(mq_unlink, EPERM),
		OWN_ONLY(prlimit64, 0),
		OWN_ONLY(setpriority, 1),
		OWN_ONLY(ioprio_set, 1),
		IF_CALL(socketpair, 5),
		LOAD(args[1]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_SEQPACKET, 1, 0),
		REFUSED(ESOCKTNOSUPPORT),
		ALLOWED,
	};
	const struct sock_fprog program = PROGRAM(code);
	return load(&program, err);
}
