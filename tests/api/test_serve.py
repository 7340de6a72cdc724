"""carrel serve: one daemon a home, found, refused, stopped, handed over, and locked in."""
# security: daemon
import concurrent.futures
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile

import pytest

from daemons import Connection
from harness import CARREL, IS_ROOT, MECHANISM, Carrel, descendants, eventually, one_line


@pytest.fixture
def stopped(carrel):
    """carrel on a home whose daemon, if it has one, is ended after the test."""
    yield carrel
    assert carrel("serve", "--stop").returncode == 0


def socket_of(carrel):
    return pathlib.Path(carrel.env["CARREL_HOME"], "run/carrel.sock")


def ask(path, target="/readyz", timeout=60):
    with contextlib.closing(Connection(path, timeout)) as connection:
        connection.request("GET", target)
        return connection.getresponse().status


def is_served(path):
    """A socket that is there already may not be listened on yet."""
    with contextlib.suppress(OSError):
        return ask(path) == 200
    return False


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


# ---- one daemon a home ----

def test_a_second_daemon_refuses_and_names_the_first(daemon):
    for arguments in ((), ("--background",), ("--listen", f"unix:{daemon.home}/other.sock")):
        done = daemon("serve", *arguments)
        assert done.returncode == 125
        assert one_line(done.stderr, daemon.process.pid, daemon.socket) == "carrel serve --stop ends it"
    assert daemon.is_ready()


def test_the_socket_is_for_the_owner_alone(daemon):
    status = daemon.socket.stat()
    assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_uid == pathlib.Path(daemon.env["CARREL_HOME"]).stat().st_uid != 0


@pytest.mark.kernel
def test_the_core_is_dropped_and_locked(daemon):
    pid = daemon.core_pid()
    status = status_of(pid)
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    for capabilities in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"):
        assert int(status[capabilities], 16) == 0
    assert "0" not in status["Uid"].split() and status["NSpid"].split()[-1] == "1"
    if IS_ROOT:
        assert status["Groups"].split() == []
        # Its root holds what libraries need, and the home.
        root = set(os.listdir(f"/proc/{pid}/root"))
        assert root <= {"usr", "lib", "lib64", "lib32", "etc", "dev", "proc", "program", "var"}
        assert os.listdir(f"/proc/{pid}/root/etc") == ["ld.so.cache"]
        for namespace in ("mnt", "pid", "net", "ipc", "uts"):
            assert os.readlink(f"/proc/{pid}/ns/{namespace}") != os.readlink(f"/proc/{daemon.process.pid}/ns/{namespace}")
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        soft, hard = next(line for line in limits.splitlines() if "open files" in line).split()[3:5]
        assert int(soft) == min(int(hard), 1048576)
        assert next(line for line in limits.splitlines() if "core file" in line).split()[4:6] in (["1", "1"], ["0", "0"])


def test_stop_ends_it_and_says_so_when_there_is_none(carrel):
    done = carrel("serve", "--background")
    assert done.returncode == 0, done.stderr
    assert ask(socket_of(carrel)) == 200
    done = carrel("serve", "--stop")
    assert done.returncode == 0 and done.stdout.startswith("stopped the daemon (pid ")
    assert not socket_of(carrel).exists()
    done = carrel("serve", "--stop")
    assert done.returncode == 0 and done.stdout.startswith("no daemon runs")
    done = carrel("serve", "--stop", "-o", "json")
    assert json.loads(done.stdout) == {"stopped": False, "pid": 0}


def test_stop_ends_no_other_process_that_has_the_lock(stopped):
    """Whose number it has can be forged by the home's owner."""
    assert stopped("serve", "--background").returncode == 0 and stopped("serve", "--stop").returncode == 0
    script = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script, pathlib.Path(stopped.env["CARREL_HOME"], "run/lock")],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        done = stopped("serve", "--stop")
        assert done.returncode == 125 and f"process {other.pid} " in done.stderr, done
        other.communicate("\n")
        assert other.returncode == 0


def test_ten_at_once_are_one_daemon(stopped):
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        done = list(pool.map(lambda _: stopped("serve", "--background", timeout=60), range(10)))
    assert sorted(one.returncode for one in done) == [0] + [125] * 9
    assert all("another daemon" in one.stderr for one in done if one.returncode)
    assert ask(socket_of(stopped)) == 200


def test_an_exec_is_followed_through_the_log_by_its_request(make_daemon):
    daemon = make_daemon("--log", "json", "--log-level", "debug")
    path = daemon.post("/v1/workspaces", {}).headers["Location"]
    assert daemon.post(path + "/exec", {"argv": ["true"]}, headers={"X-Request-Id": "followed-1"}).status == 200
    lines = lambda: [line for line in daemon.log().splitlines(keepends=True) if line.endswith("\n")]     # those that are whole
    records = lambda: [record for record in map(json.loads, lines()) if record.get("request_id") == "followed-1"]
    # The answer comes first, then the record that says so.
    done, = eventually(lambda: [record for record in records() if record["message"] == "request"])
    assert eventually(lambda: {record["role"] for record in records()} == {"launcher", "core"})
    assert (done["level"], done["method"], done["target"], done["status"]) == ("debug", "POST", path + "/exec", "200")


def test_in_the_background_it_has_a_log_and_no_terminal(stopped):
    assert stopped("serve", "--background", "--log", "json").returncode == 0
    home = pathlib.Path(stopped.env["CARREL_HOME"])
    log = home / "run/carrel.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    pid = int((home / "run/lock").read_text().split()[0])
    assert [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)] == ["/dev/null", "/dev/null", str(log)]
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.getsid(pid) not in (pid, os.getsid(0))
    assert all(json.loads(line) for line in log.read_text().splitlines())


def test_a_daemon_keeps_no_token_of_the_command_that_started_it(stopped):
    token = stopped("token", "create").stdout.strip()
    assert stopped("serve", "--stop").returncode == 0
    assert stopped("ls", env={**stopped.env, "CARREL_TOKEN": token}).returncode == 0
    pid = int(pathlib.Path(stopped.env["CARREL_HOME"], "run/lock").read_text().split()[0])
    read = [path for path in (f"/proc/{one}/environ" for one in (pid, *descendants(pid))) if os.access(path, os.R_OK)]
    assert read
    for path in read:
        with contextlib.suppress(OSError):      # not dumpable, or gone
            assert token.encode() not in pathlib.Path(path).read_bytes(), path


SHARES = """
import os, time
held = bytearray(150_000_000)
for i in range(0, len(held), 4096):
    held[i] = 1
for child in [os.fork() for _ in range(2)]:
    if child == 0:
        time.sleep(0.5)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.kernel
def test_memory_that_processes_share_counts_once(daemon):
    if IS_ROOT and MECHANISM == "watchdog":
        pytest.skip("root's core may not look into its sandboxes")
    assert daemon("create", "shares", "--memory", "256M").returncode == 0
    try:
        done = daemon("exec", "shares", "--", "/usr/bin/python3", "-c", SHARES)
        assert done.returncode == 0, done.stderr
    finally:
        assert daemon("rm", "shares").returncode == 0


# ---- what a crash leaves ----

def test_a_stale_socket_and_a_stale_lock_are_no_obstacle(own_daemon):
    first = own_daemon.process.pid
    own_daemon.stop_serving(signal.SIGKILL)
    assert own_daemon.socket.exists()
    assert own_daemon("serve", "--stop").stdout.startswith("no daemon runs")
    own_daemon.start_serving()
    assert own_daemon.process.pid != first


@pytest.mark.kernel
def test_all_that_it_started_dies_with_it(own_daemon):
    below = descendants(own_daemon.process.pid)
    assert own_daemon.core_pid() in below
    own_daemon.stop_serving(signal.SIGKILL)
    assert eventually(lambda: not set(descendants()) & set(below))


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(own_daemon, signo):
    assert own_daemon.stop_serving(signo) == 0
    assert not own_daemon.socket.exists()


# ---- where it listens ----

def test_it_listens_where_it_is_told(make_daemon, tmp_path):
    long = tmp_path / ("d" * 100)       # longer than an address can be
    long.mkdir()
    path = long / "api.sock"
    daemon = make_daemon(listen=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and not (daemon.home / "carrel/run/carrel.sock").exists()
    done = daemon("serve")
    assert done.returncode == 125
    assert one_line(done.stderr, daemon.process.pid, path) == f"use --host unix:{path}, or end it: carrel serve --stop"
    assert daemon.stop_serving() == 0 and not path.exists()


@pytest.mark.parametrize("where, said", [
    ("127.0.0.1", "neither unix:PATH nor"), ("name:80", "neither unix:PATH nor"), ("[::1]:70000", "neither unix:PATH nor"),
    ("::1:80", "neither unix:PATH nor"), ("unix:", "neither unix:PATH nor"), ("/run/x", "neither unix:PATH nor"),
    ("unix:/tmp/", "a directory"), ("unix:/no/such/place/x", "No such file"), ("unix:{home}/file", "is not a socket"),
    ("unix:{home}/used", "another program listens"), ("unix:/tmp/" + "x" * 108, "too long")])
def test_it_says_where_it_cant_listen(carrel, where, said):
    (carrel.home / "file").write_text("")
    with socket.socket(socket.AF_UNIX) as used:
        directory = os.open(carrel.home, os.O_PATH)
        used.bind(f"/proc/self/fd/{directory}/used")
        os.close(directory)
        used.listen()
        done = carrel("serve", "--listen", where.format(home=carrel.home))
    assert done.returncode == 125
    one_line(done.stderr, said)
    assert (carrel.home / "file").read_text() == "" and (carrel.home / "used").is_socket()


HAND_OVER = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX, socket.{type})
listener.bind("{path}")
listener.listen() if "{listens}" else None
count = {count}
os.environ.update(LISTEN_FDS=str(count), LISTEN_PID=str(os.getpid() + {off}), NOTIFY_SOCKET="{notify}")
fd = listener.detach()
for place in range(3, 3 + count):
    os.dup2(fd, place) if place != fd else os.set_inheritable(fd, True)
os.execv(sys.argv[1], [sys.argv[1], "serve", *sys.argv[2:]])
"""


@contextlib.contextmanager
def handed_over(carrel, *arguments, notify="", type="SOCK_STREAM", listens=1, count=1, off=0):
    """carrel serve as systemd starts it; (process, path of the socket)."""
    directory = pathlib.Path(carrel.env["CARREL_HOME"]).parent / "s"
    directory.mkdir(exist_ok=True)
    path = directory / "api"
    script = HAND_OVER.format(path=os.path.relpath(path, directory), notify=notify, type=type, listens=listens or "",
                              count=count, off=off)
    process = subprocess.Popen([sys.executable, "-c", script, CARREL, *arguments], env=carrel.env, cwd=directory,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, path
    finally:
        process.terminate()
        process.communicate(timeout=120)


@pytest.mark.kernel
def test_a_socket_can_be_handed_over_and_the_manager_is_told(carrel):
    name = f"carrel-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name)
        manager.settimeout(120)
        with handed_over(carrel, notify="@" + name) as (process, path):
            assert manager.recv(100) == b"READY=1"
            assert ask(path) == 200
            assert not socket_of(carrel).exists()
            process.terminate()
            assert manager.recv(100) == b"STOPPING=1"
            assert process.wait(120) == 0
        assert path.is_socket()         # it is the manager's


@pytest.mark.parametrize("how, said", [
    ({"count": 17}, "17 sockets"), ({"listens": 0}, "not a listening unix or TCP socket"),
    ({"type": "SOCK_DGRAM", "listens": 0}, "not a listening unix or TCP socket")])
def test_a_socket_that_cant_be_served_is_refused(carrel, how, said):
    with handed_over(carrel, **how) as (process, _):
        assert process.wait(120) == 125
        one_line(process.stderr.read(), said)


def test_who_calls_before_it_runs_is_served_as_by_any_daemon(carrel):
    """The first command of all is the one that makes a manager start it."""
    assert carrel("serve", "--stop").returncode == 0        # as carrel.socket does: makes the home
    with socket.socket(socket.AF_UNIX) as listener:
        directory = os.open(socket_of(carrel).parent, os.O_PATH)
        listener.bind(f"/proc/self/fd/{directory}/carrel.sock")
        os.close(directory)
        listener.listen()
        with carrel.start("create", "first") as first:
            assert eventually(lambda: select.select([listener], [], [], 0)[0])
            script = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); " \
                     "os.execv(sys.argv[2], [sys.argv[2], 'serve'])"
            with subprocess.Popen([sys.executable, "-c", script, str(listener.fileno()), CARREL], env=carrel.env,
                                  pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
                assert first.communicate(timeout=120) == ("first\n", "")
                assert carrel("exec", "first", "--", "echo", "hi").stdout == "hi\n"
                daemon.terminate()
                assert daemon.wait(120) == 0
    assert socket_of(carrel).is_socket()        # it is the manager's


def test_a_socket_handed_to_somebody_else_is_left_alone(carrel):
    with handed_over(carrel, off=1) as (process, _):
        assert eventually(lambda: process.poll() is not None or is_served(socket_of(carrel)))
        assert process.poll() is None


# ---- who may call ----

@pytest.mark.needs_root
def test_another_uid_is_refused_where_the_files_would_let_it(make_daemon):
    directory = pathlib.Path("/var/tmp", f"carrel-tests-open.{os.getpid()}")
    directory.mkdir()
    try:
        path = directory / "api.sock"
        make_daemon(listen=path)
        path.chmod(0o666)
        script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); " \
                 "s.sendall(b'GET /readyz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(s.recv(4096).decode())"
        def answer(uid):
            done = subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", sys.executable, "-c", script, path],
                                  capture_output=True, text=True, timeout=120)
            return done.stdout.split()[1:2] if done.returncode == 0 and done.stdout.split() else ["closed"]
        assert answer(12345) in (["403"], ["closed"])
        assert answer(65534) in (["403"], ["closed"])
        assert answer(0) == ["200"]
        assert answer(64199) == ["200"] or "carrel" in pathlib.Path("/etc/passwd").read_text()
    finally:
        shutil.rmtree(directory)


# ---- what it can't begin with ----

def test_without_carreld_it_says_where_it_looked(carrel, tmp_path):
    alone = Carrel(carrel.home)
    alone.path = shutil.copy(CARREL, tmp_path / "carrel")
    done = alone("serve")
    assert done.returncode == 125
    assert "make install" in one_line(done.stderr, "carreld", tmp_path)
    done = alone("serve", "--background")
    assert done.returncode == 125
    one_line(done.stderr, "carreld", tmp_path)


def test_carreld_is_found_where_packages_put_it(carrel, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib/carrel").mkdir(parents=True)
    tmp_path.chmod(0o755)
    elsewhere = Carrel(carrel.home)
    elsewhere.path = shutil.copy(CARREL, tmp_path / "bin/carrel")
    shutil.copy(pathlib.Path(CARREL).with_name("carreld"), tmp_path / "lib/carrel/carreld")
    done = elsewhere("serve", "--background")
    try:
        assert done.returncode == 0, done.stderr
        assert ask(socket_of(elsewhere)) == 200
    finally:
        assert elsewhere("serve", "--stop").returncode == 0


def test_a_core_that_cant_start_is_an_error_with_its_words(carrel, tmp_path):
    broken = Carrel(carrel.home)
    broken.path = shutil.copy(CARREL, tmp_path / "carrel")
    (tmp_path / "carreld").write_text("not a program")
    (tmp_path / "carreld").chmod(0o755)
    done = broken("serve", "--background")
    assert done.returncode == 125
    one_line(done.stderr, "carreld")
    assert not socket_of(carrel).exists()


def test_a_configuration_that_cant_be_read_is_named_and_no_daemon_starts(carrel):
    assert carrel("serve", "--stop").returncode == 0        # makes the home
    pathlib.Path(carrel.env["CARREL_HOME"], "config.yaml").write_text("nonsense: [\n")
    for args in (["serve", "--background"], ["ls"]):
        done = carrel(*args)
        assert done.returncode == 125
        one_line(done.stderr, "config.yaml", "line 1")
        assert "role=" not in done.stderr


@pytest.mark.parametrize("arguments, said", [
    (["x"], "'x'"), (["--log", "xml"], "xml"), (["--log-level", "loud"], "loud"), (["--idle-sandbox", "1ms"], "idle-sandbox"), (["--stop", "--background"], "--stop")])
def test_wrong_arguments_are_named(carrel, arguments, said):
    done = carrel("serve", *arguments)
    assert done.returncode == 125
    one_line(done.stderr, said)


def test_a_home_of_somebody_else_is_refused(carrel):
    done = carrel("serve", env={"CARREL_HOME": "/usr/share"})
    assert done.returncode == 125
    one_line(done.stderr, "/usr/share")


@pytest.mark.needs_root
def test_another_users_socket_is_not_spoken_to(carrel, other_user):
    """In a directory that all may write to, anybody can be first."""
    script = "import os, socket, sys; os.setuid(12346); s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); " \
             "s.listen(); print('up', flush=True); s.settimeout(60); print(s.accept()[0].recv(1000))"
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        path = os.path.join(directory, "carrel.sock")
        with subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE, text=True) as listener:
            assert listener.stdout.readline() == "up\n"
            done = subprocess.run([*other_user, CARREL, "exec", "--host", f"unix:{path}", "x", "--", "true"], env={**carrel.env, "HOME": "/"},
                                  cwd="/", capture_output=True, text=True, timeout=120)
            assert done.returncode == 125 and "uid 12346 listens" in done.stderr, done
            assert listener.communicate()[0] == "b''\n"


# ---- what the operator shows ----

def configure(carrel, text):
    path = pathlib.Path(carrel.env["CARREL_HOME"], "config.yaml")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(text)
    return path


def test_workspaces_show_what_the_operator_shows(stopped):
    configure(stopped, "system:\n  show: [/etc/debian_version, /var/lib/dpkg]\n")
    assert stopped("create", "w").returncode == 0
    done = stopped("exec", "w", "--", "sh", "-c", "cat /etc/debian_version; ls -d /var/lib/dpkg/status; touch /var/lib/dpkg/new")
    assert done.stdout == pathlib.Path("/etc/debian_version").read_text() + "/var/lib/dpkg/status\n"
    assert "Read-only file system" in done.stderr


@pytest.mark.needs_root
@pytest.mark.parametrize("text", ["system:\n  show: [/etc/debian_version]\n", "access:\n  uids:\n    0: admin\n", '"policy":\n  default: deny\n'],
                         ids=["system", "access", "quoted policy"])
def test_root_daemon_does_not_start_with_a_configuration_that_core_could_have_written(carrel, text):
    path = configure(carrel, text)
    os.chown(path, 64199, 64199)
    for command in (["serve", "--background"], ["create", "w"]):        # also the daemon that a command starts
        done = carrel(*command)
        assert done.returncode == 125 and f"'{path}' belongs to uid 64199" in done.stderr and "chown 0:" in done.stderr, done.stderr


def test_a_daemon_does_not_start_with_a_configuration_that_others_can_write(carrel):
    path = configure(carrel, "")
    path.chmod(0o646)
    for command in (["serve", "--background"], ["create", "w"]):
        done = carrel(*command)
        assert done.returncode == 125 and f"'{path}' belongs to uid {os.getuid()} and has the mode 0646" in done.stderr, done.stderr


@pytest.mark.needs_root
def test_a_closed_configuration_of_a_new_home_stays_roots_and_builds_can_read_it(carrel):
    path = configure(carrel, '"policy":\n  default: deny\n')
    path.chmod(0o600)
    assert carrel("env", "ls").returncode == 0
    status, home = path.stat(), path.parent.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, home.st_gid, 0o640) and home.st_uid != 0
    assert carrel("run", "--", "id").returncode == 126


def test_a_daemon_does_not_start_with_mounts_that_others_could_have_granted(carrel):
    """They lie beside the home, and say what workspaces show of the host."""
    place = pathlib.Path(carrel.env["CARREL_HOME"] + ".grants")
    place.parent.mkdir(exist_ok=True)
    place.mkdir(mode=0o700)
    place.chmod(0o750)
    done = carrel("serve", "--background")
    assert done.returncode == 125 and f"'{place}' belongs to uid {os.getuid()} and has the mode 0750" in done.stderr, done.stderr


# ---- the options of one that was killed ----

LISTEN = ("--listen", "127.0.0.1:0", "--idle-sandbox", "7s")


def kill_one_with_options(carrel):
    """A daemon with a TCP address, which is killed."""
    assert carrel("token", "create").returncode == 0 and carrel("serve", "--stop").returncode == 0
    assert carrel("serve", "--background", *LISTEN).returncode == 0
    pid = int(pathlib.Path(carrel.env["CARREL_HOME"], "run/lock").read_text().splitlines()[0])
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not is_served(socket_of(carrel)))


def test_the_daemon_that_a_command_starts_says_which_options_are_lost(stopped):
    kill_one_with_options(stopped)
    done = stopped("ls")
    assert done.returncode == 0, done
    hint = one_line(done.stderr, "was killed", "carrel serve --listen 127.0.0.1:0 --idle-sandbox 7s")
    assert "carrel serve --stop" in hint and "config.yaml" in hint
    assert stopped("ls").stderr == ""       # once
    assert stopped("serve", "--stop").returncode == 0 and stopped("ls").stderr == ""


def test_a_command_that_meets_a_daemon_which_dies_starts_another_one(stopped):
    assert stopped("serve", "--background").returncode == 0
    pid = int(pathlib.Path(stopped.env["CARREL_HOME"], "run/lock").read_text().splitlines()[0])
    for child, (_, name) in descendants(pid).items():
        if name == "carreld":
            os.kill(child, signal.SIGSTOP)      # its socket still takes connections
    with stopped.start("ls") as command:
        assert eventually(lambda: any(os.readlink(fd).startswith("socket:") for fd in pathlib.Path(f"/proc/{command.pid}/fd").iterdir()))
        os.kill(pid, signal.SIGKILL)
        out, errors = command.communicate(timeout=60)
    assert command.returncode == 0, errors


def test_one_that_was_stopped_has_no_options_to_lose(stopped):
    assert stopped("token", "create").returncode == 0 and stopped("serve", "--stop").returncode == 0
    assert stopped("serve", "--background", *LISTEN).returncode == 0
    assert stopped("serve", "--stop").returncode == 0 and stopped("ls").stderr == ""


def test_settings_of_config_yaml_hold_for_the_daemon_that_a_command_starts(stopped):
    home = pathlib.Path(stopped.env["CARREL_HOME"])
    assert stopped("token", "create").returncode == 0 and stopped("serve", "--stop").returncode == 0
    (home / "config.yaml").write_text("serve:\n  listen: ['127.0.0.1:0']\n")
    for _ in range(2):
        (home / "run/carrel.log").write_text("")
        assert stopped("ls").stderr == "" and "socket=127.0.0.1:" in (home / "run/carrel.log").read_text()
        pid = int((home / "run/lock").read_text().splitlines()[0])
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: not is_served(socket_of(stopped)))
