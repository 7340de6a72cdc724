#include <string.h>
#include "format/packages/netrc.h"
#include "arena_fixture.h"

static void assert_found(const char *text, const char *host, const char *expected)
{
	const char *login = "", *password = "";
	bool is_found = netrc_find(str_from(text), host, &arena, &login, &password);

	assert_string_equal(
		is_found ? arena_printf(&arena, "%s:%s", login, password) : "none", expected);
}

static void the_entry_of_the_host_is_found(void **state)
{
	const char *text = "# mine\nmachine a.example login me password pw\n"
			   "machine b.example\n\tlogin you\n\tpassword \"two words\"\n"
			   "macdef init\n machine evil.example login x password y\n\n"
			   "default login any password last\n";

	assert_found(text, "a.example", "me:pw");
	assert_found(text, "A.EXAMPLE", "me:pw");
	assert_found(text, "b.example", "you:two words");
	assert_found(text, "evil.example", "any:last");
	assert_found("machine a.example login me\n", "a.example", "none");
	assert_found("machine a.example password pw", "a.example", ":pw");
	assert_found("machine a.example login me password p\\\"w", "a.example", "me:p\"w");
	assert_found("machine a.example password \"p\\\"w\" login me", "a.example", "me:p\"w");
	assert_found("machine a.example password \"p w", "a.example", ":p w");
	assert_found("machine a.example password p\\", "a.example", ":p\\");
	assert_found("machine", "a.example", "none");
	assert_found("", "a.example", "none");
	assert_found("machine b.example login me password pw\n", "a.example", "none");
}

static void all_logins_are_listed(void **state)
{
	netrc_logins logins = { 0 };

	netrc_list(STR("password stray\nmachine a.example login me password pw\n"
		       "machine none.example login x\n# password y\nmachine b.example password q\n"
		       "default login any password last"),
		&arena, &logins);
	assert_int_equal(logins.count, 3);
	assert_string_equal(logins.items[0].login, "me");
	assert_string_equal(logins.items[0].password, "pw");
	assert_string_equal(logins.items[1].login, "");
	assert_string_equal(logins.items[1].password, "q");
	assert_string_equal(logins.items[2].password, "last");
}

/* A copy of the rest of the file for each word would take hundreds of gigabytes. */
static void a_file_of_many_words_takes_memory_by_its_size(void **state)
{
	char *text = arena_alloc(&arena, NETRC_MAX);

	for (size_t i = 0; i < NETRC_MAX; i++)
		text[i] = i % 2 ? ' ' : 'a';
	const char *login, *password;
	assert_false(netrc_find(
		(struct str){ text, NETRC_MAX }, "a.example", &arena, &login, &password));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_entry_of_the_host_is_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_logins_are_listed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_file_of_many_words_takes_memory_by_its_size, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
