/* foreign.h -- system calls on descriptors that came from a sandbox. It may hold the same socket
 * still, and what it changes there holds here too: accept waits for a client when the flag
 * O_NONBLOCK is gone, and close waits for a peer (SO_LINGER), also for sockets within a socket.
 * These calls wait for some milliseconds at most. For processes with one thread, or whose other
 * threads block SIGALRM. */
#pragma once

/* As accept4 with SOCK_NONBLOCK and SOCK_CLOEXEC; the new socket is nobody else's, and doesn't
 * linger. -1 with errno; EINTR: the listener blocks. */
int foreign_accept(int listener);
/* As fd_close. */
void foreign_close(int *fd);
#define auto_foreign __attribute__((cleanup(foreign_close)))
