"""Packages that a deployment fetches from a URL, by a program in a workspace that reaches that host alone."""
# security: services
import http.server
import threading

import pytest
from daemons import new_directory, remove, serving
from harness import eventually
from origins import configure, make_certificates, origin, trusting
from packages_made import plain, sha256
from rollouts import clean, deploy, left  # noqa: F401


class Odd(http.server.BaseHTTPRequestHandler):
    """/away leads to another host; anything else is answered when the test is over."""

    def do_GET(self):
        self.server.requests.append(self.path)
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", f"http://other.test:{self.server.port}/greeter.apkg")
            self.end_headers()
        else:
            self.server.over.wait()

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A daemon that knows the names of two origins, one of them with a certificate that no host trusts."""
    directory, files = new_directory(), tmp_path_factory.mktemp("files")
    (files / "greeter.apkg").write_bytes(plain())
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    try:
        with origin(directory=files) as site, origin(certificates, directory=files) as tls, origin(handler=Odd) as odd:
            odd.over = threading.Event()
            configure(directory / "carrel")
            with serving(directory) as daemon:
                daemon.files, daemon.tls = files, f"https://origin.test:{tls.port}"
                daemon.site, daemon.odd = f"http://origin.test:{site.port}", odd
                daemon.redirect = f"http://origin.test:{odd.port}/away"
                yield daemon
                odd.over.set()
    finally:
        remove(directory)


@pytest.fixture
def no_packages(clean):
    yield clean
    for one in packages(clean):
        assert clean.delete(f"/v1/packages/{one}").status == 204


def packages(daemon):
    return [one["name"] for one in daemon.get("/v1/packages").json()["items"]]


def test_a_package_is_fetched_checked_and_cached(no_packages):
    daemon = no_packages
    url = f"{daemon.site}/greeter.apkg"
    shown = deploy(daemon, packageUrl=url, sha256=sha256(plain()))
    assert shown["packageUrl"] == url and shown["sha256"] == sha256(plain())
    assert daemon.get("/v1/deployments/greeter/rest/").body == b"hello / 1.0.0"
    assert packages(daemon) == ["greeter@1.0.0"]
    assert daemon.get("/v1/packages/greeter@1.0.0").body == plain()
    # The workspace of the download is gone: what is left is the layer and the surface.
    assert eventually(lambda: {one["labels"]["carrel.role"] for one in left(daemon)} == {"package", "rest"})


def test_the_command_line_names_a_url_or_a_stored_package(no_packages, tmp_path):
    daemon, url = no_packages, f"{no_packages.site}/greeter.apkg"
    refused = daemon("deploy", "greeter@1.0.0", "--url", url, "--sha256", "0" * 64)
    assert refused.returncode == 125 and "SHA-256" in refused.stderr, refused
    assert packages(daemon) == []
    done = daemon("deploy", "greeter@1.0.0", "--url", url, "--sha256", sha256(plain()))
    assert done.returncode == 0 and "healthy" in done.stdout, done
    assert packages(daemon) == ["greeter@1.0.0"]
    done = daemon("deploy", "blob:greeter@1.0.0", "--name", "second")
    assert done.returncode == 0 and "second" in done.stdout, done
    path = tmp_path / "greeter.apkg"
    path.write_bytes(plain())
    for words, why in (["blob:greeter"], "not NAME@VERSION"), (["greeter", "--url", url], "not NAME@VERSION"), \
            (["blob:greeter@9"], "greeter@9"), (["blob:greeter@1.0.0", "--url", url], "stored already"), \
            ([path, "--sha256", "0" * 64], f"its SHA-256 is {sha256(plain())}"):
        refused = daemon("deploy", *words)
        assert refused.returncode == 125 and why in refused.stderr, refused


def test_what_is_cached_is_fetched_again_only_when_asked(no_packages):
    daemon = no_packages
    url, path = f"{daemon.site}/changing.apkg", daemon.files / "changing.apkg"
    first, second = plain(), plain(server="print('second')\n" + plain.__defaults__[3])
    path.write_bytes(first)
    assert deploy(daemon, packageUrl=url)["sha256"] == sha256(first)
    path.write_bytes(second)
    assert deploy(daemon, packageUrl=url)["sha256"] == sha256(first)
    assert deploy(daemon, packageUrl=url, sha256=sha256(second))["sha256"] == sha256(second)
    assert daemon.get("/v1/packages/greeter@1.0.0").body == second
    path.write_bytes(first)
    assert deploy(daemon, packageUrl=url, forceRefresh=True)["sha256"] == sha256(first)
    assert daemon.get("/v1/packages/greeter@1.0.0").body == first


@pytest.mark.parametrize("url, more, words", [
    ("{site}/nothing.apkg", {}, "HTTP Error 404"),
    ("{site}/greeter.apkg", {"sha256": "0" * 64}, "SHA-256"),
    ("{tls}/greeter.apkg", {}, "CERTIFICATE_VERIFY_FAILED"),
    ("http://nowhere.test/greeter.apkg", {}, "nowhere.test"),
    ("{redirect}", {}, "other.test"),
])
def test_a_fetch_that_fails_says_why_and_leaves_nothing(no_packages, url, more, words):
    daemon = no_packages
    shown = deploy(daemon, status="failed", packageUrl=url.format(site=daemon.site, tls=daemon.tls, redirect=daemon.redirect), **more)
    assert words in shown["error"], shown
    assert eventually(lambda: not left(daemon))
    assert packages(daemon) == []
    assert "/greeter.apkg" not in daemon.odd.requests


def test_a_download_under_way_ends_with_its_deployment(no_packages):
    daemon = no_packages
    url = f"http://origin.test:{daemon.odd.port}/slow"
    answer = daemon.post("/v1/deployments", {"agentAppId": "greeter", "version": "1.0.0", "packageUrl": url})
    assert answer.status == 201 and answer.json()["status"] == "downloading"
    assert eventually(lambda: "/slow" in daemon.odd.requests)
    assert [one["labels"]["carrel.role"] for one in left(daemon)] == ["download"]
    assert daemon.delete("/v1/deployments/greeter").status == 204
    assert eventually(lambda: not left(daemon))
    # Its name is free again.
    assert deploy(daemon, packageUrl=f"{daemon.site}/greeter.apkg")["revision"] == 1


@pytest.mark.parametrize("url, words", [
    ("http:///greeter.apkg", "no valid host"),
    ("http://a b/greeter.apkg", "blank"),
    ("https://user:hidden@origin.test/greeter.apkg", "user name or password"),
    ("ftp://origin.test/greeter.apkg", "neither blob:NAME nor a URL"),
    ("greeter.apkg", "neither blob:NAME nor a URL"),
])
def test_an_invalid_url_is_refused(daemon, url, words):
    answer = daemon.post("/v1/deployments", {"agentAppId": "greeter", "version": "1.0.0", "packageUrl": url})
    assert answer.status == 400 and words.encode() in answer.body and b"hidden" not in answer.body, answer
    assert daemon.get("/v1/deployments").json()["items"] == []


def test_a_download_that_a_kill_of_core_cuts_begins_again(no_packages):
    daemon = no_packages
    url = f"http://origin.test:{daemon.odd.port}/cut"
    assert daemon.post("/v1/deployments", {"agentAppId": "greeter", "version": "1.0.0", "packageUrl": url}).status == 201
    assert eventually(lambda: daemon.odd.requests.count("/cut") == 1)
    before, = left(daemon)
    daemon.kill_core()
    assert eventually(lambda: daemon.odd.requests.count("/cut") == 2)
    assert eventually(lambda: len(left(daemon)) == 1)
    assert left(daemon)[0]["id"] != before["id"]
    assert daemon.get("/v1/deployments/greeter").json()["status"] == "downloading"


@pytest.mark.shipped
@pytest.mark.needs_root
def test_a_package_is_fetched_by_https_from_a_host_that_the_system_trusts(tmp_path, tmp_path_factory):
    """The operator's authority is among the certificates of the host, here in a mount namespace of the daemon's own."""
    directory, certificates, others = new_directory(), make_certificates(tmp_path_factory.mktemp("own")), make_certificates(tmp_path_factory.mktemp("others"))
    program = trusting(directory, certificates)
    (tmp_path / "greeter.apkg").write_bytes(plain())
    configure(directory / "carrel")
    try:
        with origin(certificates, directory=tmp_path) as own, origin(others, directory=tmp_path) as other, serving(directory, program=program) as daemon:
            url = f"https://origin.test:{other.port}/greeter.apkg"
            shown = deploy(daemon, packageUrl=url, status="failed")
            assert "CERTIFICATE_VERIFY_FAILED" in shown["error"] and url in shown["error"], shown
            shown = deploy(daemon, packageUrl=f"https://origin.test:{own.port}/greeter.apkg", sha256=sha256(plain()))
            assert shown["sha256"] == sha256(plain()) and daemon.get("/v1/deployments/greeter/rest/").status == 200
            assert packages(daemon) == ["greeter@1.0.0"]
            assert daemon.delete("/v1/deployments/greeter").status == 204 and eventually(lambda: not left(daemon))
    finally:
        remove(directory)
