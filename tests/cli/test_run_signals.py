"""Signals reach the command; what stops or kills carrel stops or kills everything in the sandbox."""
# security: sandbox
import contextlib
import os
import signal
import subprocess

import pytest
from harness import descendants, eventually

# Says "ready", then the name of each signal it gets; ends with 7 at USR2.
REPORTER = """
import signal
wanted = [getattr(signal, 'SIG' + name) for name in ('HUP', 'INT', 'QUIT', 'TERM', 'USR1', 'USR2')]
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print('ready', flush=True)
while True:
    number = signal.sigwait(wanted)
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGUSR2: raise SystemExit(7)
"""


def reporter(carrel, *options, **how):
    return carrel.start("run", *options, "--", "python3", "-c", REPORTER, **how)


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "TERM", "USR1"])
def test_a_signal_is_forwarded(carrel, name):
    with reporter(carrel) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, "SIG" + name))
        assert process.stdout.readline() == f"SIG{name}\n"
        process.send_signal(signal.SIGUSR2)
        assert process.stdout.readline() == "SIGUSR2\n"
        assert process.wait(120) == 7


@pytest.mark.parametrize("name", ["HUP", "INT", "TERM", "USR1"])
def test_a_signal_that_ends_the_command_is_its_end(carrel, name):
    with carrel.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000") as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, "SIG" + name))
        assert process.wait(120) == 128 + getattr(signal, "SIG" + name)


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_the_third_interrupt_kills_everything(carrel, name):
    number = getattr(signal, "SIG" + name)
    with reporter(carrel) as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):
            process.send_signal(number)
            assert process.stdout.readline() == f"SIG{name}\n"
        process.send_signal(number)
        assert process.wait(120) == 130


def test_what_was_canceled_says_so(carrel):
    import json
    script = "trap '' INT; echo $$ > /workspace/ready; while :; do sleep 1000; done"
    with carrel.start("run", "-o", "json", "--timeout", "50s", "--", "sh", "-c", script) as process:
        assert eventually(lambda: any(name == "sleep" for _, name in descendants(process.pid).values()))
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            # Two signals of a kind that are both waiting count as one.
            assert eventually(lambda: pending(process.pid, signal.SIGINT) == 0)
        out, _ = process.communicate(timeout=120)
    result = json.loads(out)
    assert (result["reason"], result["exit_code"], process.returncode) == ("canceled", 130, 130)


def pending(pid, number):
    try:
        status = open(f"/proc/{pid}/status").read()
    except FileNotFoundError:
        return 0
    return sum(int(line.split()[1], 16) >> (number - 1) & 1
               for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd")))


def state_of(pid, name):
    return {state for state, other in descendants(pid).values() if other == name}


def test_stopping_carrel_stops_the_sandbox_and_continuing_goes_on(carrel):
    script = "import sys\nfor line in sys.stdin: print('got', line, end='', flush=True)"
    with carrel.start("run", "--", "python3", "-c", script, stdin=subprocess.PIPE) as process:
        process.stdin.write("one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "got one\n"
        process.send_signal(signal.SIGTSTP)
        assert eventually(lambda: state_of(process.pid, "python3") == {"T"}), "the command is not stopped"
        pid, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "carrel itself is not stopped"
        process.send_signal(signal.SIGCONT)
        process.stdin.write("two\n")
        process.stdin.close()
        assert process.stdout.readline() == "got two\n"
        assert process.wait(120) == 0


def test_time_that_is_stopped_still_ends(carrel):
    """A stopped sandbox can't outlive its carrel."""
    with carrel.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000") as process:
        assert process.stdout.readline() == "ready\n"
        assert eventually(lambda: state_of(process.pid, "sleep"))
        process.send_signal(signal.SIGTSTP)
        assert eventually(lambda: state_of(process.pid, "sleep") == {"T"})
        inside = set(descendants(process.pid))
        process.kill()
        process.wait(120)
    assert eventually(lambda: not inside & set(descendants()))


MANY = "for i in 1 2 3 4 5; do (setsid sleep 1000 &) ; (trap '' HUP TERM INT; sleep 1000) & done; echo ready; wait"


@pytest.mark.parametrize("options", [[], ["-o", "json"], ["--output", "1M"], ["--cpus", "0.2"], ["--timeout", "100s"]],
                         ids=["plain", "json", "relayed", "held", "timed"])
def test_killing_carrel_leaves_no_process(carrel, options):
    with carrel.start("run", *options, "--", "bash", "-c", MANY) as process:
        assert eventually(lambda: sum(name == "sleep" for _, name in descendants(process.pid).values()) >= 10, 60)
        inside = set(descendants(process.pid))
        process.kill()
        process.wait(120)
        assert eventually(lambda: not inside & set(descendants()), 30), "processes survived kill -9 of carrel"


def test_killing_carrel_leaves_nothing_for_long(carrel, no_leftovers):
    with carrel.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000") as process:
        assert process.stdout.readline() == "ready\n"
        process.kill()
        process.wait(120)


def stop_counter(carrel_pid):
    """Stops the child that walks a directory, if there is one and it is in the midst of it; its pid."""
    for pid in map(int, open(f"/proc/{carrel_pid}/task/{carrel_pid}/children").read().split()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if open(f"/proc/{pid}/comm").read() == "carrel-init\n":
                continue
            os.kill(pid, signal.SIGSTOP)
            assert eventually(lambda: descendants(carrel_pid).get(pid, "T")[0] == "T")
            if any("counted-" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")):
                return pid
            os.kill(pid, signal.SIGCONT)
    return None


def test_killing_carrel_ends_the_count_of_its_directory(carrel, tmp):
    for part in range(4):
        (tmp / f"counted-{part}").mkdir()
    for n in range(20000):
        os.mknod(f"{tmp}/counted-{n % 4}/{n}")
    with carrel.start("run", "--dir", tmp, "--disk", "1G", "--", "sh", "-c", "echo ready; exec sleep 1000") as process:
        assert process.stdout.readline() == "ready\n"
        counter = eventually(lambda: stop_counter(process.pid), 60)
        assert counter, "nobody was seen counting"
        process.kill()
        process.wait(120)
        assert eventually(lambda: counter not in descendants(), 30), "the count goes on"


def test_killing_the_init_ends_the_run(carrel):
    with carrel.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000") as process:
        assert process.stdout.readline() == "ready\n"
        assert eventually(lambda: state_of(process.pid, "sleep"))
        tree = descendants(process.pid)
        child, = [pid for pid, (_, name) in tree.items() if name == "sleep"]
        parent = int(open(f"/proc/{child}/stat").read().rsplit(")", 1)[1].split()[1])
        os.kill(parent, signal.SIGKILL)
        assert process.wait(120) in (125, 137)


def test_the_command_starts_with_no_signal_blocked_or_ignored(carrel):
    def spoil():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD])
    done = carrel.run("--", "cat", "/proc/self/status", preexec_fn=spoil)
    values = dict(line.split(":\t") for line in done.stdout.splitlines())
    assert [int(values[name], 16) for name in ("SigBlk", "SigIgn", "SigCgt")] == [0, 0, 0]


@pytest.mark.parametrize("options", [[], ["-o", "json"], ["--dir", "."]], ids=["plain", "json", "counted"])
def test_carrel_started_with_children_ignored_hears_of_them(carrel, tmp, options):
    """A caller that ignores SIGCHLD hands that down, and the kernel then reaps children unasked."""
    counted = ["--disk", "1G"] if "--dir" in options else []
    done = carrel.sh("(exit 4); test $? = 4 && grep SigIgn /proc/self/status; sleep 0.3; exit 3", *options, *counted, cwd=tmp,
                     preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 3, done
    assert "0000000000000000" in done.stdout, done


def test_the_command_is_not_process_1(carrel):
    assert carrel.sh("echo $$").stdout.strip() not in ("", "1")


# Nobody but init and itself is left in the end, not even as a zombie.
ORPHANS = """
import os, time
for _ in range(50):
    if os.fork() == 0:
        os.fork()
        os._exit(0)
    os.wait()
while len([name for name in os.listdir('/proc') if name.isdigit()]) > 2: time.sleep(0.01)
print('reaped')
"""


def test_orphans_inside_are_reaped(carrel):
    assert carrel.py(ORPHANS).stdout == "reaped\n"
