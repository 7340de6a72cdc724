/* rows.h -- rows of a record whose members are named like what is sent, shown and kept. Included by
 * the files that have such tables. */
#pragma once
#include "model/records/record.h"

/* A member of the struct that AT is about; what follows is the rest of the row: its help, flags and
 * so on. */
#define ROW(kind, member, ...)                                                                     \
	{                                                                                          \
#member, FIELD_##kind, AT(member), __VA_ARGS__                                     \
	}
/* The same of a struct that is named here. */
#define ROW_OF(type, kind, member, ...)                                                            \
	{                                                                                          \
#member, FIELD_##kind, offsetof(struct type, member), __VA_ARGS__                  \
	}
