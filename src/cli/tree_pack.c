#include "cli/tree_pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "format/tar.h"
#include "linux/child.h"

#define CHUNK 65536

struct report {
	bool has_failed;
	struct error err;
	struct pack_left_out left_out;
};
struct packing {
	int out;
	struct report report;
	char chunk[CHUNK];
};

static int send_all(struct packing *packing, const char *data, size_t len, struct error *err)
{
	if (fd_write_full(packing->out, data, len) == (ssize_t)len)
		return 0;
	return fail_errno(err, "send the archive");
}

static int send_header(struct packing *packing, const struct tar_entry *entry, struct error *err)
{
	auto_buf struct buf out;
	buf_init(&out, BUF_MAX_DEFAULT);
	if (tar_write_entry(&out, entry, err))
		return -1;
	return send_all(packing, out.data, out.len, err);
}

static int pack_file(struct packing *packing, int fd, struct tar_entry *entry, struct error *err)
{
	auto_buf struct buf padding;
	uint64_t left = entry->size;
	buf_init(&padding, TAR_BLOCK);
	if (send_header(packing, entry, err))
		return -1;
	while (left) {
		ssize_t got = read(fd, packing->chunk, left < CHUNK ? (size_t)left : CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read '%s'", entry->name);
		if (got == 0)
			return fail(err, ERR_CONFLICT, "'%s' became shorter while it was read",
				entry->name);
		if (send_all(packing, packing->chunk, (size_t)got, err))
			return -1;
		left -= (uint64_t)got;
	}
	tar_write_padding(&padding, entry->size);
	return send_all(packing, padding.data, padding.len, err);
}

static int pack_link(struct packing *packing, int dir, const char *base,
	const struct tar_entry *entry, struct error *err)
{
	char target[TAR_NAME_MAX + 1];
	ssize_t len = readlinkat(dir, base, target, sizeof target);
	if (len < 0)
		return fail_errno(err, "read link '%s'", entry->name);
	if (len == sizeof target)
		return fail(err, ERR_LIMIT, "the target of link '%s' is too long", entry->name);
	target[len] = 0;
	struct tar_entry link = *entry;
	link.link = target;
	return send_header(packing, &link, err);
}

static int pack_directory(
	struct packing *packing, int dir, const char *name, int depth, struct error *err);

static void leave_out(struct packing *packing, const char *name)
{
	struct pack_left_out *left_out = &packing->report.left_out;
	if (!left_out->count++)
		str_format(left_out->first, sizeof left_out->first, "'%s'", name);
}

/* `base` in dir, which is called `name` in the archive. */
static int pack_one(struct packing *packing, int dir, const char *base, const char *name, int depth,
	struct error *err)
{
	struct stat st;
	if (fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : fail_errno(err, "look at '%s'", name);
	struct tar_entry entry = {
		.name = name, .mode = st.st_mode & 0777, .modified_s = st.st_mtim.tv_sec
	};
	if (S_ISLNK(st.st_mode)) {
		entry.kind = TAR_SYMLINK;
		return pack_link(packing, dir, base, &entry, err);
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		leave_out(packing, name);
		return 0;
	}
	/* It may have become something else meanwhile: a fifo isn't waited for. */
	auto_close int fd =
		openat(dir, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : fail_errno(err, "open '%s'", name);
	if (fstat(fd, &st))
		return fail_errno(err, "look at '%s'", name);
	if (S_ISDIR(st.st_mode)) {
		entry.kind = TAR_DIRECTORY;
		return send_header(packing, &entry, err) ||
				       pack_directory(packing, fd, name, depth + 1, err)
			       ? -1
			       : 0;
	}
	if (!S_ISREG(st.st_mode)) {
		leave_out(packing, name);
		return 0;
	}
	entry.kind = TAR_FILE;
	entry.size = (uint64_t)st.st_size;
	return pack_file(packing, fd, &entry, err);
}

static int pack_directory(
	struct packing *packing, int dir, const char *name, int depth, struct error *err)
{
	int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), failed = 0;
	DIR *list = own >= 0 ? fdopendir(own) : NULL;
	const struct dirent *entry;
	if (!list) {
		fd_close(&own);
		return fail_errno(err, "read directory '%s'", name);
	}
	if (depth > PATH_DEPTH_MAX)
		failed = fail(err, ERR_LIMIT, "the tree is too deep at '%.100s...'", name);
	while (!failed && (entry = readdir(list))) {
		auto_buf struct buf path;
		buf_init(&path, 1 << 20);
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		buf_printf(&path, "%s%s%s", name, name[0] ? "/" : "", entry->d_name);
		failed = pack_one(packing, dir, entry->d_name, path.data, depth, err);
	}
	closedir(list);
	return failed;
}

static void pack_all(struct packing *packing, int dir)
{
	auto_buf struct buf end;
	struct report *report = &packing->report;
	struct error ignored;
	char noise[TAR_BLOCK];
	buf_init(&end, BUF_MAX_DEFAULT);
	tar_write_end(&end);
	report->has_failed = pack_directory(packing, dir, "", 0, &report->err) ||
			     send_all(packing, end.data, end.len, &report->err);
	/* An archive that just ends may pass for a whole one; no reader takes this for a header. */
	memset(noise, 'x', sizeof noise);
	if (report->has_failed)
		for (int i = 0; i < 4; i++)
			(void)send_all(packing, noise, sizeof noise, &ignored);
}

int pack_begin(struct pack *pack, int dir, struct error *err)
{
	int archive[2];
	*pack = (struct pack){ .child = CHILD_NONE, .archive = -1 };
	if (pipe2(archive, O_CLOEXEC))
		return fail_errno(err, "make a pipe");
	pack->archive = archive[0];
	auto_close int to = archive[1];
	if (child_fork(&pack->child, CHILD_PIPE, 0, err))
		return -1;
	if (pack->child.pid == 0) {
		static struct packing packing;
		signal(SIGPIPE, SIG_IGN);
		packing.out = to;
		close(pack->archive);
		pack_all(&packing, dir);
		(void)!fd_write_full(pack->child.pipe, &packing.report, sizeof packing.report);
		_exit(0);
	}
	return 0;
}

int pack_finish(struct pack *pack, struct pack_left_out *left_out, struct error *err)
{
	struct report report = { 0 };
	*left_out = (struct pack_left_out){ 0 };
	/* Whoever is still writing has no reader any more. */
	fd_close(&pack->archive);
	if (pack->child.pid < 0)
		return 0;
	ssize_t got = fd_read_full(pack->child.pipe, &report, sizeof report);
	child_wait(&pack->child);
	if (got != sizeof report)
		return fail(err, ERR_FAILED, "the process that packs was killed");
	*left_out = report.left_out;
	if (!report.has_failed)
		return 0;
	*err = report.err;
	return -1;
}
