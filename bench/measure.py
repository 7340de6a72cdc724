"""The ids that are measured, and the resident processes that run and time commands under them."""

import contextlib
import fcntl
import os
import pwd
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time

from rows import find

PATIENCE_S = 30  # for one command; none needs a tenth of it
IDLE_S = 12  # for 10 s after a command a carrel-init has the next one's process ready
QUIET_SHARE = 0.9
QUIET_SAMPLE_S = 0.25
QUIET_BUDGET_S = 60

# sandbox/init/protocol.h
INIT_SOCKET_FD = 3
INIT_MAGIC = 0x43524C31
INIT_REQUEST = "IIQIIIIiI"
INIT_SPAWN, INIT_ACK = 1, 3
INIT_STARTED, INIT_EXITED = 64, 66
INIT_NO_PIDFD = 4


class Failed(Exception):
    """Something could not be measured; the text says what and why."""


class Who:
    """An id to measure as, with a directory of its own."""

    def __init__(self, name, uid, gid, directory):
        self.name = name
        self.uid = uid
        self.gid = gid
        self.directory = directory
        self.workspace = os.path.join(directory, "workspace")
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": os.path.join(directory, "home"),
            "CARREL_HOME": os.path.join(directory, "carrel"),
            "XDG_RUNTIME_DIR": os.path.join(directory, "runtime"),
        }
        for path in [directory, self.workspace, self.env["HOME"], self.env["XDG_RUNTIME_DIR"]]:
            os.mkdir(path, 0o700)
            os.chown(path, uid, gid)

    def prefix(self, wrap=()):
        """The words that make the command after them run as this id, inside what `wrap` sets up."""
        if self.uid == os.geteuid():
            return list(wrap)
        return [
            *wrap,
            find("setpriv"),
            f"--reuid={self.uid}",
            f"--regid={self.gid}",
            "--clear-groups",
            "--",
        ]


@contextlib.contextmanager
def plain_user():
    """Makes a user for the time of the run: (uid, gid). No home, no login, no subordinate ids."""
    name = f"carrelbench{os.getpid()}"
    done = subprocess.run(
        [
            find("useradd") or "useradd",
            "--system",
            "--no-create-home",
            "--user-group",
            "--shell",
            "/usr/sbin/nologin",
            name,
        ],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Failed("can't make a plain user: " + done.stderr.strip())
    try:
        entry = pwd.getpwnam(name)
        yield entry.pw_uid, entry.pw_gid
    finally:
        subprocess.run([find("userdel"), name], stderr=subprocess.DEVNULL, check=False)


class Runner:
    """One resident bench/spawn. All commands of one id (and one wrap) go through the same one.

    Or another program (`words` follow its name) that takes the same requests."""

    def __init__(self, spawn, who, wrap=(), env=(), pass_fds=(), words=()):
        self.process = subprocess.Popen(
            [*who.prefix(wrap), spawn, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**who.env, **dict(env)},
            cwd="/",
            pass_fds=pass_fds,
            start_new_session=True,
        )

    def run(self, argv, count=1, patience_s=PATIENCE_S):
        """Runs argv `count` times back to back: a list of (ns before, ns after, wait status)."""
        try:
            self.process.stdin.write(("\t".join(argv) + "\n").encode() * count)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"{' '.join(argv)}: runner died") from None
        answers = []
        rest = b""
        while len(answers) < count:
            ready, _, _ = select.select([self.process.stdout], [], [], patience_s)
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not data:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
                raise Failed(
                    f"{' '.join(argv)}: "
                    + (f"no end after {patience_s} s" if not ready else "runner died")
                )
            *lines, rest = (rest + data).split(b"\n")
            answers += [tuple(int(word) for word in line.split()) for line in lines]
        for answer in answers:
            if answer[2] != 0:
                raise Failed(f"{' '.join(argv)}: wait status {answer[2]}")
        return answers

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def try_row(row):
    """Runs the row once, not timed, to learn whether it works here: None, or what it said."""
    try:
        done = subprocess.run(
            [*row.who.prefix(row.wrap), *row.argv],
            env=row.who.env,
            cwd="/",
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return f"exit {done.returncode}" + (f": {said[0][:160]}" if said else "")


def descendants(pid):
    """All processes below `pid`."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as children:
                for child in children.read().split():
                    found += [int(child), *descendants(int(child))]
    except OSError:
        pass  # it ended meanwhile
    return found


def field(pid, file, name):
    with open(f"/proc/{pid}/{file}", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(name + ":"):
                return line.split()[1:]
    raise Failed(f"/proc/{pid}/{file} has no {name}")


def pss_kb(pid):
    """kB of memory of a process, shared pages counted by share."""
    try:
        return int(field(pid, "smaps_rollup", "Pss")[0])
    except PermissionError:
        raise Failed("carrel-init is not dumpable, so only root may read its memory map") from None


def cold_init_pss(carrel, who):
    """That of carrel-init while the command of `carrel run` sleeps."""
    process = subprocess.Popen(
        [*who.prefix(), carrel, "run", "--", "/bin/sleep", "60"],
        env=who.env,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            below = descendants(process.pid)
            try:
                names = [field(pid, "status", "Name")[0] for pid in below]
                init = [pid for pid in below if field(pid, "status", "NSpid")[1:] == ["1"]]
                if "sleep" in names and len(init) == 1:
                    time.sleep(0.1)  # the last of its start has then happened
                    return pss_kb(init[0])
            except (FileNotFoundError, ProcessLookupError):
                pass  # one of them was just going
            time.sleep(0.02)
        raise Failed("no process 1 of a sandbox seen below `carrel run`")
    finally:
        process.terminate()
        process.wait()


def start_warm_init(image, listener):
    """Runs carrel-init from a memfd, as a sandbox does, with the listening socket at its place."""
    memory = os.memfd_create("carrel-init")
    with open(image, "rb") as file, open(memory, "wb", closefd=False) as copy:
        copy.write(file.read())
    pid = os.fork()
    if pid == 0:
        try:
            memory = fcntl.fcntl(memory, fcntl.F_DUPFD_CLOEXEC, 10)
            os.dup2(listener.fileno(), INIT_SOCKET_FD)
            os.set_inheritable(INIT_SOCKET_FD, True)  # dup2 does nothing when it is there
            os.execve(memory, ["carrel-init"], {})
        finally:
            os._exit(127)
    os.close(memory)
    return pid


def warm_init_pss(image, directory):
    """That of a resident carrel-init which has run a command and waits for the next, for so long that the process it
    keeps ready for that one has gone (docs/design/0014)."""
    body = b"/bin/true\0/\0"
    spawn = struct.pack(
        INIT_REQUEST, INIT_MAGIC, INIT_SPAWN, 1, 1, 0, INIT_NO_PIDFD, len(body), 0, 0
    )
    acknowledge = struct.pack(INIT_REQUEST, INIT_MAGIC, INIT_ACK, 1, 0, 0, 0, 0, 0, 0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(os.path.join(directory, "init.sock"))
        listener.listen()
        pid = start_warm_init(image, listener)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as master:
                master.settimeout(PATIENCE_S)
                master.connect(listener.getsockname())
                with open(os.devnull, "r+b", buffering=0) as null:
                    socket.send_fds(master, [spawn + body], [null.fileno()] * 3)
                answers = []
                while not answers or answers[-1] == INIT_STARTED:
                    answers.append(struct.unpack_from("II", master.recv(4096))[1])
                if answers[-1] != INIT_EXITED:
                    raise Failed(f"carrel-init answered a spawn with message {answers[-1]}")
                master.send(acknowledge)
                time.sleep(IDLE_S)
                return pss_kb(pid)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def idle_share(seconds):
    """The share of all CPUs that nobody used, over some time."""

    def read():
        with open("/proc/stat", encoding="ascii") as lines:
            times = [int(word) for word in lines.readline().split()[1:9]]
        return times[3] + times[4], sum(times)

    idle, total = read()
    time.sleep(seconds)
    idle_then, total_then = read()
    return (idle_then - idle) / max(1, total_then - total)


class Quiet:
    """Other work spoils the figures: waits for its end, but QUIET_BUDGET_S in all at most."""

    def __init__(self):
        self.shares = []  # of idle CPU, each just before a part of the measurement
        self.left_s = QUIET_BUDGET_S

    def wait(self):
        share = idle_share(QUIET_SAMPLE_S)
        while share < QUIET_SHARE and self.left_s > 0:
            self.left_s -= QUIET_SAMPLE_S
            share = idle_share(QUIET_SAMPLE_S)
        self.shares.append(share)

    def __str__(self):
        calm = sum(share >= QUIET_SHARE for share in self.shares)
        return f"before {calm} of {len(self.shares)} parts at least {QUIET_SHARE:.0%} idle"


TRACE = re.compile(rb"trace (\d+) (\d+) (.+)")


def trace_once(runner, carrel, pipe):
    """One traced run: a list of (process number, step, ns since the start, ns it took)."""
    before, after, _ = runner.run([carrel, "run", "--", "/bin/true"])[0]
    data = b""
    while select.select([pipe], [], [], 0)[0]:
        data += os.read(pipe, 65536)
    marks = sorted((int(ns), int(pid), step.decode()) for ns, pid, step in TRACE.findall(data))
    if not marks:
        raise Failed("the tracing build wrote no steps")
    order = []  # pids as they appear
    last = {}
    latest = before
    steps = []
    for ns, pid, step in marks:
        if pid not in order:
            order.append(pid)
        steps.append((order.index(pid), step, ns - before, ns - last.get(pid, latest)))
        last[pid] = latest = ns
    steps.append((0, "(end seen by the caller)", after - before, after - latest))
    return steps


def trace(spawn, carrel, who, runs):
    """Runs the tracing build: a list of such runs, the first ones left out."""
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    runner = Runner(spawn, who, env={"CARREL_TRACE_FD": str(write_end)}, pass_fds=[write_end])
    os.close(write_end)
    try:
        return [trace_once(runner, carrel, read_end) for _ in range(runs + 5)][5:]
    finally:
        runner.close()
        os.close(read_end)


def say(text):
    print(text, file=sys.stderr, flush=True)
