#include "format/text/procfs.h"

bool procfs_parse_stat(struct str text, struct procfs_stat *out)
{
	enum { STATE = 3, PPID = 4, UTIME = 14, STIME, CUTIME, CSTIME, START = 22, COUNT };
	const char *open = text.len > 0 ? memchr(text.data, '(', text.len) : NULL;
	/* The last one: a process may call itself "x) R 1 (". No field after comm has one. */
	const char *close = text.len > 0 ? memrchr(text.data, ')', text.len) : NULL;
	struct str rest, fields[COUNT];
	struct procfs_stat stat;
	uint64_t pid, ppid;
	if (!open || !close || close < open)
		return false;
	rest = str_trim((struct str){ close + 1, (size_t)(text.data + text.len - close - 1) });
	for (int i = STATE; i < COUNT; i++) {
		if (!str_next(&rest, ' ', &fields[i]))
			return false;
	}
	if (!str_to_u64(str_trim((struct str){ text.data, (size_t)(open - text.data) }), &pid) ||
		!str_to_u64(fields[PPID], &ppid) || pid > INT_MAX || ppid > INT_MAX ||
		fields[STATE].len != 1)
		return false;
	if (!str_to_u64(fields[UTIME], &stat.utime_ticks) ||
		!str_to_u64(fields[STIME], &stat.stime_ticks) ||
		!str_to_u64(fields[CUTIME], &stat.cutime_ticks) ||
		!str_to_u64(fields[CSTIME], &stat.cstime_ticks) ||
		!str_to_u64(fields[START], &stat.start_ticks))
		return false;
	stat.pid = (int)pid;
	stat.ppid = (int)ppid;
	stat.state = fields[STATE].data[0];
	*out = stat;
	return true;
}

/* Takes the next word off *rest, after any blanks. false when there is none. */
static bool next_word(struct str *rest, struct str *word)
{
	*rest = str_trim(*rest);
	size_t len = 0;
	while (len < rest->len && rest->data[len] != ' ' && rest->data[len] != '\t')
		len++;
	*word = (struct str){ rest->data, len };
	rest->data += len;
	rest->len -= len;
	return len > 0;
}

bool procfs_find_kb(struct str text, const char *key, uint64_t *kb)
{
	struct str line, name, rest, number, unit;
	while (str_next(&text, '\n', &line)) {
		uint64_t value;
		if (!str_cut(line, ':', &name, &rest) || !str_is(name, key))
			continue;
		if (!next_word(&rest, &number) || !next_word(&rest, &unit) || !str_is(unit, "kB") ||
			!str_to_u64(number, &value))
			return false;
		*kb = value;
		return true;
	}
	return false;
}

bool procfs_find_number(struct str text, const char *key, uint64_t *value)
{
	struct str line, name, number;
	if (!key)
		return str_to_u64(str_trim(text), value);
	while (str_next(&text, '\n', &line)) {
		if (str_cut(line, ' ', &name, &number) && str_is(name, key))
			return str_to_u64(str_trim(number), value);
	}
	return false;
}

/* "36 35 98:0 /root /target rw,noatime shared:1 master:2 - type source rw" */
static bool parse_mount(struct str line, struct procfs_mount *out)
{
	struct procfs_mount mount = { 0 };
	struct str skipped, field;
	for (int i = 0; i < 3; i++) {
		if (!str_next(&line, ' ', &skipped))
			return false;
	}
	if (!str_next(&line, ' ', &mount.root) || !str_next(&line, ' ', &mount.target) ||
		!str_next(&line, ' ', &mount.options))
		return false;
	do {
		if (!str_next(&line, ' ', &field))
			return false;
		mount.is_shared |= str_starts_with(field, "shared:");
	} while (!str_is(field, "-"));
	/* The source may be empty, and is then between two spaces. */
	if (!str_next(&line, ' ', &mount.type) ||
		!str_cut(line, ' ', &mount.source, &mount.super_options))
		return false;
	*out = mount;
	return true;
}

bool procfs_next_mount(struct str *rest, struct procfs_mount *out)
{
	struct str line;
	while (str_next(rest, '\n', &line)) {
		if (parse_mount(line, out))
			return true;
	}
	return false;
}

bool procfs_next_cgroup(struct str *rest, struct procfs_cgroup *out)
{
	struct procfs_cgroup cgroup;
	struct str line, tail;
	while (str_next(rest, '\n', &line)) {
		if (!str_cut(line, ':', &cgroup.hierarchy, &tail) ||
			!str_cut(tail, ':', &cgroup.controllers, &cgroup.path))
			continue;
		*out = cgroup;
		return true;
	}
	return false;
}

bool procfs_next_id_range(struct str *rest, struct procfs_id_range *out)
{
	struct str line, inside, outside, count;
	struct procfs_id_range range;
	while (str_next(rest, '\n', &line)) {
		if (!next_word(&line, &inside) || !next_word(&line, &outside) ||
			!next_word(&line, &count))
			continue;
		if (str_trim(line).len > 0 || !str_to_u64(inside, &range.inside) ||
			!str_to_u64(outside, &range.outside) || !str_to_u64(count, &range.count))
			continue;
		*out = range;
		return true;
	}
	return false;
}

bool procfs_has_word(struct str words, const char *word)
{
	struct str piece;
	while (str_next(&words, ',', &piece)) {
		if (str_is(piece, word))
			return true;
	}
	return false;
}

/* Eight hexadecimal digits are four bytes, in the order of this machine. */
static bool read_address(struct str text, uint8_t out[16])
{
	if (text.len != 8 && text.len != 32)
		return false;
	memset(out, 0, 16);
	for (size_t at = 0; at < text.len; at += 8) {
		uint32_t word = 0;
		for (size_t i = 0; i < 8; i++) {
			int digit = str_hex_digit(text.data[at + i]);
			if (digit < 0)
				return false;
			word = word << 4 | (uint32_t)digit;
		}
		memcpy(out + at / 2, &word, sizeof word);
	}
	return true;
}

static bool read_port(struct str text, uint16_t *port)
{
	unsigned value = 0;
	for (size_t i = 0; i < text.len; i++) {
		int digit = str_hex_digit(text.data[i]);
		if (digit < 0 || text.len != 4)
			return false;
		value = value << 4 | (unsigned)digit;
	}
	*port = (uint16_t)value;
	return value > 0;
}

/* "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …" */
static bool read_listener(struct str line, struct procfs_listener *out)
{
	enum { LOCAL = 1, STATE = 3, INODE = 9, COUNT };
	struct str words[COUNT], address, port;
	struct procfs_listener listener;
	for (int i = 0; i < COUNT; i++)
		if (!next_word(&line, &words[i]))
			return false;
	if (!str_is(words[STATE], "0A") || !str_cut(words[LOCAL], ':', &address, &port) ||
		!read_address(address, listener.address) || !read_port(port, &listener.port) ||
		!str_to_u64(words[INODE], &listener.inode))
		return false;
	*out = listener;
	return true;
}

bool procfs_next_listener(struct str *rest, struct procfs_listener *out)
{
	struct str line;
	while (str_next(rest, '\n', &line))
		if (read_listener(line, out))
			return true;
	return false;
}
