#!/usr/bin/env python3
"""anyperf record --exact -d --alloc-sites: events by where the memory was allocated."""
import json
import os
import shutil
import subprocess
from collections import Counter

from e2e import main, run, scratch, stat_json, counts

ALLOCATING = os.environ["E2E_ALLOCATING"]
STEPS = 20000
LOADS = "L1-dcache-load-misses:u"
OPTIONS = ("--machine=cachegrind", "-d", "--alloc-sites", "-e", LOADS)


def exact(path, *what, options=(), program=ALLOCATING, **more):
    """What is attributed is what was counted beside it, or it is said."""
    r = run("record", "--exact", *OPTIONS, *options, "-o", path, "--", program, *what, **more)
    assert r.status == 0, r
    for said in ("INCOMPLETE", "the counters", "not where", "no room", "SAMPLES",
                 "no allocator"):
        assert said not in r.err, r


def walked(path):
    """Misses of walk() by who has asked for the data."""
    r = run("report", "--json", "-i", path, "-s", "sym,data")
    assert r.status == 0, r
    event = {d["event"]: d for d in map(json.loads, r.out.splitlines())}[LOADS]
    sums = Counter()
    for row in event["rows"]:
        if row.get("symbol") == "walk":
            at = row.get("data", "").split(" at ")[0].split("+")[0]
            sums[os.path.basename(row["data_object"]), at] += row["period"]
    return sums


def expect(sums, **walks):
    """Each walk misses at every step, but for lines that are there still."""
    for site, n in walks.items():
        assert n * (STEPS - 200) <= sums["[heap]", site] <= n * STEPS, (site, n, sums)
    others = [n for (_, site), n in sums.items() if site not in walks]
    assert sum(others) <= 20, sums


def test_each_way_to_ask():
    with scratch() as d:
        for options in ((), ("-g",)):
            exact(f"{d}/a", "malloc", "calloc", "aligned", "memalign", "xmalloc", "malloc",
                  options=options)
            expect(walked(f"{d}/a"), by_malloc=2, by_calloc=1, by_aligned=1, by_memalign=1,
                   by_xmalloc=1)


def test_an_allocator_of_the_program():
    with scratch() as d:
        exact(f"{d}/a", "new", "new")
        expect(walked(f"{d}/a"), by_new=2)
        # What was given back is no block.
        exact(f"{d}/a", "new", "delete")
        sums = walked(f"{d}/a")
        assert STEPS - 200 <= sums.pop(("allocating", "pool")) <= STEPS, sums
        expect(sums, by_new=1)


def test_what_the_compiler_of_rust_calls():
    with scratch() as d:
        exact(f"{d}/a", "rust", "rust", "rust-again")
        expect(walked(f"{d}/a"), by_rust=2, by_rust_again=1)
        exact(f"{d}/a", "rust", "rust-delete")
        sums = walked(f"{d}/a")
        assert STEPS - 200 <= sums.pop(("allocating", "pool")) <= STEPS, sums
        expect(sums, by_rust=1)


def test_blocks_that_grow():
    """A block that could not grow stays what it was."""
    with scratch() as d:
        exact(f"{d}/a", "malloc", "array", "realloc", "fail", "overflow", "fork")
        sums = walked(f"{d}/a")
        expect(sums, by_malloc=1, by_array=1, by_realloc=2, by_calloc=1)


def test_what_allocators_do_to_their_blocks():
    """calloc clears its block, realloc copies into one: these stores are of the block."""
    stores = "L1-dcache-store-misses:u"
    with scratch() as d:
        r = run("record", "--exact", "--machine=cachegrind", "-d", "--alloc-sites", "-e", stores,
                "-o", f"{d}/a", "--", ALLOCATING, "clear", "grow",
                env={"MALLOC_PERTURB_": "0"})
        assert r.status == 0, r
        r = run("report", "--json", "-i", f"{d}/a", "-s", "data")
        sums = Counter()
        event = {d["event"]: d for d in map(json.loads, r.out.splitlines())}[stores]
        for row in event["rows"]:
            sums[row.get("data", "").split(" at ")[0].split("+")[0]] += row["period"]
        lines = 50000 // 64
        assert lines - 20 <= sums["by_cleared"] <= lines + 20, sums
        assert lines - 20 <= sums["by_grown"] <= lines + 20, sums


def test_addresses_that_are_used_again():
    with scratch() as d:
        exact(f"{d}/a", "malloc", "free", "calloc", "free", "churn", "memalign", "free", "malloc")
        expect(walked(f"{d}/a"), by_malloc=2, by_calloc=1, by_memalign=1)


def test_threads_and_children():
    with scratch() as d:
        for options in ((), ("-g",)):
            exact(f"{d}/a", "thread", "malloc", "thread", "fork", options=options)
            expect(walked(f"{d}/a"), by_malloc=4, by_calloc=1)


def test_the_names_say_where():
    with scratch() as d:
        exact(f"{d}/a", "calloc")
        r = run("report", "-i", f"{d}/a", "-s", "data")
        assert "[heap]" in r.out and "by_calloc at allocating.c:" in r.out, r
        # Without the option it is one heap, or the mapping that it lies in.
        r = run("record", "--exact", "--machine=cachegrind", "-d", "-e", LOADS, "-o", f"{d}/b",
                "--", ALLOCATING, "calloc")
        assert r.status == 0, r
        assert "by_calloc" not in run("report", "-i", f"{d}/b", "-s", "data").out


def test_counts_are_the_same():
    with scratch() as d:
        exact(f"{d}/a", "malloc", "xmalloc", "realloc")
        want, = stat_json("--machine=cachegrind", "--model-windows=no",
                          "-e", f"instructions,{LOADS}", "--", ALLOCATING, "malloc", "xmalloc",
                          "realloc")
        r = run("report", "--json", "-i", f"{d}/a")
        got = {e["event"]: e["period"] for e in map(json.loads, r.out.splitlines())}
        want = [c["value"] for c in counts(want).values()]
        # Addresses differ, and with them what shares a set.
        assert abs(got["instructions:u"] - want[0]) < 100, (got, want)
        assert abs(got[LOADS] - want[1]) < want[1] / 100, (got, want)


def test_a_static_program():
    cc = shutil.which("cc") or shutil.which("gcc")
    with scratch() as d:
        built = cc and subprocess.run(
            [cc, "-O1", "-fno-builtin", "-static", "-o", f"{d}/static",
             os.environ["E2E_ALLOCATING_C"], "-lpthread"],
            stderr=subprocess.DEVNULL, check=False).returncode == 0
        assert built, "a static program needs libc.a, which comes with the compiler's packages"
        exact(f"{d}/a", "malloc", "thread", "fork", program=f"{d}/static")
        expect(walked(f"{d}/a"), by_malloc=3, by_calloc=1)
        # Of one without symbols nothing is known, which is said of it.
        subprocess.run(["strip", f"{d}/static"], check=True)
        for program, others in (([f"{d}/static", "malloc"], "'static', so"),
                                (["sh", "-c", f"{d}/static malloc; {d}/static calloc; true"],
                                 "'static', nor in 1 other")):
            r = run("record", "--exact", *OPTIONS, "-o", f"{d}/a", "--", *program)
            assert r.status == 0 and f"no allocator was found in {others}" in r.err, r
            assert "do not strip it" in r.err, r
        # Who did not ask is told nothing.
        r = run("record", "--exact", *(o for o in OPTIONS if o != "--alloc-sites"), "-o",
                f"{d}/a", "--", f"{d}/static", "malloc")
        assert r.status == 0 and "allocator" not in r.err, r


def test_what_it_needs():
    for options in (("--alloc-sites",), ("--exact", "--alloc-sites"), ("-d", "--alloc-sites")):
        r = run("record", *options, "-o", "/dev/null", "--", "true")
        assert r.status == 125 and "needs --exact and -d" in r.err, r


if __name__ == "__main__":
    main(globals())
