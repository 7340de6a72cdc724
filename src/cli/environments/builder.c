/* carrel-build: environments are built and verified. */
#include <unistd.h>
#include "base/fd.h"
#include "envs/builder/builder.h"
#include "cli/environments/env.h"
#include "envs/builder/progress.h"
#include "envs/registries.h"

#define auto_build_site __attribute__((cleanup(build_site_done)))

static int run_build(struct command *command, struct error *err)
{
	const struct options *options = &command->options;
	struct env_wanted *wanted = arena_alloc(&command->arena, sizeof *wanted);
	auto_build_site struct build_site site = { 0 };
	struct env_meta meta;
	struct env_outcome outcome;
	bool is_silent = command->json || options->events || options->quiet;
	if (cli_open_store(command, err))
		return -1;
	build_site_init(&site, &command->store,
		is_silent ? PROGRESS_NONE : progress_kind_for(STDERR_FILENO));
	if (options->build_timeout_ms)
		command->store.config.install_timeout_ms = options->build_timeout_ms;
	if (env_prepare(command, options, command->operands.items[0], wanted, err))
		return -1;
	site.venv = wanted->name;
	site.tells_phases = command->json;
	if (command->json && options->events) /* whoever reads them may end before the build */
		build_ignore_closed_pipes();
	int found = env_build(&site.builder, wanted, &command->arena, &meta, &outcome.was_there,
		&command->problem, err);
	if (found < 0)
		return -1;
	outcome.is_built = found == 0;
	progress_finish(&site.shown);
	env_print_built(command, &meta, &outcome);
	return 0;
}

struct verdict {
	const char *name; /* of the environment, or as typed if it doesn't exist */
	env_findings findings;
	bool is_repaired, has_failed; /* has_failed: the error says why */
	struct error err;
	struct build_problem problem;
};
typedef VEC(struct verdict) verdicts;

static void print_verdict_json(struct json *j, const struct verdict *verdict)
{
	json_object(j, NULL);
	json_text(j, "name", verdict->name);
	json_bool(j, "ok",
		!verdict->has_failed && (!verdict->findings.count || verdict->is_repaired));
	json_array(j, "findings");
	for (size_t i = 0; i < verdict->findings.count; i++) {
		const struct env_finding *finding = &verdict->findings.items[i];
		json_object(j, NULL);
		json_text(j, "layer", finding->layer);
		json_text(j, "package", finding->package);
		json_text(j, "path", finding->path);
		json_text(j, "what", finding->what);
		json_end(j);
	}
	json_end(j);
	json_bool(j, "repaired", verdict->is_repaired);
	if (verdict->has_failed)
		cli_print_error(j, "error", &verdict->err, &verdict->problem);
	json_end(j);
}

static void print_verdict(struct buf *out, const struct verdict *verdict)
{
	size_t count = verdict->findings.count;
	for (size_t i = 0; i < count; i++) {
		const struct env_finding *finding = &verdict->findings.items[i];
		const char *package = finding->package ? finding->package : "";
		const char *path = finding->path ? finding->path : "";
		char line[4096];
		buf_printf(out, "%s: %s%s%s%s", verdict->name, package, package[0] ? ": " : "",
			path, path[0] ? ": " : "");
		str_printable(line, sizeof line, str_from(finding->what));
		buf_printf(out, "%s\n", line);
	}
	if (verdict->has_failed)
		return;
	if (!count)
		buf_printf(out, "%s: ok\n", verdict->name);
	else if (verdict->is_repaired)
		buf_printf(out, "%s: repaired\n", verdict->name);
}

/* Those that were named, or all there are. */
static int find_names(const struct env_store *store, const text_list *asked, struct arena *arena,
	text_list *names, struct error *err)
{
	env_rows rows = { 0 };
	if (asked->count) {
		*names = *asked;
		return 0;
	}
	if (env_list(store, arena, &rows, err))
		return -1;
	for (size_t i = 0; i < rows.count; i++)
		vec_push(arena, names, rows.items[i].meta.name);
	return 0;
}

static struct verdict verify_one(
	struct build_site *site, const char *asked, bool repair, struct arena *arena)
{
	struct verdict verdict = { .name = asked, .problem = { .failure = BUILD_FAILURE_COUNT } };
	struct env_meta meta;
	verdict.has_failed =
		env_resolve(site->store, asked, arena, &verdict.name, &verdict.err) ||
		env_verify(&site->builder, verdict.name, arena, &verdict.findings, &verdict.err);
	build_begins();
	if (verdict.has_failed || !verdict.findings.count || !repair)
		return verdict;
	verdict.is_repaired = !env_repair(&site->builder, verdict.name, &verdict.findings, arena,
		&meta, &verdict.problem, &verdict.err);
	verdict.has_failed = !verdict.is_repaired;
	return verdict;
}

/* Nothing could be looked at: that is the error of the command, when it is about one. */
static bool is_unseen(const struct verdict *verdict)
{
	return verdict->has_failed && !verdict->findings.count;
}

static int tell_verdict(struct build_site *site, const struct verdict *verdict, struct error *err)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	print_verdict(&out, verdict);
	progress_clear(&site->shown);
	if (cli_print(&out, err))
		return -1;
	if (verdict->has_failed)
		cli_fail(&verdict->err, false, NULL);
	return 0;
}

/* One that can't be looked at or repaired keeps none of the others from it. is_told: each verdict
 * is printed when it is known. */
static int verify_all(struct build_site *site, const text_list *asked, bool repair, bool is_told,
	struct arena *arena, verdicts *all, struct error *err)
{
	text_list names = { 0 };
	env_sweep(site->store);
	if (find_names(site->store, asked, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct verdict verdict = verify_one(site, names.items[i], repair, arena);
		/* It may have failed by that. */
		if (build_is_interrupted())
			return fail(err, ERR_CANCELED, "env verify was interrupted");
		vec_push(arena, all, verdict);
		if (is_told && !(asked->count == 1 && is_unseen(&verdict)) &&
			tell_verdict(site, &verdict, err))
			return -1;
	}
	return 0;
}

static void print_all_json(const verdicts *all, bool is_single, struct json *j)
{
	if (!is_single)
		json_array(j, NULL);
	for (size_t i = 0; i < all->count; i++)
		print_verdict_json(j, &all->items[i]);
	if (!is_single)
		json_end(j);
}

/* 1 when damage stays, or something wasn't looked at; 125 when nothing was. */
static int finish_verify(struct command *command, const verdicts *all, struct error *err)
{
	bool is_single = command->operands.count == 1;
	size_t bad = 0, unseen = 0;
	for (size_t i = 0; i < all->count; i++) {
		const struct verdict *verdict = &all->items[i];
		bad += verdict->has_failed || (verdict->findings.count && !verdict->is_repaired);
		unseen += is_unseen(verdict);
	}
	if (is_single && unseen) {
		*err = all->items[0].err;
		command->problem = all->items[0].problem;
		return -1;
	}
	if (command->json)
		print_all_json(all, is_single, &command->value);
	return unseen && unseen == all->count ? 125 : bad > 0;
}

static int run_verify(struct command *command, struct error *err)
{
	auto_build_site struct build_site site = { 0 };
	verdicts all = { 0 };
	enum progress_kind kind = command->json ? PROGRESS_NONE : progress_kind_for(STDERR_FILENO);
	if (cli_open_store(command, err))
		return -1;
	build_site_init(
		&site, &command->store, kind == PROGRESS_BAR ? PROGRESS_BAR : PROGRESS_NONE);
	if (verify_all(&site, &command->operands, command->options.repair, !command->json,
		    &command->arena, &all, err))
		return -1;
	return finish_verify(command, &all, err);
}

static void print_list(struct command *command, const char *key, const text_list *texts)
{
	if (command->json)
		json_array(&command->value, key);
	for (size_t i = 0; i < texts->count; i++)
		if (command->json)
			json_text(&command->value, NULL, texts->items[i]);
		else
			buf_printf(&command->out, "%s\n", texts->items[i]);
	if (command->json)
		json_end(&command->value);
}

static int run_registries(struct command *command, struct error *err)
{
	auto_build_site struct build_site site = { 0 };
	struct registries_found found;
	if (cli_open_store(command, err))
		return -1;
	build_site_init(&site, &command->store, PROGRESS_NONE);
	if (registries_find(&site.builder, &command->arena, &found, err))
		return -1;
	if (command->json)
		json_object(&command->value, NULL);
	print_list(command, "indexes", &found.indexes);
	print_list(command, "hosts", &found.hosts);
	print_list(command, "variables", &found.variables);
	if (command->json)
		json_end(&command->value);
	return 0;
}

static int run_wheels(struct command *command, struct error *err)
{
	const char *name, *directory = command->operands.items[1];
	bool is_silent = command->json || command->options.quiet;
	auto_build_site struct build_site site = { 0 };
	size_t count;
	if (cli_open_store(command, err) || env_resolve(&command->store, command->operands.items[0],
						    &command->arena, &name, err))
		return -1;
	build_site_init(&site, &command->store,
		is_silent ? PROGRESS_NONE : progress_kind_for(STDERR_FILENO));
	site.venv = name;
	if (env_fetch_wheels(&site.builder, name, directory, &command->arena, &command->problem,
		    &count, err))
		return error_context(err, "fetch the wheels of '%s'", name);
	progress_finish(&site.shown);
	if (command->json) {
		json_object(&command->value, NULL);
		json_text(&command->value, "name", name);
		json_text(&command->value, "directory", directory);
		json_u64(&command->value, "wheels", count);
		json_end(&command->value);
	} else {
		buf_printf(&command->out, "%s: %zu wheel%s\n", directory, count,
			count == 1 ? "" : "s");
	}
	return 0;
}

int builder_main(int argc, char **argv)
{
	const struct {
		const char *word;
		struct arg_spec spec;
		int (*run)(struct command *command, struct error *err);
	} commands[] = { { "build", env_build_spec, run_build },
		{ "verify", env_verify_spec, run_verify },
		{ "registries", env_registries_spec, run_registries },
		{ "wheels", env_wheels_spec, run_wheels } };
	struct error err;
	if (fd_sanitize_standard(&err))
		return cli_fail(&err, false, NULL);
	build_catch_signals();
	for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(argv[1], commands[i].word)) {
			struct arg_spec spec = commands[i].spec;
			spec.run = commands[i].run;
			return cli_call(&spec, argc - 1, argv + 1);
		}
	if (argc > 1 && !strcmp(argv[1], "--version")) {
		printf("carrel-build %s\n", CARREL_VERSION);
		return fflush(stdout) ? 125 : 0;
	}
	fail_hint(&err, ERR_INVALID, "carrel env --help lists the commands",
		"carrel-build is started by carrel, with 'build', 'verify', 'wheels' or "
		"'registries'");
	return cli_fail(&err, false, NULL);
}
