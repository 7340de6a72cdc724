"""Workspaces with a network: a list that changes, and roles that are killed, while sandboxes go on."""
# security: network
import json
import os
import signal

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from harness import descendants, eventually
from origins import configure, origin
from workspaces import created, sh


@pytest.fixture(scope="module")
def site():
    """A daemon that knows names of two origins."""
    directory = new_directory()
    configure(directory / "carrel")
    try:
        with origin() as first, origin() as second:
            clients = {"PIP_INDEX_URL": f"http://user:hidden@origin.test:{first.port}/simple", "npm_config_registry": f"http://origin.test:{first.port}/npm/"}
            with serving(directory, env=clients) as daemon:
                daemon.first, daemon.second = first, second
                yield daemon
    finally:
        remove(directory)


def egress_pid(site):
    return next((pid for pid, (_, name) in descendants(site.process.pid).items() if name == "carrel-egress"), None)


def get(site, name, target, options="-sS -m 60"):
    return sh(site, name, f"curl {options} http://{target}/x")


def reaches(site, name, target):
    done = get(site, name, target)
    assert (done.returncode, done.stdout) == (0, f"{target} /x\n"), (done.stdout, done.stderr)


def refuses(site, name, target):
    done = get(site, name, target)
    assert done.stdout.startswith(f"carrel: {target} "), (done.stdout, done.stderr)


def patch(site, name, network):
    return site.request("PATCH", f"/v1/workspaces/{name}", {"network": network})


def test_a_list_is_kept_shown_inherited_and_changed(site):
    a, b = f"origin.test:{site.first.port}", f"other.test:{site.second.port}"
    answer = site.post("/v1/workspaces", {"name": "listed", "network": {"allow": [a], "deny": [b]}})
    assert answer.status == 201 and answer.json()["network"] == {"mode": "list", "allow": [a], "deny": [b]}, answer
    reaches(site, "listed", a)
    refuses(site, "listed", b)
    # Records come a moment after the answers.
    counts = lambda: {key: value for key, value in site.get("/v1/workspaces/listed").json()["network"].items() if key in ("refused", "connections", "sent_bytes")}
    assert eventually(lambda: counts().get("sent_bytes") and counts().get("refused")), counts()
    assert counts()["refused"] == 1 and counts()["connections"] == 1, counts()
    assert f"network       list: {a}; denied: {b}\n" in site("info", "listed").stdout
    # Changed while a command runs; in force when the answer is here.
    with site.start("exec", "listed", "--", "sleep", "1000"):
        assert eventually(lambda: site.get("/v1/workspaces/listed").json()["state"] == "running")
        assert patch(site, "listed", {"allow": [b], "deny": []}).status == 200
        reaches(site, "listed", b)
        refuses(site, "listed", a)
        assert patch(site, "listed", {"mode": "none"}).json()["network"]["mode"] == "none"
        assert sh(site, "listed", f"curl -sS -m 60 -x http://127.0.0.1:3128 http://{b}/").stdout.startswith("carrel: ")
        refused = patch(site, "listed", {"allow": ["10.0.0.0/8"]})
        assert refused.status == 400 and "10.0.0.0/8" in refused.json()["detail"], refused
    assert eventually(lambda: site("update", "listed", "--net", "list", "--allow-domain", a).returncode == 0)
    assert site("fork", "listed", "forked").returncode == 0
    assert site.get("/v1/workspaces/forked").json()["network"]["allow"] == [a]
    reaches(site, "forked", a)
    assert site.restart().get("/v1/workspaces/listed").json()["network"]["allow"] == [a]
    reaches(site, "listed", a)
    assert site("rm", "listed", "forked").returncode == 0


def test_without_a_network_one_is_opened_only_while_nothing_runs(site):
    target = f"origin.test:{site.first.port}"
    with created(site) as name:
        done = site("exec", name, "--", "curl", "-sS", f"http://{target}/")
        assert done.returncode == 6 and f"carrel update {name} --allow-domain registries" in done.stderr, done.stderr
        with site.start("exec", name, "--", "sleep", "1000"):
            assert eventually(lambda: site.get(f"/v1/workspaces/{name}").json()["state"] == "running")
            assert patch(site, name, {"mode": "open"}).status == 409
            assert sh(site, name, "ls /etc/resolv.conf").returncode != 0
        assert eventually(lambda: patch(site, name, {"allow": [target]}).status == 200)
        reaches(site, name, target)


def test_an_invalid_network_is_refused_and_named(site):
    cases = [({"mode": "some"}, "network.mode"), ({"allow": ["https://example.com/"]}, "https://example.com/"), ({"allow": ["a*.example.com"]}, "a*.example.com"),
             ({"mode": "none", "allow": ["example.com"]}, "example.com"), ({"deny": ["example.com"]}, "example.com"), ({"deny": ["registries/"]}, "registries/"),
             ({"allow": ["127.1"]}, "127.1"), ({"allow": ["user@example.com"]}, "user@example.com"), ({"allow": "example.com"}, "network.allow")]
    for network, named in cases:
        answer = site.post("/v1/workspaces", {"network": network})
        assert answer.status == 400 and named in answer.json()["detail"], (network, answer)


def test_egress_is_killed_under_load_and_sandboxes_go_on(site):
    """Again and again: tests/fault/test_networks_killed.py."""
    target = f"origin.test:{site.first.port}"
    with created(site, "--allow-domain", target) as name, created(site, "--allow-domain", target) as other:
        reaches(site, name, target)
        reaches(site, other, target)
        load = f"while :; do curl -s -m 60 http://{target}/load >/dev/null && echo ok; done"
        with site.start("exec", name, "--", "sh", "-c", load) as running:
            assert running.stdout.readline() == "ok\n"
            killed = egress_pid(site)
            os.kill(killed, signal.SIGKILL)
            assert eventually(lambda: egress_pid(site) not in (killed, None))
            running.stdout.readline()
            assert running.poll() is None
        reaches(site, other, target)


def test_core_and_the_launcher_are_replaced_and_networks_stay(site):
    target = f"origin.test:{site.first.port}"
    with created(site, "--allow-domain", target) as name:
        reaches(site, name, target)
        before = sh(site, name, "cat /proc/sys/kernel/random/boot_id; echo $$ >/tmp/mark; ls /tmp").stdout
        site.kill_core()
        reaches(site, name, target)
        assert site("serve", "--reload").returncode == 0
        assert eventually(site.is_ready)
        reaches(site, name, target)
        assert "mark" in before and sh(site, name, "ls /tmp").stdout == "mark\n"


@pytest.mark.once
def test_registries_are_those_of_the_daemon_and_come_without_passwords(site):
    target = f"origin.test:{site.first.port}"
    variables = f"http://{target}/simple\nhttp://{target}/npm/\n"
    ask = "echo $PIP_INDEX_URL; echo $npm_config_registry; env | grep hidden"
    with created(site, "--allow-domain", "registries") as name, created(site, "--allow-domain", "a.test") as other:
        assert sh(site, name, ask).stdout == variables
        reaches(site, name, target)
        refuses(site, name, f"other.test:{site.second.port}")
        site.kill_core()
        reaches(site, name, target)
        assert sh(site, name, ask).stdout == variables
        site.kill_core()
        assert sh(site, other, ask).stdout == "\n\n"
        assert site("update", other, "--allow-domain", "registries").returncode == 0
        reaches(site, other, target)
        assert sh(site, other, ask).stdout == variables


def test_templates_give_networks(site):
    target = f"origin.test:{site.first.port}"
    for name, text in (("with-list", f"network: {{allow: ['{target}']}}"), ("open-one", "security: {network_enabled: true}"),
                       ("shut", "security: {network_enabled: false}")):
        yaml = f"name: {name}\n{text}\n"
        assert site("template", "add", "-", input=yaml).returncode == 0
    cases = [(["--template", "with-list"], "list", [target]), (["--template", "with-list", "--net", "none"], "none", []),
             (["--template", "open-one"], "open", []), (["--template", "shut", "--allow-domain", "a.test"], "list", ["a.test"]),
             (["--template", "with-list", "--allow-domain", "a.test"], "list", [target, "a.test"])]
    for options, mode, allow in cases:
        with created(site, *options) as name:
            network = site.get(f"/v1/workspaces/{name}").json()["network"]
            assert (network["mode"], network["allow"]) == (mode, allow), options


def test_decisions_are_counted_and_recorded(site):
    target = f"origin.test:{site.first.port}"
    with created(site, "--allow-domain", target) as name:
        reaches(site, name, target)
        refuses(site, name, f"other.test:{site.second.port}")
        shown = lambda: site.get(f"/v1/workspaces/{name}").json()["network"]
        assert eventually(lambda: shown().get("refused") == 1 and shown().get("received_bytes")), shown()
    metrics = site.get("/metrics").body.decode()
    for key in ("connections", "refused", "received_bytes", "sent_bytes"):
        assert any(line.startswith(f"carrel_egress_{key}_total ") and not line.endswith(" 0") for line in metrics.splitlines()), key
    text = site("audit", "-o", "json").stdout
    assert all(f'"egress.{kind}"' in text for kind in ("opened", "refused", "closed")), text[-2000:]


def test_verify_holds_with_a_list(site):
    with created(site, "--allow-domain", "origin.test") as name:
        assert sh(site, name, "true").returncode == 0
        done = site("verify", name)
        assert done.returncode == 0 and "only lo" in done.stdout, done.stdout


FLOOD = """
import socket, struct, sys
ask = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ask.connect(("127.0.0.1", 53))
ask.settimeout(60)
for i in range(int(sys.argv[1])):
    label = b"n%d" % i
    ask.send(struct.pack(">6H", i, 0x100, 1, 0, 0, 0) + bytes([len(label)]) + label + b"\\x05other\\x04test\\0\\0\\x01\\0\\x01")
    ask.recv(512)
"""


@pytest.mark.once
def test_a_flood_of_refusals_leaves_room_in_the_audit_log(site):
    queries = 3000
    with created(site, "--allow-domain", "origin.test") as name:
        done = site("exec", name, "--", "python3", "-c", FLOOD, str(queries))
        assert done.returncode == 0, done.stderr
        assert sh(site, name, "curl -sS -m 60 http://last.test/").returncode == 0
    found = []

    def is_complete():      # records come a moment after the answers
        lines = map(json.loads, site("audit", "--workspace", name, "-o", "json").stdout.splitlines())
        found[:] = [one for one in lines if one["type"].startswith("egress.")]
        return sum(one["data"].get("left_out", 0) + (one["type"] == "egress.refused") for one in found) == queries + 1
    assert eventually(is_complete) and len(found) < queries, found[-3:]
