/* The store when things go wrong: crashes, damage, a full or read-only disk, other people's locks.
 */
/* security: daemon */
#include <sched.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <time.h>
#include "store_fixture.h"

/* -- crashes -- */

enum { SAYS_QUEUED = 'q', SAYS_COMMITTED = 'c' };

static void on_child_done(void *ctx, const struct error *err)
{
	char said = err ? '!' : SAYS_COMMITTED;

	if (write(*(int *)ctx, &said, 1) != 1)
		abort();
}

/* Puts workspaces one after the other, a flush each, and says on the pipe when each was committed.
 */
_Noreturn static void write_and_say(struct fixture *f, int say, int count, const char *fault)
{
	auto_arena struct arena arena = { 0 };

	struct error err;

	if (fault)
		setenv("CARREL_FAULT", fault, 1);
	if (try_open(f, &err))
		kill(getpid(), SIGKILL);
	load(f);
	for (int i = 1; i <= count; i++) {
		struct workspace w = make_workspace(&arena, i);
		char said = SAYS_QUEUED;
		store_put(f->store, &store_workspaces, &w, on_child_done, &say);
		if (write(say, &said, 1) != 1)
			abort();
		store_flush(f->store);
	}
	kill(getpid(), SIGKILL);
	_exit(1);
}

/* Runs that child until it ends by SIGKILL (after_bytes said, at the latest); how many it said. */
static void run_and_kill(struct fixture *f, int count, const char *fault, int after_bytes,
	int *queued, int *committed)
{
	int ends[2], status;
	char said;

	*queued = *committed = 0;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		write_and_say(f, ends[1], count, fault);
	close(ends[1]);
	for (int n = 1; read(ends[0], &said, 1) == 1; n++) {
		*queued += said == SAYS_QUEUED;
		*committed += said == SAYS_COMMITTED;
		if (n == after_bytes)
			kill(child, SIGKILL);
	}
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void what_was_acknowledged_is_there_after_a_kill_at_any_moment(void **state)
{
	struct fixture *f = *state;
	int queued, committed;

	for (int round = 0; round < 30; round++) {
		run_and_kill(f, 100, NULL, 1 + round * 5, &queued, &committed);
		open_store(f);
		load(f);
		/* Those of the rounds before are there as well. */
		if (f->workspaces < committed)
			fail_msg("%d were acknowledged, %d are there", committed, f->workspaces);
		assert_false(f->opened.was_corrupt);
		close_store(f);
	}
}

static void what_was_only_queued_is_not_there(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		open_store(f);
		put_workspace(f, 1);
		store_flush(f->store);
		put_workspace(f, 2);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	open_store(f);
	load(f);
	assert_int_equal(f->workspaces, 1);
}

#ifdef CARREL_FAULTS
static void a_kill_after_the_commit_but_before_anybody_was_told_loses_nothing(void **state)
{
	struct fixture *f = *state;
	int queued, committed;

	run_and_kill(f, 100, "store.committed:5", -1, &queued, &committed);
	assert_int_equal(queued, 5);
	assert_int_equal(committed, 4);
	open_store(f);
	load(f);
	assert_int_equal(f->workspaces, 5);
}

static void a_kill_while_a_new_one_is_made_leaves_none(void **state)
{
	struct fixture *f = *state;
	int queued, committed;

	run_and_kill(f, 1, "store.new:1", -1, &queued, &committed);
	assert_false(is_there(f, STORE_FILE));
	open_store(f);
	assert_true(f->opened.is_new);
	assert_int_equal(count_files(f, STORE_FILE ".new"), 0);
}

static void a_kill_while_a_damaged_one_is_moved_is_never_silent(void **state)
{
	struct fixture *f = *state;
	int queued, committed;

	for (int step = 1; step <= 5; step++) {
		char fault[32];
		write_whole(f, STORE_FILE, STR("nonsense, and enough of it to have a header"));
		write_whole(f, STORE_FILE "-wal", STR("more of it"));
		/* The fifth: all is moved, but the new one isn't in its place. */
		str_format(fault, sizeof fault, step < 5 ? "store.aside:%d" : "store.new:1", step);
		run_and_kill(f, 1, fault, -1, &queued, &committed);
		int moved = count_files(f, STORE_FILE ".corrupt-");
		assert_in_range(moved, 1, 2);
		open_store(f);
		assert_true(f->opened.is_new);
		assert_int_equal(f->opened.was_corrupt, step < 2);
		load(f);
		put_workspace(f, 1); /* settled */
		close_store(f);
		tear_down(state);
		set_up(state);
		f = *state;
	}
}

static void an_error_of_the_disk_fails_the_commit_by_its_name(void **state)
{
	static const struct {
		const char *fault;
		enum error_code code;
	} cases[] = { { "store.commit:1:ENOSPC", ERR_DISK_FULL }, { "store.commit:1:EIO", 0 },
		{ "store.commit:1:EROFS", 0 } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int status;
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct fixture *f = *state;
			setenv("CARREL_FAULT", cases[i].fault, 1);
			open_store(f);
			put_workspace(f, 1);
			put_workspace(f, 2);
			store_flush(f->store);
			bool is_right = !strcmp(f->acks, "!!") && strstr(f->last.text, STORE_FILE);
			if (cases[i].code)
				is_right &= f->last.code == cases[i].code;
			is_right &= store_is_failing(f->store, &f->last);
			put_workspace(f, 3);
			store_flush(f->store);
			is_right &= !strcmp(f->acks, "!!.");
			is_right &= !store_is_failing(f->store, &f->last);
			load(f);
			is_right &= f->workspaces == 1;
			store_remove(f->store, &store_workspaces, "a0000000000000000003",
				&(struct store_gone){ "x", "y" }, 0, 0);
			close_store(f);
			_exit(is_right ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}
#endif

/* -- damage -- */

/* What the database holds before it is damaged. */
static void fill(struct fixture *f)
{
	struct store_answer answer = { .status = 201, .body = STR("{}") };

	open_store(f);
	load(f);
	for (int i = 1; i <= 20; i++)
		put_workspace(f, i);
	for (int i = 1; i <= 10; i++)
		put_exec(f, i, i);
	store_put_answer(f->store, "s", "k", &answer, NULL, NULL);
	store_remove(f->store, &store_workspaces, "a0000000000000000020",
		&(struct store_gone){ "desk-20", "ttl" }, NULL, NULL);
	close_store(f);
	memset(f->acks, 0, sizeof f->acks);
	open_store(f);
	load(f);
	close_store(f);
}

/* Every line of `part` is one of `whole`. */
static bool is_part_of(const char *part, const char *whole)
{
	struct str rest = str_from(part), line;

	while (str_next(&rest, '\n', &line))
		if (!memmem(whole, strlen(whole), line.data, line.len))
			return false;
	return true;
}

/* After damage: either all is there as it was, or it was moved aside and said so, or refused
 * because it says that it is of a later version. What could be saved is what it was. false: it is
 * all there. */
static bool check_after_damage(struct fixture *f, const char *before, const char *what)
{
	struct error err;

	if (try_open(f, &err)) {
		if (!strstr(err.text, "this carrel knows"))
			fail_msg("%s: %s", what, err.text);
		return true;
	}
	load(f);
	bool was_corrupt = f->opened.was_corrupt;
	if (was_corrupt) {
		if (!is_part_of(f->loaded.data, before))
			fail_msg("%s: what was saved is not what was there", what);
		assert_true(f->opened.is_new && f->opened.why[0]);
		assert_int_equal(f->opened.rescued, f->workspaces + f->execs);
		assert_true(is_there(f, f->opened.aside));
		assert_true(str_starts_with(str_from(f->opened.aside), STORE_FILE ".corrupt-2"));
		put_workspace(f, 1);
		store_flush(f->store);
		assert_string_equal(f->acks, ".");
	} else if (strcmp(before, f->loaded.data)) {
		fail_msg("%s: not noticed", what);
	}
	close_store(f);
	memset(f->acks, 0, sizeof f->acks);
	return was_corrupt;
}

static void remove_all(struct fixture *f)
{
	DIR *dir = opendir(f->path);
	struct dirent *entry;

	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			assert_int_equal(unlinkat(f->dir, entry->d_name, 0), 0);
	closedir(dir);
}

static void a_flipped_byte_anywhere_is_harmless_or_noticed(void **state)
{
	struct fixture *f = *state;
	auto_buf struct buf whole, before;
	int moved = 0, tried = 0, rescued = 0;

	buf_init(&whole, BUF_MAX_DEFAULT);
	buf_init(&before, BUF_MAX_DEFAULT);
	fill(f);
	buf_append(&before, f->loaded.data, f->loaded.len);
	read_whole(f, STORE_FILE, &whole);
	remove_all(f);
	/* Every byte of the header, then steps that come to different places of the pages. */
	for (size_t at = 0; at < whole.len; at += at < 100 ? 1 : 307, tried++) {
		char what[32];
		char kept = whole.data[at];
		str_format(what, sizeof what, "byte %zu", at);
		whole.data[at] ^= (char)(at % 3 == 0 ? 0xff : at % 3 == 1 ? 0x01 : 0x20);
		write_whole(f, STORE_FILE, (struct str){ whole.data, whole.len });
		whole.data[at] = kept;
		moved += check_after_damage(f, before.data, what);
		rescued += f->opened.rescued;
		remove_all(f);
	}
	print_message("%d bytes flipped, %d times moved aside, with %d rows rescued each time\n",
		tried, moved, rescued / moved);
	assert_in_range(moved, tried / 10, tried);
}

static void a_file_cut_anywhere_or_overwritten_is_moved_aside(void **state)
{
	static const char *const nonsense[] = { "x", "SQLite format 3",
		"not a database at all, but long "
		"enough to be looked at" };
	struct fixture *f = *state;
	auto_buf struct buf whole, before;

	buf_init(&whole, BUF_MAX_DEFAULT);
	buf_init(&before, BUF_MAX_DEFAULT);
	fill(f);
	buf_append(&before, f->loaded.data, f->loaded.len);
	read_whole(f, STORE_FILE, &whole);
	remove_all(f);
	for (size_t len = 0; len < whole.len; len += len < 8 ? 1 : 1733) {
		char what[32];
		str_format(what, sizeof what, "cut at %zu", len);
		write_whole(f, STORE_FILE, (struct str){ whole.data, len });
		if (!check_after_damage(f, before.data, what))
			fail_msg("%s: not noticed", what);
		remove_all(f);
	}
	for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
		write_whole(f, STORE_FILE, str_from(nonsense[i]));
		assert_true(check_after_damage(f, "", nonsense[i]));
	}
	/* Three in one second have three names. */
	assert_int_equal(count_files(f, STORE_FILE ".corrupt-"), 3);
}

static void run_sql(const struct fixture *f, const char *sql)
{
	char path[128], *message = NULL;
	sqlite3 *db;

	str_format(path, sizeof path, "%s/" STORE_FILE, f->path);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000); /* the writer may lengthen its log just now */
	if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s", message);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_row_that_is_not_what_was_written_is_named_and_the_others_are_kept(void **state)
{
	static const struct {
		const char *sql, *why;
		int rescued; /* of 19 workspaces and 10 execs, one of each of the first ten */
	} cases[] = {
		{ "UPDATE workspaces SET document = replace(document, '60000', '60001')"
		  " WHERE name = 'desk-3'",
			"workspace 'a0000000000000000003' in carrel.db: its checksum is wrong",
			27 },
		{ "UPDATE workspaces SET document = '{}', sum = 0 WHERE name = 'desk-4'",
			"'a0000000000000000004' in carrel.db: field 'ttl_ms'", 27 },
		{ "UPDATE workspaces SET state = 'asleep', sum = 0 WHERE name = 'desk-4'",
			"unknown state 'asleep'", 27 },
		{ "UPDATE workspaces SET id = '../../etc', sum = 0 WHERE name = 'desk-11'",
			"invalid id", 28 },
		{ "UPDATE execs SET ended_ms = 5 WHERE workspace = 'a0000000000000000003'",
			"exec 'e0000000000000000003' in carrel.db: its checksum is wrong", 28 },
		{ "UPDATE execs SET document = 'x', sum = 0 WHERE id LIKE 'e%2'", "line 1", 28 },
		{ "DROP TABLE gone", "no such table", 29 },
		{ "ALTER TABLE answers DROP COLUMN location", "location", 29 },
		{ "PRAGMA application_id=7", "not a database of Carrel", 29 },
		{ "PRAGMA user_version=0", "not a database of Carrel", 29 },
		{ "PRAGMA user_version=1", "already exists", 29 },
	};
	auto_buf struct buf before;
	struct fixture *f = *state;

	buf_init(&before, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fill(f);
		buf_clear(&before);
		buf_append(&before, f->loaded.data, f->loaded.len);
		run_sql(f, cases[i].sql);
		if (!check_after_damage(f, before.data, cases[i].sql))
			fail_msg("%s: not noticed", cases[i].sql);
		assert_int_equal(f->opened.rescued, cases[i].rescued);
		if (!strstr(f->opened.why, cases[i].why))
			fail_msg("'%s' not in: %s", cases[i].why, f->opened.why);
		remove_all(f);
	}
}

static void a_damaged_one_is_moved_with_its_log(void **state)
{
	struct fixture *f = *state;
	char name[300];

	write_whole(f, STORE_FILE, STR("nonsense"));
	write_whole(f, STORE_FILE "-wal", STR("log"));
	write_whole(f, STORE_FILE "-shm", STR("index"));
	open_store(f);
	assert_true(f->opened.was_corrupt);
	str_format(name, sizeof name, "%s-wal", f->opened.aside);
	assert_true(is_there(f, name));
	str_format(name, sizeof name, "%s-shm", f->opened.aside);
	assert_true(is_there(f, name));
	/* It is said again until somebody has read and written. */
	close_store(f);
	memset(&f->opened, 0, sizeof f->opened);
	open_store(f);
	assert_true(f->opened.was_corrupt && f->opened.is_new && f->opened.why[0]);
	assert_true(is_there(f, f->opened.aside));
	load(f);
	put_workspace(f, 1);
	close_store(f);
	open_store(f);
	assert_false(f->opened.was_corrupt || f->opened.is_new);
}

static void a_log_without_its_database_is_not_thrown_away(void **state)
{
	struct fixture *f = *state;
	char name[300];

	write_whole(f, STORE_FILE "-wal", STR("log"));
	open_store(f);
	assert_true(f->opened.was_corrupt);
	str_format(name, sizeof name, "%s-wal", f->opened.aside);
	assert_true(is_there(f, name));
}

static void what_is_no_file_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct error err;

	assert_int_equal(mkdirat(f->dir, STORE_FILE, 0700), 0);
	assert_int_equal(try_open(f, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(unlinkat(f->dir, STORE_FILE, AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/etc/passwd", f->dir, STORE_FILE), 0);
	assert_int_equal(try_open(f, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, STORE_FILE));
	assert_int_equal(count_files(f, STORE_FILE ".corrupt-"), 0);
}

/* -- locks -- */

/* A process that holds a lock until it is let go. */
struct holder {
	pid_t pid;
	int go;
};

static struct holder hold_lock(const struct fixture *f, const char *sql)
{
	int ready[2], go[2];
	char said;

	assert_int_equal(pipe2(ready, O_CLOEXEC) | pipe2(go, O_CLOEXEC), 0);
	struct holder holder = { fork(), go[1] };
	assert_true(holder.pid >= 0);
	if (holder.pid == 0) {
		char path[128];
		sqlite3 *db;
		close(go[1]);
		str_format(path, sizeof path, "%s/" STORE_FILE, f->path);
		/* The writer may still hold the lock, to lengthen the log after a commit. */
		if (sqlite3_open(path, &db) || sqlite3_busy_timeout(db, 5000) ||
			sqlite3_exec(db, sql, NULL, NULL, NULL) || write(ready[1], "x", 1) != 1)
			_exit(1);
		(void)!read(go[0], &said, 1);
		_exit(0);
	}
	close(ready[1]);
	close(go[0]);
	assert_int_equal(read(ready[0], &said, 1), 1);
	close(ready[0]);
	return holder;
}

static void let_go(struct holder *holder)
{
	int status;

	close(holder->go);
	assert_int_equal(waitpid(holder->pid, &status, 0), holder->pid);
	assert_int_equal(status, 0);
}

static void a_lock_held_by_another_fails_the_commit_until_it_is_gone(void **state)
{
	struct fixture *f = *state;
	struct error err;

	open_store(f);
	load(f);
	put_workspace(f, 1);
	store_flush(f->store);
	struct holder holder = hold_lock(f, "BEGIN IMMEDIATE");
	put_workspace(f, 2);
	put_exec(f, 1, 1);
	store_flush(f->store);
	assert_string_equal(f->acks, ".!!");
	assert_int_equal(f->last.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(f->last.text, "carrel.db is locked by another process"));
	assert_true(store_is_failing(f->store, &err));
	assert_string_equal(err.text, f->last.text);
	let_go(&holder);
	put_workspace(f, 3);
	store_flush(f->store);
	assert_string_equal(f->acks, ".!!.");
	assert_false(store_is_failing(f->store, &err));
	load(f);
	assert_int_equal(f->workspaces, 2);
	assert_int_equal(f->execs, 0);
}

static void it_gets_well_by_itself_when_the_lock_is_gone(void **state)
{
	struct fixture *f = *state;
	struct timespec pause = { 0, 20000000 };
	struct error err;
	int tries = 0;

	open_store(f);
	struct holder holder = hold_lock(f, "BEGIN IMMEDIATE");
	put_workspace(f, 1);
	store_flush(f->store);
	assert_true(store_is_failing(f->store, &err));
	let_go(&holder);
	/* Nobody writes, but somebody asks: it tries once a second. */
	while (store_is_failing(f->store, &err) && ++tries < 500) {
		nanosleep(&pause, NULL);
		store_flush(f->store);
	}
	assert_false(store_is_failing(f->store, &err));
	assert_in_range(tries, 1, 499);
}

static void one_that_is_locked_is_not_opened_nor_moved(void **state)
{
	struct fixture *f = *state;
	struct error err;

	open_store(f);
	put_workspace(f, 1);
	close_store(f);
	struct holder holder =
		hold_lock(f, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
	assert_int_equal(try_open(f, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "carrel.db is locked by another process"));
	assert_int_equal(count_files(f, STORE_FILE ".corrupt-"), 0);
	let_go(&holder);
	open_store(f);
	load(f);
	assert_int_equal(f->workspaces, 1);
}

/* As by a core that is killed, and still closes it. */
static void one_whose_lock_is_released_soon_is_opened(void **state)
{
	struct fixture *f = *state;
	struct timespec pause = { 0, 300000000 };

	open_store(f);
	put_workspace(f, 1);
	close_store(f);
	struct holder holder =
		hold_lock(f, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT");
	pid_t releaser = fork();
	assert_true(releaser >= 0);
	if (releaser == 0) {
		nanosleep(&pause, NULL);
		_exit(write(holder.go, "x", 1) != 1);
	}
	open_store(f);
	load(f);
	assert_int_equal(f->workspaces, 1);
	assert_int_equal(waitpid(releaser, NULL, 0), releaser);
	let_go(&holder);
}

/* -- the disk -- */

static void a_file_moved_away_is_noticed(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	put_workspace(f, 1);
	store_flush(f->store);
	assert_int_equal(renameat(f->dir, STORE_FILE, f->dir, "elsewhere"), 0);
	put_workspace(f, 2);
	store_flush(f->store);
	assert_string_equal(f->acks, ".!");
	assert_int_equal(f->last.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(f->last.text, "carrel.db was moved or removed"));
	assert_int_equal(renameat(f->dir, "elsewhere", f->dir, STORE_FILE), 0);
	put_workspace(f, 3);
	store_flush(f->store);
	assert_string_equal(f->acks, ".!.");
}

/* Puts larger and larger things until one can't be written. true: it was called by its name. */
static bool fill_until_full(struct fixture *f, int *stored)
{
	char *text = calloc(1, 300001);

	memset(text, 'x', 300000);
	for (*stored = 0; *stored < 100; ++*stored) {
		auto_arena struct arena arena = { 0 };
		struct workspace w = make_workspace(&arena, 1000 + *stored);
		w.requirements = text;
		memset(f->acks, 0, sizeof f->acks);
		store_put(f->store, &store_workspaces, &w, on_done, f);
		put_exec(f, 1, 1); /* nothing is wrong with that one */
		store_flush(f->store);
		if (strcmp(f->acks, ".."))
			break;
	}
	free(text);
	return !strcmp(f->acks, "!!") && f->last.code == ERR_DISK_FULL &&
	       strstr(f->last.text, STORE_FILE);
}

static void a_file_size_limit_is_a_full_disk(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit tight = { 2 << 20, 1 << 30 }, wide = { 1 << 30, 1 << 30 };
		struct error err;
		int stored;
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &tight);
		open_store(f);
		put_workspace(f, 1);
		store_flush(f->store);
		bool is_right = fill_until_full(f, &stored) && stored > 0;
		is_right &= store_is_failing(f->store, &err) && err.code == ERR_DISK_FULL;
		prlimit(f->writer, RLIMIT_FSIZE, &wide, NULL);
		memset(f->acks, 0, sizeof f->acks);
		put_workspace(f, 2);
		store_flush(f->store);
		is_right &= !strcmp(f->acks, ".") && !store_is_failing(f->store, &err);
		load(f);
		is_right &= f->workspaces == stored + 2;
		close_store(f);
		open_store(f);
		load(f);
		is_right &= f->workspaces == stored + 2;
		_exit(is_right ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define NOT_ALLOWED 77
/* A mount namespace of its own, with a tmpfs of that size over the home. */
static void enter_tmpfs(struct fixture *f, const char *options)
{
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS))
		_exit(NOT_ALLOWED);
	if (uid) {
		snprintf(map, sizeof map, "%u %u 1", uid, uid);
		if (fd_write_file(AT_FDCWD, "/proc/self/uid_map", map) ||
			fd_write_file(AT_FDCWD, "/proc/self/setgroups", "deny"))
			_exit(NOT_ALLOWED);
		snprintf(map, sizeof map, "%u %u 1", gid, gid);
		if (fd_write_file(AT_FDCWD, "/proc/self/gid_map", map))
			_exit(NOT_ALLOWED);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("tmpfs", f->path, "tmpfs", 0, options))
		_exit(NOT_ALLOWED);
	close(f->dir);
	f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The exit status of a child that ran fn, or a skipped test. */
static void check_in_child(struct fixture *f, bool (*fn)(struct fixture *f))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(fn(f) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_ALLOWED)
		skip();
	assert_int_equal(status, 0);
}

static bool full_disk(struct fixture *f)
{
	struct error err;
	int stored;
	auto_close int ballast = -1;

	enter_tmpfs(f, "size=3m,mode=0700");
	ballast = openat(f->dir, "ballast", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (ballast < 0 || fallocate(ballast, 0, 0, 1 << 20))
		return false;
	open_store(f);
	put_workspace(f, 1);
	store_flush(f->store);
	if (!fill_until_full(f, &stored) || !store_is_failing(f->store, &err) || stored == 0)
		return false;
	/* Also when it was full before. */
	close_store(f);
	open_store(f);
	if (fill_until_full(f, &(int){ 0 }) == false)
		return false;
	if (ftruncate(ballast, 0))
		return false;
	memset(f->acks, 0, sizeof f->acks);
	put_workspace(f, 2);
	store_flush(f->store);
	load(f);
	return !strcmp(f->acks, ".") && f->workspaces == stored + 2;
}

static void a_full_disk_fails_by_name_and_is_forgotten_when_there_is_room(void **state)
{
	check_in_child(*state, full_disk);
}

static bool no_room_at_all(struct fixture *f)
{
	struct error err;
	auto_close int ballast = -1;

	enter_tmpfs(f, "size=1m,mode=0700");
	ballast = openat(f->dir, "ballast", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (ballast < 0 || fallocate(ballast, 0, 0, 1020 << 10))
		return false;
	if (!try_open(f, &err) || err.code != ERR_DISK_FULL || is_there(f, STORE_FILE))
		return false;
	/* A damaged one isn't moved when no new one can be made. */
	write_whole(f, STORE_FILE, STR("x"));
	if (!try_open(f, &err) || err.code != ERR_DISK_FULL ||
		count_files(f, STORE_FILE ".corrupt-"))
		return false;
	return !ftruncate(ballast, 0) && !try_open(f, &err) && f->opened.was_corrupt;
}

static void without_room_for_a_new_one_nothing_is_changed(void **state)
{
	check_in_child(*state, no_room_at_all);
}

static bool read_only(struct fixture *f)
{
	struct error err;

	enter_tmpfs(f, "size=8m,mode=0700");
	open_store(f);
	put_workspace(f, 1);
	close_store(f);
	if (mount(NULL, f->path, NULL, MS_REMOUNT | MS_RDONLY, "size=8m"))
		return false;
	if (!try_open(f, &err) || err.code != ERR_UNAVAILABLE || !strstr(err.text, STORE_FILE))
		return false;
	if (mount(NULL, f->path, NULL, MS_REMOUNT, "size=8m"))
		return false;
	open_store(f);
	load(f);
	return f->workspaces == 1;
}

static void a_read_only_home_is_refused_and_nothing_is_moved(void **state)
{
	check_in_child(*state, read_only);
}

static void a_path_that_is_another_directory_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error err;

	setenv("UNIT_WRITER_PATH", "/usr", 1);
	assert_int_equal(try_open(f, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	setenv("UNIT_WRITER_PATH", "/nowhere", 1);
	assert_int_equal(try_open(f, &err), -1);
	assert_non_null(strstr(err.text, "/nowhere"));
	unsetenv("UNIT_WRITER_PATH");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_acknowledged_is_there_after_a_kill_at_any_moment),
		TEST(what_was_only_queued_is_not_there),
#ifdef CARREL_FAULTS
		TEST(a_kill_after_the_commit_but_before_anybody_was_told_loses_nothing),
		TEST(a_kill_while_a_new_one_is_made_leaves_none),
		TEST(a_kill_while_a_damaged_one_is_moved_is_never_silent),
		TEST(an_error_of_the_disk_fails_the_commit_by_its_name),
#endif
		TEST(a_flipped_byte_anywhere_is_harmless_or_noticed),
		TEST(a_file_cut_anywhere_or_overwritten_is_moved_aside),
		TEST(a_row_that_is_not_what_was_written_is_named_and_the_others_are_kept),
		TEST(a_damaged_one_is_moved_with_its_log),
		TEST(a_log_without_its_database_is_not_thrown_away),
		TEST(what_is_no_file_is_left_alone),
		TEST(a_lock_held_by_another_fails_the_commit_until_it_is_gone),
		TEST(it_gets_well_by_itself_when_the_lock_is_gone),
		TEST(one_that_is_locked_is_not_opened_nor_moved),
		TEST(one_whose_lock_is_released_soon_is_opened),
		TEST(a_file_moved_away_is_noticed),
		TEST(a_file_size_limit_is_a_full_disk),
		TEST(a_full_disk_fails_by_name_and_is_forgotten_when_there_is_room),
		TEST(without_room_for_a_new_one_nothing_is_changed),
		TEST(a_read_only_home_is_refused_and_nothing_is_moved),
		TEST(a_path_that_is_another_directory_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
