"""Environments from shared layers beside uv's and pip's: made, imported from, stored.

Everything is on one file system, with /usr/bin/python3 on both sides and with the uv that carrel
itself uses as the peer.
"""

import contextlib
import glob
import json
import os
import random
import shutil
import subprocess
import tempfile

from measure import Failed, Quiet, Runner, say

PYTHON = "/usr/bin/python3"
SETS = {
    "requests": ["requests"],
    "fastapi": ["fastapi", "uvicorn", "pydantic", "httpx"],
    "pandas": ["pandas", "numpy", "matplotlib"],
    "langgraph": ["langgraph", "langchain-core", "a2a-sdk"],
}
IMPORTS = ["pandas", "fastapi"]  # sets, and what is imported of them
LIGHT = ["grpcio", "fastapi", "uvicorn"]
NODE_SET = "node"
NODE = ["axios", "docx", "typescript", "vite"]
PATIENCE_S = 600  # for one command: a first build downloads
WARM_UP = 2  # rounds thrown away
ROOM_BYTES = 10 << 30  # less than that free: nothing is kept that isn't needed
PART = 5  # rounds after which the machine must be quiet again

# What a machine needs to reach its index: the same for all who measure. Nothing that changes what
# Python does.
PROXIES = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"]
PASSED = [
    *PROXIES,
    *(name.upper() for name in PROXIES),
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PIP_CERT",
    "PIP_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_registry",
]

# what is timed, from layers and a cache that are there
UV = "uv venv + uv pip install"
OVERLAY = "overlay of the layers"
UPPER = "overlay and its tmpfs"
COMPOSE = "composed, meta.json durable"
BUILD = "carrel env build"
PIP = "venv + pip install"
# imports
IN_UV = "in a uv venv with bytecode"
IN_CARREL = "carrel run --env"
IN_BOTH = "the uv venv in carrel's sandbox"
FRESH_UV = "first import, uv venv without bytecode"
FRESH_CARREL = "first import, new environment"
# Node, from a layer and a cache that are there
BUN = "bun install --frozen-lockfile"
BUILD_NODE = "carrel env build --npm"
# from nothing
FIRST_UV = "uv venv + uv pip install --compile-bytecode"
FIRST_CARREL = "carrel env build, nothing there"


class Rounds:
    """How often each is measured."""

    def __init__(self, short):
        self.warm = 3 if short else 50
        self.imports = 3 if short else 25
        self.fresh = 2 if short else 10
        self.first = 1 if short else 5
        self.pip = 1 if short else 2
        self.further = 5 if short else 20  # environments, for the disk that one more takes
        self.agents = 10 if short else 100


class Site:
    """The store of one id, with what its peers need beside it."""

    def __init__(self, who, tools):
        self.who = who
        self.carrel = tools["carrel"]
        self.environment = tools["environment"]
        self.spawn = tools["spawn"]
        self.home = who.env["CARREL_HOME"]
        self.venv = os.path.join(who.directory, "venv")
        self.cache = os.path.join(who.directory, "uv-cache")
        self.uv = None
        self.index = []  # the words that name carrel's own index to a peer
        self.locks = {}
        self.layers = {}
        self.runner = None
        self.count = 0

    def path(self, name):
        return os.path.join(self.who.directory, name)

    def fresh(self):
        """A package_id that nobody had."""
        self.count += 1
        return f"fresh{self.count}"

    def call(self, argv, env=()):
        """Runs a command that isn't timed; what it printed."""
        try:
            done = subprocess.run(
                [*self.who.prefix(), *argv],
                env={**self.who.env, **dict(env)},
                cwd="/",
                timeout=PATIENCE_S,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise Failed(str(problem)) from None
        if done.returncode != 0:
            said = " / ".join(done.stderr.strip().splitlines()[-3:])
            raise Failed(f"{' '.join(argv[:6])}: exit {done.returncode}: {said[:400]}")
        return done.stdout

    def time(self, *commands):
        """ns of these commands, one after the other."""
        total = 0
        for argv in commands:
            before, after, _ = self.runner.run(argv, patience_s=PATIENCE_S)[0]
            total += after - before
        return total

    def build_argv(self, package_id, packages):
        words = [word for package in packages for word in ("--pip", package)]
        return [self.carrel, "env", "build", package_id, *words]

    def uv_argv(self, venv, source, cache=None):
        """uv's two commands; `source`: the words that say what is installed. Clears its place."""
        discard(venv)
        common = ["--quiet", "--no-config", "--cache-dir", cache or self.cache]
        return (
            [self.uv, "venv", *common, "--python", PYTHON, venv],
            [
                *[self.uv, "pip", "install", *common, "--python", os.path.join(venv, "bin/python")],
                *["--link-mode", "hardlink", *self.index, *source],
            ],
        )

    def locked(self, name):
        """What makes uv install just what the lock says, with nothing left to resolve."""
        return ["--offline", "--no-deps", "--require-hashes", "-r", self.locks[name]]

    def settle(self):
        """Syncs: nobody shall pay for what another has left to write. Then nothing is dirty."""
        subprocess.run(["sync", "-f", self.who.directory], check=True)

    def remove_fresh(self):
        """Removes the environments that were measured, before there are so many that some are
        evicted."""
        names = glob.glob(os.path.join(self.home, "envs", "fresh*"))
        if names:
            self.call([self.carrel, "env", "rm", *(os.path.basename(name) for name in names)])


def discard(path):
    """Puts a tree away until the end: for minutes after files were removed, ext4 looks at each of
    their inodes again whenever it needs a new one, and whoever is next would pay for that."""
    if not os.path.lexists(path):
        return
    room = os.statvfs(path)
    if room.f_bavail * room.f_frsize < ROOM_BYTES:
        shutil.rmtree(path)
    else:
        os.rename(path, tempfile.mkdtemp(prefix="old.", dir=os.path.dirname(path)) + "/old")


def disk_bytes(*roots):
    """Bytes on disk below these directories; a file with several names is counted once."""
    seen = {}
    for root in roots:
        for directory, _, files in os.walk(root):
            for path in [directory, *(os.path.join(directory, name) for name in files)]:
                status = os.lstat(path)
                seen[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(seen.values())


def prepare_site(who, tools):
    """Builds every set once, on both sides: from here on, nothing needs the network."""
    site = Site(who, tools)
    for name, packages in SETS.items():
        say(f"bench: {name} as {who.name}: the first time")
        made = json.loads(site.call([*site.build_argv("base-" + name, packages), "-o", "json"]))
        site.layers[name] = len(made["layers"])
        site.locks[name] = site.path(f"lock-{name}.txt")
        shutil.copy(os.path.join(made["path"], "lock.txt"), site.locks[name])
        os.chmod(site.locks[name], 0o644)
        if made["indexes"] and "*" not in made["indexes"][0]:
            site.index = ["--default-index", made["indexes"][0]]
        if not site.uv:
            take_uv(site)
        for argv in site.uv_argv(site.venv, ["--no-deps", "-r", site.locks[name]]):
            site.call(argv)
        check_links(site.venv)
        discard(site.venv)
    return site


def take_uv(site):
    """The uv that carrel has used: a copy in directory `tools`, as it lies in a home."""
    found = glob.glob(os.path.join(site.home, "tools", "uv-*", "uv"))
    source = found[0] if found else shutil.which("uv", path=site.who.env["PATH"])
    if not source:
        raise Failed("carrel has built an environment, but its uv is nowhere")
    name = os.path.basename(os.path.dirname(source)) if found else "uv"
    directory = site.path(os.path.join("tools", name))
    os.makedirs(directory)
    site.uv = os.path.join(directory, "uv")
    shutil.copy(source, site.uv)
    os.chmod(site.uv, 0o755)


def check_links(venv):
    """uv copies when it can't link, and says so where --quiet hides it."""
    for path in glob.glob(os.path.join(venv, "lib/python3*/site-packages/*/__init__.py")):
        if os.stat(path).st_nlink > 1:
            return
    raise Failed("uv did not install by hard links")


def check_bytecode(site):
    """Neither side may be kept from writing or reading bytecode."""
    code = "import sys; sys.exit(sys.dont_write_bytecode)"
    for argv in [
        [site.carrel, "run", "--env", "base-requests", "--", "python", "-c", code],
        [PYTHON, "-c", code],
    ]:
        site.call(argv)


# ---- from present layers ----


def measure_warm(sites, rounds, quiet, results):
    """All sets of all ids, interleaved: uv against the mount, composing and the command."""
    with contextlib.ExitStack() as stack:
        jobs = []
        for site in sites:
            for name, packages in SETS.items():
                mounts = Runner(site.environment, site.who, words=["mount", "base-" + name])
                stack.callback(mounts.close)
                composer = Runner(site.environment, site.who, words=["compose", *packages])
                stack.callback(composer.close)
                jobs += warm_jobs(site, name, packages, mounts, composer)
        for number in range(-WARM_UP, rounds):
            if number % PART == 0:
                quiet.wait()
            random.shuffle(jobs)
            for site, name, what, job in jobs:
                site.settle()
                took = job()
                if number >= 0:
                    results.setdefault((site.who, name, what), {})[number] = took
            for site in sites:
                site.remove_fresh()


def warm_jobs(site, name, packages, mounts, composer):
    def by(runner, word):
        before, after, _ = runner.run([word])[0]
        return after - before

    def uv():
        took = site.time(*site.uv_argv(site.venv, site.locked(name)))
        discard(site.venv)
        return took

    return [
        (site, name, UV, uv),
        (site, name, OVERLAY, lambda: by(mounts, "overlay")),
        (site, name, UPPER, lambda: by(mounts, "upper")),
        (site, name, COMPOSE, lambda: by(composer, site.fresh())),
        (site, name, BUILD, lambda: site.time(site.build_argv(site.fresh(), packages))),
    ]


def node_argv(site, package_id):
    words = [word for package in NODE for word in ("--npm", package)]
    return [site.carrel, "env", "build", package_id, *words]


def make_project(site, made):
    """A new project of that lock, which has nothing installed."""
    site.count += 1
    project = site.path(f"project{site.count}")
    os.makedirs(project)
    for source, name in (("requirements.txt", "package.json"), ("lock.txt", "bun.lock")):
        shutil.copy(os.path.join(made["path"], source), os.path.join(project, name))
    for path in (project, *glob.glob(project + "/*")):
        os.chown(path, site.who.uid, site.who.gid)
    return project


def measure_node(site, rounds, quiet, results):
    """The bun that carrel uses, with a cache of its own that is warm, against the layer."""
    made = json.loads(site.call([*node_argv(site, "base-node"), "-o", "json"]))
    program = os.path.join(site.home, "layers", made["tools"]["bun"], "tree/bin/bun")
    bun = site.path("bun")
    shutil.copy(program, bun)
    os.chmod(bun, 0o755)
    words = ["--frozen-lockfile", "--ignore-scripts", "--no-progress", "--no-summary"]
    cache = {"BUN_INSTALL_CACHE_DIR": site.path("bun-cache")}
    site.call([bun, "install", *words, "--cwd", make_project(site, made)], cache)
    runner = Runner(site.spawn, site.who, env=cache)

    def theirs():
        project = make_project(site, made)
        argv = [bun, "install", *words, "--cwd", project]
        before, after, _ = runner.run(argv, patience_s=PATIENCE_S)[0]
        discard(project)
        return after - before

    jobs = [(BUN, theirs), (BUILD_NODE, lambda: site.time(node_argv(site, site.fresh())))]
    try:
        for number in range(-WARM_UP, rounds):
            if number % PART == 0:
                quiet.wait()
            random.shuffle(jobs)
            for what, job in jobs:
                site.settle()
                took = job()
                if number >= 0:
                    results.setdefault((site.who, NODE_SET, what), {})[number] = took
            site.remove_fresh()
    finally:
        runner.close()


def measure_pip(site, rounds, results):
    """venv + pip from pip's own cache, which the first, untimed run fills."""
    index = ["--index-url", site.index[1]] if site.index else []
    pip = [os.path.join(site.venv, "bin/pip"), "install", "--quiet", "--no-deps"]
    for name in SETS:
        for number in range(-1, rounds):
            took = site.time(
                [PYTHON, "-m", "venv", site.venv], [*pip, *index, "-r", site.locks[name]]
            )
            discard(site.venv)
            if number >= 0:
                results.setdefault((site.who, name, PIP), {})[number] = took


# ---- imports ----


def measure_imports(site, rounds, fresh_rounds, quiet, results):
    for name in IMPORTS:
        words = ["-c", "import " + name]
        for argv in site.uv_argv(site.venv, ["--compile-bytecode", *site.locked(name)]):
            site.call(argv)
        python = os.path.join(site.venv, "bin/python")
        # At a short path of its own: nothing in it but scripts knows where it lies.
        bound = ["-v", f"{site.venv}:/venv:ro", "--", "/venv/bin/python"]
        jobs = [
            (IN_UV, [python, *words]),
            (IN_CARREL, [site.carrel, "run", "--env", "base-" + name, "--", "python", *words]),
            (IN_BOTH, [site.carrel, "run", *bound, *words]),
        ]
        for number in range(-WARM_UP, rounds):
            if number % PART == 0:
                quiet.wait()
            random.shuffle(jobs)
            for what, argv in jobs:
                took = site.time(argv)
                if number >= 0:
                    results.setdefault((site.who, name, what), {})[number] = took
        discard(site.venv)
        for number in range(-1, fresh_rounds):
            measure_fresh(site, name, words, number, results)


def measure_fresh(site, name, words, number, results):
    """The first import of what was just made, on both sides."""

    def ours():
        package_id = site.fresh()
        site.call(site.build_argv(package_id, SETS[name]))
        site.settle()
        return site.time([site.carrel, "run", "--env", package_id, "--", "python", *words])

    def theirs():
        for argv in site.uv_argv(site.venv, site.locked(name)):
            site.call(argv)
        site.settle()
        took = site.time([os.path.join(site.venv, "bin/python"), *words])
        discard(site.venv)
        return took

    jobs = [(FRESH_CARREL, ours), (FRESH_UV, theirs)]
    random.shuffle(jobs)
    for what, job in jobs:
        took = job()
        if number >= 0:
            results.setdefault((site.who, name, what), {})[number] = took
    site.remove_fresh()


# ---- disk ----


def measure_further(site, count):
    """Bytes that one more environment of the fastapi set takes, all of the home counted."""
    site.call(site.build_argv(site.fresh(), SETS["fastapi"]))  # what is made once is there then
    site.settle()
    before = disk_bytes(site.home)
    for _ in range(count):
        site.call(site.build_argv(site.fresh(), SETS["fastapi"]))
    site.settle()
    added = (disk_bytes(site.home) - before) / count
    site.remove_fresh()
    return added


def measure_agents(site, count):
    """Bytes of `count` light agents' environments: ours, uv's (with its cache), and pip's, of which
    one is made and multiplied."""
    home = site.path("agents-home")
    cache = site.path("agents-cache")
    venvs = site.path("agents-venvs")
    env = {"CARREL_HOME": home}
    first = json.loads(site.call([*site.build_argv("agent0", LIGHT), "-o", "json"], env))
    with open(os.path.join(home, "config.yaml"), "w", encoding="utf-8") as config:
        config.write(f"environments:\n  max_envs: {2 * count}\n")
    chown_like(os.path.join(home, "config.yaml"), home)
    lock = site.path("lock-agents.txt")
    shutil.copy(os.path.join(first["path"], "lock.txt"), lock)
    os.chmod(lock, 0o644)
    for number in range(1, count):
        site.call(site.build_argv(f"agent{number}", LIGHT), env)
    os.mkdir(venvs)
    os.chown(venvs, site.who.uid, site.who.gid)
    for number in range(count):
        venv = os.path.join(venvs, str(number))
        for argv in site.uv_argv(venv, ["--no-deps", "-r", lock], cache=cache):
            site.call(argv)
    site.settle()
    ours = disk_bytes(*(os.path.join(home, part) for part in os.listdir(home) if part != "tools"))
    uv = disk_bytes(cache, venvs)
    discard(venvs)
    discard(cache)
    discard(home)
    index = ["--index-url", site.index[1]] if site.index else []
    site.call([PYTHON, "-m", "venv", site.venv])
    pip = [os.path.join(site.venv, "bin/pip"), "install", "--quiet", "--no-deps"]
    site.call([*pip, *index, "-r", lock])
    one = disk_bytes(site.venv)
    discard(site.venv)
    return {"count": count, "carrel": ours, "uv": uv, "pip": one * count}


def chown_like(path, model):
    status = os.stat(model)
    os.chown(path, status.st_uid, status.st_gid)


# ---- from nothing ----


def measure_first(site, rounds, quiet, results):
    """Empty store, empty cache, and uv itself there on both sides."""
    home = site.path("first-home")
    cache = site.path("first-cache")
    runner = Runner(site.spawn, site.who, env={"CARREL_HOME": home})

    def ours(packages):
        make_home(site, home)
        site.settle()
        before, after, _ = runner.run(site.build_argv("first", packages), patience_s=PATIENCE_S)[0]
        discard(home)
        return after - before

    def theirs(packages):
        site.settle()
        commands = site.uv_argv(site.venv, ["--compile-bytecode", *packages], cache=cache)
        took = site.time(*commands)
        discard(site.venv)
        discard(cache)
        return took

    try:
        for number in range(rounds):
            jobs = [
                (name, what, job)
                for name in SETS
                for what, job in ((FIRST_CARREL, ours), (FIRST_UV, theirs))
            ]
            random.shuffle(jobs)
            quiet.wait()
            for name, what, job in jobs:
                say(f"bench: from nothing, {number + 1} of {rounds}: {name}, {what}")
                results.setdefault((site.who, name, what), {})[number] = job(SETS[name])
    finally:
        runner.close()
        discard(home)
        discard(cache)
        discard(site.venv)


def make_home(site, home):
    """A home with uv in it, and nothing else: not even what carrel knows of it."""
    discard(home)
    shutil.copytree(site.path("tools"), os.path.join(home, "tools"))
    for directory, _, files in os.walk(home):
        os.chmod(directory, 0o700 if directory == home else 0o755)
        for path in [directory, *(os.path.join(directory, name) for name in files)]:
            chown_like(path, site.home)


# ---- all of it ----


def make_site(who, tools):
    for name in PASSED:
        if name in os.environ:
            who.env[name] = os.environ[name]
    # Root's store belongs to another, who must be able to get there.
    os.chmod(who.directory, 0o755)
    site = prepare_site(who, tools)
    check_bytecode(site)
    return site


def measure_all(ids, tools, rounds):
    """(sites, times, sizes, quiet, problems): times maps (who, set, what) to {round: ns}."""
    times, sizes, problems = {}, {}, []
    quiet = Quiet()
    sites = []
    with contextlib.ExitStack() as stack:
        for who in ids:
            try:
                site = make_site(who, tools)
                site.runner = Runner(site.spawn, who)
                stack.callback(site.runner.close)
                sites.append(site)
            except Failed as problem:
                problems.append(f"environments as {who.name}: {problem}")
        if not sites:
            return sites, times, sizes, quiet, problems
        first = sites[0]

        def disk_of_one_more():
            sizes["further"] = measure_further(first, rounds.further)

        def disk_of_many():
            sizes["agents"] = measure_agents(first, rounds.agents)

        for title, job in [
            ("from present layers", lambda: measure_warm(sites, rounds.warm, quiet, times)),
            ("Node", lambda: measure_node(first, rounds.warm, quiet, times)),
            ("imports", lambda: measure_imports(first, rounds.imports, rounds.fresh, quiet, times)),
            ("disk of one more", disk_of_one_more),
            ("disk of many", disk_of_many),
            ("from nothing", lambda: measure_first(first, rounds.first, quiet, times)),
            ("venv + pip", lambda: measure_pip(first, rounds.pip, times)),
        ]:
            say(f"bench: environments: {title}")
            try:
                job()
            except (Failed, OSError) as problem:
                problems.append(f"environments, {title}: {problem}")
    return sites, times, sizes, quiet, problems
