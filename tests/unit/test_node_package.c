/* package.json and the locks of bun and npm: what is taken, and what is refused by name. */
/* security: packages */
#include <string.h>
#include "format/packages/node_package.h"
#include "arena_fixture.h"

#define HASH                                                                                       \
	"sha512-RZNwNclF7+MS/8bDg70amg32dyeZGZxiDuQmZxKLAlQjr3jGyLx+4Kkk58UO7D2QdgFIQCovuSuZESne"  \
	"6RG6XQ=="

static void assert_spec(const char *text, const char *name, const char *range)
{
	struct node_spec spec;
	struct error err;

	assert_int_equal(node_spec_parse(text, &arena, &spec, &err), 0);
	assert_string_equal(spec.name, name);
	assert_string_equal(spec.range, range);
}

static void assert_no_spec(const char *text, enum error_code code)
{
	struct node_spec spec;
	struct error err = { 0 };

	if (node_spec_parse(text, &arena, &spec, &err) == 0)
		fail_msg("'%s' is taken", text);
	if (err.code != code)
		fail_msg("'%s': %s", text, err.text);
}

static void specs_are_names_and_ranges(void **state)
{
	assert_spec("axios", "axios", "latest");
	assert_spec("typescript@5", "typescript", "5");
	assert_spec("@types/node@^22.1", "@types/node", "^22.1");
	assert_spec("a@>=1 <2 || 3.x", "a", ">=1 <2 || 3.x");
	assert_spec("JSONStream@1.3.5", "JSONStream", "1.3.5");
}

static void what_leads_elsewhere_is_denied(void **state)
{
	static const char *const texts[] = { "a@git+https://host/x", "a@file:../x", "a@npm:b@1",
		"user/repository", "./directory", "https://host/x.tgz", "a@../x", "a@link:x",
		"a@https://host/x.tgz", "git@host:x/y" };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_no_spec(texts[i], ERR_DENIED);
	assert_no_spec("", ERR_INVALID);
	assert_no_spec("a b", ERR_INVALID);
	assert_no_spec("--flag", ERR_INVALID);
}

static void of_a_package_json_only_dependencies_are_kept(void **state)
{
	static const char text[] = "{\"scripts\": {\"install\": \"evil\"}, \"bin\": \"x\", "
				   "\"dependencies\": {\"a\": \"^1\"}, "
				   "\"devDependencies\": {\"b\": \"*\"}, "
				   "\"overrides\": {\"c\": {\".\": \"2\"}}}";
	node_specs specs = { 0 };
	const char *package;
	struct error err;
	struct str kept;

	assert_int_equal(
		package_json_read(str_from(text), &arena, &specs, &kept, &package, &err), 0);
	assert_int_equal(specs.count, 2);
	assert_string_equal(specs.items[1].name, "b");
	assert_null(memmem(kept.data, kept.len, "evil", 4));
	assert_non_null(memmem(kept.data, kept.len, "overrides", 9));
}

static void assert_refused(const char *text, const char *named)
{
	node_specs specs = { 0 };
	const char *package = NULL;
	struct error err = { 0 };
	struct str kept;

	if (package_json_read(str_from(text), &arena, &specs, &kept, &package, &err) == 0)
		fail_msg("'%s' is taken", text);
	if (!strstr(err.text, named))
		fail_msg("'%s': %s", text, err.text);
}

static void a_package_json_with_other_sources_is_refused(void **state)
{
	assert_refused("{\"dependencies\": {\"a\": \"git://host/x\"}}", "'a'");
	assert_refused("{\"optionalDependencies\": {\"a\": \"file:x\"}}", "'a'");
	assert_refused("{\"dependencies\": {\"../a\": \"1\"}}", "../a");
	assert_refused("{\"overrides\": {\"b\": {\"c\": \"npm:d@1\"}}}", "'c'");
	assert_refused("{\"workspaces\": [\"x\"]}", "workspaces");
	assert_refused("{\"patchedDependencies\": {}}", "patchedDependencies");
	assert_refused("[]", "object");
}

static void assert_lock(const char *text, size_t count, bool is_npm)
{
	node_lock lock = { 0 };
	const char *package;
	struct error err;
	bool npm;

	if (node_lock_read(str_from(text), &arena, &lock, &npm, &package, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(lock.count, count);
	assert_int_equal(npm, is_npm);
}

static void locks_of_bun_and_npm_are_read(void **state)
{
	assert_lock("{\"lockfileVersion\": 1, \"workspaces\": {\"\": {},}, \"packages\": {"
		    "\"a\": [\"a@1.0.0\", \"\", {}, \"" HASH "\"],\n"
		    "\"b/a\": [\"a@2.0.0-rc.1\", \"\", {}, \"" HASH "\"],\n"
		    "\"c/a\": [\"a@1.0.0\", \"\", {}, \"" HASH "\"], } }",
		2, false);
	assert_lock("{\"lockfileVersion\": 3, \"packages\": {\"\": {}, \"node_modules/@x/a\": "
		    "{\"version\": \"1.0.0\", \"integrity\": \"" HASH "\"}}}",
		1, true);
	assert_lock("{ \"lockfileVersion\": 1, \"workspaces\": {} }", 0, false);
}

static void assert_bad_lock(const char *text, const char *named)
{
	node_lock lock = { 0 };
	const char *package = NULL;
	struct error err = { 0 };
	bool npm;

	if (node_lock_read(str_from(text), &arena, &lock, &npm, &package, &err) == 0)
		fail_msg("'%s' is taken", text);
	if (!strstr(err.text, named))
		fail_msg("'%s': %s", text, err.text);
	assert_int_equal(lock.count, 0);
}

#define BUN(entry) "{\"lockfileVersion\": 1, \"workspaces\": {\"\": {}}, \"packages\": {" entry "}}"
#define NPM(entry) "{\"lockfileVersion\": 3, \"packages\": {" entry "}}"

static void a_lock_without_hashes_or_with_other_sources_is_refused(void **state)
{
	assert_bad_lock(BUN("\"a\": [\"a@1.0.0\", \"\", {}, \"\"]"), "no SHA-512 of package 'a'");
	assert_bad_lock(BUN("\"a\": [\"a@1.0.0\", \"\", {}, \"sha1-xx\"]"), "no SHA-512");
	assert_bad_lock(
		BUN("\"a\": [\"a@git+https://h/x#1\", {}, \"1\"]"), "not from the registry");
	assert_bad_lock(BUN("\"a\": [\"a@file:x\"]"), "'a'");
	assert_bad_lock(BUN("\"../a\": [\"../a@1.0.0\", \"\", {}, \"" HASH "\"]"), "../a");
	assert_bad_lock("{\"lockfileVersion\": 1, \"workspaces\": {\"x\": {}}}", "workspace 'x'");
	assert_bad_lock(NPM("\"node_modules/a\": {\"version\": \"1.0.0\"}"), "'a'");
	assert_bad_lock(NPM("\"x\": {\"version\": \"1.0.0\"}"), "directory of the project");
	assert_bad_lock(NPM("\"node_modules/a\": {\"link\": true, \"resolved\": \"x\"}"),
		"directory of the project");
	assert_bad_lock("{\"lockfileVersion\": 1, \"dependencies\": {}}", "before npm 7");
	assert_bad_lock("# yarn lockfile v1\n", "the lock");
}

static void only_what_another_package_brings_needs_no_hash(void **state)
{
	const char *text = NPM("\"\": {\"bundleDependencies\": [\"a\"]},"
			       "\"node_modules/x\": {\"version\": \"1.0.0\", \"integrity\": \"" HASH
			       "\", \"bundleDependencies\": [\"a\"]},"
			       "\"node_modules/x/node_modules/a\": {\"version\": \"2.0.0\", "
			       "\"inBundle\": true, \"resolved\": \"https://h/b/-/b-1.tgz\"}");
	node_lock lock = { 0 };
	const char *package = NULL;
	struct error err = { 0 };
	bool npm;

	assert_int_equal(node_lock_read(str_from(text), &arena, &lock, &npm, &package, &err), 0);
	assert_int_equal(lock.count, 2); /* both are judged by their names */
	assert_string_equal(lock.items[0].name, "a");
	assert_null(lock.items[0].integrity);
	assert_null(lock.items[0].address);
	assert_bad_lock(NPM("\"node_modules/a\": {\"version\": \"1.0.0\", \"inBundle\": true}"),
		"no SHA-512 of package 'a'");
	assert_bad_lock(NPM("\"\": {\"bundleDependencies\": [\"a\"]}, \"node_modules/a\": "
			    "{\"version\": \"1.0.0\", \"inBundle\": true}"),
		"no SHA-512 of package 'a'");
	assert_bad_lock(NPM("\"node_modules/x\": {\"version\": \"1.0.0\", \"integrity\": \"" HASH
			    "\", \"bundleDependencies\": []}, \"node_modules/x/node_modules/a\": "
			    "{\"version\": \"1.0.0\", \"inBundle\": true}"),
		"no SHA-512 of package 'a'");
}

static void an_address_is_that_of_its_package(void **state)
{
	static const struct {
		const char *name, *address;
		bool is_own;
	} cases[] = {
		{ "a", NULL, true },
		{ "a", "", true },
		{ "a", "https://h/a/-/a-1.0.0.tgz", true },
		{ "a", "http://h:4873/npm/api/a/-/a-1.0.0.tgz", true },
		{ "@s/a", "https://h/@s/a/-/a-1.0.0.tgz", true },
		{ "@s/a", "https://h/%40s%2fa/-/a-1.0.0.tgz", true },
		{ "@s/a", "https://h/download/@s/a/1.0.0/0123abc", true },
		{ "a", "https://h/b/-/b-1.0.0.tgz", false },
		{ "a", "https://h/b/-/a-1.0.0.tgz", false },
		{ "a", "https://h/a/-/../../b/-/b-1.0.0.tgz", false },
		{ "a", "https://h/a/-/%2e%2e/b/-/b-1.0.0.tgz", false },
		{ "a", "https://h/b/-/b-1.0.0.tgz?x=/a/-/", false },
		{ "a", "https://h/b/-/b-1.0.0.tgz#/a/-/", false },
		{ "a", "https://a/-/b/-/b-1.0.0.tgz", false },
		{ "a", "https://x/a/-/@h/b/-/b-1.0.0.tgz", true },
		{ "a", "https://h/@s/a/-/a-1.0.0.tgz", false },
		{ "a", "https://h/sa/-/a-1.0.0.tgz", false },
		{ "a", "git+ssh://h/x", false },
		{ "a", "file:a/-/x", false },
		{ "a", "a/-/x", false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct node_locked one = { cases[i].name, "1.0.0", HASH, cases[i].address };
		const node_lock lock = { &one, 1, 1 };
		const char *package = NULL;
		struct error err = { 0 };
		bool is_own = node_lock_check_addresses(&lock, &package, &err) == 0;

		if (is_own != cases[i].is_own)
			fail_msg("%s: '%s'", cases[i].name, cases[i].address);
		if (!is_own)
			assert_string_equal(package, cases[i].name);
	}
}

/* One entry of a name and version must not hide another one's address. */
static void each_address_of_a_package_is_kept(void **state)
{
	const char *text =
		NPM("\"node_modules/a\": {\"version\": \"1.0.0\", \"integrity\": \"" HASH
		    "\", \"resolved\": \"https://h/a/-/a-1.0.0.tgz\"},"
		    "\"node_modules/b/node_modules/a\": {\"version\": \"1.0.0\", "
		    "\"integrity\": \"" HASH "\", \"resolved\": \"https://h/c/-/c-1.0.0.tgz\"}");
	node_lock lock = { 0 };
	const char *package = NULL;
	struct error err = { 0 };
	bool npm;

	assert_int_equal(node_lock_read(str_from(text), &arena, &lock, &npm, &package, &err), 0);
	assert_int_equal(node_lock_check_addresses(&lock, &package, &err), -1);
	assert_non_null(strstr(err.text, "https://h/c/-/c-1.0.0.tgz"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(specs_are_names_and_ranges),
		cmocka_unit_test(what_leads_elsewhere_is_denied),
		cmocka_unit_test(of_a_package_json_only_dependencies_are_kept),
		cmocka_unit_test(a_package_json_with_other_sources_is_refused),
		cmocka_unit_test(locks_of_bun_and_npm_are_read),
		cmocka_unit_test(a_lock_without_hashes_or_with_other_sources_is_refused),
		cmocka_unit_test(only_what_another_package_brings_needs_no_hash),
		cmocka_unit_test(an_address_is_that_of_its_package),
		cmocka_unit_test(each_address_of_a_package_is_kept),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
