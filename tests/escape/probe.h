/* probe.h -- what the files of `probe` have in common: each has one list, and probe.c runs them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define HIGH 0xdeadbeef00000000u /* fills the upper half of an argument */

/* NULL: as it should be. Else what isn't. */
typedef const char *outcome;

/* A probe is a function, or one call with the error that must be its answer. */
struct probe {
	const char *name;
	outcome (*function)(void);
	long number;
	int error;
	unsigned narrow; /* the 32-bit arguments, tried with HIGH too: bit 0 is the first */
	long args[6];
};
struct probe_list {
	const struct probe *items;
	size_t count;
};
/* clang-format off */
#define DOES(function) { #function, function, 0, 0, 0, { 0 } }
#define CALL(name, number, error, narrow, ...) { #name, NULL, number, error, narrow, { __VA_ARGS__ } }
#define LIST(probes) { probes, LENGTH(probes) }
/* clang-format on */

extern const struct probe_list identity_probes, process_probes, files_probes, proc_probes,
	kernel_probes, ptrace_probes, socket_probes, works_probes, calls_probes;

/* The outcome with this text. */
outcome not_so(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Was this the result of a call that failed with `error`? */
bool answers(long result, int error);
/* Reads a small file. -1 with errno. */
ssize_t read_file(const char *path, char *data, size_t size);
outcome directory_is_empty_or_absent(const char *path);
