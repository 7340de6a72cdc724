/* What there is: rows, sizes, metrics. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"
#include "envs/store.h"
#include "envs/store_internal.h"

#define SIZES ".sizes" /* lines of "<layer> <bytes>"; layers never change */
#define SIZES_MAX ((size_t)64 << 20)
#define SIZES_TRIM (1 << 20)

/* ---- rows ---- */

static struct env_row row_of(
	const struct env_store *store, const char *name, struct arena *arena, struct error *err)
{
	struct env_row row = { .is_in_use = envs_is_pinned(store, name) };
	if (envs_read_meta(store, name, arena, &row.meta, err)) {
		row.meta = (struct env_meta){ .name = name };
		row.problem = arena_text(arena, err->text);
	}
	return row;
}

int envs_rows(const struct env_store *store, struct arena *arena, bool check, env_rows *rows,
	struct error *err)
{
	env_rows found = { 0 };
	text_list names = { 0 };
	if (envs_names_in(store, ".", arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct error why = { 0 };
		if (names.items[i][0] == '.')
			continue;
		struct env_row row = row_of(store, names.items[i], arena, &why);
		/* Removed since its name was read. */
		if (row.problem && why.code == ERR_NOT_FOUND)
			continue;
		if (check && !row.problem && env_check(store, &row.meta, &why))
			row.problem = arena_text(arena, why.text);
		vec_push(arena, &found, row);
	}
	*rows = found;
	return 0;
}

int env_list(const struct env_store *store, struct arena *arena, env_rows *rows, struct error *err)
{
	return envs_rows(store, arena, true, rows, err);
}

/* ---- sizes of layers ---- */

static void add_size(struct map *sizes, struct str id, uint64_t bytes)
{
	uint64_t *value = arena_alloc(sizes->arena, sizeof *value);
	*value = bytes;
	map_set(sizes, id, value);
}

/* A line that a crash cut, or that isn't one, is passed over: that layer is measured again. */
static void read_sizes(const struct env_store *store, struct map *sizes)
{
	auto_leave const struct home *home = home_entered(store->home);
	struct str rest = { 0 }, line, id, number;
	uint64_t bytes;
	file_read_at(store->dir, SIZES, SIZES_MAX, sizes->arena, &rest);
	while (str_next(&rest, '\n', &line))
		if (str_cut(line, ' ', &id, &number) && id.len == LAYER_ID_LEN &&
			str_to_u64(number, &bytes))
			add_size(sizes, id, bytes);
}

/* What can't be kept is measured again next time. */
static void keep_sizes(const struct env_store *store, const struct buf *lines)
{
	auto_leave const struct home *home = home_entered(store->home);
	auto_close int fd = openat(
		store->dir, SIZES, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)!write(fd, lines->data, lines->len);
}

int envs_measure_layers(const struct env_store *store, struct arena *arena, struct map *sizes,
	uint64_t *total, struct error *err)
{
	struct map known;
	text_list ids = { 0 };
	uint64_t sum = 0;
	auto_buf struct buf lines = buf_empty(SIZES_MAX);
	map_init(&known, arena);
	read_sizes(store, &known);
	if (layers_list(&store->layers, arena, &ids, err))
		return -1;
	for (size_t i = 0; i < ids.count; i++) {
		struct str id = str_from(ids.items[i]);
		uint64_t *found = map_get(&known, id), bytes = found ? *found : 0;
		if (!found) {
			if (layer_measure(&store->layers, ids.items[i], &bytes, err)) {
				if (err->code == ERR_NOT_FOUND)
					continue;
				return -1;
			}
			buf_printf(&lines, "%s %" PRIu64 "\n", ids.items[i], bytes);
		}
		add_size(sizes, id, bytes);
		sum += bytes;
	}
	if (lines.len)
		keep_sizes(store, &lines);
	*total = sum;
	return 0;
}

void envs_trim_sizes(const struct env_store *store)
{
	auto_leave const struct home *home = home_entered(store->home);
	struct stat st;
	if (!fstatat(store->dir, SIZES, &st, AT_SYMLINK_NOFOLLOW) && st.st_size > SIZES_TRIM)
		unlinkat(store->dir, SIZES, 0);
}

/* ---- metrics ---- */

static const unsigned bounds[] = { 1, 5, 10, 30, 60, 120, 300 };
#define BOUNDS (sizeof bounds / sizeof *bounds)
struct histogram {
	uint64_t counts[BOUNDS + 1]; /* each its own; the last: longer than all */
	uint64_t sum_ms;
};

/* One line of fixed width, so that one write replaces it whole. */
#define HISTOGRAM_LEN (21 * (BOUNDS + 2))
static void print_histogram(const struct histogram *histogram, char out[HISTOGRAM_LEN + 1])
{
	size_t at = 0;
	for (size_t i = 0; i <= BOUNDS; i++, at += 21)
		snprintf(out + at, 22, "%020" PRIu64 " ", histogram->counts[i]);
	snprintf(out + at, 22, "%020" PRIu64 "\n", histogram->sum_ms);
}

/* What isn't whole counts as nothing: a crash of the machine may cost the numbers, never a build.
 */
static void read_histogram(int fd, struct histogram *out)
{
	char text[HISTOGRAM_LEN + 1];
	struct histogram read;
	struct str rest, word;
	*out = (struct histogram){ 0 };
	if (pread(fd, text, HISTOGRAM_LEN, 0) != (ssize_t)HISTOGRAM_LEN ||
		text[HISTOGRAM_LEN - 1] != '\n')
		return;
	rest = (struct str){ text, HISTOGRAM_LEN - 1 };
	for (size_t i = 0; i <= BOUNDS; i++)
		if (!str_next(&rest, ' ', &word) || !str_to_u64(word, &read.counts[i]))
			return;
	if (!str_to_u64(rest, &read.sum_ms))
		return;
	*out = read;
}

static int open_metrics(const struct env_store *store, int flags, int lock)
{
	auto_close int fd = openat(store->dir, ENVS_METRICS, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	int failed = 0;
	if (fd >= 0)
		while ((failed = flock(fd, lock)) && errno == EINTR)
			;
	return failed ? -1 : take_fd(&fd);
}

int env_metrics_add(const struct env_store *store, double seconds, struct error *err)
{
	char text[HISTOGRAM_LEN + 1];
	struct histogram histogram;
	size_t bucket = 0;
	auto_leave const struct home *home = home_entered(store->home);
	auto_close int fd = open_metrics(store, O_RDWR | O_CREAT, LOCK_EX);
	if (fd < 0)
		return fail_errno(err, "open '%s/envs/" ENVS_METRICS "'", store->home->path);
	read_histogram(fd, &histogram);
	while (bucket < BOUNDS && seconds > bounds[bucket])
		bucket++;
	histogram.counts[bucket]++;
	histogram.sum_ms += seconds > 0 ? (uint64_t)(seconds * 1000 + 0.5) : 0;
	print_histogram(&histogram, text);
	if (fault_fails("envs.metrics") ||
		pwrite(fd, text, HISTOGRAM_LEN, 0) != (ssize_t)HISTOGRAM_LEN)
		return fail_errno(err, "write '%s/envs/" ENVS_METRICS "'", store->home->path);
	return 0;
}

static void print_metric(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_durations(const struct histogram *histogram, struct buf *out)
{
	static const char name[] = "par_venv_build_duration_seconds";
	uint64_t sum = 0;
	print_metric(out, name, "histogram", "Time to build venv");
	for (size_t i = 0; i < BOUNDS; i++) {
		sum += histogram->counts[i];
		buf_printf(out, "%s_bucket{le=\"%u\"} %" PRIu64 "\n", name, bounds[i], sum);
	}
	sum += histogram->counts[BOUNDS];
	buf_printf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, sum);
	buf_printf(out, "%s_sum %" PRIu64 ".%03u\n", name, histogram->sum_ms / 1000,
		(unsigned)(histogram->sum_ms % 1000));
	buf_printf(out, "%s_count %" PRIu64 "\n", name, sum);
}

/* Environments' own files, besides their layers. */
static int measure_directories(const struct env_store *store, const text_list *names,
	uint64_t *count, uint64_t *bytes, struct error *err)
{
	for (size_t i = 0; i < names->count; i++) {
		uint64_t size, inodes;
		if (names->items[i][0] == '.')
			continue;
		auto_close int dir = fd_open_directory(store->dir, names->items[i]);
		if (dir < 0 && errno == ENOENT)
			continue;
		if (dir < 0)
			return fail_errno(err, "open environment '%s'", names->items[i]);
		if (path_measure_tree(dir, &size, &inodes, err))
			return error_context(err, "environment '%s'", names->items[i]);
		++*count;
		*bytes += size;
	}
	return 0;
}

int env_metrics_print(const struct env_store *store, struct buf *out, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct map sizes;
	struct histogram histogram = { 0 };
	text_list names = { 0 };
	uint64_t bytes, count = 0;
	map_init(&sizes, &arena);
	auto_leave const struct home *home = home_entered(store->home);
	if (envs_measure_layers(store, &arena, &sizes, &bytes, err) ||
		envs_names_in(store, ".", &arena, &names, err) ||
		measure_directories(store, &names, &count, &bytes, err))
		return -1;
	auto_close int fd = open_metrics(store, O_RDONLY, LOCK_SH);
	if (fd < 0 && errno != ENOENT)
		return fail_errno(err, "open '%s/envs/" ENVS_METRICS "'", store->home->path);
	if (fd >= 0)
		read_histogram(fd, &histogram);
	print_metric(
		out, "par_venv_cache_size_bytes", "gauge", "Total size of venv cache in bytes");
	buf_printf(out, "par_venv_cache_size_bytes %" PRIu64 "\n", bytes);
	print_metric(out, "par_venv_count", "gauge", "Number of cached venvs");
	buf_printf(out, "par_venv_count %" PRIu64 "\n", count);
	print_durations(&histogram, out);
	return 0;
}

int env_find_failed(const struct env_store *store, const char *package_id, struct arena *arena,
	const char **name, int64_t *failed_ms)
{
	auto_leave const struct home *home = home_entered(store->home);
	const char *prefix = arena_printf(arena, "%s_", package_id);
	text_list logs = { 0 };
	struct error ignored;
	int failed = -1;
	envs_names_in(store, ENVS_FAILED, arena, &logs, &ignored);
	for (size_t i = 0; i < logs.count; i++) {
		struct stat st;
		const char *path = arena_printf(arena, ENVS_FAILED "/%s", logs.items[i]);
		size_t len = strlen(logs.items[i]);
		if (!str_starts_with(str_from(logs.items[i]), prefix) || len < 5 ||
			strcmp(logs.items[i] + len - 4, ".log") ||
			fstatat(store->dir, path, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		int64_t at_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
		if (!failed && at_ms < *failed_ms)
			continue;
		*failed_ms = at_ms;
		*name = arena_bytes(arena, logs.items[i], len - 4);
		failed = 0;
	}
	return failed;
}
