"""A terminal in the sandbox: `-it` behaves as a shell on a real one does."""
import contextlib
import json
import os
import pathlib
import re
import termios

import pytest
from harness import descendants, eventually, one_line
from terminals import terminal


@contextlib.contextmanager
def shell(carrel, *options, **how):
    """bash inside, at its prompt."""
    with terminal(carrel, "run", "-it", *options, "--", "bash", "--norc", "-i", **how) as term:
        term.expect(r"\$ $")
        term.send("PS1='PROM''PT> '\n")
        term.expect("PROMPT> ")
        yield term


def test_the_three_streams_are_a_terminal(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty") as term:
        term.expect(r"/dev/pts/\d+\r\n")
        assert term.process.wait(30) == 0


def test_it_is_the_controlling_terminal(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "echo yes > /dev/tty") as term:
        term.expect("yes\r\n")
        assert term.process.wait(30) == 0


def test_the_window_has_its_size(carrel):
    with terminal(carrel, "run", "-it", "--", "stty", "size", rows=33, columns=101) as term:
        term.expect("33 101\r\n")


def test_a_new_size_comes_through(carrel):
    with terminal(carrel, "run", "-it", "--", "bash", "-c",
                  "trap 'stty size' WINCH; echo ready; while :; do read -t 0.05 || :; done") as term:
        term.expect("ready")
        term.resize(44, 122)
        term.expect("44 122\r\n")


def test_term_is_the_callers(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "echo =$TERM=", TERM="vt100") as term:
        term.expect("=vt100=")


def test_without_t_there_is_no_term(carrel):
    assert carrel.sh("echo =$TERM=", env={"TERM": "xterm"}).stdout == "==\n"


def test_the_exit_code_comes_through(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "exit 11") as term:
        assert term.process.wait(30) == 11


def test_lines_are_translated_once(carrel):
    with terminal(carrel, "run", "-it", "--", "printf", "a\\nb\\n") as term:
        assert term.rest() == "a\r\nb\r\n"
        assert term.process.wait(30) == 0


def test_what_is_typed_is_echoed_once(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "echo ready; read line; echo \"<$line>\"") as term:
        term.expect("ready\r\n")
        term.send("typed\n")
        term.expect("^typed\r\n<typed>\r\n")
        assert term.process.wait(30) == 0


def test_control_d_is_the_end(carrel):
    with terminal(carrel, "run", "-it", "--", "cat") as term:
        term.send("line\n")
        term.expect("line\r\nline\r\n")
        term.send("\x04")
        assert term.process.wait(30) == 0


def test_control_c_interrupts_the_command(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "echo ready; exec sleep 1000") as term:
        term.expect("ready\r\n")
        term.send("\x03")
        assert term.process.wait(30) == 130


def test_control_c_leaves_the_shell_alive(carrel):
    with shell(carrel) as term:
        term.send("sleep 1000\n")
        assert eventually(lambda: any(name == "sleep" for _, name in descendants(term.process.pid).values()))
        term.send("\x03")
        term.expect("PROMPT> ")
        term.send("echo code $?\n")
        term.expect("code 130\r\n")


def is_in_foreground(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[2] == fields[5]       # its process group is that of the terminal


def test_jobs_stop_and_go_on(carrel):
    with shell(carrel) as term:
        term.send("sleep 1000\n")
        assert eventually(lambda: any(name == "sleep" for _, name in descendants(term.process.pid).values()))
        term.send("\x1a")
        term.expect(r"Stopped\s+sleep 1000")
        term.send("bg\n")
        term.expect(r"sleep 1000 &")
        term.send("jobs\n")
        term.expect(r"Running\s+sleep 1000")
        term.send("fg\n")
        term.expect("sleep 1000\r\n")
        # bash says so before it does so
        job, = [pid for pid, (_, name) in descendants(term.process.pid).items() if name == "sleep"]
        assert eventually(lambda: is_in_foreground(job))
        term.send("\x03")
        term.expect("PROMPT> ")
        term.send("exit 5\n")
        assert term.process.wait(30) == 5


def test_no_job_control_warning_is_printed(carrel):
    with terminal(carrel, "run", "-it", "--", "bash", "--norc", "-i") as term:
        assert b"job control" not in term.expect(r"\$ $").string
        term.send("exit\n")
        assert "job control" not in term.rest()


def test_much_output_comes_through_whole(carrel):
    with terminal(carrel, "run", "-it", "--", "seq", "100000") as term:
        assert term.rest(120).split() == [str(n) for n in range(1, 100_001)]
        assert term.process.wait(30) == 0


def test_much_input_comes_through_whole(carrel):
    lines = 2000
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "stty -echo; echo ready; wc -l") as term:
        term.expect("ready\r\n")
        for _ in range(lines):
            term.send("0123456789\n")
        term.send("\x04")
        term.expect(rf"{lines}\r\n")


def test_the_outer_terminal_is_as_it_was(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "stty raw -echo; echo ready; sleep 0.1") as term:
        term.expect("ready")
        assert term.process.wait(30) == 0
        assert termios.tcgetattr(term.slave) == term.before


def test_the_outer_terminal_is_as_it_was_after_a_limit(carrel):
    with terminal(carrel, "run", "-it", "--timeout", "0.3s", "--", "sleep", "1000") as term:
        assert term.process.wait(30) == 124
        assert termios.tcgetattr(term.slave) == term.before


def test_a_closed_window_ends_the_sandbox(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "echo ready; sleep 1000") as term:
        term.expect("ready\r\n")
        os.close(term.master)
        assert term.process.wait(30) != 0
        term.master = os.open("/dev/null", os.O_RDONLY)


def test_t_without_i_gives_a_terminal_and_no_input(carrel):
    with terminal(carrel, "run", "-t", "--", "sh", "-c", "test -t 1 && echo out; cat; echo ended") as term:
        term.expect("out\r\n")
        term.expect("ended\r\n")
        assert term.process.wait(30) == 0


def test_it_with_pipes_outside_is_a_terminal_inside(carrel):
    done = carrel.run("-it", "--", "tty", input="")
    assert done.stdout.startswith("/dev/pts/")


def test_t_with_json_is_an_error(carrel):
    done = carrel.run("-t", "-o", "json", "--", "true")
    assert done.returncode == 125
    assert json.loads(done.stdout)["error"]["code"] == "invalid"


def test_without_t_a_terminal_is_handed_in_as_it_is(carrel):
    with terminal(carrel, "run", "--", "sh", "-c", "test -t 0 && test -t 1 && echo yes") as term:
        term.expect("yes\r\n")
        assert term.process.wait(30) == 0


def test_without_t_control_c_interrupts_the_command(carrel):
    with terminal(carrel, "run", "--", "sh", "-c", "echo ready; exec sleep 1000") as term:
        term.expect("ready\r\n")
        term.send("\x03")
        assert term.process.wait(30) == 130


def test_an_error_on_a_terminal_is_still_one_line(carrel):
    with terminal(carrel, "run", "-it", "--", "no-such-command") as term:
        text = re.sub(r"\x1b\[[0-9;]*m", "", term.rest()).replace("\r\n", "\n")
        one_line(text, "no-such-command")
        assert term.process.wait(30) == 127


@pytest.mark.parametrize("program", ["python3", "node"])
def test_an_interactive_interpreter_answers(carrel, program):
    with terminal(carrel, "run", "-it", "--", program) as term:
        term.expect("> ")
        term.send("6 * 7\n")
        term.expect("42")
        term.expect("> ")       # typed before the prompt, an end of file may be lost to a change of modes
        term.send("\x04")
        assert term.process.wait(30) == 0
