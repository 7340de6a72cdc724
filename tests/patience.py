"""For tests of commands that have to get somewhere before their time is over: how long that takes is the machine's affair."""


def with_time(run, has_arrived, first=0.5):
    """What run("SECONDSs") gave with the first limit that was long enough, by has_arrived(); else with the longest."""
    for seconds in (first, 4 * first, 16 * first, 64 * first):
        found = run(f"{seconds}s")
        if has_arrived():
            break
    return found
