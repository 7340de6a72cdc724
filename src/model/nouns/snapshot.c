#include "model/nouns/snapshot.h"
#include "model/records/rows.h"

int snapshot_check_tag(const char *tag, struct error *err)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";
	size_t len = strlen(tag);
	if (len == 0 || len > SNAPSHOT_TAG_MAX || strspn(tag, allowed) != len ||
		!strchr(letters, tag[0]))
		return fail_hint(err, ERR_INVALID,
			"1 to 128 of A-Z, a-z, 0-9 and _.-, the first a letter",
			"invalid tag '%.128s'", tag);
	if (id_is_valid(tag))
		return fail(err, ERR_INVALID, "invalid tag '%s': it has the form of an id", tag);
	return 0;
}

void snapshot_copy_model(struct arena *arena, const struct snapshot *from, struct snapshot *to)
{
	*to = *from;
	to->policy.rules = (text_list){ 0 };
	record_copy_texts(&snapshot_record, arena, to);
}

void snapshot_take_state(struct snapshot *to, const struct workspace *from)
{
	to->layers = from->layers;
	to->environments = from->environments;
	to->python = from->python;
	to->requirements = from->requirements;
	to->packages = from->packages;
	to->build_options = from->build_options;
	to->node = from->node;
	to->view = from->view;
}

void snapshot_give_state(struct arena *arena, const struct snapshot *from, struct workspace *to)
{
	struct snapshot copied;
	snapshot_copy_model(arena, from, &copied);
	to->layers = copied.layers;
	to->environments = copied.environments;
	to->python = copied.python;
	to->requirements = copied.requirements;
	to->packages = copied.packages;
	to->build_options = copied.build_options;
	to->node = copied.node;
	to->view = copied.view;
}

#define AT(member) offsetof(struct snapshot, member)
static const struct field snapshot_rows[] = {
	ROW(ID, id, NULL, FIELD_OUT | FIELD_COLUMN, .head = "ID", .column = 1),
	ROW(ID, workspace, "the id of the workspace it was made of", FIELD_OUT | FIELD_COLUMN),
	ROW(TEXT, workspace_name, NULL, FIELD_OUT | FIELD_KEPT, .head = "WORKSPACE", .column = 2),
	ROW(INTEGER, version, "1, 2, 3 ... of the workspace", FIELD_OUT | FIELD_KEPT,
		.most = UINT32_MAX, .head = "VERSION", .column = 3),
	ROW(TEXT, tag, NULL, FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE, .head = "TAG", .column = 4),
	ROW(TEXT, note, NULL, FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE, .head = "NOTE", .column = 8),
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "created_ms", .head = "AGE", .column = 6 },
	{ "size", FIELD_SIZE, AT(size_bytes),
		"bytes on disk of what was changed since the snapshot below; null: not measured "
		"yet",
		FIELD_OUT | FIELD_NULLABLE, .has = FIELD_HAS(struct snapshot, has_size),
		.head = "SIZE", .column = 5 },
	{ "size", FIELD_SIZE, AT(size_bytes), NULL, FIELD_KEPT },
	ROW(BOOLEAN, has_size, NULL, FIELD_KEPT),
	ROW(TEXTS, layers, "topmost first", FIELD_OUT | FIELD_KEPT),
	{ "environment", FIELD_TEXT, AT(environments.of[ENV_KIND_PYTHON]), "that the workspace had",
		FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE, .head = "ENVIRONMENT", .column = 7 },
	ROW(TEXT, python, NULL, FIELD_KEPT),
	ROW(TEXT, requirements, NULL, FIELD_KEPT),
	ROW(TEXTS, packages, NULL, FIELD_KEPT),
	ROW(TEXTS, build_options, NULL, FIELD_KEPT),
	{ "node_environment", FIELD_TEXT, AT(environments.of[ENV_KIND_NODE]), "that of Node",
		FIELD_OUT | FIELD_KEPT | FIELD_OPTIONAL },
	{ "node_version", FIELD_TEXT, AT(node.version), NULL, FIELD_KEPT },
	{ "node_package_json", FIELD_TEXT, AT(node.package_json), NULL, FIELD_KEPT },
	{ "node_lock", FIELD_TEXT, AT(node.lock), NULL, FIELD_KEPT },
	{ "node_packages", FIELD_TEXTS, AT(node.packages), NULL, FIELD_KEPT },
	{ "node_options", FIELD_TEXTS, AT(node.options), NULL, FIELD_KEPT },
	ROW(CHOICE, view, "of the workspace", FIELD_OUT | FIELD_KEPT | FIELD_LATER,
		.names = workspace_view_names),
	{ "settings", FIELD_JSON, AT(policy.settings), NULL, FIELD_KEPT | FIELD_LATER },
	{ "sources", FIELD_JSON, AT(policy.sources), NULL, FIELD_KEPT | FIELD_LATER },
	{ "template_settings", FIELD_JSON, AT(policy.template_settings), NULL,
		FIELD_KEPT | FIELD_LATER },
	{ "template_sources", FIELD_JSON, AT(policy.template_sources), NULL,
		FIELD_KEPT | FIELD_LATER },
	{ "automatic", FIELD_BOOLEAN, AT(is_automatic),
		"made by a rollback, of the state that it left", FIELD_OUT | FIELD_KEPT },
	{ "kept", FIELD_BOOLEAN, AT(is_kept), "stays when its workspace is removed",
		FIELD_OUT | FIELD_KEPT },
	ROW(TEXT, content_id, "hash of its topmost layer; null: not computed yet",
		FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE),
};
#undef AT
const struct record snapshot_record = { "Snapshot", NULL, RECORD_ROWS(snapshot_rows) };

/* ---- what is asked for ---- */

const struct field_choice when_busy_choices[] = { { "pause", WHEN_BUSY_PAUSE },
	{ "wait", WHEN_BUSY_WAIT }, { "fail", WHEN_BUSY_FAIL }, { 0 } };
const struct field_choice when_busy_waits[] = { { "wait", WHEN_BUSY_WAIT },
	{ "fail", WHEN_BUSY_FAIL }, { 0 } };

#define WAIT_ROW(type)                                                                             \
	{                                                                                          \
		"timeout", FIELD_DURATION, offsetof(type, timeout_ms),                             \
			"how long to wait; 5m when not given", .least = 1,                         \
							       .most = WORKSPACE_TIME_MOST         \
	}
#define PAUSE_HELP                                                                                 \
	"while commands run: pause them and copy what was changed (the default), wait until "      \
	"they have ended, or fail"

static const struct field snapshot_wanted_rows[] = {
	ROW_OF(snapshot_wanted, TEXT, tag, "names the snapshot; one of a workspace has it",
		.pattern = "^[A-Za-z][A-Za-z0-9._-]{0,127}$", .check = snapshot_check_tag),
	ROW_OF(snapshot_wanted, TEXT, note, NULL, .most = SNAPSHOT_NOTE_MAX),
	ROW_OF(snapshot_wanted, CHOICE, when_busy, PAUSE_HELP, .choices = when_busy_choices),
	WAIT_ROW(struct snapshot_wanted),
};
const struct record snapshot_wanted_record = { "SnapshotWanted", NULL,
	RECORD_ROWS(snapshot_wanted_rows), FIELD_IN };

static const struct field rollback_rows[] = {
	ROW_OF(rollback_wanted, TEXT, snapshot,
		"id, tag or version of a snapshot of this workspace", FIELD_REQUIRED, .least = 1,
		.most = SNAPSHOT_TAG_MAX),
	ROW_OF(rollback_wanted, CHOICE, when_busy,
		"while commands run: wait until they have ended, or fail (the default)",
		.choices = when_busy_waits),
	WAIT_ROW(struct rollback_wanted),
};
const struct record rollback_wanted_record = { "RollbackWanted", NULL, RECORD_ROWS(rollback_rows),
	FIELD_IN };

static const struct field fork_rows[] = {
	ROW_OF(fork_wanted, TEXT, name,
		"of the new workspace; with a count NAME-1, NAME-2 ...; generated when not given",
		.pattern = "^[a-z0-9][a-z0-9-]{0,63}$", .check = workspace_check_name),
	ROW_OF(fork_wanted, INTEGER, count, "1 when not given", .least = 1, .most = FORK_COUNT_MAX),
	ROW_OF(fork_wanted, TEXT, snapshot,
		"id, tag or version of a snapshot; the present state when not given", .least = 1,
		.most = SNAPSHOT_TAG_MAX),
	ROW_OF(fork_wanted, CHOICE, when_busy, PAUSE_HELP, .choices = when_busy_choices),
	WAIT_ROW(struct fork_wanted),
};
const struct record fork_wanted_record = { "ForkWanted", NULL, RECORD_ROWS(fork_rows), FIELD_IN };
