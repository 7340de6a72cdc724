#include "linux/memfd.h"
#include <sys/mman.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

int memfd_create_program(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL) /* before 6.3 every memfd was executable */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}
