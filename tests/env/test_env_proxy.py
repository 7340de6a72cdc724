"""Builds through the operator's own proxy."""
import json
import subprocess

import pytest
from proxy_server import Proxy
from wheels import wheel

pytestmark = pytest.mark.once     # as another user it says the same

PASSWORD = "pass-word-of-a-proxy"


def test_a_build_goes_through_the_proxy_of_the_host(env, index):
    index.add(wheel("one"))
    with Proxy(credentials=f"me:{PASSWORD}") as proxy:
        found = env.build("agent", "--pip", "one", env={"HTTP_PROXY": f"http://me:{PASSWORD}@{proxy.host}"})
        assert found["installed_packages"] == {"one": "1.0"}
        assert set(proxy.asked) == {index.host} and index.asked_for("one") == 1
    kept = subprocess.run(["grep", "-rlF", PASSWORD, env.store], capture_output=True, text=True)
    assert kept.stdout == ""


def test_hosts_of_no_proxy_are_reached_directly(env, index):
    index.add(wheel("one"))
    with Proxy() as proxy:
        env.build("agent", "--pip", "one", env={"ALL_PROXY": f"http://{proxy.host}", "NO_PROXY": "example.com,127.0.0.1"})
        assert proxy.asked == []


def test_a_proxy_that_refuses_is_named_without_its_credentials(env, index):
    index.add(wheel("one"))
    with Proxy(credentials="other:one") as proxy:
        error = env.fails_in_time("agent", "--pip", "one", seconds=4, code="network", says=[proxy.host, "credentials"],
                          env={"HTTP_PROXY": f"http://me:{PASSWORD}@{proxy.host}"})
        assert PASSWORD not in json.dumps(error)
    with Proxy(answer=b"HTTP/1.1 503 No\r\n\r\n") as proxy:
        env.fails_in_time("agent", "--pip", "one", seconds=4, code="network", says=[proxy.host, "503"],
                  env={"http_proxy": f"http://{proxy.host}"})
    with Proxy(answer=b"HTTP/1.1 200 OK\r\nX: " + b"y" * 9000) as proxy:
        env.fails_in_time("agent", "--pip", "one", seconds=4, code="network", says=[proxy.host, "too long"],
                  env={"http_proxy": f"http://{proxy.host}"})


@pytest.mark.parametrize("address", ["socks5://127.0.0.1:1", "https://127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_an_error_not_passed_by(env, index, address):
    index.add(wheel("one"))
    env.fails("agent", "--pip", "one", code={"invalid", "failed"}, says=["HTTPS_PROXY", "http://"], env={"HTTPS_PROXY": address})
    assert index.requests == []


# ---- credentials of an index

@pytest.fixture
def guarded(index):
    """The index behind a door: 401 without me:PASSWORD."""
    index.add(wheel("one"))
    index.wants("me", PASSWORD)
    return index


def nothing_shows(env, *objects):
    assert PASSWORD not in json.dumps(objects)
    assert subprocess.run(["grep", "-rlF", PASSWORD, env.store], capture_output=True, text=True).stdout == ""


def test_credentials_come_from_netrc(env, guarded, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login me password {PASSWORD}\n")
    tmp_path.chmod(0o755)
    netrc.chmod(0o644)
    found = env.build("agent", "--pip", "one", env={"NETRC": str(netrc)})
    assert found["installed_packages"] == {"one": "1.0"}
    (env.home / ".netrc").write_text(netrc.read_text())
    again = env.build("agent", "--pip", "one", "--rebuild", "--no-cache", env={"HOME": str(env.home)})
    (env.home / ".netrc").unlink()
    assert again["name"] == found["name"]
    netrc.write_text("machine 127.0.0.1 login me password wrong-password\n")
    error = env.fails("other", "--pip", "one", "--no-cache", code={"network", "denied", "not_found", "failed"}, env={"NETRC": str(netrc)})
    nothing_shows(env, found, again, error)
    env.fails("other", "--pip", "one", "--no-cache", code={"invalid", "not_found", "failed"}, says=["NETRC"], env={"NETRC": "/nonexistent"})


def test_credentials_come_from_the_keyring(env, guarded, tmp_path):
    keyring = tmp_path / "bin/keyring"
    keyring.parent.mkdir()
    keyring.write_text(f'#!/bin/sh\n[ "$1 $3" = "get me" ] && case "$2" in http*) exit 1;; 127.0.0.1) echo "{PASSWORD}";; esac\n')
    for path in (tmp_path, keyring.parent, keyring):
        path.chmod(0o755)
    url = guarded.url.replace("://", "://me@")
    how = {"PATH": f"{keyring.parent}:{env.env['PATH']}", "UV_KEYRING_PROVIDER": "subprocess"}
    found = env.build("agent", "--index", url, "--pip", "one", env=how)
    assert found["installed_packages"] == {"one": "1.0"}
    nothing_shows(env, found)
    env.fails("other", "--index", url, "--pip", "one", "--no-cache", code={"network", "denied", "not_found", "failed"},
              env={"PATH": how["PATH"]})


def test_a_user_that_looks_like_an_option_is_not_handed_to_the_keyring(env, guarded, tmp_path):
    """keyring --keyring-path=DIR imports modules from there."""
    keyring, asked = tmp_path / "bin/keyring", tmp_path / "asked"
    keyring.parent.mkdir()
    keyring.write_text(f'#!/bin/sh\necho "$@" >> {asked}; exit 1\n')
    for path in (tmp_path, keyring.parent, keyring):
        path.chmod(0o755)
    how = {"PATH": f"{keyring.parent}:{env.env['PATH']}", "UV_KEYRING_PROVIDER": "subprocess"}
    for user in ("me", "--keyring-path=."):
        env.fails("agent", "--index", guarded.url.replace("://", f"://{user}@"), "--pip", "one", code={"network", "denied", "not_found", "failed"}, env=how)
    assert " me" in asked.read_text() and "--keyring-path" not in asked.read_text()


def test_the_torch_backend_is_uv_s_own(env, index):
    """uv asks for PyTorch's packages where it has them from, through the proxy; all others come from the index."""
    index.add(wheel("one", requires=["torch"]), wheel("torch"))
    with Proxy(answer=b"HTTP/1.1 403 Forbidden\r\n\r\n") as proxy:
        how = {"env": {"HTTPS_PROXY": f"http://{proxy.host}"}}
        plain = env.build("agent", "--pip", "one", **how)
        assert plain["installed_packages"] == {"one": "1.0", "torch": "1.0"} and proxy.asked == []
        env.fails_in_time("agent", "--pip", "one", "--torch-backend", "cpu", seconds=6, code="network", says=[proxy.host, "403"], **how)
        assert len(set(proxy.asked)) == 1 and index.host not in proxy.asked
    error = env.fails("agent", "--pip", "one", "--torch-backend", "cu1", code={"invalid", "failed"})
    assert "cu1" in error["message"]
    env.fails("agent", "--pip", "one", "--torch-backend", "x=y z", code="invalid", says=["--torch-backend"])
