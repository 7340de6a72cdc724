/* case_report.c -- report.html of carrel case run: one page, without external resources or
 * scripts. */
#include "base/clock.h"
#include "base/str.h"
#include "cli/agents/case.h"

static const char head[] =
	"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
	"'unsafe-inline'\">\n"
	"<title>Results of cases</title>\n<style>\n"
	":root { --text: #1f2328; --dim: #59636e; --page: #fff; --box: #f6f8fa; --line: #d1d9e0;\n"
	"  --good: #1a7f37; --bad: #cf222e; --added: #dafbe1; --removed: #ffebe9; color-scheme: "
	"light dark }\n"
	"@media (prefers-color-scheme: dark) { :root { --text: #f0f6fc; --dim: #9198a1; --page: "
	"#0d1117;\n"
	"  --box: #151b23; --line: #3d444d; --good: #3fb950; --bad: #f85149; --added: #12261e; "
	"--removed: #25171c } }\n"
	"body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: "
	"var(--page);\n"
	"  max-width: 64rem; margin: 0 auto; padding: 1rem }\n"
	"p { margin: .5rem 0 } h1 { font-size: 1.5rem; margin: .5rem 0 } h2 { font-size: 1.15rem; "
	"margin: 2rem 0 .5rem "
	"}\n"
	".dim { color: var(--dim) } .good { color: var(--good) } .bad { color: var(--bad) }\n"
	".scroll { overflow-x: auto } table { border-collapse: collapse; width: 100% }\n"
	"th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid "
	"var(--line);\n"
	"  vertical-align: baseline } th { font-weight: 600; color: var(--dim) }\n"
	"td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap "
	"}\n"
	"meter { width: 6rem; height: .7rem; vertical-align: baseline }\n"
	"details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; background: "
	"var(--box) }\n"
	"summary { cursor: pointer; padding: .4rem .75rem } details > div { padding: 0 .75rem "
	".75rem }\n"
	"summary b { display: inline-block; min-width: 4.2rem }\n"
	"h3 { font-size: .95rem; margin: .9rem 0 .25rem } h3 .dim { font-weight: normal }\n"
	"@media (max-width: 36rem) { th:nth-child(2), td:nth-child(2) { display: none } }\n"
	"pre { margin: 0; padding: .5rem; background: var(--page); border: 1px solid var(--line); "
	"border-radius: 4px;\n"
	"  overflow: auto; max-height: 24rem; font: 12.5px/1.45 ui-monospace, monospace; tab-size: "
	"4 }\n"
	"pre span { display: block; min-height: 1em } .added { background: var(--added) } .removed "
	"{ background: var(--removed) }\n"
	"code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap "
	"}\n"
	"@media print { pre { max-height: none } }\n"
	"</style>\n</head>\n<body>\n";

static void print_text(struct buf *out, const struct json_value *value, const char *key)
{
	const struct json_value *member = json_member(value, key);
	if (member && member->kind == JSON_STRING)
		case_escape(out, member->string);
}

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
	print_text(out, step, "name");
	buf_printf(out, " <span class=\"dim\">%.2f s, exit code %" PRIu64 ", ",
		(double)duration_ms / 1000, code);
	print_text(out, step, "reason");
	buf_text(out, "</span></h3>\n<div class=\"dim\"><code>");
	print_text(out, step, "command");
	buf_text(out, "</code></div>\n");
	if (output && output->kind == JSON_STRING && output->string.len) {
		buf_text(out, "<pre>");
		case_escape(out, output->string);
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
		case_escape(out, line);
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
		case_print_cause(result, &cause);
		buf_text(out, ", by ");
		case_escape(out, (struct str){ cause.data, cause.len });
	}
	buf_text(out, "</span></summary><div>\n");
	if (json_member_text(result->value, "error")) {
		buf_text(out, "<p class=\"bad\">");
		print_text(out, result->value, "error");
		buf_text(out, "</p>\n");
	}
	for (; step; step = step->next)
		print_step(out, step);
	print_diff(out, result->value);
	buf_text(out, "</div></details>\n");
}

struct times {
	size_t count, passed;
	uint64_t sum_ms, least_ms, most_ms;
};

static struct times times_of(const case_results *results, size_t at)
{
	struct times times = { .least_ms = UINT64_MAX };
	const char *name = results->items[at].name;
	for (; at < results->count && !strcmp(results->items[at].name, name); at++) {
		uint64_t ms = results->items[at].duration_ms;
		times.count++;
		times.passed += results->items[at].has_passed;
		times.sum_ms += ms;
		times.least_ms = ms < times.least_ms ? ms : times.least_ms;
		times.most_ms = ms > times.most_ms ? ms : times.most_ms;
	}
	return times;
}

static void print_row(struct buf *out, const char *name, const struct times *times)
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

void case_report_print(const case_results *results, struct buf *out)
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
		struct times times = times_of(results, at);
		print_row(out, results->items[at].name, &times);
		at += times.count;
	}
	buf_text(out, "</table></div>\n");
	for (size_t at = 0; at < results->count;) {
		struct times times = times_of(results, at);
		buf_printf(out, "<h2 id=\"%s\">%s</h2>\n", results->items[at].name,
			results->items[at].name);
		for (size_t end = at + times.count; at < end; at++)
			print_cell(out, &results->items[at]);
	}
	buf_text(out, "</body>\n</html>\n");
}
