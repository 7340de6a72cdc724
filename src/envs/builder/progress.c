#include "envs/builder/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "format/text/quantity.h"

#define GIB ((uint64_t)1 << 30)
#define DRAW_MS 100
#define RATE_MS 500
#define BAR_WIDTH 24
#define WIDTH_LEAST 20

/* Statuses of events.h and how they are shown. */
static const struct {
	const char *phase, *words;
} names[] = {
	{ "fetching_uv", "fetching uv" },
	{ "fetching_wheels", "fetching wheels" },
	{ "resolving", "resolving" },
	{ "building_env", "making the environment" },
	{ "installing_deps", "installing" },
	{ "building_wheels", "building" },
	{ "building_layers", "storing" },
	{ "verifying", "verifying" },
	{ "running_python", "running Python" },
	{ "running_node", "running Node" },
	{ "running_scripts", "running scripts" },
	{ "fetching_tools", "fetching tools" },
	{ "ready", "ready" },
};

static const char *words_of(const char *phase)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i].phase, phase))
			return names[i].words;
	return phase;
}

void progress_init(struct progress *progress, enum progress_kind kind, int fd)
{
	*progress = (struct progress){ .kind = kind, .fd = fd };
}

enum progress_kind progress_kind_for(int fd)
{
	const char *terminal = getenv("TERM");
	if (isatty(fd) && terminal && terminal[0] && strcmp(terminal, "dumb"))
		return PROGRESS_BAR;
	return PROGRESS_LINES;
}

static void print_bar(struct buf *out, uint64_t done, uint64_t total)
{
	uint64_t filled = done < total ? BAR_WIDTH * done / total : BAR_WIDTH;
	buf_text(out, " [");
	for (uint64_t i = 0; i < BAR_WIDTH; i++)
		buf_char(out, i < filled ? '#' : '.');
	buf_char(out, ']');
}

/* Cuts the line to the terminal's width: a wrapped line can't be redrawn. */
static void cut_line(struct buf *out, size_t start, unsigned width)
{
	if (out->len - start > width) {
		out->len = start + width;
		out->data[out->len] = 0;
	}
}

static void print_rate(struct buf *out, const char *before, uint64_t bytes, double rate)
{
	char size[16], speed[16];
	quantity_format_size(size, bytes);
	buf_printf(out, "%s%s", before, size);
	if (rate < 1)
		return;
	quantity_format_size(speed, (uint64_t)rate);
	buf_printf(out, ", %s/s", speed);
}

void progress_print(struct buf *out, const char *phase, uint64_t done, uint64_t total,
	uint64_t bytes, double rate, unsigned width)
{
	size_t start = out->len;
	buf_text(out, words_of(phase));
	if (total) {
		print_bar(out, done, total);
		buf_printf(out, " %" PRIu64 "/%" PRIu64 " packages", done, total);
	}
	if (bytes)
		print_rate(out, total ? ", " : " ", bytes, rate);
	cut_line(out, start, width);
}

void progress_print_unpacked(struct buf *out, uint64_t bytes, uint64_t limit)
{
	char size[16], most[16];
	if (!bytes || !limit)
		return;
	quantity_format_size(size, bytes);
	quantity_format_size(most, limit);
	buf_printf(out, ", %s of %s unpacked", size, most);
}

void progress_print_bytes(struct buf *out, const char *phase, uint64_t bytes, uint64_t total,
	double rate, unsigned width)
{
	size_t start = out->len;
	buf_text(out, words_of(phase));
	if (total) {
		print_bar(out, bytes, total);
		buf_printf(out, " %3.0f%%,", 100.0 * (double)bytes / (double)total);
	}
	print_rate(out, " ", bytes, rate);
	cut_line(out, start, width);
}

static unsigned width_of(int fd)
{
	struct winsize size;
	if (ioctl(fd, TIOCGWINSZ, &size) || size.ws_col < WIDTH_LEAST)
		return 79;
	return size.ws_col - 1u;
}

static void count_rate(struct progress *progress, uint64_t bytes, uint64_t now_ms)
{
	uint64_t past_ms = now_ms - progress->rate_from_ms;
	if (!progress->rate_from_ms || bytes < progress->rate_from_bytes)
		progress->rate = 0;
	else if (past_ms < RATE_MS)
		return;
	else
		progress->rate =
			(double)(bytes - progress->rate_from_bytes) * 1000 / (double)past_ms;
	progress->rate_from_ms = now_ms;
	progress->rate_from_bytes = bytes;
}

static void draw(struct progress *progress, const struct buf *text)
{
	auto_buf struct buf line = buf_empty(4096);
	if (progress->kind == PROGRESS_LINES)
		buf_printf(&line, "carrel: %s\n", words_of(progress->phase));
	else
		buf_printf(&line, "\r\033[K%s", text->data);
	(void)!fd_write_full(progress->fd, line.data, line.len);
}

/* Updates the rate and the phase; true when a line is to be drawn now. */
static bool is_due(struct progress *progress, const char *phase, uint64_t bytes)
{
	uint64_t now_ms = clock_monotonic_ms();
	bool is_new = strcmp(progress->phase, phase) != 0;
	count_rate(progress, bytes, now_ms);
	if (progress->kind == PROGRESS_NONE ||
		(!is_new && (progress->kind == PROGRESS_LINES ||
				    now_ms - progress->shown_ms < DRAW_MS)))
		return false;
	str_copy(progress->phase, sizeof progress->phase, phase);
	progress->shown_ms = now_ms;
	return true;
}

void progress_show(
	struct progress *progress, const char *phase, uint64_t done, uint64_t total, uint64_t bytes)
{
	auto_buf struct buf text = buf_empty(4096);
	if (!is_due(progress, phase, bytes))
		return;
	progress_print(&text, progress->phase, done, total, bytes, progress->rate, UINT_MAX);
	progress_print_unpacked(&text, progress->unpacked, progress->unpacked_limit);
	cut_line(&text, 0, width_of(progress->fd));
	draw(progress, &text);
}

void progress_show_count(struct progress *progress, const char *phase, uint64_t done,
	uint64_t total, const char *unit)
{
	auto_buf struct buf text = buf_empty(4096);
	if (!is_due(progress, phase, 0))
		return;
	buf_text(&text, phase);
	print_bar(&text, done, total);
	buf_printf(&text, " %" PRIu64 "/%" PRIu64 " %s", done, total, unit);
	cut_line(&text, 0, width_of(progress->fd));
	draw(progress, &text);
}

void progress_show_bytes(
	struct progress *progress, const char *phase, uint64_t bytes, uint64_t total)
{
	auto_buf struct buf text = buf_empty(4096);
	if (!is_due(progress, phase, bytes))
		return;
	progress_print_bytes(
		&text, progress->phase, bytes, total, progress->rate, width_of(progress->fd));
	draw(progress, &text);
}

void progress_unpacked(struct progress *progress, uint64_t bytes, uint64_t limit)
{
	auto_buf struct buf text = buf_empty(256);
	progress->unpacked = bytes;
	progress->unpacked_limit = limit;
	if (progress->kind != PROGRESS_LINES || bytes < progress->unpacked_reported + GIB)
		return;
	buf_text(&text, words_of(progress->phase));
	progress_print_unpacked(&text, bytes, limit);
	progress_say(progress, text.data);
	progress->unpacked_reported = bytes - bytes % GIB;
}

void progress_say(struct progress *progress, const char *text)
{
	auto_buf struct buf line = buf_empty(4096);
	if (progress->kind == PROGRESS_NONE)
		return;
	buf_printf(&line, "%scarrel: %s\n",
		progress->kind == PROGRESS_BAR && progress->shown_ms ? "\r\033[K" : "", text);
	(void)!fd_write_full(progress->fd, line.data, line.len);
	progress->shown_ms = 0; /* draw the next update at once */
}

void progress_clear(struct progress *progress)
{
	if (progress->kind == PROGRESS_BAR && progress->shown_ms)
		(void)!fd_write_full(progress->fd, "\r\033[K", 4);
	progress->shown_ms = 0;
}

void progress_finish(struct progress *progress)
{
	progress_clear(progress);
	progress->kind = PROGRESS_NONE;
}
