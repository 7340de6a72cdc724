/* Log records: one line each, that no value can forge. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "unit.h"

static char written[1 << 16];

/* A log into memory; read_log returns what was written. */
static struct log memory_log(bool json, enum log_level least)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return (struct log){ .fd = fd, .json = json, .least = least };
}

static char *read_log(struct log *log)
{
	ssize_t got = pread(log->fd, written, sizeof written - 1, 0);

	assert_true(got >= 0);
	written[got] = '\0';
	fd_close(&log->fd);
	return written;
}

static void text_records_have_time_level_message_and_fields(void **state)
{
	struct log log = memory_log(false, LOG_LEVEL_DEBUG);

	log_record(&log, LOG_LEVEL_INFO, "sandbox started", "id", "abc", "pid", "42", NULL);
	char *line = read_log(&log);
	/* "2026-11-15T04:50:52.123Z info  sandbox started id=abc pid=42" */
	assert_int_equal(strspn(line, "0123456789-T:.Z"), 24);
	assert_int_equal(line[13], ':');
	assert_int_equal(line[19], '.');
	assert_string_equal(line + 24, " info  sandbox started id=abc pid=42\n");
}

static void json_records_are_objects(void **state)
{
	struct log log = memory_log(true, LOG_LEVEL_DEBUG);

	log_record(&log, LOG_LEVEL_ERROR, "it \"broke\"", "path", "/a b", "empty", "", "null",
		(const char *)NULL, NULL);
	char *line = read_log(&log);
	assert_int_equal(strncmp(line, "{\"time\":\"20", 11), 0);
	char *rest = strstr(line, "Z\"");
	assert_non_null(rest);
	assert_string_equal(rest, "Z\",\"level\":\"error\",\"message\":\"it "
				  "\\\"broke\\\"\",\"path\":\"/a b\",\"empty\":\"\","
				  "\"null\":\"\"}\n");
}

static void a_role_is_in_all_of_its_records(void **state)
{
	struct log log = memory_log(true, LOG_LEVEL_DEBUG);

	log.role = "core";
	log_record(&log, LOG_LEVEL_DEBUG, "m", "k", "v", NULL);
	assert_non_null(strstr(read_log(&log),
		"\"level\":\"debug\",\"message\":\"m\",\"role\":\"core\",\"k\":\"v\"}"));
}

static void levels_have_names(void **state)
{
	for (int level = LOG_LEVEL_DEBUG; level <= LOG_LEVEL_ERROR; level++)
		assert_int_equal(log_level_of(log_level_names[level], LOG_LEVEL_INFO), level);
	assert_int_equal(log_level_of("loud", LOG_LEVEL_WARN), LOG_LEVEL_WARN);
}

static void values_cannot_forge_a_record(void **state)
{
	static const char evil[] =
		"x\n04:50:52.123 error forged\tuser=\"root\" \033[2J\x7f\xc2\x9b\xff";

	for (int json = 0; json <= 1; json++) {
		struct log log = memory_log(json, LOG_LEVEL_DEBUG);

		log_record(&log, LOG_LEVEL_WARN, evil, "name", evil, NULL);
		char *line = read_log(&log);
		assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
		for (char *c = line; *c && *c != '\n'; c++)
			assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
		assert_null(strstr(line, "\xc2\x9b"));
		assert_int_equal(str_utf8_prefix(line, strlen(line)), strlen(line));
	}
	struct log log = memory_log(false, LOG_LEVEL_DEBUG);
	log_record(&log, LOG_LEVEL_WARN, "m", "name", "a user=root", "empty", "", NULL);
	assert_non_null(strstr(read_log(&log), " m name=\"a user=root\" empty=\"\"\n"));
}

static void records_below_the_least_level_are_not_written(void **state)
{
	struct log log = memory_log(false, LOG_LEVEL_WARN);

	log_record(&log, LOG_LEVEL_DEBUG, "a", NULL);
	log_record(&log, LOG_LEVEL_INFO, "b", NULL);
	log_record(&log, LOG_LEVEL_WARN, "c", NULL);
	log_record(&log, LOG_LEVEL_ERROR, "d", NULL);
	char *text = read_log(&log);
	assert_null(strstr(text, " a\n"));
	assert_null(strstr(text, " b\n"));
	assert_non_null(strstr(text, " warn  c\n"));
	assert_non_null(strstr(text, " error d\n"));
}

static void long_values_are_cut_between_characters(void **state)
{
	char value[10000];
	struct log log = memory_log(true, LOG_LEVEL_DEBUG);

	value[0] = 'a';
	for (size_t i = 1; i + 3 < sizeof value; i += 3)
		memcpy(value + i, "\xe2\x82\xac", 4);
	log_record(&log, LOG_LEVEL_INFO, "m", "v", value, "last", "1", NULL);
	char *line = read_log(&log);
	assert_in_range(strlen(line), 3000, 4096);
	assert_null(strstr(line, "\xef\xbf\xbd"));
	assert_non_null(strstr(line, "\xe2\x82\xac\",\"last\":\"1\"}\n"));
}

static void a_record_is_at_most_4096_bytes_and_keeps_every_field(void **state)
{
	char value[10000];

	memset(value, '\n', sizeof value - 1); /* longer when it is shown */
	value[sizeof value - 1] = '\0';
	for (int json = 0; json <= 1; json++) {
		struct log log = memory_log(json, LOG_LEVEL_DEBUG);

		log_record(&log, LOG_LEVEL_INFO, value, "a", value, "b", value, "c", value, "d",
			value, "last", "1", NULL);
		char *line = read_log(&log);
		assert_in_range(strlen(line), 2000, 4096);
		assert_non_null(strstr(line, json ? ",\"last\":\"1\"}\n" : " last=1\n"));
	}
}

#define LONG_VALUE 299
/* What a reader of the log has seen. */
struct reader {
	char part[1024]; /* of a line */
	size_t part_len;
	int lines, again;
	long lost;
};

static void look_at_line(struct reader *reader)
{
	static const char lost[] = " warn  log lines were lost count=";
	const char *rest = reader->part + 24;

	assert_true(reader->part_len > 24);
	if (!strncmp(rest, lost, sizeof lost - 1))
		reader->lost += strtol(rest + sizeof lost - 1, NULL, 10);
	else if (!strcmp(rest, " info  again"))
		reader->again++;
	else if (strlen(rest) == strlen(" info  m v=") + LONG_VALUE)
		reader->lines++;
	else
		fail_msg("half a line, or two: '%s'", reader->part);
}

static void read_some(struct reader *reader, int fd)
{
	char data[4096];
	ssize_t got = read(fd, data, sizeof data);

	assert_true(got > 0);
	for (ssize_t i = 0; i < got; i++) {
		assert_true(reader->part_len < sizeof reader->part);
		reader->part[reader->part_len++] = data[i];
		if (data[i] == '\n') {
			reader->part[--reader->part_len] = '\0';
			look_at_line(reader);
			reader->part_len = 0;
		}
	}
}

/* A log_record that waited would never return. */
static void check_nobody_reads(int ours, int theirs)
{
	struct log_losses losses = { 0 };
	struct log log = { .fd = ours, .losses = &losses };
	struct reader reader = { .part_len = 0 };
	char value[LONG_VALUE + 1];
	int count = 0, flags = fcntl(ours, F_GETFL);

	memset(value, 'x', sizeof value);
	value[sizeof value - 1] = '\0';
	for (; losses.ever < 10; count++)
		log_record(&log, LOG_LEVEL_INFO, "m", "v", value, NULL);
	assert_true(losses.unsaid > 0);
	/* Others who have it open see no change. */
	assert_int_equal(fcntl(ours, F_GETFL), flags);
	while (reader.lines < count - 10)
		read_some(&reader, theirs);
	log_record(&log, LOG_LEVEL_INFO, "again", NULL);
	while (!reader.again)
		read_some(&reader, theirs);
	assert_int_equal(reader.lines, count - 10);
	assert_int_equal(reader.lost, 10);
	assert_int_equal(losses.unsaid, 0);
	assert_int_equal(losses.ever, 10);
	close(ours);
	close(theirs);
}

static void a_pipe_nobody_reads_loses_lines_and_says_how_many(void **state)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	check_nobody_reads(ends[1], ends[0]);
}

static void so_does_a_socket(void **state)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	check_nobody_reads(ends[1], ends[0]);
}

static void so_does_a_fifo_that_somebody_opened_by_its_name(void **state)
{
	char path[] = "/tmp/carrel-log-XXXXXX", fifo[64];

	assert_non_null(mkdtemp(path));
	str_format(fifo, sizeof fifo, "%s/fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	int theirs = open(fifo, O_RDWR | O_CLOEXEC), ours = open(fifo, O_WRONLY | O_CLOEXEC);
	assert_true(theirs >= 0 && ours >= 0);
	unlink(fifo);
	rmdir(path);
	check_nobody_reads(ours, theirs);
}

static void a_log_that_is_closed_or_full_is_no_error(void **state)
{
	struct log_losses losses = { 0 };
	struct log log = { .fd = -1, .losses = &losses };

	log_record(&log, LOG_LEVEL_INFO, "m", NULL);
	assert_int_equal(losses.ever, 1);
	log.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	log_record(&log, LOG_LEVEL_INFO, "m", NULL);
	assert_int_equal(losses.ever, 2);
	close(log.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_records_have_time_level_message_and_fields),
		cmocka_unit_test(json_records_are_objects),
		cmocka_unit_test(a_role_is_in_all_of_its_records),
		cmocka_unit_test(levels_have_names),
		cmocka_unit_test(values_cannot_forge_a_record),
		cmocka_unit_test(records_below_the_least_level_are_not_written),
		cmocka_unit_test(long_values_are_cut_between_characters),
		cmocka_unit_test(a_record_is_at_most_4096_bytes_and_keeps_every_field),
		cmocka_unit_test(a_pipe_nobody_reads_loses_lines_and_says_how_many),
		cmocka_unit_test(so_does_a_socket),
		cmocka_unit_test(so_does_a_fifo_that_somebody_opened_by_its_name),
		cmocka_unit_test(a_log_that_is_closed_or_full_is_no_error),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
