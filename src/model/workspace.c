#include <stddef.h>
#include <string.h>
#include "base/clock.h"
#include "base/str.h"
#include "model/document.h"
#include "model/workspace.h"

#define DAY_MS 86400000u
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

const char *const workspace_state_names[WORKSPACE_STATE_COUNT] = {
	[WORKSPACE_CREATING] = "creating",
	[WORKSPACE_READY] = "ready",
	[WORKSPACE_RUNNING] = "running",
	[WORKSPACE_SUSPENDED] = "suspended",
	[WORKSPACE_FAILED] = "failed",
	[WORKSPACE_DELETING] = "deleting",
};

/* Every sandbox has all of them, or isn't started. */
const char *const workspace_layers_active[] = { "namespaces", "own_root", "capabilities",
	"no_new_privs", "landlock", "seccomp", "limits", NULL };

/* -- names and labels -- */

int workspace_check_name(const char *name, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	static const char hint[] = "1 to 64 of a-z, 0-9 and -, not - first; foreign ids of any "
				   "characters go in the label " WORKSPACE_CONTEXT_LABEL;
	size_t len = strlen(name);
	if (len == 0)
		return fail_hint(err, ERR_INVALID, hint, "a name may not be empty");
	if (len > WORKSPACE_NAME_MAX)
		return fail_hint(err, ERR_INVALID, hint, "the name '%.64s...' is too long", name);
	if (strspn(name, allowed) != len)
		return fail_hint(err, ERR_INVALID, hint, "invalid name '%s'", name);
	if (name[0] == '-')
		return fail_hint(err, ERR_INVALID, hint,
			"invalid name '%s': it begins with '-', as options do", name);
	if (id_is_valid(name))
		return fail(
			err, ERR_INVALID, "'%s' is shaped like an id and can't be a name", name);
	return 0;
}

void workspace_make_name(char out[WORKSPACE_NAME_MAX + 1])
{
	/* 32 each: one character of an id picks a word. */
	static const char first[32][8] = { "amber", "bold", "brave", "bright", "brisk", "calm",
		"clear", "clever", "cosy", "deft", "eager", "fair", "fond", "gentle", "glad",
		"golden", "hardy", "keen", "kind", "lively", "lucid", "mellow", "merry", "noble",
		"quick", "quiet", "ready", "spry", "sunny", "tidy", "vivid", "warm" };
	static const char second[32][8] = { "alcove", "atlas", "bench", "book", "candle", "chair",
		"codex", "desk", "drawer", "easel", "essay", "folio", "globe", "index", "ink",
		"ladder", "lamp", "ledger", "letter", "map", "margin", "note", "page", "paper",
		"pencil", "quill", "reader", "ribbon", "scroll", "shelf", "stool", "volume" };
	char random[ID_LEN + 1];
	unsigned digits = 0, bits[5];
	id_make(random);
	for (size_t i = 0; i < COUNT(bits); i++)
		bits[i] = random[i] <= '9' ? (unsigned)(random[i] - '0')
					   : (unsigned)(random[i] - 'a') + 10;
	for (size_t i = 2; i < COUNT(bits); i++)
		digits = digits << 5 | bits[i];
	str_format(out, WORKSPACE_NAME_MAX + 1, "%s-%s-%04u", first[bits[0]], second[bits[1]],
		digits % 10000);
}

int workspace_check_label(const char *key, const char *value, struct error *err)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_./-";
	size_t key_len = strlen(key), value_len = strlen(value);
	if (key_len == 0 || key_len > WORKSPACE_LABEL_KEY_MAX || strspn(key, allowed) != key_len ||
		strchr("_./-", key[0]))
		return fail_hint(err, ERR_INVALID,
			"1 to 128 of A-Z, a-z, 0-9 and _./-, the first a letter or a digit",
			"'%.128s' is not the key of a label", key);
	if (value_len > WORKSPACE_LABEL_VALUE_MAX)
		return fail(err, ERR_INVALID,
			"the value of label '%s' has %zu bytes; at most %d are kept", key,
			value_len, WORKSPACE_LABEL_VALUE_MAX);
	if (str_utf8_prefix(value, value_len) != value_len)
		return fail(err, ERR_INVALID, "the value of label '%s' is not UTF-8", key);
	return 0;
}

const char *workspace_label(const struct workspace *w, const char *key)
{
	for (size_t i = 0; i < w->labels.count; i++)
		if (!strcmp(w->labels.items[i].key, key))
			return w->labels.items[i].value;
	return NULL;
}

/* -- limits -- */

#define SIZE_MOST (INT64_MAX / 4) /* as plan/check.c */
#define TIME_MOST (36525ull * DAY_MS)
static const struct limit_field {
	const char *key;
	size_t offset;
	uint64_t fallback;    /* when not given; 0: no limit */
	uint64_t least, most; /* of one that is given */
} limit_fields[] = {
#define LIMIT(name, ...)                                                                           \
	{                                                                                          \
#name, offsetof(struct limits, name), __VA_ARGS__                                  \
	}
	LIMIT(memory_bytes, LIMIT_MEMORY_DEFAULT, LIMIT_MEMORY_LEAST, SIZE_MOST),
	LIMIT(disk_bytes, LIMIT_DISK_DEFAULT, 65536, SIZE_MOST),
	LIMIT(tmp_bytes, 0, 65536, SIZE_MOST),
	LIMIT(pids, LIMIT_PIDS_DEFAULT, 1, 4194304),
	LIMIT(fds, LIMIT_FDS_DEFAULT, 16, 1048576),
	LIMIT(millicpus, 0, 10, 4096000),
	LIMIT(cpu_time_ms, 0, 1, TIME_MOST),
	LIMIT(timeout_ms, 0, 1, TIME_MOST),
	LIMIT(output_bytes, 0, 1, SIZE_MOST),
#undef LIMIT
};

static uint64_t get_limit(const struct limits *limits, const struct limit_field *field)
{
	return *(const uint64_t *)((const char *)limits + field->offset);
}

static void set_limit(struct limits *limits, const struct limit_field *field, uint64_t value)
{
	*(uint64_t *)((char *)limits + field->offset) = value;
}

pair_list workspace_copy_pairs(struct arena *arena, const pair_list *from)
{
	pair_list to = { 0 };
	for (size_t i = 0; i < from->count; i++)
		vec_push(arena, &to,
			(struct text_pair){ arena_text(arena, from->items[i].key),
				arena_text(arena, from->items[i].value) });
	return to;
}

text_list workspace_copy_texts(struct arena *arena, const text_list *from)
{
	text_list to = { 0 };
	for (size_t i = 0; i < from->count; i++)
		vec_push(arena, &to, (const char *)arena_text(arena, from->items[i]));
	vec_push(arena, &to, NULL);
	to.count--;
	return to;
}

int workspace_fill_limits(struct limits *limits, struct error *err)
{
	struct limits filled = *limits;
	for (size_t i = 0; i < COUNT(limit_fields); i++) {
		const struct limit_field *field = &limit_fields[i];
		uint64_t value = get_limit(limits, field);
		if (value && (value < field->least || value > field->most))
			return fail(err, ERR_INVALID, "the limit %s is from %llu to %llu, not %llu",
				field->key, (unsigned long long)field->least,
				(unsigned long long)field->most, (unsigned long long)value);
		if (!value)
			set_limit(&filled, field, field->fallback);
	}
	if (!limits->tmp_bytes)
		filled.tmp_bytes = LIMIT_TMP_DEFAULT(filled.memory_bytes);
	*limits = filled;
	return 0;
}

int workspace_change_limits(struct limits *limits, const struct limits *change, struct error *err)
{
	struct limits next = *change;
	for (size_t i = 0; i < COUNT(limit_fields); i++)
		if (!get_limit(change, &limit_fields[i]))
			set_limit(&next, &limit_fields[i], get_limit(limits, &limit_fields[i]));
	if (change->memory_bytes)
		next.tmp_bytes = change->tmp_bytes;
	if (workspace_fill_limits(&next, err))
		return -1;
	*limits = next;
	return 0;
}

/* -- shown -- */

static void print_time(struct json *j, const char *key, int64_t unix_ms)
{
	char text[32];
	clock_format(text, unix_ms);
	json_text(j, key, unix_ms ? text : NULL);
}

static void print_limits(struct json *j, const struct limits *limits, const char *limiter)
{
	json_object(j, "limits");
	for (size_t i = 0; i < COUNT(limit_fields); i++) {
		uint64_t value = get_limit(limits, &limit_fields[i]);
		bool is_cpus = limit_fields[i].offset == offsetof(struct limits, millicpus);
		const char *key = is_cpus ? "cpus" : limit_fields[i].key;
		if (!value)
			json_null(j, key);
		else if (is_cpus)
			json_real(j, key, (double)value / 1000);
		else
			json_u64(j, key, value);
	}
	json_text(j, "mechanism", limiter);
	json_end(j);
}

void workspace_print(
	struct json *j, const char *key, const struct workspace *w, const struct workspace_now *now)
{
	json_object(j, key);
	json_text(j, "id", w->id);
	json_text(j, "name", w->name);
	json_text(j, "state", workspace_state_names[now->state]);
	json_null(j, "template");
	print_time(j, "created_at", w->created_ms);
	print_time(j, "last_used_at", w->last_used_ms);
	print_time(j, "expires_at", w->expires_ms);
	json_object(j, "labels");
	for (size_t i = 0; i < w->labels.count; i++)
		json_text(j, w->labels.items[i].key, w->labels.items[i].value);
	json_end(j);
	json_text(j, "environment", w->environment);
	print_limits(j, &w->limits, now->limiter);
	json_object(j, "network");
	json_text(j, "mode", "none");
	json_array(j, "allow");
	json_end(j);
	json_end(j);
	json_u64(j, "disk_usage_bytes", w->disk_usage_bytes);
	json_text(j, "disk_limit_mechanism", w->disk_mechanism);
	json_text(j, "isolation", "native");
	json_array(j, "layers_active");
	for (size_t i = 0; workspace_layers_active[i]; i++)
		json_text(j, NULL,
			now->landlock_writes && !strcmp(workspace_layers_active[i], "landlock")
				? "landlock_writes"
				: workspace_layers_active[i]);
	json_end(j);
	json_bool(j, "warm", now->is_warm);
	json_bool(j, "ptrace", w->ptrace);
	json_null(j, "snapshot");
	json_text(j, "error", w->error);
	json_end(j);
}

static void print_seconds(struct json *j, const char *key, int64_t unix_ms)
{
	char text[32];
	clock_format(text, unix_ms);
	char *fraction = strchr(text, '.');
	if (fraction)
		str_copy(fraction, 2, "Z");
	json_text(j, key, text);
}

void workspace_print_context(const struct workspace *w, struct buf *out)
{
	const char *context_id = workspace_label(w, WORKSPACE_CONTEXT_LABEL);
	struct json j;
	json_init(&j, out, true);
	json_object(&j, NULL);
	json_text(&j, "context_id", context_id ? context_id : w->name);
	json_text(&j, "agent", workspace_label(w, "agent"));
	json_text(&j, "namespace", workspace_label(w, "namespace"));
	print_seconds(&j, "created_at", w->created_ms);
	print_seconds(&j, "last_accessed_at", w->last_used_ms);
	if (!w->ttl_ms)
		json_null(&j, "ttl_days");
	else if (w->ttl_ms % DAY_MS)
		json_real(&j, "ttl_days", (double)w->ttl_ms / DAY_MS);
	else
		json_u64(&j, "ttl_days", w->ttl_ms / DAY_MS);
	json_u64(&j, "disk_usage_bytes", w->disk_usage_bytes);
	json_end(&j);
	json_finish(&j);
	buf_char(out, '\n');
}

/* -- for the store -- */

static const struct document_field limits_document[] = {
#define FIELD(name)                                                                                \
	{                                                                                          \
#name, DOCUMENT_COUNT, offsetof(struct limits, name), NULL, NULL                   \
	}
	FIELD(memory_bytes),
	FIELD(disk_bytes),
	FIELD(tmp_bytes),
	FIELD(pids),
	FIELD(fds),
	FIELD(millicpus),
	FIELD(cpu_time_ms),
	FIELD(timeout_ms),
	FIELD(output_bytes),
#undef FIELD
	{ 0 },
};
static const struct document_field workspace_document[] = {
#define FIELD(kind, name, ...)                                                                     \
	{                                                                                          \
#name, kind, offsetof(struct workspace, name), __VA_ARGS__                         \
	}
	FIELD(DOCUMENT_COUNT, ttl_ms, NULL, NULL),
	FIELD(DOCUMENT_COUNT, idle_timeout_ms, NULL, NULL),
	FIELD(DOCUMENT_PAIRS, labels, NULL, NULL),
	FIELD(DOCUMENT_PAIRS, env, NULL, NULL),
	FIELD(DOCUMENT_OBJECT, limits, limits_document, NULL),
	FIELD(DOCUMENT_TEXT, environment, NULL, NULL),
	FIELD(DOCUMENT_TEXT, python, NULL, NULL),
	FIELD(DOCUMENT_TEXT, requirements, NULL, NULL),
	FIELD(DOCUMENT_TEXTS, packages, NULL, NULL),
	FIELD(DOCUMENT_LATER_TEXTS, build_options, NULL, NULL),
	FIELD(DOCUMENT_BOOL, is_context, NULL, NULL),
	FIELD(DOCUMENT_LATER_BOOL, ptrace, NULL, NULL),
	FIELD(DOCUMENT_COUNT, disk_usage_bytes, NULL, NULL),
	FIELD(DOCUMENT_TEXT, disk_mechanism, NULL, NULL),
	FIELD(DOCUMENT_TEXT, error, NULL, NULL),
#undef FIELD
	{ 0 },
};

bool workspace_build_option_is_valid(const char *word)
{
	/* With '=': any value may follow; the build judges it. */
	static const char *const words[] = {
		"--pip=", "--constraint-line=", "--torch-backend=", "--allow-build", "--pre"
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t len = strlen(words[i]);

		if (words[i][len - 1] == '=' ? strncmp(word, words[i], len) == 0
					     : strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

void workspace_print_document(const struct workspace *w, struct buf *out)
{
	document_print(workspace_document, w, out);
}

int workspace_parse_document(
	struct str text, struct arena *arena, struct workspace *w, struct error *err)
{
	struct workspace read = *w;
	if (document_parse(workspace_document, text, arena, &read, err))
		return -1;
	*w = read;
	return 0;
}
