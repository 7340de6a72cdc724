/* WebSocket connections as their owners see them: time, back-pressure, the end. What a client does
 * wrong is in tests/api/test_exec_socket.py. */
/* security: doors */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "base/buf.h"
#include "base/fd.h"
#include "format/http/websocket.h"
#include "net/websocket.h"
#include "unit.h"

#define HOUR_MS 3600000
#define PING_MS 20 /* longer than a turn of the loop below, in which the client can answer one */

struct world {
	struct loop *loop;
	struct websocket_group *group;
	struct websocket *ws;
	int client;
	struct buf in;	 /* what the client has read, and not looked at yet */
	struct buf last; /* the data of the last message of `next` */
	struct websocket_reader reader;
	int messages, writable, ticks, closed;
	size_t message_bytes;
	bool pauses; /* with every message */
};

static void on_message(void *ctx, bool is_text, struct str data)
{
	struct world *world = ctx;

	world->messages++;
	world->message_bytes += data.len;
	if (world->pauses)
		websocket_pause(world->ws, true);
}

static void on_writable(void *ctx)
{
	((struct world *)ctx)->writable++;
}

static void on_tick(void *ctx)
{
	((struct world *)ctx)->ticks++;
}

static void on_closed(void *ctx)
{
	((struct world *)ctx)->closed++;
}

static void stop(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

static void turn(struct world *world)
{
	struct error err;

	loop_after(world->loop, 1, stop, NULL);
	assert_int_equal(loop_run(world->loop, &err), 0);
}

/* Some turns of the loop: all that is ready is done then. */
static void run(struct world *world)
{
	for (int i = 0; i < 4; i++)
		turn(world);
}

static void begin(struct world *world, uint64_t ping_ms)
{
	const struct websocket_times times = { ping_ms, HOUR_MS, HOUR_MS };
	const struct websocket_handler handler = { on_message, on_writable, on_tick, on_closed,
		world };
	struct net_stream stream;
	struct error err;
	int ends[2];

	*world = (struct world){ 0 };
	assert_int_equal(loop_new(&world->loop, &err), 0);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	world->client = ends[0];
	stream_open_plain(NULL, ends[1], &stream);
	world->group = websocket_group_new(world->loop, &times);
	world->ws = websocket_new(world->group, &stream, STR(""), &handler);
	websocket_set_max(world->ws, 1000, 100000);
	buf_init(&world->in, BUF_MAX_DEFAULT);
	buf_init(&world->last, BUF_MAX_DEFAULT);
	websocket_reader_init(&world->reader, 1 << 20);
}

static void end(struct world *world)
{
	websocket_group_free(world->group);
	loop_free(world->loop);
	fd_close(&world->client);
	websocket_reader_done(&world->reader);
	buf_done(&world->in);
	buf_done(&world->last);
}

/* As many bytes as the connection takes; of these frames. */
static size_t send_bytes(struct world *world, const struct buf *bytes)
{
	size_t done = 0;

	for (int idle = 0; done < bytes->len && idle < 20;) {
		ssize_t sent = send(world->client, bytes->data + done, bytes->len - done,
			MSG_NOSIGNAL | MSG_DONTWAIT);
		idle = sent > 0 ? 0 : idle + 1;
		done += sent > 0 ? (size_t)sent : 0;
		turn(world);
	}
	return done;
}

static size_t send_frames(
	struct world *world, enum websocket_opcode opcode, size_t len, size_t count)
{
	static const unsigned char mask[4] = { 1, 2, 3, 4 };
	static const char zeroes[100000];
	const struct str part = { zeroes, len };
	auto_buf struct buf bytes = buf_empty(BUF_MAX_DEFAULT);

	for (size_t i = 0; i < count; i++)
		websocket_print(&bytes, opcode, mask, &part, 1);
	return send_bytes(world, &bytes);
}

static void receive(struct world *world)
{
	char piece[65536];
	ssize_t got;

	turn(world);
	got = recv(world->client, piece, sizeof piece, MSG_DONTWAIT);
	if (got > 0)
		buf_append(&world->in, piece, (size_t)got);
}

/* The next message that the client gets; waits for it. */
static struct websocket_message next(struct world *world)
{
	struct websocket_message message = { 0 };
	struct error err;

	for (int i = 0; i < 20000; i++) {
		size_t used = 0;
		int got = websocket_read(&world->reader,
			(struct str){ world->in.data, world->in.len }, &used, &message, &err);
		assert_true(got >= 0);
		buf_clear(&world->last);
		buf_append(&world->last, message.data.data, got ? message.data.len : 0);
		message.data = (struct str){ world->last.data, world->last.len };
		buf_drop_front(&world->in, used);
		if (got)
			return message;
		receive(world);
	}
	fail_msg("no message came");
	return message;
}

static bool is_over(struct world *world)
{
	char byte;

	for (int i = 0; i < 20000; i++) {
		turn(world);
		if (recv(world->client, &byte, 1, MSG_DONTWAIT) == 0)
			return true;
	}
	return false;
}

/* ---- tests ---- */

static void a_client_that_answers_no_ping_is_gone(void **state)
{
	struct world world;

	begin(&world, PING_MS);
	for (int i = 0; i < WEBSOCKET_PINGS; i++)
		assert_int_equal(next(&world).opcode, WEBSOCKET_PING);
	assert_true(is_over(&world));
	assert_int_equal(world.closed, 1);
	assert_int_equal(websocket_count(world.group), 0);
	end(&world);
}

static void one_that_answers_stays(void **state)
{
	struct world world;

	begin(&world, PING_MS);
	for (int i = 0; i < 2 * WEBSOCKET_PINGS; i++) {
		assert_int_equal(next(&world).opcode, WEBSOCKET_PING);
		send_frames(&world, WEBSOCKET_PONG, 0, 1);
	}
	assert_int_equal(world.closed, 0);
	assert_true(world.ticks >= 2 * WEBSOCKET_PINGS);
	end(&world);
	assert_int_equal(world.closed, 1); /* with the group */
}

static void a_message_has_to_end(void **state)
{
	struct world world;
	struct websocket_message message;

	begin(&world, PING_MS);
	auto_buf struct buf piece = buf_empty(64);
	buf_append(&piece, "\x01\x80\1\2\3\4", 6); /* text, no bytes, to be continued */
	send_bytes(&world, &piece);
	while ((message = next(&world)).opcode == WEBSOCKET_PING)
		send_frames(&world, WEBSOCKET_PONG, 0, 1);
	assert_int_equal(message.opcode, WEBSOCKET_CLOSE);
	assert_int_equal(message.code, WEBSOCKET_REFUSED);
	assert_int_equal(world.closed, 1);
	end(&world);
}

static void a_client_that_reads_nothing_is_not_read_for_ever(void **state)
{
	struct world world;
	const size_t count = 200000, size = 131; /* a ping of 125 bytes with its head */

	begin(&world, HOUR_MS);
	assert_true(send_frames(&world, WEBSOCKET_PING, 125, count) < count * size / 4);
	assert_int_equal(world.closed, 0);
	assert_int_equal(next(&world).opcode, WEBSOCKET_PONG);
	end(&world);
}

static void what_is_sent_waits_for_the_client(void **state)
{
	struct world world;
	static const char piece[32768];
	size_t sent = 0, got = 0;

	begin(&world, HOUR_MS);
	do {
		sent += sizeof piece;
	} while (websocket_send_binary(world.ws, 1, (struct str){ piece, sizeof piece }));
	run(&world);
	assert_int_equal(world.writable, 0);
	while (got < sent) {
		struct websocket_message message = next(&world);
		assert_int_equal(message.opcode, WEBSOCKET_BINARY);
		assert_int_equal(message.data.data[0], 1);
		got += message.data.len - 1;
	}
	assert_int_equal(got, sent);
	assert_int_equal(world.writable, 1);
	end(&world);
}

static void a_paused_connection_is_not_read(void **state)
{
	struct world world;

	begin(&world, HOUR_MS);
	world.pauses = true;
	assert_true(send_frames(&world, WEBSOCKET_BINARY, 60000, 100) < 100 * 60000);
	assert_int_equal(world.messages, 1);
	websocket_pause(world.ws, false);
	run(&world);
	assert_int_equal(world.messages, 2);
	/* A client that goes is noticed all the same. */
	fd_close(&world.client);
	run(&world);
	assert_int_equal(world.closed, 1);
	assert_int_equal(websocket_count(world.group), 0);
	end(&world);
}

static void a_close_comes_after_what_was_sent(void **state)
{
	struct world world;
	struct websocket_message message;

	begin(&world, HOUR_MS);
	websocket_send_text(world.ws, STR("last words"));
	websocket_close(world.ws, WEBSOCKET_NORMAL, "done");
	assert_true(str_is(next(&world).data, "last words"));
	message = next(&world);
	assert_int_equal(message.opcode, WEBSOCKET_CLOSE);
	assert_int_equal(message.code, WEBSOCKET_NORMAL);
	assert_int_equal(websocket_count(world.group), 1);
	send_frames(&world, WEBSOCKET_BINARY, 1000, 5); /* nobody reads that */
	fd_close(&world.client);
	run(&world);
	assert_int_equal(websocket_count(world.group), 0);
	assert_int_equal(world.messages, 0);
	assert_int_equal(world.closed, 0); /* it wasn't the client who closed */
	end(&world);
}

#define TEST(name) cmocka_unit_test(name)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_client_that_answers_no_ping_is_gone),
		TEST(one_that_answers_stays),
		TEST(a_message_has_to_end),
		TEST(a_client_that_reads_nothing_is_not_read_for_ever),
		TEST(what_is_sent_waits_for_the_client),
		TEST(a_paused_connection_is_not_read),
		TEST(a_close_comes_after_what_was_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
