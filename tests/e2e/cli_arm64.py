#!/usr/bin/env python3
"""On arm64 with a PMU: anyperf stat counts what perf counts [ARM-01, ARM-13, ARM-17..19]. The
machine of tests/arm64/boot counts to the instruction; on hardware a little more is accepted."""
import json
import os
import shutil
import subprocess
import sys

from e2e import ANYPERF, ENV, main, run, stat, stat_json

FIXED = os.environ["E2E_FIXED"]
EXACT = "CONFORM_EXACT" in os.environ
DEVICES = "/sys/bus/event_source/devices"
PMU = next((d for d in sorted(os.listdir(DEVICES)) if d.startswith("armv8_pmuv3")), None) \
    if os.path.isdir(DEVICES) else None
ROUND = 1 + 2 * 1048576 + 2


def instructions(rounds):
    return 6 + rounds * ROUND


def command(rounds):
    return ["--", FIXED, *["again"] * (rounds - 1)]


def perf(events, rounds=1, *options):
    """[(count or status, share of the time in %)] of perf stat, in the order of the events."""
    r = subprocess.run(["perf", "stat", "-x", ";", *options, "-e", events, *command(rounds)],
                       capture_output=True, text=True, env=ENV, timeout=60, check=False)
    assert r.returncode == 0, r
    rows = [line.split(";") for line in r.stderr.splitlines() if line.count(";") >= 4]
    return [(int(row[0]) if row[0].isdigit() else row[0], float(row[4] or 0)) for row in rows]


def ours(events, rounds=1, *options):
    [report] = stat_json(*options, "-e", events, *command(rounds))
    names = {"not-supported": "<not supported>", "not-counted": "<not counted>"}
    return [(c["count"] if c["status"] == "ok" else names[c["status"]],
             c.get("running_percent", 0)) for c in report["counts"]]


def close(a, b, part):
    return isinstance(a, int) and isinstance(b, int) and abs(a - b) <= part * max(a, b)


def same(events, wanted=None, part=0.02):
    """perf and anyperf count the same, and what is wanted; returns the counts. On hardware within
    that part."""
    theirs, own = perf(events), ours(events)
    assert len(theirs) == len(own), (theirs, own)
    for i, ((a, _), (b, _)) in enumerate(zip(theirs, own)):
        assert a == b or not EXACT and close(a, b, part), (events, theirs, own)
        if wanted and wanted[i] is not None:
            assert b == wanted[i] or not EXACT and close(b, wanted[i], 0.02), (events, own)
    return [count for count, _ in own]


def test_instructions_and_cycles():
    n = instructions(1)
    counts = same("instructions:u,cycles:u", [n, None])
    assert counts[1] > 0
    if EXACT:
        assert counts[1] == 2 * n, counts


def test_names_of_one_event():
    n = instructions(1)
    same(f"instructions:u,r8:u,r08:u,{PMU}/inst_retired/u,{PMU}/event=0x8/u,inst_retired:u",
         [n] * 6)
    counts = same(f"cycles:u,r11:u,{PMU}/cpu_cycles/u,{PMU}/event=0x11/u,cpu_cycles:u")
    assert not EXACT or counts == [2 * n] * 5, counts


def test_events_that_there_are_not():
    # Whatever the PMU has of them, both say the same.
    same("branches:u,branch-misses:u,cache-references:u,cache-misses:u,bus-cycles:u,ref-cycles:u",
         part=1)
    same("stalled-cycles-frontend:u,stalled-cycles-backend:u,L1-dcache-loads:u,LLC-loads:u,r21:u",
         part=1)


def test_modes():
    """Kernel mode is of the start and the end of the program, and no two runs are the same."""
    (user, _), (kernel, _), (both, _) = ours("instructions:u,instructions:k,instructions")
    theirs = [count for count, _ in perf("instructions:u,instructions:k,instructions")]
    assert close(user + kernel, both, 0.02), (user, kernel, both)
    assert close(user, theirs[0], 0.02) and close(both, theirs[2], 0.1), (user, both, theirs)
    assert 1000 < kernel and close(kernel, theirs[1], 0.9), (kernel, theirs)


def test_long_events():
    n = instructions(1)
    long = f"{PMU}/inst_retired,long=1/u"
    assert same(f"{long},{PMU}/cpu_cycles,long=1/u", [n, None])
    # Three are six counters of 32 bits; one more never fits there.
    [*three] = same("{" + ",".join([long] * 3) + "}", [n] * 3)
    assert three == [three[0]] * 3
    group = "{" + ",".join([long] * 4) + "}"
    last = ours(group)[3][0]
    assert last == perf(group)[3][0], last
    if last == "<not supported>":
        r = stat("-e", group, *command(1))
        assert "does not fit together" in r.err, r


def test_user_access():
    n = instructions(1)
    counts = same(f"{PMU}/inst_retired,rdpmc=1/u,{PMU}/cpu_cycles,rdpmc=1,long=1/u,"
                  f"{PMU}/inst_retired,rdpmc=1,long=1/u", [n, None, None])
    if counts[2] == "<not supported>":
        r = stat("-e", f"{PMU}/inst_retired,rdpmc=1,long=1/u", *command(1))
        assert "this PMU has no 64-bit ones" in " ".join(r.err.split()), r
    r = stat("-a", "-e", f"{PMU}/inst_retired,rdpmc=1/", "true")
    assert "a task reading itself" in " ".join(r.err.split()), r


def test_groups():
    n = instructions(1)
    same("{instructions:u,cycles:u},{r8:u,r11:u,instructions:u}", [n, None, n, None, n])


def test_multiplexed():
    """Nine events on seven counters: each is on for a part of the time, and scaled."""
    events = f"r8:u,instructions:u,{PMU}/inst_retired/u,r08:u,{PMU}/event=8/u,{PMU}/event=0x8/u," \
             f"cycles:u,r11:u,cpu_cycles:u"
    rounds, n = 60, instructions(60)
    theirs, own = perf(events, rounds), ours(events, rounds)
    for (a, shared), (b, share) in zip(theirs, own):
        assert close(a, b, 0.02), (theirs, own)
        assert abs(shared - share) < 15, (theirs, own)
    if EXACT:
        assert all(50 < share < 95 for _, share in own), own
        assert all(close(count, n, 0.01) for count, _ in own[:6]), own
        assert all(close(count, 2 * n, 0.01) for count, _ in own[6:]), own


def test_multiplexed_groups():
    """The members of a group are on together, so of two of one kind neither has more."""
    groups = "{instructions:u,cycles:u},{r8:u,r11:u},{inst_retired:u,cpu_cycles:u},{r8:u,r11:u}"
    rounds, n = 60, instructions(60)
    theirs, own = perf(groups, rounds), ours(groups, rounds)
    for counts in theirs, own:
        for (leader, on), (member, also) in zip(counts[::2], counts[1::2]):
            assert on == also, counts
            if EXACT:
                assert 50 < on < 95 and abs(member - 2 * leader) < 8, counts
                assert close(leader, n, 0.01), counts


def test_whole_cpus():
    (a, _), (b, _) = ours("instructions,cycles", 20, "-a")
    (c, _), (d, _) = perf("instructions,cycles", 20, "-a")
    assert close(a, c, 0.05) and close(b, d, 0.05), (a, b, c, d)
    assert a > instructions(20), a


def test_list_and_doctor():
    r = run("list", f"{PMU}/*")
    assert r.status == 0 and f"{PMU}/inst_retired/" in r.out, r
    # What the list finds to open is what stat counts, in user mode as well.
    r = run("list", "--json", "--check", "hw")
    for event in json.loads(r.out)["events"]:
        status = stat_json("-e", event["name"], "true")[0]["counts"][0]["status"]
        assert (status == "ok") == event["opens"], (event, status)
    r = run("doctor")
    assert PMU in r.out and "AP_OPEN_SELF_READ" in r.out, r


def test_the_translator_is_for_another_cpu():
    for args in ("run", "true"), ("stat", "--pmu=virtual", "-e", "instructions", "true"):
        r = run(*args)
        assert r.status == 125 and "the translator is for x86-64" in r.err, r
    r = run("doctor")
    assert "the translator is for x86-64" in " ".join(r.out.split()), r


if __name__ == "__main__":
    if not PMU or not shutil.which("perf"):
        print("needs the kernel's armv8_pmuv3 and perf")
        sys.exit(77)
    main(globals())
