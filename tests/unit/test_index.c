/* Which indexes builds use: the order of who is asked, what each says, and what no index can be. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/path.h"
#include "envs/python/index.h"
#include "unit.h"

static const char *const variables[] = { "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX",
	"UV_EXTRA_INDEX_URL", "UV_INSECURE_HOST", "UV_CONFIG_FILE", "UV_NO_CONFIG", "PIP_INDEX_URL",
	"PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_CERT", "PIP_CONFIG_FILE", "SSL_CERT_FILE",
	"XDG_CONFIG_HOME" };

static struct arena arena;
static char home[64];
static struct index_asked asked;
static struct config config;
static struct error err;

static int set_up(void **state)
{
	arena_init(&arena);
	str_copy(home, sizeof home, "/tmp/unit-index-XXXXXX");
	if (!mkdtemp(home))
		return -1;
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		unsetenv(variables[i]);
	setenv("HOME", home, 1);
	asked = (struct index_asked){ 0 };
	config = (struct config){ 0 };
	return 0;
}

static int tear_down(void **state)
{
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct error ignored;

	arena_done(&arena);
	return path_remove_tree(tmp, path_basename(home), &ignored);
}

static const char *in_home(const char *name)
{
	return arena_printf(&arena, "%s/%s", home, name);
}

/* Writes the file `name` below the home, with the directories it needs. */
static const char *write_file(const char *name, const char *text)
{
	char *path = arena_printf(&arena, "%s/%s", home, name);
	FILE *file;

	for (char *c = path + strlen(home) + 1; (c = strchr(c, '/')); *c++ = '/') {
		*c = '\0';
		mkdir(path, 0755);
	}
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	return path;
}

static struct index_set find(void)
{
	struct index_set set = { 0 };

	if (index_find(&asked, &config, &arena, &set, &err) < 0)
		fail_msg("%s", err.text);
	return set;
}

static void assert_refused(enum error_code code, const char *message)
{
	struct index_set set = { .index = "untouched" };

	assert_int_equal(index_find(&asked, &config, &arena, &set, &err), -1);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, message))
		fail_msg("%s", err.text);
	assert_string_equal(set.index, "untouched");
}

static void without_configuration_there_is_none(void **state)
{
	setenv("PIP_CONFIG_FILE", "/dev/null", 1);
	setenv("UV_NO_CONFIG", "1", 1);
	write_file(".config/uv/uv.toml", "index-url = 'https://a.example'");
	write_file(".config/pip/pip.conf", "[global]\nindex-url = https://b.example");
	assert_null(find().index);
	assert_int_equal(find().extra.count, 0);
	assert_int_equal(find().trusted_hosts.count, 0);
}

static void who_is_asked_first_decides(void **state)
{
	write_file(".pip/pip.conf", "[global]\nindex-url = https://legacy.example\n");
	assert_string_equal(find().index, "https://legacy.example");
	write_file(".config/pip/pip.conf", "[global]\nindex-url = https://pip.example\n");
	assert_string_equal(find().index, "https://pip.example");
	write_file("x/pip/pip.conf", "[global]\nindex-url = https://xdg.example\n");
	setenv("XDG_CONFIG_HOME", in_home("x"), 1);
	assert_string_equal(find().index, "https://xdg.example");
	setenv("PIP_CONFIG_FILE",
		write_file("own.conf", "[global]\nindex-url = https://g.example\n[install]\n"
				       "index-url = https://own.example\n"),
		1);
	assert_string_equal(find().index, "https://own.example");
	write_file("x/uv/uv.toml", "index-url = 'https://uv.example'\n");
	assert_string_equal(find().index, "https://uv.example");
	setenv("UV_CONFIG_FILE", write_file("own.toml", "[pip]\nindex-url='https://o.example'"), 1);
	assert_string_equal(find().index, "https://o.example");
	setenv("PIP_INDEX_URL", "https://pipenv.example", 1);
	assert_string_equal(find().index, "https://pipenv.example");
	setenv("UV_INDEX_URL", "https://uvenv.example", 1);
	assert_string_equal(find().index, "https://uvenv.example");
	setenv("UV_DEFAULT_INDEX", "inner=https://default.example/a?b=c", 1);
	assert_string_equal(find().index, "https://default.example/a?b=c");
	config.index = "https://config.example";
	assert_string_equal(find().index, "https://config.example");
	asked.index = "http://u:p@asked.example:8080/simple";
	assert_string_equal(find().index, "http://u:p@asked.example:8080/simple");
}

static void nothing_is_slipped_in_beside_an_index_that_was_named(void **state)
{
	struct index_set set;

	setenv("PIP_EXTRA_INDEX_URL", "https://extra.example https://more.example", 1);
	setenv("PIP_TRUSTED_HOST", "extra.example", 1);
	asked.index = "https://asked.example";
	set = find();
	assert_int_equal(set.extra.count, 0);
	assert_string_equal(set.trusted_hosts.items[0], "extra.example");
	asked.index = NULL;
	config.index = NULL;
	write_file(".config/pip/pip.conf", "[global]\nindex-url=https://i.example\n"
					   "extra-index-url=https://other.example\n");
	set = find();
	assert_string_equal(set.index, "https://i.example");
	assert_int_equal(set.extra.count, 2);
	assert_string_equal(set.extra.items[1], "https://more.example");
	vec_push(&arena, &asked.extra, "https://mine.example");
	set = find();
	assert_string_equal(set.index, "https://i.example");
	assert_int_equal(set.extra.count, 1);
	assert_string_equal(set.extra.items[0], "https://mine.example");
}

static void files_say_extra_indexes_and_hosts_too(void **state)
{
	struct index_set set;

	write_file(".config/pip/pip.conf",
		"[global]\nindex_url = https://i.example\nextra-index-url =\n  https://a.example\n"
		"  https://b.example\ntrusted-host = a.example b.example:8080\n"
		"find-links = /x\n");
	set = find();
	assert_int_equal(set.extra.count, 2);
	assert_string_equal(set.extra.items[1], "https://b.example");
	assert_int_equal(set.trusted_hosts.count, 2);
	assert_string_equal(set.trusted_hosts.items[1], "b.example:8080");
	write_file(".config/uv/uv.toml",
		"allow-insecure-host = ['[::1]:80']\n[[index]]\nname = 'x'\nurl = "
		"'https://x.example'\n"
		"[[index]]\nurl = 'https://d.example'\ndefault = true\n[[index]]\n"
		"url = 'https://e.example'\nexplicit = true\n[pip]\nextra-index-url = "
		"['https://y.example']\n"
		"universal = true\n");
	set = find();
	assert_string_equal(set.index, "https://d.example");
	assert_int_equal(set.extra.count, 2);
	assert_string_equal(set.extra.items[0], "https://x.example");
	assert_string_equal(set.extra.items[1], "https://y.example");
	assert_string_equal(set.trusted_hosts.items[0], "[::1]:80");
	write_file(
		".config/uv/uv.toml", "index = [{ url = 'https://f.example', default = true }]\n");
	assert_string_equal(find().index, "https://f.example");
	setenv("UV_INDEX", "a=https://p.example https://q.example", 1);
	set = find();
	assert_string_equal(set.extra.items[0], "https://p.example");
	assert_string_equal(set.extra.items[1], "https://q.example");
}

static void only_urls_with_a_host_are_indexes(void **state)
{
	static const char *const bad[] = { "index.example", "file:///x", "ftp://index.example",
		"https://", "https:///x", "http://user@/x", "https://a b", "https://a.example/\n",
		"https://a.example:x", "https://a.example:0", "https://a.example:65536",
		"https://[::1", "https://\xc3\xa4.example", "--index-url", "https:a.example" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		asked.index = bad[i];
		assert_refused(ERR_INVALID, "--index: '");
	}
	asked.index = NULL;
	setenv("PIP_INDEX_URL", "https://u:secret/x@host.example", 1);
	assert_refused(ERR_INVALID, "PIP_INDEX_URL: 'https://***@host.example' is not an http");
	unsetenv("PIP_INDEX_URL");
	setenv("UV_INSECURE_HOST", "https://x", 1);
	assert_refused(ERR_INVALID, "'https://x' is not a host or host:port");
	unsetenv("UV_INSECURE_HOST");
	write_file(".config/pip/pip.conf", "[global]\nindex-url = ./simple\n");
	assert_refused(ERR_INVALID, "/.config/pip/pip.conf: './simple' is not an http");
	/* What isn't used isn't judged. */
	asked.index = "https://[::1]:8443/simple";
	assert_string_equal(find().index, "https://[::1]:8443/simple");
}

static void broken_and_missing_files_are_named(void **state)
{
	write_file(".config/pip/pip.conf", "[global]\nnonsense\n");
	assert_refused(ERR_INVALID, "/.config/pip/pip.conf: line 2: neither a section nor key");
	write_file(".config/uv/uv.toml", "\nindex-url = 'x\n");
	assert_refused(ERR_INVALID, "/.config/uv/uv.toml: line 2: a string isn't closed");
	setenv("UV_CONFIG_FILE", in_home("none.toml"), 1);
	assert_refused(ERR_NOT_FOUND, "/none.toml'");
	setenv("UV_CONFIG_FILE", home, 1);
	assert_refused(ERR_INVALID, "is not a regular file");
	assert_int_equal(mkfifo(in_home("fifo"), 0600), 0);
	setenv("UV_CONFIG_FILE", in_home("fifo"), 1);
	assert_refused(ERR_INVALID, "is not a regular file");
}

static void certificates_are_found_in_order(void **state)
{
	write_file(".config/pip/pip.conf",
		arena_printf(&arena, "[global]\ncert = %s\n", write_file("a.pem", "x")));
	assert_string_equal(find().certificates, in_home("a.pem"));
	setenv("PIP_CERT", write_file("b.pem", "x"), 1);
	assert_string_equal(find().certificates, in_home("b.pem"));
	setenv("SSL_CERT_FILE", write_file("c.pem", "x"), 1);
	assert_string_equal(find().certificates, in_home("c.pem"));
	setenv("SSL_CERT_FILE", in_home("none.pem"), 1);
	assert_refused(ERR_NOT_FOUND, "SSL_CERT_FILE: read the certificates");
}

static void secrets_are_not_shown(void **state)
{
	static const char *const cases[][2] = {
		{ "https://index.example/simple", "https://index.example/simple" },
		{ "https://u:p@index.example/simple", "https://***@index.example/simple" },
		{ "https://token@index.example:8080/", "https://***@index.example:8080/" },
		{ "https://u:p@x@index.example", "https://***@index.example" },
		{ "https://u:p/w@index.example/s", "https://***@index.example/s" },
		{ "https://index.example/a@b", "https://index.example/a@b" },
		{ "u:p@index.example", "***@index.example" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(index_redact(&arena, cases[i][0]), cases[i][1]);
}

static void the_default_is_read_from_help(void **state)
{
	struct str help =
		STR("  --default-index <DEFAULT_INDEX>\n    The default package index (by "
		    "default: <https://index.example/simple>) [env: X]\n");

	assert_string_equal(index_default_in_help(help, &arena), "https://index.example/simple");
	assert_null(index_default_in_help(STR(""), &arena));
	assert_null(index_default_in_help(STR("(by default: <"), &arena));
	assert_null(index_default_in_help(STR("(by default: <x>"), &arena));
	assert_null(index_default_in_help(STR("(by default: <https://a.example\0>"), &arena));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_configuration_there_is_none),
		TEST(who_is_asked_first_decides),
		TEST(nothing_is_slipped_in_beside_an_index_that_was_named),
		TEST(files_say_extra_indexes_and_hosts_too),
		TEST(only_urls_with_a_host_are_indexes),
		TEST(broken_and_missing_files_are_named),
		TEST(certificates_are_found_in_order),
		TEST(secrets_are_not_shown),
		TEST(the_default_is_read_from_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
