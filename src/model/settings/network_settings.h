/* network_settings.h -- what the operator says about the networks of sandboxes: `egress` of
 * config.yaml. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

#define NETWORK_SETTINGS_PORTS_MAX 32
struct network_settings {
	pair_list hosts;      /* name -> address, before DNS; a name may be there several times */
	text_list ranges;     /* of addresses that names may have though they are not public */
	text_list ports;      /* of entries that name none; none: 80, 443 */
	uint64_t bandwidth;   /* bytes a second of one sandbox; 0: any */
	uint64_t connections; /* of one sandbox at once; 0: the default */
	uint64_t idle_ms;     /* without a byte; 0: the default */
};
struct record;
extern const struct record network_settings_record; /* for a role */
bool network_settings_port(const char *text, uint16_t *port);
/* Its ports, as numbers; how many. */
size_t network_settings_ports(
	const struct network_settings *settings, uint16_t ports[NETWORK_SETTINGS_PORTS_MAX]);
