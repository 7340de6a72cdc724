/* Disk space that processes hold outside of every directory. As root the files belong to another
 * uid: root's own are the system's. */
/* security: limits */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "linux/fd_message.h"
#include "sandbox/native/held.h"
#include "unit.h"

#define BYTES (1 << 20)
#define OWNER 64199

struct area {
	char path[64];
	int dir, proc; /* the latter with nothing but this process */
	struct held_place place;
};

static int setup(void **state)
{
	struct area *area = calloc(1, sizeof *area);
	char link[96], target[64];
	struct stat st;
	*state = area;
	str_copy(area->path, sizeof area->path, "/var/tmp/carrel-test-held-XXXXXX");
	if (!mkdtemp(area->path))
		return -1;
	area->dir = open(area->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (area->dir < 0 || fstat(area->dir, &st) || mkdirat(area->dir, "proc", 0700))
		return -1;
	area->place = (struct held_place){ .device = st.st_dev };
	str_format(link, sizeof link, "proc/%d", (int)getpid());
	str_format(target, sizeof target, "/proc/%d", (int)getpid());
	if (symlinkat(target, area->dir, link))
		return -1;
	area->proc = openat(area->dir, "proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return area->proc < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct area *area = *state;
	struct error err;
	auto_close int tmp = open("/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	close(area->dir);
	close(area->proc);
	int failed = path_remove_tree(tmp, path_basename(area->path), &err);
	free(area);
	return failed;
}

/* A file without a name. */
static int make_deleted(const struct area *area, size_t size)
{
	static char data[BYTES];
	int fd = openat(area->dir, "file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	if (geteuid() == 0)
		assert_int_equal(fchown(fd, OWNER, OWNER), 0);
	assert_int_equal(write(fd, data, size), (ssize_t)size);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(unlinkat(area->dir, "file", 0), 0);
	return fd;
}

static struct held count(const struct area *area)
{
	struct held held;
	held_count(area->proc, &area->place, 1, &held);
	return held;
}

static void a_deleted_file_counts_once_however_often_it_is_open(void **state)
{
	const struct area *area = *state;
	struct held before = count(area);
	auto_close int fd = make_deleted(area, BYTES), same = dup(fd);
	struct held held = count(area);
	assert_true(same >= 0);
	assert_in_range(held.bytes - before.bytes, BYTES, BYTES + 65536);
	assert_int_equal(held.hidden, before.hidden);
	assert_true(held.has_written);
	fd_close(&fd);
	fd_close(&same);
	assert_int_equal(count(area).bytes, before.bytes);
}

static void a_deleted_file_of_another_mount_does_not_count(void **state)
{
	const struct area *area = *state;
	struct held_place place;
	struct held held, before;
	assert_true(held_find_place(area->dir, "", area->path, &place));
	assert_int_equal(place.device, area->place.device);
	assert_true(place.mount);
	held_count(area->proc, &place, 1, &before);
	auto_close int fd = make_deleted(area, BYTES);
	held_count(area->proc, &place, 1, &held);
	assert_in_range(held.bytes - before.bytes, BYTES, BYTES + 65536);
	place.mount++;
	held_count(area->proc, &place, 1, &held);
	assert_int_equal(held.bytes, 0);
}

static void an_empty_one_counts_a_block(void **state)
{
	const struct area *area = *state;
	uint64_t before = count(area).bytes;
	auto_close int fd = make_deleted(area, 0);
	assert_int_equal(count(area).bytes - before, PATH_INODE_CHARGE);
}

static void a_deleted_file_of_the_system_does_not_count(void **state)
{
	const struct area *area = *state;
	uint64_t before = count(area).bytes;
	if (geteuid())
		skip();
	auto_close int fd = make_deleted(area, BYTES);
	assert_int_equal(fchown(fd, 0, 0), 0);
	assert_int_equal(count(area).bytes, before);
}

/* Root of the host can see its size, nobody else can. */
static void a_mapping_keeps_a_file_as_a_descriptor_does(void **state)
{
	const struct area *area = *state;
	struct held before = count(area);
	int fd = make_deleted(area, BYTES);
	void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(page != MAP_FAILED);
	close(fd);
	struct held held = count(area);
	if (held.bytes == before.bytes)
		assert_int_equal(held.hidden - before.hidden, 1);
	else
		assert_in_range(held.bytes - before.bytes, BYTES, BYTES + 65536);
	munmap(page, 4096);
}

struct thread {
	const struct area *area;
	pthread_barrier_t step;
};

static void *hold_alone(void *ctx)
{
	struct thread *thread = ctx;
	bool is_alone = !unshare(CLONE_FILES);
	int fd = is_alone ? make_deleted(thread->area, BYTES) : -1;
	pthread_barrier_wait(&thread->step);
	pthread_barrier_wait(&thread->step);
	fd_close(&fd);
	return is_alone ? ctx : NULL;
}

static void a_thread_with_descriptors_of_its_own_is_looked_at(void **state)
{
	struct thread thread = { .area = *state };
	pthread_t id;
	void *was_alone;
	uint64_t before = count(thread.area).bytes;
	assert_int_equal(pthread_barrier_init(&thread.step, NULL, 2), 0);
	assert_int_equal(pthread_create(&id, NULL, hold_alone, &thread), 0);
	pthread_barrier_wait(&thread.step);
	uint64_t bytes = count(thread.area).bytes;
	pthread_barrier_wait(&thread.step);
	assert_int_equal(pthread_join(id, &was_alone), 0);
	if (was_alone)
		assert_in_range(bytes - before, BYTES, BYTES + 65536);
}

static void a_file_in_flight_is_seen(void **state)
{
	const struct area *area = *state;
	int ends[2], fd = make_deleted(area, BYTES);
	struct iovec byte = { (char[]){ "x" }, 1 };
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	uint64_t before = count(area).hidden;
	assert_int_equal(fd_message_send(ends[0], &byte, 1, &fd, 1, 0), 1);
	close(fd);
	assert_int_equal(count(area).hidden - before, 1);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deleted_file_counts_once_however_often_it_is_open),
		cmocka_unit_test(a_deleted_file_of_another_mount_does_not_count),
		cmocka_unit_test(an_empty_one_counts_a_block),
		cmocka_unit_test(a_deleted_file_of_the_system_does_not_count),
		cmocka_unit_test(a_mapping_keeps_a_file_as_a_descriptor_does),
		cmocka_unit_test(a_thread_with_descriptors_of_its_own_is_looked_at),
		cmocka_unit_test(a_file_in_flight_is_seen),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
