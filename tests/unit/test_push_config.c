/* model/agents/push_config.c: where notifications of a task go. */
/* security: services */
#include "model/agents/push_config.h"

#include <string.h>
#include "unit.h"

static struct arena arena;

static int read_config(const char *json, bool is_old, struct push_config *config, struct error *err)
{
	struct json_value *value;
	assert_int_equal(json_read(str_from(json), &arena, &value, err), 0);
	return push_config_read(value, is_old, config, err);
}

static void a_config_of_each_version_is_read_and_shown_without_credentials(void **state)
{
	static const char one[] =
		"{\"id\":\"x\",\"taskId\":\"t\",\"url\":\"https://A.test:8443/p?q\","
		"\"token\":\"t t\",\"authentication\":{\"scheme\":\"Bearer\","
		"\"credentials\":\"hidden\"},\"tenant\":\"\"}";
	static const char old[] = "{\"url\":\"http://[2001:db8::1]/\",\"authentication\":"
				  "{\"schemes\":[\"Basic\",\"x\"],\"credentials\":\"hidden\"}}";
	struct push_config config = { 0 };
	struct error err;
	auto_buf struct buf out = buf_empty(1000);
	struct json j = json_to(&out, false);
	assert_int_equal(read_config(one, false, &config, &err), 0);
	assert_string_equal(config.config, "x");
	assert_string_equal(config.scheme, "Bearer");
	assert_string_equal(config.credentials, "hidden");
	assert_string_equal(push_config_host(&config, &arena), "A.test");
	push_config_print(&j, NULL, &config, false);
	assert_string_equal(out.data, "{\"taskId\":\"\",\"id\":\"x\",\"url\":\"https://A.test:8443/"
				      "p?q\",\"token\":\"t t\","
				      "\"authentication\":{\"scheme\":\"Bearer\"}}");
	assert_int_equal(read_config(old, true, &config, &err), 0);
	assert_null(config.config);
	assert_string_equal(config.scheme, "Basic");
	assert_string_equal(push_config_host(&config, &arena), "2001:db8::1");
	buf_clear(&out);
	config.config = "y";
	j = json_to(&out, false);
	push_config_print(&j, NULL, &config, true);
	assert_string_equal(out.data,
		"{\"taskId\":\"\",\"pushNotificationConfig\":{\"id\":\"y\",\"url\":"
		"\"http://[2001:db8::1]/\",\"authentication\":{\"schemes\":[\"Basic\"]}}}");
}

static void what_could_mislead_is_refused_and_no_secret_is_repeated(void **state)
{
	static const char *const wrong[] = {
		"{}",
		"{\"url\":\"\"}",
		"{\"url\":null}",
		"{\"url\":\"file:///etc/passwd\"}",
		"{\"url\":\"HTTP://x/\"}",
		"{\"url\":\"http://hidden@x/\"}",
		"{\"url\":\"http://@x/\"}",
		"{\"url\":\"http://x:99999/\"}",
		"{\"url\":\"http://x%00y/\"}",
		"{\"url\":\"http://x\\\\@y/\"}",
		"{\"url\":\"http://x/#hidden\"}",
		"{\"url\":\"http://127.1/\"}",
		"{\"url\":\"http://0177.0.0.1/\"}",
		"{\"url\":\"http://[::1/\"}",
		"{\"url\":\"http://x/\",\"token\":\"hidden\\n\"}",
		"{\"url\":\"http://x/\",\"token\":\"hidden\\u0000\"}",
		"{\"url\":\"http://x/\",\"authentication\":{\"scheme\":\"A B\"}}",
		"{\"url\":\"http://x/\",\"authentication\":{\"scheme\":\"A\",\"credentials\":7}}",
		"{\"url\":\"http://x/\",\"authentication\":{}}",
	};
	struct push_config config;
	struct error err;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(read_config(wrong[i], false, &config, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_null(strstr(err.text, "hidden"));
	}
	assert_int_equal(read_config("{\"url\":\"http://x/\",\"authentication\":{\"schemes\":[7]}}",
				 true, &config, &err),
		-1);
	assert_int_equal(push_config_read(NULL, false, &config, &err), -1);
}

static void a_config_goes_to_the_hosts_that_are_listed(void **state)
{
	static const struct {
		const char *url, *hosts[3];
		bool is_allowed, is_port_named;
	} cases[] = {
		{ "https://a.test/x", { "a.test" }, true, false },
		{ "https://A.Test:8443/x", { "a.test" }, true, false },
		{ "https://a.test:8443/", { "b.test", "a.test:8443" }, true, true },
		{ "http://a.test/", { "a.test:443" }, false, false },
		{ "https://b.a.test/", { "*.a.test" }, true, false },
		{ "https://a.test/", { "*.a.test" }, false, false },
		{ "https://a.test.evil.test/", { "a.test" }, false, false },
		{ "https://evil.test/a.test", { "a.test" }, false, false },
		{ "http://127.0.0.1/", { "a.test", "*.test" }, false, false },
		{ "http://[::1]/", { "[::1]:80" }, true, true },
		{ "https://any.test/", { "*" }, true, false },
		{ "https://a.test/", { NULL }, false, false },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct push_config config = { .url = cases[i].url };
		text_list hosts = { 0 };
		struct error err = { 0 };
		bool is_port_named = false;
		for (const char *const *host = cases[i].hosts; *host; host++)
			vec_push(&arena, &hosts, *host);
		if (push_config_check(&config, &hosts, &is_port_named, &err) !=
			(cases[i].is_allowed ? 0 : -1))
			fail_msg("%s: %s", cases[i].url, err.text);
		assert_int_equal(is_port_named, cases[i].is_port_named);
		assert_int_equal(err.code, cases[i].is_allowed ? ERR_NONE : ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_config_of_each_version_is_read_and_shown_without_credentials),
		cmocka_unit_test(what_could_mislead_is_refused_and_no_secret_is_repeated),
		cmocka_unit_test(a_config_goes_to_the_hosts_that_are_listed),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_done(&arena);
	return failed;
}
