/* ClientHellos: the result depends on the bytes of the hello alone, not on how they are cut into
 * packets and records. */
#include <string.h>
#include "format/network/tls_hello.h"
#include "fuzz.h"

/* The same message in records of `each` bytes: the length, 0 when it doesn't fit. */
static size_t cut_again(const uint8_t *data, size_t size, size_t each, uint8_t *out)
{
	static uint8_t message[TLS_HELLO_MAX];
	size_t len = 0, written = 0;

	for (size_t at = 0; at < size;) {
		size_t record = (size_t)data[at + 3] << 8 | data[at + 4];
		memcpy(message + len, data + at + 5, record);
		len += record;
		at += 5 + record;
	}
	for (size_t at = 0; at < len; at += each) {
		size_t piece = len - at < each ? len - at : each;
		if (written + 5 + piece > TLS_HELLO_MAX)
			return 0;
		memcpy(out + written,
			(uint8_t[]){ 22, 3, 3, (uint8_t)(piece >> 8), (uint8_t)piece }, 5);
		memcpy(out + written + 5, message + at, piece);
		written += 5 + piece;
	}
	return written;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t again[TLS_HELLO_MAX];
	struct str bytes = { (const char *)data, size };
	struct tls_hello hello, other;
	struct error err;
	int status = tls_hello_parse(bytes, &hello, &err);

	check(status >= -1 && status <= 1);
	if (status == -1)
		check(err.text[0]);
	if (status == 0)
		check(size < TLS_HELLO_MAX);
	/* A hello that is refused or whole stays so when more bytes come. */
	size_t half = size / 2;
	int before = tls_hello_parse((struct str){ bytes.data, half }, &other, NULL);
	if (before)
		check(before == status);
	if (status != 1)
		return 0;
	check(hello.len <= size && strlen(hello.sni) < sizeof hello.sni);
	bytes.len = hello.len;
	check(tls_hello_parse(bytes, &other, NULL) == 1);
	bytes.len--;
	check(tls_hello_parse(bytes, &other, NULL) == 0);
	for (size_t each = 1; each < 64; each = each * 2 + 1) {
		size_t len = cut_again(data, hello.len, each, again);
		if (!len)
			continue;
		check(tls_hello_parse((struct str){ (char *)again, len }, &other, NULL) == 1);
		check(!strcmp(other.sni, hello.sni) && other.has_ech == hello.has_ech);
	}
	return 0;
}
