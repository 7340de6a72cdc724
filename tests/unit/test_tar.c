/* tar: what is written is read again, archives of others are understood, and names that lead out
 * are told. */
#include <string.h>
#include "format/tar.h"
#include "unit.h"

static char long_name[300], longer_link[200], long_deep[200];

static void make_names(void)
{
	memset(long_name, 'n', sizeof long_name - 1);
	memset(longer_link, 'k', sizeof longer_link - 1);
	memset(long_deep, 'd', sizeof long_deep - 1);
	long_deep[120] = '/';
}

/* One entry written (with `size` bytes of 'z') and read again. */
static void check_round(const struct tar_entry *entry)
{
	auto_buf struct buf out;
	struct tar_reader reader;
	struct error err;
	struct str data;
	uint64_t got = 0;
	int step;
	buf_init(&out, BUF_MAX_DEFAULT);
	assert_int_equal(tar_write_entry(&out, entry, &err), 0);
	for (uint64_t i = 0; i < entry->size; i++)
		buf_char(&out, 'z');
	tar_write_padding(&out, entry->size);
	tar_write_end(&out);
	assert_int_equal(out.len % TAR_BLOCK, 0);
	struct str input = { out.data, out.len };
	tar_reader_init(&reader);
	assert_int_equal(tar_read(&reader, &input, &data, &err), TAR_ENTRY);
	assert_int_equal(reader.entry.kind, entry->kind);
	assert_string_equal(reader.entry.name, entry->name);
	assert_int_equal(reader.entry.mode, entry->mode);
	assert_true(reader.entry.size == entry->size);
	assert_true(reader.entry.modified_s == entry->modified_s);
	if (entry->link)
		assert_string_equal(reader.entry.link, entry->link);
	else
		assert_null(reader.entry.link);
	while ((step = tar_read(&reader, &input, &data, &err)) == TAR_DATA)
		got += data.len;
	assert_int_equal(step, TAR_END);
	assert_true(got == entry->size);
	assert_int_equal(tar_reader_finish(&reader, &err), 0);
	tar_reader_done(&reader);
}

static void what_is_written_is_read_again(void **state)
{
	make_names();
	const struct tar_entry entries[] = {
		{ TAR_FILE, "a.txt", NULL, 5, 0644, 1700000000 },
		{ TAR_FILE, "empty", NULL, 0, 0600, 0 },
		{ TAR_FILE, "block", NULL, 512, 0755, 1 },
		{ TAR_FILE, "more", NULL, 513, 0755, -5 },
		{ TAR_DIRECTORY, "d/", NULL, 0, 0755, 1700000000 },
		{ TAR_SYMLINK, "l", "a.txt", 0, 0777, 1 },
		{ TAR_HARDLINK, "h", "a.txt", 0, 0644, 1 },
		{ TAR_FILE, long_name, NULL, 3, 0644, 1ll << 40 },
		{ TAR_FILE, long_deep, NULL, 3, 0644, 1 },
		{ TAR_SYMLINK, "long link", longer_link, 0, 0777, 1 },
		{ TAR_FILE, "\xff\xfe not UTF-8", NULL, 1, 0644, 1 },
	};
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
		check_round(&entries[i]);
}

static void a_size_that_ustar_cannot_hold_is_in_a_pax_header(void **state)
{
	const struct tar_entry entry = { TAR_FILE, "big", NULL, 1ull << 40, 0644, 1 };
	auto_buf struct buf out;
	struct tar_reader reader;
	struct error err;
	struct str data;
	buf_init(&out, BUF_MAX_DEFAULT);
	assert_int_equal(tar_write_entry(&out, &entry, &err), 0);
	assert_int_equal(out.len, 3 * TAR_BLOCK);
	struct str input = { out.data, out.len };
	tar_reader_init(&reader);
	assert_int_equal(tar_read(&reader, &input, &data, &err), TAR_ENTRY);
	assert_true(reader.entry.size == entry.size);
	assert_int_equal(tar_read(&reader, &input, &data, &err), TAR_MORE);
	assert_int_equal(tar_reader_finish(&reader, &err), -1);
	tar_reader_done(&reader);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	static char name[TAR_NAME_MAX + 2];
	auto_buf struct buf out;
	struct error err;
	memset(name, 'x', TAR_NAME_MAX + 1);
	buf_init(&out, BUF_MAX_DEFAULT);
	const struct tar_entry entry = { TAR_FILE, name, NULL, 0, 0644, 1 };
	assert_int_equal(tar_write_entry(&out, &entry, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(out.len, 0);
}

static enum error_code code_of(const char *data, size_t len)
{
	struct tar_reader reader;
	struct error err = { 0 };
	struct str input = { data, len }, bytes;
	int step;
	tar_reader_init(&reader);
	do
		step = tar_read(&reader, &input, &bytes, &err);
	while (step == TAR_ENTRY || step == TAR_DATA);
	if (step != -1 && !tar_reader_finish(&reader, &err))
		err.code = ERR_NONE;
	tar_reader_done(&reader);
	return err.code;
}

static void what_is_no_archive_is_said_to_be_none(void **state)
{
	char noise[2048], zeros[1024] = { 0 };
	auto_buf struct buf out;
	struct error err;
	const struct tar_entry entry = { TAR_FILE, "a", NULL, 700, 0644, 1 };
	memset(noise, 'x', sizeof noise);
	assert_int_equal(code_of(noise, sizeof noise), ERR_CORRUPT);
	assert_int_equal(code_of("", 0), ERR_CORRUPT);
	assert_int_equal(code_of(zeros, sizeof zeros), ERR_NONE);
	buf_init(&out, BUF_MAX_DEFAULT);
	assert_int_equal(tar_write_entry(&out, &entry, &err), 0);
	buf_append(&out, noise, 700);
	tar_write_padding(&out, 700);
	assert_int_equal(code_of(out.data, out.len), ERR_CORRUPT); /* no end */
	tar_write_end(&out);
	assert_int_equal(code_of(out.data, out.len), ERR_NONE);
	assert_int_equal(code_of(out.data, out.len - 1), ERR_CORRUPT);
	out.data[3] ^= 1;
	assert_int_equal(code_of(out.data, out.len), ERR_CORRUPT);
}

static void names_are_cleaned_or_refused(void **state)
{
	static const char *const pairs[][2] = { { "a/b", "a/b" }, { "./a//b/", "a/b" },
		{ "./", "" }, { ".", "" }, { "a/./b", "a/b" }, { "..a/b..", "..a/b.." },
		{ "/a", NULL }, { "a/..", NULL }, { "..", NULL }, { "../a", NULL },
		{ "a/../b", NULL } };
	auto_arena struct arena arena;
	arena_init(&arena);
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		const char *clean = tar_clean_name(&arena, pairs[i][0]);
		if (pairs[i][1])
			assert_string_equal(clean, pairs[i][1]);
		else
			assert_null(clean);
	}
}

static void a_link_stays_only_when_no_road_leads_out(void **state)
{
	assert_true(tar_link_stays("l", "a"));
	assert_true(tar_link_stays("l", "a/b/./c"));
	assert_true(tar_link_stays("d/l", "../a"));
	assert_true(tar_link_stays("d/e/l", ".././../a"));
	assert_true(tar_link_stays("d/l", ".."));
	assert_false(tar_link_stays("l", ".."));
	assert_false(tar_link_stays("d/l", "../.."));
	assert_false(tar_link_stays("l", "/etc/passwd"));
	assert_false(tar_link_stays("l", ""));
	/* `a` may be a link to a directory above the one it stands in. */
	assert_false(tar_link_stays("l", "a/../b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(a_size_that_ustar_cannot_hold_is_in_a_pax_header),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
		cmocka_unit_test(what_is_no_archive_is_said_to_be_none),
		cmocka_unit_test(names_are_cleaned_or_refused),
		cmocka_unit_test(a_link_stays_only_when_no_road_leads_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
