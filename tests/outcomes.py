"""What became of each test, and the second run of those that failed.

pytest writes it with `--outcomes FILE`, a line of JSON for each event; tools/run-tests reads it. The last line is pytest's status:
without it pytest has died, and what it had written until then proves nothing."""
import dataclasses
import json

# More failures than this in one part of a run are not flakiness.
FORGIVABLE = 20
# Of several lines about one test, the worst counts: its teardown may fail after it passed.
WORST_LAST = ("passed", "skipped", "failed", "crashed")


@dataclasses.dataclass
class Outcome:
    """Of one test, or of a program with several: `counts` says of how many."""
    what: str           # one of WORST_LAST; only what `failed` may be run again
    line: str = ""      # the first line of a failure
    counts: dict = None

    def __post_init__(self):
        self.counts = self.counts or {"failed" if self.what == "crashed" else self.what: 1}


@dataclasses.dataclass
class Outcomes:
    """Of one part of a run."""
    tests: dict         # the outcome of each test, by its name
    broken: list        # what failed beside the tests; nothing forgives it

    def passed_alone(self, name):
        return not self.broken and list(self.tests) == [name] and self.tests[name].what == "passed"


def forgive(outcomes, again, strict=False):
    """Runs once more, alone, each test that failed: again(name) gives the Outcomes of that. One that passes then has passed; their
    `flaky:` lines are returned. With `strict`, or where too many failed, nothing is run again."""
    failed = [name for name, outcome in outcomes.tests.items() if outcome.what == "failed"]
    if strict or len(failed) > FORGIVABLE:
        return []
    lines = []
    for name in failed:
        second = again(name)
        if second.passed_alone(name):
            lines.append(f"flaky: {name} (first failure: {outcomes.tests[name].line})")
            outcomes.tests[name] = second.tests[name]
    return lines


def read_pytest(file, status):
    """What a pytest has written that ended with `status`."""
    tests, broken, ended = {}, [], None
    for line in file.read_text().splitlines(keepends=True) if file.exists() else []:
        if not line.endswith("\n"):
            break           # it died while it wrote
        event = json.loads(line)
        if "broken" in event:
            broken.append(event["broken"])
        elif "status" in event:
            ended = event["status"]
        else:
            outcome, known = Outcome(event["what"], event["line"]), tests.get(event["test"])
            if not known or WORST_LAST.index(outcome.what) > WORST_LAST.index(known.what):
                tests[event["test"]] = outcome
    failed = any(outcome.what in ("failed", "crashed") for outcome in tests.values())
    # 0: all passed, 1: some failed, 5: there were none.
    if ended != status or status not in (0, 1, 5):
        broken.append(f"pytest died, with status {status}" if ended is None else f"pytest ended with status {status}")
    elif (status == 1) != bool(failed or broken):
        broken.append(f"pytest ended with status {status}, which is not what it reported")
    return Outcomes(tests, broken)


def first_line(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines()
    return lines[0] if lines else "no message"


def pytest_addoption(parser):
    parser.addoption("--outcomes", metavar="FILE", help="write there what became of each test, as lines of JSON")


def pytest_configure(config):
    file = config.getoption("outcomes")
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Writer(open(file, "w", encoding="utf-8", buffering=1)), "outcomes-writer")
        if config.pluginmanager.hasplugin("xdist"):
            config.pluginmanager.register(Workers(config.pluginmanager))


class Workers:
    """The hook that only xdist has."""
    def __init__(self, plugins):
        self.writer = plugins.get_plugin("outcomes-writer")

    def pytest_testnodedown(self, error):
        self.writer.dead_workers += bool(error)


class Writer:
    def __init__(self, file):
        self.file = file
        self.dead_workers = self.crashed_tests = 0

    def write(self, **event):
        print(json.dumps(event), file=self.file)

    def pytest_runtest_logreport(self, report):
        if report.when not in ("setup", "call", "teardown"):
            self.crashed_tests += 1     # its worker died in it
            self.write(test=report.nodeid, what="crashed", line=first_line(report))
        elif report.when == "call" or report.outcome != "passed":
            self.write(test=report.nodeid, what=report.outcome, line=first_line(report) if report.failed else "")

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(broken=f"{report.nodeid or 'tests'}: not collected")

    def pytest_sessionfinish(self, exitstatus):
        if self.dead_workers > self.crashed_tests:
            self.write(broken="a worker died between two tests")
        self.write(status=int(exitstatus))
