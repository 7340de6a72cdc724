/* held.h -- disk space that the processes of a sandbox hold outside its directory tree: files that
 * were deleted and are still open or mapped, and files on their way through unix sockets.
 * 1. The caller needs the rights of ptrace over the sandbox: root, or the owner of its user
 * namespace in the parent namespace. A process that can't be read makes `hidden` larger.
 * 2. A file counts once, and at least one block, however often it is open.
 * 3. Deleted files of the system (a library that was replaced while it was in use) don't count. */
#pragma once

/* Where files lie that count: a file system, or what of it is mounted at one place. */
struct held_place {
	uint64_t device;    /* st_dev */
	uint64_t mount;	    /* the id of its mount; 0: wherever it is mounted */
	const char *inside; /* with `mount`: its path in the sandbox */
};
#define HELD_PLACES_MAX 3
struct held_look { /* what held_count takes */
	int proc;
	struct held_place places[HELD_PLACES_MAX];
	size_t place_count;
};

struct held {
	uint64_t bytes;	  /* of deleted files whose size can be read */
	uint64_t hidden;  /* number of files whose size can't be read: in flight, or mapped only */
	uint64_t written; /* bytes that the processes sent to a disk, with those they waited for */
	bool has_written; /* the kernel accounts for it */
};

/* What is at `name` below `dir`, seen at `inside`; NULL: with all places where its file system is
 * mounted. The name "" is `dir` itself. */
bool held_find_place(int dir, const char *name, const char *inside, struct held_place *place);
/* `proc`: the sandbox's /proc. */
void held_count(int proc, const struct held_place *places, size_t place_count, struct held *held);

/* Free bytes of the file system that holds `dir`; 0: unknown. btrfs counts what is written only
 * when it gets to the disk. */
uint64_t held_free_bytes(int dir);
/* The same for pace.h: with a block for each free inode, where their number is fixed. */
uint64_t held_free_room(int dir);

/* What is known when nothing was hidden, and what can be concluded later. */
struct held_base {
	uint64_t free_bytes, free_room; /* of the whole file system; 0: unknown */
	uint64_t counted_bytes, written;
};
/* Space of the hidden files, as far as there is evidence: what the file system has lost since
 * `base` beyond what was counted, and no more than the sandbox itself has written since. 0 while
 * nothing is hidden. */
uint64_t held_hidden_bytes(const struct held_base *base, const struct held *held,
	uint64_t counted_bytes, uint64_t free_bytes);
