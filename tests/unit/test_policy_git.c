/* The configuration and the hooks that git obeys, as the judge finds and reads them. */
/* security: policy */
#include "arena_fixture.h"
#include "inputs_fixture.h"
#include "policy/policy.h"

#define HEAD_TEXT "ref: refs/heads/main\n"
#define REPOSITORY(at, config)                                                                     \
	{ at "/HEAD", HEAD_TEXT }, { at "/objects/info", NULL }, { at "/refs/heads", NULL },       \
		{ at "/hooks/pre-commit.sample", "exit 1\n" },                                     \
	{                                                                                          \
		at "/config", config                                                               \
	}
#define HARMLESS                                                                                   \
	"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"               \
	"[user]\n\tname = a\n\temail = a@b\n[alias]\n\tst = status -sb\n"                          \
	"[remote \"origin\"]\n\turl = https://forge.example/a\n\tfetch = +refs/heads/*:x\n"        \
	"[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
#define HOSTILE "[core]\n\tfsmonitor = /workspace/evil\n"

static struct policy policy;

static int build(void **state)
{
	struct error err;
	const struct policy_places places = { .workspace = "/workspace", .home = "/workspace" };

	set_up(state);
	policy_init(&policy, &arena);
	if (policy_add_settings(&policy,
		    STR("{\"permissions\": {\"allow\": [\"shell(git:*)\", \"shell(tar:*)\", "
			"\"shell(ls:*)\", \"shell(xargs:*)\", \"shell(cat:*)\", "
			"\"shell(head:*)\"]}}"),
		    &places, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static void judge(const struct policy *by, const char *command, const char *cwd,
	const struct fixture_file *files, size_t count, struct policy_verdict *verdict)
{
	struct policy_inputs inputs = { .arena = &arena };
	struct policy_request request = { .dialect = SHELL_SH,
		.cwd = cwd,
		.home = "/workspace",
		.arena = &arena,
		.inputs = &inputs };

	for (;;) {
		policy_judge_script(by, &request, str_from(command), verdict);
		if (verdict->decision != POLICY_ASK || !policy_inputs_go_on(&inputs))
			return;
		fixture_give(&inputs, files, count);
	}
}

static void expect(const char *command, const char *cwd, const struct fixture_file *files,
	size_t count, enum policy_decision decision, const char *reason)
{
	struct policy_verdict verdict;
	bool is_told = !reason;

	judge(&policy, command, cwd, files, count, &verdict);
	for (size_t i = 0; i < verdict.trail.count; i++)
		is_told |= reason && verdict.trail.items[i].reason &&
			   strstr(verdict.trail.items[i].reason, reason);
	if (verdict.decision == decision && is_told)
		return;
	for (size_t i = 0; i < verdict.trail.count; i++)
		print_message("  %s: %s %s\n",
			policy_decision_name(verdict.trail.items[i].decision),
			verdict.trail.items[i].subject,
			verdict.trail.items[i].reason ? verdict.trail.items[i].reason : "");
	fail_msg("'%s' in %s: %s, without '%s'", command, cwd,
		policy_decision_name(verdict.decision), reason ? reason : "");
}

static const char *const verbs[] = { "status", "diff", "log", "show", "add a", "commit -m x",
	"checkout main", "branch", "fetch", "pull", "push", "merge x", "rebase x", "stash",
	"ls-files", "rev-parse HEAD", "grep x", "blame a", "tag", "remote -v", "reset --hard",
	"clean -f", "describe", "archive HEAD" };

static void keys_that_name_programs_are_asked_for_with_each_command(void **state)
{
	static const char *const hostile[][2] = { { HOSTILE, "core.fsmonitor" },
		{ "[core] fsmonitor\n", "core.fsmonitor" },
		{ "[core]hooksPath=x", "core.hookspath" },
		{ "[CORE]\nFsMonitor=/x # false", "core.fsmonitor" },
		{ "[core]\npager = sh -c x\n", "core.pager" }, { "[pager]\nlog = x", "pager.log" },
		{ "[core]\neditor = x", "core.editor" },
		{ "[sequence]\neditor=x", "sequence.editor" },
		{ "[core]\nsshCommand = x", "core.sshcommand" },
		{ "[core]\naskPass = x", "core.askpass" },
		{ "[core]\ngitProxy = x", "core.gitproxy" },
		{ "[core]\nworktree = /", "core.worktree" },
		{ "[core]\nalternateRefsCommand = x", "core.alternaterefscommand" },
		{ "[diff]\nexternal = x", "diff.external" },
		{ "[diff \"a\"]\ncommand = x", "diff.a.command" },
		{ "[diff \"a\"]\ntextconv = x", "diff.a.textconv" },
		{ "[diff.a]\ntextconv = x", "diff.a.textconv" },
		{ "[filter \"a\"]\nclean = x", "filter.a.clean" },
		{ "[filter \"a\"]\nsmudge = x", "filter.a.smudge" },
		{ "[filter \"a\"]\nprocess = x", "filter.a.process" },
		{ "[merge \"a\"]\ndriver = x", "merge.a.driver" },
		{ "[mergetool \"a\"]\ncmd = x", "mergetool.a.cmd" },
		{ "[difftool \"a\"]\ncmd = x", "difftool.a.cmd" },
		{ "[credential]\nhelper = !x", "credential.helper" },
		{ "[credential \"https://a\"]\nhelper = x", "credential.https://a.helper" },
		{ "[gpg]\nprogram = x", "gpg.program" },
		{ "[gpg \"ssh\"]\nprogram = x", "gpg.ssh.program" },
		{ "[commit]\ngpgSign = true", "commit.gpgsign" },
		{ "[include]\npath = x", "include.path" },
		{ "[includeIf \"gitdir:/\"]\npath = x", "includeif.gitdir:/.path" },
		{ "[uploadpack]\npackObjectsHook = x", "uploadpack.packobjectshook" },
		{ "[remote \"a\"]\nuploadpack = x", "remote.a.uploadpack" },
		{ "[remote \"a\"]\nreceivepack = x", "remote.a.receivepack" },
		{ "[remote \"a\"]\nvcs = x", "remote.a.vcs" },
		{ "[remote \"a\"]\nproxy = x", "remote.a.proxy" },
		{ "[remote \"a\"]\nurl = ext::sh -c x", "remote.a.url" },
		{ "[remote \"a\"]\npushurl = a::b", "remote.a.pushurl" },
		{ "[branch \"main\"]\nremote = ../evil", "branch.main.remote" },
		{ "[branch \"main\"]\nmergeoptions = -s x", "branch.main.mergeoptions" },
		{ "[url \"ext::x \"]\ninsteadOf = https://", "url.ext::x .insteadof" },
		{ "[protocol \"ext\"]\nallow = always", "protocol.ext.allow" },
		{ "[browser \"a\"]\ncmd = x", "browser.a.cmd" },
		{ "[man \"a\"]\ncmd=x", "man.a.cmd" },
		{ "[interactive]\ndiffFilter = x", "interactive.difffilter" },
		{ "[trailer \"a\"]\ncommand = x", "trailer.a.command" },
		{ "[submodule \"a\"]\nupdate = !x", "submodule.a.update" },
		{ "[submodule]\nrecurse = true", "submodule.recurse" },
		{ "[sendemail]\nsmtpServer = /x", "sendemail.smtpserver" },
		{ "[init]\ntemplateDir = x", "init.templatedir" },
		{ "[http]\nproxy = x", "http.proxy" },
		{ "[gc]\nrecentObjectsHook = x", "gc.recent" },
		{ "[hook \"a\"]\ncommand = x", "hook.a.command" },
		{ "[alias \"a\"]\ncommand = x", "alias.a.command" },
		{ "[unheard]\nof = x", "unheard.of" }, { "[core\n", "isn't understood" } };

	for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
		for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++) {
			const struct fixture_file files[] = { REPOSITORY("/workspace/.git",
				arena_printf(&arena, HARMLESS "%s", hostile[i][0])) };
			const char *command = arena_printf(&arena, "git %s", verbs[k]);

			expect(command, "/workspace", files, sizeof files / sizeof *files,
				POLICY_ASK, hostile[i][1]);
			if (k)
				continue;
			const struct fixture_file home[] = { { "/workspace/.gitconfig",
				hostile[i][0] } };
			expect("git clone https://forge.example/a", "/workspace/x", home, 1,
				POLICY_ASK, "/workspace/.gitconfig");
		}
}

static void keys_that_git_and_people_write_are_allowed(void **state)
{
	static const char *const harmless[] = { "", "[core]\npager = cat\neditor = :\n",
		"[core]\nfsmonitor = false\n", "[pull]\nrebase = true\n", "[color]\nui = always\n",
		"[color \"diff\"]\nmeta = yellow\n", "[alias]\nx = !evil\n",
		"[commit]\ngpgsign=false", "[remote \"b\"]\nurl = git@forge.example:a/b.git\n",
		"[init]\ndefaultBranch = main",
		"[submodule \"a\"]\nactive = true\nurl = https://a\n", "# [core] fsmonitor = x\n",
		"[safe]\ndirectory = *\n[credential]\nhelper =\n", "[branch \"a\"]\nremote = .\n" };

	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
		for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++) {
			const char *config = arena_printf(&arena, HARMLESS "%s", harmless[i]);
			const struct fixture_file files[] = { REPOSITORY("/workspace/.git", config),
				{ "/workspace/.gitconfig", config }, { "/workspace/src/a", "" } };
			const size_t count = sizeof files / sizeof *files;
			const char *command = arena_printf(&arena, "git %s", verbs[k]);

			expect(command, "/workspace", files, count, POLICY_ALLOW, NULL);
			expect(command, "/workspace/src", files, count, POLICY_ALLOW, NULL);
		}
	/* In a later version git takes an alias for a subcommand that is no longer its own. */
	const struct fixture_file files[] = { REPOSITORY(
		"/workspace/.git", "[alias]\nwhatchanged = !x\n") };
	expect("git whatchanged", "/workspace", files, sizeof files / sizeof *files, POLICY_ASK,
		"alias.whatchanged");
}

struct row {
	const char *command;
	enum policy_decision decision;
	const char *cwd, *reason;
};
static const struct fixture_file tree[] = {
	REPOSITORY("/workspace/fine/.git", HARMLESS),
	{ "/workspace/fine/src/a", "" },
	REPOSITORY("/workspace/evil/.git", HOSTILE),
	{ "/workspace/evil/src/a", "" },
	REPOSITORY("/workspace/bare", "[core]\nbare = true\n"),
	REPOSITORY("/workspace/evilbare", "[core]\nbare = false\nworktree = .\n" HOSTILE),
	{ "/workspace/evilbare/below/a", "" },
	{ "/workspace/file/.git", "gitdir: ../evil/.git\n" },
	{ "/workspace/finefile/.git", "gitdir: /workspace/fine/.git\n" },
	{ "/workspace/badfile/.git", "gitdir: /workspace/fine/.git\nx\n" },
	{ "/workspace/tree/.git", "gitdir: /workspace/worktrees/tree\n" },
	{ "/workspace/worktrees/tree/HEAD", HEAD_TEXT },
	{ "/workspace/worktrees/tree/commondir", "../../evil/.git\n" },
	{ "/workspace/finetree/.git", "gitdir: /workspace/fine/.git/worktrees/t\n" },
	{ "/workspace/fine/.git/worktrees/t/HEAD", HEAD_TEXT },
	{ "/workspace/fine/.git/worktrees/t/commondir", "../..\n" },
	REPOSITORY("/workspace/common/.git", HARMLESS),
	{ "/workspace/common/.git/commondir", "../../evil/.git\n" },
	REPOSITORY("/workspace/endless/.git", HARMLESS),
	{ "/workspace/endless/.git/commondir", "../.git\n" },
	REPOSITORY("/workspace/worktree/.git", HARMLESS "[extensions]\nworktreeConfig = true\n"),
	{ "/workspace/worktree/.git/config.worktree", HOSTILE },
	REPOSITORY("/workspace/hook/.git", HARMLESS),
	{ "/workspace/hook/.git/hooks/post-index-change", "#!/bin/sh\n" },
	{ "/workspace/linked/.git/HEAD", HEAD_TEXT },
	{ "/workspace/linked/.git/hooks", "@" },
	{ "/workspace/link", "@" },
	{ "/workspace/dotlink/.git", "@" },
	{ "/workspace/namelink/.git", "gitdir: /workspace/link/x\n" },
	REPOSITORY("/workspace/modules/.git", HARMLESS),
	{ "/workspace/modules/.git/modules/x/config", HOSTILE },
	REPOSITORY("/workspace/gitlink/.git", HARMLESS),
	{ "/workspace/gitlink/.git/index", "DIRC\0\0\0\2\0\0\0\1 \0\0\xe0\0 sub", 21 },
	REPOSITORY("/workspace/split/.git", HARMLESS),
	{ "/workspace/split/.git/index", "DIRC", 0 },
	{ "/workspace/split/.git/sharedindex.00", "DIRC\0\0\0\2\0\0\0\1 \0\0\xe0\0 sub", 21 },
	REPOSITORY("/workspace/indexed/.git", HARMLESS),
	{ "/workspace/indexed/.git/index", "DIRC\0\0\0\2\0\0\0\1 \0\0\x81\xa4 a", 19 },
	REPOSITORY("/workspace/local/.git", "[remote \"o\"]\nurl = /workspace/hook\n"),
	REPOSITORY(
		"/workspace/lazy/.git", "[remote \"o\"]\nurl = /workspace/evil\npromisor = true\n"),
	REPOSITORY("/workspace/near/.git", "[remote \"o\"]\nurl = ../fine\n"),
	REPOSITORY("/workspace/fine/evil.git", HOSTILE),
	{ "/workspace/blank/.git", "gitdir: ../evil/.git \n" },
	REPOSITORY("/workspace/evil/.git ", HOSTILE),
	{ "/workspace/climbing/.git", "gitdir: ../link/../fine/.git\n" },
	REPOSITORY("/workspace/rebasing/.git", HARMLESS),
	{ "/workspace/rebasing/.git/rebase-merge/git-rebase-todo", "pick 1 a\n\texec x\n" },
	REPOSITORY("/workspace/picking/.git", HARMLESS),
	{ "/workspace/picking/.git/rebase-merge/git-rebase-todo", "# x\npick 1 a\nf -C 2 b\n\n" },
	REPOSITORY("/workspace/old/.git", HARMLESS),
	{ "/workspace/old/.git/remotes/o", "URL: /workspace/hook\n" },
	{ "/home/.gitconfig", HOSTILE },
};
#define EXPECT(rows)                                                                               \
	for (size_t i = 0; i < sizeof(rows) / sizeof *(rows); i++)                                 \
	expect((rows)[i].command, (rows)[i].cwd ? (rows)[i].cwd : "/workspace", tree,              \
		sizeof tree / sizeof *tree, (rows)[i].decision, (rows)[i].reason)

static void each_repository_that_git_may_find_is_judged(void **state)
{
	static const struct row rows[] = {
		{ "git status", POLICY_ALLOW, "/workspace/fine" },
		{ "git status", POLICY_ALLOW, "/workspace" },
		{ "git status", POLICY_ALLOW, "/tmp" },
		{ "git status", POLICY_ASK, "/workspace/evil", "core.fsmonitor" },
		{ "/usr/bin/git status", POLICY_ASK, "/workspace/evil", "core.fsmonitor" },
		{ "git status", POLICY_ASK, "/workspace/evil/src", "core.fsmonitor" },
		{ "git status", POLICY_ASK, "/workspace/evil/src/not/there", "core.fsmonitor" },
		{ "git log", POLICY_ASK, "/workspace/evil/.git", "core.fsmonitor" },
		{ "git log", POLICY_ASK, "/workspace/evil/.git/refs", "core.fsmonitor" },
		{ "git log", POLICY_ALLOW, "/workspace/bare" },
		{ "git log", POLICY_ASK, "/workspace/evilbare", "core.worktree" },
		{ "git log", POLICY_ASK, "/workspace/evilbare/below", "core.fsmonitor" },
		{ "git status", POLICY_ASK, "/workspace/file", "/workspace/evil/.git/config" },
		{ "git status", POLICY_ALLOW, "/workspace/finefile" },
		{ "git status", POLICY_ASK, "/workspace/badfile", "isn't understood" },
		{ "git status", POLICY_ASK, "/workspace/tree", "core.fsmonitor" },
		{ "git status", POLICY_ALLOW, "/workspace/finetree" },
		{ "git status", POLICY_ASK, "/workspace/common", "core.fsmonitor" },
		{ "git status", POLICY_ASK, "/workspace/endless", "which repository" },
		{ "git status", POLICY_ASK, "/workspace/worktree",
			"config.worktree' sets core.fsm" },
		{ "git status", POLICY_ASK, "/workspace/hook", "post-index-change' is a hook" },
		{ "git status", POLICY_ASK, "/workspace/linked", "hooks" },
		{ "git status", POLICY_ASK, "/workspace/link", "is a link" },
		{ "git status", POLICY_ASK, "/workspace/link/x", "is a link" },
		{ "git status", POLICY_ASK, "/workspace/dotlink", "is a link" },
		{ "git status", POLICY_ASK, "/workspace/namelink", "is a link" },
		{ "git status", POLICY_ASK, "/workspace/modules", "has submodules" },
		{ "git status", POLICY_ASK, "/workspace/gitlink", "has a submodule" },
		{ "git status", POLICY_ASK, "/workspace/split", "sharedindex.00' has a submodule" },
		{ "git status", POLICY_ALLOW, "/workspace/indexed" },
		{ "git status", POLICY_ASK, "/workspace/blank", "evil/.git /config" },
		{ "git status", POLICY_ASK, "/workspace/climbing", "which repository" },
		{ "git rebase --continue", POLICY_ASK, "/workspace/rebasing", "'exec'" },
		{ "git status", POLICY_ALLOW, "/workspace/rebasing" },
		{ "git rebase --abort", POLICY_ALLOW, "/workspace/picking" },
		{ "git push o", POLICY_ASK, "/workspace/old", "old/.git/remotes" },
		{ "git status", POLICY_ALLOW, "/workspace/old" },
		{ "git status", POLICY_ASK, "/workspace/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8" },
	};
	EXPECT(rows);
}

static void words_that_choose_a_repository_are_followed(void **state)
{
	static const struct row rows[] = {
		{ "git -C evil status", POLICY_ASK, NULL, "core.fsmonitor" },
		{ "git -C /workspace -C evil/src status", POLICY_ASK, NULL, "core.fsmonitor" },
		{ "git -C fine status", POLICY_ALLOW },
		{ "git -C .. status", POLICY_ALLOW, "/workspace/evil" },
		{ "git -C ../evil status", POLICY_ASK, "/workspace/fine", "core.fsmonitor" },
		{ "git -C link/.. status", POLICY_ASK },
		{ "git -C ../x/.. status", POLICY_ASK, "/workspace/fine" },
		{ "git -C .. status", POLICY_ASK, "/workspace/link", "is a link" },
		{ "git -C $x status", POLICY_ASK },
		{ "git -C \"$x\" -C fine status", POLICY_ASK, NULL, "in which directory" },
		{ "git --git-dir=fine/.git status", POLICY_ASK },
		{ "git --git-dir fine/.git --work-tree fine status", POLICY_ASK },
		{ "GIT_DIR=evil/.git git status", POLICY_ASK },
		{ "git --bare log", POLICY_ASK, "/workspace/evilbare", "core.fsmonitor" },
		{ "cd evil && git status", POLICY_ASK, NULL, "core.fsmonitor" },
		{ "cd fine && git status", POLICY_ALLOW },
		{ "cd fine/src && git log | head -3", POLICY_ALLOW },
		{ "cd $x && git status", POLICY_ASK, NULL, "in which directory" },
		{ "cd evil; cd ../fine; git status", POLICY_ASK, NULL, "in which directory" },
		{ "cd -P link/.. && git status", POLICY_ASK, NULL, "in which directory" },
		{ "env git -C evil status", POLICY_ASK },
		{ "ls | xargs git -C evil status", POLICY_ASK, NULL, "core.fsmonitor" },
		{ "sh -c 'cd evil; git status'", POLICY_ASK, NULL, "core.fsmonitor" },
		{ "echo $(git -C evil log)", POLICY_ASK, NULL, "core.fsmonitor" },
		{ "git --version", POLICY_ALLOW, "/workspace/evil" },
		{ "git version", POLICY_ALLOW, "/workspace/evil" },
		{ "git init x", POLICY_ALLOW },
		{ "git clone https://forge.example/a", POLICY_ALLOW },
		{ "git log --submodule=diff", POLICY_ASK, "/workspace/fine" },
	};
	EXPECT(rows);
}

static void repositories_on_this_machine_are_judged_when_they_are_reached(void **state)
{
	static const struct row rows[] = {
		{ "git push ../hook main", POLICY_ASK, "/workspace/fine", "is a hook" },
		{ "git push /workspace/hook main", POLICY_ASK, "/workspace/fine", "is a hook" },
		{ "git push file:///workspace/hook main", POLICY_ASK, "/workspace/fine", "hook" },
		{ "git push --repo=../hook", POLICY_ASK, "/workspace/fine", "is a hook" },
		{ "git push ../link/../fine", POLICY_ASK, "/workspace/fine", "which repository" },
		{ "git push evil", POLICY_ASK, "/workspace/fine", "evil.git/config" },
		{ "git push evil", POLICY_ASK, "/workspace/fine/src", "evil.git/config" },
		{ "git fetch ../link", POLICY_ASK, "/workspace/fine", "is a link" },
		{ "git push ../bare main", POLICY_ALLOW, "/workspace/fine" },
		{ "git push origin main", POLICY_ALLOW, "/workspace/fine" },
		{ "git clone evil x", POLICY_ASK, NULL, "core.fsmonitor" },
		{ "git clone fine x", POLICY_ALLOW },
		{ "git status", POLICY_ALLOW, "/workspace/local" },
		{ "git push", POLICY_ASK, "/workspace/local", "is a hook" },
		{ "git remote -v", POLICY_ALLOW, "/workspace/local" },
		{ "git remote update", POLICY_ASK, "/workspace/local", "is a hook" },
		{ "git status", POLICY_ASK, "/workspace/lazy", "core.fsmonitor" },
		{ "git status", POLICY_ALLOW, "/workspace/near" },
		{ "git fetch", POLICY_ASK, "/workspace/near", "../fine" },
	};
	const struct fixture_file ssh[] = { REPOSITORY("/workspace/.git", HARMLESS),
		{ "/workspace/.ssh/config", "Host *\n  ProxyCommand x\n" } };

	EXPECT(rows);
	expect("git push", "/workspace", ssh, sizeof ssh / sizeof *ssh, POLICY_ASK, ".ssh/config");
	expect("git status", "/workspace", ssh, sizeof ssh / sizeof *ssh, POLICY_ALLOW, NULL);
}

static void what_other_commands_may_bring_is_asked_for(void **state)
{
	static const char changed[] = "may change the configuration of git";
	static const char brought[] = "may bring a repository";
	static const struct row rows[] = {
		{ "tar xf a.tar && git status", POLICY_ASK, "/workspace/fine", changed },
		{ "git status | tar xf -", POLICY_ASK, "/workspace/fine", changed },
		{ "git status | { cat; tar xf -; }", POLICY_ASK, "/workspace/fine", changed },
		{ "x=$(git status | tar xf -)", POLICY_ASK, "/workspace/fine", changed },
		{ "git log -- \"$(tar xf a.tar)\"", POLICY_ASK, "/workspace/fine", changed },
		{ "x=$(tar xf a.tar) git log", POLICY_ASK, "/workspace/fine", changed },
		{ "git status & tar xf a.tar", POLICY_ASK, "/workspace/fine", changed },
		{ "cat x > .git/config; git status", POLICY_ASK, "/workspace/fine", changed },
		{ "tar xf a.tar; git clone https://a.example/b", POLICY_ASK, NULL, changed },
		{ "git remote add x ../hook && git push x", POLICY_ASK, "/workspace/fine",
			changed },
		{ "git remote add x https://a.example/b && git push x", POLICY_ALLOW,
			"/workspace/fine" },
		{ "git clone https://a.example/b x && cd x && git status", POLICY_ASK, NULL,
			brought },
		{ "git checkout x && git status", POLICY_ASK, "/workspace/fine/src", brought },
		{ "git -C fine checkout x; git -C fine/src log", POLICY_ASK, NULL, brought },
		{ "git checkout x && git status", POLICY_ALLOW, "/workspace/fine" },
		{ "git pull && git push && git log -1", POLICY_ALLOW, "/workspace/fine" },
		{ "git pull; git status", POLICY_ALLOW, "/workspace/finetree" },
		{ "cd fine && git pull && git status", POLICY_ALLOW },
		{ "cd fine/src && git pull && git status", POLICY_ASK, NULL, brought },
		{ "cd none; git pull; git status", POLICY_ASK, "/workspace/fine", brought },
		{ "(cd fine; git pull); git status", POLICY_ASK, NULL, brought },
		{ "cd fine | git pull; git status", POLICY_ASK, NULL, brought },
		{ "git pull; cd fine; git status", POLICY_ASK, NULL, brought },
		{ "git add -A && git commit -m x && git push", POLICY_ALLOW,
			"/workspace/fine/src" },
		{ "git commit -m 'a & b' && git log", POLICY_ALLOW, "/workspace/fine" },
		{ "git commit -m \"a & b\"; git log", POLICY_ALLOW, "/workspace/fine" },
		{ "git commit -m \"$(ls & tar xf a)\"; git log", POLICY_ASK, "/workspace/fine",
			changed },
		{ "git status # it's\ntar xf a.tar & git log # it's", POLICY_ASK, "/workspace/fine",
			changed },
		{ "git diff $(git merge-base a b)", POLICY_ASK, "/workspace/fine" },
		{ "git status | head -3; git diff | cat", POLICY_ALLOW, "/workspace/fine" },
		{ "mkdir x; git status", POLICY_ASK, "/workspace/fine", "no rule matches" },
	};
	EXPECT(rows);
}

static void a_policy_that_never_asks_reads_first_what_it_would_deny(void **state)
{
	const struct fixture_file files[] = { REPOSITORY("/workspace/.git", HARMLESS) };
	struct policy strict;
	struct policy_verdict verdict;
	struct error err;
	const struct policy_places places = { .workspace = "/workspace", .home = "/workspace" };

	policy_init(&strict, &arena);
	assert_int_equal(policy_add_settings(&strict,
				 STR("{\"permissions\": {\"defaultMode\": \"dontAsk\", \"allow\": "
				     "[\"Bash(git status:*)\"]}}"),
				 &places, &err),
		0);
	judge(&strict, "git status", "/workspace", files, sizeof files / sizeof *files, &verdict);
	assert_int_equal(verdict.decision, POLICY_ALLOW);
	judge(&strict, "git status", "/workspace/evil", tree, sizeof tree / sizeof *tree, &verdict);
	assert_int_equal(verdict.decision, POLICY_DENY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_that_name_programs_are_asked_for_with_each_command),
		cmocka_unit_test(keys_that_git_and_people_write_are_allowed),
		cmocka_unit_test(each_repository_that_git_may_find_is_judged),
		cmocka_unit_test(words_that_choose_a_repository_are_followed),
		cmocka_unit_test(repositories_on_this_machine_are_judged_when_they_are_reached),
		cmocka_unit_test(what_other_commands_may_bring_is_asked_for),
		cmocka_unit_test(a_policy_that_never_asks_reads_first_what_it_would_deny),
	};
	return cmocka_run_group_tests(tests, build, tear_down);
}
