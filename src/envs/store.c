#include "envs/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/str.h"
#include "envs/kind.h"
#include "envs/store_internal.h"
#include "sandbox/plan/plan.h"

#define CONFIG_NAME "config.yaml"
#define CONFIG_MAX ((size_t)1 << 20)
#define LOG_MAX ((size_t)64 << 20)
#define LOCK_TRIES 10 /* a millisecond each */

/* ---- what the files of the store share ---- */

int envs_check_name(const char *name, struct error *err)
{
	if (env_name_is_valid(name))
		return 0;
	return fail_hint(err, ERR_INVALID,
		"letters, digits and @._- (not . or - at the beginning), at most 100 characters",
		"invalid name of an environment '%s'", name);
}

int envs_names_in(const struct env_store *store, const char *path, struct arena *arena,
	text_list *names, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	if (file_names(store->dir, path, arena, names) && errno != ENOENT)
		return fail_errno(err, "read '%s/envs/%s'", home->path, path);
	return 0;
}

int envs_open_directory(const struct env_store *store, const char *name, int *fd, struct error *err)
{
	int dir = fd_open_directory(store->dir, name);
	if (dir < 0 && errno == ENOENT) {
		if (mkdirat(store->dir, name, 0700) && errno != EEXIST)
			return fail_errno(err, "make '%s/envs/%s'", store->home->path, name);
		dir = fd_open_directory(store->dir, name);
	}
	if (dir < 0)
		return fail_errno(err, "open '%s/envs/%s'", store->home->path, name);
	*fd = dir;
	return 0;
}

static int is_damaged(const char *directory, struct error *err)
{
	return error_hint(err, "build it again, or: carrel env rm %s", directory);
}

static int not_there(const char *name, struct error *err)
{
	return fail_hint(err, ERR_NOT_FOUND, "carrel env ls lists the environments",
		"there is no environment '%s'", name);
}

/* meta.json, or what it means that it can't be opened. */
static int open_meta(
	const struct env_store *store, const char *directory, int flags, int *fd, struct error *err)
{
	char path[ENVS_PATH_MAX];
	struct stat st;
	str_format(path, sizeof path, "%s/" ENVS_META, directory);
	*fd = path_open_nolinks(store->dir, path, flags | O_NONBLOCK, 0);
	if (*fd >= 0)
		return 0;
	if (errno == ELOOP) {
		fail(err, ERR_CORRUPT,
			"environment '%s' is a symbolic link, which carrel never creates",
			directory);
		return is_damaged(directory, err);
	}
	if (errno != ENOENT && errno != ENOTDIR)
		return fail_errno(err, "open meta.json of environment '%s'", directory);
	if (fstatat(store->dir, directory, &st, AT_SYMLINK_NOFOLLOW))
		return not_there(directory, err);
	fail(err, ERR_CORRUPT, "environment '%s' has no meta.json", directory);
	return is_damaged(directory, err);
}

static int parse_meta(int fd, const char *directory, struct arena *arena, struct env_meta *meta,
	struct error *err)
{
	struct env_meta read = { 0 };
	struct str text;
	if (file_read(fd, ENVS_META_MAX, arena, &text))
		return fail_errno(err, "read meta.json of environment '%s'", directory);
	if (env_meta_parse(text, arena, &read, err)) {
		error_context(err, "meta.json of environment '%s'", directory);
		return is_damaged(directory, err);
	}
	if (directory[0] != '.' && strcmp(read.name, directory)) {
		fail(err, ERR_CORRUPT, "meta.json of environment '%s' is that of '%s'", directory,
			read.name);
		return is_damaged(directory, err);
	}
	*meta = read;
	return 0;
}

int envs_read_meta(const struct env_store *store, const char *directory, struct arena *arena,
	struct env_meta *meta, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_close int fd = -1;
	if (open_meta(store, directory, O_RDONLY, &fd, err))
		return -1;
	return parse_meta(fd, directory, arena, meta, err);
}

/* ---- locks: open file description locks (OFD), which are inherited with the descriptor and can be
 * queried without taking them. The pin is a byte beyond the text; the text itself is locked while a
 * use is counted. ---- */

#define PIN_AT ((off_t)1 << 40)

static int lock_range(int fd, int command, short type, off_t start, off_t len, short *found)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len
	};
	int failed;
	do
		failed = fcntl(fd, command, &lock);
	while (failed && errno == EINTR);
	if (found)
		*found = lock.l_type;
	return failed ? -1 : 0;
}

/* Shared; waits (for an instant: nobody holds it alone while doing more than a rename). Another
 * process may have been stopped in that instant: where that must not stop us, too, this fails with
 * EAGAIN after a few attempts. */
static int lock_shared(const struct env_store *store, int fd)
{
	int command = store->never_waits ? F_OFD_SETLK : F_OFD_SETLKW;
	int failed = lock_range(fd, command, F_RDLCK, PIN_AT, 1, NULL);
	for (int tries = 0; failed && errno == EAGAIN && tries < LOCK_TRIES; tries++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		failed = lock_range(fd, command, F_RDLCK, PIN_AT, 1, NULL);
	}
	return failed;
}

int envs_claim(int fd)
{
	return lock_range(fd, F_OFD_SETLK, F_WRLCK, PIN_AT, 1, NULL);
}

bool envs_is_pinned(const struct env_store *store, const char *directory)
{
	auto_leave const struct home *home = home_entered(store->home);
	struct error err;
	auto_close int fd = -1;
	short found = F_UNLCK;
	if (open_meta(store, directory, O_RDONLY, &fd, &err))
		return false;
	return !lock_range(fd, F_OFD_GETLK, F_WRLCK, PIN_AT, 1, &found) && found != F_UNLCK;
}

/* ---- opening ---- */

/* Root reads as the home's owner does. */
static int fail_config(const struct home *home, struct error *err)
{
	bool is_denied = errno == EACCES && !geteuid();
	fail_errno(err, "read '%s/" CONFIG_NAME "'", home->path);
	return is_denied ? error_hint(err,
				   "the home's owner must be able to read it: chown root:%u "
				   "%s/" CONFIG_NAME "; chmod 640 %s/" CONFIG_NAME,
				   home->gid, home->path, home->path)
			 : -1;
}

static int read_config(
	const struct home *home, struct arena *arena, struct config *config, struct error *err)
{
	auto_leave const struct home *in = home_entered(home);
	struct str text;
	config_defaults(config);
	if (file_read_at(home->dir, CONFIG_NAME, CONFIG_MAX, arena, &text))
		return errno == ENOENT ? 0 : fail_config(home, err);
	if (config_parse(text, arena, config, err))
		return error_context(err, "'%s/" CONFIG_NAME "'", home->path);
	return 0;
}

/* Of each environment that is pinned, a word that no other has while it is. Sandboxes hold the pin
 * of theirs: what none of these has mounted is not mounted. */
static int list_holders(void *ctx, struct arena *arena, text_list *holders, struct error *err)
{
	const struct env_store *store = ctx;
	auto_leave const struct home *home = home_entered(store->home);
	text_list names = { 0 };
	struct stat st;
	if (envs_names_in(store, ".", arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if (envs_is_pinned(store, names.items[i]) &&
			!fstatat(store->dir, arena_printf(arena, "%s/" ENVS_META, names.items[i]),
				&st, AT_SYMLINK_NOFOLLOW))
			vec_push(arena, holders,
				arena_printf(arena, "%llu", (unsigned long long)st.st_ino));
	return 0;
}

int env_store_open(
	const struct home *home, struct arena *arena, struct env_store *store, struct error *err)
{
	struct env_store opened = {
		.home = home, .dir = -1, .layers = { .dir = -1 }, .events = { home, -1 }
	};
	if (read_config(home, arena, &opened.config, err) ||
		layer_store_open(home, &opened.layers, err))
		return -1;
	if (home_open_directory(home, "envs", &opened.dir, err)) {
		layer_store_done(&opened.layers);
		return -1;
	}
	*store = opened;
	store->layers.list_holders = list_holders;
	store->layers.holders_ctx = store;
	return 0;
}

void env_store_done(struct env_store *store)
{
	fd_close(&store->dir);
	layer_store_done(&store->layers);
}

/* ---- reading ---- */

int env_read(const struct env_store *store, const char *name, struct arena *arena,
	struct env_meta *meta, struct error *err)
{
	return envs_check_name(name, err) ? -1 : envs_read_meta(store, name, arena, meta, err);
}

static bool is_there(const struct env_store *store, const char *name)
{
	struct stat st;
	return !fstatat(store->dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* Reads .current; false when it names no existing environment. */
static bool find_current(
	const struct env_store *store, const char *package_id, char name[ENV_NAME_MAX + 1])
{
	char path[ENVS_PATH_MAX];
	str_format(path, sizeof path, ENVS_CURRENT "/%s", package_id);
	ssize_t len = readlinkat(store->dir, path, name, ENV_NAME_MAX + 1);
	if (len <= 0 || len > ENV_NAME_MAX)
		return false;
	name[len] = 0;
	return env_name_is_valid(name) && is_there(store, name);
}

/* Without .current: the newest existing environment of the package_id. */
static const char *find_newest(const struct env_store *store, const char *package_id,
	const text_list *names, struct arena *arena)
{
	const char *newest = NULL, *created_at = "";
	for (size_t i = 0; i < names->count; i++) {
		struct env_meta meta;
		struct error err;
		if (names->items[i][0] == '.' ||
			!str_starts_with(str_from(names->items[i]), package_id) ||
			envs_read_meta(store, names->items[i], arena, &meta, &err) ||
			strcmp(meta.package_id, package_id) ||
			strcmp(meta.created_at, created_at) < 0)
			continue;
		newest = names->items[i];
		created_at = meta.created_at;
	}
	return newest;
}

/* The name, or the package_id before its '_', that is nearest to what was typed; false: none is
 * near. */
static bool find_near(const char *text, const text_list *names, char out[ENV_NAME_MAX + 1])
{
	size_t least = SIZE_MAX;
	bool is_found = false;
	for (size_t i = 0; i < 2 * names->count; i++) {
		char tried[ENV_NAME_MAX + 1], *end;
		if (names->items[i / 2][0] == '.' ||
			!str_copy(tried, sizeof tried, names->items[i / 2]))
			continue;
		if (i % 2 && (end = strrchr(tried, '_')))
			*end = 0;
		if (str_is_nearer(text, tried, &least))
			is_found = str_copy(out, ENV_NAME_MAX + 1, tried);
	}
	return is_found;
}

#define NAMES_SHOWN 5

static int not_found(const char *text, const text_list *names, struct error *err)
{
	char list[240] = "", near[ENV_NAME_MAX + 1];
	size_t len = 0, shown = 0, count = 0;
	for (size_t i = 0; i < names->count; i++) {
		size_t more = strlen(names->items[i]) + 2;
		if (names->items[i][0] == '.')
			continue;
		count++;
		if (shown + 1 < count || shown == NAMES_SHOWN || len + more >= sizeof list)
			continue;
		str_format(
			list + len, sizeof list - len, "%s%s", shown ? ", " : "", names->items[i]);
		len = strlen(list);
		shown++;
	}
	fail(err, ERR_NOT_FOUND, "there is no environment '%s'", text);
	if (!count)
		return error_hint(err, "none is built yet: carrel env build NAME -r FILE");
	if (find_near(text, names, near))
		return error_hint(err, "did you mean %s?", near);
	if (shown == count)
		return error_hint(err, "there %s %s", count == 1 ? "is" : "are", list);
	return error_hint(err, "there are %s and %zu more: carrel env ls", list, count - shown);
}

int env_resolve(const struct env_store *store, const char *text, struct arena *arena,
	const char **name, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	char current[ENV_NAME_MAX + 1];
	const char *found = NULL;
	text_list names = { 0 };
	if (envs_check_name(text, err))
		return -1;
	if (is_there(store, text))
		found = text;
	else if (find_current(store, text, current))
		found = current;
	else if (envs_names_in(store, ".", arena, &names, err))
		return -1;
	else
		found = find_newest(store, text, &names, arena);
	if (!found)
		return not_found(text, &names, err);
	*name = arena_text(arena, found);
	return 0;
}

int env_check(const struct env_store *store, const struct env_meta *meta, struct error *err)
{
	if (meta->layers.count > PLAN_LOWERS_MAX) {
		fail(err, ERR_CORRUPT,
			"environment '%s' has %zu layers, more than the %d that can be mounted",
			meta->name, meta->layers.count, PLAN_LOWERS_MAX);
		return error_hint(err, "carrel env verify --repair %s", meta->name);
	}
	text_list tools = { 0 };
	auto_arena struct arena arena = { 0 };
	for (size_t i = 0; i < meta->tools.count; i++)
		vec_push(&arena, &tools, meta->tools.items[i].value);
	if (layers_check(&store->layers, meta->layers.items, meta->layers.count, err) ||
		layers_check(&store->layers, tools.items, tools.count, err)) {
		if (err->code != ERR_NOT_FOUND && err->code != ERR_CORRUPT)
			return -1;
		err->code = ERR_CORRUPT;
		error_context(err, "environment '%s'", meta->name);
		return error_hint(err, "carrel env verify --repair %s", meta->name);
	}
	return env_kind_of(meta)->check(meta, err);
}

/* ---- using ---- */

bool env_is_current(const struct env_store *store, const char *name, int fd)
{
	auto_leave const struct home *home = home_entered(store->home);
	char path[ENVS_PATH_MAX];
	struct stat ours, there;
	str_format(path, sizeof path, "%s/" ENVS_META, name);
	return !fstat(fd, &ours) && !fstatat(store->dir, path, &there, AT_SYMLINK_NOFOLLOW) &&
	       ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

static int pin(const struct env_store *store, const char *name, int *fd, bool *is_writable,
	struct error *err)
{
	for (;;) {
		auto_close int meta = -1;
		*is_writable = true;
		if (open_meta(store, name, O_RDWR, &meta, err)) {
			if (err->sys_errno != EROFS && err->sys_errno != EACCES)
				return -1;
			/* A store that is only read serves all the same; nothing is counted. */
			*is_writable = false;
			if (open_meta(store, name, O_RDONLY, &meta, err))
				return -1;
		}
		if (lock_shared(store, meta))
			return errno == EAGAIN
				       ? fail_hint(err, ERR_CONFLICT, "try again",
						 "environment '%s' is being removed or replaced",
						 name)
				       : fail_errno(
						 err, "lock meta.json of environment '%s'", name);
		fault_point("envs.pin");
		/* It may have been replaced or removed before it was locked. */
		if (env_is_current(store, name, meta)) {
			*fd = take_fd(&meta);
			return 0;
		}
	}
}

static int count_use(int fd, struct arena *arena, struct env_meta *meta, struct error *err)
{
	char now[32], use[ENV_META_USE_LEN + 1];
	clock_format_now(now);
	env_meta_print_use(now, meta->use_count + 1, use);
	if (fault_fails("envs.use") ||
		pwrite(fd, use, ENV_META_USE_LEN, 0) != (ssize_t)ENV_META_USE_LEN)
		return fail_errno(err, "count a use of environment '%s'", meta->name);
	meta->use_count++;
	meta->last_used_at = arena_text(arena, now);
	return 0;
}

int env_use(const struct env_store *store, const char *name, struct arena *arena,
	struct env_meta *meta, int *pin_fd, struct error *err)
{
	auto_close int fd = -1;
	struct env_meta read;
	bool is_writable;
	if (envs_check_name(name, err))
		return -1;
	home_enter(store->home);
	int failed = pin(store, name, &fd, &is_writable, err);
	if (!failed && is_writable &&
		lock_range(fd, store->never_waits ? F_OFD_SETLK : F_OFD_SETLKW, F_WRLCK, 0,
			ENV_META_USE_LEN, NULL)) {
		is_writable = false;
		if (!store->never_waits || errno != EAGAIN)
			failed = fail_errno(err, "lock meta.json of environment '%s'", name);
	}
	if (!failed)
		failed = parse_meta(fd, name, arena, &read, err);
	home_leave(store->home);
	if (failed || env_check(store, &read, err))
		return -1;
	if (is_writable && count_use(fd, arena, &read, err))
		return -1;
	if (is_writable && lock_range(fd, F_OFD_SETLK, F_UNLCK, 0, ENV_META_USE_LEN, NULL))
		return fail_errno(err, "unlock meta.json of environment '%s'", name);
	*meta = read;
	*pin_fd = take_fd(&fd);
	return 0;
}

/* ---- builders ---- */

/* One file for all names: the lock of a name is the byte at its hash. */
static off_t lock_place(const char *name)
{
	unsigned char digest[SHA256_LEN];
	struct sha256 hash;
	off_t place;
	sha256_init(&hash);
	sha256_add(&hash, name, strlen(name));
	sha256_end(&hash, digest);
	memcpy(&place, digest, sizeof place);
	return place & (((off_t)1 << 62) - 1);
}

int env_lock(const struct env_store *store, const char *name, uint64_t timeout_ms, int *fd,
	struct error *err)
{
	uint64_t deadline = clock_monotonic_ms() + timeout_ms;
	if (envs_check_name(name, err))
		return -1;
	home_enter(store->home);
	auto_close int file =
		openat(store->dir, ENVS_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	home_leave(store->home);
	if (file < 0)
		return fail_errno(err, "open '%s/envs/" ENVS_LOCK "'", store->home->path);
	off_t place = lock_place(name);
	for (long pause_ms = 1; lock_range(file, F_OFD_SETLK, F_WRLCK, place, 1, NULL);
		pause_ms = pause_ms < 50 ? pause_ms * 2 : 50) {
		if (errno != EAGAIN && errno != EACCES)
			return fail_errno(err, "lock environment '%s'", name);
		if (clock_monotonic_ms() >= deadline)
			return fail_hint(err, ERR_CONFLICT,
				"wait for it, or allow more with --timeout",
				"another carrel is building environment '%s'", name);
		nanosleep(&(struct timespec){ .tv_nsec = pause_ms * 1000000 }, NULL);
	}
	*fd = take_fd(&file);
	return 0;
}

/* ---- other files ---- */

int env_read_file(const struct env_store *store, const char *name, const char *file,
	struct buf *out, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_arena struct arena arena = { 0 };
	char path[ENVS_PATH_MAX], failed_path[ENVS_PATH_MAX];
	struct str text;
	if (envs_check_name(name, err))
		return -1;
	str_format(path, sizeof path, "%s/%s", name, file);
	str_format(failed_path, sizeof failed_path, ENVS_FAILED "/%s.log", name);
	/* A successful build removes the log of a failed one, so an existing failure log is newer.
	 */
	if (strcmp(file, "build.log") ||
		file_read_at(store->dir, failed_path, LOG_MAX, &arena, &text)) {
		if (file_read_at(store->dir, path, LOG_MAX, &arena, &text)) {
			if (errno != ENOENT)
				return fail_errno(err, "read %s of environment '%s'", file, name);
			return is_there(store, name)
				       ? fail(err, ERR_NOT_FOUND, "environment '%s' has no %s",
						 name, file)
				       : not_there(name, err);
		}
	}
	if (!buf_append(out, text.data, text.len))
		return fail(err, ERR_LIMIT, "%s of environment '%s' is too large", file, name);
	return 0;
}

int64_t env_age_ms(const char *time, int64_t now_ms)
{
	int64_t then;
	return time && env_time_parse(time, &then) && then < now_ms ? now_ms - then : 0;
}
