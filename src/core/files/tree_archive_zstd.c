#include <archive.h>
#include <archive_entry.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/files/tree_archive_internal.h"
#include "format/archives/tar.h"
#include "linux/child.h"
#include "linux/landlock.h"
#include "linux/pidfd.h"

#define CPU_SECONDS_MAX 600
#define UNSIZED_MAX ((size_t)64 << 20) /* of a member of a zip that says its size at its end */
#define TIME_MS_MAX 3600000ull
#define DATA_MAX ((rlim_t)192 << 20) /* on top of what it inherits: a window of zstd is 128 MB */
#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

struct source {
	int fd;
	uint64_t got;
	char data[ARCHIVE_BUFFER];
};

static ssize_t read_some(int fd, char data[ARCHIVE_BUFFER])
{
	ssize_t got;

	do {
		got = read(fd, data, ARCHIVE_BUFFER);
	} while (got < 0 && errno == EINTR);
	return got;
}

static int write_failed(struct archive *archive, struct error *err)
{
	const char *why = archive_error_string(archive);

	return fail(err, ERR_FAILED, "compress the archive: %s", why ? why : "unknown");
}

static int compress(int from, int to, struct error *err)
{
	static char data[ARCHIVE_BUFFER];
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	ssize_t got;

	if (!archive || !entry)
		abort();
	archive_entry_set_filetype(entry, AE_IFREG);
	/* Zeros behind it would be no zstd. */
	if (archive_write_set_format_raw(archive) != ARCHIVE_OK ||
		archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK ||
		archive_write_add_filter_zstd(archive) != ARCHIVE_OK ||
		archive_write_open_fd(archive, to) != ARCHIVE_OK ||
		archive_write_header(archive, entry) != ARCHIVE_OK)
		return write_failed(archive, err);
	while ((got = read_some(from, data)) > 0)
		if (archive_write_data(archive, data, (size_t)got) != got)
			return write_failed(archive, err);
	if (got < 0)
		return fail_errno(err, "read the archive");
	/* Nothing is freed: the process ends. */
	return archive_write_close(archive) != ARCHIVE_OK ? write_failed(archive, err) : 0;
}

static la_ssize_t read_more(struct archive *archive, void *ctx, const void **data)
{
	struct source *source = ctx;
	ssize_t got = read_some(source->fd, source->data);

	if (got < 0)
		archive_set_error(archive, errno, "read");
	else
		source->got += (uint64_t)got;
	*data = source->data;
	return got;
}

static int read_failed(struct archive *archive, struct error *err)
{
	const char *why = archive_error_string(archive);

	if (archive_errno(archive) == ENOMEM)
		return fail(err, ERR_LIMIT, "reading the archive needs too much memory");
	return fail(err, ERR_INVALID, "this is not a tar, tar.gz, tar.zst or zip archive: %s",
		why ? why : "unknown");
}

/* Whether so much may come out of what went in. */
static int check_ratio(uint64_t unpacked, const struct source *source, struct error *err)
{
	return unpacked > ARCHIVE_RATIO_FREE && unpacked / ARCHIVE_RATIO_MAX > source->got
		       ? fail(err, ERR_LIMIT, "the archive unpacks to more than %d times its size",
				 ARCHIVE_RATIO_MAX)
		       : 0;
}

static int hand_on(int out, const void *data, size_t len, struct error *err)
{
	return fd_write_full(out, data, len) != (ssize_t)len
		       ? fail_errno(err, "hand the archive on")
		       : 0;
}

static int pass_on(struct archive *archive, const struct source *source, int out, struct error *err)
{
	const void *data;
	size_t len;
	la_int64_t at;
	int got;

	while ((got = archive_read_data_block(archive, &data, &len, &at)) == ARCHIVE_OK)
		if (check_ratio((uint64_t)archive_filter_bytes(archive, 0), source, err) ||
			hand_on(out, data, len, err))
			return -1;
	return got == ARCHIVE_EOF ? 0 : read_failed(archive, err);
}

/* ---- zip, as tar ---- */

/* Data of the member as it comes; or into `whole`, where its size isn't known before. */
static int pass_data(struct archive *archive, const struct source *source, const char *name,
	uint64_t *unpacked, uint64_t *left, struct buf *whole, int out, struct error *err)
{
	const void *data;
	size_t len;
	la_int64_t at, next = 0;
	int got;

	while ((got = archive_read_data_block(archive, &data, &len, &at)) == ARCHIVE_OK) {
		*unpacked += len;
		if (at != next || len > *left)
			return fail(err, ERR_INVALID,
				"member '%.256s' of the zip archive has another size than it says",
				name);
		if (check_ratio(*unpacked, source, err) || (!whole && hand_on(out, data, len, err)))
			return -1;
		if (whole)
			buf_append(whole, data, len);
		if (whole && whole->overflow)
			return fail(err, ERR_LIMIT,
				"member '%.256s' of the zip archive has more than %zu bytes, and "
				"no size before them",
				name, UNSIZED_MAX);
		next += (la_int64_t)len;
		*left -= len;
	}
	return got == ARCHIVE_EOF ? 0 : read_failed(archive, err);
}

static int pass_member(struct archive *archive, struct archive_entry *entry,
	const struct source *source, uint64_t *unpacked, int out, struct error *err)
{
	static const char zeros[TAR_BLOCK];
	auto_buf struct buf head = buf_empty(TAR_EXTRA_MAX), whole = buf_empty(UNSIZED_MAX);
	const char *name = archive_entry_pathname(entry);
	bool is_directory = archive_entry_filetype(entry) == AE_IFDIR;
	bool is_sized = is_directory || archive_entry_size_is_set(entry);
	struct tar_entry member = { .kind = is_directory ? TAR_DIRECTORY : TAR_FILE,
		.name = name ? name : "",
		.size = is_directory || !is_sized ? 0 : (uint64_t)archive_entry_size(entry),
		.mode = is_directory ? 0755u : (archive_entry_perm(entry) & 0777u) | 0600u,
		.modified_s = archive_entry_mtime(entry) };
	uint64_t left = is_sized ? member.size : UNSIZED_MAX;

	if (archive_entry_symlink(entry) || archive_entry_is_encrypted(entry))
		return fail(err, ERR_DENIED, "member '%.256s' of the zip archive is %s",
			member.name, archive_entry_symlink(entry) ? "a link" : "encrypted");
	/* A writer that can't seek says the size behind the data. */
	if (!is_sized && pass_data(archive, source, member.name, unpacked, &left, &whole, out, err))
		return -1;
	if (!is_sized)
		member.size = whole.len;
	if (tar_write_entry(&head, &member, err) || hand_on(out, head.data, head.len, err))
		return -1;
	if (is_sized ? pass_data(archive, source, member.name, unpacked, &left, NULL, out, err)
		     : hand_on(out, whole.data, whole.len, err))
		return -1;
	if (is_sized && left)
		return fail(
			err, ERR_INVALID, "member '%.256s' of the zip archive is cut", member.name);
	size_t padding = (TAR_BLOCK - member.size % TAR_BLOCK) % TAR_BLOCK;
	return padding ? hand_on(out, zeros, padding, err) : 0;
}

static int pass_zip(struct archive *archive, struct archive_entry *entry,
	const struct source *source, int out, struct error *err)
{
	auto_buf struct buf end = buf_empty(TAR_EXTRA_MAX);
	uint64_t unpacked = 0;
	int got;

	do
		if (pass_member(archive, entry, source, &unpacked, out, err))
			return -1;
	while ((got = archive_read_next_header(archive, &entry)) == ARCHIVE_OK);
	if (got != ARCHIVE_EOF)
		return read_failed(archive, err);
	tar_write_end(&end);
	return hand_on(out, end.data, end.len, err);
}

static int decompress(int from, int to, struct error *err)
{
	static struct source source;
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;

	if (!archive)
		abort();
	source.fd = from;
	if (archive_read_support_filter_zstd(archive) != ARCHIVE_OK ||
		archive_read_support_filter_gzip(archive) != ARCHIVE_OK ||
		archive_read_support_format_zip_streamable(archive) != ARCHIVE_OK ||
		archive_read_support_format_raw(archive) != ARCHIVE_OK ||
		archive_read_support_format_empty(archive) != ARCHIVE_OK)
		return fail(err, ERR_UNAVAILABLE, "libarchive can't read zstd, gzip or zip: %s",
			archive_error_string(archive));
	if (archive_read_open(archive, &source, NULL, read_more, NULL) != ARCHIVE_OK)
		return read_failed(archive, err);
	int got = archive_read_next_header(archive, &entry);
	if (got == ARCHIVE_EOF)
		return 0;
	if (got != ARCHIVE_OK)
		return read_failed(archive, err);
	return archive_format(archive) == ARCHIVE_FORMAT_ZIP
		       ? pass_zip(archive, entry, &source, to, err)
		       : pass_on(archive, &source, to, err);
}

/* ---- the child ---- */

/* Pipes, memory, time, its own end. newfstatat is the fstat of some C libraries. */
static const int allowed_calls[] = { SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_close,
	SYS_lseek, SYS_fstat, SYS_newfstatat, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect,
	SYS_madvise, SYS_brk, SYS_futex, SYS_getrandom, SYS_clock_gettime, SYS_gettimeofday,
	SYS_sigaltstack, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_rt_sigreturn,
	SYS_restart_syscall, SYS_getpid, SYS_gettid, SYS_tgkill, SYS_sched_yield, SYS_exit,
	SYS_exit_group };
#define CALL_COUNT (sizeof allowed_calls / sizeof *allowed_calls)

static int load_filter(struct error *err)
{
	struct sock_filter code[5 + CALL_COUNT + 2];
	size_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < CALL_COUNT; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			(unsigned)allowed_calls[i], (unsigned char)(CALL_COUNT - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { (unsigned short)n, code };
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return fail_errno_code(err, ERR_UNAVAILABLE, "load the filter");
	return 0;
}

/* No path, no process, no privilege; the descriptors are its two pipes, its report and stderr. */
static int lock(struct error *err)
{
	auto_close int ruleset = -1;

	close(0);
	close(1);
	child_reset_signals();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail_errno(err, "lock a child");
	if (child_limit_data(DATA_MAX, err) < 0 || child_limit(RLIMIT_CORE, 0, err) < 0 ||
		child_limit(RLIMIT_CPU, CPU_SECONDS_MAX, err) < 0 ||
		landlock_create(landlock_abi(), &ruleset, err) < 0 ||
		landlock_enforce(ruleset, err) < 0)
		return -1;
	fd_close(&ruleset);
	return load_filter(err);
}

/* Whether it has failed; then zstd->err, which comes back with that. */
static uint64_t work(void *ctx)
{
	struct zstd *zstd = ctx;

	if (lock(&zstd->err) < 0)
		return 1;
	return (zstd->compresses ? compress : decompress)(zstd->from, zstd->to, &zstd->err) < 0;
}

static void on_ended(void *ctx, bool ok, uint64_t has_failed)
{
	struct zstd *zstd = ctx;
	const char *what = zstd->compresses ? "pack an archive" : "unpack the archive";

	if (!zstd->is_started)
		return;
	zstd_stop(zstd);
	if (zstd->is_late)
		fail(&zstd->err, ERR_LIMIT, "%s: took longer than %llu minutes", what,
			TIME_MS_MAX / 60000);
	else if (!ok)
		fail(&zstd->err, ERR_FAILED,
			"%s: the process ended without a result; it may use %d minutes of cpu time",
			what, CPU_SECONDS_MAX / 60);
	else if (has_failed) /* from a process that parses what strangers send */
		error_adopt(&zstd->err);
	zstd->done(zstd->ctx, ok && !has_failed ? NULL : &zstd->err);
}

static void on_late(struct loop *loop, void *ctx)
{
	struct zstd *zstd = ctx;

	zstd->timer = NULL;
	zstd->is_late = true;
	pidfd_signal(zstd->child.child.pidfd, SIGKILL, NULL);
}

int zstd_start(struct zstd *zstd, struct loop *loop, struct error *err)
{
	zstd->child = (struct measure){ .loop = loop,
		.find = work,
		.found = on_ended,
		.ctx = zstd,
		.keep = { zstd->from, zstd->to },
		.keep_count = 2,
		.detail = &zstd->err,
		.detail_len = sizeof zstd->err };
	measure_start(&zstd->child);
	if (!zstd->child.is_running)
		return fail(err, ERR_UNAVAILABLE, "no process could be started for the archive");
	zstd->is_started = true;
	zstd->timer = loop_after(loop, TIME_MS_MAX, on_late, zstd);
	return 0;
}

void zstd_stop(struct zstd *zstd)
{
	loop_cancel(zstd->child.loop, zstd->timer);
	zstd->timer = NULL;
	measure_stop(&zstd->child);
}
