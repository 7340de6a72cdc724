/* The hello of TLS: the name of the server is found however the bytes are cut, and a hello
 * without one is told. */
/* security: network */
#include "format/network/tls_hello.h"

#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "linux/child.h"
#include "arena_fixture.h"
#include "base/buf.h"

#define PYTHON "/usr/bin/python3"

/* Bytes of a hello, written piece by piece. */
static struct buf out;

static int set_up_hello(void **state)
{
	buf_init(&out, 1 << 20);
	return set_up(state);
}

static int tear_down_hello(void **state)
{
	buf_done(&out);
	return tear_down(state);
}

static void number(size_t width, size_t value)
{
	while (width--)
		buf_char(&out, (char)(value >> 8 * width));
}

static struct str taken(void)
{
	struct str bytes = { arena_bytes(&arena, out.data, out.len), out.len };
	buf_clear(&out);
	return bytes;
}

static struct str extension(unsigned type, struct str data)
{
	number(2, type);
	number(2, data.len);
	buf_append(&out, data.data, data.len);
	return taken();
}

/* The extension server_name with one entry. */
static struct str named(const char *name)
{
	size_t len = strlen(name);

	number(2, len + 3);
	number(1, 0);
	number(2, len);
	buf_text(&out, name);
	return extension(0, taken());
}

static struct str joined(struct str a, struct str b)
{
	buf_append(&out, a.data, a.len);
	buf_append(&out, b.data, b.len);
	return taken();
}

/* A message with these extensions, in one record. */
static struct str message(struct str extensions)
{
	number(2, 0x0303);
	for (int i = 0; i < 32; i++)
		number(1, 7);
	number(1, 0);
	number(2, 2);
	number(2, 0x1301);
	number(1, 1);
	number(1, 0);
	number(2, extensions.len);
	buf_append(&out, extensions.data, extensions.len);
	struct str body = taken();
	number(1, 1);
	number(3, body.len);
	buf_append(&out, body.data, body.len);
	return taken();
}

static struct str records(struct str bytes, size_t each)
{
	for (size_t at = 0; at < bytes.len; at += each) {
		size_t len = bytes.len - at < each ? bytes.len - at : each;
		number(1, 22);
		number(2, 0x0301);
		number(2, len);
		buf_append(&out, bytes.data + at, len);
	}
	return taken();
}

static struct str hello_of(struct str extensions)
{
	return records(message(extensions), 16384);
}

static void assert_name(struct str bytes, const char *name, bool has_ech)
{
	struct tls_hello hello;
	struct error err = { 0 };

	if (tls_hello_parse(bytes, &hello, &err) != 1)
		fail_msg("refused: %s", err.text);
	assert_string_equal(hello.sni, name);
	assert_int_equal(hello.has_ech, has_ech);
	assert_int_equal(hello.len, bytes.len);
}

static void assert_refused(struct str bytes, const char *why)
{
	struct tls_hello hello = { .sni = "untouched" };
	struct error err = { 0 };

	assert_int_equal(tls_hello_parse(bytes, &hello, &err), -1);
	if (!strstr(err.text, why))
		fail_msg("refused with '%s', not '%s'", err.text, why);
	assert_string_equal(hello.sni, "untouched");
}

static void the_name_is_read_in_its_normal_form(void **state)
{
	char longest[254];

	for (size_t i = 0; i < 253; i++)
		longest[i] = i % 64 == 63 ? '.' : 'a';
	longest[253] = '\0';
	assert_name(hello_of(named("Files.Example_1.ORG")), "files.example_1.org", false);
	assert_name(hello_of(named("a.example.")), "a.example", false);
	assert_name(hello_of(named(longest)), longest, false);
	assert_name(hello_of(joined(extension(16, STR("\0\3\2h2")), named("a.example"))),
		"a.example", false);
	assert_name(hello_of(STR("")), "", false);
	assert_name(hello_of(extension(0x7a7a, STR(""))), "", false);
}

static void an_encrypted_hello_is_noticed(void **state)
{
	assert_name(hello_of(joined(named("a.example"), extension(0xfe0d, STR("x")))), "a.example",
		true);
	assert_name(hello_of(extension(0xffce, STR(""))), "", true);
}

static void a_hello_without_extensions_has_no_name(void **state)
{
	struct str whole = message(STR(""));
	char *bytes = arena_bytes(&arena, whole.data, whole.len);

	bytes[3] = (char)(bytes[3] - 2); /* the length of the list is left out, too */
	assert_name(records((struct str){ bytes, whole.len - 2 }, 16384), "", false);
}

/* Records of one byte, and packets that end anywhere. */
static void records_and_packets_end_anywhere(void **state)
{
	struct str whole = message(named("a.example"));
	struct tls_hello hello;

	for (size_t each = 1; each < whole.len + 2; each++) {
		struct str bytes = records(whole, each);
		assert_name(bytes, "a.example", false);
		for (size_t len = 0; len < bytes.len; len++)
			assert_int_equal(
				tls_hello_parse((struct str){ bytes.data, len }, &hello, NULL), 0);
		struct str more = joined(bytes, STR("\x14\3\3\0\1\1 early data"));
		assert_int_equal(tls_hello_parse(more, &hello, NULL), 1);
		assert_int_equal(hello.len, bytes.len);
	}
}

static void names_that_readers_may_differ_on_are_refused(void **state)
{
	static const char *const names[] = { "", ".", "a..b", ".a", "a..", "a b", "a/b", "a:443",
		"a%2e", "a\\b", "[::1]", "\xc3\xa4.example", "u@a.example", "*.example" };
	struct str host = { "\0\5\0\0\2\0a", 7 };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_refused(hello_of(named(names[i])), "server name");
	assert_refused(hello_of(extension(0, host)), "byte 0x00");
	char label[65];
	memset(label, 'a', 64);
	label[64] = '\0';
	assert_refused(hello_of(named(label)), "label");
	char name[300];
	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_refused(hello_of(named(name)), "1 to 253 bytes");
}

static void malformed_lists_of_names_are_refused(void **state)
{
	assert_refused(hello_of(joined(named("a.example"), named("a.example"))), "twice");
	assert_refused(hello_of(joined(extension(9, STR("")), extension(9, STR("")))), "twice");
	assert_refused(hello_of(extension(0, STR(""))), "malformed list");
	assert_refused(hello_of(extension(0, STR("\0\0"))), "malformed list");
	assert_refused(hello_of(extension(0, STR("\0\3\0\0\0"))), "1 to 253 bytes");
	assert_refused(hello_of(extension(0, STR("\0\4\1\0\1a"))), "not a host name");
	assert_refused(hello_of(extension(0, STR("\0\10\0\0\1a\0\0\1b"))), "several");
	assert_refused(hello_of(extension(0, STR("\0\5\0\0\1ax"))), "several");
	assert_refused(hello_of(extension(0, STR("\0\4\0\0\1ax"))), "malformed list");
	assert_refused(hello_of(extension(0, STR("\0\4\0\0\2a"))), "malformed list");
	assert_refused(hello_of(extension(0, STR("\0\7\0\0\1a"))), "malformed list");
	assert_refused(hello_of(joined(extension(41, STR("k")), named("a.example"))),
		"behind pre_shared_key");
}

/* One byte of a hello, changed. */
static struct str with(struct str bytes, size_t at, int value)
{
	char *copy = arena_bytes(&arena, bytes.data, bytes.len);
	copy[at] = (char)value;
	return (struct str){ copy, bytes.len };
}

static void what_is_no_hello_is_refused_by_its_first_bytes(void **state)
{
	struct str bytes = hello_of(named("a.example"));

	assert_refused(STR("G"), "not a TLS handshake");
	assert_refused(STR("SSH-2.0-x\r\n"), "not a TLS handshake");
	assert_refused(STR("\x80\x2e\1\3\1"), "not a TLS handshake"); /* SSLv2 */
	assert_refused(STR("\x16\2"), "version");
	assert_refused(STR("\x16\3\1\0\0"), "record of 0 bytes");
	assert_refused(STR("\x16\3\1\x40\1"), "record of 16385 bytes");
	assert_refused(STR("\x16\3\1\1\0\2"), "another message");
	assert_refused(STR("\x16\3\1\1\0\1\1\0\0"), "more than");
	assert_refused(with(bytes, 9, 2), "version 0x0203");
	assert_refused(with(bytes, 10, 0), "version 0x0300");
	assert_refused(with(bytes, 10, 4), "version 0x0304");
	assert_refused(with(bytes, 43, 33), "");
	assert_refused(with(bytes, 45, 3), "");
	assert_refused(with(bytes, 45, 0), "malformed ClientHello");
	assert_refused(with(bytes, 48, 0), "");
	assert_refused(with(bytes, 51, bytes.data[51] - 1), "malformed list of extensions");
	assert_refused(with(bytes, 55, bytes.data[55] + 1), "cut off");
	/* The record goes on behind the message, or another message is in it. */
	struct str whole = message(named("a.example"));
	assert_refused(records(joined(whole, STR("x")), 16384), "bytes behind");
	assert_refused(records(joined(whole, whole), 16384), "bytes behind");
}

static void a_long_hello_is_not_waited_for(void **state)
{
	char *padding = arena_alloc(&arena, 40000);
	struct tls_hello hello;

	memset(padding, 0, 40000);
	struct str whole = message(extension(21, (struct str){ padding, 15000 }));
	assert_name(records(whole, 8192), "", false);
	assert_refused(hello_of(extension(21, (struct str){ padding, 16340 })), "more than");
	/* Many short records count with their headers. */
	struct str many = records(whole, 10);
	assert_int_equal(
		tls_hello_parse((struct str){ many.data, TLS_HELLO_MAX - 1 }, &hello, NULL), 0);
	assert_refused((struct str){ many.data, TLS_HELLO_MAX }, "more than");
	assert_refused(many, "more than");
}

/* What Python's ssl, hence OpenSSL, sends first. */
static struct str real_hello(const char *settings)
{
	struct child child = CHILD_NONE;
	static char bytes[20000];
	size_t len = 0;
	ssize_t got;

	assert_int_equal(child_fork(&child, CHILD_PIPE, SIGKILL, NULL), 0);
	if (child.pid == 0) {
		const char *code = arena_printf(&arena,
			"import ssl, sys\n"
			"c = ssl.create_default_context()\n"
			"i, o = ssl.MemoryBIO(), ssl.MemoryBIO()\n"
			"name = 'Files.Example.ORG'\n"
			"%s\n"
			"if not name: c.check_hostname = False\n"
			"s = c.wrap_bio(i, o, server_hostname=name)\n"
			"try: s.do_handshake()\n"
			"except ssl.SSLWantReadError: pass\n"
			"sys.stdout.buffer.write(o.read())\n",
			settings);
		dup2(child.pipe, 1);
		execl(PYTHON, "python3", "-c", code, (char *)NULL);
		_exit(127);
	}
	while ((got = read(child.pipe, bytes + len, sizeof bytes - len)) > 0)
		len += (size_t)got;
	assert_int_equal(child_wait(&child), 0);
	assert_true(len > 100);
	return (struct str){ bytes, len };
}

static void hellos_of_openssl_are_read(void **state)
{
	struct tls_hello hello;

	if (access(PYTHON, X_OK) < 0)
		skip();
	struct str bytes = real_hello("");
	assert_name(bytes, "files.example.org", false);
	for (size_t len = 0; len < bytes.len; len++)
		assert_int_equal(tls_hello_parse((struct str){ bytes.data, len }, &hello, NULL), 0);
	assert_name(
		real_hello("c.set_alpn_protocols(['h2', 'http/1.1'])"), "files.example.org", false);
	assert_name(real_hello("c.maximum_version = ssl.TLSVersion.TLSv1_2"), "files.example.org",
		false);
	assert_name(real_hello("name = None"), "", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_hello, tear_down_hello)
		TEST(the_name_is_read_in_its_normal_form),
		TEST(an_encrypted_hello_is_noticed),
		TEST(a_hello_without_extensions_has_no_name),
		TEST(records_and_packets_end_anywhere),
		TEST(names_that_readers_may_differ_on_are_refused),
		TEST(malformed_lists_of_names_are_refused),
		TEST(what_is_no_hello_is_refused_by_its_first_bytes),
		TEST(a_long_hello_is_not_waited_for),
		TEST(hellos_of_openssl_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
