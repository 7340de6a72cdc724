/* json.h -- JSON out. A writer over a buf: commas, indentation and escaping are its business.
 * Strings must be UTF-8: bytes that aren't are written as U+FFFD, so that what comes out is always
 * valid JSON. `key` is NULL inside an array or at the top. Misuse (a key in an array, a second
 * value at the top) aborts: it is a bug. */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"

#define JSON_DEPTH_MAX 32
struct json {
	struct buf *out;
	int depth;
	bool pretty; /* two spaces a level */
	bool has_items[JSON_DEPTH_MAX];
	bool is_array[JSON_DEPTH_MAX];
};
struct json json_to(struct buf *out, bool pretty); /* to initialize a writer */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j); /* closes the innermost object or array */
void json_text(struct json *j, const char *key, const char *value); /* NULL value: null */
void json_str(struct json *j, const char *key, struct str value);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
/* With at most three decimals: 45.2, 0.001, 3.0; null for NaN and infinity. */
void json_real(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
void json_raw(struct json *j, const char *key, const char *text);	  /* JSON, as it is */
void json_texts(struct json *j, const char *key, const text_list *texts); /* an array of them */
/* Aborts unless exactly one whole value was written. */
void json_finish(const struct json *j);
/* What has come of a text in pieces: whether it is UTF-8, and how long JSON makes it. */
struct json_measure {
	uint64_t bytes, escaped; /* of all whole characters */
	bool is_binary;		 /* not UTF-8 */
	unsigned tail_len;	 /* bytes of an incomplete character at the end */
	char tail[4];
};
void json_measure_add(struct json_measure *m, struct str piece);
/* data in base64 (RFC 4648, padded). */
void json_base64(struct json *j, const char *key, const void *data, size_t len);
