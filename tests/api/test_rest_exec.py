"""Execs over REST: captured, streamed, handed over, in the background; input, signals, terminals."""
import array
import base64
import concurrent.futures
import contextlib
import json
import os
import socket
import time

import pytest

from harness import eventually
from rest import Events, created, problem, workspace  # noqa: F401


def run(daemon, workspace, body, **how):
    return daemon.post(f"/v1/workspaces/{workspace}/exec", body, **how)


def sh(daemon, workspace, command, **body):
    answer = run(daemon, workspace, {"command": command, **body})
    assert answer.status == 200, answer
    return answer.json()


def background(daemon, workspace, command, **body):
    answer = run(daemon, workspace, {"command": command, "background": True, **body})
    assert answer.status == 201, answer
    assert answer.headers["Location"] == f"/v1/execs/{answer.json()['id']}"
    return answer.headers["Location"]


def ended(daemon, path):
    assert eventually(lambda: daemon.get(path).json()["state"] == "ended"), daemon.get(path)
    return daemon.get(path).json()


# ---- captured ----

def test_a_result_is_the_object_of_run(daemon, workspace):
    result = run(daemon, workspace, {"argv": ["sh", "-c", "echo out; echo err >&2; exit 3"]}).json()
    assert len(result.pop("id")) == 20
    for number in ("duration_ms", "cpu_ms", "max_rss_bytes"):
        assert result.pop(number) >= 0
    assert result.pop("limits") in ("cgroup-v1", "cgroup-v2", "watchdog")
    assert result == {"exit_code": 3, "signal": None, "reason": "exited", "stdout": "out\n", "stderr": "err\n", "encoding": "utf-8",
                      "truncated": False}


def test_what_an_exec_is_given_reaches_it(daemon):
    with created(daemon, env={"A": "workspace", "B": "workspace"}) as workspace:
        name = workspace["name"]
        assert sh(daemon, name, 'echo "$A $B $C"', env={"B": "exec", "C": "ö\n=x"})["stdout"] == "workspace exec ö\n=x\n"
        assert sh(daemon, name, "pwd; mkdir -p d")["stdout"] == "/workspace\n"
        assert sh(daemon, name, "pwd", cwd="/workspace/d")["stdout"] == "/workspace/d\n"
        assert sh(daemon, name, "cat", stdin="text ☃")["stdout"] == "text ☃"
        assert sh(daemon, name, "cat", stdin="")["stdout"] == "" == sh(daemon, name, "cat")["stdout"]
        raw = sh(daemon, name, "cat", stdin={"base64": base64.b64encode(bytes(range(256))).decode()})
        assert raw["encoding"] == "base64" and base64.b64decode(raw["stdout"]) == bytes(range(256))
        for user in ("agent", "1000"):
            assert sh(daemon, name, "id -un", user=user)["stdout"] == "agent\n"
        problem(run(daemon, name, {"argv": ["id"], "user": "root"}), 400, "invalid", "root", "agent")


def test_limits_end_it_with_their_reason(daemon, workspace):
    assert sh(daemon, workspace, "sleep 60", timeout="200ms")["reason"] == "timeout"
    assert sh(daemon, workspace, "sleep 60", timeout_ms=100)["exit_code"] == 124
    result = sh(daemon, workspace, "yes", limits={"output": "64K"})
    assert result["reason"] == "output_limit" and result["truncated"] and len(result["stdout"]) <= 65536
    assert sh(daemon, workspace, "while :; do :; done", limits={"cpu_time": "200ms"})["reason"] == "cpu_limit"
    assert sh(daemon, workspace, "kill -9 $$")["exit_code"] == 137


def test_a_command_that_cant_start_says_so_as_run_does(daemon, workspace):
    for how in ({"argv": ["no-such-command"]}, {"command": "no-such-command"}):
        result = run(daemon, workspace, how).json()
        assert (result["exit_code"], result["reason"]) == (127, "exited") and "no-such-command" in result["stderr"], result
        record = run(daemon, workspace, {**how, "background": True}).json()
        ended = daemon.get(f"/v1/execs/{record['id']}?wait").json()
        assert (ended["exit_code"], ended["reason"]) == (127, "exited"), ended
        assert b"no-such-command" in daemon.get(f"/v1/execs/{record['id']}/output?stream=stderr").body
    sh(daemon, workspace, "echo text >file")
    assert run(daemon, workspace, {"argv": ["/workspace/file"]}).json()["exit_code"] == 126
    problem(run(daemon, workspace, {"argv": ["true"], "cwd": "/workspace/none"}), 400, "invalid", "/workspace/none")
    problem(run(daemon, "nobody", {"argv": ["true"]}), 404, "not_found", "nobody")


def test_a_working_directory_may_be_relative(daemon, workspace):
    sh(daemon, workspace, "mkdir -p sub/deep")
    result = run(daemon, workspace, {"argv": ["pwd"], "cwd": "sub/deep", "timeout": 600})
    assert result.json()["stdout"] == "/workspace/sub/deep\n" and result.body.endswith(b"}\n")
    assert run(daemon, workspace, {"command": "sleep 60", "timeout": 0.1}).json()["reason"] == "timeout"


@pytest.mark.parametrize("body, words", [
    ({}, "'argv' or 'command' is missing"), ({"argv": ["a"], "command": "b"}, "both given"), ({"argv": []}, "argv"), ({"argv": [""]}, "argv[0]"),
    ({"argv": "ls"}, "argv: must be a list of texts, not text"), ({"argv": ["a\0"]}, "argv[0]"), ({"argv": ["a"], "cwd": ""}, "cwd"),
    ({"argv": ["a"], "timeout": "0"}, "timeout"), ({"argv": ["a"], "timeout": 0}, "timeout: 0 seconds"), ({"argv": ["a"], "env": {"A=": "x"}}, "env"),
    ({"argv": ["a"], "stdin": {"base64": "!"}}, "stdin.base64: is not base64"), ({"argv": ["a"], "stdin": 5}, "stdin"),
    ({"argv": ["a"], "tty": "yes"}, "tty"), ({"argv": ["a"], "rows": 70000}, "rows"), ({"argv": ["a"], "limits": {"memory": "1G"}}, "memory")])
def test_a_wrong_body_is_told_why(daemon, workspace, body, words):
    problem(run(daemon, workspace, body), 400, "invalid", words)


def test_the_answer_is_json_or_events(daemon, workspace):
    for accept in ("text/html", "image/*"):
        problem(run(daemon, workspace, {"argv": ["true"]}, headers={"Accept": accept}), 406, "invalid")
    for accept in ("*/*", "application/*", "text/html, application/json;q=0.5", "application/json, text/event-stream"):
        assert run(daemon, workspace, {"argv": ["true"]}, headers={"Accept": accept}).headers["Content-Type"] == "application/json"


def test_many_at_once(daemon, workspace):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: sh(daemon, workspace, f"echo {n}")["stdout"], range(64)))
    assert results == [f"{n}\n" for n in range(64)]


def test_one_connection_carries_many(daemon, workspace):
    with contextlib.closing(daemon.connection()) as connection:
        for n in range(20):
            connection.request("POST", f"/v1/workspaces/{workspace}/exec", json.dumps({"argv": ["echo", str(n)]}),
                               {"Content-Type": "application/json"})
            assert json.loads(connection.getresponse().read())["stdout"] == f"{n}\n"


CONTROL = "tr '\\000' '\\001' </dev/zero | head -c"


def test_large_output_comes_whole_as_text_or_base64(daemon, workspace):
    """Made in slices as it is read: no character is split, no byte lost, on either stream."""
    text = sh(daemon, workspace, "yes 'a€\"\U0001f600' | head -c 3000002; echo x >&2")
    assert text["encoding"] == "base64"                 # cut within a character
    whole = "yes 'a€\"\U0001f600' | head -n 250000; yes '\\\\é' | head -n 250000 >&2"
    text = sh(daemon, workspace, whole)
    assert text["encoding"] == "utf-8"
    assert text["stdout"] == 'a€"\U0001f600\n' * 250000 and text["stderr"] == "\\\\é\n" * 250000
    raw = sh(daemon, workspace, f"{CONTROL} 3000001; echo e >&2")
    assert raw["encoding"] == "base64" and raw["reason"] == "exited" and not raw["truncated"]
    assert base64.b64decode(raw["stdout"]) == b"\1" * 3000001 and base64.b64decode(raw["stderr"]) == b"e\n"


@pytest.mark.shipped
def test_core_keeps_one_copy_of_captured_output_and_releases_it(own_daemon):
    with created(own_daemon) as workspace:
        result = sh(own_daemon, workspace["id"], f"{CONTROL} 60000000")
        assert base64.b64decode(result["stdout"]) == b"\1" * 60000000
        with open(f"/proc/{own_daemon.core_pid()}/status", encoding="ascii") as lines:
            status = dict(line.split(":", 1) for line in lines)
        assert int(status["VmHWM"].split()[0]) < 150000, status["VmHWM"]
        assert "carrel_captured_output_bytes 0\n" in own_daemon.get("/metrics").body.decode()


def test_captured_output_of_all_together_is_bounded(make_daemon):
    daemon = make_daemon("--captured-output", "1M")
    with created(daemon) as workspace:
        result = sh(daemon, workspace["id"], "yes | head -c 3000000")
        assert (result["reason"], result["truncated"], len(result["stdout"])) == ("output_limit", True, 1 << 20)
        assert "1048576 bytes" in daemon.get(f"/v1/execs/{result['id']}").json()["error"]
        # What isn't captured isn't bounded, and what was answered doesn't count any more.
        with contextlib.closing(stream(daemon, workspace["id"], {"command": "yes | head -c 3000000"})) as events:
            assert sum(len(event["data"].get("data", "")) for event in events) == 3000000
        assert sh(daemon, workspace["id"], "yes | head -c 1000000")["reason"] == "exited"


def test_a_client_that_goes_while_its_output_is_sent_leaves_nothing(own_daemon):
    with created(own_daemon) as workspace:
        with contextlib.closing(own_daemon.connection()) as connection:
            connection.request("POST", f"/v1/workspaces/{workspace['id']}/exec",
                               json.dumps({"command": f"{CONTROL} 9000000"}), {"Content-Type": "application/json"})
            connection.getresponse().read(100000)
            assert "carrel_captured_output_bytes 9000000\n" in own_daemon.get("/metrics").body.decode()
        assert eventually(lambda: "carrel_captured_output_bytes 0\n" in own_daemon.get("/metrics").body.decode())


def test_a_client_that_does_not_read_holds_captured_output_for_seconds_only(make_daemon):
    daemon = make_daemon("--captured-output", "4M")
    with created(daemon) as workspace, contextlib.closing(daemon.connection()) as idle, contextlib.closing(daemon.connection()) as small:
        def ask(connection, size):
            connection.request("POST", f"/v1/workspaces/{workspace['id']}/exec",
                               json.dumps({"command": f"yes | head -c {size}"}), {"Content-Type": "application/json"})
            return connection.getresponse()
        ask(idle, 3500000)
        other = ask(small, 400000)      # whoever reads is not cut off
        assert sh(daemon, workspace["id"], "yes | head -c 2000000")["reason"] == "output_limit"
        assert len(other.read()) > 400000
        assert eventually(lambda: sh(daemon, workspace["id"], "yes | head -c 2000000")["reason"] == "exited")


# ---- as events ----

def test_events_of_control_bytes_are_base64(daemon, workspace):
    with contextlib.closing(stream(daemon, workspace, {"command": f"{CONTROL} 3000000"})) as events:
        came = [event["data"] for event in events if event["event"] == "stdout"]
    assert any(piece["encoding"] == "base64" for piece in came)
    assert b"".join(base64.b64decode(piece["data"]) if piece["encoding"] == "base64" else piece["data"].encode()
                    for piece in came) == b"\1" * 3000000


def stream(daemon, workspace, body):
    return Events(daemon, f"/v1/workspaces/{workspace}/exec", {"Content-Type": "application/json"}, "POST", json.dumps(body))


def test_events_come_as_they_happen(daemon, workspace):
    events = stream(daemon, workspace, {"command": "echo one; echo two >&2; read line; echo $line; exit 5", "open_stdin": True})
    came = iter(events)
    start = next(came)
    assert start["event"] == "start"
    first = [next(came), next(came)]
    assert sorted((event["event"], event["data"]["data"]) for event in first) == [("stderr", "two\n"), ("stdout", "one\n")]
    # It waits for us: so what came, came while it ran.
    assert daemon.get(f"/v1/execs/{start['data']['id']}").json()["state"] != "ended"
    assert daemon.post(f"/v1/execs/{start['data']['id']}/stdin", b"three\n").status == 204
    assert next(came)["data"] == {"type": "stdout", "data": "three\n", "encoding": "utf-8"}
    end = next(came)
    assert end["event"] == "exit" and end["data"]["exit_code"] == 5 and end["data"]["reason"] == "exited"
    assert list(came) == []
    events.close()


def test_characters_are_not_split_and_bytes_are_kept(daemon, workspace):
    script = r"printf 'a\342'; read x; printf '\202\254b'; read x; printf '\377\n'; read x; printf '\342\202'"
    with contextlib.closing(stream(daemon, workspace, {"command": script, "open_stdin": True})) as events:
        came = iter(events)
        path = f"/v1/execs/{next(came)['data']['id']}/stdin"
        # What is written at once may come at once: each piece waits until the one before it is here.
        for expected in (("a", "utf-8"), ("€b", "utf-8"), (b"\xff\n", "base64")):
            _, data, encoding = next(came)["data"].values()
            assert (base64.b64decode(data) if encoding == "base64" else data, encoding) == expected
            assert daemon.post(path, b"\n").status == 204
        assert [event["data"].get("data") for event in came] == [base64.b64encode(b"\xe2\x82").decode(), None]


def test_a_slow_reader_holds_its_command_back_and_nobody_else(daemon, workspace):
    events = stream(daemon, workspace, {"command": "head -c 30000000 /dev/zero | tr '\\0' x"})
    time.sleep(0.3)     # it could be through by now
    assert sh(daemon, workspace, "echo here")["stdout"] == "here\n"
    assert sum(len(event["data"]["data"]) for event in events if event["event"] == "stdout") == 30000000
    events.close()


def test_a_command_that_does_not_exist_is_a_stream_like_any_other(daemon, workspace):
    events = list(stream(daemon, workspace, {"argv": ["no-such-command"]}))
    assert [event["event"] for event in events] == ["start", "stderr", "exit"] and events[2]["data"]["exit_code"] == 127


# ---- a client that goes ----

def processes(daemon, workspace, word):
    """How many commands with that word run inside."""
    return int(sh(daemon, workspace, f"ps ax -o args= | grep -c '[{word[0]}]{word[1:]}'")["stdout"])


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_dropped_connection_ends_a_foreground_exec(daemon, workspace, accept):
    connection = daemon.connection()
    connection.request("POST", f"/v1/workspaces/{workspace}/exec", json.dumps({"argv": ["sleep", "4321"]}),
                       {"Content-Type": "application/json", "Accept": accept})
    assert eventually(lambda: processes(daemon, workspace, "sleep 4321") == 1)
    connection.close()
    assert eventually(lambda: processes(daemon, workspace, "sleep 4321") == 0)


def test_a_dropped_connection_leaves_a_background_exec_alone(daemon, workspace):
    path = background(daemon, workspace, "sleep 1; echo done")
    follower = daemon.connection()
    follower.request("GET", path + "/output?follow")
    follower.getresponse().close()
    follower.close()
    assert ended(daemon, path)["exit_code"] == 0
    assert daemon.get(path + "/output").body == b"done\n"


# ---- in the background ----

def test_output_is_there_from_any_offset(daemon, workspace):
    path = background(daemon, workspace, "echo one; echo two >&2; echo three; exit 7")
    exec = ended(daemon, path)
    assert exec["exit_code"] == 7 and exec["reason"] == "exited" and exec["output_bytes"] == 14 and exec["background"]
    get = lambda query: daemon.get(f"{path}/output?{query}")
    assert get("").body == b"one\nthree\n" and get("stream=stderr").body == b"two\n" and get("offset=4").body == b"three\n"
    assert get("offset=10").body == b"" and get("offset=10").headers["Carrel-Next-Offset"] == "10"
    problem(get("offset=11"), 416, "invalid", "10 bytes")
    problem(get("stream=both"), 400, "invalid")
    problem(daemon.get("/v1/execs/0123456789abcdefghij/output"), 404, "not_found")


def test_output_is_followed_until_the_end(daemon, workspace):
    path = background(daemon, workspace, "for n in 1 2 3; do echo $n; sleep 0.1; done; echo e >&2")
    assert daemon.get(path + "/output?follow=true").body == b"1\n2\n3\n"
    assert ended(daemon, path)["state"] == "ended"
    with contextlib.closing(Events(daemon, path + "/output?follow")) as events:
        came = list(events)
    assert {(event["event"], event["data"].get("data")) for event in came[:-1]} == {("stdout", "1\n2\n3\n"), ("stderr", "e\n")}
    assert came[-1]["event"] == "exit" and came[-1]["data"]["exit_code"] == 0


def test_a_foreground_exec_has_no_stored_output(daemon, workspace):
    exec = sh(daemon, workspace, "echo x")["id"]
    problem(daemon.get(f"/v1/execs/{exec}/output"), 404, "not_found")


def test_lists_of_execs(daemon, workspace):
    paths = [background(daemon, workspace, f"exit {n}") for n in range(3)]
    for path in paths:
        ended(daemon, path)
    ids = lambda query: [item["id"] for item in daemon.get(query).json()["items"] if item["background"]]
    expected = [os.path.basename(path) for path in paths[::-1]]
    listed = f"/v1/workspaces/{workspace}/execs"
    assert sorted(ids(listed)) == sorted(expected) and set(expected) <= set(ids("/v1/execs"))
    page = daemon.get(listed + "?limit=2").json()
    rest = daemon.get(listed + f"?limit=2&cursor={page['next_cursor']}").json()
    assert len(page["items"]) == 2 and [item["id"] for item in page["items"] + rest["items"]] == ids(listed)
    problem(daemon.get(listed + "?cursor=nonsense"), 400, "invalid")
    problem(daemon.get("/v1/workspaces/nobody/execs"), 404, "not_found")


def test_a_key_starts_it_under_one_id_whoever_asks(daemon, workspace):
    answer = run(daemon, workspace, {"argv": ["true"]}, headers={"Carrel-Exec-Id": "abcdefghij0123456789"})
    assert answer.json()["id"] == "abcdefghij0123456789"
    problem(run(daemon, workspace, {"argv": ["true"]}, headers={"Carrel-Exec-Id": "x"}), 400, "invalid")
    # Of it init knows the beginning: none is its own, another is nobody's but one's while that runs.
    problem(run(daemon, workspace, {"argv": ["true"]}, headers={"Carrel-Exec-Id": "00000000000000000001"}), 400, "invalid")
    running = run(daemon, workspace, {"argv": ["sleep", "20"], "background": True}).json()["id"]
    near = running[:12] + ("0" if running[12] != "0" else "1") + running[13:]
    problem(run(daemon, workspace, {"argv": ["true"]}, headers={"Carrel-Exec-Id": near}), 409, "conflict")
    assert daemon.get(f"/v1/execs/{running}").json()["state"] == "running"


# ---- signals, input, terminals ----

@pytest.mark.parametrize("signal, exit_code", [("TERM", 143), ("SIGINT", 130), (9, 137), ("USR1", 138), (34, 162)])
def test_signals_reach_it(daemon, workspace, signal, exit_code):
    path = background(daemon, workspace, "exec sleep 60")
    assert daemon.post(path + "/signal", {"signal": signal}).status == 204
    exec = ended(daemon, path)
    assert exec["exit_code"] == exit_code and exec["reason"] == "signaled"
    problem(daemon.post(path + "/signal", {"signal": signal}), 409, "conflict", "ended")


def test_only_who_counts_the_output_tells_why_it_was_killed(daemon, workspace):
    path = background(daemon, workspace, "exec sleep 60")
    problem(daemon.post(path + "/signal", {"signal": "TERM", "reason": "output_limit"}), 400, "invalid", "only be given with KILL")
    problem(daemon.post(path + "/signal", {"signal": "KILL", "reason": "output_limit"}), 400, "invalid", "were not passed")
    problem(daemon.post(path + "/signal", {"signal": "KILL", "reason": "timeout"}), 400, "invalid", "reason")
    assert daemon.get(path).json()["state"] == "running"


@pytest.mark.parametrize("signal", ["NOPE", 0, -1, 99, 1.5, None, "term"])
def test_what_is_no_signal_is_refused(daemon, signal):
    problem(daemon.post("/v1/execs/0123456789abcdefghij/signal", {"signal": signal}), 400, "invalid", "signal")


def test_input_is_streamed(daemon, workspace):
    path = background(daemon, workspace, "wc -c", open_stdin=True)
    piece = b"x" * (1 << 20)        # more than a pipe holds
    for _ in range(4):
        assert daemon.post(path + "/stdin", piece).status == 204
    assert daemon.post(path + "/stdin?eof", b"end").status == 204
    assert ended(daemon, path)["exit_code"] == 0
    assert daemon.get(path + "/output").body == b"%d\n" % ((4 << 20) + 3)
    problem(daemon.post(path + "/stdin", b"x"), 409, "conflict")


def test_input_that_nobody_reads_waits_until_the_end(daemon, workspace):
    path = background(daemon, workspace, "sleep 0.5", open_stdin=True)
    problem(daemon.post(path + "/stdin", b"x" * (8 << 20)), 409, "conflict")
    path = background(daemon, workspace, "sleep 60")
    problem(daemon.post(path + "/stdin", b"x"), 409, "conflict")


def test_a_terminal_has_a_size(daemon, workspace):
    path = background(daemon, workspace, "stty size; read line; stty size; tty", tty=True, rows=11, columns=22, open_stdin=True)
    assert eventually(lambda: b"11 22" in daemon.get(path + "/output").body)
    assert daemon.post(path + "/resize", {"rows": 33, "columns": 44}).status == 204
    assert daemon.post(path + "/stdin", b"\n").status == 204
    assert ended(daemon, path)["tty"]
    assert b"33 44" in daemon.get(path + "/output").body and b"/dev/pts/" in daemon.get(path + "/output").body
    problem(daemon.post(path + "/resize", {"rows": 1, "columns": 1}), 409, "conflict")
    plain = background(daemon, workspace, "sleep 60")
    problem(daemon.post(plain + "/resize", {"rows": 1, "columns": 1}), 409, "conflict", "terminal")
    problem(daemon.post(plain + "/resize", {"rows": 0, "columns": 1}), 400, "invalid", "rows")


# ---- streams handed over ----

def handed(daemon, workspace, body, streams, fds=()):
    """One request with descriptors; (status, headers, body, descriptors that came)."""
    text = json.dumps(body).encode()
    head = (f"POST /v1/workspaces/{workspace}/exec HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"Carrel-Streams: {streams}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n").encode()
    connection = daemon.connection()
    connection.connect()
    connection.sock.sendmsg([head + text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
    return connection


def answer_of(connection):
    came, fds = b"", []
    while True:
        data, ancillary, _, _ = connection.sock.recvmsg(65536, 256)
        for _, _, packed in ancillary:
            fds += array.array("i", packed)
        if not data:
            connection.close()
            head, _, body = came.partition(b"\r\n\r\n")
            return int(head.split()[1]), body, fds
        came += data


@pytest.mark.kernel
def test_streams_are_handed_over(daemon, workspace):
    ends = [os.pipe() for _ in range(3)]
    connection = handed(daemon, workspace, {"command": "cat; echo err >&2; exit 4"}, "handed", [ends[0][0], ends[1][1], ends[2][1]])
    for fd in (ends[0][0], ends[1][1], ends[2][1]):
        os.close(fd)
    os.write(ends[0][1], b"through")
    os.close(ends[0][1])
    status, body, _ = answer_of(connection)
    assert status == 200 and json.loads(body)["exit_code"] == 4
    for (read, _), expected in zip(ends[1:], (b"through", b"err\n")):
        with open(read, "rb") as file:
            assert file.read() == expected      # to its end: nobody else has it


def test_only_pipes_terminals_and_nothing_are_taken(daemon, workspace, tmp_path):
    with open(tmp_path / "host-file", "w+b") as file, open("/dev/null", "r+b") as null:
        status, body, _ = answer_of(handed(daemon, workspace, {"argv": ["true"]}, "handed", [null.fileno(), file.fileno(), null.fileno()]))
        assert status == 403 and json.loads(body)["code"] == "denied"
        for fds in ([], [null.fileno()], [null.fileno()] * 4):
            status, body, _ = answer_of(handed(daemon, workspace, {"argv": ["true"]}, "handed", fds))
            assert status == 400, body
        assert answer_of(handed(daemon, workspace, {"argv": ["true"]}, "handed", [null.fileno()] * 3))[0] == 200
    assert answer_of(handed(daemon, workspace, {"argv": ["true"]}, "other"))[0] == 400


def test_a_terminal_is_handed_out(daemon, workspace):
    connection = handed(daemon, workspace, {"command": "stty size; read x; echo got $x; exit 6", "rows": 5, "columns": 6}, "pty")
    data, ancillary, _, _ = connection.sock.recvmsg(65536, 256)
    assert data.startswith(b"HTTP/1.1 200") and b"text/event-stream" in data
    (master,) = array.array("i", ancillary[0][2])
    os.write(master, b"typed\n")
    seen = b""
    while b"got typed" not in seen:
        seen += os.read(master, 4096)
    assert b"5 6" in seen
    os.close(master)
    _, body, _ = (None, *answer_tail(connection, data))
    assert b"event: start" in body and b"event: exit" in body and b'"exit_code":6' in body


def answer_tail(connection, data):
    while piece := connection.sock.recv(65536):
        data += piece
    connection.close()
    return data, []


def test_who_lets_go_of_handed_streams_ends_it(daemon, workspace):
    with open("/dev/null", "r+b") as null:
        connection = handed(daemon, workspace, {"argv": ["sleep", "5432"]}, "handed", [null.fileno()] * 3)
    assert eventually(lambda: processes(daemon, workspace, "sleep 5432") == 1)
    connection.close()
    assert eventually(lambda: processes(daemon, workspace, "sleep 5432") == 0)
