/* seccomp_rules.h -- what a sandboxed process may ask of the kernel: the table behind every filter.
 * Roles of our own (proc/role.h) have the same but for the rows at the end.
 *
 * Included several times by tools/seccomp-gen.c, which defines
 *   ALLOW(call)                      may be called;
 *   REFUSE(call, why)                EPERM, so that "not permitted" is what a person reads;
 *   ALLOW_WITH(option, call, error, why)   allowed in filters with the option (PTRACE, SETGID,
 *                                    MEMFD: see seccomp.h), else `error`;
 *   HOT(call)                        called often and judged by argument: looked for first;
 *   DENY(call, error, why, tests...) refused with `error` (0: seems to work) when all tests hold:
 *     BITS(argument, mask)                 any bit of mask is set,
 *     IN(argument, values...)              it is one of the values,
 *     NOT_IN(argument, values...)          it is none of them,
 *     MASKED_IN, MASKED_NOT_IN(argument, mask, values...)   the same after `& mask`,
 *     UPPER_BITS(argument, mask)           any bit of mask is set in its upper half (pointers);
 *   DENY_WITHOUT(option, call, ...)        the same, but not in filters with the option;
 *   ROLE_ALLOW, ROLE_REFUSE, ROLE_DENY     the same for roles alone;
 *   FORK_REFUSE                            for roles that have neither children nor other sockets;
 *   TREE_ALLOW, TREE_DENY                  for the role that copies trees of workspaces
 * (WHITEOUTS), which is one of those. What isn't named here is ENOSYS: callers then use the older
 * call (clone3, openat2, io_uring, the new mount calls).
 *
 * 1. Tests see the low 32 bits of an argument (but UPPER_BITS), because every argument tested here
 *    is 32 bits wide in the kernel (or, as clone's flags and mmap's, has its meaning there). A high
 *    bit neither helps nor hurts.
 * 2. A call is named once by ALLOW, ALLOW_WITH or REFUSE, and DENY names calls that some filter
 *    allows; else the build fails.
 * 3. Nothing behind a pointer can be tested, so a call that takes its mode or flags there isn't
 *    allowed (openat2, clone3). */
/* clang-format off */

/* Files and directories. Who may touch what is decided by the mounts and Landlock. */
ALLOW(read) ALLOW(write) ALLOW(close) ALLOW(fstat) ALLOW(lseek) ALLOW(pread64) ALLOW(pwrite64)
ALLOW(readv) ALLOW(writev) ALLOW(preadv) ALLOW(pwritev) ALLOW(preadv2) ALLOW(pwritev2)
ALLOW(sendfile) ALLOW(copy_file_range) ALLOW(splice) ALLOW(tee) ALLOW(dup) ALLOW(dup3) ALLOW(fcntl)
ALLOW(flock) ALLOW(ioctl) ALLOW(close_range) ALLOW(pipe2) ALLOW(fsync) ALLOW(fdatasync) ALLOW(sync)
ALLOW(syncfs) ALLOW(sync_file_range) ALLOW(readahead) ALLOW(fadvise64) ALLOW(fallocate)
ALLOW(truncate) ALLOW(ftruncate) ALLOW(getdents64) ALLOW(getcwd) ALLOW(chdir) ALLOW(fchdir)
ALLOW(umask) ALLOW(openat) ALLOW(mkdirat) ALLOW(mknodat) ALLOW(unlinkat) ALLOW(renameat)
ALLOW(renameat2) ALLOW(linkat) ALLOW(symlinkat) ALLOW(readlinkat) ALLOW(newfstatat) ALLOW(statx)
ALLOW(statfs) ALLOW(fstatfs) ALLOW(faccessat) ALLOW(faccessat2) ALLOW(fchmod) ALLOW(fchmodat)
ALLOW(fchmodat2) ALLOW(fchown) ALLOW(fchownat) ALLOW(utimensat) ALLOW(setxattr) ALLOW(lsetxattr)
ALLOW(fsetxattr) ALLOW(getxattr) ALLOW(lgetxattr) ALLOW(fgetxattr) ALLOW(listxattr)
ALLOW(llistxattr) ALLOW(flistxattr) ALLOW(removexattr) ALLOW(lremovexattr) ALLOW(fremovexattr)
ALLOW(inotify_init1) ALLOW(inotify_add_watch) ALLOW(inotify_rm_watch)

ALLOW_WITH(MEMFD, memfd_create, ENOSYS, "memory that shows in no process's figures")

/* Waiting. */
ALLOW(pselect6) ALLOW(ppoll) ALLOW(epoll_create1) ALLOW(epoll_ctl) ALLOW(epoll_pwait)
ALLOW(epoll_pwait2) ALLOW(eventfd2) ALLOW(signalfd4) ALLOW(timerfd_create) ALLOW(timerfd_settime)
ALLOW(timerfd_gettime) ALLOW(nanosleep) ALLOW(clock_nanosleep) ALLOW(getitimer) ALLOW(setitimer)
ALLOW(timer_create) ALLOW(timer_settime) ALLOW(timer_gettime) ALLOW(timer_getoverrun)
ALLOW(timer_delete) ALLOW(gettimeofday) ALLOW(clock_gettime) ALLOW(clock_getres) ALLOW(times)

/* Memory. */
ALLOW(mmap) ALLOW(mprotect) ALLOW(munmap) ALLOW(brk) ALLOW(mremap) ALLOW(msync) ALLOW(mincore)
ALLOW(madvise) ALLOW(mlock) ALLOW(munlock) ALLOW(mlockall) ALLOW(munlockall) ALLOW(mlock2)
ALLOW(membarrier) ALLOW(pkey_mprotect) ALLOW(pkey_alloc) ALLOW(pkey_free) ALLOW(mseal)

/* Processes, threads, signals. */
ALLOW(clone) ALLOW(execve) ALLOW(execveat) ALLOW(exit) ALLOW(exit_group) ALLOW(wait4) ALLOW(waitid)
ALLOW(kill) ALLOW(tkill) ALLOW(tgkill) ALLOW(pidfd_open) ALLOW(pidfd_send_signal)
ALLOW(rt_sigaction) ALLOW(rt_sigprocmask) ALLOW(rt_sigreturn) ALLOW(rt_sigpending)
ALLOW(rt_sigtimedwait) ALLOW(rt_sigqueueinfo) ALLOW(rt_tgsigqueueinfo) ALLOW(rt_sigsuspend)
ALLOW(sigaltstack) ALLOW(restart_syscall) ALLOW(futex) ALLOW(futex_waitv) ALLOW(futex_wake)
ALLOW(futex_wait) ALLOW(futex_requeue) ALLOW(set_robust_list) ALLOW(get_robust_list)
ALLOW(set_tid_address) ALLOW(rseq) ALLOW(gettid) ALLOW(getpid) ALLOW(getppid) ALLOW(getpgid)
ALLOW(setpgid) ALLOW(getsid) ALLOW(setsid) ALLOW(prctl) ALLOW(personality) ALLOW(sched_yield)
ALLOW(sched_setparam) ALLOW(sched_getparam) ALLOW(sched_setscheduler) ALLOW(sched_getscheduler)
ALLOW(sched_get_priority_max) ALLOW(sched_get_priority_min) ALLOW(sched_rr_get_interval)
ALLOW(sched_setaffinity) ALLOW(sched_getaffinity) ALLOW(sched_setattr) ALLOW(sched_getattr)
ALLOW(getpriority) ALLOW(setpriority) ALLOW(ioprio_set) ALLOW(ioprio_get) ALLOW(getcpu)
ALLOW(getrlimit) ALLOW(setrlimit) ALLOW(prlimit64) ALLOW(getrusage) ALLOW(sysinfo) ALLOW(uname)
ALLOW(getrandom)

/* Identity. A sandbox has one uid and no capability: these calls can't change anything. */
ALLOW(getuid) ALLOW(getgid) ALLOW(geteuid) ALLOW(getegid) ALLOW(setuid) ALLOW(setgid)
ALLOW(setreuid) ALLOW(setregid) ALLOW(getgroups) ALLOW(setgroups) ALLOW(setresuid) ALLOW(getresuid)
ALLOW(setresgid) ALLOW(getresgid) ALLOW(setfsuid) ALLOW(setfsgid) ALLOW(capget) ALLOW(capset)

/* Sockets: in a network namespace of their own. */
ALLOW(socket) ALLOW(socketpair) ALLOW(connect) ALLOW(accept) ALLOW(accept4) ALLOW(sendto)
ALLOW(recvfrom) ALLOW(sendmsg) ALLOW(recvmsg) ALLOW(sendmmsg) ALLOW(recvmmsg) ALLOW(shutdown)
ALLOW(bind) ALLOW(listen) ALLOW(getsockname) ALLOW(getpeername) ALLOW(setsockopt) ALLOW(getsockopt)

/* System V and POSIX IPC: in a namespace of their own. */
ALLOW(shmget) ALLOW(shmat) ALLOW(shmctl) ALLOW(shmdt) ALLOW(semget) ALLOW(semop) ALLOW(semctl)
ALLOW(semtimedop) ALLOW(msgget) ALLOW(msgsnd) ALLOW(msgrcv) ALLOW(msgctl) ALLOW(mq_open)
ALLOW(mq_unlink) ALLOW(mq_timedsend) ALLOW(mq_timedreceive) ALLOW(mq_notify) ALLOW(mq_getsetattr)

/* Locking oneself in further is welcome: a filter or ruleset can only take away. */
ALLOW(seccomp) ALLOW(landlock_create_ruleset) ALLOW(landlock_add_rule) ALLOW(landlock_restrict_self)

#ifdef __x86_64__
/* What newer architectures express by the calls above. */
ALLOW(open) ALLOW(creat) ALLOW(stat) ALLOW(lstat) ALLOW(access) ALLOW(getdents) ALLOW(rename)
ALLOW(mkdir) ALLOW(rmdir) ALLOW(link) ALLOW(unlink) ALLOW(symlink) ALLOW(readlink) ALLOW(chmod)
ALLOW(chown) ALLOW(lchown) ALLOW(mknod) ALLOW(utime) ALLOW(utimes) ALLOW(futimesat) ALLOW(poll)
ALLOW(select) ALLOW(pipe) ALLOW(dup2) ALLOW(pause) ALLOW(alarm) ALLOW(time) ALLOW(fork) ALLOW(vfork)
ALLOW(getpgrp) ALLOW(epoll_create) ALLOW(epoll_wait) ALLOW(inotify_init) ALLOW(signalfd)
ALLOW(eventfd) ALLOW(arch_prctl) ALLOW(map_shadow_stack)
#endif

/* Left out on purpose, ENOSYS: openat2, clone3 (rule 3); io_uring, userfaultfd, keyrings, the new
 * mount calls (callers fall back); cachestat (on older kernels tells what others have read);
 * vmsplice (lends pages to pipes: CVE-2020-29374); process_mrelease, mbind and relatives,
 * name_to_handle_at, aio (nobody here needs them). */

/* For debuggers, among the processes of one sandbox. The kernel judges a call after a tracer has
 * changed it, so that no filter is evaded; what isn't needed by default stays out because of the
 * code behind it. */
ALLOW_WITH(PTRACE, ptrace, EPERM, "rewrites another process")
ALLOW_WITH(PTRACE, process_vm_readv, EPERM, "reads another process")
ALLOW_WITH(PTRACE, process_vm_writev, EPERM, "writes another process")
ALLOW_WITH(PTRACE, kcmp, EPERM, "compares kernel objects of two processes")
ALLOW_WITH(PTRACE, pidfd_getfd, EPERM, "takes descriptors out of another process")

REFUSE(mount, "the mounts are the sandbox")
REFUSE(umount2, "uncovers what a mask hides")
REFUSE(pivot_root, "the root is the sandbox")
REFUSE(chroot, "the root is the sandbox")
REFUSE(unshare, "a new user namespace brings all capabilities back")
REFUSE(setns, "enters the namespace of another process")
REFUSE(open_by_handle_at, "opens files by number, past every mount")
REFUSE(fanotify_init, "watches a whole file system")
REFUSE(quotactl, "the host's quotas")
REFUSE(bpf, "programs in the kernel")
REFUSE(perf_event_open, "measures others; long list of holes")
REFUSE(init_module, "code in the kernel")
REFUSE(finit_module, "code in the kernel")
REFUSE(delete_module, "code in the kernel")
REFUSE(kexec_load, "another kernel")
REFUSE(reboot, "the host's power switch")
REFUSE(swapon, "the host's memory")
REFUSE(swapoff, "the host's memory")
REFUSE(acct, "the host's accounting file")
REFUSE(syslog, "the host's kernel log")
REFUSE(settimeofday, "the host's clock")
REFUSE(clock_settime, "the host's clock")
REFUSE(adjtimex, "the host's clock")
REFUSE(clock_adjtime, "the host's clock")
REFUSE(sethostname, "the name is part of the sandbox")
REFUSE(setdomainname, "the name is part of the sandbox")
#ifdef __x86_64__
REFUSE(iopl, "hardware ports")
REFUSE(ioperm, "hardware ports")
REFUSE(modify_ldt, "16-bit segments: a long list of holes")
#endif

/* NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. Not NEWTIME: that bit lies in the byte
 * that holds the exit signal, and only clone3 and unshare give it a meaning. */
DENY(clone, EPERM, "a new user namespace brings all capabilities back", BITS(0, 0x7e020000))

/* 0x40000: ADDR_NO_RANDOMIZE, which debuggers set for what they start, and setarch -R. */
DENY(personality, EPERM, "makes memory executable, lies about the architecture",
	NOT_IN(0, 0, 0x40000, 0xffffffff))
DENY(prctl, EPERM, "PR_SET_MM lies about the program; PR_SCHED_CORE idles the host's sibling CPUs",
	IN(0, 35, 62))
DENY(prctl, EINVAL, "PR_FUTEX_HASH swaps tables in use: new, and not needed yet", IN(0, 78))
DENY(seccomp, EPERM, "NEW_LISTENER, WAIT_KILLABLE_RECV: lets one process answer another's calls",
	BITS(1, 0x28))

/* carrel-init has the uid of what it starts. Without descriptors or processes of its own it would
 * refuse every later command of a workspace. */
DENY(prlimit64, EPERM, "the limits of PID 1 are those of the sandbox", IN(0, 1))
/* Every later command would inherit a lower priority or fewer CPUs from PID 1. It
 * can be addressed by process, by process group and by user, which all processes share. */
DENY(setpriority, EPERM, "the priority of PID 1", IN(0, 0, 1), IN(1, 1))
DENY(setpriority, EPERM, "PRIO_USER includes PID 1", IN(0, 2))
DENY(ioprio_set, EPERM, "the I/O priority of PID 1", IN(0, 1, 2), IN(1, 1))
DENY(ioprio_set, EPERM, "IOPRIO_WHO_USER includes PID 1", IN(0, 3))
DENY(sched_setscheduler, EPERM, "the scheduling policy of PID 1", IN(0, 1))
DENY(sched_setparam, EPERM, "the scheduling policy of PID 1", IN(0, 1))
DENY(sched_setattr, EPERM, "the scheduling policy of PID 1", IN(0, 1))
DENY(sched_setaffinity, EPERM, "the CPUs of PID 1", IN(0, 1))

/* With ptrace: PID 1 isn't dumpable, so that the kernel refuses these as well. */
DENY(ptrace, EPERM, "PID 1; TRACEME (0) has no pid", NOT_IN(0, 0), IN(1, 1))
DENY(ptrace, EPERM, "PTRACE_O_SUSPEND_SECCOMP, of SETOPTIONS and SEIZE",
	IN(0, 0x4200, 0x4206), BITS(3, 0x200000))
DENY(process_vm_readv, EPERM, "PID 1", IN(0, 1))
DENY(process_vm_writev, EPERM, "PID 1", IN(0, 1))
DENY(kcmp, EPERM, "PID 1", IN(0, 1))
DENY(kcmp, EPERM, "PID 1", IN(1, 1))

/* RLIMIT_CORE stays as it is. At 0 the kernel still pipes the memory of a crashed process to the
 * host's handler, which runs as root outside; only at 1 it doesn't. ssh-agent ends itself when it
 * can't set it to 0, so that it believes it has. */
DENY(setrlimit, 0, "RLIMIT_CORE", IN(0, 4))
DENY(prlimit64, 0, "RLIMIT_CORE with a new value", IN(1, 4), BITS(2, 0xffffffff))
DENY(prlimit64, 0, "RLIMIT_CORE with a new value", IN(1, 4), UPPER_BITS(2, 0xffffffff))

/* A setuid file made on a host directory outlives the sandbox and is run by others. So does a setgid
 * file: that bit is left alone only where no host directory is writable. */
DENY(fchmod, EPERM, "setuid", BITS(1, 04000))
DENY(fchmodat, EPERM, "setuid", BITS(2, 04000))
DENY(fchmodat2, EPERM, "setuid", BITS(2, 04000))
DENY(mkdirat, EPERM, "setuid", BITS(2, 04000))
DENY(openat, EPERM, "setuid", BITS(2, CREATES), BITS(3, 04000))
DENY_WITHOUT(SETGID, fchmod, EPERM, "setgid", BITS(1, 02000))
DENY_WITHOUT(SETGID, fchmodat, EPERM, "setgid", BITS(2, 02000))
DENY_WITHOUT(SETGID, fchmodat2, EPERM, "setgid", BITS(2, 02000))
DENY_WITHOUT(SETGID, mkdirat, EPERM, "setgid", BITS(2, 02000))
DENY_WITHOUT(SETGID, openat, EPERM, "setgid", BITS(2, CREATES), BITS(3, 02000))
/* S_IFCHR and S_IFBLK share the bit 020000; regular files, pipes and sockets don't have it. */
DENY_WITHOUT(WHITEOUTS, mknodat, EPERM, "devices, setuid", BITS(2, 020000 | 04000))
DENY_WITHOUT(SETGID, mknodat, EPERM, "setgid", BITS(2, 02000))
DENY(renameat2, EPERM, "RENAME_WHITEOUT leaves a device 0:0 behind", BITS(4, 4))
#ifdef __x86_64__
DENY(chmod, EPERM, "setuid", BITS(1, 04000))
DENY(creat, EPERM, "setuid", BITS(1, 04000))
DENY(mkdir, EPERM, "setuid", BITS(1, 04000))
DENY(open, EPERM, "setuid", BITS(1, CREATES), BITS(2, 04000))
DENY(mknod, EPERM, "devices, setuid", BITS(1, 020000 | 04000))
DENY_WITHOUT(SETGID, chmod, EPERM, "setgid", BITS(1, 02000))
DENY_WITHOUT(SETGID, creat, EPERM, "setgid", BITS(1, 02000))
DENY_WITHOUT(SETGID, mkdir, EPERM, "setgid", BITS(1, 02000))
DENY_WITHOUT(SETGID, open, EPERM, "setgid", BITS(1, CREATES), BITS(2, 02000))
DENY_WITHOUT(SETGID, mknod, EPERM, "setgid", BITS(1, 02000))
#endif
DENY(fcntl, EPERM, "F_SETLEASE keeps the host waiting in open() of a file of --dir", IN(1, 1024))

/* Huge pages come from a pool of the host that memory limits don't count. The error of mmap is that
 * of an empty pool. Programs probe memfd_create with unknown flags and expect EINVAL, so these are
 * judged first. */
DENY(mmap, ENOMEM, "MAP_HUGETLB", BITS(3, 0x40000))
DENY(memfd_create, EINVAL, "unknown flags: all but the five known ones and the sizes of huge pages",
	BITS(1, 0x03ffffe0))
DENY(memfd_create, EPERM, "MFD_HUGETLB", BITS(1, 4))
DENY(shmget, EPERM, "SHM_HUGETLB", BITS(2, 04000))
DENY(madvise, EINVAL, "MADV_MERGEABLE: page merging tells what is in others' memory", IN(2, 12))

/* AF_UNIX, AF_INET, AF_INET6; AF_NETLINK for NETLINK_ROUTE (Python and Node list interfaces with
 * it). */
DENY(socket, EAFNOSUPPORT, "each family is kernel code by itself, loaded on demand",
	NOT_IN(0, 1, 2, 10, 16))
DENY(socket, EPROTONOSUPPORT, "NETLINK_ROUTE only", IN(0, 16), NOT_IN(2, 0))
DENY(socket, ESOCKTNOSUPPORT, "stream and datagram (raw needs a capability): no SCTP, no DCCP",
	IN(0, 2, 10), MASKED_NOT_IN(1, 0xf, 1, 2, 3))
DENY(socket, EPROTONOSUPPORT, "TCP, UDP, ICMP echo: no SCTP, MPTCP, UDP-Lite, L2TP",
	IN(0, 2, 10), NOT_IN(2, 0, 1, 6, 17, 58))
DENY(socketpair, EAFNOSUPPORT, "AF_UNIX only", NOT_IN(0, 1))
DENY(setsockopt, ENOPROTOOPT, "TCP_ULP puts TLS or SMC into the kernel", IN(1, 6), IN(2, 31))
DENY(setsockopt, EPERM, "ATTACH_FILTER, ATTACH_BPF, both ATTACH_REUSEPORT: programs in the kernel",
	IN(1, 1), IN(2, 26, 50, 51, 52))
/* A UDP socket takes its options at the level of UDP-Lite as well. */
DENY(setsockopt, EPERM, "UDP_ENCAP hands what arrives to IPsec or L2TP", IN(1, 17, 136), IN(2, 100))

/* MSG_OOB: out-of-band data on AF_UNIX was freed while in use more than once (CVE-2025-38236), and
 * only old telnet and FTP want it. These calls are thereby judged at every call, which costs each
 * tens of nanoseconds; read and write aren't. The errors are those of sockets without it. */
DENY(sendto, EOPNOTSUPP, "MSG_OOB", BITS(3, 1))
DENY(sendmsg, EOPNOTSUPP, "MSG_OOB", BITS(2, 1))
DENY(sendmmsg, EOPNOTSUPP, "MSG_OOB", BITS(3, 1))
DENY(recvfrom, EINVAL, "MSG_OOB", BITS(3, 1))
DENY(recvmsg, EINVAL, "MSG_OOB", BITS(2, 1))
DENY(recvmmsg, EINVAL, "MSG_OOB", BITS(3, 1))

/* Terminals (type 'T', 0x54), sockets (0x89) and a few file questions. Others reach file systems,
 * consoles and drivers: before Linux 6.7 a btrfs snapshot asked for on a directory took the whole
 * subvolume with it. ENOTTY: "not for this file". */
DENY(ioctl, EPERM, "TIOCSTI, TIOCLINUX type for the user; TIOCSETD loads drivers; "
	"TIOCCONS takes the console's output; TIOCEXCL shuts others out",
	IN(1, 0x5412, 0x541c, 0x5423, 0x541d, 0x540c))
DENY(ioctl, ENOTTY, "all but FICLONE, FICLONERANGE, FIDEDUPERANGE, FS_IOC_GETFLAGS, GETVERSION, "
	"FSGETXATTR, FIEMAP, FIGETBSZ",
	MASKED_NOT_IN(1, 0xff00, 0x5400, 0x8900),
	NOT_IN(1, 0x40049409, 0x4020940d, 0xc0189436, 0x80086601, 0x80087601,
		0x801c581f, 0xc020660b, 2))

HOT(openat) HOT(mmap) HOT(ioctl) HOT(fcntl)
#ifdef __x86_64__
HOT(open)
#endif

/* Paths are opened beneath a directory by it; what its mode says is ours. */
ROLE_ALLOW(openat2)

ROLE_REFUSE(execve, "children are forks: whatever is to be executed is the launcher's to start")
ROLE_REFUSE(execveat, "children are forks")
ROLE_REFUSE(bind, "the launcher opens what is listened on")
ROLE_REFUSE(listen, "the launcher opens what is listened on")
ROLE_REFUSE(mknodat, "makes no device, no pipe with a name")
ROLE_REFUSE(setuid, "a role keeps its ids") ROLE_REFUSE(setgid, "a role keeps its ids")
ROLE_REFUSE(setreuid, "a role keeps its ids") ROLE_REFUSE(setregid, "a role keeps its ids")
ROLE_REFUSE(setresuid, "a role keeps its ids") ROLE_REFUSE(setresgid, "a role keeps its ids")
ROLE_REFUSE(setfsuid, "a role keeps its ids") ROLE_REFUSE(setfsgid, "a role keeps its ids")
ROLE_REFUSE(setgroups, "a role keeps its ids")
ROLE_REFUSE(personality, "not needed by roles")
ROLE_REFUSE(shmget, "not needed by roles") ROLE_REFUSE(shmat, "not needed by roles")
ROLE_REFUSE(shmctl, "not needed by roles") ROLE_REFUSE(shmdt, "not needed by roles")
ROLE_REFUSE(semget, "not needed by roles") ROLE_REFUSE(semop, "not needed by roles")
ROLE_REFUSE(semctl, "not needed by roles") ROLE_REFUSE(semtimedop, "not needed by roles")
ROLE_REFUSE(msgget, "not needed by roles") ROLE_REFUSE(msgsnd, "not needed by roles")
ROLE_REFUSE(msgrcv, "not needed by roles") ROLE_REFUSE(msgctl, "not needed by roles")
ROLE_REFUSE(mq_open, "not needed by roles") ROLE_REFUSE(mq_unlink, "not needed by roles")
ROLE_REFUSE(mq_timedsend, "not needed by roles") ROLE_REFUSE(mq_timedreceive, "not needed by roles")
ROLE_REFUSE(mq_notify, "not needed by roles") ROLE_REFUSE(mq_getsetattr, "not needed by roles")
ROLE_DENY(socket, EAFNOSUPPORT, "AF_UNIX only", NOT_IN(0, 1))
FORK_REFUSE(clone, "it has no children, and no threads")
FORK_REFUSE(socket, "it has the sockets that it was started with")
FORK_REFUSE(socketpair, "it has the sockets that it was started with")
FORK_REFUSE(connect, "it has the sockets that it was started with")
/* A copy of a tree has its whiteouts, which are devices 0:0, and its fifos. */
TREE_ALLOW(mknodat)
TREE_DENY(mknodat, EPERM, "setuid", BITS(2, 04000))
TREE_DENY(mknodat, EPERM, "devices but whiteouts", BITS(2, 020000), NOT_IN(3, 0))
#ifdef __x86_64__
ROLE_REFUSE(mknod, "makes no device, no pipe with a name")
FORK_REFUSE(fork, "it has no children")
FORK_REFUSE(vfork, "it has no children")
#endif
