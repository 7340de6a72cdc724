"""The front door: commands over TCP and TLS beside a spawn, and TLS beside nginx with the same key."""

import contextlib
import json
import os
import re
import resource
import shutil
import socket
import ssl
import statistics
import subprocess
import threading
import time

import daemon
import measure
from measure import Failed, Quiet, Runner, Who, say
from report import machine, table, verdict
from stats import ratio

ROUNDS, CALLS = 60, 10
HANDSHAKE_SECONDS, HANDSHAKE_ROUNDS = 3, 5
UPLOAD_BYTES, UPLOAD_ROUNDS, IDLE = 2 << 30, 3, 5000
ABOUT = f"""\
### How it is measured

`bench/run --only door`. Commands: `/bin/true` in one workspace, on one kept connection each by unix socket, TCP and TLS 1.3 on the loopback;
{CALLS} of each in every one of {ROUNDS} rounds, in turn with vforks and execs of the same program; a Python program sends the bytes. CPU of core: the time that it ran meanwhile, by its schedstat. Handshakes:
`openssl s_time -new` for {HANDSHAKE_SECONDS} s each, in turn with nginx (one worker, the same certificate and key), {HANDSHAKE_ROUNDS} times. Upload:
`curl -T` of one file of 2 GiB over TLS into a workspace, in turn with nginx's PUT (dav) to the same disk, {UPLOAD_ROUNDS} times; each file is removed before the next.
Memory: the largest sum of anonymous memory of all processes of the daemon (launcher, core, writer, audit, egress), looked at every 50 ms during an
upload. Idle connections: anonymous memory of core after and before, each connection having asked once. In brackets 95 % of bootstrap resamples of
rounds."""

NGINX = """\
worker_processes 1; daemon off; error_log {place}/error.log; pid {place}/pid;
{user}
events {{ worker_connections 1024; }}
http {{
    access_log off; client_body_temp_path {place}/body; proxy_temp_path {place}/p; fastcgi_temp_path {place}/f;
    uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
    server {{
        listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_session_cache off; ssl_session_tickets on;
        ssl_protocols TLSv1.2 TLSv1.3;
        location / {{ root {place}/files; dav_methods PUT; client_max_body_size 0; }}
    }}
}}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Kept:
    """A connection that sends the same request again and again."""

    def __init__(self, sock, request):
        self.sock, self.request = sock, request

    def call(self):
        self.sock.sendall(self.request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.sock.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        while len(body) < length:
            body += self.sock.recv(65536)
        if not head.startswith(b"HTTP/1.1 200"):
            raise Failed(f"exec: {head[:100]!r} {body[:200]!r}")


class Served:
    """Daemons that listen on a unix socket and by plain TCP or by TLS; one of them for idle connections alone."""

    def __init__(self, who, carrel, directory, stack):
        self.files = {name: os.path.join(directory, "tls", f"{name}.pem") for name in ("ca", "server", "server-key")}
        subprocess.run([carrel, "tls", "init", os.path.join(directory, "tls")], check=True, stdout=subprocess.DEVNULL)
        self.context = ssl.create_default_context(cafile=self.files["ca"])
        self.daemons, self.tokens, self.ports, self.workspaces = {}, {}, {}, {}
        for kind in ("tcp", "tls", "idle"):
            config = "serve:\n  connections: 20000\n"
            first = daemon.Daemon(who, carrel, kind, config=config)
            status, body = first.connection.call("POST", "/v1/tokens", {})
            first.stop()
            if status != 201:
                raise Failed(f"token: {status}")
            self.tokens[kind], self.ports[kind] = json.loads(body)["text"], free_port()
            options = ["--listen", f"127.0.0.1:{self.ports[kind]}"]
            if kind != "tcp":
                options += ["--tls-cert", self.files["server"], "--tls-key", self.files["server-key"]]
            self.daemons[kind] = daemon.Daemon(who, carrel, kind, options)
            stack.callback(self.daemons[kind].stop)
            self.workspaces[kind] = self.daemons[kind].create(limits={"disk_bytes": 4 << 30})

    def connect(self, kind):
        sock = socket.create_connection(("127.0.0.1", self.ports[kind]))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context.wrap_socket(sock, server_hostname="127.0.0.1") if kind != "tcp" else sock

    def kept(self, kind):
        body = b'{"argv":["/bin/true"]}'
        to = "tcp" if kind == "unix" else kind
        if kind == "unix":
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(self.daemons[to].socket)
        else:
            sock = self.connect(kind)
        head = (f"POST /v1/workspaces/{self.workspaces[to]}/exec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {self.tokens[to]}\r\nContent-Length: {len(body)}\r\n\r\n")
        return Kept(sock, head.encode() + body)


def cpu_ms(pid):
    """What the process has used so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) * 1000 / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def nginx(directory, files):
    """(its port, the pid of its worker)"""
    place, port = os.path.join(directory, "nginx"), free_port()
    os.makedirs(os.path.join(place, "files"))
    path = os.path.join(place, "nginx.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(NGINX.format(place=place, port=port, certificate=files["server"], key=files["server-key"],
                                user="user root;" if os.geteuid() == 0 else ""))
    with subprocess.Popen(["nginx", "-c", path, "-p", place], stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 10
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                if time.monotonic() > deadline or process.poll() is not None:
                    raise Failed("nginx does not come up")
                time.sleep(0.05)
            yield port, measure.descendants(process.pid)[0]
        finally:
            process.terminate()
            process.wait(30)


def run_ns(pid):
    """The time that the process has run so far, as exact as the scheduler counts it."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def measure_commands(served, spawn, rounds):
    """({kind: {round: ns of a command}}, {kind: ns that core ran for one})"""
    times = {name: {} for name in ("spawn", "unix", "tcp", "tls")}
    cores = {kind: served.daemons["tcp" if kind == "unix" else kind].core() for kind in ("unix", "tcp", "tls")}
    used = dict.fromkeys(cores, 0)
    kept = {kind: served.kept(kind) for kind in ("unix", "tcp", "tls")}
    for number in range(-2, rounds):
        for name in times:
            ran = run_ns(cores[name]) if name in cores else 0
            before = time.perf_counter_ns()
            for _ in range(CALLS):
                if name == "spawn":
                    break
                kept[name].call()
            took = (time.perf_counter_ns() - before) / CALLS
            if name == "spawn":
                took = sum(daemon.command(spawn, ["/bin/true"]) for _ in range(CALLS)) / CALLS
            if number >= 0:
                times[name][number] = took
                if name in cores:
                    used[name] += run_ns(cores[name]) - ran
    return times, {name: ns / rounds / CALLS for name, ns in used.items()}


def handshakes(port, pid, ca, seconds):
    """(how many a second, ms of CPU of the server for one)"""
    before = cpu_ms(pid)
    done = subprocess.run(["openssl", "s_time", "-connect", f"127.0.0.1:{port}", "-new", "-time", str(seconds), "-CAfile", ca],
                          capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"(\d+) connections in (\d+) real seconds", done.stdout)
    if not found:
        raise Failed(f"openssl s_time: {done.stdout[-200:]} {done.stderr[-200:]}")
    return int(found[1]) / int(found[2]), (cpu_ms(pid) - before) / int(found[1])


def upload(url, path, ca, *words):
    """Bytes a second."""
    done = subprocess.run(["curl", "-sS", "--cacert", ca, "-T", path, "-o", "/dev/null", "-w", "%{http_code} %{speed_upload}", *words, url],
                          capture_output=True, text=True, check=False, timeout=600)
    status, _, speed = done.stdout.partition(" ")
    if status not in ("201", "204"):
        raise Failed(f"upload: {done.stdout} {done.stderr}")
    return float(speed)


@contextlib.contextmanager
def watched(pids):
    """The most memory that the processes have together meanwhile, in bytes, as the only item of a list."""
    most, is_over = [0], threading.Event()

    def look():
        while not is_over.wait(0.05):
            most[0] = max(most[0], 1024 * sum(daemon.anonymous_kb(pid) for pid in pids))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        is_over.set()
        thread.join()


def measure_uploads(served, port, worker, path, stored, rounds):
    """({round: bytes a second}, the same by nginx, bytes of the daemon's memory, {server: s of CPU for each GB})"""
    url = f"https://127.0.0.1:{served.ports['tls']}/v1/workspaces/{served.workspaces['tls']}/files/upload"
    bearer, ca, mine, other, most = f"Authorization: Bearer {served.tokens['tls']}", served.files["ca"], {}, {}, 0
    core, used, sent = served.daemons["tls"].core(), {"carrel": 0, "nginx": 0}, rounds * os.path.getsize(path)
    for number in range(rounds):
        begun = cpu_ms(core), cpu_ms(worker)
        with watched([served.daemons["tls"].process.pid, *(pid for pid, _ in served.daemons["tls"].roles())]) as seen:
            mine[number] = upload(url, path, ca, "-H", bearer)
        most = max(most, seen[0])
        subprocess.run(["curl", "-sS", "--cacert", ca, "-H", bearer, "-X", "DELETE", url], check=True, stdout=subprocess.DEVNULL)
        other[number] = upload(f"https://127.0.0.1:{port}/upload", path, ca)
        os.remove(stored)
        used["carrel"] += cpu_ms(core) - begun[0]
        used["nginx"] += cpu_ms(worker) - begun[1]
    return mine, other, most, {name: ms * 1e6 / sent for name, ms in used.items()}


def measure_idle(served, count):
    """Bytes of core for each idle TLS connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 500), hard))
    core, connections = served.daemons["idle"].core(), []
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + served.tokens["idle"].encode() + b"\r\n\r\n"
    try:
        before = daemon.anonymous_kb(core)
        for _ in range(count):
            connections.append(served.connect("idle"))
            connections[-1].sendall(request)
            if not connections[-1].recv(4096).startswith(b"HTTP/1.1 200"):
                raise Failed("an idle connection was refused")
        return (daemon.anonymous_kb(core) - before) * 1024 / count
    finally:
        for one in connections:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def measure_all(tools, directory, short):
    """(text of the section, list of what could not be measured)"""
    quiet, problems, goals, rows = Quiet(), [], [], []
    who = Who("this user", os.getuid(), os.getgid(), os.path.join(directory, "home"))
    os.makedirs(who.directory, exist_ok=True)
    with contextlib.ExitStack() as stack:
        served = Served(who, tools["carrel"], directory, stack)
        spawn = Runner(tools["spawn"], who)
        stack.callback(spawn.close)
        say("bench: commands over TCP and TLS")
        quiet.wait()
        times, used = measure_commands(served, spawn, 8 if short else ROUNDS)
        for kind, most in (("tcp", 1.4), ("tls", 1.5)):
            middle, low, high = ratio(times[kind], times["spawn"])
            goals.append([f"command over {kind.upper()} / vfork+exec", f"<= {most}", f"{middle:.2f} ({low:.2f}-{high:.2f})", verdict(middle, most)])
        rows += [[f"command: {name}", f"{sorted(found.values())[len(found) // 2] / 1000:.0f} µs"] for name, found in times.items()]
        rows += [[f"CPU of core for a command: {name}", f"{ns / 1000:.0f} µs"] for name, ns in used.items()]
        if not shutil.which("nginx"):
            problems.append("nginx is missing")
        else:
            port, worker = stack.enter_context(nginx(directory, served.files))
            say("bench: handshakes and an upload beside nginx")
            quiet.wait()
            found = {"carrel": {}, "nginx": {}}
            for number in range(2 if short else HANDSHAKE_ROUNDS):
                for name, at, pid in (("carrel", served.ports["tls"], served.daemons["tls"].core()), ("nginx", port, worker)):
                    found[name][number] = handshakes(at, pid, served.files["ca"], HANDSHAKE_SECONDS)
            rates, costs = ({name: {number: pair[which] for number, pair in some.items()} for name, some in found.items()} for which in (0, 1))
            middle, low, high = ratio(rates["carrel"], rates["nginx"])
            goals.append(["TLS handshakes a second / nginx", ">= 0.7", f"{middle:.2f} ({low:.2f}-{high:.2f})", "met" if middle >= 0.7 else "MISSED"])
            rows += [[f"handshakes a second: {name}", f"{statistics.median(some.values()):.0f}"] for name, some in rates.items()]
            rows += [[f"CPU of the server for a handshake: {name}", f"{statistics.median(some.values()):.2f} ms"] for name, some in costs.items()]
            path = os.path.join(directory, "upload")
            with open(path, "wb") as file:
                for _ in range((UPLOAD_BYTES >> (5 if short else 0)) >> 20):
                    file.write(os.urandom(1 << 20))
            mine, other, most, used = measure_uploads(served, port, worker, path, os.path.join(directory, "nginx/files/upload"),
                                                      1 if short else UPLOAD_ROUNDS)
            middle, low, high = ratio(mine, other)
            goals.append(["upload over TLS / nginx dav", ">= 0.7", f"{middle:.2f} ({low:.2f}-{high:.2f})", "met" if middle >= 0.7 else "MISSED"])
            goals.append(["memory of the daemon during an upload", "<= 24 MB", f"{most / 1e6:.1f} MB", verdict(most / 1e6, 24)])
            rows += [[f"upload: {name}", f"{sorted(found.values())[len(found) // 2] / 1e6:.0f} MB/s"] for name, found in (("carrel", mine), ("nginx", other))]
            rows += [[f"CPU of the server for 1 GB: {name}", f"{seconds:.2f} s"] for name, seconds in used.items()]
        say("bench: idle TLS connections")
        each = measure_idle(served, 500 if short else IDLE) / 1000
        goals.append([f"idle TLS connection ({500 if short else IDLE:,})", "<= 60 kB", f"{each:.0f} kB", verdict(each, 60)])
    head = "\n".join(f"- {line}" for line in machine(quiet))
    return "\n\n".join([head, "### Goals", table(["goal", "must", "measured", ""], goals), "### Rows", table(["what", "measured"], rows), ABOUT]), problems
