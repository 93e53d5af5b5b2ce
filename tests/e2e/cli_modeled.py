#!/usr/bin/env python3
"""What programs count on a machine that is simulated: accesses whose misses are known."""
import json
import os
import re
import shutil
import subprocess

from e2e import ANYPERF, ENV, counts, main, scratch, stat_json

WALKING = os.environ["E2E_WALKING"]
REPEATING = os.environ["E2E_REPEATING"]
MB = 1 << 20
EVENTS = ("L1-dcache-loads:u,L1-dcache-load-misses:u,LLC-load-misses:u,dTLB-load-misses:u,"
          "instructions:u")
ALL = ("L1-dcache-loads:u,L1-dcache-stores:u,L1-dcache-load-misses:u,branch-misses:u,cycles:u,"
       "instructions:u,cache-references:u,cache-misses:u,L1-dcache-store-misses:u,"
       "LLC-loads:u,LLC-load-misses:u,dTLB-loads:u,dTLB-load-misses:u,dTLB-store-misses:u,"
       "L1-dcache-prefetches:u,L1-icache-load-misses:u,iTLB-load-misses:u,branches:u")


def counted(*args, events=EVENTS, status=0, options=()):
    """By event, of the machine of cachegrind: L1D 32 KB, LL 8 MB, 64 entries in the TLB."""
    report, = stat_json(*options, "--machine", "cachegrind", "--model-windows=no", "-e", events,
                        "--", WALKING, *args, status=status)
    return {name: c["value"] for name, c in counts(report).items()}


def near(value, want, room):
    assert want <= value <= want + room, (value, want, room)


def as_it_is_told(machine, program, directory, sampled):
    """What PROGRAM counts. While an event of the model samples, each access is told to the model;
    else those are left out that the filter in translated code knows."""
    out = os.path.join(directory, "counted")
    # Something is sampled in any case, since perl has more to do the more there is in its
    # environment; instructions are not of the model. The period is never reached.
    event = "branch-misses:u" if sampled else "instructions:u"
    subprocess.run([ANYPERF, "run", "--deterministic", "--machine", machine,
                    "--model-windows=no", "--", ANYPERF, "record", "-o", os.path.join(directory, "data"), "-c", str(10 ** 12),
                    "-e", event, "--",
                    ANYPERF, "stat", "-j", "-o", out, "-e", ALL, "--", *program],
                   env={**ENV, "LC_ALL": "C"}, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=120, check=True)
    with open(out, encoding="utf-8") as f:
        return {c["event"]: c["value"] for c in json.loads(f.read())["counts"]}


def test_the_filter_changes_no_count():
    text = os.path.abspath(__file__)
    with scratch() as d:
        for machine in "zen4", "skylake-server":
            for program in ["gzip", "-c", text], ["sort", text], ["perl", "-ne", "$h{$_}++", text]:
                if not shutil.which(program[0]):
                    continue
                each = as_it_is_told(machine, program, d, True)
                filtered = as_it_is_told(machine, program, d, False)
                # What instructions cost by themselves depends on where paths end.
                cycles = [c.pop("cycles:u") for c in (each, filtered)]
                assert abs(cycles[0] - cycles[1]) <= cycles[0] / 1000, (machine, program, cycles)
                assert filtered == each, (machine, program, filtered, each)
                assert all(each[e] for e in ALL.split(",")[:4]), each


def test_misses_of_a_walk():
    nothing = counted("walk", "64", "0")
    once, ten = counted("walk", str(MB), "1"), counted("walk", str(MB), "10")
    lines = MB // 64
    for c, times in (once, 1), (ten, 10):
        # Each line misses L1D each time; LL once; a page misses the TLB each time.
        near(c["L1-dcache-loads"] - nothing["L1-dcache-loads"], lines * times, 20 * times)
        near(c["L1-dcache-load-misses"] - nothing["L1-dcache-load-misses"], lines * times - 600,
             1200)
        near(c["LLC-load-misses"] - nothing["LLC-load-misses"], lines - 600, 1200)
        near(c["dTLB-load-misses"] - nothing["dTLB-load-misses"], MB // 4096 * times - 70, 140)
    # What fits stays.
    small = counted("walk", "16384", "100")
    near(small["L1-dcache-load-misses"] - nothing["L1-dcache-load-misses"], 0, 700)
    assert small["L1-dcache-loads"] - nothing["L1-dcache-loads"] >= 100 * 256, small


def test_the_same_each_time():
    for what in ("walk", "100000", "3"), ("random", "50000"), ("fork",):
        runs = [counted(*what, options=["--deterministic"], events=EVENTS + ",branch-misses:u")
                for _ in range(2)]
        assert runs[0] == runs[1], runs


def test_instructions_are_what_they_are_without():
    for what in ("walk", str(MB), "3"), ("random", "50000"), ("jit", "500"):
        with_model = counted(*what, options=["--deterministic"])
        without = counted(*what, options=["--deterministic"], events="instructions:u")
        assert with_model["instructions"] == without["instructions"], (with_model, without)


def test_random_branches():
    n = 200000
    misses = counted("random", str(n), events="branch-misses:u")["branch-misses"]
    assert n * 0.45 < misses < n * 0.55 + 3000, misses


def test_threads():
    one, four = counted("threads", "1", str(MB)), counted("threads", "4", str(MB))
    lines = MB // 64
    near(four["L1-dcache-load-misses"] - one["L1-dcache-load-misses"], 3 * lines, 3 * 800)


def test_fork():
    # 64 KB do not fit into L1D, so each of the three walks misses it; the child finds LL as it was.
    c, nothing = counted("fork"), counted("walk", "64", "0")
    near(c["L1-dcache-load-misses"] - nothing["L1-dcache-load-misses"], 3 * 1024, 1500)
    # What both do besides differs by a few lines, as the stack lies.
    near(c["LLC-load-misses"] - nothing["LLC-load-misses"], 1024 - 20, 500)


def test_exec():
    # The new program begins with cold caches, and what was counted before stays.
    c, alone = counted("exec", "walk", str(MB), "1"), counted("walk", str(MB), "1")
    assert c["L1-dcache-load-misses"] > alone["L1-dcache-load-misses"] + 500, (c, alone)


def test_who_is_killed():
    c = counted("kill", str(MB), status=128 + 9)
    assert c["L1-dcache-load-misses"] >= MB // 64, c


def test_code_that_is_written():
    # 3,000 lines, which miss; and each version of the function is fetched and executed as it is.
    c, nothing = counted("jit", "3000"), counted("jit", "0")
    near(c["L1-dcache-load-misses"] - nothing["L1-dcache-load-misses"], 3000, 2000)


def peak_memory(machine):
    """KB of the largest process of a `true` that the machine models."""
    with subprocess.Popen([ANYPERF, "stat", "-o", "/dev/null", "--pmu=virtual", "--machine",
                           machine, "-e", "cycles:u", "--", "true"], env=ENV) as p:
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = status
    assert not status, (machine, status)
    return usage.ru_maxrss


def test_a_large_cache_takes_memory_as_it_is_used():
    """That of some servers has 300 MB, and short programs use hardly any of it."""
    text = subprocess.run([ANYPERF, "machine", "zen4"], env=ENV, capture_output=True, text=True,
                          check=True).stdout
    small = next(line for line in text.splitlines() if line.startswith("ll "))
    large = re.sub(r"size \S+ ways \S+", "size 512M ways 16", small)
    with scratch() as d:
        path = os.path.join(d, "large")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(small, large).replace("machine zen4", "machine large"))
        assert peak_memory(path) < peak_memory("zen4") + 8000, (peak_memory(path),
                                                                peak_memory("zen4"))


def test_strings_that_are_interrupted():
    """What a string instruction has stored until then counts; the rest does when it goes on."""
    natively = {how: subprocess.run([REPEATING, how], capture_output=True, text=True,
                                    check=True).stdout for how in ("step", "fault", "signals")}
    assert natively["step"] == "9 traps, 10 bytes\n", natively
    for machine in "cachegrind", "zen4":
        for how, said in natively.items():
            with scratch() as d:
                out = os.path.join(d, "counted")
                r = subprocess.run([ANYPERF, "stat", "-j", "-o", out, "--pmu=virtual", "--machine",
                                    machine, "--model-windows=no", "-e", "L1-dcache-stores:u", "--",
                                    REPEATING, how], env=ENV, capture_output=True, text=True,
                                   check=True, timeout=100)
                assert r.stdout == said, (machine, how, r)
                with open(out, encoding="utf-8") as f:
                    stores = json.load(f)["counts"][0]["value"]
            # All but the first page, once; or the whole, at least twice.
            fills, rest = divmod(stores + (4096 if how == "fault" else 0), 8 * MB)
            assert {"step": fills == 0, "fault": fills == 1, "signals": fills >= 2}[how], \
                (machine, how, stores)
            assert rest < 400000, (machine, how, stores)


def test_of_a_program_that_runs():
    p = subprocess.Popen([ANYPERF, "run", "--machine", "cachegrind", "--", "sh", "-c",
                          f"{WALKING} walk {MB} 2000000 & "
                          f"sleep 0.5; {ANYPERF} stat -j -e L1-dcache-load-misses:u -p $! "
                          "--timeout 500 2>&1; kill $!; wait"],
                         env=ENV, stdout=subprocess.PIPE, text=True)
    out, _ = p.communicate(timeout=120)
    assert '"L1-dcache-load-misses:u"' in out and '"value": 0' not in out, out



main(globals())
