/* config.yaml: defaults, every key, and errors that name line and key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/str.h"
#include "format/text/json.h"
#include "model/settings/config.h"
#include "unit.h"

static void print_list(struct buf *out, const char *name, const text_list *list)
{
	buf_printf(out, "%s:", name);
	for (size_t i = 0; i < list->count; i++)
		buf_printf(out, " %s", list->items[i]);
	buf_char(out, '\n');
}

static void print(struct buf *out, const struct config *c)
{
	buf_printf(out, "max_envs: %llu\n", (unsigned long long)c->max_envs);
	buf_printf(out, "max_bytes: %llu\n", (unsigned long long)c->max_bytes);
	buf_printf(out, "ttl_ms: %llu\n", (unsigned long long)c->ttl_ms);
	buf_printf(out, "eviction: %s\n", eviction_policy_names[c->eviction]);
	buf_printf(out, "min_free_bytes: %llu\n", (unsigned long long)c->min_free_bytes);
	buf_printf(out, "install_timeout_ms: %llu\n", (unsigned long long)c->install_timeout_ms);
	buf_printf(out, "max_install_bytes: %llu\n", (unsigned long long)c->max_install_bytes);
	buf_printf(out, "exclude_newer: %s\n", c->exclude_newer ? c->exclude_newer : "-");
	buf_printf(out, "require_hashes: %d\nallow_build: %d\nallow_scripts: %d\n",
		c->require_hashes, c->allow_build, c->allow_scripts);
	buf_printf(out, "allow_urls: %d\nallow_options: %d\n", c->allow_urls, c->allow_options);
	print_list(out, "allowed_packages", &c->allowed_packages);
	print_list(out, "blocked_packages", &c->blocked_packages);
	buf_printf(out, "index: %s\n", c->index ? c->index : "-");
	print_list(out, "extra_indexes", &c->extra_indexes);
	print_list(out, "trusted_hosts", &c->trusted_hosts);
	print_list(out, "file_hosts", &c->file_hosts);
	buf_printf(out, "python: %s\n", c->python ? c->python : "-");
	print_list(out, "show", &c->show);
}

static const char defaults[] = "max_envs: 50\n"
			       "max_bytes: 10737418240\n"
			       "ttl_ms: 0\n"
			       "eviction: lru\n"
			       "min_free_bytes: 524288000\n"
			       "install_timeout_ms: 300000\n"
			       "max_install_bytes: 12884901888\n"
			       "exclude_newer: -\n"
			       "require_hashes: 0\n"
			       "allow_build: 0\n"
			       "allow_scripts: 0\n"
			       "allow_urls: 0\n"
			       "allow_options: 0\n"
			       "allowed_packages:\n"
			       "blocked_packages: os-sys setup-tools-rust\n"
			       "index: -\n"
			       "extra_indexes:\n"
			       "trusted_hosts:\n"
			       "file_hosts:\n"
			       "python: -\n"
			       "show:\n";

static void assert_config(const char *text, const char *expected)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out;
	struct config config;
	struct error err = { 0 };

	memset(&config, 0xee, sizeof config);
	if (config_parse(str_from(text), &arena, &config, &err) < 0)
		fail_msg("'%s': %s", text, err.text);
	buf_init(&out, 10000);
	print(&out, &config);
	assert_string_equal(out.data, expected);
}

/* `text` is what stands below "environments:", from line 2. */
static void assert_error(const char *text, const char *expected, const char *hint)
{
	auto_arena struct arena arena = { 0 };
	struct config config = { .max_envs = 77 };
	struct error err = { 0 };
	const char *whole = arena_printf(&arena, "environments:\n  %s\n", text);

	if (config_parse(str_from(whole), &arena, &config, &err) == 0)
		fail_msg("'%s' was read", text);
	assert_int_equal(config.max_envs, 77);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.text, expected);
	assert_string_equal(err.hint, hint);
}

static void the_defaults_are_these(void **state)
{
	auto_buf struct buf out;
	struct config config;

	config_defaults(&config);
	buf_init(&out, 10000);
	print(&out, &config);
	assert_string_equal(out.data, defaults);
}

static void nothing_said_is_the_default(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf nulls;

	assert_config("", defaults);
	assert_config("# nothing\n", defaults);
	assert_config("---\nenvironments:\n", defaults);
	assert_config("environments: ~\n", defaults);
	buf_init(&nulls, 10000);
	const char *section = "";
	for (size_t i = 0; config_key(i); i++) {
		const char *dot = strchr(config_key(i), '.');
		if (strncmp(section, config_key(i), (size_t)(dot - config_key(i))))
			buf_printf(&nulls, "%.*s:\n", (int)(dot - config_key(i)), config_key(i));
		section = config_key(i);
		buf_printf(&nulls, "  %s:\n", dot + 1);
	}
	assert_config(nulls.data, defaults);
}

static void every_key_is_read(void **state)
{
	assert_config("environments:\n"
		      "  max_envs: 7\n"
		      "  max_bytes: 1.5G\n"
		      "  ttl: 30d\n"
		      "  eviction: lfu\n"
		      "  min_free_bytes: 0\n"
		      "  install_timeout: 10m\n"
		      "  max_install_bytes: 512M\n"
		      "  exclude_newer: 2026-01-01\n"
		      "  require_hashes: true\n"
		      "  allow_build: true\n"
		      "  allow_scripts: true\n"
		      "  allow_urls: true\n"
		      "  allow_options: true\n"
		      "  allowed_packages: [Foo_Bar, a.B--c]\n"
		      "  blocked_packages:\n"
		      "    - Evil__Thing\n"
		      "  index: https://user:secret@index.example:8443/simple\n"
		      "  extra_indexes: [http://127.0.0.1:8080/simple/, 'https://[::1]/x']\n"
		      "  trusted_hosts: [index.example, '[::1]:8443']\n"
		      "  file_hosts: ['files.example:443']\n"
		      "  python: 3.10\n"
		      "system:\n"
		      "  show: [/opt/tool, '/srv/a b']\n",
		"max_envs: 7\n"
		"max_bytes: 1610612736\n"
		"ttl_ms: 2592000000\n"
		"eviction: lfu\n"
		"min_free_bytes: 0\n"
		"install_timeout_ms: 600000\n"
		"max_install_bytes: 536870912\n"
		"exclude_newer: 2026-01-01\n"
		"require_hashes: 1\n"
		"allow_build: 1\n"
		"allow_scripts: 1\n"
		"allow_urls: 1\n"
		"allow_options: 1\n"
		"allowed_packages: foo-bar a-b-c\n"
		"blocked_packages: evil-thing\n"
		"index: https://user:secret@index.example:8443/simple\n"
		"extra_indexes: http://127.0.0.1:8080/simple/ https://[::1]/x\n"
		"trusted_hosts: index.example [::1]:8443\n"
		"file_hosts: files.example:443\n"
		"python: 3.10\n"
		"show: /opt/tool /srv/a b\n");
}

static void an_empty_list_is_instead_of_the_default(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct config config;

	assert_int_equal(
		config_parse(STR("environments:\n  blocked_packages: []\n"), &arena, &config, NULL),
		0);
	assert_int_equal(config.blocked_packages.count, 0);
	/* And the default itself stays as it is when a list grows. */
	config_defaults(&config);
	vec_push(&arena, &config.blocked_packages, "more");
	config_defaults(&config);
	assert_int_equal(config.blocked_packages.count, 2);
}

static void wrong_values_name_line_and_key(void **state)
{
	assert_error("max_envs: x", "line 2: environments.max_envs: 'x' is not a number", "");
	assert_error("max_envs: '5'",
		"line 2: environments.max_envs: '5' in quotes is not a number", "");
	assert_error(
		"max_envs: 0", "line 2: environments.max_envs: '0' is not from 1 to 1000000", "");
	assert_error("max_envs: 1000001",
		"line 2: environments.max_envs: '1000001' is not from 1 to 1000000", "");
	assert_error("max_envs: -1", "line 2: environments.max_envs: '-1' is not a number", "");
	assert_error("max_bytes: 10X",
		"line 2: environments.max_bytes: '10X' is not a size; try 512M or 1G", "");
	assert_error("max_bytes: 1K",
		"line 2: environments.max_bytes: '1K' is not from 1.0M to 8.0E", "");
	assert_error("\n  # c\n  ttl: 1ms",
		"line 4: environments.ttl: '1ms' is not from 1s to 36525d, and not 0 (no limit)",
		"");
	assert_error("install_timeout: 0",
		"line 2: environments.install_timeout: '0' is not from 1s to 1d", "");
	assert_error("install_timeout: 2d",
		"line 2: environments.install_timeout: '2d' is not from 1s to 1d", "");
	assert_error("eviction: mru",
		"line 2: environments.eviction: 'mru' is not lru, lfu or fifo", "");
	assert_error("allow_build: yes",
		"line 2: environments.allow_build: 'yes' is not true or false", "");
	assert_error("allow_build: 'true'",
		"line 2: environments.allow_build: 'true' is not true or false (without quotes)",
		"");
	assert_error("exclude_newer: 2026-02-30",
		"line 2: environments.exclude_newer: '2026-02-30' is not a date; try 2026-01-01 or "
		"2026-01-01T00:00:00Z",
		"");
	assert_error("python: --help",
		"line 2: environments.python: '--help' is not a Python; try \"3.12\" or "
		"/usr/bin/python3",
		"");
	assert_error("max_envs: [5]",
		"line 2: environments.max_envs: is a list, but a value is expected", "");
	assert_error("max_envs:\n    a: 1",
		"line 2: environments.max_envs: has keys below it, but a value is expected", "");
	assert_error("max_envs: 5\n  max_envs: 6",
		"line 3: environments.max_envs: already given in line 2", "");
	assert_error("max_envs: &a 5",
		"line 2: environments.max_envs: an anchor (&): not supported in this file", "");
}

static void wrong_items_name_their_own_line(void **state)
{
	assert_error("blocked_packages:\n  - ok\n  - not ok",
		"line 4: environments.blocked_packages: 'not ok' is not a package name", "");
	assert_error("blocked_packages: os-sys",
		"line 2: environments.blocked_packages: 'os-sys' is not a list; try [os-sys]", "");
	assert_error("file_hosts: [a, ~]", "line 2: environments.file_hosts: an item is null", "");
}

static void hosts_and_urls_are_checked(void **state)
{
	static const char *const hosts[] = { "", "a b", "a/b", "a:0", "a:65536", "a:", ":1", "-a",
		"[::1", "[]", "[::1]x", "a:1:2", "*" };
	static const char *const urls[] = { "", "x", "ftp://a/", "https://", "https:///x",
		"https://a b/", "https://a:x/", "file:///x", "//a/b", "https://u:p@/" };
	char text[100], expected[200];

	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		str_format(text, sizeof text, "trusted_hosts: ['%s']", hosts[i]);
		str_format(expected, sizeof expected,
			"line 2: environments.trusted_hosts: '%s' is not a host or host:port",
			hosts[i]);
		assert_error(text, expected, "");
	}
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		str_format(text, sizeof text, "index: '%s'", urls[i]);
		assert_error(
			text, "line 2: environments.index: not an http:// or https:// URL", "");
	}
}

static void a_path_to_show_is_absolute_and_plain(void **state)
{
	static const char *const wrong[] = { "", "opt", "/opt/", "/opt//x", "/opt/../x", "./x" };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		auto_arena struct arena arena = { 0 };
		struct config config;
		struct error err = { 0 };
		char text[100], expected[200];
		str_format(text, sizeof text, "system:\n  show: ['%s']", wrong[i]);
		str_format(expected, sizeof expected,
			"line 2: system.show: '%s' is not an absolute, plain path", wrong[i]);
		assert_int_equal(config_parse(str_from(text), &arena, &config, &err), -1);
		assert_string_equal(err.text, expected);
	}
}

static void unknown_keys_get_the_nearest_as_a_hint(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct config config;
	struct error err = { 0 };

	assert_error("max_env: 5", "line 2: environments.max_env: unknown key",
		"did you mean environments.max_envs?");
	assert_error("allow-build: true", "line 2: environments.allow-build: unknown key",
		"did you mean environments.allow_build?");
	assert_error("zzzzzzzzzz: 1", "line 2: environments.zzzzzzzzzz: unknown key",
		"carrel-config(5) lists the keys");
	assert_int_equal(config_parse(STR("max_envs: 5"), &arena, &config, &err), -1);
	assert_string_equal(err.text, "line 1: max_envs: unknown key");
	assert_string_equal(err.hint, "did you mean environments.max_envs?");
	assert_int_equal(config_parse(STR("environment:\n  a: 1"), &arena, &config, &err), -1);
	assert_string_equal(err.text, "line 1: environment: unknown key");
	assert_string_equal(err.hint, "did you mean environments?");
	assert_int_equal(config_parse(STR("sistem:\n  a: 1"), &arena, &config, &err), -1);
	assert_string_equal(err.hint, "did you mean system?");
	assert_int_equal(config_parse(STR("system:\n  shows: []"), &arena, &config, &err), -1);
	assert_string_equal(err.hint, "did you mean system.show?");
	assert_int_equal(config_parse(STR("environments: 1"), &arena, &config, &err), -1);
	assert_string_equal(err.text, "line 1: environments: keys are expected below it");
	assert_int_equal(config_parse(STR("- a"), &arena, &config, &err), -1);
	assert_string_equal(err.text, "line 1: a list, where 'environments:' is expected");
	assert_int_equal(config_parse(STR("- a"), &arena, &config, NULL), -1);
}

static void the_networks_of_sandboxes_are_read(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct config config;
	struct error err;
	const char *text = "egress:\n"
			   "  hosts:\n"
			   "    Origin.Test: 127.0.0.1\n"
			   "    two.test: [10.0.0.1, \"2001:db8::1\"]\n"
			   "  allow_ranges: [10.0.0.0/8]\n"
			   "  ports: [80, 8443]\n"
			   "  bandwidth: 1M\n"
			   "  connections: 7\n"
			   "  idle_timeout: 5s\n";

	assert_int_equal(config_parse(str_from(text), &arena, &config, &err), 0);
	uint16_t ports[NETWORK_SETTINGS_PORTS_MAX];
	const struct network_settings *egress = &config.egress;
	assert_int_equal(egress->hosts.count, 3);
	assert_string_equal(egress->hosts.items[0].key, "origin.test");
	assert_string_equal(egress->hosts.items[2].value, "2001:db8::1");
	assert_string_equal(egress->ranges.items[0], "10.0.0.0/8");
	assert_int_equal(network_settings_ports(egress, ports), 2);
	assert_int_equal(ports[1], 8443);
	assert_int_equal(egress->bandwidth, 1048576);
	assert_int_equal(egress->connections, 7);
	assert_int_equal(egress->idle_ms, 5000);
	static const char *const bad[] = { "egress: {hosts: 1}", "egress:\n  hosts:\n    a: b\n",
		"egress:\n  hosts:\n    127.0.0.1: 127.0.0.1\n",
		"egress:\n  allow_ranges: [10.0.0.1/8]\n", "egress:\n  ports: [0]\n",
		"egress:\n  ports: 80\n", "egress:\n  connections: 0\n" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(config_parse(str_from(bad[i]), &arena, &config, &err), -1);
}

/* Both ways: no key without a word about it, and no word about a key that isn't there. */
/* Every value is shown as the file could have it: read again, it is the same. */
static void what_is_shown_can_be_read(void **state)
{
	static const char text[] =
		"environments:\n  ttl: 36h\n  max_bytes: 1.5G\n  eviction: lfu\n"
		"  index: https://u:secret@index.example/simple\n"
		"egress:\n  hosts:\n    a.test: [10.0.0.1, 10.0.0.2]\n    b.test: 10.0.0.3\n"
		"  ports: [80, 8443]\n"
		"serve:\n  log: json\n  idle_sandbox: 1500ms\n  captured_output: 1536K\n"
		"archives:\n  format: tar.gz\naudit:\n  on_full: drop\n"
		"system:\n  landlock: writes\n";
	static const struct {
		const char *key, *shown;
		int line;
	} rows[] = {
		{ "environments.ttl", "\"36h\"", 2 },
		{ "environments.max_bytes", "\"1536M\"", 3 },
		{ "environments.eviction", "\"lfu\"", 4 },
		{ "environments.index", "\"https://***@index.example/simple\"", 5 },
		{ "environments.python", "null", 0 },
		{ "environments.blocked_packages", "[\"os-sys\",\"setup-tools-rust\"]", 0 },
		{ "egress.hosts",
			"{\"a.test\":[\"10.0.0.1\",\"10.0.0.2\"],\"b.test\":\"10.0.0.3\"}", 7 },
		{ "egress.ports", "[\"80\",\"8443\"]", 10 },
		{ "serve.log", "\"json\"", 12 },
		{ "serve.idle_sandbox", "\"1500ms\"", 13 },
		{ "serve.captured_output", "\"1536K\"", 14 },
		{ "serve.rate", "0", 0 },
		{ "serve.insecure", "false", 0 },
		{ "archives.format", "\"tar.gz\"", 16 },
		{ "audit.on_full", "\"drop\"", 18 },
		{ "system.landlock", "\"writes\"", 20 },
	};
	auto_arena struct arena arena = { 0 };
	struct config config;
	struct error err;

	assert_int_equal(config_parse(str_from(text), &arena, &config, &err), 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_buf struct buf out = buf_empty(4096);
		struct json j = json_to(&out, false);
		char expected[256];
		size_t index = 0;

		while (strcmp(config_key(index), rows[i].key) != 0)
			index++;
		json_object(&j, NULL);
		config_print_value(&j, &config, index);
		json_end(&j);
		json_finish(&j);
		str_format(expected, sizeof expected, "{\"value\":%s}", rows[i].shown);
		assert_string_equal(out.data, expected);
		assert_int_equal(config_from(&config, index).line, rows[i].line);
	}
	config_override(&config, "serve.log", "--log", &arena);
	for (size_t i = 0; config_key(i); i++)
		assert_true(!config_from(&config, i).option ==
			    (strcmp(config_key(i), "serve.log") != 0));
}

static void the_manual_has_every_key(void **state)
{
	char path[4096], line[512], key[128];
	size_t described = 0, count = 0;

	str_format(path, sizeof path, "%s/../../man/carrel-config.5", getenv("CARREL_GOLDEN_DIR"));
	FILE *page = fopen(path, "r");
	assert_non_null(page);
	while (fgets(line, sizeof line, page)) {
		bool is_known = false;

		if (sscanf(line, ".It Va %127s :", key) != 1)
			continue;
		for (size_t i = 0; config_key(i); i++)
			is_known |= strcmp(strchr(config_key(i), '.') + 1, key) == 0;
		if (!is_known)
			fail_msg("carrel-config(5) has '%s', which is no key", key);
		described++;
	}
	fclose(page);
	while (config_key(count))
		count++;
	assert_int_equal(described, count);
}

static void landlock_judges_everything_or_writes(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct config config;
	struct error err;
	assert_int_equal(
		config_parse(STR("system:\n  landlock: writes\n"), &arena, &config, &err), 0);
	assert_true(config.landlock_writes);
	assert_int_equal(config_parse(STR("system:\n  landlock: all\n"), &arena, &config, &err), 0);
	assert_false(config.landlock_writes);
	assert_int_equal(
		config_parse(STR("system:\n  landlock: off\n"), &arena, &config, &err), -1);
	assert_string_equal(err.text, "line 2: system.landlock: 'off' is not all or writes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_these),
		cmocka_unit_test(nothing_said_is_the_default),
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(an_empty_list_is_instead_of_the_default),
		cmocka_unit_test(wrong_values_name_line_and_key),
		cmocka_unit_test(wrong_items_name_their_own_line),
		cmocka_unit_test(hosts_and_urls_are_checked),
		cmocka_unit_test(a_path_to_show_is_absolute_and_plain),
		cmocka_unit_test(unknown_keys_get_the_nearest_as_a_hint),
		cmocka_unit_test(landlock_judges_everything_or_writes),
		cmocka_unit_test(what_is_shown_can_be_read),
		cmocka_unit_test(the_manual_has_every_key),
		cmocka_unit_test(the_networks_of_sandboxes_are_read),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
