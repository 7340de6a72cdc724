#include "audit/ocsf.h"

#include <time.h>

#define OCSF_VERSION "1.3.0"
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum class {
	CLASS_FILE = 1001,
	CLASS_PROCESS = 1007,
	CLASS_AUTHENTICATION = 3002,
	CLASS_NETWORK = 4001,
	CLASS_LIFECYCLE = 6002,
	CLASS_API = 6003,
};
enum { STATUS_SUCCESS = 1, STATUS_FAILURE };

/* The first row whose type is the record's, or its beginning up to a dot ("exec."), or its end
 * (".create"), counts. */
static const struct row {
	const char *type;
	enum class class;
	int activity;
	const char *activity_name;
} rows[] = {
	{ "exec.start", CLASS_PROCESS, 1, "Launch" },
	{ "exec.end", CLASS_PROCESS, 2, "Terminate" },
	{ "file.read", CLASS_FILE, 2, "Read" },
	{ "file.write", CLASS_FILE, 3, "Update" },
	{ "file.remove", CLASS_FILE, 4, "Delete" },
	{ "login.", CLASS_AUTHENTICATION, 1, "Logon" },
	{ "egress.refused", CLASS_NETWORK, 5, "Refuse" },
	{ "egress.closed", CLASS_NETWORK, 2, "Close" },
	{ "egress.failed", CLASS_NETWORK, 4, "Fail" },
	{ "egress.limited", CLASS_NETWORK, 4, "Fail" },
	{ "egress.", CLASS_NETWORK, 1, "Open" },
	{ "workspace.install", CLASS_LIFECYCLE, 1, "Install" },
	{ "workspace.uninstall", CLASS_LIFECYCLE, 2, "Remove" },
	{ "daemon.start", CLASS_LIFECYCLE, 3, "Start" },
	{ "daemon.stop", CLASS_LIFECYCLE, 4, "Stop" },
	{ ".create", CLASS_API, 1, "Create" },
	{ ".add", CLASS_API, 1, "Create" },
	{ ".remove", CLASS_API, 4, "Delete" },
	{ ".read", CLASS_API, 2, "Read" },
	{ ".list", CLASS_API, 2, "Read" },
	{ ".get", CLASS_API, 2, "Read" },
	{ "", CLASS_API, 3, "Update" },
};

static const struct row *find_row(const char *type)
{
	size_t len = strlen(type);
	for (size_t i = 0;; i++) {
		const char *wanted = rows[i].type;
		size_t wanted_len = strlen(wanted);
		if (!wanted_len || !strcmp(type, wanted) ||
			(wanted[wanted_len - 1] == '.' && !strncmp(type, wanted, wanted_len)) ||
			(wanted[0] == '.' && len > wanted_len &&
				!strcmp(type + len - wanted_len, wanted)))
			return &rows[i];
	}
}

static const char *ocsf_text_of(
	const struct json_value *value, const char *key, const char *otherwise)
{
	const char *text = json_member_text(value, key);
	return text ? text : otherwise;
}

/* "2026-11-15T04:50:52.123Z" as Unix milliseconds. */
static int64_t time_of(const char *text)
{
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t ms = 0;
	if (!rest)
		return 0;
	for (int i = 1; i <= 3 && *rest == '.' && rest[i] >= '0' && rest[i] <= '9'; i++)
		ms = ms * 10 + rest[i] - '0';
	return (int64_t)timegm(&tm) * 1000 + ms;
}

static void print_metadata(struct json *j, const struct json_value *line)
{
	uint64_t seq = 0;
	json_member_u64(line, "seq", &seq);
	json_object(j, "metadata");
	json_text(j, "version", OCSF_VERSION);
	json_object(j, "product");
	json_text(j, "name", "Carrel");
	json_text(j, "vendor_name", "Carrel");
	json_text(j, "version", CARREL_VERSION);
	json_end(j);
	json_text(j, "log_name", "audit");
	json_u64(j, "sequence", seq);
	json_text(j, "uid", ocsf_text_of(line, "hash", ""));
	json_text(j, "correlation_uid", json_member_text(line, "request_id"));
	json_end(j);
}

static void print_user(struct json *j, const char *key, const char *principal)
{
	json_object(j, key);
	json_text(j, "name", principal);
	json_text(j, "uid", !strncmp(principal, "uid ", 4) ? principal + 4 : principal);
	json_u64(j, "type_id", !strcmp(principal, "system") ? 3 : 1);
	json_end(j);
}

static void print_process(struct json *j, const struct json_value *data)
{
	const struct json_value *argv = json_member(data, "argv");
	json_object(j, "process");
	json_text(j, "uid", json_member_text(data, "exec"));
	if (argv && argv->kind == JSON_ARRAY) {
		auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
		for (const struct json_value *word = argv->first; word; word = word->next) {
			buf_text(&text, text.len ? " " : "");
			buf_append(&text, word->string.data, word->string.len);
		}
		json_text(j, "name", argv->first ? argv->first->string.data : "");
		json_text(j, "cmd_line", text.len ? text.data : "");
	}
	json_text(j, "working_directory", json_member_text(data, "cwd"));
	json_end(j);
}

static void print_file(struct json *j, const struct json_value *data)
{
	const char *path = ocsf_text_of(data, "path", ""), *name = strrchr(path, '/');
	uint64_t size;
	json_object(j, "file");
	json_text(j, "name", name ? name + 1 : path);
	json_text(j, "path", path);
	json_u64(j, "type_id", 1);
	if (json_member_u64(data, "bytes", &size))
		json_u64(j, "size", size);
	json_end(j);
}

static void print_endpoint(struct json *j, const struct json_value *data)
{
	uint64_t port;
	const char *host = json_member_text(data, "host");
	json_object(j, "dst_endpoint");
	json_text(j, "hostname", host ? host : ocsf_text_of(data, "target", ""));
	json_text(j, "ip", json_member_text(data, "address"));
	if (json_member_u64(data, "port", &port))
		json_u64(j, "port", port);
	json_end(j);
}

/* The members that a class requires. */
static void print_class(struct json *j, const struct row *row, const struct json_value *line,
	const char *type, const char *host)
{
	const struct json_value *data = json_member(line, "data");
	const char *principal = ocsf_text_of(line, "principal", "unknown");
	uint64_t code;
	switch (row->class) {
	case CLASS_PROCESS:
		print_process(j, data);
		if (json_member_u64(data, "exit_code", &code))
			json_u64(j, "exit_code", code);
		break;
	case CLASS_FILE:
		print_file(j, data);
		break;
	case CLASS_NETWORK:
		print_endpoint(j, data);
		break;
	case CLASS_AUTHENTICATION:
		print_user(j, "user", principal);
		json_object(j, "service");
		json_text(j, "name", "carrel");
		json_end(j);
		break;
	case CLASS_LIFECYCLE:
		json_object(j, "app");
		json_text(j, "name", strncmp(type, "daemon.", 7) ? "packages" : "carrel");
		json_text(j, "vendor_name", "Carrel");
		json_end(j);
		break;
	case CLASS_API:
		json_object(j, "api");
		json_text(j, "operation", type);
		json_object(j, "service");
		json_text(j, "name", "carrel");
		json_end(j);
		json_end(j);
		json_object(j, "src_endpoint");
		json_text(j, "hostname", host);
		json_end(j);
		break;
	}
}

static bool has_failed(const struct json_value *line, const char *type)
{
	const struct json_value *error = json_member(json_member(line, "data"), "error");
	size_t len = strlen(type);
	return (error && error->kind != JSON_NULL) ||
	       (len > 8 && !strcmp(type + len - 8, ".refused"));
}

void ocsf_print(struct json *j, const struct json_value *line, const char *host)
{
	const char *type = ocsf_text_of(line, "type", "unknown");
	const char *workspace = json_member_text(line, "workspace");
	const struct row *row = find_row(type);
	bool is_failure = has_failed(line, type);
	json_object(j, NULL);
	json_u64(j, "category_uid", (uint64_t)row->class / 1000);
	json_u64(j, "class_uid", (uint64_t)row->class);
	json_u64(j, "activity_id", (uint64_t)row->activity);
	json_text(j, "activity_name", row->activity_name);
	json_u64(j, "type_uid", (uint64_t)row->class * 100 + (uint64_t)row->activity);
	json_u64(j, "severity_id", is_failure ? 3 : 1);
	json_u64(j, "status_id", is_failure ? STATUS_FAILURE : STATUS_SUCCESS);
	json_i64(j, "time", time_of(ocsf_text_of(line, "time", "")));
	print_metadata(j, line);
	json_object(j, "actor");
	print_user(j, "user", ocsf_text_of(line, "principal", "unknown"));
	json_end(j);
	json_object(j, "device");
	json_text(j, "hostname", host);
	json_u64(j, "type_id", 1);
	json_end(j);
	print_class(j, row, line, type, host);
	if (workspace) {
		json_array(j, "resources");
		json_object(j, NULL);
		json_text(j, "type", "workspace");
		json_text(j, "uid", workspace);
		json_text(j, "name", json_member_text(line, "workspace_name"));
		json_end(j);
		json_end(j);
	}
	json_object(j, "unmapped");
	json_text(j, "type", type);
	json_text(j, "door", json_member_text(line, "door"));
	if (json_member(line, "data"))
		json_copy(j, "data", json_member(line, "data"));
	json_end(j);
	json_end(j);
}
