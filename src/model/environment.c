#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/path.h"
#include "format/json.h"
#include "format/json_read.h"
#include "model/environment.h"

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

/* -- meta.json, out -- */

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

void env_meta_print(const struct env_meta *meta, struct buf *out)
{
	char use[ENV_META_USE_LEN + 1];

	env_meta_print_use(meta->last_used_at, meta->use_count, use);
	auto_buf struct buf rest = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&rest, true);
	json_object(&j, NULL);
	json_text(&j, "package_id", meta->package_id);
	json_text(&j, "requirements_sha256", meta->requirements_sha256);
	json_text(&j, "created_at", meta->created_at);
	json_text(&j, "python_version", meta->python_version);
	json_object(&j, "installed_packages");
	for (size_t i = 0; i < meta->packages.count; i++)
		json_text(&j, meta->packages.items[i].name, meta->packages.items[i].version);
	json_end(&j);
	json_u64(&j, "size", meta->size_bytes);
	json_text(&j, "name", meta->name);
	json_text(&j, "python", meta->python);
	json_text(&j, "python_prefix", meta->python_prefix);
	json_text(&j, "fingerprint", meta->fingerprint);
	json_bool(&j, "system_site_packages", meta->system_site_packages);
	if (meta->has_notes)
		json_bool(&j, "has_notes", true);
	json_real(&j, "build_seconds", meta->build_seconds);
	json_array(&j, "layers");
	for (size_t i = 0; i < meta->layers.count; i++)
		json_text(&j, NULL, meta->layers.items[i]);
	json_end(&j);
	json_array(&j, "editables");
	for (size_t i = 0; i < meta->editables.count; i++)
		json_text(&j, NULL, meta->editables.items[i].path);
	json_end(&j);
	json_array(&j, "indexes");
	for (size_t i = 0; i < meta->indexes.count; i++)
		json_text(&j, NULL, meta->indexes.items[i]);
	json_end(&j);
	json_end(&j);
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

/* -- meta.json, in -- */

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

static bool is_any(const char *text)
{
	return true;
}

static const struct text_field {
	const char *key;
	size_t offset; /* of its const char * in struct env_meta */
	bool (*is_valid)(const char *text);
	bool may_be_null;
} text_fields[] = {
	{ "last_used_at", offsetof(struct env_meta, last_used_at), is_time, false },
	{ "package_id", offsetof(struct env_meta, package_id), env_package_id_is_valid, false },
	{ "requirements_sha256", offsetof(struct env_meta, requirements_sha256), is_requirements,
		false },
	{ "created_at", offsetof(struct env_meta, created_at), is_time, false },
	{ "python_version", offsetof(struct env_meta, python_version), is_version, false },
	{ "name", offsetof(struct env_meta, name), env_name_is_valid, false },
	{ "python", offsetof(struct env_meta, python), path_is_absolute, false },
	{ "python_prefix", offsetof(struct env_meta, python_prefix), path_is_absolute, true },
	{ "fingerprint", offsetof(struct env_meta, fingerprint), is_any, false },
};

static int fail_field(struct error *err, const char *key)
{
	return fail(err, ERR_CORRUPT, "field '%s' is missing or wrong", key);
}

static int read_texts(const struct json_value *object, struct env_meta *meta, struct error *err)
{
	for (size_t i = 0; i < sizeof text_fields / sizeof *text_fields; i++) {
		const struct text_field *field = &text_fields[i];
		const struct json_value *v = json_member(object, field->key);
		const char *text = json_member_text(object, field->key);

		if (v && v->kind == JSON_NULL && field->may_be_null)
			continue;
		if (!text || !field->is_valid(text))
			return fail_field(err, field->key);
		memcpy((char *)meta + field->offset, &text, sizeof text);
	}
	return 0;
}

/* The text of an item, or NULL when it has none or isn't valid. */
static const char *item_text(const struct json_value *v, bool (*is_valid)(const char *text))
{
	if (v->kind != JSON_STRING || memchr(v->string.data, '\0', v->string.len))
		return NULL;
	return is_valid(v->string.data) ? v->string.data : NULL;
}

static int read_packages(
	const struct json_value *object, struct arena *arena, struct env_meta *meta)
{
	const struct json_value *v = json_member(object, "installed_packages");

	if (!v || v->kind != JSON_OBJECT)
		return -1;
	for (const struct json_value *m = v->first; m; m = m->next) {
		struct env_package package = { m->key.data, item_text(m, is_any) };

		if (m->key.len == 0 || strlen(m->key.data) != m->key.len || !package.version)
			return -1;
		vec_push(arena, &meta->packages, package);
	}
	return 0;
}

static int read_list(const struct json_value *object, const char *key,
	bool (*is_valid)(const char *text), struct arena *arena, text_list *list, struct error *err)
{
	const struct json_value *v = json_member(object, key);

	if (!v || v->kind != JSON_ARRAY)
		return fail_field(err, key);
	for (const struct json_value *item = v->first; item; item = item->next) {
		const char *text = item_text(item, is_valid);

		if (!text)
			return fail_field(err, key);
		vec_push(arena, list, text);
	}
	return 0;
}

static int read_lists(const struct json_value *object, struct arena *arena, struct env_meta *meta,
	struct error *err)
{
	text_list paths = { 0 };

	if (read_packages(object, arena, meta) < 0)
		return fail_field(err, "installed_packages");
	if (read_list(object, "layers", is_sha256, arena, &meta->layers, err) < 0 ||
		read_list(object, "editables", path_is_absolute, arena, &paths, err) < 0 ||
		read_list(object, "indexes", is_any, arena, &meta->indexes, err) < 0)
		return -1;
	for (size_t i = 0; i < paths.count; i++)
		vec_push(arena, &meta->editables, (struct env_editable){ paths.items[i] });
	return 0;
}

static int read_others(const struct json_value *object, struct env_meta *meta, struct error *err)
{
	const struct json_value *site = json_member(object, "system_site_packages");
	const struct json_value *notes = json_member(object, "has_notes");
	const struct json_value *seconds = json_member(object, "build_seconds");

	if (!json_member_u64(object, "use_count", &meta->use_count) ||
		meta->use_count > USE_COUNT_MOST)
		return fail_field(err, "use_count");
	if (!json_member_u64(object, "size", &meta->size_bytes))
		return fail_field(err, "size");
	if (!site || site->kind != JSON_BOOL)
		return fail_field(err, "system_site_packages");
	meta->system_site_packages = site->boolean;
	if (notes && notes->kind != JSON_BOOL)
		return fail_field(err, "has_notes");
	meta->has_notes = notes && notes->boolean;
	if (!seconds || seconds->kind != JSON_NUMBER || seconds->number < 0)
		return fail_field(err, "build_seconds");
	meta->build_seconds = seconds->number;
	return 0;
}

int env_meta_parse(struct str text, struct arena *arena, struct env_meta *meta, struct error *err)
{
	struct env_meta result = { 0 };
	struct json_value *object;

	if (json_read(text, arena, &object, err) < 0) {
		/* Whatever it says, it isn't what was written. */
		if (err)
			err->code = ERR_CORRUPT;
		return -1;
	}
	if (object->kind != JSON_OBJECT)
		return fail(err, ERR_CORRUPT, "not a JSON object");
	if (read_texts(object, &result, err) < 0 || read_others(object, &result, err) < 0 ||
		read_lists(object, arena, &result, err) < 0)
		return -1;
	*meta = result;
	return 0;
}
