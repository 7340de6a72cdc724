#include "linux/unix_address.h"

#include <sys/socket.h>
#include "base/str.h"

int unix_address_in(int dir, const char *name, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (str_format(
		    address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", dir, name))
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}
