"""How the black-box tests call carrel, which they know only as a program: $CARREL, else build/carrel of this checkout."""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import time

TREE = pathlib.Path(os.environ.get("TREE") or pathlib.Path(__file__).resolve().parent.parent)
CARREL = os.environ.get("CARREL") or str(TREE / "build/carrel")
PATH = "/usr/local/bin:/usr/bin:/bin"
IS_ROOT = os.getuid() == 0
SANITIZED = "SANITIZED" in os.environ
# What configures pip and uv, and with them carrel, for the tests that need the real index.
CLIENTS = {name: value for name, value in os.environ.items()
           if name.startswith(("PIP_", "UV_", "SSL_CERT_")) or name.lower() in ("http_proxy", "https_proxy", "no_proxy")}


# What this worker has made: the machine has other users, and their processes, mounts, groups and files come and go.
WALL = 0x40000000       # of <linux/wait.h>: children of every kind
OWN_CARRELS = set()     # "PID-START" of every carrel that it started, as in the names of control groups
OWN_PLACES = set()      # directories: mounts are made from them, or on them

# Of a workspace that is not of the kind that the daemon makes ahead: it gets its sandbox with its first command.
NOT_AHEAD = {"pids": 1000}


def note_carrel(process):
    """Remembers it by its pid and its start: pids come again. Its name in OWN_CARRELS."""
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text(errors="replace")
    name = f"{process.pid}-{stat[stat.rindex(')') + 2:].split()[19]}"
    OWN_CARRELS.add(name)
    return name


def eventually(claim, seconds=60):
    """Waits until claim() is true, at most so long; its last value. Who was kept from looking looks again at the end."""
    start = time.monotonic()
    while True:
        waited = time.monotonic() - start
        if (value := claim()) or waited >= seconds:
            return value
        # A look costs the daemon something, too: the longer it takes, the fewer of them.
        time.sleep(min(max(0.01, waited / 10), 0.05))


def what_stays(find, seconds=60):
    """Waits until find() finds nothing; what it found last. Nobody looks twice: between two looks something may come."""
    found = None

    def is_gone():
        nonlocal found
        found = find()
        return not found

    eventually(is_gone, seconds)
    return found


PEAK = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(done.returncode)"""


def run_measured(*argv, **how):
    """What a program comes to, and the peak of the memory of its largest process in KiB: started by a process that has little memory
    itself, as the peak of a child counts that of its parent before execve."""
    done = subprocess.run(["/usr/bin/python3", "-c", PEAK, *argv], capture_output=True, text=True, check=False, **how)
    said, _, peak = done.stderr.rstrip("\n").rpartition("\n")
    return subprocess.CompletedProcess(argv, done.returncode, done.stdout, said), int(peak)


@contextlib.contextmanager
def locked(path):
    """One process at a time: the workers of pytest-xdist share what takes long to make."""
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def programs_of(name):
    """The directory with the programs of a virtual environment that all users share."""
    done = subprocess.run([TREE / "tools/install-venv", name], check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(done.stdout.strip()) / "bin"


def copy_home(source, target, leave=("tools", "run", "audit"), link=False):
    """A home of its own made from another one, without these parts. With `link` what nobody changes in place is the same file in
    both, where they are on one disk: layers and tools are thousands of files, and half a second of a processor."""
    def copy(entries, into, *options):
        if entries:
            subprocess.run(["cp", "-a", *options, *entries, into], check=True)

    def keep_owner(before, after):
        shutil.copystat(before, after)
        if os.getuid() == 0:
            status = before.stat()
            os.chown(after, status.st_uid, status.st_gid)

    target.mkdir(parents=True)
    keep_owner(source, target)
    link = link and source.stat().st_dev == target.stat().st_dev
    whole = [entry for entry in source.iterdir() if entry.name not in leave]
    for entry in [entry for entry in whole if link and entry.name in ("layers", "tools")]:
        whole.remove(entry)
        within = target / entry.name
        within.mkdir()
        # What begins with a dot is locked, or written.
        fixed = [each for each in entry.iterdir() if each.is_dir() and not each.name.startswith(".")]
        copy(fixed, within, "--link")
        copy([each for each in entry.iterdir() if each not in fixed], within)
        keep_owner(entry, within)
    copy(whole, target, "--reflink=auto")


def limits_mechanism():
    """By what carrel can keep limits here: what `limits` of a result must say."""
    own = dict((line.split(":")[1], line.split(":", 2)[2].strip()) for line in open("/proc/self/cgroup"))
    def writable(*parts):
        return os.access(os.path.join(*parts), os.W_OK)
    for line in open("/proc/self/mounts"):
        _, point, kind, options = line.split()[:4]
        if kind == "cgroup" and "memory" in options.split(","):
            return "cgroup-v1" if writable(point, own.get("memory", "/").lstrip("/")) else "watchdog"
    controllers = pathlib.Path("/sys/fs/cgroup", own.get("", "/").lstrip("/"), "cgroup.controllers")
    if controllers.exists() and "memory" in controllers.read_text() and writable(controllers.parent):
        return "cgroup-v2"
    return "watchdog"


MECHANISM = limits_mechanism()
# Each of 480 connections on the loopback holds what the kernel takes of it: some 100 KB, whatever the limit of their sum.
FILL_SOCKETS = """
import signal, socket
listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
pairs = []
for _ in range(480):
    pairs.append((socket.create_connection(listener.getsockname()), listener.accept()[0]))
    pairs[-1][0].setblocking(False)
while True:
    for connection, _ in pairs:
        try:
            while True: connection.send(bytes(65536))
        except BlockingIOError: pass
"""


class Carrel:
    """The program, called with an environment of its own. As a function it runs to the end."""

    path = CARREL

    def __init__(self, home):
        self.home = home
        self.env = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": str(home), "CARREL_HOME": str(home / "carrel"),
                    **{name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}}

    def _how(self, how):
        how["env"] = {**self.env, **how.pop("env", {})}
        if how.pop("text", True) and "encoding" not in how:
            how.update(encoding="utf-8", errors="surrogateescape")
        return how

    def __call__(self, *args, timeout=120, **how):
        """A CompletedProcess; stdout and stderr are text, or bytes with text=False."""
        if "input" not in how:
            how.setdefault("stdin", subprocess.DEVNULL)
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        data = how.pop("input", None)
        if data is not None:
            how["stdin"] = subprocess.PIPE
        with subprocess.Popen([self.path, *map(os.fspath, args)], **self._how(how)) as process:
            note_carrel(process)
            try:
                out, errors = process.communicate(data, timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, errors)

    @contextlib.contextmanager
    def start(self, *args, **how):
        """A running carrel (Popen), killed at the end of the block if it is still there."""
        how.setdefault("stdin", subprocess.DEVNULL)
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        with subprocess.Popen([self.path, *map(os.fspath, args)], **self._how(how)) as process:
            note_carrel(process)
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def run(self, *args, **how):
        return self("run", *args, **how)

    def run_json(self, *args, **how):
        """The result object of `carrel run -o json`, which must agree with the exit code."""
        done = self("run", "-o", "json", *args, **how)
        assert done.stdout, f"nothing on stdout; stderr: {done.stderr}"
        result = json.loads(done.stdout)
        if "exit_code" in result:
            assert done.returncode == result["exit_code"], (done.returncode, result)
            assert done.stderr == "", done.stderr
        return result

    def sh(self, script, *options, **how):
        return self.run(*options, "--", "sh", "-c", script, **how)

    def py(self, script, *options, **how):
        return self.run(*options, "--", "/usr/bin/python3", "-c", script, **how)

    def sh_json(self, script, *options, **how):
        return self.run_json(*options, "--", "sh", "-c", script, **how)

    def py_json(self, script, *options, **how):
        return self.run_json(*options, "--", "/usr/bin/python3", "-c", script, **how)


def one_line(stderr, *names):
    """An error as design.md wants it: one line that names its object, perhaps a second with a hint. The hint, or None."""
    lines = stderr.splitlines()
    assert lines and lines[0].startswith("carrel: "), stderr
    assert len(lines) <= 2 and all(line.startswith("hint: ") for line in lines[1:]), stderr
    for name in names:
        assert str(name) in lines[0], (name, stderr)
    return lines[1][len("hint: "):] if lines[1:] else None


def stat_of(pid):
    """(parent, state, name) of a process, or None. Twice a test all of /proc is read: pathlib would take three times as long."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        stat = os.read(descriptor, 4096)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    end = stat.rindex(b")")
    state, parent = stat[end + 2:].split(None, 2)[:2]
    return int(parent), state.decode(), stat[stat.index(b"(") + 1:end].decode(errors="replace")


def processes():
    """(pid, parent, state, name) of every process there is."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := stat_of(entry)):
            yield int(entry), *stat


def has_children():
    """Whether this process has a child, also one that has ended. It is a subreaper: without a child it has no descendant."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | WALL)
        return True
    except ChildProcessError:
        return False


def children():
    """The pids of this process's own children, of all its threads; None where the kernel doesn't list them. Those of a thread that
    ends go to another one: only a look during which the threads stayed the same says something."""
    while True:
        threads, found = sorted(os.listdir("/proc/self/task")), set()
        try:
            for thread in threads:
                found.update(map(int, pathlib.Path(f"/proc/self/task/{thread}/children").read_text().split()))
        except FileNotFoundError:
            if not os.path.exists("/proc/thread-self/children"):
                return None
        if threads == sorted(os.listdir("/proc/self/task")):
            return found


def family(root, leave=()):
    """{pid: (state, name)} of the living processes below `root`, without `leave` and what is below those."""
    if root == os.getpid() and not has_children():
        return {}
    children = {}
    for pid, parent, state, name in processes():
        children.setdefault(parent, []).append((pid, state, name))
    found, wave = {}, [root]
    while wave:
        members = [row for parent in wave for row in children.get(parent, ()) if row[0] not in leave and row[0] not in found]
        found.update((pid, (state, name)) for pid, state, name in members)
        wave = [pid for pid, _, _ in members]
    return {pid: what for pid, what in found.items() if what[0] not in "ZX"}


def descendants(root=None):
    """{pid: (state, name)} of the living processes below `root` (this one)."""
    return family(root or os.getpid())


TEST_MOUNT = "carrel-tests"      # the source of what tests mount themselves, which others may see


def mounts(pid="self"):
    """All but what a test has mounted on purpose; where others may mount, too, only those of this worker's places."""
    is_shared = pid == "self" or os.stat(f"/proc/{pid}/ns/mnt").st_ino == os.stat("/proc/self/ns/mnt").st_ino
    text = pathlib.Path(f"/proc/{pid}/mountinfo").read_text(errors="surrogateescape")
    if is_shared and not any(place in text for place in OWN_PLACES):
        return set()
    is_own = lambda line: not is_shared or any(place in line for place in OWN_PLACES)
    return {line.split(" ", 1)[1] for line in text.split("\n") if line and f" {TEST_MOUNT} " not in line and is_own(line)}


def check_mounts(before):
    """None has come to stay."""
    stayed = what_stays(lambda: mounts() - before)
    assert not stayed, f"mounts stayed: {stayed}"


def cgroups():
    """As os.walk would find them, which reads also the dozens of files of those that have nothing below."""
    found, wave = set(), ["/sys/fs/cgroup"]
    for directory in wave:
        with contextlib.suppress(OSError):
            if os.stat(directory).st_nlink == 2 or directory.count("/") > 8:
                continue
            below = [entry.path for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)]
            found.update(path for path in below if os.path.basename(path).startswith("carrel"))
            wave += below
    return found


def dead_cgroups():
    """Those of a carrel that this worker started and that is gone."""
    words = lambda path: os.path.basename(path).split("-")
    return {path for path in cgroups() if "-".join(words(path)[1:3]) in OWN_CARRELS and not os.path.exists("/proc/" + words(path)[1])}


def files(home):
    """Carrel's own files: of its home, and what bears its name and its pid where temporary files are."""
    pids = [name.split("-")[0] for name in OWN_CARRELS]
    found = set()
    for directory, names, others in os.walk(home):
        found.update(os.path.join(directory, name) for name in names + others)
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
        with contextlib.suppress(OSError):
            found.update(os.path.join(place, name) for name in os.listdir(place)
                         if "carrel" in name and any(pid in name for pid in pids) and not name.startswith("carrel-test"))
    return found
