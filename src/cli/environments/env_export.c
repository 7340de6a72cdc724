/* carrel env export, carrel env import: an environment as one tar archive, and back.
 *	carrel-env.json		its meta.json
 *	requirements.txt, lock.txt
 *	<layer id>.manifest, <layer id>/…	each layer: its manifest, and its tree
 * An archive may be a stranger's. It is unpacked in a stage (trees/stacks/pack.h); a layer is
 *published by hashing what was unpacked, and must get the id that the archive says: then it is
 *whole. What an environment shows of the host is its interpreter, which must lie in /usr here as
 *there. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "cli/columns.h"
#include "cli/environments/env.h"
#include "format/text/quantity.h"
#include "trees/layers/stage.h"
#include "trees/stacks/pack.h"

#define META "carrel-env.json"
#define META_MAX ((size_t)16 << 20)
#define TEXT_MAX ((size_t)64 << 20)
#define LOCK_WAIT_MS 60000
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *const text_files[] = { "requirements.txt", "lock.txt" };

/* Ids of its layers and of its tools', each once. */
static text_list layers_of(const struct env_meta *meta, struct arena *arena)
{
	text_list ids = { 0 };
	const char *id;
	for (size_t i = 0; i < meta->layers.count + meta->tools.count; i++) {
		bool is_there = false;
		id = env_meta_layer(meta, i);
		for (size_t k = 0; k < ids.count; k++)
			is_there |= !strcmp(ids.items[k], id);
		if (!is_there)
			vec_push(arena, &ids, id);
	}
	return ids;
}

static bool is_system(const char *path)
{
	return !path || (!strncmp(path, "/usr/", 5) && !strstr(path, "/../"));
}

/* ERR_INVALID: it needs directories of the host that it was made on. */
static int check_portable(const struct env_meta *meta, struct error *err)
{
	if (meta->editables.count)
		return fail(err, ERR_INVALID, "environment '%s' has editable project '%s'",
			meta->name, meta->editables.items[0]);
	for (size_t i = 0; meta->python_version && i < meta->tools.count; i++)
		if (!strcmp(meta->tools.items[i].key, "python"))
			return fail_hint(err, ERR_INVALID,
				"build it with a Python in /usr, or by `carrel env build` in the "
				"other home",
				"environment '%s' has Python %s that carrel downloaded, and its "
				"layers name the home that it is in",
				meta->name, meta->python_version);
	if (meta->python_prefix || !is_system(meta->python) || !is_system(meta->node))
		return fail_hint(err, ERR_INVALID,
			"build it with a Python and a Node that lie in /usr, or with --node "
			"VERSION",
			"the interpreter of environment '%s' is not in /usr: '%s'", meta->name,
			meta->python_prefix	   ? meta->python_prefix
			: !is_system(meta->python) ? meta->python
						   : meta->node);
	return 0;
}

/* ---- export ---- */

static int add_layer(struct packer *packer, const struct env_store *store, const char *id,
	struct arena *arena, struct error *err)
{
	struct str manifest;
	auto_close int layer = openat(store->layers.dir, id, DIRECTORY);
	if (layer < 0 || file_read_at(layer, "manifest", MANIFEST_MAX, arena, &manifest))
		return fail_errno(err, "open layer '%s'", id);
	auto_close int tree = openat(layer, "tree", DIRECTORY);
	if (tree < 0)
		return fail_errno(err, "open layer '%s'", id);
	return packer_add_text(packer, arena_printf(arena, "%s.manifest", id), manifest, err) ||
			       packer_add_layer(packer, id, tree, err)
		       ? -1
		       : 0;
}

static int write_all(const struct env_store *store, const struct env_meta *meta,
	struct packer *packer, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text = buf_empty(META_MAX);
	text_list ids = layers_of(meta, &arena);
	env_meta_print(meta, &text);
	if (packer_add_text(packer, META, (struct str){ text.data, text.len }, err))
		return -1;
	for (size_t i = 0; i < sizeof text_files / sizeof *text_files; i++) {
		auto_buf struct buf file = buf_empty(TEXT_MAX);
		struct error ignored;
		if (!env_read_file(store, meta->name, text_files[i], &file, &ignored) &&
			packer_add_text(
				packer, text_files[i], (struct str){ file.data, file.len }, err))
			return -1;
	}
	for (size_t i = 0; i < ids.count; i++) {
		auto_leave const struct home *home = home_entered(store->home);
		if (add_layer(packer, store, ids.items[i], &arena, err))
			return -1;
	}
	fault_point("env_export_packed");
	return packer_end(packer, err);
}

static int export_to(
	const struct env_store *store, const struct env_meta *meta, int out, struct error *err)
{
	struct packer packer;
	packer_init(&packer, out, false);
	int failed = write_all(store, meta, &packer, err);
	packer_done(&packer);
	return failed;
}

/* Into a file beside it, which gets its name when it is whole. */
static int export_file(struct command *command, const struct env_meta *meta, const char *file,
	uint64_t *size, struct error *err)
{
	const char *part = arena_printf(&command->arena, "%s.part-%d", file, (int)getpid());
	struct stat st;
	auto_close int out = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (out < 0)
		return fail_errno(err, "write '%s'", part);
	int failed = export_to(&command->store, meta, out, err);
	if (!failed && (fsync(out) || fstat(out, &st) || rename(part, file)))
		failed = fail_errno(err, "write '%s'", file);
	if (failed)
		unlink(part);
	else
		*size = (uint64_t)st.st_size;
	return failed;
}

/* A file without a name, in the home: it may be too large for memory. */
static int make_file(const struct env_store *store, int *file, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	*file = openat(store->layers.dir, ".", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	return *file < 0 ? fail_errno(err, "make a file in the home") : 0;
}

static const char *path_of(struct command *command, const char *name)
{
	return arena_printf(
		&command->arena, "/v1/exports/%s", remote_escape(&command->remote, name));
}

/* Sends the file, which is read from its beginning. */
static int send_stored(
	struct command *command, const char *name, int file, uint64_t *size, struct error *err)
{
	unsigned char hash[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];
	if (lseek(file, 0, SEEK_SET) || file_hash(file, hash, size) || lseek(file, 0, SEEK_SET))
		return fail_errno(err, "read the archive of environment '%s'", name);
	sha256_hex(hash, hex);
	return remote_send_file(&command->remote,
		arena_printf(&command->arena, "%s?sha256=%s", path_of(command, name), hex), file,
		*size, err);
}

/* Writes what the blob store has to `file`, and sets it to its beginning. */
static int fetch_stored(struct command *command, const char *name, int file, struct error *err)
{
	return remote_receive_file(&command->remote, path_of(command, name), file,
		arena_printf(&command->arena, "environment '%s' of the blob store", name), err);
}

/* To the blob store, under its name. */
static int export_stored(
	struct command *command, const struct env_meta *meta, uint64_t *size, struct error *err)
{
	auto_close int file = -1;
	return make_file(&command->store, &file, err) ||
			       export_to(&command->store, meta, file, err) ||
			       send_stored(command, meta->name, file, size, err)
		       ? -1
		       : 0;
}

static int run_export(struct command *command, struct error *err)
{
	const char *name, *file = command->options.file;
	const struct env_store *store = &command->store;
	struct env_meta meta;
	uint64_t size = 0;
	char shown[16];
	auto_close int pin = -1;
	if (file && !strcmp(file, "-") && (command->json || isatty(STDOUT_FILENO)))
		return fail(err, ERR_INVALID, "the archive can't go where text goes");
	if (cli_open_store(command, err) ||
		env_resolve(store, command->operands.items[0], &command->arena, &name, err) ||
		env_use(store, name, &command->arena, &meta, &pin, err) ||
		check_portable(&meta, err))
		return -1;
	if (file && !strcmp(file, "-"))
		return export_to(store, &meta, STDOUT_FILENO, err);
	if (file ? export_file(command, &meta, file, &size, err)
		 : export_stored(command, &meta, &size, err))
		return error_context(err, "export environment '%s'", name);
	if (command->json) {
		json_object(&command->value, NULL);
		json_text(&command->value, "name", name);
		json_text(&command->value, "file", file);
		json_u64(&command->value, "size_bytes", size);
		json_end(&command->value);
	} else {
		quantity_format_size(shown, size);
		cli_say("%s: %s", file ? file : "stored", shown);
		buf_printf(&command->out, "%s\n", name);
	}
	return 0;
}

static const struct arg_option export_table[] = {
	{ 'f', "file", ARG_TEXT, AT(file), "FILE",
		"where the archive goes (default: the blob store); - is stdout" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec env_export_spec = {
	.command = "env export",
	.summary = "write an environment to the blob store or a file",
	.usage = "NAME [-f FILE] [-o json]",
	.about = "Writes an environment and all its packages to a tar archive, from which carrel "
		 "env import makes it in another home, without an index: in the blob store "
		 "(blob.url in carrel-config(5)), or in a file.",
	ARG_TABLE(export_table),
	.examples = "  carrel env export myagent\n"
		    "  carrel env export myagent -f myagent.tar\n"
		    "  carrel env export myagent -f - | zstd > myagent.tar.zst\n",
	.run = run_export,
};

/* ---- import ---- */

struct import {
	struct command *command;
	const struct env_store *store;
	struct layer_stage stage;
	struct env_meta meta;
	struct str texts[sizeof text_files / sizeof *text_files];
};

static int unpack(struct import *import, int from, struct error *err)
{
	struct unpacked done;
	struct str text;
	struct arena *arena = &import->command->arena;
	auto_leave const struct home *home = home_entered(import->store->home);
	if (pack_unpack(from, import->stage.fd, false, import->store->config.max_install_bytes,
		    NULL, NULL, &done, err))
		return -1;
	if (file_read_at(import->stage.fd, META, META_MAX, arena, &text))
		return fail(err, ERR_INVALID,
			"this is not an exported environment: it has no file '" META "'");
	for (size_t i = 0; i < sizeof text_files / sizeof *text_files; i++)
		if (file_read_at(
			    import->stage.fd, text_files[i], TEXT_MAX, arena, &import->texts[i]))
			import->texts[i] = STR("");
	if (env_meta_parse(text, arena, &import->meta, err)) {
		err->code = ERR_INVALID;
		return error_context(err, "'" META "' in the archive");
	}
	return check_portable(&import->meta, err);
}

/* The tree of a layer as a draft, by its manifest, whose hash is its id. */
static int make_draft(
	struct import *import, const char *id, struct layer_draft *draft, struct error *err)
{
	struct arena *arena = &import->command->arena;
	struct manifest manifest;
	struct str text;
	char hash[2 * SHA256_LEN + 1];
	int stage = import->stage.fd;
	const char *to = arena_printf(arena, "draft-%s", id);
	auto_leave const struct home *home = home_entered(import->store->home);
	if (file_read_at(stage, arena_printf(arena, "%s.manifest", id), MANIFEST_MAX, arena, &text))
		return fail(err, ERR_CORRUPT, "the archive has no layer '%s'", id);
	sha256_of(text.data, text.len, hash);
	if (strcmp(hash, id) != 0)
		return fail(err, ERR_CORRUPT, "the manifest of layer '%s' is damaged", id);
	if (manifest_parse(text, arena, &manifest, err))
		return error_context(err, "layer '%s'", id);
	if (mkdirat(stage, to, 0700) ||
		renameat(stage, id, stage, arena_printf(arena, "%s/tree", to)))
		return fail_errno(err, "unpack layer '%s'", id);
	*draft = (struct layer_draft){ .path = to,
		.kind = manifest.kind,
		.name = manifest.name,
		.version = manifest.version };
	return 0;
}

static int publish(struct import *import, struct error *err)
{
	struct arena *arena = &import->command->arena;
	const struct layer_store *layers = &import->store->layers;
	text_list ids = layers_of(&import->meta, arena), missing = { 0 };
	struct layer_draft *drafts = arena_array(arena, ids.count + 1, sizeof *drafts);
	struct error ignored;
	for (size_t i = 0; i < ids.count; i++) {
		if (!layer_check(layers, ids.items[i], &ignored))
			continue;
		if (make_draft(import, ids.items[i], &drafts[missing.count], err))
			return -1;
		vec_push(arena, &missing, ids.items[i]);
	}
	fault_point("env_import_unpacked");
	if (missing.count &&
		layers_publish(layers, import->stage.fd, drafts, missing.count, NULL, NULL, err))
		return -1;
	for (size_t i = 0; i < missing.count; i++)
		if (strcmp(drafts[i].id, missing.items[i]) != 0)
			return fail(err, ERR_CORRUPT, "layer '%s' in the archive is damaged",
				missing.items[i]);
	fault_point("env_import_published");
	return 0;
}

static bool is_same(const struct env_meta *a, const struct env_meta *b)
{
	bool is = a->layers.count == b->layers.count;
	for (size_t i = 0; is && i < a->layers.count; i++)
		is = !strcmp(a->layers.items[i], b->layers.items[i]);
	return is;
}

/* 1: it is here already. */
static int check_taken(const struct import *import, struct error *err)
{
	struct env_meta known;
	struct error ignored;
	const struct env_meta *meta = &import->meta;
	if (env_read(import->store, meta->name, &import->command->arena, &known, &ignored))
		return 0;
	if (is_same(&known, meta) && !env_check(import->store, &known, &ignored))
		return 1;
	return is_same(&known, meta)
		       ? 0
		       : fail_hint(err, ERR_CONFLICT, "carrel env rm removes it",
				 "this home has another environment '%s'", meta->name);
}

static int write_environment(struct import *import, struct error *err)
{
	const struct env_store *store = import->store;
	const struct env_files files = { .requirements = import->texts[0],
		.lock = import->texts[1] };
	auto_close int builder = -1, lock = -1;
	if (env_lock(store, import->meta.name, LOCK_WAIT_MS, &builder, err) ||
		layer_store_lock(&store->layers, false, &lock, err))
		return -1;
	int taken = check_taken(import, err);
	if (taken)
		return taken < 0 ? -1 : 0;
	if (publish(import, err) || env_check(store, &import->meta, err) ||
		env_write(store, &import->meta, &files, err))
		return -1;
	events_status(&store->events, "imported", import->meta.name);
	fault_point("env_import_written");
	return 0;
}

static int run_import(struct command *command, struct error *err)
{
	const char *file = command->operands.items[0];
	struct import import = {
		.command = command, .store = &command->store, .stage = LAYER_STAGE_NONE
	};
	struct error ignored;
	bool is_stdin = !strcmp(file, "-");
	bool is_stored = !is_stdin && !strchr(file, '/') && access(file, F_OK) != 0;
	auto_close int from = is_stdin	  ? dup(STDIN_FILENO)
			      : is_stored ? -1
					  : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (from < 0 && !is_stored)
		return fail_errno(err, "open '%s'", file);
	if (cli_open_store(command, err) ||
		(is_stored && (make_file(&command->store, &from, err) ||
				      fetch_stored(command, file, from, err))))
		return -1;
	env_sweep(&command->store);
	int failed =
		layer_stage_make(&command->store.layers, &command->arena, &import.stage, err) ||
		unpack(&import, from, err) || write_environment(&import, err);
	layer_stage_done(&command->store.layers, &import.stage, &ignored);
	if (failed && err->code == ERR_DISK_FULL && !err->hint[0])
		error_hint(err, "carrel env prune --all removes environments that nothing uses");
	if (failed)
		return error_context(err, "import '%s'", file);
	if (command->json)
		env_print_json(&command->value, &command->store, &import.meta, false, NULL, NULL);
	else
		buf_printf(&command->out, "%s\n", import.meta.name);
	return 0;
}

const struct arg_spec env_import_spec = {
	.command = "env import",
	.summary = "make an environment of an exported one",
	.usage = "NAME|FILE [-o json]",
	.about = "Makes an environment of an archive of carrel env export: the one of that name in "
		 "the blob store, or a file (- is stdin). The hash of each file is checked; layers "
		 "that are here already are shared. Needs no network, but the same Python or Node "
		 "in /usr.",
	REMOTE_OPTIONS,
	.examples = "  carrel env import myagent\n"
		    "  carrel env import ./myagent.tar\n"
		    "  zstd -dc myagent.tar.zst | carrel env import -\n",
	.run = run_import,
};
