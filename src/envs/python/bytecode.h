/* bytecode.h -- compiled Python files made to fit sources whose time is LAYER_MTIME.
 * Python takes a .pyc of the timestamp kind (PEP 552: magic, flags 0, mtime, size, four bytes each,
 * little endian) when time and size are those of the source beside it; otherwise it compiles again,
 * at every start when it can't write. Hash-based ones are not kept: an unchecked one would go on
 * running old code after its source was edited. */
#pragma once
#include "base/error.h"
#include "base/str.h"

#define BYTECODE_HEAD_LEN 16

/* Pure. Sets the time in the head of a .pyc; false (nothing changed) when it isn't of the timestamp
 * kind, or wasn't made from a source of source_size bytes. */
bool bytecode_set_time(unsigned char head[BYTECODE_HEAD_LEN], uint32_t mtime, uint64_t source_size);
/* Pure. The source's name for a file in __pycache__: "api.cpython-311.opt-1.pyc" -> "api.py".
 * false: it isn't named like that. */
bool bytecode_source_name(const char *pyc, char *out, size_t size);
/* Sets the time in the file `name` of the directory `cache`; source_size is of its source. 1: done.
 * 0: it is not to be kept (see above). -1: error. */
int bytecode_fit(int cache, const char *name, uint64_t source_size, struct error *err);
