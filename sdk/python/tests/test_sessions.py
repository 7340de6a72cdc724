"""Interactive commands, over a WebSocket."""
import threading

import anyio
import pytest

from carrel import AsyncWorkspace, CommandNotFound, ConnectionLost, Invalid, NotFound, Session, Workspace


def read_until(session: Session, text: str) -> str:
    seen = ""
    while text not in seen:
        output = session.read()
        assert output is not None, seen
        seen += output.text
    return seen


def test_streams_are_apart(ws: Workspace) -> None:
    with ws.session("cat; echo end >&2; echo $A; pwd; exit 3", env={"A": "b"}, cwd="/tmp") as session:
        session.write("one\n")
        assert read_until(session, "one\n") == "one\n"
        session.write(b"two\n")
        session.close_stdin()
        rest = list(session)
    assert b"".join(output.data for output in rest if output.stream == "stdout") == b"two\nb\n/tmp\n"
    assert b"".join(output.data for output in rest if output.stream == "stderr") == b"end\n"
    assert session.result.exit_code == 3 and session.result.reason == "exited" and session.id


def test_much_goes_both_ways(ws: Workspace) -> None:
    """One thread writes while another reads: neither end can hold all of it."""
    data = bytes(range(256)) * 8192
    with ws.session(["cat"]) as session:
        def send() -> None:
            session.write(data)
            session.close_stdin()

        sender = threading.Thread(target=send)
        sender.start()
        assert b"".join(output.data for output in session) == data
        sender.join(60)
    assert session.result.ok


def test_a_terminal(ws: Workspace) -> None:
    # A shell that has a child goes on if the child doesn't die of the signal: the signal is for a program without one.
    with ws.session(["sh", "-c", "stty size; read line; stty size; echo ready; exec cat"], tty=True, rows=10, columns=20) as session:
        read_until(session, "10 20")
        session.resize(30, 40)
        session.write("\n")
        assert "30 40" in read_until(session, "ready")
        session.signal("INT")
        list(session)
    assert session.result.exit_code == 130


def test_attach(ws: Workspace) -> None:
    job = ws.start("while read line; do echo got $line; done; exit 7", open_stdin=True)
    with job.attach() as session:
        session.write("a\n")
        read_until(session, "got a\n")
    assert job.refresh().state == "running"
    with job.attach(offset=len("got a\n")) as session:
        session.write("b\n")
        session.close_stdin()
        outputs = [output.text for output in session]
    assert "".join(outputs) == "got b\n" and session.result.exit_code == 7 and job.wait(60).exit_code == 7


def test_leaving_cancels(ws: Workspace) -> None:
    with ws.session("echo here; sleep 1000") as session:
        read_until(session, "here")
        with pytest.raises(RuntimeError):
            session.result
    assert [process.wait(60).reason for process in ws.execs() if process.id == session.id] in (["canceled"], [])
    with pytest.raises(ConnectionLost):
        session.write("late")


def test_refusals(ws: Workspace) -> None:
    with pytest.raises(NotFound), Workspace(ws._http, ws.info.__class__(**{**vars(ws.info), "id": "missing"})).session("true") as session:
        session.read()
    with pytest.raises(Invalid, match="/missing"), ws.session("true", cwd="/missing") as session:
        list(session)
    try:
        with ws.session(["/missing"]) as session:
            list(session)
        assert session.result.exit_code == 127
    except CommandNotFound as problem:
        assert problem.exit_code == 127


def test_asynchronous() -> None:
    async def main() -> None:
        async with await AsyncWorkspace.create() as ws, ws.session(["cat"]) as session:
            data = bytes(range(256)) * 4096

            async def send() -> None:
                await session.write(data)
                await session.close_stdin()

            async with anyio.create_task_group() as group:
                group.start_soon(send)
                assert b"".join([output.data async for output in session]) == data
            assert session.result.ok

    anyio.run(main)
