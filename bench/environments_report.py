"""The tables of bench/environments.py."""

import statistics
import subprocess

import environments as E
from report import table, verdict
from stats import percentile, ratio

MANY = 100  # runs from which a p99 says something

ABOUT = f"""\
### How it is measured

`bench/run --only environments` measures this section alone.

- `/usr/bin/python3` on both sides. The peer is the uv that carrel itself uses, on the same file
  system, with a cache of its own that is warm: `uv venv`, then `uv pip install --offline --no-deps
  --require-hashes --link-mode hardlink -r` the lock that carrel had resolved, so that nothing is
  left to resolve. The times of both commands are added; `bench/spawn.c` times vfork, exec and wait
  of each command of either side, with no shell between.
- "overlay": two directories on a tmpfs, the overlay of all layers and attaching it, in a user and
  a mount namespace as `carrel run` has them; "with tmpfs": mounting that tmpfs, too. "composed":
  `env_request_prepare` and `env_compose` in a process that is there (`bench/environment.c`), until
  the new environment is on disk; "env build": the command, with a package_id that nobody had. uv
  syncs nothing to disk.
- All sets of all ids are measured in every round, in a shuffled order ({E.WARM_UP} rounds of
  warm-up thrown away); before each the file system is synced, so that nobody pays for what another
  left to write. In brackets: 95 % of 1,000 bootstrap resamples (of rounds) lie there.
- Node: the bun that carrel uses, with a cache of its own that is warm, in a new project of the same
  lock: `bun install --frozen-lockfile --ignore-scripts`. It links files from its cache and syncs
  nothing.
- Imports: `python -c 'import …'` as a whole command, `carrel run` with its sandbox against a bare
  Python. No `PYTHONDONTWRITEBYTECODE` anywhere. First imports: the environment and the venv are
  new in each round.
- Disk: `st_blocks` of everything in the home, before and after; a file with several names counts
  once. Of the many agents' stores the uv program itself is left out, on both sides.
- From nothing: no store and no cache; of the home there is only uv itself. Both sides resolve,
  download, install and compile.
"""


def middle(times):
    return statistics.median(times.values())


def milliseconds(times):
    if not times:
        return "-"
    text = f"{middle(times) / 1e6:.2f}"
    if len(times) >= MANY:
        text += f" (p99 {percentile(times.values(), 99) / 1e6:.2f})"
    return text


def seconds(times):
    return f"{middle(times) / 1e9:.2f}" if times else "-"


def plain(value):
    return f"{value:.2f}"


def part(value):
    """0.02 -> 1/50"""
    return f"1/{1 / value:.0f}" if value < 0.5 else f"{value:.2f}"


def show(upper, lower, form):
    if not upper or not lower:
        return "-"
    value, low, high = ratio(upper, lower)
    return f"{form(value)} ({form(low)}-{form(high)})"


def megabytes(size):
    return f"{size / 1e6:,.1f} MB" if size < 1e9 else f"{size / 1e9:,.2f} GB"


class Tables:
    def __init__(self, sites, times, sizes):
        self.sites = sites
        self.times = times
        self.sizes = sizes

    def of(self, site, name, what):
        return self.times.get((site.who, name, what))

    def goal(self, title, site, names, pair, limits, form):
        """One line: the worst of the sets."""
        must, stretch = limits
        line = [f"{title}, {site.who.name}", f"<= {form(must)}", f"<= {form(stretch)}"]
        found = []
        for name in names:
            upper, lower = (self.of(site, name, what) for what in pair)
            if not upper or not lower:
                return [*line, "-", "not measured"]
            found.append((ratio(upper, lower)[0], name, show(upper, lower, form)))
        value, name, text = max(found)
        return [*line, f"{name}: {text}", verdict(value, must, stretch)]

    def goals(self):
        lines = []
        sets = list(E.SETS)
        for site in self.sites:
            for title, what, limits in [
                ("overlay of present layers / uv", E.OVERLAY, (1 / 50, 1 / 100)),
                ("composed, meta.json durable / uv", E.COMPOSE, (1 / 30, 1 / 50)),
                ("`carrel env build` / uv", E.BUILD, (1 / 15, 1 / 25)),
            ]:
                lines.append(self.goal(title, site, sets, (what, E.UV), limits, part))
        first = self.sites[0]
        title = "`carrel env build --npm` / bun, frozen, from its cache"
        pair = (E.BUILD_NODE, E.BUN)
        lines.append(self.goal(title, first, [E.NODE_SET], pair, (1 / 15, 1 / 50), part))
        for title, pair, names, limits in [
            ("`carrel run --env`, import / uv venv", (E.IN_CARREL, E.IN_UV), E.IMPORTS, (1.1, 1.0)),
            ("import / the uv venv in the sandbox", (E.IN_CARREL, E.IN_BOTH), E.IMPORTS, (1.05, 1)),
            ("first import / uv, no bytecode", (E.FRESH_CARREL, E.FRESH_UV), E.IMPORTS, (0.7, 0.5)),
            ("from nothing / uv, bytecode", (E.FIRST_CARREL, E.FIRST_UV), sets, (1.5, 1.2)),
        ]:
            lines.append(self.goal(title, first, names, pair, limits, plain))
        added = self.sizes.get("further")
        line = ["disk of one more environment (fastapi)", "<= 64 kB", "<= 32 kB"]
        if added is None:
            lines.append([*line, "-", "not measured"])
        else:
            lines.append([*line, f"{added / 1024:.0f} kB", verdict(added, 64 * 1024, 32 * 1024)])
        return table(["goal (the worst set)", "must", "stretch", "measured", "verdict"], lines)

    def warm(self, site):
        lines = []
        for name in E.SETS:
            uv = self.of(site, name, E.UV)
            kinds = (E.OVERLAY, E.UPPER, E.COMPOSE, E.BUILD)
            what = {key: self.of(site, name, key) for key in kinds}
            lines.append(
                [
                    name,
                    str(site.layers[name]),
                    milliseconds(uv),
                    *(milliseconds(times) for times in what.values()),
                    *(show(what[key], uv, part) for key in (E.OVERLAY, E.COMPOSE, E.BUILD)),
                    str(len(uv or ())),
                ]
            )
        head = [f"as {site.who.name}, ms", "layers", "uv", "overlay", "with tmpfs", "composed"]
        head += ["env build", "overlay / uv", "composed / uv", "env build / uv", "runs"]
        return table(head, lines)

    def node(self, site):
        bun, ours = (self.of(site, E.NODE_SET, what) for what in (E.BUN, E.BUILD_NODE))
        line = [", ".join(E.NODE), milliseconds(bun), milliseconds(ours)]
        line += [show(ours, bun, part), str(len(bun or ()))]
        return table([f"as {site.who.name}, ms", "bun", "env build", "env build / bun", "runs"], [line])

    def first(self, site):
        lines = []
        for name in E.SETS:
            uv, ours = (self.of(site, name, what) for what in (E.FIRST_UV, E.FIRST_CARREL))
            lines.append(
                [
                    name,
                    seconds(uv),
                    seconds(ours),
                    show(ours, uv, plain),
                    str(len(uv or ())),
                    seconds(self.of(site, name, E.PIP)),
                ]
            )
        head = [f"as {site.who.name}, s", "uv", "carrel env build", "carrel / uv", "runs"]
        return table([*head, "venv + pip, from its cache"], lines)

    def imports(self, site):
        lines = []
        kinds = [E.IN_UV, E.IN_CARREL, E.IN_BOTH, E.FRESH_UV, E.FRESH_CARREL]
        for name in E.IMPORTS:
            uv = {what: self.of(site, name, what) for what in kinds}
            for what, times in uv.items():
                against = uv[E.FRESH_UV if what in (E.FRESH_UV, E.FRESH_CARREL) else E.IN_UV]
                lines.append(
                    [
                        f"import {name}, {what}",
                        milliseconds(times),
                        "1" if times and times is against else show(times, against, plain),
                        str(len(times or ())),
                    ]
                )
        return table([f"as {site.who.name}", "p50 ms", "/ uv", "runs"], lines)

    def agents(self):
        sizes = self.sizes.get("agents")
        if not sizes:
            return "Not measured."
        count = sizes["count"]
        lines = [
            ["carrel: layers, environments, locks", megabytes(sizes["carrel"])],
            ["uv, hard links, with its cache", megabytes(sizes["uv"])],
            [f"venv + pip: one, times {count}", megabytes(sizes["pip"])],
            ["estimate of the design this answers, for 100", "8 GB"],
        ]
        return table([f"{count} agents of grpcio, fastapi, uvicorn", "disk"], lines)


def said(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip()


def compose(head, sites, times, sizes):
    if not sites:
        return "Not measured.\n"
    tables = Tables(sites, times, sizes)
    uv = said(sites[0].uv, "--version").split(" (")[0]
    disk = said("findmnt", "--noheadings", "--output", "FSTYPE", "--target", sites[0].home)
    head = [*head, f"Peer: {uv}; file system: {disk}"]
    sets = "; ".join(f"{name}: {', '.join(packages)}" for name, packages in E.SETS.items())
    parts = [
        "\n".join(f"- {line}" for line in [*head, "Sets: " + sets]),
        "### Goals",
        tables.goals(),
        "### From present layers, against `uv venv` + `uv pip install`",
        *(tables.warm(site) for site in sites),
        "### Node from a present layer, against `bun install --frozen-lockfile`",
        tables.node(sites[0]),
        "### Imports",
        tables.imports(sites[0]),
        "### From nothing, against `uv venv` + `uv pip install --compile-bytecode`",
        tables.first(sites[0]),
        "### Disk",
        tables.agents(),
        ABOUT,
    ]
    return "\n\n".join(parts)
