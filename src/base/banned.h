/* banned.h -- functions that have a safer twin here. Included by the compiler's command line in
 * every file. */
#pragma once
#ifndef __ASSEMBLER__
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef alloca /* a macro of glibc: poisoning one warns */
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atoll system    \
	popen alloca gets tmpnam mktemp
#endif
