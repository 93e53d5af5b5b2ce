#!/usr/bin/env python3
"""Elements of gathers and scatters are accesses to the model of a machine: as many as there are,
and each where it is."""
import os

from e2e import ANYPERF, Skip, main, run, scratch, stat_json

GATHERING = os.environ["E2E_GATHERING"]
LOADS, STORES = "L1-dcache-loads:u", "L1-dcache-stores:u"
TURNS = 1000


def flags():
    with open("/proc/cpuinfo") as f:
        return next(line for line in f if line.startswith("flags")).split()


def counted(*command, machine="cachegrind"):
    report, = stat_json("--machine", machine, "--model-windows=no", "-e", f"{LOADS},{STORES}", "--",
                        *command)
    values = {c["event"]: c["value"] for c in report["counts"]}
    return values[LOADS], values[STORES]


def need(flag):
    if flag not in flags():
        raise Skip(f"this CPU has no {flag}")


def test_elements_that_are_not_masked():
    need("avx2")
    # Before: argc, the indices, which are some. Of a turn: 8, 2, 1.
    for machine in "cachegrind", "skylake-server":
        assert counted(GATHERING, machine=machine) == (3 + 11 * TURNS, 0)


def test_masks_of_avx512():
    need("avx512f")
    assert counted(GATHERING, "more") == (3 + 1 + (11 + 7) * TURNS, 3 * TURNS)


def test_where_they_are():
    need("avx2")
    with scratch() as d:
        data = os.path.join(d, "perf.data")
        p = run("record", "-q", "-o", data, "--machine", "cachegrind", "-d", "-e", LOADS, "-c", "1",
                "--", GATHERING)
        assert p.status == 0, p
        lines = run("script", "-i", data, "-F", "ip,sym,addr").out.splitlines()
    assert lines, "no samples"
    words = [line.split() for line in lines]
    first = [int(w[0], 16) for w in words if w[-1] == "gather"]
    table = min(first)
    # One after the other, of some turns at least.
    turn = [table + 64 * i for i in range(8)]
    assert set(first) == set(turn) and first[:64] == 8 * turn, lines[:20]
    # Elements 0 and 3, and 0 and then the mask's second half, which is 0.
    assert {int(w[0], 16) - table for w in words if w[-1] == "gather_words"} == {8, 8 + 384}, lines


main(globals())
