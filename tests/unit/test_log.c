/* Log records: one line each, that no value can forge. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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
	assert_true(strlen(line) < 4096 + 200);
	assert_true(strlen(line) > 4096);
	assert_null(strstr(line, "\xef\xbf\xbd"));
	assert_non_null(strstr(line, "\xe2\x82\xac\",\"last\":\"1\"}\n"));
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
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
