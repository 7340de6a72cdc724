"""The life of a workspace: snapshots, rollbacks, forks, diffs, templates, installs, archives, beside what one would use
without them.

A daemon for each id. Every round makes a new workspace with the same tree, and a plain directory with that tree beside
it, on the same file system.
"""

import contextlib
import json
import os
import random
import shutil
import subprocess
import time

from daemon import Daemon
from environments import PASSED
from measure import Failed, Quiet, say
from report import table, verdict
from stats import ratio

PATIENCE_S = 900
DIRECTORIES, FILES, FILE_BYTES = 100, 100, 50_000  # 10,000 files, 500 MB
CHANGED = 50
FORKS = 100
NODE = ["axios", "docx", "typescript", "vite"]
DATA = ["matplotlib>=3.8.0", "pandas>=2.1.0", "numpy>=1.26.0", "requests>=2.31.0"]

# A tree whose blocks don't compress to nothing, made by the same program inside and outside.
FILL = f"""
import os, random, sys
chance, block = random.Random(1), bytearray(random.Random(2).randbytes({FILE_BYTES}))
text = bytes(chance.choices(b'abcdefghij \\n', k={FILE_BYTES}))
for d in range({DIRECTORIES}):
    os.makedirs(f'{{sys.argv[1]}}/d{{d:02}}', exist_ok=True)
    for f in range({FILES}):
        at = chance.randrange({FILE_BYTES} // 2)
        with open(f'{{sys.argv[1]}}/d{{d:02}}/f{{f:02}}', 'wb') as file:
            file.write(block[at:] + text[:at])
"""
# The files of FILL have much in common: compressed, one of a hundred of them is more than 1 % of all.
DISTINCT = f"""
import os, random, sys
for d in range({DIRECTORIES}):
    os.makedirs(f'{{sys.argv[1]}}/d{{d:02}}', exist_ok=True)
    for f in range({FILES}):
        with open(f'{{sys.argv[1]}}/d{{d:02}}/f{{f:02}}', 'wb') as file:
            file.write(random.Random(d * {FILES} + f).randbytes({FILE_BYTES}))
"""
CHANGE = f"""
import sys
for i in range({CHANGED}):
    with open(f'{{sys.argv[1]}}/d{{i % {DIRECTORIES}:02}}/f{{i % {FILES}:02}}', 'ab') as file:
        file.write(b'changed')
"""
LIST = """
import subprocess, sys, time
began = time.perf_counter_ns()
subprocess.run(['/bin/ls', '-R', sys.argv[1]], stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter_ns() - began)
"""


class Sizes:
    def __init__(self, short):
        self.rounds = 1 if short else 5
        self.warm_rounds = 2 if short else 20


class Site:
    """What one id is measured with."""

    def __init__(self, who, tools, stack):
        self.who, self.tools = who, tools
        # Builds of the daemon reach the index that this machine is configured for.
        who.env.update({name: os.environ[name] for name in PASSED if name in os.environ})
        self.daemon = Daemon(who, tools["carrel"], "life")
        self.daemon.connection.socket.settimeout(PATIENCE_S)
        stack.callback(self.daemon.stop)
        self.times, self.figures = {}, {}
        self.count = 0

    def path(self, name):
        return os.path.join(self.who.directory, name)

    def ask(self, method, path, body=None, expected=(200, 201, 202, 204)):
        status, answer = self.daemon.connection.call(method, path, body)
        if status not in expected:
            raise Failed(f"{method} {path}: {status} {answer[:300]!r}")
        return json.loads(answer) if answer.strip() else None

    def inside(self, workspace, *argv):
        result = self.ask("POST", f"/v1/workspaces/{workspace}/exec", {"argv": argv, "timeout": "600s"})
        if result["exit_code"] != 0:
            raise Failed(f"{argv[0]} inside: {result['exit_code']} {result['stderr'][-300:]}")
        return result["stdout"]

    def outside(self, *argv, **how):
        done = subprocess.run(
            [*self.who.prefix(), *argv], env=self.who.env, cwd=how.pop("cwd", "/"), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode not in how.get("codes", (0,)):
            raise Failed(f"{' '.join(argv)[:200]}: exit {done.returncode} {done.stderr[-300:]}")
        return done.stdout

    def create(self, **wanted):
        self.count += 1
        wanted = {"name": f"life-{self.count}", "limits": {"disk": "8G"}, **wanted}
        return self.ask("POST", "/v1/workspaces", wanted)["id"]

    def remove(self, workspace):
        self.ask("DELETE", f"/v1/workspaces/{workspace}")

    def time(self, name, round_, job, *args, **how):
        before = time.monotonic_ns()
        answer = job(*args, **how)
        self.note(name, round_, time.monotonic_ns() - before)
        return answer

    def note(self, name, round_, ns):
        if round_ >= 0:
            self.times.setdefault(name, {})[round_] = ns


def disk_bytes(path):
    """Blocks below a directory, without what is shared."""
    done = subprocess.run(["du", "-s", "--block-size=1", path], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


def measure_tree(site, round_):
    """Snapshot, rollback, forks and diff of the large tree, and cp and git on a copy of it."""
    tree, copy = site.path("tree"), site.path("copy")
    site.outside("/usr/bin/python3", "-c", FILL, tree)
    workspace = site.create()
    site.inside(workspace, "/usr/bin/python3", "-c", FILL, "/workspace")
    os.sync()  # of both trees: neither side writes what the other made
    kept = site.time("snapshot", round_, site.ask, "POST", f"/v1/workspaces/{workspace}/snapshots", {})
    site.time("cp -a", round_, site.outside, "cp", "-a", tree, copy)
    os.sync()
    site.inside(workspace, "/usr/bin/python3", "-c", CHANGE, "/workspace")
    site.outside("/usr/bin/python3", "-c", CHANGE, copy)
    found = site.time("diff", round_, site.ask, "GET", f"/v1/workspaces/{workspace}/diff")
    changes = found["items"] if isinstance(found, dict) else found
    if len(changes) != CHANGED:
        raise Failed(f"diff found {len(changes)} of {CHANGED} changes")
    site.time("git diff", round_, site.outside, "git", "diff", "--no-index", "--name-status", tree, copy, codes=(1,))
    before = disk_bytes(site.daemon.home)  # a fork also freezes what its origin has changed
    forks = site.time("forks", round_, site.ask, "POST", f"/v1/workspaces/{workspace}/fork",
                      {"name": f"fork-{site.count}", "count": FORKS})
    site.figures["kB a fork"] = (disk_bytes(site.daemon.home) - before) / FORKS / 1024
    site.time("rollback", round_, site.ask, "POST", f"/v1/workspaces/{workspace}/rollback", {"snapshot": kept["id"]})
    for fork in forks["items"] if isinstance(forks, dict) and "items" in forks else forks:
        site.remove(fork["id"])
    measure_depth(site, workspace, tree, round_)
    measure_archive(site, workspace, tree, round_)
    site.remove(workspace)
    shutil.rmtree(tree)
    shutil.rmtree(copy)


def measure_depth(site, workspace, tree, round_):
    for number_ in range(10):
        site.inside(workspace, "/bin/sh", "-c", f"echo {number_} > d{number_:02}/new")
        site.ask("POST", f"/v1/workspaces/{workspace}/snapshots", {})
    # In a new sandbox: nothing of the overlay is cached.
    site.note("ls -R", round_, int(site.inside(workspace, "/usr/bin/python3", "-c", LIST, "/workspace")))
    site.note("ls -R, plain", round_, int(site.outside("/usr/bin/python3", "-c", LIST, tree)))


def measure_archive(site, workspace, tree, round_):
    packed = site.path("packed.tar.zst")
    url = f"http://carrel/v1/workspaces/{workspace}/archive"
    curl = ["curl", "-fsS", "--unix-socket", site.daemon.socket]
    site.time("pack", round_, site.outside, *curl, "-o", packed, url + "?format=tar.zst")
    if os.path.getsize(packed) > 0.95 * DIRECTORIES * FILES * FILE_BYTES:
        raise Failed("the packed tree is not compressed")
    site.time("tar | zstd", round_, site.outside, "sh", "-c", f"tar -C {tree} -c . | zstd -q -3 -T0 > {packed}.peer")
    other = site.create()
    site.time("unpack", round_, site.outside, *curl, "-H", "Content-Type: application/zstd", "-T", packed + ".peer",
              f"http://carrel/v1/workspaces/{other}/archive")
    back = site.path("back")
    site.time("zstd | tar", round_, site.outside, "sh", "-c",
              f"mkdir {back} && zstd -q -d < {packed}.peer | tar -C {back} -x && sync -f {back}")
    site.remove(other)
    shutil.rmtree(back)
    os.unlink(packed)
    os.unlink(packed + ".peer")


def measure_push(site):
    """How much of a snapshot with 1 % new data is sent, when the one before it was."""
    workspace = site.create()
    site.inside(workspace, "/usr/bin/python3", "-c", DISTINCT, "/workspace")
    sent = []
    for _ in range(2):
        kept = site.ask("POST", f"/v1/workspaces/{workspace}/snapshots", {})
        sent.append(site.ask("POST", f"/v1/workspaces/{workspace}/push", {"snapshot": kept["id"]})["sent_bytes"])
        site.inside(workspace, "/bin/sh", "-c", "mkdir -p new && cp d00/* new/")
    site.figures["% sent"] = 100 * sent[1] / sent[0]
    site.remove(workspace)


class Uv:
    """uv with a cache that has what is installed, as it would be used in a directory of one's own."""

    def __init__(self, site):
        self.site, self.cache = site, site.path("uv-cache")
        found = [os.path.join(root, "uv") for root, _, files in os.walk(site.daemon.home) if "uv" in files]
        if not found:
            raise Failed("no uv in the home")
        self.uv, self.venv = found[0], site.path("venv")

    def call(self, *argv):
        self.site.outside(self.uv, *argv, "--cache-dir", self.cache)

    def venv_with(self, *what, offline=True):
        self.call("venv", "--clear", "-q", "-p", "/usr/bin/python3", self.venv)
        self.install(*what, offline=offline)

    def install(self, *what, offline=True):
        self.call("pip", "install", "-q", *(["--offline"] if offline else []), "-p", f"{self.venv}/bin/python", *what)

    def run(self, code):
        self.site.outside(f"{self.venv}/bin/python", "-c", code)


def measure_template(site, rounds, quiet):
    first = site.create(template="data-science")  # built here, not timed
    uv, lock = Uv(site), site.path("lock.txt")
    names = site.inside(first, "python", "-m", "pip", "freeze").split()
    with open(lock, "w", encoding="utf-8") as file:
        file.write("\n".join(name for name in names if "==" in name))
    uv.venv_with("-r", lock, offline=False)
    line = "print(6 * 7)"
    for round_ in range(-1, rounds):
        quiet.wait()

        def ours():
            made = site.create(template="data-science")
            site.inside(made, "python", "-c", line)
            return made

        def theirs():
            uv.venv_with("-r", lock)
            uv.run(line)

        made = site.time("from a template", round_, ours)
        site.time("uv venv, install, python", round_, theirs)
        site.remove(made)
    site.remove(first)


def measure_install(site, rounds, quiet):
    first = site.create(python={"packages": ["six"]})
    site.ask("POST", f"/v1/workspaces/{first}/packages", {"packages": ["requests"]})
    uv = Uv(site)
    uv.venv_with("six", "requests", offline=False)
    for round_ in range(-1, rounds):
        quiet.wait()
        made = site.create(python={"packages": ["six"]})
        site.inside(made, "python", "-c", "import six")
        site.time("install", round_, site.ask, "POST", f"/v1/workspaces/{made}/packages", {"packages": ["requests"]})
        site.inside(made, "python", "-c", "import requests")
        uv.venv_with("six")
        site.time("uv pip install", round_, uv.install, "requests")
        site.remove(made)
    site.remove(first)


def measure_node(site, rounds, quiet):
    first = site.create(node={"packages": NODE})
    project, bun = site.path("project"), site.path("bun")
    os.mkdir(project)
    for name in ("package.json", "bun.lock"):
        text = site.inside(first, "/bin/sh", "-c", f"cat {name} 2>/dev/null || cat node_modules/.carrel/{name}")
        with open(os.path.join(project, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.chown(project, site.who.uid, site.who.gid)
    found = [os.path.join(root, "bun") for root, _, files in os.walk(os.path.join(site.daemon.home, "layers")) if "bun" in files]
    if not found:
        raise Failed("no bun in the layers")
    shutil.copy(found[0], bun)
    os.chmod(bun, 0o755)
    install = [bun, "install", "--frozen-lockfile", "--ignore-scripts", "--silent", "--cwd", project]
    site.outside(*install)
    for round_ in range(-1, rounds):
        quiet.wait()
        site.count += 1
        name = f"node{site.count}"
        words = [word for package in NODE for word in ("--npm", package)]
        site.time("Node environment", round_, site.outside, site.tools["carrel"], "env", "build", name, *words)
        shutil.rmtree(os.path.join(project, "node_modules"))
        site.time("bun install", round_, site.outside, *install)
    site.remove(first)


GOALS = [  # name, upper, lower, factor, must, stretch
    ("snapshot of 10,000 files, 500 MB / `cp -a`", "snapshot", "cp -a", 1 / 200, 1 / 1000),
    ("rollback of it / `cp -a`", "rollback", "cp -a", 1 / 200, 1 / 1000),
    ("100 forks of it / one `cp -a`", "forks", "cp -a", 1 / 5, 1 / 20),
    ("diff of 50 changed files / `git diff --no-index --name-status`", "diff", "git diff", 1 / 20, 1 / 100),
    ("workspace from `data-science`, first Python line / `uv venv` + offline install + python", "from a template",
     "uv venv, install, python", 1 / 20, 1 / 50),
    ("`install requests` from present layers / `uv pip install` offline", "install", "uv pip install", 1 / 5, 1 / 20),
    ("Node environment of {axios, docx, typescript, vite} / `bun install --frozen-lockfile`", "Node environment",
     "bun install", 1 / 15, 1 / 50),
    ("first `ls -R` after ten snapshots / a plain directory", "ls -R", "ls -R, plain", 2, 1.3),
    ("pack / `tar | zstd -3 -T0`", "pack", "tar | zstd", 1.25, 1.0),
    ("unpack / `zstd -d | tar x`, synced", "unpack", "zstd | tar", 1.25, 1.0),
]
FIGURES = [("disk of a fork, kB", "kB a fork", 64, 24), ("push of a snapshot with 1 % new data, % sent", "% sent", 2, 1)]


def fraction(value):
    return f"1/{1 / value:.0f}" if value < 0.5 else f"{value:.2f}"


def goals_table(site):
    lines = []
    for name, upper, lower, must, stretch in GOALS:
        if not site.times.get(upper) or not site.times.get(lower):
            lines.append([name, fraction(must), fraction(stretch), "-", "not measured"])
            continue
        middle, low, high = ratio(site.times[upper], site.times[lower])
        shown = f"{fraction(middle)} ({fraction(low)}-{fraction(high)})"
        lines.append([name, fraction(must), fraction(stretch), shown, verdict(middle, must, stretch)])
    for name, key, must, stretch in FIGURES:
        value = site.figures.get(key)
        lines.append([name, f"{must:g}", f"{stretch:g}", "-" if value is None else f"{value:.1f}",
                      "not measured" if value is None else verdict(value, must, stretch)])
    return table([f"goal, {site.who.name}", "must", "stretch", "measured", "verdict"], lines)


def rows_table(site):
    lines = [[name, f"{sorted(times.values())[len(times) // 2] / 1e6:.2f}", f"{max(times.values()) / 1e6:.2f}", str(len(times))]
             for name, times in site.times.items()]
    return table([f"as {site.who.name}", "median ms", "most ms", "runs"], lines)


ABOUT = f"""\
### What misses its goal, and why

- A snapshot waits for `syncfs` before its row is written, so that what was acknowledged survives a power cut
  (docs/design/0042): 4 to 10 ms where nothing else is to be written, more when other data of the same file system waits, as that
  of `cp -a` does here. Its times vary between 10 and 41 ms in one run, and so does the verdict.
- A Node environment of four packages costs bun 20 to 40 ms, since it makes hard links for few files. 1/15 would need 1.4 to 2.6 ms.
  Where our time goes was measured apart, as root at real-time priority, medians of 100: 2.56 ms in all, of them 0.53 for a start of
  `carrel` that does nothing, 1.35 for what an environment of Python costs as well (reading the configuration, finding the layers,
  writing and renaming meta.json with one `fsync`), and 0.68 for the lock of 84 packages: it is read, checked and hashed. No function
  has more than 5 % of the samples of `perf`, and three quarters of them are in the kernel. The rest of the 3 to 7 ms here is `fsync`: 0.2 ms on
  a file system at rest, more than 4 ms beside data of others.
- A workspace from `data-science` takes 21 ms as either id. uv is faster as a plain user (276 ms) than as root (420 ms), so that
  the same time meets the ratio as root and misses it as a plain user. Measured apart (beside other work, p10 of 60): 2 ms are its
  creation, 8 ms the start of its sandbox, 27 ms Python's own start, which the other side has as well.

### How it is measured

`bench/run --only life` measures this section alone.

- REST requests over one kept connection, until the whole answer is there; `cp`, `git`, `tar`, `uv` and `bun` are whole
  commands on the same file system, with warm caches. Each round has a new workspace and a new directory with the same tree,
  {DIRECTORIES * FILES:,} files of {FILE_BYTES // 1000} kB; both are on disk before the first row.
- The rows of both ids are measured in turn in every round. In brackets: 95 % of 1,000 bootstrap resamples (of rounds).
- Push: files of random bytes, so that compression plays no part.
- `ls -R` is timed by a program inside the sandbox, started anew after the tenth snapshot, and by the same program outside.
"""


def compose(head, sites):
    parts = ["\n".join(f"- {line}" for line in head), "### Goals", *(goals_table(site) for site in sites), "### Rows",
             *(rows_table(site) for site in sites), ABOUT]
    return "\n\n".join(parts)


def measure_all(ids, tools, sizes):
    quiet, problems = Quiet(), []
    with contextlib.ExitStack() as stack:
        sites = [Site(who, tools, stack) for who in ids]

        def attempt(site, what, job, *args):
            try:
                job(site, *args)
            except (Failed, OSError, KeyError, subprocess.SubprocessError) as problem:
                problems.append(f"{what} as {site.who.name}: {problem}")

        for round_ in range(sizes.rounds):
            for site in random.sample(sites, len(sites)):
                say(f"bench: trees, round {round_ + 1}, {site.who.name}")
                quiet.wait()
                attempt(site, "trees", measure_tree, round_)
        for site in sites:
            attempt(site, "push", measure_push)
            for what, job in (("template", measure_template), ("install", measure_install), ("Node", measure_node)):
                say(f"bench: {what}, {site.who.name}")
                attempt(site, what, job, sizes.warm_rounds, quiet)
    return sites, quiet, problems
