"""Workspaces are archived before they are removed, and archives are listed, removed and pruned."""
import contextlib
import io
import json
import pathlib
import subprocess
import tarfile
import threading

import s3
from daemons import configure
from harness import eventually
from rest import problem
from workspaces import json_of, sh


def ok(daemon, *words):
    done = daemon(*words)
    assert done.returncode == 0, done.stderr
    return done


def archives(daemon):
    return daemon.get("/v1/archives").json()["items"]


def tar_of(data):
    plain = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout if data[:4] == b"\x28\xb5\x2f\xfd" else data
    return tarfile.open(fileobj=io.BytesIO(plain))


def blob_file(daemon, name):
    return pathlib.Path(daemon.env["CARREL_HOME"], "blobs/archives", name)


def make(daemon, name):
    ok(daemon, "create", name)
    sh(daemon, name, "mkdir -p d/shut; echo hello >d/a; ln d/a d/b; ln -s /etc/passwd l; mkfifo f; truncate -s 5M sparse; echo x >d/shut/x; "
       "chmod 0 d/shut; mkdir old; echo gone >old/gone; rm -r old")


def test_an_archive_is_a_tar_of_the_whole_workspace(daemon):
    make(daemon, "whole")
    answer = daemon.request("DELETE", "/v1/workspaces/whole?archive=true")
    assert answer.status == 200
    archive = answer.json()
    assert archive["workspace"] == "whole" and archive["format"] == "tar.zst"
    assert archive in archives(daemon) and daemon.get("/v1/workspaces/whole").status == 404
    path = blob_file(daemon, archive["name"])
    assert path.stat().st_size == archive["size_bytes"] < 1 << 20
    with tar_of(path.read_bytes()) as tar:
        names = tar.getnames()
        assert names[0] == "carrel.json" and json.load(tar.extractfile("carrel.json"))["name"] == "whole"
        assert tar.extractfile("workspace/d/a").read() == b"hello\n" and tar.getmember("workspace/d/b").islnk()
        assert tar.getmember("workspace/l").linkname == "/etc/passwd"
        assert tar.extractfile("workspace/d/shut/x").read() == b"x\n" and tar.getmember("workspace/d/shut").mode == 0
        assert "workspace/old" not in names and tar.getmember("workspace/sparse").size == 5 << 20
        assert json.load(tar.extractfile("carrel-marks.json"))["fifos"] == ["workspace/f"]
    assert daemon.request("DELETE", f"/v1/archives/{archive['name']}").status == 204
    assert not path.exists()
    problem(daemon.request("DELETE", f"/v1/archives/{archive['name']}"), 404, "not_found", archive["name"])
    problem(daemon.request("DELETE", "/v1/archives/..%2f..%2fcarrel.db"), 400, "invalid")


def test_a_removal_that_was_refused_decides_nothing(daemon):
    """A later one archives only if it is to: the wish of the first went with it."""
    ok(daemon, "create", "kept")
    token = daemon.post("/v1/tokens", {"scope": "reviewer"}).json()
    headers = {"Authorization": f"Bearer {token['text']}"}
    problem(daemon.request("DELETE", "/v1/workspaces/kept?archive=true", headers=headers), 403, "denied")
    assert daemon.get("/v1/workspaces/kept").status == 200
    assert daemon.request("DELETE", "/v1/workspaces/kept?archive=false").status == 204
    assert "kept" not in [archive["workspace"] for archive in archives(daemon)]
    assert daemon.delete(f"/v1/tokens/{token['id']}").status == 204


def test_an_archive_ends_what_runs_and_tells_of_it(daemon):
    ok(daemon, "create", "busy")
    ok(daemon, "exec", "-d", "busy", "--", "sleep", "1000")
    ok(daemon, "rm", "--force", "busy", "--archive")
    listed = json_of(daemon("archive", "ls", "-o", "json"))
    assert [item["workspace"] for item in listed].count("busy") == 1
    assert "busy-" in ok(daemon, "archive", "ls").stdout
    name = next(item["name"] for item in listed if item["workspace"] == "busy")
    ok(daemon, "archive", "rm", name)
    assert daemon("rm", "busy", "--archive", "--no-archive").returncode == 125


def test_prune_keeps_what_is_new_and_fits(daemon):
    for name in ("one", "two", "three"):
        ok(daemon, "create", name)
        ok(daemon, "rm", name, "--archive")
    newest = archives(daemon)[0]
    assert newest["workspace"] == "three"
    shown = json_of(daemon("archive", "prune", "--max-bytes", str(newest["size_bytes"]), "--dry-run", "-o", "json"))
    assert len(shown["found"]) == len(archives(daemon)) - 1
    ok(daemon, "archive", "prune", "--max-bytes", str(newest["size_bytes"]))
    assert archives(daemon) == [newest]
    ok(daemon, "archive", "prune", "--older-than", "1h")
    assert archives(daemon) == [newest]
    ok(daemon, "archive", "prune", "--older-than", "1ms")
    assert archives(daemon) == []
    assert daemon("archive", "prune").returncode == 125


def test_an_archive_that_cannot_be_stored_keeps_the_workspace(daemon):
    ok(daemon, "create", "kept")
    sh(daemon, "kept", "echo precious >file")
    directory = pathlib.Path(daemon.env["CARREL_HOME"], "blobs")
    aside = directory.with_name("blobs.aside")
    directory.rename(aside)
    directory.write_text("not a directory")
    try:
        answer = daemon.request("DELETE", "/v1/workspaces/kept?archive=true")
        assert answer.status >= 400 and "kept" in answer.json()["detail"]
    finally:
        directory.unlink()
        aside.rename(directory)
    assert sh(daemon, "kept", "cat file").stdout == "precious\n"
    ok(daemon, "rm", "kept")


def configured(make_daemon, text, **how):
    return configure(make_daemon(**how), text)


def test_a_missing_directory_of_the_blob_store_is_named_with_the_command_that_makes_it(make_daemon, tmp_path):
    store = tmp_path / "store"
    daemon = configured(make_daemon, f"blob:\n  url: dir:{store}\n")
    ok(daemon, "create", "kept")
    failed = daemon("rm", "kept", "--archive")
    assert failed.returncode == 125 and f"blob.url: there is no directory '{store}'" in failed.stderr, failed
    hint = failed.stderr.splitlines()[-1].removeprefix("hint: ")
    subprocess.run(hint.split(), check=True)
    ok(daemon, "rm", "kept", "--archive")
    assert [item["workspace"] for item in archives(daemon)] == ["kept"]


# More directories below each other than an archive takes.
TOO_MUCH = """
import os
half = "d/" * 150
open("file", "w").write("kept")
for n in range(4):
    os.makedirs(f"c{n}/{half}", exist_ok=True)
for n in (3, 2, 1):
    if not os.path.exists(f"c{n - 1}/{half}c{n}"):
        os.rename(f"c{n}", f"c{n - 1}/{half}c{n}")
"""


def test_archives_are_made_as_configured(make_daemon):
    daemon = configured(make_daemon, "archives:\n  on_remove: true\n  on_expiry: true\n  format: tar.gz\n")
    ok(daemon, "create", "first")
    ok(daemon, "rm", "first")
    assert [(item["workspace"], item["format"]) for item in archives(daemon)] == [("first", "tar.gz")]
    with tarfile.open(blob_file(daemon, archives(daemon)[0]["name"])) as tar:
        assert "workspace/.workspace_configured" in tar.getnames()
    ok(daemon, "create", "never")
    ok(daemon, "rm", "never", "--no-archive")
    # A program inside can't keep its workspace from expiring by what no archive takes.
    ok(daemon, "create", "brief")
    # A tree of which the size can't be told ends a command that is looked at: another one goes on with it.
    assert eventually(lambda: sh(daemon, "brief", f"python3 -c '{TOO_MUCH}'").returncode == 0, 60)
    problem(daemon.delete("/v1/workspaces/brief?archive=true"), 429, "limit", "brief")
    ok(daemon, "update", "brief", "--ttl", "1s")
    assert eventually(lambda: [item["workspace"] for item in archives(daemon)] == ["brief", "first"], 60)
    with tarfile.open(blob_file(daemon, archives(daemon)[0]["name"])) as tar:
        names = tar.getnames()
        assert "workspace/file" in names and "workspace/c0/d/d" in names


def test_archives_lie_in_a_bucket(make_daemon, bucket):
    server, proxy = bucket
    daemon = configured(make_daemon, s3.config(proxy.url, "/home"), env=s3.CREDENTIALS)
    ok(daemon, "create", "far")
    sh(daemon, "far", "mkdir d; echo hello >d/a")
    with proxy.misbehaving(lambda method, path, count: 403 if method == "PUT" else None):
        problem(daemon.request("DELETE", "/v1/workspaces/far?archive=true"), 403, "denied", "far")
    assert sh(daemon, "far", "cat d/a").stdout == "hello\n" and archives(daemon) == []
    # Damaged on its way back: the archive isn't trusted, and the workspace stays.
    with proxy.misbehaving(lambda method, path, count: "flip" if method == "GET" and "archives/" in path and "?" not in path else None):
        assert daemon.request("DELETE", "/v1/workspaces/far?archive=true").status >= 400
    assert sh(daemon, "far", "cat d/a").stdout == "hello\n" and archives(daemon) == []
    with proxy.misbehaving(lambda method, path, count: 500 if count == 1 else None):
        archive = daemon.request("DELETE", "/v1/workspaces/far?archive=true").json()
    stored = server.files()[f"home/archives/{archive['name']}"]
    assert len(stored) == archive["size_bytes"] and archive in archives(daemon)
    with tar_of(stored) as tar:
        assert tar.extractfile("workspace/d/a").read() == b"hello\n"
    assert s3.SECRET not in daemon.log()


def test_a_daemon_that_stops_while_it_archives_keeps_the_workspace(make_daemon, bucket):
    """The stop writes the row of each workspace that was used."""
    _, proxy = bucket
    daemon = configured(make_daemon, s3.config(proxy.url, "/stopped"), env=s3.CREDENTIALS)
    ok(daemon, "create", "kept")
    sh(daemon, "kept", "echo precious >file")
    reached = threading.Event()

    def stall(method, path, count):
        if method != "PUT":
            return None
        reached.set()
        return "stall"

    with proxy.misbehaving(stall), contextlib.closing(daemon.connection()) as connection:
        connection.request("DELETE", "/v1/workspaces/kept?archive=true")
        assert reached.wait(60)
        daemon.stop_serving()
    daemon.start_serving()
    assert sh(daemon, "kept", "cat file").stdout == "precious\n"
    ok(daemon, "rm", "kept", "--archive")
    assert [item["workspace"] for item in archives(daemon)] == ["kept"]
