/* The messages to init, as bytes: what is taken and what is refused. */
/* security: sandbox */
#include <errno.h>
#include <string.h>
#include "sandbox/init/wire.h"
#include "unit.h"

static const char body_text[] = "sh\0-c\0true\0A=1\0B=\0/workspace";

static struct init_request spawn_request(void)
{
	return (struct init_request){ .magic = INIT_MAGIC,
		.type = INIT_SPAWN,
		.id = 1,
		.argc = 3,
		.envc = 2,
		.body_len = sizeof body_text };
}

#define WHOLE (sizeof(struct init_request) + sizeof body_text)

static void test_a_whole_spawn_is_taken(void **state)
{
	struct init_request r = spawn_request();
	assert_int_equal(wire_check_request(&r, WHOLE, 3), 0);
	r.flags = INIT_TTY | INIT_NO_PIDFD | INIT_NO_STARTED;
	assert_int_equal(wire_check_request(&r, WHOLE, 3), 0);
	r.flags = INIT_BODY_IN_FD;
	assert_int_equal(wire_check_request(&r, sizeof r, 4), 0);
}

static void test_a_body_is_cut_into_argv_env_and_cwd(void **state)
{
	struct init_request r = spawn_request();
	const char *pointers[7], *cwd = NULL;
	memset(pointers, 0x5a, sizeof pointers);
	assert_int_equal(wire_cut_body(&r, body_text, pointers, &cwd), 0);
	assert_string_equal(pointers[0], "sh");
	assert_string_equal(pointers[1], "-c");
	assert_string_equal(pointers[2], "true");
	assert_null(pointers[3]);
	assert_string_equal(pointers[4], "A=1");
	assert_string_equal(pointers[5], "B=");
	assert_null(pointers[6]);
	assert_string_equal(cwd, "/workspace");
}

static void test_an_empty_env_and_empty_strings_are_cut(void **state)
{
	static const char body[] = "\0\0/";
	struct init_request r = { .argc = 2, .body_len = sizeof body };
	const char *pointers[4], *cwd = NULL;
	assert_int_equal(wire_cut_body(&r, body, pointers, &cwd), 0);
	assert_string_equal(pointers[0], "");
	assert_string_equal(pointers[1], "");
	assert_null(pointers[2]);
	assert_null(pointers[3]);
	assert_string_equal(cwd, "/");
}

static void test_a_body_of_other_strings_is_refused(void **state)
{
	static const struct {
		const char *body;
		uint32_t len, argc, envc;
	} cases[] = {
		{ "a\0/x", 3, 1, 0 },			   /* cwd not ended */
		{ "a\0/x\0y", 7, 1, 0 },		   /* one more */
		{ "a\0/x\0", 6, 1, 0 },			   /* an empty one more */
		{ "a\0/x", 5, 2, 0 },			   /* one fewer */
		{ "a\0/x", 5, 1, 1 }, { "a\0x", 4, 1, 0 }, /* cwd relative */
		{ "a\0", 3, 1, 0 },			   /* cwd empty */
		{ "aaa", 3, 1, 0 },			   /* nothing ended */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		/* From the heap, so that a sanitizer sees a read past its end. */
		char *body = test_malloc(cases[i].len);
		memcpy(body, cases[i].body, cases[i].len);
		struct init_request r = {
			.argc = cases[i].argc, .envc = cases[i].envc, .body_len = cases[i].len
		};
		const char *pointers[8], *cwd;
		assert_int_equal(wire_cut_body(&r, body, pointers, &cwd), EINVAL);
		test_free(body);
	}
}

static void test_what_is_no_message_is_refused(void **state)
{
	struct init_request r = spawn_request();
	for (size_t len = 0; len < sizeof r; len++)
		assert_int_equal(wire_check_request(&r, len, 3), EBADMSG);
	assert_int_equal(wire_check_request(&r, WHOLE - 1, 3), EBADMSG);
	assert_int_equal(wire_check_request(&r, WHOLE + 1, 3), EBADMSG);
	r.magic++;
	assert_int_equal(wire_check_request(&r, WHOLE, 3), EBADMSG);
	r = spawn_request();
	r.reserved = 1;
	assert_int_equal(wire_check_request(&r, WHOLE, 3), EBADMSG);
	r = (struct init_request){ .magic = INIT_MAGIC };
	static const uint32_t types[] = { 0, INIT_LISTENERS + 1, INIT_STARTED, INIT_REFUSED,
		UINT32_MAX };
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		r.type = types[i];
		assert_int_equal(wire_check_request(&r, sizeof r, 0), EBADMSG);
	}
}

static void test_a_spawn_out_of_range_is_refused(void **state)
{
	struct init_request r = spawn_request();
#define REFUSED(field, number)                                                                     \
	do {                                                                                       \
		r = spawn_request();                                                               \
		r.field = (number);                                                                \
		assert_int_equal(wire_check_request(&r, WHOLE, 3), EINVAL);                        \
	} while (0)
	REFUSED(id, 0);
	REFUSED(argc, 0);
	REFUSED(argc, UINT32_MAX);
	REFUSED(envc, UINT32_MAX);
	REFUSED(envc, UINT32_MAX - 2); /* argc + envc wraps to 0 */
	REFUSED(argc, INIT_INLINE_STRINGS);
	REFUSED(flags, INIT_FLAGS_ALL + 1);
	REFUSED(value, 1);
	REFUSED(body_len, 0);
	REFUSED(body_len, 5); /* six strings need six bytes */
	REFUSED(body_len, INIT_INLINE_MAX + 1);
#undef REFUSED
	r = spawn_request();
	r.flags = INIT_BODY_IN_FD;
	r.body_len = INIT_BODY_MAX + 1;
	assert_int_equal(wire_check_request(&r, sizeof r, 4), EINVAL);
	r.body_len = INIT_BODY_MAX;
	assert_int_equal(wire_check_request(&r, sizeof r, 4), 0);
	assert_int_equal(wire_check_request(&r, sizeof r + 1, 4), EBADMSG);
}

static void test_a_wrong_count_of_descriptors_is_refused(void **state)
{
	struct init_request r = spawn_request();
	for (unsigned count = 0; count < 6; count++)
		assert_int_equal(wire_check_request(&r, WHOLE, count), count == 3 ? 0 : EBADF);
	r.flags = INIT_BODY_IN_FD;
	for (unsigned count = 0; count < 6; count++)
		assert_int_equal(wire_check_request(&r, sizeof r, count), count == 4 ? 0 : EBADF);
	r.flags = INIT_PROGRAM_IN_FD;
	for (unsigned count = 0; count < 6; count++)
		assert_int_equal(wire_check_request(&r, WHOLE, count), count == 4 ? 0 : EBADF);
	r.flags = INIT_PROGRAM_IN_FD | INIT_BODY_IN_FD;
	assert_int_equal(wire_check_request(&r, sizeof r, 4), EINVAL);
	r = (struct init_request){ .magic = INIT_MAGIC, .type = INIT_STATS };
	assert_int_equal(wire_check_request(&r, sizeof r, 1), EBADF);
}

static void test_the_small_messages_have_their_own_ranges(void **state)
{
	struct init_request r = { .magic = INIT_MAGIC, .type = INIT_SIGNAL, .id = 1 };
	for (int signo = -1; signo <= 66; signo++) {
		r.value = signo;
		assert_int_equal(wire_check_request(&r, sizeof r, 0),
			signo >= 0 && signo <= 64 ? 0 : EINVAL);
	}
	r.value = 9;
	r.id = 0;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), 0);
	r.value = 0;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), EINVAL);
	r.value = 9;
	r.flags = 1;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), EINVAL);
	r = (struct init_request){ .magic = INIT_MAGIC, .type = INIT_ACK, .id = 1 };
	assert_int_equal(wire_check_request(&r, sizeof r, 0), 0);
	assert_int_equal(wire_check_request(&r, sizeof r + 1, 0), EBADMSG);
	r.id = 0;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), EINVAL);
	r = (struct init_request){ .magic = INIT_MAGIC, .type = INIT_STATS };
	assert_int_equal(wire_check_request(&r, sizeof r, 0), 0);
	r.id = 1;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), EINVAL);
}

static void test_a_connection_has_an_id_and_a_port(void **state)
{
	struct init_request r = {
		.magic = INIT_MAGIC, .type = INIT_CONNECT, .id = 1, .value = 65535
	};
	assert_int_equal(wire_check_request(&r, sizeof r, 0), 0);
	assert_int_equal(wire_check_request(&r, sizeof r, 1), EBADF);
	r.flags = INIT_TO_IPV6;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), 0);
	r.flags = 2;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), EINVAL);
	r.flags = 0;
	r.value = 0;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), EINVAL);
	r.value = 65536;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), EINVAL);
	r.value = 1;
	r.id = 0;
	assert_int_equal(wire_check_request(&r, sizeof r, 0), EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_spawn_is_taken),
		cmocka_unit_test(test_a_body_is_cut_into_argv_env_and_cwd),
		cmocka_unit_test(test_an_empty_env_and_empty_strings_are_cut),
		cmocka_unit_test(test_a_body_of_other_strings_is_refused),
		cmocka_unit_test(test_what_is_no_message_is_refused),
		cmocka_unit_test(test_a_spawn_out_of_range_is_refused),
		cmocka_unit_test(test_a_wrong_count_of_descriptors_is_refused),
		cmocka_unit_test(test_the_small_messages_have_their_own_ranges),
		cmocka_unit_test(test_a_connection_has_an_id_and_a_port),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
