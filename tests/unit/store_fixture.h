/* store_fixture.h -- a home with a database in it, for the tests of the store. */
#pragma once
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "store/store.h"
#include "unit.h"
#include "writer_fixture.h"

struct fixture {
	char path[64];
	int dir;
	struct store *store;
	struct store_opened opened;
	int scheduled, committed;
	pid_t writer;
	int socket; /* to it */
	int started;
	bool refuses_writer;
	bool has_failed; /* the load under way */
	struct error load_error;
	/* What was loaded last, each as one line. */
	struct buf loaded;
	int workspaces, execs;
	/* What was acknowledged: '.' or '!' each, in order. */
	char acks[256];
	struct error last;
};

static void on_schedule(void *ctx)
{
	((struct fixture *)ctx)->scheduled++;
}

static void on_committed(void *ctx, uint64_t ns)
{
	((struct fixture *)ctx)->committed++;
}

/* What core does for the store, without a loop. */
static inline void use_writer(void *ctx)
{
	struct fixture *f = ctx;
	struct error err;

	if (f->refuses_writer) {
		fail(&err, ERR_UNAVAILABLE, "no more processes");
		store_use_writer(f->store, -1, &err);
		return;
	}
	f->started++;
	f->socket = start_writer(f->path, &f->writer);
	store_use_writer(f->store, f->socket, NULL);
}

static void end_writer(void *ctx)
{
	struct fixture *f = ctx;

	kill(f->writer, SIGKILL);
	assert_int_equal(waitpid(f->writer, NULL, 0), f->writer);
	close(f->socket);
}

static inline struct store_host host_of(struct fixture *f)
{
	return (struct store_host){ on_schedule, use_writer, end_writer, on_committed, f };
}

static void on_opened(void *ctx, const struct store_opened *opened, const struct error *err)
{
	struct fixture *f = ctx;

	f->opened = *opened;
	f->has_failed = err;
	if (err)
		f->load_error = *err;
}

static inline int try_open(struct fixture *f, struct error *err)
{
	const struct store_host host = host_of(f);

	if (store_open(STORE_URL, &host, &f->store, err))
		return -1;
	use_writer(f);
	store_load(f->store, NULL, on_opened, f);
	store_flush(f->store);
	f->scheduled = 0;
	if (!f->has_failed)
		return 0;
	*err = f->load_error;
	store_close(f->store);
	f->store = NULL;
	return -1;
}

static inline void open_store(struct fixture *f)
{
	struct error err = { 0 };

	if (try_open(f, &err))
		fail_msg("%s", err.text);
}

static inline void close_store(struct fixture *f)
{
	store_close(f->store);
	f->store = NULL;
}

/* In memory, unless much is written: there a thousand commits cost nothing, and what a kill leaves
 * behind is the same. */
static inline const char *home_of_tests(void)
{
#ifdef STORE_ON_DISK
	return "/tmp";
#else
	return access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
#endif
}

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	str_format(f->path, sizeof f->path, "%s/unit-store-XXXXXX", home_of_tests());
	assert_non_null(mkdtemp(f->path));
	f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dir >= 0);
	buf_init(&f->loaded, BUF_MAX_DEFAULT);
	*state = f;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;
	struct error err;

	store_close(f->store);
	close(f->dir);
	int tmp = open(home_of_tests(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(path_remove_tree(tmp, path_basename(f->path), &err), 0);
	close(tmp);
	buf_done(&f->loaded);
	free(f);
	return 0;
}

/* An id that says which one it is. */
static inline void number_id(char id[ID_LEN + 1], char kind, int number)
{
	snprintf(id, ID_LEN + 1, "%c%019d", kind, number);
}

static inline struct workspace make_workspace(struct arena *arena, int number)
{
	struct workspace w = { .state = WORKSPACE_READY,
		.created_ms = 1771063200000 + number,
		.last_used_ms = 1771063300000 + number,
		.ttl_ms = 60000,
		.requirements = "requests\n",
		.disk_mechanism = "counted" };

	number_id(w.id, 'a', number);
	w.name = arena_printf(arena, "desk-%d", number);
	vec_push(arena, &w.labels, (struct text_pair){ "agent", w.name });
	limits_fill(&w.limits, NULL);
	return w;
}

static inline struct exec_record make_exec(struct arena *arena, int number, int workspace)
{
	struct exec_record e = { .state = EXEC_RUNNING,
		.cwd = "/workspace",
		.background = true,
		.started_ms = 1771063200000 + number };

	number_id(e.id, 'e', number);
	number_id(e.workspace, 'a', workspace);
	vec_push(arena, &e.argv, "sleep");
	vec_push(arena, &e.argv, "1");
	return e;
}

static void on_done(void *ctx, const struct error *err)
{
	struct fixture *f = ctx;
	size_t len = strlen(f->acks);

	assert_true(len + 1 < sizeof f->acks);
	f->acks[len] = err ? '!' : '.';
	if (err)
		f->last = *err;
}

static inline void put_workspace(struct fixture *f, int number)
{
	auto_arena struct arena arena = { 0 };
	struct workspace w = make_workspace(&arena, number);

	store_put(f->store, &store_workspaces, &w, on_done, f);
}

static inline void put_exec(struct fixture *f, int number, int workspace)
{
	auto_arena struct arena arena = { 0 };
	struct exec_record e = make_exec(&arena, number, workspace);

	store_put(f->store, &store_execs, &e, on_done, f);
}

static inline void on_workspace(struct fixture *f, const struct workspace *w)
{
	struct json j;

	j = json_to(&f->loaded, false);
	workspace_print(&j, NULL, w, &(struct workspace_now){ .state = w->state });
	record_print_kept(&workspace_record, w, &f->loaded);
	buf_char(&f->loaded, '\n');
	f->workspaces++;
}

static inline void on_exec(struct fixture *f, const struct exec_record *e)
{
	struct json j;

	j = json_to(&f->loaded, false);
	exec_print(&j, NULL, e);
	record_print_kept(&exec_fields, e, &f->loaded);
	buf_char(&f->loaded, '\n');
	f->execs++;
}

static inline int on_row(void *ctx, const struct store_table *table, const void *object)
{
	if (table == &store_workspaces)
		on_workspace(ctx, object);
	else
		on_exec(ctx, object);
	return 0;
}

static void on_loaded(void *ctx, const struct store_opened *opened, const struct error *err)
{
	struct fixture *f = ctx;

	f->has_failed = err;
	if (err)
		f->load_error = *err;
}

static inline void load(struct fixture *f)
{
	int scheduled = f->scheduled;

	buf_clear(&f->loaded);
	f->workspaces = f->execs = 0;
	store_load(f->store, on_row, on_loaded, f);
	store_flush(f->store);
	f->scheduled = scheduled;
	if (f->has_failed)
		fail_msg("%s", f->load_error.text);
}

struct found {
	struct arena arena;
	struct store_answer *answer;
	bool is_there;
};

static void on_found(void *ctx, const struct store_answer *answer)
{
	struct found *found = ctx;

	found->is_there = answer;
	if (!answer)
		return;
	*found->answer = *answer;
	found->answer->body.data = arena_bytes(&found->arena, answer->body.data, answer->body.len);
	found->answer->location = arena_text(&found->arena, answer->location);
}

/* Waits for it, and with it for all that is queued. */
static inline bool find_answer(struct fixture *f, const char *scope, const char *key,
	struct arena *arena, struct store_answer *answer)
{
	struct found found = { .answer = answer };

	store_find_answer(f->store, scope, key, on_found, &found);
	store_flush(f->store);
	answer->body.data = arena_bytes(arena, answer->body.data, answer->body.len);
	answer->location = arena_text(arena, answer->location);
	arena_done(&found.arena);
	return found.is_there;
}

static inline bool is_there(const struct fixture *f, const char *name)
{
	return !faccessat(f->dir, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* How many names in the home begin so. */
static inline int count_files(const struct fixture *f, const char *prefix)
{
	DIR *dir = opendir(f->path);
	struct dirent *entry;
	int count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += !strncmp(entry->d_name, prefix, strlen(prefix));
	closedir(dir);
	return count;
}

static inline void read_whole(const struct fixture *f, const char *name, struct buf *out)
{
	auto_close int fd = openat(f->dir, name, O_RDONLY | O_CLOEXEC);
	struct stat file;

	assert_true(fd >= 0 && !fstat(fd, &file));
	buf_clear(out);
	assert_non_null(buf_reserve(out, (size_t)file.st_size));
	assert_int_equal(fd_read_full(fd, out->data, (size_t)file.st_size), file.st_size);
	buf_grew(out, (size_t)file.st_size);
}

static inline void write_whole(const struct fixture *f, const char *name, struct str data)
{
	auto_close int fd = openat(f->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, data.data, data.len), (ssize_t)data.len);
}
