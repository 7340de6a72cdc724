/* <home>/locks, kept small: <key> is a lock, <key>-<16 digits> the layers it gave. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "envs/store_parts.h"

#define LOCKS "../locks" /* seen from envs/ */
#define KEY_LEN 64
#define AGE_MAX_S (30 * 86400)
#define COUNT_MAX 1000
#define DRAFT_AGE_MAX_S 3600

struct kept {
	const char *name;
	int64_t time;
	bool is_used; /* an environment has it, too: its lock.txt is the same file */
};
typedef VEC(struct kept) kept_list;

static bool is_list(const char *name)
{
	return strlen(name) > KEY_LEN && name[KEY_LEN] == '-';
}

/* The newest first. */
static int compare_times(const void *a, const void *b)
{
	const struct kept *one = a, *other = b;
	return (one->time < other->time) - (one->time > other->time);
}

static void sweep_locks(int dir, kept_list *locks, int64_t now)
{
	size_t unused = 0;
	if (locks->count)
		qsort(locks->items, locks->count, sizeof *locks->items, compare_times);
	for (size_t i = 0; i < locks->count; i++) {
		const struct kept *lock = &locks->items[i];
		if (!lock->is_used && (now - lock->time > AGE_MAX_S || ++unused > COUNT_MAX))
			unlinkat(dir, lock->name, 0);
	}
}

/* A list goes with its lock. That of an empty environment has none: it is made again in no time. */
static void sweep_lists(int dir, const kept_list *lists, int64_t now)
{
	for (size_t i = 0; i < lists->count; i++) {
		const struct kept *list = &lists->items[i];
		char key[KEY_LEN + 1];
		struct stat st;
		str_copy(key, sizeof key, list->name);
		if (fstatat(dir, key, &st, AT_SYMLINK_NOFOLLOW) &&
			now - list->time > DRAFT_AGE_MAX_S)
			unlinkat(dir, list->name, 0);
	}
}

void envs_sweep_kept(const struct env_store *store)
{
	auto_arena struct arena arena;
	text_list names = { 0 };
	kept_list locks = { 0 }, lists = { 0 };
	struct error ignored;
	int64_t now = clock_now_ms() / 1000;
	arena_init(&arena);
	auto_close int dir =
		openat(store->dir, LOCKS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || envs_names_in(store, LOCKS, &arena, &names, &ignored))
		return;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		struct stat st;
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		struct kept kept = { name, st.st_mtime, st.st_nlink > 1 };
		if (name[0] != '.')
			vec_push(&arena, is_list(name) ? &lists : &locks, kept);
		else if (now - kept.time > DRAFT_AGE_MAX_S)
			unlinkat(dir, name, 0);
	}
	sweep_locks(dir, &locks, now);
	sweep_lists(dir, &lists, now);
}
