#include "model/nouns/archive.h"

#include <time.h>
#include "format/http/blob_name.h"
#include "model/nouns/template.h"
#include "model/records/rows.h"

static const struct field archive_rows[] = {
	ROW_OF(archive_row, TEXT, name, .column = 1, .head = "ARCHIVE"),
	ROW_OF(archive_row, TEXT, workspace, "the name that it had", .column = 2,
		.head = "WORKSPACE"),
	ROW_OF(archive_row, TEXT, format, "tar.zst or tar.gz"),
	{ "created_at", FIELD_TIME, offsetof(struct archive_row, created_ms), .column = 4,
		.head = "CREATED" },
	{ "size", FIELD_SIZE, offsetof(struct archive_row, size_bytes), .column = 3,
		.head = "SIZE" },
};
const struct record archive_record = { "Archive", "An archived workspace.",
	RECORD_ROWS(archive_rows), FIELD_OUT };

static const struct field export_rows[] = {
	ROW_OF(export_row, TEXT, name, .column = 1, .head = "NAME"),
	{ "created_at", FIELD_TIME, offsetof(struct export_row, created_ms), .column = 3,
		.head = "CREATED" },
	{ "size", FIELD_SIZE, offsetof(struct export_row, size_bytes), .column = 2,
		.head = "SIZE" },
};
const struct record export_record = { "Export", "An exported environment of the blob store.",
	RECORD_ROWS(export_rows), FIELD_OUT };

static const struct {
	enum blob_pack pack;
	const char *name;
} formats[] = { { BLOB_PACK_ZSTD, "tar.zst" }, { BLOB_PACK_GZIP, "tar.gz" } };
#define FORMATS (sizeof formats / sizeof *formats)
#define TIME_FORM "%Y%m%dT%H%M%S"
#define TIME_LEN 20 /* 20261116T095152.123Z */

const char *archive_name_make(
	const char *workspace, int64_t now_ms, enum blob_pack pack, struct arena *arena)
{
	time_t when = (time_t)(now_ms / 1000);
	struct tm tm;
	char text[32] = "";
	if (gmtime_r(&when, &tm))
		strftime(text, sizeof text, TIME_FORM, &tm);
	return arena_printf(arena, "%s-%s.%03dZ.%s", workspace, text, (int)(now_ms % 1000),
		formats[pack == BLOB_PACK_GZIP].name);
}

int archive_name_read(
	const char *name, struct arena *arena, struct archive_row *row, struct error *err)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < FORMATS; i++) {
		size_t suffix = strlen(formats[i].name) + 1;
		struct tm tm = { 0 };
		unsigned ms;
		if (len <= suffix + TIME_LEN + 1 || name[len - suffix] != '.' ||
			strcmp(name + len - suffix + 1, formats[i].name) != 0)
			continue;
		const char *when = name + len - suffix - TIME_LEN, *rest;
		if (when[-1] != '-' || !(rest = strptime(when, TIME_FORM, &tm)) ||
			sscanf(rest, ".%3uZ", &ms) != 1)
			continue;
		const char *key = arena_printf(arena, ARCHIVE_PREFIX "%s", name);
		if (!blob_key_is_valid(key) || strchr(name, '/'))
			break;
		*row = (struct archive_row){ .name = key + sizeof ARCHIVE_PREFIX - 1,
			.workspace = arena_bytes(arena, name, (size_t)(when - 1 - name)),
			.format = formats[i].name,
			.created_ms = (int64_t)timegm(&tm) * 1000 + ms };
		return 0;
	}
	return fail_hint(err, ERR_INVALID, "carrel archive ls lists them",
		"'%s' is not the name of an archive", name);
}

static const struct field restore_rows[] = {
	ROW_OF(restore_wanted, TEXT, name, "of the workspace; the one that it had when not given",
		.pattern = "^[a-z0-9][a-z0-9-]{0,63}$", .check = workspace_check_name),
};
const struct record restore_wanted_record = { "RestoreWanted", NULL, RECORD_ROWS(restore_rows),
	FIELD_IN };

/* ---- the record of an archived workspace ---- */

#define RECORD_VERSION 1
#define RECORD_TEXT_MAX ((size_t)4 << 20)
#define PACKAGES_MAX 500

static int check_length(const char *text, size_t most, const char *field, struct error *err)
{
	return text && strlen(text) > most ? fail(err, ERR_INVALID, "%s is too long", field) : 0;
}

static int check_words(const text_list *words, const char *field, struct error *err)
{
	for (size_t i = 0; i < words->count; i++)
		if (!workspace_build_option_is_valid(words->items[i]))
			return fail(err, ERR_DENIED, "%s has '%.128s'", field, words->items[i]);
	return words->count > PACKAGES_MAX
		       ? fail(err, ERR_INVALID, "%s has more than %d items", field, PACKAGES_MAX)
		       : 0;
}

static int check_packages(const text_list *packages, const char *field, struct error *err)
{
	for (size_t i = 0; i < packages->count; i++)
		if (check_length(packages->items[i], 4096, field, err))
			return -1;
	return packages->count > PACKAGES_MAX
		       ? fail(err, ERR_INVALID, "%s has more than %d items", field, PACKAGES_MAX)
		       : 0;
}

int archive_check_environments(const struct workspace *w, struct error *err)
{
	return check_length(w->environments.of[ENV_KIND_PYTHON], 160, "environment", err) ||
			       check_length(w->environments.of[ENV_KIND_NODE], 160,
				       "node_environment", err) ||
			       check_length(w->python, 4096, "python", err) ||
			       check_length(w->requirements, 1 << 20, "requirements", err) ||
			       check_length(w->node.version, 32, "node_version", err) ||
			       check_length(
				       w->node.package_json, 1 << 20, "node_package_json", err) ||
			       check_length(w->node.lock, 4 << 20, "node_lock", err) ||
			       check_packages(&w->packages, "packages", err) ||
			       check_packages(&w->node.packages, "node_packages", err) ||
			       check_words(&w->build_options, "build_options", err) ||
			       check_words(&w->node.options, "node_options", err)
		       ? -1
		       : 0;
}

int archive_check_policy(const struct workspace_policy *policy, struct error *err)
{
	const char *const settings[] = { policy->settings, policy->template_settings },
			  *const sources[] = { policy->sources, policy->template_sources };
	for (size_t i = 0; i < 2; i++)
		if (check_length(settings[i], WORKSPACE_POLICY_BYTES_MAX, "settings", err) ||
			check_length(sources[i], WORKSPACE_POLICY_BYTES_MAX, "sources", err) ||
			(settings[i] && workspace_check_settings(settings[i], err)) ||
			(sources[i] && workspace_check_sources(sources[i], err)))
			return -1;
	return 0;
}

static int check_workspace(const struct workspace *w, struct error *err)
{
	if (w->ttl_ms > WORKSPACE_TIME_MOST || w->idle_timeout_ms > WORKSPACE_TIME_MOST)
		return fail(err, ERR_INVALID, "ttl or idle_timeout is too long");
	if (w->env.count > WORKSPACE_ENV_MAX)
		return fail(err, ERR_INVALID, "more than %d variables", WORKSPACE_ENV_MAX);
	for (size_t i = 0; i < w->env.count; i++)
		if (workspace_check_variable(w->env.items[i].key, w->env.items[i].value, err))
			return -1;
	if (w->template && template_check_name(w->template, err))
		return -1;
	return archive_check_policy(&w->policy, err) || archive_check_environments(w, err) ? -1 : 0;
}

static void warn_of(struct arena *arena, const text_list *gone, const char *noun, text_list *out)
{
	for (size_t i = 0; i < gone->count; i++)
		vec_push(arena, out,
			(const char *)arena_printf(
				arena, "%s '%s' is not restored", noun, gone->items[i]));
}

/* What names directories, layers and snapshots of the daemon that had it. */
static void forget(struct workspace *w, struct arena *arena)
{
	text_list warnings = { 0 }, labels = { 0 };
	if (w->dir)
		vec_push(arena, &warnings,
			(const char *)arena_printf(
				arena, "the directory '%s' is not restored", w->dir));
	warn_of(arena, &w->mounts, "the mount", &warnings);
	warn_of(arena, &w->attach, "the attached tree", &warnings);
	/* They would be allow rules of this operator's policy, too. */
	if (w->policy.rules.count)
		vec_push(arena, &warnings, "rules that reviewers had added are not restored");
	w->policy.rules = (text_list){ 0 };
	/* An archive doesn't say whose a workspace is. */
	workspace_drop_labels(w, arena, &labels);
	warn_of(arena, &labels, "the label", &warnings);
	w->owner = (struct workspace_owner){ 0 };
	w->warnings = text_list_copy(arena, &warnings);
	w->dir = w->snapshot = w->error = NULL;
	w->mounts = w->attach = w->layers = (text_list){ 0 };
	memset(w->unsettled, 0, sizeof w->unsettled);
	w->snapshot_version = w->disk_usage_bytes = 0;
	w->disk_mechanism = NULL;
}

int archive_workspace_read(const struct json_value *record, struct arena *arena,
	struct workspace *out, struct error *err)
{
	auto_buf struct buf text = buf_empty(RECORD_TEXT_MAX);
	const struct json_value *kept = json_member(record, "workspace");
	struct json j = json_to(&text, false);
	uint64_t version = 0;
	*out = (struct workspace){ 0 };
	if (!json_member_u64(record, "version", &version) || !kept || kept->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID,
			"'carrel.json' in the archive is not that of an "
			"archived workspace");
	if (version != RECORD_VERSION)
		return fail_hint(err, ERR_INVALID, "a newer carrel can restore it, perhaps",
			"'carrel.json' in the archive has version %llu",
			(unsigned long long)version);
	json_copy(&j, NULL, kept);
	json_finish(&j);
	if (record_read_kept(
		    &workspace_record, (struct str){ text.data, text.len }, arena, out, err)) {
		err->code = ERR_INVALID;
		return error_context(err, "'carrel.json' in the archive");
	}
	if (check_workspace(out, err))
		return error_context(err, "'carrel.json' in the archive");
	forget(out, arena);
	return 0;
}
