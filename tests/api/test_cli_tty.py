"""exec -it and shell: a terminal in a workspace behaves as one here does."""
# security: sandbox
import os
import signal
import termios

import pytest

from harness import descendants, eventually
from terminals import shell_outside, terminal
from workspaces import json_of, sh, workspace  # noqa: F401


def test_the_three_streams_are_a_terminal_of_its_own(daemon, workspace):
    with terminal(daemon, "exec", "-it", workspace, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty; exit 7",
                  rows=33, columns=101) as term:
        assert "/dev/pts/" in term.rest() and term.process.returncode == 7


def test_size_and_its_changes_get_through(daemon, workspace):
    with terminal(daemon, "exec", "-it", workspace, "sh", rows=33, columns=101) as term:
        term.expect(r"\$ ")
        term.send("stty size; echo $TERM\n")
        term.expect("33 101\r\nxterm\r\n")
        term.resize(44, 99)
        term.send("until stty size | grep '^44 99$'; do sleep 0.05; done\n")      # it comes when carrel has heard of it
        term.expect("44 99\r\n")
        term.send("exit 3\n")
        term.rest()
        assert term.process.returncode == 3


def test_a_terminal_without_a_size_is_one(daemon, workspace):
    with terminal(daemon, "exec", "-it", workspace, "sh", "-c", "tty", rows=0, columns=0) as term:
        assert "/dev/pts/" in term.rest() and term.process.returncode == 0


@pytest.mark.kernel
def test_shell_is_bash_and_interrupts_are_its_own(daemon, workspace):
    with terminal(daemon, "shell", workspace) as term:
        term.expect(r"\$ ")
        term.send("echo $BASH_VERSION. $0 $PWD\n")
        term.expect(r"\d+\.\d+.*\. bash /workspace\r\n")
        term.send("sleep 100\n")
        term.expect("sleep 100\r\n")
        assert eventually(lambda: "sleep" in sh(daemon, workspace, "cat /proc/*/comm 2>/dev/null").stdout)
        term.send("\x03")
        term.send("echo code=$?\n")
        term.expect("code=130\r\n")
        term.expect(r"\$ ")      # before, what is typed is no end yet
        term.send("\x04")
        term.rest()
        assert term.process.returncode == 0


def test_the_terminal_is_as_before_however_it_ends(daemon, workspace):
    for end in (lambda term: term.send("exit\n"), lambda term: term.process.terminate(), lambda term: daemon("kill", "-s", "KILL", *[
            item["id"] for item in json_of(daemon("ps", workspace, "-o", "json"))])):
        with terminal(daemon, "exec", "-it", workspace, "sh") as term:
            term.expect(r"\$ ")
            assert termios.tcgetattr(term.slave) != term.before
            end(term)
            if not eventually(lambda: term.process.poll() is not None, 1):
                daemon("kill", "-s", "KILL", *[item["id"] for item in json_of(daemon("ps", workspace, "-o", "json"))])
            term.rest()
            assert termios.tcgetattr(term.slave) == term.before


def test_a_command_that_can_not_run_leaves_the_terminal_alone(daemon, workspace):
    with terminal(daemon, "exec", "-it", workspace, "nosuchcommand") as term:
        assert "carrel: run 'nosuchcommand'" in term.rest() and term.process.returncode == 127
        assert termios.tcgetattr(term.slave) == term.before


def test_a_pipe_into_a_terminal_ends_as_ctrl_d_does(daemon, workspace):
    done = daemon("exec", "-it", workspace, "--", "sh", "-c", "cat; echo end", input="typed\n")
    assert "typed" in done.stdout and done.stdout.rstrip().endswith("end") and done.returncode == 0


def test_a_terminal_on_which_nobody_types_is_at_its_end(daemon, workspace):
    done = daemon("exec", "-t", workspace, "--", "sh", "-c", "cat; test -t 0 && exit 3", input="unheard")
    assert (done.returncode, done.stdout) == (3, "")


def test_a_terminal_here_is_passed_on_without_t_and_given_to_nobody(daemon, workspace):
    """What a command leaves running would have it when carrel is gone, and read what is typed to others."""
    script = "exec 3<&0; read x; echo got $x; tty; (trap '' HUP PIPE; while [ ! -e go ]; do sleep 0.02; done; head -c 1 <&3 >stolen; echo there >&2; touch done) & exit 0"
    with terminal(daemon, "exec", workspace, "sh", "-c", script) as term:
        term.send("word\n")
        term.expect("got word\r\nnot a tty")
        assert term.process.wait(120) == 0
        term.send("a password\n")
        assert daemon("exec", workspace, "touch", "go").returncode == 0
        assert eventually(lambda: daemon("exec", workspace, "test", "-e", "done").returncode == 0)
        assert daemon("exec", workspace, "cat", "stolen").stdout == ""
        assert "there" not in term.rest()


def test_an_interrupt_typed_here_reaches_the_command(daemon, workspace):
    with terminal(daemon, "exec", workspace, "sh", "-c", "trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.05; done") as term:
        term.expect("ready")
        term.send("\x03")
        assert "caught" in term.rest() and term.process.returncode == 4


def test_much_output_arrives_whole(daemon, workspace):
    with terminal(daemon, "exec", "-it", workspace, "sh", "-c", "seq 1 30000") as term:
        lines = term.rest().replace("\r", "").split()
        assert lines == [str(i) for i in range(1, 30001)]


@pytest.mark.parametrize("options", ["", "-it"], ids=["plain", "it"])
def test_in_the_background_nothing_is_read_until_fg(daemon, workspace, options):
    with shell_outside(daemon) as term:
        term.send(f"$CARREL exec {options} {workspace} -- sh -c 'touch there; head -n 1 >got; echo do''ne' &\n")
        assert eventually(lambda: daemon("exec", workspace, "test", "-e", "there").returncode == 0)
        term.send("echo for the she''ll\n")
        term.expect("for the shell\r\n")
        assert termios.tcgetattr(term.slave) == term.before
        term.send("fg\n")
        term.expect("'\r\n")
        if options:
            assert eventually(lambda: termios.tcgetattr(term.slave) != term.before)
        term.send("for the command\n")
        term.expect("done\r\n")
        assert daemon("exec", workspace, "cat", "got").stdout == "for the command\n"
        term.expect("OUT> ")
        assert termios.tcgetattr(term.slave) == term.before


def test_a_stop_puts_the_terminal_back_and_fg_takes_it_again(daemon, workspace):
    with shell_outside(daemon) as term:
        term.send(f"$CARREL exec -it {workspace} -- sh -c 'echo rea''dy; read x; echo got $x'\n")
        term.expect("ready\r\n")
        pid, = [pid for pid, (_, name) in descendants(term.process.pid).items() if name == "carrel"]
        raw = termios.tcgetattr(term.slave)
        assert raw != term.before
        os.kill(pid, signal.SIGTSTP)
        term.expect("Stopped")
        term.expect("OUT> ")
        assert termios.tcgetattr(term.slave) == term.before
        term.send("fg\n")
        term.expect("x'\r\n")
        assert eventually(lambda: termios.tcgetattr(term.slave) == raw)
        term.send("word\n")
        term.expect("got word\r\n")
        term.expect("OUT> ")
        assert termios.tcgetattr(term.slave) == term.before


def test_the_time_limit_holds_while_it_is_stopped(daemon, workspace):
    """The daemon keeps it."""
    with shell_outside(daemon) as term:
        for seconds in (2, 8, 32):      # enough for the key to come before the end
            term.send(f"$CARREL exec --timeout {seconds}s {workspace} -- sh -c 'echo rea''dy; sleep 1000'\n")
            term.expect("ready\r\n")
            term.send("\x1a")
            if term.expect("Stopped|timeout,")[0] == b"Stopped":
                break
            term.expect("OUT> ")
        else:
            pytest.fail("never stopped")
        assert eventually(lambda: json_of(daemon("ps", workspace, "-o", "json")) == [])
        term.send("fg; echo code $?\n")
        term.expect("code 124\r\n")
