/* init_connection.h -- the socket to the init of a workspace's sandbox, for others in core than
 * execs. */
#pragma once
#include "core/core.h"
#include "sandbox/init/protocol.h"

struct file_server;

bool connection_is_broken(const struct core_workspace *w);
void connection_send(struct core_workspace *w, enum init_type type, uint64_t id, int value);
/* The variables of its commands, from the model as it is now. */
void connection_make_env(struct core_workspace *w);
/* Sends the spawn of a file server, or queues it. */
int connection_spawn_file_server(
	struct core_workspace *w, struct file_server *server, struct error *err);
/* The spawn of an exec or a file server, if it is queued. */
void connection_withdraw(struct core_workspace *w, const void *whose);
