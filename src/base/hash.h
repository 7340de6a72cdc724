/* hash.h -- SHA-256, our own (SHA-NI where the CPU has it), so that libcrypto need not be loaded. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#define SHA256_LEN 32
struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	unsigned char block[64];
};
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, unsigned char out[SHA256_LEN]);
void sha256_hex(const unsigned char digest[SHA256_LEN], char out[2 * SHA256_LEN + 1]);
