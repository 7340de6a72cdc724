"""carrel run --isolation landlock: where no user namespace can be made. carrel is started behind a filter that refuses them, as
Docker's default one does: clone and unshare with NEWUSER are EPERM, clone3 is ENOSYS."""
# security: sandbox
import ctypes
import json
import os
import platform
import signal
import sys

import pytest

from harness import CARREL, IS_ROOT, Carrel, descendants, eventually, one_line
from test_doctor import FILTER

NUMBERS = {"x86_64": (56, 272), "aarch64": (220, 97)}[platform.machine()]
LANDLOCK_ABI = ctypes.CDLL(None).syscall(444, None, 0, 1)
WARNING = "carrel: warning: --isolation landlock has no namespaces"


class Confined(Carrel):
    """A carrel that can make no user namespace."""

    path = sys.executable

    def __call__(self, *args, **how):
        return super().__call__("-c", FILTER % (NUMBERS,), CARREL, *args, **how)

    def start(self, *args, **how):
        return super().start("-c", FILTER % (NUMBERS,), CARREL, *args, **how)

    def weak(self, script, *options, **how):
        return self.run("--isolation", "landlock", *options, "--", "sh", "-c", script, **how)

    def weak_py(self, script, *options, **how):
        return self.run("--isolation", "landlock", *options, "--", "/usr/bin/python3", "-c", script, **how)


@pytest.fixture
def confined(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Confined(home)


def said(done):
    """What stderr has besides the line that names the mode, which must be there."""
    first, _, rest = done.stderr.partition("\n")
    assert first.startswith(WARNING), done.stderr
    return rest


def own_directories():
    return {name for name in os.listdir("/tmp") if name.startswith("carrel-") and len(name) == 27
            and (IS_ROOT or os.stat(f"/tmp/{name}").st_uid == os.getuid())}


def test_without_the_option_the_error_names_it(confined):
    done = confined.run("--", "true")
    assert done.returncode == 125 and done.stdout == ""
    hint = one_line(done.stderr, "namespaces")
    assert hint.endswith("--isolation landlock")


def test_a_command_runs_and_nothing_stays(confined):
    done = confined.weak("id -u; pwd; echo $HOME; echo text > $TMPDIR/f && cat $TMPDIR/f; (setsid sleep 1000 &); exit 3")
    assert done.returncode == 3 and said(done) == ""
    uid, cwd, home, text = done.stdout.split()
    assert uid != "0" and (IS_ROOT or int(uid) == os.getuid())
    assert cwd == home and cwd.startswith("/tmp/carrel-") and text == "text"
    assert not os.path.exists(os.path.dirname(cwd))


@pytest.mark.once
def test_the_result_names_the_isolation(confined):
    result = confined.run_json("--isolation", "landlock", "--", "sh", "-c", "echo out; echo errors >&2; exit 4")
    assert (result["isolation"], result["exit_code"], result["stdout"], result["stderr"]) == ("landlock", 4, "out\n", "errors\n")
    plan = json.loads(confined.run("--isolation", "landlock", "--plan", "--", "true").stdout)
    assert plan["isolation"] == "landlock" and plan["namespaces"] == [] and plan["mounts"] == []
    assert not os.path.exists(plan["scratch"])


@pytest.mark.kernel
def test_files_outside_are_out_of_reach(confined, tmp):
    secret = tmp / "id_ed25519"
    secret.write_text("secret")
    secret.chmod(0o644)
    done = confined.weak(f"""
        cat {secret}; cat /etc/shadow; ls /root /home /run /var /tmp
        echo x > {tmp}/new; echo x >> {secret}; rm -f {secret}; mkdir /tmp/carrel-x; mv {secret} $TMPDIR
        ln {secret} $TMPDIR/link; cat $TMPDIR/link; echo x > /dev/shm/x; echo x > /proc/self/comm
        python3 -c 'open("/proc/{os.getpid()}/environ").read()'; cat /proc/1/environ
        echo end""")
    assert done.stdout == "end\n" and "secret" not in done.stderr
    assert secret.read_text() == "secret" and sorted(os.listdir(tmp)) == ["id_ed25519"]


@pytest.mark.kernel
def test_no_socket_no_trace_no_ipc_no_capability(confined):
    done = confined.weak_py("""
import ctypes, errno, os, socket
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        try: socket.socket(family, kind); print('socket', family, kind)
        except OSError: pass
socket.socketpair()
try: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); print('datagrams')
except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
for name, call in (('ptrace', lambda: libc.ptrace(16, os.getppid(), 0, 0)), ('shmget', lambda: libc.shmget(1, 4096, 0o1600)),
                   ('msgget', lambda: libc.msgget(1, 0o1600)), ('setpriority', lambda: libc.setpriority(0, os.getppid(), 19)),
                   ('unshare', lambda: libc.unshare(0x10000000))):
    if call() >= 0 or ctypes.get_errno() != errno.EPERM: print(name, ctypes.get_errno())
status = open('/proc/self/status').read()
for line in status.splitlines():
    key, _, value = line.partition(':')
    if key in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb') and int(value, 16): print(line)
    if key == 'NoNewPrivs' and value.strip() != '1' or key == 'Seccomp' and value.strip() != '2': print(line)
""")
    assert done.returncode == 0 and done.stdout == "" and said(done) == "", done


# Before Landlock's ABI 6 a plain user's other processes can be signaled, and the documentation says so.
@pytest.mark.skipif(not IS_ROOT and LANDLOCK_ABI < 6, reason="this kernel's Landlock scopes no signals")
def test_processes_outside_are_not_signaled(confined):
    done = confined.weak_py(f"""
import os, signal
init = os.getppid()
guardian = int(open(f'/proc/{{init}}/stat').read().rpartition(')')[2].split()[1])
for pid in ({os.getpid()}, guardian, 1, -1):
    try: os.kill(pid, 0 if pid != -1 else signal.SIGURG); print('reached', pid)
    except OSError: pass
for pid in ({os.getpid()}, guardian):
    for name in ('environ', 'mem', 'maps', 'fd/0'):
        try: open(f'/proc/{{pid}}/{{name}}', 'rb').read(1); print('read', pid, name)
        except OSError: pass
""")
    # -1 reaches those of the sandbox itself, carrel-init among them.
    assert done.returncode == 0 and done.stdout in ("", "reached -1\n"), done.stdout


def test_limits_end_everything(confined):
    escape = "(setsid sh -c 'sleep 1000 & sleep 1000' &); "
    done = confined.weak(escape + "sleep 1000", "--timeout", "1s")
    assert done.returncode == 124 and "timeout" in said(done)
    done = confined.weak_py("data = bytearray(400 << 20)\nwhile True: pass", "--memory", "64M")
    assert done.returncode == 137 and "memory_limit" in said(done)
    done = confined.weak(escape + "yes", "--output", "10K")
    assert done.returncode == 137 and "output_limit" in said(done)


def test_nothing_stays_when_carrel_is_killed(confined):
    before = own_directories()
    with confined.start("run", "--isolation", "landlock", "--", "sh", "-c", "(setsid sleep 1000 &); pwd; exec sleep 1000") as process:
        scratch = os.path.dirname(process.stdout.readline().strip())
        assert scratch.startswith("/tmp/carrel-") and os.path.basename(scratch) not in before
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        assert eventually(lambda: not os.path.exists(scratch))
        assert eventually(lambda: not [name for _, name in descendants().values() if name == "sleep"])


def test_a_command_that_ends_carrel_init_ends_itself(confined):
    done = confined.weak("(setsid sleep 1000 &); kill -9 $PPID; sleep 1000")
    assert done.returncode == 137


def test_what_forks_without_end_is_ended(confined):
    done = confined.weak_py("import os\nwhile True:\n  try: os.fork() or os.setsid()\n  except OSError: pass", "--pids", "40",
                            "--timeout", "1s")
    assert done.returncode == 124


def test_a_signal_reaches_the_command(confined):
    with confined.start("run", "--isolation", "landlock", "--", "sh", "-c", "echo ready; exec sleep 1000") as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143


@pytest.mark.needs_plain_user
def test_a_directory_is_worked_on_in_place(confined, tmp):
    done = confined.weak("pwd; echo text > new; cat ../other", "--dir", tmp, "-w", ".")
    assert done.stdout.strip() == os.path.realpath(tmp) and (tmp / "new").read_text() == "text\n"
    (tmp / ".git" / "hooks").mkdir(parents=True)
    done = confined.weak("true", "--dir", tmp)
    assert done.returncode == 125 and "--writable-config" in one_line(done.stderr, tmp / ".git", "read-only")
    done = confined.weak("echo x > .git/hooks/x", "--dir", tmp, "--writable-config")
    assert done.returncode == 0
    done = confined.weak("true", "--dir", confined.home, "--writable-config")
    assert done.returncode == 125 and "home" in done.stderr


@pytest.mark.needs_root
def test_root_gives_no_directory_away(confined, tmp):
    done = confined.weak("true", "--dir", tmp)
    assert done.returncode == 125 and "owner" in one_line(done.stderr, "--dir", tmp)


@pytest.mark.once
@pytest.mark.parametrize("options", [("-v", "/usr:/x"), ("--env", "e"), ("--pip", "x"), ("--npm", "x"), ("--python", "3"), ("--template", "t"),
                                     ("--net", "open"), ("--allow-domain", "a.org"), ("--view", "root"), ("--ptrace",), ("--disk", "1G"),
                                     ("--tmp", "1G"), ("--attach", "tree:/x")], ids=lambda options: options[0])
def test_what_needs_namespaces_is_refused_by_name(carrel, options):
    done = carrel.run("--isolation", "landlock", *options, "--", "true")
    assert done.returncode == 125 and done.stdout == ""
    one_line(done.stderr, options[0], "--isolation landlock")


@pytest.mark.once
def test_a_workspace_needs_namespaces(carrel):
    done = carrel("create", "x", "--isolation", "landlock")
    assert done.returncode == 125
    assert one_line(done.stderr, "--isolation landlock", "carrel run alone") == "carrel run --isolation landlock -- CMD"


@pytest.mark.once
def test_native_is_the_default(carrel):
    for options in (["--isolation", "native"], []):
        assert "isolation" not in carrel.run_json(*options, "--", "true")
        assert json.loads(carrel.run(*options, "--plan", "--", "true").stdout)["isolation"] == "native"


@pytest.mark.once
def test_doctor_says_whether_it_can_be_had(confined):
    report = json.loads(confined("doctor", "-o", "json").stdout)
    line = {one["name"]: one for one in report["checks"]}["weaker mode"]
    assert not report["ok"] and "--isolation landlock can be had" in line["detail"]
