#include "format/http/sigv4.h"

#include <time.h>
#include "base/buf.h"
#include "format/http/uri.h"

#define HMAC_BLOCK 64
#define TEXT_MAX ((size_t)64 << 10)
#define DATE_LEN 8

void hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
	unsigned char out[SHA256_LEN])
{
	unsigned char inner[HMAC_BLOCK] = { 0 }, outer[HMAC_BLOCK];
	struct sha256 hash;
	sha256_init(&hash);
	if (key_len > HMAC_BLOCK) {
		sha256_add(&hash, key, key_len);
		sha256_end(&hash, inner);
	} else {
		memcpy(inner, key, key_len);
	}
	for (size_t i = 0; i < HMAC_BLOCK; i++) {
		outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	sha256_init(&hash);
	sha256_add(&hash, inner, sizeof inner);
	sha256_add(&hash, data, len);
	sha256_end(&hash, out);
	sha256_init(&hash);
	sha256_add(&hash, outer, sizeof outer);
	sha256_add(&hash, out, SHA256_LEN);
	sha256_end(&hash, out);
	explicit_bzero(inner, sizeof inner);
	explicit_bzero(outer, sizeof outer);
}

void sigv4_time(int64_t unix_s, char out[SIGV4_TIME_SIZE])
{
	time_t when = (time_t)unix_s;
	struct tm tm;
	out[0] = 0;
	if (gmtime_r(&when, &tm))
		strftime(out, SIGV4_TIME_SIZE, "%Y%m%dT%H%M%SZ", &tm);
}

static int compare_pairs(const void *a, const void *b)
{
	const struct text_pair *left = a, *right = b;
	int order = strcmp(left->key, right->key);
	return order ? order : strcmp(left->value, right->value);
}

static pair_list sorted(const pair_list *pairs, struct arena *arena)
{
	pair_list copy = { 0 };
	for (size_t i = 0; i < pairs->count; i++)
		vec_push(arena, &copy, pairs->items[i]);
	if (copy.count)
		qsort(copy.items, copy.count, sizeof *copy.items, compare_pairs);
	return copy;
}

const char *sigv4_query(const pair_list *parameters, struct arena *arena)
{
	auto_buf struct buf out = buf_empty(TEXT_MAX);
	pair_list encoded = { 0 };
	for (size_t i = 0; i < parameters->count; i++) {
		struct text_pair pair = { uri_encode(
						  arena, str_from(parameters->items[i].key), false),
			uri_encode(arena, str_from(parameters->items[i].value), false) };
		vec_push(arena, &encoded, pair);
	}
	encoded = sorted(&encoded, arena); /* by the encoded names */
	for (size_t i = 0; i < encoded.count; i++)
		buf_printf(&out, "%s%s=%s", i ? "&" : "", encoded.items[i].key,
			encoded.items[i].value);
	return arena_bytes(arena, out.data, out.len);
}

/* Appends "a;b;c". */
static void name_headers(const pair_list *headers, struct buf *out)
{
	for (size_t i = 0; i < headers->count; i++)
		buf_printf(out, "%s%s", i ? ";" : "", headers->items[i].key);
}

static void hash_request(
	const struct sigv4_request *request, const pair_list *headers, char sha256[65])
{
	auto_buf struct buf text = buf_empty(TEXT_MAX);
	buf_printf(&text, "%s\n%s\n%s\n", request->method, request->path, request->query);
	for (size_t i = 0; i < headers->count; i++)
		buf_printf(&text, "%s:%s\n", headers->items[i].key, headers->items[i].value);
	buf_char(&text, '\n');
	name_headers(headers, &text);
	buf_printf(&text, "\n%s", request->payload_sha256);
	sha256_of(text.data, text.len, sha256);
}

static void derive_key(const struct sigv4_request *request, unsigned char key[SHA256_LEN])
{
	auto_buf struct buf first = buf_empty(TEXT_MAX);
	buf_printf(&first, "AWS4%s", request->secret);
	hmac_sha256(first.data, first.len, request->time, DATE_LEN, key);
	explicit_bzero(first.data, first.len);
	const char *const steps[] = { request->region, request->service, "aws4_request" };
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		hmac_sha256(key, SHA256_LEN, steps[i], strlen(steps[i]), key);
}

const char *sigv4_authorization(const struct sigv4_request *request, struct arena *arena)
{
	pair_list headers = sorted(&request->headers, arena);
	unsigned char key[SHA256_LEN], signature[SHA256_LEN];
	char request_sha256[65], hex[65];
	auto_buf struct buf out = buf_empty(TEXT_MAX);
	hash_request(request, &headers, request_sha256);
	const char *scope = arena_printf(arena, "%.*s/%s/%s/aws4_request", DATE_LEN, request->time,
		request->region, request->service);
	const char *text = arena_printf(
		arena, "AWS4-HMAC-SHA256\n%s\n%s\n%s", request->time, scope, request_sha256);
	derive_key(request, key);
	hmac_sha256(key, sizeof key, text, strlen(text), signature);
	explicit_bzero(key, sizeof key);
	sha256_hex(signature, hex);
	buf_printf(
		&out, "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=", request->key_id, scope);
	name_headers(&headers, &out);
	buf_printf(&out, ",Signature=%s", hex);
	return arena_bytes(arena, out.data, out.len);
}
