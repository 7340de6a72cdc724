/* protocol.h -- what carrel-init and its master say to each other, over one SOCK_SEQPACKET unix
 * socket.
 *
 * carrel-init finds that socket at descriptor 3 and learns from SO_ACCEPTCONN what it is:
 *   connected: cold sandbox. One spawn, which may be in the socket before init starts; when that
 *              command ends (or can't start), init reports it and exits, which kills the rest
 *              (but INIT_STAY).
 *              End of file means that the master died: init exits at once.
 *   listening: warm sandbox. Any number of spawns; one master at a time (a newer connection
 * replaces the older); init keeps the exits that nobody acknowledged and repeats them to the next
 *              master.
 * 1. One packet is one message: a header of fixed size, then `body_len` bytes. Native byte order
 * and alignment: both ends are the same machine. A message that isn't whole, known and in range is
 *    answered by INIT_REFUSED, never guessed at. An empty packet is end of file.
 * 2. A spawn carries exactly three descriptors (stdin, stdout, stderr), and a fourth: a sealed
 * memfd that holds the body when INIT_BODY_IN_FD is set (a packet holds about 200 kB, an argument
 *    vector up to 6 MB), the program to execute when INIT_PROGRAM_IN_FD is set (never both). No
 *    other message carries any. Fields that a message doesn't have are 0.
 * 3. The body is argc + envc NUL-terminated strings (argv, then env), then cwd, also
 * NUL-terminated. Nothing else. argv[0] without '/' is looked for in the PATH of that env, as
 * execvp does.
 * 4. init never waits for a master: one that doesn't read its replies is dropped (warm), or ends
 * the sandbox (cold). INIT_EXITED alone is kept until the socket has room.
 * 5. init has no libc, no heap and no capability; the filters are on before it starts. The master
 *    believes nothing it says without checking. */
#pragma once
#include <stdint.h>

#define INIT_SOCKET_FD 3
/* Of a warm sandbox: sockets that were opened inside before it was locked in, and lead out. Those
 * that there are follow each other from this number on. */
#define INIT_LISTENER_FD 4
#define INIT_LISTENERS_MAX 9
#define INIT_MAGIC 0x43524c31u /* "CRL1": also the version */
#define INIT_EXECS_MAX 256     /* running or unacknowledged at once */
#define INIT_INLINE_MAX 65536  /* a larger body, or one of more strings, comes in a memfd */
#define INIT_INLINE_STRINGS 8192
#define INIT_BODY_MAX (8u << 20)    /* more than any kernel takes: its answer is then E2BIG */
#define INIT_STRINGS_MAX (1u << 20) /* argc + envc */

enum init_type {
	/* to init */
	INIT_SPAWN = 1, /* id, argc, envc, flags + body + 3 or 4 fds */
	INIT_SIGNAL,	/* id, value = signal: to the command's process group (0: is it there?),
			 * which is continued after a SIGHUP, SIGINT, SIGQUIT or SIGTERM;
			 * id 0: to every process but init */
	INIT_ACK,	/* id: its INIT_EXITED was stored, forget it */
	INIT_STATS,	/* asks for INIT_STATS_ARE */
	INIT_CONNECT,	/* id, value = port of 127.0.0.1 or (flags = INIT_TO_IPV6) of ::1 */
	INIT_LISTENERS, /* asks for INIT_LISTENERS_ARE */
	/* from init */
	INIT_STARTED = 64,  /* id, value = pid inside; one fd: its pidfd */
	INIT_FAILED,	    /* id, value = errno, stage: nothing was started */
	INIT_EXITED,	    /* id, value = wait status, usage; stage = 1: no process is in the
			     * sandbox but init, and one that it may make for the next command */
	INIT_STATS_ARE,	    /* shm_bytes: SysV shared memory that holds pages, attached or
			     * not; value = execs running */
	INIT_CONNECTED,	    /* id; one fd: the TCP socket, non-blocking, which may be connecting
			     * still, or have failed to */
	INIT_LISTENERS_ARE, /* value = how many, and that many fds, in their order; the sockets stay
			     * init's, too */
	INIT_REFUSED,	    /* value = errno, id of the message when it had a whole header */
};

/* INIT_REFUSED's errno: EBADMSG not a message of this protocol; EINVAL a field out of range;
 * EMSGSIZE longer than a packet may be; EMFILE init could not take all the descriptors; EBADF they
 * are not the ones that belong to it; EEXIST the id is in use; EAGAIN the table is full; EBUSY a
 * cold sandbox's second spawn; ESRCH no such exec runs (signal) or is kept (ack); EPERM id 0
 * signalled by an init that isn't PID 1. */

enum init_flags {
	INIT_BODY_IN_FD = 1,
	INIT_TTY = 2,	     /* one of the three is a terminal: make it the controlling one */
	INIT_NO_PIDFD = 4,   /* the master doesn't want the pidfd */
	INIT_NO_STARTED = 8, /* nor INIT_STARTED: saves a wake-up in cold mode */
	INIT_ATTACHED = 16,  /* warm: it is killed when this master goes, and so is all else that
			      * no exec without this flag holds up; its exit is told once, needs
			      * no INIT_ACK, and never comes to another master */
	INIT_NO_GROWTH = 32, /* no file may be written to, whatever is deleted: RLIMIT_FSIZE 0 */
	INIT_STAY = 64,	     /* cold: after a command that failed init stays, so that the master can
			      * look at the sandbox, until the master goes or kills it */
	INIT_PROGRAM_IN_FD = 128, /* the master's own program, not a command: argv[0] is looked for
				   * nowhere; when it is attached and its master goes, nothing
				   * else is killed */
	INIT_FLAGS_ALL = 255,
};

enum { INIT_TO_IPV6 = 1 }; /* of INIT_CONNECT */

enum init_stage { /* of INIT_FAILED */
	INIT_STAGE_FORK = 1,
	INIT_STAGE_CWD, /* chdir, or the check after it that the cwd lies in the
			 * sandbox's own tree (ENOENT when it doesn't) */
	INIT_STAGE_TTY,
	INIT_STAGE_EXEC,
	INIT_STAGE_COUNT
};

struct init_request {
	uint32_t magic, type;
	uint64_t id; /* chosen by the master, not 0 */
	uint32_t argc, envc, flags, body_len;
	int32_t value;
	uint32_t reserved; /* 0 */
};

struct init_reply {
	uint32_t magic, type;
	uint64_t id;
	int32_t value, stage;
	uint64_t utime_us, stime_us, max_rss_kb; /* of the command and the children it
						  * waited for */
	uint64_t shm_bytes;
};
