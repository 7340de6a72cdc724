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
from wheels import wheel

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
def test_a_python_that_the_host_lacks_comes_from_the_mirror(own_env, index, mirror):
    index.add(wheel("one"))
    error = own_env.fails("app", "--python", VERSION, code="not_found", says=[VERSION])
    assert MINOR in error["hint"]      # what is here
    configure(own_env, mirror)
    made = own_env.build("app", "--python", VERSION, "--pip", "one")
    assert made["python_version"] == VERSION and made["python"].startswith(str(own_env.store / "pythons"))
    script = "import one, sys; print(one.VERSION, '%d.%d.%d' % sys.version_info[:3], sys.prefix)"
    assert own_env.python(made["name"], script) == f"1.0 {VERSION} /env\n"
    # Without the mirror, what is here is used.
    own_env.configure("")
    assert own_env.build("other", "--python", VERSION, "--pip", "one")["python_version"] == VERSION
    assert own_env.run("--python", VERSION, "--", "python", "-c", "import sys; print(sys.version_info[2])").stdout == "99\n"
    assert own_env("env", "verify", made["name"]).returncode == 0


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the list names one platform")
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
