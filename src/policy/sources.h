/* sources.h -- sources.json: what an agent may install, reach, clone and run. Pure.
 * 1. Everything in the file is understood or the file is an error that names its line and key.
 * 2. A section that is missing restricts nothing. In a section that is there, a package manager,
 * domain, remote or language that isn't listed is refused.
 * 3. `struct sources` holds numbers and lists for the enforcer as well: what a command line doesn't
 * say (the packages of a requirements file, dependencies, sizes) is checked where it is known, with
 * the same functions. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

#define SOURCES_MAX ((size_t)4 << 20) /* bytes of a file */
#define SOURCES_LIST_MAX 16384	      /* entries of a list: more take too long to be compiled */

struct sources_registry {
	const char *name; /* or NULL */
	const char *url;  /* as written; https://host[:port]/path */
	bool is_trusted;
};
struct sources_manager {
	const char *name; /* "pip", "npm", "conda" … as written */
	bool is_enabled;
	VEC(struct sources_registry) registries;
	bool has_registries;	    /* the key is there: others are refused */
	uint64_t max_install_bytes; /* 0: no limit */
	struct map blocked; /* by names; of Python normalised (PEP 503), else in lower case */
};
struct sources {
	const char *agent_type; /* or NULL */

	bool has_managers; /* the key "package_managers" is there */
	VEC(struct sources_manager) managers;

	bool has_web, web_is_enabled; /* "web_access" */
	text_list allowed_domains;    /* host, *.host or *, in lower case */
	text_list blocked_domains;

	bool has_git, git_is_enabled; /* "git" */
	bool has_remotes;
	text_list allowed_remotes; /* URLs; * matches any text */
	uint64_t max_clone_bytes;  /* 0: no limit */

	bool has_languages;			     /* "runtime.languages" */
	text_list languages;			     /* "python3.11", "bash" */
	pair_list interpreters;			     /* "python" to "/usr/bin/python3" */
	uint64_t max_execution_ms, max_memory_bytes; /* 0: no limit */
};

/* name: of the file, for errors ("sources.json:12: package_managers.pip: …"), or NULL. ERR_INVALID,
 * or ERR_LIMIT: too large. */
int sources_parse(const char *name, struct str text, struct arena *arena, struct sources *sources,
	struct error *err);

/* The entry for a program that installs packages: "pip" for pip3 and uv, "npm" for npx, bun, pnpm
 * and yarn unless those have entries of their own. NULL: not listed. */
const struct sources_manager *sources_find_manager(
	const struct sources *sources, const char *program);
/* Each of these is 0, or ERR_DENIED with a text that names the object and the key of the file that
 * refuses it. With no section they are 0. */
int sources_check_manager(const struct sources *sources, const char *program, struct error *err);
/* A package by its name, in any spelling, without a version. */
int sources_check_package(
	const struct sources *sources, const char *program, const char *package, struct error *err);
int sources_check_registry(
	const struct sources *sources, const char *program, const char *url, struct error *err);
/* Whether the address of an index is that of `registry`, or below it. */
bool sources_url_is_beneath(const char *url, const char *registry);
/* A host name or address as a client has it, without its port. */
int sources_check_domain(const struct sources *sources, const char *host, struct error *err);
/* A URL, or host:path and user@host:path as git takes them. Paths of this machine are 0. */
int sources_check_remote(const struct sources *sources, const char *remote, struct error *err);
/* A program by its name or path. Programs that run no language of their own are 0. */
int sources_check_program(const struct sources *sources, const char *program, struct error *err);
