/* banned.h -- functions that have a safer twin here. Included by the compiler's command line in
 * every file. */
#pragma once
#ifndef __ASSEMBLER__
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Macros of some libc: poisoning one warns. */
#undef alloca
#undef sprintf
#undef vsprintf
#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atoll system    \
	popen alloca gets tmpnam mktemp
#endif
