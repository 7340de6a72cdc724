"""Workspaces are made of archives again; hostile archives make none."""
# security: files
import io
import json
import os
import pathlib
import subprocess
import tarfile

import pytest

from harness import eventually
from rest import Events, problem
from workspaces import json_of, sh


def ok(daemon, *words):
    done = daemon(*words)
    assert done.returncode == 0, done.stderr
    return done


def archived(daemon, name):
    answer = daemon.request("DELETE", f"/v1/workspaces/{name}?archive=true")
    assert answer.status == 200, answer
    return answer.json()["name"]


def blobs(daemon):
    return pathlib.Path(daemon.env["CARREL_HOME"], "blobs/archives")


def layers(daemon):
    """Names of the layers on disk, when the daemon has removed those that nothing names."""
    assert daemon.get("/v1/snapshots").status == 200
    return sorted(name for name in os.listdir(pathlib.Path(daemon.env["CARREL_HOME"], "layers")) if "snap-" in name)


STATE = ("find . -mindepth 1 -printf '%P %y %m %l %s\\n' | sort; cat d/a; stat -c '%h %Y' d/a; stat -c '%a %Y' .; "
         "python3 -c 'import os; print(os.getxattr(\"d/a\", \"user.color\"))' 2>&1")


def test_a_restored_workspace_is_what_it_was(daemon):
    ok(daemon, "create", "again", "--memory", "300M", "--label", "team=red", "-e", "COLOR=blue", "--ttl", "2h")
    sh(daemon, "again", "mkdir -p d/shut e; echo hello >d/a; ln d/a d/b; ln -s /etc/passwd l; mkfifo -m 600 f; truncate -s 5M sparse; echo x >d/shut/x; "
       "chmod 0 d/shut; python3 -c 'import os; os.setxattr(\"d/a\", \"user.color\", b\"red\")'; touch -d @1000000000 d/a; chmod 750 .")
    ok(daemon, "snapshot", "create", "again")
    sh(daemon, "again", "rm -r e; echo new >g; chmod 770 .; touch -d @1000000001 .")
    before, shown = sh(daemon, "again", STATE).stdout, daemon.get("/v1/workspaces/again").json()
    archive = archived(daemon, "again")
    events = Events(daemon, "/v1/events")
    answer = daemon.post(f"/v1/archives/{archive}/restore", {})
    assert answer.status == 201, answer
    w = answer.json()
    event = events.until("workspace.restored")[-1]["data"]
    events.close()
    assert event["name"] == "again" and event["workspace"] == w["id"] and event["archive"] == archive
    assert answer.headers["Location"] == f"/v1/workspaces/{w['id']}" and w["id"] != shown["id"]
    for field in ("name", "labels", "env", "environment"):
        assert w[field] == shown[field]
    assert w["limits"]["memory_bytes"] == 300 << 20 and w["expires_at"] and w["snapshot"] is None and "warnings" not in w
    assert sh(daemon, "again", STATE).stdout == before
    assert sh(daemon, "again", "echo more >>d/a; rm g; cat d/a; echo $COLOR").stdout == "hello\nmore\nblue\n"
    problem(daemon.post(f"/v1/archives/{archive}/restore", {}), 409, "conflict", "again")
    # A second one, by the command line; the archive stays as it is.
    assert ok(daemon, "restore", archive, "--name", "twin").stdout == "twin\n"
    assert sh(daemon, "twin", STATE).stdout == before
    assert json_of(daemon("restore", archive, "--name", "third", "-o", "json"))["name"] == "third"
    assert daemon("restore", archive).returncode == 125
    ok(daemon, "rm", "again", "twin", "third")
    assert eventually(lambda: layers(daemon) == [])


def test_only_what_is_an_archive_is_restored(daemon):
    problem(daemon.post("/v1/archives/gone-20261116T095152.123Z.tar.zst/restore", {}), 404, "not_found", "gone-2026")
    problem(daemon.post("/v1/archives/..%2f..%2fcarrel.db/restore", {}), 400, "invalid")
    problem(daemon.post("/v1/archives/gone-20261116T095152.123Z.tar.zst/restore", {"name": "Not One"}), 400, "invalid")


@pytest.fixture(scope="module")
def record(daemon):
    """carrel.json of a workspace."""
    ok(daemon, "create", "model")
    path = blobs(daemon) / archived(daemon, "model")
    plain = subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        return json.load(tar.extractfile("carrel.json"))


def entry(name, kind=tarfile.REGTYPE, data=b"", **members):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, len(data), members.pop("mode", 0o644)
    for member, value in members.items():
        setattr(info, member, value)
    return info, data


def packed(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return subprocess.run(["zstd", "-qc"], input=out.getvalue(), stdout=subprocess.PIPE, check=True).stdout


def put(daemon, name, entries, damage=lambda data: data):
    data = packed(entries)
    archive = f"{name}-20261116T095152.123Z.tar.zst"
    (blobs(daemon) / archive).write_bytes(damage(data))
    (blobs(daemon) / archive).chmod(0o644)
    return archive


def json_entry(name, value):
    return entry(name, data=json.dumps(value).encode())


FILE = entry("workspace/f", data=b"fine")
LINK = entry("workspace/l", tarfile.SYMTYPE, linkname="/etc")
HOSTILE = [
    (entry("/workspace/x"), "/workspace/x"),
    (entry("workspace/../../x"), "workspace/../../x"),
    (entry("workspace/l/x"), "workspace/l/x"),
    (entry("workspace/h", tarfile.LNKTYPE, linkname="../../../etc/passwd"), "workspace/h"),
    (entry("workspace/h", tarfile.LNKTYPE, linkname="workspace/l"), "workspace/h"),
    (entry("workspace/dev", tarfile.CHRTYPE, devmajor=1, devminor=3), "workspace/dev"),
    (entry("workspace/su", mode=0o4755), "workspace/su"),
    (entry("workspace/x", pax_headers={"SCHILY.xattr.user.overlay.redirect": "/etc"}), "user.overlay.redirect"),
    (entry("content-id", data=b"x"), "content-id"),
    (entry(".from", tarfile.SYMTYPE, linkname="x"), ".from"),
    (entry("env", tarfile.SYMTYPE, linkname="/"), "env"),
    (json_entry("carrel-marks.json", {"whiteouts": ["workspace/l/x"]}), "workspace/l"),
    (json_entry("carrel-marks.json", {"modes": [["workspace/f", 0o4755]]}), "workspace/f"),
    (entry("carrel-marks.json", tarfile.SYMTYPE, linkname="workspace/f"), "marks"),
    (entry("carrel.json", tarfile.SYMTYPE, linkname="workspace/f"), "carrel.json"),
]


@pytest.mark.parametrize("bad, named", HOSTILE, ids=lambda value: value if isinstance(value, str) else "")
def test_a_hostile_archive_is_refused(daemon, record, bad, named):
    before = layers(daemon)
    archive = put(daemon, "hostile", [json_entry("carrel.json", record), entry("workspace", tarfile.DIRTYPE, mode=0o755), FILE, LINK, bad])
    answer = daemon.post(f"/v1/archives/{archive}/restore", {})
    assert answer.status in (400, 403, 422), answer
    assert named in answer.json()["detail"] and archive in answer.json()["detail"]
    assert daemon.get("/v1/workspaces/hostile").status == 404
    assert eventually(lambda: set(layers(daemon)) <= set(before))


@pytest.mark.parametrize("change", [
    {"build_options": ["--index-url=http://evil"]}, {"env": [["A=B", "x"]]}, {"more": 1}, {"limits": None}, {"labels": [["/", "x"]]},
    {"template": "../x"}, {"ttl_ms": 1 << 62}, {"settings": "{}x"}, {"template_sources": '{"web_access": 1}'}], ids=lambda value: next(iter(value)))
def test_a_forged_record_is_refused(daemon, record, change):
    before = layers(daemon)
    forged = dict(record, workspace=dict(record["workspace"], **change))
    answer = daemon.post(f"/v1/archives/{put(daemon, 'forged', [json_entry('carrel.json', forged), FILE])}/restore", {})
    assert answer.status in (400, 403), answer
    assert daemon.get("/v1/workspaces/forged").status == 404
    assert eventually(lambda: set(layers(daemon)) <= set(before))


def test_a_policy_is_restored_but_not_what_reviewers_allowed(daemon, record):
    settings = {"permissions": {"allow": ["shell(cat:*)"], "deny": ["shell(uname:*)"]}}
    own = dict(record["workspace"], template_settings=json.dumps(settings), rules=["shell(*)"])
    done = ok(daemon, "restore", put(daemon, "judged", [json_entry("carrel.json", dict(record, workspace=own)), FILE]))
    assert "rules that reviewers had added are not restored" in done.stderr
    shown = daemon.get("/v1/workspaces/judged").json()
    assert shown["template_settings"] == settings and "rules" not in shown
    assert daemon.post("/v1/workspaces/judged/exec", {"argv": ["uname"]}).status == 403
    ok(daemon, "rm", "judged")


def test_what_belongs_to_the_host_is_not_restored(daemon, record):
    own = dict(record["workspace"], mounts=["/etc:/data"], attach=["shared:/shared"], layers=["snap-00000000000000000000000000"], snapshot="x")
    archive = put(daemon, "visitor", [json_entry("carrel.json", dict(record, workspace=own)), FILE])
    done = ok(daemon, "restore", archive)
    assert "/etc:/data" in done.stderr and "shared:/shared" in done.stderr
    shown = daemon.get("/v1/workspaces/visitor").json()
    assert len(shown["warnings"]) == 2 and "mounts" not in shown and "attach" not in shown and shown["snapshot"] is None
    assert sh(daemon, "visitor", "cat f; ls /data").stdout == "fine"
    ok(daemon, "rm", "visitor")


def test_a_damaged_archive_is_refused(daemon, record):
    entries = [json_entry("carrel.json", record), entry("workspace/big", data=os.urandom(3 << 20))]
    before = layers(daemon)
    for damage in (lambda data: data[:-2], lambda data: data[:len(data) // 2], lambda data: data[:-1] + bytes([data[-1] ^ 1]),
                   lambda data: data[:1000000] + bytes([data[1000000] ^ 1]) + data[1000001:], lambda data: b"", lambda data: b"no archive"):
        answer = daemon.post(f"/v1/archives/{put(daemon, 'damaged', entries, damage)}/restore", {})
        assert answer.status >= 400 and "damaged-" in answer.json()["detail"], answer
        assert daemon.get("/v1/workspaces/damaged").status == 404
    assert eventually(lambda: set(layers(daemon)) <= set(before))


def test_an_archive_that_unpacks_to_much_more_can_be_restored(daemon):
    ok(daemon, "create", "yes")
    sh(daemon, "yes", "yes | head -c 100000000 >yes; sha256sum yes >sum")
    archive = archived(daemon, "yes")
    ok(daemon, "restore", archive)
    assert sh(daemon, "yes", "sha256sum -c sum").returncode == 0
    ok(daemon, "rm", "yes")


# ---- from a file ----

def test_a_file_is_restored_as_an_archive_of_the_store_is(daemon, tmp_path):
    ok(daemon, "create", "copied", "--label", "team=red")
    sh(daemon, "copied", "echo hello >a")
    archive = archived(daemon, "copied")
    stored = blobs(daemon) / archive
    beside = blobs(daemon) / f"{archive}.sha256"
    checked = subprocess.run(["sha256sum", "-c", beside.name], cwd=blobs(daemon), capture_output=True, text=True)
    assert checked.stdout == f"{archive}: OK\n"
    for name in (stored, beside):
        (tmp_path / name.name).write_bytes(name.read_bytes())
    assert daemon.request("DELETE", f"/v1/archives/{archive}").status == 204 and not beside.exists()
    before = [item["name"] for item in daemon.get("/v1/archives").json()["items"]]
    assert ok(daemon, "restore", tmp_path / archive).stdout == "copied\n"
    assert sh(daemon, "copied", "cat a").stdout == "hello\n"
    assert daemon.get("/v1/workspaces/copied").json()["labels"] == {"team": "red"}
    assert daemon("restore", tmp_path / archive).returncode == 125      # the name is taken
    (tmp_path / archive).rename(tmp_path / "other.tar.zst")
    assert ok(daemon, "restore", tmp_path / "other.tar.zst").stdout == "other\n"
    (tmp_path / "other.tar.zst").rename(tmp_path / "No Name")
    done = daemon("restore", tmp_path / "No Name")
    assert done.returncode == 125 and "--name" in done.stderr
    assert ok(daemon, "restore", tmp_path / "No Name", "--name", "named").stdout == "named\n"
    ok(daemon, "rm", "copied", "other", "named")
    # Damaged: by its SHA-256 beside it, or by its own checks.
    data = bytearray((tmp_path / "No Name").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / archive).write_bytes(data)
    done = daemon("restore", tmp_path / archive)
    assert done.returncode == 125 and "SHA-256" in done.stderr
    (tmp_path / f"{archive}.sha256").unlink()
    for text in (bytes(data), bytes(data[:50]), b"", b"no archive at all"):
        (tmp_path / archive).write_bytes(text)
        assert daemon("restore", tmp_path / archive).returncode == 125
    assert daemon("restore", tmp_path).returncode == 125 and daemon("restore", "./absent.tar.zst").returncode == 125
    assert [item["name"] for item in daemon.get("/v1/archives").json()["items"]] == before
    assert daemon.get("/v1/workspaces/copied").status == 404 and eventually(lambda: layers(daemon) == [])


def test_an_archive_of_the_store_must_have_its_hash(daemon):
    ok(daemon, "create", "summed")
    archive = archived(daemon, "summed")
    beside = blobs(daemon) / f"{archive}.sha256"
    right = beside.read_bytes()
    for wrong in (b"0" * 64 + right[64:], b"", b"x" * 100):
        beside.write_bytes(wrong)
        answer = daemon.post(f"/v1/archives/{archive}/restore", {})
        assert answer.status == 500 and answer.json()["code"] == "corrupt" and "SHA-256" in answer.json()["detail"], answer
    beside.write_bytes(right)
    assert daemon.post(f"/v1/archives/{archive}/restore", {}).status == 201
    ok(daemon, "rm", "summed")
    assert daemon.request("DELETE", f"/v1/archives/{archive}").status == 204


def test_an_upload_is_stored_when_it_is_whole(daemon):
    name = "sent-20261116T095152.123Z.tar.zst"
    path = f"/v1/archives/{name}"
    problem(daemon.request("PUT", f"{path}?sha256={'0' * 64}", b"bytes"), 400, "invalid")
    problem(daemon.request("PUT", f"{path}?sha256=x", b"bytes"), 400, "invalid")
    problem(daemon.request("PUT", "/v1/archives/no-archive", b"bytes"), 400, "invalid")
    problem(daemon.request("PUT", "/v1/archives/..%2fx", b"bytes"), 400, "invalid")
    connection = daemon.connection()
    connection.putrequest("PUT", path)
    connection.putheader("Content-Length", "1000000")
    connection.endheaders(b"half of it")
    connection.close()
    assert name not in [item["name"] for item in daemon.get("/v1/archives").json()["items"]]
    assert daemon.request("PUT", path, b"bytes").status == 201
    assert (blobs(daemon) / name).read_bytes() == b"bytes"
    problem(daemon.request("PUT", path, b"others"), 409, "conflict")
    assert daemon.request("DELETE", path).status == 204


@pytest.mark.once
def test_a_bomb_is_stopped_at_what_its_workspace_could_hold(daemon, record):
    small = json.loads(json.dumps(record))
    small["workspace"]["limits"]["disk_bytes"] = 1 << 20
    bomb = entry("workspace/bomb", data=b"\1" * (64 << 20))
    archive = put(daemon, "bomb", [json_entry("carrel.json", small), entry("workspace", tarfile.DIRTYPE, mode=0o755), bomb])
    answer = daemon.post(f"/v1/archives/{archive}/restore", {})
    assert answer.status in (413, 429, 507) and answer.json()["code"] == "limit", answer
    late = put(daemon, "late", [entry("workspace", tarfile.DIRTYPE, mode=0o755), bomb, json_entry("carrel.json", small)])
    problem(daemon.post(f"/v1/archives/{late}/restore", {}), 400, "invalid", "carrel.json")
    assert eventually(lambda: layers(daemon) == []) and daemon.get("/v1/workspaces/bomb").status == 404
