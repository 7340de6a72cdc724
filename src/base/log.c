#include <linux/fs.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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

static struct str cut(const char *text, size_t most)
{
	size_t len = strnlen(text, most + 1);
	if (len > most) {
		/* Not through a character, if it is text at all. */
		for (len = most; len && len + 3 > most && (text[len] & 0xc0) == 0x80; len--)
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

static void add_field(struct buf *line, bool json, const char *key, struct str value)
{
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

/* Values are cut to `most` bytes. */
static void format(struct buf *line, const struct log *log, enum log_level level,
	const char *message, va_list fields, size_t most)
{
	char now[32];
	const char *key;
	buf_clear(line);
	clock_format_now(now);
	if (log->json) {
		buf_printf(line, "{\"time\":\"%s\",\"level\":\"%s\"", now, log_level_names[level]);
		add_field(line, true, "message", cut(message, most));
	} else {
		char shown[VALUE_MAX];
		str_printable(shown, sizeof shown, cut(message, most));
		buf_printf(line, "%s %-5s %s", now, log_level_names[level], shown);
	}
	if (log->role)
		add_field(line, log->json, "role", str_from(log->role));
	while ((key = va_arg(fields, const char *))) {
		const char *value = va_arg(fields, const char *);
		add_field(line, log->json, key, cut(value ? value : "", most));
	}
	buf_text(line, log->json ? "}\n" : "\n");
}

/* As much as fits, without waiting and without a change to the open file, which others may share.
 * Before Linux 6.4, and for a terminal, another process may fill what there was room for. */
static ssize_t write_now(int fd, const char *data, size_t len)
{
	struct iovec part = { (void *)data, len };
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return write(fd, data, len);
	if (S_ISSOCK(st.st_mode))
		return send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	ssize_t done = syscall(SYS_pwritev2, fd, &part, 1, -1L, -1L, RWF_NOWAIT);
	if (done >= 0 || errno == EAGAIN)
		return done;
	return poll(&ready, 1, 0) == 1 ? write(fd, data, len) : -1;
}

/* One write, so that records of several processes don't mix; what fits into PIPE_BUF is written
 * whole or not at all. */
static bool put(const struct log *log, enum log_level level, const char *message, va_list fields)
{
	size_t most = VALUE_MAX;
	auto_buf struct buf line = buf_empty(BUF_MAX_DEFAULT);
	do {
		va_list again;
		va_copy(again, fields);
		format(&line, log, level, message, again, most);
		va_end(again);
		most -= most / 8 + 1;
	} while (line.len > PIPE_BUF && most > 1);
	return write_now(log->fd, line.data, line.len) == (ssize_t)line.len;
}

static bool say_lost(const struct log *log, ...)
{
	va_list fields;
	va_start(fields, log);
	bool is_said = put(log, LOG_LEVEL_WARN, "log lines were lost", fields);
	va_end(fields);
	return is_said;
}

void log_record(const struct log *log, enum log_level level, const char *message, ...)
{
	struct log_losses *losses = log->losses;
	va_list fields;
	if (level < log->least)
		return;
	if (losses && losses->unsaid) {
		char count[24];
		str_format(count, sizeof count, "%llu", (unsigned long long)losses->unsaid);
		if (say_lost(log, "count", count, (const char *)NULL))
			losses->unsaid = 0;
	}
	va_start(fields, message);
	bool is_written = !(losses && losses->unsaid) && put(log, level, message, fields);
	va_end(fields);
	if (!is_written && losses) {
		losses->unsaid++;
		losses->ever++;
	}
}
