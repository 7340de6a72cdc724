"""Attacks that were tried and failed: on the supervisor, on carrel-init, on the start, on a shared directory."""
# security: sandbox
import base64
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from daemons import serving
from harness import CARREL, MECHANISM, one_line

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
    result = carrel.py_json(script, "--timeout", "60s", timeout=90)
    assert (result["reason"], result["exit_code"]) == ("exited", 5)


def test_no_exit_is_missed_or_mixed_up_whatever_commands_leave(tmp):
    """The process of a workspace's next command is there before it, while nobody else is."""
    quiet = ["true", "true &", "setsid sleep 0.01 >/dev/null 2>&1 &", "for i in 1 2 3 4 5; do true & done", "(setsid true &)"]
    rude = quiet + ["kill -STOP -1", "(trap '' TERM; setsid sleep 9 >/dev/null 2>&1 &); kill -KILL -1", "kill -CHLD 1"]

    def run(name, ways, first):
        for code in range(first, first + 24):
            done = daemon("exec", name, "--", "sh", "-c", f"{ways[code % len(ways)]}\necho {code}; exit {code}", timeout=60)
            assert (done.returncode, done.stdout) == (code, f"{code}\n"), done
        return True
    with serving(tmp) as daemon, concurrent.futures.ThreadPoolExecutor(3) as pool:
        for name in ("one", "two"):
            assert daemon("create", name).returncode == 0
        assert all(pool.map(run, ("one", "one", "two"), (quiet, quiet, rude), (1, 31, 61)))


def test_a_fork_bomb_ends_with_its_time(carrel):
    """The shell itself forks once, before there is a bomb."""
    result = carrel.run_json("--pids", "50", "--timeout", "1s", "--", "bash", "-c", "bomb() { bomb | bomb & }; (bomb) & wait; exec sleep 1000",
                             timeout=90)
    assert result["reason"] == "timeout"


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
    done = subprocess.run(["sh", "-c", script], env=carrel.env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    targets = [line.split(" -> ")[1] for line in done.stdout.splitlines() if " -> " in line]
    assert all(target == "/dev/null" or target.startswith(("pipe:", "/proc/")) for target in targets), targets


def test_a_working_directory_that_is_gone_is_no_directory_to_hand_in(carrel, tmp):
    script = f"cd '{tmp}' && mkdir gone && cd gone && rmdir ../gone && '{CARREL}' run -- pwd && exec '{CARREL}' run --dir . -- pwd"
    done = subprocess.run(["sh", "-c", script], env=carrel.env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (125, "/workspace\n"), done


def test_signals_that_the_caller_ignores_don_t_change_the_exit_code(carrel):
    def ignore():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
    done = carrel.sh("grep SigIgn /proc/self/status; exit 3", preexec_fn=ignore)
    assert done.returncode == 3
    assert int(done.stdout.split()[1], 16) == 0, done.stdout


# What is handed in

REOPEN = """if 1:
    import errno, os
    for fd, ways in (0, ("O_WRONLY", "O_RDWR")), (1, ("O_RDONLY", "O_RDWR")):
        for way in ways:
            try:
                os.fchmod(fd, 0o666)
            except OSError:
                pass
            try:
                os.open(f"/proc/self/fd/{fd}", getattr(os, way) | os.O_NONBLOCK)
                print(fd, way, "opened")
            except OSError as e:
                print(fd, way, errno.errorcode[e.errno])"""


@pytest.mark.needs_root
def test_a_pipe_that_root_hands_in_can_t_be_opened_the_other_way(carrel):
    done = carrel.py(REOPEN, input="")
    assert done.stdout.splitlines() == ["0 O_WRONLY EACCES", "0 O_RDWR EACCES", "1 O_RDONLY EACCES", "1 O_RDWR EACCES"], done


def test_a_pipe_that_is_handed_in_can_be_opened_by_its_name(carrel):
    done = carrel.sh("echo x > /dev/stdout; cat /dev/stdin; echo y > /dev/stderr; cat < /proc/self/fd/0", input="in\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "x\nin\n", "y\n"), done


DEVICES = ["null", "zero", "full", "random", "urandom", "tty"]
TOUCH = """if 1:
    import errno, os, sys
    for name in sys.argv[1:]:
        for change in (os.utime, lambda path: os.utime(path, (1, 1)), lambda path: os.chmod(path, 0o600)):
            try:
                change("/dev/" + name)
                print("changed", name)
            except OSError as e:
                print(errno.errorcode[e.errno])"""


def test_the_host_s_devices_can_t_be_touched(carrel):
    before = [os.stat(f"/dev/{name}") for name in DEVICES]
    done = carrel.run("--", "/usr/bin/python3", "-c", TOUCH, *DEVICES)
    assert set(done.stdout.split()) <= {"EROFS", "EPERM", "EACCES"}, done
    for name, then, now in zip(DEVICES, before, (os.stat(f"/dev/{name}") for name in DEVICES)):
        # What any process writes to its terminal by that name sets its time, too.
        assert name == "tty" or then.st_mtime_ns == now.st_mtime_ns, name
        assert (then.st_mode, then.st_uid) == (now.st_mode, now.st_uid), name
    assert before[0].st_atime_ns == os.stat("/dev/null").st_atime_ns


# Mounts that the host shares

@pytest.fixture(params=["all", "one"])
def shared_mount(request):
    """A mount namespace in the host's place, in which /mnt is a shared tmpfs and, as systemd leaves it, all else too: its pid."""
    script = ("mount --make-rshared / && " if request.param == "all" else "") + """
        mount -t tmpfs -o mode=755 none /mnt && mount --make-shared /mnt &&
        mkdir -p /mnt/project/.git/hooks /mnt/project/.vscode /mnt/project/inner /mnt/data/inner /mnt/more &&
        touch /mnt/project/.git/config /mnt/project/.envrc && echo ready && exec cat"""
    with subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", script], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == "ready\n"
        yield holder.pid
        holder.stdin.close()
        assert holder.wait(30) == 0


def inside(namespace, *argv):
    return ["nsenter", "-t", str(namespace), "-m", "--", *argv]


@contextlib.contextmanager
def waiting(carrel, namespace, user, options, then="true"):
    """A sandbox on that "host" that has said "ready" and goes on with `then` when it is told."""
    command = inside(namespace, *user, CARREL, "run", *options, "--", "sh", "-c", f"echo ready; read go; {then}")
    with subprocess.Popen(command, env=carrel.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def mounts_of(process):
    """Lines of mountinfo."""
    return set(pathlib.Path(f"/proc/{process}/mountinfo").read_text().splitlines())


def changed(process, before):
    """What came to its mounts and what went from them; but a mount whose directory somebody removes goes everywhere."""
    now, here = mounts_of(process), {line.split()[4] for line in mounts_of("self")}
    return now - before | {line for line in before - now if line.split()[4] in here or line.split()[4].startswith("/mnt")}


SHOWN = [["--dir", "/mnt/project"], ["-v", "/mnt/data:/data"], ["-v", "/mnt/data:/data:ro", "-v", "/mnt/more:/data/inner"],
         ["--dir", "/mnt/project", "-v", "/mnt/data:/workspace/inner"]]


@pytest.mark.needs_root
@pytest.mark.parametrize("who", ["root", "plain"])
@pytest.mark.parametrize("options", SHOWN, ids=["dir", "v", "v in v", "v in dir"])
def test_no_mount_of_a_sandbox_appears_on_the_host(carrel, shared_mount, other_user, options, who):
    user = [] if who == "root" else other_user
    if user:
        subprocess.run(inside(shared_mount, "chown", "-R", "12345:12345", "/mnt"), check=True)
    before = mounts_of(shared_mount)
    with waiting(carrel, shared_mount, user, options) as process:
        assert not changed(shared_mount, before), "while it runs"
        process.communicate("go\n", timeout=60)
        assert process.returncode == 0
    assert not changed(shared_mount, before), "after its end"


@pytest.mark.needs_root
@pytest.mark.parametrize("who", ["root", "plain"])
def test_no_later_mount_of_the_host_appears_in_a_sandbox(carrel, shared_mount, other_user, who):
    user = [] if who == "root" else other_user
    if user:
        subprocess.run(inside(shared_mount, "chown", "-R", "12345:12345", "/mnt"), check=True)
    options = ["--dir", "/mnt/project", "-v", "/mnt/data:/data"]
    with waiting(carrel, shared_mount, user, options, "grep -c inner /proc/self/mountinfo; ls inner /data/inner") as process:
        for place in ("project", "data"):
            script = f"mount -t tmpfs none /mnt/{place}/inner && echo {SECRET} > /mnt/{place}/inner/{SECRET}"
            subprocess.run(inside(shared_mount, "sh", "-c", script), check=True)
        out, _ = process.communicate("go\n", timeout=60)
    assert out.split()[0] == "0" and SECRET not in out, out


# A directory that two sandboxes share

# Takes the descriptors that it is given, and writes into them when the giver has gone (flood) or when it is told (hold).
HOLD = """if 1:
    import array, os, socket, sys
    server = socket.socket(socket.AF_UNIX)
    server.bind("s")
    server.listen()
    print("ready", flush=True)
    peer = server.accept()[0]
    taken = array.array("i", peer.recvmsg(1, 64)[1][0][2])
    peer.send(b"x")
    print("held", len(taken), flush=True)
    if sys.argv[1] == "flood":
        peer.recv(1)
        count = 20_000
    else:
        sys.stdin.readline()
        count = 1
    try:
        for _ in range(count):
            os.write(taken[0], b"FORGED\\n" * 9000)
    except OSError:
        pass
    print("tried", flush=True)
    sys.stdin.read()"""
GIVE = """if 1:
    import array, os, socket
    os.write(1, b"bye\\n")
    peer = socket.socket(socket.AF_UNIX)
    peer.connect("s")
    peer.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, 2]))])
    peer.recv(1)
    os._exit(3)"""


@pytest.mark.parametrize("way", ["hold", "flood"])
@pytest.mark.parametrize("kind", ["json", "file", "terminal"])
def test_output_given_to_another_sandbox_ends_with_the_command(carrel, tmp, kind, way):
    shared, out = tmp / "shared", tmp / "out"
    shared.mkdir()
    give = ["--dir", shared, "--", "/usr/bin/python3", "-c", GIVE]
    with carrel.start("run", "--dir", shared, "--", "/usr/bin/python3", "-c", HOLD, way, stdin=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == "ready\n"
        if kind == "json":
            result = carrel.run_json(*give, timeout=90)
            assert (result["exit_code"], result["reason"], result["truncated"]) == (3, "exited", False)
            said = result["stdout"]
        else:
            with open(out, "w") as file:
                done = carrel.run(*(["-t"] if kind == "terminal" else []), *give, stdout=file, stderr=file, timeout=90)
            assert done.returncode == 3, done
            said = out.read_text().replace("\r", "")
        assert holder.stdout.readline() == "held 2\n"
        if way == "hold":
            assert said == "bye\n"
            holder.stdin.write("go\n")
            holder.stdin.flush()
            assert holder.stdout.readline() == "tried\n"
            assert kind == "json" or out.read_text().replace("\r", "") == "bye\n"
        assert said.startswith("bye\n")
        holder.stdin.close()
        assert holder.wait(30) == 0


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


# Settings in a directory that tools on the host obey

@pytest.mark.parametrize("name", [".git/config", ".git/commondir", ".envrc", ".mcp.json"])
def test_settings_with_a_second_name_are_not_taken_for_protected(carrel, tmp, name):
    """Written under the other name, the file would change under this one."""
    (tmp / ".git").mkdir()
    (tmp / name).write_text("mine\n")
    (tmp / "other").hardlink_to(tmp / name)
    done = carrel.sh("echo theirs >> other", "--dir", tmp)
    assert (done.returncode, done.stdout) == (125, ""), done
    assert "--writable-config" in one_line(done.stderr, name)
    assert (tmp / name).read_text() == "mine\n"
    result = json.loads(carrel.run("-o", "json", "--dir", tmp, "--", "true").stdout)
    assert name in result["error"]["message"] and "--writable-config" in result["error"]["hint"]
    done = carrel.sh("echo theirs >> other", "--dir", tmp, "--writable-config")
    assert (done.returncode, (tmp / name).read_text()) == (0, "mine\ntheirs\n"), done


COMMONDIR = """
cp -r .git copy
git config -f copy/config core.fsmonitor 'false'
echo ../copy > .git/commondir"""


@pytest.mark.skipif(not shutil.which("git"), reason="no git here")
def test_a_git_directory_that_is_led_elsewhere_is_told(carrel, tmp):
    subprocess.run(["git", "init", "-q", tmp], check=True, env=carrel.env)
    done = carrel.sh(COMMONDIR, "--dir", tmp)
    assert done.returncode == 0, done
    assert done.stderr.startswith("carrel: warning: the command created '.git/commondir' "), done.stderr
    assert len(done.stderr.splitlines()) == 1


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
    assert carrel.py_json(script, "--memory", "64M", "--timeout", "60s", timeout=90)["reason"] == "memory_limit"


# Each fills as many sockets as it can, and says how many bytes wait in them.
FILL = {
    "TCP": """if 1:
    import socket
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(100)
    keep, block, sent = [], bytes(65536), 0
    try:
        while len(keep) < 200 and sent < 512 << 20:
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
            client.settimeout(.02)
            client.connect(server.getsockname())
            keep += client, server.accept()[0]
            try:
                while True:
                    sent += client.send(block)
            except TimeoutError:
                pass
    except OSError:
        pass
    queues = [line.split()[4].split(":") for line in list(open("/proc/self/net/PROTOCOL"))[1:]]
    print("full", sum(int(size, 16) for queue in queues for size in queue), flush=True)""",
    "UDP": """if 1:
    import socket
    keep, block = [], bytes(60000)
    while len(keep) < 100:
        keep.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        keep[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        keep[-1].bind(("127.0.0.1", 0))
        keep[-1].connect(keep[-1].getsockname())
        keep[-1].setblocking(False)
        try:
            for _ in range(100):
                keep[-1].send(block)
        except OSError:
            pass
    queues = [line.split()[4].split(":") for line in list(open("/proc/self/net/PROTOCOL"))[1:]]
    print("full", sum(int(size, 16) for queue in queues for size in queue), flush=True)""",
}


def buffers_are_counted():
    return MECHANISM != "cgroup-v1" or any(
        pathlib.Path(line.split()[1], "memory.kmem.tcp.limit_in_bytes").exists()
        for line in open("/proc/self/mounts") if line.split()[2] == "cgroup" and "memory" in line.split()[3].split(","))


@pytest.mark.parametrize("options, shown", [(["--dir", "{home}"], "/workspace"), (["-v", "{home}:/h:ro"], "/h"), (["-v", "{home}:/h"], "/h"),
                                            (["-v", "{home.parent}:/h:ro"], "/h/{home.name}")])
def test_a_directory_that_holds_carrel_s_own_home_doesn_t_show_it(carrel, options, shown):
    """A daemon listens there for its owner, whose uid a plain user's sandbox has."""
    own = pathlib.Path(carrel.env["CARREL_HOME"])
    assert carrel.run("--", "true").returncode == 0      # root makes its home itself
    (own / "run").mkdir(0o700, parents=True, exist_ok=True)
    (own / "run/kept").touch()
    name = f"{shown.format(home=carrel.home)}/{own.name}"
    done = carrel.run(*(option.format(home=carrel.home) for option in options), "--", "sh", "-c",
                      f"ls -d {name}; find {name} -mindepth 1; rm -rf {name}; mv {name} {name}.2; touch {name}/new")
    assert done.stdout == f"{name}\n", done
    assert "kept" in os.listdir(own / "run") and own.exists()


@pytest.mark.serial
@pytest.mark.needs_root
@pytest.mark.needs_cgroup
@pytest.mark.skipif(not buffers_are_counted(), reason="this kernel doesn't count buffers of sockets")
@pytest.mark.parametrize("protocol", FILL)
def test_buffers_of_the_network_stay_within_the_memory(carrel, protocol):
    done = carrel.run("--memory", "64M", "--timeout", "60s", "--", "/usr/bin/python3", "-c", FILL[protocol].replace("PROTOCOL", protocol.lower()),
                      timeout=90)
    if done.returncode != 137:
        assert done.stdout.startswith("full "), done
        assert 0 < int(done.stdout.split()[1]) < (64 + 16) << 20, done.stdout


def test_terminals_are_left_for_others(carrel):
    """The kernel has 4,096 for all, and keeps 1,024 of them for the host alone."""
    script = """if 1:
        import os
        count = 0
        try:
            while True:
                os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
                count += 1
        except OSError as e:
            print(count, e.errno)"""
    assert carrel.py(script, "--fds", "1024").stdout == "128 28\n"
