"""What a system call costs inside: open+close and getppid, beside bwrap, in turns."""
import os
import subprocess

import measure
import report
import rows as table_rows

ROUNDS = 7
GOALS = {"carrel run": 1.38, "carrel run, landlock: writes": 1.15}  # open+close / bwrap


def commands(tools, who, copies):
    """name -> (argv, environment); the program is shown at /calls."""
    writes = os.path.join(copies, f"writes-{who.uid}")
    os.makedirs(writes, exist_ok=True)
    with open(os.path.join(writes, "config.yaml"), "w", encoding="utf-8") as config:
        config.write("system:\n  landlock: writes\n")
    os.chown(writes, who.uid, who.gid)
    bwrap = table_rows.bwrap_argv(table_rows.find("bwrap"))
    bwrap = [*bwrap[:bwrap.index("--")], "--ro-bind", tools["calls"], "/calls", "--", "/calls"]
    carrel = [tools["carrel"], "run", "-v", tools["calls"] + ":/calls:ro", "--", "/calls"]
    return {
        "bwrap": (bwrap, who.env),
        "carrel run": (carrel, who.env),
        "carrel run, landlock: writes": (carrel, {**who.env, "CARREL_HOME": writes}),
    }


def measure_calls(tools, who, copies):
    """A table; raises measure.Failed. The least of some rounds: noise only adds."""
    least = {}
    for _ in range(ROUNDS):
        for name, (argv, env) in commands(tools, who, copies).items():
            done = subprocess.run([*who.prefix(), *argv], env=env, cwd="/", capture_output=True, text=True, check=False)
            if done.returncode:
                raise measure.Failed(f"{name}: {done.stderr.strip()}")
            times = [int(word) for word in done.stdout.split()]
            least[name] = [min(pair) for pair in zip(times, least.get(name, times))]
    lines = []
    for name, times in least.items():
        ratios = [mine / base for mine, base in zip(times, least["bwrap"])]
        must = GOALS.get(name)
        lines.append([name, f"{times[0]} ns", f"{ratios[0]:.2f}", f"≤ {must}" if must else "", f"{times[1]} ns", f"{ratios[1]:.2f}"])
    head = [f"calls inside, as {who.name}", "open+close", "/ bwrap", "goal", "getppid", "/ bwrap"]
    return report.table(head, lines)
