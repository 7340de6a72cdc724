#include <errno.h>
#include <stdbool.h>
#include "sandbox/init/wire.h"

#define SIGNAL_LAST 64
#define PORT_LAST 65535

static int check_spawn(const struct init_request *r, size_t inline_len, unsigned fd_count)
{
	bool in_fd = r->flags & INIT_BODY_IN_FD, has_program = r->flags & INIT_PROGRAM_IN_FD;
	if (!r->id || (r->flags & ~(uint32_t)INIT_FLAGS_ALL) || r->value || (in_fd && has_program))
		return EINVAL;
	if (!r->argc || r->argc > INIT_STRINGS_MAX || r->envc > INIT_STRINGS_MAX)
		return EINVAL;
	uint32_t strings = r->argc + r->envc;
	if (strings > (in_fd ? INIT_STRINGS_MAX : INIT_INLINE_STRINGS))
		return EINVAL;
	if (r->body_len > (in_fd ? INIT_BODY_MAX : INIT_INLINE_MAX) || r->body_len <= strings)
		return EINVAL;
	if (inline_len != (in_fd ? 0 : r->body_len))
		return EBADMSG;
	return fd_count == (in_fd || has_program ? 4u : 3u) ? 0 : EBADF;
}

int wire_check_request(const struct init_request *r, size_t packet_len, unsigned fd_count)
{
	if (packet_len < sizeof *r || r->magic != INIT_MAGIC || r->reserved)
		return EBADMSG;
	size_t inline_len = packet_len - sizeof *r;
	if (r->type == INIT_SPAWN)
		return check_spawn(r, inline_len, fd_count);
	if (r->type < INIT_SPAWN || r->type > INIT_LISTENERS || inline_len)
		return EBADMSG;
	if (fd_count)
		return EBADF;
	if (r->argc || r->envc || r->body_len)
		return EINVAL;
	if (r->type == INIT_CONNECT)
		return r->id && r->flags <= INIT_TO_IPV6 && r->value > 0 && r->value <= PORT_LAST
			       ? 0
			       : EINVAL;
	if (r->flags)
		return EINVAL;
	if (r->type == INIT_SIGNAL)
		return r->value >= (r->id ? 0 : 1) && r->value <= SIGNAL_LAST ? 0 : EINVAL;
	return !r->value && (r->type == INIT_ACK) == (r->id != 0) ? 0 : EINVAL;
}

int wire_cut_body(
	const struct init_request *r, const char *body, const char **pointers, const char **cwd)
{
	const char *at = body, *end = body + r->body_len;
	uint32_t strings = r->argc + r->envc;
	for (uint32_t i = 0; i <= strings; i++) {
		if (i == r->argc)
			*pointers++ = NULL;
		if (i == strings)
			*cwd = at;
		else
			*pointers++ = at;
		while (at < end && *at)
			at++;
		if (at == end)
			return EINVAL;
		at++;
	}
	*pointers = NULL;
	return at == end && **cwd == '/' ? 0 : EINVAL;
}
