/* Unified diffs of lines: the shortest edit script (Myers), bounded. Where the texts differ in too
 * much, everything between the lines that are equal at both ends is replaced. */
#include "trees/stacks/internal.h"

#define EDITS_MAX 1500 /* memory for the search grows with its square */
#define CONTEXT 3

typedef VEC(struct str) line_list;

struct script {
	line_list a, b;
	char *is_removed, *is_added; /* one flag a line */
	struct arena arena;
};

static void split(struct str text, struct arena *arena, line_list *lines)
{
	while (text.len) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) + 1 : text.len;
		vec_push(arena, lines, (struct str){ text.data, len });
		text.data += len;
		text.len -= len;
	}
}

static bool is_same_line(const struct script *script, size_t x, size_t y)
{
	return str_equal(script->a.items[x], script->b.items[y]);
}

/* The furthest points of each number of edits: row d has 2d + 1 of them. */
struct search {
	int *rows[EDITS_MAX + 1];
	int depth; /* the last row; -1: too many edits */
};

static int best_start(const struct search *search, int d, int k)
{
	const int *row = d ? search->rows[d - 1] + (d - 1) : NULL;
	if (!d)
		return 0;
	if (k == -d || (k != d && row[k - 1] < row[k + 1]))
		return row[k + 1];
	return row[k - 1] + 1;
}

static void find(struct script *script, size_t first, size_t n, size_t m, struct search *search)
{
	search->depth = -1;
	for (int d = 0; d <= EDITS_MAX; d++) {
		int *row = arena_array(&script->arena, (size_t)(2 * d + 1), sizeof *row);
		search->rows[d] = row;
		for (int k = -d; k <= d; k += 2) {
			int x = best_start(search, d, k);
			while (x >= 0 && x < (int)n && x - k >= 0 && x - k < (int)m &&
				is_same_line(script, first + (size_t)x, first + (size_t)(x - k)))
				x++;
			row[d + k] = x;
			if (x >= (int)n && x - k >= (int)m) {
				search->depth = d;
				return;
			}
		}
	}
}

static void mark(struct script *script, size_t first, size_t n, size_t m)
{
	struct search search;
	int x = (int)n, y = (int)m;
	find(script, first, n, m, &search);
	if (search.depth < 0) {
		memset(script->is_removed + first, 1, n);
		memset(script->is_added + first, 1, m);
		return;
	}
	for (int d = search.depth; d > 0; d--) {
		int k = x - y;
		const int *row = search.rows[d - 1] + (d - 1);
		bool is_down = k == -d || (k != d && row[k - 1] < row[k + 1]);
		int old_k = is_down ? k + 1 : k - 1;
		x = row[old_k];
		y = x - old_k;
		if (is_down)
			script->is_added[first + (size_t)y] = 1;
		else
			script->is_removed[first + (size_t)x] = 1;
	}
}

static void print_line(struct buf *out, char sign, struct str line)
{
	buf_char(out, sign);
	buf_append(out, line.data, line.len);
	if (!line.len || line.data[line.len - 1] != '\n')
		buf_text(out, "\n\\ No newline at end of file\n");
}

struct hunk {
	size_t a, b, a_end, b_end;
};

/* From x, y, where the next change is, until more lines are equal than two contexts have. */
static void extend(const struct script *script, size_t x, size_t y, struct hunk *hunk)
{
	size_t back = x < CONTEXT ? x : CONTEXT, equal = 0;
	*hunk = (struct hunk){ x - back, y - back, x, y };
	while (x < script->a.count || y < script->b.count) {
		if (x < script->a.count && script->is_removed[x]) {
			x++;
			equal = 0;
		} else if (y < script->b.count && script->is_added[y]) {
			y++;
			equal = 0;
		} else {
			if (++equal > 2 * CONTEXT)
				break;
			x++;
			y++;
		}
		if (!equal)
			*hunk = (struct hunk){ hunk->a, hunk->b, x, y };
	}
	for (size_t i = 0; i < CONTEXT && hunk->a_end < script->a.count; i++) {
		hunk->a_end++;
		hunk->b_end++;
	}
}

static void print_range(struct buf *out, char sign, size_t first, size_t end)
{
	size_t count = end - first;
	/* An empty range is named by the line before it. */
	buf_printf(out, " %c%zu", sign, count ? first + 1 : first);
	if (count != 1)
		buf_printf(out, ",%zu", count);
}

static void print_hunk(const struct script *script, const struct hunk *hunk, struct buf *out)
{
	size_t x = hunk->a, y = hunk->b;
	buf_text(out, "@@");
	print_range(out, '-', hunk->a, hunk->a_end);
	print_range(out, '+', hunk->b, hunk->b_end);
	buf_text(out, " @@\n");
	while (x < hunk->a_end || y < hunk->b_end) {
		if (x < hunk->a_end && script->is_removed[x])
			print_line(out, '-', script->a.items[x++]);
		else if (y < hunk->b_end && script->is_added[y])
			print_line(out, '+', script->b.items[y++]);
		else {
			print_line(out, ' ', script->a.items[x++]);
			y++;
		}
	}
}

static void print_script(const struct script *script, struct buf *out)
{
	size_t x = 0, y = 0;
	while (x < script->a.count || y < script->b.count) {
		struct hunk hunk;
		bool is_changed = (x < script->a.count && script->is_removed[x]) ||
				  (y < script->b.count && script->is_added[y]);
		if (!is_changed) {
			x++;
			y++;
			continue;
		}
		extend(script, x, y, &hunk);
		print_hunk(script, &hunk, out);
		x = hunk.a_end;
		y = hunk.b_end;
	}
}

void snapshot_text_diff(struct str before, struct str after, struct buf *out)
{
	struct script script = { 0 };
	size_t first = 0, last = 0;
	arena_init(&script.arena);
	split(before, &script.arena, &script.a);
	split(after, &script.arena, &script.b);
	size_t n = script.a.count, m = script.b.count;
	script.is_removed = arena_alloc(&script.arena, n + 1);
	script.is_added = arena_alloc(&script.arena, m + 1);
	while (first < n && first < m && is_same_line(&script, first, first))
		first++;
	while (last < n - first && last < m - first &&
		is_same_line(&script, n - last - 1, m - last - 1))
		last++;
	mark(&script, first, n - first - last, m - first - last);
	print_script(&script, out);
	arena_done(&script.arena);
}
