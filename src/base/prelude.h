/* prelude.h -- what every file has from the compiler's command line: C's own types, memory, texts
 * and numbers. A file's own list of headers says what it uses beyond them, as system calls.
 * Functions that have a safer twin here are banned. */
#pragma once
#ifndef __ASSEMBLER__
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
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
