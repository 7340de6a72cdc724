/* Operations on templates of workspaces. */
#include "model/operations/takes.h"
#include "model/records/rows.h"

static const char *const template_forms[] = { "yaml", "template", NULL };

static const struct field template_body_rows[] = {
	ROW_OF(template_body, TEXT, yaml, "the text of the template", FIELD_STRICT, .least = 1,
		.most = 256 << 10),
	{ "template", FIELD_OBJECT, offsetof(struct template_body, model), "or its values",
		FIELD_STRICT, .object = &template_record },
	ROW_OF(template_body, BOOLEAN, check, "only check it: nothing is added"),
};
static const struct record template_added_record = { "TemplateAdded", NULL,
	RECORD_ROWS(template_body_rows), FIELD_IN, .one_of = template_forms };

static const struct operation operations[] = {
	{ "GET", "/v1/templates", "listTemplates", "template ls", VERB_TEMPLATE_LIST,
		.summary = "List templates",
		.more = "Shipped templates, and those that were added.", PAGES,
		LISTED("Templates", template_record, "Sorted by name.") },
	{ "POST", "/v1/templates", "addTemplate", "template add", VERB_TEMPLATE_ADD,
		.summary = "Add a template, or only check it",
		.more = "A template of the same name is replaced. With `check` it is only read, "
			"and nothing changes. Workspaces keep the values that they were made with.",
		.flags = ROUTE_LOCATION, TAKES(template_added_record, struct template_body),
		.answers = { { 200, TYPE_JSON, &template_record,
				     "It was only checked, or has replaced another." },
			{ 201, TYPE_JSON, &template_record, "It was added." } },
		.errors = { 429, 507 } },
	{ "GET", "/v1/templates/{id}", "getTemplate", "template show", VERB_TEMPLATE_GET,
		.summary = "Show a template",
		.more = "With the values that it leaves at their defaults.",
		SHOWN(template_record, "The template.") },
	{ "DELETE", "/v1/templates/{id}", "removeTemplate", "template rm", VERB_TEMPLATE_REMOVE,
		.summary = "Remove a template that was added",
		.more = "Only one that was added. Workspaces that were made from it stay as they "
			"are.",
		REMOVED, CHANGES },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "TemplateAdded", "{'template':{'name':'web','python':{'dependencies':['flask>=3']},"
			   "'limits':{'memory':'1G'}}}" },
	{ "Template",
		"{'version':'1.0','name':'web','origin':'added','description':'Flask',"
		"'python':{'dependencies':['flask>=3']},'nodejs':{},'system':{},'security':{},"
		"'limits':{'memory_bytes':1073741824,'disk_bytes':null,'tmp_bytes':null,"
		"'pids':null,'fds':null,'cpus':null,'cpu_time_ms':null,'timeout_ms':null,"
		"'output_bytes':null,'mechanism':null},'network':{},'env':{},'files':{},"
		"'sha256':'093eb29096bb2f6d0da098cf0ea718cfce43c9aed1e3bfdacac38a6f1412712d',"
		"'warnings':[]}" },
	{ 0 },
};

const struct operation_table template_operations = { "templates", operations, examples };
