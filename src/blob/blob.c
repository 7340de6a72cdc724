#include "blob/internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"

int blob_not_found(const char *key, struct error *err)
{
	return fail(err, ERR_NOT_FOUND, "the blob store has no object '%s'", key);
}

int blob_exists(const char *key, struct error *err)
{
	return fail(err, ERR_CONFLICT, "the blob store already has an object '%s'", key);
}

int blob_check(const char *key, const struct blob_info *moved, uint64_t size, const char *sha256,
	struct error *err)
{
	if (size != BLOB_SIZE_UNKNOWN && moved->size != size)
		return fail(err, ERR_CORRUPT, "object '%s' has %llu bytes instead of %llu", key,
			(unsigned long long)moved->size, (unsigned long long)size);
	if (sha256 && strcmp(moved->sha256, sha256) != 0)
		return fail(err, ERR_CORRUPT, "object '%s' has SHA-256 %s instead of %s", key,
			moved->sha256, sha256);
	return 0;
}

int blob_may_end(const char *key, const struct blob_put *put, const struct blob_info *moved,
	struct error *err)
{
	if (put->end && put->end(put->ctx, err))
		return -1;
	return blob_check(key, moved, put->size, put->sha256, err);
}

static int compare_rows(const void *a, const void *b)
{
	const struct blob_row *left = a, *right = b;
	return strcmp(left->key, right->key);
}

void blob_rows_sort(blob_rows *rows)
{
	if (rows->count)
		qsort(rows->items, rows->count, sizeof *rows->items, compare_rows);
}

int blob_open(const struct blob_settings *settings, int home, const struct blob_backend *s3,
	struct blob_store *store, struct error *err)
{
	const struct blob_backend *backend =
		settings->url.scheme == BLOB_S3 ? s3 : &blob_dir_backend;
	void *state = NULL;
	if (!backend)
		return fail(err, ERR_UNAVAILABLE, "this program can't reach an S3 bucket");
	if (backend->open(settings, home, &state, err))
		return error_context(err, "open the blob store");
	*store = (struct blob_store){ backend, state };
	return 0;
}

void blob_close(struct blob_store *store)
{
	if (store->backend)
		store->backend->close(store->state);
	*store = (struct blob_store){ 0 };
}

static int check_key(const char *key, struct error *err)
{
	return blob_key_is_valid(key) ? 0 : fail(err, ERR_INVALID, "invalid object key '%s'", key);
}

int blob_put(const struct blob_store *store, const char *key, const struct blob_put *put,
	struct blob_info *info, struct error *err)
{
	struct blob_info made = { 0 };
	if (check_key(key, err))
		return -1;
	if (store->backend->put(store->state, key, put, &made, err))
		return error_context(err, "store object '%s'", key);
	if (info)
		*info = made;
	return 0;
}

int blob_get(const struct blob_store *store, const char *key, const struct blob_get *get,
	struct blob_info *info, struct error *err)
{
	struct blob_info got = { 0 };
	if (check_key(key, err))
		return -1;
	if (store->backend->get(store->state, key, get, &got, err))
		return err->code == ERR_NOT_FOUND ? -1
						  : error_context(err, "read object '%s'", key);
	if (blob_check(key, &got, BLOB_SIZE_UNKNOWN, get->sha256, err))
		return -1;
	if (info)
		*info = got;
	return 0;
}

int blob_head(
	const struct blob_store *store, const char *key, struct blob_info *info, struct error *err)
{
	struct blob_info found = { 0 };
	if (check_key(key, err) || store->backend->head(store->state, key, &found, err))
		return -1;
	*info = found;
	return 0;
}

int blob_list(const struct blob_store *store, const char *prefix, struct arena *arena,
	blob_rows *rows, struct error *err)
{
	blob_rows found = { 0 };
	if (!blob_prefix_is_valid(prefix))
		return fail(err, ERR_INVALID, "invalid prefix of object keys '%s'", prefix);
	if (store->backend->list(store->state, prefix, arena, &found, err))
		return error_context(err, "list objects '%s*'", prefix);
	blob_rows_sort(&found);
	*rows = found;
	return 0;
}

int blob_delete(const struct blob_store *store, const char *key, struct error *err)
{
	if (check_key(key, err))
		return -1;
	if (store->backend->remove(store->state, key, err))
		return error_context(err, "delete object '%s'", key);
	return 0;
}

/* ---- small objects ---- */

int blob_put_text(const struct blob_store *store, const char *key, struct str text, bool only_new,
	struct error *err)
{
	auto_close int memory = memfd_create("blob", MFD_CLOEXEC);
	if (memory < 0 || fd_write_full(memory, text.data, text.len) != (ssize_t)text.len ||
		lseek(memory, 0, SEEK_SET) < 0)
		return fail_errno(err, "keep object '%s' in memory", key);
	struct blob_put put = { .from = memory, .size = text.len, .only_new = only_new };
	return blob_put(store, key, &put, NULL, err);
}

int blob_get_text(const struct blob_store *store, const char *key, size_t max, struct arena *arena,
	struct str *text, struct error *err)
{
	auto_close int memory = memfd_create("blob", MFD_CLOEXEC);
	if (memory < 0)
		return fail_errno(err, "keep object '%s' in memory", key);
	struct blob_get get = { .to = memory, .len = (uint64_t)max + 1 };
	struct blob_info info;
	if (blob_get(store, key, &get, &info, err))
		return -1;
	if (info.size > max)
		return fail(err, ERR_LIMIT, "object '%s' has more than %zu bytes", key, max);
	if (lseek(memory, 0, SEEK_SET) < 0 || file_read(memory, max, arena, text))
		return fail_errno(err, "read object '%s' from memory", key);
	return 0;
}
