/* Events: each listener is told each one once, in order, whatever the listeners do meanwhile. */
#include "core/journal.h"

#include <stdio.h>
#include <string.h>
#include "base/str.h"
#include "unit.h"

#define FIRST 100

struct hearer {
	struct journal *journal;
	struct journal_listener listener;
	char heard[200]; /* the last two digits of the ids, a blank behind each */
	uint64_t emits_at, leaves_at;
	struct hearer *joins, *drops; /* at emits_at */
};

static void emit(struct journal *journal)
{
	journal_emit(journal, "workspace.ready", "id", "name", NULL);
}

static void hear(void *ctx, const struct event *event)
{
	struct hearer *h = ctx;
	size_t len = strlen(h->heard);
	snprintf(h->heard + len, sizeof h->heard - len, "%u ", (unsigned)(event->id % 100));
	if (event->id == h->emits_at) {
		emit(h->journal);
		emit(h->journal);
		if (h->joins)
			journal_listen(h->journal, &h->joins->listener, FIRST);
		if (h->drops)
			journal_unlisten(h->journal, &h->drops->listener);
	}
	if (event->id == h->leaves_at)
		journal_unlisten(h->journal, &h->listener);
}

struct fixture {
	struct journal journal;
	struct hearer a, b, c;
};

static int set_up(void **state)
{
	struct fixture *f = test_calloc(1, sizeof *f);
	journal_init(&f->journal, FIRST);
	struct hearer *all[] = { &f->a, &f->b, &f->c };
	for (int i = 0; i < 3; i++)
		*all[i] = (struct hearer){ .journal = &f->journal,
			.listener = { .fn = hear, .ctx = all[i] } };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	journal_done(&f->journal);
	test_free(f);
	return 0;
}

static void a_nested_event_reaches_every_listener_once_and_in_order(void **state)
{
	struct fixture *f = *state;
	f->b.emits_at = FIRST;
	journal_listen(&f->journal, &f->c.listener, 0);
	journal_listen(&f->journal, &f->b.listener, 0);
	journal_listen(&f->journal, &f->a.listener, 0); /* a is told before b, c after it */
	emit(&f->journal);
	emit(&f->journal);
	assert_string_equal(f->a.heard, "0 1 2 3 ");
	assert_string_equal(f->b.heard, "0 1 2 3 ");
	assert_string_equal(f->c.heard, "0 1 2 3 ");
}

static void who_begins_to_listen_inside_a_callback_gets_what_is_kept_once(void **state)
{
	struct fixture *f = *state;
	f->a.emits_at = FIRST + 1;
	f->a.joins = &f->c;
	journal_listen(&f->journal, &f->a.listener, 0);
	journal_listen(&f->journal, &f->b.listener, 0);
	emit(&f->journal);
	emit(&f->journal);
	assert_string_equal(f->a.heard, "0 1 2 3 ");
	assert_string_equal(f->b.heard, "0 1 2 3 ");
	assert_string_equal(f->c.heard, "1 2 3 ");
}

static void who_leaves_inside_a_callback_hears_no_more(void **state)
{
	struct fixture *f = *state;
	f->a.emits_at = FIRST;
	f->a.drops = &f->b; /* the next one */
	f->c.leaves_at = FIRST + 1;
	journal_listen(&f->journal, &f->c.listener, 0);
	journal_listen(&f->journal, &f->b.listener, 0);
	journal_listen(&f->journal, &f->a.listener, 0);
	emit(&f->journal);
	assert_string_equal(f->a.heard, "0 1 2 ");
	assert_string_equal(f->b.heard, "");
	assert_string_equal(f->c.heard, "0 1 ");
}

static void kept_events_are_told_before_new_ones_that_they_cause(void **state)
{
	struct fixture *f = *state;
	emit(&f->journal);
	emit(&f->journal);
	emit(&f->journal);
	f->a.emits_at = FIRST + 1;
	journal_listen(&f->journal, &f->a.listener, FIRST);
	assert_string_equal(f->a.heard, "1 2 3 4 ");
	journal_listen(&f->journal, &f->b.listener, FIRST + 99); /* of a later run's ids */
	emit(&f->journal);
	assert_string_equal(f->b.heard, "5 ");
}

static void what_is_no_longer_kept_is_left_out(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < JOURNAL_KEPT + 3; i++)
		emit(&f->journal);
	f->a.leaves_at = FIRST + 3;
	journal_listen(&f->journal, &f->a.listener, FIRST);
	assert_string_equal(f->a.heard, "3 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_nested_event_reaches_every_listener_once_and_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			who_begins_to_listen_inside_a_callback_gets_what_is_kept_once, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			who_leaves_inside_a_callback_hears_no_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			kept_events_are_told_before_new_ones_that_they_cause, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_is_no_longer_kept_is_left_out, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
