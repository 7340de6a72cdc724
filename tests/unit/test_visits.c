/* Connections and requests, counted for addresses, their ranges, uids and principals. */
/* security: doors */
#include "doors/visits.h"

#include "base/fd.h"
#include "unit.h"

#define ALL_MAX (VISITS_PEER_MAX + 1)
#define ROOT 0

/* Stands in for that of the HTTP server, of which visits.c knows the pointer alone. */
struct http_connection {
	struct visit *visit; /* NULL: dropped, or it has left */
	bool is_dropped;
};

static struct front front;
static struct visits visits;
static struct http_connection all[ALL_MAX];
static size_t count;

static void drop(struct http_connection *connection)
{
	connection->is_dropped = true;
	visits_leave(&visits, take_ptr(connection->visit));
}

static void open_with(struct serve_settings settings)
{
	struct error err;
	assert_int_equal(front_init(&front, &settings, &err), 0);
	visits_init(&visits, &front, drop);
	memset(all, 0, sizeof all);
	count = 0;
}

static void leave(struct http_connection *connection)
{
	if (connection->visit)
		visits_leave(&visits, take_ptr(connection->visit));
}

static void close_all(void)
{
	for (size_t i = 0; i < count; i++)
		leave(&all[i]);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(visits.pending[i].count, 0);
		assert_null(visits.pending[i].oldest);
		assert_null(visits.pending[i].newest);
	}
	visits_done(&visits);
	front_done(&front);
}

static struct http_connection *come(const struct http_peer *peer)
{
	assert_true(count < ALL_MAX);
	struct http_connection *connection = &all[count++];
	connection->visit = visits_come(&visits, peer, connection);
	return connection;
}

static struct http_connection *come_from(const char *address)
{
	return come(&(struct http_peer){
		.kind = HTTP_PEER_TCP, .uid = HTTP_NO_UID, .address = address });
}

static struct http_connection *come_as(uint32_t uid)
{
	return come(&(struct http_peer){ .kind = HTTP_PEER_UNIX, .uid = uid });
}

static int ask(struct http_connection *connection, const char *principal, uint64_t now_ms)
{
	struct error err;
	int result = visits_ask(&visits, connection->visit, principal, now_ms, &err);
	if (result)
		assert_int_equal(err.code, ERR_LIMIT);
	return result;
}

static size_t count_dropped(void)
{
	size_t dropped = 0;
	for (size_t i = 0; i < count; i++)
		dropped += all[i].is_dropped;
	return dropped;
}

static unsigned pending_tcp(void)
{
	return visits.pending[HTTP_PEER_TCP].count;
}

static void the_oldest_of_an_address_goes_when_it_has_too_many(void **state)
{
	open_with((struct serve_settings){ 0 });
	struct http_connection *other = come_from("192.0.2.2");
	struct http_connection *known = come_from("192.0.2.1");
	assert_int_equal(ask(known, "token a", 0), 0);
	struct http_connection *oldest = come_from("192.0.2.1");
	for (size_t i = 1; i < VISITS_ADDRESS_MAX; i++)
		come_from("192.0.2.1");
	assert_int_equal(count_dropped(), 0);
	come_from("192.0.2.1");
	assert_true(oldest->is_dropped);
	for (size_t i = 0; i < 3 * VISITS_ADDRESS_MAX; i++)
		assert_false(come_from("192.0.2.1")->is_dropped);
	assert_false(other->is_dropped || known->is_dropped);
	assert_int_equal(pending_tcp(), VISITS_ADDRESS_MAX + 1);
	close_all();
}

static void the_oldest_of_a_range_goes_when_it_has_too_many(void **state)
{
	static const char *const elsewhere[] = { "192.0.3.1", "2001:db8:1:3::1" };
	char address[64];
	for (size_t k = 0; k < 2; k++) {
		open_with((struct serve_settings){ 0 });
		struct http_connection *other = come_from(elsewhere[k]);
		for (size_t i = 0; i < 4 * VISITS_RANGE_MAX; i++) {
			str_format(address, sizeof address, k ? "2001:db8:1:2::%zu" : "192.0.2.%zu",
				i % 250 + 1);
			assert_false(come_from(address)->is_dropped);
		}
		assert_false(other->is_dropped);
		for (size_t i = 1; i < count; i++)
			assert_int_equal(all[i].is_dropped, i < count - VISITS_RANGE_MAX);
		assert_int_equal(pending_tcp(), VISITS_RANGE_MAX + 1);
		close_all();
	}
}

static void of_all_that_are_pending_the_fullest_range_loses_its_oldest(void **state)
{
	char address[64];
	open_with((struct serve_settings){ 0 });
	struct http_connection *slow = come_from("198.51.100.1");
	struct http_connection *known = come_from("198.51.100.2");
	assert_int_equal(ask(known, "token a", 0), 0);
	for (size_t i = 0; i < 3 * VISITS_TCP_MAX; i++) {
		str_format(address, sizeof address, "10.0.%zu.%zu", i % 5, i % 250 + 1);
		assert_false(come_from(address)->is_dropped);
		assert_true(pending_tcp() <= VISITS_TCP_MAX);
	}
	assert_int_equal(pending_tcp(), VISITS_TCP_MAX);
	assert_false(slow->is_dropped || known->is_dropped);
	assert_int_equal(ask(slow, "token a", 0), 0);
	assert_int_equal(pending_tcp(), VISITS_TCP_MAX - 1);
	close_all();
}

static void a_proxy_may_have_all_that_are_pending(void **state)
{
	static const char *proxies[] = { "10.0.0.0/8" };
	open_with((struct serve_settings){ .proxies = { proxies, 1, 1 } });
	struct http_connection *oldest = come_from("10.0.0.1");
	for (size_t i = 1; i < VISITS_TCP_MAX; i++)
		come_from("10.0.0.1");
	assert_int_equal(count_dropped(), 0);
	come_from("192.0.2.1");
	assert_true(oldest->is_dropped);
	come_from("10.0.0.1");
	assert_int_equal(pending_tcp(), VISITS_TCP_MAX);
	assert_int_equal(count_dropped(), 2);
	close_all();
}

static void uids_on_unix_sockets_have_their_own(void **state)
{
	open_with((struct serve_settings){ 0 });
	struct http_connection *by_tcp = come_from("192.0.2.1"), *known = come_as(1000);
	assert_int_equal(ask(known, "uid 1000", 0), 0);
	struct http_connection *other = come_as(ROOT), *oldest = come_as(1000);
	for (size_t i = 1; i < VISITS_UID_MAX; i++)
		come_as(1000);
	assert_int_equal(count_dropped(), 0);
	come_as(1000);
	assert_true(oldest->is_dropped);
	for (uint32_t i = 0; i < VISITS_UID_MAX + VISITS_UID_MAX / 2; i++)
		come_as(1001 + i);
	assert_int_equal(visits.pending[HTTP_PEER_UNIX].count, VISITS_UNIX_MAX);
	assert_false(by_tcp->is_dropped || known->is_dropped || other->is_dropped);
	close_all();
}

static void a_principal_has_so_many_connections_of_unix_sockets(void **state)
{
	open_with((struct serve_settings){ .connections = 2, .rate = 1 });
	for (size_t i = 0; i < VISITS_PEER_MAX; i++)
		assert_int_equal(ask(come_as(ROOT), "uid 0", 0), 0);
	assert_int_equal(ask(come_as(ROOT), "uid 0", 0), -1);
	assert_int_equal(count_dropped(), 0);
	close_all();
}

static void a_principal_has_so_many_connections(void **state)
{
	open_with((struct serve_settings){ .connections = 2 });
	struct http_connection *one = come_from("192.0.2.1"), *two = come_from("192.0.2.2"),
			       *three = come_from("192.0.2.3");
	assert_int_equal(ask(one, "token a", 0), 0);
	assert_int_equal(ask(one, "token a", 0), 0);
	assert_int_equal(ask(two, "token a", 0), 0);
	assert_int_equal(ask(three, "token a", 0), -1);
	assert_int_equal(ask(three, "token b", 0), 0);
	leave(one);
	/* A connection may change its principal. */
	assert_int_equal(ask(three, "token a", 0), 0);
	leave(two);
	leave(three);
	assert_int_equal(visits.visitors.live, 0);
	close_all();
}

static void a_principal_asks_so_often_also_on_new_connections(void **state)
{
	open_with((struct serve_settings){ .rate = 2 });
	for (int i = 0; i < 4; i++) {
		struct http_connection *c = come_from("192.0.2.1");
		assert_int_equal(ask(c, "token a", 1000), i < 2 ? 0 : -1);
		leave(c);
	}
	struct http_connection *c = come_from("192.0.2.1");
	assert_int_equal(ask(c, "token b", 1000), 0);
	assert_int_equal(ask(c, "token a", 1499), -1);
	assert_int_equal(ask(c, "token a", 1500), 0);
	assert_int_equal(ask(c, "token a", 1500), -1);
	assert_int_equal(ask(c, "token a", 99000), 0);
	assert_int_equal(ask(c, "token a", 99000), 0);
	assert_int_equal(ask(c, "token a", 99000), -1);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_of_an_address_goes_when_it_has_too_many),
		cmocka_unit_test(the_oldest_of_a_range_goes_when_it_has_too_many),
		cmocka_unit_test(of_all_that_are_pending_the_fullest_range_loses_its_oldest),
		cmocka_unit_test(a_proxy_may_have_all_that_are_pending),
		cmocka_unit_test(uids_on_unix_sockets_have_their_own),
		cmocka_unit_test(a_principal_has_so_many_connections_of_unix_sockets),
		cmocka_unit_test(a_principal_has_so_many_connections),
		cmocka_unit_test(a_principal_asks_so_often_also_on_new_connections),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
