/* tar: what is written is read again, archives of others are understood, and names that lead out
 * are told. */
/* security: files */
#include <string.h>
#include "base/path.h"
#include "format/archives/archived.h"
#include "format/archives/tar.h"
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

/* A sparse file as pax has it: what is stored lies at 4096 and at 8192 + 5, of 12288. */
static void a_sparse_file_says_where_its_bytes_lie(void **state)
{
	static const char records[] = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
				      "25 GNU.sparse.name=holes\n29 GNU.sparse.realsize=12288\n";
	static const char map[] = "3\n4096\n3\n8197\n2\n12288\n0\n";
	auto_buf struct buf out;
	struct tar_reader reader;
	struct error err;
	struct str data;
	buf_init(&out, BUF_MAX_DEFAULT);
	struct tar_entry extra = { TAR_FILE, "pax", NULL, sizeof records - 1, 0644, 1 };
	assert_int_equal(tar_write_entry(&out, &extra, &err), 0);
	out.data[156] = 'x';
	unsigned sum = 8 * ' ';
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? 0 : (unsigned char)out.data[i];
	str_format(out.data + 148, 8, "%07o", sum);
	buf_append(&out, records, sizeof records - 1);
	tar_write_padding(&out, sizeof records - 1);
	struct tar_entry entry = { TAR_FILE, "GNUSparseFile.0/holes", NULL, TAR_BLOCK + 5, 0600,
		1 };
	assert_int_equal(tar_write_entry(&out, &entry, &err), 0);
	buf_append(&out, map, sizeof map - 1);
	tar_write_padding(&out, sizeof map - 1);
	buf_text(&out, "abcde");
	tar_write_padding(&out, 5);
	tar_write_end(&out);
	for (size_t piece = 1; piece < out.len; piece += 211) {
		char seen[5] = "";
		struct str input = { out.data, 0 };
		int step;
		tar_reader_init(&reader);
		for (size_t at = 0;;) {
			step = tar_read(&reader, &input, &data, &err);
			if (step == TAR_ENTRY) {
				assert_string_equal(reader.entry.name, "holes");
				assert_int_equal(reader.entry.size, 12288);
			} else if (step == TAR_DATA) {
				bool is_first = reader.offset < 8192;
				size_t place = reader.offset - (is_first ? 4096 : 8197 - 3);
				assert_true(place + data.len <= (is_first ? 3 : 5));
				memcpy(seen + place, data.data, data.len);
			} else if (step == TAR_MORE && at < out.len) {
				size_t len = out.len - at < piece ? out.len - at : piece;
				input = (struct str){ out.data + at, len };
				at += len;
			} else
				break;
		}
		assert_int_equal(step, TAR_END);
		assert_memory_equal(seen, "abcde", 5);
		tar_reader_done(&reader);
	}
}

static void names_are_cleaned_or_refused(void **state)
{
	static const char *const pairs[][2] = { { "a/b", "a/b" }, { "./a//b/", "a/b" },
		{ "./", "" }, { ".", "" }, { "a/./b", "a/b" }, { "..a/b..", "..a/b.." },
		{ "/a", NULL }, { "a/..", NULL }, { "..", NULL }, { "../a", NULL },
		{ "a/../b", NULL } };
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		const struct tar_entry entry = { .kind = TAR_DIRECTORY, .name = pairs[i][0] };
		struct archived_place place;
		struct error err;
		int judged = archived_judge(&entry, ARCHIVED_DEPTH_MAX, &place, &err);
		assert_int_equal(judged, pairs[i][1] ? 0 : -1);
		if (pairs[i][1])
			assert_string_equal(place.path, pairs[i][1]);
	}
}

static void a_link_stays_only_when_no_road_leads_out(void **state)
{
	assert_true(path_link_stays("l", "a"));
	assert_true(path_link_stays("l", "a/b/./c"));
	assert_true(path_link_stays("d/l", "../a"));
	assert_true(path_link_stays("d/e/l", ".././../a"));
	assert_true(path_link_stays("d/l", ".."));
	assert_false(path_link_stays("l", ".."));
	assert_false(path_link_stays("d/l", "../.."));
	assert_false(path_link_stays("l", "/etc/passwd"));
	assert_false(path_link_stays("l", ""));
	/* `a` may be a link to a directory above the one it stands in. */
	assert_false(path_link_stays("l", "a/../b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(a_size_that_ustar_cannot_hold_is_in_a_pax_header),
		cmocka_unit_test(a_name_that_is_too_long_is_refused),
		cmocka_unit_test(what_is_no_archive_is_said_to_be_none),
		cmocka_unit_test(a_sparse_file_says_where_its_bytes_lie),
		cmocka_unit_test(names_are_cleaned_or_refused),
		cmocka_unit_test(a_link_stays_only_when_no_road_leads_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
