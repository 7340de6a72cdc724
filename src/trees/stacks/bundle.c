#include "trees/stacks/bundle.h"

#include <fcntl.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "format/http/uri.h"
#include "trees/pack/tree.h"
#include "trees/stacks/snapshots.h"

#define CHUNK ((size_t)128 << 10)

const char *const bundle_result_names[BUNDLE_RESULTS] = { "take", "same", "conflict", "refused" };

void bundle_init(struct bundle *bundle)
{
	*bundle = (struct bundle){ .tree = -1 };
	arena_init(&bundle->arena);
	map_init(&bundle->paths, &bundle->arena);
}

void bundle_done(struct bundle *bundle)
{
	fd_close(&bundle->tree);
	arena_done(&bundle->arena);
}

/* ---- the list ---- */

static int fail_list(struct error *err)
{
	return fail(err, ERR_INVALID, "the list of changes is damaged");
}

static bool read_state(struct str text, mode_t *mode)
{
	static const struct {
		char letter;
		mode_t type;
	} types[] = { { 'f', S_IFREG }, { 'd', S_IFDIR }, { 'l', S_IFLNK }, { 's', S_IFIFO } };
	*mode = 0;
	if (str_is(text, "-"))
		return true;
	if (text.len != 5)
		return false;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i].letter == text.data[0])
			*mode = types[i].type;
	for (size_t i = 1; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '7')
			return false;
		*mode |= (mode_t)(text.data[i] - '0') << (3 * (text.len - 1 - i));
	}
	return (*mode & S_IFMT) != 0;
}

static bool read_hash(struct str text, struct bundle_change *change)
{
	change->has_hash = !str_is(text, "-");
	if (!change->has_hash)
		return true;
	if (text.len != sizeof change->hash * 2)
		return false;
	for (size_t i = 0; i < sizeof change->hash; i++) {
		int high = str_hex_digit(text.data[2 * i]);
		int low = str_hex_digit(text.data[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		change->hash[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

/* Relative, and clean. */
static bool read_path(struct arena *arena, struct str text, const char **path)
{
	struct str decoded;
	if (!uri_decode(arena, text, false, &decoded))
		return false;
	char *whole = arena_printf(arena, "/%.*s", (int)decoded.len, decoded.data);
	*path = whole + 1;
	return decoded.len && path_is_normal(whole);
}

/* What a change says of its states. */
static bool is_consistent(const struct bundle_change *change)
{
	bool was = change->before != 0, is = change->after != 0;
	bool is_other = (change->before & S_IFMT) != (change->after & S_IFMT);
	bool has_content = S_ISREG(change->before) || S_ISLNK(change->before);
	if (change->has_hash != has_content)
		return false;
	switch (change->change) {
	case SNAPSHOT_ADDED:
		return !was && is;
	case SNAPSHOT_DELETED:
		return was && !is;
	case SNAPSHOT_MODIFIED:
		return was && is && !is_other;
	case SNAPSHOT_TYPE:
		return was && is && is_other;
	default:
		return false;
	}
}

static int read_line(struct bundle *bundle, struct str line, struct error *err)
{
	struct bundle_change change = { 0 };
	struct str word, rest = line;
	if (!str_next(&rest, ' ', &word) || word.len != 1)
		return fail_list(err);
	change.change = word.data[0];
	if (!str_next(&rest, ' ', &word) || !read_state(word, &change.before) ||
		!str_next(&rest, ' ', &word) || !read_hash(word, &change) ||
		!str_next(&rest, ' ', &word) || !read_state(word, &change.after) ||
		!read_path(&bundle->arena, rest, &change.path) || !is_consistent(&change) ||
		map_get(&bundle->paths, str_from(change.path)))
		return fail_list(err);
	if (bundle->changes.count >= BUNDLE_CHANGES_MAX)
		return fail(err, ERR_LIMIT, "more than %d changes", BUNDLE_CHANGES_MAX);
	vec_push(&bundle->arena, &bundle->changes, change);
	/* Items move while the list grows; any pointer that isn't NULL tells that it is there. */
	map_set(&bundle->paths, str_from(change.path), bundle);
	return 0;
}

static int read_list(struct bundle *bundle, int area, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct str text, line;
	if (file_read_at(area, BUNDLE_LIST, BUNDLE_LIST_MAX, &arena, &text))
		return errno == ENOENT ? fail(err, ERR_INVALID, "the list of changes is missing")
				       : fail_errno(err, "read the list of changes");
	while (str_next(&text, '\n', &line))
		if (read_line(bundle, line, err))
			return -1;
	for (size_t i = 0; i < bundle->changes.count; i++) {
		struct bundle_change *change = &bundle->changes.items[i];
		map_set(&bundle->paths, str_from(change->path), change);
	}
	return 0;
}

/* ---- the archive ---- */

static int add_all(struct tree_unpack *unpack, int from, struct error *err)
{
	static char chunk[CHUNK];
	for (;;) {
		ssize_t got = read(from, chunk, CHUNK);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read the changes");
		if (!got)
			return tree_unpack_end(unpack, err);
		if (tree_unpack_add(unpack, (struct str){ chunk, (size_t)got }, err))
			return -1;
	}
}

static int make_place(int area, int *place, struct error *err)
{
	if (mkdirat(area, BUNDLE_PLACE, 0700) ||
		(*place = fd_open_directory(area, BUNDLE_PLACE)) < 0)
		return fail_errno(err, "make a directory for changes");
	return 0;
}

int bundle_read(struct bundle *bundle, int from, int area, uint64_t limit, const char *room,
	struct error *err)
{
	static struct tree_unpack unpack; /* too large for a stack */
	auto_close int place = -1;
	if (make_place(area, &place, err))
		return -1;
	tree_unpack_init(&unpack, place);
	unpack.is_strict = true;
	unpack.limit = limit;
	unpack.room = room;
	int failed = add_all(&unpack, from, err);
	bundle->bytes = unpack.bytes;
	tree_unpack_done(&unpack);
	if (failed && err->code == ERR_CORRUPT)
		err->code = ERR_INVALID;
	if (failed || read_list(bundle, place, err))
		return -1;
	fault_point("bundle_read");
	if (mkdirat(place, BUNDLE_TREE, 0700) && errno != EEXIST)
		return fail_errno(err, "make a directory for changes");
	bundle->tree = fd_open_directory(place, BUNDLE_TREE);
	return bundle->tree < 0 ? fail_errno(err, "open the changes") : 0;
}

int bundle_apply(const struct bundle *bundle, const struct apply *where, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct apply apply = *where;
	apply_items items = { 0 };
	if (bundle->results[BUNDLE_CONFLICT])
		return fail(err, ERR_CONFLICT, "%zu changes are conflicts in '%s'",
			bundle->results[BUNDLE_CONFLICT], where->name);
	for (size_t i = 0; i < bundle->changes.count; i++)
		if (bundle->changes.items[i].result == BUNDLE_TAKE)
			vec_push(&arena, &items, bundle->changes.items[i].item);
	if (!items.count)
		return 0;
	apply.source = bundle->tree;
	apply.moves = true;
	apply.since = bundle->since;
	return apply_changes(&apply, &items, err);
}
