"""Carrel with a registry of Node packages, for tests."""
import hashlib
import json
import os
import subprocess
import tempfile

from envs import CODES, Envs
from harness import PATH


class Nodes(Envs):
    def __init__(self, home, registry):
        super().__init__(home, None)
        self.registry = registry
        self.env["npm_config_registry"] = registry.url

    def build(self, package_id, *args, timeout=180, **how):
        done = self("env", "build", package_id, "-o", "json", *args, timeout=timeout, **how)
        assert done.returncode == 0, (done.stdout, done.stderr)
        found = json.loads(done.stdout)
        assert (found["kind"], found["state"], found["python_version"]) == ("node", "ready", None), found
        return found

    def build_log(self, package_id, *args):
        return self.log(self.build(package_id, *args)["name"])

    def refuses(self, *args, code, says=(), package=None, **how):
        codes = {code} if isinstance(code, str) else set(code)
        assert codes <= CODES
        before = self.names()
        done = self("env", "build", "bad", "-o", "json", *args, timeout=120, **how)
        assert done.returncode == 125, (done.returncode, done.stdout, done.stderr)
        error = json.loads(done.stdout)["error"]
        assert error["code"] in codes and error["hint"], error
        for word in says:
            assert word in error["message"], error
        if package:
            assert error["package"] == package and package in error["message"], error
        assert self.names() == before
        self.left_nothing()
        return error

    def node(self, *args, script, code=0, **how):
        done = self.run(*args, "--", "node", "-e", script, timeout=120, **how)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout


def configured_registry():
    with tempfile.TemporaryDirectory() as home:     # npm writes logs there
        return subprocess.run(["npm", "config", "get", "registry"], env={"PATH": PATH, "HOME": home}, check=True,
                              capture_output=True, text=True).stdout.strip()


def replant(store, name, layer, files):
    """Makes the layer of an environment anew with these files ({path: text}) in it, whole by its manifest, as an older program
    could have made it. Returns its id."""
    at = store / "layers" / layer
    head, entries = at.joinpath("manifest").read_text().splitlines()[:4], {}
    for line in at.joinpath("manifest").read_text().splitlines()[4:]:
        entries[line.split(" ")[-1]] = line
    for path, text in files.items():
        (at / "tree" / path).unlink(missing_ok=True)
        (at / "tree" / path).write_text(text)
        (at / "tree" / path).chmod(0o644)
        os.chown(at / "tree" / path, at.stat().st_uid, at.stat().st_gid)
        entries[path] = f"f 644 {len(text)} {hashlib.sha256(text.encode()).hexdigest()} {path}"
    for path in [at / "tree", *(at / "tree").rglob("*")]:
        os.utime(path, (1000000000, 1000000000), follow_symlinks=False)
    manifest = "\n".join([*head, *(entries[path] for path in sorted(entries, key=str.encode))]) + "\n"
    at.joinpath("manifest").write_text(manifest)
    made = hashlib.sha256(manifest.encode()).hexdigest()
    at.rename(store / "layers" / made)
    for key in (store / "layers/.keys").iterdir():
        if os.readlink(key) == layer:
            key.unlink()
            key.symlink_to(made)
    meta = store / "envs" / name / "meta.json"
    meta.write_text(meta.read_text().replace(layer, made))
    return made
