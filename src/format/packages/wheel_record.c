#include "format/packages/wheel_record.h"
#include "format/text/base64.h"

enum { FIELDS = 3 };

/* 43 digits; the two bits that the last one has too many must be 0. */
static bool decode_sha256(struct str text, unsigned char out[SHA256_LEN])
{
	unsigned bits = 0, value = 0;
	size_t len = 0;
	if (text.len == 44 && text.data[43] == '=')
		text.len--;
	if (text.len != 43)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		int digit = base64_digit(text.data[i], "-_");
		if (digit < 0)
			return false;
		value = (value << 6 | (unsigned)digit) & 0xffff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[len++] = (unsigned char)(value >> bits);
		}
	}
	return (value & ((1u << bits) - 1)) == 0;
}

/* Takes one field off *rest; what ends it (',', '\n' or nothing) stays. false: quotes are wrong. */
static bool take_field(struct str *rest, struct arena *arena, struct str *field)
{
	size_t at = 0, len = 0;
	char *out;
	if (rest->len == 0 || rest->data[0] != '"') {
		while (at < rest->len && rest->data[at] != ',' && rest->data[at] != '\n') {
			if (rest->data[at++] == '"')
				return false;
		}
		len = at > 0 && rest->data[at - 1] == '\r' &&
				      (at == rest->len || rest->data[at] == '\n')
			      ? at - 1
			      : at;
		*field = (struct str){ rest->data, len };
		*rest = (struct str){ rest->data + at, rest->len - at };
		return true;
	}
	/* The end first, so that no more is allocated than the field is long. */
	for (at = 1; at < rest->len; at++) {
		if (rest->data[at] != '"')
			continue;
		if (at + 1 == rest->len || rest->data[at + 1] != '"')
			break;
		at++;
	}
	if (at >= rest->len)
		return false;
	out = arena_alloc(arena, at + 1);
	for (size_t i = 1; i < at; i++) {
		out[len++] = rest->data[i];
		i += rest->data[i] == '"';
	}
	at++;
	if (at < rest->len && rest->data[at] == '\r')
		at++;
	*field = (struct str){ out, len };
	*rest = (struct str){ rest->data + at, rest->len - at };
	return rest->len == 0 || rest->data[0] == ',' || rest->data[0] == '\n';
}

/* Takes the fields of one line off *rest. NULL, or what is wrong. */
static const char *take_fields(struct str *rest, struct arena *arena, struct str fields[FIELDS])
{
	for (int i = 0; i < FIELDS; i++) {
		if (!take_field(rest, arena, &fields[i]))
			return "its quotes are wrong";
		bool is_last = rest->len == 0 || rest->data[0] == '\n';
		if (is_last != (i == FIELDS - 1))
			return "it isn't path,hash,size";
		if (rest->len > 0)
			*rest = (struct str){ rest->data + 1, rest->len - 1 };
	}
	return NULL;
}

static const char *read_entry(
	const struct str fields[FIELDS], struct arena *arena, struct wheel_record *entry)
{
	struct str algorithm, digest;
	if (fields[0].len == 0 || memchr(fields[0].data, '\0', fields[0].len))
		return "its path is empty or has a NUL in it";
	entry->path = arena_bytes(arena, fields[0].data, fields[0].len);
	if (fields[1].len > 0) {
		if (!str_cut(fields[1], '=', &algorithm, &digest))
			return "its hash isn't algorithm=digest";
		entry->has_sha256 = str_is(algorithm, "sha256");
		if (entry->has_sha256 && !decode_sha256(digest, entry->sha256))
			return "its sha256 isn't 43 digits of URL-safe base64";
	}
	entry->has_size = fields[2].len > 0;
	if (entry->has_size && !str_to_u64(fields[2], &entry->size))
		return "its size isn't a number";
	return NULL;
}

static int count_lines(struct str text)
{
	int count = 0;
	for (size_t i = 0; i < text.len; i++)
		count += text.data[i] == '\n';
	return count;
}

int wheel_record_parse(
	struct str text, struct arena *arena, wheel_record_list *entries, struct error *err)
{
	struct str rest = text, fields[FIELDS];
	wheel_record_list parsed = { 0 };
	int line = 1;
	if (text.len > WHEEL_RECORD_MAX)
		return fail(err, ERR_LIMIT, "a RECORD of %zu bytes; the limit is %zu", text.len,
			WHEEL_RECORD_MAX);
	while (rest.len > 0) {
		struct wheel_record entry = { .line = rest };
		bool is_blank = rest.data[0] == '\n' || str_starts_with(rest, "\r\n");
		const char *problem = NULL;
		if (is_blank) {
			size_t len = rest.data[0] == '\n' ? 1 : 2;
			rest = (struct str){ rest.data + len, rest.len - len };
			line++;
			continue;
		}
		problem = take_fields(&rest, arena, fields);
		if (!problem)
			problem = read_entry(fields, arena, &entry);
		if (problem)
			return fail(err, ERR_CORRUPT, "line %d of RECORD: %s", line, problem);
		entry.line.len -= rest.len;
		line += count_lines(entry.line);
		vec_push(arena, &parsed, entry);
	}
	*entries = parsed;
	return 0;
}
