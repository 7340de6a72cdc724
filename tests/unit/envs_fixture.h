/* envs_fixture.h -- an environment store of its own for each test, and helpers that work as the
 * home's owner. Included in place of layers_fixture.h. */
#pragma once
#include "envs/store.h"

#include <dirent.h>
#include <sys/file.h>
#include <time.h>
#include "layers_fixture.h"

static struct env_store envs;

static __attribute__((unused)) int open_store(void **state)
{
	set_up(state);
	assert_ok(env_store_open(&home, &arena, &envs, &err));
	return 0;
}

static __attribute__((unused)) int close_store(void **state)
{
	env_store_done(&envs);
	return tear_down(state);
}

/* ---- helpers: work as the home's owner ---- */

static __attribute__((unused)) bool is_there(const char *path)
{
	struct stat st;
	home_enter(&home);
	int failed = fstatat(envs.dir, path, &st, AT_SYMLINK_NOFOLLOW);
	home_leave(&home);
	return !failed;
}

static __attribute__((unused)) unsigned count_names(const char *prefix)
{
	unsigned count = 0;
	char path[128];
	str_format(path, sizeof path, "%s/home/envs", root);
	DIR *list = opendir(path);
	assert_non_null(list);
	for (struct dirent *entry; (entry = readdir(list));)
		count += str_starts_with(str_from(entry->d_name), prefix);
	closedir(list);
	return count;
}

static __attribute__((unused)) const char *text_of(const char *path)
{
	static char text[1 << 20];
	home_enter(&home);
	ssize_t len = fd_read_file(envs.dir, path, text, sizeof text);
	home_leave(&home);
	return len < 0 ? NULL : text;
}

static __attribute__((unused)) void put_text(const char *path, const char *text)
{
	home_enter(&home);
	auto_close int fd = openat(envs.dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	home_leave(&home);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), strlen(text));
}

static __attribute__((unused)) struct env_meta example(const char *name)
{
	struct env_meta meta = { .name = name,
		.package_id = "agent@1.0",
		.requirements_sha256 =
			"a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9",
		.created_at = "2026-01-01T00:00:00.000Z",
		.last_used_at = "2026-01-01T00:00:00.000Z",
		.size_bytes = 1000,
		.python_version = "3.11.2",
		.python = "/bin/sh",
		.fingerprint = "f" };
	vec_push(&arena, &meta.packages, (struct text_pair){ "a", "1" });
	return meta;
}

static __attribute__((unused)) void write_meta(const struct env_meta *meta)
{
	struct env_files files = { STR("a==1\n"), STR("a==1 --hash=sha256:00\n"), STR("log\n") };
	assert_ok(env_write(&envs, meta, &files, &err));
}

/* An environment of one layer, which `text` makes its own. */
static __attribute__((unused)) const char *make(const char *name, const char *text)
{
	static int drafts;
	struct env_meta meta = example(name);
	const char *id = publish_one(arena_printf(&arena, "d%d", drafts++), text, NULL);
	vec_push(&arena, &meta.layers, id);
	write_meta(&meta);
	return id;
}

static __attribute__((unused)) int use(const char *name)
{
	struct env_meta meta;
	int pin = -1;
	assert_ok(env_use(&envs, name, &arena, &meta, &pin, &err));
	return pin;
}
