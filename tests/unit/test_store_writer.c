/* The process that writes for the store: it hangs, it dies, and nobody waits for it who needn't. */
/* security: daemon */
#include "store/wire.h"
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
	assert_true(store_find_gone(f->store, "gone", &why, &at_ms));
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

static void one_that_ends_while_it_reads_fails_the_load(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	put_workspace(f, 1);
	store_flush(f->store);
	kill(f->writer, SIGSTOP);
	store_load(f->store, on_row, on_loaded, f);
	store_begin(f->store);
	kill(f->writer, SIGKILL);
	store_flush(f->store);
	assert_true(f->has_failed);
	assert_int_equal(f->load_error.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(f->load_error.text, "the process that reads the database ended"));
	load(f);
	assert_int_equal(f->workspaces, 1);
	assert_int_equal(f->started, 2);
}

static struct store_write *add_write(
	struct store_batch *batch, enum store_write_kind kind, int table)
{
	struct store_write *write = arena_alloc(&batch->arena, sizeof *write);

	write->kind = kind;
	write->table = table;
	*batch->last = write;
	batch->last = &write->next;
	return write;
}

/* The length of its answer; 0: it has ended. */
static size_t ask_writer(struct fixture *f, struct store_batch *batch, size_t cut)
{
	auto_buf struct buf out = buf_empty(WIRE_MAX);
	uint64_t len = 0;
	pid_t writer;
	int socket = start_writer(f->path, &writer);

	wire_print_batch(batch, &out);
	if (cut) {
		len = out.len - sizeof len - cut;
		memcpy(out.data, &len, sizeof len);
		out.len -= cut;
	}
	assert_int_equal(fd_write_full(socket, out.data, out.len), (ssize_t)out.len);
	if (fd_read_full(socket, &len, sizeof len) != sizeof len)
		len = 0;
	arena_done(&batch->arena);
	close(socket);
	waitpid(writer, NULL, 0);
	return len;
}

/* As from a core that was taken over. */
static void one_takes_nothing_but_whole_writes_of_known_tables(void **state)
{
	struct fixture *f = *state;
	struct store_batch batch;

	open_store(f);
	close_store(f);
	for (int i = 0; i < 13; i++) {
		store_batch_init(&batch);
		struct store_write *write = add_write(&batch, STORE_REMOVE, 0);
		struct store_row *row = &write->row;
		row->texts[0] = "a0000000000000000001";
		switch (i) {
		case 1:
			write->kind = STORE_KIND_COUNT;
			break;
		case 2:
			write->kind = (enum store_write_kind) - 1;
			break;
		case 3:
			write->table = STORE_TABLE_COUNT;
			break;
		case 4:
			write->table = -1;
			break;
		case 5: /* no document */
			write->kind = STORE_PUT;
			row->texts[1] = "name";
			row->texts[2] = "ready";
			break;
		case 6: /* a column is missing */
			write->kind = STORE_PUT;
			row->texts[1] = "name";
			row->bytes = STR("{}");
			break;
		case 7: /* there is one too many */
			write->kind = STORE_PUT;
			row->texts[1] = row->texts[2] = row->texts[3] = "x";
			row->bytes = STR("{}");
			break;
		case 8:
			row->texts[0] = NULL;
			break;
		case 9:
			write->kind = STORE_PUT_ANSWER;
			break;
		case 10:
			write->kind = STORE_FIND_ANSWER;
			break;
		case 11:
			add_write(&batch, STORE_LOAD, 0);
			break;
		default:
			break;
		}
		bool is_whole = i == 0;
		if (ask_writer(f, &batch, i == 12 ? 3 : 0) ? !is_whole : is_whole)
			fail_msg("case %d", i);
	}
	store_batch_init(&batch);
	add_write(&batch, STORE_LOAD, 0);
	add_write(&batch, STORE_PROBE, 0);
	assert_int_equal(ask_writer(f, &batch, 0), 0);
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
		TEST(one_that_ends_while_it_reads_fails_the_load),
		TEST(one_takes_nothing_but_whole_writes_of_known_tables),
#ifdef CARREL_FAULTS
		TEST(one_that_dies_at_every_try_fails_the_commit),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
