#include "model/agents/case.h"

#include "base/str.h"
#include "format/text/yaml_json.h"
#include "model/nouns/template.h"
#include "model/records/rows.h"

const char *const grader_type_names[] = { "command", "tests", "pytest", NULL };
const char *const case_state_names[] = { "created", "preparing", "ready", "failed", NULL };
const char *const cell_state_names[] = { "waiting", "harness", "grading", "passed", "failed",
	"canceled", NULL };

/* ---- single values ---- */

/* It names a directory of the results, too. */
static int check_id(const char *text, struct error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t len = strlen(text);
	if (len && len <= CASE_ID_MAX && strspn(text, letters) == len && !strchr("._-", text[0]))
		return 0;
	return fail_hint(err, ERR_INVALID,
		"1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'; the first a letter or digit",
		"'%.64s' is not the id of a case", text);
}

static int check_command(const char *text, struct error *err)
{
	return text[strspn(text, " \t\n")] ? 0 : fail(err, ERR_INVALID, "the command is empty");
}

static int check_grader(const void *value, struct error *err)
{
	const struct case_grader *grader = value;
	const char *type = grader_type_names[grader->type];
	if (grader->type == GRADER_COMMAND && !grader->run)
		return fail(err, ERR_INVALID, "run: missing; a grader of type command needs one");
	if (grader->type == GRADER_TESTS && !grader->files.count)
		return fail(err, ERR_INVALID, "files: missing; a grader of type tests needs them");
	if (grader->type == GRADER_PYTEST && grader->run)
		return fail(err, ERR_INVALID, "run: not of a grader of type pytest; see args");
	if (grader->type != GRADER_PYTEST && (grader->paths.count || grader->args.count))
		return fail(err, ERR_INVALID, "%s: not of a grader of type %s",
			grader->paths.count ? "paths" : "args", type);
	if (grader->type == GRADER_COMMAND && grader->files.count)
		return fail(err, ERR_INVALID, "files: not of a grader of type command");
	return 0;
}

/* ---- the file ---- */

#define TIMEOUT(offset)                                                                            \
	{                                                                                          \
		"timeout", FIELD_DURATION, offset, "of each command", .least = 1,                  \
								      .most = CASE_TIMEOUT_MOST    \
	}
#define AT(member) offsetof(struct case_environment, member)
static const struct field_choice installs[] = { { "editable", 1 }, { 0 } };
static const struct field environment_rows[] = {
	ROW(TEXTS, requirements, "packages of Python", .most = 500,
		.check = template_check_requirement),
	ROW(CHOICE, install, "editable: the source too, with its dependencies",
		.choices = installs),
	ROW(BOOLEAN, system_site_packages, "packages of the host's interpreter are found too"),
};
#undef AT
static const struct record environment_record = { "CaseEnvironment", NULL,
	RECORD_ROWS(environment_rows), FIELD_IN };

#define AT(member) offsetof(struct case_setup, member)
static const struct field setup_rows[] = {
	ROW(TEXTS, run, "shell commands", .least = 1, .most = CASE_COMMANDS_MAX,
		.check = check_command),
	TIMEOUT(AT(timeout_ms)),
};
#undef AT
static const struct record setup_record = { "CaseSetup", NULL, RECORD_ROWS(setup_rows), FIELD_IN };

#define AT(member) offsetof(struct case_harness, member)
static const struct field harness_rows[] = {
	ROW(TEXT, command, "shell command", FIELD_IN | FIELD_REQUIRED, .check = check_command),
	TIMEOUT(AT(timeout_ms)),
};
#undef AT
static const struct record harness_record = { "CaseHarness", NULL, RECORD_ROWS(harness_rows),
	FIELD_IN };

#define AT(member) offsetof(struct case_grader, member)
static const struct field grader_rows[] = {
	ROW(CHOICE, type, NULL, FIELD_IN | FIELD_REQUIRED, .names = grader_type_names),
	ROW(TEXT, name, NULL, .least = 1, .most = 64),
	ROW(TEXT, run, "shell command", .check = check_command),
	ROW(TEXTS, paths, NULL, .most = 100),
	ROW(TEXTS, args, NULL, .most = 100),
	ROW(PAIRS, files, NULL, .most = TEMPLATE_FILES_MAX, .check_pair = template_check_file),
	TIMEOUT(AT(timeout_ms)),
};
#undef AT
static const struct record grader_record = { "CaseGrader", NULL, RECORD_ROWS(grader_rows), FIELD_IN,
	.check = check_grader };

/* Without the graders: a list of objects is no field. */
#define AT(member) offsetof(struct case_spec, member)
static const struct field spec_rows[] = {
	ROW(TEXT, id, NULL, FIELD_IN | FIELD_REQUIRED, .check = check_id),
	ROW(TEXT, description, NULL, .most = 1000),
	ROW(TEXT, source, NULL, .least = 1, .most = 4096),
	ROW(OBJECT, environment, .object = &environment_record),
	ROW(OBJECT, setup, .object = &setup_record),
	ROW(SHORT, harness, .object = &harness_record),
	ROW(PAIRS, env, NULL, .most = WORKSPACE_ENV_MAX, .check_pair = workspace_check_variable),
	ROW(OBJECT, limits, .object = &limits_record),
	ROW(OBJECT, network, .object = &workspace_network_record),
};
#undef AT
static const struct record spec_record = { "CaseFile", NULL, RECORD_ROWS(spec_rows), FIELD_IN };

static int read_graders(const struct json_value *list, struct arena *arena, struct case_spec *spec,
	struct error *err)
{
	if (!list)
		return fail(err, ERR_INVALID, "graders: missing; a case needs at least one");
	if (list->kind != JSON_ARRAY || !list->count || list->count > CASE_GRADERS_MAX)
		return fail(err, ERR_INVALID, "line %d: graders: must be a list of 1 to %d",
			list->line, CASE_GRADERS_MAX);
	for (const struct json_value *item = list->first; item; item = item->next) {
		struct case_grader grader = { .timeout_ms = CASE_GRADER_TIMEOUT_MS };
		if (item->kind != JSON_OBJECT)
			return fail(err, ERR_INVALID,
				"line %d: graders: an item is {type: command | tests | pytest, …}",
				item->line);
		if (record_read(&grader_record, item, arena, &grader, err)) {
			if (!str_starts_with(str_from(err->text), "line "))
				error_context(err, "line %d: graders", item->line);
			return -1;
		}
		if (!grader.name)
			grader.name = grader_type_names[grader.type];
		vec_push(arena, &spec->graders, grader);
	}
	return 0;
}

int case_read(const struct json_value *value, const char *harness, struct arena *arena,
	struct case_spec *spec, struct error *err)
{
	struct json_value rest = *value, **end = &rest.first;
	struct case_spec read = { .setup.timeout_ms = CASE_SETUP_TIMEOUT_MS,
		.harness.timeout_ms = CASE_HARNESS_TIMEOUT_MS };
	if (value->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "a case is a map of keys, with at least an id");
	for (const struct json_value *member = value->first; member; member = member->next) {
		if (str_is(member->key, "graders"))
			continue;
		*end = arena_alloc(arena, sizeof **end);
		**end = *member;
		end = &(*end)->next;
	}
	*end = NULL;
	if (record_read(&spec_record, &rest, arena, &read, err)) {
		if (str_starts_with(str_from(err->hint), "known: id"))
			error_hint(err, "%s, graders", arena_text(arena, err->hint));
		return -1;
	}
	if (read_graders(json_member(value, "graders"), arena, &read, err))
		return -1;
	if (harness && check_command(harness, err))
		return error_context(err, "harness");
	if (harness)
		read.harness.command = arena_text(arena, harness);
	if (!read.harness.command)
		return fail_hint(err, ERR_INVALID, "give the case one, or use --harness",
			"harness: missing");
	if (limits_check(&read.limits, err))
		return error_context(err, "limits");
	if (workspace_network_settle(&read.network, err))
		return error_context(err, "network");
	*spec = read;
	return 0;
}

bool case_source_is_archive(const struct case_spec *spec)
{
	static const char *const suffixes[] = { ".tar", ".tar.gz", ".tgz", ".tar.zst", ".zip" };
	const char *source = spec->source ? spec->source : "";
	size_t len = strlen(source);
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t suffix = strlen(suffixes[i]);
		if (len > suffix && !strcmp(source + len - suffix, suffixes[i]))
			return true;
	}
	return false;
}

static void quote(struct buf *out, const char *word)
{
	buf_text(out, " '");
	for (; *word; word++)
		if (*word == '\'')
			buf_text(out, "'\\''");
		else
			buf_char(out, *word);
	buf_char(out, '\'');
}

const char *grader_command(const struct case_grader *grader, struct arena *arena)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	if (grader->run)
		return grader->run;
	if (grader->type == GRADER_TESTS)
		return "python3 -m unittest discover -v";
	buf_text(&out, "python3 -m pytest");
	for (size_t i = 0; i < grader->args.count; i++)
		quote(&out, grader->args.items[i]);
	for (size_t i = 0; i < grader->paths.count; i++)
		quote(&out, grader->paths.items[i]);
	return arena_bytes(arena, out.data, out.len);
}

/* ---- what is shown and kept ---- */

#define AT(member) offsetof(struct case_step, member)
static const struct field step_rows[] = {
	ROW(TEXT, type, "install, editable, setup, harness; or that of a grader"),
	ROW(TEXT, name),
	ROW(TEXT, command),
	ROW(BOOLEAN, passed),
	ROW(INT, exit_code),
	ROW(TEXT, reason, "as of an exec; error: it could not be run"),
	ROW(INTEGER, duration_ms),
	ROW(TEXT, output, "what it wrote to stdout and stderr"),
	{ "truncated", FIELD_BOOLEAN, AT(is_cut), "a middle part of the output is left out" },
};
#undef AT
const struct record case_step_record = { "CaseStep", "One command of a case or a cell.",
	RECORD_ROWS(step_rows), FIELD_OUT };

#define SHOWN (FIELD_OUT | FIELD_KEPT)
#define STEPS(offset, help)                                                                        \
	{ "steps", FIELD_OBJECTS, offset, help, FIELD_OUT, .object = &case_step_record },          \
	{                                                                                          \
		"steps", FIELD_TEXT, offset, NULL, FIELD_KEPT                                      \
	}
#define VARIABLES(offset, flags)                                                                   \
	{                                                                                          \
		"variables", FIELD_PAIRS, offset,                                                  \
			"of every command; null: set, but hidden, since it looks like a secret",   \
			flags                                                                      \
	}

#define AT(member) offsetof(struct eval_case, member)
static const struct field case_rows[] = {
	ROW(ID, id, NULL, FIELD_OUT | FIELD_COLUMN, .head = "ID", .column = 1),
	ROW(TEXT, name, "the id that its file gives it", FIELD_OUT | FIELD_COLUMN, .head = "CASE",
		.column = 2),
	ROW(CHOICE, state,
		"created: its source may be sent; preparing: since its first cell; ready: cells "
		"run; failed: they fail",
		FIELD_OUT | FIELD_COLUMN, .names = case_state_names, .head = "STATE", .column = 3),
	ROW(TEXT, description, NULL, SHOWN | FIELD_NULLABLE),
	ROW(TEXT, source, "as its file names it", SHOWN | FIELD_NULLABLE),
	ROW(TEXT, workspace,
		"id of the workspace that is prepared, to which the source is sent; null: the case "
		"was only checked",
		SHOWN | FIELD_NULLABLE, .head = "WORKSPACE", .column = 5),
	ROW(TEXT, snapshot, "id of the prepared state", SHOWN | FIELD_NULLABLE),
	ROW(BOOLEAN, keep, "workspaces of ended cells stay", SHOWN),
	{ "ttl", FIELD_DURATION, AT(ttl_ms),
		"a case that isn't used for so long is removed, unless it keeps workspaces",
		SHOWN },
	ROW(TEXT, reason,
		"why it has failed: install, editable, setup, snapshot, or restarted: the daemon "
		"was",
		SHOWN | FIELD_NULLABLE),
	ROW(TEXT, error, NULL, SHOWN | FIELD_NULLABLE),
	STEPS(AT(steps), "of the preparation"),
	VARIABLES(AT(variables), FIELD_OUT | FIELD_NULLABLE),
	ROW(PAIRS, variables, NULL, FIELD_KEPT),
	ROW(TEXT, yaml, NULL, FIELD_KEPT),
	ROW(TEXT, file, NULL, FIELD_KEPT),
	ROW(TEXT, harness, NULL, FIELD_KEPT),
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "created_ms", .head = "AGE", .column = 6 },
	{ "last_used_at", FIELD_TIME, AT(last_used_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "last_used_ms" },
	ROW(INTEGER, cells, "how many it has", FIELD_OUT, .head = "CELLS", .column = 4),
};
#undef AT
const struct record case_record = { "Case", "An eval case.", RECORD_ROWS(case_rows) };

#define AT(member) offsetof(struct cell, member)
static const struct field cell_rows[] = {
	ROW(ID, id, NULL, FIELD_OUT | FIELD_COLUMN),
	{ "case", FIELD_ID, AT(case_id), "id of its case", FIELD_OUT | FIELD_COLUMN,
		.kept = "case_id" },
	ROW(CHOICE, state, NULL, FIELD_OUT | FIELD_COLUMN, .names = cell_state_names),
	ROW(TEXT, case_name, NULL, SHOWN),
	ROW(INTEGER, repeat, "which run of the case it is, from 1", SHOWN),
	ROW(TEXT, reason,
		"why it hasn't passed: case (its preparation has failed), harness, grader, "
		"workspace, removed, or restarted: the daemon was",
		SHOWN | FIELD_NULLABLE),
	ROW(TEXT, error, NULL, SHOWN | FIELD_NULLABLE),
	ROW(TEXT, workspace, "id, while there is one", SHOWN | FIELD_NULLABLE),
	ROW(INTEGER, duration_ms, "from its fork to its verdict", SHOWN),
	STEPS(AT(steps), "the harness, then the graders"),
	ROW(TEXT, diff, "what the harness changed, as a patch", SHOWN | FIELD_NULLABLE),
	{ "diff_truncated", FIELD_BOOLEAN, AT(diff_is_cut), "its end is left out", SHOWN },
	VARIABLES(AT(variables), FIELD_OUT | FIELD_NULLABLE),
	ROW(PAIRS, variables, NULL, FIELD_KEPT),
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "created_ms" },
	{ "started_at", FIELD_TIME, AT(started_ms), NULL, FIELD_OUT | FIELD_COLUMN | FIELD_NULLABLE,
		.kept = "started_ms" },
	{ "ended_at", FIELD_TIME, AT(ended_ms), NULL, FIELD_OUT | FIELD_COLUMN | FIELD_NULLABLE,
		.kept = "ended_ms" },
};
#undef AT
const struct record cell_record = { "Cell", "One run of a case.", RECORD_ROWS(cell_rows) };

#define AT(member) offsetof(struct case_wanted, member)
static const struct field case_wanted_rows[] = {
	ROW(TEXT, yaml, "the text of its file", FIELD_REQUIRED, .least = 1, .most = YAML_JSON_MAX),
	ROW(TEXT, file, "the name of that file, for errors", .least = 1, .most = 4096),
	ROW(TEXT, harness, "a shell command in place of its own", .least = 1, .most = 65536,
		.check = check_command),
	ROW(BOOLEAN, check, "only reads it; nothing is made"),
	ROW(BOOLEAN, keep, "workspaces of ended cells stay until the case is removed"),
	{ "ttl", FIELD_DURATION, AT(ttl_ms),
		"remove the case when it isn't used for so long, unless it keeps workspaces; 1 h "
		"when not given",
		.least = 1, .most = CASE_TIMEOUT_MOST },
};
#undef AT
const struct record case_wanted_record = { "CaseWanted", NULL, RECORD_ROWS(case_wanted_rows),
	FIELD_IN };

#define AT(member) offsetof(struct cell_wanted, member)
static const struct field cell_wanted_rows[] = {
	ROW(INTEGER, repeat, "which run of the case it is; 1 when not given", .least = 1,
		.most = CASE_REPEAT_MAX),
};
#undef AT
const struct record cell_wanted_record = { "CellWanted", NULL, RECORD_ROWS(cell_wanted_rows),
	FIELD_IN };
