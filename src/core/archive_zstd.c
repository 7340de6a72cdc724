#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/archive_internal.h"

struct source {
	int fd;
	uint64_t got;
	char data[ARCHIVE_BUFFER];
};

static ssize_t read_some(int fd, char data[ARCHIVE_BUFFER])
{
	ssize_t got;

	do {
		got = read(fd, data, ARCHIVE_BUFFER);
	} while (got < 0 && errno == EINTR);
	return got;
}

static int write_failed(struct archive *archive, struct error *err)
{
	const char *why = archive_error_string(archive);

	return fail(err, ERR_FAILED, "compress the archive: %s", why ? why : "unknown");
}

int archive_compress(void *ctx, const int *fds, uint64_t *value, struct error *err)
{
	static char data[ARCHIVE_BUFFER];
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	ssize_t got;

	if (!archive || !entry)
		abort();
	archive_entry_set_filetype(entry, AE_IFREG);
	/* Zeros behind it would be no zstd. */
	if (archive_write_set_format_raw(archive) != ARCHIVE_OK ||
		archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK ||
		archive_write_add_filter_zstd(archive) != ARCHIVE_OK ||
		archive_write_open_fd(archive, fds[1]) != ARCHIVE_OK ||
		archive_write_header(archive, entry) != ARCHIVE_OK)
		return write_failed(archive, err);
	while ((got = read_some(fds[0], data)) > 0)
		if (archive_write_data(archive, data, (size_t)got) != got)
			return write_failed(archive, err);
	if (got < 0)
		return fail_errno(err, "read the archive");
	/* Nothing is freed: the process ends. */
	return archive_write_close(archive) != ARCHIVE_OK ? write_failed(archive, err) : 0;
}

static la_ssize_t read_more(struct archive *archive, void *ctx, const void **data)
{
	struct source *source = ctx;
	ssize_t got = read_some(source->fd, source->data);

	if (got < 0)
		archive_set_error(archive, errno, "read");
	else
		source->got += (uint64_t)got;
	*data = source->data;
	return got;
}

static int read_failed(struct archive *archive, struct error *err)
{
	const char *why = archive_error_string(archive);

	if (archive_errno(archive) == ENOMEM)
		return fail(err, ERR_LIMIT, "reading the archive needs too much memory");
	return fail(err, ERR_INVALID, "this is neither a tar nor a tar.zst archive: %s",
		why ? why : "unknown");
}

static int pass_on(struct archive *archive, const struct source *source, int out, struct error *err)
{
	const void *data;
	size_t len;
	la_int64_t at;
	int got;

	while ((got = archive_read_data_block(archive, &data, &len, &at)) == ARCHIVE_OK) {
		uint64_t unpacked = (uint64_t)archive_filter_bytes(archive, 0);

		if (unpacked > ARCHIVE_RATIO_FREE && unpacked / ARCHIVE_RATIO_MAX > source->got)
			return fail(err, ERR_LIMIT,
				"the archive unpacks to more than %d times its size",
				ARCHIVE_RATIO_MAX);
		if (fd_write_full(out, data, len) != (ssize_t)len)
			return fail_errno(err, "hand the archive on");
	}
	return got == ARCHIVE_EOF ? 0 : read_failed(archive, err);
}

int archive_decompress(void *ctx, const int *fds, uint64_t *value, struct error *err)
{
	static struct source source;
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;

	if (!archive)
		abort();
	source.fd = fds[0];
	if (archive_read_support_filter_zstd(archive) != ARCHIVE_OK ||
		archive_read_support_format_raw(archive) != ARCHIVE_OK ||
		archive_read_support_format_empty(archive) != ARCHIVE_OK)
		return fail(err, ERR_UNAVAILABLE, "libarchive can't read zstd: %s",
			archive_error_string(archive));
	if (archive_read_open(archive, &source, NULL, read_more, NULL) != ARCHIVE_OK)
		return read_failed(archive, err);
	int got = archive_read_next_header(archive, &entry);
	if (got == ARCHIVE_EOF)
		return 0;
	return got == ARCHIVE_OK ? pass_on(archive, &source, fds[1], err)
				 : read_failed(archive, err);
}
