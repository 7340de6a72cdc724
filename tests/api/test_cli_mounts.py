"""create --dir, -v and --attach: what sandboxes of a workspace show of the host, and of shared trees."""
# security: files
import array
import json
import os
import pathlib
import socket
import subprocess

import pytest
from harness import IS_ROOT, eventually, one_line
from rest import problem
from workspaces import created, json_of, sh, workspace  # noqa: F401


def home_of(daemon):
    return pathlib.Path(daemon.env["CARREL_HOME"])


@pytest.fixture
def place(tmp_path):
    """Directories of the caller's, below one that every user can walk."""
    (tmp_path / "data/sub").mkdir(parents=True)
    (tmp_path / "data/file").write_text("of the host\n")
    (tmp_path / "other").mkdir()
    return tmp_path


def test_directories_of_the_host_are_shown_and_written(daemon, place):
    with created(daemon, "-v", f"{place}/data:/workspace/data", "-v", f"{place}/other:/mnt/other:ro", "-v", f"{place}/data/file:/etc/own:ro") as name:
        assert sh(daemon, name, "cat data/file /etc/own; echo new >data/new; touch /mnt/other/x").stdout == "of the host\n" * 2
        new = place / "data/new"
        assert new.read_text() == "new\n" and new.stat().st_uid == os.getuid() and not (place / "other/x").exists()
        value = json_of(daemon("info", name, "-o", "json"))
        assert value["mounts"] == [f"{place}/data:/workspace/data", f"{place}/other:/mnt/other:ro", f"{place}/data/file:/etc/own:ro"] and "dir" not in value
        assert f"{place}/other:/mnt/other:ro" in daemon("info", name).stdout
        assert json_of(daemon("info", name, "-o", "json"))["disk_usage_bytes"] < 1 << 20
    assert new.exists()     # what is the host's stays


def test_a_directory_of_the_host_is_the_workspace(daemon, place):
    dir = place / "data"
    (dir / ".git/hooks").mkdir(parents=True)
    (dir / ".envrc").write_text("")
    with created(daemon, "--dir", dir) as name:
        assert sh(daemon, name, "pwd; cat file; echo x >made; ls -A").stdout.split() == [
            "/workspace", "of", "the", "host", ".envrc", ".git", "file", "made", "sub"]
        assert (dir / "made").read_text() == "x\n"
        for script in ("echo x >.git/hooks/pre-commit", "echo x >.envrc", "mv .git g"):
            assert sh(daemon, name, script).returncode != 0, script
        assert json_of(daemon("info", name, "-o", "json"))["dir"] == str(dir)
        done = daemon("diff", name)
        assert done.returncode == 125
        one_line(done.stderr, name, str(dir))
        done = daemon("rm", "--archive", name)
        assert done.returncode == 125
        one_line(done.stderr, name, str(dir))
        assert daemon("cp", f"{name}:file", place / "copy").returncode == 0 and (place / "copy").read_text() == "of the host\n"
    assert (dir / "made").exists()


@pytest.mark.parametrize("options, names", [
    (["--dir", "{p}/nothing"], ["nothing"]), (["--dir", "{p}/data/file"], ["not a directory"]), (["--dir", "/proc"], ["/proc"]),
    (["--dir", "/"], ["all files"]), (["-v", "{p}/data"], ["SRC:DST"]), (["-v", "{p}/data:/proc/x"], ["/proc"]), (["-v", "{p}/data:rel"], ["rel"]),
    (["-v", "{h}:/x"], ["home"]), (["-v", "{h}/workspaces:/x"], ["home"]), (["--dir", "{h}/.."], ["home"]),
    (["-v", "{p}/data:/workspace"], ["mounts"]), (["--attach", "nosuch:/x"], ["nosuch"]), (["--attach", "../x:/x"], ["../x"]),
    (["--dir", "{p}/data", "--context"], ["context"]),
])
def test_what_can_not_be_mounted_is_said_in_one_line(daemon, place, options, names):
    before = len(json_of(daemon("ls", "-o", "json")))
    done = daemon("create", *[option.format(p=place, h=home_of(daemon)) for option in options])
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, *names)
    assert len(json_of(daemon("ls", "-o", "json"))) == before


def test_what_was_replaced_is_not_mounted(daemon, place):
    """Not by a link, not by another directory; the old one is taken again."""
    with created(daemon, "-v", f"{place}/data:/data", "--dir", place / "other") as name:
        assert sh(daemon, name, "cat /data/file").returncode == 0
        assert daemon("suspend", name).returncode == 0
        (place / "data").rename(place / "kept")
        for replace in (lambda: (place / "data").symlink_to("/etc"), lambda: (place / "data").mkdir()):
            replace()
            done = sh(daemon, name, "cat /data/*")
            assert done.returncode == 125 and done.stdout == ""
            assert f"{place}/data" in done.stderr
            os.unlink(place / "data") if (place / "data").is_symlink() else (place / "data").rmdir()
        done = sh(daemon, name, "true")
        assert done.returncode == 125 and f"{place}/data" in done.stderr
        (place / "kept").rename(place / "data")
        assert sh(daemon, name, "cat /data/file").stdout == "of the host\n"


def test_mounts_are_there_after_a_restart_of_the_daemon(own_daemon, place):
    with created(own_daemon, "-v", f"{place}/data:/data:ro") as name:
        own_daemon.restart()
        assert sh(own_daemon, name, "cat /data/file").stdout == "of the host\n"
        grants = pathlib.Path(f"{home_of(own_daemon)}.grants")
        assert len(list(grants.iterdir())) == 1 and grants.stat().st_mode & 0o777 == 0o700
    assert eventually(lambda: not list(grants.iterdir()))


# ---- shared trees ----

def test_a_shared_tree_is_seen_by_all_and_written_by_those_who_may(daemon, carrel_tree):
    with created(daemon, "--attach", f"{carrel_tree}:/workspace/skills") as writer, \
            created(daemon, "--attach", f"{carrel_tree}:/workspace/.solven/skills/system:ro", "--attach", f"{carrel_tree}:/opt/ticket") as reader:
        assert sh(daemon, writer, "echo how >skills/one.md").returncode == 0
        assert sh(daemon, reader, "cat .solven/skills/system/one.md; touch .solven/skills/system/x; echo t >/opt/ticket/t").stdout == "how\n"
        assert sh(daemon, writer, "ls skills").stdout.split() == ["one.md", "t"]
        assert json_of(daemon("info", reader, "-o", "json"))["attach"] == [f"{carrel_tree}:/workspace/.solven/skills/system:ro", f"{carrel_tree}:/opt/ticket"]
        assert {"name": carrel_tree, "workspaces": [reader, writer]} in json_of(daemon("tree", "ls", "-o", "json"))
        done = daemon("tree", "rm", carrel_tree)
        assert done.returncode == 125
        one_line(done.stderr, carrel_tree, reader)
        # A sandbox of one command has it as well.
        run = daemon("run", "--attach", f"{carrel_tree}:/skills:ro", "--", "sh", "-c", "cat /skills/one.md; touch /skills/x")
        assert run.stdout == "how\n" and run.returncode == 1
    assert reader not in daemon("tree", "ls").stdout


def test_a_tree_without_rights_is_removed(daemon, carrel_tree):
    with created(daemon, "--attach", f"{carrel_tree}:/skills") as name:
        assert sh(daemon, name, "touch /skills/x; chmod 0 /skills").returncode == 0


def test_what_is_frozen_can_not_be_written_by_others(daemon, carrel_tree):
    """Through a socket in a shared tree, another workspace gets a descriptor of a file, and keeps it."""
    with created(daemon, "--attach", f"{carrel_tree}:/skills") as name:
        assert sh(daemon, name, "echo good >file").returncode == 0
        id = json_of(daemon("info", name, "-o", "json"))["id"]
        with open(home_of(daemon) / f"workspaces/{id}/upper/file", "r+") as kept:
            assert daemon("suspend", name).returncode == 0
            snapshot = daemon("snapshot", "create", name).stdout.strip()
            kept.write("evil")
        with created(daemon, "--from", snapshot) as other:
            assert sh(daemon, other, "cat file").stdout == "good\n"
        assert sh(daemon, name, "cat file").stdout == "good\n"


def test_bad_trees_are_refused(daemon, carrel_tree):
    for args, words in ((["tree", "create", carrel_tree], ["exists"]), (["tree", "create", "../x"], ["../x"]), (["tree", "create", ".x"], [".x"]),
                        (["tree", "rm", "nosuch"], ["nosuch"]), (["run", "--attach", "nosuch:/x", "true"], ["nosuch"]),
                        (["run", "--attach", carrel_tree, "true"], ["NAME:PATH"]), (["run", "--attach", f"{carrel_tree}:/proc/x", "true"], ["--attach"])):
        done = daemon(*args)
        assert done.returncode == 125, args
        one_line(done.stderr, *words)
    problem(daemon.post("/v1/trees", {"name": "a/b"}), 400, "invalid")
    problem(daemon.delete("/v1/trees/..%2Fworkspaces"), 400, "invalid")
    assert daemon("rm", "-o", "json", "nosuch").returncode == 125


@pytest.fixture
def carrel_tree(daemon):
    name = f"tree-{os.getpid()}"
    assert daemon("tree", "create", name).stdout == f"{name}\n"
    yield name
    assert daemon("tree", "rm", name).stdout == f"removed {name}\n"


# ---- nobody else can grant ----

def post(daemon, body, *fds):
    """POST /v1/workspaces with descriptors."""
    text = json.dumps(body).encode()
    connection = daemon.connection()
    connection.connect()
    head = f"POST /v1/workspaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode()
    connection.sock.sendmsg([head + text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
    answer = connection.sock.makefile("rb").readline().decode()
    connection.close()
    return int(answer.split()[1])


def connected(path):
    """The kernel says of the client's end that its peer is who made the listener. Core holds one of root's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.connect(str(path))
        return listener.accept()[0], client


def voucher(*grants, fds=(), pair=None):
    ours, theirs = pair or socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    text = b"".join(b"".join(word.encode() + b"\0" for word in grant) for grant in grants)
    ours.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
    ours.close()
    return theirs


def test_a_path_alone_is_not_enough(daemon, place):
    problem(daemon.post("/v1/workspaces", {"dir": "/root"}), 400, "invalid", "descriptors")
    problem(daemon.post("/v1/workspaces", {"mounts": ["/root:/x"]}), 400, "invalid", "descriptors")
    wanted = {"mounts": [f"{place}/data:/x"]}
    grant = ("bind", f"{place}/data", "/x", "rw", "0", "0")
    opened, named = os.open(place / "data", os.O_RDONLY), os.open(place / "data", os.O_PATH)
    for made, status in ((voucher(grant, fds=[opened]), 201), (voucher(grant, fds=[named]), 403), (voucher(grant), 400),
                         (voucher(("bind", f"{place}/other", "/x", "rw", "0", "0"), fds=[opened]), 409),
                         (voucher(("bind", f"{place}/data", "/proc/x", "rw", "0", "0"), fds=[opened]), 400),
                         (voucher(("dir", f"{place}/data", "/x", "rw", "0", "0"), fds=[opened]), 400),
                         (voucher(("tree", "x", "/x", "rw", "0", "0"), fds=[opened]), 400), (voucher(), 400),
                         (voucher(grant, fds=[opened], pair=connected(place / "a")), 403),
                         (voucher(grant, fds=[opened], pair=connected(place / "b")[::-1]), 403)):
        with made:
            assert post(daemon, wanted, made.fileno()) == status
    assert post(daemon, wanted, opened) in (400, 500)       # not even a socket
    os.close(opened)
    os.close(named)


MAKER = """
import socket, sys
pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
socket.send_fds(socket.socket(fileno=int(sys.argv[1])), [b"x"], [end.fileno() for end in pair])
sys.stdin.read()
"""


def test_a_process_of_another_pid_namespace_can_not_grant(daemon, place):
    """As a plain user, core has the user's uid, and the descriptors of each voucher: it must not make another of them."""
    grant = ("bind", f"{place}/data", "/x", "rw", "0", "0")
    for words, status in (((), 201), (("unshare", "-pf") if IS_ROOT else ("unshare", "-Upf"), 403)):
        ours, theirs = socket.socketpair()
        opened = os.open(place / "data", os.O_RDONLY)
        command = [*words, "/usr/bin/python3", "-c", MAKER, str(theirs.fileno())]
        with ours, theirs, subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[theirs.fileno()]):
            ours.settimeout(60)
            ends = socket.recv_fds(ours, 1, 2)[1]
            with voucher(grant, fds=[opened], pair=[socket.socket(fileno=end) for end in ends]) as made:
                assert post(daemon, {"mounts": [f"{place}/data:/x"]}, made.fileno()) == status, words
        os.close(opened)


@pytest.mark.needs_root
def test_another_user_can_not_grant(daemon, place):
    """The one who made the voucher counts: as which user core runs must not help it."""
    wanted = {"mounts": [f"{place}/data:/x"]}
    opened = os.open(place / "data", os.O_RDONLY)
    owner = home_of(daemon).stat().st_uid
    assert owner != 0
    os.seteuid(owner)
    try:
        made = voucher(("bind", f"{place}/data", "/x", "rw", "0", "0"), fds=[opened])
    finally:
        os.seteuid(0)
    with made:
        assert post(daemon, wanted, made.fileno()) == 403
    os.close(opened)


@pytest.mark.needs_root
def test_what_is_seen_read_only_can_not_be_granted_for_writing(daemon, place):
    """A sandbox's descriptor of a read-only mount, which core could have got from it."""
    data = place / "data"
    script = f"mount --bind {data} {data} && mount -o remount,bind,ro {data} && echo ready && read end"
    with subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"ready\n"
        opened = os.open(f"/proc/{other.pid}/root{data}", os.O_RDONLY)
        other.stdin.close()
    for way, status in (("rw", 403), ("ro", 201)):
        with voucher(("bind", str(data), "/x", way, "0", "0"), fds=[opened]) as made:
            assert post(daemon, {"mounts": [f"{data}:/x"]}, made.fileno()) == status
    os.close(opened)


@pytest.mark.needs_faults
def test_a_kill_while_a_mount_is_granted_leaves_nothing(make_daemon, place):
    daemon = make_daemon(env={"CARREL_FAULT": "launch_grant_written:1"}, check=False)
    grants = pathlib.Path(f"{home_of(daemon)}.grants")
    assert daemon("create", "x", "-v", f"{place}/data:/data", "--host", daemon.socket).returncode == 125
    assert daemon.process.wait(120) != 0 and len(list(grants.iterdir())) == 1
    del daemon.env["CARREL_FAULT"]
    daemon.start_serving()
    assert json_of(daemon("ls", "-o", "json")) == [] and not list(grants.iterdir())
    with created(daemon, "x", "-v", f"{place}/data:/data") as name:
        assert sh(daemon, name, "cat /data/file").stdout == "of the host\n"
