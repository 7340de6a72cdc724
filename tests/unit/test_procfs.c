/* The kernel's text files: the real ones parse, hostile names don't move fields. */
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include "base/fd.h"
#include "format/text/procfs.h"
#include "unit.h"

static char text[1 << 18];

static struct str read_proc(const char *path)
{
	ssize_t got = fd_read_file(AT_FDCWD, path, text, sizeof text);

	assert_true(got >= 0);
	return (struct str){ text, (size_t)got };
}

static void assert_str(struct str s, const char *expected)
{
	assert_int_equal(s.len, strlen(expected));
	assert_memory_equal(s.data, expected, s.len);
}

static void the_stat_of_this_process_is_its_own(void **state)
{
	struct procfs_stat stat;

	assert_true(procfs_parse_stat(read_proc("/proc/self/stat"), &stat));
	assert_int_equal(stat.pid, getpid());
	assert_int_equal(stat.ppid, getppid());
	assert_int_equal(stat.state, 'R');
	assert_true(stat.start_ticks > 0);
}

static void a_hostile_comm_moves_no_field(void **state)
{
	static const char *const names[] = { "x) R 1 (", ")", "(", "a b c", ") S 1 1 1", "\n", "" };
	struct procfs_stat stat;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		prctl(PR_SET_NAME, names[i]);
		assert_true(procfs_parse_stat(read_proc("/proc/self/stat"), &stat));
		assert_int_equal(stat.pid, getpid());
		assert_int_equal(stat.ppid, getppid());
		assert_int_equal(stat.state, 'R');
	}
}

static void every_field_of_stat_is_where_it_belongs(void **state)
{
	struct procfs_stat stat;

	assert_true(procfs_parse_stat(STR("12 (a) S 11 5 6 7 -1 9 10 11 12 13 1014 1015 1016 1017 "
					  "-18 19 20 21 1022 23 24\n"),
		&stat));
	assert_int_equal(stat.pid, 12);
	assert_int_equal(stat.ppid, 11);
	assert_int_equal(stat.state, 'S');
	assert_int_equal(stat.utime_ticks, 1014);
	assert_int_equal(stat.stime_ticks, 1015);
	assert_int_equal(stat.cutime_ticks, 1016);
	assert_int_equal(stat.cstime_ticks, 1017);
	assert_int_equal(stat.start_ticks, 1022);
}

static void what_is_not_stat_is_refused(void **state)
{
	static const char *const wrong[] = { "", "12", "12 (a", "12 a) S 1", ")(", "12 (a) S 11",
		"x (a) S 11 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
		"12 (a) SS 11 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
		"12 (a) S -11 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
		"12 (a) S 11 5 6 7 8 9 10 11 12 13 x 15 16 17 18 19 20 21 22",
		"12 (a) S 11 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21",
		"2147483648 (a) S 11 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22" };
	struct procfs_stat stat = { .pid = 77 };

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(procfs_parse_stat(str_from(wrong[i]), &stat));
	assert_int_equal(stat.pid, 77);
}

static void kilobytes_are_found_by_their_whole_key(void **state)
{
	struct str status = STR("Name:\tVmRSS\nVmRSSX:\t 1 kB\nVmRSS:\t   5120 kB\nThreads:\t1\n"
				"Bad:\tx kB\nPss:  3 MB\nEnd: 7 kB");
	uint64_t kb = 77;

	assert_false(procfs_find_kb(status, "Absent", &kb));
	assert_false(procfs_find_kb(status, "Threads", &kb));
	assert_false(procfs_find_kb(status, "Bad", &kb));
	assert_false(procfs_find_kb(status, "Pss", &kb));
	assert_false(procfs_find_kb(status, "VmRS", &kb));
	assert_int_equal(kb, 77);
	assert_true(procfs_find_kb(status, "VmRSS", &kb));
	assert_int_equal(kb, 5120);
	assert_true(procfs_find_kb(status, "End", &kb));
	assert_int_equal(kb, 7);
	assert_true(procfs_find_kb(read_proc("/proc/self/status"), "VmHWM", &kb));
	assert_true(kb > 100);
}

static void a_process_named_like_a_key_hides_nothing(void **state)
{
	uint64_t kb = 0;

	prctl(PR_SET_NAME, "a\nVmHWM: 1 kB");
	assert_true(procfs_find_kb(read_proc("/proc/self/status"), "VmHWM", &kb));
	assert_true(kb > 100);
}

static void numbers_are_found_by_their_whole_key(void **state)
{
	struct str events = STR("low 0\noom 3\noom_kill 18446744073709551615\nbad x\nlast 9");
	uint64_t value = 77;

	assert_true(procfs_find_number(events, "oom", &value));
	assert_int_equal(value, 3);
	assert_true(procfs_find_number(events, "oom_kill", &value));
	assert_true(value == UINT64_MAX);
	assert_true(procfs_find_number(events, "last", &value));
	assert_int_equal(value, 9);
	assert_false(procfs_find_number(events, "bad", &value));
	assert_false(procfs_find_number(events, "kill", &value));
	assert_false(procfs_find_number(events, "", &value));
	assert_int_equal(value, 9);
}

static void mounts_are_taken_apart(void **state)
{
	struct str rest = STR("36 35 98:0 /mnt1 /mnt2 rw,noatime shared:1 master:2 - ext3 "
			      "/dev/root rw,errors=continue\n"
			      "not a mount\n"
			      "37 35 0:5 / /a\\040b ro - tmpfs  rw\n"
			      "38 35 0:5 / /c rw shared:7\n"
			      "39 35 0:6 / /d rw master:3 - proc proc ro");
	struct procfs_mount mount;

	assert_true(procfs_next_mount(&rest, &mount));
	assert_str(mount.root, "/mnt1");
	assert_str(mount.target, "/mnt2");
	assert_str(mount.options, "rw,noatime");
	assert_true(mount.is_shared);
	assert_str(mount.type, "ext3");
	assert_str(mount.source, "/dev/root");
	assert_str(mount.super_options, "rw,errors=continue");
	/* A mount whose source is empty, after a line that is passed over. */
	assert_true(procfs_next_mount(&rest, &mount));
	assert_str(mount.target, "/a\\040b");
	assert_false(mount.is_shared);
	assert_str(mount.source, "");
	assert_str(mount.super_options, "rw");
	assert_true(procfs_next_mount(&rest, &mount));
	assert_str(mount.target, "/d");
	assert_false(mount.is_shared);
	assert_str(mount.super_options, "ro");
	assert_false(procfs_next_mount(&rest, &mount));
}

static void every_mount_of_this_host_is_found(void **state)
{
	struct str rest = read_proc("/proc/self/mountinfo"), line, lines = rest;
	struct procfs_mount mount;
	int count = 0, found = 0;
	bool has_root = false;

	while (str_next(&lines, '\n', &line))
		count++;
	while (procfs_next_mount(&rest, &mount)) {
		found++;
		has_root |= str_is(mount.target, "/");
	}
	assert_int_equal(found, count);
	assert_true(has_root);
}

static void cgroup_lines_keep_colons_of_their_path(void **state)
{
	struct str rest = STR("4:cpu,cpuacct:/a:b\nnonsense\n1:name=systemd:/\n0::/user.slice");
	struct procfs_cgroup cgroup;

	assert_true(procfs_next_cgroup(&rest, &cgroup));
	assert_str(cgroup.hierarchy, "4");
	assert_str(cgroup.controllers, "cpu,cpuacct");
	assert_str(cgroup.path, "/a:b");
	assert_true(procfs_next_cgroup(&rest, &cgroup));
	assert_str(cgroup.controllers, "name=systemd");
	assert_true(procfs_next_cgroup(&rest, &cgroup));
	assert_str(cgroup.hierarchy, "0");
	assert_str(cgroup.controllers, "");
	assert_str(cgroup.path, "/user.slice");
	assert_false(procfs_next_cgroup(&rest, &cgroup));
}

static void id_ranges_are_three_numbers(void **state)
{
	struct str rest = STR("         0     100000      65536\n1 2\n1 2 3 4\n1 x 3\n\n  7 8 9 ");
	struct procfs_id_range range;

	assert_true(procfs_next_id_range(&rest, &range));
	assert_int_equal(range.inside, 0);
	assert_int_equal(range.outside, 100000);
	assert_int_equal(range.count, 65536);
	assert_true(procfs_next_id_range(&rest, &range));
	assert_int_equal(range.inside, 7);
	assert_int_equal(range.outside, 8);
	assert_int_equal(range.count, 9);
	assert_false(procfs_next_id_range(&rest, &range));
	rest = read_proc("/proc/self/uid_map");
	assert_true(procfs_next_id_range(&rest, &range));
	assert_true(range.count > 0);
}

static void sockets_that_listen_are_found(void **state)
{
	struct procfs_listener listener;
	struct str rest =
		STR("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   "
		    "uid  timeout inode\n"
		    "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  "
		    "1000        0 12345 1 0000000000000000 100 0 0 10 0\n"
		    "   1: 0100007F:1F40 0100007F:C350 01 00000000:00000000 00:00000000 00000000  "
		    "1000        0 12346 1 0000000000000000 20 4 30 10 -1\n"
		    "   2: 0100007F:1F4 00000000:0000 0A 0:0 0:0 0 1000 0 1\n"
		    "   3: 00000000000000000000000001000000:0050 "
		    "00000000000000000000000000000000:0000 0A 0:0 0:0 0 1000 0 7 1\n");
	const uint8_t loopback[16] = { [15] = 1 };

	assert_true(procfs_next_listener(&rest, &listener));
	assert_int_equal(listener.port, 8000);
	assert_int_equal(listener.inode, 12345);
	assert_memory_equal(listener.address, "\x7f\0\0\1", 4);
	assert_true(procfs_next_listener(&rest, &listener));
	assert_int_equal(listener.port, 80);
	assert_memory_equal(listener.address, loopback, 16);
	assert_false(procfs_next_listener(&rest, &listener));
}

static void words_are_whole(void **state)
{
	assert_true(procfs_has_word(STR("cpu,cpuacct"), "cpu"));
	assert_true(procfs_has_word(STR("cpu,cpuacct"), "cpuacct"));
	assert_false(procfs_has_word(STR("cpuset,cpuacct"), "cpu"));
	assert_false(procfs_has_word(STR(""), "cpu"));
	assert_false(procfs_has_word(STR("cp"), "cpu"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_stat_of_this_process_is_its_own),
		cmocka_unit_test(a_hostile_comm_moves_no_field),
		cmocka_unit_test(every_field_of_stat_is_where_it_belongs),
		cmocka_unit_test(what_is_not_stat_is_refused),
		cmocka_unit_test(kilobytes_are_found_by_their_whole_key),
		cmocka_unit_test(a_process_named_like_a_key_hides_nothing),
		cmocka_unit_test(numbers_are_found_by_their_whole_key),
		cmocka_unit_test(mounts_are_taken_apart),
		cmocka_unit_test(every_mount_of_this_host_is_found),
		cmocka_unit_test(cgroup_lines_keep_colons_of_their_path),
		cmocka_unit_test(id_ranges_are_three_numbers),
		cmocka_unit_test(sockets_that_listen_are_found),
		cmocka_unit_test(words_are_whole),
	};

	return cmocka_run_group_tests_name("procfs", tests, NULL, NULL);
}
