#include "format/http/s3_xml.h"

#include "base/buf.h"
#include "format/text/utf8.h"

struct walk {
	struct str rest;
	char path[S3_XML_PATH_MAX];
	size_t ends[S3_XML_DEPTH_MAX]; /* of the path above each open element */
	unsigned depth;
	bool has_root, is_leaf;
	struct buf text;
	s3_xml_fn *fn;
	void *ctx;
	struct error *err;
};

static int damaged(struct walk *walk, const char *what)
{
	return fail(walk->err, ERR_CORRUPT, "the answer is not valid XML: %s", what);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name_char(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
	       (c && strchr("._:-", c));
}

static void skip(struct str *rest, size_t len)
{
	rest->data += len;
	rest->len -= len;
}

/* Moves past the first `mark`; *before is what lies before it. */
static bool skip_past(struct str *rest, const char *mark, struct str *before)
{
	const char *found = rest->len ? memmem(rest->data, rest->len, mark, strlen(mark)) : NULL;
	if (!found)
		return false;
	*before = (struct str){ rest->data, (size_t)(found - rest->data) };
	skip(rest, before->len + strlen(mark));
	return true;
}

/* ---- text ---- */

static int add_character(struct walk *walk, uint32_t code)
{
	char out[4];
	if (code < 0x20 ? code != '\t' && code != '\n' && code != '\r'
			: (code >= 0xd800 && code < 0xe000) || code > 0x10ffff)
		return damaged(walk, "a character reference has no character");
	buf_append(&walk->text, out, utf8_write(out, code));
	return 0;
}

static bool read_number(struct str name, uint32_t *code)
{
	unsigned base = 10;
	uint32_t value = 0;
	skip(&name, 1);
	if (name.len && name.data[0] == 'x') {
		base = 16;
		skip(&name, 1);
	}
	if (!name.len || name.len > 7)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		int digit = str_hex_digit(name.data[i]);
		if (digit < 0 || (unsigned)digit >= base)
			return false;
		value = value * base + (unsigned)digit;
	}
	*code = value;
	return true;
}

static int add_entity(struct walk *walk, struct str name)
{
	static const struct {
		const char *name;
		char c;
	} known[] = { { "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' },
		{ "apos", '\'' } };
	uint32_t code;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (str_is(name, known[i].name)) {
			buf_char(&walk->text, known[i].c);
			return 0;
		}
	if (name.len && name.data[0] == '#' && read_number(name, &code))
		return add_character(walk, code);
	return damaged(walk, "unknown entity");
}

static int add_text(struct walk *walk, struct str piece)
{
	while (piece.len) {
		struct str plain, name;
		const char *mark = memchr(piece.data, '&', piece.len);
		size_t len = mark ? (size_t)(mark - piece.data) : piece.len;
		plain = (struct str){ piece.data, len };
		buf_append(&walk->text, plain.data, plain.len);
		skip(&piece, len);
		if (!mark)
			break;
		skip(&piece, 1);
		if (!skip_past(&piece, ";", &name) || name.len > 16)
			return damaged(walk, "an entity has no end");
		if (add_entity(walk, name))
			return -1;
	}
	return 0;
}

/* ---- elements ---- */

static int open_element(struct walk *walk, struct str name)
{
	size_t len = strlen(walk->path);
	const char *colon = memrchr(name.data, ':', name.len);
	if (colon)
		skip(&name, (size_t)(colon - name.data) + 1);
	if (walk->depth == S3_XML_DEPTH_MAX)
		return fail(walk->err, ERR_LIMIT, "the answer nests XML elements too deeply");
	if (!walk->depth && walk->has_root)
		return damaged(walk, "two root elements");
	walk->ends[walk->depth++] = len;
	walk->has_root = true;
	if (!name.len || !str_format(walk->path + len, sizeof walk->path - len, "%s%.*s",
				 len ? "/" : "", (int)name.len, name.data))
		return fail(walk->err, ERR_LIMIT, "the answer has an invalid XML name");
	buf_clear(&walk->text);
	walk->is_leaf = true;
	return 0;
}

static int close_element(struct walk *walk)
{
	struct str text = { walk->is_leaf && walk->text.data ? walk->text.data : "",
		walk->is_leaf ? walk->text.len : 0 };
	if (walk->text.overflow)
		return fail(walk->err, ERR_LIMIT, "the answer has too long a text");
	if (memchr(text.data, '\0', text.len))
		return damaged(walk, "a NUL byte");
	if (walk->fn(walk->ctx, walk->path, text, walk->err))
		return -1;
	walk->path[walk->ends[--walk->depth]] = 0;
	walk->is_leaf = false;
	return 0;
}

static int read_close(struct walk *walk, struct str tag)
{
	const char *slash = strrchr(walk->path, '/');
	const char *open = slash ? slash + 1 : walk->path;
	while (tag.len && is_blank(tag.data[tag.len - 1]))
		tag.len--;
	const char *colon = tag.len ? memrchr(tag.data, ':', tag.len) : NULL;
	if (colon)
		skip(&tag, (size_t)(colon - tag.data) + 1);
	if (!walk->depth || !str_is(tag, open))
		return damaged(walk, "an end tag has no start tag");
	return close_element(walk);
}

/* `tag`: what lies between '<' and '>'. An attribute's value with a '>' in it isn't understood. */
static int read_tag(struct walk *walk, struct str tag)
{
	size_t len = 0;
	if (tag.len && tag.data[0] == '/') {
		skip(&tag, 1);
		return read_close(walk, tag);
	}
	bool is_empty = tag.len && tag.data[tag.len - 1] == '/';
	while (len < tag.len && is_name_char(tag.data[len]))
		len++;
	if (!len || (len < tag.len && !is_blank(tag.data[len]) && tag.data[len] != '/'))
		return damaged(walk, "an invalid tag");
	if (open_element(walk, (struct str){ tag.data, len }))
		return -1;
	return is_empty ? close_element(walk) : 0;
}

static int read_markup(struct walk *walk)
{
	struct str piece;
	if (str_starts_with(walk->rest, "<!--")) {
		skip(&walk->rest, 4);
		return skip_past(&walk->rest, "-->", &piece)
			       ? 0
			       : damaged(walk, "a comment has no end");
	}
	if (str_starts_with(walk->rest, "<![CDATA[")) {
		skip(&walk->rest, 9);
		if (!walk->depth || !skip_past(&walk->rest, "]]>", &piece))
			return damaged(walk, "a CDATA section in the wrong place, or without end");
		buf_append(&walk->text, piece.data, piece.len);
		return 0;
	}
	if (str_starts_with(walk->rest, "<?")) {
		if (walk->has_root || !skip_past(&walk->rest, "?>", &piece))
			return damaged(walk, "a processing instruction");
		return 0;
	}
	if (str_starts_with(walk->rest, "<!"))
		return damaged(walk, "a document type is refused");
	skip(&walk->rest, 1);
	if (!skip_past(&walk->rest, ">", &piece))
		return damaged(walk, "a tag has no end");
	return read_tag(walk, piece);
}

static int walk_document(struct walk *walk)
{
	if (str_starts_with(walk->rest, "\xef\xbb\xbf"))
		skip(&walk->rest, 3);
	while (walk->rest.len) {
		const char *mark = memchr(walk->rest.data, '<', walk->rest.len);
		struct str text = { walk->rest.data,
			mark ? (size_t)(mark - walk->rest.data) : walk->rest.len };
		skip(&walk->rest, text.len);
		if (walk->depth ? add_text(walk, text) : str_trim(text).len > 0)
			return walk->depth ? -1 : damaged(walk, "text outside of the root element");
		if (mark && read_markup(walk))
			return -1;
	}
	return walk->depth || !walk->has_root ? damaged(walk, "it ends too early") : 0;
}

int s3_xml_walk(struct str document, s3_xml_fn *fn, void *ctx, struct error *err)
{
	struct walk walk = { .rest = document, .fn = fn, .ctx = ctx, .err = err };
	buf_init(&walk.text, S3_XML_TEXT_MAX);
	int failed = walk_document(&walk);
	buf_done(&walk.text);
	return failed;
}

struct search {
	const char *path, *found;
	struct arena *arena;
};

static int on_element(void *ctx, const char *path, struct str text, struct error *err)
{
	struct search *search = ctx;
	if (!search->found && !strcmp(path, search->path))
		search->found = arena_bytes(search->arena, text.data, text.len);
	return 0;
}

const char *s3_xml_find(struct str document, const char *path, struct arena *arena)
{
	struct search search = { .path = path, .arena = arena };
	struct error ignored;
	return s3_xml_walk(document, on_element, &search, &ignored) ? NULL : search.found;
}

const char *s3_xml_escape(const char *text, struct arena *arena)
{
	static const struct {
		char c;
		const char *entity;
	} escapes[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" },
		{ '\'', "&apos;" } };
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	for (; *text; text++) {
		const char *entity = NULL;
		for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
			if (escapes[i].c == *text)
				entity = escapes[i].entity;
		if (entity)
			buf_text(&out, entity);
		else
			buf_char(&out, *text);
	}
	return arena_bytes(arena, out.data ? out.data : "", out.len);
}
