/* snapshot.h -- a frozen, versioned state of a workspace, as plain data. Pure.
 * 1. Its state is a list of frozen layers and what its environment is made of; the layers are
 * shared with workspaces and other snapshots that name them.
 * 2. Versions of a workspace count up from 1 and are never given twice. A tag names one snapshot of
 * a workspace.
 * 3. All texts live in the arena that the creator of the struct passed. */
#pragma once
#include "model/nouns/workspace.h"

#define SNAPSHOT_TAG_MAX 128
#define SNAPSHOT_NOTE_MAX 4096

struct snapshot {
	char id[ID_LEN + 1];
	char workspace[ID_LEN + 1];
	const char *workspace_name;
	uint64_t version;
	const char *tag, *note; /* or NULL */
	int64_t created_ms;
	uint64_t size_bytes;		       /* of the layer that was frozen for it; */
	bool has_size;			       /* it was measured */
	text_list layers;		       /* "snap-<id>", topmost first */
	struct environment_names environments; /* as those of the workspace were, */
	const char *python, *requirements;     /* and what they were made of */
	text_list packages, build_options;
	struct workspace_node node;
	enum workspace_view view; /* of the workspace */
	/* Of the workspace, without the rules of reviewers: for workspaces that are made of it. */
	struct workspace_policy policy;
	bool is_automatic;	/* made by a rollback, of the state that it left */
	bool is_kept;		/* stays when its workspace is removed */
	const char *content_id; /* NULL: not computed yet */
};
extern const struct record snapshot_record;

/* 1 to 128 of A-Z, a-z, 0-9 and _.-, the first a letter: neither an id nor a version. */
int snapshot_check_tag(const char *tag, struct error *err);
/* The layers, the environments and what they were made of: points to what *from has, or copies it
 * into arena. */
void snapshot_take_state(struct snapshot *to, const struct workspace *from);
void snapshot_give_state(struct arena *arena, const struct snapshot *from, struct workspace *to);
/* Deep copy into arena. */
void snapshot_copy_model(struct arena *arena, const struct snapshot *from, struct snapshot *to);

/* What to do when commands run in the workspace. */
enum when_busy { WHEN_BUSY_DEFAULT, WHEN_BUSY_PAUSE, WHEN_BUSY_WAIT, WHEN_BUSY_FAIL };
extern const struct field_choice when_busy_choices[], when_busy_waits[]; /* waits: wait, fail */
#define WHEN_BUSY_TIMEOUT_MS 300000

struct snapshot_wanted {
	const char *tag, *note;
	int when_busy;
	uint64_t timeout_ms; /* 0: WHEN_BUSY_TIMEOUT_MS */
};
struct rollback_wanted {
	const char *snapshot; /* id, tag or version */
	int when_busy;
	uint64_t timeout_ms;
};
struct fork_wanted {
	const char *name; /* NULL: generated */
	uint64_t count;	  /* 0: 1 */
	const char *snapshot;
	int when_busy;
	uint64_t timeout_ms;
	const struct workspace_owner *owner; /* of a service that asks; else NULL */
};
#define FORK_COUNT_MAX 100
extern const struct record snapshot_wanted_record, rollback_wanted_record, fork_wanted_record;
