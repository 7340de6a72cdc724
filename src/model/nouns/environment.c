#include <ctype.h>
#include "base/path.h"
#include "model/nouns/environment.h"
#include "model/records/record.h"
#include "model/records/rows.h"

#define PACKAGE_ID_MAX 100
#define SHA256_HEX_LEN 64
#define SHORT_HASH_LEN 7
#define USE_COUNT_MOST 999999999999999u /* what the field has room for */

/* -- names -- */

static bool is_name(const char *text, size_t most)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789@._-";
	size_t len = strspn(text, allowed);
	return len > 0 && len <= most && text[len] == '\0' && text[0] != '.' && text[0] != '-';
}

bool env_package_id_is_valid(const char *text)
{
	return is_name(text, PACKAGE_ID_MAX);
}

bool env_name_is_valid(const char *text)
{
	return is_name(text, ENV_NAME_MAX);
}

const char *env_name_make(
	struct arena *arena, const char *package_id, const char *sha256, const char *minor)
{
	return arena_printf(arena, "%s_%.*s%s%s", package_id, SHORT_HASH_LEN,
		sha256 ? sha256 : ENV_NO_REQUIREMENTS, minor ? "-py" : "", minor ? minor : "");
}

/* -- times -- */

/* The decimal number of `len` digits at text, or -1. */
static int digits(const char *text, int len)
{
	int value = 0;
	for (int i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = 10 * value + (text[i] - '0');
	}
	return value;
}

static int days_in(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return days[month - 1] + (month == 2 && is_leap);
}

bool env_time_parse(const char *text, int64_t *unix_ms)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ";
	if (strlen(text) != sizeof shape - 1)
		return false;
	for (size_t i = 0; shape[i]; i++) {
		if (shape[i] == 'd' ? digits(text + i, 1) < 0 : text[i] != shape[i])
			return false;
	}
	int year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
	int hour = digits(text + 11, 2), minute = digits(text + 14, 2),
	    second = digits(text + 17, 2);
	if (month < 1 || month > 12 || day < 1 || day > days_in(year, month) || hour > 23 ||
		minute > 59 || second > 59)
		return false;
	/* Years counted from March: the leap day is the last of its year (see clock_format). */
	int64_t shifted = year - (month <= 2) + 400, month_from_march = (month + 9) % 12;
	int64_t days = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 +
		       (153 * month_from_march + 2) / 5 + day - 1 - 146097 - 719468;
	*unix_ms =
		((days * 24 + hour) * 60 + minute) * 60000 + second * 1000 + digits(text + 20, 3);
	return true;
}

/* -- uses -- */

void env_meta_print_use(
	const char *last_used_at, uint64_t use_count, char out[ENV_META_USE_LEN + 1])
{
	int64_t unix_ms;
	/* A time of another length would move everything behind it. */
	if (!env_time_parse(last_used_at, &unix_ms))
		abort();
	if (use_count > USE_COUNT_MOST)
		use_count = USE_COUNT_MOST;
	int len = snprintf(out, ENV_META_USE_LEN + 1,
		"{\n  \"last_used_at\": \"%s\",\n  \"use_count\": %16llu,", last_used_at,
		(unsigned long long)use_count);
	if (len != ENV_META_USE_LEN)
		abort();
}

/* -- meta.json -- */

static bool is_time(const char *text)
{
	int64_t unix_ms;
	return env_time_parse(text, &unix_ms);
}

static bool is_sha256(const char *text)
{
	return strspn(text, "0123456789abcdef") == SHA256_HEX_LEN && text[SHA256_HEX_LEN] == '\0';
}

static bool is_requirements(const char *text)
{
	return is_sha256(text) || strcmp(text, ENV_NO_REQUIREMENTS) == 0;
}

static bool is_version(const char *text)
{
	return isdigit((unsigned char)text[0]) && is_name(text, 32);
}

static bool is_kind(const char *text)
{
	return env_kind_row_find(text) != NULL;
}

static bool is_runtime(const char *text)
{
	return strcmp(text, "bun") == 0 || strcmp(text, "npm") == 0;
}

#define AT(member) offsetof(struct env_meta, member)
#define USE_ROWS 2 /* which env_meta_print_use prints */
static const struct field rows[] = {
	ROW(TEXT, last_used_at, .is_valid = is_time),
	ROW(INTEGER, use_count, .most = USE_COUNT_MOST),
	ROW(TEXT, package_id, .is_valid = env_package_id_is_valid),
	ROW(TEXT, requirements_sha256, .is_valid = is_requirements),
	ROW(TEXT, created_at, .is_valid = is_time),
	ROW(TEXT, kind, NULL, FIELD_OPTIONAL, .is_valid = is_kind),
	ROW(TEXT, python_version, NULL, FIELD_OPTIONAL, .is_valid = is_version),
	ROW(TEXT, node_version, NULL, FIELD_OPTIONAL, .is_valid = is_version),
	{ "installed_packages", FIELD_PAIRS, AT(packages) },
	{ "size", FIELD_INTEGER, AT(size_bytes) },
	ROW(TEXT, name, .is_valid = env_name_is_valid),
	ROW(TEXT, python, NULL, FIELD_OPTIONAL, .is_valid = path_is_absolute),
	ROW(TEXT, python_prefix, NULL, FIELD_NULLABLE, .is_valid = path_is_absolute),
	ROW(TEXT, node, NULL, FIELD_OPTIONAL, .is_valid = path_is_absolute),
	ROW(TEXT, runtime, NULL, FIELD_OPTIONAL, .is_valid = is_runtime),
	ROW(BOOLEAN, allow_scripts, NULL, FIELD_OPTIONAL),
	ROW(PAIRS, tools, NULL, FIELD_OPTIONAL),
	ROW(TEXT, fingerprint),
	ROW(BOOLEAN, system_site_packages),
	ROW(BOOLEAN, has_notes, NULL, FIELD_OPTIONAL),
	ROW(REAL, build_seconds),
	ROW(TEXTS, layers, .is_valid = is_sha256),
	ROW(TEXTS, editables, .is_valid = path_is_absolute),
	ROW(TEXTS, indexes),
};
static const struct record meta_record = { "Meta", NULL, RECORD_ROWS(rows), FIELD_OUT };
static const struct record meta_rest = { "Meta", NULL, rows + USE_ROWS,
	sizeof rows / sizeof *rows - USE_ROWS, FIELD_OUT };

/* -- kinds -- */

const struct env_kind_row env_kind_rows[ENV_KINDS] = {
	[ENV_KIND_PYTHON] = { "python", "pip", { "python_version", "python" }, false, AT(python) },
	[ENV_KIND_NODE] = { "node", "npm", { "node_version", "runtime" }, true, AT(node) },
};

const struct env_kind_row *env_kind_row_find(const char *name)
{
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (strcmp(env_kind_rows[i].name, name) == 0)
			return &env_kind_rows[i];
	return NULL;
}

void environment_names_copy(
	struct arena *arena, const struct environment_names *from, struct environment_names *to)
{
	for (size_t i = 0; i < ENV_KINDS; i++)
		to->of[i] = arena_text(arena, from->of[i]);
}

bool environment_names_are_same(
	const struct environment_names *a, const struct environment_names *b)
{
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (a->of[i] && b->of[i] ? strcmp(a->of[i], b->of[i]) != 0 : a->of[i] != b->of[i])
			return false;
	return true;
}

const struct env_kind_row *env_kind_row_of(const struct env_meta *meta)
{
	const struct env_kind_row *found = meta->kind ? env_kind_row_find(meta->kind) : NULL;
	return found ? found : env_kind_rows;
}

const char *env_meta_interpreter(const struct env_meta *meta)
{
	const char *path;
	memcpy(&path, (const char *)meta + env_kind_row_of(meta)->interpreter, sizeof path);
	return path;
}

void env_meta_set_interpreter(struct env_meta *meta, const char *path)
{
	memcpy((char *)meta + env_kind_row_of(meta)->interpreter, &path, sizeof path);
}

/* -- meta.json -- */

static bool has_text(const struct env_meta *meta, const char *field)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].name, field) == 0) {
			const char *text;
			memcpy(&text, (const char *)meta + rows[i].offset, sizeof text);
			return text != NULL;
		}
	return false;
}

const char *env_package_version(const pair_list *packages, const char *name)
{
	for (size_t i = 0; packages && i < packages->count; i++)
		if (!strcmp(packages->items[i].key, name))
			return packages->items[i].value;
	return NULL;
}

const char *env_meta_layer(const struct env_meta *meta, size_t index)
{
	size_t own = meta->layers.count;
	return index < own ? meta->layers.items[index] : meta->tools.items[index - own].value;
}

void env_meta_print(const struct env_meta *meta, struct buf *out)
{
	char use[ENV_META_USE_LEN + 1];
	auto_buf struct buf rest = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&rest, true);
	env_meta_print_use(meta->last_used_at, meta->use_count, use);
	record_print(&j, NULL, &meta_rest, meta);
	json_finish(&j);
	if (rest.overflow) {
		out->overflow = true;
		return;
	}
	/* One object from two: the second one's brace is the first one's comma. */
	buf_text(out, use);
	buf_text(out, rest.data + 1);
	buf_char(out, '\n');
}

int env_meta_parse(struct str text, struct arena *arena, struct env_meta *meta, struct error *err)
{
	struct env_meta result = { 0 };
	if (record_read_shown(&meta_record, text, arena, &result, err))
		return -1;
	for (const char *const *needed = env_kind_row_of(&result)->needed; *needed; needed++)
		if (!has_text(&result, *needed))
			return fail(err, ERR_CORRUPT, "field '%s' is missing or wrong", *needed);
	for (size_t i = 0; i < result.tools.count; i++)
		if (!is_sha256(result.tools.items[i].value))
			return fail(err, ERR_CORRUPT, "'tools' has an invalid layer id");
	*meta = result;
	return 0;
}
