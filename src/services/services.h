/* services.h -- what runs on workspaces: nouns that are made of core's verbs alone, each with its
 * rows, its timers and its state machine. A service is one row of the table in services.c.
 * 1. A service isolates, installs, judges and stores nothing itself: it calls verbs of core, with
 * the request of its caller (access_keep) or with core_system.
 * 2. It includes no header of core that is internal.
 * 3. What was acknowledged survives: a row is in the store before its caller is answered, and
 * `start` goes on with, or ends by name, what a crash interrupted. */
#pragma once
#include "base/buf.h"
#include "core/nouns.h"

struct services;
struct tool_settings;

struct service {
	const char *name;			 /* "tools" */
	const struct store_table *const *tables; /* ended by NULL; or NULL */
	size_t size; /* of its state, which begins with struct service_state; zeroed */
	/* A row of its tables, before `start`; what it needs of *row is copied. Or NULL. */
	void (*take)(void *state, const struct store_table *table, const void *row);
	void (*start)(void *state); /* core is ready */
	/* The daemon is about to stop, or to be replaced: nothing new is begun. Or NULL. */
	void (*stop)(void *state);
	void (*free)(void *state); /* core is still there; or NULL */
	/* Adds to /metrics, in Prometheus' text format; or NULL. */
	void (*print_metrics)(void *state, struct buf *out);
};
struct services_options {		   /* of config.yaml; they live as long as the services */
	const struct tool_settings *tools; /* NULL: the defaults */
};
struct service_state {
	struct core *core; /* from `start` on */
	struct loop *loop;
	struct services_options options;
};

struct services *services_new(struct loop *loop, const struct services_options *options);
/* For core_options.row, with the services as ctx. */
int services_take(void *ctx, const struct store_table *table, const void *row);
void services_start(struct services *services, struct core *core);
void services_stop(struct services *services);
void services_free(struct services *services); /* before core_free; NULL is nothing */
void services_print_metrics(struct services *services, struct buf *out);
/* The state of one service. */
void *services_state(struct services *services, const struct service *service);
