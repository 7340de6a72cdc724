"""File rules that are patterns: what they match when a sandbox starts is covered like a path that a rule names."""
# security: policy
import json
import os
import pathlib
import socket

import pytest
from harness import run_measured

RULES = ["file(read:${WORKSPACE}/**/*.pem)", "file(read:${WORKSPACE}/**/keys/**)", "file(write:${WORKSPACE}/lib/*.so)",
         "file(delete:${WORKSPACE}/*.keep)", "file(read:/**/.token)"]

PREPARE = """
mkdir -p a/b/c lib keys a/keys/deep 'a/dir.pem'
echo one >top.pem; echo two >a/b/c/deep.pem; echo three >keys/x; echo four >a/keys/deep/y; echo five >lib/a.so; echo six >x.keep
echo seven >real; ln -s ../real a/link.pem; mkfifo a/fifo.pem; echo eight >a/dir.pem/inner; echo nine >a/.token; echo open >free.txt
ln -s nowhere dangling.pem; ln -s /etc keys/out; echo ten >'a/odd
name.pem'
"""

# Each must fail.
ATTACKS = {
    "read": "cat top.pem",
    "read far below": "cat a/b/c/deep.pem",
    "read a name with a line end": "cat a/odd*",
    "walk with grep": "grep -d recurse -q one . --include=top.pem",
    "walk with tar": "tar cf - a top.pem 2>/dev/null | grep -aq two",
    "a list for tar": "echo top.pem >/tmp/list; tar cf - -T /tmp/list 2>/dev/null | grep -aq one",
    "compare": "diff -r a /usr/lib/none 2>/dev/null | grep -q two",
    "read in a directory": "cat keys/x",
    "list a directory": "ls a/keys",
    "read what a link leads to": "cat a/link.pem",
    "read where the link leads": "cat real",
    "read of the pattern for every directory": "cat a/.token",
    "write to a pipe": "timeout 2 sh -c 'echo x >a/fifo.pem'",
    "hard link": "ln top.pem l1 && cat l1",
    "rename": "mv top.pem l2",
    "rename of a parent": "mv a z",
    "rename of an inner parent": "mv a/b/c a/z",
    "remove": "rm -f top.pem",
    "remove a parent": "rm -rf a/b",
    "replace": "echo x >/workspace/new && mv -f new top.pem",
    "chmod": "chmod 644 top.pem && cat top.pem",
    "write": "echo x >lib/a.so",
    "remove what is read-only": "rm -f lib/a.so",
    "remove what stays": "rm -f x.keep",
    "rename what stays": "mv x.keep z",
    "unmount": "umount top.pem",
}
WORKS = "cat free.txt a/dir.pem/inner x.keep && echo more >>x.keep && echo new >a/b/n && rm a/b/n && echo s >lib/b.txt && echo k >later.pem && cat later.pem"


def settings_of(directory, deny):
    path = directory / "settings.json"
    path.write_text(json.dumps({"permissions": {"allow": ["shell(*)", "file(*:/**)"], "deny": deny}}))
    return path


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    return settings_of(tmp_path_factory.mktemp("rules"), RULES)


def program(directory, script):
    """A program that no rule judges, which runs the script."""
    (directory / "run.py").write_text(f"import subprocess, sys\nsys.exit(subprocess.run(['sh', '-c', {script!r}]).returncode)\n")
    return ("--", "python3", "/workspace/run.py")


def attack_script():
    lines = ["cd /workspace"]
    for name, attack in ATTACKS.items():
        lines.append(f"( {attack} ) >/tmp/said 2>&1 && echo 'SUCCEEDED: {name}'")
    return "\n".join([*lines, "true"])


def test_no_program_reads_what_a_pattern_denies(carrel, tmp, rules):
    assert carrel.run("--dir", tmp, "--", "sh", "-c", PREPARE).returncode == 0
    done = carrel.run("--dir", tmp, "-s", rules, *program(tmp, attack_script()))
    assert done.returncode == 0 and "SUCCEEDED" not in done.stdout and done.stderr == "", done
    done = carrel.run("--dir", tmp, "-s", rules, *program(tmp, WORKS))
    assert done.returncode == 0 and done.stdout == "open\neight\nsix\nk\n", done
    # On the host nothing was changed, and nothing is mounted.
    assert (tmp / "top.pem").read_text() == "one\n" and (tmp / "lib/a.so").read_text() == "five\n" and (tmp / "real").read_text() == "seven\n"
    # What was made later is covered at the next start.
    assert carrel.run("--dir", tmp, "-s", rules, *program(tmp, "cat later.pem")).returncode != 0


def test_what_programs_meet_there(carrel, tmp, rules):
    """rename and unlink say EBUSY, reading and listing EACCES, writing EROFS."""
    assert carrel.run("--dir", tmp, "--", "sh", "-c", PREPARE).returncode == 0
    (tmp / "run.py").write_text("""import errno, os
def of(call, *words):
    try: call(*words)
    except OSError as e: return errno.errorcode[e.errno]
print(of(os.rename, "top.pem", "y"), of(os.unlink, "top.pem"), of(os.rmdir, "keys"), of(os.rename, "a", "z"), of(os.rename, "real2", "top.pem"),
      of(open, "top.pem"), of(os.listdir, "keys"), of(open, "lib/a.so", "a"), of(os.unlink, "x.keep"), flush=True)
os.system("rm -rf a/b 2>&1")
""")
    (tmp / "real2").write_text("x")
    done = carrel.run("--dir", tmp, "-s", rules, "--", "python3", "/workspace/run.py")
    assert done.stdout.splitlines()[0] == "EBUSY EBUSY EBUSY EBUSY EBUSY EACCES EACCES EROFS EBUSY", done
    assert "Device or resource busy" in done.stdout, done


def test_too_many_matches_are_said(carrel, tmp):
    many = tmp / "many"
    many.mkdir()
    for i in range(1001):
        (many / f"{i}.pem").write_text("x")
    (tmp / "one.key").write_text("x")
    rules = settings_of(tmp, ["file(read:${WORKSPACE}/**/*.pem)", "file(read:${WORKSPACE}/*.key)"])
    done = carrel.run("--dir", tmp, "-s", rules, *program(tmp, "cat many/7.pem; cat one.key"))
    assert done.stdout == "x", done
    assert "warning: the rule against 'read:/workspace/**/*.pem' is only judged" in done.stderr and "more than 1000 files" in done.stderr, done
    (many / "7.pem").unlink()
    done = carrel.run("--dir", tmp, "-s", rules, *program(tmp, "cat many/*.pem"))
    assert done.stdout == "" and "warning" not in done.stderr, done.stderr[:300]


def test_a_socket_and_a_mode_that_was_taken_away_are_covered(carrel, tmp, rules):
    (tmp / "shut").mkdir()
    (tmp / "shut/s.pem").write_text("secret")
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(tmp)
    listener.bind("sock.pem")
    os.chdir(here)
    (tmp / "shut").chmod(0)
    done = carrel.run("--dir", tmp, "-s", rules, *program(tmp, "cd /workspace; chmod 755 shut; cat shut/s.pem; test -S sock.pem && echo seen"))
    (tmp / "shut").chmod(0o755)
    listener.close()
    assert "secret" not in done.stdout and "seen" not in done.stdout, done


def make_deep(directory, depth, name="d", files=0):
    """Directories one in the other; returns to where it was. Paths may be longer than one call takes."""
    here = os.open(".", os.O_RDONLY)
    os.chdir(directory)
    for _ in range(depth):
        os.mkdir(name)
        os.chdir(name)
    for i in range(files):
        pathlib.Path(f"f{i}").touch()
    os.fchdir(here)
    os.close(here)


@pytest.mark.parametrize("depth,name,why", [(20, "d" * 250, "a path is longer than 4095 bytes"), (66, "d", "nested deeper than 64")])
def test_a_tree_too_deep_to_walk_neither_keeps_the_sandbox_from_starting_nor_uncovers_other_patterns(carrel, tmp, depth, name, why):
    make_deep(tmp, depth, name, 1)
    (tmp / "x.pem").write_text("one")
    (tmp / "lib").mkdir()
    (tmp / "lib/y.pem").write_text("two")
    rules = settings_of(tmp, ["file(read:${WORKSPACE}/**/*.pem)", "file(read:${WORKSPACE}/*.pem)", "file(read:${WORKSPACE}/*/y.pem)"])
    done = carrel.run("--dir", tmp, "-s", rules, *program(tmp, "cat x.pem lib/y.pem; true"))
    assert done.returncode == 0 and done.stdout == "", done
    assert done.stderr.count("is only judged here") == 1 and "'read:/workspace/**/*.pem'" in done.stderr and why in done.stderr, done


def test_matches_in_too_many_directories_are_said(carrel, tmp):
    for i in range(210):
        deep = tmp / "many" / str(i) / "/".join("d" * 20)
        deep.mkdir(parents=True)
        (deep / "x.pem").write_text("x")
    done = carrel.run("--dir", tmp, "-s", settings_of(tmp, RULES), "--", "true")
    assert done.returncode == 0 and "too many directories" in done.stderr and done.stderr.count("is only judged here") == 1, done


def test_the_walk_for_many_patterns_holds_no_memory(carrel, tmp):
    make_deep(tmp, 15, "d" * 250, 4000)
    rules = settings_of(tmp, [f"file(read:${{WORKSPACE}}/**/*.x{i})" for i in range(10)])
    done, peak = run_measured(carrel.path, "run", "--dir", tmp, "-s", rules, "--", "true", env=carrel.env)
    assert done.returncode == 0 and peak < 80000, (done, peak)


def test_the_plan_shows_patterns(carrel, tmp, rules):
    shown = json.loads(carrel.run("--plan", "--dir", tmp, "-s", rules, "--", "true").stdout)["denied"]
    assert {"path": "/workspace/**/*.pem", "access": "read"} in shown and {"path": "/workspace/**/.token", "access": "read"} in shown
    assert {"path": "/workspace/lib/*.so", "access": "write"} in shown and {"path": "/workspace/*.keep", "access": "delete"} in shown
