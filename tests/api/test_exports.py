"""Exported environments are kept in the blob store: a bucket, with a server that misbehaves."""
import contextlib
import hashlib
import os

import pytest

import s3
from daemons import Answer
from rest import problem


@pytest.fixture(scope="module")
def site(bucket):
    with s3.home_on(bucket[1], "/site") as daemon:
        yield daemon


def put(daemon, name, data, query=""):
    return daemon.request("PUT", f"/v1/exports/{name}{query}", data, headers={"Content-Type": "application/octet-stream"})


def names(daemon, query=""):
    answer = daemon.get("/v1/exports" + query)
    assert answer.status == 200, answer
    return [item["name"] for item in answer.json()["items"]], answer.json()["next_cursor"]


def test_an_export_is_stored_replaced_fetched_listed_and_removed(site, bucket):
    data = os.urandom(300_000)
    assert put(site, "one", b"first").status == 201
    assert put(site, "one", data, "?sha256=" + hashlib.sha256(data).hexdigest()).status == 201
    assert put(site, "two.2", b"x").status == 201
    assert bucket[0].files()["site/environments/one.tar"] == data
    answer = site.get("/v1/exports/one")
    assert (answer.status, answer.body) == (200, data)
    assert names(site) == (["one", "two.2"], None)
    assert names(site, "?limit=1") == (["one"], "one") and names(site, "?limit=1&cursor=one") == (["two.2"], None)
    for name in ("one", "two.2"):
        assert site.request("DELETE", f"/v1/exports/{name}").status == 204
        problem(site.request("DELETE", f"/v1/exports/{name}"), 404, "not_found", f"'{name}'")
        problem(site.get(f"/v1/exports/{name}"), 404, "not_found", f"'{name}'")
    assert names(site) == ([], None)


@pytest.mark.parametrize("name", ["..%2Fa", ".a", "a%20b", "a%2Fb", "x" * 300])
def test_a_name_that_is_no_key_is_refused(site, name):
    assert put(site, name, b"x").status == 400
    assert site.get(f"/v1/exports/{name}").status == 400
    assert names(site) == ([], None)


def test_bytes_with_another_hash_are_not_stored(site):
    assert put(site, "forged", b"x", "?sha256=" + "0" * 64).status == 400
    assert names(site) == ([], None)


@pytest.mark.once
@pytest.mark.parametrize("fault", [403, "half"])
def test_a_fault_of_the_bucket_is_an_error_and_changes_nothing(site, bucket, fault):
    """A flipped byte is found by the import, which checks each layer: tests/env/test_env_export.py."""
    data = os.urandom(100_000)
    assert put(site, "kept", data).status == 201
    with bucket[1].misbehaving(lambda method, path, count: fault if method == "GET" else None):
        answer = site.get("/v1/exports/kept")
        assert answer.status >= 400 and "environments/kept" in answer.json()["detail"], answer
    with bucket[1].misbehaving(lambda method, path, count: 403 if method == "PUT" else None):
        assert put(site, "kept", b"other").status == 403
    assert site.get("/v1/exports/kept").body == data
    assert site.delete("/v1/exports/kept").status == 204


@pytest.mark.once
def test_one_token_s_slow_uploads_leave_jobs_for_others(site):
    """Eight operations on the blob store run at once, and an upload is one until its client has sent all."""
    bearer = {}
    for name in ("one", "other"):
        answer = site.post("/v1/tokens", {"scope": "user", "name": name})
        assert answer.status == 201, answer
        bearer[name] = {"Authorization": f"Bearer {answer.json()['text']}", "Content-Type": "application/octet-stream"}
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(contextlib.closing(site.connection())) for _ in range(9)]
        for number, connection in enumerate(slow):
            connection.putrequest("PUT", f"/v1/exports/slow{number}")
            for key, value in {**bearer["one"], "Content-Length": "100000"}.items():
                connection.putheader(key, value)
            connection.endheaders()
            connection.send(b"half")
        for connection in slow[3:]:
            answer = Answer(connection.getresponse())
            problem(answer, 429, "limit", "uploads", "one principal")
        assert site.request("PUT", "/v1/exports/quick", b"x", headers=bearer["other"]).status == 201
        assert site.get("/v1/exports/quick").body == b"x"
    assert site.delete("/v1/exports/quick").status == 204
