"""The tables of bench/daemon.py."""

import statistics

import daemon as D
from report import table, verdict
from stats import percentile, ratio

ABOUT = f"""\
### What misses its goal, and why

- A warm exec over HTTP costs 0.3 ms more than vfork+exec. Each command needs core and carrel-init to be woken, which vfork+exec does
  not; the difference was 0.25 ms in earlier runs, and the goal of 1.35 has been at the edge in all of them.
- `crun exec` takes 6 to 7 ms here, and 1/10 of it is less than vfork+exec of `/bin/true` itself (0.8 ms).
- A warm idle sandbox of root costs 490 kB more than a plain user's: it has control groups of cgroup v1, which a plain
  user's has not. On machines with cgroup v2 it was not measured.
- Creation among 5,000 workspaces as a plain user: the last but one point below says what the file system adds; how much of the 6 ms
  that is was not measured.

### How it is measured

`bench/run --only daemon` measures this section alone.

- `bench/warm.c` is one process that takes all roads and times each: vfork+exec of `/bin/true` (**B**),
  one message to the carrel-init of a running sandbox (its core stands still, so that nobody else
  talks to it), and POST …/exec over one kept connection with the output captured, until the whole
  answer is there. "create, true, remove" is POST, exec and DELETE on that connection, the workspace made ahead
  (docs/design/0040); the row is on
  disk when create and remove are answered. bwrap and `carrel exec` are whole commands, started and
  timed by `bench/spawn.c`; so are `crun exec` and `runc exec` into a container that sleeps (in every
  fifth round; crun with cgroup v2 hidden from it).
- With a list: workspaces whose memory limit keeps them from being made ahead, with `network.allow` and without. The egress
  role of the daemon runs already; `carrel run --allow-domain` starts one of its own for each command.
- With a policy and the audit log: a workspace with `settings`, in a daemon with its default configuration; without both: a
  workspace of another daemon, with `audit.enabled: false`.
- All roads of all ids in every round, in a shuffled order ({D.WARM_UP} rounds of warm-up thrown
  away). In brackets: 95 % of 1,000 bootstrap resamples (of rounds) lie there.
- Neighbours: sandboxes that have run one command and wait. Memory of one, 12 s after the last
  command (docs/design/0014; 40 kB more before): what the whole machine
  has less, caches dropped, control groups and network namespaces included, by their number.
- kB of an idle workspace, of a connection and of an upload: anonymous memory of carreld.
- Captured output: ten clients, each in a workspace of its own, run commands that write 60 MB of
  control bytes, over and over, and read every answer whole; the bound of all captured output together
  ends those that come to it with `output_limit`. Core's peak memory is its VmHWM.
- On an ext4 without a journal the kernel passes over inodes that were freed in the last six minutes, one
  by one: there a create is the slower the more was removed before it, in this run or by others.
- HTTP: wrk, one thread, 16 connections, {D.WRK_SECONDS} s each in turn, over unix sockets on both
  sides (`bench/preload.c`); nginx with one worker answers the same bytes by `return 200`.
"""


def milliseconds(times, percent=50):
    return f"{percentile(times.values(), percent) / 1e6:.2f}" if times else "-"


def show(value):
    middle, low, high = value
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def goal(name, must, stretch, value, text):
    shown = [f"<= {must:g}", "-" if stretch is None else f"<= {stretch:g}"]
    if value is None:
        return [name, *shown, "-", "not measured"]
    return [name, *shown, text, verdict(value, must, stretch)]


def ratio_goal(name, site, upper, lower, must, stretch=None):
    times = site.times
    if not times.get(upper) or not times.get(lower):
        return goal(name, must, stretch, None, "")
    value = ratio(times[upper], times[lower])
    return goal(name, must, stretch, value[0], show(value))


def p99_goal(site):
    name = "warm exec by HTTP p99 / vfork+exec p99, 1,000 idle neighbours"
    upper, lower = (site.times.get(key) for key in ["exec by HTTP, neighbours", "vfork+exec, neighbours"])
    if not upper:
        return goal(name, 1.5, 1.2, None, "")
    value = percentile(upper.values(), 99) / percentile(lower.values(), 99)
    return goal(name, 1.5, 1.2, value, f"{value:.2f}")


def apart_goal(name, site, upper, lower, must, stretch):
    """Of two that were not measured in the same rounds: medians alone."""
    if not site.times.get(upper) or not site.times.get(lower):
        return goal(name, must, stretch, None, "")
    value = statistics.median(site.times[upper].values()) / statistics.median(site.times[lower].values())
    return goal(name, must, stretch, value, f"{value:.2f}")


def figure_goal(name, figures, key, must, stretch, unit):
    value = figures.get(key)
    return goal(name, must, stretch, value, "" if value is None else f"{value:.1f} {unit}")


def rate_goal(figures):
    name = "rate of GET /healthz / nginx `return 200`, one worker (wrk)"
    rates = figures.get("requests/s")
    if not rates:
        return [name, ">= 0.5", "-", "-", "not measured"]
    value = ratio(rates["carrel"], rates["nginx"])
    return [name, ">= 0.5", "-", show(value), "met" if value[0] >= 0.5 else "MISSED"]


def goals_table(site, figures):
    lines = [
        ratio_goal("warm exec on init's socket / vfork+exec, `/bin/true`", site, "exec by init", "vfork+exec", 1.15, 1.07),
        ratio_goal("the same, static no-op", site, "exec by init no-op", "vfork+exec no-op", 1.5, 1.25),
        ratio_goal("warm exec over HTTP, captured / vfork+exec", site, "exec by HTTP", "vfork+exec", 1.35, 1.22),
        ratio_goal("warm exec over HTTP with a policy and the audit log / without both", site, "exec by HTTP, policy", "exec by HTTP, no audit log", 1.10, None),
        ratio_goal("warm exec of `sh -c true` in a context / in a workspace", site, "the same in a context", "exec of a shell by HTTP", 1.2, None),
        ratio_goal("A2A message:send of `true` / warm exec of `sh -c true` over HTTP", site, "the same by A2A", "exec of a shell by HTTP", 2.0, None),
        ratio_goal("warm exec over HTTP / `crun exec`", site, "exec by HTTP", "crun exec", 0.1, 1 / 15),
        ratio_goal("warm exec over HTTP / `runc exec`", site, "exec by HTTP", "runc exec", 1 / 15, 0.05),
        p99_goal(site),
        ratio_goal("create + true + destroy / `bwrap --unshare-all`", site, "create, true, remove", "bwrap --unshare-all", 0.8, 0.45),
        ratio_goal("create + true + destroy with a list of hosts / without", site, "the same with a list", "the same, not made ahead", 1.10, None),
        apart_goal("create + true + destroy at 5,000 idle workspaces / at 100", site, "create, true, remove at many", "create, true, remove at few", 1.5, 1.1),
        figure_goal("a warm idle sandbox, all memory, at 1,000", figures, "kB a warm sandbox", 500, 300, "kB"),
        figure_goal("an idle workspace without one", figures, "kB an idle workspace", 20, None, "kB"),
        rate_goal(figures),
        figure_goal("daemon memory for a 2 GiB upload", figures, "kB more in an upload", 16384, None, "kB"),
        figure_goal("`/healthz` p99 while ten execs have 60 MB of control bytes captured", figures, "ms of /healthz beside captured output, p99", 20, None, "ms"),
        figure_goal("core's peak memory meanwhile", figures, "MB of core beside captured output", 200, None, "MB"),
        figure_goal("an open connection, of 5,000", figures, "kB a connection", 4, None, "kB"),
    ]
    return table([f"goal, {site.who.name}", "must", "stretch", "measured", "verdict"], lines)


def rows_table(site):
    base = site.times.get("vfork+exec")
    lines = []
    for name, times in site.times.items():
        same = set(times) == set(base) or "exec" in name and set(times) <= set(base)
        other = base if "neighbours" not in name and " at " not in name and same else None
        if "neighbours" in name:
            other = site.times["vfork+exec, neighbours"]
        lines.append(
            [
                name,
                milliseconds(times),
                milliseconds(times, 99),
                "1" if times is other else show(ratio(times, other)) if other else "-",
                str(len(times)),
            ]
        )
    return table([f"as {site.who.name}", "p50 ms", "p99 ms", "p50 / B", "runs"], lines)


def further(site, figures):
    parts = []
    rates = figures.get("requests/s")
    if rates:
        parts.append(
            "wrk, requests a second (medians): "
            + ", ".join(f"{name} {statistics.median(some.values()):.0f}" for name, some in rates.items())
        )
    if "MB/s of an upload" in figures:
        parts.append(f"the upload ran at {figures['MB/s of an upload']:.0f} MB/s")
    return f"{site.who.name}: " + "; ".join(parts) + "." if parts else ""


def compose(head, sites, figures):
    parts = [
        "\n".join(f"- {line}" for line in head),
        "### Goals",
        *(goals_table(site, figures[site.who.name]) for site in sites),
        "### Rows",
        *(rows_table(site) for site in sites),
        *(further(site, figures[site.who.name]) for site in sites),
        ABOUT,
    ]
    return "\n\n".join(part for part in parts if part)
