#include "model/hint.h"
#include "base/buf.h"
#include "base/str.h"

/* The first row that fits counts: longer commands stand before shorter ones. */
const struct hint_row hint_rows[] = {
	{ "carrel ls", "GET /v1/workspaces" },
	{ "carrel info % -o json", "GET /v1/workspaces/%" },
	{ "carrel create --from SNAPSHOT", "POST /v1/workspaces with \"from\"" },
	{ "carrel create --dir PATH, -v SOURCE:TARGET",
		"PUT /v1/workspaces/{id}/archive copies files into a workspace" },
	{ "carrel suspend --force %", "POST /v1/workspaces/%/suspend with {\"force\":true}" },
	{ "carrel repair %", "POST /v1/workspaces/%/repair" },
	{ "carrel exec -d", "POST /v1/workspaces/{id}/exec with \"background\"" },
	{ "carrel ps -a", "GET /v1/execs" },
	{ "carrel kill", "POST /v1/execs/{id}/signal with KILL" },
	{ "carrel port %", "GET /v1/workspaces/%/ports" },
	{ "carrel snapshot ls lists", "GET /v1/snapshots lists" },
	{ "carrel snapshot ls and", "GET /v1/snapshots and" },
	{ "carrel snapshot ls %", "GET /v1/workspaces/%/snapshots" },
	{ "carrel snapshot rm", "DELETE /v1/snapshots/{id}" },
	{ "carrel snapshot verify", "POST /v1/snapshots/{id}/verify" },
	{ "carrel snapshot rollback NAME SNAPSHOT", "POST /v1/workspaces/{id}/rollback" },
	{ "carrel snapshot push --force", "POST /v1/workspaces/{id}/push with {\"force\":true}" },
	{ "carrel snapshot push", "POST /v1/workspaces/{id}/push" },
	{ "carrel archive ls", "GET /v1/archives" },
	{ "carrel tree ls", "GET /v1/trees" },
	{ "carrel tree create", "POST /v1/trees" },
	{ "carrel template ls", "GET /v1/templates" },
	{ "carrel template rm", "DELETE /v1/templates/{id}" },
	{ "carrel env ls --exported", "GET /v1/exports" },
	{ "carrel env ls", "GET /v1/environments" },
	{ "carrel env build", "POST /v1/workspaces with \"python\"" },
	{ "carrel token create --scope reviewer", "POST /v1/tokens with {\"scope\":\"reviewer\"}" },
	{ "carrel token create", "POST /v1/tokens" },
	{ "carrel token ls", "GET /v1/tokens" },
	{ "carrel token rm", "DELETE /v1/tokens/{id}" },
	{ "carrel approval ls --state pending", "GET /v1/approvals?state=pending" },
	{ "carrel approval ls", "GET /v1/approvals" },
	{ "carrel approval show %", "GET /v1/approvals/%" },
	{ "carrel agent ls", "GET /v1/agents" },
	{ "carrel agent rm", "DELETE /v1/agents/{id}" },
	{ "carrel package ls", "GET /v1/packages" },
	{ "carrel deploy FILE", "PUT /v1/packages/{id}" },
	{ "carrel deployment ls", "GET /v1/deployments" },
	{ "carrel deployment show %", "GET /v1/deployments/%" },
	{ "carrel deployment rm", "DELETE /v1/deployments/{id}" },
	{ "carrel case ls", "GET /v1/cases" },
	{ "carrel case rm", "DELETE /v1/cases/{id}" },
	{ "carrel tool ls", "GET /v1/tools" },
	{ "carrel tool show %", "GET /v1/tools/%/versions" },
	{ "carrel tool rm", "DELETE /v1/tools/{id}" },
	/* No route judges without running: the problem has the steps. */
	{ "carrel policy explain -s FILE -- CMD", "'trail'" },
	{ "--when-busy wait", "{\"when_busy\":\"wait\"}" },
	{ "--memory and --tmp", "limits.memory and limits.tmp" },
};
const size_t hint_row_count = sizeof hint_rows / sizeof *hint_rows;

static bool ends_word(char c)
{
	return !c || strchr(" ,;:.)", c);
}

/* How many bytes of `text` the command is, or 0; *word: what its % stands for. */
static size_t match(const char *text, const char *command, struct str *word)
{
	const char *at = text;
	for (; *command; command++) {
		if (*command != '%') {
			if (*at++ != *command)
				return 0;
			continue;
		}
		word->data = at;
		while (!ends_word(*at))
			at++;
		word->len = (size_t)(at - word->data);
		if (!word->len)
			return 0;
	}
	return ends_word(*at) ? (size_t)(at - text) : 0;
}

void hint_for_rest(const char *hint, char out[ERROR_HINT_SIZE])
{
	auto_buf struct buf text = buf_empty(4096);
	while (*hint) {
		struct str word = STR("");
		const struct hint_row *row = NULL;
		size_t len = 0;
		for (size_t i = 0; i < hint_row_count && !len; i++) {
			row = &hint_rows[i];
			len = match(hint, row->command, &word);
		}
		for (const char *c = row->route; len && *c; c++)
			buf_append(&text, *c == '%' ? word.data : c, *c == '%' ? word.len : 1);
		if (!len)
			buf_append(&text, hint, len = 1);
		hint += len;
	}
	str_printable(out, ERROR_HINT_SIZE, (struct str){ text.data ? text.data : "", text.len });
}
