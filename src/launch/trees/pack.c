/* The verbs that make archives of layers and workspaces, and layers of archives
 * (trees/stacks/pack.h). */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/walk.h"
#include "launch/trees/tree_job.h"
#include "trees/stacks/pack.h"
#include "trees/stacks/snapshots.h"

#define RECORD "carrel.json"
#define RECORD_MAX ((size_t)4 << 20)
#define ARCHIVE_EXTRA ((uint64_t)16 << 20) /* for directories and the ends of blocks */

static void print_packed(struct tree_job *job, const struct packer *packer)
{
	json_u64(job->answer, "files", packer->files);
	json_u64(job->answer, "bytes", packer->bytes);
	json_u64(job->answer, "left_out", packer->sockets);
	json_u64(job->answer, "over_limits", packer->left_out);
}

/* ---- a layer ---- */

/* LAYER: all of it as an archive, to output. */
int tree_pack_layer(struct tree_job *job, struct error *err)
{
	const char *name;
	struct packer packer;
	int failed = tree_take_name(job, &name, err);
	if (failed)
		return -1;
	packer_init(&packer, job->output, true);
	for (size_t i = 0; i < WORKSPACE_PARTS && !failed; i++) {
		auto_close int fd = -1;
		failed = tree_open_part(job, name, workspace_parts[i].name, &fd, err) ||
			 (fd >= 0 && packer_add_layer(&packer, workspace_parts[i].name, fd, err));
	}
	failed = failed || packer_end(&packer, err);
	print_packed(job, &packer);
	packer_done(&packer);
	return failed ? -1 : 0;
}

/* ---- a workspace ---- */

struct archiving {
	struct tree_job *job;
	struct packer packer;
	const char *id;
	int workspace;
	text_list frozen, packages[WORKSPACE_PARTS];
};

/* The upper of a part and that part of the frozen layers, topmost first; those that are there. */
static int open_part(struct archiving *archiving, size_t part, tree_fds *fds, struct error *err)
{
	size_t kept = 0;
	vec_push(archiving->job->arena, fds, -1);
	if (tree_open_upper(archiving->workspace, part, &fds->items[0], err) ||
		tree_add_parts(
			archiving->job, &archiving->frozen, workspace_parts[part].name, fds, err))
		return -1;
	for (size_t i = 0; i < fds->count; i++)
		if (fds->items[i] >= 0)
			fds->items[kept++] = fds->items[i];
	fds->count = kept;
	return 0;
}

/* What several layers changed of the packages below them, as one layer. */
static int add_changes(
	struct archiving *archiving, size_t part, const tree_fds *fds, struct error *err)
{
	struct tree_job *job = archiving->job;
	const char *name = arena_printf(job->arena, "archive-%s", archiving->id);
	auto_fds tree_fds below = { 0 };
	auto_close int stage = -1;
	int failed = tree_stage_open(job, name, &stage, err) ||
		     tree_add_parts(job, &archiving->packages[part], "tree", &below, err) ||
		     snapshot_merge(fds->items, fds->count, below.items, below.count, stage, err) ||
		     packer_add_layer(&archiving->packer, workspace_parts[part].name, stage, err);
	tree_stage_remove(job, name);
	return failed ? -1 : 0;
}

static int add_part(struct archiving *archiving, size_t part, struct error *err)
{
	const char *name = workspace_parts[part].name;
	auto_fds tree_fds fds = { 0 };
	if (open_part(archiving, part, &fds, err))
		return -1;
	if (!workspace_parts[part].has_packages)
		return packer_add_merged(&archiving->packer, name, fds.items, fds.count, err);
	if (fds.count == 1)
		return packer_add_layer(&archiving->packer, name, fds.items[0], err);
	return fds.count ? add_changes(archiving, part, &fds, err) : 0;
}

static int add_record(struct archiving *archiving, struct error *err)
{
	auto_buf struct buf text = buf_empty(RECORD_MAX);
	struct json j = json_to(&text, true);
	if (!archiving->job->options)
		return fail(err, ERR_INVALID, "the record of the workspace is missing");
	json_copy(&j, NULL, archiving->job->options);
	buf_char(&text, '\n');
	return packer_add_text(&archiving->packer, RECORD, buf_str(&text), err);
}

static int archive_all(struct archiving *archiving, struct error *err)
{
	if (add_record(archiving, err))
		return -1;
	for (size_t i = 0; i < WORKSPACE_PARTS; i++) {
		if (add_part(archiving, i, err) && !packer_leaves_out(&archiving->packer, err))
			return -1;
		fault_point("tree_archive_part");
	}
	return packer_end(&archiving->packer, err);
}

/* WORKSPACE, its frozen layers, "", package layers of each part (tree_take_packages), perhaps
 * "partial" (packer.is_partial): its whole state as an archive, to output. The options are the
 * record of the workspace. */
int tree_archive(struct tree_job *job, struct error *err)
{
	struct archiving archiving = { .job = job };
	if (tree_take_name(job, &archiving.id, err))
		return -1;
	archiving.frozen = tree_take_list(job);
	tree_take_packages(job, archiving.packages);
	auto_close int workspace = fd_open_directory(job->workspaces, archiving.id);
	if (workspace < 0)
		return fail_errno(err, "open the tree of workspace '%s'", archiving.id);
	archiving.workspace = workspace;
	packer_init(&archiving.packer, job->output, false);
	archiving.packer.is_partial = job->at < job->count;
	int failed = archive_all(&archiving, err);
	print_packed(job, &archiving.packer);
	packer_done(&archiving.packer);
	return failed;
}

/* ---- back ---- */

/* Directories with the names of parts, and nothing else. */
static int check_parts(int stage, struct error *err)
{
	auto_walk DIR *walk = walk_open(stage, ".");
	struct dirent *entry;
	struct stat st;
	while ((entry = walk_next(walk))) {
		bool is_part = false;
		for (size_t i = 0; i < WORKSPACE_PARTS; i++)
			is_part |= !strcmp(entry->d_name, workspace_parts[i].name);
		if (!is_part)
			return fail(
				err, ERR_INVALID, "unexpected '%s' in the archive", entry->d_name);
		if (fstatat(stage, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode))
			return fail(err, ERR_INVALID, "'%s' in the archive is not a directory",
				entry->d_name);
		if (fchmodat(stage, entry->d_name, (st.st_mode & 07777) | 0700, 0))
			return fail_errno(err, "set the mode of '%s'", entry->d_name);
	}
	if (errno)
		return fail_errno(err, "list the archive");
	if (mkdirat(stage, workspace_parts[PART_WORKSPACE].name, 0755) && errno != EEXIST)
		return fail_errno(
			err, "make '%s' of a layer", workspace_parts[PART_WORKSPACE].name);
	return 0;
}

/* Reads the record of an archived workspace, and takes it out of the layer. */
static int take_record(struct tree_job *job, int stage, struct error *err)
{
	struct json_value *record;
	struct str text;
	if (file_read_at(stage, RECORD, RECORD_MAX, job->arena, &text))
		return fail(err, ERR_INVALID,
			"this is not the archive of a workspace: it has no file '" RECORD "'");
	if (json_read(text, job->arena, &record, err))
		return error_context(err, "'" RECORD "' in the archive");
	json_copy(job->answer, "record", record);
	return unlinkat(stage, RECORD, 0) ? fail_errno(err, "remove '" RECORD "'") : 0;
}

/* Its record comes first, and says what the workspace could hold: twice that is more than any that
 * outgrew its limit has. */
static int limit_archive(void *ctx, int stage, uint64_t *limit, struct error *err)
{
	struct tree_job *job = ctx;
	struct json_value *record;
	struct str text;
	uint64_t disk = 0;
	if (file_read_at(stage, RECORD, RECORD_MAX, job->arena, &text))
		return fail(err, ERR_INVALID,
			"this is not the archive of a workspace: it does not begin with '" RECORD
			"'");
	if (json_read(text, job->arena, &record, err))
		return error_context(err, "'" RECORD "' in the archive");
	const struct json_value *limits = json_member(json_member(record, "workspace"), "limits");
	if (json_member_u64(limits, "disk_bytes", &disk) && disk < *limit / 2)
		*limit = 2 * disk + ARCHIVE_EXTRA;
	return 0;
}

static int unpack_into(struct tree_job *job, const char *name, bool is_layer, uint64_t limit,
	const char *expected, int stage, struct error *err)
{
	struct unpacked done;
	struct snapshot_content content;
	int failed = pack_unpack(job->input, stage, is_layer, limit,
		is_layer ? NULL : limit_archive, job, &done, err);
	if (failed && done.is_over) /* core says how much is free */
		err->code = ERR_DISK_FULL;
	if (failed || (!is_layer && take_record(job, stage, err)) || check_parts(stage, err) ||
		tree_hash_stage(job, name, &content, err))
		return -1;
	if (expected && strcmp(expected, content.id) != 0)
		return fail(err, ERR_CORRUPT, "the layer has content id %s instead of %s",
			content.id, expected);
	if (is_layer && file_create(stage, TREE_CONTENT_ID, 0600, str_from(content.id)))
		return fail_errno(err, "write the content id of layer '%s'", name);
	json_text(job->answer, "content_id", content.id);
	json_u64(job->answer, "entries", done.entries);
	json_u64(job->answer, "bytes", done.bytes);
	return 0;
}

/* NEW, "layer" or "archive", the most bytes on disk, and for a layer perhaps the content id that it
 * must have: the archive that comes as input becomes layer NEW. */
int tree_unpack_layer(struct tree_job *job, struct error *err)
{
	const char *name, *kind, *limit, *expected = NULL;
	uint64_t bytes;
	auto_close int stage = -1;
	if (tree_take_name(job, &name, err) || tree_take_name(job, &kind, err) ||
		tree_take_name(job, &limit, err))
		return -1;
	if (job->at < job->count)
		expected = job->names[job->at++];
	if (!str_to_u64(str_from(limit), &bytes))
		return fail(err, ERR_INVALID, "invalid number of bytes '%s'", limit);
	if (tree_stage_open(job, name, &stage, err))
		return -1;
	bool is_layer = !strcmp(kind, "layer");
	if (!unpack_into(job, name, is_layer, bytes, expected, stage, err) &&
		!tree_stage_publish(job, name, err))
		return 0;
	tree_stage_remove(job, name);
	return -1;
}
