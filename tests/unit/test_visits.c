/* Connections and requests by TCP, counted for addresses and principals. */
#include "api/visits.h"

#include "unit.h"

static struct front_door door;
static struct visits visits;

static void open_with(const char *settings)
{
	struct error err;
	assert_int_equal(door_init(&door, settings, &err), 0);
	visits_init(&visits, &door);
}

static void close_all(void)
{
	visits_done(&visits);
	door_done(&door);
}

static void an_address_has_so_many_connections_before_it_logs_in(void **state)
{
	struct visitor *all[VISITS_PENDING_ADDRESS_MAX];
	struct error err;
	open_with("connections 1000\n");
	for (size_t i = 0; i < VISITS_PENDING_ADDRESS_MAX; i++)
		assert_non_null(all[i] = visits_come(&visits, "192.0.2.1"));
	assert_null(visits_come(&visits, "192.0.2.1"));
	struct visitor *other = visits_come(&visits, "192.0.2.2");
	assert_non_null(other);
	/* One that logs in makes room. */
	assert_int_equal(visits_ask(&visits, &all[0], "token a", 0, &err), 0);
	struct visitor *next = visits_come(&visits, "192.0.2.1");
	assert_non_null(next);
	assert_int_equal(visits.pending, VISITS_PENDING_ADDRESS_MAX + 1);
	visits_leave(&visits, next);
	visits_leave(&visits, other);
	for (size_t i = 0; i < VISITS_PENDING_ADDRESS_MAX; i++)
		visits_leave(&visits, all[i]);
	assert_int_equal(visits.pending, 0);
	assert_int_equal(visits.visitors.live, 0);
	close_all();
}

static void a_proxy_has_all_that_are_pending_and_no_more(void **state)
{
	open_with("proxy 10.0.0.0/8\n");
	for (size_t i = 0; i < VISITS_PENDING_MAX; i++)
		assert_non_null(visits_come(&visits, "10.0.0.1"));
	assert_null(visits_come(&visits, "10.0.0.1"));
	assert_null(visits_come(&visits, "192.0.2.1"));
	close_all();
}

static void a_principal_has_so_many_connections(void **state)
{
	struct visitor *one, *two, *three;
	struct error err;
	open_with("connections 2\n");
	one = visits_come(&visits, "192.0.2.1");
	two = visits_come(&visits, "192.0.2.2");
	three = visits_come(&visits, "192.0.2.3");
	assert_int_equal(visits_ask(&visits, &one, "token a", 0, &err), 0);
	assert_int_equal(visits_ask(&visits, &one, "token a", 0, &err), 0);
	assert_int_equal(visits_ask(&visits, &two, "token a", 0, &err), 0);
	assert_int_equal(visits_ask(&visits, &three, "token a", 0, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(visits_ask(&visits, &three, "token b", 0, &err), 0);
	visits_leave(&visits, one);
	/* A connection may change its principal. */
	assert_int_equal(visits_ask(&visits, &three, "token a", 0, &err), 0);
	visits_leave(&visits, two);
	visits_leave(&visits, three);
	assert_int_equal(visits.visitors.live, 0);
	close_all();
}

static void a_principal_asks_so_often_also_on_new_connections(void **state)
{
	struct error err;
	open_with("rate 2\n");
	for (int i = 0; i < 4; i++) {
		struct visitor *v = visits_come(&visits, "192.0.2.1");
		int expected = i < 2 ? 0 : -1;
		assert_int_equal(visits_ask(&visits, &v, "token a", 1000, &err), expected);
		visits_leave(&visits, v);
	}
	struct visitor *v = visits_come(&visits, "192.0.2.1");
	assert_int_equal(visits_ask(&visits, &v, "token b", 1000, &err), 0);
	assert_int_equal(visits_ask(&visits, &v, "token a", 1499, &err), -1);
	assert_int_equal(visits_ask(&visits, &v, "token a", 1500, &err), 0);
	assert_int_equal(visits_ask(&visits, &v, "token a", 1500, &err), -1);
	assert_int_equal(visits_ask(&visits, &v, "token a", 99000, &err), 0);
	assert_int_equal(visits_ask(&visits, &v, "token a", 99000, &err), 0);
	assert_int_equal(visits_ask(&visits, &v, "token a", 99000, &err), -1);
	visits_leave(&visits, v);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_has_so_many_connections_before_it_logs_in),
		cmocka_unit_test(a_proxy_has_all_that_are_pending_and_no_more),
		cmocka_unit_test(a_principal_has_so_many_connections),
		cmocka_unit_test(a_principal_asks_so_often_also_on_new_connections),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
