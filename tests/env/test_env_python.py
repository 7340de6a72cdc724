"""A Python that the host lacks is downloaded by uv from the operator's mirror, once, and used like any other."""
import hashlib
import io
import json
import os
import pathlib
import shutil
import sys
import tarfile

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from harness import PATH, copy_home
from wheels import wheel
from workspaces import created

MINOR = "%d.%d" % sys.version_info[:2]
VERSION = f"{MINOR}.99"
SYSTEM = pathlib.Path(f"/usr/bin/python{MINOR}")
LIBRARY = pathlib.Path(f"/usr/lib/python{MINOR}")
OTHER = f"""
import sys
sys.version = sys.version.replace('%d.%d.%d' % sys.version_info[:3], '{VERSION}', 1)
sys.version_info = type('version_info', (tuple,), {{
    'major': {sys.version_info[0]}, 'minor': {sys.version_info[1]}, 'micro': 99, 'releaselevel': 'final', 'serial': 0,
}})(({sys.version_info[0]}, {sys.version_info[1]}, 99, 'final', 0))
"""
pytestmark = pytest.mark.skipif(not SYSTEM.exists() or not (LIBRARY / "os.py").exists(), reason="Python isn't in /usr")


def archive():
    """The system's Python, which says that it is another version."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as tar:
        def put(name, content, mode=0o644):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))

        def link(name, target):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        put(f"python/bin/python{MINOR}", SYSTEM.read_bytes(), 0o755)
        link("python/bin/python3", f"python{MINOR}")
        link("python/bin/python", f"python{MINOR}")
        left_out = {"struct.py", "sitecustomize.py", "test", "idlelib", "tkinter", "lib2to3", "ensurepip", "pydoc_data", "turtledemo", "EXTERNALLY-MANAGED"}
        for file in sorted(path for path in LIBRARY.rglob("*") if path.is_file()):
            name = file.relative_to(LIBRARY)
            if name.parts[0] not in left_out and file.suffix in (".py", ".so"):
                put(f"python/lib/python{MINOR}/{name}", file.read_bytes())
        # With and without site: os and others that are imported first are frozen into the program.
        put(f"python/lib/python{MINOR}/struct.py", (LIBRARY / "struct.py").read_bytes() + OTHER.encode())
        put(f"python/lib/python{MINOR}/sitecustomize.py", b"import struct\n")
    return data.getvalue()


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    """(directory, list of downloads)."""
    directory = tmp_path_factory.mktemp("mirror")
    # Those that pytest made: a build runs as another user.
    for made in (directory, directory.parent, directory.parent.parent):
        made.chmod(0o755)
    data = archive()
    name = f"cpython-{VERSION}+20260101-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz"
    (directory / "20260101").mkdir()
    (directory / "20260101" / name).write_bytes(data)
    key = f"cpython-{VERSION}-linux-x86_64-gnu"
    downloads = {key: {
        "name": "cpython", "arch": {"family": "x86_64", "variant": None}, "os": "linux", "libc": "gnu",
        "major": sys.version_info[0], "minor": sys.version_info[1], "patch": 99, "prerelease": "", "variant": None, "build": "20260101",
        "url": "https://github.com/astral-sh/python-build-standalone/releases/download/20260101/" + name.replace("+", "%2B"),
        "sha256": hashlib.sha256(data).hexdigest()}}
    (directory / "downloads.json").write_text(json.dumps(downloads))
    return directory


def configure(env, mirror):
    env.configure(f"environments:\n  python_mirror: file://{mirror}\n  python_downloads: file://{mirror}/downloads.json\n")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the list names one platform")
@pytest.mark.once
def test_a_python_that_the_host_lacks_comes_from_the_mirror(own_env, index, mirror, tmp_path):
    index.add(wheel("one"))
    error = own_env.fails("app", "--python", VERSION, code="not_found", says=[VERSION])
    assert MINOR in error["hint"]      # what is here
    configure(own_env, mirror)
    made = own_env.build("app", "--python", VERSION, "--pip", "one")
    assert made["python_version"] == VERSION and made["python"].startswith(str(own_env.store / "layers"))
    script = "import one, sys; print(one.VERSION, '%d.%d.%d' % sys.version_info[:3], sys.prefix)"
    assert own_env.python(made["name"], script) == f"1.0 {VERSION} /env\n"
    # Without the mirror, what is here is used.
    own_env.configure("")
    assert own_env.build("other", "--python", VERSION, "--pip", "one")["python_version"] == VERSION
    assert own_env.run("--python", VERSION, "--", "python", "-c", "import sys; print(sys.version_info[2])").stdout == "99\n"
    assert own_env("env", "verify", made["name"]).returncode == 0
    # Its layers name the home: it isn't exported.
    file = tmp_path / "app.tar"
    done = own_env("env", "export", made["name"], "-f", file)
    assert done.returncode == 125 and f"Python {VERSION} that carrel downloaded" in done.stderr and "hint: build it" in done.stderr, done
    assert not list(tmp_path.glob("app.tar*"))
    # It is a layer: damage is named, and repaired from the mirror.
    def tools(name):
        return json.loads((own_env.store / "envs" / name / "meta.json").read_text())["tools"]
    found = tools(made["name"])
    layer = own_env.store / "layers" / found["python"]
    library = layer / f"tree/lib/python{MINOR}"
    (library / "json/__init__.py").chmod(0o644)
    (library / "json/__init__.py").write_text("evil()\n")
    done = own_env("env", "verify", made["name"])
    assert done.returncode == 1 and f"lib/python{MINOR}/json/__init__.py" in done.stdout and "python" in done.stdout, done
    done = own_env("env", "verify", "--repair", made["name"], timeout=120)
    assert done.returncode != 0 and VERSION in done.stderr, done       # nothing says from where
    configure(own_env, mirror)
    done = own_env("env", "verify", "--repair", made["name"], timeout=120)
    assert done.returncode == 0 and layer.exists(), (done.stdout, done.stderr)
    assert own_env.python(made["name"], "import json; " + script) == f"1.0 {VERSION} /env\n"
    # It goes with the last environment that has it, and its name with it; a new one stays an hour.
    link = next((own_env.store / "pythons").glob("cpython-*"))
    assert own_env("env", "prune", "--all").returncode == 0 and layer.exists()
    os.utime(link, (1, 1), follow_symlinks=False)
    assert own_env("env", "prune", "--all").returncode == 0 and not layer.exists() and not os.path.lexists(link)
    assert tools(own_env.build("app", "--python", VERSION, "--pip", "one")["name"]) == found


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the list names one platform")
def test_workspaces_and_templates_with_a_python_that_the_host_lacks(template, mirror):
    directory = new_directory()
    copy_home(template[1], directory / "carrel")
    config = directory / "carrel/config.yaml"
    config.write_text(f"environments:\n  python_mirror: file://{mirror}\n  python_downloads: file://{mirror}/downloads.json\n")
    script = "import sys; print('%d.%d.%d' % sys.version_info[:3], sys.prefix)"
    try:
        with serving(directory, env={"PATH": f"{template[0]}:{PATH}"}) as daemon:
            with created(daemon, "--python", VERSION) as name:
                done = daemon("exec", name, "--", "python", "-c", script)
                assert done.stdout == f"{VERSION} /env\n", done.stderr
                layers = {path.name for path in (directory / "carrel/layers").iterdir()}
            answer = daemon.post("/v1/workspaces", {"python": {"version": VERSION}}, timeout=120)
            assert answer.status == 201, answer
            said = daemon.post(f"/v1/workspaces/{answer.json()['id']}/exec", {"argv": ["python", "-c", script]}).json()
            assert said["stdout"] == f"{VERSION} /env\n", said
            text = f"version: '1.0'\nname: older\npython:\n  version: '{VERSION}'\n"
            assert daemon.post("/v1/templates", {"yaml": text}).status == 201
            with created(daemon, "--template", "older") as name:
                done = daemon("exec", name, "--", "python", "-c", script)
                assert done.stdout == f"{VERSION} /env\n", done.stderr
            left = {path.name for path in (directory / "carrel/layers").iterdir()} - layers
            assert not [one for one in left if not one.startswith(("snap-", "."))], left      # one layer for all of them
            done = daemon("create", "--python", f"{MINOR}.98", timeout=120)
            assert done.returncode == 125 and f"{MINOR}.98" in done.stderr, done.stderr
    finally:
        remove(directory)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the list names one platform")
@pytest.mark.once
def test_what_is_wrong_with_the_mirror_is_said(own_env, mirror, tmp_path):
    copy = tmp_path / "mirror"
    shutil.copytree(mirror, copy)
    for file in (copy / "20260101").iterdir():
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    configure(own_env, copy)
    own_env.fails("app", "--python", VERSION, code=("not_found", "failed", "hash_mismatch"), says=[VERSION])
    assert not list((own_env.store / "pythons").glob("cpython-*"))
    configure(own_env, tmp_path / "nothing")
    own_env.fails("app", "--python", VERSION, code="not_found", says=[VERSION, "nothing"])
