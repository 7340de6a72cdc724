/* Files that commands install from, and configurations of git, as the judge reads them. */
/* security: policy */
#include "policy/inputs.h"
#include "arena_fixture.h"
#include "inputs_fixture.h"
#include "policy/policy.h"
#include "policy/sources.h"

static const char text[] =
	"{\"package_managers\": {"
	"\"pip\": {\"registries\": [\"https://index.example/simple/\"], \"blocked_packages\": "
	"[\"evil-pkg\"]},"
	"\"npm\": {\"registries\": [\"https://npm.example/\"], \"blocked_packages\": "
	"[\"left-pad\", \"@evil/x\"]}},"
	"\"git\": {\"allowed_remotes\": [\"https://forge.example/team/*\"]}}";

static const struct fixture_file files[] = {
	{ "/workspace/good.txt", "requests>=2\nflask[async]==3 ; python_version > '3'\n" },
	{ "/workspace/bad.txt", "requests\nEvil.Pkg==1\n" },
	{ "/workspace/nested.txt", "-r sub/inner.txt\n" },
	{ "/workspace/sub/inner.txt", "-c more.txt\n" },
	{ "/workspace/sub/more.txt", "evil_pkg\n" },
	{ "/workspace/loop.txt", "requests\n-r loop.txt\n" },
	{ "/workspace/index.txt", "--index-url https://other.example/\nrequests\n" },
	{ "/workspace/listed.txt", "--index-url https://index.example/simple\nrequests\n" },
	{ "/workspace/url.txt", "x @ https://other.example/x-1-py3-none-any.whl\n" },
	{ "/workspace/path.txt", "./x\n" },
	{ "/workspace/broken.txt", "requests ===== 2\n" },
	{ "/workspace/variable.txt", "${X}\n" },
	{ "/workspace/away.txt", "-r missing.txt\n" },
	{ "/workspace/requirements.txt", "evil-pkg\n" },
	{ "/workspace/run.py", "# /// script\n# dependencies = ['evil-pkg']\n# ///\n" },
	{ "/workspace/plain.py", "print(1)\n" },
	/* Projects of Python. */
	{ "/workspace/py/pyproject.toml",
		"[project]\nname = 'a'\ndependencies = ['requests', 'b[c]>1']\n" },
	{ "/workspace/py/uv.lock",
		"version = 1\n[[package]]\nname = 'a'\nsource = { virtual = '.' }\n"
		"[[package]]\nname = 'b'\nsource = { registry = 'https://index.example/simple' }\n"
		"wheels = [{ url = 'https://files.example/b.whl', hash = 'sha256:00' }]\n" },
	{ "/workspace/deep/pyproject.toml", "[project]\nname = 'a'\ndependencies = ['b']\n" },
	{ "/workspace/deep/uv.lock", "version = 1\n[[package]]\nname = 'evil-pkg'\n" },
	{ "/workspace/direct/pyproject.toml", "[project]\nname='a'\ndependencies=['evil-pkg']\n" },
	{ "/workspace/dotted/pyproject.toml", "project.dependencies = ['evil-pkg']\n" },
	{ "/workspace/inline/pyproject.toml", "project = { dependencies = ['evil-pkg'] }\n" },
	{ "/workspace/group/pyproject.toml",
		"[project]\nname='a'\n[dependency-groups]\ndev = ['evil-pkg']\n" },
	{ "/workspace/build/pyproject.toml",
		"[build-system]\nrequires=['evil-pkg']\n[project]\nname='a'\n" },
	{ "/workspace/dynamic/pyproject.toml", "[project]\nname='a'\ndynamic=['dependencies']\n" },
	{ "/workspace/uvindex/pyproject.toml",
		"[project]\nname='a'\n[[tool.uv.index]]\nurl='https://other.example/simple'\n" },
	{ "/workspace/uvgit/pyproject.toml",
		"[project]\nname='a'\ndependencies=['b']\n[tool.uv.sources]\n"
		"b = { git = 'https://other.example/b' }\n" },
	{ "/workspace/poetry/pyproject.toml",
		"[tool.poetry.dependencies]\npython='^3'\nevil-pkg='*'\n" },
	{ "/workspace/pipenv/Pipfile", "[packages]\nrequests='*'\n" },
	{ "/workspace/pipenv/Pipfile.lock",
		"{\"_meta\":{\"sources\":[{\"url\":\"https://index.example/simple\"}]},"
		"\"default\":{\"evil-pkg\":{\"version\":\"==1\"}}}" },
	/* Projects of Node. */
	{ "/workspace/js/package.json", "{\"dependencies\": {\"axios\": \"^1\"}}" },
	{ "/workspace/js/package-lock.json",
		"{\"lockfileVersion\":3,\"packages\":{\"\":{\"dependencies\":{\"axios\":\"^1\"}},"
		"\"node_modules/axios\":{\"version\":\"1.0.0\",\"resolved\":"
		"\"https://npm.example/axios/-/axios-1.0.0.tgz\"}}}" },
	{ "/workspace/js/src/x.js", "" },
	{ "/workspace/lock/package.json", "{\"dependencies\": {\"axios\": \"^1\"}}" },
	{ "/workspace/lock/package-lock.json",
		"{\"lockfileVersion\":3,\"packages\":{\"node_modules/axios/node_modules/left-pad\":"
		"{\"version\":\"1.0.0\"}}}" },
	{ "/workspace/old/package.json", "{}" },
	{ "/workspace/old/package-lock.json",
		"{\"lockfileVersion\":1,\"dependencies\":{\"a\":{\"version\":\"1\","
		"\"dependencies\":{\"@evil/x\":{\"version\":\"1\"}}}}}" },
	{ "/workspace/other/package.json", "{\"dependencies\": {\"a\": \"1\"}}" },
	{ "/workspace/other/package-lock.json",
		"{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"resolved\":"
		"\"https://other.example/a.tgz\"}}}" },
	{ "/workspace/alias/package.json",
		"{\"devDependencies\": {\"fine\": \"npm:left-pad@1\"}}" },
	{ "/workspace/override/package.json",
		"{\"overrides\": {\"a\": {\"b\": \"npm:left-pad@1\"}}}" },
	{ "/workspace/gitdep/package.json", "{\"dependencies\": {\"a\": \"user/repository\"}}" },
	{ "/workspace/members/package.json", "{\"workspaces\": [\"packages/*\"]}" },
	{ "/workspace/rc/package.json", "{\"dependencies\": {\"a\": \"1\"}}" },
	{ "/workspace/rc/.npmrc", "@s:registry = https://other.example/\n" },
	{ "/workspace/yarn/package.json", "{\"dependencies\": {\"a\": \"1\"}}" },
	{ "/workspace/yarn/yarn.lock",
		"# yarn lockfile v1\n\na@^1, \"left-pad@^1.0.0\":\n  version \"1.0.0\"\n" },
	{ "/workspace/berry/package.json", "{\"dependencies\": {\"a\": \"1\"}}" },
	{ "/workspace/berry/yarn.lock",
		"__metadata:\n  version: 8\n\n\"a@npm:^1\":\n  version: 1.0.0\n"
		"  resolution: \"left-pad@npm:1.0.0\"\n" },
	{ "/workspace/pnpm/package.json", "{\"dependencies\": {\"a\": \"1\"}}" },
	{ "/workspace/pnpm/pnpm-lock.yaml",
		"lockfileVersion: '9.0'\n\npackages:\n\n  '@evil/x@1.0.0':\n"
		"    resolution: {integrity: sha512-x}\n\nsnapshots:\n\n  '@evil/x@1.0.0': {}\n" },
	{ "/workspace/pnpmflow/package.json", "{\"dependencies\": {\"a\": \"1\"}}" },
	{ "/workspace/pnpmflow/pnpm-lock.yaml", "packages: {'@evil/x@1.0.0': {}}\n" },
	{ "/workspace/bun/package.json", "{\"dependencies\": {\"a\": \"1\"}}" },
	{ "/workspace/bun/bun.lock",
		"{\"lockfileVersion\": 1, \"packages\": {\"a\": [\"left-pad@1.0.0\", \"\", {}, "
		"\"sha512-x\"],},}" },
	{ "/workspace/lockb/package.json", "{\"dependencies\": {\"a\": \"1\"}}" },
	{ "/workspace/lockb/bun.lockb", "#!/usr/bin/env bun\n" },
	/* Repositories. */
	{ "/workspace/repo/.git", NULL },
	{ "/workspace/repo/.git/config", "[core]\n\tbare = false\n[remote \"origin\"]\n"
					 "\turl = https://forge.example/team/a.git # x\n"
					 "[remote \"evil\"] url = \"https://other.example/a\"\n"
					 "[remote \"two\"]\n\turl = https://forge.example/team/a\n"
					 "\tpushurl = https://other.example/a\n" },
	{ "/workspace/fine/.git", NULL },
	{ "/workspace/fine/.git/config",
		"[remote \"origin\"]\nurl = https://forge.example/team/a\n[branch \"main\"]\n"
		"remote = origin\n" },
	{ "/workspace/fine/.gitmodules",
		"[submodule \"x\"]\n\tpath = x\n\turl = https://forge.example/team/x\n" },
	{ "/workspace/modules/.git", NULL },
	{ "/workspace/modules/.git/config",
		"[remote \"origin\"]\nurl = https://forge.example/team/a\n" },
	{ "/workspace/modules/.gitmodules",
		"[submodule \"x\"]\n\turl = https://other.example/x\n" },
	{ "/workspace/rewrite/.git", NULL },
	{ "/workspace/rewrite/.git/config",
		"[remote \"origin\"]\nurl = https://forge.example/team/a\n"
		"[url \"https://other.example/\"]\ninsteadOf = https://forge.example/\n" },
	{ "/workspace/include/.git", NULL },
	{ "/workspace/include/.git/config",
		"[remote \"origin\"]\nurl = https://forge.example/team/a\n"
		"[include]\npath = ../x\n" },
	{ "/workspace/fine/tree/.git", "gitdir: /workspace/repo/.git/worktrees/x\n" },
	{ "/workspace/fine/bare/HEAD", "ref: refs/heads/main\n" },
	{ "/workspace/branch/.git", NULL },
	{ "/workspace/branch/.git/config",
		"[branch \"main\"]\nremote = https://other.example/a\n" },
};
static struct sources sources;
static struct policy policy;

static int parse(void **state)
{
	struct error err;

	set_up(state);
	if (sources_parse("sources.json", str_from(text), &arena, &sources, &err) < 0)
		fail_msg("%s", err.text);
	policy_init(&policy, &arena);
	policy_set_default(&policy, POLICY_ALLOW);
	return 0;
}

static void judge(const char *command, const char *cwd, struct policy_verdict *verdict)
{
	struct policy_inputs inputs = { .arena = &arena };
	struct policy_request request = { SHELL_SH, cwd, "/workspace", &arena, &sources, &inputs };

	for (;;) {
		policy_judge_script(&policy, &request, str_from(command), verdict);
		if (verdict->decision != POLICY_ASK || !policy_inputs_go_on(&inputs))
			return;
		fixture_give(&inputs, files, sizeof files / sizeof *files);
	}
}

struct row {
	const char *command;
	enum policy_decision decision;
	const char *cwd; /* NULL: /workspace */
};

static void check(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct policy_verdict verdict;

		judge(rows[i].command, rows[i].cwd ? rows[i].cwd : "/workspace", &verdict);
		if (verdict.decision == rows[i].decision)
			continue;
		for (size_t k = 0; k < verdict.trail.count; k++)
			print_message("  %s: %s %s\n",
				policy_decision_name(verdict.trail.items[k].decision),
				verdict.trail.items[k].subject,
				verdict.trail.items[k].reason ? verdict.trail.items[k].reason : "");
		fail_msg("'%s' in %s: %s", rows[i].command, rows[i].cwd ? rows[i].cwd : "",
			policy_decision_name(verdict.decision));
	}
}
#define CHECK(rows) check(rows, sizeof(rows) / sizeof *(rows))

static void requirements_are_read(void **state)
{
	static const struct row rows[] = {
		{ "pip install -r good.txt", POLICY_ALLOW },
		{ "pip install -r bad.txt", POLICY_DENY },
		{ "pip install -rbad.txt", POLICY_DENY },
		{ "pip install -Ur bad.txt", POLICY_DENY },
		{ "pip install -qUrbad.txt", POLICY_DENY },
		{ "pip install --requirement=bad.txt", POLICY_DENY },
		{ "pip install --requirement bad.txt", POLICY_DENY },
		{ "pip install --req bad.txt", POLICY_DENY },
		{ "pip install -r /workspace/bad.txt", POLICY_DENY },
		{ "pip install -r sub/../bad.txt", POLICY_DENY },
		{ "pip install good -r good.txt -r bad.txt", POLICY_DENY },
		{ "pip install -r nested.txt", POLICY_DENY },
		{ "pip install requests -c sub/more.txt", POLICY_DENY },
		{ "pip install -r loop.txt", POLICY_ALLOW },
		{ "pip install -r index.txt", POLICY_DENY },
		{ "pip install -r listed.txt", POLICY_ALLOW },
		{ "pip install -r url.txt", POLICY_DENY },
		{ "pip install -r path.txt", POLICY_ASK },
		{ "pip install -r broken.txt", POLICY_ASK },
		{ "pip install -r variable.txt", POLICY_ASK },
		{ "pip install -r missing.txt", POLICY_ASK },
		{ "pip install -r away.txt", POLICY_ASK },
		{ "pip install -r -", POLICY_ASK },
		{ "pip install -r /dev/stdin < good.txt", POLICY_ASK },
		{ "pip install -r $x", POLICY_ASK },
		{ "pip install -r https://index.example/simple/r.txt", POLICY_ASK },
		{ "pip install -r https://other.example/r.txt", POLICY_DENY },
		{ "python3 -m pip install -r bad.txt", POLICY_DENY },
		{ "env pip3.11 install -r bad.txt", POLICY_DENY },
		{ "sh -c 'pip install -r bad.txt'", POLICY_DENY },
		{ "uv pip install -r bad.txt", POLICY_DENY },
		{ "uv pip sync bad.txt", POLICY_DENY },
		{ "uv pip sync good.txt", POLICY_ALLOW },
		{ "uv pip sync good.txt bad.txt", POLICY_DENY },
		{ "uv pip install -r direct/pyproject.toml", POLICY_DENY },
		{ "uv pip install --override bad.txt requests", POLICY_DENY },
		{ "pipx install --pip-args='-r bad.txt' x", POLICY_ASK },
		{ "pip-sync", POLICY_DENY },
		{ "pip-sync good.txt", POLICY_ALLOW },
		{ "uv run run.py", POLICY_ASK },
		{ "uv run plain.py", POLICY_ALLOW },
		{ "cd sub && pip install -r inner.txt", POLICY_DENY },
		{ "cd sub && pip install -r ../good.txt", POLICY_ALLOW, "/workspace/x" },
		{ "cd sub; cd ..; pip install -r good.txt", POLICY_ASK },
		{ "pip install --prefix /tmp/x requests", POLICY_ASK },
		{ "pip install -t /tmp/x -r good.txt", POLICY_ALLOW },
	};
	CHECK(rows);
}

static void what_other_commands_may_change_is_asked_for(void **state)
{
	static const struct row rows[] = {
		{ "pip install -r good.txt && python3 x.py", POLICY_ALLOW },
		{ "pip install -r good.txt 2>&1 | tail -5", POLICY_ALLOW },
		{ "set -e; echo hello; pip install -r good.txt", POLICY_ALLOW },
		{ "echo evil-pkg > good.txt && pip install -r good.txt", POLICY_ASK },
		{ "python3 x.py && pip install -r good.txt", POLICY_ASK },
		{ "pip install -r good.txt & echo evil-pkg > good.txt", POLICY_ASK },
		{ "for i in 1 2; do pip install -r good.txt; echo x > good.txt; done", POLICY_ASK },
		{ "f() { pip install -r good.txt; }; f", POLICY_ASK },
		{ "echo $(cp bad.txt good.txt); pip install -r good.txt", POLICY_ASK },
		{ "git pull && npm ci", POLICY_ASK, "/workspace/js" },
		{ "git commit -m x && git push origin", POLICY_ALLOW, "/workspace/fine" },
		{ "python3 x.py && git push origin", POLICY_ASK, "/workspace/fine" },
		{ "pip install -r bad.txt & true", POLICY_DENY },
	};
	CHECK(rows);
}

static void projects_of_python_are_read(void **state)
{
	static const struct row rows[] = {
		{ "uv sync", POLICY_ALLOW, "/workspace/py" },
		{ "uv sync", POLICY_ALLOW, "/workspace/py/src/a" },
		{ "uv sync", POLICY_DENY, "/workspace/deep" },
		{ "uv --directory deep sync", POLICY_DENY },
		{ "uv sync --project=deep", POLICY_DENY },
		{ "cd deep && uv sync --frozen", POLICY_DENY },
		{ "uv sync", POLICY_DENY, "/workspace/direct" },
		{ "uv sync", POLICY_DENY, "/workspace/dotted" },
		{ "uv sync", POLICY_DENY, "/workspace/inline" },
		{ "uv sync", POLICY_DENY, "/workspace/group" },
		{ "uv sync", POLICY_DENY, "/workspace/build" },
		{ "uv sync", POLICY_ASK, "/workspace/dynamic" },
		{ "uv sync", POLICY_DENY, "/workspace/uvindex" },
		{ "uv sync", POLICY_DENY, "/workspace/uvgit" },
		{ "uv sync", POLICY_ASK, "/workspace/none" },
		{ "uv add requests", POLICY_DENY, "/workspace/direct" },
		{ "uv add requests", POLICY_ALLOW, "/workspace/none" },
		{ "uv run pytest", POLICY_DENY, "/workspace/deep" },
		{ "pip install .", POLICY_ALLOW, "/workspace/py" },
		{ "pip install .[x]", POLICY_ASK, "/workspace/py" }, /* [x] is a pattern */
		{ "pip install '.[x]'", POLICY_ALLOW, "/workspace/py" },
		{ "pip install .", POLICY_DENY, "/workspace/direct" },
		{ "pip install ./direct", POLICY_DENY },
		{ "pip install -e direct", POLICY_DENY },
		{ "pip install --editable=direct", POLICY_DENY },
		{ "pip install .", POLICY_ASK, "/workspace/none" },
		{ "pip install .", POLICY_ASK, "/workspace/dynamic" },
		{ "pip install --group dev", POLICY_DENY, "/workspace/group" },
		{ "pip install ./x.whl", POLICY_ASK },
		{ "poetry install", POLICY_DENY, "/workspace/poetry" },
		{ "poetry -C poetry install", POLICY_DENY },
		{ "pipenv sync", POLICY_DENY, "/workspace/pipenv" },
		{ "PIPENV_PIPFILE=/tmp/x pipenv sync", POLICY_ASK, "/workspace/none" },
		{ "conda env create", POLICY_DENY },
	};
	CHECK(rows);
}

static void projects_of_node_are_read(void **state)
{
	static const struct row rows[] = {
		{ "npm ci", POLICY_ALLOW, "/workspace/js" },
		{ "npm install", POLICY_ALLOW, "/workspace/js" },
		{ "npm ci", POLICY_ALLOW, "/workspace/js/src" },
		{ "npm ci", POLICY_ASK, "/workspace/none" },
		{ "npm ci", POLICY_DENY, "/workspace/lock" },
		{ "npm ci", POLICY_DENY, "/workspace/lock/src" },
		{ "npm install axios", POLICY_DENY, "/workspace/lock" },
		{ "npm install axios", POLICY_ALLOW, "/workspace/none" },
		{ "npm --prefix lock ci", POLICY_DENY },
		{ "npm ci --prefix=lock", POLICY_DENY },
		{ "npm -C lock install", POLICY_DENY },
		{ "cd lock && npm ci", POLICY_DENY },
		{ "cd js && npm ci", POLICY_ALLOW },
		{ "(cd lock; npm i)", POLICY_DENY },
		{ "npm ci", POLICY_DENY, "/workspace/old" },
		{ "npm ci", POLICY_DENY, "/workspace/other" },
		{ "npm install", POLICY_DENY, "/workspace/alias" },
		{ "npm install", POLICY_DENY, "/workspace/override" },
		{ "npm install", POLICY_ASK, "/workspace/gitdep" },
		{ "npm install", POLICY_ASK, "/workspace/members" },
		{ "npm install", POLICY_DENY, "/workspace/rc" },
		{ "npm install --userconfig x axios", POLICY_ASK },
		{ "yarn", POLICY_DENY, "/workspace/yarn" },
		{ "yarn --frozen-lockfile", POLICY_DENY, "/workspace/yarn" },
		{ "yarn --cwd yarn", POLICY_DENY },
		{ "yarn install", POLICY_DENY, "/workspace/berry" },
		{ "pnpm install", POLICY_DENY, "/workspace/pnpm" },
		{ "pnpm -C pnpm i", POLICY_DENY },
		{ "pnpm --dir pnpm i", POLICY_DENY },
		{ "pnpm install", POLICY_ASK, "/workspace/pnpmflow" },
		{ "bun install", POLICY_DENY, "/workspace/bun" },
		{ "bun install --cwd bun", POLICY_DENY },
		{ "bun install", POLICY_ASK, "/workspace/lockb" },
		{ "npm cit", POLICY_DENY, "/workspace/lock" },
		{ "npm clean-inst", POLICY_DENY, "/workspace/lock" },
		{ "npm upda", POLICY_DENY, "/workspace/lock" },
		{ "npm audit fix", POLICY_DENY, "/workspace/lock" },
		{ "yarn workspaces focus", POLICY_DENY, "/workspace/yarn" },
		{ "npm run build", POLICY_ALLOW, "/workspace/lock" },
		{ "npm test", POLICY_ALLOW, "/workspace/lock" },
		{ "npm start", POLICY_ALLOW, "/workspace/lock" },
	};
	CHECK(rows);
}

static void names_of_remotes_are_looked_up(void **state)
{
	static const struct row rows[] = {
		{ "git push origin main", POLICY_ALLOW, "/workspace/repo" },
		{ "git push -u origin HEAD:main", POLICY_ALLOW, "/workspace/repo" },
		{ "git push evil", POLICY_DENY, "/workspace/repo" },
		{ "git push two", POLICY_DENY, "/workspace/repo" },
		{ "git push evil", POLICY_DENY, "/workspace/repo/src" },
		{ "git -C repo push evil", POLICY_DENY },
		{ "git -C /workspace -C repo push evil", POLICY_DENY },
		{ "git --git-dir=repo/.git push evil", POLICY_DENY },
		{ "git --git-dir repo/.git push evil", POLICY_DENY },
		{ "cd repo && git push evil", POLICY_DENY },
		{ "git push --repo=evil", POLICY_DENY, "/workspace/repo" },
		{ "git fetch --depth 1 evil", POLICY_DENY, "/workspace/repo" },
		{ "git fetch --all", POLICY_ASK, "/workspace/repo" },
		{ "git remote update", POLICY_ASK, "/workspace/repo" },
		{ "git remote show evil", POLICY_DENY, "/workspace/repo" },
		{ "git remote -v", POLICY_ALLOW, "/workspace/repo" },
		{ "git pull", POLICY_ASK, "/workspace/repo" },
		{ "git pull", POLICY_ALLOW, "/workspace/fine" },
		{ "git push", POLICY_DENY, "/workspace/branch" },
		{ "git push nobody", POLICY_ASK, "/workspace/fine" },
		{ "git push ../other", POLICY_ALLOW, "/workspace/fine" },
		{ "git push origin", POLICY_ASK, "/workspace/none" },
		{ "git push origin", POLICY_ASK, "/workspace/rewrite" },
		{ "git push origin", POLICY_ASK, "/workspace/include" },
		{ "git push origin", POLICY_ASK, "/workspace/fine/tree" },
		{ "git push origin", POLICY_ASK, "/workspace/fine/bare" },
		{ "git -c remote.origin.url=https://other.example/ push origin", POLICY_ASK,
			"/workspace/fine" },
		{ "git submodule update --init", POLICY_ASK,
			"/workspace/fine" }, /* it runs hooks */
		{ "git submodule update --init", POLICY_DENY, "/workspace/modules" },
		{ "git clone --recurse-submodules https://forge.example/team/a", POLICY_ASK },
		{ "git clone https://forge.example/team/a", POLICY_ALLOW },
		{ "git clone other.example:x", POLICY_DENY },
		{ "git config remote.origin.url https://other.example/", POLICY_DENY },
		{ "git status", POLICY_ALLOW, "/workspace/repo" },
	};
	CHECK(rows);
}

static void files_are_bounded(void **state)
{
	struct policy_inputs inputs = { .arena = &arena };
	char path[32];

	for (int i = 0; i < POLICY_INPUTS_MAX; i++) {
		snprintf(path, sizeof path, "/x%d", i);
		assert_non_null(policy_inputs_want(&inputs, POLICY_INPUT_FILE, path));
	}
	assert_null(policy_inputs_want(&inputs, POLICY_INPUT_FILE, "/more"));
	assert_non_null(policy_inputs_want(&inputs, POLICY_INPUT_FILE, "/x0"));
	char *large = arena_alloc(&arena, POLICY_INPUT_MAX + 1);
	struct policy_input *input = policy_inputs_next(&inputs);
	policy_inputs_give(&inputs, input, (struct str){ large, POLICY_INPUT_MAX + 1 });
	assert_int_equal(input->state, POLICY_INPUT_UNREAD);
	for (int i = 0; i < 4; i++) {
		input = policy_inputs_next(&inputs);
		policy_inputs_give(&inputs, input, (struct str){ large, POLICY_INPUT_MAX });
	}
	assert_int_equal(input->state, POLICY_INPUT_UNREAD); /* too much together */
	int rounds = 0;
	while (policy_inputs_go_on(&inputs))
		rounds++;
	assert_int_equal(rounds, POLICY_INPUT_ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requirements_are_read),
		cmocka_unit_test(what_other_commands_may_change_is_asked_for),
		cmocka_unit_test(projects_of_python_are_read),
		cmocka_unit_test(projects_of_node_are_read),
		cmocka_unit_test(names_of_remotes_are_looked_up),
		cmocka_unit_test(files_are_bounded),
	};
	return cmocka_run_group_tests(tests, parse, tear_down);
}
