#include "model/agents/deployment.h"

#include "format/http/uri.h"
#include "model/records/rows.h"

const char *const deployment_status_names[DEPLOYMENT_STATUS_COUNT + 1] = { "downloading",
	"building_env", "installing_deps", "starting", "healthy", "unhealthy", "failed", "stopped",
	NULL };

/* ---- what is kept ---- */

#define TEXT(name, member)                                                                         \
	{                                                                                          \
		name, FIELD_TEXT, AT(member), NULL, FIELD_KEPT | FIELD_NULLABLE                    \
	}
#define FLAG(name, member)                                                                         \
	{                                                                                          \
		name, FIELD_BOOLEAN, AT(member), NULL, FIELD_KEPT                                  \
	}
#define AT(member) offsetof(struct surface_row, member)
static const struct field surface_rows[] = { TEXT("workspace", workspace), TEXT("exec", exec) };
#undef AT
static const struct record surface_record = { "SurfaceKept", NULL, RECORD_ROWS(surface_rows) };

#define AT(member) offsetof(struct workspace_network, member)
static const struct field network_kept_rows[] = {
	TEXT("mode", mode),
	ROW(TEXTS, allow, NULL, FIELD_KEPT),
	ROW(TEXTS, deny, NULL, FIELD_KEPT),
};
#undef AT
static const struct record network_kept = { "NetworkKept", NULL, RECORD_ROWS(network_kept_rows) };

#define AT(member) offsetof(struct revision, member)
static const struct field revision_rows[] = {
	ROW(INTEGER, number, NULL, FIELD_KEPT),
	TEXT("agent_app_id", agent_app_id),
	TEXT("version", version),
	TEXT("package_url", package_url),
	TEXT("wanted_sha256", wanted_sha256),
	FLAG("rebuild_venv", rebuild_venv),
	FLAG("skip_venv_cache", skip_venv_cache),
	FLAG("force_refresh", force_refresh),
	TEXT("pip_index_url", pip_index_url),
	TEXT("pip_extra_index_url", pip_extra_index_url),
	TEXT("pip_trusted_host", pip_trusted_host),
	ROW(PAIRS, env, NULL, FIELD_KEPT),
	ROW(OBJECT, network, NULL, FIELD_KEPT, .object = &network_kept),
	TEXT("settings", settings),
	TEXT("caller", caller),
	TEXT("sha256", sha256),
	TEXT("manifest", manifest),
	TEXT("requirements", requirements),
	TEXT("layer", layer),
	TEXT("snapshot", snapshot),
	TEXT("environment", environment),
	FLAG("is_cached", is_cached),
	FLAG("is_prebuilt", is_prebuilt),
	{ "rest", FIELD_OBJECT, AT(surfaces[SURFACE_REST]), NULL, FIELD_KEPT,
		.object = &surface_record },
	{ "a2a", FIELD_OBJECT, AT(surfaces[SURFACE_A2A]), NULL, FIELD_KEPT,
		.object = &surface_record },
	{ "ui", FIELD_OBJECT, AT(surfaces[SURFACE_UI]), NULL, FIELD_KEPT,
		.object = &surface_record },
};
#undef AT
const struct record revision_record = { "RevisionKept", NULL, RECORD_ROWS(revision_rows) };

/* ---- what is shown ---- */

#define AT(member) offsetof(struct surface_info, member)
static const struct field info_rows[] = {
	ROW(TEXT, name, "rest, a2a or ui"),
	ROW(TEXT, status, "starting, healthy, unhealthy or stopped"),
	ROW(TEXT, url, "where the daemon forwards requests to it"),
	ROW(INTEGER, port, "in its workspace"),
	ROW(TEXT, workspace, "its sandbox, for carrel port and carrel exec", FIELD_NULLABLE),
	ROW(TEXT, exec, "its process, for GET /v1/execs/{id}/output", FIELD_NULLABLE),
	ROW(INTEGER, restarts, "since it was rolled out"),
	ROW(TEXT, error, "why it isn't healthy", FIELD_NULLABLE),
};
#undef AT
const struct record surface_info_record = { "Surface", NULL, RECORD_ROWS(info_rows), FIELD_OUT };

#define AT(member) offsetof(struct deployment_venv, member)
static const struct field venv_rows[] = {
	ROW(TEXT, path, "inside the surfaces"),
	ROW(TEXT, name, "of the environment: carrel env show"),
	ROW(TEXT, source,
		"index: of the packages of an index; package: of the wheels in its "
		"package.venv.tar.gz"),
	ROW(TEXT, requirements_sha256, "of requirements.txt, or no-deps"),
	ROW(TEXT, created_at),
	ROW(TEXT, python_version),
	{ "installed_packages", FIELD_PAIRS, AT(packages), "names and versions" },
	ROW(BOOLEAN, cached,
		"nothing was installed for it: it, or all of its packages, were there"),
};
#undef AT
static const struct record venv_record = { "DeploymentVenv", NULL, RECORD_ROWS(venv_rows),
	FIELD_OUT };

#define AT(member) offsetof(struct deployment_rollout, member)
static const struct field rollout_rows[] = {
	ROW(INTEGER, revision, NULL, FIELD_OUT | FIELD_KEPT),
	ROW(TEXT, version, NULL, FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE),
	ROW(CHOICE, status, "healthy: it is live; failed: what was live still is",
		FIELD_OUT | FIELD_KEPT, .names = deployment_status_names),
	ROW(TEXT, error, NULL, FIELD_OUT | FIELD_KEPT | FIELD_NULLABLE),
};
#undef AT
static const struct record rollout_record = { "DeploymentRollout", NULL,
	RECORD_ROWS(rollout_rows) };

#define AT(member) offsetof(struct deployment, member)
static const struct field rows[] = {
	{ "deploymentId", FIELD_ID, AT(id), NULL, FIELD_OUT | FIELD_COLUMN, .kept = "id",
		.head = "ID", .column = 1 },
	ROW(TEXT, name, "its routes take it in place of the id", FIELD_OUT | FIELD_KEPT,
		.head = "NAME", .column = 2),
	ROW(CHOICE, status, "of the revision that is being rolled out, else of the live one",
		FIELD_OUT, .names = deployment_status_names, .head = "STATUS", .column = 4),
	{ "agentAppId", FIELD_TEXT, AT(agent_app_id), NULL, FIELD_OUT },
	ROW(TEXT, version, "of the live revision, else of the next", FIELD_OUT, .head = "VERSION",
		.column = 3),
	{ "packageUrl", FIELD_TEXT, AT(package_url), NULL, FIELD_OUT },
	ROW(TEXT, sha256, "of the package", FIELD_OUT | FIELD_NULLABLE),
	ROW(INTEGER, revision, "the live one; 0: none is", FIELD_OUT, .head = "REVISION",
		.column = 5),
	ROW(TEXT, error, "of the latest rollout, or of a surface", FIELD_OUT | FIELD_NULLABLE),
	{ "created_at", FIELD_TIME, AT(created_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "created_ms", .head = "AGE", .column = 6 },
	{ "updated_at", FIELD_TIME, AT(updated_ms), NULL, FIELD_OUT | FIELD_COLUMN,
		.kept = "updated_ms" },
	ROW(INTEGER, revisions, NULL, FIELD_KEPT),
	ROW(OBJECT, rollout, "the latest one", FIELD_OUT | FIELD_KEPT, .object = &rollout_record),
	ROW(OBJECT, venv, "of the live revision; null: none is live", FIELD_OUT | FIELD_NULLABLE,
		.object = &venv_record, .has = FIELD_HAS(struct deployment, has_venv)),
	ROW(OBJECTS, surfaces, "of the live revision, else of the next", FIELD_OUT,
		.object = &surface_info_record),
	TEXT("log_rest", logs[SURFACE_REST]),
	TEXT("log_a2a", logs[SURFACE_A2A]),
	TEXT("log_ui", logs[SURFACE_UI]),
	ROW(OBJECT, live, NULL, FIELD_KEPT, .object = &revision_record),
	ROW(OBJECT, next, NULL, FIELD_KEPT, .object = &revision_record),
	ROW(OBJECT, previous, NULL, FIELD_KEPT, .object = &revision_record),
};
#undef AT
const struct record deployment_record = { "Deployment", NULL, RECORD_ROWS(rows) };

/* ---- what is sent ---- */

static int check_sha256(const char *text, struct error *err)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64
		       ? 0
		       : fail(err, ERR_INVALID, "'%.80s' is not a SHA-256 in lower-case hex", text);
}

/* What goes into a line of requirements. */
static int check_line(const char *text, struct error *err)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return fail(err, ERR_INVALID, "has a blank or control character");
	return 0;
}

static int check_url(const char *text, struct error *err)
{
	struct uri parts;
	struct str name;
	uint16_t port;
	if (check_line(text, err))
		return -1;
	if (!strncmp(text, "blob:", 5))
		return 0;
	if (!uri_split(text, &parts) ||
		(!str_is(parts.scheme, "https://") && !str_is(parts.scheme, "http://")))
		return fail_hint(err, ERR_INVALID, "carrel deploy FILE stores a package",
			"'%.128s' is neither blob:NAME nor a URL of http or https", text);
	if (parts.user.len) /* whoever may read the deployment sees its packageUrl */
		return fail_hint(err, ERR_INVALID, "carrel deploy FILE stores a package",
			"a URL with a user name or password is not accepted");
	return uri_parse_host(parts.host, &name, &port)
		       ? 0
		       : fail(err, ERR_INVALID, "'%.128s' has no valid host", text);
}

#define AT(member) offsetof(struct deployment_wanted, member)
static const struct field wanted_rows[] = {
	{ "agentAppId", FIELD_TEXT, AT(agent_app_id), "the agent", FIELD_REQUIRED,
		.pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,47}$", .check = apkg_check_id },
	ROW(TEXT, version, "that of agent.yaml", FIELD_REQUIRED,
		.pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,47}$", .check = apkg_check_id),
	ROW(TEXT, name,
		"of the deployment, agentAppId when not given; one that is there is replaced, "
		"without a failed request",
		.pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,47}$", .check = apkg_check_id),
	{ "packageUrl", FIELD_TEXT, AT(package_url),
		"blob:NAME of a stored package (default: blob:{agentAppId}@{version}), or an http "
		"or https URL: unless the package {agentAppId}@{version} is stored already, with "
		"the sha256 if one is given, it is fetched and stored under that name",
		.least = 1, .most = 2048, .check = check_url },
	ROW(TEXT, sha256, "that the package must have", .pattern = "^[0-9a-f]{64}$",
		.check = check_sha256),
	{ "rebuildVenv", FIELD_BOOLEAN, AT(rebuild_venv),
		"make the environment again although it exists, with the versions that were "
		"resolved before, and put it in the place of the one that is there" },
	{ "skipVenvCache", FIELD_BOOLEAN, AT(skip_venv_cache),
		"look for neither the environment nor the versions that were resolved before: "
		"resolve again, to the newest that requirements.txt allows" },
	{ "forceRefresh", FIELD_BOOLEAN, AT(force_refresh),
		"fetch a packageUrl of http or https, and unpack the package, although both were "
		"done already; the environment is reused" },
	{ "pipIndexUrl", FIELD_TEXT, AT(pip_index_url),
		"index in place of the host's; it and the next two fail the rollout unless "
		"config.yaml has allow_options",
		.least = 1, .most = 2048, .check = check_line },
	{ "pipExtraIndexUrl", FIELD_TEXT, AT(pip_extra_index_url),
		"another index, asked first: packages that it has are taken from it", .least = 1,
		.most = 2048, .check = check_line },
	{ "pipTrustedHost", FIELD_TEXT, AT(pip_trusted_host),
		"HOST or HOST:PORT of an index whose certificate isn't checked", .least = 1,
		.most = 256, .check = check_line },
	ROW(PAIRS, env, "variables of all surfaces", .most = WORKSPACE_ENV_MAX,
		.pattern = WORKSPACE_VARIABLE_PATTERN, .check_pair = workspace_check_variable),
	ROW(OBJECT, network, "what the surfaces may reach; nothing by default",
		.object = &workspace_network_record),
	ROW(JSON, settings, "the policy of the surfaces", .most = WORKSPACE_POLICY_BYTES_MAX,
		.check = workspace_check_settings),
};
#undef AT
const struct record deployment_wanted_record = { "DeploymentWanted", NULL, RECORD_ROWS(wanted_rows),
	FIELD_IN };

bool deployment_sets_variable(const struct workspace *workspace, const struct text_pair *variable)
{
	static const struct text_pair own[] = { { "PYTHONPATH", DEPLOYMENT_PYTHONPATH },
		{ "PYTHONUNBUFFERED", DEPLOYMENT_PYTHONUNBUFFERED } };
	const char *service = workspace->owner.service;
	for (size_t i = 0; service && i < sizeof own / sizeof *own; i++)
		if (!strcmp(service, WORKSPACE_DEPLOYMENTS) && !strcmp(own[i].key, variable->key) &&
			!strcmp(own[i].value, variable->value))
			return true;
	return false;
}
