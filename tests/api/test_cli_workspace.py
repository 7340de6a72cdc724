"""create, ls, info and rm: a workspace from its first to its last day."""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import threading

import pytest
from daemons import new_directory, remove, serving
from harness import CLIENTS, Carrel, eventually, one_line
from workspaces import created, json_of, sh, workspace  # noqa: F401

MEMBERS = ["id", "name", "state", "template", "created_at", "last_used_at", "expires_at", "idle_timeout_ms", "labels", "environment",
           "env", "limits", "network", "disk_usage_bytes", "disk_limit_mechanism", "isolation", "layers_active",
           "warm", "ptrace", "view", "snapshot", "error"]


def error_of(done):
    value = json_of(done)
    assert list(value) == ["error"] and list(value["error"]) == ["code", "message", "hint"]
    return value["error"]


@pytest.mark.parametrize("name", ["-x", "--", "-", "--help", "-o"])
def test_a_context_id_that_looks_like_an_option_stands_behind_two_dashes(daemon, tmp_path, name):
    try:
        made = daemon("create", "--label", f"context_id={name}").stdout.strip()
        assert daemon("exec", "--", name, "--", "sh", "-c", "echo one > f; echo $0", "--").stdout == "--\n"
        assert daemon("exec", "--timeout", "900s", "--", name, "--timeout", "900s", "cat", "f").stdout == "one\n"
        assert json_of(daemon("info", "-o", "json", "--", name))["name"] == made
        assert daemon("cp", "--", f"{name}:f", tmp_path / "f").returncode == 0
        assert daemon("cp", "--", tmp_path / "f", f"{name}:g").returncode == 0
        assert daemon("cp", "--", f"{name}:g", "-").stdout == "one\n"
        assert daemon("ps", "-a", "--", name).returncode == 0
    finally:
        assert daemon("rm", "--", name).stdout == f"removed {name}\n"


def test_create_prints_the_name_and_makes_one_up(daemon):
    with created(daemon, "kept-name") as name, created(daemon) as other:
        assert name == "kept-name" and re.fullmatch(r"[a-z]+-[a-z]+-\d{4}", other)
        assert {name, other} <= set(daemon("ls", "-q").stdout.split())


def test_create_prints_the_object_as_json(daemon):
    value = json_of(daemon("create", "as-json", "-o", "json", "--label", "team=search", "--label", "a/b=c=d", "--memory", "64M",
                           "--cpus", "0.5", "--cpu-time", "30s", "--timeout", "90s", "--pids", "20", "--fds", "100", "--disk", "10M",
                           "--tmp", "1M", "--output", "5M", "--ttl", "7d", "--idle-timeout", "30m"))
    try:
        assert list(value) == MEMBERS and value["name"] == "as-json" and value["state"] == "ready"
        assert value["labels"] == {"team": "search", "a/b": "c=d"} and value["expires_at"] > value["created_at"]
        limits = value["limits"]
        assert [limits[key] for key in ("memory_bytes", "cpus", "cpu_time_ms", "timeout_ms", "pids", "fds", "disk_bytes", "tmp_bytes",
                                        "output_bytes")] == [64 << 20, 0.5, 30000, 90000, 20, 100, 10 << 20, 1 << 20, 5 << 20]
        assert json_of(daemon("info", "as-json", "-o", "json"))["id"] == value["id"]
    finally:
        daemon("rm", "as-json")


def test_a_workspace_is_found_by_name_id_and_context_id(daemon):
    with created(daemon, "--label", "context_id=chat/42 ü:x") as name:
        ident = json_of(daemon("info", name, "-o", "json"))["id"]
        for key in (name, ident, "chat/42 ü:x"):
            assert json_of(daemon("info", key, "-o", "json"))["name"] == name
        assert sh(daemon, "chat/42 ü:x", "echo there").stdout == "there\n"


@pytest.fixture(scope="module")
def building():
    """A daemon that knows the package index of this host."""
    directory = new_directory()
    try:
        with serving(directory, env=CLIENTS) as daemon:
            yield daemon
    finally:
        remove(directory)


@pytest.mark.once
@pytest.mark.shipped
def test_a_context_has_its_directories(building):
    with created(building, "--context", "--label", "context_id=abc", "--label", "agent=weather") as name:
        listed = sh(building, name, "ls -A; readlink .venv; cat .context.json").stdout
        for entry in ("scripts", "data", "repos", "output", ".venv", "/env", ".context.json", ".workspace_configured"):
            assert entry in listed.split()
        assert '"context_id": "abc"' in listed and '"agent": "weather"' in listed
        # What it says is as new as its latest suspension.
        assert sh(building, name, "head -c 100000 /dev/urandom >output/o").returncode == 0
        assert building.request("PATCH", f"/v1/workspaces/{name}", {"idle_timeout": "50ms"}).status == 200
        assert eventually(lambda: building.get(f"/v1/workspaces/{name}").json()["state"] == "suspended")
        said = building.get(f"/v1/workspaces/{name}/files/.context.json").json()
        assert list(said) == ["context_id", "agent", "namespace", "created_at", "last_accessed_at", "ttl_days", "disk_usage_bytes"]
        assert said["disk_usage_bytes"] >= 100000
        assert sh(building, name, "wc -c <output/o").stdout == "100000\n"


@pytest.mark.once
@pytest.mark.shipped
def test_an_environment_is_built_of_packages_or_a_file_or_named(building, tmp_path):
    (tmp_path / "requirements.txt").write_text("six==1.16.0\n")
    script = "import six, sys; open('/env/own', 'a').write('x'); print(six.__version__, sys.prefix, open('/env/own').read())"
    with created(building, "--pip", "six==1.16.0") as a, created(building, "-r", tmp_path / "requirements.txt") as b:
        made = json_of(building("info", a, "-o", "json"))["environment"]
        with created(building, "--env", made) as c:
            for name in (a, b, c):
                assert json_of(building("info", name, "-o", "json"))["environment"] in building("ls").stdout
                for written in ("x", "xx"):       # each has its own, and it stays
                    done = building("exec", name, "--", "python", "-c", script)
                    assert done.stdout == f"1.16.0 /env {written}\n", done.stderr
            for _ in range(2):
                done = building("env", "rm", made)
                assert done.returncode == 125 and "workspaces" in one_line(done.stderr, made, "in use")
                # Also before a daemon that was started again has run a command there.
                assert building.stop_serving() == 0
                building.start_serving()
        # Named by the bytes of the file, as `carrel run -r` names it.
        digest = hashlib.sha256((tmp_path / "requirements.txt").read_bytes()).hexdigest()
        assert json_of(building("info", b, "-o", "json"))["environment"].startswith(f"run_{digest[:7]}")
    done = building("create", "--pip", "no-such-package-anywhere-1", timeout=60)
    said = done.stderr.splitlines(keepends=True)    # stages without a terminal, too; then the error and its hint
    assert done.returncode == 125 and said[0] == "carrel: making the environment\n", done.stderr
    one_line("".join(said[-2:]), "no-such-package-anywhere-1")


@pytest.mark.once
@pytest.mark.shipped
def test_files_are_read_by_the_client_and_constraints_sent(building, tmp_path):
    (tmp_path / "more.txt").write_text("six\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n[project.optional-dependencies]\nmore = ["six"]\n')
    (tmp_path / "requirements.txt").write_text("-r more.txt\n")
    for words in (["-r", tmp_path / "requirements.txt"], ["-r", tmp_path / "pyproject.toml", "--extra", "more"]):
        with created(building, *words, "--constraint-line", "six==1.16.0") as name:
            assert building("exec", name, "--", "python", "-c", "import six; print(six.__version__)").stdout == "1.16.0\n"
    done = building("create", "--pip", "./x-1.0-py3-none-any.whl")
    assert done.returncode == 125
    (tmp_path / "x-1.0-py3-none-any.whl").write_text("x")
    done = building("create", "--pip", tmp_path / "x-1.0-py3-none-any.whl")
    assert done.returncode == 125 and "env build" in one_line(done.stderr, "does not accept")


@pytest.mark.once
@pytest.mark.shipped
@pytest.mark.parametrize("text", ["-r /etc/passwd", "-c /etc/passwd", "six==${HOME}", "/etc", "./x.whl"])
def test_a_client_names_no_file_or_variable_of_the_daemon(building, text):
    answer = building.request("POST", "/v1/workspaces", {"python": {"requirements": text}})
    assert answer.status in (400, 403, 422), answer.status
    said = json.dumps(answer.json())
    assert "root:" not in said and "/root" not in said


def test_variables_of_a_workspace_are_those_of_every_command(daemon):
    with created(daemon, "-e", "A=1", "-e", "B=x y=z", "-e", "A=2") as name:
        assert sh(daemon, name, 'echo "$A,$B"').stdout == "2,x y=z\n"
        assert sh(daemon, name, 'echo "$A,$B"', "-e", "A=3").stdout == "3,x y=z\n"
    done = daemon("create", "-e", "NOT_SET_ANYWHERE")
    assert done.returncode == 125
    one_line(done.stderr, "NOT_SET_ANYWHERE")


def test_variables_and_the_idle_timeout_are_shown_and_secrets_are_not(daemon):
    with created(daemon, "-e", "A=1", "-e", "API_TOKEN=hunter2", "-e", "INDEX=https://me:hunter2@host/", "--idle-timeout", "30m") as name:
        value = json_of(daemon("info", name, "-o", "json"))
        assert value["env"] == {"A": "1", "API_TOKEN": None, "INDEX": None} and value["idle_timeout_ms"] == 1800000
        text = daemon("info", name).stdout
        assert "variables     A=1,API_TOKEN=(hidden),INDEX=(hidden)\n" in text and "idle timeout  1800s\n" in text
        assert "hunter2" not in text + daemon("ls", "-o", "json").stdout
        assert sh(daemon, name, "echo $API_TOKEN").stdout == "hunter2\n"


def test_update_changes_what_is_given_and_nothing_else(daemon):
    with created(daemon, "--label", "a=1", "--label", "b=2", "--memory", "64M", "--ttl", "7d") as name:
        before = json_of(daemon("info", name, "-o", "json"))
        assert daemon("update", name, "-l", "a=3", "--remove-label", "b", "--idle-timeout", "90s").stdout == f"updated {name}\n"
        value = json_of(daemon("update", name, "--memory", "128M", "--cpu-time", "5s", "--ttl", "none", "-o", "json"))
        assert list(value) == MEMBERS and value["labels"] == {"a": "3"} and value["expires_at"] is None
        assert value["idle_timeout_ms"] == 90000
        assert value["limits"] == {**before["limits"], "memory_bytes": 128 << 20, "tmp_bytes": 64 << 20, "cpu_time_ms": 5000}
        assert json_of(daemon("update", name, "--idle-timeout", "none", "-o", "json"))["idle_timeout_ms"] is None


@pytest.mark.parametrize("options, names", [
    ([], ["no change"]), (["--ttl", "soon"], ["--ttl", "soon"]), (["--memory", "1"], ["--memory"]), (["--label", "x"], ["'x'"]),
    (["--remove-label", "=x"], ["--remove-label", "=x"]), (["--label", "k=1", "--remove-label", "k"], ["'k'", "twice"]),
    (["--net", "wide"], ["--net", "wide"]), (["--allow-domain", "http://a/"], ["--allow-domain", "http://a/"]), (["other"], ["other"]),
])
def test_what_can_not_be_updated_is_said_in_one_line(daemon, workspace, options, names):
    done = daemon("update", workspace, *options)
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, *names)
    assert error_of(daemon("update", workspace, *options, "-o", "json"))["message"] in done.stderr


def test_limits_are_not_updated_while_a_command_runs(daemon):
    with created(daemon) as name:
        running = daemon("exec", name, "-d", "--", "sleep", "60").stdout.strip()
        done = daemon("update", name, "--fds", "99", "-o", "json")
        assert done.returncode == 125 and error_of(done)["code"] == "conflict"
        assert daemon("kill", "-s", "KILL", running).returncode == 0
    assert error_of(daemon("update", name, "--fds", "99", "-o", "json"))["code"] == "not_found"


def test_files_stay_between_commands(daemon, workspace):
    assert sh(daemon, workspace, "echo kept > kept.txt").returncode == 0
    assert sh(daemon, workspace, "cat kept.txt").stdout == "kept\n"


def test_info_shows_what_is_on_disk_now(daemon):
    with created(daemon) as name:
        usage = lambda: json_of(daemon("info", name, "-o", "json"))["disk_usage_bytes"]
        assert sh(daemon, name, "head -c 5000000 /dev/urandom >f").returncode == 0
        # Blocks that are just being written to the disk are in no measure.
        assert eventually(lambda: usage() >= 5000000)
        assert sh(daemon, name, "rm f").returncode == 0
        # A change of 5 MB is measured when the last walk is a few times its own duration ago.
        assert eventually(lambda: usage() < 5000000)


@pytest.mark.parametrize("options, names", [
    (["UPPER"], ["UPPER"]), (["a_b"], ["a_b"]), (["x" * 65], ["too long"]), (["../x"], ["../x"]), ([""], ["empty"]),
    (["ok", "two"], ["two"]), (["--label", "novalue"], ["novalue"]), (["--label", "=x"], ["=x"]),
    (["--label", "k=1", "--label", "k=2"], ["'k'", "twice"]),
    (["--memory", "1"], ["--memory"]), (["--ttl", "soon"], ["--ttl", "soon"]), (["--env", "a", "--pip", "b"], ["--env"]),
    (["-r", "/nonexistent/file"], ["/nonexistent/file"]), (["--net", "wide"], ["--net", "wide"]), (["--env", "nosuchenv"], ["nosuchenv"]),
    (["--from=x"], ["'x'", "neither a snapshot nor a workspace"]),
    (["-v", "/a:/b"], ["-v", "/a"]), (["--frobnicate"], ["--frobnicate"]),
])
def test_what_can_not_be_created_is_said_in_one_line(daemon, options, names):
    done = daemon("create", *options)
    assert (done.returncode, done.stdout) == (125, "")
    one_line(done.stderr, *names)
    assert error_of(daemon("create", *options, "-o", "json"))["message"] in done.stderr


def test_a_name_is_given_once(daemon, workspace):
    done = daemon("create", workspace, "-o", "json")
    assert done.returncode == 125 and error_of(done)["code"] == "conflict" and workspace in error_of(done)["message"]


def test_ls_shows_a_table_and_selects(daemon):
    assert daemon("ls").stdout.splitlines()[0].split() == ["NAME", "STATE", "WARM", "AGE", "USED", "DISK", "ENVIRONMENT", "LABELS"]
    with created(daemon, "sel-a", "--label", "k=1", "--label", "only=a"), created(daemon, "sel-b", "--label", "k=2"):
        names = lambda *options: [item["name"] for item in json_of(daemon("ls", "-o", "json", *options))]
        assert names("--label", "k") == ["sel-b", "sel-a"]
        assert names("--label", "k=1") == ["sel-a"] and names("--label", "k=1", "--label", "only=a") == ["sel-a"]
        assert names("--label", "k=1", "--label", "only=b") == [] and names("--state", "failed") == []
        assert daemon("ls", "-q", "--label", "k").stdout == "sel-b\nsel-a\n"
        row = next(line for line in daemon("ls").stdout.splitlines() if line.startswith("sel-a"))
        assert "k=1,only=a" in row and row.split()[1:3] == ["ready", "no"]
        assert sh(daemon, "sel-a", "true").returncode == 0
        row = next(line for line in daemon("ls").stdout.splitlines() if line.startswith("sel-a"))
        assert row.split()[1:3] == ["ready", "yes"] and "sel-a" not in names("--state", "running")
    assert daemon("ls", "--state", "odd").returncode == 125


def test_a_hostile_label_is_shown_escaped(daemon):
    with created(daemon, "--label", "x=\x1b[2Jred\nline") as name:
        for command in (["ls"], ["info", name]):
            text = daemon(*command).stdout
            assert "\x1b" not in text and "\\x1b[2Jred\\x0aline" in text


@pytest.mark.kernel
def test_info_shows_limits_layers_and_mechanisms(daemon):
    with created(daemon, "--memory", "128M", "--timeout", "100500ms") as name:
        sh(daemon, name, "true")
        shown = dict(re.match(r"(.{12})  (.*)", line).groups() for line in daemon("info", name).stdout.splitlines())
        shown = {key.strip(): value for key, value in shown.items()}
        value = json_of(daemon("info", name, "-o", "json"))
        assert shown["name"] == name and (shown["state"], shown["warm"]) == ("ready", "yes") and "memory 128M" in shown["limits"]
        assert "timeout 100500ms" in shown["limits"] and value["limits"]["mechanism"] in shown["kept by"]
        assert value["disk_limit_mechanism"] in shown["kept by"] and shown["isolation"].startswith("native: namespaces")
    done = daemon("info", name)
    assert done.returncode == 125
    one_line(done.stderr, name)


def test_rm_takes_several_and_goes_on_after_one_that_is_not_there(daemon):
    a, b = (daemon("create").stdout.strip() for _ in range(2))
    done = daemon("rm", a, "nosuch", b, "--no-archive")
    assert done.returncode == 125 and done.stdout == f"removed {a}\nremoved {b}\n"
    one_line(done.stderr, "nosuch")
    c = daemon("create").stdout.strip()
    done = daemon("rm", "-o", "json", "nosuch", c)
    value = json_of(done)
    assert done.returncode == 125 and value["removed"] == [c] and value["failed"][0]["error"]["code"] == "not_found"
    done = daemon("rm", "nosuch", "-o", "json")
    assert done.returncode == 125 and error_of(done)["code"] == "not_found"
    assert not {a, b, c} & set(daemon("ls", "-q").stdout.split())


def test_events_are_lines(daemon):
    with daemon.start("events", "-o", "json") as json_lines, daemon.start("events") as text:
        # What is kept of earlier events isn't shown: make some until both listen.
        names = []
        while not all(select.select([stream], [], [], 0.2)[0] for stream in (json_lines.stdout, text.stdout)):
            names.append(daemon("create").stdout.strip())
            daemon("rm", names[-1])
            assert len(names) < 100
        event = json.loads(json_lines.stdout.readline())
        assert {"id", "type", "time", "workspace", "name"} <= set(event) and event["name"] in names
        line = text.stdout.readline()
        words = line.split()
        assert words[1].startswith("workspace.") and words[2] in names
        assert line.index(words[2]) == len("2026-01-01T00:00:00.000Z  workspace.disk_warning  "), "not aligned"
        json_lines.terminate()
        text.terminate()


def test_events_go_on_over_a_restart_of_core_and_end_with_the_daemon(own_daemon):
    """Who listens is told of the gap, and misses nothing of what the new core says."""
    with own_daemon.start("events", "-o", "json", "--after", "1") as follower:
        assert json.loads(follower.stdout.readline())["type"] == "missed"
        own_daemon.kill_core()
        with created(own_daemon, "after"):
            came = [json.loads(follower.stdout.readline()) for _ in range(2)]
            assert [event["type"] for event in came] == ["missed", "workspace.created"] and came[1]["name"] == "after"
            assert came[0]["to"] == came[1]["id"] - 1
        assert own_daemon.stop_serving() == 0
        *_, last = map(json.loads, follower.stdout)
        assert follower.wait(120) == 125 and last["error"]["message"] == "the daemon has ended" and "--after" in last["error"]["hint"]


def test_another_socket_is_named_by_host(make_daemon, tmp_path):
    other = make_daemon()
    with created(other, "elsewhere"):
        for host in (str(other.socket), f"unix:{other.socket}"):
            carrel = Carrel(tmp_path)
            assert carrel("ls", "-q", "--host", host).stdout == "elsewhere\n"
        done = carrel("ls", "--host", tmp_path / "none.sock")
        assert done.returncode == 125 and one_line(done.stderr, "none.sock")
        assert not (tmp_path / "carrel/run").exists(), "a daemon was started for another socket"


def test_the_first_command_starts_a_daemon_and_it_stays(carrel):
    try:
        assert carrel("create", "first").stdout == "first\n"
        assert carrel("exec", "first", "--", "echo", "hi").stdout == "hi\n"
        assert carrel("ls", "-q").stdout == "first\n"
    finally:
        assert carrel("serve", "--stop").returncode == 0


def test_a_name_may_not_begin_as_an_option_does(daemon):
    done = daemon("create", "--", "-x")
    assert done.returncode == 125
    assert "-, not - first" in one_line(done.stderr, "invalid name '-x'", "as options do")
    answer = daemon.post("/v1/workspaces", {"name": "-x"})
    assert answer.status == 400 and "begins with '-'" in answer.json()["detail"]
    assert "-x" not in daemon("ls", "-q").stdout.split()


# ---- a daemon that goes away ----

@contextlib.contextmanager
def stand_in(directory, *answers):
    """A socket that answers one request a connection: with bytes, or (None) not at all. Yields its path and what came."""
    path, came = str(directory / "socket"), []

    def serve():
        for answer in answers:
            with contextlib.suppress(OSError), listener.accept()[0] as connection:
                request = b""
                while b"\r\n\r\n" not in request:
                    request += connection.recv(65536)
                came.append(request.decode())
                if answer is not None:
                    head = f"HTTP/1.1 {answer[0]} OK\r\nContent-Length: {len(answer[1])}\r\nConnection: close\r\n\r\n"
                    connection.sendall(head.encode() + answer[1])

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(8)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"unix:{path}", came


def key_of(request):
    return re.search(r"Idempotency-Key: (\S+)", request).group(1)


def test_reads_and_keyed_requests_are_sent_again_when_the_connection_is_lost(daemon, tmp_path):
    with stand_in(tmp_path, None, None, (200, b'{"items":[],"next_cursor":null}')) as (host, came):
        assert json_of(daemon("ls", "-o", "json", "--host", host)) == []
        assert len(came) == 3 and len(set(came)) == 1
    os.unlink(tmp_path / "socket")
    for command, answer in ((["create", "x"], b'{"name":"x"}'), (["exec", "-d", "w", "--", "true"], b'{"id":"x"}')):
        with stand_in(tmp_path, None, (201, answer)) as (host, came):
            done = daemon(command[0], "--host", host, *command[1:])
            assert (done.returncode, done.stdout) == (0, "x\n"), done.stderr
            assert len(came) == 2 and key_of(came[0]) == key_of(came[1])
        os.unlink(tmp_path / "socket")


def test_what_can_not_be_asked_twice_is_not(daemon, tmp_path):
    with stand_in(tmp_path, None, (204, b"")) as (host, came):
        done = daemon("rm", "--force", "x", "--host", host)
        assert done.returncode == 125 and "without a response" in done.stderr and len(came) == 1


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_create_leaves_nothing(own_daemon, signo):
    """Core stands still meanwhile: it finds the request, and nobody who waits for the answer."""
    core = own_daemon.core_pid()
    os.kill(core, signal.SIGSTOP)
    try:
        create = subprocess.Popen([own_daemon.path, "create", "gone"], env=own_daemon.env, stderr=subprocess.PIPE, text=True)
        caught = lambda: int(re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{create.pid}/status").read_text())[1], 16)
        assert eventually(lambda: caught() >> signo - 1 & 1)
        create.send_signal(signo)
        assert create.communicate(timeout=120)[1] == "carrel: interrupted: no workspace was created\n"
        assert create.returncode == 130
    finally:
        os.kill(core, signal.SIGCONT)
    # A name that is taken, for good or for a moment, is a conflict.
    assert eventually(lambda: own_daemon.post("/v1/workspaces", {"name": "gone"}).status == 201)
