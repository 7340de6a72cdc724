"""Packages the tests make themselves: wheels and source archives, honest ones and evil ones. Bytes in memory, no tool."""
import base64
import hashlib
import io
import stat
import tarfile
import warnings
import zipfile
import zlib
from typing import NamedTuple


class Dist(NamedTuple):
    """One file of an index."""
    name: str
    version: str
    filename: str
    data: bytes
    metadata: bytes = None      # what PEP 658 serves beside a wheel

    @property
    def sha256(self):
        return hashlib.sha256(self.data).hexdigest()

    def save(self, directory):
        path = directory / self.filename
        path.write_bytes(self.data)
        path.chmod(0o644)
        return path


class Raw(NamedTuple):
    """A member of a zip exactly as given: with any name, mode and kind."""
    name: str
    data: bytes
    mode: int = stat.S_IFREG | 0o644
    is_recorded: bool = True
    sha256: str = None          # what RECORD says, when that is to be something else


def link(name, target):
    return Raw(name, target.encode(), stat.S_IFLNK | 0o777)


def record_hash(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def metadata_of(name, version, requires, requires_python):
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {one}" for one in requires]
    if requires_python:
        lines.append(f"Requires-Python: {requires_python}")
    return ("\n".join(lines) + "\n\n").encode()


def wheel(name, version="1.0", files=None, *, requires=(), scripts=None, data=None, members=(), wrong_records=(),
          unrecorded=(), tag="py3-none-any", requires_python=None, record_extra=""):
    """A wheel. `files`: {path: text or bytes} of site-packages (default: the module `name` with VERSION); `scripts`:
    {command: "module:function"}; `data`: {"data/share/x": text, "scripts/y": text} below NAME.data; `members`: Raw
    ones, after all others; `wrong_records`: paths whose RECORD line has the hash of something else."""
    module = name.replace("-", "_").replace(".", "_")
    if files is None:
        files = {f"{module}.py": f"VERSION = {version!r}\n"}
    info = f"{module}-{version}.dist-info"
    metadata = metadata_of(name, version, requires, requires_python)
    body = dict(files)
    body.update((f"{module}-{version}.data/{path}", content) for path, content in (data or {}).items())
    body[f"{info}/METADATA"] = metadata
    body[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"
    if scripts:
        body[f"{info}/entry_points.txt"] = "[console_scripts]\n" + "".join(f"{k} = {v}\n" for k, v in scripts.items())
    content = {path: text.encode() if isinstance(text, str) else text for path, text in body.items()}
    record = ""
    for path, octets in content.items():
        if path not in unrecorded:
            said = b"something else" if path in wrong_records else octets
            record += f"{path},{record_hash(said)},{len(octets)}\n"
    for member in members:
        if member.is_recorded:
            record += f"{member.name},{member.sha256 or record_hash(member.data)},{len(member.data)}\n"
    record += record_extra + f"{info}/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")     # two members of one name
        for path, octets in [*content.items(), (f"{info}/RECORD", record.encode())]:
            archive.writestr(entry(path, stat.S_IFREG | 0o644), octets, method_for(octets))
        for member in members:
            archive.writestr(entry(member.name, member.mode), member.data)
    return Dist(name, version, f"{module}-{version}-{tag}.whl", out.getvalue(), metadata)


def method_for(octets):
    """What is large and random gets no smaller, and to try takes long."""
    start = octets[:65536]
    return zipfile.ZIP_STORED if len(zlib.compress(start, 1)) > len(start) > 65535 else zipfile.ZIP_DEFLATED


def entry(name, mode):
    found = zipfile.ZipInfo("x", (2020, 1, 1, 0, 0, 0))
    found.filename = name       # not through the constructor, which would tidy it
    found.create_system = 3
    found.external_attr = mode << 16
    found.compress_type = zipfile.ZIP_DEFLATED
    return found


BACKEND = '''
import base64, hashlib, os, pathlib, zipfile

NAME, VERSION = {name!r}, {version!r}


def ran_when_it_was_built():
{code}


def build_wheel(directory, config_settings=None, metadata_directory=None):
    found = ran_when_it_was_built()
    info = f"{{NAME}}-{{VERSION}}.dist-info"
    files = {{f"{{NAME}}.py": f"VERSION = {{VERSION!r}}\\nFOUND = {{found!r}}\\n",
             f"{{info}}/METADATA": f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n" + {requires!r} + "\\n",
             f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nGenerator: tests\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}}
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{{path}},sha256={{digest}},{{len(text.encode())}}\\n"
    files[f"{{info}}/RECORD"] = record + f"{{info}}/RECORD,,\\n"
    filename = f"{{NAME}}-{{VERSION}}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(directory) / filename, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return filename


{hooks}
'''


def sdist(name, version="1.0", *, code="    return None\n", build_requires=(), members=(), requires=(), hooks=""):
    """A source archive with a build system of its own, in which `code` (the indented body of a function) runs while
    the wheel is built; what it returns is FOUND of the module. With `build_requires`, they are fetched first. `requires`
    are what the wheel needs (nothing else says so), `hooks` is more of the build system."""
    module = name.replace("-", "_")
    top = f"{module}-{version}"
    needed = ", ".join(f'"{one}"' for one in build_requires)
    dynamic = 'dynamic = ["dependencies"]\n' if requires else ""
    files = {
        "pyproject.toml": f'[build-system]\nrequires = [{needed}]\nbuild-backend = "its_backend"\nbackend-path = ["."]\n\n'
                          f'[project]\nname = "{name}"\nversion = "{version}"\n{dynamic}',
        "its_backend.py": BACKEND.format(name=module, version=version, code=code, hooks=hooks,
                                         requires="".join(f"Requires-Dist: {one}\n" for one in requires)),
        "PKG-INFO": f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n" + ("Dynamic: Requires-Dist\n" if requires else ""),
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in files.items():
            item = tarfile.TarInfo(f"{top}/{path}")
            item.size = len(text.encode())
            archive.addfile(item, io.BytesIO(text.encode()))
        for item, octets in members:
            archive.addfile(item, io.BytesIO(octets))
    return Dist(name, version, f"{top}.tar.gz", out.getvalue())


# Evil wheels: what is in them, and (for the tests) the name of the package.

def escaping(name, member):
    """A member that leaves the directory it is unpacked in, by `..` or by an absolute name."""
    return wheel(name, members=[Raw(member, b"escaped\n")])


def with_link(name, target, through=False):
    """A link in the zip; with `through`, a member that would be written through it."""
    module = name.replace("-", "_")
    members = [link(f"{module}_link", target)]
    if through:
        members.append(Raw(f"{module}_link/through.txt", b"through\n"))
    return wheel(name, members=members)


def with_duplicate(name):
    """Two members of one name: what a checker sees and what an unpacker writes may differ."""
    module = name.replace("-", "_")
    return wheel(name, files={f"{module}.py": "VERSION = 'first'\n"}, members=[Raw(f"{module}.py", b"VERSION = 'second'\n")])


def with_setuid(name):
    module = name.replace("-", "_")
    return wheel(name, members=[Raw(f"{module}_tool", b"#!/bin/sh\nid\n", stat.S_IFREG | 0o6755)])


def bomb(name, megabytes=300):
    """A few hundred kilobytes that unpack to so much."""
    module = name.replace("-", "_")
    return wheel(name, files={f"{module}.py": "VERSION = 'bomb'\n", f"{module}.bin": bytes(megabytes << 20)})


def many_files(name, count):
    module = name.replace("-", "_")
    return wheel(name, files={f"{module}/__init__.py": "", **{f"{module}/m{n}.py": "" for n in range(count)}})


def truncated_so(name):
    """What looks like a shared object and is cut: RECORD has the hash and size of the whole."""
    module = name.replace("-", "_")
    whole = b"\x7fELF\x02\x01\x01" + bytes(9) + bytes(range(256)) * 64
    return wheel(name, files={f"{module}.py": ""}, members=[Raw(f"{module}_native.so", whole[:5000], sha256=record_hash(whole))])
