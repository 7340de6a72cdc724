"""The tables, as Markdown that also reads well on a terminal."""

import itertools
import os
import platform
import statistics
import subprocess
import time

from rows import BASE, BWRAP, BWRAP_AGAIN, CARREL, LISTED, find
from stats import percentile, ratio

GOALS = [  # of each id: what, a row, by another, (must, stretch)
    ("`carrel run -- /bin/true` / `bwrap --unshare-all`", CARREL, BWRAP, (1.0, 0.85)),
    ("`carrel run --allow-domain D -- /bin/true` / `carrel run`", LISTED, CARREL, (1.1, None)),
]
GOAL_INIT_KB = 16
SECTIONS = ["Sandboxes", "Environments", "The daemon", "The life of a workspace", "Egress", "The judge", "The front door", "Clients", "Cells", "Tools", "Agents", "Deployments"]  # of results.md, in this order


def table(head, lines):
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    rule = ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)]

    def one(cells):
        return (
            "| "
            + " | ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(cells, widths))
            )
            + " |"
        )

    return "\n".join([one(head), one(rule), *(one(line) for line in lines)])


def milliseconds(nanoseconds):
    return f"{nanoseconds / 1e6:.2f}"


def show_ratio(row, other):
    if row is other:
        return "1"
    if other.missing:
        return "-"
    middle, low, high = ratio(row.times, other.times)
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def by_name(rows, who, name):
    return next(row for row in rows if row.who is who and row.name == name)


def rows_table(rows, who):
    base = by_name(rows, who, BASE)
    bwrap = by_name(rows, who, BWRAP)
    lines = []
    for row in rows:
        if row.who is not who:
            continue
        if row.missing:
            lines.append([row.name, "not measured", "-", "-", "-", "-", "-"])
            continue
        times = list(row.times.values())
        lines.append(
            [
                row.name,
                milliseconds(statistics.median(times)),
                milliseconds(percentile(times, 99)),
                show_ratio(row, base),
                show_ratio(row, bwrap),
                milliseconds(statistics.median(row.blocks)) if row.blocks else "-",
                str(len(times)),
            ]
        )
    text = table(
        [f"as {who.name}", "p50 ms", "p99 ms", "p50 / B", "p50 / bwrap", "in a row ms", "runs"],
        lines,
    )
    return text + "".join(
        f"\n\nNot measured as {who.name}: {row.name}: {row.missing}"
        for row in rows
        if row.who is who and row.missing
    )


def verdict(value, must, stretch=None):
    if value > must:
        return "MISSED"
    return "met, stretch too" if stretch is not None and value <= stretch else "met"


def goals_table(rows, ids, memory):
    lines = []
    for who, (what, name, against, goals) in itertools.product(ids, GOALS):
        row, other = by_name(rows, who, name), by_name(rows, who, against)
        goal = [f"{what}, {who.name}", *("-" if most is None else f"<= {most:.2f}" for most in goals)]
        if row.missing or other.missing:
            lines.append([*goal, "-", "not measured"])
        else:
            lines.append(
                [
                    *goal,
                    show_ratio(row, other),
                    verdict(ratio(row.times, other.times)[0], *goals),
                ]
            )
    size = memory.get("warm")
    lines.append(
        [
            "carrel-init idle, PSS (warm, 12 s after its command)",
            f"<= {GOAL_INIT_KB} kB",
            "-",
            "-" if size is None else f"{size} kB",
            "not measured" if size is None else verdict(size, GOAL_INIT_KB),
        ]
    )
    return table(["goal", "must", "stretch", "measured", "verdict"], lines)


def noise(rows, who):
    row, other = by_name(rows, who, BWRAP_AGAIN), by_name(rows, who, BWRAP)
    return f"{who.name}: " + ("not measured" if row.missing else show_ratio(row, other))


def steps_table(runs, who):
    """Median time of each step, in the order in which they happen."""
    taken, reached = {}, {}
    for run in runs:
        total = {}
        for process, step, at, took in run:
            total[process, step] = total.get((process, step), 0) + took
            reached.setdefault((process, step), []).append(at)
        for key, value in total.items():
            taken.setdefault(key, []).append(value)
    names = ["carrel", "child", "grandchild"]
    lines = []
    for key in sorted(reached, key=lambda key: statistics.median(reached[key])):
        process, step = key
        seldom = "" if len(taken[key]) == len(runs) else f" ({len(taken[key])} of {len(runs)} runs)"
        lines.append(
            [
                step + seldom,
                names[process] if process < len(names) else f"process {process}",
                f"{statistics.median(taken[key]) / 1000:.0f}",
                f"{statistics.median(reached[key]) / 1000:.0f}",
            ]
        )
    return table([f"step, as {who.name}", "in", "took us", "done at us"], lines)


def compose(head, rows, ids, memory, steps):
    """The report but for how it was measured."""
    against_itself = "; ".join(noise(rows, who) for who in ids)
    parts = [
        "\n".join(f"- {line}" for line in head),
        "### Goals",
        goals_table(rows, ids, memory),
        "PSS of carrel-init while the command of `carrel run` sleeps: "
        + "; ".join(f"{who.name}: {memory.get(who.name, '-')} kB" for who in ids)
        + ".",
        "### Rows",
        *(rows_table(rows, who) for who in ids),
        f"The same bwrap against itself, which should be 1: {against_itself}.",
        "### Steps of `carrel run -- /bin/true`",
        *(steps or ["Not measured."]),
    ]
    return "\n\n".join(parts) + "\n"


def version(program):
    path = find(program)
    if not path:
        return program + ": not installed"
    done = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True, check=False)
    return (done.stdout.splitlines() or [program])[0]


def machine(quiet):
    """What both sections begin with."""
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.lower().startswith(("model name", "cpu implementer")):
                model = line.split(":", 1)[1].strip()
                break
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return [
        f"Date: {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}",
        f"Kernel: {platform.release()}, {platform.machine()}; {system}",
        f"CPU: {os.cpu_count()} x {model}; {quiet}",
    ]


def peers():
    return "Peers: " + "; ".join(version(name) for name in ["bwrap", "crun", "runc", "unshare"])


def replace_sections(old, sections):
    """The whole file: the sections that were measured, and those of `old` that weren't."""
    assert not sections.keys() - set(SECTIONS), "a section without a place would be dropped"
    kept = {}
    for text in old.split("\n## ")[1:]:
        title, _, body = text.partition("\n")
        kept[title] = body.strip()
    kept.update({title: body.strip() for title, body in sections.items()})
    return "# Results\n" + "".join(
        f"\n## {title}\n\n{kept[title]}\n" for title in SECTIONS if title in kept
    )
