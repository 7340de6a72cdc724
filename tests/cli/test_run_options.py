"""What each option of `carrel run` does."""
import concurrent.futures
import json
import os
import re
import resource
import stat

import pytest
from harness import IS_ROOT, SANITIZED, one_line
from patience import with_time

ENVIRONMENT = {
    "PATH": "/env/bin:/workspace/node_modules/.bin:/usr/local/bin:/usr/bin:/bin", "HOME": "/workspace", "TMPDIR": "/tmp",
    "LANG": "C.UTF-8", "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/bash", "XDG_CACHE_HOME": "/.cache",
    "ASAN_OPTIONS": "detect_leaks=0", "GOMEMLIMIT": str((2 << 30) // 10 * 9),
    "PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_HTTP_RETRIES": "0", "npm_config_fetch_retries": "0",
    "npm_config_update_notifier": "false", "BUN_CONFIG_HTTP_RETRY_COUNT": "0", "CARGO_NET_RETRY": "0",
}
THREADS = ("OMP_NUM_THREADS", "GOMAXPROCS", "LOKY_MAX_CPU_COUNT", "POLARS_MAX_THREADS", "PYTHON_CPU_COUNT", "RAYON_NUM_THREADS")
PRINT_ENVIRONMENT = "import json; print(json.dumps(dict(p.split('=', 1) for p in open('/proc/self/environ').read().split('\\0')[:-1])))"


def environment(carrel, *options, **env):
    return json.loads(carrel.py(PRINT_ENVIRONMENT, *options, env=env).stdout)


def test_the_environment_is_made_not_inherited(carrel):
    inside = environment(carrel, SECRET="x", LD_PRELOAD="/x.so", PYTHONSTARTUP="/x", TERM="xterm", http_proxy="http://x")
    inside.pop("SHELL"), (expected := dict(ENVIRONMENT)).pop("SHELL")
    assert inside == expected


def test_e_sets_a_variable(carrel):
    inside = environment(carrel, "-e", "A=1", "-e", "B=x=y z", "-e", "EMPTY=", "-e", "HOME=/tmp")
    assert (inside["A"], inside["B"], inside["EMPTY"], inside["HOME"]) == ("1", "x=y z", "", "/tmp")


def test_limits_are_in_variables_that_the_user_can_replace(carrel):
    inside = environment(carrel, "--memory", "100M", "--cpus", "1.5", "-e", "POLARS_MAX_THREADS=7", "-e", "ASAN_OPTIONS=x=1")
    assert inside["GOMEMLIMIT"] == str((100 << 20) // 10 * 9) and inside["ASAN_OPTIONS"] == "x=1"
    assert {name: inside[name] for name in THREADS} == dict.fromkeys(THREADS, "2") | {"POLARS_MAX_THREADS": "7"}
    assert not set(THREADS) & set(environment(carrel))
    assert "ASAN_OPTIONS" not in environment(carrel, "--ptrace")


def test_e_with_a_name_takes_the_callers(carrel):
    assert environment(carrel, "-e", "TOKEN", TOKEN="secret")["TOKEN"] == "secret"


def test_the_last_e_counts(carrel):
    assert environment(carrel, "-e", "A=1", "-e", "A=2")["A"] == "2"


def test_e_decides_where_the_command_is_looked_for(carrel, tmp):
    (tmp / "tool").write_text("#!/bin/sh\necho mine\n")
    (tmp / "tool").chmod(0o755)
    assert carrel.run("--dir", tmp, "-e", "PATH=/workspace:/usr/bin:/bin", "--", "tool").stdout == "mine\n"


def test_the_user_inside_is_agent(carrel):
    assert carrel.sh("id -un; id -gn; id -u; id -g; id -G").stdout == "agent\nagent\n1000\n1000\n1000\n" or \
        carrel.sh("id -un; id -gn; id -u; id -g").stdout == "agent\nagent\n1000\n1000\n"


def test_the_host_is_called_sandbox(carrel):
    assert carrel.run("--", "uname", "-n").stdout == "sandbox\n"


def test_work_begins_in_the_workspace(carrel):
    assert carrel.sh("pwd; echo $PWD; ls -A; touch x && ls").stdout in ("/workspace\n/workspace\nx\n",)


def test_w_begins_elsewhere(carrel, tmp):
    assert carrel.run("-w", "/tmp", "--", "pwd").stdout == "/tmp\n"
    (tmp / "sub").mkdir()
    assert carrel.run("--dir", tmp, "-w", "/workspace/sub", "--", "pwd").stdout == "/workspace/sub\n"


def test_a_relative_w_is_below_the_workspace(carrel, tmp):
    (tmp / "sub").mkdir()
    done = carrel.run("--dir", tmp, "-w", "sub", "--", "pwd")
    assert done.stdout == "/workspace/sub\n" or done.returncode == 125


def test_a_workspace_is_fresh_each_time(carrel):
    carrel.sh("echo x > /workspace/kept; echo x > /tmp/kept; echo x > /.cache/kept")
    assert carrel.sh("ls -A /workspace /tmp /.cache").stdout.split() == ["/.cache:", "/tmp:", "/workspace:"]


def test_v_shows_a_directory(carrel, tmp):
    (tmp / "file").write_text("hello")
    done = carrel.run("-v", f"{tmp}:/data", "--", "sh", "-c", "cat /data/file; echo made > /data/new")
    assert (done.stdout, done.returncode) == ("hello", 0)
    assert (tmp / "new").read_text() == "made\n"


def test_v_ro_is_not_writable(carrel, tmp):
    (tmp / "file").write_text("hello")
    done = carrel.sh("cat /data/file; echo x > /data/file; echo x > /data/new; rm -f /data/file; chmod 777 /data/file",
                     "-v", f"{tmp}:/data:ro")
    assert done.stdout == "hello" and done.stderr.count("Read-only file system") >= 3
    assert [path.name for path in tmp.iterdir()] == ["file"] and (tmp / "file").read_text() == "hello"


def test_v_shows_a_file(carrel, tmp):
    (tmp / "file").write_text("hello\n")
    done = carrel.sh("cat /etc/answer; echo more >> /etc/answer", "-v", f"{tmp}/file:/etc/answer")
    assert (done.stdout, done.returncode) == ("hello\n", 0)
    assert (tmp / "file").read_text() == "hello\nmore\n"


def test_v_ro_of_a_file_is_not_writable(carrel, tmp):
    (tmp / "file").write_text("hello\n")
    assert "Read-only" in carrel.sh("echo more >> /data/answer", "-v", f"{tmp}/file:/data/answer:ro").stderr
    assert (tmp / "file").read_text() == "hello\n"


@pytest.mark.parametrize("place", ["/data", "/deep/er/still", "/workspace/sub/dir", "/opt/x", "/tmp/x", "/home/agent"])
def test_v_goes_anywhere(carrel, tmp, place):
    (tmp / "file").write_text("hello")
    assert carrel.run("-v", f"{tmp}:{place}", "--", "cat", f"{place}/file").stdout == "hello"


def test_v_may_be_given_many_times(carrel, tmp):
    options = []
    for n in range(20):
        (tmp / f"d{n}").mkdir()
        (tmp / f"d{n}/file").write_text(f"{n} ")
        options += ["-v", f"{tmp}/d{n}:/data/{n}:ro"]
    assert carrel.run(*options, "--", "sh", "-c", "cat /data/?/file /data/1?/file").stdout.split() == [str(n) for n in range(20)]


def test_v_may_lie_in_a_v(carrel, tmp):
    (tmp / "outer/inner").mkdir(parents=True)
    (tmp / "other").mkdir()
    (tmp / "other/file").write_text("inner")
    assert carrel.run("-v", f"{tmp}/outer:/data", "-v", f"{tmp}/other:/data/inner:ro", "--", "cat", "/data/inner/file"
                      ).stdout == "inner"


def test_v_may_lie_in_the_directory(carrel, tmp):
    (tmp / "work/data").mkdir(parents=True)
    (tmp / "other").mkdir()
    (tmp / "other/file").write_text("other")
    assert carrel.run("--dir", tmp / "work", "-v", f"{tmp}/other:/workspace/data:ro", "--", "cat", "data/file"
                      ).stdout == "other"


def test_v_carries_no_setuid(carrel, tmp):
    done = carrel.sh("grep ' /data ' /proc/self/mountinfo", "-v", f"{tmp}:/data")
    options = done.stdout.split()[5].split(",")
    assert "nosuid" in options and "nodev" in options


def test_dir_is_the_workspace(carrel, tmp):
    (tmp / "file").write_text("hello")
    done = carrel.sh("pwd; cat file; mkdir sub; echo made > sub/new; rm file", "--dir", tmp)
    assert (done.stdout, done.returncode) == ("/workspace\nhello", 0)
    assert (tmp / "sub/new").read_text() == "made\n" and not (tmp / "file").exists()


def test_dir_may_be_relative(carrel, tmp):
    (tmp / "sub").mkdir()
    (tmp / "sub/file").write_text("hello")
    assert carrel.run("--dir", "sub", "--", "cat", "file", cwd=tmp).stdout == "hello"
    assert carrel.run("--dir", ".", "--", "cat", "sub/file", cwd=tmp).stdout == "hello"


def test_dir_leaves_nothing_in_the_directory(carrel, tmp):
    carrel.run("--dir", tmp, "--", "true")
    assert list(tmp.iterdir()) == []


def test_what_is_made_in_dir_belongs_to_its_owner(carrel, tmp):
    owner = (12345, 12346) if IS_ROOT else (os.getuid(), os.getgid())
    if IS_ROOT:
        os.chown(tmp, *owner)
    done = carrel.sh("echo x > file; mkdir dir; ln -s file link; mkfifo fifo; stat -c %u:%g file", "--dir", tmp)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1000:1000\n"
    for path in tmp.iterdir():
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == owner, path


@pytest.mark.needs_root
def test_what_is_made_in_a_directory_of_root_belongs_to_root(carrel, tmp):
    assert carrel.sh("echo x > file", "--dir", tmp).returncode == 0
    assert (tmp / "file").stat().st_uid == 0


def test_no_file_in_dir_can_become_setuid(carrel, tmp):
    (tmp / "file").write_text("")
    assert carrel.sh("chmod u+s file; chmod g+s file; chmod 4755 file; chmod 2755 file", "--dir", tmp).returncode != 0
    assert stat.S_IMODE((tmp / "file").stat().st_mode) & 0o6000 == 0


CONFIG = [".git/config", ".git/hooks/pre-commit", ".git/commondir", ".git/modules/sub/config", ".git/worktrees/other/gitdir",
          ".claude/settings.json", ".codex/config.toml", ".cursor/rules", ".vscode/tasks.json", ".mcp.json", ".envrc"]


def config(tmp):
    for name in CONFIG:
        (tmp / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp / name).write_text("mine\n")


@pytest.mark.parametrize("name", CONFIG)
def test_settings_in_dir_that_run_things_are_read_only(carrel, tmp, name):
    config(tmp)
    top = name.split("/")[0]
    carrel.sh(f"echo theirs >> {name}; rm -f {name}; mv {top} x && mkdir -p $(dirname {name}) && echo theirs > {name}",
              "--dir", tmp)
    assert (tmp / name).read_text() == "mine\n"


@pytest.mark.parametrize("name", CONFIG)
def test_writable_config_lifts_it(carrel, tmp, name):
    config(tmp)
    done = carrel.sh(f"echo theirs >> {name}", "--dir", tmp, "--writable-config")
    assert (done.returncode, (tmp / name).read_text()) == (0, "mine\ntheirs\n")


def warnings(stderr):
    """What the command is said to have made; nothing else may be said."""
    found = [re.match(r"carrel: warning: the command created '([^']*)'", line) for line in stderr.splitlines()]
    assert all(found), stderr
    return [match[1] for match in found]


@pytest.mark.parametrize("name, told", [(name, "/".join(name.split("/")[:2 if name.startswith(".git/") else 1])) for name in CONFIG])
def test_settings_that_the_command_makes_in_dir_are_told(carrel, tmp, name, told):
    """What isn't there can't be made read-only, and tools on the host will obey it."""
    (tmp / ".git").mkdir()
    done = carrel.sh(f"mkdir -p $(dirname {name}) && echo theirs > {name}; exit 3", "--dir", tmp)
    assert (done.returncode, warnings(done.stderr)) == (3, [told])


def test_a_whole_repository_that_the_command_makes_in_dir_is_told_once(carrel, tmp):
    done = carrel.sh("mkdir -p .git/hooks .git/modules/x .git/worktrees; echo x > .git/config; echo x > .git/commondir", "--dir", tmp)
    assert (done.returncode, warnings(done.stderr)) == (0, [".git"])


def test_what_the_command_made_is_told_also_beside_json_and_after_a_limit(carrel, tmp):
    def run(limit):
        for name in (".vscode", ".claude"):
            (tmp / name).exists() and (tmp / name).rmdir()
        return carrel.run("-o", "json", "--dir", tmp, "--timeout", limit, "--", "sh", "-c", "mkdir .vscode .claude; sleep 1000", timeout=90)
    done = with_time(run, lambda: (tmp / ".vscode").exists() and (tmp / ".claude").exists())
    assert json.loads(done.stdout)["reason"] == "timeout"
    assert sorted(warnings(done.stderr)) == [".claude", ".vscode"]


def test_settings_that_were_there_or_are_gone_again_are_not_told(carrel, tmp):
    config(tmp)
    (tmp / ".envrc").unlink()
    assert carrel.sh("touch new; echo x > .envrc; rm .envrc", "--dir", tmp).stderr == ""


def test_writable_config_is_not_told_of(carrel, tmp):
    assert carrel.sh("mkdir -p .git/hooks .vscode", "--dir", tmp, "--writable-config").stderr == ""


def test_a_dir_on_another_mount_below_is_seen(carrel, tmp):
    """A directory with a mount point in it, as /dev/shm below /dev: the plain user's kernel call refuses a half of it."""
    done = carrel.run("-v", "/dev:/mnt/dev:ro", "--", "ls", "/mnt/dev")
    assert done.returncode in (0, 125)
    if done.returncode == 125:
        one_line(done.stderr, "/dev")


@pytest.mark.parametrize("options, name", [
    (["-w", "/nonexistent"], "/nonexistent"),
    (["--dir", ".", "-v", ".:/workspace/not-there"], "/workspace/not-there"),
    (["--dir", ".", "-w", "/workspace/not-there"], "/workspace/not-there"),
], ids=["w", "v in dir", "w in dir"])
def test_a_start_that_fails_always_says_why(carrel, tmp, options, name):
    """Many at once: which of the two sides is ahead of the other has to vary."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(carrel.run, *options, "--", "true", cwd=tmp) for _ in range(40 if SANITIZED else 200)]
    for done in (run.result() for run in runs):
        assert (done.returncode, done.stdout) == (125, "")
        one_line(done.stderr, name, "No such file or directory")


def test_a_caller_that_may_write_no_file_is_told_so(carrel):
    nothing = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    done = carrel.run("--", "true", preexec_fn=nothing)
    assert (done.returncode, done.stdout) == (125, ""), done
    assert "ulimit -f" in one_line(done.stderr, "File too large")
    done = carrel.run("-o", "json", "--", "true", preexec_fn=nothing)
    assert done.returncode == 125 and json.loads(done.stdout)["error"]["message"], done


def test_the_network_is_lo_alone(carrel):
    done = carrel.py("import socket; print([name for _, name in socket.if_nameindex()])", "--net", "none")
    assert done.stdout == "['lo']\n"


def test_gvisor_is_not_there_yet(carrel):
    for isolation in ("gvisor", "oci", "bwrap"):
        done = carrel.run("--isolation", isolation, "--", "true")
        assert done.returncode == 125
        one_line(done.stderr, isolation)
        done = carrel.run("--isolation", isolation, "-o", "json", "--", "true")
        assert done.returncode == 125
        assert json.loads(done.stdout)["error"]["code"] == "unavailable"


def test_native_isolation_may_be_named(carrel):
    assert carrel.run("--isolation", "native", "--", "true").returncode == 0


def test_a_value_may_follow_an_equals_sign(carrel):
    assert carrel.run("--pids=50", "--memory=64M", "--net=none", "--", "true").returncode == 0


def test_a_copied_carrel_works(carrel, tmp):
    import shutil
    shutil.copy(carrel.path, tmp / "elsewhere")
    carrel.path = str(tmp / "elsewhere")
    if IS_ROOT:
        os.chown(tmp / "elsewhere", 12345, 12345)
    assert carrel.run("--", "echo", "works").stdout == "works\n"


def test_carrel_needs_no_environment(carrel):
    import subprocess
    keep = {name: value for name, value in carrel.env.items() if name.endswith("SAN_OPTIONS")}
    done = subprocess.run([carrel.path, "run", "--", "echo", "works"], env=keep, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("works\n", "")


def test_carrel_needs_no_current_directory(carrel, tmp):
    import shlex, subprocess
    (tmp / "gone").mkdir()
    line = f"cd {tmp}/gone && rmdir {tmp}/gone && {shlex.quote(carrel.path)} run -- echo works"
    done = subprocess.run(["sh", "-c", line], env=carrel.env, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("works\n", "")


def test_a_volume_below_a_link_lies_where_the_link_leads(carrel, tmp):
    (tmp / "data").write_text("seen")
    done = carrel.sh("cat /var/tmp/a/b/data /tmp/a/b/data", "-v", f"{tmp}:/var/tmp/a/b:ro")
    assert done.stdout == "seenseen", done.stderr
