/* The client against the server of net/, in a process of its own. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "base/clock.h"
#include "base/fd.h"
#include "client/client.h"
#include "net/http.h"
#include "unit.h"

struct world {
	char directory[32], path[64];
	pid_t server;
	struct client client;
	struct arena arena;
};

/* ---- the server ---- */
static void on_begin(void *ctx, struct http_request *r)
{
	if (str_is(r->path, "/refuse"))
		http_respond(r, 404, "application/problem+json", NULL,
			STR("{\"code\":\"not_found\",\"detail\":\"no workspace 'x'\","
			    "\"hint\":\"carrel ls\"}"));
	else if (str_is(r->path, "/count"))
		http_stream_body(r);
	else
		http_take_body(r, (size_t)1 << 20);
}

static void send_events(struct http_request *r)
{
	http_begin(r, 200, "text/event-stream", NULL);
	http_write(r, STR("event: stdout\nid: 1\ndata: he"));
	http_write(r, STR("llo\n\nevent: exit\nid: 2\ndata: {\"exit_code\":0}\n\n"));
	http_end(r);
}

static void send_fds(struct http_request *r)
{
	char text[16] = "";
	int ends[2];
	ssize_t got = r->fd_count > 0 ? read(r->fds[0], text, sizeof text) : 0;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fd_write_full(ends[1], "back", 4);
	http_begin_fds(r, 200, "text/plain", NULL, ends, 1);
	http_write(r, (struct str){ text, (size_t)got });
	http_end(r);
	close(ends[0]);
	close(ends[1]);
}

static void on_complete(void *ctx, struct http_request *r)
{
	static char big[300000];

	if (str_is(r->path, "/events")) {
		send_events(r);
	} else if (str_is(r->path, "/fds")) {
		send_fds(r);
	} else if (str_is(r->path, "/cut")) {
		http_begin(r, 200, "text/plain", NULL);
		http_write(r, STR("half"));
		http_abort(r);
	} else if (str_is(r->path, "/big")) {
		memset(big, 'b', sizeof big);
		http_begin(r, 200, "text/plain", NULL);
		for (int i = 0; i < 3; i++)
			http_write(r, (struct str){ big, sizeof big });
		http_end(r);
	} else if (str_is(r->path, "/exit")) {
		_exit(0);
	} else {
		http_respond(r, 200, "text/plain", "Location: /there\r\n",
			r->body.len ? r->body : r->path);
	}
}

static void on_body(void *ctx, struct http_request *r, struct str data)
{
	size_t *count = r->ctx;
	char text[32];

	if (!count)
		r->ctx = count = arena_alloc(&r->arena, sizeof *count);
	*count += data.len;
	if (data.len > 0)
		return;
	str_format(text, sizeof text, "%zu", *count);
	http_respond(r, 200, "text/plain", NULL, str_from(text));
}

static void serve(int listener)
{
	const struct http_handler handler = {
		.begin = on_begin, .complete = on_complete, .body = on_body
	};
	struct loop *loop;
	struct http_server *server;
	struct error err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (loop_new(&loop, &err) == 0 &&
		http_server_new(loop, NULL, &handler, &server, &err) == 0 &&
		http_server_listen(server, &(struct http_listener){ .fd = listener }, &err) == 0)
		loop_run(loop, &err);
	_exit(1);
}

static int setup(void **state)
{
	struct world *world = test_calloc(1, sizeof *world);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct error err;

	str_copy(world->directory, sizeof world->directory, "/tmp/unit-client.XXXXXX");
	assert_non_null(mkdtemp(world->directory));
	str_format(world->path, sizeof world->path, "%s/socket", world->directory);
	str_copy(address.sun_path, sizeof address.sun_path, world->path);
	auto_close int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (void *)&address, sizeof address), 0);
	assert_int_equal(listen(listener, 16), 0);
	world->server = fork();
	if (world->server == 0)
		serve(listener);
	arena_init(&world->arena);
	assert_int_equal(client_connect(&world->client, world->path, &err), 0);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	client_done(&world->client);
	arena_done(&world->arena);
	kill(world->server, SIGKILL);
	waitpid(world->server, NULL, 0);
	unlink(world->path);
	rmdir(world->directory);
	test_free(world);
	return 0;
}

static int call(struct world *world, const char *method, const char *path, struct str body,
	struct client_response *response, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;

	request.method = method;
	request.path = path;
	request.body = body;
	return client_call(&world->client, &request, &world->arena, response, err);
}

/* ---- claims ---- */
static void an_answer_comes_whole_and_the_connection_is_used_again(void **state)
{
	struct world *world = *state;
	struct client_response r;
	struct error err;
	int socket = world->client.socket;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(call(world, "POST", "/x", STR("hello"), &r, &err), 0);
		assert_int_equal(r.status, 200);
		assert_true(str_is(r.body, "hello"));
		assert_string_equal(r.content_type, "text/plain");
		assert_string_equal(r.location, "/there");
		assert_int_equal(world->client.socket, socket);
	}
	assert_int_equal(call(world, "HEAD", "/x", (struct str){ 0 }, &r, &err), 0);
	assert_int_equal(r.body.len, 0);
	assert_int_equal(call(world, "GET", "/x", (struct str){ 0 }, &r, &err), 0);
	assert_true(str_is(r.body, "/x"));
}

static void a_problem_becomes_an_error(void **state)
{
	struct world *world = *state;
	struct client_response r;
	struct error err;

	assert_int_equal(call(world, "POST", "/refuse", STR("{}"), &r, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_string_equal(err.text, "no workspace 'x'");
	assert_string_equal(err.hint, "carrel ls");
	client_problem(503, STR("<html>"), &world->arena, &err);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	client_problem(418, STR("{\"code\":\"new\",\"detail\":\"x\"}"), &world->arena, &err);
	assert_int_equal(err.code, ERR_INVALID);
}

static void chunks_are_read_in_pieces_of_any_size(void **state)
{
	struct world *world = *state;
	struct client_response r;
	struct client_request request = CLIENT_REQUEST_NONE;
	struct error err;

	request.method = "GET";
	request.path = "/big";
	for (size_t size = 1; size < 300000; size = size * 13 + 1) {
		auto_free char *data = malloc(size);
		size_t total = 0;
		ssize_t got;
		assert_int_equal(
			client_begin(&world->client, &request, &world->arena, &r, &err), 0);
		assert_true(r.is_chunked);
		while ((got = client_read(&world->client, &r, data, size, &err)) > 0)
			total += (size_t)got;
		assert_int_equal(got, 0);
		assert_int_equal(total, 900000);
		assert_true(r.at_end);
	}
}

static void an_answer_that_is_cut_is_no_answer(void **state)
{
	struct world *world = *state;
	struct client_response r;
	struct error err;

	assert_int_equal(call(world, "GET", "/cut", (struct str){ 0 }, &r, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
	/* And the next request finds another connection. */
	assert_int_equal(call(world, "GET", "/x", (struct str){ 0 }, &r, &err), 0);
}

static void a_daemon_that_dies_is_unavailable(void **state)
{
	struct world *world = *state;
	struct client_response r;
	struct error err;

	assert_int_equal(call(world, "GET", "/exit", (struct str){ 0 }, &r, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(call(world, "GET", "/x", (struct str){ 0 }, &r, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
}

static void nobody_listening_is_unavailable(void **state)
{
	struct client client;
	struct error err;

	assert_int_equal(client_connect(&client, "unix:/nonexistent/socket", &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(client_connect(&client, "ftp://example", &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
}

static void a_long_path_is_reached(void **state)
{
	struct world *world = *state;
	char part[101], directory[200], path[300];
	struct client client;
	struct error err;

	memset(part, 'd', 100);
	part[100] = '\0';
	str_format(directory, sizeof directory, "%s/%s", world->directory, part);
	str_format(path, sizeof path, "unix:%s/socket", directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(link(world->path, path + 5), 0);
	int status = client_connect(&client, path, &err);
	unlink(path + 5);
	rmdir(directory);
	assert_int_equal(status, 0);
	client_done(&client);
}

static void count_progress(void *ctx, uint64_t bytes)
{
	*(uint64_t *)ctx = bytes;
}

static void a_body_comes_from_a_descriptor(void **state)
{
	struct world *world = *state;
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response r;
	struct error err;
	uint64_t sent = 0;
	auto_close int file = memfd_create("body", MFD_CLOEXEC);

	assert_int_equal(ftruncate(file, 5000000), 0);
	request.method = "PUT";
	request.path = "/count";
	request.body_fd = file;
	request.progress = count_progress;
	request.ctx = &sent;
	for (int known = 0; known < 2; known++) {
		request.body_len_known = known;
		request.body_len = 5000000;
		lseek(file, 0, SEEK_SET);
		assert_int_equal(client_call(&world->client, &request, &world->arena, &r, &err), 0);
		assert_true(str_is(r.body, "5000000"));
		assert_int_equal(sent, 5000000);
	}
	request.body_len = 0;
	assert_int_equal(client_call(&world->client, &request, &world->arena, &r, &err), 0);
	assert_true(str_is(r.body, "0"));
	/* Shorter than it was said to be. */
	request.body_len = 6000000;
	lseek(file, 0, SEEK_SET);
	assert_int_equal(client_call(&world->client, &request, &world->arena, &r, &err), -1);
	request.body_len = 5000000;
	lseek(file, 0, SEEK_SET);
	assert_int_equal(client_call(&world->client, &request, &world->arena, &r, &err), 0);
}

static void a_refusal_costs_no_body(void **state)
{
	struct world *world = *state;
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response r;
	struct error err;
	uint64_t sent = 0;
	auto_close int file = memfd_create("body", MFD_CLOEXEC);

	assert_int_equal(ftruncate(file, 5000000), 0);
	request.method = "PUT";
	request.path = "/refuse";
	request.body_fd = file;
	request.progress = count_progress;
	request.ctx = &sent;
	/* One that says nothing for two seconds is sent it unasked: such a try is none. */
	uint64_t began_ms;
	do {
		sent = 0;
		began_ms = clock_monotonic_ms();
		assert_int_equal(lseek(file, 0, SEEK_SET), 0);
		assert_int_equal(
			client_call(&world->client, &request, &world->arena, &r, &err), -1);
		assert_int_equal(err.code, ERR_NOT_FOUND);
	} while (sent && clock_monotonic_ms() - began_ms >= 2000);
	assert_int_equal(sent, 0);
	assert_int_equal(lseek(file, 0, SEEK_CUR), 0);
	assert_int_equal(call(world, "GET", "/x", (struct str){ 0 }, &r, &err), 0);
}

static void events_come_one_by_one(void **state)
{
	struct world *world = *state;
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response r;
	struct error err;
	struct sse sse;

	request.method = "GET";
	request.path = "/events";
	request.accept = "text/event-stream";
	sse_init(&sse);
	assert_int_equal(client_begin(&world->client, &request, &world->arena, &r, &err), 0);
	assert_int_equal(client_next_event(&world->client, &r, &sse, &err), 1);
	assert_string_equal(sse.event, "stdout");
	assert_string_equal(sse.data.data, "hello");
	assert_int_equal(client_next_event(&world->client, &r, &sse, &err), 1);
	assert_string_equal(sse.event, "exit");
	assert_string_equal(sse.id, "2");
	assert_int_equal(client_next_event(&world->client, &r, &sse, &err), 0);
	sse_done(&sse);
}

static void descriptors_go_both_ways(void **state)
{
	struct world *world = *state;
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response r;
	struct error err;
	char text[8] = "";
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "there", 5), 5);
	request.method = "POST";
	request.path = "/fds";
	request.fds = ends;
	request.fd_count = 1;
	assert_int_equal(client_call(&world->client, &request, &world->arena, &r, &err), 0);
	assert_true(str_is(r.body, "there"));
	assert_int_equal(world->client.fd_count, 1);
	assert_int_equal(read(world->client.fds[0], text, sizeof text), 4);
	assert_string_equal(text, "back");
	assert_true(fcntl(world->client.fds[0], F_GETFD) & FD_CLOEXEC);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(an_answer_comes_whole_and_the_connection_is_used_again),
		TEST(a_problem_becomes_an_error),
		TEST(chunks_are_read_in_pieces_of_any_size),
		TEST(an_answer_that_is_cut_is_no_answer),
		TEST(a_daemon_that_dies_is_unavailable),
		TEST(nobody_listening_is_unavailable),
		TEST(a_long_path_is_reached),
		TEST(a_body_comes_from_a_descriptor),
		TEST(a_refusal_costs_no_body),
		TEST(events_come_one_by_one),
		TEST(descriptors_go_both_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
