/* carrel audit: reads the audit log through the daemon; checks it on the files themselves. */
#include <fcntl.h>
#include <unistd.h>
#include "audit/ocsf.h"
#include "audit/verify.h"
#include "base/fd.h"
#include "cli/plain.h"

#define PIECE 65536

/* ---- lines ---- */

struct lines {
	struct command *command;
	struct client_response response;
	struct buf rest; /* a line that isn't whole */
	uint64_t last;	 /* seq that was printed */
	char host[256];
};

static int begin(void *ctx, struct error *err)
{
	struct lines *l = ctx;
	struct remote *remote = &l->command->remote;
	const char *headers =
		l->last ? arena_printf(remote->arena, "Last-Event-ID: %" PRIu64 "\r\n", l->last)
			: NULL;
	buf_clear(&l->rest);
	return remote_begin_get(remote, plain_path(l->command, NULL), "application/x-ndjson",
		headers, &l->response, err);
}

/* Members of `data`, as KEY=VALUE; lists and objects as JSON. */
static void print_data(const struct json_value *data, struct buf *out)
{
	for (const struct json_value *member = data ? data->first : NULL; member;
		member = member->next) {
		auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
		char shown[1024];
		if (member->kind == JSON_NULL)
			continue;
		if (member->kind == JSON_STRING)
			buf_append(&text, member->string.data, member->string.len);
		else {
			struct json j = json_to(&text, false);
			json_copy(&j, NULL, member);
		}
		str_printable(shown, sizeof shown, (struct str){ text.data, text.len });
		buf_printf(out, "  %s=%s", member->key.data, shown);
	}
}

/* "SEQ  TIME  TYPE  PRINCIPAL  WORKSPACE  KEY=VALUE…" */
static void print_text(const struct json_value *line, struct buf *out)
{
	static const struct {
		const char *key;
		int width;
	} columns[] = { { "time", 24 }, { "type", 18 }, { "principal", 10 },
		{ "workspace_name", 0 } };
	uint64_t seq = 0;
	json_member_u64(line, "seq", &seq);
	buf_printf(out, "%6llu", (unsigned long long)seq);
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		char shown[256];
		const char *text = json_member_text(line, columns[i].key);
		str_printable(shown, sizeof shown, str_from(text ? text : "-"));
		buf_printf(out, "  %-*s", columns[i].width, shown);
	}
	print_data(json_member(line, "data"), out);
	buf_char(out, '\n');
}

static int print_line(struct lines *l, struct str text, struct error *err)
{
	struct command *command = l->command;
	const char *format = command->options.format;
	auto_arena struct arena arena = { 0 };
	struct json_value *value;
	if (json_read(text, &arena, &value, err))
		return error_context(err, "a line of the daemon");
	json_member_u64(value, "seq", &l->last);
	if (command->json) {
		buf_append(&command->out, text.data, text.len);
		buf_char(&command->out, '\n');
	} else if (format && !strcmp(format, "ocsf")) {
		struct json j = json_to(&command->out, false);
		ocsf_print(&j, value, l->host);
		buf_char(&command->out, '\n');
	} else
		print_text(value, &command->out);
	return 0;
}

static int print_piece(struct lines *l, struct error *err)
{
	struct str rest = { l->rest.data, l->rest.len }, line, tail;
	while (str_cut(rest, '\n', &line, &tail)) {
		rest = tail;
		if (line.len && print_line(l, line, err))
			return -1;
	}
	buf_drop_front(&l->rest, (size_t)(rest.data - l->rest.data));
	int failed = cli_print(&l->command->out, err);
	buf_clear(&l->command->out);
	return failed;
}

/* All of one answer: 1 when it was cut off, and is worth asking for again. */
static int read_answer(struct lines *l, struct error *err)
{
	ssize_t got;
	do {
		char *room = buf_reserve(&l->rest, PIECE);
		if (!room)
			return fail(err, ERR_LIMIT, "a line of the audit log is too long");
		got = client_read(&l->command->remote.client, &l->response, room, PIECE, err);
		if (got < 0)
			return err->code == ERR_CORRUPT ? 1 : -1;
		buf_grew(&l->rest, (size_t)got);
		if (print_piece(l, err))
			return -1;
	} while (got);
	return l->command->options.follow ? fail(err, ERR_UNAVAILABLE, "the daemon has ended") : 0;
}

static int read_lines(struct command *command, struct error *err)
{
	struct lines l = { .command = command };
	if (gethostname(l.host, sizeof l.host - 1))
		str_copy(l.host, sizeof l.host, "localhost");
	buf_init(&l.rest, (size_t)8 << 20);
	int is_cut = begin(&l, err) ? -1 : read_answer(&l, err);
	while (is_cut == 1)
		is_cut =
			remote_reopen(&command->remote, begin, &l, err) ? -1 : read_answer(&l, err);
	buf_done(&l.rest);
	return is_cut;
}

/* ---- the files themselves ---- */

static int open_log(struct command *command, int *dir, struct error *err)
{
	const char *home;
	if (command->options.host)
		return fail(err, ERR_INVALID,
			"--verify and --head read files of the home, and --host is a daemon");
	if (remote_refuse_far(&command->remote, "--verify or --head",
		    "verify it on the daemon's machine", err) ||
		home_find_path(&command->arena, &home, err))
		return -1;
	const char *path = arena_printf(&command->arena, "%s/audit", home);
	*dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *dir < 0 ? fail_errno(err, "open the audit log '%s'", path) : 0;
}

static int read_against(const char *text, struct audit_link *link, struct error *err)
{
	struct str seq, hash;
	if (!str_cut(str_from(text), ':', &seq, &hash) || !str_to_u64(seq, &link->seq) ||
		!link->seq || hash.len != AUDIT_HASH_LEN)
		return fail_hint(err, ERR_INVALID, "carrel audit --head prints one",
			"--against: '%s' is not SEQ:HASH", text);
	memcpy(link->hash, hash.data, AUDIT_HASH_LEN);
	link->hash[AUDIT_HASH_LEN] = 0;
	return 0;
}

static void print_finding_json(struct json *j, const struct audit_finding *finding)
{
	json_object(j, NULL);
	json_text(j, "kind", audit_finding_names[finding->kind]);
	json_text(j, "file", finding->file[0] ? finding->file : NULL);
	if (finding->line)
		json_u64(j, "line", finding->line);
	if (finding->seq) {
		json_u64(j, "seq", finding->seq);
		json_u64(j, "last_seq", finding->last_seq);
	}
	json_text(j, "message", finding->text);
	json_end(j);
}

static void print_verified_json(struct json *j, const struct audit_verified *verified)
{
	json_object(j, NULL);
	json_bool(j, "clean", verified->problem_count == 0);
	json_u64(j, "lines", verified->lines);
	json_u64(j, "files", verified->files);
	json_u64(j, "first_seq", verified->first_seq);
	json_u64(j, "last_seq", verified->last_seq);
	json_u64(j, "signed_seq", verified->head.last.seq);
	for (int is_note = 0; is_note < 2; is_note++) {
		json_array(j, is_note ? "notes" : "findings");
		for (size_t i = 0; i < verified->findings.count; i++) {
			const struct audit_finding *finding = &verified->findings.items[i];
			if (audit_finding_is_note(finding->kind) == is_note)
				print_finding_json(j, finding);
		}
		json_end(j);
	}
	json_end(j);
}

static void print_verified_text(struct buf *out, const struct audit_verified *verified)
{
	for (size_t i = 0; i < verified->findings.count; i++) {
		const struct audit_finding *finding = &verified->findings.items[i];
		buf_text(out, audit_finding_is_note(finding->kind) ? "note: " : "");
		if (finding->file[0] && finding->line)
			buf_printf(
				out, "%s:%llu: ", finding->file, (unsigned long long)finding->line);
		buf_printf(out, "%s: %s", audit_finding_names[finding->kind], finding->text);
		if (finding->line && finding->seq && finding->seq == finding->last_seq)
			buf_printf(out, " (seq %llu)", (unsigned long long)finding->seq);
		buf_char(out, '\n');
	}
	buf_printf(out, "%s: %llu lines in %llu file%s, seq %llu to %llu, signed up to %llu\n",
		verified->problem_count ? "NOT CLEAN" : "clean",
		(unsigned long long)verified->lines, (unsigned long long)verified->files,
		verified->files == 1 ? "" : "s", (unsigned long long)verified->first_seq,
		(unsigned long long)verified->last_seq,
		(unsigned long long)verified->head.last.seq);
}

static int verify(struct command *command, struct error *err)
{
	const char *given = command->options.against;
	struct audit_verified verified;
	struct audit_link against;
	auto_close int dir = -1;
	if ((given && read_against(given, &against, err)) || open_log(command, &dir, err) ||
		audit_verify(dir, given ? &against : NULL, &command->arena, &verified, err))
		return -1;
	if (command->json)
		print_verified_json(&command->value, &verified);
	else
		print_verified_text(&command->out, &verified);
	return verified.problem_count ? 1 : 0;
}

static int print_head(struct command *command, struct error *err)
{
	char text[AUDIT_HEAD_SIZE + 1];
	struct audit_head head;
	struct audit_key key;
	bool is_new;
	auto_close int dir = -1;
	if (open_log(command, &dir, err) || audit_key_open(dir, false, &key, &is_new, err))
		return -1;
	if (audit_head_load(dir, &key, &head, text) != HEAD_SIGNED)
		return fail_hint(err, ERR_CORRUPT, "carrel audit --verify",
			"'audit/head' is missing, or not signed by 'audit/key'");
	if (command->json)
		json_raw(&command->value, NULL, arena_text(&command->arena, text));
	else
		buf_printf(&command->out, "%llu:%s\n", (unsigned long long)head.last.seq,
			head.last.hash);
	return 0;
}

static int run(struct command *command, struct error *err)
{
	const struct options *options = &command->options;
	bool is_read = !options->verify && !options->head;
	bool is_ocsf = options->format && !strcmp(options->format, "ocsf");
	if (options->verify && options->head)
		return fail(err, ERR_INVALID, "--verify and --head can't be combined");
	if (options->against && !options->verify)
		return fail(err, ERR_INVALID, "--against needs --verify");
	if (!is_read && (options->follow || options->since || options->until ||
				options->workspace || options->type || is_ocsf))
		return fail(err, ERR_INVALID,
			"--verify and --head are about the whole log: --follow, --since, --until, "
			"--workspace, --type and -o ocsf can't be combined with them");
	return is_read		 ? read_lines(command, err)
	       : options->verify ? verify(command, err)
				 : print_head(command, err);
}

static const struct arg_option table[] = {
	{ 'f', "follow", ARG_FLAG, AT(follow), NULL, "go on with lines as they are written" },
	{ 0, "since", ARG_TEXT, AT(since), "TIME",
		"begin at this time (2026-01-31T12:00:00Z), or so long ago (1h)" },
	{ 0, "until", ARG_TEXT, AT(until), "TIME", "end there" },
	{ 0, "workspace", ARG_TEXT, AT(workspace), "NAME",
		"only lines about this workspace, which may be gone" },
	{ 0, "type", ARG_TEXT, AT(type), "TYPE",
		"only lines of this type (exec.start), or all that begin with it (exec)" },
	{ 0, "verify", ARG_FLAG, AT(verify), NULL,
		"check the files of the log, also without a daemon; exit code 1: not clean" },
	{ 0, "against", ARG_TEXT, AT(against), "SEQ:HASH",
		"with --verify: this line, which --head printed earlier, is still there" },
	{ 0, "head", ARG_FLAG, AT(head), NULL,
		"print SEQ:HASH of the last signed line, to be kept somewhere else" },
	{ .kind = ARG_ROWS, .rows = remote_rows, .row_count = 2 }, /* not its -o */
	{ 'o', "format", ARG_CHOICE, AT(format), "text|json|ocsf",
		"json: lines as they are in the log; ocsf: as events of the Open Cybersecurity "
		"Schema Framework, one a line",
		"text|json|ocsf" },
};
const struct arg_spec cli_audit = {
	.command = "audit",
	.summary = "print or check the audit log",
	.group = GROUP_POLICY,
	.about = "Prints who did what, and what was refused: commands, files, packages, "
		 "connections, approvals, workspaces, logins and the configuration. With -o json, "
		 "each line is one JSON value, as in the log.",
	ARG_TABLE(table),
	.examples = "  carrel audit --since 1h --type exec\n"
		    "  carrel audit --verify\n",
	.run = run,
};
