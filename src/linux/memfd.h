/* memfd.h -- a program in memory, at no path of the host. */
#pragma once

/* memfd_create of one that can be executed, also where vm.memfd_noexec is 1, sealable and
 * close-on-exec. -1 with errno: EACCES when it is 2, which allows none. */
int memfd_create_program(const char *name);
