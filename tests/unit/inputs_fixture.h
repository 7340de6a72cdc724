/* inputs_fixture.h -- a tree of files in memory, which is given to a judge as its inputs. */
#pragma once
#include <string.h>
#include "base/buf.h"
#include "policy/inputs.h"

struct fixture_file {
	const char *path, *text; /* NULL: a directory; "@": a link */
	size_t len;		 /* 0: that of the text */
};

static bool fixture_is_below(const char *path, const char *dir, const char **name)
{
	size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	*name = path + len + 1;
	return strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* Each name once, as the first file of a directory tells it. */
static void fixture_names(
	struct buf *out, const struct fixture_file *files, size_t count, const char *dir)
{
	for (size_t i = 0; i < count; i++) {
		const char *name, *other;
		bool is_known = false;

		if (!fixture_is_below(files[i].path, dir, &name))
			continue;
		size_t len = strcspn(name, "/");
		for (size_t k = 0; k < i; k++)
			is_known |= fixture_is_below(files[k].path, dir, &other) &&
				    strcspn(other, "/") == len && strncmp(name, other, len) == 0;
		bool is_directory = name[len] || !files[i].text;
		if (!is_known)
			buf_printf(out, "%.*s%s\n", (int)len, name, is_directory ? "/" : "");
	}
}

static void fixture_give(
	struct policy_inputs *inputs, const struct fixture_file *files, size_t count)
{
	struct policy_input *input;

	while ((input = policy_inputs_next(inputs))) {
		auto_buf struct buf names = buf_empty(65536);
		const struct fixture_file *file = NULL;

		for (size_t i = 0; i < count && !file; i++)
			if (strcmp(files[i].path, input->path) == 0)
				file = &files[i];
		fixture_names(&names, files, count, input->path);
		bool is_directory = names.len || (file && !file->text);
		const char *text = file ? file->text : NULL;
		struct str read = { text, file && file->len ? file->len : text ? strlen(text) : 0 };

		if (!file && !is_directory)
			policy_inputs_fail(input, ERR_NOT_FOUND);
		else if (input->kind == POLICY_INPUT_TYPE)
			policy_inputs_give(inputs, input,
				str_from(is_directory		  ? "directory"
					 : strcmp(text, "@") == 0 ? "link"
								  : "file"));
		else if (is_directory != (input->kind == POLICY_INPUT_NAMES))
			policy_inputs_fail(input, ERR_INVALID);
		else if (is_directory)
			policy_inputs_give(inputs, input,
				(struct str){ arena_bytes(inputs->arena,
						      names.data ? names.data : "", names.len),
					names.len });
		else
			policy_inputs_give(inputs, input, read);
	}
}
