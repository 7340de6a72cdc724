"""--ptrace: debuggers work among the processes of one sandbox, and nothing else opens."""
# security: sandbox
import atexit
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from daemons import serving
from harness import Carrel
from test_probe import EVERYWHERE, PROBE, lines_of

ONLY_WITHOUT = {"ptrace_traceme", "pidfd_getfd"}  # everything else is as it is without --ptrace
LEAK = "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(7); p = 0; return 0; }\n"
DEBUGGERS = {
    "gdb": (["gdb", "-q", "-batch", "-ex", "run", "-ex", "info inferiors", "--args", "/bin/true"], 0, "exited normally"),
    "strace": (["strace", "-f", "-e", "trace=execve", "sh", "-c", "/bin/true; exit 3"], 3, 'execve("/bin/true"'),
    "LeakSanitizer": (["sh", "-c", f"printf '%s' '{LEAK}' > l.c && gcc -fsanitize=leak -o l l.c && ./l"], 23, "7 byte(s) leaked"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    carrel = Carrel(tmp_path_factory.mktemp("home"))
    done = carrel.run("--ptrace", "--", "sh", "-c", "cat >probe && chmod +x probe && exec ./probe all", input=PROBE.read_bytes(),
                      text=False, timeout=120)
    assert done.returncode in (0, 1), done
    return lines_of(done.stdout.decode())


@pytest.mark.parametrize("name", [name for name in EVERYWHERE if name not in ONLY_WITHOUT])
def test_probe_with_ptrace(answers, name):
    assert answers[name] == ("ok",)


def test_ptrace_is_let_through_only_where_it_was_asked_for(answers):
    for name in ONLY_WITHOUT:
        assert answers[name][0] == "FAIL"


@pytest.mark.shipped
@pytest.mark.parametrize("name", DEBUGGERS)
def test_debuggers_work(carrel, name):
    argv, code, text = DEBUGGERS[name]
    if not shutil.which(argv[0]):
        pytest.skip(f"{argv[0]} isn't installed")
    done = carrel.run("--ptrace", "--", *argv, timeout=120)
    assert done.returncode == code and text in done.stdout + done.stderr, done


def test_a_process_beside_can_be_attached_to_unless_yama_refuses(carrel):
    """What `gdb -p` and py-spy do: with kernel.yama.ptrace_scope 1 only descendants can be traced."""
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    script = ("sleep 60 & sleep 60 & python3 -c 'import ctypes, sys; c = ctypes.CDLL(None, use_errno=True)\n"
              "print(c.ptrace(0x4206, int(sys.argv[1]), 0, 0), ctypes.get_errno())' $!")
    expected = "0 0\n" if not scope.exists() or scope.read_text() == "0\n" else "-1 1\n"
    assert carrel.sh(script, "--ptrace").stdout == expected
    assert carrel.sh(script).stdout == "-1 1\n"


def build(source):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="carrel-test-trace."))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    directory.chmod(0o755)
    program = directory / source.stem
    subprocess.run(["cc", "-static", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)
    return program


def test_a_workspace_keeps_it_and_the_starts_of_init_cannot_be_traced(tmp_path_factory):
    """A command is started by a process that shares init's memory until it executes: it isn't dumpable either."""
    program = build(pathlib.Path(__file__).parent / "trace_spawns.c")
    with serving(tmp_path_factory.mktemp("daemon")) as daemon:
        assert daemon("create", "w", "--ptrace").returncode == 0
        assert daemon("create", "plain").returncode == 0
        assert daemon.get("/v1/workspaces/w").json()["ptrace"] is True
        assert daemon.get("/v1/workspaces/plain").json()["ptrace"] is False
        assert "allowed" in [line.split()[-1] for line in daemon("info", "w").stdout.splitlines() if line.startswith("ptrace")]
        assert daemon("exec", "plain", "--", "strace", "true").returncode != 0
        install = ["sh", "-c", "cat > t && chmod +x t"]
        assert daemon("exec", "w", "--", *install, input=program.read_bytes(), text=False).returncode == 0
        attack = subprocess.Popen([daemon.path, "exec", "w", "--", "./t"], env=daemon.env, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        assert attack.stdout.readline() == "ready\n"
        for _ in range(100):
            assert daemon.post("/v1/workspaces/w/exec", {"argv": ["true"]}).status == 200
        said = attack.communicate(timeout=60)[0].split()
        print(said)
        assert said[4:] == ["breaches", "0"] and int(said[1]) + int(said[3]) > 0, said


HOLD = """
import ctypes, os, sys, time
c = ctypes.CDLL(None)
print("ready", flush=True)
while True:
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) in (1, os.getpid()): continue
        try: threads = os.listdir(f"/proc/{pid}/task")
        except OSError: continue
        for thread in threads:
            if (thread == pid) == (sys.argv[1] == "leader"): c.ptrace(0x4206, int(thread), 0, 0)
    time.sleep(0.01)
"""
SLEEP_IN_TWO_THREADS = "import threading, time; threading.Thread(target=time.sleep, args=[60]).start(); time.sleep(60)"


@pytest.mark.parametrize("traced", ["leader", "other thread"])
def test_a_tracer_left_running_cannot_hold_a_command_past_its_end(tmp_path_factory, traced):
    """It never waits, so that what it traces can't be reaped: the time limit still ends the exec."""
    with serving(tmp_path_factory.mktemp("daemon")) as daemon:
        assert daemon("create", "w", "--ptrace").returncode == 0
        holder = subprocess.Popen([daemon.path, "exec", "w", "--", "python3", "-c", HOLD, traced], env=daemon.env, stdout=subprocess.PIPE, text=True)
        assert holder.stdout.readline() == "ready\n"
        for _ in range(3):
            done = daemon("exec", "--timeout", "1s", "w", "--", "python3", "-c", SLEEP_IN_TWO_THREADS)
            assert done.returncode == 124, done.stderr
        daemon("rm", "w")
        holder.communicate(timeout=60)
