#include "model/nouns/approval.h"

#include "base/str.h"
#include "format/text/base64.h"
#include "model/nouns/workspace.h"
#include "model/records/rows.h"

const char *const approval_state_names[APPROVAL_STATE_COUNT + 1] = { "pending", "approved",
	"denied", "expired", NULL };
static const char *const encodings[] = { "utf-8", "base64", NULL };

/* ---- the record ---- */

static const struct field step_rows[] = {
	{ "subject", FIELD_TEXT, 0, "the command, file or host that was judged" },
	{ "rule", FIELD_TEXT, 0, "that decided; null: none", FIELD_NULLABLE },
	{ "reason", FIELD_TEXT, 0, "why, where no rule decided", FIELD_NULLABLE },
	{ "decision", FIELD_TEXT, 0, "allow, ask or deny" },
};
const struct record policy_step_record = { "PolicyStep", "One step of a judgement.",
	RECORD_ROWS(step_rows), FIELD_OUT };

#define AT(member) offsetof(struct approval, member)
#define SHOWN_KEPT (FIELD_OUT | FIELD_KEPT)
static const struct field approval_rows[] = {
	ROW(ID, id, NULL, FIELD_OUT | FIELD_COLUMN, .head = "ID", .column = 1),
	ROW(ID, workspace, "its id", FIELD_OUT | FIELD_COLUMN),
	ROW(TEXT, workspace_name, NULL, SHOWN_KEPT, .head = "WORKSPACE", .column = 2),
	ROW(TEXT, exec, "id of the exec that waits for it", SHOWN_KEPT),
	ROW(CHOICE, state, NULL, FIELD_OUT | FIELD_COLUMN, .names = approval_state_names,
		.head = "STATE", .column = 3),
	ROW(TEXTS, argv, "the program and its arguments; or command", FIELD_OUT | FIELD_OPTIONAL),
	ROW(TEXTS, argv, NULL, FIELD_KEPT),
	ROW(TEXT, command, "for /bin/sh -c", FIELD_OUT | FIELD_OPTIONAL),
	ROW(TEXT, command, NULL, FIELD_KEPT),
	ROW(TEXT, cwd, "null: the workspace's directory", SHOWN_KEPT | FIELD_NULLABLE),
	ROW(PAIRS, env,
		"the variables that it gets: its own and those of the workspace; null: set, but "
		"hidden, since it looks like a secret",
		SHOWN_KEPT | FIELD_NULLABLE | FIELD_LATER),
	{ "stdin", FIELD_TEXT, AT(input), "all of its stdin; null: empty, or open_stdin",
		SHOWN_KEPT | FIELD_NULLABLE | FIELD_LATER },
	ROW(BOOLEAN, open_stdin, "its stdin is written while it runs", SHOWN_KEPT | FIELD_LATER),
	ROW(BOOLEAN, tty, "it has a terminal", SHOWN_KEPT | FIELD_LATER),
	ROW(CHOICE, encoding,
		"of argv, command, cwd, env and stdin: base64 if one of them isn't UTF-8",
		SHOWN_KEPT, .names = encodings),
	ROW(OBJECTS, trail, "how the policy judged it", FIELD_OUT, .object = &policy_step_record),
	ROW(TEXT, trail, NULL, FIELD_KEPT),
	{ "trail_truncated", FIELD_BOOLEAN, AT(trail_is_cut),
		"steps are left out, those that were allowed first", SHOWN_KEPT },
	ROW(TEXT, requested_by, "the principal that runs it", SHOWN_KEPT, .head = "REQUESTED BY",
		.column = 4),
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "created_ms", .head = "AGE", .column = 5 },
	{ "expires_at", FIELD_TIME, AT(expires_ms), "it is denied then", FIELD_OUT | FIELD_COLUMN,
		.kept = "expires_ms" },
	{ "answered_at", FIELD_TIME, AT(answered_ms), "or when it expired",
		FIELD_OUT | FIELD_COLUMN | FIELD_NULLABLE, .kept = "answered_ms" },
	ROW(TEXT, answered_by, "null: no reviewer has answered", SHOWN_KEPT | FIELD_NULLABLE),
	ROW(TEXT, note, "of the reviewer, or why it has expired", SHOWN_KEPT | FIELD_NULLABLE),
	ROW(TEXTS, rules, "that were added to the policy by the answer", SHOWN_KEPT),
	{ "suggested_rules", FIELD_TEXTS, AT(suggested),
		"that approve with always adds: exactly these", SHOWN_KEPT },
	ROW(TEXT, always_refused, "why there are no such rules; null: there are",
		SHOWN_KEPT | FIELD_NULLABLE),
	ROW(TEXT, spec, NULL, FIELD_KEPT),
	{ "ttl", FIELD_DURATION, AT(ttl_ms), NULL, FIELD_KEPT },
	ROW(INTEGER, began_ms, NULL, FIELD_KEPT),
	ROW(TEXT, boot, NULL, FIELD_KEPT),
};
#undef AT
const struct record approval_record = { "Approval",
	"A question put to a person: may this command run?", RECORD_ROWS(approval_rows) };

static const struct field_choice decisions[] = { { "approve", APPROVAL_APPROVED },
	{ "deny", APPROVAL_DENIED }, { 0 } };
#define AT(member) offsetof(struct approval_answer, member)
static const struct field answer_rows[] = {
	ROW(CHOICE, decision, NULL, FIELD_REQUIRED, .choices = decisions),
	ROW(BOOLEAN, always,
		"with approve: also add rules to the policy of the workspace that allow the same "
		"command from now on; the answer shows them"),
	ROW(TEXT, note, "for the requester", .most = APPROVAL_NOTE_MAX),
};
#undef AT
const struct record approval_answer_record = { "ApprovalAnswer", NULL, RECORD_ROWS(answer_rows),
	FIELD_IN };

/* ---- copies ---- */

/* ---- what is asked ---- */

static bool is_utf8(const char *text)
{
	return !text || str_utf8_prefix(text, strlen(text)) == strlen(text);
}

static bool is_text(const struct exec_spec *spec)
{
	const struct str input = spec->stdin_text;
	if (!is_utf8(spec->cwd) ||
		(input.len && (str_utf8_prefix(input.data, input.len) != input.len ||
				      memchr(input.data, 0, input.len))))
		return false;
	for (size_t i = 0; i < spec->argv.count; i++)
		if (!is_utf8(spec->argv.items[i]))
			return false;
	for (size_t i = 0; i < spec->env.count; i++)
		if (!is_utf8(spec->env.items[i].key) || !is_utf8(spec->env.items[i].value))
			return false;
	return true;
}

static const char *encode_bytes(
	struct arena *arena, enum approval_encoding encoding, struct str bytes)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	if (encoding == APPROVAL_BASE64)
		buf_base64(&out, bytes.data, bytes.len);
	else
		buf_append(&out, bytes.data, bytes.len);
	return arena_bytes(arena, out.len ? out.data : "", out.len);
}

static const char *encode(struct arena *arena, enum approval_encoding encoding, const char *text)
{
	return text ? encode_bytes(arena, encoding, str_from(text)) : NULL;
}

/* A NUL in what was encoded would end another text than the one that was shown. */
static int decode(struct arena *arena, enum approval_encoding encoding, const char *text,
	const char **out, struct error *err)
{
	struct str bytes;
	*out = text;
	if (!text || encoding == APPROVAL_UTF8)
		return 0;
	if (!base64_decode(str_from(text), arena, &bytes) || memchr(bytes.data, 0, bytes.len))
		return fail(err, ERR_CORRUPT, "invalid base64 in a stored command");
	*out = arena_bytes(arena, bytes.data, bytes.len);
	return 0;
}

/* What an exec needs besides its command. */
struct kept_spec {
	pair_list env;
	const char *input; /* stdin in base64, or NULL */
	bool open_stdin, tty;
	uint64_t rows, columns, timeout_ms, cpu_time_ms, output_bytes;
	const char *user;
};
#define AT(member) offsetof(struct kept_spec, member)
static const struct field kept_spec_rows[] = {
	ROW(PAIRS, env),
	{ "stdin", FIELD_TEXT, AT(input) },
	ROW(BOOLEAN, open_stdin),
	ROW(BOOLEAN, tty),
	ROW(INTEGER, rows),
	ROW(INTEGER, columns),
	{ "timeout", FIELD_DURATION, AT(timeout_ms) },
	{ "cpu_time", FIELD_DURATION, AT(cpu_time_ms) },
	{ "output", FIELD_SIZE, AT(output_bytes) },
	ROW(TEXT, user),
};
#undef AT
static const struct record kept_spec_record = { "", NULL, RECORD_ROWS(kept_spec_rows), FIELD_KEPT };

static void print_spec(struct approval *approval, const struct exec_spec *spec, struct arena *arena)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	auto_buf struct buf input = buf_empty(BUF_MAX_DEFAULT);
	struct kept_spec kept = { spec->env, NULL, spec->open_stdin, spec->tty, spec->rows,
		spec->columns, spec->timeout_ms, spec->cpu_time_ms, spec->output_bytes,
		spec->user };
	if (spec->has_stdin_text) {
		buf_base64(&input, spec->stdin_text.data, spec->stdin_text.len);
		kept.input = input.len ? input.data : "";
	}
	record_print_kept(&kept_spec_record, &kept, &text);
	approval->spec = arena_bytes(arena, text.data, text.len);
}

static int check_size(const struct exec_spec *spec, struct error *err)
{
	size_t bytes = spec->cwd ? strlen(spec->cwd) : 0, rest = spec->stdin_text.len;
	for (size_t i = 0; i < spec->argv.count; i++)
		bytes += strlen(spec->argv.items[i]) + 1;
	for (size_t i = 0; i < spec->env.count; i++)
		rest += strlen(spec->env.items[i].key) + strlen(spec->env.items[i].value) + 2;
	if (bytes > APPROVAL_BYTES_MAX || rest > APPROVAL_BYTES_MAX)
		return fail_hint(err, ERR_LIMIT, "put the script into a file of the workspace",
			"a command that needs an approval may have %u KiB, and as much input and "
			"variables",
			APPROVAL_BYTES_MAX >> 10);
	return 0;
}

static pair_list shown_env(
	const struct approval *approval, const struct exec_spec *spec, struct arena *arena)
{
	pair_list shown = workspace_shown_env(arena, &spec->env);
	for (size_t i = 0; i < shown.count; i++) {
		struct text_pair *pair = &shown.items[i];
		pair->key = encode(arena, approval->encoding, pair->key);
		pair->value = encode(arena, approval->encoding, pair->value);
	}
	return shown;
}

int approval_describe(struct approval *approval, const struct exec_spec *spec, bool is_kept,
	struct arena *arena, struct error *err)
{
	if (check_size(spec, err))
		return -1;
	approval->encoding = is_text(spec) ? APPROVAL_UTF8 : APPROVAL_BASE64;
	approval->command = encode(arena, approval->encoding, spec->command);
	approval->cwd = encode(arena, approval->encoding, spec->cwd);
	for (size_t i = 0; !spec->command && i < spec->argv.count; i++)
		vec_push(arena, &approval->argv,
			encode(arena, approval->encoding, spec->argv.items[i]));
	approval->env = shown_env(approval, spec, arena);
	if (spec->has_stdin_text)
		approval->input = encode_bytes(arena, approval->encoding, spec->stdin_text);
	approval->open_stdin = spec->open_stdin;
	approval->tty = spec->tty;
	if (is_kept)
		print_spec(approval, spec, arena);
	return 0;
}

/* argv, or the shell that runs command. */
static int read_argv(const struct approval *approval, struct arena *arena, struct exec_spec *spec,
	struct error *err)
{
	const char *shell[] = { "/bin/sh", "-c", spec->command };
	for (size_t i = 0; spec->command && i < 3; i++)
		vec_push(arena, &spec->argv, shell[i]);
	for (size_t i = 0; !spec->command && i < approval->argv.count; i++) {
		const char *word;
		if (decode(arena, approval->encoding, approval->argv.items[i], &word, err))
			return -1;
		vec_push(arena, &spec->argv, word);
	}
	if (!spec->argv.count)
		return fail(err, ERR_CORRUPT, "approval '%s' has no command", approval->id);
	vec_push(arena, &spec->argv, NULL);
	spec->argv.count--;
	return 0;
}

int approval_read_spec(const struct approval *approval, struct arena *arena, struct exec_spec *spec,
	struct error *err)
{
	struct kept_spec kept = { 0 };
	struct exec_spec read = { .background = true };
	if (!approval->spec)
		return fail(err, ERR_CORRUPT, "approval '%s' has no command to run", approval->id);
	if (record_read_kept(&kept_spec_record, str_from(approval->spec), arena, &kept, err) ||
		decode(arena, approval->encoding, approval->command, &read.command, err) ||
		decode(arena, approval->encoding, approval->cwd, &read.cwd, err) ||
		read_argv(approval, arena, &read, err))
		return error_context(err, "approval '%s'", approval->id);
	if (kept.input && !base64_decode(str_from(kept.input), arena, &read.stdin_text))
		return fail(err, ERR_CORRUPT, "approval '%s': invalid input", approval->id);
	read.has_stdin_text = kept.input != NULL;
	read.id = approval->exec;
	read.env = kept.env;
	read.open_stdin = kept.open_stdin;
	read.tty = kept.tty;
	read.rows = kept.rows;
	read.columns = kept.columns;
	read.timeout_ms = kept.timeout_ms;
	read.cpu_time_ms = kept.cpu_time_ms;
	read.output_bytes = kept.output_bytes;
	read.user = kept.user;
	*spec = read;
	return 0;
}

/* ---- time ---- */

uint64_t approval_left_ms(
	const struct approval *approval, const char *boot, int64_t now_ms, uint64_t monotonic_ms)
{
	uint64_t ttl_ms = approval->ttl_ms;
	bool is_same_boot = approval->boot && boot && boot[0] && !strcmp(approval->boot, boot);
	if (is_same_boot && monotonic_ms >= approval->began_ms) {
		uint64_t age_ms = monotonic_ms - approval->began_ms;
		return age_ms < ttl_ms ? ttl_ms - age_ms : 0;
	}
	if (approval->expires_ms <= now_ms)
		return 0;
	uint64_t left_ms = (uint64_t)(approval->expires_ms - now_ms);
	return left_ms < ttl_ms ? left_ms : ttl_ms;
}

/* ---- for people ---- */

static bool is_plain(const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_@%+=:,./-";
	return word[0] && strspn(word, plain) == strlen(word);
}

/* Letters that have no width, or that turn the direction of the text around them. */
static bool is_hidden(const char *at, size_t len)
{
	const unsigned char *c = (const unsigned char *)at;
	if (len == 2) /* C1; soft hyphen; Arabic letter mark */
		return c[0] == 0xc2 ? c[1] < 0xa0 || c[1] == 0xad : c[0] == 0xd8 && c[1] == 0x9c;
	if (len == 4) /* tags and other supplements */
		return c[0] == 0xf3 && (c[1] & 0xfc) == 0xa0;
	if (len != 3)
		return false;
	unsigned code = (unsigned)(c[0] & 15) << 12 | (unsigned)(c[1] & 63) << 6 | (c[2] & 63);
	return code == 0x180e || (code >= 0x200b && code <= 0x200f) ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
	       code == 0x2800 || code == 0x3164 || (code >= 0xfe00 && code <= 0xfe0f) ||
	       code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb);
}

static bool needs_escapes(const char *word)
{
	for (size_t at = 0, len, all = strlen(word); at < all; at += len) {
		len = str_utf8_char(word + at, all - at);
		if (!len || (unsigned char)word[at] < ' ' || word[at] == 0x7f ||
			is_hidden(word + at, len))
			return true;
	}
	return false;
}

static void print_escaped(const char *word, struct buf *out)
{
	buf_text(out, "$'");
	for (size_t at = 0, len, all = strlen(word); at < all; at += len) {
		len = str_utf8_char(word + at, all - at);
		bool is_shown = len && (unsigned char)word[at] >= ' ' && word[at] != 0x7f &&
				!is_hidden(word + at, len);
		len = len ? len : 1;
		if (word[at] == '\'' || word[at] == '\\')
			buf_printf(out, "\\%c", word[at]);
		else if (word[at] == '\n')
			buf_text(out, "\\n");
		else if (word[at] == '\t')
			buf_text(out, "\\t");
		else if (is_shown)
			buf_append(out, word + at, len);
		else
			for (size_t i = 0; i < len; i++)
				buf_printf(out, "\\x%02x", (unsigned char)word[at + i]);
	}
	buf_char(out, '\'');
}

void approval_print_words(const char *const *words, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_char(out, ' ');
		if (is_plain(words[i])) {
			buf_text(out, words[i]);
		} else if (needs_escapes(words[i])) {
			print_escaped(words[i], out);
		} else {
			buf_char(out, '\'');
			for (const char *c = words[i]; *c; c++)
				*c == '\'' ? buf_text(out, "'\\''") : buf_char(out, *c);
			buf_char(out, '\'');
		}
	}
}
