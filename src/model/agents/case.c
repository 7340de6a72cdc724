#include "model/agents/case.h"

#include "base/str.h"
#include "format/text/yaml_json.h"
#include "model/nouns/template.h"

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
	{ "requirements", FIELD_TEXTS, AT(requirements), "packages of Python", .most = 500,
		.check = template_check_requirement },
	{ "install", FIELD_CHOICE, AT(install), "editable: the source too, with its dependencies",
		.choices = installs },
	{ "system_site_packages", FIELD_BOOLEAN, AT(system_site_packages),
		"packages of the host's interpreter are found too" },
};
#undef AT
static const struct record environment_record = { "CaseEnvironment", NULL,
	RECORD_ROWS(environment_rows), FIELD_IN };

#define AT(member) offsetof(struct case_setup, member)
static const struct field setup_rows[] = {
	{ "run", FIELD_TEXTS, AT(run), "shell commands", .least = 1, .most = CASE_COMMANDS_MAX,
		.check = check_command },
	TIMEOUT(AT(timeout_ms)),
};
#undef AT
static const struct record setup_record = { "CaseSetup", NULL, RECORD_ROWS(setup_rows), FIELD_IN };

#define AT(member) offsetof(struct case_harness, member)
static const struct field harness_rows[] = {
	{ "command", FIELD_TEXT, AT(command), "shell command", FIELD_IN | FIELD_REQUIRED,
		.check = check_command },
	TIMEOUT(AT(timeout_ms)),
};
#undef AT
static const struct record harness_record = { "CaseHarness", NULL, RECORD_ROWS(harness_rows),
	FIELD_IN };

#define AT(member) offsetof(struct case_grader, member)
static const struct field grader_rows[] = {
	{ "type", FIELD_CHOICE, AT(type), NULL, FIELD_IN | FIELD_REQUIRED,
		.names = grader_type_names },
	{ "name", FIELD_TEXT, AT(name), NULL, .least = 1, .most = 64 },
	{ "run", FIELD_TEXT, AT(run), "shell command", .check = check_command },
	{ "paths", FIELD_TEXTS, AT(paths), NULL, .most = 100 },
	{ "args", FIELD_TEXTS, AT(args), NULL, .most = 100 },
	{ "files", FIELD_PAIRS, AT(files), NULL, .most = TEMPLATE_FILES_MAX,
		.check_pair = template_check_file },
	TIMEOUT(AT(timeout_ms)),
};
#undef AT
static const struct record grader_record = { "CaseGrader", NULL, RECORD_ROWS(grader_rows), FIELD_IN,
	.check = check_grader };

/* Without the graders: a list of objects is no field. */
#define AT(member) offsetof(struct case_spec, member)
static const struct field spec_rows[] = {
	{ "id", FIELD_TEXT, AT(id), NULL, FIELD_IN | FIELD_REQUIRED, .check = check_id },
	{ "description", FIELD_TEXT, AT(description), NULL, .most = 1000 },
	{ "source", FIELD_TEXT, AT(source), NULL, .least = 1, .most = 4096 },
	{ "environment", FIELD_OBJECT, AT(environment), .object = &environment_record },
	{ "setup", FIELD_OBJECT, AT(setup), .object = &setup_record },
	{ "harness", FIELD_SHORT, AT(harness), .object = &harness_record },
	{ "env", FIELD_PAIRS, AT(env), NULL, .most = WORKSPACE_ENV_MAX,
		.check_pair = workspace_check_variable },
	{ "limits", FIELD_OBJECT, AT(limits), .object = &limits_record },
	{ "network", FIELD_OBJECT, AT(network), .object = &workspace_network_record },
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
	{ "type", FIELD_TEXT, AT(type), "install, editable, setup, harness; or that of a grader" },
	{ "name", FIELD_TEXT, AT(name) },
	{ "command", FIELD_TEXT, AT(command) },
	{ "passed", FIELD_BOOLEAN, AT(passed) },
	{ "exit_code", FIELD_INT, AT(exit_code) },
	{ "reason", FIELD_TEXT, AT(reason), "as of an exec; error: it could not be run" },
	{ "duration_ms", FIELD_INTEGER, AT(duration_ms) },
	{ "output", FIELD_TEXT, AT(output), "what it wrote to stdout and stderr" },
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
	{ "id", FIELD_ID, AT(id), NULL, FIELD_OUT | FIELD_COLUMN, .head = "ID", .column = 1 },
	{ "name", FIELD_TEXT, AT(name), "the id that its file gives it", FIELD_OUT | FIELD_COLUMN,
		.head = "CASE", .column = 2 },
	{ "state", FIELD_CHOICE, AT(state),
		"created: its source may be sent; preparing: since its first cell; ready: cells "
		"run; failed: they fail",
		FIELD_OUT | FIELD_COLUMN, .names = case_state_names, .head = "STATE", .column = 3 },
	{ "description", FIELD_TEXT, AT(description), NULL, SHOWN | FIELD_NULLABLE },
	{ "source", FIELD_TEXT, AT(source), "as its file names it", SHOWN | FIELD_NULLABLE },
	{ "workspace", FIELD_TEXT, AT(workspace),
		"id of the workspace that is prepared, to which the source is sent; null: the case "
		"was only checked",
		SHOWN | FIELD_NULLABLE, .head = "WORKSPACE", .column = 5 },
	{ "snapshot", FIELD_TEXT, AT(snapshot), "id of the prepared state",
		SHOWN | FIELD_NULLABLE },
	{ "keep", FIELD_BOOLEAN, AT(keep), "workspaces of ended cells stay", SHOWN },
	{ "ttl", FIELD_DURATION, AT(ttl_ms),
		"a case that isn't used for so long is removed, unless it keeps workspaces",
		SHOWN },
	{ "reason", FIELD_TEXT, AT(reason),
		"why it has failed: install, editable, setup, snapshot, or restarted: the daemon "
		"was",
		SHOWN | FIELD_NULLABLE },
	{ "error", FIELD_TEXT, AT(error), NULL, SHOWN | FIELD_NULLABLE },
	STEPS(AT(steps), "of the preparation"),
	VARIABLES(AT(variables), FIELD_OUT | FIELD_NULLABLE),
	{ "variables", FIELD_PAIRS, AT(variables), NULL, FIELD_KEPT },
	{ "yaml", FIELD_TEXT, AT(yaml), NULL, FIELD_KEPT },
	{ "file", FIELD_TEXT, AT(file), NULL, FIELD_KEPT },
	{ "harness", FIELD_TEXT, AT(harness), NULL, FIELD_KEPT },
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "created_ms", .head = "AGE", .column = 6 },
	{ "last_used_at", FIELD_TIME, AT(last_used_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "last_used_ms" },
	{ "cells", FIELD_INTEGER, AT(cells), "how many it has", FIELD_OUT, .head = "CELLS",
		.column = 4 },
};
#undef AT
const struct record case_record = { "Case", "An eval case.", RECORD_ROWS(case_rows) };

#define AT(member) offsetof(struct cell, member)
static const struct field cell_rows[] = {
	{ "id", FIELD_ID, AT(id), NULL, FIELD_OUT | FIELD_COLUMN },
	{ "case", FIELD_ID, AT(case_id), "id of its case", FIELD_OUT | FIELD_COLUMN,
		.kept = "case_id" },
	{ "state", FIELD_CHOICE, AT(state), NULL, FIELD_OUT | FIELD_COLUMN,
		.names = cell_state_names },
	{ "case_name", FIELD_TEXT, AT(case_name), NULL, SHOWN },
	{ "repeat", FIELD_INTEGER, AT(repeat), "which run of the case it is, from 1", SHOWN },
	{ "reason", FIELD_TEXT, AT(reason),
		"why it hasn't passed: case (its preparation has failed), harness, grader, "
		"workspace, removed, or restarted: the daemon was",
		SHOWN | FIELD_NULLABLE },
	{ "error", FIELD_TEXT, AT(error), NULL, SHOWN | FIELD_NULLABLE },
	{ "workspace", FIELD_TEXT, AT(workspace), "id, while there is one",
		SHOWN | FIELD_NULLABLE },
	{ "duration_ms", FIELD_INTEGER, AT(duration_ms), "from its fork to its verdict", SHOWN },
	STEPS(AT(steps), "the harness, then the graders"),
	{ "diff", FIELD_TEXT, AT(diff), "what the harness changed, as a patch",
		SHOWN | FIELD_NULLABLE },
	{ "diff_truncated", FIELD_BOOLEAN, AT(diff_is_cut), "its end is left out", SHOWN },
	VARIABLES(AT(variables), FIELD_OUT | FIELD_NULLABLE),
	{ "variables", FIELD_PAIRS, AT(variables), NULL, FIELD_KEPT },
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
	{ "yaml", FIELD_TEXT, AT(yaml), "the text of its file", FIELD_IN | FIELD_REQUIRED,
		.least = 1, .most = YAML_JSON_MAX },
	{ "file", FIELD_TEXT, AT(file), "the name of that file, for errors", FIELD_IN, .least = 1,
		.most = 4096 },
	{ "harness", FIELD_TEXT, AT(harness), "a shell command in place of its own", FIELD_IN,
		.least = 1, .most = 65536, .check = check_command },
	{ "check", FIELD_BOOLEAN, AT(check), "only reads it; nothing is made", FIELD_IN },
	{ "keep", FIELD_BOOLEAN, AT(keep),
		"workspaces of ended cells stay until the case is removed", FIELD_IN },
	{ "ttl", FIELD_DURATION, AT(ttl_ms),
		"remove the case when it isn't used for so long, unless it keeps workspaces; 1 h "
		"when not given",
		FIELD_IN, .least = 1, .most = CASE_TIMEOUT_MOST },
};
#undef AT
const struct record case_wanted_record = { "CaseWanted", NULL, RECORD_ROWS(case_wanted_rows),
	FIELD_IN };

#define AT(member) offsetof(struct cell_wanted, member)
static const struct field cell_wanted_rows[] = {
	{ "repeat", FIELD_INTEGER, AT(repeat), "which run of the case it is; 1 when not given",
		FIELD_IN, .least = 1, .most = CASE_REPEAT_MAX },
};
#undef AT
const struct record cell_wanted_record = { "CellWanted", NULL, RECORD_ROWS(cell_wanted_rows),
	FIELD_IN };
