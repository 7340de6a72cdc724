"""What --allow-domain registries allows: the package indexes of this host, with the real clients and the real indexes."""
# security: network
import shutil
import socket

import pytest
from harness import CLIENTS, PATH, Carrel, copy_home
from origins import origin

pytestmark = [pytest.mark.once, pytest.mark.shipped]
CASES = {
    "pip": "pip download -q --no-deps -d /tmp/pip six && ls /tmp/pip | grep -q six-",
    "uv": "/workspace/uv venv -q /tmp/v && VIRTUAL_ENV=/tmp/v /workspace/uv pip install -q --link-mode=copy six && /tmp/v/bin/python -c 'import six'",
    "npm": "mkdir p && cd p && npm install --no-audit --no-fund --silent is-odd@3.0.1 && test -e node_modules/is-odd/package.json",
    "bun": "mkdir p && cd p && echo '{}' >package.json && /workspace/bun add is-odd@3.0.1 && test -e node_modules/is-odd/package.json",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory, template, node_home):
    directory = tmp_path_factory.mktemp("registries")
    copy_home(template[1], directory / "carrel", leave=("run", "audit"))
    carrel = Carrel(directory)
    bun = next((path for path in (node_home / "carrel/layers").glob("*/tree/**/bun") if path.is_file()), None)
    carrel.tools = {"uv": ("-v", f"{template[0]}/uv:/workspace/uv:ro"), "bun": ("-v", f"{bun}:/workspace/bun:ro") if bun else None}
    return carrel


def test_an_index_that_the_operator_configured_may_be_at_a_private_address(site):
    """A host that is only listed may not."""
    host = socket.gethostname()
    try:
        private = socket.gethostbyname(host).startswith(("127.", "10.", "192.168.", "172."))
    except OSError:
        private = False
    if not private:
        pytest.skip("the name of this host is at no private address")
    with origin(address="0.0.0.0") as server:
        url = f"http://{host}:{server.port}"
        done = site.run("--allow-domain", "registries", "--", "curl", "-sS", f"{url}/trusted", env={**CLIENTS, "PIP_INDEX_URL": f"{url}/simple"}, timeout=180)
        assert done.stdout == f"{host}:{server.port} /trusted\n", (done.stdout, done.stderr)
        done = site.run("--allow-domain", f"{host}:{server.port}", "--", "curl", "-sS", f"{url}/listed")
        assert done.stdout.startswith("carrel: ") and "isn't public" in done.stdout, done.stdout
        assert not [path for _, path in server.requests if path == "/listed"]


@pytest.mark.parametrize("client", CASES)
def test_a_client_installs_from_the_registries_and_reaches_nothing_else(site, client):
    options = site.tools.get(client, ())
    if options is None or (client in ("npm", "bun") and not shutil.which("npm", path=PATH)):
        pytest.skip(f"no {client}")
    done = site.sh(f"({CASES[client]}) 2>&1 && ! curl -sf -o /dev/null https://other.test/", "--allow-domain", "registries", "--memory", "4G", *options,
                   timeout=180, env=CLIENTS)
    assert done.returncode == 0, (done.stdout, done.stderr)
