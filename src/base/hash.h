/* hash.h -- SHA-256, our own (by SHA-NI where there is), so that libcrypto need not be loaded. */
#pragma once
#define SHA256_LEN 32
struct sha256 {
	void (*compress)(uint32_t state[8], const unsigned char *data, size_t blocks);
	uint32_t state[8];
	uint64_t bytes;
	unsigned char block[64];
};
void sha256_init(struct sha256 *s);
/* Never by the CPU's own instructions: for tests and comparison. */
void sha256_init_portable(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, unsigned char out[SHA256_LEN]);
/* Lower case, NUL-terminated. */
void sha256_hex(const unsigned char digest[SHA256_LEN], char out[2 * SHA256_LEN + 1]);
/* The text with its NUL, so that two texts differ from one joined text. */
void sha256_add_text(struct sha256 *s, const char *text);
/* sha256_end, in hex. */
void sha256_end_hex(struct sha256 *s, char out[2 * SHA256_LEN + 1]);
struct arena;
char *sha256_end_text(struct sha256 *s, struct arena *arena);
/* Of `len` bytes, in hex. */
void sha256_of(const void *data, size_t len, char out[2 * SHA256_LEN + 1]);
char *sha256_text_of(const void *data, size_t len, struct arena *arena);
