"""How a run ended: exit code, reason, and the result object."""
import json
import os
import re
import signal
import time

import pytest
from harness import MECHANISM, one_line

KEYS = ["exit_code", "signal", "reason", "stdout", "stderr", "encoding", "truncated", "duration_ms", "cpu_ms",
        "max_rss_bytes", "limits"]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 64, 124, 125, 126, 127, 128, 130, 137, 255])
def test_the_exit_code_is_the_commands(carrel, code):
    assert carrel.sh(f"exit {code}").returncode == code


@pytest.mark.parametrize("code", [0, 7, 124, 137, 143])
def test_a_code_of_the_commands_own_is_never_a_limit(carrel, code):
    result = carrel.sh_json(f"exit {code}")
    assert (result["exit_code"], result["reason"], result["signal"]) == (code, "exited", None)


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "PIPE", "TERM", "USR1", "XCPU"])
def test_a_signal_is_128_and_its_number(carrel, name):
    number = getattr(signal, "SIG" + name)
    result = carrel.sh_json(f"kill -{name} $$")
    assert (result["exit_code"], result["reason"], result["signal"]) == (128 + number, "signaled", number)
    assert carrel.sh(f"kill -{name} $$").returncode == 128 + number


def test_the_result_has_its_keys_in_order(carrel):
    done = carrel.run("-o", "json", "--", "echo", "hello")
    assert done.stdout.endswith("\n") and done.stdout.count("\n") == 1
    pairs = json.loads(done.stdout, object_pairs_hook=list)
    assert [key for key, _ in pairs] == KEYS
    result = dict(pairs)
    assert result["exit_code"] == 0 and result["signal"] is None and result["reason"] == "exited"
    assert (result["stdout"], result["stderr"], result["encoding"], result["truncated"]) == ("hello\n", "", "utf-8", False)
    assert all(type(result[key]) is int for key in ("exit_code", "duration_ms", "cpu_ms", "max_rss_bytes"))


def test_the_result_says_what_kept_the_limits(carrel):
    assert carrel.run_json("--", "true")["limits"] == MECHANISM


def test_the_result_measures_time(carrel):
    begin = time.monotonic()
    result = carrel.run_json("--", "sleep", "0.3")
    assert 300 <= result["duration_ms"] <= (time.monotonic() - begin) * 1000 + 1
    assert result["cpu_ms"] < result["duration_ms"]


def test_the_result_measures_cpu_time_of_all_processes(carrel):
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    result = carrel.sh_json(f"python3 -c '{burn}' & python3 -c '{burn}' & wait")
    assert 600 <= result["cpu_ms"] < 3000


def test_the_result_measures_memory(carrel):
    result = carrel.py_json("x = bytearray(b'x') * 60_000_000")
    assert 60_000_000 <= result["max_rss_bytes"] < 200_000_000


def test_options_of_json_may_stand_anywhere_before_the_command(carrel):
    for order in (["-o", "json", "--pids", "50"], ["--pids", "50", "-o", "json"], ["-ojson"]):
        assert json.loads(carrel.run(*order, "--", "true").stdout)["exit_code"] == 0


@pytest.mark.parametrize("command", ["no-such-command", "/no/such/command", "./no-such-command"])
def test_a_command_that_is_not_there_is_127(carrel, command):
    done = carrel.run("--", command)
    assert done.returncode == 127
    one_line(done.stderr, command)
    done = carrel.run("-o", "json", "--", command)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, done.stderr, error["code"]) == (127, "", "command_not_found")
    assert command in error["message"] and list(error) == ["code", "message", "hint"]


@pytest.mark.parametrize("command", ["/etc/passwd", "/usr", "/workspace"])
def test_a_command_that_cannot_be_executed_is_126(carrel, command):
    done = carrel.run("--", command)
    assert done.returncode == 126
    one_line(done.stderr, command)
    done = carrel.run("-o", "json", "--", command)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, done.stderr, error["code"]) == (126, "", "not_executable")
    assert command in error["message"]


def test_a_file_of_no_known_format_is_126(carrel, tmp):
    (tmp / "garbage").write_bytes(b"\x00\x01\x02")
    (tmp / "garbage").chmod(0o755)
    done = carrel.run("--dir", tmp, "--", "./garbage")
    assert done.returncode == 126
    one_line(done.stderr, "./garbage")


def test_a_script_whose_interpreter_is_missing_is_an_error_of_one_line(carrel, tmp):
    (tmp / "script").write_text("#!/no/such/interpreter\n")
    (tmp / "script").chmod(0o755)
    done = carrel.run("--dir", tmp, "--", "./script")
    assert done.returncode in (126, 127)
    one_line(done.stderr, "./script")


def test_a_script_runs_by_its_first_line(carrel, tmp):
    (tmp / "script").write_text("#!/usr/bin/python3\nimport sys; print(sys.argv[1:])\n")
    (tmp / "script").chmod(0o755)
    assert carrel.run("--dir", tmp, "--", "./script", "a b", "").stdout == "['a b', '']\n"


def test_arguments_come_through_unchanged(carrel):
    arguments = ["", " ", "a b", "'", '"', "$HOME", "*", "-x", "--", "ü", "new\nline", "\x1b[31m", "x" * 100_000]
    done = carrel.run("--", "python3", "-c", "import sys; print(ascii(sys.argv[1:]))", *arguments)
    assert done.stdout == ascii(arguments) + "\n"


def test_arguments_need_not_be_utf8(carrel):
    done = carrel.run("--", "printf", "%s", os.fsdecode(b"\xff\xfe"), text=False)
    assert done.stdout == b"\xff\xfe"


def test_the_first_word_that_is_no_option_begins_the_command(carrel):
    assert carrel.run("echo", "--memory", "-e").stdout == "--memory -e\n"


def test_reason_is_exited_when_a_child_was_killed(carrel):
    result = carrel.sh_json("sleep 100 & kill -9 $!; wait; exit 4")
    assert (result["exit_code"], result["reason"], result["signal"]) == (4, "exited", None)


def test_version_and_help_succeed(carrel):
    for args in (["version"], ["--version"], ["help"], ["--help"], ["run", "--help"], ["help", "run"]):
        done = carrel(*args)
        assert (done.returncode, done.stderr) == (0, ""), args
        assert "carrel" in done.stdout


@pytest.mark.parametrize("words", [["run", "more"], ["env", "build", "more"]])
def test_help_refuses_words_that_it_does_not_know(carrel, words):
    done = carrel("help", *words)
    assert (done.returncode, done.stdout) == (125, "") and "unexpected argument 'more'" in done.stderr, done.stderr


def test_every_help_fits_eighty_columns(carrel):
    commands = re.findall(r"^  (\w+)  ", carrel("help").stdout, re.M)
    assert {"run", "exec", "serve"} <= set(commands) and max(map(len, carrel("help").stdout.splitlines())) <= 80
    for command in commands:
        text = carrel("help", command).stdout
        assert text.endswith("\n") and max(map(len, text.splitlines())) <= 80, command


def test_what_was_meant_is_named(carrel):
    for args, meant in ((["crate"], "carrel create"), (["run", "--memroy", "1G"], "--memory"), (["frobnicate"], "carrel help"),
                        (["env", "bild"], "carrel env build"), (["env", "frobnicate"], "carrel env --help"),
                        (["--memory", "1G", "run"], "follow the command")):
        done = carrel(*args)
        assert done.returncode == 125 and meant in done.stderr.splitlines()[1]


def test_help_names_every_option_of_run(carrel):
    text = carrel("run", "--help").stdout
    for option in ("-e", "-w", "-v", "--dir", "--writable-config", "--net", "--memory", "--cpus", "--cpu-time", "--timeout",
                   "--pids", "--fds", "--disk", "--tmp", "--output", "-t", "-i", "--plan", "-o", "--isolation"):
        assert option in text, option


def test_no_argument_at_all_says_how_to_begin(carrel):
    done = carrel()
    assert done.returncode == 125 and "run" in done.stderr + done.stdout
