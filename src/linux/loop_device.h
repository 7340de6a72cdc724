/* loop_device.h -- block devices that are files. */
#pragma once
#include "base/error.h"

#define LOOP_PATH_LEN 32

/* A device whose content is the file `file` (open for reading and writing): one that has it
 * already, since two would corrupt what is on them, or else a new one. It goes when its last user
 * does (autoclear): *device, yours to close, is the first. Two callers at once have to exclude each
 * other, by a lock on the file. ERR_UNAVAILABLE: this host has no loop devices. */
int loop_attach(int file, char path[LOOP_PATH_LEN], int *device, struct error *err);
