"""Agents that are programs: JSON lines on stdin and stdout."""
# security: services
import json

import pytest

from daemons import serving_anew
from harness import eventually
from patience import with_time
from test_a2a import ENDED, Agent, add, text

PROGRAM = r'''
import json, os, subprocess, sys, time

def say(**line):
    print(json.dumps(line), flush=True)

first = json.loads(sys.stdin.readline())
word = first["message"]["parts"][0]["text"]
if word == "echo":
    say(status="working", message="reading")
    say(artifact={"artifactId": "a", "name": "A", "parts": [{"text": "one "}]})
    say(artifact={"artifactId": "a", "parts": [{"text": "two"}]}, append=True, last=True)
    say(artifact={"parts": [{"data": {"line": first}}]})
    say(message={"parts": [{"text": "a message"}]})
elif word.startswith("reply"):
    if "after" in word:
        say(status="working")
    if "asked" in word:
        say(status="input-required", message="who?")
        json.loads(sys.stdin.readline())
    say(reply={"messageId": "r1", "parts": [{"text": "hello"}, {"data": {"n": 1}}], "metadata": {"k": "v"}} if "whole" in word else "hello" if "bad" not in word else 7)
    say(artifact={"parts": [{"text": "too late"}]})
    time.sleep(1000)
elif word == "talk":
    while True:
        say(status="input-required", message=f"after {word}")
        line = json.loads(sys.stdin.readline())
        word = line["message"]["parts"][0]["text"]
        if word == "stop":
            say(artifact={"parts": [{"text": str(len(line["history"]))}]})
            say(status="completed", message="bye")
            time.sleep(1000)
elif word in ("rejected", "failed", "canceled"):
    say(status=word, message={"parts": [{"text": "no"}]})
elif word == "garbage":
    print("to the log", file=sys.stderr, flush=True)
    print("this is no JSON", flush=True)
    time.sleep(1000)
elif word == "lines":
    print(first["message"]["parts"][1]["text"], flush=True)
    time.sleep(1000)
elif word == "flood":
    while True:
        say(status="working", message="x" * 1000)
elif word == "pipe":
    while True:
        os.write(1, b"\n" * 65536)
elif word == "long":
    while True:
        os.write(1, b"x" * 65536)
elif word == "hang":
    print("about to hang", file=sys.stderr, flush=True)
    time.sleep(1000)
elif word == "logs":
    for _ in range(100):
        os.write(2, b"x" * 65535 + b"\n")
    print("the last line", file=sys.stderr, flush=True)
    sys.exit(3)
elif word == "deaf":
    os.close(0)
    os.close(1)
    print("closed", file=sys.stderr, flush=True)
    sys.exit(4)
elif word == "forks":
    for _ in range(20):
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    say(status="working", message="forked")
    time.sleep(1000)
elif word == "die":
    print("last words", file=sys.stderr, flush=True)
    os._exit(7)
elif word == "killed":
    os.kill(os.getpid(), 9)
elif word == "fork":
    subprocess.Popen(["sleep", "1000"])
'''
YAML = """
name: program
description: a program
version: "1.0"
command: [/usr/bin/python3, -c, PROGRAM]
"""


def yaml(**more):
    return YAML.replace("PROGRAM", json.dumps(PROGRAM)) + "".join(f"{key}: {value}\n" for key, value in more.items())


@pytest.fixture(scope="module")
def program(furnished_home):
    with serving_anew(source=furnished_home) as daemon:
        add(daemon, yaml())
        yield Agent(daemon, "program")


@pytest.fixture(scope="module")
def asking(program):
    add(program.daemon, yaml(settings="{permissions: {allow: []}}").replace("name: program", "name: asking"))
    return Agent(program.daemon, "asking")


def said(task):
    return task["status"]["message"]["parts"][0]["text"]


def test_it_gets_a_line_and_makes_artifacts_and_messages(program):
    task = program.send("echo", contextId="c")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    by_id = {one["artifactId"]: one for one in task["artifacts"]}
    assert text(task, "a") == "one two" and by_id["a"]["name"] == "A"
    line = by_id["artifact"]["parts"][0]["data"]["line"]
    assert line["task_id"] == task["id"] and line["context_id"] == "c" and line["message"]["messageId"] == "m1"
    assert line["history"] == [line["message"]]
    assert [message["parts"][0]["text"] for message in task["history"]] == ["echo", "reading", "a message"]
    assert [message["role"] for message in task["history"]] == ["ROLE_USER", "ROLE_AGENT", "ROLE_AGENT"]


def test_its_events_are_streamed(program):
    events = list(program.stream("SendStreamingMessage", message=program.message("echo", contextId="c")))
    pieces = [event["artifactUpdate"] for event in events if "artifactUpdate" in event]
    assert [(piece["artifact"]["artifactId"], piece["append"], piece["lastChunk"]) for piece in pieces] == [
        ("a", False, False), ("a", True, True), ("artifact", False, False)]
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_it_asks_and_gets_the_answers_of_its_task(program):
    task = program.send("talk", contextId="c")
    for word in ("one", "two"):
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        task = program.send(word, taskId=task["id"])
        assert said(task) == f"after {word}"
    task = program.send("stop", taskId=task["id"], contextId="c")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED" and said(task) == "bye"
    assert text(task, "artifact") == "7"         # four of the client, three of the agent
    assert program.fails(-32004, "SendMessage", message=program.message("more", taskId=task["id"]))


def test_programs_of_a_context_ask_side_by_side(program):
    """Each has its own question, and gets the answers of its own task."""
    first, second = (program.send("talk", contextId="c-both") for _ in range(2))
    assert program.send("echo", contextId="c-both")["status"]["state"] == "TASK_STATE_COMPLETED"
    for task, word in ((second, "b"), (first, "a"), (second, "c")):
        assert said(program.send(word, taskId=task["id"], contextId="c-both")) == f"after {word}"
    ended = [program.send("stop", taskId=task["id"]) for task in (first, second)]
    assert [text(task, "artifact") for task in ended] == ["5", "7"]


def test_it_answers_with_a_bare_message(program):
    """And no task: clients that want to chat alone get what they asked for."""
    send = lambda word, **more: program.call("SendMessage", message=program.message(word, contextId="c-reply"), **more)
    answer = send("reply")
    assert list(answer) == ["message"]
    message = answer["message"]
    assert message["role"] == "ROLE_AGENT" and message["parts"] == [{"text": "hello"}] and message["contextId"] == "c-reply" and message["messageId"]
    assert "taskId" not in message
    whole = send("reply whole")["message"]
    assert whole == {"messageId": "r1", "role": "ROLE_AGENT", "contextId": "c-reply", "parts": [{"text": "hello"}, {"data": {"n": 1}}], "metadata": {"k": "v"}}
    http = program.daemon.post("/a2a/program/message:send", {"message": program.message("reply", contextId="c-reply")}).json()
    assert list(http) == ["message"] and "taskId" not in http["message"]
    old = program.call("message/send", message={"kind": "message", "messageId": "m", "role": "user", "contextId": "c-reply", "parts": [{"kind": "text", "text": "reply whole"}]})
    assert old["kind"] == "message" and old["role"] == "agent" and old["parts"][0] == {"kind": "text", "text": "hello"} and "taskId" not in old
    thrown = program.call("SendMessage", message=program.message("reply"))["message"]
    assert thrown["contextId"]
    assert program.daemon("agent", "send", "program", "--context", "c-reply", "reply").stdout == "hello\n"
    shown = json.loads(program.daemon("agent", "send", "program", "--context", "c-reply", "reply", "-o", "json").stdout)
    assert shown["parts"] == [{"text": "hello"}]


def test_a_reply_to_those_who_have_seen_the_task_is_its_last_message(program):
    after = program.send("reply after", contextId="c-reply")
    assert after["status"]["state"] == "TASK_STATE_COMPLETED" and said(after) == "hello" and not after["artifacts"]
    asked = program.send("reply asked", contextId="c-reply")
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    done = program.send("me", taskId=asked["id"])
    assert done["id"] == asked["id"] and done["status"]["state"] == "TASK_STATE_COMPLETED" and said(done) == "hello"
    now = program.send("reply", now=True, contextId="c-reply")
    ended = program.await_state(now, "TASK_STATE_COMPLETED")
    assert said(ended) == "hello" and ended["history"][-1]["taskId"] == now["id"]
    events = list(program.stream("SendStreamingMessage", message=program.message("reply", contextId="c-reply")))
    assert "task" in events[0] and events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert events[-1]["statusUpdate"]["status"]["message"]["parts"] == [{"text": "hello"}]
    bad = program.send("reply bad", contextId="c-reply")
    assert bad["status"]["state"] == "TASK_STATE_FAILED" and "invalid line 1: message" in said(bad)


def test_a_reply_of_a_program_that_had_to_be_approved(asking):
    task = asking.send("reply", contextId="c-reply")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    done = asking.send("approve", taskId=task["id"])
    assert done["status"]["state"] == "TASK_STATE_COMPLETED" and said(done) == "hello"


@pytest.mark.parametrize("word", ["rejected", "failed", "canceled"])
def test_it_says_how_it_ends(program, word):
    task = program.send(word, contextId="c")
    assert task["status"]["state"] == f"TASK_STATE_{word.upper()}" and said(task) == "no"


@pytest.mark.parametrize("word, words", [
    ("garbage", ["line 1", "to the log"]), ("flood", ["more than 1048576 bytes"]), ("pipe", ["output_limit"]), ("long", ["1 MiB"]),
    ("die", ["exit code 7", "last words"]), ("killed", ["signal 9"]),
    ("logs", ["exit code 3", "the last line"]), ("deaf", ["exit code 4", "closed"])])
def test_what_breaks_the_protocol_has_failed_with_its_log(program, word, words):
    task = program.send(word, contextId="c")
    assert task["status"]["state"] == "TASK_STATE_FAILED", task
    for one in words:
        assert one in said(task), task
    assert program.send("echo", contextId="c")["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.once
@pytest.mark.parametrize("line", ["[]", "{}", '{"status":"submitted"}', '{"status":7}', '{"status":"working","message":7}', '{"artifact":[]}', '{"artifact":{"parts":[]}}',
                                  '{"artifact":{"parts":[{"text":1}]}}', '{"artifact":{"parts":[{"text":"x"}]},"append":1}', '{"message":{"parts":"x"}}', "\\u0000", '"\\udfff"'])
def test_lines_that_are_not_valid(program, line):
    message = program.message("lines", line, contextId="c")
    task = program.call("SendMessage", message=message)["task"]
    assert task["status"]["state"] == "TASK_STATE_FAILED" and "invalid line 1" in said(task), task


def test_what_it_leaves_running_keeps_no_task_waiting(program):
    assert program.send("fork", contextId="c")["status"]["state"] == "TASK_STATE_COMPLETED"


def test_one_that_hangs_is_canceled_or_ends_by_its_timeout(program):
    task = program.send("hang", now=True, contextId="c")
    program.await_state(task, "TASK_STATE_WORKING")
    assert program.call("CancelTask", id=task["id"])["status"]["state"] == "TASK_STATE_CANCELED"
    tasks = []

    def run(limit):
        add(program.daemon, yaml(timeout=limit).replace("name: program", "name: hasty"))
        tasks.append(Agent(program.daemon, "hasty").send("hang", contextId="c"))
    with_time(run, lambda: "about to hang" in said(tasks[-1]), 1)
    task = tasks[-1]
    assert task["status"]["state"] == "TASK_STATE_FAILED" and "timeout" in said(task) and "about to hang" in said(task)


def test_what_it_forked_ends_with_a_canceled_task(program):
    task = program.send("forks", now=True, contextId="c-forks")
    assert eventually(lambda: "forked" in json.dumps(program.get(task)["history"]))
    look = lambda: program.daemon.post("/v1/workspaces/program%2Fc-forks/exec", {"command": "pgrep -c -x sleep"}).json()["stdout"].strip()
    assert look() == "20"
    assert program.call("CancelTask", id=task["id"])["status"]["state"] == "TASK_STATE_CANCELED"
    assert eventually(lambda: look() == "0"), look()


@pytest.mark.parametrize("word, words", [("garbage", ["line 1", "to the log"]), ("pipe", ["16 MiB"]), ("die", ["exit code 7", "last words"])])
def test_one_that_had_to_be_approved_ends_the_same(asking, word, words):
    """It runs in the background, and is followed by its files."""
    task = asking.send(word, contextId="c")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    task = asking.send("approve", taskId=task["id"])
    assert task["status"]["state"] == "TASK_STATE_FAILED", task
    for one in words:
        assert one in said(task), task
    get = lambda: asking.daemon.get(f"/v1/execs/{task['id']}").json()["state"]
    assert eventually(lambda: get() == "ended"), get()


def test_a_canceled_throw_away_leaves_nothing(program):
    task = program.send("hang", now=True)
    program.call("CancelTask", id=task["id"])
    assert eventually(lambda: not program.daemon.get("/v1/workspaces?label=carrel.task").json()["items"])
    assert program.get(task)["status"]["state"] in ENDED
