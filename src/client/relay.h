/* relay.h -- a connection to a daemon on another machine. `carreld client` makes it, with TLS for
 * https, and relays bytes between it and a socket pair: TLS is not linked here.
 * 1. The relay ends with the connection, with the other end of the pair, and with this process.
 * 2. It first sends one byte: 0, and the bytes of the connection follow; or 1, and the error
 * follows as it lies in memory (error_adopt). */
#pragma once
#include "base/error.h"
#include "linux/child.h"

#define RELAY_FD 3 /* its end of the pair */
#define RELAY_READY 0
#define RELAY_FAILED 1

/* For all connections of this process: the program, and a file of authorities that are trusted
 * instead of the system's, or NULL. The texts are copied. */
void relay_use(const char *program, const char *ca);
/* url: as uri_parse_base takes it. *fd is yours; *relay is to be ended by child_kill: nothing that
 * it still holds is of use when an answer that was wanted has been read. ERR_UNAVAILABLE: no
 * connection; ERR_DENIED: the certificate is not accepted; the hint says what to do. */
int relay_open(const char *url, int *fd, struct child *relay, struct error *err);
