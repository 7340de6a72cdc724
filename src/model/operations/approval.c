/* Operations on commands that wait for a person. */
#include "model/nouns/approval.h"
#include "model/operations/takes.h"
#include "model/records/rows.h"

static const struct field approvals_query_rows[] = {
	ROW_OF(approvals_query, CHOICE, state, "only those in it", .names = approval_state_names,
		.has = FIELD_HAS(struct approvals_query, has_state)),
	ROW_OF(approvals_query, TEXT, workspace, "only of this workspace: id, name or context_id",
		.least = 1),
	PAGE_ROWS,
};

static const struct operation operations[] = {
	{ "GET", "/v1/approvals", "listApprovals", "approval ls", VERB_APPROVAL_LIST,
		.summary = "List approvals",
		.more = "An approval is made when the policy of a workspace answers `ask` for a "
			"command. Needs the scope read.",
		QUERY(approvals_query_rows, struct approvals_query),
		LISTED("Approvals", approval_record, "Newest first."), .errors = { 404 } },
	{ "GET", "/v1/approvals/{id}", "getApproval", "approval show", VERB_APPROVAL_GET,
		.summary = "Show an approval",
		.more = "Shows the exact command that will run if it is approved.",
		SHOWN(approval_record, "The approval.") },
	{ "POST", "/v1/approvals/{id}", "answerApproval", "approval approve", VERB_APPROVAL_ANSWER,
		.summary = "Approve or deny a command that waits",
		.more = "The exec that waits starts, or ends with reason `denied` (exit code 126). "
			"409 if it was answered already, or has expired. Needs the scope review "
			"(tokens of scope reviewer or admin).",
		TAKES(approval_answer_record, struct approval_answer),
		SHOWN(approval_record, "The approval."), CHANGES },
	{ 0 },
};

#define APPROVAL_EXAMPLE                                                                           \
	"{'id':'c8v0e2d1s9k4m7q3b6n5','workspace':'n5fda10efceptk5gu44i',"                         \
	"'workspace_name':'demo','exec':'prfv370bg4v8fhatc0c8','state':'pending',"                 \
	"'argv':['git','push'],'cwd':null,'env':{},'stdin':null,'open_stdin':false,"               \
	"'tty':false,'encoding':'utf-8','trail':[{'subject':'git push',"                           \
	"'rule':'Bash(git push:*)','reason':null,'decision':'ask'}],'trail_truncated':false,"      \
	"'requested_by':'uid 1000','created_at':'2026-01-02T10:00:00.000Z',"                       \
	"'expires_at':'2026-01-02T10:15:00.000Z','answered_at':null,'answered_by':null,"           \
	"'note':null,'rules':[],'suggested_rules':['Bash(git push)'],'always_refused':null}"
static const struct operation_example examples[] = {
	{ "Approval", APPROVAL_EXAMPLE },
	{ "ApprovalAnswer", "{'decision':'approve','note':'once'}" },
	{ "ApprovalRequired", "{'type':'about:blank','title':'Accepted','status':202,"
			      "'code':'approval_required','detail':'exec waits for an approval',"
			      "'hint':'GET /v1/approvals/c8v0e2d1s9k4m7q3b6n5',"
			      "'request_id':'am6av8hc000000000002','exit_code':126,"
			      "'exec':'prfv370bg4v8fhatc0c8','approval':" APPROVAL_EXAMPLE "}" },
	{ 0 },
};

const struct operation_table approval_operations = { "approvals", operations, examples };
