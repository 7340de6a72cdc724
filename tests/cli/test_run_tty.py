"""A terminal in the sandbox: `-it` behaves as a shell on a real one does."""
# security: sandbox
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import termios

import pytest
from harness import FILL_SOCKETS, MECHANISM, descendants, eventually, one_line
from terminals import shell_outside, terminal


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
        assert term.process.wait(120) == 0


def test_it_is_the_controlling_terminal(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "echo yes > /dev/tty") as term:
        term.expect("yes\r\n")
        assert term.process.wait(120) == 0


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
        assert term.process.wait(120) == 11


def test_lines_are_translated_once(carrel):
    with terminal(carrel, "run", "-it", "--", "printf", "a\\nb\\n") as term:
        assert term.rest() == "a\r\nb\r\n"
        assert term.process.wait(120) == 0


def test_what_is_typed_is_echoed_once(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "echo ready; read line; echo \"<$line>\"") as term:
        term.expect("ready\r\n")
        term.send("typed\n")
        term.expect("^typed\r\n<typed>\r\n")
        assert term.process.wait(120) == 0


def test_control_d_is_the_end(carrel):
    with terminal(carrel, "run", "-it", "--", "cat") as term:
        term.send("line\n")
        term.expect("line\r\nline\r\n")
        term.send("\x04")
        assert term.process.wait(120) == 0


def test_control_c_interrupts_the_command(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "echo ready; exec sleep 1000") as term:
        term.expect("ready\r\n")
        term.send("\x03")
        assert term.process.wait(120) == 130


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
        assert term.process.wait(120) == 5


def test_no_job_control_warning_is_printed(carrel):
    with terminal(carrel, "run", "-it", "--", "bash", "--norc", "-i") as term:
        assert b"job control" not in term.expect(r"\$ $").string
        term.send("exit\n")
        assert "job control" not in term.rest()


def test_much_output_comes_through_whole(carrel):
    with terminal(carrel, "run", "-it", "--", "seq", "100000") as term:
        assert term.rest(120).split() == [str(n) for n in range(1, 100_001)]
        assert term.process.wait(120) == 0


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
        assert term.process.wait(120) == 0
        assert termios.tcgetattr(term.slave) == term.before


def test_the_outer_terminal_is_as_it_was_after_a_limit(carrel):
    with terminal(carrel, "run", "-it", "--timeout", "0.3s", "--", "sleep", "1000") as term:
        assert term.process.wait(120) == 124
        assert termios.tcgetattr(term.slave) == term.before


def test_a_closed_window_ends_the_sandbox(carrel):
    with terminal(carrel, "run", "-it", "--", "sh", "-c", "echo ready; sleep 1000") as term:
        term.expect("ready\r\n")
        os.close(term.master)
        assert term.process.wait(120) != 0
        term.master = os.open("/dev/null", os.O_RDONLY)


def test_t_without_i_gives_a_terminal_and_no_input(carrel):
    with terminal(carrel, "run", "-t", "--", "sh", "-c", "test -t 1 && echo out; cat; echo ended") as term:
        term.expect("out\r\n")
        term.expect("ended\r\n")
        assert term.process.wait(120) == 0


def test_it_with_pipes_outside_is_a_terminal_inside(carrel):
    done = carrel.run("-it", "--", "tty", input="")
    assert done.stdout.startswith("/dev/pts/")


def test_t_with_json_is_an_error(carrel):
    done = carrel.run("-t", "-o", "json", "--", "true")
    assert done.returncode == 125
    assert json.loads(done.stdout)["error"]["code"] == "invalid"


def test_without_t_the_command_has_a_terminal_of_its_own(carrel):
    with terminal(carrel, "run", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty; echo $TERM; echo by name >/dev/tty") as term:
        assert re.fullmatch(r"/dev/pts/0\r\nxterm\r\nby name\r\n", term.rest())
        assert term.process.wait(120) == 0
        assert termios.tcgetattr(term.slave) == term.before


def test_without_t_control_c_interrupts_the_command(carrel):
    with terminal(carrel, "run", "--", "sh", "-c", "echo ready; exec sleep 1000") as term:
        term.expect("ready\r\n")
        term.send("\x03")
        assert term.process.wait(120) == 130


def test_an_error_on_a_terminal_is_still_one_line(carrel):
    with terminal(carrel, "run", "-it", "--", "no-such-command") as term:
        text = re.sub(r"\x1b\[[0-9;]*m", "", term.rest()).replace("\r\n", "\n")
        one_line(text, "no-such-command")
        assert term.process.wait(120) == 127


@pytest.mark.parametrize("program", ["python3", "node"])
def test_an_interactive_interpreter_answers(carrel, program):
    with terminal(carrel, "run", "-it", "--", program) as term:
        term.expect("> ")
        term.send("6 * 7\n")
        term.expect("42")
        term.expect("> ")       # typed before the prompt, an end of file may be lost to a change of modes
        term.send("\x04")
        assert term.process.wait(120) == 0


# ---- the caller's terminal, without -t ----

def test_without_t_much_output_comes_through_whole(carrel):
    with terminal(carrel, "run", "--", "seq", "100000") as term:
        assert term.rest(120) == "".join(f"{n}\r\n" for n in range(1, 100_001))


def test_without_t_an_end_of_file_is_not_the_last(carrel):
    with terminal(carrel, "run", "--", "sh", "-c", "cat; echo first; cat; echo second") as term:
        term.send("one\n")
        term.expect("one\r\none\r\n")
        term.send("part\x04")
        term.expect("partpart")
        term.send("\x04")
        term.expect("first\r\n")
        term.send("two\n")
        term.expect("two\r\ntwo\r\n")
        term.send("\x04")
        assert term.rest() == "second\r\n"
        assert term.process.wait(120) == 0


def test_without_t_control_backslash_quits_the_command(carrel):
    with terminal(carrel, "run", "--", "sh", "-c", "echo ready; exec sleep 1000") as term:
        term.expect("ready\r\n")
        term.send("\x1c")
        assert term.process.wait(120) == 128 + signal.SIGQUIT


def test_without_t_the_modes_of_the_command_are_those_of_the_terminal(carrel):
    """What it sets holds outside while it runs: no echo for a password, keys for an editor."""
    with terminal(carrel, "run", "--", "sh", "-c", "stty -echo; echo ask; read word; stty raw; echo keys; head -c 1; stty sane; echo end") as term:
        term.expect("ask\r\n")
        modes = termios.tcgetattr(term.slave)[3]
        assert not modes & termios.ECHO and modes & termios.ICANON
        term.send("secret\n")
        seen = term.expect("keys\n").string
        assert b"secret" not in seen
        assert not termios.tcgetattr(term.slave)[3] & termios.ICANON
        term.send("k")
        term.expect("^kend")
        assert term.process.wait(120) == 0
        assert termios.tcgetattr(term.slave) == term.before


def test_without_t_a_full_screen_program_works(carrel):
    script = """if 1:
        import curses
        def main(screen):
            screen.addstr(3, 5, f"size {curses.LINES}x{curses.COLS}")
            key = screen.getkey()
            screen.addstr(4, 5, f"key {key}")
            screen.getkey()
        curses.wrapper(main)"""
    with terminal(carrel, "run", "--", "python3", "-c", script, rows=31, columns=77) as term:
        term.expect("size 31x77")
        term.send("q")
        term.expect("key q")
        term.send("x")
        term.rest()
        assert term.process.wait(120) == 0
        assert termios.tcgetattr(term.slave) == term.before


def test_without_t_jobs_of_a_shell_inside_stop_and_go_on(carrel):
    with terminal(carrel, "run", "--", "bash", "--norc", "--noediting", "-i") as term:
        term.expect(r"\$ $")
        term.send("PS1='PROM''PT> '\n")
        term.expect("PROMPT> ")
        term.send("sleep 1000\n")
        assert eventually(lambda: any(name == "sleep" and is_in_foreground(pid) for pid, (_, name) in descendants(term.process.pid).items()))
        term.send("\x1a")
        term.expect(r"Stopped\s+sleep 1000")
        term.expect("PROMPT> ")
        term.send("fg\n")
        term.expect("sleep 1000\r\n")
        assert eventually(lambda: any(name == "sleep" and is_in_foreground(pid) for pid, (_, name) in descendants(term.process.pid).items()))
        for _ in range(5):      # more often than an answer that doesn't come would need
            term.send("\x03")
            term.expect(r"\^C")
            term.expect("PROMPT> ")     # what is typed before it may be dropped with the line that was interrupted
            term.send("echo o''n\n")
            term.expect("on\r\nPROMPT> ")
        term.send("exit 5\n")
        assert term.process.wait(120) == 5


def test_control_c_three_times_ends_a_command_that_does_not_answer(carrel):
    with terminal(carrel, "run", "--", "sh", "-c", "trap '' INT; echo ready; exec sleep 1000") as term:
        term.expect("ready\r\n")
        for _ in range(3):
            term.send("\x03")
            term.expect(r"\^C")
            assert eventually(lambda: not pending(term.process.pid, signal.SIGINT))
        assert term.process.wait(120) == 130


def pending(pid, signo):
    """Whether a signal waits for the process."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return bool(int(re.search(r"^ShdPnd:\s*(\w+)", text, re.M)[1], 16) & 1 << signo - 1)


@pytest.mark.parametrize("redirect, streams", [
    ("", "0 1 2"), ("</dev/null", "1 2"), (">/dev/null", "0 2"), ("2>/dev/null", "0 1"), ("</dev/null 2>/dev/null", "1"),
    (">/dev/null 2>/dev/null", "0"), ("</dev/null >/dev/null", "2"), ("| cat", "0 2"), ("--output 1M", "0 1 2"), ("-o json | cat", "0")])
def test_the_streams_that_are_terminals_are_terminals_inside_and_no_others(carrel, tmp, redirect, streams):
    options, redirect = (redirect, "") if redirect == "--output 1M" else ("-o json", redirect[8:]) if "json" in redirect else ("", redirect)
    script = "exec 3>seen 4>ids; for i in 0 1 2; do test -t $i && echo $i >&3; stat -Lc %t:%T:%d /proc/$$/fd/$i >&4; done; : </dev/tty && echo tty >&3"
    with shell_outside(carrel) as term:
        term.send(f"tty; stat -Lc %t:%T:%d /dev/tty $(tty) >{tmp}/outside; $CARREL run {options} --dir {tmp} -- sh -c '{script}' {redirect}; echo en''d\n")
        term.expect(r"\r\nend\r\n")
    assert (tmp / "seen").read_text().split() == [*streams.split(), "tty"]
    assert not set((tmp / "ids").read_text().split()) & set((tmp / "outside").read_text().split())


# ---- job control outside ----

def children(pid, name):
    return [child for child, (_, its) in descendants(pid).items() if its == name]


def test_control_z_stops_it_as_a_job_and_fg_goes_on(carrel):
    with shell_outside(carrel) as term:
        term.send("$CARREL run -- sh -c 'echo rea''dy; stty -echo; cat'\n")
        term.expect("ready\r\n")
        assert eventually(lambda: not termios.tcgetattr(term.slave)[3] & termios.ECHO)
        term.send("first\n")
        term.expect("^first\r\n")
        term.send("\x1a")
        term.expect("Stopped")
        term.expect("OUT> ")
        assert termios.tcgetattr(term.slave)[3] & termios.ECHO
        term.send("echo to the she''ll\n")
        term.expect("\r\nto the shell\r\n")
        term.send("fg\n")
        term.expect("cat'\r\n")
        assert eventually(lambda: not termios.tcgetattr(term.slave)[3] & termios.ECHO)
        term.send("second\n")
        term.expect("^second\r\n")
        term.send("\x04")
        term.expect("OUT> ")
        assert termios.tcgetattr(term.slave) == term.before


# Continues itself by a timer when it is stopped, and reads whatever there is to read.
THIEF = """if 1:
    import ctypes, os, select, signal, termios
    libc = ctypes.CDLL(None)
    signal.signal(signal.SIGCONT, lambda *_: None)      # a timer whose signal is ignored isn't started again
    event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)
    def start(every_ns, first_ns):
        timer = ctypes.c_void_p()
        assert not libc.timer_create(1, event, ctypes.byref(timer))
        assert not libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, every_ns, first_ns // 10**9, first_ns % 10**9), None)
    start(20_000_000, 20_000_000)
    # A signal that stops it drops a SIGCONT that is pending, and with it that timer: the next one is for later.
    for half in range(1, 120):
        start(0, half * 500_000_000)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    print("ready", flush=True)
    looks = 0
    while True:
        if select.select([0], [], [], 0.02)[0]:
            with open("stolen", "ab") as file:
                file.write(os.read(0, 1000))
        looks += 1
        with open("looks", "w") as file:
            file.write(str(looks))
    """


def thief(carrel, term, tmp, *options, signs="ready\r\n"):
    """Starts it; what came of what is expected."""
    (tmp / "thief.py").write_text(THIEF)
    term.send(f"$CARREL run {' '.join(options)} --dir {tmp} -- python3 thief.py\n")
    return term.expect(signs)[0]


def looks(tmp):
    return int((tmp / "looks").read_text() or 0) if (tmp / "looks").exists() else 0


def let_it_look(tmp):
    before = looks(tmp)
    assert eventually(lambda: looks(tmp) > before + 3, 60)


@pytest.mark.parametrize("options", [[], ["-it"]], ids=["plain", "it"])
@pytest.mark.parametrize("way", ["stopped", "background"])
def test_what_is_typed_to_the_shell_stays_there(carrel, tmp, options, way):
    """Also when the sandboxed command doesn't let itself be stopped. A shell that waits for another command doesn't read meanwhile."""
    with shell_outside(carrel) as term, contextlib.ExitStack() as stack:
        thief(carrel, term, tmp, *options)
        stack.callback(os.kill, pid := children(term.process.pid, "carrel")[0], signal.SIGKILL)
        os.kill(pid, signal.SIGTSTP)
        term.expect("Stopped")
        term.expect("OUT> ")
        if way == "background":
            term.send("bg\n")
            term.expect("OUT> ")
        term.send(f"until [ -e {tmp}/go ]; do sleep 0.02; done; echo went\n")
        term.send("echo secret-wo''rd\n")
        let_it_look(tmp)
        (tmp / "go").touch()
        term.expect("secret-word\r\n")
        assert not (tmp / "stolen").exists(), (tmp / "stolen").read_text()


def test_in_the_background_from_the_start_it_reads_nothing_until_fg(carrel, tmp):
    with shell_outside(carrel) as term:
        term.send(f"$CARREL run --dir {tmp} -- sh -c 'touch there; head -n 1 >got; stty size' &\n")
        assert eventually((tmp / "there").exists)
        term.send("echo for the she''ll\n")
        term.expect("\r\nfor the shell\r\n")
        term.send("fg\n")
        term.expect("stty size'\r\n")
        term.send("for the command\n")
        term.expect("24 80\r\n")
        assert (tmp / "got").read_text() == "for the command\n"


def test_a_password_prompt_of_the_same_pipeline_reads_alone(carrel, tmp):
    """As `carrel run -- cmd | sudo tee file`: the command wants input, and so does the program that turned the echo off."""
    (tmp / "ask.py").write_text("import getpass, sys; print('got', getpass.getpass('Word: ')); sys.stdin.read()")
    (tmp / "greedy.py").write_text("import os, tty; tty.setraw(0); open('there', 'w'); open('stolen', 'wb').write(os.read(0, 100))")
    with shell_outside(carrel) as term:
        term.send(f"$CARREL run --dir {tmp} -- python3 greedy.py | (until [ -e {tmp}/there ]; do sleep 0.02; done; python3 {tmp}/ask.py)\n")
        term.expect("Word: ")
        term.send("secret\n")
        term.expect("got secret\r\n")
        assert (tmp / "stolen").read_bytes() == b""
        term.send("\x03")
        term.expect("OUT> ")


def test_a_pager_of_the_same_pipeline_has_the_keys(carrel):
    with shell_outside(carrel, LESS="") as term:
        term.send("$CARREL run -- seq 1000 | less\n")
        for page in ("24", "47", "70"):
            term.expect(rf"{int(page) - 1}\r\n.*:\x1b\[K|{int(page) - 1}\r\n.*:")
            term.send(" ")
        term.send("q")
        term.expect("OUT> ")
        assert termios.tcgetattr(term.slave) == term.before


# ---- limits while carrel is stopped ----

def test_the_time_limit_holds_while_it_is_stopped_from_the_terminal(carrel, tmp):
    with shell_outside(carrel) as term:
        for seconds in (2, 8, 32):      # enough for the key to come before the end
            if thief(carrel, term, tmp, "--timeout", f"{seconds}s", signs="ready\r\n|timeout,") == b"ready\r\n":
                term.send("\x1a")
                if term.expect("Stopped|timeout,")[0] == b"Stopped":
                    break
            term.expect("OUT> ")
        else:
            pytest.fail("never stopped")
        term.expect("OUT> ")
        assert eventually(lambda: not children(term.process.pid, "carrel-init"), 90)
        term.send("fg; echo code $?\n")
        term.expect("timeout")
        term.expect("code 124\r\n")


LIMITS = {
    "timeout": (["--timeout", "{seconds}s"], "cat; sleep 1000", 124, "timeout"),
    "cpu time": (["--cpu-time", "1s"], "cat; while :; do :; done", 124, "cpu_limit"),
    "memory": (["--memory", "64M", "--timeout", "1000s"], "cat; exec python3 -c 'x = b\"x\" * (200 << 20); import time; time.sleep(1000)'", 137, "memory_limit"),
    "disk": (["--disk", "10M", "--dir", "{tmp}"], "cat; head -c 40M /dev/zero >big; sleep 1000", 137, "disk_limit"),
}
if MECHANISM != "cgroup-v2":  # there the kernel counts buffers of sockets as memory
    LIMITS["sockets"] = (["--memory", "32M"], f"cat; exec python3 -c '{FILL_SOCKETS}'", 137, "memory_limit")


def is_session_leader(pid):
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid) == pid


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_hold_while_carrel_is_stopped_by_a_signal_that_nobody_catches(carrel, tmp, limit):
    for seconds in (3, 12, 48):
        if is_limit_kept(carrel, tmp, limit, seconds):
            return
    pytest.fail("its time is over before it can be stopped")


def is_limit_kept(carrel, tmp, limit, seconds):
    """False: it was over too soon to say."""
    options, script, code, reason = LIMITS[limit]
    words = [word.format(tmp=tmp, seconds=seconds) for word in options]
    with carrel.start("run", *words, "--", "sh", "-c", script, stdin=subprocess.PIPE) as process:
        # The process that keeps limits has a session of its own; one that measures has not.
        keeper = lambda: children(process.pid, "cat") and [pid for pid in children(process.pid, "carrel") if is_session_leader(pid)]
        assert eventually(lambda: process.poll() is not None or keeper())
        if process.poll() is not None:
            assert process.returncode == code and limit == "timeout"
            return False
        os.kill(process.pid, signal.SIGSTOP)
        process.stdin.close()
        assert eventually(lambda: not children(process.pid, "carrel-init") or limit == "memory" and not children(process.pid, "python3")
                          and not children(process.pid, "cat"), 90)
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(120) == code
        assert reason in process.stderr.read()
    return True


def test_a_command_that_ends_soon_has_no_second_process(carrel):
    """The process that keeps limits comes when a command has run for a while, and only if there is one to keep."""
    with carrel.start("run", "--", "sh", "-c", "echo ready; cat", stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        process.stdin.close()
        assert process.wait(120) == 0
        assert not descendants(process.pid)
