/* protocol.h -- messages between core and a file server, over one SOCK_SEQPACKET unix socket.
 *
 * A file server is a process in the sandbox, started by carrel-init for core: it has the rights of
 * a command and no others. It finds the socket at descriptor 0, serves one request at a time, and
 * exits when core closes the socket.
 * 1. A request is one packet: struct file_request, then `path_len` bytes (the path) and `text_len`
 * bytes (the verb's argument, `text` below), each with its NUL, and at most one descriptor.
 * 2. A reply is any number of FILE_PART packets and one that is FILE_DONE or FILE_FAILED. Behind
 * struct file_reply come `count` times a struct file_entry with its texts; behind FILE_FAILED, a
 * struct error (base/error.h).
 * 3. Paths resolve as for a command that runs in /workspace. Nothing is opened that could
 * block: fifos, sockets and devices are refused.
 * 4. Core trusts no reply of a server: a command can kill, stop and (with --ptrace) modify it.
 * Native byte order and alignment: both ends are the same machine. */
#pragma once

#define FILE_MAGIC 0x43524641u /* "CRFA" */
#define FILE_PATH_MAX 4096     /* with its NUL */
#define FILE_PACKET_MAX 65536
#define FILE_ENTRIES_MAX 100000 /* of a directory that can be listed */

enum file_verb {
	FILE_STAT = 1, /* one entry; a link is not followed */
	FILE_LIST,     /* entries, sorted by name: at most `limit`, of the names after `text` */
	FILE_OPEN,     /* a regular file, for reading: one descriptor */
	FILE_CREATE,   /* an unnamed file (O_TMPFILE) in the path's directory, for writing: one
			* descriptor */
	FILE_COMMIT,   /* syncs the file of the descriptor in the request and links it at the path,
			* or copies it there when the path is on a tmpfs and the file isn't; mode 0:
			* that of the file it replaces; `text` is a temporary name in the same
			* directory; one entry */
	FILE_MKDIR,    /* with the directories above it; an entry */
	FILE_MOVE,     /* to `text`; an entry of that */
	FILE_REMOVE,
	FILE_PACK,   /* writes a tar archive of the path to the descriptor; an FILE_PART tells that
		      * it has begun */
	FILE_UNPACK, /* reads a tar archive from the descriptor, unpacks it in a directory called
			 `text`, then moves it into the path; at most `limit` bytes on disk; an
			 FILE_PART tells that it has begun */
	FILE_APPLY,  /* reads changes (trees/stacks/bundle.h) from the descriptor, unpacks them in a
		      * directory called `text` in the path, at most `limit` bytes on disk, and
		      * applies them to the path, unless one is a conflict: an entry for each, with
		      * the type and mode of the file, `reserved` as FILE_CHANGE makes it, and the
		      * reason as the link */
	FILE_TIDY,   /* removes `text`, left behind by an UNPACK, a COMMIT or an APPLY of the path;
		      * what an APPLY has begun is undone */
	FILE_VERIFY, /* tries what the sandbox must refuse: an entry for each check, with mode 1
		      * when it holds, and what was seen as the link */
	FILE_CANCEL, /* during UNPACK, before the end of its descriptor: nothing is moved; no reply
		      */
	FILE_VERB_COUNT
};
enum file_request_flags {   /* of a request */
	FILE_PARENTS = 1,   /* CREATE: makes missing parent directories */
	FILE_NEW = 2,	    /* CREATE, COMMIT: ERR_CONFLICT when the name is taken */
	FILE_RECURSIVE = 4, /* REMOVE: a directory with its contents */
	FILE_DRY = 8,	    /* APPLY: only says what would be done */
};
/* Of one change: its letter, and what it is to the path (enum bundle_result). */
#define FILE_CHANGE(letter, result) ((uint32_t)(unsigned char)(letter) | (uint32_t)(result) << 8)

struct file_request {
	uint32_t magic, verb, flags, mode;
	uint64_t limit;
	uint32_t path_len, text_len; /* with the NUL; text_len 0: none */
};

enum file_reply_kind { FILE_PART = 1, FILE_DONE, FILE_FAILED };
enum file_reply_flags {	  /* of a reply */
	FILE_CREATED = 1, /* COMMIT, MKDIR: the path did not exist before */
	FILE_MORE =
		2, /* LIST: not the end; the last entry has a name to continue after, and no mode */
	FILE_APPLIED = 4, /* APPLY: what could be taken was */
};
struct file_reply {
	uint32_t magic, kind, count, flags;
	uint64_t bytes; /* UNPACK: approximate bytes on disk */
};
struct file_entry {
	uint64_t size;
	int64_t modified_ms;
	uint32_t mode;		     /* st_mode */
	uint32_t name_len, link_len; /* of the texts that follow, without NUL */
	uint32_t reserved;	     /* of APPLY; else 0 */
};
