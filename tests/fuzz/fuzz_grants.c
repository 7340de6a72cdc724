/* A voucher or a grant: when it is taken, its texts end inside of it, and saying it again gives
 * something that is taken. */
/* security: files */
#include <string.h>
#include "sandbox/plan/grants.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct grant grants[GRANTS_MAX], second[GRANTS_MAX];
	struct error err;
	size_t count, other;
	auto_buf struct buf again;
	buf_init(&again, 1 << 20);
	if (grants_decode((struct str){ (const char *)data, size }, grants, &count, &err)) {
		check(err.code == ERR_CORRUPT);
		return 0;
	}
	check(count <= GRANTS_MAX);
	grants_encode(grants, count, &again);
	check(!grants_decode((struct str){ again.data, again.len }, second, &other, &err));
	check(other == count);
	return 0;
}
