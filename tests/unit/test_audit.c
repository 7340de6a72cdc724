/* audit/: the chain of lines, its files, what a verifier names, and what is left out of records. */
/* security: audit */
#include "audit/files.h"
#include "audit/ocsf.h"
#include "audit/read.h"
#include "audit/redact.h"
#include "audit/serve.h"
#include "audit/verify.h"

#include <sys/socket.h>
#include "base/file.h"
#include "path_fixture.h"
#include "unit.h"

static struct arena arena;
static struct audit_files files;
static const struct audit_options large = { 1 << 20, 1 << 24 };

static int set_up_log(void **state)
{
	arena_init(&arena);
	return set_up(state);
}

static int tear_down_log(void **state)
{
	audit_files_close(&files);
	arena_done(&arena);
	return tear_down(state);
}

static void open_log(const struct audit_options *options)
{
	struct error err;
	assert_int_equal(audit_files_open(&files, in, options, &err), 0);
}

static void append_type(const char *type, const char *workspace)
{
	auto_buf struct buf body = buf_empty(4096), lines = buf_empty(8192);
	struct audit_link last = files.last;
	struct json j = json_to(&body, false);
	const struct audit_body members = { .time_ms = 1700000000000 + (int64_t)last.seq * 1000,
		.type = type,
		.principal = "uid 7",
		.workspace = workspace,
		.workspace_name = "demo",
		.door = "rest" };
	struct error err;
	audit_body_begin(&j, &members);
	json_u64(&j, "torn_bytes", files.found.torn_bytes);
	audit_body_end(&j);
	audit_line_print(&last, (struct str){ body.data, body.len }, &lines);
	assert_int_equal(
		audit_files_append(&files, (struct str){ lines.data, lines.len }, &last, &err), 0);
}

static void append(int count)
{
	for (int i = 0; i < count; i++)
		append_type("exec.start", "w1");
}

static void sync_log(void)
{
	struct error err;
	assert_int_equal(audit_files_sync(&files, &err), 0);
}

static void write_log(int count)
{
	open_log(&large);
	append(count);
	sync_log();
	audit_files_close(&files);
}

static struct audit_verified verify(void)
{
	struct audit_verified verified;
	struct error err;
	assert_int_equal(audit_verify(in, NULL, &arena, &verified, &err), 0);
	return verified;
}

/* The first finding, of which there must be one. */
static struct audit_finding found(enum audit_finding_kind kind)
{
	struct audit_verified verified = verify();
	for (size_t i = 0; i < verified.findings.count; i++)
		if (verified.findings.items[i].kind == kind)
			return verified.findings.items[i];
	fail_msg("no finding '%s'; there are %zu others", audit_finding_names[kind],
		verified.findings.count);
	return (struct audit_finding){ 0 };
}

static const char first_file[] = "00000000000000000001.jsonl";

static struct str text_of(const char *name)
{
	struct str text;
	assert_int_equal(file_read_at(in, name, 1 << 22, &arena, &text), 0);
	return text;
}

static void replace(const char *name, struct str text)
{
	assert_int_equal(file_replace(in, name, 0600, text, false), 0);
}

/* The place of line `n`, from 1, in the text; *len with its newline. */
static size_t line_at(struct str text, int n, size_t *len)
{
	size_t at = 0;
	for (;; n--) {
		const char *end = memchr(text.data + at, '\n', text.len - at);
		assert_non_null(end);
		*len = (size_t)(end - text.data) + 1 - at;
		if (n == 1)
			return at;
		at += *len;
	}
}

static void a_log_that_was_left_alone_is_clean(void **state)
{
	write_log(5);
	struct audit_verified verified = verify();
	assert_int_equal(verified.findings.count, 0);
	assert_int_equal(verified.lines, 5);
	assert_int_equal(verified.last_seq, 5);
	assert_int_equal(verified.head.last.seq, 5);
	assert_int_equal(verified.head_state, HEAD_SIGNED);
	write_log(3); /* goes on */
	verified = verify();
	assert_int_equal(verified.findings.count, 0);
	assert_int_equal(verified.last_seq, 8);
}

static void a_changed_byte_is_named_by_file_line_and_seq(void **state)
{
	write_log(5);
	struct str text = text_of(first_file);
	size_t len, at = line_at(text, 3, &len);
	char *place = memmem(text.data + at, len, "uid 7", 5);
	place[4] = '8';
	replace(first_file, text);
	struct audit_finding finding = found(FINDING_CHANGED);
	assert_string_equal(finding.file, first_file);
	assert_int_equal(finding.line, 3);
	assert_int_equal(finding.seq, 3);
	assert_int_equal(verify().problem_count, 1);
}

static void a_line_that_was_made_anew_is_not_linked(void **state)
{
	write_log(5);
	struct str text = text_of(first_file);
	size_t len, at = line_at(text, 3, &len);
	struct audit_line line;
	assert_true(audit_line_read((struct str){ text.data + at, len - 1 }, &line));
	*(char *)memmem(text.data + at, len, "uid 7", 5) = 'U';
	char hash[AUDIT_HASH_LEN + 1];
	sha256_of(text.data + at, len - 1 - (9 + AUDIT_HASH_LEN + 2), hash);
	memcpy((char *)text.data + at + len - 1 - 2 - AUDIT_HASH_LEN, hash, AUDIT_HASH_LEN);
	replace(first_file, text);
	assert_int_equal(found(FINDING_UNLINKED).seq, 4);
}

static void a_missing_line_is_a_gap(void **state)
{
	write_log(5);
	struct str text = text_of(first_file);
	size_t len, at = line_at(text, 2, &len);
	memmove((char *)text.data + at, text.data + at + len, text.len - at - len);
	replace(first_file, (struct str){ text.data, text.len - len });
	struct audit_finding finding = found(FINDING_GAP);
	assert_int_equal(finding.seq, 2);
	assert_int_equal(finding.last_seq, 2);
}

static void swapped_lines_are_reordered(void **state)
{
	write_log(5);
	struct str text = text_of(first_file);
	size_t second_len, third_len;
	size_t second = line_at(text, 2, &second_len), third = line_at(text, 3, &third_len);
	auto_buf struct buf swapped = buf_empty(1 << 20);
	buf_append(&swapped, text.data, second);
	buf_append(&swapped, text.data + third, third_len);
	buf_append(&swapped, text.data + second, second_len);
	buf_append(&swapped, text.data + third + third_len, text.len - third - third_len);
	replace(first_file, (struct str){ swapped.data, swapped.len });
	found(FINDING_REORDERED);
	for (size_t i = 0; i < verify().findings.count; i++)
		assert_int_not_equal(verify().findings.items[i].kind, FINDING_GAP);
}

static void a_cut_tail_is_named_by_the_signed_head(void **state)
{
	write_log(5);
	struct str text = text_of(first_file);
	size_t len, at = line_at(text, 4, &len);
	replace(first_file, (struct str){ text.data, at });
	struct audit_finding finding = found(FINDING_CUT);
	assert_int_equal(finding.seq, 4);
	assert_int_equal(finding.last_seq, 5);
	/* In the middle of a line too: no crash does that to a line that was signed. */
	replace(first_file, (struct str){ text.data, at + 10 });
	found(FINDING_CUT);
}

static void numbers_go_on_behind_a_cut_so_that_it_stays_visible(void **state)
{
	write_log(5);
	struct str text = text_of(first_file);
	size_t len, at = line_at(text, 4, &len);
	replace(first_file, (struct str){ text.data, at });
	open_log(&large);
	assert_int_equal(files.found.missing_from, 4);
	assert_int_equal(files.found.missing_to, 5);
	append(2);
	sync_log();
	audit_files_close(&files);
	struct audit_finding finding = found(FINDING_GAP);
	assert_int_equal(finding.seq, 4);
	assert_int_equal(finding.last_seq, 5);
	assert_int_equal(verify().last_seq, 7);
}

static void a_file_that_was_begun_and_is_empty_cuts_nothing(void **state)
{
	char name[AUDIT_NAME_LEN + 1];
	write_log(5);
	audit_file_name(6, name);
	replace(name, STR(""));
	open_log(&large);
	assert_int_equal(files.found.missing_from, 0);
	assert_int_equal(files.found.unsigned_lines, 0);
	assert_string_equal(files.found.damage, "");
	append(2);
	sync_log();
	audit_files_close(&files);
	assert_int_equal(verify().findings.count, 0);
	assert_int_equal(verify().last_seq, 7);
}

static void a_torn_line_is_told_from_a_cut_one(void **state)
{
	write_log(4);
	struct str text = text_of(first_file);
	size_t len, at = line_at(text, 4, &len);
	struct audit_key key;
	struct audit_head head;
	struct error err;
	bool is_new;
	auto_buf struct buf signed_head = buf_empty(1024);
	/* As if the process was killed within its write of line 4. */
	assert_int_equal(audit_key_open(in, false, &key, &is_new, &err), 0);
	char read[AUDIT_HEAD_SIZE + 1];
	assert_int_equal(audit_head_load(in, &key, &head, read), HEAD_SIGNED);
	size_t third_len, third = line_at(text, 3, &third_len);
	struct audit_line line;
	assert_true(audit_line_read((struct str){ text.data + third, third_len - 1 }, &line));
	head.last = line.link;
	head.offset = at;
	audit_head_print(&head, &key, &signed_head);
	replace("head", (struct str){ signed_head.data, signed_head.len });
	replace(first_file, (struct str){ text.data, at + 20 });
	struct audit_verified verified = verify();
	assert_int_equal(verified.problem_count, 0);
	assert_int_equal(found(NOTE_TORN).line, 4);
	/* And when the daemon has gone on. */
	open_log(&large);
	assert_int_equal(files.found.torn_bytes, 20);
	append_type("audit.recovered", NULL);
	append(1);
	sync_log();
	audit_files_close(&files);
	assert_int_equal(verify().problem_count, 0);
	assert_int_equal(found(NOTE_TORN).line, 4);
	assert_int_equal(verify().last_seq, 5);
}

static void files_are_rotated_and_the_head_says_what_was_pruned(void **state)
{
	text_list names;
	struct error err;
	const struct audit_options small = { 1200, 5000 };
	open_log(&small);
	append(30);
	sync_log();
	audit_files_close(&files);
	assert_int_equal(audit_files_list(in, &arena, &names, &err), 0);
	assert_in_range(names.count, 3, 6);
	assert_string_not_equal(names.items[0], first_file);
	struct audit_verified verified = verify();
	assert_int_equal(verified.problem_count, 0);
	assert_true(verified.first_seq > 1);
	assert_int_equal(found(NOTE_PRUNED).last_seq, verified.first_seq - 1);
	/* One more is a removed one. */
	assert_int_equal(unlinkat(in, names.items[1], 0), 0);
	found(FINDING_FILE);
	assert_int_equal(unlinkat(in, names.items[0], 0), 0);
	found(FINDING_FILE);
	assert_int_equal(unlinkat(in, names.items[names.count - 1], 0), 0);
	found(FINDING_CUT);
}

static void a_head_without_the_key_is_worth_nothing(void **state)
{
	write_log(3);
	struct str head = text_of("head");
	char *seq = memmem(head.data, head.len, "\"seq\":3", 7);
	seq[6] = '2';
	replace("head", head);
	found(FINDING_HEAD);
	seq[6] = '3';
	replace("head", head);
	assert_int_equal(verify().problem_count, 0);
	unlinkat(in, "key", 0);
	found(FINDING_HEAD);
	open_log(&large);
	assert_true(files.found.damage[0]);
}

static void a_hash_that_was_kept_elsewhere_is_compared(void **state)
{
	struct audit_verified verified;
	struct error err;
	write_log(3);
	struct audit_link kept = verify().head.last;
	write_log(2);
	assert_int_equal(audit_verify(in, &kept, &arena, &verified, &err), 0);
	assert_int_equal(verified.problem_count, 0);
	kept.hash[0] = kept.hash[0] == '0' ? '1' : '0';
	assert_int_equal(audit_verify(in, &kept, &arena, &verified, &err), 0);
	assert_int_equal(verified.findings.items[0].kind, FINDING_AGAINST);
	kept.seq = 9;
	assert_int_equal(audit_verify(in, &kept, &arena, &verified, &err), 0);
	assert_int_equal(verified.problem_count, 1);
}

static void bytes_that_are_no_line_are_named(void **state)
{
	write_log(3);
	struct str text = text_of(first_file);
	auto_buf struct buf odd = buf_empty(1 << 20);
	size_t len, at = line_at(text, 2, &len);
	buf_append(&odd, text.data, at);
	buf_text(&odd, "{\"seq\":1}\n");
	buf_append(&odd, text.data + at, text.len - at);
	replace(first_file, (struct str){ odd.data, odd.len });
	assert_int_equal(found(FINDING_MALFORMED).line, 2);
}

/* ---- reading ---- */

static size_t count_lines(const struct audit_filter *filter)
{
	auto_buf struct buf text_out = buf_empty(1 << 20);
	struct audit_reader *reader;
	struct error err;
	size_t count = 0;
	assert_int_equal(audit_reader_open(in, filter, &reader, &err), 0);
	while (audit_reader_next(reader, &text_out, &err) == 1)
		;
	audit_reader_close(reader);
	for (size_t i = 0; i < text_out.len; i++)
		count += text_out.data[i] == '\n';
	return count;
}

static void lines_are_read_by_time_type_workspace_and_seq(void **state)
{
	const struct audit_options small = { 1200, 1 << 20 };
	open_log(&small);
	append(10);
	append_type("file.write", "w2");
	append(10);
	assert_int_equal(count_lines(&(struct audit_filter){ 0 }), 21);
	assert_int_equal(count_lines(&(struct audit_filter){ .type = "file" }), 1);
	assert_int_equal(count_lines(&(struct audit_filter){ .type = "fil" }), 0);
	assert_int_equal(count_lines(&(struct audit_filter){ .type = "exec.start" }), 20);
	assert_int_equal(count_lines(&(struct audit_filter){ .workspace = "w2" }), 1);
	assert_int_equal(count_lines(&(struct audit_filter){ .workspace = "demo" }), 21);
	assert_int_equal(count_lines(&(struct audit_filter){ .after = 15 }), 6);
	assert_int_equal(
		count_lines(&(struct audit_filter){ .since_ms = 1700000000000 + 18000 }), 3);
	assert_int_equal(
		count_lines(&(struct audit_filter){ .until_ms = 1700000000000 + 1000 }), 2);
}

static void times_are_read(void **state)
{
	int64_t ms;
	struct error err;
	assert_int_equal(audit_time_parse("1h", 1700000000000, &ms, &err), 0);
	assert_int_equal(ms, 1700000000000 - 3600000);
	assert_int_equal(audit_time_parse("2023-11-14T22:13:20Z", 0, &ms, &err), 0);
	assert_int_equal(ms, 1700000000000);
	assert_int_equal(audit_time_parse("yesterday", 1700000000000, &ms, &err), -1);
}

/* ---- secrets ---- */

static void secrets_are_replaced(void **state)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{ "[\"curl\",\"-u\",\"x\"]", "[\"curl\",\"-u\",\"x\"]" },
		{ "[\"API_TOKEN=abc\",\"A=1\"]", "[\"API_TOKEN=***\",\"A=1\"]" },
		{ "[\"--password\",\"hunter 2\",\"x\"]", "[\"--password\",\"***\",\"x\"]" },
		{ "[\"--api-key=abc\"]", "[\"--api-key=***\"]" },
		{ "[\"mysql --password abc -h x\"]", "[\"mysql --password *** -h x\"]" },
		{ "[\"export TOKEN='a b'; ls\"]", "[\"export TOKEN=***; ls\"]" },
		{ "[\"export TOKEN=\\\"a b\\\"; ls\"]", "[\"export TOKEN=***; ls\"]" },
		{ "[\"a\\nTOKEN=abc\\nb\"]", "[\"a\\nTOKEN=***\\nb\"]" },
		{ "[\"Authorization: Bearer abcdefgh\"]", "[\"Authorization: ***\"]" },
		{ "[\"X-Api-Key: abc\"]", "[\"X-Api-Key: ***\"]" },
		{ "[\"bearer abcdefgh x\"]", "[\"bearer *** x\"]" },
		{ "[\"https://me:pw@host/a?b=c\"]", "[\"https://***@host/a?b=c\"]" },
		{ "[\"https://host/a?token=abc&b=c\"]", "[\"https://host/a?token=***&b=c\"]" },
		{ "[\"https://host/@me\"]", "[\"https://host/@me\"]" },
		{ "[\"AKIAIOSFODNN7EXAMPLE\"]", "[\"AKIA***\"]" },
		{ "[\"crl_0123456789abcdef\"]", "[\"crl_***\"]" },
		{ "[\"x=crl_0123456789abcdef\"]", "[\"x=crl_***\"]" },
		{ "[\"{\\\"password\\\": \\\"abc\\\"}\"]", "[\"{\\\"password\\\": ***}\"]" },
		{ "[\"-----BEGIN RSA PRIVATE KEY-----\\nMII\\n-----END RSA PRIVATE KEY-----\"]",
			"[\"-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\"]" },
		{ "[\"-----BEGIN PRIVATE KEY-----\\nMII\"]",
			"[\"-----BEGIN PRIVATE KEY-----***\"]" },
		{ "{\"token_id\":\"t1\",\"auth\":true}", "{\"token_id\":\"t1\",\"auth\":true}" },
		{ "[\"a\\\\\"]", "[\"a\\\\\"]" },
		{ "[\"TOKEN=\"]", "[\"TOKEN=\"]" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_buf struct buf text_out = buf_empty(4096);
		struct json_value *value;
		struct error err;
		redact_json(str_from(rows[i].from), &text_out);
		assert_string_equal(text_out.data, rows[i].to);
		assert_int_equal(json_read((struct str){ text_out.data, text_out.len }, &arena,
					 &value, &err),
			0);
	}
}

/* ---- the process, and OCSF ---- */

static void a_record_is_written_although_its_sender_is_gone(void **state)
{
	static const char body[] = "{\"time\":\"t\",\"type\":\"x\",\"data\":{\"a\":\"TOKEN=b\"}}";
	struct audit_message head = { .len = sizeof body - 1, .number = 1 };
	struct error err;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(ends[0], &head, sizeof head), sizeof head);
		assert_int_equal(write(ends[0], body, head.len), head.len);
		head.number++;
	}
	close(ends[0]);
	assert_int_equal(audit_serve(ends[1], in, &large, false, &err), 0);
	close(ends[1]);
	struct audit_verified verified = verify();
	assert_int_equal(verified.findings.count, 0);
	assert_int_equal(verified.last_seq, 3);
	assert_null(strstr(text_of(first_file).data, "TOKEN=b"));
}

static void a_line_becomes_an_event_of_ocsf(void **state)
{
	static const struct {
		const char *type;
		uint64_t class_uid, activity;
	} rows[] = {
		{ "exec.start", 1007, 1 },
		{ "exec.end", 1007, 2 },
		{ "file.write", 1001, 3 },
		{ "workspace.create", 6003, 1 },
		{ "snapshot.remove", 6003, 4 },
		{ "access.refused", 6003, 3 },
		{ "login.token", 3002, 1 },
		{ "egress.refused", 4001, 5 },
		{ "daemon.start", 6002, 3 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		auto_buf struct buf text_out = buf_empty(1 << 16);
		struct json j = json_to(&text_out, false);
		struct json_value *line, *event;
		struct error err;
		uint64_t value;
		const char *text = arena_printf(&arena,
			"{\"seq\":3,\"time\":\"2023-11-14T22:13:20.123Z\",\"type\":\"%s\","
			"\"principal\":\"uid 5\",\"workspace\":\"w\",\"data\":{\"argv\":[\"a\","
			"\"b\"],\"path\":\"/x/y\"}}",
			rows[i].type);
		assert_int_equal(json_read(str_from(text), &arena, &line, &err), 0);
		ocsf_print(&j, line, "host");
		json_finish(&j);
		assert_int_equal(json_read((struct str){ text_out.data, text_out.len }, &arena,
					 &event, &err),
			0);
		assert_true(json_member_u64(event, "class_uid", &value));
		assert_int_equal(value, rows[i].class_uid);
		assert_true(json_member_u64(event, "type_uid", &value));
		assert_int_equal(value, rows[i].class_uid * 100 + rows[i].activity);
		assert_true(json_member_u64(event, "category_uid", &value));
		assert_int_equal(value, rows[i].class_uid / 1000);
		assert_true(json_member_u64(event, "time", &value));
		assert_int_equal(value, 1700000000123);
		assert_non_null(json_member(event, "metadata"));
		assert_true(json_member_u64(event, "severity_id", &value));
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_log, tear_down_log)
	const struct CMUnitTest tests[] = {
		TEST(a_log_that_was_left_alone_is_clean),
		TEST(a_changed_byte_is_named_by_file_line_and_seq),
		TEST(a_line_that_was_made_anew_is_not_linked),
		TEST(a_missing_line_is_a_gap),
		TEST(swapped_lines_are_reordered),
		TEST(a_cut_tail_is_named_by_the_signed_head),
		TEST(numbers_go_on_behind_a_cut_so_that_it_stays_visible),
		TEST(a_file_that_was_begun_and_is_empty_cuts_nothing),
		TEST(a_torn_line_is_told_from_a_cut_one),
		TEST(files_are_rotated_and_the_head_says_what_was_pruned),
		TEST(a_head_without_the_key_is_worth_nothing),
		TEST(a_hash_that_was_kept_elsewhere_is_compared),
		TEST(bytes_that_are_no_line_are_named),
		TEST(lines_are_read_by_time_type_workspace_and_seq),
		TEST(times_are_read),
		TEST(secrets_are_replaced),
		TEST(a_record_is_written_although_its_sender_is_gone),
		TEST(a_line_becomes_an_event_of_ocsf),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
