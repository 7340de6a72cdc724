/* carrel package: agent packages, made and shown on this host, and those of the blob store. */
#include "cli/agents/package.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/environments/env.h"
#include "cli/role.h"
#include "cli/plain.h"
#include "cli/workspaces/tree.h"
#include "model/nouns/archive.h"

#define SCRATCH "/var/tmp"

/* Lets the role read `input`; a package of `format` goes to `output` (-1: nothing is written), with
 * the environment in the tar `wheels` (-1: none). */
static int convert(struct command *command, int input, int output, const char *format, int wheels,
	const struct json_value **value, struct error *err)
{
	auto_close int made = wheels < 0 ? -1 : memfd_create("environment", MFD_CLOEXEC);
	if (wheels >= 0 && made < 0)
		return fail_errno(err, "make a file for the environment");
	const struct role_settings settings = { .package_format = format,
		.has_environment = wheels >= 0 };
	const int more[] = { output, wheels, made };
	const struct role_question question = { .name = "carrel-package",
		.failure = "carreld could not read the package",
		.settings = &settings,
		.input = input,
		.more = more,
		.more_count = output < 0   ? 0
			      : wheels < 0 ? 1
					   : 3 };
	return role_ask(&question, &command->arena, value, err);
}

/* wheels: a directory of env_run_wheels that goes in as its environment, or -1. */
static int pack(struct command *command, int dir, int wheels, const char *format,
	struct package_read *package, struct error *err)
{
	struct pack packing, environment = { .archive = -1 };
	struct tree_note left_out;
	struct error why;
	auto_close int made = memfd_create("package", MFD_CLOEXEC);
	if (made < 0)
		return fail_errno(err, "make a file for the package");
	if (pack_begin(&packing, dir, err))
		return -1;
	int failed = wheels >= 0 && pack_begin(&environment, wheels, err);
	bool has_environment = wheels >= 0 && !failed;
	failed = failed || convert(command, packing.archive, made, format, environment.archive,
				   &package->value, err);
	fd_close(&packing.archive);
	fd_close(&environment.archive);
	if (pack_finish(&packing, &left_out, &why) && !failed) {
		*err = why;
		failed = -1;
	}
	if (has_environment && pack_finish(&environment, &left_out, &why) && !failed) {
		*err = why;
		failed = -1;
	}
	package->file = failed ? -1 : take_fd(&made);
	return failed ? -1 : 0;
}

static int read_with(struct command *command, const char *path, int wheels, const char *format,
	struct package_read *package, struct error *err)
{
	unsigned char hash[SHA256_LEN];
	struct stat st;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	*package = (struct package_read){ .file = -1 };
	if (fd < 0 || fstat(fd, &st))
		return fail_errno(err, "open '%s'", path);
	int failed = S_ISDIR(st.st_mode) ? pack(command, fd, wheels, format, package, err)
					 : convert(command, fd, -1, "", -1, &package->value, err);
	if (failed)
		return error_context(err, "%s", path);
	if (!S_ISDIR(st.st_mode))
		package->file = take_fd(&fd);
	package->name = json_member_text(package->value, "name");
	package->version = json_member_text(package->value, "version");
	if (lseek(package->file, 0, SEEK_SET) || file_hash(package->file, hash, &package->size) ||
		lseek(package->file, 0, SEEK_SET)) {
		fd_close(&package->file);
		return fail_errno(err, "read '%s'", path);
	}
	sha256_hex(hash, package->sha256);
	return 0;
}

int package_read(struct command *command, const char *path, const char *format,
	struct package_read *package, struct error *err)
{
	return read_with(command, path, -1, format, package, err);
}

/* ---- with its environment ---- */

/* Its environment is built, as a deployment would, and its wheels are fetched. */
static int fetch_wheels(struct command *command, const struct package_read *package,
	const char *path, const char *directory, struct error *err)
{
	struct options options = { .quiet = true, .format = command->options.format };
	struct env_ensured ensured;
	const char *python = json_member_text(package->value, "python_version");
	const char *id = arena_printf(&command->arena, "%s@%s", package->name, package->version);
	if (!json_member_text(package->value, "requirements"))
		return fail(err, ERR_INVALID,
			"%s has no requirements.txt: there is no environment to "
			"put in",
			path);
	vec_push(&command->arena, &options.env.requirement_files,
		arena_printf(&command->arena, "%s/requirements.txt", path));
	options.env.python = python;
	if (cli_open_store(command, err) || env_ensure(command, &options, id, &ensured, err))
		return -1;
	if (ensured.exit_code)
		return fail(err, ERR_FAILED, "the environment of %s can't be built", path);
	return env_run_wheels(command, ensured.meta.name, directory, err);
}

static int read_prebuilt(struct command *command, const char *path, const char *format,
	struct package_read *package, struct error *err)
{
	char directory[] = SCRATCH "/carrel-package-XXXXXX";
	struct error ignored;
	auto_close int scratch = open(SCRATCH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (package_read(command, path, format, package, err))
		return -1;
	fd_close(&package->file);
	if (scratch < 0 || !mkdtemp(directory))
		return fail_errno(err, "make a directory in '" SCRATCH "'");
	int failed = fetch_wheels(command, package, path, directory, err);
	if (!failed) {
		auto_close int wheels = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		failed = wheels < 0 ? fail_errno(err, "open '%s'", directory)
				    : read_with(command, path, wheels, format, package, err);
	}
	path_remove_tree(scratch, path_basename(directory), &ignored);
	return failed;
}

/* ---- build, show ---- */

static void print_package(
	struct command *command, const struct package_read *package, const char *file)
{
	struct json *j = &command->value;
	const char *surfaces =
		columns_list(&command->arena, json_member(package->value, "surfaces"));
	if (command->json) {
		json_object(j, NULL);
		if (file)
			json_text(j, "file", file);
		json_text(j, "sha256", package->sha256);
		json_u64(j, "package_bytes", package->size);
		for (const struct json_value *one = package->value->first; one; one = one->next)
			json_copy(j, one->key.data, one);
		json_end(j);
		return;
	}
	uint64_t files = 0;
	json_member_u64(package->value, "files", &files);
	if (file)
		buf_printf(&command->out, "file:      %s\n", file);
	buf_printf(&command->out,
		"package:   %s@%s\nsurfaces:  %s\nfiles:     %llu\nsize:      %llu\nsha256:    "
		"%s\n",
		package->name, package->version, surfaces, (unsigned long long)files,
		(unsigned long long)package->size, package->sha256);
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), tail = strlen(end);
	return len >= tail && !strcmp(text + len - tail, end);
}

static int run_build(struct command *command, struct error *err)
{
	const char *file = command->options.file, *dir = command->operands.items[0];
	const char *format = file && ends_with(file, ".tar.gz")	   ? "tar.gz"
			     : file && ends_with(file, ".tar.zst") ? "tar.zst"
								   : "zip";
	struct package_read package;
	struct stat st;
	if (stat(dir, &st))
		return fail_errno(err, "open '%s'", dir);
	if (!S_ISDIR(st.st_mode))
		return fail(err, ERR_INVALID, "'%s' is not a directory", dir);
	if ((command->options.with_env ? read_prebuilt : package_read)(
		    command, dir, format, &package, err))
		return -1;
	auto_close int from = package.file;
	if (!file)
		file = arena_printf(
			&command->arena, "%s@%s" PACKAGE_SUFFIX, package.name, package.version);
	auto_close int out = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (out < 0)
		return fail_errno(err, "write '%s'", file);
	for (uint64_t done = 0; done < package.size;) {
		char piece[65536];
		ssize_t got = fd_read_full(from, piece, sizeof piece);
		if (got <= 0 || fd_write_full(out, piece, (size_t)got) != got) {
			fail_errno(err, "write '%s'", file);
			unlink(file);
			return -1;
		}
		done += (uint64_t)got;
	}
	print_package(command, &package, file);
	return 0;
}

static const struct arg_option build_table[] = {
	{ 'f', "file", ARG_TEXT, AT(file), "FILE",
		"where it is written: .tar.gz, .tar.zst, anything else is a zip (default "
		"NAME@VERSION.apkg)",
		NULL, 1 },
	{ 0, "with-env", ARG_FLAG, AT(with_env), NULL,
		"with the wheels of its requirements, so that a deployment needs no index" },
	{ ARG_FROM(format_rows) },
};
static const struct arg_spec build_spec = {
	.command = "package build",
	.summary = "make an agent package of a directory",
	.usage = "DIR [-f FILE] [--with-env]",
	.about = "Checks agent.yaml, packs the directory, and prints the SHA-256 of the package. "
		 "The same files make the same bytes.",
	ARG_TABLE(build_table),
	.examples = "  carrel package build ./greeter\n",
	.run = run_build,
};

static int run_show(struct command *command, struct error *err)
{
	struct package_read package;
	if (package_read(command, command->operands.items[0], "zip", &package, err))
		return -1;
	fd_close(&package.file);
	print_package(command, &package, NULL);
	return 0;
}

static const struct arg_option show_table[] = { { ARG_FROM(format_rows) } };
static const struct arg_spec show_spec = {
	.command = "package show",
	.summary = "check an agent package, and show what is in it",
	.usage = "FILE",
	.about = "Reads an agent package as a deployment would, and shows what it is.",
	ARG_TABLE(show_table),
	.run = run_show,
};

/* ---- those of the blob store ---- */

static const struct arg_spec ls_spec = {
	.command = "package ls",
	.summary = "list the agent packages of the blob store",
	.about = "Lists the agent packages that were deployed or stored, by name.",
	ARG_TABLE(plain_names_table),
	.run = plain_list,
	.record = &export_record,
	.key = "name",
};

static const struct arg_spec rm_spec = {
	.command = "package rm",
	.summary = "remove agent packages from the blob store",
	.usage = "NAME... [options]",
	.about = "Removes agent packages from the blob store. What was deployed of them stays.",
	REMOTE_OPTIONS,
	.run = plain_remove,
};

static const struct arg_spec *const commands[] = { &build_spec, &show_spec, &ls_spec, &rm_spec,
	NULL };
const struct arg_spec cli_package = {
	.command = "package",
	.summary = "build, show, list and remove agent packages",
	.group = GROUP_AGENTS,
	.about = "Agent packages: what carrel deploy serves.",
	.commands = commands,
};
