"""exec, ps, logs and kill: a command in a workspace is as one here would be."""
import contextlib
import io
import json
import os
import random
import signal
import subprocess

import pytest
from harness import eventually, one_line
from workspaces import created, json_of, sh, workspace  # noqa: F401

RESULT = ["exit_code", "signal", "reason", "stdout", "stderr", "encoding", "truncated", "duration_ms", "cpu_ms", "max_rss_bytes",
          "limits"]


def result(daemon, name, *argv, options=(), **how):
    done = daemon("exec", name, "-o", "json", *options, "--", *argv, **how)
    value = json_of(done)
    assert list(value) == RESULT and value["exit_code"] == done.returncode
    return value


# ---- ends ----

@pytest.mark.parametrize("script, code, reason, number", [
    ("exit 0", 0, "exited", None), ("exit 3", 3, "exited", None), ("exit 255", 255, "exited", None),
    ("kill -TERM $$", 143, "signaled", 15), ("kill -KILL $$", 137, "signaled", 9),
])
def test_the_exit_code_is_the_commands(daemon, workspace, script, code, reason, number):
    assert sh(daemon, workspace, script).returncode == code
    value = result(daemon, workspace, "sh", "-c", script)
    assert (value["exit_code"], value["reason"], value["signal"]) == (code, reason, number)


def test_what_can_not_run_is_126_or_127(daemon, workspace):
    for argv, code, name in ((["nosuchcommand"], 127, "command_not_found"), (["/etc/passwd"], 126, "not_executable"),
                             (["ls -l | wc"], 127, "command_not_found")):
        done = daemon("exec", workspace, "--", *argv)
        assert done.returncode == code and done.stdout == ""
        one_line(done.stderr, argv[0])
        done = daemon("exec", workspace, "-o", "json", "--", *argv)
        assert done.returncode == code and json_of(done)["error"]["code"] == name
        done = daemon("exec", workspace, "-d", "--", *argv)
        assert done.returncode == code and daemon("wait", done.stdout.strip()).returncode == code
        one_line(done.stderr, argv[0])
    assert "sh -c" in daemon("exec", workspace, "ls -l | wc").stderr


def test_limits_of_one_command(daemon, workspace):
    done = daemon("exec", workspace, "--timeout", "200ms", "--", "sleep", "60")
    assert done.returncode == 124 and one_line(done.stderr, "timeout", "200ms") is None
    assert result(daemon, workspace, "sleep", "60", options=["--timeout", "200ms"])["reason"] == "timeout"
    spin = ["sh", "-c", "while :; do :; done"]
    done = daemon("exec", workspace, "--cpu-time", "200ms", "--", *spin)
    assert done.returncode == 124
    one_line(done.stderr, "cpu_limit")
    done = daemon("exec", workspace, "--output", "1000", "--", "yes")
    assert done.returncode == 137 and len(done.stdout) == 1000
    one_line(done.stderr, "output_limit", "1000")
    # The one who ran it counted; the daemon's record says the same.
    recorded = max(daemon.get(f"/v1/workspaces/{workspace}/execs").json()["items"], key=lambda one: one["started_at"])
    assert (recorded["reason"], recorded["exit_code"]) == ("output_limit", 137), recorded
    value = result(daemon, workspace, "yes", options=["--output", "1000"])
    assert value["reason"] == "output_limit" and value["truncated"] and len(value["stdout"]) == 1000


@pytest.mark.parametrize("stdin", ["/dev/null", "pipe", "file"])
def test_a_workspace_limits_output_however_it_is_read(daemon, tmp_path, stdin):
    with created(daemon, "--output", "1000") as name:
        (tmp_path / "in").write_text("hello\n")
        given = {"input": "hello\n"} if stdin == "pipe" else {"stdin": open(tmp_path / "in" if stdin == "file" else stdin)}
        with contextlib.closing(given.get("stdin", io.StringIO())) as file:
            again = lambda: file.seek(0) if stdin == "file" else None
            done = sh(daemon, name, "cat; yes", **given)
            assert done.returncode == 137 and len(done.stdout) == 1000
            one_line(done.stderr, "output_limit", "1000")
            again()
            value = json.loads(sh(daemon, name, "cat; yes", "-o", "json", **given).stdout)
            assert (value["reason"], value["truncated"], len(value["stdout"])) == ("output_limit", True, 1000), value
            again()
            done = sh(daemon, name, "cat; echo y", **given)      # nothing of stdin is lost on the way
            assert done.stdout == ("" if stdin == "/dev/null" else "hello\n") + "y\n" and done.returncode == 0
        assert sh(daemon, name, "yes | head -c 5000", "--output", "5000").returncode == 0       # an exec's own counts


def test_limits_of_the_workspace_are_named(daemon):
    with created(daemon, "--timeout", "300ms", "--memory", "32M") as name:
        done = daemon("exec", name, "--", "sleep", "60")
        assert done.returncode == 124
        one_line(done.stderr, "timeout", "300ms")
        # It stays: where nobody but a watcher keeps the limit, it must be seen.
        done = daemon("exec", name, "--timeout", "30s", "--", "/usr/bin/python3", "-c", "x = bytearray(200 << 20); import time; time.sleep(20)")
        assert done.returncode == 137, done.stderr
        assert "memory_limit, more than 32M" in done.stderr


# ---- streams ----

def test_streams_are_separate_and_whole(daemon, workspace):
    done = sh(daemon, workspace, "cat; echo err >&2", input="in\n")
    assert (done.stdout, done.stderr) == ("in\n", "err\n")
    value = result(daemon, workspace, "sh", "-c", "cat; echo err >&2", input="in\n")
    assert (value["stdout"], value["stderr"], value["encoding"]) == ("in\n", "err\n", "utf-8")
    value = result(daemon, workspace, "printf", r"\377\376")
    assert value["encoding"] == "base64" and value["stdout"] == "//4="


def test_much_goes_through_every_kind_of_stream(daemon, workspace, tmp_path):
    data = os.urandom(1 << 20) * 8
    assert daemon("exec", workspace, "--", "cat", input=data, text=False).stdout == data      # pipes, handed over
    (tmp_path / "in").write_bytes(data)
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as target:     # files, relayed
        assert daemon("exec", workspace, "--", "cat", stdin=source, stdout=target).returncode == 0
    assert (tmp_path / "out").read_bytes() == data


def test_a_file_gets_both_outputs_in_order(daemon, workspace, tmp_path):
    with open(tmp_path / "both", "wb") as both:
        sh(daemon, workspace, "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done", stdout=both, stderr=both)
    assert (tmp_path / "both").read_text() == "".join(f"o{i}\ne{i}\n" for i in range(1, 6))


def test_a_file_of_the_host_is_never_handed_in(daemon, workspace, tmp_path):
    secret = tmp_path / "host"
    secret.write_text("before\n")
    with open(secret, "rb") as source:
        done = sh(daemon, workspace, "readlink /proc/self/fd/0; echo x 2>/dev/null >/proc/self/fd/0; cat", stdin=source)
    assert done.stdout.startswith("pipe:") and secret.read_text() == "before\n"


def test_a_reader_that_goes_ends_the_writer(daemon, workspace):
    with daemon.start("exec", workspace, "--", "yes") as process:
        assert process.stdout.read(2) == "y\n"
        process.stdout.close()
        assert process.wait(120) == 141      # SIGPIPE, as it would be here


def test_what_is_left_running_keeps_nobody_waiting(daemon, tmp_path):
    running = lambda: sh(daemon, name, "cat /proc/*/comm 2>/dev/null").stdout.split().count("sleep")
    with created(daemon) as name, open(tmp_path / "out", "wb") as target:
        assert sh(daemon, name, "echo a; sleep 1000 & exit 4", stdout=target, stderr=target).returncode == 4
        assert sh(daemon, name, "sleep 1000 & exit 5", "-o", "json").returncode == 5
        assert eventually(lambda: running() == 2)      # so nobody waited for them
    assert (tmp_path / "out").read_text() == "a\n"


# ---- options ----

def test_variables_directory_and_words(daemon, workspace):
    done = sh(daemon, workspace, 'echo "$PWD $A $B"', "-w", "/tmp", "-e", "A=x y", "-e", "B", env={"B": "here"})
    assert done.stdout == "/tmp x y here\n"
    assert daemon("exec", "-w", "sub", workspace, "mkdir", "-p", "x").returncode != 0     # relative to /workspace: not there
    assert daemon("exec", workspace, "printf", "%s|", "a b", "", "-t", "--x").stdout == "a b||-t|--x|"
    assert daemon("exec", workspace, "--user", "agent", "--", "id", "-un").stdout == "agent\n"


@pytest.mark.parametrize("words, names", [
    (["exec"], ["NAME"]), (["exec", "{w}"], ["no command"]), (["exec", "nosuch", "true"], ["nosuch"]),
    (["exec", "{w}", "-t", "-o", "json", "true"], ["-t"]),
    (["exec", "{w}", "--timeout", "x", "true"], ["--timeout"]), (["exec", "{w}", "--user", "root", "true"], ["root"]),
    (["exec", "{w}", "--frob", "true"], ["--frob"]), (["shell", "{w}"], ["terminal"]), (["shell"], ["NAME"]),
    (["logs", "nosuch"], ["nosuch"]), (["kill", "nosuch"], ["nosuch"]), (["kill", "-s", "ODD", "x"], ["ODD"]),
    (["ps", "nosuch"], ["nosuch"]), (["logs", "x", "-f", "-o", "json"], ["-f"]), (["logs", "x", "--offset", "1"], ["--offset"]),
    (["exec", "{w}", b"\xff"], ["UTF-8"]),
])
def test_bad_input_is_one_line(daemon, workspace, words, names):
    done = daemon(*(word.format(w=workspace) if isinstance(word, str) else word for word in words))
    assert (done.returncode, "Traceback" in done.stderr) == (125, False)
    if "-o" not in words:
        assert done.stdout == ""
        one_line(done.stderr, *names)
    else:
        assert names[0] in json.loads(done.stdout)["error"]["message"]


# ---- signals ----

TRAPS = 'trap "echo got INT" INT; trap "echo got TERM; exit 9" TERM; trap "echo got USR1" USR1; echo ready; while :; do sleep 0.05; done'


def test_signals_are_passed_on(daemon, workspace):
    with daemon.start("exec", workspace, "--", "sh", "-c", TRAPS) as process:
        assert process.stdout.readline() == "ready\n"
        for signo, answer in ((signal.SIGUSR1, "got USR1\n"), (signal.SIGINT, "got INT\n"), (signal.SIGTERM, "got TERM\n")):
            process.send_signal(signo)
            assert process.stdout.readline() == answer
        assert process.wait(120) == 9


def test_a_third_interrupt_ends_it(daemon, workspace):
    with daemon.start("exec", workspace, "--", "sh", "-c", TRAPS) as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "got INT\n"     # two at once may be one
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert "canceled" in process.stderr.read()
    assert eventually(lambda: not json_of(daemon("ps", workspace, "-o", "json")))


def test_an_interrupt_before_it_has_started_ends_it(own_daemon):
    with created(own_daemon) as name:
        own_daemon.process.send_signal(signal.SIGSTOP)      # who makes sandboxes
        try:
            with own_daemon.start("exec", name, "--", "sleep", "1000") as process:
                assert eventually(lambda: [item["state"] for item in json_of(own_daemon("ps", name, "-o", "json"))] == ["starting"])
                process.send_signal(signal.SIGINT)
                assert process.wait(120) == 130
                assert "canceled" in process.stderr.read()
        finally:
            own_daemon.process.send_signal(signal.SIGCONT)
        assert eventually(lambda: not json_of(own_daemon("ps", name, "-o", "json")))


def test_a_client_that_is_killed_takes_its_command_along(daemon, workspace):
    with daemon.start("exec", workspace, "--", "sh", "-c", "echo ready; exec sleep 100") as process:
        assert process.stdout.readline() == "ready\n"
        assert [item["argv"][0] for item in json_of(daemon("ps", workspace, "-o", "json"))] == ["sh"]
        process.kill()
    assert eventually(lambda: not json_of(daemon("ps", workspace, "-o", "json")))


def test_a_stop_from_the_terminal_stops_the_command(daemon, workspace):
    with daemon.start("exec", workspace, "--", "sh", "-c", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done") as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTSTP)
        assert eventually(lambda: open(f"/proc/{process.pid}/stat").read().rsplit(")")[1].split()[0] == "T")
        process.send_signal(signal.SIGCONT)
        process.stdout.readline()
        process.terminate()
        assert process.wait(120) == 143


# Stops every process of the sandbox but itself and PID 1, again and again.
STOPPER = """if 1:
    import os, signal, sys, time
    print("there", flush=True)
    while True:
        try:
            os.kill(-1, signal.SIGSTOP)
        except ProcessLookupError:
            pass
        time.sleep(float(sys.argv[1]))"""


@contextlib.contextmanager
def stopper(daemon, workspace, pause):
    """A neighbour in the workspace; its exec is ended when the block is left."""
    ident = daemon("exec", workspace, "-d", "--", "python3", "-c", STOPPER, str(pause)).stdout.strip()
    assert eventually(lambda: daemon("logs", ident).stdout == "there\n")
    try:
        yield
    finally:
        assert daemon("kill", "-s", "KILL", ident).returncode == 0


def is_stopped_in_workspace(daemon, word):
    """Whether a process with this word in its command line is stopped."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if word in open(f"/proc/{pid}/cmdline").read().split("\0") and open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "T":
                return True
    return False


def test_a_command_that_a_neighbour_keeps_stopping_ends_when_asked_to(daemon, workspace):
    word = f"1000.{os.getpid()}{id(daemon) % 1000}"      # seconds: no other sleep has this many
    with stopper(daemon, workspace, 0.01):
        with daemon.start("exec", workspace, "--", "sleep", word) as process:
            assert eventually(lambda: is_stopped_in_workspace(daemon, word))
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        ident = daemon("exec", workspace, "-d", "--", "sleep", word).stdout.strip()
        assert eventually(lambda: is_stopped_in_workspace(daemon, word))
        assert daemon("kill", ident).returncode == 0
        assert eventually(lambda: ident not in [item["id"] for item in json_of(daemon("ps", workspace, "-o", "json"))], 60)


def test_a_neighbour_that_stops_commands_before_they_begin_holds_nobody_up(daemon, workspace):
    """Such a command is ended at last, and init serves the next ones."""
    with stopper(daemon, workspace, 0):
        for _ in range(3):
            done = daemon("exec", workspace, "--timeout", "2s", "--", "true", timeout=90)
            assert done.returncode in (0, 124, 137), done
    assert daemon("exec", workspace, "--", "true", timeout=90).returncode == 0


# ---- in the background ----

@pytest.mark.kernel
def test_a_background_command_is_found_again(daemon, workspace):
    ident = daemon("exec", workspace, "-d", "--", "sh", "-c", "echo one; echo bad >&2; read x; echo never").stdout.strip()
    assert len(ident) == 20
    done = daemon("logs", "-f", ident)
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\nnever\n", "bad\n")
    assert daemon("logs", ident, "--stream", "stdout", "--offset", "4").stdout == "never\n"
    assert daemon("logs", ident, "--stream", "stderr").stdout == "bad\n"
    assert json_of(daemon("logs", ident, "-o", "json")) == {"stdout": "one\nnever\n", "stderr": "bad\n", "encoding": "utf-8"}
    item = next(item for item in json_of(daemon("ps", "-a", "-o", "json")) if item["id"] == ident)
    assert (item["state"], item["exit_code"], item["background"]) == ("ended", 0, True)


def test_ps_shows_the_number_of_the_signal_that_ended_a_command(daemon, workspace):
    assert daemon("exec", workspace, "--", "sh", "-c", "kill -TERM $$").returncode == 143
    assert "signaled 15 " in daemon("ps", "-a", workspace).stdout


def test_logs_follow_while_it_runs(daemon, workspace):
    ident = json_of(daemon("exec", workspace, "-d", "-o", "json", "--", "sh", "-c",
                           "echo 1; while [ ! -e go ]; do sleep 0.02; done; echo 2; exit 5"))["id"]
    with daemon.start("logs", "-f", ident) as follower:
        assert follower.stdout.readline() == "1\n"
        assert sh(daemon, workspace, "touch go").returncode == 0
        assert follower.stdout.read() == "2\n" and follower.wait(120) == 0
    table = daemon("ps", "-a", workspace).stdout.splitlines()
    assert table[0].split() == ["ID", "WORKSPACE", "STATE", "AGE", "CPU", "COMMAND"]
    row = next(line for line in table if line.startswith(ident))
    assert "exited 5" in row and workspace in row


def test_logs_follow_over_a_restart_of_core(own_daemon):
    """Not a byte is lost, and none comes twice."""
    with created(own_daemon) as name:
        script = "i=0; while [ $i -lt 100 ]; do echo $i; echo e$i >&2; i=$((i + 1)); sleep 0.01; done; while [ ! -e go ]; do sleep 0.02; done; echo end"
        ident = own_daemon("exec", name, "-d", "--", "sh", "-c", script).stdout.strip()
        with own_daemon.start("logs", "-f", ident) as follower:
            assert follower.stdout.readline() == "0\n"
            own_daemon.kill_core()
            assert sh(own_daemon, name, "touch go").returncode == 0
            out, errors = follower.stdout.read(), follower.stderr.read()    # the latter fits in its pipe
            assert out.split() == [str(i) for i in range(1, 100)] + ["end"] and errors.split() == [f"e{i}" for i in range(100)]
            assert follower.wait(120) == 0


def test_kill_sends_signals(daemon, workspace):
    ident = daemon("exec", workspace, "-d", "--", "sh", "-c", TRAPS).stdout.strip()
    assert eventually(lambda: daemon("logs", ident).stdout == "ready\n")
    assert daemon("kill", ident, "-s", "USR1").returncode == 0
    assert eventually(lambda: "got USR1" in daemon("logs", ident).stdout)
    assert json_of(daemon("kill", ident, "-o", "json", "-s", "sigterm")) == {"signal": 15, "signaled": [ident]}
    assert daemon("logs", "-f", ident).stdout.endswith("got TERM\n")
    done = daemon("kill", ident)
    assert done.returncode == 125
    one_line(done.stderr, ident, "ended")
    both = [daemon("exec", workspace, "-d", "--", "sleep", "100").stdout.strip() for _ in range(2)]
    # One that fails keeps none of the others from it.
    done = daemon("kill", "nosuch", both[0], ident, both[1], "-o", "json", "-s", "9")
    assert done.returncode == 125
    value = json_of(done)
    assert value["signaled"] == both and [(item["name"], item["error"]["code"]) for item in value["failed"]] == [
        ("nosuch", "not_found"), (ident, "conflict")]
    done = daemon("kill", "nosuch", ident)
    assert done.returncode == 125 and len([line for line in done.stderr.splitlines() if line.startswith("carrel: ")]) == 2
    assert eventually(lambda: not json_of(daemon("ps", workspace, "-o", "json")))


def test_the_beginning_of_an_id_is_enough(daemon, workspace):
    with created(daemon) as other:
        letters = "0123456789abcdefghijklmnopqrstuv"
        known = {item["id"][:4] for item in daemon.get("/v1/execs?limit=500").json()["items"]}
        begin = next(text for text in ("".join(random.choices(letters, k=4)) for _ in range(100)) if text not in known)

        def start(name, where):
            ident = begin + name + "".join(random.choices(letters, k=15))
            body = {"argv": ["sh", "-c", "echo $0; exec sleep 100", name], "background": True}
            assert daemon.post(f"/v1/workspaces/{where}/exec", body, headers={"Carrel-Exec-Id": ident}).status == 201
            assert eventually(lambda: daemon("logs", ident).stdout == name + "\n")
            return ident
        a = start("a", workspace)
        assert daemon("logs", begin).stdout == daemon("logs", begin + "a", "--tail", "1").stdout == "a\n"
        b = start("b", other)
        for words in (["logs", begin], ["kill", begin], ["wait", begin], ["attach", begin]):
            done = daemon(*words, "-o", "json")
            error = json.loads(done.stdout)["error"]
            assert done.returncode == 125 and error["code"] == "conflict" and a in error["message"] and b in error["message"], error
        # Too short, too long, and not there.
        for text in (begin[:3], a + "0", begin + "c"):
            done = daemon("logs", text)
            assert done.returncode == 125
            one_line(done.stderr, f"there is no exec '{text}'")
        # Who may see one of them isn't told of the other.
        bearer = {"CARREL_TOKEN": daemon.post("/v1/tokens", {"workspace": workspace, "scope": "user"}).json()["text"]}
        assert daemon("logs", begin, env=bearer).stdout == "a\n"
        done = daemon("logs", begin + "b", env=bearer)
        assert done.returncode == 125 and b not in done.stderr
        one_line(done.stderr, f"there is no exec '{begin}b'")
        # The name of a workspace wins.
        named = json_of(daemon("create", begin, "-o", "json"))["name"]
        assert daemon("kill", begin).stdout == f"signaled 0 commands in {named}\n" and daemon("rm", begin).returncode == 0
        assert json_of(daemon("kill", begin + "a", "-o", "json")) == {"signal": 15, "signaled": [a]}
        assert daemon("wait", begin + "a").stdout == "143\n"


def test_logs_begin_with_the_last_lines(daemon, workspace):
    script = "for i in $(seq 9); do echo $i; echo e$i >&2; done; head -c 300000 /dev/zero | tr '\\0' x; echo; echo last; printf open"
    ident = daemon("exec", workspace, "-d", "--", "sh", "-c", script).stdout.strip()
    assert daemon("wait", ident).returncode == 0
    done = daemon("logs", ident, "--tail", "2")
    assert (done.stdout, done.stderr) == ("last\nopen", "e8\ne9\n")
    # Beyond the piece that is looked at first, and beyond all there is.
    assert daemon("logs", ident, "-n", "4", "--stream", "stdout").stdout == "9\n" + "x" * 300000 + "\nlast\nopen"
    assert daemon("logs", ident, "-n", "99").stdout == daemon("logs", ident).stdout
    assert json_of(daemon("logs", ident, "-n", "1", "-o", "json"))["stdout"] == "open"
    for words in (["--tail", "0"], ["--tail", "1", "--offset", "1", "--stream", "stdout"]):
        done = daemon("logs", ident, *words)
        assert done.returncode == 125
        one_line(done.stderr, "--tail")
    done = daemon("logs", "nosuch", "--tail", "1")
    assert done.returncode == 125
    one_line(done.stderr, "there is no exec 'nosuch'")
    ident = daemon("exec", workspace, "-d", "-i", "--", "sh", "-c", "echo a; echo b; read line; echo $line").stdout.strip()
    assert eventually(lambda: daemon("logs", ident).stdout == "a\nb\n")
    with subprocess.Popen([daemon.path, "logs", "-f", "-n", "1", ident], env=daemon.env, text=True, stdout=subprocess.PIPE) as follower:
        assert follower.stdout.readline() == "b\n"
        daemon("attach", ident, input="c\n")
        assert (follower.stdout.read(), follower.wait(120)) == ("c\n", 0)


def test_kill_takes_a_workspace_for_all_that_runs_in_it(daemon, workspace):
    with created(daemon) as other:
        assert daemon("kill", workspace).stdout == f"signaled 0 commands in {workspace}\n"
        start = lambda name: daemon("exec", name, "-d", "--", "sleep", "100").stdout.strip()
        both, spared = [start(workspace), start(workspace)], start(other)
        done = daemon("kill", workspace)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"signaled 2 commands in {workspace}\n", "")
        assert daemon("wait", *both).stdout.split() == ["143", "143"]
        one = start(workspace)
        assert json_of(daemon("kill", workspace, spared, "-s", "KILL", "-o", "json")) == {"signal": 9, "signaled": [one, spared]}
        assert daemon("wait", one, spared).stdout.split() == ["137", "137"]
        assert json_of(daemon("kill", workspace, "-o", "json")) == {"signal": 15, "signaled": []}
    done = daemon("kill", "nosuch")
    assert done.returncode == 125
    one_line(done.stderr, "there is no exec 'nosuch'")


def test_ps_prints_ids_alone(daemon, workspace):
    assert daemon("ps", "-q", workspace).stdout == ""
    ids = [daemon("exec", workspace, "-d", "--", "sleep", "100").stdout.strip() for _ in range(2)]
    assert set(daemon("ps", "-q", workspace).stdout.split("\n")) == {*ids, ""}
    assert daemon("kill", *daemon("ps", "-q", workspace).stdout.split()).returncode == 0
    assert eventually(lambda: daemon("ps", "-q", workspace).stdout == "")
    assert set(ids) <= set(daemon("ps", "-a", "-q", workspace).stdout.split())


def test_many_at_once(daemon, workspace):
    running = [subprocess.Popen([daemon.path, "exec", workspace, "--", "sh", "-c", f"read x; echo $x; exit {i}"], env=daemon.env,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(20)]
    for i, process in enumerate(running):
        assert process.communicate(b"n%d\n" % i, timeout=120)[0] == b"n%d\n" % i and process.returncode == i


def test_a_workspace_removed_under_a_command_ends_it(daemon):
    with created(daemon) as name, daemon.start("exec", name, "--", "sh", "-c", "echo ready; exec sleep 100") as process:
        assert process.stdout.readline() == "ready\n"
        assert daemon("rm", "--force", name).returncode == 0
        assert process.wait(120) in (130, 125)


@pytest.mark.kernel
def test_a_daemon_that_dies_is_said_to_have(own_daemon):
    with created(own_daemon) as name, own_daemon.start("exec", name, "--", "sh", "-c", "echo ready; exec sleep 100") as process:
        assert process.stdout.readline() == "ready\n"
        own_daemon.kill_core()
        assert process.wait(60) == 125
        one_line(process.stderr.read(), "the daemon ended")


def test_as_many_arguments_as_run_takes(daemon, workspace):
    words = [str(n) for n in range(20_000)]
    done = daemon("exec", workspace, "--", "sh", "-c", 'echo $# "${20000}"', "sh", *words)
    assert done.stdout == "20000 19999\n", done.stderr
    answer = daemon.post(f"/v1/workspaces/{workspace}/exec", {"argv": ["sh", "-c", "echo $#", "sh", *words]})
    assert answer.status == 200 and answer.json()["stdout"] == "20000\n"


def test_ps_shows_a_command_in_one_line_as_a_shell_would_take_it(daemon, workspace):
    script = "read x\n# it's\t\x1b \\ \x01"
    argv = ["sh", "-c", script, "", "a b", "it's", "plain"]
    ident = daemon.post(f"/v1/workspaces/{workspace}/exec", {"argv": argv, "background": True, "open_stdin": True}).json()["id"]
    line = next(line for line in daemon("ps").stdout.splitlines() if line.startswith(ident))
    command = line[line.index("sh -c "):]
    assert command == r"sh -c $'read x\n# it\'s\t\e \\ \x01' '' 'a b' 'it'\''s' plain"
    shown = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True).stdout
    assert shown.decode().split("\0")[:-1] == argv


def test_python_that_is_missing_is_hinted_at(daemon, workspace):
    done = daemon("exec", workspace, "--", "python", "-c", "")
    if done.returncode == 127:
        assert "python3" in done.stderr.splitlines()[1] and "carrel create --python 3" in done.stderr
    done = daemon("run", "--", "python", "-c", "")
    if done.returncode == 127:
        assert "python3" in done.stderr.splitlines()[1] and "--python 3" in done.stderr
