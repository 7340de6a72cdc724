"""What the tests that talk to a daemon share: tests/api and tests/fault have these fixtures.

`daemon` is shared by the tests of one module: each cleans up what it makes there. `own_daemon` is the test's own, for
those that stop, kill or starve it. `make_daemon` starts as many as are wanted, with options. Each has a home of its own;
when it has stopped, nothing of it may be left: no process, no mount, no control group, no socket."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from harness import OWN_PLACES, Carrel, cgroups, check_mounts, children, copy_home, descendants, eventually, family, locked, mounts, note_carrel, what_stays

READY_SECONDS = 60
LIVE = []           # the daemons that serve just now
LAST_WORDS = []     # (title, text) of those that ended during the test


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path, timeout=120):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.sock.settimeout(self.timeout)
        # An address has room for 107 bytes; the directories of tests are longer.
        directory = os.open(os.path.dirname(self.path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sock.connect(f"/proc/self/fd/{directory}/{os.path.basename(self.path)}")
        finally:
            os.close(directory)


class Answer:
    """What came back: status, headers, body (bytes), and the body as JSON."""

    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:500]!r}>"


class Daemon(Carrel):
    """A daemon in the foreground on a home of its own; as a function it is the CLI on that home."""

    def __init__(self, directory, *options, env=None, listen=None, program=None):
        super().__init__(directory)
        self.path = str(program or self.path)
        self.options, self.env = options, {**self.env, **(env or {})}
        self.socket = listen or pathlib.Path(self.env["CARREL_HOME"], "run/carrel.sock")
        if listen:
            self.options += ("--listen", f"unix:{listen}")
        self.log_path = directory / "serve.log"
        self.process, self.names, self.code = None, set(), None

    # ---- its life ----

    def start_serving(self, wait=True, **how):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([self.path, "serve", *map(str, self.options)], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=self.env, **how)
        self.names.add(note_carrel(self.process))
        if wait:
            self.await_ready()
        return self

    def await_ready(self, seconds=READY_SECONDS):
        assert eventually(lambda: self.process.poll() is not None or self.is_ready(), seconds), "not ready"
        assert self.process.poll() is None, f"ended with {self.process.returncode}"

    def is_ready(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get("/readyz", timeout=5).status == 200
        return False

    def stop_serving(self, signo=signal.SIGTERM, seconds=60):
        """Its exit code; -signo when it was killed."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signo)
        process, self.process = self.process, None
        try:
            self.code = process.wait(seconds)
            return self.code
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"still runs {seconds} s after signal {signo}") from None

    def restart(self, signo=signal.SIGTERM):
        self.stop_serving(signo)
        return self.start_serving()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def last_words(self, length=4000):
        """The end of its log, as a section of a test's report."""
        return f"log of the daemon at {self.home}", self.log()[-length:]

    def owns_cgroup(self, path):
        return any(os.path.basename(path).startswith(f"carrel-{name}-") for name in self.names)

    def core_pid(self):
        """The process that is carreld."""
        return next((pid for pid, (_, name) in descendants(self.process.pid).items() if name == "carreld"), None)

    @contextlib.contextmanager
    def new_core(self):
        """Core ends in the block, or because of it; afterwards another one serves."""
        core = self.core_pid()
        yield
        ended = lambda: self.process.poll() is not None or self.core_pid() not in (core, None)
        assert eventually(ended), "core did not end"
        self.await_ready()

    def kill_core(self):
        """Afterwards another one serves."""
        with self.new_core():
            os.kill(self.core_pid(), signal.SIGKILL)

    # ---- talking to it ----

    def connection(self, timeout=120):
        return Connection(self.socket, timeout)

    def request(self, method, path, body=None, headers=None, timeout=120):
        """One request on a connection of its own; a body that isn't bytes or a file is sent as JSON."""
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        with contextlib.closing(self.connection(timeout)) as connection:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())

    def get(self, path, **how):
        return self.request("GET", path, **how)

    def post(self, path, body=None, **how):
        return self.request("POST", path, body, **how)

    def delete(self, path, **how):
        return self.request("DELETE", path, **how)


def remove(directory):
    """By rm: it may be deeper than Python can walk. An overlay's work directory has mode 0000, which stops a plain user's rm."""
    if subprocess.run(["rm", "-rf", directory], stderr=subprocess.DEVNULL).returncode != 0:
        subprocess.run(["chmod", "-R", "u+rwX", directory], check=True)
        subprocess.run(["rm", "-rf", directory], check=True)


def strays(before):
    """{pid: (state, name)} of what runs below us, wasn't there before, and is no live daemon's. One look: what a daemon
    starts lives for moments."""
    daemons = {daemon.process.pid for daemon in LIVE if daemon.process}
    # Nothing but daemons is below us: no need to read all of /proc, which took a third of the time of these tests' own process.
    if (own := children()) is not None and own <= daemons:
        return {}
    return {pid: what for pid, what in family(os.getpid(), daemons).items() if pid not in before}


def kill_strays(before):
    """Waits until there are none; those that stayed, which are killed."""
    survivors = what_stays(lambda: strays(before))
    for pid in survivors:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return survivors


@contextlib.contextmanager
def serving(directory, *options, check=True, **how):
    """A daemon that serves in the block; afterwards nothing of it may be left."""
    before, mounts_before = strays(()), mounts()
    daemon = Daemon(directory, *options, **how)
    LIVE.append(daemon)
    try:
        yield daemon.start_serving()
    finally:
        try:
            daemon.stop_serving()
            if check and daemon.code == -signal.SIGKILL:    # what that left, the next one removes
                daemon.start_serving().stop_serving()
        finally:
            LIVE.remove(daemon)
            LAST_WORDS.append(daemon.last_words())
            survivors = kill_strays(before)
    if not check:
        return
    assert daemon.code == 0, f"ended with {daemon.code}"
    # A role that a sanitizer ended is started again: nobody else would notice.
    assert "Sanitizer" not in daemon.log() and "runtime error" not in daemon.log(), daemon.log()
    assert not survivors, f"processes survived: {survivors}"
    check_mounts(mounts_before)
    groups = what_stays(lambda: {group for group in cgroups() if daemon.owns_cgroup(group)})
    assert not groups, f"control groups stayed: {groups}"
    assert not daemon.socket.exists(), "the socket stayed"


@pytest.fixture(autouse=True)
def nothing_survives():
    """As everywhere, but what a daemon has started that other tests use too is its own."""
    before, mounts_before = strays(()), mounts()
    yield
    survivors = kill_strays(before)
    assert not survivors, f"processes survived: {survivors}"
    check_mounts(mounts_before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """With a failure comes what its daemons said: CI's log is all that is left of them."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.sections += LAST_WORDS + [daemon.last_words() for daemon in LIVE]
    if report.when == "teardown":
        LAST_WORDS.clear()


def new_directory(below="/var/tmp"):
    """Not below pytest's own: its names are long, and every user must be able to walk there."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="carrel-tests.", dir=below))
    directory.chmod(0o755)
    OWN_PLACES.add(str(directory))
    return directory


@contextlib.contextmanager
def serving_anew(*below, source=None):
    """One on a new home, or on a copy of `source`, which goes with it."""
    directory = new_directory(*below)
    try:
        furnish(directory, source)
        with serving(directory) as daemon:
            yield daemon
    finally:
        remove(directory)


@pytest.fixture(scope="module")
def daemon():
    with serving_anew() as daemon:
        yield daemon


def configure(daemon, text):
    """Serves anew with that config.yaml, as carrel wants it: root's, as root."""
    daemon.stop_serving()
    path = pathlib.Path(daemon.env["CARREL_HOME"], "config.yaml")
    path.write_text(text)
    path.chmod(0o644)
    return daemon.start_serving()


def furnish(directory, source):
    if source:
        copy_home(source, directory / "carrel", leave=("run", "audit"), link=True)


@contextlib.contextmanager
def making_daemons(source=None):
    """The function of make_daemon."""
    with contextlib.ExitStack() as stack:
        def make(*options, **how):
            directory = new_directory()
            stack.callback(remove, directory)
            furnish(directory, source)
            return stack.enter_context(serving(directory, *options, **how))
        yield make


@pytest.fixture
def make_daemon():
    """make_daemon(*options, env={}, listen=None, program=None, check=True): one that serves already, on a new home."""
    with making_daemons() as make:
        yield make


@pytest.fixture
def own_daemon(make_daemon):
    return make_daemon()


# ---- with what environments are made of, for modules that import the fixtures as `daemon` and `make_daemon` ----

@pytest.fixture(scope="session")
def furnished_home(common):
    """Has uv and the layers of an empty environment and of one with pytest: what contexts and tools need. Made once for all workers: the
    first environment of a home takes three seconds of a processor."""
    home = common / "furnished"
    with locked(common / "furnished.lock"):
        if not (common / "furnished.done").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            for packages in ([], ["--pip", "pytest"]):
                done = Carrel(home)("env", "build", "furniture", *packages, timeout=300)
                assert done.returncode == 0, done.stderr
            (common / "furnished.done").touch()
    return home / "carrel"


@pytest.fixture(scope="module")
def furnished_daemon(furnished_home):
    with serving_anew(source=furnished_home) as daemon:
        yield daemon


@pytest.fixture
def make_furnished(furnished_home):
    with making_daemons(furnished_home) as make:
        yield make
