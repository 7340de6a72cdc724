"""A network for builds, and for nothing else: a build reaches its index, code of a source archive reaches nothing."""
# security: packages
import ast
import json
import os
import textwrap

import pytest
from index_server import Index, listening_port
from wheels import sdist, wheel

PROBE = """
    import os, socket, urllib.request
    found = {}
    def attempt(name, function):
        try: found[name] = ('reached', str(function())[:200])
        except BaseException as error: found[name] = ('failed', type(error).__name__)
    def connect(host, port):
        with socket.create_connection((host, port), timeout=3) as s:
            s.sendall(b'GET /probe HTTP/1.0\\r\\n\\r\\n')
            return s.recv(100)
    def connect_proxy(target):
        with socket.create_connection(('127.0.0.1', 3128), timeout=3) as s:
            s.sendall(f'GET http://{target}/probe HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n'.encode())
            answer = s.recv(100)
            if not answer: raise OSError('closed')
            return answer
    attempt('index', lambda: connect('127.0.0.1', INDEX_PORT))
    attempt('other', lambda: connect('127.0.0.1', OTHER_PORT))
    attempt('index by urllib', lambda: urllib.request.urlopen('http://127.0.0.1:INDEX_PORT/simple/probe/', timeout=3).read())
    attempt('index by proxy', lambda: connect_proxy('127.0.0.1:INDEX_PORT'))
    attempt('other by proxy', lambda: connect_proxy('127.0.0.1:OTHER_PORT'))
    attempt('outside', lambda: connect('192.0.2.1', 80))
    attempt('resolver', lambda: socket.getaddrinfo('example.invalid', 80))
    attempt('secret file', lambda: open(SECRET).read())
    attempt('home', lambda: os.listdir(HOME))
    attempt('store', lambda: os.listdir(STORE))
    attempt('secret variable', lambda: os.environ['SECRET_TOKEN'])
    attempt('shadow', lambda: open('/etc/shadow').read())
    attempt('host processes', lambda: [p for p in os.listdir('/proc') if p.isdigit() and '-m\\0pytest\\0' in open(f'/proc/{p}/cmdline').read()][0])
    return found
"""


def probe(env, index, port, secret):
    text = PROBE.replace("INDEX_PORT", str(index.port)).replace("OTHER_PORT", str(port)).replace("SECRET)", f"{str(secret)!r})")
    return textwrap.dedent(text.replace("HOME)", f"{str(env.home)!r})").replace("STORE)", f"{str(env.store)!r})")).replace("\n", "\n    ")


def test_a_build_reaches_nothing(env, index, tmp):
    secret = tmp / "secret"
    secret.write_text("secret")
    with listening_port() as (port, connections):
        index.add(sdist("prober", code=probe(env, index, port, secret)))
        env.build("agent", "--allow-build", "--pip", "prober", env={"SECRET_TOKEN": "s"}, timeout=120)
        assert connections == []
    found = ast.literal_eval(env.python("agent", "import prober; print(prober.FOUND)"))
    assert {name: what for name, what in found.items() if what[0] != "failed"} == {}
    assert not any("probe" in path and "prober" not in path for path in index.requests)


def test_a_build_with_requirements_reaches_nothing_either(env, index, tmp):
    """The forwarder was open to fetch what the build needs; it is closed when the build runs."""
    with listening_port() as (port, connections):
        index.add(wheel("build-tool"), sdist("prober", code=probe(env, index, port, tmp / "x"), build_requires=["build-tool"]))
        env.build("agent", "--allow-build", "--pip", "prober", timeout=120)
        assert connections == []
    found = ast.literal_eval(env.python("agent", "import prober; print(prober.FOUND)"))
    assert {name: what for name, what in found.items() if what[0] != "failed"} == {}
    assert index.asked_for("build-tool") == 1
    assert "build-tool" not in env.show("agent")["installed_packages"]


def test_a_build_does_not_see_other_packages_builds_or_write_outside(env, index):
    """Two sources in one set: neither sees what the other left; nothing of what they write stays but the wheel."""
    code = """    import glob, os
    for place in ('/tmp', '/var/tmp', '/env', '/env/bin', '/workspace', os.getcwd(), '/usr/lib', os.path.expanduser('~')):
        try: open(os.path.join(place, 'LEFT-' + NAME), 'w').write('x')
        except OSError: pass
    return [p for pattern in ('/*/LEFT*', '/*/*/LEFT*', '/*/*/*/LEFT*') for p in glob.glob(pattern) if NAME not in p]
"""
    index.add(sdist("src_one", code=code), sdist("src_two", code=code))
    env.build("agent", "--allow-build", "--pip", "src_one", "--pip", "src_two", timeout=120)
    assert env.python("agent", "import src_one, src_two; print(src_one.FOUND, src_two.FOUND)") == "[] []\n"
    left = [os.path.join(directory, name) for directory, _, names in os.walk(env.store) for name in names if name.startswith("LEFT")]
    assert left == []
    assert env.json("verify", "agent")["ok"]


def test_a_build_that_never_ends_is_ended(env, index):
    index.add(sdist("endless", code="    import time\n    time.sleep(1000)\n"))
    env.configure("environments:\n  install_timeout: 3s\n")
    env.fails("agent", "--allow-build", "--pip", "endless", code="timeout", timeout=180)


def test_a_build_that_leaves_a_process_leaves_none(env, index):
    """The autouse fixture finds it, wherever it went."""
    code = "    import subprocess\n    subprocess.Popen(['sleep', '1000'], start_new_session=True)\n    return 'left'\n"
    index.add(sdist("forker", code=code))
    env.build("agent", "--allow-build", "--pip", "forker", timeout=180)


def test_a_run_has_no_network(env, index):
    index.add(wheel("plain"))
    env.build("agent", "--pip", "plain")
    script = f"import socket\ntry: socket.create_connection(('127.0.0.1', {index.port}), 3); print('reached')\nexcept OSError: print('closed')"
    assert env.python("agent", script) == "closed\n"


def test_what_comes_from_an_index_page_opens_nothing(env, index):
    """A page may name any address for its files; only those the operator named are reached, and loopback is not one."""
    with Index() as other:
        other.add(wheel("lured"))
        index.files_url = f"http://{other.host}"
        index.add(wheel("lured"))
        env.fails("agent", "--pip", "lured", code={"denied", "network"}, timeout=120)
        assert other.requests == []


# ---- where the address comes from

@pytest.mark.parametrize("variable", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"])
def test_the_clients_variables_name_the_index(env, index, variable):
    index.add(wheel("by-variable"))
    env.index = None
    assert env.build("agent", "--pip", "by-variable", env={variable: index.url})["indexes"] == [index.url]


@pytest.mark.parametrize("path, text", [(".config/pip/pip.conf", "[global]\nindex-url = {}\n"), (".config/uv/uv.toml", 'index-url = "{}"\n'),
                                        (".config/uv/uv.toml", '[[index]]\nurl = "{}"\ndefault = true\n'),
                                        ("carrel/config.yaml", "environments:\n  index: {}\n")])
def test_the_clients_files_name_the_index(env, index, path, text):
    index.add(wheel("by-file"))
    file = env.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.format(index.url))
    file.chmod(0o644)
    env.index = None
    assert env.build("agent", "--pip", "by-file")["indexes"] == [index.url]


def test_the_option_comes_first(env, index):
    index.add(wheel("by-option"))
    env.configure("environments:\n  index: http://127.0.0.1:1/simple\n")
    env.build("agent", "--pip", "by-option", env={"UV_DEFAULT_INDEX": "http://127.0.0.1:2/simple"})


def test_a_requirements_file_of_an_agent_can_not_name_an_index(env, index):
    """Also not by a file that uv would look for beside it."""
    index.add(wheel("mine"))
    with Index() as other:
        other.add(wheel("mine", "9.0"))
        (env.home / "uv.toml").write_text(f'index-url = "{other.url}"\n')
        (env.home / "pyproject.toml").write_text(f'[tool.uv]\nindex-url = "{other.url}"\n')
        found = env.build("agent", "-r", env.requirements("mine\n"), cwd=env.home)
        assert found["installed_packages"]["mine"] == "1.0" and other.requests == []


def test_every_build_has_an_audit_record(env, index):
    index.add(wheel("audited"))
    env.build("agent", "--pip", "audited")
    text = json.dumps(env.events())
    assert "audited==1.0" in text
