/* archive_fixture.h -- archives written by hand, sent to a workspace and received from it. */
#pragma once
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

static inline void put_octal(char *field, size_t len, uint64_t value)
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

static inline void add_header(struct header h)
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

static inline void add_data(const char *data, size_t len)
{
	static const char zeros[512];

	buf_append(&tar, data, len);
	buf_append(&tar, zeros, (512 - len % 512) % 512);
}

static inline void add_file(const char *name, const char *content)
{
	add_header((struct header){ name, '0', 0644, NULL, strlen(content) });
	add_data(content, strlen(content));
}

static inline void add_directory(const char *name)
{
	add_header((struct header){ name, '5', 0755, NULL, 0 });
}

static inline void add_link(const char *name, const char *target)
{
	add_header((struct header){ name, '2', 0777, target, 0 });
}

/* A pax header with one record, for the next entry. */
static inline void add_record(const char *key, const char *value)
{
	auto_buf struct buf record;
	size_t len = strlen(key) + strlen(value) + 3;

	buf_init(&record, 65536);
	size_t digits = len + 2 > 99 ? (len + 3 > 999 ? 4 : 3) : 2;
	buf_printf(&record, "%zu %s=%s\n", len + digits, key, value);
	add_header((struct header){ "PaxHeader", 'x', 0644, NULL, record.len });
	add_data(record.data, record.len);
}

static inline void add_end(void)
{
	static const char zeros[1024];

	buf_append(&tar, zeros, sizeof zeros);
}

static inline int begin(void **state)
{
	buf_init(&tar, (size_t)256 << 20);
	return set_up(state);
}

static inline int finish(void **state)
{
	buf_done(&tar);
	return tear_down(state);
}

/* -- jobs -- */

static bool is_done;
static int calls;

static inline void on_done(void *ctx, const struct error *failed)
{
	is_done = true;
	calls++;
	if (failed)
		err = *failed;
	loop_stop(core.loop);
}

static inline void on_timeout(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

static inline void wait_for_done(void)
{
	struct loop_timer *timer = loop_after(core.loop, 60000, on_timeout, NULL);

	assert_int_equal(loop_run(core.loop, &(struct error){ 0 }), 0);
	if (is_done)
		loop_cancel(core.loop, timer);
	assert_true(is_done);
}

/* The code it was refused with, or ERR_NONE. */
static inline enum error_code send_archive(const char *path, const char *data, size_t len)
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

static inline void assert_comes_in(const char *path)
{
	add_end();
	if (send_archive(path, tar.data, tar.len) != ERR_NONE)
		fail_msg("refused: %s", err.text);
	assert_in_empties();
}

static inline int count_upper(void)
{
	uint64_t bytes, inodes;

	assert_int_equal(path_measure_tree(upper, &bytes, &inodes, &err), 0);
	return (int)inodes - 1;
}

/* Nothing comes in, the text names `named`. */
static inline void assert_refused(enum error_code code, const char *named)
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
static inline enum error_code receive(const char *path, enum archive_format format)
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

/* `tar` by zstd. */
static inline void compress_tar(void)
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
