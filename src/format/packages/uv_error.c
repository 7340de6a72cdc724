#include "format/packages/uv_error.h"
#include "base/buf.h"
#include "format/packages/requirements.h"

#define TEXT_MAX ((size_t)16 << 10)
#define PACKAGE_MAX 128
#define MESSAGE_MAX 480

const char *const build_failure_names[BUILD_FAILURE_COUNT] = {
	[BUILD_NOT_FOUND] = "not_found",
	[BUILD_VERSION_NOT_FOUND] = "version_not_found",
	[BUILD_CONFLICT] = "conflict",
	[BUILD_HASH_MISMATCH] = "hash_mismatch",
	[BUILD_NETWORK] = "network",
	[BUILD_TIMEOUT] = "timeout",
	[BUILD_DISK_FULL] = "disk_full",
	[BUILD_INVALID] = "invalid",
	[BUILD_DENIED] = "denied",
	[BUILD_FAILED] = "failed",
	[BUILD_CANCELED] = "canceled",
};

/* Where the package stands, seen from the phrase. */
enum where { ELSEWHERE, BEFORE, AFTER };

struct row {
	const char *phrase;
	enum build_failure failure;
	enum where where;
	const char *message; /* @ is the package, $ what uv said; NULL: "uv failed: $" */
	const char *suggestion;
};

#define TRY_LATER "check the connection and the index address, and try again"
#define OTHER_VERSION "ask for another version of it, or leave the version open"
#define OTHER_PYTHON "choose it with --python, or ask for another version"
#define BROKEN "ask for another version of it, and tell its publisher"
#define WITH_BUILD                                                                                 \
	"--allow-build builds it from its source in a sandbox; or ask for a version with wheels"
#define CREDENTIALS "give the index address with user and password (--index), or ask its operator"
#define NO_WHEEL "@ has no wheel for this Python, and building is not allowed"
#define NO_SPACE "no space is left on the disk for @"
#define PLATFORMS " on the following platform"
/* The first phrase that is in the text counts. A phrase whose text may contain words of others (the
 * reason why a version was yanked) comes first, so that these words decide nothing. */
static const struct row rows[] = {
	{ "The build backend returned an error", BUILD_FAILED, ELSEWHERE, "the build of @ failed",
		BROKEN },
	{ " was yanked", BUILD_VERSION_NOT_FOUND, BEFORE, NULL, OTHER_VERSION },
	{ "No space left on device", BUILD_DISK_FULL, ELSEWHERE, NO_SPACE,
		"free some space (carrel env prune)" },
	{ "Disk quota exceeded", BUILD_DISK_FULL, ELSEWHERE, NO_SPACE,
		"free some space (carrel env prune)" },
	/* The names of a wheel's files follow: its publisher chose them. */
	{ "Failed to install: ", BUILD_FAILED, ELSEWHERE, NULL, BROKEN },
	{ "Hash mismatch for ", BUILD_HASH_MISMATCH, AFTER, "the file of @ does not match its hash",
		"don't install it: compare the hash with the publisher's, then correct the "
		"requirement" },
	{ "HTTP status client error (404", BUILD_NOT_FOUND, ELSEWHERE, NULL, OTHER_VERSION },
	{ "HTTP status client error (429", BUILD_NETWORK, ELSEWHERE, NULL, "try again later" },
	{ "HTTP status client error (", BUILD_DENIED, ELSEWHERE, NULL, CREDENTIALS },
	{ "lack of valid authentication credentials", BUILD_DENIED, ELSEWHERE,
		"the index wants credentials for @ (401)", CREDENTIALS },
	{ "returned a 403 Forbidden error", BUILD_DENIED, ELSEWHERE, "the index refuses @ (403)",
		CREDENTIALS },
	{ "invalid peer certificate", BUILD_NETWORK, ELSEWHERE, NULL,
		"set SSL_CERT_FILE to your authority's certificates, or --trusted-host" },
	{ "Failed to fetch: ", BUILD_NETWORK, ELSEWHERE, NULL, TRY_LATER },
	{ "error sending request", BUILD_NETWORK, ELSEWHERE, NULL, TRY_LATER },
	{ "error decoding response body", BUILD_NETWORK, ELSEWHERE, NULL, TRY_LATER },
	{ "Unsupported `Content-Type`", BUILD_NETWORK, ELSEWHERE, NULL, "check the index address" },
	{ "unexpected JSON from", BUILD_NETWORK, ELSEWHERE, NULL, TRY_LATER },
	{ "the network was disabled", BUILD_NETWORK, ELSEWHERE, NULL, TRY_LATER },
	{ "Wheels are required for ", BUILD_DENIED, AFTER, NO_WHEEL, WITH_BUILD },
	{ " has no usable wheels", BUILD_DENIED, BEFORE, NO_WHEEL, WITH_BUILD },
	{ " requires Python ", BUILD_VERSION_NOT_FOUND, BEFORE, NULL, OTHER_PYTHON },
	{ " depends on Python", BUILD_VERSION_NOT_FOUND, BEFORE, NULL, OTHER_PYTHON },
	{ PLATFORMS, BUILD_VERSION_NOT_FOUND, ELSEWHERE, "@ has wheels for $",
		"leave the field out here, e.g. with a marker (; sys_platform == ...)" },
	{ " has no wheels with a matching", BUILD_VERSION_NOT_FOUND, BEFORE,
		"@ has no wheel for this platform and Python", OTHER_PYTHON },
	{ " was not found in the ", BUILD_NOT_FOUND, BEFORE, "there is no package '@' in the index",
		"check how it is spelled, or name the index that has it (env build --extra-index, "
		"or config.yaml)" },
	{ " has an invalid package format", BUILD_FAILED, BEFORE, "the wheel of @ is broken",
		BROKEN },
	{ "there is no version of ", BUILD_VERSION_NOT_FOUND, AFTER,
		"there is no version @ in the index", OTHER_VERSION },
	{ "does not match given name ", BUILD_FAILED, AFTER, NULL, BROKEN },
	{ "Failed to extract archive", BUILD_FAILED, ELSEWHERE, NULL, BROKEN },
	{ "Couldn't parse requirement", BUILD_INVALID, ELSEWHERE, NULL, "correct the requirement" },
	{ "Failed to parse", BUILD_INVALID, ELSEWHERE, NULL, "correct the requirement" },
};

/* From its first "error:" line on, warnings before it gone; one line, one blank between words, no
 * control characters. */
static struct str flatten(struct str text, struct arena *arena)
{
	char *out;
	size_t len = 0;
	for (struct str rest = text, line; str_next(&rest, '\n', &line);) {
		if (str_starts_with(line, "error:")) {
			text = (struct str){ line.data,
				(size_t)(text.data + text.len - line.data) };
			break;
		}
	}
	if (text.len > TEXT_MAX)
		text.len = TEXT_MAX;
	out = arena_alloc(arena, text.len + 1);
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		if (c > 0x20 && c != 0x7f)
			out[len++] = (char)c;
		else if (len > 0 && out[len - 1] != ' ')
			out[len++] = ' ';
	}
	return str_trim((struct str){ out, len });
}

static const char *uv_error_find(struct str text, const char *phrase)
{
	return text.len > 0 ? memmem(text.data, text.len, phrase, strlen(phrase)) : NULL;
}

static struct str from(struct str text, const char *at)
{
	return (struct str){ at, (size_t)(text.data + text.len - at) };
}

/* The text that follows `phrase`; empty when it isn't there. */
static struct str after(struct str text, const char *phrase)
{
	const char *at = uv_error_find(text, phrase);
	return at ? from(text, at + strlen(phrase)) : STR("");
}

/* The text up to `phrase`, or all of it. */
static struct str until(struct str text, const char *phrase)
{
	const char *at = uv_error_find(text, phrase);
	return at ? (struct str){ text.data, (size_t)(at - text.data) } : text;
}

/* The word at the beginning, or what is in backticks there, without punctuation around it. */
static struct str first_word(struct str text)
{
	struct str word, rest;
	if (str_starts_with(text, "`"))
		str_cut((struct str){ text.data + 1, text.len - 1 }, '`', &word, &rest);
	else
		str_cut(text, ' ', &word, &rest);
	if (str_starts_with(word, "("))
		word = (struct str){ word.data + 1, word.len - 1 };
	while (word.len > 0 && strchr("`),.;:", word.data[word.len - 1]))
		word.len--;
	return word;
}

/* The word that ends before `at`. */
static struct str last_word(struct str text, const char *at)
{
	const char *start = at;
	while (start > text.data && start[-1] != ' ')
		start--;
	return (struct str){ start, (size_t)(at - start) };
}

static struct str name_of(struct str package)
{
	size_t len = 0;
	while (len < package.len && !strchr("!<=>[~*,+", package.data[len]))
		len++;
	return (struct str){ package.data, len };
}

/* s when it is a name with or without extras and specifiers, else NULL. */
static const char *as_package(struct str s, struct arena *arena)
{
	const char *text = arena_bytes(arena, s.data, s.len);
	return s.len <= PACKAGE_MAX && requirement_name_is_valid(name_of(s)) &&
			       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					    "0123456789!*+,-.<=>[]_~") == s.len
		       ? text
		       : NULL;
}

/* The package that a file or URL is about: the name and version of a wheel, or index/<name>/. */
static const char *package_of_file(struct str word, struct arena *arena)
{
	const char *slash;
	struct str name, version, rest;
	if (uv_error_find(word, "://") && word.data[word.len - 1] == '/') {
		word.len--;
		slash = memrchr(word.data, '/', word.len);
		return as_package(from(word, slash + 1), arena);
	}
	if (!uv_error_find(word, ".whl"))
		return NULL;
	slash = memrchr(word.data, '/', word.len);
	if (slash)
		word = from(word, slash + 1);
	if (!str_cut(word, '-', &name, &rest) || !str_cut(rest, '-', &version, &rest) ||
		name.len + version.len > PACKAGE_MAX)
		return NULL;
	return as_package(
		str_from(arena_printf(arena, "%s==%.*s", requirement_normalize_name(arena, name),
			(int)version.len, version.data)),
		arena);
}

/* The package that the failure is about when the phrase itself doesn't say. */
static const char *find_package(struct str text, struct arena *arena)
{
	const char *missing = uv_error_find(text, " was not found in the "), *found = NULL;
	struct str word;
	if (missing)
		return as_package(last_word(text, missing), arena);
	for (struct str rest = text; !found && str_next(&rest, ' ', &word);)
		found = package_of_file(first_word(word), arena);
	/* `name==version`, or `name @ url` */
	for (struct str rest = text; !found && uv_error_find(rest, "`");) {
		word = from(rest, uv_error_find(rest, "`"));
		found = as_package(until(first_word(word), " @ "), arena);
		rest = after((struct str){ word.data + 1, word.len - 1 }, "`");
	}
	return found;
}

/* Two words that name versions of the same package: the second, or NULL. */
static const char *find_other_version(struct str text, struct arena *arena)
{
	struct str one, other, rest = text;
	while (str_next(&rest, ' ', &one)) {
		one = first_word(one);
		if (name_of(one).len == one.len)
			continue;
		for (struct str more = rest; str_next(&more, ' ', &other);) {
			other = first_word(other);
			if (str_equal(name_of(one), name_of(other)) && !str_equal(one, other))
				return as_package(other, arena);
		}
	}
	return NULL;
}

/* Wheels are available for `pywin32` (v312) on the following platforms: `win32`, `win_amd64`. */
static const char *find_platforms(struct str text, struct arena *arena)
{
	struct str list = until(after(after(text, PLATFORMS), ": "), " hint: "), word;
	bool is_windows = list.len > 0, is_mac = is_windows;
	auto_buf struct buf tags = buf_empty(BUF_MAX_DEFAULT);
	while (str_next(&list, ' ', &word)) {
		word = first_word(word);
		is_windows = is_windows && str_starts_with(word, "win");
		is_mac = is_mac && str_starts_with(word, "macosx_");
		buf_printf(&tags, "%s%.*s", tags.len ? ", " : "", (int)word.len, word.data);
	}
	if (!is_windows && !is_mac)
		return arena_printf(arena, "other platforms only: %s", tags.len ? tags.data : "");
	return arena_printf(arena, "%s only (%s)", is_windows ? "Windows" : "macOS", tags.data);
}

/* What uv said, without its hints: "error: first cause: second" as "first: second". */
static const char *summarize(struct str text, struct arena *arena)
{
	static const char solution[] = "No solution found when resolving dependencies cause: ";
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	text = until(text, " hint: ");
	if (str_starts_with(text, "error: "))
		text = after(text, "error: ");
	if (str_starts_with(text, solution))
		text = after(text, solution);
	while (uv_error_find(text, " cause: ")) {
		struct str piece = until(text, " cause: ");
		buf_printf(&out, "%.*s: ", (int)piece.len, piece.data);
		text = after(text, " cause: ");
	}
	buf_append(&out, text.data, text.len);
	return arena_bytes(arena, out.data, out.len);
}

/* The template with @ and $ filled in, safe to show. */
static const char *uv_error_fill(
	struct arena *arena, const char *template, const char *package, const char *detail)
{
	char shown[MESSAGE_MAX];
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	for (const char *c = template; *c; c++) {
		if (*c == '@')
			buf_text(&out, package ? package : "a package");
		else if (*c == '$')
			buf_text(&out, detail);
		else
			buf_char(&out, *c);
	}
	str_printable(shown, sizeof shown, (struct str){ out.data, out.len });
	return arena_text(arena, shown);
}

/* uv found no set of versions: one isn't there at all ("Because only a<=2 is available and you
 * require a>=5, we can …"), or two exclude each other. */
static void explain_conflict(struct str text, struct arena *arena, struct uv_error *out)
{
	struct str sentence = until(after(text, "Because only "), " we can conclude");
	if (uv_error_find(sentence, " is available and "))
		out->package = find_other_version(sentence, arena);
	if (out->package) {
		out->failure = BUILD_VERSION_NOT_FOUND;
		out->message = uv_error_fill(
			arena, "there is no version @ in the index", out->package, "");
		out->suggestion = OTHER_VERSION;
		return;
	}
	const char *contested = find_other_version(text, arena);
	if (contested)
		out->package = as_package(name_of(str_from(contested)), arena);
	out->failure = BUILD_CONFLICT;
	out->message =
		uv_error_fill(arena, "conflicting requirements: $", NULL, summarize(text, arena));
	out->suggestion = "allow other versions of one of them, or use two environments";
}

static void apply_row(
	const struct row *row, struct str text, struct arena *arena, struct uv_error *out)
{
	bool has_platforms = strcmp(row->phrase, PLATFORMS) == 0;
	if (has_platforms)
		out->package =
			as_package(first_word(after(text, "Wheels are available for ")), arena);
	else if (row->where == BEFORE)
		out->package = as_package(last_word(text, uv_error_find(text, row->phrase)), arena);
	else if (row->where == AFTER)
		out->package = as_package(first_word(after(text, row->phrase)), arena);
	/* What can't be parsed names no package. */
	if (!out->package && row->failure != BUILD_INVALID)
		out->package = find_package(text, arena);
	out->failure = row->failure;
	out->message = uv_error_fill(arena, row->message ? row->message : "uv failed: $",
		out->package, has_platforms ? find_platforms(text, arena) : summarize(text, arena));
	out->suggestion = row->suggestion;
	if (strcmp(row->suggestion, WITH_BUILD) == 0)
		out->needs_build = out->package;
}

void uv_error_classify(struct str text, struct arena *arena, struct uv_error *out)
{
	*out = (struct uv_error){ .failure = BUILD_FAILED };
	text = flatten(text, arena);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (uv_error_find(text, rows[i].phrase)) {
			apply_row(&rows[i], text, arena, out);
			return;
		}
	}
	if (uv_error_find(text, "requirements are unsatisfiable")) {
		explain_conflict(text, arena, out);
		return;
	}
	out->package = find_package(text, arena);
	out->message = text.len > 0
			       ? uv_error_fill(arena, "uv failed: $", NULL, summarize(text, arena))
			       : "uv failed without a message";
}
