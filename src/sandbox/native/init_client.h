/* init_client.h -- the master's side of sandbox/init/protocol.h: sends requests to carrel-init, and
 * checks its replies, which are untrusted. 1. Nothing here waits for init: the caller is told when
 * the socket is full or empty.
 * 2. A reply that reaches the caller is whole and in range (see init_client_receive); one that
 * isn't is ERR_CORRUPT, and the caller should end the sandbox. */
#pragma once
#include "base/error.h"
#include "sandbox/init/protocol.h"

struct init_spawn {
	const char *const *argv; /* at least one, then NULL */
	const char *const *env;	 /* "NAME=value", then NULL */
	const char *cwd;	 /* absolute, as seen inside */
	unsigned flags;		 /* INIT_TTY, INIT_NO_PIDFD, INIT_NO_STARTED */
	int program;		 /* descriptor, with INIT_PROGRAM_IN_FD; stays the caller's */
};

/* Sends one spawn; the three descriptors become the command's stdin, stdout and stderr and stay the
 * caller's to close. May be sent before init runs: it waits in the socket. ERR_NOT_EXECUTABLE: the
 * vector is larger than any kernel takes (E2BIG). */
int init_client_spawn(int socket, uint64_t id, const struct init_spawn *spawn, const int fds[3],
	struct error *err);
/* id 0: every process of the sandbox but init. init answers only when it can't: INIT_REFUSED with
 * that id. */
int init_client_signal(int socket, uint64_t id, int signo, struct error *err);
/* The INIT_EXITED of `id` is stored: a warm init may forget it. */
int init_client_ack(int socket, uint64_t id, struct error *err);
int init_client_stats(int socket, struct error *err);
/* A connection to 127.0.0.1:port or [::1]:port of the sandbox: INIT_CONNECTED or INIT_REFUSED with
 * that id. */
int init_client_connect(int socket, uint64_t id, uint16_t port, bool to_ipv6, struct error *err);
/* Asks a warm init for the sockets that lead out. */
int init_client_listeners(int socket, struct error *err);

enum init_client_got {
	INIT_CLIENT_NOTHING, /* nothing there yet */
	INIT_CLIENT_REPLY,
	INIT_CLIENT_EOF, /* init is gone, or a warm one took another master */
};
/* Takes one reply without waiting. Returns an enum init_client_got, or -1. With INIT_CLIENT_REPLY
 * *came is set, yours to close: the command's pidfd, when the reply is an INIT_STARTED that carries
 * one, the socket of an INIT_CONNECTED, else -1.
 * Checked: size, magic, type; id 0 where there can't be one; pid, errno, stage and wait status
 * possible; usage and shm_bytes below 2^62; fields that the type doesn't have are 0; the descriptor
 * is a pidfd, or a TCP socket that doesn't listen. Not checked, since only the caller knows: that
 * the id is one it sent. */
int init_client_receive(int socket, struct init_reply *reply, int *came, struct error *err);
/* The same, and takes the sockets of an INIT_LISTENERS_ARE, which the call above takes for corrupt:
 * in their order, yours to close; fds->count is 0 with every other reply. Checked: there are as
 * many as it says, and each is a socket of the Internet that listens, or a bound one of
 * datagrams. */
struct init_fds {
	int items[INIT_LISTENERS_MAX];
	int count;
};
int init_client_receive_fds(
	int socket, struct init_reply *reply, int *came, struct init_fds *fds, struct error *err);
/* Says in *err why `spawn` didn't start, from its INIT_FAILED or INIT_REFUSED; returns -1.
 * ERR_COMMAND_NOT_FOUND, ERR_NOT_EXECUTABLE: what shells call 127 and 126. */
int init_client_failure(
	const struct init_reply *reply, const struct init_spawn *spawn, struct error *err);
