#include "format/http/webhook.h"

#include "base/buf.h"
#include "base/hash.h"
#include "format/http/sigv4.h"

const char *webhook_signature(
	struct str secret, int64_t unix_s, struct str body, struct arena *arena)
{
	unsigned char digest[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	buf_printf(&text, "%lld.", (long long)unix_s);
	buf_append(&text, body.data, body.len);
	hmac_sha256(secret.data, secret.len, text.data, text.len, digest);
	sha256_hex(digest, hex);
	return arena_printf(arena, "t=%lld,v1=%s", (long long)unix_s, hex);
}
