"""carrel apply: changes of a workspace into a directory of this host, and into another workspace."""
# security: files
import json
import os
import pathlib
import stat
import subprocess

import pytest

from harness import IS_ROOT
from rest import created, output_of

WORK = ("echo two > src/a; rm -r gone; mkdir new; echo n > new/n; chmod 755 script; ln -s /etc/passwd link; rm turns; mkdir turns; "
        "echo in > turns/in; echo evil > .git/hooks/pre-commit; mkfifo pipe; cp same other; mv other same; printf '\\000\\377' > bin; "
        "touch \"$(printf 'odd\\377')\"; truncate -s 800M sparse; mkdir shut; echo s > shut/s; chmod 0 shut")
DONE = {"A link", "A new", "A new/n", "A turns/in", "D gone", "D gone/x", "M script", "M src/a", "T turns", "M bin", "A odd\ufffd",
        "A sparse", "A shut", "A shut/s"}
REFUSED = {"A .git/hooks/pre-commit", "A pipe"}


def fill(path):
    for name in ("src", "gone", ".git/hooks"):
        (path / name).mkdir(parents=True)
    for name, text in {"src/a": "one\n", "gone/x": "x", "script": "#!", "turns": "t", "same": "s", "bin": "\1"}.items():
        (path / name).write_text(text)


def tree(path):
    return {os.fsencode(one.relative_to(path)): (stat.S_IMODE(one.lstat().st_mode), one.readlink() if one.is_symlink() else
            one.lstat().st_size > 1e8 or one.read_bytes() if one.is_file() else None) for one in path.rglob("*")}


@pytest.fixture(scope="module")
def source(daemon, tmp_path_factory):
    """A workspace that got the files of a project, and has changed them since its snapshot."""
    path = tmp_path_factory.mktemp("first") / "project"
    fill(path)
    with created(daemon, limits={"disk": "1G"}) as workspace:
        name = workspace["name"]
        assert daemon("cp", f"{path}/.", f"{name}:").returncode == 0
        assert daemon.post(f"/v1/workspaces/{name}/snapshots", {"tag": "first"}).status == 201
        output_of(daemon, name, WORK)
        yield name
        output_of(daemon, name, "chmod 755 shut")


@pytest.fixture
def project(tmp_path):
    path = tmp_path / "project"
    fill(path)
    yield path
    for one in path.rglob("shut"):
        one.chmod(0o700)


def leftovers(daemon, path):
    """Of ours, at and beside the target."""
    place = pathlib.Path("/var/tmp") if IS_ROOT else pathlib.Path(daemon.env["CARREL_HOME"]) / "reviews"
    found = [one for one in path.iterdir() if one.name.startswith(".carrel")]
    for area in place.glob("carrel-review-*"):
        try:
            if (area / "target").read_text() == str(path):
                found.append(area)
        except OSError:
            pass
    return found


def test_the_directory_gets_what_changed(daemon, source, project):
    before = tree(project)
    dry = daemon("apply", source, "--to", project, "--dry-run")
    assert dry.returncode == 0 and tree(project) == before and not leftovers(daemon, project), dry
    assert "14 of 16 changes would be applied" in dry.stderr
    assert {"M src/a", "D gone/", "A new/", "A .git/hooks/pre-commit (not applied: protected: see --writable-config)",
            "A pipe (not applied: not a file, a directory or a link)"} <= set(dry.stdout.splitlines()), dry.stdout
    done = daemon("apply", source, "--to", project, "-o", "json")
    assert done.returncode == 0 and not leftovers(daemon, project), done
    told = json.loads(done.stdout)
    by = {f"{item['change']} {item['path']}": item["result"] for item in told["changes"]}
    assert {name for name, result in by.items() if result == "applied"} == DONE and told["applied"] == len(DONE)
    assert {name for name, result in by.items() if result == "refused"} == REFUSED
    assert (project / "shut").stat().st_mode & 0o777 == 0
    (project / "shut").chmod(0o700)
    after = tree(project)
    assert after[b"src/a"][1] == b"two\n" and after[b"new/n"][1] == b"n\n" and after[b"turns/in"][1] == b"in\n" and b"gone" not in after
    assert after[b"script"][0] == 0o755 and str(after[b"link"][1]) == "/etc/passwd" and after[b"bin"][1] == b"\0\xff"
    assert b"odd\xff" in after and b"pipe" not in after and b".git/hooks/pre-commit" not in after and after[b"shut/s"][1] == b"s\n"
    assert (project / "sparse").stat().st_size == 800 << 20 and (project / "sparse").stat().st_blocks < 1000
    assert (project / "new/n").stat().st_uid == project.stat().st_uid
    again = json.loads(daemon("apply", source, "--to", project, "-o", "json").stdout)
    assert again["applied"] <= 1, "only the mode of `shut` differs"


def test_a_directory_is_not_opened_to_others(daemon, project):
    """Bits that let others write are taken only where they are set already; between workspaces they are kept."""
    (project / "shared").mkdir()
    (project / "shared").chmod(0o775)
    (project / "shared/f").write_text("old")
    (project / "shared/f").chmod(0o664)
    work = "mkdir wide; echo x >wide/f; chmod 666 wide/f; chmod 777 wide; echo x >run; chmod 777 run; echo new >shared/f; chmod 666 shared/f"
    with created(daemon) as made, created(daemon) as other:
        assert daemon("exec", made["name"], "--", "sh", "-c", "mkdir shared; printf old >shared/f").returncode == 0
        assert daemon("snapshot", "create", made["name"]).returncode == 0
        assert daemon("exec", made["name"], "--", "sh", "-c", work).returncode == 0
        assert daemon("apply", made["name"], "--to", project).returncode == 0
        modes = {name: stat.S_IMODE((project / name).stat().st_mode) for name in ("wide", "wide/f", "run", "shared", "shared/f")}
        assert modes == {"wide": 0o755, "wide/f": 0o644, "run": 0o755, "shared": 0o775, "shared/f": 0o664}
        assert (project / "shared/f").read_text() == "new\n"
        again = json.loads(daemon("apply", made["name"], "--to", project, "-o", "json").stdout)
        assert again["applied"] == 0, again
        assert daemon("apply", made["name"], "wide", "run", "--to", other["name"]).returncode == 0
        assert daemon("exec", other["name"], "--", "stat", "-c", "%a", "wide", "wide/f", "run").stdout == "777\n666\n777\n"


def test_chosen_paths_conflicts_and_errors(daemon, source, project):
    (project / "src/a").write_text("mine\n")
    (project / "gone/mine").write_text("")
    (project / "script").unlink()
    before = tree(project)
    done = daemon("apply", source, "--to", project)
    assert done.returncode == 125 and tree(project) == before and not leftovers(daemon, project), done
    assert {line for line in done.stdout.splitlines() if "(conflict" in line} == {
        "M src/a (conflict: it was changed there, too)", "D gone/ (conflict: it holds other files there)",
        "M script (conflict: it was removed there)"}, done.stdout
    assert "3 changes are conflicts" in done.stderr and "nothing was applied" in done.stderr
    failed = daemon("apply", source, "src", "--to", project, "-o", "json")
    answer = json.loads(failed.stdout)
    assert failed.returncode == 125 and answer["error"]["code"] == "conflict" and answer["conflicts"] == 1
    assert daemon("apply", source, "src", "--to", project, "--dry-run").returncode == 125
    done = daemon("apply", source, "new/n", "turns", "--to", project, "--since", "first")
    assert done.returncode == 0 and done.stdout == "A new/\nA new/n\nT turns/\nA turns/in\n", done
    assert (project / "new/n").read_text() == "n\n" and (project / "src/a").read_text() == "mine\n"
    for wrong, text in ((["apply", source], "--to"), (["apply", source, "--to", "nobody"], "nobody"),
                        (["apply", source, "--to", f"{project}/none"], "none"), (["apply", source, "--to", daemon.home], "home"),
                        (["apply", source, "--to", project / "src/a"], "src/a"), (["apply", "nobody", "--to", project], "nobody"),
                        (["apply", source, "/etc", "--to", project], "/etc"),
                        (["apply", source, "--to", project, "--since", "none"], "none")):
        failed = daemon(*wrong)
        assert failed.returncode == 125 and text in failed.stderr, failed
    hinted = daemon("apply", source, "--to", "project", cwd=project.parent)
    assert hinted.returncode == 125 and "./project" in hinted.stderr, hinted


@pytest.mark.once
def test_protected_names_are_taken_when_asked_for(daemon, source, project):
    done = daemon("apply", source, ".git", "--to", project, "--writable-config")
    assert done.returncode == 0 and (project / ".git/hooks/pre-commit").read_text() == "evil\n", done


@pytest.mark.once
def test_another_workspace_gets_what_changed(daemon, source):
    with created(daemon) as target:
        name = target["name"]
        refused = daemon("apply", source, "--to", name)
        assert refused.returncode == 125 and "(conflict: it was removed there)" in refused.stdout, refused
        done = daemon("apply", source, "new", "link", "--to", name, "--dry-run")
        assert done.returncode == 0 and done.stdout == "A link\nA new/\nA new/n\n" and "3 of 3 changes would be" in done.stderr, done
        done = daemon("apply", source, "new", "link", "--to", name)
        assert done.returncode == 0 and f"3 of 3 changes were applied to '{name}'" in done.stderr, done
        assert output_of(daemon, name, "cat new/n; readlink link") == "n\n/etc/passwd\n"
        done = daemon("apply", source, "new", "link", "--to", name)
        assert (done.returncode, done.stdout) == (0, "") and "0 of 3 changes were applied" in done.stderr, done
        assert "it has 3 already" in done.stderr, done
        done = daemon("apply", source, "nothing", "--to", name)
        assert done.returncode == 0 and "there are no changes at these paths to apply" in done.stderr, done
        failed = daemon("apply", source, "new", "--to", name, "--writable-config")
        assert failed.returncode == 125 and "--writable-config" in failed.stderr


@pytest.mark.needs_root
def test_a_hostile_owner_of_the_target_gains_nothing(daemon, source, project, tmp_path):
    """Who swaps directories of the target for links while root writes there gets no file elsewhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for path in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        path.chmod(path.stat().st_mode | 0o055)
    for path in [project, *project.rglob("*")]:
        os.chown(path, 12345, 12345)
    swap = (f"cd {project}; while :; do for d in src .carrel-apply-*; do mv $d away 2>/dev/null && ln -s {outside} $d; rm -f $d; "
            "mv away $d 2>/dev/null; done; done")
    with subprocess.Popen(["sh", "-c", swap], user=12345, group=12345, extra_groups=[], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as racer:
        codes = [daemon("apply", source, "src", "new", "--to", project).returncode for _ in range(8)]
        racer.kill()
    assert not list(outside.iterdir()) and set(codes) <= {0, 125}, codes
