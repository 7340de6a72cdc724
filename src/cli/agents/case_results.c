/* case_results.c -- results.jsonl, junit.xml, report.html, the files of each cell, and the table.
 */
#include "cli/agents/case.h"

#include <fcntl.h>
#include <sys/stat.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "cli/columns.h"

#define RESULTS "results.jsonl"
#define RESULTS_MAX ((size_t)1 << 30)

/* ---- causes ---- */

/* What a cell has failed by: its reason, with the names of graders that it did not pass. */
static void print_cause(const struct case_result *result, struct buf *out)
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
	print_cause(result, &text);
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

/* Text of XML or HTML: what may not stand there is escaped, or U+FFFD. Colours of a terminal are
 * left out. */
static void escape(struct buf *out, struct str text)
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
		escape(out, member->string);
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
	uint64_t sum_ms, least_ms, most_ms;
	const struct case_result *failed; /* the first, or NULL */
};

static struct group next_group(const case_results *results, size_t at)
{
	struct group group = { .least_ms = UINT64_MAX };
	const char *name = results->items[at].name;
	for (; at < results->count && !strcmp(results->items[at].name, name); at++) {
		const struct case_result *result = &results->items[at];
		group.count++;
		group.passed += result->has_passed;
		group.sum_ms += result->duration_ms;
		if (result->duration_ms < group.least_ms)
			group.least_ms = result->duration_ms;
		if (result->duration_ms > group.most_ms)
			group.most_ms = result->duration_ms;
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
			(double)group.sum_ms / 1000);
		for (size_t end = at + group.count; at < end; at++)
			print_test(out, &results->items[at]);
		buf_text(out, "  </testsuite>\n");
	}
	buf_text(out, "</testsuites>\n");
}

/* ---- report.html: one page, without external resources or scripts ---- */

/* case_report.html */
static const char head[] = {
#include "cli/case_report.inc"
	0
};

static void print_verdict(struct buf *out, bool has_passed)
{
	buf_printf(out, "<b class=\"%s\">%s</b>", has_passed ? "good" : "bad",
		has_passed ? "passed" : "failed");
}

static void print_step(struct buf *out, const struct json_value *step)
{
	const struct json_value *output = json_member(step, "output");
	uint64_t duration_ms = 0, code = 0;
	json_member_u64(step, "duration_ms", &duration_ms);
	json_member_u64(step, "exit_code", &code);
	buf_text(out, "<h3>");
	print_verdict(out, json_member_true(step, "passed"));
	buf_char(out, ' ');
	print_member(out, step, "name");
	buf_printf(out, " <span class=\"dim\">%.2f s, exit code %" PRIu64 ", ",
		(double)duration_ms / 1000, code);
	print_member(out, step, "reason");
	buf_text(out, "</span></h3>\n<div class=\"dim\"><code>");
	print_member(out, step, "command");
	buf_text(out, "</code></div>\n");
	if (output && output->kind == JSON_STRING && output->string.len) {
		buf_text(out, "<pre>");
		escape(out, output->string);
		buf_text(out, "</pre>\n");
	}
}

static void print_diff(struct buf *out, const struct json_value *cell)
{
	const struct json_value *diff = json_member(cell, "diff");
	struct str rest, line;
	if (!diff || diff->kind != JSON_STRING)
		return;
	buf_text(out, "<h3>What the harness changed</h3>\n");
	if (!diff->string.len) {
		buf_text(out, "<div class=\"dim\">nothing</div>\n");
		return;
	}
	buf_text(out, "<pre>");
	for (rest = diff->string; str_next(&rest, '\n', &line);) {
		bool is_head = str_starts_with(line, "+++") || str_starts_with(line, "---");
		const char *kind = is_head || !line.len	 ? ""
				   : line.data[0] == '+' ? " class=\"added\""
				   : line.data[0] == '-' ? " class=\"removed\""
							 : "";
		buf_printf(out, "<span%s>", kind);
		escape(out, line);
		buf_text(out, "</span>");
	}
	buf_text(out, "</pre>\n");
	if (json_member_true(cell, "diff_truncated"))
		buf_text(out, "<div class=\"dim\">The rest is left out.</div>\n");
}

static void print_cell(struct buf *out, const struct case_result *result)
{
	const struct json_value *step = json_member_first(result->value, "steps");
	buf_printf(out, "<details%s><summary>", result->has_passed ? "" : " open");
	print_verdict(out, result->has_passed);
	buf_printf(out, " repeat %" PRIu64 " <span class=\"dim\">%.2f s", result->repeat,
		(double)result->duration_ms / 1000);
	if (!result->has_passed) {
		auto_buf struct buf cause = buf_empty(BUF_MAX_DEFAULT);
		print_cause(result, &cause);
		buf_text(out, ", by ");
		escape(out, (struct str){ cause.data, cause.len });
	}
	buf_text(out, "</span></summary><div>\n");
	if (json_member_text(result->value, "error")) {
		buf_text(out, "<p class=\"bad\">");
		print_member(out, result->value, "error");
		buf_text(out, "</p>\n");
	}
	for (; step; step = step->next)
		print_step(out, step);
	print_diff(out, result->value);
	buf_text(out, "</div></details>\n");
}

static void print_row(struct buf *out, const char *name, const struct group *times)
{
	double rate = (double)times->passed / (double)times->count;
	buf_printf(out,
		"<tr><td><a href=\"#%s\">%s</a></td><td><meter value=\"%.3f\"></meter></td>"
		"<td class=\"n %s\">%.0f %%</td><td class=\"n\">%zu/%zu</td>"
		"<td class=\"n\">%.2f s</td><td class=\"n\">%.2f s</td><td class=\"n\">%.2f s</td>"
		"</tr>\n",
		name, name, rate, times->passed == times->count ? "good" : "bad", 100 * rate,
		times->passed, times->count, (double)times->sum_ms / 1000 / (double)times->count,
		(double)times->least_ms / 1000, (double)times->most_ms / 1000);
}

static void print_report(const case_results *results, struct buf *out)
{
	size_t passed = 0;
	char now[32];
	clock_format_now(now);
	for (size_t i = 0; i < results->count; i++)
		passed += results->items[i].has_passed;
	buf_text(out, head);
	buf_printf(out,
		"<h1><span class=\"%s\">%zu of %zu cells passed</span></h1>\n"
		"<p class=\"dim\">%s, carrel " CARREL_VERSION "</p>\n",
		passed == results->count ? "good" : "bad", passed, results->count, now);
	buf_text(out,
		"<div class=\"scroll\"><table>\n<tr><th>Case</th><th></th><th class=\"n\">Rate"
		"</th><th class=\"n\">Passed</th><th class=\"n\">Mean</th><th class=\"n\">"
		"Least</th><th class=\"n\">Most</th></tr>\n");
	for (size_t at = 0; at < results->count;) {
		struct group times = next_group(results, at);
		print_row(out, results->items[at].name, &times);
		at += times.count;
	}
	buf_text(out, "</table></div>\n");
	for (size_t at = 0; at < results->count;) {
		struct group times = next_group(results, at);
		buf_printf(out, "<h2 id=\"%s\">%s</h2>\n", results->items[at].name,
			results->items[at].name);
		for (size_t end = at + times.count; at < end; at++)
			print_cell(out, &results->items[at]);
	}
	buf_text(out, "</body>\n</html>\n");
}

int case_out_finish(struct case_out *out, const case_results *results, struct error *err)
{
	auto_buf struct buf junit = buf_empty(BUF_MAX_DEFAULT), report = buf_empty(BUF_MAX_DEFAULT);
	print_junit(results, &junit);
	print_report(results, &report);
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
			arena_printf(
				arena, "%.2fs", (double)group.sum_ms / 1000 / (double)group.count),
			group.failed ? case_cause(group.failed, arena) : NULL };
		columns_add(&columns, cells);
		at += group.count;
	}
	columns_print(&columns, out);
}
