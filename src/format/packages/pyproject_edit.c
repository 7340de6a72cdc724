#include "format/packages/pyproject_edit.h"

#include "format/packages/requirements.h"
#include "format/text/toml_lite.h"

#define HINT "edit pyproject.toml by hand, and leave it out here: --no-persist, \"persist\": false"

struct element { /* a string of the array, quotes included */
	size_t start, end;
	const char *name; /* normalised; NULL: not a requirement */
	const char *specifier;
	bool has_marker;
};
/* Where things are in the text; SIZE_MAX: nowhere. */
struct layout {
	struct str text;
	struct arena *arena;
	const char *newline;
	size_t open, close; /* of the array: after '[', at ']' */
	size_t insert;	    /* after the last statement of the project's table */
	bool is_dotted;	    /* that is project.KEY = … in the top table */
	bool is_odd;	    /* dependencies, or the project itself, written in another way */
	VEC(struct element) elements;
};

/* Whether the entry is one of `key` of the project, however the file writes it. */
static bool is_of_project(const struct toml_entry *entry, const char *key)
{
	if (!strcmp(entry->table, "project"))
		return !strcmp(entry->key, key);
	return !entry->table[0] && !strncmp(entry->key, "project.", 8) &&
	       !strcmp(entry->key + 8, key);
}

static void add_element(struct layout *l, const struct toml_entry *entry)
{
	requirement_list list = { 0 };
	struct error ignored;
	struct element element = { entry->start, entry->end, NULL, "", false };
	if (!requirements_parse(str_from(entry->text), l->arena, &list, &ignored) &&
		list.count == 1 && list.items[0].name) {
		element.name = list.items[0].name;
		element.specifier = list.items[0].specifier ? list.items[0].specifier : "";
		element.has_marker = list.items[0].marker != NULL;
	}
	vec_push(l->arena, &l->elements, element);
}

static size_t line_end(struct str text, size_t at)
{
	while (at < text.len && text.data[at] != '\n')
		at++;
	return at;
}

/* A key of the project: in its table, or project.KEY in the top table. */
static void take_member(struct layout *l, const struct toml_statement *statement,
	const char *member, const toml_list *entries)
{
	if (!strcmp(member, "dependencies") && l->text.data[statement->start] == '[') {
		l->open = statement->start + 1;
		l->close = statement->end - 1;
		for (size_t i = statement->first; i < statement->behind; i++) {
			const struct toml_entry *entry = &entries->items[i];
			if (entry->is_string && is_of_project(entry, "dependencies"))
				add_element(l, entry);
			else /* but for "[]": not a requirement */
				l->is_odd |= entry->end != 0;
		}
	}
	l->insert = line_end(l->text, statement->end);
	l->is_dotted = member != statement->key;
}

static void find_layout(
	struct layout *l, const toml_list *entries, const toml_statements *statements)
{
	bool is_top = true, is_in_project = false;
	for (size_t i = 0; i < statements->count; i++) {
		const struct toml_statement *one = &statements->items[i];
		const char *key = one->key;
		bool is_project = !strcmp(key ? key : one->table, "project");
		if (!key) {
			is_top = false;
			is_in_project = is_project && !one->is_list;
			l->is_odd |= is_project && one->is_list;
			if (is_in_project)
				l->insert = line_end(l->text, one->end);
			continue;
		}
		l->is_odd |= is_top && is_project;
		if (is_in_project)
			take_member(l, one, key, entries);
		else if (is_top && !strncmp(key, "project.", 8))
			take_member(l, one, key + 8, entries);
	}
}

static int pyproject_edit_refuse(struct error *err, const char *why)
{
	return fail_hint(err, ERR_INVALID, HINT, "pyproject.toml: %s", why);
}

/* Whether `project` has that key with that value somewhere. */
static bool has_entry(const toml_list *entries, const char *key, const char *text)
{
	for (size_t i = 0; i < entries->count; i++)
		if (is_of_project(&entries->items[i], key) &&
			(!text || !strcmp(entries->items[i].text, text)))
			return true;
	return false;
}

static int read_layout(struct str text, struct arena *arena, struct layout *l, struct error *err)
{
	toml_statements statements = { 0 };
	toml_list entries = { 0 };
	*l = (struct layout){ .text = text,
		.arena = arena,
		.open = SIZE_MAX,
		.close = SIZE_MAX,
		.insert = SIZE_MAX,
		.newline = "\n" };
	if (toml_parse_statements(text, arena, &entries, &statements, err))
		return error_context(err, "pyproject.toml");
	const char *end = text.len ? memchr(text.data, '\n', text.len) : NULL;
	if (end && end > text.data && end[-1] == '\r')
		l->newline = "\r\n";
	find_layout(l, &entries, &statements);
	if (has_entry(&entries, "dynamic", "dependencies"))
		return pyproject_edit_refuse(err, "project.dependencies is dynamic");
	if (l->is_odd || (l->open == SIZE_MAX && has_entry(&entries, "dependencies", NULL)))
		return pyproject_edit_refuse(
			err, "project.dependencies is not a plain array of [project]");
	return 0;
}

/* ---- changes: pieces of the text are copied, others put in their place ---- */

/* As TOML writes it. */
static void print_string(struct buf *out, const char *text)
{
	bool is_literal = strchr(text, '"') && !strchr(text, '\'');
	char quote = is_literal ? '\'' : '"';
	buf_char(out, quote);
	for (; *text; text++) {
		if (!is_literal && (*text == '"' || *text == '\\'))
			buf_char(out, '\\');
		buf_char(out, *text);
	}
	buf_char(out, quote);
}

static void pyproject_edit_copy(struct buf *out, struct str text, size_t from, size_t to)
{
	buf_append(out, text.data + from, to - from);
}

static size_t line_start(struct str text, size_t at)
{
	while (at > 0 && text.data[at - 1] != '\n')
		at--;
	return at;
}

static size_t skip_back(struct str text, size_t at)
{
	while (at > 0 && (text.data[at - 1] == ' ' || text.data[at - 1] == '\t'))
		at--;
	return at;
}

/* Behind the blanks and comma that follow an element. */
static size_t after_comma(struct str text, size_t at, bool *has_comma)
{
	size_t next = at;
	while (next < text.len && strchr(" \t\r\n", text.data[next]) && text.data[next])
		next++;
	*has_comma = next < text.len && text.data[next] == ',';
	return *has_comma ? next + 1 : at;
}

/* Nothing but blanks, and perhaps a comment, up to the end of the line, which is *end. */
static bool is_line_end(struct str text, size_t at, size_t *end)
{
	while (at < text.len && (text.data[at] == ' ' || text.data[at] == '\t'))
		at++;
	if (at < text.len && text.data[at] == '#')
		while (at < text.len && text.data[at] != '\n' && text.data[at] != '\r')
			at++;
	*end = at;
	return at == text.len || text.data[at] == '\n' || text.data[at] == '\r';
}

/* Appends an entry to an array that has some. */
static void append_entry(const struct layout *l, const char *requirement, struct buf *out)
{
	const struct element *last = &l->elements.items[l->elements.count - 1];
	size_t start = line_start(l->text, last->start), blanks = skip_back(l->text, last->start);
	bool is_own_line = start == blanks && start >= l->open, has_comma;
	size_t next = after_comma(l->text, last->end, &has_comma), end = next;
	pyproject_edit_copy(out, l->text, 0, last->end);
	if (!has_comma)
		buf_char(out, ',');
	else
		pyproject_edit_copy(out, l->text, last->end, next);
	if (is_own_line && is_line_end(l->text, next, &end) && end < l->close)
		pyproject_edit_copy(out, l->text, next, end);
	else
		end = next;
	buf_text(out, is_own_line ? l->newline : " ");
	if (is_own_line)
		pyproject_edit_copy(out, l->text, start, last->start);
	print_string(out, requirement);
	/* A comma at the end of the last line stays the style of the file. */
	if (has_comma)
		buf_char(out, ',');
	pyproject_edit_copy(out, l->text, end, l->text.len);
}

static void fill_array(const struct layout *l, const char *requirement, struct buf *out)
{
	size_t start = line_start(l->text, l->close);
	bool is_long = start > l->open; /* ']' has a line of its own */
	pyproject_edit_copy(out, l->text, 0, is_long ? start : l->close);
	if (is_long)
		buf_text(out, "    ");
	print_string(out, requirement);
	if (is_long)
		buf_printf(out, ",%s", l->newline);
	pyproject_edit_copy(out, l->text, is_long ? start : l->close, l->text.len);
}

static void add_key(const struct layout *l, const char *requirement, struct buf *out)
{
	size_t at = l->insert;
	bool has_return = at > 0 && l->text.data[at - 1] == '\r';
	pyproject_edit_copy(out, l->text, 0, at);
	if (at < l->text.len) /* the line's end */
		pyproject_edit_copy(out, l->text, at, at + 1);
	else
		buf_text(out, has_return ? "\n" : l->newline);
	buf_printf(out, "%sdependencies = [", l->is_dotted ? "project." : "");
	print_string(out, requirement);
	buf_printf(out, "]%s", l->newline);
	if (at < l->text.len)
		pyproject_edit_copy(out, l->text, at + 1, l->text.len);
}

static void add_project(
	const struct layout *l, const char *requirement, const char *python, struct buf *out)
{
	pyproject_edit_copy(out, l->text, 0, l->text.len);
	if (l->text.len)
		buf_printf(out, "%s%s", l->text.data[l->text.len - 1] == '\n' ? "" : l->newline,
			l->newline);
	buf_printf(out, "[project]%sname = \"workspace\"%sversion = \"0.1.0\"%s", l->newline,
		l->newline, l->newline);
	if (python)
		buf_printf(out, "requires-python = \">=%s\"%s", python, l->newline);
	buf_printf(out, "dependencies = [%s    ", l->newline);
	print_string(out, requirement);
	buf_printf(out, ",%s]%s", l->newline, l->newline);
}

static void add_one(const struct layout *l, const struct requirement *wanted, const char *python,
	struct buf *out)
{
	const struct element *same = NULL;
	for (size_t i = 0; i < l->elements.count; i++) {
		const struct element *element = &l->elements.items[i];
		if (element->name && !strcmp(element->name, wanted->name) &&
			(!same || (same->has_marker && !element->has_marker)))
			same = element;
	}
	bool is_replaced = same && (wanted->specifier[0] || wanted->marker);
	if (same) {
		pyproject_edit_copy(out, l->text, 0, is_replaced ? same->start : l->text.len);
		if (is_replaced) {
			print_string(out, wanted->text);
			pyproject_edit_copy(out, l->text, same->end, l->text.len);
		}
	} else if (l->elements.count)
		append_entry(l, wanted->text, out);
	else if (l->open != SIZE_MAX)
		fill_array(l, wanted->text, out);
	else if (l->insert != SIZE_MAX)
		add_key(l, wanted->text, out);
	else
		add_project(l, wanted->text, python, out);
}

/* Takes an entry out: the line, when it has one of its own. */
static void remove_one(const struct layout *l, size_t index, struct buf *out)
{
	const struct element *element = &l->elements.items[index];
	size_t start = line_start(l->text, element->start), end;
	bool has_comma;
	size_t next = after_comma(l->text, element->end, &has_comma);
	if (start == skip_back(l->text, element->start) && start >= l->open &&
		is_line_end(l->text, next, &end) && end < l->close) {
		end += end < l->text.len && l->text.data[end] == '\r';
		end += end < l->text.len && l->text.data[end] == '\n';
		pyproject_edit_copy(out, l->text, 0, start);
		pyproject_edit_copy(out, l->text, end, l->text.len);
		return;
	}
	start = element->start;
	if (has_comma)
		while (next < l->close && (l->text.data[next] == ' ' || l->text.data[next] == '\t'))
			next++;
	else if (index) /* the last one: the comma before it goes */
		start = l->elements.items[index - 1].end;
	pyproject_edit_copy(out, l->text, 0, start);
	pyproject_edit_copy(out, l->text, next, l->text.len);
}

static int check_result(struct str old, struct str text, struct arena *arena, struct error *err)
{
	toml_list entries = { 0 };
	struct error why;
	if (text.len <= TOML_MAX && !toml_parse(text, arena, &entries, &why))
		return 0;
	return text.len > TOML_MAX || old.len > TOML_MAX
		       ? fail(err, ERR_LIMIT, "pyproject.toml is too large")
		       : pyproject_edit_refuse(
				 err, "the array of dependencies is too unusual to be edited");
}

int pyproject_add(struct str text, const text_list *requirements, const char *python,
	struct arena *arena, struct buf *out, struct error *err)
{
	struct str now = text;
	for (size_t i = 0; i < requirements->count; i++) {
		requirement_list list = { 0 };
		struct layout layout;
		auto_buf struct buf next = buf_empty(TOML_MAX + 65536);
		if (requirements_parse(str_from(requirements->items[i]), arena, &list, err) ||
			read_layout(now, arena, &layout, err))
			return -1;
		if (list.count != 1 || !list.items[0].name)
			return fail(err, ERR_INVALID, "'%s' does not name a package",
				requirements->items[i]);
		add_one(&layout, &list.items[0], python, &next);
		now = (struct str){ arena_bytes(arena, next.data ? next.data : "", next.len),
			next.len };
		if (check_result(text, now, arena, err))
			return -1;
	}
	buf_append(out, now.data, now.len);
	return 0;
}

int pyproject_remove(struct str text, const text_list *names, struct arena *arena, struct buf *out,
	struct error *err)
{
	struct str now = text;
	struct layout layout;
	size_t name = 0;
	if (read_layout(now, arena, &layout, err))
		return -1;
	while (name < names->count) {
		auto_buf struct buf next = buf_empty(TOML_MAX + 65536);
		size_t i = 0;
		while (i < layout.elements.count &&
			(!layout.elements.items[i].name ||
				strcmp(layout.elements.items[i].name, names->items[name])))
			i++;
		if (i == layout.elements.count) {
			name++;
			continue;
		}
		remove_one(&layout, i, &next);
		now = (struct str){ arena_bytes(arena, next.data ? next.data : "", next.len),
			next.len };
		if (check_result(text, now, arena, err) || read_layout(now, arena, &layout, err))
			return -1;
	}
	buf_append(out, now.data, now.len);
	return 0;
}
