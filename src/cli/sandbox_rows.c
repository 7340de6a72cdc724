#include "cli/sandbox_rows.h"

#include <string.h>

int sandbox_rows_check(const char *net, const char *isolation, struct error *err)
{
	if (isolation && strcmp(isolation, "native"))
		return fail_hint(err, ERR_UNAVAILABLE, "leave it out, or use --isolation native",
			"--isolation %s is not available in this version", isolation);
	if (net && strcmp(net, "none"))
		return fail_hint(err, ERR_UNAVAILABLE, "leave it out, or use --net none",
			"--net %s is not available in this version", net);
	return 0;
}
