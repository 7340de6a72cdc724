/* The verbs that make, merge and check layers. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/walk.h"
#include "launch/trees/tree_job.h"
#include "trees/layers/damage.h"
#include "trees/stacks/snapshots.h"

static bool is_empty(int dir)
{
	auto_walk DIR *walk = walk_open(dir, ".");
	return walk && !walk_next(walk);
}

static int make_part(int stage, const char *part, int *fd, struct error *err)
{
	if (mkdirat(stage, part, 0700))
		return fail_errno(err, "make '%s' of a layer", part);
	*fd = fd_open_directory(stage, part);
	return *fd < 0 ? fail_errno(err, "open '%s' of a layer", part) : 0;
}

static int copy_parts(struct tree_job *job, int workspace, int stage, struct error *err)
{
	struct snapshot_copy sum = { 0 };
	json_array(job->answer, "parts");
	for (size_t i = 0; i < WORKSPACE_PARTS; i++) {
		struct snapshot_copy done;
		auto_close int to = -1, upper = -1;
		if (tree_open_upper(workspace, i, &upper, err))
			return -1;
		if (upper < 0 || (workspace_parts[i].has_packages && is_empty(upper)))
			continue;
		if (make_part(stage, workspace_parts[i].name, &to, err) ||
			snapshot_copy(upper, to, &done, err))
			return -1;
		json_text(job->answer, NULL, workspace_parts[i].name);
		sum.files += done.files;
		sum.bytes += done.bytes;
		sum.left_out += done.left_out;
	}
	json_end(job->answer);
	json_u64(job->answer, "files", sum.files);
	json_u64(job->answer, "bytes", sum.bytes);
	json_u64(job->answer, "left_out", sum.left_out);
	return 0;
}

/* WORKSPACE NEW: the uppers of a workspace as a layer. */
int tree_copy(struct tree_job *job, struct error *err)
{
	const char *id, *name;
	auto_close int stage = -1;
	if (tree_take_name(job, &id, err) || tree_take_name(job, &name, err))
		return -1;
	auto_close int workspace = fd_open_directory(job->workspaces, id);
	if (workspace < 0)
		return fail_errno(err, "open the tree of workspace '%s'", id);
	if (tree_stage_open(job, name, &stage, err))
		return -1;
	if (!copy_parts(job, workspace, stage, err) && !tree_stage_publish(job, name, err))
		return 0;
	tree_stage_remove(job, name);
	return -1;
}

/* ---- merge ---- */

struct merge_order {
	text_list range, below, packages[WORKSPACE_PARTS];
};

static int merge_part(struct tree_job *job, const struct merge_order *order, size_t part, int stage,
	struct error *err)
{
	const char *name = workspace_parts[part].name;
	auto_fds tree_fds range = { 0 };
	auto_fds tree_fds below = { 0 };
	bool has_part = false;
	auto_close int to = -1;
	if (tree_add_parts(job, &order->range, name, &range, err))
		return -1;
	for (size_t i = 0; i < range.count; i++)
		has_part |= range.items[i] >= 0;
	if (!has_part)
		return 0;
	if (tree_add_parts(job, &order->below, name, &below, err) ||
		tree_add_parts(job, &order->packages[part], "tree", &below, err) ||
		make_part(stage, name, &to, err))
		return -1;
	return snapshot_merge(range.items, range.count, below.items, below.count, to, err);
}

/* NEW, the layers to be merged, "", those below, "", package layers of each part
 * (tree_take_packages): one layer in place of several. */
int tree_merge(struct tree_job *job, struct error *err)
{
	const char *name;
	struct merge_order order = { 0 };
	auto_close int stage = -1;
	if (tree_take_name(job, &name, err))
		return -1;
	order.range = tree_take_list(job);
	order.below = tree_take_list(job);
	tree_take_packages(job, order.packages);
	if (order.range.count < 2)
		return fail(err, ERR_INVALID, "a merge takes two layers or more");
	if (tree_stage_open(job, name, &stage, err))
		return -1;
	int failed = 0;
	for (size_t i = 0; i < WORKSPACE_PARTS && !failed; i++)
		failed = merge_part(job, &order, i, stage, err);
	fault_point("tree_merged");
	if (!failed && !tree_stage_publish(job, name, err))
		return 0;
	tree_stage_remove(job, name);
	return -1;
}

/* ---- content ids ---- */

/* Of all parts together: the file that holds the id is not one of them. */
static int hash_layer(
	struct tree_job *job, const char *name, struct snapshot_content *content, struct error *err)
{
	struct sha256 hash;
	*content = (struct snapshot_content){ 0 };
	sha256_init(&hash);
	for (size_t i = 0; i < WORKSPACE_PARTS; i++) {
		struct snapshot_content one;
		auto_close int fd = -1;
		if (tree_open_part(job, name, workspace_parts[i].name, &fd, err))
			return -1;
		if (fd < 0)
			continue;
		if (snapshot_content_id(fd, &one, err))
			return error_context(err, "layer '%s'", name);
		sha256_add(&hash, workspace_parts[i].name, strlen(workspace_parts[i].name));
		sha256_add(&hash, one.id, sizeof one.id);
		content->files += one.files;
		content->bytes += one.bytes;
	}
	sha256_end_hex(&hash, content->id);
	return 0;
}

int tree_hash_stage(
	struct tree_job *job, const char *name, struct snapshot_content *content, struct error *err)
{
	return hash_layer(
		job, arena_printf(job->arena, TREE_STAGE_PREFIX "%s", name), content, err);
}

/* "" when the layer has none yet. */
static int read_content_id(
	const struct tree_job *job, const char *name, const char **id, struct error *err)
{
	struct str text;
	auto_close int layer = fd_open_directory(job->layers, name);
	if (layer < 0)
		return fail_errno(err, "open layer '%s'", name);
	if (!file_read_at(layer, TREE_CONTENT_ID, 256, job->arena, &text)) {
		text = str_trim(text);
		*id = arena_bytes(job->arena, text.data, text.len);
		return 0;
	}
	*id = "";
	return errno == ENOENT ? 0 : fail_errno(err, "read the content id of layer '%s'", name);
}

static int write_content_id(
	const struct tree_job *job, const char *name, const char *id, struct error *err)
{
	auto_close int layer = fd_open_directory(job->layers, name);
	if (layer < 0 || file_replace(layer, TREE_CONTENT_ID, 0600, str_from(id), true))
		return fail_errno(err, "write the content id of layer '%s'", name);
	return 0;
}

static void print_layer(struct tree_job *job, const char *name, const char *id,
	const struct snapshot_content *content)
{
	json_object(job->answer, NULL);
	json_text(job->answer, "name", name);
	json_text(job->answer, "content_id", id);
	if (content) {
		json_u64(job->answer, "files", content->files);
		json_u64(job->answer, "bytes", content->bytes);
	}
}

/* LAYER…: computes and writes the content ids of those that have none. */
int tree_hash(struct tree_job *job, struct error *err)
{
	text_list names = tree_take_list(job);
	json_array(job->answer, "layers");
	for (size_t i = 0; i < names.count; i++) {
		struct snapshot_content content;
		const char *id;
		if (read_content_id(job, names.items[i], &id, err))
			return -1;
		bool is_known = id[0];
		if (!is_known) {
			if (hash_layer(job, names.items[i], &content, err) ||
				write_content_id(job, names.items[i], content.id, err))
				return -1;
			id = content.id;
		}
		print_layer(job, names.items[i], id, is_known ? NULL : &content);
		json_end(job->answer);
	}
	json_end(job->answer);
	return 0;
}

/* LAYER…: compares content and id of each. `problem` says what is wrong; no sandbox starts on such
 * a layer any more (trees/layers/damage.h). */
int tree_verify(struct tree_job *job, struct error *err)
{
	text_list names = tree_take_list(job);
	json_array(job->answer, "layers");
	for (size_t i = 0; i < names.count; i++) {
		struct snapshot_content content = { 0 };
		struct error why;
		const char *id = "", *problem = NULL;
		if (read_content_id(job, names.items[i], &id, &why) ||
			hash_layer(job, names.items[i], &content, &why))
			problem = why.code == ERR_NOT_FOUND ? "missing" : why.text;
		else if (id[0] && strcmp(id, content.id))
			problem = "changed";
		else if (!id[0] && write_content_id(job, names.items[i], content.id, err))
			return -1;
		if (problem && strcmp(problem, "missing"))
			damage_mark(job->layers, names.items[i]);
		else if (!problem && damage_is_any(job->layers))
			damage_clear(job->layers, names.items[i]);
		print_layer(job, names.items[i], id[0] ? id : content.id, &content);
		json_text(job->answer, "problem", problem);
		json_end(job->answer);
	}
	json_end(job->answer);
	return 0;
}

/* LAYER…: bytes on disk and inodes of each. */
int tree_measure_layers(struct tree_job *job, struct error *err)
{
	text_list names = tree_take_list(job);
	json_array(job->answer, "layers");
	for (size_t i = 0; i < names.count; i++) {
		uint64_t bytes, inodes;
		auto_close int layer = fd_open_directory(job->layers, names.items[i]);
		if (layer < 0)
			return fail_errno(err, "open layer '%s'", names.items[i]);
		if (path_measure_tree(layer, &bytes, &inodes, err))
			return -1;
		json_object(job->answer, NULL);
		json_text(job->answer, "name", names.items[i]);
		json_u64(job->answer, "bytes", bytes);
		json_u64(job->answer, "inodes", inodes);
		json_end(job->answer);
	}
	json_end(job->answer);
	return 0;
}

/* WORKSPACE; options: {"parts": [PATH…], "charged"}. Bytes of what it holds there, also in
 * directories that are closed to their owner. */
int tree_usage(struct tree_job *job, struct error *err)
{
	const struct json_value *paths = json_member(job->options, "parts");
	const struct json_value *charged = json_member(job->options, "charged");
	bool is_charged = charged && charged->kind == JSON_BOOL && charged->boolean;
	uint64_t sum = 0, bytes, inodes;
	const char *name;
	if (tree_take_name(job, &name, err))
		return -1;
	auto_close int workspace = fd_open_directory(job->workspaces, name);
	if (workspace < 0)
		return fail_errno(err, "open workspace '%s'", name);
	for (const struct json_value *path = paths ? paths->first : NULL; path; path = path->next) {
		if (path->kind != JSON_STRING)
			return fail(err, ERR_INVALID, "'parts': a list of paths expected");
		auto_close int part =
			path_open_nolinks(workspace, path->string.data, O_RDONLY | O_DIRECTORY, 0);
		if (part < 0 && errno == ENOENT)
			continue;
		if (part < 0)
			return fail_errno(err, "open '%s' of the workspace", path->string.data);
		if (is_charged ? path_charge_tree(part, &bytes, err)
			       : path_measure_tree(part, &bytes, &inodes, err))
			return -1;
		sum += bytes;
	}
	json_u64(job->answer, "bytes", sum);
	return 0;
}

/* Removes the frozen layers that are named, and what jobs that were killed have left. No other job
 * may run meanwhile. */
int tree_sweep(struct tree_job *job, struct error *err)
{
	text_list names = tree_take_list(job);
	auto_walk DIR *walk = walk_open(job->layers, ".");
	struct dirent *entry;
	for (size_t i = 0; i < names.count; i++)
		if (strncmp(names.items[i], "snap-", 5) ||
			path_remove_tree(job->layers, names.items[i], err))
			return strncmp(names.items[i], "snap-", 5)
				       ? fail(err, ERR_DENIED, "'%s' is not a frozen layer",
						 names.items[i])
				       : -1;
	while ((entry = walk_next(walk)))
		if (!strncmp(entry->d_name, TREE_STAGE_PREFIX, strlen(TREE_STAGE_PREFIX)) &&
			path_remove_tree(job->layers, entry->d_name, err))
			return -1;
	return errno ? fail_errno(err, "list the layers") : 0;
}
