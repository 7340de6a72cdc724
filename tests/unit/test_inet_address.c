/* "ADDRESS:PORT" as text and back. */
#include "format/network/inet_address.h"
#include "unit.h"

static void what_is_parsed_is_printed(void **state)
{
	static const char *const rows[][2] = {
		{ "127.0.0.1:8080", "127.0.0.1:8080" },
		{ ":0", "127.0.0.1:0" },
		{ "localhost:443", "127.0.0.1:443" },
		{ "0.0.0.0:7443", "0.0.0.0:7443" },
		{ "[::1]:8080", "[::1]:8080" },
		{ "[::]:65535", "[::]:65535" },
		{ "[2001:DB8::1]:80", "[2001:db8::1]:80" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		union inet_address address;
		char text[INET_ADDRESS_TEXT_SIZE];
		assert_true(inet_address_parse(str_from(rows[i][0]), &address));
		inet_address_print(&address, text);
		assert_string_equal(text, rows[i][1]);
	}
}

static void other_texts_are_refused(void **state)
{
	static const char *const texts[] = { "", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
		"127.0.0.1:65536", "127.0.0.1:-1", "::1:80", "[::1]", "[127.0.0.1]:80", "name:80",
		"[::1:80", "256.0.0.1:80", "1.2.3:80", "127.0.0.1 :80", "[fe80::1%lo]:80" };
	union inet_address address;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (inet_address_parse(str_from(texts[i]), &address))
			fail_msg("'%s' was taken", texts[i]);
}

static void loopback_is_what_only_this_host_reaches(void **state)
{
	static const struct {
		const char *text;
		bool is_loopback;
	} rows[] = { { "127.0.0.1", true }, { "127.9.9.9", true }, { "::1", true },
		{ "::ffff:127.0.0.1", true }, { "0.0.0.0", false }, { "::", false },
		{ "10.0.0.1", false }, { "::ffff:10.0.0.1", false }, { "fe80::1", false } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		union inet_address address;
		assert_true(inet_address_parse_host(str_from(rows[i].text), &address));
		assert_int_equal(inet_address_is_loopback(&address), rows[i].is_loopback);
	}
}

static void a_mapped_address_is_printed_as_ipv4(void **state)
{
	union inet_address address;
	char text[INET6_ADDRSTRLEN];
	assert_true(inet_address_parse_host(STR("::ffff:192.0.2.7"), &address));
	inet_address_print_host(&address, text);
	assert_string_equal(text, "192.0.2.7");
}

static void the_range_of_an_address_is_its_network(void **state)
{
	static const struct {
		const char *address, *range;
	} rows[] = { { "192.0.2.7", "192.0.2.0/24" }, { "192.0.2.255", "192.0.2.0/24" },
		{ "192.0.3.7", "192.0.3.0/24" }, { "::ffff:192.0.2.7", "192.0.2.0/24" },
		{ "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64" },
		{ "2001:db8:1:3::1", "2001:db8:1:3::/64" }, { "::1", "::/64" } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		union inet_address address;
		char text[INET_ADDRESS_TEXT_SIZE];
		assert_true(inet_address_parse_host(str_from(rows[i].address), &address));
		inet_address_print_range(&address, text);
		assert_string_equal(text, rows[i].range);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_parsed_is_printed),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(loopback_is_what_only_this_host_reaches),
		cmocka_unit_test(a_mapped_address_is_printed_as_ipv4),
		cmocka_unit_test(the_range_of_an_address_is_its_network),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
