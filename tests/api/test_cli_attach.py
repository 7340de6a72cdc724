"""wait and attach: a background command is waited for, watched and typed to from any client."""
import contextlib
import json
import signal
import subprocess
import termios

import pytest
from harness import eventually, one_line
from terminals import terminal
from workspaces import created, json_of, sh, workspace  # noqa: F401


def background(daemon, name, script, *options):
    done = daemon("exec", "-d", *options, name, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextlib.contextmanager
def attached(daemon, exec_id, *options):
    """carrel attach with pipes."""
    process = subprocess.Popen([daemon.path, "attach", *options, exec_id], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, bufsize=0, env=daemon.env)
    try:
        yield process
    finally:
        process.kill()
        process.wait(120)
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


# ---- wait ----

def test_wait_prints_every_code_and_ends_with_the_first_that_is_not_0(daemon, workspace):
    execs = [background(daemon, workspace, script) for script in ("exit 0", "until test -e go; do sleep 0.05; done; exit 5", "kill -9 $$")]
    waiting = subprocess.Popen([daemon.path, "wait", *execs], stdout=subprocess.PIPE, text=True, env=daemon.env)
    sh(daemon, workspace, "touch go")
    assert waiting.communicate(timeout=60)[0] == "0\n5\n137\n" and waiting.returncode == 5
    assert (daemon("wait", execs[0]).returncode, daemon("wait", execs[2]).stdout) == (0, "137\n")
    value = json.loads(daemon("wait", *execs, "-o", "json").stdout)
    assert [(one["id"], one["exit_code"], one["reason"]) for one in value] == list(
        zip(execs, (0, 5, 137), ("exited", "exited", "signaled")))


def test_wait_for_what_is_not_there_is_said(daemon, workspace):
    done = daemon("wait", "0" * 26)
    assert done.returncode == 125 and done.stdout == ""
    one_line(done.stderr, "no exec", "0" * 26)


def test_a_foreground_command_is_waited_for_too(daemon, workspace):
    with subprocess.Popen([daemon.path, "exec", workspace, "--", "sh", "-c", "cat; exit 4"], stdin=subprocess.PIPE, env=daemon.env) as running:
        mine = lambda: [one for one in json_of(daemon("ps", workspace, "-o", "json")) if one["state"] == "running"]
        assert eventually(mine)
        exec_id = mine()[0]["id"]
        with contextlib.closing(daemon.connection(60)) as connection:
            connection.request("GET", f"/v1/execs/{exec_id}?wait=true")
            running.stdin.close()
            answer = json.loads(connection.getresponse().read())
        assert (answer["state"], answer["exit_code"]) == ("ended", 4)
        done = daemon("attach", exec_id)
        assert done.returncode == 125
        one_line(done.stderr, exec_id, "foreground")


def test_waiting_and_watching_go_on_over_a_restart_of_core(own_daemon):
    with created(own_daemon) as name:
        exec_id = background(own_daemon, name, "echo first; until test -e go; do sleep 0.05; done; echo last; exit 6")
        waiting = subprocess.Popen([own_daemon.path, "wait", exec_id], stdout=subprocess.PIPE, text=True, env=own_daemon.env)
        with attached(own_daemon, exec_id, "--all", "--no-stdin") as watching:
            assert watching.stdout.readline() == "first\n"
            own_daemon.kill_core()
            sh(own_daemon, name, "touch go")
            assert watching.stdout.read() == "last\n" and watching.wait(120) == 6
        assert waiting.communicate(timeout=60)[0] == "6\n" and waiting.returncode == 6


# ---- attach ----

def test_input_goes_in_output_comes_out_and_its_end_is_ours(daemon, workspace):
    exec_id = background(daemon, workspace, "while read line; do echo got $line; echo err >&2; done; exit 3", "-i")
    with attached(daemon, exec_id) as process:
        process.stdin.write("one\n")
        assert process.stdout.readline() == "got one\n" and process.stderr.readline() == "err\n"
        with attached(daemon, exec_id, "--no-stdin") as other:
            process.stdin.write("two\n")        # the second client looks on; it may have come late
            assert process.stdout.readline() == "got two\n"
            process.stdin.close()
            assert process.wait(120) == 3 and other.wait(120) == 3
    assert json_of(daemon("attach", exec_id, "-a", "-o", "json"))["stdout"] == "got one\ngot two\n"
    assert daemon("attach", exec_id).stdout == ""       # from now on


def test_much_input_is_not_lost_and_does_not_hold_output_up(daemon, workspace):
    data = "x" * 99 + "\n"
    exec_id = background(daemon, workspace, "echo ready; until test -e read; do sleep 0.05; done; wc -c", "-i")
    with attached(daemon, exec_id, "-a") as process:
        assert process.stdout.readline() == "ready\n"
        writer = subprocess.Popen(["sh", "-c", f"yes {'x' * 99} | head -n 5000"], stdout=process.stdin)
        process.stdin.close()
        sh(daemon, workspace, "touch read")
        assert process.stdout.read().strip() == str(5000 * len(data)) and process.wait(60) == 0
        assert writer.wait(120) == 0


def test_signals_are_passed_on_and_the_third_detaches(daemon, workspace):
    exec_id = background(daemon, workspace, "trap 'echo caught' INT; echo ready; while :; do sleep 0.05; done")
    with attached(daemon, exec_id, "--all") as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "caught\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        one_line(process.stderr.read(), "detached", exec_id)
    assert daemon("kill", "-s", "KILL", exec_id).returncode == 0
    assert daemon("wait", exec_id).stdout == "137\n"


@pytest.mark.kernel
def test_a_terminal_is_left_and_taken_again(daemon, workspace):
    exec_id = daemon("exec", "-d", "-i", "-t", workspace, "--", "sh").stdout.strip()
    with terminal(daemon, "attach", "-a", exec_id, rows=33, columns=101) as term:
        term.expect(r"\$ ")
        term.send("until stty size | grep '^33 101$'; do sleep 0.05; done\n")
        term.expect("33 101\r\n")
        term.send("echo a\x10b | cat -v; kept=yes\n")      # the first key alone is input
        term.expect(r"a\^Pb\r\n")
        term.send("\x10\x11")
        assert "detached" in term.rest() and term.process.returncode == 0
        assert termios.tcgetattr(term.slave) == term.before
    with terminal(daemon, "attach", exec_id) as term:
        term.send("echo $kept.; exit 9\n")
        term.expect("yes\\.\r\n")
        term.rest()
        assert term.process.returncode == 9


def test_a_limit_is_named(daemon, workspace):
    exec_id = background(daemon, workspace, "sleep 60", "--timeout", "300ms")
    done = daemon("attach", exec_id)
    assert done.returncode == 124
    one_line(done.stderr, "timeout")
    assert json_of(daemon("attach", exec_id, "-o", "json"))["reason"] == "timeout"


# ---- variables of a workspace ----

def test_new_commands_get_the_changed_variables(daemon):
    with created(daemon, "-e", "A=1", "-e", "B=2", "--label", "draft=yes", "--label", "a-=x") as name:
        assert sh(daemon, name, "echo $A$B$C").stdout == "12\n"
        old = background(daemon, name, "until test -e go; do sleep 0.05; done; echo $A$B$C")
        assert daemon("update", name, "-e", "C=3", "-e", "A=9", "--unsetenv", "B", "--label", "draft-").returncode == 0
        assert sh(daemon, name, "touch go; echo $A$B$C").stdout == "93\n"
        assert daemon("wait", old).returncode == 0 and daemon("logs", old).stdout == "12\n"
        value = json_of(daemon("info", name, "-o", "json"))
        assert (value["env"], value["labels"]) == ({"C": "3", "A": "9"}, {"a-": "x"})
        done = daemon("update", name, "-e", "X=1", "--unsetenv", "X")
        assert done.returncode == 125
        one_line(done.stderr, "'X'")
        assert daemon.request("PATCH", f"/v1/workspaces/{name}", {"env": {"a=b": "1"}}).status == 400
