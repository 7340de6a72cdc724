#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#define VALUE_MAX 4096

const char *const log_level_names[] = { "debug", "info", "warn", "error", NULL };

enum log_level log_level_of(const char *name, enum log_level otherwise)
{
	for (int level = 0; log_level_names[level]; level++)
		if (!strcmp(log_level_names[level], name))
			return (enum log_level)level;
	return otherwise;
}

static struct str cut(const char *text)
{
	size_t len = strnlen(text, VALUE_MAX + 1);

	if (len > VALUE_MAX) {
		/* Not through a character, if it is text at all. */
		for (len = VALUE_MAX; len > VALUE_MAX - 3 && (text[len] & 0xc0) == 0x80; len--)
			;
	}
	return (struct str){ text, len };
}

static bool is_plain(struct str value)
{
	for (size_t i = 0; i < value.len; i++) {
		char c = value.data[i];
		bool is_alnum =
			(c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!is_alnum && (c == '\0' || !strchr("_-+./:,@%", c)))
			return false;
	}
	return value.len > 0;
}

static void add_field(struct buf *line, bool json, const char *key, const char *text)
{
	struct str value = cut(text);

	if (json) {
		buf_char(line, ',');
		buf_quoted(line, str_from(key));
		buf_char(line, ':');
		buf_quoted(line, value);
	} else {
		buf_printf(line, " %s=", key);
		if (is_plain(value))
			buf_append(line, value.data, value.len);
		else
			buf_quoted(line, value);
	}
}

void log_record(const struct log *log, enum log_level level, const char *message, ...)
{
	auto_buf struct buf line = { 0 };
	char now[32];
	va_list fields;
	const char *key;

	if (level < log->least)
		return;
	buf_init(&line, BUF_MAX_DEFAULT);
	clock_format_now(now);
	if (log->json) {
		buf_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\"", now, log_level_names[level]);
		add_field(&line, true, "message", message);
	} else {
		char shown[VALUE_MAX];

		str_printable(shown, sizeof shown, str_from(message));
		buf_printf(&line, "%s %-5s %s", now, log_level_names[level], shown);
	}
	if (log->role)
		add_field(&line, log->json, "role", log->role);
	va_start(fields, message);
	while ((key = va_arg(fields, const char *))) {
		const char *value = va_arg(fields, const char *);

		add_field(&line, log->json, key, value ? value : "");
	}
	va_end(fields);
	buf_text(&line, log->json ? "}\n" : "\n");
	/* One write, so that records of several processes don't mix; where it fails there is nobody
	 * left to tell. */
	(void)!write(log->fd, line.data, line.len);
}
