# Sources to a wheel (PEP 517, PEP 660). Plain ASCII: it is passed to `python -c`.
#   requires SOURCE          -> "requires SPEC" lines of [build-system]; runs no code of the project
#   copy FROM TO             -> the project, without what no build needs; runs no code of it
#   build KIND SOURCE TREE OUT ASK
#       KIND is wheel or editable. SOURCE (an archive; "-": TREE is there) is unpacked to TREE. With ASK
#       "ask" the backend is asked first for what else it needs: "requires SPEC" lines and nothing
#       built when it names any. Else "wheel NAME", in OUT.
# SOURCE may be a directory for `requires`.
import os
import shutil
import sys
import tarfile
import zipfile

PYPROJECT_MAX = 1 << 20
SKIPPED = ("node_modules", "__pycache__", ".tox", ".nox", ".mypy_cache", ".pytest_cache")


class Failure(Exception):
    pass


def toml():
    try:
        import tomllib

        return tomllib
    except ImportError:
        pass
    try:
        from pip._vendor import tomli

        return tomli
    except ImportError:
        pass
    try:
        import ensurepip
        import glob

        places = [getattr(ensurepip, "_WHEEL_PKG_DIR", None), os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")]
        for place in filter(None, places):
            for wheel in sorted(glob.glob(os.path.join(place, "pip-*.whl"))):
                sys.path.append(wheel)
                from pip._vendor import tomli

                return tomli
    except ImportError:
        pass
    raise Failure("this Python can't read pyproject.toml: 3.11 or later can")


def members(source):
    """(name, kind, opener or link target, mode) of each member; kind is one of d f l."""
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            for info in archive.infolist():
                mode = info.external_attr >> 16
                if info.is_dir():
                    yield info.filename, "d", None, 0o755
                elif mode & 0o170000 not in (0, 0o100000):
                    raise Failure("'%s' in the archive is not a file" % info.filename[:200])
                else:
                    yield info.filename, "f", (lambda info=info: archive.open(info)), mode
    else:
        try:
            archive = tarfile.open(source)
        except tarfile.TarError as error:
            raise Failure("the archive can't be read: %s" % error)
        with archive:
            for info in archive:
                if info.isdir():
                    yield info.name, "d", None, 0o755
                elif info.isreg() or info.islnk():
                    # A hard link is a copy: extractfile follows it within the archive.
                    yield info.name, "f", (lambda info=info: archive.extractfile(info)), info.mode
                elif info.issym():
                    yield info.name, "l", info.linkname, 0
                elif info.type not in (tarfile.XGLTYPE, tarfile.XHDTYPE):
                    raise Failure("'%s' in the archive is not a file" % info.name[:200])


def parts(name):
    """The parts of a member's path below the archive's one directory."""
    split = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in split or "\0" in name or "\\" in name:
        raise Failure("'%s' in the archive leads out of it" % name[:200])
    return split


def unpack(source, tree):
    os.mkdir(tree)
    for name, kind, what, mode in members(source):
        split = parts(name)[1:]
        if not split:
            continue
        path = os.path.join(tree, *split)
        # What was unpacked before may be a link: nothing is written through one.
        for depth in range(1, len(split) + (kind == "d")):
            above = os.path.join(tree, *split[:depth])
            if os.path.islink(above):
                raise Failure("'%s' in the archive lies behind a link" % name[:200])
            if not os.path.isdir(above):
                os.mkdir(above)
        if kind == "d":
            continue
        if os.path.lexists(path):
            os.unlink(path)
        if kind == "l":
            inside = os.path.normpath("/".join(["x"] + split[:-1] + [what]))
            if what.startswith("/") or not (inside + "/").startswith("x/"):
                raise Failure("link '%s' in the archive leads out of it" % name[:200])
            os.symlink(what, path)
            continue
        with what() as data, open(path, "wb") as out:
            shutil.copyfileobj(data, out, 1 << 20)
        os.chmod(path, 0o755 if mode & 0o111 else 0o644)


def read_pyproject(source):
    if os.path.isdir(source):
        path = os.path.join(source, "pyproject.toml")
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as data:
            return data.read(PYPROJECT_MAX + 1)
    for name, kind, what, _ in members(source):
        if kind == "f" and parts(name)[1:] == ["pyproject.toml"]:
            with what() as data:
                return data.read(PYPROJECT_MAX + 1)
    return None


def build_system(source):
    """(requires, backend, backend-path), with the defaults that PEP 517 and 518 name."""
    data = read_pyproject(source)
    table = {}
    if data is not None:
        if len(data) > PYPROJECT_MAX:
            raise Failure("pyproject.toml is too large")
        try:
            table = toml().loads(data.decode()).get("build-system", {})
        except ValueError as error:
            raise Failure("pyproject.toml: %s" % error)
    requires = table.get("requires", ["setuptools>=40.8.0", "wheel"])
    backend = table.get("build-backend", "setuptools.build_meta:__legacy__")
    places = table.get("backend-path", [])
    if not all(isinstance(item, str) for item in [backend] + list(requires) + list(places)):
        raise Failure("pyproject.toml: [build-system] isn't made of strings")
    return list(requires), backend, list(places)


def say(out, key, value):
    if any(ord(c) < 32 for c in value):
        raise Failure("%r isn't one line" % value[:200])
    out.write("%s %s\n" % (key, value))


def copy(source, target):
    def ignored(directory, names):
        return [
            name
            for name in names
            if name in SKIPPED or os.path.exists(os.path.join(directory, name, "pyvenv.cfg"))
        ]

    shutil.copytree(source, target, symlinks=True, ignore=ignored)


def load(backend, places):
    import importlib

    for place in reversed(places):
        if os.path.isabs(place) or ".." in place.split("/"):
            raise Failure("backend-path '%s' leads out of the project" % place[:200])
        sys.path.insert(0, os.path.join(os.getcwd(), place))
    module, _, attributes = backend.partition(":")
    loaded = importlib.import_module(module)
    for attribute in filter(None, attributes.split(".")):
        loaded = getattr(loaded, attribute)
    return loaded


def build(out, kind, source, tree, directory, ask):
    if source != "-":
        unpack(source, tree)
    requires, backend, places = build_system(tree)
    os.chdir(tree)
    hooks = load(backend, places)
    make = getattr(hooks, "build_" + kind, None)
    if make is None:
        raise Failure("its build backend '%s' can't make %s wheels" % (backend, kind))
    if ask == "ask":
        more = getattr(hooks, "get_requires_for_build_" + kind, lambda settings=None: [])(None)
        more = [str(item) for item in more or [] if str(item) not in requires]
        for item in more:
            say(out, "requires", item)
        if more:
            return
    os.makedirs(directory)
    say(out, "wheel", os.path.basename(make(directory, {}, None)))


def main(out):
    command, args = sys.argv[1], sys.argv[2:]
    if command == "requires":
        for item in build_system(args[0])[0]:
            say(out, "requires", item)
    elif command == "copy":
        copy(*args)
    else:
        build(out, *args)


# What backends print goes to stderr, answers go where stdout led.
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
try:
    main(answers)
    answers.close()
except Failure as error:
    sys.stderr.write("%s\n" % error)
    sys.exit(1)
except Exception as error:
    import traceback

    traceback.print_exc()
    sys.stderr.write("%s: %s\n" % (type(error).__name__, " ".join(str(error).split())[:300]))
    sys.exit(1)
