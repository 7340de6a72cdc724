#include "sandbox/native/usage.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/walk.h"
#include "format/text/procfs.h"
#include "sandbox/native/family.h"
#include "sandbox/native/init_client.h"

#define PROCESSES_MAX 65536
#define COST_SHARE 10	   /* a look that used n ms of cpu is followed by n * 10 ms of rest */
#define MEMFDS_MS 1000	   /* how long memfds may stay uncounted where they could matter */
#define SAVED_MOST_MS 50   /* cpu share: what may be used at once */
#define PAUSE_SLACK_MS 200 /* cpu time that stopping everything may take to show */

struct usage_seen {
	int pid;
	uint64_t start_ticks, cpu_ticks;
	bool alive;
};

struct deleted_walk;

/* What one walk over the processes adds up. */
struct walk {
	struct usage *usage;
	const struct deleted_walk *memfds; /* counted by their descriptors already */
	uint64_t anonymous_kb, shared_kb, tables_kb;
	uint64_t largest_kb; /* anonymous memory of one process */
	int count;
};

int usage_init(struct usage *usage, int proc, const int tmpfs[USAGE_TMPFS], struct error *err)
{
	struct stat st;
	auto_close int memfd = memfd_create("carrel", MFD_CLOEXEC);
	if (memfd < 0 || fstat(memfd, &st))
		return fail_errno(err, "find the device of shared memory");
	*usage = (struct usage){ .proc = proc, .shm_device = st.st_dev };
	memcpy(usage->tmpfs, tmpfs, sizeof usage->tmpfs);
	return 0;
}

void usage_done(struct usage *usage)
{
	free(usage->seen);
	usage->seen = NULL;
}

/* The position of `proc` is shared with other processes: the directory is opened anew. */
void usage_each_process(int proc, void (*fn)(void *ctx, int proc, int pid), void *ctx)
{
	auto_walk DIR *dir = walk_open(proc, ".");
	struct dirent *entry;
	int count = 0;
	uint64_t pid;
	while (count < PROCESSES_MAX && (entry = walk_next(dir)))
		if (str_to_u64(str_from(entry->d_name), &pid)) {
			fn(ctx, dirfd(dir), (int)pid);
			count++;
		}
}

static void each_process(
	const struct usage *usage, void (*fn)(void *ctx, int proc, int pid), void *ctx)
{
	if (usage->below)
		family_each(usage->proc, usage->below, fn, ctx);
	else
		usage_each_process(usage->proc, fn, ctx);
}

/* Adds the value of `key` in a text of /proc, if it is there. */
static void add_kb(struct str text, const char *key, uint64_t *sum_kb)
{
	uint64_t kb;
	if (procfs_find_kb(text, key, &kb))
		*sum_kb += kb;
}

static struct str read_text(int proc, int pid, const char *name, char *text, size_t size)
{
	char path[48];
	str_format(path, sizeof path, "%d/%s", pid, name);
	ssize_t len = fd_read_file(proc, path, text, size);
	return (struct str){ text, len > 0 ? (size_t)len : 0 };
}

static void add_resident(void *ctx, int proc, int pid)
{
	struct walk *walk = ctx;
	char text[4096];
	if (pid == walk->usage->below)
		return;
	struct str status = read_text(proc, pid, "status", text, sizeof text);
	uint64_t own_kb = 0;
	walk->count++;
	add_kb(status, "RssAnon", &own_kb);
	walk->anonymous_kb += own_kb;
	if (own_kb > walk->largest_kb)
		walk->largest_kb = own_kb;
	add_kb(status, "VmSwap", &walk->anonymous_kb);
	add_kb(status, "RssShmem", &walk->shared_kb);
	add_kb(status, "VmPTE", &walk->tables_kb);
}

static uint64_t tmpfs_bytes(const struct usage *usage)
{
	uint64_t bytes = 0;
	for (int i = 0; i < USAGE_TMPFS; i++) {
		struct statvfs fs;
		if (usage->tmpfs[i] >= 0 && !fstatvfs(usage->tmpfs[i], &fs))
			bytes += (fs.f_blocks - fs.f_bfree) * fs.f_frsize;
	}
	return bytes;
}

static uint64_t walk_bytes(const struct walk *walk)
{
	return (walk->anonymous_kb + walk->shared_kb + walk->tables_kb) * 1024;
}

static uint64_t memory_bound(struct usage *usage, uint64_t *least)
{
	struct walk walk = { .usage = usage };
	each_process(usage, add_resident, &walk);
	usage->processes = walk.count;
	uint64_t elsewhere = usage->sysv_bytes + tmpfs_bytes(usage);
	*least = walk.largest_kb * 1024 + elsewhere;
	return walk_bytes(&walk) + elsewhere;
}

static void add_tasks(void *ctx, int proc, int pid)
{
	uint64_t *tasks = ctx, count;
	char text[4096];
	struct str rest = read_text(proc, pid, "status", text, sizeof text), line, key, value;
	while (str_next(&rest, '\n', &line))
		if (str_starts_with(line, "Threads:") && str_cut(line, ':', &key, &value) &&
			str_to_u64(str_trim(value), &count))
			*tasks += count;
}

void usage_look(struct usage *usage, uint64_t *memory_bytes, uint64_t *tasks)
{
	uint64_t least;
	*tasks = 0;
	*memory_bytes = memory_bound(usage, &least);
	each_process(usage, add_tasks, tasks);
}

#define INODES_MAX 4096 /* told apart; what is past that counts each time it is seen */

struct deleted_walk {
	uint64_t device, bytes;
	uint64_t inodes[INODES_MAX];
	int count;
};

static bool is_known(const struct deleted_walk *walk, uint64_t inode)
{
	for (int i = 0; i < walk->count; i++)
		if (walk->inodes[i] == inode)
			return true;
	return false;
}

static bool is_new(struct deleted_walk *walk, uint64_t inode)
{
	if (is_known(walk, inode))
		return false;
	if (walk->count < INODES_MAX)
		walk->inodes[walk->count++] = inode;
	return true;
}

static void add_deleted(void *ctx, int proc, int pid)
{
	struct deleted_walk *walk = ctx;
	char path[48];
	str_format(path, sizeof path, "%d/fd", pid);
	auto_walk DIR *dir = walk_open(proc, path);
	struct dirent *entry;
	while ((entry = walk_next(dir))) {
		struct stat st;
		if (!fstatat(dirfd(dir), entry->d_name, &st, 0) && st.st_nlink == 0 &&
			st.st_dev == walk->device && is_new(walk, st.st_ino))
			walk->bytes += (uint64_t)st.st_blocks * 512;
	}
}

/* One mapping of smaps: its header says on which device and inode it lies; "Pss" is its share of
 * the shared pages. */
static bool is_counted_elsewhere(const struct usage *usage, uint64_t device, struct str name)
{
	/* A file is page cache, a tmpfs was counted by statvfs, SysV shared memory by carrel-init.
	 */
	return device != usage->shm_device || str_starts_with(name, "/SYSV");
}

static void add_smaps(struct walk *walk, FILE *file)
{
	char line[512];
	bool counts_shared = false;
	while (fgets(line, sizeof line, file)) {
		unsigned major_number, minor_number;
		unsigned long inode;
		int name_at = 0;
		uint64_t kb;
		struct str text = str_trim(str_from(line));
		if (sscanf(line, "%*x-%*x %*4s %*x %x:%x %lu %n", &major_number, &minor_number,
			    &inode, &name_at) == 3) {
			struct str name =
				name_at > 0 ? str_trim(str_from(line + name_at)) : STR("");
			counts_shared = inode &&
					!is_counted_elsewhere(walk->usage,
						makedev(major_number, minor_number), name) &&
					!is_known(walk->memfds, inode);
		} else if (counts_shared && procfs_find_kb(text, "Pss", &kb))
			walk->shared_kb += kb;
	}
}

static void add_exact(void *ctx, int proc, int pid)
{
	struct walk *walk = ctx;
	char path[48], text[4096];
	if (pid == walk->usage->below)
		return;
	struct str rollup = read_text(proc, pid, "smaps_rollup", text, sizeof text);
	if (!rollup.len) {
		/* A process that made itself undumpable is counted in full: it gains nothing by it.
		 */
		add_resident(walk, proc, pid);
		return;
	}
	add_kb(rollup, "Pss_Anon", &walk->anonymous_kb);
	add_kb(rollup, "SwapPss", &walk->anonymous_kb);
	add_kb(read_text(proc, pid, "status", text, sizeof text), "VmPTE", &walk->tables_kb);
	str_format(path, sizeof path, "%d/smaps", pid);
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	if (file) {
		add_smaps(walk, file);
		fclose(file);
	} else
		fd_close(&fd);
}

static uint64_t memory(struct usage *usage)
{
	struct deleted_walk memfds = { .device = usage->shm_device };
	struct walk walk = { .usage = usage, .memfds = &memfds };
	each_process(usage, add_deleted, &memfds);
	each_process(usage, add_exact, &walk);
	return walk_bytes(&walk) + memfds.bytes + usage->sysv_bytes + tmpfs_bytes(usage);
}

static uint64_t shared_everywhere(void)
{
	struct sysinfo info;
	return sysinfo(&info) ? UINT64_MAX / 2 : (uint64_t)info.sharedram * info.mem_unit;
}

/* Two sums, each of which can miss something: what living processes and those they waited for used,
 * and what every process that was ever seen had used when last seen. A parent that ignores SIGCHLD
 * hides its children from the first only. */
struct cpu_walk {
	struct usage *usage;
	uint64_t with_children_ticks, own_ticks;
};

static uint64_t sockets_everywhere(void)
{
	char text[1024];
	uint64_t pages = 0, number;
	ssize_t len = fd_read_file(AT_FDCWD, "/proc/net/sockstat", text, sizeof text);
	struct str rest = { text, len > 0 ? (size_t)len : 0 }, line, word;
	while (str_next(&rest, '\n', &line)) {
		struct str last = { "", 0 };
		if (!str_starts_with(line, "TCP:") && !str_starts_with(line, "UDP:"))
			continue;
		while (str_next(&line, ' ', &word))
			last = word;
		if (str_to_u64(last, &number)) /* "… mem 165": the last of the line */
			pages += number;
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* "  0: 0100007F:1F90 00000000:0000 0A 00000010:00000020 …": the fifth word, written and not yet
 * acknowledged : received and not yet read. */
static uint64_t queued_bytes(int proc, const char *name)
{
	char path[32], line[512];
	uint64_t sum = 0;
	unsigned out, in;
	str_format(path, sizeof path, "1/net/%s", name);
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		fd_close(&fd);
		return 0;
	}
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "%*s %*s %*s %*s %x:%x", &out, &in) == 2)
			sum += (uint64_t)out + in;
	fclose(file);
	return sum;
}

static uint64_t socket_bytes(const struct usage *usage)
{
	static const char *const names[] = { "tcp", "tcp6", "udp", "udp6" };
	uint64_t sum = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		sum += queued_bytes(usage->proc, names[i]);
	return sum;
}

static struct usage_seen *find_seen(struct usage *usage, const struct procfs_stat *stat)
{
	for (int i = 0; i < usage->seen_count; i++)
		if (usage->seen[i].pid == stat->pid &&
			usage->seen[i].start_ticks == stat->start_ticks)
			return &usage->seen[i];
	struct usage_seen *grown =
		reallocarray(usage->seen, (size_t)usage->seen_count + 1, sizeof *grown);
	if (!grown)
		abort();
	usage->seen = grown;
	grown[usage->seen_count] = (struct usage_seen){ stat->pid, stat->start_ticks, 0, true };
	return &grown[usage->seen_count++];
}

static void add_cpu(void *ctx, int proc, int pid)
{
	struct cpu_walk *walk = ctx;
	char text[1024];
	struct procfs_stat stat;
	if (!procfs_parse_stat(read_text(proc, pid, "stat", text, sizeof text), &stat))
		return;
	uint64_t own = stat.utime_ticks + stat.stime_ticks;
	walk->own_ticks += own;
	walk->with_children_ticks += own + stat.cutime_ticks + stat.cstime_ticks;
	struct usage_seen *seen = find_seen(walk->usage, &stat);
	seen->cpu_ticks = own;
	seen->alive = true;
}

uint64_t usage_cpu_ms(struct usage *usage)
{
	uint64_t ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK);
	struct cpu_walk walk = { .usage = usage };
	for (int i = 0; i < usage->seen_count; i++)
		usage->seen[i].alive = false;
	each_process(usage, add_cpu, &walk);
	int kept = 0;
	for (int i = 0; i < usage->seen_count; i++) {
		if (usage->seen[i].alive)
			usage->seen[kept++] = usage->seen[i];
		else
			usage->departed_cpu_ms +=
				usage->seen[i].cpu_ticks * 1000 / ticks_per_second;
	}
	usage->seen_count = kept;
	uint64_t by_parents = walk.with_children_ticks * 1000 / ticks_per_second;
	uint64_t by_sight = walk.own_ticks * 1000 / ticks_per_second + usage->departed_cpu_ms;
	return by_parents > by_sight ? by_parents : by_sight;
}

static void add_peak(void *ctx, int proc, int pid)
{
	uint64_t *peak_kb = ctx, kb = 0;
	char text[4096];
	add_kb(read_text(proc, pid, "status", text, sizeof text), "VmHWM", &kb);
	if (kb > *peak_kb)
		*peak_kb = kb;
}

uint64_t usage_peak_kb(struct usage *usage)
{
	uint64_t peak_kb = 0;
	each_process(usage, add_peak, &peak_kb);
	return peak_kb;
}

bool usage_tmpfs_is_full(int tree)
{
	struct statvfs fs;
	if (tree < 0 || fstatvfs(tree, &fs))
		return false;
	return fs.f_bavail * fs.f_frsize < 65536 || fs.f_favail == 0;
}

/* ---- a look ---- */

static uint64_t find_memory(void *ctx)
{
	struct sample *sample = ctx;
	return memory(sample->usage);
}

static void on_memory(void *ctx, bool ok, uint64_t bytes)
{
	struct sample *sample = ctx;
	uint64_t now = clock_monotonic_ms();
	sample->exact_after_ms = now + (now - sample->memory_began_ms) * COST_SHARE;
	sample->exact_until_ms = now + MEMFDS_MS;
	sample->hidden_bytes = ok && bytes > sample->bound_bytes ? bytes - sample->bound_bytes : 0;
	if (ok && bytes > sample->memory_bytes)
		sample->hit(sample->ctx, REASON_MEMORY_LIMIT);
}

static int64_t most_saved_us(const struct sample *sample)
{
	return (int64_t)(SAVED_MOST_MS * sample->millicpus);
}

void sample_begin(struct sample *sample)
{
	sample->memory = (struct measure){
		.loop = sample->loop, .find = find_memory, .found = on_memory, .ctx = sample
	};
	sample->shared_bytes = shared_everywhere();
	sample->share_ms = clock_monotonic_ms();
	sample->saved_us = most_saved_us(sample);
}

/* Could it be over the limit? `bound` holds all but memfds. */
static bool may_be_over(
	const struct sample *sample, uint64_t bound, uint64_t shared, uint64_t now_ms)
{
	if (bound > sample->memory_bytes)
		return true;
	if (bound + shared <= sample->memory_bytes)
		return false;
	uint64_t grown = shared > sample->shared_bytes ? shared - sample->shared_bytes : 0;
	return bound + sample->hidden_bytes + grown > sample->memory_bytes ||
	       now_ms >= sample->exact_until_ms;
}

bool sample_is_memory_over(struct sample *sample)
{
	uint64_t least, bound = memory_bound(sample->usage, &least);
	if (least > sample->memory_bytes)
		return true;
	/* What waits in sockets belongs to no process, and adds to what processes have. */
	if (!sample->usage->below && least + sockets_everywhere() > sample->memory_bytes &&
		least + socket_bytes(sample->usage) > sample->memory_bytes)
		return true;
	uint64_t now = clock_monotonic_ms(), shared = shared_everywhere();
	if (!sample->memory.is_running && now >= sample->exact_after_ms &&
		may_be_over(sample, bound, shared, now)) {
		sample->memory_began_ms = now;
		sample->bound_bytes = bound;
		sample->shared_bytes = shared;
		sample->memory.keep[0] = sample->usage->proc;
		memcpy(sample->memory.keep + 1, sample->usage->tmpfs, sizeof sample->usage->tmpfs);
		sample->memory.keep_count = 1 + USAGE_TMPFS;
		measure_start(&sample->memory);
	}
	return false;
}

static void on_resume(struct loop *loop, void *ctx)
{
	struct sample *sample = ctx;
	struct error err;
	sample->resume = NULL;
	sample->is_paused = false;
	if (!sample->is_held)
		init_client_signal(sample->init_socket, 0, SIGCONT, &err);
}

/* Earned by time, spent by use. */
static void keep_book(struct sample *sample, uint64_t cpu_ms)
{
	uint64_t now_ms = clock_monotonic_ms();
	int64_t most_us = most_saved_us(sample);
	sample->saved_us += (int64_t)((now_ms - sample->share_ms) * sample->millicpus);
	if (cpu_ms > sample->share_cpu_ms)
		sample->saved_us -= (int64_t)((cpu_ms - sample->share_cpu_ms) * 1000);
	if (sample->saved_us > most_us)
		sample->saved_us = most_us;
	sample->share_ms = now_ms;
	sample->share_cpu_ms = cpu_ms;
}

void sample_hold_share(struct sample *sample, uint64_t cpu_ms)
{
	struct error err;
	keep_book(sample, cpu_ms);
	if (sample->is_paused) {
		/* What continues itself while it is stopped has chosen another limit. */
		if (cpu_ms > sample->paused_at_cpu_ms + PAUSE_SLACK_MS)
			sample->hit(sample->ctx, REASON_CPU_LIMIT);
		return;
	}
	if (sample->saved_us >= 0)
		return;
	if (init_client_signal(sample->init_socket, 0, SIGSTOP, &err))
		return; /* init is ending: so is everything else */
	sample->is_paused = true;
	sample->paused_at_cpu_ms = cpu_ms;
	sample->resume = loop_after(sample->loop,
		(uint64_t)-sample->saved_us / sample->millicpus + 1, on_resume, sample);
}

uint64_t sample_rest_ms(uint64_t cost_us, unsigned count)
{
	uint64_t rest_ms = cost_us * count * COST_SHARE / 1000;
	return rest_ms > SAMPLE_MS ? rest_ms : SAMPLE_MS;
}

void sample_end(struct sample *sample)
{
	loop_cancel(sample->loop, sample->resume);
	sample->resume = NULL;
	measure_stop(&sample->memory);
}
