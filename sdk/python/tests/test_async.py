"""The asynchronous client: its code is that of the synchronous one; what differs, `_io.py`, is used here."""
import pathlib
from typing import Any, Awaitable, Callable, List

import anyio
import pytest

from carrel import AsyncCarrel, AsyncWorkspace, NotFound


def run(main: Callable[..., Awaitable[Any]], *values: Any) -> Any:
    return anyio.run(main, *values)


def test_commands_files_and_states(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        async with AsyncCarrel() as carrel, await carrel.create() as ws:
            (tmp_path / "up").write_bytes(bytes(200_000))
            await ws.files.upload(tmp_path / "up", "up")
            await ws.files.download("up", tmp_path / "down")
            assert (tmp_path / "down").read_bytes() == bytes(200_000)
            heard: List[str] = []

            async def hear(text: str) -> None:
                heard.append(text)

            result = await ws.run("echo one; echo two >&2", on_stdout=hear, on_stderr=heard.append)
            assert sorted(heard) == ["one\n", "two\n"] and result.ok
            async with ws.stream("echo three") as stream:
                assert [output.text async for output in stream] == ["three\n"]
            assert stream.result.exit_code == 0
            job = await ws.start("echo four")
            assert [output.text async for output in job.logs()] == ["four\n"] and (await job.wait()).exit_code == 0
            await ws.snapshot("s")
            async with await ws.fork() as fork:
                assert await fork.files.exists("up")
            assert ws.id in [one.id async for one in carrel.list()]
            with pytest.raises(NotFound):
                await carrel.get("missing")
            assert [event.type async for event in first(carrel.events(workspace=ws.id, after=0), 2)]

    run(main)


async def first(events: Any, count: int) -> Any:
    async for event in events:
        yield event
        count -= 1
        if not count:
            break
    await events.aclose()


def test_many_at_once() -> None:
    async def main() -> None:
        async with await AsyncWorkspace.create() as ws:
            results = {}

            async def one(number: int) -> None:
                results[number] = (await ws.exec("echo", str(number))).stdout

            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(one, number)
            assert results == {number: f"{number}\n" for number in range(20)}

    run(main)


def test_a_forwarded_port() -> None:
    async def main() -> None:
        async with await AsyncWorkspace.create() as ws:
            await ws.files.write("page", "content")
            server = await ws.start(["python3", "-m", "http.server", "8000"])
            with anyio.fail_after(60):
                while not await ws.ports():
                    await anyio.sleep(0.01)
            async with ws.forward(8000) as local:
                done = await anyio.run_process(["curl", "-sS", f"http://{local.host}:{local.port}/page"])
            assert done.stdout == b"content"
            await server.kill()

    run(main)
