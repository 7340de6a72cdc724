#include "linux/capability.h"
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NOROOT, NO_SETUID_FIXUP, KEEP_CAPS (off) and NO_CAP_AMBIENT_RAISE, all locked: uid 0 means
 * nothing, for good. */
#define SECURE_BITS                                                                                \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
		SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |                          \
		SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

static int read_sets(struct __user_cap_data_struct words[2])
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	return (int)syscall(SYS_capget, &header, words);
}

bool capability_is_effective(int capability)
{
	struct __user_cap_data_struct words[2];
	if (capability < 0 || capability > 63 || read_sets(words) != 0)
		return false;
	return words[capability / 32].effective >> (capability % 32) & 1;
}

static int drop_bounding_set(struct error *err)
{
	/* Dropping fails past the kernel's last capability, and so does reading. One that isn't
	 * there needs no dropping, which a caller without CAP_SETPCAP couldn't. */
	for (int i = 0; i < 64; i++) {
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0)
			continue;
		int there = prctl(PR_CAPBSET_READ, i, 0, 0, 0);
		if (there < 0)
			return 0;
		if (there > 0)
			return fail(err, ERR_DENIED,
				"capability %d can't be dropped from the bounding set", i);
	}
	return 0;
}

int capability_drop_all(struct error *err)
{
	/* Without CAP_SETPCAP neither is possible, and with an empty bounding set neither is
	 * needed. */
	prctl(PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0);
	if (drop_bounding_set(err) != 0)
		return -1;
	return capability_drop_held(err);
}

int capability_keep(unsigned mask, struct error *err)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct words[2] = { { mask, mask, 0 }, { 0 } };
	if (syscall(SYS_capset, &header, words) != 0)
		return fail_errno(err, "reduce the capability sets");
	if (read_sets(words) != 0)
		return fail_errno(err, "read the capability sets");
	if (words[0].effective != mask || words[0].permitted != mask || words[0].inheritable ||
		words[1].effective | words[1].permitted | words[1].inheritable)
		return fail(err, ERR_FAILED, "capability sets have more than was to be kept");
	return 0;
}

int capability_drop_held(struct error *err)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct words[2] = { 0 };
	/* The ambient set is never larger than permitted and inheritable, and goes with them. */
	if (syscall(SYS_capset, &header, words) != 0)
		return fail_errno(err, "empty the capability sets");
	if (read_sets(words) != 0)
		return fail_errno(err, "read the capability sets");
	for (int i = 0; i < 2; i++)
		if (words[i].effective | words[i].permitted | words[i].inheritable)
			return fail(err, ERR_FAILED, "capability sets aren't empty");
	return 0;
}

int capability_keep_over_exec(bool is_kept, struct error *err)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct words[2];
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) || read_sets(words))
		return fail_errno(err, "read the capability sets");
	for (int i = 0; i < 2; i++)
		words[i].inheritable = is_kept && geteuid() != 0 ? words[i].permitted : 0;
	if (syscall(SYS_capset, &header, words))
		return fail_errno(err, "change the inheritable capabilities");
	for (int i = 0; i < 64; i++)
		if (words[i / 32].inheritable >> i % 32 & 1 &&
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0))
			return fail_errno(err, "keep capability %d", i);
	return 0;
}
