/* log.c -- the log of a daemon in the background stays bounded while it runs: what it holds is
 * copied to carrel.log.1, and it begins anew. Copied and not renamed, because launcher and core
 * write to the same open file, and neither can give the other a new one; a line that is written
 * between the last read and the cut is lost. By a child: it may take long. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/internal.h"

#define FILE_NAME "carrel.log"

static int copy_all(int from, int to)
{
	char data[65536];
	ssize_t len;
	while ((len = fd_read_full(from, data, sizeof data)) > 0)
		if (fd_write_full(to, data, (size_t)len) != len)
			return -1;
	return len < 0 ? -1 : 0;
}

/* In a child. Whether it has failed. */
static uint64_t put_aside(void *ctx)
{
	const struct core *core = ctx;
	int run = core->rotation.keep[0];
	auto_close int from = openat(run, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int to = openat(
		run, FILE_NAME ".1", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return from < 0 || to < 0 || copy_all(from, to) || ftruncate(core->log.fd, 0);
}

static void on_aside(void *ctx, bool ok, uint64_t has_failed)
{
	struct core *core = ctx;
	if (!ok || has_failed)
		log_record(&core->log, LOG_LEVEL_WARN, "the log couldn't be rotated", NULL);
}

void log_bound(struct core *core)
{
	struct stat open_file, named;
	auto_close int run = -1;
	if (core->rotation.is_running || fstat(core->log.fd, &open_file) ||
		!S_ISREG(open_file.st_mode) || open_file.st_size <= LOG_FILE_BYTES_MAX ||
		home_open_directory(&core->home, "run", &run, NULL))
		return;
	/* Any other log file was opened by the user who started the daemon, who also rotates it. */
	if (fstatat(run, FILE_NAME, &named, AT_SYMLINK_NOFOLLOW) ||
		named.st_dev != open_file.st_dev || named.st_ino != open_file.st_ino)
		return;
	core_start_child(core, &core->rotation, put_aside, on_aside, run, core->log.fd);
}
