"""How the tests of environments call carrel: what is built, what is run in it, what its home holds."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import stat
import subprocess

from harness import PATH, TEST_MOUNT, Carrel

CODES = {"not_found", "version_not_found", "conflict", "hash_mismatch", "network", "timeout", "disk_full", "invalid",
         "denied", "failed", "canceled"}
FIELDS = {"name", "package_id", "path", "state", "requirements_sha256", "created_at", "last_used_at", "use_count", "size_bytes",
          "kind", "python_version", "python", "installed_packages", "layers", "editables", "indexes", "build_seconds", "in_use"}


class Envs(Carrel):
    """Carrel with a home that holds environments, and an index to build them from."""

    def __init__(self, home, tools, index=None):
        super().__init__(home)
        self.env["PATH"] = f"{tools}:{PATH}" if tools else PATH
        self.index = index
        self.store = pathlib.Path(self.env["CARREL_HOME"])

    def with_index(self, args):
        return ["--index", self.index.url, *args] if self.index and "--index" not in args else list(args)

    def try_build(self, package_id, *args, timeout=180, **how):
        return self("env", "build", package_id, *self.with_index(args), timeout=timeout, **how)

    def build(self, package_id, *args, timeout=180, **how):
        """Builds (or finds) an environment; the JSON object that describes it."""
        done = self.try_build(package_id, "-o", "json", *args, timeout=timeout, **how)
        assert done.returncode == 0, (done.stdout, done.stderr)
        found = json.loads(done.stdout)
        assert found.keys() == FIELDS | {"cached", "built"}, found.keys() ^ FIELDS
        assert (found["package_id"], found["state"]) == (package_id, "ready"), found
        return found

    def fails(self, package_id, *args, code, package=None, says=(), hint=True, timeout=180, env=None):
        """A build that fails with that code, in both forms, and leaves no environment. The error object."""
        before = self.names()
        codes = {code} if isinstance(code, str) else set(code)
        assert codes <= CODES
        done = self.try_build(package_id, "-o", "json", *args, timeout=timeout, env=env or {})
        assert done.returncode == 125, (done.returncode, done.stdout, done.stderr)
        error = json.loads(done.stdout)["error"]
        assert error.keys() == {"code", "message", "hint", "package"}, error
        assert error["code"] in codes, error
        assert "\n" not in error["message"]
        if package:
            assert package in error["message"] and (error["package"] or "").startswith(package), error
        for word in says:
            assert word in error["message"], (word, error)
        assert error["hint"] or not hint, error
        assert self.names() == before
        self.left_nothing()
        return error

    def fails_in_time(self, package_id, *args, seconds, code, **how):
        """As fails(), of one that tries again and again until its time is over. Where that was too little for a single
        try it gets more."""
        codes = {code} if isinstance(code, str) else set(code)
        for limit in (seconds, 4 * seconds, 16 * seconds):
            known = len(self.events())
            error = self.fails(package_id, "--timeout", str(limit), *args, code=codes | {"timeout"}, **how)
            if error["code"] in codes:
                return error
            assert "retrying" not in [event["event"] for event in self.events()[known:]], error
        raise AssertionError(error)

    def json(self, *args, code=0, timeout=120, **how):
        done = self("env", args[0], "-o", "json", *args[1:], timeout=timeout, **how)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def ls(self):
        return self.json("ls")

    def names(self):
        return [row["name"] for row in self.ls()]

    def show(self, name):
        return self.json("show", name)

    def inside(self, name, *command, options=(), timeout=120, code=0, **how):
        """Runs a command in the environment; what it printed."""
        done = self.run("--env", name, *options, "--", *command, timeout=timeout, **how)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout

    def python(self, name, script, **how):
        return self.inside(name, "python", "-c", script, **how)

    def log(self, name):
        done = self("env", "show", "--log", name)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def events(self):
        """The records that are kept."""
        path = self.store / "audit/envs.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def configure(self, text):
        path = self.store / "config.yaml"
        path.write_text(text)
        path.chmod(0o644)

    def requirements(self, text, name="requirements.txt"):
        path = self.home / name
        path.write_text(text)
        return path

    def layer(self, name, package):
        """The tree of the layer that holds a package in an environment."""
        for layer in self.show(name)["layers"]:
            manifest = (self.store / "layers" / layer / "manifest").read_text().splitlines()
            if f"name {package}" in manifest:
                return self.store / "layers" / layer / "tree"
        raise AssertionError(f"no layer of {name} holds {package}")

    def layer_ids(self):
        return {path.name for path in (self.store / "layers").iterdir() if not path.name.startswith(".")}

    def left_nothing(self):
        """No stage and nothing half-made is there (what carrel keeps on purpose is: logs, locks)."""
        left = [path for path in half_made(self.store)]
        assert not left, f"left behind: {left}"


def half_made(store):
    """Paths in a home that belong to a build under way, or to one that was killed."""
    for directory, names, _ in os.walk(store):
        where = pathlib.Path(directory)
        if where == store / "layers":
            names[:] = [name for name in names if name.startswith(".")]
        for name in names:
            if name.startswith(".new-") or where.name in ("stage", "stages", ".stage", ".stages"):
                yield where / name


def catches(process, signo):
    """Whether a running process has a handler for it, so that it doesn't just die of it."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        return any(int(line.split()[1], 16) >> (signo - 1) & 1 for line in status.splitlines() if line.startswith("SigCgt"))
    return False


def digest(directory):
    """{path: kind, mode, content} of a tree, read without carrel."""
    found = {}
    for where, names, others in os.walk(directory):
        for name in names + others:
            path = os.path.join(where, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                content = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
            else:
                content = ""
            found[os.path.relpath(path, directory)] = (oct(status.st_mode), status.st_size if content else 0, content)
    return found


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def reset_home(source, target):
    """Makes a home again what it was when it was copied, by what is there too much or missing: layers don't change."""
    for entry in target.parent.iterdir():
        if entry != target:
            remove(entry)
    for entry in target.iterdir():
        if entry.name not in ("layers", "pythons", "run"):
            remove(entry)
    for place in ("layers", "layers/.keys"):
        for entry in (target / place).iterdir():
            if not os.path.lexists(source / place / entry.name):
                remove(entry)
        for entry in (source / place).iterdir():
            if not os.path.lexists(target / place / entry.name):
                subprocess.run(["cp", "-a", entry, target / place], check=True)
    for entry in source.iterdir():
        if not (target / entry.name).exists() and entry.name not in ("tools", "run", "audit"):
            subprocess.run(["cp", "-a", entry, target], check=True)


@contextlib.contextmanager
def mounted(directory, *options):
    subprocess.run(["mount", *options, directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", directory], check=True)


@contextlib.contextmanager
def small_disk(env, size):
    """The home, on a file system of its own that is so large."""
    copy = env.store.with_name("copy")
    env.store.rename(copy)
    env.store.mkdir()
    try:
        with mounted(env.store, "-t", "tmpfs", "-o", f"size={size}", TEST_MOUNT):
            subprocess.run(["cp", "-a", f"{copy}/.", env.store], check=True)
            yield
    finally:
        env.store.rmdir()
        copy.rename(env.store)


def other_pythons():
    """{minor: path} of Pythons besides the default that this user may run."""
    found = {}
    places = [pathlib.Path("/usr/bin"), pathlib.Path("/usr/local/bin"), *pathlib.Path("/opt").glob("*/bin")]
    roots = [pathlib.Path(os.environ.get("PYENV_ROOT", "/root/.pyenv")) / "versions",
             pathlib.Path("/root/.local/share/uv/python")]
    for root in roots:
        with contextlib.suppress(OSError):
            places += sorted(root.glob("*/bin"))
    default = os.path.realpath("/usr/bin/python3")
    for place in places:
        for minor in range(8, 15):
            path = place / f"python3.{minor}"
            with contextlib.suppress(OSError):
                if os.access(path, os.X_OK) and os.path.realpath(path) != default:
                    found.setdefault(f"3.{minor}", path)
    return found
