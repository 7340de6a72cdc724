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
from measure import Failed, Quiet, Runner, say
from report import table, verdict
from stats import ratio

PATIENCE_S = 900
UNMOUNT_S = 1  # after a snapshot; LATER_MS of core/closer.c is 0.4
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
        self.runner = Runner(tools["spawn"], who)
        stack.callback(self.runner.close)
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

    def command(self, *argv):
        """ns of one command: vfork, exec and wait by bench/spawn, which has this id already."""
        before, after, _ = self.runner.run(argv, patience_s=PATIENCE_S)[0]
        return after - before

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


def settle():
    """What a snapshot leaves for later (an unmount, which syncs) is over, and nobody has anything left to write."""
    time.sleep(UNMOUNT_S)
    os.sync()


def measure_tree(site, round_):
    """Snapshot, rollback, forks and diff of the large tree, and cp and git on a copy of it."""
    tree, copy = site.path("tree"), site.path("copy")
    site.outside("/usr/bin/python3", "-c", FILL, tree)
    workspace = site.create()
    site.inside(workspace, "/usr/bin/python3", "-c", FILL, "/workspace")
    os.sync()  # of both trees: neither side writes what the other made
    kept = site.time("snapshot", round_, site.ask, "POST", f"/v1/workspaces/{workspace}/snapshots", {})
    settle()
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

    # Each returns the ns of its commands.
    def call(self, *argv):
        return self.site.command(self.uv, *argv, "--cache-dir", self.cache)

    def venv_with(self, *what, offline=True):
        took = self.call("venv", "--clear", "-q", "-p", "/usr/bin/python3", self.venv)
        return took + self.install(*what, offline=offline)

    def install(self, *what, offline=True):
        return self.call("pip", "install", "-q", *(["--offline"] if offline else []), "-p", f"{self.venv}/bin/python", *what)

    def run(self, code):
        return self.site.command(f"{self.venv}/bin/python", "-c", code)


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

        made = site.time("from a template", round_, ours)
        site.time("the same line again", round_, site.inside, made, "python", "-c", line)
        site.note("uv venv, install, python", round_, uv.venv_with("-r", lock) + uv.run(line))
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
        site.note("uv pip install", round_, uv.install("requests"))
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
        shutil.rmtree(os.path.join(project, "node_modules"))
        for row, argv in (("Node environment", [site.tools["carrel"], "env", "build", name, *words]), ("bun install", install)):
            os.sync()  # neither pays for what the other left to write
            site.note(row, round_, site.command(*argv))
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
  (docs/design/0042): 0.2 ms on a file system at rest, more when other data of the same file system waits. The unmount of the sandbox, which
  syncs the same file system once more, comes after the answer.
- A Node environment of four packages costs bun 14 to 40 ms, since it makes hard links for few files: 1/15 would be 1 to 2.6 ms.
  What ours consists of, at real-time priority as root (medians of 40, beside other work): 0.37 ms a start of `carrel` that does nothing, 0.99 ms the same command
  when the environment is there (it reads the configuration of npm, finds the tools and checks the environment), 2.21 ms to compose a new
  one if a single `fsync` is enough, as on xfs and on an ext4 with a journal, and 2.79 ms with the five that an ext4 without a journal needs, as
  this machine has it. bun syncs nothing. No function has more than 6 % of the samples of `perf`; half of them are in system calls.
- A workspace from `data-science` takes 20 to 24 ms as either id. uv is faster as a plain user (240 to 290 ms) than as root (420 to 480), so that
  the same time meets the ratio as root and misses it as a plain user, where 1/20 is 12 to 14 ms. At real-time priority as a plain user
  (medians of 20, beside other work): 1.6 ms are its creation, 6.9 ms the start of its sandbox, 1.5 ms what the first Python of a new overlay takes
  longer than the next one, 11.5 ms Python itself in a sandbox that runs (9.4 ms with `-I -S`; 11 ms outside of any sandbox; the row "the same line
  again"). Creation and a bare Python alone are 13.1 ms. Only a sandbox that was started ahead for its template could come near the goal; core keeps one
  spare workspace, without a template (docs/design/0040).

### How it is measured

`bench/run --only life` measures this section alone.

- REST requests over one kept connection, until the whole answer is there; `cp`, `git`, `tar`, `uv` and `bun` are whole
  commands on the same file system, with warm caches. `bench/spawn.c` times the commands of uv, of bun and of `carrel env build`: vfork,
  exec and wait. Before the rows of Node, and between a snapshot and `cp -a`, the file system is synced, so that neither side pays for what
  the other left to write. Each round has a new workspace and a new directory with the same tree,
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
