/* late_close.h -- descriptors that a thread of the kernel closes, after this process has ended.
 *
 * Closing the last reference of a mount namespace unmounts all that is in it, and waits for every
 * CPU: 0.1 ms on an idle machine, milliseconds on a busy one. A process whose caller waits for its
 * end leaves that to the kernel. */
#pragma once

/* The kernel takes a reference of what `fd` stands for, and drops it some milliseconds after this
 * process has ended. `fd` stays the caller's. false: the kernel can't (no io_uring, or it is
 * forbidden here); nothing was done. */
bool late_close(int fd);
