/* carrel env: the subcommands that build nothing. */
#include "cli/environments/env.h"
#include "base/clock.h"
#include "cli/columns.h"
#include "cli/removal.h"
#include "cli/environments/env.h"
#include "format/text/quantity.h"
#include "model/nouns/archive.h"

#define LOG_MAX ((size_t)64 << 20)

static void print_members(struct json *j, const struct env_store *store,
	const struct env_meta *meta, bool is_in_use, const char *problem)
{
	auto_buf struct buf path = buf_empty(8192);
	buf_printf(&path, "%s/envs/%s", store->home->path, meta->name);
	json_text(j, "name", meta->name);
	json_text(j, "package_id", meta->package_id);
	json_text(j, "path", path.data);
	json_text(j, "state", problem ? "corrupt" : "ready");
	json_text(j, "requirements_sha256", meta->requirements_sha256);
	json_text(j, "created_at", meta->created_at);
	json_text(j, "last_used_at", meta->last_used_at);
	json_u64(j, "use_count", meta->use_count);
	json_u64(j, "size_bytes", meta->size_bytes);
	json_text(j, "kind", env_kind_row_of(meta)->name);
	json_text(j, "python_version", meta->python_version);
	json_text(j, "python", meta->python);
	if (meta->node_version) {
		json_text(j, "node_version", meta->node_version);
		json_text(j, "node", meta->node);
		json_text(j, "runtime", meta->runtime);
		json_object(j, "tools");
		for (size_t i = 0; i < meta->tools.count; i++)
			json_text(j, meta->tools.items[i].key, meta->tools.items[i].value);
		json_end(j);
	}
	json_object(j, "installed_packages");
	for (size_t i = 0; i < meta->packages.count; i++)
		json_text(j, meta->packages.items[i].key, meta->packages.items[i].value);
	json_end(j);
	json_texts(j, "layers", &meta->layers);
	json_texts(j, "editables", &meta->editables);
	json_texts(j, "indexes", &meta->indexes);
	json_real(j, "build_seconds", meta->build_seconds);
	json_bool(j, "in_use", is_in_use);
	if (problem)
		json_text(j, "problem", problem);
}

void env_print_json(struct json *j, const struct env_store *store, const struct env_meta *meta,
	bool is_in_use, const char *problem, const struct env_outcome *outcome)
{
	json_object(j, NULL);
	print_members(j, store, meta, is_in_use, problem);
	if (outcome) {
		json_bool(j, "cached", outcome->was_there);
		json_bool(j, "built", outcome->is_built);
	}
	json_end(j);
}

static void add_line(struct columns *columns, const struct env_row *row, int64_t now_ms)
{
	const struct env_meta *meta = &row->meta;
	struct arena *arena = columns->arena;
	char size[16], created[32], used[32];
	bool is_read = meta->package_id != NULL;
	quantity_format_size(size, meta->size_bytes);
	columns_format_age(created, meta->created_at, now_ms);
	columns_format_age(used, meta->use_count ? meta->last_used_at : NULL, now_ms);
	const char *version = meta->node_version
				      ? arena_printf(arena, "node %s", meta->node_version)
				      : meta->python_version;
	columns_add(columns,
		(const char *[]){ meta->name, is_read ? version : NULL,
			is_read ? arena_printf(arena, "%zu", meta->packages.count) : NULL,
			is_read ? size : NULL, created, row->is_in_use ? "in use" : used,
			is_read ? arena_printf(arena, "%" PRIu64, meta->use_count) : NULL });
}

/* ---- those of a daemon on another machine: what GET /v1/environments tells ---- */

static const char *format_size(struct arena *arena, const struct json_value *item)
{
	uint64_t bytes;
	char size[16];
	if (!json_member_u64(item, "size_bytes", &bytes))
		return NULL;
	quantity_format_size(size, bytes);
	return arena_text(arena, size);
}

static const char *format_version(struct arena *arena, const struct json_value *item)
{
	const char *node = json_member_text(item, "node_version");
	return node ? arena_printf(arena, "node %s", node)
		    : json_member_text(item, "python_version");
}

static const char *format_age(struct arena *arena, const struct json_value *item, const char *key)
{
	char age[32];
	columns_format_age(age, json_member_text(item, key), clock_now_ms());
	return arena_text(arena, age);
}

static void add_far_line(struct listing *listing, const struct json_value *item)
{
	struct arena *arena = listing->columns.arena;
	const struct json_value *packages = json_member(item, "installed_packages");
	uint64_t uses = 0;
	json_member_u64(item, "use_count", &uses);
	columns_add(&listing->columns,
		(const char *[]){ json_member_text(item, "name"), format_version(arena, item),
			packages ? arena_printf(arena, "%zu", packages->count) : NULL,
			format_size(arena, item), format_age(arena, item, "created_at"),
			json_member_true(item, "in_use") ? "in use"
			: uses				 ? format_age(arena, item, "last_used_at")
							 : NULL,
			arena_printf(arena, "%" PRIu64, uses) });
}

static int list_far(struct command *command, struct error *err)
{
	static const char *const heads[] = { "NAME", "VERSION", "PACKAGES", "SIZE", "CREATED",
		"LAST-USED", "USES" };
	struct listing listing = { .command = command,
		.columns = { .count = 7,
			.numbers = 1 << 2 | 1 << 3 | 1 << 6,
			.arena = &command->arena },
		.add = add_far_line };
	columns_add(&listing.columns, heads);
	return listing_print(&listing, "/v1/environments", err);
}

/* Its full name, or the latest of that package id. */
struct wanted {
	const char *name;
	const struct json_value *found;
};

static void look(void *ctx, const struct json_value *item)
{
	struct wanted *wanted = ctx;
	const char *name = json_member_text(item, "name"),
		   *id = json_member_text(item, "package_id");
	const char *made = json_member_text(item, "created_at");
	const char *before = wanted->found ? json_member_text(wanted->found, "created_at") : NULL;
	bool is_it = name && !strcmp(name, wanted->name);
	if (is_it || (id && !strcmp(id, wanted->name) &&
			     (!before || (made && strcmp(made, before) > 0))))
		wanted->found = item;
}

static void print_far(struct command *command, const struct json_value *item)
{
	static const char *const rows[][2] = { { "name", "name" }, { "package id", "package_id" },
		{ "state", "state" }, { "problem", "problem" }, { "kind", "kind" },
		{ "created", "created_at" }, { "last used", "last_used_at" } };
	struct buf *out = &command->out;
	const struct json_value *packages = json_member(item, "installed_packages");
	const char *version = format_version(&command->arena, item);
	const char *size = format_size(&command->arena, item);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (json_member_text(item, rows[i][1]))
			buf_printf(
				out, "%-13s %s\n", rows[i][0], json_member_text(item, rows[i][1]));
	buf_printf(out, "%-13s %s\n", "version", version ? version : "-");
	buf_printf(out, "%-13s %s\n", "size", size ? size : "-");
	const struct json_value *one = packages ? packages->first : NULL;
	for (bool is_first = true; one; one = one->next, is_first = false)
		if (one->kind == JSON_STRING)
			buf_printf(out, "%-13s %s==%s\n", is_first ? "packages" : "", one->key.data,
				one->string.data);
}

static int show_far(struct command *command, struct error *err)
{
	struct wanted wanted = { .name = command->operands.items[0] };
	if (command->options.log && remote_refuse_far(&command->remote, "env show --log",
					    "run it on that machine", err))
		return -1;
	if (remote_each(&command->remote, "/v1/environments", look, &wanted, err))
		return -1;
	if (!wanted.found)
		return fail_hint(err, ERR_NOT_FOUND, "carrel env ls lists them",
			"there is no environment '%s'", wanted.name);
	if (command->json)
		json_copy(&command->value, NULL, wanted.found);
	else
		print_far(command, wanted.found);
	return 0;
}

/* ---- ls, show ---- */

static int run_ls(struct command *command, struct error *err)
{
	static const char *const heads[] = { "NAME", "VERSION", "PACKAGES", "SIZE", "CREATED",
		"LAST-USED", "USES" };
	struct columns columns = {
		.count = 7, .numbers = 1 << 2 | 1 << 3 | 1 << 6, .arena = &command->arena
	};
	env_rows rows = { 0 };
	if (command->options.exported)
		return listing_print_records(command, &export_record, "name", "/v1/exports", err);
	if (remote_choose(&command->remote, err))
		return -1;
	if (command->remote.is_far)
		return list_far(command, err);
	if (cli_open_store(command, err) || env_list(&command->store, &command->arena, &rows, err))
		return -1;
	if (command->json) {
		json_array(&command->value, NULL);
		for (size_t i = 0; i < rows.count; i++)
			env_print_json(&command->value, &command->store, &rows.items[i].meta,
				rows.items[i].is_in_use, rows.items[i].problem, NULL);
		json_end(&command->value);
		return 0;
	}
	columns_add(&columns, heads);
	for (size_t i = 0; i < rows.count; i++) {
		add_line(&columns, &rows.items[i], clock_now_ms());
		if (rows.items[i].problem)
			cli_say("warning: %s", rows.items[i].problem);
	}
	columns_print(&columns, &command->out);
	return 0;
}

static const struct arg_option stored_table[] = {
	{ 0, "exported", ARG_FLAG, AT(exported), NULL,
		"of the blob store, to which they were exported" },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec ls_spec = {
	.command = "env ls",
	.summary = "list environments",
	.usage = "[--exported] [-o json]",
	.about = "Lists environments: size of their packages (shared packages count for each), "
		 "age, last use and number of uses.",
	ARG_TABLE(stored_table),
	.run = run_ls,
};

static void print_field(struct buf *out, const char *name, const char *value)
{
	if (value)
		buf_printf(out, "%-13s %s\n", name, value);
}

static void print_times(const struct env_meta *meta, struct buf *out)
{
	char age[32];
	int64_t now_ms = clock_now_ms();
	columns_format_age(age, meta->created_at, now_ms);
	buf_printf(out, "%-13s %s (%s)\n", "created", meta->created_at, age);
	if (!meta->use_count) {
		print_field(out, "last used", "never");
		return;
	}
	columns_format_age(age, meta->last_used_at, now_ms);
	buf_printf(out, "%-13s %s (%s), %" PRIu64 " use%s\n", "last used", meta->last_used_at, age,
		meta->use_count, meta->use_count == 1 ? "" : "s");
}

/* What its editable projects are called: their layers lie on top of all others, and say so. One for
 * directories that are only on the path has no version. A layer that can't be read is a problem of
 * the environment, told elsewhere. */
static void find_projects(const struct env_store *store, const struct env_meta *meta,
	struct arena *arena, pair_list *found)
{
	size_t most = meta->editables.count ? meta->editables.count + 1 : 0;
	for (size_t i = 0; i < meta->layers.count && i < most; i++) {
		struct manifest manifest = { 0 };
		struct error unimportant;
		if (!layer_read(&store->layers, meta->layers.items[i], arena, &manifest,
			    &unimportant) &&
			!strcmp(manifest.kind, "python-editable") && manifest.version[0])
			vec_push(arena, found,
				(struct text_pair){ manifest.name, manifest.version });
	}
}

static void print_packages(const struct env_meta *meta, const pair_list *own, struct buf *out)
{
	size_t count = meta->packages.count;
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%-13s %s==%s\n", i ? "" : "packages", meta->packages.items[i].key,
			meta->packages.items[i].value);
	for (size_t i = 0; i < own->count; i++)
		buf_printf(out, "%-13s %s==%s (editable)\n", count + i ? "" : "packages",
			own->items[i].key, own->items[i].value);
}

static void print_text(const struct env_store *store, const struct env_row *row,
	const pair_list *own, struct buf *out)
{
	const struct env_meta *meta = &row->meta;
	char size[16];
	quantity_format_size(size, meta->size_bytes);
	print_field(out, "name", meta->name);
	print_field(out, "package id", meta->package_id);
	buf_printf(out, "%-13s %s/envs/%s\n", "path", store->home->path, meta->name);
	buf_printf(out, "%-13s %s%s\n", "state", row->problem ? "corrupt" : "ready",
		row->is_in_use ? ", in use" : "");
	print_field(out, "problem", row->problem);
	print_field(out, "requirements", meta->requirements_sha256);
	if (meta->node_version)
		buf_printf(out, "%-13s %s, %s; packages by %s\n", "node", meta->node_version,
			meta->node ? meta->node : "of the registry", meta->runtime);
	else
		buf_printf(out, "%-13s %s, %s\n", "python", meta->python_version, meta->python);
	print_times(meta, out);
	buf_printf(out, "%-13s %s in %zu layers, built in %.1fs\n", "size", size,
		meta->layers.count, meta->build_seconds);
	for (size_t i = 0; i < meta->indexes.count; i++)
		print_field(out, meta->node_version ? "registry" : "index", meta->indexes.items[i]);
	for (size_t i = 0; i < meta->editables.count; i++)
		print_field(out, "editable", meta->editables.items[i]);
	print_packages(meta, own, out);
}

static void print_shown(struct json *j, const struct env_store *store, const struct env_row *row,
	const pair_list *own)
{
	json_object(j, NULL);
	print_members(j, store, &row->meta, row->is_in_use, row->problem);
	if (row->meta.editables.count) {
		json_object(j, "editable_packages");
		for (size_t i = 0; i < own->count; i++)
			json_text(j, own->items[i].key, own->items[i].value);
		json_end(j);
	}
	json_end(j);
}

/* The environment as a row; what is wrong with its parts is a problem of it. */
static int find_row(const struct env_store *store, const char *text, struct arena *arena,
	struct env_row *row, struct error *err)
{
	const char *name;
	env_rows rows = { 0 };
	if (env_resolve(store, text, arena, &name, err) || env_list(store, arena, &rows, err))
		return -1;
	for (size_t i = 0; i < rows.count; i++)
		if (!strcmp(rows.items[i].meta.name, name)) {
			*row = rows.items[i];
			return 0;
		}
	return fail(err, ERR_NOT_FOUND, "there is no environment '%s'", name);
}

/* A build that failed has left a log and no environment: its name is all there is. Who typed only a
 * package_id wants to see the last build of it, however it ended. */
static int read_log(const struct env_store *store, const char *text, struct arena *arena,
	const char **name, struct buf *log, struct error *err)
{
	const char *failed;
	int64_t failed_ms, built_ms;
	struct env_meta meta;
	*name = text;
	if (!env_read_file(store, text, "build.log", log, err))
		return 0;
	if (err->code != ERR_NOT_FOUND)
		return -1;
	bool is_there = !env_resolve(store, text, arena, name, err);
	bool has_failed = !env_find_failed(store, text, arena, &failed, &failed_ms);
	if (!is_there && !has_failed)
		return -1;
	if (has_failed &&
		(!is_there || env_read(store, *name, arena, &meta, err) ||
			!env_time_parse(meta.created_at, &built_ms) || failed_ms > built_ms))
		*name = failed;
	return env_read_file(store, *name, "build.log", log, err);
}

static int run_show(struct command *command, struct error *err)
{
	const struct env_store *store = &command->store;
	struct arena *arena = &command->arena;
	struct buf *out = &command->out;
	auto_buf struct buf log = buf_empty(LOG_MAX + 1);
	struct env_row row;
	pair_list own = { 0 };
	const char *name, *text = command->operands.items[0];
	bool is_log = command->options.log;
	struct json *j = &command->value;
	if (remote_choose(&command->remote, err))
		return -1;
	if (command->remote.is_far)
		return show_far(command, err);
	if (cli_open_store(command, err) || (is_log ? read_log(store, text, arena, &name, &log, err)
						    : find_row(store, text, arena, &row, err)))
		return -1;
	if (is_log && command->json) {
		json_object(j, NULL);
		json_text(j, "name", name);
		json_str(j, "log", (struct str){ log.data, log.len });
		json_end(j);
		return 0;
	}
	if (is_log) {
		buf_append(out, log.data, log.len);
		return 0;
	}
	if (!command->json && !row.meta.package_id)
		return fail(err, ERR_CORRUPT, "%s", row.problem);
	find_projects(store, &row.meta, arena, &own);
	if (command->json)
		print_shown(j, store, &row, &own);
	else
		print_text(store, &row, &own, out);
	return 0;
}

static const struct arg_option show_table[] = {
	{ 0, "log", ARG_FLAG, AT(log), NULL,
		"print the log of its last build instead, also if that failed" },
	{ ARG_FROM(remote_rows) },
};
static const struct arg_spec show_spec = {
	.command = "env show",
	.summary = "show one environment, or the log of its build",
	.usage = "NAME [--log] [options]",
	.about = "Shows one environment. NAME is its full name, as `carrel env ls` prints it, or "
		 "the name given to `carrel env build`: then the latest build is shown.",
	ARG_TABLE(show_table),
	.run = run_show,
};

static int run_metrics(struct command *command, struct error *err)
{
	return cli_open_store(command, err)
		       ? -1
		       : env_metrics_print(&command->store, &command->out, err);
}

static const struct arg_spec metrics_spec = {
	.command = "env metrics",
	.summary = "print sizes, counts and build times for Prometheus",
	.usage = "",
	.about = "Prints the size of the store, the number of environments and the duration of "
		 "builds, in Prometheus' text format.",
	.run = run_metrics,
};

static bool is_named(const cli_ones *all, const char *name)
{
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->items[i].name, name))
			return true;
	return false;
}

/* What `env show` shows by these names goes: found before anything is removed, or a package_id
 * would stand for another one then. One that can't go keeps none of the others; layers are
 * collected once, at the end. */
static int run_rm(struct command *command, struct error *err)
{
	const struct env_store *store = &command->store;
	uint64_t layers, bytes;
	bool is_any_gone = false;
	cli_ones all = { 0 };
	struct error why;
	if (command->options.exported)
		return removal_run(command, "/v1/exports", &command->operands, NULL, NULL, err);
	if (cli_open_store(command, err))
		return -1;
	for (size_t i = 0; i < command->operands.count; i++) {
		struct cli_one one = { .name = command->operands.items[i] };
		one.has_failed = env_resolve(store, one.name, &command->arena, &one.name, &one.err);
		if (!is_named(&all, one.name))
			vec_push(&command->arena, &all, one);
	}
	for (size_t i = 0; i < all.count; i++) {
		struct cli_one *one = &all.items[i];
		if (!one->has_failed)
			one->has_failed = env_remove(store, one->name, true, &one->err);
		is_any_gone |= !one->has_failed;
	}
	int code = cli_print_ones(command, &all, "removed", 0, err);
	/* The environments are removed even if the collection failed; warn on stderr, since JSON is
	 * one value. */
	if (is_any_gone && env_collect(store, &layers, &bytes, &why))
		return cli_fail(&why, false, NULL);
	return code;
}

static const struct arg_spec rm_spec = {
	.command = "env rm",
	.summary = "remove environments",
	.usage = "NAME... [--exported] [-o json]",
	.about = "Removes environments, named as for `carrel env show`, and packages that no other "
		 "environment has. An environment in use is not removed.",
	ARG_TABLE(stored_table),
	.run = run_rm,
};

static void print_pruned_json(const struct env_pruned *pruned, bool is_dry, struct json *j)
{
	json_object(j, NULL);
	json_array(j, "removed");
	for (size_t i = 0; i < pruned->removed.count; i++) {
		json_object(j, NULL);
		json_text(j, "name", pruned->removed.items[i].name);
		json_text(j, "reason", pruned->removed.items[i].reason);
		json_end(j);
	}
	json_end(j);
	json_u64(j, "layers_removed", pruned->layers);
	json_u64(j, "bytes_freed", pruned->bytes);
	if (is_dry)
		json_bool(j, "dry_run", true);
	json_end(j);
}

static void print_pruned(const struct env_pruned *pruned, bool is_dry, struct buf *out)
{
	char size[16];
	size_t count = pruned->removed.count;
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s (%s)\n", pruned->removed.items[i].name,
			pruned->removed.items[i].reason);
	quantity_format_size(size, pruned->bytes);
	cli_say("%s %zu environment%s, %" PRIu64 " layer%s, %s",
		is_dry ? "would remove" : "removed", count, count == 1 ? "" : "s", pruned->layers,
		pruned->layers == 1 ? "" : "s", size);
}

static int run_prune(struct command *command, struct error *err)
{
	bool is_dry = command->options.dry_run;
	struct env_pruned pruned;
	if (cli_open_store(command, err) || env_prune(&command->store, command->options.all, is_dry,
						    &command->arena, &pruned, err))
		return -1;
	if (command->json)
		print_pruned_json(&pruned, is_dry, &command->value);
	else
		print_pruned(&pruned, is_dry, &command->out);
	return 0;
}

static const struct arg_option prune_table[] = {
	{ 'a', "all", ARG_FLAG, AT(all), NULL, "remove every environment that isn't in use" },
	{ 0, "dry-run", ARG_FLAG, AT(dry_run), NULL,
		"remove nothing, print what would be removed" },
	{ ARG_FROM(format_rows) },
};
static const struct arg_spec prune_spec = {
	.command = "env prune",
	.summary = "remove environments over the limits, and unused layers",
	.usage = "[--all] [--dry-run] [-o json]",
	.about = "Removes environments over the limits of config.yaml (number, bytes, time "
		 "unused), remains of crashes, and packages that no environment has.",
	ARG_TABLE(prune_table),
	.run = run_prune,
};

const struct arg_spec cli_env = {
	.command = "env",
	.summary = "build, list, verify, export and remove environments",
	.group = GROUP_PACKAGES,
	.about = "Environments of Python and Node, composed of layers that they share.",
	.examples = "  carrel env build myagent -r requirements.txt\n"
		    "  carrel run --env myagent --dir . -- python main.py\n",
	.commands = (const struct arg_spec *const[]){ &env_build_spec, &ls_spec, &show_spec,
		&env_verify_spec, &env_registries_spec, &rm_spec, &prune_spec, &env_warm_spec,
		&metrics_spec, &env_export_spec, &env_import_spec, &env_wheels_spec, NULL },
};
