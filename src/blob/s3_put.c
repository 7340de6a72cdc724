/* s3_put.c -- an upload: one PUT when it fits into a part, else a multipart upload, which is
 * visible when it is completed and is aborted when anything fails. Parts have one size, as some
 * servers demand. */
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/id.h"
#include "blob/s3_internal.h"
#include "format/http/s3_xml.h"

#define PART_MIN ((uint64_t)16 << 20)
#define PARTS_MAX 10000
#define ID_HEADER "x-amz-meta-carrel-id"

struct upload {
	struct s3_store *store;
	const char *key;
	const struct blob_put *put;
	struct blob_info *info;
	struct sha256 hash;
	struct arena arena;
	/* Kept with the object: it tells whether an object that is there is ours, when the answer
	 * to what made it was lost. */
	char id[ID_LEN + 1];
	char *part;
	size_t part_size;
	const char *upload_id;
	text_list etags;
};

static void add_header(
	struct upload *upload, struct s3_call *call, const char *name, const char *value)
{
	struct text_pair pair = { name, value };
	vec_push(&upload->arena, &call->headers, pair);
}

static void add_query(
	struct upload *upload, struct s3_call *call, const char *name, const char *value)
{
	struct text_pair pair = { name, value };
	vec_push(&upload->arena, &call->query, pair);
}

static int read_part(struct upload *upload, size_t *len, struct error *err)
{
	ssize_t got = fd_read_full(upload->put->from, upload->part, upload->part_size);
	if (got < 0)
		return fail_errno(err, "read");
	sha256_add(&upload->hash, upload->part, (size_t)got);
	upload->info->size += (uint64_t)got;
	*len = (size_t)got;
	return 0;
}

/* All is read: whether it is what was expected, before it becomes visible. */
static int check_all(struct upload *upload, struct error *err)
{
	sha256_end_hex(&upload->hash, upload->info->sha256);
	return blob_may_end(upload->key, upload->put, upload->info, err);
}

/* An object of this key exists: whether this upload made it. */
static bool is_ours(struct upload *upload)
{
	auto_answer struct s3_answer answer = { 0 };
	struct s3_call call = { .method = "HEAD", .key = upload->key };
	struct error ignored;
	return !s3_call(upload->store, &call, &answer, &ignored) && answer.status == 200 &&
	       !strcmp(answer.id, upload->id);
}

/* `answer` is that to the request which makes the object visible. */
static int judge_end(struct upload *upload, const struct s3_call *call,
	const struct s3_answer *answer, struct error *err)
{
	if (answer->status == 200)
		return 0;
	bool may_be_done =
		answer->attempts > 1 &&
		(answer->status == 412 || answer->status == 404 || answer->status == 409);
	if (may_be_done && is_ours(upload))
		return 0;
	if (answer->status == 412 && upload->put->only_new)
		return blob_exists(upload->key, err);
	return s3_fail(upload->store, call, answer, err);
}

static int put_single(struct upload *upload, size_t len, struct error *err)
{
	auto_answer struct s3_answer answer = { 0 };
	struct s3_call call = {
		.method = "PUT", .key = upload->key, .body = { upload->part, len }
	};
	add_header(upload, &call, ID_HEADER, upload->id);
	if (upload->put->only_new)
		add_header(upload, &call, "if-none-match", "*");
	fault_point("blob_s3_put");
	if (check_all(upload, err) || s3_call(upload->store, &call, &answer, err))
		return -1;
	return judge_end(upload, &call, &answer, err);
}

/* ---- several parts ---- */

static int s3_put_begin(struct upload *upload, struct error *err)
{
	auto_answer struct s3_answer answer = { 0 };
	struct s3_call call = { .method = "POST", .key = upload->key };
	add_query(upload, &call, "uploads", "");
	add_header(upload, &call, ID_HEADER, upload->id);
	if (s3_call(upload->store, &call, &answer, err))
		return -1;
	if (answer.status != 200)
		return s3_fail(upload->store, &call, &answer, err);
	upload->upload_id = s3_xml_find((struct str){ answer.body.data, answer.body.len },
		"InitiateMultipartUploadResult/UploadId", &upload->arena);
	if (!upload->upload_id || !upload->upload_id[0])
		return fail(err, ERR_CORRUPT, "the server's answer has no id of an upload");
	return 0;
}

static int send_part(struct upload *upload, size_t len, struct error *err)
{
	auto_answer struct s3_answer answer = { 0 };
	struct s3_call call = {
		.method = "PUT", .key = upload->key, .body = { upload->part, len }
	};
	if (upload->etags.count == PARTS_MAX)
		return fail(err, ERR_LIMIT, "it has more than %d parts of %zu bytes", PARTS_MAX,
			upload->part_size);
	add_query(upload, &call, "partNumber",
		arena_printf(&upload->arena, "%zu", upload->etags.count + 1));
	add_query(upload, &call, "uploadId", upload->upload_id);
	fault_point("blob_s3_part");
	if (s3_call(upload->store, &call, &answer, err))
		return -1;
	if (answer.status != 200)
		return s3_fail(upload->store, &call, &answer, err);
	if (!answer.etag[0])
		return fail(err, ERR_CORRUPT, "the server's answer to a part has no ETag");
	vec_push(&upload->arena, &upload->etags, arena_text(&upload->arena, answer.etag));
	return 0;
}

static int s3_put_complete(struct upload *upload, struct error *err)
{
	auto_answer struct s3_answer answer = { 0 };
	auto_buf struct buf body = buf_empty((size_t)4 << 20);
	struct s3_call call = { .method = "POST", .key = upload->key };
	buf_text(&body, "<CompleteMultipartUpload>");
	for (size_t i = 0; i < upload->etags.count; i++)
		buf_printf(&body, "<Part><PartNumber>%zu</PartNumber><ETag>%s</ETag></Part>", i + 1,
			s3_xml_escape(upload->etags.items[i], &upload->arena));
	buf_text(&body, "</CompleteMultipartUpload>");
	call.body = (struct str){ body.data, body.len };
	add_query(upload, &call, "uploadId", upload->upload_id);
	if (upload->put->only_new)
		add_header(upload, &call, "if-none-match", "*");
	fault_point("blob_s3_complete");
	if (s3_call(upload->store, &call, &answer, err) || judge_end(upload, &call, &answer, err))
		return -1;
	/* 200 can be followed by an error in the body. */
	if (answer.status == 200 && !s3_xml_find((struct str){ answer.body.data, answer.body.len },
					    "CompleteMultipartUploadResult", &upload->arena))
		return fail(err, ERR_UNAVAILABLE, "the server failed to complete the upload");
	return 0;
}

static void abort_upload(struct upload *upload)
{
	auto_answer struct s3_answer answer = { 0 };
	struct s3_call call = { .method = "DELETE", .key = upload->key };
	struct error ignored;
	add_query(upload, &call, "uploadId", upload->upload_id);
	s3_call(upload->store, &call, &answer, &ignored);
}

static int send_parts(struct upload *upload, size_t len, struct error *err)
{
	while (len) {
		if (send_part(upload, len, err))
			return -1;
		if (len < upload->part_size)
			break;
		if (read_part(upload, &len, err))
			return -1;
	}
	return check_all(upload, err) || s3_put_complete(upload, err) ? -1 : 0;
}

static int put_parts(struct upload *upload, size_t len, struct error *err)
{
	if (s3_put_begin(upload, err))
		return -1;
	if (!send_parts(upload, len, err))
		return 0;
	abort_upload(upload);
	return -1;
}

static int put_all(struct upload *upload, struct error *err)
{
	size_t len;
	struct blob_info stored;
	if (read_part(upload, &len, err))
		return -1;
	if (len < upload->part_size ? put_single(upload, len, err) : put_parts(upload, len, err))
		return -1;
	/* Whatever the server has said: an object of that length is there. */
	if (s3_head(upload->store, upload->key, &stored, err))
		return error_context(err, "look at what was stored");
	return blob_check(upload->key, &stored, upload->info->size, NULL, err);
}

int s3_put(void *state, const char *key, const struct blob_put *put, struct blob_info *info,
	struct error *err)
{
	struct upload upload = { .store = state, .key = key, .put = put, .info = info };
	uint64_t part_size = PART_MIN;
	if (put->size != BLOB_SIZE_UNKNOWN && put->size / PARTS_MAX >= part_size)
		part_size = put->size / PARTS_MAX + 1;
	upload.part_size = (size_t)part_size;
	upload.part = malloc(upload.part_size); /* its pages are taken as they are filled */
	if (!upload.part)
		return fail(err, ERR_LIMIT, "no memory for a part of %zu bytes", upload.part_size);
	sha256_init(&upload.hash);
	id_make(upload.id);
	int failed = put_all(&upload, err);
	free(upload.part);
	arena_done(&upload.arena);
	return failed;
}
