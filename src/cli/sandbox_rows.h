/* sandbox_rows.h -- what can be asked of any sandbox on a command line: one list of rows for `run`
 * and `create`, which differ in what some of them mean. */
#pragma once
#include "cli/args.h"
#include "model/limits.h"

/* AT(field) is the offset of that field in the table's own structure, which has `net` and a struct
 * limits `limits`. limit_helps: of struct arg_option. */
#define SANDBOX_ROWS(AT, limit_helps)                                                              \
	{ 0, "net", ARG_CHOICE, AT(net), "none", "the network inside: none, only loopback",        \
		"none|list|open", 0, 0 },                                                          \
	{                                                                                          \
		.kind = ARG_RECORD, .offset = AT(limits), .record = &limits_record,                \
		.helps = limit_helps                                                               \
	}
#define PTRACE_ROW(AT)                                                                             \
	{                                                                                          \
		0, "ptrace", ARG_FLAG, AT(ptrace), NULL,                                           \
			"allow processes inside to trace each other (gdb, strace, py-spy)", NULL,  \
			0, 0                                                                       \
	}
#define ISOLATION_ROW(AT)                                                                          \
	{                                                                                          \
		0, "isolation", ARG_CHOICE, AT(isolation), "native", "the kind of sandbox",        \
			"native|oci|gvisor|bwrap", 0, 0                                            \
	}

/* ERR_UNAVAILABLE: a choice that this version doesn't have. */
int sandbox_rows_check(const char *net, const char *isolation, struct error *err);
