#!/usr/bin/env python3
"""anyperf record --exact --machine: modeled events at the instructions that cause them."""
import json
import os
import re
from collections import Counter

from e2e import counts, main, run, scratch, stat_json

FIXED = os.environ["E2E_FIXED"]
MISSES = os.environ["E2E_MISSES"]
STEPS = 20000
NODES = 8192
USUAL = ["cycles:u", "branch-misses:u", "L1-dcache-load-misses:u", "LLC-load-misses:u",
         "dTLB-load-misses:u"]


def exact(path, *command, options=(), status=0):
    """What is attributed is what was counted beside it, or it is said."""
    r = run("record", "--exact", *options, "-o", path, "--", *command)
    assert r.status == status, r
    assert "instructions were executed" in r.err, r
    for said in ("INCOMPLETE", "the counters", "not where", "no room", "SAMPLES"):
        assert said not in r.err, r
    return r


def report(path, *args):
    r = run("report", "--json", "-i", path, *args)
    assert r.status == 0, r
    return {d["event"]: d for d in map(json.loads, r.out.splitlines())}


def of_symbol(event):
    sums = Counter()
    for row in event["rows"]:
        sums[row.get("symbol", "?")] += row["period"]
    return sums


def test_the_same_as_stat():
    with scratch() as d:
        for machine, events in (("cachegrind", USUAL),
                                ("zen3", ["cycles:u", "L1-icache-loads:u", "branch-misses:u"]),
                                ("zen3", ["branch-misses:u"]),
                                ("skylake-server", ["L1-dcache-loads:u", "cache-misses:u"])):
            want, = stat_json("--machine", machine, "--model-windows=no", "-e", ",".join(events),
                              "--", FIXED)
            options = ["--machine", machine]
            options += ["-e", ",".join(events)] if events != USUAL else []
            exact(f"{d}/a", FIXED, options=options)
            got = {name: e["period"] for name, e in report(f"{d}/a").items()}
            assert got.pop("instructions:u") == 200005, got
            assert set(got) <= set(events), got
            for name, c in zip(events, counts(want).values()):
                assert got.get(name, 0) == c["value"], (machine, name, got, c)


def test_where_misses_are():
    with scratch() as d:
        exact(f"{d}/a", MISSES, "global", options=["--machine=cachegrind"])
        events = report(f"{d}/a", "-s", "sym")
        assert list(events)[:3] == ["instructions:u", "cycles:u", "branch-misses:u"], list(events)
        assert events["cycles:u"]["machine"] == "cachegrind", events["cycles:u"]
        loads = of_symbol(events["L1-dcache-load-misses:u"])
        # The last lines that were built are there still.
        assert STEPS - 64 <= loads["walk"] <= STEPS, loads
        # There are 64 entries of TLB, and 128 pages that are walked over.
        assert of_symbol(events["dTLB-load-misses:u"])["walk"] > STEPS / 4, events
        # The one instruction that loads.
        r = run("script", "-i", f"{d}/a", "-F", "event,ip,sym,period")
        rows = [l.split() for l in r.out.splitlines() if "L1-dcache-load-misses:u" in l
                and l.split()[-1] == "walk"]
        # What a path costs by itself is all of its instructions': those of the loop have some.
        costs = [int(l.split()[0]) for l in r.out.splitlines() if " cycles:u" in l
                 and l.split()[-1] == "walk"]
        assert len([c for c in costs if c >= STEPS * 0.9]) >= 3, costs
        # The return loads, too.
        assert int(rows[0][0]) >= loads["walk"] - 1 and len(rows) <= 2, rows
        # A miss costs ten cycles.
        assert of_symbol(events["cycles:u"])["walk"] > 10 * STEPS, events["cycles:u"]


def test_threads_and_children():
    """Each has its own, also one that is killed, and a program that another one becomes."""
    with scratch() as d:
        for what, walks, nr in ((["thread", "thread", "global"], 3, 3), (["fork", "global"], 1, 1),
                                (["global", "fork", "global", "thread"], 3, 3),
                                (["heap", "fork", "exec"], 2, 2)):
            exact(f"{d}/a", MISSES, *what, options=["--machine=cachegrind"])
            loads = of_symbol(report(f"{d}/a")["L1-dcache-load-misses:u"])
            assert walks * (STEPS - 64) <= loads["walk"] <= walks * STEPS, (what, loads)
            r = run("script", "-i", f"{d}/a", "-F", "event,tid,ip,sym,period")
            tasks = {l.split()[0] for l in r.out.splitlines()
                     if "L1-dcache-load-misses:u" in l and l.split()[-1] == "walk"}
            assert len(tasks) == nr, (what, tasks)


def test_programs():
    """exact() compares the sums with the counters of the run."""
    with scratch() as d:
        for command, status in (("ls / | sort; (exec true); sed p /etc/passwd", 0),
                                ("ls / >/dev/null; kill -9 $$", 137)):
            exact(f"{d}/a", "sh", "-c", command, status=status,
                  options=["-e", "cycles,cache-misses,instructions,L1-icache-load-misses"])
            events = report(f"{d}/a", "-s", "comm")
            assert list(events) == ["instructions:u", "cycles:u", "cache-misses:u",
                                    "L1-icache-load-misses:u"], events
            assert {r["comm"] for r in events["cycles:u"]["rows"]} >= {"sh", "ls"}, events


def of_data(event):
    """The periods of walk() by data: object and name."""
    return {(os.path.basename(row["data_object"]), row.get("data", "")): row["period"]
            for row in event["rows"] if row.get("symbol") == "walk"}


KINDS = ["global", "data", "heap", "stack", "mapped", "thread"]


def test_data():
    """The lists that are walked over lie in data of known kinds."""
    with scratch() as d:
        exact(f"{d}/a", MISSES, *KINDS, options=["--machine=cachegrind", "-d"])
        events = report(f"{d}/a", "-s", "sym,data")
        # What cannot miss has no data.
        assert {r["data_object"] for r in events["branch-misses:u"]["rows"]} == {"[none]"}, events
        found = of_data(events["L1-dcache-load-misses:u"])
        r = run("script", "-i", f"{d}/a", "-F", "pid,tid,ip,sym,event")
        ids = {tuple(int(x) for x in l.split()[0].split("/")) for l in r.out.splitlines()
               if l.split()[-1] == "walk"}
        pid, = {p for p, _ in ids}
        own, = {t for _, t in ids if t != pid}
        for place in (("misses", "nodes"), ("misses", "first"), ("[heap]", "[heap]"),
                      ("[stack]", f"[stack:{pid}]"), ("[stack]", f"[stack:{own}]")):
            assert STEPS - 64 <= found.pop(place) <= STEPS + 2, (place, found)
        (mapped, what), n = max(found.items(), key=lambda x: x[1])
        assert what == "[file]" and "deleted" in mapped and n >= STEPS - 64, found
        # All of them, whoever asks.
        assert sum(r["period"] for r in report(f"{d}/a", "-s", "data")["cycles:u"]["rows"]) == \
            events["cycles:u"]["period"]
        r = run("report", "-i", f"{d}/a", "-s", "data")
        assert "Data Object" in r.out and " [heap]" in r.out, r
        exact(f"{d}/b", MISSES, "moved", options=["--machine=cachegrind", "-d"])
        found = of_data(report(f"{d}/b", "-s", "sym,data")["L1-dcache-load-misses:u"])
        (kind, _), n = max(found.items(), key=lambda x: x[1])
        assert kind == "[anon]" and n >= STEPS - 64, found


def ways(path, event):
    """The periods of an event by call chain: functions, the nearest first."""
    sums = Counter()
    r = run("script", "-i", path, "-F", "event,period,ip,sym")
    assert r.status == 0, r
    for sample in r.out.split("\n\n"):
        head, *frames = sample.splitlines() or [""]
        if event in head:
            sums[tuple(f.split()[1] for f in frames)] += int(head.split()[0])
    return sums


def test_ways_to_a_function():
    """With -g each way has its own, and inclusive counts are those of all it has called."""
    with scratch() as d:
        exact(f"{d}/a", MISSES, "global", "stack", "heap", options=["-g", "--machine=cachegrind"])
        found = ways(f"{d}/a", "L1-dcache-load-misses:u")
        for way, walks in ((("walk", "main"), 2), (("walk", "on_stack", "main"), 1)):
            n = sum(n for w, n in found.items() if w[:len(way)] == way)
            assert walks * (STEPS - 64) <= n <= walks * (STEPS + 2), (way, n, found)
        assert all(w.count("walk") <= 1 for w in found), found
        events = report(f"{d}/a", "--children", "-s", "sym")
        for event in USUAL:
            rows = {r.get("symbol"): r for r in events[event]["rows"]}
            of_all = events[event]["period"]
            assert of_all == sum(ways(f"{d}/a", event).values()), event
            for name in ("main", "on_stack"):
                want = sum(n for w, n in ways(f"{d}/a", event).items() if name in w)
                got = rows[name]["children_percent"] * of_all / 100 if name in rows else 0
                assert abs(got - want) <= of_all / 5000, (event, name, got, want)
        # What a path costs by itself is all of its instructions', as without -g.
        cycles = of_symbol(report(f"{d}/a", "-s", "sym")["cycles:u"])
        assert cycles["walk"] > 3 * 10 * STEPS, cycles


def test_ways_of_threads_and_children():
    """exact() compares the sums with the counters of the run."""
    with scratch() as d:
        for what, walks, nr in ((["thread", "thread", "global"], 3, 3),
                                (["global", "fork", "global", "thread"], 3, 3),
                                (["heap", "fork", "exec"], 2, 2)):
            exact(f"{d}/a", MISSES, *what, options=["-g", "--machine=cachegrind"])
            loads = of_symbol(report(f"{d}/a")["L1-dcache-load-misses:u"])
            assert walks * (STEPS - 64) <= loads["walk"] <= walks * (STEPS + 2), (what, loads)
            r = run("script", "-i", f"{d}/a", "-F", "event,tid,period")
            tids = {l.split()[0] for l in r.out.splitlines() if "L1-dcache-load-misses:u" in l}
            assert len(tids) == nr, (what, tids)
        for command, status in (("ls / | sort; (exec true); sed p /etc/passwd; kill -USR1 $$", 138),
                                ("trap 'ls / >/dev/null' USR1; kill -USR1 $$; kill -9 $$", 137)):
            exact(f"{d}/a", "sh", "-c", command, status=status,
                  options=["-g", "-e", "cycles,cache-misses,branch-misses,L1-icache-load-misses"])


def test_region():
    """With --toggle the function alone, with what it calls."""
    with scratch() as d:
        options = ["--toggle=on_st?ck", "--machine=cachegrind"]
        exact(f"{d}/a", MISSES, "global", "stack", "thread", "heap", options=options)
        events = report(f"{d}/a", "-s", "sym")
        for event, least in (("L1-dcache-load-misses:u", 2 * (STEPS - 64)),
                             ("cycles:u", 2 * 10 * STEPS)):
            by = of_symbol(events[event])
            assert set(by) <= {"walk", "build", "on_stack"} and by["walk"] >= least, (event, by)
        assert of_symbol(events["L1-dcache-load-misses:u"])["walk"] <= 2 * (STEPS + 2), events


def test_data_of_ways():
    with scratch() as d:
        exact(f"{d}/a", MISSES, *KINDS, options=["--machine=cachegrind", "-d", "-g"])
        found = of_data(report(f"{d}/a", "-s", "sym,data")["L1-dcache-load-misses:u"])
        stacks = [n for (place, _), n in found.items() if place == "[stack]"]
        for n in stacks + [found["misses", "nodes"], found["misses", "first"],
                           found["[heap]", "[heap]"]]:
            assert STEPS - 64 <= n <= STEPS + 2, found
        assert len(stacks) == 2, found


def test_lines():
    with scratch() as d:
        exact(f"{d}/a", MISSES, "global", options=["--machine=cachegrind"])
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "misses.c"),
                  encoding="utf-8") as f:
            line, = [i for i, text in enumerate(f, 1) if "every step misses */" in text]
        rows = report(f"{d}/a", "-s", "line")["L1-dcache-load-misses:u"]["rows"]
        assert rows[0]["file"].endswith("misses.c") and rows[0]["line"] == line, rows[0]
        assert STEPS - 64 <= rows[0]["period"] <= STEPS, rows[0]
        r = run("report", "-i", f"{d}/a", "-s", "sym,srcline,symbol_daddr")
        assert f"misses.c:{line}" in r.out and "[none]" in r.out, r
        r = run("report", "-i", f"{d}/a", "-s", "lines")
        assert r.status == 2 and "comm, dso, sym, line, data" in r.err, r


def test_data_of_samples():
    with scratch() as d:
        r = run("record", "-d", "-e", "L1-dcache-load-misses:u", "-c", "100", "--machine=cachegrind",
                "-o", f"{d}/a", "--", MISSES, *KINDS)
        assert r.status == 0, r
        found = of_data(report(f"{d}/a", "-s", "sym,data")["L1-dcache-load-misses:u"])
        for place in (("misses", "nodes"), ("misses", "first"), ("[heap]", "[heap]")):
            assert STEPS - 300 <= found.pop(place) <= STEPS + 300, (place, found)
        rest = {}
        for (place, _), n in found.items():
            rest[place] = rest.get(place, 0) + n
        # Of a thread's stack nobody has told.
        assert rest["[stack]"] >= STEPS - 300 and rest["[anon]"] >= STEPS - 300, found


def test_events_side_by_side():
    with scratch() as d:
        exact(f"{d}/a", MISSES, "global", options=["--machine=cachegrind"])
        single = report(f"{d}/a", "-s", "sym")
        r = run("report", "--json", "-i", f"{d}/a", "-s", "sym", "--group=L1-dcache-load-misses")
        both = json.loads(r.out)
        names = [e["event"] for e in both["events"]]
        assert names == list(single) and both["machine"] == "cachegrind", both["events"]
        assert [e["period"] for e in both["events"]] == [e["period"] for e in single.values()]
        for i, name in enumerate(names):
            want = +of_symbol(single[name])
            got = Counter()
            for row in both["rows"]:
                got[row.get("symbol", "?")] += row["periods"][i]
            assert +got == want, (name, got, want)
        by = [row["periods"][names.index("L1-dcache-load-misses:u")] for row in both["rows"]]
        assert by == sorted(by, reverse=True) and both["rows"][0]["symbol"] == "walk", by
        # Without a name by the first event, of which build() has the most.
        r = run("report", "-i", f"{d}/a", "-s", "sym", "--group")
        lines = r.out.splitlines()
        assert lines[3].split()[1:] == names + ["Symbol"] and lines[5].endswith(" build"), lines
        for options, why in ((["--group=cycle"], "no event 'cycle'"),
                             (["--group", "--children"], "exclude each other")):
            r = run("report", "-i", f"{d}/a", *options)
            assert r.status == 2 and why in r.err and not r.out, r


def test_samples_are_in_order():
    """A reader holds a part of a large file, so what is told later must not be older."""
    with scratch() as d:
        exact(f"{d}/a", "sh", "-c", "true; ls / >/dev/null; (exec ls /); exec true",
              options=["-e", "cycles,branch-misses"])
        r = run("script", "-D", "-i", f"{d}/a")
        assert r.status == 0, r
        times = [int(m[1]) for m in re.finditer(r"SAMPLE .* id\.time=(\d+)", r.out)]
        assert len(times) > 1000 and times == sorted(times), (len(times), r.out[:2000])


def test_refusals():
    for options, why in ((["-e", "branches"], "not branches"), (["-e", "page-faults"], "not page-"),
                         (["-e", "r1c4"], "not r1c4"),
                         (["-d"], "needs --machine or -e"),
                         (["--machine=none", "-e", "cycles"], "name a machine"),
                         (["-e", ",".join(["cycles"] * 17)], "at most 16")):
        r = run("record", "--exact", *options, "-o", "/dev/null", "--", "true")
        assert r.status == 125 and why in r.err, r


if __name__ == "__main__":
    main(globals())
