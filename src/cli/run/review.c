#include "cli/run/review.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "trees/stacks/apply.h"
#include "trees/stacks/snapshots.h"

#define CHANGES_MAX 100000
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct change {
	struct apply_item item;
	const char *type, *link; /* link: where a new link leads, or NULL */
	bool has_before, has_after;
	uint64_t size_before, size_after;
	const char *refusal; /* why it is never applied, or NULL */
	bool is_accepted, is_applied;
};
typedef VEC(struct change) change_list;

/* ---- options ---- */

static bool is_word(const text_list *accept, const char *word)
{
	return accept->count == 1 && !strcmp(accept->items[0], word);
}

int review_check(const struct options *run, struct error *err)
{
	if (run->accept.count && !run->review)
		return fail(err, ERR_INVALID, "--accept needs --review");
	if (!run->review)
		return 0;
	if (!run->dir)
		return fail(err, ERR_INVALID, "--review needs --dir");
	if (run->limits.disk_bytes)
		return fail(err, ERR_INVALID, "--disk is not available with --review");
	if (is_word(&run->accept, "ask") && (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)))
		return fail_hint(err, ERR_INVALID, "--accept all, none or a pattern",
			"--accept ask needs a terminal");
	return 0;
}

/* ---- the overlay ---- */

/* As the directory itself is: they are the root of what the command sees. */
static int make_upper(struct review *review, const struct stat *st, struct error *err)
{
	static const char *const names[] = { "upper", "work" };
	for (size_t i = 0; i < 2; i++) {
		if (mkdirat(review->area.fd, names[i], 0700))
			return fail_errno(err, "make '%s' for the review", names[i]);
		if (geteuid() == 0 && fchownat(review->area.fd, names[i], st->st_uid, st->st_gid,
					      AT_SYMLINK_NOFOLLOW))
			return fail_errno(err, "give '%s' to the owner of the directory", names[i]);
	}
	if (fchmodat(review->area.fd, "upper", st->st_mode & 0777, 0))
		return fail_errno(err, "set the mode of 'upper'");
	return 0;
}

int review_begin(struct review *review, struct command *command, struct plan_options *options,
	struct error *err)
{
	const struct options *run = &command->options;
	struct arena *arena = &command->arena;
	const struct plan_bind *dir = options->dir;
	struct stat st;
	if (area_find_place(&review->area, command, err))
		return -1;
	if (options->home && (path_is_beneath(dir->source, options->home) ||
				     path_is_beneath(options->home, dir->source)))
		return fail(err, ERR_INVALID,
			"--review can't be used on '%s': carrel's home is in it", dir->source);
	review->path = dir->source;
	review->dir = open(dir->source, DIRECTORY);
	if (review->dir < 0 || fstat(review->dir, &st))
		return fail_errno(err, "open '%s'", dir->source);
	review->owner_uid = st.st_uid;
	review->owner_gid = st.st_gid;
	if (!run->plan) {
		if (area_make(&review->area, review->path, err) || make_upper(review, &st, err))
			return -1;
		apply_wait_for_tick(&review->since);
	}
	review->tree = (struct plan_tree){ .base = "/",
		.layers = dir->source + 1,
		.upper = arena_printf(arena, "%s/%s", review->area.place + 1,
			review->area.name[0] ? review->area.name : AREA_PREFIX "XXXXXX"),
		.owner_uid = dir->owner_uid,
		.owner_gid = dir->owner_gid };
	vec_push(arena, &review->tree.lowers, PLAN_LAYERS_THEMSELVES);
	options->workspace = &review->tree;
	options->dir = NULL;
	return 0;
}

void review_done(struct review *review)
{
	area_done(&review->area);
	fd_close(&review->dir);
}

/* ---- what changed ---- */

struct finding {
	struct arena *arena;
	const struct options *run;
	change_list changes;
};

static bool is_beneath(const char *path, const char *name)
{
	size_t len = strlen(name);
	return !strncmp(path, name, len) && (!path[len] || path[len] == '/');
}

static const char *find_refusal(
	const struct finding *finding, const struct snapshot_difference *difference)
{
	mode_t mode = difference->after.st.st_mode;
	if (!strncmp(difference->path, APPLY_STAGE, strlen(APPLY_STAGE)))
		return "a name of carrel's own";
	if (difference->after.is_there && !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode))
		return "not a file, a directory or a link";
	return finding->run->writable_config
		       ? NULL
		       : area_protection(difference->path, difference->change,
				 difference->after.is_there ? mode : 0, difference->is_meta);
}

static int on_difference(void *ctx, const struct snapshot_difference *difference, struct error *err)
{
	struct finding *finding = ctx;
	const struct stack_entry *before = &difference->before, *after = &difference->after;
	char target[PATH_MAX];
	if (finding->changes.count >= CHANGES_MAX)
		return fail(err, ERR_LIMIT, "more than %d files changed", CHANGES_MAX);
	struct change change = {
		.item = { .path = arena_text(finding->arena, difference->path),
			.change = (char)difference->change,
			.was_directory = before->is_there && S_ISDIR(before->st.st_mode),
			.is_directory = after->is_there && S_ISDIR(after->st.st_mode) },
		.type = path_type(after->is_there ? after->st.st_mode : before->st.st_mode),
		.has_before = before->is_there && S_ISREG(before->st.st_mode),
		.has_after = after->is_there && S_ISREG(after->st.st_mode),
		.size_before = (uint64_t)before->st.st_size,
		.size_after = (uint64_t)after->st.st_size,
		.refusal = find_refusal(finding, difference)
	};
	if (after->is_there && S_ISLNK(after->st.st_mode)) {
		ssize_t len = readlinkat(
			after->dir, path_basename(difference->path), target, sizeof target - 1);
		if (len > 0)
			change.link = arena_bytes(finding->arena, target, (size_t)len);
	}
	vec_push(finding->arena, &finding->changes, change);
	return 0;
}

static int compare(const struct review *review, const text_list *paths, snapshot_difference_fn *fn,
	void *ctx, struct error *err)
{
	auto_close int upper = openat(review->area.fd, "upper", DIRECTORY);
	if (upper < 0)
		return fail_errno(err, "open what the command wrote");
	const int before[] = { review->dir }, after[] = { upper, review->dir };
	const struct snapshot_diff diff = { .before = before,
		.after = after,
		.before_count = 1,
		.after_count = 2,
		.shared = 1,
		.paths = paths };
	return snapshot_diff(&diff, fn, ctx, err);
}

static void print_line(const struct change *change)
{
	char path[PATH_MAX], link[PATH_MAX] = "";
	str_printable(path, sizeof path, str_from(change->item.path));
	if (change->link)
		str_printable(link, sizeof link, str_from(change->link));
	fprintf(stderr, "%c %s%s%s%s%s%s%s\n", change->item.change, path,
		change->item.is_directory ||
				(change->item.was_directory && change->item.change == 'D')
			? "/"
			: "",
		link[0] ? " -> " : "", link, change->refusal ? " (not applied: " : "",
		change->refusal ? change->refusal : "", change->refusal ? ")" : "");
}

/* ---- what is accepted ---- */

static int on_shown(void *ctx, const struct snapshot_difference *difference, struct error *err)
{
	return snapshot_patch(difference, ctx, err);
}

/* Bytes of a command could give orders to a terminal. */
static void show_patch(const struct review *review, const char *path, struct arena *arena)
{
	auto_buf struct buf patch = buf_empty((size_t)64 << 20);
	text_list paths = { 0 };
	struct error err;
	struct str line;
	char shown[4096];
	vec_push(arena, &paths, path);
	if (compare(review, &paths, on_shown, &patch, &err)) {
		cli_say("%s", err.text);
		return;
	}
	struct str rest = { patch.data, patch.len };
	while (str_next(&rest, '\n', &line)) {
		str_printable(shown, sizeof shown, line);
		fprintf(stderr, "%s\n", shown);
	}
}

/* false: no more questions. */
static bool ask(
	const struct review *review, struct change *change, bool *has_all, struct arena *arena)
{
	char answer[64], path[PATH_MAX];
	str_printable(path, sizeof path, str_from(change->item.path));
	for (;;) {
		fprintf(stderr, "apply %c %s? [y]es, [n]o, [a]ll that follow, [q]uit, [s]how: ",
			change->item.change, path);
		if (!fgets(answer, sizeof answer, stdin))
			return false;
		switch (answer[0]) {
		case 'y':
			change->is_accepted = true;
			return true;
		case 'n':
			return true;
		case 'a':
			*has_all = change->is_accepted = true;
			return true;
		case 'q':
			return false;
		case 's':
			show_patch(review, change->item.path, arena);
		}
	}
}

static bool is_matched(const text_list *accept, const char *path)
{
	for (size_t i = 0; i < accept->count; i++)
		if (!fnmatch(accept->items[i], path, 0))
			return true;
	return false;
}

/* What an accepted change needs: the new directories above it, and all that goes away with it. A
 * directory that would keep something stays. */
static void complete(change_list *changes)
{
	for (size_t i = changes->count; i-- > 0;) {
		struct change *change = &changes->items[i];
		const char *path = change->item.path;
		bool was_replaced = change->item.was_directory && !change->item.is_directory;
		for (size_t j = i + 1; was_replaced && j < changes->count &&
				       is_beneath(changes->items[j].item.path, path);
			j++) {
			struct change *below = &changes->items[j];
			if (change->item.change == SNAPSHOT_TYPE && change->is_accepted &&
				!below->refusal)
				below->is_accepted = true;
			if (!below->is_accepted)
				change->is_accepted = false;
		}
		for (size_t j = i; change->is_accepted && j-- > 0;) {
			struct change *above = &changes->items[j];
			if (above->item.is_directory && above->item.change != SNAPSHOT_MODIFIED &&
				!above->refusal && is_beneath(path, above->item.path))
				above->is_accepted = true;
		}
	}
}

static void decide(
	struct review *review, const struct options *run, change_list *changes, struct arena *arena)
{
	const text_list *accept = &run->accept;
	bool can_ask = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	bool asks = is_word(accept, "ask") || (!accept->count && can_ask);
	bool has_all = is_word(accept, "all");
	for (size_t i = 0; i < changes->count; i++) {
		struct change *change = &changes->items[i];
		if (change->refusal)
			continue;
		if (has_all)
			change->is_accepted = true;
		else if (asks && !ask(review, change, &has_all, arena))
			break;
		else if (!asks && !is_word(accept, "none"))
			change->is_accepted = is_matched(accept, change->item.path);
	}
	complete(changes);
}

/* ---- the end ---- */

static int apply_accepted(struct review *review, change_list *changes, struct arena *arena,
	size_t *count, struct error *err)
{
	apply_items items = { 0 };
	auto_close int upper = openat(review->area.fd, "upper", DIRECTORY);
	const struct apply apply = { .source = upper,
		.target = review->dir,
		.is_host = true,
		.journal = review->area.fd,
		.name = review->path,
		.since = review->since,
		.uid = geteuid() == 0 ? review->owner_uid : (uid_t)-1,
		.gid = review->owner_gid };
	for (size_t i = 0; i < changes->count; i++)
		if (changes->items[i].is_accepted)
			vec_push(arena, &items, changes->items[i].item);
	*count = items.count;
	if (!items.count)
		return 0;
	if (upper < 0)
		return fail_errno(err, "open what the command wrote");
	if (apply_changes(&apply, &items, err))
		return -1;
	for (size_t i = 0; i < changes->count; i++)
		changes->items[i].is_applied = changes->items[i].is_accepted;
	return 0;
}

static void print_json(struct json *j, const change_list *changes)
{
	json_array(j, "changes");
	for (size_t i = 0; i < changes->count; i++) {
		const struct change *change = &changes->items[i];
		const char letter[] = { change->item.change, 0 };
		json_object(j, NULL);
		json_text(j, "path", change->item.path);
		json_text(j, "change", letter);
		json_text(j, "type", change->type);
		if (change->has_before)
			json_u64(j, "size_before", change->size_before);
		else
			json_null(j, "size_before");
		if (change->has_after)
			json_u64(j, "size_after", change->size_after);
		else
			json_null(j, "size_after");
		json_bool(j, "applied", change->is_applied);
		if (change->refusal)
			json_text(j, "refused", change->refusal);
		json_end(j);
	}
	json_end(j);
}

int review_finish(struct review *review, struct command *command, struct error *err)
{
	struct arena *arena = &command->arena;
	const struct options *run = &command->options;
	struct finding finding = { .arena = arena, .run = run };
	size_t count = 0;
	if (compare(review, NULL, on_difference, &finding, err))
		return error_context(err, "the changes can't be read, and were discarded");
	for (size_t i = 0; !command->json && i < finding.changes.count; i++)
		print_line(&finding.changes.items[i]);
	decide(review, run, &finding.changes, arena);
	fault_point("review_decided");
	int failed = apply_accepted(review, &finding.changes, arena, &count, err);
	if (command->json)
		print_json(&command->value, &finding.changes);
	if (failed)
		return error_context(err, "the changes were not applied");
	if (command->json)
		return 0;
	if (!finding.changes.count)
		cli_say("the command changed nothing in '%s'", review->path);
	else
		cli_say("%zu of %zu changes were applied to '%s'%s", count, finding.changes.count,
			review->path,
			!count && !run->accept.count && !isatty(STDIN_FILENO)
				? "; without a terminal, --accept says which"
				: "");
	return 0;
}
