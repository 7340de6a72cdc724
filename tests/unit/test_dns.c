/* DNS: queries that are answered, and packets that are refused. */
/* security: network */
#include "format/network/dns.h"

#include <string.h>
#include "unit.h"

#define QUERY "\x12\x34\1\0\0\1\0\0\0\0\0\0" /* id, recursion desired, one question */
#define QUERY_EDNS "\x12\x34\1\0\0\1\0\0\0\0\0\1"
#define NAME "\5Files\7Example\3ORG\0"
#define EDNS "\0\0\x29\x10\0\0\0\0\0\0\0"

static void assert_code(struct str packet, int code)
{
	struct dns_query query;

	assert_int_equal(dns_parse(packet, &query), code);
	if (code)
		assert_int_equal(query.name[0] && !query.question.len, 0);
}

static void assert_answer(
	const struct dns_query *query, enum dns_code code, const uint8_t *address, struct str bytes)
{
	auto_buf struct buf out = buf_empty(DNS_ANSWER_MAX);

	dns_write(query, code, address, 60, &out);
	assert_false(out.overflow);
	assert_int_equal(out.len, bytes.len);
	assert_memory_equal(out.data, bytes.data, bytes.len);
}

static void a_question_is_read_and_answered_with_an_address(void **state)
{
	struct str packet = STR(QUERY NAME "\0\1\0\1");
	struct dns_query query;

	assert_int_equal(dns_parse(packet, &query), DNS_OK);
	assert_string_equal(query.name, "files.example.org");
	assert_int_equal(query.type, DNS_A);
	assert_false(query.has_edns);
	assert_answer(&query, DNS_OK, (const uint8_t *)"\xc6\x12\0\1",
		STR("\x12\x34\x81\x80\0\1\0\1\0\0\0\0" NAME
		    "\0\1\0\1\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\0\1"));
	assert_answer(
		&query, DNS_NO_NAME, NULL, STR("\x12\x34\x81\x83\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"));
	assert_answer(
		&query, DNS_OK, NULL, STR("\x12\x34\x81\x80\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"));
}

static void edns_is_answered_with_edns(void **state)
{
	struct dns_query query;

	assert_int_equal(dns_parse(STR(QUERY_EDNS NAME "\0\x1c\0\1" EDNS), &query), DNS_OK);
	assert_int_equal(query.type, DNS_AAAA);
	assert_true(query.has_edns);
	assert_answer(&query, DNS_OK, (const uint8_t *)"\xfd\0\0\xca\0\0\0\0\0\0\0\0\0\0\0\1",
		STR("\x12\x34\x81\x80\0\1\0\1\0\0\0\1" NAME
		    "\0\x1c\0\1\xc0\x0c\0\x1c\0\1\0\0\0\x3c\0\x10"
		    "\xfd\0\0\xca\0\0\0\0\0\0\0\0\0\0\0\1"
		    "\0\0\x29\4\xd0\0\0\0\0\0\0"));
	/* A cookie. */
	assert_code(STR(QUERY_EDNS NAME "\0\1\0\1"
					"\0\0\x29\x10\0\0\0\0\0\0\x0c\0\x0a\0\10abcdefgh"),
		DNS_OK);
	assert_int_equal(dns_parse(STR(QUERY_EDNS NAME "\0\1\0\1"
						       "\0\0\x29\x10\0\0\1\0\0\0\0"),
				 &query),
		DNS_VERSION);
	assert_answer(&query, DNS_VERSION, NULL,
		STR("\x12\x34\x81\x80\0\1\0\0\0\0\0\1" NAME "\0\1\0\1"
		    "\0\0\x29\4\xd0\1\0\0\0\0\0"));
}

static void other_names_and_types_are_read(void **state)
{
	struct dns_query query;

	assert_int_equal(dns_parse(STR(QUERY "\0\0\2\0\1"), &query), DNS_OK);
	assert_string_equal(query.name, "");
	assert_int_equal(dns_parse(STR(QUERY "\3a.b\0\0\1\0\1"), &query), DNS_OK);
	assert_string_equal(query.name, ""); /* a dot in a label */
	assert_int_equal(dns_parse(STR(QUERY "\3a\0b\0\0\1\0\1"), &query), DNS_OK);
	assert_string_equal(query.name, "");
	assert_int_equal(dns_parse(STR(QUERY "\1_\1-\0\1\1\0\1"), &query), DNS_OK);
	assert_string_equal(query.name, "_.-");
	assert_int_equal(query.type, 257);
}

static void what_is_malformed_is_answered_so(void **state)
{
	struct dns_query query;

	assert_code(STR(""), -1);
	assert_code(STR("\x12\x34\1\0\0\1\0\0\0\0\0"), -1);
	assert_code(STR("\x12\x34\x81\0\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"), -1);
	assert_code(STR("\x12\x34\x29\0\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"), DNS_UNKNOWN);
	assert_code(STR(QUERY NAME "\0\1\0\3"), DNS_UNKNOWN);
	assert_code(STR(QUERY), DNS_MALFORMED);
	assert_code(STR(QUERY NAME), DNS_MALFORMED);
	assert_code(STR(QUERY NAME "\0\1\0"), DNS_MALFORMED);
	assert_code(STR(QUERY NAME "\0\1\0\1x"), DNS_MALFORMED);
	assert_code(STR(QUERY "\5Files"), DNS_MALFORMED);
	assert_code(STR(QUERY "\5Fil"), DNS_MALFORMED);
	assert_code(STR(QUERY "\xc0\x0c\0\1\0\1"), DNS_MALFORMED);
	assert_code(STR(QUERY "\1a\xc0\x0c\0\1\0\1"), DNS_MALFORMED);
	assert_code(STR(QUERY "\x40" NAME "\0\1\0\1"), DNS_MALFORMED);
	assert_code(STR(QUERY_EDNS NAME "\0\1\0\1"), DNS_MALFORMED);
	assert_code(STR(QUERY_EDNS NAME "\0\1\0\1" EDNS "x"), DNS_MALFORMED);
	assert_code(STR(QUERY_EDNS NAME "\0\1\0\1\0\0\x29\x10\0\0\0\0\0\0\1"), DNS_MALFORMED);
	assert_code(STR(QUERY_EDNS NAME "\0\1\0\1\0\0\1\x10\0\0\0\0\0\0\0"), DNS_MALFORMED);
	/* Two questions, none, answers in a query. */
	assert_code(
		STR("\x12\x34\1\0\0\2\0\0\0\0\0\0" NAME "\0\1\0\1" NAME "\0\1\0\1"), DNS_MALFORMED);
	assert_code(STR("\x12\x34\1\0\0\0\0\0\0\0\0\0"), DNS_MALFORMED);
	assert_code(STR("\x12\x34\1\0\0\1\0\1\0\0\0\0" NAME "\0\1\0\1"), DNS_MALFORMED);

	assert_int_equal(dns_parse(STR(QUERY), &query), DNS_MALFORMED);
	assert_answer(&query, DNS_MALFORMED, NULL, STR("\x12\x34\x81\x81\0\0\0\0\0\0\0\0"));
}

static void a_name_has_at_most_253_bytes(void **state)
{
	auto_buf struct buf packet = buf_empty(2048);
	struct dns_query query;

	for (int extra = 0; extra < 2; extra++) {
		buf_clear(&packet);
		buf_append(&packet, QUERY, sizeof QUERY - 1);
		for (int i = 0; i < 3; i++)
			buf_printf(&packet, "%c%063d", 63, 0);
		buf_printf(&packet, "%c%0*d", 61 + extra, 61 + extra, 0);
		buf_append(&packet, "\0\0\1\0\1", 5);
		int code = dns_parse((struct str){ packet.data, packet.len }, &query);
		assert_int_equal(code, extra ? DNS_MALFORMED : DNS_OK);
		assert_int_equal(strlen(query.name), extra ? 0 : 253);
	}
	auto_buf struct buf out = buf_empty(DNS_ANSWER_MAX);
	query.has_edns = true;
	dns_write(&query, DNS_OK, (const uint8_t *)"0123456789abcdef", 1, &out);
	assert_false(out.overflow);
}

static void messages_over_tcp_come_behind_their_length(void **state)
{
	struct str bytes = STR("\0\x0c" QUERY "\0\x0d" QUERY "x"), message, rest;
	auto_buf struct buf out = buf_empty(100);

	assert_int_equal(dns_take_frame(bytes, &message, &rest), 1);
	assert_int_equal(message.len, 12);
	assert_int_equal(dns_take_frame(rest, &message, &rest), 1);
	assert_int_equal(message.len, 13);
	assert_int_equal(rest.len, 0);
	for (size_t len = 0; len < 14; len++)
		assert_int_equal(
			dns_take_frame((struct str){ bytes.data, len }, &message, &rest), 0);
	assert_int_equal(dns_take_frame(STR("\0\0"), &message, &rest), -1);
	assert_int_equal(dns_take_frame(STR("\xff\xff"), &message, &rest), -1);
	dns_put_frame(STR("abc"), &out);
	assert_memory_equal(out.data, "\0\3abc", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_read_and_answered_with_an_address),
		cmocka_unit_test(edns_is_answered_with_edns),
		cmocka_unit_test(other_names_and_types_are_read),
		cmocka_unit_test(what_is_malformed_is_answered_so),
		cmocka_unit_test(a_name_has_at_most_253_bytes),
		cmocka_unit_test(messages_over_tcp_come_behind_their_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
