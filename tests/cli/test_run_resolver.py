"""Names that a real name server answers: what it says decides no more than which public address is connected to."""
# security: network
import shutil
import subprocess
import threading

import pytest
from harness import Carrel
from origins import origin
from resolvers import A, AAAA, Network, name_server

pytestmark = [pytest.mark.needs_root, pytest.mark.skipif(not shutil.which("ip"), reason="no ip")]

PUBLIC, OWN, RANGED, PRIVATE, METADATA = "1.2.3.4", "1.2.4.1", "10.7.0.1", "10.8.0.1", "169.254.169.254"
# What a name has as (A, AAAA); a name that isn't here doesn't exist.
ADDRESSES = {
    "public.test": ([PUBLIC], []), "own.test": ([OWN], []), "ranged.test": ([RANGED], []), "private.test": ([PRIVATE], []),
    "loopback.test": (["127.0.0.1"], ["::1"]), "metadata.test": ([METADATA], []), "none.test": ([], []), "zero.test": (["0.0.0.0"], ["::"]),
    "alias.test": (["private.test", PRIVATE], ["private.test"]), "good-alias.test": (["public.test", PUBLIC], ["public.test"]),
    "mixed.test": (["127.0.0.1", PRIVATE, OWN, PUBLIC, METADATA], ["::1"]), "unlisted-alias.test": (["secret.test", PUBLIC], ["secret.test"]),
    "mapped.test": ([], ["::ffff:127.0.0.1", "::ffff:10.8.0.1"]), "nat64.test": ([], ["64:ff9b::7f00:1", "64:ff9b::a08:1", "64:ff9b:1::a08:1"]),
    "sixtofour.test": ([], ["2002:7f00:1::1"]), "unique.test": ([], ["fd00:1::1"]), "linked.test": ([], ["fe80::1"]),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """carrel in a network with a name server, and origins on all addresses, on one port."""
    directory = tmp_path_factory.mktemp("resolver")
    (directory / "carrel").mkdir()
    (directory / "carrel/config.yaml").write_text("egress:\n  allow_ranges: [10.7.0.0/16]\n")
    network = Network(directory, near=[RANGED, PRIVATE, METADATA, OWN], far=[PUBLIC])
    carrel = Carrel(directory)
    carrel.silence, carrel.rebound = threading.Event(), []

    def answers(name, kind):
        if kind not in (A, AAAA):
            return []
        if name.endswith(".search.test"):
            return [PUBLIC] if kind == A else []
        if name.endswith("silent.test"):
            return carrel.silence
        if name.endswith("rebind.test"):
            if kind == AAAA:
                return []
            carrel.rebound.append(name)
            return [[RANGED], ["127.0.0.1"]][carrel.rebound.count(name) > 1]
        found = ADDRESSES.get(name)
        return found and found[kind == AAAA]
    with name_server(network, "127.0.0.1", answers) as carrel.server, network.inside(origin(address="0.0.0.0")) as carrel.origin, \
            network.inside(origin(address="0.0.0.0", port=carrel.origin.port), network.call_far):
        network.resolve_by(carrel.server)
        carrel.network = network
        yield carrel
        carrel.silence.set()
    network.close()
    assert not [path for _, path in carrel.origin.requests if path == "/closed"]


def sh(site, script, *names):
    """What it prints. The hosts are listed with the origin's port, which is $PORT."""
    listed = [word for name in names for word in ("--allow-domain", f"{name}:{site.origin.port}")]
    done = site.network.call(site.sh, f"PORT={site.origin.port}\n{script}", *listed)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def get(name, path="/closed", options=""):
    return f"curl -sS -m 60 {options} http://{name}:$PORT{path} 2>&1\n"


BARE = "-x '' --noproxy '*'"


def test_public_addresses_and_ranges_of_the_operator_are_reached(site):
    names = ("public.test", "ranged.test", "good-alias.test", "mixed.test")
    reached = sh(site, "".join(get(name, "/open") + get(name, "/open", BARE) for name in names), *names)
    assert reached.splitlines() == [f"{name}:{site.origin.port} /open" for name in names for _ in range(2)]


def test_other_addresses_are_refused_whatever_the_record(site):
    names = ("own.test", "private.test", "loopback.test", "metadata.test", "zero.test", "alias.test", "mapped.test", "nat64.test", "sixtofour.test", "unique.test", "linked.test")
    answers = sh(site, "".join(get(name) for name in names), *names).splitlines()
    assert answers == [f"carrel: {name}:{site.origin.port} is at an address that isn't public" for name in names]


def test_a_name_without_an_address_says_so(site):
    answers = sh(site, get("none.test") + get("missing.test"), "none.test", "missing.test").splitlines()
    assert [line.split(" ", 2)[1] for line in answers] == [f"{name}:{site.origin.port}" for name in ("none.test", "missing.test")], answers
    assert all("can't be resolved" in line for line in answers), answers


def test_no_search_domain_makes_another_name_of_it(site):
    """One that has an answer for everything."""
    site.network.resolve_by(site.server, options="ndots:5", search="search.test")
    try:
        answers = sh(site, get("none.test") + get("missing.test") + get("public.test", "/open"), "none.test", "missing.test", "public.test").splitlines()
    finally:
        site.network.resolve_by(site.server)
    assert ["can't be resolved" in line for line in answers] == [True, True, False], answers
    assert not [name for name, _ in site.server.asked if name.endswith("search.test")]


def test_the_target_of_an_alias_is_no_name_that_a_client_may_ask_for(site):
    answers = sh(site, get("unlisted-alias.test", "/open") + get("secret.test"), "unlisted-alias.test").splitlines()
    assert answers[0] == f"unlisted-alias.test:{site.origin.port} /open" and answers[1].startswith("carrel: secret.test"), answers


def test_a_name_that_is_bound_anew_leads_nowhere_else(site):
    """Resolved once for a connection, and judged each time that it is resolved."""
    first = sh(site, get("rebind.test", "/open") + get("rebind.test", "/open", BARE) + get("rebind.test", "/open"), "rebind.test")
    assert first == f"rebind.test:{site.origin.port} /open\n" * 3
    assert site.rebound == ["rebind.test"]
    assert sh(site, get("rebind.test"), "rebind.test") == f"carrel: rebind.test:{site.origin.port} is at an address that isn't public\n"
    assert site.rebound == ["rebind.test"] * 2


def test_a_silent_server_holds_up_nobody_else(site):
    """Twenty names that it says nothing of, more than one sandbox resolves at once; each ends with an error that says why."""
    names = [f"n{i}.silent.test" for i in range(20)]
    script = "".join(f"curl -sS -m 100 http://{name}:$PORT/closed >{name} 2>&1 & " for name in names) + f"""
        {get("public.test", "/open")}
        wait; cat n*.silent.test"""
    lines = sh(site, script, "public.test", *names).splitlines()
    assert lines[0] == f"public.test:{site.origin.port} /open", lines
    errors = [line for line in lines[1:] if line]
    assert len(errors) == 20 and all("can't be resolved" in line or "no response in time" in line for line in errors), errors


def test_the_name_servers_are_those_of_the_moment(site):
    """resolv.conf changes while the role runs."""
    other = lambda name, kind: [PUBLIC] if kind == A else []
    script = f"""
        {get("later.test", "/open")}
        echo; read line
        {get("later.test", "/open")}"""
    with name_server(site.network, "127.0.0.2", other) as second:
        try:
            start = site.start("run", "--allow-domain", f"later.test:{site.origin.port}", "-i", "--", "sh", "-c", f"PORT={site.origin.port}\n{script}", stdin=subprocess.PIPE)
            with site.network.inside(start) as running:
                assert "can't be resolved" in running.stdout.readline()
                running.stdout.readline()
                site.network.resolve_by(second)
                assert running.communicate("\n", timeout=100)[0] == f"later.test:{site.origin.port} /open\n"
        finally:
            site.network.resolve_by(site.server)
