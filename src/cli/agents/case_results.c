/* case_results.c -- results.jsonl, junit.xml, the files of each cell, and the table. */
#include "cli/agents/case.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/columns.h"

#define RESULTS "results.jsonl"
#define RESULTS_MAX ((size_t)1 << 30)

/* ---- causes ---- */

void case_print_cause(const struct case_result *result, struct buf *out)
{
	const char *reason = json_member_text(result->value, "reason");
	const struct json_value *step = json_member_first(result->value, "steps");
	const char *before = " ";
	buf_text(out, reason ? reason : "");
	if (!reason || strcmp(reason, "grader") != 0)
		return;
	for (; step; step = step->next) {
		const char *type = json_member_text(step, "type"),
			   *name = json_member_text(step, "name");
		if (json_member_true(step, "passed") || !name || (type && !strcmp(type, "harness")))
			continue;
		buf_printf(out, "%s'%s'", before, name);
		before = ", ";
	}
}

const char *case_cause(const struct case_result *result, struct arena *arena)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	case_print_cause(result, &text);
	return text.len ? arena_bytes(arena, text.data, text.len) : NULL;
}

/* ---- lines ---- */

/* It names a directory of the results; daemons and files of results may be somebody else's. */
bool case_name_is_plain(const char *name)
{
	return name[0] && name[0] != '.' && !strchr(name, '/');
}

static int read_result(struct str line, struct arena *arena, struct case_result *result)
{
	struct error ignored;
	struct json_value *value;
	if (json_read(line, arena, &value, &ignored))
		return -1;
	const char *state = json_member_text(value, "state");
	result->value = value;
	result->name = json_member_text(value, "case");
	result->key = json_member_text(value, "key");
	result->has_passed = state && !strcmp(state, "passed");
	result->duration_ms = 0;
	json_member_u64(value, "duration_ms", &result->duration_ms);
	return !state || !result->name || !case_name_is_plain(result->name) || !result->key ||
			       !json_member_u64(value, "repeat", &result->repeat)
		       ? -1
		       : 0;
}

static void print_line(struct buf *line, const struct json_value *cell, const char *key)
{
	static const char *const members[] = { "state", "reason", "error", "duration_ms",
		"started_at", "ended_at", "workspace", "steps", "diff", "diff_truncated",
		"variables" };
	struct json j = json_to(line, false);
	const struct json_value *repeat = json_member(cell, "repeat");
	json_object(&j, NULL);
	json_text(&j, "case", json_member_text(cell, "case_name"));
	json_copy(&j, "repeat", repeat);
	json_text(&j, "cell", json_member_text(cell, "id"));
	json_text(&j, "key", key);
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		const struct json_value *member = json_member(cell, members[i]);
		if (member)
			json_copy(&j, members[i], member);
	}
	json_end(&j);
	buf_char(line, '\n');
}

/* A line that was cut by a crash is left out, and run again. */
static void take_lines(
	struct str text, struct arena *arena, case_results *results, struct buf *kept)
{
	struct str line;
	while (str_next(&text, '\n', &line)) {
		struct case_result result;
		if (read_result(line, arena, &result))
			continue;
		vec_push(arena, results, result);
		buf_append(kept, line.data, line.len);
		buf_char(kept, '\n');
	}
}

int case_out_open(struct case_out *out, const char *path, bool resume, struct arena *arena,
	case_results *results, struct error *err)
{
	auto_buf struct buf kept = buf_empty(BUF_MAX_DEFAULT);
	struct str text = { 0 };
	*out = (struct case_out){ -1, -1, path };
	if (mkdir(path, 0777) && errno != EEXIST)
		return fail_errno(err, "make directory '%s'", path);
	out->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out->dir < 0)
		return fail_errno(err, "open directory '%s'", path);
	bool is_there = !file_read_at(out->dir, RESULTS, RESULTS_MAX, arena, &text);
	if (!is_there && errno != ENOENT)
		return fail_errno(err, "read '%s/" RESULTS "'", path);
	if (is_there && !resume)
		return fail_hint(err, ERR_CONFLICT, "--resume continues them; --out names another",
			"there are results in '%s' already", path);
	take_lines(text, arena, results, &kept);
	if (file_replace(out->dir, RESULTS, 0666, (struct str){ kept.data, kept.len }, false))
		return fail_errno(err, "write '%s/" RESULTS "'", path);
	out->lines = openat(out->dir, RESULTS, O_WRONLY | O_APPEND | O_CLOEXEC);
	return out->lines < 0 ? fail_errno(err, "open '%s/" RESULTS "'", path) : 0;
}

void case_out_done(struct case_out *out)
{
	fd_close(&out->lines);
	fd_close(&out->dir);
}

/* ---- the files of a cell ---- */

static int write_file(int dir, const char *name, struct str text, struct error *err)
{
	return file_replace(dir, name, 0666, text, false) ? fail_errno(err, "write '%s'", name) : 0;
}

static int make_directory(int dir, const char *name, int *made, struct error *err)
{
	if (mkdirat(dir, name, 0777) && errno != EEXIST)
		return fail_errno(err, "make directory '%s'", name);
	*made = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *made < 0 ? fail_errno(err, "open directory '%s'", name) : 0;
}

/* "2-pytest.log": names of graders may have slashes. */
static const char *log_name(size_t i, const char *name, struct arena *arena)
{
	char *text = arena_printf(arena, "%zu-%s.log", i, name ? name : "step");
	for (char *c = text; *c; c++)
		if (*c == '/' || (unsigned char)*c < ' ')
			*c = '_';
	return text;
}

static int write_steps(
	int dir, const struct json_value *step, struct arena *arena, struct error *err)
{
	for (size_t i = 0; step; step = step->next) {
		const struct json_value *output = json_member(step, "output");
		const char *name = log_name(i++, json_member_text(step, "name"), arena);
		if (write_file(dir, name, output ? output->string : STR(""), err))
			return -1;
	}
	return 0;
}

static int write_cell(struct case_out *out, const struct case_result *result, struct arena *arena,
	struct error *err)
{
	const struct json_value *diff = json_member(result->value, "diff"),
				*variables = json_member(result->value, "variables");
	auto_buf struct buf env = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&env, true);
	auto_close int above = -1, dir = -1;
	char repeat[24];
	str_format(repeat, sizeof repeat, "%" PRIu64, result->repeat);
	if (make_directory(out->dir, result->name, &above, err) ||
		make_directory(above, repeat, &dir, err))
		return -1;
	if (variables)
		json_copy(&j, NULL, variables);
	buf_char(&env, '\n');
	if (variables && write_file(dir, "env.json", (struct str){ env.data, env.len }, err))
		return -1;
	if (diff && diff->kind == JSON_STRING && write_file(dir, "diff.patch", diff->string, err))
		return -1;
	return write_steps(dir, json_member_first(result->value, "steps"), arena, err);
}

int case_out_add(struct case_out *out, const struct json_value *cell, const char *key,
	struct arena *arena, case_results *results, struct error *err)
{
	auto_buf struct buf line = buf_empty(BUF_MAX_DEFAULT);
	struct case_result result;
	print_line(&line, cell, key);
	struct str text = { arena_bytes(arena, line.data, line.len - 1), line.len - 1 };
	if (read_result(text, arena, &result))
		return fail(err, ERR_CORRUPT, "the daemon's response is not a cell");
	if (fd_write_full(out->lines, line.data, line.len) != (ssize_t)line.len)
		return fail_errno(err, "write '%s/" RESULTS "'", out->path);
	if (write_cell(out, &result, arena, err))
		return error_context(err, "in '%s'", out->path);
	vec_push(arena, results, result);
	return 0;
}

/* ---- junit.xml ---- */

/* Length of the sequence for a terminal (colours and the like) at text[at]; 0: there is none. */
static size_t sequence_len(struct str text, size_t at)
{
	size_t end = at + 2;
	if (end >= text.len || text.data[at] != '\x1b' || text.data[at + 1] != '[')
		return 0;
	while (end < text.len && text.data[end] >= ' ' && text.data[end] <= '?')
		end++;
	return end < text.len && text.data[end] >= '@' && text.data[end] <= '~' ? end + 1 - at : 0;
}

void case_escape(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		for (size_t len; (len = sequence_len(text, i));)
			i += len;
		if (i >= text.len)
			break;
		unsigned char c = (unsigned char)text.data[i];
		const char *name = c == '&'   ? "&amp;"
				   : c == '<' ? "&lt;"
				   : c == '>' ? "&gt;"
				   : c == '"' ? "&quot;"
				   : (c < ' ' && c != '\n' && c != '\t') || c == 0x7f
					   ? "\xef\xbf\xbd"
					   : NULL;
		if (name)
			buf_text(out, name);
		else
			buf_char(out, (char)c);
	}
}

static void print_member(struct buf *out, const struct json_value *value, const char *key)
{
	const struct json_value *member = json_member(value, key);
	if (member && member->kind == JSON_STRING)
		case_escape(out, member->string);
}

static void print_test(struct buf *out, const struct case_result *result)
{
	const struct json_value *step, *first = json_member_first(result->value, "steps");
	buf_printf(out,
		"    <testcase classname=\"%s\" name=\"repeat %" PRIu64 "\" time=\"%.3f\">\n",
		result->name, result->repeat, (double)result->duration_ms / 1000);
	if (!result->has_passed) {
		buf_text(out, "      <failure type=\"");
		print_member(out, result->value, "reason");
		buf_text(out, "\" message=\"");
		print_member(out, result->value, "error");
		buf_text(out, "\">");
		for (step = first; step; step = step->next) {
			if (json_member_true(step, "passed"))
				continue;
			print_member(out, step, "name");
			buf_text(out, " (");
			print_member(out, step, "reason");
			buf_text(out, ")\n");
			print_member(out, step, "output");
		}
		buf_text(out, "</failure>\n");
	}
	buf_text(out, "      <system-out>");
	for (step = first; step; step = step->next)
		print_member(out, step, "output");
	buf_text(out, "</system-out>\n    </testcase>\n");
}

/* How many of the results from *at on are of one case; and sums of them. */
struct group {
	size_t count, passed;
	uint64_t duration_ms;
	const struct case_result *failed; /* the first, or NULL */
};

static struct group next_group(const case_results *results, size_t at)
{
	struct group group = { 0 };
	const char *name = results->items[at].name;
	for (; at < results->count && !strcmp(results->items[at].name, name); at++) {
		const struct case_result *result = &results->items[at];
		group.count++;
		group.passed += result->has_passed;
		group.duration_ms += result->duration_ms;
		if (!result->has_passed && !group.failed)
			group.failed = result;
	}
	return group;
}

static void print_junit(const case_results *results, struct buf *out)
{
	buf_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	for (size_t at = 0; at < results->count;) {
		struct group group = next_group(results, at);
		buf_printf(out,
			"  <testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
			"time=\"%.3f\">\n",
			results->items[at].name, group.count, group.count - group.passed,
			(double)group.duration_ms / 1000);
		for (size_t end = at + group.count; at < end; at++)
			print_test(out, &results->items[at]);
		buf_text(out, "  </testsuite>\n");
	}
	buf_text(out, "</testsuites>\n");
}

int case_out_finish(struct case_out *out, const case_results *results, struct error *err)
{
	auto_buf struct buf junit = buf_empty(BUF_MAX_DEFAULT), report = buf_empty(BUF_MAX_DEFAULT);
	print_junit(results, &junit);
	case_report_print(results, &report);
	return write_file(out->dir, "junit.xml", (struct str){ junit.data, junit.len }, err) ||
			       write_file(out->dir, "report.html",
				       (struct str){ report.data, report.len }, err)
		       ? error_context(err, "in '%s'", out->path)
		       : 0;
}

/* ---- the table ---- */

static int compare(const void *a, const void *b)
{
	const struct case_result *one = a, *other = b;
	int names = strcmp(one->name, other->name);
	return names ? names : (one->repeat > other->repeat) - (one->repeat < other->repeat);
}

void case_results_sort(case_results *results)
{
	if (results->count)
		qsort(results->items, results->count, sizeof *results->items, compare);
}

void case_print_table(const case_results *results, struct arena *arena, struct buf *out)
{
	struct columns columns = { .count = 4, .numbers = 2 | 4, .arena = arena };
	static const char *const heads[] = { "CASE", "PASSED", "TIME", "FAILED BY" };
	columns_add(&columns, heads);
	for (size_t at = 0; at < results->count;) {
		struct group group = next_group(results, at);
		const char *cells[] = { results->items[at].name,
			arena_printf(arena, "%zu/%zu", group.passed, group.count),
			arena_printf(arena, "%.2fs",
				(double)group.duration_ms / 1000 / (double)group.count),
			group.failed ? case_cause(group.failed, arena) : NULL };
		columns_add(&columns, cells);
		at += group.count;
	}
	columns_print(&columns, out);
}
