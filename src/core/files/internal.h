/* internal.h -- what core/files keeps. Private to this folder. */
#pragma once
#include "core/internal.h"

struct core_files {
	int server_image; /* memfd of the file server's program */
	uint64_t servers_started;
};
struct file_work {
	struct file_server *first; /* of file_servers.c, as the next two */
	struct file_call *queue;
	bool is_waking;
	uint64_t incoming_bytes;     /* of uploads in progress, whose files have no name yet */
	uint64_t incoming_tmp_bytes; /* the same for uploads into a tmpfs */
};
