/* blob/blob.c, blob/dir.c and format/http/blob_name.c: names, and the store in a directory. */
#include "blob/blob.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/file.h"
#include "path_fixture.h"
#include "unit.h"

static struct arena arena;
static struct blob_store store;
static struct error err;

static int set_up_store(void **state)
{
	struct blob_settings settings = { 0 };

	arena_init(&arena);
	if (set_up(state))
		return -1;
	return blob_open(&settings, in, NULL, &store, &err);
}

static int tear_down_store(void **state)
{
	blob_close(&store);
	arena_done(&arena);
	return tear_down(state);
}

static int pipe_with(const char *text)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
	close(ends[1]);
	return ends[0];
}

static void keys_are_the_same_everywhere(void **state)
{
	static const char *const good[] = { "a", "archives/x-1.tar.zst", "a/b/c/d/e/f/g/h",
		"workspace-templates/data-science.yaml", "a@b+c=d" };
	static const char *const bad[] = { "", "/a", "a/", "a//b", ".a", "a/.b", "..", "a/../b",
		"a b", "a\nb", "a%2f", "\xc3\xa4", "a\\b", "1/2/3/4/5/6/7/8/9" };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(blob_key_is_valid(good[i]) && blob_prefix_is_valid(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(blob_key_is_valid(bad[i]));
	assert_true(blob_prefix_is_valid("") && blob_prefix_is_valid("archives/"));
	assert_false(blob_prefix_is_valid("/") || blob_prefix_is_valid("a//"));
}

static void urls_name_a_directory_or_a_bucket(void **state)
{
	struct blob_url url;
	static const char *const bad[] = { "", "file:/x", "dir:", "dir:x", "dir:/", "dir:/a/../b",
		"s3://", "s3://AB", "s3://ab", "s3://-abc", "s3://abc/../x", "s3://a_b_c",
		"s3://user@host/x" };

	assert_int_equal(blob_url_parse("dir", &arena, &url, &err), 0);
	assert_true(url.scheme == BLOB_DIR && !url.path);
	assert_int_equal(blob_url_parse("dir:/var/blobs", &arena, &url, &err), 0);
	assert_string_equal(url.path, "/var/blobs");
	assert_int_equal(blob_url_parse("s3://solven-test/a/b/", &arena, &url, &err), 0);
	assert_true(url.scheme == BLOB_S3);
	assert_string_equal(url.bucket, "solven-test");
	assert_string_equal(url.prefix, "a/b");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(blob_url_parse(bad[i], &arena, &url, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

static void an_object_comes_back_as_it_was_put(void **state)
{
	auto_close int from = pipe_with("hello, store"), to = -1;
	struct blob_put put = { .from = from, .size = BLOB_SIZE_UNKNOWN };
	struct blob_info info, got;
	struct str text;

	assert_int_equal(blob_put(&store, "archives/a.tar", &put, &info, &err), 0);
	assert_int_equal(info.size, 12);
	assert_int_equal(blob_get_text(&store, "archives/a.tar", 12, &arena, &text, &err), 0);
	assert_true(str_is(text, "hello, store"));
	assert_int_equal(blob_get_text(&store, "archives/a.tar", 11, &arena, &text, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(blob_head(&store, "archives/a.tar", &got, &err), 0);
	assert_int_equal(got.size, 12);
	to = openat(in, "to", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct blob_get get = { .to = to, .offset = 7, .len = 3 };
	assert_int_equal(blob_get(&store, "archives/a.tar", &get, &got, &err), 0);
	assert_int_equal(file_read_at(in, "to", 99, &arena, &text), 0);
	assert_true(str_is(text, "sto") && got.size == 3);
	get = (struct blob_get){ .to = to, .len = UINT64_MAX, .sha256 = got.sha256 };
	assert_int_equal(blob_get(&store, "archives/a.tar", &get, NULL, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
	get.sha256 = info.sha256;
	assert_int_equal(blob_get(&store, "archives/a.tar", &get, NULL, &err), 0);
	get = (struct blob_get){ .to = to, .offset = 100, .len = UINT64_MAX };
	assert_int_equal(blob_get(&store, "archives/a.tar", &get, &got, &err), 0);
	assert_int_equal(got.size, 0);
}

static void what_is_not_expected_is_not_stored(void **state)
{
	static const char wrong[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	auto_close int first = pipe_with("abc"), second = pipe_with("abc");
	struct blob_put put = { .from = first, .size = 4 };
	struct blob_info info;
	blob_rows rows;

	assert_int_equal(blob_put(&store, "a", &put, NULL, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
	put = (struct blob_put){ .from = second, .size = 3, .sha256 = wrong };
	assert_int_equal(blob_put(&store, "a", &put, NULL, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
	assert_int_equal(blob_head(&store, "a", &info, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(blob_list(&store, "", &arena, &rows, &err), 0);
	assert_int_equal(rows.count, 0);
	text_list names = { 0 };
	assert_int_equal(file_names(in, "blobs/.new", &arena, &names), 0);
	assert_int_equal(names.count, 0);
}

static void only_new_never_replaces(void **state)
{
	struct str text;

	assert_int_equal(blob_put_text(&store, "t/x.yaml", STR("one"), true, &err), 0);
	assert_int_equal(blob_put_text(&store, "t/x.yaml", STR("two"), true, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(blob_get_text(&store, "t/x.yaml", 9, &arena, &text, &err), 0);
	assert_true(str_is(text, "one"));
	assert_int_equal(blob_put_text(&store, "t/x.yaml", STR("two"), false, &err), 0);
	assert_int_equal(blob_get_text(&store, "t/x.yaml", 9, &arena, &text, &err), 0);
	assert_true(str_is(text, "two"));
}

static void a_list_is_sorted_and_by_prefix(void **state)
{
	static const char *const keys[] = { "b/2", "b/1", "a", "bb/c/d" };
	blob_rows rows;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		assert_int_equal(blob_put_text(&store, keys[i], STR("x"), false, &err), 0);
	put_file(in, "blobs/.hidden", "x");
	put_file(in, "blobs/not a key", "x");
	assert_int_equal(symlinkat("../out", in, "blobs/link"), 0);
	assert_int_equal(blob_list(&store, "", &arena, &rows, &err), 0);
	assert_int_equal(rows.count, 4);
	assert_string_equal(rows.items[0].key, "a");
	assert_string_equal(rows.items[1].key, "b/1");
	assert_string_equal(rows.items[3].key, "bb/c/d");
	assert_int_equal(blob_list(&store, "b/", &arena, &rows, &err), 0);
	assert_int_equal(rows.count, 2);
	assert_int_equal(blob_list(&store, "b", &arena, &rows, &err), 0);
	assert_int_equal(rows.count, 3);
	assert_int_equal(blob_list(&store, "none/", &arena, &rows, &err), 0);
	assert_int_equal(rows.count, 0);
	assert_int_equal(blob_delete(&store, "b/1", &err), 0);
	assert_int_equal(blob_delete(&store, "b/1", &err), 0);
	assert_int_equal(blob_delete(&store, "no/such", &err), 0);
	assert_int_equal(blob_list(&store, "b/", &arena, &rows, &err), 0);
	assert_int_equal(rows.count, 1);
}

static void links_are_not_followed(void **state)
{
	struct str text;
	struct blob_info info;

	assert_int_equal(symlinkat("../../out", in, "blobs/d"), 0);
	assert_int_equal(symlinkat("../../out/secret", in, "blobs/f"), 0);
	assert_int_equal(blob_get_text(&store, "d/secret", 99, &arena, &text, &err), -1);
	assert_int_equal(blob_put_text(&store, "d/secret", STR("x"), false, &err), -1);
	assert_int_equal(blob_head(&store, "f", &info, &err), -1);
	/* A link at the key itself is replaced. */
	assert_int_equal(blob_put_text(&store, "f", STR("x"), false, &err), 0);
	assert_int_equal(blob_get_text(&store, "f", 9, &arena, &text, &err), 0);
	assert_true(str_is(text, "x"));
}

/* A writer that was killed leaves its temporary file; the next put removes it. */
static void leftovers_of_killed_writers_are_removed(void **state)
{
	text_list names = { 0 };

	put_file(in, "blobs/.new/left", "half");
	put_file(in, "blobs/.new/held", "half");
	auto_close int held = openat(in, "blobs/.new/held", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(held, LOCK_EX), 0);
	assert_int_equal(blob_put_text(&store, "a", STR("x"), false, &err), 0);
	assert_int_equal(file_names(in, "blobs/.new", &arena, &names), 0);
	assert_int_equal(names.count, 1);
	assert_string_equal(names.items[0], "held");
}

static void a_bucket_needs_its_backend(void **state)
{
	struct blob_settings settings = { .url = { .scheme = BLOB_S3 } };
	struct blob_store other = { 0 };

	assert_int_equal(blob_open(&settings, in, NULL, &other, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
}

int main(void)
{
#define IN_STORE(test) cmocka_unit_test_setup_teardown(test, set_up_store, tear_down_store)
	const struct CMUnitTest tests[] = {
		IN_STORE(keys_are_the_same_everywhere),
		IN_STORE(urls_name_a_directory_or_a_bucket),
		IN_STORE(an_object_comes_back_as_it_was_put),
		IN_STORE(what_is_not_expected_is_not_stored),
		IN_STORE(only_new_never_replaces),
		IN_STORE(a_list_is_sorted_and_by_prefix),
		IN_STORE(links_are_not_followed),
		IN_STORE(leftovers_of_killed_writers_are_removed),
		IN_STORE(a_bucket_needs_its_backend),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
