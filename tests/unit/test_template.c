/* Templates: YAML to values, values to a template, templates merged and put into a workspace. */
#include <string.h>
#include "format/text/yaml_json.h"
#include "model/nouns/template.h"
#include "unit.h"

static int read_text(const char *text, struct arena *arena, struct template *t, struct error *err)
{
	struct json_value *value;
	return yaml_json_read(str_from(text), arena, &value, err) ||
			       template_read(value, arena, t, err)
		       ? -1
		       : 0;
}

static struct template read_good(const char *text, struct arena *arena)
{
	struct template t;
	struct error err;
	if (read_text(text, arena, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static void assert_error(const char *text, const char *expected, const char *hint)
{
	auto_arena struct arena arena = { 0 };
	struct template t;
	struct error err = { 0 };
	if (!read_text(text, &arena, &t, &err))
		fail_msg("'%s' was read", text);
	assert_string_equal(err.text, expected);
	if (hint)
		assert_string_equal(err.hint, hint);
}

static const char seed[] = "# workspace-template.yaml\n"
			   "version: \"1.0\"\n"
			   "name: \"default\"\n"
			   "description: \"Standard Python + Node.js workspace\"\n"
			   "\n"
			   "python:\n"
			   "  version: \"3.12\"\n"
			   "  dependencies:\n"
			   "    - matplotlib>=3.8.0\n"
			   "    - pandas>=2.1.0\n"
			   "nodejs:\n"
			   "  version: \"20\"\n"
			   "  runtime: \"bun\"\n"
			   "  dependencies:\n"
			   "    docx: \"^8.5.0\"\n"
			   "    axios: \"^1.6.0\"\n"
			   "system:\n"
			   "  shell: \"/bin/bash\"\n"
			   "  editor: \"nano\"\n"
			   "security:\n"
			   "  network_enabled: true\n"
			   "  filesystem_readonly: [\"/usr\", \"/lib\", \"/bin\", \"/sbin\"]\n"
			   "  filesystem_writable: [\"/\", \"/tmp\", \"/.cache\"]\n";

static void the_seed_is_read_as_it_is(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct template t = read_good(seed, &arena);
	text_list warnings;
	struct error err;
	assert_string_equal(t.python.version, "3.12");
	assert_int_equal(t.python.dependencies.count, 2);
	assert_string_equal(t.nodejs.dependencies.items[1].value, "^1.6.0");
	assert_string_equal(t.programs.editor, "nano");
	assert_true(t.security.network_enabled);
	assert_int_equal(template_check(&t, &arena, &warnings, &err), 0);
	assert_int_equal(warnings.count, 1);
	struct workspace_network network = { 0 };
	template_network(&t, &arena, &network);
	assert_string_equal(network.mode, "open");
}

static void errors_name_line_and_key(void **state)
{
	assert_error("", "the template is empty", NULL);
	assert_error("version: \"1.0\"\n", "line 1: 'name' is missing", NULL);
	assert_error("name: x\nlimits:\n  memry: 5M\n", "line 3: limits: unknown key 'memry'",
		"did you mean 'memory'?");
	assert_error(
		"name: x\npyton: {}\n", "line 2: unknown key 'pyton'", "did you mean 'python'?");
	assert_error("name: x\npython:\n  version: 3.10\n",
		"line 3: python.version: must be text, not a number", "put it in quotes: \"3.10\"");
	assert_error("name: x\nlimits: {memory: 12X}\n",
		"line 2: limits.memory: '12X' is not a size; try 512M or 1G", NULL);
	assert_error("name: x\npython:\n  dependencies:\n  - a\n  - -r b\n",
		"line 5: python.dependencies[1]: '-r b' is not a dependency: a name is letters, "
		"digits, '-', '_' and '.', and begins and ends with a letter or digit",
		NULL);
	assert_error("name: x\nversion: \"2.0\"\n",
		"line 2: version: unknown version '2.0' of templates",
		"this carrel reads version \"1.0\"");
	assert_error("name: X\n", "line 1: name: 'X' is not the name of a template", NULL);
	assert_error("name: x\nfiles:\n  a/../b: c\n",
		"line 3: files: 'a/../b' is not a relative, normal path", NULL);
	assert_error("name: x\nfiles:\n  .venv/a: c\n",
		"line 3: files: '.venv/a' is made by carrel itself", NULL);
	assert_error("name: x\nnodejs: {dependencies: {a: \"git+ssh://b\"}}\n",
		"line 2: nodejs.dependencies: a: 'git+ssh://b' is not a range of versions, such as "
		"^1.6.0",
		NULL);
	assert_error("name: x\nextends: x\n", "extends: template 'x' extends itself", NULL);
	assert_error("name: x\nnetwork: {mode: some}\n",
		"line 2: network.mode: unknown network mode 'some': none, list or open", NULL);
	assert_error("name: x\nnetwork: {allow: [\"https://example.com/\"]}\n",
		"line 2: network.allow[0]: the entry 'https://example.com/' of a list of hosts: a "
		"host, not a URL or a path, is expected",
		NULL);
}

static void yaml_that_readers_disagree_on_is_refused(void **state)
{
	assert_error("name: yes\n", "line 1: readers of YAML disagree on what 'yes' means", NULL);
	assert_error("a: 0x10\n", "line 1: readers of YAML disagree on what '0x10' means", NULL);
	assert_error("a: 010\n", "line 1: readers of YAML disagree on what '010' means", NULL);
	assert_error("a: 1\na: 2\n", "line 2: the key 'a' is given twice, first in line 1", NULL);
	assert_error("a: !!str b\n", "line 1: unexpected tag 'tag:yaml.org,2002:str'", NULL);
	assert_error("a: *b\n", "line 1: there is no anchor 'b'", NULL);
	assert_error("a: &a [*a]\n", "line 1: the value of anchor 'a' contains itself", NULL);
	assert_error("<<: {a: b}\n", "line 1: merge keys (<<) are not supported", NULL);
	assert_error("a: b\n---\nc: d\n", "line 2: unexpected second document", NULL);
	assert_error("? [a]\n: b\n", "line 1: a key must be text", NULL);
	assert_error("[[[[[[[[[[[[[[[[[[\n", "line 1: nested more than 16 deep", NULL);
	assert_error("a: \"b\n",
		"line 2: while scanning a quoted scalar, found unexpected end of stream", NULL);
	assert_error("\xff", "line 1: not valid UTF-8", NULL);
}

static void aliases_are_copies_and_are_counted(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct template t = read_good("name: x\nenv: &e {A: \"1\"}\nlabels: *e\n", &arena);
	auto_buf struct buf bomb = buf_empty(100000);
	struct json_value *value;
	struct error err;
	assert_string_equal(t.labels.items[0].value, "1");
	buf_text(&bomb, "a0: &a0 [x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 9; i++)
		buf_printf(&bomb, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1,
			i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_int_equal(
		yaml_json_read((struct str){ bomb.data, bomb.len }, &arena, &value, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
}

static void what_a_sandbox_cannot_do_is_an_error(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct template t =
		read_good("name: x\nsecurity: {filesystem_readonly: [/workspace/data]}\n", &arena);
	text_list warnings;
	struct error err;
	assert_int_equal(template_check(&t, &arena, &warnings, &err), -1);
	assert_string_equal(err.text, "security.filesystem_readonly: '/workspace/data' can't be "
				      "made read-only");
	t = read_good("name: x\nsecurity: {filesystem_writable: [/usr/local]}\n", &arena);
	assert_int_equal(template_check(&t, &arena, &warnings, &err), -1);
	assert_string_equal(
		err.text, "security.filesystem_writable: '/usr/local' can't be made writable");
}

static void a_child_wins_over_its_base(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct template base =
		read_good("name: base\n"
			  "python: {version: \"3.11\", dependencies: [Foo_Bar>=1, b]}\n"
			  "limits: {memory: 512M, pids: 10}\n"
			  "security: {network_enabled: true}\n"
			  "env: {A: base, B: base}\nttl: 1d\n",
			&arena),
			child = read_good("name: child\nextends: base\n"
					  "python: {dependencies: [foo-bar==2, c]}\n"
					  "limits: {memory: 1G}\n"
					  "security: {network_enabled: false}\n"
					  "env: {A: child}\n",
				&arena);
	template_extend(&child, &base, &arena);
	assert_string_equal(child.name, "child");
	assert_string_equal(child.python.version, "3.11");
	assert_int_equal(child.python.dependencies.count, 3);
	assert_string_equal(child.python.dependencies.items[0], "b");
	assert_string_equal(child.python.dependencies.items[1], "foo-bar==2");
	assert_int_equal(child.limits.limits.memory_bytes, 1ull << 30);
	assert_int_equal(child.limits.limits.pids, 10);
	assert_false(child.security.network_enabled);
	assert_int_equal(child.env.count, 2);
	assert_string_equal(child.env.items[0].key, "B");
	assert_int_equal(child.ttl_ms, 86400000);
}

static void what_a_client_asks_for_wins(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct template t = read_good("name: x\nlimits: {memory: 512M, fds: 100}\nttl: 1d\n"
				      "python: {version: \"3.11\", dependencies: [a, b]}\n"
				      "system: {shell: /bin/bash}\n"
				      "env: {K: template, L: template}\nlabels: {team: x}\n",
		&arena);
	struct text_pair variable = { "K", "mine" };
	const char *package = "b==2";
	struct workspace wanted = { .limits.memory_bytes = 1 << 30,
		.env = { &variable, 1, 1 },
		.packages = { &package, 1, 1 } };
	template_apply(&t, &arena, &wanted);
	assert_int_equal(wanted.limits.memory_bytes, 1 << 30);
	assert_int_equal(wanted.limits.fds, 100);
	assert_int_equal(wanted.ttl_ms, 86400000);
	assert_string_equal(wanted.python, "3.11");
	assert_int_equal(wanted.packages.count, 2);
	assert_string_equal(wanted.packages.items[1], "b==2");
	assert_int_equal(wanted.env.count, 3);
	assert_string_equal(wanted.env.items[0].key, "SHELL");
	assert_string_equal(wanted.env.items[2].value, "mine");
	assert_string_equal(workspace_label(&wanted, "team"), "x");
	assert_null(wanted.node.version);
	assert_int_equal(wanted.node.options.count, 0);
	wanted = (struct workspace){ .environments.of[ENV_KIND_PYTHON] = "mine" };
	template_apply(&t, &arena, &wanted);
	assert_null(wanted.python);
	assert_int_equal(wanted.packages.count, 0);
}

static void packages_of_node_are_those_of_the_template_and_the_client(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct template t = read_good("name: x\nnodejs: {version: \"20\", runtime: npm, "
				      "dependencies: {axios: ^1.6.0, \"@types/node\": ^20}}\n",
		&arena);
	const char *package = "axios@1.7.0";
	struct workspace wanted = { .node.packages = { &package, 1, 1 } };
	template_apply(&t, &arena, &wanted);
	assert_string_equal(wanted.node.version, "20");
	assert_int_equal(wanted.node.packages.count, 2);
	assert_string_equal(wanted.node.packages.items[0], "@types/node@^20");
	assert_string_equal(wanted.node.packages.items[1], "axios@1.7.0");
	assert_string_equal(wanted.node.options.items[0], "--node-runtime=npm");
	wanted = (struct workspace){ .node.package_json = "{}" };
	template_apply(&t, &arena, &wanted);
	assert_int_equal(wanted.node.packages.count, 0);
}

static const char *file_of(const pair_list *files, const char *path)
{
	for (size_t i = 0; i < files->count; i++)
		if (!strcmp(files->items[i].key, path))
			return files->items[i].value;
	return NULL;
}

static void the_files_are_those_of_the_seed(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct template t = read_good(seed, &arena);
	pair_list files;
	template_files(&t, &arena, &files);
	assert_string_equal(file_of(&files, "pyproject.toml"),
		"[project]\nname = \"workspace\"\nversion = \"0.1.0\"\n"
		"requires-python = \">=3.12\"\ndependencies = [\n"
		"    \"matplotlib>=3.8.0\",\n    \"pandas>=2.1.0\",\n]\n");
	assert_string_equal(file_of(&files, "package.json"),
		"{\n  \"name\": \"workspace\",\n  \"type\": \"module\",\n  \"dependencies\": {\n"
		"    \"docx\": \"^8.5.0\",\n    \"axios\": \"^1.6.0\"\n  }\n}\n");
	assert_non_null(strstr(file_of(&files, ".gitignore"), "node_modules/\n"));
	assert_non_null(strstr(file_of(&files, TEMPLATE_MARKER), "\"template\":\"default\""));
	t = read_good("name: x\nfiles: {.gitignore: mine}\n", &arena);
	template_files(&t, &arena, &files);
	assert_int_equal(files.count, 2);
	assert_string_equal(file_of(&files, ".gitignore"), "mine");
}

static void the_hash_is_of_what_is_built(void **state)
{
	auto_arena struct arena arena = { 0 };
	struct template one = read_good("name: x\ndescription: a\nttl: 1d\n", &arena),
			two = read_good("name: x\ndescription: b\nttl: 24h\n", &arena),
			three = read_good("name: x\nttl: 2d\n", &arena);
	char a[2 * SHA256_LEN + 1], b[2 * SHA256_LEN + 1], c[2 * SHA256_LEN + 1];
	template_hash(&one, a);
	template_hash(&two, b);
	template_hash(&three, c);
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_seed_is_read_as_it_is),
		cmocka_unit_test(errors_name_line_and_key),
		cmocka_unit_test(yaml_that_readers_disagree_on_is_refused),
		cmocka_unit_test(aliases_are_copies_and_are_counted),
		cmocka_unit_test(what_a_sandbox_cannot_do_is_an_error),
		cmocka_unit_test(a_child_wins_over_its_base),
		cmocka_unit_test(what_a_client_asks_for_wins),
		cmocka_unit_test(packages_of_node_are_those_of_the_template_and_the_client),
		cmocka_unit_test(the_files_are_those_of_the_seed),
		cmocka_unit_test(the_hash_is_of_what_is_built),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
