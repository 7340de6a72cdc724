/* connect.h -- connections to what listens on the loopback addresses of the sandbox. */
#pragma once
#include <stdbool.h>

/* Begins to connect to 127.0.0.1:port or [::1]:port. A non-blocking TCP socket, or -errno. */
long connect_inside(unsigned port, bool to_ipv6);
