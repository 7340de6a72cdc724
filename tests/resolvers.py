"""A network and a name server of a test's own, with addresses that look public, and the resolv.conf of the test. Threads
have namespaces of their own; so one thread makes them, and starts everything that is to live there."""
import concurrent.futures
import contextlib
import ctypes
import ipaddress
import os
import socket
import struct
import subprocess
import threading

CLONE_NEWNS, CLONE_NEWNET, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x40000000, 0x1000, 0x4000, 0x40000
A, CNAME, AAAA = 1, 5, 28
NXDOMAIN = 3


def check(status):
    if status < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Network:
    """Two hosts: `near`, with the resolv.conf of the test, and `far`, which has addresses that near reaches by a cable.
    call(function, ...) runs it in near, call_far in far; sockets and processes that it makes stay there. Only for root."""

    def __init__(self, directory, near, far):
        self.resolver_file = directory / "resolv.conf"
        self.resolver_file.write_text("")
        self.resolver_file.chmod(0o644)
        self.pool, self.far_pool = concurrent.futures.ThreadPoolExecutor(1), concurrent.futures.ThreadPoolExecutor(1)
        self.libc = ctypes.CDLL(None, use_errno=True)
        place = self.call_far(self._enter, far)
        self.call(self._enter, near)
        self.call(self._replace_resolver_file)
        self.call(ip, "link", "add", "cable", "type", "veth", "peer", "name", "end", "netns", place)
        self.call(ip, "address", "add", "192.0.2.1/24", "dev", "cable")
        self.call(ip, "link", "set", "cable", "up")
        self.call_far(ip, "address", "add", "192.0.2.2/24", "dev", "end")
        self.call_far(ip, "link", "set", "end", "up")
        for address in far:
            self.call(ip, "route", "add", address, "via", "192.0.2.2")

    def _enter(self, addresses):
        check(self.libc.unshare(CLONE_NEWNS | CLONE_NEWNET))
        check(self.libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        ip("link", "set", "lo", "up")
        for address in addresses:
            ip("address", "add", f"{address}/32", "dev", "lo")
        return f"/proc/{os.getpid()}/task/{threading.get_native_id()}/ns/net"

    def _replace_resolver_file(self):
        target = os.path.realpath("/etc/resolv.conf")
        check(self.libc.mount(bytes(self.resolver_file), os.fsencode(target), None, MS_BIND, None))

    def call(self, function, *args, **how):
        return self.pool.submit(function, *args, **how).result()

    def call_far(self, function, *args, **how):
        return self.far_pool.submit(function, *args, **how).result()

    def resolve_by(self, server, options="", search="."):
        """The name server from now on. One that says nothing is waited for 8 s: shorter than the role waits, and long enough for
        a server on a busy machine."""
        self.resolver_file.write_text(f"nameserver {server.address}\nsearch {search}\noptions timeout:8 attempts:1 {options}\n")

    @contextlib.contextmanager
    def inside(self, manager, call=None):
        """A context manager that is entered in near (or by `call`), and left here."""
        value = (call or self.call)(manager.__enter__)
        try:
            yield value
        finally:
            manager.__exit__(None, None, None)

    def close(self):
        self.pool.shutdown()
        self.far_pool.shutdown()


def encode(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


class NameServer(threading.Thread):
    """answers(name, kind) -> list of addresses and, for a CNAME, names; None: the name doesn't exist; an Event: say nothing until it is set,
    and then that the name doesn't exist. What was asked is in `asked`. To be made inside of a Network."""

    def __init__(self, address, answers):
        super().__init__(daemon=True)
        self.address, self.answers, self.asked = address, answers, []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        self.start()

    def run(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            if not query:       # close()
                return
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
                at += query[at] + 1
            kind = struct.unpack_from("!H", query, at + 1)[0]
            self.asked.append((".".join(labels), kind))
            found = self.answers(".".join(labels), kind)
            question = query[12:at + 5]
            if isinstance(found, threading.Event):
                threading.Thread(target=self.answer_late, args=(found, query, question, peer), daemon=True).start()
            else:
                self.answer(query, question, found, peer)

    def answer_late(self, event, query, question, peer):
        event.wait(120)
        with contextlib.suppress(OSError):
            self.answer(query, question, None, peer)

    def answer(self, query, question, found, peer):
        records, owner = b"", b"\xc0\x0c"
        for item in found or []:
            try:
                address = ipaddress.ip_address(item)
                kind, data = (A if address.version == 4 else AAAA), address.packed
            except ValueError:
                kind, data = CNAME, encode(item)
            records += owner + struct.pack("!HHIH", kind, 1, 0, len(data)) + data
            owner = data if kind == CNAME else owner
        head = query[:2] + struct.pack("!HHHHH", 0x8180 | (NXDOMAIN if found is None else 0), 1, len(found or []), 0, 0)
        self.socket.sendto(head + question + records, peer)

    def close(self, network):
        network.call(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", (self.address, 53)))
        self.join()
        self.socket.close()


@contextlib.contextmanager
def name_server(network, address, answers):
    server = network.call(NameServer, address, answers)
    try:
        yield server
    finally:
        server.close(network)
