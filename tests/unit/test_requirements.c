/* Requirement files: what pip takes is taken, for what it is; what no reader or not every reader
 * takes is refused, with its line. The two tables are what the reference implementation of the
 * standards says about each line. */
/* security: packages */
#include <string.h>
#include "format/packages/pep508.h"
#include "format/packages/requirements.h"
#include "arena_fixture.h"

static const char *const good[] = { "a==1", "a>=1", "a==1.0", "a>=1.0", "a~=1.0", "a==v1.2",
	"a>=v1.2", "a~=v1.2", "a==1!2.0", "a>=1!2.0", "a~=1!2.0", "a==1.0a1", "a>=1.0a1",
	"a~=1.0a1", "a==1.0.alpha-1", "a>=1.0.alpha-1", "a~=1.0.alpha-1", "a==1.0-beta_2",
	"a>=1.0-beta_2", "a~=1.0-beta_2", "a==1.0rc1", "a>=1.0rc1", "a~=1.0rc1", "a==1.0c1",
	"a>=1.0c1", "a~=1.0c1", "a==1.0preview3", "a>=1.0preview3", "a~=1.0preview3", "a==1.0pre",
	"a>=1.0pre", "a~=1.0pre", "a==1.0a", "a>=1.0a", "a~=1.0a", "a==1.0.post1", "a>=1.0.post1",
	"a~=1.0.post1", "a==1.0-1", "a>=1.0-1", "a~=1.0-1", "a==1.0post", "a>=1.0post",
	"a~=1.0post", "a==1.0.rev2", "a>=1.0.rev2", "a~=1.0.rev2", "a==1.0-r3", "a>=1.0-r3",
	"a~=1.0-r3", "a==1.0.dev1", "a>=1.0.dev1", "a~=1.0.dev1", "a==1.0dev", "a>=1.0dev",
	"a~=1.0dev", "a==1.0_dev-4", "a>=1.0_dev-4", "a~=1.0_dev-4", "a==1.0a1.post2.dev3",
	"a>=1.0a1.post2.dev3", "a~=1.0a1.post2.dev3", "a==1.0+local", "a==1.0+l.1-2_x", "a==1.0.*",
	"a==1.*", "a==1!1.*", "a==2024.1", "a>=2024.1", "a~=2024.1", "a==00.1", "a>=00.1",
	"a~=00.1", "a==1.0.A1", "a>=1.0.A1", "a~=1.0.A1", "a==1.0.POST1", "a>=1.0.POST1",
	"a~=1.0.POST1", "a==1.0-a1", "a>=1.0-a1", "a~=1.0-a1", "a==V1.0", "a>=V1.0", "a~=V1.0",
	"a==1.0.post.dev", "a>=1.0.post.dev", "a~=1.0.post.dev", "a==1.0rc.1.post.1.dev.1",
	"a>=1.0rc.1.post.1.dev.1", "a~=1.0rc.1.post.1.dev.1", "a==1.0-dev-1", "a>=1.0-dev-1",
	"a~=1.0-dev-1", "a==1.0.r", "a>=1.0.r", "a~=1.0.r", "a===1.0", "a!=1.0", "a<=1.0", "a<1.0",
	"a>1.0", "a====1.0", "a1.0", "requests", "Foo.Bar_baz", "a", "A-1", "x_y", "0x", "a--b",
	"a.-_b", "a>1", "a[a]", "a[a]>1", "a[a,b]", "a[a,b]>1", "a[ a , b ]", "a[ a , b ]>1", "a[]",
	"a[]>1", "a[ ]", "a[ ]>1", "a[a.b_c-d]", "a[a.b_c-d]>1", "a [a] >1",
	"a; python_version<\"3.8\"", "a;python_version < '3'",
	"a ; sys_platform=='linux' and os_name=='posix'",
	"a; (python_version<\"3\" or os.name == \"nt\") and extra==\"x\"", "a; \"a\" in \"b\"",
	"a; sys_platform not in \"x y\"", "a; os_name==\"a\"and os_name==\"b\"",
	"a; os_name===\"x\"", "a; os_name~=\"1.0\"", "a; python_version in os_name",
	"a; os_name == \"a'b\"",
	("a; implementation_version>=\"3\" or (platform_python_implementation!=\"PyPy\" and "
	 "(platform_machine==\"x\" or platform.machine==\"y\"))"),
	"a; ((os_name=='x'))", "a (>=1)", "a(>=1,<2)", "a()", "a( )", "a>=1,<2", "a >= 1 , < 2",
	"a>=1,", "a=== x!y", "a @ https://index.example/a.whl", "a@https://index.example/a.whl",
	"a @ https://index.example/a.whl ; os_name==\"x\"", "a[b] @ git+https://index.example/a",
	"a>1;os_name=='x'", "a[x,y]>=1,!=1.5.*;os_name=='x'" };
static const char *const bad[] = { "a===", "a~=1", "a>=1.0+local", "a~=1.0+local", "a>=1.0+l.1-2_x",
	"a~=1.0+l.1-2_x", "a>=1.0.*", "a~=1.0.*", "a>=1.*", "a~=1.*", "a>=1!1.*", "a~=1!1.*",
	"a==1.0a1.*", "a>=1.0a1.*", "a~=1.0a1.*", "a==1.0.dev1.*", "a>=1.0.dev1.*", "a~=1.0.dev1.*",
	"a==*", "a>=*", "a~=*", "a==1.*.1", "a>=1.*.1", "a~=1.*.1", "a==1.0.*+x", "a>=1.0.*+x",
	"a~=1.0.*+x", "a==abc", "a>=abc", "a~=abc", "a==1.0x", "a>=1.0x", "a~=1.0x", "a==1.",
	"a>=1.", "a~=1.", "a==.1", "a>=.1", "a~=.1", "a==1..2", "a>=1..2", "a~=1..2", "a==1.0++a",
	"a>=1.0++a", "a~=1.0++a", "a==1.0+", "a>=1.0+", "a~=1.0+", "a==1.0+.", "a>=1.0+.",
	"a~=1.0+.", "a==1.0+a.", "a>=1.0+a.", "a~=1.0+a.", "a==1!!", "a>=1!!", "a~=1!!", "a==1!v2",
	"a>=1!v2", "a~=1!v2", "a==1.0--1", "a>=1.0--1", "a~=1.0--1", "a==1.0-1-1", "a>=1.0-1-1",
	"a~=1.0-1-1", "a==1.0post1post2", "a>=1.0post1post2", "a~=1.0post1post2", "a==1.0dev1a1",
	"a>=1.0dev1a1", "a~=1.0dev1a1", "a==1.0_1", "a>=1.0_1", "a~=1.0_1", "a==1,0", "a>=1,0",
	"a~=1,0", "a==1:0", "a>=1:0", "a~=1:0", "a==1.0-", "a>=1.0-", "a~=1.0-", "a=1.0", "a=>1.0",
	"a=<1.0", "a!1.0", "a~1.0", "a<>1.0", "a>>1.0", "_foo", "foo-", "foo.", "fo$o", "fóo",
	"foo!bar", "foo*", "a[a,]", "a[a,]>1", "a[,a]", "a[,a]>1", "a[a b]", "a[a b]>1", "a[a",
	"a[a>1", "aa]", "aa]>1", "a[-a]", "a[-a]>1", "a[[a]]", "a[[a]]>1", "a; foo==\"x\"",
	"a; python_version", "a; python_version<\"3", "a; sys_platform notin \"x\"",
	"a; python_version<3", "a;", "a; (os_name==\"a\"", "a; os_name==\"a\")",
	"a; os_name==\"a\" andos_name==\"b\"", "a; os_name==\"a\" or", "a; not os_name==\"a\"",
	"a; os_name <> 'x'", "a; 'a'=='b' 'c'", "a; os_name == \"a\";", "a(>=1", "a>=1)",
	"a((>=1))", "a>=1 <2", "a>=1,,<2", "a,>=1", "url lib3>=3", "a b", "a 1.0", "a==1.0 1.1",
	"a @" };

static requirement_list parse(const char *text)
{
	requirement_list list = { 0 };
	struct error err = { 0 };

	if (requirements_parse(str_from(text), &arena, &list, &err) < 0)
		fail_msg("'%s': %s", text, err.text);
	return list;
}

static struct requirement parse_one(const char *text)
{
	requirement_list list = parse(text);

	if (list.count != 1)
		fail_msg("'%s' has %zu requirements", text, list.count);
	return list.items[0];
}

static void assert_refused(const char *text, const char *message)
{
	requirement_list list = { 0 };
	struct error err = { 0 };

	if (requirements_parse(str_from(text), &arena, &list, &err) == 0)
		fail_msg("'%s' is taken", text);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(list.count, 0);
	if (!strstr(err.text, message))
		fail_msg("'%s': %s", text, err.text);
}

static void names_are_normalised_and_checked(void **state)
{
	static const char *const cases[][2] = { { "Foo", "foo" }, { "a__b--c..d", "a-b-c-d" },
		{ "A-_.B", "a-b" }, { "zope.interface", "zope-interface" }, { "x", "x" },
		{ "", "" } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(
			requirement_normalize_name(&arena, str_from(cases[i][0])), cases[i][1]);
	assert_true(requirement_name_is_valid(STR("a")));
	assert_true(requirement_name_is_valid(STR("0.a_B-9")));
	assert_false(requirement_name_is_valid(STR("")));
	assert_false(requirement_name_is_valid(STR("a_")));
	assert_false(requirement_name_is_valid(STR("-a")));
	assert_false(requirement_name_is_valid(STR("a b")));
	assert_false(requirement_name_is_valid(STR("a\0b")));
	assert_false(requirement_name_is_valid(STR("\xc3\xa4")));
}

static void what_the_standards_allow_is_taken(void **state)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		parse_one(good[i]);
}

static void what_the_standards_refuse_is_refused(void **state)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_refused(bad[i], "line 1: '");
}

static void a_package_line_is_taken_apart(void **state)
{
	struct requirement r = parse_one("  Foo.Bar[x, y] (>=1.0,<2) ; os_name == 'posix'  # why");

	assert_int_equal(r.kind, REQUIREMENT_PACKAGE);
	assert_string_equal(r.name, "foo-bar");
	assert_string_equal(r.specifier, "(>=1.0,<2)");
	assert_string_equal(r.text, "Foo.Bar[x, y] (>=1.0,<2) ; os_name == 'posix'");
	assert_false(r.is_pinned);
	assert_null(r.option);
	assert_string_equal(parse_one("a").specifier, "");
	assert_true(parse_one("a==1.0").is_pinned);
	assert_true(parse_one("a===1.0").is_pinned);
	assert_true(parse_one("a (==1.0)").is_pinned);
	assert_false(parse_one("a==1.*").is_pinned);
	assert_false(parse_one("a==1.0,>0.5").is_pinned);
	assert_false(parse_one("a!=1.0").is_pinned);
}

#define HEX "0123456789abcdef"
#define HEX64 HEX HEX HEX HEX
static void hashes_are_collected(void **state)
{
	struct requirement r = parse_one(
		"a==1 \\\n    --hash=sha256:" HEX64 " \\\n    --hash SHA512:" HEX64 HEX64 "\n");

	assert_int_equal(r.hashes.count, 2);
	assert_string_equal(r.hashes.items[0], "sha256:" HEX64);
	assert_string_equal(r.hashes.items[1], "sha512:" HEX64 HEX64);
	r = parse_one("a==1;os_name=='x' --hash='sha256:ABCDEF6789abcdef" HEX HEX HEX "'");
	assert_string_equal(r.hashes.items[0], "sha256:abcdef6789abcdef" HEX HEX HEX);
	assert_int_equal(
		parse_one("https://index.example/a.whl --hash=sha256:" HEX64).hashes.count, 1);
	assert_refused("a==1 --hash=md5:" HEX HEX, "a hash is --hash=sha256:");
	assert_refused("a==1 --hash=" HEX64, "a hash is --hash=sha256:");
	assert_refused("a==1 --hash=sha256:" HEX, "isn't complete");
	assert_refused("a==1 --hash=sha256:" HEX64 "0", "isn't complete");
	assert_refused("a==1 --hash=sha256:" HEX HEX HEX "0123456789abcdeg", "isn't complete");
	assert_refused("a==1 --hash", "--hash needs a value");
	assert_refused("a==1 --hash='sha256:" HEX64, "a quote isn't closed");
	assert_refused("a==1 --global-option=x", "only --hash may follow");
	assert_refused("a==1 -i https://index.example", "only --hash may follow");
	assert_refused("a; os_name == \"x --hash=sha256:" HEX64 "\"", "its marker");
}

static void urls_and_paths_are_known_for_what_they_are(void **state)
{
	static const struct {
		const char *text;
		enum requirement_kind kind;
		const char *name;
	} cases[] = {
		{ "https://index.example/a-1.whl", REQUIREMENT_URL, NULL },
		{ "https://index.example/a-1.whl#sha256=0", REQUIREMENT_URL, NULL },
		{ "HTTP://index.example/a ; os_name=='x'", REQUIREMENT_URL, NULL },
		{ "git+ssh://git@index.example/a.git@v1#egg=a", REQUIREMENT_URL, NULL },
		{ "A.B @ https://index.example/a.whl", REQUIREMENT_URL, "a-b" },
		{ "a[x]@git+https://index.example/a", REQUIREMENT_URL, "a" },
		{ "a @ file:///x/a.whl", REQUIREMENT_PATH, "a" },
		{ "a @ ./a.whl", REQUIREMENT_PATH, "a" },
		{ "file:///x/a.whl", REQUIREMENT_PATH, NULL },
		{ "File:a.whl", REQUIREMENT_PATH, NULL },
		{ ".", REQUIREMENT_PATH, NULL },
		{ "./x", REQUIREMENT_PATH, NULL },
		{ "../x[dev]", REQUIREMENT_PATH, NULL },
		{ "/x/y ; os_name=='x'", REQUIREMENT_PATH, NULL },
		{ "x/y", REQUIREMENT_PATH, NULL },
		{ "~/x", REQUIREMENT_PATH, NULL },
		{ "a-1.0-py3-none-any.whl", REQUIREMENT_PATH, NULL },
		{ "a-1.0.tar.gz", REQUIREMENT_PATH, NULL },
		{ "a.ZIP[x]", REQUIREMENT_PATH, NULL },
		{ "a.zip==1.0", REQUIREMENT_PACKAGE, "a-zip" },
		{ "-e .", REQUIREMENT_EDITABLE, NULL },
		{ "--editable=git+https://index.example/a", REQUIREMENT_EDITABLE, NULL },
		{ "-e a @ https://index.example/a", REQUIREMENT_EDITABLE, NULL },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct requirement r = parse_one(cases[i].text);

		if (r.kind != cases[i].kind)
			fail_msg("'%s' is of kind %d", cases[i].text, r.kind);
		if (!cases[i].name)
			assert_null(r.name);
		else
			assert_string_equal(r.name, cases[i].name);
		assert_non_null(r.specifier);
	}
	assert_refused("./x y", "a URL or path has no blanks");
	assert_refused("https://index.example/a; x", "a URL or path has no blanks");
	assert_refused("https://index.example/a ; x", "its marker");
	assert_refused("foo:bar", "is not a requirement");
}

static void options_are_known_by_their_long_names(void **state)
{
	static const char *const cases[][2] = { { "-r x.txt", "--requirement" },
		{ "-rx.txt", "--requirement" }, { "--requirement=x.txt", "--requirement" },
		{ "-c 'a b.txt'", "--constraint" }, { "-i https://index.example", "--index-url" },
		{ "--index-url https://index.example", "--index-url" },
		{ "--extra-index-url=https://index.example", "--extra-index-url" },
		{ "-f ./x", "--find-links" }, { "--no-index", "--no-index" },
		{ "--no-binary :all:", "--no-binary" }, { "--pre", "--pre" },
		{ "--require-hashes # all", "--require-hashes" },
		{ "--trusted-host index.example:80", "--trusted-host" } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct requirement r = parse_one(cases[i][0]);

		assert_int_equal(r.kind, REQUIREMENT_OPTION);
		assert_string_equal(r.option, cases[i][1]);
		assert_null(r.name);
	}
	assert_string_equal(parse_one("-e .").option, "--editable");
	assert_refused("--pre --index-url https://index.example", "each option needs its own line");
	assert_refused("-r a.txt -i https://index.example", "each option needs its own line");
	assert_refused("-e . --index-url https://index.example", "each option needs its own line");
	assert_refused("-e . x --pre", "each option needs its own line");
	assert_refused("--pre=x", "it takes no value");
	assert_refused("--index-url", "its value is missing");
	assert_refused("-r ''", "its value is missing");
	assert_refused("-c 'a", "a quote isn't closed");
	assert_refused("--index=https://index.example", "unknown option");
	assert_refused("--prefer", "unknown option");
	assert_refused("--hash=sha256:" HEX64, "unknown option");
	assert_refused("-", "unknown option");
	assert_refused("--", "unknown option");
}

static void lines_are_joined_and_counted_as_in_pip(void **state)
{
	requirement_list list = parse("\xef\xbb\xbf# head\r\n\r\na\\\r\n>=1 # c\n"
				      "b\t# c\nc==1 \\\n# comment \\\nd @ https://x.example/#f\n"
				      "   \t\n\\\n\\\nf\\");

	assert_int_equal(list.count, 5);
	assert_string_equal(list.items[0].text, "a>=1");
	assert_int_equal(list.items[0].line, 3);
	assert_string_equal(list.items[1].text, "b");
	assert_int_equal(list.items[1].line, 5);
	assert_string_equal(list.items[2].text, "c==1");
	assert_string_equal(list.items[3].text, "d @ https://x.example/#f");
	assert_string_equal(list.items[4].text, "f");
	assert_int_equal(list.items[4].line, 10);
	assert_int_equal(parse("").count, 0);
	assert_int_equal(parse("\n\n# only\n").count, 0);
}

static void errors_name_line_and_reason(void **state)
{
	struct error err;
	requirement_list list;
	struct str nul = STR("a\nb\0c\n");

	assert_refused("a\nurl lib3>=3\n",
		"line 2: 'url lib3>=3' is not a requirement: a specifier like >=1.2 or the end of "
		"the line is expected after the name");
	assert_refused("a\n\na~=1", "line 3: 'a~=1' is not a requirement: ~= needs at least two");
	assert_refused("a=1", "line 1: 'a=1' is not a requirement: ");
	assert_refused("a==${V}", "variables such as ${NAME} are not expanded");
	assert_refused("a\nb\xff", "line 2: byte 2 is not UTF-8");
	assert_refused(
		"a\n# x\r--index-url https://index.example\n", "line 2: byte 4 is a control");
	assert_refused("# x\xe2\x80\xa8--pre", "line 1: byte 4 is a control character");
	assert_refused("# x\xc2\x85--pre", "line 1: byte 4 is a control character");
	assert_refused("a # x \\\n--pre", "line 1: a comment ends with a backslash");
	assert_refused("a\n\xef\xbb\xbf./x", "line 2: byte 1 is a control character");
	assert_refused("./a\\ # x\n--pre", "the last line ends with a backslash");
	assert_refused("\xff\xfe", "line 1: byte 1 is not UTF-8");
	assert_int_equal(requirements_parse(nul, &arena, &list, &err), -1);
	assert_string_equal(err.text, "line 2: byte 2 is a control character");
}

static void sizes_and_counts_and_depth_have_limits(void **state)
{
	struct error err = { 0 };
	requirement_list list;
	size_t len = REQUIREMENTS_MAX + 1;
	char *text = arena_alloc(&arena, len + 1);

	memset(text, '\n', len);
	assert_int_equal(requirements_parse((struct str){ text, len }, &arena, &list, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	for (size_t i = 0; i < len; i += 2)
		text[i] = 'a';
	assert_int_equal(
		requirements_parse((struct str){ text, len - 1 }, &arena, &list, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	memset(text, '(', len);
	memcpy(text, "a;", 2);
	assert_int_equal(
		requirements_parse((struct str){ text, len - 1 }, &arena, &list, &err), -1);
	assert_non_null(strstr(err.text, "nested too deeply"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_are_normalised_and_checked),
		TEST(what_the_standards_allow_is_taken),
		TEST(what_the_standards_refuse_is_refused),
		TEST(a_package_line_is_taken_apart),
		TEST(hashes_are_collected),
		TEST(urls_and_paths_are_known_for_what_they_are),
		TEST(options_are_known_by_their_long_names),
		TEST(lines_are_joined_and_counted_as_in_pip),
		TEST(errors_name_line_and_reason),
		TEST(sizes_and_counts_and_depth_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
