"""Policy: rules and commands that multiply are asked for instead of judged, and the daemon answers meanwhile."""
# security: policy
import concurrent.futures
import os
import pathlib

import pytest
from harness import SANITIZED
from rest import created, problem

MEGABYTE = 1 << 20


def settings_of(kind, rules):
    return {"permissions": {"allow": ["Bash" if kind == "claude" else "shell(*)"], "deny": list(rules)}}


CASES = {
    "words": ("carrel", (f"shell(git push origin{i}:*)" for i in range(1000)), "git" + " push" * 1600),
    "words, many": ("carrel", (f"shell(git push origin{i}:*)" for i in range(5000)), "git" + " push" * 4000),
    "wildcards": ("claude", (f"Bash(*a{i}*b*c*d*e*)" for i in range(7000)), "echo " + "word" * 25000),
    "globs": ("carrel", (f"file(read:/workspace/**/*a*a*a*{i})" for i in range(3000)), "cat " + "a/" * 1900),
    "a long script": ("carrel", ["shell(x)"], "ls" + ";a" * 60000),
    "variables of places": ("carrel", ["file(read:" + "/${WORKSPACE}" * 13000 + ")"], "cat x"),
}


def memory_of(daemon):
    status = pathlib.Path(f"/proc/{daemon.core_pid()}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("case", CASES)
def test_the_daemon_answers_while_it_judges(daemon, case):
    kind, rules, command = CASES[case]
    with created(daemon, settings=settings_of(kind, rules)) as workspace, concurrent.futures.ThreadPoolExecutor() as pool:
        before = memory_of(daemon)
        for _ in range(3):
            began = processor_seconds(daemon.core_pid())
            asked = pool.submit(daemon.post, f"/v1/workspaces/{workspace['name']}/exec",
                                {"command": command, "background": True})
            is_over = False
            while not is_over:
                is_over = asked.done()
                assert daemon.get("/healthz").status == 200
            assert asked.result().status in (201, 403), asked.result()
            # What core works for is what others wait for, also where other programs keep it from working.
            assert processor_seconds(daemon.core_pid()) - began < 3
        assert SANITIZED or memory_of(daemon) - before < 60 * MEGABYTE


def test_what_takes_too_much_work_is_asked_for_and_what_was_found_denied_is_denied(daemon):
    _, rules, command = CASES["words, many"]
    rules = [f"shell(git push origin{i}:*)" for i in range(5000)]
    with created(daemon, settings=settings_of("carrel", rules)) as workspace:
        path = f"/v1/workspaces/{workspace['name']}/exec"
        started = daemon.post(path, {"command": command, "background": True}).json()
        assert started["state"] == "waiting", started
        asked = daemon.get(f"/v1/approvals?workspace={workspace['name']}").json()["items"][0]
        assert any(step["reason"] == "it takes too much work to judge" for step in asked["trail"]), asked
        problem(daemon.post(path, {"command": "git push origin7; " + command}), 403, "denied")
