#include "cli/sandbox_rows.h"

#include <string.h>
#include "sandbox/isolation.h"

int sandbox_rows_check(const char *net, const char *isolation, struct error *err)
{
	const struct isolation *backend;
	if (isolation && isolation_find(isolation, &backend, err))
		return -1;
	if (net && strcmp(net, "none"))
		return fail_hint(err, ERR_UNAVAILABLE, "leave it out, or use --net none",
			"--net %s is not available in this version", net);
	return 0;
}
