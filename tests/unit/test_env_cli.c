/* What `carrel env` shows while it works, and what it makes of a command line. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "cli/columns.h"
#include "cli/environments/env.h"
#include "envs/builder/progress.h"
#include "unit.h"

static void assert_line(const char *expected, const char *phase, uint64_t done, uint64_t total,
	uint64_t bytes, double rate, unsigned width)
{
	auto_buf struct buf out;
	buf_init(&out, 1000);
	progress_print(&out, phase, done, total, bytes, rate, width);
	assert_string_equal(out.data, expected);
}

static void a_line_has_phase_bar_packages_bytes_and_rate(void **state)
{
	assert_line("resolving", "resolving", 0, 0, 0, 0, 100);
	assert_line("resolving 1.0M, 512K/s", "resolving", 0, 0, 1 << 20, 1 << 19, 100);
	assert_line("installing [........................] 0/14 packages, 900, 12/s",
		"installing_deps", 0, 14, 900, 12, 100);
}

static void a_bar_is_full_at_the_end_and_never_fuller(void **state)
{
	assert_line("storing [############............] 7/14 packages", "building_layers", 7, 14, 0,
		0, 100);
	assert_line("storing [########################] 15/14 packages, 37M", "building_layers", 15,
		14, 37 << 20, 0, 100);
}

static void what_is_unpacked_is_shown_with_its_limit(void **state)
{
	auto_buf struct buf out;
	buf_init(&out, 1000);
	progress_print_unpacked(&out, 0, 1 << 20);
	assert_int_equal(out.len, 0);
	progress_print_unpacked(&out, (uint64_t)5 << 30, (uint64_t)12 << 30);
	assert_string_equal(out.data, ", 5.0G of 12G unpacked");
}

static void a_line_is_no_wider_than_the_terminal(void **state)
{
	assert_line("storing [###", "building_layers", 7, 14, 0, 0, 12);
}

/* What a sequence of steps writes to a pipe. */
static void assert_written(enum progress_kind kind, const char *expected)
{
	struct progress progress;
	char text[4096];
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	progress_init(&progress, kind, ends[1]);
	for (int i = 0; i < 3; i++)
		progress_show(&progress, "resolving", 0, 0, 0);
	progress_show(&progress, "a phase of a later version, witth a very long name", 0, 0, 0);
	progress_finish(&progress);
	progress_show(&progress, "ready", 0, 0, 0);
	close(ends[1]);
	ssize_t len = fd_read_full(ends[0], text, sizeof text - 1);
	close(ends[0]);
	assert_true(len >= 0);
	text[len] = 0;
	assert_string_equal(text, expected);
}

static void a_phase_is_shown_once(void **state)
{
	assert_written(PROGRESS_NONE, "");
	assert_written(
		PROGRESS_LINES, "carrel: resolving\ncarrel: a phase of a later version, wit\n");
	assert_written(
		PROGRESS_BAR, "\r\033[Kresolving\r\033[Ka phase of a later version, wit\r\033[K");
}

static void only_a_terminal_gets_a_bar(void **state)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(progress_kind_for(null), PROGRESS_LINES);
}

static void ages_are_in_their_largest_unit(void **state)
{
	static const struct {
		const char *time, *expected;
	} rows[] = {
		{ "2026-01-02T00:00:00.000Z", "now" },
		{ "2026-01-01T23:59:59.000Z", "1s ago" },
		{ "2026-01-01T20:59:59.000Z", "3h ago" },
		{ "2025-12-30T00:00:00.000Z", "3d ago" },
		{ "2023-12-30T00:00:00.000Z", "2y ago" },
		{ "2026-01-03T00:00:00.000Z", "now" }, /* a clock was set back */
		{ "nonsense", "-" },
		{ NULL, "-" },
	};
	int64_t now;
	assert_true(env_time_parse("2026-01-02T00:00:00.000Z", &now));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[32];
		columns_format_age(text, rows[i].time, now);
		assert_string_equal(text, rows[i].expected);
	}
}

/* What carrel understood is what carrel-build is told. */
static void options_survive_their_printing(void **state)
{
	static const char *const given[] = { "build", "-r", "a b.txt", "--pip", "x>=1", "--pip",
		"-y", "--python=3.12", "--index", "http://index.example", "--extra-index", "e1",
		"--extra-index", "e2", "--trusted-host", "h", "--require-hashes", "--allow-build",
		"--editable", "p", "--system-site-packages", "--rebuild", "--no-cache", "--timeout",
		"1.5s" };
	struct options first = { 0 }, second = { 0 };
	auto_arena struct arena arena;
	text_list operands = { 0 }, words = { 0 };
	struct error err;
	bool help;
	arena_init(&arena);
	assert_int_equal(args_parse_mixed(&env_build_spec, sizeof given / sizeof *given,
				 (char **)given, &first, &arena, &operands, &help, &err),
		0);
	vec_push(&arena, &words, "build");
	args_print_given(&env_build_spec, &first, &arena, &words);
	assert_int_equal(args_parse_mixed(&env_build_spec, (int)words.count, (char **)words.items,
				 &second, &arena, &operands, &help, &err),
		0);
	assert_int_equal(operands.count, 0);
	assert_string_equal(second.env.requirement_files.items[0], "a b.txt");
	assert_int_equal(second.env.pip.count, 2);
	assert_string_equal(second.env.pip.items[1], "-y");
	assert_string_equal(second.env.python, "3.12");
	assert_string_equal(second.env.index.index, "http://index.example");
	assert_int_equal(second.env.index.extra.count, 2);
	assert_string_equal(second.env.index.trusted_hosts.items[0], "h");
	assert_string_equal(second.env.editables.items[0], "p");
	assert_true(second.env.require_hashes && second.env.allow_build && second.env.rebuild &&
		    second.env.no_cache && second.env.system_site_packages);
	assert_int_equal(second.build_timeout_ms, 1500);
	assert_true(env_request_asks(&second.env, ENV_KIND_PYTHON));
	assert_false(env_request_asks(&(struct env_request){ 0 }, ENV_KIND_PYTHON));
}

static void paths_become_absolute(void **state)
{
	struct options options = { 0 };
	struct env_request request;
	auto_arena struct arena arena;
	struct error err;
	arena_init(&arena);
	assert_int_equal(chdir("/usr"), 0);
	vec_push(&arena, &options.env.requirement_files, "x/../r.txt");
	vec_push(&arena, &options.env.editables, "./lib");
	assert_int_equal(env_options_fill(&options, "a", &arena, &request, &err), 0);
	assert_string_equal(request.requirement_files.items[0], "/usr/r.txt");
	assert_string_equal(request.editables.items[0], "/usr/lib");
}

static void a_transfer_shows_how_much_of_it_is_done(void **state)
{
	auto_buf struct buf out;
	buf_init(&out, 4096);
	progress_print_bytes(&out, "copying", 3 << 20, 4 << 20, 1 << 20, 79);
	assert_string_equal(out.data, "copying [##################......]  75%, 3.0M, 1.0M/s");
	buf_clear(&out);
	progress_print_bytes(&out, "copying", 512, 0, 0, 79);
	assert_string_equal(out.data, "copying 512");
	buf_clear(&out);
	progress_print_bytes(&out, "copying", 3 << 20, 4 << 20, 1 << 20, 20);
	assert_int_equal(out.len, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transfer_shows_how_much_of_it_is_done),
		cmocka_unit_test(a_line_has_phase_bar_packages_bytes_and_rate),
		cmocka_unit_test(a_bar_is_full_at_the_end_and_never_fuller),
		cmocka_unit_test(what_is_unpacked_is_shown_with_its_limit),
		cmocka_unit_test(a_line_is_no_wider_than_the_terminal),
		cmocka_unit_test(a_phase_is_shown_once),
		cmocka_unit_test(only_a_terminal_gets_a_bar),
		cmocka_unit_test(ages_are_in_their_largest_unit),
		cmocka_unit_test(options_survive_their_printing),
		cmocka_unit_test(paths_become_absolute),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
