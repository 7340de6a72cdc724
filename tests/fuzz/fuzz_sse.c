/* Server-sent events: whole or byte by byte they are the same. */
#include <string.h>
#include "format/http/sse.h"
#include "fuzz.h"

static void collect(struct str in, size_t step, struct buf *out)
{
	struct sse sse;

	sse_init(&sse);
	for (size_t at = 0; at < in.len; at += step) {
		struct str part = { in.data + at, in.len - at < step ? in.len - at : step };
		int status;
		sse_add(&sse, part);
		while ((status = sse_next(&sse, NULL)) == 1) {
			check(strlen(sse.event) > 0 && strlen(sse.event) < sizeof sse.event);
			buf_printf(out, "%s|%s|%zu|", sse.event, sse.id, sse.data.len);
			buf_append(out, sse.data.data, sse.data.len);
		}
		check(status == 0);
	}
	sse_done(&sse);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = { (const char *)data, size };
	auto_buf struct buf whole, single;

	if (size > 65536)
		return 0;
	buf_init(&whole, BUF_MAX_DEFAULT);
	buf_init(&single, BUF_MAX_DEFAULT);
	collect(in, size + 1, &whole);
	collect(in, 1, &single);
	check(whole.len == single.len && !memcmp(whole.data, single.data, whole.len));
	return 0;
}
