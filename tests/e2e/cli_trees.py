#!/usr/bin/env python3
"""anyperf report -g: the ways to a function, and on from it, as perf report draws them."""
import json
import os
import re
import shutil
import subprocess

from e2e import ENV, main, run, scratch

CALLED = os.environ["E2E_CALLED"]


def recorded(folder):
    path = os.path.join(folder, "a")
    r = run("record", "--exact", "-g", "-o", path, "--", CALLED)
    assert r.status == 0, r
    return path


def report(path, *options):
    r = run("report", "-i", path, *options)
    assert r.status == 0 and not r.err, r
    return r.out


def trees(text):
    """What is drawn below each row, by its symbol: the share of a branch, or None, and its name."""
    found, row = {}, None
    for line in text.splitlines():
        head = re.match(r" +\d+\.\d\d%.*\[[.k]\] (.*?)\s*$", line)
        drawn = re.match(r"[ |]*(?:---|--(\d+\.\d\d)%--)?([^ |].*)$", line)
        if head:
            row = found.setdefault(head[1], [])
        elif drawn and row is not None and not line.startswith("#"):
            row.append((drawn[1], drawn[2].strip()))
    return found


def ways(path, *options):
    """By symbol: (period, ways), a way as (period, functions)."""
    text = report(path, "--json", *options).splitlines()[0]
    return {row.get("symbol"): (row["period"],
                                [(w["period"], [f.get("symbol") for f in w["functions"]])
                                 for w in row["ways"]]) for row in json.loads(text)["rows"]}


def test_a_tree():
    with scratch() as d:
        path = recorded(d)
        text = report(path, "-g=callee,0", "-s", "sym")
        # Both ways stand beside each other, and what they have in common is under each.
        assert re.search(r"\[\.\] leaf\n +\|\n +\|--(\d+\.\d\d)%--(tail\n +\|          )?main\n",
                         text), text
        names = [name for _, name in trees(text)["leaf"]]
        assert {"tail", "main", "catches"} <= set(names), names
        # One way alone has no share: it is all.
        assert re.search(r"\[\.\] tail\n +\|\n            ---main\n               \S", text), text
        # On from a function.
        below = trees(report(path, "--children", "-g", "-s", "sym"))["main"]
        assert "fib" in [name for _, name in below] and below[0][0], below
        assert not trees(report(path, "-g", "none", "-s", "sym"))["main"]
        # From who calls first.
        first = trees(report(path, "-G", "-s", "sym"))["fib"]
        assert [name for _, name in first][-1] == "main" and first[0][1] != "main", first
        # What is too little is left out.
        assert not trees(report(path, "-g", "caller,100", "-s", "sym"))["leaf"]


def test_all_of_it():
    with scratch() as d:
        path = recorded(d)
        for options in ["-g"], ["-g=caller"], ["-g=callee,0"], ["-g=100"]:
            for symbol, (period, all_ways) in ways(path, *options).items():
                assert sum(n for n, _ in all_ways) == period, (options, symbol, period, all_ways)
        found = dict((tuple(f[:2]), n) for n, f in ways(path, "-g=0")["leaf"][1])
        to_main = [n for f, n in found.items() if f[0] == "main"]
        to_tail = [n for f, n in found.items() if f == ("tail", "main")]
        assert sum(to_main) == 2 * sum(to_tail) > 0, found


def test_the_same_as_perf():
    if not shutil.which("perf") or subprocess.run(["perf", "--version"], capture_output=True,
                                                  check=False).returncode:
        return
    with scratch() as d:
        path = recorded(d)
        p = subprocess.run(["perf", "report", "--stdio", "--no-children", "-g", "callee", "-i",
                            path], capture_output=True, text=True, env=ENV, check=True, timeout=60)
        theirs, mine = trees(p.stdout), trees(report(path, "-g"))
        assert len(mine) > 50 and [1 for t in mine.values() for share, _ in t if share], mine
        for symbol, tree in mine.items():
            other = theirs.get(symbol, [])
            # Theirs begin with the function itself.
            other = other[1:] if other and other[0] == (None, symbol) else other
            assert sorted(map(str, tree)) == sorted(map(str, other)), (symbol, tree, other)


def test_some_functions():
    with scratch() as d:
        path = recorded(d)
        text = report(path, "-S", "leaf,no such", "-g", "-s", "sym")
        found = trees(text)
        assert set(found) == {"leaf"} and "tail" in [name for _, name in found["leaf"]], text
        assert set(ways(path, "-S", "leaf", "-g")) == {"leaf"}
        only = trees(report(path, "-d", "called"))
        assert "main" in only and "_dl_start" not in only, only
        assert only == trees(report(path, "-d", CALLED))
        assert not trees(report(path, "-S", "nothing"))
        for options, said in ((["-d", "x", "-s", "sym"], "--dsos needs the key dso"),
                              (["-S", "x", "-s", "dso"], "--symbols needs the key sym")):
            r = run("report", "-i", path, *options)
            assert r.status == 2 and said in r.err, r


def test_wrong_calls():
    with scratch() as d:
        path = recorded(d)
        r = run("report", "-i", path, "-g=fractal")
        assert r.status == 2 and "'fractal' is neither caller, callee, none, nor a" in r.err, r
        r = run("report", "-i", path, "-g", "--group")
        assert r.status == 2 and "-g shows trees of one event" in r.err, r
        r = run("report", "-i", path, "-g", "caller", "more")
        assert r.status == 2 and "takes no argument, not 'more'" in r.err, r
        flat = os.path.join(d, "flat")
        assert run("record", "--exact", "-o", flat, "--", CALLED).status == 0
        r = run("report", "-i", flat, "-g")
        assert r.status == 0 and "no sample has a call chain; `anyperf record -g`" in r.err, r


if __name__ == "__main__":
    main(globals())
