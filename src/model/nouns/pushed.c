#include "model/nouns/pushed.h"

#include "format/http/blob_name.h"
#include "model/nouns/archive.h"
#include "model/records/rows.h"

#define VERSION 1
#define SUFFIX ".json"
#define LAYER_SUFFIX ".tar.zst"
#define TEXT_MAX ((size_t)8 << 20)

static bool is_content_id(const char *text)
{
	return text && strlen(text) == 2 * SHA256_LEN &&
	       strspn(text, "0123456789abcdef") == 2 * SHA256_LEN;
}

/* ---- keys ---- */

const char *pushed_key(const struct snapshot *s, struct arena *arena)
{
	return arena_printf(arena, PUSHED_PREFIX "%s/v%llu.%s%s%s" SUFFIX, s->workspace_name,
		(unsigned long long)s->version, s->id, s->tag ? "." : "", s->tag ? s->tag : "");
}

const char *pushed_layer_key(const char *content_id, struct arena *arena)
{
	return arena_printf(arena, PUSHED_LAYERS "%s" LAYER_SUFFIX, content_id);
}

bool pushed_key_read(const char *key, struct arena *arena, struct pushed_row *row)
{
	struct pushed_row read = { .key = arena_text(arena, key) };
	struct error ignored;
	size_t len = strlen(key), suffix = strlen(SUFFIX);
	if (strncmp(key, PUSHED_PREFIX, strlen(PUSHED_PREFIX)) != 0 || len < suffix ||
		strcmp(key + len - suffix, SUFFIX) != 0 || !blob_key_is_valid(key))
		return false;
	const char *name = key + strlen(PUSHED_PREFIX), *slash = strchr(name, '/');
	if (!slash || slash[1] != 'v' || strchr(slash + 1, '/'))
		return false;
	const char *number = slash + 2, *dot = strchr(number, '.'), *end = key + len - suffix;
	if (!dot || end - dot < ID_LEN + 1 ||
		!str_to_u64((struct str){ number, (size_t)(dot - number) }, &read.version))
		return false;
	read.workspace = arena_bytes(arena, name, (size_t)(slash - name));
	memcpy(read.id, dot + 1, ID_LEN);
	const char *rest = dot + 1 + ID_LEN;
	if (rest < end) {
		if (*rest != '.')
			return false;
		read.tag = arena_bytes(arena, rest + 1, (size_t)(end - rest - 1));
	}
	if (!id_is_valid(read.id) || workspace_check_name(read.workspace, &ignored) ||
		(read.tag && snapshot_check_tag(read.tag, &ignored)))
		return false;
	*row = read;
	return true;
}

bool pushed_is_named(const struct pushed_row *row, const char *text)
{
	uint64_t version;
	return !strcmp(row->id, text) || (row->tag && !strcmp(row->tag, text)) ||
	       (str_to_u64(str_from(text), &version) && version == row->version);
}

/* ---- the manifest ---- */

void pushed_print(const struct snapshot *s, const pushed_layers *layers, struct buf *out)
{
	auto_buf struct buf kept = buf_empty(TEXT_MAX);
	struct json j = json_to(out, false);
	record_print_kept(&snapshot_record, s, &kept);
	json_object(&j, NULL);
	json_u64(&j, "version", VERSION);
	json_text(&j, "id", s->id);
	json_text(&j, "workspace", s->workspace);
	json_raw(&j, "snapshot", kept.data);
	json_array(&j, "layers");
	for (size_t i = 0; i < layers->count; i++) {
		json_object(&j, NULL);
		json_text(&j, "content_id", layers->items[i].content_id);
		json_u64(&j, "size_bytes", layers->items[i].size_bytes);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
}

static int read_id(const struct json_value *manifest, const char *member, char out[ID_LEN + 1],
	struct error *err)
{
	const char *id = json_member_text(manifest, member);
	if (!id || !id_is_valid(id))
		return fail(err, ERR_INVALID, "%s: not an id", member);
	memcpy(out, id, ID_LEN + 1);
	return 0;
}

static bool has_layer(const pushed_layers *layers, const char *content_id)
{
	for (size_t i = 0; i < layers->count; i++)
		if (!strcmp(layers->items[i].content_id, content_id))
			return true;
	return false;
}

/* A layer whose content is also higher up shows nothing that isn't shown without it; and an overlay
 * can't have one directory twice. */
static int read_layers(const struct json_value *manifest, struct arena *arena,
	pushed_layers *layers, struct error *err)
{
	const struct json_value *list = json_member(manifest, "layers");
	if (!list || list->kind != JSON_ARRAY)
		return fail(err, ERR_INVALID, "layers: missing");
	for (const struct json_value *at = list->first; at; at = at->next) {
		struct pushed_layer layer = { json_member_text(at, "content_id"), 0 };
		if (!is_content_id(layer.content_id) ||
			!json_member_u64(at, "size_bytes", &layer.size_bytes))
			return fail(err, ERR_INVALID, "layers: not a content id and a size");
		if (has_layer(layers, layer.content_id))
			continue;
		if (layers->count >= PUSHED_LAYERS_MAX)
			return fail(err, ERR_LIMIT, "more than %d layers", PUSHED_LAYERS_MAX);
		layer.content_id = arena_text(arena, layer.content_id);
		vec_push(arena, layers, layer);
	}
	return 0;
}

static int read_snapshot(const struct json_value *manifest, struct arena *arena, struct snapshot *s,
	struct error *err)
{
	auto_buf struct buf text = buf_empty(TEXT_MAX);
	const struct json_value *kept = json_member(manifest, "snapshot");
	struct json j = json_to(&text, false);
	struct workspace w = { 0 };
	if (!kept || kept->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "snapshot: missing");
	json_copy(&j, NULL, kept);
	json_finish(&j);
	if (record_read_kept(
		    &snapshot_record, (struct str){ text.data, text.len }, arena, s, err) ||
		read_id(manifest, "id", s->id, err) ||
		read_id(manifest, "workspace", s->workspace, err) ||
		workspace_check_name(s->workspace_name ? s->workspace_name : "", err) ||
		(s->tag && snapshot_check_tag(s->tag, err)))
		return -1;
	if (s->note && strlen(s->note) > SNAPSHOT_NOTE_MAX)
		return fail(err, ERR_INVALID, "note: too long");
	snapshot_give_state(arena, s, &w);
	return archive_check_policy(&s->policy, err) || archive_check_environments(&w, err) ? -1
											    : 0;
}

int pushed_read(struct str text, const char *key, struct arena *arena, struct snapshot *snapshot,
	pushed_layers *layers, struct error *err)
{
	struct json_value *manifest;
	struct snapshot s = { 0 };
	pushed_layers read = { 0 };
	uint64_t version = 0;
	if (json_read(text, arena, &manifest, err)) {
		err->code = ERR_CORRUPT;
		return -1;
	}
	if (!json_member_u64(manifest, "version", &version))
		return fail(err, ERR_INVALID, "it is not the manifest of a snapshot");
	if (version != VERSION)
		return fail_hint(err, ERR_INVALID, "a newer carrel can read it, perhaps",
			"it has version %llu", (unsigned long long)version);
	if (read_snapshot(manifest, arena, &s, err) || read_layers(manifest, arena, &read, err)) {
		if (err->code == ERR_CORRUPT)
			err->code = ERR_INVALID;
		return -1;
	}
	if (strcmp(pushed_key(&s, arena), key) != 0)
		return fail(err, ERR_INVALID, "it is that of '%s'", pushed_key(&s, arena));
	s.layers = (text_list){ 0 };
	s.content_id = read.count ? read.items[0].content_id : NULL;
	s.has_size = false;
	s.size_bytes = 0;
	*snapshot = s;
	*layers = read;
	return 0;
}

/* ---- what is asked for, and what was done ---- */

static const struct field push_rows[] = {
	ROW_OF(push_result, TEXT, snapshot, "its id"),
	ROW_OF(push_result, TEXT, workspace, "its name"),
	ROW_OF(push_result, TEXT, key, "of its manifest in the blob store"),
	ROW_OF(push_result, INTEGER, layers, "that it has"),
	ROW_OF(push_result, INTEGER, sent_layers, "that the blob store lacked"),
	{ "sent", FIELD_SIZE, offsetof(struct push_result, sent_bytes),
		"bytes of these, compressed" },
};
const struct record push_result_record = { "Push", "What a push has done.", RECORD_ROWS(push_rows),
	FIELD_OUT };

static const struct field push_wanted_rows[] = {
	ROW_OF(push_wanted, TEXT, snapshot, "id, tag or version of a snapshot of this workspace",
		FIELD_REQUIRED, .least = 1, .most = SNAPSHOT_TAG_MAX),
	ROW_OF(push_wanted, BOOLEAN, force, "send also the layers that the blob store has"),
};
const struct record push_wanted_record = { "PushWanted", NULL, RECORD_ROWS(push_wanted_rows),
	FIELD_IN };

static const struct field pull_wanted_rows[] = {
	ROW_OF(pull_wanted, TEXT, workspace, "the name of the workspace that was pushed",
		FIELD_REQUIRED, .pattern = "^[a-z0-9][a-z0-9-]{0,63}$",
		.check = workspace_check_name),
	ROW_OF(pull_wanted, TEXT, snapshot,
		"id, tag or version of a snapshot of it that was pushed", FIELD_REQUIRED,
		.least = 1, .most = SNAPSHOT_TAG_MAX),
};
const struct record pull_wanted_record = { "PullWanted", NULL, RECORD_ROWS(pull_wanted_rows),
	FIELD_IN };
