/* The verb that compares two states of a workspace. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "format/http/uri.h"
#include "launch/trees/tree_job.h"
#include "trees/stacks/bundle.h"
#include "trees/stacks/snapshots.h"

#define OUTPUT_MAX ((uint64_t)64 << 20)
#define FLUSH_AT ((size_t)64 << 10)

struct comparison {
	struct tree_job *job;
	const char *prefix;
	bool is_patch;
	struct bundle_out *bundle; /* or NULL: none is made */
	struct buf out;
	struct json j; /* of the array of changes */
	uint64_t count, written;
};

static int diff_flush(struct comparison *c, struct error *err)
{
	c->written += c->out.len;
	if (c->written > OUTPUT_MAX)
		return fail(err, ERR_LIMIT,
			"the differences take more than %llu MiB: ask for fewer paths",
			(unsigned long long)(OUTPUT_MAX >> 20));
	if (fd_write_full(c->job->output, c->out.data, c->out.len) != (ssize_t)c->out.len)
		return fail_errno(err, "write the differences");
	buf_clear(&c->out);
	return 0;
}

static void print_size(struct json *j, const char *key, const struct stack_entry *entry)
{
	if (entry->is_there && S_ISREG(entry->st.st_mode))
		json_u64(j, key, (uint64_t)entry->st.st_size);
	else
		json_null(j, key);
}

static void print_mode(struct json *j, const char *key, const struct stack_entry *entry)
{
	char text[16];
	str_format(text, sizeof text, "%04o", (unsigned)entry->st.st_mode & 07777);
	json_text(j, key, text);
}

static void print_change(struct comparison *c, const struct snapshot_difference *difference)
{
	const struct stack_entry *before = &difference->before, *after = &difference->after;
	const char change[] = { (char)difference->change, 0 };
	struct json *j = &c->j;
	auto_buf struct buf path = buf_empty(1 << 20);
	buf_printf(&path, "%s%s", c->prefix, difference->path);
	json_object(j, NULL);
	json_text(j, "path", path.data);
	json_text(j, "change", change);
	json_text(j, "type", path_type(after->is_there ? after->st.st_mode : before->st.st_mode));
	print_size(j, "size_before", before);
	print_size(j, "size_after", after);
	if (difference->change == SNAPSHOT_MODIFIED && before->st.st_mode != after->st.st_mode) {
		print_mode(j, "mode_before", before);
		print_mode(j, "mode_after", after);
	}
	json_end(j);
}

/* What Carrel itself puts at the top of every workspace is nobody's change. */
static bool is_own(const struct snapshot_difference *difference)
{
	static const char *const files[] = { ".workspace_configured", ".context.json" };
	const struct stack_entry *after = &difference->after;
	char target[8];
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (!strcmp(difference->path, files[i]))
			return after->is_there && S_ISREG(after->st.st_mode);
	return !strcmp(difference->path, ".venv") && after->is_there &&
	       readlinkat(after->dir, ".venv", target, sizeof target) == 4 &&
	       !memcmp(target, "/env", 4);
}

static int on_difference(void *ctx, const struct snapshot_difference *difference, struct error *err)
{
	struct comparison *c = ctx;
	if (!c->prefix[0] && is_own(difference))
		return 0;
	c->count++;
	if (c->bundle)
		return bundle_out_add(c->bundle, difference, err);
	if (!c->is_patch)
		print_change(c, difference);
	else if (snapshot_patch(difference, &c->out, err))
		return -1;
	return c->out.len >= FLUSH_AT ? diff_flush(c, err) : 0;
}

struct states {
	const char *workspace; /* whose uppers are on top of `after`; NULL: none */
	text_list after, before, packages[WORKSPACE_PARTS];
	text_list paths;
};

static size_t count_shared(const text_list *a, const text_list *b)
{
	size_t count = 0;
	while (count < a->count && count < b->count &&
		!strcmp(a->items[a->count - 1 - count], b->items[b->count - 1 - count]))
		count++;
	return count;
}

static int open_states(struct tree_job *job, const struct states *states, size_t part,
	tree_fds *before, tree_fds *after, struct error *err)
{
	const char *name = workspace_parts[part].name;
	const text_list *packages = &states->packages[part];
	if (tree_add_parts(job, &states->before, name, before, err) ||
		tree_add_parts(job, packages, "tree", before, err))
		return -1;
	if (states->workspace) {
		auto_close int workspace = fd_open_directory(job->workspaces, states->workspace);
		if (workspace < 0)
			return fail_errno(
				err, "open the tree of workspace '%s'", states->workspace);
		vec_push(job->arena, after, -1);
		if (tree_open_upper(workspace, part, &after->items[0], err))
			return -1;
	}
	return tree_add_parts(job, &states->after, name, after, err) ||
			       tree_add_parts(job, packages, "tree", after, err)
		       ? -1
		       : 0;
}

/* Paths of this part, without its prefix. false: none was asked for. */
static bool select_paths(
	struct arena *arena, const text_list *asked, const char *prefix, text_list *paths)
{
	size_t len = strlen(prefix);
	*paths = (text_list){ 0 };
	for (size_t i = 0; i < asked->count; i++) {
		const char *path = asked->items[i];
		if (!strncmp(path, prefix, len))
			vec_push(arena, paths, path + len);
		else if (len && strlen(path) == len - 1 && !strncmp(path, prefix, len - 1))
			vec_push(arena, paths, "");
	}
	return !asked->count || paths->count;
}

static int compare_part(
	struct comparison *c, const struct states *states, size_t part, struct error *err)
{
	auto_fds tree_fds before = { 0 };
	auto_fds tree_fds after = { 0 };
	text_list paths;
	if (!select_paths(c->job->arena, &states->paths, workspace_parts[part].prefix, &paths))
		return 0;
	if (open_states(c->job, states, part, &before, &after, err))
		return -1;
	c->prefix = workspace_parts[part].prefix;
	const struct snapshot_diff diff = { .before = before.items,
		.before_count = before.count,
		.after = after.items,
		.after_count = after.count,
		.shared = count_shared(&states->before, &states->after) +
			  states->packages[part].count,
		.paths = &paths,
		.with_parents = c->bundle };
	return snapshot_diff(&diff, on_difference, c, err);
}

static void read_paths(const struct tree_job *job, text_list *paths)
{
	const struct json_value *list = json_member(job->options, "paths");
	struct str path;
	for (const struct json_value *at = list ? list->first : NULL; at; at = at->next)
		if (at->kind == JSON_STRING && uri_decode(job->arena, at->string, false, &path))
			vec_push(job->arena, paths, path.data);
}

static bool is_set(const struct tree_job *job, const char *key)
{
	const struct json_value *value = json_member(job->options, key);
	return value && value->kind == JSON_BOOL && value->boolean;
}

static int write_bundle(struct comparison *c, const struct states *states, struct error *err)
{
	struct bundle_out bundle;
	bundle_out_init(&bundle, c->job->output);
	c->bundle = &bundle;
	int failed = compare_part(c, states, PART_WORKSPACE, err) || bundle_out_end(&bundle, err);
	bundle_out_done(&bundle);
	return failed ? -1 : 0;
}

static int write_list(struct comparison *c, const struct states *states, struct error *err)
{
	int failed = 0;
	c->j = json_to(&c->out, false);
	if (!c->is_patch) {
		json_object(&c->j, NULL);
		json_array(&c->j, "items");
	}
	for (size_t i = 0; i < (is_set(c->job, "all") ? WORKSPACE_PARTS : 1) && !failed; i++)
		failed = compare_part(c, states, i, err);
	if (!failed && !c->is_patch) {
		json_end(&c->j);
		json_null(&c->j, "next_cursor"); /* as every list of the API */
		json_end(&c->j);
	}
	return failed || diff_flush(c, err) ? -1 : 0;
}

/* WORKSPACE or nothing, "", layers of the newer state, "", of the older one, "", package layers of
 * each part (tree_take_packages). Options: {patch, bundle, all, paths (percent-encoded)}. Output:
 * {items: changes}, a patch, or an archive of the changes in /workspace (trees/stacks/bundle.h). */
int tree_diff(struct tree_job *job, struct error *err)
{
	struct states states = { 0 };
	struct comparison c = {
		.job = job, .is_patch = is_set(job, "patch"), .out = buf_empty(BUF_MAX_DEFAULT)
	};
	text_list workspace = tree_take_list(job);
	states.workspace = workspace.count ? workspace.items[0] : NULL;
	states.after = tree_take_list(job);
	states.before = tree_take_list(job);
	tree_take_packages(job, states.packages);
	read_paths(job, &states.paths);
	int failed = is_set(job, "bundle") ? write_bundle(&c, &states, err)
					   : write_list(&c, &states, err);
	buf_done(&c.out);
	json_u64(job->answer, "changes", c.count);
	return failed;
}
