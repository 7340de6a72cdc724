"""A list for programs that know no proxy: a resolver inside, and addresses that stand for names."""
# security: network
import shutil
import textwrap

import pytest
from harness import Carrel
from origins import configure, make_certificates, origin

# What tells programs of the proxy.
BARE = "unset HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy;"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """carrel on a home that knows the names of two origins, one of them with TLS."""
    directory = tmp_path_factory.mktemp("names")
    configure(directory / "carrel")
    carrel = Carrel(directory)
    carrel.certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    with origin() as plain, origin(carrel.certificates) as tls:
        carrel.http, carrel.https = plain.port, tls.port
        carrel.requests = plain.requests
        carrel.options = ["-v", f"{carrel.certificates}/ca.pem:/workspace/ca.pem:ro"]
        for name in ("origin.test", "www.origin.test"):
            carrel.options += ["--allow-domain", f"{name}:{plain.port}", "--allow-domain", f"{name}:{tls.port}"]
        yield carrel


def sh(site, script):
    done = site.sh(BARE + textwrap.dedent(script), *site.options)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def py(site, script):
    return sh(site, f"python3 -c '{textwrap.dedent(script)}'")


def test_clients_without_a_proxy_reach_what_is_listed(site):
    reached = sh(site, f"""
        set -e
        curl -sS http://origin.test:{site.http}/curl
        curl -sS --cacert ca.pem https://origin.test:{site.https}/curl
        wget -q -O - --ca-certificate=ca.pem https://www.origin.test:{site.https}/wget
        export SSL_CERT_FILE=$PWD/ca.pem
        python3 -c 'import urllib.request; print(urllib.request.urlopen("https://origin.test:{site.https}/python").read().decode(), end="")'
    """)
    assert reached.split() == [f"origin.test:{site.http}", "/curl", f"origin.test:{site.https}", "/curl", f"www.origin.test:{site.https}",
                               "/wget", f"origin.test:{site.https}", "/python"]


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_node_fetches_without_a_proxy(site):
    reached = sh(site, f"""
        export NODE_EXTRA_CA_CERTS=$PWD/ca.pem
        cat >fetch.mjs <<'END'
        import http from "node:http";
        console.log((await (await fetch("https://origin.test:{site.https}/fetch")).text()).trim());
        http.get("http://origin.test:{site.http}/get", answer => answer.pipe(process.stdout));
        END
        node fetch.mjs
    """)
    assert reached == f"origin.test:{site.https} /fetch\norigin.test:{site.http} /get\n"


@pytest.mark.skipif(not shutil.which("java"), reason="no java")
@pytest.mark.once
@pytest.mark.shipped
def test_java_connects_without_a_proxy(site):
    """HTTP and TLS, by the IPv4 stack alone."""
    reached = sh(site, f"""
        cat >Get.java <<'END'
        public class Get {{
            public static void main(String[] a) throws Exception {{
                var trusted = java.security.KeyStore.getInstance("PKCS12");
                trusted.load(null, null);
                try (var file = new java.io.FileInputStream("ca.pem")) {{
                    trusted.setCertificateEntry("ca", java.security.cert.CertificateFactory.getInstance("X.509").generateCertificate(file));
                }}
                var managers = javax.net.ssl.TrustManagerFactory.getInstance("PKIX");
                managers.init(trusted);
                var context = javax.net.ssl.SSLContext.getInstance("TLS");
                context.init(null, managers.getTrustManagers(), null);
                javax.net.ssl.HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
                for (String url : a)
                    System.out.print(new String(new java.net.URL(url).openStream().readAllBytes()));
            }}
        }}
        END
        java -Xmx256m -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true Get.java http://origin.test:{site.http}/java https://origin.test:{site.https}/java
    """)
    assert reached == f"origin.test:{site.http} /java\norigin.test:{site.https} /java\n"


def test_resolvers_that_look_for_an_address_of_the_machine_find_names(site):
    """AI_ADDRCONFIG with one family: loopback counts for nothing there. IPv4 comes first."""
    assert py(site, """
        import socket
        def ask(family, flags):
            return socket.getaddrinfo("origin.test", 80, family, socket.SOCK_STREAM, 0, flags)[0][4][0]
        print(ask(socket.AF_INET, socket.AI_ADDRCONFIG), ask(0, socket.AI_ADDRCONFIG), ask(0, 0))
        try: print(ask(socket.AF_INET6, socket.AI_ADDRCONFIG))
        except socket.gaierror: print("no IPv6" if not socket.has_ipv6 else "nothing")
    """).split("\n")[:2] in [["198.18.0.1 198.18.0.1 198.18.0.1", word] for word in ("fd00:ca::1", "no IPv6")]
    if shutil.which("node"):
        assert sh(site, """
            node -e 'const dns = require("dns"); dns.lookup("origin.test", {family: 4, hints: dns.ADDRCONFIG}, (e, address) => console.log(e, address))'
        """) == "null 198.18.0.1\n"
    assert sh(site, f"curl -4 -sS http://origin.test:{site.http}/four") == f"origin.test:{site.http} /four\n"


def test_other_names_do_not_exist_and_no_query_goes_out(site):
    assert py(site, """
        import socket, time
        for name in ("other.test", "origin.test.evil.test", "localhost.evil", "test", "x" * 60 + ".test"):
            try: print(socket.getaddrinfo(name, 80))
            except socket.gaierror as e: print(e.errno == socket.EAI_NONAME)
        print(socket.getaddrinfo("origin.test", 80, socket.AF_INET)[0][4][0].startswith("198.18."))
        # Nothing leads out but what listens here.
        for address in ("8.8.8.8", "192.0.2.1"):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                try: s.sendto(b"x", (address, 53))
                except OSError as e: print(e.strerror)
    """).splitlines() == ["True"] * 6 + ["Network is unreachable"] * 2


def test_what_is_said_must_be_for_the_name_of_the_address(site):
    assert py(site, f"""
        import socket, ssl
        def dial(host, port):
            return socket.create_connection((host, port), timeout=60)
        context = ssl.create_default_context(cafile="ca.pem")
        def tls(name, sni):
            try:
                with context.wrap_socket(dial(name, {site.https}), server_hostname=sni): return "connected"
            except ssl.SSLError as e: return "alert" if "ALERT" in str(e).upper() else str(e)
            except OSError as e: return "closed"
        print(tls("origin.test", "origin.test"), tls("origin.test", "www.origin.test"), tls("origin.test", "other.test"))
        context.check_hostname = False
        print(tls("origin.test", None))
        def get(s, host):
            s.sendall(f"GET /mixed HTTP/1.1\\r\\nHost: {{host}}:{site.http}\\r\\n\\r\\n".encode())
            text = b""
            while not text.partition(b"\\r\\n\\r\\n")[2].endswith(b"\\n") and (piece := s.recv(65536)): text += piece
            return text[:12].decode()
        with dial("origin.test", {site.http}) as s:
            print(get(s, "origin.test"), get(s, "origin.test"), get(s, "www.origin.test")[:10])
        with dial("origin.test", {site.http}) as s:
            s.sendall(b"HELO there\\r\\n")
            print("other protocols pass on a port that the rule names")
        for host in ("198.19.0.77", "127.0.0.1"):
            try:
                with dial(host, {site.http}) as s: print(s.recv(1))
            except ConnectionError: print(b"")
    """).splitlines() == ["connected alert alert", "alert", "HTTP/1.1 200 HTTP/1.1 200 HTTP/1.1 4",
                          "other protocols pass on a port that the rule names", "b''", "b''"]
    assert {host for host, path in site.requests if path == "/mixed"} == {f"origin.test:{site.http}"}


@pytest.mark.once
def test_a_query_over_tcp_and_other_types(site):
    assert py(site, """
        import socket, struct
        def ask(name, kind):
            q = struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + bytes(1) + struct.pack("!HH", kind, 1)
            with socket.create_connection(("127.0.0.1", 53), timeout=60) as s:
                s.sendall(struct.pack("!H", len(q)) + q)
                answer = s.recv(4096)[2:]
            return answer[3] & 15, struct.unpack("!H", answer[6:8])[0]
        print(ask("origin.test", 1), ask("origin.test", 15), ask("origin.test", 65), ask("other.test", 1), ask("other.test", 16))
    """).strip() == "(0, 1) (0, 0) (0, 0) (3, 0) (3, 0)"
