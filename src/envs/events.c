#include "envs/events.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "format/text/json.h"

#define LOG_DIRECTORY "audit"
#define LOG_NAME LOG_DIRECTORY "/envs.jsonl"
#define LOG_NAME_OLD LOG_DIRECTORY "/envs.jsonl.1"
#define LOG_MAX ((off_t)16 << 20)
#define EVENT_MAX ((size_t)4 << 20)

/* The log for appending, after a rotation if it is due. When two processes rotate at once, the
 * second finds that the file it has locked is no longer the log, and begins again. */
static int open_log(int home)
{
	for (int tries = 0; tries < 8; tries++) {
		int fd = path_open_nolinks(
			home, LOG_NAME, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
		struct stat st, there;
		if (fd < 0 && errno == ENOENT && !mkdirat(home, LOG_DIRECTORY, 0700))
			continue;
		if (fd < 0 || fstat(fd, &st) || st.st_size < LOG_MAX)
			return fd;
		bool is_ours = !flock(fd, LOCK_EX) &&
			       !fstatat(home, LOG_NAME, &there, AT_SYMLINK_NOFOLLOW) &&
			       there.st_ino == st.st_ino;
		if (is_ours && renameat(home, LOG_NAME, home, LOG_NAME_OLD))
			return fd;
		fd_close(&fd);
	}
	return -1;
}

/* A log that can't be written doesn't end a build: the caller gets the same information. */
static void append_log(const struct home *home, struct str line)
{
	home_enter(home);
	auto_close int fd = open_log(home->dir);
	home_leave(home);
	/* One write a line: lines of two processes don't mix. */
	if (fd >= 0)
		(void)!write(fd, line.data, line.len);
}

static void begin(struct json *j, struct buf *out, const char *event, const char *venv)
{
	buf_init(out, EVENT_MAX);
	*j = json_to(out, false);
	json_object(j, NULL);
	json_text(j, "event", event);
	json_text(j, "venv", venv);
}

static void end(struct json *j, const char *level)
{
	char now[32];
	clock_format_now(now);
	json_text(j, "level", level);
	json_text(j, "time", now);
	json_end(j);
	json_finish(j);
	buf_char(j->out, '\n');
}

static void emit(const struct events *events, struct json *j, const char *level, bool keep)
{
	end(j, level);
	struct str line = { j->out->data, j->out->len };
	if (keep && events->home)
		append_log(events->home, line);
	if (events->sink >= 0)
		(void)!fd_write_full(events->sink, line.data, line.len);
}

/* An event whose fields are all texts. `fields` ends with one that has no key. */
static void emit_texts(const struct events *events, const char *event, const char *venv,
	const char *level, const struct text_pair *fields)
{
	auto_buf struct buf out;
	struct json j;
	begin(&j, &out, event, venv);
	for (; fields->key; fields++)
		json_text(&j, fields->key, fields->value);
	emit(events, &j, level, true);
}

void events_status(const struct events *events, const char *status, const char *venv)
{
	emit_texts(events, status, venv, "info", (struct text_pair[]){ { 0 } });
}

void events_progress(const struct events *events, const char *status, const char *venv,
	uint64_t packages_done, uint64_t packages, uint64_t bytes, double bytes_per_second)
{
	auto_buf struct buf out;
	struct json j;
	begin(&j, &out, status, venv);
	json_u64(&j, "packages_done", packages_done);
	json_u64(&j, "packages", packages);
	json_u64(&j, "bytes", bytes);
	json_real(&j, "bytes_per_second", bytes_per_second);
	emit(events, &j, "info", false);
}

void events_creating(const struct events *events, const struct env_meta *meta)
{
	emit_texts(events, "Creating virtual environment", meta->name, "info",
		(struct text_pair[]){ { "package_id", meta->package_id },
			{ "requirements_sha256", meta->requirements_sha256 }, { 0 } });
}

void events_installing(const struct events *events, const char *venv, const char *requirements_file)
{
	emit_texts(events, "Installing dependencies", venv, "info",
		(struct text_pair[]){ { "requirements_file", requirements_file }, { 0 } });
}

/* The seed's fields, and from where it was installed: the audit record of a build. */
void events_installed(const struct events *events, const struct env_meta *meta, double seconds)
{
	auto_buf struct buf out;
	struct json j;
	auto_buf struct buf pin = buf_empty(EVENT_MAX);
	begin(&j, &out, "Dependencies installed successfully", meta->name);
	json_real(&j, "duration_seconds", seconds);
	json_array(&j, "installed_packages");
	for (size_t i = 0; i < meta->packages.count; i++) {
		buf_clear(&pin);
		buf_printf(
			&pin, "%s==%s", meta->packages.items[i].key, meta->packages.items[i].value);
		json_text(&j, NULL, pin.data);
	}
	json_end(&j);
	json_texts(&j, "indexes", &meta->indexes);
	emit(events, &j, "info", true);
}

void events_reused(const struct events *events, const struct env_meta *meta, double age_hours)
{
	auto_buf struct buf out;
	struct json j;
	begin(&j, &out, "Reusing existing venv", meta->name);
	json_real(&j, "age_hours", age_hours);
	emit(events, &j, "info", true);
}

void events_evicted(const struct events *events, const struct env_meta *meta, const char *reason)
{
	emit_texts(events, "Evicting venv", meta->name, "info",
		(struct text_pair[]){
			{ "reason", reason }, { "last_used", meta->last_used_at }, { 0 } });
}

void events_retrying(const struct events *events, const char *venv, int attempt, int attempts)
{
	auto_buf struct buf out;
	struct json j;
	begin(&j, &out, "retrying", venv);
	json_u64(&j, "attempt", (uint64_t)attempt);
	json_u64(&j, "attempts", (uint64_t)attempts);
	emit(events, &j, "warning", true);
}

void events_failed(const struct events *events, const char *venv, const char *code,
	const char *package, const struct error *why)
{
	emit_texts(events, "failed", venv, "error",
		(struct text_pair[]){ { "code", code }, { "package", package },
			{ "message", why->text }, { "hint", why->hint[0] ? why->hint : NULL },
			{ 0 } });
}
