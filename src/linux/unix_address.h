/* unix_address.h -- where a unix socket lies, by way of its directory's descriptor: an address has
 * 107 bytes, a path may have more. */
#pragma once
#include <sys/un.h>

/* Sets *address to `name` in `dir`, which must stay open while the address is used. -1 with errno
 * (ENAMETOOLONG). */
int unix_address_in(int dir, const char *name, struct sockaddr_un *address);
