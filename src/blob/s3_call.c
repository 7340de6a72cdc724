#include "blob/s3_internal.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/str.h"
#include "format/http/s3_xml.h"
#include "format/http/sigv4.h"
#include "format/http/uri.h"

#define CONNECT_MS 10000l
#define LOW_SPEED 256l /* bytes a second: slower is a stall */
#define PAUSE_FIRST_MS 100
#define PAUSE_MAX_MS 5000
#define ID_HEADER "x-amz-meta-carrel-id"

/* One attempt. */
struct attempt {
	struct s3_call *call;
	struct s3_answer *answer;
	struct error *err;
	CURL *curl;
	bool has_failed; /* *err says why: what takes the body has failed */
};

void s3_answer_done(struct s3_answer *answer)
{
	buf_done(&answer->body);
}

static void clear(struct s3_answer *answer)
{
	unsigned attempts = answer->attempts;
	buf_done(&answer->body);
	*answer = (struct s3_answer){ .attempts = attempts, .length = -1 };
	buf_init(&answer->body, S3_BODY_MAX);
}

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
	struct attempt *attempt = ctx;
	long status = 0;
	size_t len = size * count;
	curl_easy_getinfo(attempt->curl, CURLINFO_RESPONSE_CODE, &status);
	if (attempt->call->take && (status == 200 || status == 206)) {
		if (!attempt->call->take(
			    attempt->call->ctx, (struct str){ data, len }, attempt->err))
			return len;
		attempt->has_failed = true;
		return 0;
	}
	if (buf_append(&attempt->answer->body, data, len))
		return len;
	attempt->has_failed = true;
	fail(attempt->err, ERR_LIMIT, "the server's answer has more than %zu bytes", S3_BODY_MAX);
	return 0;
}

/* ---- headers ---- */

static void sign(const struct s3_store *store, const struct s3_call *call, const char *path,
	const char *query, struct arena *arena, struct curl_slist **lines)
{
	char time[SIGV4_TIME_SIZE], sha256[2 * SHA256_LEN + 1];
	pair_list headers = { 0 };
	sigv4_time(clock_now_ms() / 1000, time);
	sha256_of(call->body.data, call->body.len, sha256);
	const struct text_pair own[] = { { "host", store->host },
		{ "x-amz-content-sha256", sha256 }, { "x-amz-date", time },
		{ "x-amz-security-token", store->credentials.token } };
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (own[i].value)
			vec_push(arena, &headers, own[i]);
	for (size_t i = 0; i < call->headers.count; i++)
		vec_push(arena, &headers, call->headers.items[i]);
	struct sigv4_request request = { .method = call->method,
		.path = path,
		.query = query,
		.headers = headers,
		.payload_sha256 = sha256,
		.time = time,
		.region = store->region,
		.service = "s3",
		.key_id = store->credentials.key_id,
		.secret = store->credentials.secret };
	for (size_t i = 0; i < headers.count; i++)
		*lines = curl_slist_append(
			*lines, arena_printf(arena, "%s: %s", headers.items[i].key,
					headers.items[i].value));
	*lines = curl_slist_append(*lines,
		arena_printf(arena, "authorization: %s", sigv4_authorization(&request, arena)));
	*lines = curl_slist_append(*lines, "Expect:");
	*lines = curl_slist_append(*lines, "Content-Type: application/octet-stream");
}

static void read_header(CURL *curl, const char *name, char *out, size_t size)
{
	struct curl_header *header;
	if (!curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &header))
		str_copy(out, size, header->value);
}

static void read_headers(CURL *curl, struct s3_answer *answer)
{
	curl_off_t length = -1;
	char modified[64] = "";
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status);
	curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	answer->length = length;
	read_header(curl, "etag", answer->etag, sizeof answer->etag);
	read_header(curl, ID_HEADER, answer->id, sizeof answer->id);
	read_header(curl, "x-amz-bucket-region", answer->region, sizeof answer->region);
	read_header(curl, "content-range", answer->range, sizeof answer->range);
	read_header(curl, "last-modified", modified, sizeof modified);
	time_t when = curl_getdate(modified, NULL);
	answer->modified_s = when < 0 ? 0 : when;
}

/* ---- one attempt ---- */

static void set_options(
	struct s3_store *store, struct attempt *attempt, const char *url, struct curl_slist *lines)
{
	CURL *curl = store->curl;
	const struct s3_call *call = attempt->call;
	bool is_head = !strcmp(call->method, "HEAD");
	curl_easy_reset(curl); /* keeps the connection */
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1l);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1l);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, LOW_SPEED);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)((store->stall_ms + 999) / 1000));
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, attempt);
	if (is_head)
		curl_easy_setopt(curl, CURLOPT_NOBODY, 1l);
	else if (call->body.len || !strcmp(call->method, "PUT") || !strcmp(call->method, "POST")) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body.len ? call->body.data : "");
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
	}
	if (!is_head)
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
}

static CURLcode attempt_once(struct s3_store *store, struct attempt *attempt)
{
	auto_arena struct arena arena = { 0 };
	struct curl_slist *lines = NULL;
	struct s3_call *call = attempt->call;
	const char *query = sigv4_query(&call->query, &arena);
	const char *key = call->key ? arena_printf(&arena, "%s%s", store->prefix, call->key) : "";
	const char *path =
		arena_printf(&arena, "%s%s", store->root, uri_encode(&arena, str_from(key), true));
	const char *url = arena_printf(
		&arena, "%s%s%s%s%s", store->scheme, store->host, path, query[0] ? "?" : "", query);
	sign(store, call, path, query, &arena, &lines);
	set_options(store, attempt, url, lines);
	CURLcode code = curl_easy_perform(store->curl);
	read_headers(store->curl, attempt->answer);
	curl_slist_free_all(lines);
	return code;
}

/* ---- repetitions ---- */

static bool is_passing(CURLcode code)
{
	static const CURLcode codes[] = { CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
		CURLE_COULDNT_CONNECT, CURLE_PARTIAL_FILE, CURLE_OPERATION_TIMEDOUT,
		CURLE_SSL_CONNECT_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
		CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_WEIRD_SERVER_REPLY };
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i] == code)
			return true;
	return false;
}

/* The code in the body decides where the status doesn't. */
static bool is_worth_repeating(const struct s3_answer *answer)
{
	static const char *const codes[] = { "RequestTimeout", "SlowDown", "InternalError",
		"BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody",
		"ConditionalRequestConflict", "OperationAborted" };
	auto_arena struct arena arena = { 0 };
	long status = answer->status;
	if (status == 408 || status == 429 || (status >= 500 && status != 501))
		return true;
	if ((status != 400 && status != 409) || !answer->body.len)
		return false;
	const char *code = s3_xml_find(
		(struct str){ answer->body.data, answer->body.len }, "Error/Code", &arena);
	for (size_t i = 0; code && i < sizeof codes / sizeof *codes; i++)
		if (!strcmp(code, codes[i]))
			return true;
	return false;
}

/* Half of the pause is drawn by lot, so that clients don't return together. */
static void pause_before(unsigned attempt)
{
	uint64_t pause_ms = (uint64_t)PAUSE_FIRST_MS << (attempt < 8 ? attempt : 8);
	uint32_t lot = 0;
	if (pause_ms > PAUSE_MAX_MS)
		pause_ms = PAUSE_MAX_MS;
	(void)!getrandom(&lot, sizeof lot, GRND_NONBLOCK);
	pause_ms = pause_ms / 2 + lot % (pause_ms / 2 + 1);
	struct timespec left = { (time_t)(pause_ms / 1000), (long)(pause_ms % 1000) * 1000000 };
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static int fail_transport(
	const struct s3_store *store, CURLcode code, unsigned attempts, struct error *err)
{
	fail(err, ERR_UNAVAILABLE, "the S3 server '%s' could not be reached or broke off: %s%s",
		store->host, curl_easy_strerror(code), attempts > 1 ? " (repeatedly)" : "");
	return error_hint(err, "check blob.endpoint in config.yaml, and the network");
}

int s3_call(
	struct s3_store *store, struct s3_call *call, struct s3_answer *answer, struct error *err)
{
	for (answer->attempts = 0;;) {
		struct attempt attempt = { call, answer, err, store->curl };
		clear(answer);
		CURLcode code = attempt_once(store, &attempt);
		answer->attempts++;
		if (attempt.has_failed)
			return -1;
		bool is_failed = code ? is_passing(code) : is_worth_repeating(answer);
		if (code && !is_failed)
			return fail_transport(store, code, answer->attempts, err);
		if (!is_failed)
			return 0;
		if (answer->attempts >= S3_ATTEMPTS ||
			(call->again && !call->again(call->ctx, call)))
			return code ? fail_transport(store, code, answer->attempts, err) : 0;
		pause_before(answer->attempts ? answer->attempts - 1 : 0);
	}
}

int s3_fail(const struct s3_store *store, const struct s3_call *call,
	const struct s3_answer *answer, struct error *err)
{
	static const struct {
		long status;
		enum error_code code;
		const char *what, *hint;
	} rows[] = {
		{ 301, ERR_INVALID, "the bucket is in another region",
			"set blob.region in config.yaml" },
		{ 307, ERR_INVALID, "the bucket is in another region",
			"set blob.region in config.yaml" },
		{ 401, ERR_DENIED, "the server refuses the credentials",
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for carrel serve" },
		{ 403, ERR_DENIED, "the server refuses access",
			"check the credentials of carrel serve and the policy of the bucket" },
		{ 404, ERR_NOT_FOUND, "there is no such bucket or object", "" },
		{ 412, ERR_CONFLICT, "there already is such an object", "" },
		{ 507, ERR_DISK_FULL, "the server has no space left", "" },
	};
	auto_arena struct arena arena = { 0 };
	struct str body = { answer->body.data, answer->body.len };
	const char *code = body.len ? s3_xml_find(body, "Error/Code", &arena) : NULL;
	char shown[200] = "";
	if (code)
		str_printable(shown, sizeof shown, str_from(code));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].status == answer->status) {
			fail(err, rows[i].code, "%s (bucket of '%s', status %ld%s%s)", rows[i].what,
				store->host, answer->status, shown[0] ? ", " : "", shown);
			return rows[i].hint[0] ? error_hint(err, "%s", rows[i].hint) : -1;
		}
	return fail(err, answer->status >= 500 ? ERR_UNAVAILABLE : ERR_FAILED,
		"the S3 server '%s' answered %s with status %ld%s%s", store->host, call->method,
		answer->status, shown[0] ? ": " : "", shown);
}
