/* forwarded.h -- the header X-Forwarded-For. Pure. */
#pragma once
#include "base/str.h"
#include "format/network/inet_address.h"

/* The last address of the list, and *rest is what stands before it; "ADDRESS:PORT" and
 * "[IPv6]:PORT" lose the port. false: the list is empty, or what stands last is not an address. */
bool forwarded_last(struct str list, union inet_address *address, struct str *rest);
