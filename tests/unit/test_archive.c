/* Archives: whole trees go out and come in again; a hostile one changes nothing. */
#include <archive.h>
#include <archive_entry.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include "base/buf.h"
#include "base/clock.h"
#include "core/archive.h"
#include "files_fixture.h"

/* -- tar, written by hand, so that it can hold anything -- */

static struct buf tar;

static void put_octal(char *field, size_t len, uint64_t value)
{
	for (size_t i = len - 1; i-- > 0; value >>= 3)
		field[i] = (char)('0' + (value & 7));
}

struct header {
	const char *name;
	char type;
	unsigned mode;
	const char *link;
	uint64_t size;
};

static void add_header(struct header h)
{
	char block[512] = "";
	unsigned sum = 0;

	memcpy(block, h.name, strlen(h.name) < 100 ? strlen(h.name) : 100);
	put_octal(block + 100, 8, h.mode);
	put_octal(block + 108, 8, 0);
	put_octal(block + 116, 8, 0);
	put_octal(block + 124, 12, h.size);
	put_octal(block + 136, 12, 1000000000);
	block[156] = h.type;
	if (h.link)
		memcpy(block + 157, h.link, strlen(h.link));
	memcpy(block + 257, "ustar\00000", 8);
	put_octal(block + 329, 8, 1);
	put_octal(block + 337, 8, 3);
	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < sizeof block; i++)
		sum += (unsigned char)block[i];
	put_octal(block + 148, 7, sum);
	block[155] = ' ';
	buf_append(&tar, block, sizeof block);
}

static void add_data(const char *data, size_t len)
{
	static const char zeros[512];

	buf_append(&tar, data, len);
	buf_append(&tar, zeros, (512 - len % 512) % 512);
}

static void add_file(const char *name, const char *content)
{
	add_header((struct header){ name, '0', 0644, NULL, strlen(content) });
	add_data(content, strlen(content));
}

static void add_directory(const char *name)
{
	add_header((struct header){ name, '5', 0755, NULL, 0 });
}

static void add_link(const char *name, const char *target)
{
	add_header((struct header){ name, '2', 0777, target, 0 });
}

/* A pax header with one record, for the next entry. */
static void add_record(const char *key, const char *value)
{
	auto_buf struct buf record;
	size_t len = strlen(key) + strlen(value) + 3;

	buf_init(&record, 65536);
	size_t digits = len + 2 > 99 ? (len + 3 > 999 ? 4 : 3) : 2;
	buf_printf(&record, "%zu %s=%s\n", len + digits, key, value);
	add_header((struct header){ "PaxHeader", 'x', 0644, NULL, record.len });
	add_data(record.data, record.len);
}

static void add_end(void)
{
	static const char zeros[1024];

	buf_append(&tar, zeros, sizeof zeros);
}

static int begin(void **state)
{
	buf_init(&tar, (size_t)256 << 20);
	return set_up(state);
}

static int finish(void **state)
{
	buf_done(&tar);
	return tear_down(state);
}

/* -- jobs -- */

static bool is_done;
static int calls;

static void on_done(void *ctx, const struct error *failed)
{
	is_done = true;
	calls++;
	if (failed)
		err = *failed;
	loop_stop(core.loop);
}

static void on_timeout(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

static void wait_for_done(void)
{
	struct loop_timer *timer = loop_after(core.loop, 60000, on_timeout, NULL);

	assert_int_equal(loop_run(core.loop, &(struct error){ 0 }), 0);
	if (is_done)
		loop_cancel(core.loop, timer);
	assert_true(is_done);
}

/* The code it was refused with, or ERR_NONE. */
static enum error_code send_archive(const char *path, const char *data, size_t len)
{
	struct archive_job *job;
	int fd;

	err = (struct error){ 0 };
	is_done = false;
	if (archive_in(&request_system, &w, path, &fd, on_done, NULL, &job, &err) < 0)
		return err.code;
	err = (struct error){ 0 };
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	ssize_t sent = fd_write_full(fd, data, len);
	assert_true(sent == (ssize_t)len || errno == EPIPE);
	close(fd);
	wait_for_done();
	return err.code;
}

static void assert_comes_in(const char *path)
{
	add_end();
	if (send_archive(path, tar.data, tar.len) != ERR_NONE)
		fail_msg("refused: %s", err.text);
	assert_in_empties();
}

static int count_upper(void)
{
	uint64_t bytes, inodes;

	assert_int_equal(path_measure_tree(upper, &bytes, &inodes, &err), 0);
	return (int)inodes - 1;
}

/* Nothing comes in, the text names `named`. */
static void assert_refused(enum error_code code, const char *named)
{
	int before = count_upper();

	if (send_archive("", tar.data, tar.len) != code)
		fail_msg("%s: %s (%s)", named, error_code_name(err.code), err.text);
	if (!strstr(err.text, named))
		fail_msg("'%s' isn't named: %s", named, err.text);
	assert_int_equal(count_upper(), before);
	buf_clear(&tar);
	assert_in_empties();
}

/* The archive of `path`, in `tar`. */
static enum error_code receive(const char *path, enum archive_format format)
{
	struct archive_job *job;
	char data[8192];
	ssize_t got;
	int fd;

	err = (struct error){ 0 };
	is_done = false;
	buf_clear(&tar);
	if (archive_out(&request_system, &w, path, format, &fd, on_done, NULL, &job, &err) < 0)
		return err.code;
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	while ((got = read(fd, data, sizeof data)) > 0)
		buf_append(&tar, data, (size_t)got);
	assert_int_equal(got, 0);
	close(fd);
	wait_for_done();
	return err.code;
}

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

/* `tar` by zstd. */
static void compress_tar(void)
{
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	size_t size = tar.len + 1000000, used = 0;
	char *out_data = malloc(size);

	assert_non_null(out_data);
	assert_int_equal(archive_write_set_format_raw(archive), ARCHIVE_OK);
	assert_int_equal(archive_write_add_filter_zstd(archive), ARCHIVE_OK);
	assert_int_equal(archive_write_open_memory(archive, out_data, size, &used), ARCHIVE_OK);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_pathname(entry, "x");
	assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
	assert_int_equal(archive_write_data(archive, tar.data, tar.len), (la_ssize_t)tar.len);
	assert_int_equal(archive_write_close(archive), ARCHIVE_OK);
	archive_write_free(archive);
	archive_entry_free(entry);
	buf_clear(&tar);
	buf_append(&tar, out_data, used);
	free(out_data);
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

/* -- out, and in again -- */

static void a_tree_goes_out_and_comes_in_again(void **state)
{
	static const enum archive_format formats[] = { ARCHIVE_TAR, ARCHIVE_TAR_ZST };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;

	put_dir(upper, "d");
	put_dir(upper, "d/empty");
	put_file(upper, "d/f", "content");
	assert_int_equal(fchmodat(upper, "d/f", 0751, 0), 0);
	assert_int_equal(linkat(upper, "d/f", upper, "hard", 0), 0);
	put_link("d/f", upper, "link");
	put_link("/env", upper, ".venv");
	put_file(upper, "not \xff utf-8", "b");
	put_file(upper, "n\xc3\xb6n", "u");
	auto_close int sparse = openat(upper, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(pwrite(sparse, "end", 3, 50 << 20), 3);
	assert_int_equal(ftruncate(sparse, 100 << 20), 0);
	assert_int_equal(mkfifoat(upper, "fifo", 0644), 0);
	auto_close int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	str_format(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", upper);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof address), 0);
	for (size_t i = 0; i < 2; i++) {
		char to[16], path[64];

		str_format(to, sizeof to, "copy%zu", i);
		assert_int_equal(receive("", formats[i]), ERR_NONE);
		assert_true(tar.len < 100000);
		if (send_archive(to, tar.data, tar.len) != ERR_NONE)
			fail_msg("%s", err.text);
		auto_close int copy = open_dir(upper, to);
		assert_content(copy, "d/f", "content");
		assert_content(copy, "link", "content");
		assert_content(copy, "not \xff utf-8", "b");
		assert_content(copy, "n\xc3\xb6n", "u");
		assert_true(is_there(copy, "d/empty") && is_there(copy, ".venv"));
		assert_false(is_there(copy, "fifo") || is_there(copy, "socket"));
		assert_int_equal(fstatat(copy, "d/f", &st, 0), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0751);
		assert_int_equal(st.st_nlink, 2);
		assert_int_equal(fstatat(copy, "sparse", &st, 0), 0);
		assert_int_equal(st.st_size, 100 << 20);
		assert_true(st.st_blocks < 1000);
		str_format(path, sizeof path, "%s/sparse", to);
		auto_close int again = openat(upper, path, O_RDONLY | O_CLOEXEC);
		char end[4] = "";
		assert_int_equal(pread(again, end, 3, 50 << 20), 3);
		assert_string_equal(end, "end");
		close(copy);
		copy = -1;
		assert_int_equal(path_remove_tree(upper, to, &err), 0);
	}
	assert_in_empties();
}

static void one_file_goes_out_by_its_name(void **state)
{
	put_dir(upper, "d");
	put_file(upper, "d/f", "content");
	put_link("d/f", upper, "link");
	put_link("/etc/passwd", upper, "evil");
	assert_int_equal(mkfifoat(upper, "fifo", 0644), 0);
	assert_int_equal(receive("link", ARCHIVE_TAR), ERR_NONE);
	assert_int_equal(send_archive("copy", tar.data, tar.len), ERR_NONE);
	assert_content(upper, "copy/f", "content");
	assert_int_equal(receive("evil", ARCHIVE_TAR), ERR_DENIED);
	assert_int_equal(receive("fifo", ARCHIVE_TAR), ERR_INVALID);
	assert_int_equal(receive("absent", ARCHIVE_TAR), ERR_NOT_FOUND);
	/* An empty directory is an archive, too. */
	put_dir(upper, "empty");
	assert_int_equal(receive("empty", ARCHIVE_TAR_ZST), ERR_NONE);
	assert_int_equal(send_archive("", tar.data, tar.len), ERR_NONE);
}

static void a_file_that_shrinks_makes_the_archive_unwhole(void **state)
{
	struct archive_job *job;
	char data[65536];
	int fd;

	auto_close int large = openat(upper, "large", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	memset(data, 'x', sizeof data);
	for (int i = 0; i < 100; i++)
		assert_int_equal(write(large, data, sizeof data), sizeof data);
	is_done = false;
	assert_int_equal(
		archive_out(&request_system, &w, "", ARCHIVE_TAR, &fd, on_done, NULL, &job, &err),
		0);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_true(read(fd, data, 1) == 1);
	assert_int_equal(ftruncate(large, 10), 0);
	while (read(fd, data, sizeof data) > 0)
		;
	close(fd);
	wait_for_done();
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_non_null(strstr(err.text, "large"));
}

static void a_link_that_takes_a_directorys_place_isnt_followed_out(void **state)
{
	put_dir(upper, "swap");
	put_file(upper, "swap/secret", "mine");
	put_link("../../../out", upper, "evil");
	pid_t pid = start_swapping();
	uint64_t end = clock_monotonic_ms() + 1000;
	while (clock_monotonic_ms() < end) {
		assert_int_equal(receive("", ARCHIVE_TAR), ERR_NONE);
		tar.data[tar.len - 1] = '\0';
		assert_null(memmem(tar.data, tar.len, "secretsecret", 12));
		static const char content[] = "secret\0";
		for (size_t at = 0; at + 512 <= tar.len; at += 512)
			assert_int_not_equal(memcmp(tar.data + at, content, 8), 0);
		buf_clear(&tar);
		add_file("swap/made", "x");
		add_file("evil/made", "x");
		add_end();
		send_archive("", tar.data, tar.len);
		assert_false(is_there(out, "made"));
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_in_empties();
}

/* -- ends -- */

static void a_cancelled_job_leaves_nothing_and_says_nothing(void **state)
{
	struct archive_job *job;
	int fd;

	put_file(upper, "f", "x");
	add_file("half", "x");
	add_file("half/2", "x");
	calls = 0;
	assert_int_equal(archive_in(&request_system, &w, "", &fd, on_done, NULL, &job, &err), 0);
	assert_int_equal(write(fd, tar.data, 700), 700);
	assert_int_equal(w.users, 1);
	archive_cancel(job);
	close(fd);
	assert_int_equal(
		archive_out(&request_system, &w, "", ARCHIVE_TAR, &fd, on_done, NULL, &job, &err),
		0);
	archive_cancel(job);
	close(fd);
	archive_cancel(NULL);
	assert_in_empties();
	assert_int_equal(calls, 0);
	assert_int_equal(count_upper(), 1);
}

/* The latest one: those that removed leftovers may still be there, as zombies. */
static pid_t find_child(void)
{
	char path[64], text[512];
	long pid = -1;

	str_format(path, sizeof path, "/proc/self/task/%d/children", getpid());
	if (fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return -1;
	for (char *at = text, *end; strtol(at, &end, 10) > 0; at = end)
		pid = strtol(at, NULL, 10);
	return (pid_t)pid;
}

static void a_child_that_is_killed_is_a_failure(void **state)
{
	struct archive_job *job;
	int fd;

	is_done = false;
	add_file("f", "x");
	assert_int_equal(archive_in(&request_system, &w, "", &fd, on_done, NULL, &job, &err), 0);
	assert_int_equal(write(fd, tar.data, 600), 600);
	pid_t pid = find_child();
	if (pid <= 0) {
		archive_cancel(job);
		close(fd);
		skip(); /* this kernel doesn't tell */
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	wait_for_done();
	close(fd);
	assert_int_equal(err.code, ERR_FAILED);
	assert_in_empties();
	assert_int_equal(count_upper(), 0);
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
		with_workspace(a_tree_goes_out_and_comes_in_again),
		with_workspace(one_file_goes_out_by_its_name),
		with_workspace(a_file_that_shrinks_makes_the_archive_unwhole),
		with_workspace(a_link_that_takes_a_directorys_place_isnt_followed_out),
		with_workspace(a_cancelled_job_leaves_nothing_and_says_nothing),
		with_workspace(a_child_that_is_killed_is_a_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
