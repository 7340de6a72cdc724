"""A daemon that is reached by TCP, with a token: what a socket of this host does otherwise."""
import os
import pathlib
import subprocess
import threading
from typing import Iterator

import anyio
import pytest

from carrel import AsyncCarrel, Carrel, ConnectionFailed, Unauthenticated

URLS = [url for url in os.environ.get("CARREL_TEST_URLS", "").split() if url]
TOKEN, CA = os.environ.get("CARREL_TEST_TOKEN", ""), os.environ.get("CARREL_TEST_CA")


@pytest.fixture(params=URLS, ids=lambda url: url.partition(":")[0], scope="module")
def remote(request: pytest.FixtureRequest) -> Iterator[Carrel]:
    with Carrel(request.param, token=TOKEN, ca=CA) as carrel:
        yield carrel


def test_much_goes_both_ways(remote: Carrel) -> None:
    """One thread writes while another reads: neither end can hold all of it."""
    data = bytes(range(256)) * 20_000
    with remote.create() as ws, ws.session(["cat"]) as session:
        def send() -> None:
            session.write(data)
            session.close_stdin()

        sender = threading.Thread(target=send)
        sender.start()
        assert b"".join(output.data for output in session) == data
        sender.join(60)


def test_ten_lines(remote: Carrel, tmp_path: pathlib.Path) -> None:
    with remote.create() as ws:
        assert ws.run("cat", stdin="in").stdout == "in"
        (tmp_path / "up").write_bytes(os.urandom(1_000_000))
        ws.files.upload(tmp_path / "up", "up")
        ws.files.download("up", tmp_path / "down")
        assert (tmp_path / "down").read_bytes() == (tmp_path / "up").read_bytes()
        ws.snapshot("s")
        with ws.fork() as fork, fork.session("cat; exit 3") as session:
            session.write(b"x" * 200_000)
            session.close_stdin()
            assert sum(len(output.data) for output in session) == 200_000 and session.result.exit_code == 3
        job = ws.start(["python3", "-m", "http.server", "8000"])
        for event in ws.events(after=0):
            if event.type == "exec.started":
                break
        while not ws.ports():
            pass
        with ws.forward(8000) as local:
            done = subprocess.run(["curl", "-sS", "-o", tmp_path / "page", f"http://127.0.0.1:{local.port}/up"], timeout=60)
        assert done.returncode == 0 and (tmp_path / "page").read_bytes() == (tmp_path / "up").read_bytes()
        job.kill()
        job.wait(60)


def test_a_wrong_token(remote: Carrel) -> None:
    with Carrel(remote._http.place.url, token=TOKEN[:-2] + "zz", ca=CA) as stranger, pytest.raises(Unauthenticated) as refused:
        stranger.create()
    assert refused.value.status == 401 and TOKEN not in str(refused.value)


def test_an_unknown_authority() -> None:
    for url in URLS:
        if url.startswith("https"):
            with Carrel(url, token=TOKEN) as carrel, pytest.raises(ConnectionFailed, match="not trusted.*ca="):
                carrel.health()


@pytest.mark.parametrize("url", URLS, ids=lambda url: url.partition(":")[0])
def test_asynchronous(url: str) -> None:
    async def main() -> None:
        async with AsyncCarrel(url, token=TOKEN, ca=CA) as carrel, await carrel.create() as ws:
            async with ws.session(["cat"]) as session:
                await session.write("x")
                await session.close_stdin()
                assert [output.text async for output in session] == ["x"]

    anyio.run(main)
