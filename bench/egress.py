"""Egress beside tinyproxy and a plain relay by splice: requests over kept connections, added latency, throughput,
memory of idle connections. All of it on loopback, in front of the same server (bench/egress.c)."""

import contextlib
import os
import random
import statistics
import subprocess

from measure import Failed, Quiet, field, say
from report import table
from rows import find
from stats import ratio

PATIENCE_S = 60
CONNECTIONS = 16
IDLE = 1000
HOST = "origin.example"

ABOUT = f"""\
### How it is measured

`bench/run --only egress` measures this section alone. `bench/egress.c` has the server, the relay, the load, and starts
the egress role with one policy, whose list names the server.

- Requests: {CONNECTIONS} connections with one request each under way, through CONNECT and kept; answers have 12 bytes.
  "judged" is plain HTTP in the tunnel, which egress reads request by request; "absolute form" is the same without
  CONNECT, which tinyproxy can't keep. tinyproxy passes the bytes on without a look at them.
- Latency: five bytes there and back over one kept tunnel, one after the other. Added: minus that of the server alone.
- Throughput: one download through a tunnel, beside a relay that does nothing but splice in a process of its own.
- Memory: of {IDLE} tunnels that have carried something and are silent, RssAnon of the role, per 100 of them.
- All rows are measured in every round, in a shuffled order. In brackets: 95 % of 1,000 bootstrap resamples of rounds.
- Each server is a session of its own, as the role is: the kernel shares the CPU between sessions. The role is one thread,
  tinyproxy one per connection: on a busy machine these figures say more about the scheduler than about egress.
"""


class Sizes:
    def __init__(self, short):
        self.rounds = 2 if short else 15
        self.rate_ms = 300 if short else 1000
        self.pings = 500 if short else 5000
        self.megabytes = 100 if short else 1000


def start(stack, words):
    """A server that prints a line when it serves, and ends with us: (process, words of that line)."""
    process = stack.enter_context(
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True))
    stack.callback(process.kill)
    line = process.stdout.readline().split()
    if not line:
        raise Failed(f"{words[0]} {words[1]}: does not start")
    return process, line


def start_tinyproxy(stack, program, origin, directory):
    port = 20000 + os.getpid() % 10000
    path = os.path.join(directory, "tinyproxy.conf")
    with open(path, "w", encoding="ascii") as out:
        out.write(f"Port {port}\nListen 127.0.0.1\nMaxClients 1000\nTimeout 600\nLogLevel Critical\n"
                  f"ConnectPort {origin}\nAllow 127.0.0.1\nLogFile \"{directory}/tinyproxy.log\"\n")
    process = subprocess.Popen([program, "-d", "-c", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return str(port)


class Bench:
    def __init__(self, program, directory, sizes, stack):
        self.program, self.sizes = program, sizes
        self.origin = start(stack, [program, "origin"])[1][0]
        port, self.role = start(stack, [program, "role", program, self.origin])[1]
        relay = start(stack, [program, "relay", self.origin])[1][0]
        # name -> port, the host to CONNECT to ("": none)
        self.ways = {"server alone": (self.origin, ""), "egress": (port, HOST), "plain relay": (relay, "")}
        self.tinyproxy = find("tinyproxy")
        if self.tinyproxy:
            self.ways["tinyproxy"] = (start_tinyproxy(stack, self.tinyproxy, self.origin, directory), "127.0.0.1")
        self.rates, self.pings, self.bulks = {}, {}, {}
        self.idle_kb = None

    def load(self, mode, way, count, milliseconds=0):
        port, host = self.ways[way]
        done = subprocess.run(
            [self.program, mode, port, host, self.origin, str(count), str(milliseconds)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise Failed(f"{mode} through {way}: {done.stderr.strip()[-200:]}")
        return float(done.stdout.split()[0])

    def run_round(self, number, problems):
        jobs = [(self.rates, way, "rate", way, CONNECTIONS, self.sizes.rate_ms)
                for way in ("server alone", "egress", "tinyproxy")]
        jobs.append((self.rates, "egress, absolute form", "absolute", "egress", CONNECTIONS, self.sizes.rate_ms))
        jobs += [(self.pings, way, "latency", way, self.sizes.pings)
                 for way in ("server alone", "egress", "plain relay", "tinyproxy")]
        jobs += [(self.bulks, way, "bulk", way, self.sizes.megabytes)
                 for way in ("server alone", "egress", "plain relay")]
        jobs = [job for job in jobs if job[3] in self.ways]
        for results, name, *how in random.sample(jobs, len(jobs)):
            try:
                results.setdefault(name, {})[number] = self.load(*how)
            except (Failed, subprocess.SubprocessError) as problem:
                problems.append(f"round {number + 1}: {problem}")

    def role_kb(self):
        return int(field(self.role, "status", "RssAnon")[0])

    def measure_idle(self):
        before = self.role_kb()
        port, host = self.ways["egress"]
        with subprocess.Popen([self.program, "hold", port, host, self.origin, str(IDLE), "0"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as holder:
            if not holder.stdout.readline():
                raise Failed("idle connections: not opened")
            self.idle_kb = (self.role_kb() - before) * 100 / IDLE
            holder.stdin.close()


def show(values):
    return f"{values[0]:.2f} ({values[1]:.2f}-{values[2]:.2f})"


def at_least(value, must):
    return "met" if value >= must else "MISSED"


def goals_table(bench):
    lines = []
    for name, upper, lower, results, must in (
            ("requests judged in tunnels / tinyproxy", "egress", "tinyproxy", bench.rates, 0.8),
            ("throughput / plain relay by splice", "egress", "plain relay", bench.bulks, 0.9)):
        if lower not in results:
            lines.append([name, f">= {must:.2f}", "-", "not measured"])
            continue
        values = ratio(results[upper], results[lower])
        lines.append([name, f">= {must:.2f}", show(values), at_least(values[0], must)])
    added = (statistics.median(bench.pings["egress"].values()) -
             statistics.median(bench.pings["server alone"].values())) / 1e6
    lines.append(["added latency, p50", "<= 0.30 ms", f"{added:.3f} ms", "met" if added <= 0.3 else "MISSED"])
    if bench.idle_kb is not None:
        lines.append(["memory of 100 idle connections", "<= 4096 kB", f"{bench.idle_kb:.0f} kB",
                      "met" if bench.idle_kb <= 4096 else "MISSED"])
    return table(["goal", "must", "measured", "verdict"], lines)


def rows_table(head, results, scale, digits):
    lines = [[name, f"{statistics.median(values.values()) / scale:.{digits}f}",
              f"{min(values.values()) / scale:.{digits}f}", f"{max(values.values()) / scale:.{digits}f}",
              str(len(values))] for name, values in results.items()]
    return table([head, "median", "least", "most", "rounds"], sorted(lines))


def compose(head, bench):
    peers = "Peers: none"
    if bench.tinyproxy:
        peers = "Peers: " + subprocess.run([bench.tinyproxy, "-v"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    return "\n\n".join([
        "\n".join(f"- {line}" for line in [*head, peers]), "### Goals", goals_table(bench), "### Rows",
        rows_table("requests per second", bench.rates, 1, 0),
        rows_table("there and back, p50 of a round, ms", bench.pings, 1e6, 3),
        rows_table("throughput, MB/s", bench.bulks, 1e6, 0), ABOUT])


def measure_all(program, directory, sizes):
    quiet, problems = Quiet(), []
    with contextlib.ExitStack() as stack:
        bench = Bench(program, directory, sizes, stack)
        if not bench.tinyproxy:
            problems.append("egress beside tinyproxy, which is not installed: tools/install-deps bench")
        for number in range(sizes.rounds):
            say(f"bench: egress, round {number + 1}")
            quiet.wait()
            bench.run_round(number, problems)
        try:
            bench.measure_idle()
        except (Failed, OSError) as problem:
            problems.append(f"idle connections: {problem}")
    return bench, quiet, problems
