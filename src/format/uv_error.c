#include "format/uv_error.h"
#include <stdio.h>
#include "base/buf.h"
#include "format/requirements.h"

#define TEXT_MAX ((size_t)128 << 10)
#define PACKAGE_MAX 128
#define MESSAGE_MAX 480
#define PAIRS_MAX 8

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
/* What else the message needs. */
enum detail { NO_DETAIL, HOST, LAST_CAUSE, FIRST_ERROR, REASON, PLATFORMS };

struct row {
	const char *phrase;
	enum build_failure failure;
	enum where where;
	enum detail detail;
	bool needs_build;
	const char *message; /* @ is the package, $ the detail */
	const char *suggestion;
};

#define TRY_LATER "check the connection and the index address, and try again"
#define OTHER_VERSION "ask for another version of it, or leave the version open"
#define BROKEN "ask for another version of it, and tell its publisher"
#define WITH_BUILD                                                                                 \
	"--allow-build builds it from its source in a sandbox; or ask for a version with wheels"
#define CREDENTIALS "give the index address with user and password (--index), or ask its operator"
/* The first phrase that is in the text counts. Those whose text may hold words of others (what a
 * build printed, why something was yanked) come first, so that these words decide nothing. */
static const struct row rows[] = {
	{ "The build backend returned an error", BUILD_FAILED, ELSEWHERE, NO_DETAIL, false,
		"@ could not be built: its build failed", NULL },
	{ " was yanked", BUILD_VERSION_NOT_FOUND, BEFORE, REASON, false,
		"@ was withdrawn by its publisher$", OTHER_VERSION },
	{ "No space left on device", BUILD_DISK_FULL, ELSEWHERE, NO_DETAIL, false,
		"no space is left on the disk for @", "free some space (carrel env prune)" },
	{ "Disk quota exceeded", BUILD_DISK_FULL, ELSEWHERE, NO_DETAIL, false,
		"the disk quota is used up, no space for @", "free some space (carrel env prune)" },
	{ "Read-only file system", BUILD_FAILED, ELSEWHERE, LAST_CAUSE, false,
		"the file system is read-only: $", "make it writable, or set CARREL_HOME" },
	{ "Hash mismatch for ", BUILD_HASH_MISMATCH, AFTER, NO_DETAIL, false,
		"the file of @ does not match its hash",
		"don't install it: compare the hash with the publisher's, then correct the "
		"requirement" },
	{ "all requirements must have a hash, but none were provided for: ", BUILD_INVALID, AFTER,
		NO_DETAIL, false, "@ has no hash, and hashes are required",
		"add --hash=sha256:<digest> to it, or leave --require-hashes out" },
	{ "their versions pinned with `==`, but found: ", BUILD_INVALID, AFTER, NO_DETAIL, false,
		"@ isn't pinned to a version, and hashes are required",
		"pin it with ==, or leave --require-hashes out" },
	{ "tunnel error: unsuccessful", BUILD_NETWORK, ELSEWHERE, HOST, false,
		"no connection to $: it is not a configured index, or can't be reached",
		"if the index keeps its files on another host, add that host to file_hosts in "
		"config.yaml" },
	{ "dns error", BUILD_NETWORK, ELSEWHERE, HOST, false, "the name $ can't be resolved",
		TRY_LATER },
	{ "Connection refused", BUILD_NETWORK, ELSEWHERE, HOST, false, "$ refuses connections",
		TRY_LATER },
	{ "Connection reset by peer", BUILD_NETWORK, ELSEWHERE, HOST, false,
		"$ closed the connection", TRY_LATER },
	{ "operation timed out", BUILD_NETWORK, ELSEWHERE, HOST, false,
		"$ did not respond in time (@)", TRY_LATER },
	{ "invalid peer certificate", BUILD_NETWORK, ELSEWHERE, HOST, false,
		"the certificate of $ isn't trusted",
		"set SSL_CERT_FILE to your authority's certificates, or --trusted-host" },
	{ "received corrupt message of type", BUILD_NETWORK, ELSEWHERE, HOST, false,
		"$ doesn't speak TLS", "check whether the index address should begin with http:" },
	{ "HTTP status server error (", BUILD_NETWORK, ELSEWHERE, REASON, false,
		"the index failed to answer for @$", TRY_LATER },
	{ "HTTP status client error (404", BUILD_NOT_FOUND, ELSEWHERE, NO_DETAIL, false,
		"the index lists a file of @ that it doesn't have", OTHER_VERSION },
	{ "HTTP status client error (429", BUILD_NETWORK, ELSEWHERE, HOST, false,
		"$ asks for fewer requests", "try again later" },
	{ "HTTP status client error (", BUILD_DENIED, ELSEWHERE, REASON, false,
		"the index refuses @$", CREDENTIALS },
	{ "lack of valid authentication credentials", BUILD_DENIED, ELSEWHERE, NO_DETAIL, false,
		"the index wants credentials for @ (401)", CREDENTIALS },
	{ "returned a 403 Forbidden error", BUILD_DENIED, ELSEWHERE, NO_DETAIL, false,
		"the index refuses @ (403)", CREDENTIALS },
	{ "end of file before message length reached", BUILD_NETWORK, ELSEWHERE, NO_DETAIL, false,
		"the answer of the index for @ ended too early", TRY_LATER },
	{ "error decoding response body", BUILD_NETWORK, ELSEWHERE, NO_DETAIL, false,
		"the answer of the index for @ can't be read", TRY_LATER },
	{ "Unsupported `Content-Type`", BUILD_NETWORK, ELSEWHERE, FIRST_ERROR, false,
		"the response is not from a package index: $", "check the index address" },
	{ "unexpected JSON from", BUILD_NETWORK, ELSEWHERE, FIRST_ERROR, false,
		"the response of the index is invalid: $", TRY_LATER },
	{ "the network was disabled", BUILD_NETWORK, ELSEWHERE, NO_DETAIL, false,
		"the network is disabled and @ isn't in the cache", TRY_LATER },
	{ "client error (Connect)", BUILD_NETWORK, ELSEWHERE, HOST, false, "$ can't be reached",
		TRY_LATER },
	{ "error sending request", BUILD_NETWORK, ELSEWHERE, HOST, false, "the request to $ failed",
		TRY_LATER },
	{ "Wheels are required for ", BUILD_DENIED, AFTER, NO_DETAIL, true,
		"@ has no wheel for this Python, and building is not allowed", WITH_BUILD },
	{ " has no usable wheels", BUILD_DENIED, BEFORE, NO_DETAIL, true,
		"@ has no wheel for this Python, and building is not allowed", WITH_BUILD },
	{ " requires Python ", BUILD_VERSION_NOT_FOUND, BEFORE, REASON, false,
		"@ is for another Python$", "choose it with --python, or ask for another version" },
	{ " depends on Python", BUILD_VERSION_NOT_FOUND, BEFORE, REASON, false,
		"@ is for another Python$", "choose it with --python, or ask for another version" },
	{ " on the following platform", BUILD_VERSION_NOT_FOUND, ELSEWHERE, PLATFORMS, false,
		"@ has wheels for $",
		"leave the field out here, e.g. with a marker (; sys_platform == ...)" },
	{ " has no wheels with a matching", BUILD_VERSION_NOT_FOUND, BEFORE, NO_DETAIL, false,
		"@ has no wheel for this platform and Python",
		"ask for another version of it, or another Python (--python)" },
	{ " was not found in the package registry", BUILD_NOT_FOUND, BEFORE, NO_DETAIL, false,
		"there is no package '@' in the index",
		"check how it is spelled, or name the index that has it (env build --extra-index, "
		"or config.yaml)" },
	{ " was not found in the provided package locations", BUILD_NOT_FOUND, BEFORE, NO_DETAIL,
		false, "there is no package '@'", "name the index that has it (--index)" },
	{ " has an invalid package format", BUILD_FAILED, BEFORE, NO_DETAIL, false,
		"the wheel of @ is broken", BROKEN },
	{ "there is no version of ", BUILD_VERSION_NOT_FOUND, AFTER, NO_DETAIL, false,
		"there is no version @ in the index", OTHER_VERSION },
	{ "Failed to extract archive", BUILD_FAILED, ELSEWHERE, LAST_CAUSE, false,
		"the file of @ can't be unpacked: $", BROKEN },
	{ "RECORD`: No such file", BUILD_FAILED, ELSEWHERE, NO_DETAIL, false,
		"the wheel of @ has no RECORD", BROKEN },
	{ "does not match given name ", BUILD_FAILED, AFTER, NO_DETAIL, false,
		"the wheel of @ contains a package of another name", BROKEN },
	{ "Wheel package name does not match filename", BUILD_FAILED, ELSEWHERE, NO_DETAIL, false,
		"the wheel of @ contains a package of another name", BROKEN },
	{ "does not match", BUILD_FAILED, ELSEWHERE, FIRST_ERROR, false, "$", BROKEN },
	{ "Permission denied", BUILD_FAILED, ELSEWHERE, LAST_CAUSE, false, "$",
		"check who owns CARREL_HOME" },
	{ "Couldn't parse requirement", BUILD_INVALID, ELSEWHERE, LAST_CAUSE, false,
		"a requirement can't be read: $", "correct the requirement" },
	{ "Failed to parse", BUILD_INVALID, ELSEWHERE, LAST_CAUSE, false, "$",
		"correct the requirement" },
	{ "Distribution not found at", BUILD_NOT_FOUND, ELSEWHERE, FIRST_ERROR, false, "$",
		"check the path" },
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

static const char *find(struct str text, const char *phrase)
{
	if (!text.data || text.len == 0)
		return NULL;
	return memmem(text.data, text.len, phrase, strlen(phrase));
}

static const char *find_last(struct str text, char c)
{
	return text.data && text.len > 0 ? memrchr(text.data, c, text.len) : NULL;
}

static struct str from(struct str text, const char *at)
{
	return (struct str){ at, (size_t)(text.data + text.len - at) };
}

/* The text that follows `phrase`; empty when it isn't there. */
static struct str after(struct str text, const char *phrase)
{
	const char *at = find(text, phrase);

	return at ? from(text, at + strlen(phrase)) : (struct str){ "", 0 };
}

/* s when it is a name with or without extras and specifiers, else NULL. */
static const char *as_package(struct str s, struct arena *arena)
{
	size_t name = 0;

	while (s.len > 0 && strchr(",.;:", s.data[s.len - 1]))
		s.len--;
	if (s.len == 0 || s.len > PACKAGE_MAX)
		return NULL;
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.data[i];

		if (c <= 0x20 || c >= 0x7f || !strchr("!*+,-.<=>[]_~", c)) {
			if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
				    (c >= 'A' && c <= 'Z')))
				return NULL;
		}
	}
	while (name < s.len && !strchr("!<=>[~*,+", s.data[name]))
		name++;
	if (!requirement_name_is_valid((struct str){ s.data, name }))
		return NULL;
	return arena_bytes(arena, s.data, s.len);
}

/* The word at the beginning, or what is in backticks there. */
static struct str first_word(struct str text)
{
	struct str word, rest;

	if (str_starts_with(text, "`"))
		str_cut((struct str){ text.data + 1, text.len - 1 }, '`', &word, &rest);
	else
		str_cut(text, ' ', &word, &rest);
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

static struct str find_url(struct str text)
{
	static const char *const phrases[] = { "Failed to fetch: ", "for url (", "from `",
		"for `http" };

	for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
		struct str url = first_word(after(text, phrases[i]));

		if (find(url, "://"))
			return url;
	}
	return (struct str){ "", 0 };
}

/* The package that a URL is about: index/<name>/, or the name and version of a wheel. */
static const char *package_of_url(struct str url, struct arena *arena)
{
	struct str name, rest, version;
	const char *slash;

	if (url.len > 0 && url.data[url.len - 1] == '/') {
		url.len--;
		slash = find_last(url, '/');
		return slash ? as_package(from(url, slash + 1), arena) : NULL;
	}
	slash = find_last(url, '/');
	if (!slash || !find(url, ".whl"))
		return NULL;
	if (!str_cut(from(url, slash + 1), '-', &name, &rest) ||
		!str_cut(rest, '-', &version, &rest) || name.len + version.len > PACKAGE_MAX)
		return NULL;
	const char *text = arena_printf(arena, "%s==%.*s", requirement_normalize_name(arena, name),
		(int)version.len, version.data);
	return as_package(str_from(text), arena);
}

/* The package that the failure is about when the phrase itself doesn't say. */
static const char *find_package(struct str text, struct arena *arena)
{
	static const char *const phrases[] = { "Failed to download and build ",
		"Failed to download ", "Failed to build ", "Failed to prepare ",
		"Wheels are available for " };
	struct str install;

	for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
		struct str word = after(text, phrases[i]);

		if (str_starts_with(word, "`")) {
			/* `name @ url`: the name says it. */
			str_cut(first_word(word), ' ', &word, &install);
			return as_package(word, arena);
		}
	}
	install = after(after(text, "Failed to install: "), "(");
	if (install.len > 0) {
		str_cut(install, ')', &install, &text);
		return as_package(install, arena);
	}
	const char *missing = find(text, " was not found in the ");
	if (missing)
		return as_package(last_word(text, missing), arena);
	return package_of_url(find_url(text), arena);
}

/* The host of the URL, without user and port. */
static struct str find_host(struct str text)
{
	struct str host = after(find_url(text), "://"), rest;
	const char *at;

	str_cut(host, '/', &host, &rest);
	at = find_last(host, '@');
	if (at)
		host = from(host, at + 1);
	return host.len > 0 ? host : STR("the index");
}

/* What stands in parentheses right after the phrase, with them; of a Python its versions. */
static struct str find_reason(struct str text, const struct row *row)
{
	struct str rest = after(text, row->phrase), reason;

	if (strcmp(row->phrase, " requires Python ") == 0) {
		const char *end = find(rest, " and ");

		return (struct str){ rest.data, end ? (size_t)(end - rest.data) : rest.len };
	}
	if (strcmp(row->phrase, " depends on Python") == 0) {
		str_cut(rest, ' ', &reason, &rest);
		while (reason.len > 0 && strchr(",.", reason.data[reason.len - 1]))
			reason.len--;
		return reason;
	}
	if (row->phrase[strlen(row->phrase) - 1] != '(')
		rest = str_starts_with(rest, " (") ? (struct str){ rest.data + 2, rest.len - 2 }
						   : (struct str){ "", 0 };
	str_cut(rest, ')', &reason, &rest);
	return reason;
}

/* Wheels are available for `pywin32` (v312) on the following platforms: `win32`, `win_amd64`. */
static struct str find_platforms(struct str text, struct arena *arena)
{
	static const struct {
		const char *tag, *name;
	} systems[] = { { "win", "Windows" }, { "macosx_", "macOS" }, { "ios_", "iOS" },
		{ "android_", "Android" } };
	struct str rest = after(after(text, " on the following platform"), ": ");
	const char *common = NULL;
	auto_buf struct buf list;
	bool is_mixed = false;

	buf_init(&list, BUF_MAX_DEFAULT);
	while (str_starts_with(rest, "`")) {
		struct str tag = first_word(rest);
		const char *name = NULL;

		for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
			if (str_starts_with(tag, systems[i].tag))
				name = systems[i].name;
		}
		is_mixed |= !name || (common && strcmp(common, name) != 0);
		common = name;
		buf_printf(&list, "%s%.*s", list.len ? ", " : "", (int)tag.len, tag.data);
		rest = from(rest, tag.data + tag.len + (tag.data + tag.len < text.data + text.len));
		if (!str_starts_with(rest, ", "))
			break;
		rest = (struct str){ rest.data + 2, rest.len - 2 };
	}
	return str_from(is_mixed || !common
				? arena_printf(arena, "other platforms only: %s",
					  list.data ? list.data : "")
				: arena_printf(arena, "%s only (%s)", common, list.data));
}

static struct str find_last_cause(struct str text)
{
	struct str cause = text, rest = text;
	const char *hint = find(text, " hint: ");

	if (hint)
		rest.len = (size_t)(hint - text.data);
	while (find(rest, "cause: ")) {
		rest = after(rest, "cause: ");
		cause = rest;
	}
	return str_starts_with(cause, "error: ") ? after(cause, "error: ") : cause;
}

static struct str find_first_error(struct str text)
{
	struct str first = str_starts_with(text, "error: ") ? after(text, "error: ") : text;
	const char *end = find(first, " cause: ");

	if (!end)
		end = find(first, " hint: ");
	return end ? (struct str){ first.data, (size_t)(end - first.data) } : first;
}

/* The template with @ and $ filled in; a detail of its own words is put after ": ". */
static const char *fill(
	struct arena *arena, const char *template, const char *package, struct str detail)
{
	auto_buf struct buf out;
	char shown[MESSAGE_MAX];

	buf_init(&out, BUF_MAX_DEFAULT);
	str_printable(shown, 256, detail);
	for (const char *c = template; *c; c++) {
		bool is_joined = c > template && (c[-1] != ' ' && c[-1] != '\'');

		if (*c == '@')
			buf_text(&out, package ? package : "a package");
		else if (*c == '$' && is_joined)
			buf_printf(&out, "%s%s", shown[0] ? ": " : "", shown);
		else if (*c == '$')
			buf_text(&out, shown);
		else
			buf_char(&out, *c);
	}
	str_printable(shown, sizeof shown, (struct str){ out.data, out.len });
	return arena_text(arena, shown);
}

static struct str name_of(struct str package)
{
	size_t len = 0;

	while (len < package.len && !strchr("!<=>[~*,; ", package.data[len]))
		len++;
	return (struct str){ package.data, len };
}

/* "only a<=2 is available and you require a>=5": the package that is asked for in a version that
 * isn't there, as asked. NULL when the same words only begin the story of a conflict. */
static const char *find_unavailable(struct str text, struct arena *arena)
{
	static const char *const needs[] = { "you require ", " depend on ", " depends on " };
	struct str rest = after(text, "Because only ");
	struct str have = first_word(rest), sentence = rest;
	const char *end = find(rest, " we can conclude");

	if (have.len == 0 ||
		!str_starts_with(from(rest, have.data + have.len), " is available and "))
		return NULL;
	if (end)
		sentence.len = (size_t)(end - rest.data);
	for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
		struct str wanted = first_word(after(sentence, needs[i]));

		if (wanted.len > 0 && str_equal(name_of(wanted), name_of(have)))
			return as_package(wanted, arena);
	}
	return NULL;
}

/* Who needs what, told once each; *contested is a package that two want, or NULL. */
struct conflict {
	struct str who[PAIRS_MAX], what[PAIRS_MAX];
	size_t count;
};

static void add_pair(struct conflict *c, struct str who, struct str what)
{
	while (what.len > 0 && strchr(",.", what.data[what.len - 1]))
		what.len--;
	for (size_t i = 0; i < c->count; i++) {
		if (str_equal(c->who[i], who) && str_equal(c->what[i], what))
			return;
	}
	if (c->count == PAIRS_MAX || what.len == 0)
		return;
	c->who[c->count] = who;
	c->what[c->count++] = what;
}

static void read_conflict(struct str text, struct conflict *c)
{
	for (struct str rest = text; rest.len > 0;) {
		const char *one = find(rest, " depends on "), *all = find(rest, " depend on ");
		const char *at = !one || (all && all < one) ? all : one;

		if (!at)
			break;
		rest = from(rest, at + (at == one ? 12 : 11));
		add_pair(c, last_word(text, at), first_word(rest));
	}
	/* "you require a==1 and b==2, we can …": a conclusion ("that you require") isn't a wish. */
	for (struct str rest = text; rest.len > 0;) {
		const char *at = find(rest, "you require ");

		if (!at)
			break;
		rest = from(rest, at + 12);
		if (at - text.data >= 5 && memcmp(at - 5, "that ", 5) == 0)
			continue;
		add_pair(c, STR("you"), first_word(rest));
		for (struct str more = from(rest, rest.data + first_word(rest).len);
			str_starts_with(more, " and ");) {
			struct str word = first_word((struct str){ more.data + 5, more.len - 5 });

			add_pair(c, STR("you"), word);
			more = from(more, word.data + word.len);
		}
	}
}

static void tell_conflict(struct str text, struct arena *arena, struct uv_error *out)
{
	struct conflict c = { 0 };
	auto_buf struct buf told;
	char shown[MESSAGE_MAX];

	read_conflict(text, &c);
	buf_init(&told, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < c.count; i++) {
		for (size_t j = 0; j < i && !out->package; j++) {
			if (str_equal(name_of(c.what[i]), name_of(c.what[j])))
				out->package = as_package(name_of(c.what[i]), arena);
		}
		buf_printf(&told, "%s%.*s %s %.*s", i > 0 ? "; " : "", (int)c.who[i].len,
			c.who[i].data, str_is(c.who[i], "you") ? "require" : "needs",
			(int)c.what[i].len, c.what[i].data);
	}
	if (c.count == 0)
		buf_append(&told, text.data, text.len);
	str_printable(shown, sizeof shown - 48, (struct str){ told.data, told.len });
	out->failure = BUILD_CONFLICT;
	out->message = arena_printf(arena, "conflicting requirements: %s", shown);
	out->suggestion = "allow other versions of one of them, or use two environments";
}

static void apply_row(
	const struct row *row, struct str text, struct arena *arena, struct uv_error *out)
{
	const char *at = find(text, row->phrase);
	struct str detail = { "", 0 };

	if (row->where == BEFORE)
		out->package = as_package(last_word(text, at), arena);
	else if (row->where == AFTER)
		out->package = as_package(first_word(after(text, row->phrase)), arena);
	if (!out->package)
		out->package = find_package(text, arena);
	if (row->detail == HOST)
		detail = find_host(text);
	else if (row->detail == REASON)
		detail = find_reason(text, row);
	else if (row->detail == PLATFORMS)
		detail = find_platforms(text, arena);
	else if (row->detail == LAST_CAUSE)
		detail = find_last_cause(text);
	else if (row->detail == FIRST_ERROR)
		detail = find_first_error(text);
	out->failure = row->failure;
	out->message = fill(arena, row->message, out->package, detail);
	out->suggestion = row->suggestion;
	if (row->needs_build)
		out->needs_build = out->package;
}

void uv_error_classify(struct str text, struct arena *arena, struct uv_error *out)
{
	*out = (struct uv_error){ .failure = BUILD_FAILED };
	text = flatten(text, arena);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (find(text, rows[i].phrase)) {
			apply_row(&rows[i], text, arena, out);
			return;
		}
	}
	out->package = find_unavailable(text, arena);
	if (out->package) {
		out->failure = BUILD_VERSION_NOT_FOUND;
		out->message =
			fill(arena, "there is no version @ in the index", out->package, STR(""));
		out->suggestion = OTHER_VERSION;
		return;
	}
	if (find(text, "requirements are unsatisfiable")) {
		tell_conflict(text, arena, out);
		return;
	}
	out->package = find_package(text, arena);
	out->message = text.len > 0 ? fill(arena, "uv failed: $", NULL, find_last_cause(text))
				    : "uv failed without a message";
	out->suggestion = NULL;
}
