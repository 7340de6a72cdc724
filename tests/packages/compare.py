#!/usr/bin/python3
"""Builds sets of packages with Carrel and with uv and compares the trees file by file.

    compare.py CARREL [-k WORD] [--uv PATH]       (make test-packages)

Both install the same lock, the one that Carrel resolved, from the index that this host is configured for. Differences that
are meant are in differences.txt; any other is printed, and the exit code is 1. Takes minutes and gigabytes: not in CI.

uv installs wheels in parallel: of two packages that list one file with different content, either can win. Where only such
files differ, uv installs again, also with other numbers of threads. The trees are equal when uv leaves Carrel's tree in one of the runs, or when uv's own
runs differ and all these files are one package's in Carrel's tree (docs/design/0024)."""
import argparse
import base64
import csv
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
PYTHON = "/usr/bin/python3"
RUNS = 6        # of uv, where its result may vary


def read_sets(word):
    lines = [line.partition("#")[0].split() for line in (HERE / "packages.txt").read_text().splitlines()]
    return [words for words in lines if words and (not word or any(word in one for one in words))]


def read_differences():
    rows = [line.split("\t") for line in (HERE / "differences.txt").read_text().splitlines() if line and line[0] != "#"]
    return [pattern for pattern, _ in rows]


def run(*words, **how):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **how)
    if done.returncode:
        raise RuntimeError(f"{words[0]} {words[1]}: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


def shared_files(place):
    """{path: {package: sha256}} of the files below `place` that several packages list with different content."""
    listed = {}
    for record in place.glob("lib/python*/site-packages/*.dist-info/RECORD"):
        for path, said, _ in csv.reader(record.open()):
            digest = base64.urlsafe_b64decode(said.partition("=")[2] + "=") if said.startswith("sha256=") else b""
            path = os.path.relpath(os.path.normpath(record.parent.parent / path), place)
            listed.setdefault(path, {})[record.parent.name] = digest.hex()
    return {path: owners for path, owners in listed.items() if len(set(owners.values())) > 1 and not path.endswith("/RECORD")}


def winners(tree, shared):
    """The packages to which all shared files in `tree` can belong."""
    owners = [{package for package, digest in packages.items() if tree[path][2] == digest} for path, packages in shared.items()]
    return set.intersection(*owners) if owners else set()


class Comparison:
    def __init__(self, carrel, uv, work):
        self.carrel, self.work = pathlib.Path(carrel).resolve(), work
        self.home = work / "carrel"
        self.env = {**os.environ, "CARREL_HOME": str(self.home), "UV_CACHE_DIR": str(work / "cache"), "UV_LINK_MODE": "copy"}
        self.patterns = read_differences()
        self.uv = uv

    def find_uv(self):
        """The uv that Carrel fetched, when none was given: both install with the same one."""
        return self.uv or shutil.which("uv") or next(self.home.glob("tools/uv-*/uv"))

    def build(self, words):
        pips = [word for one in words for word in ("--pip", one)]
        made = json.loads(run(self.carrel, "env", "build", "packages", "-o", "json", "--timeout", "20m", *pips, env=self.env))
        walk = (HERE / "walk.py").read_text()
        tree = run(self.carrel, "run", "--env", made["name"], "--memory", "4G", "--", PYTHON, "-c", walk, "/env", env=self.env)
        return made, json.loads(tree)

    def install(self, made, **env):
        """The lock of an environment, installed by uv into a virtualenv."""
        place = self.work / "reference"
        shutil.rmtree(place, ignore_errors=True)
        lock = self.home / "envs" / made["name"] / "lock.txt"
        run(self.find_uv(), "venv", "-q", "--python", PYTHON, place, env=self.env)
        run(self.find_uv(), "pip", "install", "-q", "--python", place / "bin/python", "--no-deps", "--require-hashes",
            "--compile-bytecode", "-r", lock, env={**self.env, **env})
        return json.loads(run(PYTHON, HERE / "walk.py", place, env=self.env))

    def is_meant(self, path):
        return any(fnmatch.fnmatch(path, pattern) for pattern in self.patterns)

    def differences(self, ours, theirs):
        for path in sorted(ours.keys() | theirs.keys()):
            one, other = ours.get(path), theirs.get(path)
            if path.endswith(".dist-info/RECORD") and one and other:
                if one[2] != other[2]:
                    yield path, "rows differ"
            elif one == other or self.is_meant(path):
                continue
            elif one is None or other is None:
                yield path, f"only in {'uv' if one is None else 'Carrel'}'s tree ({(one or other)[0]})"
            else:
                yield path, ", ".join(f"{what} {a} and {b}" for what, a, b in zip(("kind", "mode", "content"), one, other) if a != b)
        mine, uvs = [{path for path in tree if path.endswith(".pyc") and "/pip/" not in path and "_virtualenv" not in path}
                     for tree in (ours, theirs)]
        for path in sorted(mine ^ uvs):
            yield path, f"bytecode only in {'uv' if path in uvs else 'Carrel'}'s tree"

    def install_again(self, made, ours, theirs, found):
        """What of the differences stays when uv's own result varies."""
        shared = shared_files(self.work / "reference")
        if not found or not {path for path, _ in found} <= shared.keys():
            return found
        seen = [[theirs[path] for path in shared]]
        for run_number in range(1, RUNS):
            theirs = self.install(made, UV_CONCURRENT_INSTALLS=str(1 + run_number % 3))
            if not list(self.differences(ours, theirs)):
                return []
            seen.append([theirs[path] for path in shared])
        return [] if any(one != seen[0] for one in seen) and winners(ours, shared) else found

    def compare(self, words):
        made, ours = self.build(words)
        theirs = self.install(made)
        found = self.install_again(made, ours, theirs, list(self.differences(ours, theirs)))
        run(self.carrel, "env", "rm", made["name"], env=self.env)
        return len(made["installed_packages"]), len(ours), found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("carrel")
    parser.add_argument("-k", dest="word")
    parser.add_argument("--uv")
    options = parser.parse_args()
    failed, equal = [], 0
    with tempfile.TemporaryDirectory(prefix="carrel-packages.", dir="/var/tmp") as directory:
        os.chmod(directory, 0o755)
        comparison = Comparison(options.carrel, options.uv, pathlib.Path(directory))
        for words in read_sets(options.word):
            start, name = time.monotonic(), " ".join(words)
            try:
                packages, files, found = comparison.compare(words)
            except (RuntimeError, subprocess.SubprocessError, OSError, ValueError) as error:
                failed.append(name)
                print(f"FAILED     {name}: {error}", flush=True)
                continue
            print(f"{'DIFFERENT ' if found else 'equal     '} {name}: {packages} packages, {files} paths, "
                  f"{time.monotonic() - start:.0f} s", flush=True)
            for path, what in found[:20]:
                print(f"           {path}: {what}", flush=True)
            if found:
                failed.append(name)
            equal += not found
        subprocess.run([str(comparison.carrel), "env", "prune", "--all"], env=comparison.env, capture_output=True)
    print(f"{equal} equal, {len(failed)} not: {', '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


main()
