/* mounts.c -- --dir, -v and --attach of a workspace: what is sent to the daemon, and the voucher
 * that lets it be mounted (sandbox/plan/grants.h). */
#include <fcntl.h>
#include <sys/socket.h>
#include "base/fd.h"
#include "cli/cli.h"
#include "linux/fd_message.h"
#include "sandbox/native/host.h"
#include "sandbox/plan/grants.h"
#include "sandbox/plan/plan.h"

const struct arg_option mount_rows[] = {
	{ 'v', "volume", ARG_LIST, AT(binds), "SRC:DST[:ro]",
		"mount the host's file or directory SRC at DST, writable unless :ro" },
	{ 0, "dir", ARG_TEXT, AT(dir), "PATH", "use this host directory as /workspace" },
	{ 0, "attach", ARG_LIST, AT(attach), "NAME:PATH[:ro]",
		"mount the shared tree NAME at PATH: see `carrel tree`" },
};

struct mounts {
	struct grant grants[GRANTS_MAX];
	int fds[GRANTS_MAX];
	size_t count;
};

/* Opened with the rights of this process: that is what the daemon asks for. */
static int add(struct mounts *mounts, enum grant_kind kind, struct plan_bind *bind,
	const char *option, struct arena *arena, struct error *err)
{
	if (mounts->count == GRANTS_MAX)
		return fail(err, ERR_LIMIT, "a workspace can have at most %d mounts", GRANTS_MAX);
	if (host_look_at_source(bind, option, arena, err))
		return -1;
	if (kind == GRANT_DIR && bind->kind != PATH_DIRECTORY)
		return fail(err, ERR_INVALID, "--dir '%s' is not a directory", bind->source);
	int fd = open(bind->source, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(err, "%s '%s'", option, bind->source);
	mounts->fds[mounts->count] = fd;
	mounts->grants[mounts->count++] =
		(struct grant){ kind, bind->source, bind->target, bind->read_only, 0, 0 };
	return 0;
}

static int gather(const struct options *options, struct mounts *mounts, struct arena *arena,
	struct error *err)
{
	struct plan_bind dir = { .source = options->dir, .target = PLAN_WORKSPACE };
	if (options->dir && add(mounts, GRANT_DIR, &dir, "--dir", arena, err))
		return -1;
	for (size_t i = 0; i < options->binds.count; i++) {
		struct plan_bind bind = { 0 };
		if (plan_parse_bind(options->binds.items[i], arena, &bind, err) ||
			add(mounts, GRANT_BIND, &bind, "-v", arena, err))
			return -1;
	}
	return 0;
}

/* One packet in a pair whose other end is closed: nobody can add to it. */
static int make_voucher(const struct mounts *mounts, int *voucher, struct error *err)
{
	int ends[2];
	auto_buf struct buf text = buf_empty(GRANTS_BYTES_MAX);
	grants_encode(mounts->grants, mounts->count, &text);
	struct iovec part = { text.data, text.len };
	if (text.overflow)
		return fail(err, ERR_LIMIT, "the paths of the mounts are too long");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return fail_errno(err, "make a socket pair");
	int failed = fd_message_send(ends[0], &part, 1, mounts->fds, (int)mounts->count, 0) < 0
			     ? fail_errno(err, "pass the mounts on")
			     : 0;
	fd_close(&ends[0]);
	if (failed)
		fd_close(&ends[1]);
	else
		*voucher = ends[1];
	return failed;
}

static void print(const struct mounts *mounts, struct json *j, struct arena *arena)
{
	size_t first = mounts->count && mounts->grants[0].kind == GRANT_DIR;
	if (first)
		json_text(j, "dir", mounts->grants[0].source);
	if (mounts->count == first)
		return;
	json_array(j, "mounts");
	for (size_t i = first; i < mounts->count; i++)
		json_text(j, NULL,
			arena_printf(arena, "%s:%s%s", mounts->grants[i].source,
				mounts->grants[i].target,
				mounts->grants[i].read_only ? ":ro" : ""));
	json_end(j);
}

static int print_attached(
	struct json *j, const text_list *attach, struct arena *arena, struct error *err)
{
	if (!attach->count)
		return 0;
	json_array(j, "attach");
	for (size_t i = 0; i < attach->count; i++) {
		struct grant grant;
		if (grant_parse_tree(attach->items[i], arena, &grant, err))
			return -1;
		json_text(j, NULL, attach->items[i]);
	}
	json_end(j);
	return 0;
}

int mounts_print(const struct options *options, struct json *j, struct arena *arena, int *voucher,
	struct error *err)
{
	struct mounts mounts = { .count = 0 };
	int failed = gather(options, &mounts, arena, err) ||
		     (mounts.count && make_voucher(&mounts, voucher, err)) ||
		     print_attached(j, &options->attach, arena, err);
	if (!failed)
		print(&mounts, j, arena);
	for (size_t i = 0; i < mounts.count; i++)
		fd_close(&mounts.fds[i]);
	return failed ? -1 : 0;
}
