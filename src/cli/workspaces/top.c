/* carrel top: what workspaces use, once or again and again. */
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "cli/columns.h"
#include "cli/workspaces/workspace_names.h"
#include "format/text/quantity.h"
#include "linux/pty.h"

#define INTERVAL_MS 1000
#define INTERVAL_MOST_MS 3600000
#define FIRST_MS 250 /* between the two looks whose difference is the first share of a cpu */

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int signo)
{
	is_interrupted = 1;
}

typedef VEC(const struct json_value *) item_list;
struct top {
	struct command *command;
	struct arena arena; /* of one look */
	item_list items;
	struct workspace_names names;
};

static void add_item(void *ctx, const struct json_value *item)
{
	struct top *top = ctx;
	vec_push(&top->arena, &top->items, item);
}

static double percent_of(const struct json_value *item)
{
	const struct json_value *percent = json_member(item, "cpu_percent");
	return percent && percent->kind == JSON_NUMBER ? percent->number : -1;
}

static int compare_busiest(const void *a, const void *b)
{
	const struct json_value *first = *(const struct json_value *const *)a,
				*second = *(const struct json_value *const *)b;
	double difference = percent_of(second) - percent_of(first);
	const char *names[2] = { json_member_text(first, "name"),
		json_member_text(second, "name") };
	if (difference > 0 || difference < 0)
		return difference > 0 ? 1 : -1;
	return names[0] && names[1] ? strcmp(names[0], names[1]) : 0;
}

/* Of those that are named, or of all; names keep their order. */
static int look(struct top *top, struct error *err)
{
	struct remote *remote = &top->command->remote;
	const text_list *names = &top->command->operands;
	arena_done(&top->arena);
	top->arena = (struct arena){ 0 };
	top->items = (item_list){ 0 };
	remote->arena = &top->arena;
	for (size_t i = 0; i < names->count; i++) {
		struct remote_answer answer;
		if (remote_call(remote, "GET",
			    remote_workspace_path(remote, names->items[i], "/metrics"), NULL,
			    &answer, err))
			return -1;
		add_item(top, answer.value);
	}
	if (!names->count && remote_each(remote, "/v1/metrics", add_item, top, err))
		return -1;
	if (!top->command->json && workspace_names_read(&top->names, remote, true, err))
		return -1;
	if (!names->count && top->items.count)
		qsort(top->items.items, top->items.count, sizeof *top->items.items,
			compare_busiest);
	return 0;
}

/* "12M / 2.0G"; without a limit only the first. */
static const char *of_limit(struct arena *arena, const struct json_value *item, const char *key,
	const char *limit_key, bool is_size)
{
	uint64_t value = 0, limit = 0;
	char texts[2][16];
	json_member_u64(item, key, &value);
	bool has_limit = json_member_u64(item, limit_key, &limit) && limit;
	if (!is_size)
		return has_limit ? arena_printf(arena, "%llu / %llu", (unsigned long long)value,
					   (unsigned long long)limit)
				 : arena_printf(arena, "%llu", (unsigned long long)value);
	quantity_format_size(texts[0], value);
	quantity_format_size(texts[1], limit);
	return has_limit ? arena_printf(arena, "%s / %s", texts[0], texts[1])
			 : arena_text(arena, texts[0]);
}

static void add_row(
	struct columns *columns, const struct workspace_names *names, const struct json_value *item)
{
	struct arena *arena = columns->arena;
	bool is_warm = json_member_true(item, "warm");
	double percent = percent_of(item);
	uint64_t execs = 0;
	json_member_u64(item, "execs", &execs);
	columns_add(columns,
		(const char *[]){
			workspace_names_find(names, item, "id", json_member_text(item, "name")),
			json_member_text(item, "state"),
			is_warm && percent >= 0 ? arena_printf(arena, "%.1f", percent) : NULL,
			is_warm ? of_limit(arena, item, "memory_bytes", "memory_limit_bytes", true)
				: NULL,
			is_warm ? of_limit(arena, item, "pids", "pids_limit", false) : NULL,
			of_limit(arena, item, "disk_usage_bytes", "disk_limit_bytes", true),
			arena_printf(arena, "%llu", (unsigned long long)execs) });
}

static void print_table(struct top *top, size_t most, struct buf *out)
{
	static const char *const heads[] = { "NAME", "STATE", "CPU %", "MEMORY", "PIDS", "DISK",
		"EXECS" };
	struct columns columns = { .count = 7, .numbers = 0x7c, .arena = &top->arena };
	columns_add(&columns, heads);
	for (size_t i = 0; i < top->items.count && i < most; i++)
		add_row(&columns, &top->names, top->items.items[i]);
	columns_print(&columns, out);
	if (top->items.count > most)
		buf_printf(out, "%zu more\n", top->items.count - most);
}

/* Over what was shown before: each line is cleared behind its end, and all below the last. */
static int show_screen(struct top *top, struct error *err)
{
	struct pty_size size = { 24, 80 };
	struct error ignored;
	auto_buf struct buf table = buf_empty(BUF_MAX_DEFAULT), out = buf_empty(BUF_MAX_DEFAULT);
	pty_get_size(STDOUT_FILENO, &size, &ignored);
	print_table(top, size.rows > 3 ? size.rows - 3u : 1, &table);
	buf_text(&out, "\033[H");
	struct str rest = { table.data, table.len }, line;
	while (str_next(&rest, '\n', &line))
		buf_printf(&out, "%.*s\033[K\n", (int)line.len, line.data);
	buf_text(&out, "\033[J");
	return cli_print(&out, err);
}

/* Keys come one by one and unseen while this process is in the foreground of its terminal. */
struct keys {
	struct termios found;
	bool is_set;
};

static bool is_foreground(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void keys_begin(struct keys *keys)
{
	struct termios set;
	if (!is_foreground() || (!keys->is_set && tcgetattr(STDIN_FILENO, &keys->found)))
		return;
	set = keys->found;
	set.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys->is_set = !tcsetattr(STDIN_FILENO, TCSANOW, &set);
}

static void keys_end(struct keys *keys)
{
	if (keys->is_set && is_foreground())
		tcsetattr(STDIN_FILENO, TCSANOW, &keys->found);
}

/* Waits until the time is over. true: a key that leaves was typed. */
static bool wait_for_key(struct keys *keys, int time_ms)
{
	uint64_t end_ms = clock_monotonic_ms() + (uint64_t)time_ms;
	char typed[64];
	while (!is_interrupted) {
		uint64_t now_ms = clock_monotonic_ms();
		struct pollfd key = { keys->is_set && is_foreground() ? STDIN_FILENO : -1, POLLIN,
			0 };
		if (now_ms >= end_ms || poll(&key, 1, (int)(end_ms - now_ms)) < 0)
			return false;
		if (!key.revents)
			continue;
		ssize_t got = read(STDIN_FILENO, typed, sizeof typed);
		keys->is_set &= got > 0;
		if (got > 0 && (memchr(typed, 'q', (size_t)got) || memchr(typed, 'Q', (size_t)got)))
			return true;
	}
	return false;
}

static int watch(struct top *top, struct keys *keys, struct error *err)
{
	const struct sigaction action = { .sa_handler = on_interrupt };
	uint64_t wanted_ms = top->command->options.interval_ms;
	int interval_ms = wanted_ms > INTERVAL_MOST_MS ? INTERVAL_MOST_MS
			  : wanted_ms		       ? (int)wanted_ms
						       : INTERVAL_MS;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGQUIT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	(void)!fd_write_full(STDOUT_FILENO, "\033[2J", 4);
	poll(NULL, 0, FIRST_MS);
	while (!is_interrupted) {
		if (look(top, err) || show_screen(top, err))
			return -1;
		keys_begin(keys);
		if (wait_for_key(keys, interval_ms))
			break;
	}
	return 0;
}

static int print_once(struct top *top, struct error *err)
{
	struct command *command = top->command;
	poll(NULL, 0, FIRST_MS);
	if (look(top, err))
		return -1;
	if (!command->json) {
		print_table(top, SIZE_MAX, &command->out);
		return 0;
	}
	json_array(&command->value, NULL);
	for (size_t i = 0; i < top->items.count; i++)
		json_copy(&command->value, NULL, top->items.items[i]);
	json_end(&command->value);
	return 0;
}

static int run_top(struct command *command, struct error *err)
{
	struct top top = { .command = command };
	bool is_live = isatty(STDOUT_FILENO) && !command->json && !command->options.once;
	struct keys keys = { .is_set = false };
	int failed = look(&top, err) || (is_live ? watch(&top, &keys, err) : print_once(&top, err));
	keys_end(&keys);
	command->remote.arena = &command->arena;
	arena_done(&top.arena);
	return failed ? -1 : 0;
}

static const struct arg_option table[] = {
	{ 0, "once", ARG_FLAG, AT(once), NULL, "print the table once, also on a terminal" },
	{ 0, "interval", ARG_DURATION, AT(interval_ms), "TIME",
		"time between two tables on a terminal (default 1s)", NULL, 200 },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_top = {
	.command = "top",
	.summary = "show what workspaces use: cpu, memory, processes, disk",
	.group = GROUP_WORKSPACES,
	.usage = "[NAME...] [options]",
	.about = "Shows the current usage of workspaces, the busiest first: percent of one cpu, "
		 "memory, processes and threads, bytes on disk as last measured, and running "
		 "commands. On a terminal again every second until q or Ctrl-C, else once.",
	ARG_TABLE(table),
	.examples = "  carrel top\n"
		    "  carrel top demo -o json\n",
	.run = run_top,
};
