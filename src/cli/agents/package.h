/* package.h -- agent packages on this host: read and written by carreld, as a locked role without
 * network. */
#pragma once
#include "cli/cli.h"

struct package_read {
	const struct json_value *value; /* what is in it: name, version, surfaces … */
	const char *name, *version;
	int file; /* with its bytes; yours to close */
	uint64_t size;
	char sha256[2 * SHA256_LEN + 1];
};
/* Of a file, or of a directory, which is packed in `format` ("zip", "tar.gz", "tar.zst").
 * ERR_INVALID names what a daemon would refuse. */
int package_read(struct command *command, const char *path, const char *format,
	struct package_read *package, struct error *err);
