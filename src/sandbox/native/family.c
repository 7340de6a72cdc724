#include "sandbox/native/family.h"

#include <signal.h>
#include "base/fd.h"
#include "base/str.h"
#include "format/text/procfs.h"
#include "linux/pidfd.h"
#include "sandbox/native/usage.h"

struct member {
	int pid, ppid;
	uint64_t start_ticks;
	bool is_in;
};
struct family {
	struct member *items;
	size_t count;
};

static bool look_at(int proc, int pid, struct procfs_stat *stat)
{
	char path[32], text[1024];
	str_format(path, sizeof path, "%d/stat", pid);
	ssize_t len = fd_read_file(proc, path, text, sizeof text);
	return len > 0 && procfs_parse_stat((struct str){ text, (size_t)len }, stat);
}

static void add_member(void *ctx, int proc, int pid)
{
	struct family *family = ctx;
	struct procfs_stat stat;
	if (!look_at(proc, pid, &stat))
		return;
	struct member *grown =
		reallocarray(family->items, family->count + 1, sizeof *family->items);
	if (!grown)
		abort();
	family->items = grown;
	grown[family->count++] = (struct member){ pid, stat.ppid, stat.start_ticks, false };
}

static int compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool has_parent(const struct family *family, int ppid)
{
	const struct member key = { .pid = ppid };
	const struct member *parent =
		bsearch(&key, family->items, family->count, sizeof key, compare);
	return parent && parent->is_in;
}

/* The caller frees family->items. */
static void find(int proc, pid_t root, struct family *family)
{
	*family = (struct family){ 0 };
	usage_each_process(proc, add_member, family);
	if (!family->count)
		return;
	qsort(family->items, family->count, sizeof *family->items, compare);
	bool has_grown = true;
	while (has_grown) { /* a child mostly has the higher pid: rarely more than twice */
		has_grown = false;
		for (size_t i = 0; i < family->count; i++) {
			struct member *one = &family->items[i];
			if (one->is_in || (one->pid != root && !has_parent(family, one->ppid)))
				continue;
			one->is_in = has_grown = true;
		}
	}
}

void family_each(int proc, pid_t root, void (*fn)(void *ctx, int proc, int pid), void *ctx)
{
	struct family family;
	find(proc, root, &family);
	for (size_t i = 0; i < family.count; i++)
		if (family.items[i].is_in)
			fn(ctx, proc, family.items[i].pid);
	free(family.items);
}

/* By a descriptor, so that nothing else is hit when its pid has become another's. */
static void kill_one(int proc, const struct member *one)
{
	struct procfs_stat stat;
	struct error ignored;
	auto_close int pidfd = -1;
	if (!pidfd_open_process(one->pid, &pidfd, &ignored) && look_at(proc, one->pid, &stat) &&
		stat.start_ticks == one->start_ticks)
		pidfd_signal(pidfd, SIGKILL, &ignored);
}

void family_kill(int proc, pid_t root)
{
	struct family family;
	find(proc, root, &family);
	for (size_t i = 0; i < family.count; i++)
		if (family.items[i].is_in && family.items[i].pid != root)
			kill_one(proc, &family.items[i]);
	free(family.items);
}
