/* What a role is told reaches it as it was said. */
/* security: daemon */
#include "model/settings/role_settings.h"

#include <sys/mman.h>
#include <unistd.h>
#include "arena_fixture.h"

static int read_text(const char *text, struct role_settings *settings, struct error *err)
{
	int fd = memfd_create("settings", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	int status = role_settings_read(fd, &arena, settings, err);
	close(fd);
	return status;
}

static void all_of_it_reaches_the_role(void **state)
{
	static const char text[] = "serve:\n  hosts: [desk.example]\n  rate: 7\n"
				   "access:\n  subjects:\n    \"CN=ci,O=A Lab\": user\n"
				   "egress:\n  hosts:\n    two.test: [10.0.0.1, \"2001:db8::1\"]\n"
				   "  ports: [80, 8443]\n  idle_timeout: 5s\n"
				   "tools:\n  generator: [python3, -c, \"a\\nb\", \"\"]\n";
	struct config config;
	struct role_settings told = { 0 }, read;
	struct error err;
	uint16_t ports[NETWORK_SETTINGS_PORTS_MAX];

	assert_int_equal(config_parse(str_from(text), &arena, &config, &err), 0);
	told = (struct role_settings){ .home = "/a \"b\"\n",
		.log_is_json = true,
		.audit_max_bytes = INT64_MAX,
		.serve = config.serve,
		.egress = config.egress,
		.tools = config.tools };
	vec_push(&arena, &told.uids, ((struct text_pair){ "0", "admin" }));
	vec_push(&arena, &told.uids, ((struct text_pair){ "0", "none" }));
	const char *document = role_settings_print(&told, &arena);
	assert_int_equal(read_text(document, &read, &err), 0);
	assert_string_equal(role_settings_print(&read, &arena), document);
	assert_string_equal(read.home, told.home);
	assert_true(read.log_is_json);
	assert_null(read.log_level);
	assert_int_equal(read.audit_max_bytes, INT64_MAX);
	assert_int_equal(read.uids.count, 2);
	assert_string_equal(read.uids.items[1].value, "none");
	assert_string_equal(read.serve.subjects.items[0].key, "CN=ci,O=A Lab");
	assert_int_equal(read.serve.rate, 7);
	assert_string_equal(read.egress.hosts.items[1].value, "2001:db8::1");
	assert_int_equal(network_settings_ports(&read.egress, ports), 2);
	assert_int_equal(ports[1], 8443);
	assert_int_equal(read.egress.idle_ms, 5000);
	assert_string_equal(read.tools.generator.items[2], "a\nb");
	assert_string_equal(read.tools.generator.items[3], "");
}

/* A role is told its own part and nothing else. */
static void what_is_empty_is_not_told(void **state)
{
	const struct role_settings told = { .home = "/h", .store_url = "sqlite:carrel.db" };

	assert_string_equal(role_settings_print(&told, &arena),
		"{\"home\":\"/h\",\"store_url\":\"sqlite:carrel.db\"}");
}

static void what_nobody_can_have_told_is_refused(void **state)
{
	static const char *const bad[] = { "", "[]", "{\"home\":1}", "{\"house\":\"/h\"}",
		"{\"is_first\":\"yes\"}", "{\"egress\":{\"ports\":[80]}}", "{\"home\":\"/h\"" };
	struct role_settings read;
	struct error err;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(read_text(bad[i], &read, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_of_it_reaches_the_role, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_empty_is_not_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_nobody_can_have_told_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
