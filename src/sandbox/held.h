/* held.h -- disk space that the processes of a sandbox hold outside its directory tree: files that
 * were deleted and are still open or mapped, and files on their way through unix sockets.
 * 1. The caller needs the rights of ptrace over the sandbox: root, or the owner of its user
 * namespace in the parent namespace. A process that can't be read makes `hidden` larger.
 * 2. A file counts once, and at least one block, however often it is open.
 * 3. Deleted files of the system (a library that was replaced while it was in use) don't count. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HELD_DEVICES_MAX 3

struct held {
	uint64_t bytes;	  /* of deleted files whose size can be read */
	uint64_t hidden;  /* number of files whose size can't be read: in flight, or mapped only */
	uint64_t written; /* bytes that the processes sent to a disk, with those they waited for */
	bool has_written; /* the kernel accounts for it */
};

/* `proc`: the sandbox's /proc. `devices`: st_dev of the file systems that count. */
void held_count(int proc, const uint64_t *devices, size_t device_count, struct held *held);

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
