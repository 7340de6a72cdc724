"""Programs that the configuration of a repository names, and its hooks: under a policy that allows git they don't run unasked, however the
repository came. Each case runs without a policy, too: git does run the program there."""
# security: policy
import json
import os
import pathlib
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="no git")
RULES = {"permissions": {"allow": [f"shell({name}:*)" for name in ("git", "sh", "tar", "cp", "cat")]}}
RECORDER = "#!/bin/sh\necho ran >>/workspace/ran\n[ \"$1\" != x ] || cat\n"


def git(*words, cwd):
    env = {**os.environ, "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
           "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
    subprocess.run(["git", *words], cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def repository(path, *config, bare=False):
    """One with a commit and a changed file, and these keys."""
    path.mkdir(parents=True, exist_ok=True)
    git("init", "-q", cwd=path)
    (path / "a").write_text("1\n")
    git("add", "a", cwd=path)
    git("commit", "-qm", "a", cwd=path)
    (path / "a").write_text("2\n")
    for key, value in config:
        git("config", key, value, cwd=path)
    if bare:
        for entry in list((path / ".git").iterdir()):
            entry.rename(path / entry.name)
        (path / ".git").rmdir()
        git("config", "-f", "config", "core.bare", "false", cwd=path)
        git("config", "-f", "config", "core.worktree", "/workspace/" + path.name, cwd=path)
    return path


FSMONITOR = ("core.fsmonitor", "/workspace/evil")


def plain(top):
    repository(top / "sub", FSMONITOR)


def bare(top):
    repository(top / "sub", FSMONITOR, bare=True)


def gitdir_file(top):
    repository(top / "sub").joinpath(".git").rename(top / "elsewhere")
    git("config", "-f", "elsewhere/config", *FSMONITOR, cwd=top)
    (top / "sub/.git").write_text("gitdir: ../elsewhere\n")


def worktree(top):
    repository(top / "main")
    git("worktree", "add", "-q", "../sub", cwd=top / "main")
    git("config", *FSMONITOR, cwd=top / "main")
    (top / "sub/.git").write_text("gitdir: ../main/.git/worktrees/sub\n")


def commondir(top):
    repository(top / "other", FSMONITOR)
    repository(top / "sub").joinpath(".git/commondir").write_text("../../other/.git\n")


def worktree_config(top):
    git("config", "-f", ".git/config.worktree", *FSMONITOR, cwd=repository(top / "sub", ("extensions.worktreeConfig", "true")))


def included(top):
    repository(top / "sub", ("include.path", "/workspace/more"))
    git("config", "-f", "more", *FSMONITOR, cwd=top)


def included_if(top):
    repository(top / "sub", ("includeIf.gitdir:/.path", "/workspace/more"))
    git("config", "-f", "more", *FSMONITOR, cwd=top)


def index_to_refresh(path):
    """`git status` writes the index there, and the hook for that runs: a file is as it was, but for its times."""
    (path / "b").write_text("1\n")
    git("add", "b", cwd=path)
    os.utime(path / "b", (1, 1))
    return path


def post_index(top):
    path = index_to_refresh(repository(top / "sub")) / ".git/hooks/post-index-change"
    path.parent.mkdir(exist_ok=True)
    shutil.copy2(top / "evil", path)


def hooks_path(top):
    index_to_refresh(repository(top / "sub", ("core.hooksPath", "/workspace/hooks")))
    (top / "hooks").mkdir()
    shutil.copy2(top / "evil", top / "hooks/post-index-change")


def linked(top):
    repository(top / "real", FSMONITOR)
    (top / "sub").symlink_to("real")


def linked_below(top):
    """The repository above is that of the link's target."""
    repository(top / "real", FSMONITOR).joinpath("below").mkdir()
    (top / "sub").symlink_to("real/below")


def linked_dot_git(top):
    repository(top / "real", FSMONITOR)
    (top / "sub").mkdir()
    (top / "sub/.git").symlink_to("../real/.git")
    (top / "sub/a").write_text("3\n")


def submodule(top):
    sub = repository(top / "sub")
    repository(sub / "module", FSMONITOR)
    git("add", "module", cwd=sub)


def home(top):
    repository(top / "sub")
    git("config", "-f", ".gitconfig", *FSMONITOR, cwd=top)


def home_xdg(top):
    repository(top / "sub")
    (top / ".config/git").mkdir(parents=True)
    git("config", "-f", ".config/git/config", *FSMONITOR, cwd=top)


def below(top):
    repository(top / "sub" / "..", FSMONITOR)
    (top / "sub").mkdir(exist_ok=True)


def made(*config, attributes=None):
    def make(top):
        path = repository(top / "sub", *config)
        if attributes:
            (path / ".gitattributes").write_text(attributes)
    return make


def pushed_to(top):
    other = repository(top / "other")
    repository(top / "sub")
    shutil.copy2(top / "evil", other / ".git/hooks/pre-receive")


def rebasing(top):
    path = repository(top / "sub")
    git("checkout", "a", cwd=path)
    git("-c", r"sequence.editor=printf 'break\nexec /workspace/evil\n' >", "rebase", "-i", "--root", cwd=path)


STATUS = ["git", "status"]
CASES = {case.__name__: (case, STATUS) for case in (
    plain, bare, gitdir_file, worktree, commondir, worktree_config, included, included_if, post_index, hooks_path, linked, linked_below,
    linked_dot_git, submodule, home, home_xdg, below)}
CASES |= {
    "external diff": (made(("diff.external", "/workspace/evil")), ["git", "diff"]),
    "diff driver": (made(("diff.x.command", "/workspace/evil"), attributes="* diff=x\n"), ["git", "diff"]),
    "textconv": (made(("diff.x.textconv", "/workspace/evil"), attributes="* diff=x\n"), ["git", "diff"]),
    "clean filter": (made(("filter.x.clean", "/workspace/evil x"), attributes="* filter=x\n"), ["git", "add", "a"]),
    "ssh command": (made(("core.sshCommand", "/workspace/evil"), ("remote.o.url", "ssh://a.example/b")), ["git", "fetch", "o"]),
    "upload pack": (made(("remote.o.uploadpack", "/workspace/evil"), ("remote.o.url", "/workspace/sub")), ["git", "fetch", "o"]),
    "ext": (made(("protocol.ext.allow", "always"), ("remote.o.url", "ext::/workspace/evil")), ["git", "fetch", "o"]),
    "instead of": (made(("protocol.ext.allow", "always"), ("url.ext::/workspace/evil .insteadOf", "https://a.example/")), ["git", "fetch", "https://a.example/b"]),
    "editor": (made(("core.editor", "/workspace/evil"), ("user.name", "a"), ("user.email", "a@b")), ["git", "commit", "-a"]),
    "signing": (made(("commit.gpgSign", "true"), ("gpg.program", "/workspace/evil"), ("user.name", "a"), ("user.email", "a@b")), ["git", "commit", "-am", "x"]),
    "hooks of a remote": (pushed_to, ["git", "push", "../other", "HEAD:refs/heads/new"]),
    "a list of a rebase": (rebasing, ["git", "rebase", "--continue"]),
    "-C": (plain, ["git", "-C", "/workspace/sub", "status"]),
    "cd": (plain, ["sh", "-c", "cd /workspace/sub && git status"]),
}


@pytest.fixture
def top(tmp_path):
    path = tmp_path / "w"
    path.mkdir()
    (path / "evil").write_text(RECORDER)
    (path / "evil").chmod(0o755)
    return path


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(RULES))
    return path


def run(carrel, top, *words, cwd="/workspace/sub"):
    done = carrel.run("--writable-config", "--dir", top, "-w", cwd, *words)
    ran = top / "ran"
    has_run = ran.exists()
    ran.unlink(missing_ok=True)
    return done, has_run


@pytest.mark.parametrize("name", CASES)
def test_what_a_repository_names_does_not_run_unasked(carrel, top, rules, name):
    make, command = CASES[name]
    make(top)
    cwd = "/workspace" if command[1] in ("-C", "-c") else "/workspace/sub"
    done, has_run = run(carrel, top, "-s", rules, "--", *command, cwd=cwd)
    assert (done.returncode, has_run) == (126, False) and "approved" in done.stderr, done
    done, has_run = run(carrel, top, "--", *command, cwd=cwd)
    assert has_run, done


@pytest.mark.parametrize("bring", ["tar xf /workspace/a.tar", "cp -r /workspace/from sub", "git clone -q /workspace/from sub"])
def test_what_the_same_line_brings_is_asked_for(carrel, top, rules, bring):
    """What a clone brings below its working tree may be a bare repository."""
    if bring.startswith("git"):
        repository(repository(top / "from") / "below", FSMONITOR, bare=True)
        (top / "from/below/refs/heads/.keep").touch()
        git("add", "-f", ".", cwd=top / "from")
        git("commit", "-qm", "b", cwd=top / "from")
        command = f"{bring} && mkdir -p sub/below/refs/tags sub/below/objects/info && cd sub/below && git status"
    else:
        repository(top / "from", FSMONITOR)
        subprocess.run(["tar", "cf", "a.tar", "--transform", "s,^from,sub,", "from"], cwd=top, check=True)
        command = f"{bring} && cd sub && git status"
    done, has_run = run(carrel, top, "-s", rules, "--", "sh", "-c", command, cwd="/workspace")
    assert (done.returncode, has_run) == (126, False), done
    done, has_run = run(carrel, top, "--", "sh", "-c", command, cwd="/workspace")
    if not bring.startswith("git"):
        assert has_run, done


def test_repositories_as_git_makes_them_are_used_unasked(carrel, top, rules):
    def allowed(command, cwd):
        done, has_run = run(carrel, top, "-s", rules, "--", "sh", "-c", command, cwd=cwd)
        assert done.returncode == 0 and not has_run, (command, done)

    allowed("git init -q new && git --version", "/workspace")
    repository(top / "sub", ("user.name", "a"), ("user.email", "a@example.com"), ("alias.x", "!evil"), ("core.pager", "cat"),
               ("remote.origin.url", "https://forge.example/a.git"), ("branch.main.remote", "origin"))
    (top / "sub/src").mkdir()
    allowed("git status && git diff | cat && git log --oneline -1 && git add -A && git commit -qm 'a & b' && git checkout -qb x && git show", "/workspace/sub")
    allowed("git status && git log -1 && git branch -a", "/workspace/sub/src")
    allowed("cd sub && git stash list && git tag x && git reset -q --hard HEAD~1", "/workspace")
    allowed("git clone -q sub copy", "/workspace")
    allowed("git log -1 && git fetch -q", "/workspace/copy")
    git("worktree", "add", "-q", "../tree", "-b", "y", cwd=top / "copy")
    (top / "tree/.git").write_text("gitdir: ../copy/.git/worktrees/tree\n")
    allowed("git status && git log -1", "/workspace/tree")
    git("clone", "-q", "--bare", "sub", "bare.git", cwd=top)
    allowed("git log -1 && git branch", "/workspace/bare.git")


def test_the_reason_names_the_file_and_the_key(carrel, top, rules):
    plain(top)
    done, _ = run(carrel, top, "-s", rules, "--", "git", "status")
    assert "'/workspace/sub/.git/config' sets core.fsmonitor" in done.stderr, done
    assert pathlib.Path(top / "sub/.git/config").exists()
