/* carrel case: eval cases. `run` gives the daemon as many cells at once as -j says, and writes down
 * what they come to. */
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "envs/builder/progress.h"
#include "cli/removal.h"
#include "cli/agents/case.h"
#include "cli/plain.h"
#include "cli/workspaces/tree.h"
#include "format/text/yaml_json.h"
#include "model/agents/case.h"

#define ATTEMPTS_MAX 3 /* of a cell that a restart of the daemon has ended */

struct case_file {
	const char *path, *name;
	struct str yaml;
	const char *source; /* path, or NULL */
	char key[2 * SHA256_LEN + 1];
	const char *id, *workspace; /* id of the case in the daemon while it exists, or NULL */
	size_t left;		    /* cells that haven't ended */
};
enum { CELL_PENDING, CELL_RUNNING, CELL_OVER, CELL_ENDED }; /* over: its result is to be read */
static bool is_with_daemon(int state)
{
	return state == CELL_RUNNING || state == CELL_OVER;
}

struct suite_cell {
	struct case_file *file;
	uint64_t repeat;
	int state;
	unsigned attempts;
	const char *id; /* of the daemon's */
};
struct suite {
	struct command *command;
	struct arena *arena;
	struct remote *calls;
	struct remote_events follow;
	VEC(struct case_file) files;
	VEC(struct suite_cell) cells;
	size_t running, ended;
	text_list left; /* cases that could not be removed */
	struct progress progress;
	struct case_out out;
	case_results results;
};

/* ---- what is to be run ---- */

static void print_wanted(
	struct suite *suite, const struct case_file *file, bool is_check, struct buf *body)
{
	const struct options *options = &suite->command->options;
	struct json j = json_to(body, false);
	json_object(&j, NULL);
	json_str(&j, "yaml", file->yaml);
	json_text(&j, "file", file->path);
	if (options->harness)
		json_text(&j, "harness", options->harness);
	if (is_check)
		json_bool(&j, "check", true);
	if (options->keep_sandboxes)
		json_bool(&j, "keep", true);
	json_end(&j);
}

/* Opens the source: of a directory an archive that is being packed, else the file. */
static int open_source(const struct case_file *file, struct pack *pack, bool *is_packed, int *fd,
	struct error *err)
{
	struct stat st;
	auto_close int source = open(file->source, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (source < 0 || fstat(source, &st))
		return fail_errno(err, "%s: source: open '%s'", file->path, file->source);
	*is_packed = S_ISDIR(st.st_mode);
	if (!*is_packed && !S_ISREG(st.st_mode))
		return fail(err, ERR_INVALID, "%s: source: '%s' is not a directory or an archive",
			file->path, file->source);
	if (!*is_packed) {
		*fd = take_fd(&source);
		return 0;
	}
	if (pack_begin(pack, source, err))
		return -1;
	*fd = pack->archive;
	return 0;
}

static int close_source(struct pack *pack, bool is_packed, struct error *err)
{
	struct tree_note left_out;
	return is_packed && pack_finish(pack, &left_out, err) ? -1 : 0;
}

/* What a result is of: the file, the harness, the source. */
static int make_key(struct suite *suite, struct case_file *file, struct error *err)
{
	const char *harness = suite->command->options.harness;
	unsigned char digest[SHA256_LEN] = { 0 };
	struct sha256 hash;
	if (file->source) {
		auto_close int fd = -1;
		struct pack pack;
		bool is_packed;
		if (open_source(file, &pack, &is_packed, &fd, err))
			return -1;
		int failed = file_hash(fd, digest, NULL)
				     ? fail_errno(err, "read '%s'", file->source)
				     : 0;
		if (close_source(&pack, is_packed, err) || failed)
			return error_context(err, "%s: source", file->path);
	}
	sha256_init(&hash);
	sha256_add(&hash, file->yaml.data, file->yaml.len);
	sha256_add(&hash, "", 1);
	sha256_add(&hash, harness ? harness : "", harness ? strlen(harness) + 1 : 1);
	sha256_add(&hash, digest, sizeof digest);
	sha256_end_hex(&hash, file->key);
	return 0;
}

/* Whether the text of a case has "source: VALUE", plain or quoted. The daemon reads the YAML, and
 * may be another machine's: it must not choose which files of this one are sent to it. */
static bool names_source(struct str yaml, const char *source)
{
	static const char key[] = "source";
	const char *end = yaml.data + yaml.len, *at = yaml.data;
	size_t len = strlen(source);
	while ((at = memmem(at, (size_t)(end - at), key, sizeof key - 1))) {
		bool is_whole = at == yaml.data || strchr(" \t\n{,\"'", at[-1]);
		const char *c = at += sizeof key - 1;
		if (!is_whole) /* "data_source" */
			continue;
		c += c < end && strchr("\"'", *c);
		while (c < end && *c == ' ')
			c++;
		if (c == end || *c++ != ':')
			continue;
		while (c < end && *c == ' ')
			c++;
		c += c < end && strchr("\"'", *c);
		if ((size_t)(end - c) >= len && !memcmp(c, source, len) &&
			(c + len == end || strchr("\"' \t\r\n,}", c[len])))
			return true;
	}
	return false;
}

/* Of the daemon's answer. */
static int take_answer(struct suite *suite, struct case_file *file, const struct json_value *answer,
	struct error *err)
{
	const char *source = json_member_text(answer, "source");
	file->name = json_member_text(answer, "name");
	if (!file->name || !case_name_is_plain(file->name))
		return fail(err, ERR_CORRUPT, "the daemon's response is not a case");
	if (!source)
		return 0;
	if (!names_source(file->yaml, source))
		return fail_hint(err, ERR_CORRUPT, "write it as source: PATH, on one line",
			"%s: the daemon asks for the source '%.200s', which the file doesn't name",
			file->path, source);
	file->source = source[0] == '/' || !strchr(file->path, '/')
			       ? source
			       : arena_printf(suite->arena, "%s/%s",
					 dirname(arena_text(suite->arena, file->path)), source);
	return 0;
}

/* All files are checked before the first one runs. */
static int add_file(struct suite *suite, const char *path, struct error *err)
{
	struct arena *arena = suite->arena;
	struct case_file file = { .path = path };
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct remote_answer answer;
	if (cli_read_file(path, YAML_JSON_MAX, arena, &file.yaml, err))
		return -1;
	if (str_utf8_prefix(file.yaml.data, file.yaml.len) != file.yaml.len)
		return fail(err, ERR_INVALID, "%s: not valid UTF-8", path);
	print_wanted(suite, &file, true, &body);
	if (remote_call(suite->calls, "POST", "/v1/cases", &body, &answer, err))
		return -1;
	if (take_answer(suite, &file, answer.value, err))
		return -1;
	for (size_t i = 0; i < suite->files.count; i++)
		if (!strcmp(suite->files.items[i].name, file.name))
			return fail(err, ERR_INVALID, "%s and %s have the same id '%s'",
				suite->files.items[i].path, path, file.name);
	if (make_key(suite, &file, err))
		return -1;
	vec_push(arena, &suite->files, file);
	return 0;
}

static bool has_result(const struct suite *suite, const struct case_file *file, uint64_t repeat)
{
	for (size_t i = 0; i < suite->results.count; i++) {
		const struct case_result *result = &suite->results.items[i];
		if (result->repeat == repeat && !strcmp(result->name, file->name) &&
			!strcmp(result->key, file->key))
			return true;
	}
	return false;
}

/* Results of other contents, cases or repeats are not of this run. */
static void drop_stale(struct suite *suite, uint64_t repeats)
{
	case_results kept = { 0 };
	for (size_t i = 0; i < suite->results.count; i++) {
		const struct case_result *result = &suite->results.items[i];
		bool is_wanted = false;
		for (size_t n = 0; n < suite->files.count; n++)
			is_wanted |= !strcmp(suite->files.items[n].name, result->name) &&
				     !strcmp(suite->files.items[n].key, result->key);
		if (is_wanted && result->repeat <= repeats)
			vec_push(suite->arena, &kept, *result);
	}
	suite->results = kept;
}

static void add_cells(struct suite *suite)
{
	uint64_t repeats = suite->command->options.repeat ? suite->command->options.repeat : 1;
	drop_stale(suite, repeats);
	for (uint64_t repeat = 1; repeat <= repeats; repeat++)
		for (size_t i = 0; i < suite->files.count; i++) {
			struct case_file *file = &suite->files.items[i];
			struct suite_cell cell = { .file = file, .repeat = repeat };
			if (has_result(suite, file, repeat))
				continue;
			file->left++;
			vec_push(suite->arena, &suite->cells, cell);
		}
}

/* ---- starting ---- */

static const char *case_path(struct suite *suite, const struct case_file *file, const char *more)
{
	return arena_printf(suite->arena, "/v1/cases/%s%s", file->id, more);
}

/* One that can't be removed now is tried again at the end, and then by the daemon. */
static void remove_case(struct suite *suite, struct case_file *file)
{
	struct error why;
	if (file->id &&
		remote_call(suite->calls, "DELETE", case_path(suite, file, ""), NULL, NULL, &why) &&
		why.code != ERR_NOT_FOUND)
		vec_push(suite->arena, &suite->left, file->id);
	file->id = NULL;
}

static int send_source(struct suite *suite, struct case_file *file, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	auto_close int fd = -1;
	struct pack pack;
	struct error reason;
	bool is_packed;
	if (!file->source)
		return 0;
	if (open_source(file, &pack, &is_packed, &fd, err))
		return -1;
	request.method = "PUT";
	request.path = remote_workspace_path(suite->calls, file->workspace, "/archive");
	request.content_type = "application/octet-stream";
	request.body_fd = fd;
	int failed = remote_open(suite->calls, err) ||
		     client_call(&suite->calls->client, &request, suite->arena, &response, err);
	if (close_source(&pack, is_packed, &reason) && (!failed || reason.sys_errno != EPIPE)) {
		*err = reason;
		failed = -1;
	}
	return failed ? error_context(err, "%s: source '%s'", file->path, file->source) : 0;
}

static int create_case(struct suite *suite, struct case_file *file, struct error *err)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct remote_answer answer;
	print_wanted(suite, file, false, &body);
	if (remote_call_once(suite->calls, "/v1/cases", &body, "", &answer, err))
		return -1;
	file->id = json_member_text(answer.value, "id");
	file->workspace = json_member_text(answer.value, "workspace");
	if (!file->id || !file->workspace)
		return fail(err, ERR_CORRUPT, "the daemon's response is not a case");
	if (send_source(suite, file, err)) {
		remove_case(suite, file);
		return -1;
	}
	return 0;
}

static int start_cell(struct suite *suite, struct suite_cell *cell, struct error *err)
{
	struct case_file *file = cell->file;
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct remote_answer answer;
	if (!file->id && create_case(suite, file, err))
		return -1;
	buf_printf(&body, "{\"repeat\":%" PRIu64 "}", cell->repeat);
	if (remote_call(
		    suite->calls, "POST", case_path(suite, file, "/cells"), &body, &answer, err))
		return -1;
	cell->id = json_member_text(answer.value, "id");
	if (!cell->id)
		return fail(err, ERR_CORRUPT, "the daemon's response is not a cell");
	cell->state = CELL_RUNNING;
	suite->running++;
	return 0;
}

/* ---- ends ---- */

static void show(struct suite *suite)
{
	if (suite->progress.kind == PROGRESS_BAR)
		progress_show_count(
			&suite->progress, "running", suite->ended, suite->cells.count, "cells");
}

static int end_cell(struct suite *suite, struct suite_cell *cell, const struct json_value *value,
	struct error *err)
{
	struct case_file *file = cell->file;
	if (case_out_add(&suite->out, value, file->key, suite->arena, &suite->results, err))
		return -1;
	const struct case_result *result = &suite->results.items[suite->results.count - 1];
	const char *cause = case_cause(result, suite->arena),
		   *error = json_member_text(result->value, "error");
	suite->running -= cell->state == CELL_RUNNING;
	cell->state = CELL_ENDED;
	suite->ended++;
	if (--file->left == 0 && !suite->command->options.keep_sandboxes)
		remove_case(suite, file);
	if (!suite->command->json && (suite->progress.kind != PROGRESS_BAR || !result->has_passed))
		progress_say(&suite->progress,
			arena_printf(suite->arena, "%s %s %" PRIu64 "  %.2fs%s%s%s%s",
				result->has_passed ? "passed" : "failed", file->name, cell->repeat,
				(double)result->duration_ms / 1000, cause ? "  by " : "",
				cause ? cause : "", error ? ": " : "", error ? error : ""));
	show(suite);
	return 0;
}

/* A cell that could not be started, as the daemon would show it. */
static int end_refused(
	struct suite *suite, struct suite_cell *cell, const struct error *why, struct error *err)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	struct json_value *value;
	json_object(&j, NULL);
	json_text(&j, "case_name", cell->file->name);
	json_u64(&j, "repeat", cell->repeat);
	json_text(&j, "state", "failed");
	json_text(&j, "reason", "error");
	json_text(&j, "error", why->text);
	json_u64(&j, "duration_ms", 0);
	json_array(&j, "steps");
	json_end(&j);
	json_end(&j);
	struct str kept = { arena_bytes(suite->arena, text.data, text.len), text.len };
	return json_read(kept, suite->arena, &value, err) || end_cell(suite, cell, value, err) ? -1
											       : 0;
}

/* The daemon has lost it: it is run again, and its case prepared again. */
static bool run_again(struct suite *suite, struct suite_cell *cell)
{
	if (cell->attempts + 1 >= ATTEMPTS_MAX || remote_is_interrupted())
		return false;
	suite->running -= cell->state == CELL_RUNNING;
	cell->state = CELL_PENDING;
	cell->attempts++;
	cell->id = NULL;
	return true;
}

static bool is_lost(const struct error *err)
{
	return err->code == ERR_UNAVAILABLE || err->code == ERR_NOT_FOUND;
}

/* Others of its case may still run in what is left: only a case in which none does is given up. */
static void forget_case(struct suite *suite, struct case_file *file)
{
	for (size_t i = 0; i < suite->cells.count; i++)
		if (suite->cells.items[i].file == file &&
			is_with_daemon(suite->cells.items[i].state))
			return;
	remove_case(suite, file);
}

/* Looks at a cell that runs, and whether it has ended. */
static int look(struct suite *suite, struct suite_cell *cell, struct error *err)
{
	struct remote_answer answer;
	const char *path = arena_printf(suite->arena, "/v1/cells/%s", cell->id);
	if (remote_call(suite->calls, "GET", path, NULL, &answer, err)) {
		if (err->code != ERR_NOT_FOUND || !run_again(suite, cell))
			return -1;
		forget_case(suite, cell->file);
		return 0;
	}
	const char *state = json_member_text(answer.value, "state"),
		   *reason = json_member_text(answer.value, "reason");
	if (!state)
		return fail(err, ERR_CORRUPT, "the daemon's response is not a cell");
	if (!strcmp(state, "canceled") && reason && !strcmp(reason, CASE_REASON_RESTARTED) &&
		run_again(suite, cell)) {
		forget_case(suite, cell->file);
		return 0;
	}
	bool has_ended =
		!strcmp(state, "passed") || !strcmp(state, "failed") || !strcmp(state, "canceled");
	return has_ended ? end_cell(suite, cell, answer.value, err) : 0;
}

static int start_more(struct suite *suite, struct error *err)
{
	uint64_t jobs = suite->command->options.jobs ? suite->command->options.jobs : 1;
	for (size_t i = 0; i < suite->cells.count && suite->running < jobs; i++) {
		struct suite_cell *cell = &suite->cells.items[i];
		struct error why;
		if (remote_is_interrupted())
			return fail(err, ERR_CANCELED, "interrupted");
		if (cell->state != CELL_PENDING || !start_cell(suite, cell, &why))
			continue;
		if (is_lost(&why) && run_again(suite, cell)) {
			remote_close(suite->calls);
			forget_case(suite, cell->file);
			cell->file->id = NULL;
			i--;
		} else if (why.code == ERR_UNAVAILABLE) {
			*err = why;
			return -1;
		} else if (end_refused(suite, cell, &why, err)) {
			return -1;
		}
	}
	return 0;
}

/* ---- events ---- */

static struct suite_cell *find_cell(struct suite *suite, const char *id)
{
	for (size_t i = 0; id && i < suite->cells.count; i++)
		if (suite->cells.items[i].state == CELL_RUNNING &&
			!strcmp(suite->cells.items[i].id, id))
			return &suite->cells.items[i];
	return NULL;
}

static int look_at_all(struct suite *suite, struct error *err)
{
	for (size_t i = 0; i < suite->cells.count; i++)
		if (is_with_daemon(suite->cells.items[i].state) &&
			look(suite, &suite->cells.items[i], err))
			return -1;
	return 0;
}

/* The stream was cut, as by a daemon that restarts: what happened meanwhile is looked up. */
static int follow_again(struct suite *suite, struct error *err)
{
	if (remote_is_interrupted())
		return fail(err, ERR_CANCELED, "interrupted");
	remote_close(suite->calls);
	return remote_reopen(&suite->follow.remote, remote_events_begin, &suite->follow, err) ||
			       look_at_all(suite, err)
		       ? -1
		       : 0;
}

/* The next cell starts first: the daemon works while this one is read and written down. */
static int take_end(struct suite *suite, struct suite_cell *cell, struct error *err)
{
	struct error why;
	cell->state = CELL_OVER;
	suite->running--;
	int failed = start_more(suite, err);
	if (!look(suite, cell, failed ? &why : err))
		return failed;
	return -1;
}

static int take_event(struct suite *suite, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const struct sse *sse = &suite->follow.sse;
	struct json_value *value;
	struct str data = { sse->data.data, sse->data.len };
	if (!strcmp(sse->event, "missed"))
		return look_at_all(suite, err);
	if (strncmp(sse->event, "cell.", 5) != 0)
		return 0;
	if (json_read(data, &arena, &value, err))
		return error_context(err, "an event of the daemon");
	struct suite_cell *cell = find_cell(suite, json_member_text(value, "cell"));
	bool has_ended = strcmp(sse->event, "cell.waiting") != 0 &&
			 strcmp(sse->event, "cell.harness") != 0 &&
			 strcmp(sse->event, "cell.grading") != 0;
	show(suite);
	return cell && has_ended ? take_end(suite, cell, err) : 0;
}

static int run_cells(struct suite *suite, struct error *err)
{
	show(suite);
	while (suite->ended < suite->cells.count) {
		if (start_more(suite, err))
			return -1;
		if (!suite->running)
			continue;
		int got = remote_events_next(&suite->follow, err);
		if (got == 1 ? take_event(suite, err) : follow_again(suite, err))
			return -1;
	}
	return 0;
}

/* ---- the command ---- */

static void print_summary(struct suite *suite, size_t passed)
{
	struct command *command = suite->command;
	const case_results *results = &suite->results;
	struct json *j = &command->value;
	if (!command->json) {
		case_print_table(results, suite->arena, &command->out);
		buf_printf(&command->out, "%zu cell%s, %zu passed; results in %s\n", results->count,
			results->count == 1 ? "" : "s", passed, suite->out.path);
		return;
	}
	json_object(j, NULL);
	json_text(j, "out", suite->out.path);
	json_u64(j, "cells", results->count);
	json_u64(j, "passed", passed);
	json_array(j, "items");
	for (size_t i = 0; i < results->count; i++) {
		const struct case_result *result = &results->items[i];
		json_object(j, NULL);
		json_text(j, "case", result->name);
		json_u64(j, "repeat", result->repeat);
		json_text(j, "state", json_member_text(result->value, "state"));
		json_text(j, "reason", json_member_text(result->value, "reason"));
		json_u64(j, "duration_ms", result->duration_ms);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

/* What ran is ended, and what was made is removed, unless it is to be kept. */
static void clean_up(struct suite *suite, bool is_whole)
{
	for (size_t i = 0; i < suite->files.count; i++)
		if (!is_whole || !suite->command->options.keep_sandboxes)
			remove_case(suite, &suite->files.items[i]);
	for (size_t i = 0; i < suite->left.count; i++) {
		struct error ignored;
		remote_call(suite->calls, "DELETE",
			arena_printf(suite->arena, "/v1/cases/%s", suite->left.items[i]), NULL,
			NULL, &ignored);
	}
}

static int run_suite(struct suite *suite, struct error *err)
{
	struct command *command = suite->command;
	const char *path = command->options.out_dir ? command->options.out_dir : "cells";
	size_t passed = 0;
	struct error late;
	for (size_t i = 0; i < command->operands.count; i++)
		if (add_file(suite, command->operands.items[i], err))
			return -1;
	if (case_out_open(
		    &suite->out, path, command->options.resume, suite->arena, &suite->results, err))
		return -1;
	add_cells(suite);
	remote_events_init(&suite->follow, suite->calls, "/v1/events");
	remote_catch_interrupts(&suite->follow.remote);
	int failed = remote_events_begin(&suite->follow, err) || run_cells(suite, err);
	progress_finish(&suite->progress);
	clean_up(suite, !failed);
	case_results_sort(&suite->results);
	if (case_out_finish(&suite->out, &suite->results, &late) && !failed) {
		*err = late;
		failed = -1;
	}
	if (failed && remote_is_interrupted())
		return fail_hint(err, ERR_CANCELED,
			arena_printf(
				suite->arena, "carrel case run --resume --out %s continues", path),
			"interrupted: %zu of %zu cells have ended", suite->ended,
			suite->cells.count);
	if (failed)
		return -1;
	for (size_t i = 0; i < suite->results.count; i++)
		passed += suite->results.items[i].has_passed;
	print_summary(suite, passed);
	return passed == suite->results.count ? 0 : 1;
}

static int run_run(struct command *command, struct error *err)
{
	struct suite suite = { .command = command,
		.arena = &command->arena,
		.calls = &command->remote,
		.follow.remote.client.socket = -1,
		.out = { -1, -1, NULL } };
	bool is_bar = !command->json && progress_kind_for(STDERR_FILENO) == PROGRESS_BAR;
	progress_init(&suite.progress, is_bar ? PROGRESS_BAR : PROGRESS_LINES, STDERR_FILENO);
	int code = remote_open(&command->remote, err) ? -1 : run_suite(&suite, err);
	remote_events_done(&suite.follow);
	case_out_done(&suite.out);
	return code;
}

static const struct arg_option run_table[] = {
	{ 'j', "jobs", ARG_COUNT, AT(jobs), "N", "cells that run at once (default: 1)", NULL, 1,
		256 },
	{ 0, "repeat", ARG_COUNT, AT(repeat), "K", "cells of each case (default: 1)", NULL, 1,
		CASE_REPEAT_MAX },
	{ 0, "harness", ARG_TEXT, AT(harness), "COMMAND", "in place of those of the cases", NULL,
		1 },
	{ 0, "out", ARG_TEXT, AT(out_dir), "DIR", "directory of the results (default: cells)", NULL,
		1 },
	{ 0, "resume", ARG_FLAG, AT(resume), NULL,
		"run only cells that have no result there, of the same case, source and harness" },
	{ 0, "keep-sandboxes", ARG_FLAG, AT(keep_sandboxes), NULL,
		"leave the workspaces of cells; carrel case rm removes them" },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec run_spec = {
	.command = "case run",
	.summary = "run eval cases in cells",
	.usage = "CASE.yaml... [options]",
	.about =
		"Runs each case in cells: forks of a workspace that was prepared once. Writes "
		"results.jsonl, junit.xml, report.html and the logs of each cell to a directory. "
		"Exit code: 0 if all cells passed, 1 if some failed, 125 if they could not be run.",
	ARG_TABLE(run_table),
	.examples =
		"  carrel case run cases/*.yaml -j 2\n"
		"  carrel case run fix.yaml --repeat 10 --harness 'python3 agent.py' --out runs/a\n"
		"  carrel case run cases/*.yaml --out runs/a --resume\n",
	.run = run_run,
};

static const struct arg_spec ls_spec = {
	.command = "case ls",
	.summary = "list eval cases of the daemon",
	.about = "Lists the cases that run, and those whose workspaces are kept, newest first.",
	ARG_TABLE(plain_ids_table),
	.run = plain_list,
	.record = &case_record,
	.key = "id",
};

static const struct arg_spec rm_spec = {
	.command = "case rm",
	.summary = "remove eval cases with their workspaces",
	.usage = "CASE... [options]",
	.about = "Removes cases, by the ids that carrel case ls shows, with all of their "
		 "workspaces. Cells that run are canceled: then it asks on a terminal, and needs "
		 "--force elsewhere.",
	ARG_TABLE(plain_rm_table),
	.run = plain_remove,
	.removal = &case_removal,
};

static const struct arg_spec *const commands[] = { &run_spec, &ls_spec, &rm_spec, NULL };
const struct arg_spec cli_case = {
	.command = "case",
	.summary = "run eval cases",
	.group = GROUP_AGENTS,
	.about = "Eval cases: a repository, a harness that works on it, and graders that judge\n"
		 "the result.",
	.commands = commands,
};
