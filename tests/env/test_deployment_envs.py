"""Environments of deployments: which index they are built from, and when they are reused."""
import contextlib
import ssl

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from harness import PATH, copy_home, eventually
from index_server import Index
from origins import make_certificates
from packages_made import SERVER, make
from rollouts import clean, deploy, left  # noqa: F401
from wheels import wheel

pytestmark = pytest.mark.shipped
COUNT = iter(range(1000))


@contextlib.contextmanager
def building(template, config):
    """A daemon that builds from `index`; `other`, and `tls` with a certificate that no host trusts, have to be named."""
    directory = new_directory()
    copy_home(template[1], directory / "carrel")
    (directory / "carrel/config.yaml").write_text(config)
    try:
        with Index() as index, Index() as other:
            index.add(wheel("common", "1.0"), wheel("usual", "1.0"))
            other.add(wheel("common", "2.0"), wheel("special", "3.0"))
            env = {"PATH": f"{template[0]}:{PATH}", "UV_DEFAULT_INDEX": index.url, "PIP_INDEX_URL": index.url}
            with serving(directory, env=env) as daemon:
                daemon.index, daemon.other = index, other
                yield daemon
    finally:
        remove(directory)


@pytest.fixture(scope="module")
def daemon(template):
    with building(template, "environments:\n  allow_options: true\n") as daemon:
        yield daemon


@pytest.fixture
def tls(tmp_path):
    certificates = make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    index = Index()
    index.url, index.files_url = f"https://{index.host}/simple", f"https://{index.host}"
    index.server.socket = context.wrap_socket(index.server.socket, server_side=True, do_handshake_on_connect=False)
    with index:
        index.add(wheel("secret", "4.0"))
        yield index


def package(*requirements, more=None):
    """A new one each time: what it has beside its requirements differs."""
    return make({"agent.yaml": "name: greeter\nversion: 1.0.0\nrest: {command: python3 src/server.py}\n",
                 "requirements.txt": "".join(f"{one}\n" for one in requirements), "src/server.py": SERVER, "number": str(next(COUNT)), **(more or {})})


def venv(daemon, data, **body):
    return deploy(daemon, data, **body)["venv"]


def test_pip_index_url_replaces_the_index(clean):
    made = venv(clean, package("common"), pipIndexUrl=clean.other.url)
    assert made["installed_packages"] == {"common": "2.0"}
    assert clean.index.asked_for("common") == 0 and clean.other.asked_for("common") > 0


def test_pip_extra_index_url_is_asked_first(clean):
    made = venv(clean, package("common", "special", "usual"), pipExtraIndexUrl=clean.other.url)
    assert made["installed_packages"] == {"common": "2.0", "special": "3.0", "usual": "1.0"}


def test_pip_trusted_host_needs_no_known_certificate(clean, tls):
    shown = deploy(clean, package("secret"), status="failed", pipIndexUrl=tls.url)
    assert "certificate" in shown["error"], shown
    assert eventually(lambda: not left(clean))
    made = venv(clean, package("secret"), pipIndexUrl=tls.url, pipTrustedHost=tls.host)
    assert made["installed_packages"] == {"secret": "4.0"}


@pytest.mark.parametrize("field, value", [("pipIndexUrl", "http://127.0.0.1:1/simple --pre"), ("pipExtraIndexUrl", "http://a\n-r x"),
                                          ("pipTrustedHost", "a b")])
def test_a_field_is_one_word(daemon, field, value):
    answer = daemon.post("/v1/deployments", {"agentAppId": "greeter", "version": "1.0.0", field: value})
    assert answer.status == 400 and field.encode() in answer.body and b"blank or control" in answer.body, answer


def test_operators_forbid_other_indexes(template):
    """As long as config.yaml doesn't allow them."""
    with building(template, "") as daemon:
        for field, value in (("pipIndexUrl", daemon.other.url), ("pipExtraIndexUrl", daemon.other.url), ("pipTrustedHost", "127.0.0.1")):
            shown = deploy(daemon, package("common"), status="failed", **{field: value})
            assert field in shown["error"] and "allow_options" in shown["error"], shown
            assert eventually(lambda: not left(daemon))
        assert daemon.other.requests == []


def layers(daemon):
    return {one["id"] for one in left(daemon) if one["labels"]["carrel.role"] == "package"}


def test_an_environment_is_reused_unless_the_request_says_otherwise(clean):
    data = package("usual==1.0")
    first = venv(clean, data)
    assert first["cached"] is False
    again = venv(clean, data)
    assert again == {**first, "cached": True}
    for flag in ("rebuildVenv", "skipVenvCache"):
        made = venv(clean, data, **{flag: True})
        assert made["cached"] is False and made["created_at"] > again["created_at"] and made["name"] == first["name"]
        again = made
    assert venv(clean, data) == {**again, "cached": True}


def test_force_refresh_unpacks_again_and_keeps_the_environment(clean):
    data = package("usual")
    venv(clean, data)
    before = layers(clean)
    assert venv(clean, data)["cached"] is True and layers(clean) == before and len(before) == 1
    assert venv(clean, data, forceRefresh=True)["cached"] is True
    assert len(layers(clean) - before) == 1


def test_a_prebuilt_environment_is_ignored(clean):
    """It is a file of the package like others: the environment is that of requirements.txt."""
    made = venv(clean, package("usual", more={"package.venv.tar.gz": "not even an archive"}))
    assert made["installed_packages"] == {"usual": "1.0"}
    workspace = clean.get("/v1/deployments/greeter").json()["surfaces"][0]["workspace"]
    assert clean.get(f"/v1/workspaces/{workspace}/files/package.venv.tar.gz").body == b"not even an archive"
