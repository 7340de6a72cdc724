#include "format/packages/package_edit.h"

#include "format/text/json_read.h"

#define SECTIONS 3
static const char *const sections[SECTIONS] = { "dependencies", "devDependencies",
	"optionalDependencies" };

struct member {
	struct str key; /* without quotes, as written */
	size_t start;	/* of the key's quote */
	size_t value, end;
};
typedef VEC(struct member) member_list;
struct object {
	size_t open, close; /* the braces */
	member_list members;
};
struct change { /* bytes start … end become `text` */
	size_t start, end;
	const char *text;
	size_t order; /* of two at one place */
};
struct edit {
	struct str text;
	struct arena *arena;
	const char *newline;
	VEC(struct change) changes;
};

/* ---- looking through the text, which is JSON, perhaps with a comma after the last member ---- */

static char at(const struct edit *e, size_t i)
{
	return i < e->text.len ? e->text.data[i] : '\0';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_space(const struct edit *e, size_t i)
{
	while (is_space(at(e, i)))
		i++;
	return i;
}

static size_t skip_string(const struct edit *e, size_t i)
{
	for (i++; i < e->text.len && at(e, i) != '"'; i++)
		if (at(e, i) == '\\')
			i++;
	return i < e->text.len ? i + 1 : e->text.len;
}

static size_t skip_value(const struct edit *e, size_t i)
{
	size_t depth = 0;
	while (i < e->text.len) {
		char c = at(e, i);
		if (c == '"')
			i = skip_string(e, i);
		else if (c == '{' || c == '[') {
			depth++;
			i++;
		} else if (c == '}' || c == ']') {
			if (depth)
				i++;
			if (!depth || !--depth)
				return i;
		} else if (!depth && (c == ',' || is_space(c)))
			return i;
		else
			i++;
		if (!depth && c == '"')
			return i;
	}
	return i;
}

/* The object that begins at `open`; false: there is none. */
static bool read_object(const struct edit *e, size_t open, struct object *object)
{
	size_t i = open + 1;
	*object = (struct object){ .open = open };
	if (at(e, open) != '{')
		return false;
	for (;;) {
		struct member m;
		i = skip_space(e, i);
		if (at(e, i) == ',') {
			i++;
			continue;
		}
		if (at(e, i) != '"')
			break;
		m.start = i;
		i = skip_string(e, i);
		m.key = (struct str){ e->text.data + m.start + 1,
			i > m.start + 1 ? i - m.start - 2 : 0 };
		i = skip_space(e, i);
		if (at(e, i) != ':')
			return false;
		m.value = skip_space(e, i + 1);
		m.end = i = skip_value(e, m.value);
		vec_push(e->arena, &object->members, m);
	}
	object->close = i;
	return at(e, i) == '}';
}

static const struct member *package_edit_find(const struct object *object, const char *key)
{
	for (size_t i = 0; i < object->members.count; i++)
		if (str_is(object->members.items[i].key, key))
			return &object->members.items[i];
	return NULL;
}

/* 0: there is no such member. */
static int read_member(const struct edit *e, const struct object *from, const char *key,
	struct object *object, struct error *err)
{
	const struct member *m = package_edit_find(from, key);
	if (!m)
		return 0;
	if (!read_object(e, m->value, object))
		return fail(err, ERR_INVALID, "package.json: '%s' is not an object", key);
	return 1;
}

/* ---- what is changed ---- */

static void replace(struct edit *e, size_t start, size_t end, const char *text)
{
	vec_push(e->arena, &e->changes, (struct change){ start, end, text, e->changes.count });
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *one = a, *other = b;
	if (one->start != other->start)
		return one->start < other->start ? -1 : 1;
	return one->order < other->order ? -1 : one->order > other->order;
}

static int package_edit_print(struct edit *e, struct buf *out, struct error *err)
{
	size_t from = 0, before = out->len;
	if (e->changes.count > 1)
		qsort(e->changes.items, e->changes.count, sizeof *e->changes.items,
			compare_changes);
	for (size_t i = 0; i < e->changes.count; i++) {
		const struct change *c = &e->changes.items[i];
		buf_append(out, e->text.data + from, c->start - from);
		buf_text(out, c->text);
		from = c->end;
	}
	buf_append(out, e->text.data + from, e->text.len - from);
	if (!out->overflow)
		return 0;
	out->len = before;
	return fail(err, ERR_LIMIT, "package.json would be too large");
}

/* The white space before the first member, when that begins a line; else NULL. */
static const char *indent_of(const struct edit *e, const struct object *object)
{
	if (!object->members.count)
		return NULL;
	size_t first = object->members.items[0].start, i = first;
	while (i > object->open + 1 && (at(e, i - 1) == ' ' || at(e, i - 1) == '\t'))
		i--;
	return at(e, i - 1) == '\n' ? arena_bytes(e->arena, e->text.data + i, first - i) : NULL;
}

static bool is_sorted(const struct object *object)
{
	for (size_t i = 1; i < object->members.count; i++) {
		struct str a = object->members.items[i - 1].key, b = object->members.items[i].key;
		size_t len = a.len < b.len ? a.len : b.len;
		int order = memcmp(a.data, b.data, len);
		if (order > 0 || (!order && a.len > b.len))
			return false;
	}
	return true;
}

static const char *print_member(const struct edit *e, const struct node_spec *spec)
{
	return arena_printf(e->arena, "\"%s\": \"%s\"", spec->name, spec->range);
}

/* Into an object that has members. */
static void insert(struct edit *e, const struct object *object, const struct node_spec *spec)
{
	const char *indent = indent_of(e, object), *text = print_member(e, spec);
	const char *between = indent ? arena_printf(e->arena, ",%s%s", e->newline, indent) : ", ";
	size_t len = strlen(spec->name), i = is_sorted(object) ? 0 : object->members.count;
	for (; i < object->members.count; i++) {
		struct str key = object->members.items[i].key;
		int order = memcmp(key.data, spec->name, key.len < len ? key.len : len);
		if (order > 0 || (!order && key.len > len))
			break;
	}
	if (i < object->members.count) {
		size_t start = object->members.items[i].start;
		replace(e, start, start, arena_printf(e->arena, "%s%s", text, between));
	} else {
		size_t end = object->members.items[i - 1].end;
		replace(e, end, end, arena_printf(e->arena, "%s%s", between, text));
	}
}

/* An object of these, at a place that is indented by `base`. */
static const char *print_object(
	const struct edit *e, const node_specs *specs, const char *base, const char *step)
{
	auto_buf struct buf out = buf_empty(PACKAGE_EDIT_MAX);
	buf_char(&out, '{');
	for (size_t i = 0; i < specs->count; i++) {
		if (i)
			buf_char(&out, ',');
		if (base)
			buf_printf(&out, "%s%s%s", e->newline, base, step);
		else if (i)
			buf_char(&out, ' ');
		buf_text(&out, print_member(e, &specs->items[i]));
	}
	if (base)
		buf_printf(&out, "%s%s", e->newline, base);
	buf_char(&out, '}');
	return arena_bytes(e->arena, out.data, out.len);
}

/* Packages that aren't listed yet, sorted. */
static int insert_all(
	struct edit *e, const struct object *root, const node_specs *specs, struct error *err)
{
	struct object section = { 0 };
	const char *indent = indent_of(e, root), *step = indent && indent[0] ? indent : "  ";
	int found = read_member(e, root, sections[0], &section, err);
	if (found < 0)
		return -1;
	if (found && section.members.count) {
		for (size_t i = 0; i < specs->count; i++)
			insert(e, &section, &specs->items[i]);
		return 0;
	}
	bool is_empty = !root->members.count;
	const char *text = print_object(e, specs, is_empty ? "  " : indent, step);
	if (found)
		replace(e, section.open, section.close + 1, text);
	else if (is_empty)
		replace(e, root->open + 1, root->close,
			arena_printf(e->arena, "%s  \"%s\": %s%s", e->newline, sections[0], text,
				e->newline));
	else {
		size_t end = root->members.items[root->members.count - 1].end;
		replace(e, end, end,
			indent ? arena_printf(e->arena, ",%s%s\"%s\": %s", e->newline, indent,
					 sections[0], text)
			       : arena_printf(e->arena, ", \"%s\": %s", sections[0], text));
	}
	return 0;
}

/* ---- the edits ---- */

static int open_text(struct edit *e, struct str text, struct object *root, struct error *err)
{
	struct json_value *value;
	if (text.len > PACKAGE_EDIT_MAX)
		return fail(err, ERR_LIMIT, "package.json has more than 256K");
	e->text = text.len ? text : STR("{}\n");
	if (json_read(e->text, e->arena, &value, err) < 0)
		return error_context(err, "package.json");
	e->newline = memmem(e->text.data, e->text.len, "\r\n", 2) ? "\r\n" : "\n";
	return read_object(e, skip_space(e, 0), root)
		       ? 0
		       : fail(err, ERR_INVALID, "package.json is not an object");
}

/* The new range wherever it is listed. */
static int set_range(struct edit *e, const struct object *root, const struct node_spec *spec,
	bool *is_listed, struct error *err)
{
	for (size_t i = 0; i < SECTIONS; i++) {
		struct object section;
		int found = read_member(e, root, sections[i], &section, err);
		if (found < 0)
			return -1;
		const struct member *m = found ? package_edit_find(&section, spec->name) : NULL;
		*is_listed |= m != NULL;
		if (m && spec->range)
			replace(e, m->value, m->end, arena_printf(e->arena, "\"%s\"", spec->range));
	}
	return 0;
}

static int compare_specs(const void *a, const void *b)
{
	return strcmp(((const struct node_spec *)a)->name, ((const struct node_spec *)b)->name);
}

int package_json_add(struct str text, const node_specs *specs, struct arena *arena, struct buf *out,
	struct error *err)
{
	struct edit e = { .arena = arena };
	struct object root;
	node_specs added = { 0 };
	if (open_text(&e, text, &root, err))
		return -1;
	for (size_t i = 0; i < specs->count; i++) {
		struct node_spec spec = specs->items[i];
		bool is_listed = false;
		if (set_range(&e, &root, &spec, &is_listed, err))
			return -1;
		if (!spec.range)
			spec.range = "latest";
		if (!is_listed)
			vec_push(arena, &added, spec);
	}
	if (added.count > 1)
		qsort(added.items, added.count, sizeof *added.items, compare_specs);
	if (added.count && insert_all(&e, &root, &added, err))
		return -1;
	return package_edit_print(&e, out, err);
}

static bool is_named(const text_list *names, struct str key)
{
	for (size_t i = 0; i < names->count; i++)
		if (str_is(key, names->items[i]))
			return true;
	return false;
}

/* Members that follow each other go as one. */
static void remove_members(struct edit *e, const struct object *object, const text_list *names)
{
	const member_list *all = &object->members;
	for (size_t first = 0, next; first < all->count; first = next) {
		next = first + 1;
		if (!is_named(names, all->items[first].key))
			continue;
		while (next < all->count && is_named(names, all->items[next].key))
			next++;
		if (next < all->count)
			replace(e, all->items[first].start, all->items[next].start, "");
		else if (first)
			replace(e, all->items[first - 1].end, all->items[next - 1].end, "");
		else
			replace(e, object->open + 1, object->close, "");
	}
}

int package_json_remove(struct str text, const text_list *names, struct arena *arena,
	struct buf *out, struct error *err)
{
	struct edit e = { .arena = arena };
	struct object root;
	if (open_text(&e, text, &root, err))
		return -1;
	for (size_t i = 0; i < SECTIONS; i++) {
		struct object section;
		int found = read_member(&e, &root, sections[i], &section, err);
		if (found < 0)
			return -1;
		if (found)
			remove_members(&e, &section, names);
	}
	return package_edit_print(&e, out, err);
}

int node_lock_set_ranges(struct str lock, const node_specs *specs, struct arena *arena,
	struct buf *out, struct error *err)
{
	static const char *const projects[] = { "workspaces", "packages" };
	struct edit e = { .arena = arena, .text = lock };
	struct object root, all, project = { 0 };
	bool is_listed = false;
	int found = 0;
	if (lock.len > NODE_LOCK_MAX || !read_object(&e, skip_space(&e, 0), &root))
		return fail(err, ERR_INVALID, "the lock is not an object");
	for (size_t i = 0; i < 2 && !found; i++)
		if ((found = read_member(&e, &root, projects[i], &all, err)) > 0)
			found = read_member(&e, &all, "", &project, err);
	for (size_t i = 0; found > 0 && i < specs->count; i++)
		if (set_range(&e, &project, &specs->items[i], &is_listed, err))
			return -1;
	return found < 0 ? -1 : package_edit_print(&e, out, err);
}
