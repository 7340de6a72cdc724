"""The tests' own index does what the tests rely on."""
# security: packages
import time
import hashlib
import http.client
import json
import urllib.error
import urllib.request
import zipfile
from io import BytesIO

import pytest
from index_server import JSON_TYPE, refusing_port
from wheels import bomb, escaping, sdist, wheel

pytestmark = pytest.mark.once


def get(url, seconds=60, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=seconds) as answer:
        return answer.read()


def test_it_serves_pages_and_files(index):
    dist = index.add(wheel("Some.Thing", "1.0", requires=["x"]))
    page = json.loads(get(f"{index.url}/some-thing/", Accept=JSON_TYPE))
    file = page["files"][0]
    assert (file["filename"], file["hashes"]["sha256"]) == (dist.filename, hashlib.sha256(dist.data).hexdigest())
    assert f'{file["url"]}#sha256={dist.sha256}'.encode() in get(f"{index.url}/some-thing/")
    assert get(file["url"]) == dist.data and b"Requires-Dist: x" in get(file["url"] + ".metadata")
    assert get(file["url"], Range="bytes=2-5") == dist.data[2:6] and get(file["url"], Range="bytes=-4") == dist.data[-4:]
    assert index.asked_for("some_thing") == 3
    with pytest.raises(urllib.error.HTTPError):
        get(f"{index.url}/other/")


@pytest.mark.parametrize("kind, error", [("500", urllib.error.HTTPError), ("half", http.client.IncompleteRead), ("hang", TimeoutError),
                                         ("reset", ConnectionResetError)])
def test_it_misbehaves_as_often_as_asked(index, kind, error):
    index.add(wheel("thing"))
    index.misbehave("/simple/thing/", kind, times=1)
    with pytest.raises(error):
        get(f"{index.url}/thing/", seconds=2 if kind == "hang" else 60)
    assert b"thing-1.0" in get(f"{index.url}/thing/")


def test_it_refuses_and_lies(index):
    index.add(wheel("thing"), said_sha256="ab" * 32)
    assert b"#sha256=" + b"ab" * 32 in get(f"{index.url}/thing/")
    with refusing_port() as port, pytest.raises(urllib.error.URLError):
        get(f"http://127.0.0.1:{port}/")


def test_the_evil_wheels_are_as_evil_as_they_say():
    names = zipfile.ZipFile(BytesIO(escaping("x", "../../../y").data)).namelist()
    assert "../../../y" in names
    assert "/abs" in zipfile.ZipFile(BytesIO(escaping("x", "/abs").data)).namelist()
    large = bomb("x", 50)
    assert len(large.data) < 1 << 20 and sum(item.file_size for item in zipfile.ZipFile(BytesIO(large.data)).infolist()) > 50 << 20
    assert sdist("x").filename == "x-1.0.tar.gz"


@pytest.mark.once
@pytest.mark.parametrize("elsewhere", ["http://127.0.0.1:9", "http://unlisted.invalid"])
def test_a_page_that_redirects_to_another_host_is_refused_by_name(env, index, elsewhere):
    """At once: it doesn't wait until the time of the build is over."""
    index.add(wheel("moved"))
    index.misbehave("/simple/moved", elsewhere)
    started = time.monotonic()
    error = env.fails("agent", "--pip", "moved", code={"denied", "network", "failed"}, timeout=100)
    assert elsewhere.partition("//")[2].partition(":")[0] in error["message"] + (error["hint"] or ""), error
    assert time.monotonic() - started < 25, error
