/* network_settings.h -- what the operator says about the networks of sandboxes: `egress` of
 * config.yaml. Pure. */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

#define NETWORK_SETTINGS_PORTS_MAX 32
struct network_settings {
	pair_list hosts;  /* name -> address, before DNS; a name may be there several times */
	text_list ranges; /* of addresses that names may have though they are not public */
	uint16_t ports[NETWORK_SETTINGS_PORTS_MAX]; /* of entries that name none; none: 80, 443 */
	size_t port_count;
	uint64_t bandwidth;   /* bytes a second of one sandbox; 0: any */
	uint64_t connections; /* of one sandbox at once; 0: the default */
	uint64_t idle_ms;     /* without a byte; 0: the default */
};
/* As one line of words, for a role; and back. ERR_INVALID names the word. */
const char *network_settings_print(const struct network_settings *settings, struct arena *arena);
int network_settings_parse(const char *text, struct arena *arena, struct network_settings *settings,
	struct error *err);
