#include "format/archives/tar.h"

/* Of a header block: where its fields are. */
enum field { NAME, MODE, UID, GID, SIZE, TIME, CHECKSUM, TYPE, LINK, MAGIC, PREFIX, FIELD_COUNT };
static const struct {
	size_t at, len;
} fields[FIELD_COUNT] = {
	[NAME] = { 0, 100 },
	[MODE] = { 100, 8 },
	[UID] = { 108, 8 },
	[GID] = { 116, 8 },
	[SIZE] = { 124, 12 },
	[TIME] = { 136, 12 },
	[CHECKSUM] = { 148, 8 },
	[TYPE] = { 156, 1 },
	[LINK] = { 157, 100 },
	[MAGIC] = { 257, 8 },
	[PREFIX] = { 345, 155 },
};
/* Of a header of GNU's own form of sparse files. */
#define OLD_REGIONS_AT 386
#define OLD_REGIONS 4
#define OLD_REAL_AT 483
#define OLD_MORE_REGIONS 21	     /* in each block that follows */
#define OCTAL_12_MAX 077777777777ull /* what eleven digits hold */

static unsigned sum_of(const char *block)
{
	unsigned sum = 0;
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i - fields[CHECKSUM].at < fields[CHECKSUM].len ? ' '
								      : (unsigned char)block[i];
	return sum;
}

static void put_octal(char *block, enum field field, uint64_t value)
{
	for (size_t i = fields[field].len - 1; i-- > 0; value >>= 3)
		block[fields[field].at + i] = (char)('0' + (value & 7));
}

static void put_text(char *block, enum field field, struct str text)
{
	memcpy(block + fields[field].at, text.data, text.len);
}

static void put_block(struct buf *out, char type, struct str prefix, struct str name,
	struct str link, const struct tar_entry *entry, uint64_t size)
{
	static const char magic[8] = { 'u', 's', 't', 'a', 'r', 0, '0', '0' };
	char block[TAR_BLOCK] = { 0 };
	put_text(block, PREFIX, prefix);
	put_text(block, NAME, name);
	put_text(block, LINK, link);
	put_octal(block, MODE, entry->mode & 07777);
	put_octal(block, UID, 0);
	put_octal(block, GID, 0);
	put_octal(block, SIZE, size);
	bool fits = entry->modified_s >= 0 && entry->modified_s <= (int64_t)OCTAL_12_MAX;
	put_octal(block, TIME, fits ? (uint64_t)entry->modified_s : 0);
	block[fields[TYPE].at] = type;
	memcpy(block + fields[MAGIC].at, magic, sizeof magic);
	unsigned sum = sum_of(block);
	put_octal(block, CHECKSUM, sum);
	buf_append(out, block, sizeof block);
}

static size_t digits_of(size_t number)
{
	size_t digits = 1;
	while (number /= 10)
		digits++;
	return digits;
}

/* "LEN KEY=VALUE\n", where LEN counts itself. */
static void put_record(struct buf *out, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, digits = 1;
	while (digits_of(rest + digits) > digits)
		digits++;
	buf_printf(out, "%zu %s=%s\n", rest + digits, key, value);
}

/* Splits at a slash so that both parts fit; false: no way. */
static bool split_name(struct str whole, struct str *prefix, struct str *name)
{
	*prefix = (struct str){ "", 0 };
	*name = whole;
	if (whole.len <= fields[NAME].len)
		return true;
	for (size_t i = whole.len - 1; i > 0; i--)
		if (i <= fields[PREFIX].len && i + 1 < whole.len && whole.data[i] == '/' &&
			whole.len - i - 1 <= fields[NAME].len) {
			*prefix = (struct str){ whole.data, i };
			*name = (struct str){ whole.data + i + 1, whole.len - i - 1 };
			return true;
		}
	return false;
}

static void put_extra(struct buf *out, const struct buf *records)
{
	static const struct tar_entry extra = { .mode = 0644 };
	put_block(out, 'x', STR(""), STR("pax"), STR(""), &extra, records->len);
	buf_append(out, records->data, records->len);
	tar_write_padding(out, records->len);
}

static struct str tar_cut(struct str text, size_t max)
{
	return text.len > max ? (struct str){ text.data, max } : text;
}

/* Version 1.0: the map lies before the data, in whole blocks. */
static void put_map(struct buf *map, const struct tar_entry *entry)
{
	/* A hole at the end is an empty region there, for readers that expect one. */
	buf_printf(map, "%zu\n", entry->region_count + 1);
	for (size_t i = 0; i < entry->region_count; i++)
		buf_printf(map, "%llu\n%llu\n", (unsigned long long)entry->regions[i].offset,
			(unsigned long long)entry->regions[i].len);
	buf_printf(map, "%llu\n0\n", (unsigned long long)entry->size);
	tar_write_padding(map, map->len);
}

static uint64_t stored_size(const struct tar_entry *entry, const struct buf *map)
{
	uint64_t size = entry->kind == TAR_FILE ? entry->size : 0;
	if (!entry->is_sparse)
		return size;
	size = map->len;
	for (size_t i = 0; i < entry->region_count; i++)
		size += entry->regions[i].len;
	return size;
}

static void put_number(struct buf *out, const char *key, long long number)
{
	char text[32];
	str_format(text, sizeof text, "%lld", number);
	put_record(out, key, text);
}

static void put_sparse(struct buf *records, const struct tar_entry *entry)
{
	put_record(records, "GNU.sparse.major", "1");
	put_record(records, "GNU.sparse.minor", "0");
	put_record(records, "GNU.sparse.name", entry->name);
	put_number(records, "GNU.sparse.realsize", (long long)entry->size);
}

int tar_write_entry(struct buf *out, const struct tar_entry *entry, struct error *err)
{
	static const char types[] = {
		[TAR_FILE] = '0', [TAR_DIRECTORY] = '5', [TAR_SYMLINK] = '2', [TAR_HARDLINK] = '1'
	};
	struct str whole = str_from(entry->name), prefix, name;
	struct str link = str_from(entry->link ? entry->link : "");
	auto_buf struct buf records = buf_empty(TAR_EXTRA_MAX);
	auto_buf struct buf map = buf_empty(TAR_EXTRA_MAX);
	if (entry->is_sparse)
		put_map(&map, entry);
	uint64_t size = stored_size(entry, &map);
	if (whole.len > TAR_NAME_MAX || link.len > TAR_NAME_MAX)
		return fail(err, ERR_LIMIT, "the name '%.60s...' is too long for an archive",
			entry->name);
	bool has_room = split_name(whole, &prefix, &name);
	if (!has_room || link.len > fields[LINK].len) {
		/* Names are bytes: without this record readers would take them for UTF-8. */
		put_record(&records, "hdrcharset", "BINARY");
		put_record(&records, "path", entry->name);
		if (link.len)
			put_record(&records, "linkpath", entry->link);
	}
	if (entry->is_sparse)
		put_sparse(&records, entry);
	if (size > OCTAL_12_MAX)
		put_number(&records, "size", (long long)size);
	if (entry->modified_s < 0 || entry->modified_s > (int64_t)OCTAL_12_MAX)
		put_number(&records, "mtime", entry->modified_s);
	if (records.len)
		put_extra(out, &records);
	if (!has_room)
		name = tar_cut(name, fields[NAME].len);
	put_block(out, types[entry->kind], prefix, name, tar_cut(link, fields[LINK].len), entry,
		size > OCTAL_12_MAX ? 0 : size);
	buf_append(out, map.data, map.len);
	return 0;
}

void tar_write_padding(struct buf *out, uint64_t size)
{
	static const char zeros[TAR_BLOCK];
	if (size % TAR_BLOCK)
		buf_append(out, zeros, TAR_BLOCK - size % TAR_BLOCK);
}

void tar_write_end(struct buf *out)
{
	static const char zeros[2 * TAR_BLOCK];
	buf_append(out, zeros, sizeof zeros);
}

void tar_reader_init(struct tar_reader *reader)
{
	*reader = (struct tar_reader){ 0 };
	buf_init(&reader->extra, TAR_EXTRA_MAX);
	buf_init(&reader->name, TAR_NAME_MAX);
	buf_init(&reader->link, TAR_NAME_MAX);
	buf_init(&reader->sparse.map, TAR_EXTRA_MAX);
	buf_init(&reader->attributes, TAR_EXTRA_MAX);
}

void tar_reader_done(struct tar_reader *reader)
{
	buf_done(&reader->extra);
	buf_done(&reader->name);
	buf_done(&reader->link);
	buf_done(&reader->sparse.map);
	buf_done(&reader->attributes);
}

static struct str field_text(const char *block, enum field field)
{
	const char *text = block + fields[field].at;
	return (struct str){ text, strnlen(text, fields[field].len) };
}

/* Octal digits with blanks or NULs around them, or GNU's base 256: first bit set, big-endian. */
static bool number_at(const char *text, size_t len, int64_t *value)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t i = 0;
	if (at[0] & 0x80) {
		/* Two's complement; the sign is the second bit. */
		uint64_t number = at[0] & 0x40 ? ~(uint64_t)0x3f | at[0] : at[0] & 0x3f;
		for (i = 1; i < len; i++) {
			if (number >> 55 != 0 && number >> 55 != 0x1ff)
				return false;
			number = number << 8 | at[i];
		}
		*value = (int64_t)number;
		return true;
	}
	uint64_t number = 0;
	while (i < len && at[i] == ' ')
		i++;
	for (; i < len && at[i] >= '0' && at[i] <= '7'; i++)
		number = number << 3 | (unsigned)(at[i] - '0'); /* at most 12 digits: 36 bits */
	for (; i < len; i++)
		if (at[i] && at[i] != ' ')
			return false;
	*value = (int64_t)number;
	return true;
}

static bool field_number(const char *block, enum field field, int64_t *value)
{
	return number_at(block + fields[field].at, fields[field].len, value);
}

static int tar_corrupt(struct error *err, const char *what)
{
	return fail(err, ERR_CORRUPT, "the archive is damaged: %s", what);
}

static int too_long(struct error *err)
{
	return fail(err, ERR_LIMIT, "a name in the archive is longer than %d bytes", TAR_NAME_MAX);
}

static int set_text(struct buf *to, bool *has, struct str text, struct error *err)
{
	buf_clear(to);
	if (memchr(text.data, 0, text.len))
		return tar_corrupt(err, "a name with a NUL byte");
	if (!buf_append(to, text.data, text.len))
		return too_long(err);
	*has = true;
	return 0;
}

/* Seconds, perhaps with a sign and a fraction, which doesn't count. */
static bool parse_time(struct str text, int64_t *seconds)
{
	uint64_t number;
	struct str whole, fraction;
	bool is_negative = text.len && text.data[0] == '-';
	str_cut((struct str){ text.data + is_negative, text.len - is_negative }, '.', &whole,
		&fraction);
	if (!str_to_u64(whole, &number) || number > INT64_MAX)
		return false;
	*seconds = is_negative ? -(int64_t)number : (int64_t)number;
	return true;
}

/* Version 1.0 says so, its name and size; the rest lies before the data. */
static int take_sparse_record(
	struct tar_reader *reader, struct str key, struct str value, struct error *err)
{
	if (str_is(key, "GNU.sparse.name")) {
		reader->sparse.has_name = true;
		return set_text(&reader->name, &reader->has_name, value, err);
	}
	if (str_is(key, "GNU.sparse.realsize")) {
		reader->sparse.is_asked = true;
		return str_to_u64(value, &reader->sparse.real) && reader->sparse.real <= INT64_MAX
			       ? 0
			       : tar_corrupt(err, "an invalid size");
	}
	if ((str_is(key, "GNU.sparse.major") && str_is(value, "1")) ||
		(str_is(key, "GNU.sparse.minor") && str_is(value, "0")))
		return 0;
	return fail(err, ERR_UNAVAILABLE, "the archive has sparse files in an unsupported form");
}

/* The name of an extended attribute, as star and libarchive write them. */
static bool take_attribute(struct tar_reader *reader, struct str key)
{
	static const char *const prefixes[] = { "SCHILY.xattr.", "LIBARCHIVE.xattr." };
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		size_t len = strlen(prefixes[i]);
		if (!str_starts_with(key, prefixes[i]))
			continue;
		buf_append(&reader->attributes, key.data + len, key.len - len);
		buf_char(&reader->attributes, 0);
		return true;
	}
	return false;
}

static int take_record(
	struct tar_reader *reader, struct str key, struct str value, struct error *err)
{
	if (take_attribute(reader, key))
		return 0;
	if (str_is(key, "path")) /* of a sparse file it is a made-up one */
		return reader->sparse.has_name
			       ? 0
			       : set_text(&reader->name, &reader->has_name, value, err);
	if (str_is(key, "linkpath"))
		return set_text(&reader->link, &reader->has_link, value, err);
	if (str_starts_with(key, "GNU.sparse."))
		return take_sparse_record(reader, key, value, err);
	if (str_is(key, "size")) {
		if (!str_to_u64(value, &reader->size) || reader->size > INT64_MAX)
			return tar_corrupt(err, "an invalid size");
		reader->has_size = true;
	}
	if (str_is(key, "mtime")) {
		if (!parse_time(value, &reader->modified_s))
			return tar_corrupt(err, "an invalid time");
		reader->has_time = true;
	}
	return 0;
}

/* Records "LEN KEY=VALUE\n" one after the other. */
static int take_records(struct tar_reader *reader, struct error *err)
{
	struct str rest = { reader->extra.data, reader->extra.len };
	while (rest.len) {
		struct str number, tail, key, value;
		uint64_t len;
		if (!str_cut(rest, ' ', &number, &tail) || !str_to_u64(number, &len) ||
			len <= number.len + 2 || len > rest.len || rest.data[len - 1] != '\n')
			return tar_corrupt(err, "an invalid pax header");
		struct str record = { tail.data, (size_t)len - number.len - 2 };
		if (!str_cut(record, '=', &key, &value))
			return tar_corrupt(err, "an invalid pax header");
		if (take_record(reader, key, value, err))
			return -1;
		rest = (struct str){ rest.data + len, rest.len - (size_t)len };
	}
	return 0;
}

/* All of an extra header is in reader->extra. */
static int take_extra(struct tar_reader *reader, struct error *err)
{
	struct str text = { reader->extra.data, strnlen(reader->extra.data, reader->extra.len) };
	reader->is_extra = false;
	switch (reader->extra_type) {
	case 'x':
		return take_records(reader, err);
	case 'L':
		return set_text(&reader->name, &reader->has_name, text, err);
	case 'K':
		return set_text(&reader->link, &reader->has_link, text, err);
	default: /* 'g': global headers, which are ignored */
		return 0;
	}
}

static bool is_zero(const char *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

static enum tar_kind kind_of(char type, struct str name)
{
	switch (type) {
	case '1':
		return TAR_HARDLINK;
	case '2':
		return TAR_SYMLINK;
	case '5':
		return TAR_DIRECTORY;
	case '0':
	case 0:
	case '7':
	case 'S': /* GNU's: a sparse one */
		/* Before there was a type for directories, a slash said it. */
		return !type && name.len && name.data[name.len - 1] == '/' ? TAR_DIRECTORY
									   : TAR_FILE;
	default:
		return TAR_OTHER;
	}
}

static int name_entry(struct tar_reader *reader, struct error *err)
{
	const char *block = reader->block;
	if (!reader->has_name) {
		/* GNU's own format has other things where ustar has the prefix. */
		bool is_ustar = !memcmp(block + fields[MAGIC].at, "ustar", 6);
		struct str prefix = is_ustar ? field_text(block, PREFIX) : (struct str){ "", 0 };
		struct str name = field_text(block, NAME);
		buf_clear(&reader->name);
		if (prefix.len)
			buf_printf(&reader->name, "%.*s/", (int)prefix.len, prefix.data);
		buf_append(&reader->name, name.data, name.len);
	}
	if (!reader->has_link) {
		struct str link = field_text(block, LINK);
		buf_clear(&reader->link);
		buf_append(&reader->link, link.data, link.len);
	}
	if (!reader->name.len)
		return tar_corrupt(err, "an entry without a name");
	reader->entry.name = reader->name.data;
	reader->entry.link = reader->link.len ? reader->link.data : NULL;
	return 0;
}

/* An entry that an extra header called sparse. */
static int begin_sparse(struct tar_reader *reader, struct error *err)
{
	struct tar_sparse *sparse = &reader->sparse;
	bool is_asked = sparse->is_asked;
	sparse->is_asked = sparse->has_name = sparse->is_data = sparse->is_map = false;
	if (!is_asked)
		return 0;
	if (reader->entry.kind != TAR_FILE)
		return tar_corrupt(err, "a sparse entry that is not a regular file");
	buf_clear(&sparse->map);
	reader->entry.size = sparse->real;
	sparse->is_map = true;
	sparse->has_count = sparse->has_digit = false;
	sparse->number = sparse->at = 0;
	sparse->awaits = 1;
	return 0;
}

/* The map is whole: regions in order, within the file, and as many bytes as follow. */
static int check_map(const struct tar_reader *reader, uint64_t stored, struct error *err)
{
	const uint64_t *map = (const uint64_t *)(const void *)reader->sparse.map.data;
	size_t count = reader->sparse.map.len / sizeof *map;
	uint64_t end = 0, sum = 0;
	for (size_t i = 0; i + 1 < count; i += 2) {
		if (map[i] < end || map[i] > reader->sparse.real ||
			map[i + 1] > reader->sparse.real - map[i])
			return tar_corrupt(err, "a sparse file with an invalid map");
		end = map[i] + map[i + 1];
		sum += map[i + 1];
	}
	return sum == stored ? 0
			     : tar_corrupt(err, "a sparse file whose size differs from its map");
}

/* GNU's own form: regions in the header, and in blocks that follow it. `at`: `count` of them, then
 * whether there are more. */
static int take_old_regions(
	struct tar_reader *reader, const char *at, size_t count, struct error *err)
{
	struct buf *map = &reader->sparse.map;
	int64_t numbers[2];
	for (size_t i = 0; i < count && at[i * 24]; i++) {
		if (!number_at(at + i * 24, 12, &numbers[0]) || numbers[0] < 0 ||
			!number_at(at + i * 24 + 12, 12, &numbers[1]) || numbers[1] < 0)
			return tar_corrupt(err, "a sparse file with an invalid map");
		if (!buf_append(map, numbers, sizeof numbers))
			return fail(err, ERR_LIMIT, "a sparse file has too many parts");
	}
	reader->sparse.is_extended = at[count * 24];
	return reader->sparse.is_extended ? 0 : check_map(reader, reader->left, err);
}

static int begin_old_sparse(struct tar_reader *reader, struct error *err)
{
	struct tar_sparse *sparse = &reader->sparse;
	int64_t real;
	if (!number_at(reader->block + OLD_REAL_AT, 12, &real) || real < 0)
		return tar_corrupt(err, "an invalid size");
	buf_clear(&sparse->map);
	sparse->real = reader->entry.size = (uint64_t)real;
	sparse->is_data = true;
	sparse->at = 0;
	return take_old_regions(reader, reader->block + OLD_REGIONS_AT, OLD_REGIONS, err);
}

/* A whole header block. Returns TAR_ENTRY, or TAR_MORE when it said something about the next one.
 */
static int take_header(struct tar_reader *reader, struct error *err)
{
	int64_t sum, mode, size, modified_s;
	const char *block = reader->block;
	if (!field_number(block, CHECKSUM, &sum) || sum != sum_of(block))
		return fail(err, ERR_CORRUPT, "not a tar archive, or a damaged one");
	if (!field_number(block, MODE, &mode) || !field_number(block, SIZE, &size) || size < 0 ||
		!field_number(block, TIME, &modified_s))
		return tar_corrupt(err, "an invalid number");
	char type = block[fields[TYPE].at];
	if (reader->is_named) {
		buf_clear(&reader->attributes);
		reader->is_named = false;
	}
	if (strchr("xgLK", type) && type) {
		if ((uint64_t)size > TAR_EXTRA_MAX)
			return fail(err, ERR_LIMIT, "a header in the archive is too long");
		reader->is_extra = true;
		reader->extra_type = type;
		buf_clear(&reader->extra);
		reader->left = (uint64_t)size;
	} else {
		if (name_entry(reader, err))
			return -1;
		struct tar_entry *entry = &reader->entry;
		entry->kind = kind_of(type, (struct str){ reader->name.data, reader->name.len });
		bool has_data = entry->kind == TAR_FILE || entry->kind == TAR_OTHER;
		entry->size = !has_data ? 0 : reader->has_size ? reader->size : (uint64_t)size;
		entry->mode = (unsigned)mode & 07777;
		entry->modified_s = reader->has_time ? reader->modified_s : modified_s;
		reader->left = entry->size;
		reader->offset = reader->next_offset = 0;
		if (begin_sparse(reader, err) || (type == 'S' && begin_old_sparse(reader, err)))
			return -1;
		reader->has_name = reader->has_link = reader->has_size = reader->has_time = false;
		reader->is_named = true;
	}
	reader->padding = (size_t)(-reader->left % TAR_BLOCK);
	return reader->is_extra ? TAR_MORE : TAR_ENTRY;
}

static struct str tar_take(struct str *input, uint64_t most)
{
	struct str taken = { input->data, input->len < most ? input->len : (size_t)most };
	input->data += taken.len;
	input->len -= taken.len;
	return taken;
}

/* Decimal numbers, one a line, then zeros up to the next block: their count of pairs, and the
 * pairs. */
static int take_map(struct tar_reader *reader, struct str *input, struct error *err)
{
	struct tar_sparse *sparse = &reader->sparse;
	while (input->len && reader->left && sparse->awaits) {
		char c = tar_take(input, 1).data[0];
		reader->left--;
		if (c >= '0' && c <= '9' && sparse->number <= INT64_MAX / 10 - 1) {
			sparse->number = sparse->number * 10 + (unsigned)(c - '0');
			sparse->has_digit = true;
			continue;
		}
		if (c != '\n' || !sparse->has_digit)
			return tar_corrupt(err, "a sparse file with an invalid map");
		sparse->awaits--;
		if (!sparse->has_count)
			sparse->awaits = sparse->number * 2;
		else if (!buf_append(&sparse->map, &sparse->number, sizeof sparse->number))
			return fail(err, ERR_LIMIT, "a sparse file has too many parts");
		sparse->has_count = true;
		sparse->has_digit = false;
		sparse->number = 0;
	}
	if (sparse->awaits)
		return reader->left ? 0 : tar_corrupt(err, "a sparse file with an incomplete map");
	/* What is stored is whole blocks long only together with the padding. */
	uint64_t rest = (reader->left + reader->padding) % TAR_BLOCK;
	if (rest > reader->left)
		return tar_corrupt(err, "a sparse file with an incomplete map");
	if (rest) {
		reader->left -= tar_take(input, rest).len;
		return 0;
	}
	sparse->is_map = false;
	sparse->is_data = true;
	return check_map(reader, reader->left, err);
}

/* The region that comes next, and at most what is left of it. */
static struct str take_region(struct tar_reader *reader, struct str *input)
{
	const uint64_t *map = (const uint64_t *)(const void *)reader->sparse.map.data;
	size_t *at = &reader->sparse.at;
	while (!map[*at + 1] || reader->next_offset >= map[*at] + map[*at + 1])
		*at += 2;
	if (reader->next_offset < map[*at])
		reader->next_offset = map[*at];
	return tar_take(input, map[*at] + map[*at + 1] - reader->next_offset);
}

/* What an entry or an extra header has; *is_out: *data is to be given out. */
static int take_data(struct tar_reader *reader, struct str *input, struct str *data, bool *is_out,
	struct error *err)
{
	struct str piece = reader->sparse.is_data && !reader->is_extra
				   ? take_region(reader, input)
				   : tar_take(input, reader->left);
	reader->left -= piece.len;
	reader->offset = reader->next_offset;
	reader->next_offset += piece.len;
	*is_out = !reader->is_extra;
	*data = piece;
	if (reader->is_extra) {
		buf_append(&reader->extra, piece.data, piece.len);
		if (!reader->left)
			return take_extra(reader, err);
	}
	return 0;
}

int tar_read(struct tar_reader *reader, struct str *input, struct str *data, struct error *err)
{
	while (reader->zeros < 2) {
		/* An empty extra header says nothing, but has to be taken note of. */
		if (reader->is_extra && !reader->left && take_extra(reader, err))
			return -1;
		if (!input->len)
			return TAR_MORE;
		if (reader->sparse.is_map) {
			if (take_map(reader, input, err))
				return -1;
			continue;
		}
		if (reader->left && !reader->sparse.is_extended) {
			bool is_out;
			if (take_data(reader, input, data, &is_out, err))
				return -1;
			if (is_out)
				return TAR_DATA;
			continue;
		}
		if (reader->padding && !reader->sparse.is_extended) {
			reader->padding -= tar_take(input, reader->padding).len;
			continue;
		}
		struct str piece = tar_take(input, TAR_BLOCK - reader->have);
		memcpy(reader->block + reader->have, piece.data, piece.len);
		reader->have += piece.len;
		if (reader->have < TAR_BLOCK)
			continue;
		reader->have = 0;
		if (reader->sparse.is_extended) {
			if (take_old_regions(reader, reader->block, OLD_MORE_REGIONS, err))
				return -1;
			continue;
		}
		if (is_zero(reader->block)) {
			reader->zeros++;
			continue;
		}
		reader->zeros = 0;
		int step = take_header(reader, err);
		if (step != TAR_MORE)
			return step;
	}
	*input = (struct str){ input->data + input->len, 0 };
	return TAR_END;
}

int tar_reader_finish(const struct tar_reader *reader, struct error *err)
{
	return reader->zeros == 2 ? 0 : fail(err, ERR_CORRUPT, "the archive is truncated");
}
