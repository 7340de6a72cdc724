/* Layers: a whole one or none, the same for the same content, and whatever is done to it is found.
 */
/* security: packages */
#include <dirent.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include "base/file.h"
#include "layers_fixture.h"

static struct stat look(const char *path)
{
	struct stat st;

	home_enter(&home);
	int failed = fstatat(store.dir, path, &st, AT_SYMLINK_NOFOLLOW);
	home_leave(&home);
	if (failed)
		fail_msg("no '%s'", path);
	return st;
}

/* -- publishing -- */

static void a_tree_becomes_a_layer_with_plain_modes_and_one_time(void **state)
{
	static const struct {
		const char *path;
		mode_t mode;
	} cases[] = { { "tree", 0755 }, { "tree/bin", 0755 }, { "tree/lib/empty", 0755 },
		{ "tree/bin/run", 0755 }, { "tree/lib/a.py", 0644 }, { "tree/lib/nothing", 0644 },
		{ "tree/bin/a", 0777 } };
	struct layer_draft draft = draft_of("d", "key");
	struct manifest manifest = { 0 };
	char found[LAYER_ID_LEN + 1];

	assert_fails(layer_find(&store, "key", found, &err), ERR_NOT_FOUND, "key");
	put_tree("d", "one");
	assert_ok(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err));
	assert_false(draft.was_there);
	assert_int_equal(draft.files, 3);
	assert_int_equal(draft.bytes, 13);
	assert_true(layer_id_is_valid(draft.id));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct stat st = look(arena_printf(&arena, "%s/%s", draft.id, cases[i].path));

		assert_int_equal(st.st_mode & 07777, cases[i].mode);
		assert_int_equal(st.st_mtim.tv_sec, LAYER_MTIME);
		assert_int_equal(st.st_mtim.tv_nsec, 0);
		assert_int_equal(st.st_uid, home.uid);
	}
	assert_whole(draft.id);
	assert_ok(layer_find(&store, "key", found, &err));
	assert_string_equal(found, draft.id);
	assert_int_equal(layer_find(&store, "no", found, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_ok(layer_read(&store, draft.id, &arena, &manifest, &err));
	assert_int_equal(manifest.entries.count, 8);
	assert_string_equal(manifest.name, "a");
	uint64_t bytes = 0;
	assert_ok(layer_measure(&store, draft.id, &bytes, &err));
	assert_true(bytes > 0);
}

static void the_same_content_is_one_layer(void **state)
{
	const char *one = publish_one("d1", "same", NULL);
	struct layer_draft again = draft_of("d2", "a key");
	char found[LAYER_ID_LEN + 1];

	put_tree("d2", "same");
	assert_ok(layers_publish(&store, stage.fd, &again, 1, NULL, NULL, &err));
	assert_true(again.was_there);
	assert_string_equal(again.id, one);
	assert_int_equal(again.files, 3);
	assert_int_equal(count_layers(), 1);
	/* The key counts although the layer was there. */
	assert_ok(layer_find(&store, "a key", found, &err));
	assert_string_equal(found, one);
	assert_string_not_equal(publish_one("d3", "other", NULL), one);
	assert_int_equal(count_layers(), 2);
}

static void the_same_key_is_one_layer_the_first(void **state)
{
	struct layer_draft again = draft_of("d2", "key");
	const char *one = publish_one("d1", "first", "key");

	put_tree("d2", "second, longer");
	assert_ok(layers_publish(&store, stage.fd, &again, 1, NULL, NULL, &err));
	assert_true(again.was_there);
	assert_string_equal(again.id, one);
	assert_int_equal(again.bytes, 15);
	assert_int_equal(count_layers(), 1);
}

static void many_become_layers_at_once_and_equal_ones_one(void **state)
{
	struct layer_draft drafts[20];
	static char big[300000];

	for (size_t i = 0; i < 20; i++) {
		const char *path = arena_printf(&arena, "d%zu", i);

		drafts[i] = draft_of(path, arena_printf(&arena, "key %zu", i));
		put_tree(path, arena_printf(&arena, "%zu", i / 2));
		memset(big, 'a' + (int)i / 2, sizeof big);
		put_bytes(arena_printf(&arena, "%s/tree/big", path), big, sizeof big, 0644);
	}
	assert_ok(layers_publish(&store, stage.fd, drafts, 20, NULL, NULL, &err));
	assert_int_equal(count_layers(), 10);
	for (size_t i = 0; i < 20; i += 2) {
		assert_string_equal(drafts[i].id, drafts[i + 1].id);
		assert_true(!drafts[i].was_there && drafts[i + 1].was_there);
		assert_whole(drafts[i].id);
	}
	assert_fails(
		layers_check(&store,
			(const char *const[]){ drafts[0].id, "0000000000000000000000000000000000000"
							     "000000000000000000000000000" },
			2, &err),
		ERR_NOT_FOUND, "00000000");
	assert_fails(layer_check(&store, "../x", &err), ERR_NOT_FOUND, "not the id");
}

static int refuse_one(void *ctx, size_t draft, const char *path,
	const unsigned char sha256[SHA256_LEN], uint64_t size, struct error *error)
{
	/* In whichever of the two it is. */
	__atomic_fetch_add((int *)ctx, 1, __ATOMIC_RELAXED);
	if (strcmp(path, "lib/a.py") == 0 && draft == 1)
		return fail(error, ERR_CORRUPT, "'%s' isn't in RECORD", path);
	return 0;
}

static void who_compares_sees_every_file_and_can_refuse(void **state)
{
	struct layer_draft drafts[30];
	int calls = 0;

	for (size_t i = 0; i < 30; i++) {
		const char *path = arena_printf(&arena, "d%zu", i);

		drafts[i] = draft_of(path, NULL);
		put_tree(path, arena_printf(&arena, "%zu", i));
	}
	assert_fails(layers_publish(&store, stage.fd, drafts, 30, refuse_one, &calls, &err),
		ERR_CORRUPT, "'lib/a.py' isn't in RECORD");
	assert_int_equal(count_layers(), 0);
	calls = 0;
	assert_ok(layers_publish(&store, stage.fd, drafts, 1, refuse_one, &calls, &err));
	assert_int_equal(calls, 3);
}

static void what_is_damaged_by_name_gives_place(void **state)
{
	const char *one = publish_one("d1", "x", "key");

	home_enter(&home);
	assert_int_equal(unlinkat(store.dir, arena_printf(&arena, "%s/manifest", one), 0), 0);
	home_leave(&home);
	assert_fails(layer_check(&store, one, &err), ERR_NOT_FOUND, "no manifest");
	struct layer_draft again = draft_of("d2", "key");
	put_tree("d2", "x");
	assert_ok(layers_publish(&store, stage.fd, &again, 1, NULL, NULL, &err));
	assert_false(again.was_there);
	assert_string_equal(again.id, one);
	assert_whole(one);
}

static void two_who_publish_at_once_end_with_one(void **state)
{
	enum { ROUNDS = 8 };
	char found[LAYER_ID_LEN + 1];
	pid_t children[2];

	/* By content in even rounds, by key (with other content) in odd ones. */
	for (int who = 0; who < 2; who++)
		for (int round = 0; round < ROUNDS; round++)
			put_tree(arena_printf(&arena, "d%d-%d", who, round),
				arena_printf(&arena, "%d %d", round, round % 2 ? who : 0));
	for (int who = 0; who < 2; who++) {
		children[who] = fork();
		assert_true(children[who] >= 0);
		if (children[who] > 0)
			continue;
		for (int round = 0; round < ROUNDS; round++) {
			struct layer_draft draft =
				draft_of(arena_printf(&arena, "d%d-%d", who, round),
					round % 2 ? arena_printf(&arena, "key %d", round) : NULL);

			if (layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err) < 0)
				_exit(1);
			if (draft.key && layer_find(&store, draft.key, found, &err) < 0)
				_exit(2);
			if (draft.key && strcmp(found, draft.id) != 0)
				_exit(3);
		}
		_exit(0);
	}
	for (int who = 0; who < 2; who++) {
		int status;

		assert_int_equal(waitpid(children[who], &status, 0), children[who]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count_layers(), ROUNDS);
}

/* -- damage -- */

/* Does what a shell command says to the layer, and verifies. */
static void assert_damage(const char *id, const char *command, const char *path, const char *what)
{
	layer_damages damages = { 0 };
	const char *tree = arena_printf(&arena, "%s/layers/%s/tree", home.path, id);
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		/* As the owner: what root makes would belong to somebody else. */
		if (chdir(tree) < 0 || setgid(home.gid) < 0 || setuid(home.uid) < 0)
			_exit(120);
		execl("/bin/sh", "sh", "-ec", command, NULL);
		_exit(121);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status)
		fail_msg("%s: status %x", command, status);
	assert_ok(layer_verify(&store, id, &arena, &damages, &err));
	if (damages.count == 0)
		fail_msg("%s: not found", command);
	for (size_t i = 0; i < damages.count; i++)
		if (strcmp(damages.items[i].path, path) == 0 && strstr(damages.items[i].what, what))
			return;
	fail_msg("%s: '%s' %s", command, damages.items[0].path, damages.items[0].what);
}

static void every_kind_of_damage_is_found(void **state)
{
#define KEEP_TIME(path, command)                                                                   \
	"touch -r " path " ../t; " command "; touch -hr ../t " path "; rm ../t"
	static const struct {
		const char *command, *path, *what;
	} cases[] = {
		{ KEEP_TIME("lib/a.py", "printf text1234 >lib/a.py"), "lib/a.py",
			"size 8, not 10" },
		{ KEEP_TIME("lib/a.py", "printf abcdefghiX >lib/a.py"), "lib/a.py", "changed" },
		{ KEEP_TIME("lib/a.py", ": >lib/a.py"), "lib/a.py", "size 0, not 10" },
		{ KEEP_TIME("lib", "rm lib/a.py"), "lib/a.py", "missing" },
		{ KEEP_TIME("lib", "rmdir lib/empty"), "lib/empty", "missing" },
		{ KEEP_TIME("lib", ": >lib/more; touch -r ../manifest lib/more"), "lib/more",
			"not in the manifest" },
		{ "mkdir -p lib/empty/x", "lib/empty/x", "not in the manifest" },
		{ "chmod 755 lib/a.py", "lib/a.py", "mode 0755, not 0644" },
		{ "chmod u+s bin/run", "bin/run", "mode 4755, not 0755" },
		{ "chmod 700 lib", "lib", "mode 0700, not 0755" },
		{ "chmod 000 lib", "lib", "can't be read" },
		{ "chmod 000 lib/a.py", "lib/a.py", "mode 0000" },
		{ "chmod 700 .", "", "mode 0700" },
		{ "touch lib/a.py", "lib/a.py", "time changed" },
		{ "touch lib", "lib", "time changed" },
		{ "touch .", "", "time changed" },
		{ "touch -h bin/a", "bin/a", "time changed" },
		{ KEEP_TIME("bin/a", "ln -sfn /etc/passwd bin/a"), "bin/a",
			"points to '/etc/passwd', not '../lib/a.py'" },
		{ "rm lib/a.py; mkdir lib/a.py", "lib/a.py", "is a directory, not a file" },
		{ "rm lib/a.py; ln -s x lib/a.py", "lib/a.py", "is a link, not a file" },
		{ "rm lib/a.py; mkfifo lib/a.py", "lib/a.py", "is a fifo" },
		{ "ln lib/a.py ../../other", "lib/a.py", "has another name outside" },
		{ "mv lib lib2; ln -s lib2 lib", "lib", "is a link, not a directory" },
		{ "printf 'd 755 zzz\\n' >>../manifest", "", "manifest was changed" },
		{ ": >../manifest", "", "manifest was changed" },
		{ "rm ../manifest", "", "no manifest" },
		{ "rm ../manifest; ln -s /etc/passwd ../manifest", "", "manifest" },
		{ ": >../beside", "", "unexpected file 'beside' beside the tree" },
		{ "mv ../tree ../../moved", "", "tree" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct layer_draft draft = draft_of("d", NULL);

		put_tree("d", "abcdefghij");
		draft.version = arena_printf(&arena, "%zu", i);
		assert_ok(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err));
		assert_whole(draft.id);
		assert_damage(draft.id, cases[i].command, cases[i].path, cases[i].what);
		/* For the layer's own name, so that the store can be used again. */
		home_enter(&home);
		path_remove_tree(store.dir, "other", &err);
		path_remove_tree(store.dir, "moved", &err);
		home_leave(&home);
	}
	layer_damages damages;
	assert_fails(layer_verify(&store, "x", &arena, &damages, &err), ERR_NOT_FOUND, "x");
}

/* -- collecting -- */

static void what_lives_is_kept_and_the_rest_goes_with_its_keys(void **state)
{
	const char *live_id = publish_one("d1", "1", "key 1"),
		   *dead = publish_one("d2", "2", "key 2");
	char found[LAYER_ID_LEN + 1];
	uint64_t count, bytes;
	struct map live;

	map_init(&live, &arena);
	map_set(&live, str_from(live_id), &live);
	home_enter(&home);
	assert_int_equal(symlinkat("nowhere", store.dir, ".keys/.new-x"), 0);
	home_leave(&home);
	assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
	assert_int_equal(count, 1);
	assert_true(bytes > 4096);
	assert_whole(live_id);
	assert_fails(layer_check(&store, dead, &err), ERR_NOT_FOUND, dead);
	assert_ok(layer_find(&store, "key 1", found, &err));
	assert_fails(layer_find(&store, "key 2", found, &err), ERR_NOT_FOUND, "key 2");
	home_enter(&home);
	assert_int_equal(faccessat(store.dir, ".keys/.new-x", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	home_leave(&home);
	assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
	assert_int_equal(count, 0);
}

static size_t count_names(const char *prefix)
{
	size_t count = 0;
	home_enter(&home);
	DIR *dir = fdopendir(openat(store.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	home_leave(&home);
	struct dirent *entry;

	while ((entry = readdir(dir)))
		count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	closedir(dir);
	return count;
}

static int list_holders(void *ctx, struct arena *into, text_list *holders, struct error *error)
{
	const char *const *word = ctx;

	vec_push(into, holders, *word);
	return 0;
}

/* Of all quarantined copies: as a version before left them. */
static void forget_holders(void)
{
	text_list names = { 0 };

	home_enter(&home);
	assert_int_equal(file_names(store.dir, ".", &arena, &names), 0);
	for (size_t i = 0; i < names.count; i++)
		if (strncmp(names.items[i], ".bad-", 5) == 0)
			assert_int_equal(
				unlinkat(store.dir,
					arena_printf(&arena, "%s/holders", names.items[i]), 0),
				0);
	home_leave(&home);
}

static void a_damaged_layer_is_set_aside_and_built_again(void **state)
{
	const char *id = publish_one("d1", "text", "key");
	char found[LAYER_ID_LEN + 1];
	uint64_t count, bytes;
	const char *word = "7";
	struct map live;

	store.list_holders = list_holders;
	store.holders_ctx = &word;

	assert_ok(layer_quarantine(&store, id, &err));
	assert_fails(layer_quarantine(&store, id, &err), ERR_NOT_FOUND, id);
	assert_fails(layer_find(&store, "key", found, &err), ERR_NOT_FOUND, "key");
	assert_int_equal(count_layers(), 0);
	assert_string_equal(publish_one("d2", "text", "key"), id);
	assert_ok(layer_find(&store, "key", found, &err));
	assert_whole(id);
	/* While somebody who can have the old one mounted is there it stays, and goes afterwards,
	 * whoever uses the new one. */
	map_init(&live, &arena);
	map_set(&live, str_from(id), LAYER_IN_USE);
	assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
	assert_int_equal(count, 0);
	assert_int_equal(count_names(".bad-"), 1);
	word = "77";
	assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
	assert_int_equal(count, 1);
	assert_int_equal(count_names(".bad-"), 0);
	/* One whose holders nobody wrote down stays while the layer is in use. */
	assert_ok(layer_quarantine(&store, id, &err));
	assert_string_equal(publish_one("d3", "text", "key"), id);
	forget_holders();
	assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
	assert_int_equal(count_names(".bad-"), 1);
	map_set(&live, str_from(id), &live);
	assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
	assert_int_equal(count_names(".bad-"), 0);
	assert_whole(id);
}

static void what_was_found_damaged_is_not_used_until_it_is_whole(void **state)
{
	const char *id = publish_one("d1", "text", "key");
	char found[LAYER_ID_LEN + 1];

	assert_damage(id, "chmod u+w lib lib/a.py; echo x >>lib/a.py", "lib/a.py", "size");
	assert_fails(layer_check(&store, id, &err), ERR_NOT_FOUND, "is damaged");
	assert_fails(layers_check(&store, &id, 1, &err), ERR_NOT_FOUND, "is damaged");
	assert_fails(layer_find(&store, "key", found, &err), ERR_NOT_FOUND, "key");
	/* The next one that is built takes its place; who has the old one mounted keeps it. */
	assert_string_equal(publish_one("d2", "text", "key"), id);
	assert_whole(id);
	assert_int_equal(count_names(".bad-"), 1);
	assert_int_equal(count_names(".damaged"), 0);
}

/* -- locks, a store that can't be written -- */

static void the_lock_is_shared_or_alone(void **state)
{
	int one, two;

	assert_ok(layer_store_lock(&store, false, &one, &err));
	assert_ok(layer_store_lock(&store, false, &two, &err));
	auto_close int third = openat(store.dir, ".lock", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(third, LOCK_EX | LOCK_NB), -1);
	close(one);
	close(two);
	assert_ok(layer_store_lock(&store, true, &one, &err));
	assert_int_equal(flock(third, LOCK_SH | LOCK_NB), -1);
	close(one);
	assert_int_equal(flock(third, LOCK_SH | LOCK_NB), 0);
}

static void a_store_that_cannot_be_written_says_so_and_is_read(void **state)
{
	const char *id = publish_one("d1", "text", "key");
	struct layer_draft draft = draft_of("d2", NULL);
	char found[LAYER_ID_LEN + 1];
	uint64_t count, bytes;
	struct map live;
	int lock;

	if (geteuid() == 0 && !home.is_foreign)
		skip();
	assert_ok(layer_store_lock(&store, false, &lock, &err));
	close(lock);
	put_tree("d2", "other");
	assert_int_equal(fchmod(store.dir, 0555), 0);
	assert_ok(layer_store_lock(&store, false, &lock, &err));
	close(lock);
	assert_ok(layer_find(&store, "key", found, &err));
	assert_whole(id);
	assert_fails(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err), ERR_DENIED,
		"rename to");
	assert_non_null(strstr(err.hint, "writable"));
	map_init(&live, &arena);
	assert_fails(layers_collect(&store, &live, &count, &bytes, &err), ERR_DENIED, "remove");
	assert_fails(layer_quarantine(&store, id, &err), ERR_DENIED, "set aside");
	assert_int_equal(fchmod(store.dir, 0700), 0);
	/* The same tree, once it can be. */
	put_tree("d3", "other");
	draft = draft_of("d3", NULL);
	assert_ok(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err));
	assert_whole(draft.id);
}

static void read_only_store(void)
{
	struct layer_draft draft = draft_of("d2", "other");
	struct layer_stage other = { 0 };
	struct home again;
	struct layer_store opened;
	layer_damages damages = { 0 };
	char found[LAYER_ID_LEN + 1];
	uint64_t count;
	int lock;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount(home.path, home.path, NULL, MS_BIND, NULL) < 0 ||
		mount(NULL, home.path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
		_exit(77);
	assert_ok(home_open(home.path, &arena, &again, &err));
	assert_ok(layer_store_open(&again, &opened, &err));
	assert_ok(layer_store_lock(&opened, false, &lock, &err));
	assert_ok(layer_find(&opened, "key", found, &err));
	assert_ok(layer_verify(&opened, found, &arena, &damages, &err));
	assert_int_equal(damages.count, 0);
	auto_close int drafts = open(stage.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(layers_publish(&opened, drafts, &draft, 1, NULL, NULL, &err), -1);
	assert_int_equal(err.sys_errno, EROFS);
	assert_non_null(strstr(err.hint, "writable"));
	assert_int_equal(layer_stage_make(&opened, &arena, &other, &err), -1);
	assert_int_equal(err.sys_errno, EROFS);
	/* Nothing to sweep is no failure; what is in use isn't touched. */
	assert_ok(layer_stages_sweep(&opened, &count, &err));
}

static void a_store_on_a_read_only_file_system_says_so_and_is_read(void **state)
{
	int status, lock;

	if (geteuid() != 0)
		skip();
	publish_one("d1", "text", "key");
	put_tree("d2", "other");
	assert_ok(layer_store_lock(&store, false, &lock, &err));
	close(lock);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		read_only_store();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* -- faults -- */

#ifdef CARREL_FAULTS
enum { DRAFTS = 40 };

static void make_drafts(struct layer_draft drafts[DRAFTS], const char *prefix)
{
	for (size_t i = 0; i < DRAFTS; i++) {
		const char *path = arena_printf(&arena, "%s%zu", prefix, i);

		drafts[i] = draft_of(path, arena_printf(&arena, "key %zu", i));
		put_tree(path, drafts[i].key);
	}
}

/* Publishes (or collects) in a child with a fault; what its wait says. */
static int run_with_fault(const char *fault, struct layer_draft *drafts, const struct map *live)
{
	pid_t child = fork();
	uint64_t count, bytes;
	int status = 0;

	assert_true(child >= 0);
	if (child == 0) {
		setenv("CARREL_FAULT", fault, 1);
		int failed =
			drafts ? layers_publish(&store, stage.fd, drafts, DRAFTS, NULL, NULL, &err)
			       : layers_collect(&store, live, &count, &bytes, &err);
		_exit(failed ? (int)err.code : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void sweep_after_crash(void)
{
	uint64_t swept = 0;

	/* The stage's maker is us: as it would be when we had died. The second process of a killed
	 * publisher may still be on its way out, and holds the lock until then. */
	auto_close int again = openat(stage.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd_close(&stage.fd);
	assert_int_equal(flock(again, LOCK_EX), 0);
	fd_close(&again);
	assert_ok(layer_stages_sweep(&store, &swept, &err));
	assert_int_equal(swept, 1);
	assert_ok(layer_stage_make(&store, &arena, &stage, &err));
}

static void assert_all_whole(void)
{
	text_list ids = { 0 };

	assert_ok(layers_list(&store, &arena, &ids, &err));
	for (size_t i = 0; i < ids.count; i++)
		assert_whole(ids.items[i]);
}

static void a_kill_anywhere_leaves_whole_layers_or_none(void **state)
{
	static const char *const faults[] = { "layers.hash:1", "layers.hash:50",
		"layers.manifest:1", "layers.manifest:7", "layers.sync:1", "layers.rename:1",
		"layers.rename:9", "layers.key:1", "layers.key:9", "layers.fsync:1" };

	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		struct layer_draft drafts[DRAFTS];
		uint64_t count, bytes;
		struct map live;

		make_drafts(drafts, "d");
		int status = run_with_fault(faults[i], drafts, NULL);
		/* Killed, or the other of the two was and it says so. */
		if (!WIFSIGNALED(status) && WEXITSTATUS(status) != ERR_FAILED)
			fail_msg("%s: status %x", faults[i], status);
		assert_all_whole();
		sweep_after_crash();
		make_drafts(drafts, "d");
		assert_ok(layers_publish(&store, stage.fd, drafts, DRAFTS, NULL, NULL, &err));
		assert_int_equal(count_layers(), DRAFTS);
		assert_all_whole();
		for (size_t k = 0; k < DRAFTS; k++) {
			char found[LAYER_ID_LEN + 1];

			assert_ok(layer_find(&store, drafts[k].key, found, &err));
			assert_string_equal(found, drafts[k].id);
		}
		sweep_after_crash();
		map_init(&live, &arena);
		assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
	}
}

static void a_kill_while_collecting_leaves_whole_layers_and_rest_for_the_next(void **state)
{
	static const char *const faults[] = { "layers.collect:1", "layers.collect:5",
		"layers.remove:1", "layers.remove:5" };

	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		struct layer_draft drafts[DRAFTS];
		uint64_t count, bytes;
		struct map live;

		make_drafts(drafts, "d");
		assert_ok(layers_publish(&store, stage.fd, drafts, DRAFTS, NULL, NULL, &err));
		map_init(&live, &arena);
		map_set(&live, str_from(drafts[3].id), &live);
		assert_true(WIFSIGNALED(run_with_fault(faults[i], NULL, &live)));
		assert_all_whole();
		assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
		assert_int_equal(count_layers(), 1);
		assert_int_equal(count_names(".gone-"), 0);
		assert_ok(layer_check(&store, drafts[3].id, &err));
		sweep_after_crash();
		map_init(&live, &arena);
		assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
	}
}

static void a_full_disk_is_an_error_and_new_drafts_do_afterwards(void **state)
{
	static const char *const faults[] = { "layers.manifest:3", "layers.sync:1",
		"layers.rename:5", "layers.key:5", "layers.fsync:1" };

	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		struct layer_draft drafts[DRAFTS];
		uint64_t count, bytes;
		struct map live;

		make_drafts(drafts, "d");
		/* The count of passings is the process's: forget it in a child, which publishes for
		 * us in the shared stage; its drafts come back as those of one who starts again. */
		pid_t child = fork();
		int status;
		assert_true(child >= 0);
		if (child == 0) {
			setenv("CARREL_FAULT", arena_printf(&arena, "%s:ENOSPC", faults[i]), 1);
			if (layers_publish(&store, stage.fd, drafts, DRAFTS, NULL, NULL, &err) !=
					-1 ||
				err.code != ERR_DISK_FULL || !strstr(err.hint, "free disk space"))
				_exit(1);
			unsetenv("CARREL_FAULT");
			make_drafts(drafts, "e");
			if (layers_publish(&store, stage.fd, drafts, DRAFTS, NULL, NULL, &err))
				_exit(2);
			for (size_t k = 0; k < DRAFTS; k++) {
				char found[LAYER_ID_LEN + 1];

				if (layer_find(&store, drafts[k].key, found, &err) ||
					strcmp(found, drafts[k].id) != 0)
					_exit(3);
			}
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (status)
			fail_msg("%s: status %x", faults[i], status);
		assert_int_equal(count_layers(), DRAFTS);
		assert_all_whole();
		sweep_after_crash();
		map_init(&live, &arena);
		assert_ok(layers_collect(&store, &live, &count, &bytes, &err));
	}
}
#endif

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(a_tree_becomes_a_layer_with_plain_modes_and_one_time),
		test(the_same_content_is_one_layer),
		test(the_same_key_is_one_layer_the_first),
		test(many_become_layers_at_once_and_equal_ones_one),
		test(who_compares_sees_every_file_and_can_refuse),
		test(what_is_damaged_by_name_gives_place),
		test(two_who_publish_at_once_end_with_one),
		test(every_kind_of_damage_is_found),
		test(what_lives_is_kept_and_the_rest_goes_with_its_keys),
		test(a_damaged_layer_is_set_aside_and_built_again),
		test(what_was_found_damaged_is_not_used_until_it_is_whole),
		test(the_lock_is_shared_or_alone),
		test(a_store_that_cannot_be_written_says_so_and_is_read),
		test(a_store_on_a_read_only_file_system_says_so_and_is_read),
#ifdef CARREL_FAULTS
		test(a_kill_anywhere_leaves_whole_layers_or_none),
		test(a_kill_while_collecting_leaves_whole_layers_and_rest_for_the_next),
		test(a_full_disk_is_an_error_and_new_drafts_do_afterwards),
#endif
	};

	return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
