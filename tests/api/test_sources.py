"""sources.json and network rules of settings.json bound what sandboxes reach, whatever list or mode they were given."""
# security: policy
import json
import pathlib

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from origins import configure, origin

DATA = pathlib.Path(__file__).parent.parent / "data"
SETTINGS, SOURCES = (json.loads((DATA / name).read_text()) for name in ("settings.json", "sources.json"))


@pytest.fixture(scope="module")
def site():
    """A daemon that knows the names of two origins, both on ports that lists without a port mean."""
    directory = new_directory()
    try:
        with origin() as first, origin() as second:
            configure(directory / "carrel", ports=f"[{first.port}, {second.port}]")
            with serving(directory) as daemon:
                daemon.first, daemon.second = first, second
                yield daemon
    finally:
        remove(directory)


def web(*allowed, **more):
    return {"web_access": {"enabled": True, "allowed_domains": list(allowed), **more}}


def create(site, name, **body):
    answer = site.post("/v1/workspaces", {"name": name, **body})
    assert answer.status == 201, answer
    return answer.json()["network"]


# A program that no rule looks into, unlike curl and its URLs.
CODE = """import sys, urllib.error, urllib.request as u
try:
    answer = u.build_opener(u.ProxyHandler({'http': 'http://127.0.0.1:3128'})).open(sys.argv[1], timeout=60)
except urllib.error.HTTPError as error:
    answer = error
print(answer.read().decode(), end='')
"""


def get(site, name, target):
    return site("exec", name, "--", "python3", "-c", CODE, f"http://{target}/x")


def reaches(site, name, target):
    done = get(site, name, target)
    assert done.stdout == f"{target} /x\n", (done.stdout, done.stderr)


def refuses(site, name, target, why="policy"):
    done = get(site, name, target)
    assert done.stdout.startswith(f"carrel: {target} ") and why in done.stdout, (done.stdout, done.stderr)


def test_web_access_bounds_every_mode_and_changes_at_once(site):
    a, b = f"origin.test:{site.first.port}", f"other.test:{site.second.port}"
    network = create(site, "bound", network={"mode": "open", "allow": [a, b]}, sources=web("origin.test"))
    assert network["mode"] == "open" and network["bounded_by"] == ["sources of the workspace: web_access"]
    reaches(site, "bound", a)
    refuses(site, "bound", b)
    refuses(site, "bound", f"www.{a}")
    assert "bounded by sources of the workspace: web_access" in site("info", "bound").stdout
    assert site.request("PATCH", "/v1/workspaces/bound", {"sources": web("*", blocked_domains=["*.origin.test"])}).status == 200
    reaches(site, "bound", b)
    refuses(site, "bound", f"www.{a}", "denied")
    # Its own list can't be made wider than that.
    assert site.request("PATCH", "/v1/workspaces/bound", {"network": {"allow": [f"www.{a}"]}}).status == 200
    refuses(site, "bound", f"www.{a}", "denied")
    closed = site.request("PATCH", "/v1/workspaces/bound", {"sources": {"web_access": {"enabled": False}}}).json()["network"]
    assert closed["mode"] == "none" and closed["bounded_by"], closed
    assert "refused" in get(site, "bound", a).stderr  # nothing listens
    assert site.restart().get("/v1/workspaces/bound").json()["network"]["mode"] == "none"
    removed = site.request("PATCH", "/v1/workspaces/bound", {"sources": None}).json()["network"]
    assert removed["mode"] == "open" and "bounded_by" not in removed
    assert site("rm", "bound").returncode == 0


def test_without_a_network_of_its_own_a_workspace_reaches_the_domains_of_its_sources(site):
    a, b = f"origin.test:{site.first.port}", f"other.test:{site.second.port}"
    network = create(site, "derived", sources=web("origin.test"))
    assert (network["mode"], network["allow"]) == ("list", ["origin.test"]), network
    reaches(site, "derived", a)
    refuses(site, "derived", b, "may be reached")
    changed = site.request("PATCH", "/v1/workspaces/derived", {"sources": web("other.test")}).json()["network"]
    assert changed["allow"] == ["other.test"], changed
    reaches(site, "derived", b)
    # Nothing was asked for, or the other way round: nothing is to be reached.
    assert create(site, "closed", network={"mode": "none"}, sources=web("origin.test"))["mode"] == "none"
    assert site("rm", "derived", "closed").returncode == 0


def test_network_rules_close_whatever_is_open(site):
    a, b = f"origin.test:{site.first.port}", f"other.test:{site.second.port}"
    rules = {"permissions": {"allow": ["shell(python3:*)"], "deny": ["network(outbound:other.test)"]}}
    network = create(site, "ruled", network={"allow": [a, b]}, settings=rules)
    assert network["bounded_by"] == ["settings of the workspace: network rules"], network
    reaches(site, "ruled", a)
    refuses(site, "ruled", b, "denied")
    # The seed's files: the rule network(outbound:*) closes what its own sources list, and every list.
    for asked in ({}, {"network": {"mode": "open"}}, {"network": {"allow": [a]}}):
        assert create(site, "seed", settings=SETTINGS, sources=SOURCES, **asked)["mode"] == "none"
        assert site("rm", "seed").returncode == 0
    assert create(site, "seed", sources=SOURCES)["allow"] == [name.lower() for name in SOURCES["web_access"]["allowed_domains"]]
    assert site("rm", "seed", "ruled").returncode == 0


@pytest.mark.once
def test_a_connection_to_a_remote_ends_at_its_largest_size(site, tmp_path):
    (tmp_path / "large").write_bytes(bytes(2 << 20))
    with origin(directory=tmp_path) as server:
        sources = {"git": {"allowed_remotes": [f"http://origin.test:{server.port}/*"], "max_clone_size_mb": 1}}
        create(site, "cloned", network={"allow": [f"origin.test:{server.port}"]}, sources=sources)
        done = site("exec", "cloned", "--", "curl", "-s", "-o", "/tmp/x", f"http://origin.test:{server.port}/large")
        assert done.returncode != 0 and "ended after 1 MB, git.max_clone_size_mb" in done.stderr, done
        told = [json.loads(line)["data"] for line in site("audit", "--type", "egress.limited", "-o", "json").stdout.splitlines()]
        assert told[-1]["host"] == "origin.test" and "max_clone_size_mb" in told[-1]["reason"], told
    assert site("rm", "cloned").returncode == 0
