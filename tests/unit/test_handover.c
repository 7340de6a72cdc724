/* What a launcher leaves for the program that it executes: text and back. */
#include <string.h>
#include "base/buf.h"
#include "launch/handover.h"
#include "unit.h"

static void what_is_printed_is_read_again(void **state)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text = buf_empty(65536), again = buf_empty(65536);
	struct handover h = { .listener = { 4, "/home/a b/run/carrel.sock", -1, true },
		.lock = 0,
		.notify = -1,
		.slots = 9,
		.next_group = 77,
		.reloads = 3,
		.limiter = LIMITER_WATCHDOG,
		.cgroups = { .version = CGROUP_V2, .unified = "/sys/fs/cgroup/x y", .pids = true },
		.fds = { .rlim_cur = 1024 } },
			read;
	struct handover_sandbox s = { .id = "0123456789abcdefghij",
		.pid = 4711,
		.isolation = "native",
		.uid = 1879048192u,
		.has_socket = true,
		.cgroup = 12,
		.pins = { 1, -1, -1, -1, -1, -1, -1, 0 } };
	struct error err;
	vec_push(&arena, &h.also, ((struct launch_listener){ 5, "/run/a b", 8, true }));
	vec_push(&arena, &h.also, ((struct launch_listener){ 6, "[::1]:7070", -1, false }));
	vec_push(&arena, &h.pins, 12);
	vec_push(&arena, &h.pins, 13);
	vec_push(&arena, &h.sandboxes, s);
	handover_print(&h, &text);
	if (handover_parse((struct str){ text.data, text.len }, &arena, &read, &err))
		fail_msg("%s", err.text);
	handover_print(&read, &again);
	assert_string_equal(again.data, text.data);
	assert_string_equal(read.listener.path, h.listener.path);
	assert_int_equal(read.also.count, 2);
	assert_string_equal(read.also.items[1].path, "[::1]:7070");
	assert_int_equal(read.also.items[1].fd, 6);
	assert_string_equal(read.cgroups.unified, h.cgroups.unified);
	assert_int_equal(read.notify, -1);
	assert_int_equal(read.sandboxes.items[0].pins[7], 0);
}

static void what_is_cut_or_of_another_version_is_refused(void **state)
{
	static const char *const texts[] = { "", "carrel-handover 2\nlistener 4\n",
		"carrel-handover 1\n", "carrel-handover 1\nlistener x\n",
		"carrel-handover 1\nlistener 4\nlock 4\nlistener_path /x\nunknown 1\n",
		"carrel-handover 1\nlistener 4\nlock 4\nlistener_path /x\nalso 0 0 0 x\n",
		"carrel-handover 1\nlistener 4\nlock 4\nlistener_path /x\nalso 5 0 0\n",
		"carrel-handover 1\nlistener 4\nlock 4\nlistener_path /x\nsandbox x 1 native\n",
		"carrel-handover 1\nlistener 4\nlock 4\nlistener_path /x\nsandbox "
		"0123456789abcdefghij 5 native 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n" };
	auto_arena struct arena arena = { 0 };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct handover read;
		struct error err;
		assert_int_equal(handover_parse(str_from(texts[i]), &arena, &read, &err), -1);
		assert_int_equal(err.code, ERR_CORRUPT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_is_read_again),
		cmocka_unit_test(what_is_cut_or_of_another_version_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
