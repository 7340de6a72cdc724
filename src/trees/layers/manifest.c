#include "base/str.h"
#include "trees/layers/manifest.h"

#define FIRST_LINE "carrel-layer 1"

/* -- names -- */

static const struct {
	const char *before; /* in the header */
	const char *others; /* besides small letters and digits */
	bool has_upper, may_be_empty;
} fields[] = { { "kind ", "-", false, false }, { "name ", "._-", true, false },
	{ "version ", ".!+_-", true, true } };
#define FIELDS (sizeof fields / sizeof *fields)

static bool is_valid(size_t field, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.data[i];
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			(fields[field].has_upper && c >= 'A' && c <= 'Z') ||
			(c && strchr(fields[field].others, c)))
			continue;
		return false;
	}
	return s.len <= MANIFEST_NAME_MAX && (s.len > 0 || fields[field].may_be_empty);
}

bool manifest_is_named(const char *kind, const char *name, const char *version)
{
	return is_valid(0, str_from(kind)) && is_valid(1, str_from(name)) &&
	       is_valid(2, str_from(version));
}

/* -- printing -- */

static bool is_escaped(unsigned char c)
{
	return c < 0x21 || c == 0x7f || c == '%';
}

static void print_escaped(struct buf *out, const char *text)
{
	static const char digits[] = "0123456789ABCDEF";
	while (*text) {
		size_t plain = 0;
		while (text[plain] && !is_escaped((unsigned char)text[plain]))
			plain++;
		buf_append(out, text, plain);
		text += plain;
		if (*text) {
			unsigned char c = (unsigned char)*text++;
			buf_append(out, (char[]){ '%', digits[c >> 4], digits[c & 15] }, 3);
		}
	}
}

static int compare_entries(const void *a, const void *b)
{
	const struct manifest_entry *one = a, *other = b;
	return strcmp(one->path, other->path);
}

static void print_entry(const struct manifest_entry *entry, struct buf *out)
{
	char hex[2 * SHA256_LEN + 1];
	switch (entry->kind) {
	case MANIFEST_DIRECTORY:
		buf_printf(out, "d %o ", entry->mode);
		break;
	case MANIFEST_FILE:
		sha256_hex(entry->sha256, hex);
		buf_printf(out, "f %o %llu %s ", entry->mode, (unsigned long long)entry->size, hex);
		break;
	case MANIFEST_LINK:
		buf_printf(out, "l %zu ", strlen(entry->target));
		print_escaped(out, entry->target);
		buf_char(out, ' ');
		break;
	}
	print_escaped(out, entry->path);
	buf_char(out, '\n');
}

void manifest_print(struct manifest *manifest, struct buf *out)
{
	vec_sort(&manifest->entries, compare_entries);
	buf_printf(out, FIRST_LINE "\nkind %s\nname %s\nversion %s\n", manifest->kind,
		manifest->name, manifest->version);
	for (size_t i = 0; i < manifest->entries.count; i++)
		print_entry(&manifest->entries.items[i], out);
}

/* -- parsing: each returns what is wrong, or NULL -- */

static int hex_value(char c, char ten)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= ten && c <= ten + 5 ? c - ten + 10 : -1;
}

static const char *parse_escaped(struct str s, size_t max, struct arena *arena, const char **out)
{
	size_t len = 0;
	/* Before anything is set aside for it. */
	if (s.len == 0 || s.len > 3 * max)
		return "an empty or overlong name";
	char *text = arena_bytes(arena, s.data, s.len);
	for (size_t i = 0; i < s.len; i++) {
		char c = s.data[i];
		if (c == '%') {
			int high = i + 2 < s.len ? hex_value(s.data[i + 1], 'A') : -1;
			int low = i + 2 < s.len ? hex_value(s.data[i + 2], 'A') : -1;
			if (high < 0 || low < 0)
				return "a bad escape";
			c = (char)(high << 4 | low);
			if (!c || !is_escaped((unsigned char)c))
				return "an escape that isn't in its shortest form";
			i += 2;
		} else if (is_escaped((unsigned char)c)) {
			return "a byte that must be escaped";
		}
		text[len++] = c;
	}
	text[len] = '\0';
	if (len > max)
		return "an overlong name";
	*out = text;
	return NULL;
}

/* Whether the directory that the last slash of `path` ends is among the entries before it. */
static bool has_directory(const struct manifest *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t low = 0, high = m->entries.count;
	if (!slash)
		return true;
	size_t len = (size_t)(slash - path);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct manifest_entry *entry = &m->entries.items[middle];
		int order = strncmp(path, entry->path, len);
		if (order == 0 && entry->path[len] == '\0')
			return entry->kind == MANIFEST_DIRECTORY;
		/* Equal so far, and the entry goes on: what we look for is before it. */
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static const char *parse_path(
	const struct manifest *m, struct str s, struct arena *arena, const char **out)
{
	const char *wrong = parse_escaped(s, MANIFEST_PATH_MAX, arena, out);
	struct str rest, part;
	if (wrong)
		return wrong;
	rest = str_from(*out);
	while (str_next(&rest, '/', &part))
		if (part.len == 0 || str_is(part, ".") || str_is(part, ".."))
			return "a path that isn't plain";
	if ((*out)[strlen(*out) - 1] == '/')
		return "a path that isn't plain";
	if (m->entries.count > 0 && strcmp(m->entries.items[m->entries.count - 1].path, *out) >= 0)
		return "a path out of order";
	return has_directory(m, *out) ? NULL : "a path in a directory that isn't listed";
}

static const char *parse_number(struct str s, uint64_t *value)
{
	if ((s.len > 1 && s.data[0] == '0') || !str_to_u64(s, value) || *value > INT64_MAX)
		return "a bad number";
	return NULL;
}

static const char *parse_mode(struct str s, bool is_file, unsigned *mode)
{
	if (str_is(s, "755"))
		*mode = 0755;
	else if (is_file && str_is(s, "644"))
		*mode = 0644;
	else
		return "a bad mode";
	return NULL;
}

static const char *parse_sha256(struct str s, unsigned char out[SHA256_LEN])
{
	if (s.len != 2 * SHA256_LEN)
		return "a bad hash";
	for (size_t i = 0; i < SHA256_LEN; i++) {
		int high = hex_value(s.data[2 * i], 'a'), low = hex_value(s.data[2 * i + 1], 'a');
		if (high < 0 || low < 0)
			return "a bad hash";
		out[i] = (unsigned char)(high << 4 | low);
	}
	return NULL;
}

static struct str next_field(struct str *rest)
{
	struct str field;
	str_cut(*rest, ' ', &field, rest);
	return field;
}

static const char *parse_entry(struct str rest, struct arena *arena, struct manifest *m)
{
	struct manifest_entry entry = { 0 };
	struct str kind = next_field(&rest);
	const char *wrong = NULL;
	uint64_t len = 0;
	entry.kind = kind.len == 1 ? kind.data[0] : 0;
	switch (entry.kind) {
	case MANIFEST_DIRECTORY:
		wrong = parse_mode(next_field(&rest), false, &entry.mode);
		break;
	case MANIFEST_FILE:
		if (!(wrong = parse_mode(next_field(&rest), true, &entry.mode)) &&
			!(wrong = parse_number(next_field(&rest), &entry.size)))
			wrong = parse_sha256(next_field(&rest), entry.sha256);
		break;
	case MANIFEST_LINK:
		if (!(wrong = parse_number(next_field(&rest), &len)) &&
			!(wrong = parse_escaped(
				  next_field(&rest), MANIFEST_TARGET_MAX, arena, &entry.target)) &&
			strlen(entry.target) != len)
			wrong = "a link target of another length";
		break;
	default:
		return "an entry that is neither d, f nor l";
	}
	if (wrong || (wrong = parse_path(m, rest, arena, &entry.path)))
		return wrong;
	if (m->entries.count == MANIFEST_ENTRIES_MAX)
		return "too many entries";
	vec_push(arena, &m->entries, entry);
	return NULL;
}

static const char *parse_header(
	struct str line, size_t number, struct arena *arena, struct manifest *m)
{
	const char **const out[FIELDS] = { &m->kind, &m->name, &m->version };
	if (number == 1)
		return str_is(line, FIRST_LINE) ? NULL : "not the first line of a manifest";
	size_t i = number - 2, before = strlen(fields[i].before);
	if (!str_starts_with(line, fields[i].before))
		return "not kind, name and version";
	line = (struct str){ line.data + before, line.len - before };
	if (!is_valid(i, line))
		return "a bad kind, name or version";
	*out[i] = arena_bytes(arena, line.data, line.len);
	return NULL;
}

int manifest_parse(struct str text, struct arena *arena, struct manifest *out, struct error *err)
{
	struct manifest m = { 0 };
	struct str rest = text, line;
	size_t number = 0;
	if (text.len > MANIFEST_MAX)
		return fail(err, ERR_CORRUPT, "manifest: longer than %zu bytes", MANIFEST_MAX);
	if (text.len == 0 || text.data[text.len - 1] != '\n')
		return fail(err, ERR_CORRUPT, "manifest: its last line has no end");
	while (str_next(&rest, '\n', &line)) {
		number++;
		const char *wrong = number <= 4 ? parse_header(line, number, arena, &m)
						: parse_entry(line, arena, &m);
		if (wrong)
			return fail(err, ERR_CORRUPT, "manifest: line %zu: %s", number, wrong);
	}
	if (number < 4)
		return fail(err, ERR_CORRUPT, "manifest: line %zu: the header ends", number + 1);
	*out = m;
	return 0;
}
