/* What uv says when it fails, as it said it (tests/unit/data/uv): the code, the package and one
 * line for people; and whatever else it may say, something that is safe to show. */
#include <stdio.h>
#include <string.h>
#include "format/packages/uv_error.h"
#include "arena_fixture.h"

static struct uv_error classify(const char *text)
{
	struct uv_error out;

	uv_error_classify(str_from(text), &arena, &out);
	return out;
}

static const char *read_text(const char *name)
{
	const char *path = arena_printf(&arena, "%s/uv/%s.txt", getenv("CARREL_DATA_DIR"), name);
	char *text = arena_alloc(&arena, 1 << 16);
	FILE *file = fopen(path, "re");

	if (!file)
		fail_msg("no %s", path);
	assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
	fclose(file);
	return text;
}

struct known {
	const char *name;
	enum build_failure failure;
	const char *package, *needs_build;
	const char *message; /* a part of it */
};
static const struct known known[] = {
	{ "build_backend", BUILD_FAILED, "badsetup", NULL, "the build of badsetup failed" },
	{ "build_failed", BUILD_NOT_FOUND, "setuptools", NULL,
		"there is no package 'setuptools' in the index" },
	{ "conflict_dependencies", BUILD_CONFLICT, "good", NULL,
		"conflicting requirements: Because all versions of needs-good-2 depend on good>=2 "
		"and all versions of needs-good-1 depend on good==1.0, we can" },
	{ "conflict_direct", BUILD_CONFLICT, "good", NULL,
		"conflicting requirements: Because you require good==1.0 and good==2.0, we can" },
	{ "conflict_direct_dependency", BUILD_CONFLICT, "good", NULL,
		"conflicting requirements: Because all versions of needs-good-1 depend on "
		"good==1.0 and you require good==2.0, we can" },
	{ "conflict_pin", BUILD_CONFLICT, "grpcio", NULL,
		"conflicting requirements: Because grpcio-status==1.62.0 depends on grpcio>=1.62.0 "
		"and you require grpcio==1.60.0, we can" },
	{ "conflict_transitive", BUILD_CONFLICT, "starlette", NULL,
		"conflicting requirements: Because fastapi==0.100.0 depends on "
		"starlette>=0.27.0,<0.28.0 and you require fastapi==0.100.0, we can" },
	{ "disk_full_cache", BUILD_DISK_FULL, "big==1.0", NULL,
		"no space is left on the disk for big==1.0" },
	{ "disk_full_install", BUILD_DISK_FULL, "big==1.0", NULL,
		"no space is left on the disk for big==1.0" },
	{ "dns", BUILD_NETWORK, "good", NULL,
		"uv failed: Failed to fetch: http://index.example/simple/good/: error sending "
		"request" },
	{ "file_badmeta", BUILD_FAILED, "badmeta==1.0", NULL,
		"the wheel of badmeta==1.0 is broken" },
	{ "file_badzip", BUILD_FAILED, "badzip==1.0", NULL, "the wheel of badzip==1.0 is broken" },
	{ "file_servererror", BUILD_NETWORK, "servererror==1.0", NULL,
		": HTTP status server error (500 Internal Server Error) for url" },
	{ "file_slowfile", BUILD_NETWORK, "slowfile==1.0", NULL, ": operation timed out" },
	{ "file_truncated", BUILD_FAILED, "truncated==1.0", NULL,
		"the wheel of truncated==1.0 is broken" },
	{ "file_wrongdist", BUILD_FAILED, "wrongdist==1.0", NULL,
		"the wheel of wrongdist==1.0 is broken" },
	{ "file_wrongname", BUILD_FAILED, "wrongname", NULL,
		"uv failed: Package metadata name `other` does not match given name `wrongname`" },
	{ "hash_mismatch", BUILD_HASH_MISMATCH, "good==1.0", NULL,
		"the file of good==1.0 does not match its hash" },
	{ "hash_mismatch_index", BUILD_HASH_MISMATCH, "lyinghash==1.0", NULL,
		"the file of lyinghash==1.0 does not match its hash" },
	{ "hash_missing", BUILD_FAILED, NULL, NULL,
		"all requirements must have a hash, but none were provided for: good==1.0" },
	{ "hash_unpinned", BUILD_FAILED, NULL, NULL,
		"all requirements must have their versions pinned with `==`, but found: good" },
	{ "index_401", BUILD_DENIED, "index401", NULL,
		"the index wants credentials for index401 (401)" },
	{ "index_403", BUILD_DENIED, "index403", NULL, "the index refuses index403 (403)" },
	{ "index_500", BUILD_NETWORK, "index500", NULL,
		": HTTP status server error (500 Internal Server Error) for url" },
	{ "index_500_retry", BUILD_NETWORK, "index500", NULL,
		"uv failed: Request failed after 1 retry in 1.6s: Failed to fetch: " },
	{ "index_503", BUILD_NETWORK, "index503", NULL,
		": HTTP status server error (503 Service Unavailable) for url" },
	{ "index_garbage", BUILD_NETWORK, "indexgarbage", NULL,
		"uv failed: Unsupported `Content-Type` \"application/json\" for "
		"`http://index.example/simple/indexgarbage/`." },
	{ "index_half", BUILD_NETWORK, "indexhalf", NULL,
		": end of file before message length reached" },
	{ "index_json", BUILD_NETWORK, "indexjson", NULL,
		"uv failed: Received some unexpected JSON from "
		"`http://index.example/simple/indexjson/`: EOF while parsing" },
	{ "index_timeout", BUILD_NETWORK, "indexslow", NULL, ": operation timed out" },
	{ "install_badzip", BUILD_FAILED, "badzip==1.0", NULL,
		"uv failed: Failed to download `badzip==1.0`: Failed to extract archive: "
		"badzip-1.0-py3-none-any.whl: " },
	{ "install_filegone", BUILD_NOT_FOUND, "filegone==1.0", NULL,
		": HTTP status client error (404 Not Found) for url" },
	{ "install_forbidden", BUILD_DENIED, "forbidden==1.0", NULL,
		": HTTP status client error (403 Forbidden) for url" },
	{ "install_norecord", BUILD_FAILED, "norecord==1.0", NULL,
		"norecord-1.0.dist-info/RECORD`: No such file or directory" },
	{ "install_servererror", BUILD_NETWORK, "servererror==1.0", NULL,
		": HTTP status server error (500 Internal Server Error) for url" },
	{ "install_truncated", BUILD_NETWORK, "truncated==1.0", NULL,
		": end of file before message length reached" },
	{ "install_wrongname", BUILD_FAILED, "wrongname==1.0", NULL,
		": Wheel package name does not match filename (other != wrongname)" },
	{ "no_index", BUILD_NOT_FOUND, "good", NULL, "there is no package 'good' in the index" },
	{ "not_found", BUILD_NOT_FOUND, "nothere", NULL,
		"there is no package 'nothere' in the index" },
	{ "not_found_dependency", BUILD_NOT_FOUND, "nothere", NULL,
		"there is no package 'nothere' in the index" },
	{ "offline", BUILD_NETWORK, "good", NULL,
		"uv failed: Because good was not found in the cache" },
	{ "path_missing", BUILD_FAILED, NULL, NULL,
		"uv failed: Distribution not found at: file:///home/user/nowhere" },
	{ "platform", BUILD_VERSION_NOT_FOUND, "winonly", NULL,
		"winonly has wheels for Windows only (win_amd64)" },
	{ "platform_two", BUILD_VERSION_NOT_FOUND, "pywin32", NULL,
		"pywin32 has wheels for Windows only (win32, win_amd64, win_arm64)" },
	{ "proxy_403", BUILD_NETWORK, "good", NULL, ": tunnel error: unsuccessful" },
	{ "proxy_refused", BUILD_NETWORK, "good", NULL, ": Connection refused (os error 111)" },
	{ "python_version", BUILD_VERSION_NOT_FOUND, "newpy==1.0", NULL,
		"does not satisfy Python>=3.99 and newpy==1.0 depends on Python>=3.99" },
	{ "read_only_cache", BUILD_FAILED, NULL, NULL, "`: Read-only file system (os error 30)" },
	{ "read_only_install", BUILD_FAILED, "good==1.0", NULL,
		"`: Read-only file system (os error 30)" },
	{ "refused", BUILD_NETWORK, "good", NULL, ": Connection refused (os error 111)" },
	{ "requires_python", BUILD_VERSION_NOT_FOUND, "too-new==1.0", NULL,
		"uv failed: Because too-new==1.0 requires Python >=3.99 and" },
	{ "sdist_dependency", BUILD_DENIED, "onlysdist", "onlysdist",
		"onlysdist has no wheel for this Python, and building is not allowed" },
	{ "sdist_only_binary", BUILD_DENIED, "onlysdist", "onlysdist",
		"onlysdist has no wheel for this Python, and building is not allowed" },
	{ "sdist_only_binary_pinned", BUILD_DENIED, "onlysdist", "onlysdist",
		"onlysdist has no wheel for this Python, and building is not allowed" },
	{ "sdist_pinned", BUILD_DENIED, "numpy", "numpy",
		"numpy has no wheel for this Python, and building is not allowed" },
	{ "syntax", BUILD_INVALID, NULL, NULL,
		"uv failed: Couldn't parse requirement in `/home/user/req.txt` at position 5: "
		"Expected one of " },
	{ "syntax_marker", BUILD_INVALID, NULL, NULL,
		"uv failed: Couldn't parse requirement in `/home/user/req.txt` at position 0: "
		"Expected a quoted string" },
	{ "tls", BUILD_NETWORK, "good", NULL,
		": received corrupt message of type InvalidContentType" },
	{ "url_404", BUILD_FAILED, "filegone==1.0", NULL,
		"uv failed: Requested package name `good` does not match `filegone` in the "
		"distribution" },
	{ "version_dependency", BUILD_VERSION_NOT_FOUND, "good>=99", NULL,
		"there is no version good>=99 in the index" },
	{ "version_pin", BUILD_VERSION_NOT_FOUND, "good==9.9", NULL,
		"there is no version good==9.9 in the index" },
	{ "version_range", BUILD_VERSION_NOT_FOUND, "good>=5,<6", NULL,
		"there is no version good>=5,<6 in the index" },
	{ "yanked", BUILD_VERSION_NOT_FOUND, "yanked==1.0", NULL,
		"uv failed: Because yanked==1.0 was yanked (reason: broken) and" },
};

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void every_failure_of_uv_is_known(void **state)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const struct known *k = &known[i];
		struct uv_error out = classify(read_text(k->name));

		if (out.failure != k->failure || !is_same(out.package, k->package) ||
			!is_same(out.needs_build, k->needs_build) ||
			!strstr(out.message, k->message))
			fail_msg("%s: %s, %s, %s, %s", k->name, build_failure_names[out.failure],
				out.package, out.needs_build, out.message);
		assert_true(
			out.suggestion ? out.suggestion[0] != '\0' : out.failure == BUILD_FAILED);
	}
}

static void names_of_failures_are_stable(void **state)
{
	static const char *const names[] = { "not_found", "version_not_found", "conflict",
		"hash_mismatch", "network", "timeout", "disk_full", "invalid", "denied", "failed",
		"canceled" };

	for (int i = 0; i < BUILD_FAILURE_COUNT; i++)
		assert_string_equal(build_failure_names[i], names[i]);
}

static void platforms_of_the_wheels_are_named(void **state)
{
	static const char hint[] = "error: No solution found when resolving dependencies\n"
				   "  cause: Because pywin32>=303 has no wheels with a matching "
				   "platform tag (e.g., `manylinux_2_36_x86_64`) and you require "
				   "pywin32, we can conclude that your requirements are "
				   "unsatisfiable.\n\n"
				   "hint: Wheels are available for `pywin32` (v312) on the "
				   "following platforms: `win32`, `win_amd64`\n";
	struct uv_error out = classify(hint);

	assert_int_equal(out.failure, BUILD_VERSION_NOT_FOUND);
	assert_string_equal(out.package, "pywin32");
	assert_string_equal(out.message, "pywin32 has wheels for Windows only (win32, win_amd64)");
	out = classify("error: x\nhint: Wheels are available for `a` (v1) on the following "
		       "platforms: `win32`, `macosx_11_0_arm64`");
	assert_string_equal(
		out.message, "a has wheels for other platforms only: win32, macosx_11_0_arm64");
	out = classify("error: x\nhint: on the following platforms: `win");
	assert_non_null(strstr(out.message, "has wheels for"));
	out = classify("error: x\nhint: on the following platform");
	assert_non_null(strstr(out.message, "has wheels for"));
}

static void words_of_others_decide_nothing(void **state)
{
	assert_int_equal(
		classify("error: Because a==1 was yanked (reason: No space left on device)")
			.failure,
		BUILD_VERSION_NOT_FOUND);
	assert_int_equal(
		classify("warning: No space left on device\nerror: Hash mismatch for `a`").failure,
		BUILD_HASH_MISMATCH);
}

static void hostile_text_is_shown_safely(void **state)
{
	struct uv_error out = classify("error: \x1b[31mHash\n mismatch for `a;\x1b]0;rm -rf`");

	assert_int_equal(out.failure, BUILD_HASH_MISMATCH);
	assert_null(out.package);
	assert_string_equal(out.message, "the file of a package does not match its hash");
	out = classify("error: something\x1b[0m \xff new");
	assert_int_equal(out.failure, BUILD_FAILED);
	assert_string_equal(out.message, "uv failed: something [0m \\xff new");
	assert_string_equal(classify("").message, "uv failed without a message");

	char *text = arena_alloc(&arena, 1 << 20);
	memset(text, 'a', (1 << 20) - 1);
	assert_true(strlen(classify(text).message) < 512);
	memcpy(text, "error: Hash mismatch for ", 25);
	assert_null(classify(text).package);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_failure_of_uv_is_known),
		TEST(names_of_failures_are_stable),
		TEST(words_of_others_decide_nothing),
		TEST(platforms_of_the_wheels_are_named),
		TEST(hostile_text_is_shown_safely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
