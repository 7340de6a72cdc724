/* pushed.h -- a snapshot in the blob store: the names of its objects, and its manifest. Pure.
 *	workspace-snapshots/WORKSPACE/vVERSION.ID[.TAG].json	the manifest
 *	workspace-layers/CONTENT_ID.tar.zst			a layer, which many may name
 * A manifest may be a stranger's: what is read from it is checked. */
#pragma once
#include "base/hash.h"
#include "format/text/json_read.h"
#include "model/nouns/snapshot.h"

#define PUSHED_PREFIX "workspace-snapshots/"
#define PUSHED_LAYERS "workspace-layers/"
#define PUSHED_MANIFEST_MAX ((size_t)8 << 20)
#define PUSHED_LAYERS_MAX 500

struct pushed_layer {
	const char *content_id; /* 64 hexadecimal digits */
	uint64_t size_bytes;	/* of the object */
};
typedef VEC(struct pushed_layer) pushed_layers; /* topmost first */

/* What the key of a manifest says. */
struct pushed_row {
	const char *key;
	const char *workspace; /* its name */
	uint64_t version;
	char id[ID_LEN + 1];
	const char *tag; /* or NULL */
};
const char *pushed_key(const struct snapshot *snapshot, struct arena *arena);
/* false: not the key of a manifest. */
bool pushed_key_read(const char *key, struct arena *arena, struct pushed_row *row);
/* Whether `text` is its id, tag or version. */
bool pushed_is_named(const struct pushed_row *row, const char *text);
const char *pushed_layer_key(const char *content_id, struct arena *arena);

void pushed_print(const struct snapshot *snapshot, const pushed_layers *layers, struct buf *out);
/* The snapshot, without layers, and the layers that it has, each content once. ERR_INVALID,
 * ERR_CORRUPT: what is wrong with it, such as that `key` is of another one. Texts are in the arena.
 */
int pushed_read(struct str text, const char *key, struct arena *arena, struct snapshot *snapshot,
	pushed_layers *layers, struct error *err);

/* What a push has done. */
struct push_result {
	const char *snapshot, *workspace; /* its id; the name of the workspace */
	const char *key;
	uint64_t layers, sent_layers, sent_bytes;
};
struct push_wanted {
	const char *snapshot; /* id, tag or version */
	bool force;
};
struct pull_wanted {
	const char *workspace, *snapshot;
};
extern const struct record push_result_record, push_wanted_record, pull_wanted_record;
