"""Environments of deployments: which index they are built from, when they are built, and when they are reused."""
import contextlib
import http.server
import json
import pathlib
import shutil
import ssl
import subprocess
import threading

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from harness import CARREL, PATH, copy_home, eventually
from index_server import Index
from origins import make_certificates, origin
from packages_made import SERVER, make
from rest import Events
from rollouts import clean, deploy, left, wait  # noqa: F401
from wheels import wheel

pytestmark = [pytest.mark.shipped, pytest.mark.once]
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
    with building(template, "environments:\n  allow_options: true\n  blocked_packages: [blocked]\negress:\n  hosts:\n    origin.test: 127.0.0.1\n") as daemon:
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


def package(*requirements, more=None, version="1.0.0"):
    """A new one each time: what it has beside its requirements differs."""
    return make({"agent.yaml": f"name: greeter\nversion: {version}\nrest: {{command: python3 src/server.py}}\n",
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
    """rebuildVenv makes it again with the same versions, skipVenvCache with the newest; both replace it."""
    clean.index.add(wheel("moving", "1.0"))
    data = package("moving")
    first = venv(clean, data)
    assert first["cached"] is False
    assert venv(clean, data) == {**first, "cached": True}
    clean.index.add(wheel("moving", "1.1"))
    again = venv(clean, data, rebuildVenv=True)
    assert again["cached"] is False and again["created_at"] > first["created_at"]
    assert again["name"] == first["name"] and again["installed_packages"] == {"moving": "1.0"}
    newest = venv(clean, data, skipVenvCache=True)
    assert newest["cached"] is False and newest["name"] == first["name"] and newest["installed_packages"] == {"moving": "1.1"}
    assert venv(clean, data) == {**newest, "cached": True}


def test_a_warm_set_is_cached_at_the_first_deployment(clean, tmp_path):
    clean.index.add(wheel("warmed", "1.0"))
    (tmp_path / "requirements.txt").write_text("warmed\n")
    done = subprocess.run([CARREL, "env", "warm", tmp_path / "requirements.txt"], env=clean.env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("warmup_"), done.stderr
    asked = len(clean.index.requests)
    made = venv(clean, package("warmed"))
    assert made["cached"] is True and made["installed_packages"] == {"warmed": "1.0"} and made["name"].startswith("greeter@1.0.0_")
    assert len(clean.index.requests) == asked


class Held(http.server.BaseHTTPRequestHandler):
    """Answers with server.package when the test says so."""

    def do_GET(self):
        self.server.requests.append(self.path)
        self.server.freed.wait()
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.package)))
        self.end_headers()
        self.wfile.write(self.server.package)

    def log_message(self, *args):
        pass


@pytest.fixture
def held(daemon):
    with origin(handler=Held) as server:
        server.freed = threading.Event()
        try:
            yield server
        finally:
            server.freed.set()
            daemon.index.behave()


def fetch(daemon, server, version, data, **body):
    """Begins the deployment of a package that is on its way: the server has been asked for it."""
    server.package = data
    url = f"http://origin.test:{server.port}/{version}"
    answer = daemon.post("/v1/deployments", {"agentAppId": "greeter", "version": version, "packageUrl": url, "forceRefresh": True, **body})
    assert answer.status == 200, answer
    assert eventually(lambda: server.requests)


def environments(daemon):
    return daemon.get("/v1/environments?limit=100").json()["items"]


def pages(daemon, name):
    return list(daemon.index.requests).count(f"/simple/{name}/")


def statuses(events, revision):
    """Of that rollout, up to its end."""
    came = []
    for event in events:
        if event["event"] == "deployment.status" and event["data"]["revision"] == revision:
            came.append(event["data"]["status"])
            if came[-1] in ("healthy", "failed"):
                return came


def test_an_environment_is_built_while_the_package_downloads(clean, held):
    first = venv(clean, package("usual"))
    events = Events(clean, "/v1/events")
    fetch(clean, held, "2.0.0", package("usual", version="2.0.0"))
    name = first["name"].replace("1.0.0", "2.0.0")
    assert eventually(lambda: name in [one["name"] for one in environments(clean)])
    assert clean.get("/v1/deployments/greeter").json()["rollout"]["status"] == "downloading"
    held.freed.set()
    made = wait(clean, "greeter")["venv"]
    assert made["name"] == name and made["installed_packages"] == {"usual": "1.0"}
    assert statuses(events, 2) == ["downloading", "building_env", "starting", "healthy"]
    events.close()


def test_other_requirements_of_the_downloaded_package_count(clean, held):
    """The build for those of the version before, which waits for the index, is ended."""
    clean.index.add(wheel("stuck", "1.0"))
    venv(clean, package("stuck"))
    clean.index.misbehave("/simple/stuck", "held")
    asked = pages(clean, "stuck")
    events = Events(clean, "/v1/events")
    fetch(clean, held, "2.0.0", package("common", version="2.0.0"), skipVenvCache=True)
    assert eventually(lambda: pages(clean, "stuck") > asked)
    assert clean.get("/v1/deployments/greeter").json()["rollout"]["status"] == "downloading"
    held.freed.set()
    made = wait(clean, "greeter")["venv"]
    assert made["installed_packages"] == {"common": "1.0"} and made["cached"] is False
    came = statuses(events, 2)
    assert [one for one in came if one != "installing_deps"] == ["downloading", "building_env", "starting", "healthy"]
    events.close()
    assert not [one for one in environments(clean) if one["package_id"] == "greeter@2.0.0" and "stuck" in one["installed_packages"]]


def test_a_removal_ends_the_download_and_the_build(clean, held):
    clean.index.add(wheel("waiting", "1.0"))
    venv(clean, package("waiting"))
    clean.index.misbehave("/simple/waiting", "held")
    asked = pages(clean, "waiting")
    fetch(clean, held, "2.0.0", package("waiting", version="2.0.0"), skipVenvCache=True)
    assert eventually(lambda: pages(clean, "waiting") > asked)
    assert clean.delete("/v1/deployments/greeter").status == 204
    assert eventually(lambda: not left(clean))


def test_force_refresh_unpacks_again_and_keeps_the_environment(clean):
    data = package("usual")
    venv(clean, data)
    before = layers(clean)
    assert venv(clean, data)["cached"] is True and layers(clean) == before and len(before) == 1
    assert venv(clean, data, forceRefresh=True)["cached"] is True
    assert len(layers(clean) - before) == 1


def alter(daemon, name, package, line):
    """An appended line in the layer of an environment."""
    store = daemon.home / "carrel" if (daemon.home / "carrel").is_dir() else daemon.home
    for layer in json.loads((store / "envs" / name / "meta.json").read_text())["layers"]:
        for path in (store / "layers" / layer).glob(f"tree/lib/python3*/site-packages/{package}.py"):
            path.chmod(0o644)
            path.write_text(path.read_text() + line)
            return path
    raise AssertionError(name)


IMPORTS = {"src/server.py": "import usual\nassert usual.VERSION == '1.0'\n" + SERVER}


@pytest.mark.parametrize("flag", ["rebuildVenv", "skipVenvCache", "forceRefresh"])
def test_each_flag_finds_a_layer_that_was_altered_and_builds_it_again(clean, flag):
    data = package("usual", more=IMPORTS)
    name = venv(clean, data)["name"]
    path = alter(clean, name, "usual", "VERSION = 'altered'\n")
    shown = deploy(clean, data, **{flag: True})
    assert exec_in(clean, shown, "python3", "-c", "import usual; print(usual.VERSION)")["stdout"] == "1.0\n"
    assert "altered" not in path.read_text() and [one["restarts"] for one in shown["surfaces"]] == [0]


def test_a_start_that_fails_by_an_altered_layer_heals_it(clean):
    data = package("usual", more=IMPORTS)
    name = venv(clean, data)["name"]
    path = alter(clean, name, "usual", "raise ImportError('altered')\n")
    shown = deploy(clean, package("usual", more=IMPORTS))
    assert "altered" not in path.read_text()
    assert exec_in(clean, shown, "python3", "-c", "import usual; print(usual.VERSION)")["stdout"] == "1.0\n"
    # What is the package's own fault stays so, with the environment whole.
    shown = deploy(clean, package("usual", more={"src/server.py": "import missing_module\n"}), status="failed")
    assert "has ended 3 times" in shown["error"], shown


def exec_in(daemon, shown, *argv):
    return daemon.post(f"/v1/workspaces/{shown['surfaces'][0]['workspace']}/exec", {"argv": argv}).json()


def test_a_deployed_environment_is_a_virtualenv(clean):
    shown = deploy(clean, package("usual==1.0"))
    done = exec_in(clean, shown, "python3", "-c", "import sys, usual; print(sys.prefix, sys.executable, usual.VERSION)")
    assert done["stdout"] == "/env /env/bin/python3 1.0\n", done
    assert shown["venv"]["path"] == "/env" and shown["venv"]["python_version"].startswith("3.")


def test_other_requirements_are_another_environment(clean):
    first = venv(clean, package("usual==1.0"))
    second = venv(clean, package("usual==1.0", "common"))
    assert first["name"] != second["name"] and first["requirements_sha256"] != second["requirements_sha256"]
    assert second["installed_packages"] == {"common": "1.0", "usual": "1.0"}


@pytest.mark.parametrize("requirements, words", [(["nowhere-to-be-found"], "nowhere-to-be-found"), (["common==9"], "common"),
                                                 (["common==1.0", "common==2.0"], "common")])
def test_a_failed_build_names_the_package(clean, requirements, words):
    shown = deploy(clean, package(*requirements), status="failed")
    assert words in shown["error"] and "build the environment" in shown["error"], shown
    eventually(lambda: not left(clean))


def test_a_wrong_hash_fails_the_rollout(clean):
    shown = deploy(clean, package(f"usual==1.0 --hash=sha256:{'0' * 64}"), status="failed")
    assert "hash" in shown["error"] and "usual" in shown["error"], shown


def test_a_blocked_package_is_refused(clean):
    shown = deploy(clean, package("blocked"), status="failed")
    assert "blocked" in shown["error"], shown


def test_a_damaged_environment_is_built_again(clean):
    clean.index.add(wheel("fragile", "1.0"))
    data = package("fragile")
    name = venv(clean, data)["name"]
    assert clean.delete("/v1/deployments/greeter").status == 204
    assert eventually(lambda: not left(clean))
    done = subprocess.run([CARREL, "env", "show", name, "-o", "json"], env=clean.env, capture_output=True, text=True)
    shutil.rmtree(pathlib.Path(clean.env["CARREL_HOME"], "layers", json.loads(done.stdout)["layers"][0]))
    shown = deploy(clean, data)
    assert shown["venv"]["cached"] is False and shown["venv"]["name"] == name
    assert exec_in(clean, shown, "python3", "-c", "import fragile; print(fragile.VERSION)")["stdout"] == "1.0\n"


def test_an_environment_in_use_is_not_evicted(clean):
    name = venv(clean, package("usual==1.0"))["name"]
    for words in (["env", "rm", name], ["env", "prune", "--all"]):
        subprocess.run([CARREL, *words], env=clean.env, capture_output=True)
        assert name in [one["name"] for one in environments(clean)]
    assert clean.get("/v1/deployments/greeter/rest/").status == 200


def test_the_command_line_sends_what_rest_takes(clean, tmp_path):
    clean.index.add(wheel("typed", "1.0"))
    (tmp_path / "src").mkdir()
    for name, text in {"agent.yaml": "name: greeter\nversion: 1.0.0\nrest: {command: python3 src/server.py}\n", "requirements.txt": "common\ntyped\n",
                       "src/server.py": SERVER}.items():
        (tmp_path / name).write_text(text)
    settings = tmp_path.with_name("settings.json")

    def run(*options):
        return subprocess.run([CARREL, "deploy", tmp_path, *options], env=clean.env, capture_output=True, text=True)
    settings.write_text('{"permissions": {"allow": ["shell(*)"], "deny": ["shell(python3:*)"]}}')
    done = run("-s", settings)
    assert done.returncode == 125 and "shell(python3:*)" in done.stderr, done.stderr
    settings.write_text('{"permissions": {"allow": ["shell(python3:*)"]}}')
    assert run("-s", settings, "--extra-index", clean.other.url).returncode == 0
    assert clean.get("/v1/deployments/greeter").json()["venv"]["installed_packages"] == {"common": "2.0", "typed": "1.0"}
    clean.index.add(wheel("typed", "1.1"))
    before = layers(clean)
    assert run("--no-cache", "--refresh").returncode == 0
    assert clean.get("/v1/deployments/greeter").json()["venv"]["installed_packages"] == {"common": "1.0", "typed": "1.1"}
    assert layers(clean) - before
