#include "sandbox/native/slot.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "unit.h"

static void the_whole_host_gives_the_range_of_its_own(void **state)
{
	struct slot_range range = slot_range_from("         0          0 4294967295\n");
	assert_int_equal(range.first, 1879048192u);
	assert_int_equal(range.count, 65536);
}

static void a_container_gives_the_upper_half_of_what_it_has(void **state)
{
	struct slot_range range = slot_range_from("0 100000 65536\n");
	assert_int_equal(range.first, 32768);
	assert_int_equal(range.count, 32766);
}

static void a_namespace_of_one_id_gives_none(void **state)
{
	static const char *const maps[] = { "0 1000 1\n", "", "nonsense", "0 1000 4\n" };
	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
		assert_int_equal(slot_range_from(maps[i]).count, 0);
}

static void no_range_holds_root(void **state)
{
	static const char *const maps[] = { "0 0 4294967295\n", "0 100000 65536\n", "0 1 10\n",
		"5 5 9\n0 0 1\n" };
	for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
		assert_true(
			slot_range_from(maps[i]).count == 0 || slot_range_from(maps[i]).first > 0);
}

/* Making the home gives it away, which only root can. */
static void a_slot_is_held_until_its_descriptor_is_closed(void **state)
{
	if (geteuid() != 0)
		skip();
	struct error err;
	char home[] = "/tmp/unit-slot-XXXXXX";
	assert_non_null(mkdtemp(home));
	char below[64];
	str_format(below, sizeof below, "%s/home", home);
	struct slot_range range = { 1000000, 2 };
	uint32_t first, second, third;
	int a = -1, b = -1, c = -1;
	assert_int_equal(slot_take(below, range, &first, &a, &err), 0);
	assert_int_equal(slot_take(below, range, &second, &b, &err), 0);
	assert_true(first != second && first >= range.first && second < range.first + 2);
	assert_int_equal(slot_take(below, range, &third, &c, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	close(a);
	assert_int_equal(slot_take(below, range, &third, &c, &err), 0);
	assert_int_equal(third, first);
	struct stat st;
	assert_int_equal(stat(below, &st), 0);
	assert_true(st.st_uid != 0 && (st.st_mode & 0777) == 0700);
	close(b);
	close(c);
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY);
	assert_int_equal(path_remove_tree(tmp, home + 5, &err), 0);
}

static void many_slots_are_held_by_one_descriptor(void **state)
{
	if (geteuid() != 0)
		skip();
	struct error err;
	char home[] = "/tmp/unit-slot-XXXXXX", below[64];
	assert_non_null(mkdtemp(home));
	str_format(below, sizeof below, "%s/home", home);
	struct slot_range range = { 1000000, 100 };
	struct slots slots = SLOTS_NONE;
	uint32_t uid, other;
	int fd = -1;
	assert_int_equal(slots_open(below, range, &slots, &err), 0);
	for (uint32_t i = 0; i < 99; i++) {
		assert_int_equal(slots_take(&slots, &uid, &err), 0);
		assert_int_equal(uid, range.first + i);
	}
	/* The last one is another process's. */
	assert_int_equal(slot_take(below, range, &other, &fd, &err), 0);
	assert_int_equal(other, range.first + 99);
	assert_int_equal(slots_take(&slots, &uid, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	slots_give(&slots, range.first + 64);
	slots_give(&slots, range.first + 3);
	assert_int_equal(slots_take(&slots, &uid, &err), 0);
	assert_int_equal(uid, range.first + 3);
	close(fd);
	/* What was given back is free for everybody. */
	assert_int_equal(
		slot_take(below, (struct slot_range){ range.first, 65 }, &other, &fd, &err), 0);
	assert_int_equal(other, range.first + 64);
	close(fd);
	slots_done(&slots);
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY);
	assert_int_equal(path_remove_tree(tmp, home + 5, &err), 0);
}

static void a_home_that_cannot_be_made_is_named(void **state)
{
	struct error err;
	uint32_t uid;
	int fd = -1;
	assert_int_equal(
		slot_take("/proc/nonsense/home", (struct slot_range){ 1, 1 }, &uid, &fd, &err), -1);
	assert_non_null(strstr(err.text, "/proc/nonsense/home"));
	assert_non_null(strstr(err.hint, "CARREL_HOME"));
	assert_int_equal(fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_host_gives_the_range_of_its_own),
		cmocka_unit_test(a_container_gives_the_upper_half_of_what_it_has),
		cmocka_unit_test(a_namespace_of_one_id_gives_none),
		cmocka_unit_test(no_range_holds_root),
		cmocka_unit_test(a_slot_is_held_until_its_descriptor_is_closed),
		cmocka_unit_test(many_slots_are_held_by_one_descriptor),
		cmocka_unit_test(a_home_that_cannot_be_made_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
