/* package_names.h -- which packages, addresses and further files a file of a project names, for a
 * judge of what may be installed. Pure.
 * 1. It errs on the side of too many: dependencies of every platform, group and extra are named.
 * 2. A file that is not understood is an error, never a shorter list. What a file that is
 * understood can't say (a dependency that is a directory, dependencies that are computed) is told
 * in `unknown`. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

enum package_file {
	PACKAGE_FILE_REQUIREMENTS, /* of pip and uv, constraints too */
	PACKAGE_FILE_PYPROJECT,	   /* pyproject.toml: PEP 621, PEP 735, uv, Poetry, PDM */
	PACKAGE_FILE_PYTHON_LOCK,  /* uv.lock, poetry.lock, pdm.lock, pylock.toml */
	PACKAGE_FILE_PIPFILE,
	PACKAGE_FILE_PIPFILE_LOCK,
	PACKAGE_FILE_PACKAGE_JSON,
	PACKAGE_FILE_NPM_LOCK, /* package-lock.json, npm-shrinkwrap.json */
	PACKAGE_FILE_BUN_LOCK,
	PACKAGE_FILE_YARN_LOCK, /* of both kinds of yarn */
	PACKAGE_FILE_PNPM_LOCK,
	PACKAGE_FILE_SETTINGS, /* .npmrc, .yarnrc, .yarnrc.yml: registries alone */
	PACKAGE_FILE_TOML,     /* uv.toml, bunfig.toml: registries alone */
	PACKAGE_FILE_PIP_CONF, /* pip.conf: indexes alone */
	PACKAGE_FILE_SCRIPT,   /* a script of Python, which may list packages itself (PEP 723) */
	PACKAGE_FILE_COUNT
};
struct package_names {
	text_list names;     /* as written, without versions */
	text_list urls;	     /* of indexes, registries and archives */
	text_list remotes;   /* of git */
	text_list files;     /* requirements and constraints that it includes, as written */
	const char *unknown; /* why packages may be installed that aren't named; or NULL */
};
#define PACKAGE_NAMES_MAX 100000 /* names, addresses and files */

/* ERR_INVALID says what isn't understood; ERR_LIMIT: too large. */
int package_names_read(enum package_file kind, struct str text, struct arena *arena,
	struct package_names *names, struct error *err);
