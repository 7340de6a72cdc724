/* layers_fixture.h -- a home in a directory of its own, with a store and a stage; trees to publish.
 * As root the home belongs to somebody else, as it does in life. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "trees/layers/stage.h"
#include "trees/layers/store.h"
#include "unit.h"

static char root[64];
static struct arena arena;
static struct home home;
static struct layer_store store;
static struct layer_stage stage;
static struct error err;

#define assert_ok(call)                                                                            \
	do {                                                                                       \
		err = (struct error){ 0 };                                                         \
		if ((call) < 0)                                                                    \
			fail_msg("%s:%d: %s", __FILE__, __LINE__, err.text);                       \
	} while (0)
#define assert_fails(call, wanted, part)                                                           \
	do {                                                                                       \
		err = (struct error){ 0 };                                                         \
		assert_int_equal(call, -1);                                                        \
		if (err.code != (wanted) || !strstr(err.text, part))                               \
			fail_msg("%s:%d: %s: %s", __FILE__, __LINE__, error_code_name(err.code),   \
				err.text);                                                         \
	} while (0)

static int set_up(void **state)
{
	umask(022);
	str_copy(root, sizeof root, "/tmp/test_layers.XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(chmod(root, 0755), 0);
	arena_init(&arena);
	assert_ok(home_open(arena_printf(&arena, "%s/home", root), &arena, &home, &err));
	assert_ok(layer_store_open(&home, &store, &err));
	assert_ok(layer_stage_make(&store, &arena, &stage, &err));
	return 0;
}

static int tear_down(void **state)
{
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_ok(layer_stage_done(&store, &stage, &err));
	layer_store_done(&store);
	home_done(&home);
	assert_ok(path_remove_tree(tmp, path_basename(root), &err));
	arena_done(&arena);
	return 0;
}

/* Everything below works as the home's owner, who made what is in a stage. */

static void put_directory(const char *path)
{
	home_enter(&home);
	int failed = mkdirat(stage.fd, path, 0700);
	home_leave(&home);
	assert_int_equal(failed, 0);
}

static __attribute__((unused)) void put_bytes(
	const char *path, const char *data, size_t len, mode_t mode)
{
	home_enter(&home);
	int fd = openat(stage.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool is_done =
		fd >= 0 && fd_write_full(fd, data, len) == (ssize_t)len && fchmod(fd, mode) == 0;
	home_leave(&home);
	fd_close(&fd);
	assert_true(is_done);
}

static __attribute__((unused)) void put_file(const char *path, const char *text, mode_t mode)
{
	put_bytes(path, text, strlen(text), mode);
}

static void put_link(const char *target, const char *path)
{
	home_enter(&home);
	int failed = symlinkat(target, stage.fd, path);
	home_leave(&home);
	assert_int_equal(failed, 0);
}

static __attribute__((unused)) void set_mode(const char *path, mode_t mode)
{
	home_enter(&home);
	int failed = fchmodat(stage.fd, path, mode, 0);
	home_leave(&home);
	assert_int_equal(failed, 0);
}

/* d/tree with a bit of everything; `text` is what makes it different from others. */
static void put_tree(const char *draft, const char *text)
{
#define IN(path) arena_printf(&arena, "%s/tree" path, draft)
	put_directory(draft);
	put_directory(IN(""));
	put_directory(IN("/bin"));
	put_directory(IN("/lib"));
	put_directory(IN("/lib/empty"));
	put_file(IN("/bin/run"), "#!/bin/sh\n", 04711);
	put_file(IN("/lib/a.py"), text, 0600);
	put_file(IN("/lib/nothing"), "", 0000);
	put_link("../lib/a.py", IN("/bin/a"));
	put_link("lib", IN("/lib64"));
#undef IN
}

static __attribute__((unused)) struct layer_draft draft_of(const char *path, const char *key)
{
	return (struct layer_draft){
		.path = path, .kind = "python-wheel", .name = "a", .version = "1", .key = key
	};
}

/* One layer of put_tree. */
static __attribute__((unused)) const char *publish_one(
	const char *path, const char *text, const char *key)
{
	struct layer_draft draft = draft_of(path, key);

	put_tree(path, text);
	assert_ok(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err));
	return arena_text(&arena, draft.id);
}

static __attribute__((unused)) size_t count_layers(void)
{
	text_list ids = { 0 };

	assert_ok(layers_list(&store, &arena, &ids, &err));
	return ids.count;
}

static __attribute__((unused)) void assert_whole(const char *id)
{
	layer_damages damages = { 0 };

	assert_ok(layer_check(&store, id, &err));
	assert_ok(layer_verify(&store, id, &arena, &damages, &err));
	if (damages.count > 0)
		fail_msg("'%s' %s", damages.items[0].path, damages.items[0].what);
}
