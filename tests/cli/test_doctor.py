"""`carrel doctor` on hosts made bad in every way that can be made here: the right line fails, with its cause and remedy."""
# security: sandbox
import json
import os
import pathlib
import platform
import pty
import shutil
import subprocess
import sys

import pytest
from harness import IS_ROOT, MECHANISM, SANITIZED, one_line

# A mount namespace in which mounts may be changed: root's own, or that of a user namespace.
OWN_MOUNTS = ["unshare", "-m"] if IS_ROOT else ["unshare", "-Urm"]
OWN_USERS = ["unshare", "-Ur"]
PROGRAMS = ["python3", "uv", "node", "npm", "bun", "git", "crun", "runc", "runsc"]


def doctor(carrel, *wrapper, code, **env):
    """The lines by name of `carrel doctor -o json` run behind `wrapper`; it must end with `code`."""
    done = subprocess.run([*wrapper, carrel.path, "doctor", "-o", "json"], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=60, env={**carrel.env, **env})
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"]) == (code, code == 0), report
    return {line["name"]: line for line in report["checks"]}


def shell(script):
    """Runs `script`, then what follows it on the command line."""
    return ["sh", "-ec", script + '\nexec "$@"', "sh"]


def test_a_good_host_fails_nowhere(carrel):
    lines = doctor(carrel, code=0)
    assert list(lines)[-1] == "carrel run"
    for name in ("user namespaces", "namespaces", "fresh /proc", "mount API", "clone3, pidfd", "seccomp", "memfd exec",
                 "carrel run"):
        assert lines[name]["status"] == "ok", lines[name]
    assert not [line for line in lines.values() if line["status"] == "fail"]


def test_the_mechanism_of_limits_is_the_one_that_run_uses(carrel):
    lines = doctor(carrel, code=0)
    used = carrel.run_json("--", "true")["limits"]
    assert used == MECHANISM
    assert lines["carrel run"]["detail"].endswith("limits by " + used.replace("watchdog", "a watchdog"))
    assert lines["cgroups"]["status"] == ("warn" if used == "watchdog" else "ok")


@pytest.mark.parametrize("env, coloured", [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_that_want_them(carrel, env, coloured):
    main, side = pty.openpty()
    text = b""
    with carrel.start("doctor", stdout=side, env=env) as process:
        os.close(side)
        while True:
            try:
                text += os.read(main, 65536)
            except OSError:
                break
        assert process.wait(120) == 0
    os.close(main)
    assert (b"\033[32m" in text) == coloured


def test_programs_are_found_on_the_path_and_never_fatal(carrel, tmp):
    (tmp / "uv").write_text("#!/bin/sh\necho 'uv 9.8.7 (abc)'\n")
    (tmp / "bun").write_text("#!/bin/sh\nexit 3\n")
    (tmp / "node").write_text("not executable")
    for name in ("uv", "bun"):
        (tmp / name).chmod(0o755)
    lines = doctor(carrel, code=0, PATH=str(tmp))
    assert (lines["uv"]["status"], lines["uv"]["detail"]) == ("ok", "9.8.7")
    assert lines["bun"]["status"] == "ok" and "version" in lines["bun"]["detail"]
    for name in set(PROGRAMS) - {"uv", "bun"}:
        assert (lines[name]["status"], lines[name]["detail"]) == ("warn", "not found")
        assert lines[name]["remedy"].startswith(f"install {name} ")


def test_the_uv_that_a_build_fetched_is_found(carrel, tmp):
    """It lies in carrel's home, not on PATH."""
    assert carrel("env", "ls").returncode == 0      # makes the home
    uv = pathlib.Path(carrel.env["CARREL_HOME"]) / "tools/uv-0.13.7/uv"
    uv.parent.mkdir(parents=True, exist_ok=True)
    uv.write_text("#!/bin/sh\necho 'uv 0.13.7 (abc)'\n")
    uv.chmod(0o755)
    lines = doctor(carrel, code=0, PATH=str(tmp))
    uv.unlink()
    assert lines["uv"]["status"] == "ok" and lines["uv"]["detail"].startswith("0.13.7, fetched"), lines["uv"]


def test_a_program_that_hangs_is_left_behind(carrel, tmp):
    (tmp / "uv").write_text("#!/bin/sh\nexec /bin/sleep 1000\n")
    (tmp / "uv").chmod(0o755)
    assert "version" in doctor(carrel, code=0, PATH=str(tmp))["uv"]["detail"]


def test_a_home_that_cannot_be_written_stops_root_only(carrel):
    lines = doctor(carrel, code=125 if IS_ROOT else 0, CARREL_HOME="/proc/nowhere/carrel")
    assert lines["home"]["status"] == ("fail" if IS_ROOT else "warn") and "/proc/nowhere/carrel" in lines["home"]["cause"]
    assert "CARREL_HOME=" in lines["home"]["remedy"]
    assert "overlay on home" not in lines


def test_a_covered_proc_is_named(carrel):
    lines = doctor(carrel, *OWN_MOUNTS, *shell("mount --bind /dev/null /proc/version"), code=125)
    line = lines["fresh /proc"]
    assert line["status"] == "fail" and "/proc/version" in line["cause"] and line["remedy"]
    assert lines["carrel run"]["status"] == "fail"
    assert lines["user namespaces"]["status"] == "ok"


def test_the_sysctl_that_switches_user_namespaces_off_is_named(carrel):
    lines = doctor(carrel, *OWN_USERS, *shell("echo 0 > /proc/sys/user/max_user_namespaces"), code=125)
    line = lines["user namespaces"]
    assert line["status"] == "fail" and line["cause"] == "user.max_user_namespaces is 0"
    assert "sysctl -w user.max_user_namespaces=" in line["remedy"]
    assert lines["fresh /proc"]["detail"] == "not tried"


def test_the_sysctl_that_switches_one_namespace_off_is_named(carrel):
    lines = doctor(carrel, *OWN_USERS, *shell("echo 0 > /proc/sys/user/max_net_namespaces"), code=125)
    assert lines["user namespaces"]["status"] == "ok"
    assert lines["net namespace"]["status"] == "fail"
    assert lines["net namespace"]["cause"] == "user.max_net_namespaces is 0"


# What Docker's default filter does to namespaces: clone and unshare with NEWUSER are EPERM, clone3 is ENOSYS.
FILTER = """
import ctypes, os, struct, sys
clone, unshare = %r
LD, JEQ, JSET, RET = 0x20, 0x15, 0x45, 0x06
ALLOW, EPERM, ENOSYS = 0x7fff0000, 0x50001, 0x50026
code = [(LD, 0, 0, 0), (JEQ, 2, 0, clone), (JEQ, 1, 0, unshare), (JEQ, 4, 3, 435),
        (LD, 0, 0, 16), (JSET, 0, 1, 0x10000000), (RET, 0, 0, EPERM), (RET, 0, 0, ALLOW), (RET, 0, 0, ENOSYS)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
class Filter(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(len(code), ctypes.addressof(program))), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_seccomp_filter_around_us_is_named(carrel):
    numbers = {"x86_64": (56, 272), "aarch64": (220, 97)}[platform.machine()]
    lines = doctor(carrel, sys.executable, "-c", FILTER % (numbers,), code=125)
    line = lines["user namespaces"]
    assert line["status"] == "fail" and "seccomp" in line["cause"] and line["remedy"]
    assert "seccomp" in lines["clone3, pidfd"]["cause"]
    assert lines["carrel run"]["status"] == "fail"


@pytest.mark.needs_root
def test_read_only_cgroups_are_a_warning(carrel):
    lines = doctor(carrel, *OWN_MOUNTS, *shell(
        "awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts | while read -r dir; do mount -o remount,bind,ro \"$dir\"; done"), code=0)
    assert lines["cgroups"]["status"] == "warn"
    assert lines["cgroups"]["cause"] and lines["cgroups"]["remedy"]
    assert lines["carrel run"]["detail"].endswith("limits by a watchdog")


@pytest.mark.needs_root
@pytest.mark.skipif(SANITIZED, reason="needs the static binary")
def test_a_chroot_is_named(carrel, tmp):
    (tmp / "proc").mkdir()
    shutil.copy(carrel.path, tmp / "carrel")
    done = subprocess.run([*OWN_MOUNTS, *shell(f"mount -t proc proc {tmp}/proc"), "/usr/sbin/chroot", tmp, "/carrel", "doctor"],
                          text=True, capture_output=True, timeout=60, env=carrel.env)
    assert done.returncode == 125
    assert "to a process in a chroot" in done.stdout


@pytest.mark.needs_root
@pytest.mark.skipif(not os.path.exists("/proc/sys/vm/memfd_noexec"), reason="before 6.3")
def test_memfds_that_cannot_be_executed_are_named(carrel):
    lines = doctor(carrel, "unshare", "-p", "-f", "--mount-proc", *shell("echo 2 > /proc/sys/vm/memfd_noexec"), code=125)
    assert lines["memfd exec"]["status"] == "fail" and lines["memfd exec"]["cause"] == "vm.memfd_noexec is 2"


def test_a_full_disk_behind_stdout_is_an_error(carrel):
    with open("/dev/full", "w") as full:
        done = carrel("doctor", stdout=full)
    assert done.returncode == 125
    one_line(done.stderr, "standard output")


def test_help_says_what_it_does(carrel):
    done = carrel("doctor", "--help")
    assert done.returncode == 0 and "carrel doctor [" in done.stdout


def test_an_error_is_json_where_json_was_asked_for(carrel):
    done = carrel("doctor", "-o", "json", "--frobnicate")
    assert done.returncode == 125 and done.stderr == ""
    assert "--frobnicate" in json.loads(done.stdout)["error"]["message"]
