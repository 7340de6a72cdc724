"""carrel run with a network: --net, --allow-domain, --deny-domain."""
# security: network

import json
import os
import shutil
import subprocess

import pytest
from harness import Carrel, descendants, one_line
from origins import configure, make_certificates, origin


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """carrel on a home that knows the names of two origins, one of them with TLS."""
    directory = tmp_path_factory.mktemp("net")
    configure(directory / "carrel")
    carrel = Carrel(directory)
    carrel.certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    with origin() as plain, origin(carrel.certificates) as tls:
        carrel.plain, carrel.tls = plain, tls
        carrel.bind = ("-v", f"{carrel.certificates}/ca.pem:/workspace/ca.pem:ro")
        yield carrel


def allowed(site):
    return ("--allow-domain", f"origin.test:{site.plain.port}", "--allow-domain", f"origin.test:{site.tls.port}")


def test_tools_reach_what_is_listed(site):
    script = f"""set -e
        curl -sS http://origin.test:{site.plain.port}/curl
        curl -sS --cacert /workspace/ca.pem https://origin.test:{site.tls.port}/curl
        curl -sS --cacert /workspace/ca.pem --socks5-hostname 127.0.0.1:3128 https://origin.test:{site.tls.port}/socks
        wget -q -O - http://origin.test:{site.plain.port}/wget
        wget -q -O - --ca-certificate=/workspace/ca.pem https://origin.test:{site.tls.port}/wget
        SSL_CERT_FILE=/workspace/ca.pem python3 -c "
import urllib.request
for url in ('http://origin.test:{site.plain.port}/python', 'https://origin.test:{site.tls.port}/python'):
    print(urllib.request.urlopen(url, timeout=60).read().decode(), end='')"
        """
    done = site.sh(script, *allowed(site), *site.bind)
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["/curl", "/curl", "/socks", "/wget", "/wget", "/python", "/python"]


def test_what_is_refused_is_named_when_the_command_failed(site):
    done = site.sh(f"curl -sSf http://other.test:{site.plain.port}/", "--allow-domain", "origin.test")
    assert done.returncode == 22
    assert f"refused: other.test:{site.plain.port}; allow it with --allow-domain other.test:{site.plain.port}" in done.stderr
    done = site.sh("curl -sSf https://other.test/; exit 1", "--allow-domain", "origin.test")
    assert "allow it with --allow-domain other.test\n" in done.stderr
    done = site.sh(f"curl -sS http://other.test:{site.plain.port}/", "--allow-domain", "origin.test")
    assert done.returncode == 0 and "hint" not in done.stderr


def test_the_result_counts_what_was_reached(site):
    target = f"origin.test:{site.plain.port}"
    result = site.sh_json(f"curl -s http://{target}/ http://other.test/", "--allow-domain", target)
    network = result["network"]
    assert (network["mode"], network["connections"], network["refused"], network["last_refused"]) == ("list", 1, 1, "other.test:80"), network
    assert network["received_bytes"] > 100 and network["sent_bytes"] > 50
    assert "network" not in site.sh_json("true")


def test_open_reaches_names_but_no_private_addresses(site):
    target, address = f"origin.test:{site.plain.port}", f"127.0.0.1:{site.plain.port}"
    done = site.sh(f"curl -sS http://{target}/ok; ! curl -s --noproxy '*' http://{address}/closed && ! curl -s --noproxy '*' http://198.18.77.1:{site.plain.port}/closed",
                   "--net", "open", "--allow-domain", target)
    assert (done.returncode, done.stdout) == (0, f"{target} /ok\n"), (done.stdout, done.stderr)
    done = site.sh(f"curl -sS -x http://127.0.0.1:3128 --noproxy '' http://{address}/closed", "--net", "open")
    assert done.stdout.startswith("carrel: "), done.stdout
    assert not [path for _, path in site.plain.requests if path == "/closed"]


def test_deny_wins(site):
    target = f"origin.test:{site.plain.port}"
    done = site.sh(f"curl -sS http://{target}/", "--net", "open", "--allow-domain", target, "--deny-domain", "origin.test")
    assert done.stdout.startswith("carrel: ")


def test_bad_options_are_one_line(site):
    for options, named in [
            (["--net", "some"], "some"), (["--allow-domain", "https://a.test/"], "https://a.test/"), (["--allow-domain", "a*.test"], "a*.test"),
            (["--deny-domain", "a.test"], "a.test"), (["--net", "none", "--allow-domain", "a.test"], "a.test"), (["--allow-domain", ""], "--allow-domain")]:
        done = site.run(*options, "--", "true")
        assert done.returncode == 125, options
        one_line(done.stderr.splitlines()[0] + "\n", named)


def test_the_plan_says_what_listens(site):
    done = site.run("--plan", "--allow-domain", "origin.test:8443", "--", "true")
    assert '"network": "list"' in done.stdout and '"port": 8443' in done.stdout and "nameserver 127.0.0.1" in done.stdout


@pytest.mark.once
def test_without_a_network_clients_fail_at_once_and_are_told_why(site):
    done = site.sh("pip download --no-deps six 2>&1; curl https://origin.test/")
    assert done.returncode == 6 and "this sandbox has no network: --allow-domain registries" in done.stderr, done.stderr
    assert "Retrying" not in done.stdout
    assert "hint" not in site.sh("exit 1").stderr and "hint" not in site.sh("git status").stderr
    assert "hint" not in site.sh("/nowhere/uvx thing").stderr      # no network brings a program that isn't there


def test_policies_bound_what_is_asked_for(site, tmp_path):
    a, b = f"origin.test:{site.plain.port}", f"other.test:{site.plain.port}"
    script = f"import socket\nfor host in ('origin.test', 'other.test'):\n    try: print(socket.create_connection((host, {site.plain.port}), 60) and host)\n    except OSError: pass"
    sources, settings = tmp_path / "sources.json", tmp_path / "settings.json"
    settings.write_text('{"permissions": {"allow": ["shell(*)"], "deny": ["network(outbound:*)"]}}')
    asked = ("--allow-domain", a, "--allow-domain", b)
    for text, reached in (('{"web_access": {"allowed_domains": ["origin.test"]}}', "origin.test\n"),
                          ('{"web_access": {"allowed_domains": ["*"], "blocked_domains": ["origin.test"]}}', "other.test\n"),
                          ('{"web_access": {"enabled": false}}', "")):
        sources.write_text(text)
        done = site.run(*asked, "--sources", sources, "--", "python3", "-c", script)
        assert done.stdout == reached, (text, done)
    done = site.run(*asked, "--net", "open", "-s", settings, "--", "python3", "-c", script)
    assert done.stdout == "", done


def test_the_egress_role_is_started_by_the_first_connection(site):
    target = f"origin.test:{site.plain.port}"
    script = f"echo up; read go; curl -sS http://{target}/one; read go; curl -sS http://{target}/two; read go"
    with site.start("run", "--allow-domain", target, "--", "sh", "-c", script, stdin=subprocess.PIPE) as process:
        seen = []
        for _ in range(3):
            line = process.stdout.readline().strip()
            seen.append((line, [pid for pid, (_, name) in descendants(process.pid).items() if name == "carrel-egress"]))
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.wait(120) == 0, process.stderr.read()
    role = seen[1][1]
    assert len(role) == 1 and not os.path.exists(f"/proc/{role[0]}"), seen
    assert seen == [("up", []), (f"{target} /one", role), (f"{target} /two", role)]


def test_a_role_that_cannot_start_closes_the_network_and_is_named(site, tmp_path):
    """The program is there, but can't be executed: the start of the command doesn't depend on it."""
    broken = Carrel(site.home)
    broken.path = shutil.copy(os.path.realpath(site.path), tmp_path / "carrel")
    (tmp_path / "carrel-build").write_bytes(b"\x7fELF")
    (tmp_path / "carrel-build").chmod(0o755)
    target = f"origin.test:{site.plain.port}"
    assert broken.run("--allow-domain", target, "--", "true").stderr == ""
    done = broken.sh(f"! curl -s http://{target}/broken", "--allow-domain", target)
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 1, done
    assert f"warning: the network of the command: start '{tmp_path}/carrel-build': " in done.stderr, done
    assert not [path for _, path in site.plain.requests if path == "/broken"]


ASK_PROXY = """
import socket, sys
for target in sys.argv[1:]:
    with socket.create_connection(("127.0.0.1", 3128), 60) as s:
        host = target.split("/")[2]
        s.sendall(f"GET {target} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode())
        print(target, "closed" if s.recv(4096).split()[1] == b"403" else "open")
"""


def test_policy_check_answers_as_the_network_of_a_sandbox_does(site):
    port = site.plain.port
    listed = [f"origin.test:{port}", "10.0.0.5", f"127.0.0.1:{port}", f"[::1]:{port}", "169.254.169.254", "localhost", "localhost.localdomain",
              f"a.localhost:{port}", "100.64.0.1:80"]
    targets = {f"http://origin.test:{port}/": "open", f"http://other.test:{port}/": "closed", "http://origin.test:1/": "closed",
               "http://10.0.0.5/": "closed", f"http://127.0.0.1:{port}/": "closed", f"http://[::1]:{port}/": "closed",
               "http://169.254.169.254/": "closed", "http://localhost/": "closed", "http://localhost.localdomain/": "closed",
               f"http://a.localhost:{port}/": "closed", "http://100.64.0.1/": "closed"}
    for allow in (listed, [*listed, "*"]):
        options = [word for entry in allow for word in ("--allow-domain", entry)]
        done = site.run(*options, "--", "python3", "-c", ASK_PROXY, *targets)
        assert dict(line.split() for line in done.stdout.splitlines()) == targets, done
        asked = "".join(json.dumps({"allow": allow, "target": target}) + "\n" for target in targets)
        done = site("policy", "check", "--stream", input=asked)
        assert dict(zip(targets, done.stdout.split())) == targets, done
