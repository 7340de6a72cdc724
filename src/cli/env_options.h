/* env_options.h -- what can be asked of an environment on a command line: one list of rows for
 * `env build`, `env warm`, `run` and carrel-build, and the request made of it. */
#pragma once
#include "cli/args.h"
#include "envs/build.h"

struct env_options {
	const char *python, *index, *torch_backend;
	text_list requirement_files, constraint_files, constraint_lines, extras, groups;
	text_list pip, find_links, extra_indexes, trusted_hosts, editables;
	bool require_hashes, allow_build, rebuild, no_cache, system_site_packages;
	bool pre, self_contained;
	uint64_t timeout_ms; /* 0: as configured */
};

/* Where packages are named; not rows of `env warm`. AT(field) is the offset of that field of a
 * struct env_options in the table's own structure. FILES and PACKAGES are the kinds that the
 * command takes: `create` can't send files of this host to the daemon. */
#define ENV_SOURCE_ROWS(AT, FILES, PACKAGES)                                                       \
	{ 'r', "requirements", ARG_LIST, AT(requirement_files), "FILE",                            \
		"with the packages of this file: " FILES "; repeatable", NULL, 0, 0 },             \
		{ 0, "extra", ARG_LIST, AT(extras), "NAME",                                        \
			"with this extra of the project; repeatable", NULL, 0, 0 },                \
		{ 0, "group", ARG_LIST, AT(groups), "NAME",                                        \
			"with this dependency group of the project; repeatable", NULL, 0, 0 },     \
	{                                                                                          \
		0, "pip", ARG_LIST, AT(pip), "PKG",                                                \
			"with this package, e.g. " PACKAGES "; repeatable", NULL, 0, 0             \
	}
#define ENV_FILES "requirements, pyproject.toml, uv.lock, pylock.toml"
#define ENV_PACKAGES "'requests>=2.31', ./pkg.whl or ./project"
#define ENV_FIND_LINKS "also look for wheels in this directory or page; repeatable"
/* What chooses between versions of them. */
#define ENV_CHOICE_ROWS(AT, FIND_LINKS)                                                            \
	{ 'c', "constraint", ARG_LIST, AT(constraint_files), "FILE",                               \
		"limit versions by this constraints file; repeatable", NULL, 0, 0 },               \
		{ 0, "constraint-line", ARG_LIST, AT(constraint_lines), "SPEC",                    \
			"one constraint, e.g. 'urllib3<2'; repeatable", NULL, 0, 0 },              \
		{ 0, "torch-backend", ARG_TEXT, AT(torch_backend), "NAME",                         \
			"PyTorch for cpu, cu126, ... or auto: see carrel-env(1)", NULL, 0, 0 },    \
		{ 0, "find-links", ARG_LIST, AT(find_links), "DIR|URL", FIND_LINKS, NULL, 0, 0 },  \
	{                                                                                          \
		0, "pre", ARG_FLAG, AT(pre), NULL, "allow pre-releases", NULL, 0, 0                \
	}
#define ENV_ALLOW_BUILD_ROW(OFFSET)                                                                \
	{                                                                                          \
		0, "allow-build", ARG_FLAG, OFFSET, NULL,                                          \
			"build packages that have no wheel, in a sandbox without network", NULL,   \
			0, 0                                                                       \
	}
#define ENV_BUILD_ROWS(AT)                                                                         \
	{ 0, "python", ARG_TEXT, AT(python), "V",                                                  \
		"the interpreter: a version (3.12) or a path (default: /usr/bin/python3)", NULL,   \
		0, 0 },                                                                            \
		{ 0, "index", ARG_TEXT, AT(index), "URL",                                          \
			"the package index (default: pip's and uv's own settings)", NULL, 0, 0 },  \
		{ 0, "extra-index", ARG_LIST, AT(extra_indexes), "URL",                            \
			"a further index; repeatable", NULL, 0, 0 },                               \
		{ 0, "trusted-host", ARG_LIST, AT(trusted_hosts), "HOST",                          \
			"don't check the certificate of this host; repeatable", NULL, 0, 0 },      \
		{ 0, "require-hashes", ARG_FLAG, AT(require_hashes), NULL,                         \
			"every requirement must have a hash", NULL, 0, 0 },                        \
		ENV_ALLOW_BUILD_ROW(AT(allow_build)),                                              \
		{ 0, "editable", ARG_LIST, AT(editables), "PATH",                                  \
			"a project on this host, imported from its directory; repeatable", NULL,   \
			0, 0 },                                                                    \
		{ 0, "system-site-packages", ARG_FLAG, AT(system_site_packages), NULL,             \
			"also use the packages installed for that Python", NULL, 0, 0 },           \
		{ 0, "rebuild", ARG_FLAG, AT(rebuild), NULL, "build it again even if it exists",   \
			NULL, 0, 0 },                                                              \
		{ 0, "no-cache", ARG_FLAG, AT(no_cache), NULL,                                     \
			"resolve again, and reuse only packages", NULL, 0, 0 },                    \
	{                                                                                          \
		0, "timeout", ARG_DURATION, AT(timeout_ms), "TIME",                                \
			"stop after this time (default 300s)", NULL, 1, 0                          \
	}

/* Whether any of them was given. */
bool env_options_are_given(const struct env_options *options);
/* Checks them, makes paths absolute and fills *request; texts stay those of the options or live in
 * the arena. ERR_INVALID; ERR_NOT_FOUND: an --editable that isn't there. */
int env_options_fill(const struct env_options *options, const char *package_id, struct arena *arena,
	struct env_request *request, struct error *err);
/* Appends the words that give these options again. */
void env_options_print(const struct env_options *options, struct arena *arena, text_list *words);
/* The projects that the command line names may be shown to sandboxes: see home_vouch. */
int env_options_vouch(
	const struct env_request *request, const struct home *home, struct error *err);
