#include "linux/landlock.h"
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's interface up to ABI 7, newer than <linux/landlock.h> of Debian 12. */
enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_DIR = 1 << 4,
	FS_REMOVE_FILE = 1 << 5,
	FS_MAKE_CHAR = 1 << 6,
	FS_MAKE_DIR = 1 << 7,
	FS_MAKE_REG = 1 << 8,
	FS_MAKE_SOCK = 1 << 9,
	FS_MAKE_FIFO = 1 << 10,
	FS_MAKE_BLOCK = 1 << 11,
	FS_MAKE_SYM = 1 << 12,
	FS_REFER = 1 << 13,	/* ABI 2 */
	FS_TRUNCATE = 1 << 14,	/* ABI 3 */
	FS_IOCTL_DEV = 1 << 15, /* ABI 5 */
};
enum { NET_BIND_TCP = 1, NET_CONNECT_TCP = 2 };
enum { SCOPE_ABSTRACT_UNIX_SOCKET = 1, SCOPE_SIGNAL = 2 };
enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1, RESTRICT_LOG_SUBDOMAINS_OFF = 4 };

struct ruleset_attr {
	uint64_t handled_fs;
	uint64_t
		handled_net; /* since ABI 4; mostly left alone: the network namespace has lo only */
	uint64_t scoped;     /* since ABI 6 */
};
struct path_beneath_attr {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

/* A rule on something that isn't a directory may hold these only. */
#define FILE_RIGHTS (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

#define CHANGES                                                                                    \
	(FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SOCK |               \
		FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER)

static const struct {
	unsigned access;
	uint64_t rights;
} grants[] = {
	{ LANDLOCK_READ, FS_READ_FILE | FS_READ_DIR },
	{ LANDLOCK_EXECUTE, FS_EXECUTE },
	/* No devices: neither made here nor linked or moved in. */
	{ LANDLOCK_WRITE, FS_WRITE_FILE | FS_TRUNCATE | CHANGES },
	{ LANDLOCK_DEVICE, FS_WRITE_FILE | FS_IOCTL_DEV },
	{ LANDLOCK_CHANGE, CHANGES },
	{ LANDLOCK_TRUNCATE, FS_TRUNCATE },
	{ LANDLOCK_WHITEOUT, FS_MAKE_CHAR },
};

/* Every open that reads asks for TRUNCATE as well. */
#define ASKED_BY_READERS (FS_READ_FILE | FS_READ_DIR | FS_TRUNCATE)

static uint64_t rights_of_abi(int abi)
{
	uint64_t rights = FS_REFER - 1;
	if (abi >= 2)
		rights |= FS_REFER;
	if (abi >= 3)
		rights |= FS_TRUNCATE;
	if (abi >= 5)
		rights |= FS_IOCTL_DEV;
	return rights;
}

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
	return abi < 0 ? 0 : (int)abi;
}

static int landlock_make(
	const struct ruleset_attr *attr, size_t size, int *ruleset, struct error *err)
{
	int fd = (int)syscall(SYS_landlock_create_ruleset, attr, size, 0);
	if (fd < 0)
		return fail_errno_code(err, ERR_UNAVAILABLE, "make a Landlock ruleset");
	*ruleset = fd;
	return 0;
}

static int create(int abi, uint64_t handled, uint64_t net, int *ruleset, struct error *err)
{
	if (abi < 1)
		return fail_hint(err, ERR_UNAVAILABLE,
			"boot with lsm=landlock,... or see carrel doctor",
			"Landlock isn't available on this kernel");
	struct ruleset_attr attr = { .handled_fs = handled & rights_of_abi(abi) };
	size_t size = offsetof(struct ruleset_attr, handled_net);
	if (abi >= 4 && net) {
		attr.handled_net = net;
		size = offsetof(struct ruleset_attr, scoped);
	}
	if (abi >= 6) {
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	return landlock_make(&attr, size, ruleset, err);
}

int landlock_create(int abi, int *ruleset, struct error *err)
{
	return create(abi, ~(uint64_t)0, 0, ruleset, err);
}

int landlock_create_alone(int abi, int *ruleset, struct error *err)
{
	return create(abi, ~(uint64_t)0, NET_BIND_TCP | NET_CONNECT_TCP, ruleset, err);
}

int landlock_create_scope(int *ruleset, struct error *err)
{
	const struct ruleset_attr attr = { .scoped = SCOPE_SIGNAL };
	return landlock_make(&attr, sizeof attr, ruleset, err);
}

int landlock_create_writes(int abi, int *ruleset, struct error *err)
{
	return create(abi, ~(uint64_t)ASKED_BY_READERS, 0, ruleset, err);
}

int landlock_create_changes(int abi, int *ruleset, struct error *err)
{
	return create(abi, CHANGES | FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_EXECUTE, 0, ruleset, err);
}

int landlock_allow(
	int ruleset, int abi, int path_fd, const char *name, unsigned access, struct error *err)
{
	struct stat st;
	if (fstat(path_fd, &st) != 0)
		return fail_errno(err, "Landlock rule for '%s'", name);
	struct path_beneath_attr rule = { .parent = path_fd };
	for (size_t i = 0; i < sizeof(grants) / sizeof(grants[0]); i++)
		if (access & grants[i].access)
			rule.allowed |= grants[i].rights;
	rule.allowed &= rights_of_abi(abi);
	if (access & LANDLOCK_ONLY_WRITES)
		rule.allowed &= ~(uint64_t)ASKED_BY_READERS;
	if (!S_ISDIR(st.st_mode))
		rule.allowed &= FILE_RIGHTS;
	if (!rule.allowed) /* the kernel refuses a rule that grants nothing */
		return 0;
	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) != 0)
		return fail_errno(err, "Landlock rule for '%s'", name);
	return 0;
}

int landlock_enforce(int ruleset, struct error *err)
{
	/* With that flag the kernel takes -1 for "no ruleset", and restricts nothing. */
	if (ruleset < 0)
		return fail(err, ERR_UNAVAILABLE, "enforce the Landlock ruleset: none was made");
	/* ABI 7 would log what rulesets made inside refuse: a way to flood the host's audit log. */
	if (syscall(SYS_landlock_restrict_self, ruleset, RESTRICT_LOG_SUBDOMAINS_OFF) == 0)
		return 0;
	if (errno != EINVAL || syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
		return fail_errno_code(err, ERR_UNAVAILABLE, "enforce the Landlock ruleset");
	return 0;
}
