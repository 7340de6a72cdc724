#include "model/agents/apkg.h"

#include "base/path.h"
#include "base/str.h"
#include "model/records/rows.h"

const char *const surface_names[SURFACE_COUNT + 1] = { "rest", "a2a", "ui", NULL };
static const uint16_t ports[SURFACE_COUNT] = { 8000, 50051, 3000 };

/* ---- single values ---- */

int apkg_check_id(const char *text, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t len = strlen(text);
	if (len && len <= 48 && strspn(text, allowed) == len && text[0] != '.' && text[0] != '-')
		return 0;
	return fail_hint(err, ERR_INVALID, "1 to 48 of A-Z, a-z, 0-9, _, . and -, not . or - first",
		"'%.64s' can't name an agent or a version", text);
}

/* "package.module:name" */
static int check_module(const char *text, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.";
	size_t module = strspn(text, allowed);
	size_t name = text[module] == ':' ? strspn(text + module + 1, allowed) : 0;
	if (module && name && !text[module + 1 + name] && text[0] != '.')
		return 0;
	return fail_hint(
		err, ERR_INVALID, "such as app.main:app", "'%.128s' is not MODULE:NAME", text);
}

static int check_path(const char *text, struct error *err)
{
	char absolute[1024];
	if (str_format(absolute, sizeof absolute, "/%s", text) && text[0] &&
		path_is_normal(absolute))
		return 0;
	return fail_hint(err, ERR_INVALID, "such as ui/dist",
		"'%.128s' is not a relative, normal path", text);
}

static int check_health(const char *text, struct error *err)
{
	if (!strcmp(text, "grpc") || !strcmp(text, "tcp"))
		return 0;
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || *c == '#')
			return fail(err, ERR_INVALID, "'%.128s' is not a path of HTTP", text);
	return text[0] == '/'
		       ? 0
		       : fail(err, ERR_INVALID, "'%.128s' is neither a path, grpc nor tcp", text);
}

static int check_python(const char *text, struct error *err)
{
	size_t digits = strspn(text, "0123456789");
	size_t len = strlen(text), rest = strspn(text, "0123456789.");
	return digits && rest == len && text[len - 1] != '.' && !strstr(text, "..")
		       ? 0
		       : fail(err, ERR_INVALID, "'%.32s' is not a version, such as 3.12", text);
}

/* ---- rows ---- */

#define AT(member) offsetof(struct apkg_surface, member)
static const struct field surface_rows[] = {
	ROW(TEXT, module,
		"MODULE:NAME; rest: an ASGI application, run by "
		"uvicorn; a2a: a function that serves",
		.most = 256, .check = check_module),
	ROW(TEXT, command, "a line for /bin/sh, in place of a module", .least = 1, .most = 4096),
	ROW(TEXT, path, "of ui: a directory of static files", .check = check_path),
	ROW(INTEGER, port, "8000, 50051 and 3000 when not given", .least = 1024, .most = 65535),
	ROW(TEXT, health, "a path of HTTP, grpc or tcp", .most = 1024, .check = check_health),
	{ "start_timeout", FIELD_DURATION, AT(start_timeout_ms),
		"until it is healthy for the first time (default 60s)", .least = 100,
		.most = 3600000 },
	ROW(OBJECT, limits, .object = &limits_record),
	ROW(PAIRS, env, "variables", .most = 256),
};
#undef AT
static const struct record surface_record = { "ApkgSurfaceWanted", NULL, RECORD_ROWS(surface_rows),
	FIELD_IN };

static const struct field_choice managers[] = { { "venv", 0 }, { "conda", 1 }, { 0 } };
#define AT(member) offsetof(struct apkg_runtime, member)
static const struct field runtime_rows[] = {
	ROW(TEXT, python_version, "such as 3.12", .most = 32, .check = check_python),
	ROW(CHOICE, env_manager, "venv", .choices = managers),
};
#undef AT
static const struct record runtime_record = { "ApkgRuntimeWanted", NULL, RECORD_ROWS(runtime_rows),
	FIELD_IN };

#define AT(member) offsetof(struct apkg, member)
#define SURFACE(name, kind)                                                                        \
	{                                                                                          \
		name, FIELD_OBJECT, AT(surfaces[kind]), NULL, FIELD_IN,                            \
			.object = &surface_record,                                                 \
			.has = FIELD_HAS(struct apkg, surfaces[kind].is_there)                     \
	}
static const struct field rows[] = {
	ROW(TEXT, name, NULL, FIELD_IN | FIELD_REQUIRED, .check = apkg_check_id),
	ROW(TEXT, version, NULL, FIELD_IN | FIELD_REQUIRED, .check = apkg_check_id),
	ROW(TEXT, description, NULL, FIELD_IN, .most = 1000),
	ROW(OBJECT, runtime, NULL, FIELD_IN, .object = &runtime_record),
	SURFACE("rest", SURFACE_REST),
	SURFACE("a2a", SURFACE_A2A),
	SURFACE("ui", SURFACE_UI),
};
#undef AT
const struct record apkg_record = { "ApkgWanted", NULL, RECORD_ROWS(rows), FIELD_IN };

static int check_surface(const struct apkg *agent, enum surface_kind kind, struct error *err)
{
	const struct apkg_surface *s = &agent->surfaces[kind];
	const char *name = surface_names[kind];
	int ways = (s->module != NULL) + (s->command != NULL) + (s->path != NULL);
	if (!s->is_there)
		return 0;
	if (ways != 1)
		return fail(err, ERR_INVALID, "%s: needs one of %s", name,
			kind == SURFACE_UI ? "path and command" : "module and command");
	if ((s->path && kind != SURFACE_UI) || (s->module && kind == SURFACE_UI))
		return fail(err, ERR_INVALID, "%s.%s: not known of this surface", name,
			s->path ? "path" : "module");
	return 0;
}

int apkg_read(
	const struct json_value *value, struct arena *arena, struct apkg *out, struct error *err)
{
	*out = (struct apkg){ 0 };
	if (value->kind != JSON_OBJECT)
		return fail(
			err, ERR_INVALID, "has no keys: name, version and a surface are needed");
	if (record_read(&apkg_record, value, arena, out, err))
		return -1;
	int count = 0;
	for (int i = 0; i < SURFACE_COUNT; i++) {
		if (check_surface(out, (enum surface_kind)i, err))
			return -1;
		count += out->surfaces[i].is_there;
	}
	if (!count)
		return fail(err, ERR_INVALID, "has no surface: rest, a2a or ui");
	if (out->runtime.env_manager)
		return fail_hint(err, ERR_INVALID, "use env_manager: venv",
			"runtime.env_manager: conda is not available: micromamba is not used by "
			"this carrel");
	return 0;
}

/* ---- what is run ---- */

uint16_t apkg_port(const struct apkg *agent, enum surface_kind kind)
{
	uint64_t port = agent->surfaces[kind].port;
	return port ? (uint16_t)port : ports[kind];
}

static text_list words(struct arena *arena, const char *const *items)
{
	text_list list = { 0 };
	for (; *items; items++)
		vec_push(arena, &list, *items);
	vec_push(arena, &list, (const char *)NULL);
	list.count--;
	return list;
}

text_list apkg_command(const struct apkg *agent, enum surface_kind kind, struct arena *arena)
{
	/* Calls the function, and awaits what it returns. */
	static const char serve[] = "import asyncio, importlib, inspect, sys\n"
				    "module, name = sys.argv[1].split(':')\n"
				    "target = importlib.import_module(module)\n"
				    "for part in name.split('.'):\n"
				    "    target = getattr(target, part)\n"
				    "result = target()\n"
				    "if inspect.isawaitable(result):\n"
				    "    async def wait():\n"
				    "        return await result\n"
				    "    asyncio.run(wait())\n"
				    "elif hasattr(result, 'wait_for_termination'):\n"
				    "    result.wait_for_termination()\n";
	const struct apkg_surface *s = &agent->surfaces[kind];
	const char *port = arena_printf(arena, "%u", (unsigned)apkg_port(agent, kind));
	if (s->command)
		return words(arena, (const char *const[]){ "/bin/sh", "-c", s->command, NULL });
	if (kind == SURFACE_UI)
		return words(arena, (const char *const[]){ "python3", "-m", "http.server", port,
					    "--bind", "127.0.0.1", "--directory",
					    arena_printf(arena, "/workspace/%s", s->path), NULL });
	if (kind == SURFACE_A2A)
		return words(
			arena, (const char *const[]){ "python3", "-c", serve, s->module, NULL });
	return words(arena, (const char *const[]){ "python3", "-m", "uvicorn", s->module, "--host",
				    "127.0.0.1", "--port", port, NULL });
}
