#!/usr/bin/env python3
"""What a model counts for who has not asked for one: stat and run with no option for it."""
import json
import os
import re
import shutil
import subprocess

from e2e import ANYPERF, ENV, Skip, main, run, scratch, stat, stat_json

BESIDES = os.environ["E2E_BESIDES"]
USUAL = ["task-clock:u", "context-switches:u", "cpu-migrations:u", "page-faults:u"]
LONG = BESIDES, "burn", "3000000"


def virtual(*args):
    return stat_json("--pmu=virtual", *args)[0]


def values(report):
    return {c["event"].removesuffix(":u"): c.get("value") for c in report["counts"]}


def text(*args):
    return re.sub(r"\s+", " ", stat("--pmu=virtual", *args).err)


def test_what_is_counted():
    """The usual events of perf, and those of -d."""
    for options, more in ([], set()), (["-d"], {"L1-dcache-loads", "LLC-load-misses"}):
        report = virtual(*options, "true")
        counts = values(report)
        assert {"cycles", "instructions", "branches", "branch-misses"} | more <= set(counts), report
        assert all(c["status"] == "ok" for c in report["counts"]), report
        assert report["pmu"]["machine"] == "host" and report["pmu"]["windows"] == "auto", report
        # It is over before anything was left out.
        assert report["pmu"]["estimated"] is False, report
    said = text("true")
    assert "(modeled: host: cycles:u, branch-misses:u)" in said and "estimated" not in said, said


def test_what_is_estimated_is_said():
    report = virtual(*LONG)
    assert report["pmu"]["estimated"] is True, report
    said = text(*LONG)
    assert ("(modeled: host, estimated from windows (auto): cycles:u, branch-misses:u; "
            in said), said
    assert "Nothing is estimated with --model-windows=no" in said and "--machine=none" in said, said
    said = text("-e", "cycles,instructions", *LONG)
    assert "estimated from windows (auto): cycles:u; " in said, said
    assert "--model-windows=no" in said and "--machine=none" not in said, said
    r = stat("--pmu=virtual", "-x,", *LONG)
    assert "# modeled: host, estimated from windows (auto): " in r.err, r


def test_what_is_counted_is_exact():
    """And as it is without a model."""
    whole, seen, alone = (virtual("--deterministic", *options, *LONG) for options in
                          (["--model-windows=no"], [], ["--machine=none"]))
    assert "windows" not in whole["pmu"] and "machine" not in alone["pmu"], (whole, alone)
    assert set(values(whole)) == set(values(seen)), (whole, seen)
    assert set(values(seen)) - set(values(alone)) == {"cycles", "branch-misses"}, (seen, alone)
    for event in "instructions", "branches":
        assert values(whole)[event] == values(seen)[event] == values(alone)[event], event
    assert 0 < abs(values(whole)["cycles"] - values(seen)["cycles"]) < values(whole)["cycles"] / 5


def test_who_says_when_is_seen_whole():
    """Between two words of a control descriptor may be less than a window."""
    ends = os.pipe()
    said = stat("--pmu=virtual", f"--control=fd:{ends[0]}", *LONG, pass_fds=ends).err
    assert "cycles" not in re.sub("counts cycles", "", said), said
    assert "--model-windows=auto" in said, said
    report, = stat_json("--pmu=virtual", f"--control=fd:{ends[0]}", "-e", "cycles", *LONG,
                        pass_fds=ends)
    assert "windows" not in report["pmu"], report
    for end in ends:
        os.close(end)


def perf():
    found = shutil.which("perf")
    if not found or run("run", "--", found, "stat", "true").status:
        raise Skip("perf is not there, or not for this kernel")
    return found


def test_perf_lacks_nothing():
    for options in [], ["-d"], ["-dd"], ["-ddd"], ["-a"], ["-A", "-a", "-d"]:
        with scratch() as d:
            r = run("run", "--", perf(), "stat", *options, "-o", f"{d}/out", "--", *LONG)
            with open(f"{d}/out", encoding="utf-8") as f:
                said = f.read()
            assert r.status == 0 and "<not" not in said and "branch-misses" in said, (r, said)


def test_perf_samples():
    with scratch() as d:
        r = run("run", "--", perf(), "record", "-q", "-e", "cycles", "-c", "100000", "-o", f"{d}/data",
                "--", BESIDES, "burn", "300000")
        assert r.status == 0, r
        r = run("run", "--", perf(), "report", "--stdio", "-i", f"{d}/data")
        assert re.search("Samples: [0-9.]+K? *of event 'cycles:u'", r.out) and "burn" in r.out, r


def test_who_counts_himself_sees_all():
    r = run("run", "--", BESIDES, "parts", "3000000")
    assert r.status == 0 and int(r.out) > 1000, r
    # It is no better off where somebody estimates what it does as a whole.
    r = run("run", "--", ANYPERF, "stat", "-e", "cycles:u", "--", BESIDES, "parts", "3000000")
    assert r.status == 0 and int(r.out) > 1000 and "estimated" in r.err, r


def test_who_has_counted_himself_is_not_traced():
    def missing(*options):
        return int(run("run", *options, "--", BESIDES, "leaves").out)

    # A session that waits for a CPU says late that nobody counts any more.
    before, after = missing("--model-windows=no"), min(missing() for _ in range(5))
    assert 10 * after < before and before > 1000, (before, after)


def inside(script, *options):
    """The misses of LONG that stat counts in a run, beside what a script does there."""
    r = run("run", "--deterministic", *options, "--", "sh", "-c",
            f"{script}\n{ANYPERF} stat -j -e L1-dcache-load-misses:u -- {' '.join(LONG)}")
    assert r.status == 0, r
    return values(json.loads(r.err.splitlines()[-1]))["L1-dcache-load-misses"]


def test_as_long_as_somebody_counts_himself():
    whole, seen = inside("", "--model-windows=no"), inside("")
    # Some depend on the names of directories in the environment.
    room = abs(whole - seen) / 10
    assert room > 20, (whole, seen)
    with scratch() as d:
        beside = inside(f"cd {d}; mkfifo in out; {BESIDES} holds <in >out & exec 3>in 4<out; "
                        "read said <&4")
    assert abs(beside - whole) < room, (whole, seen, beside)
    after = inside(f"{BESIDES} holds </dev/null")
    assert abs(after - seen) < room, (whole, seen, after)


main(globals())
