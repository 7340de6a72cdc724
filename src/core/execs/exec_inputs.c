/* exec_inputs.c -- execs whose policy wants to look at files first (policy/inputs.h): what
 * `pip install -r FILE` installs, which address a remote of git has.
 * 1. Such an exec is in STAGE_ASKED without an approval. Its files are read by the file server, as
 * the command would read them; then it is judged again, and runs, ends `denied`, or waits for an
 * approval.
 * 2. A file may change before the command reads it: the network is what bounds an install. When the
 * command has ended its files are judged once more, and what would have been denied is recorded. */
#include <sys/stat.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "core/access/approvals.h"
#include "core/access/policies.h"
#include "core/execs/internal.h"

struct reading {
	struct core_workspace *w;
	struct arena arena;
	struct policy_inputs inputs;
	const struct exec_spec *spec;
	struct core_exec *e;	  /* that waits for it; NULL: it has ended */
	char exec[ID_LEN + 1];	  /* its id */
	struct audit_actor actor; /* of it */
	char requested_by[PRINCIPAL_NAME_SIZE];
};

static void free_reading(struct reading *r)
{
	struct core_workspace *w = r->w;
	arena_done(&r->arena);
	free(r);
	core_release(w);
}

static struct reading *new_reading(struct core_workspace *w, const struct core_exec *e)
{
	struct reading *r = xzalloc(sizeof *r);
	r->w = w;
	arena_init(&r->arena);
	r->inputs.arena = &r->arena;
	r->actor = e->actor;
	memcpy(r->exec, e->record.id, sizeof r->exec);
	core_hold(w);
	return r;
}

/* ---- what was found ---- */

struct judged {
	const struct reading *reading;
	const struct policy_verdict *verdict;
};

static void print_judged(struct json *j, const void *ctx)
{
	const struct judged *judged = ctx;
	const struct policy_inputs *inputs = &judged->reading->inputs;
	json_text(j, "exec", judged->reading->exec);
	json_text(j, "decision", policy_decision_name(judged->verdict->decision));
	json_array(j, "files");
	for (size_t i = 0; i < inputs->count; i++)
		if (inputs->items[i]->state == POLICY_INPUT_READ)
			json_text(j, NULL, inputs->items[i]->path);
	json_end(j);
	policy_print_trail(j, "trail", judged->verdict);
}

static void note_judged(
	const struct reading *r, const char *type, const struct policy_verdict *verdict)
{
	const struct judged judged = { r, verdict };
	if (r->w->core->audit && r->actor.principal[0])
		audit_write_as(r->w->core, &r->actor, type, r->w, print_judged, &judged);
}

static void settle(struct reading *r, const struct policy_verdict *verdict)
{
	struct core_exec *e = r->e;
	struct error err;
	note_judged(r, "exec.judged", verdict);
	switch (verdict->decision) {
	case POLICY_ALLOW:
		e->looked_at = e->spec->command ? LOOKED_AT_SCRIPT : LOOKED_AT_WORDS;
		exec_move(e, STAGE_WAITING);
		exec_begin(e);
		return;
	case POLICY_ASK:
		if (exec_ask_later(e, r->requested_by, verdict, &err))
			exec_failed(e, &err);
		return;
	case POLICY_DENY:
		policies_explain(r->w, verdict, &err);
		exec_failed(e, &err);
		return;
	}
}

/* The command has run already. */
static void tell_changed(struct reading *r, const struct policy_verdict *verdict)
{
	if (verdict->decision != POLICY_DENY)
		return;
	const char *why = policy_explain(verdict, &r->arena);
	note_judged(r, "exec.changed", verdict);
	journal_emit(&r->w->core->journal, "exec.changed", r->w->model.id, r->w->model.name, "exec",
		r->exec, "reason", why, NULL);
	log_record(&r->w->core->log, LOG_LEVEL_WARN,
		"files that a command was judged by name something else after it has run", "exec",
		r->exec, "workspace", r->w->model.id, "reason", why, NULL);
}

/* ---- reading ---- */

static void go_on(struct reading *r);

/* The type of a path, or the names in a directory. false: not as an agent tells it. */
static bool take_infos(struct reading *r, const struct file_answer *answer,
	enum policy_input_kind kind, struct str *text)
{
	auto_buf struct buf names = buf_empty(POLICY_INPUT_MAX);
	struct str rest = answer->infos, name, link;
	struct file_entry info = { 0 };
	for (uint32_t i = 0; i < answer->reply.count; i++) {
		if (!file_take_entry(&rest, &info, &name, &link) ||
			memchr(name.data, '\n', name.len))
			return false;
		buf_printf(&names, "%.*s%s\n", (int)name.len, name.data,
			S_ISDIR(info.mode) ? "/" : "");
	}
	if (kind == POLICY_INPUT_TYPE)
		*text = str_from(path_type(info.mode));
	else
		*text = (struct str){
			arena_bytes(&r->arena, names.len ? names.data : "", names.len), names.len
		};
	return !names.overflow && !(answer->reply.flags & FILE_MORE) &&
	       (kind == POLICY_INPUT_NAMES || answer->reply.count == 1);
}

static void take(struct reading *r, const struct file_answer *answer, const struct error *err)
{
	struct policy_input *input = policy_inputs_next(&r->inputs);
	auto_close int fd = err ? -1 : answer->fd;
	struct str text;
	if (err)
		policy_inputs_fail(input, err->code);
	else if (input->kind == POLICY_INPUT_FILE
			 ? file_read(fd, POLICY_INPUT_MAX, &r->arena, &text) != 0
			 : !take_infos(r, answer, input->kind, &text))
		policy_inputs_fail(input, ERR_LIMIT);
	else
		policy_inputs_give(&r->inputs, input, text);
}

static void on_opened(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct reading *r = ctx;
	bool is_over = r->w->core->is_stopping;
	if (r->e)
		is_over = !exec_came_back(r->e) || r->e->stage != STAGE_ASKED;
	take(r, answer, err);
	fault_point("core_exec_input");
	if (is_over)
		free_reading(r);
	else
		go_on(r);
}

static void read_next(struct reading *r, const struct policy_input *input)
{
	static const enum file_verb verbs[] = { [POLICY_INPUT_FILE] = FILE_OPEN,
		[POLICY_INPUT_TYPE] = FILE_STAT,
		[POLICY_INPUT_NAMES] = FILE_LIST };
	const struct file_ask ask = { .verb = verbs[input->kind],
		.path = input->path,
		.limit = input->kind == POLICY_INPUT_NAMES ? POLICY_INPUT_NAMES_MAX : 0,
		.fd = -1 };
	if (r->e)
		r->e->awaited++;
	file_ask(r->w, &ask, on_opened, r);
}

static void go_on(struct reading *r)
{
	struct policy_verdict verdict;
	struct policy_input *next = policy_inputs_next(&r->inputs);
	if (next && r->inputs.rounds) {
		read_next(r, next);
		return;
	}
	policies_judge_inputs(r->w, r->spec, &r->inputs, &r->arena, &verdict);
	if (verdict.decision == POLICY_ASK && policy_inputs_go_on(&r->inputs)) {
		read_next(r, policy_inputs_next(&r->inputs));
		return;
	}
	if (r->e)
		settle(r, &verdict);
	else
		tell_changed(r, &verdict);
	free_reading(r);
}

int exec_look(const struct request *request, struct core_exec *e, const struct exec_spec *spec,
	const int fds[3], struct error *err)
{
	if (e->mode == EXEC_HANDED && streams_keep(e, fds, err))
		return -1;
	exec_keep_spec(e, spec);
	struct reading *r = new_reading(e->workspace, e);
	r->e = e;
	r->spec = e->spec;
	access_name(request->principal, r->requested_by);
	exec_move(e, STAGE_ASKED);
	go_on(r);
	return 0;
}

void exec_look_again(struct core_exec *e)
{
	struct core_workspace *w = e->workspace;
	if (!e->looked_at || w->is_gone || w->core->is_stopping || w->sandbox.state != SANDBOX_UP)
		return;
	struct reading *r = new_reading(w, e);
	struct exec_spec *spec = arena_alloc(&r->arena, sizeof *spec);
	*spec = (struct exec_spec){ .argv = text_list_copy(&r->arena, &e->record.argv),
		.cwd = arena_text(&r->arena, e->record.cwd) };
	spec->command =
		e->looked_at == LOOKED_AT_SCRIPT ? spec->argv.items[spec->argv.count - 1] : NULL;
	r->spec = spec;
	go_on(r);
}
