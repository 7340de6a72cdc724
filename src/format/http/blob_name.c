#include "format/http/blob_name.h"

#include "base/path.h"

#define COMPONENT_MAX 200
#define BUCKET_MIN 3
#define BUCKET_MAX 63

static bool is_letter_or_digit(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_allowed(char c)
{
	return is_letter_or_digit(c) || (c && strchr("._@+=-", c));
}

/* The last component of a prefix may be empty. */
static bool is_valid(const char *text, bool is_prefix)
{
	struct str rest = str_from(text);
	unsigned depth = 0;
	if (rest.len > BLOB_KEY_MAX)
		return false;
	if (!rest.len)
		return is_prefix;
	for (bool has_more = true; has_more; depth++) {
		struct str piece, tail;
		has_more = str_cut(rest, '/', &piece, &tail);
		if (piece.len > COMPONENT_MAX || depth == BLOB_KEY_DEPTH)
			return false;
		if (!piece.len && (has_more || !is_prefix))
			return false;
		if (piece.len && piece.data[0] == '.')
			return false;
		for (size_t i = 0; i < piece.len; i++)
			if (!is_allowed(piece.data[i]))
				return false;
		rest = tail;
	}
	return true;
}

bool blob_key_is_valid(const char *key)
{
	return is_valid(key, false);
}

bool blob_prefix_is_valid(const char *prefix)
{
	return is_valid(prefix, true);
}

/* As S3 names buckets: lower case, digits, '-' and '.'; a letter or digit at both ends. */
static bool is_bucket(struct str name)
{
	if (name.len < BUCKET_MIN || name.len > BUCKET_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		bool is_end = i == 0 || i == name.len - 1;
		if (!is_plain && (is_end || (c != '-' && c != '.')))
			return false;
	}
	return true;
}

static int parse_s3(const char *text, struct arena *arena, struct blob_url *url, struct error *err)
{
	struct str bucket, prefix;
	str_cut(str_from(text), '/', &bucket, &prefix);
	if (prefix.len && prefix.data[prefix.len - 1] == '/')
		prefix.len--;
	*url = (struct blob_url){ .scheme = BLOB_S3,
		.bucket = arena_bytes(arena, bucket.data, bucket.len),
		.prefix = prefix.len ? arena_bytes(arena, prefix.data, prefix.len) : "" };
	if (!is_bucket(bucket))
		return fail(err, ERR_INVALID, "'%s' is not the name of a bucket", url->bucket);
	if (prefix.len && !blob_key_is_valid(url->prefix))
		return fail(err, ERR_INVALID, "'%s' is not a prefix of keys", url->prefix);
	return 0;
}

int blob_url_parse(const char *text, struct arena *arena, struct blob_url *url, struct error *err)
{
	static const char s3[] = "s3://", dir[] = "dir:";
	struct blob_url parsed = { .scheme = BLOB_DIR };
	if (!strncmp(text, s3, sizeof s3 - 1)) {
		if (parse_s3(text + sizeof s3 - 1, arena, &parsed, err))
			return -1;
	} else if (!strncmp(text, dir, sizeof dir - 1)) {
		parsed.path = arena_text(arena, text + sizeof dir - 1);
		if (!path_is_normal(parsed.path) || !parsed.path[1])
			return fail(err, ERR_INVALID, "'%s' is not an absolute, plain path",
				parsed.path);
	} else if (strcmp(text, "dir") != 0) {
		return fail(
			err, ERR_INVALID, "'%s' is not dir, dir:/PATH or s3://BUCKET/PREFIX", text);
	}
	*url = parsed;
	return 0;
}
