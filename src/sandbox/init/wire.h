/* wire.h -- messages to init, checked. Pure: no system call, no libc, no memory of its own. Built
 * into carrel-init, and into the host's library for the tests and the fuzzer. */
#pragma once
#include <stddef.h>
#include "sandbox/init/protocol.h"

/* 0, or the errno of INIT_REFUSED. `packet_len` bytes were received at `request`, of which the
 * body, if inline, is all after the header; `fd_count` descriptors came along. */
int wire_check_request(const struct init_request *request, size_t packet_len, unsigned fd_count);

/* Cuts a body into strings: argc pointers and NULL, envc pointers and NULL go to `pointers`, which
 * has room for argc + envc + 2; *cwd is the last string. EINVAL when the body holds more, fewer or
 * unended strings, or cwd isn't absolute. The request must have been checked. */
int wire_cut_body(const struct init_request *request, const char *body, const char **pointers,
	const char **cwd);
