"""Interactive execs on WebSockets: their messages, back-pressure, who may use them, and clients that break the protocol."""
# security: doors
import contextlib
import json
import struct

import pytest
from harness import eventually
from rest import created, problem
from websockets import BINARY, CLOSE, PING, PONG, TEXT, PROTOCOL, Refused, WebSocket, frame

SETTINGS = {"permissions": {"allow": ["shell(echo:*)"], "deny": []}}


@pytest.fixture(scope="module")
def name(daemon):
    with created(daemon) as workspace:
        yield workspace["name"]


def path(name):
    return f"/v1/workspaces/{name}/exec"


def state_of(daemon, exec_id):
    return daemon.get(f"/v1/execs/{exec_id}").json()


def canceled(daemon, exec_id):
    return eventually(lambda: state_of(daemon, exec_id)["reason"] == "canceled")


def ended_well(ws, code=0):
    """Its exit; the connection is closed with 1000 then."""
    exit = ws.until("exit")
    assert exit["exit_code"] == code, exit
    assert ws.closing() == [] and ws.code == 1000
    return exit


# ---- messages ----

def test_streams_and_exit(daemon, name):
    with WebSocket(daemon, path(name)) as ws:
        assert "authorization" not in ws.headers
        ws.start("sh", "-c", "cat; echo problem >&2; exit 3")
        started = ws.until("started")
        ws.stdin(b"one ")
        ws.stdin(b"two")
        ws.stdin(b"")
        exit = ended_well(ws, 3)
        assert ws.output == {1: b"one two", 2: b"problem\n"}
        assert exit["id"] == started["exec"] and exit["reason"] == "exited" and exit["signal"] is None
        assert "stdout" not in exit and "stderr" not in exit and exit["error"] is None
    assert state_of(daemon, started["exec"])["exit_code"] == 3


def test_a_terminal_has_a_size_and_one_stream(daemon, name):
    with WebSocket(daemon, path(name)) as ws:
        ws.start(command="stty size; echo problem >&2; read line; stty size", tty=True, cols=91, rows=17)
        ws.until("started")
        assert b"17 91" in ws.seen(b"problem\r\n")
        ws.text("resize", cols=132, rows=43)
        ws.stdin(b"\n")
        ended_well(ws)
        assert b"43 132" in ws.output[1] and ws.output[2] == b""


def test_signals_and_what_comes_before_the_start_counts_after_it(daemon, name):
    with WebSocket(daemon, path(name)) as ws:
        ws.start(command="trap 'echo got it; exit 7' INT; echo ready; while :; do read line || sleep 0.01; done")
        ws.text("resize", cols=80, rows=24)     # it has no terminal: nothing happens
        ws.stdin(b"early\n")
        assert ws.until("started")
        ws.seen(b"ready\n")
        ws.text("signal", signal="INT")
        ended_well(ws, 7)
        assert ws.output[1] == b"got it\n"


def test_a_message_in_fragments_and_pings_between(daemon, name):
    text = json.dumps({"type": "start", "argv": ["cat"]}).encode()
    with WebSocket(daemon, path(name)) as ws:
        for i, byte in enumerate(text):
            ws.send(frame(TEXT if i == 0 else 0, bytes([byte]), fin=i == len(text) - 1))
        ws.send(frame(PING, b"are you there?"))
        ws.send(frame(BINARY, b"\0a", fin=False) + frame(PING, b"2") + frame(0, b"", fin=False) + frame(0, b"b"))
        pongs = []
        while len(pongs) < 2:
            opcode, data = ws.frame()
            if opcode == PONG:
                pongs.append(data)
        assert pongs == [b"are you there?", b"2"]
        ws.stdin(b"")
        ended_well(ws)


def test_a_client_reads_slowly_and_so_does_the_command(daemon, name):
    size = 3 << 20
    with WebSocket(daemon, path(name)) as ws:
        ws.start(command=f"head -c {size} /dev/zero; read go; head -c {size} | wc -c")
        ws.until("started")
        ws.stdin(b"go\n")
        # The socket and the pipes hold less than that: the command waits for this reader, and this writer for it.
        seen = b""
        while len(seen) < size:
            _, data = ws.message()
            seen += data
        for _ in range(size // 65536):
            ws.stdin(bytes(65536))
        ended_well(ws)
        assert ws.output[1].split() == [str(size).encode()]


def test_a_command_that_takes_no_input_is_not_disturbed_by_it(daemon, name):
    with WebSocket(daemon, path(name)) as ws:
        ws.start(command="trap 'exit 0' TERM; cat; exec <&-; echo closed; while :; do sleep 0.01; done", stdin="given")
        ws.until("started")
        assert ws.seen(b"closed\n") == b"givenclosed\n"
        ws.stdin(b"x" * 65536)
        ws.stdin(b"x" * 65536)
        ws.text("signal", signal="TERM")
        ended_well(ws)


# ---- refusals ----

def refused(ws, status, code, *words):
    error, = (message for message in ws.closing() if not isinstance(message, tuple) and message["type"] == "error")
    assert error["status"] == status and error["code"] == code and error["request_id"], error
    for word in words:
        assert word in error["detail"] + (error["hint"] or ""), error
    return error


def test_what_cannot_be_started(daemon, name):
    for start, code, word in (({"argv": ["true"], "background": True}, "invalid", "background"),
                              ({"argv": ["true"], "policy": "learn"}, "invalid", "learn"),
                              ({"argv": []}, "invalid", "argv"),
                              ({"argv": ["true"], "command": "true"}, "invalid", "command"),
                              ({"argv": ["true"], "colour": 1}, "invalid", "colour")):
        with WebSocket(daemon, path(name)) as ws:
            ws.text("start", **start)
            refused(ws, 400, code, word)
            assert ws.code == 1008 and ws.reason == code


def test_a_handshake_has_to_be_one(daemon, name):
    def refusal(**how):
        with pytest.raises(Refused) as info:
            WebSocket(daemon, how.pop("path", path(name)), **how)
        return info.value

    answer = daemon.get(path(name))
    problem(answer, 426, "invalid", "WebSocket")
    assert answer.headers["Upgrade"] == "websocket" and answer.headers["Sec-WebSocket-Version"] == "13"
    assert refusal(protocols=()).status == 400
    assert refusal(protocols=("chat",)).status == 400
    assert refusal(path="/v1/workspaces/none/exec").status == 404
    assert refusal(headers=("Sec-WebSocket-Key: AAAA",)).status == 400


# A frame that breaks the protocol, and the code of the Close that comes for it.
HOSTILE = {
    "no mask": (frame(BINARY, b"\0x", mask=None), 1002),
    "reserved bits": (frame(BINARY, b"\0x", reserved=4), 1002),
    "unknown opcode": (frame(3, b"x"), 1002),
    "unknown control opcode": (frame(11), 1002),
    "continuation of nothing": (frame(0, b"x"), 1002),
    "message in a message": (frame(BINARY, b"\0", fin=False) + frame(BINARY, b"\0"), 1002),
    "long ping": (frame(PING, b"x" * 126), 1002),
    "fragmented ping": (frame(PING, b"x", fin=False), 1002),
    "length of 63 bits": (frame(BINARY, b"\0", length=1 << 62), 1009),
    "length with a sign": (frame(BINARY, b"\0", length=1 << 63), 1002),
    "wasteful length": (b"\x82\xfe\x00\x01\1\2\3\4\0", 1002),
    "one byte too long": (frame(BINARY, b"\0" * 65538), 1009),
    "too long in fragments": (frame(BINARY, b"\0" * 65537, fin=False) + frame(0, b"x"), 1009),
    "long text": (frame(TEXT, b" " * 4097), 1009),
    "not UTF-8": (frame(TEXT, b"\xff"), 1007),
    "half a character": (frame(TEXT, b"\xe2\x82"), 1007),
    "surrogate": (frame(TEXT, b"\xed\xa0\x80"), 1007),
    "not JSON": (frame(TEXT, b"{"), 1008),
    "no object": (frame(TEXT, b"[]"), 1008),
    "no type": (frame(TEXT, b"{}"), 1008),
    "unknown type": (frame(TEXT, b'{"type":"stop"}'), 1008),
    "deep": (frame(TEXT, b"[" * 2000), 1008),
    "second start": (frame(TEXT, b'{"type":"start","argv":["true"]}'), 1002),
    "no stream": (frame(BINARY, b""), 1002),
    "unknown stream": (frame(BINARY, b"\1x"), 1002),
    "invalid close code": (frame(CLOSE, struct.pack("!H", 1005)), 1002),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_client_that_breaks_the_protocol_is_closed_and_its_exec_canceled(daemon, name, what):
    data, code = HOSTILE[what]
    with WebSocket(daemon, path(name)) as ws:
        exec_id = ws.start("sleep", "1000").until("started")["exec"]
        ws.send(data)
        ws.closing()
        assert ws.code == code, (what, ws.reason)
    assert canceled(daemon, exec_id)


def test_text_messages_have_a_rate(daemon, name):
    texts = frame(TEXT, b'{"type":"resize","rows":1,"cols":1}') * 4001
    with WebSocket(daemon, path(name)) as ws:
        exec_id = ws.start("sleep", "1000").until("started")["exec"]
        for _ in range(10):      # it counts anew when it sends a ping: if that was in between, it answers ours
            with contextlib.suppress(OSError):
                ws.send(texts + frame(PING))
            while (answer := ws.frame())[0] not in (PONG, CLOSE):
                ws.send(frame(PONG, answer[1]))
            if answer[0] == CLOSE:
                break
        assert struct.unpack("!H", answer[1][:2]) == (1008,) and b"too many" in answer[1]
    assert canceled(daemon, exec_id)


@pytest.mark.parametrize("data", [frame(BINARY, b"\0x"), frame(TEXT, b'{"type":"resize","rows":1,"cols":1}')])
def test_the_first_message_is_start(daemon, name, data):
    with WebSocket(daemon, path(name)) as ws:
        ws.send(data)
        ws.closing()
        assert ws.code == 1002


def close_well(ws):
    ws.close()


def send_half_a_frame(ws):
    ws.send(frame(BINARY, b"\0", length=65536))


def send_more_than_is_taken(ws):
    ws.sock.settimeout(0)
    with contextlib.suppress(BlockingIOError):
        while True:
            ws.sock.send(frame(BINARY, bytes(65536)))


@pytest.mark.parametrize("last", [close_well, send_half_a_frame, send_more_than_is_taken])
def test_a_client_that_leaves_cancels_its_exec(daemon, name, last):
    with WebSocket(daemon, path(name)) as ws:
        exec_id = ws.start("sleep", "1000").until("started")["exec"]
        last(ws)
    assert canceled(daemon, exec_id)


# ---- tokens, approvals ----

def test_tokens(daemon, name):
    made = {scope: daemon.post("/v1/tokens", {"scope": scope}).json() for scope in ("user", "reviewer")}
    try:
        offered = (PROTOCOL, f"carrel.bearer.{made['user']['text']}")
        with WebSocket(daemon, path(name), offered) as ws:
            ws.start("echo", "hello")
            ended_well(ws)
        with pytest.raises(Refused) as info:
            WebSocket(daemon, path(name), (PROTOCOL, "carrel.bearer.crl_wrong"))
        assert info.value.status == 401
        with pytest.raises(Refused) as info:
            WebSocket(daemon, path(name), offered, (f"Authorization: Bearer {made['user']['text']}",))
        assert info.value.status == 401
        # A reviewer may look, and start nothing.
        with WebSocket(daemon, path(name), headers=(f"Authorization: Bearer {made['reviewer']['text']}",)) as ws:
            ws.start("echo", "hello")
            refused(ws, 403, "denied", "exec.start")
            assert ws.code == 1008
        # The end of a token is the end of its socket.
        with WebSocket(daemon, path(name), offered) as ws:
            exec_id = ws.start("sleep", "1000").until("started")["exec"]
            assert daemon.delete(f"/v1/tokens/{made['user']['id']}").status == 204
            refused(ws, 401, "unauthenticated", "token")
            assert ws.code == 1008
        assert canceled(daemon, exec_id)
        assert made["user"]["text"] not in daemon.log()
    finally:
        for token in made.values():
            daemon.delete(f"/v1/tokens/{token['id']}")


def test_an_exec_that_waits_for_an_approval(daemon):
    with created(daemon, settings=SETTINGS) as workspace:
        reviewer = daemon.post("/v1/tokens", {"scope": "reviewer"}).json()
        answer = lambda approval, decision: daemon.post(
            f"/v1/approvals/{approval}", {"decision": decision}, headers={"Authorization": f"Bearer {reviewer['text']}"})
        with WebSocket(daemon, path(workspace["id"])) as ws:
            waiting = ws.start("cat", "-").until("waiting")
            ws.stdin(b"typed meanwhile")
            ws.stdin(b"")
            assert answer(waiting["approval"], "approve").status == 200
            assert ws.until("started")["exec"] == waiting["exec"]
            ended_well(ws)
            assert ws.output[1] == b"typed meanwhile"
        with WebSocket(daemon, path(workspace["id"])) as ws:
            waiting = ws.start("cat", "a").until("waiting")
            assert answer(waiting["approval"], "deny").status == 200
            assert ended_well(ws, 126)["reason"] == "denied"
        # Who goes takes the question back.
        with WebSocket(daemon, path(workspace["id"])) as ws:
            waiting = ws.start("cat", "b").until("waiting")
            ws.close()
            ws.closing()
        assert eventually(lambda: daemon.get(f"/v1/approvals/{waiting['approval']}").json()["state"] != "pending")
        with WebSocket(daemon, path(workspace["id"])) as ws:
            ws.start("cat", "c", approval="return")
            error = refused(ws, 202, "approval_required")
            assert error["approval"]["state"] == "pending" and state_of(daemon, error["exec"])["state"] == "waiting"
        daemon.delete(f"/v1/tokens/{reviewer['id']}")


# ---- background execs ----

def attach(daemon, exec_id, query="", **how):
    return WebSocket(daemon, f"/v1/execs/{exec_id}/attach{query}", **how)


def background(daemon, name, command, **members):
    answer = daemon.post(path(name), {"command": command, "background": True, **members})
    assert answer.status == 201, answer
    return answer.json()["id"]


def test_attach(daemon, name):
    exec_id = background(daemon, name, "echo ready; cat; echo problem >&2; exit 5", open_stdin=True)
    assert eventually(lambda: state_of(daemon, exec_id)["output_bytes"] == 6)
    with attach(daemon, exec_id) as ws:
        assert ws.until("started") == {"type": "started", "exec": exec_id}
        assert ws.seen(b"ready\n") == b"ready\n"
        ws.stdin(b"typed\n")
        assert ws.seen(b"typed\n") == b"typed\n"
        ws.text("resize", rows=10, cols=10)     # no terminal: nothing
        ws.close()
        ws.closing()
    assert state_of(daemon, exec_id)["state"] == "running"      # it goes on
    with attach(daemon, exec_id, "?offset=6") as ws, attach(daemon, exec_id, "?offset=12") as other:
        ws.until("started")
        other.until("started")
        ws.stdin(b"")
        exit = ended_well(ws, 5)
        assert ws.output == {1: b"typed\n", 2: b"problem\n"} and exit["reason"] == "exited"
        ended_well(other, 5)
        assert other.output == {1: b"", 2: b"problem\n"}
    with attach(daemon, exec_id, "?stderr_offset=8") as ws:     # one that has ended
        ended_well(ws, 5)
        assert ws.output == {1: b"ready\ntyped\n", 2: b""}
    with pytest.raises(Refused) as info:
        attach(daemon, exec_id, "?offset=100")
    assert info.value.status == 416
    problem(daemon.get(f"/v1/execs/{exec_id}/attach"), 426, "invalid")


def test_attach_to_a_terminal(daemon, name):
    exec_id = background(daemon, name, "read line; stty size; exec sleep 1000", tty=True)
    with attach(daemon, exec_id) as ws:
        ws.until("started")
        ws.text("resize", rows=11, cols=22)
        ws.stdin(b"go\n")
        ws.seen(b"11 22\r\n")
        ws.text("signal", signal="TERM")
        assert ended_well(ws, 143)["signal"] == 15


def test_who_may_attach_and_to_what(daemon, name):
    reviewer = daemon.post("/v1/tokens", {"scope": "reviewer"}).json()
    headers = (f"Authorization: Bearer {reviewer['text']}",)
    exec_id = background(daemon, name, "echo ready; cat", open_stdin=True)
    try:
        with attach(daemon, exec_id, headers=headers) as ws:
            ws.until("started")
            ws.seen(b"ready\n")
            ws.stdin(b"x")
            refused(ws, 403, "denied", "exec.stdin")
        assert state_of(daemon, exec_id)["state"] == "running"
        with WebSocket(daemon, path(name)) as ws:
            foreground = ws.start("sleep", "1000").until("started")["exec"]
            with pytest.raises(Refused) as info:
                attach(daemon, foreground)
            assert info.value.status == 409
        with pytest.raises(Refused) as info:
            attach(daemon, "none")
        assert info.value.status == 404
    finally:
        daemon.post(f"/v1/execs/{exec_id}/signal", {"signal": "KILL"})
        daemon.delete(f"/v1/tokens/{reviewer['id']}")


def test_a_daemon_that_stops_says_so(own_daemon):
    with created(own_daemon) as workspace:
        with WebSocket(own_daemon, path(workspace["id"])) as ws:
            ws.start("sleep", "1000").until("started")
            own_daemon.stop_serving()
            refused(ws, 503, "unavailable", "stopping")
            assert ws.code == 1001
        own_daemon.start_serving()
