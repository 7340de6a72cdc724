/* Responses of a daemon: whole or byte by byte they are the same, and no body is longer than what
 * came. */
#include <string.h>
#include "base/buf.h"
#include "format/http/http_response.h"
#include "fuzz.h"

/* Takes the chunks of `in`, at most `step` bytes at a time; what http1_chunks_take said last. */
static int unchunk(struct str in, size_t step, struct buf *out, size_t *total)
{
	struct http1_chunks chunks = { 0 };
	int status = 0;

	*total = 0;
	while (status == 0 && *total < in.len) {
		struct str part = { in.data + *total, in.len - *total }, data = { 0 };
		size_t used = 0;
		if (part.len > step)
			part.len = step;
		status = http1_chunks_take(&chunks, part, &used, &data, NULL);
		if (status < 0)
			break;
		check(used <= part.len && used > 0);
		check(!data.len ||
			(data.data >= part.data && data.data + data.len <= part.data + used));
		buf_append(out, data.data, data.len);
		*total += used;
	}
	return status;
}

static void check_chunks(struct str in)
{
	auto_buf struct buf whole, single;
	size_t total, one_by_one;

	buf_init(&whole, BUF_MAX_DEFAULT);
	buf_init(&single, BUF_MAX_DEFAULT);
	int status = unchunk(in, in.len + 1, &whole, &total);
	check(unchunk(in, 1, &single, &one_by_one) == status);
	if (status >= 0)
		check(total == one_by_one && whole.len == single.len &&
			!memcmp(whole.data, single.data, whole.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct http_response response = { 0 }, again;
	size_t used = 0, used_again = 0;
	int status = http_response_parse(text, false, &used, &response, NULL);

	check(status >= -1 && status <= 1);
	if (status == 1) {
		check(used <= size && response.status >= 100 && response.status <= 599);
		check(!response.is_chunked || response.length == HTTP_LENGTH_UNKNOWN);
		/* One byte less isn't a head, and the head alone is the same one. */
		check(http_response_parse((struct str){ text.data, used - 1 }, false, &used_again,
			      &again, NULL) == 0);
		check(http_response_parse((struct str){ text.data, used }, false, &used_again,
			      &again, NULL) == 1);
		check(used == used_again && response.length == again.length);
		struct str type = http_response_header(&response, "content-type");
		check(!type.data ||
			(type.data >= text.data && type.data + type.len <= text.data + used));
		text = (struct str){ text.data + used, text.len - used };
	}
	check_chunks(text);
	return 0;
}
