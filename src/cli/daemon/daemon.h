/* daemon.h -- the daemon of a home: found, started as tmux does, stopped.
 * 1. The process that serves a home holds a lock on <home>/run/lock, which the kernel frees when
 * that process ends, however it ended; the file's text names pid, socket and options. A socket
 * without the lock is stale.
 * 2. The socket is replaced under the lock only; a daemon is started by a command under the lock of
 * <home>/run/start, so that ten commands at once start one. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "client/client.h"
#include "linux/home.h"

#define DAEMON_SOCKET "run/carrel.sock" /* below the home */

/* Connects to the daemon. host: NULL (the home's own), or as client_connect takes it. If no daemon
 * listens, host is NULL and may_start is set, starts `carrel serve --background` and connects to
 * it; on failure the error has the last line of its log. client_done follows on success.
 * ERR_UNAVAILABLE: no daemon listens there (the hint says what to do), or it doesn't start. */
int daemon_connect(struct client *client, const char *host, bool may_start, struct error *err);

/* Opens run/NAME of the home with the rights of its owner, who also owns a new file (0600). */
int daemon_open_file(
	const struct home *home, const char *name, int flags, int *fd, struct error *err);
/* The lock of a home: held by *lock as long as that is open. ERR_CONFLICT: a daemon has it; the
 * text names its pid and socket. */
int daemon_lock(const struct home *home, int *lock, struct error *err);
/* What the process that holds the lock says in its file, beside its pid and the options of its
 * command line: the command that starts a daemon after one that was killed says which of them are
 * lost. */
struct daemon_said {
	const char *socket; /* where it listens */
	const char *digest; /* of the config.yaml that it has read */
	const char *base;   /* the directory that relative paths of its options are below */
};
int daemon_announce(int lock, const struct daemon_said *said, struct error *err);
/* Ends in order: takes back what was announced. */
void daemon_retire(int lock);
/* 1 when the home has a daemon, 0 when it has none, -1. *pid: 0 when it is in another pid
 * namespace; socket: where it listens, "" before it does. */
int daemon_find(const struct home *home, pid_t *pid, char *socket, size_t size, struct error *err);
/* The same of the home at `path`, which need not be there, with what the daemon has said (in the
 * arena) and the words of its command line. *pid 0: none runs, or none that can be seen. */
int daemon_look(const char *path, struct arena *arena, pid_t *pid, struct daemon_said *said,
	text_list *words, struct error *err);
/* Tells the home's daemon to end and waits until its lock is free, at most timeout_ms. *pid is 0
 * when there was none. ERR_UNAVAILABLE: it still runs. */
int daemon_stop(const struct home *home, uint64_t timeout_ms, pid_t *pid, struct error *err);

/* Tells the home's daemon to execute its program anew and waits until it serves again. *pid is 0
 * when there is none. ERR_FAILED: it refused, and goes on as it was. */
int daemon_reload(const struct home *home, uint64_t timeout_ms, pid_t *pid, struct error *err);
