"""`carrel doctor` says what this host can do, and changes nothing."""
import json
import os

import pytest
from harness import MECHANISM, one_line


def test_it_agrees_with_carrel_run(carrel):
    works = carrel.run("--", "true").returncode == 0
    done = carrel("doctor")
    assert (done.returncode == 0) == works, done.stdout
    assert done.stderr == ""
    assert ("carrel run works here" in done.stdout.splitlines()[-1]) == works


def test_json_holds_the_same_lines(carrel):
    text, as_json = carrel("doctor"), carrel("doctor", "-o", "json")
    assert as_json.returncode == text.returncode and as_json.stderr == ""
    report = json.loads(as_json.stdout)
    assert report["ok"] == (text.returncode == 0) and report["uid"] == os.getuid() and report["kernel"] == os.uname().release
    for check in report["checks"]:
        assert check["status"] in ("ok", "warn", "fail") and check["name"] in text.stdout and check["detail"]
        assert check["status"] == "ok" or check["remedy"] or check["cause"], check


def test_every_subject_has_its_line(carrel):
    text = carrel("doctor").stdout.lower()
    for subject in ("user", "proc", "overlay", "cgroup", "landlock", "seccomp", "quota", "uid", "uv", "bun", "runc"):
        assert subject in text, subject


def test_it_names_what_keeps_the_limits(carrel):
    text = carrel("doctor").stdout
    assert ("watchdog" in text) == (MECHANISM == "watchdog")


def test_it_is_plain_when_piped(carrel):
    assert "\x1b" not in carrel("doctor").stdout


def test_an_operand_is_a_program_and_a_missing_one_is_named(carrel):
    done = carrel("doctor", "all")
    assert done.returncode == 127
    one_line(done.stderr, "'all'")


@pytest.mark.usefixtures("no_leftovers")
def test_it_leaves_nothing(carrel):
    carrel("doctor")
