/* carrel doctor -- what this host can do, line by line, with cause and remedy. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/diagnose.h"
#include "cli/facts.h"
#include "cli/missed.h"
#include "format/json.h"

#define EXIT_NOT_HERE 125 /* carrel run doesn't work on this host */

struct tally {
	bool works;
	int count[CHECK_STATUS_COUNT];
};

static void print_json(const check_list *checks, const struct facts *facts,
	const struct tally *tally, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_bool(&j, "ok", tally->works);
	json_text(&j, "version", CARREL_VERSION);
	json_text(&j, "kernel", facts->release);
	json_u64(&j, "uid", facts->uid);
	json_array(&j, "checks");
	for (size_t i = 0; i < checks->count; i++) {
		const struct check *check = &checks->items[i];
		json_object(&j, NULL);
		json_text(&j, "group", check->group);
		json_text(&j, "name", check->name);
		json_text(&j, "status", check_status_name(check->status));
		json_text(&j, "detail", check->detail);
		json_text(&j, "cause", check->cause);
		json_text(&j, "remedy", check->remedy);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	buf_char(out, '\n');
}

/* A remedy's further lines stand below its first. */
static void print_field(struct buf *out, const char *name, const char *text)
{
	struct str rest = str_from(text), line;

	while (str_next(&rest, '\n', &line)) {
		buf_printf(out, "        %-7s %.*s\n", name, (int)line.len, line.data);
		name = "";
	}
}

static void print_check(const struct check *check, bool colour, struct buf *out)
{
	static const char *const colours[CHECK_STATUS_COUNT] = { "\033[32m", "\033[33m",
		"\033[1;31m" };

	buf_printf(out, "  %s%-4s%s  %-16s %s", colour ? colours[check->status] : "",
		check_status_name(check->status), colour ? "\033[0m" : "", check->name,
		check->detail);
	/* A single remark fits on the line. */
	if (check->status != CHECK_FAIL && !(check->cause && check->remedy)) {
		const char *remark = check->cause ? check->cause : check->remedy;
		buf_printf(out, "%s%s\n", remark ? "; " : "", remark ? remark : "");
		return;
	}
	buf_char(out, '\n');
	if (check->cause)
		print_field(out, "cause", check->cause);
	if (check->remedy)
		print_field(out, "remedy", check->remedy);
}

static void print_text(
	const check_list *checks, const struct tally *tally, bool colour, struct buf *out)
{
	const char *group = "", *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
	int warnings = tally->count[CHECK_WARN], failures = tally->count[CHECK_FAIL];

	for (size_t i = 0; i < checks->count; i++) {
		const struct check *check = &checks->items[i];
		if (strcmp(group, check->group) != 0)
			buf_printf(out, "%s%s%s%s\n", i > 0 ? "\n" : "", bold, check->group, plain);
		group = check->group;
		print_check(check, colour, out);
	}
	buf_printf(out, "\n%s%s%s: %d ok, %d warning%s, %d failure%s\n", bold,
		tally->works ? "carrel run works here with all layers"
			     : "carrel run doesn't work here",
		plain, tally->count[CHECK_OK], warnings, warnings == 1 ? "" : "s", failures,
		failures == 1 ? "" : "s");
}

static int run(struct command *command, struct error *err)
{
	struct facts facts;
	check_list checks = { 0 };
	if (command->argv[0])
		return missed_find(command, err);
	facts_collect(&facts, &command->arena);
	diagnose(&facts, &command->arena, &checks);
	struct tally tally = { .works = facts.run_exit == 0 };
	for (size_t i = 0; i < checks.count; i++)
		tally.count[checks.items[i].status]++;
	if (command->json)
		print_json(&checks, &facts, &tally, &command->out);
	else
		print_text(&checks, &tally, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
			&command->out);
	return tally.works ? 0 : EXIT_NOT_HERE;
}

static const struct arg_option table[] = { { ARG_FROM(format_rows) } };
const struct arg_spec cli_doctor = {
	.command = "doctor",
	.summary = "check what this host supports, and how to change it",
	.usage = "carrel doctor [-o json] [-- PROGRAM [ARG...]]",
	.about = "Tries every kernel feature that sandboxes need, and prints what works on this "
		 "host, what doesn't, why, and the command that changes it.\n"
		 "Exits 0 if 'carrel run' works with all layers, else 125. Changes nothing.\n"
		 "With PROGRAM: runs it in a sandbox, and lists the files of this host that it "
		 "looked for and did not find.",
	ARG_TABLE(table),
	.takes_command = true,
	.run = run,
};
