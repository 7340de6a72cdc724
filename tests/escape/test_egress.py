"""From inside a sandbox with a list: every road to a host that isn't listed is tried, and none leads anywhere."""
# security: network
import json

import pytest
from harness import Carrel
from origins import configure, make_certificates, origin

LIBRARY = r"""
import errno, json, os, socket, ssl, struct
PLAIN, TLS, SECRET = %d, %d, %d
found = {}

def talk(data, port=3128, address="127.0.0.1"):
    "Everything that comes back."
    with socket.create_connection((address, port), timeout=30) as s:
        s.sendall(data)
        got = b""
        try:
            while len(got) < 65536 and (more := s.recv(4096)):
                got += more
        except OSError:
            pass
        return got

def get(host, path="/closed", target=None, extra=""):
    return f"GET http://{target or host}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{extra}\r\n".encode()

def connect(target):
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode() + get(target).replace(b"http://" + target.encode(), b"")

def is_refused(answer):
    return not answer or answer.split()[1][:1] == b"4"

def attempt(name, function):
    try:
        found[name] = function()
    except OSError as error:
        found[name] = errno.errorcode.get(error.errno, type(error).__name__)

def tls(s, name):
    context = ssl.create_default_context(cafile="/workspace/ca.pem")
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(s, server_hostname=name) as secure:
        secure.sendall(b"GET /closed HTTP/1.1\r\nHost: origin.test\r\nConnection: close\r\n\r\n")
        return bool(secure.recv(100))

def tunnel(name):
    s = socket.create_connection(("127.0.0.1", 3128), timeout=30)
    s.sendall(f"CONNECT origin.test:{TLS} HTTP/1.1\r\nHost: origin.test:{TLS}\r\n\r\n".encode())
    assert b"200" in s.recv(4096)
    return tls(s, name)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    directory = tmp_path_factory.mktemp("egress")
    configure(directory / "carrel")
    carrel = Carrel(directory)
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    with origin() as plain, origin(certificates) as tls, origin() as secret:
        carrel.servers = plain, tls, secret
        options = ("--allow-domain", f"origin.test:{plain.port}", "--allow-domain", f"origin.test:{tls.port}",
                   "-v", f"{certificates}/ca.pem:/workspace/ca.pem:ro")
        library = LIBRARY % (plain.port, tls.port, secret.port)

        def inside(script):
            done = carrel.py(library + script + "\nprint(json.dumps(found))", *options, timeout=180)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)
        carrel.inside = inside
        yield carrel
    assert not [path for server in carrel.servers for _, path in server.requests if path == "/closed"]


def test_the_list_itself_works(site):
    """Or the refusals below would say nothing."""
    found = site.inside("""
attempt("proxy", lambda: talk(get(f"origin.test:{PLAIN}", "/open")).endswith(b"/open\\n"))
attempt("names", lambda: b"/open" in talk(f"GET /open HTTP/1.1\\r\\nHost: origin.test:{PLAIN}\\r\\nConnection: close\\r\\n\\r\\n".encode(), PLAIN, "origin.test"))
""")
    assert found == {"proxy": True, "names": True}


def test_the_proxy_leads_to_no_other_host_in_any_spelling(site):
    found = site.inside("""
hosts = ["other.test", "localhost", "127.0.0.1", "127.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]",
         "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "0.0.0.0", "0", "[::]", "169.254.169.254", "10.0.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1",
         "sandbox", "origin.test.other.test", "xorigin.test", "www.origin.test", "origin.test@127.0.0.1", "origin.test%2f@127.0.0.1", "127.0.0.1#origin.test",
         "origin.test\\\\@127.0.0.1", "127.0.0.1:1@origin.test"]
for host in hosts:
    attempt("get " + host, lambda: is_refused(talk(get(f"{host}:{SECRET}"))))
    attempt("connect " + host, lambda: is_refused(talk(connect(f"{host}:{SECRET}"))))
for port in (SECRET, 22, 25, 0, 65536, 443):
    attempt(f"port {port}", lambda: is_refused(talk(get(f"origin.test:{port}"))))
""")
    assert {name: what for name, what in found.items() if what is not True} == {}


def test_requests_are_judged_one_by_one_and_mean_one_host(site):
    found = site.inside("""
target = f"origin.test:{PLAIN}"
def second():
    first = get(target, "/first").replace(b"Connection: close\\r\\n", b"")
    answer = talk(first + get(f"other.test:{SECRET}"))
    return answer.count(b"HTTP/1.1 200") <= 1
attempt("second request", second)
attempt("host differs", lambda: is_refused(talk(get(f"other.test:{SECRET}", target=target))))
attempt("target differs", lambda: is_refused(talk(get(target, target=f"other.test:{SECRET}"))))
attempt("two hosts", lambda: is_refused(talk(get(target, extra=f"Host: other.test:{SECRET}\\r\\n"))))
attempt("two lengths", lambda: is_refused(talk(get(target, extra="Content-Length: 0\\r\\nContent-Length: 50\\r\\n") + get("x"))))
attempt("both framings", lambda: is_refused(talk(get(target, extra="Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n") + b"0\\r\\n\\r\\n" + get("x"))))
attempt("names", lambda: is_refused(talk(f"GET /closed HTTP/1.1\\r\\nHost: other.test:{SECRET}\\r\\n\\r\\n".encode(), PLAIN, "origin.test")))
""")
    assert {name: what for name, what in found.items() if what is not True} == {}


def test_tls_must_name_the_host(site):
    """By the proxy and by names; a hello without a name is refused."""
    found = site.inside("""
attempt("other name", lambda: tunnel("other.test"))
attempt("below", lambda: tunnel("www.origin.test"))
attempt("no name", lambda: tunnel(None))
attempt("names, other", lambda: tls(socket.create_connection(("origin.test", TLS), timeout=30), "other.test"))
attempt("names, none", lambda: tls(socket.create_connection(("origin.test", TLS), timeout=30), None))
""")
    assert len(found) == 5 and not any(what is True for what in found.values()), found


def test_socks_takes_listed_names_alone(site):
    found = site.inside("""
def socks(kind, address, port):
    with socket.create_connection(("127.0.0.1", 3128), timeout=30) as s:
        s.sendall(b"\\x05\\x01\\x00")
        assert s.recv(2) == b"\\x05\\x00"
        s.sendall(b"\\x05\\x01\\x00" + bytes([kind]) + address + struct.pack("!H", port))
        answer = s.recv(10)
        return not answer or answer[1] != 0
name = lambda text: bytes([len(text)]) + text
attempt("ipv4", lambda: socks(1, socket.inet_aton("127.0.0.1"), SECRET))
attempt("ipv6", lambda: socks(4, socket.inet_pton(socket.AF_INET6, "::1"), SECRET))
attempt("mapped", lambda: socks(4, socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"), SECRET))
attempt("name", lambda: socks(3, name(b"other.test"), SECRET))
attempt("literal", lambda: socks(3, name(b"127.0.0.1"), SECRET))
attempt("nul", lambda: socks(3, name(b"origin.test\\x00.other.test"), PLAIN))
""")
    assert {name: what for name, what in found.items() if what is not True} == {}


def test_no_packet_leaves_and_nothing_is_resolved_outside(site):
    found = site.inside("""
def dial(address, port=80, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind) as s:
        s.settimeout(30)
        s.connect((address, port))
        return "connected"
for address in ("192.0.2.1", "10.0.0.1", "169.254.169.254", "8.8.8.8", "224.0.0.1", "2001:db8::1", "fd00:cb::1", "198.20.0.1"):
    attempt("tcp " + address, lambda: dial(address))
    attempt("udp " + address, lambda: dial(address, 53, socket.SOCK_DGRAM))
attempt("host's loopback", lambda: dial("127.0.0.1", SECRET))
def ask(name, server="127.0.0.1"):
    query = b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00" + b"".join(bytes([len(l)]) + l for l in name.encode().split(b".")) + b"\\x00\\x00\\x01\\x00\\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(30)
        s.sendto(query, (server, 53))
        return s.recv(512)[3] & 15
attempt("listed", lambda: ask("origin.test"))
attempt("unlisted", lambda: ask("secret-data.other.test"))
attempt("below", lambda: ask("secret-data.origin.test"))
attempt("other server", lambda: ask("origin.test", "192.0.2.53"))
""")
    assert found.pop("listed") == 0 and found.pop("unlisted") == 3 and found.pop("below") == 3, found
    assert found.pop("host's loopback") == "ECONNREFUSED"
    # A UDP socket connects where there is a route; there is none.
    assert set(found.values()) == {"ENETUNREACH"}, found


def test_the_sockets_are_out_of_reach(site):
    """They can't be taken, passed on or rebound, and the namespace can't be changed."""
    found = site.inside("""
import fcntl
def bind(port, kind=socket.SOCK_STREAM, address="127.0.0.1"):
    with socket.socket(socket.AF_INET, kind) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen()
        return "bound"
for address in ("127.0.0.1", "0.0.0.0"):
    for port in (3128, 53, 80, 443, PLAIN):
        attempt(f"bind {address}:{port}", lambda: bind(port, address=address))
    attempt(f"udp {address}", lambda: bind(53, socket.SOCK_DGRAM, address))
attempt("synthetic", lambda: bind(443, address="198.18.0.1"))
attempt("/proc/1/fd", lambda: os.listdir("/proc/1/fd"))
def add_route():
    route = struct.pack("BBBBBBBBI", socket.AF_INET, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("HHI", 8, 4, 1)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.send(struct.pack("IHHII", 16 + len(route), 24, 0x405, 1, 0) + route)
        code = struct.unpack("i", s.recv(4096)[16:20])[0]
        raise OSError(-code, "route")
attempt("route", add_route)
def add_address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8916, struct.pack("16sH2x4s24x", b"lo", socket.AF_INET, socket.inet_aton("10.0.0.1")))
    return "set"
attempt("address", add_address)
""")
    assert {found.pop(name) for name in ("/proc/1/fd",)} <= {"EACCES", "EPERM"}
    assert found.pop("route") == "EPERM" and found.pop("address") == "EPERM"
    assert set(found.values()) == {"EADDRINUSE"}, found
