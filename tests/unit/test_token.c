/* format/http/token.c: the text of an access token. format/http/webhook.c: the signature of a
 * call. */
/* security: authority */
#include "format/http/token.h"

#include <string.h>
#include "format/http/webhook.h"
#include "unit.h"

static void make(unsigned char fill, char text[TOKEN_LEN + 1])
{
	unsigned char random[TOKEN_RANDOM_BYTES];
	for (size_t i = 0; i < sizeof random; i++)
		random[i] = (unsigned char)(fill + 7 * i);
	token_print(random, text);
}

static void a_token_has_its_form_and_its_bits(void **state)
{
	char one[TOKEN_LEN + 1], other[TOKEN_LEN + 1];
	unsigned char random[TOKEN_RANDOM_BYTES] = { 0 };
	make(1, one);
	assert_int_equal(strlen(one), TOKEN_LEN);
	assert_int_equal(strncmp(one, "crl_", 4), 0);
	assert_true(token_is_whole(str_from(one)));
	/* Each of the 260 bits changes the text. */
	token_print(random, one);
	for (int bit = 0; bit < 5 * TOKEN_RANDOM_LEN; bit++) {
		random[bit / 8] ^= (unsigned char)(0x80 >> bit % 8);
		token_print(random, other);
		assert_string_not_equal(one, other);
		random[bit / 8] ^= (unsigned char)(0x80 >> bit % 8);
	}
}

static void a_mistyped_or_cut_token_is_not_whole(void **state)
{
	char text[TOKEN_LEN + 1], wrong[TOKEN_LEN + 2];
	make(5, text);
	for (size_t i = 0; i < TOKEN_LEN; i++) {
		memcpy(wrong, text, sizeof text);
		wrong[i] = text[i] == 'a' ? 'b' : 'a';
		assert_false(token_is_whole(str_from(wrong)));
		wrong[i] = '\n';
		assert_false(token_is_whole(str_from(wrong)));
		assert_false(token_is_whole((struct str){ text, i }));
	}
	memcpy(wrong, text, TOKEN_LEN);
	memcpy(wrong + TOKEN_LEN, "a", 2);
	assert_false(token_is_whole(str_from(wrong)));
}

static void a_header_has_one_scheme(void **state)
{
	assert_true(str_is(token_of_header(STR("Bearer abc")), "abc"));
	assert_true(str_is(token_of_header(STR("bEARER   abc  ")), "abc"));
	assert_null(token_of_header(STR("Bearer ")).data);
	assert_null(token_of_header(STR("Bearer")).data);
	assert_null(token_of_header(STR("Bearerabc")).data);
	assert_null(token_of_header(STR("Basic abc")).data);
	assert_null(token_of_header(STR("")).data);
}

/* Computed with Python's hmac module. */
static void a_webhook_call_is_signed_with_its_time(void **state)
{
	auto_arena struct arena arena = { 0 };
	assert_string_equal(
		webhook_signature(STR("0123456789abcdef"), 1700000000, STR("{\"a\":1}"), &arena),
		"t=1700000000,v1="
		"9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23");
	assert_string_not_equal(
		webhook_signature(STR("0123456789abcdef"), 1700000001, STR("{}"), &arena) + 14,
		webhook_signature(STR("0123456789abcdef"), 1700000002, STR("{}"), &arena) + 14);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_has_its_form_and_its_bits),
		cmocka_unit_test(a_mistyped_or_cut_token_is_not_whole),
		cmocka_unit_test(a_header_has_one_scheme),
		cmocka_unit_test(a_webhook_call_is_signed_with_its_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
