/* The YAML reader: an error with its line, or a tree that, written in quotes, reads as the same. */
#include <string.h>
#include "base/buf.h"
#include "format/text/yaml.h"
#include "fuzz.h"

static void print_quoted(const char *text, struct buf *out)
{
	buf_char(out, '"');
	for (; *text; text++) {
		if (*text == '\n' || *text == '\t')
			buf_text(out, *text == '\n' ? "\\n" : "\\t");
		else if (*text == '"' || *text == '\\')
			buf_printf(out, "\\%c", *text);
		else
			buf_char(out, *text);
	}
	buf_char(out, '"');
}

static void print(const struct yaml_value *v, int depth, struct buf *out)
{
	size_t count = 0;

	check(depth <= YAML_DEPTH_MAX && v->line > 0);
	for (const struct yaml_value *m = v->first; m; m = m->next, count++) {
		check((m->key != NULL) == (v->kind == YAML_MAP) && m->line >= v->line);
		buf_printf(out, "%*s", depth, "");
		if (m->key)
			print_quoted(m->key, out);
		buf_text(out, m->key ? ": " : "- ");
		if (m->kind == YAML_SCALAR)
			print_quoted(m->text, out);
		else if (m->kind == YAML_NULL)
			buf_char(out, '~');
		else if (m->kind == YAML_LIST && !m->first)
			buf_text(out, "[]");
		buf_char(out, '\n');
		if (m->first)
			print(m, depth + 1, out);
	}
	check(count == v->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf once = { 0 }, twice = { 0 };
	struct yaml_value *root = NULL;
	struct error err = { 0 };

	if (yaml_read((struct str){ (const char *)data, size }, &arena, &root, &err) < 0) {
		check(!root && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
		check(strncmp(err.text, "line ", 5) == 0);
		return 0;
	}
	if (root->kind == YAML_NULL)
		return 0;
	buf_init(&once, BUF_MAX_DEFAULT);
	buf_init(&twice, BUF_MAX_DEFAULT);
	print(root, 0, &once);
	check(yaml_read((struct str){ once.data, once.len }, &arena, &root, &err) == 0);
	print(root, 0, &twice);
	check(strcmp(once.data, twice.data) == 0);
	return 0;
}
