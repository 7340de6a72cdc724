/* Operations on Python and Node packages of workspaces. */
#include "model/operations/takes.h"
#include "model/records/rows.h"

#define CHOICE(id, name) { #name, ENV_KIND_##id },
const struct field_choice packages_kinds[] = { ENV_KIND_LIST(CHOICE){ 0 } };

static const struct field packages_body_rows[] = {
	ROW_OF(packages_body, TEXTS, packages,
		"such as pandas>=2, of Node axios@1; names alone, to uninstall them",
		FIELD_REQUIRED, .least = 1, .most = 500),
	ROW_OF(packages_body, CHOICE, kind, "python when not given", .choices = packages_kinds),
	ROW_OF(packages_body, BOOLEAN, persist,
		"whether pyproject.toml, of Node package.json, in /workspace is changed too; "
		"true when not given",
		.has = FIELD_HAS(struct packages_body, has_persist)),
};
static const struct record packages_wanted_record = { "PackagesWanted", NULL,
	RECORD_ROWS(packages_body_rows), FIELD_IN };

static const struct field version_rows[] = { TEXT("name", NULL), TEXT("version", NULL) };
static const struct record version_record = { "PackageVersion", NULL, RECORD_ROWS(version_rows),
	FIELD_OUT };

static const struct field packages_changed_rows[] = {
	TEXT("environment", "the new environment of the workspace"),
	{ "installed", FIELD_OBJECTS, .help = "new packages, and new versions",
		.object = &version_record },
	{ "removed", FIELD_OBJECTS, .help = "packages and versions that are gone",
		.object = &version_record },
	{ "live", FIELD_BOOLEAN,
		.help = "something runs in the workspace: the files were copied into its sandbox" },
	{ "persisted", FIELD_BOOLEAN, .help = "pyproject.toml or package.json was changed" },
};
static const struct record packages_changed_record = { "PackagesChanged", NULL,
	RECORD_ROWS(packages_changed_rows), FIELD_OUT };

static const struct field package_rows[] = {
	TEXT("name", "of Python: normalised"),
	TEXT("version", NULL),
	{ "kind", FIELD_CHOICE, .choices = packages_kinds },
	{ "requested", FIELD_BOOLEAN, .help = "asked for by name, not only a dependency" },
	{ "source", FIELD_CHOICE, 0, "workspace: a command in it installed the package",
		.names = NAMES("environment", "workspace") },
};
static const struct record package_record = { "Package", NULL, RECORD_ROWS(package_rows),
	FIELD_OUT };

static const struct operation operations[] = {
	{ "GET", WORKSPACE "/packages", "listPackages", NULL, VERB_WORKSPACE_PACKAGES,
		.summary =
			"List the Python and Node packages that a command in the workspace finds",
		.more = "Those of its environment, and those that commands installed.",
		.flags = ROUTE_WORKSPACE, LISTED("Packages", package_record, "Sorted by name.") },
	{ "POST", WORKSPACE "/packages", "installPackages", "install", VERB_WORKSPACE_INSTALL,
		.summary = "Install Python or Node packages, also while commands run",
		.more = "Resolves them together with the packages that are there, builds what is "
			"missing, and changes the workspace in one step; processes that run find "
			"the new packages. Answers when it is done: follow `environment.progress` "
			"at `/v1/events` meanwhile.",
		.flags = ROUTE_WORKSPACE, TAKES(packages_wanted_record, struct packages_body),
		SHOWN(packages_changed_record,
			"Done. Errors of the resolution leave the workspace as it was."),
		MAKES },
	{ "DELETE", WORKSPACE "/packages", "uninstallPackages", "uninstall",
		VERB_WORKSPACE_UNINSTALL, .summary = "Uninstall Python or Node packages",
		.more = "Dependencies that nothing else needs are removed too.",
		.flags = ROUTE_WORKSPACE, TAKES(packages_wanted_record, struct packages_body),
		SHOWN(packages_changed_record,
			"Done. Errors of the resolution leave the workspace as it was."),
		MAKES },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "PackagesWanted", "{'packages':['requests>=2.32','rich'],'kind':'python'}" },
	{ "PackagesChanged",
		"{'environment':'py312-4f1c','installed':[{'name':'rich','version':'13.9.4'}],"
		"'removed':[],'live':true,'persisted':true}" },
	{ "Package", "{'name':'pandas','version':'2.2.3','kind':'python','requested':true,"
		     "'source':'environment'}" },
	{ 0 },
};

const struct operation_table package_operations = { "packages", operations, examples };
