"""An npm registry on 127.0.0.1, for tests: it has the packages it is given, notes what it is asked, and lies on demand.

    with Registry() as registry:
        registry.add("one", "1.0.0", {"index.js": "module.exports = 1"}, dependencies={"two": "^1"})
        ... npm_config_registry=registry.url

Programs (bun, node, npm, pnpm, yarn) are passed on from the registry that this host is configured for, and kept in a directory."""
import base64
import hashlib
import io
import json
import pathlib
import tarfile
import threading
import urllib.parse
import urllib.request

from http_server import Handler, Site

TOOLS = ("@oven/", "node-linux-", "npm", "pnpm", "yarn")


def integrity(data):
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def tarball(files, links=()):
    """files: {name in the package: text, or (text, mode)}; links: (name, target, hard)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            text, mode = text if isinstance(text, tuple) else (text, 0o644)
            data = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name if name.startswith(("/", "../")) else f"package/{name}")
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
        for name, target, is_hard in links:
            entry = tarfile.TarInfo(f"package/{name}")
            entry.type, entry.linkname = tarfile.LNKTYPE if is_hard else tarfile.SYMTYPE, target
            tar.addfile(entry)
    return out.getvalue()


class RegistryHandler(Handler):
    def do_GET(self):
        registry = self.server.site
        path = urllib.parse.unquote(self.path.partition("?")[0]).strip("/")
        registry.requests.append(path)
        if not registry.admits(self):
            self.answer(401, b"{}")
            return
        body = registry.find(path)
        self.answer(200 if body is not None else 404, body or b'{"error": "Not found"}')

    def do_PUT(self):
        self.server.site.written.append(f"{self.command} {self.path}")
        self.answer(200, b"{}")

    do_POST = do_DELETE = do_PATCH = do_PUT

    def answer(self, status, body):
        if self.send(status, "application/json" if body[:1] == b"{" else "application/octet-stream", len(body)):
            self.wfile.write(body)


class Registry(Site):
    """real: (address, directory): where programs come from, and where they are kept."""

    def __init__(self, real=None):
        super().__init__(RegistryHandler)
        self.packages = {}      # {name: {version: (manifest, tarball)}}
        self.real = real
        self.written = []       # "PUT /path" and the like: no build has a reason to
        self.lock = threading.Lock()
        self.url = f"http://{self.host}/"

    def add(self, name, version, files=None, links=(), said=None, served=None, tarball_url=None, **manifest):
        """said: the integrity that the page has ("": none); served: other bytes than those it was made of."""
        manifest = {"name": name, "version": version, **manifest}
        data = tarball({"package.json": json.dumps(manifest), **(files or {"index.js": f"module.exports = {json.dumps(name)}\n"})}, links)
        file = f"{name.rpartition('/')[2]}-{version}.tgz"
        dist = {"tarball": tarball_url or f"{self.url}{name}/-/{file}", "shasum": hashlib.sha1(data).hexdigest(),
                "integrity": integrity(data) if said is None else said}
        if not dist["integrity"]:
            del dist["integrity"]
        self.packages.setdefault(name, {})[version] = ({**manifest, "dist": dist}, served or data)

    def find(self, path):
        name, _, file = path.partition("/-/")
        if name in self.packages:
            versions = self.packages[name]
            if not file:
                return json.dumps({"name": name, "dist-tags": {"latest": list(versions)[-1]},
                                   "versions": {version: manifest for version, (manifest, _) in versions.items()}}).encode()
            for manifest, data in versions.values():
                if manifest["dist"]["tarball"].endswith("/" + file):
                    return data
        return self.pass_on(path, name, file) if self.real and name.startswith(TOOLS) else None

    def pass_on(self, path, name, file):
        address, directory = self.real
        kept = pathlib.Path(directory) / path.replace("/", "+")
        with self.lock:
            if not kept.exists():
                url = address.rstrip("/") + "/" + urllib.parse.quote(path, safe="@/")
                request = urllib.request.Request(url, headers={"Accept": "application/vnd.npm.install-v1+json"})
                with urllib.request.urlopen(request, timeout=120) as answer:
                    kept.write_bytes(answer.read())
        data = kept.read_bytes()
        return data if file else data.replace(address.rstrip("/").encode() + b"/", self.url.encode())

    def asked_for(self, text):
        return sum(text in path for path in list(self.requests))
