/* Archives that come in: a hostile one changes nothing. */
#include "archive_fixture.h"

/* -- what comes in -- */

static void an_archive_is_unpacked_and_merged(void **state)
{
	struct stat st;

	put_dir(upper, "d");
	put_file(upper, "d/kept", "kept");
	put_file(upper, "d/old", "old");
	put_link("d/kept", upper, "link");
	add_directory("./");
	add_directory("./d/");
	add_file("./d/old", "new");
	add_file("implied/a/f", "f");
	add_file("link", "a file now");
	add_link("d/up", "../implied/a");
	add_link(".venv", "/env");
	add_header((struct header){ "d/hard", '1', 0644, "implied/a/f", 0 });
	add_header((struct header){ "d/run", '0', 0755, NULL, 0 });
	add_file("twice", "first");
	add_file("twice", "second");
	assert_comes_in("");
	assert_content(upper, "d/kept", "kept");
	assert_content(upper, "d/old", "new");
	assert_content(upper, "d/up/f", "f");
	assert_content(upper, "d/hard", "f");
	assert_content(upper, "twice", "second");
	assert_content(upper, "link", "a file now");
	assert_int_equal(fstatat(upper, "d/run", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0755);
	assert_int_equal(st.st_mtime, 1000000000);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(fstatat(upper, "d/hard", &st, 0), 0);
	assert_int_equal(st.st_nlink, 2);
}

static void the_directory_is_made_when_all_is_well(void **state)
{
	add_file("f", "f");
	put_link("/workspace/real", upper, "link");
	assert_comes_in("new/deep");
	assert_content(upper, "new/deep/f", "f");
	buf_clear(&tar);
	add_file("f", "g");
	assert_comes_in("link");
	assert_content(upper, "real/f", "g");
	buf_clear(&tar);
	add_file("/f", "f");
	add_end();
	assert_int_equal(send_archive("other/deep", tar.data, tar.len), ERR_DENIED);
	assert_false(is_there(upper, "other"));
	put_link("../../../out", upper, "evil");
	assert_int_equal(send_archive("evil", tar.data, tar.len), ERR_DENIED);
	assert_int_equal(send_archive("evil/x", tar.data, tar.len), ERR_DENIED);
	assert_int_equal(send_archive("real/f", tar.data, tar.len), ERR_CONFLICT);
	assert_int_equal(send_archive("../x", tar.data, tar.len), ERR_INVALID);
}

static void names_of_all_kinds_come_in(void **state)
{
	char name[1500] = "";
	static const char segment[] = "a-rather-long-name-of-a-directory/";

	for (size_t i = 0; i < 40; i++)
		memcpy(name + i * (sizeof segment - 1), segment, sizeof segment);
	memcpy(name + 40 * (sizeof segment - 1), "f", 2);
	add_record("path", name);
	add_file("cut", "long");
	add_file("n\xc3\xb6n-ascii", "u");
	add_file("not \xff utf-8", "b");
	add_file("new\nline", "n");
	add_record("path", "p\xc3\xa4x");
	add_file("cut", "p");
	add_record("SCHILY.xattr.user.comment", "dropped");
	add_file("attribute", "x");
	assert_comes_in("");
	assert_content(upper, name, "long");
	assert_content(upper, "n\xc3\xb6n-ascii", "u");
	assert_content(upper, "not \xff utf-8", "b");
	assert_content(upper, "new\nline", "n");
	assert_content(upper, "p\xc3\xa4x", "p");
	auto_close int fd = openat(upper, "attribute", O_RDONLY | O_CLOEXEC);
	assert_true(fgetxattr(fd, "user.comment", NULL, 0) < 0);
}

/* Of this process and of the children that were waited for: it is the same on a busy machine. */
static uint64_t cpu_seconds(void)
{
	struct rusage own, children;

	assert_int_equal(getrusage(RUSAGE_SELF, &own), 0);
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &children), 0);
	return (uint64_t)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + children.ru_utime.tv_sec +
			  children.ru_stime.tv_sec);
}

static void ten_thousand_files_come_in_quickly(void **state)
{
	for (int i = 0; i < 10000; i++) {
		char name[64];

		str_format(name, sizeof name, "d%02d/e%02d/%05d", i / 1000, i / 100 % 10, i);
		add_file(name, "content");
	}
	uint64_t before = cpu_seconds();
	assert_comes_in("");
	/* About one. */
	assert_true(cpu_seconds() - before < 20);
	assert_content(upper, "d09/e09/09999", "content");
}

/* -- what doesn't -- */

static void entries_that_lead_out_are_refused(void **state)
{
	add_file("good", "good");
	add_file("/etc/absolute", "x");
	assert_refused(ERR_DENIED, "/etc/absolute");
	add_file("a/../../dots", "x");
	assert_refused(ERR_DENIED, "a/../../dots");
	add_file("..", "x");
	assert_refused(ERR_DENIED, "'..'");
	add_record("path", "../pax");
	add_file("harmless", "x");
	assert_refused(ERR_DENIED, "../pax");
}

static void links_come_in_as_they_are_and_nothing_beneath_them(void **state)
{
	static const char *const targets[] = { "/etc/passwd", "../../../out", "/proc/self/root",
		"d/../../../../out", "/" };
	char text[64];

	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		add_link("l", targets[i]);
		add_file("l/secret", "overwritten");
		assert_refused(ERR_DENIED, "l/secret");
		add_link("l", targets[i]);
		add_link("l/more", "x");
		assert_refused(ERR_DENIED, "l/more");
		add_link("l", targets[i]);
		assert_comes_in("");
		buf_clear(&tar);
		ssize_t len = readlinkat(upper, "l", text, sizeof text);
		assert_int_equal(len, strlen(targets[i]));
		assert_memory_equal(text, targets[i], (size_t)len);
	}
	/* And it isn't followed by the next one, either. */
	add_file("l/secret", "overwritten");
	add_end();
	assert_refused(ERR_CONFLICT, "l");
	add_record("linkpath", "/etc/shadow");
	add_link("pax", "x");
	assert_comes_in("");
	assert_int_equal(readlinkat(upper, "pax", text, sizeof text), 11);
}

static void nothing_is_written_through_a_link(void **state)
{
	add_link("l", "d");
	add_directory("d");
	add_file("l/f", "x");
	assert_refused(ERR_DENIED, "l/f");
	add_file("f", "");
	add_file("f/g", "x");
	assert_refused(ERR_DENIED, "f/g");
	add_link("l", "/workspace/d");
	add_directory("l");
	assert_refused(ERR_DENIED, "'l'");
	/* A link of the tree is in the way of a directory. */
	put_link("../../../out", upper, "tree");
	add_file("tree/secret", "overwritten");
	add_end();
	assert_refused(ERR_CONFLICT, "tree");
	put_file(upper, "file", "mine");
	add_directory("file");
	add_file("another", "x");
	add_end();
	assert_refused(ERR_CONFLICT, "file");
	put_dir(upper, "dir");
	add_file("other", "x");
	add_file("dir", "x");
	add_end();
	assert_refused(ERR_CONFLICT, "dir");
	assert_false(is_there(upper, "other") || is_there(upper, "another"));
	/* A link where a file is to be is replaced, not written through. */
	put_link("../../../out/secret", upper, "secret");
	add_file("secret", "overwritten");
	assert_comes_in("");
	assert_content(upper, "secret", "overwritten");
}

static void hard_links_lead_to_the_archives_own_files(void **state)
{
	put_file(upper, "there", "there");
	add_header((struct header){ "h", '1', 0644, "there", 0 });
	assert_refused(ERR_DENIED, "'h'");
	add_header((struct header){ "h", '1', 0644, "/etc/passwd", 0 });
	assert_refused(ERR_DENIED, "'h'");
	add_header((struct header){ "h", '1', 0644, "../upper/there", 0 });
	assert_refused(ERR_DENIED, "'h'");
	add_link("l", "f");
	add_file("f", "x");
	add_header((struct header){ "h", '1', 0644, "l", 0 });
	assert_refused(ERR_DENIED, "'h'");
	add_directory("d");
	add_header((struct header){ "h", '1', 0644, "d", 0 });
	assert_refused(ERR_DENIED, "'h'");
	add_header((struct header){ "h", '1', 0644, "h", 0 });
	assert_refused(ERR_INVALID, "'h'");
}

static void special_files_and_bits_are_refused(void **state)
{
	static const char types[] = "346";

	for (const char *type = types; *type; type++) {
		add_header((struct header){ "special", *type, 0666, NULL, 0 });
		assert_refused(ERR_DENIED, "special");
	}
	static const unsigned modes[] = { 04755, 02755, 06755 };
	for (size_t i = 0; i < 3; i++) {
		add_header((struct header){ "su", '0', modes[i], NULL, 0 });
		assert_refused(ERR_DENIED, "'su'");
		add_header((struct header){ "sd", '5', modes[i], NULL, 0 });
		assert_refused(ERR_DENIED, "'sd'");
	}
	static const char *const attributes[] = { "security.capability", "user.overlay.opaque",
		"trusted.overlay.redirect", "security.selinux" };
	for (size_t i = 0; i < 4; i++) {
		char key[64];

		str_format(key, sizeof key, "SCHILY.xattr.%s", attributes[i]);
		add_record(key, "y");
		add_file("attribute", "x");
		assert_refused(ERR_DENIED, attributes[i]);
		str_format(key, sizeof key, "LIBARCHIVE.xattr.%s", attributes[i]);
		add_record(key, "eQ");
		add_file("attribute", "x");
		assert_refused(ERR_DENIED, attributes[i]);
	}
}

static void names_too_deep_or_too_long_are_a_limit(void **state)
{
	char name[5000] = "";

	for (size_t i = 0; i < 101; i++)
		memcpy(name + 2 * i, "d/", 3);
	add_record("path", name);
	add_directory("cut");
	assert_refused(ERR_LIMIT, "d/d/d");
	memset(name, 'n', 256);
	name[256] = '\0';
	add_record("path", name);
	add_file("cut", "");
	assert_refused(ERR_LIMIT, "nnn");
	for (size_t i = 0; i < 4500; i++)
		name[i] = i % 100 == 99 ? '/' : 'x';
	name[4500] = '\0';
	add_record("path", name);
	add_file("cut", "");
	assert_refused(ERR_LIMIT, "xxx");
}

static void what_is_no_whole_archive_is_refused(void **state)
{
	static const char garbage[2000] = "this is no archive at all";
	char content[3000];

	buf_append(&tar, garbage, sizeof garbage);
	assert_refused(ERR_INVALID, "neither a tar");
	assert_refused(ERR_INVALID, "neither a tar"); /* empty */
	buf_append(&tar, "\x1f\x8b\x08\0\0\0\0\0", 8);
	assert_refused(ERR_INVALID, "neither a tar");
	memset(content, 'c', sizeof content);
	content[2999] = '\0';
	add_file("first", "x");
	add_file("cut", content);
	tar.len -= 1500;
	assert_refused(ERR_INVALID, "damaged");
	add_file("first", "x");
	buf_append(&tar, garbage, 512);
	buf_append(&tar, garbage, 512);
	assert_refused(ERR_INVALID, "damaged");
	/* Sizes that nobody has. */
	add_header((struct header){ "huge", '0', 0644, NULL, 077777777777 });
	assert_refused(ERR_INVALID, "huge");
	add_record("size", "9223372036854775807");
	add_file("huge", "x");
	assert_refused(ERR_INVALID, "");
	/* A header of a header's size. */
	add_header((struct header){ "PaxHeader", 'x', 0644, NULL, 077777777777 });
	assert_refused(ERR_INVALID, "");
	add_header((struct header){ "././@LongLink", 'L', 0644, NULL, 077777777777 });
	assert_refused(ERR_INVALID, "");
}

static void the_workspaces_limit_holds(void **state)
{
	static char content[100001];

	w.model.limits.disk_bytes = 1 << 20;
	w.model.disk_usage_bytes = (1 << 20) - 50000;
	memset(content, 'c', sizeof content - 1);
	add_file("small", "x");
	add_file("large", content);
	add_end();
	assert_refused(ERR_LIMIT, "large");
	/* Files are counted in blocks. */
	for (int i = 0; i < 20; i++) {
		char name[16];

		str_format(name, sizeof name, "%d", i);
		add_file(name, "x");
	}
	add_end();
	assert_refused(ERR_LIMIT, "'12'");
	add_file("small", "x");
	assert_comes_in("");
	assert_int_equal(w.model.disk_usage_bytes, (1 << 20) - 50000 + 4096);
}

static void bombs_are_a_limit(void **state)
{
	static char zeros[1 << 20];

	add_header((struct header){ "bomb", '0', 0644, NULL, 100 << 20 });
	for (int i = 0; i < 100; i++)
		buf_append(&tar, zeros, sizeof zeros);
	add_end();
	compress_tar();
	assert_refused(ERR_LIMIT, "times its size, at 'bomb'");
	/* Of nothing but names. */
	for (int i = 0; i < 140000; i++)
		add_directory("d");
	add_end();
	compress_tar();
	assert_refused(ERR_LIMIT, "times its size");
	/* What compresses well, but is small, comes in. */
	add_header((struct header){ "zeros", '0', 0644, NULL, 10 << 20 });
	for (int i = 0; i < 10; i++)
		buf_append(&tar, zeros, sizeof zeros);
	add_end();
	compress_tar();
	assert_int_equal(send_archive("", tar.data, tar.len), ERR_NONE);
	/* And damaged in the middle of a frame. */
	add_file("f", "x");
	tar.len /= 2;
	assert_refused(ERR_INVALID, "");
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
#define with_workspace(test) cmocka_unit_test_setup_teardown(test, begin, finish)
	const struct CMUnitTest tests[] = {
		with_workspace(an_archive_is_unpacked_and_merged),
		with_workspace(the_directory_is_made_when_all_is_well),
		with_workspace(names_of_all_kinds_come_in),
		with_workspace(ten_thousand_files_come_in_quickly),
		with_workspace(entries_that_lead_out_are_refused),
		with_workspace(links_come_in_as_they_are_and_nothing_beneath_them),
		with_workspace(nothing_is_written_through_a_link),
		with_workspace(hard_links_lead_to_the_archives_own_files),
		with_workspace(special_files_and_bits_are_refused),
		with_workspace(names_too_deep_or_too_long_are_a_limit),
		with_workspace(what_is_no_whole_archive_is_refused),
		with_workspace(the_workspaces_limit_holds),
		with_workspace(bombs_are_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
