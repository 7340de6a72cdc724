#include "linux/capability.h"
#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <linux/capability.h> is hidden by our header of the same name. */
#define CAPABILITY_VERSION_3 0x20080522
struct capability_header {
	uint32_t version;
	int pid;
};
struct capability_words { /* two of them: capabilities 0 to 31, 32 to 63 */
	uint32_t effective, permitted, inheritable;
};

/* NOROOT, NO_SETUID_FIXUP, KEEP_CAPS (off) and NO_CAP_AMBIENT_RAISE, all locked: uid 0 means
 * nothing, for good. */
#define SECURE_BITS (0x01 | 0x02 | 0x04 | 0x08 | 0x20 | 0x40 | 0x80)

static int read_sets(struct capability_words words[2])
{
	struct capability_header header = { CAPABILITY_VERSION_3, 0 };
	return (int)syscall(SYS_capget, &header, words);
}

bool capability_is_effective(int capability)
{
	struct capability_words words[2];
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

int capability_drop_held(struct error *err)
{
	struct capability_header header = { CAPABILITY_VERSION_3, 0 };
	struct capability_words words[2] = { 0 };
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
