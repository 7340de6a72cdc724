"""carrel-blob, the process that reaches the blob store, with a real S3 server and with one that misbehaves."""
# security: daemon
import contextlib
import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import tempfile
import threading

import pytest

import s3
from harness import eventually

PART = 16 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = s3.Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def proxy(server):
    proxy = s3.Proxy(server)
    yield proxy
    proxy.stop()


@pytest.fixture
def env(proxy, request):
    return s3.settings(proxy.url, prefix="/" + re.sub("[^A-Za-z0-9]", "-", request.node.name))


@pytest.fixture
def file(tmp_path):
    def make(data, name="data"):
        (tmp_path / name).write_bytes(data)
        return open(tmp_path / name, "rb+")
    tmp_path.chmod(0o755)
    return make


def get(env, file, key, *words):
    with file(b"", "got") as got:
        answer = s3.blob(env, "get", key, *words, data=got)
        got.seek(0)
        return answer, got.read()


def keys(env, prefix=""):
    return [item["key"] for item in s3.blob(env, "list", prefix)["items"]]


def test_an_object_comes_back_whole_and_in_ranges(env, file):
    data = os.urandom(100_000)
    put = s3.blob(env, "put", "archives/a+b@c=d.tar.zst", data=file(data))
    answer, got = get(env, file, "archives/a+b@c=d.tar.zst", f"sha256={put['sha256']}")
    assert got == data and answer["size"] == len(data)
    assert get(env, file, "archives/a+b@c=d.tar.zst", "offset=1000", "len=10")[1] == data[1000:1010]
    assert get(env, file, "archives/a+b@c=d.tar.zst", "offset=99990")[1] == data[99990:]
    assert get(env, file, "archives/a+b@c=d.tar.zst", "offset=200000")[1] == b""
    assert s3.blob(env, "head", "archives/a+b@c=d.tar.zst")["size"] == len(data)
    assert keys(env, "archives/") == ["archives/a+b@c=d.tar.zst"] and keys(env, "other/") == []
    assert s3.blob(env, "delete", "archives/a+b@c=d.tar.zst") == {}
    assert s3.blob(env, "delete", "archives/a+b@c=d.tar.zst") == {}
    assert s3.blob(env, "head", "archives/a+b@c=d.tar.zst")["error"]["code"] == "not_found"
    assert get(env, file, "archives/a+b@c=d.tar.zst")[0]["error"]["code"] == "not_found"


@pytest.mark.parametrize("size", [0, PART, 2 * PART + 5])
def test_parts_make_one_object(env, file, size):
    data = os.urandom(1 << 20) * (size >> 20) + b"x" * (size & 0xfffff)
    put = s3.blob(env, "put", "big", f"size={len(data)}", data=file(data))
    assert put["size"] == len(data)
    assert get(env, file, "big", f"sha256={put['sha256']}")[1] == data
    assert s3.blob(env, "put", "big", "new", data=file(data))["error"]["code"] == "conflict"


def test_what_is_not_expected_is_not_stored(env, file, server):
    wrong = "0" * 64
    assert s3.blob(env, "put", "small", f"sha256={wrong}", data=file(b"abc"))["error"]["code"] == "corrupt"
    assert s3.blob(env, "put", "short", "size=4", data=file(b"abc"))["error"]["code"] == "corrupt"
    assert s3.blob(env, "put", "large", f"sha256={wrong}", data=file(bytes(PART + 1)))["error"]["code"] == "corrupt"
    assert keys(env) == [] and server.pending() == []


@pytest.mark.once
@pytest.mark.shipped
def test_many_objects_are_listed_in_pages(env, server, request):
    directory = server.objects / env["blob_url"].rsplit("/", 1)[1] / "archives"
    directory.mkdir(parents=True)
    for i in range(1100):
        (directory / f"{i:04}").write_bytes(b"x")
    (directory / "not a key").write_bytes(b"x")
    assert keys(env, "archives/") == [f"archives/{i:04}" for i in range(1100)]


@pytest.mark.parametrize("status, code", [(403, "denied"), (404, "not_found"), (400, "failed"), (301, "invalid")])
def test_a_refusal_is_final_and_named(env, file, proxy, status, code):
    with proxy.misbehaving(lambda method, path, count: status):
        error = s3.blob(env, "put", "a", data=file(b"abc"))["error"]
        assert error["code"] == code and str(status) in error["message"] and len(proxy.seen) == 1
        assert get(env, file, "a")[0]["error"]["code"] == code


@pytest.mark.once
@pytest.mark.shipped
@pytest.mark.parametrize("fault", [500, 429, "drop", "stall", "lost"])
def test_a_fault_that_passes_is_retried(env, file, proxy, fault):
    data = os.urandom(1000)
    if fault == "stall":
        env["blob_timeout_ms"] = 2000
    with proxy.misbehaving(lambda method, path, count: fault if count == 1 else None):
        assert s3.blob(env, "put", "a", "new", data=file(data))["size"] == 1000
    with proxy.misbehaving(lambda method, path, count: fault if count == 1 else None):
        assert get(env, file, "a")[1] == data
        assert [method for method, _ in proxy.seen] == ["GET", "GET"]


@pytest.mark.once
@pytest.mark.shipped
def test_a_server_that_never_recovers_is_given_up(env, file, proxy):
    with proxy.misbehaving(lambda method, path, count: 500):
        error = s3.blob(env, "put", "a", data=file(b"abc"))["error"]
        assert error["code"] == "unavailable" and "status 500" in error["message"] and len(proxy.seen) == 6
    assert keys(env) == []


@pytest.mark.once
@pytest.mark.shipped
def test_a_server_that_is_not_there_is_named(env, file):
    with socket.socket() as deaf:       # has a port, at which it doesn't listen
        deaf.bind(("127.0.0.1", 0))
        error = s3.blob({**env, "blob_endpoint": f"http://127.0.0.1:{deaf.getsockname()[1]}"}, "head", "a")["error"]
    assert error["code"] == "unavailable" and "127.0.0.1" in error["message"] and "blob.endpoint" in error["hint"]


def test_half_an_answer_is_completed(env, file, proxy):
    data = os.urandom(200_000)
    s3.blob(env, "put", "a", data=file(data))
    with proxy.misbehaving(lambda method, path, count: "half" if count <= 3 else None):
        answer, got = get(env, file, "a")
        assert got == data and answer["size"] == len(data) and len(proxy.seen) == 4


def test_a_damaged_download_is_noticed(env, file, proxy):
    put = s3.blob(env, "put", "a", data=file(os.urandom(1000)))
    with proxy.misbehaving(lambda method, path, count: "flip"):
        assert get(env, file, "a", f"sha256={put['sha256']}")[0]["error"]["code"] == "corrupt"


class Endless(http.server.BaseHTTPRequestHandler):
    """Lists that always have another page, and objects without an end."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.send_response(200)
        if "list-type" in self.path:
            text = b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>"
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b"10000\r\n" + b"\0" * 65536 + b"\r\n")
        self.close_connection = True


@pytest.mark.once
def test_answers_without_an_end_are_given_up(env, file):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            env = {**env, "blob_endpoint": f"http://127.0.0.1:{server.server_port}"}
            assert s3.blob(env, "list", "archives/")["error"]["code"] == "limit"
            answer, got = get(env, file, "archives/a")
            assert answer["error"]["code"] == "corrupt" and got == b"", answer
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.once
@pytest.mark.shipped
@pytest.mark.parametrize("step, fault", [("uploads", 403), ("partNumber=2", 403), ("partNumber=2", 500), ("complete", 403), ("complete", "lost")])
def test_an_upload_that_fails_half_way_leaves_nothing(env, file, proxy, server, step, fault):
    def rule(method, path, count):
        is_complete = method == "POST" and "uploadId=" in path
        return fault if (step in path if step != "complete" else is_complete) and method != "DELETE" else None

    before = len(server.pending())
    with proxy.misbehaving(rule):
        answer = s3.blob(env, "put", "a", data=file(bytes(2 * PART + 1)))
    if fault == "lost":     # carried out, and never answered: an error, or the object that is there
        assert "size" in answer or answer["error"]["code"] == "unavailable"
        return
    assert answer["error"]["code"] in ("denied", "unavailable")
    assert keys(env) == []
    if step != "uploads":       # a beginning whose answer is lost has an id that nobody knows
        assert len(server.pending()) == before


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["blob_s3_put:1", "blob_s3_part:2", "blob_s3_complete:1"])
def test_a_killed_upload_shows_nothing(env, file, point):
    data = bytes(1000 if "put" in point else 2 * PART)
    process = s3.start_blob({**env, "CARREL_FAULT": point}, "put", "a", data=file(data))
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert keys(env) == []
    assert s3.blob(env, "put", "a", "new", data=file(data))["size"] == len(data)


def test_credentials_are_needed(env, file):
    none = {name: value for name, value in env.items() if not name.startswith("AWS_")}
    error = s3.blob(none, "head", "a")["error"]
    assert error["code"] == "denied" and "AWS_ACCESS_KEY_ID" in error["hint"]
    assert s3.blob({**env, "AWS_SECRET_ACCESS_KEY": "another"}, "list", "")["error"]["code"] == "denied"


@pytest.mark.parametrize("words", [["put", "../a"], ["put", "a", "x=1"], ["get", "a", "new"], ["take", "a"], ["put"], ["head", ".new/x"]])
def test_invalid_operations_are_refused(env, words):
    assert s3.blob(env, *words)["error"]["code"] == "invalid"


@pytest.fixture
def directory():
    """One that carrel-blob can reach: the directories of pytest are root's alone."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="carrel-blobs.", dir="/var/tmp"))
    if os.getuid() == 0:
        os.chown(path, s3.NOBODY, s3.NOBODY)
    yield path
    shutil.rmtree(path)


def test_a_directory_is_a_store_too(directory, file):
    env = {"blob_url": f"dir:{directory}"}
    put = s3.blob(env, "put", "archives/a", "new", data=file(b"hello"))
    assert (directory / "archives/a").read_bytes() == b"hello" and keys(env) == ["archives/a"]
    assert get(env, file, "archives/a", f"sha256={put['sha256']}")[1] == b"hello"
    assert s3.blob(env, "put", "archives/a", "new", data=file(b"x"))["error"]["code"] == "conflict"
    (directory / "archives/a").write_bytes(b"hallo")
    assert get(env, file, "archives/a", f"sha256={put['sha256']}")[0]["error"]["code"] == "corrupt"


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["blob_written:1", "blob_publish:1", "blob_write:1:ENOSPC", "blob_sync:1:EIO"])
def test_a_put_into_a_directory_that_fails_leaves_what_was_there(directory, file, point):
    env = {"blob_url": f"dir:{directory}"}
    s3.blob(env, "put", "a", data=file(b"before"))
    process = s3.start_blob({**env, "CARREL_FAULT": point}, "put", "a", data=file(b"after"))
    process.communicate()
    assert process.returncode != 0 and (directory / "a").read_bytes() == b"before"
    s3.blob(env, "put", "b", data=file(b"next"))
    assert eventually(lambda: not list((directory / ".new").iterdir()))
