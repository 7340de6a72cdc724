"""Trees that a sandbox made to deceive, and archives that a stranger sent: whatever is asked of them over REST, nothing
outside is read or changed, nothing waits, and nothing of a refused one stays."""
# security: files
import contextlib
import http.client
import io
import json
import os
import pathlib
import tarfile
import time
import urllib.parse

import pytest

from harness import IS_ROOT, eventually
from rest import created, file_url as url, output_of as run, problem, workspace  # noqa: F401


def names(daemon, workspace, path=""):
    return [item["name"] for item in daemon.get(url(workspace, path, "?list&limit=1000")).json()["items"]]


def tree(daemon, workspace):
    """The workspace's directory on the host."""
    number = daemon.get(f"/v1/workspaces/{workspace}").json()["id"]
    return pathlib.Path(daemon.env["CARREL_HOME"], "workspaces", number)


def is_clean(daemon, workspace):
    return is_empty(tree(daemon, workspace) / ".in")


def is_empty(place):
    with contextlib.suppress(FileNotFoundError):
        return not os.listdir(place)
    return True


def upload(daemon, workspace, body, query=""):
    return daemon.request("PUT", f"/v1/workspaces/{workspace}/archive{query}", body, {"Content-Type": "application/x-tar"}, timeout=60)


def archive(*members):
    """A tar of one good file and these: (name, type, link, mode, pax headers)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, link, mode, headers in (("fine", tarfile.REGTYPE, "", 0o644, {}), *members):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.pax_headers = kind, link, mode, headers
            tar.addfile(info)
    return out.getvalue()


# ---- trees ----

def is_caught(seen):
    """In both of its states."""
    return 200 in seen and seen & {400, 403, 404, 409}


def test_a_tree_that_changes_while_it_is_asked_for_leads_nowhere(daemon, workspace):
    """A command swaps a directory and links that lead out, as fast as it can."""
    secret = pathlib.Path(daemon.env["CARREL_HOME"], "secret")
    secret.write_text("secret of the host")
    passwd = pathlib.Path("/etc/passwd").read_bytes()
    run(daemon, workspace, "mkdir a; echo mine >a/secret; ln -s ../../.. b; ln -s /etc c")
    swapper = ("import ctypes, os\nlibc = ctypes.CDLL(None)\nwhile not os.path.exists('stop'):\n  for _ in range(100):\n"
               "    libc.renameat2(-100, b'a', -100, b'b', 2); libc.renameat2(-100, b'a', -100, b'c', 2)\n")
    exec_id = daemon.post(f"/v1/workspaces/{workspace}/exec", {"argv": ["python3", "-c", swapper], "background": True}).json()["id"]
    end, seen = time.monotonic() + 2, set()
    while time.monotonic() < end or (not is_caught(seen) and time.monotonic() < end + 60):
        for path in ("a/secret", "b/secret"):
            answer = daemon.get(url(workspace, path))
            assert b"host" not in answer.body
            seen.add(answer.status)
        assert daemon.get(url(workspace, "a/passwd")).body != passwd
        daemon.request("PUT", url(workspace, "a/planted"), b"x")
        daemon.request("PUT", url(workspace, "a/made", "?mkdir"))
        daemon.delete(url(workspace, "a/made", "?recursive"))
        with tarfile.open(fileobj=io.BytesIO(daemon.get(f"/v1/workspaces/{workspace}/archive").body)) as tar:
            assert not any(name.endswith(("passwd", "carrel.db")) for name in tar.getnames())
    assert is_caught(seen), seen
    assert daemon.request("PUT", url(workspace, "stop"), b"").status == 201
    assert eventually(lambda: daemon.get(f"/v1/execs/{exec_id}").json()["state"] != "running")
    for path in ("/etc/planted", "/etc/made", secret.parent / "planted", secret.parent / "made", secret.parent / "workspaces/planted"):
        assert not os.path.lexists(path)
    secret.unlink()
    assert eventually(lambda: is_clean(daemon, workspace))


def test_names_of_any_bytes_are_listed_as_json_and_reached(daemon, workspace):
    run(daemon, workspace, r"""printf x >"$(printf 'bad\377byte')"; printf y >"$(printf 'new\nline')"; printf z >"$(printf 'tab\t\033[31m')" """)
    answer = daemon.get(url(workspace, "", "?list"))
    assert {"bad\ufffdbyte", "new\nline", "tab\t\033[31m"} <= {item["name"] for item in json.loads(answer.body.decode("utf-8"))["items"]}
    assert daemon.get(url(workspace, b"bad\xffbyte")).body == b"x"
    assert daemon.get(url(workspace, "new\nline")).body == b"y"
    pages, cursor = [], None
    while True:
        more = f"&cursor={urllib.parse.quote(cursor)}" if cursor else ""
        page = daemon.get(url(workspace, "", f"?list&limit=1{more}")).json()
        pages += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert pages == names(daemon, workspace)
    assert daemon.delete(url(workspace, b"bad\xffbyte")).status == 204


def test_a_tree_of_many_levels_is_read_packed_and_removed(daemon, workspace):
    deep = "d/" * 90 + "f"
    run(daemon, workspace, f"mkdir -p {deep[:-2]} && echo deep >{deep}")
    assert daemon.get(url(workspace, deep)).body == b"deep\n"
    body = daemon.get(f"/v1/workspaces/{workspace}/archive?path=d").body
    assert upload(daemon, workspace, body, "?path=again").status == 204
    assert daemon.get(url(workspace, "again/" + deep[2:])).body == b"deep\n"
    # Deeper than anybody walks: what can't be measured is over its limit, but it can be removed.
    daemon.post(f"/v1/workspaces/{workspace}/exec", {"command": "python3 -c 'import os\nfor i in range(2000): os.mkdir(\"e\"); os.chdir(\"e\")'"})
    problem(daemon.get(url(workspace, "e/" * 2100 + "f")), 400, "invalid")
    with contextlib.suppress(Exception):  # the answer is cut when the packing fails
        daemon.get(f"/v1/workspaces/{workspace}/archive?path=e")
    for name in ("d", "e", "again"):
        assert daemon.delete(url(workspace, name, "?recursive")).status == 204
        assert name not in names(daemon, workspace)
    assert eventually(lambda: is_clean(daemon, workspace))


def test_directories_that_say_no_are_removed_before_the_answer(daemon, workspace):
    """Also what lies in them."""
    for name, script in (("t", "mkdir -p t/u/v; touch t/u/v/f; chmod 0 t/u/v; chmod 0 t/u"),
                         ("s", "mkdir -p s/many; cd s/many; seq 5000 | xargs touch; cd ../..; chmod 500 s/many; chmod 500 s")):
        run(daemon, workspace, script)
        assert daemon.delete(url(workspace, name, "?recursive")).status == 204
        assert is_empty(tree(daemon, workspace) / ".in")
    assert names(daemon, workspace) == [".workspace_configured"]


def test_special_files_are_listed_and_removed_never_opened(daemon, workspace):
    run(daemon, workspace, "mkfifo fifo; ln -s fifo link; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'")
    special = {"fifo": "fifo", "socket": "socket"}
    if IS_ROOT:
        place = tree(daemon, workspace) / "upper"
        with contextlib.suppress(PermissionError):
            os.mknod(place / "device", 0o666 | 0o020000, os.makedev(1, 3))
            os.chown(place / "device", place.stat().st_uid, place.stat().st_gid)
            special["device"] = "device"
    items = {item["name"]: item["type"] for item in daemon.get(url(workspace, "", "?list")).json()["items"]}
    assert {name: items[name] for name in special} == special
    for name in [*special, "link"]:
        problem(daemon.get(url(workspace, name), timeout=60), 400, "invalid")
        problem(daemon.request("PUT", url(workspace, name), b"x", timeout=60), 400, "invalid")
    with tarfile.open(fileobj=io.BytesIO(daemon.get(f"/v1/workspaces/{workspace}/archive").body)) as tar:
        assert not set(special) & set(tar.getnames())
    for name in special:
        assert daemon.delete(url(workspace, name)).status == 204


def test_a_file_that_is_cut_while_it_is_read_keeps_nobody_waiting(daemon, workspace):
    run(daemon, workspace, "head -c 50000000 /dev/zero >big")
    with contextlib.closing(daemon.connection(20)) as connection:
        connection.request("GET", url(workspace, "big"))
        response = connection.getresponse()
        got = len(response.read(1000))
        run(daemon, workspace, ": >big")
        # Fewer bytes than were announced: the connection is closed.
        with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
            while piece := response.read(1 << 20):
                got += len(piece)
        assert got < 50000000
    assert daemon.get("/healthz").status == 200


# ---- archives ----

REG, SYM, LNK, DIR = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
HOSTILE = {
    "absolute": [("/etc/planted", REG, "", 0o644, {})],
    "dots": [("a/../../planted", REG, "", 0o644, {})],
    "pax-dots": [("harmless", REG, "", 0o644, {"path": "../planted"})],
    "through-link-out": [("l", SYM, "/etc", 0o777, {}), ("l/planted", REG, "", 0o644, {})],
    "through-link-up": [("d/l", SYM, "../../..", 0o777, {}), ("d/l/planted", REG, "", 0o644, {})],
    "through-link-winding": [("d", DIR, "", 0o755, {}), ("l", SYM, "d/../..", 0o777, {}), ("l/planted", DIR, "", 0o755, {})],
    "through-pax-link": [("l", SYM, "x", 0o777, {"linkpath": "/proc/self/root"}), ("l/etc/planted", REG, "", 0o644, {})],
    "through-two-links": [("a", SYM, "/", 0o777, {}), ("b", SYM, "a/etc", 0o777, {}), ("b/planted", REG, "", 0o644, {})],
    "link-where-a-directory-was": [("d", DIR, "", 0o755, {}), ("d/f", REG, "", 0o644, {}), ("d", SYM, "/etc", 0o777, {}), ("d/planted", REG, "", 0o644, {})],
    "directory-where-a-link-was": [("d", SYM, "/etc", 0o777, {}), ("d", DIR, "", 0o700, {})],
    "hard-link-to-a-link": [("l", SYM, "/etc/passwd", 0o777, {}), ("h", LNK, "l", 0o644, {})],
    "hard-link-through-a-link": [("l", SYM, "/etc", 0o777, {}), ("h", LNK, "l/passwd", 0o644, {})],
    "through-link": [("l", SYM, "d", 0o777, {}), ("d", DIR, "", 0o755, {}), ("l/planted", REG, "", 0o644, {})],
    "hard-link-out": [("h", LNK, "/etc/passwd", 0o644, {})],
    "hard-link-to-the-tree": [("h", LNK, "there", 0o644, {})],
    "character-device": [("dev", tarfile.CHRTYPE, "", 0o666, {})],
    "block-device": [("dev", tarfile.BLKTYPE, "", 0o666, {})],
    "fifo": [("fifo", tarfile.FIFOTYPE, "", 0o666, {})],
    "setuid": [("su", REG, "", 0o4755, {})],
    "setgid-directory": [("sg", DIR, "", 0o2755, {})],
    "capability": [("ping", REG, "", 0o755, {"SCHILY.xattr.security.capability": "x"})],
    "opaque": [("d", DIR, "", 0o755, {"SCHILY.xattr.user.overlay.opaque": "y"})],
    "redirect": [("d", DIR, "", 0o755, {"SCHILY.xattr.trusted.overlay.redirect": "/x"})],
    "deep": [("d/" * 101 + "f", REG, "", 0o644, {})],
    "long": [("n" * 256, REG, "", 0o644, {})],
    "directory-over-file": [("there", DIR, "", 0o755, {}), ("there/f", REG, "", 0o644, {})],
    "huge": [("huge", REG, "", 0o644, {"size": str(1 << 62)})],
}


@pytest.fixture(scope="module")
def target(daemon):
    with created(daemon) as made:
        daemon.request("PUT", url(made["id"], "there"), b"there")
        yield made["id"]


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_named_and_changes_nothing(daemon, target, kind):
    before = names(daemon, target)
    answer = upload(daemon, target, archive(*HOSTILE[kind]))
    assert answer.status in (400, 403, 409, 507), answer
    assert answer.json()["code"] in ("invalid", "denied", "conflict", "limit") and answer.json()["detail"]
    assert names(daemon, target) == before and daemon.get(url(target, "there")).body == b"there"
    assert not os.path.lexists("/etc/planted") and eventually(lambda: is_clean(daemon, target))


def test_links_that_lead_out_come_in_as_they_are_and_are_followed_by_nobody_outside(daemon, tmp_path):
    """A project with a .venv, say. Inside they lead where they lead inside; every other door stops before them."""
    victim = tmp_path / "victim"
    passwd = pathlib.Path("/etc/passwd").read_bytes()
    victim.mkdir()
    (victim / "f").write_text("theirs")
    tmp_path.chmod(0o777)
    links = {"abs": str(victim), "file": str(victim / "f"), "up": "../../../..", "python": "/usr/bin/env", "self": "/proc/self/root",
             ".context.json": str(victim / "f"), "loop": "loop"}
    with created(daemon, context=True) as made:
        name = made["id"]
        body = archive(*[(link, SYM, to, 0o777, {}) for link, to in links.items()])
        assert upload(daemon, name, body).status == 204
        assert run(daemon, name, "readlink python; ./python echo ran; ls abs 2>&1 || true").splitlines()[:2] == ["/usr/bin/env", "ran"]
        for link, to in links.items():
            assert daemon.get(url(name, link, "?stat")).json()["link"] == to
        for path in ("abs/f", "file", "up/etc/passwd", "self/etc/passwd", f"self{victim}/f", "loop"):
            answer = daemon.get(url(name, path))
            assert b"theirs" not in answer.body and answer.body != passwd, (path, answer)
            daemon.request("PUT", url(name, path), b"mine")
            daemon.request("PUT", url(name, path + "/new"), b"mine")
            daemon.delete(url(name, path + "/f", "?recursive"))
            daemon.get(f"/v1/workspaces/{name}/archive?path={urllib.parse.quote(path)}")
            upload(daemon, name, archive(("f", REG, "", 0o644, {})), f"?path={urllib.parse.quote(path)}")
        # Nor by an archive that comes later, by what is measured, packed and removed.
        for member in (("abs/f", REG, "", 0o644, {}), ("abs", DIR, "", 0o700, {}), ("up/planted", REG, "", 0o644, {})):
            assert upload(daemon, name, archive(member)).status in (403, 409)
        with tarfile.open(fileobj=io.BytesIO(daemon.get(f"/v1/workspaces/{name}/archive").body)) as tar:
            assert {info.name: info.linkname for info in tar if info.issym() and info.name in links}.items() >= {
                (link, links[link]) for link in ("abs", "python", "up")}
        assert daemon.delete(url(name, "abs", "?recursive")).status == 204
    assert os.listdir(victim) == ["f"] and (victim / "f").read_text() == "theirs"


def test_truncated_and_garbled_archives_change_nothing(daemon, target):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name in ("one", "two"):
            info = tarfile.TarInfo(name)
            info.size = 5000
            tar.addfile(info, io.BytesIO(b"x" * 5000))
    body, before = whole.getvalue(), names(daemon, target)
    for bad in (body[:3000], body[:7000], body[:600] + b"\xff" * 512 + body[1112:5632] + b"garbage" * 200, b"\0" * 100, b"BZh9" + body):
        answer = upload(daemon, target, bad)
        assert answer.status == 400 and answer.json()["code"] == "invalid", answer
        assert names(daemon, target) == before
    assert eventually(lambda: is_clean(daemon, target))


def test_a_bomb_is_a_limit_and_a_disk_limit_holds(daemon, workspace):
    run(daemon, workspace, "mkdir t; head -c 100000000 /dev/zero >t/zeros")
    bomb = daemon.get(f"/v1/workspaces/{workspace}/archive?path=t&format=tar.zst").body
    assert len(bomb) < 100000
    problem(upload(daemon, workspace, bomb, "?path=again"), 507, "limit", "times its size")
    run(daemon, workspace, "head -c 3000000 /dev/urandom >t/zeros")
    body = daemon.get(f"/v1/workspaces/{workspace}/archive?path=t").body
    with created(daemon, limits={"disk": "1M"}) as small:
        problem(upload(daemon, small["id"], body), 507, "limit", "zeros")
        assert names(daemon, small["id"]) == [".workspace_configured"]
        assert eventually(lambda: is_clean(daemon, small["id"]))
    assert eventually(lambda: is_clean(daemon, workspace))


def test_many_uploads_that_are_cut_leave_nothing(daemon, workspace):
    body = archive(*[(f"d/{n}", REG, "", 0o644, {}) for n in range(200)])
    for n in range(10):
        with contextlib.closing(daemon.connection()) as connection:
            connection.putrequest("PUT", f"/v1/workspaces/{workspace}/archive")
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders()
            connection.send(body[:len(body) * n // 10])
    assert eventually(lambda: is_clean(daemon, workspace))
    assert names(daemon, workspace) == [".workspace_configured"]
