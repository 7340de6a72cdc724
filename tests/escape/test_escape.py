"""What a sandbox keeps in, seen from both sides."""
# security: sandbox
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile

import pytest

from daemons import serving
from harness import IS_ROOT, descendants, eventually

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
SLOTS = range(1879048192, 1879048192 + 65536)


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def is_alive(pid):
    try:
        return status_of(pid).get("State", "Z")[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):     # gone before, or while it was read
        return False


@contextlib.contextmanager
def sleeping(carrel, *options):
    """A sandbox in which `sleep` runs: (carrel's Popen, status of sleep as the host sees it)."""
    with carrel.start("run", *options, "--", "sleep", "1000") as process:
        def sleepers():
            return [pid for pid, (_, name) in descendants(process.pid).items() if name == "sleep"]
        found = eventually(sleepers, 60)
        assert found, process.communicate()
        yield process, status_of(found[0])


# Namespaces and identity

def test_every_namespace_is_new(carrel):
    done = carrel.sh("for n in " + " ".join(NAMESPACES) + "; do readlink /proc/self/ns/$n; done")
    assert done.returncode == 0, done
    inside = done.stdout.split()
    assert len(inside) == len(NAMESPACES)
    for name, link in zip(NAMESPACES, inside):
        assert link.startswith(name + ":")
        assert link != os.readlink(f"/proc/self/ns/{name}"), name


def test_two_sandboxes_share_no_namespace(carrel):
    with sleeping(carrel) as (_, one), sleeping(carrel) as (_, two):
        for name in NAMESPACES:
            first, second = (os.readlink(f"/proc/{status['Pid']}/ns/{name}") for status in (one, two))
            assert first != second, name


def test_uid_outside_is_not_root_and_its_own(carrel):
    with sleeping(carrel) as (_, one), sleeping(carrel) as (_, two):
        uids = [set(map(int, status[key].split())) for status in (one, two) for key in ("Uid", "Gid")]
    for ids in uids:
        assert len(ids) == 1 and 0 not in ids
    if IS_ROOT:
        assert uids[0] != uids[2], "two sandboxes of root share a uid"
        # In a container the map may be too small for the usual place.
        if "4294967295" in pathlib.Path("/proc/self/uid_map").read_text():
            assert all(next(iter(ids)) in SLOTS for ids in uids)
    else:
        assert uids == [{os.getuid()}, {os.getgid()}] * 2


def test_host_sees_no_privilege(carrel):
    with sleeping(carrel) as (_, status):
        for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[key], 16) == 0, key
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
        if IS_ROOT:
            assert status["Groups"].split() == []


def test_id_maps_hold_one_id(carrel):
    done = carrel.sh("id -u; id -g; cat /proc/self/uid_map /proc/self/gid_map")
    uid, gid, *maps = done.stdout.splitlines()
    assert uid != "0" and gid != "0"
    for line, inside in zip(maps, (uid, gid)):
        first, outside, count = line.split()
        assert first == inside and outside != "0" and count == "1"
    assert len(maps) == 2


def test_host_name_is_sandbox(carrel):
    assert carrel.sh("uname -n; cat /etc/hostname").stdout.split() == ["sandbox", "sandbox"]


# Environment, descriptors, arguments

ALLOWED_VARIABLES = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "XDG_CACHE_HOME", "ASAN_OPTIONS", "GOMEMLIMIT", "TERM", "PWD", "SHLVL", "_",
                     "OLDPWD", "COLORTERM", "TZ", "LC_ALL", "COLUMNS", "LINES", "NO_COLOR", "VIRTUAL_ENV", "CARREL",
                     # Without a network: package managers try once.
                     "PIP_RETRIES", "PIP_DISABLE_PIP_VERSION_CHECK", "UV_HTTP_RETRIES", "npm_config_fetch_retries",
                     "npm_config_update_notifier", "BUN_CONFIG_HTTP_RETRY_COUNT", "CARGO_NET_RETRY"}


def test_environment_is_an_allow_list(carrel):
    secrets = {name: "leaked-" + name for name in ("AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "LD_PRELOAD_", "PYTHONPATH",
               "DBUS_SESSION_BUS_ADDRESS", "GIT_DIR", "NODE_OPTIONS", "XDG_RUNTIME_DIR", "BASH_ENV", "ENV", "http_proxy")}
    done = carrel.run("-e", "GIVEN=yes", "--", "env", env=secrets)
    assert done.returncode == 0, done
    names = {line.split("=", 1)[0] for line in done.stdout.splitlines()}
    assert "GIVEN" in names
    assert names - {"GIVEN"} <= ALLOWED_VARIABLES
    assert "leaked" not in done.stdout
    assert str(carrel.home) not in done.stdout


def test_no_descriptor_is_inherited(carrel, tmp):
    secret = tmp / "secret"
    secret.write_text("secret")
    with open(secret) as held:
        done = carrel.sh("ls -l /proc/self/fd; cat <&9", pass_fds=[held.fileno()], stdin=subprocess.DEVNULL)
    assert "secret" not in done.stdout
    targets = re.findall(r"(\d+) -> (\S+)", done.stdout)
    assert {int(number) for number, _ in targets} <= {0, 1, 2, 3}, targets
    assert [target for number, target in targets if number == "3"] in ([], [target for _, target in targets if "/proc/" in target])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_host_file_given_as_a_stream_cannot_be_opened_again(carrel, tmp, number):
    file = tmp / "file"
    file.write_text("kept\n")
    script = f"echo changed >/proc/self/fd/{number}; : >/proc/self/fd/{number}; readlink /proc/self/fd/{number}"
    with open(file, "r" if number == 0 else "a") as stream:
        streams = {("stdin", "stdout", "stderr")[number]: stream}
        done = carrel.sh(script, **streams)
    text = file.read_text()
    assert text.startswith("kept\n"), "the file was truncated"
    if number == 0:
        assert text == "kept\n"
        assert "/" not in done.stdout, "the path of a host file is seen"


def test_init_has_neither_arguments_nor_environment_of_the_host(carrel):
    with sleeping(carrel, "-e", "GIVEN=yes") as (process, status):
        init = int(status["PPid"])
        assert status_of(init)["NSpid"].split()[-1] == "1"
        for file in ("cmdline", "environ"):
            with contextlib.suppress(PermissionError):
                text = pathlib.Path(f"/proc/{init}/{file}").read_bytes()
                assert b"/" not in text, (file, text)


# Mounts

WRITABLE = {"/workspace", "/tmp", "/.cache", "/dev/shm", "/dev/pts", "/proc", "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
            "/dev/urandom", "/dev/tty"}
DEVICES = {path for path in WRITABLE if path.startswith("/dev/") and path != "/dev/shm"}


def mounts_inside(run, *options):
    done = run(*options, "--", "cat", "/proc/self/mountinfo")
    assert done.returncode == 0, done
    for line in done.stdout.splitlines():
        left, right = line.split(" - ")
        fields = left.split()
        yield fields[4], set(fields[5].split(",")), fields[6:], right.split()[0]


def check_mounts(mounts):
    """What is covered by another is no more open than what is seen. {point: flags} of what is seen."""
    seen, top = {}, {}
    for point, flags, propagation, kind in mounts:
        seen[point] = flags
        assert "nosuid" in flags, point
        assert propagation == [], f"{point} is {propagation}"
        assert "ro" in flags or point in WRITABLE | {"/data.rw"}, f"{point} is writable"
        assert "nodev" in flags or point in DEVICES, f"{point} has devices"
        top[point] = kind
        assert not kind.startswith(("sysfs", "debugfs", "tracefs", "securityfs", "bpf", "fuse", "mqueue")), point
        assert point == "/sys/fs/cgroup" or not kind.startswith("cgroup") and not point.startswith("/sys/"), point
    assert top.get("/sys/fs/cgroup", "tmpfs") == "tmpfs"
    assert {"/", "/usr", "/proc", "/workspace", "/tmp", "/dev/shm", "/proc/sys"} <= seen.keys()
    return seen


@pytest.mark.parametrize("options", [(), ("--dir",), ("-v",)])
def test_mounts_are_closed(carrel, tmp, options):
    (tmp / "f").write_text("")
    extra = {"--dir": ("--dir", tmp), "-v": ("-v", f"{tmp}:/data:ro", "-v", f"{tmp}/f:/data.rw")}.get("".join(options), ())
    check_mounts(mounts_inside(carrel.run, *extra))


def test_a_workspace_is_mounted_as_any_sandbox(carrel, tmp):
    """Its root may be one that all workspaces share: the same places, with the same flags, and nothing can be written there."""
    with serving(tmp) as daemon:
        assert daemon("create", "one").returncode == 0
        warm = check_mounts(mounts_inside(daemon, "exec", "one"))
        places = "/ /etc /env /run /var /dev /dev/shm/.. /proc/acpi /workspace/.. /tmp/.. /.cache/.."
        tried = daemon("exec", "one", "--", "sh", "-c", f"for p in {places}; do echo x >$p/x && echo $p; done")
    assert tried.stdout == ""
    cold = check_mounts(mounts_inside(carrel.run))
    warm.pop("/sys", None)      # a root that is shared doesn't say what the limits are
    assert {point: flags - {"idmapped"} for point, flags in warm.items()} == cold


def test_root_directory_holds_nothing_else(carrel):
    known = {"bin", "dev", "env", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "tmp", "usr", "var", "workspace", ".cache"}
    assert set(carrel.run("--", "ls", "-A", "/").stdout.split()) <= known


def test_files_of_the_host_are_not_there(carrel, tmp):
    planted = []
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/root", "/home", str(tmp), str(carrel.home)):
        with contextlib.suppress(OSError):
            handle, name = tempfile.mkstemp(prefix="carrel-test.", dir=place)
            os.write(handle, b"secret")
            os.close(handle)
            planted.append(name)
    assert planted
    try:
        done = carrel.sh(f"cat {' '.join(planted)}; for d in /tmp /var/tmp /dev/shm /run /root /home; do ls -A $d; done; true")
        assert "secret" not in done.stdout
        assert "carrel-test" not in done.stdout
    finally:
        for name in planted:
            os.unlink(name)


def test_what_two_sandboxes_write_is_not_shared(carrel):
    for place in ("/tmp", "/dev/shm", "/.cache", "/workspace"):
        assert carrel.sh(f"echo x >{place}/left").returncode == 0
        assert carrel.sh(f"test -e {place}/left").returncode == 1


# Processes and sockets of the host

def test_host_processes_are_not_seen_nor_signalled(carrel):
    with subprocess.Popen(["sleep", "1000"]) as victim:
        try:
            done = carrel.sh(f"ls -d /proc/{victim.pid}; kill -9 {victim.pid}; kill -9 -- -{victim.pid}; ls /proc | grep -c '^[0-9]'")
            assert int(done.stdout.split()[-1]) <= 5
            assert f"/proc/{victim.pid}" not in done.stdout
            assert victim.poll() is None
        finally:
            victim.kill()


def test_signal_to_everybody_stays_inside(carrel):
    with subprocess.Popen(["sleep", "1000"]) as victim, sleeping(carrel) as (other, _):
        try:
            carrel.sh("kill -9 -1")
            assert victim.poll() is None and other.poll() is None
        finally:
            victim.kill()


CONNECT = """
import socket, sys
for family, address in {addresses!r}:
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(3)
    try:
        s.connect(address)
        print("connected to", address)
    except OSError as e:
        print("refused", e.errno)
"""


def test_sockets_of_the_host_are_not_reached(carrel, tmp):
    with contextlib.ExitStack() as stack:
        addresses = []
        for family, address in ((socket.AF_UNIX, f"\0carrel-test-{os.getpid()}"), (socket.AF_UNIX, str(tmp / "s")),
                                (socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0))):
            server = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            try:
                server.bind(address)
            except OSError:
                continue    # no IPv6 here
            server.listen()
            addresses.append((int(family), server.getsockname() if family != socket.AF_UNIX else address))
        done = carrel.py(CONNECT.format(addresses=addresses))
        assert done.stdout.count("refused") == len(addresses), done


def test_abstract_sockets_of_another_sandbox_are_not_reached(carrel):
    name = f"\0carrel-test-{os.getpid()}-2"
    script = f"import socket,time; s=socket.socket(socket.AF_UNIX); s.bind({name!r}); s.listen(); print('up', flush=True); time.sleep(100)"
    with carrel.start("run", "--", "/usr/bin/python3", "-c", script) as process:
        assert process.stdout.readline() == "up\n"
        done = carrel.py(CONNECT.format(addresses=[(int(socket.AF_UNIX), name)]))
        assert "refused" in done.stdout, done


# --dir

def tree(path):
    """{name: (type and mode, owner, content)} of all below `path`."""
    found = {}
    for entry in sorted(path.rglob("*")):
        info = entry.lstat()
        content = entry.read_bytes() if stat.S_ISREG(info.st_mode) else os.readlink(entry) if stat.S_ISLNK(info.st_mode) else None
        found[str(entry.relative_to(path))] = (info.st_mode, info.st_uid, info.st_gid, content)
    return found


@pytest.fixture
def project(tmp):
    """A directory with everything that is protected."""
    directory = tmp / "project"
    for name in (".git/hooks", ".git/objects", ".claude", ".codex", ".cursor", ".vscode"):
        (directory / name).mkdir(parents=True)
    for name in (".git/config", ".git/hooks/pre-commit", ".git/HEAD", ".claude/settings.json", ".codex/config", ".cursor/rules",
                 ".vscode/tasks.json", ".mcp.json", ".envrc", "README"):
        (directory / name).write_text(name + "\n")
    return directory


PROTECTED = [".git/hooks/pre-commit", ".git/config", ".claude/settings.json", ".codex/config", ".cursor/rules", ".vscode/tasks.json",
             ".mcp.json", ".envrc"]
ATTACKS = ["echo evil >{f}", "echo evil >>{f}", "rm -f {f}", "mv {f} x", "cp README {f}.new && mv -f {f}.new {f}", "ln -sf /tmp/x {f}",
           "chmod 777 {f}", "truncate -s0 {f}", "touch {f}", "rm -rf {d}", "mv {d} x", "mv {t} x", "rm -rf {t}",
           "mkdir n && mv n {t}", "ln {f} n && echo evil >n", "python3 -c 'import os; os.rename(\"{t}\", \"x\")'"]


def attack(carrel, project, file, *options):
    directory, top = os.path.dirname(file) or file, file.split("/")[0]
    script = "; ".join(f"({way.format(f=file, d=directory, t=top)}) 2>/dev/null" for way in ATTACKS)
    carrel.sh(script + "; true", "--dir", project, *options)


def kept(project, file):
    """The file and, unless that is .git itself, the directory it is in."""
    directory = os.path.dirname(file)
    return {name: what for name, what in tree(project).items()
            if name == file or (directory not in ("", ".git") and name.startswith(directory))}


@pytest.mark.parametrize("file", PROTECTED)
def test_configuration_that_the_host_obeys_is_kept(carrel, project, file):
    before = kept(project, file)
    attack(carrel, project, file)
    assert kept(project, file) == before


@pytest.mark.parametrize("file", PROTECTED)
def test_writable_config_lifts_it(carrel, project, file):
    before = kept(project, file)
    attack(carrel, project, file, "--writable-config")
    assert kept(project, file) != before


def test_new_hooks_cannot_be_added(carrel, project):
    before = set(tree(project))
    carrel.sh("echo x >.git/hooks/post-checkout; echo x >.vscode/settings.json; mkdir .claude/commands; echo x >.cursor/mcp.json",
              "--dir", project)
    assert set(tree(project)) == before


def test_git_directory_cannot_be_replaced(carrel, project):
    done = carrel.sh("mv .git x; mkdir -p y/hooks && mv -T y .git; rm -rf .git; ls -d .git x", "--dir", project)
    assert ".git\n" in done.stdout and "x\n" not in done.stdout
    assert (project / ".git/hooks/pre-commit").read_text() == ".git/hooks/pre-commit\n"


@pytest.mark.skipif(not shutil.which("git"), reason="no git here")
def test_git_still_commits(carrel, tmp):
    directory = tmp / "repository"
    subprocess.run(["git", "init", "-q", directory], check=True)
    done = carrel.sh("echo x >f && git add f && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline",
                     "--dir", directory)
    assert done.returncode == 0 and "one" in done.stdout, done
    assert carrel.sh("git config core.fsmonitor evil", "--dir", directory).returncode != 0
    assert "evil" not in (directory / ".git/config").read_text()


def test_a_git_file_is_kept(carrel, tmp):
    (tmp / ".git").write_text("gitdir: elsewhere\n")
    carrel.sh("echo 'gitdir: evil' >.git; rm -f .git; mv .git x; mkdir n; mv -T n .git", "--dir", tmp)
    assert (tmp / ".git").read_text() == "gitdir: elsewhere\n"


@pytest.mark.parametrize("name", [".git", ".vscode", ".envrc", ".git/hooks"])
def test_a_protected_name_that_is_a_link_shows_nothing_of_the_host(carrel, tmp, name):
    secret = tmp / "secret"
    secret.mkdir()
    (secret / "key").write_text("private")
    directory = tmp / "dir"
    directory.mkdir()
    (directory / name).parent.mkdir(exist_ok=True)
    (directory / name).symlink_to(secret)
    done = carrel.sh(f"cat {name}/key {name}; ls {name}/", "--dir", directory)
    assert "private" not in done.stdout and "key" not in done.stdout


def test_links_in_a_directory_lead_nowhere_outside(carrel, tmp):
    (tmp / "secret").write_text("private")
    directory = tmp / "dir"
    directory.mkdir()
    (directory / "absolute").symlink_to(tmp / "secret")
    (directory / "relative").symlink_to("../secret")
    (directory / "up").symlink_to("../../../../../../../../../..")
    done = carrel.sh("cat absolute relative ../secret up/etc/shadow; ls up", "--dir", directory)
    assert "private" not in done.stdout and "workspace" in done.stdout


MAKE_FILES = "umask 022; mkdir -p d/e; echo x >d/e/f; ln -s f d/e/s; mkfifo d/p; ln d/e/f d/h; echo y >>given 2>/dev/null; touch t"


def check_owner(carrel, directory, uid, gid):
    done = carrel.sh(MAKE_FILES + "; test -O d/e/f", "--dir", directory)
    assert done.returncode == 0, done
    made = tree(directory)
    assert {"d", "d/e", "d/e/f", "d/e/s", "d/p", "d/h", "t"} <= set(made)
    for name, (_, owner, group, _) in made.items():
        assert (owner, group) == (uid, gid), name


def test_files_belong_to_the_owner_of_the_directory(carrel, tmp):
    check_owner(carrel, tmp, os.getuid(), os.getgid())


@pytest.mark.needs_root
def test_files_belong_to_another_owner_of_the_directory(carrel, tmp):
    os.chown(tmp, 12345, 23456)
    check_owner(carrel, tmp, 12345, 23456)


@pytest.mark.needs_root
def test_files_of_others_cannot_be_changed(carrel, tmp):
    os.chown(tmp, 12345, 12345)
    (tmp / "root-owned").write_text("kept")
    (tmp / "root-owned").chmod(0o600)
    done = carrel.sh("cat root-owned; echo x >root-owned; chmod 777 root-owned; chown $(id -u) root-owned; stat -c %U root-owned",
                     "--dir", tmp)
    assert done.stdout == "nobody\n"
    info = (tmp / "root-owned").stat()
    assert (info.st_uid, info.st_mode & 0o7777) == (0, 0o600) and (tmp / "root-owned").read_text() == "kept"


@pytest.mark.parametrize("way", ["chmod u+s f", "chmod g+s f", "chmod 6755 f", "install -m 4755 f g", "cp -p suid g", "mkdir -m 2755 g",
                                 "python3 -c 'import os; os.open(\"g\", os.O_CREAT, 0o4755)'",
                                 "python3 -c 'import os; os.mknod(\"g\", 0o104755)'",
                                 "python3 -c 'import os; os.link(os.open(\".\", os.O_TMPFILE|os.O_RDWR, 0o4755), \"g\")'",
                                 "tar xf t.tar", "cp suid g && chmod --reference=suid g", "perl -e 'chmod 04755, \"f\"'",
                                 "echo evil >suid", "cp /bin/sh suid"])
def test_no_setuid_file_can_be_made(carrel, tmp, way):
    (tmp / "f").write_text("#!/bin/sh\n")
    (tmp / "suid").write_text("#!/bin/sh\n")
    (tmp / "suid").chmod(0o4755)
    subprocess.run(["tar", "cf", tmp / "t.tar", "-C", tmp, "--transform=s/suid/g/", "suid"], check=True)
    original = (tmp / "suid").read_bytes()
    carrel.sh(way, "--dir", tmp)
    for path in tmp.iterdir():
        if path.stat().st_mode & 0o6000:
            assert path.name == "suid" and path.read_bytes() == original, path


def test_a_setuid_file_of_the_host_gives_nothing(carrel, tmp):
    shutil.copy("/usr/bin/id", tmp / "id")
    (tmp / "id").chmod(0o6755)
    plain = carrel.run("--", "id", "-u").stdout
    assert carrel.run("--dir", tmp, "--", "./id", "-u").stdout == plain


# The end

def test_nothing_is_left_after_kill_9(carrel):
    with sleeping(carrel) as (process, status):
        pid, init = int(status["Pid"]), int(status["PPid"])
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert eventually(lambda: not any(map(is_alive, (pid, init))), 30)


def test_background_processes_end_with_the_command(carrel):
    carrel.sh("setsid sleep 1000 & (trap '' TERM HUP; sleep 1000) & nohup sleep 1000 >/dev/null & :")
    assert eventually(lambda: not [name for _, name in descendants().values() if name == "sleep"], 30)


def test_plan_names_every_layer(carrel):
    plan = json.loads(carrel.run("--plan", "--", "true").stdout)
    text = json.dumps(plan)
    for layer in ("seccomp", "landlock", "namespaces"):
        assert layer in text, layer
