/* protocol.h -- messages between core and a file agent, over one SOCK_SEQPACKET unix socket.
 *
 * A file agent is a process in the sandbox, started by carrel-init for core: it has the rights of a
 * command and no others. It finds the socket at descriptor 0, serves one request at a time, and
 * exits when core closes the socket.
 * 1. A request is one packet: struct agent_request, then `path_len` bytes (the path) and `text_len`
 * bytes (the verb's argument, `text` below), each with its NUL, and at most one descriptor.
 * 2. A reply is any number of AGENT_PART packets and one that is AGENT_DONE or AGENT_FAILED. Behind
 * struct agent_reply come `count` times a struct agent_info with its texts; behind AGENT_FAILED, a
 * struct error (base/error.h).
 * 3. Paths resolve as for a command that runs in /workspace. Nothing is opened that could
 * block: fifos, sockets and devices are refused.
 * 4. Core trusts no reply of an agent: a command can kill, stop and (with --ptrace) modify it.
 * Native byte order and alignment: both ends are the same machine. */
#pragma once
#include <stdint.h>

#define AGENT_MAGIC 0x43524641u /* "CRFA" */
#define AGENT_PATH_MAX 4096	/* with its NUL */
#define AGENT_PACKET_MAX 65536
#define AGENT_ENTRIES_MAX 100000 /* of a directory that can be listed */

enum agent_verb {
	AGENT_STAT = 1, /* one info; a link is not followed */
	AGENT_LIST,	/* infos, sorted by name: at most `limit`, of the names after `text` */
	AGENT_OPEN,	/* a regular file, for reading: one descriptor */
	AGENT_CREATE,	/* an unnamed file (O_TMPFILE) in the path's directory, for writing: one
			 * descriptor */
	AGENT_COMMIT,	/* syncs the file of the descriptor in the request and links it at the path,
			 * or copies it there when the path is on a tmpfs and the file isn't; mode 0:
			 * that of the file it replaces; `text` is a temporary name in the same
			 * directory; one info */
	AGENT_MKDIR,	/* with the directories above it; an info */
	AGENT_MOVE,	/* to `text`; an info of that */
	AGENT_REMOVE,
	AGENT_PACK, /* writes a tar archive of the path to the descriptor; an AGENT_PART tells that
		     * it has begun */
	AGENT_UNPACK, /* reads a tar archive from the descriptor, unpacks it in a directory called
			 `text`, then moves it into the path; at most `limit` bytes on disk; an
			 AGENT_PART tells that it has begun */
	AGENT_APPLY,  /* reads changes (snapshots/bundle.h) from the descriptor, unpacks them in a
		       * directory called `text` in the path, at most `limit` bytes on disk, and
		       * applies them to the path, unless one is a conflict: an info for each, with
		       * the type and mode of the file, `reserved` as AGENT_CHANGE makes it, and the
		       * reason as the link */
	AGENT_TIDY,   /* removes `text`, left behind by an UNPACK, a COMMIT or an APPLY of the path;
		       * what an APPLY has begun is undone */
	AGENT_VERIFY, /* tries what the sandbox must refuse: an info for each check, with mode 1
		       * when it holds, and what was seen as the link */
	AGENT_CANCEL, /* during UNPACK, before the end of its descriptor: nothing is moved; no reply
		       */
	AGENT_VERB_COUNT
};
enum agent_flags {	     /* of a request */
	AGENT_PARENTS = 1,   /* CREATE: makes missing parent directories */
	AGENT_NEW = 2,	     /* CREATE, COMMIT: ERR_CONFLICT when the name is taken */
	AGENT_RECURSIVE = 4, /* REMOVE: a directory with its contents */
	AGENT_DRY = 8,	     /* APPLY: only says what would be done */
};
/* Of one change: its letter, and what it is to the path (enum bundle_result). */
#define AGENT_CHANGE(letter, result) ((uint32_t)(unsigned char)(letter) | (uint32_t)(result) << 8)

struct agent_request {
	uint32_t magic, verb, flags, mode;
	uint64_t limit;
	uint32_t path_len, text_len; /* with the NUL; text_len 0: none */
};

enum agent_kind { AGENT_PART = 1, AGENT_DONE, AGENT_FAILED };
enum agent_reply_flags {   /* of a reply */
	AGENT_CREATED = 1, /* COMMIT, MKDIR: the path did not exist before */
	AGENT_MORE =
		2, /* LIST: not the end; the last info has a name to continue after, and no mode */
	AGENT_APPLIED = 4, /* APPLY: what could be taken was */
};
struct agent_reply {
	uint32_t magic, kind, count, flags;
	uint64_t bytes; /* UNPACK: approximate bytes on disk */
};
struct agent_info {
	uint64_t size;
	int64_t modified_ms;
	uint32_t mode;		     /* st_mode */
	uint32_t name_len, link_len; /* of the texts that follow, without NUL */
	uint32_t reserved;	     /* of APPLY; else 0 */
};
