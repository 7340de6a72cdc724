"""Attacks that were tried and failed: on the supervisor, on carrel-init, on the start, on a shared directory."""
import base64
import json
import signal
import subprocess

import pytest

from harness import CARREL

SECRET = "what-the-host-keeps"


# carrel-init

def test_init_obeys_no_signal_from_inside(carrel):
    script = """if 1:
        import os
        for number in range(1, 65):
            os.kill(1, number)
        print("alive", flush=True)
        os._exit(7)"""
    done = carrel.py(script)
    assert (done.returncode, done.stdout) == (7, "alive\n"), done


@pytest.mark.parametrize("name", ["environ", "mem", "maps", "auxv", "exe", "cwd", "root/", "fd/", "fd/3", "fdinfo/3",
                                  "map_files/", "ns/net", "syscall", "stack"])
def test_init_shows_nothing_of_itself(carrel, name):
    done = carrel.sh(f"if [ -d /proc/1/{name} ]; then ls /proc/1/{name}; else head -c 1 /proc/1/{name}; fi")
    assert done.returncode != 0 and done.stdout == "", done


def test_a_flood_of_orphans_doesn_t_hide_the_command_s_end(carrel):
    script = """if 1:
        import os, time
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                if os.fork() == 0:
                    for _ in range(3):
                        if os.fork() == 0:
                            os._exit(1)
                    os._exit(2)
                os.wait()
            except OSError:
                pass
        os._exit(5)"""
    result = carrel.py_json(script, "--timeout", "20s")
    assert (result["reason"], result["exit_code"]) == ("exited", 5)


def test_a_fork_bomb_ends_with_its_time(carrel):
    result = carrel.run_json("--pids", "50", "--timeout", "1s", "--", "bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 60")
    assert result["reason"] == "timeout"
    assert result["duration_ms"] < 5000


def test_a_sandbox_that_stops_itself_ends_with_its_time(carrel):
    result = carrel.sh_json("(while :; do kill -STOP $$; done) & kill -STOP $$; exit 0", "--timeout", "1s")
    assert result["reason"] == "timeout"


# The result

def test_output_that_is_no_text_can_t_forge_a_result(carrel):
    said = b'\xed\xa0\x80\xff\0\xe2\x80\xa8"}\n{"exit_code":0}'
    done = carrel.py(f"import os; os.write(1, {said!r}); os._exit(9)", "-o", "json", text=False)
    result = json.loads(done.stdout)
    assert (result["exit_code"], result["encoding"]) == (9, "base64")
    assert base64.b64decode(result["stdout"]) == said


def test_output_that_is_text_can_t_forge_a_result(carrel):
    said = '","exit_code":0,"stdout":"\\"\n\u2028\x00\x1b\x7f{}'
    result = carrel.py_json(f"import os; os.write(1, {said.encode()!r}); os._exit(9)")
    assert (result["exit_code"], result["stdout"]) == (9, said)


# The start

def test_closed_streams_hand_in_nothing_else(carrel):
    script = f"exec '{CARREL}' run -- ls -l /proc/self/fd 0<&- 2>&-"
    done = subprocess.run(["sh", "-c", script], env=carrel.env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done
    targets = [line.split(" -> ")[1] for line in done.stdout.splitlines() if " -> " in line]
    assert all(target == "/dev/null" or target.startswith(("pipe:", "/proc/")) for target in targets), targets


def test_a_working_directory_that_is_gone_is_no_directory_to_hand_in(carrel, tmp):
    script = f"cd '{tmp}' && mkdir gone && cd gone && rmdir ../gone && '{CARREL}' run -- pwd && exec '{CARREL}' run --dir . -- pwd"
    done = subprocess.run(["sh", "-c", script], env=carrel.env, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (125, "/workspace\n"), done


def test_signals_that_the_caller_ignores_don_t_change_the_exit_code(carrel):
    def ignore():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
    done = carrel.sh("grep SigIgn /proc/self/status; exit 3", preexec_fn=ignore)
    assert done.returncode == 3
    assert int(done.stdout.split()[1], 16) == 0, done.stdout


# A directory that two sandboxes share

SWAP = """if 1:
    import os, sys, time
    secret = sys.argv[1]
    os.makedirs("real/hooks")
    open("real/config", "w").close()
    print("swapping", flush=True)
    while True:
        os.rename("real", ".git"); time.sleep(.0005); os.rename(".git", "real")
        os.symlink(secret, ".git"); time.sleep(.0005); os.unlink(".git")
        os.mkdir(".git"); os.symlink(secret, ".git/hooks"); time.sleep(.0005); os.unlink(".git/hooks"); os.rmdir(".git")"""


def test_a_directory_changed_while_a_sandbox_starts_shows_nothing_of_the_host(carrel, tmp):
    shared, secret = tmp / "shared", tmp / "secret"
    shared.mkdir()
    secret.mkdir()
    for name in ("config", "pre-commit"):
        (secret / name).write_text(SECRET)
    with carrel.start("run", "--dir", shared, "--", "/usr/bin/python3", "-c", SWAP, secret) as attacker:
        assert attacker.stdout.readline() == "swapping\n"
        for _ in range(40):
            done = carrel.sh("cat .git/* .git/hooks/*; grep secret /proc/self/mountinfo; exit 0", "--dir", shared)
            assert SECRET not in done.stdout
            assert str(secret) not in done.stdout
        attacker.kill()
    for name in ("config", "pre-commit"):
        assert (secret / name).read_text() == SECRET


# What would be left on the host

def outcome(carrel, tmp, script):
    """Runs it in a --dir; its errors by name."""
    done = carrel.py("import ctypes, errno, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
                     "def call(what):\n"
                     "    try:\n        what(); print('done')\n"
                     "    except OSError as e:\n        print(errno.errorcode[e.errno])\n"
                     "def link_open(fd, name):\n"
                     "    if libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, name, 0x400):\n"
                     "        raise OSError(ctypes.get_errno(), '')\n" + script, "--dir", tmp)
    assert done.returncode == 0, done
    return done.stdout.split()


def test_no_file_capability_nor_trusted_name_is_left(carrel, tmp):
    script = """
open("f", "w").close()
for name in ("security.capability", "security.ima", "trusted.overlay.opaque"):
    call(lambda: os.setxattr("f", name, b"\\1\\0\\0\\2" + bytes(16)))"""
    assert "done" not in outcome(carrel, tmp, script)


def test_no_file_of_the_system_gets_a_second_name(carrel, tmp):
    script = """
fd = os.open("/usr/bin/env", os.O_RDONLY)
call(lambda: os.link("/usr/bin/env", "e"))
call(lambda: link_open(fd, b"e"))
call(lambda: os.rename("/usr/bin/env", "e"))"""
    assert "done" not in outcome(carrel, tmp, script)
    assert not list(tmp.iterdir())


def test_a_nameless_file_gets_no_setuid_bit_on_its_way_to_a_name(carrel, tmp):
    script = """
call(lambda: os.open(".", os.O_TMPFILE | os.O_RDWR, 0o4755))
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o755)
call(lambda: os.fchmod(fd, 0o4755))
call(lambda: os.chmod(f"/proc/self/fd/{fd}", 0o2755))
call(lambda: link_open(fd, b"made"))"""
    assert outcome(carrel, tmp, script) == ["EPERM", "EPERM", "EPERM", "done"]
    assert (tmp / "made").stat().st_mode & 0o7000 == 0


# Memory that a process doesn't show

HIDDEN = {
    "unmapped shared memory": """
m = mmap.mmap(-1, 1 << 30)
for at in range(0, 400 << 20, 4 << 20):
    m[at:at + (4 << 20)] = bytes(4 << 20)
    m.madvise(mmap.MADV_DONTNEED, at, 4 << 20)""",
    "page tables": """
m = mmap.mmap(-1, 1 << 38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
m.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, 1 << 38, 1 << 21):
    m[at]""",
    "socket buffers": """
keep, block = [], bytes(32768)
for _ in range(480):
    keep += socket.socketpair()
    for end in keep[-2:]:
        end.setblocking(False)
        try:
            while True: end.send(block)
        except BlockingIOError: pass
        time.sleep(.001)""",
}


@pytest.mark.needs_cgroup
@pytest.mark.parametrize("way", HIDDEN)
def test_memory_that_no_process_shows_is_counted(carrel, way):
    script = "import mmap, socket, time\n" + HIDDEN[way] + "\ntime.sleep(5)"
    assert carrel.py_json(script, "--memory", "64M", "--timeout", "30s")["reason"] == "memory_limit"
