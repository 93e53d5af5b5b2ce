#!/usr/bin/env python3
"""anyperf compare: counts that are exact, what varies by its name, and what it says when there is
nothing to compare. No time is held against another."""
import csv
import fcntl
import io
import json
import os
import re
import signal
import struct
import subprocess
import termios
import time

import compare_schema
from compare_runs import (FIXED, QUANTITIES, REGION, baseline, compare, compared, fixed, main,
                          region, vs)
from e2e import ANYPERF, ENV, scratch

THREADS = os.environ["E2E_REGION_THREADS"]
STATIC = os.environ["E2E_REGION_STATIC"]  # the same, static and position-independent
NONDET = os.environ["E2E_NONDET"]
TURN = 200000


def test_counts_are_exact():
    r = compared(*vs(fixed(1), fixed(3)))
    assert r["schema"] == "anyperf-compare-1" and r["pmu"] == "virtual" and not r["interrupted"], r
    a, b = r["commands"]
    assert [a["name"], b["name"]] == ["A", "B"] and b["command"] == fixed(3), r
    assert a["not_fixed"] == b["not_fixed"] == [], r
    for side, words in ((a, 1), (b, 3)):
        instructions, branches = side["counts"]
        assert instructions == {"event": "instructions:u", "status": "ok", "exact": True,
                                "value": TURN * words + 5, "per_run": [TURN * words + 5] * 2}, side
        assert branches["value"] == TURN // 2 * words + 1, side
    change = r["comparisons"][0]
    assert change["of"] == "B" and change["against"] == "A", r
    instructions = change["counts"][0]
    assert instructions["exact"] and instructions["change_percent"] > 199.9, r
    assert [instructions["change" + x] for x in ("", "_min", "_max")] == [2 * TURN] * 3, r


def test_text():
    r = compare("--name", "old", "--name=new", *vs(fixed(1), fixed(2)))
    assert r.out.startswith(f"old: '{FIXED}'\nnew: '{FIXED} x'\n"), r
    assert re.search(r"^ +Counts +old +new +change$", r.out, re.M), r
    assert re.search(r"^ +instructions:u +200005 +400005 +\+200000 +\+99\.998 %  exact$", r.out,
                     re.M), r
    assert not r.err and "varies" not in r.out, r
    # The other way round it is less, and nothing is no change.
    r = compare(*vs(fixed(2), fixed(1), fixed(2)))
    assert re.search(r"instructions:u +400005 +200005 +-200000 +-49\.999 %  exact", r.out), r
    assert re.search(r"instructions:u +400005 +400005 +0 +\+0\.000 %  exact", r.out), r
    assert max(map(len, r.out.splitlines())) <= 100, r


def test_what_varies_is_named():
    r = compared(*vs([NONDET, "nothing"], [NONDET, "pids"]))
    assert [c["not_fixed"] for c in r["commands"]] == [[], ["pids"]], r
    r = compare(*vs([NONDET, "nothing"], [NONDET, "pids"]))
    assert "B made use of what varies between runs: pids." in r.out, r
    assert "A made use" not in r.out, r
    # A program that reads a clock until it has gone on counts differently each time.
    wait = "import time\nend = time.monotonic_ns() + 3000000\nwhile time.monotonic_ns() < end: pass"
    python = ["python3", "-I", "-S", "-c"]
    r = compared("--env", "PYTHONHASHSEED=0", *vs(["true"], [*python, wait]))
    clock = r["commands"][1]
    assert "wall time" in clock["not_fixed"], r
    count = clock["counts"][0]
    assert not count["exact"] and len(count["per_run"]) == 5, r
    assert min(count["per_run"]) <= count["value"] <= max(count["per_run"]), r
    change = r["comparisons"][0]["counts"][0]
    assert not change["exact"] and change["change_min"] < change["change_max"], r
    r = compare(*vs(["true"], [*python, wait]))
    assert re.search(r"instructions:u .* varies\n +B: \d+ to \d+ in 5 runs\n", r.out), r


def test_runs_that_read_the_clock_are_apart():
    """Two runs within a second would agree by chance."""
    seconds = "import time\nfor _ in range(int(time.time()) % 3600): pass"
    r = compared("--env=PYTHONHASHSEED=0", *vs(*[["python3", "-I", "-S", "-c", seconds]] * 2))
    for c in r["commands"]:
        assert not c["counts"][0]["exact"] and len(set(c["counts"][0]["per_run"])) == 5, r
    change = r["comparisons"][0]["counts"][0]
    assert change["change_min"] <= 0 <= change["change_max"], r


def test_events():
    r = compared("-e", "branches:u,cycles", "--event=anyperf/taken/", *vs(fixed(1), fixed(1)))
    branches, cycles, taken = r["commands"][0]["counts"]
    assert branches["value"] == TURN // 2 + 1 and taken["value"] == TURN // 2 - 1, r
    assert cycles["status"] == "not-supported" and cycles["reason"]["why"], r
    assert "value" not in cycles and "does not see" in cycles["reason"]["why"], r
    assert [c["event"] for c in r["comparisons"][0]["counts"]] == ["branches:u", "anyperf/taken/u"]
    r = compare("-e", "branches,cycles", *vs(fixed(1), fixed(1)))
    assert re.search(r"cycles +<not counted>\n +cpu-cycles depends on", r.out), r
    r = compare("-e", "no-such-event", *vs(fixed(1), fixed(1)), status=125)
    assert 'no event "no-such-event"' in r.err and not r.out, r


def test_the_machine_whose_model_counts():
    for args, said in ((["--machine=nosuch"], "--machine: there is no machine and no file"),
                       (["--machine", "-j"], "--machine: what comes next is its name, as host"),
                       (["--machine=zen3", "--pmu=kernel"], "for counts of the virtual PMU")):
        r = compare(*args, *vs(["true"], ["true"]), status=125)
        assert said in r.err and not r.out, r
    with scratch() as d:
        kept = os.path.join(d, "kept")
        compare("--save", kept, "-e", "instructions,cycles", "--machine=zen3", "--", FIXED)
        b = baseline(kept)
        compare_schema.check(b, compare_schema.BASELINE)
        assert b["machine"] == "zen3" and [c["event"] for c in b["counts"]] == [
            "instructions:u", "cycles:u"], b
        r = compare("--baseline", kept, "-e", "instructions,cycles", "--machine=skylake-server",
                    "--", FIXED, status=2)
        assert "it was counted with the model of zen3, and now with that of skylake-server" in r.err
        r = compare("--baseline", kept, "-e", "instructions,cycles", "--machine=zen3", "--", FIXED)
        assert r.out.count("exact") == 2, r
        r = compare("--baseline", kept, "--fail-if=time>5%", "--", FIXED, status=125)
        assert "'time>5%' is about native runs, and with --baseline there are none" in r.err, r
        # What no machine decides is compared whatever there is.
        for machine in ([], ["--machine=skylake-server"]):
            r = compare("--baseline", kept, *machine, "-e", "instructions", "--", FIXED)
            assert r.out.count("exact") == 1, r
        r = compare("--baseline", kept, "-e", "instructions,cycles", "--fail-if=cycles>1%", "--",
                    FIXED, status=2)
        assert "cpu-cycles depends on" in r.out and "cycles>1%: not to be told" in r.out, r
        assert "name a machine, as --machine=host" in r.out, r
        r = compare("--baseline", kept, "--update", "-e", "cycles", "--machine=skylake-server",
                    "--", FIXED)
        assert baseline(kept)["machine"] == "skylake-server", r


def test_the_kernel_counts():
    r = compared("--pmu=kernel", "-e", "page-faults:u", *vs(["true"], ["true"]))
    assert r["pmu"] == "kernel" and r["commands"][0]["counts"][0]["value"] > 0, r
    assert "not_fixed" not in r["commands"][0], r
    compare("--pmu", "kernel", "--seed", "1", *vs(["true"], ["true"]), status=125)


def test_what_commands_find():
    env = {"PATH": ENV["PATH"], "HOME": "/nowhere", "COMPARE_TEST": "inherited", "SHLVL": "7"}
    probe = ["sh", "-c", f'[ "$COMPARE_TEST" = inherited ] && exec {FIXED} x; exec {FIXED}']

    def counts(*options, **more):
        return [c["counts"][0]["value"] for c in compared(*options, *vs(["env"], probe),
                                                           **more)["commands"]]

    # dash takes so many instructions for each digit of its parent's pid.
    def alike(one, other):
        return one[0] == other[0] and abs(one[1] - other[1]) < 200

    base, let = counts(env=env), counts("--env", "COMPARE_TEST", env=env)
    assert let[1] - base[1] > TURN * 0.9, (base, let)
    assert alike(counts("--env=COMPARE_TEST=inherited"), let)
    # Whatever else the environment has, the counts are the same; but not with all of it.
    assert alike(counts(env={**env, "X" * 50: "y" * 99}), base)
    assert counts("--env=*", env={**env, "X" * 50: "y" * 99})[1] > TURN * 2
    # Input comes from the beginning for each run; output goes nowhere.
    with scratch() as d:
        path = os.path.join(d, "input")
        with open(path, "w", encoding="utf-8") as f:
            f.write("5\n" * 3)
        reads = ["sh", "-c", f"exec {FIXED} $(cat)"]
        r = compared("--input", path, *vs(reads, [*reads[:2], f"exec {FIXED} 5 5 5"]))
        a, b = (c["counts"][0]["value"] for c in r["commands"])
        assert len(set(r["commands"][0]["counts"][0]["per_run"])) == 1 or a > 4 * TURN, r
        assert a > 4 * TURN and b > 4 * TURN, r
        r = compare("--input", os.path.join(d, "none"), *vs(reads, reads), status=125)
        assert "--input: cannot read" in r.err, r
    assert "hello" not in compare(*vs(["echo", "hello"], ["true"])).out.replace("'echo hello'", "")
    r = compare("--show-output", *vs(["echo", "hello"], ["true"]))
    assert r.out.count("hello\n") >= 2, r


def test_no_signal_is_ignored_or_blocked():
    """Runners and shells leave some ignored, and programs look."""
    probe = ["sh", "-c", "grep -E 'SigBlk|SigIgn' /proc/self/status"]

    execute = "os.execv(sys.argv[1], sys.argv[1:])"

    def found(before, times=False, begin=execute):
        p = subprocess.run(["python3", "-c", f"import os, signal, sys\n{before}\n{begin}",
                            ANYPERF, "compare",
                            "--time-only" if times else "--counts-only", "--runs=1", "--warmup=0",
                            "--show-output", *vs(probe, ["true"])], env=ENV, text=True,
                           capture_output=True, check=True, timeout=60)
        return set(re.findall(r"Sig(?:Blk|Ign):\t(\w+)", p.stdout))

    ignored = "for s in signal.valid_signals() - {9, 19, 1}: signal.signal(s, signal.SIG_IGN)"
    for before in (ignored, "signal.pthread_sigmask(signal.SIG_BLOCK, {10, 12, 14})"):
        for times in (False, True):
            assert found(before, times) == {"0" * 16}, (before, times)
    # glibc's ignores two signals of its own in what it starts.
    spawn = "os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)"
    assert found("", begin=spawn) == {"0" * 16}
    # But for what nohup does, which is kept from the command as from us.
    assert found("signal.signal(1, signal.SIG_IGN)") == {"0" * 16, "0" * 15 + "1"}
    with scratch() as d:
        mark = os.path.join(d, "ran")
        p = subprocess.Popen(["nohup", ANYPERF, "compare", "--counts-only", "--warmup=0",
                              *vs(["sh", "-c", f": > {mark}; sleep 1"], ["true"])], env=ENV,
                             text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        while not os.path.exists(mark):
            time.sleep(0.05)
        p.send_signal(signal.SIGHUP)
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0 and "Interrupted" not in out, (p.returncode, out, err)


def test_what_is_shown_of_the_machine():
    program = ["python3", "-I", "-S", "-c", "import os; len(os.sched_getaffinity(0))"]
    r = compared(*vs(program, ["true"]))
    assert "CPUs" in r["commands"][0]["not_fixed"], r
    assert "Try --cpus=N" in compare(*vs(program, ["true"])).out
    counts = []
    for cpus in ("1", "9"):
        r = compared("--cpus", cpus, "--cpu-features=x86-64-v2", "--seed=3", *vs(program, ["true"]))
        assert "CPUs" not in r["commands"][0]["not_fixed"], r
        counts.append(r["commands"][0]["counts"][0]["value"])
    assert counts[0] != counts[1], counts


def test_times():
    r = compared("--time-only", "--runs", "7", "--warmup=0", *vs(fixed(1), fixed(100)), times=True)
    a, b = r["commands"]
    for side in (a, b):
        assert "counts" not in side and "not_fixed" not in side, r
        assert [t["quantity"] for t in side["times"]] == QUANTITIES, r
        for t in side["times"]:
            assert len(t["per_run"]) == 7 and 0 <= t["outliers"] <= 7, t
            assert t["min"] <= t["low_quartile"] <= t["median"] <= t["high_quartile"] <= t["max"]
            assert t["min"] == min(t["per_run"]) and t["max"] == max(t["per_run"]), t
            assert t["median"] == sorted(t["per_run"])[3] and (t["median"] > 0), t
        assert [t["unit"] for t in side["times"]] == ["s", "s", "bytes", ""], r
    ratios = r["comparisons"][0]["times"]
    assert [t["quantity"] for t in ratios] == QUANTITIES and not r["comparisons"][0]["counts"], r
    for t in ratios:
        assert t["ratio_low"] <= t["ratio"] <= t["ratio_high"], t
        shown = {(True, True): "no-difference", (False, True): "more", (True, False): "less"}
        assert t["shown"] == shown[t["ratio_low"] <= 1, t["ratio_high"] >= 1], t
    faults = [s["times"][3]["median"] for s in (a, b)]
    assert abs(ratios[3]["ratio"] - faults[1] / faults[0]) < 1e-5, r
    # Too few rounds for an interval.
    r = compared("--time-only", "--runs=3", "--seed=2", *vs(["true"], ["true"]), times=True)
    for t in r["comparisons"][0]["times"]:
        assert t["shown"] == "too-few-runs" and "ratio_low" not in t, t


def test_times_as_text():
    r = compare("--runs", "6", *vs(fixed(1), fixed(1)), times=True)
    assert re.search(r"instructions:u +200005 +200005 .* exact\n", r.out), r
    line = (r"[\d.]+ (?:s|ms|us) +[\d.]+ (?:s|ms|us) +[+-][\d.]+ % \[[+-][\d.]+, [+-][\d.]+\] +"
            r"(?:slower|faster|no difference shown)\n")
    assert re.search(r"  Of 6 runs +A +B +change 95 % interval\n  time +" + line, r.out), r
    assert re.search(r"  peak memory +[\d.]+ MB +[\d.]+ MB +\S+ % \[", r.out), r
    assert re.search(r"  page faults +\d+ +\d+ +\S+ % \[", r.out), r
    r = compare("--runs=2", "--time-only", *vs(fixed(1), fixed(1)), times=True)
    assert r.out.count("too few runs to tell") == 4 and "Counts" not in r.out, r
    # At least ten rounds, however short the time.
    r = compared("--time-only", "--for", "1ms", *vs(["true"], ["true"]), times=True)
    assert len(r["commands"][0]["times"][0]["per_run"]) == 10, r


def test_boxes_on_a_wide_terminal():
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
    p = subprocess.Popen([ANYPERF, "compare", "--time-only", "--runs=6",
                          *vs(["true"], ["sleep", "0.02"])], env=ENV, stdout=slave,
                         stderr=subprocess.PIPE)
    os.close(slave)
    text = b""
    while True:
        try:
            more = os.read(master, 4096)
        except OSError:
            break
        if not more:
            break
        text += more
    os.close(master)
    assert p.wait(30) == 0 and not p.stderr.read(), text
    p.stderr.close()
    text = text.decode()
    boxes = re.findall(r"^  ([AB]) {12}([-=| ]*)\r$", text, re.M)
    assert [b[0] for b in boxes] == ["A", "B"] and all(b[1].count("|") == 1 for b in boxes), text
    assert boxes[0][1].index("|") < boxes[1][1].index("|"), text
    assert re.search(r"^          time [\d.]+ .s +[\d.]+ .s\r$", text, re.M), text


def test_around_each_run():
    with scratch() as d:
        path = os.path.join(d, "log")
        r = compare("--pre", f"echo pre >> {path}", "--post", f"echo post >> {path}", "--runs=2",
                    "--warmup", "2", *vs(["sh", "-c", f"echo a >> {path}"],
                                         ["sh", "-c", f"echo b >> {path}"]), times=True)
        assert not r.err, r
        with open(path, encoding="utf-8") as f:
            log = f.read().split()
        # Two to warm up, two to count, two to time.
        assert log[0::3] == ["pre"] * 12 and log[2::3] == ["post"] * 12, log
        assert log[1:24:3] == ["a", "b"] * 4 and sorted(log[25::3]) == ["a", "a", "b", "b"], log
        for option in ("--pre", "--post"):
            r = compare(option, "exit 3", *vs(["true"], ["true"]), status=125)
            assert f"{option}: 'exit 3' failed with status 3" in r.err and not r.out, r


def test_between_two_places():
    for places in (("part.begin", "part.end"), ("enter", "leave"), ("part.begin", "leave")):
        between = ["--from", places[0], f"--to={places[1]}"]

        def counted(*commands):
            r = compared(*between, *vs(*commands))
            assert all(c["exact"] for x in r["commands"] for c in x["counts"]), r
            assert [c["event"] for c in r["commands"][0]["counts"]] == ["instructions:u",
                                                                        "branches:u"], r
            return [x["counts"][0]["value"] for x in r["commands"]]

        # What is done outside is not counted, what is done inside is, as often as it is passed.
        less, same, more, twice = counted(region(1, 1000, 5), region(1, 1000, 50000),
                                          region(1, 2000, 5), region(2, 1000, 5))
        assert 1000 < less == same < 20000, (less, same)
        assert more - less == counted(region(1, 3000), region(1, 2000))[0] - more, (less, more)
        assert abs(twice - 2 * less) < 10 and more - less >= 3000, (less, more, twice)
    # Of one mark to another that is passed once.
    whole = compared("--from=part.begin", "--to=after", *vs(region(5, 100), region(5, 200)))
    assert (whole["from"], whole["to"]) == ("part.begin", "after"), whole
    assert whole["comparisons"][0]["counts"][0]["change"] > 0, whole
    r = compare("--from=part.begin", "--to=part.end", "-e", "anyperf/taken/", "--fail-if",
                "anyperf/taken/>0", *vs(region(3, 7), region(3, 8)), status=1)
    assert "broken: B is +3." in r.out, r


def between_marks(name, program, *commands):
    r = compared(f"--from={name}.begin", f"--to={name}.end",
                 *vs(*[[program, *map(str, c)] for c in commands]))
    assert all(c["exact"] for x in r["commands"] for c in x["counts"]), r
    return [x["counts"][0]["value"] for x in r["commands"]]


def test_between_places_of_threads():
    """Each thread for itself: what others do meanwhile is not counted."""
    for program in THREADS, STATIC:
        one, outside, four, more = between_marks("part", program, (1, 500, 5), (1, 500, 50000),
                                                 (4, 500, 500), (4, 1000, 5))
        assert one == outside and four == 4 * one and more > 1.9 * four, (one, outside, four, more)


def test_between_places_of_a_recursion():
    """Of a pair of marks the outermost counts; of other places the first that comes."""
    for program in THREADS, STATIC:
        flat, outside, deep, deeper = between_marks("dive", program, (0, 500), (9, 500, 5000),
                                                    (0, 500, 1, 1), (0, 500, 1, 2))
        assert flat == outside and deep - flat == deeper - deep > 0.99 * flat, (flat, deep, deeper)
        # main() is not in it.
        r = compared("--from=dive", "--to=dive.end", *vs([program, "0", "500", "1", "3"],
                                                         [program]))
        assert 0 < r["commands"][0]["counts"][0]["value"] - 5 * flat / 2 < 50, (r, flat)
    r = compare("--from=dive.begin", "--to=dive.end", *vs([THREADS, "0", "1", "1", "5", "3"],
                                                          [THREADS]), status=2)
    assert "a thread of A begins the part 3 times more often than it ends it" in r.err, r
    # One that is left open at the end is none.
    r = compare("--from=dive.begin", "--to=dive.end", *vs([THREADS, "0", "1", "1", "0", "1"],
                                                          [THREADS]), status=2)
    assert "no thread of A has gone from the place of --from" in r.err, r


def test_by_symbol():
    old, new = region(1, 100000, 300000), region(1, 100000, 300000, 700)
    r = compared("--by", "symbol", *vs(old, new, old))
    added = r["comparisons"][0]["counts"][0]["change_percent"]
    assert 0.05 < added < 0.2, r  # a change that no time would show
    symbols = r["comparisons"][0]["symbols"]
    # Every instruction more is in some function: most in the one that was planted, some where its
    # argument is read.
    assert symbols[0]["symbol"] == "planted" and symbols[0]["change"] == 700 * 6, r
    assert all(s["exact"] and s["may_be_off"] == 0 for s in symbols), r
    assert sum(s["change"] for s in symbols) == r["comparisons"][0]["counts"][0]["change"], r
    assert r["comparisons"][1]["symbols"] == [], r
    r = compare("--by=symbol", *vs(old, new))
    assert re.search(r"Where instructions:u of B changed, by counts of all functions:\n"
                     r"  planted +\+4200  exact\n", r.out), r
    assert "in no function by more than it may be off" in compare("--by=symbol", *vs(old, old)).out
    r = compare("--by=symbol", "--format=markdown", *vs(old, new))
    assert "\n| Where instructions:u changed | change | |\n" in r.out, r
    assert "\n| planted | +4200 | exact |\n" in r.out, r
    r = compare("--by=symbol", "--format=csv", *vs(old, new))
    row, = [x for x in csv.DictReader(io.StringIO(r.out)) if x["what"] == "instructions:u in planted"]
    assert int(row["second"]) - int(row["first"]) == 4200 and row["verdict"] == "exact", r
    r = compare("--by=symbol", "--from=enter", "--to=leave", *vs(old, new), status=125)
    assert "--by is for counts of whole commands" in r.err, r
    # Of a program whose runs differ it is said by how much.
    r = compared("--by=symbol", *vs(["sh", "-c", "sleep 0.1 & wait; kill -0 $$; : $$ $PPID"],
                                    ["sh", "-c", f"sleep 0.1 & wait; exec {FIXED}"]))
    assert {s["symbol"] for s in r["comparisons"][0]["symbols"]} & {"spin", "main", "_start"}, r


def test_by_symbol_of_other_events():
    old, new = region(1, 100000, 300000), region(1, 100000, 300000, 700)
    r = compared("-e", "branches", "--by", "symbol", *vs(old, new, old))
    symbols = r["comparisons"][0]["symbols"]
    assert symbols[0]["symbol"] == "planted" and not symbols[0]["exact"], r
    # It is an estimate: by chance, as by the length of a path, another may lie beyond its range.
    assert all(abs(s["change"]) < 1.5 * s["may_be_off"] for s in symbols[1:]), r
    change = r["comparisons"][0]["counts"][0]["change"]
    assert abs(symbols[0]["change"] - change) <= symbols[0]["may_be_off"] < change, r
    # What is the same runs the same, to the last sample.
    assert r["comparisons"][1]["symbols"] == [], r
    r = compare("-e", "branches", "--by=symbol", *vs(old, new))
    assert re.search(r"Where branches:u of B changed, estimated from a sample in \d+:\n"
                     r"  planted +\+\d+  \+-\d+\n", r.out), r


def test_places_that_are_not_there():
    commands = vs(region(1), region(1))
    for args, said in ((["--from=enter", "--to=nowhere"], "--to: '" + REGION + "' has neither a "
                        "function nor a mark of the name nowhere"),
                       (["--from=none", "--to=leave"], "--from: '"),
                       (["--from=enter"], "--from and --to are for each other"),
                       (["--to=leave"], "--from and --to are for each other"),
                       (["--from=a", "--to=b", "--pmu=kernel"], "are for counts of the virtual"),
                       (["--from=enter", "--to=leave", "-e", "{branches,instructions}"],
                        "take no groups of events")):
        r = compare(*args, *commands, status=125)
        assert said in r.err and not r.out, r
    r = compare("--from=leave", "--to=enter", *commands, status=2)
    assert "no thread of A has gone from the place of --from to that of --to" in r.err
    with scratch() as d:
        script = os.path.join(d, "script")
        with open(script, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n")
        os.chmod(script, 0o755)
        r = compare("--from=enter", "--to=leave", *vs([script], [script]), status=125)
        assert "no program whose addresses are known: a script" in r.err, r
        # A baseline says between which places it was counted.
        kept = os.path.join(d, "baseline")
        compare("--save", kept, "--from=enter", "--to=leave", "--", *region(2))
        compare("--baseline", kept, "--from=enter", "--to=leave", "--fail-if=instructions>0", "--",
                *region(2))
        r = compare("--baseline", kept, "--", *region(2), status=2)
        assert "counted from enter to leave and is from the beginning to the end" in r.err, r
    # The most that can be watched for: more passes than the buffer has room for.
    r = compare("--from=enter", "--to=leave", *vs(region(20000), region(1)), status=2)
    assert "too often" in r.err, r


def test_commands_that_fail():
    r = compare(*vs(["true"], ["false"]), status=2)
    assert "B, 'false', failed with status 1; --show-output" in r.err and not r.out, r
    r = compare("--name", "this", *vs(["sh", "-c", "kill -9 $$"], ["true"]), status=2)
    assert "this, 'sh', was ended by signal 9" in r.err, r
    r = compare("--ignore-exit", *vs(["true"], ["false"]))
    assert "exact" in r.out and not r.err, r
    r = compare(*vs(["true"], ["no-such-program"]), status=127)
    assert "cannot run 'no-such-program'" in r.err and not r.out, r
    assert "cannot run '/'" in compare(*vs(["true"], ["/"]), status=126).err
    r = compare("--timeout", "300", *vs(["true"], ["sleep", "60"]), status=2)
    assert "B, 'sleep', was ended by --timeout, after 300 ms" in r.err, r
    # One that does not listen is ended nevertheless.
    deaf = ["sh", "-c", "trap '' TERM; while :; do :; done"]
    r = compare("--timeout=300", *vs(["true"], deaf), status=2)
    assert "was ended by --timeout" in r.err, r


def test_what_was_finished_is_printed():
    with scratch() as d:
        # The first two runs of it are good, the others fail.
        once = ["sh", "-c", f"echo >> {d}/n; [ $(wc -l < {d}/n) -le 2 ]"]
        r = compare("--runs=6", "--warmup=0", *vs(once, ["true"]), times=True, status=2)
        assert "A, 'sh', failed with status 1" in r.err, r
        assert re.search("instructions:u .*", r.out) and "Of 6 runs" not in r.out, r


def test_what_is_asked_wrongly():
    for args, said in ((["--", "true"], "one command is nothing to compare"),
                       ([], "no command given"),
                       (["--", "true", "--vs"], "no command behind --vs"),
                       (["--", "--vs", "true"], "no command in front of --vs"),
                       (["--", "true", "--vs", "--vs", "true"], "no command in front of --vs"),
                       (["--name", "", *vs(["true"], ["true"])], "a name has 1 to 40 bytes"),
                       (["--name", "a\n::error::b", *vs(["true"], ["true"])], "has no line ends"),
                       (["--name=a"] * 3 + vs(["true"], ["true"]), "3 names for 2 commands"),
                       (["--env", "=x", *vs(["true"], ["true"])], "wants NAME or NAME=VALUE"),
                       (vs(*[["true"]] * 9), "at most 8 commands"),
                       (["--vs", "true"], "there is no command in front of --vs"),
                       (["-e", "", *vs(["true"], ["true"])], "the list of events is empty"),
                       (["--time-only", *vs(["true"], ["true"])], "leave nothing"),
                       (["--for=5", *vs(["true"], ["true"])], "'5' is no time like 30s or 500ms"),
                       (["--for=-1s", *vs(["true"], ["true"])], "is no time like"),
                       (["--for=0ms", *vs(["true"], ["true"])], "is no time like"),
                       (["--format=xml", *vs(["true"], ["true"])], "--format")):
        r = compare(*args, status=125)
        assert said in r.err and not r.out, r


def test_names_that_are_long():
    name = "n" * 40
    r = compare("--name", name, "--name", name[1:], *vs(fixed(1), fixed(2)))
    head, first = re.search(r"^  Counts .*\n  instructions.*", r.out, re.M).group(0).split("\n")
    assert head.index("change") + len("change") == first.index("+200000") + len("+200000"), r
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 25, 0, 0))
    with subprocess.Popen([ANYPERF, "compare", "--counts-only", "--name", name,
                           *vs(fixed(1), fixed(2))], env=ENV, stdout=subprocess.DEVNULL,
                          stderr=slave) as p:
        os.close(slave)
        text = b""
        try:
            while more := os.read(master, 4096):
                text += more
        except OSError:
            pass
    os.close(master)
    # A line that goes on in the next could not be taken away.
    assert p.returncode == 0 and b"counts: nnnnnnnnnnnnnnnn\r" in text, text
    assert max(map(len, text.decode().replace("\x1b[K", "").split("\r"))) == 24, text


def test_formats_of_one_command():
    with scratch() as d:
        kept = os.path.join(d, "kept")
        r = compare("--save", kept, "--format=csv", "--", *fixed(1))
        rows = list(csv.DictReader(io.StringIO(r.out)))
        assert [(x["of"], x["against"], x["what"], x["second"], x["verdict"]) for x in rows] == [
            ("A", "", "instructions:u", "200005", "exact"),
            ("A", "", "branches:u", "100001", "exact")], r
        r = compare("--save", kept, "--format=markdown", "--", *fixed(1))
        assert "\n| instructions:u | 200005 | exact |\n" in r.out, r
        assert compared("--save", kept, "--", *fixed(1))["comparisons"] == [], kept


def test_output_file():
    with scratch() as d:
        for option in ("-o", "--output"):
            path = os.path.join(d, option)
            r = compare(option, path, *vs(fixed(1), fixed(1)))
            with open(path, encoding="utf-8") as f:
                assert "exact" in f.read() and not r.out and not r.err, r
        r = compare("-o", d, *vs(fixed(1), fixed(1)), status=125)
        assert f"cannot write to '{d}'" in r.err, r
    r = compare("-o", "/dev/full", *vs(fixed(1), fixed(1)), status=125)
    assert "cannot write to '/dev/full': No space" in r.err, r


def test_interrupted():
    """What is finished is printed, and a shell's loop ends with us."""
    with scratch() as d:
        mark = os.path.join(d, "ran")
        slow = ["sh", "-c", f"[ -e {mark} ] && exec sleep 60; : > {mark}"]
        p = subprocess.Popen([ANYPERF, "compare", "--warmup=0", *vs(fixed(1), slow)], env=ENV,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not os.path.exists(mark):
            time.sleep(0.05)
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=40)
        assert p.returncode == -signal.SIGINT, (p.returncode, out, err)
        assert "Interrupted: this is what there is so far." in out, (out, err)
        assert re.search(r"instructions:u +200005 ", out), (out, err)
    for options in ([], ["--format=json"]):
        with subprocess.Popen([ANYPERF, "compare", "--warmup=0", *options,
                               *vs(["sh", "-c", "echo >&2; exec sleep 60"], ["true"])], env=ENV,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            time.sleep(1)
            p.send_signal(signal.SIGTERM)
            out, err = p.communicate(timeout=40)
            assert p.returncode == -signal.SIGTERM, (p.returncode, out, err)
            assert "interrupted, before there was anything to compare" in err, (out, err)
            assert not options or json.loads(out)["interrupted"], (out, err)


if __name__ == "__main__":
    main(globals())
