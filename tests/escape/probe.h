/* probe.h -- what the two tables of `probe` have in common. */
#pragma once
#include <stddef.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define HIGH 0xdeadbeef00000000u /* fills the upper half of an argument */

/* NULL: as it should be. Else what isn't. */
typedef const char *outcome;
outcome not_so(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A probe is a function, or one call with the error that must be its answer. */
struct probe {
	const char *name;
	outcome (*function)(void);
	long number;
	int error;
	unsigned narrow; /* the 32-bit arguments, tried with HIGH too: bit 0 is the first */
	long args[6];
};

extern const struct probe checks[]; /* checks.c: by function */
extern const size_t check_count;
