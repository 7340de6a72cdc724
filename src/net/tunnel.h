/* tunnel.h -- `carreld client`: makes one connection for `carrel`, which has no TLS and no
 * resolver, and relays its bytes (client/relay.h says how it is told).
 * 1. https: TLS 1.2 or later, the chain and the name are verified. There is no way to turn that
 * off.
 * 2. Before the first byte of the other side is read, the process has given up root, where it can,
 * and is locked in (proc/role.h).
 * 3. An end of either side's sending is passed on; what comes the other way is still relayed. */
#pragma once
#include "base/error.h"

/* Connects to url and relays until the connection or `near` has ended. ca: a file of authorities
 * that are trusted instead of the system's, or NULL. -1: there was no connection, and `near` was
 * told why. */
int tunnel_run(const char *url, const char *ca, int near, struct error *err);
