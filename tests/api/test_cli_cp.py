"""cp: files and trees in and out, as cp and docker cp do it, and nothing leads out of either side."""
# security: files
import os
import signal
import stat
import time

import pytest
from harness import eventually, one_line
from terminals import terminal
from workspaces import created, json_of, sh, workspace  # noqa: F401


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "sub/empty").mkdir(parents=True)
    (root / "a.txt").write_text("a\n")
    (root / "sub/run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "sub/run.sh").chmod(0o755)
    (root / "sub/private").write_text("p")
    (root / "sub/private").chmod(0o600)
    (root / ("n" * 180)).write_text("long")
    (root / "ü mlaut").write_text("u")
    (root / "link").symlink_to("sub/run.sh")
    os.utime(root / "a.txt", (1500000000, 1500000000))
    return root


def listing(root):
    """{path: (mode, content or target)} of a tree here."""
    found = {}
    for directory, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            found[os.path.relpath(path, root)] = (
                oct(info.st_mode), os.readlink(path) if stat.S_ISLNK(info.st_mode) else
                open(path, "rb").read() if stat.S_ISREG(info.st_mode) else None)
    return found


def cp(daemon, *words, **how):
    done = daemon("cp", *words, **how)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done


def test_a_file_goes_in_and_out(daemon, workspace, tmp_path):
    source, target = tmp_path / "f.bin", tmp_path / "back"
    source.write_bytes(os.urandom(3 << 20))
    source.chmod(0o750)
    cp(daemon, source, f"{workspace}:/workspace/dir/copy.bin")        # its directory is made
    cp(daemon, f"{workspace}:dir/copy.bin", target)
    assert target.read_bytes() == source.read_bytes() and stat.S_IMODE(target.stat().st_mode) & 0o700 == 0o700
    assert sh(daemon, workspace, "stat -c %a dir/copy.bin").stdout == "750\n"


def test_targets_are_understood_as_cp_does(daemon, workspace, tmp_path):
    (tmp_path / "f").write_text("1")
    sh(daemon, workspace, "mkdir -p into; rm -rf new into/*")
    cp(daemon, tmp_path / "f", f"{workspace}:")                # the root: by its own name
    cp(daemon, tmp_path / "f", f"{workspace}:into")
    cp(daemon, tmp_path / "f", f"{workspace}:into/")
    cp(daemon, tmp_path / "f", f"{workspace}:new")
    assert sh(daemon, workspace, "cat f into/f new").stdout == "111"
    done = daemon("cp", tmp_path / "f", f"{workspace}:nosuch/")
    assert done.returncode == 125 and one_line(done.stderr, "nosuch/")
    (tmp_path / "here").mkdir()
    cp(daemon, f"{workspace}:into/f", tmp_path / "here")
    cp(daemon, f"{workspace}:into/f", tmp_path / "here/g")
    cp(daemon, f"{workspace}:into/f", tmp_path / "here/g")          # replaced
    assert sorted(os.listdir(tmp_path / "here")) == ["f", "g"]
    done = daemon("cp", f"{workspace}:into/f", f"{tmp_path}/nosuch/")
    assert done.returncode == 125
    one_line(done.stderr, "nosuch/")


@pytest.mark.kernel
def test_a_tree_comes_back_as_it_was(daemon, workspace, tree, tmp_path):
    cp(daemon, tree, f"{workspace}:round")
    assert sh(daemon, workspace, "cd round && ./link && cat a.txt && stat -c %Y a.txt").stdout == "ran\na\n1500000000\n"
    cp(daemon, f"{workspace}:round", tmp_path / "back")
    assert listing(tmp_path / "back") == listing(tree)
    assert (tmp_path / "back/a.txt").stat().st_mtime == 1500000000


def test_a_directory_that_is_there_gets_the_tree_into_it(daemon, workspace, tree, tmp_path):
    sh(daemon, workspace, "rm -rf box; mkdir box")
    cp(daemon, tree, f"{workspace}:box")
    cp(daemon, f"{tree}/.", f"{workspace}:box")
    assert sh(daemon, workspace, "cat box/tree/a.txt box/a.txt").stdout == "a\na\n"
    (tmp_path / "out").mkdir()
    (tmp_path / "out/kept").write_text("kept")
    cp(daemon, f"{workspace}:box", tmp_path / "out")
    cp(daemon, f"{workspace}:box/tree/.", tmp_path / "out")
    cp(daemon, f"{workspace}:box/tree/.", tmp_path / "out")      # merged, files replaced
    assert (tmp_path / "out/box/tree/a.txt").read_text() == (tmp_path / "out/a.txt").read_text() == "a\n"
    assert (tmp_path / "out/kept").read_text() == "kept"
    assert not [name for name in os.listdir(tmp_path / "out") if name.startswith(".carrel")]


def test_a_source_that_ends_with_dots_and_a_slash_is_its_contents(daemon, workspace, tmp_path):
    (tmp_path / "out/in").mkdir(parents=True)
    sh(daemon, workspace, "mkdir -p below/into")
    cp(daemon, f"{tmp_path}/out/in/../", f"{workspace}:below/into")
    assert sh(daemon, workspace, "ls below; ls below/into").stdout == "into\nin\n"


def test_several_go_into_a_directory(daemon, workspace, tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/x").write_text("x")
    done = daemon("cp", "a", "b", "tree", f"{workspace}:", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sh(daemon, workspace, "cat a b tree/x").stdout == "abx"
    (tmp_path / "out").mkdir()
    value = json_of(daemon("cp", f"{workspace}:a", f"{workspace}:b", "out", "-o", "json", cwd=tmp_path))
    assert value == {"bytes": 2, "left_out": 0, "outward_links": 0} and sorted(os.listdir(tmp_path / "out")) == ["a", "b"]
    for words, names in ((["a", "b", "{w}:nosuch"], ["nosuch", "directory"]), (["a", "b", "{w}:a"], ["a", "directory"]),
                         (["{w}:a", "{w}:b", "new"], ["new", "directory"]), (["a", "{w}:b", "out"], ["a", "out"]),
                         (["a", "-", "{w}:"], ["-"]), (["a", "out/a", "{w}:"], ["two", "a"]), (["a", "nosuch", "{w}:tree"], ["nosuch"])):
        done = daemon("cp", *(word.format(w=workspace) for word in words), cwd=tmp_path)
        assert done.returncode == 125 and done.stdout == "", words
        one_line(done.stderr, *names)
    assert sorted(os.listdir(tmp_path / "out")) == ["a", "b"] and not (tmp_path / "new").exists()
    assert sh(daemon, workspace, "cat a; ls tree").stdout == "aa\nx\n", "what was copied before the failure stays"


def test_standard_streams(daemon, workspace):
    data = os.urandom(1 << 20)
    done = daemon("cp", "-", f"{workspace}:piped", input=data, text=False)
    assert done.returncode == 0
    assert daemon("cp", f"{workspace}:piped", "-", text=False).stdout == data
    assert daemon("cp", "-", f"{workspace}:", input="x").returncode == 125         # a file needs a name
    assert daemon("cp", f"{workspace}:", "-").returncode == 125                   # a directory is no stream


@pytest.mark.parametrize("words, names", [
    (["a", "b"], ["a", "b"]), (["{w}:a", "{w}:b"], ["both"]), (["{w}:nosuch", "x"], ["nosuch", "{w}"]), (["nosuch:x", "y"], ["nosuch"]),
    (["/nonexistent/x", "{w}:y"], ["/nonexistent/x"]), (["{w}:../../etc/passwd", "x"], ["../../etc/passwd"]),
    (["{w}:/nonexistent/x", "x"], ["/nonexistent/x"]), (["{w}:x"], ["TARGET"]), (["a", "b", "c"], ["c"]),
    (["{w}:.workspace_configured", "/nonexistent/x"], ["/nonexistent/x"]),
])
def test_bad_input_is_one_line(daemon, workspace, words, names, tmp_path):
    done = daemon("cp", *(word.format(w=workspace) for word in words), cwd=tmp_path)
    assert done.returncode == 125 and done.stdout == ""
    one_line(done.stderr, *(name.format(w=workspace) for name in names))
    assert os.listdir(tmp_path) == ["home"] or os.listdir(tmp_path) == []


def test_a_context_is_named_with_a_slash_unless_the_other_side_is_a_workspace(daemon, tmp_path):
    body = {"labels": {"context_id": "chat/42"}}
    name = daemon.post("/v1/workspaces", body).json()["name"]
    (tmp_path / "chat").mkdir()
    (tmp_path / "chat/42:f").write_text("host")
    (tmp_path / "f").write_text("inside")
    cp(daemon, "f", "chat/42:f", cwd=tmp_path)
    cp(daemon, "chat/42:f", "out", cwd=tmp_path)
    assert (tmp_path / "out").read_text() == "inside" and (tmp_path / "chat/42:f").read_text() == "host"
    # By the plain name on the other side it is the path of this host that it always was; ./ always says so.
    cp(daemon, "chat/42:f", f"{name}:g", cwd=tmp_path)
    cp(daemon, "./chat/42:f", "chat/42:h", cwd=tmp_path)
    assert sh(daemon, name, "cat f g h").stdout == "insidehosthost"
    done = daemon("cp", "chat/42:f", "chat/42:i", cwd=tmp_path)
    assert done.returncode == 125 and "both in workspaces" in done.stderr and "./" in done.stderr
    done = daemon("cp", "f", "chat/43:f", cwd=tmp_path)
    assert done.returncode == 125 and "there is no workspace 'chat/43'" in done.stderr
    assert daemon.delete(f"/v1/workspaces/{name}").status == 204


def test_an_absolute_path_is_one_of_the_sandbox(daemon, workspace, tmp_path):
    (tmp_path / "f").write_text("1")
    cp(daemon, tmp_path / "f", f"{workspace}:/tmp/f")
    assert sh(daemon, workspace, "cat /tmp/f; ls tmp").stdout == "1"
    cp(daemon, f"{workspace}:/etc/passwd", tmp_path / "passwd")
    assert (tmp_path / "passwd").read_text() == sh(daemon, workspace, "cat /etc/passwd").stdout
    done = daemon("cp", f"{workspace}:../etc/passwd", tmp_path)
    assert done.returncode == 125 and "workspace's directory" in one_line(done.stderr, "../etc/passwd")
    done = daemon("cp", f"{workspace}:/workspace/nosuch", tmp_path)
    assert done.returncode == 125 and not one_line(done.stderr, "nosuch")


def test_json_is_one_value(daemon, workspace, tmp_path):
    (tmp_path / "f").write_text("12345")
    assert json_of(daemon("cp", "-o", "json", tmp_path / "f", f"{workspace}:j")) == {"bytes": 5, "left_out": 0, "outward_links": 0}
    done = daemon("cp", "-o", "json", f"{workspace}:nosuch", tmp_path / "x")
    assert done.returncode == 125 and json_of(done)["error"]["code"] == "not_found"


# ---- nothing leads out ----

def test_links_of_the_sandbox_lead_nowhere_here(daemon, tmp_path):
    with created(daemon) as name:
        assert sh(daemon, name, "mkdir d; ln -s /etc/passwd d/abs; ln -s ../../../x d/up; ln -s f d/ok; echo 1 > d/f; mkfifo d/fifo").returncode == 0
        done = daemon("cp", f"{name}:d", tmp_path / "d")
        assert done.returncode == 0
        assert {name: os.readlink(tmp_path / "d" / name) for name in ("abs", "up", "ok")} == {"abs": "/etc/passwd", "up": "../../../x", "ok": "f"}
        assert not os.path.lexists(tmp_path / "d/fifo")
        assert "2 links point outside of the copy; the first: '" in done.stderr
        # A link where the copy looks for a file leads where it leads a command.
        cp(daemon, f"{name}:d/abs", tmp_path / "theirs")
        assert (tmp_path / "theirs").read_text() == sh(daemon, name, "cat /etc/passwd").stdout
        cp(daemon, f"{name}:d/ok", tmp_path / "plain")
        assert (tmp_path / "plain").read_text() == "1\n"


def test_nothing_is_written_through_a_link_in_the_workspace(daemon, tmp_path):
    (tmp_path / "f").write_text("mine")
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    with created(daemon) as name:
        sh(daemon, name, f"ln -s {victim} out; ln -s / root")
        for target in ("out", f"root{victim}"):
            daemon("cp", tmp_path / "f", f"{name}:{target}")
            assert victim.read_text() == "theirs"


def test_no_setuid_file_comes_out(daemon, workspace, tmp_path):
    (tmp_path / "suid").mkdir()
    (tmp_path / "suid/s").write_text("x")
    (tmp_path / "suid/s").chmod(0o4755)
    cp(daemon, tmp_path / "suid", f"{workspace}:suid")
    assert sh(daemon, workspace, "stat -c %a suid/s").stdout == "755\n"
    cp(daemon, f"{workspace}:suid", tmp_path / "back")
    assert stat.S_IMODE((tmp_path / "back/s").stat().st_mode) == 0o755


def test_a_virtualenv_goes_in_and_out_with_its_links(daemon, workspace, tmp_path):
    (tmp_path / "t/.venv/bin").mkdir(parents=True)
    (tmp_path / "t/.venv/bin/python").symlink_to("/usr/bin/env")
    (tmp_path / "t/up").symlink_to("../../elsewhere")
    cp(daemon, tmp_path / "t", f"{workspace}:venv")
    assert sh(daemon, workspace, "venv/.venv/bin/python echo ran; readlink venv/up").stdout == "ran\n../../elsewhere\n"
    assert daemon("cp", f"{workspace}:venv", tmp_path / "back").returncode == 0
    assert os.readlink(tmp_path / "back/.venv/bin/python") == "/usr/bin/env" and os.readlink(tmp_path / "back/up") == "../../elsewhere"


def test_nothing_is_written_through_a_link_that_came_out_before(daemon, tmp_path):
    """The sandbox first plants a link on the host, then has the same name be a directory or a file."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "f").write_text("theirs")
    with created(daemon) as name:
        sh(daemon, name, f"mkdir t; ln -s {victim} t/d; ln -s {victim}/f t/f; ln -s {victim}/new t/new")
        assert daemon("cp", f"{name}:t", tmp_path / "out").returncode == 0
        sh(daemon, name, "rm t/d t/f t/new; mkdir t/d; echo mine > t/d/f; echo mine > t/d/new; echo mine > t/f; echo mine > t/new")
        for source in (f"{name}:t/f", f"{name}:t/new"):
            done = daemon("cp", source, tmp_path / "out")
            assert done.returncode == 125
            one_line(done.stderr, "is a symbolic link")
        done = daemon("cp", f"{name}:t/.", tmp_path / "out")
        assert done.returncode == 125
        one_line(done.stderr, "'d'")
        sh(daemon, name, "rm -r t/d")
        assert daemon("cp", f"{name}:t/.", tmp_path / "out").returncode == 0      # files replace links
        assert not (tmp_path / "out/f").is_symlink() and (tmp_path / "out/f").read_text() == "mine\n"
    assert os.listdir(victim) == ["f"] and (victim / "f").read_text() == "theirs"


def test_a_target_that_is_a_link_is_followed_only_where_a_slash_says_so(daemon, workspace, tmp_path):
    """The sandbox has planted it, and is then asked for the same name again."""
    victim, link = tmp_path / "victim", tmp_path / "out/d"
    victim.mkdir()
    link.parent.mkdir()
    link.symlink_to(victim)
    sh(daemon, workspace, "mkdir -p planted/d; echo mine > planted/d/f")
    for source in ("planted/d/.", "planted/d", "planted/d/f"):
        done = daemon("cp", f"{workspace}:{source}", link)
        assert done.returncode == 125
        one_line(done.stderr, str(link), "is a symbolic link")
    assert os.listdir(victim) == [] and os.listdir(link.parent) == ["d"]
    cp(daemon, f"{workspace}:planted/d/.", f"{link}/")
    cp(daemon, f"{workspace}:planted/d", f"{link}/")
    cp(daemon, f"{workspace}:planted/d/f", f"{link}/new")              # links above it are the caller's
    assert {name: content for name, (_, content) in listing(victim).items()} == {"f": b"mine\n", "d": None, "d/f": b"mine\n", "new": b"mine\n"}


def test_a_file_goes_into_a_directory_that_can_not_be_read(daemon, workspace, tmp_path):
    (tmp_path / "box").mkdir(0o300)
    sh(daemon, workspace, "echo 1 > dropped")
    cp(daemon, f"{workspace}:dropped", tmp_path / "box")
    (tmp_path / "box").chmod(0o700)
    assert os.listdir(tmp_path / "box") == ["dropped"]


def test_sockets_and_fifos_are_left_out_and_said(daemon, workspace, tmp_path):
    (tmp_path / "t").mkdir()
    os.mkfifo(tmp_path / "t/fifo")
    (tmp_path / "t/f").write_text("1")
    done = daemon("cp", tmp_path / "t", f"{workspace}:fifos")
    assert done.returncode == 0 and "1 entry can't be copied and was left out" in done.stderr and "'fifo'" in done.stderr
    assert sh(daemon, workspace, "ls fifos").stdout == "f\n"


@pytest.mark.needs_plain_user
def test_a_tree_that_can_not_be_read_changes_nothing(daemon, workspace, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t/a").write_text("1")
    (tmp_path / "t/locked").mkdir(0o000)
    done = daemon("cp", tmp_path / "t", f"{workspace}:locked")
    (tmp_path / "t/locked").chmod(0o700)
    assert done.returncode == 125
    one_line(done.stderr, "locked")
    assert sh(daemon, workspace, "ls locked").returncode != 0


def test_what_is_in_the_way_stays(daemon, workspace, tmp_path, tree):
    cp(daemon, tree, f"{workspace}:way")
    (tmp_path / "out/sub").parent.mkdir()
    (tmp_path / "out/sub").write_text("a file")
    before = listing(tmp_path / "out")
    done = daemon("cp", f"{workspace}:way/.", tmp_path / "out")
    assert done.returncode == 125 and one_line(done.stderr, "sub")
    assert listing(tmp_path / "out") == before
    done = daemon("cp", f"{workspace}:way", tmp_path / "out/sub")
    assert done.returncode == 125
    one_line(done.stderr, "sub")


def test_a_full_workspace_keeps_what_it_had(daemon, tmp_path):
    (tmp_path / "big").write_bytes(os.urandom(3 << 20))
    (tmp_path / "small").write_text("before")
    with created(daemon, "--disk", "1M") as name:
        cp(daemon, tmp_path / "small", f"{name}:f")
        done = daemon("cp", tmp_path / "big", f"{name}:f")
        assert done.returncode == 125
        one_line(done.stderr, name)
        assert daemon("cp", f"{name}:f", "-").stdout == "before"


@pytest.mark.shipped
def test_an_interrupted_copy_leaves_nothing(daemon, workspace, tmp_path):
    sh(daemon, workspace, "mkdir -p big; head -c 100000000 /dev/zero > big/f")
    out = tmp_path / "out"
    out.mkdir()
    try:
        with daemon.start("cp", f"{workspace}:big", out / "t") as process:
            assert eventually(lambda: os.listdir(out))
            process.send_signal(signal.SIGINT)
            code = process.wait(120)
        assert (code, os.listdir(out)) in ((130, []), (0, ["t"]))       # it may have been quicker
    finally:
        sh(daemon, workspace, "rm -rf big")


def test_a_terminal_shows_how_far_it_is(daemon, workspace, tmp_path):
    os.mkfifo(tmp_path / "slow")
    with terminal(daemon, "cp", tmp_path / "slow", f"{workspace}:slow") as term, open(tmp_path / "slow", "wb", 0) as slow:
        end, fed = time.monotonic() + 60, 0
        while b"/s" not in term.seen and time.monotonic() < end:
            slow.write(b"x" * 10000)
            fed += 10000
            term._read(0.02)
        slow.close()
        seen = term.rest()
        assert term.process.returncode == 0 and "copying" in seen and seen.endswith("\x1b[K")
    assert sh(daemon, workspace, "stat -c %s slow; rm slow").stdout == f"{fed}\n"


def test_what_carrel_makes_in_a_workspace_is_left_out_of_a_copy_of_all_of_it(daemon, tmp_path):
    with created(daemon, "--context") as name:
        sh(daemon, name, "echo 1 >data/mine; echo 2 >other; mkdir sub; touch sub/.workspace_configured; ln .context.json hard")
        for number, source in enumerate((f"{name}:", f"{name}:.", f"{name}:/workspace", f"{name}:/workspace/")):
            done = daemon("cp", source, tmp_path / str(number))
            assert (done.returncode, done.stderr) == (0, "")
            there = sorted(str(path.relative_to(tmp_path / str(number))) for path in (tmp_path / str(number)).rglob("*"))
            assert there == ["data", "data/mine", "hard", "other", "sub", "sub/.workspace_configured"], source
        # By its own name each can be had.
        assert daemon("cp", f"{name}:.context.json", tmp_path / "context").returncode == 0
        assert json_of(daemon("cp", "-o", "json", f"{name}:output", tmp_path / "output"))
