/* probe_calls.c -- what is told by one call and its error. See probe.h.
 *
 * Arguments harm nothing where a call is let through (bad pointers, bad descriptors). */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "probe.h"

/* A pointer that faults: whoever answers EFAULT has let the call through. */
#define BAD 1
#define HERE AT_FDCWD
#define TEXT(text) ((long)(text))
/* clang-format off */
static const struct probe probes[] = {
	/* mounts, roots, namespaces */
	CALL(mount, SYS_mount, EPERM, 0, BAD, BAD, BAD, 0, 0),
	CALL(mount_tmpfs, SYS_mount, EPERM, 0, TEXT("tmpfs"), TEXT("/tmp"), TEXT("tmpfs"), 0, 0),
	CALL(mount_remount, SYS_mount, EPERM, 0, TEXT("none"), TEXT("/usr"), 0, 0x1020, 0),
	CALL(mount_bind, SYS_mount, EPERM, 0, TEXT("/proc"), TEXT("/tmp"), 0, 0x1000, 0),
	CALL(umount2, SYS_umount2, EPERM, 2, BAD, 0),
	CALL(umount_mask, SYS_umount2, EPERM, 2, TEXT("/proc/kcore"), 2),
	CALL(pivot_root, SYS_pivot_root, EPERM, 0, BAD, BAD),
	CALL(chroot, SYS_chroot, EPERM, 0, BAD),
	CALL(chroot_here, SYS_chroot, EPERM, 0, TEXT(".")),
	CALL(open_tree, 428, ENOSYS, 4, HERE, TEXT("/"), 1),
	CALL(move_mount, 429, ENOSYS, 0, -1, BAD, -1, BAD, 0),
	CALL(fsopen, 430, ENOSYS, 2, TEXT("tmpfs"), 0),
	CALL(fsconfig, 431, ENOSYS, 0, -1, 0, 0, 0, 0),
	CALL(fsmount, 432, ENOSYS, 0, -1, 0, 0),
	CALL(fspick, 433, ENOSYS, 0, HERE, TEXT("/"), 0),
	CALL(mount_setattr, 442, ENOSYS, 0, HERE, TEXT("/"), 0, BAD, 32),
	CALL(open_tree_attr, 467, ENOSYS, 0, HERE, TEXT("/"), 0, BAD, 32),
	CALL(statmount, 457, ENOSYS, 0, BAD, BAD, 0, 0),
	CALL(listmount, 458, ENOSYS, 0, BAD, BAD, 0, 0),
	CALL(setns, SYS_setns, EPERM, 2, -1, 0),
	CALL(unshare_nothing, SYS_unshare, EPERM, 0, 0),
	CALL(unshare_user, SYS_unshare, EPERM, 1, CLONE_NEWUSER),
	CALL(unshare_mount, SYS_unshare, EPERM, 1, CLONE_NEWNS),
	CALL(unshare_net, SYS_unshare, EPERM, 1, CLONE_NEWNET),
	CALL(unshare_time, SYS_unshare, EPERM, 1, 0x80),
	CALL(clone3, 435, ENOSYS, 0, BAD, 88),

	/* other processes */
	CALL(ptrace_init, SYS_ptrace, EPERM, 3, 16, 1, 0, 0),
	CALL(ptrace_seize_init, SYS_ptrace, EPERM, 3, 0x4206, 1, 0, 0),
	CALL(ptrace_traceme, SYS_ptrace, EPERM, 1, 0, 0, 0, 0),
	CALL(process_vm_readv, SYS_process_vm_readv, EPERM, 0, 1, BAD, 1, BAD, 1, 0),
	CALL(process_vm_writev, SYS_process_vm_writev, EPERM, 0, 1, BAD, 1, BAD, 1, 0),
	CALL(process_madvise, 440, ENOSYS, 0, -1, BAD, 1, 0, 0),
	CALL(process_mrelease, 448, ENOSYS, 0, -1, 0),
	CALL(pidfd_getfd, 438, EPERM, 0, -1, 0, 0),
	CALL(kcmp, SYS_kcmp, EPERM, 7, 1, 1, 0, 0, 0),
	CALL(move_pages, SYS_move_pages, ENOSYS, 0, 1, 0, BAD, 0, 0, 0),
	CALL(migrate_pages, SYS_migrate_pages, ENOSYS, 0, 1, 0, BAD, BAD),

	/* the kernel and the machine */
	CALL(bpf, SYS_bpf, EPERM, 1, 0, BAD, 0),
	CALL(perf_event_open, SYS_perf_event_open, EPERM, 0, BAD, 0, -1, -1, 0),
	CALL(init_module, SYS_init_module, EPERM, 0, BAD, 0, BAD),
	CALL(finit_module, SYS_finit_module, EPERM, 0, -1, BAD, 0),
	CALL(delete_module, SYS_delete_module, EPERM, 0, BAD, 0),
	CALL(kexec_load, SYS_kexec_load, EPERM, 0, 0, 0, BAD, 0),
	CALL(kexec_file_load, SYS_kexec_file_load, ENOSYS, 0, -1, -1, 0, BAD, 0),
	CALL(reboot, SYS_reboot, EPERM, 7, 0, 0, 0, 0),
	CALL(swapon, SYS_swapon, EPERM, 0, BAD, 0),
	CALL(swapoff, SYS_swapoff, EPERM, 0, BAD),
	CALL(acct, SYS_acct, EPERM, 0, BAD),
	CALL(syslog_read, SYS_syslog, EPERM, 1, 3, BAD, 16),
	CALL(syslog_size, SYS_syslog, EPERM, 1, 10, 0, 0),
	CALL(settimeofday, SYS_settimeofday, EPERM, 0, BAD, 0),
	CALL(clock_settime, SYS_clock_settime, EPERM, 1, 0, BAD),
	CALL(adjtimex, SYS_adjtimex, EPERM, 0, BAD),
	CALL(clock_adjtime, SYS_clock_adjtime, EPERM, 1, 0, BAD),
	CALL(sethostname, SYS_sethostname, EPERM, 0, BAD, 1),
	CALL(setdomainname, SYS_setdomainname, EPERM, 0, BAD, 1),
	CALL(quotactl, SYS_quotactl, EPERM, 0, 0, BAD, 0, BAD),
	CALL(quotactl_fd, 443, ENOSYS, 0, -1, 0, 0, BAD),
	CALL(add_key, SYS_add_key, ENOSYS, 0, TEXT("user"), TEXT("x"), TEXT("x"), 1, -3),
	CALL(request_key, SYS_request_key, ENOSYS, 0, TEXT("user"), TEXT("x"), 0, -3),
	CALL(keyctl, SYS_keyctl, ENOSYS, 1, 0, -3, 0),
	CALL(userfaultfd, SYS_userfaultfd, ENOSYS, 1, 1),
	CALL(io_uring_setup, 425, ENOSYS, 0, 8, BAD),
	CALL(io_uring_enter, 426, ENOSYS, 0, -1, 0, 0, 0, 0, 0),
	CALL(io_uring_register, 427, ENOSYS, 0, -1, 0, 0, 0),
	CALL(io_setup, SYS_io_setup, ENOSYS, 0, 1, BAD),
	CALL(name_to_handle_at, SYS_name_to_handle_at, ENOSYS, 0, HERE, TEXT("/"), BAD, BAD, 0),
	CALL(open_by_handle_at, SYS_open_by_handle_at, EPERM, 0, HERE, BAD, 0),
	CALL(fanotify_init, SYS_fanotify_init, EPERM, 0, 0, 0),
	CALL(lookup_dcookie, SYS_lookup_dcookie, ENOSYS, 0, 0, BAD, 0),
	CALL(vhangup, SYS_vhangup, ENOSYS, 0, 0),
	CALL(memfd_secret, 447, ENOSYS, 0, 0),
	CALL(cachestat, 451, ENOSYS, 0, 0, BAD, BAD, 0),
	CALL(vmsplice, SYS_vmsplice, ENOSYS, 0, 1, BAD, 0, 0),
#ifdef __x86_64__
	CALL(iopl, SYS_iopl, EPERM, 1, 0),
	CALL(ioperm, SYS_ioperm, EPERM, 0, 0, 0, 0),
	CALL(modify_ldt, SYS_modify_ldt, EPERM, 1, 0, BAD, 0),
	CALL(uselib, SYS_uselib, ENOSYS, 0, BAD),
	CALL(ustat, SYS_ustat, ENOSYS, 0, 0, BAD),
	CALL(sysctl, SYS__sysctl, ENOSYS, 0, BAD),
	CALL(sysfs, SYS_sysfs, ENOSYS, 0, 3),
#endif

	/* by argument */
	CALL(openat2, 437, ENOSYS, 0, HERE, TEXT("/"), BAD, 24),
	CALL(personality_read_implies_exec, SYS_personality, EPERM, 1, 0x0400000),
	CALL(personality_linux32, SYS_personality, EPERM, 1, 8),
	CALL(personality_no_randomize_and_more, SYS_personality, EPERM, 1, 0x0440000),
	CALL(prctl_set_mm, SYS_prctl, EPERM, 1, PR_SET_MM, 1, 0, 0, 0),
	CALL(prctl_sched_core, SYS_prctl, EPERM, 1, 62, 1, 0, 0, 0),
	CALL(prctl_futex_hash, SYS_prctl, EINVAL, 1, 78, 2, 0, 0, 0), /* asks for the size */
	CALL(mmap_hugetlb, SYS_mmap, ENOMEM, 8, 0, 1 << 21, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0),
	CALL(memfd_hugetlb, SYS_memfd_create, EPERM, 2, TEXT("x"), 4),
	CALL(memfd_unknown_flag, SYS_memfd_create, EINVAL, 2, TEXT("x"), 0x20),
	CALL(memfd_every_flag, SYS_memfd_create, EINVAL, 2, TEXT("x"), 0xffffffff),
	CALL(shmget_hugetlb, SYS_shmget, EPERM, 4, 0, 1 << 21, 04000 | 01600),
	CALL(madvise_mergeable, SYS_madvise, EINVAL, 4, 0, 0, 12),
	CALL(fcntl_setlease, SYS_fcntl, EPERM, 2, 0, 1024, 0),
	CALL(setsockopt_ulp, SYS_setsockopt, ENOPROTOOPT, 6, -1, 6, 31, TEXT("tls"), 4),
	CALL(setsockopt_attach_filter, SYS_setsockopt, EPERM, 6, -1, SOL_SOCKET, 26, BAD, 16),
	CALL(setsockopt_attach_bpf, SYS_setsockopt, EPERM, 6, -1, SOL_SOCKET, 50, BAD, 4),
	CALL(setsockopt_reuseport_cbpf, SYS_setsockopt, EPERM, 6, -1, SOL_SOCKET, 51, BAD, 16),
	CALL(setsockopt_reuseport_ebpf, SYS_setsockopt, EPERM, 6, -1, SOL_SOCKET, 52, BAD, 4),
	CALL(setsockopt_udp_encap, SYS_setsockopt, EPERM, 6, -1, 17, 100, BAD, 4),
	CALL(setsockopt_udplite_encap, SYS_setsockopt, EPERM, 6, -1, 136, 100, BAD, 4),
	CALL(sendto_oob, SYS_sendto, EOPNOTSUPP, 8, -1, BAD, 1, MSG_OOB, 0, 0),
	CALL(sendto_oob_and_more, SYS_sendto, EOPNOTSUPP, 8, -1, BAD, 1, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0),
	CALL(sendmsg_oob, SYS_sendmsg, EOPNOTSUPP, 4, -1, BAD, MSG_OOB),
	CALL(sendmmsg_oob, SYS_sendmmsg, EOPNOTSUPP, 8, -1, BAD, 1, MSG_OOB),
	CALL(recvfrom_oob, SYS_recvfrom, EINVAL, 8, -1, BAD, 1, MSG_OOB, 0, 0),
	CALL(recvfrom_oob_peek, SYS_recvfrom, EINVAL, 8, -1, BAD, 1, MSG_OOB | MSG_PEEK | MSG_DONTWAIT, 0, 0),
	CALL(recvmsg_oob, SYS_recvmsg, EINVAL, 4, -1, BAD, MSG_OOB),
	CALL(recvmmsg_oob, SYS_recvmmsg, EINVAL, 8, -1, BAD, 1, MSG_OOB, 0),
	CALL(socketpair_inet, SYS_socketpair, EAFNOSUPPORT, 1, AF_INET, SOCK_STREAM, 0, BAD),
	CALL(socketpair_tipc, SYS_socketpair, EAFNOSUPPORT, 1, 30, SOCK_STREAM, 0, BAD),
	CALL(fchmod_setuid, SYS_fchmod, EPERM, 2, 0, 04755),
	CALL(fchmod_setgid, SYS_fchmod, EPERM, 2, 0, 02755),
	CALL(fchmod_bit_16, SYS_fchmod, EPERM, 2, 0, 0x10000 | 04755),
	CALL(fchmodat_setuid, SYS_fchmodat, EPERM, 4, HERE, TEXT("f"), 04755),
	CALL(fchmodat_setgid, SYS_fchmodat, EPERM, 4, HERE, TEXT("f"), 02755),
	CALL(fchmodat2_setuid, 452, EPERM, 4, HERE, TEXT("f"), 04755, 0),
	CALL(fchmodat2_setgid, 452, EPERM, 4, HERE, TEXT("f"), 02755, 0),
	CALL(openat_setuid, SYS_openat, EPERM, 12, HERE, TEXT("f"), O_CREAT | O_WRONLY, 04755),
	CALL(openat_setgid, SYS_openat, EPERM, 12, HERE, TEXT("f"), O_CREAT | O_WRONLY, 02755),
	CALL(openat_tmpfile_setuid, SYS_openat, EPERM, 12, HERE, TEXT("."), O_TMPFILE | O_WRONLY, 04755),
	CALL(mkdirat_setgid, SYS_mkdirat, EPERM, 4, HERE, TEXT("f"), 02755),
	CALL(mknodat_setuid, SYS_mknodat, EPERM, 4, HERE, TEXT("f"), S_IFREG | 04755, 0),
	CALL(mknodat_char, SYS_mknodat, EPERM, 4, HERE, TEXT("f"), S_IFCHR | 0666, 0x103),
	CALL(mknodat_block, SYS_mknodat, EPERM, 4, HERE, TEXT("f"), S_IFBLK | 0666, 0x800),
	CALL(renameat2_whiteout, SYS_renameat2, EPERM, 16, HERE, TEXT("f"), HERE, TEXT("g"), 4),
#ifdef __x86_64__
	CALL(chmod_setuid, SYS_chmod, EPERM, 2, TEXT("f"), 04755),
	CALL(chmod_setgid, SYS_chmod, EPERM, 2, TEXT("f"), 02755),
	CALL(creat_setuid, SYS_creat, EPERM, 2, TEXT("f"), 04755),
	CALL(open_setuid, SYS_open, EPERM, 6, TEXT("f"), O_CREAT | O_WRONLY, 04755),
	CALL(open_tmpfile_setgid, SYS_open, EPERM, 6, TEXT("."), O_TMPFILE | O_WRONLY, 02755),
	CALL(mkdir_setgid, SYS_mkdir, EPERM, 2, TEXT("f"), 02755),
	CALL(mknod_setuid, SYS_mknod, EPERM, 2, TEXT("f"), S_IFREG | 04755, 0),
	CALL(mknod_char, SYS_mknod, EPERM, 2, TEXT("f"), S_IFCHR | 0666, 0x103),
	CALL(mknod_block, SYS_mknod, EPERM, 2, TEXT("f"), S_IFBLK | 0666, 0x800),
#endif
};
/* clang-format on */
const struct probe_list calls_probes = LIST(probes);
