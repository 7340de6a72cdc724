#include "envs/python/base.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "envs/python/internal.h"

/* As venv's own, for shells that source it. */
static const char activate[] = "# Source it: . /env/bin/activate\n"
			       "deactivate() {\n"
			       "\tif [ -n \"${_OLD_VIRTUAL_PATH:-}\" ]; then\n"
			       "\t\tPATH=$_OLD_VIRTUAL_PATH\n"
			       "\t\texport PATH\n"
			       "\t\tunset _OLD_VIRTUAL_PATH\n"
			       "\tfi\n"
			       "\thash -r 2>/dev/null\n"
			       "\tunset VIRTUAL_ENV\n"
			       "\tif [ \"${1:-}\" != nondestructive ]; then\n"
			       "\t\tunset -f deactivate\n"
			       "\tfi\n"
			       "}\n"
			       "deactivate nondestructive\n"
			       "VIRTUAL_ENV=/env\n"
			       "export VIRTUAL_ENV\n"
			       "_OLD_VIRTUAL_PATH=$PATH\n"
			       "PATH=/env/bin:$PATH\n"
			       "export PATH\n"
			       "unset PYTHONHOME\n"
			       "hash -r 2>/dev/null\n";

const char *interpreter_base_key(
	struct arena *arena, const struct interpreter *python, bool system_site_packages)
{
	return arena_printf(arena, "python 1 %s %s %s %s", python->identity, python->version,
		python->tag, system_site_packages ? "system-site-packages" : "alone");
}

static int put_directories(int dir, const char *minor, struct error *err)
{
	char library[32], packages[64];
	str_format(library, sizeof library, "lib/python%s", minor);
	str_format(packages, sizeof packages, "lib/python%s/site-packages", minor);
	const char *const paths[] = { "bin", "include", "lib", library, packages };
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (mkdirat(dir, paths[i], 0755) < 0)
			return fail_errno(err, "make %s", paths[i]);
	return 0;
}

int interpreter_base_tree(
	int dir, const struct interpreter *python, bool system_site_packages, struct error *err)
{
	char versioned[32], config[2 * 4096 + 256];
	const char *slash = strrchr(python->path, '/');
	int directory = slash > python->path ? (int)(slash - python->path) : 1;
	str_format(versioned, sizeof versioned, "bin/python%s", python->minor);
	if (!str_format(config, sizeof config,
		    "home = %.*s\ninclude-system-site-packages = %s\nversion = %s\n"
		    "executable = %s\n",
		    directory, python->path, system_site_packages ? "true" : "false",
		    python->version, python->path))
		return fail(err, ERR_LIMIT, "the path of Python '%s' is too long", python->path);
	if (put_directories(dir, python->minor, err) < 0)
		return -1;
	if (file_create(dir, "pyvenv.cfg", 0644, str_from(config)) < 0 ||
		file_create(dir, "bin/activate", 0644, str_from(activate)) < 0)
		return fail_errno(err, "write pyvenv.cfg and bin/activate");
	if (symlinkat(python->path, dir, "bin/python") < 0 ||
		symlinkat("python", dir, "bin/python3") < 0 ||
		symlinkat("python", dir, versioned) < 0 || symlinkat("lib", dir, "lib64") < 0)
		return fail_errno(err, "link to %s", python->path);
	return 0;
}

/* -- the kind -- */

static int check(const struct env_meta *meta, struct error *err)
{
	struct stat st;
	if (stat(meta->python, &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	return fail_hint(err, ERR_NOT_FOUND, "install it again, or build with another --python",
		"environment '%s' needs Python %s at '%s', which is missing", meta->name,
		meta->python_version, meta->python);
}

static int list_paths(const struct home *home, const struct env_meta *meta, struct arena *arena,
	env_paths *paths, struct error *err)
{
	if (meta->python_prefix) {
		if (interpreter_check_prefix(home, meta->python, meta->python_prefix, arena, err))
			return error_context(err, "environment '%s'", meta->name);
		vec_push(arena, paths,
			(struct env_path){ meta->python_prefix, "the interpreter's", NULL });
	}
	for (size_t i = 0; i < meta->editables.count; i++) {
		const char *path = meta->editables.items[i];
		if (!home_is_vouched(home, path))
			return fail_hint(err, ERR_DENIED, "build it again with --editable",
				"environment '%s' uses '%s', which root has not approved with "
				"--editable",
				meta->name, path);
		vec_push(arena, paths, (struct env_path){ path, "the editable project", NULL });
	}
	return 0;
}

static const char *const variables[] = { "VIRTUAL_ENV=/env", NULL };
const struct env_kind env_python = { .row = &env_kind_rows[ENV_KIND_PYTHON],
	.target = "/env",
	.part = &workspace_parts[PART_PYTHON],
	.root_layer = LAYER_ROOT_PYTHON,
	.programs = "bin",
	.has_interpreter = true,
	.variables = variables,
	.command = "python",
	.command_alias = "python3",
	.check = check,
	.list_paths = list_paths,
	.settle = python_upper_settle,
	.restore = python_upper_restore };
