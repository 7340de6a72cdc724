"""`carrel home init`: a home that is a file system of its own, in a sparse file. The kernel keeps its disk limits; it is
mounted when it is needed, whoever was killed before; and neither a mount nor a loop device stays."""
# security: files, limits
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess

import disk_takers
import pytest
from daemons import new_directory, remove, serving
from harness import Carrel, eventually
from rest import created, output_of

MB = 1 << 20
LIMIT = 50 * MB


def why_not():
    if not os.path.exists("/dev/loop-control"):
        return "this machine has no loop devices"
    if not shutil.which("mkfs.btrfs", path="/usr/sbin:/sbin:/usr/bin"):
        return "mkfs.btrfs isn't installed"
    with open("/proc/filesystems") as known:
        return None if "btrfs" in known.read().split() else "the kernel has no btrfs"


pytestmark = [pytest.mark.serial, pytest.mark.needs_root, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def mounted(directory):
    return sum(f" {directory}/carrel " in line for line in open("/proc/self/mountinfo"))


def loops(directory):
    found = []
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        with contextlib.suppress(OSError), open(path) as file:
            found += [path] if str(directory) in file.read() else []
    return found


@pytest.fixture
def directory():
    directory = new_directory()
    try:
        yield directory
    finally:
        while mounted(directory):
            subprocess.run(["umount", directory / "carrel"], check=True)
        left = not eventually(lambda: not loops(directory)) and loops(directory)
        remove(directory)
    assert not left, left


@pytest.fixture
def carrel(directory):
    return Carrel(directory)


def init(carrel, *options):
    done = carrel("home", "init", "--size", "1G", "-o", "json", *options)
    return done.returncode, json.loads(done.stdout)


def test_the_kernel_keeps_the_limit_also_of_what_no_directory_shows(directory, carrel):
    code, made = init(carrel)
    assert (code, made["fs"], made["size_bytes"], made["disk_limit_mechanism"]) == (0, "btrfs", 1 << 30, "btrfs-qgroup")
    assert os.stat(made["image"]).st_blocks * 512 < 100 * MB and os.stat(made["image"]).st_mode & 0o777 == 0o600
    home = os.stat(directory / "carrel")
    assert home.st_uid != 0 and home.st_mode & 0o777 == 0o700 and os.statvfs(directory / "carrel").f_flag & os.ST_NOSUID
    with serving(directory) as daemon:
        free = lambda: os.sync() or os.statvfs(directory / "carrel").f_bfree * os.statvfs(directory / "carrel").f_frsize
        before = free()
        with created(daemon, limits={"disk": LIMIT}) as workspace:
            name = workspace["name"]
            assert workspace["disk_limit_mechanism"] == "btrfs-qgroup"
            run = lambda code: daemon.post(f"/v1/workspaces/{name}/exec", {"argv": ["python3", "-c", code]}, timeout=90).json()
            for how in ("deleted, open", "deleted, mapped", "in flight", "in flight, in a socket in flight"):
                result = run(disk_takers.HIDDEN[how])
                assert result["exit_code"] == 1 and "Disk quota exceeded" in result["stderr"], (how, result)
            result = run(disk_takers.PARALLEL.replace("import signal; signal.pause()", "os._exit(1)"))
            assert (result["reason"], result["exit_code"]) == ("disk_limit", 137), result
            assert daemon.get(f"/v1/workspaces/{name}").json()["disk_usage_bytes"] <= LIMIT
            assert run("import os\nfor name in os.listdir(): os.unlink(name)\nopen('x', 'wb').write(bytes(40 << 20))")["exit_code"] == 0
            daemon.restart(signal.SIGKILL)
            assert run("import os; print(os.stat('x').st_size >> 20)")["stdout"] == "40\n"
            assert "Disk quota exceeded" in run("open('y', 'wb').write(bytes(20 << 20))")["stderr"]
        assert eventually(lambda: free() > before - 10 * MB, 60)
    assert mounted(directory) == 1      # it outlives the daemon


def test_it_is_mounted_when_it_is_needed_and_once(directory, carrel):
    assert init(carrel)[0] == 0
    subprocess.run(["umount", directory / "carrel"], check=True)
    assert eventually(lambda: not loops(directory))
    with contextlib.ExitStack() as stack:
        several = [stack.enter_context(subprocess.Popen([carrel.path, "env", "ls"], env=carrel.env, stdout=subprocess.DEVNULL)) for _ in range(8)]
        assert [process.wait(60) for process in several] == [0] * 8
    assert mounted(directory) == 1 and len(loops(directory)) == 1
    # Another mount namespace gets the same file system, not a second one on the same blocks.
    subprocess.run(["umount", directory / "carrel"], check=True)
    both = f"{carrel.path} env ls && touch {directory}/carrel/seen && nsenter --mount=/proc/$PPID/ns/mnt {carrel.path} env ls && test -e {directory}/carrel/seen"
    script = f"unshare --mount --propagation private sh -c '{both}'; exit $?"
    done = subprocess.run(["sh", "-c", script], env=carrel.env, capture_output=True, text=True)
    assert done.returncode == 0 and len(loops(directory)) == 1, done
    assert (directory / "carrel/seen").exists()


def test_a_home_that_is_there_is_refused(directory, carrel):
    (directory / "carrel").mkdir()
    (directory / "carrel/file").touch()
    code, answer = init(carrel)
    assert code == 125 and "is not empty" in answer["error"]["message"] and "cp -a" in answer["error"]["hint"]
    (directory / "carrel/file").unlink()
    assert init(carrel)[0] == 0
    code, answer = init(carrel)
    assert code == 125 and "has an image already" in answer["error"]["message"]
    assert mounted(directory) == 1


@pytest.mark.skipif(not shutil.which("strace"), reason="strace isn't installed")
@pytest.mark.shipped        # LeakSanitizer doesn't work under strace
def test_a_second_init_does_not_empty_the_image_that_the_first_has_made(directory, carrel):
    """The second has opened the draft of the first, and is stopped before it asks for the lock."""
    (directory / "seen").touch()
    stop = ["strace", "-o", directory / "seen", "-P", directory / "carrel.img.new", "-e", "trace=open,openat",
            "-e", "inject=open,openat:signal=SIGSTOP:when=1"]
    with subprocess.Popen([*stop, carrel.path, "home", "init", "--size", "1G"], env=carrel.env, stderr=subprocess.PIPE, text=True) as second:
        assert eventually(lambda: "stopped by SIGSTOP" in (directory / "seen").read_text())
        assert init(carrel)[0] == 0
        pid = int(subprocess.check_output(["pgrep", "-P", str(second.pid)]))
        os.kill(pid, signal.SIGCONT)
        assert "another process has made" in second.communicate(timeout=60)[1] and second.returncode == 125
    subprocess.run(["umount", directory / "carrel"], check=True)
    assert carrel("env", "ls").returncode == 0 and mounted(directory) == 1


def test_an_image_that_is_missing_damaged_or_not_roots_is_named(directory, carrel):
    assert init(carrel)[0] == 0
    subprocess.run(["umount", directory / "carrel"], check=True)
    image, away = directory / "carrel.img", directory / "away"
    image.rename(away)
    assert f"the image '{image}' of the home" in carrel("env", "ls").stderr
    assert "is missing" in carrel("serve").stderr
    with open(image, "wb") as file:
        file.truncate(1 << 20)
    assert "contains neither btrfs nor ext4" in carrel("env", "ls").stderr
    away.rename(image)
    os.chown(image, 1000, 1000)
    assert "users other than root could have written it" in carrel("env", "ls").stderr
    os.chown(image, 0, 0)
    directory.chmod(0o777)
    assert "users other than root could have written it" in carrel("env", "ls").stderr
    directory.chmod(0o755)
    assert carrel("env", "ls").returncode == 0
    subprocess.run(["umount", directory / "carrel"], check=True)
    with open(image, "r+b") as file:
        file.seek(0x10000)
        file.write(b"x" * 32)     # the checksum of the super block
    done = carrel("env", "ls")
    assert done.returncode == 125 and f"mount '{image}' (btrfs)" in done.stderr and "dmesg" in done.stderr, done
    assert mounted(directory) == 0 and eventually(lambda: not loops(directory))


def test_ext4_is_used_where_the_kernel_keeps_project_quotas_and_refused_elsewhere(directory, carrel):
    code, answer = init(carrel, "--fs", "ext4")
    if code == 0:
        assert answer["disk_limit_mechanism"] == "project-quota"
        return
    assert "ext4" in answer["error"]["message"] and "--fs btrfs" in answer["error"]["hint"], answer
    assert not list(directory.iterdir())


@pytest.mark.needs_faults
@pytest.mark.parametrize("point", ["home_image_mounted", "home_image_prepared", "home_image_named"])
def test_a_crash_on_the_way_leaves_a_whole_home_or_none(directory, carrel, point):
    assert carrel("home", "init", "--size", "1G", env={"CARREL_FAULT": f"{point}:1"}).returncode != 0
    assert mounted(directory) == 0 and eventually(lambda: not loops(directory))
    assert init(carrel)[0] == (125 if point == "home_image_named" else 0)
    assert carrel("env", "ls").returncode == 0 and mounted(directory) == 1


def use_snapshots(directory, daemon, workspace):
    name, url = workspace["name"], f"/v1/workspaces/{workspace['name']}"
    tree = directory / "carrel/workspaces" / workspace["id"]
    free = lambda: os.sync() or os.statvfs(directory / "carrel").f_bfree * os.statvfs(directory / "carrel").f_frsize
    newest = lambda: daemon.get(f"{url}/snapshots").json()["items"][0]
    output_of(daemon, name, "echo one >a.txt; mkdir d; touch d/x; head -c 40000000 /dev/urandom >large; chmod 1750 .")
    before, seen = free(), output_of(daemon, name, "find . | sort; cat a.txt; sha256sum large; stat -c %a .")
    assert daemon.post(f"{url}/snapshots", {"tag": "first"}).status == 201
    assert free() > before - 15 * MB
    output_of(daemon, name, "rm -r d large; echo two >a.txt")
    changes = {item["path"]: item["change"] for item in daemon.get(f"{url}/diff?snapshot=first").json()["items"]}
    assert (changes["a.txt"], changes["large"]) == ("M", "D"), changes
    answer = daemon.post(f"{url}/fork", {"name": "f", "count": 2})
    assert answer.status == 201, answer
    assert output_of(daemon, "f-2", "cat a.txt; ls") == "two\na.txt\n"
    assert daemon.post(f"{url}/rollback", {"snapshot": "first"}).status == 200
    assert output_of(daemon, name, "find . | sort; cat a.txt; sha256sum large; stat -c %a .") == seen
    assert eventually(lambda: not [n for n in os.listdir(tree) if n.startswith((".del-", "upper."))], 60), os.listdir(tree)
    # The limit is for what was changed since the snapshot.
    full = daemon.post(f"{url}/exec", {"command": "head -c 60000000 /dev/urandom >more"}).json()
    assert full["exit_code"] and "Disk quota exceeded" in full["stderr"], full
    output_of(daemon, name, "rm more; head -c 40000000 /dev/zero >more; rm more")
    for n in range(9):
        assert daemon.request("PUT", f"{url}/files/f{n}", b"x").status == 201
        assert daemon.post(f"{url}/snapshots").status == 201
    assert eventually(lambda: len(newest()["layers"]) <= 8, 60), newest()
    assert output_of(daemon, name, "ls | wc -l; sha256sum large").split()[0] == "12"
    output_of(daemon, name, "mkfifo wait; head -c 30000000 /dev/urandom >busy")
    run = daemon.post(f"{url}/exec", {"command": "echo x >.n; cat wait", "background": True}).headers["Location"]
    assert eventually(lambda: daemon.get(f"{url}/files/.n").status == 200, 60)
    before = free()
    assert daemon.post(f"{url}/snapshots", {"tag": "busy"}).status == 201
    assert free() > before - 15 * MB
    output_of(daemon, name, "echo end >wait")
    assert daemon.get(f"{run}?wait").json()["reason"] == "exited"
    for fork in ("f-1", "f-2"):
        assert daemon.delete(f"/v1/workspaces/{fork}").status == 204


def test_snapshots_rollbacks_forks_and_merges_in_an_image(directory, carrel):
    """Each workspace is a subvolume: nothing can be renamed out of it. Copies share blocks, and the limit holds as before."""
    assert init(carrel)[0] == 0
    with serving(directory) as daemon:
        with created(daemon, limits={"disk": LIMIT}) as workspace:
            use_snapshots(directory, daemon, workspace)
        assert eventually(lambda: not list((directory / "carrel/layers").glob("snap-*")), 60)
