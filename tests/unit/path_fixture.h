/* path_fixture.h -- a directory to work in, and one outside that must stay as it is. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "tree_fixture.h"

#define PLAIN_UID 54321

/* Each test has a directory with `in` (where we work) and `out` (which must stay as it is, with a
 * file `secret`). */
static char root[64];
static int top, in, out;

static inline int set_up(void **state)
{
	str_copy(root, sizeof root, "/tmp/test_path.XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(chmod(root, 0755), 0);
	top = open_dir(AT_FDCWD, root);
	put_dir(top, "in");
	put_dir(top, "out");
	in = open_dir(top, "in");
	out = open_dir(top, "out");
	put_file(out, "secret", "secret");
	return 0;
}

static inline int tear_down(void **state)
{
	struct error err = { 0 };
	char content[16];

	assert_int_equal(fd_read_file(out, "secret", content, sizeof content), 6);
	close(in);
	close(out);
	close(top);
	if (path_remove_tree(AT_FDCWD, "test_path.none", &err) < 0)
		return -1;
	int tmp = open_dir(AT_FDCWD, "/tmp");
	int failed = path_remove_tree(tmp, path_basename(root), &err);
	close(tmp);
	return failed;
}

/* Two names change places again and again until the test has seen enough. */
static inline pid_t start_swapping(int dir, const char *a, const char *b)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		while (getppid() != 1)
			syscall(SYS_renameat2, dir, a, dir, b, RENAME_EXCHANGE);
		_exit(0);
	}
	return child;
}

static inline void stop(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}
