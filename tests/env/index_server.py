"""A package index on 127.0.0.1 (PEP 503 and 691, metadata of PEP 658), for tests and benchmarks: it has what it is
given, notes what it is asked, and misbehaves on demand.

    with Index() as index:
        index.add(wheel("one"), wheel("two", requires=["one"]))
        index.misbehave("/files/one", "500", times=2)
        ... --index index.url

By hand: python3 index_server.py DIRECTORY serves the wheels and source archives of a directory until it is ended."""
import base64
import contextlib
import hashlib
import html
import json
import pathlib
import re
import socket
import sys
import threading
import time

from http_server import Handler, Site

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
KINDS = ("500", "503", "404", "half", "hang", "slow", "reset", "wrong_hash", "garbage", "held")


def normalize(name):
    return re.sub(r"[-_.]+", "-", name).lower()


class IndexHandler(Handler):
    def do_GET(self):
        index = self.server.site
        path = self.path.partition("?")[0].partition("#")[0]
        index.requests.append(path)
        if not index.admits(self):
            self.answer(401, "text/plain", b"who are you?\n")
            return
        kind = index.take_fault(path)
        if kind == "hang":
            self.close_connection = True
            index.ended.wait(120)
            return
        if kind == "held" and not path.endswith(".metadata"):
            index.freed.wait(120)
        if kind == "reset":
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()
            self.rfile = self.wfile = open("/dev/null", "r+b")
            return
        if kind and kind.startswith("http"):
            self.send(302, "text/plain", 0, Location=kind + path)
            return
        if kind in ("500", "503", "404"):
            self.answer(int(kind), "text/plain", b"as the test wants it\n")
            return
        found = index.find(path, JSON_TYPE in self.headers.get("Accept", ""), kind == "wrong_hash")
        if not found:
            self.answer(404, "text/plain", b"not here\n")
        elif kind == "garbage":
            self.answer(200, found[0], b"\0\xff garbage " * 20)
        else:
            self.answer(200, *found, kind=kind)

    def answer(self, status, mime, body, kind=None):
        first, last = 0, len(body)
        ranged = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")) if status == 200 else None
        if ranged and any(ranged.groups()):
            start, end = ranged.groups()
            first = int(start) if start else max(last - int(end), 0)
            last = min(int(end) + 1, last) if start and end else last
            status = 206
        ranges = {"Content_Range": f"bytes {first}-{last - 1}/{len(body)}"} if status == 206 else {}
        if not self.send(status, mime, last - first, Accept_Ranges="bytes", **ranges):
            return
        part = body[first:last]
        with contextlib.suppress(OSError):
            if kind == "half":
                self.wfile.write(part[:len(part) // 2])
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            elif kind == "slow":
                for at in range(0, len(part), 512):
                    self.wfile.write(part[at:at + 512])
                    self.wfile.flush()
                    if self.server.site.ended.wait(0.05):
                        return
            else:
                self.wfile.write(part)


class Index(Site):
    """Files by normalised name of their package. Every method may be called while it serves."""

    def __init__(self, files_url=None):
        super().__init__(IndexHandler)
        self.files = {}         # {name: {filename: (Dist, what the page says as its sha256)}}
        self.faults = []        # [prefix of a path, kind, how often still]
        self.uploaded = None            # when, as pages say it of every file
        self.files_url = files_url      # where pages send downloads, when that isn't here
        self.ended = threading.Event()
        self.freed = threading.Event()  # what is held goes on
        self.url = f"http://{self.host}/simple"

    def __exit__(self, *_):
        self.ended.set()
        self.freed.set()
        super().__exit__()

    def add(self, *dists, said_sha256=None):
        """Adds files; `said_sha256` is what pages say instead of the true hash."""
        for dist in dists:
            self.files.setdefault(normalize(dist.name), {})[dist.filename] = (dist, said_sha256 or dist.sha256)
        return dists[0] if len(dists) == 1 else dists

    def wants(self, user, password):
        """From now on 401 for anybody else."""
        self.door = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def remove(self, name):
        self.files.pop(normalize(name), None)

    def misbehave(self, prefix, kind, times=None):
        """Requests whose path begins so get that answer; so often, else always."""
        assert kind in KINDS or kind.startswith("http"), kind     # an address: redirected there
        self.faults.append([prefix, kind, times])

    def behave(self):
        self.faults.clear()

    def take_fault(self, path):
        for fault in list(self.faults):
            if path.startswith(fault[0]) and fault[2] != 0:
                if fault[2] is not None:
                    fault[2] -= 1
                return fault[1]
        return None

    def asked_for(self, name):
        """How often a file of this package was asked for (pages and metadata don't count)."""
        return sum(path.startswith(f"/files/{normalize(name)}/") and not path.endswith(".metadata")
                   for path in list(self.requests))

    def find(self, path, as_json, wrong_hash):
        """(content type, body) of a path, or None."""
        parts = path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2:
            return self.page(parts[1], as_json, wrong_hash)
        if parts[0] == "files" and len(parts) == 3:
            filename = parts[2].removesuffix(".metadata")
            dist, _ = self.files.get(parts[1], {}).get(filename, (None, None))
            if dist and filename == parts[2]:
                return "application/octet-stream", dist.data
            if dist and dist.metadata:
                return "text/plain", dist.metadata
        return None

    def page(self, name, as_json, wrong_hash):
        name = normalize(name)
        if name not in self.files:
            return None
        rows = []
        for filename, (dist, sha256) in self.files[name].items():
            url = f"{self.files_url or f'http://{self.host}'}/files/{name}/{filename}"
            metadata = dist.metadata and hashlib.sha256(dist.metadata).hexdigest()
            rows.append((filename, url, "0" * 64 if wrong_hash else sha256, metadata))
        if as_json:
            files = [{"filename": filename, "url": url, "hashes": {"sha256": sha256}, "size": len(self.files[name][filename][0].data),
                      **({"upload-time": self.uploaded} if self.uploaded else {}),
                      **({"core-metadata": {"sha256": metadata}} if metadata else {})} for filename, url, sha256, metadata in rows]
            return JSON_TYPE, json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": files,
                                          "versions": sorted({dist.version for dist, _ in self.files[name].values()})}).encode()
        lines = [f'<a href="{html.escape(url)}#sha256={sha256}"' + (f' data-core-metadata="sha256={metadata}"' if metadata else "") +
                 f">{html.escape(filename)}</a><br>" for filename, url, sha256, metadata in rows]
        return "text/html", ("<!DOCTYPE html><html><body>\n" + "\n".join(lines) + "\n</body></html>\n").encode()


@contextlib.contextmanager
def refusing_port():
    """A port of 127.0.0.1 that refuses connections for as long: bound, not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@contextlib.contextmanager
def listening_port():
    """A port that accepts, and the list of what connected to it."""
    connections, ended = [], threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)

        def serve():
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    connection, address = server.accept()
                    connections.append(address)
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1], connections
        finally:
            ended.set()
            thread.join()


def main():
    from wheels import Dist
    with Index() as index:
        for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
            if path.name.endswith((".whl", ".tar.gz")):
                name, version = path.name.removesuffix(".tar.gz").split("-")[:2]
                index.add(Dist(name, version, path.name, path.read_bytes()))
        print(index.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    main()
