/* The process that writes for the store: it hangs, it dies, and nobody waits for it who needn't. */
#include "store_fixture.h"

static void one_that_is_killed_is_replaced_and_the_commit_done_again(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	put_workspace(f, 1);
	store_flush(f->store);
	/* In the middle: it has the batch, or part of it, and nobody knows how far it came. */
	kill(f->writer, SIGSTOP);
	put_workspace(f, 2);
	put_exec(f, 1, 2);
	store_remove(f->store, &store_execs, "e0000000000000000009", NULL, on_done, f);
	store_begin(f->store);
	put_workspace(f, 3); /* the next commit */
	store_begin(f->store);
	store_go_on(f->store);
	assert_string_equal(f->acks, ".");
	kill(f->writer, SIGKILL);
	store_flush(f->store);
	assert_string_equal(f->acks, ".....");
	assert_int_equal(f->started, 2);
	/* While it had nothing to do. */
	kill(f->writer, SIGKILL);
	put_workspace(f, 4);
	store_flush(f->store);
	assert_string_equal(f->acks, "......");
	assert_int_equal(f->started, 3);
	load(f);
	assert_int_equal(f->workspaces, 4);
	assert_int_equal(f->execs, 1);
}

static void a_commit_that_hangs_holds_up_nobody_and_what_comes_meanwhile_is_one(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	const char *why;
	int64_t at_ms;

	open_store(f);
	store_remove(f->store, &store_workspaces, "a0000000000000000009",
		&(struct store_gone){ "gone", "rm" }, on_done, f);
	store_flush(f->store);
	kill(f->writer, SIGSTOP);
	put_workspace(f, 1);
	store_begin(f->store);
	for (int i = 2; i <= 20; i++) {
		put_workspace(f, i);
		store_begin(f->store);
		store_go_on(f->store);
	}
	assert_string_equal(f->acks, ".");
	assert_true(store_find_gone(f->store, "gone", &arena, &why, &at_ms));
	load(f);
	assert_int_equal(f->workspaces, 0);
	kill(f->writer, SIGCONT);
	store_flush(f->store);
	assert_string_equal(f->acks, ".....................");
	assert_int_equal(f->committed, 3);
	assert_int_equal(f->started, 1);
}

static void a_batch_larger_than_the_socket_is_sent_in_pieces(void **state)
{
	struct fixture *f = *state;
	auto_arena struct arena arena = { 0 };
	struct workspace w = make_workspace(&arena, 1);
	char *text = calloc(1, (1 << 20) + 1);

	open_store(f);
	memset(text, 'x', 1 << 20);
	w.requirements = text;
	kill(f->writer, SIGSTOP);
	for (int i = 1; i <= 8; i++) {
		number_id(w.id, 'a', i);
		w.name = arena_printf(&arena, "large-%d", i);
		store_put(f->store, &store_workspaces, &w, on_done, f);
	}
	store_begin(f->store); /* returns */
	kill(f->writer, SIGCONT);
	store_flush(f->store);
	assert_string_equal(f->acks, "........");
	load(f);
	assert_int_equal(f->workspaces, 8);
	assert_in_range(f->loaded.len, 8 << 20, 9 << 20);
	free(text);
}

static void without_a_process_commits_fail_until_there_is_one(void **state)
{
	struct fixture *f = *state;
	struct error err;

	open_store(f);
	kill(f->writer, SIGKILL);
	f->refuses_writer = true;
	put_workspace(f, 1);
	store_flush(f->store);
	assert_string_equal(f->acks, "!");
	assert_int_equal(f->last.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(f->last.text, "no more processes"));
	assert_true(store_is_failing(f->store, &err));
	f->refuses_writer = false;
	put_workspace(f, 2);
	store_flush(f->store);
	assert_string_equal(f->acks, "!.");
	assert_false(store_is_failing(f->store, &err));
	load(f);
	assert_int_equal(f->workspaces, 1);
}

#ifdef CARREL_FAULTS
/* Each new process passes the point anew. */
static void one_that_dies_at_every_try_fails_the_commit(void **state)
{
	static const struct {
		const char *fault, *acks;
		int started, workspaces;
	} cases[] = {
		/* The third commit of the first one; the others never come so far. */
		{ "store.commit:3", "...", 2, 3 },
		{ "store.written:3", "...", 2, 3 },
		{ "store.commit:1", "!!!", 9, 0 },
		/* It was written, but nobody could know. */
		{ "store.written:1", "!!!", 9, 3 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fixture *f = *state;

		f->started = 0;
		setenv("CARREL_FAULT", cases[i].fault, 1);
		open_store(f);
		for (int n = 1; n <= 3; n++) {
			put_workspace(f, n);
			store_flush(f->store);
		}
		unsetenv("CARREL_FAULT");
		assert_string_equal(f->acks, cases[i].acks);
		assert_int_equal(f->started, cases[i].started);
		close_store(f);
		open_store(f);
		load(f);
		assert_int_equal(f->workspaces, cases[i].workspaces);
		tear_down(state);
		set_up(state);
	}
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_that_is_killed_is_replaced_and_the_commit_done_again),
		TEST(a_commit_that_hangs_holds_up_nobody_and_what_comes_meanwhile_is_one),
		TEST(a_batch_larger_than_the_socket_is_sent_in_pieces),
		TEST(without_a_process_commits_fail_until_there_is_one),
#ifdef CARREL_FAULTS
		TEST(one_that_dies_at_every_try_fails_the_commit),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
