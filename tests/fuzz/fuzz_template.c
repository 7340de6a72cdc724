/* Templates: YAML to values by libyaml, values to a template. Bad input is an error with its line;
 * what is read can be merged, checked and printed, and what is printed reads as the same. */
#include <string.h>
#include "format/text/yaml_json.h"
#include "fuzz.h"
#include "model/nouns/template.h"

static void check_tree(const struct json_value *v, int depth)
{
	size_t count = 0;
	check(depth <= YAML_JSON_DEPTH_MAX && v->line > 0);
	for (const struct json_value *one = v->first; one; one = one->next, count++) {
		check((one->key.data != NULL) == (v->kind == JSON_OBJECT));
		check_tree(one, depth + 1);
	}
	check(count == v->count);
}

static void check_printed(const struct template *t, struct arena *arena)
{
	char before[2 * SHA256_LEN + 1], after[2 * SHA256_LEN + 1];
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&text, false);
	struct json_value *v;
	struct template again;
	struct error err;
	record_print_given(&j, NULL, &template_record, t);
	json_finish(&j);
	check(!json_read((struct str){ text.data, text.len }, arena, &v, &err));
	check(!template_read(v, arena, &again, &err));
	template_hash(t, before);
	template_hash(&again, after);
	check(!strcmp(before, after));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *root = NULL;
	struct template t, child = { .name = "child" };
	struct workspace wanted = { 0 };
	text_list warnings = { 0 };
	pair_list files;
	struct error err = { 0 };

	if (yaml_json_read((struct str){ (const char *)data, size }, &arena, &root, &err)) {
		check(!root && (err.code == ERR_INVALID || err.code == ERR_LIMIT));
		check(strncmp(err.text, "line ", 5) == 0);
		return 0;
	}
	check_tree(root, 1);
	if (template_read(root, &arena, &t, &err)) {
		check(err.code == ERR_INVALID && err.text[0]);
		return 0;
	}
	check(!template_check_name(t.name, &err));
	template_extend(&child, &t, &arena);
	if (template_check(&child, &arena, &warnings, &err))
		check(err.code == ERR_INVALID && err.text[0]);
	template_apply(&t, &arena, &wanted);
	template_files(&t, &arena, &files);
	for (size_t i = 0; i < files.count; i++)
		check(files.items[i].key[0] != '/' && !strstr(files.items[i].key, "/../"));
	check_printed(&t, &arena);
	return 0;
}
