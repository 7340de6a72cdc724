"""`--plan` prints what a run would be, as JSON, and runs nothing. (What exactly a plan holds is golden in tests/unit.)"""
import json
import os

import pytest
from harness import IS_ROOT, MECHANISM, one_line

MB = 1 << 20


def plan(carrel, *options, command=("true",), **how):
    done = carrel.run("--plan", *options, "--", *command, **how)
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def test_nothing_is_run(carrel, tmp):
    plan(carrel, "--dir", tmp, command=("touch", "/workspace/made"))
    assert list(tmp.iterdir()) == []


def test_the_same_options_give_the_same_plan(carrel, tmp):
    options = ["--dir", tmp, "-v", "/usr/share:/data:ro", "-e", "A=1", "--memory", "64M"]
    assert plan(carrel, *options) == plan(carrel, *options)


def test_the_command_is_in_it(carrel):
    command = plan(carrel, "-e", "A=1", "-w", "/tmp", command=("echo", "a b", ""))["command"]
    assert (command["argv"], command["cwd"]) == (["echo", "a b", ""], "/tmp")
    assert "A=1" in command["env"] and "HOME=/workspace" in command["env"]


def test_no_variable_of_the_caller_is_in_it(carrel):
    assert "hunter2" not in json.dumps(plan(carrel, env={"SECRET": "hunter2"}))


def test_the_defaults_are_in_it(carrel):
    limits = plan(carrel)["limits"]
    assert limits["memory_bytes"] == 2048 * MB and limits["disk_bytes"] == 1024 * MB and limits["tmp_bytes"] == 1024 * MB
    assert limits["pids"] == 1024 and limits["fds"] == 1024
    assert limits["cpu_time_ms"] is limits["timeout_ms"] is limits["output_bytes"] is limits["millicpus"] is None
    assert limits["kept_by"] == MECHANISM


def test_the_limits_are_in_it(carrel):
    limits = plan(carrel, "--memory", "512M", "--cpus", "1.5", "--cpu-time", "30s", "--timeout", "5m", "--pids", "10",
                  "--fds", "100", "--disk", "1.5G", "--tmp", "8M", "--output", "64K")["limits"]
    assert {key: limits[key] for key in ("memory_bytes", "millicpus", "cpu_time_ms", "timeout_ms", "pids", "fds", "disk_bytes",
                                         "tmp_bytes", "output_bytes")} == {
        "memory_bytes": 512 * MB, "millicpus": 1500, "cpu_time_ms": 30_000, "timeout_ms": 300_000, "pids": 10, "fds": 100,
        "disk_bytes": 1536 * MB, "tmp_bytes": 8 * MB, "output_bytes": 64 << 10}


def test_json_output_has_a_limit(carrel):
    assert plan(carrel, "-o", "json")["limits"]["output_bytes"] == 64 * MB


def test_a_directory_has_no_disk_limit_unless_asked(carrel, tmp):
    assert plan(carrel, "--dir", tmp)["limits"]["disk_bytes"] is None
    limits = plan(carrel, "--dir", tmp, "--disk", "10M")["limits"]
    assert (limits["disk_bytes"], limits["disk_kept_by"]) == (10 * MB, "counted")


def test_tmpfs_shrinks_below_the_memory(carrel):
    limits = plan(carrel, "--memory", "64M")["limits"]
    assert (limits["disk_bytes"], limits["tmp_bytes"]) == (32 * MB, 32 * MB)


def test_the_identity_is_in_it(carrel):
    identity = plan(carrel)["identity"]
    assert (identity["uid"], identity["gid"], identity["privileged"]) == (1000, 1000, IS_ROOT)
    if IS_ROOT:
        assert identity["outside_uid"] >= 65536 and identity["outside_gid"] >= 65536
    else:
        assert (identity["outside_uid"], identity["outside_gid"]) == (os.getuid(), os.getgid())


def mount_at(plan_, target):
    found, = [mount for mount in plan_["mounts"] if mount["target"] == target]
    return found


def test_binds_are_in_it(carrel, tmp):
    (tmp / "sub").mkdir()
    made = plan(carrel, "--dir", tmp, "-v", f"{tmp}/sub:/data:ro")
    assert mount_at(made, "/workspace")["source"] == str(tmp)
    assert (mount_at(made, "/data")["source"], "ro" in mount_at(made, "/data")["flags"]) == (f"{tmp}/sub", True)


def test_every_mount_of_the_system_is_read_only(carrel):
    for mount in plan(carrel)["mounts"]:
        if mount["kind"] == "bind" and not mount["target"].startswith("/dev"):
            assert {"ro", "nodev"} <= set(mount["flags"]), mount


def test_settings_are_protected_in_it(carrel, tmp):
    (tmp / ".envrc").write_text("")
    assert "ro" in mount_at(plan(carrel, "--dir", tmp), "/workspace/.envrc")["flags"]
    with pytest.raises(ValueError):
        mount_at(plan(carrel, "--dir", tmp, "--writable-config"), "/workspace/.envrc")


def test_a_plan_that_cannot_be_is_an_error(carrel, tmp):
    done = carrel.run("--plan", "--dir", tmp / "missing", "--", "true")
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, tmp / "missing")
