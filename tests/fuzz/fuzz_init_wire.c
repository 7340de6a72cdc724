/* A packet to init: when the checks take it, every string it is cut into ends inside of it.
 * Input: one byte, how many descriptors came along; then the packet. */
#include <stdlib.h>
#include <string.h>
#include "sandbox/init/wire.h"
#include "fuzz.h"

static void check_strings(
	const char *const *strings, uint32_t count, const char *body, const char *end)
{
	for (uint32_t i = 0; i < count; i++)
		check(strings[i] >= body && strings[i] + strlen(strings[i]) < end);
	check(!strings[count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct init_request request = { 0 };
	if (size < 1)
		return 0;
	size_t len = size - 1;
	memcpy(&request, data + 1, len < sizeof request ? len : sizeof request);
	if (wire_check_request(&request, len, data[0]) || request.type != INIT_SPAWN)
		return 0;
	/* A large body comes in a memfd of just that length: here it is the same bytes, repeated.
	 */
	const char *body = (const char *)data + 1 + sizeof request;
	char *from_fd = NULL;
	if (request.flags & INIT_BODY_IN_FD) {
		check(request.body_len <= INIT_BODY_MAX);
		if (request.body_len > INIT_INLINE_MAX)
			return 0; /* it would be the same again, only slower */
		body = from_fd = malloc(request.body_len);
		for (size_t i = 0; i < request.body_len; i++)
			from_fd[i] = (char)data[i % size];
	}
	const char **pointers = malloc((request.argc + request.envc + 2) * sizeof *pointers), *cwd;
	if (wire_cut_body(&request, body, pointers, &cwd) == 0) {
		const char *end = body + request.body_len;
		check_strings(pointers, request.argc, body, end);
		check_strings(pointers + request.argc + 1, request.envc, body, end);
		check(cwd[0] == '/' && cwd + strlen(cwd) + 1 == end);
	}
	free(pointers);
	free(from_fd);
	return 0;
}
