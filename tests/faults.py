"""What the tests of faults share: everything a daemon has, counted, so that what stays is seen; and load to put on it."""
import contextlib
import http.client
import os
import pathlib
import random
import signal
import sqlite3
import tempfile
import threading
import time
from collections import Counter

from harness import IS_ROOT, MECHANISM, cgroups, descendants, eventually, mounts, processes, what_stays

READY_AGAIN_SECONDS = 5     # security.md, "Faults"; held to by the tests that run alone
POOL_SIZE = 16              # what the launcher keeps ready of each kind


def kill(pid, signo=signal.SIGKILL):
    """None and 0 are nobody."""
    if not pid:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signo)


def inits(daemon):
    """The pids of every sandbox's PID 1, as the host has them."""
    own = ("carreld", "carrel-writer", "carrel-audit")
    return [pid for pid, parent, state, name in processes()
            if parent == daemon.process.pid and state not in "ZX" and name not in own and is_init(pid)]


def is_init(pid):
    """Its second pid is 1: it is the first of a namespace."""
    with contextlib.suppress(OSError):
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("NSpid:"):
                return line.split()[-1] == "1"
    return False


def home(daemon):
    return pathlib.Path(daemon.env["CARREL_HOME"])


def rows(daemon):
    """{table: ids} as they are on disk."""
    def read(name, length=-1):
        with contextlib.suppress(FileNotFoundError), open(home(daemon) / name, "rb") as file:
            return file.read(length)
        return b""

    with tempfile.TemporaryDirectory(prefix="carrel-tests.") as directory:
        # A copy: nobody else's connection may be the one that ends the daemon's log. When the log begins anew between
        # the one file and the other, what was in it is in neither.
        head = None
        while head != (head := read("carrel.db-wal", 32)):
            for name in ("carrel.db", "carrel.db-wal"):
                pathlib.Path(directory, name).write_bytes(read(name))
        with contextlib.closing(sqlite3.connect(pathlib.Path(directory, "carrel.db"))) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return {table: {row[0] for row in db.execute(f"SELECT id FROM {table}")} for table in ("workspaces", "execs")}


def files(daemon):
    """What is in its home, by name; without the database's own files, which come and go."""
    found = set()
    for directory, names, others in os.walk(home(daemon)):
        found.update(os.path.relpath(os.path.join(directory, name), home(daemon)) for name in names + others)
    return {name for name in found if not name.startswith("carrel.db-") and not name.startswith("run/uids/")}


def mounts_of(pid):
    with contextlib.suppress(OSError):
        return len(mounts(pid))
    return 0


def fds_of(pid):
    """Which kinds of descriptors it has open, and how many; empty where nobody may look."""
    kinds = Counter()
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                kinds[os.readlink(entry.path).split(":")[0]] += 1
    return kinds


def memory_of(pid):
    """Bytes that are its own."""
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


class Inventory:
    """All that a daemon without workspaces has. What is there later and wasn't at first was left behind."""

    def __init__(self, daemon):
        self.daemon = daemon
        use(daemon)
        assert eventually(lambda: not rows(daemon)["workspaces"])
        self.files = files(daemon)
        # Where a pool can't be filled this is in vain, and nothing is lost but time.
        eventually(lambda: self.is_full() and self.is_steady())
        self.counts = self.count()

    def is_full(self):
        """Pools are filled in the background: all of them have been."""
        groups = Counter(os.path.dirname(group) for group in cgroups() if self.daemon.owns_cgroup(group))
        has_groups = MECHANISM == "watchdog" or (groups and min(groups.values()) >= POOL_SIZE)
        return has_groups and (not IS_ROOT or fds_of(self.daemon.process.pid)["net"] > POOL_SIZE)

    def is_steady(self):
        before = self.count()
        time.sleep(0.05)
        return before == self.count()

    def count(self):
        daemon = self.daemon
        return {"processes": len(descendants(daemon.process.pid)),
                "mounts": mounts_of(daemon.process.pid),
                "namespaces": fds_of(daemon.process.pid)["net"] + fds_of(daemon.process.pid)["mnt"],
                "cgroups": sum(daemon.owns_cgroup(group) for group in cgroups()),
                "launcher's descriptors": sum(fds_of(daemon.process.pid).values()),
                "core's descriptors": sum(fds_of(daemon.core_pid() or 0).values())}

    def left(self):
        """What is there beyond what was, by kind."""
        daemon, now = self.daemon, self.count()
        more = {kind: (self.counts[kind], count) for kind, count in now.items() if count > self.counts[kind]}
        found = {"files": files(daemon) - self.files, **rows(daemon)}
        more.update((kind, what) for kind, what in found.items() if what)
        return more

    def check(self):
        """Nothing is left, soon. The workspaces must have been removed."""
        left = what_stays(self.left)
        assert not left, left


def use(daemon):
    """What is opened at its first use is open then."""
    assert daemon.post("/v1/workspaces", {"name": "used"}).status == 201
    started = exec_(daemon, "used", "true", background=True)
    assert started.status == 201, started
    assert exec_(daemon, "used", "true").status == 200
    assert eventually(lambda: daemon.get(started.headers["Location"]).json()["state"] == "ended")
    assert daemon.delete("/v1/workspaces/used").status == 204


def remove_all(daemon):
    for item in workspaces(daemon).values():
        answer = daemon.delete(f"/v1/workspaces/{item['id']}")
        assert answer.status in (204, 404), answer


def workspaces(daemon):
    """{name: object} of all of them."""
    found, cursor = {}, ""
    while cursor is not None:
        page = daemon.get(f"/v1/workspaces?limit=200{cursor and '&cursor=' + cursor}").json()
        found.update((item["name"], item) for item in page["items"])
        cursor = page["next_cursor"]
    return found


def settled(daemon):
    """The same, when those whose removal goes on after a kill are gone."""
    is_settled = lambda: all(item["state"] != "deleting" for item in workspaces(daemon).values())
    assert eventually(is_settled), workspaces(daemon)
    return workspaces(daemon)


def exec_(daemon, name, *argv, **more):
    return daemon.post(f"/v1/workspaces/{name}/exec", {"argv": list(argv), **more})


def sh(daemon, name, script, **more):
    return exec_(daemon, name, "sh", "-c", script, **more)


def is_whole(daemon, item):
    """A workspace that is listed works: a command runs there, a file is written and read."""
    name = item["name"]
    assert item["state"] in ("ready", "running"), item
    assert daemon.request("PUT", f"/v1/workspaces/{name}/files/probe", b"probe").status in (200, 201)
    answer = exec_(daemon, name, "cat", "probe")
    assert answer.status == 200 and answer.json()["stdout"] == "probe", answer


@contextlib.contextmanager
def restarts(daemon):
    """Somebody dies in the block, and is there again: core by the launcher, the launcher by us, without the fault. How
    soon is for test_kills to say, which has the machine for itself."""
    core = daemon.core_pid()
    yield
    died = lambda: daemon.process.poll() is not None or daemon.core_pid() not in (core, None)
    assert eventually(died), "nobody died"
    if daemon.process.poll() is not None:
        daemon.env.pop("CARREL_FAULT", None)
        daemon.start_serving(wait=False)
    assert eventually(daemon.is_ready), "not ready again"


def attempt(daemon, method, path, body=None, headers=None, timeout=60):
    """The answer, or None when the daemon died meanwhile. One that keeps us waiting is a fault."""
    try:
        return daemon.request(method, path, body, headers, timeout)
    except TimeoutError:
        raise AssertionError(f"{method} {path}: no answer") from None
    except (OSError, http.client.HTTPException):
        return None


class Load:
    """Clients that create, run, write and remove until told to stop. What was acknowledged is remembered, and must hold
    afterwards; a connection that breaks is no acknowledgement."""

    def __init__(self, daemon, clients=4, seed=0):
        self.daemon, self.is_stopping, self.faults = daemon, threading.Event(), []
        self.counts = Counter()
        self.known = [{} for _ in range(clients)]       # name: {file: content}
        self.execs = [[] for _ in range(clients)]       # (id, name) of background ones
        self.uncertain = [set() for _ in range(clients)]    # what a broken request was about
        self.threads = [threading.Thread(target=self.run, args=(n, random.Random(seed * 1000 + n))) for n in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_stopping.set()
        for thread in self.threads:
            thread.join()

    def run(self, n, dice):
        step = 0
        try:
            while not self.is_stopping.is_set():
                step += 1
                known = [name for name in self.known[n] if name not in self.uncertain[n]]
                if not known or (len(known) < 3 and dice.random() < 0.2):
                    self.create(n, f"w{n}-{step}")
                elif dice.random() < 0.1:
                    self.remove(n, dice.choice(known))
                elif dice.random() < 0.3:
                    self.write(n, dice.choice(known), step)
                elif dice.random() < 0.3:
                    self.start(n, dice.choice(known))
                else:
                    self.execute(n, dice.choice(known), step)
        except Exception as error:      # noqa: BLE001: told to the test
            self.faults.append(error)

    def ask(self, method, path, body=None, allowed=()):
        """The answer, or None when it is none: broken off, or the daemon isn't there (again)."""
        answer = attempt(self.daemon, method, path, body)
        if answer is None:
            time.sleep(0.02)
            return None
        if answer.status == 503:
            time.sleep(0.02)
            return None
        if answer.status >= 400 and answer.status not in allowed:
            raise AssertionError((method, path, answer))
        self.counts[f"{method} {path.rsplit('/', 1)[-1] if 'exec' in path else 'files' if 'files' in path else 'workspaces'}"] += 1
        return answer

    def create(self, n, name):
        self.uncertain[n].add(name)
        answer = self.ask("POST", "/v1/workspaces", {"name": name}, allowed=(409,))
        if answer and answer.status == 201:
            self.uncertain[n].discard(name)
            self.known[n][name] = {}

    def remove(self, n, name):
        self.uncertain[n].add(name)
        answer = self.ask("DELETE", f"/v1/workspaces/{name}", allowed=(404,))
        if answer:
            del self.known[n][name]
            self.uncertain[n].discard(name)
            self.execs[n] = [one for one in self.execs[n] if one[1] != name]

    def write(self, n, name, step):
        content = f"{name} {step}".encode() * 100
        file = f"f{step % 5}"
        self.known[n][name].pop(file, None)     # either of both, if this breaks off
        if self.ask("PUT", f"/v1/workspaces/{name}/files/{file}", content):
            self.known[n][name][file] = content

    def start(self, n, name):
        answer = self.ask("POST", f"/v1/workspaces/{name}/exec", {"argv": ["sh", "-c", "echo started"], "background": True}, allowed=(409,))
        if answer and answer.status < 300:
            self.execs[n].append((answer.json()["id"], name))

    def execute(self, n, name, step):
        answer = self.ask("POST", f"/v1/workspaces/{name}/exec", {"argv": ["echo", str(step)]}, allowed=(409,))
        if answer and answer.status == 200 and answer.json()["reason"] == "exited":
            assert answer.json()["stdout"] == f"{step}\n", answer

    def check(self):
        """All that was acknowledged is there, and nothing else is."""
        assert not self.faults, self.faults
        there = settled(self.daemon)
        known = {name for each in self.known for name in each}
        uncertain = set().union(*self.uncertain)
        assert known - uncertain <= set(there) <= known | uncertain, (known, uncertain, set(there))
        for each in self.known:
            for name, content in each.items():
                for file, wanted in content.items() if name in there and name not in uncertain else ():
                    answer = self.daemon.get(f"/v1/workspaces/{name}/files/{file}")
                    assert answer.status == 200 and answer.body == wanted, (name, file, answer)
        for id_, name in (one for each in self.execs for one in each if one[1] in there and one[1] not in uncertain):
            answer = self.daemon.get(f"/v1/execs/{id_}")
            assert answer.status == 200, (id_, name, answer)
        for item in list(there.values())[:4]:
            is_whole(self.daemon, item)
