"""File rules as mounts: a denied path can't be opened, written to or replaced by any program, whatever the command is."""
# security: policy
import json

import pytest

RULES = ["file(read:${WORKSPACE}/top)", "file(read:${WORKSPACE}/a/b/secret)", "file(read:${WORKSPACE}/hidden/**)",
         "file(write:${WORKSPACE}/conf/fixed)", "file(write:${WORKSPACE}/locked/**)", "file(delete:${WORKSPACE}/stays)",
         "file(read:/usr/bin/who)", "file(read:/workspace/linked)"]

PREPARE = """
mkdir -p a/b hidden/deep conf locked
echo one >top; echo two >a/b/secret; echo three >hidden/deep/x; echo four >conf/fixed; echo five >locked/x; echo six >stays
echo seven >target; ln -s target linked; echo open >free
"""

# Each must fail; python as the program that no rule judges.
ATTACKS = {
    "read": "cat top",
    "read below": "cat a/b/secret",
    "read in a directory": "cat hidden/deep/x",
    "list a directory": "ls hidden",
    "read by a link": "ln -sf top l1 && cat l1",
    "read what a link leads to": "cat linked",
    "read where the link leads": "cat target",
    "read by proc": "cat /proc/self/root/workspace/top",
    "read by another cwd": "cd a/b && cat ../../top",
    "read of the system": "cat /usr/bin/who",
    "hard link": "ln top l2 && cat l2",
    "hard link below": "ln a/b/secret l3 && cat l3",
    "rename": "mv top l4",
    "rename of a parent": "mv a z",
    "rename of the inner parent": "mv a/b a/z",
    "rename of the directory": "mv hidden z",
    "exchange": """python3 -c 'import ctypes,os; c=ctypes.CDLL(None, use_errno=True); os.mkdir("y")
raise SystemExit(0 if c.renameat2(-100, b"a", -100, b"y", 2) == 0 else 1)'""",
    "remove": "rm -f top",
    "remove a parent": "rm -rf a",
    "replace": "echo x >free2 && mv -f free2 top",
    "chmod": "chmod 644 top && cat top",
    "chmod a directory": "chmod 755 hidden && ls hidden",
    "write": "echo x >conf/fixed",
    "append": "echo x >>conf/fixed",
    "truncate": "truncate -s 0 conf/fixed",
    "touch": "touch conf/fixed",
    "replace what is fixed": "echo x >free3 && mv -f free3 conf/fixed",
    "move the parent away": "mv conf z && mkdir conf && echo x >conf/fixed",
    "remove what is fixed": "rm -f conf/fixed",
    "write in a directory": "echo x >locked/x",
    "make in a directory": "touch locked/new",
    "remove in a directory": "rm -f locked/x",
    "replace the directory": "mv locked z",
    "remove what stays": "rm -f stays",
    "rename what stays": "mv stays z",
    "unmount": "umount /workspace/top",
    "mount": "mount --bind /workspace /tmp",
    "unshare": "unshare -rm sh -c 'umount /workspace/top; cat /workspace/top'",
}
WORKS = "cat conf/fixed locked/x stays free && echo more >>stays && echo y >a/b/other && cat a/b/other && echo z >a/new && mv a/new a/newer && rm a/newer"


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    """A settings.json that allows any command and denies files."""
    path = tmp_path_factory.mktemp("rules") / "settings.json"
    path.write_text(json.dumps({"permissions": {"allow": ["shell(*)", "file(read:/**)", "file(write:/**)", "file(delete:/**)"], "deny": RULES}}))
    return path


def script_of(attacks):
    """One command that tries all of them and prints the names of those that succeeded."""
    lines = ["cd /workspace"]
    for name, attack in attacks.items():
        lines.append(f"( {attack} ) >/tmp/said 2>&1 && echo 'SUCCEEDED: {name}'")
    lines.append("true")
    return "\n".join(lines)


def test_no_program_gets_around_them_in_run(carrel, tmp, rules):
    assert carrel.run("--dir", tmp, "--", "sh", "-c", PREPARE).returncode == 0
    (tmp / "attack.py").write_text(f"import subprocess\nsubprocess.run(['sh', '-c', {script_of(ATTACKS)!r}])\n")
    done = carrel.run("--dir", tmp, "-s", rules, "--", "python3", "/workspace/attack.py")
    assert done.returncode == 0 and "SUCCEEDED" not in done.stdout, done
    (tmp / "works.py").write_text(f"import subprocess, sys\nsys.exit(subprocess.run(['sh', '-ec', {WORKS!r}]).returncode)\n")
    done = carrel.run("--dir", tmp, "-s", rules, "--", "python3", "/workspace/works.py")
    assert done.returncode == 0 and done.stdout == "four\nfive\nsix\nopen\ny\n", done
    # Nothing was changed on the host but what was allowed.
    assert (tmp / "top").read_text() == "one\n" and (tmp / "conf/fixed").read_text() == "four\n"
    assert (tmp / "stays").read_text() == "six\nmore\n" and (tmp / "locked/x").read_text() == "five\n"


def test_the_plan_shows_them(carrel, tmp, rules):
    shown = json.loads(carrel.run("--plan", "--dir", tmp, "-s", rules, "--", "true").stdout)["denied"]
    assert {"path": "/workspace/hidden", "access": "read"} in shown and {"path": "/workspace/stays", "access": "delete"} in shown


def test_a_file_with_another_name_is_not_called_protected(carrel, tmp, rules):
    (tmp / "conf").mkdir()
    (tmp / "conf/fixed").write_text("x")
    (tmp / "other").hardlink_to(tmp / "conf/fixed")
    done = carrel.run("--dir", tmp, "-s", rules, "--", "true")
    assert done.returncode == 125 and "hard links" in done.stderr and "conf/fixed" in done.stderr, done


def test_a_mode_that_was_taken_away_hides_nothing(carrel, tmp, rules):
    """A path that can't be looked at is covered all the same, or nothing runs."""
    assert carrel.run("--dir", tmp, "--", "sh", "-c", PREPARE + "chmod 000 a").returncode == 0
    (tmp / "attack.py").write_text("import subprocess\nsubprocess.run('cd /workspace; chmod 755 a; cat a/b/secret', shell=True)\n")
    done = carrel.run("--dir", tmp, "-s", rules, "--", "python3", "/workspace/attack.py")
    assert "two" not in done.stdout, done
    (tmp / "a").chmod(0o755)


def test_a_link_makes_nothing_of_the_system_disappear(carrel, tmp, rules):
    assert carrel.run("--dir", tmp, "--", "sh", "-c", "ln -s /usr hidden; ln -s / top; ln -s /workspace linked; mkdir a; ln -s /proc a/b").returncode == 0
    done = carrel.run("--dir", tmp, "-s", rules, "--", "python3", "-c", "print(open('/usr/bin/env', 'rb').read(4))")
    assert done.returncode == 0 and "ELF" in done.stdout, done
