"""Workspaces: what a command in one costs, what many of them cost, and the HTTP server behind it.

Two daemons for each id, in homes of their own. One serves; the core of the other is stopped
(SIGSTOP), so that bench/warm can be the master of a carrel-init of a real sandbox.
"""

import contextlib
import glob
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import types

import measure
import rows as table_rows
from measure import Failed, Runner
from rows import find as find_program
from stats import percentile

PATIENCE_S = 30
WARM_UP = 10
PART = 25
EVERY_OCI = 5  # crun exec and runc exec: in each n-th round
UPLOAD_BYTES = 2 << 30
CAPTURED_EXECS = 10
CAPTURED_BYTES = 60 << 20  # of each
WRK_SECONDS = 3
WRK_ROUNDS = 4


class Sizes:
    """How much of everything."""

    def __init__(self, short):
        self.rounds = 20 if short else 300
        self.neighbours = 50 if short else 1000
        self.neighbour_rounds = 20 if short else 300
        self.few, self.many = (20, 100) if short else (100, 5000)
        self.create_rounds = 20 if short else 150
        self.connections = 500 if short else 5000
        self.upload = UPLOAD_BYTES >> 4 if short else UPLOAD_BYTES
        self.wrk_rounds = 1 if short else WRK_ROUNDS
        self.captured_seconds = 3 if short else 15


class Connection:
    """HTTP over the daemon's socket, one request after the other."""

    def __init__(self, path, who):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.rest = b""
        # The daemon sees who connects: its own user.
        before = os.geteuid(), os.getegid()
        os.setegid(who.gid)
        os.seteuid(who.uid)
        try:
            self.socket.connect(path)
        finally:
            os.seteuid(before[0])
            os.setegid(before[1])

    def call(self, method, path, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        self.socket.sendall((head + f"Content-Length: {len(data)}\r\n\r\n").encode() + data)
        return self.answer()

    def answer(self):
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        size = int(length.group(1)) if length else 0
        while len(self.rest) < size:
            self.more()
        body, self.rest = self.rest[:size], self.rest[size:]
        return int(head.split()[1]), body

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise Failed("the daemon closed the connection")
        self.rest += data

    def close(self):
        self.socket.close()


class Daemon:
    """`carrel serve` of one id in a home of its own."""

    def __init__(self, who, carrel, name, options=(), config=None):
        self.who = who
        self.home = os.path.join(who.directory, name)
        if config:
            path = os.path.join(self.home, "config.yaml")
            os.mkdir(self.home, 0o700)
            with open(path, "w", encoding="utf-8") as file:
                file.write(config)
            for made in (self.home, path):
                os.chown(made, who.uid, who.gid)
        self.socket = os.path.join(self.home, "run/carrel.sock")
        # A file, since nobody would read a pipe, and a full one stops whoever writes to it.
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*who.prefix(), carrel, "serve", *options],
            env={**who.env, "CARREL_HOME": self.home},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.log,
        )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError, Failed):
                self.connection = Connection(self.socket, who)
                if self.connection.call("GET", "/readyz")[0] == 200:
                    return
            if self.process.poll() is not None:
                self.log.seek(0)
                raise Failed("carrel serve: " + self.log.read().decode()[-300:])
            if time.monotonic() > deadline:
                self.stop()
                raise Failed("carrel serve does not come up")
            time.sleep(0.02)

    def roles(self):
        """(pid, name) of core, writer, audit and egress, and of the processes that wait for them; core is the first carreld."""
        found = []
        for pid in measure.descendants(self.process.pid):
            with contextlib.suppress(OSError, Failed):
                name = measure.field(pid, "status", "Name")[0]
                if name in ("carreld", "carrel-writer", "carrel-audit", "carrel-egress"):
                    found.append((pid, name))
        return found

    def core(self):
        """The pid of carreld."""
        for pid, name in self.roles():
            if name == "carreld":
                return pid
        raise Failed("no carreld below carrel serve")

    def create(self, **wanted):
        status, body = self.connection.call("POST", "/v1/workspaces", wanted)
        if status != 201:
            raise Failed(f"create: {status} {body[:200]!r}")
        return json.loads(body)["id"]

    def exec(self, workspace, *argv):
        status, body = self.connection.call(
            "POST", f"/v1/workspaces/{workspace}/exec", {"argv": argv or ["/bin/true"]}
        )
        if status != 200 or json.loads(body)["exit_code"] != 0:
            raise Failed(f"exec: {status} {body[:200]!r}")

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Stopwatch:
    """One resident bench/warm."""

    def __init__(self, tools, who, daemon, workspace, init):
        self.process = subprocess.Popen(
            [*who.prefix(), tools["warm"], daemon.socket, workspace, init],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=who.env,
            cwd="/",
            text=True,
        )

    def run(self, road, program="/bin/true"):
        self.process.stdin.write(f"{road}\t{program}\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
            raise Failed(f"{road} {program}: no end after {PATIENCE_S} s")
        answer = self.process.stdout.readline()
        if not answer or answer.startswith("-"):
            raise Failed(answer.strip() or "bench/warm died")
        return int(answer)

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Site:
    """What one id is measured with."""

    def __init__(self, who, tools, stack):
        self.who, self.tools = who, tools
        self.daemon = Daemon(who, tools["carrel"], "serving")
        stack.callback(self.daemon.stop)
        self.workspace = self.daemon.create(name="bench")
        self.daemon.exec(self.workspace)
        still = Daemon(who, tools["carrel"], "standing")
        stack.callback(still.stop)
        other = still.create()
        still.exec(other)
        core = still.core()
        os.kill(core, signal.SIGSTOP)
        stack.callback(self.let_go, core)
        self.watch = Stopwatch(
            tools, who, self.daemon, self.workspace, os.path.join(still.home, "run/sb", other)
        )
        stack.callback(self.watch.close)
        silent = Daemon(who, tools["carrel"], "unaudited", config="audit:\n  enabled: false\n")
        stack.callback(silent.stop)
        unseen = silent.create(name="bench")
        silent.exec(unseen)
        self.unaudited = Stopwatch(tools, who, silent, unseen, "-")
        stack.callback(self.unaudited.close)
        rules = {"permissions": {"allow": ["shell(true:*)"], "deny": ["shell(curl:*)"]}}
        judged = self.daemon.create(name="judged", settings=rules)
        self.daemon.exec(judged)
        self.judged = Stopwatch(tools, who, self.daemon, judged, "-")
        stack.callback(self.judged.close)
        self.add_agent()
        self.spawn = Runner(tools["spawn"], who)
        stack.callback(self.spawn.close)
        self.bwrap = table_rows.bwrap_argv(table_rows.find("bwrap"))
        self.times = {}

    def add_agent(self):
        """An A2A agent whose messages are commands, with one context."""
        yaml = "name: bench\ndescription: runs commands\nversion: v1\nkind: shell\n"
        status, body = self.daemon.connection.call("POST", "/v1/agents", {"yaml": yaml})
        if status != 201:
            raise Failed(f"add an agent: {status} {body[:200]!r}")
        self.send_true()

    def timed(self, path, body, word):
        began = time.monotonic_ns()
        status, answer = self.daemon.connection.call("POST", path, body)
        took = time.monotonic_ns() - began
        if status != 200 or word not in answer:
            raise Failed(f"{path}: {status} {answer[:200]!r}")
        return took

    def send_true(self):
        message = {"messageId": "m", "contextId": "c", "parts": [{"text": "true"}]}
        return self.timed("/a2a/bench/message:send", {"message": message}, b"TASK_STATE_COMPLETED")

    def exec_true(self, workspace):
        return self.timed(f"/v1/workspaces/{workspace}/exec", {"command": "true"}, b'"exit_code":0')

    @staticmethod
    def let_go(core):
        with contextlib.suppress(ProcessLookupError):
            os.kill(core, signal.SIGCONT)

    def note(self, name, number, ns):
        if number >= 0:
            self.times.setdefault(name, {})[number] = ns


def command(runner, argv):
    before, after, _ = runner.run(argv)[0]
    return after - before


@contextlib.contextmanager
def containers(site, problems):
    """Running containers of crun and runc, and how to exec in them: [(name, job)]."""
    jobs, undo = [], []
    for row in table_rows.oci_rows(site.who):
        name = row.name.split()[0]
        config = os.path.join(site.who.directory, "bundle/config.json")
        with open(config, encoding="utf-8") as file:
            spec = json.load(file)
        spec["process"]["args"] = ["/bin/sleep", "3600"]
        with open(config, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        if row.missing:
            problems.append(f"{name} exec as {site.who.name}: {row.missing}")
            continue
        base = row.argv[: row.argv.index("run")]
        begin = [*base, "run", "-d", "--bundle", row.argv[row.argv.index("--bundle") + 1], "bench"]
        runner = Runner(site.tools["spawn"], site.who, row.wrap)
        undo.append(runner.close)
        try:
            runner.run(begin)
            undo.insert(0, lambda runner=runner, base=base: runner.run([*base, "delete", "-f", "bench"]))
            argv = [*base, "exec", "bench", "/bin/true"]
            runner.run(argv)
            jobs.append((name + " exec", lambda runner=runner, argv=argv: command(runner, argv)))
        except Failed as problem:
            problems.append(f"{name} exec as {site.who.name}: {problem}")
    try:
        yield jobs
    finally:
        for job in undo:
            with contextlib.suppress(Failed):
                job()


def measure_execs(sites, tools, rounds, quiet, problems):
    """All roads of all ids, interleaved."""
    with contextlib.ExitStack() as stack:
        jobs = []
        for site in sites:
            noop = tools["noop"]
            some = [
                ("vfork+exec", lambda site=site: site.watch.run("spawn"), 1),
                ("vfork+exec, again", lambda site=site: site.watch.run("spawn"), 1),
                ("exec by init", lambda site=site: site.watch.run("init"), 1),
                ("exec by HTTP", lambda site=site: site.watch.run("http"), 1),
                ("exec by HTTP, policy", lambda site=site: site.judged.run("http"), 1),
                ("exec by HTTP, no audit log", lambda site=site: site.unaudited.run("http"), 1),
                ("exec of a shell by HTTP", lambda site=site: site.exec_true(site.workspace), 1),
                ("the same in a context", lambda site=site: site.exec_true("bench%2Fc"), 1),
                ("the same by A2A", lambda site=site: site.send_true(), 1),
                ("vfork+exec no-op", lambda site=site: site.watch.run("spawn", noop), 1),
                ("exec by init no-op", lambda site=site: site.watch.run("init", site.noop), 1),
                ("create, true, remove", lambda site=site: site.watch.run("life"), 1),
                ("the same, not made ahead", lambda site=site: site.watch.run("start"), 1),
                ("the same with a list", lambda site=site: site.watch.run("listed"), 1),
                ("bwrap --unshare-all", lambda site=site: command(site.spawn, site.bwrap), 1),
                (
                    "carrel exec",
                    lambda site=site: command(
                        site.client, [tools["carrel"], "exec", site.workspace, "--", "/bin/true"]
                    ),
                    1,
                ),
            ]
            some += [(name, job, EVERY_OCI) for name, job in stack.enter_context(containers(site, problems))]
            jobs += [(site, *job) for job in some]
        for number in range(-WARM_UP, rounds):
            if number % PART == 0:
                quiet.wait()
            due = [job for job in jobs if number % job[3] == 0]
            random.shuffle(due)
            for site, name, job, _ in due:
                site.note(name, number, job())


def put_noop(site):
    """The static no-op, where the sandbox of the standing daemon sees it. A workspace that is kept ready has no upper yet."""
    for own in glob.glob(os.path.join(site.standing_tree, "*/upper")):
        place = os.path.join(own, "noop")
        shutil.copy(site.tools["noop"], place)
        model = os.stat(own)
        os.chown(place, model.st_uid, model.st_gid)
        os.chmod(place, 0o755)
    site.noop = "/workspace/noop"


def used_kb():
    """kB of memory that can't be had back: caches are dropped before it is looked at."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")
    time.sleep(1)
    with open("/proc/meminfo", encoding="ascii") as lines:
        values = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return values["MemTotal"] - values["MemFree"] - values["Buffers"] - values["Cached"] + values["Shmem"]


def anonymous_kb(pid):
    return int(measure.field(pid, "status", "RssAnon")[0])


def measure_neighbours(site, sizes, quiet, figures):
    """1,000 warm sandboxes beside the one that works."""
    daemon = site.daemon
    before = used_kb() if os.geteuid() == 0 else None
    made = [daemon.create() for _ in range(sizes.neighbours)]
    for workspace in made:
        daemon.exec(workspace)
    if before is not None:
        time.sleep(measure.IDLE_S)
        figures["kB a warm sandbox"] = (used_kb() - before) / sizes.neighbours
    for number in range(-WARM_UP, sizes.neighbour_rounds):
        if number % PART == 0:
            quiet.wait()
        jobs = [("vfork+exec, neighbours", "spawn"), ("exec by HTTP, neighbours", "http")]
        random.shuffle(jobs)
        for name, road in jobs:
            site.note(name, number, site.watch.run(road))
    for workspace in made:
        daemon.connection.call("DELETE", f"/v1/workspaces/{workspace}")


def measure_many(site, sizes, quiet, figures):
    """A create beside 100 and beside 5,000 workspaces without a sandbox."""
    daemon = site.daemon
    core = daemon.core()
    made = []

    def fill(count):
        while len(made) < count:
            made.append(daemon.create())

    def time_creates(name):
        for number in range(sizes.create_rounds):
            if number % PART == 0:
                quiet.wait()
            site.note(name, number, site.watch.run("life"))

    fill(sizes.few)
    time_creates("create, true, remove at few")
    before = anonymous_kb(core)
    fill(sizes.many)
    figures["kB an idle workspace"] = (anonymous_kb(core) - before) / (sizes.many - sizes.few)
    time_creates("create, true, remove at many")
    for workspace in made:
        daemon.connection.call("DELETE", f"/v1/workspaces/{workspace}")


def measure_connections(site, sizes, figures):
    daemon = site.daemon
    core = daemon.core()
    before = anonymous_kb(core)
    open_ = []
    try:
        for _ in range(sizes.connections):
            connection = Connection(daemon.socket, site.who)
            connection.call("GET", "/healthz")
            open_.append(connection)
        figures["kB a connection"] = (anonymous_kb(core) - before) / sizes.connections
    finally:
        for connection in open_:
            connection.close()


def measure_upload(site, sizes, figures):
    """A large PUT: the most memory that core had meanwhile, above what it had before."""
    daemon = site.daemon
    core = daemon.core()
    workspace = daemon.create(limits={"disk": "8G"})
    before = most = anonymous_kb(core)
    piece = os.urandom(1 << 20)
    connection = Connection(daemon.socket, site.who)
    connection.socket.sendall(
        f"PUT /v1/workspaces/{workspace}/files/large HTTP/1.1\r\nHost: bench\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {sizes.upload}\r\n\r\n".encode()
    )
    begun = time.monotonic()
    connection.socket.settimeout(120)
    for number in range(sizes.upload >> 20):
        connection.socket.sendall(piece)
        if number % 16 == 0:
            most = max(most, anonymous_kb(core))
    status, body = connection.answer()
    if status not in (200, 201):
        raise Failed(f"upload: {status} {body[:200]!r}")
    figures["MB/s of an upload"] = sizes.upload / 1e6 / (time.monotonic() - begun)
    figures["kB more in an upload"] = max(most, anonymous_kb(core)) - before
    connection.close()
    daemon.connection.call("DELETE", f"/v1/workspaces/{workspace}")


def capture_until(site, workspace, deadline):
    """One client that runs commands which write control bytes, and reads all of every answer."""
    command = f"head -c {CAPTURED_BYTES} /dev/zero | tr '\\000' '\\001'"
    body = json.dumps({"command": command}).encode()
    while time.monotonic() < deadline:
        connection = Connection(site.daemon.socket, site.who)
        connection.socket.sendall(
            f"POST /v1/workspaces/{workspace}/exec HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        came = connection.socket.recv(1 << 16)
        if b" 200 " not in came[:20]:
            os._exit(1)
        while came:
            came = connection.socket.recv(1 << 20)
        connection.close()


def measure_captured(site, sizes, figures):
    """/healthz while others have large output captured, and the most memory that core had."""
    daemon = Daemon(site.who, site.tools["carrel"], "captured")
    deadline = time.monotonic() + sizes.captured_seconds
    times, clients = [], []
    try:
        core = daemon.core()
        for _ in range(CAPTURED_EXECS):
            workspace = daemon.create()
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    capture_until(types.SimpleNamespace(daemon=daemon, who=site.who), workspace, deadline)
                    status = 0
                finally:
                    os._exit(status)
            clients.append(pid)
        while time.monotonic() < deadline:
            begun = time.monotonic_ns()
            if daemon.connection.call("GET", "/healthz")[0] != 200:
                raise Failed("/healthz failed")
            times.append(time.monotonic_ns() - begun)
            time.sleep(0.005)
        if any([os.waitpid(pid, 0)[1] for pid in clients]):
            raise Failed("a captured exec failed")
        clients = []
        figures["ms of /healthz beside captured output, p99"] = percentile(times, 99) / 1e6
        figures["MB of core beside captured output"] = int(measure.field(core, "status", "VmHWM")[0]) / 1000
    finally:
        for pid in clients:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        daemon.stop()


NGINX = """
worker_processes 1; daemon off; error_log stderr crit; pid {directory}/nginx.pid;
events {{ worker_connections 1024; }}
http {{ access_log off; client_body_temp_path {directory}/b; proxy_temp_path {directory}/p;
fastcgi_temp_path {directory}/f; uwsgi_temp_path {directory}/u; scgi_temp_path {directory}/s;
keepalive_requests 100000000; default_type application/json;
server {{ listen unix:{directory}/nginx.sock; location / {{ return 200 '{{"status":"ok"}}'; }} }} }}
"""


def wrk(site, path):
    """Requests a second, by wrk over the unix socket at `path`."""
    done = subprocess.run(
        [*site.who.prefix(), find_program("env"), f"LD_PRELOAD={site.tools['preload']}", find_program("wrk"), "-t1", "-c16", f"-d{WRK_SECONDS}s", "http://127.0.0.1:80/healthz"],
        env={"BENCH_SOCKET": path},
        capture_output=True,
        text=True,
        check=False,
    )
    rate = re.search(r"Requests/sec: *([\d.]+)", done.stdout)
    if not rate or "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise Failed("wrk: " + (done.stdout + done.stderr)[-300:])
    return float(rate.group(1))


def measure_http(site, sizes, quiet, figures):
    """/healthz beside nginx `return 200` of the same bytes, both over unix sockets, in turn."""
    directory = os.path.join(site.who.directory, "nginx")
    os.mkdir(directory)
    os.chown(directory, site.who.uid, site.who.gid)
    config = os.path.join(directory, "nginx.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write(NGINX.format(directory=directory) + ("user root;" if site.who.uid == 0 else ""))
    nginx = subprocess.Popen(
        [*site.who.prefix(), find_program("nginx"), "-c", config, "-p", directory],
        stderr=subprocess.DEVNULL,
    )
    try:
        path = os.path.join(directory, "nginx.sock")
        deadline = time.monotonic() + 10
        while not os.path.exists(path):
            if time.monotonic() > deadline or nginx.poll() is not None:
                raise Failed("nginx does not come up")
            time.sleep(0.05)
        rates = {"nginx": {}, "carrel": {}}
        for number in range(-1, sizes.wrk_rounds):
            quiet.wait()
            for name, to in [("nginx", path), ("carrel", site.daemon.socket)]:
                rate = wrk(site, to)
                if number >= 0:
                    rates[name][number] = rate
        figures["requests/s"] = rates
    finally:
        nginx.terminate()
        nginx.wait()


def measure_all(ids, tools, sizes):
    """(sites with their times, figures by id's name, quiet, problems)"""
    quiet, problems, figures = measure.Quiet(), [], {}
    sites = []
    with contextlib.ExitStack() as stack:
        for who in ids:
            site = Site(who, tools, stack)
            site.standing_tree = os.path.join(who.directory, "standing/workspaces")
            put_noop(site)
            site.client = Runner(tools["spawn"], who, env={"CARREL_HOME": site.daemon.home})
            stack.callback(site.client.close)
            sites.append(site)
            figures[who.name] = {}
        measure_execs(sites, tools, sizes.rounds, quiet, problems)
        for site in sites:
            own = figures[site.who.name]
            for name, job in [
                ("neighbours", lambda: measure_neighbours(site, sizes, quiet, own)),
                ("many workspaces", lambda: measure_many(site, sizes, quiet, own)),
                ("connections", lambda: measure_connections(site, sizes, own)),
                ("upload", lambda: measure_upload(site, sizes, own)),
                ("captured output", lambda: measure_captured(site, sizes, own)),
                ("HTTP", lambda: measure_http(site, sizes, quiet, own)),
            ]:
                measure.say(f"bench: {name}, {site.who.name}")
                try:
                    job()
                except (Failed, OSError) as problem:
                    problems.append(f"{name} as {site.who.name}: {problem}")
    return sites, figures, quiet, problems
