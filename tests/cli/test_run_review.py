"""`carrel run --dir --review`: the command changes nothing before a person has seen what it did."""
# security: files
import pathlib
import stat
import subprocess

import pytest
from harness import IS_ROOT, one_line
from terminals import terminal

WORK = ("echo two > src/a; rm -r gone; mkdir new; echo n > new/n; chmod 755 script; ln -s /etc/passwd link; rm turns;"
        "mkdir turns; echo in > turns/in; echo evil > .git/hooks/pre-commit; mkfifo pipe; cp same other; mv other same; exit 3")
DONE = {"A link", "A new", "A new/n", "A turns/in", "D gone", "D gone/x", "M script", "M src/a", "T turns"}
REFUSED = {"A .git/hooks/pre-commit", "A pipe"}


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "project"
    for name in ("src", "gone", ".git/hooks"):
        (path / name).mkdir(parents=True)
    for name, text in {"src/a": "one\n", "gone/x": "x", "script": "#!", "turns": "t", "same": "s"}.items():
        (path / name).write_text(text)
    yield path


def tree(path):
    return {str(one.relative_to(path)): (stat.S_IMODE(one.lstat().st_mode), one.readlink() if one.is_symlink() else
            one.read_bytes() if one.is_file() else None) for one in path.rglob("*")}


def leftovers(path, carrel):
    """Private directories of our own reviews of `path`."""
    found = []
    for area in (pathlib.Path("/var/tmp") if IS_ROOT else pathlib.Path(carrel.env["CARREL_HOME"]) / "reviews").glob("carrel-review-*"):
        try:
            if (area / "target").read_text() == str(path):
                found.append(area)
        except OSError:
            pass
    return found


def test_nothing_is_applied_without_a_terminal_and_that_is_said(carrel, project):
    before = tree(project)
    done = carrel.sh(WORK, "--dir", project, "--review")
    assert done.returncode == 3 and tree(project) == before and not leftovers(project, carrel)
    lines = done.stderr.splitlines()
    assert {line.split(" (")[0].split(" ->")[0].rstrip("/") for line in lines[:-1]} == DONE | REFUSED
    assert "A link -> /etc/passwd" in lines and "0 of 11 changes" in lines[-1] and "--accept" in lines[-1], lines


def test_what_is_accepted_is_applied(carrel, project):
    result = carrel.sh_json(WORK, "--dir", project, "--review", "--accept", "all")
    told = {f"{item['change']} {item['path']}": item for item in result["changes"]}
    assert result["exit_code"] == 3 and set(told) == DONE | REFUSED
    assert {name for name, item in told.items() if item["applied"]} == DONE
    assert (told["M src/a"]["size_before"], told["M src/a"]["size_after"], told["M src/a"]["type"]) == (4, 4, "file")
    after = tree(project)
    assert after["src/a"][1] == b"two\n" and after["new/n"][1] == b"n\n" and after["turns/in"][1] == b"in\n"
    assert "gone" not in after and after["script"][0] == 0o755 and str(after["link"][1]) == "/etc/passwd"
    assert not any(name.startswith((".git/hooks/", "pipe", ".carrel")) for name in after) and not leftovers(project, carrel)
    assert (project / "new/n").stat().st_uid == project.stat().st_uid


def test_patterns_take_some_with_the_directories_above(carrel, project):
    done = carrel.sh("mkdir -p a/b c; echo 1 > a/b/f.py; echo 2 > a/b/f.txt; echo 3 > c/g.py; rm -r gone", "--dir", project,
                     "--review", "--accept", "*/f.py", "--accept", "gone")
    assert done.returncode == 0 and "3 of 8 changes" in done.stderr, done.stderr
    after = tree(project)
    assert "a/b/f.py" in after and "a/b/f.txt" not in after and "c" not in after
    assert "gone/x" in after, "a directory whose content stays is not removed"


@pytest.mark.parametrize("make", ["ln -s elsewhere .git", "echo 'gitdir: elsewhere' >.git"])
def test_a_repository_is_not_led_elsewhere(carrel, tmp_path, make):
    """Hooks and settings there are obeyed like those of .git, which are protected by their names."""
    new = tmp_path / "new"
    new.mkdir()
    done = carrel.sh(f"mkdir -p elsewhere/hooks; {make}", "--dir", new, "--review", "--accept", "all")
    assert done.returncode == 0 and "not applied: protected" in done.stderr
    assert [path.name for path in new.iterdir()] == ["elsewhere"]


def test_a_change_by_others_is_a_conflict_and_nothing_is_applied(carrel, project):
    with carrel.start("run", "--dir", project, "--review", "--accept", "all", "--", "sh", "-c",
                      "echo mine > src/a; echo new > fresh; echo ready; read x", stdin=subprocess.PIPE) as run:
        assert run.stdout.readline() == "ready\n"
        (project / "src/a").write_text("theirs\n")
        before = tree(project)
        _, errors = run.communicate("go\n", 60)
        assert run.returncode == 125 and "src/a" in errors and "changed meanwhile" in errors, errors
    assert tree(project) == before and not leftovers(project, carrel)


def test_on_a_terminal_each_change_is_asked_for(carrel, project):
    with terminal(carrel, "run", "--dir", str(project), "--review", "--", "sh", "-c", "echo 1 > one; echo 2 > two; printf '\\033x' > three") as term:
        term.expect(r"apply A one\?.*: ")
        term.send("s\n")
        term.expect(r"\+1\r\n.*apply A one\?.*: ")
        term.send("y\n")
        term.expect(r"apply A three\?.*: ")
        term.send("s\n")
        term.expect(r"\+\\x1bx")
        term.expect(r"apply A three\?.*: ")
        term.send("n\n")
        term.expect(r"apply A two\?.*: ")
        term.send("q\n")
        term.expect("1 of 3 changes")
        assert term.process.wait(120) == 0
    assert (project / "one").exists() and not (project / "two").exists() and not (project / "three").exists()


@pytest.mark.once
@pytest.mark.parametrize("options, names", [
    (["--review"], ["--review", "--dir"]), (["--accept", "all"], ["--accept", "--review"]),
    (["--review", "--dir", "/usr/share", "--disk", "1G"], ["--disk"]),
    (["--review", "--dir", "/usr/share", "--accept", "ask"], ["ask", "terminal"])])
def test_options_that_do_not_go_together_are_refused(carrel, options, names):
    done = carrel.sh("true", *options)
    assert done.returncode == 125
    one_line(done.stderr, *names)


@pytest.mark.needs_faults
@pytest.mark.parametrize("fault", ["review_decided:1", "apply_staged:1", "apply_moved_away:3", "apply_moved:4", "apply_moved:8", "apply_done:1"])
def test_a_review_that_is_killed_is_undone_by_the_next_one(carrel, project, fault):
    before = tree(project)
    done = carrel.sh(WORK, "--dir", project, "--review", "--accept", "all", env={"CARREL_FAULT": fault})
    assert done.returncode == -9, done
    done = carrel.sh("true", "--dir", project, "--review")
    assert done.returncode == 0 and "changed nothing" in done.stderr, done.stderr
    assert tree(project) == before and not leftovers(project, carrel)
