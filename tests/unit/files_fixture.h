/* files_fixture.h -- a core with one workspace in a directory of its own, and beside it `out`,
 * which must stay as it is. */
#pragma once
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "core/internal.h"
#include "tree_fixture.h"

static char area[64];
static int top = -1, upper = -1, out = -1;
static struct core core;
static struct core_workspace w;
static struct error err;
static struct arena arena;

static void assert_content(int dir, const char *name, const char *content)
{
	char text[256];

	if (fd_read_file(dir, name, text, sizeof text) < 0)
		fail_msg("read '%s': %s", name, strerror(errno));
	assert_string_equal(text, content);
}

static bool is_there(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int set_up(void **state)
{
	char id[ID_LEN + 1];

	str_copy(area, sizeof area, "/tmp/test_files.XXXXXX");
	assert_non_null(mkdtemp(area));
	top = open_dir(AT_FDCWD, area);
	put_dir(top, "workspaces");
	put_dir(top, "out");
	out = open_dir(top, "out");
	put_file(out, "secret", "secret");
	core = (struct core){ .workspaces = open_dir(top, "workspaces"),
		.log = { .fd = -1, .least = LOG_LEVEL_ERROR } };
	assert_int_equal(loop_new(&core.loop, &err), 0);
	id_make(id);
	w = (struct core_workspace){ .core = &core,
		.model = { .name = "desk", .disk_mechanism = "counted" } };
	memcpy(w.model.id, id, sizeof id);
	put_dir(core.workspaces, id);
	int dir = open_dir(core.workspaces, id);
	put_dir(dir, "upper");
	upper = open_dir(dir, "upper");
	close(dir);
	err = (struct error){ 0 };
	arena_init(&arena);
	return 0;
}

static int tear_down(void **state)
{
	assert_content(out, "secret", "secret");
	assert_int_equal(w.users, 0);
	loop_free(core.loop);
	close(upper);
	close(out);
	close(core.workspaces);
	close(top);
	arena_done(&arena);
	int tmp = open_dir(AT_FDCWD, "/tmp");
	int failed = path_remove_tree(tmp, path_basename(area), &err);
	close(tmp);
	return failed;
}

/* How many names there are in workspaces/<id>/.in. */
static int count_in(void)
{
	char path[ID_LEN + 8];
	int count = 0;

	str_format(path, sizeof path, "%s/.in", w.model.id);
	int in = openat(core.workspaces, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *walk = in < 0 ? NULL : fdopendir(in);
	while (walk && readdir(walk))
		count++;
	if (walk)
		closedir(walk);
	return count > 2 ? count - 2 : 0;
}

static void stop_on_empty(struct loop *loop, void *ctx)
{
	int *left = ctx;
	siginfo_t info;
	bool is_alone = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0;

	if ((count_in() == 0 && is_alone) || --*left == 0)
		loop_stop(loop);
	else
		loop_after(loop, 5, stop_on_empty, left);
}

/* Somebody who puts `evil` into the place of `swap`, and back, until he is killed. */
static inline pid_t start_swapping(void)
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
		_exit(1);
	while (pid == 0)
		renameat2(upper, "swap", upper, "evil", RENAME_EXCHANGE);
	return pid;
}

/* Children that remove what is left over have a minute. */
static void assert_in_empties(void)
{
	int left = 12000;

	loop_after(core.loop, 0, stop_on_empty, &left);
	assert_int_equal(loop_run(core.loop, &err), 0);
	assert_int_equal(count_in(), 0);
}
