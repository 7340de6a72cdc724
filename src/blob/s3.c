/* s3.c -- the blob store in an S3 bucket, by libcurl. Only in carrel-blob. */
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "blob/s3_internal.h"
#include "format/http/s3_xml.h"
#include "format/http/uri.h"

#define STALL_DEFAULT_MS 60000
#define RESUMES_MAX 100 /* of one download, each after some progress */
#define PAGES_MAX 1000	/* of one list: a server may say for ever that there is another */

/* ---- open ---- */

static int split_endpoint(
	struct s3_store *store, const struct blob_settings *settings, struct error *err)
{
	struct arena *arena = &store->arena;
	const char *endpoint = settings->endpoint;
	struct uri parts;
	struct str name;
	uint16_t port;
	if (!endpoint)
		endpoint = arena_printf(arena, "https://s3.%s.amazonaws.com", store->region);
	/* Not repeated in the message: it may hold a password. */
	if (!uri_split(endpoint, &parts) || parts.user.len ||
		!uri_parse_host(parts.host, &name, &port) ||
		!(str_is(parts.scheme, "https://") || str_is(parts.scheme, "http://")))
		return fail(err, ERR_INVALID, "blob.endpoint is not http(s)://HOST[:PORT]");
	const char *rest = parts.host.data + parts.host.len;
	if (rest[0] && strcmp(rest, "/") != 0)
		return fail(err, ERR_INVALID, "blob.endpoint has a path");
	const char *host = arena_bytes(arena, parts.host.data, parts.host.len);
	const char *bucket = settings->url.bucket;
	store->scheme = arena_bytes(arena, parts.scheme.data, parts.scheme.len);
	store->host = settings->path_style ? host : arena_printf(arena, "%s.%s", bucket, host);
	store->root = settings->path_style ? arena_printf(arena, "/%s/", bucket) : "/";
	store->prefix =
		settings->url.prefix[0] ? arena_printf(arena, "%s/", settings->url.prefix) : "";
	return 0;
}

static int s3_prepare(
	struct s3_store *store, const struct blob_settings *settings, struct error *err)
{
	store->region = arena_text(&store->arena,
		settings->region && settings->region[0] ? settings->region : "us-east-1");
	store->stall_ms = settings->stall_ms ? settings->stall_ms : STALL_DEFAULT_MS;
	store->credentials = settings->credentials;
	if (!store->credentials.key_id || !store->credentials.secret)
		return fail_hint(err, ERR_DENIED,
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for carrel serve, or "
			"blob.credentials in config.yaml",
			"the S3 bucket '%s' needs credentials", settings->url.bucket);
	if (split_endpoint(store, settings, err))
		return -1;
	store->curl = curl_easy_init();
	return store->curl ? 0 : fail(err, ERR_FAILED, "libcurl can't be used");
}

static void s3_close(void *state)
{
	struct s3_store *store = state;
	curl_easy_cleanup(store->curl);
	arena_done(&store->arena);
	free(store);
}

static int s3_open(const struct blob_settings *settings, int home, void **state, struct error *err)
{
	struct s3_store *store = xzalloc(sizeof *store);
	if (s3_prepare(store, settings, err)) {
		s3_close(store);
		return -1;
	}
	*state = store;
	return 0;
}

/* ---- get ---- */

struct download {
	const struct blob_get *get;
	struct blob_info *info;
	struct sha256 hash;
	uint64_t left;	 /* UINT64_MAX: unknown */
	uint64_t before; /* bytes when the latest attempt began */
	unsigned resumes;
	char etag[128]; /* of the object whose first part is here */
	struct s3_store *store;
	struct s3_answer *answer;
};

static int s3_take(void *ctx, struct str data, struct error *err)
{
	struct download *download = ctx;
	curl_off_t length = -1;
	curl_easy_getinfo(download->store->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	/* It need not end, and one that is cut off would look whole. */
	if (length < 0)
		return fail(err, ERR_CORRUPT, "the server does not say how long the object is");
	if (data.len > download->left)
		return fail(err, ERR_CORRUPT, "the server sends more bytes than it was asked for");
	if (fd_write_full(download->get->to, data.data, data.len) != (ssize_t)data.len)
		return fail_errno(err, "write");
	sha256_add(&download->hash, data.data, data.len);
	download->info->size += data.len;
	download->left -= data.len;
	return 0;
}

static void set_range(struct download *download, struct s3_call *call)
{
	uint64_t start = download->get->offset + download->info->size;
	call->headers = (pair_list){ 0 };
	if (start || download->get->len != UINT64_MAX) {
		char last[24] = "";
		if (download->get->len != UINT64_MAX)
			str_format(last, sizeof last, "%llu",
				(unsigned long long)(start + download->left - 1));
		struct text_pair range = { "range", arena_printf(call->arena, "bytes=%llu-%s",
							    (unsigned long long)start, last) };
		vec_push(call->arena, &call->headers, range);
	}
	if (download->etag[0]) {
		struct text_pair match = { "if-match", download->etag };
		vec_push(call->arena, &call->headers, match);
	}
	download->before = download->info->size;
}

/* Goes on where the answer broke off, with the same object. */
static bool s3_go_on(void *ctx, struct s3_call *call)
{
	struct download *download = ctx;
	if (download->info->size > download->before) {
		if (++download->resumes > RESUMES_MAX || !download->answer->etag[0])
			return false;
		str_copy(download->etag, sizeof download->etag, download->answer->etag);
		download->answer->attempts = 0;
	}
	set_range(download, call);
	return download->left > 0;
}

/* The answer is the range that was asked for. */
static int check_range(const struct download *download, const struct s3_answer *answer,
	bool has_range, struct error *err)
{
	unsigned long long first;
	uint64_t start = download->get->offset + download->before;
	if (has_range && answer->status == 200 && start)
		return fail(err, ERR_CORRUPT, "the server ignores the range that it was asked for");
	if (answer->status == 206 &&
		(sscanf(answer->range, "bytes %llu-", &first) != 1 || first != start))
		return fail(err, ERR_CORRUPT, "the server answers with another range");
	if (answer->length >= 0 &&
		download->info->size - download->before != (uint64_t)answer->length)
		return fail(err, ERR_CORRUPT, "the answer ends too early");
	return 0;
}

static int s3_get(void *state, const char *key, const struct blob_get *get, struct blob_info *info,
	struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_answer struct s3_answer answer = { 0 };
	struct download download = {
		.get = get, .info = info, .left = get->len, .store = state, .answer = &answer
	};
	struct s3_call call = { .method = "GET",
		.key = key,
		.take = s3_take,
		.again = s3_go_on,
		.ctx = &download,
		.arena = &arena };
	sha256_init(&download.hash);
	if (get->len) {
		set_range(&download, &call);
		if (s3_call(state, &call, &answer, err))
			return -1;
		if (answer.status == 404)
			return blob_not_found(key, err);
		if (answer.status == 412)
			return fail(err, ERR_CONFLICT, "the object changed while it was read");
		bool is_beyond = answer.status == 416 && get->offset && !info->size;
		if (answer.status != 200 && answer.status != 206 && !is_beyond)
			return s3_fail(state, &call, &answer, err);
		if (!is_beyond && check_range(&download, &answer, call.headers.count > 0, err))
			return -1;
	}
	sha256_end_hex(&download.hash, info->sha256);
	info->modified_s = answer.modified_s;
	return 0;
}

/* ---- head, list, delete ---- */

int s3_head(void *state, const char *key, struct blob_info *info, struct error *err)
{
	auto_answer struct s3_answer answer = { 0 };
	struct s3_call call = { .method = "HEAD", .key = key };
	if (s3_call(state, &call, &answer, err))
		return -1;
	if (answer.status == 404)
		return blob_not_found(key, err);
	if (answer.status != 200 || answer.length < 0)
		return s3_fail(state, &call, &answer, err);
	*info = (struct blob_info){ .size = (uint64_t)answer.length,
		.modified_s = answer.modified_s };
	return 0;
}

struct page {
	const struct s3_store *store;
	struct arena *arena;
	blob_rows *rows;
	struct blob_row row;
	const char *next; /* token, or NULL */
	bool is_truncated, is_listing;
};

static int64_t read_time(const char *text)
{
	struct tm tm = { 0 };
	return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? timegm(&tm) : 0;
}

/* Skips objects whose names are not valid keys: another program made them. */
static int add_row(struct page *page, struct error *err)
{
	struct blob_row row = page->row;
	page->row = (struct blob_row){ 0 };
	size_t len = strlen(page->store->prefix);
	if (!row.key || strncmp(row.key, page->store->prefix, len) != 0)
		return 0;
	row.key += len;
	if (!blob_key_is_valid(row.key))
		return 0;
	if (page->rows->count == BLOB_ROWS_MAX)
		return fail(err, ERR_LIMIT, "more than %d objects", BLOB_ROWS_MAX);
	vec_push(page->arena, page->rows, row);
	return 0;
}

static int on_element(void *ctx, const char *path, struct str text, struct error *err)
{
	static const char root[] = "ListBucketResult";
	struct page *page = ctx;
	if (strncmp(path, root, sizeof root - 1) != 0)
		return 0;
	const char *name = path + sizeof root - 1;
	if (!strcmp(name, "/Contents/Key"))
		page->row.key = arena_bytes(page->arena, text.data, text.len);
	else if (!strcmp(name, "/Contents/Size"))
		str_to_u64(text, &page->row.size);
	else if (!strcmp(name, "/Contents/LastModified"))
		page->row.modified_s = read_time(arena_bytes(page->arena, text.data, text.len));
	else if (!strcmp(name, "/NextContinuationToken"))
		page->next = arena_bytes(page->arena, text.data, text.len);
	else if (!strcmp(name, "/IsTruncated"))
		page->is_truncated = str_is(text, "true");
	else if (!strcmp(name, "/Contents"))
		return add_row(page, err);
	else if (!name[0])
		page->is_listing = true;
	return 0;
}

static int read_page(struct page *page, const char *prefix, struct error *err)
{
	auto_answer struct s3_answer answer = { 0 };
	struct s3_store *store = (struct s3_store *)page->store;
	struct s3_call call = { .method = "GET" };
	const struct text_pair query[] = { { "list-type", "2" },
		{ "prefix", arena_printf(page->arena, "%s%s", store->prefix, prefix) },
		{ "continuation-token", page->next } };
	for (size_t i = 0; i < sizeof query / sizeof *query; i++)
		if (query[i].value)
			vec_push(page->arena, &call.query, query[i]);
	if (s3_call(store, &call, &answer, err))
		return -1;
	if (answer.status != 200)
		return s3_fail(store, &call, &answer, err);
	page->next = NULL;
	page->is_truncated = page->is_listing = false;
	if (s3_xml_walk((struct str){ answer.body.data, answer.body.len }, on_element, page, err))
		return -1;
	if (!page->is_listing || (page->is_truncated && !page->next))
		return fail(err, ERR_CORRUPT, "the server's answer is not a list of objects");
	return 0;
}

static int s3_list(
	void *state, const char *prefix, struct arena *arena, blob_rows *rows, struct error *err)
{
	struct page page = { .store = state, .arena = arena, .rows = rows };
	for (size_t i = 0; i < PAGES_MAX; i++) {
		if (read_page(&page, prefix, err))
			return -1;
		if (!page.is_truncated)
			return 0;
	}
	return fail(err, ERR_LIMIT, "the server's list has more than %d pages", PAGES_MAX);
}

static int s3_remove(void *state, const char *key, struct error *err)
{
	auto_answer struct s3_answer answer = { 0 };
	struct s3_call call = { .method = "DELETE", .key = key };
	if (s3_call(state, &call, &answer, err))
		return -1;
	if (answer.status == 404 || answer.status == 200 || answer.status == 204)
		return 0;
	return s3_fail(state, &call, &answer, err);
}

const struct blob_backend blob_s3_backend = { s3_open, s3_close, s3_put, s3_get, s3_head, s3_list,
	s3_remove };
