/* core's side of file servers: what it asks, and what it believes. init and the servers are played.
 */
/* security: files */
#include "core/files/file_servers.h"
#include "core/files/tree_archive.h"
#include "execs_fixture.h"
#include "proc/channel.h"

#define LIMIT (1u << 20)

static int open_servers(void **state)
{
	struct error err;
	int failed = open_world(state);
	return failed || file_servers_open(&world->core, &err) ? -1 : 0;
}

static int close_servers(void **state)
{
	file_servers_free(&world->w);
	file_servers_done(&world->core);
	return close_world(state);
}
#define CALLS_TEST(name) cmocka_unit_test_setup_teardown(name, open_servers, close_servers)

struct asked {
	bool begun, done, has_failed;
	struct error err;
};

static void on_begun(void *ctx)
{
	struct asked *asked = ctx;
	assert_false(asked->begun);
	asked->begun = true;
}

static void on_done(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct asked *asked = ctx;
	assert_false(asked->done);
	asked->done = true;
	asked->has_failed = err != NULL;
	if (err)
		asked->err = *err;
}

/* The socket of a server that init was asked to start; -1: it wasn't. */
static int take_server(int init)
{
	char data[4096];
	int fds[4], count = 0;
	size_t len;
	struct error err;
	struct init_request request;
	while (channel_receive(init, data, sizeof data, &len, fds, 4, &count, &err) ==
		CHANNEL_MESSAGE) {
		memcpy(&request, data, sizeof request);
		if (request.type != INIT_SPAWN)
			continue; /* a signal */
		assert_int_equal(count, 4);
		for (int i = 1; i < count; i++)
			close(fds[i]);
		return fds[0];
	}
	return -1;
}

/* What the server was asked; verb 0: nothing. */
static struct file_request take_request(int server)
{
	char data[FILE_PACKET_MAX];
	struct file_request request = { 0 };
	ssize_t len = recv(server, data, sizeof data, MSG_DONTWAIT);
	if (len >= (ssize_t)sizeof request)
		memcpy(&request, data, sizeof request);
	return request;
}

static void reply(int server, enum file_reply_kind kind, uint64_t bytes)
{
	struct file_reply packet = { .magic = FILE_MAGIC, .kind = kind, .bytes = bytes };
	assert_int_equal(send(server, &packet, sizeof packet, 0), sizeof packet);
}

static struct file_call *ask(enum file_verb verb, struct asked *asked)
{
	struct file_ask what = { .verb = verb, .path = "f", .fd = -1 };
	*asked = (struct asked){ 0 };
	if (verb == FILE_UNPACK) {
		what.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		what.text = ".carrel-stage";
		what.begun = on_begun;
	}
	return file_ask(&world->w, &what, on_done, asked);
}

static void test_a_call_that_is_canceled_before_it_is_sent_never_is(void **state)
{
	auto_close int init = play_init();
	struct asked first, second;
	world->w.model.limits.disk_bytes = LIMIT;
	ask(FILE_UNPACK, &first);
	auto_close int server = take_server(init);
	assert_int_equal(take_request(server).verb, FILE_UNPACK);
	struct file_call *waits = ask(FILE_UNPACK, &second);
	file_cancel(waits);
	assert_false(second.done);
	run_until(&second.done);
	assert_int_equal(second.err.code, ERR_CANCELED);
	reply(server, FILE_DONE, 0);
	run_until(&first.done);
	assert_false(first.has_failed);
	assert_int_equal(take_request(server).verb, 0);
	/* One that is refused is told so later, too, and asks nobody. */
	struct asked refused = { 0 };
	struct error err;
	fail(&err, ERR_DENIED, "no");
	file_cancel(file_refuse(&world->w, &err, on_done, &refused));
	assert_false(refused.done);
	run_until(&refused.done);
	assert_int_equal(refused.err.code, ERR_DENIED);
	assert_int_equal(take_request(server).verb, 0);
}

static void test_an_agent_says_once_that_it_has_begun(void **state)
{
	auto_close int init = play_init();
	struct asked asked;
	ask(FILE_UNPACK, &asked);
	auto_close int server = take_server(init);
	reply(server, FILE_PART, 0);
	run_until(&asked.begun);
	assert_false(asked.done);
	reply(server, FILE_PART, 0);
	run_until(&asked.done);
	assert_int_equal(asked.err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(asked.err.text, "invalid answer"));
	/* Where nothing begins an empty part says nothing. */
	ask(FILE_LIST, &asked);
	for (int i = 0; i < 2; i++) {
		auto_close int other = take_server(init);
		assert_true(other >= 0);
		reply(other, FILE_PART, 0);
		run_for(5);
	}
	run_until(&asked.done);
	assert_int_equal(asked.err.code, ERR_UNAVAILABLE);
}

struct upload {
	bool begun, done, has_failed;
};

static void on_upload_begun(void *ctx, int fd)
{
	struct upload *upload = ctx;
	upload->begun = true;
	close(fd);
}

static void on_upload_done(void *ctx, const struct error *err)
{
	struct upload *upload = ctx;
	upload->done = true;
	upload->has_failed = err != NULL;
}

static void test_uploads_of_archives_share_the_room_that_is_left(void **state)
{
	auto_close int init = play_init();
	struct upload first = { 0 }, second = { 0 };
	struct archive_listener listener = { on_upload_begun, on_upload_done, &first };
	struct workspace *model = &world->w.model;
	model->limits.disk_bytes = LIMIT;
	archive_in(&request_system, &world->w, "", &listener);
	listener.ctx = &second;
	archive_in(&request_system, &world->w, "", &listener);
	auto_close int server = take_server(init);
	assert_int_equal(take_server(init), -1);
	assert_int_equal(take_request(server).limit, LIMIT);
	reply(server, FILE_PART, 0);
	run_until(&first.begun);
	reply(server, FILE_DONE, LIMIT / 4);
	run_until(&first.done);
	assert_false(first.has_failed);
	assert_int_equal(model->disk_usage_bytes, LIMIT / 4);
	assert_int_equal(take_request(server).limit, LIMIT - LIMIT / 4);
	reply(server, FILE_PART, 0);
	run_until(&second.begun);
	/* More than it was allowed: as much as can be true is charged. */
	reply(server, FILE_DONE, 1ull << 40);
	run_until(&second.done);
	assert_int_equal(model->disk_usage_bytes, LIMIT);
	/* A quota of the file system keeps its own account. */
	model->disk_mechanism = "project-quota";
	struct asked quota[2];
	ask(FILE_UNPACK, &quota[0]);
	ask(FILE_UNPACK, &quota[1]);
	auto_close int other = take_server(init);
	assert_int_equal(take_request(server).limit, UINT64_MAX);
	assert_int_equal(take_request(other).limit, UINT64_MAX);
	reply(server, FILE_DONE, 0);
	reply(other, FILE_DONE, 0);
	run_until(&quota[0].done);
	run_until(&quota[1].done);
	model->disk_mechanism = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CALLS_TEST(test_a_call_that_is_canceled_before_it_is_sent_never_is),
		CALLS_TEST(test_an_agent_says_once_that_it_has_begun),
		CALLS_TEST(test_uploads_of_archives_share_the_room_that_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
