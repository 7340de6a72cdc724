"""Completion of commands, options and names, in the shells that people use."""
import contextlib
import os
import re
import shutil
import subprocess

import pytest
from harness import CARREL, TREE
from terminals import terminal
from workspaces import created, workspace  # noqa: F401

SHELLS = ["bash", "zsh", "fish"]
pytestmark = pytest.mark.shipped


def answers(carrel, *words):
    """What could stand for the last word."""
    done = carrel("__complete", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_commands_options_and_choices_come_from_the_tables(carrel):
    assert {"run", "create", "exec", "env", "completion", "help"} <= set(answers(carrel, ""))
    assert answers(carrel, "comp") == ["completion"] and answers(carrel, "nosuch", "") == []
    assert answers(carrel, "env", "bu") == ["build"]
    assert answers(carrel, "exec", "--ti") == ["--timeout"] and answers(carrel, "exec", "demo", "--cpu") == ["--cpu-time"]
    assert answers(carrel, "run", "--mem") == ["--memory"] and "--help" in answers(carrel, "ls", "--")
    assert answers(carrel, "ls", "-o", "") == ["text", "json"] and answers(carrel, "ls", "--format=j") == ["--format=json"]
    assert answers(carrel, "logs", "x", "--stream", "std") == ["stdout", "stderr"]
    assert answers(carrel, "completion", "") == SHELLS and answers(carrel, "help", "sh") == ["shell"]
    assert answers(carrel, "run", "-w", "") == [":dirs"] and answers(carrel, "env", "build", "x", "-r", "") == [":files"]
    assert answers(carrel, "kill", "x", "--si") == ["--signal"]
    # Words of a command are not options of carrel.
    assert answers(carrel, "run", "--", "--ti") == [":files"] and answers(carrel, "run", "ls", "--ti") == [":files"]
    assert not (carrel.home / "run").exists() or not (carrel.home / "run/carrel.sock").exists(), "a daemon was started"


def test_help_lists_verbs_that_exist(carrel):
    """The verbs in the summary of a group are its commands: whoever reads "check" types it."""
    words = {"list": "ls", "remove": "rm"}
    for row in carrel("__complete", "").stdout.splitlines():
        name, summary, _ = row.split("\t")
        verbs = re.match(r"((?:\w+, )*\w+) and (\w+) ", summary)
        subcommands = answers(carrel, name, "")
        if verbs and "ls" in subcommands:
            named = [words.get(verb, verb) for verb in [*verbs[1].split(", "), verbs[2]]]
            assert set(named) <= set(subcommands), (name, summary)


def test_commands_come_with_their_group(carrel):
    """It is the third column of a command's line, and of nothing else."""
    rows = [line.split("\t") for line in carrel("__complete", "").stdout.splitlines()]
    assert ["run", "run one command in a new sandbox", "everyday commands"] in rows and {len(row) for row in rows} == {3}
    assert carrel("__complete", "help", "").stdout.splitlines() == ["\t".join(row) for row in rows]
    for words in (["env", ""], ["ls", "--"]):
        assert {line.count("\t") for line in carrel("__complete", *words).stdout.splitlines()} == {1}


def test_names_come_from_the_daemon_that_runs(daemon, workspace):
    exec_id = daemon("exec", "-d", workspace, "--", "true").stdout.strip()
    for words in (["exec"], ["info"], ["ps"], ["rm", "x"], ["shell"], ["update"], ["top"], ["events", "--workspace"]):
        assert answers(daemon, *words, workspace[:3]) == [workspace], words
    assert answers(daemon, "create", "") == [] and answers(daemon, "exec", workspace, "") == [":files"]
    assert answers(daemon, "cp", workspace[:4]) == [f"{workspace}:", ":files"]
    assert answers(daemon, "create", "--template", "mini") == ["minimal"]
    assert answers(daemon, "run", "--template", "mini") == ["minimal", ":files"]
    for command in ("wait", "logs", "kill", "attach"):
        assert answers(daemon, command, exec_id[:8]) == [exec_id]
    other = {**daemon.env, "CARREL_HOME": "/nonexistent"}
    assert answers(daemon, "info", "--host", str(daemon.socket), workspace[:3]) == [workspace]
    assert subprocess.run([daemon.path, "__complete", "info", ""], env=other, capture_output=True, text=True).stdout == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_printed_for_each_shell(carrel, shell):
    assert "__complete" in carrel("completion", shell).stdout
    assert carrel("completion", "tcsh").returncode == 125
    if shell == "bash" and shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "-s", "bash", "-"], input=carrel("completion", "bash").stdout, text=True, check=True)


@contextlib.contextmanager
def prompt_of(daemon, shell, tmp_path):
    """A shell on a terminal that has the completion; carrel is in its PATH."""
    (tmp_path / "script").write_text(daemon("completion", shell).stdout)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/carrel").symlink_to(os.path.abspath(CARREL))
    options = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[shell]
    setup = {"bash": "bind 'set enable-bracketed-paste off'; bind 'set bell-style none'",
             "zsh": "unsetopt zle_bracketed_paste; autoload -U compinit; compinit -D -u; setopt no_beep"}[shell]
    with terminal(daemon, *options, program=shell, columns=200, PS1="READY> ", PROMPT="READY> ", HOME=str(tmp_path), TERM="dumb",
                  PATH=f"{tmp_path}/bin:/usr/bin:/bin") as term:
        term.expect("READY> ")
        term.send(f"{setup}; . {tmp_path}/script; echo loa''ded\n")
        term.expect("loaded")
        term.expect("READY> ")
        yield term


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_tab_completes(daemon, workspace, tmp_path, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} isn't installed")
    with prompt_of(daemon, shell, tmp_path) as term:
        for typed, becomes in (("carrel inf", "info "), (f"carrel info {workspace[:4]}", f"{workspace} "), ("carrel ls --format=j", "format=json"),
                               ("carrel exec --inter", "--interactive "), (f"carrel cp {workspace[:4]}", f"{workspace}:")):
            term.send(f"{typed}\t")
            term.expect(becomes)
            term.send("\x15")      # the line is forgotten
        (tmp_path / "requirements.file").write_text("")
        term.send(f"cd {tmp_path}\n")
        term.expect("READY> ")
        term.send("carrel env build x -r require\t")
        term.expect("requirements.file ")
        term.send("\x15exit\n")
        term.rest()


@pytest.mark.parametrize("shell, setup, seen", [
    ("bash", "bind 'set completion-query-items 0'; bind 'set page-completions off'; bind 'set completion-display-width 0'",
     ["run", "create", "fork", "rm", "info", "verify", "home", "doctor", "help"]),
    ("zsh", "LISTMAX=1000; zstyle ':completion:*' group-name ''; zstyle ':completion:*:descriptions' format 'group %d:'",
     ["group everyday commands:", "run", "create", "rm", "group workspaces:", "info", "group this program:", "doctor", "help"])])
def test_a_shell_lists_commands_by_their_groups(daemon, tmp_path, shell, setup, seen):
    if not shutil.which(shell):
        pytest.skip(f"{shell} isn't installed")
    with prompt_of(daemon, shell, tmp_path) as term:
        term.send(f"{setup}\n")
        term.expect("READY> ")
        term.send("carrel \t\t")
        for one in seen:
            term.expect(rf"\b{one}(?!\w)")


def test_fish_completes(daemon, workspace, tmp_path):
    if not shutil.which("fish"):
        pytest.skip("fish isn't installed")
    (tmp_path / "carrel").symlink_to(os.path.abspath(CARREL))
    (tmp_path / "script.fish").write_text(daemon("completion", "fish").stdout)

    def complete(line):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {tmp_path}/script.fish; complete -C '{line}'"], text=True, capture_output=True,
                              env={**daemon.env, "HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True, timeout=60)
        assert all(one.count("\t") <= 1 for one in done.stdout.splitlines()), done.stdout
        return [one.split("\t")[0] for one in done.stdout.splitlines()]
    assert complete("carrel ") == answers(daemon, ""), "the order of the groups is lost"
    assert complete("carrel inf") == ["info"] and complete(f"carrel info {workspace[:4]}") == [workspace]
    assert complete("carrel ls --format=j") == ["--format=json"] and complete("carrel env bu") == ["build"]


@pytest.mark.once
def test_what_make_installs_make_uninstalls(tmp_path):
    """Neither leaves or removes anything else."""
    root, carrel = tmp_path / "root", os.path.abspath(CARREL)
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/other").write_text("")
    tree = lambda: {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
    subprocess.run([TREE / "tools/install-files", carrel, root, "/usr"], check=True, capture_output=True)
    assert {"usr/bin/carrel", "usr/share/bash-completion/completions/carrel", "usr/share/zsh/site-functions/_carrel",
            "usr/share/fish/vendor_completions.d/carrel.fish", "usr/share/man/man1/carrel-attach.1",
            "usr/share/man/man1/carrel-deploy.1", "usr/share/man/man1/carrel-package.1"} <= tree()
    subprocess.run([TREE / "tools/uninstall-files", root, "/usr"], check=True, capture_output=True)
    assert tree() == {"usr/bin/other"} and not (root / "usr/lib/carrel").exists() and not (root / "usr/share/carrel").exists()
    done = subprocess.run([TREE / "tools/uninstall-files", root, "/usr"], capture_output=True, text=True)
    assert done.returncode == 1 and "nothing" in done.stderr
