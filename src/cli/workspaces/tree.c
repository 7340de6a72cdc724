#include "cli/workspaces/tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "base/str.h"
#include "base/walk.h"

struct report {
	bool has_failed;
	struct error err;
	struct tree_note left_out;
};

static struct report pack_all(int dir, int out)
{
	struct tree_pack pack = { .out = out, .crosses_mounts = true };
	struct report report = { 0 };
	char noise[4 * TAR_BLOCK];
	/* The position of `dir` is shared with the parent. */
	int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	report.has_failed = own < 0 ? fail_errno(&report.err, "open the directory")
				    : tree_pack(&pack, own, "", &report.err);
	report.left_out = pack.left_out;
	/* An archive that just ends may pass for a whole one; no reader takes this for a header. */
	memset(noise, 'x', sizeof noise);
	if (report.has_failed)
		(void)!fd_write_full(out, noise, sizeof noise);
	return report;
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
		signal(SIGPIPE, SIG_IGN);
		close(pack->archive);
		struct report report = pack_all(dir, to);
		(void)!fd_write_full(pack->child.pipe, &report, sizeof report);
		_exit(0);
	}
	return 0;
}

int pack_finish(struct pack *pack, struct tree_note *left_out, struct error *err)
{
	struct report report = { 0 };
	*left_out = (struct tree_note){ 0 };
	/* A process that is still writing gets EPIPE from now on. */
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

/* Whoever can write to `place` may have put another directory there since it was made, whose
 * entries would be changed and moved. It is left alone. */
static int check_stage(struct unpack *unpack, struct error *err)
{
	auto_walk DIR *walk = unpack->stage < 0 ? NULL : walk_open(unpack->stage, ".");
	if (!walk)
		return fail_errno(err, "open '%s'", unpack->stage_name);
	if (!walk_next(walk))
		return 0;
	fail(err, ERR_CONFLICT, "another process replaced '%s'", unpack->stage_name);
	unpack->stage_name[0] = 0;
	return -1;
}

int unpack_begin(struct unpack *unpack, int place, struct error *err)
{
	char id[ID_LEN + 1];
	unpack->place = place;
	unpack->stage = -1;
	id_make(id);
	str_format(unpack->stage_name, sizeof unpack->stage_name, ".carrel-cp-%s", id);
	int failed = mkdirat(place, unpack->stage_name, 0700);
	if (failed) {
		fail_errno(err, "make a directory to unpack in");
		unpack->stage_name[0] = 0;
	} else {
		unpack->stage = openat(
			place, unpack->stage_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		failed = check_stage(unpack, err);
	}
	tree_unpack_init(&unpack->tree, unpack->stage);
	return failed;
}

void unpack_workspace(struct unpack *unpack)
{
	unpack->tree.own_name = ".venv";
	unpack->tree.own_link = "/env";
}

/* What carrel makes in a workspace is about that workspace, and no use elsewhere. The directories
 * of --context stay when something is in them. */
static void remove_own(int stage)
{
	static const char *const directories[] = { "scripts", "data", "repos", "output" };
	unlinkat(stage, ".workspace_configured", 0);
	if (unlinkat(stage, ".context.json", 0))
		return;
	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
		unlinkat(stage, directories[i], AT_REMOVEDIR);
}

int unpack_finish(struct unpack *unpack, const char *name, unsigned root_mode, struct error *err)
{
	struct stat st;
	if (tree_unpack_end(&unpack->tree, err))
		return -1;
	if (unpack->tree.own_name)
		remove_own(unpack->stage);
	if (name && fstatat(unpack->place, name, &st, AT_SYMLINK_NOFOLLOW)) {
		if (tree_unpack_place(&unpack->tree, unpack->stage, err))
			return -1;
		if (fchmod(unpack->stage, root_mode & 0777) ||
			renameat(unpack->place, unpack->stage_name, unpack->place, name))
			return fail_errno(err, "move '%s' into place", name);
		unpack->stage_name[0] = 0;
		return 0;
	}
	auto_close int into = openat(
		unpack->place, name ? name : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (into < 0 && errno == ENOTDIR)
		return fail_hint(err, ERR_CONFLICT, "move or remove it first",
			"'%s' already exists and is not a directory", name);
	if (into < 0)
		return fail_errno(err, "open '%s'", name ? name : ".");
	return tree_unpack_place(&unpack->tree, into, err);
}

void unpack_done(struct unpack *unpack)
{
	struct error err;
	tree_unpack_done(&unpack->tree);
	fd_close(&unpack->stage);
	/* What can't be removed has a name that says what it is. */
	if (unpack->stage_name[0])
		path_remove_tree(unpack->place, unpack->stage_name, &err);
}
