/* push_config.h -- where a client of an A2A task wants to be told of its changes: a URL, and how
 * to show there that the notification is genuine. Pure.
 * 1. `credentials` are told to that URL and to nobody else: they are kept, and never shown. */
#pragma once
#include "base/arena.h"
#include "base/id.h"
#include "model/records/record.h"

#define PUSH_CONFIG_ID_MAX 128
#define PUSH_CONFIG_URL_MAX 2048
#define PUSH_CONFIG_SECRET_MAX 4096

struct push_config {
	char id[ID_LEN + 1], task[ID_LEN + 1];
	const char *config; /* its id, as its client knows it */
	const char *owner;  /* the principal that made it, and that alone sees it */
	const char *url;
	const char *token, *scheme, *credentials; /* or NULL */
	bool is_old;				  /* its client speaks 0.3, and so are its pushes */
	bool is_done;				  /* the end of the task was told, or given up */
	uint64_t told_ms; /* the same of a task that waits for input: when it began to wait */
	int64_t created_ms;
};
extern const struct record push_config_record;

/* A TaskPushNotificationConfig of 1.0, or a PushNotificationConfig of 0.3: config (NULL: none is
 * given), url, token, scheme, credentials and is_old are set; texts are those of *value.
 * ERR_INVALID names the member, and no secret. */
int push_config_read(
	const struct json_value *value, bool is_old, struct push_config *out, struct error *err);
/* Its texts are in the arena then. */
/* The TaskPushNotificationConfig, as 1.0 or 0.3 has it. */
void push_config_print(
	struct json *j, const char *key, const struct push_config *config, bool is_old);
/* Whether it goes to one of `hosts`, which are entries of model/network/network.h: one without a
 * port holds for all ports. ERR_INVALID names the host. *is_port_named: an entry names the port,
 * too. */
int push_config_check(const struct push_config *config, const text_list *hosts, bool *is_port_named,
	struct error *err);
/* The host of its URL, without the port, as a list of hosts has it. In the arena. */
const char *push_config_host(const struct push_config *config, struct arena *arena);
