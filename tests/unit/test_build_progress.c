/* What a build says of its progress, and what of it becomes events. */
#include "core/packages/build_progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "core/internal.h"
#include "unit.h"

#define LINE(stage, done) "{\"event\":\"" stage "\",\"packages_done\":" done ",\"packages\":3}\n"

static void only_stages_and_numbers_are_read(void **state)
{
	static const char *const bad[] = { "", "{", "[]", "7", "null", "{\"event\":\"resolving\"}",
		"{\"event\":\"resolving\",\"packages_done\":1}",
		"{\"event\":\"resolving\",\"packages_done\":-1,\"packages\":2}",
		"{\"event\":\"resolving\",\"packages_done\":\"1\",\"packages\":2}",
		"{\"event\":7,\"packages_done\":1,\"packages\":2}",
		"{\"event\":\"\",\"packages_done\":1,\"packages\":2}",
		"{\"event\":\"a\\u001b[2J\",\"packages_done\":1,\"packages\":2}",
		"{\"event\":\"a\\nb\",\"packages_done\":1,\"packages\":2}",
		"{\"event\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"packages_done\":1,\"packages\":"
		"2}",
		"{\"packages_done\":1,\"packages\":2}" };
	struct build_stage stage;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(build_stage_read(str_from(bad[i]), &stage));
	assert_true(build_stage_read(STR("{\"event\":\"installing_deps\",\"venv\":\"x\",\"packages_"
					 "done\":1,\"packages\":2,"
					 "\"bytes\":18446744073709551615}"),
		&stage));
	assert_string_equal(stage.name, "installing_deps");
	assert_int_equal(stage.done, 1);
	assert_int_equal(stage.total, 2);
	assert_true(stage.bytes == UINT64_MAX || stage.bytes == 0);
}

struct fixture {
	struct core core;
	struct core_workspace w;
	struct build_progress *progress;
	int writer;
	struct journal_listener listener;
	char heard[8192];
	int count;
};

static void hear(void *ctx, const struct event *event)
{
	struct fixture *f = ctx;
	assert_string_equal(event->type, "environment.progress");
	snprintf(f->heard, sizeof f->heard, "%.*s", (int)event->json.len, event->json.data);
	f->count++;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct error err;
	*state = f;
	f->w.core = &f->core;
	str_copy(f->w.model.id, sizeof f->w.model.id, "0123456789abcdefghij");
	f->w.model.name = "demo";
	journal_init(&f->core.journal, 1);
	f->listener = (struct journal_listener){ hear, f, NULL };
	return loop_new(&f->core.loop, &err) ||
	       build_progress_open(&f->w, "request", &f->progress, &f->writer, &err);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	fd_close(&f->writer);
	journal_done(&f->core.journal);
	loop_free(f->core.loop);
	free(f);
	return 0;
}

static void write_text(struct fixture *f, const char *text)
{
	assert_int_equal(fd_write_full(f->writer, text, strlen(text)), strlen(text));
}

static void what_is_in_the_pipe_at_the_end_is_told(void **state)
{
	struct fixture *f = *state;
	journal_listen(&f->core.journal, &f->listener, 0);
	write_text(f, "not JSON\n" LINE("resolving", "0") LINE("resolving", "1"));
	write_text(f, LINE("installing_deps", "2") "{\"event\":\"cut");
	build_progress_close(f->progress);
	assert_int_equal(f->count, 2); /* the second of one stage came too early */
	assert_non_null(
		strstr(f->heard, "\"workspace\":\"0123456789abcdefghij\",\"name\":\"demo\""));
	assert_non_null(strstr(f->heard,
		"\"stage\":\"installing_deps\",\"packages_done\":2,\"packages\":3,\"bytes\":0,"
		"\"request_id\":\"request\"}"));
}

static void a_long_line_is_passed_over(void **state)
{
	struct fixture *f = *state;
	char *text = malloc(20001);
	journal_listen(&f->core.journal, &f->listener, 0);
	memset(text, 'x', 20000);
	text[20000] = 0;
	write_text(f, text);
	write_text(f, LINE("resolving", "0") LINE("ready", "3"));
	build_progress_close(f->progress);
	free(text);
	assert_int_equal(f->count, 1);
	assert_non_null(strstr(f->heard, "\"stage\":\"ready\""));
}

static void the_number_of_events_is_limited(void **state)
{
	struct fixture *f = *state;
	journal_listen(&f->core.journal, &f->listener, 0);
	for (int i = 0; i < 400; i++)
		write_text(f, i % 2 ? LINE("a", "0") : LINE("b", "0"));
	build_progress_close(f->progress);
	assert_int_equal(f->count, 64);
}

static void nothing_is_told_to_nobody(void **state)
{
	struct fixture *f = *state;
	write_text(f, LINE("resolving", "0"));
	build_progress_close(f->progress);
	assert_int_equal(f->core.journal.next, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_stages_and_numbers_are_read),
		cmocka_unit_test_setup_teardown(
			what_is_in_the_pipe_at_the_end_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_long_line_is_passed_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_number_of_events_is_limited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_told_to_nobody, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
