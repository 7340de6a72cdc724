"""Files and archives over REST."""
import base64
import contextlib
import io
import os
import subprocess
import tarfile
import urllib.parse

import pytest

from harness import eventually
from rest import created, file_url as url, problem, workspace  # noqa: F401


def put(daemon, workspace, path, data=b"", query="", **how):
    return daemon.request("PUT", url(workspace, path, query), data, **how)


def get(daemon, workspace, path, query="", **how):
    return daemon.get(url(workspace, path, query), **how)


def inside(daemon, workspace, command):
    return daemon.post(f"/v1/workspaces/{workspace}/exec", {"command": command}).json()["stdout"]


# ---- reading and writing ----

def test_a_file_that_must_be_new_replaces_nothing(daemon, workspace):
    new = {"If-None-Match": "*"}
    assert put(daemon, workspace, "once", b"first", headers=new).status == 201
    problem(put(daemon, workspace, "once", b"second", headers=new), 412, "conflict", "once")
    assert get(daemon, workspace, "once").body == b"first"
    # It may also come to be while the second one is on its way.
    connection = daemon.connection()
    with contextlib.closing(connection):
        connection.putrequest("PUT", url(workspace, "race"))
        for name, value in {**new, "Content-Length": "4", "Expect": "100-continue"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.sock.recv(100).startswith(b"HTTP/1.1 100")
        assert put(daemon, workspace, "race", b"here").status == 201
        connection.send(b"late")
        assert connection.getresponse().status == 412
    assert get(daemon, workspace, "race").body == b"here"
    problem(put(daemon, workspace, "d", query="?mkdir", headers=new), 400, "invalid", "If-None-Match")


@pytest.mark.parametrize("name, value", [("If-Match", '"x"'), ("If-Match", "*"), ("If-None-Match", '"x"'), ("Content-Range", "bytes 0-0/9"),
                                         ("If-Unmodified-Since", "Sun, 15 Nov 2026 00:00:00 GMT")])
def test_a_change_on_a_condition_that_cant_be_kept_is_not_made(daemon, workspace, name, value):
    assert put(daemon, workspace, "f", b"as it was").status == 201
    problem(put(daemon, workspace, "f", b"x", headers={name: value}), 400, "invalid", name.lower())
    problem(daemon.delete(url(workspace, "f"), headers={name: value}), 400, "invalid", name.lower())
    assert get(daemon, workspace, "f", headers={name: value}).body == b"as it was"


def test_a_name_that_is_no_text_can_be_read_from_a_listing(daemon, workspace):
    inside(daemon, workspace, r"printf raw >$(printf 'a\377b'); echo text >plain")
    items = {item["name"]: item for item in get(daemon, workspace, "", "?list").json()["items"]}
    assert "name_base64" not in items["plain"]
    name = base64.b64decode(items["a\ufffdb"]["name_base64"])
    assert name == b"a\xffb" and get(daemon, workspace, name).body == b"raw"


def test_a_file_goes_in_and_out(daemon, workspace):
    data = bytes(range(256)) * 300
    answer = put(daemon, workspace, "deep/er/file.bin", data)
    assert answer.status == 201 and answer.json()["size"] == len(data) and answer.json()["type"] == "file"
    answer = get(daemon, workspace, "deep/er/file.bin")
    assert answer.body == data and answer.headers["Content-Type"] == "application/octet-stream" and answer.headers["Last-Modified"]
    assert get(daemon, workspace, "/workspace/deep/er/file.bin").body == data
    assert inside(daemon, workspace, "wc -c <deep/er/file.bin") == f"{len(data)}\n"
    assert put(daemon, workspace, "deep/er/file.bin", b"new").status == 200
    assert get(daemon, workspace, "deep/er/file.bin").body == b"new"
    head = daemon.request("HEAD", url(workspace, "deep/er/file.bin"))
    assert head.status == 200 and head.headers["Content-Length"] == "3" and head.body == b""
    assert put(daemon, workspace, "empty").status == 201 and get(daemon, workspace, "empty").body == b""


@pytest.mark.parametrize("name", ["a b", "ünï☃", "100%", "?x=1", "#", "-", "...", ".hidden", "new\nline", "q'\"", "x" * 255, "a/b c/d"])
def test_names_are_any(daemon, workspace, name):
    assert put(daemon, workspace, name, name.encode()).status == 201
    assert get(daemon, workspace, name).body == name.encode()
    assert get(daemon, workspace, name, "?stat").json()["name"] == name.rsplit("/", 1)[-1]


def test_modes_are_kept_and_no_setuid_comes_of_them(daemon, workspace):
    assert put(daemon, workspace, "script", b"#!/bin/sh\necho ran\n", "?mode=0755").json()["mode"] == "0755"
    assert inside(daemon, workspace, "./script") == "ran\n"
    assert put(daemon, workspace, "script", b"#!/bin/sh\necho again\n").json()["mode"] == "0755"
    for mode in ("4755", "999", "rwx", "", "07", "00755"):
        problem(put(daemon, workspace, "other", b"", f"?mode={mode}"), 400, "invalid", "mode")


@pytest.mark.parametrize("range, status, expected", [
    ("bytes=0-0", 206, b"0"), ("bytes=3-5", 206, b"345"), ("bytes=7-", 206, b"789"), ("bytes=-2", 206, b"89"), ("bytes=-100", 206, b"0123456789"),
    ("bytes=5-100", 206, b"56789"), ("bytes=10-", 416, None), ("bytes=-0", 416, None), ("bytes=5-3", 200, b"0123456789"),
    ("bytes=0-1,3-4", 200, b"0123456789"), ("lines=1-2", 200, b"0123456789"), ("bytes=x", 200, b"0123456789"),
    ("bytes=99999999999999999999-", 200, b"0123456789")])
def test_one_range_is_served(daemon, workspace, range, status, expected):
    put(daemon, workspace, "digits", b"0123456789")
    answer = get(daemon, workspace, "digits", headers={"Range": range})
    assert answer.status == status
    if status == 416:
        problem(answer, 416, "invalid", "10 bytes")
        assert answer.headers["Content-Range"] == "bytes */10"
    else:
        assert answer.body == expected
    if status == 206:
        first = b"0123456789".index(expected)
        assert answer.headers["Content-Range"] == f"bytes {first}-{first + len(expected) - 1}/10"
    assert get(daemon, workspace, "digits", headers={"Range": range, "If-Range": '"x"'}).status == 200


def test_a_large_file_moves_in_constant_memory(own_daemon):
    size = 256 << 20
    with created(own_daemon, limits={"disk": "1G"}) as workspace:
        pid = own_daemon.core_pid()
        def chunks():
            for _ in range(size >> 20):
                yield b"\xa5" * (1 << 20)
        with contextlib.closing(own_daemon.connection(120)) as connection:
            connection.request("PUT", url(workspace["id"], "big"), chunks(), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
            assert connection.getresponse().status == 201
            connection.close()
            connection.request("GET", url(workspace["id"], "big"))
            response, total = connection.getresponse(), 0
            while piece := response.read(1 << 20):
                total += len(piece)
        assert total == size
        peak = next(line for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM"))
        if "SANITIZED" not in os.environ:
            assert int(peak.split()[1]) < 64 << 10, peak


def test_an_upload_that_is_cut_changes_nothing(daemon, workspace):
    put(daemon, workspace, "kept", b"old")
    connection = daemon.connection()
    connection.putrequest("PUT", url(workspace, "kept"))
    connection.putheader("Content-Length", "1000")
    connection.endheaders()
    connection.send(b"half")
    connection.close()
    assert get(daemon, workspace, "kept").body == b"old"
    assert [item["name"] for item in get(daemon, workspace, "", "?list").json()["items"]] == [".workspace_configured", "kept"]


def test_the_disk_limit_holds_for_uploads(daemon):
    with created(daemon, limits={"disk": "1M"}) as workspace:
        problem(put(daemon, workspace["id"], "big", b"x" * (4 << 20)), 507, "limit")
        problem(get(daemon, workspace["id"], "big"), 404, "not_found")


# ---- directories ----

def test_directories_are_listed_made_moved_and_removed(daemon, workspace):
    assert put(daemon, workspace, "d/e", query="?mkdir").status == 201
    assert put(daemon, workspace, "d/e", query="?mkdir").status == 200
    for n in range(5):
        put(daemon, workspace, f"d/f{n}", b"x" * n)
    page = get(daemon, workspace, "d", "?list&limit=4").json()
    rest = get(daemon, workspace, "d", f"?list&limit=4&cursor={page['next_cursor']}").json()
    assert [item["name"] for item in page["items"]] == ["e", "f0", "f1", "f2"]
    assert [(item["name"], item["type"], item["size"]) for item in rest["items"]] == [("f3", "file", 3), ("f4", "file", 4)]
    assert rest["next_cursor"] is None
    assert put(daemon, workspace, "d/f4", query="?move=d/e/moved").json()["name"] == "moved"
    assert get(daemon, workspace, "d/e/moved").body == b"xxxx"
    problem(daemon.delete(url(workspace, "d")), 409, "conflict", "d")
    assert daemon.delete(url(workspace, "d", "?recursive")).status == 204
    problem(get(daemon, workspace, "d", "?stat"), 404, "not_found")
    problem(daemon.delete(url(workspace, "d")), 404, "not_found")
    problem(daemon.delete(url(workspace, "", "?recursive")), 400, "invalid")


def test_what_goes_together_and_what_doesnt(daemon, workspace):
    put(daemon, workspace, "f")
    problem(get(daemon, workspace, "f", "?list&stat"), 400, "invalid")
    problem(put(daemon, workspace, "f", query="?mkdir&move=g"), 400, "invalid")
    problem(get(daemon, workspace, "f", "?list"), 400, "invalid")
    problem(get(daemon, workspace, ""), 400, "invalid")
    problem(get(daemon, workspace, "f/x"), 400, "invalid")
    assert problem(get(daemon, workspace, "none"), 404, "not_found", "none")


def test_an_absolute_path_means_what_it_means_to_a_command(daemon, workspace):
    assert put(daemon, workspace, "/workspace/a/f", b"own").status == 201
    assert get(daemon, workspace, "a/f").body == get(daemon, workspace, "/workspace/a/f").body == b"own"
    assert put(daemon, workspace, "/tmp/made/f", b"elsewhere").status == 201
    assert inside(daemon, workspace, "cat /tmp/made/f") == "elsewhere"
    assert [item["name"] for item in get(daemon, workspace, "/tmp/made", "?list").json()["items"]] == ["f"]
    problem(get(daemon, workspace, "tmp/made/f"), 404, "not_found")
    problem(put(daemon, workspace, "a/f", query="?move=/tmp/f"), 400, "invalid", "file systems")
    assert get(daemon, workspace, "/etc/passwd").body == inside(daemon, workspace, "cat /etc/passwd").encode()
    problem(put(daemon, workspace, "/etc/passwd", b"own"), 403, "denied")
    problem(daemon.delete(url(workspace, "/usr/bin/env")), 403, "denied")
    for path in ("/", "/workspace", "/workspace/."):
        problem(daemon.delete(url(workspace, path, "?recursive")), 400, "invalid")
    # What the kernel makes up has no size, and may wait for whom it likes.
    problem(get(daemon, workspace, "/proc/self/status"), 400, "invalid", "file system")


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/../etc/passwd", "/workspace/../x", "..", "a/..", "./../x", "x" * 256, "a/" * 3000])
def test_no_path_leads_out(daemon, workspace, path):
    for answer in (get(daemon, workspace, path), put(daemon, workspace, path, b"x"), daemon.delete(url(workspace, path)),
                   put(daemon, workspace, "ok", query="?move=" + urllib.parse.quote(path))):
        assert answer.status in (400, 403, 404, 414), answer
        assert b"root:x" not in answer.body


def test_links_lead_where_they_lead_a_command(daemon, workspace):
    inside(daemon, workspace, "ln -s /etc/passwd out; ln -s /proc/self/environ magic; ln -s ../../.. up; mkfifo fifo; ln -s d/f in; mkdir d; echo x >d/f")
    for name in ("magic", "up/carrel.db", "fifo"):
        assert get(daemon, workspace, name).status in (400, 403, 404), name
    assert get(daemon, workspace, "out").body == inside(daemon, workspace, "cat out").encode() != open("/etc/passwd", "rb").read()
    assert get(daemon, workspace, "in").body == b"x\n"
    assert get(daemon, workspace, "out", "?stat").json()["link"] == "/etc/passwd"
    assert {item["name"]: item["type"] for item in get(daemon, workspace, "", "?list").json()["items"]}["fifo"] == "fifo"


# ---- archives ----

@pytest.mark.kernel
def test_a_tree_goes_out_and_in(daemon, workspace):
    inside(daemon, workspace, "mkdir -p t/sub; echo one >t/a; echo two >t/sub/b; ln -s a t/link; chmod 755 t/a")
    plain = daemon.get(f"/v1/workspaces/{workspace}/archive?path=t")
    packed = daemon.get(f"/v1/workspaces/{workspace}/archive?path=t&format=tar.zst")
    assert plain.headers["Content-Type"] == "application/x-tar" and packed.headers["Content-Type"] == "application/zstd"
    assert packed.body[:4] == b"\x28\xb5\x2f\xfd"
    with tarfile.open(fileobj=io.BytesIO(plain.body)) as tar:
        assert sorted(tar.getnames()) == ["a", "link", "sub", "sub/b"]
    for n, body in enumerate((plain.body, packed.body)):
        answer = daemon.request("PUT", f"/v1/workspaces/{workspace}/archive?path=copy{n}", body, {"Content-Type": "application/x-tar"})
        assert answer.status == 204, answer
        assert inside(daemon, workspace, f"diff -r t copy{n} && readlink copy{n}/link && test -x copy{n}/a && echo same") == "a\nsame\n"
    problem(daemon.get(f"/v1/workspaces/{workspace}/archive?path=none"), 404, "not_found", "none")
    problem(daemon.get(f"/v1/workspaces/{workspace}/archive?format=zip"), 400, "invalid", "tar.zst")


def test_times_of_files_and_directories_are_kept(daemon, workspace):
    inside(daemon, workspace, "mkdir -p t/sub/deep there/sub; echo one >t/sub/deep/f; echo two >t/sub/g; echo three >t/h;"
                              "touch -d @1000000000 t/sub/deep/f t/sub/deep; touch -d @1100000000 t/sub; touch -d @1200000000 t/h")
    body = daemon.get(f"/v1/workspaces/{workspace}/archive?path=t").body
    for target in ("new", "there"):
        assert daemon.request("PUT", f"/v1/workspaces/{workspace}/archive?path={target}", body).status == 204
        assert inside(daemon, workspace, f"cd {target}; stat -c %Y sub/deep/f sub/deep sub h").split() == [
            "1000000000", "1000000000", "1100000000", "1200000000"]


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_holes_of_files_come_in_as_holes(daemon, workspace, tmp_path, form):
    with open(tmp_path / "f", "wb") as file:
        for n in range(40):         # more than a header of GNU's holds
            file.seek(n * 200000)
            file.write(b"%d" % n)
        file.truncate(10000000)
    body = subprocess.run(["tar", "-c", "-S", f"--format={form}", "-C", tmp_path, "f"], check=True, capture_output=True).stdout
    assert len(body) < 1000000
    assert daemon.request("PUT", f"/v1/workspaces/{workspace}/archive", body).status == 204
    assert get(daemon, workspace, "f").body == (tmp_path / "f").read_bytes()
    assert int(inside(daemon, workspace, "du -k f").split()[0]) < 2000
    out = daemon.get(f"/v1/workspaces/{workspace}/archive").body
    assert len(out) < 1000000
    with tarfile.open(fileobj=io.BytesIO(out)) as tar:
        assert tar.extractfile("f").read() == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize("body", [b"", b"no archive" * 100, b"\x28\xb5\x2f\xfdbroken"])
def test_what_is_no_archive_is_refused(daemon, workspace, body):
    answer = daemon.request("PUT", f"/v1/workspaces/{workspace}/archive", body)
    if body:
        problem(answer, 400, "invalid")
    assert [item["name"] for item in get(daemon, workspace, "", "?list").json()["items"]] == [".workspace_configured"]


def test_a_hostile_archive_changes_nothing(daemon, workspace):
    def archive(*members):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, kind, link in (("fine", tarfile.REGTYPE, ""), *members):
                info = tarfile.TarInfo(name)
                info.type, info.linkname = kind, link
                tar.addfile(info)
        return out.getvalue()
    for members in ([("../x", tarfile.REGTYPE, "")], [("/etc/x", tarfile.REGTYPE, "")], [("l", tarfile.SYMTYPE, "/etc"), ("l/x", tarfile.REGTYPE, "")],
                    [("l", tarfile.SYMTYPE, "../../.."), ("l/x", tarfile.REGTYPE, "")], [("dev", tarfile.CHRTYPE, "")], [("p", tarfile.FIFOTYPE, "")], [("h", tarfile.LNKTYPE, "/etc/passwd")]):
        answer = daemon.request("PUT", f"/v1/workspaces/{workspace}/archive", archive(*members))
        assert answer.status in (400, 403), (members, answer)
        assert [item["name"] for item in get(daemon, workspace, "", "?list").json()["items"]] == [".workspace_configured"]


def test_an_archive_that_is_cut_changes_nothing(daemon, workspace):
    inside(daemon, workspace, "mkdir t; head -c 3000000 /dev/urandom >t/big")
    whole = daemon.get(f"/v1/workspaces/{workspace}/archive?path=t").body
    connection = daemon.connection()
    connection.putrequest("PUT", f"/v1/workspaces/{workspace}/archive?path=half")
    connection.putheader("Content-Length", str(len(whole)))
    connection.endheaders()
    connection.send(whole[:2000000])
    connection.close()
    assert eventually(lambda: get(daemon, workspace, "half", "?stat").status == 404)
    # And one that isn't read to its end leaves no child behind: the fixture looks.
    connection = daemon.connection()
    connection.request("GET", f"/v1/workspaces/{workspace}/archive?path=t")
    connection.getresponse().read(100)
    connection.close()
    assert get(daemon, workspace, "t/big", "?stat").json()["size"] == 3000000
