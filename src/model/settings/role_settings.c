#include "model/settings/role_settings.h"

#include "base/file.h"
#include "model/records/record.h"

#define SETTINGS_MAX ((size_t)4 << 20)

#define ROW(name, kind, ...)                                                                       \
	{                                                                                          \
#name, kind, offsetof(struct role_settings, name), NULL, FIELD_LATER, __VA_ARGS__  \
	}
static const struct field rows[] = {
	ROW(home, FIELD_TEXT),
	ROW(log_is_json, FIELD_BOOLEAN),
	ROW(log_level, FIELD_TEXT),
	ROW(store_url, FIELD_TEXT),
	ROW(is_first, FIELD_BOOLEAN),
	ROW(listeners, FIELD_PAIRS),
	ROW(uids, FIELD_PAIRS),
	ROW(boot, FIELD_TEXT),
	ROW(blob_source, FIELD_TEXT),
	ROW(config_digest, FIELD_TEXT),
	ROW(approval_ttl_ms, FIELD_INTEGER, .most = INT64_MAX),
	ROW(release_after_ms, FIELD_INTEGER, .most = INT64_MAX),
	ROW(captured_bytes, FIELD_INTEGER, .most = INT64_MAX),
	ROW(approvals_self, FIELD_BOOLEAN),
	ROW(has_webhook, FIELD_BOOLEAN),
	ROW(use_snapshots, FIELD_BOOLEAN),
	ROW(auto_repair, FIELD_BOOLEAN),
	ROW(landlock_writes, FIELD_BOOLEAN),
	ROW(archive_on_remove, FIELD_BOOLEAN),
	ROW(archive_on_expiry, FIELD_BOOLEAN),
	ROW(archive_gzip, FIELD_BOOLEAN),
	ROW(serve, FIELD_OBJECT, .object = &serve_settings_record),
	ROW(egress, FIELD_OBJECT, .object = &network_settings_record),
	ROW(tools, FIELD_OBJECT, .object = &tool_settings_record),
	ROW(audit_enabled, FIELD_BOOLEAN),
	ROW(audit_drops, FIELD_BOOLEAN),
	ROW(audit_max_file_bytes, FIELD_INTEGER, .most = INT64_MAX),
	ROW(audit_max_bytes, FIELD_INTEGER, .most = INT64_MAX),
	ROW(blob_url, FIELD_TEXT),
	ROW(blob_endpoint, FIELD_TEXT),
	ROW(blob_region, FIELD_TEXT),
	ROW(webhook, FIELD_TEXT),
	ROW(blob_path_style, FIELD_BOOLEAN),
	ROW(blob_timeout_ms, FIELD_INTEGER, .most = INT64_MAX),
	ROW(webhook_timeout_ms, FIELD_INTEGER, .most = INT64_MAX),
	ROW(template, FIELD_TEXT),
	ROW(package_format, FIELD_TEXT),
	ROW(has_environment, FIELD_BOOLEAN),
};
#undef ROW
static const struct record role_settings_record = { "RoleSettings", NULL, RECORD_ROWS(rows),
	FIELD_KEPT };

const char *role_settings_print(const struct role_settings *settings, struct arena *arena)
{
	auto_buf struct buf out = buf_empty(SETTINGS_MAX);
	record_print_kept(&role_settings_record, settings, &out);
	return arena_bytes(arena, out.data, out.len);
}

int role_settings_read(
	int fd, struct arena *arena, struct role_settings *settings, struct error *err)
{
	struct str text;
	*settings = (struct role_settings){ 0 };
	if (file_read(fd, SETTINGS_MAX, arena, &text))
		return fail_errno(err, "read the settings of a role");
	if (!text.len)
		return fail(err, ERR_INVALID, "this program is started by carrel, never by hand");
	return record_read_kept(&role_settings_record, text, arena, settings, err);
}
