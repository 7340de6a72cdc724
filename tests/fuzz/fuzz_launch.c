/* A packet between core and launcher: when it is taken, its texts end inside of it, and saying it
 * again gives the same bytes. Input: one byte (its lowest bit: the direction; the rest: how many
 * descriptors came along), then the packet. */
/* security: daemon */
#include <stdlib.h>
#include <string.h>
#include "sandbox/plan/launch.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct launch_packet packet;
	struct error err;
	auto_buf struct buf again;
	buf_init(&again, 1 << 20);
	if (size < 1)
		return 0;
	const char *bytes = (const char *)data + 1;
	size_t len = size - 1;
	if (launch_decode(bytes, len, data[0] & 1, data[0] >> 1, &packet, &err)) {
		check(err.code == ERR_CORRUPT);
		return 0;
	}
	check(packet.head.string_count <= LAUNCH_STRINGS_MAX);
	for (uint32_t i = 0; i < packet.head.string_count; i++)
		check(packet.strings[i] >= bytes &&
			packet.strings[i] + strlen(packet.strings[i]) < bytes + len);
	check(!launch_encode(&packet.head, packet.strings, packet.head.string_count, &again, &err));
	check(again.len == len && !memcmp(again.data, bytes, len));
	return 0;
}
