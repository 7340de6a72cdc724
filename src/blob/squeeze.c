#include "blob/squeeze.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include "base/fd.h"
#include "format/archives/tar.h"

#define CHUNK ((size_t)256 << 10)
#define ZSTD_LEVEL 3
#define GZIP_LEVEL 6
#define GZIP_BITS (15 + 16) /* with a header of gzip */
#define WORKERS_MAX 8
#define WINDOW_LOG_MAX 27 /* 128 MB: a stranger's archive can't ask for more memory */

struct work {
	int from, to;
	enum blob_pack pack;
	uint64_t in, out;
	char *input, *output;
	struct error *err;
};

static ssize_t read_some(struct work *work)
{
	ssize_t got;
	do {
		got = read(work->from, work->input, CHUNK);
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		work->in += (uint64_t)got;
	return got;
}

static int write_out(struct work *work, const char *data, size_t len)
{
	work->out += len;
	if (fd_write_full(work->to, data, len) != (ssize_t)len)
		return fail_errno(work->err, "hand the archive on");
	return 0;
}

/* ---- pack ---- */

static int check_tar(
	struct tar_reader *reader, bool *has_ended, struct str input, struct error *err)
{
	struct str data;
	while (!*has_ended) {
		int step = tar_read(reader, &input, &data, err);
		if (step < 0)
			return -1;
		if (step == TAR_MORE)
			return 0;
		*has_ended = step == TAR_END;
	}
	return 0;
}

static int pack_zstd(struct work *work, ZSTD_CCtx *zstd, struct str input, bool is_last)
{
	ZSTD_inBuffer in = { input.data, input.len, 0 };
	size_t left;
	do {
		ZSTD_outBuffer out = { work->output, CHUNK, 0 };
		left = ZSTD_compressStream2(
			zstd, &out, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return fail(work->err, ERR_FAILED, "compress: %s", ZSTD_getErrorName(left));
		if (write_out(work, work->output, out.pos))
			return -1;
	} while (is_last ? left > 0 : in.pos < in.size);
	return 0;
}

static int pack_gzip(struct work *work, z_stream *gzip, struct str input, bool is_last)
{
	int code;
	gzip->next_in = (unsigned char *)input.data;
	gzip->avail_in = (unsigned)input.len;
	do {
		gzip->next_out = (unsigned char *)work->output;
		gzip->avail_out = CHUNK;
		code = deflate(gzip, is_last ? Z_FINISH : Z_NO_FLUSH);
		if (code == Z_STREAM_ERROR)
			return fail(work->err, ERR_FAILED, "compress by gzip");
		if (write_out(work, work->output, CHUNK - gzip->avail_out))
			return -1;
	} while (is_last ? code != Z_STREAM_END : gzip->avail_in > 0);
	return 0;
}

static int processors(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
	return count > WORKERS_MAX ? WORKERS_MAX : count;
}

static ZSTD_CCtx *open_zstd(void)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	if (!zstd)
		abort();
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	/* A libzstd without threads refuses this, and does without. */
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_nbWorkers, processors());
	return zstd;
}

static int pack(struct work *work)
{
	struct tar_reader reader;
	bool has_ended = false;
	z_stream gzip = { 0 };
	ZSTD_CCtx *zstd = work->pack == BLOB_PACK_ZSTD ? open_zstd() : NULL;
	ssize_t got;
	if (!zstd && deflateInit2(&gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_BITS, 8,
			     Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	tar_reader_init(&reader);
	do {
		got = read_some(work);
		if (got < 0)
			return fail_errno(work->err, "read the archive");
		struct str input = { work->input, (size_t)got };
		if (check_tar(&reader, &has_ended, input, work->err) ||
			(!got && tar_reader_finish(&reader, work->err)))
			return error_context(work->err, "the archive is cut or damaged");
		if (zstd ? pack_zstd(work, zstd, input, !got) : pack_gzip(work, &gzip, input, !got))
			return -1;
	} while (got > 0);
	return 0; /* nothing is freed: the process ends */
}

/* ---- unpack ---- */

static int check_ratio(const struct work *work)
{
	if (work->out > SQUEEZE_RATIO_FREE && work->out / SQUEEZE_RATIO_MAX > work->in)
		return fail(work->err, ERR_LIMIT,
			"the archive unpacks to more than %d times its size", SQUEEZE_RATIO_MAX);
	return 0;
}

/* *is_whole: the input so far ends with a frame. */
static int unpack_zstd(struct work *work, ZSTD_DCtx *zstd, struct str input, bool *is_whole)
{
	ZSTD_inBuffer in = { input.data, input.len, 0 };
	bool is_full = true;
	while (in.pos < in.size || is_full) {
		ZSTD_outBuffer out = { work->output, CHUNK, 0 };
		size_t left = ZSTD_decompressStream(zstd, &out, &in);
		if (ZSTD_isError(left))
			return fail(work->err, ERR_CORRUPT, "the archive is damaged: %s",
				ZSTD_getErrorName(left));
		*is_whole = left == 0;
		is_full = out.pos == out.size;
		if (write_out(work, work->output, out.pos) || check_ratio(work))
			return -1;
		if (*is_whole && in.pos == in.size)
			break;
	}
	return 0;
}

static int unpack_gzip(struct work *work, z_stream *gzip, struct str input, bool *is_whole)
{
	gzip->next_in = (unsigned char *)input.data;
	gzip->avail_in = (unsigned)input.len;
	do {
		gzip->next_out = (unsigned char *)work->output;
		gzip->avail_out = CHUNK;
		int code = inflate(gzip, Z_NO_FLUSH);
		if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
			return fail(work->err, ERR_CORRUPT, "the archive is damaged: %s",
				gzip->msg ? gzip->msg : "gzip");
		if (write_out(work, work->output, CHUNK - gzip->avail_out) || check_ratio(work))
			return -1;
		*is_whole = code == Z_STREAM_END;
		if (*is_whole && gzip->avail_in && inflateReset(gzip) != Z_OK)
			return fail(work->err, ERR_CORRUPT, "the archive is damaged");
	} while (gzip->avail_in || !gzip->avail_out);
	return 0;
}

static enum blob_pack recognise(const char *data, size_t len)
{
	static const unsigned char zstd[] = { 0x28, 0xb5, 0x2f, 0xfd }, gzip[] = { 0x1f, 0x8b };
	if (len >= sizeof zstd && !memcmp(data, zstd, sizeof zstd))
		return BLOB_PACK_ZSTD;
	return len >= sizeof gzip && !memcmp(data, gzip, sizeof gzip) ? BLOB_PACK_GZIP
								      : BLOB_PACK_NONE;
}

static int unpack(struct work *work)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	z_stream gzip = { 0 };
	bool is_whole = false;
	ssize_t got;
	if (!zstd || inflateInit2(&gzip, GZIP_BITS) != Z_OK)
		abort();
	ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	for (bool is_first = true; (got = read_some(work)) > 0; is_first = false) {
		struct str input = { work->input, (size_t)got };
		if (is_first)
			work->pack = recognise(input.data, input.len);
		if (work->pack == BLOB_PACK_ZSTD       ? unpack_zstd(work, zstd, input, &is_whole)
			: work->pack == BLOB_PACK_GZIP ? unpack_gzip(work, &gzip, input, &is_whole)
						       : write_out(work, input.data, input.len))
			return -1;
	}
	if (got < 0)
		return fail_errno(work->err, "read the archive");
	if (work->pack != BLOB_PACK_NONE && !is_whole)
		return fail(work->err, ERR_CORRUPT, "the archive is cut");
	return 0;
}

/* ---- the child ---- */

static int squeeze_start(struct work work, int other, int (*fn)(struct work *),
	struct squeeze *squeeze, struct error *err)
{
	struct child child;
	if (child_fork(&child, CHILD_PIPE, SIGKILL, err))
		return -1;
	if (child.pid == 0) {
		struct error why;
		close(other);
		work.err = &why;
		work.input = malloc(CHUNK);
		work.output = malloc(CHUNK);
		if (work.input && work.output && !fn(&work))
			_exit(0);
		(void)!write(child.pipe, &why, sizeof why);
		_exit(1);
	}
	squeeze->child = child;
	return 0;
}

static int squeeze_begin(struct work work, bool is_out, int (*fn)(struct work *),
	struct squeeze *squeeze, struct error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return fail_errno(err, "make a pipe");
	fcntl(ends[1], F_SETPIPE_SZ, 1 << 20); /* fewer turns between the two */
	*(is_out ? &work.to : &work.from) = ends[is_out];
	int failed = squeeze_start(work, ends[!is_out], fn, squeeze, err);
	close(ends[is_out]);
	if (failed)
		close(ends[!is_out]);
	else
		squeeze->fd = ends[!is_out];
	return failed;
}

int squeeze_pack(int from, enum blob_pack how, struct squeeze *squeeze, struct error *err)
{
	return squeeze_begin((struct work){ .from = from, .pack = how }, true, pack, squeeze, err);
}

int squeeze_unpack(int to, struct squeeze *squeeze, struct error *err)
{
	return squeeze_begin((struct work){ .to = to }, false, unpack, squeeze, err);
}

int squeeze_end(struct squeeze *squeeze, struct error *err)
{
	struct error why;
	ssize_t got = fd_read_full(squeeze->child.pipe, &why, sizeof why);
	int status = child_wait(&squeeze->child);
	if (status == 0)
		return 0;
	if (got != sizeof why)
		return fail(
			err, ERR_FAILED, "the process that compresses has ended without a result");
	*err = why;
	return error_adopt(err);
}
