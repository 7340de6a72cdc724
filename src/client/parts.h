/* parts.h -- what the files of the client share. */
#pragma once
#include "client/client.h"

/* A connection that is good for a request: another one when the last is used up. */
int client_renew(struct client *client, struct error *err);
/* Waits for bytes and puts them behind those in client->in; how many, 0 at the end, -1. */
ssize_t client_fill(struct client *client, struct error *err);
static inline struct str client_unread(const struct client *client)
{
	return (struct str){ client->in.data + client->in_at, client->in.len - client->in_at };
}
