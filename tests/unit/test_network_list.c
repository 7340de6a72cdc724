/* Lists of hosts: which entries are valid, and which targets they open. */
/* security: network */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include "base/clock.h"
#include "format/network/idna.h"
#include "model/network/address.h"
#include "model/network/network.h"
#include "unit.h"

static void make(struct arena *arena, const char *const *allow, const char *const *deny,
	struct network_list *list)
{
	struct error err = { 0 };
	text_list allowed = { 0 }, denied = { 0 };

	for (; allow && *allow; allow++)
		vec_push(arena, &allowed, *allow);
	for (; deny && *deny; deny++)
		vec_push(arena, &denied, *deny);
	if (network_list_parse(arena, &allowed, &denied, NULL, list, &err) < 0)
		fail_msg("%s", err.text);
}

static bool is_open(const struct network_list *list, const char *target)
{
	char host[NETWORK_HOST_SIZE];
	uint16_t port;
	struct error err;

	return network_target_parse(str_from(target), host, &port, &err) == 0 &&
	       network_decide(list, host, port).is_allowed;
}

struct row {
	const char *target;
	bool is_open;
};

static void check_rows(const struct network_list *list, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_open(list, rows[i].target) != rows[i].is_open)
			fail_msg("'%s' is %s", rows[i].target, rows[i].is_open ? "closed" : "open");
}
#define CHECK(list, ...)                                                                           \
	do {                                                                                       \
		const struct row rows_[] = { __VA_ARGS__ };                                        \
		check_rows(list, rows_, sizeof rows_ / sizeof *rows_);                             \
	} while (0)

static void test_addresses_that_are_not_public_are_closed(void **state)
{
	static const char *const hosts[] = { "10.0.0.5", "127.0.0.1", "169.254.169.254", "::1",
		"fd00::1", "localhost", "localhost.localdomain", "a.localhost" };
	const char *allow[] = { "10.0.0.5", "127.0.0.1", "169.254.169.254", "::1", "fd00::1",
		"localhost", "localhost.localdomain", "a.localhost", "192.0.2.1", "a.example", "*",
		NULL };
	auto_arena struct arena arena = { 0 };
	struct address_range ranges[2];
	struct map known;
	struct network_list list;
	struct error err;

	make(&arena, allow, NULL, &list);
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		struct network_verdict verdict = network_judge(&list, hosts[i], 80, NULL);

		assert_true(network_decide(&list, hosts[i], 80).is_allowed);
		assert_false(verdict.is_allowed);
		assert_int_equal(verdict.reason, NETWORK_REASON_ADDRESS);
	}
	assert_true(network_judge(&list, "192.0.2.1", 80, NULL).is_allowed);
	assert_true(network_judge(&list, "a.example", 80, NULL).is_allowed);
	assert_false(network_decide(&list, "b.localdomain", 80).is_allowed);
	/* What the operator opens: ranges, and names with an address of their own. */
	map_init(&known, &arena);
	map_set(&known, STR("a.localhost"), &known);
	assert_int_equal(address_range_parse(STR("10.0.0.0/8"), &ranges[0], &err), 0);
	assert_int_equal(address_range_parse(STR("127.0.0.0/8"), &ranges[1], &err), 0);
	struct network_opened opened = { ranges, 1, &known };
	assert_true(network_judge(&list, "10.0.0.5", 80, &opened).is_allowed);
	assert_true(network_judge(&list, "a.localhost", 80, &opened).is_allowed);
	assert_false(network_judge(&list, "localhost", 80, &opened).is_allowed);
	opened.range_count = 2;
	assert_true(network_judge(&list, "localhost", 80, &opened).is_allowed);
	assert_int_equal(network_list_add(&list, NETWORK_TRUST, "10.1.1.1", &err), 0);
	assert_true(network_judge(&list, "10.1.1.1", 80, NULL).is_allowed);
}

static void test_hosts_domains_and_ports(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct network_list list;
	const char *allow[] = { "a.example", "*.b.example", "c.example:8443", "*.d.example:22",
		"192.0.2.1", "2001:db8::1", "[2001:db8::2]:8080",
		"B\xc3\xbc"
		"cher.example",
		"xn--caf-dma.example", "under_score.example", NULL };
	const char *deny[] = { "evil.b.example", "*.c.b.example", "d.b.example:80", NULL };

	make(&arena, allow, deny, &list);
	CHECK(&list, { "https://a.example/x", true }, { "http://A.Example./", true },
		{ "a.example:443", true }, { "a.example", true }, { "a.example:8443", false },
		{ "https://x.a.example/", false }, { "https://b.example/", false },
		{ "https://x.b.example/", true }, { "https://x.y.b.example/", true },
		{ "https://xb.example/", false }, { "https://evil.b.example/", false },
		{ "https://x.evil.b.example/", true }, { "https://c.b.example/", true },
		{ "https://x.c.b.example/", false }, { "http://d.b.example/", false },
		{ "https://d.b.example/", true }, { "https://c.example:8443/", true },
		{ "https://c.example/", false }, { "ssh://x.d.example:22/", true },
		{ "ssh://x.d.example/", false }, { "x.d.example:443", false },
		{ "http://192.0.2.1/", true }, { "http://192.0.2.2/", false },
		{ "http://[2001:db8::1]/", true }, { "http://[2001:0DB8:0::1]/", true },
		{ "http://[2001:db8::2]:8080/", true }, { "http://[2001:db8::2]/", false },
		{ "https://b\xc3\xbc"
		  "cher.example/",
			true },
		{ "https://xn--bcher-kva.example/", true }, { "https://caf\xc3\xa9.example", true },
		{ "https://CAF\xc3\x89.example", true }, { "wss://under_score.example/", true });
}

static void test_a_star_opens_public_names_only(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct network_list list, open;
	const char *allow[] = { "*", "named.internal", NULL };
	const char *deny[] = { "bad.example", "*.evil.example", NULL };
	struct error err;

	make(&arena, allow, deny, &list);
	make(&arena, NULL, deny, &open);
	open.mode = NETWORK_OPEN;
	assert_int_equal(network_list_add(&open, NETWORK_ALLOW, "named.internal", &err), 0);
	for (int i = 0; i < 2; i++)
		CHECK(i ? &open : &list, { "https://any.example/", true },
			{ "https://any.example:8443/", false }, { "https://bad.example/", false },
			{ "https://x.evil.example/", false }, { "http://localhost/", false },
			{ "http://x.localhost/", false }, { "http://metadata/", false },
			{ "http://metadata.google.internal/", false },
			{ "http://named.internal/", true }, { "http://printer.local/", false },
			{ "http://127.0.0.1/", false }, { "http://8.8.8.8/", false },
			{ "http://127.1/", false }, { "http://2130706433/", false },
			{ "http://0x7f.1/", false }, { "http://0x7f000001/", false },
			{ "http://017700000001/", false }, { "http://0177.0.0.1/", false },
			{ "http://127.0.0.1./", false }, { "http://1.1.1.1.1/", false },
			{ "http://[::1]/", false }, { "http://[::ffff:127.0.0.1]/", false },
			{ "http://[::ffff:7f00:1]/", false },
			{ "http://[64:ff9b::7f00:1]/", false }, { "http://[2001:db8::1]/", false },
			{ "http://0/", false }, { "http://a.0x/", false });
	const char *denied[] = { "*", NULL }, *some[] = { "a.example", "192.0.2.1", NULL };
	make(&arena, some, denied, &list);
	CHECK(&list, { "http://a.example/", false }, { "http://192.0.2.1/", false });
	open.mode = NETWORK_NONE;
	CHECK(&open, { "https://any.example/", false }, { "http://named.internal/", false });
}

static void test_what_programs_read_in_two_ways_is_closed(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct network_list list;
	const char *allow[] = { "*", "a.example", "b.example", "127.0.0.1", NULL };
	static const struct row rows[] = { { "https://user@a.example/", false },
		{ "https://a.example@b.example/", false },
		{ "https://a.example\\@b.example/", false },
		{ "https://a.example%2eb.example/", false },
		{ "https://a.example%00.b.example", false }, { "https:a.example", false },
		{ "https:/a.example", false }, { "//a.example/", false },
		{ "https://a.example:0443/", false }, { "https://a.example:0/", false },
		{ "https://a.example:65536/", false }, { "https://a.example:/", false },
		{ "https://a.example:+443/", false }, { "https://a..example/", false },
		{ "https://.a.example/", false }, { "https://a.example../", false },
		{ "https:///a.example", false }, { "https://a.example\t/", false },
		{ " https://a.example/", false }, { "https://a_\x01.example/", false },
		{ "https://a,b.example/", false }, { "https://*.example/", false },
		{ "https://[127.0.0.1]/", false }, { "https://[::1%25lo]/", false },
		{ "https://[::1/", false }, { "https://-a.example/", false },
		{ "ftp://a.example/", false },
		{ "https://stra\xc3\x9f"
		  "e.example/",
			false }, /* sharp s: two A-labels */
		{ "https://a\xef\xbc\x8e"
		  "example/",
			false }, /* a wide dot */
		{ "https://\xe2\x80\x8b"
		  "a.example/",
			false }, /* zero width */
		{ "https://127.1/", false }, { "https://127.0.0.1/", true },
		{ "https://a.example?b", true }, { "https://a.example#b", true },
		{ "https://a.example/@b.example", true }, { "HTTPS://a.example/", true } };

	make(&arena, allow, NULL, &list);
	check_rows(&list, rows, sizeof rows / sizeof *rows);
	char host[NETWORK_HOST_SIZE];
	uint16_t port;
	assert_int_equal(
		network_target_parse((struct str){ "a\0.example:1", 12 }, host, &port, NULL), -1);
}

static void test_malformed_entries_make_the_list_invalid(void **state)
{
	static const char *const bad[] = { "", "https://a.example", "a.example/", "a.example/path",
		"a*.example", "*a.example", "a.*.example", "*.*.example", "**", "*.", "*..a", "*.*",
		"a.example:", "a.example:0", "a.example:70000", "a.example:http", "u@a.example",
		"a b", "a\\b", "a%41", "127.1", "0x7f.0.0.1", "*.0.0.1", "*.127.0.0.1", "[::1",
		"::1]", "[a.example]", "1.2.3.4.5", "10.0.0.0/8", ".a.example", "a..example",
		"\x01", "*:0",
		"stra\xc3\x9f"
		"e.example" };
	auto_arena struct arena arena = { 0 };
	struct network_list list;
	struct error err;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char named[160], shown[128];
		assert_int_equal(network_list_init(&list, &arena, NETWORK_LIST, NULL, &err), 0);
		if (network_list_add(&list, NETWORK_ALLOW, bad[i], &err) == 0)
			fail_msg("'%s' was accepted", bad[i]);
		assert_int_equal(err.code, ERR_INVALID);
		str_printable(shown, sizeof shown, str_from(bad[i]));
		str_format(named, sizeof named, "'%s'", shown);
		assert_non_null(strstr(err.text, named));
	}
}

static void test_a_verdict_names_its_rule(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct network_list list;
	struct error err;
	const char *allow[] = { "A.example", "a.example:22", "*.example", NULL };
	const char *deny[] = { "no.example", NULL };

	make(&arena, allow, deny, &list);
	assert_int_equal(network_list_add(&list, NETWORK_TRUST, "t.example:99", &err), 0);
	struct network_verdict v = network_decide(&list, "a.example", 22);
	assert_true(v.is_allowed && v.has_named_port && !v.is_trusted);
	assert_string_equal(v.rule, "a.example:22");
	v = network_decide(&list, "x.example", 443);
	assert_string_equal(v.rule, "*.example");
	assert_false(v.has_named_port);
	v = network_decide(&list, "no.example", 443);
	assert_int_equal(v.reason, NETWORK_REASON_DENIED);
	assert_string_equal(v.rule, "no.example");
	v = network_decide(&list, "x.example", 99);
	assert_int_equal(v.reason, NETWORK_REASON_PORT);
	v = network_decide(&list, "other.test", 443);
	assert_int_equal(v.reason, NETWORK_REASON_UNLISTED);
	assert_null(v.rule);
	v = network_decide(&list, "t.example", 99);
	assert_true(v.is_allowed && v.is_trusted);
	assert_true(network_is_named(&list, "t.example"));
	assert_false(network_is_named(&list, "no.example"));
	assert_false(network_is_named(&list, "other.test"));
	/* Only normal forms are hosts. */
	assert_false(network_decide(&list, ".example", 443).is_allowed);
	assert_false(network_decide(&list, "*", 443).is_allowed);
	assert_false(network_decide(&list, "A.EXAMPLE", 443).is_allowed);
	assert_false(network_decide(&list, "", 443).is_allowed);
}

static void test_the_operator_s_ports_and_hosts(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct network_list list;
	struct error err;
	const uint16_t ports[] = { 443, 8443 };
	text_list hosts = { 0 };

	vec_push(&arena, &hosts, "origin");
	const struct network_defaults defaults = { ports, 2, &hosts };
	assert_int_equal(network_list_init(&list, &arena, NETWORK_OPEN, &defaults, &err), 0);
	CHECK(&list, { "https://a.example/", true }, { "https://a.example:8443/", true },
		{ "http://a.example/", false }, { "https://origin/", true },
		{ "https://other/", false });
	enum network_mode mode;
	assert_int_equal(network_mode_parse("open", &mode, &err), 0);
	assert_int_equal(mode, NETWORK_OPEN);
	assert_string_equal(network_mode_name(NETWORK_LIST), "list");
	assert_int_equal(network_mode_parse("all", &mode, &err), -1);
}

static void test_ten_thousand_entries_are_quick(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct network_list list;
	struct error err;
	char entry[64];
	size_t open = 0;

	assert_int_equal(network_list_init(&list, &arena, NETWORK_LIST, NULL, &err), 0);
	for (unsigned i = 0; i < 10000; i++) {
		str_format(entry, sizeof entry, i % 2 ? "h%u.example" : "*.d%u.example", i);
		assert_int_equal(network_list_add(&list, NETWORK_ALLOW, entry, &err), 0);
	}
	/* A search of every entry would take a hundred million comparisons. */
	for (unsigned i = 0; i < 10000; i++) {
		str_format(entry, sizeof entry, "h%u.example", i);
		open += network_decide(&list, entry, 443).is_allowed;
	}
	assert_int_equal(open, 5000);
}

static void test_a_labels(void **state)
{
	static const struct {
		const char *label, *encoded;
	} rows[] = {
		{ "m\xc3\xbcnchen", "xn--mnchen-3ya" },
		{ "\xd0\xbf\xd1\x80\xd0\xb8\xd0\xbc\xd0\xb5\xd1\x80", "xn--e1afmkfd" },
		{ "\xd0\x9f\xd0\xa0\xd0\x98\xd0\x9c\xd0\x95\xd0\xa0", "xn--e1afmkfd" },
		{ "\xe4\xbe\x8b\xe5\xad\x90", "xn--fsqu00a" },
		{ "\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88", "xn--zckzah" },
		{ "\xc5\x81\xc3\xb3\x64\xc5\xba", "xn--d-uga0v4h" },
	};
	char out[IDNA_LABEL_SIZE];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(idna_encode(str_from(rows[i].label), out));
		assert_string_equal(out, rows[i].encoded);
	}
	assert_false(idna_encode(STR("ascii"), out));
	assert_false(idna_encode(STR(""), out));
	assert_false(idna_encode(STR("\xff\xfe"), out));
	assert_false(idna_encode(STR("-\xc3\xbc"), out));
}

static bool is_closed(const char *text)
{
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} address = { .any.sa_family = strchr(text, ':') ? AF_INET6 : AF_INET };

	assert_int_equal(inet_pton(address.any.sa_family, text,
				 strchr(text, ':') ? (void *)&address.ipv6.sin6_addr
						   : (void *)&address.ipv4.sin_addr),
		1);
	return address_is_closed(&address.any);
}

static void test_addresses_that_are_not_public(void **state)
{
	static const char *const closed[] = { "127.0.0.1", "127.255.0.1", "0.0.0.0", "10.1.2.3",
		"172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
		"100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255", "192.0.0.192",
		"198.18.0.1", "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::808:808", "2002:7f00:1::", "2001::1", "fe80::1",
		"fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1", "100::1" };
	static const char *const public[] = { "8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.2.1",
		"2606:4700::1", "2a00:1450::1" };

	for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
		if (!is_closed(closed[i]))
			fail_msg("%s is public", closed[i]);
	for (size_t i = 0; i < sizeof public / sizeof *public; i++)
		assert_false(is_closed(public[i]));
}

static void test_ranges(void **state)
{
	static const char *const bad[] = { "", "10.0.0.0/33", "10.0.0.1/8", "fd00::/129", "a/8",
		"10.0.0.0/", "10.0.0.0/08x", "10/8", "/8" };
	struct address_range ranges[2];
	struct error err;
	struct sockaddr_in address = { .sin_family = AF_INET };

	assert_int_equal(address_range_parse(STR("10.0.0.0/9"), &ranges[0], &err), 0);
	assert_int_equal(address_range_parse(STR("fd00::/8"), &ranges[1], &err), 0);
	inet_pton(AF_INET, "10.127.0.1", &address.sin_addr);
	assert_true(address_is_within((struct sockaddr *)&address, ranges, 2));
	inet_pton(AF_INET, "10.128.0.1", &address.sin_addr);
	assert_false(address_is_within((struct sockaddr *)&address, ranges, 2));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (address_range_parse(str_from(bad[i]), &ranges[0], &err) == 0)
			fail_msg("'%s' was accepted", bad[i]);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void test_a_list_reaches_what_its_bounds_allow(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct network_list list, *listed, *open;
	struct error err;

	assert_int_equal(network_list_init(&list, &arena, NETWORK_OPEN, NULL, &err), 0);
	assert_int_equal(network_list_add(&list, NETWORK_ALLOW, "a.example:8080", &err), 0);
	assert_int_equal(network_list_add(&list, NETWORK_TRUST, "10.0.0.1:81", &err), 0);
	assert_int_equal(network_list_bind(&list, true, &listed, &err), 0);
	assert_int_equal(network_list_add(listed, NETWORK_ALLOW, "*.example", &err), 0);
	assert_int_equal(network_list_bind(&list, false, &open, &err), 0);
	assert_int_equal(network_list_add(open, NETWORK_DENY, "b.example", &err), 0);
	assert_int_equal(network_list_add(open, NETWORK_DENY, "192.0.2.1", &err), 0);
	assert_true(network_decide(&list, "a.example", 443).is_allowed);
	assert_false(network_decide(&list, "a.example", 443).has_named_port);
	assert_true(network_decide(&list, "a.example", 8080).has_named_port);
	assert_false(network_decide(&list, "a.example", 22).is_allowed);
	assert_int_equal(network_decide(&list, "b.example", 443).reason, NETWORK_REASON_DENIED);
	assert_int_equal(network_decide(&list, "a.test", 443).reason, NETWORK_REASON_BOUND);
	assert_int_equal(network_decide(&list, "10.0.0.1", 81).reason, NETWORK_REASON_BOUND);
	/* An address that a name has is judged by what is denied. */
	assert_int_equal(network_decide(&list, "192.0.2.1", 443).reason, NETWORK_REASON_DENIED);
	assert_true(network_is_named(&list, "a.example"));
	assert_false(network_is_named(&list, "b.example"));
	assert_false(network_is_named(&list, "a.test"));
	for (int i = 2; i < NETWORK_BOUNDS_MAX; i++)
		assert_int_equal(network_list_bind(&list, false, &open, &err), 0);
	assert_int_equal(network_list_bind(&list, false, &open, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts_domains_and_ports),
		cmocka_unit_test(test_addresses_that_are_not_public_are_closed),
		cmocka_unit_test(test_a_star_opens_public_names_only),
		cmocka_unit_test(test_what_programs_read_in_two_ways_is_closed),
		cmocka_unit_test(test_malformed_entries_make_the_list_invalid),
		cmocka_unit_test(test_a_verdict_names_its_rule),
		cmocka_unit_test(test_the_operator_s_ports_and_hosts),
		cmocka_unit_test(test_ten_thousand_entries_are_quick),
		cmocka_unit_test(test_a_labels),
		cmocka_unit_test(test_addresses_that_are_not_public),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_a_list_reaches_what_its_bounds_allow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
