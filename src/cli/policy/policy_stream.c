/* carrel policy check --stream: a request on each line, an answer on each line. */
#include <unistd.h>
#include "base/path.h"
#include "cli/policy/policy.h"
#include "model/network/network.h"

#define LINE_MAX_BYTES ((size_t)16 << 20)
#define CACHE_BYTES_MAX ((size_t)64 << 20)

struct stream {
	struct command *command;
	struct buf in, out;
	size_t scanned;	  /* of `in`: has no newline */
	bool is_skipping; /* a line that is too long */
	bool has_failed;
	size_t line;
	/* Settings and sources by their content, and where they hold. */
	struct arena cached;
	size_t cached_bytes;
	struct map policies, sources;
	struct arena arena; /* of one line */
	/* Of config.yaml, when a connection is judged. */
	struct arena read_once;
	struct policy_network network;
	bool has_network;
};

static void reset_cache(struct stream *s)
{
	arena_done(&s->cached);
	arena_init(&s->cached);
	map_init(&s->policies, &s->cached);
	map_init(&s->sources, &s->cached);
	s->cached_bytes = 0;
}

struct where { /* of a request */
	const char *cwd, *home, *workspace, *context_id;
	enum policy_format format;
};

/* The text of a member that is an object as written, or a path. */
static int read_member(struct stream *s, const struct json_value *member, const char *key,
	size_t max, const char **name, struct str *text, struct error *err)
{
	*name = NULL;
	if (member->kind == JSON_OBJECT) {
		*text = member->source;
		return 0;
	}
	if (member->kind != JSON_STRING || !member->string.len ||
		memchr(member->string.data, '\0', member->string.len))
		return fail(err, ERR_INVALID, "'%s': an object or a path expected", key);
	if (!strcmp(member->string.data, "-"))
		return fail(err, ERR_INVALID, "'%s': standard input is the stream", key);
	*name = member->string.data;
	return policy_read_file(member->string.data, max, &s->arena, text, err);
}

struct loaded {
	struct policy policy;
	struct sources sources;
};

static int find_policy(struct stream *s, const struct where *where, const char *name,
	struct str text, const struct policy **policy, struct error *err)
{
	const char *prefix = arena_printf(&s->arena, "%s\n%s\n%s\n%s\n%s\n%d\n", where->cwd,
		where->home, where->workspace, where->context_id ? where->context_id : "",
		name ? name : "", (int)where->format);
	size_t len = strlen(prefix);
	char *key = arena_alloc(&s->arena, len + text.len + 1);
	memcpy(key, prefix, len);
	memcpy(key + len, text.data, text.len);
	struct str whole = { key, len + text.len };
	struct loaded *found = map_get(&s->policies, whole);
	if (found) {
		*policy = &found->policy;
		return 0;
	}
	s->cached_bytes += whole.len * 8;
	if (s->cached_bytes > CACHE_BYTES_MAX)
		reset_cache(s);
	struct policy_places places = { .workspace = where->workspace,
		.context_id = where->context_id,
		.home = where->home,
		.cwd = where->cwd };
	struct policy_file file = { .name = arena_text(&s->cached, name),
		.text = { arena_bytes(&s->cached, text.data, text.len), text.len },
		.format = where->format };
	found = arena_alloc(&s->cached, sizeof *found);
	policy_init(&found->policy, &s->cached);
	if (policy_add_file(&found->policy, &file, &places, err))
		return -1;
	map_set(&s->policies, whole, found);
	*policy = &found->policy;
	return 0;
}

static int find_sources(struct stream *s, const char *name, struct str text,
	const struct sources **sources, struct error *err)
{
	struct loaded *found = map_get(&s->sources, text);
	if (!found) {
		s->cached_bytes += text.len * 8;
		found = arena_alloc(&s->cached, sizeof *found);
		struct str kept = { arena_bytes(&s->cached, text.data, text.len), text.len };
		if (sources_parse(name, kept, &s->cached, &found->sources, err))
			return -1;
		map_set(&s->sources, kept, found);
	}
	*sources = &found->sources;
	return 0;
}

static int read_directory(const struct json_value *request, const char *key, struct arena *arena,
	const char *otherwise, const char **out, struct error *err)
{
	const char *text = json_member_text(request, key);
	if (!json_member(request, key)) {
		*out = otherwise;
		return 0;
	}
	if (!text || text[0] != '/')
		return fail(err, ERR_INVALID, "'%s': an absolute path expected", key);
	*out = path_normalize(arena, "/", text);
	return 0;
}

static int read_where(
	struct stream *s, const struct json_value *request, struct where *where, struct error *err)
{
	const struct options *options = &s->command->options;
	const char *format = json_member_text(request, "format");
	if (!format)
		format = options->settings_format;
	where->format = POLICY_FORMAT_ANY;
	if (format && !policy_format_from_name(format, &where->format))
		return fail(err, ERR_INVALID, "'format': carrel, claude or srt expected");
	where->context_id = json_member_text(request, "context_id");
	return read_directory(request, "cwd", &s->arena, options->cwd ? options->cwd : "/workspace",
		       &where->cwd, err) ||
			       read_directory(request, "home", &s->arena,
				       options->home ? options->home : "/workspace", &where->home,
				       err) ||
			       read_directory(request, "workspace", &s->arena, "/workspace",
				       &where->workspace, err)
		       ? -1
		       : 0;
}

/* -- kinds of requests -- */

static int need_network(struct stream *s, struct error *err)
{
	if (!s->has_network && policy_read_network(&s->read_once, &s->network, err))
		return -1;
	s->has_network = true;
	return 0;
}

static int read_dialect(struct stream *s, const struct json_value *request,
	enum shell_dialect *dialect, struct error *err)
{
	const char *shell = json_member_text(request, "shell");
	if (!shell)
		shell = s->command->options.shell;
	*dialect = shell && !strcmp(shell, "bash") ? SHELL_BASH : SHELL_SH;
	if (json_member(request, "shell") &&
		!(shell && (!strcmp(shell, "sh") || *dialect == SHELL_BASH)))
		return fail(err, ERR_INVALID, "'shell': sh or bash expected");
	return 0;
}

static int judge_words(const struct policy *policy, const struct policy_request *with,
	const struct json_value *words, struct policy_verdict *verdict, struct error *err)
{
	text_list argv = { 0 };
	if (words->kind != JSON_ARRAY || !words->count)
		return fail(err, ERR_INVALID, "'argv': a list of words expected");
	for (const struct json_value *word = words->first; word; word = word->next) {
		if (word->kind != JSON_STRING || memchr(word->string.data, '\0', word->string.len))
			return fail(err, ERR_INVALID, "'argv': a list of words expected");
		vec_push(with->arena, &argv, word->string.data);
	}
	policy_judge_argv(policy, with, &argv, verdict);
	return 0;
}

static int judge_request(struct stream *s, const struct json_value *request,
	struct policy_verdict *verdict, struct error *err)
{
	const char *kind = json_member_text(request, "kind");
	const struct json_value *settings = json_member(request, "settings");
	const struct json_value *sources = json_member(request, "sources");
	const struct json_value *command = json_member(request, "command");
	const struct json_value *argv = json_member(request, "argv");
	struct policy_request with = { .arena = &s->arena };
	const struct policy *policy;
	const char *name;
	struct where where = { 0 };
	struct str text;
	if (!kind || (strcmp(kind, "shell") && strcmp(kind, "file") && strcmp(kind, "network")))
		return fail(err, ERR_INVALID, "'kind': shell, file or network expected");
	if (read_where(s, request, &where, err) || read_dialect(s, request, &with.dialect, err) ||
		(!strcmp(kind, "network") && need_network(s, err)))
		return -1;
	with.opened = &s->network.opened;
	struct json_value path = { .kind = JSON_STRING };
	if (!settings && s->command->options.settings) {
		path.string = str_from(s->command->options.settings);
		settings = &path;
	}
	if (!settings)
		return fail(err, ERR_INVALID, "no 'settings'");
	if (read_member(s, settings, "settings", POLICY_SETTINGS_MAX, &name, &text, err) ||
		find_policy(s, &where, name, text, &policy, err))
		return -1;
	struct json_value source_path = { .kind = JSON_STRING };
	if (!sources && s->command->options.sources) {
		source_path.string = str_from(s->command->options.sources);
		sources = &source_path;
	}
	if (sources && sources->kind != JSON_NULL &&
		(read_member(s, sources, "sources", SOURCES_MAX, &name, &text, err) ||
			find_sources(s, name, text, &with.sources, err)))
		return -1;
	with.cwd = where.cwd;
	with.home = where.home;
	if (!strcmp(kind, "shell") && argv && !command)
		return judge_words(policy, &with, argv, verdict, err);
	if (!command || command->kind != JSON_STRING || argv)
		return fail(err, ERR_INVALID, "'command': a text expected");
	if (!strcmp(kind, "shell")) {
		policy_judge_script(policy, &with, command->string, verdict);
		return 0;
	}
	if (memchr(command->string.data, '\0', command->string.len) ||
		strncmp(command->string.data, kind, strlen(kind)))
		return fail(err, ERR_INVALID, "'command': %s(…) expected", kind);
	return policy_judge_subject(policy, &with, command->string.data, verdict, err);
}

static int read_entries(struct stream *s, const struct json_value *list, const char *key,
	text_list *out, struct error *err)
{
	if (list && list->kind != JSON_ARRAY)
		return fail(err, ERR_INVALID, "'%s': a list expected", key);
	for (const struct json_value *item = list ? list->first : NULL; item; item = item->next) {
		if (item->kind != JSON_STRING || memchr(item->string.data, '\0', item->string.len))
			return fail(err, ERR_INVALID, "'%s': a list of texts expected", key);
		vec_push(&s->arena, out, item->string.data);
	}
	return 0;
}

/* {"allow": […], "deny": […], "target": URL | host:port} */
static int judge_target(struct stream *s, const struct json_value *request,
	struct network_verdict *verdict, struct error *err)
{
	const struct json_value *target = json_member(request, "target");
	text_list allow = { 0 }, deny = { 0 };
	struct network_list list;
	char host[NETWORK_HOST_SIZE];
	uint16_t port;
	struct error ignored;
	if (!target || target->kind != JSON_STRING)
		return fail(err, ERR_INVALID, "'target': a URL or host:port expected");
	if (read_entries(s, json_member(request, "allow"), "allow", &allow, err) ||
		read_entries(s, json_member(request, "deny"), "deny", &deny, err) ||
		need_network(s, err) ||
		network_list_parse(&s->arena, &allow, &deny, &s->network.defaults, &list, err))
		return -1;
	/* What isn't a host is not reached: no list can open it. */
	*verdict = (struct network_verdict){ .reason = NETWORK_REASON_UNLISTED };
	if (!network_target_parse(target->string, host, &port, &ignored))
		*verdict = network_judge(&list, host, port, &s->network.opened);
	return 0;
}

/* -- lines -- */

static int check_members(const struct json_value *request, bool is_target, struct error *err)
{
	static const char *const of_policy[] = { "kind", "settings", "sources", "command", "argv",
		"cwd", "home", "shell", "workspace", "context_id", "format", "id", NULL };
	static const char *const of_target[] = { "allow", "deny", "target", "id", NULL };
	for (const struct json_value *m = request->first; m; m = m->next) {
		const char *const *known = is_target ? of_target : of_policy;
		char key[64];
		while (*known && !str_is(m->key, *known))
			known++;
		str_printable(key, sizeof key, m->key);
		if (!*known)
			return fail(err, ERR_INVALID, "unknown member '%s'", key);
	}
	return 0;
}

static void print_error(struct stream *s, const struct error *err)
{
	struct json j = json_to(&s->out, false);
	s->has_failed = true;
	if (!s->command->json) {
		buf_printf(&s->out, "error: line %zu: %s\n", s->line, err->text);
		return;
	}
	json_object(&j, NULL);
	cli_print_error(&j, "error", err, NULL);
	json_u64(&j, "line", s->line);
	json_end(&j);
	buf_char(&s->out, '\n');
}

static void print_id(struct json *j, const struct json_value *request)
{
	const struct json_value *id = json_member(request, "id");
	if (id)
		json_copy(j, "id", id);
}

static int answer(struct stream *s, struct str text, struct error *err)
{
	struct json j = json_to(&s->out, false);
	struct policy_verdict verdict = { 0 };
	struct network_verdict network = { 0 };
	struct json_value *request;
	if (json_read(text, &s->arena, &request, err))
		return -1;
	if (request->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "an object expected");
	bool is_target = json_member(request, "target") != NULL;
	if (check_members(request, is_target, err) ||
		(is_target ? judge_target(s, request, &network, err)
			   : judge_request(s, request, &verdict, err)))
		return -1;
	const char *word = is_target ? (network.is_allowed ? "open" : "closed")
				     : policy_decision_name(verdict.decision);
	if (!s->command->json) {
		buf_printf(&s->out, "%s\n", word);
		return 0;
	}
	json_object(&j, NULL);
	print_id(&j, request);
	if (is_target) {
		json_text(&j, "decision", word);
		json_text(&j, "rule", network.rule);
		json_text(&j, "reason", network_reason_text(network.reason));
	} else
		policy_print_verdict(&j, &verdict);
	json_end(&j);
	buf_char(&s->out, '\n');
	return 0;
}

static void answer_line(struct stream *s, struct str text)
{
	struct error err = { 0 };
	s->line++;
	if (answer(s, text, &err))
		print_error(s, &err);
	arena_done(&s->arena);
	arena_init(&s->arena);
}

static void take_lines(struct stream *s)
{
	size_t used = 0;
	char *newline;
	while ((newline = memchr(s->in.data + s->scanned, '\n', s->in.len - s->scanned))) {
		size_t end = (size_t)(newline - s->in.data);
		if (!s->is_skipping)
			answer_line(s, (struct str){ s->in.data + used, end - used });
		s->is_skipping = false;
		used = s->scanned = end + 1;
	}
	buf_drop_front(&s->in, used);
	s->scanned = s->in.len;
	if (s->in.len <= LINE_MAX_BYTES)
		return;
	struct error err;
	if (!s->is_skipping) {
		s->line++;
		fail(&err, ERR_LIMIT, "a line of more than %zu bytes", LINE_MAX_BYTES);
		print_error(s, &err);
	}
	s->is_skipping = true;
	buf_clear(&s->in);
	s->scanned = 0;
}

int policy_stream(struct command *command, struct error *err)
{
	struct stream s = { .command = command,
		.in = buf_empty(LINE_MAX_BYTES + ((size_t)1 << 20)),
		.out = buf_empty((size_t)-1 / 2) };
	const struct options *options = &command->options;
	int code = 0;
	if ((options->cwd && options->cwd[0] != '/') || (options->home && options->home[0] != '/'))
		return fail(err, ERR_INVALID, "-w, --home: an absolute path expected");
	reset_cache(&s);
	for (;;) {
		/* Answers are written before waiting for more, so that a client may wait for each.
		 */
		char *room = buf_reserve(&s.in, (size_t)64 << 10);
		ssize_t len = read(STDIN_FILENO, room, (size_t)64 << 10);
		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			code = fail_errno(err, "read standard input");
		if (len <= 0)
			break;
		buf_grew(&s.in, (size_t)len);
		take_lines(&s);
		if ((code = cli_print(&s.out, err)))
			break;
		buf_clear(&s.out);
	}
	if (!code && s.in.len && !s.is_skipping)
		answer_line(&s, (struct str){ s.in.data, s.in.len });
	if (!code)
		code = cli_print(&s.out, err);
	arena_done(&s.read_once);
	arena_done(&s.cached);
	arena_done(&s.arena);
	buf_done(&s.in);
	buf_done(&s.out);
	return code ? code : s.has_failed ? error_exit_code(ERR_INVALID) : 0;
}
