#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif
#include "base/arena.h"
#include "base/hash.h"

/* Fractional parts of the cube roots of the first 64 primes (FIPS 180-4). */
static const uint32_t constants[64] = {
	0x428a2f98,
	0x71374491,
	0xb5c0fbcf,
	0xe9b5dba5,
	0x3956c25b,
	0x59f111f1,
	0x923f82a4,
	0xab1c5ed5,
	0xd807aa98,
	0x12835b01,
	0x243185be,
	0x550c7dc3,
	0x72be5d74,
	0x80deb1fe,
	0x9bdc06a7,
	0xc19bf174,
	0xe49b69c1,
	0xefbe4786,
	0x0fc19dc6,
	0x240ca1cc,
	0x2de92c6f,
	0x4a7484aa,
	0x5cb0a9dc,
	0x76f988da,
	0x983e5152,
	0xa831c66d,
	0xb00327c8,
	0xbf597fc7,
	0xc6e00bf3,
	0xd5a79147,
	0x06ca6351,
	0x14292967,
	0x27b70a85,
	0x2e1b2138,
	0x4d2c6dfc,
	0x53380d13,
	0x650a7354,
	0x766a0abb,
	0x81c2c92e,
	0x92722c85,
	0xa2bfe8a1,
	0xa81a664b,
	0xc24b8b70,
	0xc76c51a3,
	0xd192e819,
	0xd6990624,
	0xf40e3585,
	0x106aa070,
	0x19a4c116,
	0x1e376c08,
	0x2748774c,
	0x34b0bcb5,
	0x391c0cb3,
	0x4ed8aa4a,
	0x5b9cca4f,
	0x682e6ff3,
	0x748f82ee,
	0x78a5636f,
	0x84c87814,
	0x8cc70208,
	0x90befffa,
	0xa4506ceb,
	0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static uint32_t load_big(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void compress_portable(uint32_t state[8], const unsigned char *data, size_t blocks)
{
	for (; blocks > 0; blocks--, data += 64) {
		uint32_t w[64], v[8];
		for (int i = 0; i < 16; i++)
			w[i] = load_big(data + 4 * i);
		for (int i = 16; i < 64; i++) {
			uint32_t a = w[i - 15], b = w[i - 2];
			w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
			       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
		}
		memcpy(v, state, sizeof v);
		for (int i = 0; i < 64; i++) {
			uint32_t a = v[0], e = v[4];
			uint32_t t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
				      ((e & v[5]) ^ (~e & v[6])) + constants[i] + w[i];
			uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
				      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
			memmove(v + 1, v, 7 * sizeof *v);
			v[4] += t1;
			v[0] = t1 + t2;
		}
		for (int i = 0; i < 8; i++)
			state[i] += v[i];
	}
}

#ifdef __x86_64__
__attribute__((target("sha,sse4.1"))) static void compress_sha_ni(
	uint32_t state[8], const unsigned char *data, size_t blocks)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i *stored = (__m128i *)state;
	/* The instructions want the state as a,b,e,f and c,d,g,h, highest first. */
	__m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(stored), 0xb1);
	__m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(stored + 1), 0x1b);
	__m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
	__m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
	for (; blocks > 0; blocks--, data += 64) {
		__m128i old_abef = abef, old_cdgh = cdgh, w[4];
		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(
				_mm_loadu_si128((const __m128i *)(data + 16 * i)), big_endian);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i *now = &w[i % 4], last = w[(i + 3) % 4];
			__m128i k = _mm_loadu_si128((const __m128i *)(constants + 4 * i));
			__m128i sum = _mm_add_epi32(*now, k);
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
			if (i >= 12)
				continue;
			/* These four words have been used: in their place the four that come 16
			 * later. */
			*now = _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) % 4]),
				_mm_alignr_epi8(last, w[(i + 2) % 4], 4));
			*now = _mm_sha256msg2_epu32(*now, last);
		}
		abef = _mm_add_epi32(abef, old_abef);
		cdgh = _mm_add_epi32(cdgh, old_cdgh);
	}
	__m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128(stored, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128(stored + 1, _mm_alignr_epi8(dchg, feba, 8));
}
#endif

void sha256_init_portable(struct sha256 *s)
{
	*s = (struct sha256){
		.compress = compress_portable,
		.state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
			0x1f83d9ab, 0x5be0cd19 },
	};
}

#ifdef __x86_64__
/* Asked once, and not before something is hashed: cpuid costs tens of microseconds in a virtual
 * machine. */
static bool has_sha_ni(void)
{
	static int known; /* 1: no, 2: yes */
	unsigned a, b, c, d, b7 = 0;
	if (!known) {
		bool has_sse41 = __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_1;
		bool has_leaf7 = __get_cpuid_count(7, 0, &a, &b7, &c, &d);
		known = has_sse41 && has_leaf7 && b7 & 1u << 29 ? 2 : 1;
	}
	return known == 2;
}
#endif

void sha256_init(struct sha256 *s)
{
	sha256_init_portable(s);
#ifdef __x86_64__
	if (has_sha_ni())
		s->compress = compress_sha_ni;
#endif
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	const unsigned char *p = data;
	size_t held = s->bytes % sizeof s->block;
	s->bytes += len;
	if (held > 0 && len >= sizeof s->block - held) {
		size_t missing = sizeof s->block - held;
		memcpy(s->block + held, p, missing);
		s->compress(s->state, s->block, 1);
		p += missing;
		len -= missing;
		held = 0;
	}
	if (held == 0 && len >= sizeof s->block) {
		size_t blocks = len / sizeof s->block;
		s->compress(s->state, p, blocks);
		p += blocks * sizeof s->block;
		len %= sizeof s->block;
	}
	if (len > 0)
		memcpy(s->block + held, p, len);
}

void sha256_end(struct sha256 *s, unsigned char out[SHA256_LEN])
{
	uint64_t bits = s->bytes * 8;
	unsigned char padding[64 + 8] = { 0x80 };
	/* One bit, zeros up to 8 bytes before the end of a block, the length. */
	size_t zeros_end = (s->bytes % 64 < 56 ? 56 : 120) - s->bytes % 64;
	for (int i = 0; i < 8; i++)
		padding[zeros_end + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(s, padding, zeros_end + 8);
	for (int i = 0; i < SHA256_LEN; i++)
		out[i] = (unsigned char)(s->state[i / 4] >> (24 - i % 4 * 8));
}

void sha256_hex(const unsigned char digest[SHA256_LEN], char out[2 * SHA256_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	for (int i = 0; i < SHA256_LEN; i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
	out[2 * SHA256_LEN] = '\0';
}

void sha256_end_hex(struct sha256 *s, char out[2 * SHA256_LEN + 1])
{
	unsigned char digest[SHA256_LEN];
	sha256_end(s, digest);
	sha256_hex(digest, out);
}

void sha256_add_text(struct sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text) + 1);
}

char *sha256_end_text(struct sha256 *s, struct arena *arena)
{
	char *hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
	sha256_end_hex(s, hex);
	return hex;
}

void sha256_of(const void *data, size_t len, char out[2 * SHA256_LEN + 1])
{
	struct sha256 hash;
	sha256_init(&hash);
	sha256_add(&hash, data, len);
	sha256_end_hex(&hash, out);
}

char *sha256_text_of(const void *data, size_t len, struct arena *arena)
{
	char *hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
	sha256_of(data, len, hex);
	return hex;
}
