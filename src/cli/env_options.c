#include "cli/env_options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/path.h"

bool env_options_are_given(const struct env_options *options)
{
	return options->requirement_files.count || options->constraint_files.count ||
	       options->constraint_lines.count || options->extras.count || options->groups.count ||
	       options->find_links.count || options->torch_backend || options->pre ||
	       options->self_contained || options->python || options->index || options->pip.count ||
	       options->extra_indexes.count || options->trusted_hosts.count ||
	       options->editables.count || options->require_hashes || options->allow_build ||
	       options->rebuild || options->no_cache || options->system_site_packages;
}

static int check_text(const char *option, const char *value, struct error *err)
{
	if (!value || value[0])
		return 0;
	return fail(err, ERR_INVALID, "--%s: the value is empty", option);
}

static int check_texts(const struct env_options *options, struct error *err)
{
	const struct {
		const char *option;
		const text_list *values;
	} lists[] = { { "requirements", &options->requirement_files },
		{ "constraint", &options->constraint_files },
		{ "constraint-line", &options->constraint_lines }, { "extra", &options->extras },
		{ "group", &options->groups }, { "find-links", &options->find_links },
		{ "pip", &options->pip }, { "extra-index", &options->extra_indexes },
		{ "trusted-host", &options->trusted_hosts }, { "editable", &options->editables } };
	if (check_text("python", options->python, err) || check_text("index", options->index, err))
		return -1;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		for (size_t k = 0; k < lists[i].values->count; k++)
			if (check_text(lists[i].option, lists[i].values->items[k], err))
				return -1;
	return 0;
}

/* Which names there are is uv's to say. */
static int check_torch(const char *name, struct error *err)
{
	if (!name ||
		(*name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.") == strlen(name)))
		return 0;
	return fail_hint(err, ERR_INVALID, "cpu, auto, cu126, ...",
		"--torch-backend '%s' is not a backend", name);
}

static const char *absolute(struct arena *arena, const char *path, struct error *err)
{
	char here[PATH_MAX];
	if (path_is_absolute(path))
		return path_normalize(arena, "/", path);
	if (!getcwd(here, sizeof here)) {
		fail_errno(err, "find the current directory");
		return NULL;
	}
	return path_normalize(arena, here, path);
}

static int add_files(
	const text_list *paths, struct arena *arena, text_list *files, struct error *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = absolute(arena, paths->items[i], err);
		if (!path)
			return -1;
		vec_push(arena, files, path);
	}
	return 0;
}

static int add_link(
	struct env_request *request, const char *link, struct arena *arena, struct error *err)
{
	char real[PATH_MAX];
	struct stat st;
	if (!strncmp(link, "http://", 7) || !strncmp(link, "https://", 8)) {
		if (strpbrk(link, ", \t\r\n"))
			return fail(
				err, ERR_INVALID, "--find-links: expected one directory or URL");
		vec_push(arena, &request->find_links, link);
		return 0;
	}
	if (!realpath(link, real) || stat(real, &st))
		return fail_errno(err, "--find-links '%s'", link);
	if (!S_ISDIR(st.st_mode))
		return fail(err, ERR_INVALID, "--find-links '%s' is not a directory", link);
	vec_push(arena, &request->find_links, arena_text(arena, real));
	return 0;
}

static int add_editable(
	struct env_request *request, const char *path, struct arena *arena, struct error *err)
{
	char real[PATH_MAX];
	struct stat st;
	if (!realpath(path, real) || stat(real, &st))
		return fail_errno(err, "--editable '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return fail(err, ERR_INVALID, "--editable '%s' is not a directory", path);
	vec_push(arena, &request->editables, arena_text(arena, real));
	return 0;
}

int env_options_fill(const struct env_options *options, const char *package_id, struct arena *arena,
	struct env_request *request, struct error *err)
{
	struct env_request made = {
		.package_id = package_id,
		.python = options->python,
		.index = { .index = options->index },
		.require_hashes = options->require_hashes,
		.allow_build = options->allow_build,
		.rebuild = options->rebuild,
		.no_cache = options->no_cache,
		.system_site_packages = options->system_site_packages,
		.torch_backend = options->torch_backend,
		.is_pre = options->pre,
		.is_self_contained = options->self_contained,
	};
	text_list files = { 0 };
	if (!env_package_id_is_valid(package_id))
		return fail_hint(err, ERR_INVALID,
			"letters, digits and @._- (not . or - at the beginning), at most 100 "
			"characters",
			"invalid name of an environment '%s'", package_id);
	if (check_texts(options, err) || check_torch(options->torch_backend, err))
		return -1;
	if (add_files(&options->requirement_files, arena, &files, err))
		return -1;
	for (size_t i = 0; i < files.count; i++)
		vec_push(arena, &made.requirement_files, files.items[i]);
	files.count = 0;
	if (add_files(&options->constraint_files, arena, &files, err))
		return -1;
	for (size_t i = 0; i < files.count; i++)
		vec_push(arena, &made.constraint_files, files.items[i]);
	for (size_t i = 0; i < options->constraint_lines.count; i++)
		vec_push(arena, &made.constraint_lines, options->constraint_lines.items[i]);
	for (size_t i = 0; i < options->extras.count; i++)
		vec_push(arena, &made.extras, options->extras.items[i]);
	for (size_t i = 0; i < options->groups.count; i++)
		vec_push(arena, &made.groups, options->groups.items[i]);
	for (size_t i = 0; i < options->pip.count; i++) {
		const char *word = options->pip.items[i];
		if (options->self_contained || !local_is_path(word))
			vec_push(arena, &made.pip, word);
		else
			vec_push(arena, &made.locals, word);
	}
	for (size_t i = 0; i < options->find_links.count; i++)
		if (add_link(&made, options->find_links.items[i], arena, err))
			return -1;
	for (size_t i = 0; i < options->extra_indexes.count; i++)
		vec_push(arena, &made.index.extra, options->extra_indexes.items[i]);
	for (size_t i = 0; i < options->trusted_hosts.count; i++)
		vec_push(arena, &made.index.trusted_hosts, options->trusted_hosts.items[i]);
	for (size_t i = 0; i < options->editables.count; i++)
		if (add_editable(&made, options->editables.items[i], arena, err))
			return -1;
	*request = made;
	return 0;
}

static void print_value(struct arena *arena, text_list *words, const char *name, const char *value)
{
	if (value)
		vec_push(arena, words, arena_printf(arena, "--%s=%s", name, value));
}

static void print_list(
	struct arena *arena, text_list *words, const char *name, const text_list *values)
{
	for (size_t i = 0; i < values->count; i++)
		print_value(arena, words, name, values->items[i]);
}

static void print_flag(struct arena *arena, text_list *words, const char *flag, bool is_set)
{
	if (is_set)
		vec_push(arena, words, flag);
}

void env_options_print(const struct env_options *options, struct arena *arena, text_list *words)
{
	print_list(arena, words, "requirements", &options->requirement_files);
	print_list(arena, words, "constraint", &options->constraint_files);
	print_list(arena, words, "constraint-line", &options->constraint_lines);
	print_list(arena, words, "extra", &options->extras);
	print_list(arena, words, "group", &options->groups);
	print_list(arena, words, "find-links", &options->find_links);
	print_flag(arena, words, "--pre", options->pre);
	print_flag(arena, words, "--self-contained", options->self_contained);
	print_list(arena, words, "pip", &options->pip);
	print_value(arena, words, "torch-backend", options->torch_backend);
	print_value(arena, words, "python", options->python);
	print_value(arena, words, "index", options->index);
	print_list(arena, words, "extra-index", &options->extra_indexes);
	print_list(arena, words, "trusted-host", &options->trusted_hosts);
	print_flag(arena, words, "--require-hashes", options->require_hashes);
	print_flag(arena, words, "--allow-build", options->allow_build);
	print_list(arena, words, "editable", &options->editables);
	print_flag(arena, words, "--system-site-packages", options->system_site_packages);
	print_flag(arena, words, "--rebuild", options->rebuild);
	print_flag(arena, words, "--no-cache", options->no_cache);
	if (options->timeout_ms)
		print_value(arena, words, "timeout",
			arena_printf(arena, "%llums", (unsigned long long)options->timeout_ms));
}

int env_options_vouch(const struct env_request *request, const struct home *home, struct error *err)
{
	for (size_t i = 0; i < request->editables.count; i++)
		if (home_vouch(home, request->editables.items[i], err))
			return -1;
	return 0;
}
