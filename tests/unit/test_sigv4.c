/* format/http/sigv4.c against the examples that AWS publishes for the algorithm. */
#include "format/http/sigv4.h"

#include <string.h>
#include "unit.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define WELCOME "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"

static struct arena arena;

struct example {
	const char *method, *path;
	struct text_pair query[3], headers[4];
	const char *payload, *time, *service, *key_id, *secret, *host, *signed_names, *signature;
	bool is_plain; /* signs host and x-amz-date alone */
};
#define S3_EXAMPLE                                                                                 \
	.time = "20130524T000000Z", .service = "s3", .key_id = "AKIAIOSFODNN7EXAMPLE",             \
	.secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",                                      \
	.host = "examplebucket.s3.amazonaws.com"

static const struct example examples[] = {
	{ "GET", "/test.txt", .headers = { { "range", "bytes=0-9" } }, .payload = EMPTY, S3_EXAMPLE,
		.signed_names = "host;range;x-amz-content-sha256;x-amz-date",
		.signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41" },
	{ "PUT", "/test%24file.text",
		.headers = { { "x-amz-storage-class", "REDUCED_REDUNDANCY" },
			{ "date", "Fri, 24 May 2013 00:00:00 GMT" } },
		.payload = WELCOME, S3_EXAMPLE,
		.signed_names = "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
		.signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd" },
	{ "GET", "/", .query = { { "lifecycle", "" } }, .payload = EMPTY, S3_EXAMPLE,
		.signed_names = "host;x-amz-content-sha256;x-amz-date",
		.signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543" },
	{ "GET", "/", .query = { { "prefix", "J" }, { "max-keys", "2" } }, .payload = EMPTY,
		S3_EXAMPLE, .signed_names = "host;x-amz-content-sha256;x-amz-date",
		.signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" },
	{ "GET", "/", .payload = EMPTY, .time = "20150830T123600Z", .service = "service",
		.key_id = "AKIDEXAMPLE", .secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
		.host = "example.amazonaws.com", .signed_names = "host;x-amz-date",
		.signature = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		.is_plain = true },
};

static void signatures_are_those_of_the_published_examples(void **state)
{
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		const struct example *example = &examples[i];
		pair_list headers = { 0 }, query = { 0 };
		struct text_pair own[] = { { "x-amz-date", example->time },
			{ "host", example->host }, { "x-amz-content-sha256", example->payload } };
		for (size_t k = 0; k < (example->is_plain ? 2u : 3u); k++)
			vec_push(&arena, &headers, own[k]);
		for (size_t k = 0; example->headers[k].key; k++)
			vec_push(&arena, &headers, example->headers[k]);
		for (size_t k = 0; example->query[k].key; k++)
			vec_push(&arena, &query, example->query[k]);
		struct sigv4_request request = { example->method, example->path,
			sigv4_query(&query, &arena), headers, example->payload, example->time,
			"us-east-1", example->service, example->key_id, example->secret };
		const char *expected = arena_printf(&arena,
			"AWS4-HMAC-SHA256 Credential=%s/%.8s/us-east-1/%s/aws4_request,"
			"SignedHeaders=%s,Signature=%s",
			example->key_id, example->time, example->service, example->signed_names,
			example->signature);
		assert_string_equal(sigv4_authorization(&request, &arena), expected);
	}
}

/* RFC 4231, cases 1, 2 and 6 (a key longer than a block). */
static void hmac_is_that_of_the_standard(void **state)
{
	unsigned char out[SHA256_LEN], key[131];
	char hex[65];
	memset(key, 0x0b, 20);
	hmac_sha256(key, 20, "Hi There", 8, out);
	sha256_hex(out, hex);
	assert_string_equal(
		hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, out);
	sha256_hex(out, hex);
	assert_string_equal(
		hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof key);
	static const char text[] = "Test Using Larger Than Block-Size Key - Hash Key First";
	hmac_sha256(key, sizeof key, text, sizeof text - 1, out);
	sha256_hex(out, hex);
	assert_string_equal(
		hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void times_are_written_in_utc(void **state)
{
	char text[SIGV4_TIME_SIZE];
	sigv4_time(1369353600, text);
	assert_string_equal(text, "20130524T000000Z");
	sigv4_time(1440938160, text);
	assert_string_equal(text, "20150830T123600Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signatures_are_those_of_the_published_examples),
		cmocka_unit_test(hmac_is_that_of_the_standard),
		cmocka_unit_test(times_are_written_in_utc),
	};
	arena_init(&arena);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_done(&arena);
	return failed;
}
